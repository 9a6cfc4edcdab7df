//! Every verb of a scenario file does in a whole run what its description says.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use nodefold_core::Node;
use nodefold_harness::log::{API_STREAM, Journalled};
use nodefold_harness::{Nobody, Outcome, RunOptions, Scenario, Verdict, node_config, run};
use nodefold_journal::{Memory, Options, verify};

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "story.yaml").unwrap_or_else(|e| panic!("{e}"))
}

fn play(text: &str) -> Outcome {
    run(&scenario(text), RunOptions::default(), &mut Nobody)
}

fn passes(text: &str) -> Outcome {
    let outcome = play(text);
    if let Verdict::ExpectationFailed { line, expected, actual, explanation, .. } = &outcome.verdict {
        let said = text.lines().nth(line - 1).unwrap_or("");
        panic!("line {line}: {said}\nexpected: {expected}\nactual: {actual}\nwhy: {explanation}");
    }
    assert_eq!(outcome.verdict, Verdict::Passed);
    outcome
}

const POD: &str = "
steps:
- create:
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec:
      terminationGracePeriodSeconds: 5
      containers:
      - name: app
        image: a:1
        resources: {requests: {cpu: 500m}}
        resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]
        readinessProbe: {exec: {command: [\"true\"]}, initialDelaySeconds: 3}
        livenessProbe: {exec: {command: [\"true\"]}}
        volumeMounts: [{name: disk, mountPath: /d}, {name: memory, mountPath: /m}]
      volumes: [{name: disk, emptyDir: {}}, {name: memory, emptyDir: {medium: Memory}}]
- settle
- expect: {pod: web, status: {phase: Running, containerStatuses: [{name: app, ready: true, restartCount: 0}]}}
- mark: up
";

#[test]
fn a_probe_that_fails_makes_unready_or_restarts() {
    passes(&format!(
        "{POD}
- probe: {{pod: web, container: app, kind: readiness, result: failure}}
- advance: 1s
- expect: {{pod: web, status: {{containerStatuses: [{{name: app, ready: false}}], conditions: [{{type: Ready, status: \"False\"}}]}}}}
- probe: {{pod: web, container: app, kind: readiness, result: success}}
- advance: 1s
- expect: {{pod: web, status: {{containerStatuses: [{{name: app, ready: true}}]}}}}
- expect: {{pod: web, container: app, sameInstance: up}}
- probe: {{pod: web, container: app, kind: liveness, result: failure}}
- settle
- expect: {{pod: web, container: app, newInstance: up}}
- expect: {{events: [{{reason: Unhealthy}}, {{reason: Killing, container: app}}]}}
- expect: {{pod: web, status: {{containerStatuses: [{{name: app, ready: true, restartCount: 1}}]}}}}
"
    ));
}

#[test]
fn processes_and_mounts_outlive_the_agent() {
    passes(&format!(
        "{POD}
- crash: agent
- expect: {{host: {{pod: web, present: [disk, memory]}}}}
- settle
- expect: {{pod: web, container: app, sameInstance: up}}
- expect: {{never: [stop web/app, unmount web/disk, unmount web/memory]}}
- expect: {{pod: web, status: {{containerStatuses: [{{name: app, ready: true, restartCount: 0}}]}}}}
- crash: agent
- exit: {{pod: web, container: app, code: 3}}
- settle
- expect: {{pod: web, container: app, newInstance: up}}
- expect: {{pod: web, status: {{containerStatuses: [{{name: app, restartCount: 1, lastState: {{terminated: {{exitCode: 3}}}}}}]}}}}
"
    ));
}

#[test]
fn only_the_disk_outlives_the_host() {
    passes(&format!(
        "{POD}
- crash: host
- expect: {{host: {{pod: web, present: [disk], absent: [memory]}}}}
- settle: 2m
- expect: {{pod: web, container: app, newInstance: up}}
- expect: {{host: {{pod: web, present: [disk, memory]}}}}
- expect: {{order: [mount web/memory, create web/app, start web/app]}}
- expect: {{pod: web, status: {{phase: Running, containerStatuses: [{{name: app, ready: true, restartCount: 1}}]}}}}
- delete: {{pod: web}}
- settle
- expect: {{pod: web, gone: true}}
"
    ));
}

#[test]
fn a_pod_that_was_deleted_while_the_agent_was_down_goes() {
    passes(&format!(
        "{POD}
- crash: agent
- delete: {{pod: web}}
- settle
- expect: {{pod: web, gone: true}}
- expect: {{order: [stop web/app, unmount web/disk]}}
"
    ));
    passes(&format!(
        "{POD}
- crash: agent
- delete: {{pod: web, gracePeriodSeconds: 0, force: true}}
- settle: 2m
- expect: {{pod: web, gone: true}}
"
    ));
}

#[test]
fn images_that_are_not_there_can_be_put_there() {
    passes(
        "
node: {images: [a:1]}
steps:
- create: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: a:1}, {name: other, image: b:1}]}}
- advance: 5s
- expect: {pod: web, status: {containerStatuses: [{name: app, state: {running: {}}}, {name: other, state: {waiting: {reason: ImagePullBackOff}}}]}}
- set: {images: [a:1, b:1]}
- settle
- expect: {pod: web, status: {phase: Running, containerStatuses: [{name: other, ready: true, restartCount: 0}]}}
",
    );
    passes(
        "
node: {images: []}
steps:
- create: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: a:1, imagePullPolicy: Never}]}}
- advance: 5s
- expect: {pod: web, status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ErrImageNeverPull}}}]}}
",
    );
}

#[test]
fn a_held_watch_keeps_the_agent_in_the_dark_and_a_failed_one_is_listed_anew() {
    passes(&format!(
        "{POD}
- hold: {{operation: watch, pod: web}}
- dynamic: {{pod: web, patch: {{spec: {{containers: [{{name: x, image: x}}]}}}}}}
- settle
- expect: {{never: [create web/x]}}
- dynamic: {{pod: web, patch: {{spec: {{containers: [{{name: x, $patch: delete}}, {{name: y, image: y}}]}}}}}}
- expect: {{accepted: true}}
- release: {{operation: watch, pod: web}}
- settle
- expect: {{order: [create web/y, start web/y]}}
- fail: {{operation: watch, pod: web, times: 1}}
- delete: {{pod: web}}
- advance: 500ms
- expect: {{never: [stop web/app]}}
- settle
- expect: {{pod: web, gone: true}}
"
    ));
}

#[test]
fn a_held_status_write_shows_the_old_status() {
    passes(&format!(
        "{POD}
- hold: {{operation: status, pod: web}}
- probe: {{pod: web, container: app, kind: readiness, result: failure}}
- settle
- expect: {{pod: web, status: {{containerStatuses: [{{name: app, ready: true}}]}}}}
- release: {{operation: status, pod: web}}
- settle
- expect: {{pod: web, status: {{containerStatuses: [{{name: app, ready: false}}]}}}}
- fail: {{operation: status, pod: web, times: 2, error: conflict, kind: transient}}
- probe: {{pod: web, container: app, kind: readiness, result: success}}
- settle
- expect: {{pod: web, status: {{containerStatuses: [{{name: app, ready: true}}]}}}}
"
    ));
}

/// Each operation goes wrong twice, in each of the three ways, and the story ends well all the same.
#[test]
fn whatever_fails_is_tried_again() {
    for kind in ["final", "transient", "uncertain"] {
        for operation in ["mount", "pull", "sandbox", "create", "start"] {
            passes(&format!(
                "
steps:
- fail: {{operation: {operation}, pod: web, times: 2, error: no luck, kind: {kind}}}
- create:
    apiVersion: v1
    kind: Pod
    metadata: {{name: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{{name: app, image: a, volumeMounts: [{{name: v, mountPath: /v}}]}}]
      volumes: [{{name: v, emptyDir: {{}}}}]
- settle: 6m
- expect: {{pod: web, status: {{phase: Running, containerStatuses: [{{name: app, ready: true}}], volumeStatuses: [{{name: v, hostPhase: HostMounted}}]}}}}
- delete: {{pod: web}}
- settle: 6m
- expect: {{pod: web, gone: true}}
"
            ));
        }
        for operation in ["unmount", "stop", "remove"] {
            passes(&format!(
                "{POD}
- fail: {{operation: {operation}, pod: web, times: 2, error: no luck, kind: {kind}}}
- delete: {{pod: web}}
- settle: 6m
- expect: {{pod: web, gone: true}}
"
            ));
        }
        passes(&format!(
            "{POD}
- fail: {{operation: resize, pod: web, times: 2, error: no luck, kind: {kind}}}
- resize: {{pod: web, patch: {{spec: {{containers: [{{name: app, resources: {{requests: {{cpu: 700m}}}}}}]}}}}}}
- expect: {{accepted: true}}
- settle: 6m
- expect: {{pod: web, allocated: {{containers: [{{name: app, resources: {{requests: {{cpu: 700m}}}}}}]}}}}
- expect: {{pod: web, status: {{containerStatuses: [{{name: app, resources: {{requests: {{cpu: 700m}}}}}}]}}}}
- expect: {{pod: web, absent: {{conditions: [PodResizePending, PodResizeInProgress]}}}}
- expect: {{pod: web, container: app, sameInstance: up}}
"
        ));
    }
}

#[test]
fn a_failed_refresh_leaves_the_volume_and_is_tried_again() {
    passes(
        "
steps:
- create: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {k: v}}
- create:
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec:
      containers: [{name: app, image: a, volumeMounts: [{name: v, mountPath: /v}]}]
      volumes: [{name: v, configMap: {name: c}}]
- settle
- mark: up
- fail: {operation: refresh, pod: web, volume: v, times: 1, error: no luck}
- update: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {k: w}}
- settle: 3m
- expect: {order: [refresh web/v, refresh web/v]}
- expect: {host: {pod: web, present: [v]}}
- expect: {pod: web, container: app, sameInstance: up}
",
    );
}

#[test]
fn an_ephemeral_container_runs_and_ends() {
    passes(&format!(
        "{POD}
- ephemeral: {{pod: web, patch: {{spec: {{ephemeralContainers: [{{name: debug, image: d:1}}]}}}}}}
- expect: {{accepted: true}}
- settle
- expect: {{pod: web, status: {{ephemeralContainerStatuses: [{{name: debug, state: {{running: {{}}}}}}]}}}}
- exit: {{pod: web, container: debug, code: 0}}
- settle
- expect: {{pod: web, status: {{ephemeralContainerStatuses: [{{name: debug, state: {{terminated: {{exitCode: 0}}}}}}]}}}}
- expect: {{pod: web, container: app, sameInstance: up}}
"
    ));
}

#[test]
fn a_signal_shows_in_the_status() {
    passes(&format!(
        "{POD}
- exit: {{pod: web, container: app, signal: KILL}}
- settle
- expect: {{pod: web, status: {{containerStatuses: [{{name: app, restartCount: 1, lastState: {{terminated: {{exitCode: 137, signal: 9, reason: Error}}}}}}]}}}}
"
    ));
}

#[test]
fn labels_and_allocatable_decide_admission_when_they_change() {
    passes(
        "
node: {allocatable: {cpu: \"1\", pods: \"10\"}, labels: {zone: a}}
steps:
- create: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeSelector: {zone: b}, containers: [{name: app, image: a}]}}
- settle
- expect: {pod: a, status: {phase: Failed, reason: NodeAffinity}}
- set: {labels: {zone: b}}
- settle
- create: {apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {nodeSelector: {zone: b}, containers: [{name: app, image: a}]}}
- settle
- expect: {pod: b, status: {phase: Running}}
- create: {apiVersion: v1, kind: Pod, metadata: {name: c}, spec: {containers: [{name: app, image: a, resources: {requests: {cpu: 2}}}]}}
- settle
- expect: {pod: c, status: {phase: Failed, reason: OutOfcpu}}
- set: {allocatable: {cpu: 4}}
- settle
- create: {apiVersion: v1, kind: Pod, metadata: {name: d}, spec: {containers: [{name: app, image: a, resources: {requests: {cpu: 2}}}]}}
- settle
- expect: {pod: d, status: {phase: Running}}
",
    );
}

#[test]
fn a_gate_that_is_off_refuses_dynamic_and_can_be_switched_on() {
    passes(
        "
node: {featureGates: {DynamicContainers: false}}
steps:
- create: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: a}]}}
- settle
- dynamic: {pod: web, patch: {spec: {containers: [{name: x, image: x}]}}}
- expect: {accepted: false}
- set: {featureGates: {DynamicContainers: true}}
- settle
- dynamic: {pod: web, patch: {spec: {containers: [{name: x, image: x}]}}}
- expect: {accepted: true}
- settle
- expect: {pod: web, status: {containerStatuses: [{name: x, ready: true}]}}
",
    );
}

#[test]
fn a_static_pod_comes_from_a_file_and_goes_with_it() {
    let pod = |image: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: static, annotations: {{kubernetes.io/config.source: file}}}}, \
             spec: {{terminationGracePeriodSeconds: 1, containers: [{{name: app, image: \"{image}\"}}]}}}}"
        )
    };
    passes(&format!(
        "
steps:
- create: {}
- settle
- expect: {{pod: static, status: {{phase: Running, containerStatuses: [{{name: app, ready: true}}]}}}}
- mark: first
- crash: agent
- settle
- expect: {{pod: static, container: app, sameInstance: first}}
- update: {}
- settle
- expect: {{pod: static, container: app, newInstance: first}}
- expect: {{order: [stop static/app, start static/app]}}
- delete: {{pod: static}}
- settle
- expect: {{pod: static, gone: true}}
",
        pod("a:1"),
        pod("a:2")
    ));
}

#[test]
fn a_pod_in_another_namespace_is_another_pod() {
    passes(
        "
steps:
- create: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: a}]}}
- create: {apiVersion: v1, kind: Pod, metadata: {name: web, namespace: team}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: app, image: a}]}}
- settle
- mark: up
- delete: {pod: web, namespace: team}
- settle
- expect: {pod: team/web, gone: true}
- expect: {pod: web, gone: false}
- expect: {order: [stop team/web/app]}
- expect: {never: [stop default/web/app]}
",
    );
}

#[test]
fn a_name_that_comes_back_is_another_instance() {
    passes(&format!(
        "{POD}
- delete: {{pod: web}}
- settle
- create: {{apiVersion: v1, kind: Pod, metadata: {{name: web}}, spec: {{containers: [{{name: app, image: a}}]}}}}
- settle
- expect: {{pod: web, container: app, newInstance: up}}
- expect: {{pod: web, gone: false}}
"
    ));
}

/// The journal of a run with a crash in it folds to the live digest, and holds no secret.
#[test]
fn a_journalled_run_is_the_same_run_and_verifies() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/secret-scrub.yaml");
    let text = std::fs::read_to_string(path).unwrap().replace("{k: v1}", "{k: a-very-secret-word}");
    let story = scenario(&text);
    let without = run(&story, RunOptions::default(), &mut Nobody);
    let memory = Memory::new();
    let options = Options { sync: false, compress: false, ..Options::default() };
    let log = Journalled::create(memory.storage(), options, &node_config(&story), [7; 32]).unwrap();
    let with = run(&story, RunOptions { log: Some(Box::new(log)), chooser: None }, &mut Nobody);
    assert_eq!(with.verdict, Verdict::Passed);
    assert_eq!(
        (with.digest, with.api_digest, with.counts),
        (without.digest, without.api_digest, without.counts)
    );
    let verified = verify::<Node>(&memory.storage()).unwrap();
    assert_eq!(verified.report.digest, with.digest);
    let names = memory.storage().list().unwrap();
    assert!(!names.is_empty());
    for name in names {
        let Some(bytes) = memory.bytes(&name) else { continue };
        for secret in ["a-very-secret-word", "YS12ZXJ5LXNlY3JldC13b3Jk"] {
            assert!(!bytes.windows(secret.len()).any(|w| w == secret.as_bytes()), "{name} holds the secret");
        }
        assert!(
            bytes.windows(API_STREAM.len()).any(|w| w == API_STREAM.as_bytes()) || !name.ends_with(".seg")
        );
    }
}
