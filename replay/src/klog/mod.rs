//! The kubelet's own log: klog records, text of every era and JSON (node-logs §1, §2).
//!
//! `header` finds where a record begins, `fields` reads key=value pairs, `sentence` the volume manager's sentences;
//! `structured` and `unstructured` are the catalogue, `json` the JSON format.

mod fields;
mod header;
mod json;
mod kube_event;
mod names;
mod readers;
mod sentence;
mod structured;
mod unstructured;

pub use fields::{Fields, Value};
pub use header::{Header, find, merged, place_only, read as header};
pub use json::from_json;
pub use kube_event::{event, field_path_container};
pub use names::{has_own_volume, pod_ref, pod_text, runtime_id, unique_parts, volume};
pub use sentence::failed_at;
pub use unstructured::volume_path;

use crate::evidence::{Draft, Name, Sink, Witness};
use crate::scan;
use crate::stamp::Stamp;
use crate::verb::Verb;

/// One record of a kubelet, whole.
#[derive(Clone, Debug)]
pub struct Record<'a> {
    /// When.
    pub stamp: Option<Stamp>,
    /// When the collector got it.
    pub received: Option<Stamp>,
    /// Which process.
    pub pid: u64,
    /// What it says.
    pub body: &'a [u8],
    /// On which host.
    pub host: Option<&'a Name>,
    /// The line, from 1.
    pub line: u64,
    /// Its pairs, if it is structured: read once, for whoever asks.
    pub fields: std::cell::OnceCell<Option<Fields<'a>>>,
}

impl<'a> Record<'a> {
    /// The pairs of a structured record.
    pub fn fields(&self) -> Option<&Fields<'a>> {
        self.fields.get_or_init(|| Fields::read(self.body)).as_ref()
    }

    /// Whether it may be continued on further lines: only then is it kept open. Errors are free text, blocks end a line with
    /// `=<`, and a cut or wrapped record leaves something open.
    pub fn may_continue(&self) -> bool {
        self.body.ends_with(b"=<")
            || !self.body.starts_with(b"\"")
            || self.fields().is_some_and(Fields::is_cut)
    }

    /// A draft of this record.
    pub fn draft(&self, verb: Verb) -> Draft {
        let mut draft = Draft::new(verb, Witness::Kubelet, self.line);
        draft.when = self.stamp;
        draft.received = self.received;
        draft.pid = self.pid;
        draft.host = self.host.cloned();
        draft
    }
}

/// How a record is read once it is known to say something.
#[derive(Copy, Clone)]
pub enum Reader {
    /// The fields that its kind has in common tell all.
    Plain(Verb),
    /// It has a reader of its own.
    Own(fn(&Record<'_>, &mut Sink)),
}

impl Reader {
    /// Reads the record.
    pub fn read(self, record: &Record<'_>, sink: &mut Sink) {
        match self {
            Reader::Plain(verb) if record.body.starts_with(b"\"") => readers::plain(record, verb, sink),
            Reader::Plain(verb) => unstructured::plain(record, verb, sink),
            Reader::Own(read) => read(record, sink),
        }
    }
}

/// The reader for a record's body, if it says anything of a lifecycle. The hot path: most records say nothing.
pub fn recognise(body: &[u8]) -> Option<Reader> {
    match body.first()? {
        b'"' => structured::recognise(body),
        _ => unstructured::recognise(body),
    }
}

/// Whether a body is structured, and its message ends where a message does.
pub fn has_whole_message(body: &[u8]) -> bool {
    let len = body.strip_prefix(b"\"").and_then(scan::quoted_len);
    len.is_some_and(|len| matches!(body.get(len + 2), Some(b' ') | None))
}

/// A body whose message has lost a quote to somebody's hand (node-logs §1.7): whole again, if a known message comes out.
pub fn requoted(body: &[u8]) -> Option<Vec<u8>> {
    let quote = memchr::memchr(b'"', body)?;
    let whole = if quote == 0 {
        // The closing one: the message ends where its first pair begins.
        let pair = memchr::memchr_iter(b' ', body).find(|at| {
            let key = body[at + 1..].iter().take_while(|b| b.is_ascii_alphanumeric()).count();
            key > 0 && body.get(at + 1 + key) == Some(&b'=')
        })?;
        [&body[..pair], b"\"", &body[pair..]].concat()
    } else if body.get(quote + 1) == Some(&b' ') {
        [b"\"", body].concat()
    } else {
        return None;
    };
    structured::recognise(&whole).is_some().then_some(whole)
}

/// Errors are kept for people: no more of them than people read.
pub fn shortened(text: &[u8]) -> &[u8] {
    const ENOUGH: usize = 1500;
    let mut end = text.len().min(ENOUGH);
    while end > 0 && end < text.len() && text[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    scan::trim(&text[..end])
}
