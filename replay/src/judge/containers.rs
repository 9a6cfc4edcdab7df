//! Containers: two at once, made too late, stopped too slowly, exits that got lost (S6, S7, S14, S15).

use super::kind::Kind;
use super::report::Report;
use super::story::{RELIST, Story, View, note, spoken};
use super::volumes::nothing_told_its_end;
use crate::evidence::Witness;
use crate::stamp::{Moment, SECOND};
use crate::trace::{Confidence, ContainerIx};
use crate::verb::Verb;

/// A stop may take this much longer than its grace before it is said to: collectors, runtimes and PLEG take time.
const SLACK: i64 = 5 * SECOND;
/// The kubelet never gives a container less (kubelet-pods §3.2).
const LEAST_GRACE: i64 = 2;

/// Judges a pod's containers.
pub fn judge(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    created_after_delete(view, story, report);
    duplicates(view, story, report);
    graces(view, story, report);
    exits(view, story, report);
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "names the few verbs it reads; the others say nothing to it"
)]
fn created_after_delete(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    let mut delete: Option<usize> = None;
    for i in story.entries.iter().copied() {
        let entry = view.entry(i);
        if entry.coarse || entry.untimed {
            continue;
        }
        match entry.verb {
            Verb::DeleteSeen => delete = delete.or(Some(i)),
            // A new life of the name, or a kubelet that begins anew and takes time to see the deletion.
            Verb::PodAdded | Verb::KubeletStarted => delete = None,
            Verb::ContainerCreated | Verb::CreateStarted => {
                let Some(seen) = delete else { continue };
                if entry.witness == Witness::Events {
                    continue;
                }
                let ago = entry.at.since(view.entry(seen).at);
                let what = entry
                    .container
                    .map_or_else(|| "a container".to_owned(), |c| view.trace.container_name(c));
                let text = format!("{what} was made {} after the pod's delete had been seen", spoken(ago));
                let mut finding = view.finding(Kind::CreatedAfterDelete, Some(story.pod), &[seen, i], text);
                finding.instance = Some(what);
                report.findings.push(finding);
                return;
            }
            _ => {}
        }
    }
}

/// Two instances of one name alive at once, or one started twice.
fn duplicates(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    let containers: Vec<ContainerIx> = view.containers(story.pod).collect();
    let mut by_name: std::collections::BTreeMap<&str, Vec<(Moment, usize, ContainerIx)>> =
        std::collections::BTreeMap::new();
    for c in containers {
        if let (Some(name), Some((at, i))) = (view.trace.container(c).name.as_deref(), view.life(c).started)
            && !view.entry(i).coarse
        {
            by_name.entry(name).or_default().push((at, i, c));
        }
    }
    for (name, mut list) in by_name {
        list.sort_by_key(|(at, ..)| *at);
        for pair in list.windows(2) {
            let [(_, first, former), (at, second, _)] = pair else { continue };
            // A kubelet's word of a start is an Event's copy, which has no id: which instance it was, only PLEG tells.
            let without_id = |i: usize| {
                let e = view.entry(i);
                e.witness == Witness::Kubelet && e.verb == Verb::ContainerStarted
            };
            if !view.sees_pleg() && (without_id(*first) || without_id(*second)) {
                continue;
            }
            let still = match view.life(*former).ran_at(*at) {
                Some(still) => still,
                None => nothing_told_its_end(view, story, *former, *at),
            };
            if !still {
                continue;
            }
            let mut evidence = vec![*first, *second];
            evidence.extend(view.life(*former).end_entry());
            let text = format!(
                "container {name} was started again while {} still ran",
                view.trace.container_name(*former)
            );
            let mut finding = view.finding(Kind::DuplicateContainer, Some(story.pod), &evidence, text);
            finding.instance = Some(format!("container {name}"));
            finding.at = *at;
            if view.life(*former).end_entry().is_none() {
                finding.confidence = finding.confidence.min(Confidence::Absent);
            }
            report.findings.push(finding);
            return;
        }
    }
}

/// Stops against their grace, and graces that are none.
fn graces(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    for c in view.containers(story.pod) {
        let life = view.life(c);
        let name = view.trace.container_name(c);
        if let Some((_, grace, i)) = life.stops.iter().find(|(_, g, _)| g.is_some_and(|g| g < 0)) {
            let text = format!("{name} was to be stopped with a grace of {}s", grace.unwrap_or(0));
            let mut finding = view.finding(Kind::InvalidGrace, Some(story.pod), &[*i], text);
            finding.instance = Some(name.clone());
            report.findings.push(finding);
        }
        // The deadline is the earliest that any request asked for (S15).
        // An override is told beside the request that it is of, where that is in view.
        let own = |i: usize| view.entry(i).verb != Verb::GraceOverridden;
        let requested = life.stops.iter().any(|(_, g, i)| g.is_some() && own(*i));
        let asked =
            life.stops.iter().filter(|(_, g, i)| g.is_some_and(|g| g >= 0) && (own(*i) || !requested));
        // A hook that took the whole grace has begun with it: its end is the deadline.
        let hook = view.of_container(c).iter().copied().filter_map(|i| {
            let e = view.entry(i);
            let whole = e.payload.grace().filter(|g| e.verb == Verb::HookDone && *g >= 0)?.min(1 << 30);
            Some((e.at.plus(LEAST_GRACE * SECOND), e.at.plus(-whole * SECOND), Some(whole), i))
        });
        let deadline = asked
            .filter_map(|(at, g, i)| Some((at.plus((*g)?.clamp(LEAST_GRACE, 1 << 30) * SECOND), *at, *g, *i)))
            .chain(hook)
            .min_by_key(|(deadline, ..)| *deadline);
        let Some((deadline, at, grace, request)) = deadline else { continue };
        let (end, proof) = match (life.returned, life.ended, life.seen_dead) {
            (Some((t, i)), ..) => (t, i),
            (None, Some((t, Some(i))), _) => (t, i),
            // Seen late: the runtime's own time would tell; without it a relist is allowed for.
            (None, Some((t, None)), Some((_, i))) => (t, i),
            (None, None, Some((t, i))) => (t.plus(-RELIST), i),
            _ => continue,
        };
        if end.since(deadline) <= SLACK || end < at || !view.covered(view.entry(request).at, end) {
            continue;
        }
        let finished = view.trace.container(c).finished_at;
        let own = finished.filter(|f| f.since(deadline) <= 0).map(|f| {
            format!(
                ", although it had ended {} after the request: the runtime or node was slow",
                spoken(f.since(at).max(0))
            )
        });
        let text = format!(
            "{name} was given {}s and took {}{}",
            grace.unwrap_or(0),
            spoken(end.since(at)),
            own.unwrap_or_default()
        );
        let mut finding = view.finding(Kind::GraceExceeded, Some(story.pod), &[request, proof], text);
        finding.instance = Some(name);
        report.findings.push(finding);
    }
}

/// Exits that the runtime tells and the kubelet never saw; releases of pods whose containers nobody saw end.
fn exits(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    const NOTICES: i64 = 10 * SECOND;
    let removed = story.last(view, &[Verb::PodReleased, Verb::WorkerStopped]);
    for c in view.containers(story.pod) {
        let life = view.life(c);
        let name = view.trace.container_name(c);
        let told = view.of_container(c).iter().copied().find(|i| {
            let e = view.entry(*i);
            e.verb == Verb::ContainerExited && matches!(e.witness, Witness::Runtime | Witness::RuntimeEvents)
        });
        if let Some(told) = told {
            let at = view.entry(told).at;
            let noticed = story.entries.iter().copied().any(|i| {
                let e = view.entry(i);
                let about = e.container == Some(c)
                    && matches!(
                        e.verb,
                        Verb::ContainerDead
                            | Verb::ContainerExited
                            | Verb::ContainerGone
                            | Verb::StopReturned
                            | Verb::RemovalNoted
                    );
                let all = matches!(e.verb, Verb::ContainersStopped | Verb::PostTermination) && e.at >= at;
                e.witness == Witness::Kubelet && (about || all)
            }) || reported(view, story, c);
            if !noticed
                && view.sees_pleg()
                && view.end.since(at) > NOTICES
                && view.covered(at, at.plus(NOTICES))
                && life.started.is_some()
            {
                let text = format!("{name} ended by the runtime's word, and the kubelet's log never says so");
                let mut finding = view.finding(Kind::ExitLost, Some(story.pod), &[told], text);
                finding.instance = Some(name);
                finding.confidence = Confidence::Absent;
                report.findings.push(finding);
            }
            continue;
        }
        if let (Some(removed), Some((_, start))) = (removed, life.started) {
            let at = view.entry(removed).at;
            if view.entry(start).at < at && nothing_told_its_end(view, story, c, at) {
                let text = format!("the pod was released, and nothing shows that {name} had ended");
                let mut finding =
                    view.finding(Kind::ReleasedWhileRunning, Some(story.pod), &[start, removed], text);
                finding.instance = Some(name);
                finding.confidence = Confidence::Absent;
                report.findings.push(finding);
            }
        }
    }
    lives_without_uid(view, story, report);
}

/// Whether a status told the container's end.
fn reported(view: &View<'_>, story: &Story<'_>, c: ContainerIx) -> bool {
    let id = view.trace.container(c).id.as_ref();
    story.entries.iter().any(|i| {
        let e = view.entry(*i);
        e.witness == Witness::Kubelet
            && e.payload.status().is_some_and(|s| {
                s.containers.iter().any(|s| {
                    (s.id.as_ref() == id && s.state == Some("terminated"))
                        || s.last.as_ref().is_some_and(|(last, ..)| Some(last) == id)
                })
            })
    })
}

/// A name that goes and comes without a UID: two lives, which nothing tells apart but the order.
fn lives_without_uid(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    if view.trace.pod(story.pod).uid.is_some() {
        return;
    }
    let Some(removed) = story.first(view, &[Verb::PodRemoved]) else { return };
    let again = story.all(view, &[Verb::PodAdded]).find(|i| view.entry(*i).at > view.entry(removed).at);
    if let Some(again) = again {
        let text = format!(
            "{} was removed and later added again without a UID in view: two lives of one name",
            view.trace.pod_name(story.pod)
        );
        note(report, "name-reused", text, &[removed, again]);
    }
}
