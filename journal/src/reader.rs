//! Reading a log record by record, from any record or time on, without taking its lock.

use crate::error::Error;
use crate::frame::Frame;
use crate::log::{Batches, Log, Position};
use crate::record::Record;
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
        Reader { batches: log.batches(segment), log, next: 0, path: "".into(), at, from, done: false }
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
                    return Ok(Some((
                        self.batches.frames.get(next).copied().unwrap_or(*end_frame),
                        end.batch,
                    )));
                }
            }
            if !self.batches.advance()? {
                return Ok(None);
            }
            self.next = 0;
            self.path = self.batches.shared_path();
        }
    }
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
