//! How much memory judging needs: what lives counts, not how long the log is. Each byte is counted that the program asks for.

#[path = "support/lives.rs"]
mod lives;

use nodefold_replay::{Moment, Options, SECOND, judge_files, read_files};
use peak_alloc::PeakAlloc;
use std::path::{Path, PathBuf};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The most bytes that something needs at once, beyond what there is already.
fn most<T>(what: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let done = what();
    (done, ALLOCATOR.peak_usage() - before)
}

fn log_of(lives: u32) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{lives}-lives.log"));
    std::fs::write(&path, lives::kubelet(lives)).expect("room");
    path
}

#[test]
fn four_times_as_long_a_log_needs_no_more_memory() {
    const LIVES: u32 = 2500;
    let options = Options { year: Some(2025), now: Moment(1_796_086_800 * SECOND) };
    let judged = |lives: u32| {
        let path = log_of(lives);
        let paths = std::slice::from_ref(&path);
        let judging = || judge_files(paths, &options, 2000, &mut |_| {}).expect("readable");
        let ((trace, report), rolling) = most(judging);
        assert_eq!(trace.pod_count() as u32, lives);
        assert_eq!(report.findings.len() as u32, lives.div_ceil(40));
        drop((trace, report));
        let (trace, holding) = most(|| read_files(paths, &options, &mut |_| {}).expect("readable"));
        assert_eq!(trace.entries.len() as u32, 12 * lives);
        (rolling, holding)
    };
    let (short, long) = (judged(LIVES), judged(4 * LIVES));
    assert!(long.1 > short.1 + short.1 / 4, "who holds all needs more for more: {short:?} {long:?}");
    // Findings and what proves them stay: there are four times as many.
    assert!(long.0 < short.0 + short.0 / 10, "{short:?} {long:?}");
    assert!(long.0 < long.1 / 3, "{short:?} {long:?}");
}
