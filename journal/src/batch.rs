//! Records on their way to the disk. They get their numbers and checksums when the batch is sealed, since a roll may
//! put records of its own before them.

use crate::error::Error;
use crate::frame::{self, MAX_BODY};
use crate::log::chain_over;
use crate::record::{BatchEnd, Kind};
use nodefold_core::codec;
use nodefold_core::time::Time;

/// The records since the last commit.
#[derive(Default)]
pub(crate) struct Batch {
    /// Their frames, one after the other.
    pub bytes: Vec<u8>,
    starts: Vec<usize>,
    /// How many of them are facts.
    pub facts: u64,
    /// How many of them some fold is made of: facts and foreign records.
    pub events: u64,
    /// The latest time in them.
    pub at: Time,
}

impl Batch {
    /// How many records there are.
    pub fn records(&self) -> u64 {
        self.starts.len() as u64
    }

    /// Bytes it takes on disk at most, a `BatchEnd` of so many touched pods and the filler before it included.
    pub fn room(&self, touched: usize) -> u64 {
        (self.bytes.len() + frame::SECTOR + touched * 32 + 256) as u64
    }

    /// Adds a record, or nothing if it could not be read back.
    pub fn append<T: bincode::Encode>(&mut self, kind: Kind, body: &T, at: Time) -> Result<(), Error> {
        let start = frame::begin(&mut self.bytes, kind.number(), kind.version());
        codec::encode(body, &mut self.bytes);
        let bytes = self.bytes.len() - start - frame::HEADER;
        if bytes > MAX_BODY {
            self.bytes.truncate(start);
            return Err(Error::TooLarge { kind: kind.name(), bytes, limit: MAX_BODY });
        }
        self.starts.push(start);
        self.at = self.at.max(at);
        match kind {
            Kind::Fact => (self.facts, self.events) = (self.facts + 1, self.events + 1),
            Kind::Foreign => self.events += 1,
            Kind::Header | Kind::BatchEnd | Kind::Snapshot | Kind::Skipped | Kind::Note => {}
        }
        Ok(())
    }

    /// Numbers and checks all records and adds the batch's end. `end` lacks only `records` and `chain`; the chain is
    /// the one before, and then the one after.
    pub fn seal(&mut self, seed: u64, mut end: BatchEnd, chain: &mut [u8; 32]) -> Result<BatchEnd, Error> {
        end.records = self.records();
        let end_start = self.bytes.len();
        let number = end.number();
        for (i, &start) in self.starts.iter().enumerate() {
            let next = self.starts.get(i + 1).copied().unwrap_or(end_start);
            frame::finish(&mut self.bytes[start..next], seed, end.first_record + i as u64);
        }
        self.append(Kind::BatchEnd, &end, end.at)?;
        let (records, last) = self.bytes.split_at_mut(end_start);
        end.chain = chain_over(chain, records, &last[frame::HEADER..]);
        let at = last.len() - end.chain.len();
        last[at..].copy_from_slice(&end.chain);
        frame::finish(last, seed, number);
        *chain = end.chain;
        Ok(end)
    }

    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.starts.clear();
        (self.facts, self.events) = (0, 0);
    }
}
