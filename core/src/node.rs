//! `Node`, the reducer: one function from a fact to new state and commands.

use crate::command::Commands;
use crate::config::Config;
use crate::event::Event;
use crate::ids::{EventSeq, PodUid, VolumeId};
use crate::spec::{Pod, PodSpec, Volume};
use crate::status::PodStatus;
use crate::time::Time;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// 128 bits that are equal exactly when states are.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Digest(pub u128);

/// The node.
#[derive(Clone)]
pub struct Node {
    config: Config,
    events: u64,
    now: Time,
}

/// The layout of the state in a snapshot; another layout is never read.
pub const SNAPSHOT_LAYOUT: &str = "stub";

/// What `/allocated` serves (DESIGN §4 rule 3).
#[derive(Clone, Debug)]
pub struct Allocated {
    /// The pod as last applied: its metadata.
    pub pod: Arc<Pod>,
    /// The allocated spec.
    pub spec: Arc<PodSpec>,
    /// `metadata.generation` of the desired version that was allocated.
    pub generation: u64,
    /// Volumes removed from the allocation, not yet verifiably gone.
    pub retained: Vec<Retained>,
}

/// A retained volume.
#[derive(Clone, Debug)]
pub struct Retained {
    /// Which life of the name.
    pub volume: VolumeId,
    /// What it was made from; unknown for one found on the host.
    pub spec: Option<Arc<Volume>>,
    /// When its removal was allocated.
    pub since: Time,
}

impl Node {
    /// A node that knows nothing yet.
    pub fn new(config: Config) -> Node {
        Node { config, events: 0, now: Time(0) }
    }
    /// Folds one fact in: the only way state changes. Appends to `out`.
    pub fn apply(&mut self, event: &Event, _out: &mut Commands) {
        self.events += 1;
        self.now = self.now.max(event.at);
    }
    /// When time itself becomes a fact: the next moment at which a `Tick` would change something.
    pub fn next_deadline(&self) -> Option<Time> {
        None
    }
    /// The state's digest. Settles what changed since it was asked last.
    pub fn digest(&mut self) -> Digest {
        crate::codec::hash(&(self.events, self.now))
    }
    /// Pods touched by `apply` since this was asked last, with the digest of each (zero: gone), by UID.
    pub fn take_touched(&mut self) -> Vec<(PodUid, Digest)> {
        Vec::new()
    }
    /// How many events were folded in.
    pub fn event_count(&self) -> EventSeq {
        EventSeq(self.events)
    }
    /// The time of the latest event.
    pub fn now(&self) -> Time {
        self.now
    }
    /// The configuration, with the node's facts as they are now.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// All pods this node knows, by UID.
    pub fn pods(&self) -> Vec<PodUid> {
        Vec::new()
    }
    /// The newest pod of that name.
    pub fn find_pod(&self, _namespace: &str, _name: &str) -> Option<PodUid> {
        None
    }
    /// The status that the pod has now (it may not have been published yet).
    pub fn status(&self, _pod: PodUid) -> Option<PodStatus> {
        None
    }
    /// The pod as its source asked for it last.
    pub fn desired(&self, _pod: PodUid) -> Option<Arc<Pod>> {
        None
    }
    /// What `/allocated` serves; `None` before admission.
    pub fn allocated(&self, _pod: PodUid) -> Option<Allocated> {
        None
    }
    /// The whole state as bytes of the layout [`SNAPSHOT_LAYOUT`].
    #[cfg(feature = "rkyv")]
    pub fn to_snapshot(&self) -> Vec<u8> {
        let state = (self.config.clone(), self.events, self.now);
        rkyv::to_bytes::<rkyv::rancor::Error>(&state).map_or_else(|_| Vec::new(), |bytes| bytes.to_vec())
    }
    /// The state from bytes, checked.
    #[cfg(feature = "rkyv")]
    pub fn from_snapshot(bytes: &[u8]) -> Result<Node, rkyv::rancor::Error> {
        let mut aligned = rkyv::util::AlignedVec::<16>::new();
        aligned.extend_from_slice(bytes);
        let (config, events, now) = rkyv::from_bytes::<(Config, u64, Time), rkyv::rancor::Error>(&aligned)?;
        Ok(Node { config, events, now })
    }
}
