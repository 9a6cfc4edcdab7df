//! S2: no container starts before every volume it mounts is ready, in the instance that was allocated for it; no main
//! container before initialization was done in its sandbox.
//!
//! A create binds the volumes, so volumes are judged there, and again at the start if one was lost in between. A create
//! ahead of initialization is allowed: the container is parked (B23, B29; kubelet-volumes races 7, 14).

use super::deed::Deed;
use super::{Record, breach};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::container::{ContainerView, Role};
use crate::world_view::pod::PodView;
use nodefold_core::command::{Action, Command, MountedVolume, Subject};
use nodefold_core::ids::ContainerId;

pub(super) fn judge(world: &WorldView, record: &Record<'_>, command: &Command, out: &mut Vec<Violation>) {
    let Some(pod) = world.pods.get(&command.pod) else {
        // The first thing ever done for a pod is a create: if it mounts anything, that can't be there.
        if let Action::CreateContainer { container, mounts, .. } = &command.action
            && let Some(mount) = mounts.first()
        {
            out.push(unmounted(record, command, container, mount, "never mounted", &[]));
        }
        return;
    };
    match Deed::of(&command.action) {
        Deed::Creates { container, mounts, .. } => {
            out.extend(not_ready(pod, record, command, container, mounts, false));
        }
        Deed::Starts(container) => {
            let Some(view) = pod.container(container) else { return };
            if let Some(mounts) = &view.mounts {
                out.extend(not_ready(pod, record, command, container, mounts, true));
            }
            out.extend(uninitialized(pod, record, command, view));
        }
        Deed::Mounts(_)
        | Deed::MakesSandbox { .. }
        | Deed::Stops { .. }
        | Deed::Kills(_)
        | Deed::Tells(_)
        | Deed::Else => {}
    }
}

/// The first mount whose volume isn't whole. At a start only what changed since the create counts: the rest was said.
fn not_ready(
    pod: &PodView,
    record: &Record<'_>,
    command: &Command,
    container: &ContainerId,
    mounts: &[MountedVolume],
    at_start: bool,
) -> Option<Violation> {
    let born = pod.container(container).map_or(0, |c| c.commanded.min(c.born));
    mounts.iter().find_map(|mount| match pod.volume(&mount.volume) {
        None if at_start => None,
        None => Some(unmounted(record, command, container, mount, "never mounted", &[])),
        Some(volume) if volume.provably_not_ready() && (!at_start || volume.host_index > born) => {
            Some(unmounted(record, command, container, mount, volume.host_in_words(), &[volume.host_index]))
        }
        Some(_) => None,
    })
}

fn unmounted(
    record: &Record<'_>,
    command: &Command,
    container: &ContainerId,
    mount: &MountedVolume,
    state: &str,
    evidence: &[usize],
) -> Violation {
    let verb = if matches!(command.action, Action::StartContainer { .. }) { "started" } else { "created" };
    let explanation =
        format!("container {container} is {verb} while volume {}, which it mounts, is {state}", mount.volume);
    let subject = Some(Subject::Container(container.clone()));
    breach(Invariant::S2, record, command.pod, subject, explanation, evidence)
}

fn uninitialized(
    pod: &PodView,
    record: &Record<'_>,
    command: &Command,
    main: &ContainerView,
) -> Option<Violation> {
    let (Role::Main, false, Some(sandbox)) = (main.role, pod.ran_before_trace, main.sandbox) else {
        return None;
    };
    let (_, spec) = pod.allocation.shown.as_ref()?;
    let pending = spec.init_containers.iter().find(|c| !pod.init_is_done(&c.name, sandbox))?;
    let latest = pod.newest(&pending.name);
    let state = match latest {
        Some(view) if view.sandbox != Some(sandbox) => "last ran in another sandbox",
        Some(view) if view.may_run() => "is not done",
        Some(_) => "did not succeed",
        None => "has not run",
    };
    let explanation = format!(
        "main container {} is started in sandbox {sandbox} although init container {} {state} there",
        main.id, pending.name
    );
    let evidence = [latest.map_or(main.born, |view| view.life_index)];
    Some(breach(
        Invariant::S2,
        record,
        command.pod,
        Some(Subject::Container(main.id.clone())),
        explanation,
        &evidence,
    ))
}
