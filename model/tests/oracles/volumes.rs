//! S1, S6 (volumes), S10 (mount commands), S13.

use crate::story::{Story, volume, volume_id};
use crate::{CREATE, MOUNTED, STARTED};
use nodefold_core::command::Rule;
use nodefold_core::event::{ErrorClass, Fact, SeenState};
use nodefold_model::Invariant;
use std::sync::Arc;

#[test]
fn removed_volume_goes_after_its_holder_stopped() {
    let mut s = Story::new();
    s.up().wish(|p| {
        p.containers.clear();
        p.volumes.clear();
    });
    s.allocate().stop("app", 30, Rule::ContainerRemoved).exited("app", 0).unmount("data").unmounted("data");
    s.is_clean();
}

#[test]
fn b14_unmount_while_a_start_is_in_flight() {
    let mut s = Story::new();
    s.apply().mount("data").mounted("data").sandbox(0).create("app").created("app").start("app");
    s.delete(30);
    let unmount = s.next();
    s.unmount_by("data", Rule::PodVolumesReleased).breaks(Invariant::S1, &[CREATE, 7, unmount]);
}

#[test]
fn b15_force_delete_is_no_stop() {
    let mut s = Story::new();
    s.up().gone();
    let unmount = s.next();
    s.unmount_by("data", Rule::PodVolumesReleased).breaks(Invariant::S1, &[CREATE, STARTED, unmount]);
}

#[test]
fn b17_stopping_is_in_use() {
    let mut s = Story::new();
    s.up().delete(30).stop("app", 30, Rule::PodTerminating);
    let unmount = s.next();
    s.unmount_by("data", Rule::PodVolumesReleased).breaks(Invariant::S1, &[CREATE, STARTED, unmount]);
}

#[test]
fn b27_an_uncertain_create_holds_its_volumes() {
    let mut s = Story::new();
    s.apply()
        .mount("data")
        .mounted("data")
        .sandbox(0)
        .create("app")
        .create_failed("app", ErrorClass::Uncertain);
    s.delete(30);
    let unmount = s.next();
    s.unmount_by("data", Rule::PodVolumesReleased).breaks(Invariant::S1, &[CREATE, 6, unmount]);
}

#[test]
fn an_uncertain_create_that_a_later_complete_list_lacks_holds_nothing() {
    let mut s = Story::new();
    s.apply()
        .mount("data")
        .mounted("data")
        .sandbox(0)
        .create("app")
        .create_failed("app", ErrorClass::Uncertain);
    s.delete(30)
        .observe_runtime()
        .runtime(true, &[])
        .unmount_by("data", Rule::PodVolumesReleased)
        .unmounted("data");
    s.is_clean();
}

#[test]
fn a_partial_list_proves_no_absence() {
    let mut s = Story::new();
    s.up().delete(30).observe_runtime().runtime(false, &[]);
    let unmount = s.next();
    s.unmount_by("data", Rule::PodVolumesReleased).breaks(Invariant::S1, &[CREATE, STARTED, unmount]);
}

#[test]
fn a_list_asked_for_before_the_create_proves_no_absence() {
    let mut s = Story::new();
    s.apply().mount("data").mounted("data").sandbox(0).observe_runtime();
    s.create("app").created("app").start("app").started("app").runtime(true, &[]).delete(30);
    let unmount = s.next();
    s.unmount_by("data", Rule::PodVolumesReleased).breaks(Invariant::S1, &[CREATE + 1, STARTED + 1, unmount]);
}

#[test]
fn race_1_restart_during_termination() {
    let mut s = Story::new();
    s.agent_started(7).up().delete(300).stop("app", 300, Rule::PodTerminating);
    let restart = s.next();
    s.agent_started(7).apply();
    s.observe_runtime().runtime(true, &[]);
    s.unmount_by("data", Rule::PodVolumesReleased).unmounted("data").is_clean();

    let mut s = Story::new();
    s.agent_started(7).observe_runtime().runtime(true, &[]).up();
    s.exited("app", 0).agent_started(7).apply();
    let (started, unmount) = (s.next() - 2, s.next());
    assert!(restart < unmount);
    // The holder is known to have ended, but what else runs is not.
    s.unmount_by("data", Rule::VolumeOrphaned).breaks(Invariant::S1, &[started, unmount]);
}

#[test]
fn a_container_of_unknown_mounts_may_hold_anything() {
    let mut s = Story::new();
    s.apply().mount("data").mounted("data").observe_runtime();
    let seen = s.next();
    s.runtime(true, &[("stranger", SeenState::Unknown)]);
    let unmount = s.next();
    s.unmount("data").breaks(Invariant::S1, &[seen, unmount]);
}

#[test]
fn a_reboot_ends_every_process() {
    let mut s = Story::new();
    s.agent_started(7).observe_runtime().runtime(true, &[]).up().gone().agent_started(8);
    s.unmount_by("data", Rule::PodVolumesReleased).unmounted("data").is_clean();
}

#[test]
fn a_name_is_mounted_again_once_its_former_life_is_gone() {
    let mut s = Story::new();
    s.up().wish(|p| {
        p.volumes = vec![Arc::new(volume("data", "b"))];
        p.containers.clear();
    });
    s.allocate().stop("app", 30, Rule::ContainerRemoved).exited("app", 0);
    s.unmount("data").unmounted("data").mount("data#1").mounted("data#1").is_clean();
}

#[test]
fn two_lives_of_a_volume() {
    let mut s = Story::new();
    s.up().wish(|p| {
        p.volumes = vec![Arc::new(volume("data", "b"))];
        p.containers.clear();
    });
    s.allocate()
        .stop("app", 30, Rule::ContainerRemoved)
        .exited("app", 0)
        .unmount("data")
        .unmount_failed("data");
    let (failed, mount) = (s.next() - 1, s.next());
    s.mount("data#1").breaks(Invariant::S6, &[failed, mount]);
}

#[test]
fn a_mount_that_failed_for_certain_leaves_the_name_free() {
    let mut s = Story::new();
    s.apply().mount("data").mount_failed("data", ErrorClass::Final);
    s.wish(|p| p.volumes = vec![Arc::new(volume("data", "b"))]).allocate().mount("data#1").mounted("data#1");
    s.is_clean();
}

#[test]
fn race_12_an_uncertain_mount_holds_the_name() {
    let mut s = Story::new();
    s.apply().mount("data").mount_failed("data", ErrorClass::Uncertain);
    s.wish(|p| p.volumes = vec![Arc::new(volume("data", "b"))]).allocate();
    let mount = s.next();
    s.mount("data#1").breaks(Invariant::S6, &[MOUNTED, mount]);
}

#[test]
fn race_27_a_released_volume_is_mounted_again() {
    let mut s = Story::new();
    s.up().delete(30).stop("app", 30, Rule::PodTerminating).exited("app", 0);
    let unmount = s.next();
    s.unmount_by("data", Rule::PodVolumesReleased).unmounted("data");
    let mount = s.next();
    s.mount("data").breaks(Invariant::S10, &[unmount, mount]);
}

#[test]
fn a_lost_mount_is_mounted_again() {
    let mut s = Story::new();
    s.agent_started(7).observe_runtime().runtime(true, &[]).up().agent_started(8).apply();
    s.observe_mounts().mounts(&[]).mount("data").mounted("data").is_clean();
}

#[test]
fn race_11_a_mount_ends_after_the_volume_was_gone() {
    let mut s = Story::new();
    s.apply().mount("data").mount_failed("data", ErrorClass::Uncertain);
    let (op, pod, volume) = (s.op("data"), s.pod.uid, volume_id("data"));
    s.delete(30).unmount_by("data", Rule::PodVolumesReleased).unmounted("data");
    let (gone, late) = (s.next() - 1, s.next());
    let mounted = Fact::VolumeMounted { op, pod, volume, renew_at: None, image_digest: None };
    s.fact(mounted).breaks(Invariant::S13, &[gone, late]);
}

#[test]
fn the_same_answer_twice_is_one_mount() {
    let mut s = Story::new();
    s.apply().mount("data").mounted("data");
    let (op, pod, volume) = (s.op("data"), s.pod.uid, volume_id("data"));
    s.delete(30).unmount_by("data", Rule::PodVolumesReleased).unmounted("data");
    s.fact(Fact::VolumeMounted { op, pod, volume, renew_at: None, image_digest: None }).is_clean();
}

#[test]
fn a_volume_reported_gone_is_still_in_the_mount_table() {
    let mut s = Story::new();
    s.apply().mount("data").mounted("data").delete(30);
    s.unmount_by("data", Rule::PodVolumesReleased).unmounted("data");
    let gone = s.next() - 1;
    s.observe_mounts();
    let seen = s.next();
    s.mounts(&["data"]).breaks(Invariant::S13, &[gone, seen]);
}

#[test]
fn a_mount_table_asked_for_before_the_unmount_proves_nothing() {
    let mut s = Story::new();
    s.apply().mount("data").mounted("data").delete(30).observe_mounts();
    s.unmount_by("data", Rule::PodVolumesReleased).unmounted("data").mounts(&["data"]).is_clean();
}
