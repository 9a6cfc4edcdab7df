//! A pod in an API, brought to where a test needs it, and one request to it.

#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::expect_used, reason = "a failed expectation is a failed test")]

use nodefold_api::admission::{Answer, WebhookCall};
use nodefold_api::{Api, ApiConfig, ApiEvent, Body, Request, Response};
use nodefold_core::config::FeatureGates;
use nodefold_core::ids::PodUid;
use nodefold_core::time::{Nanos, Time};
use serde_json::{Value, json};

pub const UID: PodUid = PodUid(0x1234_5678_9abc_def0_1122_3344_5566_7788);

/// An API with a clock that the test sets.
pub struct World {
    pub api: Api,
    pub now: Time,
    pub log: Vec<ApiEvent>,
}

impl World {
    pub fn new(config: ApiConfig) -> World {
        World { api: Api::new(config), now: Time(1_796_000_000_000_000_000), log: Vec::new() }
    }

    pub fn ask(&mut self, request: Request) -> Response {
        let event = ApiEvent::new(self.now, request, "test");
        self.log.push(event.clone());
        self.api.apply(&event)
    }

    pub fn advance_secs(&mut self, seconds: u64) {
        self.now = self.now.after(Nanos::secs(seconds));
    }

    pub fn create(&mut self, object: Value) -> Response {
        self.create_as(object, UID)
    }

    pub fn create_as(&mut self, object: Value, uid: PodUid) -> Response {
        self.ask(Request::Create { object, uid })
    }

    /// A new object of any kind, under a UID of its own.
    pub fn create_any(&mut self, object: Value) -> Response {
        let uid = PodUid(UID.0 ^ (self.log.len() as u128 + 1));
        self.create_as(object, uid)
    }

    pub fn update(&mut self, object: Value) -> Response {
        self.ask(Request::Update { object })
    }

    pub fn dynamic(&mut self, patch: Value) -> Response {
        let body = Body::StrategicMerge(patch);
        self.ask(Request::Dynamic { namespace: "default".into(), name: "web".into(), body })
    }

    pub fn dynamic_whole(&mut self, pod: Value) -> Response {
        self.ask(Request::Dynamic { namespace: "default".into(), name: "web".into(), body: Body::Full(pod) })
    }

    pub fn resize(&mut self, patch: Value) -> Response {
        let body = Body::StrategicMerge(patch);
        self.ask(Request::Resize { namespace: "default".into(), name: "web".into(), body })
    }

    pub fn ephemeral(&mut self, patch: Value) -> Response {
        let body = Body::StrategicMerge(patch);
        self.ask(Request::Ephemeral { namespace: "default".into(), name: "web".into(), body })
    }

    pub fn delete(&mut self, grace_seconds: Option<u64>) -> Response {
        self.delete_object("Pod", "web", grace_seconds, false)
    }

    pub fn delete_object(
        &mut self,
        kind: &str,
        name: &str,
        grace_seconds: Option<u64>,
        force: bool,
    ) -> Response {
        let (kind, name) = (kind.into(), name.into());
        self.ask(Request::Delete { kind, namespace: "default".into(), name, grace_seconds, force })
    }

    pub fn status(&mut self, status: Value) -> Response {
        self.ask(Request::Status { namespace: "default".into(), name: "web".into(), uid: UID, status })
    }

    pub fn gates(&mut self, dynamic_containers: bool, dynamic_volumes: bool) {
        self.ask(Request::NodeGates(FeatureGates { dynamic_containers, dynamic_volumes }));
    }

    /// The pod as stored.
    pub fn pod(&self) -> Value {
        Value::clone(self.api.get("Pod", "default", "web").expect("pod web is stored"))
    }

    /// The node reports the pod as running as desired: every container and volume of the spec, and nothing
    /// else.
    pub fn report_running(&mut self) {
        let status = running(&self.pod());
        let answer = self.status(status);
        assert!(answer.is_ok(), "{answer:?}");
    }
}

/// The pod `web` with this spec.
pub fn pod(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": spec})
}

/// The status of a pod whose spec is wholly actuated.
pub fn running(pod: &Value) -> Value {
    let entries = |list: &str| pod["spec"][list].as_array().cloned().unwrap_or_default();
    let statuses = |list: &str| -> Vec<Value> {
        entries(list)
            .iter()
            .map(|c| {
                json!({"name": c["name"], "image": c["image"], "ready": true, "restartCount": 0,
                    "state": {"running": {"startedAt": "2026-11-30T00:00:00Z"}}, "resources": c["resources"],
                    "volumeMounts": c.get("volumeMounts").cloned().unwrap_or_else(|| json!([]))})
            })
            .collect()
    };
    let volumes: Vec<Value> =
        entries("volumes").iter().map(|v| json!({"name": v["name"], "hostPhase": "HostMounted"})).collect();
    json!({"observedGeneration": pod["metadata"]["generation"], "phase": "Running",
        "conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}],
        "initContainerStatuses": statuses("initContainers"), "containerStatuses": statuses("containers"),
        "ephemeralContainerStatuses": statuses("ephemeralContainers"), "volumeStatuses": volumes})
}

/// The event with what webhooks say, asked one after the other as whoever drives `Api` does it. Whoever says nothing ends it.
pub fn answered(api: &Api, mut event: ApiEvent, say: impl Fn(&WebhookCall) -> Option<Answer>) -> ApiEvent {
    for _ in 0..32 {
        let Some(call) = api.next_webhook(&event) else { break };
        let Some(answer) = say(&call) else { break };
        event.webhooks.push(call.answered(answer));
    }
    event
}

/// A refusal's causes, as a set of (field, reason).
pub fn causes(answer: &Response) -> Vec<(String, &'static str)> {
    let mut causes: Vec<_> = answer.causes().iter().map(|c| (c.field.clone(), c.reason.as_str())).collect();
    causes.sort();
    causes.dedup();
    causes
}

/// The HTTP status of an answer.
pub fn code(answer: &Response) -> u16 {
    match answer {
        Response::Ok { created: true, .. } => 201,
        Response::Ok { created: false, .. } => 200,
        Response::Rejected(status) => status.code,
    }
}
