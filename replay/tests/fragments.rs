//! The twelve fragments of public reports: every verdict found and no other, every listed fact in the trace at its time,
//! pods and volumes counted right. All of it is read from the expectations, nothing is written down twice.

use nodefold_replay::{Entry, Moment, Options, SECOND, Stamp, Trace, Verb, judge, read_texts};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn fragments() -> Vec<(String, PathBuf, Value)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/node-logs");
    let mut found: Vec<_> = fs::read_dir(&dir)
        .expect("the fragments")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "log"))
        .map(|log| {
            let name = log.file_stem().expect("a name").to_string_lossy().into_owned();
            let expect = fs::read_to_string(dir.join(format!("{name}.expect.json"))).expect("an expectation");
            (name, log, serde_json::from_str(&expect).expect("JSON"))
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(found.len(), 12);
    found
}

fn trace(log: &Path) -> Trace {
    let text = fs::read(log).expect("a log");
    let now = Moment(1_796_086_800 * SECOND);
    read_texts([("kubelet.log", &text[..])], &Options { year: None, now })
}

#[test]
fn every_verdict_is_found_and_no_other() {
    for (name, log, expect) in fragments() {
        let report = judge(&trace(&log));
        let mut want: Vec<&str> = expect["verdict"]
            .as_array()
            .expect("verdicts")
            .iter()
            .map(|v| v.as_str().expect("text").split(':').next().expect("a kind").trim())
            .filter(|k| *k != "clean")
            .collect();
        want.sort_unstable();
        assert_eq!(report.kinds(), want, "{name}: {:#?}", report.findings);
    }
}

#[test]
fn every_finding_names_lines_that_say_so() {
    for (name, log, _) in fragments() {
        let trace = trace(&log);
        let lines = fs::read_to_string(&log).expect("a log").lines().count() as u64;
        for finding in judge(&trace).findings {
            assert!(!finding.evidence.is_empty(), "{name}: {finding:?}");
            for i in &finding.evidence {
                let line = trace.entries[*i].line;
                assert!((1..=lines).contains(&line), "{name}: line {line}");
            }
        }
    }
}

#[test]
fn pods_and_volumes_are_counted_right() {
    for (name, log, expect) in fragments() {
        let trace = trace(&log);
        let got = (trace.pod_count() as u64, trace.volume_count() as u64);
        let want = (expect["pods"].as_u64().expect("pods"), expect["volumes"].as_u64().expect("volumes"));
        assert_eq!(got, want, "{name}: {:#?} {:#?}", trace.pods, trace.volumes);
    }
}

/// What a fact's words mean, the first that fits counts. Facts are sentences of a person: these are all their turns.
const WORDS: &[(&str, &[Verb])] = &[
    ("unit active (service start", &[Verb::ServiceStarted]),
    ("service restarted by systemd", &[Verb::ServiceStarted]),
    ("kubelet failed to start", &[Verb::KubeletFailed]),
    ("kubelet panicked", &[Verb::KubeletPanicked]),
    ("state store initialised", &[Verb::StateStoreReady]),
    ("could not be restored", &[Verb::CheckpointUnreadable]),
    ("sandbox checkpoint not found", &[Verb::SandboxCheckpointMissing]),
    ("new pod received", &[Verb::PodReceived]),
    ("cannot start yet", &[Verb::StartBlocked]),
    ("worker asked to be removed", &[Verb::WorkerNotDone]),
    ("never mounted, timed out", &[Verb::VolumesTimedOut]),
    ("processed again", &[Verb::UpdateProcessed]),
    ("Pending -> Running", &[Verb::PhaseComputed]),
    ("verify-attached started", &[Verb::VerifyStarted]),
    ("device mount path already missing", &[Verb::PathMissing]),
    ("device unmount failed", &[Verb::DeviceUnmountFailed]),
    ("device unmount started", &[Verb::DeviceUnmountStarted]),
    ("re-added to state from disk", &[Verb::Reconstructed]),
    ("could not be reconstructed", &[Verb::ReconstructFailed]),
    ("cleanup of mount points started", &[Verb::CleanupStarted]),
    ("unmount started", &[Verb::UnmountStarted]),
    ("unmount failed", &[Verb::UnmountFailed]),
    ("unmount of volume data failed", &[Verb::UnmountFailed]),
    ("mount started", &[Verb::MountStarted]),
    ("waiting for volumes to unmount", &[Verb::UnmountAwaited]),
    ("all volumes unmounted", &[Verb::VolumesUnmounted]),
    ("all volumes ready", &[Verb::VolumesReady]),
    ("volume paths cleaned up", &[Verb::PathsCleaned]),
    ("unmounted", &[Verb::Unmounted]),
    ("mounted", &[Verb::Mounted]),
    ("detached", &[Verb::Detached]),
    ("plan:", &[Verb::Planned]),
    ("observed running", &[Verb::ContainerRunning, Verb::SandboxRunning]),
    ("observed dead", &[Verb::ContainerDead, Verb::SandboxDead]),
    ("runtime container removal bookkeeping", &[Verb::RemovalNoted]),
    ("container delete: already gone", &[Verb::RemoveRaced]),
    ("preStop hook started", &[Verb::HookStarted]),
    ("preStop hook finished", &[Verb::HookDone]),
    ("grace overridden", &[Verb::GraceOverridden]),
    ("network delete started", &[Verb::NetworkTeardown]),
    ("network teardown", &[Verb::NetworkTeardown]),
    (
        "sandbox 732a782be3422cda36951d7e1c044bdd78cf3f83f18f4b733735882f5839a92f stop requested",
        &[Verb::SandboxStopRequested],
    ),
    ("next runtime request", &[Verb::RuntimeRequest]),
    ("runtime stop call for container c returned", &[Verb::StopReturned]),
    ("runtime stop of", &[Verb::RuntimeStop, Verb::StopReturned]),
    ("stop requested", &[Verb::StopRequested]),
    ("status patched", &[Verb::StatusPatched]),
    ("deletion delayed", &[Verb::DeletionDelayed]),
    ("termination finished", &[Verb::TerminationFinished]),
    ("fully terminated", &[Verb::PodReleased]),
    ("but containers still running", &[Verb::ContainersLeft]),
    ("terminated but volumes not cleaned up", &[Verb::VolumesLeft]),
    ("orphaned, volumes not yet removed", &[Verb::OrphanVolumesLeft]),
    ("delete seen", &[Verb::DeleteSeen]),
    ("removed from source", &[Verb::PodRemoved]),
    ("start failed", &[Verb::StartFailed]),
    ("finished, exit code", &[Verb::ContainerExited]),
    ("exited", &[Verb::StopReturned]),
    ("stopped", &[Verb::SandboxStopped]),
    ("removed", &[Verb::ContainerRemoved, Verb::SandboxRemoved]),
    ("created for pod uid", &[Verb::SandboxCreated]),
    ("created", &[Verb::ContainerCreated]),
    ("started", &[Verb::ContainerStarted]),
    ("added", &[Verb::PodAdded]),
];

/// The time that a fact begins with: how many digits of it, and what follows.
fn stamp(fact: &str) -> Option<(String, &str)> {
    let (time, rest) = match fact.as_bytes().get(4) {
        Some(b'-') => {
            let iso = fact.as_bytes().get(10) == Some(&b'T');
            let end = if iso { fact.find(' ')? } else { fact.match_indices(' ').nth(1)?.0 };
            (fact[..end].replace('T', " "), &fact[end..])
        }
        _ => {
            let end = fact.match_indices(' ').nth(1)?.0;
            (fact[..end].to_owned(), &fact[end..])
        }
    };
    let starts_with_date = time.as_bytes().first().is_some_and(u8::is_ascii_digit) && time.contains(':');
    starts_with_date.then_some((time, rest))
}

/// Whether an entry is at a written time, to as many digits as were written.
fn at(trace: &Trace, entry: &Entry, time: &str) -> bool {
    let (time, offset) = match time.rsplit_once('+') {
        Some((time, zone)) => {
            let (h, m) = zone.split_once(':').expect("a zone");
            (time, h.parse::<i32>().expect("hours") * 3600 + m.parse::<i32>().expect("minutes") * 60)
        }
        None => (time.trim_end_matches('Z'), trace.files[0].offset),
    };
    let s = Stamp::at(entry.at, offset);
    let seconds = s.of_day / SECOND;
    let year = s.year.expect("a year");
    let nanos = s.of_day % SECOND;
    let full = format!(
        "{year:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:09}",
        s.month,
        s.day,
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        nanos
    );
    full.starts_with(time) || full[5..].starts_with(time)
}

fn everything(trace: &Trace, entry: &Entry) -> String {
    let mut text = trace.describe(entry);
    if let Some(pod) = entry.pod {
        let uid = trace.pod(pod).uid.as_deref().unwrap_or("");
        text += &format!(" {} {uid}", trace.pod_name(pod));
    }
    if let Some(c) = entry.container {
        text += &format!(" {}", trace.container(c).id.as_deref().unwrap_or(""));
    }
    text
}

#[test]
fn every_listed_fact_is_in_the_trace_at_its_time() {
    let mut checked = 0;
    for (name, log, expect) in fragments() {
        let trace = trace(&log);
        for fact in expect["facts"].as_array().expect("facts") {
            let fact = fact.as_str().expect("text");
            let Some((time, rest)) = stamp(fact) else {
                // Three facts tell what is *not* there, or a gap: the trace has the gap as an entry.
                if fact.starts_with("gap marked") {
                    assert!(trace.entries.iter().any(|e| e.verb == Verb::Gap), "{name}: {fact}");
                } else {
                    assert!(fact.starts_with("no "), "{name}: {fact}");
                }
                continue;
            };
            let (_, verbs) = WORDS
                .iter()
                .find(|(words, _)| rest.contains(words))
                .unwrap_or_else(|| panic!("{name}: no verb in {fact:?}"));
            let there: Vec<&Entry> = trace.entries.iter().filter(|e| at(&trace, e, &time)).collect();
            let said: Vec<&&Entry> = there.iter().filter(|e| verbs.contains(&e.verb)).collect();
            assert!(!said.is_empty(), "{name}: {fact:?} is not told by {there:?}");
            // Every id, UID and pod name of the sentence is known to the entry.
            let ids = rest.split([' ', ',', '(', ')']).filter(|w| {
                let hex = |c: char| c.is_ascii_hexdigit() || c == '-';
                w.len() >= 32 && w.chars().all(hex)
            });
            for id in ids {
                assert!(
                    said.iter().any(|e| everything(&trace, e).contains(id)),
                    "{name}: {id} of {fact:?} is not in {said:?}"
                );
            }
            let names = rest
                .split([' ', ',', '('])
                .filter(|w| w.contains('/') && w.contains('-') && !w.contains("...") && w.len() > 8);
            for pod in names.filter(|n| !n.contains(':') && !n.contains('"')) {
                assert!(
                    said.iter().any(|e| everything(&trace, e).contains(pod)),
                    "{name}: {pod} of {fact:?} is not in {said:?}"
                );
            }
            checked += 1;
        }
    }
    assert!(checked > 95, "{checked} facts have a time");
}
