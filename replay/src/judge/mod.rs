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

/// Judges a trace.
pub fn judge(trace: &Trace) -> Report {
    let view = View::new(trace);
    let mut report = Report::default();
    for story in view.stories() {
        volumes::judge(&view, &story, &mut report);
        unmounts::judge(&view, &story, &mut report);
        containers::judge(&view, &story, &mut report);
        endings::judge(&view, &story, &mut report);
    }
    statics::judge(&view, &mut report);
    node::judge(&view, &mut report);
    listing::judge(&view, &mut report);
    settle(&mut report);
    report
}

/// Orders findings; what a more exact finding explains is told once.
fn settle(report: &mut Report) {
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
    report.findings.sort_by(|a, b| (a.at, a.kind, &a.evidence).cmp(&(b.at, b.kind, &b.evidence)));
}
