//! Stepping through a real journal, seen through ratatui's own test backend.
#![allow(clippy::expect_used, reason = "a test that can't go on fails")]

use super::app::App;
use super::draw::draw;
use super::tape::Tape;
use crate::journal::RunJournal;
use nodefold_harness::{Observer, Record, RunOptions, Scenario, Verdict, node_config};
use nodefold_journal::Files;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use std::path::Path;
use tempfile::TempDir;

struct Notes(RunJournal);

impl Observer for Notes {
    fn record(&mut self, record: &Record) {
        self.0.note(record).expect("noted");
    }
}

/// A pod that lives, fails once and is deleted; its last expectation does not hold.
const STORY: &str = "\
name: one-pod
about: A pod lives and dies.
steps:
- create:
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - {name: app, image: busybox:1, volumeMounts: [{name: scratch, mountPath: /s}]}
      volumes: [{name: scratch, emptyDir: {}}]
- settle: 1m
- exit: {pod: web, container: app, code: 3}
- advance: 30s
- expect: {pod: web, status: {phase: Failed}}
";

struct Seen {
    app: App,
    terminal: Terminal<TestBackend>,
    _dir: TempDir,
}

impl Seen {
    fn new(width: u16, height: u16) -> Seen {
        let dir = TempDir::new().expect("a directory");
        let path = dir.path().join("journal");
        let scenario = Scenario::parse(STORY, "story.yaml").expect("a scenario");
        let journal = RunJournal::create(&path, &node_config(&scenario), false).expect("a journal");
        let options = RunOptions { log: Some(Box::new(journal.clone())), ..RunOptions::default() };
        let outcome = nodefold_harness::run(&scenario, options, &mut Notes(journal));
        assert!(matches!(outcome.verdict, Verdict::ExpectationFailed { .. }), "{:?}", outcome.verdict);
        let beginning = nodefold_journal::beginning(&Files::at(Path::new(&path))).expect("a beginning");
        let app = App::new(Tape::read(&path, beginning).expect("a tape"));
        let terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        let mut seen = Seen { app, terminal, _dir: dir };
        seen.draw();
        seen
    }

    fn draw(&mut self) {
        self.app.load().expect("folded");
        self.terminal.draw(|frame| draw(frame, &mut self.app)).expect("drawn");
    }

    fn keys(&mut self, keys: &[KeyCode]) -> String {
        for key in keys {
            self.app.key(KeyEvent::from(*key));
            self.draw();
        }
        self.text()
    }

    fn type_in(&mut self, text: &str) -> String {
        for c in text.chars() {
            self.app.key(KeyEvent::from(KeyCode::Char(c)));
        }
        self.keys(&[KeyCode::Enter])
    }

    fn text(&self) -> String {
        let buffer = self.terminal.backend().buffer();
        let width = usize::from(buffer.area.width);
        let rows = buffer.content.chunks(width);
        rows.map(|row| {
            row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned()
        })
        .collect::<Vec<_>>()
        .join("\n")
    }
}

#[test]
fn one_steps_forth_and_back_and_the_state_follows() {
    let mut seen = Seen::new(140, 40);
    let first = seen.text();
    assert!(first.contains("1 of ") && first.contains("← → step") && first.contains("records"), "{first}");
    let up = seen.type_in("/ContainerStarted");
    assert!(up.contains("state: Running") && up.contains("name: app"), "{up}");
    let before = seen.keys(&[KeyCode::Left]);
    assert!(!before.contains("state: Running"), "{before}");
    let again = seen.keys(&[KeyCode::Right]);
    assert_eq!(
        again.lines().skip(2).take(30).collect::<Vec<_>>(),
        up.lines().skip(2).take(30).collect::<Vec<_>>()
    );
    assert!(again.contains("lines new"), "what a record brought is marked: {again}");
    let last = seen.keys(&[KeyCode::End, KeyCode::Right]);
    assert!(last.contains("that is the last record"), "{last}");
    seen.keys(&[KeyCode::Char('q')]);
    assert!(seen.app.is_done());
}

#[test]
fn each_stage_is_shown_as_yaml() {
    let mut seen = Seen::new(140, 44);
    seen.type_in("/ContainerStarted");
    let desired = seen.keys(&[KeyCode::Char('1')]);
    assert!(
        desired.contains("kind: Pod") && desired.contains("terminationGracePeriodSeconds: 2"),
        "{desired}"
    );
    let allocated = seen.keys(&[KeyCode::Tab]);
    assert!(allocated.contains("kind: Pod"), "{allocated}");
    let actuated = seen.keys(&[KeyCode::Tab]);
    assert!(actuated.contains("mounts:") && actuated.contains("scratch#0"), "{actuated}");
    let actual = seen.keys(&[KeyCode::Tab]);
    assert!(actual.contains("state: Mounted") && actual.contains("state: Running"), "{actual}");
    let published = seen.keys(&[KeyCode::Tab]);
    assert!(published.contains("phase: Running"), "{published}");
    let scrolled = seen.keys(&[KeyCode::Char('1'), KeyCode::Down, KeyCode::Down]);
    assert!(!scrolled.contains("apiVersion: v1\n") || scrolled.contains("3–"), "{scrolled}");
}

#[test]
fn one_jumps_to_records_and_times_and_runs_to_findings() {
    let mut seen = Seen::new(140, 40);
    let there = seen.type_in("g12");
    assert!(there.contains("record 12,") || there.contains("record 11,"), "{there}");
    let later = seen.type_in("g1m");
    let at = seen.app.moment().expect("a moment").at;
    assert!(at <= 60_000_000 && at > 1_000_000, "{at}: {later}");
    let wrong = seen.type_in("gsoon");
    assert!(wrong.contains("is no place in a journal"), "{wrong}");
    let found = seen.keys(&[KeyCode::Home, KeyCode::Char('f')]);
    assert!(found.contains("expected and not so"), "{found}");
    assert!(found.contains("◆") && found.contains("✗ 1 finding"), "{found}");
    let none = seen.keys(&[KeyCode::Char('f')]);
    assert!(none.contains("no finding after here"), "{none}");
}

#[test]
fn two_moments_are_compared_in_every_stage() {
    let mut seen = Seen::new(140, 60);
    let unmarked = seen.keys(&[KeyCode::Char('d')]);
    assert!(unmarked.contains("mark a moment first"), "{unmarked}");
    seen.type_in("/ContainerStarted");
    seen.keys(&[KeyCode::Char('m')]);
    seen.type_in("/ContainerExited");
    let compared = seen.keys(&[KeyCode::Char('d')]);
    assert!(compared.contains("(the same)"), "what nobody changed is the same: {compared}");
    assert!(
        compared.contains("- ") && compared.contains("+ ") && compared.contains("exit code 3"),
        "{compared}"
    );
    let back = seen.keys(&[KeyCode::Char('d')]);
    assert!(!back.contains("(the same)"), "{back}");
}

#[test]
fn small_terminals_and_help_are_drawn() {
    for (width, height) in [(60, 20), (20, 6), (200, 60)] {
        let mut seen = Seen::new(width, height);
        seen.keys(&[KeyCode::Right, KeyCode::Char('?')]);
    }
    let mut seen = Seen::new(100, 30);
    let help = seen.keys(&[KeyCode::Char('?')]);
    assert!(help.contains("run to the next finding"), "{help}");
    let away = seen.keys(&[KeyCode::Char('x')]);
    assert!(!away.contains("run to the next finding"), "{away}");
}
