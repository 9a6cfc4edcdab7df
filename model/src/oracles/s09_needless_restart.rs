//! S9: a container whose allocated definition did not change is not restarted by somebody else's mutation.
//!
//! A stop that claims a mutation as its reason is held against every version desired since the instance was made: if
//! none differs in what the rule speaks of, the mutation was somebody else's (B30, B36; kubelet-volumes D2).

use super::{Record, breach};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::container::ContainerView;
use nodefold_core::command::{Action, Command, Rule, Subject};

pub(super) fn judge(world: &WorldView, record: &Record<'_>, command: &Command, out: &mut Vec<Violation>) {
    let (Action::StopContainer { container, .. } | Action::KillContainer { container }) = &command.action
    else {
        return;
    };
    let Some(pod) = world.pods.get(&command.pod) else { return };
    let Some(view) = pod.container(container) else { return };
    if pod.allocation.unknown() || view.spec.is_none() || view.stop_commanded.is_some() {
        return;
    }
    let Some((changed, aspect)) = claimed(view, command.cause.rule) else { return };
    if changed.is_none() {
        let explanation = format!(
            "container {container} is stopped because of its {aspect}, which no version desired since it was created changes"
        );
        let subject = Some(Subject::Container(container.clone()));
        let evidence = [view.born, pod.applied_index];
        out.push(breach(Invariant::S9, record, command.pod, subject, explanation, &evidence));
    }
}

/// Where the claim of a rule is proven, and the claim in words; `None` for rules that claim no mutation.
fn claimed(view: &ContainerView, rule: Rule) -> Option<(Option<usize>, &'static str)> {
    let changes = &view.changes;
    match rule {
        Rule::DefinitionChanged => Some((changes.definition, "definition")),
        Rule::MountsChanged => Some((changes.mounts, "mounts")),
        Rule::ResizeRestart => Some((changes.resources, "resources")),
        Rule::ContainerRemoved => Some((changes.removed.or(view.removed), "removal")),
        Rule::VolumeDesired
        | Rule::VolumeRetry
        | Rule::VolumeRefresh
        | Rule::VolumeRemoved
        | Rule::PodVolumesReleased
        | Rule::VolumeOrphaned
        | Rule::SandboxNeeded
        | Rule::SandboxObsolete
        | Rule::InitNext
        | Rule::SidecarNeeded
        | Rule::MainNeeded
        | Rule::EphemeralNeeded
        | Rule::ResizeInPlace
        | Rule::LivenessFailed
        | Rule::StartupFailed
        | Rule::PostStartFailed
        | Rule::RuntimeUnknown
        | Rule::RestartAll
        | Rule::SandboxGone
        | Rule::PodTerminating
        | Rule::GraceExceeded
        | Rule::Surplus
        | Rule::GarbageCollected
        | Rule::ObservationNeeded
        | Rule::StatusChanged
        | Rule::PodReleased
        | Rule::LifecycleHook
        | Rule::ProbeLifetime
        | Rule::Told
        | Rule::MirrorNeeded
        | Rule::MirrorObsolete => None,
    }
}
