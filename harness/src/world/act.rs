//! Does what a step of a story says, whoever tells the story: a scenario, the swarm, a shrinker.

use super::{Chooser, World, WorldError};
use crate::scenario::{Crash, DeleteTarget, PodRef, Verb};
use nodefold_api::{Body, Request, Response};
use nodefold_core::ids::{ObjectKind, PodUid, Source};
use nodefold_core::time::{Nanos, Time};
use serde_json::{Map, Value, json};

/// Who makes a story's requests.
const USER: &str = "kubernetes-admin";
/// Says that a manifest is a file on the node: a static pod.
const SOURCE_ANNOTATION: &str = "/metadata/annotations/kubernetes.io~1config.source";
/// How long after faults stopped everything has converged: the longest back-off (5 min) several times over.
pub const HEALED_AFTER: Nanos = Nanos::secs(1800);

/// What became of it.
pub enum Acted {
    /// It was done.
    Done,
    /// The API answered.
    Answered(Response),
    /// There was nothing to do it to.
    Missed,
    /// It can't be done in any world.
    Impossible(String),
}

impl World {
    /// Does it. What only a run knows (`settle`, `mark`, `heal`, `expect`) does nothing here.
    pub fn act(
        &mut self,
        verb: &Verb,
        title: &str,
        chooser: &mut dyn Chooser,
    ) -> Result<Acted, WorldError> {
        let done = |was: bool| if was { Acted::Done } else { Acted::Missed };
        Ok(match verb {
            Verb::Create(object) if is_file(object) => self.put_file(object),
            Verb::Update(object) if self.replaces_file(object) => self.put_file(object),
            Verb::Create(object) => {
                let object = self.addressed(object);
                let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
                let (kind, namespace) = (text("/kind"), text("/metadata/namespace"));
                let uid = self.server.next_uid(&kind, &namespace, &text("/metadata/name"));
                self.ask(title, Request::Create { object, uid })?
            }
            Verb::Update(object) => {
                let object = self.addressed(object);
                self.ask(title, Request::Update { object })?
            }
            Verb::Dynamic(pod, patch) => {
                let (namespace, name, body) = patched(pod, patch);
                self.ask(title, Request::Dynamic { namespace, name, body })?
            }
            Verb::Resize(pod, patch) => {
                let (namespace, name, body) = patched(pod, patch);
                self.ask(title, Request::Resize { namespace, name, body })?
            }
            Verb::Ephemeral(pod, patch) => {
                let (namespace, name, body) = patched(pod, patch);
                self.ask(title, Request::Ephemeral { namespace, name, body })?
            }
            Verb::Delete(target) => self.delete(title, target)?,
            Verb::Advance(time) => {
                let until = self.now().after(*time);
                self.run_until(until, chooser)?;
                Acted::Done
            }
            Verb::Exit { pod, container, ending } => done(self.end_process(pod, container, *ending)),
            Verb::Probe { pod, container, kind, passes } => {
                done(self.flip_probe(pod, container, *kind, *passes))
            }
            Verb::Hold(scope) => {
                self.hold(scope.clone());
                Acted::Done
            }
            Verb::Release(scope) => done(self.release(scope) > 0),
            Verb::Fail(scope, failure) => {
                self.fail(scope.clone(), failure.clone());
                Acted::Done
            }
            Verb::Crash(Crash::Agent) => {
                self.crash_agent();
                Acted::Done
            }
            Verb::Crash(Crash::Host) => {
                self.crash_host();
                Acted::Done
            }
            Verb::Set(change) => {
                self.change_node(change)?;
                Acted::Done
            }
            Verb::Step(count) => {
                for _ in 0..*count {
                    if !self.run_one(Time(u64::MAX), chooser)? {
                        return Ok(Acted::Missed);
                    }
                }
                Acted::Done
            }
            Verb::Choose(label) => match self.find_choice(label) {
                Some(choice) => done(self.step(&choice)?),
                None => Acted::Missed,
            },
            Verb::Fault(fault) => done(self.inject(fault)?),
            Verb::Settle(_) | Verb::Mark(_) | Verb::Heal | Verb::Expect(_) => Acted::Done,
        })
    }

    /// Faults stop, what pods refer to appears, and time enough passes for everything to converge.
    pub fn heal_and_wait(&mut self, chooser: &mut dyn Chooser) -> Result<(), WorldError> {
        self.heal()?;
        for object in self.missing_objects() {
            self.act(&Verb::Create(object), "create what is missing", chooser)?;
        }
        let until = self.now().after(HEALED_AFTER);
        self.run_until(until, chooser)
    }

    /// What of pods that neither the API nor a file has is still on the host: an end that leaves something behind (L2, L3).
    pub fn leftovers(&self) -> Vec<String> {
        let mut left = Vec::new();
        for uid in self.on_host() {
            let is_stored = self.server.name(uid).is_some_and(|name| {
                let stored = self.server.pod(name).is_some_and(|pod| pod["metadata"]["uid"] == uid.to_string());
                stored || self.server.files().any(|(_, pod)| pod.uid == uid)
            });
            if !is_stored {
                left.extend(self.left_of(uid).into_iter().map(|what| format!("{what} of {}", self.server.label(uid))));
            }
        }
        left
    }

    /// Pods of which anything is on the host.
    fn on_host(&self) -> std::collections::BTreeSet<PodUid> {
        let containers = self.runtime.containers.keys().map(|(pod, _)| *pod);
        let sandboxes = self.runtime.sandboxes.keys().map(|(pod, _)| *pod);
        containers.chain(sandboxes).chain(self.mounts.pods()).collect()
    }

    /// Objects, as manifests, that stored pods refer to and that do not exist; with every key that any of them names.
    fn missing_objects(&self) -> Vec<Value> {
        let mut wanted: std::collections::BTreeMap<(String, String, String), Map<String, Value>> =
            std::collections::BTreeMap::new();
        for pod in self.server.pods() {
            let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
            let mut sources: Vec<&Value> = Vec::new();
            for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
                sources.push(volume);
                sources.extend(volume["projected"]["sources"].as_array().into_iter().flatten());
            }
            for source in sources {
                for (field, kind, named) in
                    [("secret", "Secret", "secretName"), ("secret", "Secret", "name"), ("configMap", "ConfigMap", "name")]
                {
                    let Some(name) = source[field][named].as_str() else { continue };
                    let keys = source[field]["items"].as_array().into_iter().flatten();
                    let keys = keys.filter_map(|item| item["key"].as_str());
                    let entry = wanted
                        .entry((kind.to_owned(), namespace.to_owned(), name.to_owned()))
                        .or_default();
                    entry.extend(keys.map(|key| (key.to_owned(), json!("healed"))));
                }
            }
        }
        let missing = wanted.into_iter().filter(|((kind, namespace, name), _)| {
            let kind = if kind == "Secret" { ObjectKind::Secret } else { ObjectKind::ConfigMap };
            let object = nodefold_core::ids::ObjectRef {
                kind,
                namespace: namespace.as_str().into(),
                name: name.as_str().into(),
            };
            self.server.referenced(&object).is_none()
        });
        missing
            .map(|((kind, namespace, name), keys)| {
                let data = if kind == "Secret" { "stringData" } else { "data" };
                json!({
                    "apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}, data: keys
                })
            })
            .collect()
    }

    fn ask(&mut self, title: &str, request: Request) -> Result<Acted, WorldError> {
        self.request(USER, title.to_owned(), request).map(Acted::Answered)
    }

    /// A manifest as a client sends it: in a namespace, and bound to the node as the scheduler would have it.
    fn addressed(&self, object: &Value) -> Value {
        const CLUSTER_SCOPED: [&str; 3] = ["PersistentVolume", "ClusterTrustBundle", "Node"];
        let mut object = object.clone();
        let is_namespaced = !object["kind"].as_str().is_some_and(|kind| CLUSTER_SCOPED.contains(&kind));
        if is_namespaced && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!("default");
        }
        self.server.bind(&mut object);
        object
    }

    fn delete(&mut self, title: &str, target: &DeleteTarget) -> Result<Acted, WorldError> {
        let name = PodRef { namespace: target.namespace.clone(), name: target.name.clone() };
        if target.kind == "Pod" && self.remove_file(&name) {
            return Ok(Acted::Done);
        }
        let request = Request::Delete {
            kind: target.kind.as_str().into(),
            namespace: target.namespace.as_str().into(),
            name: target.name.as_str().into(),
            grace_seconds: target.grace_seconds,
            force: target.force,
        };
        self.ask(title, request)
    }

    /// An update of a pod that comes from a file, or one that says so.
    fn replaces_file(&self, object: &Value) -> bool {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
        let name = object["metadata"]["name"].as_str().unwrap_or("").to_owned();
        is_file(object) || (object["kind"] == "Pod" && self.server.is_file(&PodRef { namespace, name }))
    }

    /// A static pod: a manifest file on the node, which needs no API object.
    fn put_file(&mut self, object: &Value) -> Acted {
        let mut manifest = self.addressed(object);
        if let Some(metadata) = manifest["metadata"].as_object_mut() {
            metadata.remove("uid");
        }
        nodefold_k8s::default_pod(&mut manifest);
        let uid = nodefold_core::codec::hash(&manifest.to_string()).0;
        manifest["metadata"]["uid"] = json!(PodUid(uid).to_string());
        manifest["metadata"]["creationTimestamp"] = json!(nodefold_k8s::time::format(self.now()));
        match nodefold_k8s::pod_from_json(&manifest, Source::File) {
            Ok(pod) => {
                self.write_file(pod);
                Acted::Done
            }
            Err(problems) => {
                let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
                Acted::Impossible(format!("this manifest can't be a static pod: {}", told.join("; ")))
            }
        }
    }
}

fn patched(pod: &PodRef, patch: &Value) -> (nodefold_core::ids::Name, nodefold_core::ids::Name, Body) {
    (pod.namespace.as_str().into(), pod.name.as_str().into(), Body::StrategicMerge(patch.clone()))
}

fn is_file(object: &Value) -> bool {
    object["kind"] == "Pod" && object.pointer(SOURCE_ANNOTATION).is_some_and(|source| source == "file")
}
