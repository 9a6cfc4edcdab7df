//! What a trace says about the world, kept once for all oracles: containers, volumes, sandboxes, pods, operations and
//! epochs, each with the records that prove it. Built from facts and commands alone, never from the core's own state.
//!
//! What isn't proven is unknown, and each oracle says which way it then leans: towards "in use" where an invariant
//! protects something (S1), towards silence where the trace can't tell.

pub mod allocation;
pub mod commands;
pub mod container;
pub mod facts;
pub mod memory;
pub mod observations;
pub mod operations;
pub mod pod;
pub mod volume;

use nodefold_core::command::TraceEntry;
use nodefold_core::config::{Config, NodeFacts};
use nodefold_core::ids::{Name, OpId, PodUid};
use nodefold_core::resources::{ResourceList, ResourceName};
use nodefold_core::time::{Nanos, Time};
use pod::PodView;
use std::collections::{BTreeMap, VecDeque};

/// Pods remembered by UID after everything else of them was forgotten, so that a late start is still noticed.
const TOMBSTONES_KEPT: usize = 1024;
/// Changes of allocatable kept one by one; older ones are merged into the oldest.
const ALLOCATABLE_KEPT: usize = 32;

/// The world as the trace tells it.
#[derive(Clone, Debug)]
pub struct WorldView {
    /// Pods that live, or of which something does.
    pub pods: BTreeMap<PodUid, PodView>,
    /// Static pods by namespace and name.
    pub static_names: BTreeMap<(Name, Name), Vec<PodUid>>,
    /// The node as it is now.
    pub node: NodeFacts,
    /// The floor of a stop's grace.
    pub minimum_grace: Nanos,
    /// What was allocatable, from which record on.
    pub allocatable: VecDeque<(usize, ResourceList)>,
    /// The agent started at this record and no complete runtime list came since: anything may run.
    pub runtime_unknown: Option<usize>,
    /// Pods forgotten, and the record at which.
    pub tombstones: BTreeMap<PodUid, Tombstone>,
    /// The latest time in the trace.
    pub now: Time,
    tombstone_order: VecDeque<PodUid>,
    boot_id: Option<u128>,
    observing: Vec<(OpId, PodUid, usize)>,
    observes: bool,
}

/// What is left of a pod that was forgotten.
#[derive(Copy, Clone, Debug)]
pub struct Tombstone {
    /// The record that forgot it.
    pub index: usize,
    /// The last operation that was commanded for it.
    pub last_op: Option<OpId>,
}

impl WorldView {
    /// A world in which nothing has happened.
    pub fn new(config: &Config) -> WorldView {
        WorldView {
            pods: BTreeMap::new(),
            static_names: BTreeMap::new(),
            node: config.node.clone(),
            minimum_grace: config.timing.minimum_grace,
            allocatable: VecDeque::from([(0, config.node.allocatable.clone())]),
            runtime_unknown: None,
            tombstones: BTreeMap::new(),
            now: Time(0),
            tombstone_order: VecDeque::new(),
            boot_id: None,
            observing: Vec::new(),
            observes: false,
        }
    }

    /// What must be settled before the entry is judged: a pod asked for again begins its new life with its first command.
    pub fn prepare(&mut self, entry: &TraceEntry) {
        let TraceEntry::Command { command, .. } = entry else { return };
        if let Some(pod) = self.pods.get_mut(&command.pod)
            && (pod.wanted_again.is_some() || pod.came_back)
            && commands::begins_something(&command.action)
            && pod.is_quiet()
        {
            pod.begin_anew();
        }
    }

    /// Takes the trace's entry number `index` in.
    pub fn observe(&mut self, entry: &TraceEntry, index: usize) {
        match entry {
            TraceEntry::Fact(event) => {
                self.now = self.effective(event.at);
                self.fact(&event.fact, self.now, index);
            }
            TraceEntry::Command { at, command } => {
                self.now = self.effective(*at);
                self.command(command, self.now, index);
            }
        }
    }

    /// Time never runs backwards: while a clock that jumped back catches up, no time passes (DESIGN §3).
    pub fn effective(&self, at: Time) -> Time {
        at.max(self.now)
    }

    /// The most that was allocatable at any record from `since` on.
    pub fn most_allocatable_since(&self, since: usize) -> ResourceList {
        let from = self.allocatable.iter().rposition(|(index, _)| *index <= since).unwrap_or(0);
        let mut amounts = self.allocatable.iter().skip(from).map(|(_, amounts)| amounts);
        let first = amounts.next().cloned().unwrap_or_default();
        amounts.fold(first, |most, amounts| more_generous(&most, amounts))
    }

    /// Whether the observation was asked for after that record, so that its answer is newer.
    pub fn asked_after(&self, op: OpId, record: usize) -> bool {
        match self.observing.iter().find(|(o, ..)| *o == op) {
            Some((.., asked)) => *asked > record,
            None => !self.observes,
        }
    }

    /// Whether the operation can have had its effect just now. In a trace without commands any can.
    pub fn may_be_under_way(&self, pod: PodUid, op: OpId) -> bool {
        !self.observes || self.pods.get(&pod).is_some_and(|p| p.in_flight.iter().any(|o| o.op == op))
    }

    fn node_changed(&mut self, node: &NodeFacts, index: usize) {
        self.node = node.clone();
        if !node.gates.dynamic_containers {
            for pod in self.pods.values_mut() {
                pod.allocation.images_bypass = true;
            }
        }
        self.allocatable.push_back((index, node.allocatable.clone()));
        if self.allocatable.len() > ALLOCATABLE_KEPT
            && let Some((oldest, amounts)) = self.allocatable.pop_front()
            && let Some(next) = self.allocatable.front_mut()
        {
            next.0 = oldest;
            next.1 = more_generous(&next.1, &amounts);
        }
    }

    /// Forgets a pod that left its source and of which nothing lives.
    fn forget_if_over(&mut self, uid: PodUid, index: usize) {
        let over = self.pods.get(&uid).is_some_and(|p| {
            (p.left_source.is_some() || p.applied.is_none())
                && p.wanted_again.is_none()
                && p.is_quiet()
                && !p.has_a_sandbox()
        });
        if !over {
            return;
        }
        let Some(pod) = self.pods.remove(&uid) else { return };
        if let Some(applied) = &pod.applied {
            let key = (applied.namespace.clone(), applied.name.clone());
            if let Some(uids) = self.static_names.get_mut(&key) {
                uids.retain(|u| *u != uid);
                if uids.is_empty() {
                    self.static_names.remove(&key);
                }
            }
            // A life in which nothing was commanded has its former lives' operations before it.
            let last_op = pod.last_op.max(pod.last_op_before);
            if self.tombstones.insert(uid, Tombstone { index, last_op }).is_none() {
                self.tombstone_order.push_back(uid);
            }
            if self.tombstone_order.len() > TOMBSTONES_KEPT
                && let Some(oldest) = self.tombstone_order.pop_front()
            {
                self.tombstones.remove(&oldest);
            }
        }
    }
}

/// The larger of two amounts of each resource. One that either does not list is not limited, but for extended ones, of which
/// there is none then.
fn more_generous(a: &ResourceList, b: &ResourceList) -> ResourceList {
    let names = a.iter().chain(b.iter()).map(|(name, _)| name);
    let larger = names.filter_map(|name| match (a.given(name), b.given(name), name) {
        (Some(a), Some(b), _) => Some((name.clone(), a.max(b))),
        (Some(only), None, ResourceName::Other(_)) | (None, Some(only), ResourceName::Other(_)) => {
            Some((name.clone(), only))
        }
        (Some(_) | None, _, _) => None,
    });
    ResourceList::from_pairs(larger)
}
