//! One record's bytes: a header with a checksum, then the body. The picture is in the crate's front page.

use crate::error::Damage;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes before a record's body.
pub(crate) const HEADER: usize = 16;
/// No record is longer, header included.
pub(crate) const MAX_FRAME: usize = HEADER + MAX_BODY;
/// No body is longer: what the codec reads back, and a little for its frame.
pub(crate) const MAX_BODY: usize = nodefold_core::codec::MAX_ENCODED_BYTES;
/// A longer batch is hashed as pieces of [`HASHED_AT_ONCE`].
const LONG_BATCH: usize = 16 << 10;
/// What a long batch's hash fills up to a multiple of.
pub(crate) const HASHED_AT_ONCE: usize = 4096;
/// What a disk writes whole or not at all.
pub(crate) const SECTOR: usize = 512;

/// Where a record lies and what it says it is. Its checksum holds.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Frame {
    pub offset: usize,
    pub len: usize,
    pub kind: u16,
    pub version: u16,
    pub number: u64,
}

impl Frame {
    pub fn end(&self) -> usize {
        self.offset + self.len
    }
    pub fn body<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.offset + HEADER..self.end()]
    }
}

/// Why there is no good record at an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Only zeros, as far as a header goes: nothing was written here.
    Unwritten,
    /// Something else.
    Bad(Damage),
}

/// Writes a record's header, all but its checksum, into the first bytes of `frame`, which it fills. `index` is its place in
/// its batch: a roll may put records before a batch that waits, so its numbers are not known while it is filled.
#[inline]
pub(crate) fn head(frame: &mut [u8], kind: u16, version: u16, index: u32) {
    let (kind, version, index) = (u128::from(kind), u128::from(version), u128::from(index));
    let header = (frame.len() as u128) << 32 | kind << 64 | version << 80 | index << 96;
    frame[..HEADER].copy_from_slice(&header.to_le_bytes());
}

/// Completes a record that has its header and body.
#[inline]
pub(crate) fn check(frame: &mut [u8], seed: u64) {
    let checksum = checksum(frame, seed);
    frame[..4].copy_from_slice(&checksum.to_le_bytes());
}

/// 32 bits find the record that was changed; that one was changed at all, the chain's 256 say of its batch.
#[inline]
pub(crate) fn checksum(frame: &[u8], seed: u64) -> u32 {
    xxh3_64_with_seed(&frame[4..], seed) as u32
}

/// How many zeros a batch of so many bytes is followed by in its hash. blake3 takes up to sixteen pieces of 1024 bytes side by
/// side, and the odd ones after them cost as much as all sixteen.
pub(crate) fn hash_filler(len: usize) -> usize {
    if len > LONG_BATCH { len.next_multiple_of(HASHED_AT_ONCE) - len } else { 0 }
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |n, &b| n << 8 | u32::from(b))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
}

pub(crate) fn u128_at(bytes: &[u8], at: usize) -> u128 {
    u128::from(u64_at(bytes, at + 8)) << 64 | u128::from(u64_at(bytes, at))
}

/// Reads the record at `offset`, whatever its place in the batch that begins with record `first`.
pub(crate) fn parse(bytes: &[u8], offset: usize, seed: u64, first: u64) -> Result<Frame, Fault> {
    let rest = bytes.get(offset..).unwrap_or(&[]);
    if rest.iter().take(HEADER).all(|&b| b == 0) {
        return Err(Fault::Unwritten);
    }
    if rest.len() < HEADER {
        return Err(Fault::Bad(Damage::Short));
    }
    let len = u32_at(rest, 4);
    if !(HEADER..=MAX_FRAME).contains(&(len as usize)) {
        return Err(Fault::Bad(Damage::Length(len)));
    }
    let Some(frame) = rest.get(..len as usize) else { return Err(Fault::Bad(Damage::Short)) };
    if u32_at(frame, 0) != checksum(frame, seed) {
        return Err(Fault::Bad(Damage::Checksum));
    }
    Ok(Frame {
        offset,
        len: frame.len(),
        kind: u16_at(frame, 8),
        version: u16_at(frame, 10),
        number: first.saturating_add(u64::from(u32_at(frame, 12))),
    })
}

/// Where a batch begins that may begin at `offset` at the earliest: its first header lies within one sector, so that a
/// sector that never reached the disk shows as a header of zeros.
pub(crate) fn batch_start(offset: usize) -> usize {
    let room = SECTOR - offset % SECTOR;
    if room < HEADER { offset + room } else { offset }
}

/// The same for a file's offset.
pub(crate) fn batch_start_at(offset: u64) -> u64 {
    let room = SECTOR as u64 - offset % SECTOR as u64;
    if room < HEADER as u64 { offset + room } else { offset }
}
