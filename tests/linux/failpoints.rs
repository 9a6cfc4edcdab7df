//! An agent that dies at each step of set-up, teardown, create, start and their like: the next one goes on, starts nothing
//! twice, and leaves nothing.

use crate::crash::judge;
use crate::node::Node;
use nodefold_agent::failpoint::STEPS;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Nodes that walk at once: each step is mostly waiting.
const WALKERS: usize = 3;

/// A pod that takes every step: content, memory, a directory, a container that says each time that it begins.
fn pod(notes: &str, round: u64, host_users: bool) -> String {
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: c}}
data: {{round: \"{round}\"}}
---
apiVersion: v1
kind: Pod
metadata: {{name: web, annotations: {{round: \"{round}\"}}}}
spec:
  hostUsers: {host_users}
  terminationGracePeriodSeconds: 1
  volumes: [{{name: c, configMap: {{name: c}}}}, {{name: m, emptyDir: {{medium: Memory}}}}, {{name: d, emptyDir: {{}}}}, {{name: notes, hostPath: {{path: {notes}}}}}]
  containers:
  - name: app
    image: registry.local/busybox:1
    command: [sh, -c, \"echo $$(cat /c/round) >> /notes/begun; trap 'exit 0' TERM; while true; do sleep 0.1; done\"]
    volumeMounts: [{{name: c, mountPath: /c}}, {{name: m, mountPath: /m}}, {{name: d, mountPath: /d}}, {{name: notes, mountPath: /notes}}]
"
    )
}

fn walk(step: &str) {
    let mut node = Node::new();
    let notes = node.directory().join("notes");
    fs::create_dir(&notes).unwrap();
    // About half of the steps with a user namespace.
    let host_users = step.len().is_multiple_of(2);
    let manifest = |round| pod(&notes.display().to_string(), round, host_users);
    node.write("web.yaml", &manifest(1));
    node.agent_args(&["--die-at", step]);
    node.start();
    let ending = step.starts_with("tear-down")
        || step.starts_with("remove")
        || matches!(step, "sandbox.stopped" | "sandbox.removed");
    if ending {
        node.until_running("web", "app");
        node.remove("web.yaml");
    }
    node.until_dead(step);
    node.agent_args(&[]);
    if ending {
        // Another life of the pod's name must find room.
        node.write("web.yaml", &manifest(2));
    }
    node.start();
    node.until_running("web", "app");
    let round = if ending { "2" } else { "1" };
    node.until("the container has begun", |_| {
        fs::read_to_string(notes.join("begun")).is_ok_and(|text| text.contains(round))
    });
    let status = node.container("web", "app").unwrap();
    let begun = fs::read_to_string(notes.join("begun")).unwrap();
    let of_round = begun.lines().filter(|line| *line == round).count() as u64;
    assert_eq!(of_round, 1 + status["restartCount"].as_u64().unwrap(), "{step}: begun {begun:?}, {status}");
    assert_eq!(node.exec("web", "app", &["cat", "/c/round"]).stdout, round.as_bytes());
    let journal = node.layout.journal().display().to_string();
    node.remove("web.yaml");
    node.end_with(|| {
        let (_, violations) = judge(&journal);
        assert_eq!(violations, Vec::<String>::new(), "{step}");
    });
}

#[test]
fn an_agent_that_dies_at_any_step_is_followed_by_one_that_goes_on() {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..WALKERS {
            scope.spawn(|| {
                while let Some(step) = STEPS.get(next.fetch_add(1, Ordering::SeqCst)) {
                    walk(step);
                }
            });
        }
    });
}
