//! `Node` by itself, as one embeds it: a driver of forty lines, a host that does what it is told or not, and a small model of
//! what was asked for. Copy this to test your own backend: put it in the host's place.
#![allow(clippy::unwrap_used)]
#![allow(clippy::wildcard_enum_match_arm, reason = "a host does a few of many things")]

use nodefold_core::command::{Action, Command};
use nodefold_core::event::{ErrorClass, Exit, OpError, SeenContainer, SeenMount, SeenSandbox, SeenState};
use nodefold_core::ids::{ContainerId, PodUid, Source, VolumeId};
use nodefold_core::spec::{
    Blob, Container, Deletion, Medium, Pod, PodSpec, RestartPolicy, Volume, VolumeMount, VolumeSource,
};
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Commands, Config, Event, Fact, Node};
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Containers of a pod. Each has a volume of its own, of the same name.
const NAMES: [&str; 3] = ["a", "b", "c"];
/// Waits shorter than this are waited for: the longest back-off is five minutes.
const HORIZON: Nanos = Nanos::secs(400);

#[derive(Clone, Debug)]
enum Transition {
    Apply(u8),
    Add(u8, &'static str),
    Remove(u8, &'static str),
    Delete(u8),
    /// One of the commands under way is done, or fails in a way.
    Answer(u8, Option<ErrorClass>),
    /// A process ends.
    Exit(u8, i32),
    Pass(Nanos),
    /// The agent dies and comes back: what was under way may be done or not.
    Restart(bool),
    /// The host does what it is told until nothing more is to be done.
    Settle,
}

/// What was asked for.
#[derive(Clone, Debug, Default)]
struct Wishes {
    pods: BTreeMap<u8, BTreeSet<&'static str>>,
    /// Being deleted, until all has settled.
    deleted: BTreeSet<u8>,
    generation: u64,
}

impl ReferenceStateMachine for Wishes {
    type State = Wishes;
    type Transition = Transition;

    fn init_state() -> BoxedStrategy<Wishes> {
        Just(Wishes::default()).boxed()
    }

    fn transitions(_: &Wishes) -> BoxedStrategy<Transition> {
        let name = || prop::sample::select(&NAMES[..]);
        let classes = vec![ErrorClass::Transient, ErrorClass::Uncertain];
        let failure = prop::option::weighted(0.2, prop::sample::select(classes));
        prop_oneof![
            2 => (1..3u8).prop_map(Transition::Apply),
            2 => (1..3u8, name()).prop_map(|(pod, name)| Transition::Add(pod, name)),
            2 => (1..3u8, name()).prop_map(|(pod, name)| Transition::Remove(pod, name)),
            1 => (1..3u8).prop_map(Transition::Delete),
            12 => (any::<u8>(), failure).prop_map(|(which, failure)| Transition::Answer(which, failure)),
            2 => (any::<u8>(), 0..2).prop_map(|(which, code)| Transition::Exit(which, code)),
            2 => (0..60_000u64).prop_map(|millis| Transition::Pass(Nanos::millis(millis))),
            1 => any::<bool>().prop_map(Transition::Restart),
            2 => Just(Transition::Settle),
        ]
        .boxed()
    }

    fn preconditions(wishes: &Wishes, transition: &Transition) -> bool {
        let pod = |pod: &u8| wishes.pods.get(pod);
        match transition {
            Transition::Apply(n) => pod(n).is_none() && !wishes.deleted.contains(n),
            Transition::Add(n, name) => pod(n).is_some_and(|names| !names.contains(name)),
            Transition::Remove(n, name) => {
                pod(n).is_some_and(|names| names.len() > 1 && names.contains(name))
            }
            Transition::Delete(n) => pod(n).is_some(),
            Transition::Answer(..)
            | Transition::Exit(..)
            | Transition::Pass(_)
            | Transition::Restart(_)
            | Transition::Settle => true,
        }
    }

    fn apply(mut wishes: Wishes, transition: &Transition) -> Wishes {
        wishes.generation += 1;
        match transition {
            Transition::Apply(n) => drop(wishes.pods.insert(*n, BTreeSet::from(["a"]))),
            Transition::Add(n, name) => drop(wishes.pods.get_mut(n).unwrap().insert(name)),
            Transition::Remove(n, name) => drop(wishes.pods.get_mut(n).unwrap().remove(name)),
            Transition::Delete(n) => {
                wishes.pods.remove(n);
                wishes.deleted.insert(*n);
            }
            Transition::Settle => wishes.deleted.clear(),
            Transition::Answer(..) | Transition::Exit(..) | Transition::Pass(_) | Transition::Restart(_) => {}
        }
        wishes
    }
}

fn pod(n: u8, names: &BTreeSet<&'static str>, generation: u64) -> Pod {
    let volume = |name: &&str| {
        let source = VolumeSource::EmptyDir { medium: Medium::Disk, size_limit: None };
        Arc::new(Volume { name: (**name).into(), source, rest: Blob::default() })
    };
    let container = |name: &&str| {
        let (mount_path, rest) = (format!("/{name}").into(), Blob::default());
        let mounts = vec![VolumeMount { name: (**name).into(), mount_path, read_only: false, rest }];
        Arc::new(Container { image: "image:1".into(), mounts, ..Container::unknown((**name).into()) })
    };
    let uid = PodUid(u128::from(n));
    let spec = PodSpec {
        restart_policy: RestartPolicy::Always,
        containers: names.iter().map(container).collect(),
        volumes: names.iter().map(volume).collect(),
        ..PodSpec::clone(&Pod::orphan(uid).spec)
    };
    let (namespace, name) = ("default".into(), format!("pod-{n}").into());
    Pod { namespace, name, generation, spec: Arc::new(spec), ..Pod::orphan(uid) }
}

/// What is there, whoever knows of it.
#[derive(Default)]
struct Host {
    mounts: BTreeSet<(PodUid, VolumeId)>,
    sandboxes: BTreeMap<(PodUid, u32), bool>,
    /// Each with the volumes that it holds.
    containers: BTreeMap<(PodUid, ContainerId), (SeenState, Vec<VolumeId>)>,
}

/// The driver: a node, the host, and the commands that the host was given and has not answered.
struct Driver {
    node: Node,
    host: Host,
    open: Vec<Command>,
    now: Time,
}

impl Driver {
    fn tell(&mut self, fact: Fact) {
        let mut out = Commands::default();
        self.node.apply(&Event { at: self.now, fact }, &mut out);
        while self.node.next_deadline().is_some_and(|due| due <= self.now) {
            self.node.apply(&Event { at: self.now, fact: Fact::Tick }, &mut out);
        }
        for command in out.commands {
            self.host.allows(&command);
            self.open.push(command);
        }
    }

    fn answer(&mut self, which: usize, failure: Option<ErrorClass>) {
        let command = self.open.remove(which);
        let error = |class| OpError { class, reason: None, message: "no".into() };
        let fact = match failure {
            None => self.host.does(&command, self.now),
            Some(class) => {
                if class == ErrorClass::Uncertain {
                    // It was done, and nobody heard of it.
                    self.host.does(&command, self.now);
                }
                command.failed(error(class))
            }
        };
        if let Some(fact) = fact {
            self.tell(fact);
        }
    }

    fn restart(&mut self, done: bool) {
        for command in std::mem::take(&mut self.open) {
            if done {
                self.host.does(&command, self.now);
            }
        }
        self.tell(Fact::AgentStarted { boot_id: 1 });
    }

    /// A source tells all that there is, as after each restart.
    fn list(&mut self, wishes: &Wishes) {
        for (n, names) in &wishes.pods {
            self.tell(Fact::PodApplied(Arc::new(pod(*n, names, wishes.generation))));
        }
        for n in &wishes.deleted {
            self.delete(*n);
        }
        for source in [Source::Api, Source::File] {
            self.tell(Fact::SourceReady { source });
        }
    }

    fn delete(&mut self, n: u8) {
        let Some(known) = self.node.desired(PodUid(u128::from(n))) else { return };
        let deletion = known.deletion.or(Some(Deletion { requested_at: self.now, grace: Nanos::secs(1) }));
        self.tell(Fact::PodApplied(Arc::new(Pod { deletion, ..Pod::clone(&known) })));
    }

    fn settle(&mut self) {
        for _ in 0..5_000 {
            if !self.open.is_empty() {
                self.answer(0, None);
                continue;
            }
            match self.node.next_deadline() {
                Some(due) if due <= self.now.after(HORIZON) => self.now = due.max(self.now),
                Some(_) | None => return,
            }
            self.tell(Fact::Tick);
        }
        panic!("L4: a node that is told the truth comes to rest: {:?}", self.node.deadlines().next());
    }
}

impl Host {
    /// S1, S2: what a host would have to refuse.
    fn allows(&self, command: &Command) {
        let pod = command.pod;
        match &command.action {
            Action::UnmountVolume { volume, .. } => {
                let holds =
                    |((p, _), (state, held)): (&(PodUid, ContainerId), &(SeenState, Vec<VolumeId>))| {
                        *p == pod && held.contains(volume) && !matches!(state, SeenState::Exited(_))
                    };
                let holder = self.containers.iter().find(|entry| holds(*entry));
                assert!(holder.is_none(), "S1: unmount of {volume} while {holder:?} holds it");
            }
            Action::CreateContainer { container, mounts, .. } => {
                let missing = mounts.iter().find(|m| !self.mounts.contains(&(pod, m.volume.clone())));
                assert!(missing.is_none(), "S2: {container} without {missing:?}");
            }
            _ => {}
        }
    }

    /// Does it, and says so.
    fn does(&mut self, command: &Command, now: Time) -> Option<Fact> {
        let (op, pod) = (command.op, command.pod);
        let mut fact = command.done(now);
        match &command.action {
            Action::MountVolume { volume, .. } => drop(self.mounts.insert((pod, volume.clone()))),
            Action::UnmountVolume { volume, .. } => drop(self.mounts.remove(&(pod, volume.clone()))),
            Action::CreateSandbox { attempt, .. } => drop(self.sandboxes.insert((pod, *attempt), true)),
            Action::StopSandbox { attempt } => drop(self.sandboxes.insert((pod, *attempt), false)),
            Action::RemoveSandbox { attempt } => drop(self.sandboxes.remove(&(pod, *attempt))),
            Action::CreateContainer { container, mounts, .. } => {
                let held = mounts.iter().map(|m| m.volume.clone()).collect();
                self.containers.insert((pod, container.clone()), (SeenState::Created, held));
            }
            Action::StartContainer { container } => {
                if let Some((state, _)) = self.containers.get_mut(&(pod, container.clone())) {
                    *state = SeenState::Running { started_at: now };
                }
            }
            Action::StopContainer { container, .. } | Action::KillContainer { container } => {
                // The runtime tells one end of each container.
                fact = self.ends(pod, container, 0, now);
            }
            Action::RemoveContainer { container } => drop(self.containers.remove(&(pod, container.clone()))),
            Action::ObserveMounts => {
                let seen =
                    |(pod, volume): &(PodUid, VolumeId)| SeenMount { pod: *pod, volume: volume.clone() };
                fact = Some(Fact::MountsObserved { op, mounts: self.mounts.iter().map(seen).collect() });
            }
            Action::ObserveRuntime => {
                let sandbox = |((pod, attempt), ready): (&(PodUid, u32), &bool)| {
                    let ip = ready.then(|| "10.0.0.1".into());
                    SeenSandbox { pod: *pod, attempt: *attempt, ready: *ready, ip }
                };
                let container =
                    |((pod, id), (state, _)): (&(PodUid, ContainerId), &(SeenState, Vec<VolumeId>))| {
                        SeenContainer { pod: *pod, container: id.clone(), state: state.clone() }
                    };
                let sandboxes = self.sandboxes.iter().map(sandbox).collect();
                let containers = self.containers.iter().map(container).collect();
                fact = Some(Fact::RuntimeObserved { op, complete: true, sandboxes, containers });
            }
            _ => {}
        }
        fact
    }

    fn ends(&mut self, pod: PodUid, container: &ContainerId, code: i32, now: Time) -> Option<Fact> {
        let (state, _) = self.containers.get_mut(&(pod, container.clone()))?;
        let exit = match state {
            SeenState::Exited(exit) => exit.clone(),
            SeenState::Created | SeenState::Running { .. } | SeenState::Unknown => {
                Exit { code, signal: None, reason: "Error".into(), started_at: None, finished_at: now }
            }
        };
        *state = SeenState::Exited(exit.clone());
        Some(Fact::ContainerExited { pod, container: container.clone(), exit })
    }

    fn running(&self) -> Vec<(PodUid, ContainerId)> {
        let runs = |state: &SeenState| matches!(state, SeenState::Running { .. });
        self.containers.iter().filter(|(_, (state, _))| runs(state)).map(|(key, _)| key.clone()).collect()
    }
}

impl StateMachineTest for Driver {
    type SystemUnderTest = Driver;
    type Reference = Wishes;

    fn init_test(wishes: &Wishes) -> Driver {
        let (node, host) = (Node::new(Config::default()), Host::default());
        let mut driver = Driver { node, host, open: Vec::new(), now: Time(1_000_000_000) };
        driver.restart(false);
        driver.list(wishes);
        driver
    }

    fn apply(mut driver: Driver, wishes: &Wishes, transition: Transition) -> Driver {
        driver.now = driver.now.after(Nanos::millis(1));
        match transition {
            Transition::Apply(n) | Transition::Add(n, _) | Transition::Remove(n, _) => {
                let wished = pod(n, &wishes.pods[&n], wishes.generation);
                driver.tell(Fact::PodApplied(Arc::new(wished)));
            }
            Transition::Delete(n) => driver.delete(n),
            Transition::Answer(which, failure) => {
                if let Some(which) = usize::from(which).checked_rem(driver.open.len()) {
                    driver.answer(which, failure);
                }
            }
            Transition::Exit(which, code) => {
                let running = driver.host.running();
                if let Some(which) = usize::from(which).checked_rem(running.len()) {
                    let (pod, container) = &running[which];
                    let told = driver.host.ends(*pod, container, code, driver.now);
                    told.into_iter().for_each(|fact| driver.tell(fact));
                }
            }
            Transition::Pass(time) => {
                driver.now = driver.now.after(time);
                driver.tell(Fact::Tick);
            }
            Transition::Restart(done) => {
                driver.restart(done);
                driver.list(wishes);
            }
            Transition::Settle => {
                driver.settle();
                driver.is_as_wished(wishes);
            }
        }
        driver
    }
}

impl Driver {
    /// L1–L3: what was asked for is there, and nothing else.
    fn is_as_wished(&self, wishes: &Wishes) {
        let wished = |n: &u8| PodUid(u128::from(*n));
        assert_eq!(self.node.pods(), wishes.pods.keys().map(wished).collect::<Vec<_>>(), "L3");
        let all =
            || wishes.pods.iter().flat_map(|(n, names)| names.iter().map(move |name| (wished(n), *name)));
        let running = self.host.running();
        let running: Vec<(PodUid, &str)> = running.iter().map(|(pod, id)| (*pod, &*id.name)).collect();
        assert_eq!(running, all().collect::<Vec<_>>(), "L1: containers that run");
        let mounted: Vec<(PodUid, &str)> =
            self.host.mounts.iter().map(|(pod, id)| (*pod, &*id.name)).collect();
        assert_eq!(mounted, all().collect::<Vec<_>>(), "L1, L2: volumes that are mounted");
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_node_does_what_was_asked_for_whatever_happens_on_the_way(sequential 1..60 => Driver);
}
