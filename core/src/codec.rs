//! The one place that turns values into bytes (bincode 2.0.1, DESIGN §10): records, canonical bytes for digests.

use crate::node::Digest;
use alloc::vec::Vec;
use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use xxhash_rust::xxh3::xxh3_128;

/// No value is larger than this: hostile lengths must not make us allocate.
pub const MAX_ENCODED_BYTES: usize = 16 << 20;

/// Room for most values that are hashed.
const TYPICAL_BYTES: usize = 2048;

const CODEC: Configuration<LittleEndian, Fixint, Limit<MAX_ENCODED_BYTES>> =
    bincode::config::legacy().with_limit::<MAX_ENCODED_BYTES>();

/// Why bytes could not be read.
#[derive(Debug)]
pub enum DecodeError {
    /// They are no such value.
    Malformed(bincode::error::DecodeError),
    /// This many bytes were left over.
    TrailingBytes(usize),
}

impl core::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            DecodeError::Malformed(e) => write!(f, "malformed value: {e}"),
            DecodeError::TrailingBytes(n) => write!(f, "{n} bytes left over after the value"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// Appends the value's bytes. Never fails for our own types: they are finite and hold no I/O.
pub fn encode<T: bincode::Encode>(value: &T, out: &mut Vec<u8>) {
    struct Append<'a>(&'a mut Vec<u8>);
    impl Writer for Append<'_> {
        // Called for every field, and from other crates.
        #[inline]
        fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
            self.0.extend_from_slice(bytes);
            Ok(())
        }
    }
    let result = bincode::encode_into_writer(value, Append(out), CODEC);
    assert!(result.is_ok(), "encoding into memory can't fail: {result:?}");
}

/// Reads one value that fills `bytes` exactly.
pub fn decode<T: bincode::Decode<()>>(bytes: &[u8]) -> Result<T, DecodeError> {
    let (value, read) = bincode::decode_from_slice(bytes, CODEC).map_err(DecodeError::Malformed)?;
    if read != bytes.len() {
        return Err(DecodeError::TrailingBytes(bytes.len() - read));
    }
    Ok(value)
}

/// The hash of bytes that are canonical already.
pub fn hash_bytes(bytes: &[u8]) -> Digest {
    Digest(xxhash_rust::xxh3::xxh3_128(bytes))
}

/// The hash of a value's canonical bytes: equal on every platform and toolchain, unlike `derive(Hash)`.
pub fn hash<T: bincode::Encode>(value: &T) -> Digest {
    // All bytes at once: to feed the hash field by field would cost several times as much.
    let mut bytes = Vec::with_capacity(TYPICAL_BYTES);
    encode(value, &mut bytes);
    Digest(xxh3_128(&bytes))
}
