//! S1–S16: rules of any pod: names, images, ports, variables, mounts. Most rows add the container `new` to the running
//! pod (it is `spec.containers[0]` of the result); others create a pod.

use super::*;

/// The container added, at its place in the new list.
const NEW: &str = "spec.containers[0]";

pub fn rows() -> Vec<Row> {
    [names_and_images(), ports(), variables(), mounts()].into_iter().flatten().collect()
}

fn at(field: &str, reason: &'static str) -> Vec<(String, &'static str)> {
    vec![(format!("{NEW}.{field}"), reason)]
}

fn adds(id: &'static str, what: &'static str, more: Value, expected: Vec<(String, &'static str)>) -> Row {
    row(id, what).dynamic(adding(more), &[]).causes(expected)
}

fn names_and_images() -> Vec<Row> {
    let long = "a".repeat(64);
    let volume = |name: &str| json!({"volumes": [{"name": name, "emptyDir": {}}]});
    let container = |c: Value| json!({"containers": [app(), c]});
    vec![
        row("S1", "63 letters").create_spec(container(c(&long[1..])), &[]),
        row("S1", "64 letters").create_spec(container(c(&long)), &[("spec.containers[1].name", INVALID)]),
        row("S1", "a capital").create_spec(container(c("New")), &[("spec.containers[1].name", INVALID)]),
        row("S1", "none")
            .create_spec(container(json!({"image": "i"})), &[("spec.containers[1].name", REQUIRED)]),
        row("S1", "a volume's").create_spec(with(spec(json!([app()])), volume("v-1")), &[]),
        row("S1", "a volume's underscore")
            .create_spec(with(spec(json!([app()])), volume("v_1")), &[("spec.volumes[0].name", INVALID)]),
        row("S1", "a volume's, none")
            .create_spec(with(spec(json!([app()])), volume("")), &[("spec.volumes[0].name", REQUIRED)]),
        adds("S2", "an image", json!({}), vec![]),
        adds("S2", "none", json!({"image": ""}), at("image", REQUIRED)),
        adds("S2", "padded", json!({"image": " i:1"}), at("image", INVALID)),
        adds("S3", "each policy", json!({"imagePullPolicy": "Never"}), vec![]),
        adds("S3", "none is defaulted", json!({"imagePullPolicy": ""}), vec![]),
        adds("S3", "another", json!({"imagePullPolicy": "Sometimes"}), at("imagePullPolicy", NOT_SUPPORTED)),
        adds("S4", "from the log", json!({"terminationMessagePolicy": "FallbackToLogsOnError"}), vec![]),
        adds(
            "S4",
            "another",
            json!({"terminationMessagePolicy": "Log"}),
            at("terminationMessagePolicy", NOT_SUPPORTED),
        ),
    ]
}

fn ports() -> Vec<Row> {
    let port = |port: Value| json!({"ports": [port]});
    let named = |name: &str| json!({"ports": [{"name": name, "containerPort": 80}]});
    let host = |ip: &str, protocol: &str| {
        with(
            c("b"),
            json!({"ports": [{"containerPort": 81, "hostPort": 80, "hostIP": ip, "protocol": protocol}]}),
        )
    };
    let holder = || with(app(), json!({"ports": [{"containerPort": 80, "hostPort": 80}]}));
    let clash: Expected = &[("spec.containers[1].ports[0].hostPort", DUPLICATE)];
    vec![
        adds("S5", "a named port", named("http-1"), vec![]),
        adds("S5", "a name of 16", named("abcdefghijklmnop"), at("ports[0].name", INVALID)),
        adds("S5", "digits only", named("80"), at("ports[0].name", INVALID)),
        adds("S5", "two hyphens", named("a--b"), at("ports[0].name", INVALID)),
        adds(
            "S5",
            "twice the same name",
            json!({"ports": [{"name": "a", "containerPort": 80}, {"name": "a", "containerPort": 81}]}),
            at("ports[1].name", DUPLICATE),
        ),
        adds("S5", "no number", port(json!({"name": "a"})), at("ports[0].containerPort", REQUIRED)),
        adds("S5", "65536", port(json!({"containerPort": 65536})), at("ports[0].containerPort", INVALID)),
        adds("S5", "SCTP", port(json!({"containerPort": 80, "protocol": "SCTP"})), vec![]),
        adds(
            "S5",
            "ICMP",
            port(json!({"containerPort": 80, "protocol": "ICMP"})),
            at("ports[0].protocol", NOT_SUPPORTED),
        ),
        row("S6", "two protocols").create_spec(spec(json!([holder(), host("", "UDP")])), &[]),
        row("S6", "two addresses").create_spec(spec(json!([holder(), host("10.0.0.1", "TCP")])), &[]),
        row("S6", "the same").create_spec(spec(json!([holder(), host("", "TCP")])), clash),
    ]
}

fn variables() -> Vec<Row> {
    let env = |variable: Value| json!({"env": [variable]});
    let from = |source: Value| json!({"env": [{"name": "A", "valueFrom": source}]});
    let config = || json!({"configMapKeyRef": {"name": "c", "key": "k"}});
    let secret = || json!({"secretKeyRef": {"name": "s", "key": "k"}});
    let whole = |source: Value| json!({"envFrom": [{"configMapRef": {"name": "c"}}, source]});
    vec![
        adds("S7", "printable", env(json!({"name": "a.b c-1", "value": "v"})), vec![]),
        adds("S7", "no name", env(json!({"name": "", "value": "v"})), at("env[0].name", REQUIRED)),
        adds("S7", "an equals sign", env(json!({"name": "A=B"})), at("env[0].name", INVALID)),
        adds("S7", "a control character", env(json!({"name": "A\tB"})), at("env[0].name", INVALID)),
        adds("S8", "one source", from(config()), vec![]),
        adds("S8", "a field", from(json!({"fieldRef": {"fieldPath": "metadata.labels['a']"}})), vec![]),
        adds("S8", "no source", from(json!({})), at("env[0].valueFrom", INVALID)),
        adds("S8", "two sources", from(with(config(), secret())), at("env[0].valueFrom", INVALID)),
        adds(
            "S8",
            "a value too",
            env(json!({"name": "A", "value": "v", "valueFrom": config()})),
            at("env[0].valueFrom", INVALID),
        ),
        adds(
            "S8",
            "no such field",
            from(json!({"fieldRef": {"fieldPath": "spec.hostname"}})),
            at("env[0].valueFrom.fieldRef.fieldPath", NOT_SUPPORTED),
        ),
        adds(
            "S8",
            "no such amount",
            from(json!({"resourceFieldRef": {"resource": "limits.gpu"}})),
            at("env[0].valueFrom.resourceFieldRef.resource", NOT_SUPPORTED),
        ),
        adds(
            "S8",
            "a key without a name",
            from(json!({"secretKeyRef": {"name": "s", "key": ""}})),
            at("env[0].valueFrom.secretKeyRef.key", REQUIRED),
        ),
        adds("S9", "a secret", whole(json!({"prefix": "P_", "secretRef": {"name": "s"}})), vec![]),
        adds("S9", "none, told without an index", whole(json!({})), at("envFrom", INVALID)),
        adds(
            "S9",
            "both",
            whole(json!({"configMapRef": {"name": "c"}, "secretRef": {"name": "s"}})),
            at("envFrom", INVALID),
        ),
        adds(
            "S9",
            "no name",
            whole(json!({"secretRef": {"name": ""}})),
            at("envFrom[1].secretRef.name", REQUIRED),
        ),
    ]
}

fn mounts() -> Vec<Row> {
    let mounted = |id, what, mounts: Value, expected: Vec<(String, &'static str)>| {
        row(id, what)
            .spec(mounting(None))
            .dynamic(adding(json!({"volumeMounts": mounts})), &[])
            .causes(expected)
    };
    let v = |more: Value| with(json!({"name": "v", "mountPath": "/v"}), more);
    let device = |mount: Value, device: Value| {
        let claim = json!({"volumes": [{"name": "v", "emptyDir": {}},
            {"name": "p", "persistentVolumeClaim": {"claimName": "p"}}]});
        let holder = with(app(), json!({"volumeMounts": [mount], "volumeDevices": [device]}));
        with(spec(json!([holder])), claim)
    };
    let privileged = |propagation: &str| {
        let mount = json!({"name": "v", "mountPath": "/v", "mountPropagation": propagation});
        let holder = with(app(), json!({"securityContext": {"privileged": true}, "volumeMounts": [mount]}));
        with(mounting(None), spec(json!([holder])))
    };
    vec![
        mounted("S10", "name and path", json!([v(json!({}))]), vec![]),
        mounted(
            "S10",
            "no name, so no volume either",
            json!([{"name": "", "mountPath": "/v"}]),
            vec![
                (format!("{NEW}.volumeMounts[0].name"), REQUIRED),
                (format!("{NEW}.volumeMounts[0].name"), NOT_FOUND),
            ],
        ),
        // Only a whole pod can lack it: a patch's mounts are merged by their paths.
        row("S10", "no path").spec(mounting(None)).whole(
            |p| p["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": ""}]),
            &[("spec.containers[0].volumeMounts", FORBIDDEN), ("spec.containers[0].volumeMounts[0].mountPath", REQUIRED)],
        ),
        mounted("S11", "an existing volume", json!([v(json!({}))]), vec![]),
        mounted(
            "S11",
            "none of that name",
            json!([{"name": "x", "mountPath": "/x"}]),
            at("volumeMounts[0].name", NOT_FOUND),
        ),
        mounted("S12", "a slash makes another path", json!([v(json!({})), {"name": "w", "mountPath": "/v/"}]), vec![]),
        row("S12", "twice the same").create_spec(
            with(
                mounting(None),
                spec(json!([with(
                    app(),
                    json!({"volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/v"}]})
                )])),
            ),
            &[("spec.containers[0].volumeMounts[1].mountPath", INVALID)],
        ),
        row("S13", "apart from the devices").create_spec(
            device(json!({"name": "v", "mountPath": "/v"}), json!({"name": "p", "devicePath": "/dev/p"})),
            &[],
        ),
        row("S13", "the name of a device").create_spec(
            device(json!({"name": "p", "mountPath": "/v"}), json!({"name": "p", "devicePath": "/dev/p"})),
            &[
                ("spec.containers[0].volumeMounts[0].name", INVALID),
                ("spec.containers[0].volumeDevices[0].name", INVALID),
            ],
        ),
        row("S13", "the path of a device").create_spec(
            device(json!({"name": "v", "mountPath": "/dev/p"}), json!({"name": "p", "devicePath": "/dev/p"})),
            &[
                ("spec.containers[0].volumeMounts[0].mountPath", INVALID),
                ("spec.containers[0].volumeDevices[0].devicePath", INVALID),
            ],
        ),
        mounted("S14", "relative", json!([v(json!({"subPath": "a/b"}))]), vec![]),
        mounted("S14", "absolute", json!([v(json!({"subPath": "/a"}))]), at("volumeMounts.subPath", INVALID)),
        mounted("S14", "upwards", json!([v(json!({"subPath": "a/../b"}))]), at("volumeMounts.subPath", INVALID)),
        mounted(
            "S14",
            "an expression upwards",
            json!([v(json!({"subPathExpr": "../$(A)"}))]),
            at("volumeMounts.subPathExpr", INVALID),
        ),
        mounted("S15", "one of them", json!([v(json!({"subPathExpr": "$(A)"}))]), vec![]),
        mounted(
            "S15",
            "both",
            json!([v(json!({"subPath": "a", "subPathExpr": "b"}))]),
            at("volumeMounts[0].subPathExpr", INVALID),
        ),
        mounted("S16", "from the host", json!([v(json!({"mountPropagation": "HostToContainer"}))]), vec![]),
        mounted(
            "S16",
            "another",
            json!([v(json!({"mountPropagation": "Shared"}))]),
            at("volumeMounts.mountPropagation", NOT_SUPPORTED),
        ),
        row("S17", "a privileged one at creation").create_spec(privileged("Bidirectional"), &[]),
        mounted(
            "S17",
            "never for one that is added",
            json!([v(json!({"mountPropagation": "Bidirectional"}))]),
            at("volumeMounts.mountPropagation", FORBIDDEN),
        ),
        mounted("S18", "read-only", json!([v(json!({"readOnly": true, "recursiveReadOnly": "Enabled"}))]), vec![]),
        mounted(
            "S18",
            "without readOnly",
            json!([v(json!({"recursiveReadOnly": "Enabled"}))]),
            at("volumeMounts.recursiveReadOnly", FORBIDDEN),
        ),
        mounted(
            "S18",
            "with propagation",
            json!([v(json!({"readOnly": true, "recursiveReadOnly": "IfPossible", "mountPropagation": "HostToContainer"}))]),
            at("volumeMounts.recursiveReadOnly", FORBIDDEN),
        ),
        mounted(
            "S18",
            "another",
            json!([v(json!({"readOnly": true, "recursiveReadOnly": "Yes"}))]),
            at("volumeMounts.recursiveReadOnly", NOT_SUPPORTED),
        ),
    ]
}
