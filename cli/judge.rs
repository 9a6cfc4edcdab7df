//! `nodefold judge`: reads what a node left behind and says what was wrong with it.

use crate::args;
use crate::ending::{Ending, Unusable};
use crate::judge_view;
use crate::out::Out;
use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use nodefold_replay::{
    Followed, Moment, Options, Progress, ReadError, Side, Trace, WINDOW, follow, judge_files, read_files,
    rfc3339,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// Reads, judges, tells.
pub fn judge(args: &args::Judge, out: &mut Out) -> Result<Ending> {
    // Whoever asks for what happened, and not only for what was wrong, gets all of it held.
    let all = args.shadow || args.verbose || args.pod.is_some();
    let (trace, report) = if all {
        let trace = read(&args.files, args.year, out)?;
        let report = nodefold_replay::judge(&trace);
        (trace, report)
    } else {
        with_bar(&args.files, args.year, out, |options, progress| {
            judge_files(&args.files, options, WINDOW, progress)
        })?
    };
    if !trace.is_recognised() {
        let what = format!("nothing recognisable in {}", names(&args.files));
        let remedy =
            "give kubelet or runtime logs, API watches or lists, audit logs, mount tables, checkpoints";
        return Err(Unusable::new(what, remedy).into());
    }
    let shadow = args.shadow.then(|| follow(&trace));
    if args.json {
        let mut object = report.to_json(&trace);
        if let Some(shadow) = &shadow {
            object["shadow"] = shadow_json(&trace, shadow);
        }
        out.line(object);
    } else {
        if let Some(shadow) = &shadow {
            judge_view::shadow(&trace, shadow, out);
        }
        judge_view::show(&trace, &report, args, out)?;
    }
    Ok(if report.is_clean() { Ending::Good } else { Ending::Broken })
}

/// Where the core parted from the node.
fn shadow_json(trace: &Trace, shadow: &Followed) -> Value {
    let partings: Vec<Value> = shadow
        .partings
        .iter()
        .map(|p| {
            let entry = p.entry.and_then(|i| trace.entries.get(i));
            let place = entry.map(|e| json!({"file": trace.files[e.file as usize].name, "line": e.line}));
            let side = match p.side {
                Side::Node => "node",
                Side::Core => "core",
            };
            json!({"at": rfc3339(p.at), "by": side, "pod": trace.pod_name(p.pod), "what": p.what, "evidence": place})
        })
        .collect();
    json!({"facts": shadow.events.len(), "pods_without_spec": shadow.without_spec, "partings": partings})
}

/// The inputs as they were given.
pub fn names(files: &[PathBuf]) -> String {
    files.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Reads the inputs and holds all that they tell.
pub fn read(files: &[PathBuf], year: Option<i32>, out: &Out) -> Result<Trace> {
    with_bar(files, year, out, |options, progress| read_files(files, options, progress))
}

/// Has the inputs read, with a bar where somebody watches.
fn with_bar<T>(
    files: &[PathBuf],
    year: Option<i32>,
    out: &Out,
    read: impl FnOnce(&Options, &mut dyn FnMut(Progress<'_>)) -> Result<T, ReadError>,
) -> Result<T> {
    let total: u64 = files.iter().filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum();
    let bar = if out.is_terminal { ProgressBar::new(total) } else { ProgressBar::hidden() };
    let style = ProgressStyle::with_template("{msg} {bytes} of {total_bytes} {bar:30} {bytes_per_sec}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut file = String::new();
    let options = Options { year, now: date_of(files) };
    let told = read(&options, &mut |p: Progress<'_>| {
        if file != p.file {
            p.file.clone_into(&mut file);
            bar.set_message(file.clone());
        }
        bar.set_position(p.bytes);
    })?;
    bar.finish_and_clear();
    Ok(told)
}

/// A log is not from after its file was last written: that bounds the years that it may mean.
fn date_of(files: &[PathBuf]) -> Moment {
    let written = files.iter().filter_map(|f| f.metadata().ok()?.modified().ok()).max();
    let at = written.unwrap_or_else(now);
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Moment(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

#[expect(
    clippy::disallowed_methods,
    reason = "standard input has no date; only an assumed year depends on it"
)]
fn now() -> SystemTime {
    SystemTime::now()
}
