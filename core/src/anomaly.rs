//! What should not have happened: counted and surfaced, never a panic, never a change of anything else (DESIGN §3).

use crate::ids::{EventSeq, Name, PodUid};
use alloc::collections::{BTreeMap, VecDeque};

/// How many of the latest are kept whole.
const KEPT: usize = 32;

/// What kind of thing it was.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
#[cfg_attr(feature = "rkyv", rkyv(derive(PartialEq, Eq, PartialOrd, Ord)))]
pub enum AnomalyKind {
    /// An event was older than the one before it.
    ClockWentBack,
    /// An event lay so far in the future that its time was cut.
    AbsurdTime,
    /// An event about a pod nobody knows.
    UnknownPod,
    /// A completion of an operation that is not in flight (an older epoch, a gone instance, a second completion).
    StaleCompletion,
    /// An event about an instance that does not exist.
    UnknownInstance,
    /// A container ran that no record owns.
    SurplusContainer,
    /// The event could not be folded and was skipped by the agent.
    Skipped,
    /// A source applied a known life of a pod under another name, or another source did: no life changes these.
    OtherIdentity,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Anomaly {
    /// What.
    pub kind: AnomalyKind,
    /// During which event.
    pub event: EventSeq,
    /// About which pod.
    pub pod: Option<PodUid>,
    /// For people.
    pub detail: Name,
}

/// All of them: counts for ever, the latest whole.
#[derive(Default, Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Anomalies {
    counts: BTreeMap<AnomalyKind, u64>,
    latest: VecDeque<Anomaly>,
}

impl Anomalies {
    /// Counts one.
    pub fn note(&mut self, kind: AnomalyKind, event: EventSeq, pod: Option<PodUid>, detail: Name) {
        *self.counts.entry(kind).or_insert(0) += 1;
        if self.latest.len() == KEPT {
            self.latest.pop_front();
        }
        self.latest.push_back(Anomaly { kind, event, pod, detail });
    }
    /// How many of each kind.
    pub fn counts(&self) -> &BTreeMap<AnomalyKind, u64> {
        &self.counts
    }
    /// The latest, oldest first.
    pub fn latest(&self) -> impl Iterator<Item = &Anomaly> {
        self.latest.iter()
    }
}
