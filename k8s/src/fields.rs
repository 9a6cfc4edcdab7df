//! Reading an object by taking its fields out one by one: what nobody took is the rest.

use crate::canonical;
use crate::problem::{self, FieldProblem, ProblemReason};
use crate::quantity::Quantity;
use nodefold_core::ids::Name;
use nodefold_core::resources::{ResourceList, ResourceName};
use nodefold_core::spec::Blob;
use serde_json::{Map, Value};

/// Problems found on the way.
pub(crate) type Problems = Vec<FieldProblem>;

/// An object being read.
pub(crate) struct Fields {
    /// Where it stands.
    pub path: String,
    map: Map<String, Value>,
}

/// Reads a map of quantities, such as a node's allocatable: cpu in thousandths, the rest in whole units, each
/// rounded up.
pub fn resource_list_from_json(value: &Value, path: &str) -> Result<ResourceList, Vec<FieldProblem>> {
    let mut out = Problems::new();
    let fields = Fields::new(path, value.clone(), &mut out);
    let list = read_amounts(&fields, &mut out);
    if out.is_empty() { Ok(list) } else { Err(out) }
}

fn read_amounts(fields: &Fields, out: &mut Problems) -> ResourceList {
    let mut list = ResourceList::default();
    for (resource, value) in &fields.map {
        if let Some(quantity) = amount(&problem::key(&fields.path, resource), value, out) {
            let resource = ResourceName::parse(resource);
            let units = if resource == ResourceName::Cpu { quantity.milli() } else { quantity.units() };
            list.set(resource, units);
        }
    }
    list
}

/// What a JSON value is called in messages.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// A value of the wrong JSON type, with a remedy for the usual slips.
pub(crate) fn wrong_type(path: impl Into<String>, wanted: &str, got: &Value) -> FieldProblem {
    let remedy = match (wanted, got) {
        ("a string", Value::Bool(_) | Value::Number(_)) => format!("quote it: \"{got}\""),
        ("a boolean", Value::String(_)) => "write true or false without quotes".to_owned(),
        ("an integer" | "a number", Value::String(_)) => "write the number without quotes".to_owned(),
        ("a list", Value::Object(_) | Value::String(_)) => "begin each entry with \"- \"".to_owned(),
        _ => format!("write {wanted} here"),
    };
    let message = format!("{wanted} is needed, not {}", type_name(got));
    FieldProblem::new(path, ProblemReason::WrongType, message, remedy)
}

impl Fields {
    /// Opens an object. Anything else is a problem and reads as empty.
    pub fn new(path: impl Into<String>, value: Value, out: &mut Problems) -> Fields {
        let path = path.into();
        match value {
            Value::Object(map) => Fields { path, map },
            Value::Null => Fields { path, map: Map::new() },
            other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                out.push(wrong_type(path.clone(), "a mapping", &other));
                Fields { path, map: Map::new() }
            }
        }
    }

    pub fn path_of(&self, name: &str) -> String {
        problem::field(&self.path, name)
    }

    /// Takes a field; null is absent.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.map.shift_remove(name).filter(|v| !v.is_null())
    }

    /// Looks at a field that stays where it is.
    pub fn peek(&self, name: &str) -> Option<&Value> {
        self.map.get(name).filter(|v| !v.is_null())
    }

    /// Puts a field (back) among the rest.
    pub fn keep(&mut self, name: &str, value: Value) {
        self.map.insert(name.to_owned(), value);
    }

    pub fn text(&mut self, name: &str, out: &mut Problems) -> Option<String> {
        let value = self.take(name)?;
        let text = string(&self.path_of(name), &value, out)?;
        Some(text.to_owned())
    }

    /// A string that must be there and not be empty.
    pub fn required_text(&mut self, name: &str, remedy: &str, out: &mut Problems) -> Name {
        let before = out.len();
        let text = self.text(name, out).unwrap_or_default();
        if text.is_empty() && out.len() == before {
            out.push(FieldProblem::required(self.path_of(name), remedy));
        }
        text.into()
    }

    pub fn flag(&mut self, name: &str, out: &mut Problems) -> bool {
        match self.take(name) {
            None => false,
            Some(Value::Bool(value)) => value,
            Some(other) => {
                out.push(wrong_type(self.path_of(name), "a boolean", &other));
                false
            }
        }
    }

    pub fn integer(&mut self, name: &str, out: &mut Problems) -> Option<i64> {
        let value = self.take(name)?;
        match value.as_i64() {
            Some(number) => Some(number),
            None => {
                out.push(wrong_type(self.path_of(name), "an integer", &value));
                None
            }
        }
    }

    pub fn list(&mut self, name: &str, out: &mut Problems) -> Vec<Value> {
        match self.take(name) {
            None => Vec::new(),
            Some(Value::Array(items)) => items,
            Some(other) => {
                out.push(wrong_type(self.path_of(name), "a list", &other));
                Vec::new()
            }
        }
    }

    /// Opens an object below this one, if it is there.
    pub fn object(&mut self, name: &str, out: &mut Problems) -> Option<Fields> {
        let value = self.take(name)?;
        Some(Fields::new(self.path_of(name), value, out))
    }

    /// A string of a closed set.
    pub fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)], out: &mut Problems) -> Option<T> {
        let text = self.text(name, out)?;
        let chosen = choices.iter().find(|(spelling, _)| *spelling == text).map(|(_, choice)| *choice);
        if chosen.is_none() {
            let allowed: Vec<&str> = choices.iter().map(|(spelling, _)| *spelling).collect();
            out.push(FieldProblem::not_supported(self.path_of(name), &text, &allowed));
        }
        chosen
    }

    /// A map of quantities: cpu in thousandths, everything else in whole units, each rounded up.
    pub fn amounts(&mut self, name: &str, out: &mut Problems) -> ResourceList {
        match self.object(name, out) {
            Some(fields) => read_amounts(&fields, out),
            None => ResourceList::default(),
        }
    }

    /// Nothing is left.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// What nobody took.
    pub fn into_map(self) -> Map<String, Value> {
        self.map
    }

    /// What nobody took, as a blob.
    pub fn rest(self) -> Blob {
        canonical::blob(self.map)
    }
}

/// A string.
pub(crate) fn string<'v>(path: &str, value: &'v Value, out: &mut Problems) -> Option<&'v str> {
    let text = value.as_str();
    if text.is_none() {
        out.push(wrong_type(path, "a string", value));
    }
    text
}

/// A quantity that isn't negative.
pub(crate) fn amount(path: &str, value: &Value, out: &mut Problems) -> Option<Quantity> {
    match Quantity::from_json(value) {
        Ok(quantity) if quantity.is_negative() => {
            let message = format!("{quantity} is negative");
            out.push(FieldProblem::new(path, ProblemReason::Invalid, message, "use zero or more"));
            None
        }
        Ok(quantity) => Some(quantity),
        Err(error) => {
            let remedy = "write it like 500m, 2, 64Mi or 1G";
            out.push(FieldProblem::new(path, ProblemReason::Invalid, error.to_string(), remedy));
            None
        }
    }
}
