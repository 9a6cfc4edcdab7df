//! The simulated container runtime: sandboxes and containers with their processes. It does what a runtime does and
//! judges nothing but what no host could do.

use nodefold_core::command::MountedVolume;
use nodefold_core::event::{Exit, ProbeKind, SeenContainer, SeenSandbox, SeenState};
use nodefold_core::ids::{ContainerId, Name, PodUid, VolumeId};
use nodefold_core::time::{Nanos, Time};
use std::collections::BTreeMap;

/// A sandbox.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// It runs.
    pub ready: bool,
    /// Its address; none in the host's network.
    pub ip: Option<Name>,
}

/// A container's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Parked before its first instruction.
    Created,
    /// Its process runs.
    Running {
        /// Since when.
        started_at: Time,
    },
    /// It ended.
    Exited(Exit),
}

/// A container.
#[derive(Clone, Debug)]
pub struct Container {
    /// In which sandbox attempt.
    pub sandbox: u32,
    /// What is mounted into it.
    pub mounts: Vec<MountedVolume>,
    /// Its state.
    pub state: State,
    /// How its process ends once `Choice::ProcessEnds` comes.
    pub ending: Option<Ending>,
    /// What its probes find, where a scenario said so. Others pass.
    pub probes: BTreeMap<ProbeKind, bool>,
    /// How long after TERM its process ends by itself; `None`: it ignores TERM.
    pub obeys_after: Option<Nanos>,
    /// Its process has something to finish: it is an init container, and no sidecar.
    pub runs_once: bool,
}

/// How a process ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Ending {
    /// KILL.
    pub const KILLED: Ending = Ending::Signal(9);

    /// The exit that it makes.
    pub fn exit(self, started_at: Option<Time>, finished_at: Time) -> Exit {
        let (code, signal) = match self {
            Ending::Code(code) => (code, None),
            Ending::Signal(signal) => (128 + signal, Some(signal)),
        };
        let reason = if code == 0 { "Completed" } else { "Error" };
        Exit { code, signal, reason: reason.into(), started_at, finished_at }
    }
}

/// All that the runtime has.
#[derive(Clone, Debug, Default)]
pub struct Runtime {
    /// By pod and attempt.
    pub sandboxes: BTreeMap<(PodUid, u32), Sandbox>,
    /// By pod and life of the name.
    pub containers: BTreeMap<(PodUid, ContainerId), Container>,
    /// The newest instance that each name ever had, also after its removal: what `sameInstance` compares.
    newest: BTreeMap<(PodUid, Name), ContainerId>,
    /// What the probes of a name's next process will find, where a scenario said so before there was one.
    foretold: BTreeMap<(PodUid, Name), BTreeMap<ProbeKind, bool>>,
    addresses_given: u32,
}

impl Runtime {
    /// The next address of the pods' network.
    pub fn next_address(&mut self) -> Name {
        self.addresses_given += 1;
        let n = self.addresses_given;
        format!("10.88.{}.{}", n / 250 % 250, n % 250 + 2).into()
    }

    /// Keeps a new container.
    pub fn add(&mut self, pod: PodUid, id: ContainerId, mut container: Container) {
        container.probes.extend(self.foretold.remove(&(pod, id.name.clone())).unwrap_or_default());
        let newest = self.newest.entry((pod, id.name.clone())).or_insert_with(|| id.clone());
        if *newest < id {
            *newest = id.clone();
        }
        self.containers.insert((pod, id), container);
    }

    /// What a probe of the name's next process will find.
    pub fn foretell(&mut self, pod: PodUid, name: &str, probe: ProbeKind, passes: bool) {
        let parked = self.newest(pod, name).cloned().and_then(|id| self.containers.get_mut(&(pod, id)));
        match parked.filter(|container| container.state == State::Created) {
            Some(container) => container.probes.insert(probe, passes),
            None => self.foretold.entry((pod, Name::from(name))).or_default().insert(probe, passes),
        };
    }

    /// What was said of processes to come.
    pub fn foretold(&self) -> &BTreeMap<(PodUid, Name), BTreeMap<ProbeKind, bool>> {
        &self.foretold
    }

    /// Every probe passes from now on.
    pub fn heal_probes(&mut self) {
        self.foretold.clear();
        for passes in self.containers.values_mut().flat_map(|container| container.probes.values_mut()) {
            *passes = true;
        }
    }

    /// The newest instance that a name ever had in a pod.
    pub fn newest(&self, pod: PodUid, name: &str) -> Option<&ContainerId> {
        self.newest.get(&(pod, Name::from(name)))
    }

    /// The newest instances of all names of all pods.
    pub fn newest_of_all(&self) -> &BTreeMap<(PodUid, Name), ContainerId> {
        &self.newest
    }

    /// The instance of that name whose process runs.
    pub fn running(&self, pod: PodUid, name: &str) -> Option<&ContainerId> {
        self.of_pod(pod)
            .find(|(id, c)| &*id.name == name && matches!(c.state, State::Running { .. }))
            .map(|(id, _)| id)
    }

    /// A pod's containers.
    pub fn of_pod(&self, pod: PodUid) -> impl Iterator<Item = (&ContainerId, &Container)> {
        self.containers.iter().filter(move |((owner, _), _)| *owner == pod).map(|((_, id), c)| (id, c))
    }

    /// A container other than `but` that still may run under the same name.
    pub fn live_namesake(&self, pod: PodUid, but: &ContainerId) -> Option<&ContainerId> {
        self.of_pod(pod)
            .find(|(id, c)| id.name == but.name && *id != but && !matches!(c.state, State::Exited(_)))
            .map(|(id, _)| id)
    }

    /// A container that has this volume and has not ended.
    pub fn holder_of(&self, pod: PodUid, volume: &VolumeId) -> Option<&ContainerId> {
        self.of_pod(pod)
            .find(|(_, c)| {
                !matches!(c.state, State::Exited(_)) && c.mounts.iter().any(|m| m.volume == *volume)
            })
            .map(|(id, _)| id)
    }

    /// The whole list, as `RuntimeObserved` carries it.
    pub fn list(&self) -> (Vec<SeenSandbox>, Vec<SeenContainer>) {
        let sandboxes = self
            .sandboxes
            .iter()
            .map(|((pod, attempt), s)| SeenSandbox {
                pod: *pod,
                attempt: *attempt,
                ready: s.ready,
                ip: s.ip.clone(),
            })
            .collect();
        let containers = self
            .containers
            .iter()
            .map(|((pod, id), c)| SeenContainer {
                pod: *pod,
                container: id.clone(),
                state: match &c.state {
                    State::Created => SeenState::Created,
                    State::Running { started_at } => SeenState::Running { started_at: *started_at },
                    State::Exited(exit) => SeenState::Exited(exit.clone()),
                },
            })
            .collect();
        (sandboxes, containers)
    }

    /// The host lost power: every process is gone. What the runtime kept on disk says so when it is back: containers
    /// that ran are found ended, without anybody having seen how; sandboxes are not ready.
    pub fn lose_power(&mut self, at: Time) {
        for sandbox in self.sandboxes.values_mut() {
            sandbox.ready = false;
        }
        for container in self.containers.values_mut() {
            container.ending = None;
            container.probes.clear();
            let started_at = match &container.state {
                State::Created => None,
                State::Running { started_at } => Some(*started_at),
                State::Exited(_) => continue,
            };
            let exit =
                Exit { code: 255, signal: None, reason: "Unknown".into(), started_at, finished_at: at };
            container.state = State::Exited(exit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_with_128_more_and_a_code_with_itself() {
        let killed = Ending::KILLED.exit(Some(Time(1)), Time(2));
        assert_eq!((killed.code, killed.signal, &*killed.reason), (137, Some(9), "Error"));
        let done = Ending::Code(0).exit(Some(Time(1)), Time(2));
        assert_eq!((done.code, done.signal, &*done.reason), (0, None, "Completed"));
    }
}
