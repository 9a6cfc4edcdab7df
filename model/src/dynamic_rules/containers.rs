//! C and M: which containers may come, go and change, and the rest of the spec.

use super::{
    Broken, Change, DUPLICATE, FORBIDDEN, INVALID, NOT_FOUND, REQUIRED, STATUS_LISTS, breaks, entries,
    equal_beside, mounts, name, named, only_in, rows,
};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn judge(change: &Change<'_>, held: &BTreeSet<&str>, out: &mut Vec<Broken>) {
    let (old, new) = (change.old, change.new);
    let (before, after) = (entries(old, "containers"), entries(new, "containers"));
    if after.is_empty() {
        breaks(out, "C1", "spec.containers", REQUIRED);
    }
    for (i, container) in after.iter().enumerate() {
        let path = format!("spec.containers[{i}]");
        if after[..i].iter().any(|c| name(c) == name(container)) {
            breaks(out, "C2", format!("{path}.name"), DUPLICATE);
        }
        for (k, mount) in container["volumeMounts"].as_array().into_iter().flatten().enumerate() {
            if named(entries(new, "volumes"), name(mount)).is_none() {
                breaks(out, "C10", format!("{path}.volumeMounts[{k}].name"), NOT_FOUND);
            }
        }
        match named(before, name(container)) {
            None => added(old, container, &path, held, out),
            Some(stored) => kept(change, stored, container, &path, out),
        }
    }
    for list in ["initContainers", "ephemeralContainers"] {
        for (j, other) in entries(new, list).iter().enumerate() {
            if named(after, name(other)).is_some() {
                breaks(out, "C3", format!("spec.{list}[{j}].name"), DUPLICATE);
            }
        }
    }
    if only_in(before, after).any(|(_, gone)| unresizable(gone).next().is_some()) {
        breaks(out, "C12", "spec.containers", FORBIDDEN);
    }
    let names = |pod| entries(pod, "initContainers").iter().map(name).collect::<Vec<_>>();
    if names(old) != names(new) {
        breaks(out, "C6", "spec.initContainers", FORBIDDEN);
    }
    if entries(old, "ephemeralContainers") != entries(new, "ephemeralContainers") {
        breaks(out, "C7", "spec.ephemeralContainers", FORBIDDEN);
    }
    rest_of_spec(&old["spec"], &new["spec"], out);
}

fn added(old: &Value, container: &Value, path: &str, held: &BTreeSet<&str>, out: &mut Vec<Broken>) {
    let wanted = name(container);
    if STATUS_LISTS.iter().any(|list| named(rows(old, list), wanted).is_some()) {
        breaks(out, "C4", format!("{path}.name"), DUPLICATE);
    } else if held.contains(wanted) {
        breaks(out, "C5", format!("{path}.name"), DUPLICATE);
    }
    if container["securityContext"]["privileged"] == true {
        breaks(out, "C8", format!("{path}.securityContext.privileged"), FORBIDDEN);
    }
    for (k, port) in container["ports"].as_array().into_iter().flatten().enumerate() {
        if port["hostPort"].as_i64().is_some_and(|port| port != 0) {
            breaks(out, "C9", format!("{path}.ports[{k}].hostPort"), FORBIDDEN);
        }
    }
    for resource in unresizable(container) {
        breaks(out, "C12", format!("{path}.resources.requests[{resource}]"), FORBIDDEN);
    }
}

/// Resources beside cpu and memory that a container asks for.
fn unresizable(container: &Value) -> impl Iterator<Item = &String> {
    let asked =
        |amounts: &str| container["resources"][amounts].as_object().into_iter().flat_map(|o| o.keys());
    asked("requests").chain(asked("limits")).filter(|name| !matches!(name.as_str(), "cpu" | "memory"))
}

fn kept(change: &Change<'_>, stored: &Value, container: &Value, path: &str, out: &mut Vec<Broken>) {
    if container["image"].as_str().is_none_or(str::is_empty) {
        breaks(out, "M1", format!("{path}.image"), REQUIRED);
    }
    for amounts in ["requests", "limits"] {
        let (before, after) = (&stored["resources"][amounts], &container["resources"][amounts]);
        if ["cpu", "memory"].iter().any(|name| !before[name].is_null() && after[name].is_null()) {
            breaks(out, "M3", format!("{path}.resources.{amounts}"), FORBIDDEN);
        }
        if !equal_beside(before, after, &["cpu", "memory"]) {
            breaks(out, "M4", "spec", FORBIDDEN);
        }
    }
    if stored["resizePolicy"] != container["resizePolicy"] {
        breaks(out, "M5", format!("{path}.resizePolicy"), FORBIDDEN);
    }
    let policy = |c: &Value| c["dynamicVolumePolicy"]["restartPolicy"].as_str().unwrap_or("").to_owned();
    if mounts(stored) != mounts(container) {
        if !change.dynamic_volumes {
            breaks(out, "W12", format!("{path}.volumeMounts"), FORBIDDEN);
        } else if policy(stored) != "RestartContainer" {
            breaks(out, "D1", format!("{path}.volumeMounts"), FORBIDDEN);
        }
    }
    if stored["dynamicVolumePolicy"] != container["dynamicVolumePolicy"] {
        breaks(out, "D3", format!("{path}.dynamicVolumePolicy"), FORBIDDEN);
    }
    let may = ["image", "resources", "resizePolicy", "volumeMounts", "dynamicVolumePolicy"];
    let beside = equal_beside(&stored["resources"], &container["resources"], &["requests", "limits"]);
    if !equal_beside(stored, container, &may) || !beside {
        breaks(out, "M7", path, FORBIDDEN);
    }
}

/// M8–M13, and init containers' share.
fn rest_of_spec(old: &Value, new: &Value, out: &mut Vec<Broken>) {
    let deadline = |spec: &Value| spec["activeDeadlineSeconds"].as_i64();
    let later = match (deadline(old), deadline(new)) {
        (Some(before), Some(after)) => after > before,
        (Some(_), None) => true,
        (None, Some(_) | None) => false,
    };
    if later || deadline(new).is_some_and(|seconds| seconds < 1) {
        breaks(out, "M8", "spec.activeDeadlineSeconds", INVALID);
    }
    let list = |spec: &Value, field: &str| spec[field].as_array().cloned().unwrap_or_default();
    let alike = |a: &Value, b: &Value| equal_beside(a, b, &["tolerationSeconds"]);
    let tolerations = list(new, "tolerations");
    if list(old, "tolerations").iter().any(|stored| !tolerations.iter().any(|t| alike(stored, t))) {
        breaks(out, "M9", "spec.tolerations", FORBIDDEN);
    }
    for (i, gate) in list(new, "schedulingGates").iter().enumerate() {
        if !list(old, "schedulingGates").contains(gate) {
            breaks(out, "M10", format!("spec.schedulingGates[{i}].name"), FORBIDDEN);
        }
    }
    if old["resources"] != new["resources"] {
        breaks(out, "M13", "spec.resources", FORBIDDEN);
    }
    if old["resourceClaims"] != new["resourceClaims"] {
        breaks(out, "C11", "spec.resourceClaims", FORBIDDEN);
    }
    for (j, (stored, init)) in
        list(old, "initContainers").iter().zip(&list(new, "initContainers")).enumerate()
    {
        if mounts(stored) != mounts(init) {
            breaks(out, "W11", format!("spec.initContainers[{j}].volumeMounts"), FORBIDDEN);
        }
        let sidecar = stored["restartPolicy"] == "Always";
        let resources = sidecar || stored["resources"] == init["resources"];
        if !resources || !equal_beside(stored, init, &["image", "resources", "volumeMounts"]) {
            breaks(out, "M12", "spec", FORBIDDEN);
        }
    }
    let elsewhere = [
        "containers",
        "initContainers",
        "ephemeralContainers",
        "volumes",
        "activeDeadlineSeconds",
        "tolerations",
        "schedulingGates",
        "resources",
        "resourceClaims",
    ];
    let grace = |spec: &Value| spec["terminationGracePeriodSeconds"].as_i64();
    let shortened = grace(old).is_some_and(|seconds| seconds < 0) && grace(new) == Some(1);
    let fields: Vec<&str> =
        elsewhere.into_iter().chain(shortened.then_some("terminationGracePeriodSeconds")).collect();
    if !equal_beside(old, new, &fields) {
        breaks(out, "M12", "spec", FORBIDDEN);
    }
}
