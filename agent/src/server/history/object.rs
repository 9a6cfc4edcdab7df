//! Episodes as Kubernetes objects of `history.nodefold.io/v1alpha1`.

use super::{Detail, Episode, Kind};
use nodefold_core::time::Time;
use nodefold_k8s::time;
use serde_json::{Value, json};

impl Episode {
    /// The object's name. A run's is its own for all time; an allocation is its pod's.
    pub(super) fn name(&self) -> String {
        let (pod, uid) = (&self.place.name, &self.pod.to_string()[..5]);
        match &self.detail {
            Detail::Container { id, .. } => {
                format!("{pod}.{uid}.{}.{}.{}", id.name, id.incarnation, id.attempt)
            }
            Detail::Volume { id, .. } => format!("{pod}.{uid}.{}.{}", id.name, id.generation),
            Detail::Allocation { .. } => pod.to_string(),
        }
    }

    /// The object, with this end.
    pub(super) fn object(&self, ended: Option<(Time, u64)>) -> Value {
        let version = ended.map_or(self.born, |(_, version)| version);
        let mut object = json!({
            "apiVersion": "history.nodefold.io/v1alpha1",
            "kind": Kind::of(&self.detail).as_str(),
            "metadata": {
                "name": self.name(),
                "namespace": &*self.place.namespace,
                "creationTimestamp": time::format(self.began),
                "resourceVersion": version.to_string(),
            },
            "spec": {"pod": &*self.place.name, "podUID": self.pod.to_string()},
            "status": {},
        });
        if let Some(asked) = &self.asked {
            object["spec"]["askedBy"] = json!(&*asked.by);
            object["spec"]["askedAt"] = json!(time::format(asked.at));
        }
        let (began, end) = match &self.detail {
            Detail::Container { id, image, exit } => {
                let spec = &mut object["spec"];
                spec["container"] = json!(&*id.name);
                spec["incarnation"] = json!(id.incarnation);
                spec["attempt"] = json!(id.attempt);
                spec["image"] = json!(&**image);
                if let (Some(exit), Some(_)) = (exit, ended) {
                    let status = &mut object["status"];
                    status["exitCode"] = json!(exit.code);
                    status["reason"] = json!(&*exit.reason);
                    if let Some(signal) = exit.signal {
                        status["signal"] = json!(signal);
                    }
                }
                ("startedAt", "finishedAt")
            }
            Detail::Volume { id, source } => {
                let spec = &mut object["spec"];
                spec["volume"] = json!(&*id.name);
                spec["generation"] = json!(id.generation);
                spec["source"] = json!(&**source);
                ("mountedAt", "unmountedAt")
            }
            Detail::Allocation { generation, revision, spec } => {
                object["metadata"]["generation"] = json!(generation);
                object["spec"]["generation"] = json!(generation);
                for field in ["containers", "volumes"] {
                    object["spec"][field] = spec[field].clone();
                }
                object["status"]["revision"] = json!(revision);
                ("allocatedAt", "replacedAt")
            }
        };
        object["status"][began] = json!(time::format(self.began));
        if let Some((at, _)) = ended {
            object["status"][end] = json!(time::format(at));
        }
        object
    }
}
