//! The world by itself: commands are given by hand, choices are looked at, and what the host does is compared with what
//! a host does.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use super::runtime::State;
use super::*;
use crate::brain::production;
use crate::log::InMemory;
use nodefold_core::Config;
use nodefold_core::command::{Action, Cause, Command, MountedVolume, Rule};
use nodefold_core::event::{ErrorClass, ProbeKind};
use nodefold_core::ids::{EventSeq, OpId, VolumeId};
use nodefold_core::spec::Container as ContainerSpec;
use serde_json::json;

/// A world with one pod named web in its API, seen by hand-given commands only: the agent is never started, or started
/// and then silent about what it did not ask.
struct Stage {
    world: World,
    pod: Arc<Pod>,
    next_op: u64,
}

fn manifest() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "containers": [{"name": "app", "image": "a", "readinessProbe": {"exec": {"command": ["true"]}, "initialDelaySeconds": 7}}],
            "volumes": [
                {"name": "disk", "emptyDir": {}},
                {"name": "memory", "emptyDir": {"medium": "Memory"}},
                {"name": "sec", "secret": {"secretName": "s", "items": [{"key": "k", "path": "p"}]}},
            ],
        },
    })
}

impl Stage {
    fn new() -> Stage {
        let config = Config::default();
        let spec = NodeSpec::default();
        let mut world = World::new(&config, production(config.clone()), &spec, Box::<InMemory>::default());
        world.run_until(BEGINNING.after(Nanos::secs(1)), &mut Earliest).unwrap();
        // Kept from the agent, so that only this test gives commands.
        world.hold(scope(Operation::Watch, ""));
        let uid = world.server.next_uid("Pod", "default", "web");
        let object = manifest();
        assert!(world.request("me", "create".into(), Request::Create { object, uid }).unwrap().is_ok());
        let name = PodRef { namespace: "default".into(), name: "web".into() };
        let stored = world.server.pod(&name).unwrap();
        let pod = Arc::new(nodefold_k8s::pod_from_json(stored, Source::Api).unwrap());
        world.take_records();
        Stage { world, pod, next_op: 1_000_000 }
    }

    fn give(&mut self, action: Action) {
        self.next_op += 1;
        let cause = Cause { event: EventSeq(1), rule: Rule::Told };
        self.world.accept(Command { op: OpId(self.next_op), pod: self.pod.uid, cause, action });
    }

    fn pass(&mut self, time: Nanos) {
        let until = self.world.now.after(time);
        self.world.run_until(until, &mut Earliest).unwrap();
    }

    /// The facts told since this was asked last, ticks aside.
    fn facts(&mut self) -> Vec<Fact> {
        self.records()
            .into_iter()
            .filter_map(|record| match record {
                Record::Fact { event, .. } if event.fact != Fact::Tick => Some(event.fact),
                _ => None,
            })
            .collect()
    }

    fn records(&mut self) -> Vec<Record> {
        self.world.take_records()
    }

    fn broken(&mut self) -> Vec<String> {
        self.records()
            .into_iter()
            .filter_map(|record| match record {
                Record::InvariantBroken { violation, .. } => Some(violation),
                _ => None,
            })
            .collect()
    }

    fn mount(&mut self, name: &str, generation: u32) {
        let spec = self.pod.spec.volume(name).unwrap().clone();
        let (pod, allocated) = (self.pod.clone(), self.pod.spec.clone());
        self.give(Action::MountVolume { volume: life(name, generation), spec, pod, allocated });
    }

    fn unmount(&mut self, name: &str, generation: u32) {
        self.give(Action::UnmountVolume { volume: life(name, generation), spec: None });
    }

    fn app(&self) -> Arc<ContainerSpec> {
        self.pod.spec.container("app").unwrap().clone()
    }

    /// A sandbox and a running container, with these volumes mounted into it.
    fn run_app(&mut self, id: &ContainerId, volumes: &[&str]) {
        let (pod, allocated) = (self.pod.clone(), self.pod.spec.clone());
        if self.world.runtime.sandboxes.is_empty() {
            self.give(Action::CreateSandbox { attempt: 0, pod: pod.clone(), allocated: allocated.clone() });
        }
        self.pass(Nanos::secs(1));
        let mounts = volumes.iter().map(|name| mounted(name)).collect();
        let spec = self.app();
        self.give(Action::CreateContainer {
            container: id.clone(),
            spec,
            mounts,
            sandbox: 0,
            pod,
            allocated,
        });
        self.pass(Nanos::secs(1));
        self.give(Action::StartContainer { container: id.clone() });
        self.pass(Nanos::secs(1));
    }

    fn state(&self, id: &ContainerId) -> State {
        self.world.runtime.containers[&(self.pod.uid, id.clone())].state.clone()
    }

    fn exit_of(&self, id: &ContainerId) -> (i32, Option<i32>) {
        match self.state(id) {
            State::Exited(exit) => (exit.code, exit.signal),
            other => panic!("{id} is {other:?}"),
        }
    }

    fn is_running(&self, id: &ContainerId) -> bool {
        matches!(self.state(id), State::Running { .. })
    }
}

fn scope(operation: Operation, target: &str) -> Scope {
    Scope { operation, pod: None, target: (!target.is_empty()).then(|| target.to_owned()) }
}

fn life(name: &str, generation: u32) -> VolumeId {
    VolumeId { name: name.into(), generation }
}

fn app(attempt: u32) -> ContainerId {
    ContainerId { name: "app".into(), incarnation: 0, attempt }
}

fn mounted(name: &str) -> MountedVolume {
    let rest = nodefold_core::spec::Blob::default();
    let mount = nodefold_core::spec::VolumeMount {
        name: name.into(),
        mount_path: format!("/{name}").as_str().into(),
        read_only: false,
        rest,
    };
    MountedVolume { volume: life(name, 0), mount }
}

#[test]
fn a_mount_of_an_absent_secret_fails_in_kubernetes_words_and_then_works() {
    let mut stage = Stage::new();
    stage.mount("sec", 0);
    stage.pass(Nanos::secs(1));
    let [Fact::VolumeMountFailed { error, .. }] = &stage.facts()[..] else { panic!("no failure") };
    assert_eq!((&*error.message, error.class), ("secret \"s\" not found", ErrorClass::Final));
    for (data, told) in
        [(json!({"other": "v"}), Some("references non-existent secret key: k")), (json!({"k": "v"}), None)]
    {
        let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "stringData": data});
        let request = match told {
            Some(_) => Request::Create { object, uid: PodUid(77) },
            None => Request::Update { object },
        };
        assert!(stage.world.request("me", "store".into(), request).unwrap().is_ok());
        stage.mount("sec", 0);
        stage.pass(Nanos::secs(1));
        let facts = stage.facts();
        match told {
            Some(told) => assert!(
                matches!(&facts[..], [Fact::VolumeMountFailed { error, .. }] if &*error.message == told),
                "{facts:?}"
            ),
            None => assert!(matches!(&facts[..], [Fact::VolumeMounted { .. }]), "{facts:?}"),
        }
    }
}

#[test]
fn a_held_mount_waits_for_its_release_and_a_hold_outlives_the_agent() {
    let mut stage = Stage::new();
    stage.world.hold(scope(Operation::Mount, "disk"));
    stage.mount("disk", 0);
    stage.mount("memory", 0);
    stage.pass(Nanos::secs(600));
    assert!(matches!(&stage.facts()[..], [Fact::VolumeMounted { volume, .. }] if &*volume.name == "memory"));
    stage.world.crash_agent();
    stage.pass(Nanos::secs(60));
    stage.records();
    stage.mount("disk", 0);
    stage.pass(Nanos::secs(600));
    assert_eq!(stage.facts(), []);
    assert_eq!(stage.world.release(&scope(Operation::Mount, "disk")), 1);
    stage.pass(Nanos::secs(1));
    assert!(
        matches!(&stage.facts()[..], [Fact::VolumeMounted { .. }]),
        "only the living agent's mount is answered"
    );
}

#[test]
fn a_failure_says_what_it_did() {
    for (class, on_host) in
        [(ErrorClass::Final, false), (ErrorClass::Transient, false), (ErrorClass::Uncertain, true)]
    {
        let mut stage = Stage::new();
        let failure = Failure { times: Some(1), error: "no luck".into(), class };
        stage.world.fail(scope(Operation::Mount, "disk"), failure);
        stage.mount("disk", 0);
        stage.pass(Nanos::secs(1));
        let [Fact::VolumeMountFailed { error, .. }] = &stage.facts()[..] else { panic!("no failure") };
        assert_eq!((&*error.message, error.class), ("no luck", class));
        assert_eq!(stage.world.mounts.has(stage.pod.uid, &life("disk", 0)), on_host);
        stage.mount("disk", 0);
        stage.pass(Nanos::secs(1));
        assert!(matches!(&stage.facts()[..], [Fact::VolumeMounted { .. }]), "it was to fail once");
    }
}

#[test]
fn held_as_well_an_operation_fails_when_released() {
    let mut stage = Stage::new();
    stage.world.hold(scope(Operation::Unmount, "disk"));
    let failure = Failure { times: None, error: "busy".into(), class: ErrorClass::Final };
    stage.world.fail(scope(Operation::Unmount, "disk"), failure);
    stage.mount("disk", 0);
    stage.pass(Nanos::secs(1));
    stage.unmount("disk", 0);
    stage.pass(Nanos::secs(60));
    assert!(matches!(&stage.facts()[..], [Fact::VolumeMounted { .. }]));
    stage.world.release(&scope(Operation::Unmount, "disk"));
    stage.pass(Nanos::secs(1));
    assert!(matches!(&stage.facts()[..], [Fact::VolumeUnmountFailed { .. }]));
    assert!(stage.world.mounts.has(stage.pod.uid, &life("disk", 0)));
}

#[test]
fn a_process_obeys_term_and_dies_of_kill() {
    for (grace, exit) in [(Nanos::secs(30), (0, None)), (Nanos::ZERO, (137, Some(9)))] {
        let mut stage = Stage::new();
        stage.run_app(&app(0), &[]);
        stage.facts();
        stage.give(Action::StopContainer { container: app(0), grace });
        stage.pass(Nanos::secs(1));
        assert_eq!(stage.exit_of(&app(0)), exit);
        assert!(
            matches!(&stage.facts()[..], [Fact::ContainerExited { exit: told, .. }] if told.code == exit.0)
        );
    }
    let mut stage = Stage::new();
    stage.run_app(&app(0), &[]);
    stage.give(Action::KillContainer { container: app(0) });
    stage.pass(Nanos::secs(1));
    assert_eq!(stage.exit_of(&app(0)), (137, Some(9)));
}

#[test]
fn a_held_stop_leaves_the_process_alive_whatever_the_grace() {
    let mut stage = Stage::new();
    stage.run_app(&app(0), &[]);
    stage.world.hold(scope(Operation::Stop, "app"));
    stage.give(Action::StopContainer { container: app(0), grace: Nanos::secs(2) });
    stage.pass(Nanos::secs(10));
    stage.give(Action::KillContainer { container: app(0) });
    stage.give(Action::StopSandbox { attempt: 0 });
    stage.pass(Nanos::secs(600));
    assert!(stage.is_running(&app(0)));
    assert!(stage.world.unsettled(Nanos::secs(60)).is_empty(), "held operations don't count");
    stage.world.release(&scope(Operation::Stop, ""));
    stage.pass(Nanos::secs(1));
    assert!(!stage.is_running(&app(0)));
}

#[test]
fn a_step_ends_a_process_and_the_agent_hears() {
    let mut stage = Stage::new();
    let web = PodRef { namespace: "default".into(), name: "web".into() };
    assert!(!stage.world.end_process(&web, "app", Ending::Code(3)), "nothing runs yet");
    stage.run_app(&app(0), &[]);
    stage.facts();
    assert!(stage.world.end_process(&web, "app", Ending::Code(3)));
    stage.pass(Nanos::secs(1));
    assert!(
        matches!(&stage.facts()[..], [Fact::ContainerExited { exit, .. }] if exit.code == 3 && exit.started_at.is_some())
    );
    assert!(!stage.world.end_process(&web, "app", Ending::KILLED), "it has ended");
}

#[test]
fn the_runtime_goes_on_without_the_agent_and_answers_nobody() {
    let mut stage = Stage::new();
    stage.run_app(&app(0), &[]);
    stage.give(Action::StopContainer { container: app(0), grace: Nanos::secs(30) });
    stage.mount("disk", 0);
    stage.world.crash_agent();
    stage.records();
    stage.pass(Nanos::secs(1));
    assert_eq!(stage.exit_of(&app(0)), (0, None), "the runtime had the call");
    assert!(!stage.world.mounts.has(stage.pod.uid, &life("disk", 0)), "the agent was to mount it itself");
    assert_eq!(stage.facts(), [], "nobody listens");
    stage.pass(Nanos::secs(5));
    assert!(matches!(&stage.facts()[0], Fact::AgentStarted { .. }));
}

#[test]
fn a_host_crash_leaves_only_the_disk() {
    let mut stage = Stage::new();
    stage.mount("disk", 0);
    stage.mount("memory", 0);
    stage.run_app(&app(0), &["disk"]);
    let before = stage.facts();
    stage.world.crash_host();
    stage.pass(Nanos::secs(60));
    let Some(Fact::AgentStarted { boot_id }) = stage.facts().first().cloned() else { panic!("no start") };
    assert!(!before.contains(&Fact::AgentStarted { boot_id }), "another boot");
    assert!(stage.world.mounts.has(stage.pod.uid, &life("disk", 0)));
    assert!(!stage.world.mounts.has(stage.pod.uid, &life("memory", 0)));
    assert_eq!(stage.exit_of(&app(0)).0, 255);
    assert!(!stage.world.runtime.sandboxes[&(stage.pod.uid, 0)].ready);
}

#[test]
fn two_lives_of_a_volume_name_on_the_host_are_told() {
    let mut stage = Stage::new();
    stage.mount("disk", 0);
    stage.pass(Nanos::secs(1));
    stage.mount("disk", 1);
    stage.pass(Nanos::secs(1));
    let broken = stage.broken();
    assert!(matches!(&broken[..], [one] if one.starts_with("S6") && one.contains("disk#0")), "{broken:?}");
}

#[test]
fn an_unmount_under_a_running_container_is_told() {
    let mut stage = Stage::new();
    stage.mount("disk", 0);
    stage.run_app(&app(0), &["disk"]);
    stage.unmount("disk", 0);
    stage.pass(Nanos::secs(1));
    let broken = stage.broken();
    assert!(matches!(&broken[..], [one] if one.starts_with("S1") && one.contains("app#0.0")), "{broken:?}");
}

#[test]
fn a_second_live_instance_of_a_name_is_told_and_a_container_needs_its_volumes() {
    let mut stage = Stage::new();
    stage.run_app(&app(0), &[]);
    stage.run_app(&app(1), &[]);
    let broken = stage.broken();
    assert!(matches!(&broken[..], [one] if one.starts_with("S6") && one.contains("app#0.1")), "{broken:?}");
    let mut stage = Stage::new();
    stage.run_app(&app(0), &["disk"]);
    let told = stage.facts().into_iter().find_map(|fact| match fact {
        Fact::ContainerCreateFailed { error, .. } => Some(error.message),
        _ => None,
    });
    assert_eq!(told.as_deref(), Some("cannot find volume \"disk\" to mount into container \"app\""));
}

#[test]
fn a_probe_passes_after_its_delay_and_a_flip_is_told_once() {
    let mut stage = Stage::new();
    stage.run_app(&app(0), &[]);
    let spec = stage.app();
    stage.give(Action::StartProbe { container: app(0), probe: ProbeKind::Readiness, spec });
    stage.facts();
    stage.pass(Nanos::secs(6));
    assert_eq!(stage.facts(), [], "the initial delay is 7 s");
    stage.pass(Nanos::secs(2));
    assert!(matches!(&stage.facts()[..], [Fact::ProbeResult { passed: true, .. }]));
    let web = PodRef { namespace: "default".into(), name: "web".into() };
    for _ in 0..2 {
        assert!(stage.world.flip_probe(&web, "app", ProbeKind::Readiness, false));
        stage.pass(Nanos::secs(1));
    }
    assert!(matches!(&stage.facts()[..], [Fact::ProbeResult { passed: false, .. }]), "told once");
    stage.give(Action::StopProbe { container: app(0), probe: ProbeKind::Readiness });
    stage.world.flip_probe(&web, "app", ProbeKind::Readiness, true);
    stage.pass(Nanos::secs(1));
    assert_eq!(stage.facts(), [], "nobody probes");
}

#[test]
fn a_watch_delivers_one_by_one_or_all_as_one() {
    let mut stage = Stage::new();
    for image in ["b", "c"] {
        let mut object = manifest();
        object["spec"]["nodeName"] = json!("node");
        object["spec"]["containers"][0]["image"] = json!(image);
        assert!(stage.world.request("me", "update".into(), Request::Update { object }).unwrap().is_ok());
    }
    stage.pass(Nanos::secs(60));
    assert!(!stage.facts().iter().any(|f| matches!(f, Fact::PodApplied(_))), "the watch is held");
    stage.world.release(&scope(Operation::Watch, ""));
    let mut enabled = Vec::new();
    stage.world.enabled(&mut enabled);
    let deliveries: Vec<&Choice> =
        enabled.iter().map(|e| &e.choice).filter(|c| matches!(c, Choice::Deliver { .. })).collect();
    assert_eq!(deliveries.len(), 2, "the first, or all as one: {enabled:?}");
    let all =
        deliveries.into_iter().find(|c| matches!(c, Choice::Deliver { all: true, .. })).unwrap().clone();
    assert!(stage.world.step(&all).unwrap());
    let applied: Vec<String> = stage
        .facts()
        .into_iter()
        .filter_map(|fact| match fact {
            Fact::PodApplied(pod) => Some(pod.spec.containers[0].image.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(applied, ["c"], "the newest stands for all");
    assert!(!stage.world.step(&all).unwrap(), "a choice that is not enabled is skipped");
}

#[test]
fn a_status_write_alone_tells_the_agent_nothing() {
    let mut stage = Stage::new();
    stage.world.release(&scope(Operation::Watch, ""));
    stage.pass(Nanos::millis(6));
    assert!(stage.facts().iter().any(|f| matches!(f, Fact::PodApplied(_))));
    let request = Request::Status {
        namespace: "default".into(),
        name: "web".into(),
        uid: stage.pod.uid,
        status: json!({"phase": "Pending"}),
    };
    assert!(stage.world.request("system:node:node", "status".into(), request).unwrap().is_ok());
    stage.pass(Nanos::millis(20));
    assert!(!stage.facts().iter().any(|f| matches!(f, Fact::PodApplied(_))));
}

#[test]
fn a_fork_goes_on_apart_and_ends_as_its_origin_would() {
    let mut stage = Stage::new();
    stage.world.release(&scope(Operation::Watch, ""));
    let mut fork = stage.world.fork().unwrap();
    stage.world.crash_agent();
    assert!(!stage.world.agent.is_alive() && fork.agent.is_alive());
    // The origin folds its log anew on its way; both get there.
    for world in [&mut stage.world, &mut fork] {
        world.run_until(BEGINNING.after(Nanos::secs(30)), &mut Earliest).unwrap();
        assert!(!world.is_broken, "D1");
        assert_eq!(world.instances().len(), 1);
    }
}
