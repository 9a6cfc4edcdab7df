//! The one writer of a journal: append, commit, then apply and execute (write-ahead).
//!
//! ```text
//!   append(e1) .. append(en)     in memory
//!   commit(&mut node)            one write, one fdatasync; the node is still at the state before the batch
//!   node.apply(e1) .. apply(en)
//!   commands_given(&commands)    covered by the next batch's end
//!   execute the commands
//! ```

use crate::batch::Batch;
use crate::beside::Mark;
use crate::command_hash::CommandHash;
use crate::compress;
use crate::error::{Error, io_error};
use crate::fold::Fold;
use crate::frame;
use crate::log::End;
use crate::record::{BatchEnd, Header, Kind, Skipped, SnapshotMark};
use crate::segment::{SegmentHeader, SegmentName, seed};
use crate::snapshot::{self, SnapshotHead};
use crate::storage::{LockGuard, Storage, StorageFile, write_all_at};
use nodefold_core::command::Command;
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use nodefold_core::{Config, Event};
use std::sync::Arc;

/// The version that this program writes into headers.
pub const SOFTWARE: &str = env!("CARGO_PKG_VERSION");

/// Choices of a journal's writer.
#[derive(Clone, Debug)]
pub struct Options {
    /// A segment is sealed when the next batch would make it longer. A longer batch gets a segment of its own.
    pub segment_bytes: u64,
    /// Zeros are written ahead in pieces of this size.
    pub fill_bytes: u64,
    /// Compress a segment as soon as it is sealed. Otherwise call [`Writer::compress_sealed`] when there is time.
    pub compress: bool,
    /// `fdatasync` each batch. Without it nothing is durable: for simulated nodes only.
    pub sync: bool,
    /// Any number that tells this journal from others: records of another are never taken for its own. Only read when
    /// a journal is created.
    pub id: u128,
    /// The version that headers name. Anything but [`SOFTWARE`] is for tests of what happens between versions.
    pub software: String,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            segment_bytes: 16 << 20,
            fill_bytes: 1 << 20,
            compress: true,
            sync: true,
            id: 0,
            software: SOFTWARE.to_owned(),
        }
    }
}

/// A batch that is durable.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Its number.
    pub batch: u64,
    /// The record that was appended first; the others follow in order.
    pub first_record: u64,
    /// The batch's end.
    pub last_record: u64,
}

/// The writer. Dropping it is a crash: a clean end is [`Writer::stop`].
pub struct Writer {
    storage: Arc<dyn Storage>,
    options: Options,
    config: Config,
    _lock: Box<dyn LockGuard>,
    poisoned: Option<String>,
    /// The last segment, unless it is compressed.
    file: Option<OpenSegment>,
    /// Another version wrote the last segment: a segment is of one version.
    must_roll: bool,
    id: u128,
    next_record: u64,
    next_batch: u64,
    chain: [u8; 32],
    at: Time,
    commands: CommandHash,
    events: u64,
    pending: Batch,
}

struct OpenSegment {
    name: SegmentName,
    file: Box<dyn StorageFile>,
    /// Where the last batch ends.
    end: u64,
    /// Up to where the file is zeros and durable.
    filled: u64,
}

/// What a resumed writer goes on from.
pub(crate) struct Resumption {
    pub id: u128,
    pub end: End,
    pub torn: bool,
    pub at: Time,
    pub commands: CommandHash,
    pub events: u64,
    pub config: Config,
    /// Another version wrote the last segment.
    pub must_roll: bool,
}

impl Writer {
    /// Begins a journal in an empty (or missing) directory. `fold` must be as `F::begin(config)` makes it.
    pub fn create<F: Fold>(
        storage: Arc<dyn Storage>,
        options: Options,
        config: &Config,
        fold: &mut F,
    ) -> Result<Writer, Error> {
        let lock = lock(&*storage)?;
        let names = storage.list().map_err(|e| io_error("list", storage.path(""), 0, e))?;
        if names.iter().any(|n| SegmentName::parse(n).is_some()) {
            return Err(Error::AlreadyThere { dir: storage.path("") });
        }
        let mut writer = Writer {
            id: options.id,
            pending: Batch::new(seed(options.id)),
            storage,
            options,
            config: config.clone(),
            _lock: lock,
            poisoned: None,
            file: None,
            must_roll: false,
            next_record: 1,
            next_batch: 1,
            chain: [0; 32],
            at: Time(0),
            commands: CommandHash::default(),
            events: 0,
        };
        writer.in_step(fold)?;
        writer.begin_segment(fold)?;
        Ok(writer)
    }

    /// Goes on after recovery. What was read may be in the page cache alone: after a failed sync Linux takes dirty pages for
    /// clean, and no later sync writes them. So the last batch, the only one that nobody may have acknowledged, is written
    /// again, and synced before anything follows it; likewise the names.
    pub(crate) fn go_on(
        storage: Arc<dyn Storage>,
        options: Options,
        lock: Box<dyn LockGuard>,
        resumption: Resumption,
    ) -> Result<Writer, Error> {
        let Resumption { id, end, torn, at, commands, events, config, must_roll } = resumption;
        let file = if end.segment.compressed {
            None
        } else {
            let path = || storage.path(&end.segment.file());
            let mut file = storage.open(&end.segment.file()).map_err(|e| io_error("open", path(), 0, e))?;
            let offset = end.offset as u64;
            let begin = offset - end.last_batch.len() as u64;
            write_all_at(&mut *file, begin, &end.last_batch)
                .map_err(|e| io_error("write the last batch again to", path(), offset - begin, e))?;
            if torn {
                file.set_len(offset).map_err(|e| io_error("cut", path(), 0, e))?;
            }
            if options.sync {
                file.sync().map_err(|e| io_error("sync", path(), 0, e))?;
            }
            let filled = if torn { offset } else { end.file_len as u64 };
            Some(OpenSegment { name: end.segment, file, end: offset, filled })
        };
        if options.sync {
            storage.sync_dir().map_err(|e| io_error("sync", storage.path(""), 0, e))?;
        }
        Ok(Writer {
            storage,
            options,
            config,
            _lock: lock,
            poisoned: None,
            file,
            must_roll,
            id,
            next_record: end.next_record,
            next_batch: end.next_batch,
            chain: end.chain,
            at,
            commands,
            events,
            pending: Batch::new(seed(id)),
        })
    }

    /// Adds a fact to the batch.
    pub fn append(&mut self, event: &Event) -> Result<(), Error> {
        self.alive()?;
        self.pending.append(Kind::Fact, event, event.at)
    }

    /// Adds an event of another reducer.
    pub fn append_foreign(&mut self, at: Time, stream: &str, bytes: &[u8]) -> Result<(), Error> {
        self.alive()?;
        // The body of a `Foreign`, without copying the bytes into one.
        self.pending.append(Kind::Foreign, &(at, stream, bytes), at)
    }

    /// Adds something for people.
    pub fn note(&mut self, at: Time, mark: &str, text: &str) -> Result<(), Error> {
        self.alive()?;
        self.pending.append(Kind::Note, &(at, mark, text), at)
    }

    /// Adds that a fact is not to be folded.
    pub(crate) fn skip(&mut self, record: u64, reason: &str) -> Result<(), Error> {
        let skipped = Skipped { record, reason: reason.to_owned() };
        self.pending.append(Kind::Skipped, &skipped, Time(0))
    }

    /// Tells which commands the fold gave out, in order. They are covered by the end of the next batch.
    pub fn commands_given(&mut self, commands: &[Command]) {
        self.commands.add(commands);
    }

    /// Records that were appended and are not durable yet.
    pub fn pending(&self) -> u64 {
        self.pending.records()
    }

    /// The number that the next batch's first record gets, unless a new segment begins before it.
    pub fn next_record(&self) -> u64 {
        self.next_record
    }

    /// The hash chain over all batches: who keeps it elsewhere can tell later whether the log was tampered with.
    pub fn chain(&self) -> [u8; 32] {
        self.chain
    }

    /// Makes all appended records durable, as one batch. `fold` must be at the state before the batch.
    pub fn commit<F: Fold>(&mut self, fold: &mut F) -> Result<Committed, Error> {
        self.alive()?;
        self.in_step(fold)?;
        let result = self.write_batch(fold);
        self.poison_on_error(result)
    }

    /// Writes a snapshot of the state after everything committed. The next batch tells of it.
    pub fn snapshot<F: Fold>(&mut self, fold: &mut F) -> Result<(), Error> {
        self.alive()?;
        self.in_step(fold)?;
        let result = self.write_snapshot(fold);
        let mark = self.poison_on_error(result)?;
        self.pending.append(Kind::Snapshot, &mark, Time(0))
    }

    /// The clean end: a snapshot, and an empty batch that covers the last facts.
    pub fn stop<F: Fold>(mut self, fold: &mut F) -> Result<Committed, Error> {
        self.alive()?;
        if self.pending.events > 0 {
            return Err(Error::Uncommitted { records: self.pending.records() });
        }
        self.snapshot(fold)?;
        self.commit(fold)
    }

    /// Compresses all segments that are sealed but not compressed yet; returns how many.
    pub fn compress_sealed(&mut self) -> Result<usize, Error> {
        self.alive()?;
        let result = self.compress_all();
        self.poison_on_error(result)
    }

    fn compress_all(&self) -> Result<usize, Error> {
        let current = self.file.as_ref().map(|open| open.name);
        let names = self.storage.list().map_err(|e| io_error("list", self.storage.path(""), 0, e))?;
        let mut done = 0;
        for name in names.iter().filter_map(|n| SegmentName::parse(n)) {
            if !name.compressed && current != Some(name) {
                compress::compress(&*self.storage, name.first_record)?;
                done += 1;
            }
        }
        Ok(done)
    }

    fn alive(&self) -> Result<(), Error> {
        match &self.poisoned {
            Some(first) => Err(Error::Poisoned { first: first.clone() }),
            None => Ok(()),
        }
    }

    fn poison_on_error<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if let Err(e) = &result {
            self.poisoned = Some(e.to_string());
        }
        result
    }

    fn in_step<F: Fold>(&self, fold: &F) -> Result<(), Error> {
        let folded = fold.event_count().0;
        if folded == self.events { Ok(()) } else { Err(Error::OutOfStep { folded, recorded: self.events }) }
    }

    fn segment_header(&self) -> SegmentHeader {
        SegmentHeader {
            id: self.id,
            first_record: self.next_record,
            first_batch: self.next_batch,
            since: self.at,
            chain: self.chain,
        }
    }

    /// A batch's end as far as it is known before the batch is sealed.
    fn batch_end<F: Fold>(&self, fold: &mut F, touched: Vec<(PodUid, u128)>) -> BatchEnd {
        BatchEnd {
            batch: self.next_batch,
            first_record: self.next_record,
            records: 0,
            at: self.at,
            events: self.events,
            digest: fold.digest().0,
            commands: self.commands.value(),
            touched,
            chain: [0; 32],
        }
    }

    fn write_batch<F: Fold>(&mut self, fold: &mut F) -> Result<Committed, Error> {
        let mut touched = touched(fold);
        let needed = self.pending.room(touched.len());
        let full = |open: &OpenSegment| open.end + needed > self.options.segment_bytes;
        if self.must_roll || self.file.as_ref().is_none_or(full) {
            self.roll(fold, std::mem::take(&mut touched))?;
        }
        self.at = self.at.max(self.pending.at);
        let end = self.batch_end(fold, touched);
        let mut chain = self.chain;
        let end = self.pending.seal(end, &mut chain)?;
        let Some(open) = &mut self.file else { return Ok(self.committed(&end)) };
        let start = frame::batch_start_at(open.end);
        let until = start + self.pending.bytes.len() as u64;
        let path = || self.storage.path(&open.name.file());
        let filled = fill(&mut *open.file, open.filled, until, &self.options);
        open.filled = filled.map_err(|e| io_error("write zeros ahead in", path(), until - open.filled, e))?;
        write_all_at(&mut *open.file, start, &self.pending.bytes)
            .map_err(|e| io_error("write a batch to", path(), until - start, e))?;
        if self.options.sync {
            open.file.sync().map_err(|e| io_error("sync", path(), 0, e))?;
        }
        open.end = until;
        self.chain = chain;
        self.next_record = end.number() + 1;
        self.next_batch += 1;
        self.events += self.pending.facts;
        self.pending.clear();
        Ok(self.committed(&end))
    }

    fn committed(&self, end: &BatchEnd) -> Committed {
        Committed { batch: end.batch, first_record: end.first_record, last_record: end.number() }
    }

    /// Seals the last segment and begins a new one with a snapshot of the state so far.
    fn roll<F: Fold>(&mut self, fold: &mut F, touched: Vec<(PodUid, u128)>) -> Result<(), Error> {
        if let Some(mut open) = self.file.take() {
            let sealed = open.file.set_len(open.end).and_then(|()| open.file.sync());
            sealed.map_err(|e| io_error("seal", self.storage.path(&open.name.file()), 0, e))?;
        }
        let mark = self.write_snapshot(fold)?;
        self.open_segment(fold, touched, Some(&mark))?;
        self.must_roll = false;
        if self.options.compress {
            self.compress_all()?;
        }
        Ok(())
    }

    fn begin_segment<F: Fold>(&mut self, fold: &mut F) -> Result<(), Error> {
        let touched = touched(fold);
        self.open_segment(fold, touched, None)
    }

    /// Makes the next segment, its first batch included, so that it exists whole or not at all.
    fn open_segment<F: Fold>(
        &mut self,
        fold: &mut F,
        touched: Vec<(PodUid, u128)>,
        mark: Option<&SnapshotMark>,
    ) -> Result<(), Error> {
        let header = Header {
            software: self.options.software.clone(),
            layout: F::LAYOUT.to_owned(),
            config: self.config.clone(),
        };
        let segment = self.segment_header();
        let mut batch = Batch::new(segment.seed());
        batch.append(Kind::Header, &header, Time(0))?;
        if let Some(mark) = mark {
            batch.append(Kind::Snapshot, mark, Time(0))?;
        }
        let mut chain = self.chain;
        let end = batch.seal(self.batch_end(fold, touched), &mut chain)?;
        let mut bytes = segment.encode(false).to_vec();
        bytes.extend_from_slice(&batch.bytes);
        let end_offset = bytes.len() as u64;
        let filled = end_offset.next_multiple_of(self.options.fill_bytes.max(1));
        bytes.resize(filled as usize, 0);
        let name = SegmentName { first_record: segment.first_record, compressed: false };
        compress::write_new(&*self.storage, &name.file(), &bytes)?;
        let path = self.storage.path(&name.file());
        let file = self.storage.open(&name.file()).map_err(|e| io_error("open", path, 0, e))?;
        self.file = Some(OpenSegment { name, file, end: end_offset, filled });
        self.chain = chain;
        self.next_record = end.number() + 1;
        self.next_batch += 1;
        Ok(())
    }

    /// Where the log stands, for whoever keeps another reducer's state beside it; none while appended records wait.
    pub fn mark(&self) -> Option<Mark> {
        (self.pending.records() == 0).then(|| Mark { storage: self.storage.clone(), head: self.head("", 0) })
    }

    fn head(&self, layout: &str, digest: u128) -> SnapshotHead {
        SnapshotHead {
            software: self.options.software.clone(),
            layout: layout.to_owned(),
            journal: self.id,
            records: self.next_record - 1,
            batches: self.next_batch - 1,
            events: self.events,
            at: self.at,
            digest,
            commands: self.commands.value(),
            chain: self.chain,
            payload_len: 0,
            payload_hash: 0,
        }
    }

    fn write_snapshot<F: Fold>(&mut self, fold: &mut F) -> Result<SnapshotMark, Error> {
        let head = self.head(F::LAYOUT, fold.digest().0);
        let mark = SnapshotMark { records: head.records, layout: head.layout.clone(), digest: head.digest };
        snapshot::write(&*self.storage, head, fold)?;
        Ok(mark)
    }
}

/// The pods touched since the batch before, as a record has them.
fn touched<F: Fold>(fold: &mut F) -> Vec<(PodUid, u128)> {
    // Settles first: a pod's digest is that of its state now.
    fold.digest();
    fold.take_touched().into_iter().map(|(pod, digest)| (pod, digest.0)).collect()
}

/// Takes the writer's lock.
pub(crate) fn lock(storage: &dyn Storage) -> Result<Box<dyn LockGuard>, Error> {
    let guard = storage.lock().map_err(|e| io_error("lock", storage.path(""), 0, e))?;
    guard.ok_or_else(|| Error::Locked { file: storage.path("LOCK") })
}

/// Writes zeros from `filled` on until there is room up to `until`, and makes them durable, so that a batch that is
/// written there later is bytes in a file whose size and blocks no longer change.
fn fill(file: &mut dyn StorageFile, filled: u64, until: u64, options: &Options) -> std::io::Result<u64> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    if until <= filled {
        return Ok(filled);
    }
    let target = until.next_multiple_of(options.fill_bytes.max(1));
    let mut at = filled;
    while at < target {
        let piece = (target - at).min(ZEROS.len() as u64) as usize;
        write_all_at(file, at, &ZEROS[..piece])?;
        at += piece as u64;
    }
    if options.sync {
        file.sync()?;
    }
    Ok(target)
}
