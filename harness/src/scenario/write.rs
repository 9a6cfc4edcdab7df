//! Scenarios as text: what a history is kept as, and what every later version can run again.

use super::step::{Crash, DeleteTarget, PodRef, Used, Verb};
use super::{NodeChange, NodeSpec, duration, fault};
use crate::world::{Ending, Scope, TargetKind, probe_name};
use nodefold_core::config::{FeatureGates, NodeFacts};
use nodefold_core::event::ErrorClass;
use nodefold_core::resources::{ResourceList, ResourceName};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// A scenario's text: a line for each step.
pub fn to_text<'a>(
    name: &str,
    about: &str,
    node: &NodeSpec,
    steps: impl IntoIterator<Item = &'a Verb>,
) -> String {
    let mut text = format!("name: {}\nabout: {}\n", flow(&json!(name)), flow(&json!(about)));
    let node = node_value(node);
    if node.as_object().is_some_and(|fields| !fields.is_empty()) {
        let _ = writeln!(text, "node: {}", flow(&node));
    }
    text.push_str("steps:\n");
    for verb in steps {
        let line = if matches!(verb, Verb::Heal) {
            "heal".to_owned()
        } else {
            format!("{}: {}", verb.name(), flow(&argument(verb)))
        };
        let _ = writeln!(text, "- {line}");
    }
    text
}

/// What follows a verb.
fn argument(verb: &Verb) -> Value {
    let patched = |pod: &PodRef, patch: &Value| json!({"pod": short(pod), "patch": patch});
    match verb {
        Verb::Create(object) | Verb::Update(object) => object.clone(),
        Verb::Dynamic(pod, patch)
        | Verb::Resize(pod, patch)
        | Verb::Ephemeral(pod, patch)
        | Verb::Status(pod, patch) => patched(pod, patch),
        Verb::Delete(target) => delete(target),
        Verb::Advance(time) | Verb::Settle(time) => json!(duration::exact(*time)),
        Verb::Exit { pod, container, ending } => {
            let (how, number) = match ending {
                Ending::Code(code) => ("code", json!(code)),
                Ending::Signal(signal) => ("signal", json!(signal.to_string())),
            };
            json!({"pod": short(pod), "container": container, how: number})
        }
        Verb::Probe { pod, container, kind, passes } => {
            let result = if *passes { "success" } else { "failure" };
            json!({"pod": short(pod), "container": container, "kind": probe_name(*kind), "result": result})
        }
        Verb::Usage { pod, of, bytes } => {
            let (what, name) = match of {
                Used::Volume(name) => ("volume", name),
                Used::Container(name) => ("container", name),
            };
            json!({"pod": short(pod), what: name, "bytes": bytes.to_string()})
        }
        Verb::Hold(scope) | Verb::Release(scope) => Value::Object(scope_fields(scope)),
        Verb::Fail(scope, failure) => {
            let mut fields = scope_fields(scope);
            if let Some(times) = failure.times {
                fields.insert("times".into(), json!(times));
            }
            fields.insert("error".into(), json!(failure.error));
            let class = match failure.class {
                ErrorClass::Final => "final",
                ErrorClass::Transient => "transient",
                ErrorClass::Uncertain => "uncertain",
            };
            fields.insert("kind".into(), json!(class));
            Value::Object(fields)
        }
        Verb::Crash(Crash::Agent) => json!("agent"),
        Verb::Crash(Crash::Host) => json!("host"),
        Verb::Set(change) => change_value(change),
        Verb::Mark(name) => json!(name),
        Verb::Step(count) => json!(count),
        Verb::Choose(choice) => json!(choice),
        Verb::Fault(fault) => fault::to_value(fault),
        Verb::Heal => Value::Null,
        // What a story expects is written by people.
        Verb::Expect(expectation) => json!(expectation.to_string()),
    }
}

fn short(pod: &PodRef) -> String {
    if pod.namespace == "default" { pod.name.clone() } else { pod.to_string() }
}

fn delete(target: &DeleteTarget) -> Value {
    let mut key = if target.mirror { "Mirror".to_owned() } else { target.kind.clone() };
    key[..1].make_ascii_lowercase();
    let mut fields = Map::from_iter([(key, json!(target.name))]);
    if !target.namespace.is_empty() && target.namespace != "default" {
        fields.insert("namespace".into(), json!(target.namespace));
    }
    if let Some(grace) = target.grace_seconds {
        fields.insert("gracePeriodSeconds".into(), json!(grace));
    }
    if target.force {
        fields.insert("force".into(), json!(true));
    }
    Value::Object(fields)
}

fn scope_fields(scope: &Scope) -> Map<String, Value> {
    let mut fields = Map::from_iter([("operation".to_owned(), json!(scope.operation.name()))]);
    if let Some((namespace, name)) = &scope.pod {
        fields.insert("pod".into(), json!(format!("{namespace}/{name}")));
    }
    if let Some(target) = &scope.target {
        let key = match scope.operation.target() {
            TargetKind::Volume => "volume",
            TargetKind::Container | TargetKind::PodOnly => "container",
        };
        fields.insert(key.into(), json!(target));
    }
    fields
}

/// The same `node:` as a reader would read.
fn node_value(node: &NodeSpec) -> Value {
    let NodeFacts { allocatable, labels, gates } = &node.facts;
    let default = FeatureGates::default();
    let mut value = change_value(&NodeChange {
        allocatable: allocatable.clone(),
        labels: labels.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect(),
        dynamic_containers: (gates.dynamic_containers != default.dynamic_containers)
            .then_some(gates.dynamic_containers),
        dynamic_volumes: (gates.dynamic_volumes != default.dynamic_volumes).then_some(gates.dynamic_volumes),
        images: node.images.clone(),
    });
    if node.journal {
        value["journal"] = json!(true);
    }
    value
}

fn change_value(change: &NodeChange) -> Value {
    let mut fields = Map::new();
    if !change.allocatable.is_empty() {
        fields.insert("allocatable".into(), amounts(&change.allocatable));
    }
    if !change.labels.is_empty() {
        let labels = change.labels.iter().map(|(key, value)| (key.to_string(), json!(value.as_deref())));
        fields.insert("labels".into(), Value::Object(labels.collect()));
    }
    let mut gates = Map::new();
    if let Some(on) = change.dynamic_containers {
        gates.insert("DynamicContainers".into(), json!(on));
    }
    if let Some(on) = change.dynamic_volumes {
        gates.insert("DynamicNodeLocalEphemeralVolumes".into(), json!(on));
    }
    if !gates.is_empty() {
        fields.insert("featureGates".into(), Value::Object(gates));
    }
    if let Some(images) = &change.images {
        fields.insert("images".into(), json!(images));
    }
    Value::Object(fields)
}

fn amounts(list: &ResourceList) -> Value {
    let amount = |(name, amount): &(ResourceName, u64)| {
        let text = match name {
            ResourceName::Cpu if amount % 1000 == 0 => (amount / 1000).to_string(),
            ResourceName::Cpu => format!("{amount}m"),
            ResourceName::Memory | ResourceName::EphemeralStorage if amount % (1 << 20) == 0 => {
                format!("{}Mi", amount >> 20)
            }
            ResourceName::Memory
            | ResourceName::EphemeralStorage
            | ResourceName::Pods
            | ResourceName::Other(_) => amount.to_string(),
        };
        (name.to_string(), json!(text))
    };
    Value::Object(list.iter().map(amount).collect())
}

/// A value on one line, as YAML's flow style has it: plain where that can be read back as the same string.
pub fn flow(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let key = |key: &str| if is_plain(key) { key.to_owned() } else { json!(key).to_string() };
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{}: {}", key(name), flow(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 7] = ["null", "true", "false", "yes", "no", "on", "off"];
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '$');
    starts_well
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
        && !text.ends_with(' ')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || " -_./$~()".contains(c))
}
