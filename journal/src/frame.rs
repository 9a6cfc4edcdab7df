//! One record's bytes: a header with a checksum, then the body. The picture is in the crate's front page.

use crate::error::Damage;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes before a record's body.
pub(crate) const HEADER: usize = 24;
/// No record is longer, header included.
pub(crate) const MAX_FRAME: usize = HEADER + MAX_BODY;
/// No body is longer: what the codec reads back, and a little for its frame.
pub(crate) const MAX_BODY: usize = nodefold_core::codec::MAX_ENCODED_BYTES;
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

/// Begins a record at the end of `out`; the body is appended after it. Returns where it begins.
pub(crate) fn begin(out: &mut Vec<u8>, kind: u16, version: u16) -> usize {
    let start = out.len();
    let mut header = [0; HEADER];
    header[12..14].copy_from_slice(&kind.to_le_bytes());
    header[14..16].copy_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&header);
    start
}

/// Completes a record, which fills `frame`: length, number and checksum.
pub(crate) fn finish(frame: &mut [u8], seed: u64, number: u64) {
    let len = frame.len() as u32;
    frame[8..12].copy_from_slice(&len.to_le_bytes());
    frame[16..24].copy_from_slice(&number.to_le_bytes());
    let checksum = xxh3_64_with_seed(&frame[8..], seed);
    frame[..8].copy_from_slice(&checksum.to_le_bytes());
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

/// Reads the record at `offset`, whatever its number.
pub(crate) fn parse(bytes: &[u8], offset: usize, seed: u64) -> Result<Frame, Fault> {
    let rest = bytes.get(offset..).unwrap_or(&[]);
    if rest.iter().take(HEADER).all(|&b| b == 0) {
        return Err(Fault::Unwritten);
    }
    if rest.len() < HEADER {
        return Err(Fault::Bad(Damage::Short));
    }
    let len = u32_at(rest, 8);
    if !(HEADER..=MAX_FRAME).contains(&(len as usize)) {
        return Err(Fault::Bad(Damage::Length(len)));
    }
    let Some(frame) = rest.get(..len as usize) else { return Err(Fault::Bad(Damage::Short)) };
    if u64_at(frame, 0) != xxh3_64_with_seed(&frame[8..], seed) {
        return Err(Fault::Bad(Damage::Checksum));
    }
    Ok(Frame {
        offset,
        len: frame.len(),
        kind: u16_at(frame, 12),
        version: u16_at(frame, 14),
        number: u64_at(frame, 16),
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
