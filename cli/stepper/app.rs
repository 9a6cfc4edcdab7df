//! What the keys do. Knows where one is on the tape, what is asked for, and which documents that takes; draws nothing.

use super::states::{self, Stage};
use super::tape::{Moment, Tape};
use crate::names::clock;
use crate::place;
use anyhow::Result;
use nodefold_core::time::{Nanos, Time};
use nodefold_journal::Position;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a line is being typed for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A record or a time to jump to.
    Jump,
    /// A text to find among the moments.
    Find,
}

/// What the right side shows.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// The stage's document, and of each line whether this moment brought it.
    pub lines: Vec<(String, bool)>,
    /// The pods there are.
    pub pods: Vec<String>,
    /// Lines that this moment took away.
    pub taken: usize,
}

/// How a line of a comparison came about.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// In both.
    Same,
    /// Only in the later.
    Added,
    /// Only in the earlier.
    Removed,
    /// A headline.
    Head,
}

/// The whole of it.
pub struct App {
    /// The journal.
    pub tape: Tape,
    /// Which moment.
    pub now: usize,
    /// Which pod.
    pub pod: Option<String>,
    /// Which stage.
    pub stage: Stage,
    /// How far the document is scrolled.
    pub scroll: usize,
    /// The moment that is compared with.
    pub mark: Option<usize>,
    /// Two moments are compared.
    pub compares: bool,
    /// A line that is being typed, and for what.
    pub typed: Option<(Asked, String)>,
    /// The last text that was looked for.
    pub sought: String,
    /// The keys are shown.
    pub help: bool,
    /// Something to say.
    pub message: Option<String>,
    /// The state at this moment.
    pub shown: Shown,
    /// The comparison.
    pub comparison: Vec<(Sign, String)>,
    done: bool,
}

impl App {
    /// At the beginning of a tape.
    pub fn new(tape: Tape) -> App {
        // The first pod that anything is about is the one that is looked at.
        let pod = tape.moments.iter().find_map(|m| m.pod.clone());
        App {
            tape,
            now: 0,
            pod,
            stage: Stage::Actual,
            scroll: 0,
            mark: None,
            compares: false,
            typed: None,
            sought: String::new(),
            help: false,
            message: None,
            shown: Shown::default(),
            comparison: Vec::new(),
            done: false,
        }
    }

    /// Somebody has quit.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// The moment that one is at, if the journal has any.
    pub fn moment(&self) -> Option<&Moment> {
        self.tape.moments.get(self.now)
    }

    /// A moment's time as people read it.
    pub fn time(&self, moment: &Moment) -> String {
        let nanos = u64::try_from(moment.at.max(0)).unwrap_or(0).saturating_mul(1000);
        clock(self.tape.beginning.after(Nanos(nanos)), self.tape.beginning)
    }

    /// Folds what is to be shown.
    pub fn load(&mut self) -> Result<()> {
        let Some(record) = self.moment().map(|m| m.record) else { return Ok(()) };
        let node = self.tape.node(record)?;
        let pods: Vec<String> = states::pods(&node).into_iter().map(|(name, _)| name).collect();
        let Some(pod) = self.pod.clone() else {
            self.shown = Shown { pods, ..Shown::default() };
            return Ok(());
        };
        let text = states::document(&node, &pod, self.stage);
        let before = match self.now.checked_sub(1).map(|i| self.tape.moments[i].record) {
            Some(record) => states::document(&*self.tape.node(record)?, &pod, self.stage),
            None => String::new(),
        };
        let signed = compared(&before, &text);
        let taken = signed.iter().filter(|(sign, _)| *sign == Sign::Removed).count();
        let lines = signed
            .into_iter()
            .filter(|(sign, _)| *sign != Sign::Removed)
            .map(|(sign, line)| (line, sign == Sign::Added))
            .collect();
        self.shown = Shown { lines, pods, taken };
        self.compare(&pod)
    }

    fn compare(&mut self, pod: &str) -> Result<()> {
        self.comparison.clear();
        let Some(mark) = self.mark.filter(|_| self.compares) else { return Ok(()) };
        let (from, to) = (mark.min(self.now), mark.max(self.now));
        let (earlier, later) = (self.tape.moments[from].record, self.tape.moments[to].record);
        for stage in Stage::ALL {
            let before = states::document(&*self.tape.node(earlier)?, pod, stage);
            let after = states::document(&*self.tape.node(later)?, pod, stage);
            self.comparison.push((Sign::Head, stage.name().to_owned()));
            if before == after {
                self.comparison.push((Sign::Same, "(the same)".to_owned()));
            } else {
                self.comparison.extend(context(compared(&before, &after)));
            }
        }
        Ok(())
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) {
        self.message = None;
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            self.done = true;
            return;
        }
        if self.typed.is_some() {
            return self.type_on(key.code);
        }
        if self.help {
            self.help = false;
            return;
        }
        self.command(key.code);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a terminal has more keys than these")]
    fn command(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char('q') => self.done = true,
            KeyCode::Esc if self.compares => self.compares = false,
            KeyCode::Esc => self.done = true,
            KeyCode::Right | KeyCode::Char('l' | ' ') => self.go(self.now.saturating_add(1)),
            KeyCode::Left | KeyCode::Char('h') => self.go(self.now.saturating_sub(1)),
            KeyCode::PageDown => self.go(self.now.saturating_add(20)),
            KeyCode::PageUp => self.go(self.now.saturating_sub(20)),
            KeyCode::Home => self.go(0),
            KeyCode::End => self.go(usize::MAX),
            KeyCode::Down | KeyCode::Char('j') => self.scroll = self.scroll.saturating_add(1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Tab => self.turn(1),
            KeyCode::BackTab => self.turn(Stage::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='5') => {
                self.stage = Stage::ALL[digit as usize - '1' as usize];
                self.scroll = 0;
            }
            KeyCode::Char('p') => self.next_pod(1),
            KeyCode::Char('P') => self.next_pod(self.shown.pods.len().saturating_sub(1)),
            KeyCode::Char('f') => self.next_finding(true),
            KeyCode::Char('F') => self.next_finding(false),
            KeyCode::Char('g') => self.typed = Some((Asked::Jump, String::new())),
            KeyCode::Char('/') => self.typed = Some((Asked::Find, String::new())),
            KeyCode::Char('n') => self.find(true),
            KeyCode::Char('N') => self.find(false),
            KeyCode::Char('m') => {
                self.mark = Some(self.now);
                let record = self.moment().map_or(0, |m| m.record);
                self.message = Some(format!("record {record} is marked: go elsewhere and press d"));
            }
            KeyCode::Char('d') => match self.mark {
                Some(_) => {
                    self.compares = !self.compares;
                    self.scroll = 0;
                }
                None => self.message = Some("mark a moment first: m".to_owned()),
            },
            KeyCode::Char('?') => self.help = true,
            _ => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "a terminal has more keys than these")]
    fn type_on(&mut self, key: KeyCode) {
        let Some((asked, text)) = &mut self.typed else { return };
        match key {
            KeyCode::Esc => self.typed = None,
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char(c) => text.push(c),
            KeyCode::Enter => {
                let (asked, text) = (*asked, std::mem::take(text));
                self.typed = None;
                match asked {
                    Asked::Jump => self.jump(text.trim()),
                    Asked::Find => {
                        self.sought = text.to_lowercase();
                        self.find(true);
                    }
                }
            }
            _ => {}
        }
    }

    fn jump(&mut self, text: &str) {
        match place::parse(text, self.tape.beginning).map(place::to_the_end_of) {
            Ok(Position::Record(record)) => self.go_to_record(record),
            Ok(Position::Time(time)) => self.go_to_time(time),
            Err(error) => self.message = Some(error.to_string()),
        }
    }

    /// Goes to the last moment that is not after a record.
    pub fn go_to_record(&mut self, record: u64) {
        let after = self.tape.moments.partition_point(|m| m.record <= record);
        self.go(after.saturating_sub(1));
    }

    /// Goes to the last moment that is not after a time.
    pub fn go_to_time(&mut self, time: Time) {
        let micros = i64::try_from(time.since(self.tape.beginning).0 / 1000).unwrap_or(i64::MAX);
        // A clock may have been set back: the last one, not the first.
        let found = self.tape.moments.iter().rposition(|m| m.at <= micros);
        self.go(found.unwrap_or(0));
    }

    fn go(&mut self, to: usize) {
        let last = self.tape.moments.len().saturating_sub(1);
        if to > last && self.now == last {
            self.message = Some("that is the last record".to_owned());
        }
        self.now = to.min(last);
    }

    fn turn(&mut self, by: usize) {
        let now = Stage::ALL.iter().position(|s| *s == self.stage).unwrap_or(0);
        self.stage = Stage::ALL[(now + by) % Stage::ALL.len()];
        self.scroll = 0;
    }

    fn next_pod(&mut self, by: usize) {
        let pods = &self.shown.pods;
        if pods.is_empty() {
            self.message = Some("the node knows no pod at this moment".to_owned());
            return;
        }
        let now = pods.iter().position(|p| Some(p) == self.pod.as_ref());
        let next = now.map_or(0, |now| (now + by) % pods.len());
        self.pod = Some(pods[next].clone());
        self.scroll = 0;
    }

    fn next_finding(&mut self, forward: bool) {
        let has = |m: &Moment| !m.findings.is_empty();
        let moments = &self.tape.moments;
        let found = match forward {
            true => moments.iter().skip(self.now + 1).position(has).map(|i| i + self.now + 1),
            false => moments[..self.now].iter().rposition(has),
        };
        match found {
            Some(found) => {
                self.now = found;
                if let Some(pod) = self.tape.moments[found].pod.clone() {
                    self.pod = Some(pod);
                }
            }
            None if moments.iter().any(has) => {
                self.message = Some(format!("no finding {} here", if forward { "after" } else { "before" }));
            }
            None => {
                self.message =
                    Some("nothing in this journal breaks an invariant or an expectation".to_owned())
            }
        }
    }

    fn find(&mut self, forward: bool) {
        if self.sought.is_empty() {
            self.message = Some("search with /".to_owned());
            return;
        }
        let has = |m: &Moment| {
            let about = m.pod.as_deref().unwrap_or_default();
            [m.text.as_str(), about]
                .into_iter()
                .chain(m.consequences.iter().map(String::as_str))
                .any(|t| t.to_lowercase().contains(&self.sought))
        };
        let moments = &self.tape.moments;
        let found = match forward {
            true => moments.iter().skip(self.now + 1).position(has).map(|i| i + self.now + 1),
            false => moments[..self.now].iter().rposition(has),
        };
        match found {
            Some(found) => self.now = found,
            None => {
                self.message = Some(format!(
                    "{:?} is not {} here",
                    self.sought,
                    if forward { "after" } else { "before" }
                ))
            }
        }
    }
}

/// Two documents, line by line.
fn compared(before: &str, after: &str) -> Vec<(Sign, String)> {
    let diff = similar::TextDiff::from_lines(before, after);
    diff.iter_all_changes()
        .map(|change| {
            let sign = match change.tag() {
                similar::ChangeTag::Equal => Sign::Same,
                similar::ChangeTag::Insert => Sign::Added,
                similar::ChangeTag::Delete => Sign::Removed,
            };
            (sign, change.value().trim_end().to_owned())
        })
        .collect()
}

/// The lines that differ, with two around them.
fn context(lines: Vec<(Sign, String)>) -> Vec<(Sign, String)> {
    const AROUND: usize = 2;
    let near = |i: usize| {
        let from = i.saturating_sub(AROUND);
        lines[from..(i + AROUND + 1).min(lines.len())].iter().any(|(sign, _)| *sign != Sign::Same)
    };
    let mut out: Vec<(Sign, String)> = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if near(i) {
            out.push(line.clone());
        } else if out.last().is_none_or(|(_, text)| text != "…") {
            out.push((Sign::Same, "…".to_owned()));
        }
    }
    out
}
