//! A pod's way through the API: created, changed, reported on, deleted, released. Versions, generations and
//! what the watch tells.

mod support;

use nodefold_api::{ApiConfig, ChangeType, Request, Response, StatusReason};
use nodefold_core::ids::PodUid;
use serde_json::{Value, json};
use support::{UID, World, causes, code, pod, running};

fn world() -> World {
    let mut world = World::new(ApiConfig::default());
    assert_eq!(code(&world.create(pod(json!({"containers": [{"name": "app", "image": "i:1"}]})))), 201);
    world
}

fn generation(world: &World) -> u64 {
    world.pod()["metadata"]["generation"].as_u64().unwrap_or(0)
}

fn changes(world: &World, from: u64) -> Vec<(u64, ChangeType)> {
    let changes = world.api.watch_from(from).map(|c| c.map(|c| (c.resource_version, c.change)).collect());
    changes.unwrap_or_default()
}

#[test]
fn a_new_pod_has_what_the_server_gives_it() {
    let world = world();
    let stored = world.pod();
    let metadata = &stored["metadata"];
    assert_eq!(metadata["uid"], json!(UID.to_string()));
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["generation"], 1);
    assert_eq!(metadata["resourceVersion"], "1");
    assert_eq!(metadata["creationTimestamp"], "2026-11-30T00:53:20Z");
    assert_eq!(stored["spec"]["nodeName"], "node");
    assert_eq!(stored["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
    assert_eq!(stored["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
}

#[test]
fn what_a_new_pod_may_not_be() {
    let c = || json!({"name": "a", "image": "i"});
    let rows: Vec<(Value, &[(&str, &str)])> = vec![
        (json!({"containers": []}), &[("spec.containers", "FieldValueRequired")]),
        (json!({"containers": [c(), c()]}), &[("spec.containers[1].name", "FieldValueDuplicate")]),
        (
            json!({"containers": [c()], "initContainers": [c()]}),
            &[("spec.initContainers[0].name", "FieldValueDuplicate")],
        ),
        (
            json!({"containers": [{"name": "A", "image": "i"}]}),
            &[("spec.containers[0].name", "FieldValueInvalid")],
        ),
        (json!({"containers": [{"image": "i"}]}), &[("spec.containers[0].name", "FieldValueRequired")]),
        (
            json!({"containers": [c()], "volumes": [{"name": "v", "emptyDir": {}}, {"name": "v",
                "emptyDir": {}}]}),
            &[("spec.volumes[1].name", "FieldValueDuplicate")],
        ),
        (
            json!({"containers": [{"name": "a", "image": "", "volumeMounts": [{"name": "v",
                "mountPath": "/v"}]}]}),
            &[
                ("spec.containers[0].image", "FieldValueRequired"),
                ("spec.containers[0].volumeMounts[0].name", "FieldValueNotFound"),
            ],
        ),
        (
            json!({"containers": [{"name": "a", "image": "i",
                "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1500m"}}}]}),
            &[("spec.containers[0].resources.requests", "FieldValueInvalid")],
        ),
        (
            json!({"containers": [c()], "ephemeralContainers": [{"name": "e", "image": "i"}]}),
            &[("spec.ephemeralContainers", "FieldValueForbidden")],
        ),
    ];
    for (spec, expected) in rows {
        let mut world = World::new(ApiConfig::default());
        let expected: Vec<_> = expected.iter().map(|(f, r)| ((*f).to_owned(), *r)).collect();
        assert_eq!(causes(&world.create(pod(spec.clone()))), expected, "{spec}");
        assert!(world.api.get("Pod", "default", "web").is_none(), "{spec}: stored though refused");
    }
}

#[test]
fn names_are_taken_once_and_generated_from_the_uid() {
    let mut world = world();
    let Response::Rejected(status) =
        world.create(pod(json!({"containers": [{"name": "app", "image": "i"}]})))
    else {
        panic!("created twice");
    };
    assert_eq!((status.code, status.reason), (409, StatusReason::AlreadyExists));
    assert_eq!(status.message, r#"pods "web" already exists"#);
    let mut generated = pod(json!({"containers": [{"name": "app", "image": "i"}]}));
    generated["metadata"] = json!({"generateName": "job-"});
    assert_eq!(code(&world.create_as(generated, PodUid(0xabcde))), 201);
    assert!(world.api.get("Pod", "default", "job-abcde").is_some());
}

#[test]
fn generation_moves_with_the_spec_and_with_the_deletion_only() {
    let mut world = world();
    world.report_running();
    assert_eq!(generation(&world), 1);
    let before = world.api.resource_version();
    assert!(world.dynamic(json!({"metadata": {"labels": {"a": "b"}}})).is_ok());
    assert_eq!((generation(&world), world.api.resource_version()), (1, before + 1));
    assert!(world.dynamic(json!({"spec": {"containers": [{"name": "app", "image": "i:2"}]}})).is_ok());
    assert_eq!(generation(&world), 2);
    assert!(world.delete(None).is_ok());
    assert_eq!(generation(&world), 3);
    assert!(world.delete(Some(1)).is_ok());
    assert_eq!(generation(&world), 3, "a shorter grace is no new deletion");
}

#[test]
fn a_change_of_nothing_makes_no_version() {
    let mut world = world();
    world.report_running();
    let before = (world.api.resource_version(), world.api.digest());
    world.report_running();
    assert!(world.dynamic(json!({"spec": {"containers": [{"name": "app"}]}})).is_ok());
    let whole = world.pod();
    assert!(world.update(whole).is_ok());
    assert_eq!((world.api.resource_version(), world.api.digest()), before);
}

#[test]
fn a_manifest_applied_again_changes_only_what_it_says() {
    let mut world = world();
    let manifest = |image: &str| pod(json!({"containers": [{"name": "app", "image": image}]}));
    assert!(world.update(manifest("i:2")).is_ok());
    assert_eq!(world.pod()["spec"]["containers"][0]["image"], "i:2");
    assert_eq!(world.pod()["spec"]["nodeName"], "node");
    assert_eq!(world.pod()["metadata"]["uid"], json!(UID.to_string()));
    let other = pod(json!({"containers": [{"name": "app", "image": "i:2"}, {"name": "b", "image": "i"}]}));
    assert_eq!(causes(&world.update(other)), [("spec.containers".to_owned(), "FieldValueForbidden")]);
}

#[test]
fn identity_and_version_in_the_body_are_preconditions() {
    let rows: &[(&str, Value, u16)] = &[
        ("name", json!("other"), 400),
        ("namespace", json!("other"), 400),
        ("uid", json!("00000000-0000-0000-0000-000000000001"), 409),
        ("resourceVersion", json!("1"), 409),
        ("resourceVersion", json!("2"), 200),
        ("resourceVersion", json!(""), 200),
    ];
    for (field, value, expected) in rows {
        let mut world = world();
        world.report_running();
        assert_eq!(world.api.resource_version(), 2);
        let mut whole = world.pod();
        whole["metadata"][*field] = value.clone();
        whole["metadata"]["labels"] = json!({"a": "b"});
        assert_eq!(code(&world.dynamic_whole(whole)), *expected, "{field} {value}");
    }
}

#[test]
fn what_cannot_be_decoded_is_a_bad_request() {
    let rows: &[(Value, u16)] = &[
        (json!({"spec": {"containers": "x"}}), 400),
        (json!({"spec": {"contaners": []}}), 400),
        (json!({"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "1x"}}}]}}), 400),
        (json!({"spec": {"containers": [{"name": "app", "$patch": "merge"}]}}), 422),
        (json!({"spec": {"containers": [{"image": "i"}]}}), 422),
        (json!({"metadata": {"name": "other"}}), 400),
        (json!([]), 400),
        (json!({"spec": null}), 400),
    ];
    for (patch, expected) in rows {
        let mut world = world();
        let answer = world.dynamic(patch.clone());
        assert_eq!(code(&answer), *expected, "{patch}: {answer:?}");
        assert_eq!(world.api.resource_version(), 1, "{patch}");
    }
}

#[test]
fn a_refusal_is_told_in_kubernetes_shape() {
    let mut world = world();
    world.report_running();
    let Response::Rejected(one) =
        world.dynamic(json!({"spec": {"containers": [{"name": "app", "$patch": "delete"}]}}))
    else {
        panic!("the last container went");
    };
    assert_eq!(one.message, r#"Pod "web" is invalid: spec.containers: Required value"#);
    assert_eq!(
        one.to_json(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": one.message,
            "reason": "Invalid", "code": 422, "details": {"name": "web", "kind": "Pod", "causes": [
                {"reason": "FieldValueRequired",
                    "message": "Required value",
                    "field": "spec.containers"}]}})
    );
    let Response::Rejected(two) = world.dynamic(json!({"spec": {"containers": [
        {"name": "x", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        {"name": "y", "image": " i"}]}}))
    else {
        panic!("accepted");
    };
    assert_eq!(
        two.message,
        "Pod \"web\" is invalid: [spec.containers[0].volumeMounts[0].name: Not found: \"v\", \
         spec.containers[1].image: Invalid value: \" i\": must not have leading or trailing whitespace]"
    );
    let Response::Rejected(gone) = world.delete_object("ConfigMap", "none", None, false) else {
        panic!("found")
    };
    assert_eq!(gone.message, r#"configmaps "none" not found"#);
    assert_eq!(gone.to_json()["details"], json!({"name": "none", "kind": "configmaps"}));
}

#[test]
fn causes_come_by_field_with_indices_as_numbers() {
    let mut world = world();
    world.report_running();
    let containers: Vec<Value> = (0..11).map(|i| json!({"name": format!("n{i}"), "image": " i"})).collect();
    let answer = world.dynamic(json!({"spec": {"containers": containers}}));
    let fields: Vec<&str> = answer.causes().iter().map(|c| c.field.as_str()).collect();
    assert_eq!((fields[2], fields[10]), ("spec.containers[2].image", "spec.containers[10].image"));
}

#[test]
fn gates_are_switched_while_it_runs() {
    let mut world = world();
    world.report_running();
    let add = |name: &str| json!({"spec": {"containers": [{"name": name, "image": "i"}]}});
    world.gates(false, true);
    let Response::Rejected(status) = world.dynamic(add("a")) else { panic!("the route exists") };
    assert_eq!((status.code, status.reason.as_str()), (404, "NotFound"));
    assert!(
        world
            .update({
                let mut whole = world.pod();
                whole["spec"]["containers"][0]["image"] = json!("i:2");
                whole
            })
            .is_ok()
    );
    world.gates(true, true);
    assert!(world.dynamic(add("a")).is_ok());
}

#[test]
fn a_policy_written_while_its_gate_is_off_is_dropped() {
    let mut world = World::new(ApiConfig::default());
    world.gates(true, false);
    let policy = json!({"restartPolicy": "RestartContainer"});
    let container = json!({"name": "app", "image": "i", "dynamicVolumePolicy": policy});
    assert!(world.create(pod(json!({"containers": [container]}))).is_ok());
    assert!(world.pod()["spec"]["containers"][0].get("dynamicVolumePolicy").is_none());
    let mut status = running(&world.pod());
    status["volumeStatuses"] = json!([{"name": "v", "hostPhase": "HostMounted"}]);
    assert!(world.status(status).is_ok());
    assert!(world.pod()["status"].get("volumeStatuses").is_none());
}

fn deletion(world: &World) -> (Option<String>, Option<u64>) {
    let metadata = world.pod()["metadata"].clone();
    (
        metadata["deletionTimestamp"].as_str().map(str::to_owned),
        metadata["deletionGracePeriodSeconds"].as_u64(),
    )
}

#[test]
fn a_deletion_has_a_deadline_that_only_moves_earlier() {
    // As recorded of Kubernetes 1.36: recordings/02-crashloop and 01-volumes-basic.
    let mut world = world();
    world.report_running();
    assert!(world.delete(None).is_ok());
    let at = |seconds: u64| Some(format!("2026-11-30T00:53:{:02}Z", 20 + seconds));
    assert_eq!(deletion(&world), (at(30), Some(30)));
    world.advance_secs(2);
    let before = world.api.resource_version();
    assert!(world.delete(Some(60)).is_ok());
    assert!(world.delete(None).is_ok());
    assert_eq!(
        (deletion(&world), world.api.resource_version()),
        ((at(30), Some(30)), before),
        "no longer, no sooner"
    );
    assert!(world.delete(Some(10)).is_ok());
    assert_eq!(deletion(&world), (at(10), Some(10)), "as if asked at first");
    world.advance_secs(3);
    assert!(world.delete(Some(1)).is_ok());
    assert_eq!(deletion(&world), (at(5), Some(1)), "not in the past");
}

#[test]
fn the_node_releases_what_it_was_told_to_end() {
    let mut world = world();
    world.report_running();
    assert!(world.delete(Some(5)).is_ok());
    let from = world.api.resource_version();
    world.advance_secs(1);
    assert_eq!(code(&world.ask(Request::Release { uid: PodUid(7) })), 404, "another life of the name");
    assert!(world.ask(Request::Release { uid: UID }).is_ok());
    assert!(world.api.get("Pod", "default", "web").is_none());
    assert_eq!(changes(&world, from), [(from + 1, ChangeType::Modified), (from + 2, ChangeType::Deleted)]);
    assert_eq!(code(&world.ask(Request::Release { uid: UID })), 404);
    let status = json!({"phase": "Succeeded"});
    assert_eq!(code(&world.status(status)), 404);
}

#[test]
fn a_deletion_without_grace_is_at_once() {
    for (what, node, phase, grace, force, gone) in [
        ("plain", "node", "Running", None, false, false),
        ("force", "node", "Running", None, true, true),
        ("grace 0", "node", "Running", Some(0), false, true),
        ("never bound", "", "Pending", None, false, true),
        ("ended", "node", "Failed", None, false, true),
    ] {
        let mut world = World::new(ApiConfig { node_name: node.into(), ..ApiConfig::default() });
        assert!(world.create(pod(json!({"containers": [{"name": "app", "image": "i:1"}]}))).is_ok());
        let mut status = running(&world.pod());
        status["phase"] = json!(phase);
        assert!(world.status(status).is_ok());
        assert!(world.delete_object("Pod", "web", grace, force).is_ok());
        assert_eq!(world.api.get("Pod", "default", "web").is_none(), gone, "{what}");
    }
}

#[test]
fn an_absurd_grace_is_one_that_the_field_can_hold() {
    let mut world = world();
    assert!(world.delete(Some(u64::MAX)).is_ok());
    assert_eq!(world.pod()["metadata"]["deletionGracePeriodSeconds"].as_i64(), Some(i64::MAX));
    assert!(world.delete(Some(1)).is_ok());
    // A deadline beyond the end of time doesn't tell when it was asked for.
    assert_eq!(deletion(&world), (Some("2026-11-30T00:53:20Z".to_owned()), Some(1)));
}

#[test]
fn a_negative_grace_in_the_spec_is_the_shortest() {
    let mut world = World::new(ApiConfig::default());
    let spec = json!({"containers": [{"name": "app", "image": "i:1"}], "terminationGracePeriodSeconds": -5});
    assert!(world.create(pod(spec)).is_ok());
    assert!(world.delete(None).is_ok());
    assert_eq!(deletion(&world).1, Some(1));
}

#[test]
fn finalizers_keep_an_object_until_the_last_is_gone() {
    let mut world = World::new(ApiConfig::default());
    let mut object = pod(json!({"containers": [{"name": "app", "image": "i:1"}]}));
    object["metadata"]["finalizers"] = json!(["example.com/a"]);
    assert!(world.create(object).is_ok());
    assert!(world.delete_object("Pod", "web", None, true).is_ok());
    assert_eq!(deletion(&world).1, Some(0));
    let mut whole = world.pod();
    whole["metadata"]["finalizers"] = json!(["example.com/a", "example.com/b"]);
    let refused = causes(&world.update(whole));
    assert_eq!(refused, [("metadata.finalizers".to_owned(), "FieldValueForbidden")]);
    let mut whole = world.pod();
    whole["metadata"]["finalizers"] = json!([]);
    assert!(world.update(whole).is_ok());
    assert!(world.api.get("Pod", "default", "web").is_none());
}

#[test]
fn other_kinds_are_stored_as_they_are() {
    let mut world = World::new(ApiConfig::default());
    let secret = |value: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "stringData": {"k": value}})
    };
    assert!(world.create_as(secret("v"), PodUid(1)).is_ok());
    let stored = |world: &World| Value::clone(world.api.get("Secret", "default", "s").expect("stored"));
    assert_eq!(stored(&world)["data"], json!({"k": "dg=="}));
    assert!(stored(&world)["metadata"].get("generation").is_none());
    assert!(world.update(secret("w")).is_ok());
    assert_eq!(stored(&world)["data"], json!({"k": "dw=="}));
    assert_eq!(stored(&world)["metadata"]["resourceVersion"], "2");
    assert_eq!(stored(&world)["metadata"]["uid"], json!(PodUid(1).to_string()));

    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv"},
        "spec": {"anything": 1}});
    assert!(world.create_as(volume, PodUid(2)).is_ok());
    assert_eq!(
        world.api.get("PersistentVolume", "ignored", "pv").map(|v| v["spec"].clone()),
        Some(json!({"anything": 1}))
    );

    let frozen = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"},
        "immutable": true, "data": {"k": "v"}});
    assert!(world.create_as(frozen.clone(), PodUid(3)).is_ok());
    let mut other = frozen;
    other["data"]["k"] = json!("w");
    assert_eq!(causes(&world.update(other)), [("data".to_owned(), "FieldValueForbidden")]);

    let from = world.api.resource_version();
    assert!(world.delete_object("Secret", "s", None, false).is_ok());
    assert_eq!(changes(&world, from), [(from + 1, ChangeType::Deleted)]);
    assert_eq!(code(&world.update(secret("x"))), 404);
}

#[test]
fn a_watch_tells_every_version_in_order_and_says_when_it_no_longer_can() {
    let mut world = World::new(ApiConfig { changes_kept: 3, ..ApiConfig::default() });
    assert!(world.create(pod(json!({"containers": [{"name": "app", "image": "i:1"}]}))).is_ok());
    assert_eq!(changes(&world, 0), [(1, ChangeType::Added)]);
    world.report_running();
    assert_eq!(changes(&world, 1), [(2, ChangeType::Modified)]);
    for label in ["a", "b"] {
        assert!(world.dynamic(json!({"metadata": {"labels": {"l": label}}})).is_ok());
    }
    assert_eq!(changes(&world, 2), [(3, ChangeType::Modified), (4, ChangeType::Modified)]);
    assert!(changes(&world, 4).is_empty());
    assert_eq!(world.api.watch_from(0).map(|_| ()).map_err(|e| e.oldest), Err(1));
    let told =
        world.api.watch_from(3).map(|c| c.map(|c| c.object["metadata"]["resourceVersion"].clone()).collect());
    assert_eq!(told, Ok(vec![json!("4")]));
}
