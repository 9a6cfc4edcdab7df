//! The query of a request: its parameters, read once.

use super::failure::Failure;
use super::route::unescaped;
use nodefold_api::FieldValidation;
use std::collections::BTreeMap;

/// Parameters by name.
#[derive(Clone, Debug, Default)]
pub struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    /// Reads `a=1&b=2`.
    pub fn read(text: &str) -> Result<Query, Failure> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let read = |text: &str| {
                unescaped(&text.replace('+', " "))
                    .ok_or_else(|| Failure::bad_request("the query has an escape that is none"))
            };
            found.entry(read(name)?).or_default().push(read(value)?);
        }
        Ok(Query(found))
    }

    /// The parameter; the first of several; empty if it isn't given.
    pub fn text(&self, name: &str) -> &str {
        self.all(name).first().map(String::as_str).unwrap_or_default()
    }

    /// The parameter, as often as it is given.
    pub fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// It is `true` or `1`.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.text(name), "true" | "1" | "True" | "TRUE" | "t")
    }

    /// A number, if it is given.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        match self.text(name) {
            "" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|_| Failure::bad_request(format!("{name}: {text:?} is no number of zero or more"))),
        }
    }

    /// `fieldValidation`.
    pub fn field_validation(&self) -> Result<FieldValidation, Failure> {
        let stated = self.text("fieldValidation");
        FieldValidation::read(stated).ok_or_else(|| {
            let what = format!(
                "fieldValidation: Unsupported value: {stated:?}: supported values: \"Ignore\", \"Strict\", \"Warn\""
            );
            Failure::new(422, "Invalid", what)
        })
    }

    /// `dryRun=All`.
    pub fn dry_run(&self) -> Result<bool, Failure> {
        match self.text("dryRun") {
            "" => Ok(false),
            "All" => Ok(true),
            other => Err(Failure::new(
                422,
                "Invalid",
                format!("dryRun: Unsupported value: {other:?}: supported values: \"All\""),
            )),
        }
    }
}
