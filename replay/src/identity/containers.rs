//! Containers and sandboxes: the runtime's ids, the names of the spec, and which of them are one instance.
//!
//! Kubernetes Events know names, PLEG knows ids, statuses know both. An instance that was told by name alone gets its
//! id when a line has both, or when it is the only one that the id can be.

use crate::evidence::{Name, Payload, StatusSeen, Witness};
use crate::kept::Kept;
use crate::names::{BySym, Names, Sym};
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
    name: Option<Sym>,
    uid: Option<Sym>,
    sandbox: Option<bool>,
    deduced: bool,
    in_sandbox: Option<Sym>,
}

/// What is known of each id.
#[derive(Default)]
struct Ids {
    all: Vec<(Sym, Known)>,
    places: BySym<u32>,
}

impl Ids {
    fn get(&self, id: Sym) -> Option<&Known> {
        self.places.get(id).map(|place| &self.all[*place as usize].1)
    }

    fn room(&mut self, id: Sym) -> &mut Known {
        let place = self.places.room(id).get_or_insert_with(|| {
            self.all.push((id, Known::default()));
            u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX)
        });
        &mut self.all[*place as usize].1
    }
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
pub struct Containers<'n> {
    /// All lives.
    pub lives: Vec<ContainerLife>,
    names: &'n Names,
    ids: Ids,
    /// All ids in the order of their letters, once a cut one is looked for.
    sorted: std::cell::OnceCell<Vec<Sym>>,
    by_id: BySym<ContainerIx>,
    by_name: BTreeMap<(PodIx, Sym), Vec<Instance>>,
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

impl<'n> Containers<'n> {
    /// Gathers every id with what any line says of it.
    pub fn gather(kept: &[Kept], names: &'n Names) -> Containers<'n> {
        let mut ids = Ids::default();
        let is_full = |id: &Sym| names.get(*id).len() == FULL_ID;
        let readable = |uid: &Sym| is_uid(names.get(*uid).as_bytes());
        for k in kept {
            let about = &k.about;
            if let Some(id) = about.id.filter(is_full) {
                let known = ids.room(id);
                known.name = known.name.or(about.container);
                known.sandbox = known.sandbox.or(about.sandbox);
                known.uid = known.uid.or_else(|| about.uid.filter(readable));
                known.in_sandbox = known.in_sandbox.or(about.path);
                if matches!(
                    k.verb,
                    Verb::StopRequested | Verb::StopReturned | Verb::HookStarted | Verb::StartFailed
                ) {
                    known.sandbox = known.sandbox.or(Some(false));
                }
            }
            for c in status_of(&k.payload).map(|s| s.containers.as_slice()).unwrap_or_default() {
                let both = [c.id.as_ref(), c.last.as_ref().map(|(id, ..)| id)];
                for id in both.into_iter().flatten().filter_map(|id| names.find(id)).filter(is_full) {
                    let known = ids.room(id);
                    known.name = known.name.or_else(|| c.name.as_ref().and_then(|name| names.find(name)));
                    known.sandbox = Some(false);
                    known.uid = known.uid.or_else(|| about.uid.filter(readable));
                }
            }
        }
        let sandboxes: Vec<Sym> = ids.all.iter().filter_map(|(_, k)| k.in_sandbox).collect();
        for sandbox in sandboxes {
            ids.room(sandbox).sandbox = Some(true);
        }
        // A container's pod is its sandbox' pod.
        let told: Vec<Option<Sym>> = ids.all.iter().map(|(_, known)| known.uid).collect();
        let Ids { all, places } = &mut ids;
        for (_, known) in all {
            if known.uid.is_none() {
                let sandbox = known.in_sandbox.and_then(|s| places.get(s));
                known.uid = sandbox.and_then(|place| told[*place as usize]);
            }
        }
        deduce_sandboxes(&mut ids);
        Containers {
            lives: Vec::new(),
            names,
            ids,
            sorted: std::cell::OnceCell::new(),
            by_id: BySym::default(),
            by_name: BTreeMap::new(),
            inferred: 0,
        }
    }

    fn push(&mut self, life: ContainerLife) -> ContainerIx {
        self.lives.push(life);
        ContainerIx(u32::try_from(self.lives.len() - 1).unwrap_or(u32::MAX))
    }

    fn name(&self, sym: Option<Sym>) -> Option<Name> {
        sym.map(|sym| self.names.get(sym).clone())
    }

    /// The full id of a cut one: the single known id that begins so.
    fn full(&self, id: Sym) -> (Sym, bool) {
        let text = self.names.get(id);
        if text.len() == FULL_ID || self.ids.get(id).is_some() {
            return (id, false);
        }
        let sorted = self.sorted.get_or_init(|| {
            let mut all: Vec<Sym> = self.ids.all.iter().map(|(id, _)| *id).collect();
            all.sort_unstable_by_key(|id| self.names.get(*id));
            all
        });
        let from = sorted.partition_point(|known| self.names.get(*known) < text);
        let mut matching = sorted[from..].iter().take_while(|k| self.names.get(**k).starts_with(&**text));
        match (matching.next(), matching.next()) {
            (Some(full), None) => (*full, true),
            _ => (id, false),
        }
    }

    /// The pod that an id's other lines tell.
    pub fn pod_of_id(&self, id: Sym) -> Option<Sym> {
        self.ids.get(id).and_then(|k| k.uid)
    }

    /// The container of a draft, and whether the join is inferred.
    pub fn resolve(&mut self, p: &Kept, pod: Option<PodIx>) -> (Option<ContainerIx>, bool) {
        match (p.about.id, p.about.container) {
            (Some(id), _) => {
                let (id, inferred) = self.full(id);
                let ix = self.with_id(id, p, pod);
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

    fn with_id(&mut self, id: Sym, p: &Kept, pod: Option<PodIx>) -> ContainerIx {
        if let Some(ix) = self.by_id.get(id).copied() {
            let life = &mut self.lives[ix.0 as usize];
            life.pod = life.pod.or(pod);
            self.mark(ix, p);
            return ix;
        }
        let known = self.ids.get(id).cloned().unwrap_or_default();
        let sandbox = known.sandbox.or(p.about.sandbox).unwrap_or(false);
        let name = known.name.or(p.about.container);
        // An instance that was told by name alone may be this one.
        let waiting = match (pod, name, sandbox) {
            (Some(pod), Some(name), false) => self.waiting(pod, Some(name), p.at),
            (Some(pod), None, false) => self.waiting(pod, None, p.at),
            _ => None,
        };
        let ix = match waiting {
            Some((ix, by_name)) => {
                self.inferred += u64::from(!by_name);
                let life = &mut self.lives[ix.0 as usize];
                life.id = Some(self.names.get(id).clone());
                ix
            }
            None => {
                let life = ContainerLife {
                    pod,
                    name: self.name(name.filter(|_| !sandbox)),
                    id: Some(self.names.get(id).clone()),
                    sandbox,
                    deduced: known.deduced,
                    attempt: p.about.attempt,
                    ..ContainerLife::default()
                };
                let ix = self.push(life);
                if let (Some(pod), Some(name), false) = (pod, name, sandbox) {
                    self.by_name.entry((pod, name)).or_default().push(Instance {
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
        *self.by_id.room(id) = Some(ix);
        self.mark(ix, p);
        ix
    }

    /// The instance without an id that this one may be: of that name, or the only one of the pod.
    fn waiting(&mut self, pod: PodIx, name: Option<Sym>, at: Moment) -> Option<(ContainerIx, bool)> {
        let mut found: Option<(Sym, usize)> = None;
        let range = (pod, name.unwrap_or(Sym::FIRST))..=(pod, name.unwrap_or(Sym::LAST));
        for ((_, n), list) in self.by_name.range(range) {
            let open = |i: &Instance| !i.has_id && (!i.ended || at.since(i.first) < LATE);
            for (k, _) in list.iter().enumerate().filter(|(_, i)| open(i)) {
                if found.is_some() {
                    // By name the oldest is meant; without one there is no telling.
                    name?;
                    continue;
                }
                found = Some((*n, k));
            }
        }
        let (n, k) = found?;
        let instance = &mut self.by_name.get_mut(&(pod, n))?[k];
        instance.has_id = true;
        Some((instance.ix, name.is_some()))
    }

    /// Notes what the draft says of the instance's stage.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "names the few verbs it reads; the others say nothing to it"
    )]
    fn mark(&mut self, ix: ContainerIx, p: &Kept) {
        let life = &self.lives[ix.0 as usize];
        let name = life.name.as_ref().and_then(|name| self.names.find(name));
        let (Some(pod), Some(name)) = (life.pod, name) else { return };
        let list = self.by_name.entry((pod, name)).or_default();
        if let Some(instance) = list.iter_mut().find(|i| i.ix == ix) {
            match p.verb {
                Verb::ContainerCreated => instance.created_by |= bit(p.witness),
                Verb::ContainerStarted => instance.started_by |= bit(p.witness),
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
    fn with_name(&mut self, pod: PodIx, name: Sym, p: &Kept) -> Option<ContainerIx> {
        let verb = p.verb;
        let who = bit(p.witness);
        let list = self.by_name.entry((pod, name)).or_default();
        let others = !list.is_empty();
        let near = |i: &Instance| p.at.since(i.first).abs() < LATE || !i.ended;
        let events = p.witness == Witness::Events;
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
        if p.witness == Witness::Events && others {
            return list.last().map(|i| i.ix);
        }
        if !begins && others {
            return list.last().map(|i| i.ix);
        }
        let of = Some(self.names.get(name).clone());
        let ix = self.push(ContainerLife { pod: Some(pod), name: of, ..ContainerLife::default() });
        self.by_name.entry((pod, name)).or_default().push(Instance {
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
    pub fn ends(&mut self, kept: &[Kept], mut moment: impl FnMut(u32, crate::stamp::Stamp) -> Moment) {
        let (by_id, names) = (&self.by_id, self.names);
        let of = |id: &Name| names.find(id).and_then(|id| by_id.get(id)).map(|ix| ix.0 as usize);
        for p in kept {
            if let (Payload::Exit(_, Some(at)), Some(id)) = (&*p.payload, p.about.id)
                && let Some(ix) = by_id.get(id)
            {
                let life = &mut self.lives[ix.0 as usize];
                life.finished_at = Some(moment(p.file, *at));
                life.finished_coarse = false;
            }
            for c in status_of(&p.payload).map(|s| s.containers.as_slice()).unwrap_or_default() {
                let of_state = c.id.as_ref().zip(c.finished_at);
                let of_last = c.last.as_ref().and_then(|(id, _, at)| Some((id, (*at)?)));
                for (id, at) in of_state.into_iter().chain(of_last) {
                    if let Some(life) = of(id).map(|place| &mut self.lives[place])
                        && life.finished_at.is_none()
                    {
                        life.finished_at = Some(moment(p.file, at));
                        life.finished_coarse = at.of_day % SECOND == 0;
                    }
                }
                if let Some(place) = c.id.as_ref().and_then(of) {
                    self.lives[place].init |= c.init;
                }
            }
        }
    }
}

/// A pod whose containers are known by id has one id more: its sandbox (derived).
fn deduce_sandboxes(ids: &mut Ids) {
    let mut by_pod: BTreeMap<Sym, (u32, u32, Vec<usize>)> = BTreeMap::new();
    for (place, (_, known)) in ids.all.iter().enumerate() {
        let Some(uid) = known.uid else { continue };
        let entry = by_pod.entry(uid).or_default();
        match (known.sandbox, known.name) {
            (Some(true), _) => entry.0 += 1,
            (Some(false), _) | (None, Some(_)) => entry.1 += 1,
            (None, None) => entry.2.push(place),
        }
    }
    for (sandboxes, containers, unknown) in by_pod.into_values() {
        if let ([one], 0, true) = (unknown.as_slice(), sandboxes, containers > 0) {
            let known = &mut ids.all[*one].1;
            known.sandbox = Some(true);
            known.deduced = true;
        }
    }
}
