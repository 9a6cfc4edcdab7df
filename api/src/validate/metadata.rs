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
            if let Some(problem) = name_problem(object, name) {
                errors.invalid("metadata.name", &Value::from(name), problem);
            }
        }
    }
}

/// Roles are named as paths are (`system:node`), a signer's trust bundle after its signer, everything else as a host.
fn name_problem(object: &Value, name: &str) -> Option<&'static str> {
    match text(object, "kind") {
        "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" => match name {
            "." | ".." => Some("may not be '.' or '..'"),
            name if name.contains(['/', '%']) => Some("may not contain '/' or '%'"),
            _ => None,
        },
        "ClusterTrustBundle" => match text(at(object, "spec"), "signerName") {
            "" => subdomain_problem(name),
            signer => match name.strip_prefix(&format!("{}:", signer.replace('/', ":"))) {
                Some(own) => subdomain_problem(own),
                None => Some("the name begins with its signer's, '/' replaced by ':', and ':'"),
            },
        },
        _ => subdomain_problem(name),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_is_what_its_kind_allows() {
        let problem = |kind: &str, name: &str, signer: &str| {
            let object = json!({"kind": kind, "spec": {"signerName": signer}});
            name_problem(&object, name)
        };
        assert_eq!(problem("ClusterRole", "system:node", ""), None);
        assert!(problem("ClusterRoleBinding", "a/b", "").is_some());
        assert!(problem("Role", "..", "").is_some());
        assert_eq!(problem("ClusterTrustBundle", "example.com:x:roots", "example.com/x"), None);
        assert!(problem("ClusterTrustBundle", "roots", "example.com/x").is_some());
        assert!(problem("ClusterTrustBundle", "example.com:roots", "").is_some());
        assert!(problem("Secret", "system:node", "").is_some());
    }
}
