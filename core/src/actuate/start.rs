//! Starting a container: back-off, room, sandbox, volumes, image, create, start, in this order, each awaited by a
//! fact. Nothing here blocks anybody else.

use super::{full_name, plan, stop};
use crate::allocate::{charge, has_leftovers};
use crate::command::{Action, MountedVolume, Rule, Subject};
use crate::context::{Context, Why, sentence, text};
use crate::spec::PullPolicy;
use crate::state::container::crash_backoff;
use crate::state::{ContainerState, HookState, Instance, InstancePhase, PodState, Probes, Retry};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The reason of a container that waits because its image could not be pulled.
pub(crate) const PULL_ERROR: &str = "ErrImagePull";

/// The reason of a container that waits out its crashes.
const CRASH_LOOP: &str = "CrashLoopBackOff";

/// Takes the next step towards a start of the container, if one can be taken now.
pub(super) fn advance(pod: &mut PodState, i: usize, rule: Rule, ctx: &mut Context<'_>) {
    match &pod.containers[i].instance {
        Some(instance) if matches!(instance.phase, InstancePhase::Created) && instance.stop.is_none() => {
            // S2, S3: one that was made as is no longer allocated, or whose volume was lost meanwhile, never starts.
            return match plan::outdated(pod, &pod.containers[i]) {
                Some(why) => stop::begin(pod, i, why, ctx),
                None => start(pod, i, rule, ctx),
            };
        }
        Some(_) => return,
        None => {}
    }
    if pod.containers[i].pulling.is_some() || !name_is_free(pod, i) || !backoff_over(pod, i, ctx) {
        return;
    }
    if !ctx.retry_due(&pod.containers[i].start_retry, Why::StartRetry) || !has_room(pod, i) {
        return;
    }
    let Some(sandbox) = pod.ready_sandbox() else { return };
    if !names_exist(pod, i) {
        return;
    }
    if !mounts_ready(pod, i) {
        return;
    }
    if pod.containers[i].image_id.is_none() {
        return pull(pod, i, rule, ctx);
    }
    let mounts = pod.containers[i].spec.mounts.iter().filter_map(|m| plan::resolve(pod, m)).collect();
    create(pod, i, rule, sandbox, mounts, ctx);
}

/// No former incarnation of the name may still run (S6).
fn name_is_free(pod: &PodState, i: usize) -> bool {
    let me = &pod.containers[i];
    let other_lives = |c: &crate::state::ContainerState| {
        c.name == me.name && c.incarnation != me.incarnation && c.instance.is_some()
    };
    !pod.containers.iter().any(other_lives) && pod.surplus.iter().all(|s| s.id.name != me.name)
}

/// The crash back-off: a function of recorded exits (B35), told once per exit.
fn backoff_over(pod: &mut PodState, i: usize, ctx: &mut Context<'_>) -> bool {
    let timing = &ctx.config.timing;
    let container = &pod.containers[i];
    let Some(ended) = &container.last else { return true };
    let delay = crash_backoff(container.crashes, timing.crash_backoff_initial, timing.crash_backoff_max);
    if ctx.due(ended.exit.finished_at.after(delay), Why::CrashBackoff) {
        return true;
    }
    // What is said is the same until it ends again or is redefined.
    let is_said = container.start_failure.as_ref().is_some_and(|told| *told.0 == *CRASH_LOOP);
    if container.backoff_told && is_said {
        return false;
    }
    let (name, full) = (container.name.clone(), full_name(pod));
    let message = text(format_args!("back-off {delay} restarting failed container={name} pod={full}"));
    let container = &mut pod.containers[i];
    let waits = Some(Box::new((CRASH_LOOP.into(), message)));
    let is_news = container.start_failure != waits;
    container.start_failure = waits;
    if !container.backoff_told {
        container.backoff_told = true;
        let message = sentence(format_args!("Back-off restarting failed container {name} in pod {full}"));
        ctx.tell(pod.pod.uid, true, "BackOff", message, Some(name));
    }
    if is_news {
        pod.changed();
    }
    false
}

/// A start waits for the room that another container of the same pod still holds: one that was removed, or is still to
/// shrink (DESIGN §4 rule 6, S5).
fn has_room(pod: &PodState, i: usize) -> bool {
    let holds_more = has_leftovers(pod) || pod.containers.iter().any(is_to_shrink);
    let requests = &pod.containers[i].spec.resources.requests;
    !holds_more || charge::has_room(pod, requests.iter().map(|(name, amount)| (name, *amount)))
}

/// It holds more than is allocated to it.
fn is_to_shrink(container: &ContainerState) -> bool {
    let Some(instance) = &container.instance else { return false };
    let wanted = &container.spec.resources.requests;
    instance.resources.requests.iter().any(|(name, amount)| *amount > wanted.get(name))
}

/// Every mount names a volume of the pod. A wait that nothing would end is shown with its reason (L5, kubelet-volumes
/// case 57).
fn names_exist(pod: &mut PodState, i: usize) -> bool {
    let container = &pod.containers[i];
    let Some(missing) = container.spec.mounts.iter().find(|m| pod.volume(&m.name).is_none()) else {
        return true;
    };
    let message = text(format_args!(
        "cannot find volume \"{}\" to mount into container \"{}\"",
        missing.name, container.name
    ));
    let waits = Some(Box::new(("CreateContainerConfigError".into(), message)));
    if pod.containers[i].start_failure != waits {
        pod.containers[i].start_failure = waits;
        pod.changed();
    }
    false
}

/// Exactly the volumes that the container mounts are ready (DESIGN §4 rule 5). Until the pod has been initialized once,
/// every volume of its creation must be.
fn mounts_ready(pod: &PodState, i: usize) -> bool {
    (pod.initialized || creation_volumes_ready(pod)) && plan::mounts_ready(pod, &pod.containers[i])
}

/// Every allocated volume that some container mounts is on the host.
pub(super) fn creation_volumes_ready(pod: &PodState) -> bool {
    pod.volumes
        .iter()
        .filter(|v| v.removed.is_none() && crate::volumes::is_referenced(pod, &v.id))
        .all(|v| v.is_ready())
}

/// The status that was told last has the container waiting for its failed pull.
fn pull_error_is_shown(pod: &PodState, i: usize) -> bool {
    pod.publication.current.as_ref().is_some_and(|shown| shown.pull_errors.contains(&pod.containers[i].name))
}

fn pull(pod: &mut PodState, i: usize, rule: Rule, ctx: &mut Context<'_>) {
    let retry = pod.containers[i].pull_retry.clone();
    if !ctx.retry_due(&retry, Why::PullBackoff) {
        // The failure itself is shown once before the wait is.
        let is_shown = pull_error_is_shown(pod, i);
        let container = &mut pod.containers[i];
        let is_pull_error = container.start_failure.as_ref().is_some_and(|told| *told.0 == *PULL_ERROR);
        if is_pull_error && is_shown {
            let message = text(format_args!("Back-off pulling image \"{}\"", container.spec.image));
            let name = container.name.clone();
            container.start_failure = Some(Box::new(("ImagePullBackOff".into(), message.clone())));
            ctx.tell(pod.pod.uid, false, "BackOff", (&message).into(), Some(name));
            pod.changed();
        }
        return;
    }
    let container = &pod.containers[i];
    let id = container.id(container.next_attempt);
    let action = Action::PullImage {
        container: id.clone(),
        image: container.spec.image.clone(),
        policy: container.spec.pull_policy,
    };
    let op = ctx.command(pod.pod.uid, rule, action);
    // Nothing is looked for first.
    if pod.containers[i].spec.pull_policy == PullPolicy::Always {
        let message = sentence(format_args!("Pulling image \"{}\"", pod.containers[i].spec.image));
        ctx.tell(pod.pod.uid, false, "Pulling", message, Some(pod.containers[i].name.clone()));
    }
    pod.containers[i].pulling = Some(Box::new((op, pod.containers[i].spec.image.clone())));
    ctx.moved(pod.pod.uid, Subject::Container(id), "Waiting", "Pulling");
}

fn create(
    pod: &mut PodState,
    i: usize,
    rule: Rule,
    sandbox: u32,
    mounts: Vec<MountedVolume>,
    ctx: &mut Context<'_>,
) {
    let Some(allocated) = &pod.allocated else { return };
    let container = &pod.containers[i];
    let attempt = container.next_attempt;
    let id = container.id(attempt);
    // S6 and S2, again, where they count.
    assert!(container.instance.is_none(), "S6: a second instance of {id}");
    assert!(
        mounts.iter().all(|m| pod.volumes.iter().any(|v| v.id == m.volume && v.is_ready())),
        "S2: create of {id} before its volumes are ready"
    );
    let action = Action::CreateContainer {
        container: id.clone(),
        spec: container.spec.arc().clone(),
        mounts: mounts.clone(),
        sandbox,
        pod: pod.pod.arc().clone(),
        allocated: allocated.spec.arc().clone(),
    };
    let op = ctx.command(pod.pod.uid, rule, action);
    let container = &mut pod.containers[i];
    container.next_attempt += 1;
    // The lease is taken before the container can exist.
    container.instance = Some(Box::new(Instance {
        attempt,
        phase: InstancePhase::Creating { op },
        spec: container.spec.clone(),
        leases: mounts.into_iter().map(|m| m.volume).collect(),
        image_id: container.image_id.clone().unwrap_or_default(),
        sandbox,
        started_at: None,
        resources: container.spec.resources.clone(),
        resizing: None,
        resize_retry: Retry::default(),
        post_start: if container.spec.post_start { HookState::Due } else { HookState::Done },
        probes: Probes::default(),
        stop: None,
    }));
    pod.changed();
    // The next life waits until it is begun, whatever became of the one before.
    ctx.moved(pod.pod.uid, Subject::Container(id), "Waiting", "Creating");
}

fn start(pod: &mut PodState, i: usize, rule: Rule, ctx: &mut Context<'_>) {
    let container = &pod.containers[i];
    let Some(id) = container.instance_id() else { return };
    if !ctx.retry_due(&container.start_retry, Why::StartRetry) {
        return;
    }
    let op = ctx.command(pod.pod.uid, rule, Action::StartContainer { container: id.clone() });
    if let Some(instance) = &mut pod.containers[i].instance {
        instance.phase = InstancePhase::Starting { op };
    }
    ctx.moved(pod.pod.uid, Subject::Container(id), "Created", "Starting");
}
