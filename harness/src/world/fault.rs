//! Faults: what may go wrong, as typed values that name what they strike by its stable name. A fault that finds nothing
//! to strike does nothing, which is what lets a history shrink.
//!
//! The budget (harness sheet H12): a record and the only physical trace of it are never both destroyed. Facts that are
//! durable stay; what a lost fact spoke of can still be seen on the host or in the API.

use super::choice::Choice;
use super::inflight::{Fate, OpKey, Phase};
use super::runtime::{Ending, State};
use super::{World, WorldError, latency};
use crate::scenario::PodRef;
use nodefold_core::command::Action;
use nodefold_core::event::{ErrorClass, Fact, OpError};
use nodefold_core::ids::{ContainerId, Name, ObjectRef, PodUid};
use nodefold_core::time::{Nanos, Time};
use std::collections::BTreeMap;

/// Where an agent dies while it handles its next fact.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CrashPoint {
    /// Before the fact is written: nobody ever knew.
    BeforeAppend,
    /// While it is made durable: these bits say what of it reached the disk.
    Unsynced(u64),
    /// It is durable; none of its commands was given out.
    AfterAppend,
    /// Of its commands this many were given out.
    AfterDispatch(u32),
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An operation on its way will end in an error.
    Fail {
        /// Which, by its stable name.
        operation: String,
        /// What the error says about the effect.
        class: ErrorClass,
        /// It is done all the same: a timeout after success.
        done: bool,
    },
    /// Something that is about to happen comes later.
    Delay {
        /// Which choice, by its stable name.
        choice: String,
        /// How much later.
        by: Nanos,
    },
    /// The agent will hear an operation's answer twice.
    Twice {
        /// Which, by its stable name.
        operation: String,
        /// How long after the first.
        after: Nanos,
    },
    /// An operation's answer outlives the agent: the next agent hears it.
    Linger {
        /// Which, by its stable name.
        operation: String,
    },
    /// A list of the runtime will be partial, and says so.
    Partial {
        /// Which, by its stable name.
        operation: String,
        /// Which entries are left out: the bits, by place.
        leaves_out: u64,
    },
    /// A process will take this long over TERM; `None`: it ignores it.
    Term {
        /// In which pod.
        pod: PodRef,
        /// In which container.
        container: String,
        /// How long it takes.
        takes: Option<Nanos>,
    },
    /// A process ends now, and until faults stop so does each that is started in its container.
    Dies {
        /// In which pod.
        pod: PodRef,
        /// In which container.
        container: String,
        /// How.
        ending: Ending,
        /// How long after its start.
        after: Nanos,
    },
    /// A sandbox dies.
    SandboxDies {
        /// Of which pod.
        pod: PodRef,
        /// Its processes die with it.
        with_containers: bool,
    },
    /// The API's watch is cut, then lists anew.
    Disconnect {
        /// For how long.
        lasts: Nanos,
    },
    /// The authorizer does not let the node read an object, yet.
    Forbid {
        /// Which.
        object: ObjectRef,
        /// For how long.
        lasts: Nanos,
    },
    /// The agent dies while it handles its next fact.
    Crash(CrashPoint),
    /// The node's clock jumps forward.
    ClockForward(Nanos),
    /// The node's clock jumps back.
    ClockBack(Nanos),
    /// The agent's disk is full: nothing can be made durable.
    DiskFull {
        /// For how long.
        lasts: Nanos,
    },
}

/// Faults in force, besides those that strike one operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    pub(super) crash: Option<CrashPoint>,
    pub(super) disk_full: bool,
    /// The node's clock is this much ahead of the world's.
    pub(super) ahead: Nanos,
    /// Or behind.
    pub(super) behind: Nanos,
    /// Completions that come once more, or late from a former life.
    pub(super) echoes: BTreeMap<u32, Fact>,
    pub(super) echoes_made: u32,
    /// Containers whose processes end by themselves: how, and how long after their start.
    pub(super) short_lived: BTreeMap<(PodUid, Name), (Ending, Nanos)>,
    /// Faults have stopped: what runs once comes to its end by itself.
    pub(super) healed: bool,
}

impl Faults {
    /// Nothing goes wrong, and nothing is left of what did.
    pub(super) fn are_none(&self) -> bool {
        let Faults { crash, disk_full, ahead, behind, echoes, echoes_made: _, short_lived, healed } = self;
        crash.is_none()
            && !disk_full
            && (*ahead, *behind) == (Nanos::ZERO, Nanos::ZERO)
            && echoes.is_empty()
            && short_lived.is_empty()
            && !healed
    }

    /// What the node's clock shows.
    pub(super) fn node_time(&self, now: Time) -> Time {
        Time(now.after(self.ahead).0.saturating_sub(self.behind.0))
    }

    /// When the node's clock shows that, in the world's time.
    pub(super) fn world_time(&self, shown: Time) -> Time {
        Time(shown.after(self.behind).0.saturating_sub(self.ahead.0))
    }
}

impl World {
    /// Something goes wrong. False, and nothing happens, if there is nothing for it to strike.
    pub fn inject(&mut self, fault: &Fault) -> Result<bool, WorldError> {
        Ok(match fault {
            Fault::Fail { operation, class, done } => self.strike(operation, |op| {
                let error = OpError { class: *class, reason: None, message: told(*class, *done).into() };
                let possible = !matches!(op.phase, Phase::Done { .. }) && op.fate.is_none();
                if possible {
                    op.fate = Some(Fate { error, done: *done });
                }
                possible
            }),
            Fault::Delay { choice, by } => self.delay(choice, *by),
            Fault::Twice { operation, after } => {
                self.strike(operation, |op| op.echo.replace(*after).is_none() && !op.orphan)
            }
            Fault::Linger { operation } => {
                self.strike(operation, |op| !std::mem::replace(&mut op.lingers, true))
            }
            Fault::Partial { operation, leaves_out } => {
                self.strike(operation, |op| op.leaves_out.replace(*leaves_out).is_none())
            }
            Fault::Term { pod, container, takes } => self.term_takes(pod, container, *takes),
            Fault::Dies { pod, container, ending, after } => {
                let Some(uid) = self.server.uid(pod) else { return Ok(false) };
                let dies = self.end_process(pod, container, *ending);
                if dies {
                    self.faults.short_lived.insert((uid, container.as_str().into()), (*ending, *after));
                }
                dies
            }
            Fault::SandboxDies { pod, with_containers } => self.sandbox_dies(pod, *with_containers),
            Fault::Disconnect { lasts } => self.disconnect(*lasts),
            Fault::Forbid { object, lasts } => {
                self.server.forbid(object.clone());
                self.pending.insert(Choice::Permitted(object.clone()), self.now.after(*lasts));
                true
            }
            Fault::Crash(point) => self.agent.is_alive() && self.faults.crash.replace(*point).is_none(),
            Fault::ClockForward(by) => {
                self.faults.ahead = Nanos(self.faults.ahead.0.saturating_add(by.0));
                true
            }
            Fault::ClockBack(by) => {
                self.faults.behind = Nanos(self.faults.behind.0.saturating_add(by.0));
                true
            }
            Fault::DiskFull { lasts } => {
                self.faults.disk_full = true;
                self.pending.insert(Choice::DiskFreed, self.now.after(*lasts));
                true
            }
        })
    }

    fn strike(&mut self, label: &str, how: impl FnOnce(&mut super::InFlight) -> bool) -> bool {
        let Some(key) = self.find_operation(label) else { return false };
        self.inflight.get_mut(&key).is_some_and(how)
    }

    fn delay(&mut self, label: &str, by: Nanos) -> bool {
        let Some(choice) = self.find_choice(label) else { return false };
        match &choice {
            Choice::Effect(key) | Choice::Answer(key) => {
                if let Some(op) = self.inflight.get_mut(key) {
                    match &mut op.phase {
                        Phase::Running { due } => *due = due.after(by),
                        Phase::Done { at, .. } => *at = at.after(by),
                        Phase::Held { .. } => return false,
                    }
                }
                true
            }
            Choice::Deliver { source, pod, .. } => self.server.delay(*source, *pod, by),
            // A deadline is the node's own, and a kill at the end of the grace is the runtime's promise.
            Choice::Tick | Choice::GraceOver { .. } => false,
            Choice::ProcessEnds { .. }
            | Choice::ExitNoticed { .. }
            | Choice::SandboxNoticed { .. }
            | Choice::Echo(_)
            | Choice::ProbeReported { .. }
            | Choice::SourceListed(_)
            | Choice::ObjectReported(_)
            | Choice::GateReported { .. }
            | Choice::UsageMeasured { .. }
            | Choice::NodeReported
            | Choice::Reconnect
            | Choice::Permitted(_)
            | Choice::DiskFreed
            | Choice::AgentStarts => match self.pending.get_mut(&choice) {
                Some(due) => {
                    *due = due.after(by);
                    true
                }
                None => false,
            },
        }
    }

    fn term_takes(&mut self, name: &PodRef, container: &str, takes: Option<Nanos>) -> bool {
        let Some(pod) = self.server.uid(name) else { return false };
        let Some(id) = self.runtime.running(pod, container).cloned() else { return false };
        match self.runtime.containers.get_mut(&(pod, id)) {
            Some(running) => {
                running.obeys_after = takes;
                true
            }
            None => false,
        }
    }

    fn sandbox_dies(&mut self, name: &PodRef, with_containers: bool) -> bool {
        let Some(pod) = self.server.uid(name) else { return false };
        let alive = self.runtime.sandboxes.iter_mut().find(|((owner, _), s)| *owner == pod && s.ready);
        let Some((&(_, attempt), sandbox)) = alive else { return false };
        sandbox.ready = false;
        if with_containers {
            for id in self.living_in(pod, attempt) {
                self.kill(pod, &id);
            }
        }
        if self.agent.is_alive() {
            let noticed = Choice::SandboxNoticed { pod, attempt };
            self.pending.insert(noticed, self.now.after(latency::EXIT_NOTICE));
        }
        true
    }

    /// Containers of a sandbox that have not ended.
    pub(super) fn living_in(&self, pod: PodUid, attempt: u32) -> Vec<ContainerId> {
        self.runtime
            .of_pod(pod)
            .filter(|(_, c)| c.sandbox == attempt && !matches!(c.state, State::Exited(_)))
            .map(|(id, _)| id.clone())
            .collect()
    }

    fn disconnect(&mut self, lasts: Nanos) -> bool {
        if !self.agent.is_alive() || !self.server.cut() {
            return false;
        }
        self.pending.insert(Choice::Reconnect, self.now.after(lasts));
        true
    }

    /// A completion will come (again) as the agent's own, or as a former agent's.
    pub(super) fn echo(&mut self, answer: Fact, after: Nanos) {
        let number = self.faults.echoes_made;
        self.faults.echoes_made += 1;
        self.faults.echoes.insert(number, answer);
        self.pending.insert(Choice::Echo(number), self.now.after(after));
    }

    pub(super) fn echo_heard(&mut self, number: u32) -> Result<(), WorldError> {
        match self.faults.echoes.remove(&number) {
            Some(answer) => self.tell(answer),
            None => Ok(()),
        }
    }

    /// Whoever hears a runtime knows by its own ids what an end is about: not a namesake in a pod's next life, which lives or
    /// is only being made.
    pub(super) fn is_of_a_namesake(&self, fact: &Fact) -> bool {
        let made = |by: &dyn Fn(&Action) -> bool| self.inflight.values().any(|op| by(&op.command.action));
        if let Fact::SandboxStopped { pod, attempt } = fact {
            return match self.runtime.sandboxes.get(&(*pod, *attempt)) {
                Some(sandbox) => sandbox.ready,
                None => made(
                    &|action| matches!(action, Action::CreateSandbox { attempt: a, pod: of, .. } if (of.uid, a) == (*pod, attempt)),
                ),
            };
        }
        if let Fact::ContainerExited { pod, container, .. } = fact {
            return match self.runtime.containers.get(&(*pod, container.clone())) {
                Some(known) => !matches!(known.state, State::Exited(_)),
                None => made(
                    &|action| matches!(action, Action::CreateContainer { container: id, pod: of, .. } if of.uid == *pod && id == container),
                ),
            };
        }
        false
    }

    /// Answers that outlive their agent are heard by the next one.
    pub(super) fn keep_lingering(&mut self) {
        let lingering: Vec<Fact> = self
            .inflight
            .values()
            .filter(|op| op.lingers)
            .filter_map(|op| match &op.phase {
                Phase::Done { answer, .. } => Some(answer.clone()),
                Phase::Running { .. } | Phase::Held { .. } => None,
            })
            .collect();
        for answer in lingering {
            self.echo(answer, Nanos(latency::AGENT_RESTART.0 * 2));
        }
    }

    /// Faults stop (DESIGN §6, liveness mode): rules end, what hangs goes on, the disk has room, images are there, the
    /// node may read everything, processes that have something to finish do. What users asked for stands, and so do the
    /// clocks.
    pub fn heal(&mut self) {
        self.rules = super::Rules::default();
        self.release(&super::Scope { operation: super::Operation::Watch, pod: None, target: None });
        self.images.set(None);
        self.faults.crash = None;
        self.faults.disk_full = false;
        self.faults.short_lived.clear();
        self.faults.healed = true;
        self.pending.remove(&Choice::DiskFreed);
        let now = self.now;
        for object in self.server.forbidden().clone() {
            self.pending.insert(Choice::Permitted(object), now);
        }
        if let Some(due) = self.pending.get_mut(&Choice::Reconnect) {
            *due = now;
        }
        for op in self.inflight.values_mut() {
            op.fate = None;
            op.leaves_out = None;
        }
        self.runtime.heal_probes();
        for (pod, container, probe) in self.probes.keys().cloned().collect::<Vec<_>>() {
            let reported = Choice::ProbeReported { pod, container, probe };
            self.pending.entry(reported).or_insert(now.after(latency::PROBE_FLIP));
        }
        let finishing: Vec<(PodUid, ContainerId)> = self
            .runtime
            .containers
            .iter()
            .filter(|(_, c)| c.runs_once && matches!(c.state, State::Running { .. }))
            .map(|(key, _)| key.clone())
            .collect();
        for (pod, container) in finishing {
            self.finishes(pod, &container);
        }
    }

    /// A process that has something to finish finishes it.
    pub(super) fn finishes(&mut self, pod: PodUid, id: &ContainerId) {
        if let Some(container) = self.runtime.containers.get_mut(&(pod, id.clone())) {
            container.ending.get_or_insert(super::Ending::Code(0));
            let ends = Choice::ProcessEnds { pod, container: id.clone() };
            self.pending.entry(ends).or_insert(self.now.after(latency::RUN_ONCE));
        }
    }

    /// Operations on their way, as a fault would name them, and whether they have taken effect.
    pub fn operations(&self) -> impl Iterator<Item = (&OpKey, bool)> {
        self.inflight.iter().map(|(key, op)| (key, matches!(op.phase, Phase::Done { .. })))
    }
}

/// What the agent is told.
fn told(class: ErrorClass, done: bool) -> &'static str {
    match (class, done) {
        (ErrorClass::Final, _) => "refused: the world made it fail",
        (ErrorClass::Transient, _) => "not tried: the world was not reachable",
        (ErrorClass::Uncertain, true) => "context deadline exceeded",
        (ErrorClass::Uncertain, false) => "connection reset by peer",
    }
}
