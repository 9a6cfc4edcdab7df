//! A small RBAC over Role, ClusterRole, RoleBinding and ClusterRoleBinding manifests.
//!
//! The default roles are there without manifests: `cluster-admin`, `admin`, `edit` and `view` for what nodefold serves. Update
//! permission on `pods/dynamic` is not in `edit` (KEP-5972), nor in `admin`, which holds what `edit` does; `view` may read
//! `pods/allocated` (api-side §6.3 question 23). They gather roles by the labels that Kubernetes' own gather by
//! (`rbac.authorization.k8s.io/aggregate-to-edit`, ...). A manifest of the same name replaces a default.

use crate::admission::attributes::User;
use crate::admission::selector::{Selector, labels};
use crate::view::{at, list, name, text};
use nodefold_core::ids::Name;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// Who is in this group may do everything, whatever roles say.
pub const MASTERS: &str = "system:masters";

/// What is asked for.
#[derive(Copy, Clone, Debug)]
pub struct Ask<'a> {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, ...
    pub verb: &'a str,
    /// The API group; empty for the core's.
    pub group: &'a str,
    /// The resource.
    pub resource: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace; empty for what isn't in one, and for all of them.
    pub namespace: &'a str,
    /// The object's name; empty for lists and creations.
    pub name: &'a str,
}

impl Ask<'_> {
    fn path(&self) -> String {
        match self.subresource {
            "" => self.resource.to_owned(),
            sub => format!("{}/{sub}", self.resource),
        }
    }
}

impl fmt::Display for Ask<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.path())
    }
}

/// What the roles say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// This binding of this role allows it.
    Allowed {
        /// Both, in words.
        by: String,
    },
    /// Nothing allows it.
    Denied {
        /// As Kubernetes says it.
        why: String,
    },
}

#[derive(Clone, Debug)]
struct PolicyRule {
    verbs: Vec<String>,
    groups: Vec<String>,
    resources: Vec<String>,
    names: Vec<String>,
    /// Paths that are no object's.
    paths: Vec<String>,
}

#[derive(Clone, Debug)]
struct Binding {
    /// The namespace of a RoleBinding; a ClusterRoleBinding has none.
    namespace: Option<Name>,
    name: Name,
    role_kind: Name,
    role_name: Name,
    subjects: Vec<Subject>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    User(Name),
    Group(Name),
}

/// The roles and who has them.
#[derive(Clone, Debug, Default)]
pub struct Rbac {
    /// By namespace (none for ClusterRoles) and name.
    roles: BTreeMap<(Option<Name>, Name), Vec<PolicyRule>>,
    bindings: Vec<Binding>,
}

impl Rbac {
    /// The default roles and those of the manifests; other kinds are passed over.
    pub fn read<'m>(manifests: impl IntoIterator<Item = &'m Value>) -> Rbac {
        let manifests: Vec<&Value> = manifests.into_iter().collect();
        let mut rbac = Rbac::default();
        let defaults = default_roles();
        let of_kind = |kind: &'static str| manifests.iter().copied().filter(move |m| text(m, "kind") == kind);
        let by_name = defaults.iter().chain(of_kind("ClusterRole"));
        let cluster_roles: BTreeMap<&str, &Value> =
            by_name.map(|role| (name(at(role, "metadata")), role)).collect();
        for (name, role) in &cluster_roles {
            let rules = rules_of(role, &cluster_roles, MOST_STEPS);
            rbac.roles.insert((None, (*name).into()), rules);
        }
        for role in of_kind("Role") {
            rbac.roles.insert((Some(namespace(role)), name(at(role, "metadata")).into()), read_rules(role));
        }
        for kind in ["ClusterRoleBinding", "RoleBinding"] {
            rbac.bindings.extend(of_kind(kind).map(|b| read_binding(b, kind == "RoleBinding")));
        }
        let place = |b: &Binding| (b.namespace.clone(), b.name.clone());
        rbac.bindings.sort_by_key(place);
        rbac
    }

    /// Whether the user may do that.
    pub fn decide(&self, user: &User, ask: &Ask<'_>) -> Ruling {
        if user.groups.iter().any(|group| &**group == MASTERS) {
            return Ruling::Allowed { by: format!("group {MASTERS}") };
        }
        let in_place = |binding: &&Binding| binding.namespace.as_deref().is_none_or(|ns| ns == ask.namespace);
        for binding in self.bindings.iter().filter(in_place) {
            if binding.subjects.iter().any(|subject| subject.is(user))
                && self.rules(binding).iter().any(|rule| rule.allows(ask))
            {
                return Ruling::Allowed { by: binding.to_string() };
            }
        }
        let whose = format!("User {:?} cannot {} resource {:?}", user.name, ask.verb, ask.path());
        let place = match ask.namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        Ruling::Denied { why: format!("{whose} in API group {:?} {place}", ask.group) }
    }

    /// Whether the user may do that with a path that is no object's.
    pub fn allows_path(&self, user: &User, verb: &str, path: &str) -> bool {
        let is_in = |wanted: &str| user.groups.iter().any(|group| &**group == wanted);
        let everywhere = self.bindings.iter().filter(|binding| binding.namespace.is_none());
        let bound = everywhere.filter(|binding| binding.subjects.iter().any(|subject| subject.is(user)));
        is_in(MASTERS)
            || (verb == "get"
                && is_in("system:authenticated")
                && DISCOVERY.iter().any(|p| means_path(p, path)))
            || bound.flat_map(|binding| self.rules(binding)).any(|rule| rule.allows_path(verb, path))
    }

    /// What the user may do in a namespace, as the rules that are bound to them: what `kubectl auth can-i --list` shows.
    pub fn rules_of(&self, user: &User, namespace: &str) -> Vec<Value> {
        let in_place = |binding: &&Binding| binding.namespace.as_deref().is_none_or(|ns| ns == namespace);
        let is_theirs = |binding: &&Binding| binding.subjects.iter().any(|subject| subject.is(user));
        let bound = self.bindings.iter().filter(in_place).filter(is_theirs);
        bound.flat_map(|binding| self.rules(binding)).map(PolicyRule::to_json).collect()
    }

    /// Bindings that give `pods/dynamic` away without naming it, through `*`: worth a warning at start
    /// (api-side §6.3 question 20). `cluster-admin` is meant so.
    pub fn give_dynamic_unnamed(&self) -> Vec<String> {
        let gives = |rule: &PolicyRule| {
            let writes = rule.verbs.iter().any(|v| matches!(v.as_str(), "*" | "update" | "patch"));
            let core = rule.groups.iter().any(|g| g.is_empty() || g == "*");
            let unnamed = |r: &String| matches!(r.as_str(), "*" | "*/*" | "pods/*" | "*/dynamic");
            writes && core && rule.resources.iter().any(unnamed)
        };
        let meant = |binding: &&Binding| &*binding.role_name != "cluster-admin";
        let giving = self.bindings.iter().filter(meant).filter(|b| self.rules(b).iter().any(gives));
        giving.map(ToString::to_string).collect()
    }

    fn rules(&self, binding: &Binding) -> &[PolicyRule] {
        let place = if &*binding.role_kind == "Role" { binding.namespace.clone() } else { None };
        self.roles.get(&(place, binding.role_name.clone())).map_or(&[], Vec::as_slice)
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "RoleBinding \"{namespace}/{}\"", self.name)?,
            None => write!(f, "ClusterRoleBinding {:?}", self.name)?,
        }
        write!(f, " of {} {:?}", self.role_kind, self.role_name)
    }
}

impl Subject {
    fn is(&self, user: &User) -> bool {
        match self {
            Subject::User(name) => *name == user.name,
            Subject::Group(group) => user.groups.contains(group),
        }
    }
}

impl PolicyRule {
    fn to_json(&self) -> Value {
        let mut rule = json!({"verbs": self.verbs, "apiGroups": self.groups, "resources": self.resources});
        if !self.names.is_empty() {
            rule["resourceNames"] = json!(self.names);
        }
        rule
    }

    fn allows_path(&self, verb: &str, path: &str) -> bool {
        self.verbs.iter().any(|v| v == "*" || v == verb) && self.paths.iter().any(|p| means_path(p, path))
    }

    fn allows(&self, ask: &Ask<'_>) -> bool {
        let has = |texts: &[String], wanted: &str| texts.iter().any(|t| t == "*" || t == wanted);
        let path = ask.path();
        let any_sub = format!("*/{}", ask.subresource);
        let resource = |r: &String| r == "*" || *r == path || (!ask.subresource.is_empty() && *r == any_sub);
        has(&self.verbs, ask.verb)
            && has(&self.groups, ask.group)
            && self.resources.iter().any(resource)
            && (self.names.is_empty() || self.names.iter().any(|n| n == ask.name))
    }
}

/// What everybody who is known may read (`system:discovery`).
const DISCOVERY: [&str; 9] =
    ["/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi/*", "/readyz", "/version"];

/// A star at its end stands for anything.
fn means_path(pattern: &str, path: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == path, |start| path.starts_with(start))
}

fn namespace(object: &Value) -> Name {
    match text(at(object, "metadata"), "namespace") {
        "" => "default".into(),
        given => given.into(),
    }
}

/// Roles gather roles that gather roles: `admin` has what `edit` has, which has what `view` has. So far, and no round of them for ever.
const MOST_STEPS: u8 = 4;

/// A ClusterRole's own rules; those of the roles that it gathers, if it gathers any.
fn rules_of(role: &Value, all: &BTreeMap<&str, &Value>, steps: u8) -> Vec<PolicyRule> {
    let selectors = list(at(role, "aggregationRule"), "clusterRoleSelectors");
    if selectors.is_empty() {
        return read_rules(role);
    }
    let Some(steps) = steps.checked_sub(1) else { return Vec::new() };
    let read: Vec<Selector> = selectors.iter().filter_map(|s| Selector::read(s).ok()).collect();
    let itself = name(at(role, "metadata"));
    let gathered = all.iter().filter(|(name, _)| **name != itself).map(|(_, other)| *other);
    let gathered = gathered.filter(|other| read.iter().any(|s| s.selects(&labels(other))));
    gathered.flat_map(|other| rules_of(other, all, steps)).collect()
}

fn read_rules(role: &Value) -> Vec<PolicyRule> {
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        list(rule, field).iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let read = |rule: &Value| PolicyRule {
        verbs: texts(rule, "verbs"),
        groups: texts(rule, "apiGroups"),
        resources: texts(rule, "resources"),
        names: texts(rule, "resourceNames"),
        paths: texts(rule, "nonResourceURLs"),
    };
    list(role, "rules").iter().map(read).collect()
}

fn read_binding(binding: &Value, in_namespace: bool) -> Binding {
    let own = in_namespace.then(|| namespace(binding));
    let role = at(binding, "roleRef");
    let subject = |subject: &Value| match text(subject, "kind") {
        "User" => Some(Subject::User(name(subject).into())),
        "Group" => Some(Subject::Group(name(subject).into())),
        "ServiceAccount" => {
            let place = match text(subject, "namespace") {
                "" => own.clone().unwrap_or_default(),
                given => given.into(),
            };
            Some(Subject::User(format!("system:serviceaccount:{place}:{}", name(subject)).into()))
        }
        _ => None,
    };
    Binding {
        namespace: own.clone(),
        name: name(at(binding, "metadata")).into(),
        role_kind: text(role, "kind").into(),
        role_name: name(role).into(),
        subjects: list(binding, "subjects").iter().filter_map(subject).collect(),
    }
}

/// What Kubernetes' default roles hold of what nodefold serves.
fn default_roles() -> Vec<Value> {
    let read = ["get", "list", "watch"];
    let write = ["create", "delete", "deletecollection", "patch", "update"];
    let view = [
        json!({"apiGroups": [""], "resources": ["pods", "configmaps", "events", "serviceaccounts", "namespaces"], "verbs": read}),
        json!({"apiGroups": [""], "resources": ["pods/log", "pods/status", "pods/allocated"], "verbs": read}),
        json!({"apiGroups": ["history.nodefold.io"], "resources": ["allocations", "containerruns", "volumeruns"], "verbs": read}),
    ];
    let edit = [
        json!({"apiGroups": [""], "resources": ["pods", "configmaps", "secrets", "events", "serviceaccounts"], "verbs": write}),
        json!({"apiGroups": [""], "verbs": write,
            "resources": ["pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "pods/resize"]}),
        json!({"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}),
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": read}),
    ];
    let all = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "nonResourceURLs": ["*"]});
    let label = |whose: &str| json!({format!("rbac.authorization.k8s.io/aggregate-to-{whose}"): "true"});
    let holding = |name: &str, labels: Value, rules: &[Value]| json!({"kind": "ClusterRole", "metadata": {"name": name, "labels": labels}, "rules": rules});
    let gathering = |name: &str, labels: Value| {
        json!({"kind": "ClusterRole", "metadata": {"name": name, "labels": labels},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": label(name)}]}})
    };
    vec![
        holding("cluster-admin", json!({}), &[all]),
        gathering("admin", json!({})),
        gathering("edit", label("admin")),
        gathering("view", label("edit")),
        holding("system:aggregate-to-edit", label("edit"), &edit),
        holding("system:aggregate-to-view", label("view"), &view),
    ]
}
