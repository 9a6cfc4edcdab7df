//! What a volume of objects shows: keys as files, by the rules of kubelet-volumes §2.3. Nothing here touches a disk, so a
//! volume whose content can't be had leaves none.

use super::Sources;
use super::atomic::{File, Payload, check_path};
use super::bundles;
use crate::credentials::TokenRequest;
use crate::fault::Fault;
use crate::fields::PodFields;
use crate::objects::Objects;
use nodefold_core::ids::ObjectKind;
use nodefold_core::spec::{ObjectSource, PodSpec, ProjectedSource, Volume, VolumeSource};
use nodefold_core::time::{Nanos, Time};
use serde_json::Value;

/// The mode of files whose manifest gives none: the API's default.
const DEFAULT_MODE: u32 = 0o644;
/// How long a token lives whose manifest does not say, and a certificate: the API's defaults.
const DEFAULT_TOKEN_SECONDS: u64 = 3600;
const DEFAULT_CERTIFICATE_SECONDS: u64 = 86_400;

/// What a volume shows, and when that wants renewing.
#[derive(Default)]
pub struct Gathered {
    /// Its files.
    pub payload: Payload,
    /// When a credential of it is to be renewed.
    pub renew_at: Option<Time>,
}

/// Gathers what a volume shows; `None` for a volume that shows no objects.
pub fn gather(
    volume: &Volume,
    sources: &Sources,
    pod: &PodFields<'_>,
    now: Time,
) -> Result<Option<Gathered>, Fault> {
    let objects = &sources.objects;
    let manifest = nodefold_k8s::blob_to_json(&volume.rest);
    let mut gathered = Gathered::default();
    let payload = &mut gathered.payload;
    match &volume.source {
        VolumeSource::ConfigMap(source) => {
            let manifest = &manifest["configMap"];
            object(objects, source, manifest, mode_of(manifest), payload).map_err(Fault::refused)?;
        }
        VolumeSource::Secret(source) => {
            let manifest = &manifest["secret"];
            object(objects, source, manifest, mode_of(manifest), payload).map_err(Fault::refused)?;
        }
        VolumeSource::DownwardApi => {
            let manifest = &manifest["downwardAPI"];
            downward(pod, manifest, mode_of(manifest), payload).map_err(Fault::refused)?;
        }
        VolumeSource::Projected(list) => {
            projected(list, &manifest["projected"], sources, pod, now, &mut gathered)?;
        }
        VolumeSource::EmptyDir { .. }
        | VolumeSource::Image { .. }
        | VolumeSource::HostPath
        | VolumeSource::Unsupported { .. } => return Ok(None),
    }
    for path in gathered.payload.keys() {
        check_path(path)?;
    }
    Ok(Some(gathered))
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
    list: &[ProjectedSource],
    manifest: &Value,
    sources: &Sources,
    pod: &PodFields<'_>,
    now: Time,
    gathered: &mut Gathered,
) -> Result<(), Fault> {
    let objects = &sources.objects;
    let default_mode = mode_of(manifest);
    let Gathered { payload: into, renew_at } = gathered;
    let mut renew = |at: Time| *renew_at = Some(renew_at.map_or(at, |earlier: Time| earlier.min(at)));
    let mut errors = Vec::new();
    for (i, source) in list.iter().enumerate() {
        let manifest = &manifest["sources"][i];
        let done = match source {
            ProjectedSource::ConfigMap(source) => {
                object(objects, source, &manifest["configMap"], default_mode, into)
            }
            ProjectedSource::Secret(source) => {
                object(objects, source, &manifest["secret"], default_mode, into)
            }
            ProjectedSource::DownwardApi => downward(pod, &manifest["downwardAPI"], default_mode, into),
            ProjectedSource::ClusterTrustBundle(_) => {
                let manifest = &manifest["clusterTrustBundle"];
                bundles::text(objects, manifest).map(|text| {
                    let file = credential(pod, text.into_bytes(), default_mode);
                    into.insert(path_of(manifest, "path"), file);
                })
            }
            ProjectedSource::ServiceAccountToken => {
                let manifest = &manifest["serviceAccountToken"];
                let request = token_request(pod, manifest);
                sources.tokens.get(&request, now).map_err(|fault| fault.message).map(|(token, at)| {
                    renew(at);
                    into.insert(path_of(manifest, "path"), credential(pod, token.into_bytes(), default_mode));
                })
            }
            ProjectedSource::PodCertificate => {
                certificate(&manifest["podCertificate"], sources, pod, default_mode, into).map(|life| {
                    renew(now.after(Nanos(life.0 / 5 * 4)));
                })
            }
        };
        errors.extend(done.err());
    }
    told(errors).map_err(Fault::refused)
}

fn path_of(manifest: &Value, field: &str) -> String {
    manifest[field].as_str().unwrap_or("").to_owned()
}

fn token_request(pod: &PodFields<'_>, manifest: &Value) -> TokenRequest {
    let spec = nodefold_k8s::blob_to_json(&pod.spec.rest);
    let account = spec["serviceAccountName"].as_str().filter(|name| !name.is_empty());
    TokenRequest {
        namespace: pod.pod.namespace.to_string(),
        service_account: account.unwrap_or("default").to_owned(),
        audience: manifest["audience"].as_str().filter(|audience| !audience.is_empty()).map(str::to_owned),
        seconds: manifest["expirationSeconds"].as_u64().unwrap_or(DEFAULT_TOKEN_SECONDS),
        pod: pod.pod.uid,
        pod_name: pod.pod.name.to_string(),
        node_name: pod.node_name.to_owned(),
    }
}

/// A certificate in the files that ask for it. Returns how long one may live.
fn certificate(
    manifest: &Value,
    sources: &Sources,
    pod: &PodFields<'_>,
    default_mode: u32,
    into: &mut Payload,
) -> Result<Nanos, String> {
    let signer = manifest["signerName"].as_str().unwrap_or("");
    let found = sources.certificates.get(signer, &pod.pod.namespace, &pod.pod.name);
    let found = found.map_err(|fault| fault.message)?;
    let both = format!("{}{}", found.key, found.chain);
    for (field, text) in
        [("credentialBundlePath", both), ("keyPath", found.key), ("certificateChainPath", found.chain)]
    {
        let path = path_of(manifest, field);
        if !path.is_empty() {
            into.insert(path, credential(pod, text.into_bytes(), default_mode));
        }
    }
    let seconds = manifest["maxExpirationSeconds"].as_u64().unwrap_or(DEFAULT_CERTIFICATE_SECONDS);
    Ok(Nanos::secs(seconds))
}

/// A credential's file: where the pod has one user, or a group for its files, nobody else may read it.
fn credential(pod: &PodFields<'_>, bytes: Vec<u8>, default_mode: u32) -> File {
    let spec = nodefold_k8s::blob_to_json(&pod.spec.rest);
    let owner = only_user(pod.spec, &spec["securityContext"]);
    let private = owner.is_some() || !spec["securityContext"]["fsGroup"].is_null();
    File { bytes, mode: if private { 0o600 } else { default_mode }, owner }
}

/// The user that every container of the pod runs as, if it is one and told.
fn only_user(spec: &PodSpec, of_pod: &Value) -> Option<u32> {
    let PodSpec { init_containers, containers, ephemeral_containers, .. } = spec;
    let mut users = containers.iter().chain(init_containers).chain(ephemeral_containers).map(|container| {
        let own = nodefold_k8s::blob_to_json(&container.rest);
        number(&own["securityContext"]["runAsUser"]).or_else(|| number(&of_pod["runAsUser"]))
    });
    let first = users.next()??;
    users.all(|user| user == Some(first)).then_some(first)
}

fn told(errors: Vec<String>) -> Result<(), String> {
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("[{}]", many.join(", "))),
    }
}
