//! One log behind every collector that people paste from (node-logs §1.6, §1.7): it must say the same.

mod support;

use nodefold_replay::{Moment, Options, SECOND, Trace, judge, read_texts};
use std::io::Write;
use support::Recording;

fn options() -> Options {
    Options { year: None, now: Moment(1_796_086_800 * SECOND) }
}

fn trace(text: &[u8]) -> Trace {
    read_texts([("log", text)], &options())
}

/// What a trace says, without lines and files.
fn said(trace: &Trace) -> Vec<String> {
    let mut all: Vec<String> = trace
        .entries
        .iter()
        .map(|e| {
            let pod =
                e.pod.map(|p| format!("{} {:?}", trace.pod_name(p), trace.pod(p).uid)).unwrap_or_default();
            format!("{} {} {pod}", trace.clock(e), trace.describe(e))
        })
        .collect();
    all.sort();
    all
}

fn logs() -> Vec<(String, String)> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/node-logs");
    let fragment = |name: &str| {
        let text = std::fs::read_to_string(dir.join(name)).expect("a fragment");
        // Bare records only: what has a prefix already is another test's.
        let bare = text
            .lines()
            .filter(|l| l.starts_with(['I', 'W', 'E']) && l.contains("] "))
            .map(|l| format!("{l}\n"));
        (name.to_owned(), bare.collect())
    };
    vec![
        fragment("08-negative-grace-prestop-unstructured.log"),
        fragment("10-teardown-races-container-start.log"),
        (
            "06".to_owned(),
            Recording::open("06-kubelet-kill-restart-delete-during-downtime").text("kubelet.log").to_owned(),
        ),
    ]
}

/// The klog time of a line as parts: month, day, `hh:mm:ss`, fraction.
fn parts(line: &str) -> Option<(&str, &str, &str, &str)> {
    let ok = line.len() > 21
        && line.is_char_boundary(21)
        && line.as_bytes()[5] == b' '
        && line.as_bytes()[8] == b':';
    ok.then(|| (&line[1..3], &line[3..5], &line[6..14], &line[15..21]))
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn each_line(text: &str, wrap: impl Fn(usize, &str, (&str, &str, &str, &str)) -> String) -> String {
    let mut last = ("11", "30", "18:48:57", "000000");
    text.lines()
        .enumerate()
        .map(|(n, l)| {
            // Lines without a header get what the collector gives: its own time, the last one.
            last = parts(l).unwrap_or(last);
            wrap(n + 1, l, last)
        })
        .collect()
}

fn month(mm: &str) -> &'static str {
    MONTHS[mm.parse::<usize>().expect("a month") - 1]
}

fn json(text: &str) -> String {
    serde_json::to_string(text).expect("JSON")
}

fn micros(t: (&str, &str, &str, &str)) -> i64 {
    let stamp = format!("2026-{}-{}T{}.{}Z", t.0, t.1, t.2, t.3);
    let at = nodefold_replay::Stamp::rfc3339(stamp.as_bytes()).expect("a time").0.moment(0, 0);
    at.0 / 1000
}

type Wrap = fn(usize, &str, (&str, &str, &str, &str)) -> String;

const WRAPS: &[(&str, Wrap)] = &[
    ("journald short", |_, l, t| format!("{} {} {} node-1 kubelet[202]: {l}\n", month(t.0), t.1, t.2)),
    ("journald precise", |_, l, t| {
        format!("{} {} {}.{} a.b.c hyperkube[202]: {l}\n", month(t.0), t.1, t.2, t.3)
    }),
    ("localised", |_, l, t| {
        format!("{}月 {} {} node7 kubelet[202]: {l}\n", t.0.trim_start_matches('0'), t.1, t.2)
    }),
    ("syslog without pid", |_, l, t| {
        format!("{} {:>2} {} node1 kubelet: {l}\n", month(t.0), t.1.trim_start_matches('0'), t.2)
    }),
    ("rsyslog", |_, l, t| {
        format!("2026-{}-{}T{}.{}+00:00 h microk8s.daemon-kubelite[202]: {l}\n", t.0, t.1, t.2, t.3)
    }),
    ("container log", |_, l, t| format!("2026-{}-{}T{}.{}123Z stderr F {l}\n", t.0, t.1, t.2, t.3)),
    ("container log in parts", |_, l, t| {
        let at = format!("2026-{}-{}T{}.{}123Z stderr", t.0, t.1, t.2, t.3);
        let cut = (l.len() / 2..l.len()).find(|i| l.is_char_boundary(*i)).unwrap_or(l.len());
        format!("{at} P {}\n{at} F {}\n", &l[..cut], &l[cut..])
    }),
    ("docker json", |_, l, t| {
        let time = format!("2026-{}-{}T{}.{}Z", t.0, t.1, t.2, t.3);
        format!("{{\"log\":{},\"stream\":\"stderr\",\"time\":\"{time}\"}}\n", json(&format!("{l}\n")))
    }),
    ("journalctl -o json", |_, l, t| {
        format!(
            "{{\"__REALTIME_TIMESTAMP\":\"{}\",\"_BOOT_ID\":\"b\",\"_PID\":\"202\",\"SYSLOG_IDENTIFIER\":\"kubelet\",\"_HOSTNAME\":\"h\",\"MESSAGE\":{}}}\n",
            micros(t),
            json(l)
        )
    }),
    ("journalctl -o json, bytes", |_, l, t| {
        format!(
            "{{\"__REALTIME_TIMESTAMP\":\"{}\",\"_PID\":\"202\",\"SYSLOG_IDENTIFIER\":\"kubelet\",\"MESSAGE\":{:?}}}\n",
            micros(t),
            l.as_bytes()
        )
    }),
    ("journalctl -o export", |n, l, t| {
        format!(
            "__CURSOR=c{n}\n__REALTIME_TIMESTAMP={}\n_PID=202\nSYSLOG_IDENTIFIER=kubelet\n_HOSTNAME=h\nMESSAGE={l}\n\n",
            micros(t)
        )
    }),
    ("cloud console", |_, l, t| format!("DEFAULT 2026-{}-{}T{}.{}Z {l}\n", t.0, t.1, t.2, t.3)),
    ("cloud console with a dash", |_, l, t| format!("2026-{}-{}T{}.{}Z - kubelet {l}\n", t.0, t.1, t.2, t.3)),
    ("grep -n", |n, l, _| format!("{n}:{l}\n")),
    ("an editor's numbers", |n, l, _| format!("\t {n}: {l}\n")),
    ("several files of grep", |n, l, _| format!("/var/log/kubelet.log:{n}:{l}\n")),
    ("bullets", |_, l, t| format!("* {} {} {} host kubelet[2914]: {l}\n", month(t.0), t.1, t.2)),
    ("quoted mail", |_, l, _| format!("> {l}\n")),
    ("MESSAGE dump", |_, l, _| format!("    MESSAGE: {l}\n")),
    ("rfc5424", |_, l, t| format!("<30>1 2026-{}-{}T{}.{}Z host kubelet 202 - - {l}\n", t.0, t.1, t.2, t.3)),
    ("windows line ends", |_, l, _| format!("{l}\r\n")),
    ("whole words", |_, l, _| {
        let word = match l.as_bytes().first() {
            Some(b'I') => "INFO:",
            Some(b'W') => "WARNING:",
            Some(b'E') => "ERROR:",
            _ => "",
        };
        if word.is_empty() { format!("{l}\n") } else { format!("{word}{}\n", &l[1..]) }
    }),
    (
        "a lost first letter",
        |_, l, _| if parts(l).is_some() { format!("{}\n", &l[1..]) } else { format!("{l}\n") },
    ),
    ("collapsed padding", |_, l, _| {
        let mut out = l.to_owned();
        while let Some(at) = out.find("  ").filter(|at| *at < 40) {
            out.remove(at);
        }
        format!("{out}\n")
    }),
];

#[test]
fn every_wrapper_says_the_same() {
    for (name, text) in logs() {
        let plain = trace(text.as_bytes());
        let want = said(&plain);
        assert!(want.len() > 3, "{name}");
        for (wrap, make) in WRAPS {
            let wrapped = trace(each_line(&text, make).as_bytes());
            let got = said(&wrapped);
            let missing: Vec<&String> = want.iter().filter(|w| !got.contains(w)).take(5).collect();
            let extra: Vec<&String> = got.iter().filter(|w| !want.contains(w)).take(5).collect();
            assert!(got == want, "{name} behind {wrap}: missing {missing:#?}, extra {extra:#?}");
            assert_eq!(judge(&wrapped).kinds(), judge(&plain).kinds(), "{name} behind {wrap}");
        }
    }
}

#[test]
fn damage_of_every_kind_says_the_same() {
    for (name, text) in logs() {
        let plain = trace(text.as_bytes());
        let want = said(&plain);
        let lines: Vec<&str> = text.lines().collect();
        let twice: String = lines.iter().map(|l| format!("{l}\n{l}\n")).collect();
        let thrice = format!("{text}\n# again\n{text}");
        let interrupted: String =
            lines.iter().map(|l| format!("{l}\n\n-------\nroot@host:~# grep x\n")).collect();
        for (damage, damaged) in
            [("doubled lines", twice), ("three greps", thrice), ("prompts between", interrupted)]
        {
            // Lines without a header go with the record before them: what is put between cuts them off.
            let got = said(&trace(damaged.as_bytes()));
            let missing: Vec<&String> = want.iter().filter(|w| !got.contains(w)).take(3).collect();
            assert!(
                missing.is_empty() && got.len() == want.len(),
                "{name} with {damage}: missing {missing:#?}, {} of {}",
                got.len(),
                want.len()
            );
        }
        // Newest first, as consoles export. Records of several lines don't survive that, and aren't asked for.
        if name.starts_with("08") {
            let backwards: String = lines.iter().rev().map(|l| format!("{l}\n")).collect();
            let got = trace(backwards.as_bytes());
            assert_eq!(judge(&got).kinds(), judge(&plain).kinds(), "{name} backwards");
            assert_eq!(said(&got), want, "{name} backwards");
        }
    }
}

#[test]
fn hard_wrapped_lines_are_joined() {
    let (name, text) = logs().swap_remove(1);
    let want = said(&trace(text.as_bytes()));
    for width in [80, 100, 132] {
        let mut wrapped = String::new();
        for line in text.lines() {
            let chars: Vec<char> = line.chars().collect();
            for piece in chars.chunks(width) {
                wrapped.extend(piece);
                wrapped.push('\n');
            }
        }
        let got = said(&trace(wrapped.as_bytes()));
        assert_eq!(got, want, "{name} at {width}");
    }
}

#[test]
fn compressed_inputs_say_the_same() {
    let text = Recording::open("02-crashloop").text("kubelet.log").to_owned();
    let want = said(&trace(text.as_bytes()));
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(text.as_bytes()).expect("in memory");
    let gz = gz.finish().expect("in memory");
    assert_eq!(said(&trace(&gz)), want);
    let zst = ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    assert_eq!(said(&trace(&zst)), want);
    // A torn download keeps what it has, and says so.
    let torn = trace(&gz[..gz.len() / 2]);
    assert!(torn.entries.len() > 100 && torn.entries.len() < want.len());
    assert!(torn.notes.iter().any(|n| n.contains("ends early")), "{:?}", torn.notes);
}

#[test]
fn a_shipper_that_escapes_is_read() {
    let line = r#"I0313 10:00:00.000000    1795 kubelet.go:1] \"SyncLoop DELETE\" source=\"api\" pods=[\"ns/web\"]" unit="kubelet.service" pid="1795"machine_id=x"#;
    let got = trace(format!("msg=\"{line}\n").as_bytes());
    assert_eq!(got.entries.len(), 1, "{:?}", got.entries);
    assert_eq!(got.pod_name(got.entries[0].pod.expect("a pod")), "ns/web");
}

#[test]
fn two_records_on_one_line_are_two() {
    let a =
        "I0313 10:00:00.000000    1795 kubelet.go:1] \"SyncLoop DELETE\" source=\"api\" pods=[\"ns/web\"]";
    let b =
        "I0313 10:00:01.000000    1795 kubelet.go:1] \"SyncLoop REMOVE\" source=\"api\" pods=[\"ns/web\"]";
    let got = trace(format!("{a} {b}\n").as_bytes());
    assert_eq!(got.entries.len(), 2, "{:?}", got.entries);
}

#[test]
fn the_json_format_says_what_the_text_says() {
    let text = r#"I0618 19:42:16.241710    5656 kubelet.go:1] "SyncLoop (PLEG): event for pod" pod="uat/dbg" event={"ID":"a5f5f6fa-b968-4d32-395c-641f95a3f7a8","Type":"ContainerStarted","Data":"f29d293dcee6cb795af988d3c5b3743d831d514e97d2f9aeeaf539ca2fe02bd0"}"#;
    let json = r#"{"ts":1655581336241.71,"caller":"kubelet/kubelet.go:1","msg":"SyncLoop (PLEG): event for pod","v":2,"pod":{"name":"dbg","namespace":"uat"},"event":{"ID":"a5f5f6fa-b968-4d32-395c-641f95a3f7a8","Type":"ContainerStarted","Data":"f29d293dcee6cb795af988d3c5b3743d831d514e97d2f9aeeaf539ca2fe02bd0"}}"#;
    let now = Options { year: Some(2022), ..options() };
    let a = read_texts([("log", text.as_bytes())], &now);
    let talos = format!("10.0.0.3: {json}\n");
    for b in [json, &talos] {
        assert_eq!(said(&read_texts([("log", b.as_bytes())], &now)), said(&a), "{b}");
    }
}

/// What a trace says, without times: a collector's stamps tell years and zones that a bare paste doesn't.
fn told(trace: &Trace) -> Vec<String> {
    let pod = |e: &nodefold_replay::Entry| e.pod.map(|p| trace.pod_name(p)).unwrap_or_default();
    let mut all: Vec<String> =
        trace.entries.iter().map(|e| format!("{} {}", trace.describe(e), pod(e))).collect();
    all.sort();
    all
}

fn fragments() -> Vec<(String, String)> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/node-logs");
    let mut found: Vec<(String, String)> = std::fs::read_dir(dir)
        .expect("the fragments")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "log"))
        .map(|p| {
            let name = p.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(p).expect("a fragment"))
        })
        .collect();
    found.sort();
    assert_eq!(found.len(), 12);
    found
}

type Around = fn(usize, &str) -> String;

/// What goes around lines that have a prefix of their own already.
const AROUND: &[(&str, Around)] = &[
    ("container log", |_, l| format!("2026-11-30T18:48:57.123456789Z stderr F {l}\n")),
    ("docker json", |_, l| {
        format!(
            "{{\"log\":{},\"stream\":\"stderr\",\"time\":\"2026-11-30T18:48:57Z\"}}\n",
            json(&format!("{l}\n"))
        )
    }),
    ("grep -n", |n, l| format!("{n}:{l}\n")),
    ("several files of grep", |n, l| format!("/var/log/messages:{n}:{l}\n")),
    ("quoted mail", |_, l| format!("> {l}\n")),
    ("twice quoted mail", |_, l| format!("> > {l}\n")),
    ("bullets", |_, l| format!("* {l}\n")),
    ("code in a text", |_, l| format!("`{l}`\n")),
    ("an indent", |_, l| format!("    {l}\n")),
    ("windows line ends", |_, l| format!("{l}\r\n")),
    ("hard spaces", |_, l| format!("{}\n", l.replace(' ', "\u{a0}"))),
    ("a web page's source", |_, l| {
        let named = l.replace('&', "&amp;").replace('"', "&#34;").replace('>', "&gt;").replace('<', "&lt;");
        format!("{named}<br>\n")
    }),
    ("strings of JSON", |_, l| format!("{},\n", json(l))),
    ("a table's cells", |_, l| format!("\"{}\"\n", l.replace('"', "\"\""))),
    ("a table's last cells", |_, l| format!("2026-11-30T18:48:57.000Z,\"{}\"\n", l.replace('"', "\"\""))),
    ("a stamp", |_, l| format!("2026-11-30T18:48:57.123456789Z {l}\n")),
    ("rows of a table", |_, l| format!("| {l} |\n")),
    ("a difference", |_, l| format!("+{l}\n")),
    ("a shipper's objects", |_, l| format!("{{\"host\":\"n1\",\"message\":{}}}\n", json(l))),
    ("colours", |_, l| format!("\u{1b}[0;31m{l}\u{1b}[0m\n")),
    ("colours that grep puts inside", |_, l| {
        format!("{}\n", l.replace("pod", "\u{1b}[01;31m\u{1b}[Kpod\u{1b}[m\u{1b}[K"))
    }),
    ("colours as a pager writes them", |_, l| format!("ESC[31m{l}ESC[0m\n")),
    ("stern", |_, l| format!("kubelet-abc kubelet {l}\n")),
    ("stern with stamps", |_, l| format!("kubelet-abc kubelet 2026-11-30T18:48:57.123456789Z {l}\n")),
    ("compose", |_, l| format!("kubelet_1  | {l}\n")),
    ("kubectl logs --prefix", |_, l| format!("[pod/node-x/kubelet] {l}\n")),
    ("cat -n", |n, l| format!("{n:6}\t{l}\n")),
    ("less -N", |n, l| format!("{n:7} {l}\n")),
    ("a code review's gutter", |n, l| format!("{n} | {l}\n")),
    ("a numbered list", |n, l| format!("{n}. {l}\n")),
    ("a numbered table", |n, l| format!("| {n} | {l} |\n")),
    ("a chat", |_, l| format!("[6:48 PM] {l}\n")),
    ("a tight quote", |_, l| format!(">{l}\n")),
    ("a page's paragraphs", |_, l| {
        let named = l.replace('&', "&#38;").replace('"', "&#x22;").replace('>', "&#62;").replace('<', "&lt;");
        format!("<p>{named}</p>\n")
    }),
    ("backslashes at the ends", |_, l| format!("{l}\\\n")),
    ("markdown's backslashes", |_, l| {
        let mut out = String::new();
        for sign in l.chars() {
            if matches!(sign, '_' | '*' | '[' | ']' | '<' | '>' | '#') {
                out.push('\\');
            }
            out.push(sign);
        }
        format!("{out}\n")
    }),
    ("a list of strings", |_, l| format!("  - {}\n", json(l))),
    ("journald short-full outside", |_, l| format!("Mon 2026-11-30 18:48:57 UTC host kubelet[202]: {l}\n")),
    ("journald short outside", |_, l| format!("Nov 30 18:48:57 host kubelet[202]: {l}\n")),
    ("syslog outside", |_, l| format!("<30>Nov 30 18:48:57 host kubelet[202]: {l}\n")),
    ("journald short-iso outside", |_, l| format!("2026-11-30T18:48:57+0000 host k3s[202]: {l}\n")),
    ("journald short-unix outside", |_, l| format!("1796064537.123456 host kubelet[202]: {l}\n")),
    ("journald short-monotonic outside", |n, l| format!("[12345.{n:06}] host kubelet[202]: {l}\n")),
    ("journalctl -o json-pretty", |n, l| {
        format!(
            "{{\n\t\"__REALTIME_TIMESTAMP\" : \"{}\",\n\t\"_PID\" : \"202\",\n\t\"SYSLOG_IDENTIFIER\" : \"kubelet\",\n\t\"MESSAGE\" : {}\n}}\n",
            1_796_064_537_000_000 + n,
            json(l)
        )
    }),
    ("a search engine's hits", |_, l| {
        format!(
            "{{\"_index\":\"x\",\"_source\":{{\"message\":{},\"@timestamp\":\"2026-11-30T18:48:57Z\"}}}}\n",
            json(l)
        )
    }),
    ("loki", |_, l| format!("{{\"line\":{},\"timestamp\":\"2026-11-30T18:48:57Z\"}}\n", json(l))),
    ("fluentd", |_, l| format!("2026-11-30 18:48:57.123456789 +0000 kubelet: {{\"message\":{}}}\n", json(l))),
    ("a cloud's rows", |_, l| {
        format!("\"11/30/2026, 6:48:57.000 PM\",\"kubelet\",\"{}\"\n", l.replace('"', "\"\""))
    }),
    ("a build's console", |_, l| format!("2026-11-30 18:48:57.123456 | controller | {l}\n")),
];

#[test]
fn fragments_keep_their_verdict_behind_anything() {
    for (name, text) in fragments() {
        let plain = trace(text.as_bytes());
        let verdict = judge(&plain).kinds();
        for (around, wrap) in AROUND {
            let wrapped: String = text.lines().enumerate().map(|(n, l)| wrap(n + 1, l)).collect();
            let got = trace(wrapped.as_bytes());
            assert_eq!(judge(&got).kinds(), verdict, "{name} behind {around}");
            // A unit's status header stands before the first record, by which a prefix of nobody knows whom is known.
            let shown = |all: Vec<String>| -> Vec<String> {
                all.into_iter().filter(|l| !l.starts_with("kubelet service started: Active")).collect()
            };
            let (got, want) = (shown(told(&got)), shown(told(&plain)));
            let missing: Vec<&String> = want.iter().filter(|w| !got.contains(w)).take(3).collect();
            let extra: Vec<&String> = got.iter().filter(|w| !want.contains(w)).take(3).collect();
            assert!(got == want, "{name} behind {around}: missing {missing:#?}, extra {extra:#?}");
        }
    }
}

#[test]
fn fragments_keep_their_verdict_when_spoilt() {
    for (name, text) in fragments() {
        let plain = trace(text.as_bytes());
        let verdict = judge(&plain).kinds();
        let counts = (plain.pod_count(), plain.volume_count());
        let lines: Vec<&str> = text.lines().collect();
        let fenced = format!("Here is what we saw:\n\n```\n{text}\n```\n\nThanks, a user\n");
        let thrice = format!("{text}\n# grep again\n{text}\n# and again\n{text}");
        let mut spoilt = vec![("fenced", fenced), ("three greps", thrice)];
        if lines.iter().all(|l| !l.starts_with(['\t', ' ']) && l.len() > 60) {
            let backwards: String = lines.iter().rev().map(|l| format!("{l}\n")).collect();
            let interleaved: String = lines
                .iter()
                .map(|l| format!("{l}\n\nJan 02 03:04:05 host sshd[77]: Accepted publickey\n"))
                .collect();
            spoilt.push(("backwards", backwards));
            spoilt.push(("another daemon between", interleaved));
        }
        for (damage, damaged) in spoilt {
            let got = trace(damaged.as_bytes());
            assert_eq!(judge(&got).kinds(), verdict, "{name}, {damage}");
            assert_eq!((got.pod_count(), got.volume_count()), counts, "{name}, {damage}");
        }
        // The same file twice, as two files; and its lines dealt to two files.
        let twice = read_texts([("a", text.as_bytes()), ("b", text.as_bytes())], &options());
        assert_eq!(judge(&twice).kinds(), verdict, "{name} twice");
        assert_eq!((twice.pod_count(), twice.volume_count()), counts, "{name} twice");
        if lines.iter().all(|l| l.contains("] ") && l.len() > 60) {
            let of = |odd: usize| -> String {
                lines
                    .iter()
                    .enumerate()
                    .filter(|(n, _)| n % 2 == odd)
                    .map(|(_, l)| format!("{l}\n"))
                    .collect()
            };
            let dealt = read_texts([("a", of(0).as_bytes()), ("b", of(1).as_bytes())], &options());
            assert_eq!(judge(&dealt).kinds(), verdict, "{name} dealt to two files");
            assert_eq!((dealt.pod_count(), dealt.volume_count()), counts, "{name} dealt to two files");
        }
    }
}

type Damage = (&'static str, fn(&str) -> String);

fn by_line(text: &str, make: impl Fn(usize, &str) -> String) -> String {
    text.lines().enumerate().map(|(n, l)| make(n, l)).collect()
}

fn cut(text: &str, width: usize, sign: &str) -> String {
    by_line(text, |_, l| match l.chars().count() > width {
        true => format!("{}{sign}\n", l.chars().take(width).collect::<String>()),
        false => format!("{l}\n"),
    })
}

fn wrapped(text: &str, width: usize) -> String {
    by_line(text, |_, l| {
        let chars: Vec<char> = l.chars().collect();
        let pieces: Vec<String> = chars.chunks(width).map(|piece| piece.iter().collect()).collect();
        format!("{}\n", pieces.join("\n"))
    })
}

/// Damage that takes something away: what is found then must have been found before.
const LOSSES: &[Damage] = &[
    ("a pager's cuts", |t| cut(t, 199, ">")),
    ("a terminal's width", |t| cut(t, 180, "")),
    ("a screen's cuts", |t| cut(t, 199, "$")),
    ("dots after every third line", |t| {
        by_line(t, |n, l| if n % 3 == 2 { format!("{l}\n...\n") } else { format!("{l}\n") })
    }),
    ("wraps at 80", |t| wrapped(t, 80)),
    ("wraps at 132", |t| wrapped(t, 132)),
    ("without its first line", |t| t.split_once('\n').map_or("", |(_, rest)| rest).to_owned()),
    ("without its last line", |t| t.trim_end().rsplit_once('\n').map_or("", |(rest, _)| rest).to_owned()),
    ("every second line", |t| by_line(t, |n, l| if n % 2 == 0 { format!("{l}\n") } else { String::new() })),
];

/// Damage that takes nothing away.
const SPELLINGS: &[Damage] = &[
    ("doubled lines", |t| by_line(t, |_, l| format!("{l}\n{l}\n"))),
    ("blank lines", |t| by_line(t, |_, l| format!("{l}\n\n\n"))),
    ("two records a line", |t| {
        let lines: Vec<&str> = t.lines().collect();
        lines.chunks(2).map(|pair| format!("{}\n", pair.join(" "))).collect()
    }),
    ("other programs between", |t| {
        const OTHERS: [&str; 4] = [
            "Jan 02 03:04:05 host sshd[77]: Accepted publickey for root",
            "2021-07-28 16:25:19.247 [INFO][394011] ipam.go 1: Releasing address",
            "I0102 03:04:05.000000       1 controller.go:1] \"another program\" key=\"v\"",
            "{\"level\":\"info\",\"ts\":1,\"msg\":\"hi\"}",
        ];
        by_line(t, |n, l| format!("{l}\n{}\n", OTHERS[n % OTHERS.len()]))
    }),
];

/// What ended their trouble stands on one line: without it the trouble is still there.
const ENDED: [&str; 4] =
    ["described-wait-that-ended", "mirror-needs-its-own-api", "rebooted-host", "recovered-panic-v11"];

#[test]
fn damage_invents_nothing() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports");
    let mut texts = fragments();
    let reports = texts.len();
    for file in std::fs::read_dir(dir).expect("the reports") {
        let path = file.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        texts.push((name, std::fs::read_to_string(path).expect("a report")));
    }
    let mut wrong: Vec<String> = Vec::new();
    for (i, (name, text)) in texts.iter().enumerate() {
        let verdict = judge(&trace(text.as_bytes())).kinds();
        for (damage, make) in LOSSES.iter().filter(|_| !ENDED.contains(&name.as_str())) {
            let got = judge(&trace(make(text).as_bytes())).kinds();
            if !got.iter().all(|kind| verdict.contains(kind)) {
                wrong.push(format!("{name}, {damage}: {got:?}, and whole {verdict:?}"));
            }
        }
        // Records of several lines don't survive what is put between their lines: the fragments have them only where it doesn't matter.
        for (spelling, make) in SPELLINGS.iter().filter(|_| i < reports) {
            let got = judge(&trace(make(text).as_bytes())).kinds();
            if got != verdict {
                wrong.push(format!("{name}, {spelling}: {got:?}, and whole {verdict:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
