//! A run's journal on disk: facts as the agent folds them, requests to the API beside them (their secrets sealed), and
//! the story's own steps as notes.

use nodefold_api::ApiEvent;
use nodefold_core::command::Command;
use nodefold_core::time::Time;
use nodefold_core::{Config, Event, Node};
use nodefold_harness::log::{FactLog, LogError};
use nodefold_harness::{Brain, NewBrain, Record};
use nodefold_journal::{Error, Files, Options, Reader, Record as Kept, Storage, Writer, resume};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The stream of the API's requests among a journal's foreign records.
pub const API_STREAM: &str = "api";

/// Keys the digests that stand for secrets' values (S13). Anybody may know it: a scenario's secrets are in its file for
/// all to read.
const SEAL_KEY: [u8; 32] = *b"nodefold run, seals no real data";

/// A journal that a run writes. Clones write the same one.
#[derive(Clone)]
pub struct RunJournal {
    open: Arc<Mutex<Open>>,
}

struct Open {
    storage: Arc<dyn Storage>,
    options: Options,
    /// None after the end.
    writer: Option<Writer>,
    /// What becomes durable with the next fact. It is not the agent's: an agent that dies before must not lose it.
    beside: Vec<Beside>,
    /// The step under way, for the remark on what it expects.
    step: String,
}

/// A record beside the facts.
enum Beside {
    Note { at: Time, mark: &'static str, text: String },
    Request { at: Time, bytes: Vec<u8> },
}

impl Beside {
    fn append(&self, writer: &mut Writer) -> Result<(), Error> {
        match self {
            Beside::Note { at, mark, text } => writer.note(*at, mark, text),
            Beside::Request { at, bytes } => writer.append_foreign(*at, API_STREAM, bytes),
        }
    }
}

impl RunJournal {
    /// Begins a journal in a directory that holds none. A real node's facts are `durable` before they are folded; a
    /// simulated one may forget what the machine forgets, and a sync for each of its facts is an hour's wait.
    pub fn create(dir: &Path, config: &Config, durable: bool) -> Result<RunJournal, Error> {
        let storage = Files::at(dir);
        let options = Options { sync: durable, ..Options::default() };
        let mut node = Node::new(config.clone());
        let writer = Writer::create(storage.clone(), options.clone(), config, &mut node)?;
        let open = Open { storage, options, writer: Some(writer), beside: Vec::new(), step: String::new() };
        Ok(RunJournal { open: Arc::new(Mutex::new(open)) })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what the story says: its name, steps, marks and expectations.
    pub fn note(&self, record: &Record) -> Result<(), LogError> {
        if let Record::StepBegan { title, .. } = record {
            self.open().step.clone_from(title);
        }
        let (at, mark, text) = match record {
            Record::ScenarioBegan { name, about, at } => (at, "scenario", format!("{name}: {about}")),
            Record::StepBegan { verb, title, at, line, .. } if !matches!(*verb, "expect" | "mark") => {
                let mark = if matches!(*verb, "advance" | "settle") { "wait" } else { "step" };
                (at, mark, format!("{title}  (line {line})"))
            }
            Record::Marked { at, name } => (at, "mark", name.to_string()),
            Record::Expectation { at, held, line, .. } => {
                let mark = if *held { "held" } else { "missed" };
                (at, mark, format!("{}  (line {line})", self.open().step))
            }
            Record::InvariantBroken { at, violation } => (at, "invariant", violation.clone()),
            Record::Crashed { at, host } => (at, "crash", (if *host { "host" } else { "agent" }).to_owned()),
            Record::StepBegan { .. }
            | Record::StepEnded { .. }
            | Record::PodNamed { .. }
            | Record::Requested { .. }
            | Record::Fact { .. }
            | Record::Command { .. }
            | Record::Transition { .. }
            | Record::ProcessEnded { .. }
            | Record::Held { .. } => return Ok(()),
        };
        self.beside(Beside::Note { at: *at, mark, text })
    }

    fn beside(&self, record: Beside) -> Result<(), LogError> {
        let mut open = self.open();
        // A run's last remarks come after its journal's end.
        let Some(writer) = &mut open.writer else { return Ok(()) };
        record.append(writer).map_err(refused)?;
        open.beside.push(record);
        Ok(())
    }
}

impl FactLog for RunJournal {
    fn fact(&mut self, event: &Event, before: &mut dyn Brain) -> Result<(), LogError> {
        let mut open = self.open();
        let Some(writer) = &mut open.writer else {
            return Err(LogError("it was closed already".to_owned()));
        };
        let before = production(before)?;
        writer.append(event).and_then(|()| writer.commit(before)).map_err(refused)?;
        open.beside.clear();
        Ok(())
    }

    fn commands_given(&mut self, commands: &[Command]) {
        if let Some(writer) = &mut self.open().writer {
            writer.commands_given(commands);
        }
    }

    fn request(&mut self, event: &ApiEvent) -> Result<(), LogError> {
        self.beside(Beside::Request { at: event.at, bytes: event.sealed(&SEAL_KEY).to_bytes() })
    }

    fn recover(&mut self, _new: &NewBrain) -> Result<Box<dyn Brain>, LogError> {
        let mut open = self.open();
        // Dropped without a stop, as a crash leaves it; that gives up the lock, too.
        open.writer = None;
        let resumed = resume::<Node>(open.storage.clone(), open.options.clone()).map_err(refused)?;
        if let Some(difference) = resumed.difference() {
            return Err(LogError(format!("what it folds to is not what was recorded: {difference}")));
        }
        let mut writer = resumed.writer;
        for record in &open.beside {
            record.append(&mut writer).map_err(refused)?;
        }
        open.writer = Some(writer);
        Ok(Box::new(resumed.fold))
    }

    fn durable(&mut self) -> Result<Vec<Event>, LogError> {
        let storage = self.open().storage.clone();
        let mut facts = Vec::new();
        for entry in Reader::open(&storage).map_err(refused)? {
            if let Kept::Fact(event) = entry.map_err(refused)?.record {
                facts.push(event);
            }
        }
        Ok(facts)
    }

    fn fork(&self) -> Result<Box<dyn FactLog>, LogError> {
        Err(LogError("it records one world, and can't go on as two".to_owned()))
    }

    fn close(&mut self, brain: &mut dyn Brain) -> Result<(), LogError> {
        let node = production(brain)?;
        let Some(mut writer) = self.open().writer.take() else { return Ok(()) };
        // What was asked and noted after the last fact is part of the story, too.
        if writer.pending() > 0 {
            writer.commit(node).map_err(refused)?;
        }
        writer.stop(node).map(|_| ()).map_err(refused)
    }
}

/// A journal on disk keeps the production core's state, and no other's.
fn production(brain: &mut dyn Brain) -> Result<&mut Node, LogError> {
    brain.node_mut().ok_or_else(|| LogError("only the production core can be kept in a journal".to_owned()))
}

fn refused(error: Error) -> LogError {
    LogError(error.to_string())
}
