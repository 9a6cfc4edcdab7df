//! What commands and facts have to do with each other: which operation a fact ends, and how a command's failure is told. For
//! drivers and oracles; the fold asks neither.

use crate::command::{Action, Command};
use crate::event::{Fact, OpError};
use crate::ids::OpId;

impl Fact {
    /// The operation that the fact ends. An exit and a sandbox's end name none: they may come by themselves.
    pub fn op(&self) -> Option<OpId> {
        match self {
            Fact::VolumeMounted { op, .. }
            | Fact::VolumeMountFailed { op, .. }
            | Fact::VolumeUnmounted { op, .. }
            | Fact::VolumeUnmountFailed { op, .. }
            | Fact::VolumeRefreshed { op, .. }
            | Fact::VolumeRefreshFailed { op, .. }
            | Fact::ImagePulled { op, .. }
            | Fact::ImagePullFailed { op, .. }
            | Fact::SandboxReady { op, .. }
            | Fact::SandboxFailed { op, .. }
            | Fact::SandboxStopFailed { op, .. }
            | Fact::SandboxRemoved { op, .. }
            | Fact::SandboxRemoveFailed { op, .. }
            | Fact::ContainerCreated { op, .. }
            | Fact::ContainerCreateFailed { op, .. }
            | Fact::ContainerStarted { op, .. }
            | Fact::ContainerStartFailed { op, .. }
            | Fact::ContainerStopFailed { op, .. }
            | Fact::ContainerRemoved { op, .. }
            | Fact::ContainerRemoveFailed { op, .. }
            | Fact::ContainerResized { op, .. }
            | Fact::ContainerResizeFailed { op, .. }
            | Fact::PodResized { op, .. }
            | Fact::PodResizeFailed { op, .. }
            | Fact::HookDone { op, .. }
            | Fact::MountsObserved { op, .. }
            | Fact::RuntimeObserved { op, .. }
            | Fact::ObserveFailed { op, .. }
            | Fact::StatusWritten { op, .. }
            | Fact::StatusWriteFailed { op, .. }
            | Fact::ReleaseFailed { op, .. }
            | Fact::MirrorCreated { op, .. }
            | Fact::MirrorDeleted { op, .. }
            | Fact::MirrorFailed { op, .. } => Some(*op),
            Fact::Tick
            | Fact::PodApplied(_)
            | Fact::PodRemoved { .. }
            | Fact::SourceReady { .. }
            | Fact::ObjectSeen { .. }
            | Fact::ObjectGone { .. }
            | Fact::NodeChanged(_)
            | Fact::ReadinessGate { .. }
            | Fact::UsageReported { .. }
            | Fact::SandboxStopped { .. }
            | Fact::ContainerExited { .. }
            | Fact::ProbeResult { .. }
            | Fact::AgentStarted { .. }
            | Fact::MirrorSeen { .. }
            | Fact::MirrorGone { .. } => None,
        }
    }
}

impl Command {
    /// The fact that says that the command failed; `None` for those that can't.
    pub fn failed(&self, error: OpError) -> Option<Fact> {
        let (op, pod) = (self.op, self.pod);
        Some(match &self.action {
            Action::MountVolume { volume, .. } => {
                Fact::VolumeMountFailed { op, pod, volume: volume.clone(), error }
            }
            Action::UnmountVolume { volume, .. } => {
                Fact::VolumeUnmountFailed { op, pod, volume: volume.clone(), error }
            }
            Action::RefreshVolume { volume, .. } => {
                Fact::VolumeRefreshFailed { op, pod, volume: volume.clone(), error }
            }
            Action::PullImage { container, .. } => {
                Fact::ImagePullFailed { op, pod, container: container.clone(), error }
            }
            Action::CreateSandbox { attempt, .. } => {
                Fact::SandboxFailed { op, pod, attempt: *attempt, error }
            }
            Action::StopSandbox { attempt } => Fact::SandboxStopFailed { op, pod, attempt: *attempt, error },
            Action::RemoveSandbox { attempt } => {
                Fact::SandboxRemoveFailed { op, pod, attempt: *attempt, error }
            }
            Action::CreateContainer { container, .. } => {
                Fact::ContainerCreateFailed { op, pod, container: container.clone(), error }
            }
            Action::StartContainer { container } => {
                Fact::ContainerStartFailed { op, pod, container: container.clone(), error }
            }
            Action::StopContainer { container, .. } | Action::KillContainer { container } => {
                Fact::ContainerStopFailed { op, pod, container: container.clone(), error }
            }
            Action::RemoveContainer { container } => {
                Fact::ContainerRemoveFailed { op, pod, container: container.clone(), error }
            }
            Action::ResizeContainer { container, .. } => {
                Fact::ContainerResizeFailed { op, pod, container: container.clone(), error }
            }
            Action::ResizePod { .. } => Fact::PodResizeFailed { op, pod, error },
            Action::RunHook { container, hook, .. } => {
                let error = Some(error.message);
                Fact::HookDone { op, pod, container: container.clone(), hook: *hook, error }
            }
            Action::ObserveMounts | Action::ObserveRuntime => Fact::ObserveFailed { op, error },
            Action::PublishStatus { .. } => Fact::StatusWriteFailed { op, pod, error },
            Action::ReleasePod => Fact::ReleaseFailed { op, pod, error },
            Action::CreateMirror { pod: shown } => {
                let (namespace, name) = (shown.namespace.clone(), shown.name.clone());
                Fact::MirrorFailed { op, pod, namespace, name, error }
            }
            Action::DeleteMirror { namespace, name } => {
                Fact::MirrorFailed { op, pod, namespace: namespace.clone(), name: name.clone(), error }
            }
            Action::StartProbe { .. } | Action::StopProbe { .. } | Action::RecordEvent(_) => return None,
        })
    }
}
