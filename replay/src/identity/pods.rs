//! Pods: UIDs, names, and which life a name meant at which time.

use super::Placed;
use crate::evidence::{Name, Payload, PodHint};
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

/// The pods of a trace.
pub struct Pods {
    /// All lives.
    pub lives: Vec<PodLife>,
    by_uid: BTreeMap<Name, PodIx>,
    /// The UID that was asked for last: a log speaks of one pod for a while.
    last_uid: Option<(Name, PodIx)>,
    /// Pods whose name others have had, too.
    shared_name: Vec<bool>,
    /// By name alone: lives with a UID, in the order of their first evidence.
    by_name: BTreeMap<Name, Vec<Life>>,
    /// Lives that no UID is known for.
    nameless: BTreeMap<(Option<Name>, Name, bool), PodIx>,
    /// Which life of a name was spoken of last, by UID.
    recent: BTreeMap<Name, (PodIx, Moment)>,
    /// Joins that are inferred.
    pub inferred: u64,
    /// UIDs that somebody made unreadable.
    pub redacted: u64,
}

fn valid(hint: &PodHint) -> Option<&Name> {
    hint.uid
        .as_ref()
        .filter(|u| is_uid(u.as_bytes()) || (u.len() >= 8 && !u.contains(['x', 'X', '{', '*', '<', '['])))
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

impl Pods {
    /// Gathers every UID and name first: joins may be told after they are needed.
    pub fn gather(placed: &[Placed]) -> Pods {
        let mut pods = Pods {
            lives: Vec::new(),
            by_uid: BTreeMap::new(),
            last_uid: None,
            shared_name: Vec::new(),
            by_name: BTreeMap::new(),
            nameless: BTreeMap::new(),
            recent: BTreeMap::new(),
            inferred: 0,
            redacted: 0,
        };
        let mut times: Vec<(Moment, Moment, bool)> = Vec::new();
        for p in placed {
            let hint = &p.draft.pod;
            let Some(uid) = valid(hint) else {
                pods.redacted += u64::from(hint.uid.is_some());
                continue;
            };
            let ix = pods.with_uid(uid);
            let slot = ix.0 as usize;
            if times.len() <= slot {
                times.push((p.at, p.at, ends(p.draft.verb)));
            }
            if !p.untimed {
                let (first, last, ending) = &mut times[slot];
                *last = (*last).max(p.at);
                if p.at < *first {
                    (*first, *ending) = (p.at, ends(p.draft.verb));
                }
            }
            let life = &mut pods.lives[slot];
            if !hint.cut {
                life.name = life.name.take().or_else(|| hint.name.clone());
                life.namespace = life.namespace.take().or_else(|| hint.namespace.clone());
            }
        }
        for (i, life) in pods.lives.iter().enumerate() {
            if let Some(name) = &life.name {
                let (first, last, ending) = times[i];
                let pod = PodIx(u32::try_from(i).unwrap_or(u32::MAX));
                let life = Life { pod, begin: None, first, last, ending };
                pods.by_name.entry(name.clone()).or_default().push(life);
            }
        }
        pods.shared_name = vec![false; pods.lives.len()];
        for life in pods.by_name.values().filter(|lives| lives.len() > 1).flatten() {
            pods.shared_name[life.pod.0 as usize] = true;
        }
        pods.bound(placed);
        pods.by_elimination(placed);
        pods
    }

    fn push(&mut self, life: PodLife) -> PodIx {
        self.lives.push(life);
        PodIx(u32::try_from(self.lives.len() - 1).unwrap_or(u32::MAX))
    }

    fn with_uid(&mut self, uid: &Name) -> PodIx {
        if let Some((_, ix)) = self.last_uid.as_ref().filter(|(last, _)| last == uid) {
            return *ix;
        }
        if let Some(ix) = self.by_uid.get(uid).copied() {
            self.last_uid = Some((uid.clone(), ix));
            return ix;
        }
        let is_static = uid.len() == 32;
        let ix = self.push(PodLife { uid: Some(uid.clone()), is_static, ..PodLife::default() });
        self.by_uid.insert(uid.clone(), ix);
        ix
    }

    /// Where each life of a name begins: at the first word of its coming after the former life had gone.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "names the few verbs it reads; the others say nothing to it"
    )]
    fn bound(&mut self, placed: &[Placed]) {
        let mut comings: BTreeMap<&Name, Vec<Moment>> = BTreeMap::new();
        let mut goings: BTreeMap<&Name, Vec<Moment>> = BTreeMap::new();
        for p in placed {
            let Some(name) = p.draft.pod.name.as_ref().filter(|_| valid(&p.draft.pod).is_none()) else {
                continue;
            };
            match p.draft.verb {
                Verb::PodAdded | Verb::PodReceived => comings.entry(name).or_default().push(p.at),
                Verb::PodRemoved => goings.entry(name).or_default().push(p.at),
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
    fn by_elimination(&mut self, placed: &[Placed]) {
        let mut unnamed = self.lives.iter().enumerate().filter(|(_, l)| l.name.is_none());
        let (Some((slot, _)), None) = (unnamed.next(), unnamed.next()) else { return };
        let mut free: Option<(&PodHint, Verb)> = None;
        for p in placed {
            let hint = &p.draft.pod;
            let Some(name) = hint.name.as_ref().filter(|_| valid(hint).is_none() && !hint.cut) else {
                continue;
            };
            if self.by_name.contains_key(name) {
                continue;
            }
            match free {
                None => free = Some((hint, p.draft.verb)),
                Some((known, _)) if known.name == hint.name && known.namespace == hint.namespace => {}
                Some(_) => return,
            }
        }
        // A pod that comes into view only later is not the one whose remains were there before.
        let Some((hint, first)) = free else { return };
        if matches!(first, Verb::PodAdded | Verb::PodReceived | Verb::PodApplied) {
            return;
        }
        let life = &mut self.lives[slot];
        life.name.clone_from(&hint.name);
        life.namespace.clone_from(&hint.namespace);
        life.inferred = true;
        self.inferred += 1;
        if let Some(name) = &hint.name {
            let pod = PodIx(u32::try_from(slot).unwrap_or(u32::MAX));
            let life =
                Life { pod, begin: None, first: Moment(i64::MIN), last: Moment(i64::MAX), ending: false };
            self.by_name.entry(name.clone()).or_default().push(life);
        }
    }

    /// The pod of a draft, and whether the join is inferred.
    pub fn resolve(&mut self, p: &Placed) -> (Option<PodIx>, bool) {
        let hint = &p.draft.pod;
        if let Some(uid) = valid(hint) {
            return self.with_known_uid(uid, p);
        }
        let Some(name) = hint.name.clone() else { return (None, false) };
        if hint.cut {
            return self.by_prefix(hint, &name);
        }
        let fits = |life: &PodLife| {
            hint.namespace.is_none() || life.namespace.is_none() || life.namespace == hint.namespace
        };
        let mut earlier = false;
        if let Some(lives) = self.by_name.get(&name) {
            let lives: Vec<&Life> = lives.iter().filter(|l| fits(&self.lives[l.pod.0 as usize])).collect();
            let chosen = lives.iter().rev().find(|l| l.begin.is_none_or(|b| b <= p.at)).map(|l| l.pod);
            earlier = !lives.is_empty();
            if let Some(chosen) = chosen {
                let others =
                    lives.iter().any(|l| l.pod != chosen && l.last.plus(SECOND) >= p.at && l.first <= p.at);
                // Two lives at once (static pods): who was spoken of just before is meant.
                if others
                    && let Some((recent, at)) = self.recent.get(&name)
                    && p.at.since(*at) < SECOND
                {
                    self.inferred += 1;
                    return (Some(*recent), true);
                }
                self.fill(chosen, hint);
                return (Some(chosen), others || self.lives[chosen.0 as usize].inferred);
            }
        }
        let key = (hint.namespace.clone(), name.clone(), earlier);
        let key = match self.nameless.get(&key) {
            Some(ix) => return (Some(*ix), false),
            None => key,
        };
        let life = PodLife { namespace: hint.namespace.clone(), name: Some(name), ..PodLife::default() };
        let ix = self.push(life);
        self.nameless.insert(key, ix);
        (Some(ix), false)
    }

    /// The pod of a UID, which a draft says or its container's other lines tell.
    pub fn with_known_uid(&mut self, uid: &Name, p: &Placed) -> (Option<PodIx>, bool) {
        let ix = self.with_uid(uid);
        if self.shared_name.get(ix.0 as usize) == Some(&true)
            && let Some(name) = self.lives[ix.0 as usize].name.clone()
        {
            self.recent.insert(name, (ix, p.at));
        }
        if let Payload::Object(object) = &p.draft.payload
            && object.mirror_of.is_some()
        {
            // A mirror has a UID of its own; it is the static pod's shadow, not another pod's life.
            self.lives[ix.0 as usize].is_static = true;
        }
        (Some(ix), self.lives[ix.0 as usize].inferred)
    }

    fn fill(&mut self, pod: PodIx, hint: &PodHint) {
        let life = &mut self.lives[pod.0 as usize];
        if life.namespace.is_none() {
            life.namespace.clone_from(&hint.namespace);
        }
    }

    /// A cut name is unknown, unless a single known one begins so (node-logs §1.7).
    fn by_prefix(&mut self, hint: &PodHint, name: &Name) -> (Option<PodIx>, bool) {
        let mut matching = self.lives.iter().enumerate().filter(|(_, l)| {
            // Cut before its slash, the beginning is a namespace's.
            let of = if hint.namespace.is_none() { &l.namespace } else { &l.name };
            !l.cut
                && (hint.namespace.is_none() || l.namespace == hint.namespace)
                && of.as_deref().is_some_and(|n| !name.is_empty() && n.starts_with(&**name))
        });
        if let (Some((i, _)), None) = (matching.next(), matching.next()) {
            self.inferred += 1;
            return (Some(PodIx(u32::try_from(i).unwrap_or(u32::MAX))), true);
        }
        let key = (hint.namespace.clone(), format!("{name}\u{2026}").into(), false);
        if let Some(ix) = self.nameless.get(&key) {
            return (Some(*ix), true);
        }
        let life = PodLife {
            namespace: hint.namespace.clone(),
            name: Some(name.clone()),
            cut: true,
            ..PodLife::default()
        };
        let ix = self.push(life);
        self.nameless.insert(key, ix);
        (Some(ix), false)
    }
}
