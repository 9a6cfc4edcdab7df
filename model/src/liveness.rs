//! Quiet at the end: what must hold of a trace once faults stopped and time enough has passed (L1–L5).

use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::operations::Lane;
use crate::world_view::pod::PodView;
use nodefold_core::command::{Command, Subject, TraceEntry};
use nodefold_core::config::Config;
use nodefold_core::ids::{Name, PodUid, Source};
use nodefold_core::spec::Pod;
use nodefold_core::status::{ContainerState, PodStatus};
use nodefold_core::time::{Nanos, Time};
use std::collections::BTreeMap;

/// More commands of one kind for one instance within a minute are a timer storm. Retries at their shortest delay, doubled
/// each time, come to seven.
pub const COMMANDS_PER_MINUTE: usize = 20;

const MINUTE: u64 = Nanos::secs(60).0;

/// Judges the end of a trace. Faults stopped at `heal_from`; the caller lets enough time pass until `now` for every
/// back-off to have run out.
pub fn liveness(config: &Config, trace: &[TraceEntry], heal_from: Time, now: Time) -> Vec<Violation> {
    let mut world = WorldView::new(config);
    let mut storms = Storms::default();
    for (index, entry) in trace.iter().enumerate() {
        world.prepare(entry);
        world.observe(entry, index);
        if let TraceEntry::Command { at, command } = entry
            && *at >= heal_from
        {
            storms.count(command, *at, index);
        }
    }
    let mut found = Vec::new();
    for pod in world.pods.values() {
        let mut judge = AtTheEnd { pod, now, found: &mut found };
        judge.removed_is_gone();
        judge.deleted_is_released();
        judge.operations_completed(heal_from);
        judge.wish_is_visible(world.node.gates.dynamic_volumes);
    }
    found.extend(storms.found);
    found
}

struct AtTheEnd<'a> {
    pod: &'a PodView,
    now: Time,
    found: &'a mut Vec<Violation>,
}

impl AtTheEnd<'_> {
    fn report(&mut self, invariant: Invariant, subject: Subject, explanation: String, evidence: &[usize]) {
        let mut evidence = evidence.to_vec();
        evidence.sort_unstable();
        evidence.dedup();
        let (pod, at) = (self.pod.uid, self.now);
        self.found.push(Violation { invariant, pod, subject: Some(subject), at, explanation, evidence });
    }

    /// L2.
    fn removed_is_gone(&mut self) {
        let pod = self.pod;
        for volume in pod.volumes.iter().filter(|v| v.may_be_on_host()) {
            if let Some(removed) = volume.removed {
                let explanation = format!("removed volume {} is still {}", volume.id, volume.host_in_words());
                let evidence = [removed, volume.host_index];
                self.report(Invariant::L2, Subject::Volume(volume.id.clone()), explanation, &evidence);
            }
        }
        for container in pod.containers.iter().filter(|c| c.may_run()) {
            if let Some(removed) = container.removed {
                let explanation =
                    format!("removed container {} is still {}", container.id, container.life_in_words());
                let evidence = [removed, container.proof()];
                self.report(Invariant::L2, Subject::Container(container.id.clone()), explanation, &evidence);
            }
        }
    }

    /// L3. A pod whose object is gone is forgotten by the view only once nothing of it lives.
    fn deleted_is_released(&mut self) {
        let pod = self.pod;
        let deleted = pod.applied.as_ref().is_some_and(|p| p.deletion.is_some());
        if let Some(termination) = pod.termination
            && (deleted || pod.left_source.is_some())
        {
            let explanation = match (pod.running(), pod.released) {
                (Some(running), _) => {
                    format!(
                        "the deleted pod is not released: container {} is {}",
                        running.id,
                        running.life_in_words()
                    )
                }
                (None, None) => "the deleted pod is not released, and nothing of it runs".to_owned(),
                (None, Some(_)) => "the deleted pod's release was commanded and has not happened".to_owned(),
            };
            self.report(Invariant::L3, Subject::Pod, explanation, &[termination.index]);
        }
    }

    /// L5: an operation without completion is a wait without a producer, if it had the time.
    fn operations_completed(&mut self, heal_from: Time) {
        let (pod, now) = (self.pod, self.now);
        for operation in pod.in_flight.iter().filter(|o| o.at.max(heal_from).after(Nanos::secs(60)) <= now) {
            // A stop's time is its grace.
            let due = operation.deadline.unwrap_or(operation.at).after(Nanos::secs(60));
            if due <= now && !matches!(operation.lane, Lane::Hook(..)) {
                let explanation =
                    format!("the {} of record {} never completed", operation.verb, operation.index);
                self.report(Invariant::L5, operation.lane.subject(), explanation, &[operation.index]);
            }
        }
    }

    /// L1: what was wished last is seen in the status, or why not.
    fn wish_is_visible(&mut self, dynamic_volumes: bool) {
        let pod = self.pod;
        let Some(applied) = pod.applied.clone().filter(|_| pod.termination.is_none()) else { return };
        let Some((index, status)) = &pod.published else {
            // A static pod has no object of its own to write to.
            if applied.source == Source::File {
                return;
            }
            let explanation = "no status of the pod was ever published".to_owned();
            return self.report(Invariant::L1, Subject::Pod, explanation, &[pod.applied_index]);
        };
        let evidence = [pod.applied_index, *index];
        if status.observed_generation < applied.generation {
            let explanation = format!(
                "generation {} is wished, and the status published last speaks of {}",
                applied.generation, status.observed_generation
            );
            return self.report(Invariant::L1, Subject::Pod, explanation, &evidence);
        }
        for (what, name) in missing_from_status(&applied, status, dynamic_volumes) {
            let explanation =
                format!("{what} {name} is wished, and the status published last {}", what.how());
            self.report(Invariant::L1, Subject::Pod, explanation, &evidence);
        }
    }
}

/// What a status may fail to tell.
#[derive(Copy, Clone)]
enum Missing {
    Container,
    Reason,
    Volume,
}

impl Missing {
    fn how(self) -> &'static str {
        match self {
            Missing::Container | Missing::Volume => "doesn't mention it",
            Missing::Reason => "says that it waits but not why",
        }
    }
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Missing::Container | Missing::Reason => "container",
            Missing::Volume => "volume",
        })
    }
}

fn missing_from_status(applied: &Pod, status: &PodStatus, dynamic_volumes: bool) -> Vec<(Missing, Name)> {
    let mut missing = Vec::new();
    for container in applied.spec.init_containers.iter().chain(&applied.spec.containers) {
        let row =
            status.init_containers.iter().chain(&status.containers).find(|row| row.name == container.name);
        match row.map(|row| &row.state) {
            None => missing.push((Missing::Container, container.name.clone())),
            Some(ContainerState::Waiting { reason, .. }) if reason.is_empty() => {
                missing.push((Missing::Reason, container.name.clone()));
            }
            Some(
                ContainerState::Waiting { .. }
                | ContainerState::Running { .. }
                | ContainerState::Terminated(_),
            ) => {}
        }
    }
    for volume in applied.spec.volumes.iter().filter(|_| dynamic_volumes) {
        if !status.volumes.iter().any(|row| row.name == volume.name) {
            missing.push((Missing::Volume, volume.name.clone()));
        }
    }
    missing
}

/// L4: commands of one kind for one instance, by minute.
#[derive(Default)]
struct Storms {
    minute: u64,
    counts: BTreeMap<(PodUid, Option<Subject>, &'static str), (usize, usize)>,
    found: Vec<Violation>,
}

impl Storms {
    fn count(&mut self, command: &Command, at: Time, index: usize) {
        let minute = at.0 / MINUTE;
        if minute != self.minute {
            self.counts.clear();
            self.minute = minute;
        }
        let subject = match (command.action.container(), command.action.volume()) {
            (Some(container), _) => Some(Subject::Container(container.clone())),
            (None, Some(volume)) => Some(Subject::Volume(volume.clone())),
            (None, None) => None,
        };
        let verb = command.action.verb();
        let (first, count) = self.counts.entry((command.pod, subject.clone(), verb)).or_insert((index, 0));
        *count += 1;
        if *count == COMMANDS_PER_MINUTE + 1 {
            let explanation =
                format!("more than {COMMANDS_PER_MINUTE} commands \"{verb}\" within one minute");
            self.found.push(Violation {
                invariant: Invariant::L4,
                pod: command.pod,
                subject: subject.or(Some(Subject::Pod)),
                at,
                explanation,
                evidence: vec![*first, index],
            });
        }
    }
}
