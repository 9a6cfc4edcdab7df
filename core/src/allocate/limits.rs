//! Local storage limits: when reported usage evicts a pod (kubelet-volumes §2.2, case 40).

use crate::context::text;
use crate::ids::Name;
use crate::resources::ResourceName;
use crate::spec::{Medium, VolumeSource};
use crate::state::PodState;

/// The message of the first limit that the pod exceeds.
pub(crate) fn exceeded(pod: &PodState) -> Option<Name> {
    volume_over_limit(pod).or_else(|| container_over_limit(pod)).or_else(|| pod_over_limit(pod))
}

/// An emptyDir over its sizeLimit. Retained ones count until they are gone.
fn volume_over_limit(pod: &PodState) -> Option<Name> {
    pod.volumes.iter().find_map(|volume| {
        let VolumeSource::EmptyDir { size_limit: Some(limit), .. } = volume.spec.as_ref()?.source else {
            return None;
        };
        (volume.upkeep.usage? > limit).then(|| {
            let limit = crate::resources::bytes(limit);
            text(format_args!(
                "Usage of EmptyDir volume \"{}\" exceeds the limit \"{limit}\". ",
                volume.id.name
            ))
        })
    })
}

/// A container whose writable layer and logs are over its ephemeral-storage limit.
fn container_over_limit(pod: &PodState) -> Option<Name> {
    pod.containers.iter().find_map(|container| {
        let limit = container.spec.resources.limits.given(&ResourceName::EphemeralStorage)?;
        (container.usage? > limit).then(|| {
            let limit = crate::resources::bytes(limit);
            text(format_args!(
                "Container {} exceeded its local ephemeral storage limit \"{limit}\". ",
                container.name
            ))
        })
    })
}

/// All of it together against the sum of the limits, where every container has one.
fn pod_over_limit(pod: &PodState) -> Option<Name> {
    let limit =
        super::limit_of_all(pod.spec(), &ResourceName::EphemeralStorage).filter(|limit| *limit > 0)?;
    let on_disk = |volume: &crate::state::VolumeState| match volume.spec.as_ref().map(|s| &s.source) {
        Some(VolumeSource::EmptyDir { medium: Medium::Memory | Medium::HugePages, .. }) => 0,
        Some(_) | None => volume.upkeep.usage.unwrap_or(0),
    };
    let volumes: u64 = pod.volumes.iter().map(on_disk).fold(0, u64::saturating_add);
    let containers: u64 = pod.containers.iter().filter_map(|c| c.usage).fold(0, u64::saturating_add);
    (volumes.saturating_add(containers) > limit).then(|| {
        let limit = crate::resources::bytes(limit);
        text(format_args!(
            "Pod ephemeral local storage usage exceeds the total limit of containers {limit}. "
        ))
    })
}
