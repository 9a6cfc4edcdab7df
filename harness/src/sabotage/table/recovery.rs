//! Wrong after a restart: forgets what it knew, or trusts what it should look at.

use super::super::memory::Memory;
use super::super::{Damage, Heard, Said, Saboteur, Wrong};
use nodefold_core::command::{Action, Command};
use nodefold_core::event::{Event, Fact};
use nodefold_model::Invariant;

pub(super) static TABLE: &[Saboteur] = &[
    Saboteur {
        name: "begins-from-nothing",
        about: "Has no memory of its own: after a restart it knows only what it finds.",
        races: &["B5", "B29"],
        breaks: Invariant::S14,
        wrong: &[Wrong::Amnesia],
        story: "b28-exit-code-lost",
    },
    Saboteur {
        name: "overlooks-mounts-after-a-restart",
        about: "Does not look at the mount table after a restart: what it finds there does not exist.",
        races: &["V3", "B16"],
        breaks: Invariant::S8,
        wrong: &[Wrong::Hears(overlooks_mounts_after_a_restart)],
        story: "v3-mount-leaked-by-a-deletion-during-downtime",
    },
    Saboteur {
        name: "forgets-probes-after-a-restart",
        about: "Does not probe what ran before its restart.",
        races: &["B18"],
        breaks: Invariant::L5,
        wrong: &[Wrong::Says(forgets_probes_after_a_restart)],
        story: "b18-probe-knowledge-lost-on-restart",
    },
    Saboteur {
        name: "skips-facts-in-recovery",
        about: "Skips exits and mounts when it folds its log after a crash.",
        races: &["B28"],
        breaks: Invariant::D1,
        wrong: &[Wrong::Skips(|fact| {
            matches!(fact, Fact::ContainerExited { .. } | Fact::VolumeMounted { .. })
        })],
        story: "agent-dies-while-mounting-creating-stopping",
    },
    Saboteur {
        name: "disk-loses-the-last-fact",
        about: "Acknowledges a fact before it is on disk, and loses it in a crash.",
        races: &[],
        breaks: Invariant::D2,
        wrong: &[Wrong::Disk(Damage::LosesTheLast)],
        story: "agent-dies-while-mounting-creating-stopping",
    },
    Saboteur {
        name: "disk-repeats-the-last-fact",
        about: "Writes a fact again after a crash because its acknowledgement was lost.",
        races: &[],
        breaks: Invariant::D2,
        wrong: &[Wrong::Disk(Damage::RepeatsTheLast)],
        story: "agent-dies-while-mounting-creating-stopping",
    },
];

fn overlooks_mounts_after_a_restart(memory: &Memory, event: &Event) -> Heard {
    let Fact::MountsObserved { op, .. } = &event.fact else { return Heard::AsItIs };
    if memory.starts < 2 {
        return Heard::AsItIs;
    }
    Heard::Instead(vec![Fact::MountsObserved { op: *op, mounts: Vec::new() }])
}

fn forgets_probes_after_a_restart(memory: &Memory, command: &Command) -> Said {
    let probes = matches!(command.action, Action::StartProbe { .. });
    if probes && memory.starts > 1 { Said::Nothing } else { Said::AsItIs }
}
