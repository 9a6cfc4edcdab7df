//! Bring your own core: a deliberately naive node agent, and what the hunt finds wrong with it.
//!
//! `cargo run -p nodefold-harness --example naive_agent` prints, for each invariant that broke first in some seed, how often,
//! in which seed to look, and the sentence that the oracle says. The agent below does what a first draft does: it acts at once
//! on what it is told, knows things by name, and believes that what it asked for will happen.
#![allow(clippy::print_stdout, reason = "a program that prints")]

use nodefold_core::command::{Action, Cause, Command, MountedVolume, Rule};
use nodefold_core::event::{Event, Exit, Fact};
use nodefold_core::ids::{ContainerId, EventSeq, Name, OpId, PodUid, VolumeId};
use nodefold_core::spec::{Container, Pod, RestartPolicy};
use nodefold_core::status::{
    Condition, ConditionKind, ContainerState, ContainerStatus, HostPhase, PodPhase, PodStatus, Terminated,
    VolumeStatus,
};
use nodefold_core::time::Time;
use nodefold_core::{Commands, Digest, codec};
use nodefold_harness::Brain;
use nodefold_harness::swarm::{Driven, SwarmOptions, run_seed};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many seeds are tried.
const SEEDS: u64 = 200;

/// The whole agent.
#[derive(Clone, Debug, Default)]
struct Naive {
    pods: BTreeMap<PodUid, Known>,
    ops: u64,
    events: u64,
    now: Time,
}

/// What it knows of a pod.
#[derive(Clone, Debug)]
struct Known {
    pod: Arc<Pod>,
    has_sandbox: bool,
    containers: BTreeMap<Name, Instance>,
    told: Option<Arc<PodStatus>>,
}

/// The newest instance of a container.
#[derive(Clone, Debug)]
struct Instance {
    attempt: u32,
    since: Option<Time>,
    exit: Option<Exit>,
}

impl Naive {
    fn give(&mut self, pod: PodUid, rule: Rule, action: Action, out: &mut Commands) {
        self.ops += 1;
        let cause = Cause { event: EventSeq(self.events), rule };
        out.commands.push(Command { op: OpId(self.ops), pod, cause, action });
    }

    /// A pod came or changed: whatever it has more than before is made, whatever it has less is undone. At once.
    fn applied(&mut self, pod: &Arc<Pod>, out: &mut Commands) {
        let uid = pod.uid;
        let former = self.pods.get(&uid).map(|known| known.pod.clone());
        let fresh = Known { pod: pod.clone(), has_sandbox: false, containers: BTreeMap::new(), told: None };
        self.pods.entry(uid).or_insert(fresh).pod = pod.clone();
        let is_new = |name: &str| former.as_ref().is_none_or(|f| f.spec.volume(name).is_none());
        for spec in pod.spec.volumes.iter().filter(|v| is_new(&v.name)) {
            let (spec, volume) = (spec.clone(), VolumeId { name: spec.name.clone(), generation: 0 });
            let action = Action::MountVolume { volume, spec, pod: pod.clone(), allocated: pod.spec.clone() };
            self.give(uid, Rule::VolumeDesired, action, out);
        }
        let Some(former) = former else {
            let action = Action::CreateSandbox { attempt: 0, pod: pod.clone(), allocated: pod.spec.clone() };
            return self.give(uid, Rule::SandboxNeeded, action, out);
        };
        if let Some(deletion) = pod.deletion {
            for container in all(pod) {
                let action =
                    Action::StopContainer { container: self.id(uid, &container.name), grace: deletion.grace };
                self.give(uid, Rule::PodTerminating, action, out);
            }
            return self.unmount(uid, |_| true, Rule::PodVolumesReleased, out);
        }
        for gone in all(&former).filter(|c| all(pod).all(|kept| kept.name != c.name)) {
            let (container, grace) = (self.id(uid, &gone.name), pod.spec.termination_grace);
            self.give(uid, Rule::ContainerRemoved, Action::StopContainer { container, grace }, out);
        }
        for name in
            former.spec.volumes.iter().map(|v| v.name.clone()).filter(|n| pod.spec.volume(n).is_none())
        {
            let volume = VolumeId { name, generation: 0 };
            self.give(uid, Rule::VolumeRemoved, Action::UnmountVolume { volume, spec: None }, out);
        }
        for added in all(pod).filter(|c| all(&former).all(|had| had.name != c.name)) {
            self.create(uid, added, out);
        }
    }

    fn unmount(&mut self, uid: PodUid, which: impl Fn(&str) -> bool, rule: Rule, out: &mut Commands) {
        let Some(known) = self.pods.get(&uid) else { return };
        let names: Vec<Name> =
            known.pod.spec.volumes.iter().map(|v| v.name.clone()).filter(|n| which(n)).collect();
        for name in names {
            let volume = VolumeId { name, generation: 0 };
            self.give(uid, rule, Action::UnmountVolume { volume, spec: None }, out);
        }
    }

    fn id(&self, uid: PodUid, name: &Name) -> ContainerId {
        let attempt = self.pods.get(&uid).and_then(|k| k.containers.get(name)).map_or(0, |i| i.attempt);
        ContainerId { name: name.clone(), incarnation: 0, attempt }
    }

    fn create(&mut self, uid: PodUid, spec: &Arc<Container>, out: &mut Commands) {
        let container = self.id(uid, &spec.name);
        let Some(known) = self.pods.get(&uid).filter(|known| known.has_sandbox) else { return };
        let mounted = |mount: &nodefold_core::spec::VolumeMount| MountedVolume {
            volume: VolumeId { name: mount.name.clone(), generation: 0 },
            mount: mount.clone(),
        };
        let (pod, allocated) = (known.pod.clone(), known.pod.spec.clone());
        let (mounts, spec) = (spec.mounts.iter().map(mounted).collect(), spec.clone());
        let action = Action::CreateContainer { container, spec, mounts, sandbox: 0, pod, allocated };
        self.give(uid, Rule::MainNeeded, action, out);
    }

    fn exited(&mut self, uid: PodUid, container: &ContainerId, exit: &Exit, out: &mut Commands) {
        let Some(known) = self.pods.get_mut(&uid) else { return };
        let pod = known.pod.clone();
        let Some(instance) = known.containers.get_mut(&container.name) else { return };
        instance.exit = Some(exit.clone());
        if pod.deletion.is_none() && pod.spec.restart_policy != RestartPolicy::Never {
            instance.attempt += 1;
        }
        let over = known.containers.values().all(|instance| instance.exit.is_some());
        if pod.deletion.is_some() {
            if over {
                self.publish(uid, out);
                self.give(uid, Rule::PodReleased, Action::ReleasePod, out);
            }
        } else if pod.spec.restart_policy != RestartPolicy::Never {
            let spec = all(&pod).find(|c| c.name == container.name).cloned();
            if let Some(spec) = spec {
                self.create(uid, &spec, out);
            }
        }
    }

    fn publish(&mut self, uid: PodUid, out: &mut Commands) {
        let Some(known) = self.pods.get_mut(&uid) else { return };
        let status = Arc::new(status(known, self.now));
        if known.told.as_ref() != Some(&status) {
            known.told = Some(status.clone());
            self.give(uid, Rule::StatusChanged, Action::PublishStatus { status, mirror: None }, out);
        }
    }
}

/// Init containers are containers, too.
fn all(pod: &Pod) -> impl Iterator<Item = &Arc<Container>> {
    pod.spec.init_containers.iter().chain(&pod.spec.containers)
}

fn status(known: &Known, now: Time) -> PodStatus {
    let row = |spec: &Arc<Container>| {
        let instance = known.containers.get(&spec.name);
        let id =
            instance.map(|i| ContainerId { name: spec.name.clone(), incarnation: 0, attempt: i.attempt });
        let state = match instance {
            Some(Instance { exit: Some(exit), .. }) => ContainerState::Terminated(Terminated {
                id: id.clone(),
                exit_code: exit.code,
                signal: exit.signal.unwrap_or(0),
                reason: exit.reason.clone(),
                message: "".into(),
                started_at: exit.started_at,
                finished_at: Some(exit.finished_at),
            }),
            Some(Instance { since: Some(started_at), .. }) => {
                ContainerState::Running { started_at: *started_at }
            }
            Some(_) | None => {
                ContainerState::Waiting { reason: "ContainerCreating".into(), message: "".into() }
            }
        };
        let runs = matches!(state, ContainerState::Running { .. });
        ContainerStatus {
            name: spec.name.clone(),
            id,
            state,
            last_state: None,
            ready: runs,
            started: runs,
            restart_count: instance.map_or(0, |i| i.attempt),
            image: spec.image.clone(),
            image_id: "".into(),
            allocated_resources: spec.resources.requests.clone(),
            resources: spec.resources.clone(),
            mounts: spec.mounts.clone().into(),
        }
    };
    let running =
        known.containers.values().any(|instance| instance.since.is_some() && instance.exit.is_none());
    let over =
        !known.containers.is_empty() && known.containers.values().all(|instance| instance.exit.is_some());
    let phase = match (running, over) {
        (true, _) => PodPhase::Running,
        (false, true) => PodPhase::Succeeded,
        (false, false) => PodPhase::Pending,
    };
    let condition = |kind| Condition {
        kind,
        status: running,
        reason: "".into(),
        message: "".into(),
        last_transition: now.whole_seconds(),
        observed_generation: known.pod.generation,
    };
    let spec = &known.pod.spec;
    let volume = |name: &Name| VolumeStatus {
        name: name.clone(),
        phase: HostPhase::HostMounted,
        error_message: "".into(),
    };
    PodStatus {
        observed_generation: known.pod.generation,
        phase,
        reason: "".into(),
        message: "".into(),
        start_time: None,
        pod_ip: None,
        qos: spec.qos,
        conditions: vec![condition(ConditionKind::Initialized), condition(ConditionKind::Ready)],
        init_containers: spec.init_containers.iter().map(row).collect(),
        containers: spec.containers.iter().map(row).collect(),
        ephemeral_containers: Vec::new(),
        volumes: spec.volumes.iter().map(|v| volume(&v.name)).collect(),
        allocated_resources: Default::default(),
        resources: Default::default(),
    }
}

impl Brain for Naive {
    fn apply(&mut self, event: &Event, out: &mut Commands) {
        self.events += 1;
        self.now = event.at;
        let fact = &event.fact;
        if let Fact::PodApplied(pod) = fact {
            self.applied(pod, out);
        } else if let Fact::PodRemoved { pod } = fact {
            self.unmount(*pod, |_| true, Rule::PodVolumesReleased, out);
            self.pods.remove(pod);
        } else if let Fact::SandboxReady { pod: uid, .. } = fact {
            let Some(known) = self.pods.get_mut(uid) else { return };
            known.has_sandbox = true;
            let specs: Vec<Arc<Container>> = all(&known.pod).cloned().collect();
            specs.iter().for_each(|spec| self.create(*uid, spec, out));
        } else if let Fact::ContainerCreated { pod, container, .. } = fact {
            self.give(*pod, Rule::MainNeeded, Action::StartContainer { container: container.clone() }, out);
        } else if let Fact::ContainerStarted { pod, container, .. } = fact {
            let Some(known) = self.pods.get_mut(pod) else { return };
            let instance = Instance { attempt: container.attempt, since: Some(event.at), exit: None };
            known.containers.insert(container.name.clone(), instance);
        } else if let Fact::ContainerExited { pod, container, exit } = fact {
            self.exited(*pod, container, exit, out);
        }
        if let Some(pod) = fact.pod() {
            self.publish(pod, out);
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn boxed_clone(&self) -> Box<dyn Brain> {
        Box::new(self.clone())
    }

    fn digest(&mut self) -> Digest {
        codec::hash(&format!("{self:?}"))
    }
}

fn main() {
    let driven = Driven::by(Arc::new(|_| Box::<Naive>::default()));
    let options = SwarmOptions { driven, ..SwarmOptions::default() };
    // By invariant: how often it broke first, and the seed with the shortest way there.
    let mut found: BTreeMap<String, (u64, u64, usize, String)> = BTreeMap::new();
    for seed in 0..SEEDS {
        let report = run_seed(seed, &options);
        let Some(broken) = report.broken.first() else { continue };
        let steps = report.history.steps.len();
        let entry = found.entry(broken.invariant.clone()).or_insert((0, seed, steps, broken.what.clone()));
        entry.0 += 1;
        if steps < entry.2 {
            (entry.1, entry.2, entry.3) = (seed, steps, broken.what.clone());
        }
    }
    let broke: u64 = found.values().map(|(times, ..)| times).sum();
    println!("{broke} of {SEEDS} seeds broke an invariant of the naive agent, {} of them:", found.len());
    for (invariant, (times, seed, steps, what)) in &found {
        println!("{invariant:>4} first in {times:>3} seeds, shortest in seed {seed} ({steps} steps): {what}");
    }
    // An agent like this one that passes would mean that the hunt is blind.
    assert!(broke > SEEDS / 2 && found.len() >= 3, "the hunt must find more wrong with it than that");
}
