//! S33, S34: the pod's own resources hold what its containers ask for (KEP-2837).

use super::resources::requirements;
use crate::amounts::stated;
use crate::validate::Errors;
use crate::view::{at, spec_list};
use nodefold_k8s::containers_together;
use nodefold_k8s::quantity::Quantity;
use serde_json::Value;

pub(super) fn consistent(pod: &Value, errors: &mut Errors) {
    let spec = at(pod, "spec");
    if at(spec, "resources").is_null() {
        return;
    }
    errors.judge("S32");
    let path = "spec.resources";
    if !at(at(spec, "resources"), "claims").is_null() {
        errors.forbidden("spec.resources.claims", "claims cannot be set for Resources at pod-level");
    }
    requirements(spec, path, pod_resource, errors);
    let (limits, requests) = (stated(spec, "limits"), stated(spec, "requests"));
    let Some(fields) = spec.as_object() else { return };
    for (resource, asked) in containers_together(fields, "requests") {
        let held = requests.get(&resource).copied().unwrap_or(Quantity::from_units(0));
        if is_supported(&resource) && asked > held {
            let detail = format!("must be greater than or equal to aggregate container requests of {asked}");
            errors.of("S33").invalid(
                format!("{path}.requests[{resource}]"),
                &Value::from(held.to_string()),
                &detail,
            );
        }
    }
    for (i, container) in spec_list(pod, "containers").iter().enumerate() {
        for (resource, limit) in stated(container, "limits") {
            let Some(most) = limits.get(&resource).filter(|most| limit > **most) else { continue };
            let detail = format!("must be less than or equal to pod limits of {most}");
            let field = format!("{path}.containers[{i}][{resource}].limits");
            errors.of("S34").invalid(field, &Value::from(limit.to_string()), &detail);
        }
    }
}

fn is_supported(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

fn pod_resource(resource: &str, path: &str, errors: &mut Errors) {
    if !is_supported(resource) {
        errors.not_supported(path, &Value::from(resource), &["cpu", "hugepages-", "memory"]);
    }
}
