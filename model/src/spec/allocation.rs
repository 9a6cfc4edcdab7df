//! Allocation: desired state becomes the node's promise as one transaction, and removal is a flag that only it sets.

use super::By::{Allocation, Look};
use super::{ACTIVE, ALLOCATING, EPHEMERAL, LOOKING, Row, UNADMITTED, WHOLE, row};
use zerocopy::{Immutable, IntoBytes};

/// Whether a container name's or volume name's addition is in the allocation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoBytes, Immutable)]
#[repr(u8)]
pub enum Promise {
    /// Not there.
    None,
    /// Allocated.
    Kept,
    /// Its removal was allocated: retained until nothing of it is left.
    Removed,
}

use Promise::{Kept, None, Removed};

const ATOMIC: &str = "KEP-5972 \"Allocation is an atomic operation\"";

/// The permitted moves of a promise. It ends with what it is about: a volume that is gone, a container without a life.
#[rustfmt::skip]
pub const TABLE: &[Row<Promise>] = &[
    row(None, "add", Kept, Allocation, ACTIVE.and(ALLOCATING), ATOMIC),
    row(None, "attach", Kept, Allocation, ACTIVE.and(EPHEMERAL), "an ephemeral container bypasses allocation"),
    row(None, "found", Kept, Look, UNADMITTED, "a container that runs before its pod is admitted is taken over"),
    row(None, "found", Removed, Look, LOOKING, "a mount that nobody owns is retained until it can go; I2"),
    row(Kept, "remove", Removed, Allocation, ACTIVE.and(ALLOCATING), ATOMIC),
    row(Removed, "take over", Kept, Allocation, ACTIVE.and(ALLOCATING), "found on the host before admission"),
];

/// The permitted changes of the allocation itself: the pod's first one, and every later one.
#[rustfmt::skip]
pub const TRANSACTION: &[Row<bool>] = &[
    row(false, "allocate", true, Allocation, ACTIVE.and(WHOLE), "KEP-5972 \"if ALL of the changes can be allocated\"; S4"),
    row(true, "allocate anew", true, Allocation, ACTIVE.and(WHOLE), "KEP-5972 \"Allocation will be halted once a pod enters a terminating state\"; S7"),
];
