//! The oracles: one file per invariant, each a plain function (or a small state) over the shared [`WorldView`].
//!
//! An entry is judged against the world before it, then taken in. Nothing here looks at the core.

mod deed;
mod s01_unmount_in_use;
mod s02_start_before_ready;
mod s03_not_as_allocated;
mod s04_mixed_allocation;
mod s05_overcommitted;
mod s06_two_lives;
mod s07_begun_while_ending;
mod s08_released_early;
mod s09_needless_restart;
mod s10_phases;
mod s11_mounts_of_a_running_container;
mod s12_two_operations;
mod s13_left_behind;
mod s14_evidence;
mod s15_deadlines;

use crate::invariant::{Invariant, Violation};
use crate::liveness::Quiet;
use crate::world_view::WorldView;
use nodefold_core::command::{Command, Subject, TraceEntry};
use nodefold_core::config::Config;
use nodefold_core::event::Fact;
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;

/// All oracles over one trace.
#[derive(Clone, Debug)]
pub struct Oracles {
    world: WorldView,
    charges: s05_overcommitted::Charges,
    deadlines: s15_deadlines::Deadlines,
    quiet: Quiet,
    next: usize,
    violations: Vec<Violation>,
}

/// An entry being judged.
struct Record<'a> {
    index: usize,
    at: Time,
    what: What<'a>,
}

/// What an entry is.
enum What<'a> {
    Fact(&'a Fact),
    Command(&'a Command),
}

impl Oracles {
    /// Oracles that have seen nothing yet.
    pub fn new(config: &Config) -> Oracles {
        Oracles {
            world: WorldView::new(config),
            charges: s05_overcommitted::Charges::default(),
            deadlines: s15_deadlines::Deadlines::default(),
            quiet: Quiet::new(config.timing.clone()),
            next: 0,
            violations: Vec::new(),
        }
    }

    /// Judges the trace's next entry.
    pub fn observe(&mut self, entry: &TraceEntry) {
        let index = self.next;
        self.next += 1;
        self.world.prepare(entry);
        let record = match entry {
            TraceEntry::Fact(event) => {
                Record { index, at: self.world.effective(event.at), what: What::Fact(&event.fact) }
            }
            TraceEntry::Command { at, command } => {
                Record { index, at: self.world.effective(*at), what: What::Command(command) }
            }
        };
        self.judge_before(&record);
        self.world.observe(entry, index);
        self.judge_after(&record);
    }

    /// Judges what waits for the end of a batch of commands, when no further entry will come.
    pub fn finish(&mut self) {
        self.charges.settle(&self.world, self.world.now, &mut self.violations);
        self.deadlines.settle(&self.world, self.world.now, &mut self.violations);
    }

    /// Faults stop now: from here on the node must become quiet (L1–L5).
    pub fn heal(&mut self, at: Time) {
        self.quiet.heal(at);
    }

    /// Judges the end: faults stopped at [`Oracles::heal`] (at the trace's beginning, if that was never called), and time
    /// enough for every back-off to run out has passed until `now`.
    pub fn at_rest(&mut self, now: Time) {
        self.finish();
        self.violations.extend(self.quiet.judge(&self.world, now));
    }

    /// What was found and not taken yet.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// Takes what was found.
    pub fn take_violations(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.violations)
    }

    /// What they remember, without record numbers and times (see [`WorldView::memory`]).
    pub fn memory(&self, who: &dyn Fn(PodUid) -> PodUid, out: &mut Vec<u8>) {
        self.world.memory(who, out);
    }

    /// How many pods, instances, versions and operations are remembered: bounded by what lives, whatever the trace's
    /// length.
    pub fn remembered(&self) -> usize {
        let of_pod = |p: &crate::world_view::pod::PodView| {
            1 + p.containers.len()
                + p.volumes.len()
                + p.sandboxes.len()
                + p.init_done.len()
                + p.in_flight.len()
                + p.allocation.versions.len()
        };
        self.world.pods.values().map(of_pod).sum::<usize>()
            + self.charges.remembered()
            + self.quiet.remembered()
    }

    /// Judges by what was known before the entry.
    fn judge_before(&mut self, record: &Record<'_>) {
        let (world, out) = (&self.world, &mut self.violations);
        match record.what {
            What::Command(command) => {
                s01_unmount_in_use::judge(world, record, command, out);
                s02_start_before_ready::judge(world, record, command, out);
                s03_not_as_allocated::judge(world, record, command, out);
                s04_mixed_allocation::judge(world, record, command, out);
                s06_two_lives::judge(world, record, command, out);
                s07_begun_while_ending::judge(world, record, command, out);
                s08_released_early::judge(world, record, command, out);
                s09_needless_restart::judge(world, record, command, out);
                s10_phases::judge(world, record, command, out);
                s11_mounts_of_a_running_container::judge(world, record, command, out);
                s12_two_operations::judge(world, record, command, out);
                s13_left_behind::judge_told(world, record, command, out);
                s14_evidence::judge(world, record, command, out);
                s15_deadlines::judge(world, record, command, out);
            }
            What::Fact(fact) => {
                // A fact ends the batch of commands that the former one brought about.
                self.charges.settle(world, record.at, out);
                self.deadlines.settle(world, record.at, out);
                self.deadlines.pass(world, fact, record.at);
                out.extend(self.quiet.fact(world, fact, record.at));
                s13_left_behind::judge(world, record, fact, out);
            }
        }
    }

    /// Judges by what is known now.
    fn judge_after(&mut self, record: &Record<'_>) {
        let world = &self.world;
        match record.what {
            What::Command(command) => {
                self.charges.command(command, record.index);
                self.deadlines.command(world, command, record.at, record.index);
                self.violations.extend(self.quiet.command(world, command, record.at, record.index));
            }
            What::Fact(fact) => {
                self.charges.fact(fact);
                self.deadlines.set(world, fact, record.index);
                if matches!(fact, Fact::AgentStarted { .. }) {
                    self.quiet.agent_started();
                }
                match fact.pod() {
                    Some(pod) if !world.pods.contains_key(&pod) => self.quiet.forget(pod),
                    Some(_) => {}
                    // A list may have ended any.
                    None if !matches!(
                        fact,
                        Fact::Tick | Fact::ObjectSeen { .. } | Fact::ObjectGone { .. }
                    ) =>
                    {
                        self.quiet.keep(|pod| world.pods.contains_key(&pod));
                    }
                    None => {}
                }
            }
        }
    }
}

/// A violation by one pod's record.
fn breach(
    invariant: Invariant,
    record: &Record<'_>,
    pod: PodUid,
    subject: Option<Subject>,
    explanation: String,
    evidence: &[usize],
) -> Violation {
    violation(invariant, record.at, pod, subject, explanation, evidence.iter().copied().chain([record.index]))
}

fn violation(
    invariant: Invariant,
    at: Time,
    pod: PodUid,
    subject: Option<Subject>,
    explanation: String,
    evidence: impl IntoIterator<Item = usize>,
) -> Violation {
    let mut evidence: Vec<usize> = evidence.into_iter().collect();
    evidence.sort_unstable();
    evidence.dedup();
    Violation { invariant, pod, subject, at, explanation, evidence }
}
