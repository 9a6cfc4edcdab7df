//! What happened, line by line: which records are worth a line, and what it says.

use crate::commands;
use crate::facts;
use crate::lives::Lane;
use crate::names::Names;
use crate::paint::{Phase, Tone};
use nodefold_core::Command;
use nodefold_core::command::{Action, Subject, Transition};
use nodefold_core::event::Fact;
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use nodefold_harness::Record;

/// One line of a story.
#[derive(Clone, Debug)]
pub struct Line {
    /// When.
    pub at: Time,
    /// The lane that it is about, and the phase that begins there, if one does.
    pub lane: Option<(Lane, Option<Phase>)>,
    /// Its colour.
    pub tone: Tone,
    /// What it says.
    pub text: String,
    /// More of it, on lines of their own.
    pub more: Vec<String>,
}

impl Line {
    /// A line that is about no lane.
    pub fn new(at: Time, tone: Tone, text: String) -> Line {
        Line { at, lane: None, tone, text, more: Vec::new() }
    }
}

/// Turns records into lines. Knows the names of pods, and what the step under way expects.
#[derive(Debug)]
pub struct Teller {
    /// Pods by name.
    pub names: Names,
    /// Tell every fact, command and request, not only what is news.
    pub everything: bool,
    step: String,
}

impl Teller {
    /// A teller that knows no pod yet.
    pub fn new(everything: bool) -> Teller {
        Teller { names: Names::default(), everything, step: String::new() }
    }

    /// The line that a record is worth, if any.
    pub fn line(&mut self, record: &Record) -> Option<Line> {
        let everything = self.everything;
        match record {
            Record::PodNamed { pod, namespace, name } => {
                self.names.learn(*pod, namespace, name);
                None
            }
            Record::StepBegan { verb, title, at, line, .. } => {
                self.step = title.clone();
                // These are told when they were checked, and when they were made.
                let later = matches!(*verb, "expect" | "mark");
                (!later).then(|| Line::new(*at, Tone::Step, format!("▸ {title}  (line {line})")))
            }
            Record::Requested { at, user, what, accepted, message, causes, .. } => {
                if *accepted {
                    return everything.then(|| Line::new(*at, Tone::Quiet, format!("{user}: {what}")));
                }
                let mut line = Line::new(*at, Tone::Warning, format!("refused: {what}: {message}"));
                line.more = causes.as_array().into_iter().flatten().map(cause).collect();
                Some(line)
            }
            Record::Fact { event, seq } => fact(event.at, *seq, &event.fact, &self.names, everything),
            Record::Command { at, command } => command_line(*at, command, &self.names, everything),
            Record::Transition { at, transition } => Some(self.moved(*at, transition)),
            Record::ProcessEnded { at, pod, container, exit } => everything.then(|| {
                let text = format!(
                    "{}/{container}: the process ended, {}",
                    self.names.short(*pod),
                    facts::exit(exit)
                );
                Line::new(*at, Tone::Quiet, text)
            }),
            Record::Crashed { at, host } => {
                let text = if *host { "✗ the host went down" } else { "✗ the agent died" };
                Some(Line::new(*at, Tone::Bad, text.to_owned()))
            }
            Record::Held { at, operation } => {
                Some(Line::new(*at, Tone::Warning, format!("hangs: {operation}")))
            }
            Record::Marked { at, name } => Some(Line::new(*at, Tone::Step, format!("⚑ {name}"))),
            Record::Expectation { at, held, line, .. } => {
                let (tone, sign) = if *held { (Tone::Good, '✓') } else { (Tone::Bad, '✗') };
                Some(Line::new(*at, tone, format!("{sign} {}  (line {line})", self.step)))
            }
            Record::InvariantBroken { at, violation } => {
                let violation = self.names.in_text(violation);
                Some(Line::new(*at, Tone::Bad, format!("✗ invariant broken: {violation}")))
            }
            Record::ScenarioBegan { .. } | Record::StepEnded { .. } => None,
        }
    }

    /// The line of a change of phase.
    pub fn moved(&self, at: Time, transition: &Transition) -> Line {
        let phase = Phase::of_label(&transition.to);
        let to = if transition.to.is_empty() { "gone" } else { &*transition.to };
        let name = match &transition.subject {
            Subject::Pod => self.names.short(transition.pod),
            Subject::Sandbox(attempt) => {
                format!("{}/{}", self.names.short(transition.pod), facts::sandbox(*attempt))
            }
            Subject::Container(id) => format!("{}/{id}", self.names.short(transition.pod)),
            Subject::Volume(id) => format!("{}/{id}", self.names.short(transition.pod)),
        };
        let lane = Lane::of(transition).map(|lane| (lane, Some(phase)));
        let from =
            if transition.from.is_empty() { String::new() } else { format!("  (was {})", transition.from) };
        Line { at, lane, tone: Tone::Life(phase), text: format!("{name}  {to}{from}"), more: Vec::new() }
    }
}

/// A cause of a refusal, as `kubectl` would print it.
fn cause(cause: &serde_json::Value) -> String {
    let text = |field: &str| cause[field].as_str().unwrap_or("").to_owned();
    format!("{}: {}: {}", text("field"), text("reason"), text("message"))
}

/// A fact is worth a line if it tells more than the change of phase that it brings about.
fn fact(at: Time, seq: u64, fact: &Fact, names: &Names, everything: bool) -> Option<Line> {
    let told = facts::told(fact);
    let is_news = matches!(told.tone, Tone::Warning | Tone::Bad)
        || matches!(
            fact,
            Fact::ContainerExited { .. }
                | Fact::AgentStarted { .. }
                | Fact::NodeChanged(_)
                | Fact::ProbeResult { .. }
                | Fact::VolumeRefreshed { .. }
                | Fact::ContainerResized { .. }
                | Fact::PodResized { .. }
        );
    if !is_news && !everything {
        return None;
    }
    let thing = thing(fact.pod(), &told.subject, names);
    let what = if told.text.is_empty() { String::new() } else { format!(": {}", told.text) };
    let tone = if is_news { told.tone } else { Tone::Quiet };
    let number = if everything { format!("#{seq} ") } else { String::new() };
    Some(Line::new(at, tone, format!("{number}{thing}{}{what}", fact.name())))
}

fn command_line(at: Time, command: &Command, names: &Names, everything: bool) -> Option<Line> {
    let action = &command.action;
    let is_warning = matches!(action, Action::RecordEvent(event) if event.warning);
    let is_news = matches!(
        action,
        Action::StopContainer { .. } | Action::KillContainer { .. } | Action::ResizeContainer { .. }
    );
    let tone = match (is_warning, is_news) {
        (true, _) => Tone::Warning,
        (false, true) => Tone::Plain,
        (false, false) if everything => Tone::Quiet,
        (false, false) => return None,
    };
    let pod = (command.pod != PodUid(0)).then_some(command.pod);
    let thing = thing(pod, &commands::subject(action), names);
    if let Action::RecordEvent(event) = action {
        return Some(Line::new(at, tone, format!("{thing}{}: {}", event.reason, event.message)));
    }
    let detail = commands::detail(action);
    let detail = if detail.is_empty() { String::new() } else { format!(", {detail}") };
    Some(Line::new(at, tone, format!("{thing}→ {}{detail}  ({:?})", action.verb(), command.cause.rule)))
}

/// `web/app#0.0 `, `web `, or nothing.
fn thing(pod: Option<PodUid>, subject: &str, names: &Names) -> String {
    match (pod, subject.is_empty()) {
        (Some(pod), false) => format!("{}/{subject} ", names.short(pod)),
        (Some(pod), true) => format!("{} ", names.short(pod)),
        (None, false) => format!("{subject} "),
        (None, true) => String::new(),
    }
}
