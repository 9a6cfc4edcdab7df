//! Room 5: what people see. Status is derived from what the rooms above concluded, never read back (DESIGN §4 rule 8).

mod conditions;
mod containers;
pub mod mirror;
pub mod phase;
mod volumes;

use crate::command::{Action, Rule};
use crate::config::Config;
use crate::context::{Context, Why};
use crate::ids::Source;
use crate::resources::{ResourceList, Resources};
use crate::state::{ContainerKind, Lifecycle, PodState, Shared};
use crate::status::{PodPhase, PodStatus};
use crate::time::Time;
use alloc::sync::Arc;

/// Derives the status and, if it differs from what was told and nobody is being told, tells the API. One write at a
/// time: what changes meanwhile is told together.
pub(crate) fn publish(pod: &mut PodState, ctx: &mut Context<'_>) {
    if matches!(pod.lifecycle, Lifecycle::Waiting) {
        return;
    }
    // While a write is in flight nothing more can be told; what changes meanwhile is derived once, for the next.
    if pod.publication.writing.is_some() {
        return;
    }
    let status = derive(pod, ctx.config, ctx.now);
    pod.ever_ran |= status.phase == PodPhase::Running;
    if pod.publication.current.as_ref().is_none_or(|current| **current.arc() != status) {
        pod.publication.current = Some(Shared::new(Arc::new(status)));
    }
    // A static pod has no object of its own but its mirror, and a force-removed one's is gone (S8).
    // What was terminal when it was first seen is not told again: how its containers ended is known only there (B28).
    let told_by_others = pod.allocated.is_none() && pod.publication.terminal_acknowledged;
    let has_reader = match pod.pod.source {
        Source::Api => !pod.object_gone && !told_by_others && pod.releasing.is_none(),
        Source::File => ctx.mirror.is_some(),
    };
    let told = pod.publication.sent == pod.publication.current && pod.publication.mirror == ctx.mirror;
    if !has_reader || told {
        return;
    }
    let retry = pod.publication.retry.clone();
    let Some(current) = pod.publication.current.clone() else { return };
    if ctx.retry_due(&retry, Why::StatusRetry) {
        let action = Action::PublishStatus { status: current.arc().clone(), mirror: ctx.mirror };
        let op = ctx.command(pod.pod.uid, Rule::StatusChanged, action);
        pod.publication.mirror = ctx.mirror;
        pod.publication.writing = Some(op);
        pod.publication.sent = Some(current);
    }
}

/// The pod's status as its state has it.
pub(crate) fn derive(pod: &PodState, config: &Config, now: Time) -> PodStatus {
    let phase = phase::shown(pod);
    let (reason, message) = pod.end_reason.clone().unwrap_or_default();
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
        pod_ip: ip.or_else(|| before.and_then(|b| b.pod_ip.clone())),
        qos: pod.pod.spec.qos,
        conditions: conditions::derive(pod, phase, now),
        init_containers,
        containers,
        ephemeral_containers: containers::of_kinds(pod, &[ContainerKind::Ephemeral]),
        volumes: if config.node.gates.dynamic_volumes {
            volumes::derive(pod)
        } else {
            alloc::vec::Vec::new()
        },
        allocated_resources: requests,
        resources: in_force(pod),
    }
}

/// What the runtime acknowledged for the pod's main containers together; what is allocated where none runs.
fn in_force(pod: &PodState) -> Resources {
    let mut sum = Resources::default();
    let mut unlimited = ResourceList::default();
    for i in pod.indices(ContainerKind::Main) {
        let container = &pod.containers[i];
        let resources =
            container.instance.as_ref().map_or(&container.spec.resources, |instance| &instance.resources);
        sum.requests.add(&resources.requests);
        for (name, amount) in resources.limits.iter() {
            sum.limits.set(name.clone(), sum.limits.get(name).saturating_add(*amount));
        }
        for name in [crate::resources::ResourceName::Cpu, crate::resources::ResourceName::Memory] {
            if resources.limits.given(&name).is_none() {
                unlimited.set(name, 1);
            }
        }
    }
    let limits = sum.limits.iter().filter(|(name, _)| unlimited.given(name).is_none()).cloned();
    Resources { requests: sum.requests.clone(), limits: ResourceList::from_pairs(limits) }
}
