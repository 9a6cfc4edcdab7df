//! S32 and C11: what a container asks for.

use crate::amounts::stated;
use crate::validate::Errors;
use crate::validate::names::{is_dns_label, is_qualified_name, label, qualified_name_problems};
use crate::view::{at, list, name, named, spec_list, text};
use nodefold_k8s::quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeSet;

/// A container's.
pub(super) fn all(pod: &Value, container: &Value, path: &str, errors: &mut Errors) {
    errors.judge("S32");
    let path = format!("{path}.resources");
    requirements(container, &path, container_resource, errors);
    claims(pod, at(container, "resources"), &path, errors);
}

/// Names, signs, and that requests fit the limits. `named` tells what is wrong with a resource's name there.
pub(super) fn requirements(
    owner: &Value,
    path: &str,
    named: fn(&str, &str, &mut Errors),
    errors: &mut Errors,
) {
    let (limits, requests) = (stated(owner, "limits"), stated(owner, "requests"));
    for (resource, amount) in &limits {
        one(resource, *amount, &format!("{path}.limits[{resource}]"), named, errors);
    }
    let limits_path = format!("{path}.limits");
    let requests_path = format!("{path}.requests");
    for (resource, amount) in &requests {
        one(resource, *amount, &format!("{requests_path}[{resource}]"), named, errors);
        let asked = Value::from(amount.to_string());
        match limits.get(resource) {
            Some(limit) if amount != limit && !may_overcommit(resource) => {
                let detail = format!("must be equal to {resource} limit of {limit}");
                errors.invalid(requests_path.as_str(), &asked, &detail);
            }
            Some(limit) if amount > limit => {
                let detail = format!("must be less than or equal to {resource} limit of {limit}");
                errors.invalid(requests_path.as_str(), &asked, &detail);
            }
            None if !may_overcommit(resource) => {
                errors.required(limits_path.as_str(), "Limit must be set for non overcommitable resources");
            }
            Some(_) | None => {}
        }
    }
    let mut all = limits.keys().chain(requests.keys());
    let computes = all.clone().any(|r| matches!(r.as_str(), "cpu" | "memory"));
    if !computes && all.any(|r| r.starts_with(HUGEPAGES)) {
        errors.forbidden(path, "HugePages require cpu or memory");
    }
}

const HUGEPAGES: &str = "hugepages-";

fn one(
    resource: &str,
    amount: Quantity,
    path: &str,
    named: fn(&str, &str, &mut Errors),
    errors: &mut Errors,
) {
    named(resource, path, errors);
    let told = Value::from(amount.to_string());
    if amount.is_negative() {
        errors.invalid(path, &told, "must be greater than or equal to 0");
    }
    if !is_native(resource) && Quantity::from_units(amount.units()) != amount && !amount.is_negative() {
        errors.invalid(path, &told, "must be an integer");
    }
    let page = resource.strip_prefix(HUGEPAGES).and_then(|size| nodefold_k8s::quantity::parse(size).ok());
    if let Some(page) = page.filter(|page| page.is_positive())
        && (!amount.is_positive() || !amount.units().is_multiple_of(page.units()))
    {
        let detail = format!("{amount} is not positive integer multiple of {resource}");
        errors.invalid(path, &told, &detail);
    }
}

/// A resource that a container may ask for.
fn container_resource(resource: &str, path: &str, errors: &mut Errors) {
    let value = Value::from(resource);
    if !is_qualified_name(resource) {
        for problem in qualified_name_problems(resource) {
            errors.invalid(path, &value, &problem);
        }
        return;
    }
    let standard =
        matches!(resource, "cpu" | "memory" | "ephemeral-storage") || resource.starts_with(HUGEPAGES);
    if !resource.contains('/') {
        if !standard {
            errors.invalid(path, &value, "must be a standard resource type or fully qualified");
            errors.invalid(path, &value, "must be a standard resource for containers");
        }
    } else if !is_native(resource) && resource.starts_with("requests.") {
        errors.invalid(path, &value, "doesn't follow extended resource name standard");
    }
}

/// Kubernetes' own, not one of an extension's.
fn is_native(resource: &str) -> bool {
    !resource.contains('/') || resource.contains("kubernetes.io/")
}

fn may_overcommit(resource: &str) -> bool {
    is_native(resource) && !resource.starts_with(HUGEPAGES)
}

/// C11.
fn claims(pod: &Value, resources: &Value, path: &str, errors: &mut Errors) {
    errors.judge("C11");
    let known = spec_list(pod, "resourceClaims");
    let mut seen: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (k, claim) in list(resources, "claims").iter().enumerate() {
        let path = format!("{path}.claims[{k}]");
        let (wanted, request) = (name(claim), text(claim, "request"));
        if wanted.is_empty() {
            errors.of("C11").required(path, "");
            continue;
        }
        if !request.is_empty() && !is_dns_label(request) {
            label(request, &format!("{path}.request"), errors);
        }
        let overlaps = |other: &(&str, &str)| {
            other.0 == wanted && (other.1 == request || other.1.is_empty() || request.is_empty())
        };
        if seen.iter().any(overlaps) {
            errors.of("C11").duplicate(path.as_str(), wanted, "");
        }
        seen.insert((wanted, request));
        if named(known, wanted).is_none() {
            let names: BTreeSet<&str> = known.iter().map(name).collect();
            let names: Vec<&str> = names.into_iter().collect();
            let detail = match names.as_slice() {
                [] => "must be one of the names in pod.spec.resourceClaims which is empty".to_owned(),
                some => format!("must be one of the names in pod.spec.resourceClaims: {}", some.join(", ")),
            };
            errors.of("C11").not_found_because(path, wanted, &detail);
        }
    }
}
