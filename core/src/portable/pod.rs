//! A pod's part of the document.

use super::container::ContainerDocument;
use super::volume::VolumeDocument;
use super::{RetryDocument, Unreadable};
use crate::allocate::charge;
use crate::allocate::commit::{allocation, definition};
use crate::context::Why;
use crate::ids::{ContainerId, Epoch, EventSeq, Name, OpId, PodUid};
use crate::node::Digest;
use crate::resources::Resources;
use crate::spec::{Container, Pod, PodSpec, TerminalPhase};
use crate::state::{
    Allocation, InProgress, Lifecycle, Pending, PendingKind, PodState, Publication, Sandbox, SandboxPhase,
    Shared, Shown, Surplus, Termination, TerminationCause,
};
use crate::status::ConditionKind;
use crate::time::Time;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PodDocument {
    pod: Arc<Pod>,
    arrived: EventSeq,
    born: Epoch,
    applied_in: Epoch,
    object_gone: bool,
    again: Option<Arc<Pod>>,
    allocated: Option<AllocationDocument>,
    lifecycle: LifecycleDocument,
    terminal: Option<TerminalPhase>,
    end_reason: Option<(Name, Name)>,
    start_time: Option<Time>,
    ever_ran: bool,
    initialized: bool,
    initialized_in: Option<u32>,
    sandbox: Option<SandboxDocument>,
    old_sandboxes: Vec<SandboxDocument>,
    next_sandbox: u32,
    sandbox_retry: RetryDocument,
    containers: Vec<ContainerDocument>,
    incarnation_floor: u32,
    surplus: Vec<SurplusDocument>,
    volumes: Vec<VolumeDocument>,
    generation_floor: u32,
    content_changed: bool,
    pending: Option<PendingDocument>,
    in_progress: Option<InProgressDocument>,
    cgroup: Resources,
    cgroup_resizing: Option<(OpId, Resources)>,
    cgroup_retry: RetryDocument,
    restarting_all: Option<ContainerId>,
    observing: Option<OpId>,
    observe_retry: RetryDocument,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    newer_than_look: Vec<ContainerId>,
    gates_met: Vec<Name>,
    publication: PublicationDocument,
    releasing: Option<OpId>,
    release_retry: RetryDocument,
    /// A life that just began: what it takes is yet to be asked.
    charge_stale: bool,
    wake: Option<(Time, Why)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AllocationDocument {
    /// Where it differs from the desired one.
    spec: Option<Arc<PodSpec>>,
    generation: u64,
    at: Time,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum LifecycleDocument {
    Waiting,
    Active,
    Terminating { cause: CauseDocument, since: Time, deadline: Time },
    Terminated,
}

#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum CauseDocument {
    Deleted,
    ObjectGone,
    Evicted,
    DeadlineExceeded,
    Completed,
    ApiTerminal,
    Orphan,
    Rejected,
    Preempted,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SandboxDocument {
    attempt: u32,
    phase: SandboxPhaseDocument,
    ip: Option<Name>,
}

#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum SandboxPhaseDocument {
    Creating(OpId),
    Ready,
    Dead,
    Stopping(Option<OpId>),
    Stopped,
    Removing(OpId),
    Unknown,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SurplusDocument {
    container: ContainerId,
    kill: Option<OpId>,
    retry: RetryDocument,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PendingDocument {
    infeasible: bool,
    message: Name,
    generation: u64,
    since: Time,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InProgressDocument {
    generation: u64,
    error: Option<Name>,
    since: Time,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PublicationDocument {
    shown: Option<ShownDocument>,
    stale: bool,
    sent: Option<Digest>,
    writing: Option<OpId>,
    mirror: Option<PodUid>,
    terminal_acknowledged: bool,
    retry: RetryDocument,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ShownDocument {
    /// Of the status as the version that wrote this derives it. Where another derives it otherwise, it is told anew.
    digest: Digest,
    terminal: bool,
    ip: Option<Name>,
    conditions: Vec<(ConditionKind, bool, Time)>,
    ends: Vec<ContainerId>,
    pull_errors: Vec<Name>,
}

/// What a spec has under a container's name; an ephemeral one is only in the desired spec.
fn known<'a>(allocated: Option<&'a PodSpec>, desired: &'a PodSpec, name: &str) -> Option<&'a Arc<Container>> {
    let allocated = allocated.and_then(|spec| definition(spec, name));
    allocated.or_else(|| definition(desired, name)).map(|(container, _)| container)
}

impl PodDocument {
    pub(super) fn of(state: &PodState) -> PodDocument {
        let PodState {
            pod,
            arrived,
            born,
            applied_in,
            object_gone,
            again,
            allocated,
            lifecycle,
            terminal,
            end_reason,
            start_time,
            ever_ran,
            initialized,
            initialized_in,
            sandbox,
            old_sandboxes,
            next_sandbox,
            sandbox_retry,
            containers,
            incarnation_floor,
            surplus,
            volumes,
            generation_floor,
            content_changed,
            // Empty between events.
            let_go: _,
            pending,
            in_progress,
            cgroup,
            cgroup_resizing,
            cgroup_retry,
            restarting_all,
            observing,
            observe_retry,
            newer_than_look,
            gates_met,
            publication,
            releasing,
            release_retry,
            // What it takes follows from the rest.
            charge: _,
            charge_stale,
            wake,
        } = state;
        let desired = &pod.spec;
        let allocated_spec = allocated.as_ref().map(|allocation| &**allocation.spec.arc());
        let container = |c| ContainerDocument::of(c, known(allocated_spec, desired, &c.name));
        PodDocument {
            pod: pod.arc().clone(),
            arrived: *arrived,
            born: *born,
            applied_in: *applied_in,
            object_gone: *object_gone,
            again: again.as_ref().map(|again| again.arc().clone()),
            allocated: allocated.as_ref().map(|allocation| AllocationDocument::of(allocation, desired)),
            lifecycle: LifecycleDocument::of(lifecycle),
            terminal: *terminal,
            end_reason: end_reason.as_deref().cloned(),
            start_time: *start_time,
            ever_ran: *ever_ran,
            initialized: *initialized,
            initialized_in: *initialized_in,
            sandbox: sandbox.as_ref().map(SandboxDocument::of),
            old_sandboxes: old_sandboxes.iter().map(SandboxDocument::of).collect(),
            next_sandbox: *next_sandbox,
            sandbox_retry: sandbox_retry.into(),
            containers: containers.iter().map(container).collect(),
            incarnation_floor: *incarnation_floor,
            surplus: surplus.iter().map(SurplusDocument::of).collect(),
            volumes: volumes.iter().map(VolumeDocument::of).collect(),
            generation_floor: *generation_floor,
            content_changed: *content_changed,
            pending: pending.as_deref().map(PendingDocument::of),
            in_progress: in_progress.as_deref().map(InProgressDocument::of),
            cgroup: cgroup.clone(),
            cgroup_resizing: cgroup_resizing.as_deref().cloned(),
            cgroup_retry: cgroup_retry.into(),
            restarting_all: restarting_all.as_deref().cloned(),
            observing: *observing,
            observe_retry: observe_retry.into(),
            newer_than_look: newer_than_look.to_vec(),
            gates_met: gates_met.to_vec(),
            publication: PublicationDocument::of(publication),
            releasing: *releasing,
            release_retry: release_retry.into(),
            charge_stale: *charge_stale,
            wake: *wake,
        }
    }

    pub(super) fn into_state(self) -> Result<PodState, Unreadable> {
        let desired = self.pod.spec.clone();
        let mut state = PodState::new(Shared::new(self.pod), self.arrived, self.born);
        state.applied_in = self.applied_in;
        state.object_gone = self.object_gone;
        state.again = self.again.map(|again| Box::new(Shared::new(again)));
        state.allocated = self.allocated.map(|told| {
            allocation(Shared::new(told.spec.unwrap_or_else(|| desired.clone())), told.generation, told.at)
        });
        let allocated = state.allocated.as_ref().map(|allocation| allocation.spec.arc().clone());
        state.lifecycle = self.lifecycle.into_state();
        state.terminal = self.terminal;
        state.end_reason = self.end_reason.map(Box::new);
        state.start_time = self.start_time;
        state.ever_ran = self.ever_ran;
        state.initialized = self.initialized;
        state.initialized_in = self.initialized_in;
        state.sandbox = self.sandbox.map(SandboxDocument::into_state);
        state.old_sandboxes = self.old_sandboxes.into_iter().map(SandboxDocument::into_state).collect();
        state.next_sandbox = self.next_sandbox;
        state.sandbox_retry = self.sandbox_retry.into();
        for told in self.containers {
            let name = told.name.clone();
            let container = told.into_state(known(allocated.as_deref(), &desired, &name))?;
            state.containers.push(container);
        }
        state.incarnation_floor = self.incarnation_floor;
        state.surplus = self.surplus.into_iter().map(SurplusDocument::into_state).collect();
        state.volumes = self.volumes.into_iter().map(VolumeDocument::into_state).collect();
        state.generation_floor = self.generation_floor;
        state.content_changed = self.content_changed;
        state.pending = self.pending.map(|told| Box::new(told.into_state()));
        state.in_progress = self.in_progress.map(|told| Box::new(told.into_state()));
        state.cgroup = self.cgroup;
        state.cgroup_resizing = self.cgroup_resizing.map(Box::new);
        state.cgroup_retry = self.cgroup_retry.into();
        state.restarting_all = self.restarting_all.map(Box::new);
        state.observing = self.observing;
        state.observe_retry = self.observe_retry.into();
        state.newer_than_look = self.newer_than_look.into_iter().collect();
        state.gates_met = self.gates_met.into_iter().collect();
        state.publication = self.publication.into_state();
        state.releasing = self.releasing;
        state.release_retry = self.release_retry.into();
        state.wake = self.wake;
        state.charge = charge::of(&state);
        state.charge_stale = self.charge_stale;
        Ok(state)
    }
}

impl AllocationDocument {
    fn of(allocation: &Allocation, desired: &Arc<PodSpec>) -> AllocationDocument {
        let Allocation {
            spec,
            // Sums, made from the spec.
            requests: _,
            charge: _,
            in_force: _,
            cgroup: _,
            generation,
            at,
        } = allocation;
        let same = Arc::ptr_eq(spec.arc(), desired) || **spec.arc() == **desired;
        AllocationDocument { spec: (!same).then(|| spec.arc().clone()), generation: *generation, at: *at }
    }
}

impl LifecycleDocument {
    fn of(lifecycle: &Lifecycle) -> LifecycleDocument {
        match lifecycle {
            Lifecycle::Waiting => LifecycleDocument::Waiting,
            Lifecycle::Active => LifecycleDocument::Active,
            Lifecycle::Terminating(Termination { cause, since, deadline }) => {
                let cause = match cause {
                    TerminationCause::Deleted => CauseDocument::Deleted,
                    TerminationCause::ObjectGone => CauseDocument::ObjectGone,
                    TerminationCause::Evicted => CauseDocument::Evicted,
                    TerminationCause::DeadlineExceeded => CauseDocument::DeadlineExceeded,
                    TerminationCause::Completed => CauseDocument::Completed,
                    TerminationCause::ApiTerminal => CauseDocument::ApiTerminal,
                    TerminationCause::Orphan => CauseDocument::Orphan,
                    TerminationCause::Rejected => CauseDocument::Rejected,
                    TerminationCause::Preempted => CauseDocument::Preempted,
                };
                LifecycleDocument::Terminating { cause, since: *since, deadline: *deadline }
            }
            Lifecycle::Terminated => LifecycleDocument::Terminated,
        }
    }

    fn into_state(self) -> Lifecycle {
        match self {
            LifecycleDocument::Waiting => Lifecycle::Waiting,
            LifecycleDocument::Active => Lifecycle::Active,
            LifecycleDocument::Terminating { cause, since, deadline } => {
                let cause = match cause {
                    CauseDocument::Deleted => TerminationCause::Deleted,
                    CauseDocument::ObjectGone => TerminationCause::ObjectGone,
                    CauseDocument::Evicted => TerminationCause::Evicted,
                    CauseDocument::DeadlineExceeded => TerminationCause::DeadlineExceeded,
                    CauseDocument::Completed => TerminationCause::Completed,
                    CauseDocument::ApiTerminal => TerminationCause::ApiTerminal,
                    CauseDocument::Orphan => TerminationCause::Orphan,
                    CauseDocument::Rejected => TerminationCause::Rejected,
                    CauseDocument::Preempted => TerminationCause::Preempted,
                };
                Lifecycle::Terminating(Termination { cause, since, deadline })
            }
            LifecycleDocument::Terminated => Lifecycle::Terminated,
        }
    }
}

impl SandboxDocument {
    fn of(sandbox: &Sandbox) -> SandboxDocument {
        let Sandbox { attempt, phase, ip } = sandbox;
        let phase = match phase {
            SandboxPhase::Creating { op } => SandboxPhaseDocument::Creating(*op),
            SandboxPhase::Ready => SandboxPhaseDocument::Ready,
            SandboxPhase::Dead => SandboxPhaseDocument::Dead,
            SandboxPhase::Stopping { op } => SandboxPhaseDocument::Stopping(*op),
            SandboxPhase::Stopped => SandboxPhaseDocument::Stopped,
            SandboxPhase::Removing { op } => SandboxPhaseDocument::Removing(*op),
            SandboxPhase::Unknown => SandboxPhaseDocument::Unknown,
        };
        SandboxDocument { attempt: *attempt, phase, ip: ip.clone() }
    }

    fn into_state(self) -> Sandbox {
        let phase = match self.phase {
            SandboxPhaseDocument::Creating(op) => SandboxPhase::Creating { op },
            SandboxPhaseDocument::Ready => SandboxPhase::Ready,
            SandboxPhaseDocument::Dead => SandboxPhase::Dead,
            SandboxPhaseDocument::Stopping(op) => SandboxPhase::Stopping { op },
            SandboxPhaseDocument::Stopped => SandboxPhase::Stopped,
            SandboxPhaseDocument::Removing(op) => SandboxPhase::Removing { op },
            SandboxPhaseDocument::Unknown => SandboxPhase::Unknown,
        };
        Sandbox { attempt: self.attempt, phase, ip: self.ip }
    }
}

impl SurplusDocument {
    fn of(surplus: &Surplus) -> SurplusDocument {
        let Surplus { id, kill, retry } = surplus;
        SurplusDocument { container: id.clone(), kill: *kill, retry: retry.into() }
    }

    fn into_state(self) -> Surplus {
        Surplus { id: self.container, kill: self.kill, retry: self.retry.into() }
    }
}

impl PendingDocument {
    fn of(pending: &Pending) -> PendingDocument {
        let Pending { kind, message, generation, since } = pending;
        let infeasible = match kind {
            PendingKind::Deferred => false,
            PendingKind::Infeasible => true,
        };
        PendingDocument { infeasible, message: message.clone(), generation: *generation, since: *since }
    }

    fn into_state(self) -> Pending {
        let kind = if self.infeasible { PendingKind::Infeasible } else { PendingKind::Deferred };
        Pending { kind, message: self.message, generation: self.generation, since: self.since }
    }
}

impl InProgressDocument {
    fn of(progress: &InProgress) -> InProgressDocument {
        let InProgress { generation, error, since } = progress;
        InProgressDocument { generation: *generation, error: error.clone(), since: *since }
    }

    fn into_state(self) -> InProgress {
        let InProgressDocument { generation, error, since } = self;
        InProgress { generation, error, since }
    }
}

impl PublicationDocument {
    fn of(publication: &Publication) -> PublicationDocument {
        let Publication { current, stale, sent, writing, mirror, terminal_acknowledged, retry } = publication;
        let shown = |shown: &Shown| {
            let Shown { digest, is_terminal, ip, conditions, ends, pull_errors } = shown;
            ShownDocument {
                digest: *digest,
                terminal: *is_terminal,
                ip: ip.clone(),
                conditions: conditions.clone(),
                ends: ends.to_vec(),
                pull_errors: pull_errors.to_vec(),
            }
        };
        PublicationDocument {
            shown: current.as_ref().map(shown),
            stale: *stale,
            sent: *sent,
            writing: *writing,
            mirror: mirror.as_deref().copied(),
            terminal_acknowledged: *terminal_acknowledged,
            retry: retry.into(),
        }
    }

    fn into_state(self) -> Publication {
        let shown = |told: ShownDocument| Shown {
            digest: told.digest,
            is_terminal: told.terminal,
            ip: told.ip,
            conditions: told.conditions,
            ends: told.ends.into_iter().collect(),
            pull_errors: told.pull_errors.into_iter().collect(),
        };
        Publication {
            current: self.shown.map(shown),
            stale: self.stale,
            sent: self.sent,
            writing: self.writing,
            mirror: self.mirror.map(Box::new),
            terminal_acknowledged: self.terminal_acknowledged,
            retry: self.retry.into(),
        }
    }
}
