//! The numbered invariants of DESIGN §5 and what a breach of one looks like.

use nodefold_core::command::Subject;
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use serde::Serialize;
use std::fmt;

/// The number of an invariant in DESIGN §5.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Invariant {
    /// No unmount in use.
    S1,
    /// No start before its volumes and initialization.
    S2,
    /// Only what was allocated.
    S3,
    /// Allocation is one transaction.
    S4,
    /// Charges fit the node.
    S5,
    /// One live instance per name.
    S6,
    /// Nothing begins after termination began.
    S7,
    /// Release comes last.
    S8,
    /// No restart by somebody else's mutation.
    S9,
    /// Phases move as permitted.
    S10,
    /// Mounts change only by a new instance.
    S11,
    /// One operation per instance.
    S12,
    /// Gone is gone.
    S13,
    /// Evidence belongs to its instance.
    S14,
    /// Deadlines only move earlier.
    S15,
    /// The API's rules are whole.
    S16,
    /// The fold is a function.
    D1,
    /// Recovery loses and invents nothing.
    D2,
    /// Every change is actuated or explained.
    L1,
    /// What was removed goes.
    L2,
    /// What was deleted is released.
    L3,
    /// The node becomes quiet.
    L4,
    /// Every wait has a producer.
    L5,
}

impl Invariant {
    /// What it promises, in a line.
    pub const fn meaning(self) -> &'static str {
        match self {
            Invariant::S1 => "no volume is unmounted while a container that mounts it may be running",
            Invariant::S2 => {
                "no container starts before its volumes are ready, no main container before initialization"
            }
            Invariant::S3 => "only what was allocated is acted on, and nothing of what was removed",
            Invariant::S4 => "the allocation equals one desired spec as a whole",
            Invariant::S5 => "what pods are charged fits into allocatable",
            Invariant::S6 => "at most one live instance per name",
            Invariant::S7 => "nothing is allocated, created or started after termination began",
            Invariant::S8 => {
                "containers stop, then volumes go, then a terminal phase is told, then the pod is released"
            }
            Invariant::S9 => "no container restarts because of a change that isn't its own",
            Invariant::S10 => "phases only move as permitted, and terminal is the end",
            Invariant::S11 => {
                "mounts of a running container change only by policy and only by a new instance"
            }
            Invariant::S12 => "at most one operation is in flight per instance",
            Invariant::S13 => "nothing is left on the host of a volume reported gone",
            Invariant::S14 => "counts, exits and results survive and are shown for their own instance only",
            Invariant::S15 => "a stop's deadline only moves earlier, and sidecars stop after mains",
            Invariant::S16 => "the API accepts exactly what its rules allow",
            Invariant::D1 => "the same journal folds to the same digest",
            Invariant::D2 => "after a crash every acknowledged fact is there and none is invented",
            Invariant::L1 => "every accepted change is actuated or visibly waits with its reason",
            Invariant::L2 => "every removed volume goes and every removed container stops",
            Invariant::L3 => "every deleted pod is released",
            Invariant::L4 => "the node becomes quiet",
            Invariant::L5 => "every wait has something that can end it",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// An invariant broken, with the records that prove it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// Which invariant.
    pub invariant: Invariant,
    /// In which pod; `PodUid(0)` for the node.
    pub pod: PodUid,
    /// About which instance, if one.
    pub subject: Option<Subject>,
    /// When it became provable.
    pub at: Time,
    /// One sentence that says what happened.
    pub explanation: String,
    /// The records of the trace that prove it, in order (0 is the trace's first entry).
    pub evidence: Vec<usize>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (pod {}, records", self.invariant, self.explanation, self.pod)?;
        for (i, record) in self.evidence.iter().enumerate() {
            write!(f, "{} {record}", if i == 0 { "" } else { "," })?;
        }
        write!(f, "): {}", self.invariant.meaning())
    }
}
