//! The fields of all kinds that nodefold serves, with their types: Kubernetes' own (from `k8s-openapi`) and the
//! two that KEP-6395 adds.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The kinds whose fields are known, each with its API group.
pub(crate) const KINDS: [(&str, &str); 18] = [
    ("Pod", ""),
    ("Secret", ""),
    ("ConfigMap", ""),
    ("Namespace", ""),
    ("Node", ""),
    ("ServiceAccount", ""),
    ("LimitRange", ""),
    ("ResourceQuota", ""),
    ("Role", RBAC),
    ("ClusterRole", RBAC),
    ("RoleBinding", RBAC),
    ("ClusterRoleBinding", RBAC),
    ("ValidatingWebhookConfiguration", ADMISSION),
    ("MutatingWebhookConfiguration", ADMISSION),
    ("ValidatingAdmissionPolicy", ADMISSION),
    ("ValidatingAdmissionPolicyBinding", ADMISSION),
    ("MutatingAdmissionPolicy", ADMISSION),
    ("MutatingAdmissionPolicyBinding", ADMISSION),
];

const RULE: &str = "io.k8s.api.admissionregistration.v1.RuleWithOperations";
const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// What a field may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// The type of that name.
    Named(String),
    /// These fields and no others.
    Object(BTreeMap<String, Type>),
    /// Any keys, with values of one type.
    Map(Box<Type>),
    /// Entries of one type.
    List(Box<Type>),
    Text,
    /// Bytes in base64.
    Base64,
    Timestamp,
    Amount,
    IntegerOrText,
    Integer32,
    Integer64,
    Flag,
    /// Anything at all (`managedFields[].fieldsV1`).
    Anything,
}

/// All types, by name.
pub(crate) struct Schema {
    types: BTreeMap<String, Type>,
}

const TEXT: &str = include_str!("../schema/v1.37.json");

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let read: Map<String, Value> = serde_json::from_str(TEXT).unwrap_or_default();
    let mut types: BTreeMap<String, Type> =
        read.iter().map(|(name, of)| (name.clone(), read_type(of))).collect();
    // A policy's rules have it in Kubernetes; the gate reads it in a webhook's as well (api-side §2.1).
    if let Some(Type::Object(fields)) = types.get_mut(RULE) {
        fields.insert("resourceNames".to_owned(), Type::List(Box::new(Type::Text)));
    }
    Schema { types }
});

/// The one schema.
pub(crate) fn schema() -> &'static Schema {
    &SCHEMA
}

impl Schema {
    /// The type of an object's kind, and the kind's API group.
    pub fn kind(&self, kind: &str) -> Option<(&Type, &'static str)> {
        let (_, group) = KINDS.into_iter().find(|(known, _)| *known == kind)?;
        let room = match group.split('.').next() {
            Some("") | None => "core",
            Some(first) => first,
        };
        Some((self.types.get(&format!("io.k8s.api.{room}.v1.{kind}"))?, group))
    }

    /// The type of that full name.
    pub fn named(&self, name: &str) -> Option<&Type> {
        self.types.get(name)
    }

    /// The type itself, if `of` only names one.
    pub fn resolve<'s>(&'s self, of: &'s Type) -> &'s Type {
        let Type::Named(name) = of else { return of };
        self.types.get(name).unwrap_or(&Type::Anything)
    }
}

impl Type {
    /// The types that it names.
    pub fn references<'t>(&'t self, out: &mut Vec<&'t str>) {
        match self {
            Type::Named(name) => out.push(name),
            Type::Object(fields) => fields.values().for_each(|field| field.references(out)),
            Type::Map(inner) | Type::List(inner) => inner.references(out),
            Type::Text
            | Type::Base64
            | Type::Timestamp
            | Type::Amount
            | Type::IntegerOrText
            | Type::Integer32
            | Type::Integer64
            | Type::Flag
            | Type::Anything => {}
        }
    }
}

/// A type as the file writes it.
fn read_type(of: &Value) -> Type {
    let inner = |name: &str| of.get(name).map(read_type).map(Box::new);
    if let Some(name) = of.get("type").and_then(Value::as_str) {
        return Type::Named(name.to_owned());
    }
    if let Some(fields) = of.get("fields").and_then(Value::as_object) {
        return Type::Object(fields.iter().map(|(name, of)| (name.clone(), read_type(of))).collect());
    }
    if let Some(entries) = inner("list") {
        return Type::List(entries);
    }
    if let Some(values) = inner("map") {
        return Type::Map(values);
    }
    match of.as_str().unwrap_or_default() {
        "text" => Type::Text,
        "base64" => Type::Base64,
        "timestamp" => Type::Timestamp,
        "amount" => Type::Amount,
        "integer or text" => Type::IntegerOrText,
        "int32" => Type::Integer32,
        "int64" => Type::Integer64,
        "flag" => Type::Flag,
        _ => Type::Anything,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one type that Kubernetes leaves open: a word of the file that isn't understood here would be among them.
    #[test]
    fn every_word_of_the_file_is_understood() {
        let schema = schema();
        let open = schema.types.iter().filter(|(_, of)| format!("{of:?}").contains("Anything"));
        let open: Vec<&str> = open.map(|(name, _)| name.as_str()).collect();
        assert_eq!(open, ["io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"]);
        for (kind, _) in KINDS {
            assert!(schema.kind(kind).is_some(), "{kind} has no schema");
        }
    }

    #[test]
    fn every_named_type_exists() {
        let schema = schema();
        let mut used = Vec::new();
        schema.types.values().for_each(|of| of.references(&mut used));
        assert!(used.len() > 100, "only {} references", used.len());
        for name in used {
            assert!(schema.types.contains_key(name), "{name} is not defined");
        }
    }
}
