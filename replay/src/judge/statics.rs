//! Static pods: two lives of one full name (S6, L1; races B6, B9).

use super::kind::Kind;
use super::report::{Finding, Report};
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
        }
        ignored(view, pods, report);
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
    let Some(last) = story.last(view, &[Verb::StartBlocked]) else { return };
    if after(view, story, &RUNS, view.entry(last).at).is_some() {
        return;
    }
    // It is told again and again while it lasts: what counts is since when.
    let ran = story.last(view, &RUNS).map(|i| view.entry(i).at);
    let block = story.all(view, &[Verb::StartBlocked]).find(|i| ran.is_none_or(|r| view.entry(*i).at > r));
    let block = block.unwrap_or(last);
    let at = view.entry(block).at;
    let former: Vec<usize> = pods
        .iter()
        .filter(|p| **p != story.pod)
        .flat_map(|p| {
            let other = view.story(*p);
            let held = [
                Verb::WorkerNotDone,
                Verb::VolumesTimedOut,
                Verb::UnmountTimedOut,
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

/// A manifest that comes again after its pod's end went wrong, and for which nothing is started. The new life may have shown no
/// UID yet, so all that have the name are looked at together.
fn ignored(view: &View<'_>, pods: &[PodIx], report: &mut Report) {
    let stories: Vec<Story<'_>> = pods.iter().map(|p| view.story(*p)).collect();
    let of_name = |verbs: &[Verb], from: Moment| -> Option<(PodIx, usize)> {
        let each = stories.iter().filter_map(|s| {
            let found = s.all(view, verbs).find(|i| view.entry(*i).at >= from && !view.entry(*i).coarse)?;
            Some((s.pod, found))
        });
        each.min_by_key(|(_, i)| view.entry(*i).at)
    };
    let from_file = |i: &usize| view.entry(*i).payload.text().is_some_and(|t| &**t == "file");
    let firsts = stories.iter().filter_map(|s| s.all(view, &[Verb::PodRemoved]).find(from_file));
    let Some(removed) = firsts.min_by_key(|i| view.entry(*i).at) else { return };
    let gone = view.entry(removed).at;
    let comings = stories.iter().flat_map(|s| s.all(view, &[Verb::PodAdded]).map(|i| (s.pod, i)));
    let after_going = comings.filter(|(_, i)| from_file(i) && view.entry(*i).at > gone);
    let Some((new, added)) = after_going.min_by_key(|(_, i)| view.entry(*i).at) else { return };
    let at = view.entry(added).at;
    let trouble = [
        Verb::SyncFailed,
        Verb::UnmountTimedOut,
        Verb::StopFailed,
        Verb::SandboxStopFailed,
        Verb::WorkerNotDone,
    ];
    let Some((old, trouble)) = of_name(&trouble, gone) else { return };
    let runs = of_name(&[Verb::ContainerStarted, Verb::ContainerRunning, Verb::SandboxCreated], at);
    let synced = after(view, &view.story(new), &[Verb::SyncEntered], at);
    let told = [Kind::UidReuseNotRestarted, Kind::StaticReplacementBlocked];
    let is_told = |f: &Finding| told.contains(&f.kind) && f.pod.is_some_and(|p| pods.contains(&p));
    if runs.is_some()
        || synced.is_some()
        || view.end.since(at) < PATIENCE
        || report.findings.iter().any(is_told)
    {
        return;
    }
    let text =
        "the static pod's manifest came again after an end that went wrong, and nothing was started for it"
            .to_owned();
    let mut finding =
        view.finding(Kind::StaticReplacementBlocked, Some(old), &[removed, trouble, added], text);
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
    unnamed(view, name, pods, report);
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

/// PLEG names no containers: of two ids of one pod one is the sandbox. Where both still ran when another life of the name had two of
/// its own, one of them was a container beside its successor.
fn unnamed(view: &View<'_>, name: &str, pods: &[PodIx], report: &mut Report) {
    let ids = |pod: PodIx| -> Vec<(Moment, usize, crate::trace::ContainerIx)> {
        let mut found: Vec<_> =
            view.containers(pod).filter_map(|c| view.life(c).started.map(|(at, i)| (at, i, c))).collect();
        found.sort();
        found
    };
    let statics: Vec<PodIx> = pods
        .iter()
        .copied()
        .filter(|p| {
            view.trace.pod(*p).is_static && view.trace.pod(*p).uid.as_ref().is_some_and(|u| u.len() == 32)
        })
        .collect();
    for new in &statics {
        let begun = ids(*new);
        let [_, (at, second, _), ..] = begun.as_slice() else { continue };
        for old in statics.iter().filter(|p| *p != new) {
            let still: Vec<_> = ids(*old)
                .into_iter()
                .filter(|(from, _, c)| {
                    from < at
                        && view.trace.container(*c).name.is_none()
                        && view.life(*c).ran_at(*at) == Some(true)
                })
                .collect();
            if let [(_, first, _), _, ..] = still.as_slice() {
                let text = format!("two lives of static pod {name} ran at once");
                let mut finding =
                    view.finding(Kind::DuplicateContainer, Some(*new), &[*first, *second], text);
                finding.confidence = Confidence::Derived;
                report.findings.push(finding);
                return;
            }
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
        // The one that ended is another life of the name than the one that waits.
        let ends = [Verb::ContainerDead, Verb::StopReturned, Verb::PodRemoved];
        let ended = pods
            .iter()
            .filter_map(|p| view.story(*p).all(view, &ends).rfind(|i| view.entry(*i).at <= at))
            .max_by_key(|i| view.entry(*i).at);
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
