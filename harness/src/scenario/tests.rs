//! The parser: what a file says is what runs, and what it says wrong is told with its line and a remedy.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use super::*;
use crate::world::{Ending, Operation};
use nodefold_core::event::{ErrorClass, ProbeKind};
use nodefold_core::resources::ResourceName;
use nodefold_core::time::Nanos;

fn parse(steps: &str) -> Scenario {
    let text = format!("name: t\nsteps:\n{steps}");
    match Scenario::parse(&text, "t.yaml") {
        Ok(scenario) => scenario,
        Err(error) => panic!("{error}"),
    }
}

/// The error of these steps, which begin on line 3.
fn refuse(steps: &str) -> String {
    let text = format!("name: t\nsteps:\n{steps}");
    match Scenario::parse(&text, "t.yaml") {
        Ok(_) => panic!("this should not be accepted: {steps}"),
        Err(error) => error.to_string(),
    }
}

fn only(steps: &str) -> Verb {
    let mut scenario = parse(steps);
    assert_eq!(scenario.steps.len(), 1);
    scenario.steps.remove(0).verb
}

#[test]
fn every_example_is_read() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    let mut read = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue; // other examples, as those of `nodefold admit`
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let scenario = Scenario::parse(&text, &path.to_string_lossy()).unwrap_or_else(|e| panic!("{e}"));
        assert!(!scenario.about.is_empty() && scenario.steps.len() > 5, "{}", path.display());
        read += 1;
    }
    assert!(read >= 8, "found {read} examples");
}

#[test]
fn every_verb_is_read_with_its_line() {
    let scenario = parse(
        "- create: {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {k: v}}
- update: {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {k: w}}
- dynamic: {pod: web, patch: {spec: {volumes: [{name: v, $patch: delete}]}}}
- resize: {pod: web, namespace: n, patch: {spec: {}}}
- ephemeral: {pod: n/web, patch: {spec: {}}}
- delete: {pod: web, gracePeriodSeconds: 0, force: true}
- delete: {secret: s}
- advance: 500ms
- settle
- settle: 2m
- exit: {pod: web, container: app, signal: KILL}
- probe: {pod: web, container: app, kind: liveness, result: failure}
- hold: {operation: stop, pod: web, container: app}
- release: {operation: stop}
- fail: {operation: mount, pod: web, volume: v, times: 2, error: busy, kind: uncertain}
- crash: host
- set: {allocatable: {cpu: 1500m, memory: 1Gi}, featureGates: {DynamicContainers: false}, images: []}
- mark: here
- expect: {accepted: true}
",
    );
    let lines: Vec<usize> = scenario.steps.iter().map(|s| s.line).collect();
    assert_eq!(lines, (3..22).collect::<Vec<_>>());
    let verbs: Vec<&Verb> = scenario.steps.iter().map(|s| &s.verb).collect();
    let web = PodRef { namespace: "default".into(), name: "web".into() };
    assert!(matches!(verbs[2], Verb::Dynamic(pod, _) if *pod == web));
    assert!(matches!(verbs[3], Verb::Resize(pod, _) if pod.namespace == "n"));
    assert!(matches!(verbs[4], Verb::Ephemeral(pod, _) if pod.to_string() == "n/web"));
    assert!(matches!(verbs[5], Verb::Delete(d) if d.force && d.grace_seconds == Some(0) && d.kind == "Pod"));
    assert!(matches!(verbs[6], Verb::Delete(d) if d.kind == "Secret" && d.namespace == "default"));
    assert!(matches!(verbs[7], Verb::Advance(Nanos(500_000_000))));
    assert!(matches!(verbs[8], Verb::Settle(t) if *t == Nanos::secs(60)));
    assert!(matches!(verbs[9], Verb::Settle(t) if *t == Nanos::secs(120)));
    assert!(matches!(verbs[10], Verb::Exit { ending: Ending::Signal(9), .. }));
    assert!(matches!(verbs[11], Verb::Probe { kind: ProbeKind::Liveness, passes: false, .. }));
    assert!(
        matches!(verbs[12], Verb::Hold(s) if s.operation == Operation::Stop && s.target.as_deref() == Some("app"))
    );
    assert!(matches!(verbs[13], Verb::Release(s) if s.pod.is_none()));
    assert!(matches!(verbs[14], Verb::Fail(_, f) if f.times == Some(2) && f.class == ErrorClass::Uncertain));
    assert!(matches!(verbs[15], Verb::Crash(Crash::Host)));
    let Verb::Set(change) = verbs[16] else { panic!("not a set") };
    assert_eq!(change.allocatable.get(&ResourceName::Cpu), 1500);
    assert_eq!(change.allocatable.get(&ResourceName::Memory), 1 << 30);
    assert_eq!((change.dynamic_containers, change.images.as_deref()), (Some(false), Some(&[][..])));
    let simulated: Vec<&str> = scenario.simulation_only().map(|s| s.verb.name()).collect();
    assert_eq!(simulated, ["probe", "hold", "release", "fail", "crash", "set"]);
}

#[test]
fn every_expectation_form_is_read() {
    let forms = [
        ("{pod: web, status: {phase: Running}}", 1),
        ("{pod: web, allocated: {volumes: []}}", 1),
        ("{pod: web, retained: [a]}", 1),
        ("{pod: web, absent: {containerStatuses: [x], volumeStatuses: [y]}}", 1),
        ("{pod: web, gone: true}", 1),
        ("{pod: web, container: app, sameInstance: m}", 1),
        ("{pod: web, container: app, newInstance: m}", 1),
        ("{rejected: [{field: spec, reason: FieldValueInvalid}]}", 1),
        ("{accepted: true}", 1),
        ("{events: [{reason: FailedMount, type: Warning}]}", 1),
        ("{host: {pod: web, absent: [a], present: [b]}}", 1),
        ("{order: [mount web/a, start web/app]}", 1),
        ("{never: [stop web/app]}", 1),
        ("{pod: web, status: {phase: Running}, retained: []}", 2),
    ];
    for (form, checks) in forms {
        let Verb::Expect(expectation) = only(&format!("- expect: {form}\n")) else {
            panic!("no expectation")
        };
        assert_eq!(expectation.checks.len(), checks, "{form}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_a_remedy() {
    let cases = [
        (
            "- create: ./pod.yaml\n",
            "t.yaml:3:",
            "a manifest by its name is not read here (write the object itself",
        ),
        (
            "- create: {apiVersion: v1, kind: PersistentVolum, metadata: {name: x}}\n",
            "t.yaml:3:",
            "(did you mean \"PersistentVolume\"?)",
        ),
        ("- delete: {pod: p, gracePeriodSeconds: -1}\n", "t.yaml:3:", "-1 is no whole number from 0"),
        (
            "- expect: {pod: p, status: {containerStatues: []}}\n",
            "t.yaml:3:",
            "unknown field \"containerStatues\" (did you mean \"containerStatuses\"?)",
        ),
        ("- expect: {pod: p, allocated: {spec: {}}}\n", "t.yaml:3:", "\"spec\" once more"),
        (
            "- create: {apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {containers: [{name: c, image: b}]}}\n- expect: \
             {never: [stop wbe/c]}\n",
            "t.yaml:4:",
            "`stop wbe/c` is about a pod that no step creates (did you mean \"web\"?)",
        ),
        ("- settel: 1m\n", "t.yaml:3:", "unknown verb \"settel\" (did you mean \"settle\"?)"),
        ("- mark: a\n- advance: 5\n", "t.yaml:4:", "\"5\" is no length of time (write a number with a unit"),
        ("- mark: a\n  settle: 1m\n", "t.yaml:", "exactly one verb"),
        ("- {}\n", "t.yaml:3:", "a step without a verb"),
        (
            "- hold: {operation: mont, pod: web}\n",
            "t.yaml:3:",
            "unknown operation \"mont\" (did you mean \"mount\"?)",
        ),
        ("- hold: {operation: mount, pod: web, container: c}\n", "t.yaml:3:", "mount is about a volume"),
        ("- hold: {operation: stop, pod: web, volume: v}\n", "t.yaml:3:", "stop is about a container"),
        ("- fail: {operation: watch, container: v}\n", "t.yaml:3:", "watch is about a whole pod"),
        ("- fail: {operation: mount, times: 0}\n", "t.yaml:3:", "failing 0 times"),
        ("- fail: {operation: mount, kind: maybe}\n", "t.yaml:3:", "unknown kind \"maybe\""),
        (
            "- exit: {pod: web, container: c, code: 1, signal: KILL}\n",
            "t.yaml:3:",
            "by a code or by a signal",
        ),
        ("- exit: {pod: web, container: c, code: 300}\n", "t.yaml:3:", "300 is no exit code"),
        ("- exit: {pod: web, container: c, signal: STOPP}\n", "t.yaml:3:", "unknown signal"),
        (
            "- probe: {pod: web, container: c, kind: ready, result: failure}\n",
            "t.yaml:3:",
            "unknown probe \"ready\"",
        ),
        ("- crash: kubelet\n", "t.yaml:3:", "unknown crash \"kubelet\""),
        ("- set: {}\n", "t.yaml:3:", "nothing to set"),
        (
            "- set: {featureGates: {DynamicContainer: true}}\n",
            "t.yaml:3:",
            "did you mean \"DynamicContainers\"?",
        ),
        ("- delete: {}\n", "t.yaml:3:", "nothing to delete"),
        ("- delete: {pod: a, secret: b}\n", "t.yaml:3:", "a second thing to delete"),
        ("- dynamic: {patch: {spec: {}}}\n", "t.yaml:3:", "\"pod\" is missing"),
        ("- dynamic: {pod: web, pach: {}}\n", "t.yaml:3:", "unknown key \"pach\" (did you mean \"patch\"?)"),
        ("- dynamic: {pod: web, patch: {spec: {volums: []}}}\n", "t.yaml:3:", "volumes"),
        (
            "- create: {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {container: []}}\n",
            "t.yaml:3:",
            "containers",
        ),
        ("- create: {kind: Pod}\n", "t.yaml:3:", "\"metadata\" is missing"),
        ("- expect: {status: {phase: Running}}\n", "t.yaml:3:", "none is named (add `pod: NAME` beside it)"),
        ("- expect: {pod: web, sameInstance: m}\n", "t.yaml:3:", "add `container: NAME` beside it"),
        ("- expect: {pod: web, container: c, gone: true}\n", "t.yaml:3:", "`container` goes with"),
        ("- expect: {pod: web}\n", "t.yaml:3:", "nothing is expected"),
        ("- expect: {pod: web, statsu: {}}\n", "t.yaml:3:", "did you mean \"status\"?"),
        ("- expect: {pod: web, absent: {containers: [a]}}\n", "t.yaml:3:", "unknown key \"containers\""),
        (
            "- expect: {order: [mout web/a]}\n",
            "t.yaml:3:",
            "unknown command \"mout\" (did you mean \"mount\"?)",
        ),
        ("- expect: {order: [mount web a]}\n", "t.yaml:3:", "more than a verb and a target"),
        ("- expect: {rejected: [{reason: Forbidden}]}\n", "t.yaml:3:", "no cause's reason"),
        ("- expect: {events: [{type: Warning}]}\n", "t.yaml:3:", "\"reason\" is missing"),
    ];
    for (steps, place, message) in cases {
        let error = refuse(steps);
        assert!(error.starts_with(place) && error.contains(message), "{steps}gave: {error}");
    }
}

#[test]
fn a_file_without_steps_or_with_two_documents_is_refused() {
    for (text, message) in [
        ("name: x\n", "\"steps\" is missing"),
        ("name: x\nsteps: []\n---\nname: y\n", "more than one document"),
        ("", "no document"),
        ("name: x\nstep: []\n", "did you mean \"steps\"?"),
        ("name: x\nnode: {alocatable: {}}\nsteps: []\n", "t.yaml:2:"),
        ("name: x\nnode: {allocatable: {cpu: two}}\nsteps: []\n", "is no quantity"),
    ] {
        let error = Scenario::parse(text, "t.yaml").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(message), "{text:?} gave: {error}");
    }
}

#[test]
fn the_node_is_unlimited_and_has_both_gates_unless_said() {
    let scenario = parse("- mark: a\n");
    assert!(scenario.node.facts.allocatable.is_empty() && scenario.node.images.is_none());
    assert!(scenario.node.facts.gates.dynamic_containers && scenario.node.facts.gates.dynamic_volumes);
}
