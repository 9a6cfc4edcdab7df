//! S35: probes. A probe asks in exactly one way.

use super::is_set;
use super::lifecycle::handler;
use crate::validate::Errors;
use crate::view::at;
use serde_json::Value;

/// A container's three probes.
pub(super) fn all(container: &Value, grace_seconds: i64, path: &str, errors: &mut Errors) {
    errors.judge("S35");
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if is_set(container, name) {
            probe(name, at(container, name), grace_seconds, &format!("{path}.{name}"), errors);
        }
    }
}

fn probe(name: &str, probe: &Value, grace_seconds: i64, path: &str, errors: &mut Errors) {
    handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"], grace_seconds, path, errors);
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        if at(probe, field).as_i64().is_some_and(|n| n < 0) {
            let detail = "must be greater than or equal to 0";
            errors.invalid(format!("{path}.{field}"), at(probe, field), detail);
        }
    }
    let grace = at(probe, "terminationGracePeriodSeconds");
    let field = format!("{path}.terminationGracePeriodSeconds");
    if grace.as_i64().is_some_and(|seconds| seconds <= 0) {
        errors.invalid(field.as_str(), grace, "must be greater than 0");
    }
    if name == "readinessProbe" {
        if !grace.is_null() {
            errors.invalid(field, grace, "must not be set for readinessProbes");
        }
    } else if at(probe, "successThreshold").as_i64().is_some_and(|n| n != 1) {
        errors.invalid(format!("{path}.successThreshold"), at(probe, "successThreshold"), "must be 1");
    }
}
