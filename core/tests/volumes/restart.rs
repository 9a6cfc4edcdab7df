//! Cases 14 to 20 and 46: what is found on the host after a restart, and what may be done before everything is known.

use crate::bench::{Bench, Op};
use crate::kit::*;
use nodefold_core::event::{ErrorClass, Fact};
use nodefold_core::ids::{ContainerId, OpId};
use nodefold_core::state::VolumePhase;
use nodefold_core::status::HostPhase;
use nodefold_core::time::Nanos;

fn reconstructed(bench: &Bench, uid: nodefold_core::ids::PodUid) -> Vec<(VolumePhase, bool)> {
    let pod = bench.node.pod(uid).expect("the pod is known");
    pod.volumes.iter().map(|v| (v.phase, v.reconstructed)).collect()
}

#[test]
fn case_14_mounts_of_two_pods_that_nobody_wants_are_uncertain_and_go() {
    let mut bench = Bench::cold(config(4000));
    bench.put_mount(POD, volume_id("v", 0));
    bench.put_mount(OTHER, volume_id("v", 0));
    bench.hold(Op::Unmount, "v");
    bench.fact(Fact::AgentStarted { boot_id: 1 });
    assert_eq!(bench.count(Op::Unmount, "v"), 0, "not before the sources have spoken");
    bench.sources_ready();
    assert_eq!(bench.count(Op::Unmount, "v"), 2);
    for uid in [POD, OTHER] {
        let found = reconstructed(&bench, uid);
        assert!(matches!(found[..], [(VolumePhase::Unmounting { .. }, true)]), "{found:?}");
    }
    bench.let_go(Op::Unmount, "v");
    assert_eq!((bench.node.pods(), bench.mount_count()), (vec![], 0));
}

#[test]
fn case_15_a_mount_of_a_volume_no_spec_names_is_retained_and_tried_until_it_is_gone() {
    let mut bench = Bench::cold(config(4000));
    bench.put_mount(POD, volume_id("strange", 3));
    bench.failing(Op::Unmount, "strange", error(ErrorClass::Final, "unknown plugin"));
    bench.fact(Fact::AgentStarted { boot_id: 1 });
    bench.apply(pod(POD, vec![user("a", &["v"])], vec![empty_dir("v")]));
    bench.sources_ready();
    bench.pass(Nanos::secs(60));
    assert!(bench.is_running("a"), "it keeps nothing else from running");
    assert_eq!(bench.retained(), ["strange#3"]);
    // Not once and then for ever forgotten (#72500).
    assert!(bench.count(Op::Unmount, "strange") > 3);
    bench.works_again(Op::Unmount, "strange");
    bench.pass(Nanos::secs(200));
    assert_eq!(bench.retained(), Vec::<String>::new());
}

#[test]
fn case_16_what_is_found_is_taken_down_once_if_it_is_not_wanted_and_never_if_it_is() {
    for (wanted, unmounts) in [(true, 0), (false, 1)] {
        for named_first in [true, false] {
            let mut bench = Bench::cold(config(4000));
            bench.put_mount(POD, volume_id("v", 0));
            let volumes = if wanted { vec![empty_dir("v")] } else { vec![] };
            let mounts: &[&str] = if wanted { &["v"] } else { &[] };
            let given = pod(POD, vec![user("a", mounts)], volumes);
            if named_first {
                bench.hold(Op::Mounts, "");
                bench.fact(Fact::AgentStarted { boot_id: 1 });
                bench.apply(given);
                bench.let_go(Op::Mounts, "");
            } else {
                bench.fact(Fact::AgentStarted { boot_id: 1 });
                bench.apply(given);
            }
            bench.sources_ready();
            bench.pass(Nanos::secs(600));
            let row = format!("wanted {wanted}, named first {named_first}");
            assert_eq!(bench.count(Op::Unmount, "v"), unmounts, "{row}");
            assert_eq!(bench.is_mounted("v"), wanted, "{row}");
            assert!(bench.is_running("a"), "{row}");
        }
    }
}

/// A pod whose volume `v` was found on the host before the pod was named; its mount is held back.
fn found() -> Bench {
    let mut bench = Bench::cold(config(4000));
    bench.put_mount(POD, volume_id("v", 0));
    bench.hold(Op::Mount, "v");
    bench.boot();
    bench
}

#[test]
fn cases_17_18_20_a_volume_found_stays_uncertain_until_a_mount_succeeds() {
    let given = || pod(POD, vec![container("a"), user("b", &["v"])], vec![config_map("v", "a")]);
    let setup = || {
        let mut bench = Bench::cold(config(4000));
        bench.put_mount(POD, volume_id("v", 0));
        bench.hold(Op::Mount, "v");
        bench.fact(Fact::AgentStarted { boot_id: 1 });
        bench.apply(given());
        bench.sources_ready();
        bench
    };
    // 17: a final failure is no proof of absence; nothing is torn down.
    let mut bench = setup();
    bench.fail(Op::Mount, "v", error(ErrorClass::Final, "no"));
    assert_eq!(reconstructed(&bench, POD), [(VolumePhase::Uncertain, true)]);
    assert_eq!(bench.count(Op::Unmount, "v"), 0);
    // 18: removed from desired then, it is unmounted.
    bench.delete(Nanos::secs(5));
    assert_eq!(bench.count(Op::Unmount, "v"), 1);
    assert!(bench.node.pod(POD).is_none());
    // 17, 20: success makes it certain, and the flag goes.
    let mut bench = setup();
    bench.let_go(Op::Mount, "v");
    assert_eq!(reconstructed(&bench, POD), [(VolumePhase::Mounted, false)]);
    // 20: gone with the entry when unmounted. Nobody wants this one.
    let bench = found();
    assert_eq!((bench.node.pods(), bench.mount_count()), (vec![], 0));
}

#[test]
fn case_46_after_a_reboot_everything_is_set_up_anew_before_anything_starts() {
    let volumes = vec![empty_dir("v"), config_map("w", "w")];
    let mut bench = Bench::running(pod(POD, vec![user("a", &["v", "w"])], volumes));
    bench.hold(Op::Mount, "w");
    bench.reboot();
    bench.relist();
    assert_eq!(bench.phase("w"), Some(HostPhase::Pending));
    assert_eq!(bench.count(Op::Create, "a"), 0, "its volumes come first");
    bench.let_go(Op::Mount, "w");
    assert_eq!(bench.take_story(), ["mount v#0", "mount w#0", "sandbox 1", "create a#0.1", "start a#0.1"]);
    let row = bench.row("a").expect("shown");
    assert_eq!(row.last_state.expect("the life before the reboot is told").exit_code, 137);
}

// --- beyond the numbered cases: no unmount on ignorance (I1) -----------------------------------------------------------

#[test]
fn nothing_is_undone_before_sources_mounts_and_a_complete_runtime_list_are_all_in() {
    // Every order in which the three may come.
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    for order in orders {
        let mut bench = Bench::running(pod(POD, vec![swapper("a", &["v"])], vec![empty_dir("v")]));
        bench.hold(Op::Unmount, "v");
        bench.change(|spec| {
            spec.edit("a", |c| c.mounts.clear());
            spec.remove_volume("v");
        });
        bench.hold(Op::Mounts, "");
        bench.hold(Op::Runtime, "");
        bench.restart();
        bench.log.clear();
        for (n, step) in order.into_iter().enumerate() {
            assert_eq!(bench.count(Op::Unmount, "v"), 0, "{order:?} before step {n}");
            match step {
                0 => bench.relist(),
                1 => bench.finish(Op::Mounts, ""),
                _ => bench.finish(Op::Runtime, ""),
            }
        }
        assert_eq!(bench.count(Op::Unmount, "v"), 1, "{order:?}");
    }
}

#[test]
fn a_partial_runtime_list_proves_nothing_and_is_asked_for_again_after_a_back_off() {
    let mut bench = Bench::running(pod(POD, vec![swapper("a", &["v"])], vec![empty_dir("v")]));
    bench.hold(Op::Runtime, "");
    bench.restart_whole();
    let start = bench.now;
    for _ in 0..3 {
        let asked = bench.take_held(Op::Runtime, "");
        let partial =
            Fact::RuntimeObserved { op: asked.op, complete: false, sandboxes: vec![], containers: vec![] };
        bench.fact(partial);
        assert!(!bench.is_held(Op::Runtime, ""), "not in a busy loop");
        bench.pass(Nanos::secs(30));
    }
    assert!(bench.is_held(Op::Runtime, ""), "but again and again");
    assert!(bench.is_running("a"), "nothing is taken for gone");
    assert!(!bench.node.is_recovered());
    let after: Vec<u64> = bench.times(Op::Runtime, "", start).iter().map(|t| t.as_secs()).collect();
    assert_eq!(after, [0, 1, 32, 64]);
}

#[test]
fn a_look_that_failed_is_tried_again_whatever_else_wakes_the_node() {
    for op in [Op::Mounts, Op::Runtime] {
        let mut bench = Bench::cold(config(4000));
        bench.failing(op, "", error(ErrorClass::Transient, "not yet"));
        bench.fact(Fact::AgentStarted { boot_id: 1 });
        // Sources that become ready wake the allocator, which books its own wake-ups.
        bench.apply(pod(POD, vec![container("a")], vec![]));
        bench.sources_ready();
        bench.pass(Nanos::secs(20));
        assert!(bench.count(op, "") > 3, "{op:?}");
        bench.works_again(op, "");
        bench.pass(Nanos::secs(60));
        assert!(bench.node.is_recovered(), "{op:?}");
        assert!(bench.is_running("a"), "{op:?}");
    }
}

#[test]
fn a_node_without_a_record_takes_over_what_it_finds_whatever_comes_first() {
    for named_first in [true, false] {
        let mut bench = Bench::cold(config(4000));
        let id = ContainerId { name: "a".into(), incarnation: 0, attempt: 2 };
        bench.put_mount(POD, volume_id("v", 0));
        bench.put_container(POD, id.clone(), vec![volume_id("v", 0)]);
        bench.put_sandbox(POD, 0);
        bench.hold(Op::Runtime, "");
        bench.hold(Op::Mounts, "");
        bench.fact(Fact::AgentStarted { boot_id: 1 });
        let given = pod(POD, vec![user("a", &["v"])], vec![empty_dir("v")]);
        if named_first {
            bench.apply(given.clone());
            bench.sources_ready();
        }
        assert_eq!(bench.story(), Vec::<String>::new(), "named first {named_first}");
        bench.let_go(Op::Runtime, "");
        bench.let_go(Op::Mounts, "");
        if !named_first {
            bench.apply(given);
            bench.sources_ready();
        }
        bench.pass(Nanos::secs(60));
        assert_eq!(bench.instance("a"), Some(id), "named first {named_first}: {:?}", bench.story());
        assert!(bench.is_running("a"));
        assert_eq!(bench.story(), ["mount v#0"], "named first {named_first}: set up over what is there");
    }
}

#[test]
fn a_mount_found_under_a_volume_that_was_never_tried_is_not_forgotten() {
    // I2: the record says that nothing was tried, the host says otherwise. The host is right.
    let mut bench = Bench::running(pod(POD, vec![container("a")], vec![empty_dir("v")]));
    assert_eq!(bench.phase("v"), Some(HostPhase::Pending));
    bench.put_mount(POD, volume_id("v", 0));
    bench.restart_whole();
    bench.change(|spec| spec.remove_volume("v"));
    assert!(!bench.is_mounted("v"));
    assert_eq!(bench.count(Op::Unmount, "v"), 1);
}

#[test]
fn an_operation_of_an_older_epoch_completes_nothing() {
    let mut bench = Bench::new(config(4000));
    bench.hold(Op::Mount, "v");
    bench.apply(pod(POD, vec![user("a", &["v"])], vec![empty_dir("v")]));
    let op: OpId = bench.take_held(Op::Mount, "v").op;
    bench.restart_whole();
    assert!(bench.is_held(Op::Mount, "v"), "it is mounted again");
    let late =
        Fact::VolumeMounted { op, pod: POD, volume: volume_id("v", 0), renew_at: None, image_digest: None };
    bench.fact(late);
    assert_eq!(bench.phase("v"), Some(HostPhase::Pending), "a stale completion changes nothing");
    assert_eq!(bench.node.anomalies().counts().values().sum::<u64>(), 1);
}
