//! What collectors, terminals and people put before a line (node-logs §1.6). Takes prefixes off; reads nothing behind.

use crate::scan::{self, number, word};
use crate::stamp::{Stamp, syslog};

/// A line without its prefix.
#[derive(Clone, Debug)]
pub struct Unwrapped<'a> {
    /// When the collector got it.
    pub received: Option<Stamp>,
    /// The host.
    pub host: Option<&'a [u8]>,
    /// The process' name.
    pub ident: &'a [u8],
    /// Its number, 0 if not said.
    pub pid: u64,
    /// A container log's `P`: the line goes on in the next record.
    pub partial: bool,
    /// It has a prefix that begins every record of its kind: without one, a line continues the one before.
    pub prefixed: bool,
    /// What was written.
    pub rest: &'a [u8],
}

impl<'a> Unwrapped<'a> {
    /// A line as it is.
    pub fn bare(line: &'a [u8]) -> Unwrapped<'a> {
        Unwrapped {
            received: None,
            host: None,
            ident: b"",
            pid: 0,
            partial: false,
            prefixed: false,
            rest: line,
        }
    }
}

/// Takes the prefix off.
pub fn strip(line: &[u8]) -> Unwrapped<'_> {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    if let Some(found) = known(line) {
        return found;
    }
    let plain = decorations(line);
    if plain.len() < line.len()
        && let Some(found) = known(plain)
    {
        return found;
    }
    Unwrapped { prefixed: false, ..Unwrapped::bare(if begins_record(plain) { plain } else { line }) }
}

/// A daemon's line: a stamp, maybe a host, and a process.
pub fn daemon(line: &[u8]) -> Option<Unwrapped<'_>> {
    let (stamp, len) = syslog(line)?;
    process(&line[len..], stamp)
}

/// Bullets, quotes, line numbers, file names of grep, `MESSAGE:`.
fn decorations(line: &[u8]) -> &[u8] {
    let mut at = scan::trim_start(line);
    for _ in 0..4 {
        let before = at;
        for sign in ["* ", "> ", "- ", "• ", "+", "| ", "**", "MESSAGE: ", "MESSAGE="] {
            at = scan::trim_start(at.strip_prefix(sign.as_bytes()).unwrap_or(at));
        }
        if let Some((_, len)) = number(at)
            && len < 10
        {
            // `4582: `, `4582-`, or a bare number; only if a record follows.
            let rest =
                at[len..].strip_prefix(b":").or_else(|| at[len..].strip_prefix(b"-")).unwrap_or(&at[len..]);
            let rest = scan::trim_start(rest);
            if rest.len() < at.len() - len && begins_record(rest) {
                at = rest;
            }
        }
        if let Some((file, rest)) = scan::until(&at[..at.len().min(256)], b':')
            && !file.is_empty()
            && !file.contains(&b' ')
            && !file.iter().all(u8::is_ascii_digit)
        {
            let rest = &at[at.len().min(256) - rest.len()..];
            let rest = if rest.first().is_some_and(u8::is_ascii_digit) {
                number(rest).and_then(|(_, len)| rest[len..].strip_prefix(b":")).unwrap_or(rest)
            } else {
                rest
            };
            let rest = scan::trim_start(rest);
            if begins_record(rest) {
                at = rest;
            }
        }
        if at.len() == before.len() {
            break;
        }
    }
    at
}

/// Whether this is a record, whatever people put before it.
pub fn is_record(text: &[u8]) -> bool {
    begins_record(decorations(text))
}

/// Whether a known record or prefix begins here.
fn begins_record(text: &[u8]) -> bool {
    crate::klog::header(text).is_some()
        || syslog(text).is_some()
        || text.starts_with(b"time=\"")
        || text.starts_with(b"{\"")
        || ["Active: ", "Loaded: ", "●", "panic: ", "fatal error: ", "goroutine "]
            .iter()
            .any(|w| text.starts_with(w.as_bytes()))
        || crate::klog::place_only(text).is_some()
        || is_gap(text)
        || bare(text)
}

/// Dots, by which people say that they have left something out.
pub fn is_gap(text: &[u8]) -> bool {
    let dots = ["...", "[...]", ".....", "....", "(...)", "<snip>", "[snip]", "<...>", "…", "[…]"];
    dots.iter().any(|d| d.as_bytes() == scan::trim(text))
}

/// Texts of the kubelet that say by themselves what they are, though their header is lost.
pub fn bare(text: &[u8]) -> bool {
    [
        "Operation for \"",
        "Orphaned pod \"",
        "orphaned pod \"",
        "operationExecutor.",
        "UnmountVolume.",
        "MountVolume.",
    ]
    .iter()
    .any(|words| text.starts_with(words.as_bytes()))
}

/// The line without what colours it: terminal sequences that begin with ESC and `[`.
pub fn uncoloured(line: &[u8]) -> Option<Vec<u8>> {
    memchr::memchr(0x1b, line)?;
    let mut out = Vec::with_capacity(line.len());
    let mut at = 0;
    while let Some(escape) = memchr::memchr(0x1b, &line[at..]) {
        out.extend_from_slice(&line[at..at + escape]);
        at += escape + 1;
        if line.get(at) == Some(&b'[') {
            let parameters = line[at + 1..].iter().take_while(|b| !(0x40..=0x7e).contains(*b)).count();
            at = (at + 2 + parameters).min(line.len());
        }
    }
    out.extend_from_slice(&line[at..]);
    Some(out)
}

/// The text with the quotes that word processors make of straight ones made straight again.
pub fn straightened(text: &[u8]) -> Option<Vec<u8>> {
    let curly = |at: &[u8]| ["\u{201c}", "\u{201d}", "\u{201e}"].iter().any(|q| at.starts_with(q.as_bytes()));
    let first = memchr::memchr_iter(0xe2, text).find(|at| curly(&text[*at..]))?;
    let mut out = text[..first].to_vec();
    let mut at = first;
    while at < text.len() {
        if curly(&text[at..]) {
            out.push(b'"');
            at += 3;
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    Some(out)
}

/// Behind a table's first cells (`2026-11-30T18:48:57Z,"`), the cell with the record.
pub fn cell(line: &[u8]) -> &[u8] {
    let window = &line[..line.len().min(64)];
    match memchr::memmem::find(window, b",\"") {
        Some(at) if is_record(line[at + 2..].strip_suffix(b"\"").unwrap_or(&line[at + 2..])) => {
            &line[at + 1..]
        }
        Some(_) | None => line,
    }
}

/// The text without what a web page made of it: hard spaces, and characters written by name.
pub fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    const WRITTEN: [(&str, u8); 9] = [
        ("\u{a0}", b' '),
        ("&nbsp;", b' '),
        ("&quot;", b'"'),
        ("&#34;", b'"'),
        ("&#39;", b'\''),
        ("&#x27;", b'\''),
        ("&lt;", b'<'),
        ("&gt;", b'>'),
        ("&amp;", b'&'),
    ];
    let meant = |at: &[u8]| WRITTEN.iter().find(|(written, _)| at.starts_with(written.as_bytes()));
    let first = memchr::memchr2_iter(b'&', 0xc2, text).find(|at| meant(&text[*at..]).is_some())?;
    let mut out = text[..first].to_vec();
    let mut at = first;
    while at < text.len() {
        let (sign, len) = meant(&text[at..]).map_or((text[at], 1), |(written, sign)| (*sign, written.len()));
        out.push(sign);
        at += len;
    }
    Some(out)
}

/// A record that is a string of something else: a table's cell with doubled quotes, or a string of JSON.
pub fn unquoted(line: &[u8]) -> Option<Vec<u8>> {
    let text = line.trim_ascii_end();
    let text = text.strip_suffix(b",").unwrap_or(text);
    if let Ok(inner) = serde_json::from_slice::<String>(text) {
        return is_record(inner.as_bytes()).then(|| inner.into_bytes());
    }
    let text = text.strip_prefix(b"\"").filter(|text| is_record(text))?;
    let text = text.strip_suffix(b"\"").unwrap_or(text);
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        at += usize::from(text[at..].starts_with(b"\"\""));
        out.push(text[at]);
        at += 1;
    }
    Some(out)
}

fn known(line: &[u8]) -> Option<Unwrapped<'_>> {
    match line.first()? {
        b'I' | b'W' | b'E' | b'F' if crate::klog::header(line).is_some() => {
            return Some(Unwrapped { prefixed: true, ..Unwrapped::bare(line) });
        }
        b'0'..=b'9' => {
            if crate::klog::header(line).is_some() {
                return Some(Unwrapped { prefixed: true, ..Unwrapped::bare(line) });
            }
            if let Some(found) = dated(line) {
                return Some(found);
            }
        }
        b'<' => return rfc5424(line),
        b'M' | b'T' | b'W' | b'F' | b'S' => {
            if let Some(found) = weekday(line) {
                return Some(found);
            }
        }
        _ => {}
    }
    if let Some((stamp, len)) = syslog(line) {
        let rest = line.get(len + 1..).unwrap_or_default();
        if line.get(len) == Some(&b' ') && crate::klog::place_only(rest).is_some() {
            return Some(Unwrapped { received: Some(stamp), prefixed: true, ..Unwrapped::bare(rest) });
        }
        return process(&line[len..], stamp);
    }
    // The first line of a paste may lack date and host: `kubelet[8529]: `, `kubelet.service[2043933]: `.
    let (ident, pid, rest) = ident(line)?;
    (pid != 0 && !rest.is_empty()).then_some(Unwrapped {
        received: None,
        host: None,
        ident,
        pid,
        partial: false,
        prefixed: true,
        rest,
    })
}

/// `journalctl -o short-full`: `Mon 2026-11-30 18:48:57 UTC host kubelet[1]: `.
fn weekday(line: &[u8]) -> Option<Unwrapped<'_>> {
    let days = ["Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "];
    let rest = days.iter().find_map(|day| line.strip_prefix(day.as_bytes()))?;
    let (stamp, len) = Stamp::rfc3339(rest)?;
    let (_, rest) = word(rest.get(len..)?.strip_prefix(b" ")?);
    let (host, rest) = word(rest);
    let (ident, pid, rest) = ident(rest)?;
    Some(Unwrapped {
        received: Some(stamp),
        host: Some(host),
        ident,
        pid,
        partial: false,
        prefixed: true,
        rest,
    })
}

/// An RFC 3339 stamp first: a container's log, or rsyslog with high precision.
fn dated(line: &[u8]) -> Option<Unwrapped<'_>> {
    let (stamp, len) = Stamp::rfc3339(line)?;
    if line.get(10) != Some(&b'T') {
        return None;
    }
    let rest = line.get(len..)?.strip_prefix(b" ")?;
    for stream in ["stdout ", "stderr "] {
        if let Some(rest) = rest.strip_prefix(stream.as_bytes()) {
            let (tag, _) = word(rest);
            let tag_len = tag.len() + usize::from(rest.len() > tag.len());
            let full = tag.starts_with(b"F");
            if !full && !tag.starts_with(b"P") {
                return None;
            }
            return Some(Unwrapped {
                received: Some(stamp),
                host: None,
                ident: b"",
                pid: 0,
                partial: !full,
                prefixed: true,
                rest: &rest[tag_len..],
            });
        }
    }
    let plain = scan::trim_start(rest);
    if begins_record(plain) {
        return Some(Unwrapped { received: Some(stamp), prefixed: true, ..Unwrapped::bare(plain) });
    }
    process(&line[len..], stamp)
}

/// ` host ident[pid]: text` behind a stamp; the host may be missing.
fn process(rest: &[u8], stamp: Stamp) -> Option<Unwrapped<'_>> {
    let rest = rest.strip_prefix(b" ")?;
    let made = |host, (ident, pid, rest)| Unwrapped {
        received: Some(stamp),
        host,
        ident,
        pid,
        partial: false,
        prefixed: true,
        rest,
    };
    let (host, after_host) = word(rest);
    if let Some(found) = ident(rest)
        && (found.1 != 0 || host.ends_with(b":"))
    {
        return Some(made(None, found));
    }
    ident(after_host).map(|found| made(Some(host), found))
}

/// `ident[pid]: ` or `ident: `.
fn ident(text: &[u8]) -> Option<(&[u8], u64, &[u8])> {
    const LONGEST: usize = 80;
    let window = &text[..text.len().min(LONGEST)];
    let colon = window.iter().position(|b| matches!(b, b':' | b' '))?;
    if window[colon] != b':' {
        return None;
    }
    let token = &window[..colon];
    let rest = &text[colon + 1..];
    let rest = rest.strip_prefix(b" ").unwrap_or(rest);
    match token.iter().position(|b| *b == b'[') {
        Some(open) => {
            let digits = token[open + 1..].strip_suffix(b"]")?;
            let (pid, len) = number(digits)?;
            (len == digits.len() && open > 0).then_some((&token[..open], pid, rest))
        }
        None => {
            let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/');
            let named = token.iter().all(plain) && !token.iter().all(u8::is_ascii_digit);
            named.then_some((token, 0, rest))
        }
    }
}

/// `<34>1 2024-… host app pid msgid sd text`.
fn rfc5424(line: &[u8]) -> Option<Unwrapped<'_>> {
    let (_, rest) = scan::until(&line[1..], b'>')?;
    let Some(rest) = rest.strip_prefix(b"1 ") else {
        return known(rest);
    };
    let (time, rest) = word(rest);
    let (host, rest) = word(rest);
    let (app, rest) = word(rest);
    let (pid, rest) = word(rest);
    let (_, rest) = word(rest);
    let rest = match rest.first()? {
        b'[' => &rest[scan::group_len(rest)?..],
        _ => word(rest).1,
    };
    Some(Unwrapped {
        received: Stamp::rfc3339(time).map(|(s, _)| s),
        host: Some(host),
        ident: app,
        pid: number(pid).map_or(0, |(n, _)| n),
        partial: false,
        prefixed: true,
        rest: scan::trim_start(rest),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_every_collector() {
        let klog = "I0316 04:31:21.080604     202 kubelet.go:2474] x";
        for (prefix, ident, pid) in [
            ("", "", 0),
            ("Mar 16 04:31:21 test-worker kubelet[202]: ", "kubelet", 202),
            ("Jan 06 10:10:24.555468 a.b.c hyperkube[1585]: ", "hyperkube", 1585),
            ("4月 11 22:52:11 node7 kubelet[6968]: ", "kubelet", 6968),
            ("Jun  8 09:34:01 node1 kubelet: ", "kubelet", 0),
            (
                "2024-02-13T21:46:09.994328+09:00 h microk8s.daemon-kubelite[15]: ",
                "microk8s.daemon-kubelite",
                15,
            ),
            ("kubelet.service[2043933]: ", "kubelet.service", 2_043_933),
            ("* Sep 16 06:24:12 host kubelet[2914]: ", "kubelet", 2914),
            ("\t 4582: ", "", 0),
            ("46948 ", "", 0),
            ("> ", "", 0),
            ("MESSAGE: ", "", 0),
            ("kubelet.log:12:", "", 0),
            ("2024-12-20T04:51:19.752570988Z stderr F ", "", 0),
            ("<34>1 2024-12-20T04:51:19Z h kubelet 7 - - ", "kubelet", 7),
            ("> > ", "", 0),
            ("Mon 2026-03-16 04:31:21 UTC host kubelet[202]: ", "kubelet", 202),
        ] {
            let line = format!("{prefix}{klog}");
            let found = strip(line.as_bytes());
            assert_eq!(String::from_utf8_lossy(found.rest), klog, "{prefix:?}");
            assert_eq!((found.ident, found.pid), (ident.as_bytes(), pid), "{prefix:?}");
        }
    }

    #[test]
    fn colours_and_curly_quotes_go() {
        let line = b"\x1b[1;31mE0713 x\x1b[0m y";
        assert_eq!(uncoloured(line).as_deref(), Some(&b"E0713 x y"[..]));
        assert_eq!(uncoloured(b"plain"), None);
        assert_eq!(uncoloured(b"torn \x1b[1;3").as_deref(), Some(&b"torn "[..]));
        let text = "\u{201c}a \\\u{201c}b\\\u{201d} \u{2026}\u{201d}";
        assert_eq!(straightened(text.as_bytes()), Some("\"a \\\"b\\\" \u{2026}\"".as_bytes().to_vec()));
        assert_eq!(straightened("\u{2026}".as_bytes()), None);
        let page = "a\u{a0}\u{a0}&quot;b&#34; &amp;quot; &x; \u{b5}";
        assert_eq!(unescaped(page.as_bytes()).as_deref(), Some("a  \"b\" &quot; &x; \u{b5}".as_bytes()));
        assert_eq!(unescaped("&x; \u{b5}".as_bytes()), None);
        let record = r#"I0316 04:31:21.080604     202 kubelet.go:2474] "a" err="\"b\"""#;
        for quoted in
            [serde_json::Value::from(record).to_string(), format!("\"{}\",", record.replace('"', "\"\""))]
        {
            assert_eq!(unquoted(quoted.as_bytes()).as_deref(), Some(record.as_bytes()), "{quoted}");
        }
        assert_eq!(unquoted(b"\"a\""), None);
    }

    #[test]
    fn what_is_no_prefix_stays() {
        for line in
            [" with error: exit status 1", "goroutine 375 [running]:", "\tk8s.io/x.go:204 +0x285", "..."]
        {
            assert_eq!(strip(line.as_bytes()).rest, line.as_bytes());
        }
    }
}
