//! The kinds that are served, as discovery, the routes and the answers need them: the one table.
//!
//! Owns names and verbs. What a request means is `hub/`'s business.

/// A resource: a kind and how it is addressed.
#[derive(Debug, PartialEq, Eq)]
pub struct Resource {
    /// The API group; empty for Kubernetes' core.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// Plural, lower case: the word in paths.
    pub plural: &'static str,
    /// Singular, lower case.
    pub singular: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Its objects are in namespaces.
    pub namespaced: bool,
    /// Short names that kubectl takes.
    pub short: &'static [&'static str],
    /// Categories that kubectl takes (`all`).
    pub categories: &'static [&'static str],
    /// What may be done.
    pub verbs: &'static [&'static str],
    /// Its parts.
    pub subresources: &'static [Subresource],
}

/// A part of a resource.
#[derive(Debug, PartialEq, Eq)]
pub struct Subresource {
    /// The word in paths.
    pub name: &'static str,
    /// The kind of what is read and written there.
    pub kind: &'static str,
    /// What may be done.
    pub verbs: &'static [&'static str],
}

const ALL: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const CREATE: &[&str] = &["create"];
const CONNECT: &[&str] = &["create", "get"];
const CHANGE: &[&str] = &["get", "patch", "update"];
const GET: &[&str] = &["get"];
const READ: &[&str] = &["get", "list", "watch"];

const POD_PARTS: &[Subresource] = &[
    Subresource { name: "allocated", kind: "Pod", verbs: GET },
    Subresource { name: "attach", kind: "PodAttachOptions", verbs: CONNECT },
    Subresource { name: "dynamic", kind: "Pod", verbs: CHANGE },
    Subresource { name: "ephemeralcontainers", kind: "Pod", verbs: CHANGE },
    Subresource { name: "exec", kind: "PodExecOptions", verbs: CONNECT },
    Subresource { name: "log", kind: "Pod", verbs: GET },
    Subresource { name: "portforward", kind: "PodPortForwardOptions", verbs: CONNECT },
    Subresource { name: "resize", kind: "Pod", verbs: CHANGE },
    Subresource { name: "status", kind: "Pod", verbs: CHANGE },
];

const NONE: Resource = Resource {
    group: "",
    version: "v1",
    plural: "",
    singular: "",
    kind: "",
    namespaced: true,
    short: &[],
    categories: &[],
    verbs: ALL,
    subresources: &[],
};

const HISTORY: &str = "history.nodefold.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// All of them, a group's together.
pub static RESOURCES: &[Resource] = &[
    Resource { plural: "configmaps", singular: "configmap", kind: "ConfigMap", short: &["cm"], ..NONE },
    Resource { plural: "events", singular: "event", kind: "Event", short: &["ev"], ..NONE },
    Resource {
        plural: "limitranges",
        singular: "limitrange",
        kind: "LimitRange",
        short: &["limits"],
        ..NONE
    },
    Resource {
        plural: "namespaces",
        singular: "namespace",
        kind: "Namespace",
        namespaced: false,
        short: &["ns"],
        verbs: &["create", "delete", "get", "list", "patch", "update", "watch"],
        ..NONE
    },
    Resource { plural: "nodes", singular: "node", kind: "Node", namespaced: false, short: &["no"], ..NONE },
    Resource {
        plural: "pods",
        singular: "pod",
        kind: "Pod",
        short: &["po"],
        categories: &["all"],
        subresources: POD_PARTS,
        ..NONE
    },
    Resource {
        plural: "resourcequotas",
        singular: "resourcequota",
        kind: "ResourceQuota",
        short: &["quota"],
        ..NONE
    },
    Resource { plural: "secrets", singular: "secret", kind: "Secret", ..NONE },
    Resource {
        plural: "serviceaccounts",
        singular: "serviceaccount",
        kind: "ServiceAccount",
        short: &["sa"],
        ..NONE
    },
    // There are none of these two on a node. `kubectl cluster-info` asks for the one, and kubectl for the other before it says that a
    // kind is unknown.
    Resource {
        plural: "services",
        singular: "service",
        kind: "Service",
        short: &["svc"],
        verbs: READ,
        ..NONE
    },
    Resource {
        group: "apiextensions.k8s.io",
        plural: "customresourcedefinitions",
        singular: "customresourcedefinition",
        kind: "CustomResourceDefinition",
        namespaced: false,
        short: &["crd", "crds"],
        verbs: READ,
        ..NONE
    },
    Resource {
        group: AUTHORIZATION,
        plural: "selfsubjectaccessreviews",
        singular: "selfsubjectaccessreview",
        kind: "SelfSubjectAccessReview",
        namespaced: false,
        verbs: CREATE,
        ..NONE
    },
    Resource {
        group: AUTHORIZATION,
        plural: "selfsubjectrulesreviews",
        singular: "selfsubjectrulesreview",
        kind: "SelfSubjectRulesReview",
        namespaced: false,
        verbs: CREATE,
        ..NONE
    },
    Resource {
        group: AUTHENTICATION,
        plural: "selfsubjectreviews",
        singular: "selfsubjectreview",
        kind: "SelfSubjectReview",
        namespaced: false,
        verbs: CREATE,
        ..NONE
    },
    // What the KEPs lack: what is allocated, and every run of every container and volume, with who asked for it.
    Resource {
        group: HISTORY,
        version: "v1alpha1",
        plural: "allocations",
        singular: "allocation",
        kind: "Allocation",
        short: &["alloc"],
        verbs: READ,
        ..NONE
    },
    Resource {
        group: HISTORY,
        version: "v1alpha1",
        plural: "containerruns",
        singular: "containerrun",
        kind: "ContainerRun",
        short: &["runs"],
        verbs: READ,
        ..NONE
    },
    Resource {
        group: HISTORY,
        version: "v1alpha1",
        plural: "volumeruns",
        singular: "volumerun",
        kind: "VolumeRun",
        short: &["vruns"],
        verbs: READ,
        ..NONE
    },
    Resource {
        group: RBAC,
        plural: "clusterrolebindings",
        singular: "clusterrolebinding",
        kind: "ClusterRoleBinding",
        namespaced: false,
        ..NONE
    },
    Resource {
        group: RBAC,
        plural: "clusterroles",
        singular: "clusterrole",
        kind: "ClusterRole",
        namespaced: false,
        ..NONE
    },
    Resource { group: RBAC, plural: "rolebindings", singular: "rolebinding", kind: "RoleBinding", ..NONE },
    Resource { group: RBAC, plural: "roles", singular: "role", kind: "Role", ..NONE },
    Resource {
        group: ADMISSION,
        plural: "mutatingadmissionpolicies",
        singular: "mutatingadmissionpolicy",
        kind: "MutatingAdmissionPolicy",
        namespaced: false,
        ..NONE
    },
    Resource {
        group: ADMISSION,
        plural: "mutatingadmissionpolicybindings",
        singular: "mutatingadmissionpolicybinding",
        kind: "MutatingAdmissionPolicyBinding",
        namespaced: false,
        ..NONE
    },
    Resource {
        group: ADMISSION,
        plural: "mutatingwebhookconfigurations",
        singular: "mutatingwebhookconfiguration",
        kind: "MutatingWebhookConfiguration",
        namespaced: false,
        ..NONE
    },
    Resource {
        group: ADMISSION,
        plural: "validatingadmissionpolicies",
        singular: "validatingadmissionpolicy",
        kind: "ValidatingAdmissionPolicy",
        namespaced: false,
        ..NONE
    },
    Resource {
        group: ADMISSION,
        plural: "validatingadmissionpolicybindings",
        singular: "validatingadmissionpolicybinding",
        kind: "ValidatingAdmissionPolicyBinding",
        namespaced: false,
        ..NONE
    },
    Resource {
        group: ADMISSION,
        plural: "validatingwebhookconfigurations",
        singular: "validatingwebhookconfiguration",
        kind: "ValidatingWebhookConfiguration",
        namespaced: false,
        ..NONE
    },
];

impl Resource {
    /// `v1`, or `group/version`.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Its part of that name.
    pub fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.subresources.iter().find(|sub| sub.name == name)
    }
}

/// The resource of a path.
pub fn of_path(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|r| r.group == group && r.version == version && r.plural == plural)
}

/// The resource of a kind.
pub fn of_kind(kind: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|r| r.kind == kind)
}

/// The groups besides the core's, each with its version, in the table's order.
pub fn groups() -> Vec<(&'static str, &'static str)> {
    let mut groups: Vec<(&str, &str)> = Vec::new();
    for resource in RESOURCES.iter().filter(|r| !r.group.is_empty()) {
        if !groups.contains(&(resource.group, resource.version)) {
            groups.push((resource.group, resource.version));
        }
    }
    groups
}
