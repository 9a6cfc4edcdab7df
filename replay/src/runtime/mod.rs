//! What container runtimes write: containerd and CRI-O logs, `ctr events`, `crictl` listings (node-logs §4).

mod containerd;
mod crictl;
mod crio;
mod events;
mod logfmt;

pub use crictl::{Table, from_json as crictl_json, headless_row};
pub use events::{from_json as event_json, read as event_line};
pub use logfmt::Line as LogLine;

use crate::evidence::{Draft, Name, Sink, Skipped, Witness};
use crate::scan;
use crate::stamp::Stamp;
use crate::verb::Verb;

/// Where a runtime's line stands.
pub struct At<'a> {
    /// The line, from 1.
    pub line: u64,
    /// The collector's time.
    pub received: Option<Stamp>,
    /// The host.
    pub host: Option<&'a Name>,
    /// The process.
    pub pid: u64,
    /// The process' name, if said.
    pub ident: &'a [u8],
}

/// Reads a logfmt line. False: it is not of a runtime.
pub fn log_line(text: &[u8], at: &At<'_>, sink: &mut Sink) -> bool {
    let Some(line) = logfmt::Line::read(text) else { return false };
    message(&line.message, &line, at, sink)
}

/// Reads what a runtime says, in logfmt or JSON.
pub fn message(text: &[u8], line: &logfmt::Line<'_>, at: &At<'_>, sink: &mut Sink) -> bool {
    // Plug-ins inside the kubelet write logfmt too: those lines are theirs, not a runtime's.
    if matches!(at.ident, b"kubelet" | b"hyperkube") {
        return false;
    }
    sink.recognised += 1;
    let mut draft = Draft::new(Verb::RuntimeRequest, Witness::Runtime, at.line);
    draft.when = line.time;
    draft.received = at.received;
    draft.host = at.host.cloned();
    draft.pid = at.pid;
    draft.cut = line.cut;
    if containerd::read(text, line, &mut draft) || crio::read(text, line, &mut draft) {
        sink.push(draft);
    } else {
        sink.skip(Skipped::NothingSaid);
    }
    true
}

/// An id in (maybe escaped) quotes behind some words.
fn quoted_id<'a>(text: &'a [u8], words: &str) -> Option<&'a [u8]> {
    let rest = scan::after(text, words.as_bytes())?;
    let rest = scan::trim_start(rest);
    let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
    let len = rest.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    scan::is_runtime_id(&rest[..len]).then_some(&rest[..len])
}
