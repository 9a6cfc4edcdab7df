//! `volumeStatuses` (KEP-6395; api-side §4.2). Keyed by name: a name whose former life is not gone shows Unmounting until
//! it is (DESIGN §4 rule 4).

use crate::ids::Name;
use crate::state::{Lifecycle, PodState, VolumePhase, VolumeState};
use crate::status::{HostPhase, VolumeStatus};
use alloc::vec::Vec;

/// Longest error message that goes into a status; the event has all of it.
const MESSAGE_MAX_CHARS: usize = 256;

pub(super) fn derive(pod: &PodState) -> Vec<VolumeStatus> {
    let ended = matches!(pod.lifecycle, Lifecycle::Terminated);
    let mut statuses: Vec<VolumeStatus> = Vec::new();
    let desired = pod.pod.spec.volumes.iter().map(|v| &v.name);
    let known = pod.volumes.iter().map(|v| &v.id.name);
    for name in desired.chain(known) {
        if statuses.iter().any(|s| s.name == *name) {
            continue;
        }
        let former = pod.volumes.iter().find(|v| v.id.name == *name && (v.removed.is_some() || ended));
        let (phase, error_message) = match (former, pod.volume(name)) {
            (Some(former), _) => (HostPhase::Unmounting, message(former)),
            (None, Some(volume)) => phase(volume),
            // Desired only: not allocated. Once the pod ends, nothing will be.
            (None, None) if pod.is_active() => (HostPhase::Pending, Name::default()),
            (None, None) => continue,
        };
        statuses.push(VolumeStatus { name: name.clone(), phase, error_message });
    }
    statuses
}

fn phase(volume: &VolumeState) -> (HostPhase, Name) {
    match (volume.phase, &volume.upkeep.error) {
        (VolumePhase::Mounted, _) => (HostPhase::HostMounted, Name::default()),
        (VolumePhase::Unmounting { .. }, _) => (HostPhase::Unmounting, message(volume)),
        (
            VolumePhase::Pending
            | VolumePhase::Mounting { .. }
            | VolumePhase::Failed
            | VolumePhase::Uncertain,
            Some(_),
        ) => (HostPhase::ErrorMounting, message(volume)),
        (
            VolumePhase::Pending
            | VolumePhase::Mounting { .. }
            | VolumePhase::Failed
            | VolumePhase::Uncertain,
            None,
        ) => (HostPhase::Pending, Name::default()),
    }
}

fn message(volume: &VolumeState) -> Name {
    match &volume.upkeep.error {
        None => Name::default(),
        Some(error) => error.chars().take(MESSAGE_MAX_CHARS).collect::<alloc::string::String>().into(),
    }
}
