//! S13: after a volume is reported gone, nothing of it is on the host.
//!
//! As far as a trace shows it: a mount table read later still has it, or an operation that wrote to it ends after it
//! was gone (kubelet-volumes races 11, 12).

use super::{Record, breach};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::volume::{Host, VolumeView};
use nodefold_core::command::Subject;
use nodefold_core::event::Fact;
use nodefold_core::ids::{PodUid, VolumeId};

pub(super) fn judge(world: &WorldView, record: &Record<'_>, fact: &Fact, out: &mut Vec<Violation>) {
    let gone = |pod: &PodUid, volume: &VolumeId| -> Option<&VolumeView> {
        world.pods.get(pod)?.volume(volume).filter(|v| v.host == Host::Gone)
    };
    let mut report = |pod: PodUid, volume: &VolumeId, what: &str, evidence: usize| {
        let explanation = format!("volume {volume} {what} after it was reported gone");
        let subject = Some(Subject::Volume(volume.clone()));
        out.push(breach(Invariant::S13, record, pod, subject, explanation, &[evidence]));
    };
    match fact {
        Fact::VolumeMounted { pod, volume, .. } => {
            if let Some(view) = gone(pod, volume) {
                report(*pod, volume, "was mounted", view.host_index);
            }
        }
        Fact::VolumeRefreshed { pod, volume, .. } => {
            if let Some(view) = gone(pod, volume) {
                report(*pod, volume, "was written to", view.host_index);
            }
        }
        Fact::MountsObserved { op, mounts } => {
            for mount in mounts {
                if let Some(view) = gone(&mount.pod, &mount.volume)
                    && world.asked_after(*op, view.host_index)
                {
                    report(mount.pod, &mount.volume, "is found on the host", view.host_index);
                }
            }
        }
        Fact::Tick
        | Fact::PodApplied(_)
        | Fact::PodRemoved { .. }
        | Fact::SourceReady { .. }
        | Fact::ObjectSeen { .. }
        | Fact::ObjectGone { .. }
        | Fact::NodeChanged(_)
        | Fact::ReadinessGate { .. }
        | Fact::VolumeMountFailed { .. }
        | Fact::VolumeUnmounted { .. }
        | Fact::VolumeUnmountFailed { .. }
        | Fact::VolumeRefreshFailed { .. }
        | Fact::UsageReported { .. }
        | Fact::ImagePulled { .. }
        | Fact::ImagePullFailed { .. }
        | Fact::SandboxReady { .. }
        | Fact::SandboxFailed { .. }
        | Fact::SandboxStopped { .. }
        | Fact::SandboxStopFailed { .. }
        | Fact::SandboxRemoved { .. }
        | Fact::SandboxRemoveFailed { .. }
        | Fact::ContainerCreated { .. }
        | Fact::ContainerCreateFailed { .. }
        | Fact::ContainerStarted { .. }
        | Fact::ContainerStartFailed { .. }
        | Fact::ContainerExited { .. }
        | Fact::ContainerStopFailed { .. }
        | Fact::ContainerRemoved { .. }
        | Fact::ContainerRemoveFailed { .. }
        | Fact::ContainerResized { .. }
        | Fact::ContainerResizeFailed { .. }
        | Fact::PodResized { .. }
        | Fact::PodResizeFailed { .. }
        | Fact::HookDone { .. }
        | Fact::ProbeResult { .. }
        | Fact::AgentStarted { .. }
        | Fact::RuntimeObserved { .. }
        | Fact::ObserveFailed { .. }
        | Fact::StatusWritten { .. }
        | Fact::StatusWriteFailed { .. }
        | Fact::ReleaseFailed { .. }
        | Fact::MirrorSeen { .. }
        | Fact::MirrorGone { .. }
        | Fact::MirrorCreated { .. }
        | Fact::MirrorDeleted { .. }
        | Fact::MirrorFailed { .. } => {}
    }
}
