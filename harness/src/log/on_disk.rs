//! The real journal on a simulated disk: facts go through `nodefold-journal`'s own writer, recovery is its own, and the
//! disk tears, refuses and fills up. Owns which of the disk's faults an agent's death means; may not know what a fact says.
//!
//! The oracle is the agent's (D1, D2): after a restart every acknowledged fact is there, no other, and they fold to the same
//! digest. At the end the whole log is verified, sealed segments and all digests that were recorded on the way.

use super::{FactLog, LogError};
use crate::brain::{Brain, NewBrain};
use nodefold_api::ApiEvent;
use nodefold_core::command::Command;
use nodefold_core::event::Event;
use nodefold_core::time::Time;
use nodefold_core::{Config, Node};
use nodefold_journal::{
    Error, Fault, LockGuard, Memory, Options, Reader, Record, Resumed, Storage, StorageFile, Writer, resume,
    verify,
};
use std::io;
use std::sync::Arc;

/// The stream of the API's requests.
const API_STREAM: &str = "api";
/// Simulated secrets are in their histories for all to read.
const SEAL_KEY: [u8; 32] = *b"a simulated disk has no secrets.";
/// Small, so that a run of some hundred facts seals, compresses and snapshots several times.
const SEGMENT_BYTES: u64 = 48 << 10;
/// Likewise the zeros that are written ahead.
const FILL_BYTES: u64 = 8 << 10;

/// A journal on a disk in memory.
pub struct OnDisk {
    disk: Memory,
    config: Config,
    options: Options,
    /// None before the first fact, and from an agent's death to the next one's recovery.
    writer: Option<Writer>,
    /// Requests that become durable with the next fact. They are the API server's: an agent's death must not lose them.
    requests: Vec<(Time, Vec<u8>)>,
    /// The disk is full, as far as the agent has noticed.
    is_full: bool,
    /// The last death left what its successor reads in the page cache alone.
    is_cached_only: bool,
    /// Whether the agent takes a sync that failed and then worked for one that worked.
    retries_syncs: bool,
    /// What is left of the bits of the last death: they say whether its recovery is cut short, too.
    bits: Bits,
}

/// How an agent dies of, or during, a write.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Death {
    /// Power is cut after the write, before the sync.
    Unsynced,
    /// Power is cut in the middle of the write.
    Torn,
    /// The disk refuses the write.
    Refused,
    /// The disk takes a byte at a time, and the agent dies when all is synced.
    Short,
    /// The sync fails, and the agent dies of it; the machine goes on, and its page cache takes what was written for clean:
    /// some of it is read from the disk again, as it was before, and the rest is lost with the next loss of power.
    SyncFailed,
}

impl OnDisk {
    /// On an empty disk.
    pub fn new(config: &Config) -> OnDisk {
        OnDisk {
            disk: Memory::new(),
            config: config.clone(),
            options: Options { segment_bytes: SEGMENT_BYTES, fill_bytes: FILL_BYTES, ..Options::default() },
            writer: None,
            requests: Vec::new(),
            is_full: false,
            is_cached_only: false,
            retries_syncs: false,
            bits: Bits(0),
        }
    }

    /// One whose writer acknowledges what it has only written.
    pub fn that_never_syncs(config: &Config) -> OnDisk {
        let mut log = OnDisk::new(config);
        log.options.sync = false;
        log
    }

    /// One whose writer syncs again when that failed, and believes the second answer.
    pub fn that_retries_syncs(config: &Config) -> OnDisk {
        OnDisk { retries_syncs: true, ..OnDisk::new(config) }
    }

    fn resume(&self) -> Result<Resumed<Node>, Error> {
        resume::<Node>(self.storage(), self.options.clone())
    }

    fn storage(&self) -> Arc<dyn Storage> {
        if self.retries_syncs { Retrying::over(self.disk.storage()) } else { self.disk.storage() }
    }

    /// Begins the journal with the first fact.
    fn begun(&mut self, before: &mut Node) -> Result<&mut Writer, LogError> {
        if self.writer.is_none() {
            // As the agent opens it: an agent that died before its first fact left an empty journal, or none.
            let made = match self.resume() {
                Err(Error::NotAJournal { .. }) => {
                    Writer::create(self.storage(), self.options.clone(), &self.config, before)
                }
                resumed => resumed.map(|resumed| resumed.writer),
            };
            let mut writer = made.map_err(refused)?;
            self.keep_requests(&mut writer)?;
            self.writer = Some(writer);
        }
        self.writer.as_mut().ok_or_else(|| LogError("it has no writer".to_owned()))
    }

    fn keep_requests(&self, writer: &mut Writer) -> Result<(), LogError> {
        for (at, bytes) in &self.requests {
            writer.append_foreign(*at, API_STREAM, bytes).map_err(refused)?;
        }
        Ok(())
    }

    fn commit(&mut self, event: &Event, before: &mut Node) -> Result<Result<(), Error>, LogError> {
        let writer = self.begun(before)?;
        let done = writer.append(event).and_then(|()| writer.commit(before)).map(drop);
        if done.is_ok() {
            self.requests.clear();
        }
        Ok(done)
    }
}

impl FactLog for OnDisk {
    fn fact(&mut self, event: &Event, before: &mut dyn Brain) -> Result<(), LogError> {
        if std::mem::take(&mut self.is_full) {
            self.disk.arm(None);
        }
        self.commit(event, production(before)?)?.map_err(refused)
    }

    fn without_room(&mut self, event: &Event, before: &mut dyn Brain) -> Result<bool, LogError> {
        let before = production(before)?;
        // The first segment exists whole or not at all; a node that never began has nothing to lose.
        self.begun(before)?;
        self.is_full = true;
        self.disk.arm(Some(Fault::Capacity(0)));
        let done = self.commit(event, before)?;
        if done.is_err() {
            self.writer = None;
            self.disk.crash(&mut || true);
        }
        Ok(done.is_ok())
    }

    fn torn(&mut self, event: &Event, before: &mut dyn Brain, keep: u64) -> Result<bool, LogError> {
        let before = production(before)?;
        self.begun(before)?;
        self.bits = Bits(keep);
        let death = match self.bits.next() % 8 {
            0..=2 => Death::Unsynced,
            3 | 4 => Death::Torn,
            5 => Death::Refused,
            6 => Death::Short,
            _ => Death::SyncFailed,
        };
        // A batch may begin a segment: then there are several writes, and several syncs.
        let nth = 1 + self.bits.next() % 3;
        self.disk.arm(Some(match death {
            Death::Unsynced => Fault::Sync(nth),
            Death::SyncFailed => Fault::ForgottenSync(nth),
            Death::Torn => Fault::TornWrite(nth),
            Death::Refused => Fault::Write(nth),
            Death::Short => Fault::ShortWrites(nth),
        }));
        let facts = before.event_count().0;
        let acknowledged = self.commit(event, before)?.is_ok();
        self.writer = None;
        match death {
            Death::Unsynced | Death::Torn => {
                let bits = &mut self.bits;
                self.disk.crash(&mut || bits.next() & 1 == 1);
            }
            // The machine goes on, and so does its page cache.
            Death::Refused | Death::Short => self.disk.crash(&mut || true),
            Death::SyncFailed => {
                self.disk.arm(None);
                let bits = &mut self.bits;
                self.disk.evict(&mut || bits.next() & 1 == 1);
                self.is_cached_only = true;
            }
        }
        // What the next agent will find: asked of a copy, so that it finds the disk as the death left it.
        let found = resume::<Node>(self.disk.copy().storage(), self.options.clone()).map_err(refused)?;
        let survived = found.fold.event_count().0 > facts;
        if survived {
            self.requests.clear();
        }
        // What was acknowledged counts as there: that it is lost is for the next agent's start to tell (D2).
        Ok(survived || acknowledged)
    }

    fn lose_power(&mut self) {
        // All that was not synced is lost; which part of it may be, deaths during a write draw.
        self.writer = None;
        // What a death left in the page cache was counted as survived or not when it was; if power goes before the next agent
        // has looked, the disk had it after all.
        let had = std::mem::take(&mut self.is_cached_only);
        self.disk.crash(&mut || had);
    }

    fn commands_given(&mut self, commands: &[Command]) {
        if let Some(writer) = &mut self.writer {
            writer.commands_given(commands);
        }
    }

    fn request(&mut self, event: &ApiEvent) -> Result<(), LogError> {
        let bytes = event.sealed(&SEAL_KEY).to_bytes();
        if let Some(writer) = &mut self.writer {
            writer.append_foreign(event.at, API_STREAM, &bytes).map_err(refused)?;
        }
        self.requests.push((event.at, bytes));
        Ok(())
    }

    fn recover(&mut self, _new: &NewBrain) -> Result<Box<dyn Brain>, LogError> {
        // Dropped without a stop, as a crash leaves it; that gives up the lock, too.
        self.writer = None;
        // An agent may die again while it recovers: nothing that it mends is synced then.
        if self.bits.next() & 1 == 1 {
            self.disk.arm(Some(Fault::ForgottenSync(1)));
            // The machine goes on where the page cache is all that has the last batch; else it loses power, too.
            if self.resume().is_err() && !self.is_cached_only {
                let bits = &mut self.bits;
                self.disk.crash(&mut || bits.next() & 1 == 1);
            }
        }
        self.disk.arm(self.is_full.then_some(Fault::Capacity(0)));
        let resumed = self.resume().map_err(refused)?;
        if let Some(difference) = resumed.difference() {
            return Err(LogError(format!("what it folds to is not what was recorded: {difference}")));
        }
        let mut writer = resumed.writer;
        self.is_cached_only = false;
        self.keep_requests(&mut writer)?;
        self.writer = Some(writer);
        Ok(Box::new(resumed.fold))
    }

    fn durable(&mut self) -> Result<Vec<Event>, LogError> {
        let mut facts = Vec::new();
        for entry in Reader::open(&self.disk.storage()).map_err(refused)? {
            if let Record::Fact(event) = entry.map_err(refused)?.record {
                facts.push(event);
            }
        }
        Ok(facts)
    }

    fn fork(&self) -> Result<Box<dyn FactLog>, LogError> {
        Err(LogError("it is one world's, and can't go on as two".to_owned()))
    }

    fn close(&mut self, brain: &mut dyn Brain) -> Result<(), LogError> {
        let node = production(brain)?;
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        self.disk.arm(None);
        if writer.pending() > 0 {
            writer.commit(node).map_err(refused)?;
        }
        writer.stop(node).map_err(refused)?;
        let whole = verify::<Node>(&self.disk.storage()).map_err(refused)?;
        if let Some(difference) = &whole.report.difference {
            return Err(LogError(format!("the whole does not fold to what was recorded: {difference}")));
        }
        let (folded, lived) = (whole.report.digest, node.digest());
        if folded != lived {
            let what = format!("the whole folds to {:032x}, and the node was {:032x}", folded.0, lived.0);
            return Err(LogError(what));
        }
        Ok(())
    }
}

/// A disk as a saboteur's agent sees it: a sync that fails is tried again, and the page cache has nothing left to write.
struct Retrying(Arc<dyn Storage>);

impl Retrying {
    fn over(storage: Arc<dyn Storage>) -> Arc<dyn Storage> {
        Arc::new(Retrying(storage))
    }
}

impl Storage for Retrying {
    fn path(&self, name: &str) -> String {
        self.0.path(name)
    }
    fn lock(&self) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.0.lock()
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }
    fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        self.0.read(name, limit)
    }
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(RetryingFile(self.0.create(name)?)))
    }
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(RetryingFile(self.0.open(name)?)))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
    fn sync_dir(&self) -> io::Result<()> {
        self.0.sync_dir()
    }
}

struct RetryingFile(Box<dyn StorageFile>);

impl StorageFile for RetryingFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_at(offset, bytes)
    }
    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync().or_else(|_| self.0.sync())
    }
}

/// A few bits drawn by the chooser, stretched (splitmix64): the same bits are the same sectors on every machine.
#[derive(Copy, Clone, Debug)]
struct Bits(u64);

impl Bits {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) >> 32
    }
}

/// A journal keeps the production core's state, and no other's.
fn production(brain: &mut dyn Brain) -> Result<&mut Node, LogError> {
    brain.node_mut().ok_or_else(|| LogError("only the production core can be kept in a journal".to_owned()))
}

fn refused(error: Error) -> LogError {
    LogError(error.to_string())
}
