//! Cases 1 to 13: what is known of a volume after each answer to a mount, a refresh or an unmount.

use crate::bench::{Bench, Op};
use crate::kit::*;
use nodefold_core::event::{ErrorClass, Fact};
use nodefold_core::ids::OpId;
use nodefold_core::state::VolumePhase;
use nodefold_core::status::HostPhase;
use nodefold_core::time::Nanos;

/// A pod with one container that mounts `v`, whose mount is answered so; its volume's phase afterwards.
fn mount_answers(classes: &[ErrorClass]) -> Bench {
    let mut bench = Bench::new(config(4000));
    bench.hold(Op::Mount, "v");
    bench.apply(pod(POD, vec![user("a", &["v"])], vec![config_map("v", "a")]));
    for class in classes {
        bench.fail(Op::Mount, "v", error(*class, "no"));
        bench.pass(Nanos::secs(200));
    }
    bench
}

fn known(bench: &Bench) -> VolumePhase {
    bench.node.pod(POD).expect("the pod is known").volume("v").expect("the volume is known").phase
}

#[test]
fn cases_01_02_03_what_a_failed_mount_leaves() {
    // After each answer the next attempt is in flight; fail it last and look before the back-off ends. The kubelet tears
    // nothing down after a final failure; we do, once, since a failed SetUp may leave remains (D4).
    let uncertain = VolumePhase::Uncertain;
    for (number, classes, expected) in [
        (1, vec![ErrorClass::Uncertain], uncertain),
        (2, vec![ErrorClass::Final], VolumePhase::Failed),
        (3, vec![ErrorClass::Uncertain, ErrorClass::Final], VolumePhase::Failed),
    ] {
        let (last, before) = classes.split_last().expect("a row has an answer");
        let mut bench = mount_answers(before);
        bench.fail(Op::Mount, "v", error(*last, "no"));
        assert_eq!(known(&bench), expected, "case {number}");
        assert_eq!(bench.phase("v"), Some(HostPhase::ErrorMounting), "case {number}");
        assert!(!bench.is_running("a"), "case {number}: nothing starts on it");
        bench.delete(Nanos::secs(30));
        assert_eq!(bench.count(Op::Unmount, "v"), 1, "case {number}");
        assert!(bench.node.pod(POD).is_none(), "case {number}: the pod is released");
    }
}

#[test]
fn cases_04_05_a_mounted_volume_stays_mounted_whatever_a_refresh_answers() {
    for (number, class) in [(4, ErrorClass::Uncertain), (5, ErrorClass::Final)] {
        let mut bench = Bench::running(pod(POD, vec![user("a", &["v"])], vec![config_map("v", "a")]));
        bench.hold(Op::Refresh, "v");
        bench.object("a", 7);
        bench.fail(Op::Refresh, "v", error(class, "no"));
        assert_eq!(known(&bench), VolumePhase::Mounted, "case {number}");
        assert_eq!(bench.phase("v"), Some(HostPhase::HostMounted), "case {number}");
        assert!(bench.is_running("a"), "case {number}");
        bench.pass(Nanos::secs(1));
        assert!(bench.is_held(Op::Refresh, "v"), "case {number}: it is tried again");
        bench.let_go(Op::Refresh, "v");
        bench.delete(Nanos::secs(30));
        assert_eq!(bench.count(Op::Unmount, "v"), 1, "case {number}");
    }
}

#[test]
fn case_08_a_name_added_again_while_its_unmount_runs_is_mounted_only_after_it() {
    let mut bench = Bench::running(pod(POD, vec![swapper("a", &["v"])], vec![config_map("v", "a")]));
    bench.hold(Op::Unmount, "v");
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts.clear());
        spec.remove_volume("v");
    });
    assert!(bench.is_held(Op::Unmount, "v"));
    bench.change(|spec| {
        spec.add_volume(config_map("v", "a"));
        spec.edit("a", |c| c.mounts.push(mount("v")));
    });
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.count(Op::Mount, "v"), 0);
    assert_eq!(bench.phase("v"), Some(HostPhase::Unmounting));
    bench.let_go(Op::Unmount, "v");
    let story = bench.take_story();
    let at =
        |what: &str| story.iter().position(|s| s == what).unwrap_or_else(|| panic!("{what} in {story:?}"));
    assert!(at("unmount v#0") < at("mount v#1"));
    assert!(at("mount v#1") < at("create a#0.2"));
}

#[test]
fn case_10_a_mounted_volume_removed_from_desired_is_torn_down_once() {
    let mut bench = Bench::running(pod(POD, vec![container("a")], vec![]));
    bench.change(|spec| {
        spec.add_volume(empty_dir("v"));
        spec.add(user("b", &["v"]));
    });
    assert_eq!(bench.phase("v"), Some(HostPhase::HostMounted));
    bench.change(|spec| {
        spec.remove("b");
        spec.remove_volume("v");
    });
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.count(Op::Unmount, "v"), 1);
    assert_eq!(bench.phase("v"), None);
}

#[test]
fn case_12_an_answer_about_a_volume_nobody_knows_stores_nothing() {
    let mut bench = Bench::running(pod(POD, vec![container("a")], vec![]));
    let volumes = bench.node.pod(POD).expect("the pod is known").volumes.len();
    let fact = Fact::VolumeMounted {
        op: OpId(1),
        pod: POD,
        volume: volume_id("ghost", 0),
        renew_at: None,
        image_digest: None,
    };
    bench.fact(fact);
    assert_eq!(bench.node.pod(POD).expect("the pod is known").volumes.len(), volumes);
    assert_eq!(bench.node.anomalies().counts().values().sum::<u64>(), 1);
    assert_eq!(bench.take_story(), Vec::<String>::new());
}

#[test]
fn case_13_uncertain_is_possibly_mounted_and_only_mounted_is_ready() {
    let mut bench = mount_answers(&[]);
    bench.fail(Op::Mount, "v", error(ErrorClass::Uncertain, "timed out"));
    let volume = |bench: &Bench| bench.node.pod(POD).expect("known").volume("v").expect("known").clone();
    // Possibly mounted: it is in the record, and would be torn down. Not ready: nothing starts on it.
    assert_eq!(volume(&bench).phase, VolumePhase::Uncertain);
    assert!(!volume(&bench).is_ready());
    assert_eq!(bench.count(Op::Create, "a"), 0);
    bench.let_go(Op::Mount, "v");
    bench.pass(Nanos::secs(1));
    assert!(volume(&bench).is_ready());
    assert!(bench.is_running("a"));
}
