//! A klog record that may go on (node-logs §1.4): raw newlines, blocks, hard wraps, cuts.

use crate::evidence::{Name, Sink, Skipped};
use crate::klog::{self, Header, Record};
use crate::scan;
use crate::stamp::Stamp;
use crate::wrapper::Unwrapped;

/// No record goes on for longer: what follows is another thing without a header.
const MOST_LINES: u32 = 400;
const MOST_BYTES: usize = 1 << 20;

/// A record being put together.
pub struct OpenRecord {
    severity: Option<u8>,
    stamp: Option<Stamp>,
    received: Option<Stamp>,
    pid: u64,
    outer_pid: u64,
    file: Vec<u8>,
    body: Vec<u8>,
    host: Option<Name>,
    line: u64,
    lines: u32,
    says_something: bool,
}

impl OpenRecord {
    /// Opens a record with its first line.
    pub fn new(
        header: &Header<'_>,
        body: &[u8],
        outer: &Unwrapped<'_>,
        host: Option<Name>,
        line: u64,
        says_something: bool,
    ) -> OpenRecord {
        OpenRecord {
            severity: header.severity,
            stamp: header.stamp,
            received: outer.received,
            pid: header.pid,
            outer_pid: outer.pid,
            file: header.file.to_vec(),
            body: body.to_vec(),
            host,
            line,
            lines: 1,
            says_something,
        }
    }

    /// The kubelet's process.
    pub fn pid(&self) -> u64 {
        self.pid
    }
    /// The process in the collector's prefix.
    pub fn outer_pid(&self) -> u64 {
        self.outer_pid
    }
    /// Lines so far.
    pub fn line_count(&self) -> u32 {
        self.lines
    }

    /// Adds a line. A hard wrap breaks anywhere, so nothing is put between; a real newline stays one.
    pub fn go_on(&mut self, text: &[u8], wrapped: bool) {
        if self.lines >= MOST_LINES || self.body.len() + text.len() > MOST_BYTES {
            return;
        }
        self.lines += 1;
        let block = self.body.ends_with(b"=<") || text.starts_with(b"\t") || text.starts_with(b" >");
        let inside_quotes = !block && self.body.iter().filter(|b| **b == b'"').count() % 2 == 1;
        if !(wrapped || inside_quotes) || block {
            self.body.push(b'\n');
        }
        self.body.extend_from_slice(text);
    }

    /// Reads the record.
    pub fn read(self, sink: &mut Sink) {
        if self.lines == 1 && !self.says_something {
            return sink.skip(Skipped::NothingSaid);
        }
        let body = mended(&self.body);
        let body = body.as_deref().unwrap_or(&self.body);
        let Some(reader) = klog::recognise(body) else { return sink.skip(Skipped::NothingSaid) };
        let record = Record {
            severity: self.severity,
            stamp: self.stamp,
            received: self.received,
            pid: self.pid,
            file: &self.file,
            body,
            host: self.host.as_ref(),
            line: self.line,
        };
        reader.read(&record, sink);
    }
}

/// Editors that wrap put blanks inside a UID (node-logs §1.7): taken out where digits stand on both sides.
fn mended(body: &[u8]) -> Option<Vec<u8>> {
    const BLANKS: &[u8] = b"      ";
    if !scan::has(body, BLANKS) {
        return None;
    }
    let uid_byte = |b: &u8| b.is_ascii_hexdigit() || *b == b'-';
    let mut out = Vec::with_capacity(body.len());
    let mut at = 0;
    while at < body.len() {
        let blanks = body[at..].iter().take_while(|b| **b == b' ').count();
        let inside = blanks >= BLANKS.len()
            && out.last().is_some_and(uid_byte)
            && body.get(at + blanks).is_some_and(uid_byte);
        if inside {
            at += blanks;
        } else {
            let step = blanks.max(1);
            out.extend_from_slice(&body[at..at + step]);
            at += step;
        }
    }
    Some(out)
}
