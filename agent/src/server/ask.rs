//! What the asynchronous side asks of the node's loop, and what it gets back. Values only: neither side sees the other's state.

use super::failure::Failure;
use super::history::{Past, When};
use super::resource::{Resource, Subresource};
use super::watch::Subscription;
use nodefold_api::FieldValidation;
use nodefold_api::admission::attributes::User;
use nodefold_api::admission::{WebhookAnswer, WebhookCall};
use nodefold_core::ids::Name;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::oneshot;

/// A request that was understood, and who sent it.
#[derive(Debug)]
pub struct Ask {
    /// Who.
    pub user: User,
    /// Who really, if that one speaks for `user`.
    pub impersonator: Option<User>,
    /// What it is about.
    pub target: Target,
    /// What is asked.
    pub what: What,
    /// How it is to be taken.
    pub how: How,
    /// Where the answer goes.
    pub reply: oneshot::Sender<Reply>,
}

/// How a request is to be taken, besides what it asks.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// What becomes of fields that nobody knows.
    pub field_validation: FieldValidation,
    /// What webhooks said about it.
    pub webhooks: Vec<WebhookAnswer>,
}

/// What a request is about, as roles and records name it.
#[derive(Clone, Debug)]
pub enum Target {
    /// Objects.
    Objects {
        /// Of which kind.
        resource: &'static Resource,
        /// Which part.
        part: Option<&'static Subresource>,
        /// Where; empty for what is in no namespace and for all namespaces.
        namespace: String,
        /// Which; empty for lists and creations.
        name: String,
    },
    /// A path that is no object's.
    Path(String),
}

/// What is asked.
#[derive(Clone, Debug)]
pub enum What {
    /// The object, or the part.
    Get,
    /// All of them.
    List {
        /// As of this version, and no other.
        exact: Option<u64>,
        /// As of when, where there is a history.
        when: When,
    },
    /// What changes.
    Watch(WatchFrom),
    /// A new object.
    Create {
        /// The manifest.
        object: Value,
        /// Who owns its fields.
        manager: Manager,
        /// Nothing is kept.
        dry_run: bool,
    },
    /// PUT or PATCH.
    Change {
        /// How.
        body: Change,
        /// Who owns the changed fields.
        manager: Manager,
        /// Nothing is kept.
        dry_run: bool,
    },
    /// DELETE.
    Delete(Deletion),
    /// DELETE of those that the selection takes.
    DeleteAll(Deletion, super::selection::Selection),
    /// Where a container's log is.
    Log {
        /// Which container; empty: the only one.
        container: String,
    },
    /// What the asker may do.
    Review(Value),
    /// What the node allocated: of all pods, or of those that these words name.
    Allocated(Vec<String>),
    /// Something that the asynchronous side answers by itself, if this verb is allowed.
    Permission(&'static str),
    /// Nothing: it was refused before it could be asked, and that is recorded.
    Refused {
        /// The method, as roles call it.
        verb: &'static str,
        /// The answer's code.
        code: u16,
        /// Why.
        why: String,
        /// Refusals before this one that were too many to be recorded.
        left_out: u64,
    },
    /// Where what a running container says can be read.
    Attach {
        /// Which container; empty: the only one.
        container: String,
        /// Something is to be said to it as well.
        stdin: bool,
    },
    /// How to run a program in a container.
    Exec {
        /// Which container; empty: the only one.
        container: String,
        /// The program and its arguments.
        command: Vec<String>,
        /// It gets a terminal.
        tty: bool,
    },
}

/// Who owns fields (`fieldManager`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager(pub String);

/// How an object is changed.
#[derive(Clone, Debug)]
pub enum Change {
    /// The whole object.
    Put(Value),
    /// A strategic-merge patch.
    Strategic(Value),
    /// A merge patch (RFC 7396).
    Merge(Value),
    /// A JSON patch (RFC 6902).
    Json(Value),
    /// Server-side apply.
    Apply {
        /// What the manager wants.
        config: Value,
        /// Fields of others are taken over.
        force: bool,
    },
}

/// How something is deleted.
#[derive(Clone, Debug, Default)]
pub struct Deletion {
    /// `gracePeriodSeconds`.
    pub grace_seconds: Option<u64>,
    /// `preconditions.uid`.
    pub uid: Option<String>,
    /// `preconditions.resourceVersion`.
    pub resource_version: Option<String>,
    /// Nothing is done.
    pub dry_run: bool,
}

/// From where a watch goes on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum WatchFrom {
    /// What there is first, as additions.
    Beginning,
    /// What there is first, then a bookmark that says so (`sendInitialEvents`).
    BeginningMarked,
    /// Only what comes from now on.
    Now,
    /// After this version.
    Version(u64),
}

/// The answer.
#[derive(Debug)]
pub enum Reply {
    /// An object.
    Object {
        /// It.
        object: Arc<Value>,
        /// It is new (201).
        created: bool,
        /// `Warning` headers.
        warnings: Vec<String>,
    },
    /// Objects, and the version at which that was so.
    List {
        /// Them.
        items: Vec<Arc<Value>>,
        /// The store's version.
        version: u64,
    },
    /// What is not remembered: whoever answers reads it.
    Past(Past),
    /// Changes to come.
    Watch(Subscription),
    /// A container's log.
    Log(LogPlace),
    /// The process that runs a program in a container.
    Exec(std::process::Command),
    /// It may be done.
    Permitted,
    /// Somebody is to be asked first; then it is asked again, with what they said.
    Call(Box<(WebhookCall, What)>),
    /// It is refused.
    Refused(Failure),
}

/// Where a container's log is.
#[derive(Clone, Debug)]
pub struct LogPlace {
    /// The directory with a file for each life of it.
    pub dir: PathBuf,
    /// The pod.
    pub pod: Name,
    /// The pod's UID.
    pub uid: Name,
    /// The container.
    pub container: Name,
    /// It will write no more.
    pub ended: bool,
    /// It waits to start, for this reason.
    pub waiting: Option<String>,
}
