//! A served node on this host: `kubectl exec` and `cp` into real containers, and what the history tells of them after the agent
//! was killed and others ended meanwhile.

use crate::node::Node;
use nodefold_agent::cleanup;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {terminationGracePeriodSeconds: 1,
  volumes: [{name: scratch, emptyDir: {}}],
  containers: [{name: app, image: 'registry.local/busybox:1', command: [sh, -c, \"trap 'exit 0' TERM; while true; do sleep 0.1; done\"],
    volumeMounts: [{name: scratch, mountPath: /scratch}]}]}}";

/// kubectl, with this on its standard input.
fn kubectl(node: &Node, input: &[u8], args: &[&str]) -> Output {
    let mut child = Command::new("kubectl")
        .args(args)
        .env("KUBECONFIG", node.layout.data().join("kubeconfig"))
        .env("HOME", node.directory())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kubectl is needed on the PATH: ./test installs one");
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A program that does not read it all must not hold the test up.
    std::thread::spawn(move || drop(stdin.write_all(&input)));
    child.wait_with_output().unwrap()
}

fn fine(node: &Node, args: &[&str]) -> String {
    let out = kubectl(node, b"", args);
    assert!(out.status.success(), "{args:?}: {out:?}\n{}", node.log());
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn exec_and_cp_reach_into_a_container() {
    let mut node = Node::new();
    node.serve();
    assert!(kubectl(&node, POD.as_bytes(), &["create", "-f", "-"]).status.success());
    fine(&node, &["wait", "--for=condition=Ready", "--timeout=180s", "pod/web"]);

    let out = kubectl(&node, b"", &["exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(out.status.code(), Some(7), "{out:?}");
    assert_eq!(out.stdout, b"out\n");
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(err.starts_with("err\n") && err.contains("exit code 7"), "{err}");
    assert_eq!(
        kubectl(&node, b"to it and back", &["exec", "-i", "web", "--", "cat"]).stdout,
        b"to it and back"
    );
    // More than any buffer on the way, in both directions, and not one byte is another.
    let blob: Vec<u8> = (0u32..3 << 18).flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let out = kubectl(&node, &blob, &["exec", "-i", "web", "--", "cat"]);
    assert!(out.status.success() && out.stdout == blob, "{} of {} bytes", out.stdout.len(), blob.len());
    let (there, back) = (node.directory().join("there"), node.directory().join("back"));
    fs::write(&there, &blob).unwrap();
    fine(&node, &["cp", &there.display().to_string(), "web:/scratch/file"]);
    fine(&node, &["cp", "web:/scratch/file", &back.display().to_string()]);
    assert_eq!(fs::read(&back).unwrap(), blob);

    let missing = kubectl(&node, b"", &["exec", "web", "--", "no-such-program"]);
    assert!(
        !missing.status.success() && String::from_utf8_lossy(&missing.stderr).contains("not found"),
        "{missing:?}"
    );
    let other = kubectl(&node, b"", &["exec", "web", "-c", "other", "--", "true"]);
    assert!(
        String::from_utf8_lossy(&other.stderr).contains("container other is not valid for pod web"),
        "{other:?}"
    );
    // With a terminal: script gives kubectl one.
    let terminal = "kubectl exec -it web -- sh -c 'test -t 0 && echo it has one; echo $TERM'";
    let mut script = Command::new("script");
    script.args(["-qec", terminal, "/dev/null"]).env("KUBECONFIG", node.layout.data().join("kubeconfig"));
    let out = script.stdin(Stdio::null()).output().expect("script is part of every Debian");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success() && said.contains("it has one") && said.contains("xterm"), "{said}");

    // Who goes takes the program along.
    let mut child = Command::new("kubectl")
        .args(["exec", "web", "--", "sleep", "98765"])
        .env("KUBECONFIG", node.layout.data().join("kubeconfig"))
        .spawn()
        .unwrap();
    let runs = || fine(&node, &["exec", "web", "--", "ps"]).contains("sleep 98765");
    until("it runs", runs);
    child.kill().unwrap();
    child.wait().unwrap();
    until("it has gone", || !runs());
    end(node);
}

#[test]
fn history_tells_what_ended_while_no_agent_was_there() {
    let mut node = Node::new();
    node.serve();
    let pod = POD.replace(
        "while true; do sleep 0.1; done",
        "until test -e /scratch/end; do sleep 0.1; done; rm /scratch/end; exit 4",
    );
    assert!(kubectl(&node, pod.as_bytes(), &["create", "-f", "-"]).status.success());
    fine(&node, &["wait", "--for=condition=Ready", "--timeout=180s", "pod/web"]);
    let uid = fine(&node, &["get", "pod", "web", "-o", "jsonpath={.metadata.uid}"]);
    let scratch = node.layout.pods().join(uid).join("volumes/kubernetes.io~empty-dir/scratch");
    node.kill();
    fs::write(scratch.join("end"), "").unwrap();
    until("it has ended", || !scratch.join("end").exists());
    node.serve();
    let runs = || -> Vec<Value> {
        let list: Value =
            serde_json::from_str(&fine(&node, &["get", "containerruns", "-o", "json"])).unwrap();
        list["items"].as_array().unwrap().clone()
    };
    until("it is told, and the next run", || runs().len() == 2);
    let runs = runs();
    assert_eq!((&runs[0]["status"]["exitCode"], &runs[1]["status"]["exitCode"]), (&4.into(), &Value::Null));
    assert!(runs.iter().all(|run| run["spec"]["askedBy"] == "nodefold-admin"), "{runs:?}");
    end(node);
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(180), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn end(mut node: Node) {
    fine(&node, &["delete", "pod", "web"]);
    node.stop();
    cleanup::clean_up(&node.layout, true).unwrap();
    assert_eq!(cleanup::left_behind(&node.layout).unwrap(), Vec::<String>::new());
}
