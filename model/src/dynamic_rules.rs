//! S16: what `/dynamic` may change, as a second statement of reference/api-side.md §1 (P, C, M, W, D), apart from the API's
//! own validation. It reads whole Kubernetes objects and says which rules a change breaks; a request accepted although it
//! breaks one, or refused in the name of one that it does not break, is a violation.
//!
//! Rules of any pod (S1–S43) are not stated here: a cause that only they can have is not judged.

mod containers;
mod preconditions;
mod qos;
mod volumes;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A pod's uid.
type Uid = String;

/// A change of a pod through `/dynamic`.
pub struct Change<'a> {
    /// The pod as it is stored.
    pub old: &'a Value,
    /// The pod as it shall be.
    pub new: &'a Value,
    /// Gate `DynamicNodeLocalEphemeralVolumes`.
    pub dynamic_volumes: bool,
}

/// A rule broken: its number, and the field and reason that a refusal gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// `P1`, `C4`, `W3`, ...
    pub rule: &'static str,
    /// The field.
    pub field: String,
    /// `FieldValueForbidden`, ...
    pub reason: &'static str,
}

const FORBIDDEN: &str = "FieldValueForbidden";
const DUPLICATE: &str = "FieldValueDuplicate";
const INVALID: &str = "FieldValueInvalid";
const REQUIRED: &str = "FieldValueRequired";
const NOT_FOUND: &str = "FieldValueNotFound";

/// What of earlier requests a later one is judged by: names whose removal the node has not seen (C5, W5).
#[derive(Clone, Debug, Default)]
pub struct DynamicRules {
    removed: BTreeMap<Uid, BTreeMap<(Kind, String), u64>>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Container,
    Volume,
}

impl DynamicRules {
    /// Judges an accepted change; `new` is what was stored.
    pub fn accepted(&mut self, change: &Change<'_>) -> Option<String> {
        let broken = self.broken(change);
        self.note_removed(change);
        let first = broken.first()?;
        Some(format!(
            "pods/dynamic accepted what {} forbids at {:?} ({} rules broken in all)",
            first.rule,
            first.field,
            broken.len()
        ))
    }

    /// Judges a refusal by its causes: field and reason.
    pub fn refused(&self, change: &Change<'_>, causes: &[(String, String)]) -> Option<String> {
        let broken = self.broken(change);
        let unfounded = causes.iter().find(|(field, reason)| {
            is_judged(field, reason)
                && !broken.iter().any(|b| b.field == *field && b.reason == reason.as_str())
        })?;
        Some(format!("pods/dynamic refused with {} at {:?}, and no rule says so", unfounded.1, unfounded.0))
    }

    /// The node has seen this generation.
    pub fn observed(&mut self, pod: &Value) {
        let seen = pod["status"]["observedGeneration"].as_u64().unwrap_or(0);
        let Some(removed) = self.removed.get_mut(uid(pod)) else { return };
        removed.retain(|_, generation| *generation > seen);
        if removed.is_empty() {
            self.removed.remove(uid(pod));
        }
    }

    /// What a later request on the pod will be judged by, in words that are equal when it is.
    pub fn memory(&self, pod: &Value) -> Option<String> {
        self.removed.get(uid(pod)).map(|removed| format!("{removed:?}"))
    }

    /// A pod's object is gone.
    pub fn gone(&mut self, pod: &Value) {
        self.removed.remove(uid(pod));
    }

    /// The rules that a change breaks.
    pub fn broken(&self, change: &Change<'_>) -> Vec<Broken> {
        let mut out = Vec::new();
        let none = BTreeMap::new();
        let in_flight = self.removed.get(uid(change.old)).unwrap_or(&none);
        let held = |kind: Kind| -> BTreeSet<&str> {
            let seen = change.old["status"]["observedGeneration"].as_u64().unwrap_or(0);
            let unseen = in_flight.iter().filter(|((k, _), generation)| *k == kind && **generation > seen);
            unseen.map(|((_, name), _)| name.as_str()).collect()
        };
        preconditions::judge(change, &mut out);
        containers::judge(change, &held(Kind::Container), &mut out);
        volumes::judge(change, &held(Kind::Volume), &mut out);
        if qos::stored(change.old) != qos::class(&change.new["spec"]) {
            breaks(&mut out, "C13", "spec", INVALID);
        }
        out
    }

    fn note_removed(&mut self, change: &Change<'_>) {
        let generation = change.new["metadata"]["generation"].as_u64().unwrap_or(0);
        for (kind, list) in [(Kind::Container, "containers"), (Kind::Volume, "volumes")] {
            for (_, gone) in only_in(entries(change.old, list), entries(change.new, list)) {
                let removed = self.removed.entry(uid(change.old).to_owned()).or_default();
                removed.insert((kind, name(gone).to_owned()), generation);
            }
        }
    }
}

/// A cause that the rules stated here, and no others, give.
fn is_judged(field: &str, reason: &str) -> bool {
    let element = |list: &str, rest: &str| {
        let index =
            field.strip_prefix(list).and_then(|f| f.strip_prefix('[')).and_then(|f| f.split_once(']'));
        index.is_some_and(|(_, after)| after == rest)
    };
    let whole = [
        "spec.containers",
        "spec.volumes",
        "spec.initContainers",
        "spec.ephemeralContainers",
        "spec.nodeName",
    ];
    match reason {
        DUPLICATE => element("spec.containers", ".name") || element("spec.volumes", ".name"),
        FORBIDDEN => {
            whole.contains(&field)
                || ["", ".volumeMounts", ".dynamicVolumePolicy"]
                    .iter()
                    .any(|rest| element("spec.containers", rest))
                || element("spec.volumes", "")
        }
        _ => false,
    }
}

fn breaks(out: &mut Vec<Broken>, rule: &'static str, field: impl Into<String>, reason: &'static str) {
    out.push(Broken { rule, field: field.into(), reason });
}

fn uid(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().unwrap_or("")
}

fn name(entry: &Value) -> &str {
    entry["name"].as_str().unwrap_or("")
}

/// A list of the spec.
fn entries<'a>(pod: &'a Value, list: &str) -> &'a [Value] {
    pod["spec"][list].as_array().map_or(&[], Vec::as_slice)
}

fn rows<'a>(pod: &'a Value, list: &str) -> &'a [Value] {
    pod["status"][list].as_array().map_or(&[], Vec::as_slice)
}

fn named<'a>(list: &'a [Value], wanted: &str) -> Option<&'a Value> {
    list.iter().find(|entry| name(entry) == wanted)
}

/// Entries of the first list whose names the second lacks, with their places.
fn only_in<'a>(list: &'a [Value], other: &'a [Value]) -> impl Iterator<Item = (usize, &'a Value)> {
    list.iter().enumerate().filter(|(_, entry)| named(other, name(entry)).is_none())
}

/// Two values without these fields are equal; an absent field is a null one.
fn equal_beside(a: &Value, b: &Value, fields: &[&str]) -> bool {
    let keys = |v: &Value| v.as_object().map(|o| o.keys().cloned().collect::<Vec<_>>()).unwrap_or_default();
    keys(a)
        .iter()
        .chain(&keys(b))
        .filter(|k| !fields.contains(&k.as_str()))
        .all(|k| a[k.as_str()] == b[k.as_str()])
}

/// Mounts are a map by path (D7).
fn mounts(container: &Value) -> BTreeMap<&str, &Value> {
    let list = container["volumeMounts"].as_array().map_or(&[][..], Vec::as_slice);
    list.iter().map(|mount| (mount["mountPath"].as_str().unwrap_or(""), mount)).collect()
}

const STATUS_LISTS: [&str; 3] = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
