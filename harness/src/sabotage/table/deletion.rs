//! Wrong about a pod's end: killed too late or never, released too early or never, begun anew while it ends.

use super::super::memory::{Memory, PodMemory};
use super::super::{Heard, Order, Saboteur, Said, Wrong};
use super::{made_again, retold, stops};
use nodefold_core::command::{Action, Command, Rule};
use nodefold_core::event::{Event, Fact};
use nodefold_core::spec::{Pod, PodSpec};
use nodefold_core::status::{ConditionKind, PodPhase};
use nodefold_core::time::Nanos;
use nodefold_model::Invariant;
use std::sync::Arc;

pub(super) static TABLE: &[Saboteur] = &[
    Saboteur {
        name: "creates-while-terminating",
        about: "Restarts a container that ends while its pod is being deleted.",
        races: &["B1", "B2"],
        breaks: Invariant::S7,
        also: &[],
        wrong: &[Wrong::Adds(creates_while_terminating)],
        story: "b13-deleted-but-never-terminal",
    },
    Saboteur {
        name: "releases-what-still-runs",
        about: "Releases a pod as soon as its deletion is asked for.",
        races: &["B13"],
        breaks: Invariant::S8,
        also: &[],
        wrong: &[Wrong::Adds(releases_what_still_runs)],
        story: "b13-deleted-but-never-terminal",
    },
    Saboteur {
        name: "releases-before-unmounting",
        about: "Releases a pod when its containers have ended, with its volumes still on the host.",
        races: &["V15", "V16"],
        breaks: Invariant::S8,
        also: &[],
        wrong: &[Wrong::Adds(releases_before_unmounting)],
        story: "b10-failed-became-succeeded",
    },
    Saboteur {
        name: "never-tells-the-end",
        about: "Publishes a deleted pod's last status with phase Running, and releases it.",
        races: &["B13"],
        breaks: Invariant::S8,
        also: &[],
        wrong: &[Wrong::Says(never_tells_the_end)],
        story: "b13-deleted-but-never-terminal",
    },
    Saboteur {
        name: "tells-the-end-too-early",
        about: "Publishes a terminal phase when deletion is asked for, while containers still run.",
        races: &["B12", "B28"],
        breaks: Invariant::S8,
        also: &[],
        wrong: &[Wrong::Says(tells_the_end_too_early)],
        story: "b13-deleted-but-never-terminal",
    },
    Saboteur {
        name: "never-releases",
        about: "Never gets round to the final delete of a pod that is over.",
        races: &["B7", "B13"],
        breaks: Invariant::L3,
        also: &[],
        wrong: &[Wrong::Says(never_releases)],
        story: "b13-deleted-but-never-terminal",
    },
    Saboteur {
        name: "overlooks-a-forced-removal",
        about: "Misses that a pod was force-deleted, and keeps it for ever.",
        races: &["B7"],
        breaks: Invariant::L3,
        also: &[Invariant::S7, Invariant::S10],
        wrong: &[Wrong::Hears(overlooks_a_forced_removal), Wrong::Says(makes_nothing_of_what_is_gone)],
        story: "static-pod-beside-api-pods",
    },
    Saboteur {
        name: "overlooks-exits-of-ending-pods",
        about: "Misses exits of a pod that is being deleted.",
        races: &["B34"],
        breaks: Invariant::L3,
        also: &[],
        wrong: &[Wrong::Hears(overlooks_exits_of_ending_pods)],
        story: "b13-deleted-but-never-terminal",
    },
    Saboteur {
        name: "ignores-a-shorter-grace",
        about: "Ignores a second delete with less grace while the first one's stop is under way.",
        races: &["B24"],
        breaks: Invariant::S15,
        also: &[],
        wrong: &[Wrong::Hears(ignores_a_shorter_grace)],
        story: "b24-shorter-grace-ignored",
    },
    Saboteur {
        name: "puts-off-the-kill",
        about: "Commands a stop again with a later deadline.",
        races: &["B24"],
        breaks: Invariant::S15,
        also: &[],
        wrong: &[Wrong::Adds(puts_off_the_kill)],
        story: "b13-deleted-but-never-terminal",
    },
    Saboteur {
        name: "never-kills",
        about: "Never stops the containers of a deleted pod.",
        races: &["B7"],
        breaks: Invariant::S15,
        also: &[],
        wrong: &[Wrong::Says(never_kills)],
        story: "b13-deleted-but-never-terminal",
    },
    Saboteur {
        name: "stops-sidecars-with-the-mains",
        about: "Stops sidecars together with the main containers that need them.",
        races: &["B20"],
        breaks: Invariant::S15,
        also: &[],
        wrong: &[Wrong::Adds(stops_sidecars_with_the_mains)],
        story: "init-sidecar-main-order",
    },
    Saboteur {
        name: "leaves-sidecars-running",
        about: "Never stops the sidecars of a deleted pod.",
        races: &["B20"],
        breaks: Invariant::S15,
        also: &[Invariant::L3],
        wrong: &[Wrong::Says(leaves_sidecars_running)],
        story: "init-sidecar-main-order",
    },
    Saboteur {
        name: "forgets-a-pod-that-comes-back",
        about: "Takes a static pod that comes back while its former life ends for old news.",
        races: &["B6"],
        breaks: Invariant::L1,
        also: &[Invariant::S6],
        wrong: &[Wrong::Hears(forgets_a_pod_that_comes_back)],
        story: "b6-static-pod-never-runs-again",
    },
];

fn creates_while_terminating(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    let Fact::ContainerExited { pod: uid, container, .. } = fact else { return Vec::new() };
    let pod = memory.pod(*uid).filter(|pod| pod.is_ending());
    pod.and_then(|pod| made_again(pod, *uid, container, Rule::MainNeeded)).into_iter().collect()
}

fn releases_what_still_runs(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    let Fact::PodApplied(applied) = fact else { return Vec::new() };
    let live = memory.pod(applied.uid).is_some_and(|pod| pod.live().next().is_some());
    if applied.deletion.is_none() || !live {
        return Vec::new();
    }
    vec![Order { pod: applied.uid, rule: Rule::PodReleased, action: Action::ReleasePod }]
}

fn releases_before_unmounting(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    let Fact::ContainerExited { pod: uid, .. } = fact else { return Vec::new() };
    let over = |pod: &PodMemory| {
        pod.is_ending() && !pod.removed && pod.live().next().is_none() && pod.on_host().next().is_some()
    };
    if !memory.pod(*uid).is_some_and(over) {
        return Vec::new();
    }
    vec![Order { pod: *uid, rule: Rule::PodReleased, action: Action::ReleasePod }]
}

fn never_tells_the_end(memory: &Memory, command: &Command) -> Said {
    if !memory.pod(command.pod).is_some_and(PodMemory::is_ending) {
        return Said::AsItIs;
    }
    retold(command, |status| {
        let terminal = status.phase.is_terminal();
        if terminal {
            status.phase = PodPhase::Running;
        }
        terminal
    })
}

fn tells_the_end_too_early(memory: &Memory, command: &Command) -> Said {
    if !memory.pod(command.pod).is_some_and(|pod| pod.is_ending() && pod.live().next().is_some()) {
        return Said::AsItIs;
    }
    retold(command, |status| {
        status.phase = PodPhase::Failed;
        for condition in &mut status.conditions {
            condition.status &=
                !matches!(condition.kind, ConditionKind::Ready | ConditionKind::ContainersReady);
        }
        true
    })
}

fn never_releases(_: &Memory, command: &Command) -> Said {
    if matches!(command.action, Action::ReleasePod) { Said::Refused } else { Said::AsItIs }
}

fn overlooks_a_forced_removal(_: &Memory, event: &Event) -> Heard {
    if matches!(event.fact, Fact::PodRemoved { .. }) { Heard::Nothing } else { Heard::AsItIs }
}

/// What is gone is not begun anew: that would be another wrong.
fn makes_nothing_of_what_is_gone(memory: &Memory, command: &Command) -> Said {
    let begins = matches!(
        command.action,
        Action::CreateSandbox { .. } | Action::CreateContainer { .. } | Action::StartContainer { .. }
    );
    if begins && memory.pod(command.pod).is_some_and(|pod| pod.removed) {
        Said::Nothing
    } else {
        Said::AsItIs
    }
}

fn overlooks_exits_of_ending_pods(memory: &Memory, event: &Event) -> Heard {
    let Fact::ContainerExited { pod, .. } = &event.fact else { return Heard::AsItIs };
    let deleted = memory.pod(*pod).is_some_and(|pod| pod.is_ending() && !pod.removed);
    if deleted { Heard::Nothing } else { Heard::AsItIs }
}

fn ignores_a_shorter_grace(memory: &Memory, event: &Event) -> Heard {
    let Fact::PodApplied(applied) = &event.fact else { return Heard::AsItIs };
    let first = memory.pod(applied.uid).and_then(|pod| pod.first_deletion);
    if applied.deletion.is_none() || first == applied.deletion {
        return Heard::AsItIs;
    }
    let changed = Pod { deletion: first, ..Pod::clone(applied) };
    Heard::Instead(vec![Fact::PodApplied(Arc::new(changed))])
}

fn puts_off_the_kill(_: &Memory, _: &Fact, commands: &[Command]) -> Vec<Order> {
    let later = |command: &Command| {
        let Action::StopContainer { container, grace } = &command.action else { return None };
        let grace = Nanos(grace.0 * 2).max(Nanos::secs(60));
        let action = Action::StopContainer { container: container.clone(), grace };
        Some(Order { pod: command.pod, rule: command.cause.rule, action })
    };
    commands.iter().filter_map(later).collect()
}

fn ends(command: &Command) -> bool {
    matches!(command.action, Action::StopContainer { .. } | Action::KillContainer { .. })
}

fn never_kills(memory: &Memory, command: &Command) -> Said {
    let deleted = memory.pod(command.pod).is_some_and(|pod| pod.is_ending() && !pod.removed);
    if ends(command) && deleted { Said::Refused } else { Said::AsItIs }
}

fn is_sidecar(pod: &PodMemory, name: &str) -> bool {
    let allocated = pod.allocated.iter().flat_map(|spec| &spec.init_containers);
    allocated.into_iter().any(|c| &*c.name == name && PodSpec::is_sidecar(c))
}

fn stops_sidecars_with_the_mains(memory: &Memory, _: &Fact, commands: &[Command]) -> Vec<Order> {
    let mut orders: Vec<Order> = Vec::new();
    for (command, id) in stops(commands).filter(|(c, _)| c.cause.rule == Rule::PodTerminating) {
        let Some(pod) = memory.pod(command.pod).filter(|pod| !is_sidecar(pod, &id.name)) else { continue };
        for (sidecar, _) in pod.running().filter(|(id, c)| !c.stopping && is_sidecar(pod, &id.name)) {
            let action = Action::StopContainer { container: sidecar.clone(), grace: Nanos::secs(30) };
            if !orders.iter().any(|order| order.action == action) {
                orders.push(Order { pod: command.pod, rule: Rule::PodTerminating, action });
            }
        }
    }
    orders
}

fn leaves_sidecars_running(memory: &Memory, command: &Command) -> Said {
    let Some(id) = command.action.container().filter(|_| ends(command)) else { return Said::AsItIs };
    let left = memory.pod(command.pod).is_some_and(|pod| pod.is_ending() && is_sidecar(pod, &id.name));
    if left { Said::Refused } else { Said::AsItIs }
}

fn forgets_a_pod_that_comes_back(memory: &Memory, event: &Event) -> Heard {
    let Fact::PodApplied(applied) = &event.fact else { return Heard::AsItIs };
    if memory.pod(applied.uid).is_some_and(|pod| pod.returned) { Heard::Nothing } else { Heard::AsItIs }
}
