//! Reads a document's fields and says where each stands when it is wrong.

use nodefold_k8s::{Document, InputError};
use serde_json::{Map, Value};

/// A field of a document, with its path.
#[derive(Clone)]
pub struct Reader<'a> {
    document: &'a Document,
    file: &'a str,
    /// Where it stands.
    pub path: String,
    /// What stands there.
    pub value: &'a Value,
}

impl<'a> Reader<'a> {
    /// The whole document.
    pub fn new(document: &'a Document, file: &'a str) -> Reader<'a> {
        Reader { document, file, path: String::new(), value: &document.value }
    }

    /// Its line.
    pub fn line(&self) -> usize {
        self.document.spans.nearest(&self.path).line
    }

    /// An error about this field.
    pub fn error(&self, message: impl Into<String>, remedy: impl Into<String>) -> InputError {
        let place = self.document.spans.nearest(&self.path);
        InputError {
            file: self.file.to_owned(),
            line: place.line,
            column: place.column,
            path: self.path.clone(),
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    fn child(&self, step: &str, value: &'a Value) -> Reader<'a> {
        let path = match (self.path.is_empty(), step.starts_with('[')) {
            (true, _) => step.to_owned(),
            (false, true) => format!("{}{step}", self.path),
            (false, false) => format!("{}.{step}", self.path),
        };
        Reader { document: self.document, file: self.file, path, value }
    }

    /// It is a mapping.
    pub fn mapping(&self) -> Result<&'a Map<String, Value>, InputError> {
        self.value.as_object().ok_or_else(|| {
            self.error(format!("expected a mapping, found {}", kind(self.value)), "write `key: value` pairs")
        })
    }

    /// It is a mapping with no keys but these.
    pub fn only(&self, allowed: &[&str]) -> Result<(), InputError> {
        match self.mapping()?.iter().find(|(key, _)| !allowed.contains(&key.as_str())) {
            Some((key, value)) => {
                Err(self.child(key, value).error(format!("unknown key {key:?}"), did_you_mean(key, allowed)))
            }
            None => Ok(()),
        }
    }

    /// The same, but for what a file keeps for its own aliases: keys that begin with `x-`.
    pub fn only_and_own(&self, allowed: &[&str]) -> Result<(), InputError> {
        let own = self.mapping()?.keys().map(String::as_str).filter(|key| key.starts_with("x-"));
        self.only(&allowed.iter().copied().chain(own).collect::<Vec<_>>())
    }

    /// All entries of a mapping.
    pub fn entries(&self) -> Result<Vec<(&'a str, Reader<'a>)>, InputError> {
        Ok(self.mapping()?.iter().map(|(key, value)| (key.as_str(), self.child(key, value))).collect())
    }

    /// The entry of that key. Null counts as absent.
    pub fn get(&self, key: &str) -> Result<Option<Reader<'a>>, InputError> {
        Ok(self.mapping()?.get(key).filter(|v| !v.is_null()).map(|value| self.child(key, value)))
    }

    /// The entry of that key, which must be there.
    pub fn require(&self, key: &str, remedy: &str) -> Result<Reader<'a>, InputError> {
        self.get(key)?.ok_or_else(|| self.error(format!("{key:?} is missing"), remedy))
    }

    /// The entries of a list.
    pub fn items(&self) -> Result<Vec<Reader<'a>>, InputError> {
        let list = self.value.as_array().ok_or_else(|| {
            self.error(
                format!("expected a list, found {}", kind(self.value)),
                "write `[a, b]` or `- a` lines",
            )
        })?;
        Ok(list.iter().enumerate().map(|(i, value)| self.child(&format!("[{i}]"), value)).collect())
    }

    /// A string; a number stands for its digits.
    pub fn string(&self) -> Result<String, InputError> {
        match self.value {
            Value::String(text) => Ok(text.clone()),
            Value::Number(number) => Ok(number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                Err(self.error(format!("expected a string, found {}", kind(self.value)), "put it in quotes"))
            }
        }
    }

    /// A list of strings.
    pub fn strings(&self) -> Result<Vec<String>, InputError> {
        self.items()?.iter().map(Reader::string).collect()
    }

    /// A string that need not be there.
    pub fn optional_string(&self, key: &str) -> Result<Option<String>, InputError> {
        self.get(key)?.map(|field| field.string()).transpose()
    }

    /// true or false.
    pub fn boolean(&self) -> Result<bool, InputError> {
        self.value
            .as_bool()
            .ok_or_else(|| self.error(format!("expected true or false, found {}", kind(self.value)), ""))
    }

    /// A whole number that is not negative.
    pub fn whole(&self) -> Result<u64, InputError> {
        self.value.as_u64().ok_or_else(|| match self.value {
            Value::Number(other) => {
                self.error(format!("{other} is no whole number from 0"), "write 0 or a number above it")
            }
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => self
                .error(
                    format!("expected a whole number, found {}", kind(self.value)),
                    "write digits, without quotes",
                ),
        })
    }

    /// A problem that the Kubernetes boundary found in the object standing here.
    pub fn locate(&self, problem: &nodefold_k8s::FieldProblem) -> InputError {
        self.document.locate(self.file, &self.path, problem)
    }
}

/// What a value is, in a word.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

/// The remedy for a word that is none of the known ones.
pub fn did_you_mean(word: &str, known: &[&str]) -> String {
    let nearest = known.iter().map(|k| (strsim::damerau_levenshtein(word, k), k)).min();
    match nearest {
        Some((distance, near)) if distance <= 2.max(near.len() / 3) => format!("did you mean {near:?}?"),
        Some(_) | None => format!("use one of: {}", known.join(", ")),
    }
}
