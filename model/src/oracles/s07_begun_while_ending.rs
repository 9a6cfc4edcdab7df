//! S7: nothing is allocated, created or started after termination began (B1, B5, B7).
//!
//! Termination begins with a deletion, with the pod's disappearance from its source, with a terminal phase, or when the
//! node itself begins to end the pod. A pod asked for again meanwhile begins a new life once this one is over (B6).

use super::deed::Deed;
use super::{Record, breach};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::allocation::Fit;
use crate::world_view::commands::carried_allocation;
use nodefold_core::command::{Command, Subject};

pub(super) fn judge(world: &WorldView, record: &Record<'_>, command: &Command, out: &mut Vec<Violation>) {
    let begun = match Deed::of(&command.action) {
        Deed::MakesSandbox { attempt, .. } => {
            Some((Subject::Sandbox(attempt), format!("sandbox {attempt} is created")))
        }
        Deed::Creates { container, .. } => {
            Some((Subject::Container(container.clone()), format!("container {container} is created")))
        }
        Deed::Starts(container) => {
            Some((Subject::Container(container.clone()), format!("container {container} is started")))
        }
        Deed::Mounts(_) | Deed::Stops { .. } | Deed::Kills(_) | Deed::Tells(_) | Deed::Else => None,
    };
    let Some(pod) = world.pods.get(&command.pod) else {
        if let (Some((subject, what)), Some(forgotten)) = (begun, world.tombstones.get(&command.pod)) {
            let forgotten = &forgotten.index;
            let explanation = format!("{what} although the pod is gone since record {forgotten}");
            out.push(breach(Invariant::S7, record, command.pod, Some(subject), explanation, &[*forgotten]));
        }
        return;
    };
    let Some(termination) = pod.termination else { return };
    if let Some((subject, what)) = begun {
        let explanation = format!("{what} after termination began ({})", termination.cause);
        out.push(breach(
            Invariant::S7,
            record,
            command.pod,
            Some(subject),
            explanation,
            &[termination.index],
        ));
    }
    if let Some(allocated) = carried_allocation(&command.action)
        && let Fit::Version(place) = pod.allocation.fit(allocated)
        && let Some(version) = pod.allocation.versions.get(place)
        && version.index > termination.index
    {
        let explanation = format!(
            "the spec of record {} is allocated, which arrived after termination began ({})",
            version.index, termination.cause
        );
        let evidence = [termination.index, version.index];
        out.push(breach(Invariant::S7, record, command.pod, Some(Subject::Pod), explanation, &evidence));
    }
}
