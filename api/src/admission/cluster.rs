//! What admission looks up: stored objects by kind, namespace and name.

use crate::key;
use crate::store::Store;
use crate::view::text;
use serde_json::{Value, json};
use std::sync::Arc;

/// The stored objects, to read.
#[derive(Copy, Clone)]
pub(crate) struct Cluster<'a>(pub &'a Store);

impl<'a> Cluster<'a> {
    /// One object.
    pub fn object(self, kind: &str, namespace: &str, name: &str) -> Option<&'a Arc<Value>> {
        self.0.get(&key(kind, namespace, name)).map(|entry| &entry.object)
    }

    /// All objects of a kind in a namespace.
    pub fn in_namespace(self, kind: &'a str, namespace: &'a str) -> impl Iterator<Item = &'a Arc<Value>> {
        let of_kind = self.0.of_kind(kind);
        of_kind.filter(move |(key, _)| &*key.namespace == namespace).map(|(_, entry)| &entry.object)
    }

    /// All objects of a kind.
    pub fn all(self, kind: &'a str) -> impl Iterator<Item = &'a Arc<Value>> {
        self.0.of_kind(kind).map(|(_, entry)| &entry.object)
    }

    /// The namespace. One that nobody stored has its name's label and nothing else, as if it were new.
    pub fn namespace(self, name: &str) -> Value {
        let mut namespace = match self.object("Namespace", "", name) {
            Some(stored) => Value::clone(stored),
            None => json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        };
        if let Some(metadata) = namespace.get_mut("metadata").and_then(Value::as_object_mut) {
            let labels = metadata.entry("labels").or_insert_with(|| json!({}));
            if !labels.is_object() {
                *labels = json!({});
            }
            if text(labels, NAME_LABEL).is_empty() {
                labels[NAME_LABEL] = json!(name);
            }
        }
        namespace
    }
}

/// The label that the server gives each namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
