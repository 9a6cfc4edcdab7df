//! The API server's side of a node's lifecycle: stored pods and their last published status, `/dynamic`,
//! `/resize`, `/ephemeralcontainers` and ordinary updates with their validation, fail-closed [`admission`], graceful
//! deletion, the node's status writes; and who may ask ([`authorize`]).
//!
//! [`Api`] is a reducer like the node's: whole Kubernetes objects in and out, and no clock, randomness or
//! I/O. UIDs and times come with the [`ApiEvent`], so that the same events make the same objects and the same
//! digest. It is apart from the node because the races live between the two: the node sees specs late, this
//! side sees status late.
//!
//! ```
//! use nodefold_api::{Api, ApiConfig, ApiEvent, Body, Request};
//! use nodefold_core::{ids::PodUid, time::Time};
//! use serde_json::json;
//!
//! let mut api = Api::new(ApiConfig::default());
//! let mut ask = |request| api.apply(&ApiEvent::new(Time(0), request, "me"));
//! let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
//!     "spec": {"containers": [{"name": "app", "image": "busybox:1"}]}});
//! assert!(ask(Request::Create { object, uid: PodUid(1) }).is_ok());
//! let tool = json!({"name": "tool", "image": "busybox:1"});
//! let body = Body::StrategicMerge(json!({"spec": {"containers": [tool]}}));
//! let refused = ask(Request::Dynamic { namespace: "default".into(), name: "web".into(), body });
//! assert_eq!(refused.causes()[0].field, "spec.containers", "the pod isn't Running yet");
//! ```

mod account;
pub mod admission;
mod amounts;
pub mod authorize;
mod call;
mod create;
mod hold;
mod identity;
mod lifecycle;
mod request;
mod response;
mod seal;
mod status;
mod store;
mod stored;
mod update;
mod validate;
mod view;

pub use account::{Account, Stage, Step, Verdict};
pub use request::{ApiEvent, Body, FieldValidation, Request};
pub use response::{Cause, CauseReason, Response, Status, StatusReason};
pub use store::{Change, ChangeType, Expired};
pub use stored::Stored;
pub use validate::check_handler;

use admission::{ImagePolicy, WebhookCall};
use authorize::rbac::Rbac;
use call::Call;
use nodefold_core::codec;
use nodefold_core::config::FeatureGates;
use nodefold_core::ids::{Name, PodUid};
use nodefold_core::node::Digest;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{Key, Store};

/// How this API server is set up.
#[derive(Clone, Debug)]
pub struct ApiConfig {
    /// The two KEPs' gates at first; `Request::NodeGates` changes them.
    pub gates: FeatureGates,
    /// The node that a pod created without `spec.nodeName` is bound to at once, in a scheduler's stead.
    /// Empty: none.
    pub node_name: Name,
    /// Gate `InPlacePodLevelResourcesVerticalScaling` (api-side M13).
    pub pod_level_resize: bool,
    /// Gate `ContainerRestartRules` (KEP-5307, api-side S37).
    pub container_restart_rules: bool,
    /// Whether containers may be privileged at all (api-side S39).
    pub allow_privileged: bool,
    /// Most main containers of a pod (api-side C14); no limit by default.
    pub max_containers: Option<usize>,
    /// Names in flight are refused (api-side C4, C5, W3–W5). Off: as an API server without these rules, which leaves it to
    /// the node to keep two lives of a name apart.
    pub refuses_names_in_flight: bool,
    /// Subresources of pods that are switched off: they answer 404.
    pub disabled_pod_subresources: Vec<Name>,
    /// Admission handlers from the server's own files, besides those stored.
    pub static_handlers: Vec<Arc<Value>>,
    /// The handlers have been read; until then `pods/dynamic` is closed.
    pub handlers_known: bool,
    /// Policies that only warn or audit need not cover `pods/dynamic` (api-side §2.2 case 23).
    pub audit_only_policies_exempt: bool,
    /// Plugin AlwaysPullImages.
    pub always_pull_images: bool,
    /// Plugin ImagePolicyWebhook, and how it is set up; none: it is off.
    pub image_policy: Option<ImagePolicy>,
    /// A webhook without an answer allows, instead of being decided by its failurePolicy: for worlds without any.
    pub absent_webhooks_allow: bool,
    /// How many changes are kept for watches; an older one must list anew.
    pub changes_kept: usize,
}

impl Default for ApiConfig {
    fn default() -> ApiConfig {
        ApiConfig {
            gates: FeatureGates::default(),
            node_name: "node".into(),
            pod_level_resize: false,
            container_restart_rules: true,
            allow_privileged: true,
            max_containers: None,
            refuses_names_in_flight: true,
            disabled_pod_subresources: Vec::new(),
            static_handlers: Vec::new(),
            handlers_known: true,
            audit_only_policies_exempt: false,
            always_pull_images: false,
            image_policy: None,
            absent_webhooks_allow: false,
            changes_kept: 10_000,
        }
    }
}

/// An answer, and what goes beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Performed {
    /// The answer.
    pub response: Response,
    /// What the client is warned of, whether refused or not (`Warning` headers).
    pub warnings: Vec<String>,
    /// What handlers add to the audit record.
    pub audit_annotations: BTreeMap<String, String>,
}

/// The API server. A clone shares the stored objects.
#[derive(Clone, Debug)]
pub struct Api {
    config: ApiConfig,
    store: Store,
}

impl Api {
    /// One that stores nothing yet.
    pub fn new(config: ApiConfig) -> Api {
        let store = Store::new(config.changes_kept);
        Api { config, store }
    }

    /// One that stores these objects already, as another server had them: nothing is checked, defaulted or
    /// admitted. Objects without a kind or name are passed over.
    pub fn holding(config: ApiConfig, objects: impl IntoIterator<Item = Value>) -> Api {
        let mut api = Api::new(config);
        for object in objects {
            let metadata = view::at(&object, "metadata");
            let kind = view::text(&object, "kind");
            let key = key(kind, view::text(metadata, "namespace"), view::text(metadata, "name"));
            if !key.kind.is_empty() && !key.name.is_empty() {
                api.store.put(key, object, Default::default());
            }
        }
        api
    }

    /// Folds one request in: the only way state changes.
    pub fn apply(&mut self, event: &ApiEvent) -> Response {
        self.perform(event).response
    }

    /// The same, with what goes beside the answer.
    pub fn perform(&mut self, event: &ApiEvent) -> Performed {
        self.handle(event, &mut Account::forgotten()).0
    }

    /// The next webhook to call before this request may be applied: it is meant and `event.webhooks` doesn't have its
    /// answer yet. Nothing is changed. Ask again with the answer; mutating ones come first, each seeing what those
    /// before it changed.
    pub fn next_webhook(&self, event: &ApiEvent) -> Option<WebhookCall> {
        if !self.has_webhooks() {
            return None;
        }
        self.clone().handle(event, &mut Account::forgotten()).1
    }

    /// Some webhook is registered.
    pub fn has_webhooks(&self) -> bool {
        let registered = |kind| self.list(kind).next().is_some();
        registered("MutatingWebhookConfiguration")
            || registered("ValidatingWebhookConfiguration")
            || !self.config.static_handlers.is_empty()
            || self.config.image_policy.is_some()
    }

    /// What `apply` would answer, and every step on the way; nothing is changed. With an authorizer, the user's
    /// roles are asked first: whoever serves requests does so before they get here.
    pub fn explain(&self, event: &ApiEvent, authorizer: Option<&Rbac>) -> (Response, Account) {
        let mut account = Account::kept();
        if let Some(rbac) = authorizer
            && let Err(refused) = authorize::request(rbac, &event.user, &event.request, &mut account)
        {
            return (Response::Rejected(refused), account);
        }
        let response = self.clone().handle(event, &mut account).0.response;
        if let Response::Rejected(status) = &response {
            account.close(status);
        }
        (response, account)
    }

    fn handle(&mut self, event: &ApiEvent, account: &mut Account) -> (Performed, Option<WebhookCall>) {
        let mut call = Call {
            user: &event.user,
            answers: &event.webhooks,
            account,
            field_validation: event.field_validation,
            dry_run: event.dry_run,
            due: None,
            warnings: Vec::new(),
            audit_annotations: Default::default(),
        };
        let response =
            if event.dry_run { self.clone().decide(event, &mut call) } else { self.decide(event, &mut call) };
        let Call { due, mut warnings, audit_annotations, .. } = call;
        let mut told = BTreeSet::new();
        warnings.retain(|warning| told.insert(warning.clone()));
        (Performed { response, warnings, audit_annotations }, due)
    }

    fn decide(&mut self, event: &ApiEvent, call: &mut Call<'_>) -> Response {
        let answer = match &event.request {
            Request::Create { object, uid } => create::create(self, call, event.at, object, *uid),
            Request::Update { object } => update::put(self, call, object),
            Request::Dynamic { namespace, name, body } => {
                update::pod(self, call, update::Endpoint::Dynamic, namespace, name, body)
            }
            Request::Resize { namespace, name, body } => {
                update::pod(self, call, update::Endpoint::Resize, namespace, name, body)
            }
            Request::Ephemeral { namespace, name, body } => {
                update::pod(self, call, update::Endpoint::Ephemeral, namespace, name, body)
            }
            Request::Delete { kind, namespace, name, grace_seconds, force } => {
                let grace_seconds = if *force { Some(0) } else { *grace_seconds };
                let key = key(kind, namespace, name);
                lifecycle::admitted(self, call, &key)
                    .and_then(|()| lifecycle::delete(self, event.at, &key, grace_seconds))
            }
            Request::Status { namespace, name, uid, status } => {
                status::write(self, call, &key("Pod", namespace, name), *uid, status)
            }
            Request::PatchStatus { namespace, name, body } => {
                status::change(self, call, &key("Pod", namespace, name), body)
            }
            Request::Release { uid } => lifecycle::release(self, event.at, *uid),
            Request::NodeGates(gates) => {
                self.config.gates = *gates;
                Ok(Response::Ok { object: Arc::new(Value::Null), created: false })
            }
        };
        answer.unwrap_or_else(Response::Rejected)
    }

    /// From now on names in flight are refused, or not.
    pub fn refuse_names_in_flight(&mut self, refuse: bool) {
        self.config.refuses_names_in_flight = refuse;
    }

    /// What happened after this version of the store, oldest first. A watch that starts from a list asks from
    /// the version that the list was taken at.
    pub fn watch_from(&self, resource_version: u64) -> Result<impl Iterator<Item = &Change>, Expired> {
        self.store.changes_after(resource_version)
    }

    /// The version of the store now.
    pub fn resource_version(&self) -> u64 {
        self.store.version()
    }

    /// The stored object. Cluster-scoped kinds have no namespace, whatever is given here.
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.store.get(&key(kind, namespace, name)).map(|entry| &entry.object)
    }

    /// The stored pod with this UID.
    pub fn pod_by_uid(&self, uid: PodUid) -> Option<&Arc<Value>> {
        self.find_pod(uid).and_then(|key| self.store.get(&key)).map(|entry| &entry.object)
    }

    /// All stored objects of a kind, by namespace and name.
    pub fn list<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Arc<Value>> {
        self.store.of_kind(kind).map(|(_, entry)| &entry.object)
    }

    /// The gates now.
    pub fn gates(&self) -> FeatureGates {
        self.config.gates
    }

    /// The stored pods, each with what is remembered beside it: names that were removed and that the node may still know
    /// (C5, W5), of containers and of volumes, with the generation that removed each.
    pub fn pods_and_holds(&self) -> impl Iterator<Item = (&Arc<Value>, Vec<(&str, &str, u64)>)> {
        self.store.of_kind("Pod").map(|(_, entry)| (&entry.object, entry.holds.parts()))
    }

    /// Equal exactly when what is stored, the names held and the gates are.
    pub fn digest(&self) -> Digest {
        Digest(self.store.digest().wrapping_add(codec::hash(&self.config.gates).0))
    }

    fn find_pod(&self, uid: PodUid) -> Option<Key> {
        let uid = uid.to_string();
        let is_it = |object: &Value| view::text(view::at(object, "metadata"), "uid") == uid;
        self.store.of_kind("Pod").find(|(_, entry)| is_it(&entry.object)).map(|(key, _)| key.clone())
    }
}

/// Kinds without a namespace, of those that a pod or admission refers to.
const CLUSTER_SCOPED: [&str; 16] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "ClusterTrustBundle",
    "CSIDriver",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// Whether objects of this kind have no namespace.
pub fn is_cluster_scoped(kind: &str) -> bool {
    CLUSTER_SCOPED.contains(&kind)
}

fn key(kind: &str, namespace: &str, name: &str) -> Key {
    let namespace = match namespace {
        _ if is_cluster_scoped(kind) => "",
        "" => "default",
        given => given,
    };
    Key { kind: kind.into(), namespace: namespace.into(), name: name.into() }
}
