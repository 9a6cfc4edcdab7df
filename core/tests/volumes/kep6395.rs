//! KEP-6395 on the node: identity, collision, leases, per-container deferral, what is shown (DESIGN §4 rules 1 to 5, 7, 8).

use crate::bench::{Bench, Op};
use crate::kit::*;
use nodefold_core::event::{ErrorClass, Fact};
use nodefold_core::spec::{Container, PodSpec, RestartPolicy};
use nodefold_core::state::PendingKind;
use nodefold_core::status::HostPhase;
use nodefold_core::time::Nanos;
use std::sync::Arc;

fn pending(bench: &Bench) -> Option<PendingKind> {
    bench.node.pod(POD).expect("the pod is known").pending.as_ref().map(|p| p.kind)
}

fn holder_and_bystander() -> Bench {
    let given = vec![swapper("a", &["v"]), user("b", &["own"])];
    Bench::running(pod(POD, given, vec![config_map("v", "a"), empty_dir("own")]))
}

// --- rule 1: one transaction -------------------------------------------------------------------------------------------

#[test]
fn rule_1_a_deferred_transaction_changes_nothing_and_is_allocated_as_a_whole_when_there_is_room() {
    let mut bench = Bench::new(config(1000));
    bench.apply(pod(OTHER, vec![with_cpu(600, container("x"))], vec![]));
    bench.apply(pod(POD, vec![with_cpu(100, swapper("a", &["v"]))], vec![config_map("v", "a")]));
    bench.log.clear();
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts = vec![mount("w")]);
        spec.edit("a", |c| c.image = "image:2".into());
        spec.remove_volume("v");
        spec.add_volume(empty_dir("w"));
        spec.add(with_cpu(600, container("b")));
    });
    assert_eq!(pending(&bench), Some(PendingKind::Deferred));
    bench.pass(Nanos::secs(900));
    assert_eq!(bench.take_story(), Vec::<String>::new());
    assert_eq!(
        (bench.phase("v"), bench.phase("w")),
        (Some(HostPhase::HostMounted), Some(HostPhase::Pending))
    );
    assert_eq!(bench.waiting_reason("b").as_deref(), Some("Unallocated"));
    assert_eq!((bench.allocated_volumes(), bench.retained().len()), (vec!["v".into()], 0));
    bench.fact(Fact::PodRemoved { pod: OTHER });
    bench.pass(Nanos::secs(60));
    assert_eq!(pending(&bench), None);
    assert_eq!((bench.phase("v"), bench.phase("w")), (None, Some(HostPhase::HostMounted)));
    assert!(bench.is_running("a") && bench.is_running("b"));
    assert_eq!(&*bench.row("a").expect("shown").image, "image:2");
}

#[test]
fn rule_1_the_latest_desired_wins_and_a_removal_taken_back_before_it_was_allocated_never_was() {
    let mut bench = holder_and_bystander();
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts.clear());
        spec.remove_volume("v");
        spec.add(with_cpu(9000, container("huge")));
    });
    assert_eq!(pending(&bench), Some(PendingKind::Infeasible));
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts.push(mount("v")));
        spec.volumes.insert(0, Arc::new(config_map("v", "a")));
        spec.remove("huge");
    });
    bench.pass(Nanos::secs(600));
    assert_eq!(pending(&bench), None);
    assert_eq!(bench.take_story(), Vec::<String>::new());
    assert_eq!(bench.phase("v"), Some(HostPhase::HostMounted));
}

#[test]
fn rule_1_nothing_is_allocated_once_the_pod_terminates() {
    let mut bench = holder_and_bystander();
    bench.hold(Op::Stop, "a");
    bench.hold(Op::Kill, "a");
    bench.delete(Nanos::secs(30));
    bench.log.clear();
    bench.change(|spec| {
        spec.add_volume(empty_dir("late"));
        spec.add(user("late", &["late"]));
        spec.remove_volume("own");
    });
    bench.pass(Nanos::secs(10));
    assert_eq!(bench.allocated_volumes(), ["v", "own"]);
    assert_eq!((bench.count(Op::Mount, "late"), bench.phase("late")), (0, None));
}

// --- rule 2: actuation reads allocated only ----------------------------------------------------------------------------

#[test]
fn rule_2_what_is_desired_and_not_allocated_is_never_mounted_not_even_by_a_restart_of_its_container() {
    let mut bench = holder_and_bystander();
    bench.change(|spec| {
        spec.add_volume(empty_dir("w"));
        spec.edit("a", |c| c.mounts.push(mount("w")));
        spec.add(with_cpu(9000, container("huge")));
    });
    bench.exits("a", 1);
    bench.pass(Nanos::secs(60));
    assert!(bench.is_running("a"));
    assert_eq!(bench.count(Op::Mount, "w"), 0);
    assert_eq!(bench.row("a").expect("shown").mounts, [mount("v")]);
}

// --- rule 3: retained and leases ---------------------------------------------------------------------------------------

#[test]
fn rule_3_allocated_shows_the_allocated_spec_and_what_is_retained() {
    let mut bench = holder_and_bystander();
    bench.hold(Op::Unmount, "v");
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts.clear());
        spec.remove_volume("v");
    });
    let allocated = bench.node.allocated(POD).expect("allocated");
    assert_eq!((allocated.spec.volumes.len(), allocated.generation), (1, 2));
    let retained = allocated.retained.first().expect("one is retained");
    assert_eq!(retained.volume, volume_id("v", 0));
    assert_eq!(retained.spec.as_deref(), Some(&config_map("v", "a")));
    assert_eq!(retained.since, bench.now);
}

#[test]
fn rule_3_every_way_a_container_may_exist_holds_its_lease() {
    // (what of A hangs when v is removed, what lets go of the lease).
    for (hangs, lets_go) in [(Op::Create, Op::Create), (Op::Start, Op::Start), (Op::Stop, Op::Stop)] {
        let mut bench = Bench::new(config(4000));
        bench.apply(pod(POD, vec![container("first")], vec![]));
        bench.hold(hangs, "a");
        bench.change(|spec| {
            spec.add_volume(empty_dir("v"));
            spec.add(user("a", &["v"]));
        });
        bench.change(|spec| {
            spec.remove("a");
            spec.remove_volume("v");
        });
        bench.pass(Nanos::secs(5));
        assert_eq!(bench.count(Op::Unmount, "v"), 0, "while {hangs:?} hangs");
        bench.let_go(lets_go, "a");
        assert_eq!(bench.count(Op::Unmount, "v"), 1, "after {hangs:?}");
        assert_eq!(bench.count(Op::Start, "a") > 0, hangs != Op::Create, "never started after its removal");
    }
}

#[test]
fn rule_3_a_create_that_failed_releases_its_lease_and_one_that_timed_out_does_not() {
    for (class, released) in [(ErrorClass::Final, true), (ErrorClass::Uncertain, false)] {
        let mut bench = Bench::running(pod(POD, vec![container("first")], vec![]));
        bench.hold(Op::Create, "a");
        bench.hold(Op::Runtime, "");
        bench.change(|spec| {
            spec.add_volume(empty_dir("v"));
            spec.add(user("a", &["v"]));
        });
        bench.change(|spec| {
            spec.remove("a");
            spec.remove_volume("v");
        });
        bench.fail(Op::Create, "a", error(class, "no"));
        bench.pass(Nanos::secs(5));
        assert_eq!(bench.count(Op::Unmount, "v") == 1, released, "{class:?}");
        if !released {
            bench.let_go(Op::Runtime, "");
            assert_eq!(bench.count(Op::Unmount, "v"), 1, "the runtime's list shows that it never came to be");
        }
    }
}

#[test]
fn rule_3_an_ephemeral_container_holds_what_it_mounts_until_it_exits() {
    let mut bench = holder_and_bystander();
    let mut with_debugger = (*bench.node.desired(POD).expect("known")).clone();
    Arc::make_mut(&mut with_debugger.spec).ephemeral_containers.push(Arc::new(user("debug", &["v"])));
    bench.apply(with_debugger);
    assert!(bench.instance("debug").is_some());
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts.clear());
        spec.remove_volume("v");
    });
    bench.pass(Nanos::secs(600));
    assert!(bench.is_running("a"));
    assert_eq!((bench.count(Op::Unmount, "v"), bench.retained()), (0, vec!["v#0".into()]));
    bench.exits("debug", 0);
    assert_eq!(bench.count(Op::Unmount, "v"), 1);
}

// --- rule 4: identity and collision ------------------------------------------------------------------------------------

#[test]
fn rule_4_a_name_with_another_source_waits_for_the_former_life_and_says_so() {
    let mut bench = holder_and_bystander();
    bench.hold(Op::Unmount, "v");
    bench.change(|spec| spec.replace_volume(empty_dir("v")));
    bench.pass(Nanos::secs(10));
    assert_eq!(bench.allocated_volumes(), ["v", "own"], "the desired spec is allocated as a whole");
    assert_eq!((bench.retained(), bench.phase("v")), (vec!["v#0".into()], Some(HostPhase::Unmounting)));
    assert_eq!(bench.error_message("v"), "", "the reason of a wait is no SetUp error");
    let told: Vec<String> = bench.events_told("FailedAllocation");
    assert!(matches!(&told[..], [one] if one.contains("CollidesWithUnmounting")), "{told:?}");
    bench.hold(Op::Mount, "v");
    bench.let_go(Op::Unmount, "v");
    assert_eq!(bench.phase("v"), Some(HostPhase::Pending), "without a new request it is mounted now");
    bench.let_go(Op::Mount, "v");
    assert_eq!(bench.phase("v"), Some(HostPhase::HostMounted));
    assert!(bench.is_running("a"));
}

#[test]
fn rule_4_a_to_b_to_a_is_three_lives() {
    let mut bench = holder_and_bystander();
    bench.hold(Op::Unmount, "v");
    bench.change(|spec| spec.replace_volume(config_map("v", "b")));
    bench.change(|spec| spec.replace_volume(config_map("v", "a")));
    bench.pass(Nanos::secs(10));
    assert_eq!(bench.retained(), ["v#0"], "the second life was never on the host and is forgotten");
    bench.let_go(Op::Unmount, "v");
    let story = bench.take_story();
    assert_eq!(story, ["stop a#0.0", "unmount v#0", "mount v#2", "create a#0.1", "start a#0.1"]);
}

#[test]
fn rule_4_a_holder_that_may_not_be_restarted_makes_the_transaction_infeasible() {
    let mut bench = Bench::running(pod(POD, vec![user("a", &["v"])], vec![config_map("v", "a")]));
    let edits: [fn(&mut PodSpec); 3] = [
        |spec| spec.replace_volume(config_map("v", "b")),
        |spec| {
            spec.edit("a", |c| c.mounts.clear());
            spec.remove_volume("v");
        },
        |spec| {
            spec.add_volume(empty_dir("w"));
            spec.edit("a", |c| c.mounts.push(mount("w")));
        },
    ];
    let before = (*bench.node.desired(POD).expect("known").spec).clone();
    for (n, edit) in edits.into_iter().enumerate() {
        bench.change(|spec| *spec = before.clone());
        bench.change(edit);
        assert_eq!(pending(&bench), Some(PendingKind::Infeasible), "edit {n}");
        assert_eq!(bench.take_story(), Vec::<String>::new(), "edit {n}");
        assert!(bench.is_running("a"), "edit {n}");
    }
    // With the container in the same transaction it is fine.
    bench.change(|spec| *spec = before.clone());
    bench.change(|spec| {
        spec.remove("a");
        spec.add(user("c", &["v"]));
        spec.replace_volume(config_map("v", "b"));
    });
    assert_eq!(bench.take_story(), ["stop a#0.0", "unmount v#0", "mount v#1", "create c#0.0", "start c#0.0"]);
}

#[test]
fn rule_4_the_policy_that_counts_is_the_allocated_one() {
    let mut bench = Bench::running(pod(POD, vec![user("a", &["v"])], vec![config_map("v", "a")]));
    bench.change(|spec| {
        spec.edit("a", |c| c.pull_policy = nodefold_core::spec::PullPolicy::Always);
        spec.replace_volume(config_map("v", "b"));
    });
    assert_eq!(pending(&bench), Some(PendingKind::Infeasible));
}

#[test]
fn rule_4_an_ephemeral_holder_makes_a_replacement_infeasible() {
    // It can't be restarted, and may never exit: the new life would wait for ever.
    let mut bench = holder_and_bystander();
    let mut with_debugger = (*bench.node.desired(POD).expect("known")).clone();
    Arc::make_mut(&mut with_debugger.spec).ephemeral_containers.push(Arc::new(user("debug", &["v"])));
    bench.apply(with_debugger);
    bench.change(|spec| spec.replace_volume(config_map("v", "b")));
    assert_eq!(pending(&bench), Some(PendingKind::Infeasible));
    assert!(bench.is_running("a"));
}

#[test]
fn rule_4_two_containers_that_swap_what_the_other_holds_are_both_stopped() {
    // A waits for the new v, whose former life B holds; B waits for the new u, whose former life A holds.
    let given = vec![swapper("a", &["u"]), swapper("b", &["v"])];
    let mut bench = Bench::running(pod(POD, given, vec![config_map("u", "u1"), config_map("v", "v1")]));
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts = vec![mount("v")]);
        spec.edit("b", |c| c.mounts = vec![mount("u")]);
        spec.replace_volume(config_map("u", "u2"));
        spec.replace_volume(config_map("v", "v2"));
    });
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.row("a").expect("shown").mounts, [mount("v")]);
    assert_eq!(bench.row("b").expect("shown").mounts, [mount("u")]);
    assert_eq!(
        (bench.phase("u"), bench.phase("v")),
        (Some(HostPhase::HostMounted), Some(HostPhase::HostMounted))
    );
}

#[test]
fn rule_4_a_holder_that_only_waits_for_something_else_is_not_stopped_for_another_ones_sake() {
    // A drops v (now another source, for C) and waits for w, which fails. D3: A keeps its old container; C waits, not A.
    let mut bench = holder_and_bystander();
    bench.failing(Op::Mount, "w", error(ErrorClass::Final, "no"));
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts = vec![mount("w")]);
        spec.replace_volume(config_map("v", "b"));
        spec.add_volume(config_map("w", "w"));
        spec.add(user("c", &["v"]));
    });
    bench.pass(Nanos::secs(60));
    assert!(bench.is_running("a"));
    assert_eq!(bench.count(Op::Stop, "a"), 0);
    bench.works_again(Op::Mount, "w");
    bench.pass(Nanos::secs(200));
    assert!(bench.is_running("a") && bench.is_running("c"));
}

#[test]
fn rule_4_a_container_parked_before_its_start_is_made_anew_when_its_mounts_change() {
    // S2, S3: it was made with the old life of v, whose removal is allocated now. It must not start.
    let mut bench = Bench::running(pod(POD, vec![container("first")], vec![config_map("v", "a")]));
    bench.failing(Op::Start, "a", error(ErrorClass::Transient, "try later"));
    bench.change(|spec| spec.add(swapper("a", &["v"])));
    assert_eq!(bench.node.instances(POD).last().map(|(_, state)| *state), Some("Created"));
    bench.works_again(Op::Start, "a");
    bench.log.clear();
    bench.change(|spec| spec.replace_volume(config_map("v", "b")));
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.take_story(), ["unmount v#0", "mount v#1", "create a#0.1", "start a#0.1"]);
}

// --- rule 5: deferral per container --------------------------------------------------------------------------------------

#[test]
fn rule_5_until_the_pod_was_initialized_every_volume_of_its_creation_comes_first() {
    let mut bench = Bench::new(config(4000));
    bench.hold(Op::Mount, "w");
    let volumes = vec![empty_dir("v"), config_map("w", "w")];
    bench.apply(pod(POD, vec![user("a", &["v"]), user("b", &["w"])], volumes));
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.take_story(), ["mount v#0", "mount w#0"], "not even a sandbox");
    bench.let_go(Op::Mount, "w");
    assert!(bench.is_running("a") && bench.is_running("b"));
}

#[test]
fn rule_5_then_a_container_waits_for_the_volumes_that_it_mounts_and_for_no_others() {
    let mut bench = holder_and_bystander();
    bench.hold(Op::Mount, "slow");
    bench.change(|spec| {
        spec.add_volume(config_map("slow", "s"));
        spec.add_volume(empty_dir("quick"));
        spec.add(user("c", &["slow"]));
        spec.add(user("d", &["quick", "own"]));
    });
    bench.pass(Nanos::secs(600));
    assert!(bench.is_running("d"));
    assert_eq!(bench.waiting_reason("c").as_deref(), Some("ContainerCreating"));
    assert!(bench.is_running("a") && bench.is_running("b"));
    bench.let_go(Op::Mount, "slow");
    assert!(bench.is_running("c"));
}

#[test]
fn rule_5_initialized_is_a_durable_fact_that_survives_restart_and_reboot() {
    for reboot in [false, true] {
        let mut bench = holder_and_bystander();
        bench.failing(Op::Mount, "v", error(ErrorClass::Final, "no"));
        if reboot {
            bench.reboot();
        } else {
            bench.take_mount(POD, &volume_id("v", 0));
            bench.restart();
        }
        bench.relist();
        bench.pass(Nanos::secs(60));
        assert!(bench.is_running("b"), "reboot {reboot}: one broken volume doesn't block the others");
        assert_eq!(bench.phase("v"), Some(HostPhase::ErrorMounting), "reboot {reboot}");
    }
}

#[test]
fn rule_5_a_pod_is_never_over_because_its_only_container_waits() {
    let mut bench = Bench::new(config(4000));
    let mut given = pod(POD, vec![swapper("a", &[])], vec![]);
    Arc::make_mut(&mut given.spec).restart_policy = RestartPolicy::Never;
    bench.apply(given);
    bench.hold(Op::Mount, "w");
    bench.hold(Op::Stop, "a");
    bench.change(|spec| {
        spec.add_volume(empty_dir("w"));
        spec.edit("a", |c| c.mounts.push(mount("w")));
        spec.add(user("b", &["w"]));
    });
    bench.exits("a", 0);
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.node.pod(POD).map(|p| p.label()), Some("Active"), "b has still to run");
    bench.let_go(Op::Mount, "w");
    assert!(bench.is_running("b"));
}

#[test]
fn rule_5_a_container_that_ended_for_good_is_not_woken_by_a_change_of_its_mounts() {
    let mut bench = Bench::new(config(4000));
    let mut given = pod(POD, vec![swapper("a", &[]), container("b")], vec![]);
    Arc::make_mut(&mut given.spec).restart_policy = RestartPolicy::Never;
    bench.apply(given);
    bench.exits("a", 0);
    bench.log.clear();
    bench.change(|spec| {
        spec.add_volume(empty_dir("w"));
        spec.edit("a", |c| c.mounts.push(mount("w")));
    });
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.count(Op::Create, "a"), 0);
}

#[test]
fn rule_6_a_restart_for_mounts_waits_for_no_crash_back_off_and_counts_as_a_restart() {
    let mut bench = holder_and_bystander();
    for _ in 0..3 {
        bench.exits("a", 1);
        bench.pass(Nanos::secs(60));
    }
    bench.exits("a", 1);
    assert_eq!(bench.waiting_reason("a").as_deref(), Some("CrashLoopBackOff"));
    let restarts = bench.row("a").expect("shown").restart_count;
    bench.change(|spec| {
        spec.add_volume(empty_dir("w"));
        spec.edit("a", |c| c.mounts.push(mount("w")));
    });
    assert!(bench.is_running("a"), "the old definition's back-off is not the new one's");
    assert_eq!(bench.row("a").expect("shown").restart_count, restarts + 1);
}

#[test]
fn rule_7_a_volume_set_up_stays_until_it_is_removed_even_if_nobody_mounts_it() {
    let mut bench = holder_and_bystander();
    bench.change(|spec| spec.edit("a", |c| c.mounts.clear()));
    bench.restart_whole();
    bench.reboot();
    bench.relist();
    bench.pass(Nanos::secs(600));
    assert_eq!(bench.count(Op::Unmount, "v"), 0);
}

// --- rule 8: what is shown -----------------------------------------------------------------------------------------------

#[test]
fn rule_8_the_four_phases_in_order() {
    let mut bench = Bench::running(pod(POD, vec![swapper("a", &[])], vec![]));
    bench.hold(Op::Mount, "v");
    bench.change(|spec| {
        spec.add_volume(empty_dir("v"));
        spec.edit("a", |c| c.mounts.push(mount("v")));
    });
    assert_eq!((bench.phase("v"), bench.error_message("v")), (Some(HostPhase::Pending), "".into()));
    bench.fail(Op::Mount, "v", error(ErrorClass::Final, &"long ".repeat(100)));
    assert_eq!(bench.phase("v"), Some(HostPhase::ErrorMounting));
    assert_eq!(bench.error_message("v").len(), 256, "short and bounded; the event has all of it");
    bench.pass(Nanos::secs(1));
    assert_eq!(bench.phase("v"), Some(HostPhase::ErrorMounting), "while it is tried again");
    bench.let_go(Op::Mount, "v");
    assert_eq!((bench.phase("v"), bench.error_message("v")), (Some(HostPhase::HostMounted), "".into()));
    bench.hold(Op::Unmount, "v");
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts.clear());
        spec.remove_volume("v");
    });
    assert_eq!(bench.phase("v"), Some(HostPhase::Unmounting));
    bench.let_go(Op::Unmount, "v");
    assert_eq!(bench.phase("v"), None);
    let published = bench.published.get(&POD).expect("published");
    assert_eq!(published.volumes, [], "and this is told");
}

#[test]
fn rule_8_the_kep_states_two_and_three() {
    // State 2: mounted on the host, the container not yet restarted: its volumeMounts are what it really has.
    let mut bench = Bench::running(pod(POD, vec![swapper("a", &[])], vec![]));
    bench.hold(Op::Stop, "a");
    bench.change(|spec| {
        spec.add_volume(empty_dir("v"));
        spec.edit("a", |c| c.mounts.push(mount("v")));
    });
    assert_eq!(bench.phase("v"), Some(HostPhase::HostMounted));
    assert_eq!(bench.row("a").expect("shown").mounts, []);
    // State 3: fully actuated.
    bench.let_go(Op::Stop, "a");
    assert_eq!(bench.row("a").expect("shown").mounts, [mount("v")]);
}

#[test]
fn init_containers_keep_their_mounts() {
    for edit in
        [(|spec| spec.edit("init", |c: &mut Container| c.mounts.clear())) as fn(&mut PodSpec), |spec| {
            spec.replace_volume(config_map("v", "b"))
        }]
    {
        let mut given = pod(POD, vec![swapper("a", &["v"])], vec![config_map("v", "a")]);
        Arc::make_mut(&mut given.spec).init_containers.push(Arc::new(swapper("init", &["v"])));
        let mut bench = Bench::new(config(4000));
        bench.apply(given);
        bench.exits("init", 0);
        assert!(bench.is_running("a"));
        bench.change(edit);
        assert_eq!(pending(&bench), Some(PendingKind::Infeasible));
    }
}

#[test]
fn a_memory_volume_larger_than_the_pods_memory_limit_is_infeasible() {
    use nodefold_core::resources::{ResourceList, ResourceName, Resources};
    let limits = ResourceList::from_pairs([(ResourceName::Memory, GI)]);
    let limited = Container { resources: Resources { limits, ..Resources::default() }, ..swapper("a", &[]) };
    for (size, expected) in [(GI, None), (GI + 1, Some(PendingKind::Infeasible))] {
        let mut bench = Bench::running(pod(POD, vec![limited.clone()], vec![]));
        bench.change(|spec| {
            spec.add_volume(memory_dir("v", size));
            spec.edit("a", |c| c.mounts.push(mount("v")));
        });
        assert_eq!(pending(&bench), expected, "{size}");
    }
}
