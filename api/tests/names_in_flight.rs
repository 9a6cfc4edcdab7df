//! Names that were removed and may still be in use (C4, C5, W3–W5), and ephemeral containers: they bear names
//! too.

mod support;

use nodefold_api::ApiConfig;
use serde_json::{Value, json};
use support::{World, causes, code, pod, running};

fn world() -> World {
    let mut world = World::new(ApiConfig::default());
    assert_eq!(code(&world.create(pod(json!({"containers": [{"name": "app", "image": "i:1"}]})))), 201);
    world
}

#[test]
fn a_removed_name_is_held_until_the_node_has_seen_its_removal_and_its_status_is_gone() {
    // api-side §8 item 4.
    let mut world = world();
    world.report_running();
    let add = |image: &str| {
        json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}],
            "containers": [{"name": "x", "image": image, "volumeMounts": [{"name": "v",
                "mountPath": "/v"}]}]}})
    };
    let remove = json!({"spec": {"volumes": [{"name": "v", "$patch": "delete"}],
        "containers": [{"name": "x", "$patch": "delete"}]}});
    let taken = [
        ("spec.containers[0].name".to_owned(), "FieldValueDuplicate"),
        ("spec.volumes[0].name".to_owned(), "FieldValueDuplicate"),
    ];
    assert!(world.dynamic(add("one")).is_ok());
    assert!(world.dynamic(remove.clone()).is_ok());
    assert_eq!(causes(&world.dynamic(add("two"))), taken, "removed and not observed");

    // The node saw the addition only.
    let mut late = running(&world.pod());
    late["observedGeneration"] = json!(2);
    assert!(world.status(late).is_ok());
    assert_eq!(causes(&world.dynamic(add("two"))), taken, "an older generation observed");

    // It saw the removal, and the first x still ends.
    let mut stopping = running(&world.pod());
    let mounts = json!([{"name": "v", "mountPath": "/v"}]);
    let first_x = json!({"name": "x", "state": {"running": {}}, "resources": {}, "volumeMounts": mounts});
    stopping["containerStatuses"].as_array_mut().into_iter().for_each(|l| l.push(first_x.clone()));
    stopping["volumeStatuses"] = json!([{"name": "v", "hostPhase": "Unmounting"}]);
    assert!(world.status(stopping).is_ok());
    assert_eq!(causes(&world.dynamic(add("two"))), taken, "observed, still there");

    world.report_running();
    assert!(world.dynamic(add("two")).is_ok(), "observed and gone");
}

#[test]
fn a_removed_name_is_no_name_for_an_ephemeral_container_either() {
    let mut world = World::new(ApiConfig::default());
    let two = json!({"containers": [{"name": "app", "image": "i"}, {"name": "b", "image": "i"}]});
    assert!(world.create(pod(two)).is_ok());
    world.report_running();
    assert!(world.dynamic(json!({"spec": {"containers": [{"name": "b", "$patch": "delete"}]}})).is_ok());
    let debug = |name: &str| json!({"spec": {"ephemeralContainers": [{"name": name, "image": "i"}]}});
    let field = "spec.ephemeralContainers[0].name".to_owned();
    assert_eq!(causes(&world.ephemeral(debug("b"))), [(field.clone(), "FieldValueDuplicate")]);
    assert_eq!(causes(&world.ephemeral(debug("app"))), [(field, "FieldValueDuplicate")]);
    assert!(world.ephemeral(debug("free")).is_ok());
}

#[test]
fn ephemeral_containers_are_only_added() {
    let mut world = world();
    world.report_running();
    let ask = |list: Value| json!({"spec": {"ephemeralContainers": list, "hostNetwork": true}});
    assert!(world.ephemeral(ask(json!([{"name": "e", "image": "i", "targetContainerName": "app"}]))).is_ok());
    assert_eq!(world.pod()["spec"]["ephemeralContainers"][0]["name"], "e");
    assert!(world.pod()["spec"].get("hostNetwork").is_none(), "nothing else of the body is taken");
    let list = "spec.ephemeralContainers";
    let rows: Vec<(Value, Vec<(String, &str)>)> = vec![
        (json!([{"name": "e", "image": "other"}]), vec![(list.to_owned(), "FieldValueForbidden")]),
        (json!([{"name": "e", "$patch": "delete"}]), vec![(list.to_owned(), "FieldValueForbidden")]),
        (
            json!([{"name": "f", "image": "i", "targetContainerName": "none",
                "ports": [{"containerPort": 1}]}]),
            vec![
                (format!("{list}[0].ports"), "FieldValueForbidden"),
                (format!("{list}[0].targetContainerName"), "FieldValueNotFound"),
            ],
        ),
        (
            json!([{"name": "f", "image": "i", "resources": {"requests": {"cpu": "1"}}}]),
            vec![(format!("{list}[0].resources"), "FieldValueForbidden")],
        ),
        (
            json!([{"name": "f", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]),
            vec![(format!("{list}[0].volumeMounts[0].name"), "FieldValueNotFound")],
        ),
    ];
    for (patch, expected) in rows {
        assert_eq!(causes(&world.ephemeral(ask(patch.clone()))), expected, "{patch}");
    }
}
