//! The Linux backend: commands to workers, facts from whoever finishes or notices something, through one channel.

use crate::clock;
use crate::credentials::{Certificates, Tokens};
use crate::fault::Fault;
use crate::housekeeping::Housekeeping;
use crate::images::Image;
use crate::objects::Objects;
use crate::probes::Probes;
use crate::runtime::{self, NewContainer, Parts, Runtime};
use crate::volumes::{SetUp, Sources, Volumes, Wanted};
use crate::workers::Workers;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use nodefold_core::backend::Backend;
use nodefold_core::command::{Action, Command};
use nodefold_core::event::{Fact, Hook};
use nodefold_core::ids::{ContainerId, OpId, PodUid};
use nodefold_core::spec::Container;
use nodefold_core::time::Nanos;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The backend.
pub struct Linux {
    runtime: Arc<Runtime>,
    volumes: Arc<Volumes>,
    workers: Workers,
    facts: Receiver<Fact>,
    sender: Sender<Fact>,
    open: BTreeMap<OpId, Open>,
    probes: Probes,
    _housekeeping: Housekeeping,
}

/// What ends an operation, if not a fact that names it.
enum Open {
    /// A fact that names the operation.
    Named,
    /// The container's exit.
    Exit(PodUid, ContainerId),
    /// The sandbox's end.
    SandboxEnd(PodUid, u32),
}

impl Linux {
    /// A backend over whatever an earlier agent left: partial volumes are taken down, shims are connected to.
    pub fn open(parts: Parts, objects: Objects) -> Result<Linux, Fault> {
        let (sender, facts) = unbounded();
        let sources = Sources {
            objects,
            images: parts.images.clone(),
            tokens: Tokens::of(parts.issuer.clone()),
            certificates: Certificates::at(parts.layout.data()),
        };
        let volumes = Arc::new(Volumes::new(
            parts.layout.clone(),
            sources,
            parts.node_name.clone(),
            parts.allocatable.clone(),
        )?);
        volumes.recover()?;
        parts.images.store().sweep()?;
        let habits = parts.habits;
        let runtime = Runtime::open(parts, volumes.clone(), sender.clone())?;
        let housekeeping = Housekeeping::start(habits, &runtime, &volumes, sender.clone());
        Ok(Linux {
            runtime,
            volumes,
            workers: Workers::default(),
            facts,
            sender,
            open: BTreeMap::new(),
            probes: Probes::default(),
            _housekeeping: housekeeping,
        })
    }

    /// The runtime, for what is asked outside of commands.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// The volumes, for what is asked outside of commands.
    pub fn volumes(&self) -> &Arc<Volumes> {
        &self.volumes
    }

    /// Whoever else has facts for the loop puts them here.
    pub fn sender(&self) -> Sender<Fact> {
        self.sender.clone()
    }

    /// Ends without telling how anything under way ended, as an agent that dies does: what was begun takes effect, what runs
    /// goes on.
    pub fn abandon(self) {
        self.runtime.leave();
        self.workers.wait();
        self.runtime.let_go();
    }

    /// Does something on a worker that ends with a fact: the one it gives, or the failure.
    fn work(
        &self,
        command: &Command,
        done: impl FnOnce(&Linker) -> Result<Option<Fact>, Fault> + Send + 'static,
    ) {
        let linker = Linker { runtime: self.runtime.clone(), volumes: self.volumes.clone() };
        let (sender, command) = (self.sender.clone(), command.clone());
        self.workers.run(move || {
            let fact = match done(&linker) {
                Ok(fact) => fact,
                Err(fault) => command.failed(fault.into_error()),
            };
            if let Some(fact) = fact {
                sender.send(fact).ok();
            }
        });
    }

    /// Which operations a fact ends: the one that it names, or those that end by what happened.
    fn close(&mut self, fact: &Fact) {
        if let Some(op) = fact.op() {
            self.open.remove(&op);
        }
        if let Fact::ContainerExited { pod, container, .. } = fact {
            self.open.retain(|_, open| !matches!(open, Open::Exit(p, c) if p == pod && c == container));
        }
        if let Fact::SandboxStopped { pod, attempt } = fact {
            self.open.retain(|_, open| !matches!(open, Open::SandboxEnd(p, a) if p == pod && a == attempt));
        }
    }
}

/// What workers work on.
struct Linker {
    runtime: Arc<Runtime>,
    volumes: Arc<Volumes>,
}

impl Backend for Linux {
    fn submit(&mut self, command: &Command) {
        let (op, pod) = (command.op, command.pod);
        let ends_with = match &command.action {
            Action::StopContainer { container, .. } | Action::KillContainer { container } => {
                Some(Open::Exit(pod, container.clone()))
            }
            Action::StopSandbox { attempt } => Some(Open::SandboxEnd(pod, *attempt)),
            Action::StartProbe { .. }
            | Action::StopProbe { .. }
            | Action::RecordEvent(_)
            | Action::ReleasePod => None,
            Action::MountVolume { .. }
            | Action::UnmountVolume { .. }
            | Action::RefreshVolume { .. }
            | Action::PullImage { .. }
            | Action::CreateSandbox { .. }
            | Action::RemoveSandbox { .. }
            | Action::CreateContainer { .. }
            | Action::StartContainer { .. }
            | Action::RemoveContainer { .. }
            | Action::ResizeContainer { .. }
            | Action::ResizePod { .. }
            | Action::RunHook { .. }
            | Action::ObserveMounts
            | Action::ObserveRuntime
            | Action::PublishStatus { .. }
            | Action::CreateMirror { .. }
            | Action::DeleteMirror { .. } => Some(Open::Named),
        };
        if let Some(open) = ends_with {
            self.open.insert(op, open);
        }
        match command.action.clone() {
            Action::MountVolume { volume, spec, pod: of, allocated } => self.work(command, move |linker| {
                let now = clock::now();
                let set = linker.volumes.set_up(&Wanted {
                    volume: &volume,
                    spec: &spec,
                    pod: &of,
                    allocated: &allocated,
                    now,
                })?;
                let SetUp { renew_at, image } = set;
                Ok(Some(Fact::VolumeMounted {
                    op,
                    pod,
                    volume,
                    renew_at,
                    image_digest: image.map(Into::into),
                }))
            }),
            Action::UnmountVolume { volume, .. } => self.work(command, move |linker| {
                linker.volumes.tear_down(pod, &volume)?;
                Ok(Some(Fact::VolumeUnmounted { op, pod, volume }))
            }),
            Action::RefreshVolume { volume, spec, pod: of, allocated } => self.work(command, move |linker| {
                let now = clock::now();
                let renew_at = linker.volumes.refresh(&Wanted {
                    volume: &volume,
                    spec: &spec,
                    pod: &of,
                    allocated: &allocated,
                    now,
                })?;
                Ok(Some(Fact::VolumeRefreshed { op, pod, volume, renew_at }))
            }),
            Action::PullImage { container, image, policy } => {
                let pulled = move |image: Image| {
                    let image_id = image.id.into();
                    Fact::ImagePulled { op, pod, container, image_id, already_present: true }
                };
                match self.runtime.at_hand(&image) {
                    // From this thread: the fact then becomes durable with those that wait already, not after them.
                    Some(image) => drop(self.sender.send(pulled(image))),
                    None => self
                        .work(command, move |linker| Ok(Some(pulled(linker.runtime.pull(&image, policy)?)))),
                }
            }
            Action::CreateSandbox { attempt, pod: of, allocated } => self.work(command, move |linker| {
                linker.runtime.create_sandbox(attempt, &of, &allocated)?;
                let ip = (!allocated.host_network).then(|| runtime::POD_ADDRESS.into());
                Ok(Some(Fact::SandboxReady { op, pod, attempt, ip }))
            }),
            Action::StopSandbox { attempt } => self.work(command, move |linker| {
                linker.runtime.stop_sandbox(pod, attempt)?;
                Ok(Some(Fact::SandboxStopped { pod, attempt }))
            }),
            Action::RemoveSandbox { attempt } => self.work(command, move |linker| {
                linker.runtime.remove_sandbox(pod, attempt)?;
                Ok(Some(Fact::SandboxRemoved { op, pod, attempt }))
            }),
            Action::CreateContainer { container, spec, mounts, sandbox, pod: of, allocated } => {
                self.work(command, move |linker| {
                    let new = NewContainer {
                        id: &container,
                        spec: &spec,
                        mounts: &mounts,
                        sandbox,
                        pod: &of,
                        allocated: &allocated,
                    };
                    linker.runtime.create(&new)?;
                    Ok(Some(Fact::ContainerCreated { op, pod, container }))
                });
            }
            // From this thread: it only sends a message, and the answer is a fact.
            Action::StartContainer { container } => {
                if let Err(fault) = self.runtime.start(op, pod, &container) {
                    let error = fault.into_error();
                    self.sender.send(Fact::ContainerStartFailed { op, pod, container, error }).ok();
                }
            }
            Action::StopContainer { container, grace } => {
                self.work(command, move |linker| linker.runtime.stop(pod, &container, grace).map(|()| None))
            }
            Action::KillContainer { container } => {
                self.work(command, move |linker| linker.runtime.kill(pod, &container).map(|()| None));
            }
            Action::RemoveContainer { container } => self.work(command, move |linker| {
                linker.runtime.remove(pod, &container)?;
                Ok(Some(Fact::ContainerRemoved { op, pod, container }))
            }),
            Action::ResizeContainer { container, resources } => self.work(command, move |linker| {
                linker.runtime.resize(pod, &container, &resources)?;
                Ok(Some(Fact::ContainerResized { op, pod, container }))
            }),
            Action::ResizePod { resources } => self.work(command, move |linker| {
                linker.runtime.resize_pod(pod, &resources)?;
                Ok(Some(Fact::PodResized { op, pod }))
            }),
            Action::RunHook { container, hook, timeout, spec } => self.work(command, move |linker| {
                let error = run_hook(&linker.runtime, pod, &container, hook, timeout, &spec).err();
                Ok(Some(Fact::HookDone { op, pod, container, hook, error: error.map(Into::into) }))
            }),
            Action::StartProbe { container, probe, spec } => {
                let key = (pod, container, probe);
                self.probes.start(key, &spec, &self.runtime, self.sender.clone());
            }
            Action::StopProbe { container, probe } => self.probes.stop(&(pod, container, probe)),
            Action::ObserveMounts => self.work(command, move |linker| {
                let mounts = linker.volumes.observe()?;
                Ok(Some(Fact::MountsObserved { op, mounts }))
            }),
            Action::ObserveRuntime => self.work(command, move |linker| {
                let (sandboxes, containers) = linker.runtime.observe()?;
                Ok(Some(Fact::RuntimeObserved { op, complete: true, sandboxes, containers }))
            }),
            Action::PublishStatus { .. } | Action::CreateMirror { .. } | Action::DeleteMirror { .. } => {
                self.work(command, |_| {
                    Err(Fault::refused("the Linux backend writes nothing to an API: its driver does"))
                });
            }
            Action::RecordEvent(_) | Action::ReleasePod => {}
        }
    }

    fn receive(&mut self, wait: Nanos) -> Option<Fact> {
        let received = match wait {
            Nanos::ZERO => self.facts.try_recv().map_err(|_| RecvTimeoutError::Timeout),
            wait => self.facts.recv_timeout(Duration::from_nanos(wait.0)),
        };
        let fact = received.ok()?;
        self.close(&fact);
        Some(fact)
    }

    fn in_flight(&self) -> usize {
        self.open.len()
    }
}

/// Runs a hook. What it says when it fails is told.
fn run_hook(
    runtime: &Runtime,
    pod: PodUid,
    container: &ContainerId,
    hook: Hook,
    timeout: Option<Nanos>,
    spec: &Container,
) -> Result<(), String> {
    let manifest = nodefold_k8s::blob_to_json(&spec.rest);
    let (field, name) = match hook {
        Hook::PostStart => ("postStart", "PostStart"),
        Hook::PreStop => ("preStop", "PreStop"),
    };
    let handler = &manifest["lifecycle"][field];
    // Kubernetes gives an HTTP hook no limit of its own.
    let limit = timeout.unwrap_or(Nanos::secs(3600));
    match runtime::task_of(handler, &manifest, limit)? {
        Some(task) => {
            let done = runtime.do_errand(pod, container, task, timeout).map_err(|fault| fault.message)?;
            if done.well { Ok(()) } else { Err(format!("{name} hook failed: {}", done.said)) }
        }
        None => {
            let seconds = handler["sleep"]["seconds"].as_u64().unwrap_or(0);
            let time = Nanos(Nanos::secs(seconds).0.min(limit.0));
            runtime.sleep(pod, container, time).map_err(|fault| fault.message)
        }
    }
}
