//! One life of a volume name in a pod: the three-valued truth about the host (kubelet-volumes I3), and what is known
//! of its content.

use super::retry::Retry;
use super::seldom::{Seldom, Usual};
use super::shared::Shared;
use crate::ids::{Name, OpId, VolumeId};
use crate::node::Digest;
use crate::spec::Volume;
use crate::time::Time;
use bincode::enc::{Encode, Encoder};
use bincode::error::EncodeError;

/// See the file's head.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Back-off of its mounts, or of its unmounts once removed.
    pub retry: Retry,
    /// What it shows: a digest of the objects and metadata that the last mount or refresh was given.
    pub content: Digest,
    /// What it shows is no longer what its sources have.
    pub stale: bool,
    /// It was told that this life waits for the former life of its name.
    pub collision_told: bool,
    /// It was found on the host after a restart: only a success makes it certain again (#96635).
    pub reconstructed: bool,
    /// What most volumes have nothing of.
    pub upkeep: Seldom<Upkeep>,
}

/// What is noted of few volumes.
#[derive(Default, Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Upkeep {
    /// The last SetUp or TearDown error, until one succeeds.
    pub error: Option<Name>,
    /// A refresh in flight.
    pub refreshing: Option<OpId>,
    /// Back-off of its refreshes.
    pub refresh_retry: Retry,
    /// When a credential in it wants renewal.
    pub renew_at: Option<Time>,
    /// An image volume's image.
    pub image_digest: Option<Name>,
    /// Bytes in it, as reported last.
    pub usage: Option<u64>,
}

impl Usual for Upkeep {
    const USUAL: &'static Upkeep = &Upkeep {
        error: None,
        refreshing: None,
        refresh_retry: Retry::NONE,
        renew_at: None,
        image_digest: None,
        usage: None,
    };
}

// The bytes don't say what is kept where.
impl Encode for VolumeState {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        let VolumeState {
            id,
            spec,
            removed,
            phase,
            retry,
            content,
            stale,
            collision_told,
            reconstructed,
            upkeep,
        } = self;
        let Upkeep { error, refreshing, refresh_retry, renew_at, image_digest, usage } = &**upkeep;
        (id, spec, removed, phase, error, retry, refreshing, refresh_retry).encode(encoder)?;
        (content, stale, renew_at, image_digest, usage, collision_told, reconstructed).encode(encoder)
    }
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
            retry: Retry::default(),
            content: Digest::default(),
            stale: false,
            collision_told: false,
            reconstructed: false,
            upkeep: Seldom::default(),
        }
    }
    /// It can be given to a container.
    pub fn is_ready(&self) -> bool {
        self.removed.is_none() && matches!(self.phase, VolumePhase::Mounted)
    }
}
