//! Who looks on while something is played or folded: tells each record as the reader wants it, and draws the picture at
//! the end.

use crate::json;
use crate::lanes;
use crate::lives::Lives;
use crate::out::Out;
use crate::paint::{Tone, paint};
use crate::story::{Line, Teller};
use crate::timeline::Timeline;
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
    kept: Vec<String>,
}

impl<'o> View<'o> {
    /// A view of a story that has not begun.
    pub fn new(out: &'o mut Out, form: Form, everything: bool, beginning: Time) -> View<'o> {
        View {
            out,
            teller: Teller { everything, ..Teller::default() },
            lives: Lives::default(),
            beginning,
            form,
            timeline: Timeline::from(beginning),
            kept: Vec::new(),
        }
    }

    /// Tells a record.
    pub fn record(&mut self, record: &Record) {
        self.lives.record(record);
        let line = self.teller.line(record);
        if self.form == Form::Json {
            return self.out.line(json::record(record, &self.teller.names, self.beginning));
        }
        if let Record::ScenarioBegan { name, about, .. } = record {
            let about = if about.is_empty() { String::new() } else { format!("  {about}") };
            self.show(vec![format!("{}{about}", paint(Tone::Step.style(), name))]);
        }
        if let Some(line) = line {
            self.line(&line);
        }
    }

    /// Tells a line that no record is behind.
    pub fn line(&mut self, line: &Line) {
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
        self.out.lines(std::mem::take(&mut self.kept));
    }

    /// Draws the picture of all lives.
    pub fn draw_lanes(&mut self) {
        let picture = lanes::draw(&self.lives, &self.teller.names, self.out.width);
        if !picture.is_empty() {
            self.out.line("");
            self.out.lines(picture);
            self.out.line("");
        }
    }
}
