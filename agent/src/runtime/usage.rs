//! What containers take up of the disk: their writable layers and their logs.

use super::rotate::{log_name, rotated};
use super::{Phase, Runtime};
use crate::beneath;
use crate::usage;
use nodefold_core::ids::{ContainerId, PodUid};
use rustix::fs::{AtFlags, statat};
use std::collections::BTreeMap;
use std::path::PathBuf;

impl Runtime {
    /// The containers that have not ended, with what each may take up.
    pub fn measured_containers(&self) -> Vec<(PodUid, ContainerId, Option<u64>)> {
        let state = self.lock();
        let living = state.containers.iter().filter(|(_, known)| !matches!(known.phase, Phase::Ended(_)));
        living.map(|((pod, id), known)| (*pod, id.clone(), known.storage.own)).collect()
    }

    /// What each pod may take up in all, as the newest of its living containers were told.
    pub fn pod_storage_limits(&self) -> BTreeMap<PodUid, Option<u64>> {
        let state = self.lock();
        let living = state.containers.iter().filter(|(_, known)| !matches!(known.phase, Phase::Ended(_)));
        let mut limits: BTreeMap<PodUid, Option<u64>> = BTreeMap::new();
        for ((pod, _), known) in living {
            let limit = limits.entry(*pod).or_default();
            *limit = (*limit).max(known.storage.of_pod);
        }
        limits
    }

    /// What a container's writable layer and logs take up; `None`: it is not there, or can't be measured now.
    pub fn usage_of(&self, pod: PodUid, id: &ContainerId) -> Option<u64> {
        let layer = usage::of_tree(&beneath::open_root(&self.writable_layer(pod, id)?).ok()?).ok()?;
        let mut logs = 0_u64;
        for dir in self.logs_of(pod, &id.name) {
            let log = log_name(id);
            for name in rotated(&dir, &log).unwrap_or_default().into_iter().chain([log]) {
                let found = statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW);
                let blocks = found.map_or(0, |stat| u64::try_from(stat.st_blocks).unwrap_or(0));
                logs = logs.saturating_add(blocks.saturating_mul(512));
            }
        }
        Some(layer.saturating_add(logs))
    }

    /// Where what a container writes to its root lies.
    pub fn writable_layer(&self, pod: PodUid, id: &ContainerId) -> Option<PathBuf> {
        let sandbox = self.lock().containers.get(&(pod, id.clone())).map(|known| known.sandbox)?;
        Some(self.container_dir(pod, sandbox, id).join("upper"))
    }
}
