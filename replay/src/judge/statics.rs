//! Static pods: two lives of one full name (S6, L1; races B6, B9).

use super::kind::Kind;
use super::report::Report;
use super::story::{Story, View, spoken};
use crate::stamp::{Moment, SECOND};
use crate::trace::{Confidence, PodIx};
use crate::verb::Verb;
use std::collections::BTreeMap;

/// A replacement takes this long at least before it is said to be blocked.
const PATIENCE: i64 = 30 * SECOND;

const RUNS: [Verb; 6] = [
    Verb::SyncEntered,
    Verb::FirstSync,
    Verb::ContainerStarted,
    Verb::ContainerRunning,
    Verb::SandboxCreated,
    Verb::SandboxRunning,
];

/// Judges static pods.
pub fn judge(view: &View<'_>, report: &mut Report) {
    let mut by_name: BTreeMap<String, Vec<PodIx>> = BTreeMap::new();
    for story in view.stories() {
        by_name.entry(view.trace.pod_name(story.pod)).or_default().push(story.pod);
    }
    for (name, pods) in &by_name {
        for pod in pods {
            let story = view.story(*pod);
            blocked(view, &story, pods, report);
            same_uid(view, &story, report);
            ignored(view, &story, report);
        }
        if pods.len() > 1 {
            together(view, name, pods, report);
        }
        mirror_blocked(view, pods, report);
    }
}

fn after(view: &View<'_>, story: &Story<'_>, verbs: &[Verb], at: Moment) -> Option<usize> {
    story.all(view, verbs).find(|i| view.entry(*i).at > at && !view.entry(*i).coarse)
}

/// "Pod cannot start yet", and it never does.
fn blocked(view: &View<'_>, story: &Story<'_>, pods: &[PodIx], report: &mut Report) {
    let Some(block) = story.last(view, &[Verb::StartBlocked]) else { return };
    let at = view.entry(block).at;
    if after(view, story, &RUNS, at).is_some() {
        return;
    }
    let former: Vec<usize> = pods
        .iter()
        .filter(|p| **p != story.pod)
        .flat_map(|p| {
            let other = view.story(*p);
            let held = [
                Verb::WorkerNotDone,
                Verb::VolumesTimedOut,
                Verb::SyncFailed,
                Verb::StopFailed,
                Verb::SandboxStopFailed,
            ];
            other.all(view, &held).filter(|i| view.entry(*i).at > at).collect::<Vec<_>>()
        })
        .collect();
    let waited = view.end.since(at);
    if waited < PATIENCE && former.is_empty() {
        return;
    }
    let mut evidence = vec![block];
    evidence.extend(former.first());
    evidence.extend(former.last());
    let text = format!(
        "uid {} can't start while a former life of its name is not over, and had not started {} later",
        view.trace.pod(story.pod).uid.as_deref().unwrap_or("unknown"),
        spoken(waited)
    );
    let finding = view.finding(Kind::StaticReplacementBlocked, Some(story.pod), &evidence, text);
    report.findings.push(finding);
}

/// Asked to restart with the UID that still ends, and not started again.
fn same_uid(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    let Some(asked) = story.last(view, &[Verb::RestartSameUid]) else { return };
    let at = view.entry(asked).at;
    let started =
        after(view, story, &[Verb::ContainerStarted, Verb::ContainerRunning, Verb::SandboxCreated], at);
    if started.is_some() || view.end.since(at) < PATIENCE {
        return;
    }
    let text = format!(
        "the pod came back with its old UID and was not started in the {} since",
        spoken(view.end.since(at))
    );
    let mut finding = view.finding(Kind::UidReuseNotRestarted, Some(story.pod), &[asked], text);
    finding.confidence = Confidence::Absent;
    report.findings.push(finding);
}

/// A manifest that comes again after its pod's end went wrong, and is ignored.
fn ignored(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    let from_file = |i: &usize| view.entry(*i).payload.text().is_some_and(|t| &**t == "file");
    let Some(removed) = story.all(view, &[Verb::PodRemoved]).find(from_file) else { return };
    let added = story
        .all(view, &[Verb::PodAdded])
        .filter(from_file)
        .find(|i| view.entry(*i).at > view.entry(removed).at);
    let Some(added) = added else { return };
    let at = view.entry(added).at;
    let trouble = [Verb::SyncFailed, Verb::StopFailed, Verb::SandboxStopFailed, Verb::WorkerNotDone];
    let trouble = story.all(view, &trouble).find(|i| view.entry(*i).at >= view.entry(removed).at);
    let runs = after(
        view,
        story,
        &[Verb::ContainerStarted, Verb::ContainerRunning, Verb::SandboxCreated, Verb::SyncEntered],
        at,
    );
    if runs.is_some()
        || view.end.since(at) < PATIENCE
        || report.findings.iter().any(|f| f.pod == Some(story.pod) && f.kind == Kind::UidReuseNotRestarted)
    {
        return;
    }
    let Some(trouble) = trouble else { return };
    let text =
        "the static pod's manifest came again after an end that went wrong, and nothing was started for it"
            .to_owned();
    let mut finding =
        view.finding(Kind::StaticReplacementBlocked, Some(story.pod), &[removed, trouble, added], text);
    finding.confidence = Confidence::Absent;
    report.findings.push(finding);
}

/// Containers of two UIDs of one static name alive at once.
fn together(view: &View<'_>, name: &str, pods: &[PodIx], report: &mut Report) {
    let mut spans: Vec<(Moment, usize, PodIx, &str, crate::trace::ContainerIx)> = Vec::new();
    for pod in pods.iter().filter(|p| {
        view.trace.pod(**p).is_static && view.trace.pod(**p).uid.as_deref().is_some_and(|u| u.len() == 32)
    }) {
        for c in view.containers(*pod) {
            if let (Some((at, i)), Some(of)) = (view.life(c).started, view.trace.container(c).name.as_deref())
            {
                spans.push((at, i, *pod, of, c));
            }
        }
    }
    spans.sort();
    for (k, (_, first, pod, of, c)) in spans.iter().enumerate() {
        let second = spans[k + 1..]
            .iter()
            .find(|(at, _, p, o, _)| p != pod && o == of && view.life(*c).ran_at(*at) == Some(true));
        if let Some((_, second, other, ..)) = second {
            let text = format!("two lives of static pod {name} ran container {of} at once");
            report.findings.push(view.finding(
                Kind::DuplicateContainer,
                Some(*other),
                &[*first, *second],
                text,
            ));
            return;
        }
    }
}

/// A mirror pod that could not be deleted because its API is what restarts.
fn mirror_blocked(view: &View<'_>, pods: &[PodIx], report: &mut Report) {
    const LONG: i64 = 10 * SECOND;
    for pod in pods {
        let story = view.story(*pod);
        let unreachable = |i: &usize| {
            view.entry(*i).payload.text().is_some_and(|t| {
                ["connection refused", "deadline exceeded", "timed out", "timeout", "unavailable"]
                    .iter()
                    .any(|w| t.contains(w))
            })
        };
        let Some(failed) = story.all(view, &[Verb::MirrorPodFailed]).find(unreachable) else { continue };
        let at = view.entry(failed).at;
        let ended = story
            .all(view, &[Verb::ContainerDead, Verb::StopReturned, Verb::PodRemoved])
            .find(|i| view.entry(*i).at <= at);
        let start = pods.iter().find_map(|p| {
            after(
                view,
                &view.story(*p),
                &[Verb::ContainerStarted, Verb::ContainerRunning, Verb::SandboxCreated],
                at,
            )
        });
        let from = ended.map_or(at, |e| view.entry(e).at);
        let to = start.map_or(view.end, |s| view.entry(s).at);
        if to.since(from) >= LONG {
            let text = format!(
                "the mirror pod could not be deleted, and the restart waited {}",
                spoken(to.since(from))
            );
            let evidence: Vec<usize> = [ended, Some(failed), start].into_iter().flatten().collect();
            report.findings.push(view.finding(Kind::RestartDelayed, Some(*pod), &evidence, text));
            return;
        }
    }
}
