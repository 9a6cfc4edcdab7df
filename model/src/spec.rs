//! The lifecycle of a pod's containers and volumes on a node: what must be true, and nothing about how.
//!
//! Five small machines, each a table in a file of its own: a **pod** ([`pod`]), its **sandboxes** ([`sandbox`]), the lives
//! of its **containers** ([`container`]) and **volumes** ([`volume`]), and the **allocation** that ties them together
//! ([`allocation`]). A row says: from this state, by this, to that state, if these needs hold, and who says so. What no
//! row permits must not happen. The needs are the whole coupling between the machines:
//!
//! * A *life* is one instance of a name. A container's life holds a lease on each volume life it was made with, from
//!   before it is created until it is known to have ended; not knowing is holding (`UNHELD`).
//! * Removal is a flag that only an allocation sets (`KEPT`, `GOING`). What was removed is retained until it is gone.
//! * An agent that starts knows nothing. It may build at once, start things once it has listed the runtime, and undo
//!   only once it knows everything (`RUNTIME_SEEN`, `HOST_SEEN`, `ALL_SEEN`).
//!
//! Timers, back-off, order within a grace and error texts are not here: they may be anything that stays within.

pub mod allocation;
pub mod container;
pub mod diagram;
mod index;
pub mod pod;
pub mod sandbox;
pub mod scope;
pub mod shapes;
pub mod volume;

/// Who makes a move.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The agent or the host died: what was in flight is not known any more.
    Crash,
    /// The agent looked at the host.
    Look,
    /// The world: an operation did what it was asked, a process ended, somebody asked.
    World,
    /// The world, and it went wrong: an operation failed or its end is unknown, a sandbox died.
    Fault,
    /// The node admits or allocates.
    Allocation,
    /// The node acts: it gives a command, or draws a conclusion.
    Node,
}

/// One permitted move of a machine.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Row<S: 'static> {
    /// The state before.
    pub from: S,
    /// What moves it.
    pub act: &'static str,
    /// The state after.
    pub to: S,
    /// Who moves it.
    pub by: By,
    /// What must hold at that moment.
    pub needs: Needs,
    /// Who says so.
    pub says: &'static str,
}

/// Things that must hold, as a set: of a row what it needs, of a situation what is so.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs(pub u32);

macro_rules! needs {
    ($($bit:literal $name:ident $word:literal $meaning:literal)*) => {
        $(#[doc = $meaning] pub const $name: Needs = Needs(1 << $bit);)*
        /// Each need with its word and its meaning.
        pub const NEEDS: &[(Needs, &str, &str)] = &[$(($name, $word, $meaning)),*];
    };
}

needs! {
    0 ACTIVE "active" "The pod is admitted and its end has not begun (S7)."
    1 LIVE "live" "The pod is admitted and not all of it has ended."
    2 KEPT "kept" "Its removal was not allocated (S3)."
    3 GOING "going" "Its removal was allocated, or its pod has ended."
    4 NAME_FREE "name free" "No other life of its name may be there (S6)."
    5 UNHELD "unheld" "No container that mounts it may run, and nothing unknown could (S1)."
    6 VOLUMES_READY "volumes ready" "Every volume that it mounts is set up, in the life that is allocated (S2)."
    7 CREATION_READY "creation ready" "The pod was initialized once, or every volume that its containers mount is set up."
    8 SANDBOX_READY "sandbox ready" "The pod's sandbox runs."
    9 SANDBOXES_DOWN "sandboxes down" "No sandbox of the pod runs."
    10 IN_TURN "in turn" "A main container: initialization is done in this sandbox. An init container: no other one runs."
    11 MAY_RUN "may run" "It never ran to an end that is final for it (S14)."
    12 UNDOOMED "undoomed" "It was not told to end."
    13 DOOMED "doomed" "It was told to end."
    14 OWN_CAUSE "own cause" "It was removed or redefined, failed a probe or a hook, lost its sandbox, or its pod ends or restarts (S9)."
    15 NOTHING_RUNS "nothing runs" "No container of the pod may run."
    16 VOLUMES_GONE "volumes gone" "No volume of the pod may be on the host."
    17 TOLD "told" "A terminal phase was acknowledged by the API (S8)."
    18 OBJECT_GONE "object gone" "The pod's object is gone from its source."
    19 LOOKING "looking" "The agent has not seen the mount table since it started."
    20 RUNTIME_SEEN "runtime seen" "The agent has seen all that the runtime has since it started."
    21 HOST_SEEN "host seen" "The agent has seen the mount table and the runtime since it started."
    22 ALL_SEEN "all seen" "The agent has seen the host, and knows again what is wanted."
    23 ALLOCATING "allocating" "The pod's allocation changes in this very step (S4)."
    24 WHOLE "whole" "What becomes the allocation is one desired version as a whole (S4)."
    25 UNADMITTED "unadmitted" "The pod has no allocation yet."
    26 EPHEMERAL "ephemeral" "It is an ephemeral container, which its own subresource adds beside the allocation."
    27 RUN_OUT "run out" "No main container of the pod runs."
    28 OUT_OF_TIME "out of time" "Its active deadline has passed."
    29 PREEMPTED "preempted" "A critical pod needs its room."
}

impl Needs {
    /// Nothing.
    pub const NONE: Needs = Needs(0);
    /// Both.
    pub const fn and(self, other: Needs) -> Needs {
        Needs(self.0 | other.0)
    }
    /// These, if it is so.
    pub const fn when(self, so: bool) -> Needs {
        if so { self } else { Needs::NONE }
    }
    /// All of them hold in a situation.
    pub const fn hold_in(self, situation: Needs) -> bool {
        self.0 & !situation.0 == 0
    }
    /// Those that don't hold in a situation.
    pub const fn missing_in(self, situation: Needs) -> Needs {
        Needs(self.0 & !situation.0)
    }
    /// Their words.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        NEEDS.iter().filter(move |(need, ..)| need.0 & self.0 != 0).map(|(_, word, _)| *word)
    }
}

const fn row<S>(from: S, act: &'static str, to: S, by: By, needs: Needs, says: &'static str) -> Row<S> {
    Row { from, act, to, by, needs, says }
}
