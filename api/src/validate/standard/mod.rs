//! Rules of any pod, new or changed (S1–S40), in the order in which Kubernetes tells them: volumes, claims, containers,
//! init containers, ephemeral containers, the pod's own resources, the rest of the spec, and last what holds
//! for pods but not for pod templates (S2's spaces, S28).
//!
//! C2, C3, C10, C11, W2, W8–W10, M1, M2, D4 and D5 are rules of any pod and live here too. One room per field of a
//! container or volume; none of them knows what was stored before.

mod containers;
mod devices;
mod env;
mod lifecycle;
mod mounts;
mod network;
mod paths;
mod placement;
mod pod_resources;
mod ports;
mod probes;
mod projected;
mod resources;
mod restart;
mod security;
mod spec;
mod volumes;

use super::Errors;
use crate::ApiConfig;
use crate::view::{at, spec_list};
use serde_json::Value;

/// The whole pod.
pub(super) fn pod(pod: &Value, config: &ApiConfig, errors: &mut Errors) {
    volumes::all(pod, errors);
    spec::resource_claims(pod, errors);
    containers::mains(pod, config, errors);
    containers::inits(pod, config, errors);
    containers::ephemerals(pod, config, errors);
    pod_resources::consistent(pod, errors);
    spec::rest(pod, errors);
    volumes::tokens_need_an_account(pod, errors);
    for list in ["containers", "initContainers"] {
        for (i, container) in spec_list(pod, list).iter().enumerate() {
            containers::image_unpadded(container, &format!("spec.{list}[{i}]"), errors);
        }
    }
}

/// The pod's grace period, which hooks' sleeps must fit into.
fn grace_seconds(pod: &Value) -> i64 {
    at(at(pod, "spec"), "terminationGracePeriodSeconds").as_i64().unwrap_or(0)
}

/// Some value is given for the field.
fn is_set(value: &Value, field: &str) -> bool {
    !at(value, field).is_null()
}

/// The value is one of these, or it is told.
fn one_of(value: &Value, path: String, supported: &[&str], errors: &mut Errors) {
    match value.as_str() {
        None | Some("") => errors.required(path, ""),
        Some(text) if supported.contains(&text) => {}
        Some(_) => errors.not_supported(path, value, supported),
    }
}
