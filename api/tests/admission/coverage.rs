//! Each row of the decision table, by its number: what the handler would be asked about, and the verdict; once by the gate
//! alone, once by the whole API.

use super::*;
use nodefold_api::admission::Answer;
use nodefold_api::admission::attributes::{Attributes, NamespaceLookup, Operation, User};
use nodefold_api::admission::coverage::{Coverage, Strictness, gate};
use nodefold_api::admission::handler::Handlers;
use nodefold_api::{ApiEvent, Body, Request, check_handler};
use std::sync::Arc;

/// A webhook `w` of configuration `hooks`.
pub fn webhook(kind: &str, more: Value) -> Value {
    let mut entry = json!({"name": "w.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"url": "https://w.example.com"}});
    for (key, value) in more.as_object().into_iter().flatten() {
        entry[key] = value.clone();
    }
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": "hooks"}, "webhooks": [entry]})
}

pub fn rule(operations: &[&str], resources: &[&str]) -> Value {
    json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": operations, "resources": resources})
}

fn hook(operations: &[&str], resources: &[&str]) -> Value {
    webhook("Validating", json!({"rules": [rule(operations, resources)]}))
}

/// A policy whose one validation holds, and its binding.
fn policy(constraints: Value, binding: Value) -> Vec<Value> {
    kinds_of_policy("Validating", constraints, binding)
}

fn kinds_of_policy(kind: &str, constraints: Value, binding: Value) -> Vec<Value> {
    let (mut spec, mut does) = (json!({"policyName": "p"}), json!({"matchConstraints": constraints}));
    if kind == "Validating" {
        spec["validationActions"] = json!(["Deny"]);
        does["validations"] = json!([{"expression": "true"}]);
    } else {
        does["mutations"] = json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}]);
    }
    for (key, value) in binding.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let of = |kind: String, name: &str, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    vec![
        of(format!("{kind}AdmissionPolicy"), "p", does),
        of(format!("{kind}AdmissionPolicyBinding"), "b", spec),
    ]
}

struct Row {
    number: u8,
    manifests: Vec<Value>,
    /// As a CREATE, as an UPDATE, as what it is; one handler at most.
    asked: Option<(bool, bool, bool)>,
    allowed: bool,
}

fn row(number: u8, manifests: Vec<Value>, asked: (bool, bool, bool), allowed: bool) -> Row {
    Row { number, manifests, asked: Some(asked), allowed }
}

const ALL: [&str; 2] = ["CREATE", "UPDATE"];
const Y: bool = true;
const N: bool = false;
const ALLOW: bool = true;
const DENY: bool = false;

/// Rows that are about manifests alone. The pod and its namespace have the labels that `lookups` gives them.
fn rows() -> Vec<Row> {
    let both = || json!([rule(&ALL, &["pods"])]);
    let covering = || json!([rule(&ALL, &["pods", "pods/dynamic"])]);
    let with = |rules: Value, more: Value| {
        let mut entry = json!({"rules": rules});
        for (key, value) in more.as_object().into_iter().flatten() {
            entry[key] = value.clone();
        }
        vec![webhook("Validating", entry)]
    };
    let labelled = |value: &str| json!({"matchLabels": {"guard": value}});
    let falsely = || json!({"matchConditions": [{"name": "never", "expression": "false"}]});
    let constrained = |rules: Value| json!({"resourceRules": rules});
    let unbound = || vec![policy(constrained(both()), json!({})).remove(0)];
    let sample = yaml(include_str!("policies/pod-intent-immutable.yaml")).remove(0);
    let sample_bound = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "b"},
        "spec": {"policyName": "pod-intent-immutable", "validationActions": ["Audit"]}});
    let excluded = json!({"resourceRules": [rule(&ALL, &["pods", "pods/*"])],
        "excludeResourceRules": [rule(&ALL, &["pods/dynamic"])]});
    let params = |rules: Value| {
        let mut manifests = policy(
            constrained(rules),
            json!({"paramRef":
            {"name": "missing", "parameterNotFoundAction": "Allow"}}),
        );
        manifests[0]["spec"]["paramKind"] = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        manifests
    };
    vec![
        row(1, vec![hook(&["CREATE"], &["pods"])], (Y, N, N), DENY),
        row(2, vec![hook(&ALL, &["pods"])], (Y, Y, N), DENY),
        row(3, vec![hook(&ALL, &["pods", "pods/dynamic"])], (Y, Y, Y), ALLOW),
        row(4, vec![hook(&ALL, &["pods/*"])], (Y, Y, Y), ALLOW),
        row(5, vec![hook(&["CREATE"], &["pods/*"])], (Y, N, N), DENY),
        row(6, vec![hook(&["*"], &["*"])], (Y, Y, N), DENY),
        row(7, vec![hook(&["*"], &["*/*"])], (Y, Y, Y), ALLOW),
        row(8, vec![hook(&["CREATE"], &["*/*"])], (Y, N, N), DENY),
        row(
            9,
            with(json!([rule(&["CREATE"], &["pods"]), rule(&["CREATE"], &["pods/dynamic"])]), json!({})),
            (Y, N, N),
            DENY,
        ),
        row(10, vec![hook(&["DELETE"], &["pods"])], (N, N, N), ALLOW),
        row(10, vec![hook(&["CONNECT"], &["pods/exec"])], (N, N, N), ALLOW),
        row(11, vec![hook(&["UPDATE"], &["pods/dynamic"])], (N, N, Y), ALLOW),
        row(12, vec![hook(&ALL, &["pods", "pods/ephemeralcontainers"])], (Y, Y, N), DENY),
        row(13, with(both(), json!({"namespaceSelector": labelled("other")})), (N, N, N), ALLOW),
        row(13, with(both(), json!({"namespaceSelector": labelled("namespace")})), (Y, Y, N), DENY),
        // The request drops the label `guard: old` of the pod.
        row(14, with(both(), json!({"objectSelector": labelled("old")})), (N, Y, N), DENY),
        row(15, with(both(), json!({"objectSelector": labelled("neither")})), (N, N, N), ALLOW),
        row(16, with(json!([rule(&["CREATE"], &["pods"])]), falsely()), (Y, N, N), DENY),
        row(17, with(covering(), falsely()), (Y, Y, Y), ALLOW),
        row(
            18,
            with(json!([rule(&["CREATE"], &["pods"])]), json!({"failurePolicy": "Ignore"})),
            (Y, N, N),
            DENY,
        ),
        row(19, with(covering(), json!({"failurePolicy": "Ignore"})), (Y, Y, Y), ALLOW),
        row(20, policy(constrained(both()), json!({})), (Y, Y, N), DENY),
        row(
            21,
            policy(constrained(covering()), json!({"matchResources": constrained(both())})),
            (Y, Y, N),
            DENY,
        ),
        Row { number: 22, manifests: unbound(), asked: None, allowed: ALLOW },
        row(
            22,
            policy(constrained(both()), json!({"matchResources": {"namespaceSelector": labelled("other")}})),
            (N, N, N),
            ALLOW,
        ),
        row(
            23,
            policy(constrained(both()), json!({"validationActions": ["Audit", "Warn"]})),
            (Y, Y, N),
            DENY,
        ),
        row(24, policy(excluded, json!({})), (Y, Y, N), DENY),
        row(25, vec![sample, sample_bound], (N, Y, Y), ALLOW),
        row(
            26,
            with(
                json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"],
            "resourceNames": ["another"]}]),
                json!({}),
            ),
            (N, N, N),
            ALLOW,
        ),
        row(
            27,
            with(
                json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods"],
            "scope": "Cluster"}]),
                json!({}),
            ),
            (N, N, N),
            ALLOW,
        ),
        row(
            27,
            with(
                json!([{"apiGroups": [""], "apiVersions": ["v1beta1"], "operations": ["*"],
            "resources": ["pods"]}]),
                json!({}),
            ),
            (N, N, N),
            ALLOW,
        ),
        row(
            28,
            kinds_of_policy("Mutating", constrained(json!([rule(&["CREATE"], &["pods"])])), json!({})),
            (Y, N, N),
            DENY,
        ),
        row(29, params(both()), (Y, Y, N), DENY),
        row(29, params(covering()), (Y, Y, Y), ALLOW),
        row(
            30,
            with(
                covering(),
                json!({"objectSelector":
            {"matchExpressions": [{"key": "a", "operator": "Like"}]}}),
            ),
            (Y, N, N),
            DENY,
        ),
    ]
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"guard": "namespace"}}})
}

/// The request: it adds a container and drops the pod's label.
fn request() -> Value {
    let mut patch = new_container();
    patch["metadata"] = json!({"labels": {"guard": null, "kept": "yes"}});
    patch
}

pub struct Asked {
    user: User,
    object: Value,
    old: Value,
    namespace: Value,
}

pub fn asked() -> Asked {
    let object =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"kept": "yes"}}});
    let mut old = object.clone();
    old["metadata"]["labels"]["guard"] = json!("old");
    Asked { user: User::named("test"), object, old, namespace: namespace() }
}

impl Asked {
    pub fn attributes(&self) -> Attributes<'_> {
        Attributes {
            operation: Operation::Update,
            group: "",
            version: "v1",
            kind: "Pod",
            resource: "pods",
            subresource: "dynamic",
            namespace: "default",
            name: "web",
            object: &self.object,
            old_object: &self.old,
            user: &self.user,
            dry_run: false,
            namespace_object: NamespaceLookup::Found(&self.namespace),
        }
    }
}

pub fn read(manifests: &[Value]) -> Handlers {
    let shared: Vec<Arc<Value>> = manifests.iter().cloned().map(Arc::new).collect();
    Handlers::read(&shared)
}

/// A running pod labelled `guard: old`, with these handlers registered afterwards.
fn guarded(config: ApiConfig, manifests: &[Value]) -> World {
    let mut world = World::new(config);
    assert!(world.create_any(namespace()).is_ok());
    let mut object = pod(plain());
    object["metadata"]["labels"] = json!({"guard": "old"});
    assert!(world.create(object).is_ok());
    world.report_running();
    for manifest in manifests {
        let answer = world.create_any(manifest.clone());
        assert!(answer.is_ok(), "{answer:?}");
    }
    world
}

fn answering() -> ApiConfig {
    ApiConfig { absent_webhooks_allow: true, ..ApiConfig::default() }
}

#[test]
fn each_row_is_decided_as_the_table_says() {
    let mut wrong = Vec::new();
    for row in rows() {
        let asked = asked();
        let handlers = read(&row.manifests);
        let judged = match gate(&asked.attributes(), &handlers, Strictness::default()) {
            Coverage::Covered(judged) if row.allowed => judged,
            Coverage::Missing(judged) if !row.allowed => judged,
            Coverage::Covered(_) | Coverage::Missing(_) | Coverage::NotReady | Coverage::LookupFailed(_) => {
                wrong.push(format!("row {}: not {}", row.number, row.allowed));
                continue;
            }
        };
        let found: Vec<_> = judged.iter().map(|j| (j.as_create, j.as_update, j.as_dynamic)).collect();
        let expected: Vec<_> = row.asked.into_iter().collect();
        if found != expected {
            wrong.push(format!("row {}: {found:?} instead of {expected:?}", row.number));
        }
        // The same through the API. A dry run is answered alike (33).
        for dry_run in [false, true] {
            let request = Attributes { dry_run, ..asked.attributes() };
            let allowed = matches!(gate(&request, &handlers, Strictness::default()), Coverage::Covered(_));
            assert_eq!(allowed, row.allowed, "row 33 over row {}", row.number);
        }
        // Row 30: through the API it is never stored (`manifests.rs`).
        if row.manifests.iter().any(|manifest| !check_handler(manifest).is_empty()) {
            continue;
        }
        let answer = guarded(answering(), &row.manifests).dynamic(request());
        match answer {
            Response::Ok { .. } if row.allowed => {}
            Response::Rejected(status)
                if !row.allowed && status.code == 403 && status.message.contains("pods/dynamic") => {}
            Response::Ok { .. } | Response::Rejected(_) => {
                wrong.push(format!("row {} through the API: not {}", row.number, row.allowed));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_is_here() {
    let told: std::collections::BTreeSet<u8> = rows().iter().map(|row| row.number).collect();
    let elsewhere = [31, 32, 33, 34, 35]; // below, and 33 with each row
    let missing: Vec<u8> = (1..=35).filter(|n| !told.contains(n) && !elsewhere.contains(n)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn row_17_and_19_what_becomes_of_a_webhook_that_covers() {
    let event = |world: &World, answers: Vec<Answer>| {
        let body = Body::StrategicMerge(request());
        let request = Request::Dynamic { namespace: "default".into(), name: "web".into(), body };
        let event = ApiEvent::new(world.now, request, "test");
        support::answered(&world.api, event, |_| answers.first().cloned())
    };
    let answered = |answer: Answer| vec![answer];
    let down = || answered(Answer::Failed { why: "connection refused".to_owned() });
    let covering = |more: Value| {
        let mut manifest = hook(&ALL, &["pods", "pods/dynamic"]);
        for (key, value) in more.as_object().into_iter().flatten() {
            manifest["webhooks"][0][key] = value.clone();
        }
        manifest
    };
    for (manifest, answers, code) in [
        (covering(json!({})), answered(Answer::Allowed { patch: None }), 200),
        (covering(json!({"matchConditions": [{"name": "n", "expression": "false"}]})), down(), 200),
        (covering(json!({"failurePolicy": "Fail"})), down(), 500),
        (covering(json!({"failurePolicy": "Ignore"})), down(), 200),
        (covering(json!({"failurePolicy": "Fail"})), Vec::new(), 500),
        (
            covering(json!({})),
            answered(Answer::Denied { code: 403, reason: String::new(), message: "no".to_owned() }),
            403,
        ),
    ] {
        let mut world = guarded(ApiConfig::default(), std::slice::from_ref(&manifest));
        let event = event(&world, answers.clone());
        let answer = world.api.apply(&event);
        assert_eq!(support::code(&answer), code, "{manifest} {answers:?}: {answer:?}");
    }
}

#[test]
fn row_23_audit_only_policies_can_be_exempted_by_one_flag() {
    let manifests =
        policy(json!({"resourceRules": [rule(&ALL, &["pods"])]}), json!({"validationActions": ["Audit"]}));
    let config = ApiConfig { audit_only_policies_exempt: true, ..ApiConfig::default() };
    assert!(guarded(config.clone(), &manifests).dynamic(request()).is_ok());
    let denying = policy(
        json!({"resourceRules": [rule(&ALL, &["pods"])]}),
        json!({"validationActions": ["Audit", "Deny"]}),
    );
    assert_eq!(support::code(&guarded(config, &denying).dynamic(request())), 403);
}

#[test]
fn row_30_a_namespace_that_cannot_be_looked_up_is_an_error_of_the_server() {
    let asked = asked();
    let failed = || NamespaceLookup::Failed("etcd timed out".to_owned());
    let selecting = webhook(
        "Validating",
        json!({"rules": [rule(&ALL, &["pods"])],
        "namespaceSelector": {"matchLabels": {"a": "b"}}}),
    );
    let request = Attributes { namespace_object: failed(), ..asked.attributes() };
    let selecting = read(&[selecting]);
    let found = gate(&request, &selecting, Strictness::default());
    assert!(matches!(found, Coverage::LookupFailed(why) if why == "etcd timed out"));
    // Who doesn't ask for the namespace isn't bothered.
    let handlers = read(&[hook(&ALL, &["pods/*"])]);
    assert!(matches!(gate(&request, &handlers, Strictness::default()), Coverage::Covered(_)));
}

#[test]
fn row_31_before_the_handlers_are_known_nothing_is_admitted() {
    let mut world = guarded(ApiConfig::default(), &[]);
    let body = Body::StrategicMerge(request());
    let unready = ApiConfig { handlers_known: false, ..ApiConfig::default() };
    let mut api = nodefold_api::Api::holding(unready, [world.pod()]);
    let request = Request::Dynamic { namespace: "default".into(), name: "web".into(), body };
    let status = refusal(api.apply(&ApiEvent::new(world.now, request.clone(), "test")));
    assert_eq!(status.code, 403);
    assert!(status.message.contains("not yet ready"), "{}", status.message);
    assert!(world.ask(request).is_ok());
}

#[test]
fn row_32_it_is_the_request_that_counts_not_what_it_changes() {
    for patch in [
        json!({}),
        json!({"metadata": {"labels": {"a": "b"}}}),
        json!({"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "2"}}}]}}),
    ] {
        let mut world = guarded(ApiConfig::default(), &[hook(&ALL, &["pods"])]);
        assert_eq!(support::code(&world.dynamic(patch.clone())), 403, "{patch}");
    }
    // Nor is anything mutated for a request that is doomed: the gate is before the version too.
    let mut world = guarded(ApiConfig::default(), &[hook(&ALL, &["pods"])]);
    let mut stale = world.pod();
    stale["metadata"]["resourceVersion"] = json!("1");
    assert_eq!(support::code(&world.dynamic_whole(stale)), 403, "not 409");
}

#[test]
fn row_34_handlers_from_the_servers_own_files_count() {
    let static_handlers = vec![Arc::new(hook(&ALL, &["pods"]))];
    let mut world = guarded(ApiConfig { static_handlers, ..answering() }, &[]);
    assert_eq!(support::code(&world.dynamic(request())), 403);
}

#[test]
fn row_35_each_try_sees_one_set_of_handlers_and_the_next_try_sees_the_next() {
    let mut world = guarded(answering(), &[hook(&ALL, &["pods"])]);
    assert_eq!(support::code(&world.dynamic(request())), 403);
    let mended = world.update(hook(&ALL, &["pods", "pods/dynamic"]));
    assert!(mended.is_ok(), "{mended:?}");
    assert!(world.dynamic(request()).is_ok());
}

#[test]
fn the_refusal_names_every_handler_that_is_missing_in_a_stable_order() {
    let mut late = hook(&ALL, &["pods"]);
    late["metadata"]["name"] = json!("z-hooks");
    let mut mutating = webhook("Mutating", json!({"rules": [rule(&["CREATE"], &["pods"])]}));
    mutating["metadata"]["name"] = json!("inject");
    let covering = hook(&ALL, &["pods/*"]);
    let mut manifests = policy(
        json!({"resourceRules": [rule(&ALL, &["pods", "pods/dynamic"])],
            "excludeResourceRules": [rule(&ALL, &["pods/dynamic"])]}),
        json!({}),
    );
    manifests.extend([late, mutating, covering]);
    let status = refusal(guarded(answering(), &manifests).dynamic(request()));
    assert_eq!((status.code, status.reason.as_str(), &*status.kind), (403, "Forbidden", "pods"));
    let causes: Vec<(&str, &str)> =
        status.causes.iter().map(|c| (c.reason.as_str(), c.message.as_str())).collect();
    let missing = "AdmissionCoverageMissing";
    assert_eq!(
        causes,
        [
            (
                missing,
                "MutatingWebhookConfiguration \"inject\" (webhook \"w.example.com\"): \
                its rules do not name pods/dynamic"
            ),
            (
                missing,
                "ValidatingWebhookConfiguration \"z-hooks\" (webhook \"w.example.com\"): \
                its rules do not name pods/dynamic"
            ),
            (
                missing,
                "ValidatingAdmissionPolicy \"p\" (binding \"b\"): its excludeResourceRules name pods/dynamic, \
                and what is excluded is not handled"
            ),
        ]
    );
    // kubectl prints no causes of a 403.
    for (_, cause) in causes {
        assert!(status.message.contains(cause), "{}", status.message);
    }
    assert!(
        status.message.starts_with("pods \"web\" is forbidden: pods/dynamic is closed"),
        "{}",
        status.message
    );
}
