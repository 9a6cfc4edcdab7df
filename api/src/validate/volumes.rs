//! W1–W7, W12: the set of volumes. W2 and the dangling mounts of W8–W10 are rules of any pod (`standard`),
//! mounts are with their containers (`kept`). Volumes are matched by name; order is no change.

use super::{Errors, Review};
use crate::view::{STATUS_LISTS, at, list, name, named, only_in, spec_list, status_list};
use serde_json::Value;

/// The node-local, ephemeral sources of KEP-6395. A stand-alone downwardAPI isn't one.
const DYNAMIC_SOURCES: [&str; 5] = ["configMap", "secret", "projected", "emptyDir", "image"];

/// The volumes aren't the same, by name and source.
pub(super) fn change(old: &Value, new: &Value) -> bool {
    let (before, after) = (spec_list(old, "volumes"), spec_list(new, "volumes"));
    before.len() != after.len() || after.iter().any(|v| named(before, name(v)) != Some(v))
}

/// What `/dynamic` may add and remove.
pub(super) fn set(review: &Review<'_>, errors: &mut Errors) {
    let (before, after) = (spec_list(review.old, "volumes"), spec_list(review.new, "volumes"));
    if !review.gates.dynamic_volumes {
        if change(review.old, review.new) {
            let detail = "volumes are immutable: feature gate DynamicNodeLocalEphemeralVolumes is off";
            errors.of("W12").forbidden("spec.volumes", detail);
        }
        return;
    }
    for (i, volume) in only_in(after, before) {
        let path = format!("spec.volumes[{i}]");
        if let Some(source) = unsupported_source(volume) {
            let detail =
                format!("{source} can't be added to a running pod; {} can", DYNAMIC_SOURCES.join(", "));
            errors.of("W1").forbidden(path.as_str(), &detail);
        }
        name_is_free(review, volume, &path, errors);
    }
    for (i, volume) in after.iter().enumerate() {
        if named(before, name(volume)).is_some_and(|stored| stored != volume) {
            let detail = "a volume's source may not change; remove it and add another under another name";
            errors.of("W6").forbidden(format!("spec.volumes[{i}]"), detail);
        }
    }
    for (_, volume) in only_in(before, after) {
        if let Some(source) = unsupported_source(volume) {
            let detail = format!("volume {:?} ({source}) can't be removed from a running pod", name(volume));
            errors.of("W7").forbidden("spec.volumes", &detail);
        }
    }
}

/// W3–W5: the name is in no volume status and no mount of a container that may still run, and no removal is
/// in flight.
fn name_is_free(review: &Review<'_>, volume: &Value, path: &str, errors: &mut Errors) {
    if !review.config.refuses_names_in_flight {
        return;
    }
    let wanted = name(volume);
    let mounts_it = |status: &&Value| {
        at(at(status, "state"), "terminated").is_null()
            && named(list(status, "volumeMounts"), wanted).is_some()
    };
    let mounted = STATUS_LISTS.into_iter().flat_map(|l| status_list(review.old, l)).find(mounts_it);
    let (rule, detail) = if named(status_list(review.old, "volumeStatuses"), wanted).is_some() {
        ("W3", "the name is free once status.volumeStatuses no longer has it".to_owned())
    } else if let Some(container) = mounted {
        ("W4", format!("the name is free once container {:?} no longer mounts it", name(container)))
    } else if let Some(generation) = review.holds.volume(wanted) {
        let what = "the name is free once status.observedGeneration has reached";
        ("W5", format!("{what} {generation}, which removed it"))
    } else {
        return;
    };
    errors.of(rule).duplicate(format!("{path}.name"), wanted, &detail);
}

/// A source of the volume that isn't one of the five.
fn unsupported_source(volume: &Value) -> Option<&str> {
    let mut fields = volume.as_object().into_iter().flat_map(|o| o.keys());
    fields.find(|f| *f != "name" && !DYNAMIC_SOURCES.contains(&f.as_str())).map(String::as_str)
}
