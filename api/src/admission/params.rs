//! Parameter objects of policies: what a binding's `paramRef` refers to.

use super::attributes::Attributes;
use super::cluster::Cluster;
use super::handler::Handler;
use super::selector::{Selector, labels};
use crate::view::{at, name, text};
use serde_json::Value;

/// What a binding's paramRef comes to.
pub(super) enum Params {
    /// These objects, one after the other; null if the policy has no params.
    Found(Vec<Value>),
    /// None, and the binding allows that.
    Skip(String),
    /// None, or they can't be looked for; why.
    Wrong(String),
}

/// The parameter objects that the binding refers to; one null if the policy has no params.
pub(super) fn of(request: &Attributes<'_>, handler: &Handler, cluster: Cluster<'_>) -> Params {
    let kind = text(at(at(&handler.manifest, "spec"), "paramKind"), "kind");
    let reference = at(at(&handler.binding, "spec"), "paramRef");
    if kind.is_empty() || reference.is_null() {
        return Params::Found(vec![Value::Null]);
    }
    let namespace = match text(reference, "namespace") {
        "" => request.namespace,
        given => given,
    };
    let wanted = name(reference);
    let found: Vec<Value> = if wanted.is_empty() {
        let selector = match Selector::read(at(reference, "selector")) {
            Ok(selector) => selector,
            Err(wrong) => return Params::Wrong(format!("paramRef.selector: {wrong}")),
        };
        let candidates = cluster.in_namespace(kind, namespace).chain(cluster.in_namespace(kind, ""));
        candidates.filter(|object| selector.selects(&labels(object))).map(|o| Value::clone(o)).collect()
    } else {
        let own = cluster.object(kind, namespace, wanted).or_else(|| cluster.object(kind, "", wanted));
        own.map(|object| Value::clone(object)).into_iter().collect()
    };
    if !found.is_empty() {
        return Params::Found(found);
    }
    let what = if wanted.is_empty() { "by the selector".to_owned() } else { format!("{wanted:?}") };
    match text(reference, "parameterNotFoundAction") {
        "Allow" => Params::Skip(format!("no {kind} {what} is found, which the binding allows")),
        _ => Params::Wrong(format!(
            "no params found for policy binding with `Deny` parameterNotFoundAction: {kind} {what}"
        )),
    }
}
