//! Mirror pods: the object that the node keeps at the API in a static pod's place (kubelet-pods §3.7), to and from what
//! the core knows of one.

use crate::read_pod::pod_uid;
use crate::write_pod::pod_to_json;
use nodefold_core::event::Mirror;
use nodefold_core::spec::Pod;
use serde_json::{Value, json};

/// On a mirror pod: which version of which static pod it shows.
pub const MIRROR_ANNOTATION: &str = "kubernetes.io/config.mirror";
/// On a static pod and its mirror: the static pod's own version. Here its UID, which another version of the file changes.
const HASH_ANNOTATION: &str = "kubernetes.io/config.hash";
/// Where the manifest came from.
const SOURCE_ANNOTATION: &str = "kubernetes.io/config.source";

/// What the core hears of a pod object, if it is a mirror pod.
pub fn mirror_from_json(object: &Value) -> Option<Mirror> {
    let metadata = object.get("metadata")?;
    let of = metadata.get("annotations")?.get(MIRROR_ANNOTATION)?.as_str()?;
    let uid = metadata.get("uid")?.as_str()?;
    let deleting = metadata.get("deletionTimestamp").is_some_and(|at| !at.is_null());
    Some(Mirror { uid: pod_uid(uid), of: pod_uid(of), deleting })
}

/// The manifest of a static pod's mirror: the pod as its file has it, bound to the node, without what belongs to the
/// static pod's own identity.
pub fn mirror_to_json(pod: &Pod, node_name: &str) -> Value {
    let mut object = pod_to_json(pod, &pod.spec);
    let hash = pod.uid.to_string();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for own in ["uid", "creationTimestamp", "generation", "resourceVersion"] {
            metadata.shift_remove(own);
        }
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        annotations[HASH_ANNOTATION] = json!(hash);
        annotations[MIRROR_ANNOTATION] = json!(hash);
        annotations[SOURCE_ANNOTATION] = json!("file");
    }
    object["spec"]["nodeName"] = json!(node_name);
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{default_pod, pod_from_json};
    use nodefold_core::ids::Source;

    fn static_pod() -> Pod {
        let mut manifest = json!({"kind": "Pod", "metadata": {"name": "etcd", "namespace": "kube-system",
            "uid": "11111111-2222-4333-8444-555555555555", "annotations": {"kept": "yes"}},
            "spec": {"containers": [{"name": "main", "image": "etcd:1"}]}});
        default_pod(&mut manifest);
        pod_from_json(&manifest, Source::File).expect("a pod")
    }

    #[test]
    fn a_mirror_names_the_pod_that_it_shows_and_keeps_the_rest() {
        let pod = static_pod();
        let mut object = mirror_to_json(&pod, "node-1");
        assert_eq!(object["metadata"]["uid"], Value::Null, "the API gives it one of its own");
        assert_eq!(object["metadata"]["annotations"]["kept"], "yes");
        assert_eq!(object["metadata"]["annotations"][SOURCE_ANNOTATION], "file");
        assert_eq!(object["spec"]["nodeName"], "node-1");
        assert_eq!(object["spec"]["containers"][0]["image"], "etcd:1");
        object["metadata"]["uid"] = json!("99999999-2222-4333-8444-555555555555");
        let mirror = mirror_from_json(&object).expect("it is a mirror");
        assert_eq!((mirror.of, mirror.deleting), (pod.uid, false));
        assert_ne!(mirror.uid, pod.uid);
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(mirror_from_json(&object).is_some_and(|m| m.deleting));
    }

    #[test]
    fn an_ordinary_pod_is_no_mirror() {
        assert_eq!(mirror_from_json(&json!({"metadata": {"uid": "x", "annotations": {"a": "b"}}})), None);
        assert_eq!(mirror_from_json(&json!({"metadata": {"uid": "x"}})), None);
    }
}
