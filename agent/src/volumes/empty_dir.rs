//! The directory that every volume of this node's own is, and the file system that is mounted on it where its bytes belong
//! in memory (kubelet-volumes §2.2).

use super::Wanted;
use crate::beneath;
use crate::fault::{Attempt, Fault};
use crate::mounts;
use nodefold_core::resources::{ResourceList, ResourceName, Resources};
use nodefold_core::spec::{Container, Medium, PodSpec, VolumeSource};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags, fchmod};
use rustix::mount::MountAttrFlags;
use std::sync::Arc;

/// Makes the volume's directory what its medium wants. Idempotent.
pub fn set_up(of_plugin: &OwnedFd, name: &str, wanted: &Wanted<'_>, size_bytes: u64) -> Result<(), Fault> {
    match &wanted.spec.source {
        VolumeSource::EmptyDir { medium: Medium::Disk, .. } | VolumeSource::ConfigMap(_) => {
            let dir = beneath::open_dir(of_plugin, name).attempt(|| format!("open volume {name}"))?;
            fchmod(&dir, Mode::from_raw_mode(0o777)).attempt(|| format!("open up volume {name}"))
        }
        VolumeSource::EmptyDir { medium: Medium::Memory, .. }
        | VolumeSource::Secret(_)
        | VolumeSource::DownwardApi
        | VolumeSource::Projected(_) => mount_tmpfs(of_plugin, name, size_bytes),
        VolumeSource::EmptyDir { medium: Medium::HugePages, .. } => mount_hugepages(of_plugin, name, wanted),
        VolumeSource::Image { .. } | VolumeSource::HostPath | VolumeSource::Unsupported { .. } => Ok(()),
    }
}

fn mount_tmpfs(of_plugin: &OwnedFd, name: &str, size_bytes: u64) -> Result<(), Fault> {
    if beneath::is_mounted(of_plugin, name).attempt(|| format!("look at volume {name}"))? {
        let there = beneath::open(of_plugin, name, OFlags::PATH).attempt(|| format!("open volume {name}"))?;
        if mounts::is_tmpfs(&there) {
            return Ok(());
        }
        return Err(Fault::transient(format!(
            "something that is no tmpfs is mounted on volume {name}: unmount it"
        )));
    }
    let mount = mounts::tmpfs(size_bytes, "1777", MountAttrFlags::MOUNT_ATTR_RELATIME)?;
    mounts::attach_at(mount, of_plugin, name)
}

fn mount_hugepages(of_plugin: &OwnedFd, name: &str, wanted: &Wanted<'_>) -> Result<(), Fault> {
    if beneath::is_mounted(of_plugin, name).attempt(|| format!("look at volume {name}"))? {
        return Ok(());
    }
    let manifest = nodefold_k8s::blob_to_json(&wanted.spec.rest);
    let medium = manifest["emptyDir"]["medium"].as_str().unwrap_or("");
    let page = page_size(wanted.allocated, medium.strip_prefix("HugePages-"))?;
    let bytes = page.to_string();
    let mount =
        mounts::detached("hugetlbfs", &[("pagesize", Some(&bytes))], MountAttrFlags::MOUNT_ATTR_RELATIME)?;
    mounts::attach_at(mount, of_plugin, name)
}

/// The page size of a hugepages volume: the one that the medium names, if a container requests it, else the only one
/// requested.
fn page_size(spec: &PodSpec, named: Option<&str>) -> Result<u64, Fault> {
    let mut requested: Vec<&str> = spec
        .containers
        .iter()
        .chain(&spec.init_containers)
        .flat_map(|container| container.resources.requests.iter().chain(container.resources.limits.iter()))
        .filter_map(|(name, _)| name.as_str().strip_prefix("hugepages-"))
        .collect();
    requested.sort_unstable();
    requested.dedup();
    let chosen = match (named, requested.as_slice()) {
        (Some(named), sizes) if sizes.contains(&named) => named,
        (Some(named), _) => {
            return Err(Fault::refused(format!("no container of the pod requests hugepages-{named}")));
        }
        (None, [only]) => only,
        (None, sizes) => {
            return Err(Fault::refused(format!(
                "medium HugePages needs exactly one page size requested in the pod, there are {}",
                sizes.len()
            )));
        }
    };
    nodefold_k8s::quantity::parse(chosen)
        .map(|quantity| quantity.units())
        .map_err(|error| Fault::refused(format!("hugepages-{chosen} is no page size: {error}")))
}

/// How large a memory volume may grow: the node's memory, the pod's limit when every container has one, the volume's own
/// limit, whichever is least. 0: the kernel's default, where none of them is known.
pub fn memory_size(spec: &PodSpec, allocatable: &ResourceList, size_limit: Option<u64>) -> u64 {
    let mut size = allocatable.get(&ResourceName::Memory);
    let at_most = |size: &mut u64, limit: u64| {
        if limit > 0 && (*size == 0 || limit < *size) {
            *size = limit;
        }
    };
    if let Some(limit) = pod_memory_limit(spec) {
        at_most(&mut size, limit);
    }
    at_most(&mut size, size_limit.unwrap_or(0));
    size
}

/// The pod's memory limit; none if a container has none.
pub fn pod_memory_limit(spec: &PodSpec) -> Option<u64> {
    let memory = |resources: &Resources| resources.limits.given(&ResourceName::Memory);
    if let Some(limit) = spec.resources.as_ref().and_then(memory) {
        return Some(limit);
    }
    let all =
        |list: &[Arc<Container>]| list.iter().map(|c| memory(&c.resources)).collect::<Option<Vec<u64>>>();
    let mains: u64 = all(&spec.containers)?.iter().sum();
    let mut sidecars = 0;
    let mut highest_init = 0;
    for (container, limit) in spec.init_containers.iter().zip(all(&spec.init_containers)?) {
        if PodSpec::is_sidecar(container) {
            sidecars += limit;
        } else {
            highest_init = highest_init.max(sidecars + limit);
        }
    }
    Some(highest_init.max(mains + sidecars))
}
