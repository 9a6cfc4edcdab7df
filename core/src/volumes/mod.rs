//! Room 3: reconcile allocated and retained volumes with what is on the host (kubelet-volumes §7). Reads the allocation,
//! never desired state; the gate on teardown is here, at the decision itself, so that it holds after a restart too.

use crate::codec;
use crate::command::{Action, Rule, Subject};
use crate::context::{Context, Why, sentence};
use crate::ids::{Name, VolumeId};
use crate::node::Digest;
use crate::resources::Resources;
use crate::spec::Volume;
use crate::state::{Lifecycle, PodState, VolumePhase, VolumeState};

/// What is to be done with a volume now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing, or wait for what is in flight.
    Rest,
    /// Mount it.
    Mount,
    /// Write its newest content.
    Refresh,
    /// Take it down.
    Unmount,
    /// Nothing of it ever was on the host: forget it.
    Forget,
}

/// What the decision looks at, besides the phase.
#[derive(Debug, Clone, Copy)]
pub struct Situation {
    /// Allocated, and its pod is to run.
    pub wanted: bool,
    /// Its removal was allocated, or its pod has ended: it goes.
    pub going: bool,
    /// Some allocated container mounts it.
    pub referenced: bool,
    /// The former life of its name is not gone yet.
    pub collides: bool,
    /// Something that holds it may run, or too little is known to say (I1).
    pub held: bool,
    /// A refresh is in flight.
    pub refreshing: bool,
    /// Its content or a credential in it is out of date.
    pub outdated: bool,
}

/// The decision table.
pub fn step(phase: VolumePhase, s: Situation) -> Step {
    match (phase, s.going) {
        // One operation at a time on an instance (I4, S12). Never cancelled midway (kubelet-volumes §6.19).
        (VolumePhase::Mounting { .. } | VolumePhase::Unmounting { .. }, _) => Step::Rest,
        (VolumePhase::Pending, true) => Step::Forget,
        (VolumePhase::Mounted | VolumePhase::Failed | VolumePhase::Uncertain, true) => {
            if s.held || s.refreshing { Step::Rest } else { Step::Unmount }
        }
        // D1: an unreferenced volume is not mounted; once set up it stays until it is removed from the spec.
        // One that never came to be and that nobody mounts any more is as good as never tried. What may be there is made
        // certain.
        (VolumePhase::Pending | VolumePhase::Failed, false) if s.wanted && s.referenced && !s.collides => {
            Step::Mount
        }
        (VolumePhase::Uncertain, false) if s.wanted && !s.collides => Step::Mount,
        (VolumePhase::Pending | VolumePhase::Failed | VolumePhase::Uncertain, false) => Step::Rest,
        (VolumePhase::Mounted, false) if s.outdated && !s.refreshing => Step::Refresh,
        (VolumePhase::Mounted, false) => Step::Rest,
    }
}

/// Takes the next step of each of the pod's volumes.
pub(crate) fn reconcile(pod: &mut PodState, ctx: &mut Context<'_>) {
    if core::mem::take(&mut pod.content_changed) {
        compare_contents(pod, ctx);
    }
    if all_rest(pod) {
        return;
    }
    let mut at = 0;
    while at < pod.volumes.len() {
        let situation = situation(pod, at, ctx);
        let phase = pod.volumes[at].phase;
        let next = step(phase, situation);
        tell_collision(pod, at, situation, ctx);
        match next {
            Step::Rest => {}
            Step::Mount => mount(pod, at, ctx),
            Step::Refresh => refresh(pod, at, ctx),
            Step::Unmount => unmount(pod, at, ctx),
            Step::Forget => {
                let gone = pod.volumes.remove(at);
                pod.changed();
                pod.generation_floor = pod.generation_floor.max(gone.id.generation + 1);
                if let Some(spec) = &gone.spec {
                    pod.let_go_of(spec);
                }
                ctx.moved(pod.pod.uid, Subject::Volume(gone.id), "Pending", "");
                continue;
            }
        }
        at += 1;
    }
}

/// A pod that runs on what it has: by the table each volume rests, and there is no collision to tell of.
fn all_rest(pod: &PodState) -> bool {
    let rests = |v: &VolumeState| {
        matches!(v.phase, VolumePhase::Mounted)
            && v.removed.is_none()
            && !v.stale
            && v.upkeep.renew_at.is_none()
    };
    pod.is_active() && pod.volumes.iter().all(rests)
}

fn situation(pod: &PodState, at: usize, ctx: &mut Context<'_>) -> Situation {
    let volume = &pod.volumes[at];
    let (active, terminating, terminated) = match pod.lifecycle {
        Lifecycle::Waiting => (false, false, false),
        Lifecycle::Active => (true, false, false),
        Lifecycle::Terminating(_) => (false, true, false),
        Lifecycle::Terminated => (false, false, true),
    };
    let removed = volume.removed.is_some();
    let going = (removed && (active || terminating)) || terminated;
    let is_former = |other: &VolumeState| other.removed.is_some() && other.id.name == volume.id.name;
    // What no row of the table looks at is not found out.
    Situation {
        wanted: active && !removed,
        going,
        referenced: !going
            && matches!(volume.phase, VolumePhase::Pending | VolumePhase::Failed)
            && is_referenced(pod, &volume.id),
        collides: !removed && pod.volumes.iter().any(is_former),
        held: going && (!ctx.may_undo || pod.holds_lease(&volume.id)),
        refreshing: volume.upkeep.refreshing.is_some(),
        outdated: !removed && (active || terminating) && is_outdated(volume, ctx),
    }
}

/// Some allocated container mounts it, or an ephemeral one does.
pub(crate) fn is_referenced(pod: &PodState, id: &VolumeId) -> bool {
    pod.containers.iter().any(|c| c.removed.is_none() && c.spec.mounts.iter().any(|m| m.name == id.name))
}

/// A digest of everything its content is made from, as far as the core knows it. A known absence of an object that is
/// not optional counts as no change: what is there stays (I6).
fn content(pod: &PodState, spec: &Volume, ctx: &Context<'_>) -> Option<Digest> {
    let mut parts = alloc::vec::Vec::new();
    for source in spec.source.objects() {
        let record = ctx.objects.get(&source.object);
        match record.and_then(|r| r.version.as_ref()) {
            Some(version) => parts.push(Some(version.digest)),
            None if source.optional => parts.push(None),
            None => return None,
        }
    }
    let fields = spec.source.shows_metadata().then(|| (&pod.pod.metadata, allocated_resources(pod)));
    if parts.is_empty() && fields.is_none() {
        return None;
    }
    Some(codec::hash(&(parts, fields)))
}

/// What a `resourceFieldRef` may show: the resources as they are allocated, so that a resize is seen once it was granted.
fn allocated_resources(pod: &PodState) -> alloc::vec::Vec<(&Name, &Resources)> {
    let spec = pod.allocated.iter().flat_map(|a| a.spec.init_containers.iter().chain(&a.spec.containers));
    spec.map(|c| (&c.name, &c.resources)).collect()
}

/// Notes which mounted volumes show something else than their sources have now.
fn compare_contents(pod: &mut PodState, ctx: &Context<'_>) {
    for at in 0..pod.volumes.len() {
        let volume = &pod.volumes[at];
        let mounted = matches!(volume.phase, VolumePhase::Mounted);
        let shown = volume.content;
        let now = volume.spec.as_ref().filter(|_| mounted).and_then(|spec| content(pod, spec, ctx));
        pod.volumes[at].stale = now.is_some_and(|now| now != shown);
    }
}

fn is_outdated(volume: &VolumeState, ctx: &mut Context<'_>) -> bool {
    if !matches!(volume.phase, VolumePhase::Mounted) {
        return false;
    }
    let expiring = volume.upkeep.renew_at.is_some_and(|at| ctx.due(at, Why::CredentialRenewal));
    (volume.stale || expiring) && ctx.retry_due(&volume.upkeep.refresh_retry, Why::RefreshRetry)
}

/// KEP-6395 "rapid re-add collision": told by an event, since errorMessage speaks of the host only.
fn tell_collision(pod: &mut PodState, at: usize, s: Situation, ctx: &mut Context<'_>) {
    let volume = &mut pod.volumes[at];
    if !(s.wanted && s.collides) || volume.collision_told {
        return;
    }
    volume.collision_told = true;
    let message = sentence(format_args!(
        "CollidesWithUnmounting: volume \"{}\" waits until the former volume of that name is gone",
        volume.id.name
    ));
    ctx.tell(pod.pod.uid, true, "FailedAllocation", message, None);
}

fn mount(pod: &mut PodState, at: usize, ctx: &mut Context<'_>) {
    if !ctx.retry_due(&pod.volumes[at].retry, Why::VolumeRetry) {
        return;
    }
    let (Some(spec), Some(allocated)) = (pod.volumes[at].spec.clone(), &pod.allocated) else { return };
    let rule = if pod.volumes[at].retry.failures() > 0 { Rule::VolumeRetry } else { Rule::VolumeDesired };
    let given = content(pod, &spec, ctx).unwrap_or_default();
    let action = Action::MountVolume {
        volume: pod.volumes[at].id.clone(),
        spec: spec.arc().clone(),
        pod: pod.pod.arc().clone(),
        allocated: allocated.spec.arc().clone(),
    };
    let op = ctx.command(pod.pod.uid, rule, action);
    let volume = &mut pod.volumes[at];
    let (id, from) = (volume.id.clone(), volume.phase.label());
    volume.content = given;
    volume.phase = VolumePhase::Mounting { op };
    ctx.moved(pod.pod.uid, Subject::Volume(id), from, "Mounting");
}

fn refresh(pod: &mut PodState, at: usize, ctx: &mut Context<'_>) {
    let (Some(spec), Some(allocated)) = (pod.volumes[at].spec.clone(), &pod.allocated) else { return };
    let given = content(pod, &spec, ctx).unwrap_or_default();
    let action = Action::RefreshVolume {
        volume: pod.volumes[at].id.clone(),
        spec: spec.arc().clone(),
        pod: pod.pod.arc().clone(),
        allocated: allocated.spec.arc().clone(),
    };
    let op = ctx.command(pod.pod.uid, Rule::VolumeRefresh, action);
    let volume = &mut pod.volumes[at];
    volume.upkeep.change(|upkeep| upkeep.refreshing = Some(op));
    volume.content = given;
    volume.stale = false;
}

fn unmount(pod: &mut PodState, at: usize, ctx: &mut Context<'_>) {
    if !ctx.retry_due(&pod.volumes[at].retry, Why::VolumeRetry) {
        return;
    }
    let volume = &pod.volumes[at];
    // S1, again, where it counts.
    assert!(!pod.holds_lease(&volume.id), "S1: unmount of {} while something holds it", volume.id);
    let rule = match (&volume.spec, pod.is_terminated()) {
        (None, _) => Rule::VolumeOrphaned,
        (Some(_), true) => Rule::PodVolumesReleased,
        (Some(_), false) => Rule::VolumeRemoved,
    };
    let spec = volume.spec.as_ref().map(|s| s.arc().clone());
    let op = ctx.command(pod.pod.uid, rule, Action::UnmountVolume { volume: volume.id.clone(), spec });
    let volume = &mut pod.volumes[at];
    let (id, from) = (volume.id.clone(), volume.phase.label());
    volume.phase = VolumePhase::Unmounting { op };
    pod.changed();
    ctx.moved(pod.pod.uid, Subject::Volume(id), from, "Unmounting");
}
