//! A volume of a v1.Pod to the core's [`Volume`]: a digest of its source, and the source whole in `rest`.

use crate::canonical;
use crate::fields::{Fields, Problems, amount};
use crate::problem::{self, FieldProblem, ProblemReason};
use crate::read_container::{PULL_POLICIES, pull_policy};
use nodefold_core::ids::{Name, ObjectKind, ObjectRef};
use nodefold_core::spec::{Medium, ObjectSource, ProjectedSource, Volume, VolumeSource};
use serde_json::Value;

pub(crate) fn read(path: String, value: Value, namespace: &Name, out: &mut Problems) -> Volume {
    let mut fields = Fields::new(path, value, out);
    let name = fields.required_text("name", "give the volume a name", out);
    let path = fields.path.clone();
    let whole = fields.into_map();
    let mut sources = whole.iter().filter(|(_, source)| !source.is_null());
    let source = match sources.next() {
        Some((kind, source)) => read_source(kind, source, &path, namespace, out),
        // The API server's default, for a static pod that no API server has seen.
        None => VolumeSource::EmptyDir { medium: Medium::Disk, size_limit: None },
    };
    if let Some((second, _)) = sources.next() {
        let message = "a volume has one source, and this is its second";
        let path = problem::field(&path, second);
        out.push(FieldProblem::new(path, ProblemReason::Invalid, message, "remove all but one"));
    }
    Volume { name, source, rest: canonical::blob(whole) }
}

fn read_source(kind: &str, source: &Value, path: &str, namespace: &Name, out: &mut Problems) -> VolumeSource {
    let open = |out: &mut Problems| Fields::new(problem::field(path, kind), source.clone(), out);
    match kind {
        "emptyDir" => {
            let mut fields = open(out);
            let medium = medium(&mut fields, out);
            let limit_path = fields.path_of("sizeLimit");
            let limit = fields.take("sizeLimit").and_then(|limit| amount(&limit_path, &limit, out));
            VolumeSource::EmptyDir { medium, size_limit: limit.map(|l| l.units()) }
        }
        "configMap" => {
            VolumeSource::ConfigMap(reference(open(out), ObjectKind::ConfigMap, "name", namespace, out))
        }
        "secret" => {
            VolumeSource::Secret(reference(open(out), ObjectKind::Secret, "secretName", namespace, out))
        }
        "downwardAPI" => VolumeSource::DownwardApi,
        "projected" => {
            let mut fields = open(out);
            let path = fields.path_of("sources");
            let mut projected = Vec::new();
            for (i, item) in fields.list("sources", out).into_iter().enumerate() {
                let item = Fields::new(problem::index(&path, i), item, out);
                let item_path = item.path.clone();
                for (kind, source) in item.into_map() {
                    projected.extend(projection(&kind, source, &item_path, namespace, out));
                }
            }
            VolumeSource::Projected(projected)
        }
        "image" => {
            let mut fields = open(out);
            let reference = fields.required_text("reference", "name an image", out);
            let policy = fields.choice("pullPolicy", &PULL_POLICIES, out);
            let pull_policy = policy.unwrap_or_else(|| pull_policy(&reference));
            VolumeSource::Image { reference, pull_policy }
        }
        "hostPath" => VolumeSource::HostPath,
        other => VolumeSource::Unsupported { kind: other.into() },
    }
}

fn medium(fields: &mut Fields, out: &mut Problems) -> Medium {
    match fields.text("medium", out).as_deref() {
        None | Some("") => Medium::Disk,
        Some("Memory") => Medium::Memory,
        Some("HugePages") => Medium::HugePages,
        Some(sized) if sized.starts_with("HugePages-") => Medium::HugePages,
        Some(other) => {
            let allowed = ["\"\"", "Memory", "HugePages", "HugePages-<size>"];
            out.push(FieldProblem::not_supported(fields.path_of("medium"), other, &allowed));
            Medium::Disk
        }
    }
}

fn reference(
    mut fields: Fields,
    kind: ObjectKind,
    name_field: &str,
    namespace: &Name,
    out: &mut Problems,
) -> ObjectSource {
    let name = fields.required_text(name_field, "name the object", out);
    let optional = fields.flag("optional", out);
    ObjectSource { object: ObjectRef { kind, namespace: namespace.clone(), name }, optional }
}

fn projection(
    kind: &str,
    source: Value,
    path: &str,
    namespace: &Name,
    out: &mut Problems,
) -> Option<ProjectedSource> {
    if source.is_null() {
        return None;
    }
    let path = problem::field(path, kind);
    match kind {
        "configMap" => {
            let fields = Fields::new(path, source, out);
            Some(ProjectedSource::ConfigMap(reference(fields, ObjectKind::ConfigMap, "name", namespace, out)))
        }
        "secret" => {
            let fields = Fields::new(path, source, out);
            Some(ProjectedSource::Secret(reference(fields, ObjectKind::Secret, "name", namespace, out)))
        }
        "downwardAPI" => Some(ProjectedSource::DownwardApi),
        "serviceAccountToken" => Some(ProjectedSource::ServiceAccountToken),
        "clusterTrustBundle" => {
            let fields = Fields::new(path, source, out);
            let named = fields.peek("name").is_some().then(|| {
                // Trust bundles are cluster-scoped.
                reference(fields, ObjectKind::ClusterTrustBundle, "name", &Name::from(""), out)
            });
            Some(ProjectedSource::ClusterTrustBundle(named))
        }
        "podCertificate" => Some(ProjectedSource::PodCertificate),
        other => {
            let allowed = [
                "configMap",
                "secret",
                "downwardAPI",
                "serviceAccountToken",
                "clusterTrustBundle",
                "podCertificate",
            ];
            out.push(FieldProblem::not_supported(path, other, &allowed));
            None
        }
    }
}
