//! S4: the allocation-gated fields of allocated always equal those of one desired spec as a whole; never a mixture.
//!
//! As far as a trace shows it: whenever a command carries an allocation that differs from the one before, it must be one
//! of the desired versions that arrived since the former one's (the latest wins, so none older comes back).

use super::{Record, breach};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::allocation::{AllocationView, Fit, same_volumes};
use crate::world_view::commands::carried_allocation;
use nodefold_core::command::{Command, Subject};
use nodefold_core::spec::PodSpec;

pub(super) fn judge(world: &WorldView, record: &Record<'_>, command: &Command, out: &mut Vec<Violation>) {
    let Some(allocated) = carried_allocation(&command.action) else { return };
    let Some(pod) = world.pods.get(&command.pod) else { return };
    match pod.allocation.fit(allocated) {
        Fit::NoVersion => {}
        Fit::Unchanged | Fit::Version(_) | Fit::RuledOut { .. } | Fit::Unknown => return,
    }
    let (explanation, evidence) = describe(&pod.allocation, allocated);
    out.push(breach(Invariant::S4, record, command.pod, Some(Subject::Pod), explanation, &evidence));
}

/// Names the versions that the parts come from, if each part is somebody's.
fn describe(allocation: &AllocationView, allocated: &PodSpec) -> (String, Vec<usize>) {
    let containers = allocation.versions.iter().find(|v| allocation.same_containers(&v.spec, allocated));
    let volumes = allocation.versions.iter().find(|v| same_volumes(&v.spec, allocated));
    match (containers, volumes) {
        (Some(a), Some(b)) if a.index != b.index => (
            format!(
                "the allocation mixes two desired specs: its containers are those of record {}, its volumes those of \
                 record {}",
                a.index, b.index
            ),
            vec![a.index, b.index],
        ),
        (Some(_) | None, Some(_) | None) => (
            "the allocation equals no desired spec that arrived since the one allocated before".to_owned(),
            allocation.versions.last().map(|v| v.index).into_iter().collect(),
        ),
    }
}
