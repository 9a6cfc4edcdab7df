//! Sealed segments, compressed block by block (LZ4), each block with its own checksum so that damage has a place.

use crate::error::{Damage, Error, io_error};
use crate::frame::{self, u16_at, u32_at, u64_at};
use crate::record::Kind;
use crate::segment::{self, HEADER, SegmentHeader, SegmentName};
use crate::storage::{Storage, write_all_at};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes before a block's packed bytes.
const BLOCK_HEADER: usize = 32;
/// Bytes of the segment in one block.
const BLOCK: usize = 256 << 10;

/// Compresses a sealed segment's bytes.
fn pack(header: &SegmentHeader, raw: &[u8]) -> Vec<u8> {
    let mut out = header.encode(true).to_vec();
    let mut block = |offset: usize, record: u64, bytes: &[u8]| {
        let start = out.len();
        let packed = if bytes.is_empty() { Vec::new() } else { lz4_flex::block::compress(bytes) };
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&(offset as u64).to_le_bytes());
        out.extend_from_slice(&record.to_le_bytes());
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        out.extend_from_slice(&packed);
        let checksum = xxh3_64_with_seed(&out[start + 8..], header.seed());
        out[start..start + 8].copy_from_slice(&checksum.to_le_bytes());
    };
    // The first record that begins in each block, so that a damaged block tells which records it holds.
    let (mut at, mut record) = (HEADER, header.first_record);
    let mut offset = HEADER;
    while offset < raw.len() {
        while at < offset {
            at = next_frame(raw, at);
            record += 1;
        }
        let end = (offset + BLOCK).min(raw.len());
        block(offset, record, &raw[offset..end]);
        offset = end;
    }
    block(raw.len(), record, &[]);
    out
}

/// Where the record after the one at `at` begins, in a segment that was read as good.
fn next_frame(raw: &[u8], at: usize) -> usize {
    let after = at + u32_at(raw, at + 4) as usize;
    if u16_at(raw, at + 8) == Kind::BatchEnd.number() { frame::batch_start(after) } else { after }
}

/// The uncompressed segment.
pub(crate) fn unpack(header: &SegmentHeader, packed: &[u8], path: &str) -> Result<Vec<u8>, Error> {
    let mut raw = header.encode(false).to_vec();
    let (mut at, mut record) = (HEADER, header.first_record);
    loop {
        let before = raw.len();
        let damaged = |offset, record, what| Error::Damaged { file: path.to_owned(), offset, record, what };
        let (end, first) =
            unpack_block(header, packed, at, &mut raw).map_err(|what| damaged(at as u64, record, what))?;
        (at, record) = (end, first);
        if raw.len() > before {
            continue;
        }
        return if at == packed.len() {
            Ok(raw)
        } else {
            Err(damaged(at as u64, record, Damage::StrayBytes))
        };
    }
}

/// Appends a block's bytes; none, if it is the last. Returns where it ends, and the first record that begins in it.
fn unpack_block(
    header: &SegmentHeader,
    packed: &[u8],
    at: usize,
    raw: &mut Vec<u8>,
) -> Result<(usize, u64), Damage> {
    let block = packed.get(at..at + BLOCK_HEADER).ok_or(Damage::Short)?;
    let (raw_len, packed_len) = (u32_at(block, 24) as usize, u32_at(block, 28) as usize);
    let end = at + BLOCK_HEADER + packed_len;
    let bytes = packed.get(at + BLOCK_HEADER..end).ok_or(Damage::Short)?;
    if u64_at(block, 0) != xxh3_64_with_seed(&packed[at + 8..end], header.seed())
        || u64_at(block, 8) != raw.len() as u64
        || raw_len > BLOCK
    {
        return Err(Damage::Block);
    }
    let start = raw.len();
    raw.resize(start + raw_len, 0);
    if raw_len > 0 && lz4_flex::block::decompress_into(bytes, &mut raw[start..]).ok() != Some(raw_len) {
        return Err(Damage::Block);
    }
    Ok((end, u64_at(block, 16)))
}

/// As many bytes as hold the first block of any segment, packed or not: LZ4 makes what it can't shrink a 255th longer.
pub(crate) const FRONT: usize = HEADER + BLOCK_HEADER + BLOCK + BLOCK / 255 + 16;

/// The front of the uncompressed segment, out of the first [`FRONT`] bytes of a compressed one.
pub(crate) fn unpack_front(header: &SegmentHeader, packed: &[u8]) -> Result<Vec<u8>, Damage> {
    let mut raw = header.encode(false).to_vec();
    unpack_block(header, packed, HEADER, &mut raw)?;
    Ok(raw)
}

/// Puts a compressed file in a sealed segment's place. At no moment is there none: the new one is whole and durable
/// before the old one goes.
pub(crate) fn compress(storage: &dyn Storage, first_record: u64) -> Result<(), Error> {
    let name = SegmentName { first_record, compressed: false };
    let sealed = segment::load(storage, &name)?;
    let packed = pack(&sealed.header, &sealed.bytes);
    let target = SegmentName { first_record, compressed: true }.file();
    write_new(storage, &target, &packed)?;
    storage
        .remove(&name.file())
        .and_then(|()| storage.sync_dir())
        .map_err(|e| io_error("remove", storage.path(&name.file()), 0, e))
}

/// Writes a whole new file so that it is either there with all its bytes, or not there.
pub(crate) fn write_new(storage: &dyn Storage, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let temporary = format!("{name}.tmp");
    let write = || {
        let mut file = storage.create(&temporary)?;
        write_all_at(&mut *file, 0, bytes)?;
        file.sync()?;
        storage.rename(&temporary, name)?;
        storage.sync_dir()
    };
    write().map_err(|e| io_error("write", storage.path(name), bytes.len() as u64, e))
}
