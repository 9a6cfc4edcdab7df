//! D1 over whole scenarios: the fold of the recorded facts gives the digest that the run ended with, and so does every
//! snapshot with the tail after it.

use nodefold_api::ApiEvent;
use nodefold_core::command::Command;
use nodefold_core::{Commands, Config, Digest, Event, Node};
use nodefold_harness::log::{FactLog, InMemory, LogError};
use nodefold_harness::{Brain, NewBrain, Nobody, RunOptions, Scenario, Verdict, node_config, run};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A log in memory whose facts can be had after the run.
struct Kept {
    log: InMemory,
    events: Arc<Mutex<Vec<Event>>>,
}

impl FactLog for Kept {
    fn fact(&mut self, event: &Event, before: &mut dyn Brain) -> Result<(), LogError> {
        self.events.lock().expect("nobody panicked").push(event.clone());
        self.log.fact(event, before)
    }
    fn commands_given(&mut self, commands: &[Command]) {
        self.log.commands_given(commands);
    }
    fn request(&mut self, event: &ApiEvent) -> Result<(), LogError> {
        self.log.request(event)
    }
    fn recover(&mut self, new: &NewBrain) -> Result<Box<dyn Brain>, LogError> {
        self.log.recover(new)
    }
    fn durable(&mut self) -> Result<Vec<Event>, LogError> {
        self.log.durable()
    }
    fn fork(&self) -> Result<Box<dyn FactLog>, LogError> {
        self.log.fork()
    }
    fn close(&mut self, brain: &mut dyn Brain) -> Result<(), LogError> {
        self.log.close(brain)
    }
}

fn played(path: &PathBuf) -> (Config, Vec<Event>, Digest) {
    let text = fs::read_to_string(path).expect("a readable example");
    let scenario = Scenario::parse(&text, &path.display().to_string()).expect("a scenario");
    let config = node_config(&scenario);
    let events = Arc::new(Mutex::new(Vec::new()));
    let log = Kept { log: InMemory::default(), events: events.clone() };
    let options = RunOptions { log: Some(Box::new(log)), ..RunOptions::default() };
    let outcome = run(&scenario, options, &mut Nobody);
    assert_eq!(outcome.verdict, Verdict::Passed, "{}", path.display());
    let events = events.lock().expect("nobody panicked").clone();
    (config, events, outcome.digest)
}

fn examples() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples");
    let entries = fs::read_dir(folder).expect("examples");
    let mut files: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "yaml"));
    files.sort();
    assert!(files.len() >= 8, "the eight examples are there");
    files
}

fn fold(node: &mut Node, events: &[Event]) -> Digest {
    let mut out = Commands::default();
    for event in events {
        out.clear();
        node.apply(event, &mut out);
    }
    node.digest()
}

#[test]
fn a_run_ends_with_the_same_digest_every_time() {
    for path in examples() {
        let (_, first_events, first) = played(&path);
        let (_, second_events, second) = played(&path);
        assert_eq!(first, second, "{}", path.display());
        assert_eq!(first_events, second_events, "{}", path.display());
    }
}

#[test]
fn folding_the_facts_again_gives_the_runs_digest() {
    for path in examples() {
        let (config, events, digest) = played(&path);
        assert_eq!(fold(&mut Node::new(config), &events), digest, "{}", path.display());
    }
}

#[test]
fn a_snapshot_at_any_record_and_the_tail_equal_the_whole() {
    for path in examples() {
        let (config, events, digest) = played(&path);
        let mut node = Node::new(config);
        for at in 0..=events.len() {
            let mut resumed = Node::from_snapshot(&node.to_snapshot()).expect("a snapshot of our own");
            let tail = fold(&mut resumed, &events[at..]);
            assert_eq!(tail, digest, "{} from record {at}", path.display());
            if let Some(event) = events.get(at) {
                node.apply(event, &mut Commands::default());
            }
        }
    }
}
