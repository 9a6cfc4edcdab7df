//! Making a spec the allocation: records for what is new, removal of what is gone, identity by instance (DESIGN §4
//! rule 4). From here on, nothing looks at the desired spec to act.

use super::transaction::{is_same_container, is_same_volume, same_mounts};
use crate::command::{Commands, Subject, Transition};
use crate::ids::{PodUid, VolumeId};
use crate::resources::ResourceName;
use crate::spec::{Container, PodSpec};
use crate::state::{Allocation, ContainerKind, ContainerState, PodState, Shared, VolumeState};
use crate::time::Time;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Commits `spec` as the pod's allocation.
pub(crate) fn commit(
    pod: &mut PodState,
    spec: &Shared<PodSpec>,
    generation: u64,
    now: Time,
    out: &mut Commands,
) {
    let uid = pod.pod.uid;
    pod.changed();
    // A downwardAPI volume may show resources.
    pod.content_changed = true;
    commit_volumes(pod, spec, now, uid, out);
    if pod.allocated.is_none() {
        point_found_mounts(pod);
    }
    commit_containers(pod, spec, now, uid, out);
    pod.allocated = Some(allocation(spec.clone(), generation, now));
    add_ephemeral(pod);
}

/// The spec as an allocation, its sums computed once.
pub(crate) fn allocation(spec: Shared<PodSpec>, generation: u64, at: Time) -> Allocation {
    let requests = super::pod_requests(&spec);
    let mut charge = requests.clone();
    charge.set(ResourceName::Pods, 1);
    let cgroup = super::cgroup_of(&spec, &requests);
    let mut in_force = crate::publish::sum_in_force(spec.containers.iter().map(|c| &c.resources));
    if in_force.requests == requests {
        // The usual case: one list for both.
        in_force.requests = requests.clone();
    }
    Allocation { spec, requests, charge, in_force, cgroup, generation, at }
}

fn commit_volumes(pod: &mut PodState, spec: &PodSpec, now: Time, uid: PodUid, out: &mut Commands) {
    for volume in pod.volumes.iter_mut().filter(|v| v.removed.is_none()) {
        let stays = spec
            .volume(&volume.id.name)
            .is_some_and(|new| volume.spec.as_ref().is_some_and(|old| is_same_volume(old, new)));
        if !stays {
            volume.removed = Some(now);
            // The removal cancels a mount's back-off; an unmount begins with its own (D4).
            volume.retry.clear();
        }
    }
    pod.volumes.reserve_exact(spec.volumes.len().saturating_sub(pod.volumes.len()));
    for new in &spec.volumes {
        if pod.volume(&new.name).is_some() {
            continue;
        }
        // A mount found on the host before the pod was admitted is this volume: it is set up again over what is there.
        if pod.allocated.is_none()
            && let Some(found) = pod.volumes.iter_mut().find(|v| v.spec.is_none() && v.id.name == new.name)
        {
            found.spec = Some(Shared::new(new.clone()));
            found.removed = None;
            continue;
        }
        let id = VolumeId { name: new.name.clone(), generation: pod.next_generation(&new.name) };
        out.transitions.push(Transition {
            pod: uid,
            subject: Subject::Volume(id.clone()),
            from: "".into(),
            to: "Pending".into(),
        });
        pod.volumes.push(VolumeState::new(id, Some(Shared::new(new.clone()))));
    }
}

/// A container that was found running mounts the lives of its volumes that were found, whatever their generation.
fn point_found_mounts(pod: &mut PodState) {
    let lives: Vec<VolumeId> =
        pod.volumes.iter().filter(|v| v.removed.is_none()).map(|v| v.id.clone()).collect();
    for instance in pod.containers.iter_mut().filter_map(|c| c.instance.as_mut()) {
        let found = |lease: &VolumeId| lives.iter().find(|id| id.name == lease.name).unwrap_or(lease).clone();
        instance.leases = instance.leases.iter().map(found).collect();
    }
}

fn commit_containers(pod: &mut PodState, spec: &PodSpec, now: Time, uid: PodUid, out: &mut Commands) {
    for container in pod.containers.iter_mut().filter(|c| c.removed.is_none()) {
        let new = match container.kind {
            ContainerKind::Main => spec.container(&container.name),
            ContainerKind::Init | ContainerKind::Sidecar => {
                spec.init_containers.iter().find(|c| c.name == container.name)
            }
            ContainerKind::Ephemeral => continue,
        };
        match new.filter(|new| is_same_container(&container.spec, new)) {
            Some(new) => redefine(container, new),
            None => container.removed = Some(now),
        }
    }
    let wanted = spec.init_containers.len() + spec.containers.len();
    pod.containers.reserve_exact(wanted.saturating_sub(pod.containers.len()));
    let inits = spec
        .init_containers
        .iter()
        .map(|c| (c, if PodSpec::is_sidecar(c) { ContainerKind::Sidecar } else { ContainerKind::Init }));
    let mains = spec.containers.iter().map(|c| (c, ContainerKind::Main));
    for (new, kind) in inits.chain(mains) {
        if pod.container(&new.name).is_none() {
            add(pod, new, kind, uid, out);
        }
    }
    // Records follow the order of the spec; removed ones come last.
    let position = |c: &ContainerState| match c.removed {
        Some(at) => (3, at.0 as usize),
        None => match c.kind {
            ContainerKind::Init | ContainerKind::Sidecar => {
                (0, spec.init_containers.iter().position(|s| s.name == c.name).unwrap_or(usize::MAX))
            }
            ContainerKind::Main => {
                (1, spec.containers.iter().position(|s| s.name == c.name).unwrap_or(usize::MAX))
            }
            ContainerKind::Ephemeral => (2, 0),
        },
    };
    pod.containers.sort_by_key(position);
}

fn redefine(container: &mut ContainerState, new: &Arc<Container>) {
    let old = &container.spec;
    let asks_for_restart =
        old.image != new.image || old.resources != new.resources || !same_mounts(&old.mounts, &new.mounts);
    if asks_for_restart {
        // A restart that a new definition asks for doesn't wait for the old one's back-off (DESIGN §4 rule 6).
        container.crashes = 0;
        container.pull_retry.clear();
        container.start_retry.clear();
        container.start_failure = None;
        if old.image != new.image {
            container.image_id = None;
        }
    }
    if **old.arc() != **new {
        container.spec = Shared::new(new.clone());
    }
}

fn add(pod: &mut PodState, new: &Arc<Container>, kind: ContainerKind, uid: PodUid, out: &mut Commands) {
    let incarnation = pod.next_incarnation(&new.name);
    let container = ContainerState::new(Shared::new(new.clone()), kind, incarnation);
    let subject = Subject::Container(container.id(0));
    out.transitions.push(Transition { pod: uid, subject, from: "".into(), to: "Waiting".into() });
    pod.containers.push(container);
}

/// Desired has an ephemeral container that no record stands for.
pub(crate) fn lacks_ephemeral(pod: &PodState) -> bool {
    pod.pod.spec.ephemeral_containers.iter().any(|c| pod.container(&c.name).is_none())
}

/// Ephemeral containers bypass allocation: their own subresource only adds (kubelet-pods §2.4).
pub(crate) fn add_ephemeral(pod: &mut PodState) {
    let desired = pod.pod.spec.clone();
    for new in &desired.ephemeral_containers {
        if pod.container(&new.name).is_none() {
            pod.changed();
            let incarnation = pod.next_incarnation(&new.name);
            pod.containers.push(ContainerState::new(
                Shared::new(new.clone()),
                ContainerKind::Ephemeral,
                incarnation,
            ));
        }
    }
}

/// The definition of a container name in a spec, and its kind.
pub(crate) fn definition<'a>(spec: &'a PodSpec, name: &str) -> Option<(&'a Arc<Container>, ContainerKind)> {
    let init = spec
        .init_containers
        .iter()
        .find(|c| &*c.name == name)
        .map(|c| (c, if PodSpec::is_sidecar(c) { ContainerKind::Sidecar } else { ContainerKind::Init }));
    let main = spec.containers.iter().find(|c| &*c.name == name).map(|c| (c, ContainerKind::Main));
    let ephemeral =
        spec.ephemeral_containers.iter().find(|c| &*c.name == name).map(|c| (c, ContainerKind::Ephemeral));
    init.or(main).or(ephemeral)
}
