//! S11: mounts of a running container change only under `RestartContainer`, and only by a new instance (KEP-6395).

use super::deed::Deed;
use super::{Record, breach};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::container::{Role, find_container};
use crate::world_view::pod::PodView;
use nodefold_core::command::{Command, MountedVolume, Rule, Subject};
use nodefold_core::ids::ContainerId;
use nodefold_core::spec::{Container, VolumeMount};
use nodefold_core::status::{ContainerState, ContainerStatus, PodStatus};

pub(super) fn judge(world: &WorldView, record: &Record<'_>, command: &Command, out: &mut Vec<Violation>) {
    let Some(pod) = world.pods.get(&command.pod) else { return };
    match Deed::of(&command.action) {
        Deed::Stops { container, .. } | Deed::Kills(container) => {
            if command.cause.rule == Rule::MountsChanged {
                out.extend(stopped_without_leave(pod, record, command, container));
            }
        }
        Deed::Creates { container, spec, mounts } => {
            out.extend(remounted_without_leave(pod, record, command, container, spec, mounts));
        }
        Deed::Tells(status) => out.extend(shown_to_have_changed(pod, record, command, status)),
        Deed::Mounts(_) | Deed::MakesSandbox { .. } | Deed::Starts(_) | Deed::Else => {}
    }
}

fn stopped_without_leave(
    pod: &PodView,
    record: &Record<'_>,
    command: &Command,
    container: &ContainerId,
) -> Option<Violation> {
    let view = pod.container(container)?;
    let own = view.spec.as_ref()?;
    let permitted = own.restart_on_mount_change
        || pod
            .allocation
            .possible()
            .any(|s| find_container(s, &container.name).is_some_and(|(c, _)| c.restart_on_mount_change));
    (!permitted && view.may_run()).then(|| {
        let explanation = format!(
            "container {container} is stopped for a change of its mounts although its policy is not RestartContainer"
        );
        let subject = Some(Subject::Container(container.clone()));
        breach(Invariant::S11, record, command.pod, subject, explanation, &[view.born])
    })
}

/// A new attempt of the same incarnation has other mounts, and neither definition permits that.
fn remounted_without_leave(
    pod: &PodView,
    record: &Record<'_>,
    command: &Command,
    container: &ContainerId,
    spec: &Container,
    mounts: &[MountedVolume],
) -> Option<Violation> {
    let former = pod
        .containers
        .iter()
        .filter(|c| c.id.name == container.name && c.id.incarnation == container.incarnation)
        .filter(|c| c.id.attempt < container.attempt && c.started.is_some())
        .max_by_key(|c| c.id.attempt)?;
    let own = former.spec.as_ref()?;
    let permitted = own.restart_on_mount_change || spec.restart_on_mount_change;
    // What is mounted where, in whatever order it is listed.
    let same = former.mounts.as_ref().is_none_or(|before| {
        before.len() == mounts.len() && before.iter().all(|mount| mounts.contains(mount))
    });
    (!permitted && !same && former.role != Role::Ephemeral).then(|| {
        let explanation = format!(
            "container {container} is created with other mounts than {} had although its policy is not RestartContainer",
            former.id
        );
        let subject = Some(Subject::Container(container.clone()));
        breach(Invariant::S11, record, command.pod, subject, explanation, &[former.born])
    })
}

fn shown_to_have_changed(
    pod: &PodView,
    record: &Record<'_>,
    command: &Command,
    status: &PodStatus,
) -> Option<Violation> {
    status.init_containers.iter().chain(&status.containers).find_map(|row| {
        let id = running_instance(row)?;
        let view = pod.container(id)?;
        let mounts = view.mounts.as_ref()?;
        let same = mounts.len() == row.mounts.len()
            && mounts.iter().zip(&row.mounts).all(|(made, shown)| same_place(&made.mount, shown));
        (!same).then(|| {
            let explanation =
                format!("running container {id} is shown with other mounts than it was created with");
            breach(
                Invariant::S11,
                record,
                command.pod,
                Some(Subject::Container(id.clone())),
                explanation,
                &[view.born],
            )
        })
    })
}

fn running_instance(row: &ContainerStatus) -> Option<&ContainerId> {
    match &row.state {
        ContainerState::Running { .. } => row.id.as_ref(),
        ContainerState::Waiting { .. } | ContainerState::Terminated(_) => None,
    }
}

fn same_place(a: &VolumeMount, b: &VolumeMount) -> bool {
    (&a.name, &a.mount_path, a.read_only) == (&b.name, &b.mount_path, b.read_only)
}
