//! One life of a container name. While there is one it may run, and holds its leases.

use super::By::{Crash, Fault, Look, Node as Acts, World};
use super::volume::crashed;
use super::{
    ACTIVE, CREATION_READY, DOOMED, IN_TURN, KEPT, MAY_RUN, NAME_FREE, Needs, OWN_CAUSE, RUNTIME_SEEN, Row,
    SANDBOX_READY, UNDOOMED, VOLUMES_READY, row,
};
use zerocopy::{Immutable, IntoBytes};

/// What is known of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoBytes, Immutable)]
#[repr(u8)]
pub enum Life {
    /// No life: not made yet, or ended.
    None,
    /// Being made.
    Creating,
    /// Made; its first instruction has not run.
    Created,
    /// Being started.
    Starting,
    /// It runs.
    Running,
    /// It may run: nobody knows.
    Unknown,
    /// The runtime itself lost track of it.
    Lost,
    /// Never started, and being removed.
    Discarding,
}

use Life::{Created, Creating, Discarding, Lost, None, Running, Starting, Unknown};

const MAY_START: Needs =
    ACTIVE.and(KEPT).and(VOLUMES_READY).and(SANDBOX_READY).and(IN_TURN).and(RUNTIME_SEEN);
const MAY_CREATE: Needs = MAY_START.and(NAME_FREE).and(CREATION_READY).and(MAY_RUN);
const CREATE: &str = "KEP-6395 stage 2: created when the volumes it mounts are ready; S2, S3, S6, S7";
const CUT_OFF: &str = "an operation cut off is neither done nor undone; only a look tells";
const ENDED: &str = "only a confirmed end releases the leases; S1";

/// The permitted moves.
#[rustfmt::skip]
pub const TABLE: &[Row<Life>] = &[
    row(None, "create", Creating, Acts, MAY_CREATE, CREATE),
    row(Creating, "created", Created, World, Needs::NONE, "CRI CreateContainer"),
    row(Creating, "create failed", None, Fault, Needs::NONE, "a failed create releases the lease"),
    row(Creating, "create uncertain", Unknown, Fault, Needs::NONE, CUT_OFF),
    row(Created, "start", Starting, Acts, MAY_START.and(UNDOOMED), "KEP-6395 stage 2; S2, S3, S7"),
    row(Starting, "started", Running, World, Needs::NONE, "CRI StartContainer"),
    row(Starting, "not tried", Created, Fault, Needs::NONE, "it is still parked"),
    row(Starting, "start failed", None, Fault, Needs::NONE, ENDED),
    row(Starting, "start uncertain", Unknown, Fault, Needs::NONE, CUT_OFF),
    row(Running, "ended", None, World, Needs::NONE, ENDED),
    row(Creating, "ended", None, World, Needs::NONE, ENDED),
    row(Created, "ended", None, World, Needs::NONE, ENDED),
    row(Starting, "ended", None, World, Needs::NONE, ENDED),
    row(Unknown, "ended", None, World, Needs::NONE, ENDED),
    row(Lost, "ended", None, World, Needs::NONE, ENDED),
    row(Discarding, "ended", None, World, Needs::NONE, ENDED),
    row(Created, "discard", Discarding, Acts, DOOMED.and(RUNTIME_SEEN), "what is no longer allocated never starts; S3"),
    row(Discarding, "removed", None, World, Needs::NONE, "it never started: its removal releases the lease"),
    row(Discarding, "remove failed", Created, Fault, Needs::NONE, "it is still parked"),
    row(Discarding, "remove uncertain", Unknown, Fault, Needs::NONE, CUT_OFF),
    row(Creating, "agent died", Unknown, Crash, Needs::NONE, CUT_OFF),
    row(Starting, "agent died", Unknown, Crash, Needs::NONE, CUT_OFF),
    row(Discarding, "agent died", Unknown, Crash, Needs::NONE, CUT_OFF),
    row(Lost, "agent died", Unknown, Crash, Needs::NONE, CUT_OFF),
    row(Created, "host died", Unknown, Crash, Needs::NONE, "a reboot ends what ran; how is seen later"),
    row(Running, "host died", Unknown, Crash, Needs::NONE, "a reboot ends what ran; how is seen later"),
    row(Unknown, "seen parked", Created, Look, Needs::NONE, "a list says what is"),
    row(Unknown, "seen running", Running, Look, Needs::NONE, "a list says what is"),
    row(Unknown, "seen lost", Lost, Look, Needs::NONE, "a list says what is"),
    row(Created, "seen running", Running, Look, Needs::NONE, "a list says what is"),
    row(Lost, "seen running", Running, Look, Needs::NONE, "a list says what is"),
    row(Creating, "seen lost", Lost, Look, Needs::NONE, "a list says what is"),
    row(Created, "seen lost", Lost, Look, Needs::NONE, "a list says what is"),
    row(Starting, "seen lost", Lost, Look, Needs::NONE, "a list says what is"),
    row(Running, "seen lost", Lost, Look, Needs::NONE, "a list says what is"),
    row(None, "found", Unknown, Look, Needs::NONE, "what runs is taken over, or held to hold everything; S6"),
];

/// A life is told to end once, for a reason of its own; it is never told to live on. `false`: not told yet.
#[rustfmt::skip]
pub const DOOM: &[Row<bool>] =
    &[row(false, "stop", true, Acts, OWN_CAUSE, "S9; KEP-6395 \"Unaffected containers continue running uninterrupted\"")];

impl Life {
    /// It may run, and holds its leases.
    pub const fn may_run(self) -> bool {
        !matches!(self, None)
    }
    /// The state that a crash of the agent, or of the host, leaves.
    pub fn after_crash(self, of_host: bool) -> Life {
        crashed(TABLE, self, of_host)
    }
}
