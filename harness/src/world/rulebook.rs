//! S16 in the world: every answer of `/dynamic` is held against the rules as `model` states them, apart from the API's own
//! validation.

use nodefold_api::{Api, ApiEvent, Body, Request, Response};
use nodefold_k8s::merge::strategic_merge_pod;
use nodefold_model::{Change, DynamicRules};
use serde_json::Value;
use std::sync::Arc;

/// How requests are answered: the API's reducer, or a saboteur around it.
pub type Answers = fn(&mut Api, &ApiEvent) -> Response;

/// Answers a request, and what is wrong with the answer.
pub fn answer(
    answers: Answers,
    api: &mut Api,
    rules: &mut DynamicRules,
    event: &ApiEvent,
) -> (Response, Option<String>) {
    let asked = asked(api, event);
    let gates = api.gates();
    let response = answers(api, event);
    let found = match (&response, asked) {
        (Response::Ok { object, .. }, Some((old, _))) => {
            let change = Change { old: &old, new: object, dynamic_volumes: gates.dynamic_volumes };
            rules.accepted(&change)
        }
        (Response::Rejected(status), Some((old, Some(new)))) if status.code == 422 => {
            let change = Change { old: &old, new: &new, dynamic_volumes: gates.dynamic_volumes };
            let causes: Vec<(String, String)> =
                status.causes.iter().map(|c| (c.field.clone(), c.reason.as_str().to_owned())).collect();
            rules.refused(&change, &causes)
        }
        // The body was no pod, or not this one: no rule of these was asked.
        (Response::Rejected(_), Some(_)) => None,
        (Response::Ok { object, .. }, None) => {
            if matches!(event.request, Request::Status { .. } | Request::PatchStatus { .. }) {
                rules.observed(object);
            }
            None
        }
        (Response::Rejected(_), None) => None,
    };
    (response, found)
}

/// The pod that a request to `/dynamic` would change, and what it would become, if that can be told.
fn asked(api: &Api, event: &ApiEvent) -> Option<(Arc<Value>, Option<Value>)> {
    let Request::Dynamic { namespace, name, body } = &event.request else { return None };
    let old = api.get("Pod", namespace, name)?.clone();
    let new = match body {
        Body::Full(whole) => Some(whole.clone()),
        Body::StrategicMerge(patch) => strategic_merge_pod(&old, patch).ok(),
        // Users here send the two above; what these would make of the pod isn't told twice.
        Body::Merge(_) | Body::JsonPatch(_) => None,
    };
    let new = new.filter(|new| new["spec"].is_object()).map(|mut new| {
        if new["spec"]["nodeName"].is_null() {
            new["spec"]["nodeName"] = old["spec"]["nodeName"].clone();
        }
        nodefold_k8s::default_pod(&mut new);
        new
    });
    Some((old, new))
}
