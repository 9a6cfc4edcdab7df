//! The canonical key of a world (DESIGN §7): what surrounds the node and the node, without what no future can tell: how
//! operations are numbered, when things happened, which addresses and versions were given out.
//!
//! A key can also be taken with pods renamed ([`Renaming`]): everything in it that says which pod is meant says it by the new
//! UID, and whatever was in the order of UIDs or names is sorted anew. A world and itself renamed go on the same as long as
//! nothing prefers one of the pods ([`World::alike`]); `check/symmetry.rs` makes the one key of all such worlds of it.

use super::World;
use super::choice::Choice;
use super::inflight::{InFlight, Numbers, OpKey, Phase, number_of};
use super::mounts::MountTable;
use super::runtime::{Runtime, State};
use crate::brain::Brain;
use nodefold_core::codec;
use nodefold_core::command::Action;
use nodefold_core::event::{ErrorClass, Fact, SeenState};
use nodefold_core::ids::{OpId, PodUid};
use nodefold_core::status::{ContainerState, PodStatus};
use nodefold_core::time::Nanos;
use serde_json::Value;
use std::collections::BTreeMap;
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

/// Other UIDs for some pods: each gets one of theirs.
pub struct Renaming(pub(crate) BTreeMap<PodUid, PodUid>);

impl Renaming {
    /// The pod's UID.
    pub fn of(&self, pod: PodUid) -> PodUid {
        self.0.get(&pod).copied().unwrap_or(pod)
    }
}

impl World {
    /// The key. Two worlds that have the same go on the same.
    pub fn canonical(&self) -> u128 {
        self.canonical_as(None)
    }

    /// The key with pods renamed.
    pub fn canonical_as(&self, who: Option<&Renaming>) -> u128 {
        let mut out = Vec::with_capacity(1024);
        out.extend(self.node_key(who).to_le_bytes());
        all(who, self.inflight.parts(), &mut out, |(key, op), out| {
            // Where operations end when somebody picks them, nothing of them depends on the time.
            let hash = if self.instant && who.is_none() {
                op.hash(|op| self.operation(key, op, who))
            } else {
                self.operation(key, op, who)
            };
            out.extend(hash.to_le_bytes());
        });
        all(who, &self.pending, &mut out, |(choice, due), out| {
            pending(choice, who, out);
            if matches!(choice, Choice::GraceOver { .. }) || !self.instant {
                codec::encode(&due.since(self.now), out);
            }
        });
        let (runtime, mounts, server) = match who {
            None => (
                self.runtime.hash(|runtime| hashed(|out| containers(runtime, None, out))),
                self.mounts.hash(|mounts| hashed(|out| mounted(mounts, None, out))),
                self.server.hash(|server| hashed(|out| server.canonical(None, out))),
            ),
            Some(_) => (
                hashed(|out| containers(&self.runtime, who, out)),
                hashed(|out| mounted(&self.mounts, who, out)),
                hashed(|out| self.server.canonical(who, out)),
            ),
        };
        for part in [runtime, mounts, server] {
            out.extend(part.to_le_bytes());
        }
        all(who, &self.probes, &mut out, |((pod, id, kind), last), out| {
            codec::encode(&(renamed(who, *pod), id, kind, last), out);
        });
        codec::encode(&(self.agent.is_alive(), self.told == self.facts), &mut out);
        // The node takes its times from when it heard something last.
        let behind = self.agent.brain().node().map(|node| self.faults.node_time(self.now).since(node.now()));
        codec::encode(&behind, &mut out);
        if !self.faults.are_none() || !self.rules.are_none() {
            let _ = write!(out, "{:?}{:?}", self.faults, self.rules);
        }
        codec::hash_bytes(&out).0
    }

    /// Pods that could be each other: nothing in the world and no decision of the node prefers one by its UID or its name.
    pub fn alike(&self) -> Vec<PodUid> {
        let mut memory = Vec::new();
        self.agent.brain().memory(&mut memory);
        let prefers = !memory.is_empty()
            || !self.faults.are_none()
            || !self.rules.are_none()
            || !self.usage.is_empty()
            || !self.server.forbidden().is_empty();
        if prefers { Vec::new() } else { self.server.alike() }
    }

    /// What the node knows of a pod, whoever that is: to tell most pods apart without taking a whole key.
    pub fn canonical_of(&self, pod: PodUid) -> Option<u128> {
        let numbers: Numbers = self.numbered(|_| PodUid(0));
        let number = |op: OpId| numbers.get(&op).copied().unwrap_or(OpId(0));
        self.agent.brain().node()?.canonical_of(pod, &number).map(|digest| digest.0)
    }

    /// What operations on their way are called, with pods renamed.
    fn numbered(&self, who: impl Fn(PodUid) -> PodUid) -> Numbers {
        let number = |(key, op): (&OpKey, &InFlight)| (op.command.op, number_of(key, who(key.pod)));
        self.inflight.iter().map(number).collect()
    }

    fn node_key(&self, who: Option<&Renaming>) -> u128 {
        let (brain, numbers) = (self.agent.shared_brain(), self.inflight.numbers());
        if let Some(who) = who {
            let numbers = self.numbered(|pod| who.of(pod));
            let number = |op: OpId| numbers.get(&op).copied().unwrap_or(OpId(0));
            let node = brain.node().map(|node| node.canonical(&number, &|pod| who.of(pod)).0);
            return hashed(|out| codec::encode(&node, out));
        }
        if let Some(known) = &*self.node_key.borrow()
            && Arc::ptr_eq(&known.brain, brain)
            && Arc::ptr_eq(&known.numbers, numbers)
        {
            return known.key;
        }
        let number = |op: OpId| numbers.get(&op).copied().unwrap_or(OpId(0));
        let node = brain.node().map(|node| node.canonical(&number, &|pod| pod).0);
        let key = hashed(|out| {
            codec::encode(&node, out);
            brain.memory(out);
        });
        let known = NodeKey { brain: brain.clone(), numbers: numbers.clone(), key };
        *self.node_key.borrow_mut() = Some(known);
        key
    }

    fn operation(&self, key: &OpKey, op: &InFlight, who: Option<&Renaming>) -> u128 {
        hashed(|out| {
            named(key, who, out);
            codec::encode(&(op.orphan, op.lingers, op.fate.is_some(), op.leaves_out), out);
            if let Some(fate) = &op.fate {
                codec::encode(&(fate.done, fate.error.class), out);
            }
            asked(&op.command.action, out);
            match &op.phase {
                Phase::Running { due } => codec::encode(&(0u8, self.relevant(due.since(self.now))), out),
                Phase::Held { remaining } => codec::encode(&(1u8, self.relevant(*remaining)), out),
                Phase::Done { at, answer } => {
                    codec::encode(&(2u8, self.relevant(at.since(self.now))), out);
                    answered(answer, who, out);
                }
            }
        })
    }

    /// Where operations end when somebody picks them, it does not matter when they were due.
    fn relevant(&self, time: Nanos) -> Nanos {
        if self.instant { Nanos::ZERO } else { time }
    }
}

pub(super) fn hashed(write: impl FnOnce(&mut Vec<u8>)) -> u128 {
    let mut out = Vec::with_capacity(1024);
    write(&mut out);
    codec::hash_bytes(&out).0
}

fn renamed(who: Option<&Renaming>, pod: PodUid) -> PodUid {
    who.map_or(pod, |who| who.of(pod))
}

/// Writes each of what is in the order of UIDs or names: where pods are renamed, in the order of what was written.
pub(super) fn all<E>(
    who: Option<&Renaming>,
    entries: impl IntoIterator<Item = E>,
    out: &mut Vec<u8>,
    write: impl Fn(&E, &mut Vec<u8>),
) {
    let Some(_) = who else {
        entries.into_iter().for_each(|entry| write(&entry, out));
        return;
    };
    let written = |entry: E| {
        let mut bytes = Vec::new();
        write(&entry, &mut bytes);
        bytes
    };
    let mut written: Vec<Vec<u8>> = entries.into_iter().map(written).collect();
    written.sort();
    codec::encode(&written, out);
}

fn containers(runtime: &Runtime, who: Option<&Renaming>, out: &mut Vec<u8>) {
    all(who, &runtime.sandboxes, out, |((pod, attempt), sandbox), out| {
        codec::encode(&(renamed(who, *pod), attempt, sandbox.ready, sandbox.ip.is_some()), out);
    });
    all(who, &runtime.containers, out, |((pod, id), container), out| {
        let state = match &container.state {
            State::Created => (0, 0),
            State::Running { .. } => (1, 0),
            State::Exited(exit) => (2, exit.code),
        };
        codec::encode(&(renamed(who, *pod), id, container.sandbox, &container.mounts, state), out);
        let _ = write!(out, "{:?}{:?}{:?}", container.ending, container.probes, container.obeys_after);
    });
    all(who, runtime.foretold(), out, |((pod, name), probes), out| {
        codec::encode(&(renamed(who, *pod), name), out);
        let _ = write!(out, "{probes:?}");
    });
}

fn mounted(mounts: &MountTable, who: Option<&Renaming>, out: &mut Vec<u8>) {
    all(who, mounts.list(), out, |seen, out| codec::encode(&(renamed(who, seen.pod), &seen.volume), out));
}

fn named(key: &OpKey, who: Option<&Renaming>, out: &mut Vec<u8>) {
    codec::encode(&(key.kind as u8, renamed(who, key.pod), &*key.subject, key.repeat), out);
}

/// What is due besides operations.
fn pending(choice: &Choice, who: Option<&Renaming>, out: &mut Vec<u8>) {
    let who = |pod: &PodUid| renamed(who, *pod);
    match choice {
        Choice::ProcessEnds { pod, container } => codec::encode(&(0u8, who(pod), container), out),
        Choice::GraceOver { pod, container } => codec::encode(&(1u8, who(pod), container), out),
        Choice::Effect(key) | Choice::Answer(key) => {
            codec::encode(&(key.kind as u8, who(&key.pod), &*key.subject, key.repeat), out);
        }
        Choice::ExitNoticed { pod, container } => codec::encode(&(2u8, who(pod), container), out),
        Choice::SandboxNoticed { pod, attempt } => codec::encode(&(3u8, who(pod), attempt), out),
        Choice::Echo(number) => codec::encode(&(4u8, number), out),
        Choice::ProbeReported { pod, container, probe } => {
            codec::encode(&(5u8, who(pod), container, probe), out);
        }
        Choice::Deliver { source, pod, all } => codec::encode(&(6u8, source, who(pod), all), out),
        Choice::SourceListed(source) => codec::encode(&(7u8, source), out),
        Choice::ObjectReported(object) => codec::encode(&(8u8, object), out),
        Choice::GateReported { pod, condition } => codec::encode(&(9u8, who(pod), condition), out),
        Choice::UsageMeasured { pod, subject } => codec::encode(&(10u8, who(pod), subject), out),
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
fn answered(fact: &Fact, who: Option<&Renaming>, out: &mut Vec<u8>) {
    codec::encode(&fact.name().to_owned(), out);
    if let Fact::MountsObserved { mounts, .. } = fact {
        all(who, mounts, out, |seen, out| codec::encode(&(renamed(who, seen.pod), &seen.volume), out));
    } else if let Fact::RuntimeObserved { complete, sandboxes, containers, .. } = fact {
        codec::encode(complete, out);
        all(who, sandboxes, out, |sandbox, out| {
            codec::encode(&(renamed(who, sandbox.pod), sandbox.attempt, sandbox.ready), out);
        });
        all(who, containers, out, |seen, out| {
            let state = match &seen.state {
                SeenState::Created => (0, 0),
                SeenState::Running { .. } => (1, 0),
                SeenState::Exited(exit) => (2, exit.code),
                SeenState::Unknown => (3, 0),
            };
            codec::encode(&(renamed(who, seen.pod), &seen.container, state), out);
        });
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

/// The pod that an object is, renamed.
pub(super) fn renamed_pod(who: Option<&Renaming>, pod: &Value) -> PodUid {
    renamed(who, nodefold_k8s::pod_uid(pod["metadata"]["uid"].as_str().unwrap_or_default()))
}

/// A pod's object; a renamed one's has its new UID, which stands for its name too.
pub(super) fn renamed_object(who: Option<&Renaming>, pod: &Value, out: &mut Vec<u8>) {
    let uid = nodefold_k8s::pod_uid(pod["metadata"]["uid"].as_str().unwrap_or_default());
    let Some(new) = who.and_then(|who| who.0.get(&uid)) else {
        object(pod, out);
        return;
    };
    codec::encode(new, out);
    let mut nameless = pod.clone();
    if let Some(metadata) = nameless["metadata"].as_object_mut() {
        metadata.retain(|field, _| field != "name" && field != "uid");
    }
    object(&nameless, out);
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
