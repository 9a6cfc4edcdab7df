//! Who may ask what: roles for users ([`rbac`]), and the graph of what a node may read ([`node_graph`]).
//!
//! Pure decisions over manifests and events. The reducer itself doesn't ask: whoever serves requests does, before they are
//! recorded, as an API server authorizes before it admits.

pub mod node_graph;
pub mod rbac;

use crate::account::{Account, Stage, Verdict};
use crate::admission::attributes::User;
use crate::request::{Body, Request};
use crate::response::{Status, resource};
use crate::view::{at, text};
use rbac::{Ask, Rbac, Ruling};

/// Whether the user's roles allow the request. Requests of nodes and of the server itself aren't users'.
pub(crate) fn request(
    rbac: &Rbac,
    user: &User,
    request: &Request,
    account: &mut Account,
) -> Result<(), Status> {
    let Some(asked) = asked(request) else { return Ok(()) };
    let ask = Ask {
        verb: asked.verb,
        group: "",
        resource: &asked.resource,
        subresource: asked.subresource,
        namespace: &asked.namespace,
        name: &asked.name,
    };
    match rbac.decide(user, &ask) {
        Ruling::Allowed { by } => {
            account.tell(Stage::Authorization, Verdict::Passed, || (by.clone(), ask.to_string()));
            Ok(())
        }
        Ruling::Denied { why } => {
            account.tell(Stage::Authorization, Verdict::Refused, || {
                (user.name.to_string(), "no role of theirs allows it".to_owned())
            });
            Err(Status::forbidden(&asked.resource, &asked.name, &why))
        }
    }
}

struct Asked {
    verb: &'static str,
    resource: String,
    subresource: &'static str,
    namespace: String,
    name: String,
}

fn asked(request: &Request) -> Option<Asked> {
    let of_pod = |subresource, namespace: &str, name: &str, body: &Body| Asked {
        verb: match body {
            Body::Full(_) => "update",
            Body::StrategicMerge(_) | Body::Merge(_) | Body::JsonPatch(_) => "patch",
        },
        resource: "pods".to_owned(),
        subresource,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let of_object = |verb, object: &serde_json::Value| {
        let metadata = at(object, "metadata");
        Asked {
            verb,
            resource: resource(text(object, "kind")),
            subresource: "",
            namespace: text(metadata, "namespace").to_owned(),
            name: text(metadata, "name").to_owned(),
        }
    };
    match request {
        Request::Create { object, .. } => Some(of_object("create", object)),
        Request::Update { object } => Some(of_object("update", object)),
        Request::Dynamic { namespace, name, body } => Some(of_pod("dynamic", namespace, name, body)),
        Request::Resize { namespace, name, body } => Some(of_pod("resize", namespace, name, body)),
        Request::Ephemeral { namespace, name, body } => {
            Some(of_pod("ephemeralcontainers", namespace, name, body))
        }
        Request::PatchStatus { namespace, name, body } => Some(of_pod("status", namespace, name, body)),
        Request::Delete { kind, namespace, name, .. } => Some(Asked {
            verb: "delete",
            resource: resource(kind),
            subresource: "",
            namespace: namespace.to_string(),
            name: name.to_string(),
        }),
        Request::Status { .. } | Request::Release { .. } | Request::NodeGates(_) => None,
    }
}
