//! Snapshots: the fold's state in a file of its own, checked before use. A snapshot that can't be used is never an
//! error, since the log is never pruned; but why it wasn't is told.

use crate::compress::write_new;
use crate::error::{Error, io_error};
use crate::fold::Fold;
use crate::frame::{u32_at, u64_at};
use crate::log::{
    beside_file, parse_beside_file, parse_portable_file, parse_snapshot_file, portable_file, snapshot_file,
};
use crate::storage::Storage;
use nodefold_core::codec;
use nodefold_core::time::Time;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// How a state is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form<'s> {
    /// As the layout has it: fast, and for this layout only.
    Layout,
    /// For any version that knows the document.
    Portable,
    /// Another reducer's, of this stream.
    Beside(&'s str),
}

impl Form<'_> {
    const fn magic(self) -> &'static [u8; 8] {
        match self {
            Form::Layout => b"nfldsnap",
            Form::Portable => b"nfldstat",
            Form::Beside(_) => b"nfldside",
        }
    }

    pub fn file(self, records: u64) -> String {
        match self {
            Form::Layout => snapshot_file(records),
            Form::Portable => portable_file(records),
            Form::Beside(stream) => beside_file(stream, records),
        }
    }

    fn parse(self, name: &str) -> Option<u64> {
        match self {
            Form::Layout => parse_snapshot_file(name),
            Form::Portable => parse_portable_file(name),
            Form::Beside(stream) => parse_beside_file(stream, name),
        }
    }
}

/// How many are kept of what only the newest is used of: that one, and the one before it should it be damaged.
const NEWEST_KEPT: usize = 2;
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

/// Writes one in each form that the fold has; each is there as a whole or not at all.
pub(crate) fn write<F: Fold>(storage: &dyn Storage, head: SnapshotHead, fold: &F) -> Result<(), Error> {
    if let Some(payload) = fold.to_portable() {
        write_one(storage, Form::Portable, head.clone(), &payload)?;
        forget_old(storage, Form::Portable)?;
    }
    write_one(storage, Form::Layout, head, &fold.to_snapshot())
}

/// The records that there are such states of, in order.
pub(crate) fn there_are(storage: &dyn Storage, form: Form<'_>) -> Result<Vec<u64>, Error> {
    let names = storage.list().map_err(|e| io_error("list", storage.path(""), 0, e))?;
    let mut states: Vec<u64> = names.iter().filter_map(|n| form.parse(n)).collect();
    states.sort_unstable();
    Ok(states)
}

/// Older ones are of no use: whoever goes on does so from the newest.
pub(crate) fn forget_old(storage: &dyn Storage, form: Form<'_>) -> Result<(), Error> {
    let mut states = there_are(storage, form)?;
    states.truncate(states.len().saturating_sub(NEWEST_KEPT));
    for records in states {
        let name = form.file(records);
        storage.remove(&name).map_err(|e| io_error("remove", storage.path(&name), 0, e))?;
    }
    Ok(())
}

pub(crate) fn write_one(
    storage: &dyn Storage,
    form: Form<'_>,
    mut head: SnapshotHead,
    payload: &[u8],
) -> Result<(), Error> {
    (head.payload_len, head.payload_hash) = (payload.len() as u64, xxh3_128(payload));
    let mut body = Vec::new();
    codec::encode(&head, &mut body);
    let mut out = form.magic().to_vec();
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&(body.len() as u32).to_le_bytes());
    out.extend_from_slice(&body);
    let checksum = xxh3_64(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(payload);
    write_new(storage, &form.file(head.records), &out)
}

/// Reads a snapshot's head, and the bytes of its state.
pub(crate) fn read(
    storage: &dyn Storage,
    form: Form<'_>,
    records: u64,
) -> Result<(SnapshotHead, Vec<u8>), String> {
    let mut bytes = storage.read(&form.file(records), u64::MAX).map_err(|e| e.to_string())?;
    if bytes.len() < PREFIX || bytes[..8] != *form.magic() {
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
pub(crate) fn head(storage: &dyn Storage, form: Form<'_>, records: u64) -> Result<SnapshotHead, String> {
    read(storage, form, records).map(|(head, _)| head)
}

/// Reads a snapshot and proves that its state is the one that it says.
pub(crate) fn load<F: Fold>(
    storage: &dyn Storage,
    form: Form<'_>,
    records: u64,
    journal: u128,
) -> Result<(SnapshotHead, F), Refused> {
    let refuse = |reason| Refused { file: storage.path(&form.file(records)), reason };
    let (head, payload) = read(storage, form, records).map_err(refuse)?;
    if head.journal != journal {
        return Err(refuse("it belongs to another journal".to_owned()));
    }
    if form == Form::Portable {
        let mut fold = F::from_portable(&payload).map_err(refuse)?;
        // Another layout has another digest of the same state.
        let as_written = head.layout != F::LAYOUT || fold.digest().0 == head.digest;
        if !as_written || fold.event_count().0 != head.events {
            return Err(refuse("its state is not the one that its head names".to_owned()));
        }
        return Ok((head, fold));
    }
    if head.layout != F::LAYOUT {
        return Err(refuse(format!(
            "its state has the layout {:?} (nodefold {}), this program has {:?}",
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
