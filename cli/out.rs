//! The one place that writes to the terminal. Colours come in as escape codes and are taken out again where nobody
//! sees them: in a pipe, under `NO_COLOR`, on a dumb terminal.

use anstream::AutoStream;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

/// How wide a picture is where there is no terminal to ask.
const WIDTH_WITHOUT_TERMINAL: usize = 100;
/// Wider pictures are hard to read.
const WIDEST: usize = 160;

/// Standard output and standard error.
pub struct Out {
    stdout: AutoStream<io::Stdout>,
    stderr: AutoStream<io::Stderr>,
    /// Somebody watches: draw for people.
    pub is_terminal: bool,
    /// Columns of a picture.
    pub width: usize,
    failed: Option<io::Error>,
}

impl Out {
    /// The process' own.
    pub fn new() -> Out {
        let is_terminal = io::stdout().is_terminal();
        let asked = terminal_size::terminal_size().filter(|_| is_terminal);
        let width = asked.map_or(WIDTH_WITHOUT_TERMINAL, |(width, _)| usize::from(width.0).min(WIDEST));
        Out { stdout: anstream::stdout(), stderr: anstream::stderr(), is_terminal, width, failed: None }
    }

    /// Writes a line. After a failed write nothing more is written; [`Out::finish`] tells.
    pub fn line(&mut self, text: impl Display) {
        if self.failed.is_none() {
            self.failed = writeln!(self.stdout, "{text}").err();
        }
    }

    /// Writes bytes as they are: somebody else's, whose escape codes are theirs.
    pub fn bytes(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.stdout.as_inner().write_all(bytes).err();
        }
    }

    /// Writes several lines.
    pub fn lines<T: Display>(&mut self, texts: impl IntoIterator<Item = T>) {
        for text in texts {
            self.line(text);
        }
    }

    /// Writes a line to standard error. If even that fails, the exit status must tell.
    pub fn complain(&mut self, text: impl Display) {
        let _ = writeln!(self.stderr, "{text}");
    }

    /// Whether everything could be written. A reader that has seen enough (`| head`) is no error.
    pub fn finish(mut self) -> io::Result<()> {
        match self.failed.take().or_else(|| self.stdout.flush().err()) {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            Some(_) | None => Ok(()),
        }
    }
}
