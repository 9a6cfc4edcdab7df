//! The pods that the benches make, and a host that does at once what it is asked for.
#![allow(dead_code, reason = "each bench uses its part")]

use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::{Name, ObjectKind, ObjectRef, PodUid, Source};
use nodefold_core::resources::{ResourceList, ResourceName, Resources};
use nodefold_core::spec::*;
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Commands, Config, Node};
use std::collections::VecDeque;
use std::sync::Arc;

const IMAGE: &str = "registry.local/busybox:1";

fn container(name: &str, image: &Name, mounts: &[&str]) -> Arc<Container> {
    let requests = ResourceList::from_pairs([(ResourceName::Cpu, 1), (ResourceName::Memory, 1 << 20)]);
    Arc::new(Container {
        resources: Resources { requests, limits: ResourceList::default() },
        image: image.clone(),
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

pub fn pod(n: u128, generation: u64) -> Pod {
    let object = |kind, name: &str| ObjectSource {
        object: ObjectRef { kind, namespace: "default".into(), name: name.into() },
        optional: false,
    };
    let volume = |name: &str, source| Arc::new(Volume { name: name.into(), source, rest: Blob::default() });
    // A long text is shared within a spec, as the boundary has it.
    let image: Name = IMAGE.into();
    let spec = PodSpec {
        containers: vec![
            container("app", &image, &["scratch", "config"]),
            container("side", &image, &["secret"]),
        ],
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
pub fn with_task(n: u128, generation: u64) -> Pod {
    let mut pod = pod(n, generation);
    let spec = Arc::make_mut(&mut pod.spec);
    let image = spec.containers[0].image.clone();
    spec.containers.push(container("task", &image, &["workspace"]));
    spec.volumes.push(Arc::new(Volume {
        name: "workspace".into(),
        source: VolumeSource::EmptyDir { medium: Medium::Memory, size_limit: None },
        rest: Blob::default(),
    }));
    pod
}

/// A node and what executes for it.
pub struct Bench {
    pub node: Node,
    pub now: Time,
    out: Commands,
    answers: VecDeque<Fact>,
    /// Every event from when this was set.
    pub events: Option<Vec<Event>>,
}

impl Bench {
    /// A node on which this many pods run.
    pub fn new(standing: u128) -> Bench {
        let mut bench = Bench {
            node: Node::new(Config::default()),
            now: Time(1),
            out: Commands::default(),
            answers: VecDeque::new(),
            events: None,
        };
        bench.fact(Fact::AgentStarted { boot_id: 1 });
        bench.fact(Fact::SourceReady { source: Source::Api });
        bench.fact(Fact::SourceReady { source: Source::File });
        bench.drain();
        for n in 1..=standing {
            bench.fact(Fact::PodApplied(Arc::new(pod(n, 1))));
            bench.drain();
        }
        bench
    }

    pub fn fact(&mut self, fact: Fact) {
        self.now.0 += 1_000;
        let event = Event { at: self.now, fact };
        self.node.apply(&event, &mut self.out);
        self.events.iter_mut().for_each(|events| events.push(event.clone()));
        for command in self.out.commands.drain(..) {
            self.answers.extend(command.done(self.now));
        }
        self.out.clear();
    }

    pub fn drain(&mut self) {
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
}
