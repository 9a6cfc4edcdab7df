//! The same events make the same objects and digests, also through their bytes, and sealed ones too.

mod support;

use nodefold_api::{Api, ApiConfig, ApiEvent, Request};
use nodefold_core::ids::PodUid;
use nodefold_core::node::Digest;
use serde_json::{Value, json};
use support::{UID, World, pod};

/// A story that touches every kind of request, with the digest after each.
fn story() -> (World, Vec<Digest>) {
    let mut world = World::new(ApiConfig::default());
    let secret = |value: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": value}}, "stringData": {"token": value}})
    };
    world.create_as(secret("hunter2"), PodUid(9));
    world.create_as(secret("again"), PodUid(10));
    world.create(pod(json!({"containers": [{"name": "app", "image": "i:1"}]})));
    world.report_running();
    world.dynamic(json!({"spec": {"containers": [{"name": "x", "image": "i"}]}}));
    world.dynamic(json!({"spec": {"containers": [{"name": "x", "$patch": "delete"}]}}));
    world.dynamic(json!({"spec": {"containers": [{"name": "x", "image": "i"}]}}));
    world.advance_secs(5);
    world.update(secret("hunter2"));
    world.update(secret("hunter3"));
    world.update(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "data": {"token": "not base64"}}));
    world.update(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"token": 7}}),
    );
    world.resize(json!({"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1"}}}]}}));
    world.ephemeral(json!({"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}}));
    world.gates(true, false);
    let whole = world.pod();
    world.dynamic_whole(whole);
    world.delete(Some(3));
    world.ask(Request::Release { uid: UID });
    let digests = digests(&world.log);
    assert_eq!(digests.last(), Some(&world.api.digest()));
    (world, digests)
}

fn digests(log: &[ApiEvent]) -> Vec<Digest> {
    let mut api = Api::new(ApiConfig::default());
    log.iter()
        .map(|event| {
            api.apply(event);
            api.digest()
        })
        .collect()
}

#[test]
fn the_same_events_make_the_same_answers_objects_and_digests() {
    let (world, _) = story();
    let (mut one, mut two) = (Api::new(ApiConfig::default()), Api::new(ApiConfig::default()));
    for event in &world.log {
        let bytes = event.to_bytes();
        let read = ApiEvent::from_bytes(&bytes).expect("what was written can be read");
        assert_eq!(&read, event);
        assert_eq!(one.apply(event), two.apply(&read));
        assert_eq!(one.digest(), two.digest());
    }
    for kind in ["Pod", "Secret"] {
        let of = |api: &Api| api.list(kind).map(|o| Value::clone(o)).collect::<Vec<_>>();
        assert_eq!(of(&one), of(&two));
        assert_eq!(of(&one), of(&world.api));
    }
}

#[test]
fn each_accepted_change_moves_the_digest_and_each_refusal_leaves_it() {
    let (world, digests) = story();
    let mut api = Api::new(ApiConfig::default());
    let mut before = (api.digest(), api.resource_version(), api.gates());
    for (event, digest) in world.log.iter().zip(digests) {
        let answer = api.apply(event);
        let after = (digest, api.resource_version(), api.gates());
        assert_eq!(before.0 == after.0, before.1 == after.1 && before.2 == after.2, "{event:?}: {answer:?}");
        before = after;
    }
}

#[test]
fn a_held_name_is_part_of_the_state() {
    let (world, _) = story();
    let mut with = Api::new(ApiConfig::default());
    for event in &world.log[..6] {
        with.apply(event);
    }
    let mut without = with.clone();
    // The same objects come about without an add and a removal in between only by the holds.
    let status = |generation: u64| {
        let mut status = with.get("Pod", "default", "web").expect("stored")["status"].clone();
        status["observedGeneration"] = json!(generation);
        let (namespace, name) = ("default".into(), "web".into());
        ApiEvent::new(world.now, Request::Status { namespace, name, uid: UID, status }, "node")
    };
    let (seen, unseen) = (status(3), status(1));
    without.apply(&seen);
    without.apply(&unseen);
    let mut twice = with.clone();
    twice.apply(&status(2));
    twice.apply(&unseen);
    assert_eq!(twice.get("Pod", "default", "web"), without.get("Pod", "default", "web"));
    assert_ne!(twice.digest(), without.digest());
}

#[test]
fn sealed_events_fold_to_the_same_digests_and_hold_no_secret() {
    let (world, digests) = story();
    let key = [7; 32];
    let sealed: Vec<ApiEvent> = world.log.iter().map(|e| e.sealed(&key).into_owned()).collect();
    assert_eq!(self::digests(&sealed), digests);
    for event in &sealed {
        let text = String::from_utf8(event.to_bytes()).expect("JSON");
        for secret in ["hunter", "aHVudGVy", "not base64", "again"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    assert_ne!(sealed[0], *world.log[0].sealed(&[8; 32]), "digests of values are keyed");
}

#[test]
fn bytes_that_are_no_event_are_refused() {
    for bytes in [&b""[..], b"{}", b"null", b"{\"at\":0}", &[0xff; 40], &b"[".repeat(100_000)] {
        assert!(ApiEvent::from_bytes(bytes).is_err());
    }
}
