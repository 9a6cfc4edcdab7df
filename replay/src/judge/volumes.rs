//! Volumes against containers: S1 and S2 (races V1, V2, B14, B15).

use super::kind::Kind;
use super::report::Report;
use super::story::{RELIST, Story, View, spoken};
use crate::evidence::Witness;
use crate::stamp::{Moment, SECOND};
use crate::trace::{Confidence, ContainerIx, VolumeIx};
use crate::verb::Verb;

/// Judges a pod's volumes against its containers.
pub fn judge(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    let mut told: Vec<VolumeIx> = Vec::new();
    for i in story.all(view, &[Verb::Unmounted, Verb::MountGone]) {
        if let Some(volume) = view.entry(i).volume
            && !told.contains(&volume)
            && unmounted_while_running(view, story, i, volume, report)
        {
            told.push(volume);
        }
    }
    starts(view, story, report);
}

/// An unmount after a start and before any exit of a container that mounts the volume.
fn unmounted_while_running(
    view: &View<'_>,
    story: &Story<'_>,
    unmount: usize,
    volume: VolumeIx,
    report: &mut Report,
) -> bool {
    let at = view.entry(unmount).at;
    for c in view.containers(story.pod) {
        let life = view.life(c);
        let mounts = view.mounts(c, volume);
        let asked = life.stops.iter().find(|(when, ..)| *when <= at);
        let before = life.started.filter(|(s, _)| *s <= at).or(asked.map(|(t, _, i)| (*t, *i)));
        let there = before.or_else(|| found_running(view, story, unmount, volume, c));
        let (Some((_, start)), true) = (there, mounts != Some(false)) else {
            continue;
        };
        let (confidence, mut evidence) = match life.ran_at(at) {
            Some(false) => continue,
            Some(true) => (Confidence::Seen, vec![start, unmount]),
            None if nothing_told_its_end(view, story, c, at) => (Confidence::Absent, vec![start, unmount]),
            None => continue,
        };
        evidence.extend(life.end_entry());
        let late = life.ended.or(life.seen_dead.map(|(t, i)| (t, Some(i)))).map(|(t, _)| t.since(at));
        let text = match late {
            Some(late) => format!(
                "{} was unmounted {} before {} ended",
                view.trace.volume_name(volume),
                spoken(late),
                view.trace.container_name(c)
            ),
            None => format!(
                "{} was unmounted, and nothing shows that {} had ended",
                view.trace.volume_name(volume),
                view.trace.container_name(c)
            ),
        };
        let mut finding = view.finding(Kind::UnmountedWhileRunning, Some(story.pod), &evidence, text);
        finding.instance = Some(view.trace.volume_name(volume));
        finding.at = at;
        // Which containers mount the volume is a conclusion unless a spec or status says it.
        let by_mounts = if mounts == Some(true) { Confidence::Seen } else { Confidence::Derived };
        finding.confidence = finding.confidence.min(confidence).min(by_mounts);
        report.findings.push(finding);
        return true;
    }
    false
}

/// A container that was there before the kubelet: found running, or asked to stop, after a restart had taken up the volume from
/// disk, without anything being mounted or made for the pod in between. It ran when the volume went (race V1).
fn found_running(
    view: &View<'_>,
    story: &Story<'_>,
    unmount: usize,
    volume: VolumeIx,
    c: ContainerIx,
) -> Option<(Moment, usize)> {
    let at = view.entry(unmount).at;
    let rebuilt = story
        .all(view, &[Verb::Reconstructed])
        .find(|i| view.entry(*i).volume == Some(volume) && view.entry(*i).at <= at)?;
    let life = view.life(c);
    let stopped = life.stops.first().map(|(t, _, i)| (*t, *i));
    let running = life.started.filter(|(_, i)| view.entry(*i).verb == Verb::ContainerRunning);
    let found = running.into_iter().chain(stopped).filter(|(t, _)| *t >= at).min()?;
    let begins = [
        Verb::Mounted,
        Verb::SandboxNeeded,
        Verb::SandboxCreated,
        Verb::CreateStarted,
        Verb::ContainerCreated,
        Verb::ContainerStarted,
    ];
    let rebuilt_at = view.entry(rebuilt).at;
    let anew = story.all(view, &begins).any(|i| (rebuilt_at..=found.0).contains(&view.entry(i).at));
    (!anew).then_some(found)
}

/// Absence counts only under coverage (node-logs §5): one run, no gap, PLEG in view, and time enough for it to tell.
pub fn nothing_told_its_end(view: &View<'_>, story: &Story<'_>, c: ContainerIx, at: Moment) -> bool {
    let life = view.life(c);
    if view.trace.container(c).id.is_none() || life.end_entry().is_some() || life.ended.is_some() {
        return false;
    }
    let Some((running, _)) = life.last_running.or(life.stops.last().map(|(t, ..)| (*t, 0))) else {
        return false;
    };
    let all_stopped = story
        .all(view, &[Verb::ContainersStopped, Verb::PostTermination])
        .any(|i| view.entry(i).at >= running && view.entry(i).at <= at);
    !all_stopped && view.sees_pleg() && view.end.since(at) > RELIST && view.covered(running, at)
}

/// Starts, and attempts at one, after a teardown or without a mount.
fn starts(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    let mut told_before: Vec<VolumeIx> = Vec::new();
    let mut told_without = false;
    let attempts = [Verb::ContainerStarted, Verb::ContainerCreated, Verb::StartFailed, Verb::CreateFailed];
    for i in story.all(view, &attempts) {
        let entry = view.entry(i);
        let failed = matches!(entry.verb, Verb::StartFailed | Verb::CreateFailed);
        // A config error names the volume that isn't there.
        let none_there = entry.payload.text().is_some_and(|t| t.contains("cannot find the mounted volumes"));
        if entry.verb == Verb::CreateFailed && (entry.volume.is_some() || none_there) && !told_without {
            told_without = true;
            let volume = entry.volume.map(|v| view.trace.volume_name(v));
            let volume = volume.unwrap_or_else(|| "any of its volumes".to_owned());
            let text = format!("a container could not be made because {volume} was not there to mount");
            let mut finding = view.finding(Kind::StartWithoutVolume, Some(story.pod), &[i], text);
            finding.instance = Some(volume);
            finding.count = story.all(view, &[Verb::CreateFailed]).count() as u64;
            report.findings.push(finding);
            continue;
        }
        if entry.coarse || entry.untimed {
            continue;
        }
        if let Some((unmount, volume)) = torn_down_before(view, story, i, failed) {
            if !told_before.contains(&volume) {
                told_before.push(volume);
                let ago = entry.at.since(view.entry(unmount).at);
                let text = format!(
                    "{} was torn down {} before {} {}",
                    view.trace.volume_name(volume),
                    spoken(ago),
                    entry
                        .container
                        .map_or_else(|| "a container".to_owned(), |c| view.trace.container_name(c)),
                    if failed { "failed to start" } else { "was started" },
                );
                let mut finding =
                    view.finding(Kind::UnmountedBeforeStart, Some(story.pod), &[unmount, i], text);
                finding.instance = Some(view.trace.volume_name(volume));
                report.findings.push(finding);
            }
            continue;
        }
        if !failed
            && !told_without
            && let Some(begun) = not_mounted_yet(view, story, i)
        {
            told_without = true;
            let volume = view.entry(begun).volume.map(|v| view.trace.volume_name(v)).unwrap_or_default();
            let text = format!("a container was started while {volume} was still being mounted");
            let mut finding = view.finding(Kind::StartWithoutVolume, Some(story.pod), &[begun, i], text);
            finding.instance = Some(volume);
            finding.confidence = finding.confidence.min(Confidence::Derived);
            report.findings.push(finding);
        }
    }
}

/// The teardown before a start of a volume that the container mounts, without a new mount between.
fn torn_down_before(
    view: &View<'_>,
    story: &Story<'_>,
    start: usize,
    failed: bool,
) -> Option<(usize, VolumeIx)> {
    let entry = view.entry(start);
    // Copies of Events are printed a little after the fact.
    let margin = if failed || entry.witness != Witness::Kubelet { 0 } else { SECOND / 5 };
    for u in story.all(view, &[Verb::Unmounted]).rev() {
        let unmount = view.entry(u);
        let Some(volume) = unmount.volume else { continue };
        if unmount.at.plus(margin) >= entry.at {
            continue;
        }
        // An attempt that names a volume is about that one; a failure for another reason proves nothing.
        let concerned = match (entry.volume, entry.container) {
            (Some(named), _) => named == volume,
            (None, _) if failed => false,
            (None, Some(c)) => view.mounts(c, volume) != Some(false),
            (None, None) => false,
        };
        let again = story.all(view, &[Verb::Mounted]).any(|m| {
            let m = view.entry(m);
            m.volume == Some(volume) && m.at > unmount.at && m.at <= entry.at
        });
        if concerned && !again {
            return Some((u, volume));
        }
    }
    None
}

/// A mount that began in view and had not succeeded when the container started.
fn not_mounted_yet(view: &View<'_>, story: &Story<'_>, start: usize) -> Option<usize> {
    let entry = view.entry(start);
    let container = entry.container?;
    story.all(view, &[Verb::MountStarted, Verb::VerifyStarted]).find(|b| {
        let begun = view.entry(*b);
        let Some(volume) = begun.volume else { return false };
        let of = |verb: Verb| story.all(view, &[Verb::Mounted]).filter(move |m| view.entry(*m).verb == verb);
        let mounted =
            of(Verb::Mounted).any(|m| view.entry(m).volume == Some(volume) && view.entry(m).at <= entry.at);
        // A success that is told at all tells that its verbosity is on; a restart begins mounts anew.
        let told_later = of(Verb::Mounted).any(|m| view.entry(m).volume == Some(volume));
        begun.at < entry.at
            && !mounted
            && told_later
            && view.mounts(container, volume) != Some(false)
            && view.covered(begun.at, entry.at)
            && story
                .first(view, &[Verb::PodAdded, Verb::PodReceived])
                .is_some_and(|a| view.entry(a).at <= begun.at)
    })
}
