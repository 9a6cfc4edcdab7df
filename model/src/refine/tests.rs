//! Changes that no core may make are told, one for each kind of rule; changes that it may make are not.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use super::abstraction::{Container, Mounts, PodView, Volume};
use super::*;
use crate::spec::allocation::Promise;
use crate::spec::container::Life;
use crate::spec::pod::Pod;
use crate::spec::sandbox::Sandbox;
use crate::spec::volume;
use nodefold_core::ids::VolumeId;
use nodefold_core::node::Digest;
use nodefold_core::spec::{Container as Definition, VolumeMount};
use nodefold_core::state::{ContainerKind, Shared};
use std::sync::Arc;

fn mount() -> VolumeMount {
    VolumeMount {
        name: "v".into(),
        mount_path: "/v".into(),
        read_only: false,
        rest: nodefold_core::spec::Blob::default(),
    }
}

fn volume(generation: u32, promise: Promise, life: volume::Volume) -> Volume {
    Volume { id: VolumeId { name: "v".into(), generation }, promise, life }
}

fn app(incarnation: u32, life: Life) -> Container {
    let mut definition = Definition::unknown("app".into());
    definition.mounts = vec![mount()];
    let definition = Shared::new(Arc::new(definition));
    let lease = VolumeId { name: "v".into(), generation: 0 };
    Container {
        name: "app".into(),
        incarnation,
        kind: ContainerKind::Main,
        promise: Promise::Kept,
        definition: definition.digest(),
        life,
        attempt: 0,
        doomed: false,
        own_cause: false,
        may_run: true,
        leases: life.may_run().then(|| Arc::from([lease])),
        mounts: Mounts::of(definition),
    }
}

/// A pod that runs `app`, which mounts `v`.
fn running() -> PodView {
    PodView {
        life: Pod::Active,
        allocated: Some(Digest(1)),
        whole: true,
        once: true,
        initialized: true,
        sandboxes: vec![(0, Sandbox::Ready)],
        containers: vec![app(0, Life::Running)],
        volumes: vec![volume(0, Promise::Kept, volume::Volume::Mounted)],
        ..PodView::default()
    }
}

fn step(movers: Movers) -> Situation {
    let seen = Seen { sources: true, mounts: true, runtime: true };
    Situation { movers, looking: false, seen, timers_first: false, object_gone: false, images_bypass: false }
}

const TICK: Movers = Movers { crash: false, host: false, look: false, world: false };
const FACT: Movers = Movers { world: true, ..TICK };

fn told(before: &PodView, after: &PodView, situation: Situation) -> String {
    moves::explain(before, after, situation).err().unwrap_or_default()
}

/// Changes a view.
fn but(view: &PodView, change: impl FnOnce(&mut PodView)) -> PodView {
    let mut view = view.clone();
    change(&mut view);
    view
}

#[test]
fn a_volume_in_use_is_not_unmounted_and_one_that_was_let_go_in_the_same_step_is() {
    let before = but(&running(), |p| p.volumes[0].promise = Promise::Removed);
    let unmounting = but(&before, |p| p.volumes[0].life = volume::Volume::Unmounting);
    assert!(told(&before, &unmounting, step(FACT)).contains("needs \"unheld\""));
    let ended = but(&unmounting, |p| p.containers[0] = app(0, Life::None));
    assert_eq!(told(&before, &ended, step(FACT)), "");
    assert!(
        told(&before, &ended, step(TICK)).contains("went from Running to None"),
        "nobody said that it ended"
    );
    let mut blind = step(FACT);
    blind.seen.sources = false;
    assert!(told(&before, &ended, blind).contains("needs \"all seen\""), "I1 holds after a restart too");
    let kept = but(&running(), |p| {
        p.containers[0] = app(0, Life::None);
        p.volumes[0].life = volume::Volume::Unmounting;
    });
    assert!(told(&running(), &kept, step(FACT)).contains("needs \"going\""), "what is allocated stays");
}

#[test]
fn an_allocation_is_one_desired_version_as_a_whole_and_only_it_adds_and_removes() {
    let added = but(&running(), |p| p.volumes.push(volume(1, Promise::Kept, volume::Volume::Pending)));
    assert!(told(&running(), &added, step(FACT)).contains("needs \"allocating\""));
    let allocated = but(&added, |p| {
        p.allocated = Some(Digest(2));
        p.volumes[0].promise = Promise::Removed;
    });
    assert_eq!(told(&running(), &allocated, step(FACT)), "");
    let mixed = but(&allocated, |p| p.whole = false);
    assert!(told(&running(), &mixed, step(FACT)).contains("needs \"whole\""));
    let removed = but(&running(), |p| p.containers[0].promise = Promise::Removed);
    assert!(told(&running(), &removed, step(FACT)).contains("needs \"allocating\""));
    let redefined = but(&running(), |p| p.containers[0].definition = Digest(9));
    assert!(told(&running(), &redefined, step(FACT)).contains("redefine is not permitted"));
    let forgotten = but(&running(), |p| {
        p.containers.clear();
        p.volumes[0].promise = Promise::Kept;
    });
    assert!(told(&running(), &forgotten, step(FACT)).contains("needs \"allocating\""));
    let ending = but(&allocated, |p| p.life = Pod::Terminating);
    assert!(told(&running(), &ending, step(FACT)).contains("needs \"active\""), "S7");
}

#[test]
fn a_container_is_made_once_in_its_turn_with_its_volumes() {
    let waiting = but(&running(), |p| p.containers[0] = app(0, Life::None));
    let creating = but(&waiting, |p| p.containers[0] = app(0, Life::Creating));
    assert_eq!(told(&waiting, &creating, step(TICK)), "");
    let with = |change: fn(&mut PodView)| told(&but(&waiting, change), &but(&creating, change), step(TICK));
    assert!(with(|p| p.volumes[0].life = volume::Volume::Mounting).contains("needs \"volumes ready\""));
    assert!(with(|p| p.life = Pod::Terminating).contains("needs \"active\""));
    assert!(with(|p| p.initialized = false).contains("needs \"in turn\""));
    assert!(with(|p| p.containers[0].may_run = false).contains("needs \"may run\""));
    assert!(with(|p| p.containers[0].promise = Promise::Removed).contains("needs \"kept\""));
    assert!(with(|p| p.sandboxes[0].1 = Sandbox::Dead).contains("needs \"sandbox ready\""));
    assert!(with(|p| p.containers.push(app(1, Life::Running))).contains("needs \"name free\""), "S6");
    let mut blind = step(TICK);
    blind.seen.runtime = false;
    assert!(told(&waiting, &creating, blind).contains("needs \"runtime seen\""));
}

#[test]
fn a_life_ends_for_its_own_reason_and_never_lives_on() {
    let doomed = but(&running(), |p| p.containers[0].doomed = true);
    assert!(told(&running(), &doomed, step(FACT)).contains("needs \"own cause\""), "S9");
    let caused = but(&doomed, |p| p.containers[0].own_cause = true);
    assert_eq!(told(&running(), &caused, step(FACT)), "");
    assert!(told(&caused, &running(), step(FACT)).contains("is to live on"));
    let next = but(&running(), |p| p.containers[0] = Container { attempt: 1, ..app(0, Life::Creating) });
    assert_eq!(told(&running(), &next, step(FACT)), "", "it ended, and its next life began");
    assert!(told(&running(), &next, step(TICK)).contains("went from Running"), "a lost exit is none");
}

#[test]
fn a_start_forgets_what_was_in_flight_and_nothing_else() {
    let before = but(&running(), |p| {
        p.containers[0] = app(0, Life::Creating);
        p.volumes.push(volume(1, Promise::Kept, volume::Volume::Mounting));
    });
    let mut crash = step(Movers { crash: true, ..TICK });
    crash.seen = Seen::default();
    let unknown = but(&before, |p| {
        p.containers[0] = app(0, Life::Unknown);
        p.volumes[1].life = volume::Volume::Uncertain;
    });
    assert_eq!(told(&before, &unknown, crash), "");
    let forgotten = but(&unknown, |p| p.containers[0] = app(0, Life::None));
    assert!(told(&before, &forgotten, crash).contains("went from Creating to None"));
    let believed = but(&before, |p| p.containers[0] = app(0, Life::Created));
    assert!(told(&before, &believed, crash).contains("went from Creating to Created"));
    let rebooted = but(&running(), |p| p.volumes[0].life = volume::Volume::Uncertain);
    assert!(!told(&running(), &rebooted, crash).is_empty(), "mounts outlive an agent");
    crash.movers.host = true;
    assert_eq!(told(&running(), &rebooted, crash), "");
}

#[test]
fn a_pod_ends_in_order() {
    let over = but(&running(), |p| {
        p.life = Pod::Terminated;
        p.told = true;
        p.sandboxes.clear();
        p.containers = vec![app(0, Life::None)];
        p.volumes.clear();
    });
    let releasing = but(&over, |p| p.life = Pod::Releasing);
    assert_eq!(told(&over, &releasing, step(TICK)), "");
    let with = |change: fn(&mut PodView)| told(&but(&over, change), &but(&releasing, change), step(TICK));
    assert!(with(|p| p.told = false).contains("needs \"told\""));
    assert!(with(|p| p.containers[0] = app(0, Life::Running)).contains("needs \"nothing runs\""));
    let left = with(|p| p.volumes = vec![volume(0, Promise::Kept, volume::Volume::Uncertain)]);
    assert!(left.contains("needs \"volumes gone\""), "{left}");
    assert!(told(&over, &PodView::default(), step(TICK)).contains("needs \"object gone\""));
    let terminating = but(&running(), |p| p.life = Pod::Terminating);
    let concluded = but(&terminating, |p| p.life = Pod::Terminated);
    assert!(
        told(&terminating, &concluded, step(FACT)).contains("needs \"sandboxes down\", \"nothing runs\"")
            || told(&terminating, &concluded, step(FACT)).contains("\"nothing runs\"")
    );
    assert!(!told(&concluded, &terminating, step(FACT)).is_empty(), "absorbing");
}

#[test]
fn what_timers_did_before_the_fact_is_explained_before_it_and_only_then() {
    let before = but(&running(), |p| {
        p.volumes.push(Volume {
            id: VolumeId { name: "w".into(), generation: 0 },
            ..volume(0, Promise::Kept, volume::Volume::Failed)
        })
    });
    let after = but(&before, |p| {
        p.volumes[1].life = volume::Volume::Mounting;
        p.life = Pod::Terminating;
    });
    assert!(told(&before, &after, step(FACT)).contains("needs \"active\""));
    assert_eq!(told(&before, &after, Situation { timers_first: true, ..step(FACT) }), "");
}
