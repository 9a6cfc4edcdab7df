//! The acceptance tests of api-side §8 that need no server and stand nowhere else. The others: 1 is `rules/`, 2
//! `admission/coverage*.rs`, 3 `admission/pod_security.rs`, 5 `authorization.rs`, 6 `admission/plugins.rs` and `rejections.rs`; 7, 8
//! and 9 are a server's.

mod support;

use nodefold_api::{Api, ApiConfig, ApiEvent};
use serde_json::{Value, json};
use support::{World, causes, code, pod, running};

const DUPLICATE: &str = "FieldValueDuplicate";

fn added(name: &str, image: &str) -> Value {
    json!({"spec": {"containers": [{"name": name, "image": image}]}})
}

fn removed(name: &str) -> Value {
    json!({"spec": {"containers": [{"name": name, "$patch": "delete"}]}})
}

fn world() -> World {
    let mut world = World::new(ApiConfig::default());
    assert_eq!(code(&world.create(pod(json!({"containers": [{"name": "app", "image": "i:1"}]})))), 201);
    world.report_running();
    world
}

/// 4. The race of C5: the node may run the first `x` though no status says so yet.
#[test]
fn a_name_added_removed_and_added_again_waits_for_the_node() {
    let mut world = world();
    let before = running(&world.pod());
    assert_eq!(code(&world.dynamic(added("x", "i:1"))), 200);
    assert_eq!(code(&world.dynamic(removed("x"))), 200);
    let again = |world: &mut World| world.dynamic(added("x", "i:2"));
    let refused = again(&mut world);
    assert_eq!(code(&refused), 422);
    assert_eq!(causes(&refused), [("spec.containers[0].name".to_owned(), DUPLICATE)]);
    assert_eq!(&*refused.causes()[0].rule, "C5");
    let with = |generation: u64, x: Option<Value>| {
        let mut status = before.clone();
        status["observedGeneration"] = json!(generation);
        let statuses = status["containerStatuses"].as_array_mut().expect("a list");
        statuses.extend(x.map(|state| json!({"name": "x", "resources": {}, "state": state})));
        status
    };
    // It saw the addition only.
    assert!(world.status(with(2, Some(json!({"running": {}})))).is_ok());
    assert_eq!(code(&again(&mut world)), 422);
    // It saw the removal, and is still stopping it; then it has stopped, and the status is kept.
    for state in [json!({"running": {}}), json!({"terminated": {"exitCode": 0}})] {
        assert!(world.status(with(3, Some(state))).is_ok());
        let refused = again(&mut world);
        assert_eq!(code(&refused), 422);
        assert_eq!(&*refused.causes()[0].rule, "C4");
    }
    assert!(world.status(with(3, None)).is_ok());
    assert_eq!(code(&again(&mut world)), 200);
}

/// 10. Names held and the last ten statuses are there again after a restart, from the log's bytes.
#[test]
fn a_restart_forgets_nothing() {
    let mut world = world();
    assert_eq!(code(&world.dynamic(added("x", "i:1"))), 200);
    let mut status = running(&world.pod());
    let statuses = status["containerStatuses"].as_array_mut().expect("a list");
    for i in 0..10 {
        statuses.push(json!({"name": format!("old-{i}"), "state": {"terminated": {"exitCode": i}}}));
    }
    assert!(world.status(status).is_ok());
    assert_eq!(code(&world.dynamic(removed("x"))), 200);

    let mut restarted = Api::new(ApiConfig::default());
    for event in &world.log {
        let read = ApiEvent::from_bytes(&event.to_bytes()).expect("its own bytes");
        restarted.apply(&read);
    }
    assert_eq!(restarted.digest(), world.api.digest());
    let mut after = World { api: restarted, ..world };
    let statuses = after.pod()["status"]["containerStatuses"].as_array().map(Vec::len);
    assert_eq!(statuses, Some(12));
    for (name, rule) in [("x", "C4"), ("old-9", "C4")] {
        let refused = after.dynamic(added(name, "i:2"));
        assert_eq!(&*refused.causes()[0].rule, rule, "{name}");
    }
    let mut forgotten = running(&after.pod());
    forgotten["observedGeneration"] = json!(2);
    assert!(after.status(forgotten).is_ok());
    assert_eq!(&*after.dynamic(added("x", "i:2")).causes()[0].rule, "C5", "held though no status bears it");
}
