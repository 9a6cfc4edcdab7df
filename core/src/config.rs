//! What a node is told about itself: facts that change at run time ([`NodeFacts`]) and choices that don't ([`Config`]).

use crate::ids::{Name, Source};
use crate::resources::ResourceList;
use crate::time::Nanos;
use alloc::vec::Vec;

/// What the operator chose for this node. Fixed for the life of a journal.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Config {
    /// The node's name.
    pub node_name: Name,
    /// The node at first; `Fact::NodeChanged` replaces it.
    pub node: NodeFacts,
    /// Where pods come from. Nothing is undone before each of them has delivered its list.
    pub sources: Vec<Source>,
    /// Delays and limits.
    pub timing: Timing,
    /// CPU manager policy `static`: a Guaranteed pod's cpu can't be resized (case 17).
    pub static_cpu_policy: bool,
    /// Memory manager policy `Static` (case 18).
    pub static_memory_policy: bool,
    /// Pods may swap: a memory request can't be resized without a restart (case 16).
    pub swap: bool,
}

/// The node as it is now.
#[derive(Default, Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct NodeFacts {
    /// `status.allocatable`. A resource not listed is not limited, except that extended ones are then absent.
    pub allocatable: ResourceList,
    /// Labels, sorted by key.
    pub labels: Vec<(Name, Name)>,
    /// The two KEPs' gates.
    pub gates: FeatureGates,
}

/// Feature gates that decisions look at, each switchable while the node runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct FeatureGates {
    /// KEP-5972.
    pub dynamic_containers: bool,
    /// KEP-6395.
    pub dynamic_volumes: bool,
}

impl Default for FeatureGates {
    fn default() -> FeatureGates {
        FeatureGates { dynamic_containers: true, dynamic_volumes: true }
    }
}

/// Delays and limits, with the kubelet's values by default.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Timing {
    /// First crash back-off that isn't zero: 10 s.
    pub crash_backoff_initial: Nanos,
    /// Longest: 5 min.
    pub crash_backoff_max: Nanos,
    /// A run this long starts the count anew: 10 min.
    pub crash_backoff_reset: Nanos,
    /// First image pull back-off: 10 s.
    pub pull_backoff_initial: Nanos,
    /// Longest: 5 min.
    pub pull_backoff_max: Nanos,
    /// First delay after a failed volume operation: 500 ms.
    pub volume_backoff_initial: Nanos,
    /// Longest: 2 min 2 s.
    pub volume_backoff_max: Nanos,
    /// First delay after a failed runtime or API call: 1 s.
    pub retry_backoff_initial: Nanos,
    /// Longest: 1 min.
    pub retry_backoff_max: Nanos,
    /// The allocator tries deferred pods this often without any other reason: 3 min.
    pub allocation_retry: Nanos,
    /// The kubelet's floor for a container's stop: 2 s.
    pub minimum_grace: Nanos,
    /// Removed container statuses kept per pod: 10 (KEP-5972).
    pub removed_statuses_kept: u32,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            crash_backoff_initial: Nanos::secs(10),
            crash_backoff_max: Nanos::secs(300),
            crash_backoff_reset: Nanos::secs(600),
            pull_backoff_initial: Nanos::secs(10),
            pull_backoff_max: Nanos::secs(300),
            volume_backoff_initial: Nanos::millis(500),
            volume_backoff_max: Nanos::secs(122),
            retry_backoff_initial: Nanos::secs(1),
            retry_backoff_max: Nanos::secs(60),
            allocation_retry: Nanos::secs(180),
            minimum_grace: Nanos::secs(2),
            removed_statuses_kept: 10,
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            node_name: "node".into(),
            node: NodeFacts::default(),
            sources: alloc::vec![Source::Api, Source::File],
            timing: Timing::default(),
            static_cpu_policy: false,
            static_memory_policy: false,
            swap: false,
        }
    }
}
