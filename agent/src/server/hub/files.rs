//! Static pods beside the API: manifests of a directory become pods of the node, and mirror pods show them in the store. The
//! files are what counts: who deletes a mirror sees it come again.

use super::{Hub, HubSettings, Listener, What};
use crate::daemon::watch_files;
use crate::fault::Fault;
use crate::manifests::Manifests;
use crate::objects::Objects;
use nodefold_api::{Request, Response, StatusReason};
use nodefold_core::command::Command;
use nodefold_core::event::{Fact, Mirror};
use nodefold_core::ids::{Name, PodUid, Source};
use nodefold_core::spec::Pod;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The directory, and what its files said last.
pub(super) struct StaticFiles {
    dir: PathBuf,
    manifests: Manifests,
    changed: Arc<AtomicBool>,
}

impl StaticFiles {
    /// Watches the directory, if there is one.
    pub fn watch(settings: &HubSettings, wake: super::Waker) -> Result<Option<StaticFiles>, Fault> {
        let Some(dir) = settings.manifests.clone() else { return Ok(None) };
        let changed = Arc::new(AtomicBool::new(true));
        watch_files(&dir, changed.clone(), move || {
            wake();
            true
        })?;
        Ok(Some(StaticFiles { dir, manifests: Manifests::default(), changed }))
    }
}

impl Hub {
    /// Reads the files again, if some changed.
    pub(super) fn read_files(&mut self, listener: &mut dyn Listener) -> Result<(), Fault> {
        let Some(files) = self.files.as_mut().filter(|files| files.changed.swap(false, Ordering::SeqCst))
        else {
            return Ok(());
        };
        // Objects of files are no objects of the API, and a static pod may refer to none of those.
        let read = files.manifests.read(&files.dir, &Objects::default(), &self.settings.content_key)?;
        let by = format!("file {}", files.dir.display());
        for problem in &read.problems {
            listener.told(problem);
        }
        let is_of_pod = |fact: &Fact| matches!(fact, Fact::PodApplied(_) | Fact::PodRemoved { .. });
        for fact in read.facts.into_iter().filter(is_of_pod) {
            if let Fact::PodApplied(pod) = &fact {
                if pod.spec.volumes.iter().any(|volume| !volume.source.objects().is_empty()) {
                    let what = "a static pod may not refer to objects of the API: it is passed over";
                    listener.told(&format!("{}/{}: {what}", pod.namespace, pod.name));
                    continue;
                }
                if let Some(asked) = self.asked_by_file(&by, pod) {
                    self.tell_history(asked)?;
                }
            }
            self.inbox.push(fact);
        }
        Ok(())
    }

    fn asked_by_file(&self, by: &str, pod: &Pod) -> Option<What> {
        let mut object = nodefold_k8s::mirror_to_json(pod, &self.settings.node_name);
        object["metadata"]["uid"] = json!(pod.uid.to_string());
        object["metadata"]["generation"] = json!(pod.generation.max(1));
        self.history.asked(by, &object)
    }

    /// What the node hears first of files, before the API's list: from then on what is in neither is gone.
    pub(super) fn list_files(&mut self, listener: &mut dyn Listener) -> Result<(), Fault> {
        self.read_files(listener)?;
        self.inbox.push(Fact::SourceReady { source: Source::File });
        Ok(())
    }

    /// A mirror pod of the store is told as what it is, and no other than before.
    pub(super) fn tell_mirror(&mut self, object: &Value, mirror: Mirror) {
        let (namespace, name) = place(object);
        if self.link.mirrors.insert(mirror.uid, mirror.clone()).as_ref() != Some(&mirror) {
            self.inbox.push(Fact::MirrorSeen { namespace, name, mirror });
        }
    }

    /// A pod of the store is gone; whether it was a mirror.
    pub(super) fn forget_mirror(&mut self, object: &Value, uid: PodUid) -> bool {
        let (namespace, name) = place(object);
        let was = self.link.mirrors.remove(&uid).is_some();
        if was {
            self.inbox.push(Fact::MirrorGone { namespace, name, mirror: uid });
        }
        was
    }

    /// Makes the mirror of a static pod. One of the very same pod that is there already is as good.
    pub(super) fn create_mirror(&mut self, command: &Command, pod: &Pod) -> Result<Option<Fact>, Fault> {
        let (namespace, name) = (pod.namespace.clone(), pod.name.clone());
        let refused = if self.api.get("Namespace", "", &namespace).is_none() {
            format!("namespaces {namespace:?} not found")
        } else {
            let object = nodefold_k8s::mirror_to_json(pod, &self.settings.node_name);
            let user = self.node_user();
            match self.apply(&user, Request::Create { object, uid: Hub::new_uid()? })? {
                Response::Ok { .. } => "what was created is not this pod's mirror".to_owned(),
                Response::Rejected(status) => status.message,
            }
        };
        let there = self.api.get("Pod", &namespace, &name);
        let mirror = there.and_then(|object| nodefold_k8s::mirror_from_json(object));
        Ok(match mirror.filter(|mirror| mirror.of == pod.uid) {
            Some(mirror) => Some(Fact::MirrorCreated { op: command.op, namespace, name, mirror }),
            None => command.failed(super::node::final_error(refused)),
        })
    }

    /// Removes a mirror that shows nothing any more.
    pub(super) fn delete_mirror(
        &mut self,
        command: &Command,
        namespace: &Name,
        name: &Name,
    ) -> Result<Option<Fact>, Fault> {
        let (op, mirror) = (command.op, command.pod);
        let user = self.node_user();
        Ok(match self.apply(&user, Request::Release { uid: mirror })? {
            Response::Rejected(status) if status.reason != StatusReason::NotFound => {
                command.failed(super::node::final_error(status.message))
            }
            Response::Ok { .. } | Response::Rejected(_) => {
                Some(Fact::MirrorDeleted { op, namespace: namespace.clone(), name: name.clone(), mirror })
            }
        })
    }
}

/// The pod that the node runs under a stored pod's name: a mirror's is the static pod.
pub(super) fn runs_as(pod: &Value) -> PodUid {
    let own = || nodefold_k8s::pod_uid(pod["metadata"]["uid"].as_str().unwrap_or_default());
    nodefold_k8s::mirror_from_json(pod).map_or_else(own, |mirror| mirror.of)
}

fn place(object: &Value) -> (Name, Name) {
    let text = |field: &str| Name::from(object["metadata"][field].as_str().unwrap_or_default());
    (text("namespace"), text("name"))
}
