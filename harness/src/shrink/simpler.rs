//! What is simpler than a step: rounder and shorter times, fewer choices, objects with a field or an entry less.

use crate::scenario::{NodeSpec, Verb};
use crate::world::{CrashPoint, Fault};
use nodefold_core::time::Nanos;
use serde_json::Value;

/// Simpler steps that may do as well, the simplest first where that is known.
pub fn simpler(verb: &Verb) -> Vec<Verb> {
    match verb {
        Verb::Create(object) => objects(object).into_iter().map(Verb::Create).collect(),
        Verb::Update(object) => objects(object).into_iter().map(Verb::Update).collect(),
        Verb::Dynamic(pod, patch) => {
            objects(patch).into_iter().map(|patch| Verb::Dynamic(pod.clone(), patch)).collect()
        }
        Verb::Resize(pod, patch) => {
            objects(patch).into_iter().map(|patch| Verb::Resize(pod.clone(), patch)).collect()
        }
        Verb::Ephemeral(pod, patch) => {
            objects(patch).into_iter().map(|patch| Verb::Ephemeral(pod.clone(), patch)).collect()
        }
        Verb::Status(pod, patch) => {
            objects(patch).into_iter().map(|patch| Verb::Status(pod.clone(), patch)).collect()
        }
        Verb::Advance(time) => rounder(*time).into_iter().map(Verb::Advance).collect(),
        // Time that passes is easier to follow than a number of choices.
        Verb::Step(count) => {
            let fewer = [1, count / 2, count.saturating_sub(1)].into_iter().filter(|n| *n > 0 && n < count);
            let passes = [Nanos::secs(1), Nanos::millis(100), Nanos::millis(10), Nanos::millis(1)];
            passes.into_iter().map(Verb::Advance).chain(fewer.map(Verb::Step)).collect()
        }
        Verb::Fault(fault) => faults(fault).into_iter().map(Verb::Fault).collect(),
        Verb::Delete(target) => {
            let mut plain = target.clone();
            plain.grace_seconds = None;
            if plain == *target { Vec::new() } else { vec![Verb::Delete(plain)] }
        }
        Verb::Settle(_)
        | Verb::Exit { .. }
        | Verb::Probe { .. }
        | Verb::Usage { .. }
        | Verb::Hold(_)
        | Verb::Release(_)
        | Verb::Fail(..)
        | Verb::Crash(_)
        | Verb::Set(_)
        | Verb::Mark(_)
        | Verb::Choose(_)
        | Verb::Heal
        | Verb::Expect(_) => Vec::new(),
    }
}

/// Simpler nodes.
pub fn nodes(node: &NodeSpec) -> Vec<NodeSpec> {
    let plain = NodeSpec::default();
    let mut simpler = vec![plain.clone()];
    for change in [
        |node: &mut NodeSpec, plain: &NodeSpec| node.facts.allocatable = plain.facts.allocatable.clone(),
        |node: &mut NodeSpec, plain: &NodeSpec| node.facts.gates = plain.facts.gates,
        |node: &mut NodeSpec, plain: &NodeSpec| node.images.clone_from(&plain.images),
        |node: &mut NodeSpec, plain: &NodeSpec| node.journal = plain.journal,
    ] {
        let mut candidate = node.clone();
        change(&mut candidate, &plain);
        simpler.push(candidate);
    }
    simpler.retain(|candidate| candidate != node);
    simpler
}

/// The same time rounded up to larger and larger units.
fn rounder(time: Nanos) -> Vec<Nanos> {
    const UNITS: [u64; 8] =
        [60_000_000_000, 10_000_000_000, 1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 1_000];
    let rounded = UNITS.into_iter().filter(|unit| !time.0.is_multiple_of(*unit));
    rounded.map(|unit| Nanos(time.0.div_ceil(unit) * unit)).collect()
}

fn faults(fault: &Fault) -> Vec<Fault> {
    match fault {
        Fault::Delay { choice, by } => {
            rounder(*by).into_iter().map(|by| Fault::Delay { choice: choice.clone(), by }).collect()
        }
        Fault::Twice { operation, after } => rounder(*after)
            .into_iter()
            .map(|after| Fault::Twice { operation: operation.clone(), after })
            .collect(),
        Fault::Disconnect { lasts } => {
            rounder(*lasts).into_iter().map(|lasts| Fault::Disconnect { lasts }).collect()
        }
        Fault::Forbid { object, lasts } => {
            rounder(*lasts).into_iter().map(|lasts| Fault::Forbid { object: object.clone(), lasts }).collect()
        }
        Fault::DiskFull { lasts } => {
            rounder(*lasts).into_iter().map(|lasts| Fault::DiskFull { lasts }).collect()
        }
        Fault::ClockForward(by) => rounder(*by).into_iter().map(Fault::ClockForward).collect(),
        Fault::ClockBack(by) => rounder(*by).into_iter().map(Fault::ClockBack).collect(),
        Fault::Crash(CrashPoint::Unsynced(keep)) => {
            let certain = if keep & 1 == 1 { CrashPoint::AfterAppend } else { CrashPoint::BeforeAppend };
            vec![Fault::Crash(certain)]
        }
        Fault::Term { pod, container, takes: Some(takes) } => rounder(*takes)
            .into_iter()
            .map(|takes| Fault::Term { pod: pod.clone(), container: container.clone(), takes: Some(takes) })
            .collect(),
        Fault::Dies { pod, container, ending, after } => rounder(*after)
            .into_iter()
            .map(|after| Fault::Dies {
                pod: pod.clone(),
                container: container.clone(),
                ending: *ending,
                after,
            })
            .collect(),
        Fault::Fail { .. }
        | Fault::Linger { .. }
        | Fault::Partial { .. }
        | Fault::Term { .. }
        | Fault::SandboxDies { .. }
        | Fault::Crash(_) => Vec::new(),
    }
}

/// What names a thing or says what it is stays: without it there is nothing to be simpler.
const KEPT: [&str; 8] = ["apiVersion", "kind", "metadata", "spec", "name", "image", "mountPath", "$patch"];

/// The object with one field or one entry less, the larger ones first.
fn objects(object: &Value) -> Vec<Value> {
    let mut paths = Vec::new();
    removable(object, "", &mut paths);
    paths.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    paths
        .into_iter()
        .map(|(path, _)| {
            let mut smaller = object.clone();
            remove(&mut smaller, &path);
            smaller
        })
        .collect()
}

fn removable(value: &Value, path: &str, into: &mut Vec<(String, usize)>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                if !KEPT.contains(&key.as_str()) {
                    into.push((path.clone(), field.to_string().len()));
                }
                removable(field, &path, into);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let path = format!("{path}/{index}");
                into.push((path.clone(), item.to_string().len()));
                removable(item, &path, into);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn remove(object: &mut Value, path: &str) {
    let Some((parent, key)) = path.rsplit_once('/') else { return };
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) => {
            fields.shift_remove(&key.replace("~1", "/").replace("~0", "~"));
        }
        Some(Value::Array(items)) => {
            if let Ok(index) = key.parse::<usize>()
                && index < items.len()
            {
                items.remove(index);
            }
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
    }
}
