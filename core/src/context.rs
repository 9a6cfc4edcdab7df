//! What a room gets besides the pod: the moment, the configuration, and where commands go. Every comparison with
//! the clock goes through [`Context::due`], which books the wake-up that the wait needs: no wait without a producer
//! (L5), by construction.

use crate::anomaly::Anomalies;
use crate::command::{Action, Cause, Command, Commands, KubernetesEvent, Rule, Subject, Transition};
use crate::config::Config;
use crate::ids::{Epoch, EventSeq, Name, ObjectRef, OpId, PodUid, Word};
use crate::node::ObjectRecord;
use crate::publish::mirror::FullName;
use crate::time::Time;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Why something wants to be looked at again: the reason of a wake-up.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum Why {
    /// An ended container may start again then.
    CrashBackoff,
    /// An image pull may be tried again.
    PullBackoff,
    /// A failed create or start may be tried again.
    StartRetry,
    /// A failed mount or unmount may be tried again.
    VolumeRetry,
    /// A failed refresh may be tried again.
    RefreshRetry,
    /// A credential wants renewal.
    CredentialRenewal,
    /// A stop's deadline.
    GraceDeadline,
    /// A refused stop may be tried again.
    StopRetry,
    /// A failed sandbox operation may be tried again.
    SandboxRetry,
    /// A failed resize may be tried again.
    ResizeRetry,
    /// A failed removal of a dead container may be tried again.
    RemoveRetry,
    /// A failed status write may be tried again.
    StatusRetry,
    /// A failed release may be tried again.
    ReleaseRetry,
    /// A failed observation may be tried again.
    ObserveRetry,
    /// activeDeadlineSeconds.
    ActiveDeadline,
    /// Room was freed: deferred pods are tried.
    CapacityFreed,
    /// A room below concluded something that a room above acts on.
    FollowUp,
    /// Deferred pods are tried from time to time.
    AllocationRetry,
    /// A refused create or delete of a mirror pod may be tried again.
    MirrorRetry,
}

impl Why {
    /// It recurs for ever on a healthy node and says nothing about unfinished work.
    pub const fn is_housekeeping(self) -> bool {
        match self {
            Why::CredentialRenewal | Why::AllocationRetry => true,
            Why::CrashBackoff
            | Why::PullBackoff
            | Why::StartRetry
            | Why::VolumeRetry
            | Why::RefreshRetry
            | Why::GraceDeadline
            | Why::StopRetry
            | Why::SandboxRetry
            | Why::ResizeRetry
            | Why::RemoveRetry
            | Why::StatusRetry
            | Why::ReleaseRetry
            | Why::ObserveRetry
            | Why::ActiveDeadline
            | Why::CapacityFreed
            | Why::FollowUp
            | Why::MirrorRetry => false,
        }
    }
}

/// See the file's head.
pub struct Context<'a> {
    /// The configuration and the node's facts.
    pub config: &'a Config,
    /// Now, also for a timer that fires late.
    pub now: Time,
    /// The event being applied.
    pub event: EventSeq,
    /// This life of the agent.
    pub epoch: Epoch,
    /// The runtime was listed completely in this epoch.
    pub runtime_seen: bool,
    /// Desired state, mount table and runtime list are all in: undoing is allowed (I1).
    pub may_undo: bool,
    /// The mirror pod that shows this pod, if it is a static one.
    pub mirror: Option<PodUid>,
    /// Objects that volumes refer to.
    pub objects: &'a BTreeMap<ObjectRef, ObjectRecord>,
    /// The next operation's id.
    pub next_op: &'a mut OpId,
    /// Observations asked for by pods.
    pub observations: &'a mut BTreeMap<OpId, PodUid>,
    /// Where commands go.
    pub out: &'a mut Commands,
    /// What should not have happened.
    pub anomalies: &'a mut Anomalies,
    /// The pod's earliest wake-up found so far.
    pub wake: Option<(Time, Why)>,
}

impl Context<'_> {
    /// Whether the moment has come. If not, books a wake-up for it.
    pub fn due(&mut self, at: Time, why: Why) -> bool {
        if self.now >= at {
            return true;
        }
        if self.wake.is_none_or(|booked| (at, why) < booked) {
            self.wake = Some((at, why));
        }
        false
    }

    /// Books a wake-up at once: a room above has something to do about what was just concluded.
    pub fn follow_up(&mut self) {
        self.wake = Some((self.now, Why::FollowUp));
    }

    /// As `due`, for a back-off.
    pub fn retry_due(&mut self, retry: &crate::state::Retry, why: Why) -> bool {
        retry.until().is_none_or(|at| self.due(at, why))
    }

    /// Gives a command; returns its operation.
    pub fn command(&mut self, pod: PodUid, rule: Rule, action: Action) -> OpId {
        let op = *self.next_op;
        self.next_op.0 += 1;
        self.out.commands.push(Command { op, pod, cause: Cause { event: self.event, rule }, action });
        op
    }

    /// Records a Kubernetes Event.
    pub fn tell(
        &mut self,
        pod: PodUid,
        warning: bool,
        reason: &'static str,
        message: Word,
        container: Option<Name>,
    ) {
        let event = KubernetesEvent { warning, reason: reason.into(), message, container };
        self.command(pod, Rule::Told, Action::RecordEvent(event));
    }

    /// Notes a change of phase for people.
    pub fn moved(&mut self, pod: PodUid, subject: Subject, from: &'static str, to: &'static str) {
        if from != to {
            self.out.transitions.push(Transition { pod, subject, from: from.into(), to: to.into() });
        }
    }
}

/// What is told to people.
pub fn sentence(parts: core::fmt::Arguments<'_>) -> Word {
    alloc::fmt::format(parts).into()
}

/// Text into a `Name`.
pub fn text(parts: core::fmt::Arguments<'_>) -> Name {
    alloc::fmt::format(parts).into()
}

/// What an event touched: pods, and names of static pods whose mirrors want a look. Sorted, each once.
#[derive(Default, Clone)]
pub struct Touched {
    pods: Vec<PodUid>,
    mirrors: Vec<FullName>,
}

impl Touched {
    /// Adds a pod.
    pub fn add(&mut self, pod: PodUid) {
        if let Err(at) = self.pods.binary_search(&pod) {
            self.pods.insert(at, pod);
        }
    }
    /// Forgets all, keeping the memory.
    pub fn clear(&mut self) {
        self.pods.clear();
        self.mirrors.clear();
    }
    /// All pods, by UID.
    pub fn pods(&self) -> &[PodUid] {
        &self.pods
    }
    /// Adds a name whose mirror wants a look.
    pub fn add_mirror(&mut self, name: FullName) {
        if let Err(at) = self.mirrors.binary_search(&name) {
            self.mirrors.insert(at, name);
        }
    }
    /// All names whose mirrors want a look.
    pub fn mirrors(&self) -> &[FullName] {
        &self.mirrors
    }
}
