//! Manifests of handlers that a server does not store, in upstream's words: each would mean something else than it says. One that is
//! known all the same (from before, or from a file) closes `pods/dynamic` instead of being passed over.

use super::coverage::{asked, read, rule, webhook};
use super::refusal;
use super::support::World;
use nodefold_api::admission::coverage::{Coverage, Strictness, gate};
use nodefold_api::{ApiConfig, check_handler};
use serde_json::{Value, json};

fn hook(of: Value) -> Value {
    webhook("Validating", json!({"rules": [of]}))
}

fn policy(spec: Value) -> Value {
    let mut whole = json!({"validations": [{"expression": "true"}]});
    for (field, value) in spec.as_object().into_iter().flatten() {
        whole[field] = value.clone();
    }
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": whole})
}

fn binding(spec: Value) -> Value {
    let mut whole = json!({"policyName": "p", "validationActions": ["Deny"]});
    for (field, value) in spec.as_object().into_iter().flatten() {
        whole[field] = value.clone();
    }
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "b"}, "spec": whole})
}

fn mutating(mutation: Value) -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "m"},
        "spec": {"reinvocationPolicy": "Never", "mutations": [mutation]}})
}

#[test]
fn what_a_handler_may_not_say() {
    let changed = |field: &str, value: Value| {
        let mut changed = rule(&["CREATE"], &["pods"]);
        changed[field] = value;
        changed
    };
    let rule_0 = |field: &str| format!("webhooks[0].rules[0].{field}");
    let cases = [
        (hook(rule(&["create"], &["pods"])), rule_0("operations[0]"), "FieldValueNotSupported"),
        (hook(rule(&[], &["pods"])), rule_0("operations"), "FieldValueRequired"),
        (hook(rule(&["CREATE"], &[])), rule_0("resources"), "FieldValueRequired"),
        (hook(rule(&["CREATE"], &[""])), rule_0("resources[0]"), "FieldValueRequired"),
        (hook(changed("apiGroups", json!([]))), rule_0("apiGroups"), "FieldValueRequired"),
        (hook(changed("apiVersions", json!(null))), rule_0("apiVersions"), "FieldValueRequired"),
        (hook(changed("scope", json!("namespaced"))), rule_0("scope"), "FieldValueNotSupported"),
        (
            webhook("Mutating", json!({"failurePolicy": "ignore"})),
            "webhooks[0].failurePolicy".into(),
            "FieldValueNotSupported",
        ),
        (
            webhook(
                "Mutating",
                json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}),
            ),
            "webhooks[0].objectSelector".into(),
            "FieldValueInvalid",
        ),
        (policy(json!({"validations": []})), "spec.validations".into(), "FieldValueRequired"),
        (
            policy(json!({"validations": [{"message": "m"}]})),
            "spec.validations[0].expression".into(),
            "FieldValueRequired",
        ),
        (
            policy(json!({"validations": [{"expression": "true", "reason": "Bad"}]})),
            "spec.validations[0].reason".into(),
            "FieldValueNotSupported",
        ),
        (
            policy(json!({"matchConstraints": {"resourceRules": [rule(&["Update"], &["pods"])]}})),
            "spec.matchConstraints.resourceRules[0].operations[0]".into(),
            "FieldValueNotSupported",
        ),
        (
            policy(json!({"variables": [{"name": "v"}]})),
            "spec.variables[0].expression".into(),
            "FieldValueRequired",
        ),
        (binding(json!({"policyName": ""})), "spec.policyName".into(), "FieldValueRequired"),
        (binding(json!({"validationActions": []})), "spec.validationActions".into(), "FieldValueRequired"),
        (
            binding(json!({"validationActions": ["deny"]})),
            "spec.validationActions[0]".into(),
            "FieldValueNotSupported",
        ),
        (
            binding(json!({"validationActions": ["Deny", "Warn"]})),
            "spec.validationActions".into(),
            "FieldValueInvalid",
        ),
        (
            binding(json!({"paramRef": {"parameterNotFoundAction": "Deny"}})),
            "spec.paramRef".into(),
            "FieldValueRequired",
        ),
        (
            binding(json!({"paramRef": {"name": "n"}})),
            "spec.paramRef.parameterNotFoundAction".into(),
            "FieldValueRequired",
        ),
        (
            mutating(json!({"patchType": "Merge"})),
            "spec.mutations[0].patchType".into(),
            "FieldValueNotSupported",
        ),
        (
            mutating(json!({"patchType": "JSONPatch"})),
            "spec.mutations[0].jsonPatch.expression".into(),
            "FieldValueRequired",
        ),
    ];
    for (manifest, field, reason) in cases {
        let causes = check_handler(&manifest);
        let told: Vec<(&str, &str)> = causes.iter().map(|c| (c.field.as_str(), c.reason.as_str())).collect();
        assert_eq!(told, [(field.as_str(), reason)], "{manifest}");
        let status = refusal(World::new(ApiConfig::default()).create_any(manifest.clone()));
        assert_eq!((status.code, &status.causes), (422, &causes), "{manifest}");
    }
}

#[test]
fn a_field_that_nobody_knows_is_no_part_of_a_handler() {
    let mut misspelt = hook(rule(&["CREATE"], &["pods"]));
    misspelt["webhooks"][0]["rules"][0]["resource"] = json!(["pods"]);
    let mut unheard = policy(json!({}));
    unheard["spec"]["validation"] = json!([]);
    for (manifest, path) in [(misspelt, "webhooks[0].rules[0].resource"), (unheard, "spec.validation")] {
        let status = refusal(World::new(ApiConfig::default()).create_any(manifest));
        assert_eq!(status.code, 400);
        assert!(status.message.contains(&format!("{path}: unknown field")), "{}", status.message);
    }
}

#[test]
fn one_that_is_known_all_the_same_closes_the_gate() {
    let handlers = read(&[hook(rule(&["create"], &["pods"]))]);
    let asked = asked();
    let Coverage::Missing(judged) = gate(&asked.attributes(), &handlers, Strictness::default()) else {
        panic!("the gate is open");
    };
    let why = "it can't be read (rules[0].operations[0] is \"create\", not one of *, CREATE, UPDATE, DELETE, CONNECT)";
    assert_eq!(judged[0].why_missing, why);
}
