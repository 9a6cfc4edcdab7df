//! Who looks on while something is played or folded: tells each record as the reader wants it, and draws the picture at
//! the end.

use crate::json;
use crate::lanes;
use crate::lives::{Lane, Lives};
use crate::out::Out;
use crate::paint::{Tone, paint};
use crate::story::{Line, Teller};
use crate::timeline::Timeline;
use nodefold_agent::driver::Folded;
use nodefold_core::command::Transition;
use nodefold_core::event::Fact;
use nodefold_core::time::Time;
use nodefold_harness::Record;

/// How records are told.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lines for people; lanes where the output is a terminal.
    Lines,
    /// The same, kept back until somebody asks.
    KeptBack,
    /// JSON, one object a line.
    Json,
}

/// A view of one story.
pub struct View<'o> {
    /// Where it is shown.
    pub out: &'o mut Out,
    /// Names, and what is news.
    pub teller: Teller,
    /// What the picture shows.
    pub lives: Lives,
    /// When it all began.
    pub beginning: Time,
    form: Form,
    timeline: Timeline,
    /// Changes of phase at one moment, each thing's from its first to its last.
    moves: Vec<(Time, Transition)>,
    kept: Vec<String>,
}

impl<'o> View<'o> {
    /// A view of a story that has not begun.
    pub fn new(out: &'o mut Out, form: Form, everything: bool, beginning: Time) -> View<'o> {
        let width = out.width;
        View {
            out,
            teller: Teller::new(everything),
            lives: Lives::default(),
            beginning,
            form,
            timeline: Timeline::from(beginning, width),
            moves: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// Tells what an agent folded in, and what it made due.
    pub fn folded(&mut self, folded: &Folded) {
        let at = folded.event.at;
        if let Fact::PodApplied(pod) = &folded.event.fact {
            let (namespace, name) = (pod.namespace.to_string(), pod.name.to_string());
            self.record(&Record::PodNamed { pod: pod.uid, namespace, name });
        }
        self.record(&Record::Fact { seq: folded.seq, event: folded.event.clone() });
        for transition in &folded.transitions {
            self.record(&Record::Transition { at, transition: transition.clone() });
        }
        for command in &folded.commands {
            self.record(&Record::Command { at, command: command.clone() });
        }
        // What comes next comes later, if ever.
        self.tell_moves();
    }

    /// Shows what happened before this moment.
    pub fn time(&mut self, now: Time) {
        if self.moves.iter().any(|(at, _)| *at < now) {
            self.tell_moves();
        }
    }

    /// Tells a record.
    pub fn record(&mut self, record: &Record) {
        self.lives.record(record);
        if self.form == Form::Json {
            // Only names are learnt from it.
            self.teller.line(record);
            return self.out.line(json::record(record, &self.teller.names, self.beginning));
        }
        if let Record::Transition { at, transition } = record {
            return self.moved(*at, transition);
        }
        if let Record::ScenarioBegan { name, about, .. } = record {
            let about = if about.is_empty() { String::new() } else { format!("  {about}") };
            self.show(vec![format!("{}{about}", paint(Tone::Step.style(), name))]);
        }
        if let Some(line) = self.teller.line(record) {
            self.line(&line);
        }
    }

    /// A thing that passes several phases at one moment is told once, unless everything is to be told.
    fn moved(&mut self, at: Time, transition: &Transition) {
        let same = |(then, before): &&mut (Time, Transition)| {
            *then == at && same_thing(before, transition) && !self.teller.everything
        };
        match self.moves.iter_mut().find(same) {
            Some((_, before)) => {
                before.subject = transition.subject.clone();
                before.to = transition.to.clone();
            }
            None => self.moves.push((at, transition.clone())),
        }
    }

    /// Tells a line that no record is behind.
    pub fn line(&mut self, line: &Line) {
        self.tell_moves();
        self.draw(line);
    }

    fn tell_moves(&mut self) {
        for (at, transition) in std::mem::take(&mut self.moves) {
            if transition.from != transition.to {
                let line = self.teller.moved(at, &transition);
                self.draw(&line);
            }
        }
    }

    fn draw(&mut self, line: &Line) {
        let drawn = if self.out.is_terminal { self.timeline.draw(line) } else { self.timeline.plain(line) };
        self.show(drawn);
    }

    fn show(&mut self, lines: Vec<String>) {
        match self.form {
            Form::Lines => self.out.lines(lines),
            Form::KeptBack => self.kept.extend(lines),
            Form::Json => {}
        }
    }

    /// Shows what was kept back: it is wanted after all.
    pub fn tell_kept(&mut self) {
        self.tell_moves();
        self.out.lines(std::mem::take(&mut self.kept));
    }

    /// Draws the picture of all lives.
    pub fn draw_lanes(&mut self) {
        self.tell_moves();
        let picture = lanes::draw(&self.lives, &self.teller.names, self.out.width);
        if !picture.is_empty() {
            self.out.line("");
            self.out.lines(picture);
            self.out.line("");
        }
    }
}

/// Both are about one thing: a container's attempts are one.
fn same_thing(one: &Transition, other: &Transition) -> bool {
    match (Lane::of(one), Lane::of(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => one.pod == other.pod && one.subject == other.subject,
        (Some(_), None) | (None, Some(_)) => false,
    }
}
