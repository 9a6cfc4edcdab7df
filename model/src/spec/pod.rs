//! A pod on a node. It only moves forward.

use super::By::{Allocation, Crash, Fault, Node as Acts, World};
use super::volume::crashed;
use super::{
    ALL_SEEN, HOST_SEEN, NOTHING_RUNS, Needs, OBJECT_GONE, OUT_OF_TIME, PREEMPTED, RUN_OUT, RUNTIME_SEEN,
    Row, SANDBOXES_DOWN, TOLD, VOLUMES_GONE, row,
};
use zerocopy::{Immutable, IntoBytes};

/// Where it is in its life.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoBytes, Immutable)]
#[repr(u8)]
pub enum Pod {
    /// The node has not heard of it, or has forgotten it.
    Absent,
    /// Seen, not admitted.
    Waiting,
    /// Admitted and meant to run.
    Active,
    /// Its containers are to end.
    Terminating,
    /// No container runs, and none will.
    Terminated,
    /// Its object is being deleted for good.
    Releasing,
}

use Pod::{Absent, Active, Releasing, Terminated, Terminating, Waiting};

const OVER: Needs = NOTHING_RUNS.and(VOLUMES_GONE);

/// The permitted moves.
#[rustfmt::skip]
pub const TABLE: &[Row<Pod>] = &[
    row(Absent, "seen", Waiting, World, Needs::NONE, "its source names it"),
    row(Waiting, "admit", Active, Allocation, HOST_SEEN, "what the host holds of it is taken over first; S6"),
    row(Waiting, "refuse", Terminated, Allocation, NOTHING_RUNS, "a refused pod is never charged; S8"),
    row(Waiting, "refuse what runs", Terminating, Allocation, HOST_SEEN, "a refused pod that was found running ends first; S8"),
    row(Waiting, "end", Terminating, World, Needs::NONE, "deleted, vanished, or refused while found running"),
    row(Active, "end", Terminating, World, Needs::NONE, "deleted, vanished, or evicted"),
    row(Active, "make room", Terminating, Allocation, PREEMPTED, "a critical pod is admitted in its place"),
    row(Active, "time out", Terminating, Acts, OUT_OF_TIME, "activeDeadlineSeconds, as its latest spec has it"),
    row(Active, "over", Terminating, Acts, RUNTIME_SEEN.and(RUN_OUT), "its containers have run to their end"),
    row(Terminating, "conclude", Terminated, Acts, NOTHING_RUNS.and(SANDBOXES_DOWN).and(RUNTIME_SEEN), "S8: every container is confirmed stopped"),
    row(Terminated, "release", Releasing, Acts, OVER.and(TOLD).and(RUNTIME_SEEN), "S8: then volumes, then the phase, then the object; that a volume is gone is a durable fact"),
    row(Releasing, "released", Terminated, World, Needs::NONE, "its object is gone"),
    row(Releasing, "refused", Terminated, Fault, Needs::NONE, "the final delete is tried again"),
    row(Releasing, "agent died", Terminated, Crash, Needs::NONE, "the final delete is tried again"),
    row(Terminated, "forget", Absent, Acts, OVER.and(SANDBOXES_DOWN).and(OBJECT_GONE), "nothing of it is left anywhere"),
    row(Absent, "begin anew", Waiting, Allocation, Needs::NONE, "it was wanted again while it was ending"),
];

impl Pod {
    /// No container of it runs or will.
    pub const fn has_ended(self) -> bool {
        matches!(self, Terminated | Releasing)
    }
    /// The state that a crash of the agent leaves.
    pub fn after_crash(self) -> Pod {
        crashed(TABLE, self, false)
    }
}

/// What the agent knows is knowledge of its own epoch: a start forgets all three.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, IntoBytes, Immutable)]
#[repr(C)]
pub struct Seen {
    /// Every source has delivered its list.
    pub sources: bool,
    /// The mount table was seen.
    pub mounts: bool,
    /// All that the runtime has was seen.
    pub runtime: bool,
}

impl Seen {
    /// What of the needs is so.
    pub const fn situation(self) -> Needs {
        let host = self.mounts && self.runtime;
        super::LOOKING
            .when(!self.mounts)
            .and(RUNTIME_SEEN.when(self.runtime))
            .and(HOST_SEEN.when(host))
            .and(ALL_SEEN.when(host && self.sources))
    }
}
