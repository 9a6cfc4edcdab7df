//! Containers and sandboxes: the runtime's ids, the names of the spec, and which of them are one instance.
//!
//! Kubernetes Events know names, PLEG knows ids, statuses know both. An instance that was told by name alone gets its
//! id when a line has both, or when it is the only one that the id can be.

use super::Placed;
use crate::evidence::{Name, Payload, StatusSeen, Witness};
use crate::scan::is_uid;
use crate::stamp::{Moment, SECOND};
use crate::trace::{ContainerIx, ContainerLife, PodIx};
use crate::verb::Verb;
use std::collections::BTreeMap;

const FULL_ID: usize = 64;
/// Events are told this late at most, and PLEG sees a start this late.
const LATE: i64 = 20 * SECOND;

/// What is known of an id from anywhere in the input.
#[derive(Clone, Debug, Default)]
struct Known {
    name: Option<Name>,
    uid: Option<Name>,
    sandbox: Option<bool>,
    deduced: bool,
    in_sandbox: Option<Name>,
}

#[derive(Clone, Debug)]
struct Instance {
    ix: ContainerIx,
    first: Moment,
    /// Who has told of its creation and its start: each tells once.
    created_by: u16,
    started_by: u16,
    ended: bool,
    has_id: bool,
}

/// The containers of a trace.
pub struct Containers {
    /// All lives.
    pub lives: Vec<ContainerLife>,
    ids: BTreeMap<Name, Known>,
    by_id: BTreeMap<Name, ContainerIx>,
    by_name: BTreeMap<(PodIx, Name), Vec<Instance>>,
    /// Joins that are inferred.
    pub inferred: u64,
}

fn bit(witness: Witness) -> u16 {
    match witness {
        // Event copies in the log and Events of the API are two tellings of the same.
        Witness::Kubelet => 1,
        Witness::Events => 2,
        Witness::Runtime => 4,
        Witness::RuntimeEvents => 8,
        Witness::RuntimeList => 16,
        Witness::Api => 32,
        Witness::Audit => 64,
        Witness::Mounts | Witness::Checkpoint | Witness::System | Witness::Driver | Witness::Journal => 128,
    }
}

/// The status that a draft carries.
pub fn status_of(payload: &Payload) -> Option<&StatusSeen> {
    match payload {
        Payload::Status(status) => Some(status),
        Payload::Object(object) => Some(&object.status),
        Payload::Nothing
        | Payload::Grace(_)
        | Payload::Exit(..)
        | Payload::Text(_)
        | Payload::Retry { .. }
        | Payload::Count(..)
        | Payload::Phase { .. }
        | Payload::Names(_)
        | Payload::Other(_) => None,
    }
}

impl Containers {
    /// Gathers every id with what any line says of it.
    pub fn gather(placed: &[Placed]) -> Containers {
        let mut ids: BTreeMap<Name, Known> = BTreeMap::new();
        for p in placed {
            let d = &p.draft;
            if let Some(id) = d.container.id.as_ref().filter(|i| i.len() == FULL_ID) {
                let known = ids.entry(id.clone()).or_default();
                known.name = known.name.take().or_else(|| d.container.name.clone());
                known.sandbox = known.sandbox.or(d.container.sandbox);
                known.uid = known.uid.take().or_else(|| d.pod.uid.clone().filter(|u| is_uid(u.as_bytes())));
                known.in_sandbox = known.in_sandbox.take().or_else(|| d.volume.path.clone());
                if matches!(
                    d.verb,
                    Verb::StopRequested | Verb::StopReturned | Verb::HookStarted | Verb::StartFailed
                ) {
                    known.sandbox = known.sandbox.or(Some(false));
                }
            }
            for c in status_of(&d.payload).map(|s| s.containers.as_slice()).unwrap_or_default() {
                let both = [c.id.as_ref(), c.last.as_ref().map(|(id, ..)| id)];
                for id in both.into_iter().flatten().filter(|i| i.len() == FULL_ID) {
                    let known = ids.entry(id.clone()).or_default();
                    known.name = known.name.take().or_else(|| c.name.clone());
                    known.sandbox = Some(false);
                    known.uid =
                        known.uid.take().or_else(|| d.pod.uid.clone().filter(|u| is_uid(u.as_bytes())));
                }
            }
        }
        let sandboxes: Vec<Name> = ids.values().filter_map(|k| k.in_sandbox.clone()).collect();
        for sandbox in sandboxes {
            ids.entry(sandbox).or_default().sandbox = Some(true);
        }
        // A container's pod is its sandbox' pod.
        let pods: BTreeMap<Name, Name> =
            ids.iter().filter_map(|(id, k)| Some((id.clone(), k.uid.clone()?))).collect();
        for known in ids.values_mut() {
            if known.uid.is_none()
                && let Some(uid) = known.in_sandbox.as_ref().and_then(|s| pods.get(s))
            {
                known.uid = Some(uid.clone());
            }
        }
        deduce_sandboxes(&mut ids);
        Containers { lives: Vec::new(), ids, by_id: BTreeMap::new(), by_name: BTreeMap::new(), inferred: 0 }
    }

    fn push(&mut self, life: ContainerLife) -> ContainerIx {
        self.lives.push(life);
        ContainerIx(u32::try_from(self.lives.len() - 1).unwrap_or(u32::MAX))
    }

    /// The full id of a cut one: the single known id that begins so.
    fn full(&mut self, id: &Name) -> (Name, bool) {
        if id.len() == FULL_ID || self.ids.contains_key(id) {
            return (id.clone(), false);
        }
        let mut matching = self.ids.range(id.clone()..).take_while(|(k, _)| k.starts_with(&**id));
        match (matching.next(), matching.next()) {
            (Some((full, _)), None) => (full.clone(), true),
            _ => (id.clone(), false),
        }
    }

    /// The pod that an id's other lines tell.
    pub fn pod_of_id(&self, id: &Name) -> Option<&Name> {
        self.ids.get(id).and_then(|k| k.uid.as_ref())
    }

    /// The container of a draft, and whether the join is inferred.
    pub fn resolve(&mut self, p: &Placed, pod: Option<PodIx>) -> (Option<ContainerIx>, bool) {
        let hint = &p.draft.container;
        match (&hint.id, &hint.name) {
            (Some(id), _) => {
                let (id, inferred) = self.full(id);
                let ix = self.with_id(&id, p, pod);
                self.inferred += u64::from(inferred);
                (Some(ix), inferred)
            }
            (None, Some(name)) => match pod {
                Some(pod) => (self.with_name(pod, name, p), false),
                None => (None, false),
            },
            (None, None) => (None, false),
        }
    }

    fn with_id(&mut self, id: &Name, p: &Placed, pod: Option<PodIx>) -> ContainerIx {
        if let Some(ix) = self.by_id.get(id).copied() {
            let life = &mut self.lives[ix.0 as usize];
            life.pod = life.pod.or(pod);
            self.mark(ix, p);
            return ix;
        }
        let known = self.ids.get(id).cloned().unwrap_or_default();
        let sandbox = known.sandbox.or(p.draft.container.sandbox).unwrap_or(false);
        let name = known.name.clone().or_else(|| p.draft.container.name.clone());
        // An instance that was told by name alone may be this one.
        let waiting = match (pod, &name, sandbox) {
            (Some(pod), Some(name), false) => self.waiting(pod, Some(name), p.at),
            (Some(pod), None, false) => self.waiting(pod, None, p.at),
            _ => None,
        };
        let ix = match waiting {
            Some((ix, by_name)) => {
                self.inferred += u64::from(!by_name);
                let life = &mut self.lives[ix.0 as usize];
                life.id = Some(id.clone());
                ix
            }
            None => {
                let life = ContainerLife {
                    pod,
                    name: name.clone().filter(|_| !sandbox),
                    id: Some(id.clone()),
                    sandbox,
                    deduced: known.deduced,
                    attempt: p.draft.container.attempt,
                    ..ContainerLife::default()
                };
                let ix = self.push(life);
                if let (Some(pod), Some(name), false) = (pod, &name, sandbox) {
                    self.by_name.entry((pod, name.clone())).or_default().push(Instance {
                        ix,
                        first: p.at,
                        created_by: 0,
                        started_by: 0,
                        ended: false,
                        has_id: true,
                    });
                }
                ix
            }
        };
        self.by_id.insert(id.clone(), ix);
        self.mark(ix, p);
        ix
    }

    /// The instance without an id that this one may be: of that name, or the only one of the pod.
    fn waiting(&mut self, pod: PodIx, name: Option<&Name>, at: Moment) -> Option<(ContainerIx, bool)> {
        let from = (pod, Name::from(""));
        let mut found: Option<(&Name, usize)> = None;
        for ((of, n), list) in self.by_name.range(from..) {
            if *of != pod {
                break;
            }
            if name.is_some_and(|name| name != n) {
                continue;
            }
            let open = |i: &Instance| !i.has_id && (!i.ended || at.since(i.first) < LATE);
            for (k, _) in list.iter().enumerate().filter(|(_, i)| open(i)) {
                if found.is_some() {
                    // By name the oldest is meant; without one there is no telling.
                    name?;
                    continue;
                }
                found = Some((n, k));
            }
        }
        let (n, k) = found.map(|(n, k)| (n.clone(), k))?;
        let instance = &mut self.by_name.get_mut(&(pod, n))?[k];
        instance.has_id = true;
        Some((instance.ix, name.is_some()))
    }

    /// Notes what the draft says of the instance's stage.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "names the few verbs it reads; the others say nothing to it"
    )]
    fn mark(&mut self, ix: ContainerIx, p: &Placed) {
        let life = &self.lives[ix.0 as usize];
        let (Some(pod), Some(name)) = (life.pod, life.name.clone()) else { return };
        let list = self.by_name.entry((pod, name)).or_default();
        if let Some(instance) = list.iter_mut().find(|i| i.ix == ix) {
            match p.draft.verb {
                Verb::ContainerCreated => instance.created_by |= bit(p.draft.witness),
                Verb::ContainerStarted => instance.started_by |= bit(p.draft.witness),
                Verb::ContainerDead | Verb::ContainerExited | Verb::ContainerGone | Verb::StopReturned => {
                    instance.ended = true;
                }
                _ => {}
            }
        }
    }

    /// The instance that a name means at this time.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "names the few verbs it reads; the others say nothing to it"
    )]
    fn with_name(&mut self, pod: PodIx, name: &Name, p: &Placed) -> Option<ContainerIx> {
        let verb = p.draft.verb;
        let who = bit(p.draft.witness);
        let others = self.by_name.get(&(pod, name.clone())).is_some_and(|l| !l.is_empty());
        let list = self.by_name.entry((pod, name.clone())).or_default();
        let near = |i: &Instance| p.at.since(i.first).abs() < LATE || !i.ended;
        let events = p.draft.witness == Witness::Events;
        let nearest = |list: &[Instance], free: fn(&Instance, u16) -> bool| {
            let fits =
                list.iter().enumerate().filter(|(_, i)| free(i, who) && p.at.since(i.first).abs() < LATE);
            fits.min_by_key(|(_, i)| p.at.since(i.first).abs()).map(|(k, _)| k)
        };
        let chosen = match verb {
            Verb::ContainerCreated if events => nearest(list, |i, who| i.created_by & who == 0),
            Verb::ContainerStarted if events => nearest(list, |i, who| i.started_by & who == 0),
            _ if events => list.iter().rposition(|i| i.first <= p.at.plus(SECOND)),
            Verb::CreateStarted => {
                list.iter().position(|i| i.created_by == 0 && i.started_by == 0 && !i.ended)
            }
            Verb::ContainerCreated => list.iter().position(|i| {
                i.created_by & who == 0 && i.started_by & who == 0 && near(i) && p.at.since(i.first) < LATE
            }),
            Verb::ContainerStarted => list
                .iter()
                .position(|i| i.started_by & who == 0 && near(i) && p.at.since(i.first) < 10 * LATE),
            // What is said without a stage is said of the one that is there.
            _ => list.len().checked_sub(1),
        };
        if let Some(k) = chosen {
            let ix = list[k].ix;
            self.mark(ix, p);
            return Some(ix);
        }
        let begins = matches!(verb, Verb::CreateStarted | Verb::ContainerCreated | Verb::ContainerStarted);
        // Compressed and late Events make no instances of their own where better witnesses speak.
        if p.draft.witness == Witness::Events && others {
            return list.last().map(|i| i.ix);
        }
        if !begins && others {
            return list.last().map(|i| i.ix);
        }
        let life = ContainerLife { pod: Some(pod), name: Some(name.clone()), ..ContainerLife::default() };
        let ix = self.push(life);
        self.by_name.entry((pod, name.clone())).or_default().push(Instance {
            ix,
            first: p.at,
            created_by: 0,
            started_by: 0,
            ended: false,
            has_id: false,
        });
        self.mark(ix, p);
        Some(ix)
    }

    /// Takes ends that statuses tell: the runtime's own times, in whole seconds.
    pub fn ends(&mut self, placed: &[Placed], mut moment: impl FnMut(u32, crate::stamp::Stamp) -> Moment) {
        for p in placed {
            if let (Payload::Exit(_, Some(at)), Some(id)) = (&p.draft.payload, &p.draft.container.id)
                && let Some(ix) = self.by_id.get(id).copied()
            {
                let life = &mut self.lives[ix.0 as usize];
                life.finished_at = Some(moment(p.file, *at));
                life.finished_coarse = false;
            }
            for c in status_of(&p.draft.payload).map(|s| s.containers.as_slice()).unwrap_or_default() {
                let of_state = c.id.as_ref().zip(c.finished_at).map(|(id, at)| (id.clone(), at));
                let of_last = c.last.as_ref().and_then(|(id, _, at)| Some((id.clone(), (*at)?)));
                for (id, at) in of_state.into_iter().chain(of_last) {
                    if let Some(ix) = self.by_id.get(&id).copied() {
                        let life = &mut self.lives[ix.0 as usize];
                        if life.finished_at.is_none() {
                            life.finished_at = Some(moment(p.file, at));
                            life.finished_coarse = at.of_day % SECOND == 0;
                        }
                    }
                }
                if let Some(ix) = c.id.as_ref().and_then(|id| self.by_id.get(id)).copied() {
                    self.lives[ix.0 as usize].init |= c.init;
                }
            }
        }
    }
}

/// A pod whose containers are known by id has one id more: its sandbox (derived).
fn deduce_sandboxes(ids: &mut BTreeMap<Name, Known>) {
    let mut by_pod: BTreeMap<Name, (u32, u32, Vec<Name>)> = BTreeMap::new();
    for (id, known) in ids.iter() {
        let Some(uid) = &known.uid else { continue };
        let entry = by_pod.entry(uid.clone()).or_default();
        match (known.sandbox, &known.name) {
            (Some(true), _) => entry.0 += 1,
            (Some(false), _) | (None, Some(_)) => entry.1 += 1,
            (None, None) => entry.2.push(id.clone()),
        }
    }
    for (sandboxes, containers, unknown) in by_pod.into_values() {
        if let ([one], 0, true) = (unknown.as_slice(), sandboxes, containers > 0)
            && let Some(known) = ids.get_mut(one)
        {
            known.sandbox = Some(true);
            known.deduced = true;
        }
    }
}
