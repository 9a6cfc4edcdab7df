//! The portable state (DESIGN §8): taken at any record of any story, it makes the very node that it was taken from, so
//! that another version goes on as if it had been there.

use nodefold_core::event::Event;
use nodefold_core::{Commands, Node};
use nodefold_harness::log::{FactLog, InMemory, LogError};
use nodefold_harness::scenario::Verb;
use nodefold_harness::{
    Brain, NewBrain, Nobody, Observer, Outcome, Record, RunOptions, Scenario, Verdict, run,
};
use nodefold_journal::portable::{from_json, to_json};
use std::fs;
use std::path::Path;

fn stories() -> Vec<(String, Scenario)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut stories = Vec::new();
    for directory in ["examples", "tests/races", "tests/scenarios"] {
        let entries = fs::read_dir(root.join(directory)).expect("a directory of stories");
        let mut files: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
        files.retain(|path| path.extension().is_some_and(|e| e == "yaml"));
        files.sort();
        assert!(!files.is_empty(), "{directory} has no stories");
        for file in files {
            let name = file.display().to_string();
            let text = fs::read_to_string(&file).expect("a readable story");
            stories.push((name.clone(), Scenario::parse(&text, &name).expect("a story")));
        }
    }
    stories
}

/// Collects the facts of a run.
#[derive(Default)]
struct Facts(Vec<Event>);

impl Observer for Facts {
    fn record(&mut self, record: &Record) {
        if let Record::Fact { event, .. } = record {
            self.0.push(event.clone());
        }
    }
}

fn through_the_document(node: &Node) -> Node {
    from_json(to_json(node).as_bytes()).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn at_every_record_of_every_story_the_document_makes_the_same_node() {
    let mut records = 0;
    for (name, scenario) in stories() {
        let mut facts = Facts::default();
        run(&scenario, RunOptions::default(), &mut facts);
        let mut node = Node::new(nodefold_harness::node_config(&scenario));
        let mut out = Commands::default();
        for (n, event) in facts.0.iter().enumerate() {
            out.clear();
            node.apply(event, &mut out);
            records += 1;
            let mut copy = through_the_document(&node);
            assert_eq!(copy.digest(), node.digest(), "{name}: after fact {n}, {}", event.fact.name());
            assert_eq!(
                copy.deadlines().collect::<Vec<_>>(),
                node.deadlines().collect::<Vec<_>>(),
                "{name}: after fact {n}: what follows from the state is made anew"
            );
            assert_eq!(copy.charged(), node.charged());
        }
    }
    assert!(records > 3000, "{records} records");
}

/// A log whose reader has another layout: what it recovers went through the document.
#[derive(Clone, Default)]
struct Elsewhere(InMemory);

impl FactLog for Elsewhere {
    fn fact(&mut self, event: &Event, before: &mut dyn Brain) -> Result<(), LogError> {
        self.0.fact(event, before)
    }
    fn commands_given(&mut self, commands: &[nodefold_core::Command]) {
        self.0.commands_given(commands);
    }
    fn request(&mut self, event: &nodefold_api::ApiEvent) -> Result<(), LogError> {
        self.0.request(event)
    }
    fn recover(&mut self, new: &NewBrain) -> Result<Box<dyn Brain>, LogError> {
        let folded = self.0.recover(new)?;
        let node = folded.node().ok_or_else(|| LogError("not the production core".to_owned()))?;
        Ok(Box::new(through_the_document(node)))
    }
    fn durable(&mut self) -> Result<Vec<Event>, LogError> {
        self.0.durable()
    }
    fn fork(&self) -> Result<Box<dyn FactLog>, LogError> {
        Ok(Box::new(self.clone()))
    }
    fn close(&mut self, brain: &mut dyn Brain) -> Result<(), LogError> {
        self.0.close(brain)
    }
}

fn outcome(scenario: &Scenario, log: Option<Box<dyn FactLog>>) -> Outcome {
    run(scenario, RunOptions { log, ..RunOptions::default() }, &mut Nobody)
}

/// The stories in which the agent dies hold when the next one is another version: nothing is restarted, nothing
/// unmounted, and what is published is the same to the bit.
#[test]
fn a_new_version_takes_over_where_the_agent_died() {
    let mut told = 0;
    for (name, scenario) in stories() {
        let crashes = scenario.steps.iter().any(|step| matches!(step.verb, Verb::Crash(_)));
        if !crashes {
            continue;
        }
        told += 1;
        let (same, other) =
            (outcome(&scenario, None), outcome(&scenario, Some(Box::new(Elsewhere::default()))));
        assert_eq!(other.verdict, Verdict::Passed, "{name}");
        assert_eq!((other.digest, other.api_digest), (same.digest, same.api_digest), "{name}");
    }
    assert!(told > 10, "{told} stories with a crash");
}

/// At the end of each example the agent is replaced by another version: it looks, and leaves everything as it is.
#[test]
fn a_new_version_leaves_a_quiet_node_alone() {
    /// Commands that change something on the host.
    #[derive(Default)]
    struct Deeds {
        since_crash: Option<Vec<String>>,
    }
    impl Observer for Deeds {
        fn record(&mut self, record: &Record) {
            match (record, &mut self.since_crash) {
                (Record::Crashed { .. }, deeds) => *deeds = Some(Vec::new()),
                (Record::Command { command, .. }, Some(deeds)) => {
                    let verb = command.action.verb();
                    let harmless =
                        ["observe-mounts", "observe-runtime", "start-probe", "refresh", "status", "event"];
                    if !harmless.contains(&verb) {
                        deeds.push(format!("{verb} {:?}", command.action.about()));
                    }
                }
                (_, _) => {}
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut told = 0;
    for entry in fs::read_dir(root.join("examples")).expect("examples") {
        let file = entry.expect("an entry").path();
        if file.extension().is_none_or(|e| e != "yaml") {
            continue;
        }
        let mut text = fs::read_to_string(&file).expect("a readable story");
        if text.contains("\n- crash") || text.contains("\n  - crash") {
            continue;
        }
        let indent = if text.contains("\n  - ") { "  " } else { "" };
        text.push_str(&format!("\n{indent}- settle: 1m\n{indent}- crash: agent\n{indent}- settle: 1m\n"));
        let scenario = Scenario::parse(&text, &file.display().to_string()).unwrap_or_else(|e| panic!("{e}"));
        let mut deeds = Deeds::default();
        let options = RunOptions { log: Some(Box::new(Elsewhere::default())), ..RunOptions::default() };
        let outcome = run(&scenario, options, &mut deeds);
        assert_eq!(outcome.verdict, Verdict::Passed, "{}", file.display());
        assert_eq!(deeds.since_crash, Some(Vec::new()), "{}", file.display());
        told += 1;
    }
    assert!(told >= 6, "{told} examples");
}

#[test]
fn what_is_no_such_document_is_refused_with_its_reason() {
    let node = Node::new(nodefold_core::Config::default());
    let text = to_json(&node);
    let refused = |text: &str| from_json(text.as_bytes()).err().unwrap_or_else(|| panic!("taken: {text}"));
    assert!(refused("").contains("no such document"));
    let other = text.replacen("nodefold.dev/node-state", "Pod", 1);
    assert!(refused(&other).contains("it is a \"Pod\""), "{}", refused(&other));
    let newer = text.replacen("\"version\": 1", "\"version\": 2", 1);
    assert!(refused(&newer).contains("of version 2, this nodefold reads version 1"), "{}", refused(&newer));
    let more = text.replacen("\"now\"", "\"later\": 1, \"now\"", 1);
    assert!(
        refused(&more).contains("later"),
        "a field that nobody knows is no news to drop: {}",
        refused(&more)
    );
}
