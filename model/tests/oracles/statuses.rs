//! S10 (published phases) and S14.

use crate::story::{
    Story, container, edit, ready, row, running, status, terminated, waiting, with_rows, with_volume,
};
use crate::{CREATE, MOUNT, MOUNTED, STARTED};
use nodefold_core::command::Rule;
use nodefold_core::event::{ErrorClass, ProbeKind};
use nodefold_core::spec::{Probe, RestartAction, RestartPolicy, RestartRule};
use nodefold_core::status::{ConditionKind, ContainerState, HostPhase, PodPhase};
use nodefold_model::Invariant;
use std::sync::Arc;

#[test]
fn a_volumes_phases_in_order() {
    let mut s = Story::new();
    s.apply()
        .publish(with_volume(HostPhase::Pending))
        .mount("data")
        .mount_failed("data", ErrorClass::Transient);
    s.publish(with_volume(HostPhase::ErrorMounting)).mount("data").mounted("data");
    s.publish(with_volume(HostPhase::HostMounted)).wish(|p| {
        p.volumes.clear();
        p.containers.clear();
    });
    s.allocate().publish(with_volume(HostPhase::Unmounting)).unmount("data").unmounted("data").is_clean();
}

#[test]
fn a_mounted_volume_shows_an_error() {
    let mut s = Story::new();
    s.apply().mount("data").mounted("data").publish(with_volume(HostPhase::HostMounted));
    let (before, now) = (s.next() - 1, s.next());
    s.publish(with_volume(HostPhase::ErrorMounting)).breaks(Invariant::S10, &[before, now]);
}

#[test]
fn a_mounted_volume_is_pending_again() {
    let mut s = Story::new();
    s.apply().mount("data").mounted("data").publish(with_volume(HostPhase::HostMounted));
    let (before, now) = (s.next() - 1, s.next());
    s.publish(with_volume(HostPhase::Pending)).breaks(Invariant::S10, &[before, now]);
}

#[test]
fn after_a_reboot_it_may_be() {
    let mut s = Story::new();
    s.agent_started(7).apply().mount("data").mounted("data").publish(with_volume(HostPhase::HostMounted));
    s.agent_started(8).apply().publish(with_volume(HostPhase::Pending)).is_clean();
}

#[test]
fn shown_mounted_while_it_is_not() {
    let mut s = Story::new();
    s.apply().mount("data");
    let publish = s.next();
    s.publish(with_volume(HostPhase::HostMounted)).breaks(Invariant::S10, &[MOUNT, publish]);
}

#[test]
fn a_volume_that_could_not_be_mounted_and_was_swapped_is_pending_again() {
    let mut s = Story::new();
    s.apply()
        .mount("data")
        .mount_failed("data", ErrorClass::Final)
        .publish(with_volume(HostPhase::ErrorMounting));
    s.wish(|p| p.volumes = vec![Arc::new(crate::story::volume("data", "b"))]);
    s.publish(with_volume(HostPhase::Pending)).is_clean();
}

#[test]
fn b10_failed_became_succeeded() {
    let mut s = Story::new();
    s.apply().publish(status(PodPhase::Failed));
    let (before, now) = (s.next() - 1, s.next());
    s.publish(status(PodPhase::Succeeded)).breaks(Invariant::S10, &[before, now]);
}

#[test]
fn running_became_pending() {
    let mut s = Story::new();
    s.up().publish(status(PodPhase::Running));
    let (before, now) = (s.next() - 1, s.next());
    s.publish(status(PodPhase::Pending)).breaks(Invariant::S10, &[before, now]);
}

#[test]
fn b12_terminal_and_ready() {
    let mut s = Story::new();
    let mut failed = status(PodPhase::Failed);
    failed.conditions.push(ready(ConditionKind::Ready));
    s.apply();
    let publish = s.next();
    s.publish(failed).breaks(Invariant::S10, &[publish]);
}

#[test]
fn an_ended_instance_is_shown_running() {
    let mut s = Story::new();
    s.up().exited("app", 1);
    s.publish(with_rows(
        PodPhase::Running,
        vec![row("app", ContainerState::Terminated(terminated("app", 1)))],
    ));
    let (before, now) = (s.next() - 1, s.next());
    s.publish(with_rows(PodPhase::Running, vec![row("app", running())]))
        .breaks(Invariant::S10, &[before, now]);
}

#[test]
fn a_crash_is_told_as_it_was() {
    let mut s = Story::new();
    s.up().publish(with_rows(PodPhase::Running, vec![row("app", running())])).exited("app", 3);
    let mut waits = row("app", waiting());
    waits.last_state = Some(terminated("app", 3));
    s.publish(with_rows(PodPhase::Running, vec![waits])).run("app.1");
    let mut again = row("app.1", running());
    again.last_state = Some(terminated("app", 3));
    s.publish(with_rows(PodPhase::Running, vec![again])).is_clean();
}

#[test]
fn b11_running_became_waiting() {
    let mut s = Story::new();
    s.up().publish(with_rows(PodPhase::Running, vec![row("app", running())]));
    let (before, now) = (s.next() - 1, s.next());
    s.publish(with_rows(PodPhase::Running, vec![row("app", waiting())]))
        .breaks(Invariant::S14, &[before, now]);
}

#[test]
fn a_restart_count_goes_back() {
    let mut s = Story::new();
    s.up().exited("app", 1).run("app.1").publish(with_rows(PodPhase::Running, vec![row("app.1", running())]));
    let (before, now) = (s.next() - 1, s.next());
    let mut forgot = row("app.1", running());
    forgot.restart_count = 0;
    s.publish(with_rows(PodPhase::Running, vec![forgot])).breaks(Invariant::S14, &[before, now]);
}

#[test]
fn a_new_incarnation_counts_from_zero() {
    let readded = || {
        let mut s = Story::new();
        s.up().exited("app", 1).run("app.1").wish(|p| p.containers.clear()).allocate();
        s.stop("app.1", 30, Rule::ContainerRemoved).exited("app.1", 0);
        s.wish(|p| p.containers = vec![Arc::new(container("app", &["data"]))]).allocate().run("app#1.0");
        s
    };
    readded().publish(with_rows(PodPhase::Running, vec![row("app#1.0", running())])).is_clean();
    // Inherited by name.
    let mut heir = row("app#1.0", running());
    heir.restart_count = 1;
    let mut s = readded();
    let publish = s.next();
    s.publish(with_rows(PodPhase::Running, vec![heir])).breaks(Invariant::S14, &[publish]);
    let mut heir = row("app#1.0", running());
    heir.last_state = Some(terminated("app.1", 0));
    let mut s = readded();
    let (publish, exit) = (s.next(), 16);
    s.publish(with_rows(PodPhase::Running, vec![heir])).breaks(Invariant::S14, &[exit, publish]);
}

#[test]
fn another_exit_code_than_the_facts() {
    let mut s = Story::new();
    s.up().exited("app", 2);
    let (exit, publish) = (s.next() - 1, s.next());
    let told = row("app", ContainerState::Terminated(terminated("app", 0)));
    s.publish(with_rows(PodPhase::Running, vec![told])).breaks(Invariant::S14, &[exit, publish]);
}

#[test]
fn b10_a_vanished_container_is_no_success() {
    let vanished = || {
        let mut s = Story::new();
        s.up().observe_runtime().runtime(true, &[]);
        s
    };
    let told = |code| {
        with_rows(PodPhase::Running, vec![row("app", ContainerState::Terminated(terminated("app", code)))])
    };
    vanished().publish(told(137)).is_clean();
    let mut s = vanished();
    let (lost, publish) = (s.next() - 1, s.next());
    s.publish(told(0)).breaks(Invariant::S14, &[lost, publish]);
    let mut s = vanished();
    s.publish(status(PodPhase::Succeeded)).breaks(Invariant::S14, &[lost, publish]);
}

#[test]
fn shown_terminated_while_it_runs() {
    let mut s = Story::new();
    s.up();
    let publish = s.next();
    let told = row("app", ContainerState::Terminated(terminated("app", 137)));
    s.publish(with_rows(PodPhase::Running, vec![told])).breaks(Invariant::S14, &[STARTED, publish]);
}

#[test]
fn b11_a_run_once_container_that_vanished_runs_twice() {
    let mut s = Story::new();
    s.spec(|p| p.restart_policy = RestartPolicy::Never);
    s.up().observe_runtime().runtime(true, &[]);
    let (lost, create) = (s.next() - 1, s.next());
    s.create("app.1").breaks(Invariant::S14, &[CREATE, lost, create]);
}

#[test]
fn a_success_runs_twice_though_only_failures_should() {
    let mut s = Story::new();
    s.spec(|p| p.restart_policy = RestartPolicy::OnFailure);
    s.up().exited("app", 1).run("app.1");
    let born = s.next() - 4;
    s.exited("app.1", 0);
    let (exit, create) = (s.next() - 1, s.next());
    s.create("app.2").breaks(Invariant::S14, &[born, exit, create]);
}

#[test]
fn a_changed_definition_runs_even_what_never_restarts() {
    let mut s = Story::new();
    s.spec(|p| p.restart_policy = RestartPolicy::Never);
    s.up().wish(|p| edit(&mut p.containers, 0, |c| c.image = "image:2".into())).allocate();
    s.stop("app", 30, Rule::DefinitionChanged).exited("app", 0).run("app.1").is_clean();
}

#[test]
fn b29_init_runs_again_under_a_live_main() {
    let mut s = Story::new();
    s.spec(|p| {
        p.init_containers = vec![Arc::new(container("setup", &[]))];
        p.volumes.clear();
        p.containers = vec![Arc::new(container("app", &[]))];
    });
    s.apply().sandbox(0);
    let born = s.next();
    s.run("setup").exited("setup", 0);
    let done = s.next() - 1;
    s.run("app");
    let create = s.next();
    s.create("setup.1").breaks(Invariant::S14, &[born, done, create]);
}

#[test]
fn restart_all_containers_runs_init_again() {
    let mut s = Story::new();
    s.spec(|p| {
        p.init_containers = vec![Arc::new(container("setup", &[]))];
        p.volumes.clear();
        let mut app = container("app", &[]);
        app.restart_policy = Some(RestartPolicy::Never);
        app.restart_rules =
            [RestartRule { negated: false, codes: vec![42], action: RestartAction::RestartAllContainers }]
                .into_iter()
                .collect();
        p.containers = vec![Arc::new(app)];
    });
    s.apply().sandbox(0).run("setup").exited("setup", 0).run("app").exited("app", 42);
    s.run("setup.1").exited("setup.1", 0).run("app.1").is_clean();
}

#[test]
fn b19_started_inherited_by_name() {
    let mut s = Story::new();
    s.spec(|p| edit(&mut p.containers, 0, |c| c.startup_probe = Some(Probe { grace: None })));
    s.up().probe("app", ProbeKind::Startup, true);
    let mut shown = row("app", running());
    shown.started = true;
    s.publish(with_rows(PodPhase::Running, vec![shown])).exited("app", 1).run("app.1");
    let mut heir = row("app.1", running());
    heir.started = true;
    heir.last_state = Some(terminated("app", 1));
    let (born, publish) = (s.next() - 4, s.next());
    s.publish(with_rows(PodPhase::Running, vec![heir])).breaks(Invariant::S14, &[born, publish]);
}

#[test]
fn b37_ready_before_its_probe_passed() {
    let mut s = Story::new();
    s.spec(|p| edit(&mut p.containers, 0, |c| c.readiness_probe = Some(Probe { grace: None })));
    let mut shown = row("app", running());
    shown.ready = true;
    s.up();
    let publish = s.next();
    s.publish(with_rows(PodPhase::Running, vec![shown])).breaks(Invariant::S14, &[CREATE, publish]);
    assert_eq!(MOUNTED, 2);
}
