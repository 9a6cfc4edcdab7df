//! Commands and facts by what they are about: what a case chooses commands by, how a story tells them, how they fail.

use nodefold_core::Command;
use nodefold_core::command::Action;
use nodefold_core::event::{Fact, OpError};
use nodefold_core::ids::{ContainerId, PodUid, VolumeId};

/// What a command is about, to choose by.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Op {
    Mount,
    Unmount,
    Refresh,
    Pull,
    Sandbox,
    StopSandbox,
    RemoveSandbox,
    Create,
    Start,
    Stop,
    Kill,
    Remove,
    Resize,
    Hook,
    Probe,
    Mounts,
    Runtime,
    Publish,
    Tell,
    Release,
    Mirror,
}

/// The operation of a command and the name of what it is about.
pub fn kind(command: &Command) -> (Op, String) {
    let container = |id: &ContainerId| id.name.to_string();
    match &command.action {
        Action::MountVolume { volume, .. } => (Op::Mount, volume.name.to_string()),
        Action::UnmountVolume { volume, .. } => (Op::Unmount, volume.name.to_string()),
        Action::RefreshVolume { volume, .. } => (Op::Refresh, volume.name.to_string()),
        Action::PullImage { container: id, .. } => (Op::Pull, container(id)),
        Action::CreateSandbox { .. } => (Op::Sandbox, String::new()),
        Action::StopSandbox { .. } => (Op::StopSandbox, String::new()),
        Action::RemoveSandbox { .. } => (Op::RemoveSandbox, String::new()),
        Action::CreateContainer { container: id, .. } => (Op::Create, container(id)),
        Action::StartContainer { container: id } => (Op::Start, container(id)),
        Action::StopContainer { container: id, .. } => (Op::Stop, container(id)),
        Action::KillContainer { container: id } => (Op::Kill, container(id)),
        Action::RemoveContainer { container: id } => (Op::Remove, container(id)),
        Action::ResizeContainer { container: id, .. } => (Op::Resize, container(id)),
        Action::ResizePod { .. } => (Op::Resize, String::new()),
        Action::RunHook { container: id, .. } => (Op::Hook, container(id)),
        Action::StartProbe { container: id, .. } | Action::StopProbe { container: id, .. } => {
            (Op::Probe, container(id))
        }
        Action::ObserveMounts => (Op::Mounts, String::new()),
        Action::ObserveRuntime => (Op::Runtime, String::new()),
        Action::PublishStatus { .. } => (Op::Publish, String::new()),
        Action::RecordEvent(event) => (Op::Tell, event.reason.to_string()),
        Action::ReleasePod => (Op::Release, String::new()),
        Action::CreateMirror { .. } | Action::DeleteMirror { .. } => (Op::Mirror, String::new()),
    }
}

/// The line that a story has of it, if it has one.
pub fn told(command: &Command) -> Option<String> {
    let line = match &command.action {
        Action::MountVolume { volume, .. } => format!("mount {volume}"),
        Action::UnmountVolume { volume, .. } => format!("unmount {volume}"),
        Action::RefreshVolume { volume, .. } => format!("refresh {volume}"),
        Action::CreateSandbox { attempt, .. } => format!("sandbox {attempt}"),
        Action::CreateContainer { container, .. } => format!("create {container}"),
        Action::StartContainer { container } => format!("start {container}"),
        Action::StopContainer { container, .. } => format!("stop {container}"),
        Action::KillContainer { container } => format!("kill {container}"),
        Action::ReleasePod => "release".into(),
        _ => return None,
    };
    Some(line)
}

/// The volume operation that this fact completes.
pub fn completed_volume(fact: &Fact) -> Option<(PodUid, VolumeId)> {
    match fact {
        Fact::VolumeMounted { pod, volume, .. }
        | Fact::VolumeMountFailed { pod, volume, .. }
        | Fact::VolumeUnmounted { pod, volume, .. }
        | Fact::VolumeUnmountFailed { pod, volume, .. }
        | Fact::VolumeRefreshed { pod, volume, .. }
        | Fact::VolumeRefreshFailed { pod, volume, .. } => Some((*pod, volume.clone())),
        _ => None,
    }
}

/// The failure of a command.
pub fn failure(command: &Command, error: OpError) -> Fact {
    let (op, pod) = (command.op, command.pod);
    match command.action.clone() {
        Action::MountVolume { volume, .. } => Fact::VolumeMountFailed { op, pod, volume, error },
        Action::UnmountVolume { volume, .. } => Fact::VolumeUnmountFailed { op, pod, volume, error },
        Action::RefreshVolume { volume, .. } => Fact::VolumeRefreshFailed { op, pod, volume, error },
        Action::PullImage { container, .. } => Fact::ImagePullFailed { op, pod, container, error },
        Action::CreateSandbox { attempt, .. } => Fact::SandboxFailed { op, pod, attempt, error },
        Action::StopSandbox { attempt } => Fact::SandboxStopFailed { op, pod, attempt, error },
        Action::RemoveSandbox { attempt } => Fact::SandboxRemoveFailed { op, pod, attempt, error },
        Action::CreateContainer { container, .. } => {
            Fact::ContainerCreateFailed { op, pod, container, error }
        }
        Action::StartContainer { container } => Fact::ContainerStartFailed { op, pod, container, error },
        Action::StopContainer { container, .. } | Action::KillContainer { container } => {
            Fact::ContainerStopFailed { op, pod, container, error }
        }
        Action::RemoveContainer { container } => Fact::ContainerRemoveFailed { op, pod, container, error },
        Action::ResizeContainer { container, .. } => {
            Fact::ContainerResizeFailed { op, pod, container, error }
        }
        Action::ResizePod { .. } => Fact::PodResizeFailed { op, pod, error },
        Action::RunHook { container, hook, .. } => {
            Fact::HookDone { op, pod, container, hook, error: Some(error.message) }
        }
        Action::ObserveMounts | Action::ObserveRuntime => Fact::ObserveFailed { op, error },
        Action::PublishStatus { .. } => Fact::StatusWriteFailed { op, pod, error },
        Action::ReleasePod => Fact::ReleaseFailed { op, pod, error },
        Action::CreateMirror { pod: shown } => {
            let (namespace, name) = (shown.namespace.clone(), shown.name.clone());
            Fact::MirrorFailed { op, pod, namespace, name, error }
        }
        Action::DeleteMirror { namespace, name } => Fact::MirrorFailed { op, pod, namespace, name, error },
        Action::StartProbe { .. } | Action::StopProbe { .. } | Action::RecordEvent(_) => {
            panic!("{:?} has no completion", kind(command))
        }
    }
}
