//! What is asked, as admission sees it: who, which operation, on which resource, the object before and after.

use crate::admission::selector::labels;
use crate::view::{at, text};
use nodefold_core::ids::Name;
use serde::{Deserialize, Serialize};
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

/// Who asks. In a journal a user whose name says everything is that name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct User {
    /// The user's name.
    pub name: Name,
    /// Which of all users that ever had the name; empty if whoever authenticated doesn't know.
    pub uid: Name,
    /// Groups that the user is in.
    pub groups: Vec<Name>,
    /// What else whoever authenticated knows.
    pub extra: BTreeMap<Name, Vec<Name>>,
}

/// A user as bytes.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Named(Name),
    Whole {
        name: Name,
        #[serde(default, skip_serializing_if = "is_unknown")]
        uid: Name,
        groups: Vec<Name>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        extra: BTreeMap<Name, Vec<Name>>,
    },
}

fn is_unknown(uid: &Name) -> bool {
    uid.is_empty()
}

impl From<Written> for User {
    fn from(written: Written) -> User {
        match written {
            Written::Named(name) => User::named(&name),
            Written::Whole { name, uid, groups, extra } => User { name, uid, groups, extra },
        }
    }
}

impl From<User> for Written {
    fn from(user: User) -> Written {
        if user == User::named(&user.name) {
            return Written::Named(user.name);
        }
        let User { name, uid, groups, extra } = user;
        Written::Whole { name, uid, groups, extra }
    }
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
        User { name: name.into(), uid: Name::default(), groups, extra: BTreeMap::new() }
    }

    /// `authentication.k8s.io/v1` UserInfo.
    fn info(&self) -> Value {
        let texts = |names: &[Name]| names.iter().map(|name| json!(&**name)).collect::<Vec<_>>();
        let mut info = json!({"username": &*self.name, "groups": texts(&self.groups)});
        if !self.uid.is_empty() {
            info["uid"] = json!(&*self.uid);
        }
        if !self.extra.is_empty() {
            let extra = self.extra.iter().map(|(key, values)| (key.to_string(), texts(values).into()));
            info["extra"] = Value::Object(extra.collect());
        }
        info
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

    /// The operation's own options, as far as they are known here.
    fn options(&self) -> Value {
        let kind = match self.operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
        };
        let mut options = json!({"apiVersion": "meta.k8s.io/v1", "kind": kind});
        if self.dry_run {
            options["dryRun"] = json!(["All"]);
        }
        options
    }

    /// The `AdmissionRequest` that webhooks are sent and expressions see as `request`.
    pub fn request(&self) -> Value {
        let gvk = json!({"group": self.group, "version": self.version, "kind": self.kind});
        let gvr = json!({"group": self.group, "version": self.version, "resource": self.resource});
        json!({
            "kind": gvk, "resource": gvr, "subResource": self.subresource,
            "requestKind": gvk, "requestResource": gvr, "requestSubResource": self.subresource,
            "name": self.name, "namespace": self.namespace, "operation": self.operation.as_str(),
            "userInfo": self.user.info(), "dryRun": self.dry_run, "options": self.options(),
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
