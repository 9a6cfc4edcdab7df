//! A trace builder: short words for facts and commands, so that a race reads like its story.
//!
//! Instances are written `app` (first incarnation, first attempt), `app.1` (second attempt), `app#1.0` (second
//! incarnation); volumes `data` and `data#1`.

use nodefold_core::command::{Action, Cause, Command, MountedVolume, Rule, TraceEntry};
use nodefold_core::config::{Config, NodeFacts};
use nodefold_core::event::{ErrorClass, Event, Exit, Fact, Hook, OpError, ProbeKind};
use nodefold_core::event::{SeenContainer, SeenMount, SeenState};
use nodefold_core::ids::{ContainerId, EventSeq, OpId, PodUid, Source, VolumeId};
use nodefold_core::resources::{QosClass, ResourceList, ResourceName, Resources};
use nodefold_core::spec::{Blob, Container, Deletion, Medium, Pod, PodSpec, PullPolicy, RestartPolicy};
use nodefold_core::spec::{Volume, VolumeMount, VolumeSource};
use nodefold_core::status::{Condition, ConditionKind, ContainerState, ContainerStatus, HostPhase, PodPhase};
use nodefold_core::status::{PodStatus, Terminated, VolumeStatus};
use nodefold_core::time::{Nanos, Time};
use nodefold_model::{Invariant, Oracles, Violation};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A trace being told.
pub struct Story {
    pub trace: Vec<TraceEntry>,
    pub now: Time,
    pub config: Config,
    pub pod: Pod,
    pub allocated: Arc<PodSpec>,
    ops: BTreeMap<(PodUid, String), OpId>,
    generations: BTreeMap<(PodUid, String), u32>,
    next_op: u64,
    observation: OpId,
}

pub fn container(name: &str, mounts: &[&str]) -> Container {
    Container {
        name: name.into(),
        image: "image:1".into(),
        pull_policy: PullPolicy::IfNotPresent,
        restart_policy: None,
        restart_rules: Default::default(),
        resources: Resources::default(),
        resize_restarts: Default::default(),
        mounts: mounts.iter().map(|m| mount(m)).collect(),
        restart_on_mount_change: false,
        startup_probe: None,
        liveness_probe: None,
        readiness_probe: None,
        post_start: false,
        pre_stop: false,
        rest: Blob::default(),
    }
}

pub fn mount(volume: &str) -> VolumeMount {
    VolumeMount {
        name: volume.into(),
        mount_path: format!("/{volume}").into(),
        read_only: false,
        rest: Blob::default(),
    }
}

pub fn volume(name: &str, source: &str) -> Volume {
    Volume {
        name: name.into(),
        source: VolumeSource::EmptyDir { medium: Medium::Disk, size_limit: None },
        rest: Blob(source.into()),
    }
}

pub fn cpu(millis: u64) -> Resources {
    let requests = ResourceList::from_pairs([(ResourceName::Cpu, millis)]);
    Resources { requests, limits: ResourceList::default() }
}

pub fn edit<T: Clone>(list: &mut [Arc<T>], at: usize, change: impl FnOnce(&mut T)) {
    change(Arc::make_mut(&mut list[at]));
}

fn exit(code: i32, at: Time) -> Exit {
    Exit { code, signal: None, reason: "Completed".into(), started_at: None, finished_at: at }
}

fn id(text: &str) -> ContainerId {
    let (life, attempt) = text.split_once('.').unwrap_or((text, "0"));
    let (name, incarnation) = life.split_once('#').unwrap_or((life, "0"));
    let number = |text: &str| text.parse().expect("a number in an instance's name");
    ContainerId { name: name.into(), incarnation: number(incarnation), attempt: number(attempt) }
}

pub fn volume_id(text: &str) -> VolumeId {
    let (name, generation) = text.split_once('#').unwrap_or((text, "0"));
    VolumeId { name: name.into(), generation: generation.parse().expect("a generation in a volume's name") }
}

fn error(class: ErrorClass) -> OpError {
    OpError { class, reason: None, message: "it failed".into() }
}

impl Story {
    /// A pod with one main container that mounts one volume, not yet applied.
    pub fn new() -> Story {
        let spec = PodSpec {
            restart_policy: RestartPolicy::Always,
            init_containers: Vec::new(),
            containers: vec![Arc::new(container("app", &["data"]))],
            ephemeral_containers: Vec::new(),
            volumes: vec![Arc::new(volume("data", "a"))],
            resources: None,
            overhead: ResourceList::default(),
            qos: QosClass::BestEffort,
            priority: 0,
            termination_grace: Nanos::secs(30),
            active_deadline: None,
            host_network: false,
            node_selector: Default::default(),
            host_ports: Default::default(),
            readiness_gates: Default::default(),
            windows: false,
            rest: Blob::default(),
        };
        let spec = Arc::new(spec);
        let pod = Pod {
            uid: PodUid(1),
            namespace: "default".into(),
            name: "p".into(),
            source: Source::Api,
            generation: 1,
            created_at: Time(0),
            metadata: Blob::default(),
            spec: spec.clone(),
            deletion: None,
            api_terminal: None,
        };
        Story {
            trace: Vec::new(),
            now: Time(0).after(Nanos::secs(1000)),
            config: Config::default(),
            pod,
            allocated: spec,
            ops: BTreeMap::new(),
            generations: BTreeMap::new(),
            next_op: 1,
            observation: OpId(0),
        }
    }

    /// The next entry's record number.
    pub fn next(&self) -> usize {
        self.trace.len()
    }

    pub fn wait(&mut self, seconds: u64) -> &mut Story {
        self.now = self.now.after(Nanos::secs(seconds));
        self
    }

    pub fn fact(&mut self, fact: Fact) -> &mut Story {
        self.trace.push(TraceEntry::Fact(Event { at: self.now, fact }));
        self
    }

    pub fn tick(&mut self) -> &mut Story {
        self.fact(Fact::Tick)
    }

    fn key(&self, subject: &str) -> (PodUid, String) {
        (self.pod.uid, subject.to_owned())
    }

    pub fn command(&mut self, rule: Rule, subject: &str, action: Action) -> &mut Story {
        let op = OpId(self.next_op);
        self.next_op += 1;
        self.ops.insert(self.key(subject), op);
        let cause = Cause { event: EventSeq(self.trace.len() as u64), rule };
        let command = Command { op, pod: self.pod.uid, cause, action };
        self.trace.push(TraceEntry::Command { at: self.now, command });
        self
    }

    pub fn op(&self, subject: &str) -> OpId {
        self.ops.get(&self.key(subject)).copied().unwrap_or(OpId(u64::MAX))
    }

    // --- desired and allocated ---------------------------------------------------------------------------------------

    /// Another pod with the same spec; later words are about it.
    pub fn another_pod(&mut self, uid: u128) -> &mut Story {
        self.pod.uid = PodUid(uid);
        self
    }

    /// Changes the spec without applying it.
    pub fn spec(&mut self, change: impl FnOnce(&mut PodSpec)) -> &mut Story {
        let mut spec = PodSpec::clone(&self.pod.spec);
        change(&mut spec);
        self.pod.spec = Arc::new(spec);
        self.allocated = self.pod.spec.clone();
        self
    }

    pub fn apply(&mut self) -> &mut Story {
        self.fact(Fact::PodApplied(Arc::new(self.pod.clone())))
    }

    /// A new desired version, not yet allocated.
    pub fn wish(&mut self, change: impl FnOnce(&mut PodSpec)) -> &mut Story {
        let mut spec = PodSpec::clone(&self.pod.spec);
        change(&mut spec);
        self.pod.spec = Arc::new(spec);
        self.pod.generation += 1;
        self.apply()
    }

    /// From here on commands carry the latest desired spec as the allocation.
    pub fn allocate(&mut self) -> &mut Story {
        self.allocated = self.pod.spec.clone();
        self
    }

    pub fn delete(&mut self, grace: u64) -> &mut Story {
        self.pod.deletion = Some(Deletion { requested_at: self.now, grace: Nanos::secs(grace) });
        self.apply()
    }

    pub fn gone(&mut self) -> &mut Story {
        self.fact(Fact::PodRemoved { pod: self.pod.uid })
    }

    pub fn node(&mut self, allocatable: &[(ResourceName, u64)]) -> &mut Story {
        let allocatable = ResourceList::from_pairs(allocatable.iter().cloned());
        self.fact(Fact::NodeChanged(NodeFacts { allocatable, ..NodeFacts::default() }))
    }

    // --- volumes ---------------------------------------------------------------------------------------------------------

    fn volume_spec(&self, id: &VolumeId) -> Arc<Volume> {
        self.allocated.volume(&id.name).cloned().unwrap_or_else(|| Arc::new(volume(&id.name, "a")))
    }

    pub fn mount(&mut self, text: &str) -> &mut Story {
        let spec = self.volume_spec(&volume_id(text));
        self.mount_from(text, spec)
    }

    pub fn mount_from(&mut self, text: &str, spec: Arc<Volume>) -> &mut Story {
        let id = volume_id(text);
        self.generations.insert((self.pod.uid, id.name.to_string()), id.generation);
        let (pod, allocated) = (Arc::new(self.pod.clone()), self.allocated.clone());
        self.command(Rule::VolumeDesired, text, Action::MountVolume { volume: id, spec, pod, allocated })
    }

    pub fn mounted(&mut self, text: &str) -> &mut Story {
        let (op, pod, volume) = (self.op(text), self.pod.uid, volume_id(text));
        self.fact(Fact::VolumeMounted { op, pod, volume, renew_at: None, image_digest: None })
    }

    pub fn mount_failed(&mut self, text: &str, class: ErrorClass) -> &mut Story {
        let (op, pod, volume) = (self.op(text), self.pod.uid, volume_id(text));
        self.fact(Fact::VolumeMountFailed { op, pod, volume, error: error(class) })
    }

    pub fn refresh(&mut self, text: &str) -> &mut Story {
        let id = volume_id(text);
        let spec = self.volume_spec(&id);
        let (pod, allocated) = (Arc::new(self.pod.clone()), self.allocated.clone());
        self.command(Rule::VolumeRefresh, text, Action::RefreshVolume { volume: id, spec, pod, allocated })
    }

    pub fn refreshed(&mut self, text: &str) -> &mut Story {
        let (op, pod, volume) = (self.op(text), self.pod.uid, volume_id(text));
        self.fact(Fact::VolumeRefreshed { op, pod, volume, renew_at: None })
    }

    pub fn unmount(&mut self, text: &str) -> &mut Story {
        self.unmount_by(text, Rule::VolumeRemoved)
    }

    pub fn unmount_by(&mut self, text: &str, rule: Rule) -> &mut Story {
        self.command(rule, text, Action::UnmountVolume { volume: volume_id(text), spec: None })
    }

    pub fn unmounted(&mut self, text: &str) -> &mut Story {
        let (op, pod, volume) = (self.op(text), self.pod.uid, volume_id(text));
        self.fact(Fact::VolumeUnmounted { op, pod, volume })
    }

    pub fn unmount_failed(&mut self, text: &str) -> &mut Story {
        let (op, pod, volume) = (self.op(text), self.pod.uid, volume_id(text));
        self.fact(Fact::VolumeUnmountFailed { op, pod, volume, error: error(ErrorClass::Uncertain) })
    }

    // --- sandbox and containers ------------------------------------------------------------------------------------------

    pub fn sandbox(&mut self, attempt: u32) -> &mut Story {
        let (pod, allocated) = (Arc::new(self.pod.clone()), self.allocated.clone());
        self.command(Rule::SandboxNeeded, "sandbox", Action::CreateSandbox { attempt, pod, allocated });
        let (op, pod) = (self.op("sandbox"), self.pod.uid);
        self.fact(Fact::SandboxReady { op, pod, attempt, ip: None })
    }

    pub fn sandbox_died(&mut self, attempt: u32) -> &mut Story {
        self.fact(Fact::SandboxStopped { pod: self.pod.uid, attempt })
    }

    pub fn pull(&mut self, text: &str, image: &str) -> &mut Story {
        let action =
            Action::PullImage { container: id(text), image: image.into(), policy: PullPolicy::IfNotPresent };
        self.command(Rule::MainNeeded, text, action);
        let (op, pod, container) = (self.op(text), self.pod.uid, id(text));
        self.fact(Fact::ImagePulled { op, pod, container, image_id: "sha".into(), already_present: true })
    }

    fn definition(&self, name: &str) -> Arc<Container> {
        let spec = &self.allocated;
        let all = spec.containers.iter().chain(&spec.init_containers).chain(&spec.ephemeral_containers);
        let found = all.into_iter().find(|c| &*c.name == name).cloned();
        found.unwrap_or_else(|| Arc::new(container(name, &[])))
    }

    pub fn create(&mut self, text: &str) -> &mut Story {
        self.create_in(text, 0)
    }

    pub fn create_in(&mut self, text: &str, sandbox: u32) -> &mut Story {
        let container = id(text);
        let spec = self.definition(&container.name);
        let lives = &self.generations;
        let mounts = spec.mounts.iter().map(|m| MountedVolume {
            volume: VolumeId {
                name: m.name.clone(),
                generation: lives.get(&(self.pod.uid, m.name.to_string())).copied().unwrap_or(0),
            },
            mount: m.clone(),
        });
        let mounts = mounts.collect();
        let (pod, allocated) = (Arc::new(self.pod.clone()), self.allocated.clone());
        let action = Action::CreateContainer { container, spec, mounts, sandbox, pod, allocated };
        self.command(Rule::MainNeeded, text, action)
    }

    pub fn created(&mut self, text: &str) -> &mut Story {
        let (op, pod, container) = (self.op(text), self.pod.uid, id(text));
        self.fact(Fact::ContainerCreated { op, pod, container })
    }

    pub fn create_failed(&mut self, text: &str, class: ErrorClass) -> &mut Story {
        let (op, pod, container) = (self.op(text), self.pod.uid, id(text));
        self.fact(Fact::ContainerCreateFailed { op, pod, container, error: error(class) })
    }

    pub fn start(&mut self, text: &str) -> &mut Story {
        self.command(Rule::MainNeeded, text, Action::StartContainer { container: id(text) })
    }

    pub fn started(&mut self, text: &str) -> &mut Story {
        let (op, pod, container) = (self.op(text), self.pod.uid, id(text));
        self.fact(Fact::ContainerStarted { op, pod, container })
    }

    /// Created and started, whole.
    pub fn run(&mut self, text: &str) -> &mut Story {
        self.run_in(text, 0)
    }

    pub fn run_in(&mut self, text: &str, sandbox: u32) -> &mut Story {
        self.create_in(text, sandbox).created(text).start(text).started(text)
    }

    pub fn exited(&mut self, text: &str, code: i32) -> &mut Story {
        let exit = exit(code, self.now);
        self.fact(Fact::ContainerExited { pod: self.pod.uid, container: id(text), exit })
    }

    pub fn stop(&mut self, text: &str, grace: u64, rule: Rule) -> &mut Story {
        self.command(rule, text, Action::StopContainer { container: id(text), grace: Nanos::secs(grace) })
    }

    pub fn kill(&mut self, text: &str) -> &mut Story {
        self.command(Rule::GraceExceeded, text, Action::KillContainer { container: id(text) })
    }

    pub fn hook(&mut self, text: &str) -> &mut Story {
        let spec = self.definition(&id(text).name);
        let action = Action::RunHook { container: id(text), hook: Hook::PreStop, timeout: None, spec };
        self.command(Rule::LifecycleHook, "hook", action)
    }

    pub fn resize(&mut self, text: &str, resources: Resources) -> &mut Story {
        self.command(Rule::ResizeInPlace, text, Action::ResizeContainer { container: id(text), resources })
    }

    pub fn resized(&mut self, text: &str) -> &mut Story {
        let (op, pod, container) = (self.op(text), self.pod.uid, id(text));
        self.fact(Fact::ContainerResized { op, pod, container })
    }

    pub fn probe(&mut self, text: &str, probe: ProbeKind, passed: bool) -> &mut Story {
        let (pod, container) = (self.pod.uid, id(text));
        self.fact(Fact::ProbeResult { pod, container, probe, passed, message: "".into() })
    }

    /// Applied, mounted and running, the way it should be.
    pub fn up(&mut self) -> &mut Story {
        self.apply();
        let volumes: Vec<String> = self.allocated.volumes.iter().map(|v| v.name.to_string()).collect();
        for volume in &volumes {
            self.mount(volume).mounted(volume);
        }
        self.sandbox(0);
        let mains: Vec<String> = self.allocated.containers.iter().map(|c| c.name.to_string()).collect();
        for main in &mains {
            self.run(main);
        }
        self
    }

    // --- the agent -------------------------------------------------------------------------------------------------------

    pub fn agent_started(&mut self, boot_id: u128) -> &mut Story {
        self.fact(Fact::AgentStarted { boot_id })
    }

    pub fn observe_runtime(&mut self) -> &mut Story {
        self.command(Rule::ObservationNeeded, "observe", Action::ObserveRuntime);
        self.observation = self.op("observe");
        self
    }

    pub fn runtime(&mut self, complete: bool, containers: &[(&str, SeenState)]) -> &mut Story {
        let pod = self.pod.uid;
        let seen = containers.iter().map(|(text, state)| SeenContainer {
            pod,
            container: id(text),
            state: state.clone(),
        });
        let containers = seen.collect();
        self.fact(Fact::RuntimeObserved { op: self.observation, complete, sandboxes: Vec::new(), containers })
    }

    pub fn observe_mounts(&mut self) -> &mut Story {
        self.command(Rule::ObservationNeeded, "observe", Action::ObserveMounts);
        self.observation = self.op("observe");
        self
    }

    pub fn mounts(&mut self, volumes: &[&str]) -> &mut Story {
        let pod = self.pod.uid;
        let mounts = volumes.iter().map(|text| SeenMount { pod, volume: volume_id(text) }).collect();
        self.fact(Fact::MountsObserved { op: self.observation, mounts })
    }

    // --- status ----------------------------------------------------------------------------------------------------------

    pub fn publish(&mut self, status: PodStatus) -> &mut Story {
        self.command(
            Rule::StatusChanged,
            "status",
            Action::PublishStatus { status: Arc::new(status), mirror: None },
        )
    }

    pub fn written(&mut self) -> &mut Story {
        let (op, pod) = (self.op("status"), self.pod.uid);
        self.fact(Fact::StatusWritten { op, pod })
    }

    pub fn release(&mut self) -> &mut Story {
        self.command(Rule::PodReleased, "release", Action::ReleasePod)
    }

    // --- verdicts --------------------------------------------------------------------------------------------------------

    pub fn judge(&self) -> Vec<Violation> {
        let mut oracles = Oracles::new(&self.config);
        for entry in &self.trace {
            oracles.observe(entry);
        }
        oracles.finish();
        oracles.take_violations()
    }

    /// Nobody complains.
    pub fn is_clean(&mut self) {
        let found = self.judge();
        assert!(found.is_empty(), "{}", list(&found));
    }

    /// Exactly this invariant is broken, once, and these records prove it.
    pub fn breaks(&mut self, invariant: Invariant, evidence: &[usize]) {
        let found = self.judge();
        let told: Vec<_> = found.iter().map(|v| (v.invariant, v.evidence.as_slice())).collect();
        assert_eq!(told, [(invariant, evidence)], "{}", list(&found));
    }
}

fn list(found: &[Violation]) -> String {
    found.iter().map(|v| format!("\n  {v}")).collect()
}

pub fn status(phase: PodPhase) -> PodStatus {
    PodStatus {
        observed_generation: 1,
        phase,
        reason: "".into(),
        message: "".into(),
        start_time: None,
        pod_ip: None,
        qos: QosClass::BestEffort,
        conditions: Vec::new(),
        init_containers: Vec::new(),
        containers: Vec::new(),
        ephemeral_containers: Vec::new(),
        volumes: Vec::new(),
        allocated_resources: ResourceList::default(),
        resources: Resources::default(),
    }
}

/// The row of an instance in a state.
pub fn row(text: &str, state: ContainerState) -> ContainerStatus {
    let id = id(text);
    let mounts = match state {
        ContainerState::Running { .. } => vec![mount("data")],
        ContainerState::Waiting { .. } | ContainerState::Terminated(_) => Vec::new(),
    };
    ContainerStatus {
        name: id.name.clone(),
        restart_count: id.attempt,
        id: Some(id),
        state,
        last_state: None,
        ready: false,
        started: false,
        image: "image:1".into(),
        image_id: "".into(),
        allocated_resources: ResourceList::default(),
        resources: Resources::default(),
        mounts: mounts.into(),
    }
}

pub fn running() -> ContainerState {
    ContainerState::Running { started_at: Time(0) }
}

pub fn waiting() -> ContainerState {
    ContainerState::Waiting { reason: "CrashLoopBackOff".into(), message: "".into() }
}

pub fn terminated(text: &str, exit_code: i32) -> Terminated {
    Terminated {
        id: Some(id(text)),
        exit_code,
        signal: 0,
        reason: "Error".into(),
        message: "".into(),
        started_at: None,
        finished_at: None,
    }
}

pub fn with_rows(phase: PodPhase, rows: Vec<ContainerStatus>) -> PodStatus {
    PodStatus { containers: rows, ..status(phase) }
}

pub fn with_volume(phase: HostPhase) -> PodStatus {
    let volumes = vec![VolumeStatus { name: "data".into(), phase, error_message: "".into() }];
    PodStatus { volumes, ..status(PodPhase::Pending) }
}

pub fn ready(kind: ConditionKind) -> Condition {
    Condition {
        kind,
        status: true,
        reason: "".into(),
        message: "".into(),
        last_transition: Time(0),
        observed_generation: 1,
    }
}
