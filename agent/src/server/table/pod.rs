//! A pod's row. READY, STATUS and RESTARTS tell of what is in the spec: a removed container's end is no state of the pod
//! (api-side §5.3).

use super::duration::{human, since};
use super::{Column, moment, or_none, word};
use nodefold_core::time::Time;
use serde_json::{Value, json};

pub const COLUMNS: [Column; 9] = [
    ("Name", "name", false, "Name must be unique within a namespace."),
    ("Ready", "", false, "The aggregate readiness state of this pod for accepting traffic."),
    ("Status", "", false, "The aggregate status of the containers in this pod."),
    ("Restarts", "", false, "The number of times the containers in this pod have been restarted."),
    ("Age", "", false, "The time since the pod was created."),
    ("IP", "", true, "IP address allocated to the pod."),
    ("Node", "", true, "The node that the pod is bound to."),
    ("Nominated Node", "", true, "The node that preemption makes room on."),
    ("Readiness Gates", "", true, "How many readiness gates are met."),
];

/// How often something was restarted, and when last.
#[derive(Default)]
struct Restarts {
    count: u64,
    last: Option<Time>,
}

impl Restarts {
    fn add(&mut self, status: &Value) {
        self.count += status["restartCount"].as_u64().unwrap_or(0);
        let ended = moment(word(&status["lastState"]["terminated"]["finishedAt"]));
        self.last = self.last.max(ended);
    }

    fn told(&self, now: Time) -> String {
        match self.last {
            Some(at) if self.count > 0 => {
                format!("{} ({} ago)", self.count, human(now.0.saturating_sub(at.0) / 1_000_000_000))
            }
            Some(_) | None => self.count.to_string(),
        }
    }
}

/// The row's cells.
pub fn cells(pod: &Value, now: Time) -> Value {
    let (spec, status) = (&pod["spec"], &pod["status"]);
    let list = |of: &Value| -> Vec<Value> { of.as_array().cloned().unwrap_or_default() };
    let sidecar = |name: &Value| {
        list(&spec["initContainers"]).iter().any(|c| c["name"] == *name && c["restartPolicy"] == "Always")
    };
    let sidecars = list(&spec["initContainers"]).iter().filter(|c| c["restartPolicy"] == "Always").count();
    let total = list(&spec["containers"]).len() + sidecars;

    let mut reason = word(&status["phase"]).to_owned();
    if !word(&status["reason"]).is_empty() {
        reason = word(&status["reason"]).to_owned();
    }
    let condition = |kind: &str| list(&status["conditions"]).into_iter().find(|c| c["type"] == kind);
    let gated = condition("PodScheduled").filter(|c| c["reason"] == "SchedulingGated");
    if gated.is_some() {
        reason = "SchedulingGated".to_owned();
    }
    let (mut ready, mut restarts, mut of_sidecars) = (0, Restarts::default(), Restarts::default());
    let mut initializing = false;
    let inits = list(&status["initContainerStatuses"]);
    for (i, init) in inits.iter().enumerate() {
        restarts.add(init);
        if sidecar(&init["name"]) {
            of_sidecars.add(init);
        }
        let ended = &init["state"]["terminated"];
        let waiting = word(&init["state"]["waiting"]["reason"]);
        if ended.is_object() && ended["exitCode"] == 0 {
            continue;
        }
        if sidecar(&init["name"]) && init["started"] == true {
            ready += usize::from(init["ready"] == true);
            continue;
        }
        reason = if ended.is_object() {
            format!("Init:{}", end_of(ended))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{i}/{}", list(&spec["initContainers"]).len())
        };
        initializing = true;
        break;
    }
    let initialized = condition("Initialized").is_some_and(|c| c["status"] == "True");
    if !initializing || initialized {
        restarts = of_sidecars;
        let mut runs = false;
        let in_spec = |c: &Value| list(&spec["containers"]).iter().any(|s| s["name"] == c["name"]);
        for container in list(&status["containerStatuses"]).iter().filter(|c| in_spec(c)).rev() {
            restarts.add(container);
            let ended = &container["state"]["terminated"];
            let waiting = word(&container["state"]["waiting"]["reason"]);
            if waiting == "Unallocated" {
                // It is asked for and not admitted yet: the pod is what it was.
            } else if !waiting.is_empty() {
                waiting.clone_into(&mut reason);
            } else if ended.is_object() {
                reason = end_of(ended);
            } else if container["ready"] == true && container["state"]["running"].is_object() {
                runs = true;
                ready += 1;
            }
        }
        if reason == "Completed" && runs {
            let is_ready = condition("Ready").is_some_and(|c| c["status"] == "True");
            reason = (if is_ready { "Running" } else { "NotReady" }).to_owned();
        }
    }
    let terminal = matches!(word(&status["phase"]), "Succeeded" | "Failed");
    if !pod["metadata"]["deletionTimestamp"].is_null() && !terminal {
        reason = (if status["reason"] == "NodeLost" { "Unknown" } else { "Terminating" }).to_owned();
    }
    let gates = list(&spec["readinessGates"]);
    let met = gates
        .iter()
        .filter(|gate| condition(word(&gate["conditionType"])).is_some_and(|c| c["status"] == "True"));
    let gates =
        if gates.is_empty() { "<none>".to_owned() } else { format!("{}/{}", met.count(), gates.len()) };
    json!([
        pod["metadata"]["name"],
        format!("{ready}/{total}"),
        reason,
        restarts.told(now),
        since(word(&pod["metadata"]["creationTimestamp"]), now),
        or_none(&status["podIP"]),
        or_none(&spec["nodeName"]),
        or_none(&status["nominatedNodeName"]),
        gates
    ])
}

/// How a container ended, in a word.
fn end_of(ended: &Value) -> String {
    match (word(&ended["reason"]), ended["signal"].as_i64().unwrap_or(0)) {
        ("", 0) => format!("ExitCode:{}", ended["exitCode"].as_i64().unwrap_or(0)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
