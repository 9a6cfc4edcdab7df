//! Cases 93 to 99: the pod's phase.

use crate::kit::*;
use nodefold_core::event::ProbeKind;
use nodefold_core::spec::{Container, Pod, Probe, RestartPolicy};
use nodefold_core::time::Nanos;

use RestartPolicy::{Always, Never};

/// What becomes of a container, in the order of the spec.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    /// Its image doesn't come: no runtime knows of it.
    Missing,
    /// It is made and not started.
    Created,
    Runs,
    Ends(i32),
}
use Fate::{Created, Ends, Missing, Runs};

fn played(of_pod: &Pod, fates: &[(&str, Fate)]) -> Bench {
    let mut bench = Bench::booted(config());
    for (called, fate) in fates {
        match fate {
            Missing => bench.hold(of("pull", called)),
            Created => bench.hold(of("start", called)),
            Ends(_) if called.starts_with('i') => {}
            Runs | Ends(_) => {}
        }
    }
    bench.pod(of_pod);
    bench.run();
    for (called, fate) in fates {
        if let Ends(code) = fate {
            // What comes after stays as it is: a second start is not answered.
            bench.hold(of("pull", called));
            bench.exits(UID, called, *code);
            bench.run();
        }
    }
    bench
}

fn phases(policy: RestartPolicy, rows: &[(&[Fate], &str)]) {
    for (fates, phase) in rows {
        let named: Vec<(String, Fate)> =
            fates.iter().enumerate().map(|(i, f)| (format!("c{i}"), *f)).collect();
        let named: Vec<(&str, Fate)> = named.iter().map(|(n, f)| (n.as_str(), *f)).collect();
        let bench = played(&mains(policy, fates.len()), &named);
        let which = fates.iter().map(|f| match f {
            Missing => "missing".to_string(),
            Created => "created".to_string(),
            Runs => "runs".to_string(),
            Ends(code) => format!("exit {code}"),
        });
        assert_eq!(bench.phase(UID), *phase, "{:?}", which.collect::<Vec<String>>());
    }
}

/// 93
fn always() {
    phases(
        Always,
        &[
            (&[Missing, Missing], "Pending"),
            (&[Runs, Missing], "Pending"),
            (&[Runs, Created], "Pending"),
            (&[Runs, Runs], "Running"),
            (&[Ends(1), Ends(0)], "Running"),
            (&[Runs, Ends(1)], "Running"),
        ],
    );
}

/// 94
fn never() {
    phases(
        Never,
        &[
            (&[Runs, Ends(0)], "Running"),
            (&[Ends(0), Ends(0)], "Succeeded"),
            (&[Ends(1), Ends(1)], "Failed"),
            (&[Ends(0), Ends(1)], "Failed"),
            (&[Runs, Missing], "Pending"),
        ],
    );
}

fn with_init(policy: RestartPolicy, init: Container) -> Pod {
    pod(UID, spec(policy, vec![init], vec![container("c0"), container("c1")]))
}

/// 95
fn failed_init() {
    for (policy, phase) in [(Always, "Pending"), (RestartPolicy::OnFailure, "Pending"), (Never, "Failed")] {
        let bench = played(&with_init(policy, container("i0")), &[("i0", Ends(1))]);
        assert_eq!(bench.phase(UID), phase, "{policy:?}");
    }
    // Waiting in back-off after a failure.
    let mut bench = played(&with_init(Always, container("i0")), &[]);
    for _ in 0..3 {
        bench.exits(UID, "i0", 1);
        bench.pass(Nanos::secs(20));
    }
    bench.exits(UID, "i0", 1);
    bench.run();
    assert!(matches!(bench.row(UID, "i0").state, nodefold_core::status::ContainerState::Waiting { .. }));
    assert_eq!(bench.phase(UID), "Pending");
    // It succeeds at last, and the pod goes on.
    bench.host.ends.insert("i0".into(), 0);
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.phase(UID), "Running");
}

fn probed_sidecar() -> Container {
    Container { startup_probe: Some(Probe { grace: None }), ..sidecar("r0") }
}

/// 96
fn sidecar_not_started() {
    let mut bench = played(&with_init(Always, probed_sidecar()), &[]);
    assert_eq!(bench.phase(UID), "Pending", "it runs, is not started, and the mains wait");
    bench.probe(UID, "r0", ProbeKind::Startup, true);
    bench.run();
    assert_eq!(bench.phase(UID), "Running");
    // Its next life has not started either, but the mains run.
    bench.exits(UID, "r0", 1);
    bench.run();
    assert!(!bench.row(UID, "r0").started);
    assert_eq!(bench.phase(UID), "Running");
}

/// 97
fn sidecar_stopped() {
    let mut bench = played(&with_init(Always, sidecar("r0")), &[("r0", Ends(1))]);
    assert_eq!(bench.phase(UID), "Running", "stopped");
    bench.let_go();
    bench.run();
    bench.exits(UID, "r0", 1);
    bench.run();
    let row = bench.row(UID, "r0");
    assert!(matches!(row.state, nodefold_core::status::ContainerState::Waiting { .. }), "{:?}", row.state);
    assert_eq!(bench.phase(UID), "Running", "crash-looping");
}

/// 98: the end of a sidecar says nothing about the pod's.
fn sidecar_failed_at_end() {
    let of_pod = with_init(Always, sidecar("r0"));
    let mut bench = played(&of_pod, &[]);
    bench.host.stop_codes.insert("r0".into(), 137);
    bench.pod(&deleted(&of_pod, bench.now, 30));
    bench.hold(verb("release"));
    bench.run();
    assert_eq!(bench.phase(UID), "Succeeded", "mains ended with 0, the sidecar with 137");
    let mut bench = played(&of_pod, &[]);
    bench.host.stop_codes.insert("c1".into(), 1);
    bench.pod(&deleted(&of_pod, bench.now, 30));
    bench.hold(verb("release"));
    bench.run();
    assert_eq!(bench.phase(UID), "Failed", "one main didn't");
}

/// 99
fn main_stopped_after_init() {
    let inits = vec![container("i0"), sidecar("r0")];
    let of_pod = pod(UID, spec(Always, inits, vec![container("c0")]));
    let mut bench = Bench::booted(config());
    bench.host.ends.insert("i0".into(), 0);
    bench.pod(&of_pod);
    bench.run();
    bench.hold(of("pull", "c0"));
    bench.exits(UID, "c0", 1);
    bench.run();
    assert_eq!(bench.phase(UID), "Running");
    assert!(bench.row(UID, "i0").ready && bench.row(UID, "r0").ready);
}

const CASES: &[Case] = &[
    Case { number: 93, given: "Always", run: always },
    Case { number: 94, given: "Never", run: never },
    Case { number: 95, given: "an init container failed", run: failed_init },
    Case { number: 96, given: "a sidecar runs and is not started", run: sidecar_not_started },
    Case { number: 97, given: "a sidecar stopped or crash-looping", run: sidecar_stopped },
    Case { number: 98, given: "mains exit 0, sidecar failed, at the end", run: sidecar_failed_at_end },
    Case { number: 99, given: "init done, sidecar runs, main stopped", run: main_stopped_after_init },
];

pub fn numbers() -> Vec<u32> {
    CASES.iter().map(|c| c.number).collect()
}

#[test]
fn phases_of_a_pod() {
    run_cases(CASES);
}
