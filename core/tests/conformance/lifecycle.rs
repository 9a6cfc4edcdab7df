//! Cases 84 to 92: a pod's life on the node, from its source's first word to the last.

use crate::kit::*;
use nodefold_core::Fact;
use nodefold_core::anomaly::AnomalyKind;
use nodefold_core::command::Action;
use nodefold_core::event::{SeenState, UsageOf};
use nodefold_core::ids::{PodUid, Source, VolumeId};
use nodefold_core::spec::{
    Container, HostPort, Medium, Pod, PodSpec, RestartPolicy, TerminalPhase, Volume, VolumeMount,
    VolumeSource,
};
use nodefold_core::state::{Lifecycle, TerminationCause};
use nodefold_core::time::Nanos;
use std::sync::Arc;

use RestartPolicy::Always;

/// The grace that a terminating pod was given, and why it ends.
fn termination(bench: &Bench, uid: PodUid) -> (u64, TerminationCause) {
    match &bench.state(uid).lifecycle {
        Lifecycle::Terminating(t) => (t.deadline.since(t.since).as_secs(), t.cause),
        other => panic!("{other:?}"),
    }
}

fn grace_of_stop(bench: &Bench, since: usize) -> Vec<u64> {
    let of = |c: &nodefold_core::Command| match &c.action {
        Action::StopContainer { grace, .. } => Some(grace.as_secs()),
        Action::KillContainer { .. } => Some(0),
        _ => None,
    };
    bench.log[since..].iter().filter_map(of).collect()
}

fn forgotten(bench: &Bench, uid: PodUid) -> bool {
    bench.node.pod(uid).is_none()
}

/// 84
fn created() {
    let bench = Bench::with(&mains(Always, 1));
    assert_eq!(bench.state(UID).label(), "Active");
    assert_eq!(bench.asked(0, &["start"]).len(), 1);
}

/// 85: a static pod's file goes and comes back before its pod has ended.
fn wanted_again() {
    let of_pod = Pod { source: Source::File, ..mains(Always, 1) };
    let mut bench = Bench::with(&of_pod);
    bench.hold(verb("stop"));
    bench.remove_pod(UID);
    bench.run();
    let mark = bench.mark();
    bench.pod(&of_pod);
    bench.run();
    assert_eq!(bench.state(UID).label(), "Terminating", "an end that began is an end");
    assert!(bench.state(UID).again.is_some(), "and it is remembered");
    assert_eq!(bench.count(mark, "start"), 0);
    bench.let_go();
    bench.run();
    assert_eq!(bench.state(UID).label(), "Active", "its next life (B6)");
    assert_eq!(bench.count(mark, "start"), 1);
    assert_eq!(bench.row(UID, "c0").restart_count, 0);
}

/// 86
fn deleted_gracefully() {
    let of_pod = mains(Always, 1);
    let mut bench = Bench::with(&of_pod);
    bench.hold(verb("stop"));
    bench.hold(verb("release"));
    let mark = bench.mark();
    bench.pod(&deleted(&of_pod, bench.now, 15));
    bench.run();
    assert_eq!(termination(&bench, UID), (15, TerminationCause::Deleted));
    assert_eq!(grace_of_stop(&bench, mark), [15]);
    assert_eq!(bench.count(mark, "release"), 0, "not while it runs (S8)");
    let op = bench.open(verb("stop"));
    let stop = bench.take(verb("stop"));
    assert_eq!(stop.op, op);
    bench.exits(UID, "c0", 0);
    bench.run();
    assert_eq!((bench.state(UID).label(), bench.phase(UID)), ("Terminated", "Succeeded"));
    bench.let_go();
    bench.run();
    assert!(forgotten(&bench, UID), "released and forgotten");
    let deeds: Vec<&str> = bench.log[mark..].iter().map(|c| c.action.verb()).collect();
    let at = |verb: &str| deeds.iter().rposition(|d| *d == verb).expect("it was done");
    assert!(at("stop-sandbox") < at("status") && at("status") < at("release"), "{deeds:?}");
}

/// 87: evicted, which is not deleted. SEMANTICS: the one thing that makes this node evict is a local storage limit, for which
/// the kubelet gives one second; a node's decision without a grace of its own, as activeDeadlineSeconds, gives the spec's.
fn evicted() {
    let base = mains(Always, 1);
    let mut spec = (*base.spec).clone();
    let source = VolumeSource::EmptyDir { medium: Medium::Disk, size_limit: Some(10) };
    spec.volumes.push(Arc::new(Volume { name: name("v"), source, rest: Default::default() }));
    let of_pod = Pod { spec: Arc::new(spec), ..base.clone() };
    let mut bench = Bench::with(&of_pod);
    let volume = VolumeId { name: name("v"), generation: 0 };
    bench.hold(verb("stop"));
    bench.apply(Fact::UsageReported { pod: UID, of: UsageOf::Volume(volume), bytes: 11 });
    bench.run();
    assert_eq!(termination(&bench, UID), (1, TerminationCause::Evicted));
    bench.let_go();
    bench.pass(Nanos::secs(60));
    let status = bench.status(UID);
    assert_eq!((status.phase.as_str(), &*status.reason), ("Failed", "Evicted"));
    assert_eq!(bench.count(0, "release"), 0, "not deleted");

    let limited = edited(&base, |spec| spec.active_deadline = Some(Nanos::secs(100)));
    let mut bench = Bench::with(&limited);
    bench.hold(verb("stop"));
    bench.pass(Nanos::secs(101));
    assert_eq!(termination(&bench, UID), (30, TerminationCause::DeadlineExceeded));
    bench.let_go();
    bench.pass(Nanos::secs(60));
    let status = bench.status(UID);
    assert_eq!((status.phase.as_str(), &*status.reason), ("Failed", "DeadlineExceeded"));
    assert_eq!(bench.count(0, "release"), 0);
}

/// 88
fn ended_before_it_was_seen() {
    let of_pod = Pod { api_terminal: Some(TerminalPhase::Succeeded), ..mains(Always, 1) };
    // The runtime shows it stopped, or nothing of it: born terminated.
    for ended in [false, true] {
        let mut bench = Bench::started(config());
        if ended {
            let ended = SeenState::Exited(exit(0, bench.now));
            bench.host.containers.insert((UID, id("c0", 0)), ended);
        }
        bench.run();
        bench.pod(&of_pod);
        assert_eq!(bench.state(UID).label(), "Terminated");
        bench.sources_ready();
        bench.run();
        assert_eq!((bench.phase(UID), bench.deeds(0)), ("Succeeded", vec![]));
        assert_eq!(bench.count(0, "status"), 0, "how its containers ended is known only to the API (B28)");
    }
    // It still runs: the whole way of an end, and the phase stands.
    let mut bench = Bench::started(config());
    bench.host.sandboxes.insert((UID, 0), true);
    let running = SeenState::Running { started_at: bench.now };
    bench.host.containers.insert((UID, id("c0", 0)), running);
    bench.run();
    bench.hold(verb("stop"));
    bench.pod(&of_pod);
    bench.sources_ready();
    bench.run();
    assert_eq!(bench.state(UID).label(), "Terminating");
    assert_eq!(grace_of_stop(&bench, 0), [30]);
    bench.let_go();
    bench.run();
    assert_eq!((bench.state(UID).label(), bench.phase(UID)), ("Terminated", "Succeeded"));
    assert_eq!(bench.deeds(0), ["stop c0", "stop-sandbox"]);
    // Nobody has looked yet: an end is not concluded from ignorance.
    let mut bench = Bench::started(config());
    bench.host.sandboxes.insert((UID, 0), true);
    let running = SeenState::Running { started_at: bench.now };
    bench.host.containers.insert((UID, id("c0", 0)), running);
    bench.pod(&of_pod);
    assert_ne!(bench.state(UID).label(), "Terminated", "B1");
    bench.sources_ready();
    bench.run();
    assert_eq!(bench.deeds(0), ["stop c0", "stop-sandbox"]);
    assert_eq!(bench.phase(UID), "Succeeded");
}

/// 89
fn orphan() {
    let mut bench = Bench::started(config());
    bench.host.sandboxes.insert((UID, 0), true);
    let running = SeenState::Running { started_at: bench.now };
    bench.host.containers.insert((UID, id("c0", 0)), running);
    bench.host.mounts.insert((UID, VolumeId { name: name("v"), generation: 2 }));
    bench.run();
    assert_eq!(bench.deeds(0), Vec::<String>::new(), "somebody may still name it");
    bench.hold(verb("stop"));
    bench.sources_ready();
    bench.run();
    assert_eq!(bench.count(0, "unmount"), 0, "it may hold what is mounted (S1)");
    assert_eq!(termination(&bench, UID), (1, TerminationCause::Orphan));
    assert_eq!(grace_of_stop(&bench, 0), [2], "TERM, with the floor of a container's stop");
    bench.let_go();
    bench.run();
    assert_eq!(bench.deeds(0), ["stop c0", "stop-sandbox"], "nothing of it is ever started");
    assert!(forgotten(&bench, UID), "then forgotten");
    assert!(bench.host.sandboxes.is_empty() && bench.host.mounts.is_empty(), "with all that it had");
}

/// 90
fn late_sight_of_a_terminated_pod() {
    for and_deleted in [false, true] {
        let of_pod = mains(RestartPolicy::Never, 1);
        let mut bench = Bench::with(&of_pod);
        bench.exits(UID, "c0", 0);
        bench.run();
        assert_eq!((bench.state(UID).label(), bench.phase(UID)), ("Terminated", "Succeeded"));
        let running = SeenState::Running { started_at: bench.now };
        bench.host.containers.insert((UID, id("c0", 7)), running);
        bench.host.sandboxes.insert((UID, 0), true);
        bench.hold(verb("release"));
        bench.hold(verb("kill"));
        bench.restart_agent();
        if and_deleted {
            bench.pod(&deleted(&of_pod, bench.now, 30));
        }
        bench.sources_ready();
        bench.run();
        assert_eq!(
            (bench.state(UID).label(), bench.phase(UID)),
            ("Terminated", "Succeeded"),
            "absorbing (B2)"
        );
        assert_eq!(bench.count(0, "release"), 0, "not while something of it may run (S8)");
        assert_eq!(bench.asked(0, &["kill"]).len(), 1, "what runs beside the record is killed (B27)");
        assert_eq!(bench.node.anomalies().counts().get(&AnomalyKind::SurplusContainer), Some(&1));
        bench.let_go();
        bench.run();
        assert_eq!(forgotten(&bench, UID), and_deleted);
        if !and_deleted {
            assert_eq!(bench.phase(UID), "Succeeded");
            assert_eq!(bench.host.sandboxes.get(&(UID, 0)), Some(&false), "its sandbox is stopped again");
        }
    }
}

/// 91: twenty pods are created, killed and updated in one go; the kill is never lost.
fn burst() {
    let mut bench = Bench::booted(config());
    for uid in 1..=20 {
        let of_pod = pod(PodUid(uid), (*mains(Always, 1).spec).clone());
        let gone = deleted(&of_pod, bench.now, 30);
        if uid % 2 == 0 {
            bench.pod(&of_pod);
        }
        bench.pod(&gone);
        bench.pod(&edited(&gone, |spec| change(spec, "c0", |c| c.image = name("other"))));
    }
    bench.run();
    for uid in 1..=20 {
        assert!(forgotten(&bench, PodUid(uid)), "pod {uid}");
    }
    assert_eq!(bench.count(0, "release"), 20, "each is released once");
    assert_eq!(bench.count(0, "start"), 0, "and none was ever started");
    assert!(bench.host.sandboxes.is_empty() && bench.host.containers.is_empty());
}

/// 92: spec 30; deletion 5; a shorter request on top; zero either way.
fn grace() {
    let of_pod = mains(Always, 1);
    let ending = |end: &dyn Fn(&mut Bench)| {
        let mut bench = Bench::with(&of_pod);
        bench.hold(verb("stop"));
        end(&mut bench);
        bench.run();
        termination(&bench, UID).0
    };
    let file = Pod { source: Source::File, ..of_pod.clone() };
    let mut bench = Bench::with(&file);
    bench.hold(verb("stop"));
    bench.remove_pod(UID);
    bench.run();
    assert_eq!(termination(&bench, UID).0, 30, "the spec's own");
    assert_eq!(ending(&|bench| bench.pod(&deleted(&of_pod, bench.now, 5))), 5);
    let shortened = ending(&|bench| {
        bench.pod(&deleted(&of_pod, bench.now, 5));
        bench.run();
        bench.pod(&deleted(&of_pod, bench.now, 2));
    });
    assert_eq!(shortened, 2);
    let lengthened = ending(&|bench| {
        bench.pod(&deleted(&of_pod, bench.now, 5));
        bench.run();
        bench.pod(&deleted(&of_pod, bench.now, 100));
    });
    assert_eq!(lengthened, 5, "it only shrinks");
    assert_eq!(ending(&|bench| bench.pod(&deleted(&of_pod, bench.now, 0))), 1);
    assert_eq!(ending(&|bench| bench.remove_pod(UID)), 1, "force-deleted");
    // A shorter grace overtakes the stop under way (B24).
    let mut bench = Bench::with(&of_pod);
    bench.hold(verb("stop"));
    bench.pod(&deleted(&of_pod, bench.now, 120));
    bench.run();
    let mark = bench.mark();
    bench.pod(&deleted(&of_pod, bench.now, 10));
    bench.run();
    assert_eq!(grace_of_stop(&bench, mark), [10]);
}

const CASES: &[Case] = &[
    Case { number: 84, given: "create", run: created },
    Case { number: 85, given: "create, kill, create", run: wanted_again },
    Case { number: 86, given: "deleted with grace 15", run: deleted_gracefully },
    Case { number: 87, given: "evicted", run: evicted },
    Case { number: 88, given: "first seen with a terminal phase", run: ended_before_it_was_seen },
    Case { number: 89, given: "orphan", run: orphan },
    Case { number: 90, given: "late sight of a terminated pod", run: late_sight_of_a_terminated_pod },
    Case { number: 91, given: "burst", run: burst },
    Case { number: 92, given: "grace", run: grace },
];

pub fn numbers() -> Vec<u32> {
    CASES.iter().map(|c| c.number).collect()
}

#[test]
fn a_pods_life() {
    run_cases(CASES);
}

/// A container whose definition has a postStart hook and no probe is started when its hook is done (KEP-5972 "Probe Manager").
#[test]
fn a_hook_runs_without_any_probe() {
    let hooked = Container { post_start: true, ..container("c0") };
    let mut bench = Bench::booted(config());
    bench.pod(&pod(UID, spec(Always, vec![], vec![hooked])));
    bench.hold(verb("hook"));
    bench.run();
    assert_eq!(bench.count(0, "hook"), 1, "asked for once it runs");
    assert!(!bench.row(UID, "c0").started, "and until it is done the container is not started");
    bench.let_go();
    bench.run();
    assert!(bench.row(UID, "c0").started);
}

/// Found by fuzzing: a pod that was found on the host, taken for an orphan and then wanted after all was booked under no name.
/// It could not be looked up, a second one of its name started beside it (S6), and no mirror pod was made of it.
#[test]
fn an_orphan_that_is_wanted_again_has_its_own_name() {
    let mut bench = Bench::started(config());
    bench.host.sandboxes.insert((UID, 0), true);
    bench.run();
    bench.hold(verb("stop-sandbox"));
    bench.sources_ready();
    bench.run();
    let wanted = Pod { source: Source::File, ..mains(Always, 1) };
    bench.pod(&wanted);
    bench.let_go();
    bench.run();
    assert_eq!(bench.node.find_pod(&wanted.namespace, &wanted.name), Some(UID));
    assert_eq!(bench.count(0, "create-mirror"), 1);
    let second = Pod { uid: PodUid(77), ..wanted };
    bench.pod(&second);
    bench.run();
    assert_eq!(bench.state(PodUid(77)).label(), "Waiting", "for the name (B8)");
}

/// A static pod's lives of one name: this one's file was replaced.
fn life_of(uid: u128) -> Pod {
    Pod { uid: PodUid(uid), source: Source::File, name: "shared".into(), ..mains(Always, 1) }
}

/// Found by the thousand kills on Linux: two lives of a name ended in one step, the second was looked at after the name had
/// been given to the third, and the third was never looked at again.
#[test]
fn who_waits_for_a_name_starts_when_two_former_bearers_go_at_once() {
    for [first, second, third] in [[1, 2, 3], [2, 1, 3], [3, 2, 1], [1, 3, 2]] {
        let mut bench = Bench::with(&life_of(first));
        bench.pod(&life_of(second));
        bench.host.containers.clear();
        bench.host.sandboxes.clear();
        bench.apply(Fact::AgentStarted { boot_id: 7 });
        bench.remove_pod(PodUid(first));
        bench.remove_pod(PodUid(second));
        bench.pod(&life_of(third));
        bench.sources_ready();
        bench.run();
        assert_eq!(bench.state(PodUid(third)).label(), "Active", "{first}, {second}, {third}");
    }
}

/// Found by the property that another look finds nothing to do: the name is free when nothing of its bearer runs, and whoever
/// waits for it waits for nothing else, whether volumes come down or not (kubelet-pods §3.2).
#[test]
fn who_waits_for_a_name_does_not_wait_for_unmounts() {
    let first = edited(&life_of(1), |spec| {
        let source = VolumeSource::EmptyDir { medium: Medium::Disk, size_limit: None };
        spec.volumes.push(Arc::new(Volume { name: name("v"), source, rest: Default::default() }));
        let mount_path = name("/v");
        let mount = VolumeMount { name: name("v"), mount_path, read_only: false, rest: Default::default() };
        change(spec, "c0", |c| c.mounts.push(mount));
    });
    let mut bench = Bench::with(&first);
    // An answer about its mirror would let the node look at whoever waits.
    bench.hold(|action| matches!(action.verb(), "unmount" | "status" | "create-mirror" | "delete-mirror"));
    bench.remove_pod(PodUid(1));
    bench.pod(&life_of(2));
    bench.run();
    assert_eq!((bench.state(PodUid(1)).label(), bench.state(PodUid(2)).label()), ("Terminated", "Active"));
}

/// Found by fuzzing, the same kind: what a life is called never changes, whoever says so.
#[test]
fn a_life_keeps_its_name_and_its_source() {
    let before = mains(Always, 1);
    let mut bench = Bench::with(&before);
    let other = Pod { name: "other".into(), ..edited(&before, |spec| spec.containers.clear()) };
    bench.pod(&other);
    bench.pod(&Pod { source: Source::File, ..other.clone() });
    bench.run();
    assert_eq!(bench.node.anomalies().counts()[&AnomalyKind::OtherIdentity], 2);
    assert_eq!(bench.node.find_pod("ns", "other"), None);
    assert_eq!(bench.node.desired(UID).map(|pod| pod.spec.containers.len()), Some(1));
}

/// A host port is taken where both ask for it on one address, and an address that means all of them meets every other.
#[test]
fn host_ports_clash_where_their_addresses_meet() {
    let on = |uid: u128, ip: &str| {
        let mut of_pod = pod(PodUid(uid), PodSpec::clone(&mains(Always, 1).spec));
        let port = HostPort { protocol: name("TCP"), host_ip: name(ip), port: 80 };
        Arc::make_mut(&mut of_pod.spec).host_ports.push(port);
        of_pod
    };
    let rows = [("10.0.0.1", "10.0.0.2", true), ("10.0.0.1", "10.0.0.1", false), ("", "10.0.0.1", false)];
    for (first, second, both) in
        rows.into_iter().chain([("0.0.0.0", "10.0.0.1", false), ("10.0.0.1", "", false)])
    {
        let mut bench = Bench::with(&on(1, first));
        bench.pod(&on(2, second));
        bench.run();
        assert_eq!(bench.count(0, "start"), if both { 2 } else { 1 }, "{first:?} and {second:?}");
    }
}
