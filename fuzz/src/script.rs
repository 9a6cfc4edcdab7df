//! A node's life as bytes tell it: commands answered well, badly, late, twice or never, pods that change, time that jumps,
//! agents that die, and facts of any shape in between.

use super::choices::Bytes;
use super::drawn::drawn;
use nodefold_core::command::{Command, Commands};
use nodefold_core::event::{ErrorClass, Event, Exit, Fact, OpError};
use nodefold_core::ids::{PodUid, Source};
use nodefold_core::spec::{Deletion, Pod};
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Config, Node};
use nodefold_harness::swarm::{Chance, Features, Profile, manifest};
use nodefold_k8s::{default_pod, pod_from_json};
use serde_json::json;
use std::sync::Arc;

/// Events after which a life is long enough.
const EVENTS_MAX: usize = 400;
/// Wake-ups in a row at one moment that no chain of them has: more is a busy loop (L4).
const TICKS_MAX: usize = 64;
/// Commands that no event alone makes due: here are at most a few pods of a few containers.
const COMMANDS_MAX: usize = 2_000;

/// A node, and what it was told.
pub struct Life {
    /// What it began with.
    pub config: Config,
    /// What was told.
    pub events: Vec<Event>,
    /// What it asked for.
    pub commands: Vec<Command>,
    /// It.
    pub node: Node,
    features: Features,
    now: Time,
    /// Asked for and not answered.
    open: Vec<Command>,
    /// Pods as they were told last.
    pods: Vec<Arc<Pod>>,
}

/// The life that the bytes tell.
pub fn live(bytes: &mut Bytes<'_>) -> Life {
    let profile = Profile::draw(bytes, &[], &[]);
    let config = Config { node: profile.node.facts, ..Config::default() };
    let mut life = Life {
        node: Node::new(config.clone()),
        config,
        events: Vec::new(),
        commands: Vec::new(),
        features: profile.features,
        now: Time(1_000_000_000),
        open: Vec::new(),
        pods: Vec::new(),
    };
    for fact in [
        Fact::AgentStarted { boot_id: 1 },
        Fact::SourceReady { source: Source::Api },
        Fact::SourceReady { source: Source::File },
    ] {
        life.tell(fact);
    }
    while !bytes.is_spent() && life.events.len() < EVENTS_MAX {
        life.step(bytes);
    }
    life
}

impl Life {
    fn step(&mut self, bytes: &mut Bytes<'_>) {
        match bytes.below(20) {
            0..=5 => self.answer(bytes, None),
            6..=7 => {
                let class = bytes.one_of(&[ErrorClass::Final, ErrorClass::Transient, ErrorClass::Uncertain]);
                self.answer(bytes, Some(class));
            }
            8 => {
                for command in std::mem::take(&mut self.open) {
                    self.tell_some(command.done(self.now));
                }
            }
            9..=10 => self.apply(bytes),
            11 => self.change(bytes),
            12 => self.exit(bytes),
            13 => {
                self.now = self.node.next_deadline().map_or(self.now, |due| due.max(self.now));
                self.tell(Fact::Tick);
            }
            14 => {
                self.now = self.now.after(Nanos::millis(1 << bytes.below(24)));
                self.tell(Fact::Tick);
            }
            15 => {
                self.now = Time(self.now.0.saturating_sub(bytes.number()));
                self.tell(Fact::AgentStarted { boot_id: u128::from(bytes.below(3)) });
            }
            16 => {
                let earlier = bytes.below(self.events.len() as u64) as usize;
                self.tell(self.events[earlier].fact.clone());
            }
            17 => {
                self.now = Time(bytes.number());
                self.tell(drawn(bytes));
            }
            _ => self.tell(drawn(bytes)),
        }
    }

    /// Tells a fact, and ticks as a driver does, until nothing is due.
    fn tell(&mut self, fact: Fact) {
        self.fold(fact);
        for _ in 0..TICKS_MAX {
            if self.node.next_deadline().is_none_or(|due| due > self.node.now()) {
                return;
            }
            self.fold(Fact::Tick);
        }
        panic!("L4: {TICKS_MAX} wake-ups at one moment: {:?}", self.node.deadlines().next());
    }

    fn tell_some(&mut self, fact: Option<Fact>) {
        if let Some(fact) = fact {
            self.tell(fact);
        }
    }

    fn fold(&mut self, fact: Fact) {
        let event = Event { at: self.now, fact };
        let mut out = Commands::default();
        self.node.apply(&event, &mut out);
        assert!(
            out.commands.len() < COMMANDS_MAX,
            "{} commands of one {}",
            out.commands.len(),
            event.fact.name()
        );
        self.events.push(event);
        self.open.extend(out.commands.iter().filter(|c| c.done(self.now).is_some()).cloned());
        self.commands.append(&mut out.commands);
    }

    fn answer(&mut self, bytes: &mut Bytes<'_>, failed: Option<ErrorClass>) {
        if self.open.is_empty() {
            return;
        }
        let command = self.open.remove(bytes.below(self.open.len() as u64) as usize);
        self.tell_some(match failed {
            Some(class) => command.failed(OpError { class, reason: None, message: "no".into() }),
            None => command.done(self.now),
        });
    }

    /// A source tells a pod, new or another of the same name.
    fn apply(&mut self, bytes: &mut Bytes<'_>) {
        let (which, is_static) = (bytes.below(3), bytes.once_in(1, 8));
        let name = if bytes.once_in(1, 4) { "web".to_owned() } else { format!("pod-{which}") };
        let mut object = manifest::pod(bytes, &self.features, &name, is_static);
        object["metadata"]["uid"] = json!(PodUid(u128::from(which)).to_string());
        object["metadata"]["generation"] = json!(self.events.len());
        default_pod(&mut object);
        let source = if is_static { Source::File } else { Source::Api };
        match pod_from_json(&object, source) {
            Ok(pod) => self.tell_pod(Arc::new(pod)),
            Err(problems) => panic!("the harness's own pods can be read: {problems:?}"),
        }
    }

    /// A known pod is deleted, loses parts, or is told as it was before.
    fn change(&mut self, bytes: &mut Bytes<'_>) {
        if self.pods.is_empty() {
            return;
        }
        let mut pod = Pod::clone(&self.pods[bytes.below(self.pods.len() as u64) as usize]);
        match bytes.below(4) {
            0 => pod.deletion = Some(Deletion { requested_at: self.now, grace: Nanos::secs(bytes.number()) }),
            1 => {
                let spec = Arc::make_mut(&mut pod.spec);
                spec.volumes.pop();
                spec.containers.pop();
            }
            2 => Arc::make_mut(&mut pod.spec).containers.push(drawn(bytes)),
            _ => {}
        }
        pod.generation += bytes.below(2);
        self.tell_pod(Arc::new(pod));
    }

    fn tell_pod(&mut self, pod: Arc<Pod>) {
        self.pods.push(pod.clone());
        self.tell(Fact::PodApplied(pod));
    }

    fn exit(&mut self, bytes: &mut Bytes<'_>) {
        let pods = self.node.pods();
        let Some(pod) = pods.get(bytes.below(pods.len() as u64) as usize).copied() else { return };
        let live = self.node.instances(pod);
        let Some((container, _)) = live.get(bytes.below(live.len() as u64) as usize).cloned() else { return };
        let code = bytes.number() as i32;
        let exit =
            Exit { code, signal: None, reason: "Error".into(), started_at: None, finished_at: self.now };
        self.tell(Fact::ContainerExited { pod, container, exit });
    }
}

/// The fold of these events from a state, and all that it asked for.
pub fn fold(mut node: Node, events: &[Event]) -> (Node, Vec<Command>) {
    let mut out = Commands::default();
    for event in events {
        node.apply(event, &mut out);
    }
    (node, out.commands)
}
