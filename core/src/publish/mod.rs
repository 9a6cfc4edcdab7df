//! Room 5: what people see. Status is derived from what the rooms above concluded, never read back (DESIGN §4 rule 8).

mod conditions;
mod containers;
mod digest;
pub mod mirror;
pub mod phase;
mod volumes;

use crate::actuate::start::PULL_ERROR;
use crate::command::{Action, Rule};
use crate::config::Config;
use crate::context::{Context, Why};
use crate::ids::Source;
use crate::resources::{ResourceList, ResourceName, Resources};
use crate::state::{ContainerKind, ContainerState, Lifecycle, PodState};
use crate::status::{ContainerState as State, PodPhase, PodStatus};
use crate::time::Time;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Derives the status if it may have changed and, if it differs from what was told and nobody is being told, tells the
/// API. One write at a time: what changes meanwhile is told together.
pub(crate) fn publish(pod: &mut PodState, ctx: &mut Context<'_>) {
    if matches!(pod.lifecycle, Lifecycle::Waiting) {
        return;
    }
    // While a write is in flight nothing more can be told; what changes meanwhile is derived once, for the next.
    if pod.publication.writing.is_some() {
        return;
    }
    let fresh = core::mem::take(&mut pod.publication.stale).then(|| renew(pod, ctx));
    debug_assert!(
        fresh.is_some() || is_current(&derive(pod, ctx.config, ctx.now), pod),
        "a change of {} was not noted: its status would be derived otherwise",
        pod.pod.uid
    );
    // A static pod has no object of its own but its mirror, and a force-removed one's is gone (S8).
    // What was terminal when it was first seen is not told again: how its containers ended is known only there (B28).
    let told_by_others = pod.allocated.is_none() && pod.publication.terminal_acknowledged;
    let has_reader = match pod.pod.source {
        Source::Api => !pod.object_gone && !told_by_others && pod.releasing.is_none(),
        Source::File => ctx.mirror.is_some(),
    };
    let current = pod.publication.current.as_ref().map(|shown| shown.digest);
    let told = pod.publication.sent == current && pod.publication.mirror.as_deref() == ctx.mirror.as_ref();
    if !has_reader || told {
        return;
    }
    if ctx.retry_due(&pod.publication.retry, Why::StatusRetry) {
        let status = fresh.unwrap_or_else(|| derive(pod, ctx.config, ctx.now));
        let action = Action::PublishStatus { status: Arc::new(status), mirror: ctx.mirror };
        let op = ctx.command(pod.pod.uid, Rule::StatusChanged, action);
        pod.publication.mirror = ctx.mirror.map(Box::new);
        pod.publication.writing = Some(op);
        pod.publication.sent = current;
    }
}

/// The status that was derived last is the one that would be derived now.
#[cfg(feature = "serde")]
pub(crate) fn is_as_shown(pod: &PodState, config: &Config, now: Time) -> bool {
    pod.publication.current.is_none() || is_current(&derive(pod, config, now), pod)
}

fn is_current(status: &PodStatus, pod: &PodState) -> bool {
    pod.publication.current.as_ref().is_some_and(|shown| shown.digest == digest::of(status))
}

/// Derives the status anew and remembers of it what must be.
fn renew(pod: &mut PodState, ctx: &Context<'_>) -> PodStatus {
    let status = derive(pod, ctx.config, ctx.now);
    pod.ever_ran |= status.phase == PodPhase::Running;
    let ends = status.containers.iter().chain(&status.init_containers).filter_map(|row| match &row.state {
        State::Terminated(end) => end.id.clone(),
        State::Waiting { .. } | State::Running { .. } => None,
    });
    let rows = status.containers.iter().chain(&status.init_containers).chain(&status.ephemeral_containers);
    let unpulled = rows.filter(|row| match &row.state {
        State::Waiting { reason, .. } => **reason == *PULL_ERROR,
        State::Running { .. } | State::Terminated(_) => false,
    });
    let shown = pod.publication.current.get_or_insert_default();
    shown.digest = digest::of(&status);
    shown.is_terminal = status.phase.is_terminal();
    if shown.ip != status.pod_ip {
        shown.ip = status.pod_ip.clone();
    }
    shown.conditions.clear();
    shown.conditions.extend(status.conditions.iter().map(|c| (c.kind, c.status, c.last_transition)));
    shown.ends.clear();
    shown.ends.extend(ends);
    shown.pull_errors.clear();
    shown.pull_errors.extend(unpulled.map(|row| row.name.clone()));
    status
}

/// The pod's status as its state has it.
pub(crate) fn derive(pod: &PodState, config: &Config, now: Time) -> PodStatus {
    let phase = phase::shown(pod);
    let (reason, message) = pod.end_reason.as_deref().cloned().unwrap_or_default();
    let before = pod.publication.current.as_ref();
    let ip = pod.sandbox.as_ref().and_then(|s| s.ip.clone());
    let init_containers = containers::of_kinds(pod, &[ContainerKind::Init, ContainerKind::Sidecar]);
    let containers = containers::main(pod);
    let requests = pod.allocated.as_ref().map(|a| a.requests.clone()).unwrap_or_default();
    PodStatus {
        observed_generation: pod.pod.generation,
        phase,
        reason,
        message,
        start_time: pod.start_time,
        pod_ip: ip.or_else(|| before.and_then(|b| b.ip.clone())),
        qos: pod.pod.spec.qos,
        conditions: conditions::derive(pod, phase, now),
        init_containers,
        containers,
        ephemeral_containers: containers::of_kinds(pod, &[ContainerKind::Ephemeral]),
        volumes: if config.node.gates.dynamic_volumes { volumes::derive(pod) } else { Vec::new() },
        allocated_resources: requests,
        resources: in_force(pod),
    }
}

/// What the runtime acknowledged for the pod's main containers together; what is allocated where none runs.
fn in_force(pod: &PodState) -> Resources {
    let mains = || pod.indices(ContainerKind::Main).map(|i| &pod.containers[i]);
    fn actual(container: &ContainerState) -> Option<&Resources> {
        container.instance.as_ref().map(|i| &i.resources)
    }
    match &pod.allocated {
        Some(allocated) if mains().all(|c| actual(c).is_none_or(|r| *r == c.spec.resources)) => {
            allocated.in_force.clone()
        }
        Some(_) | None => sum_in_force(mains().map(|c| actual(c).unwrap_or(&c.spec.resources))),
    }
}

/// Requests in sum, and limits of cpu and memory where every one of them has one.
pub(crate) fn sum_in_force<'a>(of: impl Iterator<Item = &'a Resources>) -> Resources {
    let mut sum = Resources::default();
    let mut unlimited = Vec::new();
    for resources in of {
        sum.requests.add(&resources.requests);
        sum.limits.add(&resources.limits);
        let bounded = [ResourceName::Cpu, ResourceName::Memory];
        unlimited.extend(bounded.into_iter().filter(|name| resources.limits.given(name).is_none()));
    }
    if sum.limits.iter().any(|(name, _)| unlimited.contains(name)) {
        let limits = sum.limits.iter().filter(|(name, _)| !unlimited.contains(name)).cloned();
        sum.limits = ResourceList::from_pairs(limits);
    }
    sum
}
