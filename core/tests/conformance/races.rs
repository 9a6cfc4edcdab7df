//! Historical races (kubelet-pods §6) that no scenario can tell, since no simulated host does such a thing.

use crate::kit::*;
use nodefold_core::Fact;
use nodefold_core::command::Action;
use nodefold_core::event::SeenState;
use nodefold_core::ids::OpId;
use nodefold_core::spec::RestartPolicy;
use nodefold_core::status::ContainerState;
use nodefold_core::time::{Nanos, Time};

/// B11: the runtime loses a run-once container without a record of its end. It counts as failed, and never runs again.
#[test]
fn b11_a_vanished_container_looks_never_run() {
    let mut bench = Bench::with(&mains(RestartPolicy::Never, 1));
    let mark = bench.mark();
    bench.host.containers.clear();
    bench.restart_agent();
    bench.pod(&mains(RestartPolicy::Never, 1));
    bench.sources_ready();
    bench.run();
    assert_eq!(bench.asked(mark, &["create", "start"]).len(), 0, "run-once is not run twice");
    assert_eq!(bench.phase(UID), "Failed");
    match bench.row(UID, "c0").state {
        ContainerState::Terminated(end) => {
            assert_eq!((end.exit_code, &*end.reason), (137, "ContainerStatusUnknown"));
        }
        other => panic!("{other:?}"),
    }
}

/// B2: an old list shows the very container running whose end is known, and its sandbox ready. What has terminated stays so,
/// nothing is started, and what the list shows is at most ended once more.
#[test]
fn b2_an_old_list_does_not_bring_a_terminated_pod_back() {
    let of_pod = mains(RestartPolicy::Never, 1);
    let mut bench = Bench::booted(config());
    bench.pod(&of_pod);
    bench.run();
    let old = (bench.host.seen_sandboxes(), bench.host.seen_containers());
    bench.exits(UID, "c0", 0);
    bench.run();
    bench.hold(verb("observe-runtime"));
    bench.restart_agent();
    bench.sources_ready();
    bench.run();
    let mark = bench.mark();
    let op = bench.take(verb("observe-runtime")).op;
    bench.apply(Fact::RuntimeObserved { op, complete: true, sandboxes: old.0, containers: old.1 });
    bench.let_go();
    bench.run();
    bench.pass(Nanos::secs(600));
    assert_eq!((bench.state(UID).label(), bench.phase(UID)), ("Terminated", "Succeeded"));
    assert_eq!(bench.asked(mark, &["pull", "create", "start"]).len(), 0, "{:?}", bench.deeds(mark));
    assert_eq!(bench.count(mark, "sandbox"), 0, "{:?}", bench.deeds(mark));
    assert!(bench.asked(mark, &["stop", "kill"]).len() <= 1, "{:?}", bench.deeds(mark));
}

/// B33: stamps in a wrong unit, of zero, and of the end of time. What comes later still counts, and no wait grows with them.
#[test]
fn b33_a_poisoned_stamp_holds_nothing_up() {
    let bad =
        |now: Time| [Time(0), Time(now.0 / 1_000_000_000), Time(now.0.saturating_mul(4)), Time(u64::MAX)];
    for which in 0..4 {
        let mut bench = Bench::with(&mains(RestartPolicy::Always, 1));
        for attempt in 0..3u32 {
            let stamp = bad(bench.now)[which];
            let running = SeenState::Running { started_at: stamp };
            bench.host.containers.insert((UID, id("c0", attempt)), running);
            bench.restart_agent();
            bench.sources_ready();
            bench.run();
            let mark = bench.mark();
            let ended = bench.host.end(UID, id("c0", attempt), exit(1, stamp));
            bench.apply(ended);
            bench.run();
            bench.pass(Nanos::secs(60));
            assert_eq!(bench.asked(mark, &["start"]).len(), 1, "stamp {which}: started again in time");
            assert_eq!(bench.count(mark, "start"), 1, "stamp {which}: and not again and again");
            assert_eq!(bench.row(UID, "c0").restart_count, attempt + 1, "stamp {which}");
        }
    }
}

/// What a useless sandbox is like: told ready without an address, or dead as soon as it is up.
fn useless_sandboxes(dies: bool) {
    let mut bench = Bench::booted(config());
    bench.hold(verb("sandbox"));
    // So that no container ever comes so far.
    bench.hold(verb("pull"));
    bench.pod(&mains(RestartPolicy::Always, 1));
    bench.run();
    let (mut gaps, mut last) = (Vec::new(), bench.now);
    for _ in 0..10 {
        let command = bench.take(verb("sandbox"));
        gaps.push(bench.now.since(last).0 / 1_000_000_000);
        last = bench.now;
        let attempt = bench.state(UID).sandbox.as_ref().expect("it is being made").attempt;
        let ip = dies.then(|| name("10.0.0.1"));
        bench.host.sandboxes.insert((UID, attempt), true);
        bench.apply(Fact::SandboxReady { op: command.op, pod: UID, attempt, ip });
        if dies {
            bench.apply(Fact::SandboxStopped { pod: UID, attempt });
        }
        let made = bench.log.iter().filter(|c| c.action.verb() == "sandbox").count();
        for _ in 0..700 {
            if bench.log.iter().filter(|c| c.action.verb() == "sandbox").count() == made {
                bench.pass(Nanos::millis(100));
            }
        }
    }
    assert_eq!(gaps, [0, 0, 2, 4, 8, 16, 32, 60, 60, 60], "dies: {dies}");
    // One whose pod is to go waits for nothing.
    let command = bench.take(verb("sandbox"));
    let attempt = bench.state(UID).sandbox.as_ref().expect("it is being made").attempt;
    bench.host.sandboxes.insert((UID, attempt), true);
    bench.apply(Fact::SandboxReady { op: command.op, pod: UID, attempt, ip: None });
    bench.run();
    let pod = deleted(&mains(RestartPolicy::Always, 1), bench.now, 1);
    bench.pod(&pod);
    bench.run();
    bench.remove_pod(UID);
    bench.run();
    assert!(bench.node.pod(UID).is_none_or(|pod| pod.is_terminated()), "it is gone at once");
}

#[test]
fn a_sandbox_of_no_use_is_made_again_with_a_back_off() {
    useless_sandboxes(false);
    useless_sandboxes(true);
}

/// A sandbox in which a container ran is renewed at once, as ever.
#[test]
fn a_sandbox_that_was_of_use_is_renewed_at_once() {
    let mut bench = Bench::with(&mains(RestartPolicy::Always, 1));
    let mark = bench.mark();
    bench.host.sandboxes.insert((UID, 0), false);
    bench.apply(Fact::SandboxStopped { pod: UID, attempt: 0 });
    bench.run();
    assert_eq!(bench.count(mark, "sandbox"), 1, "{:?}", bench.deeds(mark));
}

/// Found by the hunt: the clock was set back by minutes, and all that ends is stamped so. Each restart still waits for its back-off.
#[test]
fn a_clock_that_was_set_back_ends_no_back_off() {
    let mut bench = Bench::with(&mains(RestartPolicy::Always, 1));
    bench.pass(Nanos::secs(500));
    let before = bench.now;
    for _ in 0..2 {
        bench.exits(UID, "c0", 1);
        bench.pass(Nanos::secs(20));
    }
    let mark = bench.mark();
    bench.now = Time(before.0 - Nanos::secs(400).0);
    bench.exits(UID, "c0", 1);
    bench.run();
    assert_eq!(bench.count(mark, "start"), 0);
}

/// Found by a mutant: that another removal failed, told late, says nothing of the one under way, and nothing is asked for twice.
#[test]
fn a_removal_that_failed_before_is_not_the_one_under_way() {
    let mut bench = Bench::with(&mains(RestartPolicy::Always, 1));
    bench.hold(verb("remove"));
    for _ in 0..2 {
        bench.exits(UID, "c0", 1);
        bench.pass(Nanos::secs(60));
    }
    let under_way = bench.take(verb("remove"));
    let Action::RemoveContainer { container } = under_way.action else { panic!("{under_way:?}") };
    let mark = bench.mark();
    let fails =
        |op| Fact::ContainerRemoveFailed { op, pod: UID, container: container.clone(), error: error("no") };
    bench.apply(fails(OpId(1)));
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.count(mark, "remove"), 0);
    bench.apply(fails(under_way.op));
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.count(mark, "remove"), 1);
}
