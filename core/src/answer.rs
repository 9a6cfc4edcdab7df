//! What commands and facts have to do with each other: which operation a fact ends, and how a command's success and failure
//! are told. For drivers and oracles; the fold asks none of it.

use crate::command::{Action, Command};
use crate::event::{Exit, Fact, Mirror, OpError};
use crate::ids::{ContainerId, OpId, PodUid};
use crate::time::Time;
use alloc::format;
use alloc::vec::Vec;

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
    /// The fact that says that the command succeeded at that moment, on a host where everything does: a container that is
    /// stopped exits with 0, nothing is found by a look, no volume wants a renewal. `None` for those that have no answer. For
    /// tests, benches and fuzzers, and as an embedder's list of what a backend answers; a backend itself tells what it saw.
    pub fn done(&self, at: Time) -> Option<Fact> {
        let (op, pod) = (self.op, self.pod);
        Some(match &self.action {
            Action::MountVolume { volume, .. } => {
                Fact::VolumeMounted { op, pod, volume: volume.clone(), renew_at: None, image_digest: None }
            }
            Action::UnmountVolume { volume, .. } => Fact::VolumeUnmounted { op, pod, volume: volume.clone() },
            Action::RefreshVolume { volume, .. } => {
                Fact::VolumeRefreshed { op, pod, volume: volume.clone(), renew_at: None }
            }
            Action::PullImage { container, image, .. } => {
                let (container, image_id) = (container.clone(), format!("sha256:{image}").into());
                Fact::ImagePulled { op, pod, container, image_id, already_present: true }
            }
            Action::CreateSandbox { attempt, allocated, .. } => {
                let ip = (!allocated.host_network).then(|| "10.0.0.1".into());
                Fact::SandboxReady { op, pod, attempt: *attempt, ip }
            }
            Action::StopSandbox { attempt } => Fact::SandboxStopped { pod, attempt: *attempt },
            Action::RemoveSandbox { attempt } => Fact::SandboxRemoved { op, pod, attempt: *attempt },
            Action::CreateContainer { container, .. } => {
                Fact::ContainerCreated { op, pod, container: container.clone() }
            }
            Action::StartContainer { container } => {
                Fact::ContainerStarted { op, pod, container: container.clone() }
            }
            Action::StopContainer { container, .. } => ended(pod, container, 0, at),
            Action::KillContainer { container } => ended(pod, container, 137, at),
            Action::RemoveContainer { container } => {
                Fact::ContainerRemoved { op, pod, container: container.clone() }
            }
            Action::ResizeContainer { container, .. } => {
                Fact::ContainerResized { op, pod, container: container.clone() }
            }
            Action::ResizePod { .. } => Fact::PodResized { op, pod },
            Action::RunHook { container, hook, .. } => {
                Fact::HookDone { op, pod, container: container.clone(), hook: *hook, error: None }
            }
            Action::ObserveMounts => Fact::MountsObserved { op, mounts: Vec::new() },
            Action::ObserveRuntime => {
                Fact::RuntimeObserved { op, complete: true, sandboxes: Vec::new(), containers: Vec::new() }
            }
            Action::PublishStatus { .. } => Fact::StatusWritten { op, pod },
            Action::ReleasePod => Fact::PodRemoved { pod },
            Action::CreateMirror { pod: shown } => {
                let mirror = Mirror { uid: PodUid(!shown.uid.0), of: shown.uid, deleting: false };
                let (namespace, name) = (shown.namespace.clone(), shown.name.clone());
                Fact::MirrorCreated { op, namespace, name, mirror }
            }
            Action::DeleteMirror { namespace, name } => {
                Fact::MirrorDeleted { op, namespace: namespace.clone(), name: name.clone(), mirror: pod }
            }
            Action::StartProbe { .. } | Action::StopProbe { .. } | Action::RecordEvent(_) => return None,
        })
    }

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

fn ended(pod: PodUid, container: &ContainerId, code: i32, at: Time) -> Fact {
    let (signal, reason) = if code == 0 { (None, "Completed") } else { (Some(code - 128), "Error") };
    let exit = Exit { code, signal, reason: reason.into(), started_at: None, finished_at: at };
    Fact::ContainerExited { pod, container: container.clone(), exit }
}
