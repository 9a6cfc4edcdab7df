//! KEP-5972 on the node: containers that come and go (DESIGN §4 rules 1, 2, 4, 6, 8, 9).

use crate::bench::{Bench, Op};
use crate::kit::*;
use nodefold_core::event::{Fact, ProbeKind};
use nodefold_core::spec::{Container, Probe};
use nodefold_core::state::PendingKind;
use nodefold_core::status::{Condition, ConditionKind, ContainerState, PodPhase};
use nodefold_core::time::Nanos;

fn pending(bench: &Bench) -> Option<PendingKind> {
    bench.node.pod(POD).expect("the pod is known").pending.as_ref().map(|p| p.kind)
}

fn condition(bench: &Bench, kind: ConditionKind) -> Option<Condition> {
    bench.status().conditions.into_iter().find(|c| c.kind == kind)
}

fn is_ready(bench: &Bench) -> bool {
    condition(bench, ConditionKind::Ready).is_some_and(|c| c.status)
}

#[test]
fn an_added_container_runs_and_a_removed_one_is_stopped_within_its_grace() {
    let mut bench = Bench::running(pod(POD, vec![container("a")], vec![]));
    bench.change(|spec| spec.add(container("b")));
    assert_eq!(bench.take_story(), ["create b#0.0", "start b#0.0"]);
    bench.hold(Op::Stop, "b");
    bench.change(|spec| spec.remove("b"));
    assert_eq!(bench.take_story(), ["stop b#0.0"]);
    assert!(bench.is_running("b"), "removed from the allocation, it is shown running until it has ended");
    bench.pass(Nanos::secs(29));
    assert_eq!(bench.count(Op::Kill, "b"), 0);
    bench.pass(Nanos::secs(2));
    assert!(!bench.is_running("b"), "killed when its grace was over");
    assert!(matches!(bench.row("b").expect("kept").state, ContainerState::Terminated(_)));
    assert!(bench.is_running("a"));
}

#[test]
fn unallocated_rows_are_waiting_and_count_for_nothing() {
    let mut bench = Bench::running(pod(POD, vec![container("a")], vec![]));
    bench.change(|spec| spec.add(with_cpu(9000, container("huge"))));
    let row = bench.row("huge").expect("shown");
    let expected = ContainerState::Waiting {
        reason: "Unallocated".into(),
        message: "Container addition pending node allocation".into(),
    };
    assert_eq!((row.state, row.ready, row.id), (expected, false, None));
    assert!(is_ready(&bench), "what is not allocated doesn't make the pod unready");
    assert_eq!(bench.status().phase, PodPhase::Running);
    let shown = condition(&bench, ConditionKind::PodResizePending).expect("visibly pending");
    assert_eq!(&*shown.reason, "Infeasible");
    // Taken back, nothing of it is left.
    bench.change(|spec| spec.remove("huge"));
    assert!(bench.row("huge").is_none());
    assert!(condition(&bench, ConditionKind::PodResizePending).is_none());
}

#[test]
fn an_allocated_container_that_waits_makes_the_pod_unready_but_not_unbegun() {
    let mut bench = Bench::running(pod(POD, vec![container("a")], vec![]));
    bench.hold(Op::Pull, "b");
    bench.change(|spec| spec.add(container("b")));
    assert!(!is_ready(&bench));
    assert_eq!(bench.status().phase, PodPhase::Running, "or /dynamic would refuse the undo");
    bench.let_go(Op::Pull, "b");
    assert!(is_ready(&bench));
}

#[test]
fn a_probe_follows_its_container() {
    let mut bench = Bench::running(pod(POD, vec![container("a")], vec![]));
    let probed = Container { readiness_probe: Some(Probe { grace: None }), ..container("b") };
    bench.change(|spec| spec.add(probed));
    assert_eq!(bench.count(Op::Probe, "b"), 1);
    assert!(!is_ready(&bench), "until it is ready, the pod isn't");
    let container = bench.instance("b").expect("running");
    let passed = |passed| Fact::ProbeResult {
        pod: POD,
        container: container.clone(),
        probe: ProbeKind::Readiness,
        passed,
        message: "".into(),
    };
    bench.fact(passed(true));
    assert!(is_ready(&bench));
    bench.fact(passed(false));
    assert!(!is_ready(&bench));
    bench.change(|spec| spec.remove("b"));
    assert!(is_ready(&bench), "a removed one has no say");
}

#[test]
fn all_changes_of_one_request_are_allocated_or_none() {
    // The KEP's own e2e: an addition, a removal, a new image, and a resize beyond what there is.
    let given = vec![with_cpu(100, container("a")), container("b"), container("c")];
    let mut bench = Bench::new(config(1000));
    bench.apply(pod(OTHER, vec![with_cpu(500, container("x"))], vec![]));
    bench.apply(pod(POD, given, vec![]));
    bench.log.clear();
    bench.change(|spec| {
        spec.edit("a", |c| c.resources.requests = cpu_of(600));
        spec.edit("b", |c| c.image = "image:2".into());
        spec.remove("c");
        spec.add(container("d"));
    });
    assert_eq!(pending(&bench), Some(PendingKind::Deferred));
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.take_story(), Vec::<String>::new());
    let allocated = bench.node.allocated(POD).expect("allocated");
    let names: Vec<&str> = allocated.spec.containers.iter().map(|c| &*c.name).collect();
    assert_eq!((names, allocated.generation), (vec!["a", "b", "c"], 1));
    bench.change(|spec| spec.edit("a", |c| c.resources.requests = cpu_of(400)));
    bench.pass(Nanos::secs(60));
    assert_eq!(pending(&bench), None);
    assert!(bench.is_running("d") && !bench.is_running("c"));
    assert_eq!(&*bench.row("b").expect("shown").image, "image:2");
}

#[test]
fn a_new_image_waits_for_the_whole_request() {
    let mut bench = Bench::running(pod(POD, vec![container("a")], vec![]));
    bench.change(|spec| {
        spec.edit("a", |c| c.image = "image:2".into());
        spec.add(with_cpu(9000, container("huge")));
    });
    bench.exits("a", 1);
    bench.pass(Nanos::secs(60));
    assert_eq!(&*bench.row("a").expect("shown").image, "image:1", "not even by a restart");
}

#[test]
fn a_start_waits_for_the_room_that_a_stopping_container_of_its_pod_still_holds() {
    let mut bench = Bench::new(config(1000));
    bench.apply(pod(POD, vec![container("a"), with_cpu(800, container("b"))], vec![]));
    bench.hold(Op::Stop, "b");
    bench.change(|spec| {
        spec.remove("b");
        spec.add(with_cpu(800, container("c")));
    });
    // S5: the pod is charged what still runs; the exchange fits, one after the other.
    assert_eq!(pending(&bench), None);
    bench.pass(Nanos::secs(10));
    assert_eq!(bench.count(Op::Create, "c"), 0);
    bench.let_go(Op::Stop, "b");
    assert!(bench.is_running("c"));
}

#[test]
fn a_name_used_again_is_another_incarnation_that_inherits_nothing() {
    let mut bench = Bench::running(pod(POD, vec![container("a"), container("b")], vec![]));
    bench.exits("b", 3);
    bench.pass(Nanos::secs(60));
    bench.exits("b", 3);
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.row("b").expect("shown").restart_count, 2);
    // Removed and added with another definition in one step, as a coalescing watch delivers it.
    bench.hold(Op::Stop, "b");
    bench.log.clear();
    bench.change(|spec| {
        spec.remove("b");
        spec.add(Container { pre_stop: false, post_start: true, ..container("b") });
    });
    bench.pass(Nanos::secs(10));
    assert_eq!(bench.take_story(), ["stop b#0.2"], "not before the former is verifiably gone");
    bench.let_go(Op::Stop, "b");
    assert_eq!(bench.take_story(), ["create b#1.0", "start b#1.0"]);
    let row = bench.row("b").expect("shown");
    assert_eq!((row.restart_count, row.last_state), (0, None));
}

#[test]
fn ten_removed_statuses_are_kept_the_newest_ones() {
    let mut bench = Bench::running(pod(POD, vec![container("a")], vec![]));
    for n in 0..13 {
        let name = format!("job-{n:02}");
        bench.change(|spec| spec.add(job(&name)));
        bench.exits(&name, n);
        bench.change(|spec| spec.remove(&name));
        bench.pass(Nanos::secs(1));
    }
    let kept: Vec<String> =
        bench.status().containers.iter().map(|c| c.name.to_string()).filter(|n| n != "a").collect();
    let expected: Vec<String> = (3..13).map(|n| format!("job-{n:02}")).collect();
    assert_eq!(kept, expected);
    // A removed status and its container go together.
    for n in 0..3 {
        assert_eq!(bench.count(Op::Remove, &format!("job-{n:02}")), 1);
    }
    let row = bench.row("job-12").expect("kept");
    let ContainerState::Terminated(end) = row.state else { panic!("it has ended: {row:?}") };
    assert_eq!(end.exit_code, 12, "with its own exit code");
}

#[test]
fn a_container_removed_before_it_ever_ran_leaves_nothing() {
    let mut bench = Bench::running(pod(POD, vec![container("a")], vec![]));
    bench.hold(Op::Pull, "b");
    bench.change(|spec| spec.add(container("b")));
    bench.change(|spec| spec.remove("b"));
    bench.let_go(Op::Pull, "b");
    bench.pass(Nanos::secs(600));
    assert!(bench.row("b").is_none());
    assert_eq!(bench.count(Op::Create, "b"), 0);
}

#[test]
fn a_removed_container_is_not_restarted_by_anybody() {
    let mut bench = Bench::running(pod(POD, vec![container("a"), container("b")], vec![]));
    bench.hold(Op::Stop, "b");
    bench.change(|spec| spec.remove("b"));
    bench.exits("b", 1);
    bench.restart_whole();
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.count(Op::Create, "b"), 0);
    assert!(matches!(bench.row("b").expect("kept").state, ContainerState::Terminated(_)));
}

#[test]
fn removed_rows_and_incarnations_survive_a_restart() {
    let mut bench = Bench::running(pod(POD, vec![container("a"), job("b")], vec![]));
    bench.exits("b", 7);
    bench.change(|spec| spec.remove("b"));
    bench.restart_whole();
    bench.reboot();
    bench.relist();
    let ContainerState::Terminated(end) = bench.row("b").expect("kept").state else { panic!("it has ended") };
    assert_eq!(end.exit_code, 7);
    bench.log.clear();
    bench.change(|spec| spec.add(container("b")));
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.instance("b").map(|id| (id.incarnation, id.attempt)), Some((1, 0)));
}

#[test]
fn an_addition_is_not_made_twice_by_a_restart_in_the_middle() {
    for hangs in [Op::Pull, Op::Create, Op::Start] {
        let mut bench = Bench::running(pod(POD, vec![container("a")], vec![]));
        bench.hold(hangs, "b");
        bench.change(|spec| spec.add(container("b")));
        // The answer dies with the agent; what was done stays done.
        let command = bench.take_held(hangs, "b");
        let _lost = bench.do_unanswered(&command);
        bench.let_go(hangs, "b");
        bench.restart_whole();
        bench.pass(Nanos::secs(60));
        assert!(bench.is_running("b"), "{hangs:?}");
        assert_eq!(bench.live_containers("b"), 1, "{hangs:?}");
    }
}
