//! ResourceQuota: what a namespace's pods may ask for together.
//!
//! A change is charged its difference. A pod counts as the larger of what it desires and what its status says the node
//! still holds for it (api-side §6.3 question 15), removed containers that haven't ended included: a removal gives nothing back
//! before it is carried out.

use super::attributes::{Attributes, Operation};
use super::cluster::Cluster;
use crate::amounts::{self, Amounts};
use crate::response::Status;
use crate::view::{at, is_terminal, list, name, named, spec_list, status_list, text};
use nodefold_core::resources::QosClass;
use nodefold_k8s::qos_class;
use nodefold_k8s::quantity::Quantity;
use serde_json::{Value, json};

pub(super) fn check(request: &Attributes<'_>, cluster: Cluster<'_>) -> Result<(), Status> {
    let part = match request.operation {
        Operation::Create => request.subresource.is_empty(),
        Operation::Update => matches!(request.subresource, "dynamic" | "resize"),
        Operation::Delete => false,
    };
    if request.resource != "pods" || !part {
        return Ok(());
    }
    for quota in cluster.in_namespace("ResourceQuota", request.namespace) {
        if in_scope(quota, request.object) {
            one(request, quota, cluster)?;
        }
    }
    Ok(())
}

fn one(request: &Attributes<'_>, quota: &Value, cluster: Cluster<'_>) -> Result<(), Status> {
    let refuse = |why: String| Err(Status::forbidden(request.resource, request.name, &why));
    let hard = amounts::read(at(at(quota, "spec"), "hard"));
    let quota_name = name(at(quota, "metadata"));
    let unstated = unstated(request, &hard);
    if !unstated.is_empty() {
        return refuse(format!("failed quota: {quota_name}: must specify {}", unstated.join("; ")));
    }
    let before = if in_scope(quota, request.old_object) { usage(request.old_object) } else { Amounts::new() };
    let used = used(quota, cluster, request.namespace);
    let nothing = Quantity::from_units(0);
    let (mut asked, mut held, mut limited) = (Vec::new(), Vec::new(), Vec::new());
    for (resource, after) in usage(request.object) {
        let Some(most) = hard.get(&resource) else { continue };
        let more = after.minus(before.get(&resource).copied().unwrap_or(nothing));
        let used = used.get(&resource).copied().unwrap_or(nothing);
        if more.is_positive() && used.plus(more) > *most {
            asked.push(format!("{resource}={more}"));
            held.push(format!("{resource}={used}"));
            limited.push(format!("{resource}={most}"));
        }
    }
    if asked.is_empty() {
        return Ok(());
    }
    refuse(format!(
        "exceeded quota: {quota_name}, requested: {}, used: {}, limited: {}",
        asked.join(","),
        held.join(","),
        limited.join(",")
    ))
}

/// What is used: as the quota's status says, else the stored pods' together.
fn used(quota: &Value, cluster: Cluster<'_>, namespace: &str) -> Amounts {
    let stated = amounts::read(at(at(quota, "status"), "used"));
    if !stated.is_empty() {
        return stated;
    }
    let mut sum = Amounts::new();
    for pod in cluster.in_namespace("Pod", namespace).filter(|pod| in_scope(quota, pod)) {
        for (resource, amount) in usage(pod) {
            sum.entry(resource).and_modify(|a| *a = a.plus(amount)).or_insert(amount);
        }
    }
    sum
}

/// Under a quota of cpu or memory each new container states what it asks for: resource and names of those that don't.
fn unstated(request: &Attributes<'_>, hard: &Amounts) -> Vec<String> {
    let stored = |list: &str, container: &Value| named(spec_list(request.old_object, list), name(container));
    let new = |list| spec_list(request.object, list).iter().filter(move |c| stored(list, c).is_none());
    let by_pod =
        |list: &str, resource: &str| amounts::stated(at(request.object, "spec"), list).contains_key(resource);
    let mut told = Vec::new();
    for key in hard.keys() {
        let (list, resource) = match key.split_once('.') {
            Some((list @ ("requests" | "limits"), resource)) => (list, resource),
            _ => ("requests", key.as_str()),
        };
        if !matches!(resource, "cpu" | "memory") || by_pod(list, resource) {
            continue;
        }
        let silent = new("initContainers").chain(new("containers"));
        let silent = silent.filter(|c| !amounts::stated(c, list).contains_key(resource)).map(name);
        let names: Vec<&str> = silent.collect();
        if !names.is_empty() {
            told.push(format!("{key} for: {}", names.join(",")));
        }
    }
    told
}

/// What a pod is charged, under every name that a quota may limit.
fn usage(pod: &Value) -> Amounts {
    let mut all = Amounts::new();
    if pod.is_null() || is_terminal(text(at(pod, "status"), "phase")) {
        return all;
    }
    for key in ["pods", "count/pods"] {
        all.insert(key.to_owned(), Quantity::from_units(1));
    }
    let held = with_what_is_held(pod);
    for (resource, amount) in amounts::of_pod(&held, "requests") {
        if matches!(resource.as_str(), "cpu" | "memory" | "ephemeral-storage")
            || resource.starts_with("hugepages-")
        {
            all.insert(resource.clone(), amount);
        }
        all.insert(format!("requests.{resource}"), amount);
    }
    for (resource, amount) in amounts::of_pod(pod, "limits") {
        all.insert(format!("limits.{resource}"), amount);
    }
    all
}

/// The pod with each container's requests raised to what its status says is allocated, and with removed containers that
/// haven't ended.
fn with_what_is_held(pod: &Value) -> Value {
    let mut held = pod.clone();
    let statuses = status_list(pod, "containerStatuses");
    let allocated = |status: &Value| {
        let mut all = amounts::read(at(at(status, "resources"), "requests"));
        raise(&mut all, &amounts::read(at(status, "allocatedResources")));
        all
    };
    let containers = held.get_mut("spec").and_then(|spec| spec.get_mut("containers"));
    let Some(containers) = containers.and_then(Value::as_array_mut) else { return held };
    for container in containers.iter_mut() {
        if let Some(status) = named(statuses, name(container)) {
            let mut requests = amounts::stated(container, "requests");
            raise(&mut requests, &allocated(status));
            // Nothing else of the copy is looked at.
            *container = json!({"name": name(container), "restartPolicy": text(container, "restartPolicy"),
                "resources": {"requests": to_json(&requests)}});
        }
    }
    for status in statuses {
        let ended = !at(at(status, "state"), "terminated").is_null();
        if !ended && named(spec_list(pod, "containers"), name(status)).is_none() {
            containers
                .push(json!({"name": name(status), "resources": {"requests": to_json(&allocated(status))}}));
        }
    }
    held
}

fn raise(to: &mut Amounts, by: &Amounts) {
    for (resource, amount) in by {
        to.entry(resource.clone()).and_modify(|a| *a = (*a).max(*amount)).or_insert(*amount);
    }
}

fn to_json(amounts: &Amounts) -> Value {
    amounts.iter().map(|(resource, amount)| (resource.clone(), json!(amount.to_string()))).collect()
}

/// The pod is in every scope of the quota.
fn in_scope(quota: &Value, pod: &Value) -> bool {
    let spec = at(quota, "spec");
    if pod.is_null() {
        return false;
    }
    let plain = list(spec, "scopes").iter().filter_map(Value::as_str).all(|scope| has_scope(scope, pod));
    let selected = list(at(spec, "scopeSelector"), "matchExpressions").iter().all(|expression| {
        let scope = text(expression, "scopeName");
        let class = text(at(pod, "spec"), "priorityClassName");
        let among = list(expression, "values").iter().any(|value| value == class);
        match (text(expression, "operator"), scope) {
            ("In", "PriorityClass") => among,
            ("NotIn", "PriorityClass") => !among,
            ("DoesNotExist", _) => !has_scope(scope, pod),
            _ => has_scope(scope, pod),
        }
    });
    plain && selected
}

fn has_scope(scope: &str, pod: &Value) -> bool {
    let spec = at(pod, "spec");
    let bounded = at(spec, "activeDeadlineSeconds").as_i64().is_some_and(|s| s >= 0);
    match scope {
        "BestEffort" => qos_class(pod) == QosClass::BestEffort,
        "NotBestEffort" => qos_class(pod) != QosClass::BestEffort,
        "Terminating" => bounded,
        "NotTerminating" => !bounded,
        "PriorityClass" => !text(spec, "priorityClassName").is_empty(),
        "CrossNamespacePodAffinity" => crosses_namespaces(at(spec, "affinity")),
        _ => false,
    }
}

/// Some term of affinity between pods looks into other namespaces.
fn crosses_namespaces(affinity: &Value) -> bool {
    let crosses =
        |term: &Value| !list(term, "namespaces").is_empty() || !at(term, "namespaceSelector").is_null();
    ["podAffinity", "podAntiAffinity"].iter().map(|kind| at(affinity, kind)).any(|kind| {
        list(kind, "requiredDuringSchedulingIgnoredDuringExecution").iter().any(crosses)
            || list(kind, "preferredDuringSchedulingIgnoredDuringExecution")
                .iter()
                .any(|weighted| crosses(at(weighted, "podAffinityTerm")))
    })
}
