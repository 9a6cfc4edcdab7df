//! A log of a gigabyte, made from a recording over and over with its days going on and its pods new each time: how fast it is
//! read and judged, in how much memory, and how fast `grep` and `rg` only look through it, in the same run.
//!
//! `cargo bench -p nodefold-replay --bench gigabyte -- 1000` (megabytes; 1000 unless given)
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench that can't go on stops, and tells people what it saw"
)]
#![allow(clippy::disallowed_methods, reason = "a bench measures time")]

use nodefold_replay::{Moment, Options, SECOND, WINDOW, judge_files, read_files};
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// As the program has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What a person with a broken node greps for.
const WORDS: &str = "SyncLoop|Killing container|MountVolume|UnmountVolume";

fn main() {
    let megabytes = std::env::args().skip(1).find_map(|a| a.parse::<u64>().ok()).unwrap_or(1000);
    for (name, recording) in [("quiet", "01-volumes-basic"), ("busy", "17-churn-4-minutes")] {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.log"));
        let size = generate(recording, megabytes << 20, &path);
        measure(name, &path, size);
        fs::remove_file(&path).expect("it was written");
    }
}

/// Where a line's parts are that change with each repetition.
struct Template {
    text: Vec<u8>,
    stamps: Vec<(usize, i64)>,
    ids: Vec<usize>,
    span: i64,
}

/// Writes the recording again and again until there are so many bytes.
fn generate(recording: &str, bytes: u64, to: &Path) -> u64 {
    let mut template = template(recording);
    let mut out = BufWriter::with_capacity(1 << 20, File::create(to).expect("room"));
    let mut written = 0;
    let mut round = 0u32;
    while written < bytes {
        for (at, second) in &template.stamps {
            let second = second + i64::from(round) * template.span;
            let (day, of_day) = (second.div_euclid(86_400), second.rem_euclid(86_400));
            // Thirty days a month will do: nobody counts them.
            let stamp = format!(
                "{:02}{:02} {:02}:{:02}:{:02}",
                1 + day / 28 % 12,
                1 + day % 28,
                of_day / 3600,
                of_day / 60 % 60,
                of_day % 60
            );
            template.text[*at..*at + stamp.len()].copy_from_slice(stamp.as_bytes());
        }
        let id = format!("{round:06x}");
        for at in &template.ids {
            template.text[*at..*at + id.len()].copy_from_slice(id.as_bytes());
        }
        out.write_all(&template.text).expect("room");
        written += template.text.len() as u64;
        round += 1;
    }
    out.flush().expect("room");
    written
}

fn template(recording: &str) -> Template {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/recordings")
        .join(recording)
        .join("kubelet.log.gz");
    let mut text = Vec::new();
    let file = File::open(path).expect("a recording");
    flate2::read::GzDecoder::new(file).read_to_end(&mut text).expect("gzip");
    let mut stamps = Vec::new();
    let mut at = 0;
    for line in text.split_inclusive(|b| *b == b'\n') {
        if let Some(second) = stamp(line) {
            stamps.push((at + 1, second));
        }
        at += line.len();
    }
    // From one day on, so that the months go on in order; the first repetition begins where the last line ended.
    let first = stamps.iter().map(|(_, s)| *s).min().expect("stamps");
    let last = stamps.iter().map(|(_, s)| *s).max().expect("stamps");
    stamps.iter_mut().for_each(|(_, s)| *s -= first);
    let hex = |b: &u8| b.is_ascii_hexdigit();
    let mut ids = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let len = text[at..].iter().take_while(|b| hex(b)).count();
        let is_uid = len == 8 && text.get(at + 8) == Some(&b'-') && text.get(at + 13) == Some(&b'-');
        if is_uid || len == 64 {
            ids.push(at);
        }
        at += len.max(1);
    }
    Template { text, stamps, ids, span: last - first + 1 }
}

/// `I1130 18:43:05.` in seconds, months of 31 days.
fn stamp(line: &[u8]) -> Option<i64> {
    let two = |at: usize| std::str::from_utf8(line.get(at..at + 2)?).ok()?.parse::<i64>().ok();
    let severity = matches!(line.first()?, b'I' | b'W' | b'E' | b'F') && line.get(5) == Some(&b' ');
    severity.then_some(())?;
    Some(((two(1)? * 31 + two(3)?) * 24 + two(6)?) * 3600 + two(9)? * 60 + two(12)?)
}

fn measure(name: &str, path: &PathBuf, size: u64) {
    let told = |what: &str, seconds: f64, more: &str| {
        println!("{name:<6} {what:<34} {seconds:>7.2} s {:>7.0} MB/s  {more}", size as f64 / 1e6 / seconds);
    };
    // Once through the page cache for all.
    let began = Instant::now();
    let mut lines = 0usize;
    let mut buffer = vec![0; 1 << 20];
    let mut file = File::open(path).expect("it was written");
    for _ in 0..2 {
        file = File::open(path).expect("it was written");
        lines = 0;
        loop {
            let n = file.read(&mut buffer).expect("readable");
            if n == 0 {
                break;
            }
            lines += memchr::memchr_iter(b'\n', &buffer[..n]).count();
        }
    }
    drop(file);
    told("newlines (memchr)", began.elapsed().as_secs_f64() / 2.0, &format!("{lines} lines"));
    for (program, pattern) in [("grep", "SyncLoop"), ("grep", WORDS), ("rg", "SyncLoop"), ("rg", WORDS)] {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C").stdin(Stdio::null());
        match program {
            "grep" => command.args(["-c", "-E", pattern]),
            _ => command.args(["-c", "-j1", "--no-config", pattern]),
        };
        let began = Instant::now();
        // Its output is read: grep stops at the first match when nobody does.
        match command.arg(path).output() {
            Ok(_) => told(
                &format!("{program} -c {}", if pattern == WORDS { "(4 words)" } else { pattern }),
                began.elapsed().as_secs_f64(),
                "",
            ),
            Err(_) => println!("{name:<6} {program} is not there"),
        }
    }
    let reset = fs::write("/proc/self/clear_refs", "5").is_ok();
    let options = Options { year: Some(2026), now: Moment(1_796_086_800 * SECOND) };
    let peak = || if reset { format!(", {} MB at most", peak_megabytes()) } else { String::new() };
    let began = Instant::now();
    let paths = std::slice::from_ref(path);
    let (trace, report) = judge_files(paths, &options, WINDOW, &mut |_| {}).expect("readable");
    let seconds = began.elapsed().as_secs_f64();
    let entries = format!("{} entries of {} pods", trace.entry_count(), trace.pod_count());
    told(
        "nodefold: to verdict",
        seconds,
        &format!("{} findings, {entries}{}", report.findings.len(), peak()),
    );
    drop((trace, report));
    let began = Instant::now();
    let trace = read_files(paths, &options, &mut |_| {}).expect("readable");
    let seconds = began.elapsed().as_secs_f64();
    told("nodefold: to trace, all held", seconds, &format!("{} entries{}", trace.entries.len(), peak()));
}

/// The most memory that this process had at once.
fn peak_megabytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
}
