//! L1–L5: what a trace must have come to at its end; and that the oracles' memory is bounded by what lives.

use crate::story::{Story, row, running, status, waiting, with_rows};
use crate::{APPLIED, MOUNT, STARTED};
use nodefold_core::command::Rule;
use nodefold_core::event::ErrorClass;
use nodefold_core::status::{ContainerState, HostPhase, PodPhase, VolumeStatus};
use nodefold_core::time::{Nanos, Time};
use nodefold_model::{COMMANDS_PER_MINUTE, Invariant, liveness};

fn at_the_end(s: &Story) -> Vec<(Invariant, Vec<usize>)> {
    let found = liveness(&s.trace, Time(0), s.now.after(Nanos::secs(600)));
    found.into_iter().map(|v| (v.invariant, v.evidence)).collect()
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
    s.publish(status(PodPhase::Failed)).written().release().gone();
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

#[test]
fn ten_thousand_crashes_and_versions_stay_clean() {
    let mut s = Story::new();
    s.up();
    for attempt in 0..2_000u32 {
        s.exited(&format!("app.{attempt}"), 1).wait(300).run(&format!("app.{}", attempt + 1));
        s.wish(|p| p.volumes[0] = std::sync::Arc::new(crate::story::volume("data", &format!("v{attempt}"))));
    }
    s.is_clean();
}
