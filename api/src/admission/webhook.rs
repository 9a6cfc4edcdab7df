//! Webhooks. They are called outside of this reducer: a request comes with the answers that were given, and one that
//! wasn't asked or didn't answer is decided by its failurePolicy.

use super::attributes::Attributes;
use super::expression::Scope;
use super::handler::{FailurePolicy, Handler};
use crate::response::Status;
use nodefold_core::ids::Name;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// It gave no answer, which its failurePolicy ignores; why.
    Ignored(String),
    /// The request goes no further.
    Refused(Status),
}

/// Decides about a webhook that means the request.
pub(super) fn decide(
    request: &Attributes<'_>,
    handler: &Handler,
    answers: &[WebhookAnswer],
    absent_allow: bool,
) -> Outcome {
    let webhook = &handler.entry;
    let fails = |why: String, status: Status| match handler.failure_policy {
        FailurePolicy::Ignore => Outcome::Ignored(format!("{why} (failurePolicy Ignore)")),
        FailurePolicy::Fail => Outcome::Refused(status),
    };
    match Scope::new(request, &Value::Null).conditions_hold(&handler.manifest) {
        Ok(true) => {}
        Ok(false) => return Outcome::NotAsked("a matchCondition is false".to_owned()),
        Err(wrong) => {
            let told = format!("admission webhook {webhook:?}: {wrong}");
            return fails(wrong, Status::forbidden(request.resource, request.name, &told));
        }
    }
    let given = answers.iter().find(|a| a.configuration == handler.configuration && a.webhook == *webhook);
    match given.map(|a| &a.answer) {
        Some(Answer::Allowed { patch }) => Outcome::Allowed(patch.clone()),
        Some(Answer::Denied { code, message }) => {
            let told = format!("admission webhook {webhook:?} denied the request: {message}");
            Outcome::Refused(Status::forbidden_with(*code, request.resource, request.name, told))
        }
        Some(Answer::Failed { why }) => {
            let told = format!("failed calling webhook {webhook:?}: {why}");
            fails(why.clone(), Status::internal(&told))
        }
        None if absent_allow => Outcome::Assumed,
        None => {
            let why = "it was not called".to_owned();
            let told = format!("failed calling webhook {webhook:?}: {why}");
            fails(why, Status::internal(&told))
        }
    }
}
