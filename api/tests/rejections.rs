//! The story of `examples/rejections.yaml` on the API's side: the node is played by the statuses it would
//! write.

mod support;

use nodefold_api::ApiConfig;
use serde_json::{Value, json};
use support::{World, causes, pod, running};

const FORBIDDEN: &str = "FieldValueForbidden";

fn refused(world: &mut World, spec: Value, field: &str, reason: &str) {
    let answer = world.dynamic(json!({"spec": spec}));
    assert_eq!(causes(&answer), [(field.to_owned(), reason)], "{spec}");
}

#[test]
fn what_dynamic_refuses_and_how_it_says_so() {
    let mut world = World::new(ApiConfig::default());
    let spec = json!({"terminationGracePeriodSeconds": 30,
        "containers": [{"name": "app", "image": "registry.local/busybox:1", "command": ["sleep", "100000"],
            "volumeMounts": [{"name": "sec", "mountPath": "/sec"}]}],
        "volumes": [{"name": "sec", "secret": {"secretName": "s"}}]});
    assert!(world.create(pod(spec)).is_ok());
    world.report_running();

    let host_path = json!({"volumes": [{"name": "h", "hostPath": {"path": "/"}}]});
    refused(&mut world, host_path, "spec.volumes[0]", FORBIDDEN);
    let dangling = json!({"volumes": [{"name": "sec", "$patch": "delete"}]});
    refused(&mut world, dangling, "spec.containers[0].volumeMounts[0].name", "FieldValueNotFound");
    let remounted = json!({"volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [{"name": "app", "volumeMounts": [{"mountPath": "/v", "name": "v"}]}]});
    refused(&mut world, remounted, "spec.containers[0].volumeMounts", FORBIDDEN);
    let emptied = json!({"containers": [{"name": "app", "$patch": "delete"}]});
    refused(&mut world, emptied, "spec.containers", "FieldValueRequired");
    let privileged =
        json!({"containers": [{"name": "p", "image": "x", "securityContext": {"privileged": true}}]});
    refused(&mut world, privileged, "spec.containers[0].securityContext.privileged", FORBIDDEN);
    let host_port = json!({"containers": [{"name": "p", "image": "x", "ports": [{"containerPort": 80,
        "hostPort": 8080}]}]});
    refused(&mut world, host_port, "spec.containers[0].ports[0].hostPort", FORBIDDEN);
    let burstable =
        json!({"containers": [{"name": "q", "image": "x", "resources": {"requests": {"cpu": "100m"}}}]});
    refused(&mut world, burstable, "spec", "FieldValueInvalid");

    assert!(world.dynamic(json!({"spec": {"containers": [{"name": "c", "image": "x"}]}})).is_ok());
    world.report_running();
    let with_c = running(&world.pod());
    assert!(world.dynamic(json!({"spec": {"containers": [{"name": "c", "$patch": "delete"}]}})).is_ok());
    // Its stop hangs: the node has seen the removal and still reports it.
    let mut stopping = with_c;
    stopping["observedGeneration"] = json!(3);
    assert!(world.status(stopping).is_ok());
    let again = json!({"containers": [{"name": "c", "image": "y"}]});
    refused(&mut world, again, "spec.containers[0].name", "FieldValueDuplicate");

    assert!(world.delete(None).is_ok());
    refused(&mut world, json!({"containers": [{"name": "d", "image": "x"}]}), "spec.containers", FORBIDDEN);
}

#[test]
fn qos_flips_are_told_as_invalid() {
    // api-side §8 item 6: on removal too.
    let mut world = World::new(ApiConfig::default());
    let spec = json!({"containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "1"}}},
        {"name": "b", "image": "i"}]});
    assert!(world.create(pod(spec)).is_ok());
    world.report_running();
    refused(
        &mut world,
        json!({"containers": [{"name": "a", "$patch": "delete"}]}),
        "spec",
        "FieldValueInvalid",
    );
    let resized = json!({"spec": {"containers": [{"name": "b", "resources": {"requests": {"cpu": "2"}}}]}});
    assert!(world.resize(resized).is_ok());
    assert!(world.dynamic(json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}})).is_ok());
}
