//! The kubelet's checkpoints of allocated and actuated resources, in every layout since 1.27 (node-logs §4).
//!
//! Checksums aren't judged: quantities are normalised on load, so a right file may not match its own.

use crate::evidence::{Draft, Payload, Sink, Witness};
use crate::scan::{self, is_uid, name};
use crate::verb::Verb;
use serde_json::{Map, Value};

/// Reads a checkpoint. False: it is none.
pub fn from_json(object: &Map<String, Value>, line: u64, sink: &mut Sink) -> bool {
    if !object.contains_key("checksum") {
        return false;
    }
    let inner = object.get("data").and_then(Value::as_str);
    if inner.is_none() && !object.contains_key("allocationEntries") && !object.contains_key("policyName") {
        return false;
    }
    sink.recognised += 1;
    let entries = match inner {
        Some(text) => match serde_json::from_str::<Value>(text) {
            Ok(value) => value,
            Err(error) => {
                broken(&format!("its data is no JSON: {error}"), line, sink);
                return true;
            }
        },
        None => Value::Object(object.clone()),
    };
    for key in ["entries", "allocationEntries"] {
        for uid in entries.get(key).and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            let mut draft = Draft::new(Verb::CheckpointSeen, Witness::Checkpoint, line);
            draft.pod.uid = is_uid(uid.as_bytes()).then(|| name(uid.as_bytes()));
            sink.push(draft);
        }
    }
    true
}

/// Text that begins like a checkpoint and isn't whole JSON: that is a finding, not mere damage.
pub fn broken_text(text: &[u8], error: &serde_json::Error, line: u64, sink: &mut Sink) -> bool {
    let begins = |words: &str| scan::trim_start(text).starts_with(words.as_bytes());
    let is_one = begins("{\"allocationEntries\"")
        || begins("{\"policyName\"")
        || (begins("{\"data\":\"{") && scan::has(text, b"ntries"));
    if is_one {
        sink.recognised += 1;
        broken(&error.to_string(), line, sink);
    }
    is_one
}

fn broken(why: &str, line: u64, sink: &mut Sink) {
    let mut draft = Draft::new(Verb::CheckpointUnreadable, Witness::Checkpoint, line);
    draft.payload = Payload::Text(why.into());
    sink.push(draft);
}
