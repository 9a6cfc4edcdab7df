//! JSON in the input: one object a line, or documents over many lines. Tells which kind an object is (node-logs §1.6, §4).

use super::Importer;
use crate::evidence::Skipped;
use crate::scan;
use crate::stamp::{Moment, SECOND, Stamp};
use crate::wrapper::{self, Unwrapped};
use crate::{api, checkpoint, klog, runtime};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A document longer than this is not held in memory.
const LONGEST: usize = 256 << 20;

/// A document that spans lines.
#[derive(Debug, Default)]
pub struct Document {
    text: Vec<u8>,
    line: u64,
    depth: i64,
    in_string: bool,
}

/// What became of a line of an open document.
pub enum Fed {
    /// The document goes on.
    More,
    /// It is whole, and began at that line.
    Whole(Vec<u8>, u64),
    /// It never was one: this is what was gathered without the last line.
    NotJson(Vec<u8>, u64),
}

impl Document {
    /// Whether one is open.
    pub fn is_open(&self) -> bool {
        !self.text.is_empty()
    }

    fn begin(&mut self, text: &[u8], line: u64) {
        *self = Document { line, ..Document::default() };
        self.scan(text);
        self.text.extend_from_slice(text);
        self.text.push(b'\n');
    }

    /// What is open at the end of the input.
    pub fn take_open(&mut self) -> Option<(Vec<u8>, u64)> {
        let line = self.line;
        self.is_open().then(|| (std::mem::take(self).text, line))
    }

    /// Adds a line.
    pub fn feed(&mut self, text: &[u8]) -> Fed {
        // No string of a pretty-printed document spans lines; a log line means that the document was torn off.
        let torn = self.in_string || klog::header(text).is_some() || self.text.len() + text.len() > LONGEST;
        if torn {
            let line = self.line;
            return Fed::NotJson(std::mem::take(self).text, line);
        }
        self.scan(text);
        self.text.extend_from_slice(text);
        self.text.push(b'\n');
        if self.depth <= 0 {
            let line = self.line;
            return Fed::Whole(std::mem::take(self).text, line);
        }
        Fed::More
    }

    fn scan(&mut self, text: &[u8]) {
        let mut at = 0;
        while at < text.len() {
            if self.in_string {
                match scan::quoted_len(&text[at..]) {
                    Some(len) => {
                        at += len + 1;
                        self.in_string = false;
                    }
                    None => return,
                }
                continue;
            }
            match text[at] {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth -= 1,
                _ => {}
            }
            at += 1;
        }
    }
}

impl Importer {
    /// A line that begins with a brace or bracket. False: it isn't JSON.
    pub(super) fn json(&mut self, found: &Unwrapped<'_>, line: u64) -> bool {
        let text = found.rest;
        let mut stream = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => {
                let rest = text[stream.byte_offset()..].trim_ascii();
                // `[12345.678] host …` is a stamp, not a list.
                let numbers = matches!(&value, Value::Array(list) if !list.iter().any(Value::is_object));
                if numbers && !rest.is_empty() {
                    return false;
                }
                if !rest.is_empty() && checkpoint::broken_text(text, &trailing(text), line, &mut self.sink) {
                    return true;
                }
                self.value(&value, found, line);
                match rest.first() {
                    // Two objects on one line.
                    Some(b'{') => {
                        let next = Unwrapped { rest, ..found.clone() };
                        if !self.in_document {
                            self.json(&next, line);
                        }
                    }
                    Some(b',' | b']') | None => {}
                    Some(_) => self.sink.skip(Skipped::BadJson),
                }
                true
            }
            Some(Err(error)) if error.is_eof() && !self.in_document && plausible(text) => {
                self.close();
                self.document.begin(text, line);
                true
            }
            Some(Err(error)) => {
                if checkpoint::broken_text(text, &error, line, &mut self.sink) {
                    return true;
                }
                let json = text.starts_with(b"{\"") || text.starts_with(b"[{");
                if json {
                    self.sink.skip(Skipped::BadJson);
                }
                json
            }
            None => false,
        }
    }

    /// A whole document of several lines.
    pub(super) fn document_text(&mut self, text: &[u8], line: u64) {
        self.in_document = true;
        self.json(&Unwrapped::bare(text.trim_ascii()), line);
        self.in_document = false;
    }

    /// A document that never ended. Its objects that are whole are still of use; a checkpoint's end is a finding.
    pub(super) fn broken_document(&mut self, text: &[u8], line: u64) {
        if let Err(error) = serde_json::from_slice::<Value>(text)
            && checkpoint::broken_text(text, &error, line, &mut self.sink)
        {
            return;
        }
        self.sink.skip(Skipped::BadJson);
    }

    fn value(&mut self, value: &Value, found: &Unwrapped<'_>, line: u64) {
        match value {
            Value::Object(object) => self.object(object, found, line),
            Value::Array(list) => {
                for one in list {
                    if let Value::Object(object) = one {
                        self.object(object, found, line);
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.sink.skip(Skipped::OtherObject)
            }
        }
    }

    /// Which kind of object it is, by its keys.
    fn object(&mut self, object: &Map<String, Value>, found: &Unwrapped<'_>, line: u64) {
        if let (Some(text), Some(time)) = (object.get("log").and_then(Value::as_str), object.get("time")) {
            return self.docker(text, time, line);
        }
        if let Some(message) = object.get("MESSAGE") {
            return self.journald(object, message, line);
        }
        if let Some((text, received)) = shipped(object) {
            return self.inner(text.trim_ascii_end().as_bytes(), received, None, "", 0, line);
        }
        if self.mounts.read(object, line, &mut self.sink) {
            return;
        }
        let host = self.host(found.host);
        if object.contains_key("msg") {
            if klog::from_json(object, host.as_ref(), found.pid, found.received, line, &mut self.sink) {
                self.last = object.get("ts").and_then(json_time).or(self.last);
                return;
            }
            if self.runtime_json(object, found, line) {
                return;
            }
        }
        if api::from_json(object, line, &mut self.sink)
            || runtime::event_json(object, line, &mut self.sink)
            || runtime::crictl_json(object, line, &mut self.sink)
            || checkpoint::from_json(object, line, &mut self.sink)
        {
            return;
        }
        self.sink.skip(Skipped::OtherObject);
    }

    /// docker's json-file: long lines come in several objects without a newline at the end.
    fn docker(&mut self, text: &str, time: &Value, line: u64) {
        let received = time.as_str().and_then(|t| Stamp::rfc3339(t.as_bytes())).map(|(s, _)| s);
        if !text.ends_with('\n') && self.partial.len() < crate::input::LONGEST_LINE {
            self.partial.extend_from_slice(text.as_bytes());
            return;
        }
        let whole = match self.partial.is_empty() {
            true => Cow::Borrowed(text.as_bytes()),
            false => {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(text.as_bytes());
                Cow::Owned(whole)
            }
        };
        self.inner(whole.trim_ascii_end(), received, None, "", 0, line);
    }

    /// `journalctl -o json`.
    fn journald(&mut self, object: &Map<String, Value>, message: &Value, line: u64) {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let message: Vec<u8> = match message {
            Value::String(text) => text.as_bytes().to_vec(),
            // Bytes, when the message is no clean UTF-8.
            Value::Array(bytes) => {
                bytes.iter().filter_map(Value::as_u64).filter_map(|b| u8::try_from(b).ok()).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                return self.sink.skip(Skipped::Foreign);
            }
        };
        let received = text("__REALTIME_TIMESTAMP").and_then(microseconds);
        let ident = text("SYSLOG_IDENTIFIER").or_else(|| text("_COMM")).unwrap_or_default();
        let pid = text("_PID").and_then(|p| p.parse().ok()).unwrap_or(0);
        self.inner(&message, received, text("_HOSTNAME"), ident, pid, line);
    }

    /// A line that was inside another record.
    pub(super) fn inner(
        &mut self,
        text: &[u8],
        received: Option<Stamp>,
        host: Option<&str>,
        ident: &str,
        pid: u64,
        line: u64,
    ) {
        for one in text.split(|b| *b == b'\n') {
            let found = Unwrapped {
                received,
                host: host.map(str::as_bytes),
                ident: ident.as_bytes(),
                pid,
                partial: false,
                prefixed: !ident.is_empty(),
                rest: one,
            };
            self.unwrapped(&found, line);
        }
    }

    /// A runtime that logs JSON: `{"level":…,"msg":…,"time":…}`.
    fn runtime_json(&mut self, object: &Map<String, Value>, found: &Unwrapped<'_>, line: u64) -> bool {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let (Some(message), Some(time)) = (text("msg"), text("time")) else { return false };
        let bytes = |t: Option<&'_ str>| t.map(|t| Cow::Owned(t.as_bytes().to_vec()));
        let as_line = runtime::LogLine {
            time: Stamp::rfc3339(time.as_bytes()).map(|(s, _)| s),
            level: bytes(text("level")).unwrap_or_default(),
            message: Cow::Borrowed(message.as_bytes()),
            error: bytes(text("error")),
            id: bytes(text("id")),
            cut: false,
        };
        let host = self.host(found.host);
        let at =
            runtime::At { line, received: found.received, host: host.as_ref(), pid: found.pid, ident: b"" };
        runtime::message(message.as_bytes(), &as_line, &at, &mut self.sink)
    }
}

/// What a shipper of logs (fluentbit, filebeat, a cloud's) says that a line was, if it was one of a log.
fn shipped(object: &Map<String, Value>) -> Option<(&str, Option<Stamp>)> {
    let inner = ["jsonPayload", "_source"].iter().find_map(|key| object.get(*key)?.as_object());
    let inner = inner.unwrap_or(object);
    let of = |key: &&str| inner.get(*key).and_then(Value::as_str);
    let keys = ["log", "message", "MESSAGE", "textPayload", "@message", "line", "_raw"];
    let text = keys.iter().find_map(of)?;
    let known = wrapper::is_record(text.as_bytes()) || klog::find(text.as_bytes()).is_some();
    let object_of_api = ["kind", "apiVersion", "reason"].iter().any(|key| object.contains_key(*key));
    let time = ["@timestamp", "timestamp", "time"].iter().find_map(|key| object.get(*key)?.as_str());
    (known && !object_of_api).then(|| (text, time.and_then(|t| Stamp::rfc3339(t.as_bytes())).map(|(s, _)| s)))
}

fn json_time(value: &Value) -> Option<Stamp> {
    match value {
        Value::Number(n) => Stamp::epoch(n.as_f64()?),
        Value::String(t) => Stamp::rfc3339(t.as_bytes()).map(|(s, _)| s),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Microseconds since the epoch.
pub fn microseconds(text: &str) -> Option<Stamp> {
    let micros: i64 = text.parse().ok()?;
    (0..i64::MAX / SECOND * 1_000_000)
        .contains(&micros)
        .then(|| Stamp::at(Moment(micros.saturating_mul(1000)), 0))
}

/// Whether a text that ends inside JSON may be a document's first line: a person's `[x` is not.
fn plausible(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    matches!(text, b"{" | b"[")
        || text.starts_with(b"{\"")
        || text.starts_with(b"[{")
        || text.starts_with(b"{ \"")
}

fn trailing(text: &[u8]) -> serde_json::Error {
    match serde_json::from_slice::<Value>(text) {
        Err(error) => error,
        // Not reached with trailing text; an error is needed to tell something.
        Ok(_) => serde::de::Error::custom("trailing characters"),
    }
}
