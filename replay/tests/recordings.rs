//! Eleven recordings of a real 1.36 node: nothing is wrong where nothing was wrong, and what the kubelet's log alone tells
//! agrees with what the runtime and the kernel tell independently.

mod support;

use nodefold_replay::{Moment, SECOND, Trace, Verb, VolumeIx, judge};
use std::collections::BTreeMap;
use support::{FILES, Recording};

/// PLEG relists once a second and takes its time.
const RELIST: i64 = 3 * SECOND;

#[test]
fn the_ten_stories_are_clean() {
    for recording in Recording::all().iter().filter(|r| !r.name.starts_with("17")) {
        for files in [&FILES[..], &["kubelet.log"], &["kubelet.log", "watch.jsonl"], &FILES[1..]] {
            let trace = recording.trace(files);
            let report = judge(&trace);
            assert!(report.is_clean(), "{} with {files:?}: {:#?}", recording.name, report.findings);
            assert!(trace.is_recognised());
        }
    }
}

/// In the churn the kubelet really made two containers for pods that were gone: both were force-deleted while the
/// kubelet, in the middle of a sync, stopped their former container (an image change); the sync went on and started the
/// new one. The runtime's own events and the API's audit log prove it without the kubelet's log.
#[test]
fn the_churn_has_two_containers_that_came_after_their_pod() {
    let recording = Recording::open("17-churn-4-minutes");
    let trace = recording.trace(&FILES);
    let report = judge(&trace);
    assert_eq!(report.kinds(), ["container-created-after-delete"], "{:#?}", report.findings);
    let mut pods: Vec<String> =
        report.findings.iter().map(|f| trace.pod_name(f.pod.expect("a pod"))).collect();
    pods.sort();
    assert_eq!(pods, ["default/p0", "default/p37"]);

    // The ids come from the report; when they started and when their pods were deleted, others say.
    let audit = recording.trace(&["audit.jsonl"]);
    let runtime = recording.trace(&["containerd-events.log"]);
    let starts = by_id(&runtime, &[Verb::ContainerStarted]);
    for finding in &report.findings {
        let name = trace.pod_name(finding.pod.expect("a pod"));
        let made = finding
            .evidence
            .iter()
            .filter_map(|i| trace.entries[*i].container)
            .next_back()
            .expect("a container");
        let id = trace.container(made).id.as_deref().expect("an id");
        let deleted = audit
            .entries
            .iter()
            .find(|e| e.verb == Verb::PodDeleted && e.pod.is_some_and(|p| audit.pod_name(p) == name))
            .expect("the audit log's delete");
        let late = starts[id].since(deleted.at);
        assert!(late > 2 * SECOND, "{name}: {id} started {}ms after the delete", late / 1_000_000);
    }
}

/// The first moment of a verb by container id.
fn by_id(trace: &Trace, verbs: &[Verb]) -> BTreeMap<String, Moment> {
    let mut found = BTreeMap::new();
    for e in trace.entries.iter().filter(|e| verbs.contains(&e.verb)) {
        if let Some(id) = e.container.and_then(|c| trace.container(c).id.as_deref()) {
            found.entry(id.to_owned()).or_insert(e.at);
        }
    }
    found
}

fn span(trace: &Trace) -> (Moment, Moment) {
    let first = trace.entries.first().expect("entries").at;
    (first, trace.entries.iter().filter(|e| !e.untimed).map(|e| e.at).max().expect("entries"))
}

/// How late the kubelet may see something: a relist, or the start of the next run if it was down.
fn latest(trace: &Trace, at: Moment) -> Moment {
    let up = trace.runs.iter().find(|r| r.first <= at && r.last.plus(RELIST) >= at);
    let next = trace.runs.iter().map(|r| r.first).filter(|f| *f > at).min();
    let dies = up.is_some_and(|r| r.last.since(at) < RELIST);
    match next {
        Some(next) if up.is_none() || dies => next.plus(2 * RELIST),
        _ => at.plus(RELIST),
    }
}

#[test]
fn starts_and_exits_by_the_kubelet_agree_with_the_runtimes_events() {
    let mut compared = 0;
    for recording in Recording::all() {
        let kubelet = recording.trace(&["kubelet.log"]);
        let runtime = recording.trace(&["containerd-events.log"]);
        let (from, to) = span(&kubelet);
        let pairs = [
            (
                &[Verb::ContainerRunning, Verb::SandboxRunning][..],
                &[Verb::ContainerStarted, Verb::SandboxStarted][..],
            ),
            (
                &[Verb::ContainerDead, Verb::SandboxDead][..],
                &[Verb::ContainerExited, Verb::SandboxExited][..],
            ),
        ];
        for (seen, done) in pairs {
            let seen = by_id(&kubelet, seen);
            let done = by_id(&runtime, done);
            let dead = by_id(&kubelet, &[Verb::ContainerDead, Verb::SandboxDead, Verb::ContainerGone]);
            for (id, at) in &done {
                let until = latest(&kubelet, *at);
                if *at < from || until > to {
                    continue;
                }
                // What starts and ends between two relists is only ever seen dead.
                let told = seen.get(id).or_else(|| dead.get(id));
                let Some(told) = told else {
                    panic!("{}: {id} at {at:?} is not in the kubelet's log", recording.name);
                };
                assert!(
                    *told <= until.max(at.plus(RELIST)) || dead.contains_key(id),
                    "{}: {id} {}ms late",
                    recording.name,
                    told.since(*at) / 1_000_000
                );
                assert!(told.since(*at) > -SECOND, "{}: {id} was told before it happened", recording.name);
                compared += 1;
            }
            // What the kubelet saw start, the runtime had: in its events, unless it was there before they begin.
            let known = by_id(
                &runtime,
                &[Verb::ContainerStarted, Verb::SandboxStarted, Verb::ContainerExited, Verb::SandboxExited],
            );
            let ran = by_id(&kubelet, &[Verb::ContainerRunning, Verb::SandboxRunning]);
            for (id, at) in seen.iter().filter(|(id, _)| ran.contains_key(*id)) {
                let before = runtime.entries.first().is_none_or(|e| at.since(e.at) < RELIST);
                let restarted = kubelet.runs.iter().any(|r| r.first <= *at && at.since(r.first) < 2 * RELIST);
                assert!(
                    known.contains_key(id) || before || restarted,
                    "{}: {id} is not the runtime's",
                    recording.name
                );
            }
        }
    }
    assert!(compared > 600, "{compared} starts and exits compared");
}

#[test]
fn mounts_and_unmounts_by_the_kubelet_agree_with_the_kernels_table() {
    /// The table was polled every 30 ms; a mount is told after it is made.
    const POLL: i64 = SECOND / 2;
    let mut compared = 0;
    for recording in Recording::all() {
        let trace = recording.trace(&["kubelet.log", "mounts.jsonl"]);
        let (from, to) = {
            let mut at = trace.entries.iter().filter(|e| e.pid != 0).map(|e| e.at);
            let first = at.next().expect("the kubelet");
            (first, at.max().expect("the kubelet"))
        };
        let times = |volume: VolumeIx, verb: Verb| -> Vec<Moment> {
            trace
                .entries
                .iter()
                .filter(|e| e.volume == Some(volume) && e.verb == verb)
                .map(|e| e.at)
                .collect()
        };
        for (table, log) in [(Verb::MountSeen, Verb::Mounted), (Verb::MountGone, Verb::Unmounted)] {
            for e in trace.entries.iter().filter(|e| e.verb == table && e.at >= from && e.at.plus(POLL) <= to)
            {
                let volume = e.volume.expect("a volume of a pod");
                let told = times(volume, log);
                let first_snapshot = e.payload.text().is_some();
                let near = told.iter().any(|t| t.since(e.at).abs() < POLL);
                assert!(
                    near || first_snapshot,
                    "{}: {} {table:?} at {:?}, the kubelet said {told:?}",
                    recording.name,
                    trace.volume_name(volume),
                    e.at
                );
                compared += 1;
            }
        }
        // And the other way round: of every volume that the table ever had, each unmount took it away.
        for e in trace.entries.iter().filter(|e| e.verb == Verb::Unmounted) {
            let volume = e.volume.expect("a volume");
            if times(volume, Verb::MountSeen).is_empty() {
                continue;
            }
            assert!(
                times(volume, Verb::MountGone).iter().any(|t| t.since(e.at).abs() < POLL),
                "{}: {}",
                recording.name,
                trace.volume_name(volume)
            );
        }
    }
    assert!(compared > 40, "{compared} mounts and unmounts compared");
}

type Part = (&'static str, fn(usize, usize, &str) -> bool);

/// What people keep of a log: some lines of it.
const PARTS: &[Part] = &[
    ("its first half", |at, of, _| at < of / 2),
    ("its second half", |at, of, _| at >= of / 2),
    ("errors and warnings", |_, _, line| line.starts_with(['E', 'W'])),
    ("without what the runtime is", |_, _, line| !line.contains("PLEG")),
    ("a grep for volumes", |_, _, line| line.contains("olume")),
];

#[test]
fn parts_of_a_healthy_log_are_healthy() {
    for mut recording in Recording::all().into_iter().filter(|r| !r.name.starts_with("17")) {
        let lines: Vec<String> = recording.text("kubelet.log").lines().map(str::to_owned).collect();
        for (part, keeps) in PARTS {
            let kept = lines.iter().enumerate().filter(|(at, line)| keeps(*at, lines.len(), line));
            recording.set("kubelet.log", kept.map(|(_, line)| format!("{line}\n")).collect());
            let report = judge(&recording.trace(&["kubelet.log"]));
            assert!(report.findings.is_empty(), "{}, {part}: {:#?}", recording.name, report.findings);
        }
    }
}
