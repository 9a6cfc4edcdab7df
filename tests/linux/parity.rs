//! Parity of worlds: the same random story on the simulated node and on this host tells the same of every volume, container and
//! sandbox, in the same order; only when is not compared, nor the order among things that have nothing to do with each other.

use crate::node::nodefold;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// A change of the pod; one that can't be made then is left out.
#[derive(Clone, Debug)]
enum Change {
    /// A container with this volume.
    Add { container: u8, volume: u8 },
    /// The container goes.
    Remove { container: u8 },
    /// The container goes, and its volume with it, if nobody else has it.
    RemoveBoth { container: u8 },
    /// What the configMap says changes.
    Update,
    /// The agent dies.
    Crash,
    /// The pod goes, and one of its name comes.
    Replace,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (0..3_u8, 0..4_u8).prop_map(|(container, volume)| Change::Add { container, volume }),
        2 => (0..3_u8).prop_map(|container| Change::Remove { container }),
        2 => (0..3_u8).prop_map(|container| Change::RemoveBoth { container }),
        1 => Just(Change::Update),
        1 => Just(Change::Crash),
        1 => Just(Change::Replace),
    ]
}

const CREATE: &str = "- create:
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec:
      terminationGracePeriodSeconds: 2
      containers: [{name: first, image: 'registry.local/busybox:1', command: [sh, -c, \"trap 'exit 0' TERM; while true; do sleep 0.05; done\"]}]
- settle: 20s
";

fn source(volume: u8) -> &'static str {
    match volume {
        0 => "configMap: {name: c}",
        1 => "emptyDir: {}",
        2 => "emptyDir: {medium: Memory}",
        _ => "secret: {secretName: s}",
    }
}

/// The story of these changes.
fn story(changes: &[Change]) -> String {
    let mut text = String::from(
        "name: parity
about: Told on two worlds.
steps:
- create: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {k: '0'}}
- create: {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {k: v}}
",
    );
    text.push_str(CREATE);
    let mut containers: BTreeMap<u8, u8> = BTreeMap::new();
    let mut volumes: BTreeSet<u8> = BTreeSet::new();
    for (i, change) in changes.iter().enumerate() {
        let step = match change {
            Change::Add { container, volume } if !containers.contains_key(container) => {
                containers.insert(*container, *volume);
                let known = !volumes.insert(*volume);
                let volume_patch = match known {
                    true => String::new(),
                    false => format!("volumes: [{{name: v{volume}, {}}}], ", source(*volume)),
                };
                format!(
                    "- dynamic:
    pod: web
    patch: {{spec: {{{volume_patch}containers: [{{name: c{container}, image: 'registry.local/busybox:1', command: [sh, -c, \"trap 'exit 0' TERM; while true; do sleep 0.05; done\"], volumeMounts: [{{name: v{volume}, mountPath: /v}}]}}]}}}}
"
                )
            }
            Change::Remove { container } if containers.contains_key(container) => {
                containers.remove(container);
                format!(
                    "- dynamic:\n    pod: web\n    patch: {{spec: {{containers: [{{name: c{container}, $patch: delete}}]}}}}\n"
                )
            }
            Change::RemoveBoth { container } if containers.contains_key(container) => {
                let Some(volume) = containers.remove(container) else { continue };
                let shared = containers.values().any(|other| *other == volume);
                let gone = match shared {
                    true => String::new(),
                    false => {
                        volumes.remove(&volume);
                        format!("volumes: [{{name: v{volume}, $patch: delete}}], ")
                    }
                };
                format!(
                    "- dynamic:\n    pod: web\n    patch: {{spec: {{{gone}containers: [{{name: c{container}, $patch: delete}}]}}}}\n"
                )
            }
            Change::Update => {
                format!(
                    "- update: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c}}, data: {{k: '{}'}}}}\n",
                    i + 1
                )
            }
            Change::Crash => "- crash: agent\n".to_owned(),
            Change::Replace => {
                containers.clear();
                volumes.clear();
                format!("- delete: {{pod: web}}\n- settle: 20s\n{CREATE}")
            }
            Change::Add { .. } | Change::Remove { .. } | Change::RemoveBoth { .. } => continue,
        };
        text.push_str(&step);
        text.push_str("- settle: 20s\n");
    }
    text.push_str("- delete: {pod: web}\n- settle: 20s\n");
    text
}

/// What was told of each thing, in order.
fn told(file: &str, backend: &str) -> Result<BTreeMap<String, Vec<String>>, String> {
    let run = nodefold(&["run", "--backend", backend, "--json", file]);
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    if run.status.code() != Some(0) {
        let last: Vec<&str> = text.lines().rev().take(5).collect();
        return Err(format!("{backend}: {last:?} {}", String::from_utf8_lossy(&run.stderr)));
    }
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut lives = 0;
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        lives += u32::from(record["record"] == "podNamed");
        let (subject, pod) = (record["subject"].as_str().unwrap_or(""), &record["pod"]);
        let what = match record["record"].as_str() {
            Some("fact") if !subject.is_empty() && pod.is_string() => {
                record["fact"].as_str().unwrap_or("").to_owned()
            }
            Some("transition") if !subject.is_empty() => {
                format!(
                    "{} -> {}",
                    record["from"].as_str().unwrap_or(""),
                    record["to"].as_str().unwrap_or("")
                )
            }
            _ => continue,
        };
        let of_subject = told.entry(format!("life {lives}: {subject}")).or_default();
        // An exit is told again to whoever asks to stop what has ended by then.
        let again = what == "ContainerExited" && of_subject.contains(&what);
        if !again {
            of_subject.push(what);
        }
    }
    Ok(told)
}

#[test]
fn a_story_is_the_same_on_both_worlds() {
    let cases = if std::env::var("NODEFOLD_LONG").is_ok() { 100 } else { 6 };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 12, ..Config::default() };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("parity.yaml").display().to_string();
    let mut runner = TestRunner::new(config);
    let done = runner.run(&proptest::collection::vec(change(), 1..7), |changes| {
        fs::write(&file, story(&changes)).unwrap();
        let simulated = told(&file, "simulated").map_err(TestCaseError::fail)?;
        let real = told(&file, "linux").map_err(TestCaseError::fail)?;
        prop_assert!(simulated.len() >= 2, "something is told");
        prop_assert_eq!(real, simulated);
        Ok(())
    });
    if let Err(error) = done {
        panic!("{error}");
    }
}
