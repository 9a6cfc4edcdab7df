//! A node with a journal on disk behind an API, and what is asked of it: requests in, moments out.

use nodefold_agent::backend::Linux;
use nodefold_agent::cleanup;
use nodefold_agent::clock;
use nodefold_agent::credentials::LocalKey;
use nodefold_agent::doctor;
use nodefold_agent::driver::{Driver, Log, boot_id};
use nodefold_agent::housekeeping::Habits;
use nodefold_agent::images::Images;
use nodefold_agent::layout::Layout;
use nodefold_agent::objects::Objects;
use nodefold_agent::runtime::Parts;
use nodefold_api::{ApiEvent, Body, Request, Response};
use nodefold_core::command::Command;
use nodefold_core::config::FeatureGates;
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::Source;
use nodefold_core::time::Nanos;
use nodefold_core::{Backend, Config, Node as Core};
use nodefold_harness::world::Server;
use nodefold_journal::{Files, Options, Writer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The one image.
pub const IMAGE: &str = "bench.local/payload:1";

/// A journal that tells how long it took to make things durable.
struct Timed {
    writer: Writer,
    commits: u64,
    nanos: u64,
}

impl Log for Timed {
    fn keep(&mut self, events: &[Event], before: &mut Core) -> Result<(), String> {
        let from = clock::monotonic();
        let kept = self.writer.keep(events, before);
        self.commits += 1;
        self.nanos += clock::monotonic().0 - from.0;
        kept
    }

    fn commands_given(&mut self, commands: &[Command]) {
        self.writer.commands_given(commands);
    }
}

/// When something became known, or was asked for, in a story that began at 0.
#[derive(Clone, Debug)]
pub struct Moment {
    pub at: u64,
    pub what: String,
}

pub struct Node {
    server: Server,
    driver: Driver<Timed>,
    backend: Linux,
    objects: Objects,
    layout: Layout,
    inbox: VecDeque<Fact>,
    /// What happened since somebody cleared it.
    pub moments: Vec<Moment>,
}

impl Node {
    pub fn new(layout: Layout, image: &Path) -> Node {
        let config = Config { sources: vec![Source::Api], ..Config::default() };
        let mut core = Core::new(config.clone());
        let writer =
            Writer::create(Files::at(layout.journal()), Options::default(), &config, &mut core).unwrap();
        let objects = Objects::default();
        // Another program than this build's, to compare two side by side.
        let shim_program =
            std::env::var_os("NODEFOLD_PROGRAM").unwrap_or(env!("CARGO_BIN_EXE_nodefold").into());
        let parts = Parts {
            layout: layout.clone(),
            node_name: config.node_name.clone(),
            allocatable: config.node.allocatable.clone(),
            images: Arc::new(Images::new(&layout, BTreeMap::from([(IMAGE.into(), image.to_owned())]))),
            habits: Habits::default(),
            issuer: Arc::new(LocalKey::at(layout.data())),
            objects: objects.clone(),
            shim_program: PathBuf::from(shim_program),
            allowed: doctor::require().unwrap(),
        };
        let backend = Linux::open(parts, objects.clone()).unwrap();
        let server = Server::new(config.node_name.clone(), FeatureGates::default());
        let log = Timed { writer, commits: 0, nanos: 0 };
        let inbox = VecDeque::from([
            Fact::AgentStarted { boot_id: boot_id(&layout).unwrap() },
            Fact::SourceReady { source: Source::Api },
        ]);
        let driver = Driver::new(core, log, 0);
        Node { server, driver, backend, objects, layout, inbox, moments: Vec::new() }
    }

    fn request(&mut self, request: Request) -> Response {
        let event = ApiEvent::new(clock::now(), request, "bench");
        let (response, stirred) = self.server.request(&event, true);
        assert!(matches!(response, Response::Ok { .. }), "{response:?}");
        self.inbox.extend(stirred.objects.iter().map(|object| self.server.object_fact(object)));
        response
    }

    pub fn create(&mut self, mut object: Value) {
        object["metadata"]["namespace"] = json!("default");
        self.server.bind(&mut object);
        let kind = object["kind"].as_str().unwrap().to_owned();
        let uid = self.server.next_uid(&kind, "default", object["metadata"]["name"].as_str().unwrap());
        if let Some(reference) = nodefold_k8s::object_ref(&object) {
            self.objects.put(reference, Arc::new(object.clone()));
        }
        self.request(Request::Create { object, uid });
    }

    pub fn dynamic(&mut self, patch: Value) {
        let body = Body::StrategicMerge(patch);
        self.request(Request::Dynamic { namespace: "default".into(), name: "warm".into(), body });
    }

    /// How often, and for how long in all, something was made durable.
    pub fn commits(&mut self) -> (u64, u64) {
        let log = self.driver.log_mut();
        (log.commits, log.nanos)
    }

    /// Goes on until so many facts fit, and then until nothing is in flight. When the last of them came is told.
    pub fn until(&mut self, mut wanted: usize, fits: impl Fn(&Fact) -> bool) -> u64 {
        let mut seen = 0;
        while wanted > 0 || self.backend.in_flight() > 0 || !self.inbox.is_empty() {
            let waiting: Vec<_> = self.server.on_the_way().map(|(source, pod, ..)| (source, pod)).collect();
            for (source, pod) in waiting {
                let (fact, new) = self.server.deliver(source, pod, true).unwrap();
                self.inbox.push_back(fact);
                self.inbox.extend(new.iter().map(|object| self.server.object_fact(object)));
            }
            let due = self
                .driver
                .next_deadline()
                .is_some_and(|at| at <= clock::now().max(self.driver.node().now()));
            if due {
                self.inbox.push_back(Fact::Tick);
            }
            let mut facts: Vec<Fact> = self.inbox.drain(..).collect();
            if facts.is_empty() {
                facts.extend(self.backend.receive(Nanos::secs(10)));
            }
            while let Some(fact) = self.backend.receive(Nanos::ZERO) {
                facts.push(fact);
            }
            let at = clock::monotonic().0;
            let fitting = facts.iter().filter(|fact| fits(fact)).count();
            if wanted > 0 && fitting >= wanted {
                seen = at;
            }
            wanted = wanted.saturating_sub(fitting);
            self.moments.extend(facts.iter().map(|fact| Moment { at, what: told(fact) }));
            for folded in self.driver.tell(facts).unwrap() {
                for command in folded.commands {
                    let Some(asked) = self.server.asked_by(&command) else {
                        let what = format!("do {}", command.action.verb());
                        self.moments.push(Moment { at: clock::monotonic().0, what });
                        self.backend.submit(&command);
                        continue;
                    };
                    let (_, request) = asked.unwrap();
                    let response = self.request(request);
                    self.inbox.extend(self.server.answer_to(&command, &response).unwrap());
                }
            }
        }
        seen
    }

    /// When the first life of a container read its clock.
    pub fn first_instruction(&self, container: &str) -> u64 {
        loop {
            for pod in fs::read_dir(self.layout.logs().join("pods")).unwrap().flatten() {
                for log in fs::read_dir(pod.path().join(container)).into_iter().flatten().flatten() {
                    let text = fs::read_to_string(log.path()).unwrap();
                    if let Some(number) =
                        text.lines().next().and_then(|line| line.split(' ').nth(3)?.parse().ok())
                    {
                        return number;
                    }
                }
            }
        }
    }

    /// Ends the node and everything on it; nothing may be left.
    pub fn end(self) {
        self.backend.abandon();
        cleanup::clean_up(&self.layout, true).unwrap();
        assert_eq!(cleanup::left_behind(&self.layout).unwrap(), Vec::<String>::new());
    }
}

fn told(fact: &Fact) -> String {
    let text = format!("{fact:?}");
    text.split([' ', '(', '{']).next().unwrap_or("").to_owned()
}

/// A pod in which one container waits, and the configMap that the others mount.
pub fn begin(node: &mut Node) {
    node.create(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"k": "v"}}),
    );
    node.create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "warm"}, "spec": {
        "terminationGracePeriodSeconds": 2,
        "containers": [{"name": "agent", "image": IMAGE, "command": ["/payload"]}],
    }}));
    node.until(1, |fact| matches!(fact, Fact::ContainerStarted { .. }));
}

/// Adds containers, each with a configMap volume and a memory emptyDir of its own.
pub fn add(numbers: impl Iterator<Item = usize> + Clone) -> Value {
    let volumes: Vec<Value> = numbers
        .clone()
        .flat_map(|n| {
            [
                json!({"name": format!("c{n}"), "configMap": {"name": "conf"}}),
                json!({"name": format!("m{n}"), "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}),
            ]
        })
        .collect();
    let containers: Vec<Value> = numbers
        .map(|n| {
            json!({
                "name": format!("tool-{n}"), "image": IMAGE, "command": ["/payload"],
                "volumeMounts": [{"name": format!("c{n}"), "mountPath": "/c"}, {"name": format!("m{n}"), "mountPath": "/m"}],
            })
        })
        .collect();
    json!({"spec": {"volumes": volumes, "containers": containers}})
}

/// Removes them, and their volumes.
pub fn remove(numbers: impl Iterator<Item = usize> + Clone) -> Value {
    let gone = |name: String| json!({"name": name, "$patch": "delete"});
    let volumes: Vec<Value> =
        numbers.clone().flat_map(|n| [gone(format!("c{n}")), gone(format!("m{n}"))]).collect();
    let containers: Vec<Value> = numbers.map(|n| gone(format!("tool-{n}"))).collect();
    json!({"spec": {"volumes": volumes, "containers": containers}})
}
