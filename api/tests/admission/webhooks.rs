//! Webhooks' answers, which come with the request.

use super::coverage::{rule, webhook};
use super::*;
use nodefold_api::admission::{Answer, ReviewKind, WebhookCall};
use nodefold_api::{Account, ApiEvent, Body, Request, Verdict};

fn ask(world: &World, patch: Value, answers: Vec<(&str, Answer)>) -> ApiEvent {
    let body = Body::StrategicMerge(patch);
    let request = Request::Dynamic { namespace: "default".into(), name: "web".into(), body };
    let event = ApiEvent::new(world.now, request, "test");
    support::answered(&world.api, event, |call| {
        answers
            .iter()
            .find(|(configuration, _)| *configuration == &*call.configuration)
            .map(|(_, a)| a.clone())
    })
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
    let denied = Answer::Denied {
        code: 403,
        reason: "Forbidden".to_owned(),
        message: "no new containers on Fridays".to_owned(),
    };
    let event = ask(&world, new_container(), vec![("guard", denied)]);
    let status = refusal(world.api.apply(&event));
    assert_eq!(status.code, 403);
    assert_eq!(
        status.message,
        "admission webhook \"w.example.com\" denied the request: no new containers on Fridays"
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
    let world = world_with(ApiConfig::default(), plain(), &[named("guard", "Validating")]);
    let event = ask(&world, new_container(), vec![("guard", Answer::Failed { why: "timeout".to_owned() })]);
    assert_eq!(event.webhooks.len(), 1);
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
    let mut event = ask(&world, new_container(), Vec::new());
    let mut called = Vec::new();
    while let Some(call) = world.api.next_webhook(&event) {
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
        event.webhooks.push(call.answered(Answer::Allowed { patch }));
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
    let (response, account): (Response, Account) = world.api.explain(&event, None);
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

/// The call that this request brings about.
fn call(world: &World, patch: Value) -> WebhookCall {
    world.api.next_webhook(&ask(world, patch, Vec::new())).expect("somebody is to be asked")
}

#[test]
fn the_question_is_an_admission_review_and_goes_to_a_url() {
    let mut manifest = named("inject", "Mutating");
    manifest["webhooks"][0]["timeoutSeconds"] = json!(3);
    manifest["webhooks"][0]["clientConfig"] =
        json!({"url": "https://hooks.example.com:8443/mutate", "caBundle": "cGVt"});
    let world = world_with(ApiConfig::default(), plain(), &[manifest]);
    let call = call(&world, new_container());
    assert_eq!((call.kind, call.timeout_seconds), (ReviewKind::Mutating, 3));
    let endpoint = call.endpoint().expect("a URL");
    assert_eq!(endpoint.url, "https://hooks.example.com:8443/mutate");
    assert_eq!(endpoint.ca_bundle.as_deref(), Some(&b"pem"[..]));
    let review = call.review_as("u-1");
    assert_eq!(
        (&review["apiVersion"], &review["kind"]),
        (&json!("admission.k8s.io/v1"), &json!("AdmissionReview"))
    );
    let asked = &review["request"];
    assert_eq!(
        (&asked["uid"], &asked["operation"], &asked["dryRun"]),
        (&json!("u-1"), &json!("UPDATE"), &json!(false))
    );
    assert_eq!(asked["object"]["spec"]["containers"][0]["name"], "new");
    assert_eq!(asked["oldObject"]["spec"]["containers"][0]["name"], "app");
    assert_eq!(asked["userInfo"]["username"], "test");
    assert_eq!(asked["options"]["kind"], "UpdateOptions");

    for (config, told) in [
        (json!({"service": {"namespace": "kube", "name": "hook"}}), "\"kube/hook\" can't be resolved"),
        (json!({}), "exactly one of url and service"),
        (json!({"url": "http://x/"}), "https://"),
        (json!({"url": "https://"}), "no host"),
        (json!({"url": "https://u:p@x/"}), "user information"),
        (json!({"url": "https://x/?a=b"}), "query"),
        (json!({"url": "https://x/", "caBundle": "%"}), "no base64"),
    ] {
        let wrong = WebhookCall { client_config: config.clone(), ..call.clone() }.endpoint();
        let wrong = wrong.expect_err("no place").to_string();
        assert!(wrong.contains(told), "{config}: {wrong}");
    }
}

#[test]
fn the_answer_is_read_as_kubernetes_reads_it() {
    let world = world_with(ApiConfig::default(), plain(), &[named("inject", "Mutating")]);
    let call = call(&world, new_container());
    let review = |response: Value| json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    // [{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]
    let patch = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscyIsInZhbHVlIjp7ImEiOiJiIn19XQ==";
    let ops = json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}]);
    for (response, answer) in [
        (json!({"uid": "u", "allowed": true}), Answer::Allowed { patch: None }),
        (
            json!({"uid": "u", "allowed": true, "patchType": "JSONPatch", "patch": patch}),
            Answer::Allowed { patch: Some(ops) },
        ),
        (
            json!({"uid": "u", "allowed": false, "status": {"code": 418, "reason": "Forbidden", "message": "no"}}),
            Answer::Denied { code: 418, reason: "Forbidden".to_owned(), message: "no".to_owned() },
        ),
        (json!({"uid": "u"}), Answer::Denied { code: 0, reason: String::new(), message: String::new() }),
    ] {
        assert_eq!(call.read("u", &review(response.clone())).answer, answer, "{response}");
    }
    for (answer, told) in [
        (json!({"kind": "AdmissionReview"}), "expected webhook response of admission.k8s.io/v1"),
        (
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
            "webhook response was absent",
        ),
        (review(json!({"uid": "v", "allowed": true})), "expected response.uid=\"u\", got \"v\""),
        (review(json!({"uid": "u", "allowed": true, "patch": patch})), "but not response.patchType"),
        (review(json!({"uid": "u", "allowed": true, "patchType": "JSONPatch"})), "but not response.patch"),
        (review(json!({"uid": "u", "allowed": true, "patch": patch, "patchType": "Merge"})), "of \"Merge\""),
        (review(json!({"uid": "u", "allowed": true, "patch": "%", "patchType": "JSONPatch"})), "no base64"),
        (review(json!({"uid": "u", "allowed": "yes"})), "no boolean"),
    ] {
        let read = call.read("u", &answer).answer;
        let Answer::Failed { why } = read else { panic!("{answer}: {read:?}") };
        assert!(why.contains(told), "{answer}: {why}");
    }
    let told = call.read(
        "u",
        &review(
            json!({"uid": "u", "allowed": true, "warnings": ["careful"], "auditAnnotations": {"k": "v"}}),
        ),
    );
    assert_eq!((told.warnings, told.audit_annotations.len()), (vec!["careful".to_owned()], 1));
}

#[test]
fn refusals_say_what_the_webhook_said_and_no_less_than_400() {
    for (code, reason, message, expected) in [
        (403, "Forbidden", "no", (403, "Forbidden", "denied the request: no")),
        (0, "", "", (400, "", "denied the request without explanation")),
        (200, "Invalid", "", (400, "Invalid", "denied the request: Invalid")),
        (422, "SomethingElse", "x", (422, "", "denied the request: x")),
    ] {
        let mut world = world_with(ApiConfig::default(), plain(), &[named("guard", "Validating")]);
        let answer = Answer::Denied { code, reason: reason.to_owned(), message: message.to_owned() };
        let event = ask(&world, new_container(), vec![("guard", answer)]);
        let status = refusal(world.api.apply(&event));
        let (code, reason, message) = expected;
        assert_eq!((status.code, status.reason.as_str()), (code, reason));
        assert_eq!(status.message, format!("admission webhook \"w.example.com\" {message}"));
    }
}

#[test]
fn an_answer_about_another_object_is_none() {
    let mut world = world_with(ApiConfig::default(), plain(), &[named("guard", "Validating")]);
    let allowed = || vec![("guard", Answer::Allowed { patch: None })];
    let event = ask(&world, new_container(), allowed());
    // Somebody changes the pod in between.
    let labelled = ask(&world, json!({"metadata": {"labels": {"a": "b"}}}), allowed());
    assert!(world.api.apply(&labelled).is_ok());
    let again = world.api.next_webhook(&event).expect("it is asked about the object as it is now");
    assert_ne!(again.about, event.webhooks[0].about);
    assert_eq!(refusal(world.api.apply(&event)).code, 500);
}

#[test]
fn what_is_beside_the_answer_is_told_to_the_client_and_the_audit_record() {
    let mut world = world_with(ApiConfig::default(), plain(), &[named("guard", "Validating")]);
    let mut event = ask(&world, new_container(), vec![("guard", Answer::Allowed { patch: None })]);
    event.webhooks[0].warnings = vec!["careful".to_owned(), "careful".to_owned()];
    event.webhooks[0].audit_annotations.insert("who".to_owned(), "me".to_owned());
    let performed = world.api.perform(&event);
    assert!(performed.response.is_ok());
    assert_eq!(performed.warnings, ["careful"]);
    assert_eq!(performed.audit_annotations["w.example.com/who"], "me");
}

#[test]
fn a_dry_run_asks_only_whom_that_does_not_bother_and_stores_nothing() {
    for (effects, code) in [("None", 200), ("NoneOnDryRun", 200), ("Some", 400), ("Unknown", 400)] {
        let mut manifest = named("guard", "Validating");
        manifest["webhooks"][0]["sideEffects"] = json!(effects);
        let mut world = world_with(ApiConfig::default(), plain(), &[manifest]);
        let before = world.api.digest();
        let mut event = ask(&world, new_container(), Vec::new());
        event.dry_run = true;
        let event = support::answered(&world.api, event, |call| {
            assert_eq!(call.review["request"]["dryRun"], true);
            Some(Answer::Allowed { patch: None })
        });
        let answer = world.api.apply(&event);
        assert_eq!(support::code(&answer), code, "{effects}: {answer:?}");
        assert_eq!(world.api.digest(), before, "{effects}");
    }
}

#[test]
fn whoever_wants_it_is_asked_again_after_a_change_it_has_not_seen() {
    let hooks = |policy: &str| {
        let mut first = named("a-first", "Mutating");
        first["webhooks"][0]["reinvocationPolicy"] = json!(policy);
        vec![first, named("b-second", "Mutating")]
    };
    for (policy, expected) in [("IfNeeded", 3), ("Never", 2)] {
        let mut world = world_with(ApiConfig::default(), plain(), &hooks(policy));
        let mut event = ask(&world, new_container(), Vec::new());
        let mut asked = Vec::new();
        while let Some(call) = world.api.next_webhook(&event) {
            assert!(asked.len() < 5, "{asked:?}");
            let container = json!({"name": "side", "image": "s:1"});
            let there = call.review["request"]["object"]["spec"]["containers"].to_string().contains("side");
            let ops = json!([{"op": "add", "path": "/spec/containers/-", "value": container}]);
            let patch = (&*call.configuration == "b-second" && !there).then_some(ops);
            asked.push((call.configuration.to_string(), there));
            event.webhooks.push(call.answered(Answer::Allowed { patch }));
        }
        assert_eq!(asked.len(), expected, "{policy}: {asked:?}");
        if policy == "IfNeeded" {
            assert_eq!(asked[2], ("a-first".to_owned(), true), "it sees what the second did");
        }
        assert!(world.api.apply(&event).is_ok());
    }
}

#[test]
fn an_image_policy_is_asked_about_new_images_and_decides() {
    let settings = |default_allow| ApiConfig {
        image_policy: Some(nodefold_api::admission::ImagePolicy {
            client_config: json!({"url": "https://images.example.com/"}),
            default_allow,
        }),
        ..ApiConfig::default()
    };
    let world = |default_allow| {
        let mut world = World::new(settings(true));
        assert!(world.create(pod(plain())).is_ok());
        world.report_running();
        let held = world.api.list("Pod").map(|pod| Value::clone(pod)).collect::<Vec<_>>();
        world.api = nodefold_api::Api::holding(settings(default_allow), held);
        world
    };
    let asked = call(&world(false), new_container());
    assert_eq!(asked.kind, ReviewKind::Image);
    assert_eq!(
        asked.review["spec"],
        json!({"containers": [{"image": "i:1"}], "annotations": {}, "namespace": "default"})
    );
    assert_eq!(asked.review_as("u"), asked.review, "an ImageReview has no uid");
    let said = |status: Value| asked.read("", &json!({"kind": "ImageReview", "status": status}));
    let denied = said(json!({"allowed": false, "reason": "unsigned"}));
    let allowed = said(json!({"allowed": true}));
    for (answers, default_allow, told) in [
        (vec![allowed], false, None),
        (vec![denied], true, Some("image policy webhook backend denied one or more images: unsigned")),
        (vec![asked.failed("connection refused")], false, Some("connection refused")),
        (vec![asked.failed("connection refused")], true, None),
        (Vec::new(), false, Some("it was not called")),
    ] {
        let mut world = world(default_allow);
        let event = ApiEvent { webhooks: answers, ..ask(&world, new_container(), Vec::new()) };
        let answer = world.api.apply(&event);
        match told {
            None => assert!(answer.is_ok(), "{answer:?}"),
            Some(told) => assert_eq!(refusal(answer).message, format!("pods \"web\" is forbidden: {told}")),
        }
    }
    // What brings no image is nobody's business.
    let mut world = world(false);
    assert!(world.dynamic(json!({"metadata": {"labels": {"a": "b"}}})).is_ok());
}
