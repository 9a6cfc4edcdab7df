//! Rules of any pod, new or changed, that the others lean on: unique names (C2, C3, W2), images (M1, M2),
//! mounts that name a volume (C10, W8, W9) at a path of their own, claims (C11), file keys (W10),
//! `dynamicVolumePolicy` (D4, D5), requests within limits. The other standard rules (api-side §1.5) are not
//! built.

use super::Errors;
use super::names::is_dns_label;
use crate::view::{CONTAINER_LISTS, at, list, name, named, spec_list, text};
use nodefold_k8s::quantity::Quantity;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn pod(pod: &Value, errors: &mut Errors) {
    let mut volumes = BTreeSet::new();
    for (i, volume) in spec_list(pod, "volumes").iter().enumerate() {
        let path = format!("spec.volumes[{i}].name");
        label(name(volume), &path, errors);
        if !volumes.insert(name(volume)) {
            errors.duplicate(path, name(volume), ""); // W2
        }
    }
    // C2, C3: a clash between lists is told of the later one.
    let mut names = BTreeSet::new();
    for (field, path) in CONTAINER_LISTS {
        for (i, container) in spec_list(pod, field).iter().enumerate() {
            let path = format!("{path}[{i}]");
            label(name(container), &format!("{path}.name"), errors);
            if !names.insert(name(container)) {
                errors.duplicate(format!("{path}.name"), name(container), "");
            }
            self::container(pod, container, &path, errors);
        }
    }
    for (i, container) in spec_list(pod, "containers").iter().enumerate() {
        policy_fits(pod, container, &format!("spec.containers[{i}]"), errors);
    }
}

/// S1.
fn label(name: &str, path: &str, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(path, "");
    } else if !is_dns_label(name) {
        errors.invalid(path, &Value::from(name), "must be a lowercase RFC 1123 label");
    }
}

fn container(pod: &Value, container: &Value, path: &str, errors: &mut Errors) {
    match text(container, "image") {
        "" => errors.required(format!("{path}.image"), ""), // M1
        image if image.trim() != image => {
            let detail = "must not have leading or trailing whitespace";
            errors.invalid(format!("{path}.image"), &Value::from(image), detail); // M2
        }
        _ => {}
    }
    mounts(pod, container, path, errors);
    for (k, claim) in list(at(container, "resources"), "claims").iter().enumerate() {
        if named(spec_list(pod, "resourceClaims"), name(claim)).is_none() {
            errors.not_found(format!("{path}.resources.claims[{k}]"), name(claim)); // C11
        }
    }
    file_keys(pod, container, path, errors);
    let limits = at(at(container, "resources"), "limits");
    for (resource, request) in at(at(container, "resources"), "requests").as_object().into_iter().flatten() {
        let amount = |v: &Value| Quantity::from_json(v).ok();
        if let (Some(asked), Some(most)) = (amount(request), limits.get(resource).and_then(amount))
            && asked > most
        {
            let detail = format!("must be less than or equal to {resource} limit");
            errors.invalid(format!("{path}.resources.requests"), request, &detail);
        }
    }
    let policy = at(at(container, "dynamicVolumePolicy"), "restartPolicy");
    if !policy.is_null() && !matches!(policy.as_str(), Some("" | "RestartContainer")) {
        let field = format!("{path}.dynamicVolumePolicy.restartPolicy");
        errors.not_supported(field, policy, &["", "RestartContainer"]); // D4
    }
}

/// S10–S12, which make C10, W8 and W9.
fn mounts(pod: &Value, container: &Value, path: &str, errors: &mut Errors) {
    let mut paths = BTreeSet::new();
    for (k, mount) in list(container, "volumeMounts").iter().enumerate() {
        let at_mount = format!("{path}.volumeMounts[{k}]");
        if name(mount).is_empty() {
            errors.required(format!("{at_mount}.name"), "");
        }
        if named(spec_list(pod, "volumes"), name(mount)).is_none() {
            errors.not_found(format!("{at_mount}.name"), name(mount));
        }
        match text(mount, "mountPath") {
            "" => errors.required(format!("{at_mount}.mountPath"), ""),
            at_path if !paths.insert(at_path) => {
                errors.invalid(format!("{at_mount}.mountPath"), &Value::from(at_path), "must be unique");
            }
            _ => {}
        }
    }
}

/// W10: a file key is in an emptyDir.
fn file_keys(pod: &Value, container: &Value, path: &str, errors: &mut Errors) {
    for (k, variable) in list(container, "env").iter().enumerate() {
        let reference = at(at(variable, "valueFrom"), "fileKeyRef");
        if reference.is_null() {
            continue;
        }
        let wanted = text(reference, "volumeName");
        let field = format!("{path}.env[{k}].valueFrom.fileKeyRef.volumeName");
        match named(spec_list(pod, "volumes"), wanted) {
            None => errors.not_found(field, wanted),
            Some(volume) if volume.get("emptyDir").is_none() => {
                errors.invalid(field, &Value::from(wanted), "must name an emptyDir volume");
            }
            Some(_) => {}
        }
    }
}

/// D5: a container that never restarts can't be restarted for its mounts.
fn policy_fits(pod: &Value, container: &Value, path: &str, errors: &mut Errors) {
    let policy = at(at(container, "dynamicVolumePolicy"), "restartPolicy");
    let restarts = match text(container, "restartPolicy") {
        "" => text(at(pod, "spec"), "restartPolicy"),
        own => own,
    };
    if policy == "RestartContainer" && restarts == "Never" {
        let detail = "the container's restartPolicy is Never";
        errors.invalid(format!("{path}.dynamicVolumePolicy.restartPolicy"), policy, detail);
    }
}
