//! Admission: the 35 rows of api-side §2.2, the sample policies of KEP-5972 as they are printed, the built-in plugins of
//! §2.4, and webhooks' answers.

mod coverage;
mod coverage_laws;
mod libraries;
mod manifests;
mod mutating_policies;
mod plugins;
mod pod_security;
mod policies;
#[path = "../support/mod.rs"]
mod support;
mod webhooks;

use nodefold_api::{ApiConfig, Response, Status};
use nodefold_k8s::parse_documents;
use serde_json::{Value, json};
use support::{World, pod};

/// The running pod `web` in a world with these manifests.
fn world_with(config: ApiConfig, spec: Value, manifests: &[Value]) -> World {
    let mut world = World::new(config);
    for manifest in manifests {
        let answer = world.create_any(manifest.clone());
        assert!(answer.is_ok(), "{manifest}: {answer:?}");
    }
    let answer = world.create(pod(spec));
    assert!(answer.is_ok(), "{answer:?}");
    world.report_running();
    world
}

fn plain() -> Value {
    json!({"containers": [{"name": "app", "image": "i:1"}]})
}

fn adding(container: Value) -> Value {
    json!({"spec": {"containers": [container]}})
}

fn new_container() -> Value {
    adding(json!({"name": "new", "image": "i:1"}))
}

fn refusal(answer: Response) -> Status {
    match answer {
        Response::Rejected(status) => status,
        Response::Ok { .. } => panic!("accepted"),
    }
}

/// Manifests from YAML.
fn yaml(text: &str) -> Vec<Value> {
    let documents = parse_documents(text, "test").expect("YAML");
    documents.into_iter().map(|document| document.value).collect()
}
