//! Volumes: a name in a pod's spec, or a device of the node by its unique name.

use crate::klog::has_own_volume;
use crate::names::{Names, Sym};
use crate::trace::{PodIx, VolumeIx, VolumeLife};
use std::collections::BTreeMap;

/// What a draft says of a volume.
#[derive(Copy, Clone, Debug)]
pub struct Said {
    /// Its name in the spec.
    pub name: Option<Sym>,
    /// Its unique name.
    pub unique: Option<Sym>,
    /// Its plugin.
    pub plugin: Option<Sym>,
    /// A directory that was renamed.
    pub artifact: bool,
}

/// The volumes of a trace.
#[derive(Default)]
pub struct Volumes {
    /// All of them.
    pub lives: Vec<VolumeLife>,
    by_name: BTreeMap<(Option<PodIx>, Sym), VolumeIx>,
    by_unique: BTreeMap<(Option<PodIx>, Sym), VolumeIx>,
}

impl Volumes {
    /// The volume that is meant.
    pub fn resolve(&mut self, pod: Option<PodIx>, said: Said, names: &Names) -> Option<VolumeIx> {
        if said.name.is_none() && said.unique.is_none() {
            return None;
        }
        let per_pod = said.unique.is_some_and(|u| has_own_volume(names.get(u).as_bytes()));
        // A renamed directory has a unique name of its own and is its original all the same.
        let unique = said.unique.filter(|_| !said.artifact);
        let by_unique = unique.and_then(|u| {
            let exact = self.by_unique.get(&(pod, u)).copied();
            // A device has no pod, and a pod's volume may be told without it.
            exact.or_else(|| (!per_pod).then(|| self.by_unique.get(&(None, u)).copied()).flatten())
        });
        let by_name = said.name.and_then(|n| {
            let exact = self.by_name.get(&(pod, n)).copied();
            exact.or_else(|| pod.is_none().then(|| self.only(n, names)).flatten())
        });
        let ix = match by_unique.or(by_name) {
            Some(ix) => ix,
            None => {
                self.lives.push(VolumeLife { pod, ..VolumeLife::default() });
                VolumeIx(u32::try_from(self.lives.len() - 1).unwrap_or(u32::MAX))
            }
        };
        let life = &mut self.lives[ix.0 as usize];
        let name = |sym: Option<Sym>| sym.map(|sym| names.get(sym).clone());
        life.pod = life.pod.or(pod);
        life.name = life.name.take().or_else(|| name(said.name));
        life.unique = life.unique.take().or_else(|| name(unique));
        life.plugin = life.plugin.take().or_else(|| name(said.plugin));
        if let Some(name) = said.name {
            self.by_name.entry((pod, name)).or_insert(ix);
        }
        if let Some(unique) = unique {
            self.by_unique.entry((pod, unique)).or_insert(ix);
            if !per_pod {
                self.by_unique.entry((None, unique)).or_insert(ix);
            }
        }
        Some(ix)
    }

    /// The single volume of that name, if there is just one.
    fn only(&self, name: Sym, names: &Names) -> Option<VolumeIx> {
        let name = Some(names.get(name));
        let mut found = self.lives.iter().enumerate().filter(|(_, l)| l.name.as_ref() == name);
        match (found.next(), found.next()) {
            (Some((i, _)), None) => u32::try_from(i).ok().map(VolumeIx),
            _ => None,
        }
    }
}
