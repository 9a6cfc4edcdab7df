//! The mount table: what of each volume is on the host. A volume's path is keyed by its name alone, so two lives of one
//! name can never be there together.

use nodefold_core::event::SeenMount;
use nodefold_core::ids::{Name, PodUid, VolumeId};
use nodefold_core::spec::{Medium, Volume, VolumeSource};
use std::collections::BTreeMap;

/// A volume on the host.
#[derive(Clone, Debug)]
pub struct Mounted {
    /// Which life of the name.
    pub volume: VolumeId,
    /// It survives a loss of power.
    pub on_disk: bool,
}

/// What is on the host, by pod and volume name.
#[derive(Clone, Debug, Default)]
pub struct MountTable {
    mounts: BTreeMap<(PodUid, Name), Mounted>,
}

impl MountTable {
    /// Puts a volume on the host. The life that was there before under the same name, if it was another one.
    pub fn put(&mut self, pod: PodUid, volume: &VolumeId, spec: &Volume) -> Option<VolumeId> {
        let mounted = Mounted { volume: volume.clone(), on_disk: survives_power_loss(&spec.source) };
        let before = self.mounts.insert((pod, volume.name.clone()), mounted);
        before.map(|m| m.volume).filter(|v| v != volume)
    }

    /// Takes a volume off the host. Not being there is success; another life of the name stays.
    pub fn take(&mut self, pod: PodUid, volume: &VolumeId) {
        let key = (pod, volume.name.clone());
        if self.mounts.get(&key).is_some_and(|m| m.volume == *volume) {
            self.mounts.remove(&key);
        }
    }

    /// This life of the volume is on the host.
    pub fn has(&self, pod: PodUid, volume: &VolumeId) -> bool {
        self.mounts.get(&(pod, volume.name.clone())).is_some_and(|m| m.volume == *volume)
    }

    /// The life of a volume name that is on the host.
    pub fn life(&self, pod: PodUid, name: &str) -> Option<&VolumeId> {
        self.mounts.get(&(pod, name.into())).map(|m| &m.volume)
    }

    /// The names of a pod's volumes on the host.
    pub fn names(&self, pod: PodUid) -> Vec<Name> {
        self.mounts.keys().filter(|(owner, _)| *owner == pod).map(|(_, name)| name.clone()).collect()
    }

    /// Pods of which a volume is on the host, again for each.
    pub fn pods(&self) -> impl Iterator<Item = PodUid> {
        self.mounts.keys().map(|(pod, _)| *pod)
    }

    /// The whole table, as `MountsObserved` carries it.
    pub fn list(&self) -> Vec<SeenMount> {
        self.mounts.iter().map(|((pod, _), m)| SeenMount { pod: *pod, volume: m.volume.clone() }).collect()
    }

    /// The host lost power: only what is on disk is left.
    pub fn lose_power(&mut self) {
        self.mounts.retain(|_, m| m.on_disk);
    }
}

/// kubelet-volumes §2.1: emptyDir on disk, and configMap in a directory like it, are on disk; secret, downwardAPI and
/// projected are on tmpfs; an image's mount is the kernel's. A hostPath has nothing of its own to lose.
fn survives_power_loss(source: &VolumeSource) -> bool {
    match source {
        VolumeSource::EmptyDir { medium: Medium::Disk, .. }
        | VolumeSource::ConfigMap(_)
        | VolumeSource::HostPath => true,
        VolumeSource::EmptyDir { medium: Medium::Memory | Medium::HugePages, .. }
        | VolumeSource::Secret(_)
        | VolumeSource::DownwardApi
        | VolumeSource::Projected(_)
        | VolumeSource::Image { .. }
        | VolumeSource::Unsupported { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nodefold_core::spec::Blob;

    fn volume(name: &str, medium: Medium) -> Volume {
        let source = VolumeSource::EmptyDir { medium, size_limit: None };
        Volume { name: name.into(), source, rest: Blob::default() }
    }

    fn life(name: &str, generation: u32) -> VolumeId {
        VolumeId { name: name.into(), generation }
    }

    #[test]
    fn a_second_life_of_a_name_is_told_and_an_unmount_of_the_first_leaves_it() {
        let mut table = MountTable::default();
        let spec = volume("v", Medium::Disk);
        assert_eq!(table.put(PodUid(1), &life("v", 0), &spec), None);
        assert_eq!(table.put(PodUid(1), &life("v", 0), &spec), None, "a mount is idempotent");
        assert_eq!(table.put(PodUid(1), &life("v", 1), &spec), Some(life("v", 0)));
        table.take(PodUid(1), &life("v", 0));
        assert!(table.has(PodUid(1), &life("v", 1)));
    }

    #[test]
    fn only_the_disk_survives_a_loss_of_power() {
        let mut table = MountTable::default();
        table.put(PodUid(1), &life("disk", 0), &volume("disk", Medium::Disk));
        table.put(PodUid(1), &life("memory", 0), &volume("memory", Medium::Memory));
        table.lose_power();
        assert_eq!(table.names(PodUid(1)), vec![Name::from("disk")]);
    }
}
