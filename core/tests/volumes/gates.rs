//! The two feature gates, each switched while the node runs (KEP-5972 and KEP-6395 "Feature Enablement and Rollback").

use crate::bench::{Bench, Op};
use crate::kit::*;
use nodefold_core::config::{FeatureGates, NodeFacts};
use nodefold_core::event::Fact;
use nodefold_core::state::PendingKind;
use nodefold_core::status::HostPhase;
use nodefold_core::time::Nanos;

fn switch(bench: &mut Bench, dynamic_containers: bool, dynamic_volumes: bool) {
    let gates = FeatureGates { dynamic_containers, dynamic_volumes };
    let node = NodeFacts { gates, ..bench.node.config().node.clone() };
    bench.fact(Fact::NodeChanged(node));
}

fn pending(bench: &Bench) -> Option<PendingKind> {
    bench.node.pod(POD).expect("the pod is known").pending.as_ref().map(|p| p.kind)
}

fn one_volume() -> Bench {
    Bench::running(pod(POD, vec![swapper("a", &["v"]), container("b")], vec![config_map("v", "a")]))
}

#[test]
fn without_dynamic_volumes_what_was_added_runs_on_and_nothing_more_is_changed() {
    let mut bench = one_volume();
    bench.change(|spec| {
        spec.add_volume(empty_dir("w"));
        spec.edit("a", |c| c.mounts.push(mount("w")));
    });
    switch(&mut bench, true, false);
    bench.log.clear();
    assert!(bench.is_running("a"));
    assert_eq!(bench.row("a").expect("shown").mounts, [mount("v"), mount("w")]);
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts.retain(|m| &*m.name != "w"));
        spec.remove_volume("w");
    });
    bench.pass(Nanos::secs(600));
    assert_eq!(pending(&bench), Some(PendingKind::Infeasible));
    assert_eq!(bench.take_story(), Vec::<String>::new());
    // A crash of the container finds its volumes as before.
    bench.exits("a", 1);
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.row("a").expect("shown").mounts, [mount("v"), mount("w")]);
}

#[test]
fn enabled_again_what_waits_is_allocated_without_a_new_request() {
    let mut bench = one_volume();
    switch(&mut bench, true, false);
    bench.change(|spec| {
        spec.add_volume(empty_dir("w"));
        spec.edit("a", |c| c.mounts.push(mount("w")));
    });
    assert_eq!(pending(&bench), Some(PendingKind::Infeasible));
    switch(&mut bench, true, true);
    assert_eq!(pending(&bench), None);
    assert_eq!(bench.phase("w"), Some(HostPhase::HostMounted));
    assert_eq!(bench.row("a").expect("shown").mounts, [mount("v"), mount("w")]);
}

#[test]
fn volume_statuses_are_shown_only_with_the_gate_on() {
    let mut bench = one_volume();
    assert_eq!(bench.status().volumes.len(), 1);
    switch(&mut bench, true, false);
    assert_eq!(bench.status().volumes, []);
    assert_eq!(bench.published.get(&POD).expect("published").volumes, [], "and that is told");
    switch(&mut bench, true, true);
    assert_eq!(bench.status().volumes.len(), 1);
}

#[test]
fn what_is_retained_is_torn_down_with_the_gate_off_too() {
    let mut bench = one_volume();
    bench.hold(Op::Stop, "a");
    bench.change(|spec| {
        spec.edit("a", |c| c.mounts.clear());
        spec.remove_volume("v");
    });
    switch(&mut bench, false, false);
    bench.restart_whole();
    assert_eq!(bench.retained(), ["v#0"]);
    bench.let_go(Op::Stop, "a");
    bench.pass(Nanos::secs(60));
    assert_eq!(bench.count(Op::Unmount, "v"), 1);
    assert!(bench.is_running("a"));
}

#[test]
fn a_collision_is_resolved_with_the_gate_off_too() {
    let mut bench = one_volume();
    bench.hold(Op::Unmount, "v");
    bench.change(|spec| spec.replace_volume(config_map("v", "b")));
    switch(&mut bench, false, false);
    bench.let_go(Op::Unmount, "v");
    assert!(bench.is_running("a"), "what was allocated is actuated: {:?}", bench.story());
}

#[test]
fn without_dynamic_containers_an_image_bypasses_allocation_and_the_rest_waits() {
    let mut bench = one_volume();
    switch(&mut bench, false, true);
    bench.log.clear();
    bench.change(|spec| {
        spec.edit("b", |c| c.image = "image:2".into());
        spec.add(container("c"));
    });
    assert_eq!(pending(&bench), Some(PendingKind::Infeasible));
    assert_eq!(bench.take_story(), ["stop b#0.0", "create b#0.1", "start b#0.1"]);
    assert_eq!(&*bench.row("b").expect("shown").image, "image:2");
    assert_eq!(bench.waiting_reason("c").as_deref(), Some("Unallocated"));
    switch(&mut bench, true, true);
    assert!(bench.is_running("c"));
}

#[test]
fn without_dynamic_containers_a_resize_beside_a_new_container_is_blocked_too() {
    let mut bench = one_volume();
    switch(&mut bench, false, true);
    bench.change(|spec| {
        spec.edit("b", |c| c.resources.requests = cpu_of(100));
        spec.add(container("c"));
    });
    assert_eq!(pending(&bench), Some(PendingKind::Infeasible));
    assert_eq!(bench.node.allocated(POD).expect("allocated").generation, 1);
    // Alone it is allocated as ever.
    bench.change(|spec| spec.remove("c"));
    assert_eq!(pending(&bench), None);
    assert_eq!(bench.node.allocated(POD).expect("allocated").generation, 3);
}

#[test]
fn without_dynamic_containers_what_was_added_runs_on_and_what_was_removed_still_goes() {
    let mut bench = one_volume();
    bench.change(|spec| spec.add(container("c")));
    bench.hold(Op::Stop, "b");
    bench.change(|spec| spec.remove("b"));
    switch(&mut bench, false, true);
    bench.let_go(Op::Stop, "b");
    bench.restart_whole();
    bench.exits("c", 1);
    bench.pass(Nanos::secs(60));
    assert!(bench.is_running("c"), "an allocated container is restarted as ever");
    assert!(!bench.is_running("b"));
}

#[test]
fn a_deferred_change_becomes_infeasible_when_its_gate_goes_and_comes_back_with_it() {
    let mut bench = Bench::new(config(1000));
    bench.apply(pod(OTHER, vec![with_cpu(700, container("x"))], vec![]));
    bench.apply(pod(POD, vec![with_cpu(100, container("a"))], vec![]));
    bench.change(|spec| spec.add(with_cpu(500, container("c"))));
    assert_eq!(pending(&bench), Some(PendingKind::Deferred));
    switch(&mut bench, false, true);
    assert_eq!(pending(&bench), Some(PendingKind::Infeasible));
    switch(&mut bench, true, true);
    assert_eq!(pending(&bench), Some(PendingKind::Deferred));
    bench.fact(Fact::PodRemoved { pod: OTHER });
    bench.pass(Nanos::secs(60));
    assert!(bench.is_running("c"));
}
