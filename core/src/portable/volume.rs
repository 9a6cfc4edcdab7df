//! A volume's part of the document.

use super::RetryDocument;
use crate::ids::{Name, OpId, VolumeId};
use crate::node::Digest;
use crate::spec::Volume;
use crate::state::{Seldom, Shared, Upkeep, VolumePhase, VolumeState};
use crate::time::Time;
use alloc::sync::Arc;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct VolumeDocument {
    id: VolumeId,
    definition: Option<Arc<Volume>>,
    removed: Option<Time>,
    phase: PhaseDocument,
    error: Option<Name>,
    retry: RetryDocument,
    refreshing: Option<OpId>,
    refresh_retry: RetryDocument,
    content: Digest,
    stale: bool,
    renew_at: Option<Time>,
    image_digest: Option<Name>,
    usage: Option<u64>,
    collision_told: bool,
    reconstructed: bool,
}

#[derive(Copy, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum PhaseDocument {
    Pending,
    Mounting(OpId),
    Mounted,
    Failed,
    Uncertain,
    Unmounting(OpId),
}

impl VolumeDocument {
    pub(super) fn of(volume: &VolumeState) -> VolumeDocument {
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
        } = volume;
        let Upkeep { error, refreshing, refresh_retry, renew_at, image_digest, usage } = &**upkeep;
        VolumeDocument {
            id: id.clone(),
            definition: spec.as_ref().map(|spec| spec.arc().clone()),
            removed: *removed,
            phase: (*phase).into(),
            error: error.clone(),
            retry: retry.into(),
            refreshing: *refreshing,
            refresh_retry: refresh_retry.into(),
            content: *content,
            stale: *stale,
            renew_at: *renew_at,
            image_digest: image_digest.clone(),
            usage: *usage,
            collision_told: *collision_told,
            reconstructed: *reconstructed,
        }
    }

    pub(super) fn into_state(self) -> VolumeState {
        VolumeState {
            id: self.id,
            spec: self.definition.map(Shared::new),
            removed: self.removed,
            phase: self.phase.into(),
            retry: self.retry.into(),
            content: self.content,
            stale: self.stale,
            collision_told: self.collision_told,
            reconstructed: self.reconstructed,
            upkeep: Seldom::new(Upkeep {
                error: self.error,
                refreshing: self.refreshing,
                refresh_retry: self.refresh_retry.into(),
                renew_at: self.renew_at,
                image_digest: self.image_digest,
                usage: self.usage,
            }),
        }
    }
}

impl From<VolumePhase> for PhaseDocument {
    fn from(phase: VolumePhase) -> PhaseDocument {
        match phase {
            VolumePhase::Pending => PhaseDocument::Pending,
            VolumePhase::Mounting { op } => PhaseDocument::Mounting(op),
            VolumePhase::Mounted => PhaseDocument::Mounted,
            VolumePhase::Failed => PhaseDocument::Failed,
            VolumePhase::Uncertain => PhaseDocument::Uncertain,
            VolumePhase::Unmounting { op } => PhaseDocument::Unmounting(op),
        }
    }
}

impl From<PhaseDocument> for VolumePhase {
    fn from(phase: PhaseDocument) -> VolumePhase {
        match phase {
            PhaseDocument::Pending => VolumePhase::Pending,
            PhaseDocument::Mounting(op) => VolumePhase::Mounting { op },
            PhaseDocument::Mounted => VolumePhase::Mounted,
            PhaseDocument::Failed => VolumePhase::Failed,
            PhaseDocument::Uncertain => VolumePhase::Uncertain,
            PhaseDocument::Unmounting(op) => VolumePhase::Unmounting { op },
        }
    }
}
