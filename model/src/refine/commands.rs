//! What a node says is what it does: each command of a step is the command of a move that was made in it, and each move
//! that needs a command has one.

use super::abstraction::{Container, PodView};
use crate::spec::container::Life;
use crate::spec::pod::Pod;
use crate::spec::sandbox::Sandbox;
use crate::spec::volume::Volume;
use nodefold_core::command::{Action, Command};
use nodefold_core::ids::{ContainerId, VolumeId};
use std::sync::Arc;

/// Judges a pod's commands of one step; what is wrong with the first that is.
pub(super) fn judge(before: &PodView, after: &PodView, commands: &[&Command]) -> Result<(), String> {
    for command in commands {
        backed(after, command)?;
        as_allocated(after, command)?;
    }
    said(before, after, commands)
}

/// A command is backed by the state that it leaves its thing in.
fn backed(after: &PodView, command: &Command) -> Result<(), String> {
    let verb = command.action.verb();
    let volume = |id: &VolumeId, wanted: Volume| {
        let life = after.volumes.iter().find(|v| v.id == *id).map_or(Volume::Absent, |v| v.life);
        right(life == wanted, || format!("{verb} of volume {id} is commanded, and the node has it {life:?}"))
    };
    let container = |id: &ContainerId, permits: fn(&Container) -> bool| {
        let found = after.containers.iter().find(|c| c.name == id.name && c.incarnation == id.incarnation);
        let life = found.filter(|c| c.life.may_run() && c.attempt == id.attempt);
        let so = life.is_some_and(permits);
        let has = life.map_or(Life::None, |c| c.life);
        right(so, || format!("{verb} of container {id} is commanded, and the node has it {has:?}"))
    };
    let sandbox = |attempt: u32, wanted: Sandbox| {
        let has = after.sandboxes.iter().find(|(a, _)| *a == attempt).map_or(Sandbox::None, |(_, s)| *s);
        right(has == wanted, || {
            format!("{verb} of sandbox {attempt} is commanded, and the node has it {has:?}")
        })
    };
    match &command.action {
        Action::MountVolume { volume: id, .. } => volume(id, Volume::Mounting),
        Action::UnmountVolume { volume: id, .. } => volume(id, Volume::Unmounting),
        Action::RefreshVolume { volume: id, .. } => volume(id, Volume::Refreshing),
        Action::CreateContainer { container: id, .. } => container(id, |c| c.life == Life::Creating),
        Action::StartContainer { container: id } => container(id, |c| c.life == Life::Starting),
        Action::StopContainer { container: id, .. } => container(id, |c| c.doomed),
        Action::KillContainer { .. } if after.surplus => Ok(()),
        Action::KillContainer { container: id } => container(id, |c| c.doomed),
        Action::RemoveContainer { container: id } => {
            let lives = |c: &&Container| {
                c.name == id.name
                    && c.incarnation == id.incarnation
                    && c.attempt == id.attempt
                    && c.life.may_run()
            };
            match after.containers.iter().find(lives) {
                Some(_) => container(id, |c| c.life == Life::Discarding),
                None => Ok(()),
            }
        }
        Action::CreateSandbox { attempt, .. } => sandbox(*attempt, Sandbox::Creating),
        Action::StopSandbox { attempt } => sandbox(*attempt, Sandbox::Stopping),
        Action::RemoveSandbox { attempt } => sandbox(*attempt, Sandbox::Removing),
        Action::ReleasePod => right(after.life == Pod::Releasing, || {
            format!("release of the pod is commanded, and the node has it {:?}", after.life)
        }),
        // They move nothing that the specification speaks of.
        Action::PullImage { .. }
        | Action::ResizeContainer { .. }
        | Action::ResizePod { .. }
        | Action::RunHook { .. }
        | Action::StartProbe { .. }
        | Action::StopProbe { .. }
        | Action::ObserveMounts
        | Action::ObserveRuntime
        | Action::CreateMirror { .. }
        | Action::DeleteMirror { .. }
        | Action::PublishStatus { .. }
        | Action::RecordEvent(_) => Ok(()),
    }
}

/// What a command carries of the allocation is what is allocated, as it is allocated (S3, S4).
fn as_allocated(after: &PodView, command: &Command) -> Result<(), String> {
    let verb = command.action.verb();
    if let Action::MountVolume { allocated, .. }
    | Action::RefreshVolume { allocated, .. }
    | Action::CreateSandbox { allocated, .. }
    | Action::CreateContainer { allocated, .. } = &command.action
    {
        let is = after
            .spec
            .as_ref()
            .is_some_and(|spec| Arc::ptr_eq(spec.arc(), allocated) || **spec.arc() == **allocated);
        right(is, || format!("{verb} is commanded for an allocation that the pod does not have"))?;
    }
    if let Action::CreateContainer { container: id, spec, .. } = &command.action {
        let made = after.containers.iter().find(|c| c.name == id.name && c.incarnation == id.incarnation);
        right(made.is_some_and(|c| c.mounts.are_of(spec)), || {
            format!("{verb} of container {id} is commanded by another definition than is allocated")
        })?;
    }
    Ok(())
}

/// What has begun in this step was commanded in it.
fn said(before: &PodView, after: &PodView, commands: &[&Command]) -> Result<(), String> {
    for volume in &after.volumes {
        let verb = match volume.life {
            Volume::Mounting => "mount",
            Volume::Unmounting => "unmount",
            Volume::Refreshing => "refresh",
            Volume::Absent | Volume::Pending | Volume::Mounted | Volume::Failed | Volume::Uncertain => {
                continue;
            }
        };
        let began = before.volumes.iter().find(|v| v.id == volume.id).is_none_or(|v| v.life != volume.life);
        let commanded = |c: &&Command| c.action.verb() == verb && c.action.volume() == Some(&volume.id);
        right(!began || commands.iter().any(commanded), || {
            format!("volume {} is {:?}, and nothing was commanded", volume.id, volume.life)
        })?;
    }
    for container in &after.containers {
        let verb = match container.life {
            Life::Creating => "create",
            Life::Starting => "start",
            Life::Discarding => "remove",
            Life::None | Life::Created | Life::Running | Life::Unknown | Life::Lost => continue,
        };
        let same = |c: &&Container| c.name == container.name && c.incarnation == container.incarnation;
        let was = before.containers.iter().find(same);
        let began = was.is_none_or(|c| c.life != container.life || c.attempt != container.attempt);
        let is = |id: &ContainerId| {
            id.name == container.name
                && id.incarnation == container.incarnation
                && id.attempt == container.attempt
        };
        let commanded = |c: &&Command| c.action.verb() == verb && c.action.container().is_some_and(is);
        right(!began || commands.iter().any(commanded), || {
            format!("container {} is {:?}, and nothing was commanded", container.name, container.life)
        })?;
    }
    Ok(())
}

fn right(so: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if so { Ok(()) } else { Err(why()) }
}
