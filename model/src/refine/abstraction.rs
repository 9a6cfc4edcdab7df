//! The total abstraction of a pod: what the specification speaks of, and nothing else.

use crate::spec;
use crate::spec::allocation::Promise;
use crate::spec::container::Life;
use crate::spec::pod::Pod;
use crate::spec::sandbox::Sandbox;
use nodefold_core::command::Rule;
use nodefold_core::ids::{Name, VolumeId};
use nodefold_core::node::Digest;
use nodefold_core::spec::{PodSpec, RestartPolicy, VolumeMount};
use nodefold_core::state::{
    ContainerKind, ContainerState, InstancePhase, Lifecycle, PodState, SandboxPhase, Shared, Termination,
    TerminationCause, VolumePhase,
};
use std::fmt;
use std::sync::Arc;

/// A pod, abstract. The default is a pod that the node knows nothing of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodView {
    /// Its life.
    pub life: Pod,
    /// Its active deadline has passed.
    pub out_of_time: bool,
    /// It makes room for a critical pod.
    pub preempted: bool,
    /// A terminal phase was acknowledged.
    pub told: bool,
    /// Its object is gone.
    pub object_gone: bool,
    /// Which spec is allocated.
    pub allocated: Option<Digest>,
    /// That spec itself, to compare what commands carry of it.
    pub spec: Option<Shared<PodSpec>>,
    /// What is allocated is what was desired, as a whole, and the records are of it and nothing else.
    pub whole: bool,
    /// It was initialized once.
    pub once: bool,
    /// Initialization is done in the sandbox that runs.
    pub initialized: bool,
    /// Something runs that no record owns.
    pub surplus: bool,
    /// Its sandboxes by attempt.
    pub sandboxes: Vec<(u32, Sandbox)>,
    /// Additions of container names.
    pub containers: Vec<Container>,
    /// Additions of volume names.
    pub volumes: Vec<Volume>,
}

/// An addition of a container name, abstract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its name.
    pub name: Name,
    /// Which addition.
    pub incarnation: u32,
    /// Its kind.
    pub kind: ContainerKind,
    /// Whether it is allocated.
    pub promise: Promise,
    /// What it is allocated as.
    pub definition: Digest,
    /// Its life.
    pub life: Life,
    /// Which one.
    pub attempt: u32,
    /// That was told to end.
    pub doomed: bool,
    /// For a reason of its own.
    pub own_cause: bool,
    /// It never ran to an end that is final for it.
    pub may_run: bool,
    /// The volumes that its life holds.
    pub leases: Option<Arc<[VolumeId]>>,
    /// The volumes that it is allocated to mount.
    pub mounts: Mounts,
}

/// What a definition mounts, compared by the definition's digest.
#[derive(Clone, Debug)]
pub struct Mounts(Shared<nodefold_core::spec::Container>);

impl PartialEq for Mounts {
    fn eq(&self, other: &Mounts) -> bool {
        self.0 == other.0
    }
}

impl Eq for Mounts {}

impl Mounts {
    /// What that definition mounts.
    pub fn of(definition: Shared<nodefold_core::spec::Container>) -> Mounts {
        Mounts(definition)
    }
    /// It is that very definition.
    pub fn are_of(&self, definition: &Arc<nodefold_core::spec::Container>) -> bool {
        Arc::ptr_eq(self.0.arc(), definition) || **self.0.arc() == **definition
    }
    /// Each of them.
    pub fn each(&self) -> &[VolumeMount] {
        &self.0.mounts
    }
}

/// An addition of a volume name, abstract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Which life.
    pub id: VolumeId,
    /// Whether it is allocated.
    pub promise: Promise,
    /// Its life.
    pub life: spec::volume::Volume,
}

impl Default for PodView {
    fn default() -> PodView {
        PodView {
            life: Pod::Absent,
            out_of_time: false,
            preempted: false,
            told: false,
            object_gone: false,
            allocated: None,
            spec: None,
            whole: false,
            once: false,
            initialized: false,
            surplus: false,
            sandboxes: Vec::new(),
            containers: Vec::new(),
            volumes: Vec::new(),
        }
    }
}

/// Abstracts a pod. Total: every state of the core has an abstract one.
pub(super) fn of(pod: &PodState) -> PodView {
    let life = match &pod.lifecycle {
        Lifecycle::Waiting => Pod::Waiting,
        Lifecycle::Active => Pod::Active,
        Lifecycle::Terminating(_) => Pod::Terminating,
        Lifecycle::Terminated if pod.releasing.is_some() => Pod::Releasing,
        Lifecycle::Terminated => Pod::Terminated,
    };
    let sandboxes = pod.old_sandboxes.iter().chain(&pod.sandbox);
    PodView {
        life,
        out_of_time: ends_so(pod, TerminationCause::DeadlineExceeded, "DeadlineExceeded"),
        preempted: ends_so(pod, TerminationCause::Preempted, "Preempting"),
        told: pod.publication.terminal_acknowledged,
        object_gone: pod.object_gone,
        allocated: pod.allocated.as_ref().map(|a| a.spec.digest()),
        spec: pod.allocated.as_ref().map(|a| a.spec.clone()),
        whole: is_whole(pod),
        once: pod.initialized,
        initialized: pod.initialized_in.is_some() && pod.initialized_in == pod.ready_sandbox(),
        surplus: !pod.surplus.is_empty(),
        sandboxes: sandboxes.map(|s| (s.attempt, sandbox(&s.phase))).collect(),
        containers: pod.containers.iter().map(|c| container(pod, c)).collect(),
        volumes: pod
            .volumes
            .iter()
            .map(|v| Volume {
                id: v.id.clone(),
                promise: promise(v.removed.is_some()),
                life: volume(v.phase, v.upkeep.refreshing.is_some()),
            })
            .collect(),
    }
}

/// It ends for this cause; once it has ended, its status's reason tells.
fn ends_so(pod: &PodState, why: TerminationCause, reason: &str) -> bool {
    match &pod.lifecycle {
        Lifecycle::Waiting | Lifecycle::Active => false,
        Lifecycle::Terminating(Termination { cause, .. }) => *cause == why,
        Lifecycle::Terminated => pod.end_reason.as_ref().is_some_and(|told| &*told.0 == reason),
    }
}

fn promise(removed: bool) -> Promise {
    if removed { Promise::Removed } else { Promise::Kept }
}

fn volume(phase: VolumePhase, refreshing: bool) -> spec::volume::Volume {
    use spec::volume::Volume as To;
    match phase {
        VolumePhase::Pending => To::Pending,
        VolumePhase::Mounting { .. } => To::Mounting,
        VolumePhase::Mounted if refreshing => To::Refreshing,
        VolumePhase::Mounted => To::Mounted,
        VolumePhase::Failed => To::Failed,
        VolumePhase::Uncertain => To::Uncertain,
        VolumePhase::Unmounting { .. } => To::Unmounting,
    }
}

fn sandbox(phase: &SandboxPhase) -> Sandbox {
    match phase {
        SandboxPhase::Creating { .. } => Sandbox::Creating,
        SandboxPhase::Ready => Sandbox::Ready,
        SandboxPhase::Dead => Sandbox::Dead,
        SandboxPhase::Stopping { .. } => Sandbox::Stopping,
        SandboxPhase::Stopped => Sandbox::Stopped,
        SandboxPhase::Removing { .. } => Sandbox::Removing,
        SandboxPhase::Unknown => Sandbox::Unknown,
    }
}

fn container(pod: &PodState, c: &ContainerState) -> Container {
    let instance = c.instance.as_ref();
    let life = instance.map_or(Life::None, |i| match i.phase {
        InstancePhase::Creating { .. } => Life::Creating,
        InstancePhase::Created => Life::Created,
        InstancePhase::Starting { .. } => Life::Starting,
        InstancePhase::Running => Life::Running,
        InstancePhase::Unknown => Life::Unknown,
        InstancePhase::Lost => Life::Lost,
        InstancePhase::Discarding { .. } => Life::Discarding,
    });
    let stop = instance.and_then(|i| i.stop.as_ref());
    Container {
        name: c.name.clone(),
        incarnation: c.incarnation,
        kind: c.kind,
        promise: promise(c.removed.is_some()),
        definition: c.spec.digest(),
        life,
        attempt: instance.map_or(0, |i| i.attempt),
        doomed: stop.is_some(),
        own_cause: stop.is_some_and(|s| has_own_cause(pod, c, s.why)),
        may_run: may_run(pod, c),
        leases: instance.map(|i| i.leases.clone()),
        mounts: Mounts::of(c.spec.clone()),
    }
}

/// The reason that it was given to end is one of its own, and is so (S9).
fn has_own_cause(pod: &PodState, c: &ContainerState, why: Rule) -> bool {
    let Some(instance) = &c.instance else { return false };
    let meant = |mount: &VolumeMount| {
        let life = pod.volume(&mount.name).filter(|v| v.is_ready());
        life.is_some_and(|v| instance.leases.contains(&v.id)) && instance.spec.mounts.contains(mount)
    };
    let same_mounts = c.spec.mounts.len() == instance.spec.mounts.len() && c.spec.mounts.iter().all(meant);
    match why {
        Rule::ContainerRemoved => c.removed.is_some(),
        Rule::PodTerminating => matches!(pod.lifecycle, Lifecycle::Terminating(_) | Lifecycle::Terminated),
        Rule::DefinitionChanged => instance.spec.image != c.spec.image,
        Rule::MountsChanged => !same_mounts,
        Rule::ResizeRestart => instance.resources != c.spec.resources,
        Rule::LivenessFailed => instance.probes.results[1] == Some(false),
        Rule::StartupFailed => instance.probes.results[0] == Some(false),
        Rule::RuntimeUnknown => matches!(instance.phase, InstancePhase::Lost),
        Rule::SandboxGone => {
            pod.ready_sandbox().is_none_or(|attempt| attempt != instance.sandbox)
                || pod.sandbox.as_ref().is_some_and(|s| s.ip.is_none())
        }
        // What asked for it is a fact that is not kept.
        Rule::RestartAll | Rule::PostStartFailed => true,
        Rule::VolumeDesired
        | Rule::VolumeRetry
        | Rule::VolumeRefresh
        | Rule::VolumeRemoved
        | Rule::PodVolumesReleased
        | Rule::VolumeOrphaned
        | Rule::SandboxNeeded
        | Rule::SandboxObsolete
        | Rule::InitNext
        | Rule::SidecarNeeded
        | Rule::MainNeeded
        | Rule::EphemeralNeeded
        | Rule::ResizeInPlace
        | Rule::GraceExceeded
        | Rule::Surplus
        | Rule::GarbageCollected
        | Rule::ObservationNeeded
        | Rule::StatusChanged
        | Rule::PodReleased
        | Rule::LifecycleHook
        | Rule::ProbeLifetime
        | Rule::MirrorNeeded
        | Rule::MirrorObsolete
        | Rule::Told => false,
    }
}

/// Its last end, if there was one, was not final: the specification's own reading of restart policies (S14).
fn may_run(pod: &PodState, c: &ContainerState) -> bool {
    let Some(last) = &c.last else { return true };
    let policy = c.spec.restart_policy.unwrap_or(pod.spec().restart_policy);
    match c.kind {
        ContainerKind::Ephemeral => return false,
        ContainerKind::Sidecar => return true,
        ContainerKind::Init => return c.completed_in.is_none() || c.completed_in != pod.ready_sandbox(),
        ContainerKind::Main => {}
    }
    let started_anew = matches!(
        last.why,
        Some(
            Rule::DefinitionChanged
                | Rule::MountsChanged
                | Rule::ResizeRestart
                | Rule::RuntimeUnknown
                | Rule::SandboxGone
                | Rule::RestartAll
        )
    );
    let asked =
        |rule: &nodefold_core::spec::RestartRule| rule.codes.contains(&last.exit.code) != rule.negated;
    let by_rule = c.spec.restart_policy.is_some() && c.spec.restart_rules.iter().any(asked);
    started_anew
        || by_rule
        || match policy {
            RestartPolicy::Always => true,
            RestartPolicy::OnFailure => last.exit.code != 0 || last.why.is_some(),
            RestartPolicy::Never => false,
        }
}

/// The allocated spec is the desired one, and the kept records are those of its names (S4).
fn is_whole(pod: &PodState) -> bool {
    let Some(allocation) = &pod.allocated else { return true };
    let spec = allocation.spec.arc();
    if !(Arc::ptr_eq(spec, &pod.pod.spec) || **spec == *pod.pod.spec) {
        return false;
    }
    let kept_volumes = pod.volumes.iter().filter(|v| v.removed.is_none());
    let kept = pod.containers.iter().filter(|c| c.removed.is_none() && c.kind != ContainerKind::Ephemeral);
    kept_volumes.clone().count() == spec.volumes.len()
        && kept_volumes.into_iter().all(|v| spec.volume(&v.id.name).is_some())
        && kept.clone().count() == spec.containers.len() + spec.init_containers.len()
        && kept
            .into_iter()
            .all(|c| spec.containers.iter().chain(&spec.init_containers).any(|s| s.name == c.name))
}

impl fmt::Display for PodView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.life)?;
        if self.initialized {
            f.write_str(", initialized")?;
        }
        for (attempt, sandbox) in &self.sandboxes {
            write!(f, ", sandbox {attempt} {sandbox:?}")?;
        }
        for c in &self.containers {
            write!(f, ", {}#{} {:?}", c.name, c.incarnation, c.promise)?;
            if c.life.may_run() {
                write!(f, " life {} {:?}{}", c.attempt, c.life, if c.doomed { " doomed" } else { "" })?;
            }
            for lease in c.leases.iter().flat_map(|leases| leases.iter()) {
                write!(f, " holds {lease}")?;
            }
        }
        for v in &self.volumes {
            write!(f, ", volume {} {:?} {:?}", v.id, v.promise, v.life)?;
        }
        Ok(())
    }
}
