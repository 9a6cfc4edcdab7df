//! The canonical key of a world (DESIGN §7): what surrounds the node and the node, without what no future can tell: how
//! operations are numbered, when things happened, which addresses and versions were given out.

use super::World;
use super::choice::Choice;
use super::inflight::{InFlight, OpKey, Phase};
use super::runtime::State;
use nodefold_core::codec;
use nodefold_core::command::Action;
use nodefold_core::event::{ErrorClass, Fact, SeenState};
use nodefold_core::ids::OpId;
use nodefold_core::status::{ContainerState, PodStatus};
use nodefold_core::time::Nanos;
use serde_json::Value;
use std::io::Write;

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

impl World {
    /// Writes what the key is made from. Two worlds that write the same go on the same.
    pub fn canonical(&self, out: &mut Vec<u8>) {
        let number = |op: OpId| {
            let place = self.inflight.values().position(|inflight| inflight.command.op == op);
            OpId(place.map_or(0, |place| place as u64 + 1))
        };
        if let Some(node) = self.agent.brain().node() {
            codec::encode(&node.canonical(&number), out);
        }
        for (key, op) in &self.inflight {
            self.operation(key, op, out);
        }
        for (choice, due) in &self.pending {
            let _ = write!(out, "{choice:?}");
            if matches!(choice, Choice::GraceOver { .. }) || !self.instant {
                codec::encode(&due.since(self.now), out);
            }
        }
        self.host(out);
        self.server.canonical(out);
        let agent = (self.agent.is_alive(), self.told == self.facts);
        codec::encode(&agent, out);
        let _ = write!(out, "{:?}{:?}", self.faults, self.rules);
    }

    fn host(&self, out: &mut Vec<u8>) {
        for ((pod, attempt), sandbox) in &self.runtime.sandboxes {
            codec::encode(&(pod, attempt, sandbox.ready, sandbox.ip.is_some()), out);
        }
        for ((pod, id), container) in &self.runtime.containers {
            let state = match &container.state {
                State::Created => (0, 0),
                State::Running { .. } => (1, 0),
                State::Exited(exit) => (2, exit.code),
            };
            codec::encode(&(pod, id, container.sandbox, &container.mounts, state), out);
            let _ = write!(out, "{:?}{:?}{:?}", container.ending, container.probes, container.obeys_after);
        }
        for seen in self.mounts.list() {
            codec::encode(&(seen.pod, &seen.volume), out);
        }
        for ((pod, id, kind), last) in &self.probes {
            codec::encode(&(pod, id, kind, last), out);
        }
    }

    fn operation(&self, key: &OpKey, op: &InFlight, out: &mut Vec<u8>) {
        let _ = write!(out, "{key:?}{}{}{:?}", op.orphan, op.lingers, op.fate);
        asked(&op.command.action, out);
        match &op.phase {
            Phase::Running { due } => codec::encode(&(0u8, self.relevant(due.since(self.now))), out),
            Phase::Held { remaining } => codec::encode(&(1u8, self.relevant(*remaining)), out),
            Phase::Done { at, answer } => {
                codec::encode(&(2u8, self.relevant(at.since(self.now))), out);
                answered(answer, out);
            }
        }
    }

    /// Where operations end when somebody picks them, it does not matter when they were due.
    fn relevant(&self, time: Nanos) -> Nanos {
        if self.instant { Nanos::ZERO } else { time }
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
fn without_times(status: &PodStatus) -> PodStatus {
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
