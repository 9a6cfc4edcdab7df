//! Webhooks. They are called outside of this reducer: a request comes with the answers that were given, and one that
//! wasn't asked or didn't answer is decided by its failurePolicy.

use super::attributes::Attributes;
use super::expression::Scope;
use super::handler::{FailurePolicy, Handler};
use crate::response::Status;
use crate::view::at;
use nodefold_core::ids::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a webhook said about a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookAnswer {
    /// The name of its configuration.
    pub configuration: Name,
    /// Its own.
    pub webhook: Name,
    /// The answer.
    pub answer: Answer,
}

/// An AdmissionResponse, or that there was none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Allowed.
    Allowed {
        /// A JSON patch (RFC 6902) of the object, from mutating webhooks.
        patch: Option<Value>,
    },
    /// Refused.
    Denied {
        /// HTTP status; 403 if the webhook doesn't say.
        code: u16,
        /// In words.
        message: String,
    },
    /// It couldn't be asked, or its answer couldn't be read.
    Failed {
        /// Why.
        why: String,
    },
}

/// What comes of a webhook.
pub(super) enum Outcome {
    /// It is not asked: not meant, or a condition is false; why.
    NotAsked(String),
    /// It has nothing against it.
    Allowed(Option<Value>),
    /// It wasn't asked, and is taken to allow.
    Assumed,
    /// It gave no answer, which its failurePolicy ignores; why, and whether it was asked.
    Ignored { why: String, asked: bool },
    /// The request goes no further; whether it was asked.
    Refused { status: Status, asked: bool },
}

impl Outcome {
    /// It is meant, and nobody asked it.
    pub fn is_unanswered(&self) -> bool {
        match self {
            Outcome::Assumed => true,
            Outcome::Ignored { asked, .. } | Outcome::Refused { asked, .. } => !asked,
            Outcome::NotAsked(_) | Outcome::Allowed(_) => false,
        }
    }
}

/// A webhook to be called, for whoever drives the reducer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookCall {
    /// The name of its configuration.
    pub configuration: Name,
    /// Its own.
    pub webhook: Name,
    /// Where it is: `clientConfig`.
    pub client_config: Value,
    /// How long to wait.
    pub timeout_seconds: u64,
    /// The AdmissionReview to send; `request.uid` is the caller's to fill in.
    pub review: Value,
}

/// The longest that Kubernetes waits unless the configuration says otherwise.
const TIMEOUT_SECONDS: u64 = 10;

pub(super) fn call(request: &Attributes<'_>, handler: &Handler) -> WebhookCall {
    let mut asked = request.request();
    asked["object"] = request.object.clone();
    asked["oldObject"] = request.old_object.clone();
    WebhookCall {
        configuration: handler.configuration.clone(),
        webhook: handler.entry.clone(),
        client_config: at(&handler.manifest, "clientConfig").clone(),
        timeout_seconds: at(&handler.manifest, "timeoutSeconds").as_u64().unwrap_or(TIMEOUT_SECONDS),
        review: json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}),
    }
}

/// Decides about a webhook that means the request.
pub(super) fn decide(
    request: &Attributes<'_>,
    handler: &Handler,
    answers: &[WebhookAnswer],
    absent_allow: bool,
) -> Outcome {
    let webhook = &handler.entry;
    let fails = |why: String, status: Status, asked: bool| match handler.failure_policy {
        FailurePolicy::Ignore => Outcome::Ignored { why: format!("{why} (failurePolicy Ignore)"), asked },
        FailurePolicy::Fail => Outcome::Refused { status, asked },
    };
    match Scope::new(request, &Value::Null).conditions_hold(&handler.manifest) {
        Ok(true) => {}
        Ok(false) => return Outcome::NotAsked("a matchCondition is false".to_owned()),
        Err(wrong) => {
            let told = format!("admission webhook {webhook:?}: {wrong}");
            return fails(wrong, Status::forbidden(request.resource, request.name, &told), true);
        }
    }
    let given = answers.iter().find(|a| a.configuration == handler.configuration && a.webhook == *webhook);
    match given.map(|a| &a.answer) {
        Some(Answer::Allowed { patch }) => Outcome::Allowed(patch.clone()),
        Some(Answer::Denied { code, message }) => {
            let told = format!("admission webhook {webhook:?} denied the request: {message}");
            let status = Status::forbidden_with(*code, request.resource, request.name, told);
            Outcome::Refused { status, asked: true }
        }
        Some(Answer::Failed { why }) => {
            let told = format!("failed calling webhook {webhook:?}: {why}");
            fails(why.clone(), Status::internal(&told), true)
        }
        None if absent_allow => Outcome::Assumed,
        None => {
            let why = "it was not called".to_owned();
            let told = format!("failed calling webhook {webhook:?}: {why}");
            fails(why, Status::internal(&told), false)
        }
    }
}
