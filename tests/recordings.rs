//! The stories that a real node told (Kubernetes 1.36.2, containerd 1.6), played on the simulated node.
//! For each pod, the API server's watch shows the same phases, container states, reasons, restart counts,
//! readiness and conditions in the same order. What differs is in [`DIFFERENCES`], entry by entry, with its
//! line in SEMANTICS.md.
//!
//! `recordings/NAME.yaml` is the story, `recordings/NAME.transitions.jsonl` what the real watch showed.
#![allow(clippy::expect_used, reason = "a test that can't go on fails")]

use nodefold_harness::{Observer, Record, RunOptions, Scenario, Verdict, run};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An entry that our watch shows and the recorded one does not.
struct Difference {
    recording: &'static str,
    pod: &'static str,
    /// It comes after this recorded entry of the pod (from 0, without repetitions).
    after: usize,
    /// How it differs from that entry, as a JSON merge patch.
    change: &'static str,
    /// The row of SEMANTICS.md, section "Recordings", that says why.
    rule: &'static str,
}

const fn extra(
    recording: &'static str,
    pod: &'static str,
    after: usize,
    rule: &'static str,
    change: &'static str,
) -> Difference {
    Difference { recording, pod, after, change, rule }
}

const STARTS: &str = "Each start is told when it is known";
const ENDS: &str = "Each end is told when it is known";
const BETWEEN: &str = "A planned restart shows the end between two lives";
const BACK_OFF: &str = "A life that a probe ended counts for the back-off";
const ADMISSION: &str = "What no node could ever hold is the node's to refuse";

/// `app`, the only container, ended well.
const APP_ENDED: &str = r#"{"containers": {"app": {"state": "terminated:Completed:0", "ready": false}},
    "conditions": {"PodReadyToStartContainers": "False", "Ready": "False:ContainersNotReady",
        "ContainersReady": "False:ContainersNotReady"}}"#;
/// Both ended well.
const APP_AND_SIDE_ENDED: &str = r#"{"containers": {
    "app": {"state": "terminated:Completed:0", "ready": false},
    "side": {"state": "terminated:Completed:0", "ready": false}},
    "conditions": {"PodReadyToStartContainers": "False", "Ready": "False:ContainersNotReady",
        "ContainersReady": "False:ContainersNotReady"}}"#;
/// `app` ended well, and the pod goes on.
const APP_STOPPED: &str = r#"{"containers": {"app": {"state": "terminated:Completed:0", "ready": false}},
    "conditions": {"Ready": "False:ContainersNotReady", "ContainersReady": "False:ContainersNotReady"}}"#;

const DIFFERENCES: &[Difference] = &[
    extra("01-volumes-basic", "web", 4, ENDS, APP_ENDED),
    extra(
        "02-crashloop",
        "crash",
        12,
        ENDS,
        r#"{"containers": {"app": {"state": "terminated:Error:3", "ready": false}}, "conditions": {
        "PodReadyToStartContainers": "False", "Ready": "False:ContainersNotReady",
        "ContainersReady": "False:ContainersNotReady"}}"#,
    ),
    extra("03-missing-secret-then-created", "late", 4, ENDS, APP_ENDED),
    extra(
        "04-image-change",
        "img",
        2,
        STARTS,
        r#"{"containers": {"app": {"state": "running", "ready": true}}}"#,
    ),
    extra("04-image-change", "img", 3, BETWEEN, APP_STOPPED),
    extra("04-image-change", "img", 5, ENDS, APP_STOPPED),
    extra("04-image-change", "img", 5, ENDS, APP_AND_SIDE_ENDED),
    extra(
        "05-resize-ok-deferred-infeasible",
        "rb",
        3,
        ADMISSION,
        r#"{"conditions": {"PodResizePending": "True:Infeasible"}}"#,
    ),
    extra("05-resize-ok-deferred-infeasible", "ra", 9, ENDS, APP_ENDED),
    extra("05-resize-ok-deferred-infeasible", "rb", 6, ENDS, APP_ENDED),
    extra("06-kubelet-kill-restart-delete-during-downtime", "drop", 4, ENDS, APP_ENDED),
    extra("06-kubelet-kill-restart-delete-during-downtime", "keep", 4, ENDS, APP_ENDED),
    extra("08-init-and-sidecar", "multi", 11, ENDS, APP_STOPPED),
    extra(
        "08-init-and-sidecar",
        "multi",
        11,
        ENDS,
        r#"{"containers": {"app": {"state": "terminated:Completed:0", "ready": false}},
        "init": {"proxy": {"state": "terminated:Completed:0", "ready": false}}, "conditions": {
        "PodReadyToStartContainers": "False", "Ready": "False:ContainersNotReady",
        "ContainersReady": "False:ContainersNotReady"}}"#,
    ),
    extra(
        "10-container-killed-outside",
        "oom",
        2,
        STARTS,
        r#"{"containers": {"side": {"state": "running", "ready": true}}}"#,
    ),
    extra(
        "10-container-killed-outside",
        "oom",
        6,
        ENDS,
        r#"{"containers": {"side": {"state": "terminated:Completed:0", "ready": false}}, "conditions": {
        "Ready": "False:ContainersNotReady", "ContainersReady": "False:ContainersNotReady"}}"#,
    ),
    extra("10-container-killed-outside", "oom", 6, ENDS, APP_AND_SIDE_ENDED),
    extra("12-readiness-and-liveness", "probed", 4, BETWEEN, APP_STOPPED),
    extra("12-readiness-and-liveness", "probed", 6, BETWEEN, APP_STOPPED),
    extra(
        "12-readiness-and-liveness",
        "probed",
        6,
        BACK_OFF,
        r#"{"containers": {"app": {"state": "waiting:CrashLoopBackOff", "ready": false}}, "conditions": {
        "Ready": "False:ContainersNotReady", "ContainersReady": "False:ContainersNotReady"}}"#,
    ),
    extra(
        "12-readiness-and-liveness",
        "probed",
        9,
        ENDS,
        r#"{"containers": {"app": {"state": "terminated:Error:137", "ready": false}}, "conditions": {
        "PodReadyToStartContainers": "False", "Ready": "False:ContainersNotReady",
        "ContainersReady": "False:ContainersNotReady"}}"#,
    ),
];

/// What the API server's watch shows of each pod, in the form of `transitions.jsonl`.
#[derive(Default)]
struct Watch {
    pods: BTreeMap<String, Vec<Value>>,
}

impl Watch {
    fn show(&mut self, entry: Value) {
        let pod = entry["pod"].as_str().expect("an entry names its pod").to_owned();
        let shown = self.pods.entry(pod).or_default();
        if shown.last() != Some(&entry) {
            shown.push(entry);
        }
    }
}

impl Observer for Watch {
    fn record(&mut self, record: &Record) {
        let Record::Requested { accepted: true, object, what, user, .. } = record else { return };
        if object["kind"] != "Pod" {
            return;
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let event = if user.starts_with("system:node:") && what.starts_with("final delete") {
            "DELETED"
        } else if self.pods.contains_key(name) {
            "MODIFIED"
        } else {
            "ADDED"
        };
        self.show(reduce(event, object));
    }
}

/// A pod object as a line of `transitions.jsonl`: what is absent or empty there is left out.
fn reduce(event: &str, object: &Value) -> Value {
    let status = &object["status"];
    let mut entry = json!({"event": event, "pod": object["metadata"]["name"]});
    if !object["metadata"]["deletionTimestamp"].is_null() {
        entry["deleting"] = json!(true);
    }
    entry["phase"] = status["phase"].clone();
    let lists = [("containers", "containerStatuses"), ("init", "initContainerStatuses")];
    for (short, long) in lists {
        let containers: Map<String, Value> = items(&status[long]).map(container).collect();
        if !containers.is_empty() {
            entry[short] = containers.into();
        }
    }
    let conditions: Map<String, Value> = items(&status["conditions"]).map(condition).collect();
    if !conditions.is_empty() {
        entry["conditions"] = conditions.into();
    }
    entry
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn container(status: &Value) -> (String, Value) {
    let state = &status["state"];
    let state = if state["running"].is_object() {
        "running".to_owned()
    } else if state["terminated"].is_object() {
        let ended = &state["terminated"];
        format!("terminated:{}:{}", text(&ended["reason"]), ended["exitCode"])
    } else {
        format!("waiting:{}", text(&state["waiting"]["reason"]))
    };
    let shown = json!({"state": state, "ready": status["ready"], "restarts": status["restartCount"]});
    (text(&status["name"]).to_owned(), shown)
}

fn condition(condition: &Value) -> (String, Value) {
    let (status, reason) = (text(&condition["status"]), text(&condition["reason"]));
    let shown = if reason.is_empty() { status.to_owned() } else { format!("{status}:{reason}") };
    (text(&condition["type"]).to_owned(), shown.into())
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(name)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What was recorded, with our differences put in.
fn expected(recording: &str) -> BTreeMap<String, Vec<Value>> {
    let mut recorded = Watch::default();
    for line in read(&file(&format!("{recording}.transitions.jsonl"))).lines() {
        recorded.show(serde_json::from_str(line).expect("a line is a JSON document"));
    }
    let mut pods = BTreeMap::new();
    for (pod, entries) in recorded.pods {
        let mut all = Vec::new();
        for (i, entry) in entries.iter().enumerate() {
            all.push(entry.clone());
            let ours = |d: &&Difference| d.recording == recording && d.pod == pod && d.after == i;
            for difference in DIFFERENCES.iter().filter(ours) {
                let change = serde_json::from_str(difference.change).expect("a change is JSON");
                let mut extra = entry.clone();
                merge(&mut extra, &change);
                all.push(extra);
            }
        }
        pods.insert(pod, all);
    }
    pods
}

/// A JSON merge patch (RFC 7386).
fn merge(value: &mut Value, change: &Value) {
    let Some(changes) = change.as_object() else {
        *value = change.clone();
        return;
    };
    for (key, change) in changes {
        if change.is_null() {
            value.as_object_mut().expect("a change fits").remove(key);
        } else {
            merge(&mut value[key], change);
        }
    }
}

fn same_as_recorded(recording: &str) {
    let path = file(&format!("{recording}.yaml"));
    let scenario =
        Scenario::parse(&read(&path), &path.display().to_string()).unwrap_or_else(|error| panic!("{error}"));
    let mut watch = Watch::default();
    let outcome = run(&scenario, RunOptions::default(), &mut watch);
    let expected = expected(recording);
    let mut told = String::new();
    for (pod, recorded) in &expected {
        let ours = watch.pods.get(pod).map(Vec::as_slice).unwrap_or_default();
        if ours != recorded.as_slice() {
            told.push_str(&side_by_side(pod, recorded, ours));
        }
    }
    assert!(told.is_empty(), "{recording} is not told as it was recorded:\n{told}");
    assert_eq!(watch.pods.len(), expected.len(), "the same pods, no others");
    assert_eq!(outcome.verdict, Verdict::Passed);
}

/// A line by line comparison: `=` both, `-` recorded only, `+` ours only (by longest common subsequence).
fn side_by_side(pod: &str, recorded: &[Value], ours: &[Value]) -> String {
    let mut common = vec![vec![0usize; ours.len() + 1]; recorded.len() + 1];
    for (i, r) in recorded.iter().enumerate().rev() {
        for (j, o) in ours.iter().enumerate().rev() {
            common[i][j] =
                if r == o { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
        }
    }
    let mut told = format!("pod {pod}:\n");
    let (mut i, mut j) = (0, 0);
    while i < recorded.len() || j < ours.len() {
        let (mark, entry) = if i < recorded.len() && j < ours.len() && recorded[i] == ours[j] {
            (i, j) = (i + 1, j + 1);
            ('=', &recorded[i - 1])
        } else if j == ours.len() || (i < recorded.len() && common[i + 1][j] >= common[i][j + 1]) {
            i += 1;
            ('-', &recorded[i - 1])
        } else {
            j += 1;
            ('+', &ours[j - 1])
        };
        told.push_str(&format!("  {mark} {entry}\n"));
    }
    told
}

/// One test for each recording, so that a failing one is named.
macro_rules! recordings {
    ($($test:ident: $name:literal),* $(,)?) => {$(
        #[test]
        fn $test() {
            same_as_recorded($name);
        }
    )*

    const RECORDINGS: &[&str] = &[$($name),*];
    };
}

recordings! {
    volumes_basic: "01-volumes-basic",
    crashloop: "02-crashloop",
    missing_secret_then_created: "03-missing-secret-then-created",
    image_change: "04-image-change",
    resize_ok_deferred_infeasible: "05-resize-ok-deferred-infeasible",
    kubelet_kill_restart_delete_during_downtime: "06-kubelet-kill-restart-delete-during-downtime",
    init_and_sidecar: "08-init-and-sidecar",
    container_killed_outside: "10-container-killed-outside",
    readiness_and_liveness: "12-readiness-and-liveness",
    delete_while_mount_failing: "15-delete-while-mount-failing",
}

#[test]
fn every_difference_is_about_something_and_has_its_line_in_semantics() {
    let semantics = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("SEMANTICS.md"));
    let section = semantics.split("## Recordings").nth(1).expect("SEMANTICS.md has a section Recordings");
    let section = section.split("\n## ").next().unwrap_or_default();
    for difference in DIFFERENCES {
        let Difference { recording, pod, after, rule, .. } = difference;
        assert!(RECORDINGS.contains(recording), "{recording} is no recording");
        assert!(section.contains(&format!("| {rule} |")), "SEMANTICS.md does not say: {rule}");
        let mut recorded = Watch::default();
        for line in read(&file(&format!("{recording}.transitions.jsonl"))).lines() {
            recorded.show(serde_json::from_str(line).expect("a line is a JSON document"));
        }
        let entries = recorded.pods.get(*pod).map(Vec::len).unwrap_or_default();
        assert!(*after < entries, "{recording}: {pod} has no entry {after}");
    }
}
