//! ValidatingAdmissionPolicies: KEP-5972's two samples as they are printed, and how each part of a policy works.

use super::*;

fn bound(policy: &str, actions: &[&str]) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "everywhere"}, "spec": {"policyName": policy, "validationActions": actions}})
}

fn sample(text: &str, policy: &str) -> Vec<Value> {
    let mut manifests = yaml(text);
    manifests.push(bound(policy, &["Deny"]));
    manifests
}

/// A policy over every change of a pod, with this spec on top.
fn policy(spec: Value) -> Value {
    let mut whole = json!({"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["pods", "pods/*"]}],
        "excludeResourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"],
            "resources": ["pods/status"]}]}});
    for (key, value) in spec.as_object().into_iter().flatten() {
        whole[key] = value.clone();
    }
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"}, "spec": whole})
}

/// A world with the running pod, then the policy.
fn under(spec: Value, actions: &[&str]) -> World {
    let mut world = world_with(ApiConfig::default(), plain(), &[]);
    assert!(world.create_any(policy(spec)).is_ok());
    assert!(world.create_any(bound("p", actions)).is_ok());
    world
}

fn validating(expression: &str) -> Value {
    json!({"validations": [{"expression": expression}]})
}

#[test]
fn the_keps_first_sample_forbids_containers_to_come_or_go_and_nothing_else() {
    let text = include_str!("policies/disable-dynamic-containers.yaml");
    let manifests = sample(text, "disable-dynamic-containers");
    let two = json!({"containers": [{"name": "app", "image": "i:1"}, {"name": "b", "image": "i:1"}]});
    let world = || world_with(ApiConfig::default(), two.clone(), &manifests);
    let status = refusal(world().dynamic(new_container()));
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(
        status.message,
        "pods \"web\" is forbidden: ValidatingAdmissionPolicy 'disable-dynamic-containers' with binding 'everywhere' \
         denied request: Dynamic Containers are disabled: adding or removing main containers is not allowed."
    );
    let removal = json!({"spec": {"containers": [{"name": "b", "$patch": "delete"}]}});
    assert_eq!(refusal(world().dynamic(removal)).code, 422);
    // The order of names is part of what it compares.
    let mut whole = world().pod();
    whole["spec"]["containers"].as_array_mut().expect("a list").reverse();
    assert_eq!(refusal(world().dynamic_whole(whole)).code, 422);
    let image = json!({"spec": {"containers": [{"name": "b", "image": "i:2"}]}});
    assert!(world().dynamic(image).is_ok());
    assert!(world().dynamic(json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}})).is_ok());
}

#[test]
fn the_keps_second_sample_keeps_all_but_its_listed_fields() {
    let manifests = sample(include_str!("policies/pod-intent-immutable.yaml"), "pod-intent-immutable");
    let spec = json!({"containers": [{"name": "app", "image": "i:1", "resources": {"requests": {"cpu": "1"}}}],
        "initContainers": [{"name": "init", "image": "i:1"}]});
    let world = || world_with(ApiConfig::default(), spec.clone(), &manifests);
    let container = |more: Value| {
        let mut entry = json!({"name": "app"});
        for (key, value) in more.as_object().into_iter().flatten() {
            entry[key] = value.clone();
        }
        json!({"spec": {"containers": [entry]}})
    };
    for (patch, message) in [
        (new_container(), "containers are immutable, except allowed fields"),
        (container(json!({"image": "i:2"})), "containers are immutable, except allowed fields"),
        (json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}), "pod spec field is immutable"),
    ] {
        let status = refusal(world().dynamic(patch.clone()));
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"), "{patch}");
        assert!(status.message.ends_with(message), "{patch}: {}", status.message);
    }
    for patch in [
        container(json!({"resources": {"requests": {"cpu": "2"}}})),
        json!({"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}),
        json!({"spec": {"activeDeadlineSeconds": 100}}),
        json!({"metadata": {"labels": {"a": "b"}}}),
    ] {
        let answer = world().dynamic(patch.clone());
        assert!(answer.is_ok(), "{patch}: {answer:?}");
    }
    // It covers the pod itself and every other subresource as well.
    let mut whole = world().pod();
    whole["spec"]["containers"][0]["image"] = json!("i:2");
    assert_eq!(refusal(world().update(whole)).code, 422);
    assert!(world().resize(container(json!({"resources": {"requests": {"cpu": "3"}}}))).is_ok());
    let debugger = json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "i:1"}]}});
    assert_eq!(refusal(world().ephemeral(debugger)).code, 422);
}

#[test]
fn expressions_see_what_kubernetes_gives_them() {
    for expression in [
        "object.metadata.name == 'web' && oldObject.metadata.name == object.metadata.name",
        "object.spec.containers.size() == 2 && oldObject.spec.containers.size() == 1",
        "request.operation == 'UPDATE' && request.subResource == 'dynamic' && request.resource.resource == 'pods'",
        "request.kind.kind == 'Pod' && request.namespace == 'default' && request.name == 'web'",
        "request.userInfo.username == 'test' && 'system:authenticated' in request.userInfo.groups",
        "request.dryRun == false",
        "namespaceObject.metadata.name == 'default'",
        "params == null",
        "has(object.spec.containers) && !has(object.spec.volumes)",
        "!('hostNetwork' in object.spec)",
        "object.spec.containers.all(c, c.image.startsWith('i:'))",
        "object.spec.containers.exists(c, c.name == 'new')",
        "object.metadata.generation == oldObject.metadata.generation + 1",
        "object.spec.containers[0].name.matches('^n.w$')",
        "object.metadata.?labels.orValue({}).size() == 0",
        "quantity('1500m').isGreaterThan(quantity('1')) && quantity('1Gi').compareTo(quantity('1024Mi')) == 0",
        "quantity('1').add(quantity('500m')) == quantity('1500m') && quantity('2').sub(3).sign() == -1",
        "quantity('2k').asInteger() == 2000 && !quantity('1m').isInteger() && quantity('500m').asApproximateFloat() == 0.5",
        "isQuantity('64Mi') && !isQuantity('64 MB') && quantity('-3').asInteger() == -3",
        "object.spec.containers.all(c, !has(c.resources.requests) || quantity(c.resources.requests.cpu).isLessThan(quantity('4')))",
        "'a1b22'.find('[0-9]+') == '1' && 'ab'.find('[0-9]') == '' && 'a1b22'.findAll('[0-9]+') == ['1', '22']",
        "'a1b22'.findAll('[0-9]+', 1) == ['1']",
        "object.spec.containers[0].image.split(':')[1].upperAscii() == '1' && 'a'.format([]) == 'a'",
    ] {
        let answer = under(validating(expression), &["Deny"]).dynamic(new_container());
        assert!(answer.is_ok(), "{expression}: {answer:?}");
    }
}

#[test]
fn a_deletion_has_no_object_and_a_creation_no_old_one() {
    let mut world = under(validating("request.operation != 'DELETE' || object == null"), &["Deny"]);
    assert!(world.delete(Some(0)).is_ok());
    let mut world =
        under(validating("request.operation != 'DELETE' || oldObject.metadata.name != 'web'"), &["Deny"]);
    assert_eq!(refusal(world.delete(None)).code, 422);
    let mut world = World::new(ApiConfig::default());
    assert!(world.create_any(policy(validating("oldObject == null && object.kind == 'Pod'"))).is_ok());
    assert!(world.create_any(bound("p", &["Deny"])).is_ok());
    assert!(world.create(pod(plain())).is_ok());
}

#[test]
fn variables_are_seen_by_those_after_them_and_tell_their_errors_to_who_asks() {
    let spec = |validation: &str| {
        json!({"variables": [
                {"name": "names", "expression": "object.spec.containers.map(c, c.name)"},
                {"name": "count", "expression": "variables.names.size()"},
                {"name": "broken", "expression": "object.spec.nothing"},
            ], "validations": [{"expression": validation}]})
    };
    assert!(under(spec("variables.count == 2"), &["Deny"]).dynamic(new_container()).is_ok());
    let status = refusal(under(spec("variables.broken == 1"), &["Deny"]).dynamic(new_container()));
    assert!(status.message.contains("resulted in error"), "{}", status.message);
    assert!(status.message.contains("variables.broken"), "{}", status.message);
}

#[test]
fn what_cannot_be_evaluated_is_decided_by_the_failure_policy() {
    for expression in [
        "object.spec.nothing == 1",
        "object.spec.",
        "object.spec.containers.transformList(i, c, i)",
        "nobodyHasThis(object)",
        "'text'",
    ] {
        let spec = |policy: &str| {
            let mut spec = validating(expression);
            spec["failurePolicy"] = json!(policy);
            spec
        };
        let status = refusal(under(spec("Fail"), &["Deny"]).dynamic(new_container()));
        assert_eq!(status.code, 422, "{expression}");
        assert!(status.message.contains("resulted in error"), "{}", status.message);
        assert!(under(spec("Ignore"), &["Deny"]).dynamic(new_container()).is_ok(), "{expression}");
    }
}

#[test]
fn match_conditions_are_asked_before_validations() {
    let spec = |condition: &str, policy: &str| {
        json!({"failurePolicy": policy, "matchConditions": [{"name": "only", "expression": condition}],
            "validations": [{"expression": "false"}]})
    };
    assert!(
        under(spec("request.userInfo.username == 'other'", "Fail"), &["Deny"])
            .dynamic(new_container())
            .is_ok()
    );
    assert_eq!(refusal(under(spec("true", "Fail"), &["Deny"]).dynamic(new_container())).code, 422);
    let status = refusal(under(spec("object.nothing", "Fail"), &["Deny"]).dynamic(new_container()));
    assert!(status.message.contains("matchCondition \"only\""), "{}", status.message);
    assert!(under(spec("object.nothing", "Ignore"), &["Deny"]).dynamic(new_container()).is_ok());
}

#[test]
fn a_refusal_has_the_validations_reason_and_the_best_message_there_is() {
    let validation = |more: Value| {
        let mut one = json!({"expression": "1 == 2"});
        for (key, value) in more.as_object().into_iter().flatten() {
            one[key] = value.clone();
        }
        json!({"validations": [one]})
    };
    for (more, code, message) in [
        (json!({}), 422, "failed expression: 1 == 2"),
        (json!({"message": "no", "reason": "Forbidden"}), 403, "no"),
        (json!({"message": "no", "reason": "Unauthorized"}), 401, "no"),
        (json!({"message": "no", "reason": "RequestEntityTooLarge"}), 413, "no"),
        (json!({"message": "no", "messageExpression": "'not ' + object.metadata.name"}), 422, "not web"),
        (json!({"message": "no", "messageExpression": "object.nothing"}), 422, "no"),
        (json!({"message": "no", "messageExpression": "1"}), 422, "no"),
    ] {
        let status = refusal(under(validation(more.clone()), &["Deny"]).dynamic(new_container()));
        assert_eq!(status.code, code, "{more}");
        assert!(
            status.message.ends_with(&format!("denied request: {message}")),
            "{more}: {}",
            status.message
        );
    }
}

#[test]
fn only_deny_refuses() {
    let no = || validating("false");
    assert!(under(no(), &["Warn"]).dynamic(new_container()).is_ok());
    assert!(under(no(), &["Audit"]).dynamic(new_container()).is_ok());
    assert!(under(no(), &["Warn", "Audit"]).dynamic(new_container()).is_ok());
    assert_eq!(refusal(under(no(), &["Audit", "Deny"]).dynamic(new_container())).code, 422);
}

#[test]
fn params_are_looked_up_as_the_binding_says() {
    let mut world = world_with(ApiConfig::default(), plain(), &[]);
    let limit = |name: &str, most: i64| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"use": "limit"}},
            "data": {"most": most.to_string()}})
    };
    let mut spec =
        json!({"validations": [{"expression": "object.spec.containers.size() <= int(params.data.most)"}]});
    spec["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
    assert!(world.create_any(policy(spec)).is_ok());
    let binding = |reference: Value| {
        let mut binding = bound("p", &["Deny"]);
        binding["spec"]["paramRef"] = reference;
        binding
    };
    let by_name = |action: &str| binding(json!({"name": "limit", "parameterNotFoundAction": action}));
    assert!(world.create_any(by_name("Deny")).is_ok());
    let status = refusal(world.dynamic(new_container()));
    assert!(status.message.contains("no params found"), "{}", status.message);
    assert!(world.update(by_name("Allow")).is_ok());
    assert!(world.dynamic(json!({"metadata": {"labels": {"a": "b"}}})).is_ok());
    assert!(world.create_any(limit("limit", 1)).is_ok());
    assert_eq!(refusal(world.dynamic(new_container())).code, 422);
    // By selector each of them is asked; one that refuses is enough.
    let selector = json!({"selector": {"matchLabels": {"use": "limit"}}, "parameterNotFoundAction": "Deny"});
    assert!(world.update(binding(selector)).is_ok());
    assert!(world.create_any(limit("larger", 9)).is_ok());
    assert_eq!(refusal(world.dynamic(new_container())).code, 422);
    assert!(world.update(limit("limit", 2)).is_ok());
    let answer = world.dynamic(new_container());
    assert!(answer.is_ok(), "{answer:?}");
}

#[test]
fn a_policy_never_sees_a_secrets_bytes() {
    // A journal keeps secrets sealed; a decision that depends on their bytes couldn't be folded again (S13).
    let mut world = World::new(ApiConfig::default());
    let mut secrets = policy(validating("object.data.k == null"));
    secrets["spec"]["matchConstraints"] = json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
        "operations": ["CREATE"], "resources": ["secrets"]}]});
    assert!(world.create_any(secrets).is_ok());
    assert!(world.create_any(bound("p", &["Deny"])).is_ok());
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "v"}});
    let answer = world.create_any(secret);
    assert!(answer.is_ok(), "{answer:?}");
}

#[test]
fn maps_are_walked_in_the_order_of_their_keys() {
    let expression = "object.metadata.labels.map(k, k) == ['a', 'b', 'c', 'd', 'e', 'f', 'g']";
    let mut labels = json!({});
    for key in ["g", "c", "a", "f", "b", "e", "d"] {
        labels[key] = json!("1");
    }
    for _ in 0..5 {
        let answer =
            under(validating(expression), &["Deny"]).dynamic(json!({"metadata": {"labels": labels}}));
        assert!(answer.is_ok(), "{answer:?}");
    }
}
