//! S14: restart count, exit code and last state survive, and nothing of one instance (exit, back-off, probe result) is
//! shown for another; Running never becomes Waiting without a termination record; missing evidence is never success; a
//! completed run-once container never runs again (an init container: not in the same sandbox) unless a
//! RestartAllContainers rule asks (B10, B11, B19, B28, B29, B37).

use super::{Record, breach};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::container::{ContainerView, Ending, Life, Role, find_container};
use crate::world_view::operations::Lane;
use crate::world_view::pod::{AfterExit, MISSING_EVIDENCE, PodView, after_exit};
use nodefold_core::command::{Action, Command, Subject};
use nodefold_core::ids::ContainerId;
use nodefold_core::status::{ContainerState, ContainerStatus, PodPhase, Terminated};

pub(super) fn judge(world: &WorldView, record: &Record<'_>, command: &Command, out: &mut Vec<Violation>) {
    let Some(pod) = world.pods.get(&command.pod) else { return };
    let mut report = |id: Option<&ContainerId>, explanation: String, evidence: &[usize]| {
        let subject = Some(id.map_or(Subject::Pod, |id| Subject::Container(id.clone())));
        out.push(breach(Invariant::S14, record, command.pod, subject, explanation, evidence));
    };
    if let Action::CreateContainer { container, sandbox, .. } = &command.action
        && let Some((former, code)) = completed_before(pod, container, *sandbox)
    {
        let explanation = format!(
            "container {container} is created although {} ended with {code} and its policy does not run it again",
            former.id
        );
        report(Some(container), explanation, &[former.born, former.life_index]);
    }
    let Action::PublishStatus { status, .. } = &command.action else { return };
    for row in status.init_containers.iter().chain(&status.containers).chain(&status.ephemeral_containers) {
        against_the_former_row(pod, row, &mut report);
        own_evidence(pod, row, &mut report);
    }
    if status.phase == PodPhase::Succeeded {
        unproven_success(pod, &mut report);
    }
}

/// The former attempt after which there is to be no other, and the code it ended with.
fn completed_before<'a>(
    pod: &'a PodView,
    container: &ContainerId,
    sandbox: u32,
) -> Option<(&'a ContainerView, i32)> {
    let former = pod
        .containers
        .iter()
        .filter(|c| c.id.name == container.name && c.id.incarnation == container.incarnation)
        .filter(|c| c.id.attempt < container.attempt)
        .max_by_key(|c| c.id.attempt)?;
    // What the node itself ended had not completed.
    if former.stop_commanded.is_some() || former.started.is_none() {
        return None;
    }
    let code = match (&former.exit, former.lost) {
        (Some((_, exit)), _) => exit.code,
        (None, Some(_)) => MISSING_EVIDENCE,
        (None, None) => return None,
    };
    let same_sandbox = former.sandbox == Some(sandbox);
    let judged = same_sandbox
        || match former.role {
            // An end with its sandbox is no completion, a success is one anywhere.
            Role::Main | Role::Ephemeral => code == 0,
            Role::Init | Role::Sidecar | Role::Unknown => false,
        };
    let all_restart = pod.restart_all.is_some_and(|asked| asked > former.born);
    let spec = former.spec.as_ref()?;
    let stays = after_exit(spec, former.role, pod.restart_policy()?, code) == AfterExit::Stays;
    (judged && stays && !all_restart).then_some((former, code))
}

/// What a row may not lose against the one published before.
fn against_the_former_row(
    pod: &PodView,
    row: &ContainerStatus,
    report: &mut impl FnMut(Option<&ContainerId>, String, &[usize]),
) {
    let Some((index, before)) = &pod.published else { return };
    let former_rows =
        before.init_containers.iter().chain(&before.containers).chain(&before.ephemeral_containers);
    for former in former_rows.filter(|f| f.name == row.name) {
        let (Some(was), is) = (&former.id, &row.id) else { continue };
        let another_life = is.as_ref().is_some_and(|is| is.incarnation != was.incarnation)
            || pod.container(was).is_none_or(|c| c.removed.is_some() || c.changes.removed.is_some());
        // Of a name that no instance has yet, a changed definition may be that of another container: the former one was
        // removed and this one added while nobody looked.
        let another_life = another_life
            || (is.is_none()
                && row.restart_count == 0
                && pod.container(was).is_some_and(|c| c.changes.definition.is_some()));
        if !another_life && row.restart_count < former.restart_count {
            let explanation = format!(
                "the restart count of container {} goes back from {} to {}",
                row.name, former.restart_count, row.restart_count
            );
            report(Some(was), explanation, &[*index]);
        }
        let ran = matches!(former.state, ContainerState::Running { .. });
        let waits = matches!(row.state, ContainerState::Waiting { .. });
        let last = row.last_state.as_ref().and_then(|last| last.id.as_ref());
        let told = last.is_some_and(|last| last.attempt >= was.attempt);
        if ran && waits && !another_life && !told {
            let explanation =
                format!("container {was} goes from Running to Waiting and nothing tells how it ended");
            report(Some(was), explanation, &[*index]);
        }
    }
}

/// What a row says must be the evidence of the instance it speaks of.
fn own_evidence(
    pod: &PodView,
    row: &ContainerStatus,
    report: &mut impl FnMut(Option<&ContainerId>, String, &[usize]),
) {
    if let ContainerState::Terminated(terminated) = &row.state {
        told_as_it_ended(pod, terminated, report);
    }
    if let Some(last) = &row.last_state {
        told_as_it_ended(pod, last, report);
        if let Some(last) = last.id.as_ref().filter(|last| !is_own_past(pod, row, last)) {
            let explanation = format!(
                "container {} is shown with the last state of {last}, another life of its name",
                row.name
            );
            let evidence: Vec<usize> = pod.container(last).map(|c| c.life_index).into_iter().collect();
            report(row.id.as_ref().or(Some(last)), explanation, &evidence);
        }
    }
    let Some(id) = &row.id else { return };
    // The count belongs to the incarnation: its next attempt may be under way already.
    let same_life =
        pod.containers.iter().filter(|c| c.id.name == id.name && c.id.incarnation == id.incarnation);
    let attempts = same_life.map(|c| c.id.attempt).fold(id.attempt, u32::max);
    if row.restart_count > attempts {
        let explanation = format!(
            "container {id} is shown with restart count {}, more than its own life has had restarts",
            row.restart_count
        );
        report(Some(id), explanation, &[]);
    }
    let (ContainerState::Running { .. }, Some(view)) = (&row.state, pod.container(id)) else { return };
    let Some(spec) = &view.spec else { return };
    // What is only commanded is not in force yet.
    let shown = &row.resources.requests;
    let under_way = pod.in_flight.iter().any(|o| o.verb == "resize" && o.lane == Lane::Container(id.clone()));
    if under_way
        && view.resizing.as_ref().is_some_and(|r| r.requests == *shown)
        && *shown != view.resources.requests
    {
        let explanation =
            format!("container {id} is shown with resources that the runtime has not acknowledged (B26)");
        report(Some(id), explanation, &[view.born]);
    }
    if row.started && spec.startup_probe.is_some() && view.startup_passed.is_none() {
        let explanation =
            format!("container {id} is shown started, and its own startup probe has not passed");
        report(Some(id), explanation, &[view.born]);
    }
    if row.ready && spec.readiness_probe.is_some() && view.readiness.is_none_or(|(_, passed)| !passed) {
        let explanation = format!("container {id} is shown ready, and its own readiness probe does not pass");
        report(Some(id), explanation, &[view.readiness.map_or(view.born, |(index, _)| index)]);
    }
}

/// Whether `last` is a former attempt of the life that the row is about. A row that waits may name no instance: then its
/// last state is foreign if the incarnation it speaks of was removed (what is removed no longer waits).
fn is_own_past(pod: &PodView, row: &ContainerStatus, last: &ContainerId) -> bool {
    if last.name != row.name {
        return false;
    }
    match (&row.id, &row.state) {
        (Some(id), ContainerState::Waiting { .. }) => {
            last.incarnation == id.incarnation && last.attempt <= id.attempt
        }
        (Some(id), ContainerState::Running { .. } | ContainerState::Terminated(_)) => {
            last.incarnation == id.incarnation && last.attempt < id.attempt
        }
        (None, ContainerState::Waiting { .. }) => pod.container(last).is_none_or(|c| c.removed.is_none()),
        (None, ContainerState::Running { .. } | ContainerState::Terminated(_)) => true,
    }
}

/// What a runtime shows as the exit code of a container that it could not start.
const START_ERROR: i32 = 128;

/// An exit is shown as it was seen; an end that nobody saw is 137.
fn told_as_it_ended(
    pod: &PodView,
    told: &Terminated,
    report: &mut impl FnMut(Option<&ContainerId>, String, &[usize]),
) {
    let Some(id) = &told.id else {
        if told.exit_code == 0 {
            let explanation = "an end that nobody saw is shown as a success".to_owned();
            report(None, explanation, &[]);
        }
        return;
    };
    let Some(view) = pod.container(id) else { return };
    let lost = view.lost.is_some() && told.exit_code == MISSING_EVIDENCE;
    // A start that was refused for good is an end, told at once. What a later list says of it changes nothing.
    let refused = view.start_failed.is_some() && view.started.is_none() && told.exit_code == START_ERROR;
    let wrong = match (&view.exit, &view.life) {
        (Some((_, exit)), _) if exit.code != told.exit_code && !lost && !refused => {
            Some(format!("with exit code {}, and it ended with {}", told.exit_code, exit.code))
        }
        (Some(_), _) => None,
        (None, Life::Ended(Ending::Lost)) if view.start_failed.is_none() && !lost => {
            Some(format!("with exit code {}, and nobody saw it end", told.exit_code))
        }
        (None, Life::Ended(Ending::NeverCreated | Ending::NeverStarted)) if told.exit_code == 0 => {
            Some("with exit code 0, and it never ran".to_owned())
        }
        (None, Life::Ended(_)) => None,
        (None, Life::Creating | Life::Created | Life::Starting | Life::Running | Life::Unknown) => {
            let failed = view.start_failed.is_some() && told.exit_code != 0;
            (!failed)
                .then(|| format!("with exit code {}, and it is {}", told.exit_code, view.life_in_words()))
        }
    };
    if let Some(wrong) = wrong {
        let evidence = [view.exit.as_ref().map_or(view.life_index, |(index, _)| *index)];
        report(Some(id), format!("container {id} is shown terminated {wrong}"), &evidence);
    }
}

/// A pod succeeds only if the last instance of every main is known to have.
fn unproven_success(pod: &PodView, report: &mut impl FnMut(Option<&ContainerId>, String, &[usize])) {
    let Some((_, shown)) = pod.allocation.shown.as_ref().filter(|_| !pod.ran_before_trace) else { return };
    for main in &shown.containers {
        let everywhere = pod.allocation.possible().all(|spec| find_container(spec, &main.name).is_some());
        // An instance that was made and never started has run nothing; the one before it speaks.
        let of_name = pod.containers.iter().filter(|c| c.id.name == main.name);
        let ran = of_name.filter(|c| c.started.is_some() || c.exit.is_some());
        let newest = ran.max_by_key(|c| (c.id.incarnation, c.id.attempt)).or_else(|| {
            // Of former attempts that were forgotten nothing can be said.
            pod.newest(&main.name).filter(|newest| newest.id.attempt == 0)
        });
        let Some(newest) = newest.filter(|_| everywhere) else { continue };
        let proven = newest.exit.as_ref().is_some_and(|(_, exit)| exit.code == 0);
        if !proven && !newest.may_run() {
            let how = match &newest.exit {
                Some((_, exit)) => format!("ended with {}", exit.code),
                None => "left no exit code".to_owned(),
            };
            let explanation = format!("phase Succeeded is published although container {} {how}", newest.id);
            report(Some(&newest.id), explanation, &[newest.life_index]);
        }
    }
}
