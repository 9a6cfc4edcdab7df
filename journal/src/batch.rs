//! Records on their way to the disk. Each is whole when it is appended: it says its place in its batch, and the batch's end
//! says the number of the first, since a roll may put records of its own before them.

use crate::error::Error;
use crate::frame::{self, MAX_BODY};
use crate::record::{BatchEnd, Kind};
use nodefold_core::codec;
use nodefold_core::time::Time;

/// The records since the last commit.
pub(crate) struct Batch {
    /// Their frames, one after the other.
    pub bytes: Vec<u8>,
    /// The journal's seed of checksums.
    seed: u64,
    records: u32,
    /// How many of them are facts.
    pub facts: u64,
    /// How many of them some fold is made of: facts and foreign records.
    pub events: u64,
    /// The latest time in them.
    pub at: Time,
}

impl Batch {
    /// An empty one.
    pub fn new(seed: u64) -> Batch {
        Batch { bytes: Vec::new(), seed, records: 0, facts: 0, events: 0, at: Time(0) }
    }

    /// How many records there are.
    pub fn records(&self) -> u64 {
        u64::from(self.records)
    }

    /// Bytes it takes on disk at most, a `BatchEnd` of so many touched pods and the filler before it included.
    pub fn room(&self, touched: usize) -> u64 {
        (self.bytes.len() + frame::SECTOR + touched * 32 + 256) as u64
    }

    /// Adds a record, or nothing if it could not be read back.
    #[inline]
    pub fn append<T: bincode::Encode>(&mut self, kind: Kind, body: &T, at: Time) -> Result<(), Error> {
        let start = self.begin(kind, body)?;
        frame::check(&mut self.bytes[start..], self.seed);
        self.records += 1;
        self.at = self.at.max(at);
        match kind {
            Kind::Fact => (self.facts, self.events) = (self.facts + 1, self.events + 1),
            Kind::Foreign => self.events += 1,
            Kind::Header | Kind::BatchEnd | Kind::Snapshot | Kind::Skipped | Kind::Note => {}
        }
        Ok(())
    }

    /// Adds a record that lacks its checksum only; returns where it begins.
    #[inline]
    fn begin<T: bincode::Encode>(&mut self, kind: Kind, body: &T) -> Result<usize, Error> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; frame::HEADER]);
        codec::encode(body, &mut self.bytes);
        let bytes = self.bytes.len() - start - frame::HEADER;
        if bytes > MAX_BODY {
            self.bytes.truncate(start);
            return Err(Error::TooLarge { kind: kind.name(), bytes, limit: MAX_BODY });
        }
        frame::head(&mut self.bytes[start..], kind.number(), kind.version(), self.records);
        Ok(start)
    }

    /// Adds the batch's end. `end` lacks only `records` and `chain`; the chain is the one before, and then the one after.
    pub fn seal(&mut self, mut end: BatchEnd, chain: &mut [u8; 32]) -> Result<BatchEnd, Error> {
        end.records = self.records();
        end.chain = *chain;
        let start = self.begin(Kind::BatchEnd, &end)?;
        // All in one piece, which is how blake3 is fastest: the end still has no checksum, and the chain before in its chain's
        // place.
        let len = self.bytes.len();
        self.bytes.resize(len + frame::hash_filler(len), 0);
        end.chain = *blake3::hash(&self.bytes).as_bytes();
        self.bytes.truncate(len);
        let at = self.bytes.len() - end.chain.len();
        self.bytes[at..].copy_from_slice(&end.chain);
        frame::check(&mut self.bytes[start..], self.seed);
        *chain = end.chain;
        Ok(end)
    }

    /// Forgets everything, keeping the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.records, self.facts, self.events) = (0, 0, 0);
    }
}
