//! LimitRanger: defaults and bounds of a namespace's LimitRanges.
//!
//! On `/dynamic` (api-side §2.4) defaults go into added containers only: into one that stays they would be a resize that
//! nobody asked for. Bounds are checked over all.

use super::attributes::{Attributes, Operation};
use super::cluster::Cluster;
use crate::amounts::{self, Amounts};
use crate::response::Status;
use crate::view::{at, list, name, named, spec_list, text};
use nodefold_k8s::containers_together;
use nodefold_k8s::quantity::Quantity;
use serde_json::{Value, json};

/// It acts on this request.
fn acts_on(request: &Attributes<'_>) -> bool {
    let part = match request.operation {
        Operation::Create => request.subresource.is_empty(),
        Operation::Update => matches!(request.subresource, "dynamic" | "resize"),
        Operation::Delete => false,
    };
    request.resource == "pods" && part
}

/// Defaults of one namespace, the LimitRanges' own defaults included.
fn container_defaults(cluster: Cluster<'_>, namespace: &str) -> (Amounts, Amounts) {
    let (mut limits, mut requests) = (Amounts::new(), Amounts::new());
    for item in items(cluster, namespace, "Container") {
        let (max, min) = (amounts::read(at(item, "max")), amounts::read(at(item, "min")));
        let mut default = amounts::read(at(item, "default"));
        let mut default_request = amounts::read(at(item, "defaultRequest"));
        // A maximum without a default is the default; that, or else a minimum, is what is asked for.
        for (resource, amount) in max {
            default.entry(resource).or_insert(amount);
        }
        for (resource, amount) in default.iter().map(|(r, a)| (r.clone(), *a)).chain(min) {
            default_request.entry(resource).or_insert(amount);
        }
        for (resource, amount) in default {
            limits.entry(resource).or_insert(amount);
        }
        for (resource, amount) in default_request {
            requests.entry(resource).or_insert(amount);
        }
    }
    (limits, requests)
}

fn items<'a>(cluster: Cluster<'a>, namespace: &'a str, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let all = cluster.in_namespace("LimitRange", namespace);
    all.flat_map(|range| list(at(range, "spec"), "limits")).filter(move |item| text(item, "type") == kind)
}

/// Fills defaults in. The names of the containers that got some.
pub(super) fn fill_in(request: &Attributes<'_>, cluster: Cluster<'_>, object: &mut Value) -> Vec<String> {
    if !acts_on(request) || request.subresource == "resize" {
        return Vec::new();
    }
    let (limits, requests) = container_defaults(cluster, request.namespace);
    let lists: &[&str] = if request.operation == Operation::Create {
        &["initContainers", "containers"]
    } else {
        &["containers"]
    };
    let mut filled = Vec::new();
    for list in lists {
        let stored = spec_list(request.old_object, list);
        let containers = object.get_mut("spec").and_then(|spec| spec.get_mut(*list));
        for container in containers.and_then(Value::as_array_mut).into_iter().flatten() {
            if named(stored, name(container)).is_none() && fill(container, &limits, &requests) {
                filled.push(name(container).to_owned());
            }
        }
    }
    filled
}

/// What the container doesn't state. Whether anything was missing.
fn fill(container: &mut Value, limits: &Amounts, requests: &Amounts) -> bool {
    let mut changed = false;
    for (list, defaults) in [("limits", limits), ("requests", requests)] {
        for (resource, amount) in defaults {
            let stated = object(container, "resources").and_then(|resources| object(resources, list));
            let Some(stated) = stated.and_then(Value::as_object_mut) else { continue };
            if stated.get(resource).is_none_or(Value::is_null) {
                stated.insert(resource.clone(), json!(amount.to_string()));
                changed = true;
            }
        }
    }
    changed
}

/// The object in a field, made if there is none; nothing if something else is there.
fn object<'v>(of: &'v mut Value, field: &str) -> Option<&'v mut Value> {
    let value = of.as_object_mut()?.entry(field).or_insert(Value::Null);
    if value.is_null() {
        *value = json!({});
    }
    Some(value).filter(|value| value.is_object())
}

/// Minimum, maximum and ratio of each container and of the pod.
pub(super) fn check(request: &Attributes<'_>, cluster: Cluster<'_>) -> Result<(), Status> {
    if !acts_on(request) {
        return Ok(());
    }
    let pod = request.object;
    let mut wrong = Vec::new();
    for item in items(cluster, request.namespace, "Container") {
        for container in spec_list(pod, "containers").iter().chain(spec_list(pod, "initContainers")) {
            let (requests, limits) =
                (amounts::stated(container, "requests"), amounts::stated(container, "limits"));
            bounds(item, "Container", &requests, &limits, &mut wrong);
        }
    }
    for item in items(cluster, request.namespace, "Pod") {
        let together = |list| {
            at(pod, "spec").as_object().map(|spec| containers_together(spec, list)).unwrap_or_default()
        };
        bounds(item, "Pod", &together("requests"), &together("limits"), &mut wrong);
    }
    let mut told: Vec<String> = Vec::new();
    for one in wrong {
        if !told.contains(&one) {
            told.push(one);
        }
    }
    match told.as_slice() {
        [] => Ok(()),
        [one] => Err(Status::forbidden(request.resource, request.name, one)),
        many => {
            let why = format!("[{}]", many.join(", "));
            Err(Status::forbidden(request.resource, request.name, &why))
        }
    }
}

fn bounds(item: &Value, kind: &str, requests: &Amounts, limits: &Amounts, wrong: &mut Vec<String>) {
    for (resource, least) in amounts::read(at(item, "min")) {
        let what = format!("minimum {resource} usage per {kind} is {least}");
        match (requests.get(&resource), limits.get(&resource)) {
            (None, _) => wrong.push(format!("{what}.  No request is specified")),
            (Some(request), _) if *request < least => wrong.push(format!("{what}, but request is {request}")),
            (Some(_), Some(limit)) if *limit < least => wrong.push(format!("{what}, but limit is {limit}")),
            (Some(_), Some(_) | None) => {}
        }
    }
    for (resource, most) in amounts::read(at(item, "max")) {
        let what = format!("maximum {resource} usage per {kind} is {most}");
        match (requests.get(&resource), limits.get(&resource)) {
            (_, None) => wrong.push(format!("{what}.  No limit is specified")),
            (_, Some(limit)) if *limit > most => wrong.push(format!("{what}, but limit is {limit}")),
            (Some(request), Some(_)) if *request > most => {
                wrong.push(format!("{what}, but request is {request}"));
            }
            (Some(_) | None, Some(_)) => {}
        }
    }
    for (resource, most) in amounts::read(at(item, "maxLimitRequestRatio")) {
        let what = format!("{resource} max limit to request ratio per {kind} is {most}");
        let positive = |of: &Amounts| of.get(&resource).copied().filter(|a| a.is_positive());
        match (positive(requests), positive(limits)) {
            (None, _) => wrong.push(format!("{what}, but no request is specified or request is 0")),
            (Some(_), None) => wrong.push(format!("{what}, but no limit is specified or limit is 0")),
            (Some(request), Some(limit)) if exceeds(limit, request, most) => {
                let ratio = limit.milli() as f64 / request.milli() as f64;
                wrong.push(format!("{what}, but provided ratio is {ratio:.6}"));
            }
            (Some(_), Some(_)) => {}
        }
    }
}

/// `limit / request > most`, in whole numbers.
fn exceeds(limit: Quantity, request: Quantity, most: Quantity) -> bool {
    u128::from(limit.milli()) * 1000 > u128::from(most.milli()) * u128::from(request.milli())
}
