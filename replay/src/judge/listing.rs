//! What a listing of the runtime shows against everything else: leaks (races B7; node-logs rows 13 to 15).

use super::kind::Kind;
use super::report::Report;
use super::story::{Story, View, note};
use crate::evidence::Witness;
use crate::stamp::SECOND;
use crate::trace::PodIx;
use crate::verb::Verb;
use std::collections::BTreeMap;

/// Judges listings.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "names the few verbs it reads; the others say nothing to it"
)]
pub fn judge(view: &View<'_>, report: &mut Report) {
    let listed = |i: &usize| view.entry(*i).witness == Witness::RuntimeList;
    let mut dead: BTreeMap<PodIx, Vec<usize>> = BTreeMap::new();
    twice(view, report);
    for i in (0..view.entries.len()).filter(listed) {
        let entry = view.entry(i);
        let Some(pod) = entry.pod else { continue };
        let story = view.story(pod);
        let gone = gone(view, &story);
        match entry.verb {
            Verb::SandboxRunning | Verb::SandboxDead => {
                if entry.verb == Verb::SandboxDead {
                    dead.entry(pod).or_default().push(i);
                }
                if let Some(gone) = gone {
                    let text = format!(
                        "{} is still listed though the pod is gone",
                        entry.container.map(|c| view.trace.container_name(c)).unwrap_or_default()
                    );
                    report.findings.push(view.finding(Kind::SandboxLeak, Some(pod), &[gone, i], text));
                }
            }
            Verb::ContainerRunning => {
                let unknown = gone.or_else(|| not_in_api(view, pod));
                if let Some(proof) = unknown {
                    let text = format!(
                        "{} runs though its pod is gone",
                        entry.container.map(|c| view.trace.container_name(c)).unwrap_or_default()
                    );
                    report.findings.push(view.finding(
                        Kind::UnknownPodContainer,
                        Some(pod),
                        &[proof, i],
                        text,
                    ));
                }
            }
            _ => {}
        }
    }
    for (pod, sandboxes) in dead {
        // One dead sandbox is kept for its pod; more wait for a collection that doesn't come.
        if sandboxes.len() >= 2
            && !report.findings.iter().any(|f| f.kind == Kind::SandboxLeak && f.pod == Some(pod))
        {
            let text = format!("{} dead sandboxes of one pod are listed", sandboxes.len());
            let mut finding = view.finding(Kind::SandboxLeak, Some(pod), &sandboxes, text);
            finding.count = sandboxes.len() as u64;
            report.findings.push(finding);
        }
    }
    for story in view.stories() {
        remains(view, &story, report);
    }
}

/// Judges what a pod's own story shows of it after its end.
pub fn remains(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    started_after_removal(view, story, report);
    sandbox_left(view, story, report);
}

/// One listing that shows two instances of a container name of one pod, both running.
fn twice(view: &View<'_>, report: &mut Report) {
    let mut running: BTreeMap<(u64, PodIx, &str), Vec<usize>> = BTreeMap::new();
    for (i, entry) in view.entries.iter().enumerate() {
        // A row without a head may be of any listing.
        let listed = entry.witness == Witness::RuntimeList && entry.verb == Verb::ContainerRunning;
        if let (true, Some(pod), Some(c)) = (listed && entry.pid != 0, entry.pod, entry.container)
            && let Some(name) = view.trace.container(c).name.as_deref()
        {
            running.entry((entry.pid, pod, name)).or_default().push(i);
        }
    }
    for ((_, pod, name), rows) in running {
        let first = view.entry(rows[0]).container;
        let Some(other) = rows.iter().find(|i| view.entry(**i).container != first) else { continue };
        let told = |f: &super::Finding| f.kind == Kind::DuplicateContainer && f.pod == Some(pod);
        if report.findings.iter().any(told) {
            continue;
        }
        let text = format!("a listing shows two instances of container {name} running");
        let mut finding = view.finding(Kind::DuplicateContainer, Some(pod), &[rows[0], *other], text);
        finding.instance = Some(format!("container {name}"));
        report.findings.push(finding);
    }
}

fn gone(view: &View<'_>, story: &Story<'_>) -> Option<usize> {
    let gone = story.last(view, &[Verb::PodRemoved, Verb::PodReleased, Verb::PodDeleted])?;
    let again =
        story.all(view, &[Verb::PodAdded, Verb::PodApplied]).any(|i| view.entry(i).at > view.entry(gone).at);
    (!again).then_some(gone)
}

/// The API's list, if there is one, doesn't have the pod: its first object stands for it.
fn not_in_api(view: &View<'_>, pod: PodIx) -> Option<usize> {
    let story = view.story(pod);
    let api = |i: usize| view.entry(i).witness == Witness::Api;
    if story.entries.iter().any(|i| api(*i)) {
        return None;
    }
    // Static pods have another UID in the API: their mirror's.
    if view.trace.pod(pod).is_static {
        return None;
    }
    view.first_object
}

/// A container that is started for a pod that its source had already taken away.
fn started_after_removal(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    let Some(removed) = gone(view, story) else { return };
    let at = view.entry(removed).at;
    if view.entry(removed).coarse {
        return;
    }
    let started = story.all(view, &[Verb::ContainerStarted]).find(|i| {
        let e = view.entry(*i);
        e.at.since(at) > 5 * SECOND && !e.coarse && !e.untimed && e.witness != Witness::Events
    });
    if let Some(i) = started {
        let text = "a container was started long after its pod had left the source".to_owned();
        report.findings.push(view.finding(Kind::UnknownPodContainer, Some(story.pod), &[removed, i], text));
    }
}

/// A sandbox that the log never shows removed: without a listing that is no proof (node-logs §5).
fn sandbox_left(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    let runtime_speaks = story.entries.iter().any(|i| view.entry(*i).witness == Witness::Runtime);
    let Some(gone) = gone(view, story).filter(|_| runtime_speaks) else { return };
    let sandbox = story.first(view, &[Verb::SandboxCreated]);
    let removed = story.first(view, &[Verb::SandboxRemoved, Verb::RemoveStarted]);
    if let (Some(sandbox), None) = (sandbox, removed)
        && view.end.since(view.entry(gone).at) > 120 * SECOND
    {
        let text = "the runtime's log doesn't show the sandbox removed; a listing would tell whether it is still there".to_owned();
        note(report, "sandbox-perhaps-left", text, &[sandbox, gone]);
    }
}
