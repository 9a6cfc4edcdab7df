//! All errors of one request, in Kubernetes' order and words.

use super::*;

/// Field and message of each cause, in order.
fn told(answer: &Response) -> Vec<String> {
    answer.causes().iter().map(|c| format!("{}: {}", c.field, c.message)).collect()
}

/// Metadata first, then volumes, containers field by field, init containers, the pod's resources, the rest of the
/// spec, what holds for pods only, and last what may not change.
#[test]
fn everything_wrong_is_told_at_once_in_kubernetes_order() {
    let mut world = World::new(ApiConfig::default());
    let created = world.create(pod(with(two(), json!({"initContainers": [c("init")]}))));
    assert!(created.is_ok(), "{created:?}");
    world.report_running();
    let mut whole = world.pod();
    whole["metadata"]["labels"] = json!({"a": "b c"});
    let new = &mut whole["spec"];
    new["volumes"] =
        json!([{"name": "V", "secret": {"secretName": ""}}, {"name": "h", "hostPath": {"path": "/"}}]);
    new["containers"] = json!([
        {"name": "app", "image": "i:1", "command": ["x"]},
        {"name": "new", "image": " i", "imagePullPolicy": "Now", "env": [{"name": "A=", "value": "1"}],
            "ports": [{"containerPort": 0}], "volumeMounts": [{"name": "x", "mountPath": "/x"}],
            "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}
    ]);
    new["initContainers"] = json!([{"name": "new", "image": "i:1"}]);
    new["hostNetwork"] = json!(true);
    let answer = world.dynamic_whole(whole);
    let fields: Vec<String> =
        answer.causes().iter().map(|c| format!("{} {}", c.field, &c.reason.as_str()[10..])).collect();
    assert_eq!(
        fields,
        [
            "metadata.labels Invalid",
            "spec.volumes[0].secret.secretName Required",
            "spec.volumes[0].name Invalid",
            "spec.containers[1].ports[0].containerPort Required",
            "spec.containers[1].env[0].name Invalid",
            "spec.containers[1].volumeMounts[0].name NotFound",
            "spec.containers[1].imagePullPolicy NotSupported",
            "spec.containers[1].resources.requests Invalid",
            "spec.initContainers[0].name Duplicate",
            "spec.containers[1].image Invalid",
            "spec.volumes[1] Forbidden",
            "spec.initContainers Forbidden",
            "spec.containers[0] Forbidden",
            "spec Forbidden",
            "spec Invalid",
        ],
        "{:#?}",
        told(&answer)
    );
}

/// As a 1.34 API server prints them.
#[test]
fn messages_are_kubernetes_own() {
    let label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
        and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
        '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
    let rows: Vec<(Value, String)> = vec![
        (json!({"name": "A"}), format!("spec.containers[0].name: Invalid value: \"A\": {label}")),
        (json!({"image": ""}), "spec.containers[0].image: Required value".to_owned()),
        (
            json!({"imagePullPolicy": "Now"}),
            "spec.containers[0].imagePullPolicy: Unsupported value: \"Now\": supported values: \"Always\", \
             \"IfNotPresent\", \"Never\""
                .to_owned(),
        ),
        (
            json!({"ports": [{"containerPort": 70000}]}),
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"
                .to_owned(),
        ),
        (
            json!({"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}}),
            "spec.containers[0].resources.requests: Invalid value: \"2Gi\": must be less than or equal to memory limit \
             of 1Gi"
                .to_owned(),
        ),
        (
            json!({"livenessProbe": {"exec": {"command": ["a"]}, "successThreshold": 3}}),
            "spec.containers[0].livenessProbe.successThreshold: Invalid value: 3: must be 1".to_owned(),
        ),
        (
            json!({"securityContext": {"runAsUser": -5}}),
            "spec.containers[0].securityContext.runAsUser: Invalid value: -5: must be between 0 and 2147483647, \
             inclusive"
                .to_owned(),
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {}}]}),
            "spec.containers[0].env[0].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, \
             `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
                .to_owned(),
        ),
        (
            json!({"resources": {"claims": [{"name": "gpu"}]}}),
            "spec.containers[0].resources.claims[0]: Not found: \"gpu\": must be one of the names in \
             pod.spec.resourceClaims which is empty"
                .to_owned(),
        ),
    ];
    for (more, expected) in rows {
        let mut world = World::new(ApiConfig::default());
        let answer = world.create(pod(spec(json!([with(app(), more)]))));
        assert_eq!(told(&answer), [expected]);
    }
}

/// A rule that fails twice in the same words is told once.
#[test]
fn the_same_is_not_said_twice() {
    let mut world = World::new(ApiConfig::default());
    assert!(world.create(pod(mounting(None))).is_ok());
    world.report_running();
    let mounts = json!([{"name": "v", "mountPath": "/a", "subPath": "/x"}, {"name": "w", "mountPath": "/b", "subPath": "/x"}]);
    let answer = world.dynamic(json!({"spec": adding(json!({"volumeMounts": mounts}))}));
    assert_eq!(
        told(&answer),
        ["spec.containers[0].volumeMounts.subPath: Invalid value: \"/x\": must be a relative path"]
    );
}
