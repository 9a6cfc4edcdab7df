//! Objects that expressions make: `Object{spec: Object.spec{...}}` of apply configurations, and `JSONPatch{op: ..., path: ...}`.
//!
//! Kubernetes names the type of a field's object by the way to it, without a list's indices: `Object.spec.containers` is what an
//! entry of `spec.containers` is made of. That the names match where the objects are put is checked when the whole is read.

use super::values::Fields;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelMap, CelNull, CelOptional, CelString, CelStruct, CelUInt, Kind,
    Type,
};
use cel::common::value::{CowVal, Val};
use cel::{Env, ExecutionError, StructType};
use regex::Regex;
use serde_json::{Map, Number, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

const OBJECT: &str = "Object";
const PATCH: &str = "JSONPatch";
const PATCH_FIELDS: [&str; 4] = ["op", "path", "from", "value"];

/// Declares the types that the expression makes objects of. A name within a text is declared, too, which changes nothing.
pub(super) fn declare(env: &mut Env, expression: &str) -> Result<(), String> {
    static NAME: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\b(Object(?:\.[A-Za-z_][A-Za-z0-9_]*)*|JSONPatch)\s*\{").ok());
    let Some(pattern) = &*NAME else { return Ok(()) };
    let names: BTreeSet<&str> =
        pattern.captures_iter(expression).filter_map(|found| Some(found.get(1)?.as_str())).collect();
    for name in names {
        let made = Maker(Type::new_struct(name.to_owned()));
        env.add_type(made).map_err(|wrong| format!("type {name}: {wrong}"))?;
    }
    Ok(())
}

/// What `Name{...}` makes.
struct Maker(Type);

impl StructType for Maker {
    fn get_type(&self) -> &Type {
        &self.0
    }

    fn new_value<'b, 'v>(
        &self,
        fields: BTreeMap<String, CowVal<'b, 'v>>,
    ) -> Result<Box<dyn Val + 'v>, ExecutionError> {
        let mut made = CelStruct::new(self.0.name().to_owned());
        for (field, value) in fields {
            if self.0.name() == PATCH && !PATCH_FIELDS.contains(&field.as_str()) {
                return Err(ExecutionError::function_error(PATCH, format!("undefined field '{field}'")));
            }
            made.add_field_value(field, value);
        }
        Ok(Box::new(made))
    }
}

/// The apply configuration that an expression made.
pub(super) fn configuration(value: &dyn Val) -> Result<Map<String, Value>, String> {
    match value.downcast_ref::<CelStruct<'_>>() {
        Some(made) if made.name() == OBJECT => fields(made),
        Some(_) | None => Err(format!(
            "unsupported return type from ApplyConfiguration expression: {}",
            value.get_type().name()
        )),
    }
}

/// The operations of a JSON patch that an expression made.
pub(super) fn json_patch(value: &dyn Val) -> Result<Vec<Value>, String> {
    let mut operations = Vec::new();
    let Some(items) = value.as_iterable().filter(|_| value.get_type().kind() == Kind::List) else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    let mut items = items.iter();
    while let Some(item) = items.next() {
        let made = item.downcast_ref::<CelStruct<'_>>().filter(|made| made.name() == PATCH);
        let Some(made) = made else {
            return Err(format!(
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch: type conversion error \
                 from '{}' to 'JSONPatch'",
                item.get_type().name()
            ));
        };
        let mut operation = Map::new();
        for (field, value) in made.field_values() {
            let read = match value.downcast_ref::<CelStruct<'_>>() {
                // An object of any type may be put anywhere; within it, names must match.
                Some(made) if field == "value" => Some(Value::Object(fields(made)?)),
                Some(_) | None => read(&*value, None)?,
            };
            if let Some(read) = read {
                operation.insert(field, read);
            }
        }
        // `value: null` of an add or replace is a value.
        operations.push(Value::Object(operation));
    }
    Ok(operations)
}

fn fields(made: &CelStruct<'_>) -> Result<Map<String, Value>, String> {
    let mut fields = Map::new();
    for (field, value) in made.field_values() {
        let of = format!("{}.{field}", made.name());
        if let Some(value) = read(&*value, Some(&of))? {
            fields.insert(field, value);
        }
    }
    Ok(fields)
}

/// The value as JSON; nothing for an optional that holds nothing. An object that is made there is `of` this type.
fn read(value: &dyn Val, of: Option<&str>) -> Result<Option<Value>, String> {
    if let Some(optional) = value.downcast_ref::<CelOptional<'_>>() {
        return optional.option().map_or(Ok(None), |value| read(value, of));
    }
    if let Some(made) = value.downcast_ref::<CelStruct<'_>>() {
        if of.is_some_and(|of| of != made.name()) {
            let of = of.unwrap_or_default();
            return Err(format!(
                "type mismatch: unexpected type name {:?}, expected {of:?}, which matches the field path",
                made.name()
            ));
        }
        return fields(made).map(|fields| Some(Value::Object(fields)));
    }
    if let Some(map) = value.downcast_ref::<Fields>() {
        let mut read_map = Map::new();
        for (key, value) in map.entries() {
            let value = value.as_ref().map_err(ToString::to_string)?;
            if let Some(value) = read(value.as_ref(), None)? {
                read_map.insert(key.to_owned(), value);
            }
        }
        return Ok(Some(Value::Object(read_map)));
    }
    if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        let mut sorted = BTreeMap::new();
        for (key, value) in map.inner() {
            let Some(key) = key.inner().downcast_ref::<CelString<'_>>() else {
                return Err("a map whose keys aren't strings is no object".to_owned());
            };
            sorted.insert(key.inner().to_owned(), value);
        }
        let mut read_map = Map::new();
        for (key, value) in sorted {
            if let Some(value) = read(value.as_ref(), None)? {
                read_map.insert(key, value);
            }
        }
        return Ok(Some(Value::Object(read_map)));
    }
    if let Some(items) = value.as_iterable().filter(|_| value.get_type().kind() == Kind::List) {
        let (mut items, mut read_items) = (items.iter(), Vec::new());
        while let Some(item) = items.next() {
            read_items.extend(read(item, of)?);
        }
        return Ok(Some(Value::Array(read_items)));
    }
    scalar(value).map(Some)
}

fn scalar(value: &dyn Val) -> Result<Value, String> {
    if value.downcast_ref::<CelNull>().is_some() {
        return Ok(Value::Null);
    }
    if let Some(flag) = value.downcast_ref::<CelBool>() {
        return Ok(json!(*flag.inner()));
    }
    if let Some(number) = value.downcast_ref::<CelInt>() {
        return Ok(json!(*number.inner()));
    }
    if let Some(number) = value.downcast_ref::<CelUInt>() {
        return Ok(json!(*number.inner()));
    }
    if let Some(number) = value.downcast_ref::<CelDouble>() {
        let read = Number::from_f64(*number.inner()).map(Value::Number);
        return read.ok_or_else(|| format!("{} is no number of JSON", number.inner()));
    }
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        return Ok(json!(text.inner()));
    }
    if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>() {
        return Ok(json!(STANDARD.encode(bytes.inner())));
    }
    Err(format!("a {} can't be part of an object", value.get_type().name()))
}
