//! What `pod_from_json` makes of each field, and what it says of fields it can't use.
#![allow(clippy::expect_used)]

use nodefold_core::ids::{ObjectKind, Source};
use nodefold_core::resources::{QosClass, ResourceName};
use nodefold_core::spec::{
    Medium, NodeOperator, Pod, PodSpec, ProjectedSource, PullPolicy, RestartAction, RestartPolicy,
    TerminalPhase, VolumeSource,
};
use nodefold_core::time::{Nanos, Time};
use nodefold_core::views::{Allocated, Retained};
use nodefold_k8s::{
    FieldProblem, ProblemReason, RETAINED_ANNOTATION, Recorded, allocated_to_json, default_pod,
    event_to_json, parse_documents, pod_from_json, pod_to_json, qos_class, time,
};
use serde_json::{Value, json};
use std::sync::Arc;

fn everything() -> Value {
    let text = include_str!("fixtures/everything.yaml");
    let mut value = parse_documents(text, "everything.yaml").expect("sound YAML").remove(0).value;
    default_pod(&mut value);
    value
}

fn read(value: &Value) -> Pod {
    pod_from_json(value, Source::Api).expect("a sound pod")
}

/// A pod with that spec, defaulted.
fn pod(spec: Value) -> Value {
    let mut pod = json!({"kind": "Pod", "metadata": {"name": "p", "uid": "6297d6da-e2cb-4dff-adce-26100f7c665e"},
        "spec": {"containers": [{"name": "a", "image": "i:1"}]}});
    for (name, value) in spec.as_object().expect("a spec") {
        pod["spec"][name] = value.clone();
    }
    default_pod(&mut pod);
    pod
}

fn problems(value: &Value) -> Vec<FieldProblem> {
    pod_from_json(value, Source::Api).expect_err("an unsound pod")
}

#[test]
fn metadata_and_deletion() {
    let pod = read(&everything());
    assert_eq!((&*pod.namespace, &*pod.name, pod.generation), ("shop", "all", 7));
    assert_eq!(pod.created_at, time::parse("2026-11-30T18:49:55Z").expect("a time"));
    let deletion = pod.deletion.expect("it is being deleted");
    assert_eq!(deletion.grace, Nanos::secs(30));
    assert_eq!(deletion.requested_at, time::parse("2026-11-30T19:00:00Z").expect("a time"));
    assert_eq!(pod.api_terminal, Some(TerminalPhase::Failed));
    assert_eq!(pod.uid, nodefold_k8s::pod_uid("not-a-uuid"));
    assert_eq!(&*pod.metadata.0, r#"{"labels":{"app":"all"},"uid":"not-a-uuid"}"#);
}

#[test]
fn the_spec() {
    let pod = read(&everything());
    let spec: &PodSpec = &pod.spec;
    assert_eq!(spec.restart_policy, RestartPolicy::OnFailure);
    assert_eq!(spec.termination_grace, Nanos::secs(45));
    assert_eq!(spec.active_deadline, Some(Nanos::secs(600)));
    assert!(spec.host_network && !spec.windows);
    assert_eq!(spec.priority, -5);
    assert_eq!(spec.overhead.get(&ResourceName::Memory), 1 << 20);
    let resources = spec.resources.as_ref().expect("pod-level resources");
    assert_eq!(resources.requests.get(&ResourceName::Cpu), 1000);
    assert_eq!(spec.qos, QosClass::Burstable);
    assert_eq!(spec.readiness_gates, ["example.com/ready".into()]);
    let ports: Vec<_> = spec.host_ports.iter().map(|p| (&*p.protocol, &*p.host_ip, p.port)).collect();
    assert_eq!(ports, [("TCP", "", 80), ("UDP", "10.0.0.1", 5353)]);
    assert!(PodSpec::is_sidecar(&spec.init_containers[0]));
}

#[test]
fn node_selector_requirements_are_part_of_every_term() {
    let pod = read(&everything());
    let terms: Vec<Vec<_>> = pod
        .spec
        .node_selector
        .iter()
        .map(|t| t.requirements.iter().map(|r| (&*r.key, r.operator, r.values.len())).collect())
        .collect();
    let selector = ("disk", NodeOperator::In, 1);
    assert_eq!(
        terms,
        [
            vec![("zone", NodeOperator::NotIn, 2), selector],
            vec![("metadata.name", NodeOperator::In, 1), selector]
        ]
    );
}

#[test]
fn an_affinity_of_empty_terms_matches_no_node() {
    let terms = |terms: Value| {
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
        let mut value = pod(json!({}));
        value["spec"]["affinity"] = affinity;
        read(&value).spec.node_selector.clone()
    };
    for empty in [json!([]), json!([{}]), Value::Null] {
        let terms = terms(empty);
        assert_eq!(terms.len(), 1);
        assert_eq!(terms[0].requirements[0].operator, NodeOperator::In);
        assert!(terms[0].requirements[0].values.is_empty(), "nothing is one of no values");
    }
    assert!(read(&pod(json!({}))).spec.node_selector.is_empty());
}

#[test]
fn a_container() {
    let pod = read(&everything());
    let app = pod.spec.container("app").expect("the main container");
    assert_eq!((app.pull_policy, app.restart_policy), (PullPolicy::IfNotPresent, Some(RestartPolicy::Never)));
    let rules: Vec<_> = app.restart_rules.iter().map(|r| (r.negated, r.codes.clone(), r.action)).collect();
    assert_eq!(
        rules,
        [(false, vec![3, 42], RestartAction::Restart), (true, vec![0], RestartAction::RestartAllContainers)]
    );
    assert_eq!(app.resources.limits.get(&ResourceName::Cpu), 1500);
    assert_eq!(app.resources.requests.get(&ResourceName::Memory), 512 << 20);
    assert_eq!(app.resources.requests.get(&ResourceName::Other("example.com/widget".into())), 2);
    assert_eq!(app.resize_restarts, [ResourceName::Memory]);
    assert!(app.restart_on_mount_change && app.pre_stop && !app.post_start);
    assert_eq!((app.startup_probe, app.liveness_probe), (None, None));
    let proxy = &pod.spec.init_containers[0];
    assert_eq!(proxy.startup_probe.and_then(|p| p.grace), Some(Nanos::secs(3)));
    let mount = &app.mounts[0];
    assert_eq!((&*mount.name, &*mount.mount_path, mount.read_only), ("cfg", "/cfg", true));
    assert_eq!(&*mount.rest.0, r#"{"subPath":"a"}"#);
    for typed in ["\"image\"", "volumeMounts", "restartPolicyRules", "dynamicVolumePolicy", "limits"] {
        assert!(!app.rest.0.contains(typed), "{typed} is stored twice: {}", app.rest.0);
    }
    assert!(!pod.spec.ephemeral_containers[0].restart_on_mount_change);
}

#[test]
fn volumes() {
    let pod = read(&everything());
    let source = |name: &str| pod.spec.volume(name).expect("it is there").source.clone();
    assert_eq!(source("tmp"), VolumeSource::EmptyDir { medium: Medium::Memory, size_limit: Some(2) });
    assert_eq!(source("huge"), VolumeSource::EmptyDir { medium: Medium::HugePages, size_limit: None });
    assert_eq!(
        source("img"),
        VolumeSource::Image { reference: "tools:latest".into(), pull_policy: PullPolicy::Always }
    );
    assert_eq!((source("down"), source("host")), (VolumeSource::DownwardApi, VolumeSource::HostPath));
    assert_eq!(source("data"), VolumeSource::Unsupported { kind: "persistentVolumeClaim".into() });
    let objects = |name: &str| {
        let source = source(name);
        let objects = source.objects().into_iter();
        objects
            .map(|o| (o.object.kind, o.object.namespace.to_string(), o.object.name.to_string(), o.optional))
            .collect::<Vec<_>>()
    };
    assert_eq!(objects("sec"), [(ObjectKind::Secret, "shop".into(), "s".into(), true)]);
    assert_eq!(
        objects("cfg"),
        [
            (ObjectKind::ConfigMap, "shop".into(), "c".into(), true),
            (ObjectKind::Secret, "shop".into(), "s".into(), false),
            (ObjectKind::ClusterTrustBundle, String::new(), "ca".into(), false),
        ]
    );
    let VolumeSource::Projected(sources) = source("cfg") else { panic!("it is projected") };
    assert_eq!(sources.len(), 7);
    assert_eq!(sources[2], ProjectedSource::DownwardApi);
    assert_eq!(sources[3], ProjectedSource::ServiceAccountToken);
    assert_eq!(sources[5], ProjectedSource::ClusterTrustBundle(None));
    assert_eq!(sources[6], ProjectedSource::PodCertificate);
}

#[test]
fn everything_survives_a_round_trip() {
    let mut stored = everything();
    let pod = read(&stored);
    stored["status"] = json!({"phase": "Failed"});
    assert_eq!(pod_to_json(&pod, &pod.spec), stored);
    assert_eq!(
        nodefold_k8s::check_fields(&stored, "Pod").len(),
        1,
        "EphemeralContainer has no dynamicVolumePolicy"
    );
}

#[test]
fn a_negative_grace_is_one_second() {
    let read = read(&pod(json!({"terminationGracePeriodSeconds": -1})));
    assert_eq!(read.spec.termination_grace, Nanos::secs(1));
}

#[test]
fn absurd_numbers_saturate() {
    let value = pod(json!({"terminationGracePeriodSeconds": i64::MAX, "priority": i64::MAX, "containers":
        [{"name": "a", "image": "i", "resources": {"limits": {"cpu": "100E", "memory": "1e400"}}}]}));
    let spec = read(&value).spec;
    assert_eq!(spec.termination_grace, Nanos(u64::MAX));
    assert_eq!(spec.priority, i32::MAX);
    assert_eq!(spec.containers[0].resources.requests.get(&ResourceName::Cpu), u64::MAX);
    assert_eq!(spec.containers[0].resources.requests.get(&ResourceName::Memory), i64::MAX as u64);
}

#[test]
fn all_problems_are_told_at_once() {
    let value = json!({"kind": "Pod", "metadata": {"name": "p", "creationTimestamp": "soon"}, "spec": {
        "restartPolicy": "Sometimes", "priority": "high",
        "containers": [{"name": "a", "resources": {"limits": {"cpu": "-1", "memory": "64MB"}},
            "volumeMounts": [{"name": "v"}]}],
        "volumes": [{"name": "v", "secret": {}, "emptyDir": {"medium": "Tape"}}]}});
    let found: Vec<(String, ProblemReason)> =
        problems(&value).into_iter().map(|p| (p.path, p.reason)).collect();
    use ProblemReason as R;
    for expected in [
        ("metadata.creationTimestamp", R::Invalid),
        ("metadata.uid", R::Required),
        ("spec.restartPolicy", R::NotSupported),
        ("spec.priority", R::WrongType),
        ("spec.containers[0].image", R::Required),
        ("spec.containers[0].resources.limits[cpu]", R::Invalid),
        ("spec.containers[0].resources.limits[memory]", R::Invalid),
        ("spec.containers[0].volumeMounts[0].mountPath", R::Required),
        ("spec.volumes[0].secret.secretName", R::Required),
        ("spec.volumes[0].emptyDir", R::Invalid),
    ] {
        assert!(
            found.iter().any(|(path, reason)| (path.as_str(), *reason) == expected),
            "{expected:?} in {found:?}"
        );
    }
    assert_eq!(found.len(), 10, "{found:?}");
}

#[test]
fn a_static_pod_needs_no_uid() {
    let mut value = pod(json!({}));
    value["metadata"].as_object_mut().expect("metadata").remove("uid");
    let one = pod_from_json(&value, Source::File).expect("a static pod");
    let same = pod_from_json(&value, Source::File).expect("a static pod");
    value["spec"]["containers"][0]["image"] = json!("i:2");
    let other = pod_from_json(&value, Source::File).expect("a static pod");
    assert_eq!(one.uid, same.uid);
    assert_ne!(one.uid, other.uid);
}

#[test]
fn status_writes_do_not_change_the_pod() {
    let mut value = pod(json!({}));
    let before = read(&value);
    value["metadata"]["resourceVersion"] = json!("9");
    value["metadata"]["managedFields"] = json!([{"manager": "kubelet"}]);
    value["status"] = json!({"phase": "Running", "conditions": []});
    assert_eq!(read(&value), before);
}

#[test]
fn qos_classes() {
    let class = |resources: Value| qos_class(&json!({"spec": {"containers": [{"resources": resources}]}}));
    assert_eq!(class(json!({})), QosClass::BestEffort);
    assert_eq!(class(json!({"limits": {"cpu": "0"}})), QosClass::BestEffort);
    assert_eq!(class(json!({"limits": {"example.com/x": "1"}})), QosClass::BestEffort);
    let full = json!({"cpu": "1", "memory": "1Gi"});
    assert_eq!(
        class(json!({"limits": full, "requests": {"cpu": "1000m", "memory": "1024Mi"}})),
        QosClass::Guaranteed
    );
    assert_eq!(
        class(json!({"limits": full, "requests": {"cpu": "500m", "memory": "1Gi"}})),
        QosClass::Burstable
    );
    assert_eq!(class(json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}})), QosClass::Burstable);
    let mixed = json!({"spec": {"containers": [{"resources": {"limits": full, "requests": full}}],
        "initContainers": [{"resources": {}}]}});
    assert_eq!(qos_class(&mixed), QosClass::Burstable);
    let envelope = json!({"spec": {"resources": {"limits": full, "requests": full}, "containers": [{}]}});
    assert_eq!(qos_class(&envelope), QosClass::Guaranteed);
}

#[test]
fn allocated_shows_the_allocated_generation_and_what_is_retained() {
    let pod = Arc::new(read(&everything()));
    let volume = pod.spec.volume("tmp").expect("it is there").clone();
    let retained = |name: &str, spec| Retained {
        volume: nodefold_core::ids::VolumeId { name: name.into(), generation: 3 },
        spec,
        since: time::parse("2026-11-30T19:00:00Z").expect("a time"),
    };
    let mut allocated = Allocated { spec: pod.spec.clone(), pod, generation: 5, retained: Vec::new() };
    let plain = allocated_to_json(&allocated);
    assert_eq!((&plain["metadata"]["generation"], &plain["status"]), (&json!(5), &json!({})));
    assert_eq!(plain["metadata"].get("annotations"), None);

    allocated.retained = vec![retained("tmp", Some(volume)), retained("found", None)];
    let shown = allocated_to_json(&allocated);
    let annotation = shown["metadata"]["annotations"][RETAINED_ANNOTATION].as_str().expect("a string");
    let list: Value = serde_json::from_str(annotation).expect("JSON");
    assert_eq!(
        list,
        json!([
            {"name": "tmp", "generation": 3, "since": "2026-11-30T19:00:00Z",
                "source": {"emptyDir": {"medium": "Memory", "sizeLimit": "1500m"}}},
            {"name": "found", "generation": 3, "since": "2026-11-30T19:00:00Z"}
        ])
    );
}

#[test]
fn events_name_pod_and_container_as_a_kubelet_does() {
    let pod = read(&everything());
    let event = |container: Option<&str>| nodefold_core::command::KubernetesEvent {
        warning: true,
        reason: "BackOff".into(),
        message: "m".into(),
        container: container.map(Into::into),
    };
    let recorded =
        Recorded { count: 2, first: Time(0x18ec_e714_320e_130b), last: Time(0x18ec_e714_ffff_ffff) };
    let written = event_to_json(&event(Some("proxy")), &pod, "node-a", recorded);
    assert_eq!(written["metadata"]["name"], "all.18ece714320e130b");
    assert_eq!(
        written["involvedObject"],
        json!({"apiVersion": "v1", "kind": "Pod", "name": "all", "namespace": "shop", "uid": "not-a-uuid",
            "fieldPath": "spec.initContainers{proxy}"})
    );
    assert_eq!((&written["type"], &written["count"]), (&json!("Warning"), &json!(2)));
    assert_eq!(written["firstTimestamp"], time::format(recorded.first));
    let about_pod = event_to_json(&event(None), &pod, "node-a", recorded);
    assert_eq!(about_pod["involvedObject"].get("fieldPath"), None);
}

#[test]
fn a_nodes_allocatable_is_read_and_written() {
    let value = json!({"cpu": "1.5", "memory": "4Gi", "ephemeral-storage": "10G", "pods": 110, "hugepages-2Mi": "1Gi"});
    let list = nodefold_k8s::resource_list_from_json(&value, "node.allocatable").expect("sound amounts");
    assert_eq!((list.get(&ResourceName::Cpu), list.get(&ResourceName::Pods)), (1500, 110));
    assert_eq!(
        nodefold_k8s::resource_list_to_json(&list),
        json!({"cpu": "1500m", "memory": "4Gi", "ephemeral-storage": "10G", "pods": "110", "hugepages-2Mi": "1Gi"})
    );
    let problems = nodefold_k8s::resource_list_from_json(&json!({"cpu": "-1"}), "node.allocatable");
    assert_eq!(problems.expect_err("negative")[0].path, "node.allocatable[cpu]");
}
