//! Any bytes as a recording: read, placed, judged, told and followed. Never a panic; time and memory are libFuzzer's to watch
//! (`-timeout`, `-rss_limit_mb`), and inputs may be long enough for a square to show.

use nodefold_replay::{Moment, Options, SECOND, follow, judge, judge_texts, read_texts};

/// Marks in the bytes where another file begins.
const NEXT_FILE: &[u8] = b"\n\x1cFILE\n";

/// All that a caller may do with a recording.
pub fn importers(data: &[u8]) {
    let options = Options { year: None, now: Moment(1_796_086_800 * SECOND) };
    let mut files = Vec::new();
    let mut rest = data;
    while let Some(at) = rest.windows(NEXT_FILE.len()).position(|window| window == NEXT_FILE) {
        files.push(("file", &rest[..at]));
        rest = &rest[at + NEXT_FILE.len()..];
    }
    files.push(("file", rest));
    let trace = read_texts(files.iter().copied(), &options);
    let report = judge(&trace);
    assert!(report.to_json(&trace).is_object());
    for entry in &trace.entries {
        assert!(!trace.describe(entry).is_empty() && !trace.clock(entry).is_empty());
    }
    follow(&trace);
    if let Some((trace, report)) = judge_texts(&files, &options, 1) {
        assert!(report.to_json(&trace).is_object());
    }
}
