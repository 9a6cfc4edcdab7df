//! Webhooks. They are called outside of this reducer: a request comes with the answers that were given, and one that
//! wasn't asked or didn't answer is decided by its failurePolicy.
//!
//! An answer belongs to what was asked, by a digest of it: after a patch, a change of the stored object or a second round the
//! webhook is to be asked again, and what it said before counts for nothing. The words of a call and of its answer are in `review`.

use super::attributes::Attributes;
use super::cluster::Cluster;
use super::expression::Scope;
use super::handler::{FailurePolicy, Handler, HandlerKind};
use super::review;
use crate::response::{Status, StatusReason};
use crate::view::{at, text};
use nodefold_core::codec;
use nodefold_core::ids::Name;
use nodefold_k8s::canonical;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a webhook said about a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookAnswer {
    /// The name of its configuration.
    pub configuration: Name,
    /// Its own.
    pub webhook: Name,
    /// What it was asked (`WebhookCall::about`).
    pub about: Name,
    /// The answer.
    pub answer: Answer,
    /// What the client shall be warned of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// What it adds to the audit record.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<String, String>,
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
        /// HTTP status, if it says one; a refusal is never less than 400.
        code: u16,
        /// `reason`; empty if it doesn't say.
        #[serde(default)]
        reason: String,
        /// In words; empty if it doesn't say.
        message: String,
    },
    /// It couldn't be asked, or its answer couldn't be read.
    Failed {
        /// Why.
        why: String,
    },
}

/// What comes of a webhook.
pub(super) enum Outcome<'a> {
    /// It is not asked: a condition is false; why.
    NotAsked(String),
    /// It has nothing against it.
    Allowed(&'a WebhookAnswer),
    /// It wasn't asked, and is taken to allow.
    Assumed,
    /// It gave no answer, which its failurePolicy ignores; why.
    Ignored(String),
    /// The request goes no further.
    Refused(Status),
}

/// What comes of a webhook, and whom to call first if that is not final.
pub(super) struct Decision<'a> {
    pub outcome: Outcome<'a>,
    pub unasked: Option<WebhookCall>,
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
    /// What kind of question it is.
    pub kind: ReviewKind,
    /// Which question this is: a digest of the review.
    pub about: Name,
    /// The AdmissionReview to send, without the `request.uid` (`WebhookCall::review_as`).
    pub review: Value,
}

/// What a webhook is asked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ReviewKind {
    /// `AdmissionReview`, whose answer may hold a patch.
    Mutating,
    /// `AdmissionReview`.
    Validating,
    /// `ImageReview`.
    Image,
}

/// The longest that Kubernetes waits unless the configuration says otherwise.
const TIMEOUT_SECONDS: u64 = 10;

impl WebhookCall {
    /// A question, by its digest.
    pub(super) fn new(
        place: (Name, Name),
        client_config: Value,
        timeout_seconds: u64,
        kind: ReviewKind,
        review: Value,
    ) -> WebhookCall {
        let (configuration, webhook) = place;
        let about = about(&review);
        WebhookCall { configuration, webhook, client_config, timeout_seconds, kind, about, review }
    }

    /// What was said to it, if anything was.
    pub(super) fn find<'a>(&self, answers: &'a [WebhookAnswer]) -> Option<&'a WebhookAnswer> {
        answers.iter().find(|a| {
            a.configuration == self.configuration && a.webhook == self.webhook && a.about == self.about
        })
    }
}

/// The digest of a question, but for what is drawn or measured anew whenever the same request is tried again.
fn about(review: &Value) -> Name {
    let mut asked = review.clone();
    let object = asked.get_mut("request").and_then(|request| request.get_mut("object"));
    let metadata = object.and_then(|object| object.get_mut("metadata")).and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        for field in ["uid", "creationTimestamp", "managedFields"] {
            metadata.shift_remove(field);
        }
    }
    format!("{:032x}", codec::hash_bytes(canonical(&asked).as_bytes()).0).into()
}

fn call(request: &Attributes<'_>, handler: &Handler) -> WebhookCall {
    let kind = match handler.kind {
        HandlerKind::MutatingWebhook => ReviewKind::Mutating,
        HandlerKind::ValidatingWebhook | HandlerKind::MutatingPolicy | HandlerKind::ValidatingPolicy => {
            ReviewKind::Validating
        }
    };
    WebhookCall::new(
        (handler.configuration.clone(), handler.entry.clone()),
        at(&handler.manifest, "clientConfig").clone(),
        at(&handler.manifest, "timeoutSeconds").as_u64().unwrap_or(TIMEOUT_SECONDS),
        kind,
        review::request(request),
    )
}

/// Decides about a webhook that means the request.
pub(super) fn decide<'a>(
    request: &Attributes<'_>,
    handler: &Handler,
    cluster: Cluster<'_>,
    answers: &'a [WebhookAnswer],
    absent_allow: bool,
) -> Decision<'a> {
    let webhook = &handler.entry;
    let fails = |why: &str, status: Status| match handler.failure_policy {
        FailurePolicy::Ignore => Outcome::Ignored(format!("{why} (failurePolicy Ignore)")),
        FailurePolicy::Fail => Outcome::Refused(status),
    };
    let asked = |outcome| Decision { outcome, unasked: None };
    match Scope::conditions_hold_of(request, cluster, &handler.manifest) {
        Ok(true) => {}
        Ok(false) => return asked(Outcome::NotAsked("a matchCondition is false".to_owned())),
        Err(wrong) => {
            let told = format!("admission webhook {webhook:?}: {wrong}");
            return asked(fails(&wrong, Status::forbidden(request.resource, request.name, &told)));
        }
    }
    if request.dry_run && !matches!(text(&handler.manifest, "sideEffects"), "None" | "NoneOnDryRun") {
        let why = format!("admission webhook {webhook:?} does not support dry run");
        return asked(Outcome::Refused(Status::bad_request(why)));
    }
    let call = call(request, handler);
    let Some(given) = call.find(answers) else {
        let outcome = if absent_allow {
            Outcome::Assumed
        } else {
            let why = "it was not called";
            fails(why, Status::internal(&format!("failed calling webhook {webhook:?}: {why}")))
        };
        return Decision { outcome, unasked: Some(call) };
    };
    asked(match &given.answer {
        Answer::Allowed { .. } => Outcome::Allowed(given),
        Answer::Denied { code, reason, message } => Outcome::Refused(denied(webhook, *code, reason, message)),
        Answer::Failed { why } => {
            fails(why, Status::internal(&format!("failed calling webhook {webhook:?}: {why}")))
        }
    })
}

/// A webhook's refusal as clients see it.
fn denied(webhook: &str, code: u16, reason: &str, message: &str) -> Status {
    let by = format!("admission webhook {webhook:?} denied the request");
    let message = match (message, reason) {
        ("", "") => format!("{by} without explanation"),
        ("", reason) => format!("{by}: {reason}"),
        (message, _) => format!("{by}: {message}"),
    };
    Status::of_webhook(code.max(400), StatusReason::read(reason), message)
}
