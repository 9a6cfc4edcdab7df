//! The kernel's mount table: mountinfo, `mount` output, /proc/mounts, and snapshots of it over time (node-logs §4).

use crate::evidence::{Draft, Name, Payload, Sink, Skipped, Witness};
use crate::klog::{volume, volume_path};
use crate::pod_json;
use crate::scan::{self, name};
use crate::stamp::Stamp;
use crate::verb::Verb;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// The mounts of the last snapshot of a file.
#[derive(Debug, Default)]
pub struct Snapshots {
    mounted: BTreeSet<(Name, Name, Name)>,
    seen: bool,
}

impl Snapshots {
    /// Whether there was none yet.
    pub fn is_empty(&self) -> bool {
        !self.seen
    }

    /// A snapshot `{"at":…,"mountinfo":[…]}`: told as what appeared and what went. False: it is none.
    pub fn read(&mut self, object: &Map<String, Value>, line: u64, sink: &mut Sink) -> bool {
        let Some(lines) = object.get("mountinfo").and_then(Value::as_array) else { return false };
        sink.recognised += 1;
        let value = Value::Object(object.clone());
        let when = ["at", "time", "ts"].iter().find_map(|k| pod_json::stamp(&value, k));
        let now: BTreeSet<(Name, Name, Name)> =
            lines.iter().filter_map(Value::as_str).filter_map(|l| mounted(l.as_bytes())).collect();
        for gone in self.mounted.difference(&now) {
            sink.push(draft(Verb::MountGone, gone, when, line));
        }
        for new in now.difference(&self.mounted) {
            let mut found = draft(Verb::MountSeen, new, when, line);
            // What the first snapshot shows was there before.
            found.payload = if self.seen { Payload::Nothing } else { Payload::Text("first snapshot".into()) };
            sink.push(found);
        }
        self.mounted = now;
        self.seen = true;
        true
    }
}

/// A line of mountinfo, `mount` or /proc/mounts. It has no time: it holds when it was taken.
pub fn line(text: &[u8], number: u64, sink: &mut Sink) -> bool {
    if !is_mount_line(text) {
        return false;
    }
    sink.recognised += 1;
    match mounted(text) {
        Some(mount) => sink.push(draft(Verb::MountSeen, &mount, None, number)),
        None => sink.skip(Skipped::NothingSaid),
    }
    true
}

fn is_mount_line(text: &[u8]) -> bool {
    let words: Vec<&[u8]> = text.split(|b| *b == b' ').take(8).collect();
    let [a, b, c, d, e, ..] = words.as_slice() else { return false };
    let digits = |w: &[u8]| !w.is_empty() && w.iter().all(u8::is_ascii_digit);
    let mountinfo = digits(a) && digits(b) && c.contains(&b':') && d.starts_with(b"/") && e.starts_with(b"/");
    let mount = *b == b"on" && c.starts_with(b"/") && *d == b"type" && text.ends_with(b")");
    let proc_mounts = b.starts_with(b"/") && words.len() == 6 && digits(words[4]) && digits(words[5]);
    mountinfo || mount || proc_mounts
}

fn draft(verb: Verb, mount: &(Name, Name, Name), when: Option<Stamp>, line: u64) -> Draft {
    let mut draft = Draft::new(verb, Witness::Mounts, line);
    draft.when = when;
    draft.pod.uid = Some(mount.0.clone());
    draft.volume = volume(Some(mount.2.as_bytes()), None);
    draft.volume.plugin = Some(mount.1.clone());
    draft
}

/// Pod, plugin and volume of a mount below a kubelet's pods directory, under whatever root.
fn mounted(text: &[u8]) -> Option<(Name, Name, Name)> {
    // Blanks in mount points are written as \040: no word of the path is lost.
    let (uid, plugin, spec) = volume_path(text)?;
    Some((name(uid), String::from_utf8_lossy(plugin).replace('~', "/").into(), name(spec)))
}

/// Whether a text is worth a look: only lines with a path are.
pub fn may_be(text: &[u8]) -> bool {
    scan::has(text, b" /")
}
