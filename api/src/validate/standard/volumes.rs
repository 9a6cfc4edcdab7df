//! S1, S19–S23, S28, S31 and W2: each volume by itself.

use super::paths::{local_and_free, mode, no_backsteps};
use super::{is_set, projected};
use crate::validate::Errors;
use crate::validate::names::label;
use crate::view::{at, list, name, spec_list, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Every source that a volume can have, in the order in which Kubernetes looks at them: of two, the later one is
/// the one too many (S19).
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

pub(super) fn all(pod: &Value, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for (i, volume) in spec_list(pod, "volumes").iter().enumerate() {
        let path = format!("spec.volumes[{i}]");
        source(volume, &path, errors);
        errors.judge("S1");
        let named = format!("{path}.name");
        if name(volume).is_empty() {
            errors.required(named.as_str(), "");
        } else {
            label(name(volume), &named, errors);
        }
        if !names.insert(name(volume)) {
            errors.of("W2").duplicate(named, name(volume), "");
        }
    }
}

/// S19, and the rules of the one source that there is.
fn source(volume: &Value, path: &str, errors: &mut Errors) {
    errors.judge("S19");
    let mut found = SOURCES.into_iter().filter(|source| is_set(volume, source));
    let Some(first) = found.next() else {
        errors.of("S19").required(path, "must specify a volume type");
        return;
    };
    let of = at(volume, first);
    let at_source = format!("{path}.{first}");
    match first {
        "emptyDir" => empty_dir(of, &at_source, errors),
        "secret" => keyed_files(of, "secretName", &at_source, errors),
        "configMap" => keyed_files(of, "name", &at_source, errors),
        "downwardAPI" => {
            mode(at(of, "defaultMode"), &format!("{at_source}.defaultMode"), errors);
            for file in list(of, "items") {
                projected::downward_file(file, &at_source, errors);
            }
        }
        "projected" => projected::volume(of, &at_source, errors),
        "image" => image(of, &at_source, errors),
        "hostPath" if text(of, "path").is_empty() => {
            errors.of("S19").required(format!("{at_source}.path"), "")
        }
        "hostPath" => no_backsteps(text(of, "path"), &format!("{at_source}.path"), errors),
        "persistentVolumeClaim" if text(of, "claimName").is_empty() => {
            errors.of("S19").required(format!("{at_source}.claimName"), "");
        }
        // Sources that no node of ours mounts: what is in them is stored as it is.
        _ => {}
    }
    for second in found {
        errors.of("S19").forbidden(format!("{path}.{second}"), "may not specify more than 1 volume type");
    }
}

/// S20.
fn empty_dir(of: &Value, path: &str, errors: &mut Errors) {
    let limit = nodefold_k8s::quantity::Quantity::from_json(at(of, "sizeLimit"));
    if limit.is_ok_and(|limit| limit.is_negative()) {
        errors
            .of("S20")
            .forbidden(format!("{path}.sizeLimit"), "SizeLimit field must be a valid resource quantity");
    }
}

/// S21–S23: a secret's or configMap's keys as files.
fn keyed_files(of: &Value, naming: &str, path: &str, errors: &mut Errors) {
    if text(of, naming).is_empty() {
        errors.of("S21").required(format!("{path}.{naming}"), "");
    }
    mode(at(of, "defaultMode"), &format!("{path}.defaultMode"), errors);
    for (k, item) in list(of, "items").iter().enumerate() {
        key_to_path(item, &format!("{path}.items[{k}]"), errors);
    }
}

/// S22, S23: one key and the file that it becomes.
pub(super) fn key_to_path(item: &Value, path: &str, errors: &mut Errors) {
    errors.judge("S23");
    if text(item, "key").is_empty() {
        errors.required(format!("{path}.key"), "");
    }
    if text(item, "path").is_empty() {
        errors.required(format!("{path}.path"), "");
    }
    local_and_free(text(item, "path"), &format!("{path}.path"), errors);
    mode(at(item, "mode"), &format!("{path}.mode"), errors);
}

/// S31.
fn image(of: &Value, path: &str, errors: &mut Errors) {
    errors.judge("S31");
    if text(of, "reference").is_empty() {
        errors.of("S31").required(format!("{path}.reference"), "");
    }
    super::one_of(
        at(of, "pullPolicy"),
        format!("{path}.pullPolicy"),
        &["Always", "IfNotPresent", "Never"],
        errors,
    );
}

/// S28.
pub(super) fn tokens_need_an_account(pod: &Value, errors: &mut Errors) {
    if !text(at(pod, "spec"), "serviceAccountName").is_empty() {
        return;
    }
    for (i, volume) in spec_list(pod, "volumes").iter().enumerate() {
        for (k, source) in list(at(volume, "projected"), "sources").iter().enumerate() {
            if is_set(source, "serviceAccountToken") {
                let field = format!("spec.volumes[{i}].projected.sources[{k}].serviceAccountToken");
                errors.of("S28").forbidden(field, "must not be specified when serviceAccountName is not set");
            }
        }
    }
}
