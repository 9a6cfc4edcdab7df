//! The API server's defaults that recorded pods don't show.
#![allow(clippy::expect_used)]

use nodefold_k8s::default_pod;
use serde_json::{Value, json};

/// A pod's spec, defaulted.
fn defaulted(spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": spec});
    default_pod(&mut pod);
    pod["spec"].take()
}

fn container(container: Value) -> Value {
    defaulted(json!({"containers": [container]}))["containers"][0].take()
}

#[test]
fn pull_policy_follows_the_tag() {
    for (image, policy) in [
        ("busybox", "Always"),
        ("busybox:latest", "Always"),
        ("busybox:1", "IfNotPresent"),
        ("registry:5000/busybox", "Always"),
        ("registry:5000/busybox:1", "IfNotPresent"),
        ("busybox@sha256:0123", "IfNotPresent"),
        ("busybox:latest@sha256:0123", "Always"),
    ] {
        assert_eq!(container(json!({"image": image}))["imagePullPolicy"], policy, "{image}");
        let spec = defaulted(json!({"volumes": [{"name": "v", "image": {"reference": image}}]}));
        assert_eq!(spec["volumes"][0]["image"]["pullPolicy"], policy, "{image}");
    }
    assert_eq!(container(json!({"image": "x", "imagePullPolicy": "Never"}))["imagePullPolicy"], "Never");
}

#[test]
fn requests_follow_limits_and_amounts_are_canonical() {
    let resources = json!({"limits": {"cpu": 0.5, "memory": "1024Mi"}, "requests": {"cpu": "0.25"}});
    assert_eq!(
        container(json!({"resources": resources}))["resources"],
        json!({"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "250m", "memory": "1Gi"}})
    );
    assert_eq!(container(json!({"resources": {"requests": {}}}))["resources"], json!({}));
}

#[test]
fn pod_level_requests_are_what_the_containers_need_at_once_else_the_limit() {
    let asks = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
    let mut sidecar = asks("100m");
    sidecar["restartPolicy"] = json!("Always");
    let spec = defaulted(json!({
        "resources": {"limits": {"cpu": "4", "memory": "1Gi", "hugepages-2Mi": "4Mi"}},
        "initContainers": [asks("500m"), sidecar, asks("2")],
        "containers": [asks("1"), asks("300m")],
    }));
    let requests = json!({"cpu": "2100m", "memory": "1Gi", "hugepages-2Mi": "4Mi"});
    assert_eq!(spec["resources"]["requests"], requests);
    let without_limits =
        defaulted(json!({"resources": {"requests": {"memory": "1Gi"}}, "containers": [asks("1")]}));
    assert_eq!(without_limits["resources"], json!({"requests": {"memory": "1Gi"}}));
}

#[test]
fn host_network_takes_the_container_ports() {
    let ports = json!([{"containerPort": 80}, {"containerPort": 81, "hostPort": 82, "protocol": "UDP"}]);
    let spec = defaulted(json!({"hostNetwork": true, "containers": [{"ports": ports}]}));
    assert_eq!(
        spec["containers"][0]["ports"],
        json!([{"containerPort": 80, "protocol": "TCP", "hostPort": 80},
            {"containerPort": 81, "protocol": "UDP", "hostPort": 82}])
    );
    let spec = defaulted(json!({"containers": [{"ports": ports}]}));
    assert_eq!(spec["containers"][0]["ports"][0], json!({"containerPort": 80, "protocol": "TCP"}));
}

#[test]
fn probes_hooks_and_references() {
    let read = container(json!({
        "livenessProbe": {"httpGet": {"port": 80}, "initialDelaySeconds": 0},
        "readinessProbe": {"grpc": {"port": 81}, "periodSeconds": 2},
        "lifecycle": {"preStop": {"httpGet": {"port": 82, "path": "/bye"}}},
        "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "B", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
    }));
    let timing = |probe: &mut Value| {
        let all = ["timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
        all.map(|name| probe.as_object_mut().and_then(|p| p.remove(name)).expect("defaulted"))
    };
    let (mut liveness, mut readiness) = (read["livenessProbe"].clone(), read["readinessProbe"].clone());
    assert_eq!(timing(&mut liveness), [1, 10, 1, 3].map(Value::from));
    assert_eq!(timing(&mut readiness), [1, 2, 1, 3].map(Value::from));
    assert_eq!(liveness, json!({"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}}));
    assert_eq!(readiness, json!({"grpc": {"port": 81, "service": ""}}));
    assert_eq!(
        read["lifecycle"],
        json!({"preStop": {"httpGet": {"port": 82, "path": "/bye", "scheme": "HTTP"}}})
    );
    assert_eq!(read["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
    assert_eq!(read["env"][1]["valueFrom"]["resourceFieldRef"]["divisor"], "0");
}

#[test]
fn volume_sources() {
    let spec = defaulted(json!({"volumes": [
        {"name": "nothing"},
        {"name": "d", "downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        {"name": "h", "hostPath": {"path": "/x"}},
        {"name": "e", "emptyDir": {"medium": "", "sizeLimit": "0.5Gi"}},
    ]}));
    assert_eq!(
        spec["volumes"],
        json!([
            {"name": "nothing", "emptyDir": {}},
            {"name": "d", "downwardAPI": {"defaultMode": 420,
                "items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.labels", "apiVersion": "v1"}}]}},
            {"name": "p", "projected": {"defaultMode": 420,
                "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}]}},
            {"name": "h", "hostPath": {"path": "/x", "type": ""}},
            {"name": "e", "emptyDir": {"sizeLimit": "512Mi"}},
        ])
    );
}

#[test]
fn what_go_would_not_write_is_left_out() {
    let mut pod = json!({"metadata": {"name": "p", "creationTimestamp": null, "labels": {}}, "status": {},
        "spec": {"hostNetwork": false, "nodeName": "", "nodeSelector": {}, "tolerations": [], "affinity": null,
            "containers": [{"name": "a", "image": "i:1", "args": [], "tty": false,
                "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": false, "subPath": ""}]}]}});
    default_pod(&mut pod);
    assert_eq!(pod["metadata"], json!({"name": "p"}));
    assert_eq!(pod.get("status"), None);
    for absent in ["hostNetwork", "nodeName", "nodeSelector", "tolerations", "affinity"] {
        assert_eq!(pod["spec"].get(absent), None, "{absent}");
    }
    assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], 30);
    let container = &pod["spec"]["containers"][0];
    assert_eq!((container.get("args"), container.get("tty")), (None, None));
    assert_eq!(container["volumeMounts"], json!([{"name": "v", "mountPath": "/v"}]));
}
