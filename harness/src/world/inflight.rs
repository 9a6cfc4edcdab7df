//! Operations: what a command became once the world took it on. An operation has two moments that a chooser may order
//! apart from everything else: its *effect* on the host, and the *answer* that tells the agent. A crash between the two
//! is the classic "done, acknowledgement lost".

use super::part::Part;
use nodefold_core::about::About;
use nodefold_core::codec;
use nodefold_core::command::{Action, Command};
use nodefold_core::event::{Fact, Hook, OpError};
use nodefold_core::ids::{Name, OpId, PodUid};
use nodefold_core::time::{Nanos, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an operation does.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OpKind {
    /// Sets a volume up.
    Mount,
    /// Takes it down.
    Unmount,
    /// Writes its newest content.
    Refresh,
    /// Has an image present.
    Pull,
    /// Makes a sandbox.
    CreateSandbox,
    /// Stops it.
    StopSandbox,
    /// Removes it.
    RemoveSandbox,
    /// Makes a container.
    Create,
    /// Starts it.
    Start,
    /// TERM, then KILL.
    Stop,
    /// KILL.
    Kill,
    /// Removes a dead container.
    Remove,
    /// Changes a container's resources.
    Resize,
    /// Changes a pod's.
    ResizePod,
    /// Runs the postStart hook.
    PostStart,
    /// Runs the preStop hook.
    PreStop,
    /// Lists the mounts.
    ObserveMounts,
    /// Lists the runtime.
    ObserveRuntime,
    /// Writes a status.
    Status,
    /// Deletes the pod's object for good.
    Release,
    /// Makes a mirror pod.
    CreateMirror,
    /// Deletes one.
    DeleteMirror,
}

impl OpKind {
    /// Its stable name.
    pub const fn verb(self) -> &'static str {
        match self {
            OpKind::Mount => "mount",
            OpKind::Unmount => "unmount",
            OpKind::Refresh => "refresh",
            OpKind::Pull => "pull",
            OpKind::CreateSandbox => "sandbox",
            OpKind::StopSandbox => "stop-sandbox",
            OpKind::RemoveSandbox => "remove-sandbox",
            OpKind::Create => "create",
            OpKind::Start => "start",
            OpKind::Stop => "stop",
            OpKind::Kill => "kill",
            OpKind::Remove => "remove",
            OpKind::Resize => "resize",
            OpKind::ResizePod => "resize-pod",
            OpKind::PostStart => "post-start",
            OpKind::PreStop => "pre-stop",
            OpKind::ObserveMounts => "observe-mounts",
            OpKind::ObserveRuntime => "observe-runtime",
            OpKind::Status => "status",
            OpKind::Release => "release",
            OpKind::CreateMirror => "create-mirror",
            OpKind::DeleteMirror => "delete-mirror",
        }
    }

    /// It runs in the container runtime's process, not in the agent's: a crash of the agent does not end it.
    pub const fn in_runtime(self) -> bool {
        match self {
            OpKind::Pull
            | OpKind::CreateSandbox
            | OpKind::StopSandbox
            | OpKind::RemoveSandbox
            | OpKind::Create
            | OpKind::Start
            | OpKind::Stop
            | OpKind::Kill
            | OpKind::Remove
            | OpKind::Resize
            | OpKind::ResizePod => true,
            OpKind::Mount
            | OpKind::Unmount
            | OpKind::Refresh
            | OpKind::PostStart
            | OpKind::PreStop
            | OpKind::ObserveMounts
            | OpKind::ObserveRuntime
            | OpKind::Status
            | OpKind::Release
            | OpKind::CreateMirror
            | OpKind::DeleteMirror => false,
        }
    }

    /// The operation that an action becomes; `None` for what the world does at once and without an answer.
    pub fn of(action: &Action) -> Option<OpKind> {
        match action {
            Action::MountVolume { .. } => Some(OpKind::Mount),
            Action::UnmountVolume { .. } => Some(OpKind::Unmount),
            Action::RefreshVolume { .. } => Some(OpKind::Refresh),
            Action::PullImage { .. } => Some(OpKind::Pull),
            Action::CreateSandbox { .. } => Some(OpKind::CreateSandbox),
            Action::StopSandbox { .. } => Some(OpKind::StopSandbox),
            Action::RemoveSandbox { .. } => Some(OpKind::RemoveSandbox),
            Action::CreateContainer { .. } => Some(OpKind::Create),
            Action::StartContainer { .. } => Some(OpKind::Start),
            Action::StopContainer { .. } => Some(OpKind::Stop),
            Action::KillContainer { .. } => Some(OpKind::Kill),
            Action::RemoveContainer { .. } => Some(OpKind::Remove),
            Action::ResizeContainer { .. } => Some(OpKind::Resize),
            Action::ResizePod { .. } => Some(OpKind::ResizePod),
            Action::RunHook { hook: Hook::PostStart, .. } => Some(OpKind::PostStart),
            Action::RunHook { hook: Hook::PreStop, .. } => Some(OpKind::PreStop),
            Action::ObserveMounts => Some(OpKind::ObserveMounts),
            Action::ObserveRuntime => Some(OpKind::ObserveRuntime),
            Action::PublishStatus { .. } => Some(OpKind::Status),
            Action::ReleasePod => Some(OpKind::Release),
            Action::CreateMirror { .. } => Some(OpKind::CreateMirror),
            Action::DeleteMirror { .. } => Some(OpKind::DeleteMirror),
            Action::StartProbe { .. } | Action::StopProbe { .. } | Action::RecordEvent(_) => None,
        }
    }
}

/// An operation's name: the same in any run in which the same thing is done, whatever numbers the fold gave out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OpKey {
    /// What it does.
    pub kind: OpKind,
    /// In which pod.
    pub pod: PodUid,
    /// To which container, volume or sandbox attempt: `app#0.1`, `scratch#0`, `0`; empty for the pod.
    pub subject: Name,
    /// How many of the same name were in flight when it began.
    pub repeat: u32,
}

impl OpKey {
    /// The name of an operation that performs this command, before counting.
    pub fn of(kind: OpKind, command: &Command) -> OpKey {
        let subject = match command.action.about() {
            About::Container(container) => container.to_string(),
            About::Volume(volume) => volume.to_string(),
            About::Sandbox(attempt) => attempt.to_string(),
            About::Pod | About::Node => String::new(),
        };
        OpKey { kind, pod: command.pod, subject: subject.into(), repeat: 0 }
    }

    /// What it is about, as a string.
    pub fn subject_name(&self) -> &str {
        &self.subject
    }
}

/// How far an operation is.
#[derive(Clone, Debug)]
pub enum Phase {
    /// It takes effect when this is due.
    Running {
        /// When.
        due: Time,
    },
    /// It hangs. When let go, it takes this much longer.
    Held {
        /// How long it still has to run.
        remaining: Nanos,
    },
    /// It took effect; the agent has not heard yet.
    Done {
        /// When the agent hears: at once, unless a fault delays it.
        at: Time,
        /// What the agent will hear.
        answer: Fact,
    },
}

/// An operation on its way.
#[derive(Clone, Debug)]
pub struct InFlight {
    /// The command it performs.
    pub command: Command,
    /// How far it is.
    pub phase: Phase,
    /// The agent that asked is gone: nobody hears the answer.
    pub orphan: bool,
    /// How it goes wrong, where a fault said so.
    pub fate: Option<Fate>,
    /// Its answer comes once more, this long after the first.
    pub echo: Option<Nanos>,
    /// Its answer outlives the agent that asked.
    pub lingers: bool,
    /// Which entries of a list are left out of it: the bits of this number, again and again.
    pub leaves_out: Option<u64>,
}

/// How an operation goes wrong.
#[derive(Clone, Debug)]
pub struct Fate {
    /// What the agent is told.
    pub error: OpError,
    /// It was done all the same.
    pub done: bool,
}

impl InFlight {
    /// An operation that begins, and goes well.
    pub fn begins(command: Command, due: Time) -> InFlight {
        InFlight {
            command,
            phase: Phase::Running { due },
            orphan: false,
            fate: None,
            echo: None,
            lingers: false,
            leaves_out: None,
        }
    }
}

/// All operations on their way, by name. Forks share them until one of them changes something, and an operation's own hash
/// is taken once for as long as nothing happens to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Operations {
    by_name: Part<BTreeMap<OpKey, Part<InFlight>>>,
    numbers: Arc<Numbers>,
}

/// Numbers that operations have as long as they are on their way: of their names, not of the order in which they were given.
pub(super) type Numbers = BTreeMap<OpId, OpId>;

/// The number of an operation's name, if it is that pod's. None is 0.
pub(super) fn number_of(key: &OpKey, pod: PodUid) -> OpId {
    OpId(codec::hash(&(key.kind as u8, pod, &*key.subject, key.repeat)).0 as u64 | 1)
}

impl Operations {
    pub(super) fn get(&self, key: &OpKey) -> Option<&InFlight> {
        self.by_name.get(key).map(|op| &**op)
    }

    pub(super) fn get_mut(&mut self, key: &OpKey) -> Option<&mut InFlight> {
        if !self.by_name.contains_key(key) {
            return None;
        }
        self.by_name.get_mut(key).map(|op| &mut **op)
    }

    pub(super) fn contains_key(&self, key: &OpKey) -> bool {
        self.by_name.contains_key(key)
    }

    pub(super) fn insert(&mut self, key: OpKey, op: InFlight) {
        let number = number_of(&key, key.pod);
        Arc::make_mut(&mut self.numbers).insert(op.command.op, number);
        self.by_name.insert(key, Part::new(op));
    }

    pub(super) fn remove(&mut self, key: &OpKey) -> Option<InFlight> {
        if !self.by_name.contains_key(key) {
            return None;
        }
        let op = self.by_name.remove(key).map(Part::into_inner)?;
        Arc::make_mut(&mut self.numbers).remove(&op.command.op);
        Some(op)
    }

    pub(super) fn clear(&mut self) {
        *self = Operations::default();
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&OpKey, &mut InFlight) -> bool) {
        let numbers = Arc::make_mut(&mut self.numbers);
        self.by_name.retain(|key, op| {
            let kept = keep(key, op);
            if !kept {
                numbers.remove(&op.command.op);
            }
            kept
        });
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &OpKey> {
        self.by_name.keys()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &InFlight> {
        self.by_name.values().map(|op| &**op)
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut InFlight> {
        self.by_name.values_mut().map(|op| &mut **op)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&OpKey, &InFlight)> {
        self.by_name.iter().map(|(key, op)| (key, &**op))
    }

    /// Each with the keeper of its hash.
    pub(super) fn parts(&self) -> impl Iterator<Item = (&OpKey, &Part<InFlight>)> {
        self.by_name.iter()
    }

    /// What each is called while it is on its way.
    pub(super) fn numbers(&self) -> &Arc<Numbers> {
        &self.numbers
    }
}
