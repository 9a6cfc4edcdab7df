//! What is asked, as admission sees it: who, which operation, on which resource, the object before and after.

use crate::admission::selector::labels;
use crate::view::{at, text};
use nodefold_core::ids::Name;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What a request does to its object.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change of an object or of a part of it.
    Update,
    /// Its removal.
    Delete,
}

impl Operation {
    /// As rules spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
    }
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's name.
    pub name: Name,
    /// Groups that the user is in.
    pub groups: Vec<Name>,
}

impl User {
    /// A user by name alone: authenticated, and in the groups that the name of a service account or node implies.
    pub fn named(name: &str) -> User {
        let mut groups: Vec<Name> = Vec::new();
        let mut parts = name.splitn(4, ':');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("system"), Some("serviceaccount"), Some(namespace), Some(_)) => {
                groups.push("system:serviceaccounts".into());
                groups.push(format!("system:serviceaccounts:{namespace}").into());
            }
            (Some("system"), Some("node"), Some(_), None) => groups.push("system:nodes".into()),
            _ => {}
        }
        groups.push("system:authenticated".into());
        User { name: name.into(), groups }
    }
}

/// The labels of the request's namespace.
#[derive(Clone, Debug)]
pub enum NamespaceLookup<'a> {
    /// The Namespace object.
    Found(&'a Value),
    /// The resource isn't in a namespace.
    ClusterScoped,
    /// It couldn't be looked up; why.
    Failed(String),
}

/// One request.
#[derive(Clone, Debug)]
pub struct Attributes<'a> {
    /// What is done.
    pub operation: Operation,
    /// The resource's API group; empty for Kubernetes' core.
    pub group: &'a str,
    /// Its version.
    pub version: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its resource: plural, lower case.
    pub resource: &'a str,
    /// The part of it that is asked for; empty for the object itself.
    pub subresource: &'a str,
    /// The object's namespace; empty if it isn't in one.
    pub namespace: &'a str,
    /// The object's name.
    pub name: &'a str,
    /// The object as it shall be; null if it is deleted.
    pub object: &'a Value,
    /// The object as it is; null if it is created.
    pub old_object: &'a Value,
    /// Who asks.
    pub user: &'a User,
    /// Nothing will be stored.
    pub dry_run: bool,
    /// The namespace.
    pub namespace_object: NamespaceLookup<'a>,
}

impl<'a> Attributes<'a> {
    /// The same request as if it were another operation on another part of the resource.
    pub fn as_if(&self, operation: Operation, subresource: &'a str) -> Attributes<'a> {
        let old_object = match operation {
            Operation::Create => &Value::Null,
            Operation::Update | Operation::Delete => self.old_object,
        };
        Attributes { operation, subresource, old_object, ..self.clone() }
    }

    /// `resource/subresource`.
    pub fn path(&self) -> String {
        match self.subresource {
            "" => self.resource.to_owned(),
            sub => format!("{}/{sub}", self.resource),
        }
    }

    /// Labels of the object after and before, of those that there are.
    pub(crate) fn object_labels(&self) -> impl Iterator<Item = BTreeMap<&'a str, &'a str>> {
        [self.object, self.old_object].into_iter().filter(|object| !object.is_null()).map(labels)
    }

    /// The `AdmissionRequest` that webhooks are sent and expressions see as `request`.
    pub fn request(&self) -> Value {
        let gvk = json!({"group": self.group, "version": self.version, "kind": self.kind});
        let gvr = json!({"group": self.group, "version": self.version, "resource": self.resource});
        json!({
            "kind": gvk, "resource": gvr, "subResource": self.subresource,
            "requestKind": gvk, "requestResource": gvr, "requestSubResource": self.subresource,
            "name": self.name, "namespace": self.namespace, "operation": self.operation.as_str(),
            "userInfo": {"username": &*self.user.name,
                "groups": self.user.groups.iter().map(|g| &**g).collect::<Vec<_>>()},
            "dryRun": self.dry_run,
        })
    }
}

/// A kind's group and version.
pub(crate) fn group_version(object: &Value) -> (&str, &str) {
    match text(object, "apiVersion").split_once('/') {
        Some((group, version)) => (group, version),
        None if at(object, "apiVersion").is_null() => ("", "v1"),
        None => ("", text(object, "apiVersion")),
    }
}
