//! Static pods beside the API (`--pod-manifest-path`): kubectl sees their mirrors, and the files are what counts. And `kubectl
//! attach`, to one of them.

use super::client::{ask, create};
use super::node::{LONG, Node};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Instant;
use tempfile::TempDir;

const PODS: &str = "/api/v1/namespaces/kube-system/pods";
const RUNS: &str = "/apis/history.nodefold.io/v1alpha1/namespaces/kube-system/containerruns";
const MANIFEST: &str =
    "{apiVersion: v1, kind: Pod, metadata: {name: etcd, namespace: kube-system, labels: {tier: control}},
  spec: {containers: [{name: main, image: 'etcd:1'}]}}";

fn get(node: &Node, path: &str) -> Value {
    let answer = ask(node, "GET", path, &[], b"");
    if answer.code == 404 { Value::Null } else { answer.json() }
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn runs(node: &Node) -> Vec<Value> {
    get(node, RUNS)["items"].as_array().cloned().unwrap_or_default()
}

#[test]
fn files_are_what_counts_and_mirrors_show_them() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("etcd.yaml");
    std::fs::write(&file, MANIFEST).unwrap();
    let mut node = Node::start(&["--pod-manifest-path", &dir.path().display().to_string()]);
    let mirror = format!("{PODS}/etcd");
    let is_running = |node: &Node| get(node, &mirror)["status"]["phase"] == "Running";
    until("it runs", || is_running(&node));
    let first = get(&node, &mirror);
    let annotations = &first["metadata"]["annotations"];
    assert_eq!(annotations["kubernetes.io/config.source"], "file");
    assert_eq!(annotations["kubernetes.io/config.mirror"], annotations["kubernetes.io/config.hash"]);
    assert_eq!(
        (&first["metadata"]["labels"]["tier"], &first["spec"]["nodeName"]),
        (&json!("control"), &json!("node"))
    );
    let told = node.kubectl(&["get", "pods", "-n", "kube-system"]).fine();
    assert_eq!(told.rows()[1][..3], ["etcd", "1/1", "Running"]);
    let by = runs(&node);
    assert_eq!(by.len(), 1);
    assert_eq!(by[0]["spec"]["askedBy"], format!("file {}", dir.path().display()));
    assert_eq!(
        (&by[0]["spec"]["pod"], &by[0]["metadata"]["namespace"]),
        (&json!("etcd"), &json!("kube-system"))
    );
    // What the node allocated is the static pod's.
    assert_eq!(get(&node, &format!("{mirror}/allocated"))["spec"]["containers"][0]["image"], "etcd:1");

    // Who deletes the mirror stops nothing.
    node.kubectl(&["delete", "pod", "etcd", "-n", "kube-system"]).fine();
    until("there is another mirror", || {
        let now = get(&node, &mirror);
        !now["metadata"]["uid"].is_null() && now["metadata"]["uid"] != first["metadata"]["uid"]
    });
    until("it is shown as running", || is_running(&node));
    assert_eq!(runs(&node).len(), 1, "nothing was stopped: {:#?}", runs(&node));
    assert_eq!(runs(&node)[0]["status"]["finishedAt"], Value::Null);

    // A pod of the API beside it, and a restart: neither is forgotten, and there is one mirror.
    let web = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "app", "image": "busybox:1"}]}});
    assert_eq!(create(&node, "/api/v1/namespaces/default/pods", &web).code, 201);
    node.until(&["get", "pod", "web"], |told| told.out.contains("Running"));
    let second = get(&node, &mirror)["metadata"]["uid"].clone();
    node.kill();
    node.begin();
    until("it runs again, on a host that has booted anew", || runs(&node).len() == 2 && is_running(&node));
    assert_eq!(get(&node, &mirror)["metadata"]["uid"], second, "its mirror is the one it had");
    node.until(&["get", "pod", "web"], |told| told.out.contains("Running"));

    // Attached: what it writes from now on, its errors apart; as long as it runs.
    let uid = get(&node, &mirror)["metadata"]["annotations"]["kubernetes.io/config.hash"].clone();
    let log = node.data().join(format!("logs/pods/kube-system_etcd_{}/main", uid.as_str().unwrap()));
    let last = || std::fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let write = |stream: &str, text: &str| {
        let mut file = std::fs::OpenOptions::new().append(true).open(last()).unwrap();
        writeln!(file, "2026-01-01T00:00:00.5Z {stream} F {text}").unwrap();
    };
    write("stdout", "before");
    let mut attached = node.kubectl_command(&node.kubeconfig(), &["attach", "etcd", "-n", "kube-system"]);
    let mut child = attached.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (told, heard) = std::sync::mpsc::channel();
    let errors = std::thread::spawn(move || {
        let lines: Vec<String> = BufReader::new(err).lines().map_while(Result::ok).collect();
        lines
    });
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            told.send(line).ok();
        }
    });
    // Nobody tells when it listens: it is said again until it is heard.
    let begun = Instant::now();
    let first = loop {
        write("stdout", "hello");
        match heard.recv_timeout(std::time::Duration::from_millis(200)) {
            Ok(line) => break line,
            Err(_) => assert!(begun.elapsed() < LONG, "nothing is heard"),
        }
    };
    assert_eq!(first, "hello");
    write("stderr", "a complaint");
    std::fs::remove_file(&file).unwrap();
    until("the file is gone, and so is the mirror", || get(&node, &mirror).is_null());
    assert!(child.wait().unwrap().success(), "it ended as it should");
    assert!(errors.join().unwrap().iter().any(|line| line == "a complaint"));
    until("its run is told to have ended", || {
        runs(&node).iter().all(|run| !run["status"]["finishedAt"].is_null())
    });
    assert!(node.stop());
}

#[test]
fn what_a_static_pod_may_not_be_is_told_and_what_can_not_be_attached_to_is_refused() {
    let dir = TempDir::new().unwrap();
    let secret =
        MANIFEST.replace("containers:", "volumes: [{name: s, secret: {secretName: s}}], containers:");
    std::fs::write(dir.path().join("a.yaml"), secret).unwrap();
    let node = Node::start(&["--pod-manifest-path", &dir.path().display().to_string()]);
    let talks = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "talks"},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "app", "image": "busybox:1", "stdin": true}]}});
    assert_eq!(create(&node, "/api/v1/namespaces/default/pods", &talks).code, 201);
    node.until(&["get", "pod", "talks"], |told| told.out.contains("Running"));
    let attach = |query: &str| {
        let path = format!("/api/v1/namespaces/default/pods/talks/attach?{query}");
        ask(&node, "POST", &path, &[("Connection", "Upgrade"), ("Upgrade", "websocket")], b"")
    };
    attach("stdout=true&stdin=true").is_refusal(501);
    attach("stdout=true&container=other").is_refusal(400);
    attach("container=app").is_refusal(400);
    attach("stdout=true").is_refusal(400);
    // The namespace's name is in its list of pods, the pod is not: it refers to a secret.
    assert_eq!(get(&node, PODS)["items"], json!([]));
}
