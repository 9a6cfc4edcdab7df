//! One pod's transaction: may its desired spec, as a whole, become its allocation? (DESIGN §4 rules 1 and 4)

use super::{admit, charge, limit_of_all, pod_requests};
use crate::context::text;
use crate::ids::{Name, Source};
use crate::node::State;
use crate::resources::{QosClass, ResourceName, Resources, bytes};
use crate::spec::{Container, Medium, PodSpec, Volume, VolumeMount, VolumeSource};
use crate::state::{ContainerKind, PodState, Shared};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Yes, now.
    Allocate,
    /// Not now; it may fit later.
    Deferred(Name),
    /// Not this spec.
    Infeasible(Name),
}

/// Decides for one pod whose desired spec differs from its allocation.
pub(crate) fn decide(state: &State, pod: &PodState) -> Verdict {
    let Some(allocated) = &pod.allocated else { return Verdict::Allocate };
    let (before, after) = (&*allocated.spec, &*pod.pod.spec);
    if let Some(message) = never(state, pod, before, after) {
        return Verdict::Infeasible(message);
    }
    let wanted = pod_requests(after);
    let allocatable = &state.config.node.allocatable;
    // Reported: memory if both exceed (kubelet-pods §1.5).
    let too_large = [ResourceName::Memory, ResourceName::Cpu].into_iter().find_map(|name| {
        let (asked, capacity) = (wanted.get(&name), allocatable.given(&name)?);
        (asked > capacity && asked > pod_requests(before).get(&name)).then_some((name, asked, capacity))
    });
    if let Some((name, asked, capacity)) = too_large {
        let message = text(format_args!(
            "Node didn't have enough capacity: {name}, requested: {asked}, capacity: {capacity}"
        ));
        return Verdict::Infeasible(message);
    }
    let grown = charge::grown(pod);
    // The pod itself is charged as one already.
    match admit::shortages(state, pod, &grown).find(|short| short.resource != ResourceName::Pods) {
        None => Verdict::Allocate,
        Some(short) => Verdict::Deferred(short.message()),
    }
}

/// Why this spec can never be allocated here, if so.
fn never(state: &State, pod: &PodState, before: &PodSpec, after: &PodSpec) -> Option<Name> {
    let config = &state.config;
    let (structural, volumes) = (!same_containers(before, after), !same_volumes(before, after));
    let mounts = mounts_of_kept_change(before, after);
    let resources = !same_resources(before, after);
    if pod.pod.source == Source::File {
        return Some("In-place resize of static-pods is not supported".into());
    }
    if after.windows {
        return Some("In-place resize of Windows pods is not supported".into());
    }
    if (structural || images_change(before, after)) && !config.node.gates.dynamic_containers {
        return Some("feature gate DynamicContainers is disabled on this node".into());
    }
    if (volumes || mounts) && !config.node.gates.dynamic_volumes {
        return Some("feature gate DynamicNodeLocalEphemeralVolumes is disabled on this node".into());
    }
    if !same_init(before, after) {
        return Some("init containers can't be changed".into());
    }
    if let Some(message) = needs_restart_that_is_not_allowed(before, after) {
        return Some(message);
    }
    if let Some(message) = dangling_mount(after) {
        return Some(message);
    }
    if let Some(message) = held_by_ephemeral(pod, after) {
        return Some(message);
    }
    if let Some(message) = beyond_memory_limit(before, after) {
        return Some(message);
    }
    if !resources {
        return None;
    }
    let changes = |resource: &ResourceName| {
        let kept = after.containers.iter().chain(&after.init_containers);
        kept.filter_map(|new| {
            let old = before.containers.iter().chain(&before.init_containers).find(|c| c.name == new.name)?;
            (old.resources.requests.given(resource) != new.resources.requests.given(resource)).then_some(new)
        })
        .collect::<Vec<_>>()
    };
    // Case 16. Swap limits follow from the memory request at creation.
    let in_place = |c: &&Arc<Container>| !c.resize_restarts.contains(&ResourceName::Memory);
    if config.swap && changes(&ResourceName::Memory).iter().any(in_place) {
        return Some("In-place resize of containers with swap is not supported".into());
    }
    let guaranteed = before.qos == QosClass::Guaranteed;
    // Cases 17 and 18.
    if guaranteed && config.static_cpu_policy && !changes(&ResourceName::Cpu).is_empty() {
        return Some("Resize is infeasible for Guaranteed Pods alongside CPU Manager static policy".into());
    }
    if guaranteed && config.static_memory_policy && !changes(&ResourceName::Memory).is_empty() {
        return Some(
            "Resize is infeasible for Guaranteed Pods alongside Memory Manager static policy".into(),
        );
    }
    None
}

/// A kept container whose mounts would change without `RestartContainer` (KEP-6395; rule 4: a holder of a replaced
/// volume counts, since its mount would mean another volume). Judged by the allocated policy (api-side D3).
fn needs_restart_that_is_not_allowed(before: &PodSpec, after: &PodSpec) -> Option<Name> {
    kept(before, after).find_map(|(old, new)| {
        let same = same_mounts(&old.mounts, &new.mounts) && old.mounts.iter().all(|m| same_volume(before, after, &m.name));
        (!same && !old.restart_on_mount_change).then(|| {
            text(format_args!(
                "container \"{}\" would need a restart to change its volume mounts, which its dynamicVolumePolicy does not allow",
                old.name
            ))
        })
    })
}

/// A volume that gets another source while an ephemeral container holds it: that can't be restarted and may never exit,
/// so the new life would wait for ever (rule 4; kubelet-volumes §6.23).
fn held_by_ephemeral(pod: &PodState, after: &PodSpec) -> Option<Name> {
    let ephemeral = pod.containers.iter().filter(|c| c.kind == ContainerKind::Ephemeral);
    ephemeral.filter_map(|c| c.instance.as_ref().map(|i| (&c.name, i))).find_map(|(name, instance)| {
        let held = pod.volumes.iter().find(|v| {
            let replaced =
                |old: &Volume| after.volume(&old.name).is_some_and(|new| !is_same_volume(old, new));
            instance.holds(&v.id) && v.spec.as_ref().is_some_and(|old| replaced(old))
        })?;
        Some(text(format_args!(
            "ephemeral container \"{name}\" mounts volume \"{}\", which can't be replaced while it runs",
            held.id.name
        )))
    })
}

/// A memory volume that is added with more than all of the pod may use (kubelet-volumes §6.25). What fits otherwise is
/// the kernel's to enforce.
fn beyond_memory_limit(before: &PodSpec, after: &PodSpec) -> Option<Name> {
    let limit = limit_of_all(after, &ResourceName::Memory)?;
    after.volumes.iter().filter(|v| !same_volume(before, after, &v.name)).find_map(|volume| {
        let VolumeSource::EmptyDir { medium: Medium::Memory, size_limit: Some(size) } = volume.source else {
            return None;
        };
        (size > limit).then(|| {
            let (size, limit) = (bytes(size), bytes(limit));
            text(format_args!(
                "memory-backed volume \"{}\" has sizeLimit {size}, more than the pod's memory limit {limit}",
                volume.name
            ))
        })
    })
}

/// A mount that names no volume of the same spec (C10, W8). The API refuses it; a node must not trust that.
fn dangling_mount(after: &PodSpec) -> Option<Name> {
    let containers = after.containers.iter().chain(&after.init_containers);
    containers.into_iter().find_map(|container| {
        let mount = container.mounts.iter().find(|m| after.volume(&m.name).is_none())?;
        Some(text(format_args!(
            "container \"{}\" mounts volume \"{}\", which does not exist",
            container.name, mount.name
        )))
    })
}

/// Main containers of both, old and new definition.
fn kept<'a>(
    before: &'a PodSpec,
    after: &'a PodSpec,
) -> impl Iterator<Item = (&'a Arc<Container>, &'a Arc<Container>)> {
    after.containers.iter().filter_map(move |new| {
        before.container(&new.name).filter(|old| is_same_container(old, new)).map(|old| (old, new))
    })
}

/// The same incarnation: nothing but image, resources and mounts differs. Anything else can only come from a removal and
/// an addition that the watch delivered as one (api-side C5, kubelet-pods §7.4).
pub(crate) fn is_same_container(old: &Container, new: &Container) -> bool {
    let Container {
        name,
        image: _,
        pull_policy: _,
        restart_policy,
        restart_rules,
        resources: _,
        resize_restarts,
        mounts: _,
        restart_on_mount_change,
        startup_probe,
        liveness_probe,
        readiness_probe,
        post_start,
        pre_stop,
        rest,
    } = old;
    *name == new.name
        && *restart_policy == new.restart_policy
        && *restart_rules == new.restart_rules
        && *resize_restarts == new.resize_restarts
        && *restart_on_mount_change == new.restart_on_mount_change
        && *startup_probe == new.startup_probe
        && *liveness_probe == new.liveness_probe
        && *readiness_probe == new.readiness_probe
        && *post_start == new.post_start
        && *pre_stop == new.pre_stop
        && *rest == new.rest
}

/// Mounts compare as a map keyed by path; order is no change (api-side D7).
pub(crate) fn same_mounts(a: &[VolumeMount], b: &[VolumeMount]) -> bool {
    a.len() == b.len() && a.iter().all(|m| b.contains(m))
}

fn same_volume(before: &PodSpec, after: &PodSpec, name: &str) -> bool {
    match (before.volume(name), after.volume(name)) {
        (Some(old), Some(new)) => is_same_volume(old, new),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// The same life of a volume: the name and the source (I5).
pub(crate) fn is_same_volume(old: &Volume, new: &Volume) -> bool {
    old.name == new.name && old.source == new.source && old.rest == new.rest
}

fn same_volumes(before: &PodSpec, after: &PodSpec) -> bool {
    before.volumes.len() == after.volumes.len()
        && before.volumes.iter().all(|v| same_volume(before, after, &v.name))
}

fn same_containers(before: &PodSpec, after: &PodSpec) -> bool {
    before.containers.len() == after.containers.len()
        && before
            .containers
            .iter()
            .all(|old| after.container(&old.name).is_some_and(|new| is_same_container(old, new)))
}

fn same_init(before: &PodSpec, after: &PodSpec) -> bool {
    before.init_containers.len() == after.init_containers.len()
        && before.init_containers.iter().zip(&after.init_containers).all(|(old, new)| {
            is_same_container(old, new)
                && same_mounts(&old.mounts, &new.mounts)
                && old.mounts.iter().all(|m| same_volume(before, after, &m.name))
        })
}

fn images_change(before: &PodSpec, after: &PodSpec) -> bool {
    let pairs = before.init_containers.iter().zip(&after.init_containers);
    kept(before, after).chain(pairs).any(|(old, new)| old.image != new.image)
}

fn mounts_of_kept_change(before: &PodSpec, after: &PodSpec) -> bool {
    kept(before, after).any(|(old, new)| !same_mounts(&old.mounts, &new.mounts))
}

/// Containers, volumes, mounts and images agree.
pub(crate) fn same_structure(before: &PodSpec, after: &PodSpec) -> bool {
    same_containers(before, after)
        && same_volumes(before, after)
        && same_init(before, after)
        && !images_change(before, after)
        && !mounts_of_kept_change(before, after)
}

/// Resources of the pod and of each container that both have agree.
pub(crate) fn same_resources(before: &PodSpec, after: &PodSpec) -> bool {
    let all = |spec: &PodSpec| -> Vec<(Name, Resources)> {
        spec.containers
            .iter()
            .chain(&spec.init_containers)
            .map(|c| (c.name.clone(), c.resources.clone()))
            .collect()
    };
    let (old, new) = (all(before), all(after));
    before.resources == after.resources
        && old.iter().all(|(name, resources)| new.iter().all(|(n, r)| n != name || r == resources))
}

/// The allocation-gated fields agree. Order in the container list alone is no change.
pub(crate) fn same_gated(before: &Shared<PodSpec>, after: &PodSpec) -> bool {
    core::ptr::eq(&**before.arc(), after) || (same_structure(before, after) && same_resources(before, after))
}

/// The allocated spec with the desired images of containers that both have; `None` if that changes nothing.
pub(crate) fn with_desired_images(allocated: &PodSpec, desired: &PodSpec) -> Option<PodSpec> {
    let update = |list: &[Arc<Container>], from: &[Arc<Container>]| -> (Vec<Arc<Container>>, bool) {
        let mut changed = false;
        let list = list
            .iter()
            .map(|old| match from.iter().find(|new| is_same_container(old, new) && new.image != old.image) {
                Some(new) => {
                    changed = true;
                    let image = new.image.clone();
                    Arc::new(Container { image, pull_policy: new.pull_policy, ..(**old).clone() })
                }
                None => old.clone(),
            })
            .collect();
        (list, changed)
    };
    let (containers, mains) = update(&allocated.containers, &desired.containers);
    let (init_containers, inits) = update(&allocated.init_containers, &desired.init_containers);
    (mains || inits).then(|| PodSpec { containers, init_containers, ..allocated.clone() })
}
