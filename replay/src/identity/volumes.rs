//! Volumes: a name in a pod's spec, or a device of the node by its unique name.

use crate::evidence::{Name, VolumeHint};
use crate::klog::has_own_volume;
use crate::trace::{PodIx, VolumeIx, VolumeLife};
use std::collections::BTreeMap;

/// The volumes of a trace.
#[derive(Default)]
pub struct Volumes {
    /// All of them.
    pub lives: Vec<VolumeLife>,
    by_name: BTreeMap<(Option<PodIx>, Name), VolumeIx>,
    by_unique: BTreeMap<(Option<PodIx>, Name), VolumeIx>,
}

impl Volumes {
    /// The volume of a hint.
    pub fn resolve(&mut self, pod: Option<PodIx>, hint: &VolumeHint) -> Option<VolumeIx> {
        if hint.is_empty() {
            return None;
        }
        let per_pod = hint.unique.as_deref().is_some_and(|u| has_own_volume(u.as_bytes()));
        // A renamed directory has a unique name of its own and is its original all the same.
        let unique = hint.unique.clone().filter(|_| !hint.artifact);
        let by_unique = unique.clone().and_then(|u| {
            let exact = self.by_unique.get(&(pod, u.clone())).copied();
            // A device has no pod, and a pod's volume may be told without it.
            exact.or_else(|| (!per_pod).then(|| self.by_unique.get(&(None, u)).copied()).flatten())
        });
        let by_name = hint.name.clone().and_then(|n| {
            let exact = self.by_name.get(&(pod, n.clone())).copied();
            exact.or_else(|| pod.is_none().then(|| self.only(&n)).flatten())
        });
        let ix = match by_unique.or(by_name) {
            Some(ix) => ix,
            None => {
                self.lives.push(VolumeLife { pod, ..VolumeLife::default() });
                VolumeIx(u32::try_from(self.lives.len() - 1).unwrap_or(u32::MAX))
            }
        };
        let life = &mut self.lives[ix.0 as usize];
        life.pod = life.pod.or(pod);
        life.name = life.name.take().or_else(|| hint.name.clone());
        life.unique = life.unique.take().or_else(|| unique.clone());
        life.plugin = life.plugin.take().or_else(|| hint.plugin.clone());
        if let Some(name) = &hint.name {
            self.by_name.entry((pod, name.clone())).or_insert(ix);
        }
        if let Some(unique) = unique {
            self.by_unique.entry((pod, unique.clone())).or_insert(ix);
            if !per_pod {
                self.by_unique.entry((None, unique)).or_insert(ix);
            }
        }
        Some(ix)
    }

    /// The single volume of that name, if there is just one.
    fn only(&self, name: &Name) -> Option<VolumeIx> {
        let mut found = self.lives.iter().enumerate().filter(|(_, l)| l.name.as_ref() == Some(name));
        match (found.next(), found.next()) {
            (Some((i, _)), None) => u32::try_from(i).ok().map(VolumeIx),
            _ => None,
        }
    }
}
