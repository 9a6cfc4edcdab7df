//! What a node does beside its pods: logs are rotated, ends are explained, and who takes up too much is evicted.

use crate::node::{Node, nodefold};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

fn pod(name: &str, policy: &str, rest: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: {policy}
  terminationGracePeriodSeconds: 1
{rest}
"
    )
}

#[test]
fn logs_are_rotated_and_followed_across_it_without_losing_a_line() {
    let mut node = Node::new();
    node.agent_args(&["--housekeeping", "100ms", "--log-max-size", "20Ki", "--log-max-files", "3"]);
    node.write("talks.yaml", &pod(
        "talks",
        "Never",
        "  containers: [{name: app, image: 'registry.local/busybox:1', command: [sh, -c, 'echo ready; until test -e /tmp/go; do sleep 0.05; done; i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); [ $((i % 100)) = 0 ] && sleep 0.2; done']}]",
    ));
    node.start();
    node.until_running("talks", "app");
    let data = node.data();
    let mut follower = Command::new(env!("CARGO_BIN_EXE_nodefold"))
        .args(["logs", "--follow", "--data", &data, "talks", "app"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Who comes when the oldest lines are gone has lost them: it says more once somebody follows.
    let mut followed = BufReader::new(follower.stdout.take().unwrap());
    let mut text = String::new();
    followed.read_line(&mut text).unwrap();
    assert_eq!(text, "ready\n");
    text.clear();
    assert!(node.exec("talks", "app", &["touch", "/tmp/go"]).status.success());
    followed.read_to_string(&mut text).unwrap();
    assert!(follower.wait().unwrap().success());
    let expected: String = (0..3000).map(|i| format!("line {i}\n")).collect();
    assert_eq!(text.len(), expected.len());
    assert!(text == expected, "a line was lost, told twice or out of order");
    // What is kept are the newest lines, in no more files than may be.
    let kept = node.logs("talks", "app");
    assert!(expected.ends_with(&kept) && kept.len() < expected.len() && kept.lines().count() > 200);
    let pods = node.layout.logs().join("pods");
    let of_pod = fs::read_dir(pods).unwrap().next().unwrap().unwrap().path();
    let mut files: Vec<String> = fs::read_dir(of_pod.join("app"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files[1].ends_with(".gz") && !files[2].ends_with(".gz"), "{files:?}");
    node.end();
}

#[test]
fn an_end_is_explained_by_what_the_container_wrote_for_it_or_by_its_log() {
    let mut node = Node::new();
    let container = |name: &str, command: &str, more: &str| {
        format!(
            "  - {{name: {name}, image: 'registry.local/busybox:1', command: [sh, -c, '{command}']{more}}}\n"
        )
    };
    let containers = container("file", "echo because > /dev/termination-log; exit 1", "")
        + &container("own", "echo elsewhere > /tmp/why; exit 0", ", terminationMessagePath: /tmp/why")
        + &container(
            "log",
            "echo first; echo last >&2; exit 3",
            ", terminationMessagePolicy: FallbackToLogsOnError",
        )
        + &container("well", "echo fine", ", terminationMessagePolicy: FallbackToLogsOnError")
        + &container(
            "nobody",
            "echo mine > /dev/termination-log",
            ", securityContext: {runAsUser: 1000, readOnlyRootFilesystem: true}",
        );
    node.write("ends.yaml", &pod("ends", "Never", &format!("  containers:\n{containers}")));
    node.start();
    let message = |node: &Node, name: &str| {
        let status = node.container("ends", name)?;
        let ended = &status["state"]["terminated"];
        ended.is_object().then(|| ended["message"].as_str().unwrap_or("").to_owned())
    };
    let names = ["file", "own", "log", "well", "nobody"];
    node.until("all have ended", |node| names.iter().all(|name| message(node, name).is_some()));
    let all = |node: &Node| names.map(|name| message(node, name).unwrap());
    let expected = ["because\n", "elsewhere\n", "first\nlast\n", "", "mine\n"];
    assert_eq!(all(&node), expected);
    // The next agent knows it, too.
    node.kill();
    for entry in fs::read_dir(node.layout.data().join("status")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    node.start();
    node.write(
        "other.yaml",
        &pod(
            "other",
            "Never",
            "  containers: [{name: app, image: 'registry.local/busybox:1', command: ['true']}]",
        ),
    );
    node.until("the other pod has ended", |node| {
        node.container("other", "app").is_some_and(|c| c["state"]["terminated"].is_object())
    });
    node.remove("other.yaml");
    node.end();
}

#[test]
fn who_takes_up_more_than_it_may_is_evicted() {
    let file = format!("{}/tests/linux/writes-too-much.yaml", env!("CARGO_MANIFEST_DIR"));
    let run = nodefold(&["run", "--backend", "linux", &file]);
    let told = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(0), "{told}");
}

#[test]
fn usage_is_a_step_of_stories_on_this_host_too() {
    let file = format!("{}/tests/linux/eviction.yaml", env!("CARGO_MANIFEST_DIR"));
    for backend in ["linux", "simulated"] {
        let run = nodefold(&["run", "--backend", backend, &file]);
        let told = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(0), "{backend}: {told}");
    }
}
