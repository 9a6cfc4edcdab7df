//! Probes and postStart follow a container's life (KEP-5972 "Probe Manager"): asked for when it runs, the startup probe
//! first. Whether a probe exists is read from the definition, never from whether a result is there (B37).

use crate::command::{Action, Rule};
use crate::context::Context;
use crate::event::{Hook, ProbeKind};
use crate::state::{HookState, Instance, InstancePhase, Lifecycle, PodState};

const KINDS: [ProbeKind; 3] = [ProbeKind::Startup, ProbeKind::Liveness, ProbeKind::Readiness];

/// It runs, and has a hook to be run or probes.
fn has_any(instance: &Instance) -> bool {
    let spec = &instance.spec;
    let probed =
        spec.startup_probe.is_some() || spec.liveness_probe.is_some() || spec.readiness_probe.is_some();
    matches!(instance.phase, InstancePhase::Running)
        && (probed || matches!(instance.post_start, HookState::Due) || instance.probes.asked.contains(&true))
}

/// Asks for hooks and probes that are due, and ends those that are not wanted any more.
pub(super) fn drive(pod: &mut PodState, ctx: &mut Context<'_>) {
    let uid = pod.pod.uid;
    let ending = match pod.lifecycle {
        Lifecycle::Active => false,
        Lifecycle::Waiting | Lifecycle::Terminating(_) | Lifecycle::Terminated => true,
    };
    for container in &mut pod.containers {
        let started = container.is_started();
        let Some(instance) = container.instance.as_deref().filter(|i| has_any(i)) else { continue };
        let id = container.id(instance.attempt);
        let Some(instance) = &mut container.instance else { continue };
        if matches!(instance.post_start, HookState::Due) && instance.stop.is_none() {
            let action = Action::RunHook {
                container: id.clone(),
                hook: Hook::PostStart,
                timeout: None,
                spec: instance.spec.arc().clone(),
            };
            let op = ctx.command(uid, Rule::LifecycleHook, action);
            instance.post_start = HookState::Running { op };
        }
        let exists = [
            instance.spec.startup_probe.is_some(),
            instance.spec.liveness_probe.is_some(),
            instance.spec.readiness_probe.is_some(),
        ];
        let hook_over = matches!(instance.post_start, HookState::Done);
        // Readiness is told until the end; the other two have nothing to decide once the container goes.
        let stopping = ending || instance.stop.is_some();
        let wanted = [
            hook_over && !stopping && instance.probes.results[0] != Some(true),
            started && !stopping,
            started,
        ];
        for slot in 0..KINDS.len() {
            let asked = &mut instance.probes.asked[slot];
            let probe = KINDS[slot];
            if exists[slot] && wanted[slot] && !*asked {
                *asked = true;
                let spec = instance.spec.arc().clone();
                ctx.command(
                    uid,
                    Rule::ProbeLifetime,
                    Action::StartProbe { container: id.clone(), probe, spec },
                );
            } else if *asked && !wanted[slot] {
                *asked = false;
                ctx.command(uid, Rule::ProbeLifetime, Action::StopProbe { container: id.clone(), probe });
            }
        }
    }
}
