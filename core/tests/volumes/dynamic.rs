//! D1 to D18 of `kubelet-volumes` §6.1: volumes that come and go while their pod runs.

use crate::bench::{Bench, Op};
use crate::kit::*;
use nodefold_core::event::{ErrorClass, Fact, OpError, UsageOf};
use nodefold_core::resources::ResourceName;
use nodefold_core::spec::{Blob, Container, PullPolicy, VolumeMount};
use nodefold_core::state::PendingKind;
use nodefold_core::status::HostPhase;
use nodefold_core::time::Nanos;

/// A (may be restarted for mounts) and B (may not) side by side, B with a configMap volume of its own.
fn a_and_b() -> Bench {
    Bench::running(pod(POD, vec![swapper("a", &[]), user("b", &["own"])], vec![config_map("own", "own")]))
}

/// As `a_and_b`, with volume `v` mounted by A and by B, both of which may be restarted.
fn both_hold_v() -> Bench {
    Bench::running(pod(POD, vec![swapper("a", &["v"]), swapper("b", &["v"])], vec![config_map("v", "a")]))
}

fn drop_v_everywhere(bench: &mut Bench) {
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts.clear());
        spec.edit("b", |c| c.mounts.clear());
        spec.remove_volume("v");
    });
}

#[test]
fn d01_a_volume_that_nobody_mounts_is_allocated_and_not_mounted() {
    let mut bench = a_and_b();
    bench.change(|spec| spec.add_volume(config_map("v", "a")));
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.allocated_volumes(), ["own", "v"]);
    assert_eq!(bench.take_story(), Vec::<String>::new());
    assert_eq!(bench.phase("v"), Some(HostPhase::Pending));
}

#[test]
fn d02_a_container_is_restarted_only_once_its_new_volume_is_ready_and_no_other_is() {
    let mut bench = a_and_b();
    bench.hold(Op::Mount, "v");
    bench.change(|spec| {
        spec.add_volume(config_map("v", "a"));
        spec.edit("a", |c| c.mounts.push(mount("v")));
    });
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.take_story(), ["mount v#0"]);
    assert!(bench.is_running("a") && bench.is_running("b"));
    let b = bench.instance("b");
    bench.let_go(Op::Mount, "v");
    assert_eq!(bench.take_story(), ["stop a#0.0", "create a#0.1", "start a#0.1"]);
    assert_eq!(bench.instance("b"), b);
    assert_eq!(bench.row("a").expect("shown").mounts, [mount("v")]);
}

/// D3's situation: `v`, wanted by A, fails for certain.
fn setup_of_v_fails() -> Bench {
    let mut bench = a_and_b();
    bench.failing(Op::Mount, "v", error(ErrorClass::Final, "configmap \"a\" not found"));
    bench.change(|spec| {
        spec.add_volume(config_map("v", "a"));
        spec.edit("a", |c| c.mounts.push(mount("v")));
    });
    bench
}

#[test]
fn d03_a_volume_that_fails_harms_nobody() {
    let mut bench = setup_of_v_fails();
    let a = bench.instance("a");
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.phase("v"), Some(HostPhase::ErrorMounting));
    assert_eq!(bench.error_message("v"), "configmap \"a\" not found");
    assert!(bench.count(Op::Tell, "FailedMount") > 0);
    assert_eq!(bench.instance("a"), a, "A keeps its old container");
    assert!(bench.is_running("a") && bench.is_running("b"));
    bench.log.clear();
    bench.object("own", 2);
    assert_eq!(bench.take_story(), ["refresh own#0"], "other volumes are refreshed");
}

#[test]
fn d04_a_failed_volume_that_is_removed_is_torn_down_once_and_never_set_up_again() {
    let mut bench = setup_of_v_fails();
    bench.pass(Nanos::secs(60));
    bench.log.clear();
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts.clear());
        spec.remove_volume("v");
    });
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.take_story(), ["unmount v#0"]);
    assert_eq!(bench.phase("v"), None);
}

#[test]
fn d05_a_volume_removed_while_it_is_set_up_is_torn_down_after_that_ended() {
    for outcome in [None, Some(ErrorClass::Final), Some(ErrorClass::Transient), Some(ErrorClass::Uncertain)] {
        let mut bench = a_and_b();
        bench.hold(Op::Mount, "v");
        bench.change(|spec| {
            spec.add_volume(config_map("v", "a"));
            spec.edit("a", |c| c.mounts.push(mount("v")));
        });
        bench.change(|spec| {
            spec.edit("a", |c| c.mounts.clear());
            spec.remove_volume("v");
        });
        bench.pass(Nanos::secs(10));
        assert_eq!(bench.count(Op::Unmount, "v"), 0, "{outcome:?}: never both at once");
        assert_eq!(bench.phase("v"), Some(HostPhase::Unmounting), "{outcome:?}");
        match outcome {
            None => bench.finish(Op::Mount, "v"),
            Some(class) => bench.fail(Op::Mount, "v", error(class, "no")),
        }
        bench.pass(Nanos::secs(600));
        assert_eq!((bench.count(Op::Mount, "v"), bench.count(Op::Unmount, "v")), (1, 1), "{outcome:?}");
        assert_eq!(bench.phase("v"), None, "{outcome:?}");
        assert_eq!(bench.count(Op::Tell, "FailedMount"), 0, "{outcome:?}: nobody wants to know");
    }
}

/// D6's situation: `v` removed, A restarted without it, B still in its grace.
fn b_still_holds_v() -> Bench {
    let mut bench = both_hold_v();
    bench.hold(Op::Stop, "b");
    bench.hold(Op::Kill, "b");
    drop_v_everywhere(&mut bench);
    bench
}

#[test]
fn d06_teardown_waits_for_the_slowest_holder() {
    let mut bench = b_still_holds_v();
    for _ in 0..3 {
        bench.pass(Nanos::secs(9));
        assert!(bench.is_running("a"));
        assert_eq!(bench.count(Op::Unmount, "v"), 0);
        assert_eq!(bench.phase("v"), Some(HostPhase::Unmounting));
    }
    assert_eq!(bench.retained(), ["v#0"]);
    bench.let_go(Op::Stop, "b");
    assert_eq!(bench.count(Op::Unmount, "v"), 1);
    assert_eq!((bench.phase("v"), bench.retained().len()), (None, 0));
}

#[test]
fn d07_a_restart_between_removal_and_teardown_does_not_unmount_on_ignorance() {
    let mut bench = b_still_holds_v();
    bench.hold(Op::Runtime, "");
    bench.restart_whole();
    bench.pass(Nanos::secs(5));
    assert_eq!(bench.count(Op::Unmount, "v"), 0, "the runtime's list is not in");
    bench.let_go(Op::Runtime, "");
    bench.pass(Nanos::secs(5));
    assert_eq!(bench.count(Op::Unmount, "v"), 0, "B was seen running");
    bench.let_go(Op::Stop, "b");
    assert_eq!(bench.count(Op::Unmount, "v"), 1);
}

#[test]
fn d08_a_restart_between_teardown_and_its_record_tears_down_again() {
    let mut bench = both_hold_v();
    bench.hold(Op::Unmount, "v");
    drop_v_everywhere(&mut bench);
    // The teardown is done on the host, and its answer dies with the agent.
    assert!(bench.is_held(Op::Unmount, "v"));
    bench.take_mount(POD, &volume_id("v", 0));
    bench.restart_whole();
    assert_eq!(bench.retained(), ["v#0"]);
    bench.let_go(Op::Unmount, "v");
    assert_eq!(bench.retained(), Vec::<String>::new());
    assert_eq!(bench.count(Op::Unmount, "v"), 2);
    bench.pass(Nanos::secs(600));
    assert_eq!((bench.count(Op::Unmount, "v"), bench.phase("v")), (2, None));
}

#[test]
fn d09_a_restart_after_an_allocation_and_before_its_mount_mounts_and_allocates_nothing_anew() {
    let mut bench = a_and_b();
    bench.hold(Op::Mount, "v");
    bench.change(|spec| {
        spec.add_volume(config_map("v", "a"));
        spec.edit("a", |c| c.mounts.push(mount("v")));
    });
    let allocated_at = bench.node.pod(POD).and_then(|p| p.allocated.as_ref().map(|a| a.at));
    bench.pass(Nanos::secs(1));
    bench.restart_whole();
    assert!(bench.is_held(Op::Mount, "v"));
    bench.let_go(Op::Mount, "v");
    assert_eq!(bench.phase("v"), Some(HostPhase::HostMounted));
    assert_eq!(bench.row("a").expect("shown").mounts, [mount("v")]);
    assert_eq!(bench.node.pod(POD).and_then(|p| p.allocated.as_ref().map(|a| a.at)), allocated_at);
}

#[test]
fn d10_another_source_under_the_same_name_is_another_volume() {
    let mut bench = Bench::running(pod(POD, vec![swapper("a", &["v"])], vec![config_map("v", "a")]));
    bench.hold(Op::Stop, "a");
    bench.change(|spec| spec.replace_volume(config_map("v", "b")));
    bench.pass(Nanos::secs(20));
    assert_eq!(bench.take_story(), ["stop a#0.0"], "the old content is untouched until A has stopped");
    assert_eq!(bench.phase("v"), Some(HostPhase::Unmounting));
    bench.let_go(Op::Stop, "a");
    assert_eq!(bench.take_story(), ["unmount v#0", "mount v#1", "create a#0.1", "start a#0.1"]);
    assert_eq!(bench.phase("v"), Some(HostPhase::HostMounted));
}

#[test]
fn d11_a_volume_being_removed_is_frozen() {
    let mut bench = b_still_holds_v();
    bench.object("a", 2);
    bench.fact(Fact::ObjectGone { object: object_ref("a") });
    bench.object("a", 3);
    bench.pass(Nanos::secs(20));
    assert_eq!(bench.count(Op::Refresh, "v"), 0);
    assert_eq!(bench.count(Op::Tell, "FailedMount"), 0);
    // A refresh that was on its way when the removal came: its failure is nobody's concern.
    let mut bench = both_hold_v();
    bench.hold(Op::Refresh, "v");
    bench.object("a", 2);
    drop_v_everywhere(&mut bench);
    bench.fail(Op::Refresh, "v", error(ErrorClass::Final, "forbidden"));
    assert_eq!(bench.count(Op::Tell, "FailedMount"), 0);
    assert_eq!((bench.count(Op::Refresh, "v"), bench.count(Op::Unmount, "v")), (1, 1));
}

#[test]
fn d11_a_credential_of_a_volume_being_removed_is_not_renewed() {
    let mut bench = Bench::new(config(4000));
    bench.renews("v", Some(Nanos::secs(60)));
    bench.apply(pod(POD, vec![swapper("a", &["v"])], vec![token("v")]));
    bench.hold(Op::Stop, "a");
    bench.hold(Op::Kill, "a");
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts.clear());
        spec.remove_volume("v");
    });
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.count(Op::Refresh, "v"), 0);
}

#[test]
fn d12_a_refresh_that_fails_leaves_the_old_content_and_says_so_once() {
    let mut bench = a_and_b();
    bench.failing(Op::Refresh, "own", error(ErrorClass::Final, "no space left on device"));
    let start = bench.now;
    bench.object("own", 2);
    bench.pass(Nanos::secs(10));
    assert_eq!(bench.phase("own"), Some(HostPhase::HostMounted));
    assert_eq!(bench.error_message("own"), "", "errorMessage speaks of SetUp");
    assert_eq!(bench.count(Op::Tell, "FailedMount"), 1);
    assert_eq!(bench.times(Op::Refresh, "own", start), [0, 500, 1500, 3500, 7500].map(Nanos::millis));
    assert!(bench.is_running("b"));
    bench.works_again(Op::Refresh, "own");
    bench.pass(Nanos::secs(10));
    bench.log.clear();
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.count(Op::Refresh, "own"), 0, "once written it rests");
}

#[test]
fn d13_a_teardown_that_fails_is_told_and_tried_again_and_keeps_nobody_waiting() {
    let mut bench = both_hold_v();
    let busy = error(ErrorClass::Final, "target is busy");
    bench.failing(Op::Unmount, "v", busy);
    let start = bench.now;
    drop_v_everywhere(&mut bench);
    bench.pass(Nanos::secs(2));
    assert_eq!(bench.phase("v"), Some(HostPhase::Unmounting));
    assert_eq!(bench.error_message("v"), "target is busy");
    assert!(bench.count(Op::Tell, "FailedUnmount") > 0);
    bench.change(|spec| {
        spec.add_volume(empty_dir("w"));
        spec.edit("a", |c| c.mounts.push(mount("w")));
    });
    assert_eq!(bench.row("a").expect("shown").mounts, [mount("w")], "another name is mounted meanwhile");
    bench.pass(Nanos::millis(1400));
    bench.works_again(Op::Unmount, "v");
    bench.pass(Nanos::secs(1));
    // Three failures, with 0.5, 1 and 2 s after them.
    assert_eq!(bench.times(Op::Unmount, "v", start), [0, 500, 1500, 3500].map(Nanos::millis));
    assert_eq!(bench.phase("v"), None);
}

#[test]
fn d14_an_image_volume_is_ready_when_its_image_is_there_and_keeps_it() {
    let mut bench = a_and_b();
    let absent = OpError {
        reason: Some("ErrImageNeverPull".into()),
        ..error(ErrorClass::Final, "image is not present with pull policy of Never")
    };
    bench.failing(Op::Mount, "v", absent);
    bench.change(|spec| {
        spec.add_volume(image_volume("v", PullPolicy::Never));
        spec.edit("a", |c| c.mounts.push(mount("v")));
    });
    assert_eq!(bench.phase("v"), Some(HostPhase::ErrorMounting));
    bench.works_again(Op::Mount, "v");
    bench.pass(Nanos::secs(1));
    assert_eq!(bench.phase("v"), Some(HostPhase::HostMounted), "without a change of the spec");
    let volume = |bench: &Bench| bench.node.pod(POD).expect("known").volume("v").expect("known").clone();
    assert_eq!(volume(&bench).upkeep.image_digest.as_deref(), Some("sha256:data"));
    // Ready and mounted by nobody: the lease on the image stays until the volume is removed.
    bench.change(|spec| spec.edit("a", |c| c.mounts.clear()));
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.count(Op::Unmount, "v"), 0);
    bench.change(|spec| spec.remove_volume("v"));
    assert_eq!(bench.count(Op::Unmount, "v"), 1, "which drops it");
}

#[test]
fn d15_a_removal_beside_an_infeasible_resize_is_not_made_until_that_is_withdrawn() {
    let mut bench = both_hold_v();
    bench.change(|spec| {
        spec.edit("a", |c| {
            c.mounts.clear();
            c.resources.requests = cpu_of(9000);
        });
        spec.edit("b", |c| c.mounts.clear());
        spec.remove_volume("v");
    });
    bench.pass(Nanos::secs(600));
    assert_eq!(
        bench.node.pod(POD).and_then(|p| p.pending.clone()).map(|p| p.kind),
        Some(PendingKind::Infeasible)
    );
    assert_eq!(bench.take_story(), Vec::<String>::new());
    assert_eq!(bench.phase("v"), Some(HostPhase::HostMounted));
    assert_eq!((bench.allocated_volumes(), bench.retained().len()), (vec!["v".into()], 0));
    bench.change(|spec| spec.edit("a", |c| c.resources = Default::default()));
    assert_eq!(bench.count(Op::Unmount, "v"), 1);
    assert_eq!(bench.phase("v"), None);
}

#[test]
fn d16_a_pod_deleted_while_a_volume_is_retained_tears_each_instance_down_once() {
    let mut bench = b_still_holds_v();
    bench.change(|spec| {
        spec.add_volume(empty_dir("w"));
        spec.edit("a", |c| c.mounts.push(mount("w")));
    });
    bench.log.clear();
    bench.delete(Nanos::secs(10));
    bench.pass(Nanos::secs(5));
    assert_eq!(bench.count(Op::Unmount, "v"), 0);
    bench.let_go(Op::Stop, "b");
    bench.let_go(Op::Kill, "b");
    bench.pass(Nanos::secs(60));
    assert_eq!((bench.count(Op::Unmount, "v"), bench.count(Op::Unmount, "w")), (1, 1));
    assert_eq!(bench.mount_count(), 0);
    assert!(bench.node.pod(POD).is_none());
}

#[test]
fn d17_what_is_in_a_memory_volume_counts_until_its_unmount_is_confirmed() {
    let given = vec![swapper("a", &[]), user("b", &["v"])];
    let mut bench = Bench::running(pod(POD, given, vec![memory_dir("v", GI)]));
    let report = |bytes| Fact::UsageReported { pod: POD, of: UsageOf::Volume(volume_id("v", 0)), bytes };
    let usage = |bench: &Bench| {
        bench
            .node
            .pod(POD)
            .expect("known")
            .volumes
            .iter()
            .find(|v| &*v.id.name == "v")
            .map(|v| v.upkeep.usage)
    };
    bench.fact(report(GI));
    bench.change(|spec| spec.remove("b"));
    assert!(bench.row("b").is_some_and(|r| !r.ready));
    assert_eq!(usage(&bench), Some(Some(GI)), "its container is gone, its pages are not");
    bench.hold(Op::Unmount, "v");
    bench.change(|spec| spec.remove_volume("v"));
    assert_eq!(usage(&bench), Some(Some(GI)), "nor are they while it is being unmounted");
    bench.let_go(Op::Unmount, "v");
    assert_eq!(usage(&bench), None);
}

#[test]
fn d17_a_retained_volume_counts_against_the_pods_limit() {
    let limits = nodefold_core::resources::ResourceList::from_pairs([(ResourceName::EphemeralStorage, GI)]);
    let limited = |c: Container| Container {
        resources: nodefold_core::resources::Resources { limits: limits.clone(), ..Default::default() },
        ..c
    };
    let given = vec![limited(swapper("a", &["v", "w"]))];
    let mut bench = Bench::running(pod(POD, given, vec![empty_dir("v"), empty_dir("w")]));
    let report =
        |name, bytes| Fact::UsageReported { pod: POD, of: UsageOf::Volume(volume_id(name, 0)), bytes };
    bench.fact(report("v", GI));
    bench.hold(Op::Unmount, "v");
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts.retain(|m| &*m.name != "v"));
        spec.remove_volume("v");
    });
    bench.fact(report("w", 1));
    assert_eq!(&*bench.status().reason, "Evicted");
}

#[test]
fn d18_of_two_sub_paths_of_one_volume_one_may_go() {
    let sub = |path: &str| VolumeMount {
        mount_path: format!("/{path}").into(),
        rest: Blob(format!("{{\"subPath\":\"{path}\"}}").into()),
        ..mount("v")
    };
    let holder = Container { mounts: vec![sub("one"), sub("two")], ..swapper("a", &[]) };
    let mut bench = Bench::running(pod(POD, vec![holder], vec![empty_dir("v")]));
    bench.change(|spec| spec.edit("a", |c| c.mounts.retain(|m| &*m.mount_path != "/one")));
    // Only the container: the volume stays as it is, and the new instance has just the second bind.
    assert_eq!(bench.take_story(), ["stop a#0.0", "create a#0.1", "start a#0.1"]);
    assert_eq!(bench.row("a").expect("shown").mounts, [sub("two")]);
    // An order of mounts is no change, and restarts nothing.
    bench.change(|spec| spec.edit("a", |c| c.mounts.push(sub("three"))));
    bench.log.clear();
    bench.change(|spec| spec.edit("a", |c| c.mounts.reverse()));
    assert_eq!(bench.take_story(), Vec::<String>::new());
}

/// kubelet-volumes §6.30: what never came to be, and what nobody mounts any more, is as good as never tried. Its error
/// stays shown, and whoever mounts it next has it tried again.
#[test]
fn a_failed_volume_that_nobody_mounts_any_more_rests() {
    let mut bench = Bench::new(config(4000));
    bench.failing(Op::Mount, "v", error(ErrorClass::Final, "no such object"));
    bench.apply(pod(POD, vec![container("stays")], vec![]));
    bench.change(|spec| {
        spec.add_volume(config_map("v", "settings"));
        spec.add(user("uses", &["v"]));
    });
    assert!(bench.count(Op::Mount, "v") >= 1);
    bench.change(|spec| spec.remove("uses"));
    bench.pass(Nanos::secs(1));
    bench.log.clear();
    bench.pass(Nanos::secs(3600));
    assert_eq!(bench.count(Op::Mount, "v"), 0, "nobody needs it");
    assert_eq!(bench.phase("v"), Some(HostPhase::ErrorMounting), "and why it is not there is still shown");
    bench.works_again(Op::Mount, "v");
    bench.change(|spec| spec.add(user("again", &["v"])));
    bench.pass(Nanos::secs(200));
    assert_eq!(bench.phase("v"), Some(HostPhase::HostMounted));
    assert!(bench.is_running("again"));
}
