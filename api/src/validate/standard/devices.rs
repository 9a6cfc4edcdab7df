//! Raw block devices: the other half of S13.

use super::is_set;
use super::paths::has_backsteps;
use crate::validate::Errors;
use crate::view::{list, name, named, spec_list, text};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn all(pod: &Value, container: &Value, path: &str, errors: &mut Errors) {
    errors.judge("S13");
    let mounts = list(container, "volumeMounts");
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for (k, device) in list(container, "volumeDevices").iter().enumerate() {
        let path = format!("{path}.volumeDevices[{k}]");
        let (named_at, placed_at) = (format!("{path}.name"), format!("{path}.devicePath"));
        let (own, place) = (Value::from(name(device)), Value::from(text(device, "devicePath")));
        if name(device).is_empty() {
            errors.required(named_at.as_str(), "");
        } else if !names.insert(name(device)) {
            errors.invalid(named_at.as_str(), &own, "must be unique");
        }
        match named(spec_list(pod, "volumes"), name(device)) {
            None => errors.not_found(named_at.as_str(), name(device)),
            Some(volume) if !is_set(volume, "persistentVolumeClaim") && !is_set(volume, "ephemeral") => {
                let detail =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.invalid(named_at.as_str(), &own, detail);
            }
            Some(_) => {}
        }
        match text(device, "devicePath") {
            "" => errors.required(placed_at.as_str(), ""),
            target if has_backsteps(target) => {
                errors.invalid(placed_at.as_str(), &place, "can not contain backsteps ('..')");
            }
            target if !paths.insert(target) => errors.invalid(placed_at.as_str(), &place, "must be unique"),
            _ => {}
        }
        if named(mounts, name(device)).is_some() {
            errors.invalid(named_at, &own, "must not already exist in volumeMounts");
        }
        if mounts.iter().any(|mount| text(mount, "mountPath") == text(device, "devicePath")) {
            errors.invalid(placed_at, &place, "must not already exist as a path in volumeMounts");
        }
    }
}
