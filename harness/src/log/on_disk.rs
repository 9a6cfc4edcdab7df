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
use nodefold_journal::{Error, Fault, Memory, Options, Reader, Record, Resumed, Writer, resume, verify};

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
    /// The sync fails, and the agent dies of it; the disk goes on.
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
            bits: Bits(0),
        }
    }

    /// One whose writer acknowledges what it has only written.
    pub fn that_never_syncs(config: &Config) -> OnDisk {
        let mut log = OnDisk::new(config);
        log.options.sync = false;
        log
    }

    fn resume(&self) -> Result<Resumed<Node>, Error> {
        resume::<Node>(self.disk.storage(), self.options.clone())
    }

    /// Begins the journal with the first fact.
    fn begun(&mut self, before: &mut Node) -> Result<&mut Writer, LogError> {
        if self.writer.is_none() {
            // As the agent opens it: an agent that died before its first fact left an empty journal, or none.
            let made = match self.resume() {
                Err(Error::NotAJournal { .. }) => {
                    Writer::create(self.disk.storage(), self.options.clone(), &self.config, before)
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
            Death::Unsynced | Death::SyncFailed => Fault::Sync(nth),
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
            Death::Refused | Death::Short | Death::SyncFailed => self.disk.crash(&mut || true),
        }
        // What the next agent will find: asked of a copy, so that it finds the disk as the death left it.
        let found = resume::<Node>(self.disk.copy().storage(), self.options.clone()).map_err(refused)?;
        let survived = found.fold.event_count().0 > facts;
        if acknowledged && !survived {
            return Err(LogError(format!("{} was acknowledged, and is lost", event.fact.name())));
        }
        if survived {
            self.requests.clear();
        }
        Ok(survived)
    }

    fn lose_power(&mut self) {
        // All that was not synced is lost; which part of it may be, deaths during a write draw.
        self.writer = None;
        self.disk.crash(&mut || false);
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
            self.disk.arm(Some(Fault::Sync(1)));
            if self.resume().is_err() {
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
