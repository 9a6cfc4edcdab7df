//! What ran here, and who asked: through kubectl and from the journal alone, watched, and as of earlier moments; after a thousand
//! dynamic containers have come and gone (issue 7, what it must show 3).

use super::client::{Answer, Watch, ask, create, request};
use super::node::{LONG, Node};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

const PODS: &str = "/api/v1/namespaces/default/pods";
const RUNS: &str = "/apis/history.nodefold.io/v1alpha1/namespaces/default/containerruns";
const VOLUMES: &str = "/apis/history.nodefold.io/v1alpha1/namespaces/default/volumeruns";
const ALLOCATIONS: &str = "/apis/history.nodefold.io/v1alpha1/allocations";

fn warm(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "keeper", "image": "busybox:1"}]}})
}

/// A patch of `dynamic`, as a user in the masters' group.
fn dynamic(node: &Node, pod: &str, user: &str, patch: &Value) -> Answer {
    let headers = [
        ("Content-Type", "application/strategic-merge-patch+json"),
        ("Impersonate-User", user),
        ("Impersonate-Group", "system:masters"),
    ];
    ask(node, "PATCH", &format!("{PODS}/{pod}/dynamic"), &headers, patch.to_string().as_bytes())
}

fn get(node: &Node, path: &str) -> Value {
    let answer = ask(node, "GET", path, &[], b"");
    assert_eq!(answer.code, 200, "{path}: {}", answer.body);
    answer.json()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn history(node: &Node, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nodefold"));
    let out = command.arg("history").arg(node.data().join("journal")).args(args).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn a_thousand_dynamic_containers_later() {
    let mut node = Node::start(&[]);
    assert_eq!(create(&node, PODS, &warm("warm")).code, 201);
    until("it runs", || get(&node, &format!("{PODS}/warm"))["status"]["phase"] == "Running");
    let (rounds, each) = (20, 50);
    let users = ["ann", "bob", "cyd"];
    let name = |round: usize, n: usize| format!("c-{round}-{n}");
    let mut middle = String::new();
    for round in 0..rounds {
        let mut containers: Vec<Value> = (0..each)
            .map(|n| json!({"name": name(round, n), "image": "busybox:1", "command": ["sh", "-c", "sleep 0.1; exit 3"]}))
            .collect();
        if round > 0 {
            containers.extend((0..each).map(|n| json!({"name": name(round - 1, n), "$patch": "delete"})));
        }
        let patch = json!({"spec": {"containers": containers}});
        let answer = dynamic(&node, "warm", users[round % 3], &patch);
        assert_eq!(answer.code, 200, "{}", answer.body);
        let ended = format!("{RUNS}?fieldSelector=status.reason%3DError");
        until("they have come and gone", || items(&get(&node, &ended)).len() == (round + 1) * each);
        if round == rounds / 2 {
            let runs = get(&node, RUNS);
            middle = runs["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
        }
    }
    let all = get(&node, RUNS);
    assert_eq!(items(&all).len(), rounds * each + 1);
    let one = items(&all).iter().find(|run| run["spec"]["container"] == name(7, 21)).unwrap();
    assert_eq!((&one["spec"]["askedBy"], &one["status"]["exitCode"]), (&json!("bob"), &json!(3)));
    let then = one["status"]["startedAt"].as_str().unwrap();

    // One kubectl get, one nodefold command; what the server itself takes for it.
    let selector = format!("at={then},spec.container=keeper");
    let told = node.kubectl(&["get", "containerruns", "--field-selector", &selector]).fine();
    assert_eq!(told.rows()[1][..4], ["warm", "keeper", "0.0", "nodefold-admin"]);
    let begun = Instant::now();
    let ran = get(&node, &format!("{RUNS}?fieldSelector=at%3D{}", then.replace(':', "%3A")));
    let served = begun.elapsed();
    assert!(items(&ran).iter().any(|run| run["spec"]["container"] == "keeper"));
    let begun = Instant::now();
    let told = history(&node, &[]);
    let read = begun.elapsed();
    assert_eq!(told.lines().count(), rounds * each + 1);
    for (n, user) in users.iter().enumerate() {
        let expected = (0..rounds).filter(|round| round % 3 == n).count() * each;
        let by = format!("asked by {user} ");
        assert_eq!(told.lines().filter(|line| line.contains(&by)).count(), expected, "{user}");
    }
    assert_eq!(history(&node, &["--at", then]).lines().count(), items(&ran).len());
    println!("1,001 runs: GET ?fieldSelector=at=... {served:?}, nodefold history {read:?}");
    assert!(served < Duration::from_secs(5) && read < Duration::from_secs(20), "{served:?}, {read:?}");

    // As of the middle: what was known then, by the API and by the journal, and exactly as Kubernetes asks for it.
    let exact = format!("{RUNS}?resourceVersion={middle}&resourceVersionMatch=Exact");
    let known = get(&node, &exact);
    assert_eq!(items(&known).len(), (rounds / 2 + 1) * each + 1);
    assert_eq!(known["metadata"]["resourceVersion"], middle);
    assert_eq!(get(&node, &format!("{RUNS}?fieldSelector=revision%3D{middle}"))["items"], known["items"]);
    assert_eq!(history(&node, &["--revision", &middle]).lines().count(), items(&known).len());

    // After kill -9 it is the same, and its watchers go on.
    node.kill();
    node.begin();
    assert_eq!(get(&node, &exact)["items"], known["items"]);
    let mut watch = Watch::open(&node, &format!("{RUNS}?watch=true&resourceVersion={middle}"));
    let next = watch.next().unwrap();
    assert_eq!(next["type"], "ADDED");
    let name = next["object"]["spec"]["container"].as_str().unwrap();
    assert!(name.starts_with("c-11-"), "{name}");
}

#[test]
fn allocations_and_volumes_are_watched_and_asked_for_as_of_then() {
    let node = Node::start(&[]);
    let watched = node.kubectl_command(&node.kubeconfig(), &["get", "allocations", "-w", "--no-headers"]);
    let mut watched = { watched };
    let mut child =
        watched.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    // kubectl lists before it watches: whatever it shows, it shows it in order.
    assert_eq!(create(&node, PODS, &warm("one")).code, 201);
    until("it runs", || get(&node, &format!("{PODS}/one"))["status"]["phase"] == "Running");
    let first = get(&node, ALLOCATIONS);
    let before = first["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let one = &items(&first)[0];
    assert_eq!((&one["metadata"]["name"], &one["spec"]["generation"]), (&json!("one"), &json!(1)));
    let patch = json!({"spec": {
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "containers": [{"name": "tool", "image": "busybox:2", "volumeMounts": [{"name": "scratch", "mountPath": "/s"}]}]}});
    assert_eq!(dynamic(&node, "one", "joe", &patch).code, 200);
    let mut changes = Watch::open(&node, &format!("{ALLOCATIONS}?watch=true&resourceVersion={before}"));
    let change = changes.next().unwrap();
    assert_eq!(change["type"], "MODIFIED");
    let spec = &change["object"]["spec"];
    assert_eq!((&spec["askedBy"], &spec["generation"]), (&json!("joe"), &json!(2)));
    assert_eq!(spec["volumes"], json!([{"name": "scratch", "source": "emptyDir"}]));
    until("it is mounted", || !items(&get(&node, VOLUMES)).is_empty());
    let told = node.kubectl(&["get", "volumeruns"]).fine();
    assert_eq!(told.rows()[0].join(" "), "POD VOLUME RUN SOURCE ASKED BY MOUNTED UNMOUNTED");
    assert_eq!(told.rows()[1][..5], ["one", "scratch", "0", "emptyDir", "joe"]);
    let told = node.kubectl(&["get", "allocations", "-o", "wide"]).fine();
    let head = "NAME GENERATION CONTAINERS VOLUMES ASKED BY ALLOCATED ASKED AT REVISION IMAGES";
    assert_eq!(told.rows()[0].join(" "), head);
    let explained = node.kubectl(&["explain", "allocation.spec.generation"]).fine();
    assert!(explained.out.contains("Which generation of the pod's spec is allocated."), "{}", explained.out);
    // Who may only view may see it; who may nothing may not.
    let jane = node.kubeconfig_of("jane", &[]);
    node.kubectl_as(&jane, &["get", "allocations"]).refused("(Forbidden)");
    let bound = ["create", "rolebinding", "jane-views", "--clusterrole=view", "--user=jane"];
    node.kubectl(&bound).fine();
    node.kubectl_as(&jane, &["get", "allocations", "one", "-o", "name"])
        .says("allocation.history.nodefold.io/one");

    let then = get(&node, &format!("{ALLOCATIONS}?fieldSelector=revision%3D{before}"));
    assert_eq!(then["items"], first["items"]);
    node.kubectl(&["delete", "pod", "one"]).fine();
    let mut gone = changes.skip_while(|change| change["type"] != "DELETED");
    assert_eq!(gone.next().unwrap()["object"]["metadata"]["name"], "one");
    assert_eq!(items(&get(&node, ALLOCATIONS)), [] as [Value; 0]);
    until("it is unmounted", || !items(&get(&node, VOLUMES))[0]["status"]["unmountedAt"].is_null());
    let told = history(&node, &["--what", "allocations", "--revision", &before]);
    assert!(told.contains("default/one  generation 1  [keeper] []"), "{told}");
    assert!(history(&node, &["--what", "volumes"]).contains("scratch#0  emptyDir  asked by joe"));

    let shown = lines.next().unwrap().unwrap();
    assert!(shown.starts_with("one "), "{shown}");
    child.kill().unwrap();
    child.wait().unwrap();
    // Its logs go with it.
    let logs = node.data().join("logs/pods");
    let left = || std::fs::read_dir(&logs).map_or(0, |entries| entries.count());
    until("its logs are removed", || left() == 0);
    for bad in ["at=never", "revision=x", "asOf=1", "ago=later", "at=2026-01-01T00:00:00Z,revision=1"] {
        let bad = bad.replace('=', "%3D").replace(':', "%3A").replace(',', "%2C");
        ask(&node, "GET", &format!("{RUNS}?fieldSelector={bad}"), &[], b"").is_refusal(400);
    }
    ask(&node, "GET", &format!("{RUNS}?fieldSelector=revision%3D99999"), &[], b"").is_refusal(504);
    ask(&node, "GET", &format!("{RUNS}?watch=true&fieldSelector=ago%3D1h"), &[], b"").is_refusal(400);
    create(&node, RUNS, &json!({})).is_refusal(405);
    // A request that is refused before it is one is recorded as well.
    let mut stream = super::client::socket(&node);
    stream.write_all(&request("GET", "/api/v1/pods?limit=x", &[], b"")).unwrap();
    super::client::read_answer(stream).is_refusal(400);
}
