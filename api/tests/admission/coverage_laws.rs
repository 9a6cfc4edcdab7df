//! What holds of the gate whatever is registered (api-side §8 item 2): another handler can only close it, and naming
//! `pods/dynamic` UPDATE in each of a handler's rules takes that handler off the list of the missing.

use super::coverage::{rule, webhook};
use super::*;
use nodefold_api::admission::attributes::{Attributes, NamespaceLookup, Operation, User};
use nodefold_api::admission::coverage::{Coverage, Strictness, gate};
use nodefold_api::admission::handler::Handlers;
use proptest::prelude::*;
use std::sync::Arc;

/// The names of the configurations that are missing.
fn missing(manifests: &[Value]) -> Vec<String> {
    let object = json!({"metadata": {"name": "web", "labels": {"a": "1"}}});
    let old = json!({"metadata": {"name": "web", "labels": {"b": "1"}}});
    let namespace = json!({"metadata": {"name": "default", "labels": {"a": "1"}}});
    let user = User::named("test");
    let request = Attributes {
        operation: Operation::Update,
        group: "",
        version: "v1",
        kind: "Pod",
        resource: "pods",
        subresource: "dynamic",
        namespace: "default",
        name: "web",
        object: &object,
        old_object: &old,
        user: &user,
        dry_run: false,
        namespace_object: NamespaceLookup::Found(&namespace),
    };
    let shared: Vec<Arc<Value>> = manifests.iter().cloned().map(Arc::new).collect();
    let handlers = Handlers::read(&shared);
    match gate(&request, &handlers, Strictness::default()) {
        Coverage::Covered(_) => Vec::new(),
        Coverage::Missing(judged) => {
            let missing = judged.iter().filter(|j| j.is_missing());
            missing.map(|j| j.handler.configuration.to_string()).collect()
        }
        Coverage::NotReady | Coverage::LookupFailed(_) => panic!("the handlers and the namespace are known"),
    }
}

fn any_of(texts: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(texts, 1..=texts.len())
}

fn any_rule() -> impl Strategy<Value = Value> {
    let operations = any_of(&["CREATE", "UPDATE", "DELETE", "*"]);
    let resources = any_of(&["pods", "pods/dynamic", "pods/*", "*", "*/*", "*/dynamic", "services"]);
    (operations, resources).prop_map(|(operations, resources)| rule(&operations, &resources))
}

fn any_selector() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({})),
        Just(json!({"matchLabels": {"a": "1"}})),
        Just(json!({"matchLabels": {"b": "1"}})),
        Just(json!({"matchExpressions": [{"key": "c", "operator": "DoesNotExist"}]})),
    ]
}

fn any_webhook() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![Just("Mutating"), Just("Validating")];
    let rules = prop::collection::vec(any_rule(), 0..3);
    (kind, rules, any_selector(), any_selector()).prop_map(|(kind, rules, objects, namespaces)| {
        webhook(kind, json!({"rules": rules, "objectSelector": objects, "namespaceSelector": namespaces}))
    })
}

fn named(mut manifests: Vec<Value>) -> Vec<Value> {
    for (i, manifest) in manifests.iter_mut().enumerate() {
        manifest["metadata"]["name"] = json!(format!("h{i}"));
    }
    manifests
}

proptest! {
    #[test]
    fn another_handler_only_closes(manifests in prop::collection::vec(any_webhook(), 1..5)) {
        let manifests = named(manifests);
        let (all, fewer) = (missing(&manifests), missing(&manifests[1..]));
        for handler in &fewer {
            prop_assert!(all.contains(handler), "{handler} is missing without h0, but not with it");
        }
    }

    #[test]
    fn naming_the_subresource_in_every_rule_takes_a_handler_off_the_list(
        manifests in prop::collection::vec(any_webhook(), 1..5),
    ) {
        let mut manifests = named(manifests);
        let before = missing(&manifests);
        for rule in manifests[0]["webhooks"][0]["rules"].as_array_mut().into_iter().flatten() {
            for (field, value) in [("operations", "UPDATE"), ("resources", "pods/dynamic")] {
                rule[field].as_array_mut().expect("a list").push(json!(value));
            }
        }
        let after = missing(&manifests);
        prop_assert!(!after.contains(&"h0".to_owned()));
        let others: Vec<&String> = before.iter().filter(|h| *h != "h0").collect();
        prop_assert_eq!(after.iter().collect::<Vec<_>>(), others);
    }
}
