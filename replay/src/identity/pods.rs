//! Pods: UIDs, names, and which life a name meant at which time.

use crate::evidence::{Name, Payload};
use crate::kept::{About, Kept};
use crate::names::{BySym, Names, Sym};
use crate::scan::is_uid;
use crate::stamp::{Moment, SECOND};
use crate::trace::{PodIx, PodLife};
use crate::verb::Verb;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
struct Life {
    pod: PodIx,
    begin: Option<Moment>,
    first: Moment,
    last: Moment,
    /// The first word of it is one of its end: it was there before.
    ending: bool,
}

/// Which of a name's lives without a UID is meant.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Nameless {
    /// The only one.
    Only,
    /// One that was there before those with a UID.
    Earlier,
    /// One of which only the name's beginning is known.
    Cut,
}

/// The pods of a trace.
pub struct Pods<'n> {
    /// All lives.
    pub lives: Vec<PodLife>,
    names: &'n Names,
    by_uid: BySym<PodIx>,
    /// Whether a name can be a UID.
    valid: BySym<bool>,
    /// Pods whose name others have had, too.
    shared_name: Vec<bool>,
    /// By name alone: lives with a UID, in the order of their first evidence.
    by_name: BTreeMap<Sym, Vec<Life>>,
    /// Lives that no UID is known for.
    nameless: BTreeMap<(Option<Sym>, Sym, Nameless), PodIx>,
    /// Which life of a name was spoken of last, by UID.
    recent: BySym<(PodIx, Moment)>,
    /// Joins that are inferred.
    pub inferred: u64,
}

fn can_be_uid(u: &Name) -> bool {
    is_uid(u.as_bytes()) || (u.len() >= 8 && !u.contains(['x', 'X', '{', '*', '<', '[']))
}

/// Words of a pod that was there before they were said.
fn ends(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::KillOrdered
            | Verb::TerminationBegan
            | Verb::TerminationSynced
            | Verb::StopRequested
            | Verb::GraceOverridden
            | Verb::KillPlanned
            | Verb::ContainerDead
            | Verb::ContainerExited
            | Verb::ContainerGone
            | Verb::StopReturned
            | Verb::StopFailed
            | Verb::UnmountStarted
            | Verb::Unmounted
            | Verb::UnmountFailed
            | Verb::UnmountAwaited
            | Verb::UnmountTimedOut
            | Verb::VolumesUnmounted
            | Verb::VolumesLeft
            | Verb::ContainersLeft
            | Verb::WorkerNotDone
            | Verb::SyncFailed
    )
}

impl<'n> Pods<'n> {
    /// Gathers every UID and name first: joins may be told after they are needed. `whole`: there are no others.
    pub fn gather(kept: &[Kept], names: &'n Names, whole: bool) -> Pods<'n> {
        let mut pods = Pods {
            lives: Vec::new(),
            names,
            by_uid: BySym::default(),
            valid: BySym::default(),
            shared_name: Vec::new(),
            by_name: BTreeMap::new(),
            nameless: BTreeMap::new(),
            recent: BySym::default(),
            inferred: 0,
        };
        let mut times: Vec<(Moment, Moment, bool)> = Vec::new();
        for k in kept {
            let Some(uid) = k.about.uid else { continue };
            let valid = pods.valid.room(uid);
            if !*valid.get_or_insert_with(|| can_be_uid(names.get(uid))) {
                continue;
            }
            let ix = pods.with_uid(uid);
            let slot = ix.0 as usize;
            if times.len() <= slot {
                times.push((k.at, k.at, ends(k.verb)));
            }
            if !k.untimed {
                let (first, last, ending) = &mut times[slot];
                *last = (*last).max(k.at);
                if k.at < *first {
                    (*first, *ending) = (k.at, ends(k.verb));
                }
            }
            let life = &mut pods.lives[slot];
            if !k.about.name_cut {
                let name = |sym: Option<Sym>| sym.map(|sym| names.get(sym).clone());
                life.name = life.name.take().or_else(|| name(k.about.pod));
                life.namespace = life.namespace.take().or_else(|| name(k.about.namespace));
            }
        }
        for (i, life) in pods.lives.iter().enumerate() {
            if let Some(name) = life.name.as_ref().and_then(|name| names.find(name)) {
                let (first, last, ending) = times[i];
                let pod = PodIx(u32::try_from(i).unwrap_or(u32::MAX));
                let life = Life { pod, begin: None, first, last, ending };
                pods.by_name.entry(name).or_default().push(life);
            }
        }
        pods.shared_name = vec![false; pods.lives.len()];
        for life in pods.by_name.values().filter(|lives| lives.len() > 1).flatten() {
            pods.shared_name[life.pod.0 as usize] = true;
        }
        pods.bound(kept);
        if whole {
            pods.by_elimination(kept);
        }
        pods
    }

    /// Whether a draft's UID was made unreadable by somebody.
    pub fn is_redacted(&self, about: &About) -> bool {
        about.uid.is_some() && self.uid(about).is_none()
    }

    /// The UID of a draft, if it can be one.
    fn uid(&self, about: &About) -> Option<Sym> {
        about.uid.filter(|uid| self.valid.get(*uid) == Some(&true))
    }

    fn push(&mut self, life: PodLife) -> PodIx {
        self.lives.push(life);
        PodIx(u32::try_from(self.lives.len() - 1).unwrap_or(u32::MAX))
    }

    fn with_uid(&mut self, sym: Sym) -> PodIx {
        if let Some(ix) = self.by_uid.get(sym) {
            return *ix;
        }
        let uid = self.names.get(sym).clone();
        let is_static = uid.len() == 32;
        let ix = self.push(PodLife { uid: Some(uid), is_static, ..PodLife::default() });
        *self.by_uid.room(sym) = Some(ix);
        ix
    }

    /// Where each life of a name begins: at the first word of its coming after the former life had gone.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "names the few verbs it reads; the others say nothing to it"
    )]
    fn bound(&mut self, kept: &[Kept]) {
        let mut comings: BTreeMap<Sym, Vec<Moment>> = BTreeMap::new();
        let mut goings: BTreeMap<Sym, Vec<Moment>> = BTreeMap::new();
        for k in kept {
            let Some(name) = k.about.pod.filter(|_| self.uid(&k.about).is_none()) else {
                continue;
            };
            match k.verb {
                Verb::PodAdded | Verb::PodReceived => comings.entry(name).or_default().push(k.at),
                Verb::PodRemoved => goings.entry(name).or_default().push(k.at),
                _ => {}
            }
        }
        for (name, lives) in &mut self.by_name {
            // A static pod that is first heard of as it ends is the former life, however long its end takes.
            let statics = &self.lives;
            let leaving = |l: &Life| l.ending && statics[l.pod.0 as usize].is_static;
            lives.sort_by_key(|l| (!leaving(l), l.first));
            let mut former = None;
            for life in lives {
                // The going before was its own, if its first word is one of its end.
                let leaves = leaving(life);
                let own = |t: &Moment| life.ending && (leaves || life.first.since(*t) < 10 * SECOND);
                let gone = goings
                    .get(name)
                    .and_then(|g| g.iter().filter(|t| **t <= life.first && !own(t)).max().copied());
                let after = gone.max(former);
                // It had come before it went.
                let went = goings
                    .get(name)
                    .and_then(|g| g.iter().filter(|t| **t <= life.first && own(t)).min().copied());
                let until = went.unwrap_or(life.first);
                let came = comings
                    .get(name)
                    .and_then(|c| c.iter().filter(|t| **t <= until && Some(**t) > after).min().copied());
                life.begin = match (came, after) {
                    (Some(came), _) => Some(came),
                    // Nobody said when it came: after the former life, or before all that is in view.
                    (None, Some(after)) => Some(after.plus(1)),
                    (None, None) => None,
                };
                former = Some(life.first).filter(|_| !leaves);
            }
        }
    }

    /// One UID without a name and one name without a UID, and no other: they are the same pod, though no line says it.
    fn by_elimination(&mut self, kept: &[Kept]) {
        let mut unnamed = self.lives.iter().enumerate().filter(|(_, l)| l.name.is_none());
        let (Some((slot, _)), None) = (unnamed.next(), unnamed.next()) else { return };
        let mut free: Option<(Sym, Option<Sym>, Verb)> = None;
        for k in kept {
            let Some(name) = k.about.pod.filter(|_| self.uid(&k.about).is_none() && !k.about.name_cut) else {
                continue;
            };
            if self.by_name.contains_key(&name) {
                continue;
            }
            match free {
                None => free = Some((name, k.about.namespace, k.verb)),
                Some((known, namespace, _)) if known == name && namespace == k.about.namespace => {}
                Some(_) => return,
            }
        }
        // A pod that comes into view only later is not the one whose remains were there before.
        let Some((name, namespace, first)) = free else { return };
        if matches!(first, Verb::PodAdded | Verb::PodReceived | Verb::PodApplied) {
            return;
        }
        let life = &mut self.lives[slot];
        life.name = Some(self.names.get(name).clone());
        life.namespace = namespace.map(|sym| self.names.get(sym).clone());
        life.inferred = true;
        self.inferred += 1;
        let pod = PodIx(u32::try_from(slot).unwrap_or(u32::MAX));
        let life = Life { pod, begin: None, first: Moment(i64::MIN), last: Moment(i64::MAX), ending: false };
        self.by_name.entry(name).or_default().push(life);
    }

    /// The pod of a draft, and whether the join is inferred.
    pub fn resolve(&mut self, k: &Kept) -> (Option<PodIx>, bool) {
        let about = &k.about;
        if let Some(uid) = self.uid(about) {
            return self.with_known_uid(uid, k);
        }
        let Some(sym) = about.pod else { return (None, false) };
        if about.name_cut {
            return self.by_prefix(about.namespace, sym);
        }
        let namespace = about.namespace.map(|sym| self.names.get(sym));
        let fits = |life: &PodLife| {
            namespace.is_none() || life.namespace.is_none() || life.namespace.as_ref() == namespace
        };
        let mut kind = Nameless::Only;
        if let Some(lives) = self.by_name.get(&sym) {
            let fitting = || lives.iter().filter(|l| fits(&self.lives[l.pod.0 as usize]));
            let chosen = fitting().rev().find(|l| l.begin.is_none_or(|b| b <= k.at)).map(|l| l.pod);
            if fitting().next().is_some() {
                kind = Nameless::Earlier;
            }
            if let Some(chosen) = chosen {
                let others =
                    fitting().any(|l| l.pod != chosen && l.last.plus(SECOND) >= k.at && l.first <= k.at);
                // Two lives at once (static pods): who was spoken of just before is meant.
                if others
                    && let Some((recent, at)) = self.recent.get(sym)
                    && k.at.since(*at) < SECOND
                {
                    self.inferred += 1;
                    return (Some(*recent), true);
                }
                let life = &mut self.lives[chosen.0 as usize];
                if life.namespace.is_none() {
                    life.namespace = namespace.cloned();
                }
                return (Some(chosen), others || life.inferred);
            }
        }
        let key = (about.namespace, sym, kind);
        if let Some(ix) = self.nameless.get(&key) {
            return (Some(*ix), false);
        }
        let name = self.names.get(sym).clone();
        let life = PodLife { namespace: namespace.cloned(), name: Some(name), ..PodLife::default() };
        let ix = self.push(life);
        self.nameless.insert(key, ix);
        (Some(ix), false)
    }

    /// The pod of a UID, which a draft says or its container's other lines tell.
    pub fn with_known_uid(&mut self, uid: Sym, k: &Kept) -> (Option<PodIx>, bool) {
        let ix = self.with_uid(uid);
        if self.shared_name.get(ix.0 as usize) == Some(&true)
            && let Some(name) = self.lives[ix.0 as usize].name.as_ref().and_then(|name| self.names.find(name))
        {
            *self.recent.room(name) = Some((ix, k.at));
        }
        if let Payload::Object(object) = &*k.payload
            && object.mirror_of.is_some()
        {
            // A mirror has a UID of its own; it is the static pod's shadow, not another pod's life.
            self.lives[ix.0 as usize].is_static = true;
        }
        (Some(ix), self.lives[ix.0 as usize].inferred)
    }

    /// A cut name is unknown, unless a single known one begins so (node-logs §1.7).
    fn by_prefix(&mut self, namespace: Option<Sym>, sym: Sym) -> (Option<PodIx>, bool) {
        let name = self.names.get(sym);
        let of = namespace.map(|sym| self.names.get(sym));
        let mut matching = self.lives.iter().enumerate().filter(|(_, l)| {
            // Cut before its slash, the beginning is a namespace's.
            let beginning = if namespace.is_none() { &l.namespace } else { &l.name };
            !l.cut
                && (namespace.is_none() || l.namespace.as_ref() == of)
                && beginning.as_deref().is_some_and(|n| !name.is_empty() && n.starts_with(&**name))
        });
        if let (Some((i, _)), None) = (matching.next(), matching.next()) {
            self.inferred += 1;
            return (Some(PodIx(u32::try_from(i).unwrap_or(u32::MAX))), true);
        }
        let key = (namespace, sym, Nameless::Cut);
        if let Some(ix) = self.nameless.get(&key) {
            return (Some(*ix), true);
        }
        let life =
            PodLife { namespace: of.cloned(), name: Some(name.clone()), cut: true, ..PodLife::default() };
        let ix = self.push(life);
        self.nameless.insert(key, ix);
        (Some(ix), false)
    }
}
