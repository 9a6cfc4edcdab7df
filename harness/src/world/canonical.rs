//! The canonical key of a world (DESIGN §7): what surrounds the node and the node, without what no future can tell: how
//! operations are numbered, when things happened, which addresses and versions were given out.

use super::World;
use super::choice::Choice;
use super::inflight::{InFlight, Numbers, OpKey, Phase};
use super::mounts::MountTable;
use super::runtime::{Runtime, State};
use crate::brain::Brain;
use nodefold_core::codec;
use nodefold_core::command::Action;
use nodefold_core::event::{ErrorClass, Fact, SeenState};
use nodefold_core::ids::OpId;
use nodefold_core::status::{ContainerState, PodStatus};
use nodefold_core::time::Nanos;
use serde_json::Value;
use std::io::Write;
use std::sync::Arc;

/// Fields of API objects that say when, where or how often, and that nobody decides by.
const INCIDENTAL: [&str; 13] = [
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "lastTransitionTime",
    "lastProbeTime",
    "startedAt",
    "finishedAt",
    "startTime",
    "podIP",
    "podIPs",
    "hostIP",
    "containerID",
    "message",
];

/// The key of a node's state, and of which state it is: good for as long as neither the brain nor the names of operations
/// change.
#[derive(Clone)]
pub(super) struct NodeKey {
    brain: Arc<Box<dyn Brain>>,
    numbers: Arc<Numbers>,
    key: u128,
}

impl World {
    /// The key. Two worlds that have the same go on the same.
    pub fn canonical(&self) -> u128 {
        let mut out = Vec::with_capacity(1024);
        out.extend(self.node_key().to_le_bytes());
        for (key, op) in self.inflight.parts() {
            // Where operations end when somebody picks them, nothing of them depends on the time.
            let hash =
                if self.instant { op.hash(|op| self.operation(key, op)) } else { self.operation(key, op) };
            out.extend(hash.to_le_bytes());
        }
        for (choice, due) in &self.pending {
            pending(choice, &mut out);
            if matches!(choice, Choice::GraceOver { .. }) || !self.instant {
                codec::encode(&due.since(self.now), &mut out);
            }
        }
        for part in [
            self.runtime.hash(|runtime| hashed(|out| containers(runtime, out))),
            self.mounts.hash(|mounts| hashed(|out| mounted(mounts, out))),
            self.server.hash(|server| hashed(|out| server.canonical(out))),
        ] {
            out.extend(part.to_le_bytes());
        }
        for ((pod, id, kind), last) in &self.probes {
            codec::encode(&(pod, id, kind, last), &mut out);
        }
        codec::encode(&(self.agent.is_alive(), self.told == self.facts), &mut out);
        // The node takes its times from when it heard something last.
        let behind = self.agent.brain().node().map(|node| self.faults.node_time(self.now).since(node.now()));
        codec::encode(&behind, &mut out);
        if !self.faults.are_none() || !self.rules.are_none() {
            let _ = write!(out, "{:?}{:?}", self.faults, self.rules);
        }
        codec::hash_bytes(&out).0
    }

    fn node_key(&self) -> u128 {
        let (brain, numbers) = (self.agent.shared_brain(), self.inflight.numbers());
        if let Some(known) = &*self.node_key.borrow()
            && Arc::ptr_eq(&known.brain, brain)
            && Arc::ptr_eq(&known.numbers, numbers)
        {
            return known.key;
        }
        let number = |op: OpId| numbers.get(&op).copied().unwrap_or(OpId(0));
        let node = brain.node().map(|node| node.canonical(&number).0);
        let key = hashed(|out| {
            codec::encode(&node, out);
            brain.memory(out);
        });
        let known = NodeKey { brain: brain.clone(), numbers: numbers.clone(), key };
        *self.node_key.borrow_mut() = Some(known);
        key
    }

    fn operation(&self, key: &OpKey, op: &InFlight) -> u128 {
        hashed(|out| {
            named(key, out);
            codec::encode(&(op.orphan, op.lingers, op.fate.is_some()), out);
            if let Some(fate) = &op.fate {
                codec::encode(&(fate.done, fate.error.class), out);
            }
            asked(&op.command.action, out);
            match &op.phase {
                Phase::Running { due } => codec::encode(&(0u8, self.relevant(due.since(self.now))), out),
                Phase::Held { remaining } => codec::encode(&(1u8, self.relevant(*remaining)), out),
                Phase::Done { at, answer } => {
                    codec::encode(&(2u8, self.relevant(at.since(self.now))), out);
                    answered(answer, out);
                }
            }
        })
    }

    /// Where operations end when somebody picks them, it does not matter when they were due.
    fn relevant(&self, time: Nanos) -> Nanos {
        if self.instant { Nanos::ZERO } else { time }
    }
}

fn hashed(write: impl FnOnce(&mut Vec<u8>)) -> u128 {
    let mut out = Vec::with_capacity(1024);
    write(&mut out);
    codec::hash_bytes(&out).0
}

fn containers(runtime: &Runtime, out: &mut Vec<u8>) {
    for ((pod, attempt), sandbox) in &runtime.sandboxes {
        codec::encode(&(pod, attempt, sandbox.ready, sandbox.ip.is_some()), out);
    }
    for ((pod, id), container) in &runtime.containers {
        let state = match &container.state {
            State::Created => (0, 0),
            State::Running { .. } => (1, 0),
            State::Exited(exit) => (2, exit.code),
        };
        codec::encode(&(pod, id, container.sandbox, &container.mounts, state), out);
        let _ = write!(out, "{:?}{:?}{:?}", container.ending, container.probes, container.obeys_after);
    }
    if !runtime.foretold().is_empty() {
        let _ = write!(out, "{:?}", runtime.foretold());
    }
}

fn mounted(mounts: &MountTable, out: &mut Vec<u8>) {
    for seen in mounts.list() {
        codec::encode(&(seen.pod, &seen.volume), out);
    }
}

fn named(key: &OpKey, out: &mut Vec<u8>) {
    codec::encode(&(key.kind as u8, key.pod, &*key.subject, key.repeat), out);
}

/// What is due besides operations.
fn pending(choice: &Choice, out: &mut Vec<u8>) {
    match choice {
        Choice::ProcessEnds { pod, container } => codec::encode(&(0u8, pod, container), out),
        Choice::GraceOver { pod, container } => codec::encode(&(1u8, pod, container), out),
        Choice::Effect(key) | Choice::Answer(key) => named(key, out),
        Choice::ExitNoticed { pod, container } => codec::encode(&(2u8, pod, container), out),
        Choice::SandboxNoticed { pod, attempt } => codec::encode(&(3u8, pod, attempt), out),
        Choice::Echo(number) => codec::encode(&(4u8, number), out),
        Choice::ProbeReported { pod, container, probe } => codec::encode(&(5u8, pod, container, probe), out),
        Choice::Deliver { source, pod, all } => codec::encode(&(6u8, source, pod, all), out),
        Choice::SourceListed(source) => codec::encode(&(7u8, source), out),
        Choice::ObjectReported(object) => codec::encode(&(8u8, object), out),
        Choice::GateReported { pod, condition } => codec::encode(&(9u8, pod, condition), out),
        Choice::UsageMeasured { pod, subject } => codec::encode(&(10u8, pod, subject), out),
        Choice::NodeReported => out.push(11),
        Choice::Reconnect => out.push(12),
        Choice::Permitted(object) => codec::encode(&(13u8, object), out),
        Choice::DiskFreed => out.push(14),
        Choice::Tick => out.push(15),
        Choice::AgentStarts => out.push(16),
    }
}

/// What a command asks the host for.
fn asked(action: &Action, out: &mut Vec<u8>) {
    match action {
        Action::MountVolume { spec, .. } | Action::RefreshVolume { spec, .. } => codec::encode(&**spec, out),
        Action::PullImage { image, .. } => codec::encode(image, out),
        Action::CreateContainer { mounts, sandbox, spec, .. } => {
            codec::encode(&(mounts, sandbox, &spec.image), out);
        }
        Action::StopContainer { grace, .. } => codec::encode(grace, out),
        Action::ResizeContainer { resources, .. } | Action::ResizePod { resources } => {
            codec::encode(resources, out);
        }
        Action::PublishStatus { status, mirror } => codec::encode(&(without_times(status), mirror), out),
        Action::UnmountVolume { .. }
        | Action::CreateSandbox { .. }
        | Action::StopSandbox { .. }
        | Action::RemoveSandbox { .. }
        | Action::StartContainer { .. }
        | Action::KillContainer { .. }
        | Action::RemoveContainer { .. }
        | Action::RunHook { .. }
        | Action::StartProbe { .. }
        | Action::StopProbe { .. }
        | Action::ObserveMounts
        | Action::ObserveRuntime
        | Action::RecordEvent(_)
        | Action::CreateMirror { .. }
        | Action::DeleteMirror { .. }
        | Action::ReleasePod => {}
    }
}

/// What the agent will hear: the fact's name, and of a look what it shows.
fn answered(fact: &Fact, out: &mut Vec<u8>) {
    codec::encode(&fact.name().to_owned(), out);
    if let Fact::MountsObserved { mounts, .. } = fact {
        codec::encode(mounts, out);
    } else if let Fact::RuntimeObserved { complete, sandboxes, containers, .. } = fact {
        codec::encode(complete, out);
        for sandbox in sandboxes {
            codec::encode(&(sandbox.pod, sandbox.attempt, sandbox.ready), out);
        }
        for seen in containers {
            let state = match &seen.state {
                SeenState::Created => (0, 0),
                SeenState::Running { .. } => (1, 0),
                SeenState::Exited(exit) => (2, exit.code),
                SeenState::Unknown => (3, 0),
            };
            codec::encode(&(seen.pod, &seen.container, state), out);
        }
    } else if let Some(class) = class_of(fact) {
        codec::encode(&class, out);
    }
}

/// What a failure says about the effect.
fn class_of(fact: &Fact) -> Option<ErrorClass> {
    match fact {
        Fact::VolumeMountFailed { error, .. }
        | Fact::VolumeUnmountFailed { error, .. }
        | Fact::VolumeRefreshFailed { error, .. }
        | Fact::ImagePullFailed { error, .. }
        | Fact::SandboxFailed { error, .. }
        | Fact::SandboxStopFailed { error, .. }
        | Fact::SandboxRemoveFailed { error, .. }
        | Fact::ContainerCreateFailed { error, .. }
        | Fact::ContainerStartFailed { error, .. }
        | Fact::ContainerStopFailed { error, .. }
        | Fact::ContainerRemoveFailed { error, .. }
        | Fact::ContainerResizeFailed { error, .. }
        | Fact::PodResizeFailed { error, .. }
        | Fact::ObserveFailed { error, .. }
        | Fact::StatusWriteFailed { error, .. }
        | Fact::ReleaseFailed { error, .. }
        | Fact::MirrorFailed { error, .. } => Some(error.class),
        Fact::HookDone { error, .. } => error.as_ref().map(|_| ErrorClass::Final),
        Fact::Tick
        | Fact::PodApplied(_)
        | Fact::PodRemoved { .. }
        | Fact::SourceReady { .. }
        | Fact::ObjectSeen { .. }
        | Fact::ObjectGone { .. }
        | Fact::NodeChanged(_)
        | Fact::ReadinessGate { .. }
        | Fact::VolumeMounted { .. }
        | Fact::VolumeUnmounted { .. }
        | Fact::VolumeRefreshed { .. }
        | Fact::UsageReported { .. }
        | Fact::ImagePulled { .. }
        | Fact::SandboxReady { .. }
        | Fact::SandboxStopped { .. }
        | Fact::SandboxRemoved { .. }
        | Fact::ContainerCreated { .. }
        | Fact::ContainerStarted { .. }
        | Fact::ContainerExited { .. }
        | Fact::ContainerRemoved { .. }
        | Fact::ContainerResized { .. }
        | Fact::PodResized { .. }
        | Fact::ProbeResult { .. }
        | Fact::AgentStarted { .. }
        | Fact::MountsObserved { .. }
        | Fact::RuntimeObserved { .. }
        | Fact::StatusWritten { .. }
        | Fact::MirrorSeen { .. }
        | Fact::MirrorGone { .. }
        | Fact::MirrorCreated { .. }
        | Fact::MirrorDeleted { .. } => None,
    }
}

/// A status without its times and addresses.
pub(crate) fn without_times(status: &PodStatus) -> PodStatus {
    let mut status = status.clone();
    status.start_time = None;
    status.pod_ip = None;
    for condition in &mut status.conditions {
        condition.last_transition = nodefold_core::time::Time(0);
        condition.message = "".into();
    }
    let rows = status
        .containers
        .iter_mut()
        .chain(&mut status.init_containers)
        .chain(&mut status.ephemeral_containers);
    for row in rows {
        match &mut row.state {
            ContainerState::Waiting { message, .. } => *message = "".into(),
            ContainerState::Running { started_at } => *started_at = nodefold_core::time::Time(0),
            ContainerState::Terminated(ended) => (ended.started_at, ended.finished_at) = (None, None),
        }
        if let Some(ended) = &mut row.last_state {
            (ended.started_at, ended.finished_at) = (None, None);
        }
    }
    status
}

/// An API object without what is incidental.
pub(super) fn object(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Bool(value) => out.extend([1, u8::from(*value)]),
        Value::Number(number) => {
            let _ = write!(out, "{number},");
        }
        Value::String(text) => codec::encode(text, out),
        Value::Array(items) => {
            out.push(b'[');
            items.iter().for_each(|item| object(item, out));
            out.push(b']');
        }
        Value::Object(fields) => {
            out.push(b'{');
            for (name, field) in fields.iter().filter(|(name, _)| !INCIDENTAL.contains(&name.as_str())) {
                codec::encode(name, out);
                if name == "deletionTimestamp" {
                    out.push(1);
                } else {
                    object(field, out);
                }
            }
            out.push(b'}');
        }
    }
}
