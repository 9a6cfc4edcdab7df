//! How pods end, or don't (S8, L3; races B7, B13).

use super::kind::Kind;
use super::report::Report;
use super::story::{Story, View, note, spoken};
use crate::evidence::Witness;
use crate::stamp::{Moment, SECOND};
use crate::verb::Verb;

/// Judges a pod's end.
pub fn judge(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    stuck(view, story, report);
    late(view, story, report);
    if let Some(i) = story.first(view, &[Verb::IllegalTransition]) {
        let text = "the kubelet refused a phase that would have gone back".to_owned();
        report.findings.push(view.finding(Kind::IllegalTransition, Some(story.pod), &[i], text));
    }
    if let Some(i) = story.first(view, &[Verb::ProgrammerError]) {
        let text = "a message of the kubelet speaks of a programmer error".to_owned();
        report.findings.push(view.finding(Kind::ProgrammerError, Some(story.pod), &[i], text));
    }
    if let Some(i) = story.first(view, &[Verb::Evicted]) {
        note(report, "evicted", format!("{} was evicted", view.trace.pod_name(story.pod)), &[i]);
    }
    let denied: Vec<usize> = story.all(view, &[Verb::AdmissionDenied]).collect();
    if let Some(i) = denied.first() {
        note(
            report,
            "admission-denied",
            format!("{} was refused by the node", view.trace.pod_name(story.pod)),
            &[*i],
        );
    }
}

/// Words that say that the pod's end is under way.
const ENDING: [Verb; 9] = [
    Verb::DeleteSeen,
    Verb::TerminationBegan,
    Verb::TerminationSynced,
    Verb::UnmountAwaited,
    Verb::UnmountTimedOut,
    Verb::OrphanVolumesLeft,
    Verb::VolumesLeft,
    Verb::ContainersLeft,
    Verb::DeletionDelayed,
];

/// Words that say that something still holds it, so long after.
const HOLDING: [Verb; 18] = [
    Verb::OrphanVolumesLeft,
    Verb::VolumesLeft,
    Verb::ContainersLeft,
    Verb::DeletionDelayed,
    Verb::UnmountFailed,
    Verb::UnmountStarted,
    Verb::Reconstructed,
    Verb::StopFailed,
    Verb::SandboxStopFailed,
    Verb::SyncFailed,
    Verb::VolumesHeld,
    Verb::WorkerNotDone,
    Verb::StopRequested,
    Verb::VolumesTimedOut,
    Verb::UnmountAwaited,
    Verb::UnmountTimedOut,
    Verb::OrphanDirLeft,
    // What is still tried to be mounted is still wanted by a worker that does not come to the end.
    Verb::MountFailed,
];

/// After the object is gone only the runtime's and the worker's trouble keeps the pod; volumes have kinds of their own.
const HOLDING_GONE: [Verb; 5] =
    [Verb::StopFailed, Verb::SandboxStopFailed, Verb::WorkerNotDone, Verb::ContainersLeft, Verb::SyncFailed];

/// The end was asked for, the grace is over, and lines much later say what still holds the pod.
fn stuck(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    const PATIENCE: i64 = 60 * SECOND;
    // Of a pod whose name is cut the line that tells its end may be another's: nothing is known to be missing.
    if view.trace.pod(story.pod).cut {
        return;
    }
    let Some(begin) = story.first(view, &ENDING) else { return };
    let done = story.last(
        view,
        &[
            Verb::PodReleased,
            Verb::TerminationFinished,
            Verb::PodDeleted,
            Verb::PathsCleaned,
            Verb::WorkerStopped,
        ],
    );
    let gone = story.last(view, &[Verb::PodRemoved]);
    let asked = view.entry(begin).at;
    let over = asked.plus(grace(view, story) * SECOND + PATIENCE);
    let holding: &[Verb] = if gone.is_some() { &HOLDING_GONE } else { &HOLDING };
    let since = gone.map_or(Moment(i64::MIN), |g| view.entry(g).at.plus(PATIENCE));
    let held = story.all(view, holding).rfind(|i| {
        let e = view.entry(*i);
        let kills = e.verb != Verb::SyncFailed || e.payload.text().is_some_and(|t| t.contains("Kill"));
        e.at > over && e.at > since && kills && !e.untimed
    });
    let Some(held) = held else { return };
    if done.is_some_and(|d| view.entry(d).at >= view.entry(held).at) {
        return;
    }
    let reason = story.all(view, &HOLDING).find(|i| *i != begin).unwrap_or(held);
    let text = format!(
        "the pod's end began {} before the last line that shows it still held ({})",
        spoken(view.entry(held).at.since(asked)),
        view.entry(held).verb.phrase()
    );
    let finding = view.finding(Kind::StuckTerminating, Some(story.pod), &[begin, reason, held], text);
    report.findings.push(finding);
}

/// The pod's grace in seconds: by its object, by a stop that was asked for, or the default.
fn grace(view: &View<'_>, story: &Story<'_>) -> i64 {
    let of = |i: usize| {
        let payload = &view.entry(i).payload;
        payload.object().and_then(|o| o.deletion.map(|(_, g)| g).or(o.grace)).or(payload.grace())
    };
    // A stop whose line is cut before its grace: that is as long as anybody may wait.
    let cut = |i: &usize| view.entry(*i).cut && view.entry(*i).payload.grace().is_none();
    let unknown = story.all(view, &[Verb::StopRequested, Verb::HookDone]).any(|i| cut(&i));
    let told = story.entries.iter().copied().filter_map(of).max();
    told.unwrap_or(if unknown { 1 << 30 } else { 30 }).clamp(0, 1 << 30)
}

/// All containers dead, the terminal phase told much later.
fn late(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    const LATE: i64 = 20 * SECOND;
    let terminal = story.all(view, &[Verb::StatusPatched]).find(|i| {
        let e = view.entry(*i);
        let phase = e.payload.status().and_then(|s| s.phase.as_deref());
        !e.coarse && matches!(phase, Some("Succeeded" | "Failed"))
    });
    let Some(told) = terminal else { return };
    let at = view.entry(told).at;
    let mut dead: Option<(Moment, usize)> = None;
    for c in view.containers(story.pod) {
        let life = view.life(c);
        let Some((ended, proof)) = life.seen_dead.or(life.returned) else {
            // One whose end nobody saw may have been what was waited for.
            if life.started.is_some() {
                return;
            }
            continue;
        };
        if dead.is_none_or(|(t, _)| ended > t) {
            dead = Some((ended, proof));
        }
    }
    let Some((ended, proof)) = dead else { return };
    // A pod that waited for its restart ended only when its deletion was seen.
    let asked = story
        .all(view, &[Verb::DeleteSeen, Verb::TerminationBegan, Verb::Evicted])
        .map(|i| view.entry(i).at)
        .filter(|t| *t <= at)
        .min();
    let from = asked.map_or(ended, |asked| asked.max(ended));
    if at.since(from) <= LATE || view.entry(told).witness != Witness::Kubelet || !view.covered(from, at) {
        return;
    }
    // Without a deletion only a pod that isn't restarted ends by itself.
    if asked.is_none() && story.first(view, &[Verb::BackedOff]).is_some() {
        return;
    }
    let text = format!(
        "all containers were seen dead, the terminal phase was told {} later",
        spoken(at.since(from))
    );
    report.findings.push(view.finding(Kind::TerminalStatusLate, Some(story.pod), &[proof, told], text));
}
