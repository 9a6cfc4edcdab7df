//! The node's status writes: what the server keeps, and what S41 and S42 forbid.

mod support;

use nodefold_api::{ApiConfig, Request};
use nodefold_core::ids::PodUid;
use serde_json::{Value, json};
use support::{World, causes, code, pod, running};

fn world() -> World {
    let mut world = World::new(ApiConfig::default());
    assert_eq!(code(&world.create(pod(json!({"containers": [{"name": "app", "image": "i:1"}]})))), 201);
    world
}

#[test]
fn a_status_write_replaces_the_status_and_nothing_else() {
    let mut world = world();
    world.report_running();
    let stored = world.pod();
    assert_eq!(stored["status"]["phase"], "Running");
    assert_eq!(stored["status"]["qosClass"], "BestEffort", "kept though the write didn't say it");
    assert_eq!(stored["metadata"]["generation"], 1);
    let other = Request::Status {
        namespace: "default".into(),
        name: "web".into(),
        uid: PodUid(1),
        status: json!({"phase": "Failed"}),
    };
    assert_eq!(code(&world.ask(other)), 409, "another pod's status");
    assert_eq!(world.pod(), stored);
}

#[test]
fn an_observed_generation_that_is_not_stated_stays() {
    let mut world = world();
    let mut status = running(&world.pod());
    status["conditions"][0]["observedGeneration"] = json!(1);
    assert!(world.status(status.clone()).is_ok());
    status["observedGeneration"] = json!(0);
    status["conditions"][0]["observedGeneration"] = json!(0);
    assert!(world.status(status).is_ok());
    assert_eq!(world.pod()["status"]["observedGeneration"], 1);
    assert_eq!(world.pod()["status"]["conditions"][0]["observedGeneration"], 1);
}

#[test]
fn what_a_status_write_may_not_change() {
    let mut world = world();
    world.report_running();
    let mut status = running(&world.pod());
    status["qosClass"] = json!("Burstable");
    assert_eq!(causes(&world.status(status)), [("status.qosClass".to_owned(), "FieldValueInvalid")], "S42");
    let mut status = running(&world.pod());
    status["phase"] = json!("Succeeded");
    assert!(world.status(status.clone()).is_ok());
    status["phase"] = json!("Running");
    assert_eq!(causes(&world.status(status.clone())), [("status.phase".to_owned(), "FieldValueInvalid")]);
    status["phase"] = json!("Failed");
    assert!(!world.status(status).is_ok(), "one terminal phase for another");
}

#[test]
fn a_container_that_ended_comes_back_only_if_its_policy_says_so() {
    let again = json!({"running": {"startedAt": "2026-11-30T00:00:00Z"}});
    let ended = |code: i64| json!({"terminated": {"exitCode": code}});
    let rule = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [3]}}]);
    struct Row {
        what: &'static str,
        pod_policy: &'static str,
        own: Value,
        code: i64,
        other_image: bool,
        may: bool,
    }
    let row = |what, pod_policy, own: &Value, code, may| Row {
        what,
        pod_policy,
        own: own.clone(),
        code,
        other_image: false,
        may,
    };
    let none = json!({});
    let rows = [
        row("Always", "Always", &none, 0, true),
        row("OnFailure, failed", "OnFailure", &none, 1, true),
        row("OnFailure, succeeded", "OnFailure", &none, 0, false),
        row("Never", "Never", &none, 1, false),
        row("its own Always in a pod of Never", "Never", &json!({"restartPolicy": "Always"}), 0, true),
        row("a rule", "Never", &json!({"restartPolicy": "Never", "restartPolicyRules": rule}), 3, true),
        row(
            "a rule for another code",
            "Never",
            &json!({"restartPolicy": "Never", "restartPolicyRules": rule}),
            4,
            false,
        ),
        Row { other_image: true, ..row("another definition", "Never", &none, 1, true) },
    ];
    for row in rows {
        let mut world = World::new(ApiConfig::default());
        let mut container = json!({"name": "app", "image": "i"});
        for (key, value) in row.own.as_object().into_iter().flatten() {
            container[key] = value.clone();
        }
        let created = world.create(pod(json!({"containers": [container], "restartPolicy": row.pod_policy})));
        assert!(created.is_ok(), "{}: {created:?}", row.what);
        let mut status = running(&world.pod());
        status["containerStatuses"][0]["state"] = ended(row.code);
        assert!(world.status(status.clone()).is_ok());
        status["containerStatuses"][0]["state"] = again.clone();
        if row.other_image {
            status["containerStatuses"][0]["image"] = json!("i:2");
        }
        let expected: &[(String, &str)] = if row.may {
            &[]
        } else {
            &[("status.containerStatuses[0].state".to_owned(), "FieldValueForbidden")]
        };
        assert_eq!(causes(&world.status(status)), expected, "S41: {}", row.what);
    }
}

#[test]
fn a_removed_container_comes_back_only_while_its_removal_is_not_carried_out() {
    let mut world = World::new(ApiConfig::default());
    let two = json!({"containers": [{"name": "app", "image": "i"}, {"name": "b", "image": "i"}]});
    assert!(world.create(pod(two)).is_ok());
    let mut ended = running(&world.pod());
    ended["containerStatuses"][1]["state"] = json!({"terminated": {"exitCode": 1}});
    assert!(world.status(ended.clone()).is_ok());
    assert!(world.dynamic(json!({"spec": {"containers": [{"name": "b", "$patch": "delete"}]}})).is_ok());
    let mut again = ended.clone();
    again["containerStatuses"][1]["state"] = json!({"running": {}});
    assert!(world.status(again.clone()).is_ok(), "the node hasn't seen the removal");
    assert!(world.status(ended.clone()).is_ok());
    again["observedGeneration"] = json!(2);
    let mut deferred = again.clone();
    deferred["conditions"] = json!([{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]);
    assert!(world.status(deferred).is_ok(), "seen, but deferred");
    ended["observedGeneration"] = json!(2);
    assert!(world.status(ended).is_ok());
    assert!(!world.status(again).is_ok(), "removed for good");
}
