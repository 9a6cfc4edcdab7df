//! Reads files and streams into a trace. The one place with I/O.

use crate::evidence::Skipped;
use crate::importer::{Ahead, Importer};
use crate::input::{self, Lines, Piece};
use crate::merge::{Imported, Options, merge};
use crate::own;
use crate::trace::Trace;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::num::NonZero;
use std::path::{Path, PathBuf};
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
    /// Bytes of it read, decompressed.
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
        inputs.push(one(path, &shown, progress).map_err(error)?);
    }
    let mut trace = merge(inputs, options);
    trace.broken = broken;
    Ok(trace)
}

fn one(path: &Path, shown: &str, progress: &mut dyn FnMut(Progress<'_>)) -> io::Result<Imported> {
    let reader = input::open(path)?;
    read_stream(reader, shown, progress)
}

/// Reads one stream. Damage is counted, never an error; only what can't be read at all is.
pub fn read_stream(
    reader: Box<dyn Read>,
    name: &str,
    progress: &mut dyn FnMut(Progress<'_>),
) -> io::Result<Imported> {
    let mut importer = Importer::new();
    let mut lines = match input::decompress(reader) {
        Ok(reader) => Lines::new(reader),
        // An archive whose very head is broken is damage, a file that can't be read is an error.
        Err(error) if matches!(error.kind(), io::ErrorKind::Other | io::ErrorKind::InvalidData) => {
            importer.sink.skip(Skipped::BrokenStream);
            importer.sink.remark(&format!("a compressed stream can't be read: {error}"));
            return Ok(Imported { name: name.to_owned(), lines: 0, bytes: 0, sink: importer.sink });
        }
        Err(error) => return Err(error),
    };
    match pieces(&mut lines, &mut importer, &mut |bytes| progress(Progress { file: name, bytes })) {
        Ok(()) => {}
        Err(error) if lines.bytes() > 0 || error.kind() == io::ErrorKind::InvalidData => {
            importer.sink.skip(Skipped::BrokenStream);
            importer.sink.remark(&format!("a stream ends early: {error}"));
        }
        Err(error) => return Err(error),
    }
    importer.finish();
    Ok(Imported { name: name.to_owned(), lines: lines.count(), bytes: lines.bytes(), sink: importer.sink })
}

/// Reads all pieces of a stream: several ahead, by as many processors as there are, and each taken in its turn. What is kept
/// of the text at once is two batches.
fn pieces(lines: &mut Lines, importer: &mut Importer, progress: &mut dyn FnMut(u64)) -> io::Result<()> {
    const EACH: usize = 4;
    let helpers = std::thread::available_parallelism().map_or(1, NonZero::get) - 1;
    let mut batch = Vec::new();
    let mut failed = None;
    let mut read: Vec<(Piece, Option<Ahead>)> = Vec::new();
    if helpers == 0 {
        while let Some(piece) = lines.piece()? {
            importer.piece(&piece, None);
            progress(lines.bytes());
        }
        return Ok(());
    }
    loop {
        let next = AtomicUsize::new(0);
        let of_batch: Vec<OnceLock<Option<Ahead>>> = batch.iter().map(|_| OnceLock::new()).collect();
        let ahead = || {
            while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < batch.len()) {
                of_batch[at].get_or_init(|| Importer::read_ahead(&batch[at]));
            }
        };
        let mut coming = Vec::new();
        std::thread::scope(|scope| {
            for _ in 0..helpers.min(batch.len()) {
                scope.spawn(ahead);
            }
            // Meanwhile: what the batch before has found, and the text of the next one.
            for (piece, ahead) in read.drain(..) {
                importer.piece(&piece, ahead);
            }
            progress(lines.bytes());
            while failed.is_none() && coming.len() < EACH * (helpers + 1) {
                match lines.piece() {
                    Ok(Some(piece)) => coming.push(piece),
                    Ok(None) => break,
                    Err(error) => failed = Some(error),
                }
            }
            ahead();
        });
        read =
            batch.into_iter().zip(of_batch.into_iter().map(|found| found.into_inner().flatten())).collect();
        batch = coming;
        if batch.is_empty() && read.is_empty() {
            return failed.map_or(Ok(()), Err);
        }
    }
}

/// Reads texts that are in memory already, as if they were files of those names.
pub fn read_texts<'a>(texts: impl IntoIterator<Item = (&'a str, &'a [u8])>, options: &Options) -> Trace {
    let mut inputs = Vec::new();
    for (name, text) in texts {
        let reader = Box::new(io::Cursor::new(text.to_vec()));
        // Reading from memory can't fail; what can't be decompressed is counted by the importer.
        if let Ok(input) = read_stream(reader, name, &mut |_| {}) {
            inputs.push(input);
        }
    }
    merge(inputs, options)
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
