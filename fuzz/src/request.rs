//! The whole way of a request: bytes, documents, what is asked, webhooks, policies, rules, the store. A text of YAML documents, each
//! a request: a manifest is created, or put if it is there; a list is a JSON patch, another mapping a strategic-merge patch, both on
//! `/dynamic`. An AdmissionReview is what webhooks answer from there on.
//!
//! Never a panic; what is refused or dry changes nothing; folded again from the events' bytes, sealed or not, the same is stored.

use nodefold_api::admission::ImagePolicy;
use nodefold_api::{Api, ApiConfig, ApiEvent, Body, FieldValidation, Request, Response};
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use nodefold_k8s::parse_documents;
use serde_json::{Value, json};

const DOCUMENTS_MAX: usize = 24;
/// A handler that is never content is asked no more often.
const CALLS_MAX: usize = 12;
const KEY: [u8; 32] = [7; 32];

/// Asks one document after the other.
pub fn request(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    let Ok(documents) = parse_documents(text, "request.yaml") else { return };
    let mut api = world();
    let (mut said, mut log) = (json!({}), Vec::new());
    for (i, document) in documents.into_iter().take(DOCUMENTS_MAX).enumerate() {
        if document.value["kind"] == "AdmissionReview" {
            said = document.value;
            continue;
        }
        let event = ApiEvent {
            field_validation: [FieldValidation::Strict, FieldValidation::Warn, FieldValidation::Ignore]
                [i % 3],
            dry_run: i % 8 == 7,
            ..ApiEvent::new(
                Time(1_796_000_000_000_000_000 + i as u64),
                asked(&api, document.value, i),
                "fuzz",
            )
        };
        let event = answered(&api, event.sealed(&KEY).into_owned(), &said);
        let before = api.digest();
        let performed = api.perform(&event);
        if let Response::Rejected(status) = &performed.response {
            assert!((400..600).contains(&status.code), "{status:?}");
            assert_eq!(status.to_json()["code"], status.code);
        }
        if event.dry_run || !performed.response.is_ok() {
            assert_eq!(api.digest(), before, "{:?}", performed.response);
        }
        log.push(event.to_bytes());
    }
    let mut again = world();
    for event in &log {
        again.perform(&ApiEvent::from_bytes(event).expect("what an event wrote of itself"));
    }
    assert_eq!(again.digest(), api.digest(), "the same requests make the same objects");
}

fn world() -> Api {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default",
            "uid": "00000000-0000-4000-8000-000000000001", "generation": 1},
        "spec": {"nodeName": "node", "restartPolicy": "Always", "containers": [{"name": "app", "image": "i:1"}]},
        "status": {"phase": "Running", "qosClass": "BestEffort", "observedGeneration": 1,
            "conditions": [{"type": "Initialized", "status": "True"}],
            "containerStatuses": [{"name": "app", "resources": {}, "state": {"running": {}}}]}});
    let config = ApiConfig {
        always_pull_images: true,
        image_policy: Some(ImagePolicy { client_config: json!({}), default_allow: true }),
        ..ApiConfig::default()
    };
    Api::holding(config, [pod])
}

fn asked(api: &Api, value: Value, i: usize) -> Request {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = text(&value["kind"]);
    let (namespace, name) = ("default".into(), "web".into());
    if value.is_array() {
        return Request::Dynamic { namespace, name, body: Body::JsonPatch(value) };
    }
    if kind.is_empty() {
        return Request::Dynamic { namespace, name, body: Body::StrategicMerge(value) };
    }
    let metadata = &value["metadata"];
    match api.get(&kind, &text(&metadata["namespace"]), &text(&metadata["name"])) {
        Some(_) => Request::Update { object: value },
        None => Request::Create { object: value, uid: PodUid(2 + i as u128) },
    }
}

/// Webhooks say what the last review says, whatever its uid.
fn answered(api: &Api, mut event: ApiEvent, said: &Value) -> ApiEvent {
    let uid = said["response"]["uid"].as_str().unwrap_or_default();
    for _ in 0..CALLS_MAX {
        let Some(call) = api.next_webhook(&event) else { break };
        assert!(
            call.endpoint().is_ok_and(|endpoint| endpoint.url.starts_with("https://"))
                || call.endpoint().is_err()
        );
        let answer = call.read(uid, said);
        event.webhooks.push(answer);
    }
    event
}
