//! Wrong about containers: begun too early, twice or again, restarted for nothing, or never.

use super::super::memory::{Memory, PodMemory, Stage};
use super::super::{Heard, Order, Saboteur, Said, Wrong};
use super::{made_again, repeated, stops};
use nodefold_core::command::{Action, Command, MountedVolume, Rule};
use nodefold_core::event::{ErrorClass, Event, Fact, ProbeKind};
use nodefold_core::ids::{ContainerId, PodUid, Source};
use nodefold_core::spec::{Container, Pod, PodSpec, RestartPolicy};
use nodefold_core::time::Nanos;
use nodefold_model::Invariant;
use std::sync::Arc;

pub(super) static TABLE: &[Saboteur] = &[
    Saboteur {
        name: "starts-a-main-beside-init",
        about: "Starts a main container while an init container still runs.",
        races: &["B23"],
        breaks: Invariant::S2,
        also: &[Invariant::S8],
        wrong: &[Wrong::Adds(starts_a_main_beside_init)],
        story: "init-sidecar-main-order",
    },
    Saboteur {
        name: "runs-init-again",
        about: "Runs a finished init container again once its record is out of sight, under a live app.",
        races: &["B29"],
        breaks: Invariant::S14,
        also: &[],
        wrong: &[Wrong::Adds(runs_init_again)],
        story: "init-sidecar-main-order",
    },
    Saboteur {
        name: "runs-a-finished-container-again",
        about: "Restarts whatever has ended, whatever the pod's policy.",
        races: &["B11", "B21"],
        breaks: Invariant::S14,
        also: &[Invariant::L1],
        wrong: &[Wrong::Hears(runs_a_finished_container_again)],
        story: "b28-exit-code-lost",
    },
    Saboteur {
        name: "creates-the-next-beside-the-last",
        about: "Creates the next instance when the stop of the last is commanded, not when it has ended.",
        races: &["B27"],
        breaks: Invariant::S6,
        also: &[],
        wrong: &[Wrong::Adds(creates_the_next_beside_the_last)],
        story: "image-changed-twice-while-stopping",
    },
    Saboteur {
        name: "makes-another-when-uncertain",
        about: "Takes a create whose outcome is uncertain for one that failed, and makes another.",
        races: &["B27"],
        breaks: Invariant::S6,
        also: &[Invariant::L3, Invariant::S8],
        wrong: &[Wrong::Hears(makes_another_when_uncertain)],
        story: "every-operation-is-uncertain-twice",
    },
    Saboteur {
        name: "starts-twice",
        about: "Commands a start a second time while the first is under way.",
        races: &["V22"],
        breaks: Invariant::S12,
        also: &[],
        wrong: &[Wrong::Adds(|_, _, commands| {
            repeated(commands, |a| matches!(a, Action::StartContainer { .. }))
        })],
        story: "warm-pod",
    },
    Saboteur {
        name: "makes-the-sandbox-twice",
        about: "Commands the same sandbox a second time while the first command is under way.",
        races: &["B27"],
        breaks: Invariant::S12,
        also: &[],
        wrong: &[Wrong::Adds(|_, _, commands| {
            repeated(commands, |a| matches!(a, Action::CreateSandbox { .. }))
        })],
        story: "warm-pod",
    },
    Saboteur {
        name: "makes-a-second-sandbox",
        about: "Makes another sandbox beside the one that runs.",
        races: &["B27"],
        breaks: Invariant::S6,
        also: &[],
        wrong: &[Wrong::Adds(makes_a_second_sandbox)],
        story: "warm-pod",
    },
    Saboteur {
        name: "starts-two-static-pods-of-one-name",
        about: "Knows static pods by UID only, and starts an edited one beside its predecessor.",
        races: &["B8", "B9"],
        breaks: Invariant::S6,
        also: &[],
        wrong: &[Wrong::Hears(knows_static_pods_by_uid), Wrong::Says(carries_the_pod_as_it_is)],
        story: "b9-two-static-pods-on-one-data-directory",
    },
    Saboteur {
        name: "restarts-the-neighbours",
        about: "Restarts containers that did not change because another one of the pod did.",
        races: &["B30", "B36"],
        breaks: Invariant::S9,
        also: &[],
        wrong: &[Wrong::Adds(restarts_the_neighbours)],
        story: "sidecar-upgrade",
    },
    Saboteur {
        name: "creates-as-desired",
        about: "Restarts a container by what is desired instead of what is allocated.",
        races: &["B25"],
        breaks: Invariant::S3,
        also: &[],
        wrong: &[Wrong::Says(creates_as_desired)],
        story: "b25-infeasible-resize-through-a-restart",
    },
    Saboteur {
        name: "never-starts-what-was-created",
        about: "Has no rule for a container whose start failed: it stays Created.",
        races: &["B31"],
        breaks: Invariant::L5,
        also: &[Invariant::L2, Invariant::L3],
        wrong: &[Wrong::Hears(never_starts_what_was_created)],
        story: "runtime-errors-are-shown-and-retried",
    },
    Saboteur {
        name: "overlooks-exits",
        about: "Misses that a container has ended, and waits for it for ever.",
        races: &["B22", "B34"],
        breaks: Invariant::L5,
        also: &[],
        wrong: &[Wrong::Hears(overlooks_exits)],
        story: "b23-reboot-skips-init",
    },
    Saboteur {
        name: "never-stops-what-was-removed",
        about: "Never stops a container that was removed from its pod.",
        races: &[],
        breaks: Invariant::L2,
        also: &[Invariant::L3, Invariant::L5, Invariant::S15],
        wrong: &[Wrong::Says(never_stops_what_was_removed)],
        story: "gates-off-then-on",
    },
    Saboteur {
        name: "stops-probing-the-next-instance",
        about: "Ends a container's probes with its first instance: nobody asks those of the next.",
        races: &["B21"],
        breaks: Invariant::L5,
        also: &[],
        wrong: &[Wrong::Says(stops_probing_the_next_instance)],
        story: "b21-startup-worker-exits-in-a-never-pod",
    },
    Saboteur {
        name: "inherits-probe-results",
        about: "Counts the last instance's probe results for the next one.",
        races: &["B19", "B37"],
        breaks: Invariant::S14,
        also: &[],
        wrong: &[Wrong::Invents(inherits_probe_results)],
        story: "b19-started-inherited-by-the-next-instance",
    },
    Saboteur {
        name: "counts-an-old-exit-for-the-next-instance",
        about: "Counts the last instance's exit, heard once more, for the instance that runs now.",
        races: &["V21", "V22"],
        breaks: Invariant::S14,
        also: &[Invariant::S15, Invariant::L5],
        wrong: &[
            Wrong::Invents(counts_an_old_exit_for_the_next_instance),
            Wrong::Says(makes_none_beside_another),
        ],
        story: "b22-status-updates-dropped",
    },
    Saboteur {
        name: "attributes-an-exit-to-another",
        about: "Records an exit for another container of the pod than the one that ended.",
        races: &["V21"],
        breaks: Invariant::S14,
        // While its status waits to be written, the next instance of the one that still runs is created.
        also: &[Invariant::S6],
        wrong: &[Wrong::Hears(attributes_an_exit_to_another)],
        story: "container-restart-rules",
    },
];

/// Mounts by the newest lives of the volumes they name.
fn mounts_of(pod: &PodMemory, spec: &Container) -> Vec<MountedVolume> {
    spec.mounts
        .iter()
        .filter_map(|mount| {
            let (volume, _) = pod.newest_volume(&mount.name)?;
            Some(MountedVolume { volume: volume.clone(), mount: mount.clone() })
        })
        .collect()
}

fn starts_a_main_beside_init(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    let (Fact::ContainerStarted { pod: uid, container, .. }
    | Fact::ContainerCreated { pod: uid, container, .. }) = fact
    else {
        return Vec::new();
    };
    let order = || {
        let pod = memory.pod(*uid).filter(|pod| !pod.is_ending())?;
        let allocated = pod.allocated.clone()?;
        let runs = |c: &&Arc<Container>| {
            !PodSpec::is_sidecar(c) && pod.newest(&c.name).is_some_and(|(_, c)| c.stage == Stage::Running)
        };
        let _init = allocated.init_containers.iter().find(runs)?;
        let main = allocated.containers.first()?;
        let action = match pod.newest(&main.name) {
            None => Action::CreateContainer {
                container: ContainerId { name: main.name.clone(), incarnation: 0, attempt: 0 },
                spec: main.clone(),
                mounts: mounts_of(pod, main),
                sandbox: pod.sandbox?.0,
                pod: pod.applied.clone()?,
                allocated: allocated.clone(),
            },
            Some((id, parked))
                if parked.stage == Stage::Created && (id == container || parked.exit.is_none()) =>
            {
                Action::StartContainer { container: id.clone() }
            }
            Some(_) => return None,
        };
        Some(Order { pod: *uid, rule: Rule::MainNeeded, action })
    };
    order().into_iter().collect()
}

fn runs_init_again(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    let Fact::ContainerStarted { pod: uid, container, .. } = fact else { return Vec::new() };
    let order = || {
        let pod = memory.pod(*uid)?;
        let allocated = pod.allocated.as_ref()?;
        allocated.container(&container.name)?;
        let init = allocated.init_containers.iter().find(|c| !PodSpec::is_sidecar(c))?;
        let (id, done) = pod.newest(&init.name)?;
        let succeeded = done.exit.as_ref().is_some_and(|exit| exit.code == 0);
        let same_sandbox = pod.sandbox.is_some_and(|(attempt, _)| attempt == done.sandbox);
        (succeeded && same_sandbox).then(|| made_again(pod, *uid, id, Rule::InitNext)).flatten()
    };
    order().into_iter().collect()
}

fn runs_a_finished_container_again(_: &Memory, event: &Event) -> Heard {
    let Fact::PodApplied(pod) = &event.fact else { return Heard::AsItIs };
    let mut changed = Pod::clone(pod);
    let mut spec = PodSpec::clone(&pod.spec);
    spec.restart_policy = RestartPolicy::Always;
    changed.spec = Arc::new(spec);
    Heard::Instead(vec![Fact::PodApplied(Arc::new(changed))])
}

fn creates_the_next_beside_the_last(memory: &Memory, _: &Fact, commands: &[Command]) -> Vec<Order> {
    let mut orders = Vec::new();
    for (command, id) in stops(commands) {
        let planned = matches!(
            command.cause.rule,
            Rule::DefinitionChanged | Rule::MountsChanged | Rule::ResizeRestart | Rule::LivenessFailed
        );
        let order = || {
            let pod = memory.pod(command.pod)?;
            let applied = pod.applied.clone()?;
            let spec = applied.spec.container(&id.name)?.clone();
            let mounts = mounts_of(pod, &spec);
            let ready = mounts.iter().all(|m| {
                pod.volumes
                    .get(&m.volume)
                    .is_some_and(|v| v.stage == super::super::memory::VolumeStage::Mounted)
            });
            let container = ContainerId { attempt: id.attempt + 1, ..id.clone() };
            let (sandbox, allocated) = (pod.sandbox?.0, applied.spec.clone());
            let action =
                Action::CreateContainer { container, spec, mounts, sandbox, pod: applied, allocated };
            ready.then_some(Order { pod: command.pod, rule: Rule::MainNeeded, action })
        };
        orders.extend(order().filter(|_| planned));
    }
    orders
}

fn makes_another_when_uncertain(_: &Memory, event: &Event) -> Heard {
    let Fact::ContainerCreateFailed { op, pod, container, error } = &event.fact else { return Heard::AsItIs };
    if error.class != ErrorClass::Uncertain {
        return Heard::AsItIs;
    }
    let mut error = error.clone();
    error.class = ErrorClass::Final;
    Heard::Instead(vec![Fact::ContainerCreateFailed {
        op: *op,
        pod: *pod,
        container: container.clone(),
        error,
    }])
}

fn makes_a_second_sandbox(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    let Fact::SandboxReady { pod: uid, attempt, .. } = fact else { return Vec::new() };
    let order = || {
        let memory = memory.pod(*uid).filter(|pod| !pod.is_ending())?;
        let (pod, allocated) = (memory.applied.clone()?, memory.allocated.clone()?);
        let action = Action::CreateSandbox { attempt: attempt + 1, pod, allocated };
        Some(Order { pod: *uid, rule: Rule::SandboxNeeded, action })
    };
    order().into_iter().collect()
}

fn knows_static_pods_by_uid(_: &Memory, event: &Event) -> Heard {
    let Fact::PodApplied(pod) = &event.fact else { return Heard::AsItIs };
    match pod.source {
        Source::Api => Heard::AsItIs,
        Source::File => {
            let mut changed = Pod::clone(pod);
            changed.name = format!("{}-{}", pod.name, pod.uid).into();
            Heard::Instead(vec![Fact::PodApplied(Arc::new(changed))])
        }
    }
}

fn carries_the_pod_as_it_is(memory: &Memory, command: &Command) -> Said {
    let Some(applied) = memory.pod(command.pod).and_then(|pod| pod.applied.clone()) else {
        return Said::AsItIs;
    };
    let mut action = command.action.clone();
    if let Action::MountVolume { pod, .. }
    | Action::RefreshVolume { pod, .. }
    | Action::CreateSandbox { pod, .. }
    | Action::CreateContainer { pod, .. } = &mut action
    {
        *pod = applied;
        return Said::Instead(action);
    }
    Said::AsItIs
}

fn restarts_the_neighbours(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    let Fact::PodApplied(applied) = fact else { return Vec::new() };
    let Some(pod) = memory.pod(applied.uid).filter(|pod| !pod.is_ending()) else { return Vec::new() };
    let Some(former) = pod.former.as_ref().filter(|f| f.spec.containers != applied.spec.containers) else {
        return Vec::new();
    };
    let unchanged = pod.running().filter(|(id, container)| {
        !container.stopping
            && former.spec.container(&id.name).is_some()
            && former.spec.container(&id.name) == applied.spec.container(&id.name)
    });
    unchanged
        .map(|(id, _)| {
            let action = Action::StopContainer { container: id.clone(), grace: Nanos::secs(30) };
            Order { pod: applied.uid, rule: Rule::DefinitionChanged, action }
        })
        .collect()
}

fn creates_as_desired(memory: &Memory, command: &Command) -> Said {
    let Action::CreateContainer { container, spec, .. } = &command.action else { return Said::AsItIs };
    let applied = memory.pod(command.pod).and_then(|pod| pod.applied.as_ref());
    let Some(desired) = applied.and_then(|pod| pod.spec.container(&container.name)) else {
        return Said::AsItIs;
    };
    if desired.resources == spec.resources {
        return Said::AsItIs;
    }
    let mut action = command.action.clone();
    if let Action::CreateContainer { spec, .. } = &mut action {
        *spec = desired.clone();
    }
    Said::Instead(action)
}

fn never_starts_what_was_created(memory: &Memory, event: &Event) -> Heard {
    if matches!(event.fact, Fact::ContainerStartFailed { .. }) {
        return Heard::Nothing;
    }
    // What must end all the same is told then.
    let ending = event.fact.pod().filter(|uid| memory.pod(*uid).is_some_and(PodMemory::is_ending));
    let Some(uid) = ending else { return Heard::AsItIs };
    let swallowed =
        memory.pod(uid).into_iter().flat_map(PodMemory::live).filter_map(|(_, c)| c.start_failed.clone());
    Heard::Instead([event.fact.clone()].into_iter().chain(swallowed).collect())
}

fn overlooks_exits(memory: &Memory, event: &Event) -> Heard {
    let Fact::ContainerExited { pod, container, .. } = &event.fact else { return Heard::AsItIs };
    let asked = memory.container(*pod, container).is_none_or(|c| c.stopping);
    if asked || memory.pod(*pod).is_some_and(PodMemory::is_ending) { Heard::AsItIs } else { Heard::Nothing }
}

fn never_stops_what_was_removed(memory: &Memory, command: &Command) -> Said {
    let (Action::StopContainer { container, .. } | Action::KillContainer { container }) = &command.action
    else {
        return Said::AsItIs;
    };
    let Some(pod) = memory.pod(command.pod).filter(|pod| !pod.is_ending()) else { return Said::AsItIs };
    let wanted = pod.applied.as_ref().is_none_or(|applied| {
        let spec = &applied.spec;
        spec.init_containers.iter().chain(&spec.containers).any(|c| c.name == container.name)
    });
    if wanted { Said::AsItIs } else { Said::Refused }
}

fn stops_probing_the_next_instance(_: &Memory, command: &Command) -> Said {
    let Action::StartProbe { container, .. } = &command.action else { return Said::AsItIs };
    if container.attempt > 0 { Said::Nothing } else { Said::AsItIs }
}

fn inherits_probe_results(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Fact> {
    let Fact::ContainerStarted { pod, container, .. } = fact else { return Vec::new() };
    let Some(spec) = memory.container(*pod, container).map(|c| &c.spec).filter(|_| container.attempt > 0)
    else {
        return Vec::new();
    };
    let inherited = [
        (ProbeKind::Startup, spec.startup_probe.is_some()),
        (ProbeKind::Readiness, spec.readiness_probe.is_some()),
    ];
    let passed = |probe| Fact::ProbeResult {
        pod: *pod,
        container: container.clone(),
        probe,
        passed: true,
        message: "".into(),
    };
    inherited.into_iter().filter(|(_, exists)| *exists).map(|(probe, _)| passed(probe)).collect()
}

fn former_exit(memory: &Memory, pod: PodUid, id: &ContainerId) -> Option<Fact> {
    let former = ContainerId { attempt: id.attempt.checked_sub(1)?, ..id.clone() };
    let exit = memory.container(pod, &former)?.exit.clone()?;
    Some(Fact::ContainerExited { pod, container: id.clone(), exit })
}

fn counts_an_old_exit_for_the_next_instance(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Fact> {
    let Fact::ContainerStarted { pod, container, .. } = fact else { return Vec::new() };
    former_exit(memory, *pod, container).into_iter().collect()
}

/// No instance is made beside one that lives: that would be another wrong.
fn makes_none_beside_another(memory: &Memory, command: &Command) -> Said {
    let Action::CreateContainer { container, .. } = &command.action else { return Said::AsItIs };
    let lives = |pod: &PodMemory| pod.live().any(|(id, _)| id.name == container.name);
    if memory.pod(command.pod).is_some_and(lives) { Said::Refused } else { Said::AsItIs }
}

fn attributes_an_exit_to_another(memory: &Memory, event: &Event) -> Heard {
    let Fact::ContainerExited { pod: uid, container, exit } = &event.fact else { return Heard::AsItIs };
    let is_main =
        |pod: &PodMemory, name: &str| pod.allocated.as_ref().is_some_and(|a| a.container(name).is_some());
    let pod = memory.pod(*uid).filter(|pod| !pod.is_ending() && is_main(pod, &container.name));
    let other = pod.and_then(|pod| {
        pod.running().find(|(id, c)| *id != container && !c.stopping && is_main(pod, &id.name))
    });
    match other {
        Some((other, _)) => Heard::Instead(vec![Fact::ContainerExited {
            pod: *uid,
            container: other.clone(),
            exit: exit.clone(),
        }]),
        None => Heard::AsItIs,
    }
}
