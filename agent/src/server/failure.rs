//! Why a request is refused, as v1.Status. What `Api` refuses comes from it; here are the refusals that only a server makes.

use nodefold_api::Status;
use nodefold_api::admission::WebhookCall;
use serde_json::{Map, Value, json};

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// HTTP status.
    pub code: u16,
    /// The object that is sent.
    pub status: Value,
    /// `Warning` headers.
    pub warnings: Vec<String>,
    /// It is no refusal yet: this webhook is to be asked first.
    pub call: Option<Box<WebhookCall>>,
}

impl Failure {
    /// A refusal with that reason, which concerns no object.
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Failure {
        Failure::about(code, reason, message, Map::new())
    }

    fn about(code: u16, reason: &str, message: impl Into<String>, details: Map<String, Value>) -> Failure {
        let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message.into(), "reason": reason});
        if !details.is_empty() {
            status["details"] = Value::Object(details);
        }
        status["code"] = json!(code);
        Failure { code, status, warnings: Vec::new(), call: None }
    }

    /// 400.
    pub fn bad_request(message: impl Into<String>) -> Failure {
        Failure::new(400, "BadRequest", message)
    }

    /// 401: nobody known asks.
    pub fn unauthorized() -> Failure {
        Failure::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403 about something that is no object.
    pub fn forbidden_path(user: &str, verb: &str, path: &str) -> Failure {
        let why = format!("forbidden: User {user:?} cannot {verb} path {path:?}");
        Failure::new(403, "Forbidden", why)
    }

    /// 403 about an object, or about all of a resource.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Failure {
        let full = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        let what = if name.is_empty() { full } else { format!("{full} {name:?}") };
        Failure::about(
            403,
            "Forbidden",
            format!("{what} is forbidden: {why}"),
            details(group, resource, name),
        )
    }

    /// 404: no such route.
    pub fn no_such_route() -> Failure {
        Failure::new(404, "NotFound", "the server could not find the requested resource")
    }

    /// 404: no such object.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Failure {
        let full = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        Failure::about(404, "NotFound", format!("{full} {name:?} not found"), details(group, resource, name))
    }

    /// 405.
    pub fn method_not_allowed() -> Failure {
        Failure::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
    }

    /// 406.
    pub fn not_acceptable(offered: &str) -> Failure {
        let what = format!("only the following media types are accepted: {offered}");
        Failure::new(406, "NotAcceptable", what)
    }

    /// 408: the client took too long.
    pub fn too_slow() -> Failure {
        Failure::new(408, "Timeout", "the request took too long to arrive")
    }

    /// 409 about an object.
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Failure {
        let full = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
        let message = format!("Operation cannot be fulfilled on {full} {name:?}: {why}");
        Failure::about(409, "Conflict", message, details(group, resource, name))
    }

    /// 409: other managers own fields that are applied, one cause for each.
    pub fn apply_conflict(causes: Vec<(String, String)>) -> Failure {
        let told: Vec<String> = causes.iter().map(|(message, field)| format!("{message}: {field}")).collect();
        let count = causes.len();
        let plural = if count == 1 { "" } else { "s" };
        let causes: Vec<Value> = causes
            .into_iter()
            .map(
                |(message, field)| json!({"reason": "FieldManagerConflict", "message": message, "field": field}),
            )
            .collect();
        let details = Map::from_iter([("causes".to_owned(), Value::Array(causes))]);
        let message = format!("Apply failed with {count} conflict{plural}: {}", told.join("\n"));
        Failure::about(409, "Conflict", message, details)
    }

    /// 410: the version is no longer kept; list anew.
    pub fn expired(asked: u64, oldest: u64) -> Failure {
        Failure::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    /// 504: no version that there was yet.
    pub fn too_large_version(asked: u64, now: u64) -> Failure {
        let details = Map::from_iter([("retryAfterSeconds".to_owned(), json!(1))]);
        Failure::about(
            504,
            "Timeout",
            format!("Too large resource version: {asked}, current: {now}"),
            details,
        )
    }

    /// 410: a list's next page was asked for too late.
    pub fn stale_continue() -> Failure {
        let what = "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.";
        Failure::new(410, "Expired", what)
    }

    /// 422 about the parameters of a list or watch.
    pub fn bad_options(field: &str, what: &str) -> Failure {
        let message = format!("ListOptions.meta.k8s.io \"\" is invalid: {field}: {what}");
        Failure::new(422, "Invalid", message)
    }

    /// 501: this node has no such thing.
    pub fn not_implemented(message: impl Into<String>) -> Failure {
        Failure::new(501, "NotImplemented", message)
    }

    /// 413.
    pub fn too_large(limit: usize) -> Failure {
        let message = format!("Request entity too large: limit is {limit}");
        Failure::new(413, "RequestEntityTooLarge", message)
    }

    /// 415.
    pub fn unsupported_media_type(given: &str, supported: &str) -> Failure {
        let message = format!(
            "the body of the request was in an unknown format {given:?} - accepted media types include: {supported}"
        );
        Failure::new(415, "UnsupportedMediaType", message)
    }

    /// 429: ask again after so many seconds.
    pub fn too_many_requests(message: &str, after: u64) -> Failure {
        let details = Map::from_iter([("retryAfterSeconds".to_owned(), json!(after))]);
        Failure::about(429, "TooManyRequests", message, details)
    }

    /// 500.
    pub fn internal(message: impl std::fmt::Display) -> Failure {
        Failure::new(500, "InternalError", format!("Internal error occurred: {message}"))
    }

    /// No refusal yet: a webhook is to be asked.
    pub fn until_asked(call: WebhookCall) -> Failure {
        Failure { call: Some(Box::new(call)), ..Failure::internal("a webhook is to be asked first") }
    }

    /// 503: the node's loop has ended.
    pub fn unavailable() -> Failure {
        Failure::new(503, "ServiceUnavailable", "the node is ending")
    }

    /// Seconds after which to ask again, if the refusal says so.
    pub fn retry_after(&self) -> Option<u64> {
        self.status["details"]["retryAfterSeconds"].as_u64()
    }

    /// Its message.
    pub fn message(&self) -> &str {
        self.status["message"].as_str().unwrap_or_default()
    }
}

fn details(group: &str, resource: &str, name: &str) -> Map<String, Value> {
    let mut details = Map::new();
    for (key, text) in [("name", name), ("group", group), ("kind", resource)] {
        if !text.is_empty() {
            details.insert(key.to_owned(), json!(text));
        }
    }
    details
}

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        Failure { code: status.code, status: status.to_json(), warnings: Vec::new(), call: None }
    }
}
