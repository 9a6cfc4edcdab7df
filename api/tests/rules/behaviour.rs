//! S32–S43: resources, probes, hooks, restarts, security, and the node's status writes.

use super::*;

pub fn rows() -> Vec<Row> {
    [amounts(), envelope(), probes_and_hooks(), restarts(), security(), statuses()]
        .into_iter()
        .flatten()
        .collect()
}

/// A pod with the container `new` at index 1.
fn creates(
    id: &'static str,
    what: &'static str,
    more: Value,
    field: &str,
    reason: Option<&'static str>,
) -> Row {
    let expected = reason.into_iter().map(|r| (format!("spec.containers[1]{field}"), r)).collect();
    row(id, what).create_spec(spec(json!([app(), with(c("new"), more)])), &[]).causes(expected)
}

fn good(id: &'static str, what: &'static str, more: Value) -> Row {
    creates(id, what, more, "", None)
}

fn amounts() -> Vec<Row> {
    let asks =
        |requests: Value, limits: Value| json!({"resources": {"requests": requests, "limits": limits}});
    let none = || json!({});
    vec![
        good("S32", "within limits", asks(json!({"cpu": "1", "memory": "1Gi"}), json!({"cpu": "2"}))),
        creates(
            "S32",
            "no such resource",
            asks(json!({"cpus": "1"}), none()),
            ".resources.requests[cpus]",
            Some(INVALID),
        ),
        creates(
            "S32",
            "negative",
            asks(json!({"cpu": "-1"}), none()),
            ".resources.requests[cpu]",
            Some(INVALID),
        ),
        creates("S32", "a limit negative", asks(json!({"cpu": "-2"}), json!({"cpu": "-1"})), "", None)
            .causes(vec![
                ("spec.containers[1].resources.limits[cpu]".to_owned(), INVALID),
                ("spec.containers[1].resources.requests[cpu]".to_owned(), INVALID),
            ]),
        creates(
            "S32",
            "above the limit",
            asks(json!({"cpu": "2"}), json!({"cpu": "1"})),
            ".resources.requests",
            Some(INVALID),
        ),
        good(
            "S32",
            "a device, both equal",
            asks(json!({"example.com/gpu": "1"}), json!({"example.com/gpu": "1"})),
        ),
        creates(
            "S32",
            "a device, below its limit",
            asks(json!({"example.com/gpu": "1"}), json!({"example.com/gpu": "2"})),
            ".resources.requests",
            Some(INVALID),
        ),
        creates(
            "S32",
            "a device without a limit",
            asks(json!({"example.com/gpu": "1"}), none()),
            ".resources.limits",
            Some(REQUIRED),
        ),
        creates(
            "S32",
            "half a device",
            asks(json!({"example.com/gpu": "500m"}), json!({"example.com/gpu": "500m"})),
            "",
            None,
        )
        .causes(vec![
            ("spec.containers[1].resources.limits[example.com/gpu]".to_owned(), INVALID),
            ("spec.containers[1].resources.requests[example.com/gpu]".to_owned(), INVALID),
        ]),
        good(
            "S32",
            "hugepages and memory",
            asks(json!({"memory": "1Gi"}), json!({"memory": "1Gi", "hugepages-2Mi": "4Mi"})),
        ),
        creates(
            "S32",
            "hugepages alone",
            asks(none(), json!({"hugepages-2Mi": "4Mi"})),
            ".resources",
            Some(FORBIDDEN),
        ),
    ]
}

fn envelope() -> Vec<Row> {
    let held = |pod: Value, container: Value| {
        let sized = with(app(), json!({"resources": container}));
        with(
            spec(json!([sized, with(c("b"), json!({"resources": {"requests": {"cpu": "1"}}}))])),
            json!({"resources": pod}),
        )
    };
    vec![
        row("S33", "the sum fits")
            .create_spec(held(json!({"requests": {"cpu": "2"}}), json!({"requests": {"cpu": "1"}})), &[]),
        row("S33", "the sum does not").create_spec(
            held(json!({"requests": {"cpu": "2"}}), json!({"requests": {"cpu": "1500m"}})),
            &[("spec.resources.requests[cpu]", INVALID)],
        ),
        row("S33", "overfilled by a container that is added")
            .spec(held(json!({"requests": {"cpu": "2"}}), json!({})))
            .dynamic(adding(requests("2")), &[("spec.resources.requests[cpu]", INVALID)]),
        row("S34", "within the pod's")
            .create_spec(held(json!({"limits": {"cpu": "2"}}), json!({"limits": {"cpu": "1"}})), &[]),
        row("S34", "above the pod's").create_spec(
            held(
                json!({"limits": {"cpu": "4"}, "requests": {"cpu": "4"}}),
                json!({"limits": {"cpu": "5"}, "requests": {"cpu": "1"}}),
            ),
            &[("spec.resources.containers[0][cpu].limits", INVALID)],
        ),
    ]
}

fn probes_and_hooks() -> Vec<Row> {
    let tcp = || json!({"tcpSocket": {"port": 80}});
    let probe = |name: &str, more: Value| json!({name: with(tcp(), more)});
    let hook = |hook: Value| json!({"lifecycle": {"preStop": hook}});
    let signal = |os: Value| {
        with(spec(json!([with(app(), json!({"lifecycle": {"stopSignal": "SIGUSR1"}}))])), json!({"os": os}))
    };
    vec![
        good(
            "S35",
            "each probe",
            json!({"livenessProbe": tcp(), "readinessProbe": {"httpGet": {"port": "http"}},
            "startupProbe": {"grpc": {"port": 80}}}),
        ),
        creates(
            "S35",
            "liveness succeeds at once",
            probe("livenessProbe", json!({"successThreshold": 2})),
            ".livenessProbe.successThreshold",
            Some(INVALID),
        ),
        creates(
            "S35",
            "startup too",
            probe("startupProbe", json!({"successThreshold": 2})),
            ".startupProbe.successThreshold",
            Some(INVALID),
        ),
        good("S35", "readiness may need more", probe("readinessProbe", json!({"successThreshold": 2}))),
        creates(
            "S35",
            "readiness kills nobody",
            probe("readinessProbe", json!({"terminationGracePeriodSeconds": 5})),
            ".readinessProbe.terminationGracePeriodSeconds",
            Some(INVALID),
        ),
        creates(
            "S35",
            "negative",
            probe("livenessProbe", json!({"periodSeconds": -1})),
            ".livenessProbe.periodSeconds",
            Some(INVALID),
        ),
        creates(
            "S35",
            "no handler",
            json!({"livenessProbe": {"periodSeconds": 1}}),
            ".livenessProbe",
            Some(REQUIRED),
        ),
        creates(
            "S35",
            "two handlers",
            probe("livenessProbe", json!({"exec": {"command": ["true"]}})),
            ".livenessProbe.tcpSocket",
            Some(FORBIDDEN),
        ),
        creates(
            "S35",
            "port 0",
            json!({"livenessProbe": {"tcpSocket": {"port": 0}}}),
            ".livenessProbe.tcpSocket.port",
            Some(INVALID),
        ),
        creates(
            "S35",
            "no command",
            json!({"livenessProbe": {"exec": {}}}),
            ".livenessProbe.exec.command",
            Some(REQUIRED),
        ),
        good("S36", "a sleep within the grace", hook(json!({"sleep": {"seconds": 30}}))),
        creates(
            "S36",
            "a longer one",
            hook(json!({"sleep": {"seconds": 31}})),
            ".lifecycle.preStop.sleep",
            Some(INVALID),
        ),
        creates("S36", "no handler", hook(json!({})), ".lifecycle.preStop", Some(REQUIRED)),
        creates(
            "S36",
            "two handlers",
            hook(json!({"exec": {"command": ["a"]}, "sleep": {"seconds": 1}})),
            ".lifecycle.preStop.sleep",
            Some(FORBIDDEN),
        ),
        row("S36", "a signal of linux").create_spec(signal(json!({"name": "linux"})), &[]),
        row("S36", "a signal of windows").create_spec(
            signal(json!({"name": "windows"})),
            &[("spec.containers[0].lifecycle.stopSignal", NOT_SUPPORTED)],
        ),
        row("S36", "a signal of no system")
            .create_spec(signal(json!(null)), &[("spec.containers[0].lifecycle.stopSignal", FORBIDDEN)]),
        row("S36", "a hook of an init container").create_spec(
            with(
                spec(json!([app()])),
                json!({"initContainers": [with(c("i"), hook(json!({"sleep": {"seconds": 1}})))]}),
            ),
            &[("spec.initContainers[0].lifecycle", FORBIDDEN)],
        ),
    ]
}

fn restarts() -> Vec<Row> {
    let rule = |action: &str, operator: &str, codes: Vec<i64>| {
        json!({"restartPolicy": "Never", "restartPolicyRules": [{"action": action,
            "exitCodes": {"operator": operator, "values": codes}}]})
    };
    let rules = |count: usize| {
        let one = json!({"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}});
        json!({"restartPolicy": "Never", "restartPolicyRules": vec![one; count]})
    };
    let gate_off = |row: Row| row.config(|c| c.container_restart_rules = false);
    vec![
        good("S37", "a policy and a rule", rule("Restart", "In", vec![42])),
        good("S37", "twenty rules", rules(20)),
        creates("S37", "twenty-one", rules(21), ".restartPolicyRules", Some(TOO_LONG)),
        creates(
            "S37",
            "another policy",
            json!({"restartPolicy": "Maybe"}),
            ".restartPolicy",
            Some(NOT_SUPPORTED),
        ),
        creates(
            "S37",
            "another action",
            rule("Stop", "In", vec![1]),
            ".restartPolicyRules[0].action",
            Some(NOT_SUPPORTED),
        ),
        creates(
            "S37",
            "another operator",
            rule("Restart", "Is", vec![1]),
            ".restartPolicyRules[0].exitCodes.operator",
            Some(NOT_SUPPORTED),
        ),
        creates(
            "S37",
            "256 exit codes",
            rule("Restart", "In", (0..256).collect()),
            ".restartPolicyRules[0].exitCodes.values",
            Some(TOO_LONG),
        ),
        creates(
            "S37",
            "rules without a policy",
            with(rules(1), json!({"restartPolicy": null})),
            ".restartPolicy",
            Some(REQUIRED),
        ),
        gate_off(good("S37", "the gate is off and nothing asked", json!({}))),
        gate_off(creates(
            "S37",
            "the gate is off",
            json!({"restartPolicy": "Never"}),
            ".restartPolicy",
            Some(FORBIDDEN),
        )),
    ]
}

fn security() -> Vec<Row> {
    let context = |context: Value| json!({"securityContext": context});
    let at = |field: &str| format!(".securityContext{field}");
    let of_linux =
        |options: Value| with(spec(json!([with(app(), context(options))])), json!({"os": {"name": "linux"}}));
    let disallowed = |row: Row| row.config(|c| c.allow_privileged = false);
    let own_users = with(
        spec(json!([with(app(), context(json!({"procMount": "Unmasked"})))])),
        json!({"hostUsers": false}),
    );
    let confined = json!({"allowPrivilegeEscalation": false, "capabilities": {"add": ["CAP_SYS_ADMIN"]}});
    vec![
        good("S38", "the largest uid", context(json!({"runAsUser": 2147483647_i64, "runAsGroup": 0}))),
        creates("S38", "uid -1", context(json!({"runAsUser": -1})), &at(".runAsUser"), Some(INVALID)),
        creates(
            "S38",
            "gid 2^31",
            context(json!({"runAsGroup": 2147483648_i64})),
            &at(".runAsGroup"),
            Some(INVALID),
        ),
        row("S38", "unmasked proc with own users").create_spec(own_users, &[]),
        creates(
            "S38",
            "unmasked proc",
            context(json!({"procMount": "Unmasked"})),
            &at(".procMount"),
            Some(INVALID),
        ),
        creates(
            "S38",
            "no escalation, but privileged",
            context(json!({"allowPrivilegeEscalation": false, "privileged": true})),
            &at(""),
            Some(INVALID),
        ),
        creates("S38", "no escalation, but an admin", context(confined), &at(""), Some(INVALID)),
        creates(
            "S38",
            "a profile without its file",
            context(json!({"seccompProfile": {"type": "Localhost"}})),
            &at(".seccompProfile.localhostProfile"),
            Some(REQUIRED),
        ),
        disallowed(good("S39", "not privileged", context(json!({"privileged": false})))),
        disallowed(creates(
            "S39",
            "privileged",
            context(json!({"privileged": true})),
            &at(".privileged"),
            Some(FORBIDDEN),
        )),
        row("S40", "none of windows").create_spec(of_linux(json!({"runAsUser": 1})), &[]),
        row("S40", "options of windows").create_spec(
            of_linux(json!({"windowsOptions": {"runAsUserName": "a"}})),
            &[("spec.containers[0].securityContext.windowsOptions", FORBIDDEN)],
        ),
    ]
}

fn statuses() -> Vec<Row> {
    let ended = |s: &mut Value| {
        s["containerStatuses"] = json!([{"name": "app", "state": {"terminated": {"exitCode": 1}}}]);
    };
    let two_ended = |s: &mut Value| {
        s["containerStatuses"] = json!([{"name": "other", "state": {"running": {}}, "resources": {}},
            {"name": "app", "state": {"terminated": {"exitCode": 1}}, "resources": {}}]);
    };
    let back = |s: &mut Value| {
        s["containerStatuses"] = json!([{"name": "app", "state": {"running": {}}, "resources": {}}]);
    };
    let never = || with(spec(json!([app()])), json!({"restartPolicy": "Never"}));
    vec![
        row("S41", "a policy that restarts").status(ended).then_status(back, OK),
        row("S41", "a policy that doesn't, told at the stored index")
            .spec(never())
            .status(two_ended)
            .then_status(back, &[("status.containerStatuses[1].state", FORBIDDEN)]),
        row("S41", "a name no longer in the spec")
            .spec(two())
            .status(|s| {
                s["containerStatuses"] = json!([{"name": "b", "state": {"terminated": {"exitCode": 1}}}]);
            })
            .before(vec![removing("b")])
            .then_status(
                |s| {
                    s["observedGeneration"] = json!(2);
                    s["containerStatuses"] =
                        json!([{"name": "b", "state": {"running": {}}, "resources": {}}]);
                },
                &[("status.containerStatuses[0].state", FORBIDDEN)],
            ),
        row("S42", "the same class").then_status(|s| s["qosClass"] = json!("BestEffort"), OK),
        row("S42", "another class")
            .then_status(|s| s["qosClass"] = json!("Burstable"), &[("status.qosClass", INVALID)]),
        row("S43", "twice the same name, and an unknown one").then_status(
            |s| {
                let one = json!({"name": "app", "state": {"running": {}}, "resources": {}});
                s["containerStatuses"] = json!([one, one, {"name": "unknown", "state": {"waiting": {}}}]);
            },
            OK,
        ),
    ]
}
