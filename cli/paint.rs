//! Colours and glyphs: how each phase of a life looks, in a lane, in a chart and in a legend.

use anstyle::{AnsiColor, Style};
use std::fmt::Display;

/// What a line is about, as far as its colour goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Something happens.
    Plain,
    /// Something of little weight.
    Quiet,
    /// Somebody acts: a step, a request.
    Step,
    /// As it should be.
    Good,
    /// Worth a look.
    Warning,
    /// Not as it should be.
    Bad,
    /// It has this phase now.
    Life(Phase),
}

/// A phase of a life, as people see it. The core's labels are finer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not there.
    Gone,
    /// Ended, but remembered.
    Over,
    /// Wanted, nothing done yet.
    Waiting,
    /// There.
    Up,
    /// On its way to be there.
    Coming,
    /// On its way to be gone.
    Going,
    /// Nobody knows.
    Unknown,
    /// Tried, with an error.
    Failing,
}

/// What lives.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A pod.
    Pod,
    /// A container.
    Container,
    /// A volume.
    Volume,
}

impl Phase {
    /// All of them, in the order in which a legend tells them.
    pub const ALL: [Phase; 8] = [
        Phase::Waiting,
        Phase::Coming,
        Phase::Up,
        Phase::Going,
        Phase::Failing,
        Phase::Unknown,
        Phase::Over,
        Phase::Gone,
    ];

    /// The phase that one of the core's labels stands for.
    pub fn of_label(label: &str) -> Phase {
        match label {
            "" => Phase::Gone,
            "Waiting" | "Pending" => Phase::Waiting,
            "Pulling" | "Creating" | "Created" | "Starting" | "Mounting" => Phase::Coming,
            "Active" | "Running" | "Mounted" | "Ready" => Phase::Up,
            "Terminating" | "Stopping" | "Unmounting" | "Discarding" | "Removing" => Phase::Going,
            "Terminated" | "Exited" | "Dead" | "Stopped" => Phase::Over,
            "ErrorMounting" => Phase::Failing,
            // `Uncertain`, `Lost`, and whatever a later core may add: said to be unknown rather than left out.
            _ => Phase::Unknown,
        }
    }

    /// Its colour.
    pub fn style(self) -> Style {
        match self {
            Phase::Gone => Style::new(),
            Phase::Over => Style::new().dimmed(),
            Phase::Waiting => AnsiColor::Cyan.on_default().dimmed(),
            Phase::Up => AnsiColor::Green.on_default(),
            Phase::Coming => AnsiColor::Yellow.on_default(),
            Phase::Going => AnsiColor::Magenta.on_default(),
            Phase::Unknown => AnsiColor::Blue.on_default().bold(),
            Phase::Failing => AnsiColor::Red.on_default().bold(),
        }
    }

    /// How it fills a cell of the chart.
    pub const fn fill(self, kind: Kind) -> char {
        match (self, kind) {
            (Phase::Gone, _) => ' ',
            (Phase::Over, _) => '╌',
            (Phase::Waiting, _) => '·',
            (Phase::Coming, _) => '░',
            (Phase::Going, _) => '▒',
            (Phase::Unknown, _) => '?',
            (Phase::Failing, _) => '!',
            (Phase::Up, Kind::Pod) => '━',
            (Phase::Up, Kind::Container) => '█',
            (Phase::Up, Kind::Volume) => '▄',
        }
    }

    /// How its beginning looks in the live timeline.
    pub const fn dot(self) -> char {
        match self {
            Phase::Gone => '╵',
            Phase::Over => '◌',
            Phase::Waiting => '○',
            Phase::Coming => '◔',
            Phase::Up => '●',
            Phase::Going => '◕',
            Phase::Unknown => '?',
            Phase::Failing => '✗',
        }
    }

    /// How it goes on in the live timeline.
    pub const fn thread(self) -> char {
        match self {
            Phase::Gone => '╵',
            Phase::Up | Phase::Failing | Phase::Going => '│',
            Phase::Over | Phase::Waiting | Phase::Coming | Phase::Unknown => '┆',
        }
    }

    /// What a legend says of it.
    pub const fn meaning(self) -> &'static str {
        match self {
            Phase::Gone => "gone",
            Phase::Over => "ended",
            Phase::Waiting => "waits",
            Phase::Coming => "being made",
            Phase::Up => "up",
            Phase::Going => "being undone",
            Phase::Unknown => "unknown",
            Phase::Failing => "in error",
        }
    }
}

impl Tone {
    /// Its colour.
    pub fn style(self) -> Style {
        match self {
            Tone::Plain => Style::new(),
            Tone::Quiet => Style::new().dimmed(),
            Tone::Step => Style::new().bold(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Warning => AnsiColor::Yellow.on_default(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
            Tone::Life(phase) => phase.style(),
        }
    }
}

/// Text in a style.
pub fn paint(style: Style, text: impl Display) -> String {
    if style.is_plain() { text.to_string() } else { format!("{style}{text}{style:#}") }
}
