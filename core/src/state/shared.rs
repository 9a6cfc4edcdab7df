//! An immutable value and its digest: hashed once when it arrives, compared and digested by those sixteen bytes ever
//! after (DESIGN §3).

use crate::codec;
use crate::node::Digest;
use alloc::sync::Arc;
use bincode::enc::{Encode, Encoder};
use bincode::error::EncodeError;
use core::ops::Deref;

/// See the file's head.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "rkyv", derive(rkyv::Archive, rkyv::Serialize, rkyv::Deserialize))]
pub struct Shared<T> {
    value: Arc<T>,
    /// In halves, so that it does not align all that holds it to sixteen bytes.
    digest: [u64; 2],
}

impl<T: Encode> Shared<T> {
    /// Hashes it.
    pub fn new(value: Arc<T>) -> Shared<T> {
        let digest = codec::hash(&*value).0;
        Shared { value, digest: [digest as u64, (digest >> 64) as u64] }
    }
}

impl<T> Shared<T> {
    /// The value, to hand on.
    pub fn arc(&self) -> &Arc<T> {
        &self.value
    }
    /// Equal exactly when values are.
    pub fn digest(&self) -> Digest {
        Digest(u128::from(self.digest[1]) << 64 | u128::from(self.digest[0]))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared { value: self.value.clone(), digest: self.digest }
    }
}

impl<T> PartialEq for Shared<T> {
    fn eq(&self, other: &Shared<T>) -> bool {
        self.digest == other.digest
    }
}

impl<T> Eq for Shared<T> {}

impl<T> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Encode for Shared<T> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.digest().encode(encoder)
    }
}
