//! Where everything is: the kubelet's own layout for pods and volumes (kubelet-volumes §2.1), and beside it what this node
//! notes about them. All of it lies below one directory.

use nodefold_core::ids::{ContainerId, PodUid};
use nodefold_core::spec::{Medium, VolumeSource};
use std::path::{Path, PathBuf};

/// The node's directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    data: PathBuf,
}

impl Layout {
    /// A node's directories below this one.
    pub fn at(data: impl Into<PathBuf>) -> Layout {
        Layout { data: data.into() }
    }

    /// The node's directory itself.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Every pod's directory is below it.
    pub fn pods(&self) -> PathBuf {
        self.data.join("pods")
    }

    /// What does not outlive a boot (sockets, exit records, scratch): a tmpfs of the node's own.
    pub fn run(&self) -> PathBuf {
        self.data.join("run")
    }

    /// Containers' logs.
    pub fn logs(&self) -> PathBuf {
        self.data.join("logs")
    }

    /// The journal.
    pub fn journal(&self) -> PathBuf {
        self.data.join("journal")
    }

    /// Unpacked images.
    pub fn images(&self) -> PathBuf {
        self.data.join("images")
    }

    /// The operator's seccomp profiles.
    pub fn seccomp(&self) -> PathBuf {
        self.data.join("seccomp")
    }

    /// A name for the node's cgroups: of its directory, so that two nodes on a host never meet.
    pub fn cgroup_name(&self) -> String {
        let path = self.data.as_os_str().as_encoded_bytes();
        format!("nodefold-{:016x}", xxhash_rust::xxh3::xxh3_64(path))
    }
}

/// The plugin's name in a volume's path; none for what has no directory of its own.
pub fn plugin(source: &VolumeSource) -> Option<&'static str> {
    match source {
        VolumeSource::EmptyDir { .. } => Some("kubernetes.io~empty-dir"),
        VolumeSource::ConfigMap(_) => Some("kubernetes.io~configmap"),
        VolumeSource::Secret(_) => Some("kubernetes.io~secret"),
        VolumeSource::DownwardApi => Some("kubernetes.io~downward-api"),
        VolumeSource::Projected(_) => Some("kubernetes.io~projected"),
        VolumeSource::Image { .. } | VolumeSource::HostPath | VolumeSource::Unsupported { .. } => None,
    }
}

/// Whether the volume's bytes are in memory: a tmpfs or hugetlbfs of its own.
pub fn in_memory(source: &VolumeSource) -> bool {
    match source {
        VolumeSource::EmptyDir { medium: Medium::Memory | Medium::HugePages, .. }
        | VolumeSource::Secret(_)
        | VolumeSource::DownwardApi
        | VolumeSource::Projected(_) => true,
        VolumeSource::EmptyDir { medium: Medium::Disk, .. }
        | VolumeSource::ConfigMap(_)
        | VolumeSource::Image { .. }
        | VolumeSource::HostPath
        | VolumeSource::Unsupported { .. } => false,
    }
}

/// A container instance as a file name: its name has no dots.
pub fn container_file(id: &ContainerId) -> String {
    format!("{}.{}.{}", id.name, id.incarnation, id.attempt)
}

/// A container instance of a file name.
pub fn container_of_file(name: &str) -> Option<ContainerId> {
    let mut parts = name.rsplitn(3, '.');
    let attempt = parts.next()?.parse().ok()?;
    let incarnation = parts.next()?.parse().ok()?;
    Some(ContainerId { name: parts.next()?.into(), incarnation, attempt })
}

/// A pod of a directory name.
pub fn pod_of_dir(name: &str) -> Option<PodUid> {
    PodUid::parse_uuid(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_found_again_by_its_file_name() {
        let id = ContainerId { name: "app".into(), incarnation: 3, attempt: 12 };
        assert_eq!(container_file(&id), "app.3.12");
        assert_eq!(container_of_file("app.3.12"), Some(id));
        assert_eq!(container_of_file("app.3"), None);
    }

    #[test]
    fn two_nodes_on_a_host_have_cgroups_of_their_own() {
        assert_ne!(Layout::at("/a").cgroup_name(), Layout::at("/b").cgroup_name());
    }
}
