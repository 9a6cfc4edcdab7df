//! Unknown fields and wrong types, all at once, each with its path and a remedy: Kubernetes' strict decoding,
//! with better manners.

use crate::fields::{type_name, wrong_type};
use crate::problem::{self, FieldProblem, ProblemReason};
use crate::quantity::Quantity;
use crate::schema::{KINDS, Schema, Type, schema};
use crate::time;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeMap;

/// Whether the fields of that kind are known, so that objects of it can be checked.
pub fn has_known_fields(kind: &str) -> bool {
    schema().kind(kind).is_some()
}

/// What of a whole object of a kind with known fields Kubernetes doesn't know or can't read.
/// Fields that are missing are for validation to name, not for this.
pub fn check_fields(value: &Value, kind: &str) -> Vec<FieldProblem> {
    check(value, kind, false)
}

/// The same of a strategic-merge patch, which may also hold directives (`$patch`, `$setElementOrder/...`,
/// `$retainKeys`, `$deleteFromPrimitiveList/...`).
pub fn check_patch_fields(patch: &Value, kind: &str) -> Vec<FieldProblem> {
    check(patch, kind, true)
}

fn check(value: &Value, kind: &str, patch: bool) -> Vec<FieldProblem> {
    let schema = schema();
    let Some((root, group)) = schema.kind(kind) else {
        let kinds = KINDS.map(|(kind, _)| kind);
        return vec![FieldProblem {
            remedy: match similar(kind, kinds.into_iter()) {
                Some(known) => format!("did you mean {known}?"),
                None => format!("use one of: {}", kinds.join(", ")),
            },
            ..FieldProblem::not_supported("kind", kind, &kinds)
        }];
    };
    let mut checker =
        Checker { schema, patch, secret: kind == "Secret", around: Vec::new(), out: Vec::new() };
    // The core group has one version; of a group all versions have these fields, a policy's older ones too.
    let in_group = |got: &str| match group {
        "" => got == "v1",
        group => got.strip_prefix(group).is_some_and(|rest| rest.starts_with("/v1")),
    };
    let said = |name: &str| value.get(name).and_then(Value::as_str);
    if let Some(got) = said("apiVersion").filter(|got| !in_group(got)) {
        let wanted = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
        checker.out.push(FieldProblem::not_supported("apiVersion", got, &[&wanted]));
    }
    if let Some(got) = said("kind").filter(|got| *got != kind) {
        checker.out.push(FieldProblem::not_supported("kind", got, &[kind]));
    }
    checker.value(value, root, "");
    checker.out
}

struct Checker {
    schema: &'static Schema,
    patch: bool,
    /// What it holds must not be repeated in a message.
    secret: bool,
    /// The objects around the one being checked, outermost first.
    around: Vec<(&'static BTreeMap<String, Type>, String)>,
    out: Vec<FieldProblem>,
}

impl Checker {
    fn value(&mut self, value: &Value, of: &'static Type, path: &str) {
        if value.is_null() {
            return; // as absent
        }
        match self.schema.resolve(of) {
            // `resolve` ends every name, and what is open takes anything.
            Type::Named(_) | Type::Anything => {}
            Type::Object(fields) => match value.as_object() {
                Some(object) => {
                    self.around.push((fields, path.to_owned()));
                    for (name, value) in object {
                        match fields.get(name) {
                            Some(of) => self.value(value, of, &problem::field(path, name)),
                            None if self.is_directive(name) => {}
                            None => self.unknown(name, fields, path),
                        }
                    }
                    self.around.pop();
                }
                None => self.out.push(wrong_type(path, "a mapping", value)),
            },
            Type::Map(of) => match value.as_object() {
                Some(object) => {
                    for (name, value) in object {
                        if !self.is_directive(name) {
                            self.value(value, of, &problem::key(path, name));
                        }
                    }
                }
                None => self.out.push(wrong_type(path, "a mapping", value)),
            },
            Type::List(of) => match value.as_array() {
                Some(items) => {
                    for (i, item) in items.iter().enumerate() {
                        self.value(item, of, &problem::index(path, i));
                    }
                }
                None => self.out.push(wrong_type(path, "a list", value)),
            },
            Type::Text => self.wanted(value.is_string(), value, path, "a string"),
            Type::Flag => self.wanted(value.is_boolean(), value, path, "a boolean"),
            Type::IntegerOrText => {
                self.wanted(value.is_i64() || value.is_string(), value, path, "an integer or a string");
            }
            Type::Integer64 => self.wanted(value.is_i64(), value, path, "an integer"),
            Type::Integer32 => match value.as_i64() {
                Some(number) if i32::try_from(number).is_err() => {
                    let message = format!("{number} does not fit into 32 bits");
                    self.invalid(path, message, "use a number between -2147483648 and 2147483647");
                }
                Some(_) => {}
                None => self.out.push(wrong_type(path, "an integer", value)),
            },
            Type::Amount => {
                if let Err(error) = Quantity::from_json(value) {
                    self.invalid(path, error.to_string(), "write it like 500m, 2, 64Mi or 1G");
                }
            }
            Type::Timestamp => match value.as_str() {
                Some(text) => {
                    if let Err(error) = time::parse(text) {
                        self.invalid(path, error.to_string(), "write it like 2026-11-30T18:49:55Z");
                    }
                }
                None => self.out.push(wrong_type(path, "a string", value)),
            },
            Type::Base64 => match value.as_str() {
                // The text is a secret's: it is not repeated in the message.
                Some(text) if STANDARD.decode(text).is_err() => {
                    let remedy = "encode it, or give the text itself in stringData";
                    self.invalid(path, "this is no base64".to_owned(), remedy);
                }
                Some(_) => {}
                None => {
                    let message = format!("a string of base64 is needed, not {}", type_name(value));
                    let remedy = "encode it, or give the text itself in stringData";
                    self.out.push(FieldProblem::new(path, ProblemReason::WrongType, message, remedy));
                }
            },
        }
    }

    fn is_directive(&self, name: &str) -> bool {
        self.patch && name.starts_with('$')
    }

    fn wanted(&mut self, is: bool, value: &Value, path: &str, wanted: &str) {
        if !is {
            let mut problem = wrong_type(path, wanted, value);
            if self.secret && value.is_number() {
                problem.remedy = "quote it".to_owned();
            }
            self.out.push(problem);
        }
    }

    fn invalid(&mut self, path: &str, message: String, remedy: &str) {
        self.out.push(FieldProblem::new(path, ProblemReason::Invalid, message, remedy));
    }

    fn unknown(&mut self, name: &str, fields: &BTreeMap<String, Type>, path: &str) {
        let remedy = self.place_for(name, fields, path);
        let message = format!("unknown field {name:?}");
        self.out.push(FieldProblem::new(
            problem::field(path, name),
            ProblemReason::UnknownField,
            message,
            remedy,
        ));
    }

    /// Where an unknown field was meant to be: a slip of the pen, of the indentation, or unknown indeed.
    fn place_for(&self, name: &str, fields: &BTreeMap<String, Type>, path: &str) -> String {
        if let Some(known) = similar(name, fields.keys().map(String::as_str)) {
            return format!("did you mean {known:?}?");
        }
        let outer = self.around.iter().rev().skip(1).find(|(fields, _)| fields.contains_key(name));
        if let Some((_, outer)) = outer {
            let outer = if outer.is_empty() { "the top of the document" } else { outer };
            return format!("it is a field of {outer}: indent it less");
        }
        let inner = fields.iter().find_map(|(field, of)| {
            let of = self.schema.resolve(of);
            let (of, entry) =
                if let Type::List(of) = of { (self.schema.resolve(of), "[]") } else { (of, "") };
            matches!(of, Type::Object(fields) if fields.contains_key(name)).then(|| format!("{field}{entry}"))
        });
        match inner {
            Some(inner) => format!("it is a field of {}: move it there", problem::field(path, &inner)),
            None => "remove it".to_owned(),
        }
    }
}

/// The known name that one most probably meant.
fn similar<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    const LONGEST: usize = 64;
    if name.len() > LONGEST {
        return None;
    }
    let lower = name.to_lowercase();
    let within = (name.chars().count() / 3).max(1);
    known
        .map(|known| (strsim::damerau_levenshtein(&lower, &known.to_lowercase()), known))
        .filter(|(distance, _)| *distance <= within)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}
