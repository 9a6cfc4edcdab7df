//! YAML and JSON as people write them, and as enemies do.
#![allow(clippy::expect_used)]

use nodefold_k8s::{
    FieldProblem, ProblemReason, check_fields, check_patch_fields, default_object, default_pod,
    parse_documents, pod_from_json,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn one(text: &str) -> Value {
    let mut documents = parse_documents(text, "t.yaml").expect("sound YAML");
    assert_eq!(documents.len(), 1, "{text}");
    documents.remove(0).value
}

/// Line, column and text of the error.
fn error(text: &str) -> (usize, usize, String) {
    let error = parse_documents(text, "t.yaml").expect_err("unsound YAML");
    assert!(!error.remedy.is_empty(), "{error} has no remedy");
    (error.line, error.column, error.to_string())
}

#[test]
fn plain_scalars_mean_what_kubernetes_reads() {
    for (text, value) in [
        ("yes", json!(true)),
        ("Off", json!(false)),
        ("y", json!("y")),
        ("~", Value::Null),
        ("0644", json!(420)),
        ("0o644", json!(420)),
        ("0x1F", json!(31)),
        ("1_000", json!(1000)),
        ("-7", json!(-7)),
        ("+7", json!(7)),
        ("089", json!(89)),
        ("1e3", json!(1000)),
        ("0.5", json!(0.5)),
        ("1.", json!(1)),
        ("1.5Gi", json!("1.5Gi")),
        ("500m", json!("500m")),
        ("--1", json!("--1")),
        ("0x-1", json!("0x-1")),
        ("1.2.3", json!("1.2.3")),
        ("10.0.0.1", json!("10.0.0.1")),
        ("2026-11-30T18:49:55Z", json!("2026-11-30T18:49:55Z")),
        ("18446744073709551615", json!(u64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("'yes'", json!("yes")),
        ("\"0644\"", json!("0644")),
        ("!!str 12", json!("12")),
        ("!!int 12", json!(12)),
    ] {
        assert_eq!(one(&format!("a: {text}"))["a"], value, "{text}");
    }
}

#[test]
fn json_is_read_too() {
    let text = "{\n\t\"a\": [1, \"x\\/\\u00e9\\ud83d\\ude00\", null],\n\t\"b\": {\"c\": true, \"\": 1e2}\n}";
    assert_eq!(one(text), json!({"a": [1, "x/é😀", null], "b": {"c": true, "": 100}}));
}

#[test]
fn documents_are_many_and_empty_ones_are_none() {
    let documents =
        parse_documents("---\n# nothing\n---\na: 1\n...\n---\nb: 2\n---\n", "t.yaml").expect("sound");
    let values: Vec<&Value> = documents.iter().map(|d| &d.value).collect();
    assert_eq!(values, [&json!({"a": 1}), &json!({"b": 2})]);
    assert_eq!(documents[1].spans.find("b").map(|p| (p.line, p.column)), Some((7, 1)));
    assert!(parse_documents("", "t.yaml").expect("sound").is_empty());
}

#[test]
fn anchors_aliases_and_merges_repeat_values() {
    let text = "base: &b\n  x: 1\n  y: 2\nother: &o {y: 3, z: 4}\nsame: *b\nmore:\n  <<: *b\n  y: 9\nboth:\n  <<: [*b, *o]\n";
    let documents = parse_documents(text, "t.yaml").expect("sound");
    let value = &documents[0].value;
    assert_eq!(value["same"], json!({"x": 1, "y": 2}));
    assert_eq!(value["more"], json!({"x": 1, "y": 9}));
    assert_eq!(value["both"], json!({"x": 1, "y": 2, "z": 4}));
    let line = |path: &str| documents[0].spans.find(path).map(|p| p.line);
    assert_eq!(
        (line("same"), line("same.x"), line("more.x"), line("both.z")),
        (Some(5), Some(2), Some(2), Some(4))
    );
}

#[test]
fn alias_bombs_are_refused() {
    let mut bomb = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for i in 1..30 {
        let repeated = vec![format!("*a{}", i - 1); 10].join(", ");
        bomb.push_str(&format!("a{i}: &a{i} [{repeated}]\n"));
    }
    let (line, _, text) = error(&bomb);
    assert!(line < 8, "noticed in line {line}");
    assert!(text.contains("aliases expanded"), "{text}");

    let long = format!("a: &a \"{}\"\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 20].join(", "));
    assert!(error(&long).2.contains("aliases expanded"));
    let (_, _, text) = error("a: &a [*a]\n");
    assert!(text.contains("alias"), "{text}");
}

#[test]
fn depth_is_limited() {
    let (_, _, text) = error(&"[".repeat(100_000));
    assert!(text.contains("levels of nesting"), "{text}");
    let (_, _, text) = error(&"- ".repeat(5000));
    assert!(text.contains("levels of nesting"), "{text}");
}

#[test]
fn errors_name_the_place() {
    assert_eq!(error("a: 1\nb: 2\na: 3\n").0, 3);
    assert!(error("a: 1\nb: 2\na: 3\n").2.contains("first in line 1"));
    assert_eq!((error("spec:\n  x: 1\n  x: 2\n").0, error("spec:\n  x: 1\n  x: 2\n").1), (3, 3));
    assert_eq!(error("a: [1, 2\nb: 3\n").0, 2);
    assert!(error("a:\n  yes: 1\n").2.starts_with("t.yaml:2:3: the key yes means true"));
    assert_eq!(error("a: .nan\n").0, 1);
    assert!(error("a: !secret x\n").2.contains("tag"));
    assert!(error("? [a]\n: b\n").2.contains("key"));
    assert!(error("a: *nowhere\n").0 == 1);
}

fn pod_problems(text: &str) -> Vec<(FieldProblem, String)> {
    let documents = parse_documents(text, "pod.yaml").expect("sound YAML");
    let document = &documents[0];
    let problems = check_fields(&document.value, "Pod");
    problems.into_iter().map(|p| (p.clone(), document.locate("pod.yaml", "", &p).to_string())).collect()
}

#[test]
fn unknown_fields_are_told_with_line_and_remedy() {
    let text = "\
apiVersion: v1
kind: Pod
metadata:
  name: web
  label: {a: b}
image: x
spec:
  restartpolicy: Never
  volumeMounts: []
  containers:
  - name: app
    image: busybox
    volumeMount: []
    nodeName: n
    frobnicate: 1
    dynamicVolumePolicy: {restartPolicy: RestartContainer, restart: x}
";
    let found: Vec<String> = pod_problems(text).into_iter().map(|(_, told)| told).collect();
    assert_eq!(
        found,
        [
            "pod.yaml:5:3: metadata.label: unknown field \"label\" (did you mean \"labels\"?)",
            "pod.yaml:6:1: image: unknown field \"image\" (remove it)",
            "pod.yaml:8:3: spec.restartpolicy: unknown field \"restartpolicy\" (did you mean \"restartPolicy\"?)",
            "pod.yaml:9:3: spec.volumeMounts: unknown field \"volumeMounts\" (it is a field of spec.containers[]: move it there)",
            "pod.yaml:13:5: spec.containers[0].volumeMount: unknown field \"volumeMount\" (did you mean \"volumeMounts\"?)",
            "pod.yaml:14:5: spec.containers[0].nodeName: unknown field \"nodeName\" (it is a field of spec: indent it less)",
            "pod.yaml:15:5: spec.containers[0].frobnicate: unknown field \"frobnicate\" (remove it)",
            "pod.yaml:16:60: spec.containers[0].dynamicVolumePolicy.restart: unknown field \"restart\" (remove it)",
        ]
    );
}

#[test]
fn wrong_types_are_told_with_line_and_remedy() {
    let text = "\
kind: Pod
metadata:
  name: 7
  labels: {on-call: yes, a.b/c: 2}
  creationTimestamp: yesterday
spec:
  hostNetwork: \"true\"
  priority: 9999999999
  terminationGracePeriodSeconds: 1.5
  containers:
    name: app
  volumes:
  - emptyDir: {sizeLimit: 5MB}
  - configMap: cfg
  - hostPath: {path: null}
";
    let found: Vec<String> = pod_problems(text).into_iter().map(|(_, told)| told).collect();
    let expected = [
        "pod.yaml:3:3: metadata.name: a string is needed, not a number (quote it: \"7\")",
        "pod.yaml:4:12: metadata.labels[on-call]: a string is needed, not a boolean (quote it: \"true\")",
        "pod.yaml:4:26: metadata.labels[a.b/c]: a string is needed, not a number (quote it: \"2\")",
        "pod.yaml:5:3: metadata.creationTimestamp: \"yesterday\" is no RFC 3339 timestamp",
        "pod.yaml:7:3: spec.hostNetwork: a boolean is needed, not a string (write true or false without quotes)",
        "pod.yaml:8:3: spec.priority: 9999999999 does not fit into 32 bits",
        "pod.yaml:9:3: spec.terminationGracePeriodSeconds: an integer is needed, not a number",
        "pod.yaml:10:3: spec.containers: a list is needed, not a mapping (begin each entry with \"- \")",
        "pod.yaml:13:16: spec.volumes[0].emptyDir.sizeLimit: \"5MB\" is no quantity",
        "pod.yaml:14:5: spec.volumes[1].configMap: a mapping is needed, not a string",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}

#[test]
fn kinds_and_versions_are_checked() {
    let reasons = |value: Value, kind: &str| {
        check_fields(&value, kind).into_iter().map(|p| (p.path, p.reason)).collect::<Vec<_>>()
    };
    assert_eq!(reasons(json!({"kind": "Pod", "apiVersion": "v1"}), "Pod"), []);
    assert_eq!(
        reasons(json!({"apiVersion": "apps/v1"}), "Pod"),
        [("apiVersion".into(), ProblemReason::NotSupported)]
    );
    let unknown = check_fields(&json!({"kind": "Sercet"}), "Sercet");
    assert_eq!((unknown[0].path.as_str(), unknown[0].remedy.as_str()), ("kind", "did you mean Secret?"));
    assert_eq!(check_fields(&json!([1]), "Pod")[0].reason, ProblemReason::WrongType);
}

#[test]
fn secrets_must_be_base64_and_are_not_repeated() {
    let problems = check_fields(&json!({"kind": "Secret", "data": {"k": "hunter2!"}}), "Secret");
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].path, "data[k]");
    assert!(!problems[0].to_string().contains("hunter2"), "{}", problems[0]);
    let problems = check_fields(&json!({"stringData": {"pin": 1234}}), "Secret");
    assert_eq!(problems[0].path, "stringData[pin]");
    assert!(!problems[0].to_string().contains("1234"), "{}", problems[0]);
    assert_eq!(check_fields(&json!({"data": {"k": "aHVudGVyMg=="}, "stringData": {"a": "b"}}), "Secret"), []);
    assert_eq!(check_fields(&json!({"data": {"k": "text"}, "binaryData": {"b": "MQ=="}}), "ConfigMap"), []);
}

#[test]
fn directives_belong_to_patches_only() {
    let patch = json!({"spec": {"$setElementOrder/volumes": [{"name": "a"}],
        "volumes": [{"name": "a", "$patch": "delete"}], "nodeSelector": {"$patch": "replace", "a": "b"}}});
    assert_eq!(check_patch_fields(&patch, "Pod"), []);
    assert_eq!(check_fields(&patch, "Pod").len(), 2);
}

#[test]
fn a_problem_inside_a_larger_document_is_located_there() {
    let text = "steps:\n- create:\n    kind: Pod\n    spec:\n      contaners: []\n";
    let documents = parse_documents(text, "story.yaml").expect("sound");
    let problems = check_fields(&documents[0].value["steps"][0]["create"], "Pod");
    let told = documents[0].locate("story.yaml", "steps[0].create", &problems[0]).to_string();
    assert!(told.starts_with("story.yaml:5:7: steps[0].create.spec.contaners: unknown field"), "{told}");
}

/// JSON values of any shape, with keys that mean something to the readers.
fn any_json() -> impl Strategy<Value = Value> {
    let keys = prop::sample::select(vec![
        "metadata",
        "name",
        "uid",
        "spec",
        "status",
        "phase",
        "containers",
        "initContainers",
        "image",
        "resources",
        "limits",
        "requests",
        "cpu",
        "memory",
        "volumes",
        "emptyDir",
        "secret",
        "projected",
        "sources",
        "ports",
        "hostPort",
        "hostNetwork",
        "env",
        "valueFrom",
        "fieldRef",
        "livenessProbe",
        "httpGet",
        "volumeMounts",
        "affinity",
        "nodeSelector",
        "stringData",
        "data",
        "kind",
        "$patch",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-zA-Z0-9.:/@-]{0,8}".prop_map(Value::from),
        prop::sample::select(vec!["Pod", "Secret", "Always", "1Gi", "-5", "2026-11-30T18:49:55Z"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn hostile_text_never_panics(text in ".{0,200}") {
        let _ = parse_documents(&text, "t.yaml");
    }

    #[test]
    fn hostile_yaml_never_panics(text in "([ \\-:{}\\[\\],&*!|>'\"#%\n\ta-c?]|<<|---|\\.\\.\\.){0,120}") {
        let _ = parse_documents(&text, "t.yaml");
    }

    #[test]
    fn json_text_means_itself(value in any_json()) {
        // Numbers with a fraction of zero are written as integers, as Go does: compare as text of such numbers.
        let read = parse_documents(&value.to_string(), "t.json").expect("JSON is YAML");
        let again = parse_documents(&read.first().map_or(Value::Null, |d| d.value.clone()).to_string(), "t.json")
            .expect("JSON is YAML");
        prop_assert_eq!(read.first().map(|d| &d.value), again.first().map(|d| &d.value));
        if !value.to_string().contains('.') && !value.to_string().contains('e') {
            prop_assert_eq!(read.first().map_or(&Value::Null, |d| &d.value), &value);
        }
    }

    #[test]
    fn hostile_objects_never_panic(mut value in any_json()) {
        for kind in ["Pod", "Secret", "ConfigMap", "Tree"] {
            let _ = check_fields(&value, kind);
            let _ = check_patch_fields(&value, kind);
        }
        let _ = nodefold_k8s::object_version(&value, &[0; 32]);
        default_object(&mut value);
        default_pod(&mut value);
        let once = value.clone();
        default_pod(&mut value);
        prop_assert_eq!(&once, &value, "defaulting twice is defaulting once");
        for source in [nodefold_core::ids::Source::Api, nodefold_core::ids::Source::File] {
            if let Ok(pod) = pod_from_json(&value, source) {
                let written = nodefold_k8s::pod_to_json(&pod, &pod.spec);
                let again = pod_from_json(&written, source);
                prop_assert_eq!(again.map(|p| p.spec), Ok(pod.spec));
            }
        }
    }
}
