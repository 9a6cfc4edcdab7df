//! Admission webhooks that are called for real, over TLS; what becomes of fields that nobody knows, and of dry runs.

use super::client::{Answer, ask, create};
use super::node::Node;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PODS: &str = "/api/v1/namespaces/default/pods";
const HOOKS: &str = "/apis/admissionregistration.k8s.io/v1";

/// A webhook's end of the conversation: it answers what `say` says, and keeps what it was asked.
struct Hook {
    address: SocketAddr,
    authority: String,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Hook {
    fn start(say: fn(&Value) -> Value) -> Hook {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        let (config, kept) = (Arc::new(config), asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let tls = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
                // A caller that trusts somebody else hangs up.
                answer(tls, say, &kept).ok();
            }
        });
        Hook { address, authority: certificate.pem(), asked }
    }

    /// Its configuration, with something on top.
    fn manifest(&self, kind: &str, name: &str, more: Value) -> Value {
        let mut webhook = json!({"name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": format!("https://{}/{name}", self.address), "caBundle": STANDARD.encode(&self.authority)},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["pods"]}]});
        for (key, value) in more.as_object().into_iter().flatten() {
            webhook[key] = value.clone();
        }
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "webhooks": [webhook]})
    }
}

fn answer(
    tls: StreamOwned<ServerConnection, std::net::TcpStream>,
    say: fn(&Value) -> Value,
    kept: &Mutex<Vec<(String, Value)>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(tls);
    let (mut first, mut length, mut line) = (String::new(), 0, String::new());
    reader.read_line(&mut first)?;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        if let Some(stated) = line.to_lowercase().strip_prefix("content-length:") {
            length = stated.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    kept.lock().unwrap().push((first.trim().to_owned(), review.clone()));
    let mut response = say(&review["request"]);
    if response["uid"].is_null() {
        response["uid"] = review["request"]["uid"].clone();
    }
    let text = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        .to_string();
    let mut tls = reader.into_inner();
    write!(
        tls,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    )?;
    tls.flush()
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "app", "image": "i:1"}]}})
}

fn register(node: &Node, manifest: &Value) {
    let plural = format!("{}s", manifest["kind"].as_str().unwrap().to_lowercase());
    let answer = create(node, &format!("{HOOKS}/{plural}"), manifest);
    assert_eq!(answer.code, 201, "{answer:?}");
}

fn post(node: &Node, query: &str, object: &Value) -> Answer {
    create(node, &format!("{PODS}?{query}"), object)
}

#[test]
fn a_mutating_webhook_s_patch_and_warnings_reach_the_pod_and_the_client() {
    let node = Node::start(&[]);
    let hook = Hook::start(|_| {
        let patch =
            json!([{"op": "add", "path": "/metadata/labels", "value": {"mutated": "yes"}}]).to_string();
        json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch), "warnings": ["be careful"]})
    });
    register(&node, &hook.manifest("MutatingWebhookConfiguration", "inject", json!({"timeoutSeconds": 30})));
    let answer = post(&node, "", &pod("web"));
    assert_eq!(answer.code, 201, "{answer:?}");
    assert_eq!(answer.json()["metadata"]["labels"]["mutated"], "yes");
    assert_eq!(answer.warnings, ["be careful"]);
    let asked = hook.asked.lock().unwrap().clone();
    assert_eq!(asked.len(), 1, "once, however often the loop is asked: {asked:?}");
    assert_eq!(asked[0].0, "POST /inject?timeout=30s HTTP/1.1");
    let request = &asked[0].1["request"];
    assert_eq!((&request["operation"], &request["namespace"]), (&json!("CREATE"), &json!("default")));
    assert_eq!(request["userInfo"]["username"], "nodefold-admin");
    assert_eq!(request["uid"].as_str().map(str::len), Some(36));
    assert_eq!(
        request["object"]["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent",
        "it sees defaults"
    );

    // A dry run asks, too, and leaves nothing.
    let dry = post(&node, "dryRun=All", &pod("ghost"));
    assert_eq!((dry.code, &dry.json()["metadata"]["labels"]["mutated"]), (201, &json!("yes")), "{dry:?}");
    assert_eq!(hook.asked.lock().unwrap()[1].1["request"]["dryRun"], true);
    ask(&node, "GET", &format!("{PODS}/ghost"), &[], b"").is_refusal(404);
}

#[test]
fn what_a_webhook_says_is_recorded_and_folded_again_after_a_restart() {
    let mut node = Node::start(&[]);
    let hook = Hook::start(|_| {
        let patch =
            json!([{"op": "add", "path": "/metadata/labels", "value": {"mutated": "yes"}}]).to_string();
        json!({"allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch),
            "auditAnnotations": {"why": "because"}})
    });
    register(&node, &hook.manifest("MutatingWebhookConfiguration", "inject", json!({})));
    assert_eq!(post(&node, "", &pod("web")).code, 201);
    node.kill();
    node.begin();
    let stored = ask(&node, "GET", &format!("{PODS}/web"), &[], b"").json();
    assert_eq!(stored["metadata"]["labels"]["mutated"], "yes");
    assert_eq!(hook.asked.lock().unwrap().len(), 1, "nobody is asked again about what was decided");
    assert!(node.stop());
    let mut log = std::process::Command::new(env!("CARGO_BIN_EXE_nodefold"));
    let out = log.arg("log").arg(node.data().join("journal")).arg("--json").output().unwrap();
    let records: Vec<Value> = String::from_utf8(out.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| Some(serde_json::from_str::<Value>(line).ok()?["audit"].clone()))
        .collect();
    let noted: Vec<&Value> = records.iter().filter(|record| record["annotations"].is_object()).collect();
    assert_eq!(noted.len(), 1, "in the record of that request alone: {records:?}");
    assert_eq!(
        (&noted[0]["verb"], &noted[0]["annotations"]),
        (&json!("create"), &json!({"hook.example.com/why": "because"}))
    );
}

#[test]
fn a_validating_webhook_refuses_in_its_own_words() {
    let node = Node::start(&[]);
    let hook = Hook::start(|request| match request["name"].as_str() {
        Some("bad") => {
            json!({"allowed": false, "status": {"code": 418, "reason": "Forbidden", "message": "no teapots"}})
        }
        Some("confused") => json!({"uid": "another", "allowed": true}),
        _ => json!({"allowed": true}),
    });
    register(&node, &hook.manifest("ValidatingWebhookConfiguration", "guard", json!({})));
    assert_eq!(post(&node, "", &pod("good")).code, 201);
    let refused = post(&node, "", &pod("bad"));
    assert_eq!(refused.code, 418);
    assert_eq!(
        refused.json()["message"],
        "admission webhook \"hook.example.com\" denied the request: no teapots"
    );
    let confused = post(&node, "", &pod("confused"));
    confused.is_refusal(500);
    assert!(confused.body.contains("expected response.uid="), "{confused:?}");
}

#[test]
fn who_cannot_be_asked_is_decided_by_the_failure_policy_and_says_why() {
    let node = Node::start(&[]);
    let hook = Hook::start(|_| json!({"allowed": true}));
    let other = Hook::start(|_| json!({"allowed": true}));
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let manifest = |more: Value| hook.manifest("ValidatingWebhookConfiguration", "guard", more);
    for (config, told) in [
        (
            json!({"url": format!("https://{gone}/"), "caBundle": STANDARD.encode(&hook.authority)}),
            "Connection refused",
        ),
        (
            json!({"url": format!("https://{}/", hook.address), "caBundle": STANDARD.encode(&other.authority)}),
            "certificate",
        ),
        (
            json!({"url": format!("https://{}/", hook.address), "caBundle": STANDARD.encode("none")}),
            "holds no certificate",
        ),
        (json!({"service": {"namespace": "kube", "name": "hook"}}), "can't be resolved on a node by itself"),
        (json!({"url": format!("http://{}/", hook.address)}), "it must begin with https://"),
    ] {
        let plural = format!("{HOOKS}/validatingwebhookconfigurations");
        ask(&node, "DELETE", &format!("{plural}/guard"), &[], b"");
        register(&node, &manifest(json!({"clientConfig": config, "failurePolicy": "Fail"})));
        let refused = post(&node, "", &pod("web"));
        refused.is_refusal(500);
        assert!(refused.body.contains("failed calling webhook \\\"hook.example.com\\\""), "{refused:?}");
        assert!(refused.body.contains(told), "{told}: {refused:?}");
        ask(&node, "DELETE", &format!("{plural}/guard"), &[], b"");
        register(&node, &manifest(json!({"clientConfig": config, "failurePolicy": "Ignore"})));
        assert_eq!(post(&node, "dryRun=All", &pod("web")).code, 201, "{config}");
    }
    assert!(hook.asked.lock().unwrap().is_empty());
}

#[test]
fn a_webhook_that_sleeps_holds_up_nobody_else() {
    let node = Node::start(&[]);
    // It accepts and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let hook = Hook::start(|_| json!({"allowed": true}));
    let config = json!({"url": format!("https://{}/", silent.local_addr().unwrap()), "caBundle": STANDARD.encode(&hook.authority)});
    register(
        &node,
        &hook.manifest(
            "ValidatingWebhookConfiguration",
            "slow",
            json!({"clientConfig": config, "timeoutSeconds": 3}),
        ),
    );
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| (post(&node, "", &pod("web")), begun.elapsed()));
        // Whatever is asked meanwhile is answered before it is.
        while !waiting.is_finished() {
            let asked = Instant::now();
            assert_eq!(ask(&node, "GET", PODS, &[], b"").code, 200);
            assert!(asked.elapsed() < Duration::from_millis(2_500), "{:?}", asked.elapsed());
            // No faster than one may ask.
            std::thread::sleep(Duration::from_millis(50));
        }
        let (refused, took) = waiting.join().unwrap();
        refused.is_refusal(500);
        assert!(refused.body.contains("context deadline exceeded"), "{refused:?}");
        assert!(took >= Duration::from_secs(3), "{took:?}");
    });
}

#[test]
fn unknown_fields_are_refused_told_or_dropped_as_the_client_asks() {
    let node = Node::start(&[]);
    let mut object = pod("web");
    object["spec"]["containers"][0]["imagee"] = json!("typo");
    let strict = post(&node, "fieldValidation=Strict", &object);
    strict.is_refusal(400);
    assert!(strict.body.contains("strict decoding error"), "{strict:?}");
    post(&node, "fieldValidation=Maybe", &object).is_refusal(422);
    let ignored = post(&node, "fieldValidation=Ignore&dryRun=All", &object);
    assert_eq!((ignored.code, ignored.warnings.len()), (201, 0), "{ignored:?}");
    // Without a word, a server warns.
    let warned = post(&node, "", &object);
    assert_eq!(warned.code, 201, "{warned:?}");
    assert_eq!(warned.warnings, ["unknown field \"spec.containers[0].imagee\""]);
    assert_eq!(warned.json()["spec"]["containers"][0]["imagee"], Value::Null);
    let path = format!("{PODS}/web?fieldValidation=Warn");
    let patch = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"wrong": 1}}).to_string();
    for kind in ["application/strategic-merge-patch+json", "application/merge-patch+json"] {
        let patched = ask(&node, "PATCH", &path, &[("Content-Type", kind)], patch.as_bytes());
        assert_eq!(patched.code, 200, "{patched:?}");
        assert_eq!(patched.warnings, ["unknown field \"spec.wrong\""], "{kind}");
    }
    // Of a field that comes twice the last counts.
    let twice = br#"{"metadata": {"labels": {"a": "1", "a": "2"}}}"#;
    let kind = [("Content-Type", "application/merge-patch+json")];
    let patched = ask(&node, "PATCH", &path, &kind, twice);
    assert_eq!((patched.code, &patched.json()["metadata"]["labels"]["a"]), (200, &json!("2")), "{patched:?}");
    assert_eq!(patched.warnings, ["duplicate field \"metadata.labels.a\""]);
    let refused = ask(&node, "PATCH", &format!("{PODS}/web?fieldValidation=Strict"), &kind, twice);
    refused.is_refusal(400);
    assert!(refused.body.contains("strict decoding error: duplicate field"), "{refused:?}");
    // A type that can't be read can't be dropped.
    let mut unreadable = pod("other");
    unreadable["spec"]["containers"] = json!("none");
    post(&node, "fieldValidation=Ignore", &unreadable).is_refusal(400);
}
