//! The conformance tests' bench: a node, and the host that answers its commands when a case lets it. A case brings the node
//! into the state it speaks of with facts, and reads what the node then asks for.

pub use crate::host::{Host, MIRRORS, exit};
use nodefold_core::command::Action;
use nodefold_core::config::{FeatureGates, NodeFacts};
use nodefold_core::event::{ErrorClass, OpError, ProbeKind};
use nodefold_core::ids::{ContainerId, Name, OpId, PodUid, Source};
use nodefold_core::resources::{QosClass, ResourceList, ResourceName, Resources};
use nodefold_core::spec::{Container, Deletion, Pod, PodSpec, RestartPolicy};
use nodefold_core::state::PodState;
use nodefold_core::status::{Condition, ConditionKind, ContainerStatus, PodStatus};
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Command, Commands, Config, Event, Fact, Node};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// One numbered case of `kubelet-pods` §5, or one of several situations that it names.
pub struct Case {
    /// Its number there.
    pub number: u32,
    /// What is given.
    pub given: &'static str,
    /// Brings it about and asserts.
    pub run: fn(),
}

/// Runs every case and fails with all that failed, so that one wrong rule doesn't hide another.
pub fn run_all<'a>(cases: impl Iterator<Item = (u32, String, Box<dyn Fn() + 'a>)>) {
    let mut failed = Vec::new();
    for (number, given, run) in cases {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("panicked");
            failed.push(format!("case {number} ({given}): {said}"));
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}

/// `run_all` for cases that are functions.
pub fn run_cases(cases: &[Case]) {
    run_all(cases.iter().map(|c| (c.number, c.given.to_string(), Box::new(c.run) as Box<dyn Fn()>)));
}

pub const MI: u64 = 1 << 20;
pub const GI: u64 = 1 << 30;
pub const UID: PodUid = PodUid(1);
pub fn name(text: &str) -> Name {
    text.into()
}

/// Cpu in millicores and memory in bytes; zero means: not given.
pub fn amounts(cpu: u64, memory: u64) -> ResourceList {
    let pairs = [(ResourceName::Cpu, cpu), (ResourceName::Memory, memory)];
    ResourceList::from_pairs(pairs.into_iter().filter(|(_, amount)| *amount > 0))
}

pub fn container(called: &str) -> Container {
    Container { image: name("image"), ..Container::unknown(name(called)) }
}

pub fn sidecar(called: &str) -> Container {
    Container { restart_policy: Some(RestartPolicy::Always), ..container(called) }
}

pub fn spec(policy: RestartPolicy, init: Vec<Container>, main: Vec<Container>) -> PodSpec {
    let orphan = Pod::orphan(UID);
    PodSpec {
        restart_policy: policy,
        init_containers: init.into_iter().map(Arc::new).collect(),
        containers: main.into_iter().map(Arc::new).collect(),
        qos: QosClass::Burstable,
        termination_grace: Nanos::secs(30),
        ..(*orphan.spec).clone()
    }
}

pub fn pod(uid: PodUid, spec: PodSpec) -> Pod {
    Pod {
        namespace: name("ns"),
        name: format!("pod-{}", uid.0).into(),
        generation: 1,
        created_at: Time(uid.0 as u64),
        spec: Arc::new(spec),
        ..Pod::orphan(uid)
    }
}

pub fn mains(policy: RestartPolicy, n: usize) -> Pod {
    pod(UID, spec(policy, vec![], (0..n).map(|i| container(&format!("c{i}"))).collect()))
}

/// The same pod with another spec and the next generation.
pub fn edited(before: &Pod, edit: impl FnOnce(&mut PodSpec)) -> Pod {
    let mut spec = (*before.spec).clone();
    edit(&mut spec);
    Pod { generation: before.generation + 1, spec: Arc::new(spec), ..before.clone() }
}

/// Changes the container of that name.
pub fn change(spec: &mut PodSpec, called: &str, edit: impl FnOnce(&mut Container)) {
    let all = spec.init_containers.iter_mut().chain(&mut spec.containers);
    let found = all.into_iter().find(|c| &*c.name == called);
    edit(Arc::make_mut(found.expect("a container of that name")));
}

pub fn deleted(before: &Pod, at: Time, grace_seconds: u64) -> Pod {
    let deletion = Some(Deletion { requested_at: at, grace: Nanos::secs(grace_seconds) });
    Pod { generation: before.generation + 1, deletion, ..before.clone() }
}

pub fn id(called: &str, attempt: u32) -> ContainerId {
    ContainerId { name: name(called), incarnation: 0, attempt }
}

pub fn error(message: &str) -> OpError {
    OpError { class: ErrorClass::Final, reason: None, message: name(message) }
}

pub fn config() -> Config {
    let gates = FeatureGates { dynamic_containers: true, dynamic_volumes: true };
    Config { node: NodeFacts { gates, ..NodeFacts::default() }, ..Config::default() }
}

type Hold = Box<dyn Fn(&Action) -> bool>;

/// See the file's head.
pub struct Bench {
    pub node: Node,
    pub now: Time,
    /// Every command so far.
    pub log: Vec<Command>,
    /// What answers, and the truth that observations tell.
    pub host: Host,
    inbox: VecDeque<Command>,
    held: Vec<Command>,
    holds: Vec<Hold>,
    applied: BTreeMap<PodUid, Pod>,
}

/// `hold` a pull or start of one container.
pub fn of(verb: &'static str, called: &str) -> impl Fn(&Action) -> bool + 'static {
    let called = called.to_string();
    move |action| action.verb() == verb && action.container().is_some_and(|c| *c.name == *called)
}

pub fn verb(verb: &'static str) -> impl Fn(&Action) -> bool + 'static {
    move |action| action.verb() == verb
}

impl Bench {
    /// A node that has started, and has looked at nothing yet.
    pub fn started(config: Config) -> Bench {
        let mut bench = Bench {
            node: Node::new(config),
            now: Time(1_800_000_000_000_000_000),
            log: Vec::new(),
            host: Host::default(),
            inbox: VecDeque::new(),
            held: Vec::new(),
            holds: Vec::new(),
            applied: BTreeMap::new(),
        };
        bench.apply(Fact::AgentStarted { boot_id: 7 });
        bench
    }

    /// A node on an empty host that knows all it needs.
    pub fn booted(config: Config) -> Bench {
        let mut bench = Bench::started(config);
        bench.run();
        bench.sources_ready();
        bench
    }

    /// A booted node on which the pod was applied and all was answered.
    pub fn with(pod: &Pod) -> Bench {
        let mut bench = Bench::booted(config());
        bench.pod(pod);
        bench.run();
        bench
    }

    pub fn sources_ready(&mut self) {
        self.apply(Fact::SourceReady { source: Source::Api });
        self.apply(Fact::SourceReady { source: Source::File });
    }

    /// One fact, a millisecond after the one before.
    pub fn apply(&mut self, fact: Fact) {
        self.now = self.now.after(Nanos::millis(1));
        let mut out = Commands::default();
        self.node.apply(&Event { at: self.now, fact }, &mut out);
        self.inbox.extend(out.commands.iter().cloned());
        self.log.extend(out.commands);
    }

    pub fn pod(&mut self, pod: &Pod) {
        self.applied.insert(pod.uid, pod.clone());
        self.apply(Fact::PodApplied(Arc::new(pod.clone())));
    }

    pub fn remove_pod(&mut self, uid: PodUid) {
        self.applied.remove(&uid);
        self.apply(Fact::PodRemoved { pod: uid });
    }

    /// Leaves such commands unanswered.
    pub fn hold(&mut self, which: impl Fn(&Action) -> bool + 'static) {
        self.holds.push(Box::new(which));
    }

    /// Answers held commands like any other from now on.
    pub fn let_go(&mut self) {
        self.holds.clear();
        self.inbox.extend(std::mem::take(&mut self.held));
    }

    /// The operation of a command that is not answered yet.
    pub fn open(&mut self, which: impl Fn(&Action) -> bool) -> OpId {
        let all = self.held.iter().chain(&self.inbox);
        all.rev().find(|c| which(&c.action)).map(|c| c.op).expect("such a command is open")
    }

    /// Takes a command that is not answered yet out of the world's hands.
    pub fn take(&mut self, which: impl Fn(&Action) -> bool) -> Command {
        let op = self.open(which);
        let all = self.held.iter().chain(&self.inbox);
        let command = all.into_iter().find(|c| c.op == op).cloned().expect("just found");
        self.held.retain(|c| c.op != op);
        self.inbox.retain(|c| c.op != op);
        command
    }

    /// Answers all commands and fires what is due, until nothing is left to do now.
    pub fn run(&mut self) {
        for _ in 0..10_000 {
            if let Some(command) = self.inbox.pop_front() {
                if self.holds.iter().any(|hold| hold(&command.action)) {
                    self.held.push(command);
                } else {
                    self.answer(command);
                }
            } else if self.node.next_deadline().is_some_and(|at| at <= self.now) {
                self.apply(Fact::Tick);
            } else {
                return;
            }
        }
        panic!("the node never comes to rest");
    }

    /// Lets time pass from deadline to deadline, answering all commands.
    pub fn pass(&mut self, length: Nanos) {
        let end = self.now.after(length);
        self.run();
        while let Some(at) = self.node.next_deadline().filter(|at| *at <= end) {
            self.now = at.max(self.now);
            self.apply(Fact::Tick);
            self.run();
        }
        self.now = end.max(self.now);
        self.apply(Fact::Tick);
        self.run();
    }

    /// The agent dies and starts again: whatever was open is never answered.
    pub fn restart_agent(&mut self) {
        self.inbox.clear();
        self.held.clear();
        self.apply(Fact::AgentStarted { boot_id: 7 });
        for pod in self.applied.clone().values() {
            self.pod(pod);
        }
    }

    pub fn exits(&mut self, uid: PodUid, called: &str, code: i32) {
        let id = self.instance(uid, called);
        let ended = self.host.end(uid, id, exit(code, self.now));
        self.apply(ended);
    }

    pub fn probe(&mut self, uid: PodUid, called: &str, probe: ProbeKind, passed: bool) {
        let container = self.instance(uid, called);
        self.apply(Fact::ProbeResult { pod: uid, container, probe, passed, message: name("probe") });
    }

    pub fn instance(&self, uid: PodUid, called: &str) -> ContainerId {
        let found = self.node.instances(uid).into_iter().find(|(id, _)| &*id.name == called);
        found.map(|(id, _)| id).expect("an instance of that name")
    }

    fn answer(&mut self, command: Command) {
        if matches!(command.action, Action::ReleasePod) {
            self.applied.remove(&command.pod);
        }
        for fact in self.host.carry_out(&command, self.now) {
            self.apply(fact);
        }
    }

    // --- questions -----------------------------------------------------------------------------------------------

    /// Where the log stands: what is asked `since` it is what came after.
    pub fn mark(&self) -> usize {
        self.log.len()
    }

    /// `verb container` of commands about containers and sandboxes since a mark, as they came.
    pub fn deeds(&self, since: usize) -> Vec<String> {
        let shown =
            ["sandbox", "stop-sandbox", "pull", "create", "start", "stop", "kill", "resize", "resize-pod"];
        self.log[since..]
            .iter()
            .filter(|c| shown.contains(&c.action.verb()))
            .map(|c| match c.action.container() {
                Some(container) => format!("{} {}", c.action.verb(), container.name),
                None => c.action.verb().to_string(),
            })
            .collect()
    }

    /// Names of containers that a verb was asked for since a mark, sorted.
    pub fn asked(&self, since: usize, verbs: &[&str]) -> BTreeSet<String> {
        self.log[since..]
            .iter()
            .filter(|c| verbs.contains(&c.action.verb()))
            .filter_map(|c| c.action.container().map(|id| id.name.to_string()))
            .collect()
    }

    /// How many Kubernetes Events of that reason were recorded since a mark.
    pub fn told(&self, since: usize, reason: &str) -> usize {
        let is = |c: &&Command| matches!(&c.action, Action::RecordEvent(e) if &*e.reason == reason);
        self.log[since..].iter().filter(is).count()
    }

    pub fn count(&self, since: usize, verb: &str) -> usize {
        self.log[since..].iter().filter(|c| c.action.verb() == verb).count()
    }

    pub fn state(&self, uid: PodUid) -> &PodState {
        self.node.pod(uid).expect("the node knows the pod")
    }

    pub fn status(&self, uid: PodUid) -> PodStatus {
        self.node.status(uid).expect("the pod has a status")
    }

    pub fn phase(&self, uid: PodUid) -> &'static str {
        self.status(uid).phase.as_str()
    }

    pub fn condition(&self, uid: PodUid, kind: ConditionKind) -> Option<Condition> {
        self.status(uid).conditions.into_iter().find(|c| c.kind == kind)
    }

    pub fn row(&self, uid: PodUid, called: &str) -> ContainerStatus {
        let status = self.status(uid);
        let all =
            status.init_containers.into_iter().chain(status.containers).chain(status.ephemeral_containers);
        all.into_iter().find(|c| &*c.name == called).expect("a status of that name")
    }

    /// The allocated resources of a container.
    pub fn allocated(&self, uid: PodUid, called: &str) -> Resources {
        let spec = self.node.allocated(uid).expect("an allocation").spec;
        let all = spec.containers.iter().chain(&spec.init_containers);
        all.into_iter().find(|c| &*c.name == called).expect("a container of that name").resources.clone()
    }
}
