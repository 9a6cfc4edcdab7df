//! From an accepted `/dynamic` request to the first instruction of the container that it adds, with a configMap volume and a
//! memory emptyDir and every fact durable before it counts; beside it, in the same run, the floor (clone and exec) and
//! `runc run`, and `crun run` where there is one. `cargo bench --bench linux -- [samples]`, as root.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]

use nodefold_agent::backend::Linux;
use nodefold_agent::cleanup;
use nodefold_agent::clock;
use nodefold_agent::credentials::LocalKey;
use nodefold_agent::driver::{Driver, boot_id};
use nodefold_agent::housekeeping::Habits;
use nodefold_agent::images::Images;
use nodefold_agent::layout::Layout;
use nodefold_agent::objects::Objects;
use nodefold_agent::runtime::Parts;
use nodefold_api::{ApiEvent, Body, Request, Response};
use nodefold_core::config::FeatureGates;
use nodefold_core::event::Fact;
use nodefold_core::ids::Source;
use nodefold_core::time::Nanos;
use nodefold_core::{Backend, Config, Node};
use nodefold_harness::world::Server;
use nodefold_journal::{Files, Options, Writer};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

struct Bench {
    server: Server,
    driver: Driver<Writer>,
    backend: Linux,
    objects: Objects,
    layout: Layout,
    inbox: VecDeque<Fact>,
}

impl Bench {
    fn new(layout: Layout, image: &Path) -> Bench {
        let config = Config { sources: vec![Source::Api], ..Config::default() };
        let mut node = Node::new(config.clone());
        let writer =
            Writer::create(Files::at(layout.journal()), Options::default(), &config, &mut node).unwrap();
        let objects = Objects::default();
        let parts = Parts {
            layout: layout.clone(),
            node_name: config.node_name.clone(),
            allocatable: config.node.allocatable.clone(),
            images: Arc::new(Images::new(
                &layout,
                BTreeMap::from([("bench.local/payload".into(), image.to_owned())]),
            )),
            habits: Habits::default(),
            issuer: Arc::new(LocalKey::at(layout.data())),
            objects: objects.clone(),
            shim_program: env!("CARGO_BIN_EXE_nodefold").into(),
        };
        let backend = Linux::open(parts, objects.clone()).unwrap();
        let server = Server::new(config.node_name.clone(), FeatureGates::default());
        let mut bench = Bench {
            server,
            driver: Driver::new(node, writer, 0),
            backend,
            objects,
            layout,
            inbox: VecDeque::new(),
        };
        bench.inbox.push_back(Fact::AgentStarted { boot_id: boot_id().unwrap() });
        bench.inbox.push_back(Fact::SourceReady { source: Source::Api });
        bench
    }

    fn request(&mut self, request: Request) -> Response {
        let event = ApiEvent::new(clock::now(), request, "bench");
        let (response, stirred) = self.server.request(&event, true);
        assert!(matches!(response, Response::Ok { .. }), "{response:?}");
        self.inbox.extend(stirred.objects.iter().map(|object| self.server.object_fact(object)));
        response
    }

    fn create(&mut self, mut object: Value) {
        object["metadata"]["namespace"] = json!("default");
        self.server.bind(&mut object);
        let kind = object["kind"].as_str().unwrap().to_owned();
        let uid = self.server.next_uid(&kind, "default", object["metadata"]["name"].as_str().unwrap());
        if let Some(reference) = nodefold_k8s::object_ref(&object) {
            self.objects.put(reference, Arc::new(object.clone()));
        }
        self.request(Request::Create { object, uid });
    }

    fn dynamic(&mut self, patch: Value) {
        let body = Body::StrategicMerge(patch);
        self.request(Request::Dynamic { namespace: "default".into(), name: "warm".into(), body });
    }

    /// Goes on until a fact fits, and then until nothing is in flight.
    fn until(&mut self, fits: impl Fn(&Fact) -> bool) -> Nanos {
        let mut seen = None;
        while seen.is_none() || self.backend.in_flight() > 0 || !self.inbox.is_empty() {
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
            if facts.iter().any(&fits) {
                seen.get_or_insert(clock::monotonic());
            }
            for folded in self.driver.tell(facts).unwrap() {
                for command in folded.commands {
                    let Some(asked) = self.server.asked_by(&command) else {
                        self.backend.submit(&command);
                        continue;
                    };
                    let (_, request) = asked.unwrap();
                    let response = self.request(request);
                    self.inbox.extend(self.server.answer_to(&command, &response).unwrap());
                }
            }
        }
        seen.unwrap()
    }
}

fn add(number: usize) -> Value {
    let name = format!("tool-{number}");
    json!({"spec": {
        "volumes": [{"name": format!("c{number}"), "configMap": {"name": "conf"}}, {"name": format!("m{number}"), "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
        "containers": [{
            "name": name, "image": "bench.local/payload:1", "command": ["/payload"],
            "volumeMounts": [{"name": format!("c{number}"), "mountPath": "/c"}, {"name": format!("m{number}"), "mountPath": "/m"}],
        }],
    }})
}

fn remove(number: usize) -> Value {
    json!({"spec": {
        "volumes": [{"name": format!("c{number}"), "$patch": "delete"}, {"name": format!("m{number}"), "$patch": "delete"}],
        "containers": [{"name": format!("tool-{number}"), "$patch": "delete"}],
    }})
}

fn row(what: &str, mut samples: Vec<u64>) -> f64 {
    samples.sort_unstable();
    let at = |share: usize| samples[(samples.len() - 1) * share / 1000] as f64 / 1e6;
    println!(
        "{what:<44} n {:>4}  min {:>7.3}  p50 {:>7.3}  p90 {:>7.3}  p99 {:>7.3} ms",
        samples.len(),
        at(0),
        at(500),
        at(900),
        at(990)
    );
    at(500)
}

fn main() {
    let samples: usize = std::env::args().filter_map(|a| a.parse().ok()).next().unwrap_or(300);
    let directory = tempfile::tempdir().unwrap();
    let build = |source: &str, out: &Path, flags: &[&str]| {
        let source = format!("{}/benches/linux/{source}", env!("CARGO_MANIFEST_DIR"));
        assert!(
            Command::new("cc")
                .arg("-O2")
                .args(flags)
                .arg("-o")
                .arg(out)
                .arg(source)
                .status()
                .unwrap()
                .success()
        );
    };
    let image = directory.path().join("image");
    fs::create_dir_all(image.join("etc")).unwrap();
    for dir in ["proc", "dev", "sys"] {
        fs::create_dir_all(image.join(dir)).unwrap();
    }
    let payload = image.join("payload");
    build("payload.c", &payload, &["-static", "-nostdlib", "-fno-stack-protector", "-fno-builtin"]);
    let floor = directory.path().join("floor");
    build("floor.c", &floor, &[]);

    let floor = Command::new(&floor).arg(&payload).arg(samples.to_string()).output().unwrap();
    let floor: Vec<u64> =
        String::from_utf8(floor.stdout).unwrap().lines().map(|l| l.parse().unwrap()).collect();
    let floor = row("floor: clone into pid and mount ns, exec", floor);

    let layout = Layout::at(directory.path().join("node"));
    let mut bench = Bench::new(layout.clone(), &image);
    bench.create(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"k": "v"}}),
    );
    bench.create(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "warm"}, "spec": {
        "terminationGracePeriodSeconds": 2,
        "containers": [{"name": "agent", "image": "bench.local/payload:1", "command": ["/payload"]}],
    }}));
    bench.until(|fact| matches!(fact, Fact::ContainerStarted { .. }));
    let (mut started, mut gone) = (Vec::new(), Vec::new());
    for number in 0..samples + 20 {
        let from = clock::monotonic();
        bench.dynamic(add(number));
        bench.until(|fact| matches!(fact, Fact::ContainerStarted { .. }));
        let first = first_instruction(&bench.layout, &format!("tool-{number}"));
        let removed = clock::monotonic();
        bench.dynamic(remove(number));
        let last = format!("m{number}");
        let at =
            bench.until(|fact| matches!(fact, Fact::VolumeUnmounted { volume, .. } if *volume.name == *last));
        // The first ones fill caches.
        if number >= 20 {
            started.push(first - from.0);
            gone.push(at.0 - removed.0);
        }
    }
    let ours = row("nodefold: request accepted -> first instruction", started);
    row("nodefold: removal accepted -> volumes gone", gone);
    bench.backend.abandon();
    cleanup::clean_up(&layout, true).unwrap();
    assert_eq!(cleanup::left_behind(&layout).unwrap(), Vec::<String>::new());

    println!("ratio to the floor at the median: {:.1}", ours / floor);
    for runtime in ["runc", "crun"] {
        if Command::new(runtime).arg("--version").stdout(Stdio::null()).status().is_err() {
            println!("{runtime}: not installed, not measured");
            continue;
        }
        match oci(runtime, directory.path(), &image, samples.min(100)) {
            Ok(times) => {
                let theirs = row(&format!("{runtime} run -d (no volumes, no journal)"), times);
                println!("  {:.1} times nodefold's median", theirs / ours);
            }
            Err(why) => println!("{runtime}: can't run here: {why}"),
        }
    }
}

/// When the newest life of a container read its clock.
fn first_instruction(layout: &Layout, container: &str) -> u64 {
    loop {
        for pod in fs::read_dir(layout.logs().join("pods")).unwrap().flatten() {
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

fn oci(runtime: &str, directory: &Path, image: &Path, samples: usize) -> Result<Vec<u64>, String> {
    let bundle = directory.join(format!("{runtime}-bundle"));
    fs::create_dir_all(&bundle).unwrap();
    let config = json!({
        "ociVersion": "1.0.2",
        "process": {"user": {"uid": 0, "gid": 0}, "args": ["/payload"], "cwd": "/", "env": ["PATH=/"]},
        "root": {"path": image, "readonly": true},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
        ],
        "linux": {"namespaces": (["pid", "mount", "ipc", "uts"].map(|kind| json!({"type": kind})))},
    });
    fs::write(bundle.join("config.json"), config.to_string()).unwrap();
    let state = directory.join(format!("{runtime}-state"));
    let mut times = Vec::new();
    for number in 0..samples {
        let id = format!("nodefold-bench-{}-{number}", std::process::id());
        let (out, told) = (directory.join("out"), directory.join("told"));
        let file = fs::File::create(&out).unwrap();
        let from = clock::monotonic();
        let run = Command::new(runtime)
            .arg("--root")
            .arg(&state)
            .args(["run", "-d", "--bundle"])
            .arg(&bundle)
            .arg(&id)
            .stdin(Stdio::null())
            .stdout(file)
            // A pipe would stay open as long as the container.
            .stderr(fs::File::create(&told).unwrap())
            .status()
            .unwrap();
        if !run.success() {
            return Err(fs::read_to_string(&told).unwrap().trim().to_owned());
        }
        let first = loop {
            if let Ok(number) = fs::read_to_string(&out).unwrap().trim().parse::<u64>() {
                break number;
            }
        };
        times.push(first - from.0);
        Command::new(runtime).arg("--root").arg(&state).args(["delete", "-f", &id]).status().unwrap();
    }
    Ok(times)
}
