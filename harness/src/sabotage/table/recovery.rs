//! Wrong after a restart: forgets what it knew, or trusts what it should look at.

use super::super::memory::{Memory, PodMemory};
use super::super::{Damage, Heard, Order, Saboteur, Said, Wrong};
use super::made_again;
use nodefold_core::command::{Action, Command, Rule};
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::PodUid;
use nodefold_core::spec::PodSpec;
use nodefold_model::Invariant;

pub(super) static TABLE: &[Saboteur] = &[
    Saboteur {
        name: "runs-init-again-after-a-restart",
        about: "Takes an init container for one that never ran when its agent has started anew.",
        races: &["B5", "B29"],
        breaks: Invariant::S14,
        also: &[Invariant::S7],
        wrong: &[Wrong::Adds(runs_init_again_after_a_restart)],
        story: "b29-init-runs-again-after-garbage-collection",
    },
    Saboteur {
        name: "overlooks-mounts-after-a-restart",
        about: "Overlooks a deleted pod's mounts when it looks around after a restart.",
        races: &["V3", "B16"],
        // Before it lets the pod go, its last status says that the volume is gone.
        breaks: Invariant::S13,
        also: &[Invariant::S8, Invariant::S10, Invariant::L3],
        wrong: &[Wrong::Hears(overlooks_mounts_after_a_restart)],
        story: "b10-failed-became-succeeded",
    },
    Saboteur {
        name: "forgets-probes-after-a-restart",
        about: "Does not probe what ran before its restart.",
        races: &["B18"],
        breaks: Invariant::L5,
        also: &[],
        wrong: &[Wrong::Says(forgets_probes_after_a_restart)],
        story: "b37-readiness-flaps-on-restart",
    },
    Saboteur {
        name: "skips-facts-in-recovery",
        about: "Skips exits and mounts when it folds its log after a crash.",
        races: &["B28"],
        breaks: Invariant::D1,
        also: &[],
        wrong: &[Wrong::Log(Damage::Skips(|fact| {
            matches!(fact, Fact::ContainerExited { .. } | Fact::VolumeMounted { .. })
        }))],
        story: "agent-dies-while-mounting-creating-stopping",
    },
    Saboteur {
        name: "loses-the-last-fact",
        about: "Acknowledges a fact before it is on disk, and loses it in a crash.",
        races: &[],
        breaks: Invariant::D2,
        also: &[],
        wrong: &[Wrong::Log(Damage::LosesTheLast)],
        story: "agent-dies-while-mounting-creating-stopping",
    },
    Saboteur {
        name: "repeats-the-last-fact",
        about: "Writes a fact again after a crash because its acknowledgement was lost.",
        races: &[],
        breaks: Invariant::D2,
        also: &[],
        wrong: &[Wrong::Log(Damage::RepeatsTheLast)],
        story: "agent-dies-while-mounting-creating-stopping",
    },
    Saboteur {
        name: "never-syncs",
        about: "Acknowledges facts that its journal has written and not synced, and loses them with the power.",
        races: &[],
        breaks: Invariant::D2,
        also: &[],
        wrong: &[Wrong::NeverSyncs],
        story: "b23-reboot-skips-init",
    },
    Saboteur {
        name: "retries-a-failed-sync",
        about: "Syncs its journal again when that failed, and acknowledges what the page cache has dropped.",
        races: &[],
        breaks: Invariant::D2,
        also: &[],
        wrong: &[Wrong::RetriesSyncs],
        story: "a-sync-fails",
    },
];

fn runs_init_again_after_a_restart(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    let Fact::RuntimeObserved { complete: true, .. } = fact else { return Vec::new() };
    if memory.starts < 2 {
        return Vec::new();
    }
    let again = |(uid, pod): (&PodUid, &PodMemory)| {
        let allocated = pod.allocated.as_ref().filter(|_| !pod.is_ending())?;
        let init = allocated.init_containers.iter().find(|c| !PodSpec::is_sidecar(c))?;
        let (id, done) = pod.newest(&init.name)?;
        let succeeded = done.exit.as_ref().is_some_and(|exit| exit.code == 0);
        let here = pod.sandbox == Some((done.sandbox, true));
        (succeeded && here).then(|| made_again(pod, *uid, id, Rule::InitNext)).flatten()
    };
    memory.pods.iter().filter_map(again).collect()
}

fn overlooks_mounts_after_a_restart(memory: &Memory, event: &Event) -> Heard {
    let Fact::MountsObserved { op, mounts } = &event.fact else { return Heard::AsItIs };
    if memory.starts < 2 {
        return Heard::AsItIs;
    }
    let over = |pod: &PodMemory| pod.is_ending() && !pod.removed && pod.live().next().is_none();
    let deleted = |uid| memory.pod(uid).is_some_and(over);
    let mounts = mounts.iter().filter(|seen| !deleted(seen.pod)).cloned().collect();
    Heard::Instead(vec![Fact::MountsObserved { op: *op, mounts }])
}

fn forgets_probes_after_a_restart(memory: &Memory, command: &Command) -> Said {
    let probes = matches!(command.action, Action::StartProbe { .. });
    if probes && memory.starts > 1 { Said::Nothing } else { Said::AsItIs }
}
