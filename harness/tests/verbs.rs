//! Every verb of a scenario file does in a whole run what its description says.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use nodefold_harness::{Nobody, Outcome, RunOptions, Scenario, Verdict, run};

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
fn a_restart_counts_once_and_not_before_it_runs() {
    passes(&format!(
        "{POD}
- fail: {{operation: create, pod: web, container: app, times: 2, kind: transient}}
- hold: {{operation: start, pod: web, container: app}}
- exit: {{pod: web, container: app, code: 3}}
- advance: 1m
- expect: {{pod: web, status: {{containerStatuses: [{{name: app, ready: false, restartCount: 0}}]}}}}
- release: {{operation: start, pod: web, container: app}}
- settle
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

#[test]
fn init_containers_run_one_by_one_until_the_story_ends_them() {
    passes(
        "
steps:
- create:
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec:
      terminationGracePeriodSeconds: 1
      initContainers:
      - {name: one, image: a}
      - {name: side, image: a, restartPolicy: Always}
      - {name: two, image: a}
      containers: [{name: app, image: a}]
- settle
- expect: {pod: web, status: {phase: Pending, initContainerStatuses: [{name: one, state: {running: {}}}, {name: two, state: {waiting: {reason: PodInitializing}}}]}}
- exit: {pod: web, container: one, code: 1}
- settle
- expect: {pod: web, status: {initContainerStatuses: [{name: one, restartCount: 1}]}}
- exit: {pod: web, container: one, code: 0}
- settle
- expect: {never: [create web/app]}
- exit: {pod: web, container: two, code: 0}
- settle
- expect: {pod: web, status: {phase: Running, containerStatuses: [{name: app, ready: true}], initContainerStatuses: [{name: side, ready: true, state: {running: {}}}]}}
- expect: {order: [start web/one, start web/one, start web/side, start web/two, start web/app]}
- mark: up
- crash: host
- settle: 2m
- exit: {pod: web, container: one, code: 0}
- settle
- exit: {pod: web, container: two, code: 0}
- settle
- expect: {pod: web, status: {phase: Running, containerStatuses: [{name: app, ready: true}]}}
- delete: {pod: web}
- settle
- expect: {order: [stop web/app, stop web/side]}
- expect: {pod: web, gone: true}
",
    );
}

#[test]
fn a_pod_that_never_restarts_ends() {
    for (codes, phase) in [([0, 0], "Succeeded"), ([0, 3], "Failed")] {
        passes(&format!(
            "
steps:
- create: {{apiVersion: v1, kind: Pod, metadata: {{name: job}}, spec: {{restartPolicy: Never, containers: [{{name: a, image: a}}, {{name: b, image: b}}]}}}}
- settle
- exit: {{pod: job, container: a, code: {}}}
- settle
- expect: {{pod: job, status: {{phase: Running}}}}
- exit: {{pod: job, container: b, code: {}}}
- settle
- expect: {{pod: job, status: {{phase: {phase}, conditions: [{{type: Ready, status: \"False\"}}]}}}}
- expect: {{pod: job, gone: false}}
- crash: agent
- settle
- expect: {{pod: job, status: {{phase: {phase}}}}}
- delete: {{pod: job}}
- settle
- expect: {{pod: job, gone: true}}
",
            codes[0], codes[1]
        ));
    }
}

#[test]
fn crash_back_off_doubles_and_settle_waits_for_what_is_due() {
    passes(
        "
steps:
- create: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: a}]}}
- settle
- mark: up
- exit: {pod: web, container: app, code: 1}
- advance: 1s
- exit: {pod: web, container: app, code: 1}
- advance: 5s
- expect: {pod: web, status: {phase: Running, containerStatuses: [{name: app, state: {waiting: {reason: CrashLoopBackOff}}, restartCount: 1}]}}
- advance: 6s
- expect: {pod: web, status: {containerStatuses: [{name: app, ready: true, restartCount: 2}]}}
- exit: {pod: web, container: app, code: 1}
- settle: 5s
- expect: {pod: web, status: {containerStatuses: [{name: app, state: {waiting: {reason: CrashLoopBackOff}}}]}}
- settle: 1m
- expect: {pod: web, status: {containerStatuses: [{name: app, ready: true, restartCount: 3}]}}
",
    );
}

#[test]
fn a_name_that_comes_back_with_another_source_waits_for_the_old_volume() {
    passes(
        "
steps:
- create: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {k: v}}
- create:
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec:
      terminationGracePeriodSeconds: 30
      containers:
      - {name: app, image: a}
      - {name: user, image: a, dynamicVolumePolicy: {restartPolicy: RestartContainer}, volumeMounts: [{name: v, mountPath: /v}]}
      volumes: [{name: v, emptyDir: {}}]
- settle
- mark: up
- hold: {operation: stop, pod: web, container: user}
- dynamic: {pod: web, patch: {spec: {volumes: [{name: v, $patch: delete}, {name: w, configMap: {name: c}}], containers: [{name: user, volumeMounts: [{mountPath: /v, name: w}]}]}}}
- expect: {accepted: true}
- settle
- expect: {pod: web, retained: [v]}
- expect: {pod: web, status: {volumeStatuses: [{name: v, hostPhase: Unmounting}, {name: w, hostPhase: HostMounted}]}}
- expect: {host: {pod: web, present: [v, w]}}
- crash: host
- settle: 3m
- release: {operation: stop, pod: web, container: user}
- settle: 3m
- expect: {pod: web, retained: []}
- expect: {host: {pod: web, present: [w], absent: [v]}}
- expect: {pod: web, container: user, newInstance: up}
- expect: {pod: web, status: {containerStatuses: [{name: user, ready: true, volumeMounts: [{name: w, mountPath: /v}]}, {name: app, ready: true}]}}
",
    );
}

#[test]
fn a_resize_that_does_not_fit_is_deferred_and_one_that_never_can_is_infeasible() {
    passes(
        "
node: {allocatable: {cpu: \"2\", memory: 4Gi}}
steps:
- create: {apiVersion: v1, kind: Pod, metadata: {name: hog}, spec: {terminationGracePeriodSeconds: 1, containers: [{name: app, image: a, resources: {requests: {cpu: 1}}}]}}
- create: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: app, image: a, resources: {requests: {cpu: 500m}}}]}}
- settle
- mark: up
- resize: {pod: web, patch: {spec: {containers: [{name: app, resources: {requests: {cpu: 1500m}}}]}}}
- settle
- expect: {pod: web, status: {conditions: [{type: PodResizePending, status: \"True\", reason: Deferred}]}}
- resize: {pod: web, patch: {spec: {containers: [{name: app, resources: {requests: {cpu: 3}}}]}}}
- settle
- expect: {pod: web, status: {conditions: [{type: PodResizePending, status: \"True\", reason: Infeasible}]}}
- resize: {pod: web, patch: {spec: {containers: [{name: app, resources: {requests: {cpu: 1500m}}}]}}}
- delete: {pod: hog}
- settle
- expect: {pod: web, absent: {conditions: [PodResizePending]}}
- expect: {pod: web, container: app, sameInstance: up}
- expect: {order: [stop hog/app, resize web/app]}
",
    );
}

#[test]
fn a_force_delete_takes_the_object_at_once_and_the_node_follows() {
    passes(&format!(
        "{POD}
- hold: {{operation: stop, pod: web, container: app}}
- delete: {{pod: web, force: true}}
- advance: 5s
- expect: {{pod: web, gone: false}}
- expect: {{host: {{pod: web, present: [disk, memory]}}}}
- release: {{operation: stop, pod: web, container: app}}
- settle
- expect: {{pod: web, gone: true}}
- expect: {{host: {{pod: web, absent: [disk, memory]}}}}
"
    ));
}

#[test]
fn a_grace_that_shrinks_while_a_hook_runs_is_kept() {
    passes(
        "
steps:
- create:
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec:
      terminationGracePeriodSeconds: 600
      containers: [{name: app, image: a, lifecycle: {preStop: {sleep: {seconds: 500}}}}]
- settle
- mark: up
- delete: {pod: web}
- advance: 10s
- expect: {never: [stop web/app]}
- delete: {pod: web, gracePeriodSeconds: 3}
- advance: 10s
- expect: {pod: web, gone: true}
",
    );
}

#[test]
fn operations_of_each_kind_hang_until_released_and_outlive_the_agent() {
    for (operation, target) in [
        ("mount", "volume: v"),
        ("sandbox", ""),
        ("pull", "container: app"),
        ("create", "container: app"),
        ("start", "container: app"),
    ] {
        let comma = if target.is_empty() { "" } else { ", " };
        passes(&format!(
            "
steps:
- hold: {{operation: {operation}, pod: web{comma}{target}}}
- create:
    apiVersion: v1
    kind: Pod
    metadata: {{name: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{{name: app, image: a, volumeMounts: [{{name: v, mountPath: /v}}]}}]
      volumes: [{{name: v, emptyDir: {{}}}}]
- settle
- expect: {{pod: web, status: {{phase: Pending}}}}
- crash: agent
- settle
- expect: {{pod: web, status: {{phase: Pending}}}}
- release: {{operation: {operation}, pod: web{comma}{target}}}
- settle
- expect: {{pod: web, status: {{phase: Running, containerStatuses: [{{name: app, ready: true, restartCount: 0}}]}}}}
- hold: {{operation: {operation}, pod: web{comma}{target}}}
- delete: {{pod: web}}
- settle
- expect: {{pod: web, gone: true}}
"
        ));
    }
    for (operation, target) in [("unmount", "volume: disk"), ("stop", "container: app")] {
        passes(&format!(
            "{POD}
- hold: {{operation: {operation}, pod: web, {target}}}
- delete: {{pod: web}}
- settle
- crash: agent
- settle
- expect: {{pod: web, gone: false}}
- expect: {{host: {{pod: web, present: [disk]}}}}
- release: {{operation: {operation}, pod: web, {target}}}
- settle: 3m
- expect: {{pod: web, gone: true}}
"
        ));
    }
}
