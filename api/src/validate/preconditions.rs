//! P1–P7: what the stored pod must be for its containers, volumes, mounts or resources to change. Status lags
//! behind the node, so the node checks P2 and P3 again and simply stops allocating (KEP-5972).

use super::{Errors, Review, kept, volumes};
use crate::view::{at, condition_is_true, is_deleting, is_mirror, only_in, spec_list, status_list, text};
use serde_json::Value;

/// For `/dynamic`: P1–P7, as far as the request changes anything that they guard.
pub(super) fn dynamic(review: &Review<'_>, errors: &mut Errors) {
    let (old, new) = (review.old, review.new);
    let (before, after) = (spec_list(old, "containers"), spec_list(new, "containers"));
    let set_changes = only_in(after, before).chain(only_in(before, after)).next().is_some();
    let containers = set_changes || kept::mounts_change(old, new);
    let volumes = volumes::change(old, new);
    let changed: Vec<&str> = [("spec.containers", containers), ("spec.volumes", volumes)]
        .into_iter()
        .filter_map(|(field, changes)| changes.then_some(field))
        .collect();

    for field in &changed {
        if is_deleting(old) {
            errors.of("P1").forbidden(*field, "may not change once the pod is being deleted");
        }
        if text(at(old, "status"), "phase") != "Running" {
            errors.of("P2").forbidden(*field, "may change only while the pod's phase is Running");
        }
        if !condition_is_true(at(old, "status"), "Initialized") {
            errors.of("P3").forbidden(*field, "may change only once the pod is initialized");
        }
    }
    if !changed.is_empty() && text(at(old, "spec"), "nodeName").is_empty() {
        errors.of("P4").forbidden("spec.nodeName", "the pod must be bound to a node first");
    }
    if !changed.is_empty() || kept::resources_change(old, new) {
        resize(old, errors);
    }
}

/// For `/resize`, and for what counts as one: P5–P7.
pub(super) fn resize(old: &Value, errors: &mut Errors) {
    if is_mirror(old) {
        errors.of("P5").forbidden("", "static pods cannot be resized");
    }
    if text(at(at(old, "spec"), "os"), "name") == "windows" {
        errors.of("P6").forbidden("", "windows pods cannot be resized");
    }
    let running = |status: &&Value| at(at(status, "state"), "running").is_object();
    if let Some(first) = status_list(old, "containerStatuses").iter().find(running)
        && at(first, "resources").is_null()
    {
        errors.of("P7").forbidden("spec", "Pod running on node without support for resize");
    }
}

/// For `/ephemeralcontainers`: P5.
pub(super) fn ephemeral(old: &Value, errors: &mut Errors) {
    if is_mirror(old) {
        errors.of("P5").forbidden("", "static pods do not support ephemeral containers");
    }
}
