//! What the loop does first: the objects that are always there, the node's own object, and the node's first list.

use super::node::HOST_IP;
use super::{Hub, Listener, derive};
use crate::fault::Fault;
use nodefold_api::{Request, Response};
use nodefold_core::config::NodeFacts;
use nodefold_core::event::Fact;
use nodefold_core::ids::PodUid;
use nodefold_core::resources::ResourceName;
use nodefold_k8s::time;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const NAMESPACES: [&str; 3] = ["default", "kube-public", "kube-system"];

impl Hub {
    pub(super) fn begin(&mut self, listener: &mut dyn Listener) -> Result<(), Fault> {
        self.now = crate::clock::now().max(self.now);
        self.read_roles();
        for binding in self.rbac.give_dynamic_unnamed() {
            listener.told(&format!("{binding} gives pods/dynamic away without naming it (through `*`)"));
        }
        self.adopt_events();
        for name in NAMESPACES {
            self.keep_namespace(name)?;
        }
        let allocatable = self.host.allocatable()?;
        let gates = self.settings.gates;
        if self.api.gates() != gates {
            self.apply("system:apiserver", Request::NodeGates(gates))?;
        }
        let facts = NodeFacts { allocatable, gates, ..NodeFacts::default() };
        self.keep_node(&facts)?;
        self.catch_up()?;
        self.inbox.push(Fact::AgentStarted { boot_id: self.host.boot_id()? });
        self.inbox.push(Fact::NodeChanged(facts));
        self.list_files(listener)?;
        self.list_for_node();
        Ok(())
    }

    /// What an agent that was killed had folded and not yet told.
    fn catch_up(&mut self) -> Result<(), Fault> {
        let uid =
            |pod: &Arc<Value>| nodefold_k8s::pod_uid(pod["metadata"]["uid"].as_str().unwrap_or_default());
        let stored: BTreeSet<PodUid> = self.api.list("Pod").map(uid).collect();
        let node = self.driver.node();
        let mut pods: BTreeSet<PodUid> = self.history.pods().filter(|pod| !stored.contains(pod)).collect();
        pods.extend(node.pods());
        self.write_history(&pods, &derive::Exits::new())
    }

    fn keep_namespace(&mut self, name: &str) -> Result<(), Fault> {
        if self.api.get("Namespace", "", name).is_none() {
            let object = json!({"apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name},
                    "finalizers": ["kubernetes"]},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
            self.apply("system:apiserver", Request::Create { object, uid: Hub::new_uid()? })?;
        }
        if self.api.get("ServiceAccount", name, "default").is_none() {
            let object = json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": "default", "namespace": name}});
            let user = "system:serviceaccount:kube-system:service-account-controller";
            self.apply(user, Request::Create { object, uid: Hub::new_uid()? })?;
        }
        Ok(())
    }

    /// The node's object: what it has, and that it is ready.
    fn keep_node(&mut self, facts: &NodeFacts) -> Result<(), Fault> {
        let name = self.settings.node_name.to_string();
        let mut amounts = nodefold_k8s::resource_list_to_json(&facts.allocatable);
        if facts.allocatable.get(&ResourceName::Pods) == 0 {
            amounts["pods"] = json!("110");
        }
        let now = time::format(self.now);
        let stored = self.api.get("Node", "", &name).cloned();
        let conditions = [
            (
                "MemoryPressure",
                "False",
                "KubeletHasSufficientMemory",
                "kubelet has sufficient memory available",
            ),
            ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
            ("Ready", "True", "KubeletReady", "nodefold is posting ready status"),
        ];
        let conditions: Vec<Value> = conditions
            .into_iter()
            .map(|(kind, status, reason, message)| {
                let since = stored.as_ref().and_then(|node| {
                    let before = node["status"]["conditions"].as_array()?;
                    let before = before.iter().find(|c| c["type"] == kind && c["status"] == status)?;
                    Some(before["lastTransitionTime"].clone())
                });
                json!({"type": kind, "status": status, "reason": reason, "message": message,
                    "lastHeartbeatTime": now, "lastTransitionTime": since.unwrap_or(json!(now))})
            })
            .collect();
        let gates = facts.gates;
        let declared = [
            ("DynamicContainers", gates.dynamic_containers),
            ("DynamicNodeLocalEphemeralVolumes", gates.dynamic_volumes),
        ];
        let declared: Vec<&str> = declared.into_iter().filter(|(_, on)| *on).map(|(name, _)| name).collect();
        let status = json!({
            "declaredFeatures": declared,
            "capacity": amounts, "allocatable": amounts, "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": HOST_IP}, {"type": "Hostname", "address": name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": {
                "machineID": "", "systemUUID": "", "bootID": "", "kernelVersion": kernel(),
                "osImage": "", "containerRuntimeVersion": format!("nodefold://{}", self.host.name()),
                "kubeletVersion": self.settings.version, "kubeProxyVersion": "",
                "operatingSystem": "linux", "architecture": architecture(),
            },
        });
        let labels = json!({"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
            "kubernetes.io/arch": architecture()});
        let request = match stored {
            Some(stored) => {
                let mut object = Value::clone(&stored);
                object["status"] = status;
                Request::Update { object }
            }
            None => {
                let object = json!({"apiVersion": "v1", "kind": "Node",
                    "metadata": {"name": name, "labels": labels}, "spec": {}, "status": status});
                Request::Create { object, uid: Hub::new_uid()? }
            }
        };
        let user = self.node_user();
        match self.apply(&user, request)? {
            Response::Ok { .. } => Ok(()),
            Response::Rejected(refused) => {
                Err(Fault::refused(format!("the node's object: {}", refused.message)))
            }
        }
    }
}

fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
