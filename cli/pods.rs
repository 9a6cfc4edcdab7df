//! Pods of a folded node: found by name, told in a line, shown in Kubernetes' own form.

use crate::ending::Unusable;
use nodefold_core::Node;
use nodefold_core::ids::PodUid;
use nodefold_core::status::PodStatus;
use serde_json::{Value, json};

/// A pod's name as it was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl PodName {
    /// Reads `NS/NAME`, or `NAME` in the namespace `default`.
    pub fn parse(text: &str) -> Result<PodName, Unusable> {
        let (namespace, name) = text.split_once('/').unwrap_or(("default", text));
        if namespace.is_empty() || name.is_empty() || name.contains('/') {
            return Err(Unusable::new(
                format!("{text:?} is no pod's name"),
                "write NAMESPACE/NAME, or NAME alone",
            ));
        }
        Ok(PodName { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

impl std::fmt::Display for PodName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// All that the node knows of a pod, as Kubernetes writes it. `None`: it doesn't know the pod.
pub fn state(node: &Node, pod: PodUid) -> Option<Value> {
    let desired = node.desired(pod)?;
    let status = node.status(pod).map(|status| {
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": &*desired.name, "namespace": &*desired.namespace, "uid": pod.to_string()},
            "status": nodefold_k8s::status_to_json(&status, pod),
        })
    });
    Some(json!({
        "desired": nodefold_k8s::pod_to_json(&desired, &desired.spec),
        "allocated": node.allocated(pod).map(|allocated| nodefold_k8s::allocated_to_json(&allocated)),
        "status": status,
    }))
}

/// Each pod of a node in a line, under a headline.
pub fn table(node: &Node) -> Vec<String> {
    let mut rows = vec![["POD", "PHASE", "READY", "RESTARTS", "LIFECYCLE", "VOLUMES"].map(str::to_owned)];
    for uid in node.pods() {
        let (Some(pod), Some(desired)) = (node.pod(uid), node.desired(uid)) else { continue };
        let status = node.status(uid);
        let containers = status.as_ref().map(|s| s.containers.as_slice()).unwrap_or_default();
        let ready = containers.iter().filter(|c| c.ready).count();
        let restarts: u64 = containers.iter().map(|c| u64::from(c.restart_count)).sum();
        rows.push([
            format!("{}/{}", desired.namespace, desired.name),
            status.as_ref().map_or("-", |s| s.phase.as_str()).to_owned(),
            format!("{ready}/{}", containers.len()),
            restarts.to_string(),
            pod.label().to_owned(),
            volumes(status.as_ref()),
        ]);
    }
    let widths: Vec<usize> =
        (0..6).map(|i| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0)).collect();
    let pad = |(cell, width): (&String, &usize)| format!("{cell:<width$}");
    rows.iter()
        .map(|row| row.iter().zip(&widths).map(pad).collect::<Vec<_>>().join("  ").trim_end().to_owned())
        .collect()
}

fn volumes(status: Option<&PodStatus>) -> String {
    let volumes = status.map(|s| s.volumes.as_slice()).unwrap_or_default();
    volumes.iter().map(|v| format!("{} {}", v.name, v.phase.as_str())).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_leave_out_the_default_namespace() {
        let parsed = |text: &str| PodName::parse(text).map(|p| p.to_string()).map_err(|e| e.to_string());
        assert_eq!(parsed("web"), Ok("default/web".into()));
        assert_eq!(parsed("kube-system/dns"), Ok("kube-system/dns".into()));
        for wrong in ["", "/web", "a/", "a/b/c"] {
            assert!(parsed(wrong).is_err_and(|e| e.contains("NAMESPACE/NAME")), "{wrong}");
        }
    }
}
