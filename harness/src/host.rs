//! The simulated world as a host for an agent outside: it takes the agent's commands on in real time and tells it facts, and
//! nothing of it is real. The agent in the world hears everything and decides nothing.
//!
//! Processes do what a small program says ([`program`]): so that containers end and write logs without anything being run.

pub mod program;

use crate::brain::{Brain, NewBrain};
use crate::log::{FactLog, LogError};
use crate::record::Record;
use crate::scenario::NodeSpec;
use crate::world::{Earliest, Ending, World, WorldError};
use nodefold_api::{ApiEvent, Request};
use nodefold_core::command::{Action, Command};
use nodefold_core::config::NodeFacts;
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::{ContainerId, Name, ObjectKind, ObjectRef, PodUid};
use nodefold_core::spec::PodSpec;
use nodefold_core::time::Time;
use nodefold_core::{Commands, Config, Digest};
use program::{Program, Step};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A line that a simulated process wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When.
    pub at: Time,
    /// The pod's namespace and name.
    pub of: (Name, Name),
    /// The pod.
    pub pod: PodUid,
    /// Which life of which container.
    pub container: ContainerId,
    /// What; none when it only begins.
    pub text: Option<String>,
}

/// A process under way.
struct Process {
    of: (Name, Name),
    program: Program,
    /// Its next step.
    at: usize,
    due: Time,
}

/// The host.
pub struct SimulatedHost {
    world: World,
    /// What containers will run, from their creation on.
    programs: BTreeMap<(PodUid, ContainerId), ((Name, Name), Program)>,
    processes: BTreeMap<(PodUid, ContainerId), Process>,
    told: VecDeque<Fact>,
    lines: Vec<Line>,
    open: usize,
    objects: u128,
}

impl SimulatedHost {
    /// A host on which nothing runs.
    pub fn begin(node_name: &str, now: Time) -> SimulatedHost {
        let config = Config { node_name: node_name.into(), ..Config::default() };
        let spec = NodeSpec { facts: NodeFacts::default(), images: None, journal: false };
        let brain: NewBrain = Arc::new(|| Box::new(Deaf));
        let mut world = World::new(&config, brain, &spec, Box::new(Forgetful)).beginning_at(now);
        world.set_refined(false);
        SimulatedHost {
            world,
            programs: BTreeMap::new(),
            processes: BTreeMap::new(),
            told: VecDeque::new(),
            lines: Vec::new(),
            open: 0,
            objects: 0,
        }
    }

    /// Lets everything happen that is due by now. An error means that the world contradicts itself.
    pub fn pass(&mut self, now: Time) -> Result<(), WorldError> {
        loop {
            let step = self.processes.values().map(|process| process.due).min().filter(|due| *due <= now);
            self.world.run_until(step.unwrap_or(now), &mut Earliest)?;
            self.hear();
            match step {
                Some(due) => self.take_steps(due),
                None => return Ok(()),
            }
        }
    }

    /// When the next thing happens by itself.
    pub fn next_due(&self) -> Option<Time> {
        let steps = self.processes.values().map(|process| process.due).min();
        [self.world.next_due(), steps].into_iter().flatten().min()
    }

    /// The next thing that the agent hears.
    pub fn next_fact(&mut self) -> Option<Fact> {
        self.told.pop_front()
    }

    /// What processes wrote since this was asked last.
    pub fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    /// How many commands were taken on whose end was not told yet.
    pub fn in_flight(&self) -> usize {
        self.open
    }

    /// Takes a command on.
    pub fn submit(&mut self, command: &Command) {
        if let Action::CreateContainer { container, spec, pod, allocated, .. } = &command.action {
            let read = Program::read(&serde_json::from_str(&spec.rest.0).unwrap_or(Value::Null));
            let inits = &allocated.init_containers;
            let runs_once =
                inits.iter().any(|init| init.name == container.name && !PodSpec::is_sidecar(init));
            let program = if runs_once { read.that_ends() } else { read };
            let of = (pod.namespace.clone(), pod.name.clone());
            self.programs.insert((command.pod, container.clone()), (of, program));
        }
        self.open += 1;
        self.world.take_on(command.clone());
    }

    /// An object that volumes may refer to: that it is there, with these keys, or that it is not.
    pub fn stored(&mut self, object: &ObjectRef, value: Option<&Value>) -> Result<(), WorldError> {
        let kind = match object.kind {
            ObjectKind::Secret => "Secret",
            ObjectKind::ConfigMap => "ConfigMap",
            ObjectKind::ClusterTrustBundle => "ClusterTrustBundle",
        };
        let there = self.world.server().object(kind, &object.namespace, &object.name).is_some();
        let request = match (value, there) {
            (Some(value), false) => {
                self.objects += 1;
                Request::Create { object: value.clone(), uid: PodUid(self.objects) }
            }
            (Some(value), true) => {
                let mut object = value.clone();
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    for field in ["uid", "resourceVersion", "creationTimestamp"] {
                        metadata.shift_remove(field);
                    }
                }
                Request::Update { object }
            }
            (None, true) => Request::Delete {
                kind: kind.into(),
                namespace: object.namespace.clone(),
                name: object.name.clone(),
                grace_seconds: None,
                force: true,
            },
            (None, false) => return Ok(()),
        };
        self.world.request("host", String::new(), request).map(drop)
    }

    /// What the agent in the world was told is told to the one outside; its own beginning is none of that one's business.
    fn hear(&mut self) {
        for record in self.world.take_records() {
            let Record::Fact { event, .. } = record else { continue };
            let of_its_own = matches!(
                &event.fact,
                Fact::Tick
                    | Fact::AgentStarted { .. }
                    | Fact::SourceReady { .. }
                    | Fact::NodeChanged(_)
                    | Fact::ObjectSeen { .. }
                    | Fact::ObjectGone { .. }
            );
            if !of_its_own {
                self.begin_or_end(event.at, &event.fact);
                self.open = self.open.saturating_sub(1);
                self.told.push_back(event.fact);
            }
        }
    }

    fn begin_or_end(&mut self, at: Time, fact: &Fact) {
        if let Fact::ContainerStarted { pod, container, .. } = fact {
            let key = (*pod, container.clone());
            if let Some((of, program)) = self.programs.get(&key).cloned() {
                self.lines.push(Line {
                    at,
                    of: of.clone(),
                    pod: *pod,
                    container: container.clone(),
                    text: None,
                });
                self.processes.insert(key, Process { of, program, at: 0, due: at });
            }
        }
        if let Fact::ContainerExited { pod, container, .. } = fact {
            self.processes.remove(&(*pod, container.clone()));
        }
        if let Fact::ContainerRemoved { pod, container, .. } = fact {
            self.programs.remove(&(*pod, container.clone()));
        }
    }

    /// Every process whose next step is due takes it.
    fn take_steps(&mut self, due: Time) {
        let keys: Vec<(PodUid, ContainerId)> = self
            .processes
            .iter()
            .filter(|(_, process)| process.due <= due)
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            let Some(process) = self.processes.get_mut(&key) else { continue };
            let step = process.program.step(process.at);
            process.at += 1;
            match step {
                Step::Say(text) => {
                    let (pod, container) = key;
                    let text = Some(text);
                    self.lines.push(Line { at: due, of: process.of.clone(), pod, container, text });
                }
                Step::Sleep(time) => process.due = due.after(time),
                Step::Forever => process.due = Time(u64::MAX),
                Step::Exit(code) => {
                    self.processes.remove(&key);
                    self.world.end_instance(key.0, &key.1, Ending::Code(code));
                }
            }
        }
    }
}

/// Decides nothing.
struct Deaf;

impl Brain for Deaf {
    fn apply(&mut self, _event: &Event, _out: &mut Commands) {}

    fn next_deadline(&self) -> Option<Time> {
        None
    }

    fn boxed_clone(&self) -> Box<dyn Brain> {
        Box::new(Deaf)
    }

    fn digest(&mut self) -> Digest {
        Digest(0)
    }
}

/// Keeps nothing: the agent outside has the journal.
struct Forgetful;

impl FactLog for Forgetful {
    fn fact(&mut self, _event: &Event, _before: &mut dyn Brain) -> Result<(), LogError> {
        Ok(())
    }

    fn commands_given(&mut self, _commands: &[Command]) {}

    fn is_judged(&self) -> bool {
        false
    }

    fn request(&mut self, _event: &ApiEvent) -> Result<(), LogError> {
        Ok(())
    }

    fn recover(&mut self, new: &NewBrain) -> Result<Box<dyn Brain>, LogError> {
        Ok(new())
    }

    fn durable(&mut self) -> Result<Vec<Event>, LogError> {
        Ok(Vec::new())
    }

    fn fork(&self) -> Result<Box<dyn FactLog>, LogError> {
        Ok(Box::new(Forgetful))
    }

    fn close(&mut self, _brain: &mut dyn Brain) -> Result<(), LogError> {
        Ok(())
    }
}
