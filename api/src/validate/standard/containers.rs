//! S1–S4, C2, C3, D4, D5: containers of each kind, field by field in Kubernetes' order.

use super::{devices, env, is_set, lifecycle, mounts, ports, probes, resources, restart, security};
use crate::ApiConfig;
use crate::validate::Errors;
use crate::validate::names::label;
use crate::view::{at, is_sidecar, list, name, spec_list, text};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn mains(pod: &Value, config: &ApiConfig, errors: &mut Errors) {
    let containers = spec_list(pod, "containers");
    if containers.is_empty() {
        errors.of("C1").required("spec.containers", "");
    }
    let mut names = BTreeSet::new();
    for (i, container) in containers.iter().enumerate() {
        let path = format!("spec.containers[{i}]");
        common(pod, container, config, &path, errors);
        if !names.insert(name(container)) {
            errors.of("C2").duplicate(format!("{path}.name"), name(container), "");
        }
        lifecycle::all(pod, container, &path, errors);
        probes::all(container, super::grace_seconds(pod), &path, errors);
        restart::main(container, config, &path, errors);
        volume_policy_fits(pod, container, &path, errors);
    }
    ports::host_ports_apart(containers.iter().enumerate(), "spec.containers", errors);
}

const INIT_ONLY: &str = "may not be set for init containers without restartPolicy=Always";

pub(super) fn inits(pod: &Value, config: &ApiConfig, errors: &mut Errors) {
    let mut names: BTreeSet<&str> = spec_list(pod, "containers").iter().map(name).collect();
    for (i, container) in spec_list(pod, "initContainers").iter().enumerate() {
        let path = format!("spec.initContainers[{i}]");
        common(pod, container, config, &path, errors);
        restart::init(container, config, &path, errors);
        if !names.insert(name(container)) {
            errors.of("C3").duplicate(format!("{path}.name"), name(container), "");
        }
        ports::host_ports_apart([(i, container)].into_iter(), "spec.initContainers", errors);
        if is_sidecar(container) {
            lifecycle::all(pod, container, &path, errors);
            probes::all(container, super::grace_seconds(pod), &path, errors);
        } else {
            errors.judge("S36");
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if is_set(container, field) {
                    errors.forbidden(format!("{path}.{field}"), INIT_ONLY);
                }
            }
        }
    }
}

/// What an ephemeral container can't have: it is no part of the workload.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

pub(super) fn ephemerals(pod: &Value, config: &ApiConfig, errors: &mut Errors) {
    let others: BTreeSet<&str> =
        spec_list(pod, "containers").iter().chain(spec_list(pod, "initContainers")).map(name).collect();
    let mut names = others.clone();
    let all = spec_list(pod, "ephemeralContainers");
    for (i, container) in all.iter().enumerate() {
        let path = format!("spec.ephemeralContainers[{i}]");
        common(pod, container, config, &path, errors);
        image_unpadded(container, &path, errors);
        if !names.insert(name(container)) {
            errors.of("C3").duplicate(format!("{path}.name"), name(container), "");
        }
        errors.judge("");
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !others.contains(target) {
            errors.not_found(format!("{path}.targetContainerName"), target);
        }
        for field in NOT_EPHEMERAL {
            let empty = |value: &Value| value.as_object().is_some_and(serde_json::Map::is_empty);
            if is_set(container, field) && !empty(at(container, field)) {
                errors.forbidden(format!("{path}.{field}"), "cannot be set for an Ephemeral Container");
            }
        }
        for (k, mount) in list(container, "volumeMounts").iter().enumerate() {
            for field in ["subPath", "subPathExpr"] {
                if is_set(mount, field) {
                    let field = format!("{path}.volumeMounts[{k}].{field}");
                    errors.forbidden(field, "cannot be set for an Ephemeral Container");
                }
            }
        }
    }
}

/// Fields that containers of all kinds have.
fn common(pod: &Value, container: &Value, config: &ApiConfig, path: &str, errors: &mut Errors) {
    errors.judge("S1");
    let named_at = format!("{path}.name");
    if name(container).is_empty() {
        errors.required(named_at, "");
    } else {
        label(name(container), &named_at, errors);
    }
    if text(container, "image").is_empty() {
        errors.of("S2").required(format!("{path}.image"), "");
    }
    errors.judge("S4");
    let policies = ["File", "FallbackToLogsOnError"];
    let field = format!("{path}.terminationMessagePolicy");
    super::one_of(at(container, "terminationMessagePolicy"), field, &policies, errors);
    ports::all(container, path, errors);
    env::all(pod, container, path, errors);
    mounts::all(pod, container, path, errors);
    devices::all(pod, container, path, errors);
    errors.judge("S3");
    let policies = ["Always", "IfNotPresent", "Never"];
    super::one_of(at(container, "imagePullPolicy"), format!("{path}.imagePullPolicy"), &policies, errors);
    resources::all(pod, container, path, errors);
    resize_policy(pod, container, path, errors);
    security::context(pod, container, config, path, errors);
    let policy = at(at(container, "dynamicVolumePolicy"), "restartPolicy");
    if !policy.is_null() && !matches!(policy.as_str(), Some("" | "RestartContainer")) {
        let field = format!("{path}.dynamicVolumePolicy.restartPolicy");
        errors.of("D4").not_supported(field, policy, &["", "RestartContainer"]);
    }
}

/// S2, M2: no spaces around an image's name.
pub(super) fn image_unpadded(container: &Value, path: &str, errors: &mut Errors) {
    let image = text(container, "image");
    if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.of("S2").invalid(format!("{path}.image"), &Value::from(image), detail);
    }
}

/// When a resize restarts the container (KEP-1287).
fn resize_policy(pod: &Value, container: &Value, path: &str, errors: &mut Errors) {
    errors.judge("");
    let path = format!("{path}.resizePolicy");
    let policies = list(container, "resizePolicy");
    for (k, policy) in policies.iter().enumerate() {
        let resource = text(policy, "resourceName");
        if policies[..k].iter().any(|p| text(p, "resourceName") == resource) {
            errors.duplicate(format!("{path}[{k}]"), resource, "");
        }
        super::one_of(at(policy, "resourceName"), path.clone(), &["cpu", "memory"], errors);
        let restart = at(policy, "restartPolicy");
        super::one_of(restart, path.clone(), &["NotRequired", "RestartContainer"], errors);
        if text(at(pod, "spec"), "restartPolicy") == "Never" && restart != "NotRequired" {
            let detail = "must be 'NotRequired' when `restartPolicy` is 'Never'";
            errors.invalid(path.as_str(), restart, detail);
        }
    }
}

/// D5: a container that never restarts can't be restarted for its mounts.
fn volume_policy_fits(pod: &Value, container: &Value, path: &str, errors: &mut Errors) {
    let policy = at(at(container, "dynamicVolumePolicy"), "restartPolicy");
    let restarts = match text(container, "restartPolicy") {
        "" => text(at(pod, "spec"), "restartPolicy"),
        own => own,
    };
    if policy == "RestartContainer" && restarts == "Never" {
        let detail = "must be empty when the container's restartPolicy is 'Never'";
        errors.of("D5").invalid(format!("{path}.dynamicVolumePolicy.restartPolicy"), policy, detail);
    }
}
