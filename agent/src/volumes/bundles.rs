//! Trust bundles in projected volumes: one by name, or all of a signer with some labels, joined.

use crate::objects::Objects;
use nodefold_core::ids::{Name, ObjectKind, ObjectRef};
use serde_json::Value;
use std::collections::BTreeSet;

/// What a `clusterTrustBundle` source shows. An optional one that isn't there is empty.
pub fn text(objects: &Objects, manifest: &Value) -> Result<String, String> {
    let optional = manifest["optional"].as_bool() == Some(true);
    let found = match manifest["name"].as_str() {
        Some(name) => {
            let object = ObjectRef {
                kind: ObjectKind::ClusterTrustBundle,
                namespace: "".into(),
                name: Name::from(name),
            };
            let bundle = objects.get(&object).and_then(|bundle| certificates(&bundle));
            bundle.ok_or_else(|| format!("clustertrustbundle \"{name}\" not found"))
        }
        None => {
            let signer = manifest["signerName"].as_str().unwrap_or("");
            let bundles = objects.trust_bundles();
            let of_signer = bundles.iter().filter(|bundle| {
                bundle["spec"]["signerName"].as_str() == Some(signer)
                    && selects(&manifest["labelSelector"], &bundle["metadata"]["labels"])
            });
            // In the order of their names, each certificate once.
            let mut seen = BTreeSet::new();
            let blocks = of_signer.filter_map(|bundle| certificates(bundle)).flat_map(|text| blocks(&text));
            let joined: String = blocks.filter(|block| seen.insert(block.clone())).collect();
            match joined.is_empty() {
                true => Err(format!(
                    "combination of signerName {signer:?} and labelSelector matched zero trust bundles"
                )),
                false => Ok(joined),
            }
        }
    };
    match found {
        Err(_) if optional => Ok(String::new()),
        found => found,
    }
}

fn certificates(bundle: &Value) -> Option<String> {
    bundle.pointer("/spec/trustBundle")?.as_str().map(str::to_owned)
}

/// A bundle's PEM blocks, each with its line end.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut block = String::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("-----BEGIN ") {
            block.clear();
        }
        block.push_str(line);
        block.push('\n');
        if line.starts_with("-----END ") {
            blocks.push(std::mem::take(&mut block));
        }
    }
    blocks
}

/// Whether a label selector selects. None selects nothing; an empty one everything.
fn selects(selector: &Value, labels: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    let equal =
        selector["matchLabels"].as_object().into_iter().flatten().all(|(key, value)| labels[key] == *value);
    equal
        && selector["matchExpressions"].as_array().into_iter().flatten().all(|expression| {
            let label = &labels[expression["key"].as_str().unwrap_or("")];
            let is_listed = expression["values"].as_array().into_iter().flatten().any(|value| value == label);
            match expression["operator"].as_str() {
                Some("In") => is_listed,
                Some("NotIn") => !is_listed,
                Some("Exists") => !label.is_null(),
                Some("DoesNotExist") => label.is_null(),
                Some(_) | None => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn put(objects: &Objects, name: &str, signer: Option<&str>, label: &str, certificates: &[&str]) {
        let pem = |text: &&str| format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
        let text: String = certificates.iter().map(pem).collect();
        let value = json!({
            "apiVersion": "certificates.k8s.io/v1beta1", "kind": "ClusterTrustBundle",
            "metadata": {"name": name, "labels": {"l": label}}, "spec": {"signerName": signer, "trustBundle": text},
        });
        objects.put(nodefold_k8s::object_ref(&value).expect("an object"), Arc::new(value));
    }

    #[test]
    fn bundles_are_found_by_name_or_by_signer_and_labels() {
        let objects = Objects::default();
        put(&objects, "plain", None, "x", &["p"]);
        put(&objects, "s:1", Some("s"), "x", &["a", "b"]);
        put(&objects, "s:2", Some("s"), "y", &["b", "c"]);
        put(&objects, "t:1", Some("t"), "x", &["t"]);
        let shown = |manifest: Value| {
            text(&objects, &manifest).map(|text| {
                let lines = text.lines().filter(|line| !line.starts_with('-'));
                lines.collect::<String>()
            })
        };
        assert_eq!(shown(json!({"name": "plain"})), Ok("p".into()));
        assert_eq!(shown(json!({"signerName": "s", "labelSelector": {}})), Ok("abc".into()));
        let labelled = json!({"signerName": "s", "labelSelector": {"matchLabels": {"l": "y"}}});
        assert_eq!(shown(labelled), Ok("bc".into()));
        let other = json!({"signerName": "s", "labelSelector": {"matchExpressions": [{"key": "l", "operator": "NotIn", "values": ["y"]}]}});
        assert_eq!(shown(other), Ok("ab".into()));
        assert!(shown(json!({"signerName": "s"})).expect_err("no selector selects nothing").contains("zero"));
        assert_eq!(
            shown(json!({"signerName": "u", "labelSelector": {}, "optional": true})),
            Ok(String::new())
        );
        assert!(shown(json!({"name": "gone"})).expect_err("absent").contains("not found"));
    }
}
