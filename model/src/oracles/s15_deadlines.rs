//! S15: a stop's deadline only moves earlier (the kubelet's 2 s floor aside), and when it passes with the agent up the
//! kill has been commanded (a stop handed to the runtime with that grace counts); sidecars stop after the mains that ever
//! ran, within the same grace (B20, B24).

use super::deed::Deed;
use super::{Record, breach, violation};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::container::{ContainerView, Life, Role};
use crate::world_view::operations::{InFlight, Lane};
use crate::world_view::pod::PodView;
use nodefold_core::command::{Command, Rule, Subject};
use nodefold_core::event::{Fact, Hook};
use nodefold_core::ids::{ContainerId, PodUid};
use nodefold_core::time::{Nanos, Time};
use std::collections::BTreeSet;

pub(super) fn judge(world: &WorldView, record: &Record<'_>, command: &Command, out: &mut Vec<Violation>) {
    let Some(pod) = world.pods.get(&command.pod) else { return };
    match Deed::of(&command.action) {
        Deed::Stops { container, grace } => {
            out.extend(moved_later(world, pod, record, command, container, grace));
        }
        Deed::Kills(_)
        | Deed::Mounts(_)
        | Deed::MakesSandbox { .. }
        | Deed::Creates { .. }
        | Deed::Starts(_)
        | Deed::Tells(_)
        | Deed::Else => {}
    }
}

fn moved_later(
    world: &WorldView,
    pod: &PodView,
    record: &Record<'_>,
    command: &Command,
    container: &ContainerId,
    grace: Nanos,
) -> Option<Violation> {
    let view = pod.container(container).filter(|c| c.may_run())?;
    let stop = view.stop.filter(|s| !s.killed)?;
    let deadline = record.at.after(grace);
    (deadline > stop.deadline && grace > world.minimum_grace).then(|| {
        let explanation =
            format!("the stop of container {container} is put off by {}", deadline.since(stop.deadline));
        let subject = Some(Subject::Container(container.clone()));
        breach(Invariant::S15, record, command.pod, subject, explanation, &[stop.index])
    })
}

/// A pod's end stops its sidecars once no main that ever ran may still run, or once their time is over. Judged at the end
/// of the batch: where time is over for all of a pod's containers at once (their agent was away, or a list tells only now
/// that they run), the order of their stops in one batch says nothing.
fn sidecar_before_main(world: &WorldView, stopped: &StoppedSidecar) -> Option<Violation> {
    let StoppedSidecar { pod: uid, container, index, at } = stopped;
    let pod = world.pods.get(uid)?;
    // A preStop hook that took all of the grace leaves its main the floor's time, as below.
    let hook_is_over = |o: &InFlight, main: &ContainerView| {
        matches!(&o.lane, Lane::Hook(id, Hook::PreStop) if *id == main.id)
            && o.deadline.is_some_and(|deadline| deadline <= *at)
    };
    // A main whose grace is shorter than the floor has the floor's time; the sidecars' turn comes when the grace is over.
    let floor_ends = at.after(world.minimum_grace);
    let time_is_over = |main: &ContainerView| {
        pod.deadline.is_some_and(|(deadline, _)| deadline <= *at)
            || main.stop.is_some_and(|stop| stop.killed || stop.deadline <= floor_ends)
            || pod.in_flight.iter().any(|o| hook_is_over(o, main))
    };
    let main = pod
        .containers
        .iter()
        .find(|c| c.role == Role::Main && c.may_run() && c.started.is_some() && !time_is_over(c))?;
    let explanation = format!(
        "sidecar {container} is stopped while main container {} is {}",
        main.id,
        main.life_in_words()
    );
    let subject = Some(Subject::Container(container.clone()));
    Some(violation(Invariant::S15, *at, *uid, subject, explanation, [*index, main.proof()]))
}

/// A sidecar whose stop or kill a pod's end brought about.
#[derive(Clone, Debug)]
struct StoppedSidecar {
    pod: PodUid,
    container: ContainerId,
    index: usize,
    at: Time,
}

/// Which containers of a pod a deadline is about.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    /// All but sidecars.
    Mains,
    /// Sidecars, which get the floor's worth of time after the mains were killed.
    Sidecars,
}

/// Deadlines of deletions that are still to pass.
#[derive(Clone, Debug, Default)]
pub(super) struct Deadlines {
    due: BTreeSet<(Time, PodUid, Whose)>,
    passed: Vec<Passed>,
    overslept: Vec<Overslept>,
    sidecars: Vec<StoppedSidecar>,
}

/// A deadline that passed, when the node could know, and what it could have stopped by then.
#[derive(Clone, Debug)]
struct Passed {
    deadline: Time,
    pod: PodUid,
    whose: Whose,
    noticed: Time,
    /// What could be stopped before the fact that passed the deadline. Of anything else (its start ends with this very
    /// fact, or the runtime is seen by it) the answer counts from now (S12).
    stoppable: Vec<ContainerId>,
}

/// A container that ran on when the node should have acted, and the node did not even ask to be woken for it. The fact that
/// shows it may be its exit.
#[derive(Clone, Debug)]
struct Overslept {
    pod: PodUid,
    container: ContainerId,
    evidence: [usize; 2],
}

impl Deadlines {
    /// A command may stop a sidecar.
    pub(super) fn command(&mut self, world: &WorldView, command: &Command, at: Time, index: usize) {
        let (Deed::Stops { container, .. } | Deed::Kills(container)) = Deed::of(&command.action) else {
            return;
        };
        let sidecar = world.pods.get(&command.pod).and_then(|pod| pod.container(container));
        if sidecar.is_some_and(|c| c.role == Role::Sidecar) && command.cause.rule == Rule::PodTerminating {
            let (pod, container) = (command.pod, container.clone());
            self.sidecars.push(StoppedSidecar { pod, container, index, at });
        }
    }

    /// Finds the deadlines that this fact's time passes, by what was known before it: the commands that it brings about
    /// must answer them.
    pub(super) fn pass(&mut self, world: &WorldView, fact: &Fact, at: Time) {
        if matches!(fact, Fact::AgentStarted { .. }) {
            // Time passed with the agent down; a new epoch hears of the deletion anew.
            self.due.clear();
        }
        let floor = world.minimum_grace;
        while let Some(first) = self.due.first().copied().filter(|(deadline, ..)| *deadline <= at) {
            self.due.remove(&first);
            let (mut deadline, uid, whose) = first;
            if !matches!(fact, Fact::Tick) && deadline.after(floor) < at {
                self.overslept.extend(overslept(world, uid, whose, deadline.after(floor)));
            }
            if matches!(fact, Fact::Tick) && deadline < at {
                // The node asked to be woken, and time leapt over the moment: its answer counts from now.
                if whose == Whose::Mains && self.due.remove(&(deadline.after(floor), uid, Whose::Sidecars)) {
                    self.due.insert((at.after(floor), uid, Whose::Sidecars));
                }
                deadline = at;
            }
            let known = world.pods.get(&uid).filter(|_| world.runtime_unknown.is_none());
            let stoppable = known.map(|pod| {
                pod.containers.iter().filter(|c| stoppable(pod, c)).map(|c| c.id.clone()).collect()
            });
            let stoppable = stoppable.unwrap_or_default();
            self.passed.push(Passed { deadline, pod: uid, whose, noticed: at, stoppable });
        }
    }

    /// A deletion sets a deadline.
    pub(super) fn set(&mut self, world: &WorldView, fact: &Fact, index: usize) {
        if let Fact::PodApplied(applied) = fact
            && let Some((deadline, told)) = world.pods.get(&applied.uid).and_then(|p| p.deadline)
            && told == index
        {
            self.due.insert((deadline, applied.uid, Whose::Mains));
            self.due.insert((deadline.after(world.minimum_grace), applied.uid, Whose::Sidecars));
        }
    }

    /// Judges the deadlines that passed before the batch that ends here.
    pub(super) fn settle(&mut self, world: &WorldView, at: Time, out: &mut Vec<Violation>) {
        out.extend(self.sidecars.drain(..).filter_map(|stopped| sidecar_before_main(world, &stopped)));
        for Overslept { pod, container, evidence } in self.overslept.drain(..) {
            let explanation = format!(
                "container {container} ran on past the pod's deadline; neither a kill nor a stop that ends in time was \
                 commanded, nor did the node ask to be woken for it"
            );
            let subject = Some(Subject::Container(container));
            out.push(violation(Invariant::S15, at, pod, subject, explanation, evidence));
        }
        for Passed { deadline, pod: uid, whose, noticed, stoppable: could } in
            std::mem::take(&mut self.passed)
        {
            let Some(pod) = world.pods.get(&uid).filter(|_| world.runtime_unknown.is_none()) else {
                continue;
            };
            let Some((_, told)) = pod.deadline else { continue };
            for container in pod.containers.iter().filter(|c| concerns(whose, c)) {
                let from = if could.contains(&container.id) { deadline } else { noticed };
                if runs_past(pod, container, from.after(world.minimum_grace)) {
                    let explanation = format!(
                        "container {} runs on past the pod's deadline, and neither a kill nor a stop that ends in time \
                         was commanded",
                        container.id
                    );
                    let evidence = [told, asked_or_proof(container)];
                    let subject = Some(Subject::Container(container.id.clone()));
                    out.push(violation(Invariant::S15, at, uid, subject, explanation, evidence));
                }
            }
        }
    }
}

/// What should have been stopped by then, before the fact that shows the time.
fn overslept(world: &WorldView, uid: PodUid, whose: Whose, in_time: Time) -> Vec<Overslept> {
    let Some(pod) = world.pods.get(&uid).filter(|_| world.runtime_unknown.is_none()) else {
        return Vec::new();
    };
    let Some((_, told)) = pod.deadline else { return Vec::new() };
    let run_on = pod.containers.iter().filter(|c| concerns(whose, c) && runs_past(pod, c, in_time));
    run_on
        .map(|c| Overslept { pod: uid, container: c.id.clone(), evidence: [told, asked_or_proof(c)] })
        .collect()
}

/// Whether a container could be stopped, and neither a kill nor a stop that ends in time was commanded.
fn runs_past(pod: &PodView, container: &ContainerView, in_time: Time) -> bool {
    let answered = container.stop.is_some_and(|stop| stop.killed || stop.deadline <= in_time);
    !answered && stoppable(pod, container)
}

/// The record of the stop that was commanded, or else what shows that it runs.
fn asked_or_proof(container: &ContainerView) -> usize {
    container.stop.map_or(container.proof(), |stop| stop.index)
}

fn concerns(whose: Whose, container: &ContainerView) -> bool {
    match whose {
        Whose::Mains => container.role != Role::Sidecar,
        Whose::Sidecars => container.role == Role::Sidecar,
    }
}

/// It runs as the node knows, and no other operation on it has to end first (S12).
fn stoppable(pod: &PodView, container: &ContainerView) -> bool {
    let occupied =
        pod.in_flight.iter().any(|o| !o.is_stop() && o.lane == Lane::Container(container.id.clone()));
    container.life == Life::Running && !container.hearsay && !occupied
}
