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

#[test]
fn always_pull_images_reaches_what_a_dynamic_change_brings() {
    let config = || ApiConfig { always_pull_images: true, ..ApiConfig::default() };
    let mut world = world_with(config(), plain(), &[]);
    assert_eq!(world.pod()["spec"]["containers"][0]["imagePullPolicy"], "Always", "at creation, too");
    let patch = json!({"spec": {"volumes": [{"name": "v", "image": {"reference": "r:1", "pullPolicy": "Never"}}],
        "containers": [{"name": "new", "image": "i:1", "imagePullPolicy": "Never"}]}});
    let answer = world.dynamic(patch);
    assert!(answer.is_ok(), "{answer:?}");
    let stored = world.pod();
    assert_eq!(stored["spec"]["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(stored["spec"]["volumes"][0]["image"]["pullPolicy"], "Always");
    let debugger = json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "i:1"}]}});
    assert!(world.ephemeral(debugger).is_ok());
    assert_eq!(world.pod()["spec"]["ephemeralContainers"][0]["imagePullPolicy"], "Always");

    // What stays as it came is left alone, and what a later handler changes back is refused with every path.
    let mut pods = world_with(ApiConfig::default(), plain(), &[]);
    let held = pods.api.list("Pod").map(|pod| Value::clone(pod)).collect::<Vec<_>>();
    pods.api = nodefold_api::Api::holding(config(), held);
    assert!(pods.dynamic(new_container()).is_ok());
    assert_eq!(pods.pod()["spec"]["containers"][1]["imagePullPolicy"], "IfNotPresent");
    let mut hook =
        coverage::webhook("Mutating", json!({"rules": [coverage::rule(&["UPDATE"], &["pods/dynamic"])]}));
    // Without this the second round would put it right.
    hook["webhooks"][0]["reinvocationPolicy"] = json!("IfNeeded");
    assert!(world.create_any(hook).is_ok());
    let body = nodefold_api::Body::StrategicMerge(adding(json!({"name": "third", "image": "i:1"})));
    let request = nodefold_api::Request::Dynamic { namespace: "default".into(), name: "web".into(), body };
    let event = nodefold_api::ApiEvent::new(world.now, request, "test");
    let back = json!([{"op": "replace", "path": "/spec/containers/0/imagePullPolicy", "value": "Never"}]);
    let event = support::answered(&world.api, event, |_| {
        Some(nodefold_api::admission::Answer::Allowed { patch: Some(back.clone()) })
    });
    let status = refusal(world.api.apply(&event));
    assert_eq!(status.code, 403);
    assert_eq!(
        status.message,
        "pods \"web\" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: \"Never\": supported values: \"Always\""
    );
}

#[test]
fn an_account_that_enforces_its_secrets_is_asked_on_dynamic_as_well() {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot",
        "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}, "secrets": [{"name": "mine"}],
        "imagePullSecrets": [{"name": "pull"}]});
    let spec = |more: Value| {
        let mut spec =
            json!({"serviceAccountName": "robot", "containers": [{"name": "app", "image": "i:1"}]});
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        spec
    };
    let not = "is not allowed because service account robot does not reference that secret";
    let from =
        |secret: &str| json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}});
    for (patch, told) in [
        (
            json!({"spec": {"volumes": [{"name": "v", "secret": {"secretName": "other"}}]}}),
            format!("volume with secret.secretName=\"other\" {not}"),
        ),
        (
            adding(json!({"name": "new", "image": "i:1", "env": [from("other")]})),
            format!("container new with envVar A referencing secret.secretName=\"other\" {not}"),
        ),
        (
            adding(json!({"name": "new", "image": "i:1", "envFrom": [{"secretRef": {"name": "other"}}]})),
            format!("container new with envFrom referencing secret.secretName=\"other\" {not}"),
        ),
    ] {
        let mut world = world_with(ApiConfig::default(), spec(json!({})), std::slice::from_ref(&account));
        let status = refusal(world.dynamic(patch));
        assert_eq!((status.code, status.message), (403, format!("pods \"web\" is forbidden: {told}")));
    }
    let mut world = world_with(ApiConfig::default(), spec(json!({})), std::slice::from_ref(&account));
    let mine = json!({"spec": {"volumes": [{"name": "v", "secret": {"secretName": "mine"}}],
        "containers": [{"name": "new", "image": "i:1", "env": [from("mine")]}]}});
    assert!(world.dynamic(mine).is_ok());
    let debugger =
        json!({"spec": {"ephemeralContainers": [{"name": "d", "image": "i:1", "env": [from("other")]}]}});
    let status = refusal(world.ephemeral(debugger));
    assert!(status.message.contains("ephemeral container d with envVar A"), "{}", status.message);
    // At creation pull secrets count as well.
    let mut world = World::new(ApiConfig::default());
    assert!(world.create_any(account).is_ok());
    let status = refusal(world.create(pod(spec(json!({"imagePullSecrets": [{"name": "other"}]})))));
    assert!(
        status.message.contains("imagePullSecrets[0].name=\"other\" is not allowed"),
        "{}",
        status.message
    );
}

#[test]
fn a_mirror_pod_refers_to_nothing_that_an_api_holds() {
    for (spec, told) in [
        (json!({"serviceAccountName": "robot"}), "a mirror pod may not reference service accounts"),
        (json!({"imagePullSecrets": [{"name": "s"}]}), "a mirror pod may not reference secrets"),
        (
            json!({"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]}),
            "a mirror pod may not reference secrets",
        ),
    ] {
        let mut object = pod(plain());
        for (key, value) in spec.as_object().into_iter().flatten() {
            object["spec"][key] = value.clone();
        }
        object["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
        let status = refusal(World::new(ApiConfig::default()).create(object));
        assert_eq!((status.code, status.message), (403, format!("pods \"web\" is forbidden: {told}")));
    }
}
