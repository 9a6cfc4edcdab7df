//! Cases 78 to 83: actuating a resize, and the crash back-off.

use crate::kit::*;
use nodefold_core::command::Action;
use nodefold_core::event::SeenState;
use nodefold_core::resources::{ResourceName, Resources};
use nodefold_core::spec::{Container, Pod, RestartPolicy};
use nodefold_core::status::{ConditionKind, ContainerState};
use nodefold_core::time::Nanos;

fn resources(requests: (u64, u64), limits: (u64, u64)) -> Resources {
    Resources { requests: amounts(requests.0, requests.1), limits: amounts(limits.0, limits.1) }
}

/// Two containers; `c0` is resized.
fn of(resources: Resources, restarts: &[ResourceName]) -> Pod {
    let c0 = Container { resources, resize_restarts: restarts.to_vec().into(), ..container("c0") };
    pod(UID, spec(RestartPolicy::Always, vec![], vec![c0, container("c1")]))
}

/// Applies the new resources and returns where the log stood before. All is answered.
fn resized(bench: &mut Bench, before: &Pod, to: Resources) -> usize {
    let mark = bench.mark();
    bench.pod(&edited(before, |spec| change(spec, "c0", |c| c.resources = to)));
    bench.run();
    mark
}

fn told_to_runtime(bench: &Bench, since: usize) -> Vec<Resources> {
    let of = |c: &nodefold_core::Command| match &c.action {
        Action::ResizeContainer { resources, .. } => Some(resources.clone()),
        _ => None,
    };
    bench.log[since..].iter().filter_map(of).collect()
}

/// 78: in place; the pod's cgroup grows before its containers and shrinks after them.
fn in_place() {
    let (small, large) = (resources((100, GI), (100, GI)), resources((200, 2 * GI), (200, 2 * GI)));
    let before = of(small.clone(), &[]);
    let mut bench = Bench::with(&before);
    let mark = resized(&mut bench, &before, large.clone());
    assert_eq!(bench.deeds(mark), ["resize-pod", "resize c0"], "grows from outside in");
    assert_eq!(told_to_runtime(&bench, mark), std::slice::from_ref(&large), "cpu and memory in one call");
    assert_eq!(bench.condition(UID, ConditionKind::PodResizeInProgress), None);
    let before = of(large, &[]);
    let mut bench = Bench::with(&before);
    let mark = resized(&mut bench, &before, small);
    assert_eq!(bench.deeds(mark), ["resize c0", "resize-pod"], "shrinks from inside out");
}

/// 79: a resource whose policy says so restarts its container, with the new resources, and the pod's cgroup follows.
fn with_restart() {
    for name in [ResourceName::Cpu, ResourceName::Memory] {
        let before = of(resources((100, GI), (100, GI)), &[name]);
        let large = resources((200, 2 * GI), (200, 2 * GI));
        let mut bench = Bench::with(&before);
        let mark = resized(&mut bench, &before, large.clone());
        let deeds = bench.deeds(mark);
        assert_eq!(told_to_runtime(&bench, mark), [], "no update in place");
        let at = |deed: &str| deeds.iter().position(|d| d == deed).expect(deed);
        assert!(at("stop c0") < at("create c0") && at("create c0") < at("start c0"), "{deeds:?}");
        assert!(at("resize-pod") < at("start c0"), "room for it first: {deeds:?}");
        assert!(!deeds.contains(&"stop c1".to_string()));
        let row = bench.row(UID, "c0");
        assert_eq!((row.restart_count, row.resources), (1, large));
        assert_eq!(bench.condition(UID, ConditionKind::PodResizeInProgress), None, "done");
    }
}

/// 80: only what changes counts.
fn other_policy() {
    let before = of(resources((100, GI), (100, GI)), &[ResourceName::Cpu]);
    let mut bench = Bench::with(&before);
    let to = resources((100, 2 * GI), (100, 2 * GI));
    let mark = resized(&mut bench, &before, to.clone());
    assert_eq!((told_to_runtime(&bench, mark), bench.count(mark, "stop")), (vec![to], 0));
}

/// 81: what means the same to the kernel is not told to anybody.
fn equivalents() {
    let rows = [
        (resources((1, 0), (1, 0)), resources((2, 0), (10, 0))),
        (resources((2, 0), (10, 0)), resources((1, 0), (1, 0))),
        (resources((0, 0), (0, 0)), resources((2, 0), (0, 0))),
    ];
    for (from, to) in rows {
        for restarts in [vec![], vec![ResourceName::Cpu]] {
            let before = of(from.clone(), &restarts);
            let mut bench = Bench::with(&before);
            let mark = resized(&mut bench, &before, to.clone());
            assert_eq!(bench.deeds(mark), Vec::<String>::new(), "{from:?} to {to:?}");
            assert_eq!(bench.allocated(UID, "c0"), to);
            assert_eq!(
                bench.condition(UID, ConditionKind::PodResizeInProgress),
                None,
                "nothing to do is done"
            );
        }
    }
}

/// 82: no exit, the first exit, later exits.
fn crash_back_off() {
    let mut bench = Bench::with(&mains(RestartPolicy::Always, 1));
    assert_eq!(bench.count(0, "start"), 1, "none while it runs");
    for delay in [0, 10, 20, 40, 80, 160, 300, 300] {
        let mark = bench.mark();
        let ended = bench.now;
        bench.exits(UID, "c0", 1);
        bench.run();
        if delay > 0 {
            assert_eq!(bench.count(mark, "start"), 0, "after {delay} s");
            let row = bench.row(UID, "c0");
            let ContainerState::Waiting { reason, .. } = row.state else { panic!("waits") };
            assert_eq!(&*reason, "CrashLoopBackOff");
            assert_eq!(row.last_state.expect("a last state").exit_code, 1);
            assert_eq!(bench.told(mark, "BackOff"), 1);
            assert_eq!(
                bench.node.next_deadline(),
                Some(ended.after(Nanos::secs(delay))),
                "to the nanosecond"
            );
            bench.pass(Nanos::secs(delay));
        }
        assert_eq!(bench.count(mark, "start"), 1, "after {delay} s");
    }
    // Ten minutes of running, and the count begins anew.
    bench.pass(Nanos::secs(601));
    let mark = bench.mark();
    bench.exits(UID, "c0", 1);
    bench.run();
    assert_eq!(bench.count(mark, "start"), 1);
    assert_eq!(bench.row(UID, "c0").restart_count, 9);
    let running = bench.host.containers.values().filter(|s| matches!(s, SeenState::Running { .. })).count();
    assert_eq!(running, 1);
}

/// 83
fn memory_request_alone() {
    let before = of(resources((100, GI), (100, 4 * GI)), &[]);
    let mut bench = Bench::with(&before);
    let to = resources((100, 2 * GI), (100, 4 * GI));
    let mark = resized(&mut bench, &before, to.clone());
    assert_eq!(bench.deeds(mark), Vec::<String>::new());
    assert_eq!(bench.allocated(UID, "c0"), to);
    assert_eq!(bench.row(UID, "c0").resources, to, "what is allocated is in force");
    assert_eq!(bench.condition(UID, ConditionKind::PodResizeInProgress), None);
}

const CASES: &[Case] = &[
    Case { number: 78, given: "cpu and memory, NotRequired", run: in_place },
    Case { number: 79, given: "cpu and memory, one of them RestartContainer", run: with_restart },
    Case { number: 80, given: "memory only, cpu RestartContainer", run: other_policy },
    Case { number: 81, given: "values that mean the same", run: equivalents },
    Case { number: 82, given: "crash history", run: crash_back_off },
    Case { number: 83, given: "memory request only", run: memory_request_alone },
];

pub fn numbers() -> Vec<u32> {
    CASES.iter().map(|c| c.number).collect()
}

#[test]
fn resizes_and_back_off() {
    run_cases(CASES);
}

#[test]
fn a_pods_resources_are_what_is_in_force_and_not_what_is_allocated() {
    let (small, large) = (resources((100, GI), (100, GI)), resources((200, 2 * GI), (200, 2 * GI)));
    let c0 = Container { resources: small.clone(), ..container("c0") };
    let before = pod(UID, spec(RestartPolicy::Always, vec![], vec![c0]));
    let mut bench = Bench::with(&before);
    bench.hold(crate::kit::of("resize", "c0"));
    resized(&mut bench, &before, large.clone());
    assert_eq!(bench.allocated(UID, "c0"), large);
    assert_eq!(bench.status(UID).resources.requests, small.requests, "the runtime acknowledged no other");
    bench.let_go();
    bench.run();
    assert_eq!(bench.status(UID).resources.requests, large.requests);
}

/// A start waits for the room of what was removed (DESIGN §4 rule 6), and for that of a container that is yet to shrink: what
/// its pod is charged may have gone to another meanwhile (S5).
#[test]
fn a_restart_waits_until_its_neighbour_has_shrunk() {
    let (small, large) = (resources((100, GI), (100, GI)), resources((200, 2 * GI), (200, 2 * GI)));
    let c0 = Container { resources: large, ..container("c0") };
    let c1 = Container { resources: small.clone(), ..container("c1") };
    let before = pod(UID, spec(RestartPolicy::Always, vec![], vec![c0, c1]));
    let mut bench = Bench::with(&before);
    bench.hold(crate::kit::of("resize", "c0"));
    resized(&mut bench, &before, small);
    let mark = bench.mark();
    bench.exits(UID, "c1", 1);
    bench.run();
    assert_eq!(bench.count(mark, "start"), 0);
    bench.let_go();
    bench.run();
    assert_eq!(bench.count(mark, "start"), 1);
}

/// 81, the other way round: no limit at all is not a small limit.
#[test]
fn a_limit_that_comes_or_goes_is_a_change() {
    let (none, some) = (resources((1, 0), (0, 0)), resources((1, 0), (10, 0)));
    for (from, to) in [(none.clone(), some.clone()), (some, none)] {
        let before = of(from, &[]);
        let mut bench = Bench::with(&before);
        let mark = resized(&mut bench, &before, to.clone());
        assert_eq!(told_to_runtime(&bench, mark), [to]);
    }
}

#[test]
fn a_refused_resize_of_the_pod_waits_for_its_back_off() {
    let before = of(resources((100, GI), (100, GI)), &[]);
    let mut bench = Bench::with(&before);
    bench.hold(verb("resize-pod"));
    let mark = resized(&mut bench, &before, resources((200, 2 * GI), (200, 2 * GI)));
    let refused = bench.take(verb("resize-pod"));
    bench.apply(refused.failed(error("busy")).expect("a resize can fail"));
    bench.run();
    assert_eq!(bench.count(mark, "resize-pod"), 1, "not at once");
    bench.pass(Nanos::secs(2));
    assert_eq!(bench.count(mark, "resize-pod"), 2);
}
