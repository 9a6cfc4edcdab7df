//! What a volume's content needs: the objects that must exist and the keys that they must have. Failures speak as the
//! kubelet does (kubelet-volumes §2.3), because people search for those words.

use super::images::Images;
use super::server::Server;
use nodefold_core::event::{ErrorClass, OpError};
use nodefold_core::ids::{Name, ObjectKind};
use nodefold_core::spec::{ObjectSource, ProjectedSource, Volume, VolumeSource};
use nodefold_core::time::{Nanos, Time};
use serde_json::Value;

/// What a set-up volume has.
#[derive(Default, Debug)]
pub struct Content {
    /// When a credential in it wants renewal.
    pub renew_at: Option<Time>,
    /// The digest of an image volume's image.
    pub image_digest: Option<Name>,
}

/// Gathers a volume's content, or says why it can't be had.
pub fn gather(server: &Server, images: &Images, volume: &Volume, now: Time) -> Result<Content, OpError> {
    let manifest: Value = serde_json::from_str(&volume.rest.0).unwrap_or(Value::Null);
    match &volume.source {
        VolumeSource::EmptyDir { .. } | VolumeSource::DownwardApi | VolumeSource::HostPath => {
            Ok(Content::default())
        }
        VolumeSource::ConfigMap(source) => {
            object(server, source, &manifest["configMap"]).map(|()| Content::default()).map_err(final_error)
        }
        VolumeSource::Secret(source) => {
            object(server, source, &manifest["secret"]).map(|()| Content::default()).map_err(final_error)
        }
        VolumeSource::Projected(sources) => {
            projected(server, sources, &manifest["projected"]["sources"], now)
        }
        VolumeSource::Image { reference, pull_policy } => {
            let pulled = images.pull(reference, *pull_policy)?;
            Ok(Content { renew_at: None, image_digest: Some(pulled.image_id) })
        }
        VolumeSource::Unsupported { kind } => {
            Err(final_error(format!("this node has no way to mount a volume of type {kind}")))
        }
    }
}

fn final_error(message: String) -> OpError {
    OpError { class: ErrorClass::Final, reason: None, message: message.into() }
}

/// An object and the keys that `items` names.
fn object(server: &Server, source: &ObjectSource, manifest: &Value) -> Result<(), String> {
    let reference = &source.object;
    let (word, missing_key) = match reference.kind {
        ObjectKind::Secret => ("secret", "references non-existent secret key"),
        ObjectKind::ConfigMap => ("configmap", "configmap references non-existent config key"),
        ObjectKind::ClusterTrustBundle => ("clustertrustbundle", "clustertrustbundle has no key"),
    };
    if server.forbidden().contains(reference) {
        return Err(format!(
            "{word}s \"{}\" is forbidden: no relationship found between node and this object",
            reference.name
        ));
    }
    let Some(object) = server.referenced(reference) else {
        return if source.optional {
            Ok(())
        } else {
            Err(format!("{word} \"{}\" not found", reference.name))
        };
    };
    let keys = nodefold_k8s::object_data(object);
    let items = manifest["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let wanted = items.iter().filter_map(|item| item["key"].as_str());
    match wanted.into_iter().find(|key| !keys.contains_key(*key)) {
        Some(key) if !source.optional => Err(format!("{missing_key}: {key}")),
        Some(_) | None => Ok(()),
    }
}

/// Sources in order; their errors are told together.
fn projected(
    server: &Server,
    sources: &[ProjectedSource],
    manifest: &Value,
    now: Time,
) -> Result<Content, OpError> {
    let mut errors = Vec::new();
    let mut renew_at: Option<Time> = None;
    let mut renew = |life: Nanos| {
        let at = now.after(Nanos(life.0 / 5 * 4));
        renew_at = Some(renew_at.map_or(at, |earlier| earlier.min(at)));
    };
    for (i, source) in sources.iter().enumerate() {
        let manifest = &manifest[i];
        let checked = match source {
            ProjectedSource::ConfigMap(source) => object(server, source, &manifest["configMap"]),
            ProjectedSource::Secret(source) => object(server, source, &manifest["secret"]),
            ProjectedSource::ClusterTrustBundle(Some(source)) => object(server, source, &Value::Null),
            ProjectedSource::ClusterTrustBundle(None) | ProjectedSource::DownwardApi => Ok(()),
            ProjectedSource::ServiceAccountToken => {
                renew(seconds(&manifest["serviceAccountToken"]["expirationSeconds"], 3600));
                Ok(())
            }
            ProjectedSource::PodCertificate => {
                renew(seconds(&manifest["podCertificate"]["maxExpirationSeconds"], 86_400));
                Ok(())
            }
        };
        errors.extend(checked.err());
    }
    match errors.as_slice() {
        [] => Ok(Content { renew_at, image_digest: None }),
        [one] => Err(final_error(one.clone())),
        many => Err(final_error(format!("[{}]", many.join(", ")))),
    }
}

fn seconds(value: &Value, default: u64) -> Nanos {
    Nanos::secs(value.as_u64().unwrap_or(default))
}
