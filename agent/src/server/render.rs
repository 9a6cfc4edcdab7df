//! The form of an answer, as the client accepts it: objects as they are, their metadata alone, or a table.

use super::failure::Failure;
use super::query::Query;
use super::resource::Resource;
use super::table::{Include, table};
use crate::clock;
use serde_json::{Value, json};
use std::sync::Arc;

/// A form.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Form {
    /// Objects as they are.
    Plain,
    /// Only their metadata.
    Metadata {
        /// Of which kind.
        resource: &'static Resource,
    },
    /// A table of them.
    Table {
        /// Of which kind.
        resource: &'static Resource,
        /// How much of each object is with its row.
        include: Include,
    },
}

const OFFERED: &str = "application/json, application/json;as=Table;v=v1;g=meta.k8s.io, application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";

impl Form {
    /// The first form that the client accepts and that can be had.
    pub fn accepted(accept: &str, query: &Query, resource: &'static Resource) -> Result<Form, Failure> {
        if accept.is_empty() {
            return Ok(Form::Plain);
        }
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            if !matches!(media, "application/json" | "application/*" | "*/*") {
                continue;
            }
            let parameter = |name: &str| {
                let mut parts = range.split(';').skip(1).map(str::trim);
                parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
            };
            match (parameter("as"), parameter("g"), parameter("v")) {
                ("", _, _) => return Ok(Form::Plain),
                ("Table", "meta.k8s.io", "v1" | "v1beta1") => {
                    let include = match query.text("includeObject") {
                        "None" => Include::None,
                        "Object" => Include::Object,
                        "" | "Metadata" => Include::Metadata,
                        other => {
                            let what = format!("includeObject: {other:?} is none of None, Metadata, Object");
                            return Err(Failure::bad_request(what));
                        }
                    };
                    return Ok(Form::Table { resource, include });
                }
                ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1" | "v1beta1") => {
                    return Ok(Form::Metadata { resource });
                }
                _ => {}
            }
        }
        Err(Failure::not_acceptable(OFFERED))
    }

    /// One object.
    pub fn one(&self, object: &Value) -> Value {
        match self {
            Form::Plain => object.clone(),
            Form::Metadata { .. } => json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"]}),
            Form::Table { .. } if object["kind"] == "Status" => object.clone(),
            Form::Table { resource, include } => {
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                table(resource, &[Shown(object)], metadata, *include, clock::now())
            }
        }
    }

    /// A list. `rest`: how to ask for what follows, and how many that are, where it is told.
    pub fn list(
        &self,
        resource: &Resource,
        items: &[Arc<Value>],
        version: u64,
        rest: Option<(String, Option<usize>)>,
    ) -> Value {
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if let Some((token, left)) = rest {
            metadata["continue"] = json!(token);
            if let Some(left) = left {
                metadata["remainingItemCount"] = json!(left);
            }
        }
        match self {
            Form::Plain => {
                let items: Vec<&Value> = items.iter().map(|item| &**item).collect();
                json!({"kind": format!("{}List", resource.kind), "apiVersion": resource.api_version(),
                    "metadata": metadata, "items": items})
            }
            Form::Metadata { .. } => {
                let items: Vec<Value> = items.iter().map(|item| self.one(item)).collect();
                json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                    "metadata": metadata, "items": items})
            }
            Form::Table { resource, include } => {
                let items: Vec<Shown<'_>> = items.iter().map(|item| Shown(item)).collect();
                table(resource, &items, metadata, *include, clock::now())
            }
        }
    }
}

struct Shown<'v>(&'v Value);

impl AsRef<Value> for Shown<'_> {
    fn as_ref(&self) -> &Value {
        self.0
    }
}
