//! Wrong about requests: the API's side accepts what its rules forbid, or refuses what they allow (S16).

use super::super::{Saboteur, Wrong};
use nodefold_api::{Api, ApiEvent, Request, Response};
use nodefold_core::config::FeatureGates;
use nodefold_core::ids::PodUid;
use nodefold_model::Invariant;
use serde_json::{Value, json};

pub(super) static TABLE: &[Saboteur] = &[
    Saboteur {
        name: "accepts-names-in-use",
        about: "The API forgets names that are still in use on the node when it is asked for new ones.",
        races: &[],
        breaks: Invariant::S16,
        also: &[],
        wrong: &[Wrong::Answers(accepts_names_in_use)],
        story: "same-name-other-source-collides",
    },
    Saboteur {
        name: "accepts-before-running",
        about: "The API takes every pod for a running, initialized one.",
        races: &[],
        breaks: Invariant::S16,
        also: &[],
        wrong: &[Wrong::Answers(accepts_before_running)],
        story: "changed-while-pending",
    },
    Saboteur {
        name: "refuses-what-is-allowed",
        about: "The API refuses changes of volumes as if their feature gate were off.",
        races: &[],
        breaks: Invariant::S16,
        also: &[],
        wrong: &[Wrong::Answers(refuses_what_is_allowed)],
        story: "warm-pod",
    },
];

/// The pod that `/dynamic` is asked to change.
fn asked(api: &Api, event: &ApiEvent) -> Option<Value> {
    let Request::Dynamic { namespace, name, .. } = &event.request else { return None };
    api.get("Pod", namespace, name).map(|pod| Value::clone(pod))
}

/// Has the request judged by another status than the stored one, which is put back afterwards.
fn judged_by(api: &mut Api, event: &ApiEvent, change: impl FnOnce(&mut Value, &Value)) -> Response {
    let Some(pod) = asked(api, event) else { return api.apply(event) };
    let text = |field: &str| pod["metadata"][field].as_str().unwrap_or("").to_owned();
    let Some(uid) = PodUid::parse_uuid(&text("uid")) else { return api.apply(event) };
    let write = |api: &mut Api, status: Value| {
        let (namespace, name) = (text("namespace").as_str().into(), text("name").as_str().into());
        let request = Request::Status { namespace, name, uid, status };
        api.apply(&ApiEvent { request, webhooks: Vec::new(), ..event.clone() })
    };
    let mut status = pod["status"].clone();
    change(&mut status, &pod["spec"]);
    write(api, status);
    let response = api.apply(event);
    write(api, pod["status"].clone());
    response
}

fn accepts_names_in_use(api: &mut Api, event: &ApiEvent) -> Response {
    judged_by(api, event, |status, spec| {
        let wanted = |list: &str, name: &Value| {
            spec[list].as_array().is_some_and(|all| all.iter().any(|entry| entry["name"] == *name))
        };
        for (rows, list) in [("containerStatuses", "containers"), ("volumeStatuses", "volumes")] {
            if let Some(rows) = status[rows].as_array_mut() {
                rows.retain(|row| wanted(list, &row["name"]));
            }
        }
    })
}

fn accepts_before_running(api: &mut Api, event: &ApiEvent) -> Response {
    judged_by(api, event, |status, _| {
        status["phase"] = json!("Running");
        status["conditions"] = json!([{"type": "Initialized", "status": "True"}]);
    })
}

fn refuses_what_is_allowed(api: &mut Api, event: &ApiEvent) -> Response {
    let mut strict = api.clone();
    let gates = FeatureGates { dynamic_volumes: false, ..api.gates() };
    strict.apply(&ApiEvent { request: Request::NodeGates(gates), webhooks: Vec::new(), ..event.clone() });
    match strict.apply(event) {
        Response::Rejected(status) if asked(api, event).is_some() => Response::Rejected(status),
        Response::Rejected(_) | Response::Ok { .. } => api.apply(event),
    }
}
