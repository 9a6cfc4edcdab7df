//! The JSON format (`--logging-format=json`, node-logs §1.5): rewritten as the text that klog would have printed, so that
//! one catalogue serves both. References become `ns/name`, UIDs strings, everything else stays JSON.

use super::{Record, recognise};
use crate::evidence::{Name, Sink, Skipped};
use crate::stamp::Stamp;
use serde_json::{Map, Value};

/// Reads one object of the stream. False: it is no klog record.
pub fn from_json(
    object: &Map<String, Value>,
    host: Option<&Name>,
    pid: u64,
    received: Option<Stamp>,
    line: u64,
    sink: &mut Sink,
) -> bool {
    let Some(message) = object.get("msg").and_then(Value::as_str) else { return false };
    let Some(stamp) = object.get("ts").and_then(stamp) else { return false };
    sink.recognised += 1;
    let message = message.trim_end_matches('\n');
    // Call sites that were never migrated put their whole text into `msg`; `recognise` sees it by its beginning.
    let mut body = Vec::with_capacity(128);
    let bare = object.keys().all(|k| matches!(k.as_str(), "ts" | "caller" | "msg" | "v" | "logger"));
    let unstructured = bare && recognise(message.as_bytes()).is_some();
    if unstructured {
        body.extend_from_slice(message.as_bytes());
    } else {
        quote(message, &mut body);
        for (key, value) in object {
            if matches!(key.as_str(), "ts" | "caller" | "msg" | "v" | "logger") {
                continue;
            }
            body.push(b' ');
            body.extend_from_slice(key.as_bytes());
            body.push(b'=');
            write(value, &mut body);
        }
    }
    let Some(reader) = recognise(&body) else {
        sink.skip(Skipped::NothingSaid);
        return true;
    };
    let record =
        Record { stamp: Some(stamp), received, pid, body: &body, host, line, fields: Default::default() };
    reader.read(&record, sink);
    true
}

/// `ts`: a float of milliseconds or seconds, or RFC 3339.
pub fn stamp(value: &Value) -> Option<Stamp> {
    match value {
        Value::Number(n) => Stamp::epoch(n.as_f64()?),
        Value::String(text) => Stamp::rfc3339(text.as_bytes()).map(|(s, _)| s),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn quote(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for b in text.bytes() {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', b]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => out.push(b),
        }
    }
    out.push(b'"');
}

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::String(text) => quote(text, out),
        Value::Object(map) if is_reference(map) => {
            let part = |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default();
            let (ns, name) = (part("namespace"), part("name"));
            quote(&if ns.is_empty() { name.to_owned() } else { format!("{ns}/{name}") }, out);
        }
        Value::Array(list) if list.iter().any(|v| v.as_object().is_some_and(is_reference)) => {
            out.push(b'[');
            for (i, one) in list.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write(one, out);
            }
            out.push(b']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            out.extend_from_slice(value.to_string().as_bytes());
        }
    }
}

fn is_reference(map: &Map<String, Value>) -> bool {
    map.contains_key("name") && map.keys().all(|k| k == "name" || k == "namespace")
}
