//! A stored v1.Pod to the core's [`Pod`]: what decisions need is typed, the rest rides along as canonical
//! blobs.
//!
//! A field leaves the blobs when its typed form says all of it. Of probes, hooks, ports, selectors, resize
//! policies and volume sources the core only knows a digest, so these stay whole in the blobs.

use crate::canonical::canonical;
use crate::fields::{Fields, Problems, string, wrong_type};
use crate::problem::{self, FieldProblem, ProblemReason};
use crate::qos::stored_qos_class;
use crate::read_container::{self, ContainerList, RESTART_POLICIES};
use crate::read_volume;
use crate::share;
use crate::time;
use nodefold_core::few::Few;
use nodefold_core::ids::{Name, PodUid, Source};
use nodefold_core::resources::Resources;
use nodefold_core::spec::{
    Deletion, HostPort, NodeOperator, NodeRequirement, NodeSelectorTerm, Pod, PodSpec, RestartPolicy,
    TerminalPhase,
};
use nodefold_core::time::{Nanos, Time};
use serde_json::Value;
use std::sync::Arc;

/// Reads a pod as its source hands it over: defaulted ([`crate::default_pod`]), with the metadata that the
/// API server gave it. A static pod (`Source::File`) may lack a UID; it is then made from its content.
///
/// `metadata.resourceVersion`, `metadata.managedFields` and all of `status` but a terminal phase and the QoS class are
/// left out: they change with every status write, and no decision and no volume may hang on them.
pub fn pod_from_json(value: &Value, source: Source) -> Result<Pod, Vec<FieldProblem>> {
    let mut out = Problems::new();
    let mut root = Fields::new("", value.clone(), &mut out);
    for (name, wanted) in [("kind", "Pod"), ("apiVersion", "v1")] {
        match root.text(name, &mut out) {
            Some(got) if got != wanted => out.push(FieldProblem::not_supported(name, &got, &[wanted])),
            Some(_) | None => {}
        }
    }
    let metadata_value = root.take("metadata").unwrap_or(Value::Null);
    let mut metadata = Fields::new("metadata", metadata_value, &mut out);
    metadata.take("resourceVersion");
    metadata.take("managedFields");
    let name = metadata.required_text("name", "give the pod a name", &mut out);
    let namespace = metadata.text("namespace", &mut out).unwrap_or_else(|| "default".to_owned()).into();
    let generation =
        metadata.integer("generation", &mut out).and_then(|g| u64::try_from(g).ok()).unwrap_or(0);
    let created_at = timestamp(&mut metadata, "creationTimestamp", &mut out).unwrap_or_default();
    let uid = read_uid(&mut metadata, value, source, &mut out);

    let spec_value = root.take("spec").unwrap_or(Value::Null);
    let namespace: Name = namespace;
    let spec = read_spec(spec_value, &namespace, stored_qos_class(value), &mut out);

    let deletion_grace = metadata.integer("deletionGracePeriodSeconds", &mut out);
    let deletion = timestamp(&mut metadata, "deletionTimestamp", &mut out).map(|deleted_at| {
        // The API server sets both; without a grace, the kubelet takes the spec's.
        let grace = deletion_grace.map_or(spec.termination_grace, seconds);
        Deletion { requested_at: Time(deleted_at.0.saturating_sub(grace.0)), grace }
    });
    let api_terminal = match value.pointer("/status/phase").and_then(Value::as_str) {
        Some("Succeeded") => Some(TerminalPhase::Succeeded),
        Some("Failed") => Some(TerminalPhase::Failed),
        Some(_) | None => None,
    };
    if !out.is_empty() {
        return Err(out);
    }
    Ok(Pod {
        uid,
        namespace,
        name,
        source,
        generation,
        created_at,
        metadata: metadata.rest(),
        spec: Arc::new(spec),
        deletion,
        api_terminal,
    })
}

/// A UID's 128 bits. One that is no canonical UUID is hashed, and its text stays in the metadata.
fn read_uid(metadata: &mut Fields, pod: &Value, source: Source, out: &mut Problems) -> PodUid {
    let before = out.len();
    let text = metadata.text("uid", out).unwrap_or_default();
    if text.is_empty() {
        if source == Source::Api && out.len() == before {
            let remedy = "an API server gives every pod one: use a pod as it stores them";
            out.push(FieldProblem::required("metadata.uid", remedy));
        }
        return hashed_uid(&canonical(pod));
    }
    let uid = pod_uid(&text);
    if uid.to_string() != text {
        metadata.keep("uid", Value::String(text));
    }
    uid
}

/// The UID that a text means: a UUID's bits, or the hash of whatever else it is.
pub fn pod_uid(text: &str) -> PodUid {
    PodUid::parse_uuid(text).unwrap_or_else(|| hashed_uid(text))
}

fn hashed_uid(text: &str) -> PodUid {
    PodUid(xxhash_rust::xxh3::xxh3_128(text.as_bytes()))
}

fn timestamp(fields: &mut Fields, name: &str, out: &mut Problems) -> Option<Time> {
    let text = fields.text(name, out)?;
    match time::parse(&text) {
        Ok(time) => Some(time),
        Err(error) => {
            let remedy = "write it like 2026-11-30T18:49:55Z";
            out.push(FieldProblem::new(
                fields.path_of(name),
                ProblemReason::Invalid,
                error.to_string(),
                remedy,
            ));
            None
        }
    }
}

/// Whole seconds; a negative number is 1, as the API server stores a negative grace (api-side M11).
pub(crate) fn seconds(number: i64) -> Nanos {
    Nanos::secs(u64::try_from(number).unwrap_or(1))
}

fn read_spec(
    value: Value,
    namespace: &Name,
    qos: nodefold_core::resources::QosClass,
    out: &mut Problems,
) -> PodSpec {
    let mut spec = Fields::new("spec", value, out);
    let mut read = |list: ContainerList, spec: &mut Fields| {
        let path = spec.path_of(list.field());
        let items = spec.list(list.field(), out);
        let items = items.into_iter().enumerate();
        items.map(|(i, v)| Arc::new(read_container::read(problem::index(&path, i), v, list, out))).collect()
    };
    let host_ports = host_ports(&spec);
    let init_containers = read(ContainerList::Init, &mut spec);
    let containers: Vec<_> = read(ContainerList::Main, &mut spec);
    let ephemeral_containers = read(ContainerList::Ephemeral, &mut spec);
    if containers.is_empty() && out.is_empty() {
        out.push(FieldProblem::required("spec.containers", "a pod needs at least one container"));
    }
    let volumes = spec.list("volumes", out).into_iter().enumerate();
    let volumes = volumes
        .map(|(i, v)| Arc::new(read_volume::read(problem::index("spec.volumes", i), v, namespace, out)))
        .collect();
    let resources = spec.object("resources", out).map(|mut resources| {
        let read = read_resources(&mut resources, out);
        if !resources.is_empty() {
            spec.keep("resources", Value::Object(resources.into_map()));
        }
        read
    });
    let class = spec.peek("priorityClassName").and_then(Value::as_str).and_then(builtin_priority);
    let priority = spec.integer("priority", out).or(class);
    if priority == Some(0) {
        spec.keep("priority", Value::from(0)); // the core can't tell it from an absent one
    }
    let active_deadline = spec.integer("activeDeadlineSeconds", out).map(seconds);
    let mut read = PodSpec {
        restart_policy: spec.choice("restartPolicy", &RESTART_POLICIES, out).unwrap_or(RestartPolicy::Always),
        init_containers,
        containers,
        ephemeral_containers,
        volumes,
        resources,
        overhead: spec.amounts("overhead", out),
        qos,
        priority: priority.map_or(0, |p| i32::try_from(p).unwrap_or(if p < 0 { i32::MIN } else { i32::MAX })),
        termination_grace: spec
            .integer("terminationGracePeriodSeconds", out)
            .map_or(Nanos::secs(30), seconds),
        active_deadline,
        host_network: spec.flag("hostNetwork", out),
        node_selector: node_selector(&spec, out).into(),
        host_ports: host_ports.into(),
        readiness_gates: readiness_gates(&mut spec, out),
        windows: spec.peek("os").and_then(|os| os.get("name")).and_then(Value::as_str) == Some("windows"),
        rest: spec.rest(),
    };
    share::texts(&mut read);
    read
}

pub(crate) fn read_resources(resources: &mut Fields, out: &mut Problems) -> Resources {
    Resources { requests: resources.amounts("requests", out), limits: resources.amounts("limits", out) }
}

fn readiness_gates(spec: &mut Fields, out: &mut Problems) -> Few<Name> {
    let path = spec.path_of("readinessGates");
    let gates = spec.list("readinessGates", out).into_iter().enumerate();
    gates
        .map(|(i, gate)| {
            let mut gate = Fields::new(problem::index(&path, i), gate, out);
            gate.required_text("conditionType", "name a condition", out)
        })
        .collect()
}

/// The priority of the two classes that every cluster has: the node must know its own critical pods by them where no
/// admission plugin wrote `priority`.
fn builtin_priority(class: &str) -> Option<i64> {
    match class {
        "system-cluster-critical" => Some(2_000_000_000),
        "system-node-critical" => Some(2_000_001_000),
        _ => None,
    }
}

fn host_ports(spec: &Fields) -> Vec<HostPort> {
    let mut ports = Vec::new();
    for list in ["initContainers", "containers"] {
        for container in spec.peek(list).and_then(Value::as_array).into_iter().flatten() {
            for port in container.get("ports").and_then(Value::as_array).into_iter().flatten() {
                let number = port.get("hostPort").and_then(Value::as_u64).and_then(|p| u16::try_from(p).ok());
                let text = |name: &str| port.get(name).and_then(Value::as_str);
                if let Some(port) = number.filter(|&p| p != 0) {
                    let protocol = text("protocol").unwrap_or("TCP").into();
                    ports.push(HostPort { protocol, host_ip: text("hostIP").unwrap_or("").into(), port });
                }
            }
        }
    }
    ports
}

/// `nodeSelector` and the required node affinity as alternatives of requirements. A selector alone is one term; with
/// an affinity, it is part of every term. An empty term matches nothing (as in Kubernetes), so it is left
/// out; if no term is left, one that nothing can meet stands for them.
fn node_selector(spec: &Fields, out: &mut Problems) -> Vec<NodeSelectorTerm> {
    let mut common = Vec::new();
    if let Some(selector) = spec.peek("nodeSelector") {
        let Some(labels) = selector.as_object() else {
            out.push(wrong_type("spec.nodeSelector", "a mapping", selector));
            return Vec::new();
        };
        for (key, value) in labels {
            if let Some(value) = string(&problem::key("spec.nodeSelector", key), value, out) {
                let values = vec![value.into()];
                common.push(NodeRequirement { key: key.as_str().into(), operator: NodeOperator::In, values });
            }
        }
        common.sort_by(|a, b| a.key.cmp(&b.key));
    }
    let path = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    let required = spec.peek("affinity").and_then(|affinity| {
        affinity.pointer("/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution")
    });
    let Some(required) = required.filter(|r| !r.is_null()) else {
        return if common.is_empty() { Vec::new() } else { vec![NodeSelectorTerm { requirements: common }] };
    };
    let mut alternatives = Vec::new();
    let terms = required.get("nodeSelectorTerms").and_then(Value::as_array);
    for (i, term) in terms.into_iter().flatten().enumerate() {
        let mut term = Fields::new(problem::index(path, i), term.clone(), out);
        let mut requirements = Vec::new();
        for list in ["matchExpressions", "matchFields"] {
            let path = term.path_of(list);
            for (k, requirement) in term.list(list, out).into_iter().enumerate() {
                requirements.extend(node_requirement(problem::index(&path, k), requirement, out));
            }
        }
        if !requirements.is_empty() {
            requirements.extend(common.iter().cloned());
            alternatives.push(NodeSelectorTerm { requirements });
        }
    }
    if alternatives.is_empty() {
        let never =
            NodeRequirement { key: "metadata.name".into(), operator: NodeOperator::In, values: Vec::new() };
        alternatives.push(NodeSelectorTerm { requirements: vec![never] });
    }
    alternatives
}

fn node_requirement(path: String, value: Value, out: &mut Problems) -> Option<NodeRequirement> {
    let mut fields = Fields::new(path, value, out);
    let operators = [
        ("In", NodeOperator::In),
        ("NotIn", NodeOperator::NotIn),
        ("Exists", NodeOperator::Exists),
        ("DoesNotExist", NodeOperator::DoesNotExist),
        ("Gt", NodeOperator::Gt),
        ("Lt", NodeOperator::Lt),
    ];
    let key = fields.required_text("key", "name a label", out);
    let operator = fields.choice("operator", &operators, out)?;
    let path = fields.path_of("values");
    let mut values: Vec<Name> = Vec::new();
    for (i, value) in fields.list("values", out).into_iter().enumerate() {
        values.extend(string(&problem::index(&path, i), &value, out).map(Name::from));
    }
    Some(NodeRequirement { key, operator, values })
}
