//! Cases 100 to 104: what an ended pod shows of containers that nobody saw end (TerminatePod).

use crate::kit::*;
use nodefold_core::event::SeenState;
use nodefold_core::spec::{Pod, RestartPolicy, TerminalPhase};
use nodefold_core::status::ContainerState;
use nodefold_core::time::Nanos;

use RestartPolicy::{Always, Never};

/// `137` for an end nobody saw, `exit n` for one that was seen, `Waiting`, or `Running`.
fn shown(bench: &Bench, called: &str) -> String {
    match bench.row(UID, called).state {
        ContainerState::Waiting { .. } => "Waiting".into(),
        ContainerState::Running { .. } => "Running".into(),
        ContainerState::Terminated(end) if &*end.reason == "ContainerStatusUnknown" => {
            end.exit_code.to_string()
        }
        ContainerState::Terminated(end) => format!("exit {}", end.exit_code),
    }
}

fn all(bench: &Bench, called: &[&str]) -> Vec<String> {
    called.iter().map(|c| shown(bench, c)).collect()
}

/// Deletes the pod; its object stays, so that its last status can be read.
fn delete(bench: &mut Bench, of_pod: &Pod) {
    bench.hold(verb("release"));
    bench.pod(&deleted(of_pod, bench.now, 30));
    bench.run();
    assert_eq!(bench.state(UID).label(), "Terminated");
}

/// 100
fn main_without_init() {
    let of_pod = mains(Always, 2);
    let mut bench = Bench::booted(config());
    bench.hold(of("pull", "c1"));
    bench.pod(&of_pod);
    bench.run();
    delete(&mut bench, &of_pod);
    assert_eq!(all(&bench, &["c0", "c1"]), ["exit 0", "137"]);
    assert_eq!(bench.phase(UID), "Failed", "missing evidence is failure");

    // With a last state: it waits in back-off. SEMANTICS: the end that was recorded is shown as the end, where the kubelet
    // covers it with 137; it is the last thing known, and the one before stays lastState.
    let mut bench = Bench::with(&of_pod);
    bench.exits(UID, "c1", 3);
    bench.run();
    bench.exits(UID, "c1", 4);
    bench.run();
    assert_eq!(shown(&bench, "c1"), "Waiting");
    delete(&mut bench, &of_pod);
    assert_eq!(all(&bench, &["c0", "c1"]), ["exit 0", "exit 4"]);
    assert_eq!(bench.row(UID, "c1").last_state.map(|end| end.exit_code), Some(3));
    assert_eq!(bench.phase(UID), "Failed");

    // An end that nobody saw after one that was: 137, with the former as lastState.
    let mut bench = Bench::with(&of_pod);
    bench.exits(UID, "c1", 3);
    bench.run();
    bench.host.containers.remove(&(UID, id("c1", 1)));
    bench.restart_agent();
    bench.pod(&deleted(&of_pod, bench.now, 30));
    bench.sources_ready();
    bench.hold(verb("release"));
    bench.run();
    assert_eq!(all(&bench, &["c0", "c1"]), ["exit 0", "137"]);
    assert_eq!(bench.row(UID, "c1").last_state.map(|end| end.exit_code), Some(3), "kept");
}

fn with_inits(policy: RestartPolicy, n: usize) -> Pod {
    let inits = (0..n).map(|i| container(&format!("i{i}"))).collect();
    pod(UID, spec(policy, inits, vec![container("c0"), container("c1")]))
}

/// 101
fn nothing_began() {
    let of_pod = with_inits(Always, 2);
    let mut bench = Bench::booted(config());
    bench.hold(of("pull", "i0"));
    bench.pod(&of_pod);
    bench.run();
    delete(&mut bench, &of_pod);
    assert_eq!(all(&bench, &["i0", "i1", "c0", "c1"]), ["137", "Waiting", "Waiting", "Waiting"]);
    assert_eq!(bench.phase(UID), "Failed");
}

/// A node without memory finds what is left of one init container.
fn found(policy: RestartPolicy, n: usize, called: &str, code: i32) -> (Bench, Pod) {
    let of_pod = with_inits(policy, n);
    let mut bench = Bench::started(config());
    bench.host.sandboxes.insert((UID, 0), true);
    let ended = SeenState::Exited(exit(code, bench.now));
    bench.host.containers.insert((UID, id(called, 0)), ended);
    bench.run();
    bench.hold(verb("pull"));
    bench.pod(&of_pod);
    bench.sources_ready();
    bench.run();
    (bench, of_pod)
}

/// 102
fn third_init_failed() {
    for policy in [Always, Never] {
        let (mut bench, of_pod) = found(policy, 4, "i2", 1);
        delete(&mut bench, &of_pod);
        let expected = ["137", "137", "exit 1", "Waiting", "Waiting", "Waiting"];
        assert_eq!(all(&bench, &["i0", "i1", "i2", "i3", "c0", "c1"]), expected, "{policy:?}");
        assert_eq!(bench.phase(UID), "Failed");
    }
}

/// 103
fn last_init_done() {
    let (mut bench, of_pod) = found(Always, 3, "i2", 0);
    delete(&mut bench, &of_pod);
    assert_eq!(all(&bench, &["i0", "i1", "i2", "c0", "c1"]), ["137", "137", "exit 0", "137", "137"]);
    assert_eq!(bench.phase(UID), "Failed");
}

/// 104: the phase at the end is terminal, and one that is terminal already never changes. A phase that Kubernetes doesn't
/// know can't be expressed here: the boundary refuses it.
fn phase_is_terminal() {
    let of_pod = mains(Always, 1);
    // Pending
    let mut bench = Bench::booted(config());
    bench.hold(of("pull", "c0"));
    bench.pod(&of_pod);
    bench.run();
    assert_eq!(bench.phase(UID), "Pending");
    delete(&mut bench, &of_pod);
    assert_eq!(bench.phase(UID), "Failed");
    // Running, and its main ends badly.
    let mut bench = Bench::with(&of_pod);
    bench.host.stop_codes.insert("c0".into(), 143);
    assert_eq!(bench.phase(UID), "Running");
    delete(&mut bench, &of_pod);
    assert_eq!(bench.phase(UID), "Failed");
    // Terminal before, whatever its containers look like.
    for (terminal, phase) in [(TerminalPhase::Succeeded, "Succeeded"), (TerminalPhase::Failed, "Failed")] {
        let of_pod = Pod { api_terminal: Some(terminal), ..mains(Always, 1) };
        let mut bench = Bench::booted(config());
        bench.pod(&of_pod);
        bench.run();
        assert_eq!(bench.phase(UID), phase);
        delete(&mut bench, &of_pod);
        assert_eq!(bench.phase(UID), phase);
        bench.pass(Nanos::secs(60));
        assert_eq!(bench.phase(UID), phase);
    }
    // Ended by itself, then deleted.
    for (code, phase) in [(0, "Succeeded"), (2, "Failed")] {
        let of_pod = mains(Never, 1);
        let mut bench = Bench::with(&of_pod);
        bench.exits(UID, "c0", code);
        bench.run();
        assert_eq!(bench.phase(UID), phase);
        delete(&mut bench, &of_pod);
        assert_eq!(bench.phase(UID), phase, "B10");
    }
}

const CASES: &[Case] = &[
    Case { number: 100, given: "no init, a container that waits", run: main_without_init },
    Case { number: 101, given: "two init containers, both wait", run: nothing_began },
    Case { number: 102, given: "init W, W, exit 1, W", run: third_init_failed },
    Case { number: 103, given: "init W, W, exit 0", run: last_init_done },
    Case { number: 104, given: "the phase before", run: phase_is_terminal },
];

pub fn numbers() -> Vec<u32> {
    CASES.iter().map(|c| c.number).collect()
}

#[test]
fn what_nobody_saw_end() {
    run_cases(CASES);
}
