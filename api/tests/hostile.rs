//! Whatever is stored and whatever is asked: an answer, never a panic; and the same events give the same answers.

mod support;

use nodefold_api::admission::Answer;
use nodefold_api::{Api, ApiConfig, ApiEvent, Body, Request};
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use support::{World, pod};

/// Words that manifests are made of: as keys and as texts they get somewhere.
const WORDS: [&str; 62] = [
    "metadata",
    "name",
    "namespace",
    "labels",
    "annotations",
    "spec",
    "status",
    "containers",
    "initContainers",
    "ephemeralContainers",
    "volumes",
    "volumeMounts",
    "mountPath",
    "resources",
    "requests",
    "limits",
    "cpu",
    "memory",
    "hard",
    "used",
    "type",
    "Container",
    "Pod",
    "max",
    "min",
    "default",
    "defaultRequest",
    "rules",
    "resourceRules",
    "excludeResourceRules",
    "matchConstraints",
    "matchResources",
    "operations",
    "apiGroups",
    "apiVersions",
    "pods",
    "pods/dynamic",
    "*",
    "UPDATE",
    "CREATE",
    "v1",
    "",
    "webhooks",
    "validations",
    "expression",
    "true",
    "object.spec.containers",
    "variables",
    "policyName",
    "paramRef",
    "objectSelector",
    "namespaceSelector",
    "matchLabels",
    "matchExpressions",
    "securityContext",
    "privileged",
    "1",
    "image",
    "app",
    "web",
    "serviceAccountName",
    "allocatable",
];

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(&WORDS[..]).prop_map(str::to_owned)
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..70_000).prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((word(), inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

const KINDS: [&str; 12] = [
    "Namespace",
    "Node",
    "LimitRange",
    "ResourceQuota",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ConfigMap",
    "Pod",
];

fn any_manifest() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(&["default", "node", "a", "pods", "web"][..]);
    (prop::sample::select(&KINDS[..]), name, any_json(), any_json(), any_json()).prop_map(
        |(kind, name, spec, status, rest)| {
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "labels": rest.clone()},
                "spec": spec, "status": status, "webhooks": rest})
        },
    )
}

fn any_body() -> impl Strategy<Value = Body> {
    let operation = (prop::sample::select(&["add", "replace", "remove"][..]), word(), word(), any_json())
        .prop_map(|(op, one, two, value)| json!({"op": op, "path": format!("/{one}/{two}"), "value": value}));
    prop_oneof![
        any_json().prop_map(Body::StrategicMerge),
        any_json().prop_map(|spec| Body::StrategicMerge(json!({"spec": spec}))),
        any_json().prop_map(Body::Merge),
        any_json().prop_map(|containers| Body::Merge(json!({"spec": {"containers": containers}}))),
        prop::collection::vec(operation, 0..4).prop_map(|ops| Body::JsonPatch(Value::Array(ops))),
        any_json().prop_map(Body::Full),
        any_json().prop_map(|spec| {
            Body::Full(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec}))
        }),
    ]
}

proptest! {
    #[test]
    fn anything_is_answered_and_answered_alike(
        manifests in prop::collection::vec(any_manifest(), 0..5),
        held in prop::collection::vec(any_manifest(), 0..3),
        bodies in prop::collection::vec(any_body(), 1..5),
        patch in any_json(),
    ) {
        let config = ApiConfig { absent_webhooks_allow: true, ..ApiConfig::default() };
        let mut world = World::new(config.clone());
        world.api = Api::holding(config.clone(), held.clone());
        let created = world.create(pod(json!({"containers": [{"name": "app", "image": "i:1"}]})));
        if created.is_ok() {
            let status = support::running(&world.pod());
            world.status(status);
        }
        for (i, object) in manifests.into_iter().enumerate() {
            world.ask(Request::Create { object, uid: PodUid(i as u128) });
        }
        for body in bodies {
            let request = Request::Dynamic { namespace: "default".into(), name: "web".into(), body };
            let event = ApiEvent::new(Time(1), request, "test");
            let answer = Answer::Allowed { patch: Some(patch.clone()) };
            let event = support::answered(&world.api, event, |_| Some(answer.clone()));
            world.log.push(event.clone());
            let before = world.api.digest();
            let answer = world.api.apply(&event);
            prop_assert!(answer.is_ok() || world.api.digest() == before, "a refusal changes nothing");
        }
        let mut again = Api::holding(config, held);
        for event in &world.log {
            again.apply(&ApiEvent::from_bytes(&event.to_bytes()).expect("its own bytes"));
        }
        prop_assert_eq!(again.digest(), world.api.digest());
    }
}
