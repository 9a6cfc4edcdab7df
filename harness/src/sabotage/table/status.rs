//! Wrong about what is told: phases that go back, results that are not its own, or nothing at all.

use super::super::memory::Memory;
use super::super::{Heard, Order, Saboteur, Said, Wrong};
use super::{retold, row, rows};
use nodefold_core::command::{Action, Command};
use nodefold_core::event::{Event, Fact};
use nodefold_core::spec::{Mounts, Pod};
use nodefold_core::status::{ConditionKind, ContainerState, PodPhase, PodStatus};
use nodefold_model::Invariant;
use std::sync::Arc;

pub(super) static TABLE: &[Saboteur] = &[
    Saboteur {
        name: "resets-the-restart-count",
        about: "Begins to count restarts anew whenever it likes.",
        races: &["B5", "B28"],
        breaks: Invariant::S14,
        also: &[],
        wrong: &[Wrong::Says(resets_the_restart_count)],
        story: "b22-status-updates-dropped",
    },
    Saboteur {
        name: "loses-the-exit-code",
        about: "Removes a container's record before its end was read, and shows 137.",
        races: &["B28"],
        breaks: Invariant::S14,
        also: &[],
        wrong: &[Wrong::Says(loses_the_exit_code)],
        story: "b28-exit-code-lost",
    },
    Saboteur {
        name: "takes-no-evidence-for-success",
        about: "Shows a container of whose end nobody knows as succeeded.",
        races: &["B10"],
        breaks: Invariant::S14,
        also: &[],
        wrong: &[Wrong::Says(takes_no_evidence_for_success)],
        story: "b20-sidecar-waits-for-a-container-that-never-ran",
    },
    Saboteur {
        name: "waits-after-running",
        about: "Shows a container that has ended as one that never ran.",
        races: &["B11"],
        breaks: Invariant::S14,
        also: &[],
        wrong: &[Wrong::Says(waits_after_running)],
        story: "b12-terminal-and-ready",
    },
    Saboteur {
        name: "ready-before-it-was-asked",
        about: "Takes a probe that has not been answered yet for no probe, and shows the container ready.",
        races: &["B37"],
        breaks: Invariant::S14,
        also: &[],
        wrong: &[Wrong::Says(ready_before_it_was_asked)],
        story: "readiness-liveness-startup",
    },
    Saboteur {
        name: "pending-again",
        about: "Shows a pod that has been Running as Pending when an added container waits.",
        races: &[],
        breaks: Invariant::S10,
        also: &[],
        wrong: &[Wrong::Says(pending_again)],
        story: "b35-first-crash-free",
    },
    Saboteur {
        name: "overwrites-the-end",
        about: "Overwrites a terminal phase with an older status.",
        races: &["B2", "B10"],
        breaks: Invariant::S10,
        also: &[],
        wrong: &[Wrong::Adds(overwrites_the_end)],
        story: "b13-deleted-but-never-terminal",
    },
    Saboteur {
        name: "terminal-and-ready",
        about: "Publishes a terminal phase with the conditions of the time before.",
        races: &["B12"],
        breaks: Invariant::S10,
        also: &[],
        wrong: &[Wrong::Says(terminal_and_ready)],
        story: "b12-terminal-and-ready",
    },
    Saboteur {
        name: "lives-again-on-a-stale-report",
        about: "Shows a container running again that it showed terminated, on a late report.",
        races: &["B2", "B33"],
        breaks: Invariant::S10,
        also: &[],
        wrong: &[Wrong::Says(lives_again_on_a_stale_report)],
        story: "b22-status-updates-dropped",
    },
    Saboteur {
        name: "shows-desired-mounts",
        about: "Shows a running container with the mounts that are desired instead of those that it has.",
        races: &[],
        breaks: Invariant::S11,
        also: &[],
        wrong: &[Wrong::Says(shows_desired_mounts)],
        story: "dynamic-mount-on-a-running-container-waits-for-the-volume",
    },
    Saboteur {
        name: "swallows-a-change",
        about: "Never looks at a pod's spec again after the first time.",
        races: &["B33"],
        breaks: Invariant::L1,
        also: &[],
        wrong: &[Wrong::Hears(swallows_a_change)],
        story: "deferred-latest-spec-wins",
    },
    Saboteur {
        name: "claims-what-it-did-not-do",
        about: "Never looks at a pod's spec again and says that it has seen the newest.",
        races: &["B26"],
        breaks: Invariant::L1,
        also: &[Invariant::S4],
        wrong: &[Wrong::Hears(swallows_an_addition)],
        story: "b26-progress-cleared-on-a-stale-snapshot",
    },
    Saboteur {
        name: "never-publishes",
        about: "Drops every status update but a pod's last.",
        races: &["B22"],
        breaks: Invariant::L1,
        also: &[],
        wrong: &[Wrong::Says(never_publishes)],
        story: "b18-probe-knowledge-lost-on-restart",
    },
];

fn resets_the_restart_count(memory: &Memory, command: &Command) -> Said {
    let before = memory.pod(command.pod).and_then(|pod| pod.published.clone());
    retold(command, |status| {
        let mut changed = false;
        for told in rows(status) {
            let counted =
                before.as_ref().and_then(|s| row(s, &told.name)).is_some_and(|r| r.restart_count > 0);
            if counted && told.restart_count > 0 {
                told.restart_count = 0;
                changed = true;
            }
        }
        changed
    })
}

fn loses_the_exit_code(memory: &Memory, command: &Command) -> Said {
    let Some(pod) = memory.pod(command.pod) else { return Said::AsItIs };
    retold(command, |status| {
        let mut changed = false;
        for told in rows(status) {
            let ContainerState::Terminated(end) = &mut told.state else { continue };
            let seen = end.id.as_ref().and_then(|id| pod.containers.get(id)).and_then(|c| c.exit.as_ref());
            if seen.is_some_and(|exit| exit.code != 137) {
                end.exit_code = 137;
                end.reason = "ContainerStatusUnknown".into();
                changed = true;
            }
        }
        if changed && status.phase == PodPhase::Succeeded {
            status.phase = PodPhase::Failed;
        }
        changed
    })
}

fn takes_no_evidence_for_success(memory: &Memory, command: &Command) -> Said {
    let Some(pod) = memory.pod(command.pod) else { return Said::AsItIs };
    retold(command, |status| {
        let mut changed = false;
        for told in rows(status) {
            let ends = match &mut told.state {
                ContainerState::Terminated(end) => Some(end),
                ContainerState::Waiting { .. } | ContainerState::Running { .. } => told.last_state.as_mut(),
            };
            let Some(end) = ends else { continue };
            let seen = end.id.as_ref().and_then(|id| pod.containers.get(id)).and_then(|c| c.exit.as_ref());
            if seen.is_none() && end.exit_code == 137 {
                end.exit_code = 0;
                end.reason = "Completed".into();
                changed = true;
            }
        }
        changed
    })
}

fn waits_after_running(memory: &Memory, command: &Command) -> Said {
    let before = memory.pod(command.pod).and_then(|pod| pod.published.clone());
    retold(command, |status| {
        let mut changed = false;
        for told in rows(status) {
            let ran = before
                .as_ref()
                .and_then(|s| row(s, &told.name))
                .is_some_and(|r| matches!(r.state, ContainerState::Running { .. }));
            if ran && matches!(told.state, ContainerState::Terminated(_)) {
                told.state =
                    ContainerState::Waiting { reason: "ContainerCreating".into(), message: "".into() };
                told.last_state = None;
                told.id = None;
                changed = true;
            }
        }
        changed && !status.phase.is_terminal()
    })
}

fn ready_before_it_was_asked(memory: &Memory, command: &Command) -> Said {
    let Some(pod) = memory.pod(command.pod) else { return Said::AsItIs };
    retold(command, |status| {
        let mut changed = false;
        for told in rows(status) {
            let probed = told
                .id
                .as_ref()
                .and_then(|id| pod.containers.get(id))
                .is_some_and(|c| c.spec.readiness_probe.is_some());
            if probed && !told.ready && matches!(told.state, ContainerState::Running { .. }) {
                told.ready = true;
                changed = true;
            }
        }
        changed
    })
}

fn pending_again(memory: &Memory, command: &Command) -> Said {
    let before = memory.pod(command.pod).and_then(|pod| pod.published.clone());
    let ran = before.is_some_and(|s| s.phase == PodPhase::Running);
    retold(command, |status| {
        let waits = rows(status).any(|r| matches!(r.state, ContainerState::Waiting { .. }));
        let changes = ran && waits && status.phase == PodPhase::Running;
        if changes {
            status.phase = PodPhase::Pending;
        }
        changes
    })
}

fn overwrites_the_end(memory: &Memory, _: &Fact, commands: &[Command]) -> Vec<Order> {
    let older = |command: &Command| {
        let Action::PublishStatus { status, mirror } = &command.action else { return None };
        let before = memory.pod(command.pod)?.published.clone()?;
        (status.phase.is_terminal() && !before.phase.is_terminal()).then_some(Order {
            pod: command.pod,
            rule: command.cause.rule,
            action: Action::PublishStatus {
                status: Arc::new(PodStatus { phase: PodPhase::Running, ..PodStatus::clone(status) }),
                mirror: *mirror,
            },
        })
    };
    commands.iter().filter_map(older).collect()
}

fn terminal_and_ready(_: &Memory, command: &Command) -> Said {
    retold(command, |status| {
        let terminal = status.phase.is_terminal();
        for condition in status.conditions.iter_mut().filter(|_| terminal) {
            condition.status |=
                matches!(condition.kind, ConditionKind::Ready | ConditionKind::ContainersReady);
        }
        terminal
    })
}

fn lives_again_on_a_stale_report(memory: &Memory, command: &Command) -> Said {
    let before = memory.pod(command.pod).and_then(|pod| pod.published.clone());
    retold(command, |status| {
        if status.phase.is_terminal() {
            return false;
        }
        let mut changed = false;
        for told in rows(status) {
            let ContainerState::Terminated(end) = &told.state else { continue };
            let shown = before.as_ref().and_then(|s| row(s, &told.name)).map(|r| &r.state);
            let (Some(ContainerState::Terminated(former)), Some(id), Some(started_at)) =
                (shown, &end.id, end.started_at)
            else {
                continue;
            };
            if former.id.as_ref() == Some(id) {
                told.id = Some(id.clone());
                told.state = ContainerState::Running { started_at };
                changed = true;
            }
        }
        changed
    })
}

fn shows_desired_mounts(memory: &Memory, command: &Command) -> Said {
    let Some(applied) = memory.pod(command.pod).and_then(|pod| pod.applied.clone()) else {
        return Said::AsItIs;
    };
    retold(command, |status| {
        let mut changed = false;
        for told in &mut status.containers {
            let Some(desired) = applied.spec.container(&told.name) else { continue };
            if matches!(told.state, ContainerState::Running { .. }) && *told.mounts != *desired.mounts {
                told.mounts = Mounts::List(desired.mounts.clone().into());
                changed = true;
            }
        }
        changed
    })
}

fn swallows_a_change(memory: &Memory, event: &Event) -> Heard {
    let Fact::PodApplied(applied) = &event.fact else { return Heard::AsItIs };
    let first = memory.pod(applied.uid).and_then(|pod| pod.first.clone());
    let Some(first) = first.filter(|first| first.spec != applied.spec && applied.deletion.is_none()) else {
        return Heard::AsItIs;
    };
    let (spec, generation) = (first.spec.clone(), first.generation);
    Heard::Instead(vec![Fact::PodApplied(Arc::new(Pod { spec, generation, ..Pod::clone(applied) }))])
}

/// Only what takes nothing away: a removal that it never makes would be another wrong.
fn swallows_an_addition(memory: &Memory, event: &Event) -> Heard {
    let Fact::PodApplied(applied) = &event.fact else { return Heard::AsItIs };
    let first = memory.pod(applied.uid).and_then(|pod| pod.first.clone());
    let Some(first) = first.filter(|first| first.spec != applied.spec && applied.deletion.is_none()) else {
        return Heard::AsItIs;
    };
    let (old, new) = (&first.spec, &applied.spec);
    let adds = old.containers.iter().all(|c| new.container(&c.name).is_some())
        && old.volumes.iter().all(|v| new.volume(&v.name) == Some(v));
    if !adds {
        return Heard::AsItIs;
    }
    let spec = first.spec.clone();
    Heard::Instead(vec![Fact::PodApplied(Arc::new(Pod { spec, ..Pod::clone(applied) }))])
}

fn never_publishes(_: &Memory, command: &Command) -> Said {
    let Action::PublishStatus { status, .. } = &command.action else { return Said::AsItIs };
    if status.phase.is_terminal() { Said::AsItIs } else { Said::Pretended }
}
