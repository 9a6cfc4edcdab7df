//! Does one step.

use super::expect::{self, Answered, Miss};
use super::{Run, Trouble};
use crate::act::{Acted, act};
use crate::scenario::{PodRef, Step, Used, Verb};
use nodefold_core::time::Nanos;

/// A world that has not settled by then never will.
const LONGEST_SETTLE: Nanos = Nanos::secs(3600);

impl Run<'_> {
    pub(super) fn perform(&mut self, step: &Step) -> Result<(), Trouble> {
        match &step.verb {
            Verb::Settle(within) => self.settle(*within),
            Verb::Advance(time) => self.advance(*time),
            Verb::Mark(name) => {
                let moment = self.moment();
                self.story.mark(name, moment);
                Ok(())
            }
            Verb::Expect(expectation) => {
                for check in &expectation.checks {
                    expect::check(check, self.stage, &self.story, self.last.as_ref())?;
                }
                Ok(())
            }
            Verb::Heal => self.heal(step),
            Verb::Create(_)
            | Verb::Update(_)
            | Verb::Dynamic(..)
            | Verb::Resize(..)
            | Verb::Ephemeral(..)
            | Verb::Status(..)
            | Verb::Delete(_)
            | Verb::Exit { .. }
            | Verb::Probe { .. }
            | Verb::Usage { .. }
            | Verb::Hold(_)
            | Verb::Release(_)
            | Verb::Fail(..)
            | Verb::Crash(_)
            | Verb::Set(_)
            | Verb::Step(_)
            | Verb::Choose(_)
            | Verb::Fault(_) => self.act(step),
        }
    }

    fn act(&mut self, step: &Step) -> Result<(), Trouble> {
        match act(self.stage, &step.verb, &step.title)? {
            Acted::Done => Ok(()),
            Acted::Answered(response) => {
                self.last = Some(Answered { line: step.line, what: step.title.clone(), response });
                Ok(())
            }
            Acted::Impossible(why) => Err(Trouble::Unusable(why)),
            Acted::Missed => match &step.verb {
                Verb::Exit { pod, container, .. } => {
                    Err(self.no_process(pod, container, "a running process to end"))
                }
                Verb::Probe { pod, container, .. } => {
                    Err(self.no_process(pod, container, "a container to probe"))
                }
                Verb::Usage { pod, of, .. } => Err(self.nothing_there(pod, of)),
                Verb::Release(scope) => Err(Trouble::Miss(Miss {
                    expected: format!("something held to release: {scope}"),
                    actual: format!("held: [{}]", self.stage.holds().join(", ")),
                    explanation: "a release ends the holds (or failures) within its scope; there are none"
                        .into(),
                })),
                // What is not enabled is skipped: that is what lets a history shrink.
                Verb::Step(_)
                | Verb::Choose(_)
                | Verb::Fault(_)
                | Verb::Create(_)
                | Verb::Update(_)
                | Verb::Dynamic(..)
                | Verb::Resize(..)
                | Verb::Ephemeral(..)
                | Verb::Status(..)
                | Verb::Delete(_)
                | Verb::Advance(_)
                | Verb::Settle(_)
                | Verb::Hold(_)
                | Verb::Fail(..)
                | Verb::Crash(_)
                | Verb::Set(_)
                | Verb::Mark(_)
                | Verb::Heal
                | Verb::Expect(_) => Ok(()),
            },
        }
    }

    /// Faults stop. Whatever broke on the way counts; then, what the trace says at its end.
    fn heal(&mut self, step: &Step) -> Result<(), Trouble> {
        self.story.heal(self.stage.node_now());
        self.act(step)?;
        self.tell_records();
        let leftovers = self.stage.simulation().map(|world| world.leftovers()).unwrap_or_default();
        self.story.judge_the_end(self.stage.node_now(), &leftovers);
        Ok(())
    }

    /// Lets time pass, and tells what happens as it happens: on a real host somebody waits.
    fn advance(&mut self, time: Nanos) -> Result<(), Trouble> {
        let until = self.stage.now().after(time);
        while self.stage.now() < until && self.story.violations.is_empty() && self.stage.pass_one(until)? {
            self.tell_records();
        }
        // What is left of the time, in which nothing happens.
        self.stage.pass_until(until)?;
        Ok(())
    }

    /// Runs until nothing is in flight and nothing is due within the time.
    pub(super) fn settle(&mut self, within: Nanos) -> Result<(), Trouble> {
        let last_moment = self.stage.now().after(LONGEST_SETTLE);
        loop {
            let waiting = self.stage.unsettled(within);
            if waiting.is_empty() || !self.story.violations.is_empty() {
                return Ok(());
            }
            if !self.stage.pass_one(last_moment)? {
                let (held, failing) = (self.stage.holds(), self.stage.failing());
                let because = [("held", held), ("made to fail", failing)];
                let because = because.into_iter().filter(|(_, what)| !what.is_empty());
                let because: Vec<String> =
                    because.map(|(how, what)| format!("{how}: {}", what.join(", "))).collect();
                return Err(Trouble::Miss(Miss {
                    expected: format!("nothing in flight and nothing due within {within}"),
                    actual: format!("after one hour still waiting for: {}", waiting.join(", ")),
                    explanation: if because.is_empty() {
                        "the retry of a failed operation counts as due; what waits for an object or a probe does not"
                            .into()
                    } else {
                        because.join("\n")
                    },
                }));
            }
            self.tell_records();
        }
    }

    fn nothing_there(&self, pod: &PodRef, of: &Used) -> Trouble {
        let left = self.stage.server().uid(pod).map(|uid| self.stage.left_of(uid)).unwrap_or_default();
        Trouble::Miss(Miss {
            expected: format!("on the host: {of} of {pod}"),
            actual: format!("on the node for that pod: [{}]", left.join(", ")),
            explanation: "what is not there takes up nothing".into(),
        })
    }

    fn no_process(&self, pod: &PodRef, container: &str, wanted: &str) -> Trouble {
        let uid = self.stage.server().uid(pod);
        let actual = match uid {
            None => format!("there never was a pod {pod}"),
            Some(uid) => match self.stage.instance(uid, container) {
                Some(instance) => format!("the newest instance, {instance}, does not run"),
                None => format!("no container {container} was ever created in {pod}"),
            },
        };
        let left = uid.map(|uid| self.stage.left_of(uid)).unwrap_or_default();
        Trouble::Miss(Miss {
            expected: format!("{wanted}: {container} of {pod}"),
            actual,
            explanation: format!("on the node for that pod: [{}]", left.join(", ")),
        })
    }
}
