//! What is remembered of a trace, as bytes without record numbers and times: what an explorer must tell states apart by,
//! since the same node with another memory may be judged otherwise (DESIGN §7).

use super::WorldView;
use super::container::ContainerView;
use super::pod::PodView;
use super::volume::VolumeView;
use nodefold_core::ids::PodUid;
use std::io::Write;

impl WorldView {
    /// Writes the memory: lives, removals, ends, operations in flight, and which of them were seen. What was published when,
    /// and by when stops are due, is left out: the node's own state has it.
    /// `who` says as which pod each is to be looked at.
    pub fn memory(&self, who: &dyn Fn(PodUid) -> PodUid, out: &mut Vec<u8>) {
        out.push(u8::from(self.runtime_unknown.is_some()));
        let mut pods: Vec<(PodUid, &PodView)> = self.pods.values().map(|pod| (who(pod.uid), pod)).collect();
        pods.sort_unstable_by_key(|(uid, _)| *uid);
        for (uid, pod) in pods {
            out.extend(uid.0.to_le_bytes());
            of_pod(pod, out);
        }
    }
}

fn of_pod(pod: &PodView, out: &mut Vec<u8>) {
    out.extend(bits(&[
        pod.applied.is_some(),
        pod.applied_this_epoch,
        pod.left_source.is_some(),
        pod.wanted_again.is_some() || pod.came_back,
        pod.termination.is_some(),
        pod.restart_all.is_some(),
        pod.published.is_some(),
        pod.terminal.is_some(),
        pod.released.is_some(),
        pod.allocation.shown.is_some(),
        pod.allocation.cut,
    ]));
    out.extend([pod.allocation.versions.len() as u8, pod.init_done.len() as u8]);
    pod.containers.iter().for_each(|container| of_container(container, out));
    pod.volumes.iter().for_each(|volume| of_volume(volume, out));
    for sandbox in &pod.sandboxes {
        let _ = write!(out, "{}{}", sandbox.attempt, sandbox.live);
    }
    for operation in &pod.in_flight {
        let _ = write!(out, "{}{:?}", operation.verb, operation.lane);
    }
}

fn of_container(container: &ContainerView, out: &mut Vec<u8>) {
    let _ = write!(out, "{}{}", container.id, container.life_in_words());
    out.extend(bits(&[
        container.mounts.is_some(),
        container.started.is_some(),
        container.exit.is_some(),
        container.lost.is_some(),
        container.start_failed.is_some(),
        container.stop.is_some(),
        container.stop_commanded.is_some(),
        container.removed.is_some(),
        container.startup_passed.is_some(),
        container.resizing.is_some(),
        container.unanswered.is_some(),
    ]));
}

fn of_volume(volume: &VolumeView, out: &mut Vec<u8>) {
    let _ = write!(out, "{}{}", volume.id, volume.host_in_words());
    out.extend(bits(&[
        volume.touched,
        volume.removed.is_some(),
        volume.changed.is_some(),
        volume.unmount.is_some(),
        volume.reset.is_some(),
        volume.mounted.is_some(),
        volume.unanswered.is_some(),
    ]));
}

fn bits(facts: &[bool]) -> [u8; 2] {
    facts.iter().enumerate().fold(0u16, |bits, (place, so)| bits | u16::from(*so) << place).to_le_bytes()
}
