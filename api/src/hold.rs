//! Names that are still in flight (api-side C5, W5; its §6.3 question 5).
//!
//! Status is asynchronous: a container added, removed and added again as another one before any status was
//! written would pass the check against status, while the node may run the first one already. So a removed
//! name is held until the node has seen the generation that removed it; from then on its status speaks for
//! itself.

use nodefold_core::ids::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Removed names of one pod, each with the generation that removed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holds {
    containers: BTreeMap<Name, u64>,
    volumes: BTreeMap<Name, u64>,
}

impl Holds {
    pub fn hold_container(&mut self, name: &str, generation: u64) {
        self.containers.insert(name.into(), generation);
    }

    pub fn hold_volume(&mut self, name: &str, generation: u64) {
        self.volumes.insert(name.into(), generation);
    }

    /// The node has seen this generation.
    pub fn observed(&mut self, generation: u64) {
        self.containers.retain(|_, removed_at| *removed_at > generation);
        self.volumes.retain(|_, removed_at| *removed_at > generation);
    }

    /// The generation that removed this container, if the node hasn't seen it yet.
    pub fn container(&self, name: &str) -> Option<u64> {
        self.containers.get(name).copied()
    }

    /// The generation that removed this volume, if the node hasn't seen it yet.
    pub fn volume(&self, name: &str) -> Option<u64> {
        self.volumes.get(name).copied()
    }

    /// No name is held.
    pub fn is_empty(&self) -> bool {
        self.containers.is_empty() && self.volumes.is_empty()
    }

    /// For the digest.
    pub fn parts(&self) -> Vec<(&str, &str, u64)> {
        let containers = self.containers.iter().map(|(name, at)| ("container", &**name, *at));
        let volumes = self.volumes.iter().map(|(name, at)| ("volume", &**name, *at));
        containers.chain(volumes).collect()
    }
}
