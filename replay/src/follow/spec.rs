//! A pod made up from what happened to it, where no object of it is in the evidence: names, and nothing else.

use crate::judge::View;
use crate::trace::PodIx;
use nodefold_core::ids::{Name, PodUid, Source};
use nodefold_core::spec::{Pod, RestartPolicy};
use nodefold_core::time::{Nanos, Time};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The pod of a life. Its containers mount what statuses say, or else all of its volumes.
pub fn made_up(view: &View<'_>, pod: PodIx, uid: PodUid, now: Time) -> Pod {
    let life = view.trace.pod(pod);
    let volumes: BTreeSet<Name> =
        view.trace.volumes.iter().filter(|v| v.pod == Some(pod)).filter_map(|v| v.name.clone()).collect();
    let mut containers: Vec<(Name, bool)> = Vec::new();
    for c in view.containers(pod) {
        let c = view.trace.container(c);
        if let Some(name) = &c.name
            && !containers.iter().any(|(n, _)| n == name)
        {
            containers.push((name.clone(), c.init));
        }
    }
    if containers.iter().all(|(_, init)| *init) {
        containers.push(("unknown".into(), false));
    }
    let container = |name: &Name| {
        let mounts = view.trace.mounts.get(&(pod, name.clone())).cloned();
        let mounts = mounts.unwrap_or_else(|| volumes.iter().cloned().collect());
        let mounts: Vec<Value> = mounts
            .iter()
            .filter(|m| volumes.contains(*m))
            .map(|m| json!({"name": &**m, "mountPath": format!("/unknown/{m}")}))
            .collect();
        json!({"name": &**name, "image": "unknown", "volumeMounts": mounts})
    };
    let list = |init: bool| {
        containers.iter().filter(|(_, i)| *i == init).map(|(n, _)| container(n)).collect::<Vec<_>>()
    };
    let object = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": life.name.as_deref().unwrap_or("unknown"),
            "namespace": life.namespace.as_deref().unwrap_or("unknown"),
            "uid": life.uid.as_deref().unwrap_or("unknown"),
        },
        "spec": {
            "containers": list(false),
            "initContainers": list(true),
            "volumes": volumes.iter().map(|v| json!({"name": &**v, "emptyDir": {}})).collect::<Vec<_>>(),
        },
    });
    let mut defaulted = object;
    nodefold_k8s::default_pod(&mut defaulted);
    let source = if life.is_static { Source::File } else { Source::Api };
    // Names that no manifest could have leave nothing but the UID.
    let mut made = nodefold_k8s::pod_from_json(&defaulted, source).unwrap_or_else(|_| Pod::orphan(uid));
    made.uid = uid;
    made.created_at = now;
    if made.spec.restart_policy == RestartPolicy::Never && made.spec.containers.is_empty() {
        let mut spec = (*made.spec).clone();
        spec.termination_grace = Nanos::secs(30);
        made.spec = spec.into();
    }
    made
}
