//! Which texts are names, in Kubernetes' senses, and what it says of those that aren't.

use super::Errors;
use serde_json::Value;

/// What is said of a text that is no RFC 1123 label.
pub(crate) const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
    and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
/// What is said of a text that is no RFC 1123 subdomain.
pub(crate) const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
    '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', \
    regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, \
    '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
    regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const AT_MOST_63: &str = "must be no more than 63 characters";

/// S1: a name of a container, volume, host or the like, which isn't empty.
pub(crate) fn label(text: &str, path: &str, errors: &mut Errors) {
    for problem in dns_label_problems(text) {
        errors.invalid(path, &Value::from(text), problem);
    }
}

/// Everything that is wrong with an RFC 1123 label.
pub(crate) fn dns_label_problems(text: &str) -> Vec<&'static str> {
    let long = (text.len() > 63).then_some(AT_MOST_63);
    long.into_iter().chain((!has_label_form(text)).then_some(LABEL)).collect()
}

/// Everything that is wrong with a label's value.
pub(crate) fn label_value_problems(text: &str) -> Vec<&'static str> {
    let long = (text.len() > 63).then_some(AT_MOST_63);
    let form = (!text.is_empty() && !has_name_form(text)).then_some(LABEL_VALUE);
    long.into_iter().chain(form).collect()
}

/// Everything that is wrong with a label's or annotation's key.
pub(crate) fn qualified_name_problems(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let name = match text.split_once('/') {
        Some((_, rest)) if rest.contains('/') => {
            let optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a qualified name {QUALIFIED} {optional}")];
        }
        Some(("", name)) => {
            problems.push("prefix part must be non-empty".to_owned());
            name
        }
        Some((prefix, name)) => {
            problems
                .extend(subdomain_problems(prefix).iter().map(|problem| format!("prefix part {problem}")));
            name
        }
        None => text,
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        problems.push(format!("name part {AT_MOST_63}"));
    }
    if !has_name_form(name) {
        problems.push(format!("name part {QUALIFIED}"));
    }
    problems
}

/// Everything that is wrong with most objects' names.
pub(crate) fn subdomain_problems(text: &str) -> Vec<&'static str> {
    let long = (text.len() > 253).then_some("must be no more than 253 characters");
    let form = (!text.split('.').all(has_label_form)).then_some(SUBDOMAIN);
    long.into_iter().chain(form).collect()
}

/// Everything that is wrong with the name of an object that only has to be a part of a path: a role's.
pub(crate) fn path_segment_problems(text: &str) -> Vec<&'static str> {
    match text {
        "." => vec!["may not be '.'"],
        ".." => vec!["may not be '..'"],
        text => {
            let slash = text.contains('/').then_some("may not contain '/'");
            slash.into_iter().chain(text.contains('%').then_some("may not contain '%'")).collect()
        }
    }
}

/// S5: everything that is wrong with a port's name.
pub(crate) fn port_name_problems(text: &str) -> Vec<&'static str> {
    let mut problems = Vec::new();
    if text.len() > 15 {
        problems.push("must be no more than 15 characters");
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !text.bytes().any(|b| b.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)");
    }
    if text.contains("--") {
        problems.push("must not contain consecutive hyphens");
    }
    if text.starts_with('-') || text.ends_with('-') {
        problems.push("must not begin or end with a hyphen");
    }
    problems
}

/// S7: printable ASCII without `=`.
pub(crate) fn is_variable_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=')
}

/// A key of a configMap or secret.
pub(crate) fn is_config_key(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    !text.is_empty() && text.len() <= 253 && text.bytes().all(inner) && text != "." && !text.starts_with("..")
}

/// A header of HTTP.
pub(crate) fn is_header_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// RFC 1123 label: a container's, a volume's, a namespace's name.
pub(crate) fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && has_label_form(text)
}

/// A label of any length.
fn has_label_form(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    text.bytes().all(inner) && begins_and_ends_well(text)
}

/// RFC 1123 subdomain: most objects' names.
pub(crate) fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(has_label_form)
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
    text.len() <= 63 && has_name_form(text)
}

/// A name part of any length.
fn has_name_form(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    text.bytes().all(inner) && begins_and_ends_well(text)
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
