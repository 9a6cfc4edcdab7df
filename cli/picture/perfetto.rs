//! The picture in Chrome's trace event format, which Perfetto and chrome://tracing read: a process per pod, a thread per lane
//! and stage, a slice per span, an instant per entry, and for each finding slices of proof joined by a flow.

use super::{LaneKind, Picture, Stage, phase_name};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Threads of one lane: its four stages, its entries, its proof.
const PER_LANE: u64 = 6;
const ENTRIES: u64 = 4;
const PROOF: u64 = 5;

/// Writes the trace.
pub fn write(picture: &Picture) -> Value {
    let mut events: Vec<Value> = Vec::new();
    let mut used: BTreeSet<(u32, u64)> = BTreeSet::new();
    for (lane, i) in picture.lanes.iter().zip(0u32..) {
        for span in &lane.spans {
            let to = span.to.unwrap_or(picture.end).max(span.from);
            used.insert((i, span.stage as u64));
            events.push(json!({
                "ph": "X", "name": span.word, "cat": span.stage.name(), "pid": process(picture, i),
                "tid": thread(i, span.stage as u64), "ts": span.from, "dur": to - span.from,
                "args": {"phase": phase_name(span.phase), "open": span.to.is_none(),
                         "by": span.by.map(|e| place(picture, e)), "until": span.until.map(|e| place(picture, e))},
            }));
        }
    }
    for (entry, i) in picture.entries.iter().zip(0u32..) {
        let Some(at) = entry.at else { continue };
        used.insert((entry.lane, ENTRIES));
        events.push(json!({
            "ph": "i", "s": "t", "name": entry.text, "cat": entry.who, "pid": process(picture, entry.lane),
            "tid": thread(entry.lane, ENTRIES), "ts": at,
            "args": {"at": place(picture, i), "confidence": entry.sure},
        }));
    }
    for (finding, id) in picture.findings.iter().zip(1u64..) {
        let proof: Vec<(u32, i64)> =
            finding.evidence.iter().filter_map(|e| Some((*e, picture.entries[*e as usize].at?))).collect();
        for (step, (e, at)) in proof.iter().enumerate() {
            let lane = picture.entries[*e as usize].lane;
            used.insert((lane, PROOF));
            let (pid, tid) = (process(picture, lane), thread(lane, PROOF));
            events.push(json!({
                "ph": "X", "name": finding.kind, "cat": "finding", "pid": pid, "tid": tid, "ts": at, "dur": 1,
                "args": {"invariant": finding.invariant, "explanation": finding.explanation,
                         "meaning": finding.meaning, "confidence": finding.sure, "evidence": place(picture, *e)},
            }));
            if proof.len() < 2 {
                continue;
            }
            let ph = if step == 0 {
                "s"
            } else if step + 1 == proof.len() {
                "f"
            } else {
                "t"
            };
            let mut flow = json!({"ph": ph, "name": finding.kind, "cat": "finding", "id": id, "pid": pid,
                                  "tid": tid, "ts": at});
            if ph == "f" {
                flow["bp"] = json!("e");
            }
            events.push(flow);
        }
        if let Some(at) = finding.at {
            events.push(json!({
                "ph": "i", "s": "p", "name": format!("✗ {}", finding.kind), "cat": "finding",
                "pid": process(picture, finding.lane), "tid": thread(finding.lane, PROOF), "ts": at,
                "args": {"explanation": finding.explanation},
            }));
            used.insert((finding.lane, PROOF));
        }
    }
    // Slices of one thread that begin together: the longer is the outer.
    events.sort_by_key(|e| (e["ts"].as_i64(), std::cmp::Reverse(e["dur"].as_i64())));
    let mut all = titles(picture, &used);
    all.append(&mut events);
    json!({"displayTimeUnit": "ms", "otherData": {"title": picture.title, "origin_us": picture.origin}, "traceEvents": all})
}

/// The names of processes and threads.
fn titles(picture: &Picture, used: &BTreeSet<(u32, u64)>) -> Vec<Value> {
    let mut all = Vec::new();
    let mut named: BTreeSet<u32> = BTreeSet::new();
    for (lane, row) in used {
        let pid = process(picture, *lane);
        if named.insert(pid) {
            let of = picture.lanes[*lane as usize].pod.unwrap_or(*lane);
            let name = match picture.lanes[*lane as usize].pod {
                Some(_) => picture.lanes[of as usize].name.clone(),
                None => "node".to_owned(),
            };
            all.push(json!({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": name}}));
            all.push(json!({"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "ts": 0, "args": {"sort_index": pid}}));
        }
        let own = &picture.lanes[*lane as usize];
        let what = match row {
            0..=3 => Stage::ALL[usize::try_from(*row).unwrap_or(0)].name(),
            &ENTRIES => "entries",
            _ => "findings",
        };
        let name = match own.kind {
            LaneKind::Node | LaneKind::Pod => what.to_owned(),
            LaneKind::Container => format!("{} · {what}", own.name),
            LaneKind::Volume => format!("({}) · {what}", own.name),
        };
        let tid = thread(*lane, *row);
        all.push(json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}));
        all.push(json!({"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "ts": 0, "args": {"sort_index": tid}}));
    }
    all
}

/// The process of a lane: its pod's number from 2 on; 1 is what no pod owns.
fn process(picture: &Picture, lane: u32) -> u32 {
    picture.lanes[lane as usize].pod.map_or(1, |pod| pod + 2)
}

fn thread(lane: u32, row: u64) -> u64 {
    u64::from(lane) * PER_LANE + row + 1
}

fn place(picture: &Picture, entry: u32) -> String {
    let entry = &picture.entries[entry as usize];
    let file = picture.files.get(entry.file as usize).map_or("", |f| f.name.as_str());
    format!("{}:{}", file.rsplit('/').next().unwrap_or(file), entry.line)
}
