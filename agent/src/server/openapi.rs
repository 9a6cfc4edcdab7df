//! OpenAPI documents, as far as kubectl reads them: schemas for `explain` and, for its checks before it sends, that a PATCH
//! takes `fieldValidation`. Kubernetes' kinds are told whole, with its own descriptions; of nodefold's own only the frame.

use super::resource::{RESOURCES, Resource, groups};
use serde_json::{Map, Value, json};

/// `/openapi/v3`: where the documents are.
pub fn root() -> Value {
    let mut paths = Map::new();
    let mut add = |path: String| {
        let url = format!("/openapi/v3/{path}?hash={:016x}", revision());
        paths.insert(path, json!({"serverRelativeURL": url}));
    };
    add("api/v1".to_owned());
    for (group, version) in groups() {
        add(format!("apis/{group}/{version}"));
    }
    json!({"paths": paths})
}

/// Changes with the documents: clients keep what they have for it.
pub fn revision() -> u64 {
    xxhash_rust::xxh3::xxh3_64(concat!(env!("CARGO_PKG_VERSION"), "/2").as_bytes())
}

/// The document of a group's version.
pub fn document(group: &str, version: &str) -> Value {
    let mut paths = Map::new();
    let served = || RESOURCES.iter().filter(|r| r.group == group && r.version == version);
    let names: Vec<String> = served().map(schema_name).collect();
    let mut schemas = match group {
        "history.nodefold.io" => super::history::schema::schemas(),
        _ => nodefold_k8s::openapi_schemas(names.iter().map(String::as_str)),
    };
    for resource in served() {
        let name = schema_name(resource);
        schemas.entry(name.clone()).or_insert_with(|| frame(resource));
        if let Some(Value::Object(schema)) = schemas.get_mut(&name) {
            schema.insert(GVK.to_owned(), json!([gvk(resource)]));
        }
        let (collection, object) = places(resource);
        paths.insert(object, operations(resource, &name, &["get", "put", "patch", "delete"]));
        paths.insert(collection, operations(resource, &name, &["get", "post"]));
    }
    json!({"openapi": "3.0.0", "info": {"title": "nodefold", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths, "components": {"schemas": schemas}})
}

/// Of `/openapi/v2`, which kubectl takes in protobuf alone. It asks for `...v2@v1.0+protobuf`, which is no media type.
pub const OLD_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

const GVK: &str = "x-kubernetes-group-version-kind";

fn gvk(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

fn schema_name(resource: &Resource) -> String {
    let group = match resource.group.split('.').next() {
        Some("") | None => "core",
        Some(first) => first,
    };
    format!("io.k8s.api.{group}.{}.{}", resource.version, resource.kind)
}

fn places(resource: &Resource) -> (String, String) {
    let root = match resource.group {
        "" => format!("/api/{}", resource.version),
        group => format!("/apis/{group}/{}", resource.version),
    };
    let place = if resource.namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{place}/{}", resource.plural);
    (collection.clone(), format!("{collection}/{{name}}"))
}

fn operations(resource: &Resource, schema: &str, verbs: &[&str]) -> Value {
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let mut operations = Map::new();
    for verb in verbs {
        let action = match *verb {
            "put" => "put",
            "patch" => "patch",
            "post" => "post",
            "delete" => "delete",
            _ => "get",
        };
        let mut operation = json!({
            "x-kubernetes-action": action, GVK: gvk(resource),
            "responses": {"200": {"description": "OK", "content": {"application/json":
                {"schema": {"$ref": format!("#/components/schemas/{schema}")}}}}},
        });
        if !matches!(*verb, "get" | "delete") {
            let names = ["dryRun", "fieldManager", "fieldValidation", "force"];
            operation["parameters"] = names.map(parameter).to_vec().into();
        }
        operations.insert((*verb).to_owned(), operation);
    }
    Value::Object(operations)
}

/// A kind whose fields nodefold does not know.
fn frame(resource: &Resource) -> Value {
    let metadata = json!({"type": "object", "description": "Standard object's metadata."});
    json!({"type": "object", "description": format!("A {}.", resource.kind),
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": metadata}})
}
