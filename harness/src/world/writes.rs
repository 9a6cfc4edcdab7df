//! What the node writes to the API server: which request a command makes, and what the agent hears of the answer. The
//! same whatever stage the node is on.

use super::server::Server;
use crate::scenario::PodRef;
use nodefold_api::{Request, Response, StatusReason};
use nodefold_core::api_write::ApiWrite;
use nodefold_core::command::Command;
use nodefold_core::event::{ErrorClass, Fact, OpError};

/// What becomes of a write: the fact that the agent hears (none: the watch brings it), or why it was refused.
pub type Written = Result<Option<Fact>, OpError>;

impl Server {
    /// The request that a command makes, and what it is in words; or why it can't be made. `None`: the command asks nothing
    /// of the API.
    pub fn asked_by(&mut self, command: &Command) -> Option<Result<(String, Request), OpError>> {
        let pod = command.pod;
        Some(match command.action.api_write()? {
            ApiWrite::Status { status, mirror } => {
                let Some(name) = self.name(pod).cloned() else {
                    return Some(Err(refused(format!("pods \"{pod}\" not found"))));
                };
                let mut status = nodefold_k8s::status_to_json(status, pod);
                if let Some(stored) = self.pod(&name) {
                    nodefold_k8s::keep_foreign_conditions(&stored["status"], &mut status);
                }
                let what = format!("status of {name}");
                // A static pod's is its mirror's.
                let uid = mirror.unwrap_or(pod);
                let (namespace, name) = (name.namespace.as_str().into(), name.name.as_str().into());
                Ok((what, Request::Status { namespace, name, uid, status }))
            }
            ApiWrite::Release => {
                let what = match self.name(pod) {
                    Some(name) => format!("final delete of {name}"),
                    None => format!("final delete of {pod}"),
                };
                Ok((what, Request::Release { uid: pod }))
            }
            ApiWrite::CreateMirror { pod } => {
                let object = nodefold_k8s::mirror_to_json(pod, self.node_name());
                let uid = self.next_uid("Pod", &pod.namespace, &pod.name);
                let what = format!("mirror pod of {}/{}", pod.namespace, pod.name);
                Ok((what, Request::Create { object, uid }))
            }
            ApiWrite::DeleteMirror { namespace, name } => {
                let what = format!("delete of the mirror pod {namespace}/{name}");
                Ok((what, Request::Release { uid: pod }))
            }
            // The story keeps it for people; no request is made of it.
            ApiWrite::Event(_) => return None,
        })
    }

    /// What the agent hears of the answer to such a request.
    pub fn answer_to(&self, command: &Command, response: &Response) -> Written {
        let (op, pod) = (command.op, command.pod);
        match (command.action.api_write(), response) {
            // One of the very same pod that is there already is as good.
            (Some(ApiWrite::CreateMirror { pod }), _) => {
                let (namespace, name) = (pod.namespace.clone(), pod.name.clone());
                let there = PodRef { namespace: namespace.to_string(), name: name.to_string() };
                let mirror = self.pod(&there).and_then(nodefold_k8s::mirror_from_json);
                match (mirror.filter(|mirror| mirror.of == pod.uid), response) {
                    (Some(mirror), _) => Ok(Some(Fact::MirrorCreated { op, namespace, name, mirror })),
                    (None, Response::Rejected(status)) => Err(refused(status.message.clone())),
                    (None, Response::Ok { .. }) => {
                        Err(refused("what was created is not this pod's mirror".to_owned()))
                    }
                }
            }
            (Some(ApiWrite::DeleteMirror { namespace, name }), Response::Rejected(status))
                if status.reason == StatusReason::NotFound =>
            {
                let (namespace, name) = (namespace.clone(), name.clone());
                Ok(Some(Fact::MirrorDeleted { op, namespace, name, mirror: pod }))
            }
            (_, Response::Rejected(status)) => Err(refused(status.message.clone())),
            (Some(ApiWrite::DeleteMirror { namespace, name }), Response::Ok { .. }) => {
                let (namespace, name) = (namespace.clone(), name.clone());
                Ok(Some(Fact::MirrorDeleted { op, namespace, name, mirror: pod }))
            }
            (Some(ApiWrite::Status { .. }), Response::Ok { .. }) => Ok(Some(Fact::StatusWritten { op, pod })),
            // The watch brings a release's answer; nothing else asks anything.
            (Some(ApiWrite::Release | ApiWrite::Event(_)) | None, Response::Ok { .. }) => Ok(None),
        }
    }
}

/// It did not happen, and that is an answer.
pub(super) fn refused(message: String) -> OpError {
    OpError { class: ErrorClass::Final, reason: None, message: message.into() }
}
