//! S6: at most one live instance per container name and per volume name of a pod (and one sandbox), and one started pod per
//! static pod's full name; no re-use before the former is verifiably gone (B8, B9, B27).

use super::deed::Deed;
use super::{Record, breach};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::container::{Ending, Life};
use crate::world_view::pod::PodView;
use nodefold_core::command::{Command, Subject};
use nodefold_core::ids::{ContainerId, Source, VolumeId};
use nodefold_core::spec::Pod;

pub(super) fn judge(world: &WorldView, record: &Record<'_>, command: &Command, out: &mut Vec<Violation>) {
    let pod = world.pods.get(&command.pod);
    match Deed::of(&command.action) {
        Deed::Mounts(volume) => {
            if let Some(pod) = pod {
                out.extend(second_volume(pod, record, command, volume));
            }
        }
        Deed::Creates { container, .. } => {
            if let Some(pod) = pod {
                let second = second_container(pod, record, command, container);
                if second.is_none() {
                    out.extend(second_life(pod, record, command, container));
                }
                out.extend(second);
            }
        }
        Deed::Starts(container) => {
            if let Some(pod) = pod {
                // A create that was wrong already is not told twice.
                let created_beside = pod.container(container).map_or(0, |c| c.commanded);
                let second = second_container(pod, record, command, container);
                out.extend(
                    second.filter(|v| v.evidence.first().is_some_and(|first| *first > created_beside)),
                );
            }
        }
        Deed::MakesSandbox { attempt, pod: applied } => {
            out.extend(second_static_pod(world, record, command, applied));
            out.extend(pod.and_then(|pod| second_sandbox(pod, record, command, attempt)));
        }
        Deed::Stops { .. } | Deed::Kills(_) | Deed::Tells(_) | Deed::Else => {}
    }
}

fn second_volume(
    pod: &PodView,
    record: &Record<'_>,
    command: &Command,
    volume: &VolumeId,
) -> Option<Violation> {
    let other = pod
        .volumes
        .iter()
        .find(|v| v.id.name == volume.name && v.id.generation != volume.generation && v.may_be_on_host())?;
    let explanation = format!(
        "volume {volume} is mounted while {}, a former life of its name, is {}",
        other.id,
        other.host_in_words()
    );
    let subject = Some(Subject::Volume(volume.clone()));
    Some(breach(Invariant::S6, record, command.pod, subject, explanation, &[other.host_index]))
}

fn second_container(
    pod: &PodView,
    record: &Record<'_>,
    command: &Command,
    container: &ContainerId,
) -> Option<Violation> {
    let other =
        pod.containers.iter().find(|c| c.id.name == container.name && c.id != *container && c.may_run())?;
    let verb = command.action.verb();
    let explanation = format!(
        "the {verb} of container {container} comes while {}, another instance of its name, is {}",
        other.id,
        other.life_in_words()
    );
    let subject = Some(Subject::Container(container.clone()));
    Some(breach(Invariant::S6, record, command.pod, subject, explanation, &[other.proof()]))
}

/// An instance has one life: an id that ran is never made again.
fn second_life(
    pod: &PodView,
    record: &Record<'_>,
    command: &Command,
    container: &ContainerId,
) -> Option<Violation> {
    let former = pod.container(container)?;
    let lived = match &former.life {
        Life::Created
        | Life::Starting
        | Life::Running
        | Life::Ended(Ending::Exited(_) | Ending::NeverStarted) => true,
        // Made again by the same name after an answer that proves nothing: the runtime holds at most one of that id.
        Life::Creating | Life::Unknown | Life::Ended(Ending::NeverCreated | Ending::Lost) => false,
    };
    lived.then(|| {
        let explanation = format!(
            "container {container} is created a second time: an instance lives once, and this one is {}",
            former.life_in_words()
        );
        let subject = Some(Subject::Container(container.clone()));
        breach(Invariant::S6, record, command.pod, subject, explanation, &[former.life_index])
    })
}

/// A pod's containers share one sandbox: another is made only when the former has stopped.
fn second_sandbox(pod: &PodView, record: &Record<'_>, command: &Command, attempt: u32) -> Option<Violation> {
    let other = pod.sandboxes.iter().find(|s| s.live && s.attempt != attempt)?;
    let explanation = format!("sandbox {attempt} is made while sandbox {} may still run", other.attempt);
    let subject = Some(Subject::Sandbox(attempt));
    Some(breach(Invariant::S6, record, command.pod, subject, explanation, &[other.index]))
}

fn second_static_pod(
    world: &WorldView,
    record: &Record<'_>,
    command: &Command,
    applied: &Pod,
) -> Option<Violation> {
    match applied.source {
        Source::Api => return None,
        Source::File => {}
    }
    let key = (applied.namespace.clone(), applied.name.clone());
    let other = world.static_names.get(&key)?.iter().filter(|uid| **uid != command.pod).find_map(|uid| {
        let other = world.pods.get(uid)?;
        // It counts as started while it has a sandbox: a host that crashed, or its own end, took that.
        let started = other.sandboxes.iter().find(|s| s.live).map(|s| s.index);
        let running = other.running().map(|c| c.proof());
        running.or(if other.termination.is_none() { started } else { None }).map(|index| (other.uid, index))
    })?;
    let explanation = format!(
        "static pod {}/{} is started while pod {}, which has the same name, has not ended",
        applied.namespace, applied.name, other.0
    );
    Some(breach(Invariant::S6, record, command.pod, Some(Subject::Pod), explanation, &[other.1]))
}
