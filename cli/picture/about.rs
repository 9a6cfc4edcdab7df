//! Which part of a pod a fact is about.

use nodefold_core::event::{Fact, UsageOf};
use nodefold_core::ids::{ContainerId, VolumeId};

/// A part of a pod, or all of it.
pub enum About<'a> {
    /// A container.
    Container(&'a ContainerId),
    /// A volume.
    Volume(&'a VolumeId),
    /// Its sandbox.
    Sandbox,
    /// The pod as a whole, or the node.
    Whole,
}

/// What a fact is about.
pub fn about(fact: &Fact) -> About<'_> {
    match fact {
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
        Fact::SandboxReady { .. }
        | Fact::SandboxFailed { .. }
        | Fact::SandboxStopped { .. }
        | Fact::SandboxStopFailed { .. }
        | Fact::SandboxRemoved { .. }
        | Fact::SandboxRemoveFailed { .. } => About::Sandbox,
        Fact::Tick
        | Fact::PodApplied(_)
        | Fact::PodRemoved { .. }
        | Fact::SourceReady { .. }
        | Fact::ObjectSeen { .. }
        | Fact::ObjectGone { .. }
        | Fact::NodeChanged(_)
        | Fact::ReadinessGate { .. }
        | Fact::PodResized { .. }
        | Fact::PodResizeFailed { .. }
        | Fact::AgentStarted { .. }
        | Fact::MountsObserved { .. }
        | Fact::RuntimeObserved { .. }
        | Fact::ObserveFailed { .. }
        | Fact::StatusWritten { .. }
        | Fact::StatusWriteFailed { .. }
        | Fact::ReleaseFailed { .. }
        | Fact::MirrorSeen { .. }
        | Fact::MirrorGone { .. }
        | Fact::MirrorCreated { .. }
        | Fact::MirrorDeleted { .. }
        | Fact::MirrorFailed { .. } => About::Whole,
    }
}
