//! A pod's sandbox.

use crate::ids::{Name, OpId};

/// One attempt at a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Sandbox {
    /// Which attempt, from 0.
    pub attempt: u32,
    /// Where it is in its life.
    pub phase: SandboxPhase,
    /// Its address.
    pub ip: Option<Name>,
}

/// A sandbox's life.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub enum SandboxPhase {
    /// Being made.
    Creating {
        /// By this operation.
        op: OpId,
    },
    /// It runs.
    Ready,
    /// It died by itself; what is left of it wants a stop.
    Dead,
    /// Being stopped; `None`: the stop failed or its operation is unknown, and is to be repeated.
    Stopping {
        /// By this operation.
        op: Option<OpId>,
    },
    /// Stopped; may be removed.
    Stopped,
    /// Being removed.
    Removing {
        /// By this operation.
        op: OpId,
    },
    /// It may exist: an operation's end is unknown.
    Unknown,
}

impl SandboxPhase {
    /// For people.
    pub fn label(&self) -> &'static str {
        match self {
            SandboxPhase::Creating { .. } => "Creating",
            SandboxPhase::Ready => "Ready",
            SandboxPhase::Dead => "Dead",
            SandboxPhase::Stopping { .. } => "Stopping",
            SandboxPhase::Stopped => "Stopped",
            SandboxPhase::Removing { .. } => "Removing",
            SandboxPhase::Unknown => "Unknown",
        }
    }
}
