//! S3: mount, pull, create and resize only what was allocated, as it was allocated; after an instance's removal was
//! allocated, no further mount, refresh, create or start of it.
//!
//! Commands that carry the allocation are held against it. A pull or a resize carries none: it is held against every
//! version that may be allocated, and rules out the others (B25: a refused resize applied by a restart).

use super::{Record, breach};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::allocation::{AllocationView, Fit};
use crate::world_view::commands::carried_allocation;
use crate::world_view::container::find_container;
use crate::world_view::pod::PodView;
use nodefold_core::command::{Action, Command, MountedVolume, Subject};
use nodefold_core::ids::{ContainerId, VolumeId};
use nodefold_core::spec::{Container, Pod, PodSpec, Volume};
use nodefold_core::status::{ConditionKind, PodStatus};
use std::sync::Arc;

pub(super) fn judge(world: &WorldView, record: &Record<'_>, command: &Command, out: &mut Vec<Violation>) {
    let pod = world.pods.get(&command.pod);
    let mut report = |subject: Subject, explanation: String, evidence: &[usize]| {
        out.push(breach(Invariant::S3, record, command.pod, Some(subject), explanation, evidence));
    };
    if let (Some(pod), Some(allocated)) = (pod, carried_allocation(&command.action))
        && let Fit::RuledOut { by } = pod.allocation.fit(allocated)
    {
        let explanation = format!(
            "record {by} acted on a desired version that was not allocated: this command shows the former allocation \
             still in force"
        );
        report(Subject::Pod, explanation, &[by]);
    }
    match &command.action {
        Action::MountVolume { volume, spec, allocated, .. } => {
            volume_as_allocated(pod, "mounted", volume, spec, allocated, &mut report);
        }
        Action::RefreshVolume { volume, spec, allocated, .. } => {
            volume_as_allocated(pod, "refreshed", volume, spec, allocated, &mut report);
        }
        Action::CreateContainer { container, spec, mounts, pod: applied, allocated, .. } => {
            if let Some(found) = created_as_allocated(pod, container, spec, mounts, applied, allocated) {
                report(Subject::Container(container.clone()), found, &[]);
            }
            container_kept(pod, "created", container, &mut report);
        }
        Action::StartContainer { container } => container_kept(pod, "started", container, &mut report),
        Action::PullImage { container, image, .. } => {
            let Some(pod) = pod.filter(|p| !p.allocation.unknown()) else { return };
            if pod.allocation.first_with(&container.name, |c| c.image == *image).is_none() {
                let explanation = format!(
                    "image {image} is pulled for container {container}, and no version that may be allocated has it"
                );
                report(Subject::Container(container.clone()), explanation, &last_shown(&pod.allocation));
            }
        }
        Action::ResizeContainer { container, resources } => {
            let Some(pod) = pod.filter(|p| !p.allocation.unknown()) else { return };
            if pod.allocation.first_with(&container.name, |c| c.resources == *resources).is_none() {
                let explanation = format!(
                    "container {container} is resized to resources that no version that may be allocated has"
                );
                report(Subject::Container(container.clone()), explanation, &last_shown(&pod.allocation));
            }
        }
        Action::PublishStatus { status, .. } => {
            if let Some(pod) = pod {
                resized_while_pending(pod, status, &mut report);
            }
        }
        Action::UnmountVolume { .. }
        | Action::CreateSandbox { .. }
        | Action::StopSandbox { .. }
        | Action::RemoveSandbox { .. }
        | Action::StopContainer { .. }
        | Action::KillContainer { .. }
        | Action::RemoveContainer { .. }
        | Action::ResizePod { .. }
        | Action::RunHook { .. }
        | Action::StartProbe { .. }
        | Action::StopProbe { .. }
        | Action::ObserveMounts
        | Action::ObserveRuntime
        | Action::RecordEvent(_)
        | Action::ReleasePod
        | Action::CreateMirror { .. }
        | Action::DeleteMirror { .. } => {}
    }
}

/// The node itself says that the wish pends, and shows other resources allocated than it resized to since the wish came.
fn resized_while_pending(
    pod: &PodView,
    status: &PodStatus,
    report: &mut impl FnMut(Subject, String, &[usize]),
) {
    let pends = status.conditions.iter().any(|c| c.kind == ConditionKind::PodResizePending && c.status);
    let Some(wish) = pod.applied.as_ref().filter(|w| pends && status.observed_generation >= w.generation)
    else {
        return;
    };
    for row in &status.containers {
        let Some(view) = row.id.as_ref().and_then(|id| pod.container(id)) else { continue };
        let Some((index, requests)) = view.resized.as_ref().filter(|(index, _)| *index > pod.applied_index)
        else {
            continue;
        };
        let wished = wish.spec.container(&row.name).is_some_and(|c| c.resources.requests == *requests);
        if wished && row.allocated_resources != *requests {
            let explanation =
                format!("container {} is resized to what is wished while that is shown as pending", view.id);
            report(Subject::Container(view.id.clone()), explanation, &[pod.applied_index, *index]);
        }
    }
}

fn last_shown(allocation: &AllocationView) -> Vec<usize> {
    let shown = allocation.shown.as_ref().map(|(index, _)| *index);
    shown.or(allocation.versions.last().map(|v| v.index)).into_iter().collect()
}

fn volume_as_allocated(
    pod: Option<&PodView>,
    verb: &str,
    volume: &VolumeId,
    spec: &Arc<Volume>,
    allocated: &PodSpec,
    report: &mut impl FnMut(Subject, String, &[usize]),
) {
    let subject = || Subject::Volume(volume.clone());
    let view = pod.and_then(|p| p.volume(volume));
    match allocated.volume(&volume.name) {
        None => report(
            subject(),
            format!("volume {volume} is {verb} although the allocation has no such volume"),
            &[],
        ),
        Some(own) if own != spec => {
            report(
                subject(),
                format!("volume {volume} is {verb} from another source than the allocated one"),
                &[],
            );
        }
        Some(_) => {
            if let Some(removed) = view.and_then(|v| v.removed) {
                report(
                    subject(),
                    format!("volume {volume} is {verb} after its removal was allocated"),
                    &[removed],
                );
            }
        }
    }
}

fn created_as_allocated(
    pod: Option<&PodView>,
    container: &ContainerId,
    spec: &Arc<Container>,
    mounts: &[MountedVolume],
    applied: &Pod,
    allocated: &PodSpec,
) -> Option<String> {
    let ephemeral =
        |spec: &PodSpec| spec.ephemeral_containers.iter().find(|c| c.name == container.name).cloned();
    let own = find_container(allocated, &container.name).map(|(c, _)| c.clone());
    // Ephemeral containers bypass allocation.
    let own = own.or_else(|| ephemeral(allocated)).or_else(|| ephemeral(&applied.spec));
    let Some(own) = own else {
        return Some(format!(
            "container {container} is created although the allocation has no such container"
        ));
    };
    let bypass = pod.is_some_and(|p| p.allocation.images_bypass && p.allocation.same_container(&own, spec));
    if own != *spec && !bypass {
        return Some(format!(
            "container {container} is created by another definition than the allocated one"
        ));
    }
    let as_given = mounts.len() == spec.mounts.len()
        && mounts.iter().zip(&spec.mounts).all(|(m, given)| m.mount == *given && m.volume.name == given.name);
    if !as_given {
        return Some(format!("container {container} is created with other mounts than its definition has"));
    }
    mounts.iter().find_map(|m| {
        let view = pod.and_then(|p| p.volume(&m.volume))?;
        let made_from = view.spec.as_ref()?;
        let stale = view.removed.is_some() || allocated.volume(&m.volume.name) != Some(made_from);
        stale.then(|| {
            format!(
                "container {container} is created with volume {}, which is not the allocated instance",
                m.volume
            )
        })
    })
}

fn container_kept(
    pod: Option<&PodView>,
    verb: &str,
    container: &ContainerId,
    report: &mut impl FnMut(Subject, String, &[usize]),
) {
    let removed = pod.and_then(|p| p.container(container)).and_then(|c| c.removed);
    let newer = || {
        pod.and_then(|p| {
            p.containers
                .iter()
                .find(|c| c.id.name == container.name && c.id.incarnation > container.incarnation)
        })
    };
    if let Some(removed) = removed.or_else(|| newer().map(|c| c.born)) {
        let explanation = format!("container {container} is {verb} after its removal was allocated");
        report(Subject::Container(container.clone()), explanation, &[removed]);
    }
}
