//! LimitRanger, ResourceQuota, PodResizeValidator and NodeDeclaredFeatureValidator on `/dynamic` (api-side §2.4).

use super::*;

fn limit_range(item: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "limits"}, "spec": {"limits": [item]}})
}

fn sized(name: &str, cpu: &str) -> Value {
    json!({"name": name, "image": "i:1", "resources": {"requests": {"cpu": cpu}}})
}

fn quota(hard: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "compute"}, "spec": {"hard": hard}})
}

#[test]
fn limit_ranger_defaults_into_new_containers_only() {
    let mut world = world_with(ApiConfig::default(), json!({"containers": [sized("app", "1")]}), &[]);
    let item = json!({"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "500m"}});
    assert!(world.create_any(limit_range(item)).is_ok());
    let answer = world.dynamic(new_container());
    assert!(answer.is_ok(), "{answer:?}");
    let stored = world.pod();
    let (new, app) = (&stored["spec"]["containers"][0], &stored["spec"]["containers"][1]);
    assert_eq!(
        new["resources"],
        json!({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}})
    );
    assert_eq!(app["resources"], json!({"requests": {"cpu": "1"}}), "a default would be a hidden resize");
}

#[test]
fn a_default_that_flips_the_qos_class_is_told_not_swallowed() {
    // api-side §8 item 6: it comes before C13.
    let mut world = world_with(ApiConfig::default(), plain(), &[]);
    assert!(world.create_any(limit_range(json!({"type": "Container", "default": {"cpu": "1"}}))).is_ok());
    let status = refusal(world.dynamic(new_container()));
    assert_eq!(status.code, 422);
    assert_eq!((status.causes[0].field.as_str(), &*status.causes[0].rule), ("spec", "C13"));
}

#[test]
fn limit_ranger_bounds_every_container_and_the_pod() {
    let world = |item: Value| {
        let mut world = world_with(ApiConfig::default(), json!({"containers": [sized("app", "1")]}), &[]);
        assert!(world.create_any(limit_range(item)).is_ok());
        world
    };
    let limited = |request: &str, limit: &str| {
        adding(
            json!({"name": "new", "image": "i:1", "resources": {"requests": {"cpu": request}, "limits": {"cpu": limit}}}),
        )
    };
    for (item, patch, message) in [
        (
            json!({"type": "Container", "min": {"cpu": "100m"}}),
            adding(sized("new", "50m")),
            "minimum cpu usage per Container is 100m, but request is 50m",
        ),
        (
            json!({"type": "Pod", "max": {"cpu": "1500m"}}),
            limited("1", "2"),
            "maximum cpu usage per Pod is 1500m, but limit is 2",
        ),
        (
            json!({"type": "Pod", "maxLimitRequestRatio": {"cpu": "1"}}),
            limited("500m", "4"),
            "cpu max limit to request ratio per Pod is 1, but provided ratio is 2.666667",
        ),
    ] {
        let status = refusal(world(item.clone()).dynamic(patch));
        assert_eq!(status.code, 403, "{item}: {}", status.message);
        assert_eq!(status.message, format!("pods \"web\" is forbidden: {message}"));
    }
    assert!(
        world(json!({"type": "Container", "min": {"cpu": "100m"}}))
            .dynamic(adding(sized("new", "100m")))
            .is_ok()
    );
}

#[test]
fn resource_quota_charges_the_difference() {
    let world = |hard: Value| {
        let mut world = world_with(ApiConfig::default(), json!({"containers": [sized("app", "1")]}), &[]);
        assert!(world.create_any(quota(hard)).is_ok());
        world
    };
    let hard = || json!({"requests.cpu": "2", "pods": "1"});
    assert!(world(hard()).dynamic(adding(sized("new", "1"))).is_ok());
    let status = refusal(world(hard()).dynamic(adding(sized("new", "1500m"))));
    assert_eq!(status.code, 403);
    assert_eq!(
        status.message,
        "pods \"web\" is forbidden: exceeded quota: compute, requested: requests.cpu=1500m, used: requests.cpu=1, \
         limited: requests.cpu=2"
    );
    let status = refusal(world(hard()).dynamic(new_container()));
    assert_eq!(
        status.message,
        "pods \"web\" is forbidden: failed quota: compute: must specify requests.cpu for: new"
    );
    let mut over = world(hard());
    assert_eq!(
        refusal(over.create_any(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "second"},
        "spec": {"containers": [sized("a", "100m")]}})))
        .code,
        403,
        "pods=1"
    );
    let mut scoped = quota(json!({"pods": "0"}));
    scoped["spec"]["scopes"] = json!(["BestEffort"]);
    let mut world = world_with(ApiConfig::default(), json!({"containers": [sized("app", "1")]}), &[scoped]);
    assert!(world.dynamic(adding(sized("new", "1"))).is_ok(), "another class's quota");
}

#[test]
fn a_removal_gives_quota_back_only_when_it_is_carried_out() {
    let spec = json!({"containers": [sized("app", "1"), sized("b", "1")]});
    let mut world = world_with(ApiConfig::default(), spec, &[quota(json!({"requests.cpu": "2"}))]);
    let removal = json!({"spec": {"containers": [{"name": "b", "$patch": "delete"}]}});
    assert!(world.dynamic(removal).is_ok());
    let status = refusal(world.dynamic(adding(sized("new", "1"))));
    assert!(status.message.contains("exceeded quota"), "it still runs: {}", status.message);
    world.report_running();
    assert!(world.dynamic(adding(sized("new", "1"))).is_ok());
}

fn node(more: Value) -> Value {
    let mut status = json!({"allocatable": {"cpu": "2", "memory": "4Gi"},
        "declaredFeatures": ["DynamicContainers", "DynamicNodeLocalEphemeralVolumes"],
        "nodeInfo": {"operatingSystem": "linux"}});
    for (key, value) in more.as_object().into_iter().flatten() {
        status[key] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}, "status": status})
}

#[test]
fn what_no_node_of_its_size_could_hold_is_refused_at_once() {
    let world =
        |node: Value| world_with(ApiConfig::default(), json!({"containers": [sized("app", "1")]}), &[node]);
    assert!(world(node(json!({}))).dynamic(adding(sized("new", "1"))).is_ok());
    let status = refusal(world(node(json!({}))).dynamic(adding(sized("new", "1500m"))));
    assert_eq!((status.code, status.causes[0].reason.as_str()), (403, "NodeCapacity"));
    assert!(status.message.contains("requested: 2500m, capacity: 2"), "{}", status.message);
    let resized = json!({"spec": {"containers": [{"name": "app", "resources": {"requests": {"cpu": "3"}}}]}});
    assert_eq!(refusal(world(node(json!({}))).resize(resized)).causes[0].reason.as_str(), "NodeCapacity");
    let windows = node(json!({"nodeInfo": {"operatingSystem": "windows"}}));
    let status = refusal(world(windows).dynamic(adding(sized("new", "1"))));
    assert_eq!(status.causes[0].reason.as_str(), "UnsupportedPlatform");
    // Nothing of the spec changes: it isn't looked at.
    let small = node(json!({"allocatable": {"cpu": "500m"}}));
    assert!(world(small).dynamic(json!({"metadata": {"labels": {"a": "b"}}})).is_ok());
}

#[test]
fn the_node_must_declare_what_the_change_needs() {
    let world = |declared: Value| {
        let spec = json!({"containers": [sized("app", "1")], "volumes": [{"name": "v", "emptyDir": {}}]});
        world_with(ApiConfig::default(), spec, &[node(json!({"declaredFeatures": declared}))])
    };
    let volume = || json!({"spec": {"volumes": [{"name": "n", "emptyDir": {}}]}});
    let image = || json!({"spec": {"containers": [{"name": "app", "image": "i:2"}]}});
    assert!(world(json!(["DynamicContainers"])).dynamic(adding(sized("new", "1"))).is_ok());
    assert!(world(json!([])).dynamic(image()).is_ok(), "no structure changes");
    let status = refusal(world(json!([])).dynamic(adding(sized("new", "1"))));
    assert_eq!(status.code, 403);
    assert!(
        status.message.contains("requires features DynamicContainers which node \"node\""),
        "{}",
        status.message
    );
    let status = refusal(world(json!(["DynamicContainers"])).dynamic(volume()));
    assert!(status.message.contains("DynamicNodeLocalEphemeralVolumes"), "{}", status.message);
}
