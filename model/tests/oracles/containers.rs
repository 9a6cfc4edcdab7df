//! S2, S6 (containers), S9, S11, S15.

use crate::story::{Story, container, edit, mount, row, running, volume, with_rows};
use crate::{APPLIED, CREATE, MOUNT, MOUNTED, STARTED};
use nodefold_core::command::Rule;
use nodefold_core::event::{ErrorClass, ProbeKind};
use nodefold_core::spec::{Probe, RestartPolicy};
use nodefold_core::status::PodPhase;
use nodefold_model::Invariant;
use std::sync::Arc;

#[test]
fn create_waits_for_the_mount() {
    Story::new().up().is_clean();
}

#[test]
fn created_before_its_volume_is_mounted() {
    let mut s = Story::new();
    s.apply().mount("data").sandbox(0);
    let create = s.next();
    s.create("app").breaks(Invariant::S2, &[MOUNT, create]);
}

#[test]
fn created_with_a_volume_never_mounted() {
    let mut s = Story::new();
    s.apply().sandbox(0);
    let create = s.next();
    s.create("app").breaks(Invariant::S2, &[create]);
}

#[test]
fn race_7_after_a_reboot_nothing_is_mounted() {
    let mut s = Story::new();
    s.agent_started(7).up();
    let reboot = s.next();
    s.agent_started(8).apply().sandbox(1);
    let create = s.next();
    s.create_in("app.1", 1).breaks(Invariant::S2, &[reboot, create]);
}

#[test]
fn race_14_a_failed_unmount_leaves_nothing_ready() {
    let mut s = Story::new();
    s.apply()
        .mount("data")
        .mounted("data")
        .unmount_by("data", Rule::VolumeOrphaned)
        .unmount_failed("data")
        .sandbox(0);
    let create = s.next();
    s.create("app").breaks(Invariant::S2, &[4, create]);
}

#[test]
fn a_mount_cut_off_by_the_agents_end_is_not_ready_though_it_is_seen() {
    let mut s = Story::new();
    s.agent_started(7).apply().mount("data").agent_started(7).apply();
    s.observe_runtime().runtime(true, &[]).observe_mounts().mounts(&["data"]).sandbox(0);
    let create = s.next();
    s.create("app").breaks(Invariant::S2, &[3, create]);
}

fn with_init() -> Story {
    let mut s = Story::new();
    s.spec(|p| {
        p.init_containers = vec![Arc::new(container("setup", &[]))];
        p.volumes.clear();
        p.containers = vec![Arc::new(container("app", &[]))];
    });
    s.apply().sandbox(0);
    s
}

#[test]
fn main_runs_after_init() {
    with_init().run("setup").exited("setup", 0).run("app").is_clean();
}

#[test]
fn main_may_be_created_ahead() {
    with_init().run("setup").create("app").created("app").exited("setup", 0).start("app").is_clean();
}

#[test]
fn main_started_while_init_runs() {
    let mut s = with_init();
    s.run("setup");
    let running = s.next() - 1;
    s.create("app").created("app");
    let start = s.next();
    s.start("app").breaks(Invariant::S2, &[running, start]);
}

#[test]
fn b23_init_of_the_former_sandbox_counts_for_nothing() {
    let mut s = with_init();
    s.run("setup").exited("setup", 0);
    let done = s.next() - 1;
    s.run("app").sandbox_died(0).exited("app", 137).sandbox(1).create_in("app.1", 1).created("app.1");
    let start = s.next();
    s.start("app.1").breaks(Invariant::S2, &[done, start]);
}

#[test]
fn b29_done_is_remembered_when_the_record_is_gone() {
    let mut s = with_init();
    s.run("setup")
        .exited("setup", 0)
        .run("app")
        .exited("app", 1)
        .observe_runtime()
        .runtime(true, &[])
        .run("app.1");
    s.is_clean();
}

#[test]
fn main_waits_for_a_sidecars_startup_probe() {
    let sidecar = || {
        let mut s = Story::new();
        s.spec(|p| {
            let mut proxy = container("proxy", &[]);
            proxy.restart_policy = Some(RestartPolicy::Always);
            proxy.startup_probe = Some(Probe { grace: None });
            p.init_containers = vec![Arc::new(proxy)];
            p.volumes.clear();
            p.containers = vec![Arc::new(container("app", &[]))];
        });
        s.apply().sandbox(0).run("proxy");
        s
    };
    sidecar().probe("proxy", ProbeKind::Startup, true).run("app").is_clean();
    let mut s = sidecar();
    s.create("app").created("app");
    let (up, start) = (6, s.next());
    s.start("app").breaks(Invariant::S2, &[up, start]);
}

#[test]
fn next_attempt_after_the_exit() {
    Story::new().up().exited("app", 1).run("app.1").is_clean();
}

#[test]
fn b27_a_second_instance_beside_an_uncertain_one() {
    let mut s = Story::new();
    s.apply()
        .mount("data")
        .mounted("data")
        .sandbox(0)
        .create("app")
        .create_failed("app", ErrorClass::Uncertain);
    let (failed, create) = (s.next() - 1, s.next());
    s.create("app.1").created("app.1").start("app.1").breaks(Invariant::S6, &[failed, create]);
}

#[test]
fn a_removed_container_still_stopping_keeps_its_name() {
    let mut s = Story::new();
    s.up().wish(|p| p.containers.clear()).allocate().stop("app", 30, Rule::ContainerRemoved);
    s.wish(|p| p.containers = vec![Arc::new(container("app", &[]))]).allocate();
    let create = s.next();
    s.create("app#1.0").breaks(Invariant::S6, &[STARTED, create]);
}

#[test]
fn an_instance_is_created_once() {
    let mut s = Story::new();
    s.up().exited("app", 1);
    let (exit, create) = (s.next() - 1, s.next());
    s.create("app").breaks(Invariant::S6, &[exit, create]);
}

#[test]
fn own_change_restarts() {
    let mut s = Story::new();
    s.up().wish(|p| edit(&mut p.containers, 0, |c| c.image = "image:2".into())).allocate();
    s.stop("app", 30, Rule::DefinitionChanged)
        .exited("app", 0)
        .pull("app.1", "image:2")
        .run("app.1")
        .is_clean();
}

#[test]
fn b30_an_unchanged_container_is_restarted() {
    let mut s = Story::new();
    s.up().wish(|p| p.containers.push(Arc::new(container("other", &[])))).allocate();
    let (wish, stop) = (s.next() - 1, s.next());
    s.stop("app", 30, Rule::DefinitionChanged).breaks(Invariant::S9, &[CREATE, wish, stop]);
}

#[test]
fn somebody_elses_mount_is_no_reason() {
    let mut s = Story::new();
    s.spec(|p| edit(&mut p.containers, 0, |c| c.restart_on_mount_change = true));
    s.up().wish(|p| {
        p.volumes.push(Arc::new(volume("extra", "a")));
        p.containers.push(Arc::new(container("other", &["extra"])));
    });
    s.allocate().mount("extra").mounted("extra");
    let (wish, stop) = (s.next() - 3, s.next());
    s.stop("app", 30, Rule::MountsChanged).breaks(Invariant::S9, &[CREATE, wish, stop]);
}

#[test]
fn mounts_change_by_a_new_instance_under_the_policy() {
    let mut s = Story::new();
    s.spec(|p| edit(&mut p.containers, 0, |c| c.restart_on_mount_change = true));
    s.up().wish(|p| {
        p.volumes.push(Arc::new(volume("extra", "a")));
        edit(&mut p.containers, 0, |c| c.mounts.push(mount("extra")));
    });
    s.allocate().mount("extra").mounted("extra");
    s.stop("app", 30, Rule::MountsChanged).exited("app", 0).run("app.1").is_clean();
}

#[test]
fn mounts_change_without_the_policy() {
    let mut s = Story::new();
    s.up().wish(|p| {
        p.volumes.push(Arc::new(volume("extra", "a")));
        edit(&mut p.containers, 0, |c| c.mounts.push(mount("extra")));
    });
    s.allocate().mount("extra").mounted("extra");
    let stop = s.next();
    s.stop("app", 30, Rule::MountsChanged).breaks(Invariant::S11, &[CREATE, stop]);
}

#[test]
fn the_next_attempt_has_other_mounts_without_the_policy() {
    let mut s = Story::new();
    s.up().exited("app", 1).wish(|p| edit(&mut p.containers, 0, |c| c.mounts.clear())).allocate();
    let create = s.next();
    s.create("app.1").breaks(Invariant::S11, &[CREATE, create]);
}

#[test]
fn a_running_instance_is_shown_with_mounts_it_was_not_made_with() {
    let mut s = Story::new();
    let mut shown = row("app", running());
    s.up().publish(with_rows(PodPhase::Running, vec![shown.clone()])).is_clean();
    shown.mounts = shown.mounts.iter().cloned().chain([mount("extra")]).collect();
    let publish = s.next();
    s.publish(with_rows(PodPhase::Running, vec![shown])).breaks(Invariant::S11, &[CREATE, publish]);
}

#[test]
fn a_shorter_grace_moves_the_stop_earlier() {
    let mut s = Story::new();
    s.up().delete(120).stop("app", 120, Rule::PodTerminating).wait(1).delete(10).stop(
        "app",
        10,
        Rule::PodTerminating,
    );
    s.wait(10).tick().exited("app", 137).is_clean();
}

#[test]
fn a_stop_is_put_off() {
    let mut s = Story::new();
    s.up().stop("app", 10, Rule::LivenessFailed).wait(1);
    let (stop, later) = (s.next() - 1, s.next());
    s.stop("app", 60, Rule::PodTerminating).breaks(Invariant::S15, &[stop, later]);
}

#[test]
fn the_floor_may_put_a_stop_off() {
    let mut s = Story::new();
    s.up().stop("app", 3, Rule::LivenessFailed).wait(2).stop("app", 2, Rule::PodTerminating).is_clean();
}

#[test]
fn b24_shorter_grace_ignored() {
    let mut s = Story::new();
    s.up().delete(120).stop("app", 120, Rule::PodTerminating).wait(5);
    let (stop, shorter) = (s.next() - 1, s.next());
    s.delete(10).wait(10).tick().wait(1).tick().breaks(Invariant::S15, &[stop, shorter]);
}

/// The next that the node hears is the exit, long after the deadline: it never asked to be woken.
#[test]
fn a_deadline_that_is_slept_over_shows_at_the_exit() {
    let mut s = Story::new();
    s.up().delete(120).stop("app", 120, Rule::PodTerminating).wait(5);
    let (stop, shorter) = (s.next() - 1, s.next());
    s.delete(10).wait(30).exited("app", 137).breaks(Invariant::S15, &[stop, shorter]);
    // Within the floor an exit is as good as a kill, and whoever was woken answers then.
    let mut s = Story::new();
    s.up().delete(120).stop("app", 120, Rule::PodTerminating).wait(5).delete(10).wait(11);
    s.exited("app", 137).is_clean();
    let mut s = Story::new();
    s.up().delete(120).stop("app", 120, Rule::PodTerminating).wait(5).delete(10).wait(30);
    s.tick().kill("app").exited("app", 137).is_clean();
}

#[test]
fn a_kill_in_the_batch_that_the_deadline_brings_is_in_time() {
    let mut s = Story::new();
    s.up().delete(10).hook("app").wait(10).tick().kill("app").wait(1).tick().exited("app", 137).is_clean();
}

#[test]
fn a_hanging_hook_is_no_excuse() {
    let mut s = Story::new();
    s.up();
    let delete = s.next();
    s.delete(10).hook("app").wait(11).tick().wait(1).tick().breaks(Invariant::S15, &[STARTED, delete]);
}

#[test]
fn a_deadline_that_passes_with_the_agent_down_starts_anew() {
    let mut s = Story::new();
    s.up()
        .delete(10)
        .wait(60)
        .agent_started(7)
        .apply()
        .observe_runtime()
        .runtime(true, &[])
        .wait(1)
        .tick()
        .is_clean();
}

fn with_sidecar() -> Story {
    let mut s = Story::new();
    s.spec(|p| {
        let mut proxy = container("proxy", &[]);
        proxy.restart_policy = Some(RestartPolicy::Always);
        p.init_containers = vec![Arc::new(proxy)];
        p.volumes.clear();
        p.containers = vec![Arc::new(container("app", &[]))];
    });
    s.apply().sandbox(0).run("proxy");
    s
}

#[test]
fn sidecar_stops_after_main() {
    let mut s = with_sidecar();
    s.run("app").delete(30).stop("app", 30, Rule::PodTerminating).wait(3).exited("app", 0);
    s.stop("proxy", 27, Rule::PodTerminating).wait(1).exited("proxy", 0).is_clean();
}

#[test]
fn sidecar_stops_before_main() {
    let mut s = with_sidecar();
    s.run("app");
    let started = s.next() - 1;
    s.delete(30).stop("app", 30, Rule::PodTerminating);
    let stop = s.next();
    s.stop("proxy", 30, Rule::PodTerminating).breaks(Invariant::S15, &[started, stop]);
}

#[test]
fn b20_a_main_that_never_ran_is_not_waited_for() {
    let mut s = with_sidecar();
    s.create("app").created("app").delete(30).stop("proxy", 30, Rule::PodTerminating).is_clean();
}

#[test]
fn sidecar_of_an_overdue_main_stops_at_the_deadline() {
    let mut s = with_sidecar();
    s.run("app").delete(30).stop("app", 30, Rule::PodTerminating).wait(30).tick().kill("app");
    s.stop("proxy", 2, Rule::PodTerminating)
        .wait(1)
        .exited("app", 137)
        .wait(2)
        .tick()
        .exited("proxy", 0)
        .is_clean();
}

#[test]
fn numbers_of_the_story() {
    // What the tests above name by number.
    assert_eq!((APPLIED, MOUNT, MOUNTED, CREATE, STARTED), (0, 1, 2, 5, 8));
}
