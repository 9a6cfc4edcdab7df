//! What a volume of objects shows: keys as files, by the rules of kubelet-volumes §2.3. Nothing here touches a disk, so a
//! volume whose content can't be had leaves none.

use super::atomic::{File, Payload, check_path};
use crate::fault::Fault;
use crate::fields::PodFields;
use crate::objects::Objects;
use nodefold_core::ids::ObjectKind;
use nodefold_core::spec::{ObjectSource, ProjectedSource, Volume, VolumeSource};
use serde_json::Value;

/// The mode of files whose manifest gives none: the API's default.
const DEFAULT_MODE: u32 = 0o644;

/// Gathers what a volume shows; `None` for a volume that shows no objects.
pub fn gather(volume: &Volume, objects: &Objects, pod: &PodFields<'_>) -> Result<Option<Payload>, Fault> {
    let manifest = nodefold_k8s::blob_to_json(&volume.rest);
    let mut payload = Payload::new();
    match &volume.source {
        VolumeSource::ConfigMap(source) => {
            let manifest = &manifest["configMap"];
            object(objects, source, manifest, mode_of(manifest), &mut payload).map_err(Fault::refused)?;
        }
        VolumeSource::Secret(source) => {
            let manifest = &manifest["secret"];
            object(objects, source, manifest, mode_of(manifest), &mut payload).map_err(Fault::refused)?;
        }
        VolumeSource::DownwardApi => {
            let manifest = &manifest["downwardAPI"];
            downward(pod, manifest, mode_of(manifest), &mut payload).map_err(Fault::refused)?;
        }
        VolumeSource::Projected(sources) => {
            projected(sources, &manifest["projected"], objects, pod, &mut payload)?;
        }
        VolumeSource::EmptyDir { .. }
        | VolumeSource::Image { .. }
        | VolumeSource::HostPath
        | VolumeSource::Unsupported { .. } => return Ok(None),
    }
    for path in payload.keys() {
        check_path(path)?;
    }
    Ok(Some(payload))
}

fn mode_of(manifest: &Value) -> u32 {
    number(&manifest["defaultMode"]).unwrap_or(DEFAULT_MODE)
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|mode| u32::try_from(mode).ok())
}

/// An object's keys: all of them, or those that `items` names.
fn object(
    objects: &Objects,
    source: &ObjectSource,
    manifest: &Value,
    default_mode: u32,
    into: &mut Payload,
) -> Result<(), String> {
    let reference = &source.object;
    let (word, missing_key) = match reference.kind {
        ObjectKind::Secret => ("secret", "references non-existent secret key"),
        ObjectKind::ConfigMap => ("configmap", "configmap references non-existent config key"),
        ObjectKind::ClusterTrustBundle => ("clustertrustbundle", "clustertrustbundle has no key"),
    };
    let Some(object) = objects.get(reference) else {
        return match source.optional {
            true => Ok(()),
            false => Err(format!("{word} \"{}\" not found", reference.name)),
        };
    };
    let mut keys = nodefold_k8s::object_data(&object);
    let items = manifest["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    if items.is_empty() {
        into.extend(
            keys.into_iter().map(|(key, bytes)| (key, File { bytes, mode: default_mode, owner: None })),
        );
        return Ok(());
    }
    for item in items {
        let key = item["key"].as_str().unwrap_or("");
        let path = item["path"].as_str().unwrap_or(key).to_owned();
        match keys.get_mut(key) {
            Some(bytes) => {
                let mode = number(&item["mode"]).unwrap_or(default_mode);
                into.insert(path, File { bytes: bytes.clone(), mode, owner: None });
            }
            None if source.optional => {}
            None => return Err(format!("{missing_key}: {key}")),
        }
    }
    Ok(())
}

/// Fields of the pod; the errors of all items together.
fn downward(
    pod: &PodFields<'_>,
    manifest: &Value,
    default_mode: u32,
    into: &mut Payload,
) -> Result<(), String> {
    let mut errors = Vec::new();
    for item in manifest["items"].as_array().into_iter().flatten() {
        let path = item["path"].as_str().unwrap_or("").to_owned();
        let text = if item["fieldRef"].is_object() {
            pod.field(item["fieldRef"]["fieldPath"].as_str().unwrap_or(""))
        } else {
            pod.resource(&item["resourceFieldRef"], None)
        };
        match text {
            Ok(text) => {
                let mode = number(&item["mode"]).unwrap_or(default_mode);
                into.insert(path, File { bytes: text.into_bytes(), mode, owner: None });
            }
            Err(error) => errors.push(error),
        }
    }
    told(errors)
}

/// Sources in order, a later one over an earlier one's path; the errors of all together.
fn projected(
    sources: &[ProjectedSource],
    manifest: &Value,
    objects: &Objects,
    pod: &PodFields<'_>,
    into: &mut Payload,
) -> Result<(), Fault> {
    let default_mode = mode_of(manifest);
    let mut errors = Vec::new();
    for (i, source) in sources.iter().enumerate() {
        let manifest = &manifest["sources"][i];
        let done = match source {
            ProjectedSource::ConfigMap(source) => {
                object(objects, source, &manifest["configMap"], default_mode, into)
            }
            ProjectedSource::Secret(source) => {
                object(objects, source, &manifest["secret"], default_mode, into)
            }
            ProjectedSource::DownwardApi => downward(pod, &manifest["downwardAPI"], default_mode, into),
            ProjectedSource::ClusterTrustBundle(Some(source)) => {
                trust_bundle(objects, source, &manifest["clusterTrustBundle"], default_mode, into)
            }
            ProjectedSource::ClusterTrustBundle(None) => {
                Err("this node can't look trust bundles up by signer: name one".into())
            }
            ProjectedSource::ServiceAccountToken => {
                Err("this node has no issuer of service account tokens".into())
            }
            ProjectedSource::PodCertificate => Err("this node has no signer of pod certificates".into()),
        };
        errors.extend(done.err());
    }
    told(errors).map_err(Fault::refused)
}

fn trust_bundle(
    objects: &Objects,
    source: &ObjectSource,
    manifest: &Value,
    mode: u32,
    into: &mut Payload,
) -> Result<(), String> {
    let path = manifest["path"].as_str().unwrap_or("").to_owned();
    let bundle = objects.get(&source.object);
    let text = bundle.as_ref().and_then(|bundle| bundle.pointer("/spec/trustBundle")?.as_str());
    match text {
        Some(text) => {
            into.insert(path, File { bytes: text.as_bytes().to_vec(), mode, owner: None });
            Ok(())
        }
        // An optional bundle that isn't there is an empty file.
        None if source.optional => {
            into.insert(path, File { bytes: Vec::new(), mode, owner: None });
            Ok(())
        }
        None => Err(format!("clustertrustbundle \"{}\" not found", source.object.name)),
    }
}

fn told(errors: Vec<String>) -> Result<(), String> {
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}
