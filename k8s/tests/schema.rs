//! `schema/v1.37.json` is Kubernetes' own schema, as `k8s-openapi` has it, with what KEP-6395 adds; `schema/v1.37.words.json` is what
//! Kubernetes says of its fields.
//!
//! The file stands in for the crate, whose thousands of types take longer to compile than everything else together
//! and of which the boundary needs names and types only. To follow a newer Kubernetes, raise the crate's feature, then
//! `cargo test -p nodefold-k8s --test schema -- --ignored`.
#![allow(clippy::expect_used)]

use k8s_openapi::api::admissionregistration::v1 as admission_v1;
use k8s_openapi::api::authorization::v1 as authorization_v1;
use k8s_openapi::api::core::v1 as core_v1;
use k8s_openapi::api::rbac::v1 as rbac_v1;
use k8s_openapi::schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

const CORE: &str = "io.k8s.api.core.v1.";
const WORDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/v1.37.words.json");
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/v1.37.json");

/// Kubernetes' definitions of every type that the kinds which nodefold serves reach.
fn definitions() -> Map<String, Value> {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    generator.subschema_for::<core_v1::Pod>();
    generator.subschema_for::<core_v1::Secret>();
    generator.subschema_for::<core_v1::ConfigMap>();
    generator.subschema_for::<core_v1::Event>();
    generator.subschema_for::<core_v1::LimitRange>();
    generator.subschema_for::<core_v1::Namespace>();
    generator.subschema_for::<core_v1::Node>();
    generator.subschema_for::<core_v1::ResourceQuota>();
    generator.subschema_for::<core_v1::ServiceAccount>();
    generator.subschema_for::<rbac_v1::ClusterRole>();
    generator.subschema_for::<rbac_v1::ClusterRoleBinding>();
    generator.subschema_for::<rbac_v1::Role>();
    generator.subschema_for::<rbac_v1::RoleBinding>();
    generator.subschema_for::<admission_v1::MutatingAdmissionPolicy>();
    generator.subschema_for::<admission_v1::MutatingAdmissionPolicyBinding>();
    generator.subschema_for::<admission_v1::MutatingWebhookConfiguration>();
    generator.subschema_for::<admission_v1::ValidatingAdmissionPolicy>();
    generator.subschema_for::<admission_v1::ValidatingAdmissionPolicyBinding>();
    generator.subschema_for::<admission_v1::ValidatingWebhookConfiguration>();
    generator.subschema_for::<authorization_v1::SelfSubjectAccessReview>();
    generator.subschema_for::<authorization_v1::SelfSubjectRulesReview>();
    generator.definitions().clone()
}

/// The types, in the words of `src/schema.rs`.
fn types() -> Map<String, Value> {
    let definitions = definitions();
    let mut types: Map<String, Value> =
        definitions.iter().map(|(name, definition)| (name.clone(), type_of(name, definition))).collect();
    let policy = json!({"fields": {"restartPolicy": "text"}});
    types[&format!("{CORE}Container")]["fields"]["dynamicVolumePolicy"] = policy;
    let statuses = json!({"list": {"fields": {"name": "text", "hostPhase": "text", "errorMessage": "text"}}});
    types[&format!("{CORE}PodStatus")]["fields"]["volumeStatuses"] = statuses;
    types
}

/// What Kubernetes says of each type and field, and which fields must be given.
fn words() -> Map<String, Value> {
    let mut words = Map::new();
    for (name, definition) in definitions() {
        let mut told = Map::new();
        let says = |of: &Value| of.get("description").and_then(Value::as_str).map(|text| json!(text.trim()));
        if let Some(says) = says(&definition) {
            told.insert("says".to_owned(), says);
        }
        let properties = definition.get("properties").and_then(Value::as_object).into_iter().flatten();
        let fields: Map<String, Value> =
            properties.filter_map(|(field, of)| Some((field.clone(), says(of)?))).collect();
        if !fields.is_empty() {
            told.insert("fields".to_owned(), Value::Object(fields));
        }
        if let Some(required) = definition.get("required").filter(|required| *required != &json!([])) {
            told.insert("required".to_owned(), required.clone());
        }
        words.insert(name, Value::Object(told));
    }
    let policy = "What happens to a running container when its volume mounts are changed through pods/dynamic (KEP-6395).";
    words[&format!("{CORE}Container")]["fields"]["dynamicVolumePolicy"] = json!(policy);
    let containers = &mut words[&format!("{CORE}PodSpec")]["fields"]["containers"];
    let said = containers.as_str().expect("a description");
    let (fixed, now) = (
        "Containers cannot currently be added or removed.",
        "Of a running pod they are added and removed through pods/dynamic (KEP-5972).",
    );
    assert!(said.contains(fixed), "upstream says something else by now: {said}");
    *containers = json!(said.replace(fixed, now));
    let statuses = "The pod's volumes as the node has them (KEP-6395): Pending, HostMounted, ErrorMounting or Unmounting.";
    words[&format!("{CORE}PodStatus")]["fields"]["volumeStatuses"] = json!(statuses);
    words
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
    let file = std::fs::read_to_string(WORDS).expect("the descriptions");
    assert!(file == text(&words()), "{WORDS} differs from k8s-openapi: see the head of this file");
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
    std::fs::write(WORDS, text(&words())).expect("the descriptions are written");
}
