//! What is asked of the API: requests as values, and their bytes for a journal.

use crate::admission::WebhookAnswer;
use crate::admission::attributes::User;
use nodefold_core::config::FeatureGates;
use nodefold_core::ids::{Name, PodUid};
use nodefold_core::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request, when it arrived and who sent it. Everything that `Api` decides follows from these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiEvent {
    /// When it arrived.
    pub at: Time,
    /// What is asked.
    pub request: Request,
    /// By whom.
    pub user: User,
    /// What becomes of fields that nobody knows (`fieldValidation`).
    #[serde(default, skip_serializing_if = "FieldValidation::is_strict")]
    pub field_validation: FieldValidation,
    /// Everything but the last step is done (`dryRun=All`).
    #[serde(default, skip_serializing_if = "is_false")]
    pub dry_run: bool,
    /// What webhooks said about it, asked before the request was recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<WebhookAnswer>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// What becomes of fields that nobody knows.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FieldValidation {
    /// The request is refused.
    #[default]
    Strict,
    /// They are dropped, and the client is warned.
    Warn,
    /// They are dropped.
    Ignore,
}

impl FieldValidation {
    /// `fieldValidation` of a query; an API server that isn't told warns.
    pub fn read(text: &str) -> Option<FieldValidation> {
        match text {
            "Strict" => Some(FieldValidation::Strict),
            "" | "Warn" => Some(FieldValidation::Warn),
            "Ignore" => Some(FieldValidation::Ignore),
            _ => None,
        }
    }

    fn is_strict(&self) -> bool {
        *self == FieldValidation::Strict
    }
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// POST of a new object.
    Create {
        /// The manifest. A namespaced object without a namespace goes into `default`.
        object: Value,
        /// The UID that it gets: drawn by whoever records the event, so that a replay gives it the same.
        uid: PodUid,
    },
    /// PUT of a whole object on its main resource.
    Update {
        /// The manifest, replacing what is stored.
        object: Value,
    },
    /// PUT or PATCH on `pods/dynamic` (KEP-5972, KEP-6395).
    Dynamic {
        /// The pod's namespace.
        namespace: Name,
        /// The pod's name.
        name: Name,
        /// The change.
        body: Body,
    },
    /// PUT or PATCH on `pods/resize` (KEP-1287).
    Resize {
        /// The pod's namespace.
        namespace: Name,
        /// The pod's name.
        name: Name,
        /// The change; whatever isn't resources is ignored.
        body: Body,
    },
    /// PUT or PATCH on `pods/ephemeralcontainers`.
    Ephemeral {
        /// The pod's namespace.
        namespace: Name,
        /// The pod's name.
        name: Name,
        /// The change; whatever isn't ephemeral containers is ignored.
        body: Body,
    },
    /// DELETE by a client.
    Delete {
        /// The object's kind.
        kind: Name,
        /// Its namespace; ignored for cluster-scoped kinds.
        namespace: Name,
        /// Its name.
        name: Name,
        /// `gracePeriodSeconds`; a pod's own if not given.
        grace_seconds: Option<u64>,
        /// At once, whatever the node does: a grace period of 0.
        force: bool,
    },
    /// The node's write on `pods/status`.
    Status {
        /// The pod's namespace.
        namespace: Name,
        /// The pod's name.
        name: Name,
        /// The pod that the node means; another of the same name is none of its business.
        uid: PodUid,
        /// The whole new status.
        status: Value,
    },
    /// PATCH or PUT on `pods/status` by a client: what a controller that owns a condition does.
    PatchStatus {
        /// The pod's namespace.
        namespace: Name,
        /// The pod's name.
        name: Name,
        /// The change; whatever isn't status is ignored.
        body: Body,
    },
    /// The node's final delete: everything of this pod is gone from the node.
    Release {
        /// Which pod.
        uid: PodUid,
    },
    /// The feature gates from now on.
    NodeGates(FeatureGates),
}

/// How a change of a pod is spelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// A strategic-merge patch.
    StrategicMerge(Value),
    /// A JSON merge patch (RFC 7396): lists are replaced as a whole.
    Merge(Value),
    /// A JSON patch (RFC 6902).
    JsonPatch(Value),
    /// The whole pod as it shall be.
    Full(Value),
}

impl ApiEvent {
    /// A request of a user whose name says everything, that no webhook was asked about.
    pub fn new(at: Time, request: Request, user: &str) -> ApiEvent {
        ApiEvent::of(at, request, User::named(user))
    }

    /// A request that no webhook was asked about.
    pub fn of(at: Time, request: Request, user: User) -> ApiEvent {
        let field_validation = FieldValidation::Strict;
        ApiEvent { at, request, user, field_validation, dry_run: false, webhooks: Vec::new() }
    }

    /// The event's bytes (JSON), for a journal.
    pub fn to_bytes(&self) -> Vec<u8> {
        // All keys are strings and all values finite: serde_json has no reason to refuse.
        serde_json::to_vec(self).expect("an event's JSON")
    }

    /// Reads what `to_bytes` wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<ApiEvent, serde_json::Error> {
        serde_json::from_slice(bytes)
    }
}
