//! S8: a pod is released only after every container is confirmed stopped, then every volume unmounted, and a terminal
//! phase published (static and force-removed pods have none to publish); that phase is never published before the
//! containers are confirmed stopped (B13, B28; kubelet-pods §3.6).

use super::{Record, breach};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::pod::PodView;
use nodefold_core::command::{Action, Command, Subject};

pub(super) fn judge(world: &WorldView, record: &Record<'_>, command: &Command, out: &mut Vec<Violation>) {
    let Some(pod) = world.pods.get(&command.pod) else { return };
    let mut report = |subject: Subject, explanation: String, evidence: &[usize]| {
        out.push(breach(Invariant::S8, record, command.pod, Some(subject), explanation, evidence));
    };
    if let Action::PublishStatus { status, .. } = &command.action
        && status.phase.is_terminal()
        && let Some(running) = pod.running()
    {
        let explanation = format!(
            "phase {} is published while container {} is {}",
            status.phase.as_str(),
            running.id,
            running.life_in_words()
        );
        report(Subject::Container(running.id.clone()), explanation, &[running.proof()]);
    }
    if !matches!(command.action, Action::ReleasePod) {
        return;
    }
    if let Some(running) = pod.running() {
        let explanation =
            format!("the pod is released while container {} is {}", running.id, running.life_in_words());
        report(Subject::Container(running.id.clone()), explanation, &[running.proof()]);
    } else if let Some(volume) = pod.volumes.iter().find(|v| v.may_be_on_host()) {
        let explanation =
            format!("the pod is released while volume {} is {}", volume.id, volume.host_in_words());
        report(Subject::Volume(volume.id.clone()), explanation, &[volume.host_index]);
    } else if !told(pod) {
        let (explanation, evidence) = match (&pod.terminal, &pod.published) {
            (Some(terminal), _) => {
                ("the pod is released before its terminal phase reached the API", vec![terminal.index])
            }
            (None, Some((index, _))) => {
                ("the pod is released although no terminal phase was published", vec![*index])
            }
            (None, None) => ("the pod is released although no terminal phase was published", Vec::new()),
        };
        report(Subject::Pod, explanation.to_owned(), &evidence);
    }
}

/// The API knows the terminal phase, or there is nobody to tell.
fn told(pod: &PodView) -> bool {
    let known = pod.applied.as_ref().is_none_or(|p| p.api_terminal.is_some());
    known
        || pod.is_static()
        || pod.left_source.is_some()
        || pod.terminal.is_some_and(|t| t.acknowledged.is_some())
}
