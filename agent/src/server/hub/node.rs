//! Between the store and the node: what the node hears of changes, and what its commands ask of the store. The node is told
//! only of pods bound to it and of objects that these refer to, as its authorizer's graph allows (api-side §3).

use super::Hub;
use crate::fault::Fault;
use nodefold_api::authorize::node_graph::{Reference, ReferenceKind};
use nodefold_api::{Change, ChangeType, Request, Response};
use nodefold_core::api_write::ApiWrite;
use nodefold_core::command::Command;
use nodefold_core::event::{ErrorClass, Fact, Mirror, OpError};
use nodefold_core::ids::{Name, ObjectKind, ObjectRef, PodUid, Source};
use nodefold_core::spec::Pod;
use nodefold_core::status::PodStatus;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The node's address: it serves on the loopback alone.
pub const HOST_IP: &str = "127.0.0.1";

/// What the node was told.
#[derive(Default)]
pub struct Link {
    /// Each pod as it was told last, so that a change of status alone tells nothing.
    sent: BTreeMap<PodUid, Arc<Pod>>,
    /// Objects that the volumes of these pods refer to.
    referenced: BTreeMap<PodUid, BTreeSet<ObjectRef>>,
    /// Conditions that readiness gates name, as told. What was not told is not met.
    gates: BTreeMap<(PodUid, Name), bool>,
    /// Mirror pods, as told.
    pub mirrors: BTreeMap<PodUid, Mirror>,
}

impl Hub {
    /// What is in the store when the node starts, as a first list.
    pub(super) fn list_for_node(&mut self) {
        let pods: Vec<Arc<Value>> = self.api.list("Pod").cloned().collect();
        for pod in pods {
            self.tell_pod(&pod);
        }
        self.inbox.push(Fact::SourceReady { source: Source::Api });
    }

    /// A change of the store, as far as it is the node's business.
    pub(super) fn tell_node(&mut self, change: &Change) {
        let object = &change.object;
        match (&*change.kind, change.change) {
            ("Pod", ChangeType::Deleted) => {
                let uid = nodefold_k8s::pod_uid(object["metadata"]["uid"].as_str().unwrap_or_default());
                self.recorder.forget(uid);
                if self.forget_mirror(object, uid) {
                    return;
                }
                if self.link.sent.remove(&uid).is_some() {
                    self.inbox.push(Fact::PodRemoved { pod: uid });
                }
                self.link.gates.retain(|(of, _), _| *of != uid);
                if let Some(unused) = self.link.referenced.remove(&uid) {
                    for object in unused {
                        self.keep_bytes(&object);
                    }
                }
            }
            ("Pod", ChangeType::Added | ChangeType::Modified) => self.tell_pod(object),
            _ => {
                if let Some(reference) = nodefold_k8s::object_ref(object)
                    && self.is_referenced(&reference)
                {
                    self.tell_object(&reference);
                }
            }
        }
    }

    fn tell_pod(&mut self, object: &Value) {
        if object["spec"]["nodeName"] != *self.settings.node_name {
            return;
        }
        if let Some(mirror) = nodefold_k8s::mirror_from_json(object) {
            self.tell_mirror(object, mirror);
            return;
        }
        // `Api` has judged it by stricter rules: what it accepts can be read.
        let Ok(pod) = nodefold_k8s::pod_from_json(object, Source::Api) else { return };
        let uid = pod.uid;
        let pod = Arc::new(pod);
        if self.link.sent.get(&uid) != Some(&pod) {
            self.link.sent.insert(uid, pod.clone());
            self.inbox.push(Fact::PodApplied(pod.clone()));
            let objects = pod.spec.volumes.iter().flat_map(|volume| volume.source.objects());
            let wanted: BTreeSet<ObjectRef> = objects.map(|source| source.object.clone()).collect();
            let new: Vec<ObjectRef> =
                wanted.iter().filter(|object| !self.is_referenced(object)).cloned().collect();
            // What was removed from the spec may still be mounted: it stays until the pod goes.
            self.link.referenced.entry(uid).or_default().extend(wanted);
            for object in new {
                self.tell_object(&object);
            }
        }
        self.forget_unreadable(uid);
        for (condition, met) in nodefold_k8s::readiness_gates(object) {
            let told = self.link.gates.insert((uid, condition.clone()), met);
            if told.unwrap_or(false) != met {
                self.inbox.push(Fact::ReadinessGate { pod: uid, condition, met });
            }
        }
    }

    /// What the node may read no more, since what was removed has verifiably gone, its host forgets.
    fn forget_unreadable(&mut self, uid: PodUid) {
        let Some(held) = self.link.referenced.get(&uid) else { return };
        let lost: Vec<ObjectRef> = held.iter().filter(|object| !self.may_read(object)).cloned().collect();
        for object in lost {
            if let Some(held) = self.link.referenced.get_mut(&uid) {
                held.remove(&object);
            }
            self.keep_bytes(&object);
        }
    }

    fn is_referenced(&self, object: &ObjectRef) -> bool {
        self.link.referenced.values().any(|objects| objects.contains(object))
    }

    fn tell_object(&mut self, object: &ObjectRef) {
        self.keep_bytes(object);
        let fact = match self.readable(object) {
            Some(value) => {
                let version = nodefold_k8s::object_version(&value, &self.settings.content_key);
                Fact::ObjectSeen { object: object.clone(), version }
            }
            None => Fact::ObjectGone { object: object.clone() },
        };
        self.inbox.push(fact);
    }

    /// The host has the bytes of what the node may read, and forgets those of what it may not.
    fn keep_bytes(&mut self, object: &ObjectRef) {
        let value = self.readable(object);
        self.host.stored(object, value.as_ref());
    }

    fn may_read(&self, object: &ObjectRef) -> bool {
        let kind = match object.kind {
            ObjectKind::Secret => ReferenceKind::Secret,
            ObjectKind::ConfigMap => ReferenceKind::ConfigMap,
            // The graph knows none: any node may read them.
            ObjectKind::ClusterTrustBundle => return true,
        };
        let (namespace, name) = (object.namespace.clone(), object.name.clone());
        self.graph.may_read(&self.settings.node_name, &Reference { kind, namespace, name })
    }

    fn readable(&self, object: &ObjectRef) -> Option<Arc<Value>> {
        let kind = match object.kind {
            ObjectKind::Secret => "Secret",
            ObjectKind::ConfigMap => "ConfigMap",
            ObjectKind::ClusterTrustBundle => "ClusterTrustBundle",
        };
        let stored = self.api.get(kind, &object.namespace, &object.name)?;
        self.may_read(object).then(|| self.vault.unsealed(stored))
    }

    /// What the node wants done: by the store, or by the host.
    pub(super) fn execute(&mut self, command: Command) -> Result<(), Fault> {
        let (op, pod) = (command.op, command.pod);
        match command.action.api_write() {
            Some(ApiWrite::Status { status, mirror }) => {
                let mut status = PodStatus::clone(status);
                self.host.tell_last_words(pod, &mut status);
                let written =
                    self.write_status(mirror.unwrap_or(pod), nodefold_k8s::status_to_json(&status, pod))?;
                let fact = match written {
                    Ok(()) => Some(Fact::StatusWritten { op, pod }),
                    Err(error) => command.failed(error),
                };
                self.inbox.extend(fact);
            }
            Some(ApiWrite::Release) => {
                let user = self.node_user();
                let response = self.apply(&user, Request::Release { uid: pod })?;
                // The watch brings the answer; a refusal is one.
                if let Response::Rejected(refused) = response {
                    self.inbox.extend(command.failed(final_error(refused.message)));
                }
                self.finish_namespaces()?;
            }
            Some(ApiWrite::CreateMirror { pod }) => {
                let fact = self.create_mirror(&command, pod)?;
                self.inbox.extend(fact);
            }
            Some(ApiWrite::DeleteMirror { namespace, name }) => {
                let fact = self.delete_mirror(&command, namespace, name)?;
                self.inbox.extend(fact);
            }
            Some(ApiWrite::Event(event)) => self.record(pod, event)?,
            None => self.host.submit(&command),
        }
        Ok(())
    }

    /// As whom the node writes.
    pub(super) fn node_user(&self) -> String {
        format!("system:node:{}", self.settings.node_name)
    }

    fn write_status(&mut self, pod: PodUid, mut status: Value) -> Result<Result<(), OpError>, Fault> {
        let Some(stored) = self.api.pod_by_uid(pod) else {
            return Ok(Err(final_error(format!("pods \"{pod}\" not found"))));
        };
        nodefold_k8s::keep_foreign_conditions(&stored["status"], &mut status);
        // The node isn't told its own address; who serves it knows the one that its object says.
        status["hostIP"] = json!(HOST_IP);
        status["hostIPs"] = json!([{"ip": HOST_IP}]);
        let text = |field: &str| Name::from(stored["metadata"][field].as_str().unwrap_or_default());
        let request = Request::Status { namespace: text("namespace"), name: text("name"), uid: pod, status };
        let user = self.node_user();
        Ok(match self.apply(&user, request)? {
            Response::Ok { .. } => Ok(()),
            Response::Rejected(refused) => Err(final_error(refused.message)),
        })
    }
}

/// It did not happen, and that is an answer.
pub(super) fn final_error(message: String) -> OpError {
    OpError { class: ErrorClass::Final, reason: None, message: message.into() }
}
