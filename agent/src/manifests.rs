//! Manifest files of a directory as a node's source: static pods, and the secrets and configMaps that they use. A file that
//! can't be read keeps what it said before: a typing error must not end a pod.

use crate::fault::{Attempt, Fault};
use crate::objects::Objects;
use nodefold_core::event::Fact;
use nodefold_core::ids::{ObjectRef, PodUid, Source};
use nodefold_core::spec::Pod;
use nodefold_core::time::Time;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// What the files said when they were read last.
#[derive(Default)]
pub struct Manifests {
    files: BTreeMap<PathBuf, Content>,
    pods: BTreeMap<PodUid, Arc<Pod>>,
    objects: BTreeMap<ObjectRef, Arc<Value>>,
}

/// A file.
#[derive(Clone, Default)]
struct Content {
    text: String,
    pods: Vec<Arc<Pod>>,
    objects: Vec<(ObjectRef, Arc<Value>)>,
}

/// What reading again brought.
#[derive(Default)]
pub struct Changes {
    /// Facts, in an order that may be told.
    pub facts: Vec<Fact>,
    /// Files that can't be used, and why.
    pub problems: Vec<String>,
}

impl Manifests {
    /// Reads the directory again. `key` keys the digests of secrets' bytes.
    pub fn read(&mut self, dir: &Path, objects: &Objects, key: &[u8; 32]) -> Result<Changes, Fault> {
        let mut changes = Changes::default();
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(dir).attempt(|| format!("list {}", dir.display()))?.flatten() {
            let path = entry.path();
            let is_manifest = path.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json");
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            if !is_manifest || is_hidden {
                continue;
            }
            let former = self.files.get(&path);
            match read_file(&path, former) {
                Ok(content) => {
                    files.insert(path, content);
                }
                Err(problem) => {
                    changes.problems.push(problem);
                    files.extend(former.cloned().map(|former| (path, former)));
                }
            }
        }
        self.files = files;
        self.compare(objects, key, &mut changes);
        Ok(changes)
    }

    fn compare(&mut self, objects: &Objects, key: &[u8; 32], changes: &mut Changes) {
        let mut pods = BTreeMap::new();
        let mut names = BTreeMap::new();
        let mut now = BTreeMap::new();
        for (path, content) in &self.files {
            for pod in &content.pods {
                match names.insert((pod.namespace.clone(), pod.name.clone()), path) {
                    None => {
                        pods.insert(pod.uid, pod.clone());
                    }
                    Some(other) => changes.problems.push(format!(
                        "{}: a second pod {}/{}, whose name {} has already",
                        path.display(),
                        pod.namespace,
                        pod.name,
                        other.display()
                    )),
                }
            }
            now.extend(content.objects.iter().cloned());
        }
        for (object, value) in &now {
            if self.objects.get(object) != Some(value) {
                objects.put(object.clone(), value.clone());
                let version = nodefold_k8s::object_version(value, key);
                changes.facts.push(Fact::ObjectSeen { object: object.clone(), version });
            }
        }
        for object in self.objects.keys().filter(|object| !now.contains_key(*object)) {
            objects.forget(object);
            changes.facts.push(Fact::ObjectGone { object: object.clone() });
        }
        // The former bearer of a name goes before the new one comes.
        for pod in self.pods.keys().filter(|uid| !pods.contains_key(*uid)) {
            changes.facts.push(Fact::PodRemoved { pod: *pod });
        }
        for (uid, pod) in &pods {
            if self.pods.get(uid) != Some(pod) {
                changes.facts.push(Fact::PodApplied(pod.clone()));
            }
            // What it refers to and nobody has must be known to be absent.
            for object in pod.spec.volumes.iter().flat_map(|volume| volume.source.objects()) {
                if !now.contains_key(&object.object) && self.pods.get(uid) != Some(pod) {
                    changes.facts.push(Fact::ObjectGone { object: object.object.clone() });
                }
            }
        }
        (self.pods, self.objects) = (pods, now);
    }
}

fn read_file(path: &Path, former: Option<&Content>) -> Result<Content, String> {
    let shown = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    if let Some(former) = former
        && former.text == text
    {
        return Ok(former.clone());
    }
    let written = fs::metadata(path).and_then(|found| found.modified()).unwrap_or(UNIX_EPOCH);
    let seconds = written.duration_since(UNIX_EPOCH).map_or(0, |age| age.as_secs());
    let mut content = Content { text, ..Content::default() };
    let documents =
        nodefold_k8s::parse_documents(&content.text, &shown).map_err(|error| error.to_string())?;
    for document in documents {
        let mut value = document.value.clone();
        let kind = value["kind"].as_str().unwrap_or("").to_owned();
        if let Some(problem) = nodefold_k8s::check_fields(&value, &kind).first() {
            return Err(document.locate(&shown, "", problem).to_string());
        }
        if value["metadata"]["namespace"].is_null() && kind != "ClusterTrustBundle" {
            value["metadata"]["namespace"] = json!("default");
        }
        if kind == "Pod" {
            content.pods.push(Arc::new(static_pod(value, seconds).map_err(|why| format!("{shown}: {why}"))?));
        } else {
            nodefold_k8s::default_object(&mut value);
            let object = nodefold_k8s::object_ref(&value).ok_or_else(|| {
                format!("{shown}: a node's manifests are Pods, Secrets, ConfigMaps, not {kind:?}")
            })?;
            content.objects.push((object, Arc::new(value)));
        }
    }
    Ok(content)
}

/// A manifest as the pod that it is: who it is follows from what it says, so that a changed file is another pod.
fn static_pod(mut manifest: Value, written_at: u64) -> Result<Pod, String> {
    if let Some(metadata) = manifest["metadata"].as_object_mut() {
        metadata.remove("uid");
    }
    nodefold_k8s::default_pod(&mut manifest);
    let uid = PodUid(nodefold_core::codec::hash(&manifest.to_string()).0);
    manifest["metadata"]["uid"] = json!(uid.to_string());
    let at = Time(written_at.saturating_mul(1_000_000_000));
    manifest["metadata"]["creationTimestamp"] = json!(nodefold_k8s::time::format(at));
    nodefold_k8s::pod_from_json(&manifest, Source::File).map_err(|problems| {
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        told.join("; ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const POD: &str =
        "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: x}]}}";

    fn names(changes: &Changes) -> Vec<&'static str> {
        changes.facts.iter().map(Fact::name).collect()
    }

    #[test]
    fn a_changed_file_is_another_pod_and_a_broken_one_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let (objects, key) = (Objects::default(), [1; 32]);
        let mut manifests = Manifests::default();
        let mut read = |text: &str| {
            fs::write(dir.path().join("a.yaml"), text).expect("a write");
            manifests.read(dir.path(), &objects, &key).expect("a readable directory")
        };
        assert_eq!(names(&read(POD)), ["PodApplied"]);
        assert_eq!(names(&read(POD)), Vec::<&str>::new());
        let broken = read("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{nam: c}]}}");
        assert_eq!((names(&broken), broken.problems.len()), (vec![], 1));
        assert_eq!(names(&read(&POD.replace("image: x", "image: y"))), ["PodRemoved", "PodApplied"]);
        let with_secret = "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {k: v}}";
        assert_eq!(names(&read(with_secret)), ["ObjectSeen", "PodRemoved"]);
    }
}
