//! MutatingAdmissionPolicies, evaluated: params, match conditions, variables, and each mutation over what those before it made.

use super::attributes::Attributes;
use super::cluster::Cluster;
use super::expression::{Scope, Wrong};
use super::handler::Handler;
use super::params::{self, Params};
use crate::view::{at, list, text};
use nodefold_k8s::apply::lay_over;
use nodefold_k8s::{JsonPatchError, json_patch};
use serde_json::{Map, Value};

/// What becomes of a policy with its binding that means the request.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// The object, if a mutation was applied.
    pub object: Option<Value>,
    /// What couldn't be evaluated or applied.
    pub failures: Vec<String>,
    /// It didn't apply, and why.
    pub skipped: Option<String>,
}

impl Judged {
    /// Nothing of it could be evaluated.
    pub fn failed(why: String) -> Judged {
        Judged { failures: vec![why], ..Judged::default() }
    }
}

pub(super) fn apply(request: &Attributes<'_>, handler: &Handler, cluster: Cluster<'_>) -> Judged {
    let mut judged = Judged::default();
    let found = match params::of(request, handler, cluster) {
        Params::Found(found) => found,
        Params::Skip(why) => return Judged { skipped: Some(why), ..judged },
        Params::Wrong(wrong) => return Judged::failed(format!("failed to configure binding: {wrong}")),
    };
    let spec = at(&handler.manifest, "spec");
    for params in &found {
        let now = judged.object.clone();
        let request = Attributes { object: now.as_ref().unwrap_or(request.object), ..request.clone() };
        match Scope::new(&request, params, cluster, spec).conditions_hold(spec) {
            Ok(true) => {}
            Ok(false) => {
                judged.skipped = Some("a matchCondition is false".to_owned());
                continue;
            }
            Err(wrong) => {
                judged.failures.push(wrong);
                continue;
            }
        }
        for mutation in list(spec, "mutations") {
            let now = judged.object.clone();
            let request = Attributes { object: now.as_ref().unwrap_or(request.object), ..request.clone() };
            // Variables, too, see what those before it made.
            let mut scope = Scope::new(&request, params, cluster, spec);
            scope.declare(list(spec, "variables"));
            match mutated(&scope, &request, mutation) {
                Ok(Some(object)) => judged.object = Some(object),
                Ok(None) => {}
                Err(failure) => judged.failures.push(failure),
            }
        }
    }
    judged
}

fn mutated(scope: &Scope, request: &Attributes<'_>, mutation: &Value) -> Result<Option<Value>, String> {
    match text(mutation, "patchType") {
        "ApplyConfiguration" => {
            let expression = text(at(mutation, "applyConfiguration"), "expression");
            let configuration = scope.configuration(expression).map_err(|w| told(expression, &w))?;
            laid_over(request, configuration).map(Some)
        }
        "JSONPatch" => {
            let expression = text(at(mutation, "jsonPatch"), "expression");
            let patch = scope.json_patch(expression).map_err(|w| told(expression, &w))?;
            match json_patch(request.object, &Value::Array(patch)) {
                Ok(object) => Ok(Some(object)),
                // A `test` that fails says that there is nothing to do.
                Err(JsonPatchError::TestFailed(_)) => Ok(None),
                Err(wrong) => Err(format!("JSON Patch: {wrong}")),
            }
        }
        other => Err(format!("unsupported patch type {other:?}: use ApplyConfiguration or JSONPatch")),
    }
}

fn told(expression: &str, wrong: &Wrong) -> String {
    match wrong {
        // What it made is at fault, not the making.
        Wrong::OtherType(what) => what.clone(),
        Wrong::Syntax(_) | Wrong::Lacking(_) | Wrong::Failed(_) => {
            format!("expression '{}' resulted in error: {wrong}", expression.trim())
        }
    }
}

fn laid_over(request: &Attributes<'_>, mut configuration: Map<String, Value>) -> Result<Value, String> {
    for (field, ours) in
        [("apiVersion", at(request.object, "apiVersion")), ("kind", at(request.object, "kind"))]
    {
        match configuration.get(field) {
            Some(theirs) if theirs != ours => {
                return Err(format!("error applying patch: {field} {theirs} is not the object's, {ours}"));
            }
            Some(_) | None => {}
        }
    }
    configuration.retain(|field, _| field != "apiVersion" && field != "kind");
    lay_over(request.kind, request.object, &Value::Object(configuration)).map_err(|atomic| {
        format!(
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
            atomic.join(", ")
        )
    })
}
