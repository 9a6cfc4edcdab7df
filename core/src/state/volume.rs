//! One life of a volume name in a pod: the three-valued truth about the host (kubelet-volumes I3), and what is known
//! of its content.

use super::retry::Retry;
use super::shared::Shared;
use crate::ids::{Name, OpId, VolumeId};
use crate::node::Digest;
use crate::spec::Volume;
use crate::time::Time;

/// See the file's head.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct VolumeState {
    /// Which life.
    pub id: VolumeId,
    /// What it is made from; `None` for a mount found on the host.
    pub spec: Option<Shared<Volume>>,
    /// When its removal was allocated: it is retained since then, and frozen.
    pub removed: Option<Time>,
    /// What is known of the host.
    pub phase: VolumePhase,
    /// The last SetUp or TearDown error, until one succeeds.
    pub error: Option<Name>,
    /// Back-off of its mounts, or of its unmounts once removed.
    pub retry: Retry,
    /// A refresh in flight.
    pub refreshing: Option<OpId>,
    /// Back-off of its refreshes.
    pub refresh_retry: Retry,
    /// What it shows: a digest of the objects and metadata that the last mount or refresh was given.
    pub content: Digest,
    /// What it shows is no longer what its sources have.
    pub stale: bool,
    /// When a credential in it wants renewal.
    pub renew_at: Option<Time>,
    /// An image volume's image.
    pub image_digest: Option<Name>,
    /// Bytes in it, as reported last.
    pub usage: Option<u64>,
    /// It was told that this life waits for the former life of its name.
    pub collision_told: bool,
    /// It was found on the host after a restart: only a success makes it certain again (#96635).
    pub reconstructed: bool,
}

/// What is known of the host about a volume.
#[derive(Copy, Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub enum VolumePhase {
    /// Nothing of it is there, and nothing was tried.
    Pending,
    /// Being mounted.
    Mounting {
        /// By this operation.
        op: OpId,
    },
    /// It is there.
    Mounted,
    /// The last mount failed for certain. Remains may lie about, so removal still tears down (D4).
    Failed,
    /// It may be there: an operation's end is unknown, or an unmount failed.
    Uncertain,
    /// Being unmounted.
    Unmounting {
        /// By this operation.
        op: OpId,
    },
}

impl VolumePhase {
    /// For people.
    pub fn label(&self) -> &'static str {
        match self {
            VolumePhase::Pending => "Pending",
            VolumePhase::Mounting { .. } => "Mounting",
            VolumePhase::Mounted => "Mounted",
            VolumePhase::Failed => "ErrorMounting",
            VolumePhase::Uncertain => "Uncertain",
            VolumePhase::Unmounting { .. } => "Unmounting",
        }
    }
}

impl VolumeState {
    /// A volume that was just allocated, or found (`spec` is `None`).
    pub fn new(id: VolumeId, spec: Option<Shared<Volume>>) -> VolumeState {
        VolumeState {
            id,
            spec,
            removed: None,
            phase: VolumePhase::Pending,
            error: None,
            retry: Retry::default(),
            refreshing: None,
            refresh_retry: Retry::default(),
            content: Digest::default(),
            stale: false,
            renew_at: None,
            image_digest: None,
            usage: None,
            collision_told: false,
            reconstructed: false,
        }
    }
    /// It can be given to a container.
    pub fn is_ready(&self) -> bool {
        self.removed.is_none() && matches!(self.phase, VolumePhase::Mounted)
    }
}
