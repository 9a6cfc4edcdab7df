//! One life of a volume name: what is known of the host about it. Its path is keyed by the name, so two lives of a name
//! never overlap.

use super::By::{Allocation, Crash, Fault, Look, Node as Acts, World};
use super::{
    ACTIVE, ALL_SEEN, ALLOCATING, By, GOING, KEPT, LIVE, LOOKING, NAME_FREE, Needs, Row, UNHELD, row,
};
use zerocopy::{Immutable, IntoBytes};

/// What is known.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoBytes, Immutable)]
#[repr(u8)]
pub enum Volume {
    /// Not there: never was, or is verifiably gone.
    Absent,
    /// Promised; nothing of it is there.
    Pending,
    /// Being set up.
    Mounting,
    /// Set up.
    Mounted,
    /// Set up, and being given newer content.
    Refreshing,
    /// The last set-up failed; remains may lie about.
    Failed,
    /// May be there: nobody knows.
    Uncertain,
    /// Being taken down.
    Unmounting,
}

use Volume::{Absent, Failed, Mounted, Mounting, Pending, Refreshing, Uncertain, Unmounting};

const MAY_MOUNT: Needs = ACTIVE.and(KEPT).and(NAME_FREE);
const MAY_UNMOUNT: Needs = GOING.and(UNHELD).and(ALL_SEEN);
const STAGE_1: &str = "KEP-6395 stage 1: SetUp of admitted volumes only";
const TEARDOWN: &str = "KEP-6395 \"only once all containers referencing them have stopped\"; S1";
const UNKNOWN: &str = "an operation cut off is neither done nor undone; I3";
const LOST: &str = "S10: back to Pending only after an observation that it is lost";

/// The permitted moves.
#[rustfmt::skip]
pub const TABLE: &[Row<Volume>] = &[
    row(Absent, "allocate", Pending, Allocation, ACTIVE.and(ALLOCATING), "KEP-6395 \"admits the mutation atomically\""),
    row(Pending, "mount", Mounting, Acts, MAY_MOUNT, STAGE_1),
    row(Failed, "mount again", Mounting, Acts, MAY_MOUNT, "KEP-6395 \"volume mounting retry loop\""),
    row(Uncertain, "mount again", Mounting, Acts, MAY_MOUNT, "set-up is idempotent over any partial state"),
    row(Mounting, "mounted", Mounted, World, Needs::NONE, "KEP-6395 HostMounted"),
    row(Mounting, "mount failed", Failed, Fault, Needs::NONE, "KEP-6395 ErrorMounting"),
    row(Mounting, "mount uncertain", Uncertain, Fault, Needs::NONE, UNKNOWN),
    row(Mounted, "refresh", Refreshing, Acts, LIVE.and(KEPT), "a volume being removed is frozen; S3"),
    row(Refreshing, "refreshed or not", Mounted, World, Needs::NONE, "a refresh never harms live data; I6"),
    row(Mounted, "unmount", Unmounting, Acts, MAY_UNMOUNT, TEARDOWN),
    row(Failed, "unmount", Unmounting, Acts, MAY_UNMOUNT, TEARDOWN),
    row(Uncertain, "unmount", Unmounting, Acts, MAY_UNMOUNT, TEARDOWN),
    row(Unmounting, "unmounted", Absent, World, Needs::NONE, "KEP-6395 \"prunes the volume entry completely\""),
    row(Unmounting, "unmount failed", Uncertain, Fault, Needs::NONE, UNKNOWN),
    row(Pending, "forget", Absent, Acts, GOING, "nothing of it was ever there"),
    row(Mounting, "agent died", Uncertain, Crash, Needs::NONE, UNKNOWN),
    row(Unmounting, "agent died", Uncertain, Crash, Needs::NONE, UNKNOWN),
    row(Refreshing, "agent died", Mounted, Crash, Needs::NONE, "a refresh never harms live data; I6"),
    row(Mounted, "host died", Uncertain, Crash, Needs::NONE, "a reboot voids mounts"),
    row(Refreshing, "host died", Uncertain, Crash, Needs::NONE, "a reboot voids mounts"),
    row(Absent, "found", Uncertain, Look, LOOKING, "what may be mounted is never forgotten; I2"),
    row(Pending, "found", Uncertain, Look, LOOKING, "the host is right about what it holds; I2"),
    row(Mounted, "lost", Pending, Look, LOOKING.and(KEPT), LOST),
    row(Failed, "lost", Pending, Look, LOOKING.and(KEPT), LOST),
    row(Uncertain, "lost", Pending, Look, LOOKING.and(KEPT), LOST),
];

impl Volume {
    /// It can be given to a container, unless it is going.
    pub const fn is_set_up(self) -> bool {
        matches!(self, Mounted | Refreshing)
    }
    /// Something of it may be on the host.
    pub const fn may_be_there(self) -> bool {
        !matches!(self, Absent | Pending)
    }
    /// The state that a crash of the agent, or of the host, leaves.
    pub fn after_crash(self, of_host: bool) -> Volume {
        crashed(TABLE, self, of_host)
    }
}

/// Where a crash's row leads, if there is one.
pub(super) fn crashed<S: Copy + PartialEq>(table: &[Row<S>], from: S, of_host: bool) -> S {
    let by_crash = |act| table.iter().find(|r| r.by == By::Crash && r.from == from && r.act == act);
    let of_agent = by_crash("agent died");
    let found = if of_host { by_crash("host died").or(of_agent) } else { of_agent };
    found.map_or(from, |row| row.to)
}
