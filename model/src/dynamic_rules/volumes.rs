//! W: which volumes may come and go.

use super::{
    Broken, Change, DUPLICATE, FORBIDDEN, NOT_FOUND, STATUS_LISTS, breaks, entries, name, named, only_in,
    rows,
};
use serde_json::Value;
use std::collections::BTreeSet;

/// The five node-local, ephemeral sources of KEP-6395.
const SOURCES: [&str; 5] = ["configMap", "secret", "projected", "emptyDir", "image"];

pub(super) fn judge(change: &Change<'_>, held: &BTreeSet<&str>, out: &mut Vec<Broken>) {
    let (old, new) = (change.old, change.new);
    let (before, after) = (entries(old, "volumes"), entries(new, "volumes"));
    for list in ["initContainers", "ephemeralContainers"] {
        for (j, container) in entries(new, list).iter().enumerate() {
            for (k, mount) in container["volumeMounts"].as_array().into_iter().flatten().enumerate() {
                if named(after, name(mount)).is_none() {
                    breaks(out, "W9", format!("spec.{list}[{j}].volumeMounts[{k}].name"), NOT_FOUND);
                }
            }
        }
    }
    for (i, volume) in after.iter().enumerate() {
        if after[..i].iter().any(|v| name(v) == name(volume)) {
            breaks(out, "W2", format!("spec.volumes[{i}].name"), DUPLICATE);
        }
    }
    if !change.dynamic_volumes {
        let same = before.len() == after.len() && after.iter().all(|v| named(before, name(v)) == Some(v));
        if !same {
            breaks(out, "W12", "spec.volumes", FORBIDDEN);
        }
        return;
    }
    for (i, volume) in after.iter().enumerate() {
        let path = format!("spec.volumes[{i}]");
        match named(before, name(volume)) {
            Some(stored) if stored != volume => breaks(out, "W6", path, FORBIDDEN),
            Some(_) => {}
            None => {
                if !is_dynamic(volume) {
                    breaks(out, "W1", path.as_str(), FORBIDDEN);
                }
                if let Some(rule) = taken(old, name(volume), held) {
                    breaks(out, rule, format!("{path}.name"), DUPLICATE);
                }
            }
        }
    }
    if only_in(before, after).any(|(_, gone)| !is_dynamic(gone)) {
        breaks(out, "W7", "spec.volumes", FORBIDDEN);
    }
}

fn is_dynamic(volume: &Value) -> bool {
    let mut fields = volume.as_object().into_iter().flat_map(|o| o.keys()).filter(|field| *field != "name");
    fields.all(|field| SOURCES.contains(&field.as_str()))
}

/// Why a name is not free.
fn taken(old: &Value, wanted: &str, held: &BTreeSet<&str>) -> Option<&'static str> {
    if named(rows(old, "volumeStatuses"), wanted).is_some() {
        return Some("W3");
    }
    let mounts_it = |row: &&Value| {
        let mounted = row["volumeMounts"].as_array().map_or(&[][..], Vec::as_slice);
        row["state"]["terminated"].is_null() && named(mounted, wanted).is_some()
    };
    if STATUS_LISTS.iter().flat_map(|list| rows(old, list)).any(|row| mounts_it(&row)) {
        return Some("W4");
    }
    held.contains(wanted).then_some("W5")
}
