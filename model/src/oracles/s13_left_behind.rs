//! S13: after a volume is reported gone, nothing of it is on the host.
//!
//! As far as a trace shows it: a mount table read later still has it, or an operation that wrote to it ends after it
//! was gone (kubelet-volumes races 11, 12). The node reports it gone, too, when its status no longer lists it (KEP-6395).

use super::{Record, breach};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::volume::{Host, VolumeView};
use nodefold_core::command::{Action, Command, Subject};
use nodefold_core::event::Fact;
use nodefold_core::ids::{OpId, PodUid, VolumeId};

pub(super) fn judge(world: &WorldView, record: &Record<'_>, fact: &Fact, out: &mut Vec<Violation>) {
    let gone = |pod: &PodUid, volume: &VolumeId| -> Option<&VolumeView> {
        world.pods.get(pod)?.volume(volume).filter(|v| v.host == Host::Gone)
    };
    let mut report = |pod: PodUid, volume: &VolumeId, what: &str, evidence: usize| {
        let explanation = format!("volume {volume} {what} after it was reported gone");
        let subject = Some(Subject::Volume(volume.clone()));
        out.push(breach(Invariant::S13, record, pod, subject, explanation, &[evidence]));
    };
    // An answer that comes a second time tells of no second effect, and one to a former life of the agent tells of what
    // was there when this life looked.
    let is_news = |view: &VolumeView, pod: &PodUid, op: OpId| {
        view.written_by != Some(op) && world.may_be_under_way(*pod, op)
    };
    match fact {
        Fact::VolumeMounted { op, pod, volume, .. } => {
            if let Some(view) = gone(pod, volume).filter(|view| is_news(view, pod, *op)) {
                report(*pod, volume, "was mounted", view.host_index);
            }
        }
        Fact::VolumeRefreshed { op, pod, volume, .. } => {
            if let Some(view) = gone(pod, volume).filter(|view| is_news(view, pod, *op)) {
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

/// A status drops the row of a volume of which something may still be on the host.
pub(super) fn judge_told(
    world: &WorldView,
    record: &Record<'_>,
    command: &Command,
    out: &mut Vec<Violation>,
) {
    let Action::PublishStatus { status, .. } = &command.action else { return };
    let Some(pod) = world.pods.get(&command.pod).filter(|_| world.node.gates.dynamic_volumes) else { return };
    let Some((index, before)) = &pod.published else { return };
    for row in before.volumes.iter().filter(|row| !status.volumes.iter().any(|r| r.name == row.name)) {
        let left = pod.volumes.iter().find(|v| v.id.name == row.name && v.may_be_on_host());
        if let Some(volume) = left {
            let explanation =
                format!("volume {} is no longer shown, and it is {}", volume.id, volume.host_in_words());
            let subject = Some(Subject::Volume(volume.id.clone()));
            let evidence = [*index, volume.host_index];
            out.push(breach(Invariant::S13, record, command.pod, subject, explanation, &evidence));
        }
    }
}
