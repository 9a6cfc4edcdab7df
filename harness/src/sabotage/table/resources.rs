//! Wrong about what is allocated and charged: half a transaction, more than there is, or what was refused.

use super::super::memory::Memory;
use super::super::{Heard, Order, Saboteur, Said, Wrong};
use super::truthful;
use nodefold_core::Config;
use nodefold_core::command::{Action, Command, Rule};
use nodefold_core::config::NodeFacts;
use nodefold_core::event::{Event, Exit, Fact};
use nodefold_core::resources::ResourceList;
use nodefold_core::spec::PodSpec;
use nodefold_core::status::ConditionKind;
use nodefold_model::Invariant;
use std::sync::Arc;

pub(super) static TABLE: &[Saboteur] = &[
    Saboteur {
        name: "admits-half-a-transaction",
        about: "Allocates the volumes of a new spec with the containers of the old one.",
        races: &[],
        breaks: Invariant::S4,
        also: &[],
        wrong: &[Wrong::Says(admits_half)],
        story: "atomic-transaction",
    },
    Saboteur {
        name: "counts-its-room-twice",
        about: "Admits against twice the room there is, as if half of the pods were not there.",
        races: &["B3", "B4", "B5"],
        breaks: Invariant::S5,
        also: &[],
        wrong: &[Wrong::Believes(counts_its_room_twice), Wrong::Hears(hears_twice_the_room)],
        story: "deferred-latest-spec-wins",
    },
    Saboteur {
        name: "frees-the-room-of-what-still-runs",
        about: "Frees the room of a removed container when its stop is commanded.",
        races: &["B3"],
        breaks: Invariant::S5,
        // A pod that is deleted meanwhile tells its end while that container still stops.
        also: &[Invariant::S6, Invariant::S8, Invariant::S12, Invariant::S14, Invariant::S15],
        wrong: &[Wrong::Invents(ends_when_stopped), Wrong::Says(truthful)],
        story: "replacement-waits-for-the-room-of-what-it-replaces",
    },
    Saboteur {
        name: "resizes-what-is-pending",
        about: "Resizes a running container to what is desired while that is Deferred or Infeasible.",
        races: &["B25"],
        breaks: Invariant::S3,
        also: &[Invariant::S12],
        wrong: &[Wrong::Adds(resizes_what_is_pending)],
        story: "b25-infeasible-resize-through-a-restart",
    },
    Saboteur {
        name: "takes-a-resize-for-done",
        about: "Takes a resize for done when it was only commanded, and clears its progress.",
        races: &["B26"],
        breaks: Invariant::S14,
        also: &[],
        wrong: &[Wrong::Invents(takes_a_resize_for_done)],
        story: "b26-progress-cleared-on-a-stale-snapshot",
    },
];

fn admits_half(memory: &Memory, command: &Command) -> Said {
    let Some(pod) = memory.pod(command.pod) else { return Said::AsItIs };
    let (Some(former), Some(applied)) = (&pod.former, &pod.applied) else { return Said::AsItIs };
    let both =
        former.spec.containers != applied.spec.containers && former.spec.volumes != applied.spec.volumes;
    let mut action = command.action.clone();
    let (Action::MountVolume { allocated, .. } | Action::RefreshVolume { allocated, .. }) = &mut action
    else {
        return Said::AsItIs;
    };
    if !both || *allocated != applied.spec {
        return Said::AsItIs;
    }
    let mut half = PodSpec::clone(allocated);
    half.containers = former.spec.containers.clone();
    *allocated = Arc::new(half);
    Said::Instead(action)
}

fn twice(room: &ResourceList) -> ResourceList {
    ResourceList::from_pairs(room.iter().map(|(name, amount)| (name.clone(), amount.saturating_mul(2))))
}

fn counts_its_room_twice(config: &mut Config) {
    config.node.allocatable = twice(&config.node.allocatable);
}

fn hears_twice_the_room(_: &Memory, event: &Event) -> Heard {
    let Fact::NodeChanged(node) = &event.fact else { return Heard::AsItIs };
    let node = NodeFacts { allocatable: twice(&node.allocatable), ..node.clone() };
    Heard::Instead(vec![Fact::NodeChanged(node)])
}

fn ends_when_stopped(memory: &Memory, _: &Fact, commands: &[Command]) -> Vec<Fact> {
    let mut facts = Vec::new();
    for command in commands.iter().filter(|c| c.cause.rule == Rule::ContainerRemoved) {
        if let Action::StopContainer { container, .. } = &command.action
            && memory.container(command.pod, container).is_some_and(|c| c.mounts.is_empty())
        {
            let exit = Exit {
                code: 0,
                signal: None,
                reason: "Completed".into(),
                started_at: None,
                finished_at: memory.now,
            };
            facts.push(Fact::ContainerExited { pod: command.pod, container: container.clone(), exit });
        }
    }
    facts
}

fn resizes_what_is_pending(memory: &Memory, _: &Fact, commands: &[Command]) -> Vec<Order> {
    let mut orders = Vec::new();
    for command in commands {
        let Action::PublishStatus { status, .. } = &command.action else { continue };
        if !status.conditions.iter().any(|c| c.kind == ConditionKind::PodResizePending && c.status) {
            continue;
        }
        let Some(pod) = memory.pod(command.pod) else { continue };
        let Some(applied) = pod.applied.as_ref().filter(|_| !pod.is_ending()) else { continue };
        for (id, container) in pod.running().filter(|(_, c)| !c.stopping) {
            let Some(desired) = applied.spec.container(&id.name) else { continue };
            if desired.resources != container.spec.resources {
                let (container, resources) = (id.clone(), desired.resources.clone());
                let action = Action::ResizeContainer { container, resources };
                orders.push(Order { pod: command.pod, rule: Rule::ResizeInPlace, action });
            }
        }
    }
    orders
}

fn takes_a_resize_for_done(_: &Memory, _: &Fact, commands: &[Command]) -> Vec<Fact> {
    let done = commands.iter().filter_map(|command| {
        let Action::ResizeContainer { container, .. } = &command.action else { return None };
        Some(Fact::ContainerResized { op: command.op, pod: command.pod, container: container.clone() })
    });
    done.collect()
}
