//! Does one step.

use super::expect::{self, Answered, Miss};
use super::{Run, Trouble};
use crate::scenario::{Crash, DeleteTarget, PodRef, Step, Used, Verb};
use crate::world::{Scope, World};
use nodefold_api::{Body, Request};
use nodefold_core::ids::{PodUid, Source};
use nodefold_core::time::Nanos;
use serde_json::{Value, json};

/// Who makes a scenario's requests.
const USER: &str = "kubernetes-admin";
/// A world that has not settled by then never will.
const LONGEST_SETTLE: Nanos = Nanos::secs(3600);
/// Says that a manifest is a file on the node: a static pod.
const SOURCE_ANNOTATION: &str = "/metadata/annotations/kubernetes.io~1config.source";

impl Run<'_> {
    pub(super) fn perform(&mut self, step: &Step) -> Result<(), Trouble> {
        let line = step.line;
        match &step.verb {
            Verb::Create(object) if is_file(object) => self.write_file(object),
            Verb::Update(object) if self.replaces_file(object) => self.write_file(object),
            Verb::Create(object) => self.create(line, &step.title, object),
            Verb::Update(object) => {
                let object = self.addressed(object);
                self.request(line, &step.title, Request::Update { object })
            }
            Verb::Dynamic(pod, patch) => {
                let (namespace, name) = (pod.namespace.as_str().into(), pod.name.as_str().into());
                let body = Body::StrategicMerge(patch.clone());
                self.request(line, &step.title, Request::Dynamic { namespace, name, body })
            }
            Verb::Resize(pod, patch) => {
                let (namespace, name) = (pod.namespace.as_str().into(), pod.name.as_str().into());
                let body = Body::StrategicMerge(patch.clone());
                self.request(line, &step.title, Request::Resize { namespace, name, body })
            }
            Verb::Ephemeral(pod, patch) => {
                let (namespace, name) = (pod.namespace.as_str().into(), pod.name.as_str().into());
                let body = Body::StrategicMerge(patch.clone());
                self.request(line, &step.title, Request::Ephemeral { namespace, name, body })
            }
            Verb::Status(pod, patch) => {
                let (namespace, name) = (pod.namespace.as_str().into(), pod.name.as_str().into());
                let body = Body::StrategicMerge(patch.clone());
                self.request(line, &step.title, Request::PatchStatus { namespace, name, body })
            }
            Verb::Delete(target) => self.delete(line, &step.title, target),
            Verb::Advance(time) => {
                let until = self.stage.now().after(*time);
                Ok(self.stage.pass_until(until)?)
            }
            Verb::Settle(within) => self.settle(*within),
            Verb::Exit { pod, container, ending } => {
                if self.stage.end_process(pod, container, *ending)? {
                    return Ok(());
                }
                Err(self.no_process(pod, container, "a running process to end"))
            }
            Verb::Probe { pod, container, kind, passes } => {
                if self.simulation(step)?.flip_probe(pod, container, *kind, *passes) {
                    return Ok(());
                }
                Err(self.no_process(pod, container, "a running process to probe"))
            }
            Verb::Usage { pod, of, bytes } => {
                if self.simulation(step)?.takes_up(pod, of, *bytes) {
                    return Ok(());
                }
                Err(self.nothing_there(pod, of))
            }
            Verb::Hold(scope) => {
                self.simulation(step)?.hold(scope.clone());
                Ok(())
            }
            Verb::Release(scope) => self.release(step, scope),
            Verb::Fail(scope, failure) => {
                self.simulation(step)?.fail(scope.clone(), failure.clone());
                Ok(())
            }
            Verb::Crash(Crash::Agent) => Ok(self.stage.crash_agent()?),
            Verb::Crash(Crash::Host) => {
                self.simulation(step)?.crash_host();
                Ok(())
            }
            Verb::Set(change) => Ok(self.stage.change_node(change)?),
            Verb::Mark(name) => {
                let moment = self.moment();
                self.story.mark(name, moment);
                Ok(())
            }
            Verb::Expect(expectation) => {
                for check in &expectation.checks {
                    expect::check(check, self.stage, &self.story, self.last.as_ref())?;
                }
                Ok(())
            }
        }
    }

    /// Runs until nothing is in flight and nothing is due within the time.
    pub(super) fn settle(&mut self, within: Nanos) -> Result<(), Trouble> {
        let last_moment = self.stage.now().after(LONGEST_SETTLE);
        loop {
            let waiting = self.stage.unsettled(within);
            if waiting.is_empty() || !self.story.violations.is_empty() {
                return Ok(());
            }
            if !self.stage.pass_one(last_moment)? {
                let held = self.stage.holds();
                return Err(Trouble::Miss(Miss {
                    expected: format!("nothing in flight and nothing due within {within}"),
                    actual: format!("after one hour still waiting for: {}", waiting.join(", ")),
                    explanation: if held.is_empty() {
                        String::new()
                    } else {
                        format!("held: {}", held.join(", "))
                    },
                }));
            }
            self.tell_records();
        }
    }

    fn create(&mut self, line: usize, title: &str, object: &Value) -> Result<(), Trouble> {
        let object = self.addressed(object);
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
        let (kind, namespace, name) = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        let uid = self.stage.server_mut().next_uid(&kind, &namespace, &name);
        self.request(line, title, Request::Create { object, uid })
    }

    /// A manifest as a client sends it: in a namespace, and bound to the node as the scheduler would have it.
    fn addressed(&self, object: &Value) -> Value {
        const CLUSTER_SCOPED: [&str; 3] = ["PersistentVolume", "ClusterTrustBundle", "Node"];
        let mut object = object.clone();
        let is_namespaced = !object["kind"].as_str().is_some_and(|kind| CLUSTER_SCOPED.contains(&kind));
        if is_namespaced && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!("default");
        }
        self.stage.server().bind(&mut object);
        object
    }

    fn request(&mut self, line: usize, title: &str, request: Request) -> Result<(), Trouble> {
        let response = self.stage.request(USER, title.to_owned(), request)?;
        self.last = Some(Answered { line, what: title.to_owned(), response });
        Ok(())
    }

    fn delete(&mut self, line: usize, title: &str, target: &DeleteTarget) -> Result<(), Trouble> {
        let name = PodRef { namespace: target.namespace.clone(), name: target.name.clone() };
        if target.kind == "Pod" && !target.mirror && self.stage.remove_file(&name)? {
            return Ok(());
        }
        let request = Request::Delete {
            kind: target.kind.as_str().into(),
            namespace: target.namespace.as_str().into(),
            name: target.name.as_str().into(),
            grace_seconds: target.grace_seconds,
            force: target.force,
        };
        self.request(line, title, request)
    }

    /// An update of a pod that comes from a file, or one that says so.
    fn replaces_file(&self, object: &Value) -> bool {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
        let name = object["metadata"]["name"].as_str().unwrap_or("").to_owned();
        is_file(object)
            || (object["kind"] == "Pod" && self.stage.server().is_file(&PodRef { namespace, name }))
    }

    /// A static pod: a manifest file on the node, which needs no API object.
    fn write_file(&mut self, object: &Value) -> Result<(), Trouble> {
        let mut manifest = self.addressed(object);
        if let Some(metadata) = manifest["metadata"].as_object_mut() {
            metadata.remove("uid");
        }
        nodefold_k8s::default_pod(&mut manifest);
        let uid = nodefold_core::codec::hash(&manifest.to_string()).0;
        manifest["metadata"]["uid"] = json!(PodUid(uid).to_string());
        manifest["metadata"]["creationTimestamp"] = json!(nodefold_k8s::time::format(self.stage.now()));
        let pod = nodefold_k8s::pod_from_json(&manifest, Source::File).map_err(|problems| {
            let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Trouble::Unusable(format!("this manifest can't be a static pod: {}", told.join("; ")))
        })?;
        Ok(self.stage.write_file(pod)?)
    }

    /// The simulated world, or why a step can't be done on a real host.
    fn simulation(&mut self, step: &Step) -> Result<&mut World, Trouble> {
        let verb = step.verb.name();
        self.stage
            .simulation()
            .ok_or_else(|| Trouble::Unusable(format!("only a simulated world can do `{verb}`")))
    }

    fn release(&mut self, step: &Step, scope: &Scope) -> Result<(), Trouble> {
        if self.simulation(step)?.release(scope) > 0 {
            return Ok(());
        }
        Err(Trouble::Miss(Miss {
            expected: format!("something held to release: {scope}"),
            actual: format!("held: [{}]", self.stage.holds().join(", ")),
            explanation: "a release ends the holds (or failures) within its scope; there are none".into(),
        }))
    }

    fn nothing_there(&self, pod: &PodRef, of: &Used) -> Trouble {
        let left = self.stage.server().uid(pod).map(|uid| self.stage.left_of(uid)).unwrap_or_default();
        Trouble::Miss(Miss {
            expected: format!("on the host: {of} of {pod}"),
            actual: format!("on the node for that pod: [{}]", left.join(", ")),
            explanation: "what is not there takes up nothing".into(),
        })
    }

    fn no_process(&self, pod: &PodRef, container: &str, wanted: &str) -> Trouble {
        let uid = self.stage.server().uid(pod);
        let actual = match uid {
            None => format!("there never was a pod {pod}"),
            Some(uid) => match self.stage.instance(uid, container) {
                Some(instance) => format!("the newest instance, {instance}, does not run"),
                None => format!("no container {container} was ever created in {pod}"),
            },
        };
        let left = uid.map(|uid| self.stage.left_of(uid)).unwrap_or_default();
        Trouble::Miss(Miss {
            expected: format!("{wanted}: {container} of {pod}"),
            actual,
            explanation: format!("on the node for that pod: [{}]", left.join(", ")),
        })
    }
}

fn is_file(object: &Value) -> bool {
    object["kind"] == "Pod" && object.pointer(SOURCE_ANNOTATION).is_some_and(|source| source == "file")
}
