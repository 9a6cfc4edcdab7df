//! S6 (static pods), S7, S8.

use crate::story::{Story, status, volume};
use crate::{CREATE, SANDBOX, STARTED};
use nodefold_core::command::Rule;
use nodefold_core::event::{ErrorClass, SeenState};
use nodefold_core::ids::Source;
use nodefold_core::spec::TerminalPhase;
use nodefold_core::status::PodPhase;
use nodefold_model::Invariant;
use std::sync::Arc;

fn static_pod() -> Story {
    let mut s = Story::new();
    s.pod.source = Source::File;
    s
}

/// Everything stopped and unmounted.
fn ended(s: &mut Story) -> &mut Story {
    s.delete(30).stop("app", 30, Rule::PodTerminating).exited("app", 0);
    s.unmount_by("data", Rule::PodVolumesReleased).unmounted("data")
}

#[test]
fn a_static_pod_follows_its_former_self() {
    let mut s = static_pod();
    s.up().gone().stop("app", 30, Rule::PodTerminating).another_pod(2).apply();
    s.another_pod(1).exited("app", 0).unmount_by("data", Rule::PodVolumesReleased).unmounted("data");
    s.another_pod(2).sandbox(0).is_clean();
}

#[test]
fn b9_two_static_pods_of_one_name() {
    let mut s = static_pod();
    s.up().gone().stop("app", 30, Rule::PodTerminating).another_pod(2).apply();
    let sandbox = s.next();
    s.sandbox(0).breaks(Invariant::S6, &[STARTED, sandbox]);
}

#[test]
fn b8_a_static_pod_that_never_started_holds_no_slot() {
    let mut s = static_pod();
    s.apply().gone().another_pod(2).apply().sandbox(0).is_clean();
}

#[test]
fn b6_a_uid_asked_for_again_lives_again() {
    let mut s = static_pod();
    s.up().gone().apply().stop("app", 30, Rule::PodTerminating).exited("app", 0);
    s.unmount_by("data", Rule::PodVolumesReleased).unmounted("data");
    s.mount("data").mounted("data").sandbox(0).run("app").is_clean();
}

#[test]
fn b6_but_not_before_the_former_life_is_over() {
    let mut s = static_pod();
    s.up();
    let gone = s.next();
    s.gone().apply().stop("app", 30, Rule::PodTerminating).sandbox_died(0);
    let sandbox = s.next();
    s.sandbox(1).breaks(Invariant::S7, &[gone, sandbox]);
}

#[test]
fn b1_started_after_deletion() {
    let mut s = Story::new();
    s.apply().mount("data").mounted("data").sandbox(0).create("app").created("app");
    let delete = s.next();
    s.delete(30);
    let start = s.next();
    s.start("app").breaks(Invariant::S7, &[delete, start]);
}

#[test]
fn b7_started_after_a_force_delete() {
    let mut s = Story::new();
    s.apply();
    let gone = s.next();
    s.gone();
    let sandbox = s.next();
    s.sandbox(0).breaks(Invariant::S7, &[gone, sandbox]);
}

#[test]
fn b5_a_finished_pod_stays_finished_after_the_agent_started() {
    let mut s = Story::new();
    s.agent_started(7);
    s.pod.api_terminal = Some(TerminalPhase::Succeeded);
    s.apply();
    let sandbox = s.next();
    s.sandbox(0).breaks(Invariant::S7, &[1, sandbox]);
}

#[test]
fn a_pod_missing_from_the_first_list_is_over() {
    let mut s = Story::new();
    s.agent_started(7).up().agent_started(7);
    let list = s.next();
    s.fact(nodefold_core::Fact::SourceReady { source: Source::Api });
    s.observe_runtime().runtime(true, &[("app", SeenState::Unknown)]);
    let sandbox = s.next();
    s.sandbox(1).breaks(Invariant::S7, &[list, sandbox]);
}

#[test]
fn allocated_after_deletion() {
    let mut s = Story::new();
    s.up();
    let delete = s.next();
    s.delete(30);
    let wish = s.next();
    s.wish(|p| p.volumes.push(Arc::new(volume("extra", "a")))).allocate();
    let mount = s.next();
    s.mount("extra").breaks(Invariant::S7, &[delete, wish, mount]);
}

#[test]
fn released_last_of_all() {
    let mut s = Story::new();
    ended(s.up()).publish(status(PodPhase::Failed)).written().release().gone().is_clean();
}

#[test]
fn a_static_pod_has_no_phase_to_publish() {
    let mut s = static_pod();
    s.up().gone().stop("app", 30, Rule::PodTerminating).exited("app", 0);
    s.unmount_by("data", Rule::PodVolumesReleased).unmounted("data").release().is_clean();
}

#[test]
fn b13_released_without_a_terminal_phase() {
    let mut s = Story::new();
    ended(s.up()).publish(status(PodPhase::Running)).written();
    let (publish, release) = (s.next() - 2, s.next());
    s.release().breaks(Invariant::S8, &[publish, release]);
}

#[test]
fn released_before_the_phase_reached_the_api() {
    let mut s = Story::new();
    ended(s.up()).publish(status(PodPhase::Failed));
    let (publish, release) = (s.next() - 1, s.next());
    s.release().breaks(Invariant::S8, &[publish, release]);
}

#[test]
fn b28_terminal_phase_published_early() {
    let mut s = Story::new();
    s.up().stop("app", 30, Rule::PodTerminating);
    let publish = s.next();
    s.publish(status(PodPhase::Failed)).breaks(Invariant::S8, &[STARTED, publish]);
}

#[test]
fn race_11_released_while_a_mount_is_in_flight() {
    let mut s = Story::new();
    s.apply();
    let mount = s.next();
    s.mount("data").delete(30).publish(status(PodPhase::Failed)).written();
    let release = s.next();
    s.release().breaks(Invariant::S8, &[mount, release]);
}

#[test]
fn released_while_a_container_may_run() {
    let mut s = Story::new();
    s.apply()
        .mount("data")
        .mounted("data")
        .sandbox(0)
        .create("app")
        .create_failed("app", ErrorClass::Uncertain)
        .delete(30);
    let release = s.next();
    s.release().breaks(Invariant::S8, &[CREATE + 1, release]);
    assert_eq!(SANDBOX, 3);
}
