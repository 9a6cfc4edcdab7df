//! S1: no unmount of a volume instance while a container instance that mounts it may be running.
//!
//! Unknown is in use (DESIGN §4 rule 3): a container whose mounts the trace never told may hold any volume of its pod,
//! and until the runtime was listed whole after the agent's start, anything may run (B14, B15, B17; kubelet-volumes
//! races 1, 2, 25).

use super::{Record, breach};
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use nodefold_core::command::{Action, Command, Subject};

pub(super) fn judge(world: &WorldView, record: &Record<'_>, command: &Command, out: &mut Vec<Violation>) {
    let Action::UnmountVolume { volume, .. } = &command.action else { return };
    let subject = || Some(Subject::Volume(volume.clone()));
    let holder = world
        .pods
        .get(&command.pod)
        .and_then(|pod| pod.containers.iter().find(|c| c.may_run() && c.may_hold(volume)));
    if let Some(holder) = holder {
        let explanation = format!(
            "volume {volume} is unmounted while container {}, which {} it, is {}",
            holder.id,
            if holder.mounts.is_some() { "mounts" } else { "may mount" },
            holder.life_in_words(),
        );
        let evidence = [holder.born, holder.proof()];
        out.push(breach(Invariant::S1, record, command.pod, subject(), explanation, &evidence));
    } else if let Some(started) = world.runtime_unknown {
        let explanation = format!(
            "volume {volume} is unmounted before the runtime was listed whole after the agent started: what may still \
             use it is unknown"
        );
        out.push(breach(Invariant::S1, record, command.pod, subject(), explanation, &[started]));
    }
}
