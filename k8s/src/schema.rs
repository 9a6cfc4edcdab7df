//! The fields of v1.Pod, Secret and ConfigMap with their types: Kubernetes' own (from `k8s-openapi`) and the
//! two that KEP-6395 adds.

use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The kinds that manifests may have.
pub(crate) const KINDS: [&str; 3] = ["Pod", "Secret", "ConfigMap"];

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

const CORE: &str = "io.k8s.api.core.v1.";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

static SCHEMA: LazyLock<Schema> = LazyLock::new(build);

/// The one schema.
pub(crate) fn schema() -> &'static Schema {
    &SCHEMA
}

impl Schema {
    /// The type of an object's kind.
    pub fn kind(&self, kind: &str) -> Option<&Type> {
        if KINDS.contains(&kind) { self.types.get(&format!("{CORE}{kind}")) } else { None }
    }

    /// The type itself, if `of` only names one.
    pub fn resolve<'s>(&'s self, of: &'s Type) -> &'s Type {
        match of {
            Type::Named(name) => self.types.get(name).unwrap_or(&Type::Anything),
            Type::Object(_)
            | Type::Map(_)
            | Type::List(_)
            | Type::Text
            | Type::Base64
            | Type::Timestamp
            | Type::Amount
            | Type::IntegerOrText
            | Type::Integer32
            | Type::Integer64
            | Type::Flag
            | Type::Anything => of,
        }
    }
}

fn build() -> Schema {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    generator.subschema_for::<core_v1::Pod>();
    generator.subschema_for::<core_v1::Secret>();
    generator.subschema_for::<core_v1::ConfigMap>();
    let mut definitions: Map<String, Value> = generator.definitions().clone();
    add_kep_fields(&mut definitions);
    let types = definitions.iter().map(|(name, definition)| (name.clone(), read_type(definition)));
    let mut types: BTreeMap<String, Type> = types.collect();
    types.insert(QUANTITY.into(), Type::Amount);
    types.insert(INT_OR_STRING.into(), Type::IntegerOrText);
    Schema { types }
}

/// KEP-6395's API changes.
fn add_kep_fields(definitions: &mut Map<String, Value>) {
    let text = json!({"type": "string"});
    let policy = json!({"type": "object", "properties": {"restartPolicy": text}});
    let volume_status =
        json!({"type": "object", "properties": {"name": text, "hostPhase": text, "errorMessage": text}});
    let additions = [
        ("Container", "dynamicVolumePolicy", policy),
        ("PodStatus", "volumeStatuses", json!({"type": "array", "items": volume_status})),
    ];
    for (of, field, definition) in additions {
        let properties = definitions.get_mut(&format!("{CORE}{of}")).and_then(|d| d.get_mut("properties"));
        if let Some(properties) = properties.and_then(Value::as_object_mut) {
            properties.insert(field.to_owned(), definition);
        }
    }
}

fn read_type(definition: &Value) -> Type {
    let text = |name: &str| definition.get(name).and_then(Value::as_str);
    if let Some(reference) = text("$ref") {
        return Type::Named(reference.trim_start_matches("#/$defs/").to_owned());
    }
    match (text("type"), text("format")) {
        (Some("string"), Some("byte")) => Type::Base64,
        (Some("string"), Some("date-time")) => Type::Timestamp,
        (Some("string"), _) => Type::Text,
        (Some("integer"), Some("int32")) => Type::Integer32,
        (Some("integer"), _) => Type::Integer64,
        (Some("boolean"), _) => Type::Flag,
        (Some("array"), _) => Type::List(Box::new(definition.get("items").map_or(Type::Anything, read_type))),
        (Some("object"), _) => {
            if let Some(properties) = definition.get("properties").and_then(Value::as_object) {
                Type::Object(properties.iter().map(|(name, d)| (name.clone(), read_type(d))).collect())
            } else if let Some(values) = definition.get("additionalProperties") {
                Type::Map(Box::new(read_type(values)))
            } else {
                Type::Anything
            }
        }
        (Some(_) | None, _) => Type::Anything,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The types with no fields at all are the few that Kubernetes leaves open: were a reference lost, its
    /// type would be among them.
    #[test]
    fn nothing_but_managed_fields_is_left_open() {
        let schema = schema();
        let open = schema.types.iter().filter(|(_, t)| **t == Type::Anything).map(|(name, _)| name.as_str());
        let open: Vec<&str> = open.collect();
        assert_eq!(open, ["io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"]);
        for kind in KINDS {
            assert!(schema.kind(kind).is_some(), "{kind} has no schema");
        }
    }

    #[test]
    fn every_named_type_exists() {
        fn names<'t>(of: &'t Type, out: &mut Vec<&'t str>) {
            match of {
                Type::Named(name) => out.push(name),
                Type::Object(fields) => fields.values().for_each(|f| names(f, out)),
                Type::Map(inner) | Type::List(inner) => names(inner, out),
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
        let schema = schema();
        let mut used = Vec::new();
        schema.types.values().for_each(|t| names(t, &mut used));
        assert!(used.len() > 100, "only {} references", used.len());
        for name in used {
            assert!(schema.types.contains_key(name), "{name} is not defined");
        }
    }
}
