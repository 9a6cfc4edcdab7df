//! logfmt, as logrus prints it: `time="…" level=info msg="…" id=…`. CRI-O's times may have a blank and an offset.

use crate::scan::{quoted_len, unescape};
use crate::stamp::Stamp;
use std::borrow::Cow;

/// One line.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Its time.
    pub time: Option<Stamp>,
    /// Its level.
    pub level: Cow<'a, [u8]>,
    /// Its message, without escapes.
    pub message: Cow<'a, [u8]>,
    /// Its error, if it has one.
    pub error: Option<Cow<'a, [u8]>>,
    /// The request or container that `id=` names.
    pub id: Option<Cow<'a, [u8]>>,
    /// The line ends in a value.
    pub cut: bool,
}

impl<'a> Line<'a> {
    /// Reads a line that begins with `time=` or `level=`.
    pub fn read(text: &'a [u8]) -> Option<Line<'a>> {
        if !text.starts_with(b"time=") && !text.starts_with(b"level=") {
            return None;
        }
        let mut line = Line {
            time: None,
            level: Cow::Borrowed(b""),
            message: Cow::Borrowed(b""),
            error: None,
            id: None,
            cut: false,
        };
        let mut at = text;
        let mut has_message = false;
        while let Some(equals) = memchr::memchr(b'=', at) {
            let key = &at[..equals];
            let key = key.iter().rposition(|b| *b == b' ').map_or(key, |blank| &key[blank + 1..]);
            let rest = &at[equals + 1..];
            let (value, end) = match rest.strip_prefix(b"\"") {
                Some(inner) => match value_len(inner) {
                    Some(len) => (unescape(&inner[..len]), len + 2),
                    None => {
                        line.cut = true;
                        (unescape(inner), rest.len())
                    }
                },
                None => {
                    let len = rest.iter().position(|b| *b == b' ').unwrap_or(rest.len());
                    (Cow::Borrowed(&rest[..len]), len)
                }
            };
            match key {
                b"time" => line.time = Stamp::rfc3339(&value).map(|(s, _)| s),
                b"level" => line.level = value,
                b"msg" => {
                    has_message = true;
                    line.message = value;
                }
                b"error" => line.error = Some(value),
                b"id" => line.id = Some(value),
                _ => {}
            }
            at = &rest[end..];
        }
        has_message.then_some(line)
    }
}

/// How long a quoted value is. Some pastes have lost the escapes of the quotes inside: then it ends at a quote behind which the
/// line ends or another `key=` follows.
fn value_len(inner: &[u8]) -> Option<usize> {
    let strict = quoted_len(inner)?;
    let mut len = strict;
    loop {
        let rest = &inner[len + 1..];
        let key = rest
            .strip_prefix(b" ")
            .map_or(0, |r| r.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count());
        if rest.trim_ascii().is_empty() || (key > 0 && rest.get(key + 1) == Some(&b'=')) {
            return Some(len);
        }
        match quoted_len(rest) {
            Some(more) => len += 1 + more,
            None => return Some(strict),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_that_lost_their_escapes_do_not_end_a_value() {
        let text = br#"time="2018-11-13T18:24:26Z" level=error msg="StopContainer for "89fec9b1cad4f" failed" error="wait "x" is cancelled""#;
        let line = Line::read(text).expect("a line");
        assert_eq!(&*line.message, br#"StopContainer for "89fec9b1cad4f" failed"#);
        assert_eq!(line.error.as_deref(), Some(&br#"wait "x" is cancelled"#[..]));
    }

    #[test]
    fn a_cut_line_keeps_what_is_there() {
        let text = br#"time="2024-04-11 22:52:11.301247991+08:00" level=info msg="Got pod network &{Name:dim Namesp"#;
        let line = Line::read(text).expect("a line");
        assert!(line.cut && line.message.ends_with(b"Namesp"));
        assert_eq!(line.time.expect("a time").offset, Some(28_800));
        assert!(Line::read(b"timeout=3").is_none());
    }
}
