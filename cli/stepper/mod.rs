//! `nodefold replay` in a terminal: step through a journal, see each stage's state as YAML, compare two moments.
//!
//! `tape` is the journal as a list of moments, `states` what a node looks like in words, `app` what the keys do, `draw` what is
//! seen. This file alone touches the terminal.

mod app;
mod draw;
mod states;
mod tape;
#[cfg(test)]
mod tests;

use crate::ending::Ending;
use anyhow::Result;
use app::App;
use nodefold_core::time::Time;
use nodefold_journal::Position;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use std::path::Path;
use tape::Tape;

/// Steps through a journal until somebody quits.
pub fn step(journal: &Path, at: Option<Position>, beginning: Time) -> Result<Ending> {
    let tape = Tape::read(journal, beginning)?;
    let mut app = App::new(tape);
    match at {
        Some(Position::Record(record)) => app.go_to_record(record),
        Some(Position::Time(time)) => app.go_to_time(time),
        None => {}
    }
    let mut terminal = ratatui::init();
    let done = go_on(&mut terminal, &mut app);
    ratatui::restore();
    done?;
    Ok(Ending::Good)
}

fn go_on(terminal: &mut ratatui::DefaultTerminal, app: &mut App) -> Result<()> {
    while !app.is_done() {
        app.load()?;
        terminal.draw(|frame| draw::draw(frame, app))?;
        if let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
        {
            app.key(key);
        }
    }
    Ok(())
}
