//! M8–M12 and W13: what of a spec may change on the pod itself. `/dynamic` allows the same and more.

use super::{Errors, Review};
use crate::view::{at, list, name, spec_list, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// The whole spec, for an update of the pod itself.
pub(super) fn spec(review: &Review<'_>, errors: &mut Errors) {
    for list in ["containers", "initContainers"] {
        let (before, after) = (spec_list(review.old, list), spec_list(review.new, list));
        if before.len() != after.len() {
            let detail = "pod updates may not add or remove containers; use pods/dynamic";
            errors.of("M12").forbidden(format!("spec.{list}"), detail);
            return;
        }
        let same = |(o, n): (&Value, &Value)| name(o) == name(n) && without_image(o) == without_image(n);
        if !before.iter().zip(after).all(same) {
            errors.of("W13").forbidden("spec", ONLY);
        }
    }
    let (old, new) = (at(review.old, "spec"), at(review.new, "spec"));
    mutable_fields(old, new, errors);
    rest_of_spec(old, new, &["containers", "initContainers"], errors);
}

const ONLY: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

fn without_image(container: &Value) -> Value {
    let mut rest = container.clone();
    if let Some(fields) = rest.as_object_mut() {
        fields.shift_remove("image");
    }
    rest
}

/// M8–M10.
pub(super) fn mutable_fields(old: &Value, new: &Value, errors: &mut Errors) {
    let field = "spec.activeDeadlineSeconds";
    match (at(old, "activeDeadlineSeconds").as_i64(), at(new, "activeDeadlineSeconds").as_i64()) {
        (Some(before), Some(now)) if now > before => {
            errors.of("M8").invalid(field, &Value::from(now), "must be less than or equal to previous value");
        }
        (Some(_), None) => {
            let detail = "must not update from a positive integer to nil value";
            errors.of("M8").invalid(field, &Value::Null, detail);
        }
        // Below one is refused in any pod (`standard`).
        (Some(_) | None, Some(_)) | (None, None) => {}
    }

    let like = |stored: &Value, toleration: &Value| {
        // How long it is tolerated may change.
        ["key", "operator", "value", "effect"].iter().all(|f| at(stored, f) == at(toleration, f))
    };
    let tolerations = list(new, "tolerations");
    if !list(old, "tolerations").iter().all(|stored| tolerations.iter().any(|t| like(stored, t))) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.of("M9").forbidden("spec.tolerations", detail);
    }
    for (i, gate) in list(new, "schedulingGates").iter().enumerate() {
        if !list(old, "schedulingGates").contains(gate) {
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{}'", text(gate, "name"));
            errors.of("M10").forbidden(format!("spec.schedulingGates[{i}].name"), &detail);
        }
    }
}

/// M11 and M12: whatever is neither mutable nor judged `elsewhere` stays as it is.
pub(super) fn rest_of_spec(old: &Value, new: &Value, elsewhere: &[&str], errors: &mut Errors) {
    let mutable = ["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    let keys = |spec: &Value| -> Vec<String> {
        spec.as_object().into_iter().flat_map(|o| o.keys().cloned()).collect()
    };
    let unlike = |field: &str| {
        let (before, after) = (at(old, field), at(new, field));
        let shortened = field == "terminationGracePeriodSeconds"
            && before.as_i64().is_some_and(|s| s < 0)
            && after.as_i64() == Some(1);
        before != after && !shortened
    };
    let all = keys(old).into_iter().chain(keys(new));
    let judged = |k: &String| mutable.contains(&k.as_str()) || elsewhere.contains(&k.as_str());
    let changed: BTreeSet<String> = all.filter(|k| !judged(k) && unlike(k)).collect();
    if !changed.is_empty() {
        let changed: Vec<String> = changed.iter().map(|k| format!("spec.{k}")).collect();
        errors.of("M12").forbidden("spec", &format!("{ONLY}\nchanged: {}", changed.join(", ")));
    }
}
