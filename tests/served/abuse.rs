//! Clients that mean no good are refused cleanly, and the node goes on (issue 7, what it must show 6).

use super::client::{ask, ask_tls, create, read_answer, request, socket, tls};
use super::node::{LONG, Node};
use serde_json::json;
use std::io::{Read, Write};
use std::time::Instant;

#[test]
fn who_shows_nothing_gets_nothing() {
    let node = Node::start(&[]);
    let get = |path: &str| request("GET", path, &[], b"");
    ask_tls(&node, None, &get("/api/v1/pods")).is_refusal(401);
    ask_tls(&node, None, &get("/no/such/path")).is_refusal(401);
    ask_tls(&node, None, &get("/metrics")).is_refusal(401);
    let forged = request("GET", "/api/v1/pods", &[("Authorization", "Bearer guessed")], b"");
    ask_tls(&node, None, &forged).is_refusal(401);
    let spoken = request("GET", "/api/v1/pods", &[("Impersonate-User", "nodefold-admin")], b"");
    ask_tls(&node, None, &spoken).is_refusal(401);
    assert_eq!(ask_tls(&node, None, &get("/livez")).code, 200);
    // Another node's administrator is a stranger here.
    let other = Node::start(&[]);
    let mut stream = tls(&node, Some(&other.kubeconfig()));
    let refused = stream.write_all(&get("/api/v1/pods")).and_then(|()| stream.read(&mut [0; 1]).map(drop));
    assert!(refused.is_err(), "a certificate of another authority ends the handshake");
    let jane = node.kubeconfig_of("jane", &["devs"]);
    ask_tls(&node, Some(&jane), &get("/api/v1/secrets")).is_refusal(403);
    ask_tls(&node, Some(&jane), &get("/allocatedPods")).is_refusal(403);
    ask_tls(&node, Some(&jane), &get("/metrics")).is_refusal(403);
    assert_eq!(ask_tls(&node, Some(&node.kubeconfig()), &get("/api/v1/pods")).code, 200);
}

#[test]
fn a_token_is_somebody() {
    let mut node = Node::start(&[]);
    std::fs::write(node.data().join("pki/tokens.csv"), "s3cret,root,1,\"system:masters\"\n").unwrap();
    assert!(node.stop());
    node.begin();
    let with = request("GET", "/api/v1/pods", &[("Authorization", "Bearer s3cret")], b"");
    assert_eq!(ask_tls(&node, None, &with).code, 200);
}

#[test]
fn what_is_malformed_is_refused() {
    let node = Node::start(&[]);
    for path in [
        "/api/v1/namespaces/..%2f..%2fetc/pods",
        "/api/v1/namespaces/default/pods/..",
        "/api/v1/namespaces/default/pods/%2e%2e/log",
        "/api/v1/namespaces/default/pods/a%00b",
        "/api/v1/namespaces//pods",
        "/api/v1/pods?labelSelector=a%20b%20c",
        "/api/v1/pods?fieldSelector=spec.secret%3Dx",
        "/api/v1/pods?watch=true&resourceVersion=x",
        "/api/v1/pods?limit=%zz",
    ] {
        ask(&node, "GET", path, &[], b"").is_refusal(400);
    }
    ask(&node, "GET", "/etc/passwd", &[], b"").is_refusal(404);
    ask(&node, "BREW", "/api/v1/pods", &[], b"").is_refusal(405);
    ask(&node, "PUT", "/api/v1/namespaces/default/pods/x/log", &[], b"{}").is_refusal(405);
    ask(&node, "GET", "/api/v1/pods", &[("Accept", "image/png")], b"").is_refusal(406);
    let pods = "/api/v1/namespaces/default/pods";
    let json = [("Content-Type", "application/json")];
    for body in [&b"{"[..], b"[]", b"null", b"\xff\xfe", b"{\"kind\":\"Pod\"}", &[b'['; 50_000]] {
        ask(&node, "POST", pods, &json, body).is_refusal(400);
    }
    ask(&node, "POST", pods, &[("Content-Type", "text/html")], b"<p>").is_refusal(415);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "../../x"}, "spec": {"containers": []}});
    create(&node, pods, &pod).is_refusal(422);
    let pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "kube-system"}});
    create(&node, pods, &pod).is_refusal(400);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "../s"}, "data": {}});
    create(&node, "/api/v1/namespaces/default/secrets", &secret).is_refusal(422);
    assert_eq!(ask(&node, "GET", pods, &[], b"").code, 200, "the node goes on");
}

#[test]
fn what_is_too_large_is_refused() {
    let node = Node::start(&[]);
    let large = vec![b' '; 4 << 20];
    let path = "/api/v1/namespaces/default/configmaps";
    ask(&node, "POST", path, &[("Content-Type", "application/json")], &large).is_refusal(413);
    let long = "x".repeat(200 << 10);
    let head = ask(&node, "GET", "/api/v1/pods", &[("X-Long", &long)], b"");
    assert!(matches!(head.code, 0 | 400 | 431), "{}", head.code);
    assert_eq!(ask(&node, "GET", "/livez", &[], b"").body, "ok");
}

/// Slow-loris: heads and bodies that never end. They are cut off; others are served meanwhile.
#[test]
fn who_is_too_slow_is_left() {
    let node = Node::start(&[]);
    let mut slow_heads: Vec<_> = (0..50).map(|_| socket(&node)).collect();
    for stream in &mut slow_heads {
        stream.write_all(b"GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nX-Slow: ").unwrap();
    }
    let mut body = socket(&node);
    let head = "POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{";
    body.write_all(head.as_bytes()).unwrap();
    assert_eq!(ask(&node, "GET", "/api/v1/pods", &[], b"").code, 200);
    let begun = Instant::now();
    for mut stream in slow_heads {
        // An answer that says so, or nothing: in any case the end.
        stream.read_to_end(&mut Vec::new()).ok();
        assert!(begun.elapsed() < LONG, "a head that never ends is cut off");
    }
    read_answer(body).is_refusal(408);
}

/// What never reached the node's loop is in the journal as well: who, what, and the answer's code.
#[test]
fn refusals_are_recorded() {
    let mut node = Node::start(&[]);
    ask_tls(&node, None, &request("GET", "/api/v1/secrets", &[], b"")).is_refusal(401);
    ask(&node, "GET", "/api/v1/namespaces/default/pods/%2e%2e/log", &[], b"").is_refusal(400);
    ask(&node, "BREW", "/api/v1/pods", &[], b"").is_refusal(405);
    let mut stream = socket(&node);
    stream.write_all(b"this is no HTTP\r\n\r\n").unwrap();
    stream.read_to_end(&mut Vec::new()).ok();
    // Far more than may be recorded: they are counted.
    for _ in 0..400 {
        ask(&node, "GET", "/no/such/path", &[], b"").is_refusal(404);
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    ask(&node, "GET", "/the/last/path", &[], b"").is_refusal(404);
    // The loop takes requests in their order: when it has answered this one, it has recorded those before.
    assert_eq!(ask(&node, "GET", "/api/v1/pods", &[], b"").code, 200);
    assert!(node.stop());
    let mut log = std::process::Command::new(env!("CARGO_BIN_EXE_nodefold"));
    let out = log.arg("log").arg(node.data().join("journal")).arg("--json").output().unwrap();
    let records: Vec<serde_json::Value> = String::from_utf8(out.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|line| line["audit"].clone())
        .filter(|audit| audit.is_object())
        .collect();
    let has = |user: &str, path: &str, code: u16| {
        records
            .iter()
            .any(|r| r["user"] == user && r["path"] == path && r["code"] == code && r["decision"] == "forbid")
    };
    assert!(has("system:anonymous", "/api/v1/secrets", 401), "{records:?}");
    assert!(has("nodefold-admin", "/api/v1/namespaces/default/pods/%2e%2e/log", 400));
    assert!(has("nodefold-admin", "/api/v1/pods", 405));
    assert!(has("system:anonymous", "", 400), "what is no HTTP");
    let of_path = records.iter().filter(|r| r["path"] == "/no/such/path").count();
    let left_out: u64 = records.iter().filter_map(|r| r["leftOut"].as_u64()).sum();
    assert!(of_path < 400 && of_path as u64 + left_out == 400, "{of_path} recorded, {left_out} left out");
}

/// HTTP/2 is no way around a limit: heads that never end and connections that say nothing are left.
#[test]
fn http_2_has_limits_as_well() {
    let node = Node::start(&[]);
    let mut stream = super::client::tls_speaking(&node, None, &[b"h2"]);
    // The preface, and a head that is announced and never ends.
    let begun = Instant::now();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00").unwrap();
    stream.write_all(b"\x00\x00\x01\x01\x00\x00\x00\x00\x01\x82").unwrap();
    // Pings are not answered: the server gives up.
    stream.read_to_end(&mut Vec::new()).ok();
    assert!(begun.elapsed() < LONG, "who answers no ping is left");
    assert_eq!(ask(&node, "GET", "/livez", &[], b"").body, "ok");
}
