//! What a trace proves about a pod's allocation. It is shown whole by commands that carry it; in between it is one of
//! the desired versions that arrived since, and nothing says which.

use super::container::find_container;
use nodefold_core::spec::{Container, PodSpec};
use std::sync::Arc;

/// Versions kept while no command shows which one was allocated. A pod that is never allocated anew may be asked for
/// changes for ever; beyond this the trace proves nothing until the allocation is shown again.
const VERSIONS_KEPT: usize = 64;

/// A desired version.
#[derive(Clone, Debug)]
pub struct Desired {
    /// The record that brought it.
    pub index: usize,
    /// What it asks for.
    pub spec: Arc<PodSpec>,
}

/// How an allocation that a command carries fits what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// It is the one shown before.
    Unchanged,
    /// It is the desired version at this place of `versions`.
    Version(usize),
    /// It is one that the pull or resize of this record has ruled out.
    RuledOut {
        /// The record that acted on a newer version.
        by: usize,
    },
    /// It is none of them.
    NoVersion,
    /// Nothing can be said.
    Unknown,
}

/// A pod's allocation as far as it is known.
#[derive(Clone, Debug, Default)]
pub struct AllocationView {
    /// The versions that may be allocated, oldest first. If an allocation was shown, the first is the one it equals.
    pub versions: Vec<Desired>,
    /// The allocation shown last, and the record that showed it.
    pub shown: Option<(usize, Arc<PodSpec>)>,
    /// The record of the first version that may have been allocated since the allocation was shown before.
    pub asked: Option<usize>,
    /// Versions were forgotten: absence from `versions` proves nothing.
    pub cut: bool,
    /// While KEP-5972's gate was off, images bypassed allocation.
    pub images_bypass: bool,
    /// A pull or resize proved that one of `versions` is allocated, not what was shown before.
    ruled_out: Option<(usize, Vec<Arc<PodSpec>>)>,
}

impl AllocationView {
    /// A desired version arrived.
    pub fn desired(&mut self, index: usize, spec: &Arc<PodSpec>) {
        if self.versions.last().is_some_and(|newest| self.same(&newest.spec, spec)) {
            // Nothing that allocation decides is new; what bypasses it (ephemeral containers) may be.
            if let Some(newest) = self.versions.last_mut() {
                newest.spec = spec.clone();
            }
            return;
        }
        if self.versions.len() >= VERSIONS_KEPT {
            self.versions.remove(1);
            self.cut = true;
        }
        self.versions.push(Desired { index, spec: spec.clone() });
    }

    /// How `spec`, carried by a command, fits.
    pub fn fit(&self, spec: &Arc<PodSpec>) -> Fit {
        if let Some((_, shown)) = &self.shown
            && self.same(shown, spec)
        {
            return Fit::Unchanged;
        }
        if let Some(place) = self.versions.iter().position(|v| self.same(&v.spec, spec)) {
            return Fit::Version(place);
        }
        if self.cut || self.versions.is_empty() {
            return Fit::Unknown;
        }
        match &self.ruled_out {
            Some((by, specs)) if specs.iter().any(|s| self.same(s, spec)) => Fit::RuledOut { by: *by },
            Some(_) | None => Fit::NoVersion,
        }
    }

    /// A command showed `spec` as the allocation.
    pub fn show(&mut self, index: usize, spec: &Arc<PodSpec>) {
        match self.fit(spec) {
            Fit::Unchanged => return,
            Fit::Version(place) => {
                self.note_asked();
                self.versions.drain(..place);
                self.cut = false;
            }
            Fit::RuledOut { .. } | Fit::NoVersion | Fit::Unknown => {}
        }
        self.ruled_out = None;
        self.shown = Some((index, spec.clone()));
    }

    /// The first of `versions` is the allocation that was shown, if one was.
    fn note_asked(&mut self) {
        if self.shown.is_none() && self.ruled_out.is_some() {
            // What was implied since the allocation was shown noted it already.
            return;
        }
        let first_new = usize::from(self.shown.is_some());
        self.asked = self.versions.get(first_new).map(|v| v.index).or(self.asked);
    }

    /// A command acted on something that only the versions from `place` on have: one of those is allocated.
    pub fn imply(&mut self, index: usize, place: usize) {
        self.note_asked();
        let dropped = self.versions.drain(..place).map(|v| v.spec);
        let before = self.shown.take().map(|(_, s)| s);
        self.ruled_out = Some((index, before.into_iter().chain(dropped).collect()));
    }

    /// Every spec that may be allocated now.
    pub fn possible(&self) -> impl Iterator<Item = &Arc<PodSpec>> {
        self.shown.iter().map(|(_, s)| s).chain(self.versions.iter().map(|v| &v.spec))
    }

    /// An allocation was shown, be it that what was implied since says that another one holds now.
    pub fn was_shown(&self) -> bool {
        self.shown.is_some() || self.ruled_out.is_some()
    }

    /// Whether nothing at all is known, so that nothing can be held against it.
    pub fn unknown(&self) -> bool {
        self.cut || (self.shown.is_none() && self.versions.is_empty())
    }

    /// The first version whose container of that name passes `test`; `Some(0)` also if the shown one does.
    pub fn first_with(&self, name: &str, test: impl Fn(&Container) -> bool) -> Option<usize> {
        let has = |spec: &PodSpec| {
            find_container(spec, name).is_some_and(|(c, _)| test(c))
                || spec.ephemeral_containers.iter().any(|c| &*c.name == name && test(c))
        };
        if self.shown.as_ref().is_some_and(|(_, s)| has(s)) {
            return Some(0);
        }
        self.versions.iter().position(|v| has(&v.spec))
    }

    /// Whether two specs agree in every field that only allocation may change (kubelet-pods §1.2): the containers
    /// and volumes, whole, and the pod's own resources. Ephemeral containers and deadlines bypass it.
    pub fn same(&self, a: &Arc<PodSpec>, b: &Arc<PodSpec>) -> bool {
        Arc::ptr_eq(a, b) || (self.same_containers(a, b) && same_volumes(a, b) && a.resources == b.resources)
    }

    /// Whether two specs have equal containers.
    pub fn same_containers(&self, a: &PodSpec, b: &PodSpec) -> bool {
        self.same_list(&a.containers, &b.containers) && self.same_list(&a.init_containers, &b.init_containers)
    }

    fn same_list(&self, a: &[Arc<Container>], b: &[Arc<Container>]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.same_container(a, b))
    }

    /// Whether two definitions are equal as far as allocation decides.
    pub fn same_container(&self, a: &Arc<Container>, b: &Arc<Container>) -> bool {
        if Arc::ptr_eq(a, b) || a == b {
            return true;
        }
        self.images_bypass && {
            let mut a = Container::clone(a);
            a.image = b.image.clone();
            a == **b
        }
    }
}

/// Whether two specs have equal volumes.
pub fn same_volumes(a: &PodSpec, b: &PodSpec) -> bool {
    a.volumes.len() == b.volumes.len()
        && a.volumes.iter().zip(&b.volumes).all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
}
