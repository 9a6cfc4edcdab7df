//! Processes: how they end, who notices, and what probes find.

use super::choice::Choice;
use super::runtime::{Ending, State};
use super::{World, WorldError, latency};
use crate::record::Record;
use nodefold_core::command::{Action, Command};
use nodefold_core::event::{Fact, ProbeKind};
use nodefold_core::ids::{ContainerId, PodUid};
use nodefold_core::spec::Container;
use nodefold_core::time::Nanos;
use serde_json::Value;

/// A probe of one container instance.
pub(super) type ProbeKey = (PodUid, ContainerId, ProbeKind);

impl World {
    /// A process gets TERM: it ends well shortly after, or is killed when the grace is over.
    pub(super) fn terminate(&mut self, pod: PodUid, id: &ContainerId, grace: Nanos) {
        let Some(container) = self.runtime.containers.get_mut(&(pod, id.clone())) else { return };
        if let Some(after) = container.obeys_after {
            container.ending.get_or_insert(Ending::Code(0));
            let ends = Choice::ProcessEnds { pod, container: id.clone() };
            self.pending.entry(ends).or_insert(self.now.after(after));
        }
        let over = Choice::GraceOver { pod, container: id.clone() };
        let deadline = self.now.after(grace);
        let earlier = self.pending.get(&over).is_none_or(|due| *due > deadline);
        if earlier {
            self.pending.insert(over, deadline);
        }
    }

    /// A process gets KILL.
    pub(super) fn kill(&mut self, pod: PodUid, id: &ContainerId) {
        if let Some(container) = self.runtime.containers.get_mut(&(pod, id.clone())) {
            container.ending = Some(Ending::KILLED);
            self.process_ends(pod, id);
        }
    }

    /// A step of the story ends a process. False: no such process runs.
    pub fn end_process(&mut self, name: &crate::scenario::PodRef, container: &str, ending: Ending) -> bool {
        let Some(pod) = self.server.uid(name) else { return false };
        let Some(id) = self.runtime.running(pod, container).cloned() else { return false };
        if let Some(running) = self.runtime.containers.get_mut(&(pod, id.clone())) {
            running.ending = Some(ending);
        }
        self.process_ends(pod, &id);
        true
    }

    /// A process ends now, as it was about to.
    pub(super) fn process_ends(&mut self, pod: PodUid, id: &ContainerId) {
        for awaited in [
            Choice::ProcessEnds { pod, container: id.clone() },
            Choice::GraceOver { pod, container: id.clone() },
        ] {
            if self.pending.contains_key(&awaited) {
                self.pending.remove(&awaited);
            }
        }
        let now = self.now;
        // A runtime reads the clock that the agent reads.
        let shown = self.faults.node_time(now);
        let Some(container) = self.runtime.containers.get_mut(&(pod, id.clone())) else { return };
        let started_at = match &container.state {
            State::Running { started_at } => Some(*started_at),
            State::Created => None,
            State::Exited(_) => return,
        };
        let exit = container.ending.unwrap_or(Ending::KILLED).exit(started_at, shown);
        container.state = State::Exited(exit.clone());
        self.records.push(Record::ProcessEnded { at: now, pod, container: id.clone(), exit });
        if self.agent.is_alive() {
            let noticed = Choice::ExitNoticed { pod, container: id.clone() };
            self.pending.insert(noticed, now.after(latency::EXIT_NOTICE));
        }
    }

    /// The agent hears of an exit.
    pub(super) fn exit_noticed(&mut self, pod: PodUid, id: &ContainerId) -> Result<(), WorldError> {
        let exit = match self.runtime.containers.get(&(pod, id.clone())).map(|c| &c.state) {
            Some(State::Exited(exit)) => exit.clone(),
            Some(State::Created | State::Running { .. }) | None => return Ok(()),
        };
        self.tell(Fact::ContainerExited { pod, container: id.clone(), exit })
    }

    /// The agent begins or ends to probe.
    pub(super) fn probing_changes(&mut self, command: &Command) {
        let pod = command.pod;
        if let Action::StartProbe { container, probe, spec } = &command.action {
            self.probes.insert((pod, container.clone(), *probe), None);
            let first = self.now.after(first_result(spec, *probe));
            self.pending
                .insert(Choice::ProbeReported { pod, container: container.clone(), probe: *probe }, first);
        } else if let Action::StopProbe { container, probe } = &command.action {
            self.probes.remove(&(pod, container.clone(), *probe));
            self.pending.remove(&Choice::ProbeReported { pod, container: container.clone(), probe: *probe });
        }
    }

    /// The agent hears what a probe finds, if that is news.
    pub(super) fn probe_reported(
        &mut self,
        pod: PodUid,
        id: &ContainerId,
        probe: ProbeKind,
    ) -> Result<(), WorldError> {
        let Some(container) = self.runtime.containers.get(&(pod, id.clone())) else { return Ok(()) };
        if !matches!(container.state, State::Running { .. }) {
            return Ok(());
        }
        let passed = container.probes.get(&probe).copied().unwrap_or(true);
        match self.probes.get_mut(&(pod, id.clone(), probe)) {
            Some(last) if *last != Some(passed) => *last = Some(passed),
            Some(_) | None => return Ok(()),
        }
        let message = if passed { "" } else { "the scenario made it fail" };
        self.tell(Fact::ProbeResult { pod, container: id.clone(), probe, passed, message: message.into() })
    }

    /// A step of the story changes what a probe finds: of the process that runs, else of the next. False: there is no such
    /// container.
    pub fn flip_probe(
        &mut self,
        name: &crate::scenario::PodRef,
        container: &str,
        probe: ProbeKind,
        passes: bool,
    ) -> bool {
        let Some(pod) = self.server.uid(name) else { return false };
        let Some(id) = self.runtime.running(pod, container).cloned() else {
            let wanted = self.server.wants_container(name, container);
            if wanted {
                self.runtime.foretell(pod, container, probe, passes);
            }
            return wanted;
        };
        if let Some(running) = self.runtime.containers.get_mut(&(pod, id.clone())) {
            running.probes.insert(probe, passes);
        }
        if self.probes.contains_key(&(pod, id.clone(), probe)) {
            let report = Choice::ProbeReported { pod, container: id, probe };
            self.pending.insert(report, self.now.after(latency::PROBE_FLIP));
        }
        true
    }
}

/// From a probe's start to its first result: its initial delay, and as many periods as its threshold needs after the
/// first sample.
fn first_result(spec: &Container, probe: ProbeKind) -> Nanos {
    let field = match probe {
        ProbeKind::Startup => "startupProbe",
        ProbeKind::Liveness => "livenessProbe",
        ProbeKind::Readiness => "readinessProbe",
    };
    let rest: Value = serde_json::from_str(&spec.rest.0).unwrap_or(Value::Null);
    let number = |name: &str, default: u64| rest[field][name].as_u64().unwrap_or(default);
    let more_samples = number("successThreshold", 1).saturating_sub(1);
    let wait = number("initialDelaySeconds", 0)
        .saturating_add(more_samples.saturating_mul(number("periodSeconds", 10)));
    Nanos(Nanos::secs(wait).0.saturating_add(latency::PROBE.0))
}
