//! Which commands are writes to the API server, and what they write. The rest is the host's to do. For drivers; the fold asks
//! none of it.

use crate::command::{Action, KubernetesEvent};
use crate::ids::{Name, PodUid};
use crate::spec::Pod;
use crate::status::PodStatus;
use alloc::sync::Arc;

/// A write to the API server.
#[derive(Copy, Clone, Debug)]
pub enum ApiWrite<'a> {
    /// [`Action::PublishStatus`]
    Status {
        /// All of it.
        status: &'a Arc<PodStatus>,
        /// The mirror pod that shows it, if the pod is a static one.
        mirror: Option<PodUid>,
    },
    /// [`Action::ReleasePod`]
    Release,
    /// [`Action::CreateMirror`]
    CreateMirror {
        /// The static pod.
        pod: &'a Arc<Pod>,
    },
    /// [`Action::DeleteMirror`]
    DeleteMirror {
        /// Its namespace.
        namespace: &'a Name,
        /// Its name.
        name: &'a Name,
    },
    /// [`Action::RecordEvent`]: nothing waits for it, and it may get lost.
    Event(&'a KubernetesEvent),
}

impl Action {
    /// What it writes to the API server; `None` for what the host is to do.
    pub fn api_write(&self) -> Option<ApiWrite<'_>> {
        match self {
            Action::PublishStatus { status, mirror } => Some(ApiWrite::Status { status, mirror: *mirror }),
            Action::ReleasePod => Some(ApiWrite::Release),
            Action::CreateMirror { pod } => Some(ApiWrite::CreateMirror { pod }),
            Action::DeleteMirror { namespace, name } => Some(ApiWrite::DeleteMirror { namespace, name }),
            Action::RecordEvent(event) => Some(ApiWrite::Event(event)),
            Action::MountVolume { .. }
            | Action::UnmountVolume { .. }
            | Action::RefreshVolume { .. }
            | Action::PullImage { .. }
            | Action::CreateSandbox { .. }
            | Action::StopSandbox { .. }
            | Action::RemoveSandbox { .. }
            | Action::CreateContainer { .. }
            | Action::StartContainer { .. }
            | Action::StopContainer { .. }
            | Action::KillContainer { .. }
            | Action::RemoveContainer { .. }
            | Action::ResizeContainer { .. }
            | Action::ResizePod { .. }
            | Action::RunHook { .. }
            | Action::StartProbe { .. }
            | Action::StopProbe { .. }
            | Action::ObserveMounts
            | Action::ObserveRuntime => None,
        }
    }
}
