//! Webhooks' answers, which come with the request.

use super::coverage::{rule, webhook};
use super::*;
use nodefold_api::admission::attributes::User;
use nodefold_api::admission::{Answer, WebhookAnswer};
use nodefold_api::{Account, ApiEvent, Body, Request, Verdict};

fn ask(world: &World, patch: Value, answers: Vec<(&str, Answer)>) -> ApiEvent {
    let body = Body::StrategicMerge(patch);
    let request = Request::Dynamic { namespace: "default".into(), name: "web".into(), body };
    let webhooks = answers
        .into_iter()
        .map(|(configuration, answer)| WebhookAnswer {
            configuration: configuration.into(),
            webhook: "w.example.com".into(),
            answer,
        })
        .collect();
    ApiEvent { webhooks, ..ApiEvent::new(world.now, request, "test") }
}

fn named(name: &str, kind: &str) -> Value {
    let mut manifest = webhook(kind, json!({"rules": [rule(&["UPDATE"], &["pods/dynamic"])]}));
    manifest["metadata"]["name"] = json!(name);
    manifest
}

#[test]
fn a_mutating_webhook_s_patch_is_applied_defaulted_and_validated() {
    let mut world = world_with(ApiConfig::default(), plain(), &[named("inject", "Mutating")]);
    let patched = |ops: Value| vec![("inject", Answer::Allowed { patch: Some(ops) })];
    let container = json!({"name": "helper", "image": "helper:1"});
    let ops = json!([{"op": "add", "path": "/spec/containers/-", "value": container}]);
    let event = ask(&world, new_container(), patched(ops));
    let answer = world.api.apply(&event);
    assert!(answer.is_ok(), "{answer:?}");
    let stored = world.pod();
    let names: Vec<&str> = stored["spec"]["containers"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|c| c["name"].as_str())
        .collect();
    assert_eq!(names, ["new", "app", "helper"]);
    assert_eq!(stored["spec"]["containers"][2]["imagePullPolicy"], "IfNotPresent", "defaults come after it");
    let privileged = json!([{"op": "add", "path": "/spec/containers/-",
        "value": {"name": "bad", "image": "i:1", "securityContext": {"privileged": true}}}]);
    let event = ask(&world, json!({}), patched(privileged));
    let status = refusal(world.api.apply(&event));
    assert_eq!(
        status.causes[0].field, "spec.containers[3].securityContext.privileged",
        "C8 holds for it too"
    );
    let event = ask(&world, json!({}), patched(json!([{"op": "remove", "path": "/nothing"}])));
    assert_eq!(refusal(world.api.apply(&event)).code, 500);
}

#[test]
fn a_denial_is_told_as_kubernetes_tells_it() {
    let mut world = world_with(ApiConfig::default(), plain(), &[named("guard", "Validating")]);
    let denied = Answer::Denied { code: 403, message: "no new containers on Fridays".to_owned() };
    let event = ask(&world, new_container(), vec![("guard", denied)]);
    let status = refusal(world.api.apply(&event));
    assert_eq!(status.code, 403);
    assert_eq!(
        status.message,
        "pods \"web\" is forbidden: admission webhook \"w.example.com\" denied the request: no new containers on Fridays"
    );
    // Another configuration's answer is none of its business.
    let allowed = Answer::Allowed { patch: None };
    let event = ask(&world, new_container(), vec![("other", allowed.clone())]);
    assert_eq!(refusal(world.api.apply(&event)).code, 500);
    let event = ask(&world, new_container(), vec![("guard", allowed)]);
    assert!(world.api.apply(&event).is_ok());
}

#[test]
fn the_answers_are_part_of_the_event_and_its_bytes() {
    let world = world_with(ApiConfig::default(), plain(), &[]);
    let event = ask(&world, new_container(), vec![("guard", Answer::Failed { why: "timeout".to_owned() })]);
    assert_eq!(ApiEvent::from_bytes(&event.to_bytes()).expect("its own bytes"), event);
    let plain = ask(&world, new_container(), Vec::new());
    assert!(!String::from_utf8_lossy(&plain.to_bytes()).contains("webhooks"), "as before there were any");
}

#[test]
fn whoever_drives_is_told_whom_to_call_until_nobody_is_left() {
    let mut world = world_with(
        ApiConfig::default(),
        plain(),
        &[named("guard", "Validating"), named("inject", "Mutating"), named("second", "Mutating")],
    );
    let user = User::named("test");
    let mut event = ask(&world, new_container(), Vec::new());
    let mut called = Vec::new();
    while let Some(call) = world.api.next_webhook(&event, &user) {
        assert!(called.len() < 3, "{called:?}");
        let images: Vec<_> = call.review["request"]["object"]["spec"]["containers"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|c| c["image"].clone())
            .collect();
        called.push((call.configuration.to_string(), images.len()));
        let more =
            json!([{"op": "add", "path": "/spec/containers/-", "value": {"name": "h", "image": "h:1"}}]);
        let patch = (&*call.configuration == "inject").then_some(more);
        event.webhooks.push(WebhookAnswer {
            configuration: call.configuration,
            webhook: call.webhook,
            answer: Answer::Allowed { patch },
        });
        assert_eq!((call.timeout_seconds, &call.review["request"]["subResource"]), (10, &json!("dynamic")));
    }
    let expected = [("inject", 2), ("second", 3), ("guard", 3)];
    assert_eq!(
        called,
        expected.map(|(name, count)| (name.to_owned(), count)),
        "each sees what those before it did"
    );
    assert!(world.api.apply(&event).is_ok());
}

#[test]
fn an_account_tells_each_step_and_changes_nothing() {
    let world = world_with(
        ApiConfig { absent_webhooks_allow: true, ..ApiConfig::default() },
        plain(),
        &[named("guard", "Validating")],
    );
    let before = world.api.digest();
    let event = ask(&world, new_container(), Vec::new());
    let (response, account): (Response, Account) = world.api.explain(&event, &User::named("test"), None);
    assert!(response.is_ok());
    assert_eq!(world.api.digest(), before);
    let told: Vec<(&str, &str, Verdict)> =
        account.steps().iter().map(|s| (s.stage.as_str(), s.who.as_str(), s.verdict)).collect();
    let guard = "ValidatingWebhookConfiguration \"guard\" (webhook \"w.example.com\")";
    for step in [
        ("route", "", Verdict::Passed),
        ("decoding", "", Verdict::Passed),
        ("coverage", guard, Verdict::Passed),
        ("validation", "C4", Verdict::Passed),
        ("admission", "PodSecurity", Verdict::Passed),
        ("admission", guard, Verdict::Passed),
        ("commit", "", Verdict::Passed),
    ] {
        assert!(told.contains(&step), "{step:?} in {told:#?}");
    }
    let mut stages: Vec<_> = account.steps().iter().map(|s| s.stage).collect();
    stages.dedup();
    assert!(stages.is_sorted(), "{stages:?}");
}
