//! What the node remembers. Plain records with small questions answered; no room's rule lives here.

pub mod container;
pub mod pod;
pub mod retry;
pub mod sandbox;
pub mod seldom;
pub mod shared;
pub mod volume;

pub use container::{
    ContainerKind, ContainerState, Dead, Ended, HookState, Instance, InstancePhase, Probes, Stop,
};
pub use pod::{
    Allocation, InProgress, Lifecycle, Pending, PendingKind, PodState, Publication, Shown, Surplus,
    Termination, TerminationCause,
};
pub use retry::Retry;
pub use sandbox::{Sandbox, SandboxPhase};
pub use seldom::Seldom;
pub use shared::Shared;
pub use volume::{Upkeep, VolumePhase, VolumeState};
