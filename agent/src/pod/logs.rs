//! A container's output as lines in CRI's log format: `<time> <stream> <F or P> <text>`. The shim writes them, so that output
//! goes on while no agent runs.

use crate::clock;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io::Write;

/// A line longer than this is written in parts, marked P until the last.
const LONGEST_PART: usize = 16 * 1024;
/// So much is read at once, so that one loud container does not starve the others.
const READ_AT_ONCE: usize = 64 * 1024;

/// One stream of a container on its way to the log.
pub struct Stream {
    name: &'static str,
    /// The pipe's end; closed at its end.
    pub pipe: Option<OwnedFd>,
    line: Vec<u8>,
}

impl Stream {
    /// A stream that comes through this pipe, which does not block.
    pub fn new(name: &'static str, pipe: OwnedFd) -> Stream {
        Stream { name, pipe: Some(pipe), line: Vec::new() }
    }

    /// Takes what is there. A log that can't be written loses lines, never the container.
    pub fn pump(&mut self, log: &mut std::fs::File) {
        let Some(pipe) = &self.pipe else { return };
        let mut buffer = vec![0; READ_AT_ONCE];
        match rustix::io::read(pipe, &mut buffer) {
            Ok(0) => {
                self.pipe = None;
                if !self.line.is_empty() {
                    let line = std::mem::take(&mut self.line);
                    self.write(log, &line, 'F');
                }
            }
            Ok(got) => self.take(&buffer[..got], log),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.pipe = None,
        }
    }

    fn take(&mut self, mut bytes: &[u8], log: &mut std::fs::File) {
        while !bytes.is_empty() {
            let room = LONGEST_PART - self.line.len();
            match bytes.iter().take(room).position(|b| *b == b'\n') {
                Some(end) => {
                    self.line.extend_from_slice(&bytes[..end]);
                    bytes = &bytes[end + 1..];
                    let line = std::mem::take(&mut self.line);
                    self.write(log, &line, 'F');
                }
                None => {
                    let part = bytes.len().min(room);
                    self.line.extend_from_slice(&bytes[..part]);
                    bytes = &bytes[part..];
                    if self.line.len() == LONGEST_PART {
                        let line = std::mem::take(&mut self.line);
                        self.write(log, &line, 'P');
                    }
                }
            }
        }
    }

    fn write(&self, log: &mut std::fs::File, line: &[u8], tag: char) {
        let mut text = format!("{} {} {tag} ", stamp(), self.name).into_bytes();
        text.extend_from_slice(line);
        text.push(b'\n');
        drop(log.write_all(&text));
    }
}

/// Now, in RFC 3339 with nanoseconds.
fn stamp() -> String {
    let now = clock::now();
    let seconds = nodefold_k8s::time::format(now);
    format!("{}.{:09}Z", seconds.trim_end_matches('Z'), now.0 % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn lines_are_whole_parts_are_marked_and_the_rest_comes_at_the_end() {
        let (read, write) = std::io::pipe().expect("a pipe");
        let mut log = tempfile::tempfile().expect("a file");
        let mut stream = Stream::new("stdout", read.into());
        let mut write = write;
        write.write_all(b"one\ntw").expect("a write");
        stream.pump(&mut log);
        write.write_all(b"o\n").expect("a write");
        write.write_all(&vec![b'x'; LONGEST_PART + 3]).expect("a write");
        drop(write);
        while stream.pipe.is_some() {
            stream.pump(&mut log);
        }
        let mut text = String::new();
        std::io::Seek::rewind(&mut log).expect("a seek");
        log.read_to_string(&mut text).expect("text");
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.splitn(4, ' ').collect()).collect();
        assert_eq!(lines.len(), 4);
        assert_eq!((lines[0][1], lines[0][2], lines[0][3]), ("stdout", "F", "one"));
        assert_eq!(lines[1][3], "two");
        assert_eq!((lines[2][2], lines[2][3].len()), ("P", LONGEST_PART));
        assert_eq!((lines[3][2], lines[3][3]), ("F", "xxx"));
        assert!(lines[0][0].ends_with('Z') && lines[0][0].contains('.'), "{}", lines[0][0]);
    }
}
