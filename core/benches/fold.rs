//! How long one event takes, at 100, 10,000 and 100,000 pods, and what a pod weighs (DESIGN §9).
//!
//! The mixed lifecycle: pods of two containers and three volumes are created, mounted, pulled, started; a container with a
//! volume of its own is added to each and removed again; they crash, restart, crash and wait in back-off, are deleted and
//! released, while all others stand by. Every fact is timed, ticks and acknowledged status writes included; making the
//! answers is not.
#![allow(missing_docs, clippy::expect_used, clippy::print_stdout, clippy::disallowed_methods)]

use nodefold_core::event::{Event, Exit, Fact};
use nodefold_core::ids::{ObjectKind, ObjectRef, PodUid, Source};
use nodefold_core::resources::{ResourceList, ResourceName, Resources};
use nodefold_core::spec::*;
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Commands, Config, Node};
use std::alloc::System;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

fn container(name: &str, mounts: &[&str]) -> Arc<Container> {
    let requests = ResourceList::from_pairs([(ResourceName::Cpu, 1), (ResourceName::Memory, 1 << 20)]);
    Arc::new(Container {
        resources: Resources { requests, limits: ResourceList::default() },
        image: "registry.local/busybox:1".into(),
        pull_policy: PullPolicy::IfNotPresent,
        restart_on_mount_change: true,
        mounts: mounts
            .iter()
            .map(|m| VolumeMount {
                name: (*m).into(),
                mount_path: format!("/{m}").into(),
                read_only: false,
                rest: Blob::default(),
            })
            .collect(),
        ..Container::unknown(name.into())
    })
}

fn pod(n: u128, generation: u64) -> Pod {
    let object = |kind, name: &str| ObjectSource {
        object: ObjectRef { kind, namespace: "default".into(), name: name.into() },
        optional: false,
    };
    let volume = |name: &str, source| Arc::new(Volume { name: name.into(), source, rest: Blob::default() });
    let spec = PodSpec {
        containers: vec![container("app", &["scratch", "config"]), container("side", &["secret"])],
        volumes: vec![
            volume("scratch", VolumeSource::EmptyDir { medium: Medium::Disk, size_limit: None }),
            volume("config", VolumeSource::ConfigMap(object(ObjectKind::ConfigMap, "config"))),
            volume("secret", VolumeSource::Secret(object(ObjectKind::Secret, "secret"))),
        ],
        restart_policy: RestartPolicy::Always,
        termination_grace: Nanos::secs(2),
        qos: nodefold_core::resources::QosClass::Burstable,
        ..(*Pod::orphan(PodUid(1)).spec).clone()
    };
    Pod {
        namespace: "default".into(),
        name: format!("pod-{n}").into(),
        source: Source::Api,
        generation,
        spec: Arc::new(spec),
        ..Pod::orphan(PodUid(n))
    }
}

/// The same with a container more, and a volume that only it mounts.
fn with_task(n: u128, generation: u64) -> Pod {
    let mut pod = pod(n, generation);
    let spec = Arc::make_mut(&mut pod.spec);
    spec.containers.push(container("task", &["workspace"]));
    spec.volumes.push(Arc::new(Volume {
        name: "workspace".into(),
        source: VolumeSource::EmptyDir { medium: Medium::Memory, size_limit: None },
        rest: Blob::default(),
    }));
    pod
}

struct Bench {
    node: Node,
    now: Time,
    out: Commands,
    answers: VecDeque<Fact>,
    spent: Duration,
    events: u64,
}

impl Bench {
    fn new() -> Bench {
        let node = Node::new(Config::default());
        let mut bench = Bench {
            node,
            now: Time(1),
            out: Commands::default(),
            answers: VecDeque::new(),
            spent: Duration::ZERO,
            events: 0,
        };
        bench.fact(Fact::AgentStarted { boot_id: 1 });
        bench.fact(Fact::SourceReady { source: Source::Api });
        bench.fact(Fact::SourceReady { source: Source::File });
        bench.drain();
        bench
    }

    fn fact(&mut self, fact: Fact) {
        self.now.0 += 1_000;
        let event = Event { at: self.now, fact };
        let start = Instant::now();
        self.node.apply(&event, &mut self.out);
        self.spent += start.elapsed();
        self.events += 1;
        for command in self.out.commands.drain(..) {
            self.answers.extend(command.done(self.now));
        }
        self.out.clear();
    }

    fn drain(&mut self) {
        loop {
            while let Some(fact) = self.answers.pop_front() {
                self.fact(fact);
            }
            match self.node.next_deadline() {
                Some(at) if at <= self.now => self.fact(Fact::Tick),
                Some(_) | None => return,
            }
        }
    }

    /// Its first container crashes.
    fn exit(&mut self, pod: PodUid) {
        let (id, _) = self.node.instances(pod).into_iter().next().expect("a running container");
        let exit =
            Exit { code: 1, signal: None, reason: "Error".into(), started_at: None, finished_at: self.now };
        self.fact(Fact::ContainerExited { pod, container: id, exit });
        self.drain();
    }

    /// One pod's whole life, while all others stand by.
    fn life(&mut self, n: u128) {
        self.fact(Fact::PodApplied(Arc::new(pod(n, 1))));
        self.drain();
        let uid = PodUid(n);
        self.fact(Fact::PodApplied(Arc::new(with_task(n, 2))));
        self.drain();
        assert_eq!(self.node.instances(uid).len(), 3, "the task was added");
        self.fact(Fact::PodApplied(Arc::new(pod(n, 3))));
        self.drain();
        assert_eq!(self.node.instances(uid).len(), 2, "and removed");
        self.exit(uid);
        self.exit(uid);
        // The second crash waits for its back-off.
        self.now = self.node.next_deadline().expect("a back-off");
        self.drain();
        let mut deleted = pod(n, 4);
        deleted.deletion = Some(Deletion { requested_at: self.now, grace: Nanos::secs(2) });
        self.fact(Fact::PodApplied(Arc::new(deleted)));
        self.drain();
    }
}

fn main() {
    println!("{:>8}  {:>9}  {:>12}  {:>13}", "pods", "events", "ns per event", "bytes per pod");
    let asked: Vec<u128> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    for standing in if asked.is_empty() { vec![100, 10_000, 100_000] } else { asked } {
        let mut bench = Bench::new();
        let before = ALLOCATOR.allocated();
        for n in 1..=standing {
            bench.fact(Fact::PodApplied(Arc::new(pod(n, 1))));
            bench.drain();
        }
        let per_pod = (ALLOCATOR.allocated() - before) / standing as usize;
        bench.spent = Duration::ZERO;
        bench.events = 0;
        for n in 0..2_000 {
            // Spread over the whole range of UIDs, so that caches are cold.
            bench.life((1 << 100) + n);
            let steady = PodUid(1 + (n * 7_919) % standing);
            bench.now.0 += 700_000_000_000;
            bench.exit(steady);
        }
        let each = bench.spent.as_nanos() / u128::from(bench.events);
        println!("{standing:>8}  {:>9}  {each:>12}  {per_pod:>13}", bench.events);
    }
}
