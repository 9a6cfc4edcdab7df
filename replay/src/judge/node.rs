//! What concerns the node as a whole: the kubelet's own end, state files, devices, the runtime's silence.

use super::kind::Kind;
use super::report::Report;
use super::story::{View, note, spoken};
use crate::evidence::{Payload, Witness};
use crate::over::answers_a_stop;
use crate::stamp::{Moment, SECOND};
use crate::trace::{ContainerIx, VolumeIx};
use crate::verb::Verb;
use std::collections::{BTreeMap, BTreeSet};

/// Judges the node. `waits_told`: a story that is not in view any more had a wait for volumes that never ended.
pub fn judge(view: &View<'_>, waits_told: bool, report: &mut Report) {
    kubelet(view, report);
    devices(view, report);
    stops(view, report);
    sandboxes(view, report);
    nameless_orphans(view, report);
    nameless_phases(view, report);
    nameless_unmounts(view, report);
    nameless_waits(view, waits_told, report);
    own_journals(view, report);
}

fn with_verb(view: &View<'_>, verb: Verb) -> Vec<usize> {
    (0..view.entries.len()).filter(|i| view.entry(*i).verb == verb).collect()
}

/// Panics and state files that can't be read.
fn kubelet(view: &View<'_>, report: &mut Report) {
    let corrupt = with_verb(view, Verb::CheckpointUnreadable);
    if let Some(first) = corrupt.first() {
        let error = view.entry(*first).payload.text().map(|t| crate::trace::one_line(t)).unwrap_or_default();
        let mut finding =
            view.finding(Kind::CheckpointCorrupt, None, &corrupt[..corrupt.len().min(4)], error);
        finding.count = corrupt.len() as u64;
        report.findings.push(finding);
    }
    let panics = panics(view, report);
    if let Some(first) = panics.first() {
        let error = view.entry(*first).payload.text().map(|t| crate::trace::one_line(t)).unwrap_or_default();
        let mut finding = view.finding(Kind::KubeletCrash, None, &panics[..panics.len().min(4)], error);
        finding.count = panics.len() as u64;
        report.findings.push(finding);
    }
    let refused = with_verb(view, Verb::KubeletFailed);
    if let Some(first) = refused.first() {
        let error = view.entry(*first).payload.text().map(|t| crate::trace::one_line(t)).unwrap_or_default();
        note(report, "kubelet-refused-to-start", format!("the kubelet refused to start: {error}"), &[*first]);
    }
}

/// Panics that ended a kubelet. One that was caught is raised again by most releases, and then its process writes no more; up to 1.8
/// it was passed over, and the process went on.
fn panics(view: &View<'_>, report: &mut Report) -> Vec<usize> {
    let mut ended = with_verb(view, Verb::KubeletPanicked);
    for i in with_verb(view, Verb::PanicCaught) {
        let entry = view.entry(i);
        let run = |r: &&crate::trace::Run| r.pid == entry.pid && r.first <= entry.at && r.last >= entry.at;
        let lasted = view.trace.runs.iter().find(run).map_or(entry.at, |r| r.last);
        if lasted.since(entry.at) > SECOND / 2 {
            note(report, "panic-caught", "the kubelet caught a panic and went on".to_owned(), &[i]);
        } else if !ended.iter().any(|p| view.entry(*p).pid == entry.pid) {
            ended.push(i);
        }
    }
    ended.sort_unstable();
    ended
}

/// Devices that can't be released.
fn devices(view: &View<'_>, report: &mut Report) {
    let failures = with_verb(view, Verb::DeviceUnmountFailed);
    let volumes: BTreeSet<Option<VolumeIx>> = failures.iter().map(|i| view.entry(*i).volume).collect();
    for volume in volumes {
        let own: Vec<usize> = failures.iter().copied().filter(|i| view.entry(*i).volume == volume).collect();
        let (Some(first), Some(last)) = (own.first().copied(), own.last().copied()) else { continue };
        let done = (last..view.entries.len()).find(|i| {
            let e = view.entry(*i);
            e.volume == volume && matches!(e.verb, Verb::DeviceUnmounted | Verb::Detached)
        });
        let name = volume.map_or_else(|| "a device".to_owned(), |v| view.trace.volume_name(v));
        let error = view.entry(last).payload.text().map(|t| crate::trace::one_line(t)).unwrap_or_default();
        let text = format!("{name} can't be unstaged, {} failures in view; last: {error}", own.len());
        let lasted = view.entry(last).at.since(view.entry(first).at);
        let mut evidence = vec![first, last];
        evidence.extend(done);
        if done.is_some() && lasted < 60 * SECOND {
            note(report, "device-unmount-retried", format!("{text}; it succeeded later"), &evidence);
            continue;
        }
        let missing = with_verb(view, Verb::PathMissing);
        evidence.extend(missing.first());
        let pod = volume.and_then(|v| view.trace.volume(v).pod);
        let mut finding = view.finding(Kind::DeviceUnmountBlocked, pod, &evidence, text);
        finding.instance = Some(name);
        finding.resolved = done.is_some();
        finding.count = own.len() as u64;
        report.findings.push(finding);
    }
}

/// Stops that the runtime never answers, or answers too late for the kubelet.
pub fn stops(view: &View<'_>, report: &mut Report) {
    /// The kubelet's runtime request timeout.
    const REQUEST: i64 = 120 * SECOND;
    const SLACK: i64 = 30 * SECOND;
    let runtime_end = view
        .entries
        .iter()
        .filter(|e| matches!(e.witness, Witness::Runtime | Witness::RuntimeEvents) && !e.untimed)
        .map(|e| e.at)
        .max()
        .max(view.trace.forgotten.runtime_end);
    let mut told: BTreeSet<Option<ContainerIx>> = BTreeSet::new();
    for (i, entry) in view.entries.iter().enumerate() {
        let wait = match (entry.verb, &*entry.payload) {
            (Verb::SandboxStopRequested, _) => REQUEST,
            (Verb::RuntimeStop, Payload::Grace(seconds)) => seconds.clamp(&0, &(1 << 30)) * SECOND + SLACK,
            (Verb::StopFailed | Verb::SandboxStopFailed, payload) if timed_out(payload) => {
                if told.insert(entry.container) {
                    let same =
                        |k: &usize| view.entry(*k).verb == entry.verb && timed_out(&view.entry(*k).payload);
                    let again: Vec<usize> = match entry.container {
                        Some(c) => view.of_container(c).iter().copied().filter(same).collect(),
                        None => (i..view.entries.len())
                            .filter(|k| view.entry(*k).container.is_none() && same(k))
                            .collect(),
                    };
                    let what = entry
                        .container
                        .map_or_else(|| "a container".to_owned(), |c| view.trace.container_name(c));
                    let text = format!("the stop of {what} timed out {} times", again.len());
                    let evidence = [i, again.last().copied().unwrap_or(i)];
                    let mut finding = view.finding(Kind::RuntimeStopStalled, entry.pod, &evidence, text);
                    finding.instance = Some(what);
                    finding.count = again.len() as u64;
                    report.findings.push(finding);
                }
                continue;
            }
            _ => continue,
        };
        let Some(end) = runtime_end else { continue };
        let own = entry.container.map(|c| view.of_container(c)).unwrap_or_default();
        let answered = own.iter().filter(|k| **k > i).any(|k| answers_a_stop(view.entry(*k).verb));
        // Both sides of the timeout count: the next word after it is what shows the silence.
        if answered || end.since(entry.at) < wait - SECOND || !told.insert(entry.container) {
            continue;
        }
        let next = (i + 1..view.entries.len()).find(|k| view.entry(*k).at.since(entry.at) > wait / 2);
        let what = entry.container.map_or_else(|| "a sandbox".to_owned(), |c| view.trace.container_name(c));
        let text = format!(
            "the stop of {what} has no answer in the {} that the runtime's log goes on",
            spoken(end.since(entry.at))
        );
        let mut evidence = vec![i];
        evidence.extend(next);
        let mut finding = view.finding(Kind::RuntimeStopStalled, entry.pod, &evidence, text);
        finding.instance = Some(what);
        report.findings.push(finding);
    }
}

fn timed_out(payload: &Payload) -> bool {
    payload.text().is_some_and(|t| {
        let words = [
            "DeadlineExceeded",
            "deadline exceeded",
            "operation timeout",
            "timed out",
            "stop timeout",
            // Who asked has waited long enough.
            "context canceled",
            "is cancelled",
        ];
        words.iter().any(|w| t.contains(w))
    })
}

/// Many pods whose sandbox changed within a minute.
fn sandboxes(view: &View<'_>, report: &mut Report) {
    const MANY: usize = 5;
    /// After a boot no sandbox is there any more, and the pods come back one after the other.
    const BOOT: i64 = 600 * SECOND;
    let changed = with_verb(view, Verb::SandboxChanged);
    let boots = with_verb(view, Verb::NodeRebooted);
    let mut from = 0;
    for to in 0..changed.len() {
        while view.entry(changed[to]).at.since(view.entry(changed[from]).at) > 60 * SECOND {
            from += 1;
        }
        let pods: BTreeSet<_> = changed[from..=to].iter().filter_map(|i| view.entry(*i).pod).collect();
        if pods.len() >= MANY {
            let text = format!("the sandboxes of {} pods were found changed within a minute", pods.len());
            let at = view.entry(changed[to]).at;
            if let Some(boot) = boots.iter().find(|b| at.since(view.entry(**b).at).abs() < BOOT) {
                note(
                    report,
                    "node-rebooted",
                    format!("{text}, after the host was booted"),
                    &[*boot, changed[to]],
                );
                return;
            }
            let mut finding =
                view.finding(Kind::SandboxChangedBurst, None, &[changed[from], changed[to]], text);
            finding.count = pods.len() as u64;
            report.findings.push(finding);
            return;
        }
    }
}

/// Summary errors whose pod is not readable are findings all the same.
fn nameless_orphans(view: &View<'_>, report: &mut Report) {
    let orphans: Vec<usize> =
        with_verb(view, Verb::OrphanDirLeft).into_iter().filter(|i| view.entry(*i).pod.is_none()).collect();
    let (Some(first), Some(last)) = (orphans.first().copied(), orphans.last().copied()) else { return };
    let text = "a pod's directory can't be removed; which one, the input doesn't say".to_owned();
    let mut finding = view.finding(Kind::OrphanedPodDir, None, &[first, last], text);
    finding.count = orphans.len() as u64;
    report.findings.push(finding);
}

/// So are phases that were to go back: up to 1.20 the line names no pod.
fn nameless_phases(view: &View<'_>, report: &mut Report) {
    let back = with_verb(view, Verb::IllegalTransition);
    let nameless: Vec<usize> = back.into_iter().filter(|i| view.entry(*i).pod.is_none()).collect();
    let (Some(first), Some(last)) = (nameless.first().copied(), nameless.last().copied()) else { return };
    let text = "the kubelet refused a phase that would have gone back; of which pod, the input doesn't say";
    let mut finding = view.finding(Kind::IllegalTransition, None, &[first, last], text.to_owned());
    finding.count = nameless.len() as u64;
    report.findings.push(finding);
}

/// So are unmounts that fail in a pod that nobody can tell.
fn nameless_unmounts(view: &View<'_>, report: &mut Report) {
    let unmounts: Vec<usize> =
        with_verb(view, Verb::UnmountFailed).into_iter().filter(|i| view.entry(*i).pod.is_none()).collect();
    let mut by_volume: BTreeMap<Option<VolumeIx>, Vec<usize>> = BTreeMap::new();
    for i in unmounts {
        by_volume.entry(view.entry(i).volume).or_default().push(i);
    }
    for (volume, list) in by_volume {
        let name = volume.map_or_else(|| "a volume".to_owned(), |v| view.trace.volume_name(v));
        let at: Moment = view.entry(list[list.len() - 1]).at;
        let text = format!(
            "{name} of an unknown pod failed to unmount {} times up to {}",
            list.len(),
            super::rfc3339(at)
        );
        let mut finding = view.finding(Kind::UnmountFailed, None, &[list[0], list[list.len() - 1]], text);
        finding.instance = Some(name);
        finding.count = list.len() as u64;
        report.findings.push(finding);
    }
}

/// And waits for volumes of a pod that a pasted row doesn't name, unless its containers came all the same.
fn nameless_waits(view: &View<'_>, waits_told: bool, report: &mut Report) {
    let nameless = |verb: Verb| -> Vec<usize> {
        with_verb(view, verb).into_iter().filter(|i| view.entry(*i).pod.is_none()).collect()
    };
    let waits = nameless(Verb::VolumesTimedOut);
    let (Some(first), Some(last)) = (waits.first().copied(), waits.last().copied()) else { return };
    // A row beside the log that it is of: the log's own finding says more.
    let told = waits_told || report.findings.iter().any(|f| f.kind == Kind::VolumeWaitStuck);
    if told || !nameless(Verb::ContainerStarted).is_empty() {
        return;
    }
    let names = view.entry(last).payload.names().join(" ");
    let text = format!("a pod that the input doesn't name waits for {names}, told {} times", waits.len());
    let mut finding = view.finding(Kind::VolumeWaitStuck, None, &[first, last], text);
    finding.count = waits.len() as u64;
    report.findings.push(finding);
}

/// What the oracles found in nodefold's own journals.
fn own_journals(view: &View<'_>, report: &mut Report) {
    for (file, violation, records) in &view.trace.broken {
        let proves = |i: &usize| {
            let e = view.entry(*i);
            e.file as usize == *file && records.contains(&e.line)
        };
        let evidence: Vec<usize> = (0..view.entries.len()).filter(proves).collect();
        let uid = violation.pod.to_string();
        let pod = view.trace.pods.iter().position(|p| p.uid.as_deref() == Some(&uid));
        let pod = pod.and_then(|p| u32::try_from(p).ok()).map(crate::trace::PodIx);
        let mut finding = view.finding(Kind::InvariantBroken, pod, &evidence, violation.explanation.clone());
        finding.invariant = Some(violation.invariant);
        finding.at = Moment(i64::try_from(violation.at.0).unwrap_or(i64::MAX));
        report.findings.push(finding);
    }
}
