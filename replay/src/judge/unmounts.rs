//! Volumes that don't go: failed unmounts, restarts that forgot them, leftovers (races V3, V9, V10, V14).

use super::kind::Kind;
use super::report::Report;
use super::story::{Story, View, note, spoken};
use crate::evidence::{Payload, Witness};
use crate::stamp::SECOND;
use crate::trace::{Confidence, VolumeIx};
use crate::verb::Verb;
use std::collections::BTreeSet;

/// Judges what a pod's volumes leave behind.
pub fn judge(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    failed(view, story, report);
    reconstruction(view, story, report);
    artifacts(view, story, report);
    orphan_dirs(view, story, report);
    mismatch(view, story, report);
    waiting(view, story, report);
    loops(view, story, report);
}

fn volumes_with(view: &View<'_>, story: &Story<'_>, verb: Verb) -> BTreeSet<Option<VolumeIx>> {
    story.all(view, &[verb]).map(|i| view.entry(i).volume).collect()
}

fn of_volume<'s>(
    view: &'s View<'_>,
    story: &'s Story<'_>,
    verb: Verb,
    volume: Option<VolumeIx>,
) -> impl DoubleEndedIterator<Item = usize> + 's {
    story
        .entries
        .iter()
        .copied()
        .filter(move |i| view.entry(*i).verb == verb && view.entry(*i).volume == volume)
}

/// Back-off errors of unmounts. One that later succeeds is worth a note (node-logs §5).
fn failed(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    for volume in volumes_with(view, story, Verb::UnmountFailed) {
        let failures: Vec<usize> = of_volume(view, story, Verb::UnmountFailed, volume).collect();
        let (Some(first), Some(last)) = (failures.first().copied(), failures.last().copied()) else {
            continue;
        };
        let name = volume.map_or_else(|| "a volume".to_owned(), |v| view.trace.volume_name(v));
        let gone = |i: &usize| {
            let e = view.entry(*i);
            let own = matches!(e.verb, Verb::Unmounted | Verb::MountGone) && e.volume == volume;
            let all = matches!(e.verb, Verb::VolumesUnmounted | Verb::PathsCleaned | Verb::OrphanDirCleaned);
            e.at > view.entry(last).at && (own || all)
        };
        let resolved = story.entries.iter().copied().find(|i| gone(i));
        let lasted = view.entry(last).at.since(view.entry(first).at);
        let error = view.entry(last).payload.text().map(|t| crate::trace::one_line(t)).unwrap_or_default();
        let text = format!(
            "{name} failed to unmount {} times over {}; last: {error}",
            failures.len(),
            spoken(lasted)
        );
        let mut evidence = vec![first, last];
        evidence.extend(resolved);
        if resolved.is_some() && lasted < 60 * SECOND {
            note(report, "unmount-retried", format!("{text}; it succeeded later"), &evidence);
            continue;
        }
        let mut finding = view.finding(Kind::UnmountFailed, Some(story.pod), &evidence, text);
        finding.instance = Some(name.clone());
        finding.resolved = resolved.is_some();
        finding.count = failures.len() as u64;
        report.findings.push(finding);
        flood(view, story, &failures, &name, report);
    }
}

/// The same failure again and again without a back-off: no operation was queued that could have one.
fn flood(view: &View<'_>, story: &Story<'_>, failures: &[usize], name: &str, report: &mut Report) {
    let unqueued: Vec<usize> = failures
        .iter()
        .copied()
        .filter(|i| !matches!(*view.entry(*i).payload, Payload::Retry { .. }))
        .collect();
    let (Some(first), Some(last)) = (unqueued.first().copied(), unqueued.last().copied()) else { return };
    let span = view.entry(last).at.since(view.entry(first).at);
    let n = unqueued.len() as i64;
    // No back-off is shorter than half a second, so three failures closer than that had none.
    let apart = span / (n - 1).max(1);
    if !(n >= 5 && apart <= SECOND || n >= 3 && apart < SECOND / 2) {
        return;
    }
    let text = format!("{name}: the same failure {n} times in {}, without any back-off", spoken(span));
    let mut finding = view.finding(Kind::LogFlood, Some(story.pod), &[first, last], text);
    finding.count = unqueued.len() as u64;
    report.findings.push(finding);
}

/// What a restart could not take up again, and what nobody takes down then.
fn reconstruction(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    for volume in volumes_with(view, story, Verb::ReconstructFailed) {
        let Some(failure) = of_volume(view, story, Verb::ReconstructFailed, volume).next() else { continue };
        let at = view.entry(failure).at;
        let later = |verb: Verb| of_volume(view, story, verb, volume).find(|i| view.entry(*i).at > at);
        let name = volume.map_or_else(|| "a volume".to_owned(), |v| view.trace.volume_name(v));
        if let Some(mounted) = later(Verb::Mounted) {
            let text = format!("{name} could not be rebuilt after the restart but was set up again");
            note(report, "reconstruction-retried", text, &[failure, mounted]);
            continue;
        }
        let text = format!("{name} was found on disk after a restart and could not be taken up again");
        let mut finding = view.finding(Kind::ReconstructionFailed, Some(story.pod), &[failure], text);
        finding.instance = Some(name.clone());
        report.findings.push(finding);
        if later(Verb::Unmounted).is_some() {
            continue;
        }
        let removed =
            story.all(view, &[Verb::PodRemoved, Verb::PodReleased]).find(|i| view.entry(*i).at > at);
        let attempt = of_volume(view, story, Verb::UnmountFailed, volume).rfind(|i| view.entry(*i).at >= at);
        let (text, mut evidence) = match (removed, attempt) {
            (Some(gone), attempt) => {
                let text =
                    format!("the pod left its source while {name} was still mounted, and nothing tracks it");
                (text, [Some(failure), attempt, Some(gone)].into_iter().flatten().collect::<Vec<_>>())
            }
            (None, Some(tried)) if view.end.since(view.entry(tried).at) > 5 * SECOND => (
                format!("{name} was to be cleaned up once, which failed, and is not tried again"),
                vec![failure, tried],
            ),
            (None, _) => continue,
        };
        evidence.sort_unstable();
        let mut finding = view.finding(Kind::VolumeOrphaned, Some(story.pod), &evidence, text);
        finding.instance = Some(name.clone());
        finding.confidence = finding.confidence.min(Confidence::Absent);
        report.findings.push(finding);
        if let Some(tried) = attempt {
            let text = format!(
                "the only unmount of {name} was the restart's own cleanup, not after its containers had ended"
            );
            note(report, "unmount-before-container-stop", text, &[tried]);
        }
    }
}

/// A directory that a failed removal had renamed, taken for a volume.
fn artifacts(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    let found: Vec<usize> = story.entries.iter().copied().filter(|i| view.entry(*i).artifact).collect();
    let (Some(first), Some(last)) = (found.first().copied(), found.last().copied()) else { return };
    let name = view.entry(first).volume.map(|v| view.trace.volume_name(v)).unwrap_or_default();
    let text =
        format!("a renamed directory of {name} (wrapped_*.deleting~*) was taken for a volume of its own");
    let mut finding = view.finding(Kind::ReconstructionArtifact, Some(story.pod), &[first, last], text);
    finding.instance = Some(name);
    finding.count = found.len() as u64;
    report.findings.push(finding);
}

/// The summary errors: only the first orphan of each is named (node-logs §2.7).
fn orphan_dirs(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    let errors: Vec<usize> = story.all(view, &[Verb::OrphanDirLeft]).collect();
    let (Some(first), Some(last)) = (errors.first().copied(), errors.last().copied()) else { return };
    let most = errors.iter().filter_map(|i| view.entry(*i).payload.hidden()).max().unwrap_or(1);
    let lasted = view.entry(last).at.since(view.entry(first).at);
    let cleaned =
        story.all(view, &[Verb::OrphanDirCleaned]).find(|i| view.entry(*i).at > view.entry(last).at);
    let text = format!(
        "the pod's directory can't be removed for {}, {} times in view; up to {most} orphans are behind one message",
        spoken(lasted),
        errors.len()
    );
    let mut evidence = vec![first, last];
    evidence.extend(cleaned);
    let mut finding = view.finding(Kind::OrphanedPodDir, Some(story.pod), &evidence, text);
    finding.resolved = cleaned.is_some();
    finding.count = errors.len() as u64;
    report.findings.push(finding);
}

/// A teardown that was reported, and a mount that is still there.
fn mismatch(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    const SETTLES: i64 = 2 * SECOND;
    for volume in volumes_with(view, story, Verb::Unmounted) {
        let Some(unmount) = of_volume(view, story, Verb::Unmounted, volume).next_back() else { continue };
        let at = view.entry(unmount).at;
        let mounted_again = of_volume(view, story, Verb::Mounted, volume).any(|i| view.entry(i).at >= at);
        if mounted_again {
            continue;
        }
        let mounts: Vec<usize> = of_volume(view, story, Verb::MountSeen, volume).collect();
        let Some(seen) = mounts.last().copied() else { continue };
        let listed = view.entry(seen).untimed;
        let gone = of_volume(view, story, Verb::MountGone, volume).next_back();
        let lives = match gone {
            Some(gone) => view.entry(gone).at.since(at) > SETTLES && view.entry(seen).at <= at,
            None => listed || (view.entry(seen).at <= at && view.end.since(at) > SETTLES),
        };
        if !lives {
            continue;
        }
        let name = volume.map(|v| view.trace.volume_name(v)).unwrap_or_default();
        let text = format!("{name} was reported unmounted, but the mount table still has it");
        let mut evidence = vec![seen, unmount];
        evidence.extend(gone);
        let mut finding = view.finding(Kind::DriverStateMismatch, Some(story.pod), &evidence, text);
        finding.instance = Some(name);
        report.findings.push(finding);
    }
    // A driver that has nothing to unpublish, and a kubelet that then finds the mount.
    for i in story.all(view, &[Verb::DriverNothingToDo]) {
        let trouble = story
            .all(
                view,
                &[
                    Verb::UnmountFailed,
                    Verb::VolumesLeft,
                    Verb::OrphanVolumesLeft,
                    Verb::OrphanDirLeft,
                    Verb::MountSeen,
                ],
            )
            .find(|t| view.entry(*t).at > view.entry(i).at || view.entry(*t).untimed);
        if let Some(trouble) = trouble {
            let name = view.entry(i).volume.map(|v| view.trace.volume_name(v)).unwrap_or_default();
            let text = format!(
                "the driver says that there is nothing to unpublish for {name}, but it is still mounted"
            );
            let mut finding = view.finding(Kind::DriverStateMismatch, Some(story.pod), &[i, trouble], text);
            finding.instance = Some(name);
            report.findings.push(finding);
            break;
        }
    }
}

/// Volumes that the pod waits for in vain.
fn waiting(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    let timeouts: Vec<usize> = story.all(view, &[Verb::VolumesTimedOut]).collect();
    let (Some(first), Some(last)) = (timeouts.first().copied(), timeouts.last().copied()) else { return };
    let at = view.entry(last).at;
    let came = story
        .all(
            view,
            &[Verb::VolumesReady, Verb::ContainerStarted, Verb::ContainerRunning, Verb::SandboxCreated],
        )
        // Rows that say only how long ago: that the containers came at all is what they tell.
        .find(|i| view.entry(*i).at > at || view.entry(last).untimed);
    let names = view.entry(last).payload.names().join(" ");
    let names = if names.is_empty() { "its volumes".to_owned() } else { names };
    if let Some(came) = came {
        note(
            report,
            "volume-wait",
            format!("the pod waited long for {names}; they came later"),
            &[first, last, came],
        );
        return;
    }
    let text = format!("waits for {names} and timed out {} times", timeouts.len());
    let mut finding = view.finding(Kind::VolumeWaitStuck, Some(story.pod), &[first, last], text);
    finding.count = timeouts.len() as u64;
    report.findings.push(finding);
}

/// Mounts again and again, and stages what is staged already.
fn loops(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    const OFTEN: usize = 4;
    for volume in volumes_with(view, story, Verb::DeviceMounted).into_iter().chain(volumes_with(
        view,
        story,
        Verb::Mounted,
    )) {
        // Content of secrets and the like is refreshed by mounting again; a CSI volume or device is not.
        let csi = volume.is_some_and(|v| {
            let v = view.trace.volume(v);
            v.unique.as_deref().is_some_and(|u| !crate::klog::has_own_volume(u.as_bytes()))
        });
        let ends = [Verb::Unmounted, Verb::DeviceUnmounted];
        let mounts: Vec<usize> = story
            .entries
            .iter()
            .copied()
            .filter(|i| {
                let e = view.entry(*i);
                e.volume == volume
                    && e.witness == Witness::Kubelet
                    && matches!(e.verb, Verb::DeviceMounted | Verb::Mounted)
            })
            .collect();
        let once = |verb: Verb| mounts.iter().filter(|i| view.entry(**i).verb == verb).count();
        let unmounted = story.all(view, &ends).any(|i| view.entry(i).volume == volume);
        let n = once(Verb::DeviceMounted).max(once(Verb::Mounted));
        if csi
            && n >= OFTEN
            && !unmounted
            && !report.findings.iter().any(|f| f.kind == Kind::MountLoop && f.pod == Some(story.pod))
        {
            let name = volume.map(|v| view.trace.volume_name(v)).unwrap_or_default();
            let text = format!("{name} was mounted {n} times without an unmount between");
            let evidence = [mounts[0], mounts[mounts.len() - 1]];
            let mut finding = view.finding(Kind::MountLoop, Some(story.pod), &evidence, text);
            finding.instance = Some(name);
            finding.count = n as u64;
            report.findings.push(finding);
        }
    }
    let restage = |i: &usize| {
        let text = view.entry(*i).payload.text().map(|t| t.to_string()).unwrap_or_default();
        let staging = ["MountDevice", "NodeStage", "stage"].iter().any(|w| text.contains(w));
        staging && ["already mounted", "mount point busy", "already exists"].iter().any(|w| text.contains(w))
    };
    let restarted = view.trace.runs.iter().any(|r| r.started) || view.trace.runs.len() > 1;
    if let Some(i) = story.all(view, &[Verb::MountFailed]).find(restage)
        && restarted
    {
        let text =
            "after a restart the device was to be staged on a path where it is mounted already".to_owned();
        let finding = view.finding(Kind::RestageAfterRestart, Some(story.pod), &[i], text);
        report.findings.push(finding);
    }
}
