//! M and D: what may change in a container that stays, and in the rest of the spec.
//!
//! Images and amounts of cpu and memory may; mounts only under `dynamicVolumePolicy`, as the *stored*
//! container has it (D3: otherwise the opt-in would be void). Nothing else: KEP-5972 has "no general
//! container mutation".

use super::{Errors, Review, main_resource};
use crate::view::{at, is_sidecar, list, name, named, spec_list, text};
use nodefold_k8s::quantity::Quantity;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Containers that stay, and init containers.
pub(super) fn containers(review: &Review<'_>, errors: &mut Errors) {
    let (before, after) = (spec_list(review.old, "containers"), spec_list(review.new, "containers"));
    let mut seen = BTreeSet::new();
    for (i, new) in after.iter().enumerate() {
        let first_of_its_name = seen.insert(name(new));
        if let Some(old) = named(before, name(new)).filter(|_| first_of_its_name) {
            container(review, old, new, &format!("spec.containers[{i}]"), errors);
        }
    }
    for (j, new) in spec_list(review.new, "initContainers").iter().enumerate() {
        if let Some(old) = named(spec_list(review.old, "initContainers"), name(new)) {
            init_container(old, new, &format!("spec.initContainers[{j}]"), errors);
        }
    }
}

/// The spec outside of containers and volumes.
pub(super) fn spec(review: &Review<'_>, errors: &mut Errors) {
    let (old, new) = (at(review.old, "spec"), at(review.new, "spec"));
    main_resource::mutable_fields(old, new, errors);
    if at(old, "resources") != at(new, "resources") {
        if review.config.pod_level_resize {
            let unlike = resources(at(old, "resources"), at(new, "resources"), "spec.resources", errors);
            if unlike {
                errors.of("M13").forbidden("spec.resources", "only requests and limits may change");
            }
        } else {
            errors.of("M13").forbidden("spec.resources", "pod-level resources can't be resized here");
        }
    }
    let elsewhere =
        ["containers", "initContainers", "ephemeralContainers", "volumes", "resourceClaims", "resources"];
    main_resource::rest_of_spec(old, new, &elsewhere, errors);
}

/// Some container that stays has other mounts.
pub(super) fn mounts_change(old: &Value, new: &Value) -> bool {
    let after = spec_list(new, "containers");
    spec_list(old, "containers").iter().any(|o| named(after, name(o)).is_some_and(|n| mounts(o) != mounts(n)))
}

/// Some container that stays, or the pod, has other resources.
pub(super) fn resources_change(old: &Value, new: &Value) -> bool {
    let of = |owner| at(owner, "resources");
    let changed = |list| {
        let after = spec_list(new, list);
        spec_list(old, list).iter().any(|o| named(after, name(o)).is_some_and(|n| of(o) != of(n)))
    };
    changed("containers") || changed("initContainers") || of(at(old, "spec")) != of(at(new, "spec"))
}

fn container(review: &Review<'_>, old: &Value, new: &Value, path: &str, errors: &mut Errors) {
    let mut unlike =
        resources(at(old, "resources"), at(new, "resources"), &format!("{path}.resources"), errors);
    if at(old, "resizePolicy") != at(new, "resizePolicy") {
        errors.of("M5").forbidden(format!("{path}.resizePolicy"), "field is immutable");
    }
    if mounts(old) != mounts(new) {
        let field = format!("{path}.volumeMounts");
        if !review.gates.dynamic_volumes {
            let detail = "mounts are immutable: feature gate DynamicNodeLocalEphemeralVolumes is off";
            errors.of("W12").forbidden(field, detail);
        } else if policy(old) != "RestartContainer" {
            let detail = "mounts may change only with dynamicVolumePolicy.restartPolicy: RestartContainer";
            errors.of("M6").forbidden(field, detail);
        }
    }
    // As Go compares pointers: an empty policy is not the same as none.
    if at(old, "dynamicVolumePolicy") != at(new, "dynamicVolumePolicy") {
        errors.of("D3").forbidden(format!("{path}.dynamicVolumePolicy"), "field is immutable");
    }
    let judged = ["image", "resources", "resizePolicy", "volumeMounts", "dynamicVolumePolicy"];
    unlike |= differ_beside(old, new, &judged);
    if unlike {
        let detail = "only image, resources and volumeMounts of a container that stays may change";
        errors.of("M7").forbidden(path, detail);
    }
}

fn init_container(old: &Value, new: &Value, path: &str, errors: &mut Errors) {
    if mounts(old) != mounts(new) {
        errors.of("W11").forbidden(format!("{path}.volumeMounts"), "mounts of init containers are immutable");
    }
    let mut unlike = match is_sidecar(old) {
        true => resources(at(old, "resources"), at(new, "resources"), &format!("{path}.resources"), errors),
        false => at(old, "resources") != at(new, "resources"),
    };
    unlike |= differ_beside(old, new, &["image", "resources", "volumeMounts"]);
    if unlike {
        let detail = "only images, and resources of sidecars, may change in init containers";
        errors.of("M12").forbidden("spec", detail);
    }
}

/// M3 and M4. Whether something beside requests and limits differs, which is for the caller to tell.
fn resources(old: &Value, new: &Value, path: &str, errors: &mut Errors) -> bool {
    for amounts in ["requests", "limits"] {
        let (before, after) = (at(old, amounts), at(new, amounts));
        let names = |value: &Value| -> Vec<String> {
            value.as_object().into_iter().flat_map(|o| o.keys().cloned()).collect()
        };
        let resizable = |name: &String| matches!(name.as_str(), "cpu" | "memory");
        if names(before).iter().any(|n| resizable(n) && after.get(n).is_none()) {
            let detail = format!("resource {amounts} cannot be removed");
            errors.of("M3").forbidden(format!("{path}.{amounts}"), &detail);
        }
        let all = names(before).into_iter().chain(names(after));
        if all.filter(|n| !resizable(n)).any(|n| !same_amount(before.get(&n), after.get(&n))) {
            errors.of("M4").forbidden("spec", "only cpu and memory resources are mutable");
        }
    }
    differ_beside(old, new, &["requests", "limits"])
}

fn same_amount(a: Option<&Value>, b: Option<&Value>) -> bool {
    let amount = |v: Option<&Value>| v.and_then(|v| Quantity::from_json(v).ok());
    a == b || (amount(a).is_some() && amount(a) == amount(b))
}

/// `dynamicVolumePolicy.restartPolicy`, empty if none.
fn policy(container: &Value) -> &str {
    text(at(container, "dynamicVolumePolicy"), "restartPolicy")
}

/// D7: mounts are a map by path; their order is no change.
fn mounts(container: &Value) -> BTreeMap<&str, &Value> {
    list(container, "volumeMounts").iter().map(|m| (text(m, "mountPath"), m)).collect()
}

/// Some field beside these differs.
fn differ_beside(old: &Value, new: &Value, fields: &[&str]) -> bool {
    let keys =
        |v: &Value| -> Vec<String> { v.as_object().into_iter().flat_map(|o| o.keys().cloned()).collect() };
    let all = keys(old).into_iter().chain(keys(new));
    all.filter(|k| !fields.contains(&k.as_str())).any(|k| at(old, &k) != at(new, &k))
}
