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

/// What Kubernetes says of names, in its words and all of it at once.
#[test]
fn each_wrong_name_is_told_with_everything_that_is_wrong_with_it() {
    let long = "a".repeat(64);
    let subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
        start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
        '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let qualified = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
        character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let value = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
        and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
        '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    for (metadata, expected) in [
        (json!({"labels": {"a/b/c": "x"}}), vec![format!(
            "metadata.labels: Invalid value: \"a/b/c\": a qualified name {qualified} with an optional DNS subdomain prefix and '/' \
             (e.g. 'example.com/MyName')"
        )]),
        (json!({"labels": {"/é": "x"}}), vec![
            "metadata.labels: Invalid value: \"/é\": prefix part must be non-empty".to_owned(),
            format!("metadata.labels: Invalid value: \"/é\": name part {qualified}"),
        ]),
        (json!({"labels": {"A.b/": "-"}}), vec![
            format!("metadata.labels: Invalid value: \"A.b/\": prefix part {subdomain}"),
            "metadata.labels: Invalid value: \"A.b/\": name part must be non-empty".to_owned(),
            format!("metadata.labels: Invalid value: \"A.b/\": name part {qualified}"),
            format!("metadata.labels: Invalid value: \"-\": {value}"),
        ]),
        (json!({"labels": {"k": format!("{long}-")}}), vec![
            format!("metadata.labels: Invalid value: \"{long}-\": must be no more than 63 characters"),
            format!("metadata.labels: Invalid value: \"{long}-\": {value}"),
        ]),
        (json!({"annotations": {"Example.COM/Key": "any ü"}}), vec![]),
        (json!({"annotations": {"k": "x".repeat(256 << 10)}}), vec![
            "metadata.annotations: Too long: may not be more than 262144 bytes".to_owned(),
        ]),
        (json!({"finalizers": ["orphan", "foregroundDeletion", "no spaces please"]}), vec![
            format!("metadata.finalizers: Invalid value: \"no spaces please\": name part {qualified}"),
            "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\",\"no spaces please\"]: finalizer orphan and \
             foregroundDeletion cannot be both set".to_owned(),
        ]),
        (json!({"ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "1", "controller": true},
            {"apiVersion": "", "kind": "B", "name": "b", "uid": "", "controller": true}]}), vec![
            "metadata.ownerReferences[1].apiVersion: Invalid value: \"\": version must not be empty".to_owned(),
            "metadata.ownerReferences[1].uid: Invalid value: \"\": uid must not be empty".to_owned(),
            "metadata.ownerReferences: Invalid value: [{\"apiVersion\":\"v1\",\"kind\":\"A\",\"name\":\"a\",\"uid\":\"1\",\"controller\":true},\
             {\"apiVersion\":\"\",\"kind\":\"B\",\"name\":\"b\",\"uid\":\"\",\"controller\":true}]: Only one reference can have Controller set \
             to true. Found \"true\" in references for A/a and B/b".to_owned(),
        ]),
    ] {
        let mut object = pod(spec(json!([app()])));
        for (field, value) in metadata.as_object().into_iter().flatten() {
            object["metadata"][field] = value.clone();
        }
        let answer = World::new(ApiConfig::default()).create(object);
        let told: Vec<String> = answer.causes().iter().map(|c| format!("{}: {}", c.field, c.message)).collect();
        assert_eq!(told, expected, "{}", metadata.to_string().chars().take(100).collect::<String>());
    }
}

#[test]
fn tolerations_that_come_to_a_running_pod_are_well_formed() {
    let mut world = World::new(ApiConfig::default());
    assert!(world.create(pod(spec(json!([app()])))).is_ok());
    world.report_running();
    let answer = world.dynamic(json!({"spec": {"tolerations": [
        {"operator": "Equal", "value": "x"},
        {"key": "a b", "operator": "Is"},
        {"key": "k", "operator": "Exists", "value": "v", "effect": "Sometimes"},
        {"key": "k", "value": "-", "effect": "NoSchedule", "tolerationSeconds": 3},
    ]}}));
    let told: Vec<(&str, &str)> =
        answer.causes().iter().map(|c| (c.field.as_str(), c.reason.as_str())).collect();
    assert_eq!(
        told,
        [
            ("spec.tolerations[0].operator", INVALID),
            ("spec.tolerations[1].key", INVALID),
            ("spec.tolerations[1].operator", NOT_SUPPORTED),
            ("spec.tolerations[2].operator", INVALID),
            ("spec.tolerations[2].effect", NOT_SUPPORTED),
            ("spec.tolerations[3].effect", INVALID),
            ("spec.tolerations[3].operator", INVALID),
        ]
    );
}

/// A body as large as a server takes is judged in no more than a moment: every list is looked through once, not once for each entry.
#[test]
#[allow(clippy::disallowed_methods, reason = "how long it takes is what is tested")]
fn twenty_thousand_containers_are_judged_at_once() {
    let mut world = World::new(ApiConfig::default());
    assert!(world.create(pod(spec(json!([app()])))).is_ok());
    world.report_running();
    let mut whole = world.pod();
    for i in 0..20_000 {
        let container = json!({"name": format!("c{i}"), "image": "i"});
        whole["spec"]["containers"].as_array_mut().expect("a list").push(container);
    }
    let begun = std::time::Instant::now();
    let answer = world.dynamic_whole(whole);
    assert!(answer.is_ok(), "{:?}", answer.causes().first());
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn roles_may_have_names_that_only_a_path_has_to_hold() {
    let role = |kind: &str, name: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name}});
    let mut world = World::new(ApiConfig::default());
    assert!(world.create_any(role("ClusterRole", "system:node:Proxier")).is_ok());
    for (kind, name, told) in [
        (
            "ClusterRole",
            "a/b%",
            "[metadata.name: Invalid value: \"a/b%\": may not contain '/', metadata.name: Invalid value: \"a/b%\": may not contain '%']",
        ),
        ("Role", "..", "metadata.name: Invalid value: \"..\": may not be '..'"),
        ("ConfigMap", "A", "a lowercase RFC 1123 subdomain"),
        ("Namespace", "a.b", "a lowercase RFC 1123 label"),
    ] {
        let mut object = role(kind, name);
        if !kind.contains("Role") {
            object["apiVersion"] = json!("v1");
        }
        match world.create_any(object) {
            Response::Rejected(status) => assert!(status.message.contains(told), "{}", status.message),
            Response::Ok { .. } => panic!("{kind} {name}"),
        }
    }
}
