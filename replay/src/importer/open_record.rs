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
    stamp: Option<Stamp>,
    received: Option<Stamp>,
    pid: u64,
    outer_pid: u64,
    body: Vec<u8>,
    /// Where each further line begins in the body, and how wide the physical line before it was.
    joints: Vec<(usize, usize)>,
    host: Option<Name>,
    line: u64,
    lines: u32,
    says_something: bool,
}

impl OpenRecord {
    /// Opens a record with its first line. The body goes into room that an earlier record has left: most records say
    /// nothing, and none of these is worth an allocation.
    pub fn new(
        mut room: Vec<u8>,
        header: &Header<'_>,
        body: &[u8],
        outer: &Unwrapped<'_>,
        host: Option<Name>,
        line: u64,
        says_something: bool,
    ) -> OpenRecord {
        room.clear();
        room.extend_from_slice(body);
        OpenRecord {
            stamp: header.stamp,
            received: outer.received,
            pid: header.pid,
            outer_pid: outer.pid,
            body: room,
            joints: Vec::new(),
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

    /// Adds a line; `before` is how wide the physical line before it was.
    pub fn go_on(&mut self, text: &[u8], before: usize) {
        if self.lines >= MOST_LINES || self.body.len() + text.len() > MOST_BYTES {
            return;
        }
        self.lines += 1;
        self.joints.push((self.body.len(), before));
        self.body.extend_from_slice(text);
    }

    /// The body with its lines joined: a hard wrap breaks anywhere, so nothing is put between; a real newline stays one.
    fn joined(&self, widths: Widths) -> Vec<u8> {
        let mut out: Vec<u8> = Vec::with_capacity(self.body.len() + self.joints.len());
        let mut quotes = 0usize;
        let mut from = 0;
        for (i, (at, before)) in self.joints.iter().enumerate() {
            let piece = &self.body[from..*at];
            quotes += piece.iter().filter(|b| **b == b'"').count();
            out.extend_from_slice(piece);
            from = *at;
            let to = self.joints.get(i + 1).map_or(self.body.len(), |(next, _)| *next);
            let next = &self.body[*at..to];
            let block = out.ends_with(b"=<") || next.starts_with(b"\t") || next.starts_with(b" >");
            let inside_quotes = quotes % 2 == 1;
            if block || !(widths.wraps(*before, piece, next) || inside_quotes) {
                out.push(b'\n');
            }
        }
        out.extend_from_slice(&self.body[from..]);
        out
    }

    /// Reads the record, and leaves its room for the next one.
    pub fn read(self, widths: Widths, sink: &mut Sink) -> Vec<u8> {
        if self.lines == 1 && !self.says_something {
            sink.skip(Skipped::NothingSaid);
            return self.body;
        }
        let joined = if self.joints.is_empty() { None } else { Some(self.joined(widths)) };
        let whole = joined.as_deref().unwrap_or(&self.body);
        // A wrap inside the first words leaves nothing known; without the line ends they may be.
        let whole =
            if self.joints.is_empty() || klog::recognise(whole).is_some() { whole } else { &self.body };
        let mended = mended(whole);
        let body = mended.as_deref().unwrap_or(whole);
        match klog::recognise(body) {
            Some(reader) => {
                let record = Record {
                    stamp: self.stamp,
                    received: self.received,
                    pid: self.pid,
                    body,
                    host: self.host.as_ref(),
                    line: self.line,
                    fields: Default::default(),
                };
                reader.read(&record, sink);
            }
            None => sink.skip(Skipped::NothingSaid),
        }
        self.body
    }
}

/// Nobody wraps at less.
pub const NARROWEST: usize = 60;

/// How wide the lines of the input are: hard-wrapped ones are all equally wide.
#[derive(Copy, Clone, Debug)]
pub struct Widths {
    /// The widest line so far.
    pub widest: usize,
    /// How many are exactly so wide.
    pub at_widest: u32,
}

impl Widths {
    /// Whether a line so wide, ending so, was broken by a wrap.
    fn wraps(self, width: usize, end: &[u8], next: &[u8]) -> bool {
        let full = width == self.widest && width >= NARROWEST;
        // The first wrap of an input has nothing to compare with: then a break inside a word tells.
        let inside_word = end.last().is_some_and(|b| !b.is_ascii_whitespace())
            && next.first().is_some_and(|b| !b.is_ascii_whitespace());
        full && (self.at_widest >= 2 || inside_word)
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
