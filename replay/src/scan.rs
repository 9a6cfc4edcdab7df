//! Byte scanners that every importer uses. Owns no meaning: only where things begin and end.
//!
//! Everything here is linear in its input and allocates nothing unless it says so.

use memchr::{memchr, memmem};
use nodefold_core::ids::Name;
use std::borrow::Cow;

/// A shared string from bytes; what is no UTF-8 becomes U+FFFD.
pub fn name(bytes: &[u8]) -> Name {
    match str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned().into(),
    }
}

/// Where `needle` begins. Records are short, and to get a searcher ready costs more than to look at each place that begins right.
pub fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    const SHORT: usize = 1024;
    match needle.first() {
        Some(first) if haystack.len() <= SHORT => {
            memchr::memchr_iter(*first, haystack).find(|at| haystack[*at..].starts_with(needle))
        }
        Some(_) | None => memmem::find(haystack, needle),
    }
}

/// Whether `needle` occurs.
pub fn has(haystack: &[u8], needle: &[u8]) -> bool {
    find(haystack, needle).is_some()
}

/// What follows the first `needle`.
pub fn after<'a>(haystack: &'a [u8], needle: &[u8]) -> Option<&'a [u8]> {
    find(haystack, needle).map(|at| &haystack[at + needle.len()..])
}

/// What lies before the first `needle`.
pub fn before<'a>(haystack: &'a [u8], needle: &[u8]) -> Option<&'a [u8]> {
    find(haystack, needle).map(|at| &haystack[..at])
}

/// What lies between the first `open` and the next `close` after it.
pub fn between<'a>(haystack: &'a [u8], open: &[u8], close: &[u8]) -> Option<&'a [u8]> {
    before(after(haystack, open)?, close)
}

/// The text up to `end`, and what follows it.
pub fn until(text: &[u8], end: u8) -> Option<(&[u8], &[u8])> {
    memchr(end, text).map(|at| (&text[..at], &text[at + 1..]))
}

/// The leading word and what follows the blanks after it.
pub fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(text.len());
    (&text[..end], trim_start(&text[end..]))
}

/// Without leading blanks.
pub fn trim_start(text: &[u8]) -> &[u8] {
    let from = text.iter().position(|b| !matches!(b, b' ' | b'\t' | b'\r')).unwrap_or(text.len());
    &text[from..]
}

/// Without blanks at either end.
pub fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

/// The number that the text begins with, and how many digits it has. More than eighteen digits are no number.
pub fn number(text: &[u8]) -> Option<(u64, usize)> {
    let mut value: u64 = 0;
    let mut len = 0;
    for &b in text {
        if !b.is_ascii_digit() {
            break;
        }
        if len == 18 {
            return None;
        }
        value = value * 10 + u64::from(b - b'0');
        len += 1;
    }
    (len > 0).then_some((value, len))
}

/// A whole text as a number, with a sign or without.
pub fn integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] | rest => (false, rest),
    };
    let (value, len) = number(digits)?;
    let value = i64::try_from(value).ok()?;
    (len == digits.len()).then_some(if negative { -value } else { value })
}

/// Exactly `N` digits as a number.
pub fn fixed<const N: usize>(text: &[u8]) -> Option<u32> {
    let digits = text.get(..N)?;
    let mut value = 0u32;
    for &b in digits {
        if !b.is_ascii_digit() {
            return None;
        }
        value = value * 10 + u32::from(b - b'0');
    }
    Some(value)
}

/// The length of a Go or JSON string's body: up to the quote that ends it. `None`: it doesn't end here.
pub fn quoted_len(body: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', body.get(at..)?)?;
        if body[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

/// A Go string's body without its escapes. Borrowed when there are none.
pub fn unescape(body: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr(b'\\', body) else { return Cow::Borrowed(body) };
    let mut out = Vec::with_capacity(body.len());
    out.extend_from_slice(&body[..first]);
    let mut at = first;
    while at < body.len() {
        let next = memchr(b'\\', &body[at..]).map_or(body.len(), |n| at + n);
        out.extend_from_slice(&body[at..next]);
        if next == body.len() {
            break;
        }
        at = next + 2;
        match body.get(next + 1) {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(&kind @ (b'x' | b'u' | b'U')) => {
                let digits = match kind {
                    b'x' => 2,
                    b'u' => 4,
                    _ => 8,
                };
                let code = body.get(at..at + digits).and_then(hex);
                match (kind, code.and_then(|c| u8::try_from(c).ok()), code.and_then(char::from_u32)) {
                    (b'x', Some(byte), _) => out.push(byte),
                    (_, _, Some(c)) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                    (_, _, None) => out.extend_from_slice("\u{fffd}".as_bytes()),
                }
                at = (at + digits).min(body.len());
            }
            Some(&other) => out.push(other),
            None => out.push(b'\\'),
        }
    }
    Cow::Owned(out)
}

fn hex(digits: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(digits).ok()?;
    u32::from_str_radix(text, 16).ok()
}

/// The length of a balanced group that begins with `{`, `[` or `(`: nesting and strings inside are honoured. `None`:
/// it doesn't end here.
pub fn group_len(text: &[u8]) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b'"' => at += 1 + quoted_len(&text[at + 1..])?,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether this is a pod UID: a UUID, or the 32 digits of a static pod's (node-logs §2.3).
pub fn is_uid(text: &[u8]) -> bool {
    let hex = |b: &u8| b.is_ascii_hexdigit();
    match text.len() {
        32 => text.iter().all(hex),
        36 => text.iter().enumerate().all(|(i, b)| match i {
            8 | 13 | 18 | 23 => *b == b'-',
            _ => hex(b),
        }),
        _ => false,
    }
}

/// Whether this is (the beginning of) a container's or sandbox' id: hexadecimal, 12 to 64 digits.
pub fn is_runtime_id(text: &[u8]) -> bool {
    (12..=64).contains(&text.len()) && text.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_where_go_ends_them() {
        assert_eq!(quoted_len(br#"a\"b" c"#), Some(4));
        assert_eq!(quoted_len(br#"a\"b"#), None);
        assert_eq!(quoted_len(br"a\"), None);
        assert_eq!(&*unescape(br#"a\"b\n\t\\ \u00e9\x41\"#), "a\"b\n\t\\ \u{e9}A\\".as_bytes());
        assert_eq!(&*unescape(br"\u12"), "\u{fffd}".as_bytes());
    }

    #[test]
    fn groups_are_balanced() {
        assert_eq!(group_len(br#"{"a":"}","b":[1]} x"#), Some(17));
        assert_eq!(group_len(b"[a"), None);
        assert_eq!(group_len(b"]"), None);
        assert_eq!(group_len(br#"{"a"#), None);
    }

    #[test]
    fn uids_have_one_of_two_shapes() {
        assert!(is_uid(b"a5f5f6fa-b968-4d32-395c-641f95a3f7a8"));
        assert!(is_uid(b"b5efbf383afbad358658bbae4d1980a5"));
        for bad in [&b"xxxxxxxx-b968-4d32-395c-641f95a3f7a8"[..], b"{pod-uid}", b"ab21", b""] {
            assert!(!is_uid(bad));
        }
    }

    #[test]
    fn numbers_are_read_whole() {
        assert_eq!(integer(b"-3"), Some(-3));
        assert_eq!(integer(b"12s"), None);
        assert_eq!(integer(b""), None);
        assert_eq!(number(b"1234567890123456789"), None);
        assert_eq!(fixed::<2>(b"1x"), None);
    }
}
