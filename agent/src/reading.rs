//! Reading a container's log as a whole: what was rotated, oldest first, then what is written to; and following it, across
//! rotations, without losing a line.

use crate::beneath;
use crate::fault::{Attempt, Fault};
use crate::layout::Layout;
use crate::runtime::rotated;
use flate2::read::MultiGzDecoder;
use rustix::fd::OwnedFd;
use rustix::fs::fstat;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// Log of one instance of a container.
pub struct ContainerLog {
    dir: OwnedFd,
    name: String,
    /// The file that is read, once it is being followed.
    open: Option<File>,
    /// What is there of a line that is not whole yet.
    rest: Vec<u8>,
}

/// Where a pod's logs are.
pub fn directory(layout: &Layout, namespace: &str, name: &str, uid: &str) -> PathBuf {
    layout.logs().join("pods").join(format!("{namespace}_{name}_{uid}"))
}

/// The instances of a container that have a log, oldest first, as file names.
pub fn instances(dir: &OwnedFd) -> Result<Vec<String>, Fault> {
    let names = beneath::names(dir).attempt(|| "list a container's logs")?;
    let mut found: Vec<(u32, u32, String)> = names
        .iter()
        .filter_map(|name| {
            let name = name.to_str().ok()?;
            let (incarnation, attempt) = name.strip_suffix(".log")?.split_once('.')?;
            Some((incarnation.parse().ok()?, attempt.parse().ok()?, name.to_owned()))
        })
        .collect();
    found.sort();
    Ok(found.into_iter().map(|(.., name)| name).collect())
}

impl ContainerLog {
    /// The log of this name (`0.1.log`) in a container's directory.
    pub fn at(dir: OwnedFd, name: String) -> ContainerLog {
        ContainerLog { dir, name, open: None, rest: Vec::new() }
    }

    /// Everything that was written since this was asked last, as whole lines with their ends; the first time, all there is.
    pub fn lines(&mut self) -> Result<Vec<u8>, Fault> {
        let mut bytes = std::mem::take(&mut self.rest);
        match self.open.take() {
            None => {
                // What is written to is opened first: if it is rotated now, what is read last is still what came last.
                let current = self.current()?;
                let mut older = rotated(&self.dir, &self.name)?;
                older.retain(|name| !name.ends_with(".tmp"));
                for name in older {
                    let file = self.file(&name)?;
                    // Rotated just now: it is read below.
                    let is_current =
                        file.is_some() && file.as_ref().and_then(number) == current.as_ref().and_then(number);
                    if !is_current {
                        read_all(file, name.ends_with(".gz"), &mut bytes)?;
                    }
                }
                self.open = current;
                self.read_open(&mut bytes)?;
            }
            Some(file) => {
                self.open = Some(file);
                self.read_open(&mut bytes)?;
                self.go_on(&mut bytes)?;
            }
        }
        Ok(self.whole_lines(bytes))
    }

    /// Goes on in the newer files, if the one that is read was rotated. Who wrote to it does so no more: the shim has the new
    /// one before the new one has a line.
    fn go_on(&mut self, bytes: &mut Vec<u8>) -> Result<(), Fault> {
        let mine = self.open.as_ref().and_then(number);
        let Some(current) = self.current()? else { return Ok(()) };
        if number(&current) == mine || current.metadata().attempt(|| "look at a log")?.len() == 0 {
            return Ok(());
        }
        // The rest of it, written before the new one was.
        self.read_open(bytes)?;
        let older = rotated(&self.dir, &self.name)?;
        let is_mine = |name: &String| self.file(name).ok().flatten().as_ref().and_then(number) == mine;
        let after = older.iter().position(is_mine).map_or(older.len(), |at| at + 1);
        for name in older.iter().skip(after).filter(|name| !name.ends_with(".tmp")) {
            let file = self.file(name)?;
            if file.as_ref().and_then(number) != number(&current) {
                read_all(file, name.ends_with(".gz"), bytes)?;
            }
        }
        self.open = Some(current);
        self.read_open(bytes)
    }

    fn current(&self) -> Result<Option<File>, Fault> {
        self.file(&self.name)
    }

    fn file(&self, name: &str) -> Result<Option<File>, Fault> {
        match beneath::open_file(&self.dir, name) {
            Ok(file) => Ok(Some(file.into())),
            // Compressed or removed meanwhile.
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno).attempt(|| format!("open {name}")),
        }
    }

    fn read_open(&mut self, bytes: &mut Vec<u8>) -> Result<(), Fault> {
        match &mut self.open {
            Some(file) => file.read_to_end(bytes).map(drop).attempt(|| format!("read {}", self.name)),
            None => Ok(()),
        }
    }

    fn whole_lines(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.rest = bytes.split_off(end);
        bytes
    }
}

/// What a container said with a line of its log, byte by byte: a part of a line goes on in the next.
pub fn said(line: &[u8]) -> &[u8] {
    let mut words = line.splitn(4, |byte| *byte == b' ').skip(2);
    let (tag, text) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if tag.starts_with(b"P") { text.strip_suffix(b"\n").unwrap_or(text) } else { text }
}

/// What the kernel knows a file by.
fn number(file: &File) -> Option<u64> {
    fstat(file).ok().map(|stat| stat.st_ino)
}

fn read_all(file: Option<File>, packed: bool, into: &mut Vec<u8>) -> Result<(), Fault> {
    let Some(mut file) = file else { return Ok(()) };
    let read = if packed { MultiGzDecoder::new(file).read_to_end(into) } else { file.read_to_end(into) };
    read.map(drop).attempt(|| "read a rotated log")
}
