//! A pod's sandbox: made once the first volumes are there, renewed when it died, stopped last.

use super::By::{Crash, Fault, Look, Node as Acts, World};
use super::volume::crashed;
use super::{ACTIVE, CREATION_READY, NOTHING_RUNS, Needs, RUNTIME_SEEN, Row, SANDBOXES_DOWN, row};
use zerocopy::{Immutable, IntoBytes};

/// What is known of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoBytes, Immutable)]
#[repr(u8)]
pub enum Sandbox {
    /// Not there.
    None,
    /// Being made.
    Creating,
    /// It runs.
    Ready,
    /// It died by itself.
    Dead,
    /// Being stopped, or to be stopped again.
    Stopping,
    /// Stopped.
    Stopped,
    /// Being removed.
    Removing,
    /// It may run: nobody knows.
    Unknown,
}

use Sandbox::{Creating, Dead, None, Ready, Removing, Stopped, Stopping, Unknown};

const MAY_CREATE: Needs = ACTIVE.and(NOTHING_RUNS).and(SANDBOXES_DOWN).and(CREATION_READY).and(RUNTIME_SEEN);
const MAY_STOP: Needs = NOTHING_RUNS.and(RUNTIME_SEEN);
const FIRST: &str = "KEP-6395 stage 2: the first start waits for the creation's volumes";
const LAST: &str = "containers end before their sandbox";
const LISTED: &str = "a list says what is";

/// The permitted moves.
#[rustfmt::skip]
pub const TABLE: &[Row<Sandbox>] = &[
    row(None, "create", Creating, Acts, MAY_CREATE, FIRST),
    row(Creating, "ready", Ready, World, Needs::NONE, "CRI RunPodSandbox"),
    row(Creating, "failed", None, Fault, Needs::NONE, "CRI RunPodSandbox"),
    row(Creating, "uncertain", Unknown, Fault, Needs::NONE, "only a look tells"),
    row(Creating, "died", Dead, Fault, Needs::NONE, "it is told as stopped"),
    row(Ready, "died", Dead, Fault, Needs::NONE, "it is told as stopped"),
    row(Unknown, "died", Dead, Fault, Needs::NONE, "it is told as stopped"),
    row(Ready, "stop", Stopping, Acts, MAY_STOP, LAST),
    row(Dead, "stop", Stopping, Acts, MAY_STOP, LAST),
    row(Stopping, "stopped", Stopped, World, Needs::NONE, "CRI StopPodSandbox"),
    row(Stopped, "remove", Removing, Acts, RUNTIME_SEEN, "CRI RemovePodSandbox"),
    row(Removing, "removed", None, World, Needs::NONE, "CRI RemovePodSandbox"),
    row(Removing, "remove failed", Stopped, Fault, Needs::NONE, "it is still there"),
    row(Creating, "agent died", Unknown, Crash, Needs::NONE, "only a look tells"),
    row(Dead, "agent died", Unknown, Crash, Needs::NONE, "only a look tells"),
    row(Removing, "agent died", Stopped, Crash, Needs::NONE, "removing is done again"),
    row(Ready, "host died", Unknown, Crash, Needs::NONE, "a reboot ends what ran"),
    row(Unknown, "seen ready", Ready, Look, Needs::NONE, LISTED),
    row(Unknown, "seen dead", Dead, Look, Needs::NONE, LISTED),
    row(Ready, "seen dead", Dead, Look, Needs::NONE, LISTED),
    row(Stopping, "seen dead", Stopped, Look, Needs::NONE, LISTED),
    row(Stopped, "seen ready", Stopping, Look, Needs::NONE, LISTED),
    row(Unknown, "absent", None, Look, Needs::NONE, LISTED),
    row(Ready, "absent", None, Look, Needs::NONE, LISTED),
    row(Dead, "absent", None, Look, Needs::NONE, LISTED),
    row(Stopping, "absent", None, Look, Needs::NONE, LISTED),
    row(Stopped, "absent", None, Look, Needs::NONE, LISTED),
    row(None, "found ready", Ready, Look, Needs::NONE, "what runs is taken over"),
    row(None, "found dead", Dead, Look, Needs::NONE, "what is left is taken over"),
];

impl Sandbox {
    /// Nothing of it runs.
    pub const fn is_down(self) -> bool {
        matches!(self, None | Stopped | Removing)
    }
    /// The state that a crash of the agent, or of the host, leaves.
    pub fn after_crash(self, of_host: bool) -> Sandbox {
        crashed(TABLE, self, of_host)
    }
}
