//! A container's part of the document.

use super::{RetryDocument, Unreadable};
use crate::command::Rule;
use crate::context::text;
use crate::event::Exit;
use crate::ids::{Name, OpId, VolumeId};
use crate::resources::Resources;
use crate::spec::Container;
use crate::state::{
    ContainerKind, ContainerState, Dead, Ended, HookState, Instance, InstancePhase, Probes, Shared, Stop,
};
use crate::time::Time;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ContainerDocument {
    pub(super) name: Name,
    incarnation: u32,
    kind: KindDocument,
    /// Where it differs from what the pod's allocation has under that name.
    definition: Option<Arc<Container>>,
    removed: Option<Time>,
    next_attempt: u32,
    instance: Option<InstanceDocument>,
    pulling: Option<(OpId, Name)>,
    image_id: Option<Name>,
    pull_retry: RetryDocument,
    start_retry: RetryDocument,
    start_failure: Option<(Name, Name)>,
    last: Option<EndedDocument>,
    previous: Option<EndedDocument>,
    end_shown: bool,
    dead: Vec<DeadDocument>,
    restarts: u32,
    crashes: u32,
    backoff_told: bool,
    completed_in: Option<u32>,
    ever_started: bool,
    usage: Option<u64>,
}

#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum KindDocument {
    Init,
    Sidecar,
    Main,
    Ephemeral,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InstanceDocument {
    attempt: u32,
    phase: PhaseDocument,
    /// Where it differs from the container's.
    definition: Option<Arc<Container>>,
    leases: Vec<VolumeId>,
    image_id: Name,
    sandbox: u32,
    started_at: Option<Time>,
    resources: Resources,
    resizing: Option<(OpId, Resources)>,
    resize_retry: RetryDocument,
    post_start: HookDocument,
    probes_asked: [bool; 3],
    probe_results: [Option<bool>; 3],
    stop: Option<StopDocument>,
}

#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum PhaseDocument {
    Creating(OpId),
    Created,
    Starting(OpId),
    Running,
    Unknown,
    Lost,
    Discarding(OpId),
}

#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum HookDocument {
    Due,
    Running(OpId),
    Done,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StopDocument {
    why: Rule,
    deadline: Time,
    pre_stop: HookDocument,
    sent: Option<(Option<OpId>, Time)>,
    kill: Option<OpId>,
    retry: RetryDocument,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EndedDocument {
    attempt: u32,
    exit: Exit,
    message: Name,
    sandbox: u32,
    why: Option<Rule>,
    /// Where it differs from the container's.
    definition: Option<Arc<Container>>,
    image_id: Name,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeadDocument {
    attempt: u32,
    sandbox: u32,
    removing: Option<OpId>,
    retry: RetryDocument,
}

impl ContainerDocument {
    /// `known` is what the pod's allocation has under the name.
    pub(super) fn of(container: &ContainerState, known: Option<&Arc<Container>>) -> ContainerDocument {
        let ContainerState {
            name,
            incarnation,
            kind,
            spec,
            removed,
            next_attempt,
            instance,
            pulling,
            image_id,
            pull_retry,
            start_retry,
            start_failure,
            last,
            previous,
            end_shown,
            dead,
            restarts,
            crashes,
            backoff_told,
            completed_in,
            ever_started,
            usage,
        } = container;
        ContainerDocument {
            name: name.clone(),
            incarnation: *incarnation,
            kind: (*kind).into(),
            definition: unless(spec, known),
            removed: *removed,
            next_attempt: *next_attempt,
            instance: instance.as_ref().map(|instance| InstanceDocument::of(instance, spec.arc())),
            pulling: pulling.as_deref().cloned(),
            image_id: image_id.clone(),
            pull_retry: pull_retry.into(),
            start_retry: start_retry.into(),
            start_failure: start_failure.as_deref().cloned(),
            last: last.as_deref().map(|ended| EndedDocument::of(ended, spec.arc())),
            previous: previous.as_deref().map(|ended| EndedDocument::of(ended, spec.arc())),
            end_shown: *end_shown,
            dead: dead.iter().map(DeadDocument::of).collect(),
            restarts: *restarts,
            crashes: *crashes,
            backoff_told: *backoff_told,
            completed_in: *completed_in,
            ever_started: *ever_started,
            usage: *usage,
        }
    }

    pub(super) fn into_state(self, known: Option<&Arc<Container>>) -> Result<ContainerState, Unreadable> {
        let Some(definition) = self.definition.as_ref().or(known).cloned() else {
            let what = text(format_args!("container {} has no definition", self.name));
            return Err(Unreadable::Contradiction(what));
        };
        let instance = self.instance.map(|told| Box::new(told.into_state(&definition)));
        let last = self.last.map(|told| Box::new(told.into_state(&definition)));
        let previous = self.previous.map(|told| Box::new(told.into_state(&definition)));
        Ok(ContainerState {
            name: self.name,
            incarnation: self.incarnation,
            kind: self.kind.into(),
            spec: Shared::new(definition),
            removed: self.removed,
            next_attempt: self.next_attempt,
            instance,
            pulling: self.pulling.map(Box::new),
            image_id: self.image_id,
            pull_retry: self.pull_retry.into(),
            start_retry: self.start_retry.into(),
            start_failure: self.start_failure.map(Box::new),
            last,
            previous,
            end_shown: self.end_shown,
            dead: self.dead.into_iter().map(DeadDocument::into_state).collect(),
            restarts: self.restarts,
            crashes: self.crashes,
            backoff_told: self.backoff_told,
            completed_in: self.completed_in,
            ever_started: self.ever_started,
            usage: self.usage,
        })
    }
}

/// The definition, unless it is the one that is known anyway.
fn unless(spec: &Shared<Container>, known: Option<&Arc<Container>>) -> Option<Arc<Container>> {
    let same = known.is_some_and(|known| Arc::ptr_eq(known, spec.arc()) || **known == **spec.arc());
    (!same).then(|| spec.arc().clone())
}

impl InstanceDocument {
    fn of(instance: &Instance, known: &Arc<Container>) -> InstanceDocument {
        let Instance {
            attempt,
            phase,
            spec,
            leases,
            image_id,
            sandbox,
            started_at,
            resources,
            resizing,
            resize_retry,
            post_start,
            probes,
            stop,
        } = instance;
        let Probes { asked, results } = probes;
        InstanceDocument {
            attempt: *attempt,
            phase: (*phase).into(),
            definition: unless(spec, Some(known)),
            leases: leases.to_vec(),
            image_id: image_id.clone(),
            sandbox: *sandbox,
            started_at: *started_at,
            resources: resources.clone(),
            resizing: resizing.as_deref().cloned(),
            resize_retry: resize_retry.into(),
            post_start: (*post_start).into(),
            probes_asked: *asked,
            probe_results: *results,
            stop: stop.as_deref().map(StopDocument::of),
        }
    }

    fn into_state(self, known: &Arc<Container>) -> Instance {
        Instance {
            attempt: self.attempt,
            phase: self.phase.into(),
            spec: Shared::new(self.definition.unwrap_or_else(|| known.clone())),
            leases: self.leases.into(),
            image_id: self.image_id,
            sandbox: self.sandbox,
            started_at: self.started_at,
            resources: self.resources,
            resizing: self.resizing.map(Box::new),
            resize_retry: self.resize_retry.into(),
            post_start: self.post_start.into(),
            probes: Probes { asked: self.probes_asked, results: self.probe_results },
            stop: self.stop.map(|told| Box::new(told.into_state())),
        }
    }
}

impl StopDocument {
    fn of(stop: &Stop) -> StopDocument {
        let Stop { why, deadline, pre_stop, sent, kill, retry } = stop;
        StopDocument {
            why: *why,
            deadline: *deadline,
            pre_stop: (*pre_stop).into(),
            sent: *sent,
            kill: *kill,
            retry: retry.into(),
        }
    }

    fn into_state(self) -> Stop {
        Stop {
            why: self.why,
            deadline: self.deadline,
            pre_stop: self.pre_stop.into(),
            sent: self.sent,
            kill: self.kill,
            retry: self.retry.into(),
        }
    }
}

impl EndedDocument {
    fn of(ended: &Ended, known: &Arc<Container>) -> EndedDocument {
        let Ended { attempt, exit, message, sandbox, why, spec, image_id } = ended;
        EndedDocument {
            attempt: *attempt,
            exit: exit.clone(),
            message: message.clone(),
            sandbox: *sandbox,
            why: *why,
            definition: unless(spec, Some(known)),
            image_id: image_id.clone(),
        }
    }

    fn into_state(self, known: &Arc<Container>) -> Ended {
        Ended {
            attempt: self.attempt,
            exit: self.exit,
            message: self.message,
            sandbox: self.sandbox,
            why: self.why,
            spec: Shared::new(self.definition.unwrap_or_else(|| known.clone())),
            image_id: self.image_id,
        }
    }
}

impl DeadDocument {
    fn of(dead: &Dead) -> DeadDocument {
        let Dead { attempt, sandbox, removing, retry } = dead;
        DeadDocument { attempt: *attempt, sandbox: *sandbox, removing: *removing, retry: retry.into() }
    }

    fn into_state(self) -> Dead {
        let DeadDocument { attempt, sandbox, removing, retry } = self;
        Dead { attempt, sandbox, removing, retry: retry.into() }
    }
}

impl From<ContainerKind> for KindDocument {
    fn from(kind: ContainerKind) -> KindDocument {
        match kind {
            ContainerKind::Init => KindDocument::Init,
            ContainerKind::Sidecar => KindDocument::Sidecar,
            ContainerKind::Main => KindDocument::Main,
            ContainerKind::Ephemeral => KindDocument::Ephemeral,
        }
    }
}

impl From<KindDocument> for ContainerKind {
    fn from(kind: KindDocument) -> ContainerKind {
        match kind {
            KindDocument::Init => ContainerKind::Init,
            KindDocument::Sidecar => ContainerKind::Sidecar,
            KindDocument::Main => ContainerKind::Main,
            KindDocument::Ephemeral => ContainerKind::Ephemeral,
        }
    }
}

impl From<InstancePhase> for PhaseDocument {
    fn from(phase: InstancePhase) -> PhaseDocument {
        match phase {
            InstancePhase::Creating { op } => PhaseDocument::Creating(op),
            InstancePhase::Created => PhaseDocument::Created,
            InstancePhase::Starting { op } => PhaseDocument::Starting(op),
            InstancePhase::Running => PhaseDocument::Running,
            InstancePhase::Unknown => PhaseDocument::Unknown,
            InstancePhase::Lost => PhaseDocument::Lost,
            InstancePhase::Discarding { op } => PhaseDocument::Discarding(op),
        }
    }
}

impl From<PhaseDocument> for InstancePhase {
    fn from(phase: PhaseDocument) -> InstancePhase {
        match phase {
            PhaseDocument::Creating(op) => InstancePhase::Creating { op },
            PhaseDocument::Created => InstancePhase::Created,
            PhaseDocument::Starting(op) => InstancePhase::Starting { op },
            PhaseDocument::Running => InstancePhase::Running,
            PhaseDocument::Unknown => InstancePhase::Unknown,
            PhaseDocument::Lost => InstancePhase::Lost,
            PhaseDocument::Discarding(op) => InstancePhase::Discarding { op },
        }
    }
}

impl From<HookState> for HookDocument {
    fn from(hook: HookState) -> HookDocument {
        match hook {
            HookState::Due => HookDocument::Due,
            HookState::Running { op } => HookDocument::Running(op),
            HookState::Done => HookDocument::Done,
        }
    }
}

impl From<HookDocument> for HookState {
    fn from(hook: HookDocument) -> HookState {
        match hook {
            HookDocument::Due => HookState::Due,
            HookDocument::Running(op) => HookState::Running { op },
            HookDocument::Done => HookState::Done,
        }
    }
}
