//! The directory as a log: its segments in order, and its batches one after the other, every byte checked on the way.

use crate::error::{Damage, Error, io_error};
use crate::frame::{self, Fault, Frame};
use crate::record::{self, BatchEnd, Kind, Place, Record};
use crate::segment::{self, Segment, SegmentHeader, SegmentName};
use crate::storage::Storage;
use crate::tail::{Cut, Tail, Unfinished, judge};
use nodefold_core::codec;
use nodefold_core::time::Time;
use std::sync::Arc;

/// A place in a log.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// A record's number.
    Record(u64),
    /// A time. Up to it: everything that had happened by then. From it: what happened then or later.
    Time(Time),
}

/// The segments of a journal, by their headers.
#[derive(Clone)]
pub(crate) struct Log {
    pub storage: Arc<dyn Storage>,
    pub segments: Vec<(SegmentName, SegmentHeader)>,
    /// Snapshots by the number of records that they include.
    pub snapshots: Vec<u64>,
    /// Portable states, likewise.
    pub portables: Vec<u64>,
}

/// A snapshot's file name.
pub(crate) fn snapshot_file(records: u64) -> String {
    format!("{records:020}.snap")
}

/// A portable state's file name.
pub(crate) fn portable_file(records: u64) -> String {
    format!("{records:020}.state")
}

pub(crate) fn parse_portable_file(name: &str) -> Option<u64> {
    let records = name.strip_suffix(".state")?.parse().ok()?;
    (portable_file(records) == name).then_some(records)
}

/// The name of another reducer's state, by its stream.
pub(crate) fn beside_file(stream: &str, records: u64) -> String {
    format!("{records:020}.{stream}.kept")
}

pub(crate) fn parse_beside_file(stream: &str, name: &str) -> Option<u64> {
    let records = name.strip_suffix(".kept")?.strip_suffix(stream)?.strip_suffix('.')?.parse().ok()?;
    (beside_file(stream, records) == name).then_some(records)
}

pub(crate) fn parse_snapshot_file(name: &str) -> Option<u64> {
    let records = name.strip_suffix(".snap")?.parse().ok()?;
    (snapshot_file(records) == name).then_some(records)
}

impl Log {
    /// Reads every segment's header, nothing more.
    pub fn open(storage: Arc<dyn Storage>) -> Result<Log, Error> {
        let names = match storage.list() {
            Ok(names) => names,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(io_error("list", storage.path(""), 0, e)),
        };
        let mut segments: Vec<(SegmentName, SegmentHeader)> = Vec::new();
        for name in names.iter().filter_map(|n| SegmentName::parse(n)) {
            // Both forms of one segment: a crash came between making the second and removing the first.
            if segments.last().is_some_and(|(before, _)| before.first_record == name.first_record) {
                continue;
            }
            let header = segment::read_header(&*storage, &name)?;
            if let Some((_, before)) = segments.last()
                && before.id != header.id
            {
                return Err(Error::Damaged {
                    file: storage.path(&name.file()),
                    offset: 0,
                    record: name.first_record,
                    what: Damage::OtherJournal,
                });
            }
            segments.push((name, header));
        }
        let Some((first, _)) = segments.first() else {
            return Err(Error::NotAJournal { dir: storage.path("") });
        };
        if first.first_record != 1 {
            return Err(Error::MissingSegment {
                file: storage.path(&first.file()),
                expected: 1,
                before: first.first_record.saturating_sub(1),
            });
        }
        let snapshots = names.iter().filter_map(|n| parse_snapshot_file(n)).collect();
        let portables = names.iter().filter_map(|n| parse_portable_file(n)).collect();
        Ok(Log { storage, segments, snapshots, portables })
    }

    /// The index of the segment that holds the record (or the last one).
    pub fn segment_of_record(&self, record: u64) -> usize {
        self.segments.partition_point(|(_, h)| h.first_record <= record).saturating_sub(1)
    }

    /// The index of the segment in which the first record at or after that time is (or the last one).
    pub fn segment_of_time(&self, at: Time) -> usize {
        self.segments.partition_point(|(_, h)| h.since < at).saturating_sub(1)
    }

    /// The batches from that segment on.
    pub fn batches(&self, from: usize) -> Batches {
        Batches {
            log: self.clone(),
            next_segment: from,
            current: None,
            frames: Vec::new(),
            end: None,
            cut: None,
            check_chain: true,
        }
    }
}

/// Walks over batches.
pub(crate) struct Batches {
    log: Log,
    next_segment: usize,
    current: Option<Open>,
    /// The records of the batch, its end excluded.
    pub frames: Vec<Frame>,
    /// The batch's end, and its frame.
    pub end: Option<(Frame, BatchEnd)>,
    /// What follows the last batch, if it is not zeros.
    pub cut: Option<Cut>,
    /// Off for a first look at what is read again.
    pub check_chain: bool,
}

/// The segment being read and how far.
struct Open {
    segment: Segment,
    last: bool,
    offset: usize,
    /// Where the last batch that was read begins.
    last_batch: usize,
    next_record: u64,
    next_batch: u64,
    chain: [u8; 32],
}

/// What a whole log ends with: where a writer goes on.
#[derive(Clone, Debug)]
pub(crate) struct End {
    pub segment: SegmentName,
    pub offset: usize,
    /// The bytes of the last batch, up to `offset`.
    pub last_batch: Vec<u8>,
    pub file_len: usize,
    pub next_record: u64,
    pub next_batch: u64,
    pub chain: [u8; 32],
}

impl Batches {
    /// Reads the next batch; false at the log's end.
    pub fn advance(&mut self) -> Result<bool, Error> {
        self.end = None;
        self.frames.clear();
        loop {
            if self.current.is_none() && !self.open_next(None)? {
                return Ok(false);
            }
            let Some(open) = &mut self.current else { return Ok(false) };
            match open.next_batch(&mut self.frames, self.check_chain)? {
                Step::Batch(frame, end) => {
                    self.end = Some((frame, end));
                    return Ok(true);
                }
                Step::SegmentEnd => {
                    let before = (open.next_record, open.next_batch, open.chain);
                    if !self.open_next(Some(before))? {
                        return Ok(false);
                    }
                }
                Step::LogEnd(cut) => {
                    self.cut = cut;
                    return Ok(false);
                }
            }
        }
    }

    /// Loads the next segment; it must continue where the one before ended.
    fn open_next(&mut self, before: Option<(u64, u64, [u8; 32])>) -> Result<bool, Error> {
        let Some((name, header)) = self.log.segments.get(self.next_segment) else { return Ok(false) };
        let file = || self.log.storage.path(&name.file());
        if let Some((next_record, next_batch, chain)) = before {
            if next_record < header.first_record {
                let before = header.first_record - 1;
                return Err(Error::MissingSegment { file: file(), expected: next_record, before });
            }
            let what = if next_record != header.first_record || next_batch != header.first_batch {
                Some(Damage::Number { found: header.first_record })
            } else {
                (chain != header.chain).then_some(Damage::Chain)
            };
            if let Some(what) = what {
                return Err(Error::Damaged { file: file(), offset: 0, record: next_record, what });
            }
        }
        let segment = segment::load(&*self.log.storage, name)?;
        self.next_segment += 1;
        self.current = Some(Open {
            last: self.next_segment == self.log.segments.len(),
            offset: segment::HEADER,
            last_batch: segment::HEADER,
            next_record: segment.header.first_record,
            next_batch: segment.header.first_batch,
            chain: segment.header.chain,
            segment,
        });
        Ok(true)
    }

    /// The segment's bytes, in which the frames lie.
    pub fn bytes(&self) -> &[u8] {
        self.current.as_ref().map_or(&[], |open| &open.segment.bytes)
    }

    /// The segment's path.
    pub fn path(&self) -> &str {
        self.current.as_ref().map_or("", |open| &open.segment.path)
    }

    /// The same, shared.
    pub fn shared_path(&self) -> Arc<str> {
        self.current.as_ref().map_or_else(|| "".into(), |open| open.segment.path.clone())
    }

    /// The index of the segment being read.
    pub fn segment_index(&self) -> usize {
        self.next_segment.saturating_sub(1)
    }

    /// Decodes a record of the batch.
    pub fn decode(&self, frame: &Frame) -> Result<(Kind, Record), Error> {
        decode(self.path(), self.bytes(), frame)
    }

    /// Which segment is loaded next.
    pub fn next_segment(&self) -> usize {
        self.next_segment
    }

    /// Where the log ends; to be asked once `advance` has said that it does.
    pub fn log_end(&self) -> Option<End> {
        let open = self.current.as_ref()?;
        Some(End {
            segment: self.log.segments[self.segment_index()].0,
            offset: open.offset,
            last_batch: open.segment.bytes[open.last_batch..open.offset].to_vec(),
            file_len: open.segment.bytes.len(),
            next_record: open.next_record,
            next_batch: open.next_batch,
            chain: open.chain,
        })
    }
}

/// Decodes a record that lies in these bytes.
pub(crate) fn decode(file: &str, bytes: &[u8], frame: &Frame) -> Result<(Kind, Record), Error> {
    let place = Place { file, offset: frame.offset as u64, record: frame.number };
    let kind = record::known(place, frame.kind, frame.version)?;
    Ok((kind, record::decode(place, kind, frame.body(bytes))?))
}

enum Step {
    Batch(Frame, BatchEnd),
    SegmentEnd,
    LogEnd(Option<Cut>),
}

/// blake3 over a batch as it was before it had its own chain: its records, its end without a checksum, and where its chain
/// is now, the chain before. Zeros follow if it is long.
fn chain_over(before: &[u8; 32], records: &[u8], end: &[u8]) -> [u8; 32] {
    static ZEROS: [u8; frame::HASHED_AT_ONCE] = [0; frame::HASHED_AT_ONCE];
    let mut hasher = blake3::Hasher::new();
    hasher.update(records).update(&[0; 4]).update(&end[4..end.len().saturating_sub(32)]).update(before);
    hasher.update(&ZEROS[..frame::hash_filler(records.len() + end.len())]);
    *hasher.finalize().as_bytes()
}

impl Open {
    fn next_batch(&mut self, frames: &mut Vec<Frame>, check_chain: bool) -> Result<Step, Error> {
        if !self.last && self.offset == self.segment.bytes.len() {
            return Ok(Step::SegmentEnd);
        }
        let start = frame::batch_start(self.offset);
        let filler = self.segment.bytes.get(self.offset..start).unwrap_or(&[]);
        if let Some(stray) = filler.iter().position(|&b| b != 0) {
            return self.stop(frames, self.offset + stray, Fault::Bad(Damage::StrayBytes));
        }
        let (mut at, seed) = (start, self.segment.header.seed());
        loop {
            let number = self.next_record + frames.len() as u64;
            let frame = match frame::parse(&self.segment.bytes, at, seed, self.next_record) {
                Ok(frame) => frame,
                Err(fault) => return self.stop(frames, at, fault),
            };
            let place = Place { file: &self.segment.path, offset: at as u64, record: number };
            if frame.number != number {
                return Err(self.damaged(at, number, Damage::Number { found: frame.number }));
            }
            let kind = record::known(place, frame.kind, frame.version)?;
            at = frame.end();
            if kind != Kind::BatchEnd {
                frames.push(frame);
                continue;
            }
            let body = frame.body(&self.segment.bytes);
            let end: BatchEnd = codec::decode(body).map_err(|e| Error::Malformed {
                file: self.segment.path.to_string(),
                offset: frame.offset as u64,
                record: number,
                kind: kind.name(),
                message: e.to_string(),
            })?;
            let wrong = if end.batch != self.next_batch {
                Some(Damage::BatchEnd("its number"))
            } else if end.first_record != self.next_record {
                Some(Damage::BatchEnd("its first record"))
            } else if end.records != frames.len() as u64 {
                Some(Damage::BatchEnd("how many records it has"))
            } else if !check_chain {
                None
            } else {
                let (records, end_frame) = self.segment.bytes[start..at].split_at(frame.offset - start);
                let chain = chain_over(&self.chain, records, end_frame);
                (chain != end.chain).then_some(Damage::Chain)
            };
            if let Some(what) = wrong {
                return Err(self.damaged(frame.offset, number, what));
            }
            (self.last_batch, self.offset) = (self.offset, frame.end());
            self.next_record = number + 1;
            self.next_batch += 1;
            self.chain = end.chain;
            return Ok(Step::Batch(frame, end));
        }
    }

    /// There is no good record at `bad`: is it the log's end?
    fn stop(&self, frames: &[Frame], bad: usize, fault: Fault) -> Result<Step, Error> {
        let expected = self.next_record + frames.len() as u64;
        let what = match fault {
            Fault::Unwritten => Damage::Short,
            Fault::Bad(what) => what,
        };
        // A segment comes into being with its first batch whole, so a bad one there is no tear.
        if !self.last || self.next_record == self.segment.header.first_record {
            return Err(self.damaged(bad, expected, what));
        }
        let bytes = &self.segment.bytes;
        let unfinished = Unfinished {
            bytes,
            seed: self.segment.header.seed(),
            start: self.offset,
            first_record: self.next_record,
            bad,
        };
        match judge(&unfinished) {
            Tail::Clean => Ok(Step::LogEnd(None)),
            Tail::Damaged => Err(self.damaged(bad, expected, what)),
            Tail::Torn => {
                let used = bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
                Ok(Step::LogEnd(Some(Cut {
                    file: self.segment.path.to_string(),
                    offset: self.offset as u64,
                    bytes: used.saturating_sub(self.offset) as u64,
                    first_record: self.next_record,
                    whole_records: frames.len() as u64,
                })))
            }
        }
    }

    fn damaged(&self, offset: usize, record: u64, what: Damage) -> Error {
        Error::Damaged { file: self.segment.path.to_string(), offset: offset as u64, record, what }
    }
}
