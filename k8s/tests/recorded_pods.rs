//! Pods as a real API server stored them: known whole, defaulted already, and the same after a round trip.
#![allow(clippy::expect_used)]

use nodefold_core::ids::Source;
use nodefold_k8s::{check_fields, default_pod, pod_from_json, pod_to_json, qos_class};
use serde_json::{Value, json};

fn stored_pods() -> impl Iterator<Item = Value> {
    include_str!("fixtures/stored-pods.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).expect("a JSON line"))
}

#[test]
fn every_field_is_known() {
    for pod in stored_pods() {
        assert_eq!(check_fields(&pod, "Pod"), [], "{pod}");
    }
}

#[test]
fn defaulting_what_is_defaulted_changes_nothing() {
    for pod in stored_pods() {
        let mut again = pod.clone();
        default_pod(&mut again);
        assert_eq!(again, pod);
    }
}

#[test]
fn defaulting_restores_what_is_stripped() {
    for pod in stored_pods() {
        let mut bare = pod.clone();
        let spec = bare["spec"].as_object_mut().expect("a spec");
        for field in ["dnsPolicy", "enableServiceLinks", "restartPolicy", "schedulerName", "securityContext"]
        {
            spec.remove(field).expect("stored pods have it");
        }
        for list in ["initContainers", "containers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                let container = container.as_object_mut().expect("a container");
                for field in ["terminationMessagePath", "terminationMessagePolicy"] {
                    container.remove(field).expect("stored containers have it");
                }
                if container["resources"] == json!({}) {
                    container.remove("resources");
                }
                for probe in ["livenessProbe", "readinessProbe"] {
                    if let Some(probe) = container.get_mut(probe).and_then(Value::as_object_mut) {
                        probe.remove("successThreshold").expect("stored probes have it");
                        probe.remove("timeoutSeconds").expect("stored probes have it");
                    }
                }
            }
        }
        for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
            for source in ["configMap", "secret", "projected"] {
                if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
                    source.remove("defaultMode").expect("stored volumes have it");
                }
            }
        }
        default_pod(&mut bare);
        assert_eq!(bare, pod);
    }
}

#[test]
fn the_qos_class_is_the_one_the_api_server_computed() {
    for pod in stored_pods() {
        assert_eq!(qos_class(&pod).as_str(), pod["status"]["qosClass"], "{pod}");
    }
}

#[test]
fn a_round_trip_loses_nothing() {
    for mut stored in stored_pods() {
        let pod = pod_from_json(&stored, Source::Api).expect("a stored pod is sound");
        let written = pod_to_json(&pod, &pod.spec);
        stored["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
        match stored["status"]["phase"].as_str() {
            Some("Succeeded" | "Failed") => {
                stored["status"].as_object_mut().expect("status").remove("qosClass");
            }
            _ => _ = stored.as_object_mut().expect("an object").remove("status"),
        }
        assert_eq!(written, stored);
        let again = pod_from_json(&written, Source::Api).expect("what is written is sound");
        assert_eq!(again.spec, pod.spec, "typed fields and blobs alike");
    }
}
