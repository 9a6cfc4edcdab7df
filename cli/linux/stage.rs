//! A real host as a scenario's stage: the harness' API server in this process, the node's own fold, and the Linux backend
//! under it. Time is the host's; what a step asks for happens to real processes and mounts.

use nodefold_agent::backend::Linux;
use nodefold_agent::credentials::LocalKey;
use nodefold_agent::doctor::Allowed;
use nodefold_agent::driver::{Driver, Folded, Log, boot_id};
use nodefold_agent::housekeeping::Habits;
use nodefold_agent::images::Images;
use nodefold_agent::layout::Layout;
use nodefold_agent::objects::Objects;
use nodefold_agent::process::Process;
use nodefold_agent::runtime::Parts;
use nodefold_agent::volumes::Volumes;
use nodefold_agent::{beneath, cleanup, clock, usage};
use nodefold_api::{ApiEvent, Request, Response};
use nodefold_core::command::{Action, Command};
use nodefold_core::config::NodeFacts;
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::{ContainerId, Name, ObjectRef, PodUid, Source, VolumeId};
use nodefold_core::spec::Pod;
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Backend, Config, Digest, Node};
use nodefold_harness::brain::production;
use nodefold_harness::log::FactLog;
use nodefold_harness::scenario::{NodeChange, PodRef, Used};
use nodefold_harness::world::{AGENT_RESTART, Ending, Server, WorldError, requested};
use nodefold_harness::{Brain, Record, Scenario, Stage, World};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How often a story's node measures: a story has few pods, and nobody wants to wait.
const LOOK_EVERY: Nanos = Nanos::secs(1);

/// A program that was let go is waited for until it waits itself, so that what a story does next finds its signal handlers in
/// place. (A simulated program gets that far at once.) One that never waits is waited for until it has worked for so long, which takes
/// longer where others work beside it; and in no case longer than that.
const WORKS_FOR: Nanos = Nanos::secs(1);
const COMES_TO_REST: Nanos = Nanos::secs(20);
/// Whether it waits by now is looked at this often.
const LOOK_FOR_REST: Nanos = Nanos::millis(2);

/// Whether a signal asked for the end is looked at this often.
const LOOK_FOR_THE_END: Nanos = Nanos::millis(200);

/// A run's log as the driver wants one.
struct RunLog(Box<dyn FactLog>);

impl Log for RunLog {
    fn keep(&mut self, events: &[Event], before: &mut Node) -> Result<(), String> {
        // A batch's end tells the digest before it, so that each fact of a run is one of its own.
        let [event] = events else { return Err("a run keeps one fact at a time".into()) };
        self.0.fact(event, before).map_err(|error| error.to_string())
    }

    fn commands_given(&mut self, commands: &[Command]) {
        self.0.commands_given(commands);
    }
}

/// Where a Linux run finds what it needs.
pub struct Ground {
    /// The node's directory.
    pub layout: Layout,
    /// Directories that stand for images.
    pub images: BTreeMap<String, PathBuf>,
    /// Set by who wants the story to end.
    pub interrupted: Arc<AtomicBool>,
    /// That this process may be a node.
    pub allowed: Allowed,
}

/// The stage.
pub struct LinuxStage {
    ground: Ground,
    config: Config,
    server: Server,
    objects: Objects,
    /// None between a crash and the next start.
    alive: Option<Alive>,
    /// What the next start recovers from.
    resting: Option<(Node, RunLog, u64)>,
    down: Option<Down>,
    /// Facts that are there already: deliveries and answers of the API.
    inbox: VecDeque<Fact>,
    listing: Vec<Source>,
    /// Conditions of readiness gates that the agent is to hear of.
    gates: Vec<(PodUid, String)>,
    facts: NodeFacts,
    /// What the node knows of them.
    facts_told: NodeFacts,
    newest: BTreeMap<(PodUid, Name), ContainerId>,
    /// Programs that were let go and have not been seen to wait yet, and when they began.
    beginning: BTreeMap<(PodUid, ContainerId), Time>,
    /// Containers whose process was made to end, of which the agent has not heard.
    ending: BTreeSet<(PodUid, ContainerId)>,
    records: Vec<Record>,
}

struct Alive {
    driver: Driver<RunLog>,
    backend: Linux,
}

/// An agent that died: what goes on without it.
struct Down {
    back_at: Time,
    processes: BTreeMap<(PodUid, Name), Process>,
    volumes: Arc<Volumes>,
}

fn host(error: impl std::fmt::Display) -> WorldError {
    WorldError::Host(error.to_string())
}

impl LinuxStage {
    /// A stage on which the agent is up.
    pub fn open(
        scenario: &Scenario,
        config: Config,
        ground: Ground,
        log: Box<dyn FactLog>,
    ) -> Result<LinuxStage, WorldError> {
        let server = Server::new(config.node_name.clone(), config.node.gates);
        let facts = scenario.node.facts.clone();
        let node = Node::new(config.clone());
        let mut stage = LinuxStage {
            ground,
            config,
            server,
            objects: Objects::default(),
            alive: None,
            resting: Some((node, RunLog(log), 0)),
            down: None,
            inbox: VecDeque::new(),
            listing: Vec::new(),
            gates: Vec::new(),
            facts_told: facts.clone(),
            facts,
            newest: BTreeMap::new(),
            beginning: BTreeMap::new(),
            ending: BTreeSet::new(),
            records: Vec::new(),
        };
        stage.start_agent()?;
        Ok(stage)
    }

    fn start_agent(&mut self) -> Result<(), WorldError> {
        let Some((node, log, folded)) = self.resting.take() else { return Ok(()) };
        let parts = Parts {
            layout: self.ground.layout.clone(),
            node_name: self.config.node_name.clone(),
            allocatable: self.facts.allocatable.clone(),
            images: Arc::new(Images::new(&self.ground.layout, self.ground.images.clone())),
            habits: Habits { interval: LOOK_EVERY, ..Habits::default() },
            issuer: Arc::new(LocalKey::at(self.ground.layout.data())),
            objects: self.objects.clone(),
            shim_program: std::env::current_exe().map_err(host)?,
            allowed: self.ground.allowed.clone(),
        };
        let backend = Linux::open(parts, self.objects.clone()).map_err(host)?;
        self.alive = Some(Alive { driver: Driver::new(node, log, folded), backend });
        self.inbox.push_back(Fact::AgentStarted { boot_id: boot_id(&self.ground.layout).map_err(host)? });
        self.tell_node_facts();
        for source in [Source::File, Source::Api] {
            self.server.list(clock::now(), source)?;
            self.listing.push(source);
        }
        self.gates = self.server.list_gates();
        Ok(())
    }

    /// Also of what changed while the agent was down.
    fn tell_node_facts(&mut self) {
        if self.alive.is_some() && self.facts != self.facts_told {
            self.facts_told = self.facts.clone();
            self.inbox.push_back(Fact::NodeChanged(self.facts.clone()));
        }
    }

    /// Waits for an agent that died, as a service manager does. False: it is not back by the moment.
    fn wait_for_agent(&mut self, latest: Time) -> Result<bool, WorldError> {
        let Some(down) = &self.down else { return Ok(false) };
        let now = clock::now();
        if now < down.back_at {
            let until = down.back_at.min(latest).min(now.after(LOOK_FOR_THE_END));
            clock::pause(until.since(now));
            return Ok(clock::now() < latest);
        }
        self.down = None;
        self.start_agent()?;
        Ok(true)
    }

    /// Everything that a watch has for the agent, as facts.
    fn take_deliveries(&mut self) {
        if self.alive.is_none() {
            return;
        }
        let waiting: Vec<(Source, PodUid)> =
            self.server.on_the_way().map(|(source, pod, ..)| (source, pod)).collect();
        for (source, pod) in waiting {
            if let Some((fact, new)) = self.server.deliver(source, pod, false) {
                self.inbox.push_back(fact);
                self.inbox.extend(new.iter().map(|object| self.server.object_fact(object)));
            }
        }
        // A pod's condition is news only where the pod is known.
        for (pod, condition) in std::mem::take(&mut self.gates) {
            if self.server.is_on_the_way(pod) {
                self.gates.push((pod, condition));
                continue;
            }
            let condition = Name::from(condition.as_str());
            if let Some(met) = self.server.tell_gate(pod, &condition) {
                self.inbox.push_back(Fact::ReadinessGate { pod, condition, met });
            }
        }
        let server = &self.server;
        let (listing, listed) = self.listing.iter().partition(|source| server.is_listing(**source));
        self.listing = listing;
        let listed: Vec<Source> = listed;
        self.inbox.extend(listed.into_iter().map(|source| Fact::SourceReady { source }));
    }

    /// Lets the next thing happen; waits for it no longer than to the moment. False: nothing did.
    fn step(&mut self, latest: Time) -> Result<bool, WorldError> {
        if self.ground.interrupted.load(Ordering::Relaxed) {
            return Err(host("interrupted"));
        }
        if self.alive.is_none() {
            return self.wait_for_agent(latest);
        }
        self.take_deliveries();
        if let Some(fact) = self.inbox.pop_front() {
            self.tell(fact)?;
            return Ok(true);
        }
        let now = clock::now();
        let Some(alive) = &mut self.alive else { return Ok(false) };
        let deadline = alive.driver.next_deadline();
        if deadline.is_some_and(|at| at <= now.max(alive.driver.node().now())) {
            self.tell(Fact::Tick)?;
            return Ok(true);
        }
        let until = deadline.map_or(latest, |at| at.min(latest)).min(now.after(LOOK_FOR_THE_END));
        match alive.backend.receive(until.since(now)) {
            Some(fact) => {
                self.tell(fact)?;
                Ok(true)
            }
            None => Ok(clock::now() < latest),
        }
    }

    fn tell(&mut self, fact: Fact) -> Result<(), WorldError> {
        if let Fact::ContainerCreated { pod, container, .. } = &fact {
            self.newest.insert((*pod, container.name.clone()), container.clone());
        }
        if let Fact::ContainerStarted { pod, container, .. } = &fact {
            self.beginning.insert((*pod, container.clone()), clock::now());
        }
        if let Fact::ContainerExited { pod, container, .. } = &fact {
            self.beginning.remove(&(*pod, container.clone()));
            self.ending.remove(&(*pod, container.clone()));
        }
        let Some(alive) = &mut self.alive else { return Ok(()) };
        let folded = alive.driver.tell(vec![fact]).map_err(host)?;
        for Folded { seq, event, touched: _, transitions, commands } in folded {
            let at = event.at;
            self.records.push(Record::Fact { seq, event });
            let told = transitions.into_iter().map(|transition| Record::Transition { at, transition });
            self.records.extend(told);
            self.records
                .extend(commands.iter().map(|command| Record::Command { at, command: command.clone() }));
            for command in commands {
                self.execute(command)?;
            }
        }
        Ok(())
    }

    fn execute(&mut self, mut command: Command) -> Result<(), WorldError> {
        // What containers said about their ends is in their status, and in no fact.
        if let (Action::PublishStatus { status, .. }, Some(alive)) = (&mut command.action, &self.alive) {
            alive.backend.runtime().tell_last_words(command.pod, Arc::make_mut(status));
        }
        let user = format!("system:node:{}", self.config.node_name);
        if let Some(asked) = self.server.asked_by(&command) {
            let written = match asked {
                Ok((what, request)) => {
                    let response = self.request(&user, what, request)?;
                    self.server.answer_to(&command, &response)
                }
                Err(error) => Err(error),
            };
            let heard = written.unwrap_or_else(|error| command.failed(error));
            self.inbox.extend(heard);
            return Ok(());
        }
        if let Some(alive) = &mut self.alive {
            alive.backend.submit(&command);
        }
        Ok(())
    }

    /// Forgets the programs that have come to rest, and those that take their time.
    fn look_for_rest(&mut self) {
        let Some(alive) = &self.alive else { return };
        let (runtime, now) = (alive.backend.runtime(), clock::now());
        self.beginning.retain(|(pod, container), began| {
            began.after(COMES_TO_REST) > now
                && runtime.works(*pod, container).is_some_and(|time| time < WORKS_FOR)
        });
    }

    /// The bytes of an object that a request may have changed, for whoever writes them into volumes.
    fn refresh_object(&self, object: &ObjectRef) {
        match self.server.referenced(object) {
            Some(value) => self.objects.put(object.clone(), Arc::new(value.clone())),
            None => self.objects.forget(object),
        }
    }

    fn name_pods(&mut self) {
        for pod in self.server.take_newly_named() {
            if let Some(name) = self.server.name(pod) {
                let (namespace, name) = (name.namespace.clone(), name.name.clone());
                self.records.push(Record::PodNamed { pod, namespace, name });
            }
        }
    }

    /// Takes everything down that the story left, and says what could not be.
    pub fn clear(mut self) -> Result<Vec<String>, WorldError> {
        if let Some(alive) = self.alive.take() {
            alive.backend.abandon();
        }
        cleanup::clean_up(&self.ground.layout, false).map_err(host)?;
        cleanup::left_behind(&self.ground.layout).map_err(host)
    }
}

/// The object that a request is about, if volumes can refer to it.
fn object_of(request: &Request) -> Option<ObjectRef> {
    match request {
        Request::Create { object, .. } | Request::Update { object } => nodefold_k8s::object_ref(object),
        Request::Delete { kind, namespace, name, .. } => nodefold_k8s::object_ref(&serde_json::json!({
            "kind": &**kind, "metadata": {"namespace": &**namespace, "name": &**name},
        })),
        Request::Dynamic { .. }
        | Request::Resize { .. }
        | Request::Ephemeral { .. }
        | Request::Status { .. }
        | Request::PatchStatus { .. }
        | Request::Release { .. }
        | Request::NodeGates(_) => None,
    }
}

impl Stage for LinuxStage {
    fn now(&self) -> Time {
        clock::now()
    }

    fn node_now(&self) -> Time {
        clock::now()
    }

    fn server(&self) -> &Server {
        &self.server
    }

    fn server_mut(&mut self) -> &mut Server {
        &mut self.server
    }

    fn node(&self) -> Option<&Node> {
        match (&self.alive, &self.resting) {
            (Some(alive), _) => Some(alive.driver.node()),
            (None, Some((node, ..))) => Some(node),
            (None, None) => None,
        }
    }

    fn digest(&mut self) -> Digest {
        match (&mut self.alive, &mut self.resting) {
            (Some(alive), _) => alive.driver.node_mut().digest(),
            (None, Some((node, ..))) => node.digest(),
            (None, None) => Digest(0),
        }
    }

    fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    fn pass_until(&mut self, moment: Time) -> Result<(), WorldError> {
        while clock::now() < moment {
            self.step(moment)?;
        }
        Ok(())
    }

    fn pass_one(&mut self, latest: Time) -> Result<bool, WorldError> {
        if self.alive.is_some() && !self.beginning.is_empty() {
            // No fact tells that a program has come to rest.
            self.step(clock::now().after(LOOK_FOR_REST))?;
            self.look_for_rest();
            return Ok(true);
        }
        self.step(latest)
    }

    fn unsettled(&self, within: Nanos) -> Vec<String> {
        let Some(alive) = &self.alive else { return vec!["the agent is down".into()] };
        let mut waiting = Vec::new();
        let told = self.inbox.len() + self.listing.len() + self.gates.len();
        let on_the_way = self.server.on_the_way().count() + told;
        if on_the_way > 0 {
            waiting.push(format!("{on_the_way} facts on their way"));
        }
        if alive.backend.in_flight() > 0 {
            waiting.push(format!("{} operations in flight", alive.backend.in_flight()));
        }
        if !self.ending.is_empty() {
            waiting.push(format!("{} processes that end", self.ending.len()));
        }
        if !self.beginning.is_empty() {
            waiting.push(format!("{} programs that have just begun", self.beginning.len()));
        }
        if let Some((due, why)) = Brain::work_due(alive.driver.node())
            && due <= clock::now().after(within)
        {
            waiting.push(format!("the node's {why} (due in {})", due.since(clock::now())));
        }
        waiting
    }

    fn request(&mut self, user: &str, what: String, request: Request) -> Result<Response, WorldError> {
        let object = object_of(&request);
        let event = ApiEvent::new(clock::now(), request, user);
        match (&mut self.alive, &mut self.resting) {
            (Some(alive), _) => alive.driver.log_mut().0.request(&event)?,
            (None, Some((_, log, _))) => log.0.request(&event)?,
            (None, None) => {}
        }
        let (response, stirred) = self.server.request(&event, self.alive.is_some());
        if let Some(object) = object {
            self.refresh_object(&object);
        }
        self.name_pods();
        self.inbox.extend(stirred.objects.iter().map(|object| self.server.object_fact(object)));
        self.gates.extend(stirred.gates);
        self.records.push(requested(event.at, user, what, &response));
        match stirred.undeliverable {
            Some(undeliverable) => Err(undeliverable.into()),
            None => Ok(response),
        }
    }

    fn write_file(&mut self, pod: Pod) -> Result<(), WorldError> {
        self.server.write_file(clock::now(), pod, self.alive.is_some());
        self.name_pods();
        Ok(())
    }

    fn remove_file(&mut self, name: &PodRef) -> Result<bool, WorldError> {
        Ok(self.server.remove_file(clock::now(), name, self.alive.is_some()))
    }

    fn end_process(&mut self, name: &PodRef, container: &str, ending: Ending) -> Result<bool, WorldError> {
        let Some(pod) = self.server.uid(name) else { return Ok(false) };
        let running = match (&self.alive, &mut self.down) {
            (Some(alive), _) => alive.backend.runtime().running(pod, container),
            (None, Some(down)) => down.processes.remove(&(pod, Name::from(container))),
            (None, None) => None,
        };
        let Some(process) = running else { return Ok(false) };
        process.end(ending_of(ending)).map_err(host)?;
        if let Some(id) = self.newest.get(&(pod, Name::from(container))).filter(|_| self.alive.is_some()) {
            self.ending.insert((pod, id.clone()));
        }
        Ok(true)
    }

    fn takes_up(&mut self, name: &PodRef, used: &Used, bytes: u64) -> Result<bool, WorldError> {
        let Some(alive) = &self.alive else {
            return Err(host(
                "on a real host files are written through the agent, which is down: `settle` first",
            ));
        };
        let Some(pod) = self.server.uid(name) else { return Ok(false) };
        let dir = match used {
            Used::Volume(volume) => {
                let id = VolumeId { name: volume.as_str().into(), generation: 0 };
                alive.backend.volumes().empty_dir(pod, &id).map_err(host)?
            }
            Used::Container(container) => {
                let id = self.newest.get(&(pod, Name::from(container.as_str())));
                let layer = id.and_then(|id| alive.backend.runtime().writable_layer(pod, id));
                layer.map(|layer| beneath::open_root(&layer)).transpose().map_err(host)?
            }
        };
        let Some(dir) = dir else { return Ok(false) };
        usage::fill(&dir, bytes).map_err(host)?;
        Ok(true)
    }

    fn crash_agent(&mut self) -> Result<(), WorldError> {
        let Some(alive) = self.alive.take() else { return Ok(()) };
        self.records.push(Record::Crashed { at: clock::now(), host: false });
        let Alive { driver, backend } = alive;
        let runtime = backend.runtime();
        let names = runtime.containers().into_iter().map(|(pod, id, _)| (pod, id.name));
        let processes = names
            .filter_map(|(pod, name)| Some(((pod, name.clone()), runtime.running(pod, &name)?)))
            .collect();
        let back_at = clock::now().after(AGENT_RESTART);
        self.down = Some(Down { back_at, processes, volumes: backend.volumes().clone() });
        backend.abandon();
        self.server.hang_up();
        self.inbox.clear();
        self.listing.clear();
        // Whoever comes back looks for itself.
        self.ending.clear();
        let folded = driver.folded();
        let (mut before, mut log) = driver.into_parts();
        let recovered = log.0.recover(&production(self.config.clone()))?;
        let mut after = recovered.node().cloned().ok_or_else(|| host("the log holds no node"))?;
        if before.digest() != after.digest() {
            let violation = "D1: folding the journal gives another digest than the agent had".to_owned();
            self.records.push(Record::InvariantBroken { at: clock::now(), violation });
        }
        self.resting = Some((after, log, folded));
        Ok(())
    }

    fn change_node(&mut self, change: &NodeChange) -> Result<(), WorldError> {
        let gates = self.facts.gates;
        change.apply(&mut self.facts);
        if self.facts.gates != gates {
            let what = "the node's feature gates changed".to_owned();
            self.request("system:node", what, Request::NodeGates(self.facts.gates))?;
        }
        if let Some(alive) = &self.alive {
            alive.backend.runtime().set_allocatable(self.facts.allocatable.clone());
            alive.backend.volumes().set_allocatable(self.facts.allocatable.clone());
        }
        self.tell_node_facts();
        Ok(())
    }

    fn instances(&self) -> BTreeMap<(PodUid, Name), ContainerId> {
        self.newest.clone()
    }

    fn volumes_on_host(&self, pod: PodUid) -> Vec<Name> {
        let volumes = match (&self.alive, &self.down) {
            (Some(alive), _) => alive.backend.volumes(),
            (None, Some(down)) => &down.volumes,
            (None, None) => return Vec::new(),
        };
        volumes.names(pod).unwrap_or_default()
    }

    fn left_of(&self, pod: PodUid) -> Vec<String> {
        let Some(alive) = &self.alive else { return Vec::new() };
        let runtime = alive.backend.runtime();
        let containers = runtime.containers().into_iter().filter(|(of, _, lives)| *of == pod && *lives);
        let sandboxes = runtime.sandboxes().into_iter().filter(|(of, _)| *of == pod);
        containers
            .map(|(_, id, _)| format!("container {}", id.name))
            .chain(sandboxes.map(|(_, attempt)| format!("sandbox {attempt}")))
            .chain(self.volumes_on_host(pod).into_iter().map(|name| format!("volume {name}")))
            .collect()
    }

    fn close(&mut self) -> Result<(), WorldError> {
        if let Some(Alive { driver, backend }) = self.alive.take() {
            backend.abandon();
            let folded = driver.folded();
            let (mut node, mut log) = driver.into_parts();
            log.0.close(&mut node)?;
            self.resting = Some((node, log, folded));
        } else if let Some((node, log, _)) = &mut self.resting {
            log.0.close(node)?;
        }
        Ok(())
    }

    fn simulation(&mut self) -> Option<&mut World> {
        None
    }
}

fn ending_of(ending: Ending) -> nodefold_agent::process::Ending {
    match ending {
        Ending::Code(code) => nodefold_agent::process::Ending::Code(code),
        Ending::Signal(signal) => nodefold_agent::process::Ending::Signal(signal),
    }
}
