//! Rows against what kubectl prints of a real server's.
#![allow(clippy::unwrap_used)]

use super::super::resource::of_kind;
use super::duration::human;
use super::*;

fn pod_row(pod: &Value) -> Vec<String> {
    let now = time::parse("2026-03-01T00:10:00Z").unwrap();
    let made = table(of_kind("Pod").unwrap(), &[Box::new(pod.clone())], json!({}), Include::None, now);
    let cells = made["rows"][0]["cells"].as_array().unwrap().clone();
    cells.iter().map(|cell| cell.as_str().unwrap().to_owned()).collect()
}

fn warm(statuses: Value) -> Value {
    json!({
        "metadata": {"name": "warm", "creationTimestamp": "2026-03-01T00:00:00Z"},
        "spec": {"nodeName": "node", "containers": [{"name": "app"}]},
        "status": {"phase": "Running", "podIP": "10.0.0.7", "containerStatuses": statuses,
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}]},
    })
}

/// Acceptance test 9: a removed container that was killed is not the pod's state, and its restarts are not the pod's.
#[test]
fn a_removed_containers_end_is_not_the_pods() {
    let running = json!({"name": "app", "ready": true, "restartCount": 0, "state": {"running": {}}});
    let gone = json!({"name": "tool", "ready": false, "restartCount": 3,
        "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}});
    let row = pod_row(&warm(json!([running, gone])));
    assert_eq!(row, ["warm", "1/1", "Running", "0", "10m", "10.0.0.7", "node", "<none>", "<none>"]);
}

#[test]
fn statuses_that_everybody_knows() {
    let of = |state: Value| {
        let status = json!([{"name": "app", "ready": false, "restartCount": 2, "state": state,
            "lastState": {"terminated": {"finishedAt": "2026-03-01T00:09:00Z"}}}]);
        pod_row(&warm(status))
    };
    let crash = of(json!({"waiting": {"reason": "CrashLoopBackOff"}}));
    assert_eq!(crash[1..4], ["0/1", "CrashLoopBackOff", "2 (60s ago)"]);
    assert_eq!(of(json!({"terminated": {"exitCode": 1, "reason": "Error"}}))[2], "Error");
    assert_eq!(of(json!({"terminated": {"exitCode": 3}}))[2], "ExitCode:3");
    assert_eq!(of(json!({"terminated": {"exitCode": 0, "signal": 9}}))[2], "Signal:9");
    assert_eq!(of(json!({"waiting": {"reason": "Unallocated"}}))[2], "Running");
    let mut leaving = warm(json!([]));
    leaving["metadata"]["deletionTimestamp"] = json!("2026-03-01T00:09:30Z");
    assert_eq!(pod_row(&leaving)[2], "Terminating");
    let mut init = warm(json!([]));
    init["status"] = json!({"phase": "Pending", "initContainerStatuses": [
        {"name": "a", "state": {"terminated": {"exitCode": 0}}}, {"name": "b", "state": {"running": {}}}]});
    init["spec"]["initContainers"] = json!([{"name": "a"}, {"name": "b"}]);
    assert_eq!(pod_row(&init)[2], "Init:1/2");
}

#[test]
fn how_long_ago() {
    let table = [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (312, "5m12s"),
        (600, "10m"),
        (10_799, "179m"),
        (10_800, "3h"),
        (12_000, "3h20m"),
        (40_000, "11h"),
        (200_000, "2d7h"),
        (864_000, "10d"),
        (64_000_000, "2y10d"),
    ];
    for (seconds, told) in table {
        assert_eq!(human(seconds), told, "{seconds}");
    }
}
