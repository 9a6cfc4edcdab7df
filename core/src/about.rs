//! What a fact or a command is about: one part of a pod, the pod itself, or the node. For drivers, oracles and views; the fold
//! asks none of it.

use crate::command::Action;
use crate::event::{Fact, UsageOf};
use crate::ids::{ContainerId, VolumeId};

/// The thing that a fact or a command is about.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About<'a> {
    /// The node.
    Node,
    /// The pod as a whole.
    Pod,
    /// This attempt of its sandbox.
    Sandbox(u32),
    /// A container.
    Container(&'a ContainerId),
    /// A volume.
    Volume(&'a VolumeId),
}

impl<'a> About<'a> {
    /// The name that a spec gives it; empty for what no spec names.
    pub fn name(self) -> &'a str {
        match self {
            About::Container(container) => &container.name,
            About::Volume(volume) => &volume.name,
            About::Node | About::Pod | About::Sandbox(_) => "",
        }
    }
}

impl Action {
    /// What it is about. A Kubernetes Event is about its pod: it names a container for people only.
    pub fn about(&self) -> About<'_> {
        match self {
            Action::MountVolume { volume, .. }
            | Action::UnmountVolume { volume, .. }
            | Action::RefreshVolume { volume, .. } => About::Volume(volume),
            Action::PullImage { container, .. }
            | Action::CreateContainer { container, .. }
            | Action::StartContainer { container }
            | Action::StopContainer { container, .. }
            | Action::KillContainer { container }
            | Action::RemoveContainer { container }
            | Action::ResizeContainer { container, .. }
            | Action::RunHook { container, .. }
            | Action::StartProbe { container, .. }
            | Action::StopProbe { container, .. } => About::Container(container),
            Action::CreateSandbox { attempt, .. }
            | Action::StopSandbox { attempt }
            | Action::RemoveSandbox { attempt } => About::Sandbox(*attempt),
            Action::ResizePod { .. }
            | Action::PublishStatus { .. }
            | Action::RecordEvent(_)
            | Action::ReleasePod
            | Action::CreateMirror { .. }
            | Action::DeleteMirror { .. } => About::Pod,
            Action::ObserveMounts | Action::ObserveRuntime => About::Node,
        }
    }

    /// The container it is about.
    pub fn container(&self) -> Option<&ContainerId> {
        match self.about() {
            About::Container(container) => Some(container),
            About::Node | About::Pod | About::Sandbox(_) | About::Volume(_) => None,
        }
    }

    /// The volume it is about.
    pub fn volume(&self) -> Option<&VolumeId> {
        match self.about() {
            About::Volume(volume) => Some(volume),
            About::Node | About::Pod | About::Sandbox(_) | About::Container(_) => None,
        }
    }
}

impl Fact {
    /// What it is about.
    pub fn about(&self) -> About<'_> {
        match self {
            Fact::VolumeMounted { volume, .. }
            | Fact::VolumeMountFailed { volume, .. }
            | Fact::VolumeUnmounted { volume, .. }
            | Fact::VolumeUnmountFailed { volume, .. }
            | Fact::VolumeRefreshed { volume, .. }
            | Fact::VolumeRefreshFailed { volume, .. } => About::Volume(volume),
            Fact::UsageReported { of, .. } => match of {
                UsageOf::Volume(volume) => About::Volume(volume),
                UsageOf::Container(container) => About::Container(container),
            },
            Fact::ImagePulled { container, .. }
            | Fact::ImagePullFailed { container, .. }
            | Fact::ContainerCreated { container, .. }
            | Fact::ContainerCreateFailed { container, .. }
            | Fact::ContainerStarted { container, .. }
            | Fact::ContainerStartFailed { container, .. }
            | Fact::ContainerExited { container, .. }
            | Fact::ContainerStopFailed { container, .. }
            | Fact::ContainerRemoved { container, .. }
            | Fact::ContainerRemoveFailed { container, .. }
            | Fact::ContainerResized { container, .. }
            | Fact::ContainerResizeFailed { container, .. }
            | Fact::HookDone { container, .. }
            | Fact::ProbeResult { container, .. } => About::Container(container),
            Fact::SandboxReady { attempt, .. }
            | Fact::SandboxFailed { attempt, .. }
            | Fact::SandboxStopped { attempt, .. }
            | Fact::SandboxStopFailed { attempt, .. }
            | Fact::SandboxRemoved { attempt, .. }
            | Fact::SandboxRemoveFailed { attempt, .. } => About::Sandbox(*attempt),
            Fact::PodApplied(_)
            | Fact::PodRemoved { .. }
            | Fact::ReadinessGate { .. }
            | Fact::PodResized { .. }
            | Fact::PodResizeFailed { .. }
            | Fact::StatusWritten { .. }
            | Fact::StatusWriteFailed { .. }
            | Fact::ReleaseFailed { .. }
            | Fact::MirrorSeen { .. }
            | Fact::MirrorGone { .. }
            | Fact::MirrorCreated { .. }
            | Fact::MirrorDeleted { .. }
            | Fact::MirrorFailed { .. } => About::Pod,
            Fact::Tick
            | Fact::SourceReady { .. }
            | Fact::ObjectSeen { .. }
            | Fact::ObjectGone { .. }
            | Fact::NodeChanged(_)
            | Fact::AgentStarted { .. }
            | Fact::MountsObserved { .. }
            | Fact::RuntimeObserved { .. }
            | Fact::ObserveFailed { .. } => About::Node,
        }
    }
}
