//! An agent that is killed at any moment, again and again, while its pods change: nothing is lost, started twice or left.

use crate::node::{Node, nodefold};
use nodefold_core::command::TraceEntry;
use nodefold_core::{Commands, Node as Core};
use nodefold_journal::{Files, Reader, Record};
use nodefold_model::Oracles;
use std::time::{Duration, Instant};

/// Moments that differ from run to run of the loop but not from run to run of the test.
fn moments(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::from_fn(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some(state >> 33)
    })
}

/// One of them with a user namespace.
fn pod(name: &str, round: u64) -> String {
    let host_users = name != "b";
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: c-{name}}}
data: {{round: \"{round}\"}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, annotations: {{round: \"{round}\"}}}}
spec:
  hostUsers: {host_users}
  terminationGracePeriodSeconds: 1
  volumes: [{{name: c, configMap: {{name: c-{name}}}}}, {{name: m, emptyDir: {{medium: Memory}}}}]
  containers:
  - {{name: stays, image: 'registry.local/busybox:1', command: [sh, -c, \"trap 'exit 0' TERM; while true; do sleep 0.1; done\"], volumeMounts: [{{name: c, mountPath: /c}}]}}
  - {{name: ends, image: 'registry.local/busybox:1', command: [sh, -c, 'sleep 0.3; exit 3'], volumeMounts: [{{name: m, mountPath: /m}}]}}
"
    )
}

#[test]
fn an_agent_killed_at_any_moment_loses_nothing() {
    let kills = if std::env::var("NODEFOLD_LONG").is_ok() { 1000 } else { 20 };
    let mut node = Node::new();
    let mut chance = moments(7);
    // How long this host takes from an agent's start to a pod that runs: the moments are within that, or beside other work no
    // agent comes to its first fact.
    let since = Instant::now();
    node.write("a.yaml", &pod("a", 0));
    node.start();
    node.until_running("a", "stays");
    node.kill();
    let longest = (since.elapsed().as_millis() as u64).clamp(250, 5000);
    for round in 0..kills {
        let which = ["a", "b", "c"][(chance.next().unwrap() % 3) as usize];
        match chance.next().unwrap() % 3 {
            0 if node.manifests().join(format!("{which}.yaml")).exists() => {
                node.remove(&format!("{which}.yaml"))
            }
            _ => node.write(&format!("{which}.yaml"), &pod(which, round)),
        }
        node.start();
        std::thread::sleep(Duration::from_millis(chance.next().unwrap() % longest));
        node.kill();
    }
    // What is wanted in the end is there in the end.
    for name in ["a", "b", "c"] {
        node.write(&format!("{name}.yaml"), &pod(name, kills));
    }
    node.start();
    for name in ["a", "b", "c"] {
        node.until_running(name, "stays");
        node.until(&format!("{name}/ends has ended with its own code"), |node| {
            node.container(name, "ends").is_some_and(|c| {
                let states = [&c["state"]["terminated"], &c["lastState"]["terminated"]];
                states.iter().any(|state| state["exitCode"] == 3)
            })
        });
    }
    node.stop();
    let journal = node.layout.journal().display().to_string();
    let verify = nodefold(&["verify", &journal]);
    assert_eq!(verify.status.code(), Some(0), "{}", String::from_utf8_lossy(&verify.stdout));
    let (facts, violations) = judge(&journal);
    assert!(facts > 100, "{facts} facts are no story");
    assert_eq!(violations, Vec::<String>::new());
    node.end();
}

/// Folds a journal again and lets every oracle look on.
pub fn judge(journal: &str) -> (u64, Vec<String>) {
    let storage: std::sync::Arc<dyn nodefold_journal::Storage> = Files::at(journal);
    let mut reader = Reader::open(&storage).unwrap();
    let mut core: Option<Core> = None;
    let mut oracles: Option<Oracles> = None;
    let mut facts = 0;
    for entry in &mut reader {
        match entry.unwrap().record {
            Record::Header(header) => {
                if core.is_none() {
                    oracles = Some(Oracles::new(&header.config));
                    core = Some(Core::new(header.config));
                }
            }
            Record::Fact(event) => {
                facts += 1;
                let (Some(core), Some(oracles)) = (&mut core, &mut oracles) else { panic!("no header") };
                let mut out = Commands::default();
                core.apply(&event, &mut out);
                let at = event.at;
                oracles.observe(&TraceEntry::Fact(event));
                for command in out.commands {
                    oracles.observe(&TraceEntry::Command { at, command });
                }
            }
            Record::Foreign(_)
            | Record::BatchEnd(_)
            | Record::Snapshot(_)
            | Record::Skipped(_)
            | Record::Note(_) => {}
        }
    }
    let mut oracles = oracles.unwrap();
    oracles.finish();
    (facts, oracles.take_violations().iter().map(ToString::to_string).collect())
}
