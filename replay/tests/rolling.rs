//! Judging while reading: the verdict is that of a judge who has all before him, in memory that only what lives needs.

#[path = "support/lives.rs"]
mod lives;
mod support;

use nodefold_replay::{Moment, Options, Report, SECOND, Trace, judge, judge_texts, read_texts};
use serde_json::Value;
use std::fs;
use std::path::Path;
use support::{FILES, Recording};

fn options() -> Options {
    Options { year: None, now: Moment(1_796_086_800 * SECOND) }
}

/// The verdict in an order that doesn't depend on when each part of it was reached.
fn verdict(trace: &Trace, report: &Report) -> Value {
    let mut json = report.to_json(trace);
    if let Some(notes) = json["notes"].as_array_mut() {
        notes.sort_by_key(Value::to_string);
    }
    json
}

/// Judges texts whole and while reading, and says how many entries were forgotten.
fn same(name: &str, texts: &[(&str, &[u8])], window: usize) -> usize {
    let whole = read_texts(texts.iter().copied(), &options());
    let Some((trace, report)) = judge_texts(texts, &options(), window) else { return 0 };
    let (want, got) = (verdict(&whole, &judge(&whole)), verdict(&trace, &report));
    for part in ["findings", "notes", "coverage"] {
        assert_eq!(got[part], want[part], "{part} of {name} with a look each {window}");
    }
    trace.forgotten.entries
}

#[test]
fn recordings_get_the_same_verdict() {
    for recording in Recording::all() {
        let texts: Vec<(&str, &[u8])> =
            recording.files.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
        assert_eq!(texts.len(), FILES.len());
        same(&recording.name, &texts, 300);
    }
}

#[test]
fn fragments_and_reports_get_the_same_verdict() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut read = 0;
    for dir in ["../tests/node-logs", "tests/reports"] {
        for entry in fs::read_dir(root.join(dir)).expect("logs") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|e| e == "log") {
                let text = fs::read(&path).expect("a log");
                read += 1;
                // Fourteen hours lie between what is told of one container: too long to be remembered.
                if path.ends_with("crio-day-long-stop-zones.log") {
                    continue;
                }
                same(&path.display().to_string(), &[("kubelet.log", &text)], 1);
            }
        }
    }
    assert!(read > 80);
}

#[test]
fn a_long_log_gets_the_same_verdict_though_most_of_it_is_forgotten() {
    const LIVES: u32 = 900;
    let (kubelet, runtime) = (lives::kubelet(LIVES), lives::runtime(LIVES));
    let alone: [(&str, &[u8]); 1] = [("kubelet.log", kubelet.as_bytes())];
    let both = [alone[0], ("containerd.log", runtime.as_bytes())];
    // The year is told by the runtime's log only, behind all of the kubelet's, and so is the zone.
    let late = [both[1], both[0]];
    for texts in [&alone[..], &both, &late] {
        let all = read_texts(texts.iter().copied(), &options());
        let findings = judge(&all).findings;
        assert_eq!(findings.len() as u32, LIVES.div_ceil(40), "{:?}", findings.first());
        for window in [500, 3000] {
            let forgotten = same("a long log", texts, window);
            assert!(forgotten > all.entries.len() / 3, "{forgotten} of {}", all.entries.len());
        }
    }
}

#[test]
fn a_pod_that_was_forced_out_is_not_over_while_its_container_runs() {
    let (uid, id) = ("f0000000-1c5b-4c2f-9a55-000000000000", "f".repeat(64));
    let event = |what: &str| {
        format!(
            r#"kubelet.go:2752] "SyncLoop (PLEG): event for pod" pod="ns/slow" event={{"ID":"{uid}","Type":"{what}","Data":"{id}"}}"#
        )
    };
    let told = [
        ("00:00:30", r#"kubelet.go:2724] "SyncLoop ADD" source="api" pods=["ns/slow"]"#.to_owned()),
        ("00:00:31", event("ContainerStarted")),
        (
            "00:01:30",
            r#"status_manager.go:834] "Pod fully terminated and removed from etcd" pod="ns/slow""#.to_owned(),
        ),
        ("00:01:31", r#"kubelet.go:2734] "SyncLoop REMOVE" source="api" pods=["ns/slow"]"#.to_owned()),
        // An hour's grace.
        ("01:01:20", event("ContainerDied")),
    ];
    let mut log = lives::kubelet(900);
    log.extend(told.iter().map(|(at, text)| format!("I0301 {at}.000000     777 {text}\n")));
    let mut lines: Vec<&str> = log.lines().collect();
    lines.sort_unstable();
    let log = lines.join("\n");
    let texts: [(&str, &[u8]); 1] = [("kubelet.log", log.as_bytes())];
    let forgotten = same("forced out", &texts, 500);
    assert!(forgotten > 4000, "{forgotten}");
}

#[test]
fn what_is_not_in_order_of_time_is_left_to_those_who_hold_it_all() {
    let log = lives::kubelet(900);
    let mut lines: Vec<&str> = log.lines().collect();
    lines.reverse();
    let newest_first = lines.join("\n");
    let texts: [(&str, &[u8]); 1] = [("kubelet.log", newest_first.as_bytes())];
    assert_eq!(same("newest first", &texts, 500), 0);
    let twice = [log.as_str(), log.as_str()].concat();
    let pasted: [(&str, &[u8]); 1] = [("kubelet.log", twice.as_bytes())];
    assert!(judge_texts(&pasted, &options(), 500).is_none(), "pasted twice");
}
