//! PodSecurity at the levels baseline and restricted, over the whole new pod (api-side §2.4).

use super::*;

fn namespace(level: &str, version: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {
        "pod-security.kubernetes.io/enforce": level, "pod-security.kubernetes.io/enforce-version": version}}})
}

/// A container that the restricted level allows.
fn confined(name: &str, more: Value) -> Value {
    let mut context = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    for (key, value) in more.as_object().into_iter().flatten() {
        context[key] = value.clone();
    }
    json!({"name": name, "image": "i:1", "securityContext": context})
}

/// What the level says of a new pod; nothing if it has nothing against it.
fn said(level: &str, version: &str, spec: Value) -> Option<String> {
    let mut world = World::new(ApiConfig::default());
    assert!(world.create_any(namespace(level, version)).is_ok());
    match world.create(pod(spec)) {
        Response::Ok { .. } => None,
        Response::Rejected(status) => {
            assert_eq!(status.code, 403, "{}", status.message);
            Some(status.message)
        }
    }
}

#[test]
fn baseline_refuses_what_breaks_out() {
    let with =
        |context: Value| json!({"containers": [{"name": "a", "image": "i:1", "securityContext": context}]});
    let of_pod = |more: Value| {
        let mut spec = plain();
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        spec
    };
    for (spec, violation) in [
        (
            with(json!({"privileged": true})),
            "privileged (container \"a\" must not set securityContext.privileged=true)",
        ),
        (
            of_pod(json!({"hostNetwork": true, "hostPID": true})),
            "host namespaces (hostNetwork=true, hostPID=true)",
        ),
        (
            of_pod(json!({"volumes": [{"name": "h", "hostPath": {"path": "/"}}]})),
            "hostPath volumes (volume \"h\")",
        ),
        (
            json!({"containers": [{"name": "a", "image": "i:1", "ports": [{"containerPort": 80, "hostPort": 80}]}]}),
            "hostPort (container \"a\" uses hostPort 80)",
        ),
        (
            with(json!({"capabilities": {"add": ["NET_RAW", "CHOWN"]}})),
            "non-default capabilities (container \"a\" must not include \"NET_RAW\" in securityContext.capabilities.add)",
        ),
        (
            with(json!({"seccompProfile": {"type": "Unconfined"}})),
            "seccompProfile (container \"a\" must not set",
        ),
        (
            with(json!({"appArmorProfile": {"type": "Unconfined"}})),
            "forbidden AppArmor profile (container \"a\"",
        ),
        (with(json!({"seLinuxOptions": {"type": "spc_t"}})), "seLinuxOptions (type \"spc_t\")"),
        (with(json!({"seLinuxOptions": {"user": "root"}})), "seLinuxOptions (user may not be set)"),
        (
            of_pod(json!({"hostUsers": false, "containers": [{"name": "a", "image": "i:1",
                "securityContext": {"procMount": "Unmasked"}}]})),
            "",
        ),
        (
            of_pod(json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}})),
            "forbidden sysctls (kernel.msgmax)",
        ),
        (
            json!({"containers": [{"name": "a", "image": "i:1",
                "livenessProbe": {"tcpSocket": {"port": 80, "host": "10.0.0.1"}}}]}),
            "probe or lifecycle host (container \"a\"",
        ),
        (with(json!({"capabilities": {"add": ["NET_BIND_SERVICE"]}, "runAsUser": 0})), ""),
    ] {
        let told = said("baseline", "latest", spec.clone());
        match told {
            None => assert!(violation.is_empty(), "{spec} is allowed"),
            Some(message) => {
                assert!(!violation.is_empty(), "{spec}: {message}");
                assert!(message.contains("violates PodSecurity \"baseline:latest\": "), "{message}");
                assert!(message.contains(violation), "{message}\nlacks\n{violation}");
            }
        }
        assert_eq!(said("privileged", "latest", spec), None);
    }
}

#[test]
fn restricted_asks_for_least_rights_and_says_all_that_is_missing() {
    assert_eq!(said("restricted", "latest", json!({"containers": [confined("a", json!({}))]})), None);
    assert_eq!(
        said("restricted", "latest", plain()).expect("refused"),
        "pods \"web\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false \
         (container \"app\" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities \
         (container \"app\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or \
         container \"app\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container \"app\" must \
         set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")"
    );
    for (more, violation) in [
        (json!({"runAsUser": 0}), "runAsUser=0 (container \"a\" must not set runAsUser=0)"),
        (
            json!({"capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}),
            "unrestricted capabilities (container \"a\" must not include \"CHOWN\"",
        ),
        (
            json!({"runAsNonRoot": false}),
            "runAsNonRoot != true (container \"a\" must not set securityContext.runAsNonRoot=false)",
        ),
    ] {
        let message =
            said("restricted", "latest", json!({"containers": [confined("a", more)]})).expect("refused");
        assert!(message.contains(violation), "{message}");
    }
    // All five volume types of KEP-6395 are on its list.
    let volumes = json!([{"name": "a", "configMap": {"name": "c"}}, {"name": "b", "secret": {"secretName": "s"}},
        {"name": "c", "projected": {"sources": []}}, {"name": "d", "emptyDir": {}}, {"name": "e", "image": {"reference": "i:1"}}]);
    assert_eq!(
        said("restricted", "latest", json!({"containers": [confined("a", json!({}))], "volumes": volumes})),
        None
    );
    let nfs = json!([{"name": "n", "nfs": {"server": "s", "path": "/"}}]);
    let message =
        said("restricted", "latest", json!({"containers": [confined("a", json!({}))], "volumes": nfs}));
    assert!(message.expect("refused").contains("volume \"n\" uses restricted volume type \"nfs\""));
}

#[test]
fn an_older_version_knows_less() {
    let probe = json!({"containers": [{"name": "a", "image": "i:1", "livenessProbe": {"httpGet": {"port": 80, "host": "h"}}}]});
    assert_eq!(said("baseline", "v1.33", probe.clone()), None);
    assert!(said("baseline", "v1.34", probe).is_some());
}

#[test]
fn swapping_a_container_for_another_of_the_same_image_is_no_way_around_it() {
    // api-side §8 item 3.
    for more in [json!({"capabilities": {"drop": ["ALL"], "add": ["NET_RAW"]}}), json!({"runAsUser": 0})] {
        let spec = json!({"containers": [confined("app", json!({})), confined("a", json!({}))]});
        let mut world = world_with(ApiConfig::default(), spec, &[namespace("restricted", "latest")]);
        let mut whole = world.pod();
        whole["spec"]["containers"][1] = confined("b", more.clone());
        let status = refusal(world.dynamic_whole(whole));
        assert_eq!(status.code, 403, "{}", status.message);
        assert!(status.message.contains("violates PodSecurity \"restricted:latest\""), "{}", status.message);
        let mut whole = world.pod();
        whole["spec"]["containers"][1] = confined("b", json!({}));
        assert!(world.dynamic_whole(whole).is_ok(), "an equal one may come");
    }
}

#[test]
fn a_pod_that_was_there_before_the_level_may_be_relabelled_but_not_grown() {
    let mut world = world_with(ApiConfig::default(), plain(), &[]);
    assert!(world.create_any(namespace("restricted", "latest")).is_ok());
    let mut whole = world.pod();
    whole["metadata"]["labels"] = json!({"a": "b"});
    assert!(world.update(whole).is_ok(), "insignificant on the pod itself");
    assert_eq!(
        refusal(world.dynamic(adding(confined("new", json!({}))))).code,
        403,
        "the old one is looked at too"
    );
}
