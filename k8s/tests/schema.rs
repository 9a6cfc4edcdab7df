//! `schema/v1.37.json` is Kubernetes' own schema, as `k8s-openapi` has it, with what KEP-6395 adds.
//!
//! The file stands in for the crate, whose thousands of types take longer to compile than everything else together
//! and of which the boundary needs names and types only. To follow a newer Kubernetes, raise the crate's feature, then
//! `cargo test -p nodefold-k8s --test schema -- --ignored`.
#![allow(clippy::expect_used)]

use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

const CORE: &str = "io.k8s.api.core.v1.";
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/v1.37.json");

/// Every type that v1.Pod, Secret and ConfigMap reach, in the words of `src/schema.rs`.
fn types() -> Map<String, Value> {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    generator.subschema_for::<core_v1::Pod>();
    generator.subschema_for::<core_v1::Secret>();
    generator.subschema_for::<core_v1::ConfigMap>();
    let definitions = generator.definitions().iter();
    let mut types: Map<String, Value> =
        definitions.map(|(name, definition)| (name.clone(), type_of(name, definition))).collect();
    let policy = json!({"fields": {"restartPolicy": "text"}});
    types[&format!("{CORE}Container")]["fields"]["dynamicVolumePolicy"] = policy;
    let statuses = json!({"list": {"fields": {"name": "text", "hostPhase": "text", "errorMessage": "text"}}});
    types[&format!("{CORE}PodStatus")]["fields"]["volumeStatuses"] = statuses;
    types
}

fn type_of(name: &str, definition: &Value) -> Value {
    let text = |name: &str| definition.get(name).and_then(Value::as_str);
    if name.ends_with(".Quantity") {
        return json!("amount");
    }
    if name.ends_with(".IntOrString") {
        return json!("integer or text");
    }
    if let Some(reference) = text("$ref") {
        return json!({"type": reference.trim_start_matches("#/$defs/")});
    }
    match (text("type").expect("a type"), text("format")) {
        ("string", Some("byte")) => json!("base64"),
        ("string", Some("date-time")) => json!("timestamp"),
        ("string", None) => json!("text"),
        ("integer", Some("int32")) => json!("int32"),
        ("integer", Some("int64")) => json!("int64"),
        ("boolean", None) => json!("flag"),
        ("array", None) => json!({"list": type_of("", &definition["items"])}),
        ("object", None) => {
            if let Some(properties) = definition.get("properties").and_then(Value::as_object) {
                let fields = properties.iter().map(|(name, d)| (name.clone(), type_of("", d)));
                json!({"fields": fields.collect::<Map<_, _>>()})
            } else if let Some(values) = definition.get("additionalProperties") {
                json!({"map": type_of("", values)})
            } else {
                json!("anything")
            }
        }
        other => panic!("{other:?} is new: teach src/schema.rs"),
    }
}

/// One type a line.
fn text(types: &Map<String, Value>) -> String {
    let mut sorted = Value::Object(types.clone());
    sorted.sort_all_objects();
    let lines: Vec<String> = sorted
        .as_object()
        .expect("an object")
        .iter()
        .map(|(name, of)| format!("{}: {of}", Value::from(name.as_str())))
        .collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

#[test]
fn the_schema_is_kubernetes_own() {
    let file = std::fs::read_to_string(FILE).expect("the schema");
    assert!(file == text(&types()), "{FILE} differs from k8s-openapi: see the head of this file");
}

/// What is left open would hide a lost type.
#[test]
fn nothing_but_managed_fields_is_left_open() {
    let types = types();
    let open: Vec<&str> = types
        .iter()
        .filter(|(_, of)| of.to_string().contains("anything"))
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(open, ["io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"]);
}

#[test]
#[ignore = "writes the schema; see the head of this file"]
fn write_the_schema() {
    std::fs::write(FILE, text(&types())).expect("the schema is written");
}
