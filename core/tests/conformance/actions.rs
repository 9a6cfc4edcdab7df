//! Cases 29 to 77: what a pod's containers and sandbox need now (the kubelet's computePodActions).
//!
//! Each row gives what the runtime shows and expects a plan, in the sheet's notation: `K` kill the pod, `S+n` make sandbox
//! attempt n, `I[..]` `C[..]` `E[..]` start init, main and ephemeral containers by index, `X{..}` stop by name, `–` nothing.
//! How a row is brought about and what is compared: `action_row`.
//!
//! Stops never block (DESIGN §4 rule 6), so where the sheet has `X{c} C[c]`, the stop is commanded now and the start
//! follows the exit.

use crate::action_row::State::*;
use crate::action_row::{Row, found, remembered, sandbox_attempt, show};
use crate::kit::*;
use nodefold_core::Fact;
use nodefold_core::event::ProbeKind;
use nodefold_core::ids::ContainerId;
use nodefold_core::rules::{Plan, compute};
use nodefold_core::spec::{
    Container, Medium, Pod, PodSpec, Probe, RestartAction, RestartPolicy, RestartRule, Volume, VolumeMount,
    VolumeSource,
};
use nodefold_core::time::Nanos;
use std::sync::Arc;

use ProbeKind::{Liveness, Startup};
use RestartPolicy::{Always, Never, OnFailure};

/// B: three mains run.
fn b(number: u32, given: &'static str, policy: RestartPolicy) -> Row {
    let mains = (0..3).map(|i| container(&format!("c{i}"))).collect();
    Row::of(number, given, spec(policy, vec![], mains), |_, _| Running)
}

/// I: three plain init containers have ended well, nothing is known of the mains.
fn i(number: u32, given: &'static str, policy: RestartPolicy) -> Row {
    let inits = (0..3).map(|i| container(&format!("i{i}"))).collect();
    let mains = (0..3).map(|i| container(&format!("c{i}"))).collect();
    Row::of(number, given, spec(policy, inits, mains), |_, init| if init { Exit(0) } else { Absent })
}

/// R: three sidecars run, two of them with startup and liveness probes that pass; nothing is known of the mains.
fn r(number: u32, given: &'static str, policy: RestartPolicy) -> Row {
    let probe = Some(Probe { grace: None });
    let inits = (0..3)
        .map(|i| match i {
            0 => sidecar("r0"),
            i => Container { startup_probe: probe, liveness_probe: probe, ..sidecar(&format!("r{i}")) },
        })
        .collect();
    let mains = (0..3).map(|i| container(&format!("c{i}"))).collect();
    let mut row =
        Row::of(number, given, spec(policy, inits, mains), |_, init| if init { Running } else { Absent });
    for called in ["r1", "r2"] {
        row = row.probe(called, Startup, Some(true)).probe(called, Liveness, Some(true));
    }
    row
}

/// R without probes, so that a node without memory can be shown it.
fn plain_r(number: u32, given: &'static str, policy: RestartPolicy) -> Row {
    let inits = (0..3).map(|i| sidecar(&format!("r{i}"))).collect();
    let mains = (0..3).map(|i| container(&format!("c{i}"))).collect();
    Row::of(number, given, spec(policy, inits, mains), |_, init| if init { Running } else { Absent })
}

/// E: an init container ended well, three mains and an ephemeral container run.
fn e(number: u32, given: &'static str, policy: RestartPolicy) -> Row {
    let mut spec = (*i(number, given, policy).pod.spec).clone();
    spec.init_containers.truncate(1);
    spec.ephemeral_containers.push(Arc::new(container("e0")));
    Row::of(number, given, spec, |_, init| if init { Exit(0) } else { Running })
}

fn second_ephemeral(spec: &mut PodSpec) {
    spec.ephemeral_containers.push(Arc::new(container("e1")));
}

fn rows() -> Vec<Row> {
    let exits = |row: Row| row.is("c0", Exit(0)).is("c1", Exit(111));
    vec![
        b(29, "all run", Always).expect("–"),
        exits(b(31, "Always; exits 0 and 111", Always)).expect("C[0,1]"),
        exits(b(32, "OnFailure; exits 0 and 111", OnFailure)).expect("C[1]"),
        b(33, "OnFailure; exit 0, Created", OnFailure).is("c0", Exit(0)).is("c1", Created).expect("C[1]"),
        exits(b(34, "Never; exits 0 and 111", Never)).expect("–"),
        b(35, "Always; sandbox not ready", Always).sandbox_down(0).expect("K S+1 C[0,1,2]"),
        b(36, "OnFailure; sandbox not ready, c1 exit 0", OnFailure)
            .is("c1", Exit(0))
            .sandbox_down(0)
            .expect("K S+1 C[0,2]"),
        b(38, "c1's image differs", Always)
            .edit(|spec| change(spec, "c1", |c| c.image = name("other")))
            .expect("X{c1} C[1]"),
        b(38, "c1's image differs; regardless of policy", Never)
            .edit(|spec| change(spec, "c1", |c| c.image = name("other")))
            .expect("X{c1} C[1]"),
        probed(b(39, "c1 liveness Failure", Always)).then("c1", Liveness, false).expect("X{c1} C[1]"),
        probed(b(39, "c1 liveness Failure; Never", Never)).then("c1", Liveness, false).expect("X{c1}"),
        starting(b(39, "c1 startup Failure", Always)).then("c1", Startup, false).expect("X{c1} C[1]"),
        b(40, "Never; sandbox 1 not ready, all exited", Never)
            .all(&["c0", "c1", "c2"], Exit(1))
            .sandbox_down(1)
            .expect("K"),
        b(41, "OnFailure; sandbox 1 not ready, all exit 0", OnFailure)
            .all(&["c0", "c1", "c2"], Exit(0))
            .sandbox_down(1)
            .expect("K"),
        b(42, "Never; sandbox 2 not ready, nothing known", Never)
            .nothing_known()
            .sandbox_down(2)
            .expect("K S+3 C[0,1,2]"),
        b(43, "Never; c1 Unknown", Never).is("c1", Unknown).expect("X{c1} C[1]"),
        b(44, "Never; c1 Created", Never).is("c1", Created).expect("C[1]"),
        exits(b(45, "pod Never; c0, c1 Always", Never).policy("c0", Always).policy("c1", Always))
            .expect("C[0,1]"),
        exits(b(46, "pod Never; c0, c1 OnFailure", Never).policy("c0", OnFailure).policy("c1", OnFailure))
            .expect("C[1]"),
        b(46, "pod Never; c0, c1 OnFailure; c1 Created", Never)
            .policy("c0", OnFailure)
            .policy("c1", OnFailure)
            .is("c0", Exit(0))
            .is("c1", Created)
            .expect("C[1]"),
        exits(b(47, "pod Always; c0, c1 Never", Always).policy("c0", Never).policy("c1", Never)).expect("–"),
        b(48, "pod Always; c1 OnFailure exit 0; sandbox not ready", Always)
            .policy("c1", OnFailure)
            .is("c1", Exit(0))
            .sandbox_down(0)
            .expect("K S+1 C[0,2]"),
        i(52, "all init done", Always).expect("C[0,1,2]"),
        i(53, "nothing known", Always).nothing_known().expect("I[0]"),
        i(54, "i2 runs", Always).is("i2", Running).expect("–"),
        i(55, "sandbox not ready", Always).sandbox_down(0).expect("K S+1 I[0]"),
        i(56, "i2 exit 137, Always", Always).is("i2", Exit(137)).expect("I[2]"),
        i(56, "i2 exit 137, OnFailure", OnFailure).is("i2", Exit(137)).expect("I[2]"),
        i(56, "i2 exit 137, Never", Never).is("i2", Exit(137)).expect("K"),
        i(57, "i2 Unknown, Always", Always).is("i2", Unknown).expect("X{i2} I[2]"),
        i(57, "i2 Unknown, OnFailure", OnFailure).is("i2", Unknown).expect("X{i2} I[2]"),
        i(57, "i2 Unknown, Never", Never).is("i2", Unknown).expect("K"),
        i(58, "Never; sandbox not ready", Never).sandbox_down(0).expect("K"),
        i(59, "Never; sandbox not ready, nothing known", Never)
            .nothing_known()
            .sandbox_down(0)
            .expect("K S+1 I[0]"),
        // A node that remembers has seen i0 and i1 end; one that doesn't infers it.
        i(60, "only i2 known, runs", Always).all(&["i0", "i1"], Absent).is("i2", Running).expect_found("–"),
        i(61, "i2 Created", Always).is("i2", Created).expect("I[2]"),
        r(62, "all sidecars run", Always).expect("C[0,1,2]"),
        plain_r(62, "all sidecars run", Always).expect("C[0,1,2]"),
        r(63, "only r0 known, runs", Always).all(&["r1", "r2"], Absent).expect("I[1]"),
        plain_r(63, "only r0 known, runs", Always).all(&["r1", "r2"], Absent).expect("I[1]"),
        r(64, "r2 unknown; r1's liveness missing", Always)
            .is("r2", Absent)
            .probe("r1", Liveness, None)
            .expect("I[2]"),
        r(64, "r2 unknown; r1's liveness passes", Always).is("r2", Absent).expect("I[2]"),
        r(65, "r2 unknown; r1's startup missing", Always)
            .is("r2", Absent)
            .probe("r1", Startup, None)
            .expect("–"),
        r(65, "r2 unknown; r1's startup passed", Always).is("r2", Absent).expect("I[2]"),
        r(66, "r2 liveness Failure", Always).then("r2", Liveness, false).expect("X{r2} I[2] C[0,1,2]"),
        r(67, "r2 startup Failure", Always)
            .probe("r2", Startup, None)
            .then("r2", Startup, false)
            .expect("X{r2} I[2]"),
        r(68, "r2's image differs", Always)
            .edit(|spec| change(spec, "r2", |c| c.image = name("other")))
            .expect("X{r2} I[2] C[0,1,2]"),
        r(69, "r0 and r2 exited, r2 had not yet started up", Always)
            .probe("r2", Startup, None)
            .all(&["r0", "r2"], Exit(1))
            .expect("I[0,2]"),
        plain_r(69, "r0 and r2 exited", Always)
            .all(&["r0", "r2"], Exit(1))
            .expect_found("I[0,2]")
            // SEMANTICS: initialization that was done in this sandbox is remembered (B29); the mains need not wait for the
            // sidecar to come back, as a kubelet's do when none of them was made yet.
            .expect_remembered("I[0,2] C[0,1,2]"),
        r(70, "r0 exited", Always).is("r0", Exit(1)).expect("I[0] C[0,1,2]"),
        plain_r(70, "r0 exited", Always).is("r0", Exit(1)).expect("I[0] C[0,1,2]"),
        r(71, "Never, r2 exit 137", Never).probe("r2", Startup, None).is("r2", Exit(137)).expect("I[2]"),
        plain_r(71, "Never, r2 exit 137", Never).is("r2", Exit(137)).expect_found("I[2]"),
        r(71, "Never, r2 Unknown", Never).probe("r2", Startup, None).is("r2", Unknown).expect("X{r2} I[2]"),
        plain_r(71, "Never, r2 Unknown", Never).is("r2", Unknown).expect_found("X{r2} I[2]"),
        r(72, "Never, mains run, r2 exit 137", Never)
            .all(&["c0", "c1", "c2"], Running)
            .is("r2", Exit(137))
            .expect("I[2]"),
        plain_r(72, "Never, mains run, r2 exit 137", Never)
            .all(&["c0", "c1", "c2"], Running)
            .is("r2", Exit(137))
            .expect("I[2]"),
        r(73, "Never, all mains exit 0", Never).all(&["c0", "c1", "c2"], Exit(0)).expect("K"),
        plain_r(73, "Never, all mains exit 0", Never).all(&["c0", "c1", "c2"], Exit(0)).expect("K"),
        // An ended sidecar is no reason to begin an ended pod anew, where it is remembered that it had begun (B29).
        plain_r(73, "Never, all mains exit 0, r2 exit 1", Never)
            .all(&["c0", "c1", "c2"], Exit(0))
            .is("r2", Exit(1))
            .expect_remembered("K"),
        plain_r(74, "only r2 known, runs", Always).all(&["r0", "r1"], Absent).expect_found("I[0,1] C[0,1,2]"),
        e(75, "all as it should be", Always).expect("–"),
        e(75, "ephemeral missing", Always).is("e0", Absent).expect("E[0]"),
        e(75, "second ephemeral added", Always).edit(second_ephemeral).expect("E[1]"),
        e(75, "ephemeral exited", Always).is("e0", Exit(1)).expect("–"),
        e(75, "ephemeral Unknown", Always).is("e0", Unknown).expect("–"),
        e(76, "init runs, ephemeral missing", Always).nothing_known().is("i0", Running).expect("E[0]"),
        e(77, "Never, mains exit 0, ephemeral runs", Never).all(&["c0", "c1", "c2"], Exit(0)).expect("K"),
    ]
}

/// c1 has a liveness probe that passes.
fn probed(mut row: Row) -> Row {
    let mut spec = (*row.pod.spec).clone();
    change(&mut spec, "c1", |c| c.liveness_probe = Some(Probe { grace: None }));
    row.pod.spec = Arc::new(spec);
    row.probe("c1", Liveness, Some(true))
}

/// c1 has a startup probe that says nothing yet.
fn starting(mut row: Row) -> Row {
    let mut spec = (*row.pod.spec).clone();
    change(&mut spec, "c1", |c| c.startup_probe = Some(Probe { grace: None }));
    row.pod.spec = Arc::new(spec);
    row
}

// --- cases that a list can't show ------------------------------------------------------------------------------------

/// 30: with a volume's mount in flight nothing has been done yet, and the plan says what will be.
fn no_sandbox() {
    let mut of_pod = mains(Always, 3);
    let mut spec = (*of_pod.spec).clone();
    let source = VolumeSource::EmptyDir { medium: Medium::Disk, size_limit: None };
    spec.volumes.push(Arc::new(Volume { name: name("v"), source, rest: Default::default() }));
    change(&mut spec, "c0", |c| {
        c.mounts.push(VolumeMount {
            name: name("v"),
            mount_path: name("/v"),
            read_only: false,
            rest: Default::default(),
        })
    });
    of_pod.spec = Arc::new(spec);
    let mut bench = Bench::booted(config());
    bench.hold(verb("mount"));
    let mark = bench.mark();
    bench.pod(&of_pod);
    bench.run();
    let pod = bench.state(UID);
    assert_eq!(show(&compute(pod), pod, &of_pod.spec), "K S+0 C[0,1,2]");
    bench.let_go();
    bench.run();
    let deeds = bench.deeds(mark);
    assert_eq!(deeds[0], "sandbox", "the kill of nothing is nothing");
    assert_eq!(bench.asked(mark, &["start"]), ["c0", "c1", "c2"].map(String::from).into());
    assert_eq!(bench.count(mark, "sandbox"), 1);
}

/// 37
fn sandbox_without_address() {
    let mut bench = Bench::booted(config());
    bench.hold(verb("sandbox"));
    bench.pod(&mains(Always, 3));
    bench.run();
    let op = bench.take(verb("sandbox")).op;
    let mark = bench.mark();
    bench.apply(Fact::SandboxReady { op, pod: UID, attempt: 0, ip: None });
    let pod = bench.state(UID);
    assert_eq!(show(&compute(pod), pod, &pod.pod.spec), "K S+1 C[0,1,2]");
    bench.let_go();
    bench.run();
    let made: Vec<u32> = bench.log[mark..].iter().filter_map(sandbox_attempt).collect();
    assert_eq!((bench.deeds(mark)[0].as_str(), made), ("stop-sandbox", vec![1]));
    assert_eq!(bench.asked(mark, &["start"]), ["c0", "c1", "c2"].map(String::from).into());
}

/// B, with a rule on c2 that code 42 restarts all (KEP-5532).
fn restarting() -> Pod {
    let base = mains(Always, 3);
    let mut spec = (*base.spec).clone();
    change(&mut spec, "c2", |c| {
        c.restart_policy = Some(Never);
        let action = RestartAction::RestartAllContainers;
        c.restart_rules.push(RestartRule { negated: false, codes: vec![42], action });
    });
    Pod { spec: Arc::new(spec), ..base }
}

fn shown_reset(plan: &Plan) -> Vec<String> {
    let show = |(id, kill): &(ContainerId, bool)| {
        format!("{}.{}{}", id.name, id.attempt, if *kill { " kill" } else { "" })
    };
    plan.reset.iter().map(show).collect()
}

/// 49: with the flag and all running, each is killed, without preStop, grace or order, and nothing else happens. The flag
/// comes from an exit, so the one that exited is there in no life; the two that run are reset.
fn restart_all_kills_all() {
    let mut bench = Bench::with(&restarting());
    let mark = bench.mark();
    bench.exits(UID, "c2", 42);
    let plan = compute(bench.state(UID));
    assert_eq!(shown_reset(&plan), ["c0.0 kill", "c1.0 kill", "c2.0"]);
    assert_eq!(Plan { reset: vec![], ..plan }, Plan::default(), "nothing else");
    assert_eq!(bench.deeds(mark), ["kill c0", "kill c1"]);
}

/// 50: older dead ones go after their own newer ones, and the source last.
fn restart_all_order() {
    let mut bench = Bench::with(&restarting());
    // A dead older instance of each: stop what the node would collect.
    bench.hold(verb("remove"));
    bench.exits(UID, "c0", 1);
    bench.exits(UID, "c1", 1);
    bench.run();
    bench.exits(UID, "c2", 42);
    let plan = compute(bench.state(UID));
    assert_eq!(shown_reset(&plan), ["c0.1 kill", "c0.0", "c1.1 kill", "c1.0", "c2.0"]);
}

/// 51: all are gone; they begin anew in the same sandbox, at once.
fn restart_all_begins_anew() {
    let mut bench = Bench::with(&restarting());
    let mark = bench.mark();
    bench.exits(UID, "c2", 42);
    bench.run();
    assert_eq!(bench.asked(mark, &["start"]), ["c0", "c1", "c2"].map(String::from).into());
    assert_eq!((bench.count(mark, "sandbox"), bench.count(mark, "stop-sandbox")), (0, 0));
    let counts: Vec<u32> = ["c0", "c1", "c2"].iter().map(|c| bench.row(UID, c).restart_count).collect();
    assert_eq!((counts, bench.state(UID).restarting_all.clone()), (vec![1, 1, 1], None));
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.count(mark, "start"), 3, "once");
}

/// §2.1, without a number.
#[test]
fn two_running_sandboxes_make_room_for_a_third() {
    let mut bench = Bench::with(&mains(Always, 1));
    bench.restart_agent();
    bench.host.sandboxes.insert((UID, 1), true);
    bench.sources_ready();
    let mark = bench.mark();
    bench.run();
    assert_eq!(bench.log[mark..].iter().filter_map(sandbox_attempt).collect::<Vec<u32>>(), [2]);
    let up: Vec<u32> =
        bench.host.sandboxes.iter().filter(|(_, ready)| **ready).map(|((_, n), _)| *n).collect();
    assert_eq!((up, bench.asked(mark, &["start"]).len()), (vec![2], 1));
}

const CASES: &[Case] = &[
    Case { number: 30, given: "no sandbox, nothing known", run: no_sandbox },
    Case { number: 37, given: "sandbox without address", run: sandbox_without_address },
    Case { number: 49, given: "restart all, all running", run: restart_all_kills_all },
    Case { number: 50, given: "restart all, with older dead ones", run: restart_all_order },
    Case { number: 51, given: "restart all is done", run: restart_all_begins_anew },
];

pub fn numbers() -> Vec<u32> {
    rows().iter().map(|r| r.number).chain(CASES.iter().map(|c| c.number)).collect()
}

#[test]
fn a_remembering_node_plans_and_acts_as_the_table_says() {
    let rows = rows();
    run_all(rows.iter().filter_map(|row| {
        let expected = row.remembered?;
        Some((
            row.number,
            row.given.to_string(),
            Box::new(move || remembered(row, expected)) as Box<dyn Fn()>,
        ))
    }));
}

#[test]
fn a_node_without_memory_acts_as_the_table_says() {
    let rows = rows();
    run_all(rows.iter().filter_map(|row| {
        let expected = row.found?;
        Some((row.number, row.given.to_string(), Box::new(move || found(row, expected)) as Box<dyn Fn()>))
    }));
}

#[test]
fn what_a_list_cannot_show() {
    run_cases(CASES);
}
