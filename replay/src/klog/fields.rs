//! The key=value pairs behind a structured message, of every klog release (node-logs §1.3): values are told apart by
//! their shape, never by a version.

use crate::scan::{group_len, quoted_len, trim, unescape};
use std::borrow::Cow;

/// A value as written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Value<'a> {
    /// Its text; of a quoted one without the quotes, with its escapes.
    pub raw: &'a [u8],
    /// It was quoted.
    pub quoted: bool,
    /// The record ends in its middle: its end is unknown.
    pub cut: bool,
}

impl<'a> Value<'a> {
    /// What it says, without escapes. A block's indent is left in.
    pub fn text(&self) -> Cow<'a, [u8]> {
        if self.quoted { unescape(self.raw) } else { Cow::Borrowed(self.raw) }
    }
    /// What it says, if it is known to its end.
    pub fn whole(&self) -> Option<Cow<'a, [u8]>> {
        (!self.cut).then(|| self.text())
    }
}

/// A structured body: the message and its pairs.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    /// The message, with its escapes.
    pub message: &'a [u8],
    /// The message's end is missing.
    pub cut: bool,
    pairs: Vec<(&'a [u8], Value<'a>)>,
}

impl<'a> Fields<'a> {
    /// Reads a body that begins with a quote. `None`: it is quoted for another reason.
    pub fn read(body: &'a [u8]) -> Option<Fields<'a>> {
        let inner = body.strip_prefix(b"\"")?;
        let Some(len) = quoted_len(inner) else {
            return Some(Fields { message: trim(strip_cut(inner)), cut: true, pairs: Vec::new() });
        };
        let (message, rest) = (&inner[..len], &inner[len + 1..]);
        let rest = trim_end(rest);
        if !rest.is_empty() && rest[0] != b' ' {
            return None;
        }
        // Few records have more.
        let mut pairs = Vec::with_capacity(if rest.is_empty() { 0 } else { 8 });
        let mut at = rest;
        while let Some((key, value, next)) = pair(at) {
            pairs.push((key, value));
            at = next;
        }
        Some(Fields { message, cut: false, pairs })
    }

    /// The value of a key; the last one wins (klog 2.140 drops the others at the source).
    pub fn get(&self, key: &str) -> Option<Value<'a>> {
        self.pairs.iter().rev().find(|(k, _)| *k == key.as_bytes()).map(|(_, v)| *v)
    }

    /// The value of the first key that is there.
    pub fn any(&self, keys: &[&str]) -> Option<Value<'a>> {
        keys.iter().find_map(|k| self.get(k))
    }

    /// Whether some value's end is missing.
    pub fn is_cut(&self) -> bool {
        self.cut || self.pairs.iter().any(|(_, v)| v.cut)
    }
}

/// Pagers and terminals mark what they cut with a sign at the end.
pub fn strip_cut(text: &[u8]) -> &[u8] {
    let text = trim_end(text);
    let text = text.strip_suffix("…".as_bytes()).unwrap_or(text);
    text.strip_suffix(b">").or_else(|| text.strip_suffix(b"$")).unwrap_or(text)
}

fn trim_end(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|b| !matches!(b, b' ' | b'\r' | b'\n')).map_or(0, |at| at + 1);
    &text[..end]
}

/// The signs that a key may have, asked of each in every record that says something.
const KEY: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < table.len() {
        let sign = b as u8;
        table[b] = sign.is_ascii_alphanumeric() || matches!(sign, b'_' | b'.' | b'-');
        b += 1;
    }
    table
};

/// The length of a key with its `=`, if the text begins with one. Keys may hold a blank ("probe status").
fn key_len(text: &[u8]) -> Option<usize> {
    if !text.first()?.is_ascii_alphabetic() {
        return None;
    }
    let len = text.iter().take_while(|b| KEY[usize::from(**b)]).count();
    (text.get(len) == Some(&b'=')).then_some(len)
}

type Pair<'a> = (&'a [u8], Value<'a>, &'a [u8]);

/// The next pair and what follows it.
fn pair(text: &[u8]) -> Option<Pair<'_>> {
    let mut at = 0;
    loop {
        let blanks = text[at..].iter().take_while(|b| matches!(b, b' ' | b'\n' | b'\r' | b'\t')).count();
        at += blanks;
        if at >= text.len() {
            return None;
        }
        if let Some(len) = key_len(&text[at..]) {
            let (value, end) = value(&text[at + len + 1..]);
            return Some((&text[at..at + len], value, &text[at + len + 1 + end..]));
        }
        // Not a key: a lost quote, a person's word. Go on at the next blank.
        at += text[at..].iter().take_while(|b| !matches!(b, b' ' | b'\n')).count();
    }
}

/// The value that a text begins with, and how long it is.
fn value(text: &[u8]) -> (Value<'_>, usize) {
    let whole = |raw, quoted| Value { raw, quoted, cut: false };
    let cut = |raw, quoted| Value { raw: strip_cut(raw), quoted, cut: true };
    match text.first() {
        Some(b'"') => match quoted_len(&text[1..]) {
            Some(len) => (whole(&text[1..1 + len], true), len + 2),
            None => (cut(&text[1..], true), text.len()),
        },
        Some(b'<') if matches!(text.get(1), Some(b'\n') | None) => block(text),
        Some(b'{' | b'[') => match group_len(text) {
            Some(len) => (whole(&text[..len], false), len),
            None => (cut(text, false), text.len()),
        },
        Some(b'&') if text.get(1) == Some(&b'{') => match group_len(&text[1..]) {
            Some(len) => (whole(&text[1..1 + len], false), len + 1),
            None => (cut(&text[1..], false), text.len()),
        },
        Some(_) => {
            let len = bare_len(text);
            let raw = trim(&text[..len]);
            let ends = len == text.len();
            let marked = ends && strip_cut(raw).len() < raw.len();
            (if marked { cut(raw, false) } else { whole(raw, false) }, len)
        }
        None => (whole(text, false), 0),
    }
}

/// A bare value goes on to the next ` key=` (node-logs §1.3: durations and structs hold blanks up to 1.27).
fn bare_len(text: &[u8]) -> usize {
    for blank in memchr::memchr2_iter(b' ', b'\n', text) {
        if key_len(&text[blank + 1..]).is_some() {
            return blank;
        }
    }
    text.len()
}

/// `=<`, lines that begin with a tab, and a line ` >` (node-logs §1.4).
fn block(text: &[u8]) -> (Value<'_>, usize) {
    let from = text.len().min(2);
    match memchr::memmem::find(text, b"\n >") {
        Some(end) => {
            (Value { raw: text.get(from..end).unwrap_or_default(), quoted: false, cut: false }, end + 3)
        }
        None => (Value { raw: &text[from..], quoted: false, cut: true }, text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(f: &Fields<'_>, key: &str) -> String {
        String::from_utf8_lossy(&f.get(key).expect(key).text()).into_owned()
    }

    #[test]
    fn values_of_every_era() {
        let f = Fields::read(
            br#""m" err="a \"b\"" pod="ns/p" podUID=1e8f event=&{ID:a Type:b Data:c} d=1m 2s n=[ns/a ns/b] j={"A":"}"} last=x"#,
        )
        .expect("fields");
        assert_eq!(text(&f, "err"), r#"a "b""#);
        assert_eq!(text(&f, "podUID"), "1e8f");
        assert_eq!(text(&f, "event"), "{ID:a Type:b Data:c}");
        assert_eq!(text(&f, "d"), "1m 2s");
        assert_eq!(text(&f, "n"), "[ns/a ns/b]");
        assert_eq!(text(&f, "j"), r#"{"A":"}"}"#);
        assert_eq!(text(&f, "last"), "x");
        assert!(!f.is_cut());
    }

    #[test]
    fn a_block_ends_at_its_sign() {
        let f = Fields::read(b"\"m\" err=<\n\tfirst\n\tsecond\n > pod=\"ns/p\"").expect("fields");
        assert_eq!(text(&f, "err"), "\tfirst\n\tsecond");
        assert_eq!(text(&f, "pod"), "ns/p");
    }

    #[test]
    fn a_cut_value_is_known_to_be_cut() {
        for body in [
            &br#""RemoveContainer" containerID="a0d4154700af>"#[..],
            br#""DeleteContainer returned error" containerID={Type:cri-o ID:a0d4154700af>"#,
            br#""Killing" podUID=a0d4>"#,
        ] {
            assert!(Fields::read(body).expect("fields").is_cut(), "{}", String::from_utf8_lossy(body));
        }
        let f =
            Fields::read(br#""operationExecutor.UnmountVolume started for volume \"a\" (Uni>"#).expect("f");
        assert!(f.cut && f.message.ends_with(b"(Uni"));
    }

    #[test]
    fn a_quote_for_another_reason_is_no_message() {
        assert!(Fields::read(br#""web" is a pod"#).is_some_and(|f| f.get("is").is_none()));
        assert!(Fields::read(br#""web"s"#).is_none());
    }
}
