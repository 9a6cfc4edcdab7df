//! The importer of one input: takes its lines, tells what kind each is, and hands it to who reads that kind.
//!
//! Recognises by content, line by line, since one file may hold several kinds (a syslog of a whole node, a person's
//! notes). Keeps at most one open record and one open JSON document.

mod document;
mod export;
mod open_record;
mod piece;

use crate::events_table;
use crate::evidence::{Draft, Name, Payload, Sink, Skipped, Witness};
use crate::input::Line;
use crate::klog::{self, Header, Record};
use crate::mended;
use crate::mounts;
use crate::runtime;
use crate::scan::{self, has};
use crate::stamp::Stamp;
use crate::verb::Verb;
use crate::wrapper::{self, Unwrapped};
use document::Document;
use export::Export;
use open_record::OpenRecord;
pub use piece::Ahead;

/// Processes that hold a kubelet (node-logs §1.6); others write their own logs.
const KUBELETS: [&str; 11] = [
    "kubelet",
    "hyperkube",
    "kubenswrapper",
    "atomic-openshift-node",
    "k3s",
    "rke2",
    "localkube",
    "kubelite",
    "minikube",
    "origin-node",
    "microk8s",
];

/// The importer of one input.
pub struct Importer {
    /// What it found.
    pub sink: Sink,
    open: Option<OpenRecord>,
    /// The room of the last open record.
    room: Vec<u8>,
    /// Finds the place in a second header on a line; made once, since it is asked of every record.
    place: memchr::memmem::Finder<'static>,
    document: Document,
    export: Option<Export>,
    table: Option<runtime::Table>,
    described: events_table::Described,
    mounts: mounts::Snapshots,
    partial: Vec<u8>,
    /// In a stack trace after a panic: all is its, up to the next record.
    in_panic: bool,
    kubelet_unit: bool,
    last: Option<Stamp>,
    last_pid: u64,
    last_host: Option<Name>,
    /// What stood before the last record that was found behind something unknown.
    shape: Vec<u8>,
    /// How wide the lines of a hard-wrapped input are, and how many are exactly so wide.
    widest: usize,
    at_widest: u32,
    previous_width: usize,
    /// No line before this one was wider: a wrap may have ended it.
    full: bool,
    hosts: Vec<Name>,
    in_document: bool,
    /// There is no sign of a terminal near the line.
    plain: bool,
}

impl Default for Importer {
    fn default() -> Importer {
        Importer::new()
    }
}

impl Importer {
    /// So many processes are remembered.
    const MOST_PROCESSES: usize = 4096;

    /// An importer that has seen nothing.
    pub fn new() -> Importer {
        Importer {
            sink: Sink::default(),
            open: None,
            room: Vec::new(),
            place: memchr::memmem::Finder::new(b".go:"),
            document: Document::default(),
            export: None,
            table: None,
            described: events_table::Described::default(),
            mounts: mounts::Snapshots::default(),
            partial: Vec::new(),
            in_panic: false,
            kubelet_unit: false,
            last: None,
            last_pid: 0,
            last_host: None,
            shape: Vec::new(),
            widest: 0,
            at_widest: 0,
            previous_width: 0,
            full: false,
            hosts: Vec::new(),
            in_document: false,
            plain: false,
        }
    }

    /// Takes the next line.
    pub fn line(&mut self, line: &Line<'_>) {
        if line.too_long {
            self.sink.skip(Skipped::TooLong);
        }
        self.plain = line.plain;
        let width = line.text.len();
        self.full = width >= open_record::NARROWEST && width >= self.widest;
        self.take(line.text, line.number);
        self.previous_width = line.text.len();
        match line.text.len().cmp(&self.widest) {
            std::cmp::Ordering::Greater => (self.widest, self.at_widest) = (line.text.len(), 1),
            std::cmp::Ordering::Equal => self.at_widest += 1,
            std::cmp::Ordering::Less => {}
        }
    }

    /// Whether what comes next asks for nothing that was found before.
    pub fn can_be_emptied(&self) -> bool {
        !self.in_panic
    }

    /// No more lines.
    pub fn finish(&mut self) {
        if let Some((text, line)) = self.document.take_open() {
            self.broken_document(&text, line);
        }
        if let Some(entry) = self.export.take() {
            self.journal_entry(entry);
        }
        self.close();
        self.note_reach();
    }

    /// Remembers how far a process' records go.
    fn note_reach(&mut self) {
        if let Some(last) = self.last.filter(|_| self.sink.reach.len() < Importer::MOST_PROCESSES) {
            self.sink.reach.insert(self.last_pid, last);
        }
    }

    fn take(&mut self, text: &[u8], number: u64) {
        if mended::may_be_coloured(text, self.plain)
            && let Some(plain) = mended::uncoloured(text)
        {
            return self.take(&plain, number);
        }
        // A quote of code that begins or ends on a line of its own: what is in it goes on.
        if text == b"`" {
            return self.sink.skip(Skipped::Separator);
        }
        // A line of code in a text; three backticks are a fence.
        if let Some(code) = text.strip_prefix(b"`").filter(|rest| !rest.starts_with(b"``")) {
            let code = code.trim_ascii_end();
            return self.take(code.strip_suffix(b"`").unwrap_or(code), number);
        }
        let text = mended::without_begin(mended::without_end(text));
        // The hot path: a bare klog record.
        if !self.document.is_open()
            && let Some(header) = klog::header(text)
        {
            return self.record(&header, &text[header.len..], &Unwrapped::bare(text), number);
        }
        if self.document.is_open() {
            match self.document.feed(text) {
                document::Fed::More => {}
                document::Fed::Whole(whole, line) => self.document_text(&whole, line),
                document::Fed::NotJson(whole, line) => {
                    self.broken_document(&whole, line);
                    self.take(text, number);
                }
            }
            return;
        }
        if self.exported(text, number) {
            return;
        }
        if text.trim_ascii().is_empty() {
            self.table = None;
            return self.sink.skip(Skipped::Blank);
        }
        if text.first().is_some_and(u8::is_ascii_digit) && runtime::event_line(text, number, &mut self.sink) {
            return;
        }
        let cell = mended::cell(text);
        if cell.first() == Some(&b'"')
            && let Some(plain) = mended::unquoted(cell)
        {
            return self.stripped(&plain, number);
        }
        if let Some(plain) = mended::unescaped(text) {
            // What names an ampersand may name another: once is meant.
            return self.stripped(&plain, number);
        }
        if let Some(plain) = mended::without_markdown(text) {
            return self.stripped(&plain, number);
        }
        self.stripped(text, number);
    }

    fn stripped(&mut self, text: &[u8], number: u64) {
        let found = wrapper::strip(text);
        if found.partial || !self.partial.is_empty() {
            self.partial.extend_from_slice(found.rest);
            if found.partial && self.partial.len() < crate::input::LONGEST_LINE {
                return;
            }
            let whole = std::mem::take(&mut self.partial);
            let found = Unwrapped { rest: &whole, ..found };
            return self.unwrapped(&found, number);
        }
        self.unwrapped(&found, number);
    }

    /// A line without its collector's prefix.
    fn unwrapped(&mut self, found: &Unwrapped<'_>, number: u64) {
        if let Some(header) = klog::header(found.rest) {
            return self.record(&header, &found.rest[header.len..], found, number);
        }
        // One collector behind another: a node's syslog in a container's log.
        let inner = wrapper::innermost(found);
        let found = inner.as_ref().unwrap_or(found);
        if let (true, Some(header)) = (inner.is_some(), klog::header(found.rest)) {
            return self.record(&header, &found.rest[header.len..], found, number);
        }
        // A prefix of nobody knows whom, which the last record had too.
        let shape = wrapper::same_shape(&self.shape, found.rest).filter(|len| *len > 0);
        let behind = shape.map(|len| {
            let inner = wrapper::strip(&found.rest[len..]);
            Unwrapped {
                received: inner.received.or(found.received),
                host: inner.host.or(found.host),
                ..inner
            }
        });
        let found = behind.as_ref().filter(|b| klog::header(b.rest).is_none()).unwrap_or(found);
        let rest = found.rest;
        match rest.first() {
            Some(b'{' | b'[') if self.json(found, number) => return,
            Some(b't' | b'l') if self.runtime(found, number) => return,
            Some(_) | None => {}
        }
        if self.panic(found, number) || self.system(found, number) || self.separator(found, number) {
            return;
        }
        if let Some(table) = runtime::Table::head(rest, number) {
            self.table = Some(table);
            self.sink.recognised += 1;
            return;
        }
        if let Some(table) = &self.table {
            if table.row(rest, number, &mut self.sink) {
                return;
            }
            self.table = None;
        }
        if runtime::headless_row(rest, number, &mut self.sink) || self.event(found, number) {
            return;
        }
        if mounts::may_be(rest) && mounts::line(rest, number, &mut self.sink) {
            return;
        }
        // `node.name: {json}`, as talosctl prints it.
        if let Some(at) = memchr::memmem::find(&rest[..rest.len().min(128)], b": {\"") {
            let inner = Unwrapped { rest: &rest[at + 2..], host: Some(&rest[..at]), ..found.clone() };
            if self.json(&inner, number) {
                return;
            }
        }
        if let Some((at, header)) = klog::find(rest) {
            let received = Stamp::rfc3339(&rest[..at]).or_else(|| first_stamp(&rest[..at])).map(|(s, _)| s);
            if let (Some(year), Some(stamp)) = (slashed_year(&rest[..at]), header.stamp) {
                self.sink.years.push((year, stamp.month));
            }
            let body = shipped(&rest[at + header.len..]);
            let (unknown, outer) = wrapper::ending_at(rest, at).unwrap_or_else(|| {
                (at, Unwrapped { received: received.or(found.received), ..found.clone() })
            });
            self.shape.clear();
            if rest[..unknown].iter().any(|b| !b.is_ascii_whitespace()) {
                self.shape.extend_from_slice(&rest[..unknown]);
            }
            return self.record(&header, &body, &outer, number);
        }
        // A runtime's line behind a prefix of nobody knows whom.
        let window = &rest[..rest.len().min(256)];
        if let Some(at) = memchr::memmem::find(window, b"time=\"2").filter(|at| *at > 0) {
            return self.unwrapped(&Unwrapped { rest: &rest[at..], ..found.clone() }, number);
        }
        if let Some((of_day, mut header)) = klog::merged(rest) {
            // Harness merges drop the date: the one seen last, or any, serves for the order.
            header.stamp = Some(match self.last {
                Some(last) => Stamp { of_day, ..last },
                None => Stamp { year: None, month: 1, day: 1, of_day, offset: None },
            });
            return self.record(&header, &rest[header.len..], found, number);
        }
        // Headers switched off: the wrapper's time serves.
        if found.received.is_some() && is_kubelet(found.ident) && rest.starts_with(b"\"") {
            let header = Header { severity: None, stamp: found.received, pid: found.pid, file: b"", len: 0 };
            return self.record(&header, rest, found, number);
        }
        if let Some(header) = klog::place_only(rest) {
            return self.without_header(&header, &rest[header.len..], found, number);
        }
        if wrapper::bare(rest) && !found.prefixed && self.open.is_none() {
            let header = Header { severity: None, stamp: None, pid: 0, file: b"", len: 0 };
            return self.without_header(&header, rest, found, number);
        }
        self.continuation(found);
    }

    /// Kubernetes Events as people paste them. What goes on with an open record is none.
    fn event(&mut self, found: &Unwrapped<'_>, line: u64) -> bool {
        if found.prefixed {
            return false;
        }
        let row = self.described.begins(found.rest) || self.described.row(found.rest, line, &mut self.sink);
        let told = row || events_table::e2e_line(found.rest, line, &mut self.sink);
        if told {
            self.close();
        }
        told
    }

    /// A record whose header is lost or has only the place left: it is as late as its collector says, or as what it says of
    /// itself, or as the record before it.
    fn without_header(&mut self, header: &Header<'_>, body: &[u8], outer: &Unwrapped<'_>, line: u64) {
        let stamp = outer.received.or_else(|| klog::failed_at(body)).or(self.last);
        let header = Header { stamp, pid: if outer.pid == 0 { self.last_pid } else { outer.pid }, ..*header };
        self.record(&header, body, outer, line);
    }

    fn host(&mut self, host: Option<&[u8]>) -> Option<Name> {
        let host = host?;
        if let Some(known) = self.hosts.iter().find(|h| h.as_bytes() == host) {
            return Some(known.clone());
        }
        let new = scan::name(host);
        // A log of thousands of hosts is no node's: keep the search short.
        if self.hosts.len() < 64 {
            self.hosts.push(new.clone());
        }
        Some(new)
    }

    /// A klog record begins.
    fn record(&mut self, header: &Header<'_>, body: &[u8], outer: &Unwrapped<'_>, line: u64) {
        self.in_panic = false;
        let header = &Header { pid: if header.pid == 0 { outer.pid } else { header.pid }, ..*header };
        self.close_for(header.pid);
        self.sink.recognised += 1;
        if header.pid != self.last_pid {
            self.note_reach();
        }
        if header.stamp.is_some() {
            self.last = header.stamp;
        }
        self.last_pid = header.pid;
        if outer.host.is_some() {
            self.last_host = self.host(outer.host);
        }
        // Two records on one line: the second has a header of its own.
        if let Some(at) = self.place.find(body)
            && let Some((second, next)) = klog::find(&body[at.saturating_sub(120)..])
        {
            let second = at.saturating_sub(120) + second;
            if second > 0 {
                let (first, rest) = body.split_at(second);
                self.one_record(header, scan::trim(first), outer, line);
                return self.record(&next, &rest[next.len..], outer, line);
            }
        }
        self.one_record(header, body, outer, line);
    }

    fn one_record(&mut self, header: &Header<'_>, body: &[u8], outer: &Unwrapped<'_>, line: u64) {
        if let Some(plain) = mended::unescaped(body) {
            return self.plain_record(header, &plain, outer, line);
        }
        self.plain_record(header, body, outer, line);
    }

    fn plain_record(&mut self, header: &Header<'_>, body: &[u8], outer: &Unwrapped<'_>, line: u64) {
        let reader = klog::recognise(body);
        // A message that has both its quotes and that nobody knows: most records of some logs are such.
        let unknown = reader.is_none() && klog::has_whole_message(body);
        // What people's editors and hands did to quotes.
        if reader.is_none()
            && !unknown
            && let Some(mended) = mended::straightened(body).or_else(|| klog::requoted(body))
        {
            return self.plain_record(header, &mended, outer, line);
        }
        if header.severity == Some(b'F') {
            self.fatal(header, body, outer, line);
        }
        if unknown {
            return self.sink.skip(Skipped::NothingSaid);
        }
        let unclosed = body.starts_with(b"\"") && scan::quoted_len(&body[1..]).is_none();
        if reader.is_none() && !unclosed && body.starts_with(b"\"") {
            return self.sink.skip(Skipped::NothingSaid);
        }
        let host = self.last_host.clone().filter(|_| outer.host.is_some());
        if let Some(reader) = reader {
            let record = Record {
                stamp: header.stamp,
                received: outer.received,
                pid: header.pid,
                body,
                host: host.as_ref(),
                line,
                fields: Default::default(),
            };
            if !self.full && !record.may_continue() {
                return reader.read(&record, &mut self.sink);
            }
        }
        // Only one record is kept open: another process' ends here.
        self.close();
        let room = std::mem::take(&mut self.room);
        self.open = Some(OpenRecord::new(room, header, body, outer, host, line, reader.is_some()));
    }

    /// Closes the open record if the next one is of its process.
    fn close_for(&mut self, pid: u64) {
        if self.open.as_ref().is_some_and(|o| o.pid() == pid || o.line_count() == 1) {
            self.close();
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            let widths = open_record::Widths { widest: self.widest, at_widest: self.at_widest };
            self.room = open.read(widths, &mut self.sink);
        }
    }

    /// A line without any header: it goes on with the open record, or belongs to nothing known.
    fn continuation(&mut self, found: &Unwrapped<'_>) {
        if self.in_panic {
            return self.sink.skip(Skipped::StackTrace);
        }
        let same = |o: &OpenRecord| {
            !found.prefixed || (found.pid == o.outer_pid() && is_kubelet(found.ident)) || found.partial
        };
        match &mut self.open {
            Some(open) if same(open) && !is_foreign(found.rest) => {
                open.go_on(found.rest, self.previous_width);
                self.sink.skip(Skipped::Continuation);
            }
            Some(_) | None => {
                self.sink.skip(if found.prefixed { Skipped::Foreign } else { Skipped::Continuation });
            }
        }
    }

    fn draft(&self, verb: Verb, witness: Witness, line: u64) -> Draft {
        let mut draft = Draft::new(verb, witness, line);
        draft.when = self.last;
        draft.pid = self.last_pid;
        draft.host.clone_from(&self.last_host);
        draft
    }

    /// klog's `F`: the process is about to end. A refusal to start is no crash.
    fn fatal(&mut self, header: &Header<'_>, body: &[u8], outer: &Unwrapped<'_>, line: u64) {
        let refusal = header.file == b"server.go"
            || ["ailed to run", "ailed to start"].iter().any(|w| has(body, w.as_bytes()));
        let verb = if refusal { Verb::KubeletFailed } else { Verb::KubeletPanicked };
        let mut draft = self.draft(verb, Witness::Kubelet, line);
        draft.received = outer.received;
        draft.payload = Payload::Text(scan::name(klog::shortened(body)));
        self.sink.push(draft);
    }

    /// A Go panic: no header, then stack traces.
    fn panic(&mut self, found: &Unwrapped<'_>, line: u64) -> bool {
        let rest = found.rest;
        if self.in_panic && !found.prefixed {
            self.sink.skip(Skipped::StackTrace);
            return true;
        }
        let begins = ["panic: ", "fatal error: ", "SIGSEGV: ", "SIGABRT: "]
            .iter()
            .any(|w| rest.starts_with(w.as_bytes()));
        let goroutine = rest.starts_with(b"goroutine ") && rest.ends_with(b"]:");
        let ours = found.ident.is_empty() || is_kubelet(found.ident);
        if !(begins || goroutine) || !ours {
            return false;
        }
        // In a log that has its newest line first, the trace stands before the words.
        let told = self.sink.drafts.last().is_some_and(|d| d.verb == Verb::KubeletPanicked);
        if begins && !(self.in_panic && told) {
            self.close();
            let mut draft = self.draft(Verb::KubeletPanicked, Witness::Kubelet, line);
            if found.pid != 0 {
                draft.pid = found.pid;
            }
            draft.when = draft.when.or(found.received);
            draft.received = found.received;
            draft.payload = Payload::Text(scan::name(klog::shortened(rest)));
            self.sink.push(draft);
            self.sink.recognised += 1;
        } else {
            self.sink.skip(Skipped::StackTrace);
        }
        self.in_panic = true;
        true
    }

    /// systemd's word on the kubelet's unit, in the journal or in a status header.
    fn system(&mut self, found: &Unwrapped<'_>, line: u64) -> bool {
        let rest = found.rest;
        if found.ident == b"systemd" {
            let ours = has(rest, b"ubelet");
            let verb = if ours && rest.starts_with(b"Started ") {
                Some(Verb::ServiceStarted)
            } else if ours && (has(rest, b"Main process exited") || rest.starts_with(b"Stopped ")) {
                Some(Verb::ServiceEnded)
            } else {
                None
            };
            match verb {
                Some(verb) => {
                    let mut draft = Draft::new(verb, Witness::System, line);
                    draft.when = found.received;
                    draft.host = self.host(found.host);
                    draft.payload = Payload::Text(scan::name(klog::shortened(rest)));
                    self.sink.recognised += 1;
                    self.sink.push(draft);
                }
                None => self.sink.skip(Skipped::Foreign),
            }
            return true;
        }
        let text = scan::trim_start(rest);
        if found.ident.is_empty()
            && has(text, b".service")
            && (text.starts_with("●".as_bytes()) || has(text, b" - "))
        {
            self.kubelet_unit = has(text, b"kubelet");
        }
        if self.kubelet_unit && text.starts_with(b"Active: ") {
            if let Some((stamp, len)) =
                scan::after(text, b" since ").map(|t| scan::word(t).1).and_then(Stamp::rfc3339)
            {
                let tail = scan::after(text, b" since ").map(|t| scan::word(t).1).unwrap_or_default();
                let utc = tail.get(len..).is_some_and(|t| t.starts_with(b" UTC"));
                let mut draft = Draft::new(Verb::ServiceStarted, Witness::System, line);
                draft.when = Some(Stamp { offset: if utc { Some(0) } else { stamp.offset }, ..stamp });
                draft.payload = Payload::Text(scan::name(text));
                if let Some(year) = stamp.year {
                    self.sink.years.push((year, stamp.month));
                }
                self.sink.recognised += 1;
                self.sink.push(draft);
            }
            return true;
        }
        let header = [
            "Loaded: ",
            "Drop-In: ",
            "Main PID: ",
            "Tasks: ",
            "Memory: ",
            "CPU: ",
            "CGroup: ",
            "Docs: ",
            "└─",
            "├─",
            "●",
        ];
        if self.kubelet_unit
            && found.ident.is_empty()
            && header.iter().any(|h| text.starts_with(h.as_bytes()))
        {
            self.sink.skip(Skipped::Separator);
            return true;
        }
        // klog's own files begin with the year (node-logs §1.1).
        if let Some(date) = rest.strip_prefix(b"Log file created at: ") {
            let dashed: Vec<u8> = date.iter().map(|b| if *b == b'/' { b'-' } else { *b }).collect();
            if let Some((stamp, _)) = Stamp::rfc3339(&dashed)
                && let Some(year) = stamp.year
            {
                self.sink.years.push((year, stamp.month));
            }
            self.sink.skip(Skipped::Separator);
            return true;
        }
        false
    }

    /// What people and shells put between records. Dots tell of a gap.
    fn separator(&mut self, found: &Unwrapped<'_>, line: u64) -> bool {
        let text = scan::trim(found.rest);
        if wrapper::is_gap(text) {
            self.close();
            let draft = self.draft(Verb::Gap, Witness::Kubelet, line);
            self.sink.push(draft);
            return true;
        }
        let prompt = text.starts_with(b"$ ")
            || text.starts_with(b"# ")
            || text.starts_with(b"--")
            || text.starts_with(b"==")
            || text.starts_with(b"```")
            || (has(&text[..text.len().min(80)], b"@")
                && (has(text, b":~") || has(text, b"# ") || has(text, b"$ ")))
            || (text.starts_with(b"Log line format:")
                || text.starts_with(b"Running on machine:")
                || text.starts_with(b"Binary: "));
        if prompt && !found.prefixed {
            // journalctl says first from when to when its journal goes.
            if let Some((at, _)) =
                scan::after(text, b" at ").map(|t| scan::word(t).1).and_then(Stamp::rfc3339)
                && text.starts_with(b"-- ")
                && let Some(year) = at.year
            {
                self.sink.years.push((year, at.month));
            }
            self.close();
            self.in_panic = false;
            self.sink.skip(Skipped::Separator);
        }
        prompt && !found.prefixed
    }

    fn runtime(&mut self, found: &Unwrapped<'_>, line: u64) -> bool {
        // A shipper that writes logfmt, too.
        if let Some(shipped) = runtime::LogLine::read(found.rest)
            && !shipped.message.starts_with(b"time=")
            && wrapper::is_record(&shipped.message)
        {
            let received = shipped.time.or(found.received);
            let inner = wrapper::strip(&shipped.message);
            self.unwrapped(&Unwrapped { received: inner.received.or(received), ..inner }, line);
            return true;
        }
        let host = self.host(found.host);
        let at = runtime::At {
            line,
            received: found.received,
            host: host.as_ref(),
            pid: found.pid,
            ident: found.ident,
        };
        runtime::log_line(found.rest, &at, &mut self.sink)
    }
}

/// A stamp somewhere in what a console put before the record: `DEFAULT 2024-07-23T02:41:20.566467Z E0723 …`.
fn first_stamp(prefix: &[u8]) -> Option<(Stamp, usize)> {
    let at = prefix.iter().position(u8::is_ascii_digit)?;
    Stamp::rfc3339(&prefix[at..])
}

/// The year in `2/22/2017 2:35:03 PM`, as people's screens write dates: day and month in either order.
fn slashed_year(prefix: &[u8]) -> Option<i32> {
    let mut parts = scan::word(prefix).0.split(|b| *b == b'/').map(scan::number);
    let (Some(Some((_, 1..=2))), Some(Some((_, 1..=2))), Some(Some((year, 4))), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    i32::try_from(year).ok().filter(|y| (2014..=2250).contains(y))
}

/// The body of a record that a shipper put into quotes: its own are escaped, and more fields follow.
fn shipped(body: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    let escaped = body.starts_with(b"\\\"");
    let followed = [&b"\" unit=\""[..], b"\" pid=\"", b"\" machine_id=", b"\"machine_id="]
        .iter()
        .find_map(|m| memchr::memmem::find(body, m));
    if !escaped && followed.is_none() {
        return body.into();
    }
    let inner = match (escaped, scan::quoted_len(body)) {
        (true, Some(len)) => &body[..len],
        _ => &body[..followed.unwrap_or(body.len())],
    };
    if has(inner, b"\\\"") { scan::unescape(inner).into_owned().into() } else { inner.into() }
}

fn is_kubelet(ident: &[u8]) -> bool {
    ident.is_empty() || KUBELETS.iter().any(|k| has(ident, k.as_bytes())) || ident == b"sh"
}

/// Lines of plug-ins that run inside the kubelet's stdout (node-logs §1.4).
fn is_foreign(text: &[u8]) -> bool {
    text.starts_with(b"time=\"")
        || text.starts_with(b"Calico CNI")
        || (text.first().is_some_and(u8::is_ascii_digit) && Stamp::rfc3339(text).is_some())
}
