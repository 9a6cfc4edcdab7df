//! What the API answers: the object, or a `Status` in Kubernetes' shape with every cause.

use core::fmt;
use nodefold_core::ids::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Response {
    /// 200 or 201.
    Ok {
        /// The object as it is stored now, or was when it was removed. Null for `NodeGates`.
        object: Arc<Value>,
        /// It is new (201).
        created: bool,
    },
    /// 4xx or 5xx.
    Rejected(Status),
}

impl Response {
    /// The causes of a refusal; none if accepted or refused for a reason that has no field.
    pub fn causes(&self) -> &[Cause] {
        match self {
            Response::Ok { .. } => &[],
            Response::Rejected(status) => &status.causes,
        }
    }

    /// Whether it was accepted.
    pub fn is_ok(&self) -> bool {
        matches!(self, Response::Ok { .. })
    }
}

/// Why a request was refused (v1.Status with status Failure).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// HTTP status.
    pub code: u16,
    /// `reason`.
    pub reason: StatusReason,
    /// `message`, as kubectl prints it.
    pub message: String,
    /// `details.kind`: the Kind of a 422, else the resource.
    pub kind: Name,
    /// `details.name`.
    pub name: Name,
    /// `details.causes`, all of them, in Kubernetes' order.
    pub causes: Vec<Cause>,
}

/// `reason` of a refusal.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StatusReason {
    /// 400.
    BadRequest,
    /// 401, from a policy that says so.
    Unauthorized,
    /// 403.
    Forbidden,
    /// 404: no such object, or no such route.
    NotFound,
    /// 409: the name is taken.
    AlreadyExists,
    /// 409: stale resourceVersion or other UID.
    Conflict,
    /// 413, from a policy that says so.
    RequestEntityTooLarge,
    /// 422: `causes` say why, or a policy's message.
    Invalid,
    /// 422 without causes: a patch that can't be applied.
    UnprocessableEntity,
    /// 500: a handler that must be asked can't be.
    InternalError,
    /// A webhook's refusal that gives none, or one that nobody knows.
    Unknown,
}

impl StatusReason {
    /// As Kubernetes spells it; a bare 422 has the empty reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            StatusReason::BadRequest => "BadRequest",
            StatusReason::Unauthorized => "Unauthorized",
            StatusReason::Forbidden => "Forbidden",
            StatusReason::NotFound => "NotFound",
            StatusReason::AlreadyExists => "AlreadyExists",
            StatusReason::Conflict => "Conflict",
            StatusReason::RequestEntityTooLarge => "RequestEntityTooLarge",
            StatusReason::Invalid => "Invalid",
            StatusReason::UnprocessableEntity | StatusReason::Unknown => "",
            StatusReason::InternalError => "InternalError",
        }
    }

    /// As a webhook spells it.
    pub(crate) fn read(text: &str) -> StatusReason {
        match text {
            "BadRequest" => StatusReason::BadRequest,
            "Unauthorized" => StatusReason::Unauthorized,
            "Forbidden" => StatusReason::Forbidden,
            "NotFound" => StatusReason::NotFound,
            "AlreadyExists" => StatusReason::AlreadyExists,
            "Conflict" => StatusReason::Conflict,
            "RequestEntityTooLarge" => StatusReason::RequestEntityTooLarge,
            "Invalid" => StatusReason::Invalid,
            "InternalError" => StatusReason::InternalError,
            _ => StatusReason::Unknown,
        }
    }

    const fn code(self) -> u16 {
        match self {
            StatusReason::BadRequest => 400,
            StatusReason::Unauthorized => 401,
            StatusReason::Forbidden => 403,
            StatusReason::NotFound => 404,
            StatusReason::AlreadyExists | StatusReason::Conflict => 409,
            StatusReason::RequestEntityTooLarge => 413,
            StatusReason::Invalid | StatusReason::UnprocessableEntity => 422,
            StatusReason::InternalError | StatusReason::Unknown => 500,
        }
    }
}

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// `field`: its path, empty for the whole object.
    pub field: String,
    /// `reason`.
    pub reason: CauseReason,
    /// `message`.
    pub message: String,
    /// The number of the rule (api-side §1) that is broken; empty for rules that the sheet doesn't number. It
    /// isn't part of the answer on the wire.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub rule: Name,
}

fn is_empty(name: &Name) -> bool {
    name.is_empty()
}

/// `reason` of a cause.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum CauseReason {
    /// Must be given.
    Required,
    /// Wrong value.
    Invalid,
    /// Taken.
    Duplicate,
    /// Not allowed here and now.
    Forbidden,
    /// Refers to what doesn't exist.
    NotFound,
    /// None of the values that there are.
    NotSupported,
    /// Longer than it may be.
    TooLong,
    /// Too many entries.
    TooMany,
    /// A policy or webhook refused; it has no reason of its own on the wire.
    Denied,
    /// A handler of pods doesn't handle the subresource (KEP-5972's gate).
    AdmissionCoverageMissing,
    /// The node can't hold it.
    NodeCapacity,
    /// The node's system can't do it.
    UnsupportedPlatform,
}

impl CauseReason {
    /// As Kubernetes spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            CauseReason::Required => "FieldValueRequired",
            CauseReason::Invalid => "FieldValueInvalid",
            CauseReason::Duplicate => "FieldValueDuplicate",
            CauseReason::Forbidden => "FieldValueForbidden",
            CauseReason::NotFound => "FieldValueNotFound",
            CauseReason::NotSupported => "FieldValueNotSupported",
            CauseReason::TooLong => "FieldValueTooLong",
            CauseReason::TooMany => "FieldValueTooMany",
            CauseReason::Denied => "",
            CauseReason::AdmissionCoverageMissing => "AdmissionCoverageMissing",
            CauseReason::NodeCapacity => "NodeCapacity",
            CauseReason::UnsupportedPlatform => "UnsupportedPlatform",
        }
    }
}

impl fmt::Display for CauseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Status {
    /// The object as an API server sends it.
    pub fn to_json(&self) -> Value {
        let causes: Vec<Value> = self
            .causes
            .iter()
            .map(|c| {
                let parts = [("reason", c.reason.as_str()), ("message", &*c.message), ("field", &*c.field)];
                parts.into_iter().filter(|(_, text)| !text.is_empty()).map(|(k, t)| (k, json!(t))).collect()
            })
            .collect();
        let mut details = serde_json::Map::new();
        for (key, value) in [("name", &self.name), ("kind", &self.kind)] {
            if !value.is_empty() {
                details.insert(key.to_owned(), json!(&**value));
            }
        }
        if !causes.is_empty() {
            details.insert("causes".to_owned(), Value::Array(causes));
        }
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message,
            "reason": self.reason.as_str(), "details": details, "code": self.code})
    }

    fn new(reason: StatusReason, kind: &str, name: &str, message: String) -> Status {
        Status {
            code: reason.code(),
            reason,
            message,
            kind: kind.into(),
            name: name.into(),
            causes: Vec::new(),
        }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Status {
        Status::new(StatusReason::BadRequest, "", "", message.into())
    }

    pub(crate) fn no_such_route() -> Status {
        Status::new(
            StatusReason::NotFound,
            "",
            "",
            "the server could not find the requested resource".to_owned(),
        )
    }

    pub(crate) fn not_found(kind: &str, name: &str) -> Status {
        let resource = resource(kind);
        Status::new(StatusReason::NotFound, &resource, name, format!("{resource} {name:?} not found"))
    }

    pub(crate) fn already_exists(kind: &str, name: &str) -> Status {
        let resource = resource(kind);
        Status::new(
            StatusReason::AlreadyExists,
            &resource,
            name,
            format!("{resource} {name:?} already exists"),
        )
    }

    pub(crate) fn conflict(kind: &str, name: &str, why: &str) -> Status {
        let resource = resource(kind);
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Status::new(StatusReason::Conflict, &resource, name, message)
    }

    /// 403 about an object of a resource.
    pub(crate) fn forbidden(resource: &str, name: &str, why: &str) -> Status {
        let message = format!("{resource} {name:?} is forbidden: {why}");
        Status::new(StatusReason::Forbidden, resource, name, message)
    }

    /// The same under another code, as policies and webhooks may choose.
    pub(crate) fn forbidden_with(code: u16, resource: &str, name: &str, why: String) -> Status {
        let reason = match code {
            401 => StatusReason::Unauthorized,
            413 => StatusReason::RequestEntityTooLarge,
            422 => StatusReason::Invalid,
            _ => StatusReason::Forbidden,
        };
        let refused = Status::forbidden(resource, name, &why);
        let cause =
            Cause { field: String::new(), reason: CauseReason::Denied, message: why, rule: "".into() };
        Status { code, reason, causes: vec![cause], ..refused }
    }

    /// What a webhook refuses with: its words are the whole message.
    pub(crate) fn of_webhook(code: u16, reason: StatusReason, message: String) -> Status {
        Status { code, ..Status::new(reason, "", "", message) }
    }

    /// 500.
    pub(crate) fn internal(why: &str) -> Status {
        Status::new(StatusReason::InternalError, "", "", format!("Internal error occurred: {why}"))
    }

    /// A patch that can't be read or applied.
    pub(crate) fn unpatchable(code: u16, wrong: &impl fmt::Display) -> Status {
        let reason = match code {
            413 => StatusReason::RequestEntityTooLarge,
            422 => StatusReason::UnprocessableEntity,
            _ => StatusReason::BadRequest,
        };
        Status::new(reason, "", "", wrong.to_string())
    }

    pub(crate) fn invalid(kind: &str, name: &str, causes: Vec<Cause>) -> Status {
        let lines: Vec<String> = causes.iter().map(|c| format!("{}: {}", c.field, c.message)).collect();
        let what = match lines.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{kind} {name:?} is invalid: {what}");
        Status { causes, ..Status::new(StatusReason::Invalid, kind, name, message) }
    }
}

/// The resource of a kind: lower case, plural. Right for every kind that a node or admission reads.
pub(crate) fn resource(kind: &str) -> String {
    let lower = kind.to_lowercase();
    match (lower.strip_suffix("class"), lower.strip_suffix("policy")) {
        (Some(_), _) => format!("{lower}es"),
        (None, Some(stem)) => format!("{stem}policies"),
        (None, None) => format!("{lower}s"),
    }
}
