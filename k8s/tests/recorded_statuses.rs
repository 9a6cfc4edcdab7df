//! Statuses as a real kubelet wrote them: read into the core's words by this test alone, and written back with exactly
//! the same fields and values.
#![allow(clippy::expect_used)]

use nodefold_core::ids::{ContainerId, Name};
use nodefold_core::resources::{QosClass, ResourceList, ResourceName, Resources};
use nodefold_core::spec::{Blob, VolumeMount};
use nodefold_core::status::{
    Condition, ConditionKind, ContainerState, ContainerStatus, HostPhase, PodPhase, PodStatus, Terminated,
    VolumeStatus,
};
use nodefold_core::time::Time;
use nodefold_k8s::{check_fields, container_id, pod_uid, quantity, status_to_json, time};
use serde_json::{Value, json};

fn text(value: &Value) -> Name {
    value.as_str().unwrap_or_default().into()
}

fn stamp(value: &Value) -> Option<Time> {
    value.as_str().map(|t| time::parse(t).expect("a timestamp"))
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn amounts(value: &Value) -> ResourceList {
    ResourceList::from_pairs(value.as_object().into_iter().flatten().map(|(name, amount)| {
        let quantity = quantity::parse(amount.as_str().expect("a string")).expect("a quantity");
        let name = ResourceName::parse(name);
        let units = if name == ResourceName::Cpu { quantity.milli() } else { quantity.units() };
        (name, units)
    }))
}

fn resources(value: &Value) -> Resources {
    Resources { requests: amounts(&value["requests"]), limits: amounts(&value["limits"]) }
}

fn condition(value: &Value) -> Condition {
    use ConditionKind as K;
    let kinds = [
        K::PodResizePending,
        K::PodResizeInProgress,
        K::PodReadyToStartContainers,
        K::Initialized,
        K::Ready,
        K::ContainersReady,
        K::PodScheduled,
    ];
    Condition {
        kind: kinds.into_iter().find(|k| value["type"] == k.as_str()).expect("a known condition"),
        status: value["status"] == "True",
        reason: (&text(&value["reason"])).into(),
        message: (&text(&value["message"])).into(),
        last_transition: stamp(&value["lastTransitionTime"]).expect("a time"),
        observed_generation: count(&value["observedGeneration"]),
    }
}

fn terminated(value: &Value, id: &ContainerId) -> Terminated {
    Terminated {
        id: value.get("containerID").map(|_| id.clone()),
        exit_code: value["exitCode"].as_i64().and_then(|c| i32::try_from(c).ok()).expect("an exit code"),
        signal: 0,
        reason: text(&value["reason"]),
        message: text(&value["message"]),
        started_at: stamp(&value["startedAt"]),
        finished_at: stamp(&value["finishedAt"]),
    }
}

fn container(value: &Value) -> ContainerStatus {
    let restarts = u32::try_from(count(&value["restartCount"])).expect("a count");
    let id = ContainerId { name: text(&value["name"]), incarnation: 0, attempt: restarts };
    let state = if let Some(waiting) = value["state"].get("waiting") {
        ContainerState::Waiting { reason: text(&waiting["reason"]), message: text(&waiting["message"]) }
    } else if let Some(running) = value["state"].get("running") {
        ContainerState::Running { started_at: stamp(&running["startedAt"]).expect("a time") }
    } else {
        ContainerState::Terminated(terminated(&value["state"]["terminated"], &id))
    };
    ContainerStatus {
        state,
        last_state: value["lastState"].get("terminated").map(|t| terminated(t, &id)),
        ready: value["ready"] == true,
        started: value["started"] == true,
        restart_count: restarts,
        image: text(&value["image"]),
        image_id: text(&value["imageID"]),
        allocated_resources: amounts(&value["allocatedResources"]),
        resources: resources(&value["resources"]),
        mounts: list(&value["volumeMounts"])
            .map(|m| VolumeMount {
                name: text(&m["name"]),
                mount_path: text(&m["mountPath"]),
                read_only: m["readOnly"] == true,
                rest: Blob::default(),
            })
            .collect(),
        name: id.name.clone(),
        id: value.get("containerID").map(|_| id),
    }
}

fn status(value: &Value) -> PodStatus {
    let phases = [PodPhase::Pending, PodPhase::Running, PodPhase::Succeeded, PodPhase::Failed];
    let classes = [QosClass::Guaranteed, QosClass::Burstable, QosClass::BestEffort];
    PodStatus {
        observed_generation: count(&value["observedGeneration"]),
        phase: phases.into_iter().find(|p| value["phase"] == p.as_str()).expect("a phase"),
        reason: text(&value["reason"]),
        message: text(&value["message"]),
        start_time: stamp(&value["startTime"]),
        pod_ip: value["podIP"].as_str().map(Name::from),
        qos: classes.into_iter().find(|c| value["qosClass"] == c.as_str()).expect("a class"),
        conditions: list(&value["conditions"]).map(condition).collect(),
        init_containers: list(&value["initContainerStatuses"]).map(container).collect(),
        containers: list(&value["containerStatuses"]).map(container).collect(),
        ephemeral_containers: Vec::new(),
        volumes: Vec::new(),
        allocated_resources: amounts(&value["allocatedResources"]),
        resources: resources(&value["resources"]),
    }
}

/// What differs by design: container IDs are nodefold's, no host address is known, and the one condition that a
/// kubelet gives a probe time has none here.
fn comparable(mut recorded: Value, uid: &str) -> Value {
    let object = recorded.as_object_mut().expect("a status");
    object.remove("hostIP");
    object.remove("hostIPs");
    for condition in object.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        condition["lastProbeTime"] = Value::Null;
    }
    for field in ["initContainerStatuses", "containerStatuses"] {
        for status in object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            let read = container(status);
            let id = ContainerId { name: read.name, incarnation: 0, attempt: read.restart_count };
            let id = json!(container_id(pod_uid(uid), &id));
            for pointer in
                ["/containerID", "/state/terminated/containerID", "/lastState/terminated/containerID"]
            {
                if let Some(theirs) = status.pointer_mut(pointer) {
                    *theirs = id.clone();
                }
            }
        }
    }
    recorded
}

#[test]
fn a_status_has_the_fields_and_values_that_a_kubelet_writes() {
    let mut compared = 0;
    for line in include_str!("fixtures/statuses.jsonl").lines() {
        let recorded: Value = serde_json::from_str(line).expect("a JSON line");
        let uid = recorded["uid"].as_str().expect("a UID");
        let written = status_to_json(&status(&recorded["status"]), pod_uid(uid));
        assert_eq!(written, comparable(recorded["status"].clone(), uid));
        assert_eq!(check_fields(&json!({"status": written}), "Pod"), []);
        compared += 1;
    }
    assert!(compared > 50, "only {compared} statuses");
}

#[test]
fn volume_statuses_are_those_of_kep_6395() {
    let recorded = include_str!("fixtures/statuses.jsonl").lines().next().expect("a line");
    let recorded: Value = serde_json::from_str(recorded).expect("a JSON line");
    let mut read = status(&recorded["status"]);
    read.volumes = vec![
        VolumeStatus { name: "a".into(), phase: HostPhase::HostMounted, error_message: "".into() },
        VolumeStatus { name: "b".into(), phase: HostPhase::ErrorMounting, error_message: "no secret".into() },
    ];
    read.containers[0].mounts = vec![VolumeMount {
        name: "a".into(),
        mount_path: "/a".into(),
        read_only: true,
        rest: Blob(r#"{"subPath":"x"}"#.into()),
    }]
    .into();
    read.containers[0].state = ContainerState::Terminated(Terminated {
        id: Some(ContainerId { name: "app".into(), incarnation: 2, attempt: 1 }),
        exit_code: 137,
        signal: 9,
        reason: "Error".into(),
        message: "".into(),
        started_at: None,
        finished_at: Some(Time(0)),
    });
    let written = status_to_json(&read, pod_uid("6297d6da-e2cb-4dff-adce-26100f7c665e"));
    assert_eq!(
        written["volumeStatuses"],
        json!([{"name": "a", "hostPhase": "HostMounted"},
            {"name": "b", "hostPhase": "ErrorMounting", "errorMessage": "no secret"}])
    );
    assert_eq!(
        written["containerStatuses"][0]["volumeMounts"],
        json!([{"name": "a", "mountPath": "/a", "readOnly": true, "recursiveReadOnly": "Disabled"}])
    );
    assert_eq!(
        written["containerStatuses"][0]["state"]["terminated"],
        json!({"exitCode": 137, "signal": 9, "reason": "Error", "startedAt": null,
            "finishedAt": "1970-01-01T00:00:00Z",
            "containerID": "nodefold://6297d6da-e2cb-4dff-adce-26100f7c665e/app/2/1"})
    );
    assert_eq!(check_fields(&json!({"status": written}), "Pod"), []);
}
