//! Lists in pages and as of versions, watches that begin with what there is, packed answers, HTTP/2: as Kubernetes has them.

use super::client::{Watch, ask, create, request, socket, tls_speaking};
use super::node::Node;
use serde_json::{Value, json};
use std::io::{Read, Write};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": text}})
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

#[test]
fn pages_are_of_one_moment() {
    let mut node = Node::start(&[]);
    for n in 0..5 {
        assert_eq!(create(&node, MAPS, &map(&format!("m{n}"), "1")).code, 201);
    }
    let get = |node: &Node, query: &str| ask(node, "GET", &format!("{MAPS}?{query}"), &[], b"");
    let first = get(&node, "limit=2").json();
    let metadata = &first["metadata"];
    assert_eq!((names(&first), &metadata["remainingItemCount"]), (vec!["m0", "m1"], &json!(3)));
    // What changes between two pages is on neither.
    assert_eq!(create(&node, MAPS, &map("m11", "1")).code, 201);
    assert_eq!(ask(&node, "DELETE", &format!("{MAPS}/m2"), &[], b"").code, 200);
    let token = metadata["continue"].as_str().unwrap();
    let second = get(&node, &format!("limit=2&continue={token}")).json();
    assert_eq!(names(&second), ["m2", "m3"]);
    assert_eq!(second["metadata"]["resourceVersion"], metadata["resourceVersion"]);
    let last = second["metadata"]["continue"].as_str().unwrap();
    let third = get(&node, &format!("limit=2&continue={last}")).json();
    assert_eq!((names(&third), &third["metadata"]["continue"]), (vec!["m4"], &Value::Null));
    assert_eq!(names(&get(&node, "").json()), ["m0", "m1", "m11", "m3", "m4"]);
    // A selection counts nothing ahead, and a token is no other list's.
    let selected = get(&node, "limit=1&labelSelector=%21x").json();
    assert_eq!(selected["metadata"]["remainingItemCount"], Value::Null);
    assert!(selected["metadata"]["continue"].is_string());
    get(&node, &format!("limit=2&continue={token}&labelSelector=x")).is_refusal(400);
    get(&node, "limit=2&continue=nonsense").is_refusal(400);
    get(&node, &format!("continue={token}&resourceVersion=1")).is_refusal(400);
    // kubectl asks in pages and shows one list.
    assert_eq!(node.kubectl(&["get", "cm", "--chunk-size=2", "-o", "name"]).fine().out.lines().count(), 5);
    node.kill();
    node.begin();
    let late = get(&node, &format!("limit=2&continue={token}")).json();
    assert_eq!(late["items"], second["items"], "a token outlives the server");
    assert_eq!(late["metadata"]["resourceVersion"], metadata["resourceVersion"]);
    let last = late["metadata"]["continue"].as_str().unwrap();
    assert_eq!(names(&get(&node, &format!("limit=2&continue={last}")).json()), ["m4"]);
}

#[test]
fn versions_mean_what_they_mean_in_kubernetes() {
    let node = Node::start(&[]);
    assert_eq!(create(&node, MAPS, &map("a", "1")).code, 201);
    let get = |query: &str| ask(&node, "GET", &format!("{MAPS}?{query}"), &[], b"");
    let version = get("").json()["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    assert_eq!(create(&node, MAPS, &map("b", "1")).code, 201);
    let changed = map("a", "2").to_string();
    let put =
        ask(&node, "PUT", &format!("{MAPS}/a"), &[("Content-Type", "application/json")], changed.as_bytes());
    assert_eq!(put.code, 200);
    let exact = get(&format!("resourceVersion={version}&resourceVersionMatch=Exact")).json();
    assert_eq!((names(&exact), &exact["items"][0]["data"]["a"]), (vec!["a"], &json!("1")));
    assert_eq!(exact["metadata"]["resourceVersion"], version);
    let pages = get(&format!("resourceVersion={version}&limit=10")).json();
    assert_eq!(names(&pages), ["a"], "with a limit a version is an exact one");
    for query in ["resourceVersion=0", "resourceVersion=0&limit=5"] {
        assert_eq!(names(&get(query).json()), ["a", "b"], "{query}");
    }
    let newer = get(&format!("resourceVersion={version}&resourceVersionMatch=NotOlderThan")).json();
    assert_eq!(names(&newer), ["a", "b"]);
    for (query, code) in [
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersion=1&resourceVersionMatch=Newest", 422),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422),
        ("sendInitialEvents=true", 422),
        ("watch=true&sendInitialEvents=true", 422),
        ("watch=true&resourceVersionMatch=NotOlderThan", 422),
        ("resourceVersion=99999", 504),
        ("resourceVersion=99999&resourceVersionMatch=Exact", 504),
        ("resourceVersion=x", 400),
        ("limit=-1", 400),
    ] {
        get(query).is_refusal(code);
    }
}

#[test]
fn a_watch_may_begin_with_what_there_is() {
    let node = Node::start(&[]);
    assert_eq!(create(&node, MAPS, &map("a", "1")).code, 201);
    let open = |query: &str| Watch::open(&node, &format!("{MAPS}?watch=true&{query}"));
    let first = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut listed = open(first);
    assert_eq!(listed.next().unwrap()["type"], "ADDED");
    let mark = listed.next().unwrap();
    assert_eq!(mark["type"], "BOOKMARK");
    assert_eq!(mark["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    let mut unmarked = open("sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    let mut only_new = open("sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
    assert_eq!(create(&node, MAPS, &map("b", "1")).code, 201);
    let name = |event: Value| event["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    assert_eq!(name(unmarked.next().unwrap()), "a");
    assert_eq!(name(unmarked.next().unwrap()), "b", "who takes no bookmarks gets none");
    assert_eq!(name(only_new.next().unwrap()), "b");
    assert_eq!(name(listed.next().unwrap()), "b");
    assert_eq!(open("timeoutSeconds=1").count(), 2, "it tells what there is, and ends when it was told to");
}

#[test]
fn large_answers_are_packed_for_whoever_takes_that() {
    let node = Node::start(&[]);
    assert_eq!(create(&node, MAPS, &map("large", &"x".repeat(200 << 10))).code, 201);
    let raw = |path: &str, headers: &[(&str, &str)]| {
        let mut stream = socket(&node);
        stream.write_all(&request("GET", path, headers, b"")).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        (String::from_utf8_lossy(&bytes[..head]).to_lowercase(), bytes[head + 4..].to_vec())
    };
    let gzip = [("Accept-Encoding", "deflate, gzip")];
    let (head, body) = raw(MAPS, &gzip);
    assert!(head.contains("content-encoding: gzip") && body.len() < 20 << 10, "{head}");
    let mut unpacked = String::new();
    flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut unpacked).unwrap();
    assert!(unpacked.len() > 200 << 10 && unpacked.contains("ConfigMapList"));
    let (head, body) = raw(MAPS, &[]);
    assert!(!head.contains("gzip") && body.len() > 200 << 10, "{head}");
    let (head, _) = raw("/api/v1/nodes", &gzip);
    assert!(!head.contains("gzip"), "what is small is not packed: {head}");
}

/// A client that offers both, as kubectl does, gets HTTP/2.
#[test]
fn http_2_is_agreed_on() {
    let node = Node::start(&[]);
    for (offered, agreed) in
        [(&[b"h2" as &[u8], b"http/1.1"][..], &b"h2"[..]), (&[b"http/1.1" as &[u8]][..], b"http/1.1")]
    {
        let mut stream = tls_speaking(&node, Some(&node.kubeconfig()), offered);
        stream.conn.complete_io(&mut stream.sock).unwrap();
        assert_eq!(stream.conn.alpn_protocol(), Some(agreed));
    }
    node.kubectl(&["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]).says("nodefold-admin");
}
