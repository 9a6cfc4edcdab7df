//! Requests on a stored pod, arbitrary ones and ones that look right: `/dynamic`, `/resize`, `/ephemeralcontainers`, updates,
//! statuses, deletions. Never a panic; a refusal changes nothing; S16 holds; what is accepted, the node can be given.

use super::choices::Bytes;
use super::json::{any, changed, word};
use super::support::running;
use nodefold_api::{ApiEvent, Body, Request, Response};
use nodefold_core::config::FeatureGates;
use nodefold_core::time::{Nanos, Time};
use nodefold_harness::scenario::PodRef;
use nodefold_harness::swarm::{Chance, Profile, manifest, users};
use nodefold_harness::world::Server;
use serde_json::{Value, json};

const REQUESTS_MAX: usize = 40;

/// Asks as the bytes say, and once more from the events' own bytes: the same is stored.
pub fn dynamic_request(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let profile = Profile::draw(&mut bytes, &[], &[]);
    let mut server = Server::new("node".into(), FeatureGates::default());
    let mut now = Time(1_796_000_000_000_000_000);
    let mut log = Vec::new();
    while log.is_empty() || (!bytes.is_spent() && log.len() < REQUESTS_MAX) {
        now = now.after(Nanos::millis(bytes.below(3000)));
        let event = ApiEvent::new(now, request(&mut bytes, &profile, &mut server), "fuzz");
        log.push(event.to_bytes());
        ask(&mut server, &event);
    }
    let mut again = Server::new("node".into(), FeatureGates::default());
    for event in &log {
        let event = ApiEvent::from_bytes(event).expect("what an event wrote of itself");
        again.request(&event, false);
    }
    assert_eq!(again.digest(), server.digest(), "the same requests make the same objects");
}

fn ask(server: &mut Server, event: &ApiEvent) {
    let before = server.digest();
    let (response, stirred) = server.request(event, false);
    assert!(stirred.wrong.is_none(), "S16: {:?}\n{:?}\n{response:?}", stirred.wrong, event.request);
    assert!(stirred.undeliverable.is_none(), "{:?}\n{:?}", stirred.undeliverable, event.request);
    if let Response::Rejected(status) = &response {
        assert_eq!(server.digest(), before, "a refusal changes nothing: {status:?}");
        assert!((400..600).contains(&status.code) && !status.message.is_empty(), "{status:?}");
    }
}

fn web() -> PodRef {
    PodRef { namespace: "default".into(), name: "web".into() }
}

fn request(bytes: &mut Bytes<'_>, profile: &Profile, server: &mut Server) -> Request {
    let name = web();
    let Some(pod) = server.pod(&name).cloned() else { return create(bytes, profile, server) };
    let (namespace, name) = (name.namespace.as_str().into(), name.name.as_str().into());
    match bytes.below(20) {
        0..=8 => Request::Dynamic { namespace, name, body: body(bytes, profile, &pod) },
        9..=10 => Request::Resize { namespace, name, body: body(bytes, profile, &pod) },
        11..=12 => Request::Ephemeral { namespace, name, body: body(bytes, profile, &pod) },
        13 => Request::Update { object: changed(bytes, &pod) },
        14..=15 => {
            let uid = nodefold_k8s::pod_uid(pod["metadata"]["uid"].as_str().unwrap_or(""));
            let status = running(&pod);
            let status = if bytes.once_in(1, 4) { changed(bytes, &status) } else { status };
            Request::Status { namespace, name, uid, status }
        }
        16 => Request::PatchStatus { namespace, name, body: body(bytes, profile, &pod) },
        17 => {
            let grace_seconds = bytes.once_in(1, 2).then(|| bytes.number());
            Request::Delete { kind: "Pod".into(), namespace, name, grace_seconds, force: bytes.once_in(1, 4) }
        }
        18 => Request::NodeGates(FeatureGates {
            dynamic_containers: !bytes.once_in(1, 4),
            dynamic_volumes: !bytes.once_in(1, 2),
        }),
        _ => create(bytes, profile, server),
    }
}

fn create(bytes: &mut Bytes<'_>, profile: &Profile, server: &mut Server) -> Request {
    let mut object = manifest::pod(bytes, &profile.features, "web", false);
    server.bind(&mut object);
    let object = if bytes.once_in(1, 6) { changed(bytes, &object) } else { object };
    Request::Create { object, uid: server.next_uid("Pod", "default", "web") }
}

fn body(bytes: &mut Bytes<'_>, profile: &Profile, pod: &Value) -> Body {
    match bytes.below(9) {
        0..=2 => Body::StrategicMerge(users::dynamic(bytes, profile, pod)),
        3 => {
            let patch = users::dynamic(bytes, profile, pod);
            Body::StrategicMerge(changed(bytes, &patch))
        }
        4 => Body::Full(changed(bytes, pod)),
        5 => Body::StrategicMerge(json!({"spec": any(bytes)})),
        6 => Body::Merge(any(bytes)),
        7 => Body::JsonPatch((0..bytes.below(4)).map(|_| operation(bytes)).collect()),
        _ => Body::StrategicMerge(any(bytes)),
    }
}

fn operation(bytes: &mut Bytes<'_>) -> Value {
    let op = bytes.one_of(&["add", "replace", "remove", "copy", "move", "test"]);
    let mut path = || {
        (0..bytes.below(5)).fold(String::new(), |path, _| match bytes.below(3) {
            0 => format!("{path}/{}", bytes.number()),
            1 => format!("{path}/-"),
            _ => format!("{path}/{}", word(bytes)),
        })
    };
    let (path, from) = (path(), path());
    json!({"op": op, "path": path, "from": from, "value": any(bytes)})
}
