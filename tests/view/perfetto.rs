//! The trace for Perfetto, by the rules of the Trace Event Format: fields that each phase must have, slices that nest, tracks
//! that have names, flows that begin, end and hold on to slices.

use super::{nodefold, recording};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use tempfile::TempDir;

type Track = (u64, u64);

fn written(files: &[String]) -> Value {
    let dir = TempDir::new().expect("a directory");
    let path = dir.path().join("trace.json").display().to_string();
    let mut args = vec!["view"];
    args.extend(files.iter().map(String::as_str));
    args.extend(["--perfetto", &path]);
    let ran = nodefold(&args);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_str(&std::fs::read_to_string(&path).expect("the trace")).expect("JSON")
}

fn track(event: &Value) -> Track {
    (event["pid"].as_u64().expect("pid"), event["tid"].as_u64().expect("tid"))
}

fn check(trace: &Value) {
    let events = trace["traceEvents"].as_array().expect("traceEvents");
    let mut threads: BTreeMap<Track, String> = BTreeMap::new();
    let mut processes: BTreeSet<u64> = BTreeSet::new();
    let mut slices: BTreeMap<Track, Vec<(i64, i64)>> = BTreeMap::new();
    let mut flows: BTreeMap<u64, Vec<(String, i64, Track)>> = BTreeMap::new();
    for event in events {
        assert!(event["name"].is_string(), "{event}");
        let ts = event["ts"].as_i64().expect("ts is a number");
        match event["ph"].as_str().expect("ph") {
            "M" => {
                let value = &event["args"];
                match event["name"].as_str() {
                    Some("process_name") => {
                        assert!(value["name"].is_string());
                        processes.insert(event["pid"].as_u64().expect("pid"));
                    }
                    Some("thread_name") => {
                        let name = value["name"].as_str().expect("a name").to_owned();
                        assert!(
                            threads.insert(track(event), name).is_none(),
                            "one name for a track: {event}"
                        );
                    }
                    Some("process_sort_index" | "thread_sort_index") => assert!(value["sort_index"].is_u64()),
                    other => panic!("metadata of no known kind: {other:?}"),
                }
            }
            "X" => {
                let dur = event["dur"].as_i64().expect("dur is a number");
                assert!(dur >= 0, "{event}");
                slices.entry(track(event)).or_default().push((ts, ts + dur));
            }
            "i" => assert!(matches!(event["s"].as_str(), Some("t" | "p" | "g")), "{event}"),
            ph @ ("s" | "t" | "f") => {
                let id = event["id"].as_u64().expect("id");
                if ph == "f" {
                    assert_eq!(event["bp"], "e", "an end binds to the slice around it");
                }
                flows.entry(id).or_default().push((ph.to_owned(), ts, track(event)));
            }
            other => panic!("phase {other}"),
        }
    }
    for (pid, tid) in slices.keys() {
        assert!(
            processes.contains(pid) && threads.contains_key(&(*pid, *tid)),
            "track {pid}/{tid} has no name"
        );
    }
    // Slices of one track nest or follow each other.
    for (track, list) in &mut slices {
        list.sort_by_key(|(from, to)| (*from, std::cmp::Reverse(*to)));
        let mut open: Vec<i64> = Vec::new();
        for (from, to) in &*list {
            while open.last().is_some_and(|end| end <= from) {
                open.pop();
            }
            assert!(
                open.last().is_none_or(|end| to <= end),
                "{track:?} ({}): {from}..{to} crosses",
                threads[track]
            );
            open.push(*to);
        }
    }
    for (id, steps) in &flows {
        let shape: String = steps.iter().map(|(ph, _, _)| ph.as_str()).collect();
        assert!(
            shape.starts_with('s')
                && shape.ends_with('f')
                && shape[1..shape.len() - 1].chars().all(|c| c == 't'),
            "flow {id}: {shape}"
        );
        assert!(steps.is_sorted_by_key(|(_, ts, _)| *ts), "flow {id} goes back in time");
        for (_, ts, track) in steps {
            let held = slices[track].iter().any(|(from, to)| from <= ts && ts <= to);
            assert!(held, "flow {id} holds on to nothing at {ts}");
        }
    }
}

#[test]
fn a_recording_has_tracks_and_its_findings_flow() {
    let trace = written(&recording("17-churn-4-minutes"));
    check(&trace);
    let events = trace["traceEvents"].as_array().expect("events");
    let count = |ph: &str| events.iter().filter(|e| e["ph"] == ph).count();
    assert!(count("X") > 500 && count("i") > 10_000, "{} slices, {} instants", count("X"), count("i"));
    assert_eq!((count("s"), count("f")), (2, 2), "a flow for each finding");
    let names: BTreeSet<&str> = events
        .iter()
        .filter(|e| e["name"] == "thread_name")
        .filter_map(|e| e["args"]["name"].as_str())
        .collect();
    for wanted in ["actual", "app · actual", "app · actuated", "(s) · actual", "app · findings"] {
        assert!(names.contains(wanted), "no track {wanted}");
    }
}

#[test]
fn a_journal_has_all_four_stages() {
    let dir = TempDir::new().expect("a directory");
    let journal = dir.path().join("journal").display().to_string();
    let ran = nodefold(&["run", "examples/workspace-swap.yaml", "-q", "--journal", &journal]);
    assert!(ran.status.success());
    let trace = written(&[journal]);
    check(&trace);
    let stages: BTreeSet<&str> = trace["traceEvents"]
        .as_array()
        .expect("events")
        .iter()
        .filter(|e| e["ph"] == "X")
        .filter_map(|e| e["cat"].as_str())
        .collect();
    assert_eq!(stages, BTreeSet::from(["actual", "actuated", "allocated", "desired"]));
}
