//! Does what a step of a story says, whoever tells the story: a scenario, the swarm, a shrinker.

use crate::scenario::{Crash, DeleteTarget, PodRef, Verb};
use crate::stage::Stage;
use crate::world::WorldError;
use nodefold_api::{Body, Request, Response};
use nodefold_core::ids::{Name, PodUid, Source};
use nodefold_core::time::{Nanos, Time};
use serde_json::{Value, json};

/// Who makes a story's requests.
const USER: &str = "kubernetes-admin";
/// Says that a manifest is a file on the node: a static pod.
const SOURCE_ANNOTATION: &str = "/metadata/annotations/kubernetes.io~1config.source";
/// How long after faults stopped everything has converged: the longest back-off (5 min) several times over.
const HEALED_AFTER: Nanos = Nanos::secs(1800);

/// What became of it.
pub enum Acted {
    /// It was done.
    Done,
    /// The API answered.
    Answered(Response),
    /// There was nothing to do it to.
    Missed,
    /// It can't be done here.
    Impossible(String),
}

/// Does it. What only a run knows (`settle`, `mark`, `expect`) does nothing here.
pub fn act(stage: &mut dyn Stage, verb: &Verb, title: &str) -> Result<Acted, WorldError> {
    let done = |was: bool| if was { Acted::Done } else { Acted::Missed };
    Ok(match verb {
        Verb::Create(object) if is_file(object) => put_file(stage, object)?,
        Verb::Update(object) if replaces_file(stage, object) => put_file(stage, object)?,
        Verb::Create(object) => {
            let object = sent(stage, object);
            let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("").to_owned();
            let (kind, namespace) = (text("/kind"), text("/metadata/namespace"));
            let uid = stage.server_mut().next_uid(&kind, &namespace, &text("/metadata/name"));
            ask(stage, title, Request::Create { object, uid })?
        }
        Verb::Update(object) => {
            let object = sent(stage, object);
            ask(stage, title, Request::Update { object })?
        }
        Verb::Dynamic(pod, patch) => {
            let (namespace, name, body) = patched(pod, patch);
            ask(stage, title, Request::Dynamic { namespace, name, body })?
        }
        Verb::Resize(pod, patch) => {
            let (namespace, name, body) = patched(pod, patch);
            ask(stage, title, Request::Resize { namespace, name, body })?
        }
        Verb::Ephemeral(pod, patch) => {
            let (namespace, name, body) = patched(pod, patch);
            ask(stage, title, Request::Ephemeral { namespace, name, body })?
        }
        Verb::Status(pod, patch) => {
            let (namespace, name, body) = patched(pod, patch);
            ask(stage, title, Request::PatchStatus { namespace, name, body })?
        }
        Verb::Delete(target) => delete(stage, title, target)?,
        Verb::Advance(time) => {
            let until = stage.now().after(*time);
            stage.pass_until(until)?;
            Acted::Done
        }
        Verb::Exit { pod, container, ending } => done(stage.end_process(pod, container, *ending)?),
        Verb::Crash(Crash::Agent) => {
            stage.crash_agent()?;
            Acted::Done
        }
        Verb::Set(change) => {
            stage.change_node(change)?;
            Acted::Done
        }
        Verb::Step(count) => {
            for _ in 0..*count {
                if !stage.pass_one(Time(u64::MAX))? {
                    return Ok(Acted::Missed);
                }
            }
            Acted::Done
        }
        Verb::Heal => heal(stage)?,
        Verb::Usage { pod, of, bytes } => done(stage.takes_up(pod, of, *bytes)?),
        Verb::Probe { .. }
        | Verb::Hold(_)
        | Verb::Release(_)
        | Verb::Fail(..)
        | Verb::Crash(Crash::Host)
        | Verb::Choose(_)
        | Verb::Fault(_) => return simulate(stage, verb),
        Verb::Settle(_) | Verb::Mark(_) | Verb::Expect(_) => Acted::Done,
    })
}

/// What only a simulated world can do.
fn simulate(stage: &mut dyn Stage, verb: &Verb) -> Result<Acted, WorldError> {
    let Some(world) = stage.simulation() else {
        return Ok(Acted::Impossible(format!("only a simulated world can do `{}`", verb.name())));
    };
    let done = match verb {
        Verb::Probe { pod, container, kind, passes } => world.flip_probe(pod, container, *kind, *passes),
        Verb::Hold(scope) => {
            world.hold(scope.clone());
            true
        }
        Verb::Release(scope) => world.release(scope) > 0,
        Verb::Fail(scope, failure) => {
            world.fail(scope.clone(), failure.clone());
            true
        }
        Verb::Crash(Crash::Host) => {
            world.crash_host();
            true
        }
        Verb::Choose(label) => match world.find_choice(label) {
            Some(choice) => world.step(&choice)?,
            None => false,
        },
        Verb::Fault(fault) => world.inject(fault)?,
        Verb::Create(_)
        | Verb::Update(_)
        | Verb::Dynamic(..)
        | Verb::Resize(..)
        | Verb::Ephemeral(..)
        | Verb::Status(..)
        | Verb::Delete(_)
        | Verb::Advance(_)
        | Verb::Settle(_)
        | Verb::Exit { .. }
        | Verb::Usage { .. }
        | Verb::Crash(Crash::Agent)
        | Verb::Set(_)
        | Verb::Mark(_)
        | Verb::Step(_)
        | Verb::Heal
        | Verb::Expect(_) => false,
    };
    Ok(if done { Acted::Done } else { Acted::Missed })
}

/// Faults stop, what pods refer to appears, and time enough passes for everything to converge.
fn heal(stage: &mut dyn Stage) -> Result<Acted, WorldError> {
    let Some(world) = stage.simulation() else {
        return Ok(Acted::Impossible("only a simulated world can stop its faults".to_owned()));
    };
    world.heal();
    for object in world.missing_objects() {
        act(stage, &Verb::Create(object), "create what is missing")?;
    }
    let until = stage.now().after(HEALED_AFTER);
    stage.pass_until(until)?;
    if let Some(world) = stage.simulation() {
        world.poke()?;
    }
    Ok(Acted::Done)
}

fn ask(stage: &mut dyn Stage, title: &str, request: Request) -> Result<Acted, WorldError> {
    stage.request(USER, title.to_owned(), request).map(Acted::Answered)
}

/// A manifest as a client sends it, and as plugins complete it.
fn sent(stage: &dyn Stage, object: &Value) -> Value {
    let mut object = addressed(stage, object);
    stage.server().give_account(&mut object);
    object
}

/// In a namespace, and bound to the node as the scheduler would have it.
fn addressed(stage: &dyn Stage, object: &Value) -> Value {
    let mut object = object.clone();
    let is_namespaced = !object["kind"].as_str().is_some_and(nodefold_api::is_cluster_scoped);
    if is_namespaced && object["metadata"]["namespace"].is_null() {
        object["metadata"]["namespace"] = json!("default");
    }
    stage.server().bind(&mut object);
    object
}

fn delete(stage: &mut dyn Stage, title: &str, target: &DeleteTarget) -> Result<Acted, WorldError> {
    let name = PodRef { namespace: target.namespace.clone(), name: target.name.clone() };
    if target.kind == "Pod" && !target.mirror && stage.remove_file(&name)? {
        return Ok(Acted::Done);
    }
    let request = Request::Delete {
        kind: target.kind.as_str().into(),
        namespace: target.namespace.as_str().into(),
        name: target.name.as_str().into(),
        grace_seconds: target.grace_seconds,
        force: target.force,
    };
    ask(stage, title, request)
}

/// An update of a pod that comes from a file, or one that says so.
fn replaces_file(stage: &dyn Stage, object: &Value) -> bool {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default").to_owned();
    let name = object["metadata"]["name"].as_str().unwrap_or("").to_owned();
    is_file(object) || (object["kind"] == "Pod" && stage.server().is_file(&PodRef { namespace, name }))
}

/// A static pod: a manifest file on the node, which needs no API object.
fn put_file(stage: &mut dyn Stage, object: &Value) -> Result<Acted, WorldError> {
    let mut manifest = addressed(stage, object);
    if let Some(metadata) = manifest["metadata"].as_object_mut() {
        metadata.remove("uid");
    }
    nodefold_k8s::default_pod(&mut manifest);
    let uid = nodefold_core::codec::hash(&manifest.to_string()).0;
    manifest["metadata"]["uid"] = json!(PodUid(uid).to_string());
    manifest["metadata"]["creationTimestamp"] = json!(nodefold_k8s::time::format(stage.now()));
    match nodefold_k8s::pod_from_json(&manifest, Source::File) {
        Ok(pod) => {
            stage.write_file(pod)?;
            Ok(Acted::Done)
        }
        Err(problems) => {
            let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Ok(Acted::Impossible(format!("this manifest can't be a static pod: {}", told.join("; "))))
        }
    }
}

fn patched(pod: &PodRef, patch: &Value) -> (Name, Name, Body) {
    (pod.namespace.as_str().into(), pod.name.as_str().into(), Body::StrategicMerge(patch.clone()))
}

fn is_file(object: &Value) -> bool {
    object["kind"] == "Pod" && object.pointer(SOURCE_ANNOTATION).is_some_and(|source| source == "file")
}
