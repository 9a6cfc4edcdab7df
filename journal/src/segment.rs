//! A segment file: its name, its header, and its bytes in memory, unpacked if they were compressed.

use crate::compress;
use crate::error::{Damage, Error, io_error};
use crate::frame::{u32_at, u64_at, u128_at};
use crate::storage::Storage;
use nodefold_core::time::Time;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes before the first record.
pub(crate) const HEADER: usize = 128;
const MAGIC: &[u8; 8] = b"nodefold";
/// The format of the files, as distinct from that of the records. Formats 1 and 2 were never released and are not read.
pub(crate) const FORMAT: u32 = 3;
const RAW: u32 = 0;
const COMPRESSED: u32 = 1;

/// What a segment continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// Tells this journal from others.
    pub id: u128,
    /// The number of its first record.
    pub first_record: u64,
    /// The number of its first batch.
    pub first_batch: u64,
    /// The latest time before it.
    pub since: Time,
    /// The chain before its first batch.
    pub chain: [u8; 32],
}

impl SegmentHeader {
    /// What seeds the checksums of this journal's records.
    pub fn seed(&self) -> u64 {
        seed(self.id)
    }

    pub fn encode(&self, compressed: bool) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        out[12..16].copy_from_slice(&(if compressed { COMPRESSED } else { RAW }).to_le_bytes());
        out[16..32].copy_from_slice(&self.id.to_le_bytes());
        out[32..40].copy_from_slice(&self.first_record.to_le_bytes());
        out[40..48].copy_from_slice(&self.first_batch.to_le_bytes());
        out[48..56].copy_from_slice(&self.since.0.to_le_bytes());
        out[56..88].copy_from_slice(&self.chain);
        let checksum = xxh3_64(&out[..HEADER - 8]);
        out[HEADER - 8..].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8], file: &str, name: &SegmentName) -> Result<SegmentHeader, Error> {
        let damaged =
            |what| Err(Error::Damaged { file: file.to_owned(), offset: 0, record: name.first_record, what });
        let Some(bytes) = bytes.get(..HEADER) else { return damaged(Damage::Short) };
        if bytes[..8] != *MAGIC || u64_at(bytes, HEADER - 8) != xxh3_64(&bytes[..HEADER - 8]) {
            return damaged(Damage::FileHeader);
        }
        let format = u32_at(bytes, 8);
        if format != FORMAT {
            return Err(Error::UnknownFormat { file: file.to_owned(), format, known: FORMAT });
        }
        let mut chain = [0; 32];
        chain.copy_from_slice(&bytes[56..88]);
        let header = SegmentHeader {
            id: u128_at(bytes, 16),
            first_record: u64_at(bytes, 32),
            first_batch: u64_at(bytes, 40),
            since: Time(u64_at(bytes, 48)),
            chain,
        };
        // A renamed or copied segment is a damaged one. Half of all numbers is more than any log has, and leaves room
        // to count on without overflow.
        if header.first_record > u64::MAX / 2
            || header.first_batch > u64::MAX / 2
            || header.first_record == 0
            || header.first_record != name.first_record
            || (u32_at(bytes, 12) == COMPRESSED) != name.compressed
        {
            return damaged(Damage::FileHeader);
        }
        Ok(header)
    }
}

/// What seeds the checksums of a journal's records: one of another journal's is none of this one's.
pub(crate) fn seed(id: u128) -> u64 {
    (id >> 64) as u64 ^ id as u64
}

/// A segment's file name: its first record, and whether it is compressed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentName {
    pub first_record: u64,
    pub compressed: bool,
}

impl SegmentName {
    pub fn file(&self) -> String {
        format!("{:020}.{}", self.first_record, if self.compressed { "segz" } else { "seg" })
    }
    pub fn parse(name: &str) -> Option<SegmentName> {
        let (digits, extension) = name.split_once('.')?;
        let compressed = match extension {
            "seg" => false,
            "segz" => true,
            _ => return None,
        };
        let parsed = SegmentName { first_record: digits.parse().ok()?, compressed };
        (parsed.file() == name).then_some(parsed)
    }
}

/// A segment in memory. Offsets are those of the uncompressed file.
pub(crate) struct Segment {
    /// As people find it.
    pub path: Arc<str>,
    pub header: SegmentHeader,
    /// Its header and records.
    pub bytes: Vec<u8>,
}

/// A segment file's first bytes, and the name of the form that it has now. Who reads while a node writes may have listed
/// a segment that has been compressed meanwhile.
fn read(storage: &dyn Storage, name: &SegmentName, limit: u64) -> Result<(SegmentName, Vec<u8>), Error> {
    let failed = |name: &SegmentName, e| io_error("read", storage.path(&name.file()), 0, e);
    match storage.read(&name.file(), limit) {
        Ok(bytes) => Ok((*name, bytes)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && !name.compressed => {
            let now = SegmentName { compressed: true, ..*name };
            let bytes = storage.read(&now.file(), limit).map_err(|_| failed(name, e))?;
            Ok((now, bytes))
        }
        Err(e) => Err(failed(name, e)),
    }
}

/// Reads a segment's header only.
pub(crate) fn read_header(storage: &dyn Storage, name: &SegmentName) -> Result<SegmentHeader, Error> {
    let (name, bytes) = read(storage, name, HEADER as u64)?;
    SegmentHeader::decode(&bytes, &storage.path(&name.file()), &name)
}

/// Reads a segment whole.
pub(crate) fn load(storage: &dyn Storage, name: &SegmentName) -> Result<Segment, Error> {
    let (name, bytes) = read(storage, name, u64::MAX)?;
    let path = storage.path(&name.file());
    let header = SegmentHeader::decode(&bytes, &path, &name)?;
    let bytes = if name.compressed { compress::unpack(&header, &bytes, &path)? } else { bytes };
    Ok(Segment { path: path.into(), header, bytes })
}

/// Reads a segment's front: what was written first, a quarter of a megabyte at most.
pub(crate) fn load_front(storage: &dyn Storage, name: &SegmentName) -> Result<Segment, Error> {
    let (name, bytes) = read(storage, name, compress::FRONT as u64)?;
    let path = storage.path(&name.file());
    let header = SegmentHeader::decode(&bytes, &path, &name)?;
    let bytes = if name.compressed {
        let damaged = |what| Error::Damaged {
            file: path.clone(),
            offset: HEADER as u64,
            record: header.first_record,
            what,
        };
        compress::unpack_front(&header, &bytes).map_err(damaged)?
    } else {
        bytes
    };
    Ok(Segment { path: path.into(), header, bytes })
}
