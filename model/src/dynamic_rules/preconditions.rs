//! P1–P7: what the stored pod must be for its containers, volumes, mounts or resources to change.

use super::{Broken, Change, FORBIDDEN, breaks, entries, mounts, name, named, only_in, rows};
use serde_json::Value;

pub(super) fn judge(change: &Change<'_>, out: &mut Vec<Broken>) {
    let (old, new) = (change.old, change.new);
    let containers = only_in(entries(old, "containers"), entries(new, "containers")).next().is_some()
        || only_in(entries(new, "containers"), entries(old, "containers")).next().is_some()
        || kept(old, new).any(|(a, b)| mounts(a) != mounts(b));
    let (before, after) = (entries(old, "volumes"), entries(new, "volumes"));
    let volumes = before.len() != after.len() || after.iter().any(|v| named(before, name(v)) != Some(v));
    let structural = [("spec.containers", containers), ("spec.volumes", volumes)];
    let status = &old["status"];
    let initialized = status["conditions"]
        .as_array()
        .is_some_and(|all| all.iter().any(|c| c["type"] == "Initialized" && c["status"] == "True"));
    for (field, _) in structural.iter().filter(|(_, changes)| *changes) {
        if !old["metadata"]["deletionTimestamp"].is_null() {
            breaks(out, "P1", *field, FORBIDDEN);
        }
        if status["phase"] != "Running" {
            breaks(out, "P2", *field, FORBIDDEN);
        }
        if !initialized {
            breaks(out, "P3", *field, FORBIDDEN);
        }
    }
    let changes = containers || volumes;
    if changes && old["spec"]["nodeName"].as_str().unwrap_or("").is_empty() {
        breaks(out, "P4", "spec.nodeName", FORBIDDEN);
    }
    let resizes = kept(old, new).any(|(a, b)| a["resources"] != b["resources"]);
    if !changes && !resizes {
        return;
    }
    if !old["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null() {
        breaks(out, "P5", "", FORBIDDEN);
    }
    if old["spec"]["os"]["name"] == "windows" {
        breaks(out, "P6", "", FORBIDDEN);
    }
    let first = rows(old, "containerStatuses").iter().find(|row| row["state"]["running"].is_object());
    if first.is_some_and(|row| row["resources"].is_null()) {
        breaks(out, "P7", "spec", FORBIDDEN);
    }
}

/// Containers of the same name in both.
fn kept<'a>(old: &'a Value, new: &'a Value) -> impl Iterator<Item = (&'a Value, &'a Value)> {
    let after = entries(new, "containers");
    entries(old, "containers").iter().filter_map(move |c| Some((c, named(after, name(c))?)))
}
