//! Reading a whole object: lists, entries by name, texts. What is absent or of the wrong type reads as empty.

use serde_json::Value;
use std::collections::BTreeSet;

/// The object at a field, or null.
pub(crate) fn at<'a>(value: &'a Value, field: &str) -> &'a Value {
    value.get(field).unwrap_or(&Value::Null)
}

/// The list in a field.
pub(crate) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A list of the pod's spec.
pub(crate) fn spec_list<'a>(pod: &'a Value, field: &str) -> &'a [Value] {
    list(at(pod, "spec"), field)
}

/// A list of the pod's status.
pub(crate) fn status_list<'a>(pod: &'a Value, field: &str) -> &'a [Value] {
    list(at(pod, "status"), field)
}

/// The text in a field.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The entry's name.
pub(crate) fn name(entry: &Value) -> &str {
    text(entry, "name")
}

/// The first entry of that name.
pub(crate) fn named<'a>(entries: &'a [Value], wanted: &str) -> Option<&'a Value> {
    entries.iter().find(|e| name(e) == wanted)
}

/// Entries of `these` whose name no entry of `others` has, each with its index.
pub(crate) fn only_in<'a>(
    these: &'a [Value],
    others: &'a [Value],
) -> impl Iterator<Item = (usize, &'a Value)> {
    let known: BTreeSet<&str> = others.iter().map(name).collect();
    these.iter().enumerate().filter(move |(_, e)| !known.contains(name(e)))
}

/// `metadata.generation`.
pub(crate) fn generation(object: &Value) -> u64 {
    at(at(object, "metadata"), "generation").as_u64().unwrap_or(0)
}

/// `status.observedGeneration`.
pub(crate) fn observed_generation(status: &Value) -> u64 {
    at(status, "observedGeneration").as_u64().unwrap_or(0)
}

/// The pod is being deleted.
pub(crate) fn is_deleting(object: &Value) -> bool {
    !at(at(object, "metadata"), "deletionTimestamp").is_null()
}

/// The pod mirrors a static one of the node.
pub(crate) fn is_mirror(pod: &Value) -> bool {
    at(at(pod, "metadata"), "annotations").get("kubernetes.io/config.mirror").is_some()
}

/// The phase is one that is never left.
pub(crate) fn is_terminal(phase: &str) -> bool {
    matches!(phase, "Succeeded" | "Failed")
}

/// An init container that runs for as long as the pod does.
pub(crate) fn is_sidecar(init_container: &Value) -> bool {
    text(init_container, "restartPolicy") == "Always"
}

/// A condition's status is True.
pub(crate) fn condition_is_true(status: &Value, kind: &str) -> bool {
    list(status, "conditions").iter().any(|c| text(c, "type") == kind && text(c, "status") == "True")
}

/// Every kind of container list in a spec, with the path to it.
pub(crate) const CONTAINER_LISTS: [(&str, &str); 3] = [
    ("containers", "spec.containers"),
    ("initContainers", "spec.initContainers"),
    ("ephemeralContainers", "spec.ephemeralContainers"),
];

/// Every list of container statuses.
pub(crate) const STATUS_LISTS: [&str; 3] =
    ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
