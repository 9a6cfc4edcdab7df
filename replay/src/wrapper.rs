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

/// The line behind further prefixes of daemons: a node's journal in another one's, a paste of one in a syslog. No more of them
/// than anybody has ever nested.
pub fn innermost<'a>(outer: &Unwrapped<'a>) -> Option<Unwrapped<'a>> {
    const DEEPEST: usize = 4;
    let mut inner: Option<Unwrapped<'a>> = None;
    for _ in 0..DEEPEST {
        let around = inner.as_ref().unwrap_or(outer);
        let named = |found: &Unwrapped<'_>| found.pid != 0;
        let found = if around.ident.is_empty() {
            daemon(around.rest)
        } else {
            // A process writes stamps and colons of its own: only one with a name and a number is another's.
            daemon(around.rest).or_else(|| weekday(around.rest)).filter(named)
        };
        let Some(found) = found.or_else(|| dated(around.rest).filter(named)) else { break };
        inner = Some(Unwrapped {
            received: found.received.or(around.received),
            host: found.host.or(around.host),
            partial: around.partial,
            ..found
        });
    }
    inner
}

/// The daemon's prefix that ends where a record begins, and where it begins itself, behind something unknown.
pub fn ending_at(line: &[u8], at: usize) -> Option<(usize, Unwrapped<'_>)> {
    (0..at)
        .filter(|from| *from == 0 || !line[from - 1].is_ascii_alphanumeric())
        .filter_map(|from| Some((from, daemon(&line[from..]).or_else(|| weekday(&line[from..]))?)))
        .find(|(_, found)| found.rest.len() == line.len() - at)
}

/// How long a prefix of the same shape is: the same signs, with other numbers. Collectors that nobody has told of put the same before
/// every line, also before those that are no records.
pub fn same_shape(prefix: &[u8], line: &[u8]) -> Option<usize> {
    let run = |text: &[u8], of: fn(&u8) -> bool| text.iter().take_while(|b| of(b)).count();
    let blank: fn(&u8) -> bool = |b| matches!(b, b' ' | b'\t');
    let (mut p, mut l) = (0, 0);
    while p < prefix.len() {
        let (sign, other) = (prefix[p], *line.get(l)?);
        let of = match sign {
            b'0'..=b'9' => u8::is_ascii_digit,
            b' ' | b'\t' => blank,
            _ if sign == other => {
                (p, l) = (p + 1, l + 1);
                continue;
            }
            _ => return None,
        };
        let (of_prefix, of_line) = (run(&prefix[p..], of), run(&line[l..], of));
        // The last blank belongs to the prefix, those behind it to the line.
        let of_line = if p + of_prefix == prefix.len() { of_line.min(of_prefix) } else { of_line };
        if of_line == 0 {
            return None;
        }
        (p, l) = (p + of_prefix, l + of_line);
    }
    Some(l)
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
pub fn begins_record(text: &[u8]) -> bool {
    crate::klog::header(text).is_some()
        || syslog(text).is_some()
        || text.starts_with(b"time=\"")
        || text.starts_with(b"{\"")
        || ["Active: ", "Loaded: ", "●"].iter().any(|w| text.starts_with(w.as_bytes()))
        || dies(text)
        || crate::klog::place_only(text).is_some()
        || is_gap(text)
        || bare(text)
}

/// What the Go runtime says of a process that dies.
fn dies(text: &[u8]) -> bool {
    ["panic: ", "fatal error: ", "goroutine "].iter().any(|w| text.starts_with(w.as_bytes()))
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
        // A dying process' words have a colon, too.
        if dies(rest) {
            return Some(Unwrapped { received: Some(stamp), ..Unwrapped::bare(rest) });
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
    fn an_unknown_prefix_is_known_by_its_shape() {
        for (prefix, line, rest) in [
            ("kubelet_1  | ", "kubelet_1  | panic: x", "panic: x"),
            ("    99\t", "   100\tpanic: x", "panic: x"),
            ("[10:48 PM] ", "[9:03 PM]   at x", "  at x"),
        ] {
            let len = same_shape(prefix.as_bytes(), line.as_bytes()).expect(line);
            assert_eq!(&line[len..], rest, "{prefix:?}");
        }
        assert_eq!(same_shape(b"a 1 ", b"b 1 x"), None);
        assert_eq!(same_shape(b"a 1 ", b"a x"), None);
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
