//! The schema of v1.Pod, Secret and ConfigMap as OpenAPI v3 writes it: what `kubectl explain` shows. Types and fields; the file
//! that they come from has no descriptions.

use crate::schema::{Type, schema};
use serde_json::{Map, Value, json};

/// All types, by their full names.
pub fn openapi_schemas() -> Map<String, Value> {
    schema().types().map(|(name, of)| (name.to_owned(), written(of))).collect()
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

    #[test]
    fn every_reference_is_told_and_the_keps_fields_are_there() {
        let schemas = openapi_schemas();
        let text = Value::Object(schemas.clone()).to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap_or_default();
            assert!(schemas.contains_key(name), "{name}");
        }
        let status = &schemas["io.k8s.api.core.v1.PodStatus"]["properties"];
        assert!(status["volumeStatuses"].is_object());
    }
}
