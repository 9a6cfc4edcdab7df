//! Where the log's good part ends: a torn tail, which is cut, or damage, which is not.
//!
//! A batch reaches the disk in one write, sector by sector in any order, into a file whose sectors were zeros and
//! durable before. So what a crash leaves of the last batch is some sectors of it and zeros for the others, and nothing
//! after it. Whatever else does not check was whole once:
//!
//! - no batch ends after the bad place: the batch was never acknowledged, and is cut;
//! - its own end is there, nothing after it, and a sector before it is all zeros: the sync that would have acknowledged
//!   it never returned, and it is cut;
//! - anything else is damage to what was acknowledged.

use crate::frame::{self, HEADER, MAX_FRAME, SECTOR, u32_at};
use crate::record::{BatchEnd, Kind};
use nodefold_core::codec;

/// What was found after the last whole batch, and cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// In which file.
    pub file: String,
    /// Where the last whole batch ends.
    pub offset: u64,
    /// How many bytes from there to the last that is not zero.
    pub bytes: u64,
    /// The number of the first record that was cut.
    pub first_record: u64,
    /// How many records of the unfinished batch were whole.
    pub whole_records: u64,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Cut { file, offset, bytes, first_record, whole_records } = self;
        write!(
            f,
            "{file}: {bytes} bytes from offset {offset} on are an unfinished batch that was never acknowledged, from \
             record {first_record} on ({whole_records} of its records were whole)"
        )
    }
}

/// What follows the last whole batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Zeros.
    Clean,
    /// Part of a batch: cut from the batch's start.
    Torn,
    /// Something that was acknowledged is no longer as it was.
    Damaged,
}

/// The unfinished batch and where it stops being good.
pub(crate) struct Unfinished<'a> {
    /// The segment.
    pub bytes: &'a [u8],
    /// The journal's seed.
    pub seed: u64,
    /// Where the batch before ends.
    pub start: usize,
    /// The number of this batch's first record.
    pub first_record: u64,
    /// The first bad offset.
    pub bad: usize,
}

/// Judges it.
pub(crate) fn judge(unfinished: &Unfinished<'_>) -> Tail {
    let Unfinished { bytes, start, first_record, bad, .. } = *unfinished;
    if bytes[start.min(bytes.len())..].iter().all(|&b| b == 0) {
        return Tail::Clean;
    }
    let Some(later) = later_frames(unfinished) else { return Tail::Damaged };
    let mut ends = later.iter().filter(|f| f.kind == Kind::BatchEnd.number());
    let Some(end) = ends.next() else { return Tail::Torn };
    let own = codec::decode::<BatchEnd>(end.body(bytes)).is_ok_and(|e| e.first_record == first_record);
    let last = later.last().is_some_and(|f| f.offset == end.offset);
    let next_good = later.first().map_or(end.offset, |f| f.offset);
    if own && last && unwritten_sector(bytes, start, bad, next_good) { Tail::Torn } else { Tail::Damaged }
}

/// The good frames after the bad place, of this batch or a later one, whose indices begin anew; `None` if it takes too long to tell, which only
/// bytes made for it can bring about.
fn later_frames(unfinished: &Unfinished<'_>) -> Option<Vec<frame::Frame>> {
    let Unfinished { bytes, seed, start, first_record, bad } = *unfinished;
    let mut found = Vec::new();
    let mut budget = 16 * bytes.len() + MAX_FRAME;
    let most = bytes.len().saturating_sub(start) / HEADER;
    let mut at = bad + 1;
    while at + HEADER <= bytes.len() {
        let len = u32_at(bytes, at + 4) as usize;
        let index = u32_at(bytes, at + 12) as usize;
        if (HEADER..=MAX_FRAME).contains(&len) && at + len <= bytes.len() && index <= most {
            budget = budget.checked_sub(len)?;
            if let Ok(frame) = frame::parse(bytes, at, seed, first_record) {
                found.push(frame);
                at += len;
                continue;
            }
        }
        at += 1;
    }
    Some(found)
}

/// Whether a sector that overlaps `from..to` is all zeros from `start` (what lies before is another batch's).
fn unwritten_sector(bytes: &[u8], start: usize, from: usize, to: usize) -> bool {
    (from / SECTOR..to.div_ceil(SECTOR)).any(|sector| {
        let (begin, end) = ((sector * SECTOR).max(start), ((sector + 1) * SECTOR).min(bytes.len()));
        bytes[begin..end].iter().all(|&b| b == 0)
    })
}
