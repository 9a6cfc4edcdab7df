//! kill -9 and what survives it: objects, secrets' bytes, names in flight, and watches, which go on from their version.

use super::client::{Watch, ask, create};
use super::node::Node;
use serde_json::{Value, json};
use std::process::Command;

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": name}})
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[test]
fn objects_survive_a_kill_and_a_watch_goes_on_from_its_version() {
    let mut node = Node::start(&[]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "app", "image": "busybox:1"}]}});
    assert_eq!(create(&node, "/api/v1/namespaces/default/pods", &pod).code, 201);
    node.until(&["get", "pod", "web"], |told| told.out.contains("Running"));
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "v"}});
    assert_eq!(create(&node, "/api/v1/namespaces/default/secrets", &secret).code, 201);
    assert_eq!(create(&node, MAPS, &map("before")).code, 201);
    let seen = ask(&node, "GET", MAPS, &[], b"").json()["metadata"]["resourceVersion"].clone();
    let seen = seen.as_str().unwrap().to_owned();
    assert_eq!(create(&node, MAPS, &map("missed")).code, 201);
    let address = node.address();
    node.kill();
    node.begin();
    assert_eq!(node.address(), address, "clients find it where it was");
    assert_eq!(create(&node, MAPS, &map("after")).code, 201);
    let path = format!("{MAPS}?watch=true&resourceVersion={seen}");
    let told: Vec<(Value, Value)> = Watch::open(&node, &path)
        .take(2)
        .map(|event| (event["type"].clone(), event["object"]["metadata"]["name"].clone()))
        .collect();
    assert_eq!(told, [("ADDED".into(), "missed".into()), ("ADDED".into(), "after".into())]);
    let secret = ask(&node, "GET", "/api/v1/namespaces/default/secrets/s", &[], b"").json();
    assert_eq!(secret["data"]["k"], "dg==");
    // The host has booted anew: the pod is the same, its containers are others.
    node.until(&["get", "pod", "web"], |told| told.out.contains("1/1"));
    assert!(node.stop());
    let verify = Command::new(env!("CARGO_BIN_EXE_nodefold"))
        .arg("verify")
        .arg(node.data().join("journal"))
        .output()
        .unwrap();
    assert!(verify.status.success(), "{}", String::from_utf8_lossy(&verify.stdout));
}

#[test]
fn a_version_of_another_time_is_no_place_to_go_on_from() {
    let node = Node::start(&[]);
    let ahead = ask(&node, "GET", &format!("{MAPS}?watch=true&resourceVersion=999999"), &[], b"");
    ahead.is_refusal(504);
}

fn folded(node: &Node) -> u64 {
    let metrics = ask(node, "GET", "/metrics", &[], b"").body;
    let line = metrics.lines().find_map(|line| line.strip_prefix("nodefold_start_folded_requests "));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{metrics}"))
}

/// All objects of these kinds, and each change since the first version, as a server tells them.
fn everything(node: &Node) -> Vec<Value> {
    let secrets = "/api/v1/namespaces/default/secrets";
    let mut told: Vec<Value> =
        [MAPS, secrets].iter().map(|path| ask(node, "GET", path, &[], b"").json()["items"].clone()).collect();
    let path = format!("{MAPS}?watch=true&resourceVersion=1");
    told.extend(Watch::open(node, &path).take_while(|event| event["object"]["metadata"]["name"] != "end"));
    told
}

/// What was kept at a clean end and the journal's tail after a kill make what the whole journal makes.
#[test]
fn a_start_goes_on_from_what_was_kept_and_comes_to_the_same() {
    let mut node = Node::start(&[]);
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "v"}});
    assert_eq!(create(&node, "/api/v1/namespaces/default/secrets", &secret).code, 201);
    for n in 0..60 {
        assert_eq!(create(&node, MAPS, &map(&format!("m{n}"))).code, 201);
    }
    for n in 0..20 {
        assert_eq!(ask(&node, "DELETE", &format!("{MAPS}/m{n}"), &[], b"").code, 200);
    }
    assert!(node.stop());
    node.begin();
    assert_eq!(folded(&node), 0, "all was kept at the end");
    for n in 60..70 {
        assert_eq!(create(&node, MAPS, &map(&format!("m{n}"))).code, 201);
    }
    node.kill();
    node.begin();
    let tail = folded(&node);
    assert!((10..30).contains(&tail), "only what came later: {tail}");
    assert_eq!(create(&node, MAPS, &map("end")).code, 201);
    let told = everything(&node);
    assert_eq!(told.len(), 2 + 60 + 20 + 10);
    node.kill();
    for entry in std::fs::read_dir(node.data().join("journal")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "kept") {
            std::fs::remove_file(path).unwrap();
        }
    }
    node.begin();
    assert!(folded(&node) > 90, "all of it");
    assert_eq!(everything(&node), told);
    assert!(node.stop());
    for command in ["verify", "snapshot", "replay"] {
        let mut run = Command::new(env!("CARGO_BIN_EXE_nodefold"));
        let out = run.arg(command).arg(node.data().join("journal")).output().unwrap();
        assert!(out.status.success(), "{command}: {}", String::from_utf8_lossy(&out.stderr));
    }
}
