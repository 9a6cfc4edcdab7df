//! L1–L5: what a trace must have come to at its end; and that the oracles' memory is bounded by what lives.

use crate::story::{Story, row, running, status, volume, waiting, with_rows};
use crate::{APPLIED, MOUNT, STARTED};
use nodefold_core::command::Rule;
use nodefold_core::event::ErrorClass;
use nodefold_core::status::{ContainerState, HostPhase, PodPhase, VolumeStatus};
use nodefold_core::time::{Nanos, Time};
use nodefold_model::{COMMANDS_PER_MINUTE, Invariant, Oracles};
use std::sync::Arc;

fn at_the_end(s: &Story) -> Vec<(Invariant, Vec<usize>)> {
    let mut oracles = Oracles::new(&s.config);
    oracles.heal(Time(0));
    s.trace.iter().for_each(|entry| oracles.observe(entry));
    oracles.at_rest(s.now.after(Nanos::secs(300)));
    let found = oracles.take_violations().into_iter().filter(|v| v.invariant >= Invariant::L1);
    found.map(|v| (v.invariant, v.evidence)).collect()
}

fn settled(state: ContainerState) -> nodefold_core::status::PodStatus {
    let mut status = with_rows(PodPhase::Running, vec![row("app", state)]);
    status.volumes.push(VolumeStatus {
        name: "data".into(),
        phase: HostPhase::HostMounted,
        error_message: "".into(),
    });
    status
}

#[test]
fn a_running_pod_is_quiet() {
    let mut s = Story::new();
    s.up().publish(settled(running())).written();
    assert_eq!(at_the_end(&s), []);
}

#[test]
fn l1_a_wish_that_the_status_does_not_know() {
    let mut s = Story::new();
    s.up().publish(settled(running())).written();
    let (publish, wish) = (s.next() - 2, s.next());
    s.wish(|p| p.volumes.clear());
    assert_eq!(
        at_the_end(&s),
        [(Invariant::L1, vec![wish, publish])].map(|(i, mut e)| {
            e.sort_unstable();
            (i, e)
        })
    );
}

#[test]
fn l1_a_container_that_waits_without_a_reason() {
    let mut s = Story::new();
    s.up();
    let publish = s.next();
    s.publish(settled(ContainerState::Waiting { reason: "".into(), message: "".into() })).written();
    assert_eq!(at_the_end(&s), [(Invariant::L1, vec![APPLIED, publish])]);
    let mut s = Story::new();
    s.up().publish(settled(waiting())).written();
    assert_eq!(at_the_end(&s), []);
}

#[test]
fn l2_race_6_a_removed_volume_is_never_unmounted() {
    let mut s = Story::new();
    s.up().wish(|p| {
        p.containers.clear();
        p.volumes.clear();
    });
    s.allocate().stop("app", 30, Rule::ContainerRemoved).exited("app", 0);
    let unmount = s.next();
    s.unmount("data").unmount_failed("data");
    let mut told = status(PodPhase::Running);
    told.observed_generation = 2;
    s.publish(told).written();
    assert_eq!(at_the_end(&s), [(Invariant::L2, vec![unmount, unmount + 1])]);
}

#[test]
fn l2_a_removed_container_is_never_stopped() {
    let mut s = Story::new();
    s.up().wish(|p| p.containers.clear()).allocate().refresh("data").refreshed("data");
    let shown = s.next() - 2;
    let mut told = settled(running());
    told.observed_generation = 2;
    s.publish(told).written();
    assert_eq!(at_the_end(&s), [(Invariant::L2, vec![STARTED, shown])]);
}

#[test]
fn l3_a_deleted_pod_is_never_released() {
    let mut s = Story::new();
    s.up();
    let delete = s.next();
    s.delete(30).stop("app", 30, Rule::PodTerminating).exited("app", 0);
    s.unmount_by("data", Rule::PodVolumesReleased).unmounted("data");
    assert_eq!(at_the_end(&s), [(Invariant::L3, vec![delete])]);
    s.sandbox_died(0).publish(status(PodPhase::Failed)).written().release().gone();
    assert_eq!(at_the_end(&s), []);
}

#[test]
fn l4_a_mount_is_retried_without_delay() {
    let mut s = Story::new();
    s.apply().publish(settled(waiting())).written();
    let first = s.next();
    for _ in 0..=COMMANDS_PER_MINUTE {
        s.mount("data").mount_failed("data", ErrorClass::Final);
    }
    let last = s.next() - 2;
    assert_eq!(at_the_end(&s), [(Invariant::L4, vec![first, last])]);
}

#[test]
fn l5_a_mount_without_an_end() {
    let mut s = Story::new();
    s.apply().mount("data").publish(settled(waiting())).written();
    assert_eq!(at_the_end(&s), [(Invariant::L5, vec![MOUNT])]);
}

/// What is still remembered at the end of a story in which nothing went wrong.
fn remembered(s: &Story) -> usize {
    let mut oracles = Oracles::new(&s.config);
    s.trace.iter().for_each(|entry| oracles.observe(entry));
    oracles.finish();
    assert_eq!(oracles.violations(), []);
    oracles.remembered()
}

#[test]
fn memory_does_not_grow_with_crashes() {
    let story = |crashes: u32| {
        let mut s = Story::new();
        s.up();
        for attempt in 0..crashes {
            s.exited(&format!("app.{attempt}"), 1).wait(300).run(&format!("app.{}", attempt + 1));
        }
        s
    };
    assert_eq!(remembered(&story(20)), remembered(&story(500)));
}

#[test]
fn memory_does_not_grow_with_wishes_never_allocated() {
    let story = |wishes: u32| {
        let mut s = Story::new();
        s.up();
        for wish in 0..wishes {
            s.wish(|p| p.volumes[0] = Arc::new(volume("data", &format!("v{wish}"))));
        }
        s
    };
    assert_eq!(remembered(&story(100)), remembered(&story(500)));
}

#[test]
fn memory_does_not_grow_with_pods_released() {
    let story = |pods: u128| {
        let mut s = Story::new();
        for uid in 1..=pods {
            s.another_pod(uid).pod.deletion = None;
            s.up().delete(30).stop("app", 30, Rule::PodTerminating).exited("app", 0);
            s.unmount_by("data", Rule::PodVolumesReleased).unmounted("data");
            s.sandbox_died(0).publish(status(PodPhase::Failed)).written().release().gone();
        }
        s
    };
    assert_eq!(remembered(&story(10)), remembered(&story(500)));
}
