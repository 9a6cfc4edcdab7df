//! `Node`, the reducer: one function from a fact to new state and commands.
//!
//! Owns the order of the five rooms, the timers and the digest. Decides nothing itself.

use crate::anomaly::{Anomalies, AnomalyKind};
use crate::command::{Action, Cause, Command, Commands, Rule};
use crate::config::Config;
use crate::context::{Context, Touched, Why, text};
use crate::digest::DigestCache;
use crate::event::{Event, Fact, ObjectVersion, SeenContainer, SeenMount, SeenSandbox};
use crate::ids::{Epoch, EventSeq, Name, ObjectRef, OpId, PodUid, Source, VolumeId};
use crate::publish::mirror::{FullName, MirrorState};
use crate::resources::ResourceList;
use crate::state::{PodState, Retry};
use crate::time::Time;
use crate::{actuate, allocate, observe, publish, volumes};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// 128 bits that are equal exactly when states are.
#[derive(
    Copy, Default, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode,
)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub struct Digest(pub u128);

/// How often, on average, each wake-up that was booked may bring about another in the same event. The chains there are
/// have two links.
const MOST_FIRED_PER_WAKE_UP: usize = 16;

/// The year 2262, in which nanoseconds since 1970 no longer fit 63 bits.
const LATEST: Time = Time(u64::MAX / 2);

/// A Kubernetes node's decisions, as a fold over its facts. See the crate's front page.
#[derive(Clone)]
pub struct Node {
    pub(crate) state: State,
    cache: DigestCache,
    /// Pods that the latest `apply` looked at. Not state.
    latest: Vec<PodUid>,
    /// The memory of the list of touched pods. Empty between events.
    touched: Touched,
}

/// All that the fold remembers. Everything in it is in the digest and in snapshots.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct State {
    pub(crate) config: Config,
    pub(crate) now: Time,
    pub(crate) events: EventSeq,
    pub(crate) next_op: OpId,
    pub(crate) epoch: Epoch,
    pub(crate) boot_id: Option<u128>,
    pub(crate) pods: BTreeMap<PodUid, Arc<PodState>>,
    /// UIDs by namespace and name: for static pods' exclusivity, and to look a pod up.
    pub(crate) names: BTreeMap<(Name, Name), Vec<PodUid>>,
    pub(crate) objects: BTreeMap<ObjectRef, ObjectRecord>,
    /// Objects of which something is remembered anew, or no more. Empty between events.
    pub(crate) objects_changed: Vec<ObjectRef>,
    pub(crate) sources_ready: Vec<Source>,
    pub(crate) recovery: Recovery,
    /// Pods whose desired state wants allocation, by UID; ordered when tried.
    pub(crate) queue: BTreeSet<PodUid>,
    /// Critical pods for which room is being made.
    pub(crate) preemptors: BTreeSet<PodUid>,
    /// The sum of all pods' charges.
    pub(crate) charged: ResourceList,
    /// Wake-ups: of pods, and of the allocator (`PodUid(0)`).
    pub(crate) wakes: BTreeSet<(Time, PodUid, Why)>,
    /// The allocator's wake-up.
    pub(crate) allocator_wake: Option<(Time, Why)>,
    pub(crate) observations: BTreeMap<OpId, PodUid>,
    /// Mirror pods by the name that they share with their static pods.
    pub(crate) mirrors: BTreeMap<FullName, MirrorState>,
    pub(crate) anomalies: Anomalies,
}

/// An object that volumes refer to.
#[derive(Default, Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct ObjectRecord {
    /// Its version; `None`: absent, or not seen yet.
    pub version: Option<ObjectVersion>,
    /// It is known to be absent.
    pub gone: bool,
    /// Pods that refer to it.
    pub users: BTreeSet<PodUid>,
}

/// What this epoch knows of the host so far.
#[derive(Default, Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Recovery {
    pub(crate) mounts: Look,
    pub(crate) runtime: Look,
    /// Found, but of pods nobody has named yet: theirs if they are named before all sources are ready, orphans then.
    pub(crate) unclaimed_containers: Vec<SeenContainer>,
    pub(crate) unclaimed_sandboxes: Vec<SeenSandbox>,
    pub(crate) unclaimed_mounts: Vec<SeenMount>,
    /// Volumes whose mount ended while the mount table was being looked at: it may be older than they are.
    pub(crate) mounted_meanwhile: Vec<(PodUid, VolumeId)>,
}

/// A look at the host.
#[derive(Default, Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Look {
    pub(crate) asked: Option<OpId>,
    pub(crate) seen: bool,
    pub(crate) retry: Retry,
}

impl State {
    /// Every source has delivered its list in this epoch.
    pub(crate) fn sources_ready(&self) -> bool {
        self.config.sources.iter().all(|s| self.sources_ready.contains(s))
    }
    /// The host was looked at in this epoch: its mounts, and all that its runtime has.
    pub(crate) fn host_seen(&self) -> bool {
        self.recovery.mounts.seen && self.recovery.runtime.seen
    }
    /// Undoing is allowed: nothing that matters is unknown (I1, DESIGN §3 "Restart").
    pub(crate) fn may_undo(&self) -> bool {
        self.sources_ready() && self.host_seen()
    }
    /// Notes an anomaly.
    pub(crate) fn anomaly(&mut self, kind: AnomalyKind, pod: Option<PodUid>, detail: Name) {
        self.anomalies.note(kind, self.events, pod, detail);
    }
    /// Gives a command outside of a pod's own rooms; returns its operation.
    pub(crate) fn command(&mut self, out: &mut Commands, pod: PodUid, rule: Rule, action: Action) -> OpId {
        let op = self.next_op;
        self.next_op.0 += 1;
        out.commands.push(Command { op, pod, cause: Cause { event: self.events, rule }, action });
        op
    }
    /// A pod, to change it. Copies it if somebody else holds it.
    pub(crate) fn pod_mut(&mut self, uid: PodUid) -> Option<&mut PodState> {
        self.pods.get_mut(&uid).map(Arc::make_mut)
    }
    /// Books the allocator's wake-up, if it is earlier than the one it has.
    pub(crate) fn wake_allocator(&mut self, at: Time, why: Why) {
        if self.allocator_wake.is_some_and(|booked| booked <= (at, why)) {
            return;
        }
        if let Some((old, reason)) = self.allocator_wake.take() {
            self.wakes.remove(&(old, PodUid(0), reason));
        }
        self.wakes.insert((at, PodUid(0), why));
        self.allocator_wake = Some((at, why));
    }
}

impl Node {
    /// A node that knows nothing yet. Its first events are an `AgentStarted` and what its sources deliver.
    pub fn new(config: Config) -> Node {
        let state = State {
            config,
            now: Time(0),
            events: EventSeq(0),
            next_op: OpId(1),
            epoch: Epoch(0),
            boot_id: None,
            pods: BTreeMap::new(),
            names: BTreeMap::new(),
            objects: BTreeMap::new(),
            objects_changed: Vec::new(),
            sources_ready: Vec::new(),
            recovery: Recovery::default(),
            queue: BTreeSet::new(),
            preemptors: BTreeSet::new(),
            charged: ResourceList::default(),
            wakes: BTreeSet::new(),
            allocator_wake: None,
            observations: BTreeMap::new(),
            mirrors: BTreeMap::new(),
            anomalies: Anomalies::default(),
        };
        let (latest, touched) = (Vec::new(), Touched::default());
        Node { state, cache: DigestCache::default(), latest, touched }
    }

    /// Folds one fact in: the only way state changes. First every timer due at or before `event.at` fires, in a total
    /// order, then the fact counts. Appends to `out`. Never panics on any event; what makes no sense is an anomaly.
    /// An agent's start comes before the timers that passed while nobody was there: what they ask for must not be decided
    /// on what was known before (S1, S12; DESIGN §3 "Restart").
    pub fn apply(&mut self, event: &Event, out: &mut Commands) {
        self.state.events.0 += 1;
        self.cache.head_changed();
        self.latest.clear();
        if event.at < self.state.now {
            let detail = text(format_args!("{} ns", self.state.now.since(event.at).0));
            self.state.anomaly(AnomalyKind::ClockWentBack, None, detail);
        }
        // Beyond that no delay could be added, and a timer would be due for ever.
        let at = if event.at > LATEST {
            self.state.anomaly(AnomalyKind::AbsurdTime, None, text(format_args!("{} ns", event.at.0)));
            LATEST
        } else {
            event.at
        };
        let now = at.max(self.state.now);
        let is_start = matches!(event.fact, Fact::AgentStarted { .. });
        self.state.now = now;
        if !is_start {
            self.fire_timers(out);
        }
        if matches!(event.fact, Fact::Tick) {
            return;
        }
        let mut touched = core::mem::take(&mut self.touched);
        observe::observe(&mut self.state, event, &mut touched, out);
        self.settle(touched, out);
        if is_start {
            self.fire_timers(out);
        }
    }

    /// Notes that a recorded fact is not folded: `apply` panics on it, and a durable fact must not become a crash loop
    /// (DESIGN §8). It does not count as an event.
    pub fn skip(&mut self, event: &Event) {
        let detail = text(format_args!("{} at {} ns", event.fact.name(), event.at.0));
        self.state.anomaly(AnomalyKind::Skipped, event.fact.pod(), detail);
        self.cache.head_changed();
    }

    /// Whatever is due is decided at the time it is now: what came due long ago, while nobody was awake, must not be begun
    /// as if the time in between had not passed (S7: a start that waited, in a pod that is out of time by now).
    fn fire_timers(&mut self, out: &mut Commands) {
        // A wake-up that books itself again at once would never end. Beyond this bound the rest waits for the next event, and
        // the deadline that is left behind shows it (L4).
        let most = (self.state.wakes.len() + 1) * MOST_FIRED_PER_WAKE_UP;
        for _ in 0..most {
            let Some(&(at, uid, why)) = self.state.wakes.first() else { break };
            if at > self.state.now {
                break;
            }
            self.state.wakes.pop_first();
            let mut touched = core::mem::take(&mut self.touched);
            if uid == PodUid(0) {
                self.state.allocator_wake = None;
                allocate::retry_queue(&mut self.state, why, &mut touched, out);
            } else {
                if let Some(pod) = self.state.pod_mut(uid) {
                    pod.wake = None;
                }
                touched.add(uid);
            }
            self.settle(touched, out);
        }
    }

    /// The rooms below `observe`, for the pods that were touched.
    fn settle(&mut self, mut touched: Touched, out: &mut Commands) {
        // A pod that is touched alone is mostly through with the first room; it is looked up once to see that and go on.
        let mut allocated = touched.pods().len() != 1 || !self.state.preemptors.is_empty();
        if allocated {
            allocate::room(&mut self.state, &mut touched, out);
        }
        let (mut static_names, mut woken) = (Vec::new(), Vec::new());
        let (may_undo, runtime_seen) = (self.state.may_undo(), self.state.recovery.runtime.seen);
        let mut next = 0;
        while let Some(&uid) = touched.pods().get(next) {
            let state = &mut self.state;
            let Some(pod) = state.pods.get_mut(&uid) else {
                self.cache.pod_touched(uid);
                self.latest.push(uid);
                next += 1;
                continue;
            };
            if !allocated && !allocate::is_through(pod, &state.queue) {
                // May touch more of them, one before this one too.
                allocate::room(state, &mut touched, out);
                allocated = true;
                continue;
            }
            next += 1;
            self.cache.pod_touched(uid);
            self.latest.push(uid);
            let pod = Arc::make_mut(pod);
            let mirror = match pod.pod.source {
                Source::Api => None,
                Source::File => {
                    let name = (pod.pod.namespace.clone(), pod.pod.name.clone());
                    let mirror = state.mirrors.get(&name).and_then(|record| record.shows(uid));
                    static_names.push(name);
                    mirror
                }
            };
            let mut context = Context {
                config: &state.config,
                now: state.now,
                event: state.events,
                epoch: state.epoch,
                runtime_seen,
                may_undo,
                mirror,
                objects: &state.objects,
                next_op: &mut state.next_op,
                observations: &mut state.observations,
                out,
                anomalies: &mut state.anomalies,
                wake: None,
            };
            volumes::reconcile(pod, &mut context);
            actuate::actuate(pod, &mut context);
            publish::publish(pod, &mut context);
            let wake = context.wake;
            if pod.wake != wake {
                if let Some((at, why)) = pod.wake {
                    state.wakes.remove(&(at, uid, why));
                }
                if let Some((at, why)) = wake {
                    state.wakes.insert((at, uid, why));
                }
                pod.wake = wake;
            }
            let freed =
                !allocate::charge::is_current(pod) && allocate::charge::renew(pod, &mut state.charged);
            let (lets_go, ends) = (!pod.let_go.is_empty(), pod.object_gone);
            let frees_its_name = pod.pod.source == Source::File && pod.is_terminated();
            if freed {
                allocate::charge::use_freed(state);
            }
            if lets_go {
                observe::unsubscribe(state, uid);
            }
            if frees_its_name {
                woken.extend(allocate::admit::waiting_for_name_of(state, uid));
            }
            if ends {
                woken.extend(observe::forget_if_over(state, uid, out));
            }
        }
        for uid in woken {
            self.cache.pod_touched(uid);
            observe::wake_now(&mut self.state, uid);
        }
        static_names.into_iter().for_each(|name| touched.add_mirror(name));
        if !touched.mirrors().is_empty() {
            publish::mirror::reconcile(&mut self.state, touched.mirrors(), out);
        }
        for object in self.state.objects_changed.drain(..) {
            self.cache.object_changed(object);
        }
        touched.clear();
        self.touched = touched;
    }

    /// When time itself becomes a fact: the next moment at which a `Tick` would change something.
    pub fn next_deadline(&self) -> Option<Time> {
        self.state.wakes.first().map(|(at, _, _)| *at)
    }

    /// All booked wake-ups in order, each with its pod (`None`: the allocator) and its reason.
    pub fn deadlines(&self) -> impl Iterator<Item = (Time, Option<PodUid>, Why)> + '_ {
        self.state.wakes.iter().map(|(at, uid, why)| (*at, (uid.0 != 0).then_some(*uid), *why))
    }

    /// The state's digest: the wrapping sum of a hash of each entry's canonical bytes, id included. Settles what changed
    /// since it was asked last.
    pub fn digest(&mut self) -> Digest {
        self.cache.digest(&self.state)
    }

    /// The pods that the latest `apply` looked at: no other one's state can have changed. One may be named more than once.
    pub fn latest_touched(&self) -> &[PodUid] {
        &self.latest
    }

    /// Pods touched by `apply` since this was asked last, with the digest of each (zero: gone), by UID.
    pub fn take_touched(&mut self) -> Vec<(PodUid, Digest)> {
        self.cache.take_touched(&self.state)
    }

    /// A node with this state: its caches are computed anew.
    #[cfg(feature = "rkyv")]
    pub(crate) fn from_state(state: State) -> Node {
        let (cache, touched) = (DigestCache::of(&state), Touched::default());
        Node { state, cache, latest: Vec::new(), touched }
    }
}
