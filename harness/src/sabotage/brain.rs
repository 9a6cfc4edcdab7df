//! The wrapper that makes a brain wrong: applies the mechanisms of one saboteur around another brain.

use super::memory::Memory;
use super::{Heard, Said, Wrong};
use crate::brain::Brain;
use nodefold_core::command::{Action, Cause, Command};
use nodefold_core::event::{ErrorClass, Event, Fact, OpError};
use nodefold_core::ids::{EventSeq, OpId};
use nodefold_core::time::Time;
use nodefold_core::{Commands, Digest, Node};
use std::collections::VecDeque;

/// Operations that the brain inside knows nothing of are numbered from here on.
const MADE_UP: u64 = 1 << 48;

/// A sabotaged brain.
pub struct Sabotaged {
    wrong: &'static [Wrong],
    inner: Box<dyn Brain>,
    memory: Memory,
    made_up: u64,
}

impl Sabotaged {
    /// A brain that has seen nothing.
    pub fn new(wrong: &'static [Wrong], inner: Box<dyn Brain>) -> Sabotaged {
        Sabotaged { wrong, inner, memory: Memory::default(), made_up: 0 }
    }

    /// What the brain inside is told.
    fn heard(&self, event: &Event) -> Vec<Fact> {
        if event.fact.op().is_some_and(|op| op.0 >= MADE_UP) {
            return Vec::new();
        }
        let mut facts = vec![event.fact.clone()];
        for wrong in self.wrong {
            match wrong {
                Wrong::Hears(hears) => {
                    facts = facts
                        .into_iter()
                        .flat_map(|fact| {
                            let event = Event { at: event.at, fact };
                            match hears(&self.memory, &event) {
                                Heard::AsItIs => vec![event.fact],
                                Heard::Nothing => Vec::new(),
                                Heard::Instead(facts) => facts,
                            }
                        })
                        .collect();
                }
                Wrong::Says(_)
                | Wrong::Adds(_)
                | Wrong::Invents(_)
                | Wrong::Wakes(_)
                | Wrong::Believes(_)
                | Wrong::Log(_)
                | Wrong::NeverSyncs
                | Wrong::RetriesSyncs
                | Wrong::Answers(_) => {}
            }
        }
        facts
    }

    /// Has the brain inside fold facts, and gives what becomes of its commands.
    fn fold(&mut self, at: Time, facts: Vec<Fact>, out: &mut Commands) {
        let mut facts = VecDeque::from(facts);
        let mut answered = false;
        while let Some(fact) = facts.pop_front() {
            let mut inner = Commands::default();
            self.inner.apply(&Event { at, fact }, &mut inner);
            out.transitions.append(&mut inner.transitions);
            for command in inner.commands {
                match self.said(command) {
                    Outcome::Given(command) => out.commands.push(command),
                    Outcome::Swallowed(answer) => {
                        answered |= answer.is_some();
                        facts.extend(answer);
                    }
                }
            }
            // Whoever answers a brain wakes it, too: what an answer makes due at once must not wait for somebody else.
            let due = self.inner.next_deadline().is_some_and(|due| due <= at);
            if facts.is_empty() && std::mem::take(&mut answered) && due {
                facts.push_back(Fact::Tick);
            }
        }
    }

    fn said(&self, mut command: Command) -> Outcome {
        for wrong in self.wrong {
            let Wrong::Says(says) = wrong else { continue };
            match says(&self.memory, &command) {
                Said::AsItIs => {}
                Said::Nothing => return Outcome::Swallowed(None),
                Said::Refused => return Outcome::Swallowed(refusal(&command)),
                Said::Pretended => return Outcome::Swallowed(success(&command)),
                Said::Instead(action) => command.action = action,
            }
        }
        Outcome::Given(command)
    }
}

/// What became of a command of the brain inside.
enum Outcome {
    Given(Command),
    /// Nobody executes it, and the brain inside hears this of it.
    Swallowed(Option<Fact>),
}

fn refusal(command: &Command) -> Option<Fact> {
    let (op, pod) = (command.op, command.pod);
    let error = OpError { class: ErrorClass::Transient, reason: None, message: "sabotaged".into() };
    if let Action::UnmountVolume { volume, .. } = &command.action {
        return Some(Fact::VolumeUnmountFailed { op, pod, volume: volume.clone(), error });
    }
    if let Action::StopContainer { container, .. } | Action::KillContainer { container } = &command.action {
        return Some(Fact::ContainerStopFailed { op, pod, container: container.clone(), error });
    }
    if let Action::RefreshVolume { volume, .. } = &command.action {
        return Some(Fact::VolumeRefreshFailed { op, pod, volume: volume.clone(), error });
    }
    if let Action::CreateContainer { container, .. } = &command.action {
        return Some(Fact::ContainerCreateFailed { op, pod, container: container.clone(), error });
    }
    if let Action::PublishStatus { .. } = &command.action {
        return Some(Fact::StatusWriteFailed { op, pod, error });
    }
    if let Action::ReleasePod = &command.action {
        return Some(Fact::ReleaseFailed { op, pod, error });
    }
    None
}

fn success(command: &Command) -> Option<Fact> {
    let (op, pod) = (command.op, command.pod);
    if let Action::UnmountVolume { volume, .. } = &command.action {
        return Some(Fact::VolumeUnmounted { op, pod, volume: volume.clone() });
    }
    if let Action::MountVolume { volume, .. } = &command.action {
        return Some(Fact::VolumeMounted {
            op,
            pod,
            volume: volume.clone(),
            renew_at: None,
            image_digest: None,
        });
    }
    if let Action::PublishStatus { .. } = &command.action {
        return Some(Fact::StatusWritten { op, pod });
    }
    None
}

impl Brain for Sabotaged {
    fn apply(&mut self, event: &Event, out: &mut Commands) {
        self.memory.fact(event);
        let mut given = Commands::default();
        let mut facts = self.heard(event);
        if facts.is_empty() {
            facts.push(Fact::Tick);
        }
        self.fold(event.at, facts, &mut given);
        for wrong in self.wrong {
            if let Wrong::Invents(invents) = wrong {
                let invented = invents(&self.memory, &event.fact, &given.commands);
                self.fold(event.at, invented, &mut given);
            }
        }
        for wrong in self.wrong {
            if let Wrong::Adds(adds) = wrong {
                for order in adds(&self.memory, &event.fact, &given.commands) {
                    let op = OpId(MADE_UP + self.made_up);
                    self.made_up += 1;
                    let cause = Cause { event: EventSeq(0), rule: order.rule };
                    given.commands.push(Command { op, pod: order.pod, cause, action: order.action });
                }
            }
        }
        for command in &given.commands {
            self.memory.command(command);
        }
        out.commands.append(&mut given.commands);
        out.transitions.append(&mut given.transitions);
    }

    fn next_deadline(&self) -> Option<Time> {
        self.wrong.iter().fold(self.inner.next_deadline(), |due, wrong| match wrong {
            Wrong::Wakes(wakes) => wakes(&self.memory, due),
            Wrong::Hears(_)
            | Wrong::Says(_)
            | Wrong::Adds(_)
            | Wrong::Invents(_)
            | Wrong::Believes(_)
            | Wrong::Log(_)
            | Wrong::NeverSyncs
            | Wrong::RetriesSyncs
            | Wrong::Answers(_) => due,
        })
    }

    fn work_due(&self) -> Option<(Time, String)> {
        let (due, why) = self.inner.work_due()?;
        // Who never wakes for it has no work.
        self.next_deadline().map(|wakes| (due.max(wakes), why))
    }

    fn boxed_clone(&self) -> Box<dyn Brain> {
        Box::new(Sabotaged {
            wrong: self.wrong,
            inner: self.inner.boxed_clone(),
            memory: self.memory.clone(),
            made_up: self.made_up,
        })
    }

    fn digest(&mut self) -> Digest {
        self.inner.digest()
    }

    fn memory(&self, out: &mut Vec<u8>) {
        self.memory.canonical(out);
    }

    fn node(&self) -> Option<&Node> {
        self.inner.node()
    }

    fn node_mut(&mut self) -> Option<&mut Node> {
        self.inner.node_mut()
    }
}
