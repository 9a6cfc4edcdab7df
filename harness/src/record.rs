//! What a run tells, in order: every fact, command, transition, request and step as a typed [`Record`]. Timelines and
//! `--json` are drawn from these and from nothing else.

use nodefold_core::command::{Command, Transition};
use nodefold_core::event::{Event, Exit};
use nodefold_core::ids::{ContainerId, Name, PodUid};
use nodefold_core::time::Time;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// One thing that happened in a run.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "record", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Record {
    /// A scenario begins.
    ScenarioBegan {
        /// Its name.
        name: String,
        /// Its one sentence.
        about: String,
        /// The world's time.
        at: Time,
    },
    /// A step begins.
    StepBegan {
        /// Which, from 0.
        index: usize,
        /// Its line in the file.
        line: usize,
        /// Its verb.
        verb: &'static str,
        /// The step as a person would say it.
        title: String,
        /// When.
        at: Time,
    },
    /// A step ended.
    StepEnded {
        /// Which.
        index: usize,
        /// When.
        at: Time,
    },
    /// A pod got a name that people use. Comes before the first record about that pod.
    PodNamed {
        /// Its identity.
        pod: PodUid,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A request reached the API server, and what it answered.
    Requested {
        /// When.
        at: Time,
        /// Who asked.
        user: String,
        /// What was asked, in a line.
        what: String,
        /// It was accepted.
        accepted: bool,
        /// The refusal's message, or empty.
        message: String,
        /// The refusal's causes: `{field, reason, message}`.
        causes: Value,
        /// The object after an accepted request; null after a refusal.
        object: Arc<Value>,
    },
    /// A fact was folded in.
    Fact {
        /// Its number in the fold.
        seq: u64,
        /// What happened.
        event: Event,
    },
    /// A command was given.
    Command {
        /// When.
        at: Time,
        /// What.
        command: Command,
    },
    /// Something changed its phase.
    Transition {
        /// When.
        at: Time,
        /// What.
        transition: Transition,
    },
    /// A process ended on the host, whether or not anyone has noticed yet.
    ProcessEnded {
        /// When.
        at: Time,
        /// Whose.
        pod: PodUid,
        /// Which.
        container: ContainerId,
        /// How.
        exit: Exit,
    },
    /// The agent or the whole host crashed.
    Crashed {
        /// When.
        at: Time,
        /// The whole host.
        host: bool,
    },
    /// An operation hangs.
    Held {
        /// When.
        at: Time,
        /// Which, by its stable name.
        operation: String,
    },
    /// A moment got a name.
    Marked {
        /// When.
        at: Time,
        /// The name.
        name: Name,
    },
    /// An expectation was checked.
    Expectation {
        /// Which step.
        index: usize,
        /// Its line.
        line: usize,
        /// When.
        at: Time,
        /// It holds.
        held: bool,
        /// What was expected, when it does not hold.
        expected: String,
        /// What is, when it does not hold.
        actual: String,
        /// Why it does not hold.
        explanation: String,
    },
    /// An invariant broke.
    InvariantBroken {
        /// When.
        at: Time,
        /// Its number (`S1`) and what broke it.
        violation: String,
    },
}

/// Who listens to a run.
pub trait Observer {
    /// The next record.
    fn record(&mut self, record: &Record);

    /// Time has come so far, and whatever happened earlier was told. Who shows a run as it goes shows it now.
    fn time(&mut self, _now: Time) {}
}

/// Listens and keeps nothing.
pub struct Nobody;

impl Observer for Nobody {
    fn record(&mut self, _record: &Record) {}
}

impl Observer for Vec<Record> {
    fn record(&mut self, record: &Record) {
        self.push(record.clone());
    }
}
