//! Metadata: names, labels, and what never changes (M14). Another name, namespace or UID in the body never
//! gets here: `update` answers those with 400 and 409 (api-side §0, stages 3 and 4).

use super::Errors;
use super::names;
use crate::view::{at, is_deleting, list, text};
use serde_json::Value;

/// A new object's name.
pub(super) fn identity(object: &Value, errors: &mut Errors) {
    errors.judge("");
    let name = text(at(object, "metadata"), "name");
    if name.is_empty() {
        return errors.required("metadata.name", "name or generateName is required");
    }
    for problem in name_problems(object, name) {
        errors.invalid("metadata.name", &Value::from(name), problem);
    }
}

/// Roles are named as parts of paths are (`system:node`), most things as hosts are.
fn name_problems(object: &Value, name: &str) -> Vec<&'static str> {
    match text(object, "kind") {
        "Role" | "RoleBinding" | "ClusterRole" | "ClusterRoleBinding" => names::path_segment_problems(name),
        "Namespace" => names::dns_label_problems(name),
        "ClusterTrustBundle" => trust_bundle_name_problems(text(at(object, "spec"), "signerName"), name),
        _ => names::subdomain_problems(name),
    }
}

/// A signer's trust bundle is named after its signer, one of nobody's as a host.
fn trust_bundle_name_problems(signer: &str, name: &str) -> Vec<&'static str> {
    match (signer, name.strip_prefix(&format!("{}:", signer.replace('/', ":")))) {
        ("", _) => names::subdomain_problems(name),
        (_, Some(own)) => names::subdomain_problems(own),
        (_, None) => vec!["the name begins with its signer's, '/' replaced by ':', and ':'"],
    }
}

/// All annotations together, keys and values.
const ANNOTATIONS_MOST: usize = 256 << 10;

/// Labels, annotations, owners and finalizers are well formed. In Kubernetes' order.
pub(super) fn labels(object: &Value, errors: &mut Errors) {
    errors.judge("M14");
    let metadata = at(object, "metadata");
    for (key, value) in at(metadata, "labels").as_object().into_iter().flatten() {
        for problem in names::qualified_name_problems(key) {
            errors.invalid("metadata.labels", &Value::from(key.as_str()), &problem);
        }
        for problem in value.as_str().map(names::label_value_problems).unwrap_or_default() {
            errors.invalid("metadata.labels", value, problem);
        }
    }
    let mut size = 0;
    for (key, value) in at(metadata, "annotations").as_object().into_iter().flatten() {
        // Upper case is permitted anywhere in the key.
        for problem in names::qualified_name_problems(&key.to_lowercase()) {
            errors.invalid("metadata.annotations", &Value::from(key.as_str()), &problem);
        }
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > ANNOTATIONS_MOST {
        errors.too_long("metadata.annotations", &format!("may not be more than {ANNOTATIONS_MOST} bytes"));
    }
    owners(metadata, errors);
    let finalizers = list(metadata, "finalizers");
    for finalizer in finalizers.iter().filter_map(Value::as_str) {
        for problem in names::qualified_name_problems(finalizer) {
            errors.invalid("metadata.finalizers", &Value::from(finalizer), &problem);
        }
    }
    let has = |wanted: &str| finalizers.iter().any(|finalizer| finalizer == wanted);
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.invalid("metadata.finalizers", at(metadata, "finalizers"), detail);
    }
}

fn owners(metadata: &Value, errors: &mut Errors) {
    let mut controller = None;
    for (i, owner) in list(metadata, "ownerReferences").iter().enumerate() {
        let path = format!("metadata.ownerReferences[{i}]");
        let version = text(owner, "apiVersion");
        if version.rsplit('/').next().is_none_or(str::is_empty) || version.matches('/').count() > 1 {
            errors.invalid(format!("{path}.apiVersion"), &Value::from(version), "version must not be empty");
        }
        for field in ["kind", "name", "uid"] {
            if text(owner, field).is_empty() {
                errors.invalid(
                    format!("{path}.{field}"),
                    at(owner, field),
                    &format!("{field} must not be empty"),
                );
            }
        }
        if at(owner, "controller") == &Value::Bool(true) {
            let this = (text(owner, "kind"), text(owner, "name"));
            match controller {
                None => controller = Some(this),
                Some(first) => {
                    let told = |(kind, name): (&str, &str)| format!("{kind}/{name}");
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {} and {}",
                        told(first),
                        told(this)
                    );
                    errors.invalid("metadata.ownerReferences", at(metadata, "ownerReferences"), &detail);
                }
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
        let problems = |kind: &str, name: &str, signer: &str| {
            let object = json!({"kind": kind, "spec": {"signerName": signer}});
            name_problems(&object, name)
        };
        assert!(problems("ClusterRole", "system:node", "").is_empty());
        assert!(!problems("ClusterRoleBinding", "a/b", "").is_empty());
        assert!(!problems("Role", "..", "").is_empty());
        assert!(problems("ClusterTrustBundle", "example.com:x:roots", "example.com/x").is_empty());
        assert!(!problems("ClusterTrustBundle", "roots", "example.com/x").is_empty());
        assert!(!problems("ClusterTrustBundle", "example.com:roots", "").is_empty());
        assert!(!problems("Secret", "system:node", "").is_empty());
    }
}
