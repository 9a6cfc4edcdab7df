//! S12: at most one operation in flight per instance, except that a kill or an earlier stop may overtake a stop; no
//! create, start or unmount twice without its completion or an observation between (kubelet-volumes I4, races 18-22).

use super::{Record, breach};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::operations::{InFlight, Lane};
use crate::world_view::pod::PodView;
use nodefold_core::command::{Action, Command};

pub(super) fn judge(world: &WorldView, record: &Record<'_>, command: &Command, out: &mut Vec<Violation>) {
    let Some(pod) = world.pods.get(&command.pod) else { return };
    let Some(new) = InFlight::begun_by(command, record.at, record.index) else { return };
    // Writes of the status overtake each other: the latest wins.
    if new.lane == Lane::Status {
        return;
    }
    let report = |explanation: String, evidence: usize| {
        breach(Invariant::S12, record, command.pod, Some(new.lane.subject()), explanation, &[evidence])
    };
    if let Some(running) = pod.in_flight.iter().find(|o| o.lane == new.lane) {
        if !may_overtake(&new, running) {
            let explanation = format!(
                "the {} of {} is commanded while its {} of record {} is not completed",
                new.verb,
                in_words(&new.lane),
                running.verb,
                running.index
            );
            out.push(report(explanation, running.index));
        }
    } else if let Some(unanswered) = unanswered(pod, &command.action) {
        let explanation = format!(
            "the {} of {} is repeated after the agent started, and nothing was observed since record {unanswered} \
             commanded it",
            new.verb,
            in_words(&new.lane)
        );
        out.push(report(explanation, unanswered));
    }
}

/// A kill overtakes a stop, and so does a stop with an earlier deadline; a later deadline is S15's to judge. Stops never
/// block (DESIGN §4 rule 6), so they do not wait for a resize either.
fn may_overtake(new: &InFlight, running: &InFlight) -> bool {
    match (new.stops_by(), running.stops_by()) {
        (Some(deadline), Some(before)) => !running.kill && (new.kill || deadline != before),
        (Some(_), None) => running.verb == "resize",
        (None, Some(_) | None) => false,
    }
}

fn unanswered(pod: &PodView, action: &Action) -> Option<usize> {
    match action {
        Action::CreateContainer { container, .. } | Action::StartContainer { container } => {
            pod.container(container).and_then(|c| c.unanswered)
        }
        Action::UnmountVolume { volume, .. } => pod.volume(volume).and_then(|v| v.unanswered),
        Action::MountVolume { .. }
        | Action::RefreshVolume { .. }
        | Action::PullImage { .. }
        | Action::CreateSandbox { .. }
        | Action::StopSandbox { .. }
        | Action::RemoveSandbox { .. }
        | Action::StopContainer { .. }
        | Action::KillContainer { .. }
        | Action::RemoveContainer { .. }
        | Action::ResizeContainer { .. }
        | Action::ResizePod { .. }
        | Action::RunHook { .. }
        | Action::StartProbe { .. }
        | Action::StopProbe { .. }
        | Action::ObserveMounts
        | Action::ObserveRuntime
        | Action::PublishStatus { .. }
        | Action::RecordEvent(_)
        | Action::ReleasePod
        | Action::CreateMirror { .. }
        | Action::DeleteMirror { .. } => None,
    }
}

fn in_words(lane: &Lane) -> String {
    match lane {
        Lane::Container(id) => format!("container {id}"),
        Lane::Hook(id, hook) => format!("{hook:?} hook of container {id}"),
        Lane::Volume(id) => format!("volume {id}"),
        Lane::Sandbox(attempt) => format!("sandbox {attempt}"),
        Lane::PodResources | Lane::Status | Lane::Release => "the pod".to_owned(),
    }
}
