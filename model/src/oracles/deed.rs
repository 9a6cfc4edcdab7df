//! What a command does to containers' lives, as the oracles that watch those see it: everything that concerns none of them
//! is [`Deed::Else`].

use nodefold_core::command::{Action, MountedVolume};
use nodefold_core::ids::{ContainerId, VolumeId};
use nodefold_core::spec::{Container, Pod};
use nodefold_core::status::PodStatus;
use nodefold_core::time::Nanos;
use std::sync::Arc;

/// A command as far as containers' lives go.
pub(super) enum Deed<'a> {
    /// A volume is set up.
    Mounts(&'a VolumeId),
    /// A sandbox is made.
    MakesSandbox { attempt: u32, pod: &'a Arc<Pod> },
    /// A container is made.
    Creates { container: &'a ContainerId, spec: &'a Arc<Container>, mounts: &'a [MountedVolume] },
    /// A container is let go.
    Starts(&'a ContainerId),
    /// A container is stopped.
    Stops { container: &'a ContainerId, grace: Nanos },
    /// A container is killed.
    Kills(&'a ContainerId),
    /// People are told of them.
    Tells(&'a Arc<PodStatus>),
    /// Something else.
    Else,
}

impl Deed<'_> {
    /// What an action does.
    pub(super) fn of(action: &Action) -> Deed<'_> {
        match action {
            Action::MountVolume { volume, .. } => Deed::Mounts(volume),
            Action::CreateSandbox { attempt, pod, .. } => Deed::MakesSandbox { attempt: *attempt, pod },
            Action::CreateContainer { container, spec, mounts, .. } => {
                Deed::Creates { container, spec, mounts }
            }
            Action::StartContainer { container } => Deed::Starts(container),
            Action::StopContainer { container, grace } => Deed::Stops { container, grace: *grace },
            Action::KillContainer { container } => Deed::Kills(container),
            Action::PublishStatus { status, .. } => Deed::Tells(status),
            Action::UnmountVolume { .. }
            | Action::RefreshVolume { .. }
            | Action::PullImage { .. }
            | Action::StopSandbox { .. }
            | Action::RemoveSandbox { .. }
            | Action::RemoveContainer { .. }
            | Action::ResizeContainer { .. }
            | Action::ResizePod { .. }
            | Action::RunHook { .. }
            | Action::StartProbe { .. }
            | Action::StopProbe { .. }
            | Action::ObserveMounts
            | Action::ObserveRuntime
            | Action::RecordEvent(_)
            | Action::ReleasePod
            | Action::CreateMirror { .. }
            | Action::DeleteMirror { .. } => Deed::Else,
        }
    }
}
