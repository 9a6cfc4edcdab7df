//! S10–S18, which make C10, W8 and W9: where a container sees volumes.

use super::is_set;
use super::paths::local;
use crate::validate::Errors;
use crate::view::{at, list, name, named, spec_list, text};
use serde_json::Value;
use std::collections::BTreeSet;

const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const RECURSIVE: [&str; 3] = ["Disabled", "Enabled", "IfPossible"];

pub(super) fn all(pod: &Value, container: &Value, path: &str, errors: &mut Errors) {
    // S14, S16–S18: Kubernetes tells these at the list, without an index.
    let list_path = format!("{path}.volumeMounts");
    let devices = list(container, "volumeDevices");
    let mut paths = BTreeSet::new();
    for (k, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at_mount = format!("{list_path}[{k}]");
        if name(mount).is_empty() {
            errors.of("S10").required(format!("{at_mount}.name"), "");
        }
        if named(spec_list(pod, "volumes"), name(mount)).is_none() {
            errors.of("S11").not_found(format!("{at_mount}.name"), name(mount));
        }
        let target = text(mount, "mountPath");
        if target.is_empty() {
            errors.of("S10").required(format!("{at_mount}.mountPath"), "");
        }
        if !paths.insert(target) {
            errors.of("S12").invalid(format!("{at_mount}.mountPath"), &Value::from(target), "must be unique");
        }
        if named(devices, name(mount)).is_some() {
            let detail = "must not already exist in volumeDevices";
            errors.of("S13").invalid(format!("{at_mount}.name"), &Value::from(name(mount)), detail);
        }
        if devices.iter().any(|device| text(device, "devicePath") == target) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.of("S13").invalid(format!("{at_mount}.mountPath"), &Value::from(target), detail);
        }
        sub_paths(mount, &list_path, &at_mount, errors);
        propagation(container, mount, &format!("{list_path}.mountPropagation"), errors);
        recursive(mount, &format!("{list_path}.recursiveReadOnly"), errors);
    }
}

/// S14, S15.
fn sub_paths(mount: &Value, list_path: &str, at_mount: &str, errors: &mut Errors) {
    errors.judge("S14");
    let (plain, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
    if !plain.is_empty() {
        local(plain, &format!("{list_path}.subPath"), errors);
    }
    if expression.is_empty() {
        return;
    }
    if !plain.is_empty() {
        let detail = "subPathExpr and subPath are mutually exclusive";
        errors.of("S15").invalid(format!("{at_mount}.subPathExpr"), &Value::from(expression), detail);
    }
    local(expression, &format!("{list_path}.subPathExpr"), errors);
}

/// S16, S17.
fn propagation(container: &Value, mount: &Value, path: &str, errors: &mut Errors) {
    let Some(wanted) = at(mount, "mountPropagation").as_str() else { return };
    if !PROPAGATIONS.contains(&wanted) {
        errors.of("S16").not_supported(path, &Value::from(wanted), &PROPAGATIONS);
    }
    let privileged = at(at(container, "securityContext"), "privileged") == &Value::Bool(true);
    if wanted == "Bidirectional" && !privileged {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.of("S17").forbidden(path, detail);
    }
}

/// S18.
fn recursive(mount: &Value, path: &str, errors: &mut Errors) {
    match at(mount, "recursiveReadOnly").as_str() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if at(mount, "readOnly") != &Value::Bool(true) {
                errors.of("S18").forbidden(path, "may only be specified when readOnly is true");
            }
            if is_set(mount, "mountPropagation") && text(mount, "mountPropagation") != "None" {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.of("S18").forbidden(path, detail);
            }
        }
        Some(other) => errors.of("S18").not_supported(path, &Value::from(other), &RECURSIVE),
    }
}
