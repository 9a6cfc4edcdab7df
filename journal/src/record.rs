//! What a record says: its kinds, each with a version of its own, and their bodies.
//!
//! A kind's body never changes under the same version. A new version is a new arm in [`decode`]; the old ones stay, and
//! so do their golden files.

use crate::error::Error;
use nodefold_core::codec;
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use nodefold_core::{Config, Digest, Event};

/// What kinds of records there are.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The journal's beginning, and every segment's.
    Header,
    /// An event of the fold.
    Fact,
    /// An event of somebody else's fold.
    Foreign,
    /// The end of a batch: what comes before it is durable as a whole.
    BatchEnd,
    /// A snapshot was written.
    Snapshot,
    /// A fact that is not folded.
    Skipped,
    /// Something for people.
    Note,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 7] =
        [Kind::Header, Kind::Fact, Kind::Foreign, Kind::BatchEnd, Kind::Snapshot, Kind::Skipped, Kind::Note];

    /// Its number on disk. Never reused.
    pub const fn number(self) -> u16 {
        match self {
            Kind::Header => 1,
            Kind::Fact => 2,
            Kind::Foreign => 3,
            Kind::BatchEnd => 4,
            Kind::Snapshot => 5,
            Kind::Skipped => 6,
            Kind::Note => 7,
        }
    }

    /// The version that is written; all from 1 on are read.
    pub const fn version(self) -> u16 {
        match self {
            Kind::Header
            | Kind::Fact
            | Kind::Foreign
            | Kind::BatchEnd
            | Kind::Snapshot
            | Kind::Skipped
            | Kind::Note => 1,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Header => "Header",
            Kind::Fact => "Fact",
            Kind::Foreign => "Foreign",
            Kind::BatchEnd => "BatchEnd",
            Kind::Snapshot => "Snapshot",
            Kind::Skipped => "Skipped",
            Kind::Note => "Note",
        }
    }

    /// The kind of that number.
    pub fn from_number(number: u16) -> Option<Kind> {
        Kind::ALL.into_iter().find(|k| k.number() == number)
    }
}

/// A record's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// See [`Kind::Header`].
    Header(Header),
    /// See [`Kind::Fact`].
    Fact(Event),
    /// See [`Kind::Foreign`].
    Foreign(Foreign),
    /// See [`Kind::BatchEnd`].
    BatchEnd(BatchEnd),
    /// See [`Kind::Snapshot`].
    Snapshot(SnapshotMark),
    /// See [`Kind::Skipped`].
    Skipped(Skipped),
    /// See [`Kind::Note`].
    Note(Note),
}

impl Record {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Record::Header(_) => Kind::Header,
            Record::Fact(_) => Kind::Fact,
            Record::Foreign(_) => Kind::Foreign,
            Record::BatchEnd(_) => Kind::BatchEnd,
            Record::Snapshot(_) => Kind::Snapshot,
            Record::Skipped(_) => Kind::Skipped,
            Record::Note(_) => Kind::Note,
        }
    }

    /// The time that it carries itself.
    pub fn at(&self) -> Option<Time> {
        match self {
            Record::Fact(event) => Some(event.at),
            Record::Foreign(foreign) => Some(foreign.at),
            Record::Note(note) => Some(note.at),
            Record::BatchEnd(end) => Some(end.at),
            Record::Header(_) | Record::Snapshot(_) | Record::Skipped(_) => None,
        }
    }
}

/// Who writes, and what a fold begins with. First in every segment, which is of one software version therefore.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct Header {
    /// The version of nodefold that wrote this segment.
    pub software: String,
    /// The layout of its state ([`Fold::LAYOUT`](crate::Fold::LAYOUT)).
    pub layout: String,
    /// The node's configuration, the same for the whole journal.
    pub config: Config,
}

/// An event of another reducer, opaque here: the API's requests, for one.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct Foreign {
    /// When.
    pub at: Time,
    /// Whose.
    pub stream: String,
    /// What.
    pub bytes: Vec<u8>,
}

/// What makes a batch whole, and what the fold was before it.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct BatchEnd {
    /// The batch's number, from 1.
    pub batch: u64,
    /// Its first record.
    pub first_record: u64,
    /// How many records it has, this one not counted.
    pub records: u64,
    /// The latest time in the log so far.
    pub at: Time,
    /// Events folded before this batch.
    pub events: u64,
    /// [`Fold::digest`](crate::Fold::digest) before this batch.
    pub digest: u128,
    /// [`CommandHash`](crate::CommandHash) over all commands given out before this batch.
    pub commands: u128,
    /// Pods touched since the batch before, with their digests then (zero: gone).
    pub touched: Vec<(PodUid, u128)>,
    /// blake3 over the batch with no checksum in this record, and the chain before in this field (the crate's front page has all of it). Stays last.
    pub chain: [u8; 32],
}

impl BatchEnd {
    /// The fold's digest before this batch.
    pub fn digest(&self) -> Digest {
        Digest(self.digest)
    }
    /// This record's number.
    pub fn number(&self) -> u64 {
        self.first_record.saturating_add(self.records)
    }
}

/// A snapshot file was written and synced.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct SnapshotMark {
    /// It is the state after this record.
    pub records: u64,
    /// The layout of its state.
    pub layout: String,
    /// That state's digest.
    pub digest: u128,
}

/// A fact on which the fold panics. It stays in the log and is not folded.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct Skipped {
    /// Which record.
    pub record: u64,
    /// What the panic said.
    pub reason: String,
}

/// Something for people: a step of a scenario, an operator's remark.
#[derive(Clone, Debug, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct Note {
    /// When.
    pub at: Time,
    /// What kind of remark.
    pub mark: String,
    /// The remark.
    pub text: String,
}

/// Where a record lies, for errors.
#[derive(Copy, Clone)]
pub(crate) struct Place<'a> {
    pub file: &'a str,
    pub offset: u64,
    pub record: u64,
}

/// The kind, if this program knows it in that version.
pub(crate) fn known(place: Place<'_>, kind: u16, version: u16) -> Result<Kind, Error> {
    let Place { file, offset, record } = place;
    let Some(known) = Kind::from_number(kind) else {
        return Err(Error::UnknownKind { file: file.to_owned(), offset, record, kind });
    };
    if version == 0 || version > known.version() {
        return Err(Error::UnknownVersion {
            file: file.to_owned(),
            offset,
            record,
            kind: known.name(),
            version,
            known: known.version(),
        });
    }
    Ok(known)
}

/// Reads a body. There is one version of each kind so far, so [`known`] has settled which.
pub(crate) fn decode(place: Place<'_>, kind: Kind, body: &[u8]) -> Result<Record, Error> {
    let record = match kind {
        Kind::Header => codec::decode(body).map(Record::Header),
        Kind::Fact => codec::decode(body).map(Record::Fact),
        Kind::Foreign => codec::decode(body).map(Record::Foreign),
        Kind::BatchEnd => codec::decode(body).map(Record::BatchEnd),
        Kind::Snapshot => codec::decode(body).map(Record::Snapshot),
        Kind::Skipped => codec::decode(body).map(Record::Skipped),
        Kind::Note => codec::decode(body).map(Record::Note),
    };
    record.map_err(|e| Error::Malformed {
        file: place.file.to_owned(),
        offset: place.offset,
        record: place.record,
        kind: kind.name(),
        message: e.to_string(),
    })
}
