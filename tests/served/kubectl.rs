//! Acceptance test 8 (api-side §8): what a stock kubectl does, and what it prints, word for word where a real server's words are
//! known.

use super::node::{LONG, Node, Told};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

const POD: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 2
  containers:
  - name: app
    image: busybox:1.36
    command: [sh, -c, 'echo hello; while true; do sleep 0.2; echo tick; done']
    resources: {requests: {cpu: 100m}}
  - {name: helper, image: busybox:1.36}
";

fn running(node: &Node, name: &str) {
    node.until(&["get", "pod", name], |told| told.out.contains("Running"));
    node.kubectl(&["wait", "--for=condition=Ready", "--timeout=60s", &format!("pod/{name}")]).fine();
}

#[test]
fn a_pods_life() {
    let node = Node::start(&[]);
    let manifest = node.file("pod.yaml", POD);
    node.kubectl(&["apply", "-f", &manifest]).says("pod/web created");
    node.kubectl(&["apply", "-f", &manifest]).says("pod/web unchanged");
    node.kubectl(&["create", "-f", &manifest])
        .refused("Error from server (AlreadyExists): error when creating");
    running(&node, "web");

    let table = node.kubectl(&["get", "pods"]).fine();
    let rows = table.rows();
    assert_eq!(rows[0], ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    assert_eq!(rows[1][..4], ["web", "2/2", "Running", "0"]);
    let wide = node.kubectl(&["get", "pods", "-o", "wide"]).fine();
    let head = "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES";
    assert_eq!(wide.rows()[0].join(" "), head);
    assert_eq!(wide.rows()[1][6..], ["node", "<none>", "<none>"]);
    node.kubectl(&["get", "pods", "-o", "name"]).says("pod/web");
    let none = node.kubectl(&["get", "pods", "-l", "app=other"]);
    assert_eq!(none.err.trim(), "No resources found in default namespace.");
    let named = ["get", "pods", "-A", "--field-selector", "spec.nodeName=node", "-o", "name"];
    node.kubectl(&named).says("pod/web");
    node.kubectl(&["get", "pod", "nothing"])
        .refused("Error from server (NotFound): pods \"nothing\" not found");
    let yaml = node.kubectl(&["get", "pod", "web", "-o", "yaml"]).fine();
    assert!(yaml.out.starts_with("apiVersion: v1\nkind: Pod\nmetadata:\n"), "{}", yaml.out);

    let described = node.kubectl(&["describe", "pod", "web"]).fine();
    for words in [
        "Name:             web",
        "Status:           Running",
        "QoS Class:",
        "Burstable",
        "node/127.0.0.1",
        "Container started",
    ] {
        assert!(described.out.contains(words), "{words}: {}", described.out);
    }
    let events = node.kubectl(&["events", "--for", "pod/web"]).fine();
    assert_eq!(events.rows()[0], ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]);
    assert!(events.out.contains("Pod/web") && events.out.contains("Started"), "{}", events.out);
    let events = node.kubectl(&["get", "events"]).fine();
    assert!(events.out.contains("pod/web"), "{}", events.out);

    node.kubectl(&["label", "pod", "web", "tier=front"]).says("pod/web labeled");
    node.kubectl(&["annotate", "pod", "web", "note=it"]).says("pod/web annotated");
    let patch = r#"{"spec":{"containers":[{"name":"app","image":"busybox:1.37"}]}}"#;
    node.kubectl(&["patch", "pod", "web", "-p", patch]).says("pod/web patched");
    let patch = r#"[{"op":"replace","path":"/metadata/labels/tier","value":"back"}]"#;
    node.kubectl(&["patch", "pod", "web", "--type=json", "-p", patch]).says("pod/web patched");
    node.kubectl(&[
        "get",
        "pod",
        "web",
        "-o",
        "jsonpath={.metadata.labels.tier} {.spec.containers[0].image}",
    ])
    .says("back busybox:1.37");
    let patch = r#"{"spec":{"hostNetwork":true}}"#;
    node.kubectl(&["patch", "pod", "web", "-p", patch])
        .refused("The Pod \"web\" is invalid: spec: Forbidden: pod updates may not change fields other than");

    let mut edit = node.kubectl_command(&node.kubeconfig(), &["edit", "pod", "web"]);
    edit.env("KUBE_EDITOR", "sed -i 's/tier: back/tier: edge/'");
    let edited = edit.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&edited.stdout).trim(), "pod/web edited");
    node.kubectl(&["get", "pod", "web", "-o", "jsonpath={.metadata.labels.tier}"]).says("edge");

    node.kubectl(&["delete", "pod", "web"]).says("pod \"web\" deleted");
    node.kubectl(&["get", "pod", "web"]).refused("(NotFound)");
    node.kubectl(&["delete", "pod", "web"]).refused("(NotFound)");
    node.kubectl(&["delete", "pod", "web", "--ignore-not-found"]).fine();
}

#[test]
fn logs_as_they_come() {
    let node = Node::start(&[]);
    let manifest = node.file("pod.yaml", POD);
    node.kubectl(&["create", "-f", &manifest]).says("pod/web created");
    running(&node, "web");
    node.kubectl(&["logs", "web", "-c", "nothing"]).refused("container nothing is not valid for pod web");
    let mut follow = node.kubectl_command(&node.kubeconfig(), &["logs", "-f", "web", "-c", "app"]);
    let mut child = follow.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "hello");
    for _ in 0..3 {
        assert_eq!(lines.next().unwrap().unwrap(), "tick");
    }
    let tail = node.kubectl(&["logs", "web", "-c", "app", "--tail=2"]).fine();
    assert_eq!(tail.out, "tick\ntick\n");
    let stamped = node.kubectl(&["logs", "web", "-c", "app", "--tail=1", "--timestamps"]).fine();
    assert!(stamped.out.starts_with("20") && stamped.out.ends_with("Z tick\n"), "{}", stamped.out);
    node.kubectl(&["logs", "web", "-c", "app", "-p"])
        .refused("previous terminated container \"app\" in pod \"web\" not found");
    node.kubectl(&["delete", "pod", "web"]).fine();
    let begun = Instant::now();
    for line in lines {
        assert_eq!(line.unwrap(), "tick");
        assert!(begun.elapsed() < LONG, "a log ends with its pod");
    }
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_watch_shows_each_step() {
    let node = Node::start(&[]);
    let first = node.file("first.yaml", &POD.replace("name: web", "name: first"));
    node.kubectl(&["create", "-f", &first]).fine();
    running(&node, "first");
    let mut watch = node.kubectl_command(&node.kubeconfig(), &["get", "pods", "-w"]);
    let mut child = watch.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // It has listed: what comes now is watched.
    assert!(lines.next().unwrap().unwrap().starts_with("NAME "));
    assert!(lines.next().unwrap().unwrap().starts_with("first "));
    let manifest = node.file("pod.yaml", POD);
    node.kubectl(&["create", "-f", &manifest]).fine();
    let mut seen: Vec<String> = Vec::new();
    while seen.last().map(String::as_str) != Some("2/2 Running") {
        let line = lines.next().expect("the watch goes on").unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0] == "web" {
            seen.push(words[1..3].join(" "));
        }
    }
    assert!(
        seen.contains(&"0/2 Pending".to_owned()) && seen.contains(&"0/2 ContainerCreating".to_owned()),
        "{seen:?}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn containers_come_and_go_through_dynamic() {
    let node = Node::start(&[]);
    let manifest = node.file("pod.yaml", POD);
    node.kubectl(&["create", "-f", &manifest]).fine();
    running(&node, "web");
    let add =
        r#"{"spec":{"containers":[{"name":"tool","image":"busybox:1.36","command":["sleep","infinity"]}]}}"#;
    node.kubectl(&["patch", "pod", "web", "-p", add]).refused(
        "The Pod \"web\" is invalid: spec.containers: Forbidden: pod updates may not add or remove containers",
    );
    node.kubectl(&["patch", "pod", "web", "--subresource=dynamic", "-p", add]).says("pod/web patched");
    node.until(&["get", "pod", "web"], |told| told.out.contains("3/3"));

    // The whole pod without it, as PUT without a media type; a stale version is a conflict, bad fields are told.
    let path = "/api/v1/namespaces/default/pods/web/dynamic";
    let mut whole = node.kubectl(&["get", "--raw", path]).fine().json();
    let containers = whole["spec"]["containers"].as_array_mut().unwrap();
    containers.retain(|container| container["name"] != "tool");
    let stale = whole.to_string().replacen("\"resourceVersion\":\"", "\"resourceVersion\":\"1", 1);
    node.kubectl_with(&stale, &["replace", "--raw", path, "-f", "-"]).refused("(Conflict)");
    whole["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    node.kubectl_with(&whole.to_string(), &["replace", "--raw", path, "-f", "-"]).fine();
    let mut bad = whole.clone();
    bad["spec"]["containers"].as_array_mut().unwrap().push(serde_json::json!({"name": "BAD", "image": "x"}));
    node.kubectl_with(&bad.to_string(), &["replace", "--raw", path, "-f", "-"]).refused("spec.containers");

    // Acceptance test 9: what was removed and was killed is no state of the pod's.
    let gone = |told: &Told| told.out.contains("terminated");
    node.until(
        &["get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[?(@.name=='tool')].state}"],
        gone,
    );
    let row = node.kubectl(&["get", "pod", "web"]).fine();
    assert_eq!(row.rows()[1][1..4], ["2/2", "Running", "0"]);
    let allocated =
        node.kubectl(&["get", "pod", "web", "--subresource=allocated", "-o", "json"]).fine().json();
    assert_eq!(allocated["spec"]["containers"].as_array().unwrap().len(), 2);
    assert_eq!(allocated["status"], serde_json::json!({}));
    let all = node.kubectl(&["get", "--raw", "/allocatedPods"]).fine().json();
    assert_eq!((&all["kind"], all["items"].as_array().unwrap().len()), (&"PodList".into(), 1));
    let of_removed = "/api/v1/namespaces/default/pods/web/log?container=tool";
    node.kubectl(&["get", "--raw", of_removed]).fine();

    // What ran here, and who asked: the removed one too, at a moment, and from the journal alone.
    let runs = node.kubectl(&["get", "containerruns"]).fine();
    assert_eq!(runs.rows()[0].join(" "), "POD CONTAINER RUN ASKED BY STARTED ENDED EXIT");
    let tool =
        runs.rows().into_iter().find(|row| row[1] == "tool").expect("the removed container's run").join(" ");
    assert!(tool.starts_with("web tool 0.0 nodefold-admin 20") && !tool.contains("<running>"), "{tool}");
    let now = node.kubectl(&["get", "runs", "--field-selector", "at=2400-01-01T00:00:00Z", "-o", "json"]);
    let now = now.fine().json();
    let items = now["items"].as_array().unwrap();
    let mut running: Vec<&str> = items.iter().map(|run| run["spec"]["container"].as_str().unwrap()).collect();
    running.sort_unstable();
    assert_eq!(running, ["app", "helper"]);
    let mut told = Command::new(env!("CARGO_BIN_EXE_nodefold"));
    let told = told.arg("history").arg(node.data().join("journal")).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert_eq!(told.lines().filter(|line| line.contains("asked by nodefold-admin")).count(), 3, "{told}");

    let resize = r#"{"spec":{"containers":[{"name":"app","resources":{"requests":{"cpu":"200m"}}}]}}"#;
    node.kubectl(&["patch", "pod", "web", "--subresource=resize", "-p", resize]).says("pod/web patched");
}

#[test]
fn what_is_switched_off_is_not_there() {
    let node = Node::start(&["--disable-pod-subresources", "dynamic"]);
    let manifest = node.file("pod.yaml", POD);
    node.kubectl(&["create", "-f", &manifest]).fine();
    node.kubectl(&["get", "--raw", "/api/v1/namespaces/default/pods/web/dynamic"]).refused("(NotFound)");
    let discovery = node.kubectl(&["get", "--raw", "/api/v1"]).fine();
    assert!(!discovery.out.contains("pods/dynamic") && discovery.out.contains("pods/allocated"));
}

/// KEP-5972 and KEP-6395 "Feature Enablement and Rollback": what is there stays when the gates close, and more comes when they open.
#[test]
fn gates_that_close_and_open_again() {
    let gates = |containers: bool, volumes: bool| {
        let gates = format!("DynamicContainers={containers},DynamicNodeLocalEphemeralVolumes={volumes}");
        vec!["--feature-gates".to_owned(), gates]
    };
    let mut node = Node::start(&[]);
    let manifest = node.file("pod.yaml", POD);
    node.kubectl(&["create", "-f", &manifest]).fine();
    running(&node, "web");
    let volume = r#"{"spec":{"volumes":[{"name":"v","emptyDir":{}}]}}"#;
    let adding =
        |name: &str| format!(r#"{{"spec":{{"containers":[{{"name":"{name}","image":"busybox:1.36"}}]}}}}"#);
    let (one, two) = (adding("one"), adding("two"));
    let patch =
        |node: &Node, body: &str| node.kubectl(&["patch", "pod", "web", "--subresource=dynamic", "-p", body]);
    patch(&node, &one).says("pod/web patched");
    let ready = r#"jsonpath={.status.containerStatuses[?(@.name=="one")].ready}"#;
    node.until(&["get", "pod", "web", "-o", ready], |told| told.out == "true");

    assert!(node.stop());
    node.extra = gates(true, false);
    node.begin();
    patch(&node, volume).refused("spec.volumes: Forbidden");
    patch(&node, &two).says("pod/web patched");

    assert!(node.stop());
    node.extra = gates(false, false);
    node.begin();
    patch(&node, &one).refused("(NotFound)");
    node.kubectl(&["get", "pod", "web", "--subresource=allocated"]).refused("(NotFound)");
    let discovery = node.kubectl(&["get", "--raw", "/api/v1"]).fine();
    assert!(!discovery.out.contains("pods/dynamic") && !discovery.out.contains("pods/allocated"));
    let declared = ["get", "node", "node", "-o", "jsonpath={.status.declaredFeatures}"];
    node.kubectl(&declared).says("[]");
    node.until(&["get", "pod", "web", "-o", ready], |told| told.out == "true");

    assert!(node.stop());
    node.extra = Vec::new();
    node.begin();
    patch(&node, volume).says("pod/web patched");
    node.kubectl(&declared).says(r#"["DynamicContainers","DynamicNodeLocalEphemeralVolumes"]"#);
}

#[test]
fn server_side_apply_and_who_owns_what() {
    let node = Node::start(&[]);
    let manifest = node.file("pod.yaml", POD);
    node.kubectl(&["apply", "--server-side", "-f", &manifest]).says("pod/web serverside-applied");
    node.kubectl(&["apply", "--server-side", "-f", &manifest]).says("pod/web serverside-applied");
    node.kubectl(&["label", "pod", "web", "app=other", "--overwrite"]).says("pod/web labeled");
    let refused = node.kubectl(&["apply", "--server-side", "-f", &manifest]);
    let refused = refused.refused("Apply failed with 1 conflict: conflict with \"kubectl-label\" using v1");
    assert!(refused.err.contains(".metadata.labels.app"), "{}", refused.err);
    node.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", &manifest])
        .says("pod/web serverside-applied");
    node.kubectl(&["get", "pod", "web", "-o", "jsonpath={.metadata.labels.app}"]).says("web");
    let shown = node.kubectl(&["get", "pod", "web", "-o", "json", "--show-managed-fields"]).fine().json();
    let managers = shown["metadata"]["managedFields"].as_array().unwrap();
    assert!(managers.iter().any(|m| m["manager"] == "kubectl" && m["operation"] == "Apply"), "{managers:?}");

    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: '1', b: '2'}}";
    let map = node.file("map.yaml", map);
    node.kubectl(&["apply", "--server-side", "-f", &map]).says("configmap/c serverside-applied");
    let less =
        node.file("map.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a: '1'}}");
    node.kubectl(&["apply", "--server-side", "-f", &less]).says("configmap/c serverside-applied");
    node.kubectl(&["get", "cm", "c", "-o", "jsonpath={.data}"]).says(r#"{"a":"1"}"#);
}

const ROLES: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: jane-edits, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]
";

#[test]
fn what_one_may() {
    let node = Node::start(&[]);
    node.kubectl(&["auth", "can-i", "update", "pods", "--subresource=dynamic"]).says("yes");
    let jane = node.kubeconfig_of("jane", &[]);
    node.kubectl_as(&jane, &["get", "pods"]).refused(
        "Error from server (Forbidden): pods is forbidden: User \"jane\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"",
    );
    let roles = node.file("roles.yaml", ROLES);
    node.kubectl(&["apply", "-f", &roles]).says("rolebinding.rbac.authorization.k8s.io/jane-edits created");
    node.kubectl_as(&jane, &["auth", "can-i", "create", "pods"]).says("yes");
    let asked = node.kubectl_as(&jane, &["auth", "can-i", "patch", "pods", "--subresource=dynamic"]);
    assert_eq!((asked.ok, asked.out.trim()), (false, "no"), "the edit role lacks pods/dynamic");
    let list = node.kubectl_as(&jane, &["auth", "can-i", "--list"]).fine();
    assert!(list.out.contains("pods/resize") && !list.out.contains("pods/dynamic"), "{}", list.out);
    let manifest = node.file("pod.yaml", POD);
    node.kubectl_as(&jane, &["create", "-f", &manifest]).says("pod/web created");
    let add = r#"{"spec":{"containers":[{"name":"tool","image":"busybox:1.36"}]}}"#;
    node.kubectl_as(&jane, &["patch", "pod", "web", "--subresource=dynamic", "-p", add])
        .refused("(Forbidden)");
    let asked = node.kubectl(&["auth", "can-i", "get", "pods", "--as", "joe"]);
    assert_eq!((asked.ok, asked.out.trim()), (false, "no"));
    let spoken = node.kubectl_as(&jane, &["get", "pods", "--as", "joe"]);
    spoken.refused("User \"jane\" cannot impersonate resource \"users\"");

    // Each of them is in the journal, allowed or not, with who asked and who says so.
    let mut node = node;
    assert!(node.stop());
    let mut log = Command::new(env!("CARGO_BIN_EXE_nodefold"));
    log.arg("log").arg(node.data().join("journal"));
    let log = String::from_utf8(log.output().unwrap().stdout).unwrap();
    for line in [
        "jane: list pods default: forbid, 403",
        "jane: create pods default/web: allow (RoleBinding \"default/jane-edits\" of ClusterRole \"edit\"), 201",
        "jane: get pods/dynamic default/web: forbid, 403",
        "joe: list pods default: forbid, 403",
    ] {
        assert!(log.contains(line), "{line}: {log}");
    }
}

#[test]
fn other_kinds_and_what_is_explained() {
    let node = Node::start(&[]);
    let nodes = node.kubectl(&["get", "nodes"]).fine();
    assert_eq!(nodes.rows()[0], ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]);
    assert_eq!(nodes.rows()[1][..3], ["node", "Ready", "<none>"]);
    let namespaces = node.kubectl(&["get", "ns", "-o", "name"]).fine();
    assert_eq!(namespaces.out, "namespace/default\nnamespace/kube-public\nnamespace/kube-system\n");
    let resources = node.kubectl(&["api-resources", "--no-headers"]).fine();
    assert!(resources.out.contains("pods") && resources.out.contains("rolebindings"), "{}", resources.out);
    let explained = node.kubectl(&["explain", "pod.spec.containers.volumeMounts"]).fine();
    assert!(
        explained.out.starts_with("KIND:       Pod\nVERSION:    v1\n\nFIELD: volumeMounts <[]VolumeMount>"),
        "{}",
        explained.out
    );
    assert!(explained.out.contains("mountPath"), "{}", explained.out);
    // What Kubernetes itself says of the field, and of kinds besides Pod.
    assert!(
        explained.out.contains("Path within the container at which the volume should be mounted."),
        "{}",
        explained.out
    );
    for (path, text) in [
        ("pod.spec.containers", "List of containers belonging to the pod. Of a running pod they are"),
        ("role.rules.verbs", "verbs is a list of Verbs that apply to ALL the ResourceKinds"),
        ("mutatingadmissionpolicy.spec.mutations", "patchType"),
    ] {
        let explained = node.kubectl(&["explain", path]).fine().out;
        let explained = explained.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(explained.contains(text), "{path}: {explained}");
    }

    node.kubectl(&["create", "namespace", "team"]).says("namespace/team created");
    let secret = ["create", "secret", "generic", "s", "--from-literal=k=v3ry-secret", "-n", "team"];
    node.kubectl(&secret).says("secret/s created");
    let row = node.kubectl(&["get", "secret", "s", "-n", "team", "--no-headers"]).fine();
    assert_eq!(row.rows()[0][..3], ["s", "Opaque", "1"]);
    node.kubectl(&["get", "secret", "s", "-n", "team", "-o", "jsonpath={.data.k}"]).says("djNyeS1zZWNyZXQ=");
    node.kubectl(&["create", "configmap", "c", "-n", "nowhere", "--from-literal=a=1"])
        .refused("namespaces \"nowhere\" not found");
    node.kubectl(&["delete", "namespace", "team"]).says("namespace \"team\" deleted");
    node.kubectl(&["get", "ns", "team"]).refused("(NotFound)");
    node.kubectl(&["get", "secret", "s", "-n", "team"]).refused("(NotFound)");
    let version = node.kubectl(&["version"]).fine();
    assert!(version.out.contains("Server Version: v1.33.0+nodefold"), "{}", version.out);
    let dry = node.file("map.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: d}, data: {a: '1'}}");
    node.kubectl(&["create", "-f", &dry, "--dry-run=server"]).says("configmap/d created (server dry run)");
    node.kubectl(&["get", "cm", "d"]).refused("(NotFound)");
    let strict = node.file("bad.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: d}, dada: {}}");
    node.kubectl(&["create", "-f", &strict]).refused("unknown field \"dada\"");

    // S13: the journal never held the secret's bytes.
    let journal = std::fs::read_dir(node.data().join("journal")).unwrap();
    for file in journal.flatten() {
        let bytes = std::fs::read(file.path()).unwrap();
        let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
        assert!(!holds(b"v3ry-secret") && !holds(b"djNyeS1zZWNyZXQ"), "{}", file.path().display());
    }
}

/// What kubectl sends in protobuf and in nothing else, and what it asks before it says that a kind is unknown.
#[test]
fn debugging_draining_and_kinds_that_nobody_serves() {
    let node = Node::start(&[]);
    let manifest = node.file("pod.yaml", POD);
    node.kubectl(&["create", "-f", &manifest]).says("pod/web created");
    running(&node, "web");

    let on_node = ["debug", "node/node", "--image=busybox:1.36", "--profile=general", "--attach=false"];
    let told = node.kubectl(&on_node).fine();
    assert!(told.out.starts_with("Creating debugging pod node-debugger-node-"), "{}", told.out);
    let copy = [
        "debug",
        "web",
        "--copy-to=copy",
        "--set-image=*=busybox:1.37",
        "--share-processes",
        "--profile=general",
    ];
    node.kubectl(&copy).fine();
    running(&node, "copy");
    let copied = node.kubectl(&["get", "pod", "copy", "-o", "json"]).fine().json();
    let (spec, app) = (&copied["spec"], &copied["spec"]["containers"][0]);
    assert_eq!(
        (&app["image"], &app["resources"]["requests"]["cpu"]),
        (&"busybox:1.37".into(), &"100m".into())
    );
    assert_eq!((&spec["shareProcessNamespace"], &spec["restartPolicy"]), (&true.into(), &"Always".into()));
    assert_eq!(app["command"][2], "echo hello; while true; do sleep 0.2; echo tick; done");

    node.kubectl(&["create", "quota", "q", "--hard=pods=10,requests.cpu=2"]).says("resourcequota/q created");
    let hard = ["get", "quota", "q", "-o", "jsonpath={.spec.hard}"];
    node.kubectl(&hard).says(r#"{"pods":"10","requests.cpu":"2"}"#);

    let information = node.kubectl(&["cluster-info"]).fine();
    assert!(information.out.contains("control plane is running at"), "{}", information.out);
    let unknown = node.file(
        "deployment.yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n",
    );
    node.kubectl(&["create", "-f", &unknown])
        .refused("no matches for kind \"Deployment\" in version \"apps/v1\"");
    node.kubectl(&["get", "cm", "beside", "-o", "name"]).says("configmap/beside");

    let hook = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: h}\nwebhooks:\n\
                - {name: w.example.com, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {url: 'https://w.example.com'}, \
                rules: [{apiGroups: [''], apiVersions: [v1], operations: [create], resources: [pods]}]}\n";
    let hook = node.file("hook.yaml", hook);
    node.kubectl(&["create", "-f", &hook]).refused(
        "webhooks[0].rules[0].operations[0]: Unsupported value: \"create\": supported values: \"*\", \"CREATE\"",
    );

    let drained = node.kubectl(&["drain", "node", "--force", "--timeout=60s"]);
    assert!(drained.ok && drained.out.contains("pod/web deleted"), "{drained:#?}");
    node.kubectl(&["get", "pods", "-o", "name"]).says("");
}
