//! Reads files and streams into a trace. The one place with I/O.

use crate::evidence::Skipped;
use crate::importer::{Ahead, Importer};
use crate::input::{self, Lines, PIECE, Piece};
use crate::judge::{Report, judge};
use crate::merge::{Foreknown, Imported, Options, merge};
use crate::own;
use crate::rolling::{Again, Rolling};
use crate::trace::Trace;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Why an input can't be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It can't be opened or read.
    #[error("{path}: {source}; give files that exist and are readable, or - for standard input")]
    Io {
        /// Which.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A journal can't be folded.
    #[error("{path}: {source}")]
    Journal {
        /// Which.
        path: String,
        /// Why.
        source: Box<nodefold_journal::Error>,
    },
}

/// How far reading has come.
#[derive(Copy, Clone, Debug)]
pub struct Progress<'a> {
    /// The file being read.
    pub file: &'a str,
    /// Bytes of all files read so far, decompressed.
    pub bytes: u64,
}

/// Reads files (`-`: standard input), each told by its content, and merges them.
pub fn read_files(
    paths: &[PathBuf],
    options: &Options,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Trace, ReadError> {
    let mut inputs = Vec::new();
    let mut broken = Vec::new();
    let mut before = 0;
    for path in paths {
        let shown = path.display().to_string();
        if own::is_journal(path) {
            let source = own::read(path, &shown);
            let journal =
                source.map_err(|e| ReadError::Journal { path: shown.clone(), source: Box::new(e) })?;
            broken.extend(journal.violations.into_iter().map(|(v, records)| (inputs.len(), v, records)));
            inputs.push(journal.imported);
            continue;
        }
        let error = |source| ReadError::Io { path: shown.clone(), source };
        let mut reading = input::open(path).and_then(|r| Reading::new(r, &shown, PIECE)).map_err(error)?;
        while reading.turn().map_err(error)? {
            progress(Progress { file: &shown, bytes: before + reading.bytes() });
        }
        before += reading.bytes();
        inputs.push(reading.imported());
    }
    let mut trace = merge(inputs, options);
    trace.broken = broken;
    Ok(trace)
}

/// Reads files and judges them on the way, so that what is over needs no memory: of it the trace has only what proves a finding.
/// It is looked for whenever `window` entries more are held. Files that are not in order of time are held whole, and so is a journal
/// of nodefold's own.
pub fn judge_files(
    paths: &[PathBuf],
    options: &Options,
    window: usize,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(Trace, Report), ReadError> {
    if !paths.iter().any(|path| own::is_journal(path)) {
        let mut open = |at: usize| {
            let shown = paths[at].display().to_string();
            let reading = input::open(&paths[at]).and_then(|r| Reading::new(r, &shown, PIECE));
            reading.map_err(|source| ReadError::Io { path: shown, source })
        };
        let twice = !paths.iter().any(|path| path.as_os_str() == "-");
        if let Some(judged) = roll(paths.len(), &mut open, twice, window, options, progress)? {
            return Ok(judged);
        }
    }
    let mut trace = read_files(paths, options, progress)?;
    if trace.broken.is_empty() && trace.entries.len() > window {
        trace.notes.push(HELD.to_owned());
    }
    let report = judge(&trace);
    Ok((trace, report))
}

/// What is told where memory is not bounded.
const HELD: &str = "the inputs are not in order of time, so that all of them had to be held in memory";

/// So often inputs are read for what is told late in them.
const READINGS: usize = 3;

/// Reads all files at the pace of the one that is behind, judging what is over. `None`: all has to be held.
fn roll(
    files: usize,
    open: &mut dyn FnMut(usize) -> Result<Reading, ReadError>,
    twice: bool,
    window: usize,
    options: &Options,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Option<(Trace, Report)>, ReadError> {
    let mut foreknown = Foreknown::default();
    for reading in 1..=READINGS {
        let mut rolling = Rolling::new(files, options, window, std::mem::take(&mut foreknown));
        let mut readings = Vec::new();
        for at in 0..files {
            readings.push(open(at)?);
        }
        let mut done = vec![false; files];
        // Who has told no time yet may have a listing, which what is over must be held against.
        while let Some(at) = (0..files).filter(|at| !done[*at]).min_by_key(|at| rolling.reach(*at)) {
            let of = &mut readings[at];
            let more = of.turn();
            done[at] = !more.map_err(|source| ReadError::Io { path: of.name.clone(), source })?;
            let bytes = readings.iter().map(Reading::bytes).sum();
            progress(Progress { file: &readings[at].name, bytes });
            if readings[at].importer.can_be_emptied() || done[at] {
                let mut sinks: Vec<_> = readings.iter_mut().map(|r| &mut r.importer.sink).collect();
                rolling.take(at, &mut sinks, &done);
            }
        }
        let again = rolling.again(readings.iter().map(|r| &r.importer.sink));
        let last = !twice || reading == READINGS;
        match again {
            Some(Again::Holding) if twice => return Ok(None),
            Some(Again::Knowing(known)) if !last => {
                foreknown = known;
                continue;
            }
            Some(_) | None => {}
        }
        let (mut trace, report) = rolling.finish(readings.into_iter().map(Reading::imported).collect());
        if again.is_some() {
            trace.notes.push(
                "what was told late in the input (its year, its zone, its order) is not known to what was judged early"
                    .to_owned(),
            );
        }
        return Ok(Some((trace, report)));
    }
    Ok(None)
}

/// One input on its way through its importer: some pieces are read ahead, by as many processors as there are, and each is taken
/// in its turn. What is kept of the text at once is two batches.
struct Reading {
    name: String,
    importer: Importer,
    lines: Option<Lines>,
    helpers: usize,
    batch: Vec<Piece>,
    read: Vec<(Piece, Option<Ahead>)>,
    failed: Option<io::Error>,
}

impl Reading {
    /// So many pieces for each processor at once.
    const EACH: usize = 4;

    /// Damage is counted, never an error; only what can't be read at all is.
    fn new(reader: Box<dyn Read>, name: &str, each: usize) -> io::Result<Reading> {
        let mut importer = Importer::new();
        let lines = match input::decompress(reader) {
            Ok(reader) => Some(Lines::in_pieces_of(each, reader)),
            // An archive whose very head is broken is damage, a file that can't be read is an error.
            Err(error) if matches!(error.kind(), io::ErrorKind::Other | io::ErrorKind::InvalidData) => {
                importer.sink.skip(Skipped::BrokenStream);
                importer.sink.remark(&format!("a compressed stream can't be read: {error}"));
                None
            }
            Err(error) => return Err(error),
        };
        let helpers = std::thread::available_parallelism().map_or(1, NonZero::get) - 1;
        let (batch, read) = (Vec::new(), Vec::new());
        Ok(Reading { name: name.to_owned(), importer, lines, helpers, batch, read, failed: None })
    }

    fn bytes(&self) -> u64 {
        self.lines.as_ref().map_or(0, Lines::bytes)
    }

    /// Takes what was read ahead, and reads the next pieces. Whether there is more.
    fn turn(&mut self) -> io::Result<bool> {
        let more = match &mut self.lines {
            Some(lines) if self.helpers == 0 => match lines.piece() {
                Ok(Some(piece)) => {
                    self.importer.piece(&piece, None);
                    true
                }
                Ok(None) => false,
                Err(error) => {
                    self.failed = Some(error);
                    false
                }
            },
            Some(_) => {
                self.batch();
                !self.batch.is_empty() || !self.read.is_empty()
            }
            None => false,
        };
        if more {
            return Ok(true);
        }
        if let Some(error) = self.failed.take() {
            if self.bytes() == 0 && error.kind() != io::ErrorKind::InvalidData {
                return Err(error);
            }
            self.importer.sink.skip(Skipped::BrokenStream);
            self.importer.sink.remark(&format!("a stream ends early: {error}"));
        }
        self.importer.finish();
        Ok(false)
    }

    fn batch(&mut self) {
        let Reading { importer, lines: Some(lines), helpers, batch, read, failed, .. } = self else { return };
        let next = AtomicUsize::new(0);
        let of_batch: Vec<OnceLock<Option<Ahead>>> = batch.iter().map(|_| OnceLock::new()).collect();
        let ahead = || {
            while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < batch.len()) {
                of_batch[at].get_or_init(|| Importer::read_ahead(&batch[at]));
            }
        };
        let mut coming = Vec::new();
        std::thread::scope(|scope| {
            for _ in 0..(*helpers).min(batch.len()) {
                scope.spawn(ahead);
            }
            // Meanwhile: what the batch before has found, and the text of the next one.
            for (piece, ahead) in read.drain(..) {
                importer.piece(&piece, ahead);
            }
            while failed.is_none() && coming.len() < Reading::EACH * (*helpers + 1) {
                match lines.piece() {
                    Ok(Some(piece)) => coming.push(piece),
                    Ok(None) => break,
                    Err(error) => *failed = Some(error),
                }
            }
            ahead();
        });
        let found = of_batch.into_iter().map(|found| found.into_inner().flatten());
        *read = std::mem::replace(batch, coming).into_iter().zip(found).collect();
    }

    fn imported(self) -> Imported {
        let (lines, bytes) = self.lines.as_ref().map_or((0, 0), |lines| (lines.count(), lines.bytes()));
        Imported { name: self.name, lines, bytes, sink: self.importer.sink }
    }
}

/// A text that is in memory already, as if it were a file of that name.
fn of_text(name: &str, text: &[u8], each: usize) -> Reading {
    let reader = Box::new(io::Cursor::new(text.to_vec()));
    // What can't be decompressed is counted by the importer; reading from memory can't fail.
    Reading::new(reader, name, each).unwrap_or_else(|_| Reading {
        name: name.to_owned(),
        importer: Importer::new(),
        lines: None,
        helpers: 0,
        batch: Vec::new(),
        read: Vec::new(),
        failed: None,
    })
}

/// Reads texts that are in memory already, as if they were files of those names.
pub fn read_texts<'a>(texts: impl IntoIterator<Item = (&'a str, &'a [u8])>, options: &Options) -> Trace {
    let mut inputs = Vec::new();
    for (name, text) in texts {
        let mut reading = of_text(name, text, PIECE);
        while reading.turn().unwrap_or(false) {}
        inputs.push(reading.imported());
    }
    merge(inputs, options)
}

/// Judges texts on the way, as [`judge_files`] does, with a look for what is over whenever so many drafts more are held. `None`: they
/// are not in order of time. Pieces are small, so that short texts are read as long files are.
pub fn judge_texts(texts: &[(&str, &[u8])], options: &Options, window: usize) -> Option<(Trace, Report)> {
    let mut open = |at: usize| Ok(of_text(texts[at].0, texts[at].1, PIECE / 64));
    roll(texts.len(), &mut open, true, window, options, &mut |_| {}).ok().flatten()
}

/// Reads some lines once more, as they were written: `(file, line)`, files by their place in `paths`, lines from 1. Each is cut
/// at `most` bytes. What can't be read twice (standard input, a journal) has none.
pub fn lines_of(
    paths: &[PathBuf],
    wanted: &BTreeSet<(u32, u64)>,
    most: usize,
) -> Result<BTreeMap<(u32, u64), String>, ReadError> {
    let mut found = BTreeMap::new();
    for (file, path) in (0u32..).zip(paths) {
        let mut of_file = wanted.range((file, 0)..=(file, u64::MAX)).map(|(_, line)| *line).peekable();
        if of_file.peek().is_none() || path.as_os_str() == "-" || own::is_journal(path) {
            continue;
        }
        let error = |source| ReadError::Io { path: path.display().to_string(), source };
        // What is damaged was counted when it was read first.
        let Ok(reader) = input::decompress(input::open(path).map_err(error)?) else { continue };
        let mut lines = Lines::new(reader);
        let mut each = |line: input::Line<'_>| {
            while of_file.next_if(|wanted| *wanted < line.number).is_some() {}
            if of_file.next_if_eq(&line.number).is_some() {
                let text = String::from_utf8_lossy(&line.text[..line.text.len().min(most)]);
                let cut = if line.text.len() > most { "…" } else { "" };
                found.insert((file, line.number), format!("{text}{cut}"));
            }
        };
        while let Ok(Some(piece)) = lines.piece() {
            piece.lines(&mut each);
        }
    }
    Ok(found)
}
