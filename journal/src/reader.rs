//! Reading a log record by record, from any record or time on, without taking its lock.

use crate::error::Error;
use crate::fold::Fold;
use crate::frame::{self, Frame};
use crate::log::{Batches, Log, Position, decode};
use crate::record::{Kind, Record};
use crate::segment;
use crate::snapshot::{self, Form};
use crate::storage::Storage;
use crate::tail::Cut;
use nodefold_core::time::Time;
use std::sync::Arc;

/// A record and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number, from 1.
    pub number: u64,
    /// Its batch's number.
    pub batch: u64,
    /// In which file.
    pub file: Arc<str>,
    /// Where in it (in the uncompressed segment).
    pub offset: u64,
    /// The latest time up to and with it: never less than that of the record before.
    pub at: Time,
    /// Facts that were folded before its batch, and those of its batch up to and with it. A fact of the batch on which
    /// the fold panicked is counted here: that it did is said only later.
    pub facts: u64,
    /// What it says.
    pub record: Record,
}

/// An iterator over the records of whole batches. After an error it ends.
pub struct Reader {
    log: Log,
    batches: Batches,
    /// Which record of the batch is next; its end comes last.
    next: usize,
    path: Arc<str>,
    at: Time,
    facts: u64,
    from: Position,
    done: bool,
}

impl Reader {
    /// Reads from the first record on.
    pub fn open(storage: &Arc<dyn Storage>) -> Result<Reader, Error> {
        Reader::open_at(storage, Position::Record(1))
    }

    /// Reads from a place on. Only the segment that holds it is searched.
    pub fn open_at(storage: &Arc<dyn Storage>, from: Position) -> Result<Reader, Error> {
        let log = Log::open(storage.clone())?;
        Ok(Reader::at(log, from))
    }

    /// Reads from the beginning of the segment that holds a place: no segment before it is read, and the state before it
    /// can be asked for.
    pub fn open_before(storage: &Arc<dyn Storage>, place: Position) -> Result<Reader, Error> {
        let log = Log::open(storage.clone())?;
        let mut reader = Reader::at(log, place);
        reader.from = Position::Record(1);
        Ok(reader)
    }

    /// The state before the segment that is read next, from the snapshot that was written when it began. `None`: that is the
    /// first segment, or the snapshot is none that this program can read.
    pub fn state_before<F: Fold>(&self) -> Option<F> {
        let (_, header) = self.log.segments.get(self.batches.next_segment())?;
        let records = header.first_record - 1;
        let load = |form| snapshot::load::<F>(&*self.log.storage, form, records, header.id);
        load(Form::Layout).or_else(|_| load(Form::Portable)).ok().map(|(_, fold)| fold)
    }

    /// Whether it reads from the first record on.
    pub fn is_at_the_first_segment(&self) -> bool {
        self.batches.next_segment() == 0
    }

    /// Goes to another place.
    pub fn seek(&mut self, to: Position) {
        *self = Reader::at(self.log.clone(), to);
    }

    fn at(log: Log, from: Position) -> Reader {
        let segment = match from {
            Position::Record(record) => log.segment_of_record(record),
            Position::Time(at) => log.segment_of_time(at),
        };
        let at = log.segments[segment].1.since;
        Reader {
            batches: log.batches(segment),
            log,
            next: 0,
            path: "".into(),
            at,
            facts: 0,
            from,
            done: false,
        }
    }

    /// What follows the last whole batch; known once the iterator has ended.
    pub fn cut(&self) -> Option<&Cut> {
        self.batches.cut.as_ref()
    }

    fn next_entry(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            let Some((frame, batch)) = self.next_frame()? else { return Ok(None) };
            // Before the record that was asked for, only times matter, and a batch's end has the latest of its batch.
            let end = self.batches.end.as_ref().map_or(0, |(_, end)| end.number());
            let early = matches!(self.from, Position::Record(record) if frame.number < record);
            if early && frame.number < end && matches!(self.from, Position::Record(record) if end < record) {
                continue;
            }
            let (_, record) = self.batches.decode(&frame)?;
            self.at = record.at().map_or(self.at, |at| at.max(self.at));
            if early || matches!(self.from, Position::Time(from) if self.at < from) {
                continue;
            }
            return Ok(Some(Entry {
                number: frame.number,
                batch,
                file: self.path.clone(),
                offset: frame.offset as u64,
                at: self.at,
                facts: self.facts,
                record,
            }));
        }
    }

    fn next_frame(&mut self) -> Result<Option<(Frame, u64)>, Error> {
        loop {
            if let Some((end_frame, end)) = &self.batches.end {
                let next = self.next;
                self.next += 1;
                if next <= self.batches.frames.len() {
                    let frame = self.batches.frames.get(next).copied().unwrap_or(*end_frame);
                    self.facts += u64::from(frame.kind == Kind::Fact.number());
                    return Ok(Some((frame, end.batch)));
                }
            }
            if !self.batches.advance()? {
                return Ok(None);
            }
            self.next = 0;
            self.facts = self.batches.end.as_ref().map_or(0, |(_, end)| end.events);
            self.path = self.batches.shared_path();
        }
    }
}

/// When the first record that has a time happened. It is in the first batches, so that the first segment's front tells.
pub fn beginning(storage: &Arc<dyn Storage>) -> Result<Time, Error> {
    let log = Log::open(storage.clone())?;
    let front = segment::load_front(&**storage, &log.segments[0].0)?;
    let (mut at, mut first, mut first_record) = (segment::HEADER, None, front.header.first_record);
    while let Ok(frame) = frame::parse(&front.bytes, at, front.header.seed(), first_record) {
        let (kind, record) = decode(&front.path, &front.bytes, &frame)?;
        first = first.or(record.at().filter(|at| *at > Time(0)));
        at = frame.end();
        if kind == Kind::BatchEnd {
            // Only a whole batch is in the log.
            if let Some(first) = first {
                return Ok(first);
            }
            at = frame::batch_start(at);
            first_record = frame.number.saturating_add(1);
        }
    }
    for entry in Reader::at(log, Position::Record(1)) {
        if let Some(at) = entry?.record.at().filter(|at| *at > Time(0)) {
            return Ok(at);
        }
    }
    Ok(Time(0))
}

impl Iterator for Reader {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Result<Entry, Error>> {
        if self.done {
            return None;
        }
        let next = self.next_entry().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}
