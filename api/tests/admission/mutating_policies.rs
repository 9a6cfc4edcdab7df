//! MutatingAdmissionPolicies: apply configurations and JSON patches, their order, what they may not do, and the second round.

use super::coverage::rule;
use super::*;
use nodefold_api::{ApiEvent, Body, Request};

fn policy(name: &str, spec: Value) -> Vec<Value> {
    let mut whole =
        json!({"matchConstraints": {"resourceRules": [rule(&["CREATE", "UPDATE"], &["pods", "pods/*"])]}});
    for (key, value) in spec.as_object().into_iter().flatten() {
        whole[key] = value.clone();
    }
    let version = "admissionregistration.k8s.io/v1beta1";
    vec![
        json!({"apiVersion": version, "kind": "MutatingAdmissionPolicy", "metadata": {"name": name}, "spec": whole}),
        json!({"apiVersion": version, "kind": "MutatingAdmissionPolicyBinding", "metadata": {"name": format!("{name}-binding")},
            "spec": {"policyName": name}}),
    ]
}

fn applying(expression: &str) -> Value {
    json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}})
}

fn patching(expression: &str) -> Value {
    json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}})
}

/// A world with the running pod, then the policies.
fn under(policies: &[Vec<Value>]) -> World {
    let mut world = world_with(ApiConfig::default(), plain(), &[]);
    for manifest in policies.iter().flatten() {
        let answer = world.create_any(manifest.clone());
        assert!(answer.is_ok(), "{answer:?}");
    }
    world
}

fn doing(mutation: Value) -> World {
    under(&[policy("p", json!({"mutations": [mutation]}))])
}

/// The sidecar of Kubernetes' documentation, into a pod that is created.
#[test]
fn the_documented_sample_injects_a_sidecar() {
    let sample = include_str!("policies/sidecar.yaml");
    let mut world = World::new(ApiConfig::default());
    for manifest in yaml(sample) {
        let answer = world.create_any(manifest);
        assert!(answer.is_ok(), "{answer:?}");
    }
    assert!(world.create(pod(plain())).is_ok());
    let init = &world.pod()["spec"]["initContainers"][0];
    assert_eq!((&init["name"], &init["restartPolicy"]), (&json!("mesh-proxy"), &json!("Always")));
    assert_eq!(init["imagePullPolicy"], "IfNotPresent", "defaults come after it");
    assert_eq!(init["args"], json!(["proxy", "sidecar"]));
}

#[test]
fn an_apply_configuration_merges_lists_by_their_keys() {
    let expression = "Object{metadata: Object.metadata{labels: {'team': oldObject.metadata.name}}, spec: Object.spec{containers: \
        object.spec.containers.filter(c, !has(c.resources) || !has(c.resources.requests)).map(c, \
        Object.spec.containers{name: c.name, terminationMessagePolicy: 'FallbackToLogsOnError'})}}";
    let mut world = doing(applying(&expression.replace("\\\n", " ")));
    let answer = world.dynamic(new_container());
    // `app` has its message policy already, and may not change.
    let fields: Vec<String> = answer.causes().iter().map(|cause| cause.field.clone()).collect();
    assert_eq!(fields, ["spec.containers[1]"], "{answer:?}");
    let only_new = expression.replace("!has(c.resources) || !has(c.resources.requests)", "c.name == 'new'");
    let mut world = doing(applying(&only_new));
    let answer = world.dynamic(new_container());
    assert!(answer.is_ok(), "{answer:?}");
    let stored = world.pod();
    assert_eq!(stored["metadata"]["labels"]["team"], "web");
    assert_eq!(stored["spec"]["containers"][0]["terminationMessagePolicy"], "FallbackToLogsOnError");
    assert_eq!(stored["spec"]["containers"][0]["image"], "i:1");
}

#[test]
fn a_json_patch_is_made_of_operations() {
    let expression = "[JSONPatch{op: 'test', path: '/spec/containers/0/name', value: 'new'}, \
        JSONPatch{op: 'add', path: '/metadata/annotations', value: {'a': 'b'}}, \
        JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('example.com/x'), value: 'z'}, \
        JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'side', image: 's:1', \
            env: [Object.spec.containers.env{name: 'A', value: string(1 + 1)}]}}]";
    let mut world = doing(patching(expression));
    let answer = world.dynamic(new_container());
    assert!(answer.is_ok(), "{answer:?}");
    let stored = world.pod();
    assert_eq!(stored["metadata"]["annotations"], json!({"a": "b", "example.com/x": "z"}));
    assert_eq!(stored["spec"]["containers"][2]["env"], json!([{"name": "A", "value": "2"}]));
    // A test that fails says that there is nothing to do.
    let mut world = doing(patching(
        "[JSONPatch{op: 'test', path: '/spec/containers/0/name', value: 'other'}, \
        JSONPatch{op: 'remove', path: '/spec/containers/0'}]",
    ));
    assert!(world.dynamic(new_container()).is_ok());
    assert_eq!(world.pod()["spec"]["containers"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_a_policy_may_not_do_is_refused_in_upstream_s_words() {
    for (mutation, told) in [
        (
            applying(
                "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'new', args: ['x']}]}}",
            ),
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: \
             .spec.containers[0].args",
        ),
        (
            applying("Object{spec: Object.wrong{hostname: 'x'}}"),
            "type mismatch: unexpected type name \"Object.wrong\", expected \"Object.spec\", which matches the field path",
        ),
        (applying("{'spec': 1}"), "unsupported return type from ApplyConfiguration expression: map"),
        (patching("'x'"), "type mismatch: JSONPatchType.expression should evaluate to array"),
        (patching("[1]"), "type conversion error from 'int' to 'JSONPatch'"),
        (patching("[JSONPatch{op: 'add', path: '/x', valeu: 1}]"), "undefined field 'valeu'"),
        (patching("[JSONPatch{op: 'remove', path: '/nothing'}]"), "JSON Patch: "),
        (
            applying("Object{spec: Object.spec{hostname: object.nothing}}"),
            "resulted in error: No such key: nothing",
        ),
        (applying("Other{}"), "the expression needs what this CEL doesn't have: objects of type Other"),
    ] {
        let status = refusal(doing(mutation.clone()).dynamic(new_container()));
        assert_eq!((status.code, status.reason.as_str()), (403, "Invalid"), "{mutation}");
        let head = "policy 'p' with binding 'p-binding' denied request: ";
        let why = status.message.strip_prefix(head).unwrap_or_else(|| panic!("{}", status.message));
        assert!(why.contains(told), "{mutation}: {why}");
        let mut ignoring = policy("p", json!({"mutations": [mutation], "failurePolicy": "Ignore"}));
        ignoring[0]["spec"]["failurePolicy"] = json!("Ignore");
        assert!(under(&[ignoring]).dynamic(new_container()).is_ok());
    }
    // Whatever a policy makes of a request is held to the rules.
    let privileged = "Object{spec: Object.spec{containers: [Object.spec.containers{name: 'new', \
        securityContext: Object.spec.containers.securityContext{privileged: true}}]}}";
    let status = refusal(doing(applying(privileged)).dynamic(new_container()));
    assert_eq!((status.code, &*status.causes[0].rule), (422, "C8"));
}

#[test]
fn each_failure_is_a_cause_and_the_first_is_the_message() {
    let broken = |name: &str| policy(name, json!({"mutations": [applying("object.nothing")]}));
    let status = refusal(under(&[broken("a"), broken("b")]).dynamic(new_container()));
    assert!(status.message.starts_with("policy 'a'"), "{}", status.message);
    assert_eq!(status.causes.len(), 2);
    assert!(status.causes[1].message.starts_with("policy 'b'"), "{:?}", status.causes);
}

#[test]
fn conditions_variables_and_params_are_a_policy_s() {
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}, "data": {"word": "hello"}});
    let mut manifests = policy(
        "p",
        json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConditions": [{"name": "few", "expression": "object.spec.containers.size() < 3"}],
            "variables": [{"name": "word", "expression": "params.data.word"}],
            "mutations": [applying("Object{metadata: Object.metadata{labels: {'word': variables.word}}}")]}),
    );
    manifests[1]["spec"]["paramRef"] = json!({"name": "words", "parameterNotFoundAction": "Deny"});
    let mut world = under(&[vec![config], manifests.clone()]);
    assert!(world.dynamic(new_container()).is_ok());
    assert_eq!(world.pod()["metadata"]["labels"]["word"], "hello");
    let more = adding(json!({"name": "third", "image": "i:1"}));
    let mut without = under(&[manifests]);
    let status = refusal(without.dynamic(more));
    assert!(status.message.contains("failed to configure binding: no params found"), "{}", status.message);
}

#[test]
fn policies_come_before_webhooks_and_each_sees_what_was_made_before_it() {
    let label = |name: &str, value: &str| {
        policy(
            name,
            json!({"mutations": [applying(&format!(
                "Object{{metadata: Object.metadata{{annotations: {{'order': (has(object.metadata.annotations) ? \
                 object.metadata.annotations.order : '') + '{value}'}}}}}}"
            ))]}),
        )
    };
    let mut world = under(&[label("b", "2"), label("a", "1")]);
    let hook = coverage::webhook("Mutating", json!({"rules": [rule(&["UPDATE"], &["pods/dynamic"])]}));
    assert!(world.create_any(hook).is_ok());
    let body = Body::StrategicMerge(new_container());
    let request = Request::Dynamic { namespace: "default".into(), name: "web".into(), body };
    let event = ApiEvent::new(world.now, request, "test");
    let call = world.api.next_webhook(&event).expect("the webhook");
    assert_eq!(call.review["request"]["object"]["metadata"]["annotations"]["order"], "12");
}

#[test]
fn whoever_wants_it_is_applied_again_after_a_change_it_has_not_seen() {
    let counting = |policy_name: &str, reinvocation: &str| {
        policy(
            policy_name,
            json!({"reinvocationPolicy": reinvocation, "mutations": [applying(
            "Object{metadata: Object.metadata{annotations: {'seen': string(object.spec.containers.size())}}}")]}),
        )
    };
    let adds = policy(
        "z-adds",
        json!({"matchConditions": [{"name": "once", "expression": "!object.spec.containers.exists(c, c.name == 'z')"}],
        "mutations": [applying("Object{spec: Object.spec{containers: [Object.spec.containers{name: 'z', image: 'z:1'}]}}")]}),
    );
    for (reinvocation, seen) in [("IfNeeded", "3"), ("Never", "2")] {
        let mut world = under(&[counting("a-counts", reinvocation), adds.clone()]);
        let answer = world.dynamic(new_container());
        assert!(answer.is_ok(), "{answer:?}");
        assert_eq!(world.pod()["metadata"]["annotations"]["seen"], seen, "{reinvocation}");
    }
}

#[test]
fn without_a_binding_or_outside_of_its_rules_nothing_happens() {
    let label = json!({"mutations": [applying("Object{metadata: Object.metadata{labels: {'a': 'b'}}}")]});
    let mut world = under(&[policy("p", label.clone())[..1].to_vec()]);
    assert!(world.dynamic(new_container()).is_ok());
    assert_eq!(world.pod()["metadata"]["labels"], Value::Null);
    // Resizes, too, are a policy's if its rules name them.
    let mut world = under(&[policy("p", label)]);
    let body = json!({"spec": {"containers": [{"name": "app", "resources": {}}]}});
    let answer = world.resize(body);
    assert!(answer.is_ok(), "{answer:?}");
}
