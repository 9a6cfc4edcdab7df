//! S10: a volume instance's phase moves only Pending → HostMounted | ErrorMounting | Unmounting | gone, ErrorMounting →
//! HostMounted | Unmounting, HostMounted → Unmounting, Unmounting → gone; back to Pending only after a reboot or an
//! observation that it is lost. Containers and pods likewise; terminal is absorbing, and published with Ready=False.
//!
//! Read from published statuses, which are keyed by name, and from mount commands. A name's phase may start over when
//! its former life is shown to be over (B2, B10, B12; kubelet-volumes race 27).

use super::{Record, breach};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::pod::PodView;
use crate::world_view::volume::{Host, VolumeView};
use nodefold_core::command::{Action, Command, Subject};
use nodefold_core::ids::VolumeId;
use nodefold_core::status::{ConditionKind, ContainerState, ContainerStatus, HostPhase, PodPhase, PodStatus};

pub(super) fn judge(world: &WorldView, record: &Record<'_>, command: &Command, out: &mut Vec<Violation>) {
    let Some(pod) = world.pods.get(&command.pod) else {
        return out.extend(mounted_when_forgotten(world, record, command));
    };
    let mut report = |subject: Subject, explanation: String, evidence: &[usize]| {
        out.push(breach(Invariant::S10, record, command.pod, Some(subject), explanation, evidence));
    };
    if let Action::MountVolume { volume, .. } = &command.action
        && let Some(view) = pod.volume(volume)
        && let Some(unmount) = mounted_again(view)
    {
        let explanation = format!("volume {volume} is mounted again after its unmount was commanded");
        report(Subject::Volume(volume.clone()), explanation, &[unmount]);
    }
    let Action::PublishStatus { status, .. } = &command.action else { return };
    pod_phase(pod, status, &mut report);
    volume_phases(pod, status, &mut report);
    container_phases(pod, status, &mut report);
}

/// A pod of which nothing is left has no volume whose life could go on.
fn mounted_when_forgotten(world: &WorldView, record: &Record<'_>, command: &Command) -> Option<Violation> {
    let Action::MountVolume { volume, .. } = &command.action else { return None };
    let forgotten = world.tombstones.get(&command.pod)?.index;
    let explanation = format!("volume {volume} is mounted although the pod is gone since record {forgotten}");
    let subject = Some(Subject::Volume(volume.clone()));
    Some(breach(Invariant::S10, record, command.pod, subject, explanation, &[forgotten]))
}

/// The unmount that ended the volume's life; a removed instance's further mount is S3's to judge, and one merely found
/// on the host has no life in the trace.
fn mounted_again(view: &VolumeView) -> Option<usize> {
    let unmount = view.unmount?;
    let reset = view.reset.is_some_and(|reset| reset > unmount && view.host != Host::Gone);
    (view.removed.is_none() && view.spec.is_some() && !reset).then_some(unmount)
}

fn pod_phase(pod: &PodView, status: &PodStatus, report: &mut impl FnMut(Subject, String, &[usize])) {
    let phase = status.phase;
    if phase.is_terminal() {
        let ready = status
            .conditions
            .iter()
            .find(|c| matches!(c.kind, ConditionKind::Ready | ConditionKind::ContainersReady) && c.status);
        if let Some(ready) = ready {
            let explanation =
                format!("phase {} is published with {}=True", phase.as_str(), ready.kind.as_str());
            report(Subject::Pod, explanation, &[]);
        }
    }
    let Some((index, before)) = &pod.published else { return };
    let permitted = match before.phase {
        PodPhase::Pending => true,
        PodPhase::Running => phase != PodPhase::Pending,
        PodPhase::Succeeded | PodPhase::Failed => phase == before.phase || next_life_is_refused(pod, status),
    };
    if !permitted {
        let explanation =
            format!("the pod's phase goes from {} to {}", before.phase.as_str(), phase.as_str());
        report(Subject::Pod, explanation, &[*index]);
    }
}

/// A static pod that came back as it was has the same UID. If its next life is refused, nothing ever begins it but the status
/// that says so.
fn next_life_is_refused(pod: &PodView, status: &PodStatus) -> bool {
    let comes_back = pod.wanted_again.is_some() || pod.came_back;
    comes_back && pod.is_quiet() && status.phase == PodPhase::Failed && !status.reason.is_empty()
}

fn volume_phases(pod: &PodView, status: &PodStatus, report: &mut impl FnMut(Subject, String, &[usize])) {
    for row in &status.volumes {
        let lives = || pod.volumes.iter().filter(|v| v.id.name == row.name);
        let subject = || {
            let newest = lives().map(|v| v.id.clone()).max_by_key(|id| id.generation);
            Subject::Volume(newest.unwrap_or_else(|| VolumeId { name: row.name.clone(), generation: 0 }))
        };
        let before = pod.published.as_ref().and_then(|(index, status)| {
            let former = status.volumes.iter().find(|v| v.name == row.name)?;
            Some((*index, former.phase))
        });
        if let Some((index, phase)) = before
            && !may_follow(phase, row.phase)
            && !lives().any(|v| started_over(v, index))
        {
            let explanation = format!(
                "volume {} goes from {} to {} although nothing shows that it was lost or that its former life is over",
                row.name,
                phase.as_str(),
                row.phase.as_str()
            );
            report(subject(), explanation, &[index]);
        } else if row.phase == HostPhase::HostMounted
            && before.is_none_or(|(_, phase)| phase != HostPhase::HostMounted)
            && !lives().any(|v| v.host == Host::FoundOnly || (v.mounted.is_some() && v.host != Host::Gone))
        {
            let evidence: Vec<usize> = lives().map(|v| v.host_index).max().into_iter().collect();
            report(
                subject(),
                format!("volume {} is shown HostMounted, and it is not mounted", row.name),
                &evidence,
            );
        }
    }
}

fn may_follow(before: HostPhase, now: HostPhase) -> bool {
    match before {
        HostPhase::Pending => true,
        HostPhase::ErrorMounting => now != HostPhase::Pending,
        HostPhase::HostMounted => matches!(now, HostPhase::HostMounted | HostPhase::Unmounting),
        HostPhase::Unmounting => now == HostPhase::Unmounting,
    }
}

/// Whether a record since `published` shows that this life is over, lost, or the first of a new generation; or whether it
/// may have ended unseen, because it was never on the host and a desired version lacks it.
fn started_over(volume: &VolumeView, published: usize) -> bool {
    (volume.host == Host::Gone && volume.host_index > published)
        || volume.reset.is_some_and(|reset| reset > published)
        || (volume.changed.is_some() && !volume.may_be_on_host())
}

fn container_phases(pod: &PodView, status: &PodStatus, report: &mut impl FnMut(Subject, String, &[usize])) {
    let Some((index, before)) = &pod.published else { return };
    for row in rows(status) {
        let (ContainerState::Running { .. }, Some(id)) = (&row.state, &row.id) else { continue };
        let ended = rows(before).any(|former| match &former.state {
            ContainerState::Terminated(terminated) => terminated.id.as_ref() == Some(id),
            ContainerState::Waiting { .. } | ContainerState::Running { .. } => false,
        });
        if ended {
            let explanation = format!("container {id} is shown running after it was shown terminated");
            report(Subject::Container(id.clone()), explanation, &[*index]);
        }
    }
}

fn rows(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    status.init_containers.iter().chain(&status.containers).chain(&status.ephemeral_containers)
}
