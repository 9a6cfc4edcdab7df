//! Metadata: names, labels, and what never changes (M14). Another name, namespace or UID in the body never
//! gets here: `update` answers those with 400 and 409 (api-side §0, stages 3 and 4).

use super::Errors;
use super::names::{label_problem, qualified_name_problem, subdomain_problem};
use crate::view::{at, is_deleting, list, text};
use serde_json::Value;

/// A new object's name.
pub(super) fn identity(object: &Value, errors: &mut Errors) {
    errors.judge("");
    match text(at(object, "metadata"), "name") {
        "" => errors.required("metadata.name", "name or generateName is required"),
        name => {
            if let Some(problem) = subdomain_problem(name) {
                errors.invalid("metadata.name", &Value::from(name), problem);
            }
        }
    }
}

/// Labels and annotations are well formed.
pub(super) fn labels(object: &Value, errors: &mut Errors) {
    errors.judge("M14");
    for field in ["labels", "annotations"] {
        for (key, value) in at(at(object, "metadata"), field).as_object().into_iter().flatten() {
            if let Some(problem) = qualified_name_problem(key) {
                errors.invalid(format!("metadata.{field}"), &Value::from(key.as_str()), problem);
            }
            if let Some(problem) = value.as_str().and_then(label_problem).filter(|_| field == "labels") {
                errors.invalid(format!("metadata.{field}"), value, problem);
            }
        }
    }
}

/// M14.
pub(super) fn update(old: &Value, new: &Value, errors: &mut Errors) {
    labels(new, errors);
    let (old_metadata, new_metadata) = (at(old, "metadata"), at(new, "metadata"));
    for field in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if at(old_metadata, field) != at(new_metadata, field) {
            errors.of("M14").invalid(
                format!("metadata.{field}"),
                at(new_metadata, field),
                "field is immutable",
            );
        }
    }
    let finalizers = list(old_metadata, "finalizers");
    if is_deleting(old) && list(new_metadata, "finalizers").iter().any(|f| !finalizers.contains(f)) {
        errors.of("M14").forbidden(
            "metadata.finalizers",
            "no new finalizers can be added if the object is being deleted",
        );
    }
}
