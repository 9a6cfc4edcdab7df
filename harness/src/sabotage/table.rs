//! The table of saboteurs, by what they are wrong about, and the few words that its entries share. Entries only look at a
//! [`Memory`], a fact and commands.

mod api;
mod containers;
mod deletion;
mod recovery;
mod resources;
mod status;
mod time;
mod volumes;

use super::memory::{Memory, PodMemory};
use super::{Order, Saboteur, Said};
use nodefold_core::command::{Action, Command, Rule};
use nodefold_core::ids::{ContainerId, PodUid};
use nodefold_core::status::{ContainerStatus, PodStatus};
use std::sync::Arc;

/// All saboteurs.
pub static ALL: &[&[Saboteur]] = &[
    volumes::TABLE,
    containers::TABLE,
    resources::TABLE,
    deletion::TABLE,
    status::TABLE,
    recovery::TABLE,
    time::TABLE,
    api::TABLE,
];

/// A status as the saboteur tells it, if `change` says that it changed anything.
fn retold(command: &Command, change: impl FnOnce(&mut PodStatus) -> bool) -> Said {
    let Action::PublishStatus { status, mirror } = &command.action else { return Said::AsItIs };
    let mut status = PodStatus::clone(status);
    if change(&mut status) {
        Said::Instead(Action::PublishStatus { status: Arc::new(status), mirror: *mirror })
    } else {
        Said::AsItIs
    }
}

/// All rows of containers.
fn rows(status: &mut PodStatus) -> impl Iterator<Item = &mut ContainerStatus> {
    status.init_containers.iter_mut().chain(&mut status.containers).chain(&mut status.ephemeral_containers)
}

/// The row of that name.
fn row<'a>(status: &'a PodStatus, name: &str) -> Option<&'a ContainerStatus> {
    let rows = status.init_containers.iter().chain(&status.containers).chain(&status.ephemeral_containers);
    rows.into_iter().find(|row| &*row.name == name)
}

/// The next attempt of a container that was made before, by its former definition.
fn made_again(pod: &PodMemory, uid: PodUid, id: &ContainerId, rule: Rule) -> Option<Order> {
    let former = pod.containers.get(id)?;
    let next = ContainerId { attempt: id.attempt + 1, ..id.clone() };
    let (sandbox, allocated) = (pod.sandbox?.0, pod.allocated.clone()?);
    let mut wanted = allocated.init_containers.iter().chain(&allocated.containers);
    wanted.find(|c| **c == former.spec)?;
    (!pod.containers.contains_key(&next)).then_some(())?;
    let action = Action::CreateContainer {
        container: next,
        spec: former.spec.clone(),
        mounts: former.mounts.clone(),
        sandbox,
        pod: pod.applied.clone()?,
        allocated,
    };
    Some(Order { pod: uid, rule, action })
}

/// The stops among commands: of which pod and container, with which grace, under which rule.
fn stops(commands: &[Command]) -> impl Iterator<Item = (&Command, &ContainerId)> {
    commands.iter().filter_map(|command| {
        let Action::StopContainer { container, .. } = &command.action else { return None };
        Some((command, container))
    })
}

/// Repeats each command that `which` picks.
fn repeated(commands: &[Command], which: impl Fn(&Action) -> bool) -> Vec<Order> {
    let picked = commands.iter().filter(|command| which(&command.action));
    picked.map(|c| Order { pod: c.pod, rule: c.cause.rule, action: c.action.clone() }).collect()
}

/// What a status says of volumes and containers that the brain inside is deceived about is put right: those rows stay as
/// they were published last. The deceit then shows in deeds only.
fn truthful(memory: &Memory, command: &Command) -> Said {
    let Some(pod) = memory.pod(command.pod) else { return Said::AsItIs };
    retold(command, |status| {
        let volumes = truthful_volumes(pod, status);
        truthful_containers(pod, status) || volumes
    })
}

fn truthful_volumes(pod: &PodMemory, status: &mut PodStatus) -> bool {
    use super::memory::VolumeStage;
    use nodefold_core::status::HostPhase;
    let mut changed = false;
    for row in &mut status.volumes {
        let mounted = pod.newest_volume(&row.name).is_some_and(|(_, v)| v.stage == VolumeStage::Mounted);
        if row.phase == HostPhase::HostMounted && !mounted {
            let before = pod.published.as_ref().and_then(|s| s.volumes.iter().find(|v| v.name == row.name));
            row.phase = before.map_or(HostPhase::Pending, |before| before.phase);
            changed = true;
        }
    }
    changed
}

fn truthful_containers(pod: &PodMemory, status: &mut PodStatus) -> bool {
    use super::memory::Stage;
    use nodefold_core::status::ContainerState;
    let mut changed = false;
    for told in rows(status) {
        let ContainerState::Terminated(terminated) = &told.state else { continue };
        let Some(id) = &terminated.id else { continue };
        let runs = pod.containers.get(id).is_some_and(|c| c.stage == Stage::Running);
        let before = pod.published.as_ref().and_then(|s| row(s, &told.name));
        if runs && let Some(before) = before {
            *told = before.clone();
            changed = true;
        }
    }
    changed
}
