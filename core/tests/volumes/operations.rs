//! Cases 21 to 63 that concern the core: which volumes are wanted, one operation at a time, back-off, usage, objects.

use crate::bench::{Bench, Op};
use crate::kit::*;
use nodefold_core::event::{ErrorClass, Fact, UsageOf};
use nodefold_core::ids::ContainerId;
use nodefold_core::resources::{ResourceList, ResourceName, Resources};
use nodefold_core::spec::{Container, Medium, Pod, PodSpec, RestartPolicy, VolumeSource};
use nodefold_core::status::{HostPhase, PodPhase};
use nodefold_core::time::{Nanos, Time};
use std::sync::Arc;

#[test]
fn case_21_which_pods_keep_their_volumes_by_what_is_known() {
    // (all sources and lists are in, how far the pod is, whether its mounted volume is taken down, whether an unmounted
    // one is mounted). The kubelet also mounts for a terminating pod before its first full pass, only to keep what is
    // mounted from being unmounted; a record does that here.
    enum State {
        Removed,
        Terminating,
        Other,
    }
    for (known, state, taken_down, mounted) in [
        (false, State::Removed, false, false),
        (false, State::Terminating, false, false),
        (false, State::Other, false, true),
        (true, State::Removed, true, false),
        (true, State::Terminating, false, false),
        (true, State::Other, false, true),
    ] {
        let volumes = vec![empty_dir("v"), config_map("w", "w")];
        let mut bench = Bench::new(config(4000));
        bench.apply(pod(POD, vec![user("a", &["v"])], volumes));
        bench.hold(Op::Unmount, "v");
        bench.hold(Op::Mount, "w");
        match state {
            State::Removed => bench.delete(Nanos::secs(5)),
            State::Terminating => {
                bench.hold(Op::Stop, "a");
                bench.hold(Op::Kill, "a");
                bench.delete(Nanos::secs(5));
            }
            State::Other => bench.change(|spec| spec.add(user("b", &["w"]))),
        }
        let row = format!("{known} {}", bench.node.pod(POD).expect("known").label());
        bench.log.clear();
        bench.restart();
        if known {
            bench.relist();
        }
        bench.pass(Nanos::secs(5));
        assert_eq!(bench.count(Op::Unmount, "v") > 0, taken_down, "{row}");
        assert_eq!(bench.count(Op::Mount, "w") > 0, mounted, "{row}");
        assert_eq!(bench.count(Op::Unmount, "w"), 0, "{row}");
    }
}

#[test]
fn case_22_a_source_that_cannot_be_resolved_stays_wanted_and_a_ready_volume_ready() {
    let mut bench = Bench::new(config(4000));
    bench.failing(Op::Mount, "v", error(ErrorClass::Transient, "configmap \"a\" not found"));
    bench.apply(pod(POD, vec![user("a", &["v"])], vec![config_map("v", "a")]));
    assert_eq!(bench.phase("v"), Some(HostPhase::ErrorMounting));
    bench.pass(Nanos::secs(1));
    assert!(bench.count(Op::Mount, "v") > 1, "it is tried again");
    bench.works_again(Op::Mount, "v");
    bench.pass(Nanos::secs(10));
    assert!(bench.is_running("a"));
    // Once ready, a lookup that fails takes nothing away.
    bench.fact(Fact::ObjectGone { object: object_ref("a") });
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.phase("v"), Some(HostPhase::HostMounted));
    assert!(bench.is_running("a"));
}

#[test]
fn case_23_a_pod_that_vanished_keeps_its_volumes_until_its_containers_are_gone() {
    let mut bench = Bench::running(pod(POD, vec![user("a", &["v"])], vec![empty_dir("v")]));
    bench.hold(Op::Stop, "a");
    bench.hold(Op::Kill, "a");
    bench.fact(Fact::PodRemoved { pod: POD });
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.count(Op::Unmount, "v"), 0);
    bench.let_go(Op::Stop, "a");
    assert_eq!(bench.count(Op::Unmount, "v"), 1);
    assert!(bench.node.pod(POD).is_none(), "nothing of it is remembered");
}

fn once(containers: Vec<Container>, volumes: Vec<nodefold_core::spec::Volume>) -> Pod {
    let mut pod = pod(POD, containers, volumes);
    Arc::make_mut(&mut pod.spec).restart_policy = RestartPolicy::Never;
    pod
}

#[test]
fn case_24_a_pod_that_failed_gives_its_volumes_back_once_nothing_runs() {
    let mut bench = Bench::new(config(4000));
    bench.apply(once(vec![user("a", &["v"]), user("b", &["v"])], vec![empty_dir("v")]));
    bench.exits("a", 1);
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.count(Op::Unmount, "v"), 0, "b still runs");
    bench.exits("b", 0);
    assert_eq!(bench.count(Op::Unmount, "v"), 1);
    assert_eq!(bench.status().phase, PodPhase::Failed, "the pod stays known");
    assert_eq!(bench.phase("v"), None);
}

#[test]
fn case_25_an_uncertain_volume_of_a_pod_that_ended_is_taken_down_too() {
    let mut bench = Bench::new(config(4000));
    bench.hold(Op::Mount, "v");
    bench.apply(pod(POD, vec![user("a", &["v"])], vec![empty_dir("v")]));
    bench.fail(Op::Mount, "v", error(ErrorClass::Uncertain, "timed out"));
    bench.delete(Nanos::secs(30));
    assert_eq!(bench.count(Op::Unmount, "v"), 1);
    assert!(bench.node.pod(POD).is_none());
}

#[test]
fn case_29_the_effective_limit_of_an_empty_dir() {
    // (limit of the pod's containers in GiB, sizeLimit in GiB, what it may hold in GiB). The kubelet computes one number;
    // here each limit is checked, with the same outcome.
    for (of_pod, size_limit, effective) in [
        (Some(2), Some(1), Some(1)),
        (Some(2), Some(2), Some(2)),
        (Some(2), Some(3), Some(2)),
        (Some(2), None, Some(2)),
        (None, Some(1), Some(1)),
        (None, Some(2), Some(2)),
        (None, Some(3), Some(3)),
        (None, None, None),
    ] {
        let row = format!("pod {of_pod:?}, sizeLimit {size_limit:?}");
        let limits = of_pod.map(|gib: u64| (ResourceName::EphemeralStorage, gib * GI));
        let resources = Resources { limits: ResourceList::from_pairs(limits), ..Resources::default() };
        let scratch =
            VolumeSource::EmptyDir { medium: Medium::Disk, size_limit: size_limit.map(|gib: u64| gib * GI) };
        let container = Container { resources, ..user("a", &["v"]) };
        let mut bench = Bench::running(pod(POD, vec![container], vec![source("v", scratch)]));
        let report = |bytes| Fact::UsageReported { pod: POD, of: UsageOf::Volume(volume_id("v", 0)), bytes };
        let most = effective.map_or(u64::MAX, |gib| gib * GI);
        bench.fact(report(most));
        assert_eq!(bench.status().phase, PodPhase::Running, "{row}: up to the limit");
        if effective.is_some() {
            bench.fact(report(most + 1));
            assert_eq!(&*bench.status().reason, "Evicted", "{row}: beyond it");
        }
    }
}

#[test]
fn case_31_one_operation_at_a_time_on_a_volume_and_none_waits_for_another_volume() {
    // (what is in flight on v, then what is asked of v meanwhile; nothing is given until the first has ended).
    let running = || Bench::running(pod(POD, vec![swapper("a", &["v"])], vec![config_map("v", "a")]));
    let drop_v = |spec: &mut PodSpec| {
        spec.edit("a", |c| c.mounts.clear());
        spec.remove_volume("v");
    };
    let readd = |spec: &mut PodSpec| {
        spec.add_volume(config_map("v", "a"));
        spec.edit("a", |c| c.mounts.push(mount("v")));
    };
    // A refresh, then the removal.
    let mut bench = running();
    bench.hold(Op::Refresh, "v");
    bench.object("a", 5);
    bench.change(drop_v);
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.count(Op::Unmount, "v"), 0, "a refresh in flight ends first");
    bench.let_go(Op::Refresh, "v");
    assert_eq!(bench.count(Op::Unmount, "v"), 1);
    // An unmount, then a change of content, then the name again.
    let mut bench = running();
    bench.hold(Op::Unmount, "v");
    bench.change(drop_v);
    bench.object("a", 6);
    bench.change(readd);
    bench.pass(Nanos::secs(60));
    assert_eq!((bench.count(Op::Refresh, "v"), bench.count(Op::Mount, "v")), (0, 0));
    // Meanwhile another volume of the pod comes and goes.
    bench.change(|spec| {
        spec.add_volume(empty_dir("w"));
        spec.add(user("b", &["w"]));
    });
    assert!(bench.is_running("b"), "v's unmount is no reason to wait");
    // A mount, then the removal.
    let mut bench = running();
    bench.hold(Op::Mount, "w");
    bench.change(|spec| {
        spec.add_volume(empty_dir("w"));
        spec.add(user("b", &["w"]));
    });
    bench.change(|spec| {
        spec.remove("b");
        spec.remove_volume("w");
    });
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.count(Op::Unmount, "w"), 0, "a mount in flight ends first");
    bench.let_go(Op::Mount, "w");
    assert_eq!((bench.count(Op::Mount, "w"), bench.count(Op::Unmount, "w")), (1, 1));
}

#[test]
fn case_33_an_answer_changes_its_own_record_only() {
    let mut bench = Bench::new(config(4000));
    bench.hold(Op::Mount, "v");
    bench.apply(pod(POD, vec![user("a", &["v"])], vec![empty_dir("v")]));
    bench.apply(pod(OTHER, vec![user("a", &["v"])], vec![empty_dir("v")]));
    let first = bench.take_held(Op::Mount, "v");
    let second = bench.take_held(Op::Mount, "v");
    assert_eq!((first.pod, second.pod), (POD, OTHER));
    let mounted = |op, pod| Fact::VolumeMounted {
        op,
        pod,
        volume: volume_id("v", 0),
        renew_at: None,
        image_digest: None,
    };
    // The answer of one under the other's name, and an answer given twice, are anomalies and nothing else.
    bench.fact(mounted(first.op, OTHER));
    assert_eq!(bench.node.anomalies().counts().values().sum::<u64>(), 1);
    let phase = |bench: &Bench, uid| bench.node.status(uid).expect("shown").volumes[0].phase;
    assert_eq!(phase(&bench, OTHER), HostPhase::Pending);
    bench.put_mount(OTHER, volume_id("v", 0));
    bench.fact(mounted(second.op, OTHER));
    assert_eq!((phase(&bench, POD), phase(&bench, OTHER)), (HostPhase::Pending, HostPhase::HostMounted));
    bench.fact(mounted(second.op, OTHER));
    assert_eq!(bench.node.anomalies().counts().values().sum::<u64>(), 2);
}

#[test]
fn case_34_a_failed_operation_is_tried_again_after_its_back_off_and_not_before() {
    let mut bench = Bench::new(config(4000));
    bench.failing(Op::Mount, "v", error(ErrorClass::Final, "no"));
    let start = bench.now;
    bench.apply(pod(POD, vec![user("a", &["v"])], vec![empty_dir("v")]));
    bench.pass(Nanos::secs(500));
    // 500 ms, doubled, at most 2 min 2 s.
    let millis = [0, 500, 1500, 3500, 7500, 15500, 31500, 63500, 127_500, 249_500, 371_500, 493_500];
    assert_eq!(bench.times(Op::Mount, "v", start), millis.map(Nanos::millis));
    // A back-off dies with what it belongs to (I11): a new life of the name begins at once.
    bench.works_again(Op::Mount, "v");
    bench.log.clear();
    bench.change(|spec| spec.replace_volume(memory_dir("v", GI)));
    assert_eq!(bench.count(Op::Mount, "v"), 0, "a holder without RestartContainer makes that infeasible");
}

#[test]
fn case_34_a_back_off_dies_with_the_life_of_a_name() {
    let mut bench = Bench::running(pod(POD, vec![container("a")], vec![]));
    bench.failing(Op::Mount, "v", error(ErrorClass::Final, "no"));
    bench.change(|spec| {
        spec.add_volume(empty_dir("v"));
        spec.add(user("b", &["v"]));
    });
    bench.pass(Nanos::secs(100));
    bench.change(|spec| {
        spec.remove("b");
        spec.remove_volume("v");
    });
    bench.works_again(Op::Mount, "v");
    bench.log.clear();
    bench.change(|spec| {
        spec.add_volume(empty_dir("v"));
        spec.add(user("b", &["v"]));
    });
    assert_eq!(bench.count(Op::Mount, "v"), 1);
    assert!(bench.is_running("b"));
}

#[test]
fn case_35_volumes_of_two_pods_and_of_one_are_mounted_and_unmounted_side_by_side() {
    let mut bench = Bench::new(config(4000));
    for (op, name) in [(Op::Mount, "v"), (Op::Mount, "w"), (Op::Unmount, "v"), (Op::Unmount, "w")] {
        bench.hold(op, name);
    }
    for uid in [POD, OTHER] {
        bench.apply(pod(uid, vec![user("a", &["v", "w"])], vec![empty_dir("v"), empty_dir("w")]));
    }
    assert_eq!(bench.held.len(), 4, "all four mounts are in flight");
    bench.let_go(Op::Mount, "v");
    bench.let_go(Op::Mount, "w");
    for uid in [POD, OTHER] {
        bench.fact(Fact::PodRemoved { pod: uid });
    }
    assert_eq!(bench.held.len(), 4, "all four unmounts are in flight");
}

#[test]
fn case_40_an_empty_dir_over_its_limit_evicts_at_once_but_not_a_critical_pod() {
    for (priority, evicted) in [(0, true), (2_000_000_000, false)] {
        let mut given = pod(POD, vec![user("a", &["v"])], vec![memory_dir("v", GI)]);
        Arc::make_mut(&mut given.spec).priority = priority;
        let mut bench = Bench::running(given);
        let of = UsageOf::Volume(volume_id("v", 0));
        bench.fact(Fact::UsageReported { pod: POD, of, bytes: GI + 1 });
        let status = bench.status();
        assert_eq!(&*status.reason == "Evicted", evicted, "priority {priority}");
        if evicted {
            assert_eq!(&*status.message, "Usage of EmptyDir volume \"v\" exceeds the limit \"1Gi\". ");
            assert_eq!(status.phase, PodPhase::Failed);
            assert_eq!(bench.take_story(), ["stop a#0.0", "unmount v#0"]);
        }
    }
}

#[test]
fn case_45_an_optional_object_may_come_later_and_any_object_is_tried_as_soon_as_it_is_there() {
    let mut bench = Bench::new(config(4000));
    bench.fact(Fact::ObjectGone { object: object_ref("a") });
    bench.apply(pod(POD, vec![user("a", &["v"])], vec![optional_config_map("v", "a")]));
    assert!(bench.is_running("a"), "an absent optional object makes an empty volume");
    bench.log.clear();
    bench.object("a", 1);
    assert_eq!(bench.take_story(), ["refresh v#0"]);
    bench.fact(Fact::ObjectGone { object: object_ref("a") });
    assert_eq!(bench.take_story(), ["refresh v#0"], "and it may go again");

    let mut bench = Bench::new(config(4000));
    bench.failing(Op::Mount, "v", error(ErrorClass::Final, "configmap \"a\" not found"));
    bench.apply(pod(POD, vec![user("a", &["v"])], vec![config_map("v", "a")]));
    bench.pass(Nanos::secs(130));
    bench.works_again(Op::Mount, "v");
    bench.object("a", 1);
    assert!(bench.is_running("a"), "no back-off outlives its cause");
}

#[test]
fn case_53_a_credential_is_renewed_when_it_wants_to_be() {
    // (the volume says that it wants renewal after so many minutes; what it gets in one hour).
    for (after, refreshes) in [(Some(48), vec![48]), (Some(20), vec![20, 40, 60]), (None, vec![])] {
        let mut bench = Bench::new(config(4000));
        bench.renews("v", after.map(|minutes| Nanos::secs(minutes * 60)));
        let start = bench.now;
        bench.apply(pod(POD, vec![user("a", &["v"])], vec![token("v")]));
        bench.pass(Nanos::secs(3600));
        let expected: Vec<Nanos> = refreshes.into_iter().map(|m| Nanos::secs(m * 60)).collect();
        assert_eq!(bench.times(Op::Refresh, "v", start), expected, "{after:?}");
    }
}

#[test]
fn case_57_a_mount_of_a_volume_that_does_not_exist_never_makes_a_container_and_says_so() {
    let mut bench = Bench::new(config(4000));
    bench.apply(pod(POD, vec![user("a", &["disk"])], vec![]));
    assert_eq!(bench.count(Op::Create, "a"), 0);
    assert_eq!(bench.waiting_reason("a").as_deref(), Some("CreateContainerConfigError"));
    // As a change it is refused as a whole.
    let mut bench = Bench::running(pod(POD, vec![container("a")], vec![]));
    bench.change(|spec| spec.add(user("b", &["disk"])));
    assert_eq!(bench.waiting_reason("b").as_deref(), Some("Unallocated"));
    assert_eq!(bench.count(Op::Create, "b"), 0);
}

#[test]
fn case_63_objects_are_known_for_as_long_as_some_pod_refers_to_them() {
    let mut bench = Bench::new(config(4000));
    bench.object("shared", 1);
    for uid in [POD, OTHER] {
        // Twice in one pod is one reference of that pod.
        let volumes = vec![config_map("v", "shared"), config_map("w", "shared")];
        bench.apply(pod(uid, vec![user("a", &["v", "w"])], volumes));
    }
    bench.fact(Fact::ObjectGone { object: object_ref("unrelated") });
    bench.fact(Fact::PodRemoved { pod: OTHER });
    assert!(bench.node.pod(OTHER).is_none());
    bench.log.clear();
    bench.object("shared", 2);
    assert_eq!(
        bench.take_story(),
        ["refresh v#0", "refresh w#0"],
        "one pod's end changes nothing for the other"
    );
    bench.fact(Fact::PodRemoved { pod: POD });
    bench.object("shared", 3);
    assert_eq!(bench.node.anomalies().counts().values().sum::<u64>(), 0);
}

#[test]
fn usage_of_something_unknown_is_an_anomaly() {
    let mut bench = Bench::running(pod(POD, vec![container("a")], vec![]));
    let ghost = ContainerId { name: "ghost".into(), incarnation: 0, attempt: 0 };
    bench.fact(Fact::UsageReported { pod: POD, of: UsageOf::Container(ghost), bytes: 1 });
    assert_eq!(bench.node.anomalies().counts().values().sum::<u64>(), 1);
    assert!(bench.now > Time(0) && bench.is_running("a"));
}
