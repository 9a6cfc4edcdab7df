//! `nodefold admit` as people start it, over `examples/admission`: who allows, who refuses, and with which exit status.
#![allow(clippy::expect_used, reason = "a test that can't go on fails")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const ORCHESTRATOR: &str = "system:serviceaccount:agents:orchestrator";

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/admission").join(name)
}

fn admit(policies: &Path, pod: &Path, request: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nodefold"))
        .arg("admit")
        .args([Path::new("--policies"), policies, Path::new("--pod"), pod, Path::new("--request"), request])
        .args(more)
        .output()
        .expect("start nodefold")
}

fn asked(policies: &str, request: &str, more: &[&str]) -> Output {
    admit(&example(policies), &example("pod.yaml"), &example(request), more)
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("an exit status")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

fn as_json(output: &Output) -> Value {
    let text = stdout(output);
    assert_eq!(text.lines().count(), 1, "one object: {text}");
    serde_json::from_str(&text).expect("JSON")
}

/// (stage, who, verdict) of each step.
fn steps(told: &Value) -> Vec<(String, String, String)> {
    let text = |step: &Value, field: &str| step[field].as_str().unwrap_or_default().to_owned();
    let steps = told["steps"].as_array().cloned().unwrap_or_default();
    steps.iter().map(|s| (text(s, "stage"), text(s, "who"), text(s, "verdict"))).collect()
}

#[test]
fn each_example_ends_as_its_readme_says() {
    let by = ["--as", ORCHESTRATOR];
    for (policies, request, by, ending, code, told) in [
        ("cluster", "add-worker.yaml", &by[..], 0, 200, ""),
        (
            "cluster",
            "add-worker.yaml",
            &["--as", "maria"],
            1,
            403,
            "User \"maria\" cannot patch resource \"pods/dynamic\"",
        ),
        ("cluster", "add-root.yaml", &by, 1, 403, "violates PodSecurity \"restricted:latest\""),
        ("cluster", "add-foreign-image.yaml", &by, 1, 403, "docker.io/library/python:3.13"),
        ("cluster", "remove-all.yaml", &by, 1, 422, "spec.containers[0].ports[0].hostPort"),
        ("before-upgrade", "add-worker.yaml", &[], 1, 403, "policy-engine-resource-validating"),
    ] {
        let plain = asked(policies, request, by);
        assert_eq!(status(&plain), ending, "{policies} {request}: {}{}", stdout(&plain), stderr(&plain));
        assert!(stdout(&plain).contains(told), "{}", stdout(&plain));
        let mut more = by.to_vec();
        more.push("--json");
        let json = asked(policies, request, &more);
        assert_eq!(status(&json), ending);
        let object = as_json(&json);
        assert_eq!(object["code"], code, "{policies} {request}");
        assert_eq!(object["allowed"], ending == 0);
    }
}

#[test]
fn an_allowed_request_tells_who_was_asked_and_what_was_filled_in() {
    let told = as_json(&asked("cluster", "add-worker.yaml", &["--as", ORCHESTRATOR, "--json"]));
    let steps = steps(&told);
    let has = |stage: &str, who: &str, verdict: &str| {
        steps.iter().any(|(s, w, v)| s == stage && w.starts_with(who) && v == verdict)
    };
    assert!(has("authorization", "RoleBinding \"agents/orchestrator-spawns\"", "passed"));
    assert!(has("coverage", "ValidatingWebhookConfiguration \"image-scanner\"", "passed"));
    assert!(has("coverage", "ValidatingAdmissionPolicy \"allowed-registries\"", "passed"));
    assert!(has("mutation", "LimitRanger", "changed"));
    for rule in ["P2", "C4", "C12", "W1", "S5", "S32"] {
        assert!(has("validation", rule, "passed"), "{rule}");
    }
    for plugin in
        ["LimitRanger", "PodSecurity", "PodResizeValidator", "NodeDeclaredFeatureValidator", "ResourceQuota"]
    {
        assert!(has("admission", plugin, "passed"), "{plugin}");
    }
}

#[test]
fn bindings_that_give_dynamic_away_unnamed_are_pointed_out() {
    let dir = TempDir::new().expect("a temporary directory");
    let roles = "kind: ClusterRole\nmetadata: {name: ops}\nrules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n---\n\
        kind: ClusterRoleBinding\nmetadata: {name: ops-team}\nroleRef: {kind: ClusterRole, name: ops}\n\
        subjects: [{kind: Group, name: ops}]\n";
    std::fs::write(dir.path().join("roles.yaml"), roles).expect("write a file");
    let ask = |more: &[&str]| admit(dir.path(), &example("pod.yaml"), &example("add-worker.yaml"), more);
    let output = ask(&["--as", "ann", "--as-group", "ops"]);
    assert_eq!(status(&output), 0, "{}", stdout(&output));
    let told = "ClusterRoleBinding \"ops-team\" of ClusterRole \"ops\" gives pods/dynamic away";
    assert!(stdout(&output).contains(told), "{}", stdout(&output));
    assert_eq!(status(&ask(&["--as", "ann"])), 1);
}

#[test]
fn a_refusal_lists_every_broken_rule_with_its_field() {
    let told = as_json(&asked("cluster", "remove-all.yaml", &["--as", ORCHESTRATOR, "--json"]));
    let broken = told["brokenRules"].as_array().expect("a list");
    let rules: Vec<&str> = broken.iter().filter_map(|b| b["rule"].as_str()).collect();
    assert_eq!(rules, ["S11", "C4", "C9", "C12", "M12"]);
    assert_eq!(told["status"]["details"]["kind"], "Pod");
    let held = steps(&told).iter().filter(|(s, _, v)| s == "validation" && v == "passed").count();
    let text = stdout(&asked("cluster", "remove-all.yaml", &[]));
    assert!(text.contains(&format!("{held} numbered rules hold")), "{text}");
}

#[test]
fn a_whole_pod_replaces_and_a_stale_version_conflicts() {
    let dir = TempDir::new().expect("a temporary directory");
    let write = |name: &str, text: String| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("write a file");
        path
    };
    let stored = std::fs::read_to_string(example("pod.yaml")).expect("the example");
    let relabelled = write("whole.yaml", stored.replace("{app: warm-pool}", "{app: warm-pool, tier: gold}"));
    let ask = |request: &Path, more: &[&str]| admit(&example("cluster"), &example("pod.yaml"), request, more);
    let same = ask(&relabelled, &["--json"]);
    assert_eq!((status(&same), as_json(&same)["code"].as_i64()), (0, Some(200)), "{}", stdout(&same));
    let stale = write("stale.yaml", stored.replace("\"88131\"", "\"88000\""));
    let conflict = ask(&stale, &["--json"]);
    assert_eq!((status(&conflict), as_json(&conflict)["code"].as_i64()), (1, Some(409)));
    let refused =
        steps(&as_json(&conflict)).into_iter().filter(|(_, _, v)| v == "refused").collect::<Vec<_>>();
    assert_eq!(refused, [("version".to_owned(), String::new(), "refused".to_owned())]);
    let unknown = write("unknown.yaml", "spec: {containers: [{name: pause, imge: x}]}".to_owned());
    assert_eq!(as_json(&ask(&unknown, &["--json"]))["code"], 400);
}

#[test]
fn unusable_input_is_told_with_its_place_and_a_remedy() {
    let dir = TempDir::new().expect("a temporary directory");
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).expect("write a file");
        path
    };
    let (cluster, pod, patch) = (example("cluster"), example("pod.yaml"), example("add-worker.yaml"));
    let nowhere = dir.path().join("nowhere");
    let broken = write("broken.yaml", "a: [1\n");
    let two = write("two.yaml", "a: 1\n---\nb: 2\n");
    let word = write("word.yaml", "no\n");
    let service = write("service.yaml", "{apiVersion: v1, kind: Service, metadata: {name: s}}\n");
    for (policies, pod, request, told) in [
        (&nowhere, &pod, &patch, "name a directory of manifests"),
        (&cluster, &nowhere, &patch, "name a file of YAML or JSON"),
        (&cluster, &service, &patch, "kubectl get pod NAME -o yaml"),
        (&cluster, &pod, &broken, "broken.yaml:"),
        (&cluster, &pod, &two, "exactly one document"),
        (&cluster, &pod, &word, "this is no request"),
    ] {
        let output = admit(policies, pod, request, &[]);
        assert_eq!(status(&output), 2, "{told}: {}{}", stdout(&output), stderr(&output));
        assert!(stderr(&output).contains(told), "{told}: {}", stderr(&output));
        assert_eq!(stdout(&output), "");
    }
    let bad = dir.path().join("bad");
    std::fs::create_dir(&bad).expect("a directory");
    std::fs::write(bad.join("a.yaml"), "metadata: {name: x}\n").expect("write a file");
    let output = admit(&bad, &pod, &patch, &[]);
    assert_eq!(status(&output), 2);
    assert!(stderr(&output).contains("a.yaml: a document has no kind"), "{}", stderr(&output));
}

/// A manifest that says what no server would take: a field that nobody knows can't be used; a rule that can't be read closes the gate; the
/// rest is told.
#[test]
fn a_handler_that_no_server_would_store_is_told() {
    let dir = TempDir::new().expect("a temporary directory");
    let (pod, patch) = (example("pod.yaml"), example("add-worker.yaml"));
    let asked = |name: &str, text: &str| {
        let policies = dir.path().join(name);
        std::fs::create_dir(&policies).expect("a directory");
        std::fs::write(policies.join("a.yaml"), text).expect("write a file");
        admit(&policies, &pod, &patch, &[])
    };
    let hook = |rule: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {{name: h}}\nwebhooks:\n\
             - {{name: w.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {{url: 'https://w.example.com'}},\n   \
             rules: [{{apiGroups: [''], apiVersions: [v1], {rule}}}]}}\n"
        )
    };
    let misspelt = asked("misspelt", &hook("operations: [CREATE], resource: [pods]"));
    assert_eq!(status(&misspelt), 2);
    let told = "a.yaml:6:71: webhooks[0].rules[0].resource: unknown field \"resource\" (did you mean \"resources\"?)";
    assert!(stderr(&misspelt).contains(told), "{}", stderr(&misspelt));

    let lower = asked("lower", &hook("operations: [create], resources: [pods]"));
    assert_eq!(status(&lower), 1);
    assert!(
        stdout(&lower).contains("webhooks[0].rules[0].operations[0]: Unsupported value: \"create\""),
        "{}",
        stdout(&lower)
    );
    assert!(
        stdout(&lower).contains("it can't be read (rules[0].operations[0] is \"create\""),
        "{}",
        stdout(&lower)
    );

    // As `kubectl get --raw` prints a list: its items say no kind.
    let raw = asked(
        "raw",
        r#"{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfigurationList", "items": [{"metadata":
        {"name": "h"}, "webhooks": [{"name": "w.example.com", "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations":
        ["CREATE"], "resources": ["pods"]}]}]}]}"#,
    );
    assert_eq!(status(&raw), 1);
    assert!(stdout(&raw).contains("its rules do not name pods/dynamic"), "{}", stdout(&raw));
}
