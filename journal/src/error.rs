//! What can go wrong with a journal, each naming the place and the remedy.

use std::io;

/// Why the journal could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused.
    #[error("could not {doing} {file}: {source}; restart from disk once it is mended")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// With which file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// No room. Everything acknowledged before is on disk.
    #[error(
        "disk full: could not {doing} {file} ({needed} bytes more): {source}; nothing acknowledged is lost; \
         free some space, then reopen the journal"
    )]
    DiskFull {
        /// What was being done.
        doing: &'static str,
        /// With which file.
        file: String,
        /// How many bytes were to be written.
        needed: u64,
        /// What the system said.
        source: io::Error,
    },
    /// An earlier write or sync failed, so what is on disk is not known any more to this handle.
    #[error("this journal handle is poisoned by an earlier error ({first}); drop it and recover from disk")]
    Poisoned {
        /// The first error.
        first: String,
    },
    /// Somebody else writes this journal.
    #[error("{file} is locked: another process writes this journal; stop it, or read without the lock")]
    Locked {
        /// The lock file.
        file: String,
    },
    /// A new journal was asked for where there is one.
    #[error("{dir} already holds a journal; resume it, or choose an empty directory")]
    AlreadyThere {
        /// The directory.
        dir: String,
    },
    /// No segment there.
    #[error("{dir} holds no journal (no *.seg or *.segz file); check the path, or create one")]
    NotAJournal {
        /// The directory.
        dir: String,
    },
    /// Bytes that are not as they were written, elsewhere than in a torn tail.
    #[error(
        "{file}, offset {offset}, record {record}: damaged: {what}; nothing was skipped or changed; restore the file \
         from a copy, or move it and all later ones away to go back to the record before"
    )]
    Damaged {
        /// The file.
        file: String,
        /// Where in it.
        offset: u64,
        /// The record there, or the first one that may be affected.
        record: u64,
        /// How.
        what: Damage,
    },
    /// A record of a kind that this version does not know.
    #[error(
        "{file}, offset {offset}, record {record}: unknown record kind {kind}; a newer nodefold wrote it; \
         use that version or a later one (skipping it would change what the log says)"
    )]
    UnknownKind {
        /// The file.
        file: String,
        /// Where in it.
        offset: u64,
        /// Which record.
        record: u64,
        /// Its kind.
        kind: u16,
    },
    /// A record of a known kind in a version that this program does not know.
    #[error(
        "{file}, offset {offset}, record {record}: {kind} record of version {version}, but this nodefold knows \
         versions 1 to {known}; use the version that wrote it or a later one"
    )]
    UnknownVersion {
        /// The file.
        file: String,
        /// Where in it.
        offset: u64,
        /// Which record.
        record: u64,
        /// Its kind.
        kind: &'static str,
        /// Its version.
        version: u16,
        /// The newest known.
        known: u16,
    },
    /// A whole file in a format that this program does not know.
    #[error("{file}: format {format}, but this nodefold knows format {known}; use the version that wrote it")]
    UnknownFormat {
        /// The file.
        file: String,
        /// Its format.
        format: u32,
        /// The newest known.
        known: u32,
    },
    /// A record whose checksum holds but whose body is no such value: a bug of the writer, or a forgery.
    #[error(
        "{file}, offset {offset}, record {record}: the {kind} record's checksum holds but its body can't be read: \
         {message}; report this with the file"
    )]
    Malformed {
        /// The file.
        file: String,
        /// Where in it.
        offset: u64,
        /// Which record.
        record: u64,
        /// Its kind.
        kind: &'static str,
        /// Why.
        message: String,
    },
    /// A segment is not there.
    #[error(
        "records {expected} to {before} are missing: no segment before {file} holds them; restore it from a copy"
    )]
    MissingSegment {
        /// The segment after the gap.
        file: String,
        /// The first record missing.
        expected: u64,
        /// The last record missing.
        before: u64,
    },
    /// A value too large to be read back.
    #[error(
        "a {kind} record of {bytes} bytes is larger than the {limit} that can be read back; it was not appended"
    )]
    TooLarge {
        /// Its kind.
        kind: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// `commit` was called with a fold that is not at the state before the batch.
    #[error(
        "the fold has {folded} events but the journal has {recorded}: commit first, then apply the batch, then \
         execute its commands"
    )]
    OutOfStep {
        /// Events in the fold.
        folded: u64,
        /// Events committed.
        recorded: u64,
    },
    /// `stop` was called with records that were never committed.
    #[error("{records} records were appended but not committed; commit and apply them before the clean stop")]
    Uncommitted {
        /// How many.
        records: u64,
    },
    /// A place that the log doesn't reach.
    #[error("there is no record {record}: the log ends with record {last}")]
    NoSuchRecord {
        /// Asked for.
        record: u64,
        /// The last there is.
        last: u64,
    },
    /// Folding a record panicked. The log is fine; the reducer is not.
    #[error(
        "{file}, offset {offset}, record {record}: folding this record panicked: {message}; resume the journal (it \
         then appends a Skipped record), and report this with the file"
    )]
    ApplyPanicked {
        /// The file.
        file: String,
        /// Where in it.
        offset: u64,
        /// Which record.
        record: u64,
        /// What the panic said.
        message: String,
    },
}

/// How bytes are damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The file's header does not check.
    FileHeader,
    /// The file ends before it should.
    Short,
    /// A length that no record has.
    Length(u32),
    /// A record's bytes don't give its checksum.
    Checksum,
    /// A record that checks, but is not the next one.
    Number {
        /// Its number.
        found: u64,
    },
    /// Bytes where there should be zeros or nothing.
    StrayBytes,
    /// A batch's end does not describe the records before it.
    BatchEnd(&'static str),
    /// The hash chain over the batches breaks here: something before was exchanged.
    Chain,
    /// A segment that does not begin with a header record.
    NoHeader,
    /// A segment is there both raw and compressed, and the two differ.
    TwoForms,
    /// A file of another journal.
    OtherJournal,
    /// A compressed block can't be unpacked.
    Block,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Damage::FileHeader => write!(f, "the file's header does not match its checksum"),
            Damage::Short => write!(f, "the file ends inside of a record or block"),
            Damage::Length(n) => write!(f, "a record can't be {n} bytes long"),
            Damage::Checksum => write!(f, "the record does not match its checksum"),
            Damage::Number { found } => write!(f, "record {found} is here instead"),
            Damage::StrayBytes => write!(f, "bytes that belong to no record"),
            Damage::BatchEnd(what) => write!(f, "the batch's end does not match its records: {what}"),
            Damage::Chain => write!(f, "the hash chain breaks: this batch or one before it was exchanged"),
            Damage::NoHeader => write!(f, "the segment does not begin with a header record"),
            Damage::TwoForms => write!(f, "the segment is there raw and compressed, and the two differ"),
            Damage::OtherJournal => write!(f, "it belongs to another journal"),
            Damage::Block => write!(f, "a compressed block does not match its checksum or can't be unpacked"),
        }
    }
}

/// Names the file and what was being done, and tells a full disk from other errors.
pub(crate) fn io_error(doing: &'static str, file: String, needed: u64, source: io::Error) -> Error {
    if source.kind() == io::ErrorKind::StorageFull || source.kind() == io::ErrorKind::QuotaExceeded {
        Error::DiskFull { doing, file, needed, source }
    } else {
        Error::Io { doing, file, source }
    }
}
