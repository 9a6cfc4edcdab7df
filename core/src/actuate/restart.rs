//! The effective restart decision (kubelet-pods §2.5). One function for deciders and for what is shown (B22).

use crate::command::Rule;
use crate::event::Exit;
use crate::spec::{Container, RestartAction, RestartPolicy};
use crate::state::{ContainerKind, ContainerState, Ended};

/// Whether a container that ended so is started again.
pub fn restarts(container: &ContainerState, pod_policy: RestartPolicy, ended: &Ended) -> bool {
    let spec = &container.spec;
    match container.kind {
        ContainerKind::Ephemeral => return false,
        // Restarts whatever the pod's policy.
        ContainerKind::Sidecar => return true,
        ContainerKind::Init | ContainerKind::Main => {}
    }
    match ended.why {
        // Stopped to be started anew.
        Some(
            Rule::DefinitionChanged
            | Rule::MountsChanged
            | Rule::ResizeRestart
            | Rule::RuntimeUnknown
            | Rule::SandboxGone
            | Rule::RestartAll,
        ) => true,
        // A probe's kill has no exit code of the container's own: its rules are not consulted.
        Some(Rule::LivenessFailed | Rule::StartupFailed) => restarts_after_probe(spec, pod_policy),
        Some(
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
            | Rule::ContainerRemoved
            | Rule::ResizeInPlace
            | Rule::PostStartFailed
            | Rule::PodTerminating
            | Rule::GraceExceeded
            | Rule::Surplus
            | Rule::GarbageCollected
            | Rule::ObservationNeeded
            | Rule::StatusChanged
            | Rule::PodReleased
            | Rule::LifecycleHook
            | Rule::ProbeLifetime
            | Rule::Told
            | Rule::MirrorNeeded
            | Rule::MirrorObsolete,
        )
        | None => restarts_after_exit(spec, container.kind, pod_policy, &ended.exit),
    }
}

/// After a kill by a probe: anything but Never.
pub fn restarts_after_probe(spec: &Container, pod_policy: RestartPolicy) -> bool {
    match spec.restart_policy.unwrap_or(pod_policy) {
        RestartPolicy::Always | RestartPolicy::OnFailure => true,
        RestartPolicy::Never => false,
    }
}

/// It is started again although its exit alone would not have it so: the node ended it, to start it anew. An API server
/// takes an end under such a policy for good (api-side S41).
pub fn goes_on_after_a_final_end(
    container: &ContainerState,
    pod_policy: RestartPolicy,
    ended: &Ended,
) -> bool {
    restarts(container, pod_policy, ended)
        && container.kind == ContainerKind::Main
        && !restarts_after_exit(&container.spec, container.kind, pod_policy, &ended.exit)
}

fn restarts_after_exit(
    spec: &Container,
    kind: ContainerKind,
    pod_policy: RestartPolicy,
    exit: &Exit,
) -> bool {
    if kind == ContainerKind::Init && exit.code == 0 {
        return false;
    }
    match matching_rule(spec, exit.code) {
        Some(RestartAction::Restart | RestartAction::RestartAllContainers) => return true,
        None => {}
    }
    match (spec.restart_policy.unwrap_or(pod_policy), kind) {
        // A failed init container is run again under Always and OnFailure.
        (RestartPolicy::Always, _) => true,
        (RestartPolicy::OnFailure, _) => exit.code != 0,
        (RestartPolicy::Never, _) => false,
    }
}

/// The first rule that matches the exit code. Rules count only where the container has a policy of its own (KEP-5307).
fn matching_rule(spec: &Container, code: i32) -> Option<RestartAction> {
    spec.restart_policy?;
    spec.restart_rules.iter().find(|rule| rule.codes.contains(&code) != rule.negated).map(|rule| rule.action)
}

/// The exit asks for all containers to be restarted (KEP-5532).
pub fn asks_for_all(container: &ContainerState, ended: &Ended) -> bool {
    container.kind != ContainerKind::Ephemeral
        && ended.why.is_none()
        && matching_rule(&container.spec, ended.exit.code) == Some(RestartAction::RestartAllContainers)
}
