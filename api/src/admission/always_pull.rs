//! AlwaysPullImages: nobody starts an image that they couldn't pull themselves. On `/dynamic` (api-side §2.4) for added containers
//! and image volumes: those that stay were judged when they came, and M7 forbids to change them.

use super::attributes::{Attributes, Operation};
use crate::response::{Cause, CauseReason, Status};
use crate::view::{at, list, name, named, spec_list, text};
use serde_json::{Value, json};

const ALWAYS: &str = "Always";

/// Every list of a spec whose entries have images, with the field that holds the pull policy.
const LISTS: [(&str, &str, &str); 4] = [
    ("initContainers", "", "imagePullPolicy"),
    ("containers", "", "imagePullPolicy"),
    ("ephemeralContainers", "", "imagePullPolicy"),
    ("volumes", "image", "pullPolicy"),
];

fn acts_on(request: &Attributes<'_>) -> bool {
    let part = match request.operation {
        Operation::Create => request.subresource.is_empty(),
        Operation::Update => matches!(request.subresource, "dynamic" | "ephemeralcontainers" | ""),
        Operation::Delete => false,
    };
    request.resource == "pods" && part
}

/// The entry is this request's to judge: a new one.
fn is_new(request: &Attributes<'_>, list: &str, entry: &Value) -> bool {
    named(spec_list(request.old_object, list), name(entry)).is_none()
}

/// Sets the policy. The names of what was changed.
pub(super) fn fill_in(request: &Attributes<'_>, object: &mut Value) -> Vec<String> {
    let mut filled = Vec::new();
    if !acts_on(request) {
        return filled;
    }
    for (list, inside, field) in LISTS {
        let entries =
            object.get_mut("spec").and_then(|spec| spec.get_mut(list)).and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten().filter(|entry| is_new(request, list, entry)) {
            let told = name(entry).to_owned();
            let holder = if inside.is_empty() { Some(entry) } else { entry.get_mut(inside) };
            let Some(holder) = holder.filter(|holder| holder.is_object() && text(holder, field) != ALWAYS)
            else {
                continue;
            };
            holder[field] = json!(ALWAYS);
            filled.push(told);
        }
    }
    filled
}

/// What a later handler changed back is refused.
pub(super) fn check(request: &Attributes<'_>) -> Result<(), Status> {
    if !acts_on(request) {
        return Ok(());
    }
    let mut causes = Vec::new();
    for (list_name, inside, field) in LISTS {
        let entries = list(at(request.object, "spec"), list_name);
        for (i, entry) in entries.iter().enumerate().filter(|(_, entry)| is_new(request, list_name, entry)) {
            let (holder, path) = match inside {
                "" => (entry, format!("spec.{list_name}[{i}].{field}")),
                inside => (at(entry, inside), format!("spec.{list_name}[{i}].{inside}.{field}")),
            };
            if holder.is_object() && text(holder, field) != ALWAYS {
                let given = text(holder, field);
                causes.push(Cause {
                    field: path,
                    reason: CauseReason::NotSupported,
                    message: format!("Unsupported value: {given:?}: supported values: \"Always\""),
                    rule: "".into(),
                });
            }
        }
    }
    if causes.is_empty() {
        return Ok(());
    }
    let told: Vec<String> =
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    let told = if told.len() == 1 { told[0].clone() } else { format!("[{}]", told.join(", ")) };
    Err(Status { causes, ..Status::forbidden(request.resource, request.name, &told) })
}
