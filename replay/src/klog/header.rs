//! The klog header: `I0316 04:31:21.080604     202 kubelet.go:2474] ` and what people and collectors made of it
//! (node-logs §1.1). Reads nothing behind the `]`.

use crate::scan::number;
use crate::stamp::{Stamp, time_of_day};

/// A header.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// `I`, `W`, `E`, `F`; lost in some pastes.
    pub severity: Option<u8>,
    /// When. Without a date in harness merges.
    pub stamp: Option<Stamp>,
    /// The process.
    pub pid: u64,
    /// The file's base name.
    pub file: &'a [u8],
    /// Where the body begins.
    pub len: usize,
}

/// Reads a header that the line begins with.
pub fn read(line: &[u8]) -> Option<Header<'_>> {
    let (severity, start) = severity(line)?;
    let (stamp, len) = Stamp::klog(line.get(start..)?)?;
    let mut at = start + len;
    let blanks = line[at..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
    if blanks == 0 {
        return None;
    }
    at += blanks;
    // Some pastes have lost the thread: the place follows at once.
    let pid = match number(&line[at..]) {
        Some((pid, digits)) if line.get(at + digits) == Some(&b' ') => {
            at += digits + 1;
            pid
        }
        Some(_) | None => 0,
    };
    let (file, len) = place(line.get(at..)?)?;
    Some(Header { severity, stamp: Some(stamp), pid, file, len: at + len })
}

/// `kubelet_volumes.go:154] `: a header of which nothing but the place is left.
pub fn place_only(line: &[u8]) -> Option<Header<'_>> {
    let named =
        line.iter().take_while(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || **b == b'_').count();
    if named == 0 || !line[named..].starts_with(b".go:") {
        return None;
    }
    let (file, len) = place(line)?;
    Some(Header { severity: None, stamp: None, pid: 0, file, len })
}

/// Finds a header anywhere in the line: its place and the header. Collectors put all sorts of things before it.
pub fn find(line: &[u8]) -> Option<(usize, Header<'_>)> {
    const TRIES: usize = 12;
    const LONGEST: usize = 160;
    for close in memchr::memchr_iter(b']', line).take(TRIES) {
        if !close.checked_sub(1).is_some_and(|i| line[i].is_ascii_digit()) {
            continue;
        }
        let from = close.saturating_sub(LONGEST);
        for at in from..close {
            if matches!(line[at], b'I' | b'W' | b'E' | b'F' | b'0' | b'1')
                && let Some(header) = read(&line[at..])
                && (at == 0
                    || severity(&line[at..]).is_some_and(|(s, _)| s.is_some())
                    || line[at - 1] == b' ')
            {
                return Some((at, header));
            }
        }
    }
    None
}

/// `06:21:12.127616  kubelet   status_manager.go:544] `: what harnesses make when they merge logs, or a header that lost its date and
/// has the process there.
pub fn merged(line: &[u8]) -> Option<(i64, Header<'_>)> {
    let before = line.iter().take_while(|b| **b == b' ').count();
    let (of_day, len) = time_of_day(&line[before..])?;
    let len = before + len;
    let rest = &line[len..];
    let blanks = rest.iter().take_while(|b| **b == b' ').count();
    let rest = &rest[blanks..];
    let word = rest.iter().take_while(|b| **b != b' ').count();
    let pid = number(rest).filter(|(_, digits)| *digits == word).map(|(pid, _)| pid);
    if blanks == 0 || !(rest.starts_with(b"kubelet") || pid.is_some()) {
        return None;
    }
    let gap = rest[word..].iter().take_while(|b| **b == b' ').count();
    let (file, place_len) = place(&rest[word + gap..])?;
    let len = len + blanks + word + gap + place_len;
    Some((of_day, Header { severity: None, stamp: None, pid: pid.unwrap_or(0), file, len }))
}

/// The severity and where the date begins. A word with a colon is glog's own cousin; none at all is a lost letter.
fn severity(line: &[u8]) -> Option<(Option<u8>, usize)> {
    match line.first()? {
        b @ (b'I' | b'W' | b'E' | b'F') => {
            if line.get(1)?.is_ascii_digit() {
                return Some((Some(*b), 1));
            }
            ["INFO:", "WARNING:", "ERROR:", "FATAL:"]
                .iter()
                .find(|w| line.starts_with(w.as_bytes()))
                .map(|w| (Some(*b), w.len()))
        }
        b'0'..=b'9' => Some((None, 0)),
        _ => None,
    }
}

/// `kubelet.go:2474] `: the file's base name, and the length up to the body.
fn place(text: &[u8]) -> Option<(&[u8], usize)> {
    let window = &text[..text.len().min(128)];
    let mut colon = memchr::memchr(b':', window)?;
    let is_end = |colon: usize| {
        let digits = window[colon + 1..].iter().take_while(|b| b.is_ascii_digit()).count();
        (digits > 0 && window.get(colon + 1 + digits) == Some(&b']')).then_some(colon + 1 + digits)
    };
    let close = match is_end(colon) {
        Some(close) => close,
        // A name with a colon in it: the last one before the sign counts.
        None => {
            let close = memchr::memchr(b']', window)?;
            colon = memchr::memrchr(b':', &window[..close])?;
            is_end(colon)?
        }
    };
    let mut from = 0;
    // Few names are long enough for more than a look at each sign.
    for (at, b) in window[..colon].iter().enumerate() {
        match b {
            b' ' => return None,
            b'/' => from = at + 1,
            _ => {}
        }
    }
    Some((&window[from..colon], close + 1 + usize::from(text.get(close + 1) == Some(&b' '))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_every_shape() {
        for (line, severity, pid, file) in [
            ("I0316 04:31:21.080604     202 kubelet.go:2474] x", Some(b'I'), 202, "kubelet.go"),
            ("E0316 04:31:21.080604 18094231 kubelet/kubelet.go:2] x", Some(b'E'), 18_094_231, "kubelet.go"),
            ("INFO:1208 16:41:26.682756   31640 kubelet.go:1894] x", Some(b'I'), 31640, "kubelet.go"),
            ("0905 15:42:13.080604 1 ???:1] x", None, 1, "???"),
            ("I0510 13:40:03.326512 reconciler.go:301] x", Some(b'I'), 0, "reconciler.go"),
        ] {
            let header = read(line.as_bytes()).expect(line);
            assert_eq!(
                (header.severity, header.pid, header.file),
                (severity, pid, file.as_bytes()),
                "{line}"
            );
            assert_eq!(&line[header.len..], "x");
        }
        assert!(read(b"I1119 21:50:46.467] Nov 19 21:45:44.316: INFO: x").is_none());
        assert_eq!(place_only(b"kubelet_volumes.go:154] x").expect("a place").len, 24);
        assert!(place_only(b"see kubelet.go:1] x").is_none());
    }

    #[test]
    fn a_header_is_found_behind_anything() {
        for line in [
            "DEFAULT 2024-07-23T02:41:20.566467Z E0723 02:41:20.566100 1907 kubelet.go:1] x",
            "01/04/2018 10:39:31E0401 05:09:31.107293 1907 kubelet.go:1] x",
            "2018-05-09T18:07:46.733671Z - kubelet I0509 18:07:46.733600 1907 kubelet.go:1] x",
        ] {
            let (at, header) = find(line.as_bytes()).expect(line);
            assert_eq!(&line[at + header.len..], "x", "{line}");
        }
        let (_, merged) = merged(b"06:21:12.127616  kubelet   status_manager.go:544] x").expect("merged");
        assert_eq!(merged.file, b"status_manager.go");
    }
}
