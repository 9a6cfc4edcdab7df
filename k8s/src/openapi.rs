//! Schemas as OpenAPI v3 writes them, with Kubernetes' own descriptions: what `kubectl explain` shows.

use crate::schema::{Type, schema};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// What is said of types and fields, by the types' full names.
static WORDS: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("../schema/v1.37.words.json")).unwrap_or_default());

/// The types of these full names (`io.k8s.api.core.v1.Pod`) and all that they are made of. Names that nobody knows are left out.
pub fn openapi_schemas<'n>(names: impl IntoIterator<Item = &'n str>) -> Map<String, Value> {
    let mut wanted: Vec<&str> = names.into_iter().collect();
    let mut reached = BTreeSet::new();
    while let Some(name) = wanted.pop() {
        if let Some(of) = schema().named(name)
            && reached.insert(name)
        {
            of.references(&mut wanted);
        }
    }
    let known = reached.into_iter().filter_map(|name| Some((name, schema().named(name)?)));
    known.map(|(name, of)| (name.to_owned(), described(name, of))).collect()
}

/// A type with what is said of it and of its fields.
fn described(name: &str, of: &Type) -> Value {
    let mut written = written(of);
    let Some(words) = WORDS.get(name) else { return written };
    if let Some(says) = words.get("says") {
        written["description"] = says.clone();
    }
    if let Some(required) = words.get("required") {
        written["required"] = required.clone();
    }
    let Some(fields) = written.get_mut("properties").and_then(Value::as_object_mut) else { return written };
    for (field, says) in words.get("fields").and_then(Value::as_object).into_iter().flatten() {
        let Some(property) = fields.get_mut(field) else { continue };
        // Beside a reference nothing may stand.
        if property.get("$ref").is_some() {
            *property = json!({"allOf": [property.take()]});
        }
        property["description"] = says.clone();
    }
    written
}

fn written(of: &Type) -> Value {
    match of {
        Type::Named(name) => json!({"$ref": format!("#/components/schemas/{name}")}),
        Type::Object(fields) => {
            let fields: Map<String, Value> =
                fields.iter().map(|(name, of)| (name.clone(), written(of))).collect();
            json!({"type": "object", "properties": fields})
        }
        Type::Map(inner) => json!({"type": "object", "additionalProperties": written(inner)}),
        Type::List(inner) => json!({"type": "array", "items": written(inner)}),
        Type::Text => json!({"type": "string"}),
        Type::Base64 => json!({"type": "string", "format": "byte"}),
        Type::Timestamp => json!({"type": "string", "format": "date-time"}),
        Type::Amount => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
        Type::IntegerOrText => {
            json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
        }
        Type::Integer32 => json!({"type": "integer", "format": "int32"}),
        Type::Integer64 => json!({"type": "integer", "format": "int64"}),
        Type::Flag => json!({"type": "boolean"}),
        Type::Anything => json!({"type": "object"}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str = "io.k8s.api.core.v1.Pod";

    #[test]
    fn every_reference_is_told_and_the_keps_fields_are_there() {
        let roots =
            [POD, "io.k8s.api.rbac.v1.Role", "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicy"];
        let schemas = openapi_schemas(roots);
        let text = Value::Object(schemas.clone()).to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            assert!(schemas.contains_key(name), "{name}");
        }
        let status = &schemas["io.k8s.api.core.v1.PodStatus"]["properties"];
        assert!(status["volumeStatuses"].is_object());
        assert!(!schemas.contains_key("io.k8s.api.core.v1.Node"), "only what is reached");
        assert!(openapi_schemas(["nothing.of.the.kind"]).is_empty());
    }

    #[test]
    fn types_and_fields_say_what_kubernetes_says_of_them() {
        let schemas = openapi_schemas([POD]);
        let spec = &schemas["io.k8s.api.core.v1.PodSpec"];
        let told = spec["properties"]["containers"]["description"].as_str().unwrap_or_default();
        assert!(told.starts_with("List of containers belonging to the pod."), "{told}");
        assert_eq!(spec["required"], json!(["containers"]));
        let pod = &schemas[POD]["properties"]["spec"];
        assert_eq!(pod["allOf"][0]["$ref"], "#/components/schemas/io.k8s.api.core.v1.PodSpec");
        assert!(
            pod["description"]
                .as_str()
                .is_some_and(|says| says.starts_with("Specification of the desired behavior"))
        );
        let every = |field: &Value| field["description"].as_str().is_some_and(|says| !says.is_empty());
        let container = &schemas["io.k8s.api.core.v1.Container"]["properties"];
        assert!(container.as_object().is_some_and(|fields| fields.values().all(every)), "{container}");
    }
}
