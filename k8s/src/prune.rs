//! Fields that Kubernetes doesn't know, taken out: what decoding does that isn't strict.

use crate::schema::{Type, schema};
use serde_json::Value;

/// Takes them out of a whole object of that kind. Kinds without a schema keep everything.
pub fn drop_unknown_fields(value: &mut Value, kind: &str) {
    if let Some((root, _)) = schema().kind(kind) {
        prune(value, root, false);
    }
}

/// The same of a strategic-merge patch, whose directives stay.
pub fn drop_unknown_patch_fields(patch: &mut Value, kind: &str) {
    if let Some((root, _)) = schema().kind(kind) {
        prune(patch, root, true);
    }
}

fn prune(value: &mut Value, of: &Type, patch: bool) {
    match (schema().resolve(of), value) {
        (Type::Object(fields), Value::Object(object)) => {
            object.retain(|name, _| fields.contains_key(name) || (patch && name.starts_with('$')));
            for (name, value) in object {
                if let Some(of) = fields.get(name) {
                    prune(value, of, patch);
                }
            }
        }
        (Type::Map(of), Value::Object(object)) => {
            object.values_mut().for_each(|value| prune(value, of, patch))
        }
        (Type::List(of), Value::Array(items)) => items.iter_mut().for_each(|item| prune(item, of, patch)),
        (_, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check_fields, check_patch_fields};
    use serde_json::json;

    #[test]
    fn what_is_left_is_known_and_nothing_else_is_lost() {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "extra": 1, "metadata": {"labels": {"any": "x"}},
            "spec": {"containers": [{"name": "a", "imagee": "i", "env": [{"name": "A", "wrong": {"deep": []}}]}]}});
        drop_unknown_fields(&mut pod, "Pod");
        assert!(check_fields(&pod, "Pod").is_empty());
        assert_eq!(
            pod,
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"any": "x"}},
                "spec": {"containers": [{"name": "a", "env": [{"name": "A"}]}]}})
        );
        let mut patch = json!({"spec": {"$setElementOrder/containers": [{"name": "a"}], "nope": 1,
            "containers": [{"name": "a", "$patch": "delete", "x": 1}]}});
        drop_unknown_patch_fields(&mut patch, "Pod");
        assert!(check_patch_fields(&patch, "Pod").is_empty());
        assert_eq!(patch["spec"]["containers"][0], json!({"name": "a", "$patch": "delete"}));
    }
}
