//! A node's life with something of everything in it, driven by a host that answers at once with success, but for what is
//! held back. The same in every run.

use nodefold_core::command::{Action, Command};
use nodefold_core::config::NodeFacts;
use nodefold_core::event::{
    ErrorClass, Exit, Mirror, ObjectVersion, OpError, SeenContainer, SeenSandbox, SeenState, UsageOf,
};
use nodefold_core::ids::{ContainerId, ObjectKind, ObjectRef, OpId, PodUid, Source, VolumeId};
use nodefold_core::resources::{QosClass, ResourceList, ResourceName, Resources};
use nodefold_core::spec::{
    Blob, Container, Medium, ObjectSource, Pod, PodSpec, RestartPolicy, Volume, VolumeMount, VolumeSource,
};
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Commands, Config, Event, Fact, Node};
use std::collections::VecDeque;
use std::sync::Arc;

/// See the file's head.
pub struct Life {
    pub node: Node,
    pub events: Vec<Event>,
    now: Time,
    inbox: VecDeque<Command>,
    held: Vec<Command>,
    /// Verb and container or volume (empty: any) of commands that are not answered.
    holds: Vec<(&'static str, &'static str)>,
}

fn container(name: &str, cpu: u64, mounts: &[&str]) -> Container {
    let mount = |volume: &&str| VolumeMount {
        name: (*volume).into(),
        mount_path: format!("/{volume}").into(),
        read_only: false,
        rest: Blob::default(),
    };
    let requests = ResourceList::from_pairs([(ResourceName::Cpu, cpu)]);
    Container {
        image: "image:1".into(),
        resources: Resources { requests, limits: ResourceList::default() },
        mounts: mounts.iter().map(mount).collect(),
        ..Container::unknown(name.into())
    }
}

fn volume(name: &str, source: VolumeSource) -> Volume {
    Volume { name: name.into(), source, rest: Blob::default() }
}

fn empty_dir(name: &str) -> Volume {
    volume(name, VolumeSource::EmptyDir { medium: Medium::Disk, size_limit: None })
}

fn settings() -> ObjectRef {
    ObjectRef { kind: ObjectKind::ConfigMap, namespace: "ns".into(), name: "settings".into() }
}

fn version(digest: u128) -> ObjectVersion {
    ObjectVersion { resource_version: digest.to_string().into(), digest, keys: vec![("key".into(), 3)] }
}

fn pod(uid: u128, containers: Vec<Container>, volumes: Vec<Volume>) -> Pod {
    let orphan = Pod::orphan(PodUid(uid));
    let spec = PodSpec {
        restart_policy: RestartPolicy::Always,
        containers: containers.into_iter().map(Arc::new).collect(),
        volumes: volumes.into_iter().map(Arc::new).collect(),
        qos: QosClass::Burstable,
        termination_grace: Nanos::secs(30),
        ..(*orphan.spec).clone()
    };
    let name = format!("pod-{uid}").into();
    Pod { namespace: "ns".into(), name, generation: 1, spec: Arc::new(spec), ..orphan }
}

fn edited(before: &Pod, edit: impl FnOnce(&mut PodSpec)) -> Pod {
    let mut pod = before.clone();
    edit(Arc::make_mut(&mut pod.spec));
    pod.generation += 1;
    pod
}

fn error(class: ErrorClass) -> OpError {
    OpError { class, reason: None, message: "it went wrong".into() }
}

fn id(name: &str, attempt: u32) -> ContainerId {
    ContainerId { name: name.into(), incarnation: 0, attempt }
}

impl Life {
    /// All of it.
    pub fn lived() -> Life {
        let mut life = Life {
            node: Node::new(Config::default()),
            events: Vec::new(),
            now: Time(1_800_000_000_000_000_000),
            inbox: VecDeque::new(),
            held: Vec::new(),
            holds: Vec::new(),
        };
        life.begin();
        life.web();
        life.static_pod_and_sandboxes();
        life.unknowns();
        life.room();
        life
    }

    fn fact(&mut self, fact: Fact) {
        self.now = self.now.after(Nanos::millis(1));
        let event = Event { at: self.now, fact };
        let mut out = Commands::default();
        self.node.apply(&event, &mut out);
        self.events.push(event);
        self.inbox.extend(out.commands);
    }

    fn apply(&mut self, pod: &Pod) {
        self.fact(Fact::PodApplied(Arc::new(pod.clone())));
        self.run();
    }

    fn run(&mut self) {
        for _ in 0..1000 {
            if let Some(command) = self.inbox.pop_front() {
                if self.holds.iter().any(|(verb, thing)| is(&command, verb, thing)) {
                    self.held.push(command);
                } else {
                    self.answer(command);
                }
            } else if self.node.next_deadline().is_some_and(|at| at <= self.now) {
                self.fact(Fact::Tick);
            } else {
                return;
            }
        }
        panic!("the node never rests");
    }

    fn hold(&mut self, verb: &'static str, thing: &'static str) {
        self.holds.push((verb, thing));
    }

    fn taken(&mut self, verb: &str, thing: &str) -> Command {
        let at = self.held.iter().position(|c| is(c, verb, thing)).expect("it is held");
        self.held.remove(at)
    }

    fn exits(&mut self, pod: u128, name: &str, attempt: u32, code: i32) {
        let exit =
            Exit { code, signal: None, reason: "Error".into(), started_at: None, finished_at: self.now };
        self.fact(Fact::ContainerExited { pod: PodUid(pod), container: id(name, attempt), exit });
        self.run();
    }

    fn begin(&mut self) {
        self.fact(Fact::AgentStarted { boot_id: 1 });
        self.run();
        self.fact(Fact::SourceReady { source: Source::Api });
        self.fact(Fact::SourceReady { source: Source::File });
        let allocatable = ResourceList::from_pairs([(ResourceName::Cpu, 4000), (ResourceName::Pods, 20)]);
        self.fact(Fact::NodeChanged(NodeFacts { allocatable, ..NodeFacts::default() }));
        self.fact(Fact::ObjectSeen { object: settings(), version: version(1) });
        // Nobody's completion.
        self.fact(Fact::StatusWritten { op: OpId(77), pod: PodUid(77) });
    }

    /// A pod that crashes, with volumes in every phase.
    fn web(&mut self) {
        let object = ObjectSource { object: settings(), optional: false };
        let mut web = pod(
            1,
            vec![
                container("app", 100, &["settings"]),
                container("tool", 0, &["old"]),
                container("cache", 0, &["kept"]),
            ],
            vec![volume("settings", VolumeSource::ConfigMap(object)), empty_dir("old"), empty_dir("kept")],
        );
        web = edited(&web, |spec| {
            spec.init_containers = vec![
                Arc::new(container("prepare", 0, &[])),
                Arc::new(Container {
                    restart_policy: Some(RestartPolicy::Always),
                    ..container("proxy", 0, &[])
                }),
            ];
            spec.readiness_gates = vec!["gate".into()].into();
        });
        self.apply(&web);
        self.exits(1, "prepare", 0, 0);
        self.fact(Fact::ReadinessGate { pod: PodUid(1), condition: "gate".into(), met: true });
        self.exits(1, "app", 0, 1);
        self.exits(1, "app", 1, 1);
        self.fact(Fact::UsageReported {
            pod: PodUid(1),
            of: UsageOf::Volume(VolumeId { name: "kept".into(), generation: 0 }),
            bytes: 4096,
        });
        self.hold("refresh", "settings");
        self.fact(Fact::ObjectSeen { object: settings(), version: version(2) });
        self.run();
        self.hold("unmount", "old");
        self.hold("mount", "slow");
        self.hold("mount", "torn");
        let web = edited(&web, |spec| {
            spec.containers.retain(|c| &*c.name != "tool");
            spec.containers.push(Arc::new(container("late", 0, &["slow"])));
            spec.containers.push(Arc::new(container("later", 0, &["torn"])));
            spec.volumes.retain(|v| &*v.name != "old");
            spec.volumes.extend([Arc::new(empty_dir("slow")), Arc::new(empty_dir("torn"))]);
        });
        self.apply(&web);
        let Command { op, pod, .. } = self.taken("mount", "torn");
        let volume = VolumeId { name: "torn".into(), generation: 0 };
        self.fact(Fact::VolumeMountFailed { op, pod, volume, error: error(ErrorClass::Uncertain) });
        self.run();
    }

    /// A static pod that is wanted again while it ends; a sandbox that died; one that is being made.
    fn static_pod_and_sandboxes(&mut self) {
        let etcd = Pod { source: Source::File, ..pod(6, vec![container("etcd", 10, &[])], vec![]) };
        self.apply(&etcd);
        self.hold("stop", "etcd");
        self.fact(Fact::PodRemoved { pod: PodUid(6) });
        self.run();
        self.apply(&etcd);
        self.apply(&pod(8, vec![container("survivor", 10, &[])], vec![]));
        self.hold("remove-sandbox", "");
        self.hold("sandbox", "");
        self.fact(Fact::SandboxStopped { pod: PodUid(8), attempt: 0 });
        self.run();
        self.exits(8, "survivor", 0, 137);
        self.apply(&pod(7, vec![container("waiting", 10, &[])], vec![]));
        self.holds.retain(|(verb, _)| *verb != "sandbox");
    }

    /// Creates that may have been done; a container that nobody owns.
    fn unknowns(&mut self) {
        self.hold("create", "maybe");
        self.hold("observe-runtime", "");
        self.hold("kill", "ghost");
        for uid in [9, 10] {
            self.apply(&pod(uid, vec![container("maybe", 10, &[])], vec![]));
            let Command { op, pod, .. } = self.taken("create", "maybe");
            let container = id("maybe", 0);
            self.fact(Fact::ContainerCreateFailed {
                op,
                pod,
                container,
                error: error(ErrorClass::Uncertain),
            });
            self.run();
        }
        let look = self.taken("observe-runtime", "");
        let seen = |name| SeenContainer { pod: look.pod, container: id(name, 0), state: SeenState::Created };
        let sandbox = SeenSandbox { pod: look.pod, attempt: 0, ready: true, ip: Some("10.0.0.1".into()) };
        self.fact(Fact::RuntimeObserved {
            op: look.op,
            complete: true,
            sandboxes: vec![sandbox],
            containers: vec![seen("maybe"), seen("ghost")],
        });
        self.run();
    }

    /// A resize under way, one that waits, and a critical pod for which another has to go.
    fn room(&mut self) {
        let grows = pod(5, vec![container("grows", 100, &[])], vec![]);
        self.apply(&grows);
        self.hold("resize", "grows");
        self.apply(&edited(&grows, |spec| spec.containers = vec![Arc::new(container("grows", 200, &[]))]));
        let wants = pod(4, vec![container("wants", 200, &[])], vec![]);
        self.apply(&wants);
        self.apply(&pod(2, vec![container("big", 2000, &[])], vec![]));
        self.apply(&edited(&wants, |spec| spec.containers = vec![Arc::new(container("wants", 3900, &[]))]));
        self.hold("stop", "big");
        let critical = edited(&pod(3, vec![container("vital", 3000, &[])], vec![]), |spec| {
            spec.priority = 2_000_000_000;
        });
        self.apply(&critical);
    }

    fn answer(&mut self, command: Command) {
        let (op, pod) = (command.op, command.pod);
        let fact = match command.action {
            Action::MountVolume { volume, .. } => {
                Fact::VolumeMounted { op, pod, volume, renew_at: None, image_digest: None }
            }
            Action::UnmountVolume { volume, .. } => Fact::VolumeUnmounted { op, pod, volume },
            Action::RefreshVolume { volume, .. } => Fact::VolumeRefreshed { op, pod, volume, renew_at: None },
            Action::PullImage { container, .. } => {
                Fact::ImagePulled { op, pod, container, image_id: "sha256:1".into(), already_present: true }
            }
            Action::CreateSandbox { attempt, .. } => {
                Fact::SandboxReady { op, pod, attempt, ip: Some("10.0.0.1".into()) }
            }
            Action::StopSandbox { attempt } => Fact::SandboxStopped { pod, attempt },
            Action::RemoveSandbox { attempt } => Fact::SandboxRemoved { op, pod, attempt },
            Action::CreateContainer { container, .. } => Fact::ContainerCreated { op, pod, container },
            Action::StartContainer { container } => Fact::ContainerStarted { op, pod, container },
            Action::StopContainer { container, .. } | Action::KillContainer { container } => {
                let (code, reason, finished_at) = (0, "Completed".into(), self.now);
                let exit = Exit { code, signal: None, reason, started_at: None, finished_at };
                Fact::ContainerExited { pod, container, exit }
            }
            Action::RemoveContainer { container } => Fact::ContainerRemoved { op, pod, container },
            Action::ResizeContainer { container, .. } => Fact::ContainerResized { op, pod, container },
            Action::ResizePod { .. } => Fact::PodResized { op, pod },
            Action::RunHook { container, hook, .. } => {
                Fact::HookDone { op, pod, container, hook, error: None }
            }
            Action::ObserveMounts => Fact::MountsObserved { op, mounts: Vec::new() },
            Action::ObserveRuntime => {
                Fact::RuntimeObserved { op, complete: true, sandboxes: Vec::new(), containers: Vec::new() }
            }
            Action::PublishStatus { .. } => Fact::StatusWritten { op, pod },
            Action::ReleasePod => Fact::PodRemoved { pod },
            Action::CreateMirror { pod } => {
                let mirror = Mirror { uid: PodUid(1000), of: pod.uid, deleting: false };
                let (namespace, name) = (pod.namespace.clone(), pod.name.clone());
                Fact::MirrorCreated { op, namespace, name, mirror }
            }
            Action::DeleteMirror { namespace, name } => {
                Fact::MirrorDeleted { op, namespace, name, mirror: pod }
            }
            Action::StartProbe { .. } | Action::StopProbe { .. } | Action::RecordEvent(_) => return,
        };
        self.fact(fact);
    }
}

fn is(command: &Command, verb: &str, thing: &str) -> bool {
    command.action.verb() == verb && (thing.is_empty() || thing == command.action.about().name())
}
