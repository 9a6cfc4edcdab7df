//! Ownership and server-side apply, as stories of managers.
#![allow(clippy::unwrap_used)]

use super::*;
use serde_json::json;

fn manager(name: &str) -> Manager {
    Manager(name.to_owned())
}

fn pod(containers: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": containers}})
}

fn apply(old: &Value, config: Value, by: &str, force: bool) -> Result<Value, super::super::failure::Failure> {
    applied("Pod", "", old, config, &manager(by), force, Time(0))
}

fn new(config: Value, by: &str) -> Value {
    let mut config = config;
    applied_new("Pod", &mut config, &manager(by), Time(0));
    config
}

#[test]
fn the_encoding_is_kubernetes_own() {
    let made = new(pod(json!([{"name": "app", "image": "a", "ports": [{"containerPort": 80}]}])), "kubectl");
    let entry = &made["metadata"]["managedFields"][0];
    let expected = json!({"f:spec": {"f:containers": {"k:{\"name\":\"app\"}": {
        ".": {}, "f:image": {}, "f:name": {},
        "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}});
    assert_eq!(entry["fieldsV1"], expected);
    assert_eq!((&entry["manager"], &entry["operation"]), (&json!("kubectl"), &json!("Apply")));
    assert_eq!(to_json(&fields::from_json(&expected)), expected);
}

#[test]
fn two_managers_own_a_container_each_and_each_takes_its_own_away() {
    let first = new(pod(json!([{"name": "app", "image": "a"}])), "one");
    let both = apply(&first, pod(json!([{"name": "tool", "image": "t"}])), "two", false).unwrap();
    assert_eq!(both["spec"]["containers"].as_array().unwrap().len(), 2);
    let mut nothing = pod(json!([]));
    nothing.as_object_mut().unwrap().shift_remove("spec");
    let left = apply(&both, nothing, "two", false).unwrap();
    assert_eq!(left["spec"]["containers"], json!([{"name": "app", "image": "a"}]));
    assert_eq!(left["metadata"]["managedFields"].as_array().unwrap().len(), 1);
}

#[test]
fn anothers_field_is_a_conflict_unless_forced_and_then_it_changes_hands() {
    let first = new(pod(json!([{"name": "app", "image": "a"}])), "one");
    let wanted = pod(json!([{"name": "app", "image": "b"}]));
    let refused = apply(&first, wanted.clone(), "two", false).unwrap_err();
    assert_eq!(refused.code, 409);
    let told = "Apply failed with 1 conflict: conflict with \"one\": .spec.containers[name=\"app\"].image";
    assert_eq!(refused.message(), told);
    let taken = apply(&first, wanted, "two", true).unwrap();
    assert_eq!(taken["spec"]["containers"][0]["image"], "b");
    let again = apply(&taken, pod(json!([{"name": "app", "image": "a"}])), "one", false).unwrap_err();
    assert!(again.message().contains("conflict with \"two\""), "{}", again.message());
}

#[test]
fn what_a_patch_touches_is_the_patchers() {
    let first = new(pod(json!([{"name": "app", "image": "a"}])), "one");
    let mut patched = first.clone();
    patched["spec"]["containers"][0]["image"] = json!("b");
    updated("Pod", "", &first, &mut patched, &manager("kubectl-patch"), Time(0));
    let refused = apply(&patched, pod(json!([{"name": "app", "image": "a"}])), "one", false).unwrap_err();
    assert!(refused.message().contains("conflict with \"kubectl-patch\" using v1"), "{}", refused.message());
}

#[test]
fn what_two_want_stays_when_one_wants_it_no_more() {
    let config = || {
        let mut config = pod(json!([{"name": "app", "image": "a"}]));
        config["metadata"]["labels"] = json!({"tier": "front"});
        config
    };
    let first = new(config(), "one");
    let shared = apply(&first, config(), "two", false).unwrap();
    let one_less = apply(&shared, pod(json!([{"name": "app", "image": "a"}])), "one", false).unwrap();
    assert_eq!(one_less["metadata"]["labels"], json!({"tier": "front"}));
    let none = apply(&one_less, pod(json!([{"name": "app", "image": "a"}])), "two", false).unwrap();
    assert_eq!(none["metadata"]["labels"], Value::Null);
}

#[test]
fn the_same_again_changes_nothing() {
    let config = pod(json!([{"name": "app", "image": "a"}]));
    let first = new(config.clone(), "one");
    let again = applied("Pod", "", &first, config, &manager("one"), false, Time(5_000_000_000)).unwrap();
    assert_eq!(again, first);
}
