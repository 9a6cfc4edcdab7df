//! Wrong about volumes: unmounted in use, used before they are there, forgotten, or touched after they were let go.

use super::super::memory::{Memory, PodMemory, VolumeStage};
use super::super::{Heard, Order, Saboteur, Said, Wrong};
use super::{repeated, retold, stops, truthful};
use nodefold_core::command::{Action, Command, Rule};
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::{PodUid, VolumeId};
use nodefold_core::spec::{Volume, VolumeSource};
use nodefold_core::status::{ConditionKind, HostPhase};
use nodefold_model::Invariant;
use std::sync::Arc;

pub(super) static TABLE: &[Saboteur] = &[
    Saboteur {
        name: "unmounts-on-stop",
        about: "Unmounts a container's volumes when its stop is commanded, not when its end is confirmed.",
        races: &["B14", "B17"],
        breaks: Invariant::S1,
        also: &[],
        wrong: &[Wrong::Adds(unmounts_on_stop)],
        story: "secret-scrub",
    },
    Saboteur {
        name: "unmounts-when-the-object-is-gone",
        about: "Takes the disappearance of a pod's object for the end of its containers.",
        races: &["B15", "V25"],
        breaks: Invariant::S1,
        also: &[Invariant::S12],
        wrong: &[Wrong::Adds(unmounts_when_the_object_is_gone)],
        story: "b15-v25-grace-0-delete-unmounts-under-running-containers",
    },
    Saboteur {
        name: "unmounts-before-the-runtime-is-listed",
        about: "After a restart, unmounts what nobody has asked for yet, before it knows what runs.",
        races: &["V1", "V2"],
        breaks: Invariant::S1,
        also: &[],
        wrong: &[Wrong::Adds(unmounts_before_the_runtime_is_listed)],
        story: "v1-unmounted-in-the-stop-hook-after-a-restart",
    },
    Saboteur {
        name: "unmounts-on-a-partial-list",
        about: "Takes what a partial list of the runtime lacks for ended, and unmounts its volumes.",
        races: &["B1", "V2"],
        breaks: Invariant::S1,
        also: &[Invariant::S2, Invariant::S12],
        wrong: &[Wrong::Adds(unmounts_on_a_partial_list)],
        story: "",
    },
    Saboteur {
        name: "tears-down-on-a-failed-refresh",
        about: "Answers a failed refresh of a live volume by taking the volume down.",
        races: &["V31", "V32"],
        breaks: Invariant::S1,
        also: &[Invariant::S2, Invariant::S12],
        wrong: &[Wrong::Adds(tears_down_on_a_failed_refresh)],
        story: "v31-failed-refresh-empties-a-live-volume",
    },
    Saboteur {
        name: "unmounts-while-mounting",
        about: "Lets go of a volume of a deleted pod while its mount is still under way.",
        races: &["V11", "V16"],
        breaks: Invariant::S12,
        also: &[Invariant::S1],
        wrong: &[Wrong::Adds(unmounts_while_mounting)],
        story: "v11-deleted-while-the-mount-is-in-flight",
    },
    Saboteur {
        name: "unmounts-twice",
        about: "Commands an unmount a second time from a stale picture, while the first is under way.",
        races: &["V19", "V20"],
        breaks: Invariant::S12,
        also: &[],
        wrong: &[Wrong::Adds(|_, _, commands| {
            repeated(commands, |a| matches!(a, Action::UnmountVolume { .. }))
        })],
        story: "v20-second-unmount-from-a-stale-snapshot",
    },
    Saboteur {
        name: "takes-a-mount-for-done",
        about: "Takes a mount for done when it was only commanded.",
        races: &["V18", "V26"],
        breaks: Invariant::S2,
        also: &[Invariant::S10],
        wrong: &[
            Wrong::Invents(takes_a_mount_for_done),
            Wrong::Says(truthful),
            Wrong::Says(leaves_mounts_alone),
        ],
        story: "slow-mount",
    },
    Saboteur {
        name: "takes-a-failed-mount-for-success",
        about: "Reads the answer of a failed mount as its success.",
        races: &["V14", "V33"],
        breaks: Invariant::S2,
        also: &[],
        wrong: &[Wrong::Hears(takes_a_failed_mount_for_success), Wrong::Says(truthful)],
        story: "missing-secret",
    },
    Saboteur {
        name: "believes-mounts-after-a-reboot",
        about: "Believes after a reboot that what was mounted before still is.",
        races: &["V7"],
        breaks: Invariant::S2,
        also: &[Invariant::S10],
        wrong: &[Wrong::Hears(believes_mounts_after_a_reboot)],
        story: "v7-believed-mounted-after-a-reboot",
    },
    Saboteur {
        name: "takes-a-failed-unmount-for-done",
        about: "Reads the answer of a failed unmount as its success, in a pod that stays.",
        races: &["V9", "V24"],
        breaks: Invariant::S13,
        also: &[Invariant::S6, Invariant::L3],
        wrong: &[Wrong::Hears(takes_a_failed_unmount_for_done)],
        story: "v9-failed-unmount-treated-as-an-answer",
    },
    Saboteur {
        name: "leaves-a-secret-behind",
        about: "Says that a removed secret volume is gone and leaves it on the host.",
        races: &["B16"],
        breaks: Invariant::S13,
        // Its name is mounted again while the former life of it is still there.
        also: &[Invariant::S6, Invariant::S8],
        wrong: &[Wrong::Says(leaves_a_secret_behind)],
        story: "secret-scrub",
    },
    Saboteur {
        name: "leaks-a-removed-volume",
        about: "Never gets round to unmounting a volume that was removed from a pod.",
        races: &["V3", "V10"],
        breaks: Invariant::L2,
        also: &[],
        wrong: &[Wrong::Says(leaks_a_removed_volume)],
        story: "secret-scrub",
    },
    Saboteur {
        name: "forgets-an-uncertain-mount",
        about: "Takes a mount that was never confirmed for one that never happened, and lets its pod go.",
        races: &["V6", "V12"],
        // Before it lets the pod go, its last status says that the volume is gone.
        breaks: Invariant::S13,
        also: &[Invariant::S7, Invariant::S8, Invariant::L3],
        wrong: &[Wrong::Says(forgets_an_uncertain_mount)],
        story: "v12-mount-that-timed-out-and-was-done",
    },
    Saboteur {
        name: "mounts-over-the-former-life",
        about: "Mounts a volume of the same name while the former one is still being unmounted.",
        races: &[],
        breaks: Invariant::S6,
        // Its mount carries the new spec as allocated, which there may be no room for.
        also: &[Invariant::S5],
        wrong: &[Wrong::Adds(mounts_over_the_former_life)],
        story: "same-name-other-source-collides",
    },
    Saboteur {
        name: "refreshes-what-was-removed",
        about: "Refreshes a volume whose removal was allocated.",
        races: &["V29"],
        breaks: Invariant::S3,
        also: &[],
        wrong: &[Wrong::Adds(refreshes_what_was_removed)],
        story: "secret-scrub",
    },
    Saboteur {
        name: "mounts-what-is-only-desired",
        about: "Mounts a volume that is desired and not allocated.",
        races: &["B25"],
        breaks: Invariant::S3,
        also: &[],
        wrong: &[Wrong::Adds(mounts_what_is_only_desired)],
        story: "deferred-then-withdrawn",
    },
    Saboteur {
        name: "remounts-while-terminating",
        about: "Mounts a terminating pod's volume again right after it was unmounted.",
        races: &["V27", "V28"],
        breaks: Invariant::S10,
        also: &[],
        wrong: &[Wrong::Adds(remounts_while_terminating)],
        story: "v28-remounted-while-terminating",
    },
    Saboteur {
        name: "shows-mounted-too-early",
        about: "Publishes HostMounted for a volume that is still Pending.",
        races: &["V14"],
        breaks: Invariant::S10,
        also: &[],
        wrong: &[Wrong::Says(shows_mounted_too_early)],
        story: "slow-mount",
    },
];

fn unmount(pod: PodUid, volume: &VolumeId, memory: &PodMemory, rule: Rule) -> Order {
    let spec = memory.volumes.get(volume).and_then(|v| v.spec.clone());
    Order { pod, rule, action: Action::UnmountVolume { volume: volume.clone(), spec } }
}

fn unmounts_on_stop(memory: &Memory, _: &Fact, commands: &[Command]) -> Vec<Order> {
    let mut orders = Vec::new();
    for (command, id) in stops(commands) {
        let Some(pod) = memory.pod(command.pod) else { continue };
        for mount in pod.containers.get(id).into_iter().flat_map(|c| &c.mounts) {
            orders.push(unmount(command.pod, &mount.volume, pod, Rule::VolumeRemoved));
        }
    }
    orders
}

fn unmounts_when_the_object_is_gone(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    let Fact::PodRemoved { pod: uid } = fact else { return Vec::new() };
    let Some(pod) = memory.pod(*uid).filter(|pod| pod.live().next().is_some()) else { return Vec::new() };
    pod.on_host().map(|(id, _)| unmount(*uid, id, pod, Rule::PodVolumesReleased)).collect()
}

fn unmounts_before_the_runtime_is_listed(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    if !matches!(fact, Fact::AgentStarted { .. }) {
        return Vec::new();
    }
    let mut orders = Vec::new();
    for (uid, pod) in memory.pods.iter().filter(|(_, pod)| pod.is_ending()) {
        orders.extend(pod.on_host().map(|(id, _)| unmount(*uid, id, pod, Rule::PodVolumesReleased)));
    }
    orders
}

fn unmounts_on_a_partial_list(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    let Fact::RuntimeObserved { complete: false, containers, .. } = fact else { return Vec::new() };
    let mut orders = Vec::new();
    for (uid, pod) in &memory.pods {
        let absent =
            pod.live().filter(|(id, _)| !containers.iter().any(|c| c.pod == *uid && c.container == **id));
        let mounts = absent.flat_map(|(_, container)| &container.mounts);
        orders.extend(mounts.map(|m| unmount(*uid, &m.volume, pod, Rule::VolumeOrphaned)));
    }
    orders
}

fn tears_down_on_a_failed_refresh(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    let Fact::VolumeRefreshFailed { pod: uid, volume, .. } = fact else { return Vec::new() };
    memory.pod(*uid).map(|pod| unmount(*uid, volume, pod, Rule::VolumeRefresh)).into_iter().collect()
}

fn unmounts_while_mounting(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    let deleted = matches!(fact, Fact::PodApplied(applied) if applied.deletion.is_some());
    let ends = deleted || matches!(fact, Fact::PodRemoved { .. });
    let Some(uid) = fact.pod().filter(|_| ends) else { return Vec::new() };
    let Some(pod) = memory.pod(uid) else { return Vec::new() };
    let mounting = pod.on_host().filter(|(_, v)| v.stage == VolumeStage::Mounting);
    mounting.map(|(id, _)| unmount(uid, id, pod, Rule::PodVolumesReleased)).collect()
}

fn takes_a_mount_for_done(_: &Memory, _: &Fact, commands: &[Command]) -> Vec<Fact> {
    commands
        .iter()
        .filter_map(|command| {
            let Action::MountVolume { volume, .. } = &command.action else { return None };
            Some(mounted(command.op, command.pod, volume))
        })
        .collect()
}

fn mounted(op: nodefold_core::ids::OpId, pod: PodUid, volume: &VolumeId) -> Fact {
    Fact::VolumeMounted { op, pod, volume: volume.clone(), renew_at: None, image_digest: None }
}

fn takes_a_failed_mount_for_success(_: &Memory, event: &Event) -> Heard {
    let Fact::VolumeMountFailed { op, pod, volume, .. } = &event.fact else { return Heard::AsItIs };
    Heard::Instead(vec![mounted(*op, *pod, volume)])
}

fn believes_mounts_after_a_reboot(memory: &Memory, event: &Event) -> Heard {
    if let (Fact::AgentStarted { .. }, Some(boot_id)) = (&event.fact, memory.boots.0) {
        return Heard::Instead(vec![Fact::AgentStarted { boot_id }]);
    }
    let Fact::MountsObserved { op, mounts } = &event.fact else { return Heard::AsItIs };
    let mut mounts = mounts.clone();
    for (uid, pod) in &memory.pods {
        for (volume, _) in pod.volumes.iter().filter(|(_, v)| v.stage == VolumeStage::Mounted) {
            let seen = nodefold_core::event::SeenMount { pod: *uid, volume: volume.clone() };
            if !mounts.contains(&seen) {
                mounts.push(seen);
            }
        }
    }
    Heard::Instead(vec![Fact::MountsObserved { op: *op, mounts }])
}

fn takes_a_failed_unmount_for_done(memory: &Memory, event: &Event) -> Heard {
    let Fact::VolumeUnmountFailed { op, pod, volume, .. } = &event.fact else { return Heard::AsItIs };
    if memory.pod(*pod).is_none_or(PodMemory::is_ending) {
        return Heard::AsItIs;
    }
    Heard::Instead(vec![Fact::VolumeUnmounted { op: *op, pod: *pod, volume: volume.clone() }])
}

fn leaves_a_secret_behind(_: &Memory, command: &Command) -> Said {
    let Action::UnmountVolume { spec: Some(spec), .. } = &command.action else { return Said::AsItIs };
    // A pod that is over, preempted say, is another story: nothing of its volumes is removed.
    let removed = command.cause.rule == Rule::VolumeRemoved;
    match &spec.source {
        VolumeSource::Secret(_) if removed => Said::Pretended,
        VolumeSource::Secret(_)
        | VolumeSource::EmptyDir { .. }
        | VolumeSource::ConfigMap(_)
        | VolumeSource::DownwardApi
        | VolumeSource::Projected(_)
        | VolumeSource::Image { .. }
        | VolumeSource::HostPath
        | VolumeSource::Unsupported { .. } => Said::AsItIs,
    }
}

fn leaks_a_removed_volume(_: &Memory, command: &Command) -> Said {
    let removed = command.cause.rule == Rule::VolumeRemoved;
    if removed && matches!(command.action, Action::UnmountVolume { .. }) {
        Said::Refused
    } else {
        Said::AsItIs
    }
}

fn forgets_an_uncertain_mount(memory: &Memory, command: &Command) -> Said {
    let Action::UnmountVolume { volume, .. } = &command.action else { return Said::AsItIs };
    let Some(pod) = memory.pod(command.pod).filter(|pod| pod.is_ending()) else { return Said::AsItIs };
    let uncertain = pod.volumes.get(volume).is_some_and(|v| v.stage == VolumeStage::Uncertain);
    if uncertain { Said::Pretended } else { Said::AsItIs }
}

/// A volume whose mount is still under way is not touched again: that would be another wrong.
fn leaves_mounts_alone(memory: &Memory, command: &Command) -> Said {
    let (Action::UnmountVolume { volume, .. } | Action::RefreshVolume { volume, .. }) = &command.action
    else {
        return Said::AsItIs;
    };
    let mounting = memory.pod(command.pod).and_then(|pod| pod.volumes.get(volume));
    if mounting.is_some_and(|v| v.stage == VolumeStage::Mounting) { Said::Refused } else { Said::AsItIs }
}

fn mounts_over_the_former_life(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    let Fact::PodApplied(applied) = fact else { return Vec::new() };
    let Some(memory) = memory.pod(applied.uid).filter(|pod| !pod.is_ending()) else { return Vec::new() };
    let order = |spec: &Arc<Volume>| {
        let (former, life) = memory.newest_volume(&spec.name)?;
        let another = life.stage != VolumeStage::Gone && life.spec.as_ref().is_some_and(|own| own != spec);
        let volume = VolumeId { generation: former.generation + 1, ..former.clone() };
        let (pod, allocated) = (applied.clone(), applied.spec.clone());
        let action = Action::MountVolume { volume, spec: spec.clone(), pod, allocated };
        another.then_some(Order { pod: applied.uid, rule: Rule::VolumeDesired, action })
    };
    applied.spec.volumes.iter().filter_map(order).collect()
}

fn refreshes_what_was_removed(memory: &Memory, _: &Fact, commands: &[Command]) -> Vec<Order> {
    let order = |command: &Command| {
        let Action::UnmountVolume { volume, spec: Some(spec) } = &command.action else { return None };
        let memory = memory.pod(command.pod).filter(|pod| !pod.is_ending())?;
        let pod = memory.applied.clone().filter(|pod| pod.spec.volume(&volume.name).is_none())?;
        let allocated = pod.spec.clone();
        let action = Action::RefreshVolume { volume: volume.clone(), spec: spec.clone(), pod, allocated };
        Some(Order { pod: command.pod, rule: Rule::VolumeRefresh, action })
    };
    commands.iter().filter_map(order).collect()
}

fn mounts_what_is_only_desired(memory: &Memory, _: &Fact, commands: &[Command]) -> Vec<Order> {
    let mut orders = Vec::new();
    for command in commands {
        let Action::PublishStatus { status, .. } = &command.action else { continue };
        if !status.conditions.iter().any(|c| c.kind == ConditionKind::PodResizePending && c.status) {
            continue;
        }
        let Some(memory) = memory.pod(command.pod) else { continue };
        let (Some(pod), Some(allocated)) = (&memory.applied, &memory.allocated) else { continue };
        for spec in pod.spec.volumes.iter().filter(|v| allocated.volume(&v.name).is_none()) {
            let volume = VolumeId { name: spec.name.clone(), generation: 0 };
            if memory.volumes.contains_key(&volume) {
                continue;
            }
            let (spec, pod, allocated) = (spec.clone(), pod.clone(), allocated.clone());
            let action = Action::MountVolume { volume, spec, pod, allocated };
            orders.push(Order { pod: command.pod, rule: Rule::VolumeDesired, action });
        }
    }
    orders
}

fn remounts_while_terminating(memory: &Memory, fact: &Fact, _: &[Command]) -> Vec<Order> {
    let Fact::VolumeUnmounted { pod: uid, volume, .. } = fact else { return Vec::new() };
    let order = || {
        let memory = memory.pod(*uid).filter(|pod| pod.is_ending())?;
        let spec = memory.volumes.get(volume)?.spec.clone()?;
        let (pod, allocated) = (memory.applied.clone()?, memory.allocated.clone()?);
        (allocated.volume(&volume.name) == Some(&spec) && !memory.volumes.get(volume)?.removed)
            .then_some(())?;
        let action = Action::MountVolume { volume: volume.clone(), spec, pod, allocated };
        Some(Order { pod: *uid, rule: Rule::VolumeDesired, action })
    };
    order().into_iter().collect()
}

fn shows_mounted_too_early(_: &Memory, command: &Command) -> Said {
    retold(command, |status| {
        let mut changed = false;
        for row in status.volumes.iter_mut().filter(|row| row.phase == HostPhase::Pending) {
            row.phase = HostPhase::HostMounted;
            changed = true;
        }
        changed
    })
}
