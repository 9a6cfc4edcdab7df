//! Snapshots: the fold's state in a file of its own, checked before use. A snapshot that can't be used is never an
//! error, since the log is never pruned; but why it wasn't is told.

use crate::compress::write_new;
use crate::error::Error;
use crate::fold::Fold;
use crate::frame::{u32_at, u64_at};
use crate::log::snapshot_file;
use crate::storage::Storage;
use nodefold_core::codec;
use nodefold_core::time::Time;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

const MAGIC: &[u8; 8] = b"nfldsnap";
const FORMAT: u32 = 1;
/// Bytes before the head: magic, format, length of the head.
const PREFIX: usize = 16;

/// What a snapshot is of.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct SnapshotHead {
    /// The version of nodefold that wrote it.
    pub software: String,
    /// The layout of the state.
    pub layout: String,
    /// Which journal it belongs to.
    pub journal: u128,
    /// It is the state after this record.
    pub records: u64,
    /// That record ended this batch.
    pub batches: u64,
    /// Events folded in.
    pub events: u64,
    /// The latest time in the log up to there.
    pub at: Time,
    /// The state's digest.
    pub digest: u128,
    /// The running hash of the commands given out.
    pub commands: u128,
    /// The chain up to there.
    pub chain: [u8; 32],
    /// How many bytes of state follow.
    pub payload_len: u64,
    /// Their hash.
    pub payload_hash: u128,
}

/// A snapshot that was not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which file.
    pub file: String,
    /// Why.
    pub reason: String,
}

/// Writes one; it is there as a whole or not at all.
pub(crate) fn write<F: Fold>(storage: &dyn Storage, mut head: SnapshotHead, fold: &F) -> Result<(), Error> {
    let payload = fold.to_snapshot();
    (head.payload_len, head.payload_hash) = (payload.len() as u64, xxh3_128(&payload));
    let mut body = Vec::new();
    codec::encode(&head, &mut body);
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&body);
    let checksum = xxh3_64(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(&payload);
    write_new(storage, &snapshot_file(head.records), &out)
}

/// Reads a snapshot's head, and the bytes of its state.
fn read(storage: &dyn Storage, records: u64) -> Result<(SnapshotHead, Vec<u8>), String> {
    let mut bytes = storage.read(&snapshot_file(records), u64::MAX).map_err(|e| e.to_string())?;
    if bytes.len() < PREFIX || bytes[..8] != *MAGIC {
        return Err("it does not begin as a snapshot does".to_owned());
    }
    let format = u32_at(&bytes, 8);
    if format != FORMAT {
        return Err(format!("its format is {format}, this nodefold reads {FORMAT}"));
    }
    let head_end = PREFIX + u32_at(&bytes, 12) as usize;
    if bytes.len() < head_end + 8 || u64_at(&bytes, head_end) != xxh3_64(&bytes[..head_end]) {
        return Err("its head does not match its checksum".to_owned());
    }
    let head: SnapshotHead = codec::decode(&bytes[PREFIX..head_end]).map_err(|e| e.to_string())?;
    if head.records != records {
        return Err(format!("it is of record {}, not of the one in its name", head.records));
    }
    let payload = bytes.split_off(head_end + 8);
    if payload.len() as u64 != head.payload_len || xxh3_128(&payload) != head.payload_hash {
        return Err("its state does not match its checksum".to_owned());
    }
    Ok((head, payload))
}

/// A snapshot's head alone.
pub(crate) fn head(storage: &dyn Storage, records: u64) -> Result<SnapshotHead, String> {
    read(storage, records).map(|(head, _)| head)
}

/// Reads a snapshot and proves that its state is the one that it says.
pub(crate) fn load<F: Fold>(
    storage: &dyn Storage,
    records: u64,
    journal: u128,
) -> Result<(SnapshotHead, F), Refused> {
    let refuse = |reason| Refused { file: storage.path(&snapshot_file(records)), reason };
    let (head, payload) = read(storage, records).map_err(refuse)?;
    if head.journal != journal {
        return Err(refuse("it belongs to another journal".to_owned()));
    }
    if head.layout != F::LAYOUT {
        return Err(refuse(format!(
            "its state has the layout {:?} (nodefold {}), this program has {:?}; the log is folded instead",
            head.layout,
            head.software,
            F::LAYOUT
        )));
    }
    let mut fold = F::from_snapshot(&payload).map_err(refuse)?;
    let digest = fold.digest().0;
    if digest != head.digest || fold.event_count().0 != head.events {
        return Err(refuse(format!(
            "its state has the digest {digest:032x}, its head says {:032x}",
            head.digest
        )));
    }
    Ok((head, fold))
}
