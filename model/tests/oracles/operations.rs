//! S12.

use crate::story::Story;
use crate::{CREATE, MOUNT};
use nodefold_core::command::Rule;
use nodefold_core::event::SeenState;
use nodefold_model::Invariant;

#[test]
fn one_after_the_other() {
    let mut s = Story::new();
    s.up().refresh("data").refreshed("data").refresh("data").refreshed("data").is_clean();
}

#[test]
fn race_19_a_second_unmount_beside_the_first() {
    let mut s = Story::new();
    s.apply().mount("data").mounted("data").delete(30);
    let first = s.next();
    s.unmount_by("data", Rule::PodVolumesReleased);
    let second = s.next();
    s.unmount_by("data", Rule::PodVolumesReleased).breaks(Invariant::S12, &[first, second]);
}

#[test]
fn d5_an_unmount_beside_a_mount() {
    let mut s = Story::new();
    s.apply().mount("data").delete(30);
    let unmount = s.next();
    s.unmount_by("data", Rule::PodVolumesReleased).breaks(Invariant::S12, &[MOUNT, unmount]);
}

#[test]
fn a_kill_overtakes_a_stop() {
    let mut s = Story::new();
    s.up().stop("app", 30, Rule::LivenessFailed).wait(30).kill("app").exited("app", 137).is_clean();
}

#[test]
fn an_earlier_stop_overtakes_a_stop() {
    let mut s = Story::new();
    s.up()
        .stop("app", 30, Rule::LivenessFailed)
        .stop("app", 5, Rule::PodTerminating)
        .exited("app", 0)
        .is_clean();
}

#[test]
fn a_stop_that_is_no_earlier_overtakes_nothing() {
    let mut s = Story::new();
    s.up().stop("app", 30, Rule::LivenessFailed);
    let (first, second) = (s.next() - 1, s.next());
    s.stop("app", 30, Rule::LivenessFailed).breaks(Invariant::S12, &[first, second]);
}

#[test]
fn nothing_overtakes_a_kill() {
    let mut s = Story::new();
    s.up().kill("app");
    let (kill, second) = (s.next() - 1, s.next());
    s.kill("app").breaks(Invariant::S12, &[kill, second]);
}

#[test]
fn created_again_without_a_look_after_the_agent_started() {
    let mut s = Story::new();
    s.agent_started(7)
        .apply()
        .mount("data")
        .mounted("data")
        .sandbox(0)
        .create("app")
        .agent_started(7)
        .apply();
    let create = s.next();
    s.create("app").breaks(Invariant::S12, &[CREATE + 1, create]);
}

#[test]
fn created_again_after_a_look() {
    let mut s = Story::new();
    s.agent_started(7)
        .apply()
        .mount("data")
        .mounted("data")
        .sandbox(0)
        .create("app")
        .agent_started(7)
        .apply();
    s.observe_runtime()
        .runtime(true, &[])
        .create("app")
        .created("app")
        .start("app")
        .started("app")
        .is_clean();
}

#[test]
fn a_look_finds_what_the_cut_off_start_did() {
    let mut s = Story::new();
    s.agent_started(7)
        .apply()
        .mount("data")
        .mounted("data")
        .sandbox(0)
        .create("app")
        .created("app")
        .start("app");
    s.agent_started(7)
        .apply()
        .observe_runtime()
        .runtime(true, &[("app", SeenState::Created)])
        .start("app")
        .started("app");
    s.is_clean();
}

#[test]
fn unmounted_again_without_a_look_after_the_agent_started() {
    let mut s = Story::new();
    s.agent_started(7).apply().mount("data").mounted("data").delete(30);
    s.observe_runtime().runtime(true, &[]);
    let first = s.next();
    s.unmount_by("data", Rule::PodVolumesReleased)
        .agent_started(7)
        .apply()
        .observe_runtime()
        .runtime(true, &[]);
    let second = s.next();
    s.unmount_by("data", Rule::PodVolumesReleased).breaks(Invariant::S12, &[first, second]);
}
