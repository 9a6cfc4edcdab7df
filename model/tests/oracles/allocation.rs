//! S3, S4, S5.

use crate::story::{Story, container, cpu, edit, mount, volume};
use crate::{APPLIED, SANDBOX};
use nodefold_core::command::Rule;
use nodefold_core::ids::PodUid;
use nodefold_core::resources::ResourceName;
use nodefold_core::spec::RestartPolicy;
use nodefold_core::status::PodPhase;
use nodefold_model::Invariant;
use std::sync::Arc;

#[test]
fn a_volume_added_is_mounted_as_allocated() {
    let mut s = Story::new();
    s.up().wish(|p| p.volumes.push(Arc::new(volume("extra", "a")))).allocate();
    s.mount("extra").mounted("extra").refresh("extra").refreshed("extra").is_clean();
}

#[test]
fn mounted_though_not_allocated() {
    let mut s = Story::new();
    s.up().wish(|p| p.volumes.push(Arc::new(volume("extra", "a"))));
    let mount = s.next();
    s.mount("extra").breaks(Invariant::S3, &[mount]);
}

#[test]
fn mounted_from_another_source() {
    let mut s = Story::new();
    s.up();
    let mount = s.next();
    s.mount_from("data", Arc::new(volume("data", "b"))).breaks(Invariant::S3, &[mount]);
}

#[test]
fn d11_a_removed_volume_is_frozen() {
    let mut s = Story::new();
    s.up().wish(|p| {
        p.volumes = vec![Arc::new(volume("data", "b"))];
        p.containers.clear();
    });
    s.sandbox_died(0).allocate().sandbox(1);
    let shown = s.next() - 2;
    let refresh = s.next();
    s.refresh("data").breaks(Invariant::S3, &[shown, refresh]);
}

#[test]
fn started_after_its_removal_was_allocated() {
    let mut s = Story::new();
    s.apply().mount("data").mounted("data").sandbox(0).create("app").created("app");
    s.wish(|p| {
        p.containers.clear();
        p.volumes.push(Arc::new(volume("extra", "a")));
    });
    s.allocate();
    let shown = s.next();
    s.mount("extra");
    let start = s.next();
    s.start("app").breaks(Invariant::S3, &[shown, start]);
}

#[test]
fn a_new_image_is_pulled_once_allocated() {
    let mut s = Story::new();
    s.up().wish(|p| edit(&mut p.containers, 0, |c| c.image = "image:2".into()));
    s.stop("app", 30, Rule::DefinitionChanged)
        .exited("app", 0)
        .pull("app.1", "image:2")
        .allocate()
        .run("app.1");
    s.is_clean();
}

#[test]
fn an_image_nobody_asked_for_is_pulled() {
    let mut s = Story::new();
    s.up();
    let pull = s.next();
    // The create at record 5 showed no other allocation than the mount at record 1 had.
    s.exited("app", 0).pull("app.1", "image:9").breaks(Invariant::S3, &[1, pull + 1]);
}

#[test]
fn b25_a_refused_image_is_pulled() {
    let mut s = Story::new();
    s.up().wish(|p| edit(&mut p.containers, 0, |c| c.image = "image:2".into())).exited("app", 0);
    let pull = s.next();
    s.pull("app.1", "image:2");
    let create = s.next();
    // The allocation still is the former one.
    s.create("app.1").breaks(Invariant::S3, &[pull, create]);
}

#[test]
fn b25_a_refused_resize_is_applied() {
    let mut s = Story::new();
    s.spec(|p| edit(&mut p.containers, 0, |c| c.resources = cpu(100)));
    s.up().wish(|p| edit(&mut p.containers, 0, |c| c.resources = cpu(900)));
    let resize = s.next();
    s.resize("app", cpu(900)).resized("app").exited("app", 1);
    let create = s.next();
    s.create("app.1").breaks(Invariant::S3, &[resize, create]);
}

#[test]
fn resized_to_what_nobody_asked_for() {
    let mut s = Story::new();
    s.up();
    let resize = s.next();
    s.resize("app", cpu(1)).breaks(Invariant::S3, &[1, resize]);
}

#[test]
fn an_ephemeral_container_bypasses_allocation() {
    let mut s = Story::new();
    s.up().wish(|p| p.ephemeral_containers.push(Arc::new(container("debug", &["data"]))));
    s.allocate().run("debug").is_clean();
}

#[test]
fn versions_may_be_skipped_but_the_whole_of_one_is_allocated() {
    let mut s = Story::new();
    s.up().wish(|p| p.volumes.push(Arc::new(volume("extra", "a"))));
    s.wish(|p| p.volumes.push(Arc::new(volume("more", "a"))))
        .allocate()
        .mount("more")
        .mount("extra")
        .is_clean();
}

#[test]
fn half_a_transaction() {
    let mut s = Story::new();
    s.up();
    let wish = s.next();
    s.wish(|p| {
        p.volumes.push(Arc::new(volume("extra", "a")));
        p.containers.push(Arc::new(container("other", &["extra"])));
    });
    // The volume is admitted, the container is not.
    let mut half = nodefold_core::spec::PodSpec::clone(&s.allocated);
    half.volumes.push(Arc::new(volume("extra", "a")));
    s.allocated = Arc::new(half);
    let mount = s.next();
    s.mount("extra").breaks(Invariant::S4, &[APPLIED, wish, mount]);
}

#[test]
fn an_older_version_comes_back() {
    let mut s = Story::new();
    s.up();
    let before = s.allocated.clone();
    let wish = s.next();
    s.wish(|p| p.volumes.push(Arc::new(volume("extra", "a")))).allocate().mount("extra").mounted("extra");
    s.allocated = before;
    let refresh = s.next();
    s.refresh("data").breaks(Invariant::S4, &[wish, refresh]);
}

#[test]
fn with_the_gate_off_images_bypass_allocation() {
    let mut s = Story::new();
    s.config.node.gates.dynamic_containers = false;
    s.up().wish(|p| edit(&mut p.containers, 0, |c| c.image = "image:2".into()));
    s.wish(|p| edit(&mut p.containers, 0, |c| c.resources = cpu(5)));
    // The image of the latest, the resources of the first.
    s.spec(|p| edit(&mut p.containers, 0, |c| c.resources = cpu(0)));
    let mut mixed = nodefold_core::spec::PodSpec::clone(&s.allocated);
    edit(&mut mixed.containers, 0, |c| c.resources = container("app", &[]).resources);
    s.allocated = Arc::new(mixed);
    s.exited("app", 1).create("app.1").is_clean();
}

fn one_cpu_each() -> Story {
    let mut s = Story::new();
    s.spec(|p| {
        p.volumes.clear();
        let mut app = container("app", &[]);
        app.resources = cpu(1000);
        p.containers = vec![Arc::new(app)];
    });
    s.node(&[(ResourceName::Cpu, 1500), (ResourceName::Pods, 10)]);
    s
}

#[test]
fn a_second_pod_fits_when_the_first_is_over() {
    let mut s = one_cpu_each();
    s.apply().sandbox(0).run("app").delete(30).stop("app", 30, Rule::PodTerminating).exited("app", 0);
    s.another_pod(2).pod.deletion = None;
    s.apply().sandbox(0).run("app").tick().is_clean();
}

#[test]
fn a_second_pod_does_not_fit_beside_the_first() {
    let mut s = one_cpu_each();
    s.apply().sandbox(0).run("app").another_pod(2).apply();
    let (applied, sandbox) = (s.next() - 1, s.next());
    s.sandbox(0).tick().breaks(Invariant::S5, &[applied, sandbox]);
}

#[test]
fn a_pod_is_charged_until_its_containers_stopped() {
    let mut s = one_cpu_each();
    s.apply().sandbox(0).run("app").delete(30).another_pod(2).pod.deletion = None;
    s.apply();
    let (applied, sandbox) = (s.next() - 1, s.next());
    s.sandbox(0).breaks(Invariant::S5, &[applied, sandbox]);
}

#[test]
fn a_removed_container_that_still_runs_is_charged() {
    let mut s = one_cpu_each();
    s.apply().sandbox(0).run("app").wish(|p| p.containers[0] = Arc::new(container("idle", &[]))).allocate();
    s.stop("app", 30, Rule::ContainerRemoved).create("idle").another_pod(2);
    s.spec(|p| {
        let mut app = container("app", &[]);
        app.resources = cpu(1000);
        p.containers = vec![Arc::new(app)];
    });
    s.apply();
    let (applied, sandbox) = (s.next() - 1, s.next());
    s.sandbox(0).breaks(Invariant::S5, &[applied, sandbox]);
}

#[test]
fn allocatable_may_shrink_under_pods() {
    let mut s = one_cpu_each();
    s.apply()
        .sandbox(0)
        .run("app")
        .node(&[(ResourceName::Cpu, 500)])
        .exited("app", 1)
        .run("app.1")
        .tick()
        .is_clean();
}

#[test]
fn b3_a_finished_pod_is_not_charged() {
    let mut s = one_cpu_each();
    s.spec(|p| p.restart_policy = RestartPolicy::Never);
    s.apply().sandbox(0).run("app").exited("app", 0).another_pod(2).apply().sandbox(0).tick().is_clean();
    assert_eq!(s.pod.uid, PodUid(2));
}

#[test]
fn b4_a_rejected_pod_is_not_charged() {
    let mut s = one_cpu_each();
    s.apply()
        .publish(crate::story::status(PodPhase::Failed))
        .another_pod(2)
        .apply()
        .sandbox(0)
        .tick()
        .is_clean();
}

#[test]
fn a_mount_of_the_container_is_part_of_its_definition() {
    let mut s = Story::new();
    s.up().wish(|p| edit(&mut p.containers, 0, |c| c.mounts.push(mount("data")))).exited("app", 0);
    let wished = s.pod.spec.clone();
    let former = s.allocated.clone();
    // Created by the wished definition under the former allocation.
    s.allocated = wished;
    let create = s.next();
    s.create("app.1");
    if let Some(nodefold_core::command::TraceEntry::Command { command, .. }) = s.trace.last_mut()
        && let nodefold_core::command::Action::CreateContainer { allocated, .. } = &mut command.action
    {
        *allocated = former;
    }
    let found = s.judge();
    assert!(found.iter().any(|v| v.invariant == Invariant::S3 && v.evidence == [create]), "{found:?}");
    assert_eq!(SANDBOX, 3);
}
