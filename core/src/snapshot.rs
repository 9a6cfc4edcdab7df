//! The whole state as bytes and back (rkyv, DESIGN §8): checked before use, shared specs kept shared. No schema
//! evolution: the bytes are only good for the layout that made them, which [`LAYOUT`] names.

use crate::node::{Node, State};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use rkyv::rancor::Error;

/// Names the layout of snapshots. Another name means that the state must be folded anew from the log.
pub const LAYOUT: &str = concat!("nodefold-core ", env!("CARGO_PKG_VERSION"), " state 5");

/// Bytes that are no snapshot of this layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSnapshot(pub String);

impl core::fmt::Display for BadSnapshot {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "not a snapshot of layout {LAYOUT:?}: {}", self.0)
    }
}

impl core::error::Error for BadSnapshot {}

impl Node {
    /// The state as bytes.
    pub fn to_snapshot(&self) -> Vec<u8> {
        let bytes = rkyv::to_bytes::<Error>(&self.state);
        match bytes {
            Ok(bytes) => bytes.to_vec(),
            // Serializing owned memory into memory fails only when memory does.
            Err(error) => panic!("a state can always be written into memory: {error}"),
        }
    }

    /// A node with the state that the bytes hold. They are checked; the caller has compared layout and checksum.
    pub fn from_snapshot(bytes: &[u8]) -> Result<Node, BadSnapshot> {
        let mut aligned = rkyv::util::AlignedVec::<16>::with_capacity(bytes.len());
        aligned.extend_from_slice(bytes);
        let state = rkyv::from_bytes::<State, Error>(&aligned).map_err(|e| BadSnapshot(e.to_string()))?;
        Ok(Node::from_state(state))
    }
}
