//! Which texts are names, in Kubernetes' four senses.

/// RFC 1123 label: a container's, a volume's, a namespace's name.
pub(crate) fn is_dns_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    text.len() <= 63 && text.bytes().all(inner) && begins_and_ends_well(text)
}

/// RFC 1123 subdomain: most objects' names.
pub(crate) fn is_dns_subdomain(text: &str) -> bool {
    let label = |l: &str| {
        l.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && begins_and_ends_well(l)
    };
    text.len() <= 253 && text.split('.').all(label)
}

/// A label's value: empty, or up to 63 letters, digits, `-`, `_` and `.` between letters or digits.
pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name_part(text)
}

/// A label's or annotation's key: a name part, after an optional subdomain and slash.
pub(crate) fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_name_part(name),
        None => is_name_part(text),
    }
}

fn is_name_part(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    text.len() <= 63 && text.bytes().all(inner) && begins_and_ends_well(text)
}

fn begins_and_ends_well(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter().all(|b| b.is_some_and(|b| b.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_each_sense() {
        let long = "a".repeat(64);
        for (text, label, subdomain, value, qualified) in [
            ("app-1", true, true, true, true),
            ("", false, false, true, false),
            ("-a", false, false, false, false),
            ("a-", false, false, false, false),
            ("A", false, false, true, true),
            ("a.b", false, true, true, true),
            ("a..b", false, false, true, true),
            ("a_b", false, false, true, true),
            ("example.com/a", false, false, false, true),
            ("/a", false, false, false, false),
            (long.as_str(), false, true, false, false),
        ] {
            let got =
                (is_dns_label(text), is_dns_subdomain(text), is_label_value(text), is_qualified_name(text));
            assert_eq!(got, (label, subdomain, value, qualified), "{text:?}");
        }
    }
}
