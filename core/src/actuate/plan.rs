//! What a running pod's containers and sandbox need now: the kubelet's computePodActions as tables over what is known
//! (kubelet-pods §2). A pure question; `carry_out` in the parent acts on the answer.

use super::{init, resize, restart};
use crate::command::{MountedVolume, Rule};
use crate::ids::{ContainerId, VolumeId};
use crate::spec::RestartPolicy;
use crate::spec::VolumeMount;
use crate::state::{ContainerKind, ContainerState, Ended, InstancePhase, PodState, SandboxPhase};
use alloc::vec::Vec;

/// The answer. Containers are named by their index in `PodState::containers`, valid for this very moment only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Every container and the sandbox is to be stopped.
    pub kill_pod: bool,
    /// ... and nothing comes after: the pod has run to its end.
    pub over: bool,
    /// Make a sandbox with this attempt number, once the former is gone.
    pub create_sandbox: Option<u32>,
    /// Init containers and sidecars to start, in the order of the spec.
    pub start_init: Vec<(usize, Rule)>,
    /// Main containers to start.
    pub start_main: Vec<(usize, Rule)>,
    /// Ephemeral containers to start.
    pub start_ephemeral: Vec<usize>,
    /// Containers to stop.
    pub stop: Vec<(usize, Rule)>,
    /// Initialization is done in the current sandbox.
    pub initialized: bool,
    /// RestartAllContainers: what is to go, in order, and whether it is killed first (case 50).
    pub reset: Vec<(ContainerId, bool)>,
}

/// What is known of a container: the rows of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// No life that counts.
    Nothing,
    /// An operation or an observation is in flight.
    InFlight,
    /// Made, not started.
    Created,
    /// Runs.
    Running,
    /// Ended, with this exit code.
    Exited(i32),
    /// The runtime lost track of it.
    Lost,
}

/// What is known of the container; for an init container only its lives in the current sandbox count (B23).
pub fn seen(pod: &PodState, container: &ContainerState) -> Seen {
    if let Some(instance) = &container.instance {
        return match instance.phase {
            InstancePhase::Creating { .. }
            | InstancePhase::Starting { .. }
            | InstancePhase::Unknown
            | InstancePhase::Discarding { .. } => Seen::InFlight,
            InstancePhase::Created => Seen::Created,
            InstancePhase::Running => Seen::Running,
            InstancePhase::Lost => Seen::Lost,
        };
    }
    let current = pod.ready_sandbox();
    let scoped = matches!(container.kind, ContainerKind::Init | ContainerKind::Sidecar);
    if scoped && container.completed_in.is_some() && container.completed_in == current {
        return Seen::Exited(0);
    }
    // Of initialization a restart of all leaves nothing (KEP-5532): it begins anew in the same sandbox.
    let begins_anew = |ended: &Ended| scoped && ended.why == Some(Rule::RestartAll);
    match &container.last {
        Some(ended) if !scoped || (Some(ended.sandbox) == current && !begins_anew(ended)) => {
            Seen::Exited(ended.exit.code)
        }
        Some(_) | None => Seen::Nothing,
    }
}

/// Computes the plan of an active pod.
pub fn compute(pod: &PodState) -> Plan {
    if let Some(source) = &pod.restarting_all {
        return reset_all(pod, source);
    }
    match sandbox_need(pod) {
        SandboxNeed::Wait => Plan { stop: removed(pod), ..Plan::default() },
        SandboxNeed::New => new_sandbox(pod),
        SandboxNeed::Good => in_sandbox(pod),
    }
}

enum SandboxNeed {
    Good,
    New,
    Wait,
}

fn sandbox_need(pod: &PodState) -> SandboxNeed {
    // Two that run: neither is trusted (kubelet-pods §2.1).
    if pod.old_sandboxes.iter().any(|s| matches!(s.phase, SandboxPhase::Ready)) {
        return SandboxNeed::New;
    }
    match &pod.sandbox {
        None => SandboxNeed::New,
        Some(sandbox) => match sandbox.phase {
            SandboxPhase::Creating { .. } | SandboxPhase::Unknown => SandboxNeed::Wait,
            SandboxPhase::Ready if sandbox.ip.is_none() && !pod.spec().host_network => SandboxNeed::New,
            SandboxPhase::Ready => SandboxNeed::Good,
            SandboxPhase::Dead
            | SandboxPhase::Stopping { .. }
            | SandboxPhase::Stopped
            | SandboxPhase::Removing { .. } => SandboxNeed::New,
        },
    }
}

/// Containers that the allocation no longer has (KEP-5972).
fn removed(pod: &PodState) -> Vec<(usize, Rule)> {
    let gone = |c: &ContainerState| c.removed.is_some() && c.instance.is_some();
    pod.containers
        .iter()
        .enumerate()
        .filter(|(_, c)| gone(c))
        .map(|(i, _)| (i, Rule::ContainerRemoved))
        .collect()
}

/// Branch B: the sandbox is not there or not usable (kubelet-pods §2.3).
fn new_sandbox(pod: &PodState) -> Plan {
    let spec = pod.spec();
    let mut plan = Plan { kill_pod: true, stop: removed(pod), ..Plan::default() };
    let has_status = |c: &ContainerState| c.instance.is_some() || c.last.is_some();
    let any_status = pod.containers.iter().any(|c| c.kind != ContainerKind::Ephemeral && has_status(c));
    let attempt = pod.next_sandbox;
    if spec.restart_policy == RestartPolicy::Never && attempt != 0 && any_status {
        plan.over = true;
        return plan;
    }
    let stays_ended = |c: &ContainerState| {
        c.instance.is_none() && c.last.as_ref().is_some_and(|e| !restart::restarts(c, spec.restart_policy, e))
    };
    let mains: Vec<usize> =
        pod.indices(ContainerKind::Main).filter(|i| !stays_ended(&pod.containers[*i])).collect();
    let ever_created = pod.indices(ContainerKind::Main).any(|i| has_status(&pod.containers[i]));
    if mains.is_empty() && ever_created {
        plan.over = true;
        return plan;
    }
    plan.create_sandbox = Some(attempt);
    let first_init = pod
        .containers
        .iter()
        .position(|c| c.removed.is_none() && matches!(c.kind, ContainerKind::Init | ContainerKind::Sidecar));
    match first_init {
        Some(first) => plan.start_init.push((first, Rule::InitNext)),
        None => plan.start_main = mains.into_iter().map(|i| (i, Rule::MainNeeded)).collect(),
    }
    plan
}

/// Branch C: the sandbox is fine (kubelet-pods §2.4).
fn in_sandbox(pod: &PodState) -> Plan {
    let mut plan = Plan { stop: removed(pod), ..Plan::default() };
    // Ephemeral containers start once, whatever else is going on, and keep nothing alive.
    plan.start_ephemeral = pod
        .indices(ContainerKind::Ephemeral)
        .filter(|i| matches!(seen(pod, &pod.containers[*i]), Seen::Nothing | Seen::Created))
        .collect();
    let scan = init::scan(pod);
    plan.start_init = scan.start;
    plan.stop.extend(scan.stop);
    plan.initialized = scan.initialized;
    if scan.failed {
        plan.start_init.clear();
        plan.kill_pod = true;
        plan.over = true;
        return plan;
    }
    if !plan.initialized {
        return plan;
    }
    let mut kept = 0;
    for i in pod.indices(ContainerKind::Main) {
        match main_row(pod, &pod.containers[i]) {
            Row::Keep => kept += 1,
            Row::Leave => {}
            Row::Start => plan.start_main.push((i, Rule::MainNeeded)),
            Row::Restart(why) => {
                plan.stop.push((i, why));
                plan.start_main.push((i, why));
            }
            Row::Stop(why) => plan.stop.push((i, why)),
        }
    }
    // A deferred start is in `start_main` and so counts as pending work: the pod is not over (kubelet-pods §7.2).
    if kept == 0 && plan.start_main.is_empty() {
        plan.start_init.clear();
        plan.kill_pod = true;
        plan.over = true;
    }
    plan
}

enum Row {
    Keep,
    Leave,
    Start,
    Restart(Rule),
    Stop(Rule),
}

/// The table of main containers; checks in this order, first match wins.
fn main_row(pod: &PodState, container: &ContainerState) -> Row {
    let policy = pod.spec().restart_policy;
    match seen(pod, container) {
        Seen::Nothing | Seen::Created => Row::Start,
        Seen::InFlight => Row::Keep,
        Seen::Lost => Row::Restart(Rule::RuntimeUnknown),
        Seen::Exited(_) => match &container.last {
            Some(ended) if restart::restarts(container, policy, ended) => Row::Start,
            Some(_) | None => Row::Leave,
        },
        Seen::Running => match running_row(pod, container) {
            RunningRow::Keep => Row::Keep,
            RunningRow::Redefined(why) => Row::Restart(why),
            RunningRow::ProbeFailed(why) if restart::restarts_after_probe(&container.spec, policy) => {
                Row::Restart(why)
            }
            RunningRow::ProbeFailed(why) => Row::Stop(why),
        },
    }
}

/// What a running container's definition, probes and resources ask for.
pub(super) enum RunningRow {
    Keep,
    /// Regardless of any restart policy.
    Redefined(Rule),
    ProbeFailed(Rule),
}

pub(super) fn running_row(pod: &PodState, container: &ContainerState) -> RunningRow {
    let Some(instance) = container.instance.as_ref().filter(|i| i.stop.is_none()) else {
        return RunningRow::Keep;
    };
    let redefined = match mount_change(pod, container) {
        // Until every new volume is ready the old container runs on, whatever else changed (D2, D3).
        MountChange::Wait => None,
        MountChange::Ready => Some(Rule::MountsChanged),
        MountChange::Same if instance.spec.image != container.spec.image => Some(Rule::DefinitionChanged),
        MountChange::Same => None,
    };
    if let Some(why) = redefined {
        return RunningRow::Redefined(why);
    }
    let results = &instance.probes.results;
    if instance.spec.liveness_probe.is_some() && results[1] == Some(false) {
        return RunningRow::ProbeFailed(Rule::LivenessFailed);
    }
    if instance.spec.startup_probe.is_some() && results[0] == Some(false) {
        return RunningRow::ProbeFailed(Rule::StartupFailed);
    }
    if resize::needs_restart(container) {
        return RunningRow::Redefined(Rule::ResizeRestart);
    }
    RunningRow::Keep
}

/// Why a container that was made and not started is to be made anew, if it is.
pub(super) fn outdated(pod: &PodState, container: &ContainerState) -> Option<Rule> {
    let instance = container.instance.as_ref()?;
    match mount_change(pod, container) {
        MountChange::Wait | MountChange::Ready => Some(Rule::MountsChanged),
        MountChange::Same if !mounts_ready(pod, container) => Some(Rule::MountsChanged),
        MountChange::Same if instance.spec.image != container.spec.image => Some(Rule::DefinitionChanged),
        MountChange::Same => None,
    }
}

enum MountChange {
    Same,
    Ready,
    Wait,
}

/// Compares the mounts that the instance was made with, by the life of each volume, with those that are allocated
/// (kubelet-volumes §6.21): a mount of another life of the same name is another mount.
fn mount_change(pod: &PodState, container: &ContainerState) -> MountChange {
    let Some(instance) = &container.instance else { return MountChange::Same };
    let lives = |lease: &VolumeId| pod.volumes.iter().any(|v| v.removed.is_none() && v.id == *lease);
    if instance.spec == container.spec && instance.leases.iter().all(lives) {
        return MountChange::Same;
    }
    let wanted = &container.spec.mounts;
    let has = |mount: &VolumeMount, life: &VolumeId| {
        instance.spec.mounts.iter().zip(&*instance.leases).any(|(m, l)| *m == *mount && *l == *life)
    };
    let same = wanted.len() == instance.leases.len()
        && wanted.iter().all(|m| pod.volume(&m.name).is_some_and(|v| has(m, &v.id)));
    if same {
        return MountChange::Same;
    }
    if mounts_ready(pod, container) || waits_for_itself(pod, container) {
        MountChange::Ready
    } else {
        MountChange::Wait
    }
}

/// Every volume that it is allocated to mount is on the host.
pub(super) fn mounts_ready(pod: &PodState, container: &ContainerState) -> bool {
    container.spec.mounts.iter().all(|m| pod.volume(&m.name).is_some_and(|v| v.is_ready()))
}

/// It waits for a volume whose name it still holds itself, or whose name is held by one that waits for it in turn: to wait
/// on would be to wait for itself (DESIGN §4 rule 4).
fn waits_for_itself(pod: &PodState, me: &ContainerState) -> bool {
    let mut reached: Vec<&ContainerState> = Vec::new();
    let mut waiting = alloc::vec![me];
    while let Some(one) = waiting.pop() {
        for holder in holders_of_former(pod, one) {
            if core::ptr::eq(holder, me) {
                return true;
            }
            // One that is stopping, or about to be, lets go by itself.
            let stuck = holder.removed.is_none()
                && holder.kind != ContainerKind::Ephemeral
                && holder.instance.as_ref().is_some_and(|i| i.stop.is_none())
                && !mounts_ready(pod, holder);
            if stuck && !reached.iter().any(|r| core::ptr::eq(*r, holder)) {
                reached.push(holder);
                waiting.push(holder);
            }
        }
    }
    false
}

/// Containers that hold a former life of a volume that this one waits for.
fn holders_of_former<'a>(
    pod: &'a PodState,
    container: &'a ContainerState,
) -> impl Iterator<Item = &'a ContainerState> {
    let waits_for = |name: &crate::ids::Name| {
        container.spec.mounts.iter().any(|m| m.name == *name)
            && pod.volume(name).is_some_and(|v| !v.is_ready())
    };
    let former: Vec<&crate::ids::VolumeId> =
        pod.volumes.iter().filter(|v| v.removed.is_some() && waits_for(&v.id.name)).map(|v| &v.id).collect();
    pod.containers
        .iter()
        .filter(move |c| c.instance.as_ref().is_some_and(|i| former.iter().any(|id| i.holds(id))))
}

/// A mount with the life of the volume that it means now.
pub(super) fn resolve(pod: &PodState, mount: &VolumeMount) -> Option<MountedVolume> {
    pod.volume(&mount.name).map(|v| MountedVolume { volume: v.id.clone(), mount: mount.clone() })
}

/// Branch A: every instance of init and main containers goes, the one whose exit asked for it last, so that the reason
/// survives a crash (kubelet-pods §2.2).
fn reset_all(pod: &PodState, source: &ContainerId) -> Plan {
    let mut plan = Plan::default();
    let mut last = Vec::new();
    for container in &pod.containers {
        if container.kind == ContainerKind::Ephemeral || container.removed.is_some() {
            continue;
        }
        if let Some(id) = container.instance_id() {
            plan.reset.push((id, true));
        }
        for dead in container.dead.iter().rev() {
            let id = container.id(dead.attempt);
            if id == *source { last.push((id, false)) } else { plan.reset.push((id, false)) }
        }
    }
    plan.reset.extend(last);
    plan
}
