//! Whole runs: the examples pass, each expectation form fails when it is wrong, and says why.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use super::*;
use crate::record::Nobody;

/// A pod with a container that may be restarted for its mounts, one that may not, and a volume.
const WEB: &str = "
name: t
node: {allocatable: {cpu: \"2\", memory: 4Gi, pods: \"110\"}}
steps:
- create: {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {k: v}}
- create:
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - name: app
        image: registry.local/busybox:1
        resources: {requests: {cpu: 500m}}
        dynamicVolumePolicy: {restartPolicy: RestartContainer}
        volumeMounts: [{name: sec, mountPath: /sec}]
      - {name: log, image: registry.local/busybox:1, resources: {requests: {cpu: 100m}}}
      volumes: [{name: sec, secret: {secretName: s}}]
- settle
- mark: up
";

fn play(steps: &str) -> Outcome {
    let scenario = Scenario::parse(&format!("{WEB}{steps}"), "t.yaml").unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, RunOptions::default(), &mut Nobody)
}

fn passes(steps: &str) {
    let outcome = play(steps);
    assert_eq!(outcome.verdict, Verdict::Passed, "{steps}");
}

/// Fails at the last step, and says all of these in its expected, actual or explanation.
fn misses(steps: &str, told: &[&str]) {
    match play(steps).verdict {
        Verdict::ExpectationFailed { expected, actual, explanation, .. } => {
            let all = format!("expected: {expected}\nactual: {actual}\nwhy: {explanation}");
            for part in told {
                assert!(all.contains(part), "{part:?} is not told by\n{all}");
            }
        }
        other => panic!("{steps} gave {other:?}"),
    }
}

fn example(name: &str) -> Outcome {
    let path = format!("{}/../examples/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let scenario = Scenario::parse(&text, &path).unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, RunOptions::default(), &mut Nobody)
}

/// One test for each example, so that a failing one is named.
macro_rules! examples {
    ($($test:ident: $name:literal),* $(,)?) => {$(
        #[test]
        fn $test() {
            let outcome = example($name);
            assert_eq!(outcome.verdict, Verdict::Passed);
            assert!(outcome.counts.facts > 0 && outcome.counts.expectations > 0);
        }
    )*};
}

examples! {
    atomic_transaction_passes: "atomic-transaction",
    missing_secret_passes: "missing-secret",
    rejections_passes: "rejections",
    secret_scrub_passes: "secret-scrub",
    sidecar_upgrade_passes: "sidecar-upgrade",
    slow_mount_passes: "slow-mount",
    warm_pod_passes: "warm-pod",
    workspace_swap_passes: "workspace-swap",
}

#[test]
fn two_runs_of_one_story_end_in_the_same_digests() {
    let (first, second) = (example("workspace-swap"), example("workspace-swap"));
    assert_eq!((first.digest, first.api_digest), (second.digest, second.api_digest));
    assert_eq!((first.counts, first.ended_at), (second.counts, second.ended_at));
}

#[test]
fn a_status_that_differs_is_told_by_its_path() {
    passes("- expect: {pod: web, status: {phase: Running, containerStatuses: [{name: app, ready: true}]}}\n");
    misses(
        "- expect: {pod: web, status: {containerStatuses: [{name: app, ready: false, restartCount: 3}]}}\n",
        &["containerStatuses[name=app].ready: expected false, is true", "restartCount: expected 3, is 0"],
    );
    misses("- expect: {pod: web, status: {containerStatuses: [{name: ap}]}}\n", &["there are: app, log"]);
    misses(
        "- expect: {pod: wbe, status: {phase: Running}}\n",
        &["there never was a pod default/wbe", "default/web"],
    );
}

#[test]
fn an_allocation_that_differs_is_told_by_its_path() {
    passes("- expect: {pod: web, allocated: {volumes: [{name: sec}], containers: [{name: app}]}}\n");
    misses(
        "- expect: {pod: web, allocated: {containers: [{name: app, image: \"registry.local/busybox:2\"}]}}\n",
        &["containers[name=app].image", "busybox:2", "busybox:1"],
    );
}

#[test]
fn retained_means_exactly_these() {
    passes("- expect: {pod: web, retained: []}\n");
    misses("- expect: {pod: web, retained: [sec]}\n", &["not retained: [\"sec\"]"]);
    let removal = "- hold: {operation: stop, pod: web, container: app}
- dynamic: {pod: web, patch: {spec: {volumes: [{name: sec, $patch: delete}], containers: [{name: app, $patch: delete}]}}}
- advance: 5s
";
    passes(&format!("{removal}- expect: {{pod: web, retained: [sec]}}\n"));
    misses(&format!("{removal}- expect: {{pod: web, retained: []}}\n"), &["retained beyond that: [\"sec\"]"]);
}

#[test]
fn an_entry_that_should_be_absent_is_shown() {
    passes(
        "- expect: {pod: web, absent: {containerStatuses: [x], volumeStatuses: [y], conditions: [PodResizePending]}}\n",
    );
    misses(
        "- expect: {pod: web, absent: {containerStatuses: [x], volumeStatuses: [sec]}}\n",
        &["volumeStatuses has an entry \"sec\"", "HostMounted"],
    );
}

#[test]
fn gone_means_gone_from_the_api_and_the_node() {
    passes("- delete: {pod: web}\n- settle\n- expect: {pod: web, gone: true}\n");
    passes("- expect: {pod: web, gone: false}\n");
    misses(
        "- expect: {pod: web, gone: true}\n",
        &["is in the API, phase \"Running\"", "container app", "volume sec"],
    );
    misses("- expect: {pod: never, gone: true}\n", &["never was"]);
    misses(
        "- hold: {operation: stop, pod: web, container: log}\n- delete: {pod: web}\n- advance: 1m\n- expect: {pod: web, gone: true}\n",
        &["still on the node", "container log", "held: [stop default/web log]"],
    );
}

#[test]
fn instances_are_compared_with_the_moment_of_the_mark() {
    passes("- expect: {pod: web, container: app, sameInstance: up}\n");
    misses(
        "- expect: {pod: web, container: app, newInstance: up}\n",
        &["no command was given about it since mark up"],
    );
    misses("- expect: {pod: web, container: app, sameInstance: down}\n", &["there is no mark down", "[up]"]);
    misses("- expect: {pod: web, container: ap, sameInstance: up}\n", &["never had an instance"]);
    let restart = "- exit: {pod: web, container: app, code: 1}\n- settle\n";
    passes(&format!("{restart}- expect: {{pod: web, container: app, newInstance: up}}\n"));
    misses(
        &format!("{restart}- expect: {{pod: web, container: app, sameInstance: up}}\n"),
        &["app#0.1", "app#0.0", "start web/app"],
    );
}

#[test]
fn a_refusal_has_exactly_the_expected_causes() {
    let request = "- dynamic: {pod: web, patch: {spec: {volumes: [{name: h, hostPath: {path: /}}]}}}\n";
    passes(&format!(
        "{request}- expect: {{rejected: [{{field: \"spec.volumes[0]\", reason: FieldValueForbidden}}]}}\n"
    ));
    passes(&format!("{request}- expect: {{accepted: false}}\n"));
    misses(
        &format!(
            "{request}- expect: {{rejected: [{{field: \"spec.volumes[0]\", reason: FieldValueInvalid}}]}}\n"
        ),
        &["the field is refused with FieldValueForbidden", "was not expected"],
    );
    misses(
        &format!("{request}- expect: {{rejected: []}}\n"),
        &["spec.volumes[0] FieldValueForbidden was not expected"],
    );
    misses(&format!("{request}- expect: {{accepted: true}}\n"), &["refused (422 Invalid)", "line 22"]);
    let harmless = "- dynamic: {pod: web, patch: {spec: {volumes: [{name: v, emptyDir: {}}]}}}\n";
    passes(&format!("{harmless}- expect: {{accepted: true}}\n"));
    misses(
        &format!("{harmless}- expect: {{rejected: [{{field: spec}}]}}\n"),
        &["actual: accepted", "broke no rule"],
    );
}

#[test]
fn a_refusal_that_nobody_expected_is_noted_with_what_is_missed_later() {
    misses(
        "- dynamic: {pod: web, patch: {spec: {containers: [{name: app, $patch: delete}, {name: log, $patch: delete}]}}}
- settle
- expect: {pod: web, allocated: {containers: []}}
",
        &["note: the request of line 22", "was refused"],
    );
}

#[test]
fn events_come_in_order_and_the_missing_one_is_told() {
    let missing = "- dynamic:
    pod: web
    patch: {spec: {volumes: [{name: n, secret: {secretName: none}}], containers: [{name: x, image: x, volumeMounts: [{name: n, mountPath: /n}]}]}}
- advance: 5s
";
    passes(&format!(
        "{missing}- expect: {{events: [{{reason: FailedMount, type: Warning, message: 'secret \"none\" not found'}}]}}\n"
    ));
    misses(
        &format!("{missing}- expect: {{events: [{{reason: FailedMount}}, {{reason: Nonsense}}]}}\n"),
        &[
            "{\"reason\":\"Nonsense\"} was not recorded after {\"reason\":\"FailedMount\"} since mark up",
            "FailedMount (",
        ],
    );
}

#[test]
fn the_host_shows_its_volumes() {
    passes("- expect: {host: {pod: web, present: [sec], absent: [other]}}\n");
    misses(
        "- expect: {host: {pod: web, present: [other], absent: [sec]}}\n",
        &["should not be: [\"sec\"]", "should be: [\"other\"]"],
    );
}

#[test]
fn an_order_that_is_not_kept_tells_what_came_instead() {
    let swap = "- dynamic:
    pod: web
    patch:
      spec:
        volumes: [{name: sec, $patch: delete}, {name: new, emptyDir: {}}]
        containers: [{name: app, volumeMounts: [{mountPath: /sec, name: new}]}]
- settle
";
    passes(&format!("{swap}- expect: {{order: [mount web/new, stop web/app, unmount web/sec]}}\n"));
    passes(&format!("{swap}- expect: {{never: [stop web/log]}}\n"));
    misses(
        &format!("{swap}- expect: {{order: [unmount web/sec, stop web/app]}}\n"),
        &[
            "`stop web/app` was not given after `unmount web/sec`",
            "it was given, but earlier",
            "what came instead",
        ],
    );
    misses(
        &format!("{swap}- expect: {{order: [mount web/nonsense]}}\n"),
        &["no such commands since mark up"],
    );
    misses(
        &format!("{swap}- expect: {{never: [stop web/app]}}\n"),
        &["`stop web/app` was given at", "must not be given since mark up"],
    );
}

#[test]
fn a_step_that_cannot_be_done_says_why() {
    misses("- exit: {pod: web, container: none, code: 1}\n", &["no container none was ever created"]);
    misses(
        "- release: {operation: stop, pod: web}\n",
        &["something held to release: stop default/web", "held: []"],
    );
    misses(
        "- hold: {operation: start, pod: web}\n- exit: {pod: web, container: log, code: 0}\n- advance: 1s\n- exit: {pod: web, container: log, code: 0}\n",
        &["does not run"],
    );
}

#[test]
fn a_world_that_never_settles_is_an_error_after_an_hour() {
    misses(
        "- fail: {operation: status, error: refused}\n- exit: {pod: web, container: log, code: 0}\n- settle: 2m\n",
        &["after one hour still waiting for"],
    );
}
