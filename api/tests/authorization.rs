//! RBAC over manifests, the default roles without `pods/dynamic` in `edit`, and the node authorizer's graph of api-side §3,
//! event by event.

mod support;

use nodefold_api::ApiConfig;
use nodefold_api::admission::attributes::User;
use nodefold_api::authorize::node_graph::{NodeGraph, Reference, ReferenceKind};
use nodefold_api::authorize::rbac::{Ask, Rbac, Ruling};
use nodefold_api::{ApiEvent, Body, Request, Response};
use serde_json::{Value, json};
use support::{World, pod, running};

fn binding(kind: &str, role_kind: &str, role: &str, subject: Value) -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
        "metadata": {"name": format!("{role}-binding"), "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role}, "subjects": [subject]})
}

fn user(name: &str) -> Value {
    json!({"kind": "User", "name": name})
}

fn ask<'a>(verb: &'a str, path: &'a str) -> Ask<'a> {
    let (resource, subresource) = path.split_once('/').unwrap_or((path, ""));
    Ask { verb, group: "", resource, subresource, namespace: "default", name: "web" }
}

fn may(rbac: &Rbac, who: &str, verb: &str, path: &str) -> bool {
    matches!(rbac.decide(&User::named(who), &ask(verb, path)), Ruling::Allowed { .. })
}

#[test]
fn the_default_roles_do_not_give_dynamic_away() {
    let manifests: Vec<Value> = ["view", "edit", "admin", "cluster-admin"]
        .iter()
        .map(|role| {
            let mut one = binding("RoleBinding", "ClusterRole", role, user(role));
            one["metadata"]["name"] = json!(role);
            one
        })
        .collect();
    let rbac = Rbac::read(&manifests);
    for (role, verb, path, allowed) in [
        ("view", "get", "pods", true),
        ("view", "update", "pods", false),
        ("view", "get", "pods/allocated", true),
        ("view", "get", "secrets", false),
        ("edit", "update", "pods", true),
        ("edit", "patch", "pods/resize", true),
        ("edit", "get", "secrets", true),
        ("edit", "update", "pods/dynamic", false),
        ("edit", "patch", "pods/dynamic", false),
        ("edit", "update", "pods/status", false),
        ("admin", "update", "pods/dynamic", false),
        ("cluster-admin", "update", "pods/dynamic", true),
        ("nobody", "get", "pods", false),
    ] {
        assert_eq!(may(&rbac, role, verb, path), allowed, "{role} {verb} {path}");
    }
}

#[test]
fn roles_bind_where_and_to_whom_they_say() {
    let dynamic = json!({"kind": "Role", "metadata": {"name": "dynamic", "namespace": "default"}, "rules": [
        {"apiGroups": [""], "resources": ["pods/dynamic"], "verbs": ["patch"], "resourceNames": ["web"]}]});
    let manifests = vec![
        dynamic,
        binding(
            "RoleBinding",
            "Role",
            "dynamic",
            json!({"kind": "ServiceAccount", "name": "ray", "namespace": "jobs"}),
        ),
        binding(
            "ClusterRoleBinding",
            "ClusterRole",
            "view",
            json!({"kind": "Group", "name": "system:authenticated"}),
        ),
        binding("RoleBinding", "Role", "missing", user("eve")),
    ];
    let rbac = Rbac::read(&manifests);
    let ray = "system:serviceaccount:jobs:ray";
    assert!(may(&rbac, ray, "patch", "pods/dynamic"));
    assert!(!may(&rbac, ray, "update", "pods/dynamic"), "PUT and PATCH are authorized separately (Q1)");
    assert!(!may(&rbac, "system:serviceaccount:other:ray", "patch", "pods/dynamic"));
    let elsewhere = Ask { namespace: "kube-system", ..ask("patch", "pods/dynamic") };
    assert!(
        matches!(rbac.decide(&User::named(ray), &elsewhere), Ruling::Denied { .. }),
        "a RoleBinding's namespace"
    );
    let another = Ask { name: "another", ..ask("patch", "pods/dynamic") };
    assert!(matches!(rbac.decide(&User::named(ray), &another), Ruling::Denied { .. }), "resourceNames");
    assert!(may(&rbac, "anybody", "get", "pods"), "a group, in any namespace");
    let Ruling::Denied { why } = rbac.decide(&User::named("eve"), &ask("update", "pods/dynamic")) else {
        panic!("allowed");
    };
    assert_eq!(
        why,
        "User \"eve\" cannot update resource \"pods/dynamic\" in API group \"\" in the namespace \"default\""
    );
    let Ruling::Allowed { by } = rbac.decide(&User::named(ray), &ask("patch", "pods/dynamic")) else {
        panic!("denied");
    };
    assert_eq!(by, "RoleBinding \"default/dynamic-binding\" of Role \"dynamic\"");
}

#[test]
fn a_cluster_role_gathers_others_by_their_labels() {
    let gathering = json!({"kind": "ClusterRole", "metadata": {"name": "all"}, "rules": [],
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"gather": "yes"}}]}});
    let part = json!({"kind": "ClusterRole", "metadata": {"name": "part", "labels": {"gather": "yes"}},
        "rules": [{"apiGroups": [""], "resources": ["*/dynamic"], "verbs": ["update"]}]});
    let manifests = vec![gathering, part, binding("ClusterRoleBinding", "ClusterRole", "all", user("ann"))];
    let rbac = Rbac::read(&manifests);
    assert!(may(&rbac, "ann", "update", "pods/dynamic"));
    assert!(!may(&rbac, "ann", "update", "pods"), "*/dynamic is that subresource only");
}

/// KEP-5972: update permission "must be explicitly granted by a cluster-admin". This is how a cluster's admin grants it to all who edit.
#[test]
fn a_label_adds_a_role_to_the_default_ones() {
    let label = |to: &str| json!({format!("rbac.authorization.k8s.io/aggregate-to-{to}"): "true"});
    let part = |to: &str| {
        json!({"kind": "ClusterRole", "metadata": {"name": "more", "labels": label(to)},
            "rules": [{"apiGroups": [""], "resources": ["pods/dynamic"], "verbs": ["update"]}]})
    };
    let bound = |role: &str, who: &str| binding("RoleBinding", "ClusterRole", role, user(who));
    let may_update = |manifests: Vec<Value>| {
        let roles = [bound("view", "vic"), bound("edit", "ed"), bound("admin", "ada")];
        let rbac = Rbac::read(&manifests.into_iter().chain(roles).collect::<Vec<_>>());
        for who in ["vic", "ed", "ada"] {
            assert!(
                may(&rbac, who, "get", "pods/allocated") && !may(&rbac, who, "get", "pods/secret"),
                "{who}"
            );
        }
        ["vic", "ed", "ada"].map(|who| may(&rbac, who, "update", "pods/dynamic"))
    };
    assert_eq!(may_update(Vec::new()), [false, false, false]);
    assert_eq!(may_update(vec![part("admin")]), [false, false, true]);
    assert_eq!(may_update(vec![part("edit")]), [false, true, true]);
    assert_eq!(may_update(vec![part("view")]), [true, true, true]);
}

#[test]
fn roles_that_gather_each_other_end() {
    let gathering = |name: &str, own: &str, of: &str| {
        json!({"kind": "ClusterRole", "metadata": {"name": name, "labels": {own: "yes"}},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {of: "yes"}}]}})
    };
    let manifests = vec![
        gathering("a", "is-a", "is-b"),
        gathering("b", "is-b", "is-a"),
        binding("ClusterRoleBinding", "ClusterRole", "a", user("ann")),
    ];
    assert!(!may(&Rbac::read(&manifests), "ann", "update", "pods/dynamic"));
}

#[test]
fn wildcards_that_give_dynamic_away_are_told() {
    let all = json!({"kind": "ClusterRole", "metadata": {"name": "ops"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let manifests = vec![
        all,
        binding("ClusterRoleBinding", "ClusterRole", "ops", user("ann")),
        binding("ClusterRoleBinding", "ClusterRole", "cluster-admin", user("root")),
        binding("RoleBinding", "ClusterRole", "edit", user("bob")),
    ];
    assert_eq!(
        Rbac::read(&manifests).give_dynamic_unnamed(),
        ["ClusterRoleBinding \"ops-binding\" of ClusterRole \"ops\""]
    );
}

#[test]
fn an_explained_request_is_authorized_first() {
    let mut world = World::new(ApiConfig::default());
    assert!(world.create(pod(json!({"containers": [{"name": "app", "image": "i:1"}]}))).is_ok());
    world.report_running();
    let body = Body::StrategicMerge(json!({"spec": {"containers": [{"name": "new", "image": "i:1"}]}}));
    let request = Request::Dynamic { namespace: "default".into(), name: "web".into(), body };
    let event = ApiEvent::new(world.now, request, "bob");
    let rbac = Rbac::read(&[binding("RoleBinding", "ClusterRole", "edit", user("bob"))]);
    let (response, account) = world.api.explain(&event, Some(&rbac));
    let Response::Rejected(status) = response else { panic!("accepted") };
    assert_eq!(status.code, 403);
    assert_eq!(
        status.message,
        "pods \"web\" is forbidden: User \"bob\" cannot patch resource \"pods/dynamic\" in API group \"\" in the namespace \"default\""
    );
    assert_eq!(account.steps().len(), 1, "nothing else is looked at");
}

// The graph.

fn secret(name: &str) -> Reference {
    Reference { kind: ReferenceKind::Secret, namespace: "default".into(), name: name.into() }
}

fn config_map(name: &str) -> Reference {
    Reference { kind: ReferenceKind::ConfigMap, ..secret(name) }
}

/// A pod in an API whose every change is told to the graph.
struct Bound {
    world: World,
    graph: NodeGraph,
}

impl Bound {
    fn new(spec: Value) -> Bound {
        let mut world = World::new(ApiConfig::default());
        let answer = world.create(pod(spec));
        assert!(answer.is_ok(), "{answer:?}");
        let mut bound = Bound { world, graph: NodeGraph::new() };
        bound.told();
        bound.world.report_running();
        bound.told();
        bound
    }

    fn told(&mut self) {
        self.graph.committed(&self.world.pod());
    }

    fn dynamic(&mut self, spec: Value) {
        let answer = self.world.dynamic(json!({"spec": spec}));
        assert!(answer.is_ok(), "{answer:?}");
        self.told();
    }

    fn status(&mut self, status: Value) {
        assert!(self.world.status(status).is_ok());
        self.told();
    }

    fn reads(&self, what: &Reference) -> bool {
        self.graph.may_read("node", what)
    }
}

fn plain() -> Value {
    json!({"containers": [{"name": "app", "image": "i:1"}]})
}

fn secret_volume(volume: &str, name: &str) -> Value {
    json!({"volumes": [{"name": volume, "secret": {"secretName": name}}]})
}

fn gone(list: &str, name: &str) -> Value {
    json!({list: [{"name": name, "$patch": "delete"}]})
}

#[test]
fn a_bound_pod_gives_its_node_what_it_refers_to_and_no_other_node() {
    let spec = json!({
        "serviceAccountName": "sa", "imagePullSecrets": [{"name": "pull"}],
        "initContainers": [{"name": "i", "image": "i:1", "envFrom": [{"configMapRef": {"name": "of-init"}}]}],
        "containers": [{"name": "app", "image": "i:1",
            "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "of-env", "key": "k"}}}],
            "envFrom": [{"secretRef": {"name": "of-env-from"}}]}],
        "volumes": [
            {"name": "a", "configMap": {"name": "of-volume"}},
            {"name": "b", "projected": {"sources": [{"secret": {"name": "projected"}}, {"configMap": {"name": "projected"}}]}},
            {"name": "c", "emptyDir": {}}
        ]
    });
    let bound = Bound::new(spec);
    let account = Reference { kind: ReferenceKind::ServiceAccount, ..secret("sa") };
    let all = [
        account,
        secret("pull"),
        config_map("of-init"),
        secret("of-env"),
        secret("of-env-from"),
        config_map("of-volume"),
        secret("projected"),
        config_map("projected"),
    ];
    for reference in &all {
        assert!(bound.reads(reference), "{reference:?}");
        assert!(!bound.graph.may_read("other", reference));
    }
    assert_eq!(bound.graph.readable("node"), all.into_iter().collect(), "and nothing else");
    assert!(!bound.reads(&Reference { namespace: "other".into(), ..secret("pull") }));
}

#[test]
fn an_unbound_pod_and_a_mirror_give_nothing() {
    let mut graph = NodeGraph::new();
    let mut object = pod(json!({"volumes": [{"name": "v", "secret": {"secretName": "s"}}]}));
    object["metadata"]["namespace"] = json!("default");
    graph.committed(&object);
    assert!(graph.readable("node").is_empty());
    object["spec"]["nodeName"] = json!("node");
    object["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    graph.committed(&object);
    assert!(graph.readable("node").is_empty());
}

#[test]
fn what_a_request_adds_is_readable_from_its_commit() {
    let mut bound = Bound::new(plain());
    bound.dynamic(
        json!({"containers": [{"name": "new", "image": "i:1", "envFrom": [{"secretRef": {"name": "env"}}]}]}),
    );
    assert!(bound.reads(&secret("env")), "KEP-5972 never says so; without it the container can't start");
    bound.dynamic(secret_volume("v", "vol"));
    assert!(bound.reads(&secret("vol")), "still Pending: the node resolves it while it admits");
    bound.dynamic(
        json!({"volumes": [{"name": "e", "emptyDir": {}}, {"name": "i", "image": {"reference": "i:1"}}]}),
    );
    assert_eq!(bound.graph.readable("node").len(), 2, "these bring nothing");
}

#[test]
fn a_removed_volume_is_readable_until_its_teardown_is_confirmed() {
    // api-side §8 item 5.
    let mut bound = Bound::new(json!({"containers": [{"name": "app", "image": "i:1"}],
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}]}));
    let before = running(&bound.world.pod());
    bound.dynamic(gone("volumes", "v"));
    assert!(bound.reads(&secret("s")), "committed, not allocated");
    assert_eq!(bound.graph.tombstoned("node"), [secret("s")].into());
    let mut deferred = before.clone();
    deferred["observedGeneration"] = json!(2);
    deferred["conditions"]
        .as_array_mut()
        .expect("a list")
        .push(json!({"type": "PodResizePending", "status": "True"}));
    bound.status(deferred);
    assert!(bound.reads(&secret("s")), "Deferred: the node still runs and refreshes it");
    let mut unmounting = before.clone();
    unmounting["observedGeneration"] = json!(2);
    unmounting["volumeStatuses"] = json!([{"name": "v", "hostPhase": "Unmounting"}]);
    bound.status(unmounting);
    assert!(bound.reads(&secret("s")), "Unmounting");
    let mut pruned = before;
    pruned["observedGeneration"] = json!(2);
    pruned["volumeStatuses"] = json!([]);
    bound.status(pruned);
    assert!(!bound.reads(&secret("s")), "pruned, and not in the spec");
}

#[test]
fn a_node_without_volume_statuses_lets_go_when_it_has_seen_the_removal_and_nothing_mounts_it() {
    let mut bound = Bound::new(json!({"containers": [{"name": "app", "image": "i:1"}],
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}]}));
    let status = |generation: u64, mounts: Value| {
        json!({"phase": "Running", "observedGeneration": generation, "conditions": [{"type": "Initialized", "status": "True"}],
            "containerStatuses": [{"name": "app", "state": {"running": {}}, "resources": {}, "volumeMounts": mounts}]})
    };
    bound.dynamic(gone("volumes", "v"));
    bound.status(status(1, json!([])));
    assert!(bound.reads(&secret("s")), "not seen");
    bound.status(status(2, json!([{"name": "v", "mountPath": "/v"}])));
    assert!(bound.reads(&secret("s")), "still mounted");
    bound.status(status(2, json!([])));
    assert!(!bound.reads(&secret("s")));
}

#[test]
fn a_removed_container_s_variables_are_readable_until_it_has_ended() {
    let mut bound = Bound::new(json!({"containers": [{"name": "app", "image": "i:1"},
        {"name": "b", "image": "i:1", "envFrom": [{"secretRef": {"name": "s"}}]}]}));
    let both = running(&bound.world.pod());
    bound.dynamic(gone("containers", "b"));
    let mut stopping = both.clone();
    stopping["observedGeneration"] = json!(2);
    bound.status(stopping.clone());
    assert!(bound.reads(&secret("s")), "its stop is under way");
    stopping["containerStatuses"][1]["state"] = json!({"terminated": {"exitCode": 0}});
    bound.status(stopping);
    assert!(!bound.reads(&secret("s")));
}

#[test]
fn the_same_object_referred_to_twice_stays_while_one_refers_to_it() {
    let mut bound = Bound::new(json!({"containers": [{"name": "app", "image": "i:1",
            "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}],
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}, {"name": "w", "secret": {"secretName": "s"}},
            {"name": "x", "secret": {"secretName": "alone"}}]}));
    for volume in ["v", "w", "x"] {
        bound.dynamic(gone("volumes", volume));
    }
    bound.world.report_running();
    bound.told();
    assert!(bound.reads(&secret("s")), "the variable is left");
    assert!(!bound.reads(&secret("alone")));
    // Another pod's reference counts as well.
    let mut other = bound.world.pod();
    other["metadata"]["name"] = json!("other");
    other["metadata"]["uid"] = json!("other");
    other["spec"]["volumes"] = json!([{"name": "x", "secret": {"secretName": "alone"}}]);
    bound.graph.committed(&other);
    assert!(bound.reads(&secret("alone")));
    bound.graph.deleted("default", "web");
    assert!(bound.reads(&secret("alone")));
    bound.graph.deleted("default", "other");
    assert!(bound.graph.readable("node").is_empty(), "nothing is left");
}

#[test]
fn a_terminal_pod_keeps_its_edges_until_it_is_deleted() {
    let mut bound = Bound::new(json!({"containers": [{"name": "app", "image": "i:1"}],
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}]}));
    let mut status = running(&bound.world.pod());
    status["phase"] = json!("Succeeded");
    bound.status(status);
    assert!(bound.reads(&secret("s")));
    bound.graph.deleted("default", "web");
    assert!(!bound.reads(&secret("s")));
}

#[test]
fn another_pod_under_the_same_name_starts_from_nothing() {
    let mut bound = Bound::new(json!({"containers": [{"name": "app", "image": "i:1"}],
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}]}));
    bound.dynamic(gone("volumes", "v"));
    assert!(bound.reads(&secret("s")));
    let mut another = bound.world.pod();
    another["metadata"]["uid"] = json!("another");
    bound.graph.committed(&another);
    assert!(!bound.reads(&secret("s")), "the old one's tombstone isn't its own");
    another["spec"]["nodeName"] = json!("elsewhere");
    another["spec"]["volumes"] = json!([{"name": "v", "secret": {"secretName": "t"}}]);
    bound.graph.committed(&another);
    assert!(!bound.reads(&secret("t")) && bound.graph.may_read("elsewhere", &secret("t")));
}

#[test]
fn a_name_used_again_holds_only_what_it_refers_to_now() {
    let mut bound = Bound::new(json!({"containers": [{"name": "app", "image": "i:1"}],
        "volumes": [{"name": "v", "secret": {"secretName": "old"}}]}));
    bound.dynamic(gone("volumes", "v"));
    bound.world.report_running();
    bound.told();
    bound.dynamic(secret_volume("v", "new"));
    bound.world.report_running();
    bound.told();
    assert!(!bound.reads(&secret("old")) && bound.reads(&secret("new")));
}

#[test]
fn tombstones_come_back_when_the_history_is_folded_again() {
    // api-side §8 item 10: they are in no API object.
    let mut bound = Bound::new(json!({"containers": [{"name": "app", "image": "i:1"}],
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}]}));
    bound.dynamic(gone("volumes", "v"));
    let mut again = nodefold_api::Api::new(ApiConfig::default());
    for event in &bound.world.log {
        again.apply(event);
    }
    let mut graph = NodeGraph::new();
    for change in again.watch_from(0).expect("all changes are kept") {
        graph.changed(change);
    }
    assert_eq!(graph, bound.graph);
    assert!(graph.may_read("node", &secret("s")));
    let released = ApiEvent::new(bound.world.now, Request::Release { uid: support::UID }, "node");
    assert!(again.apply(&released).is_ok());
    let last =
        again.watch_from(again.resource_version() - 1).expect("kept").last().expect("a change").clone();
    graph.changed(&last);
    assert!(graph.readable("node").is_empty(), "deleted");
}
