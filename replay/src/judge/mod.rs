//! The judge: which invariant was broken, by which lines that is known, and how sure it is (node-logs §5).
//!
//! One file per family of rules. A rule reads the story of one pod, or of the node, and may look ahead: late observation
//! is the usual reason why something only seems wrong. What the evidence can't prove is a note, never a finding.

mod containers;
mod endings;
mod grouped;
mod kind;
mod listing;
mod node;
mod report;
mod statics;
mod story;
mod unmounts;
mod volumes;

pub use kind::Kind;
pub use report::{Finding, Note, Report, rfc3339};
pub use story::View;

use crate::trace::Trace;
use story::Story;

/// Judges a trace, or what is left of it.
pub fn judge(trace: &Trace) -> Report {
    rest(trace, false)
}

/// Judges what is left of a trace. `waits_told`: a pod that was judged before waited for its volumes in vain.
pub fn rest(trace: &Trace, waits_told: bool) -> Report {
    let view = View::new(trace);
    let mut report = Report::default();
    for story in view.stories() {
        of_pod(&view, &story, &mut report);
    }
    statics::judge(&view, &mut report);
    node::judge(&view, waits_told, &mut report);
    listing::judge(&view, &mut report);
    settle(&view, &mut report);
    report
}

/// Judges stories that are over and that no rule across stories asks for.
pub fn over(trace: &Trace) -> Report {
    let view = View::new(trace);
    let mut report = Report::default();
    for story in view.stories() {
        of_pod(&view, &story, &mut report);
        listing::remains(&view, &story, &mut report);
    }
    node::stops(&view, &mut report);
    settle(&view, &mut report);
    report
}

fn of_pod(view: &View<'_>, story: &Story<'_>, report: &mut Report) {
    volumes::judge(view, story, report);
    unmounts::judge(view, story, report);
    containers::judge(view, story, report);
    endings::judge(view, story, report);
}

/// Orders findings; what a more exact finding explains is told once.
fn settle(view: &View<'_>, report: &mut Report) {
    let explained =
        |a: &Finding, by: Kind, all: &[Finding]| all.iter().any(|f| f.kind == by && f.pod == a.pod);
    let all = report.findings.clone();
    let by = [
        // A volume that a restart could not rebuild fails to unmount because of that.
        (Kind::UnmountFailed, Kind::ReconstructionFailed),
        // Of a pod that was never let start, and one that holds its name, the block says all.
        (Kind::StuckTerminating, Kind::StaticReplacementBlocked),
        // A container that was made too late runs for a pod that is gone: one story.
        (Kind::UnknownPodContainer, Kind::CreatedAfterDelete),
    ];
    report.findings.retain(|f| !by.iter().any(|(kind, cause)| f.kind == *kind && explained(f, *cause, &all)));
    in_order(view.trace, &mut report.findings);
}

/// Puts findings into the order of what they are about, whatever numbers the trace gave its entries.
pub fn in_order(trace: &Trace, findings: &mut [Finding]) {
    findings.sort_by_cached_key(|f| {
        let place = |i: &usize| trace.entries.get(*i).map(|e| (e.untimed, e.at, e.file, e.line));
        (f.at, f.kind, f.evidence.iter().map(place).collect::<Vec<_>>())
    });
}
