//! Sandboxes and containers on this host: what the agent does with shims, cgroups, images and logs to carry out commands,
//! and how it finds again what an earlier agent left. What decides is elsewhere.

mod containers;
mod errands;
mod last_words;
mod link;
mod observe;
mod rotate;
mod sandboxes;
mod spares;
mod usage;
mod watch;

pub use containers::NewContainer;
pub use errands::{Done, errand_from_outside, task_of};
pub use rotate::{LogLimits, rotated};
pub use sandboxes::pod_resources;

use crate::cgroups::Cgroups;
use crate::credentials::Issuer;
use crate::doctor::Allowed;
use crate::fault::{Attempt, Fault};
use crate::housekeeping::Habits;
use crate::ids::Ids;
use crate::images::Images;
use crate::layout::{self, Layout};
use crate::mounts;
use crate::objects::Objects;
use crate::pod::plan::{ContainerPlan, ExitRecord, StorageLimits, UserIds};
use crate::process::{self, Process};
use crate::volumes::Volumes;
use crossbeam_channel::{Sender, unbounded};
use link::Link;
use nodefold_core::event::{Exit, Fact};
use nodefold_core::ids::{ContainerId, Name, PodUid};
use nodefold_core::resources::ResourceList;
use nodefold_core::time::{Nanos, Time};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::mount::MountAttrFlags;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use watch::{Noticed, Watch};

/// A pod's address in its own network namespace, where nothing but the loopback interface is: at it a pod reaches itself,
/// and nobody else does. (A pod with a network of its own but without an address counts as broken; kubelet-pods §1.)
pub const POD_ADDRESS: &str = "127.0.0.1";

/// What a runtime is made of.
pub struct Parts {
    /// Where everything is.
    pub layout: Layout,
    /// The node's name.
    pub node_name: Name,
    /// The node's allocatable.
    pub allocatable: ResourceList,
    /// Images.
    pub images: Arc<Images>,
    /// How it keeps house.
    pub habits: Habits,
    /// Who issues service accounts' tokens.
    pub issuer: Arc<dyn Issuer>,
    /// Secrets and configMaps, for environments.
    pub objects: Objects,
    /// The program that is started as a shim: this one, if it dispatches.
    pub shim_program: PathBuf,
    /// That this process may be a node.
    pub allowed: Allowed,
}

/// The runtime.
pub struct Runtime {
    layout: Layout,
    node_name: Name,
    allocatable: Mutex<ResourceList>,
    images: Arc<Images>,
    objects: Objects,
    volumes: Arc<Volumes>,
    cgroups: Cgroups,
    ids: Ids,
    shim_program: PathBuf,
    facts: Sender<Fact>,
    state: Mutex<State>,
    /// Told when a container ended or a link closed.
    changed: Condvar,
    /// Sandboxes that want a spare process.
    wanting: Sender<(PodUid, u32)>,
    /// Readable when the agent ends.
    leaving: OwnedFd,
    watch: Mutex<Option<Arc<Watch>>>,
}

#[derive(Default)]
struct State {
    sandboxes: BTreeMap<(PodUid, u32), Sandbox>,
    containers: BTreeMap<(PodUid, ContainerId), Known>,
    /// The ids of the pods' user namespaces.
    users: BTreeMap<PodUid, UserIds>,
}

/// A sandbox with a living shim.
#[derive(Clone)]
struct Sandbox {
    link: Arc<Link>,
    /// Its end is our doing.
    stopping: bool,
    /// Its shim knows how to go on in another log.
    reopens_logs: bool,
    /// Its shim knows how to prepare processes.
    keeps_spares: bool,
    /// The slot in which one waits.
    spare: Option<String>,
    /// The number of the next slot.
    next_slot: u32,
    /// Held while one is prepared.
    preparing: Arc<Mutex<()>>,
    /// The pod's user namespace.
    users: Option<PodUsers>,
}

/// A pod's user namespace, as the agent has it.
#[derive(Clone)]
struct PodUsers {
    ids: UserIds,
    namespace: Arc<OwnedFd>,
}

/// A container.
struct Known {
    sandbox: u32,
    /// Its control group.
    group: String,
    pidfd: Option<Arc<OwnedFd>>,
    phase: Phase,
    /// It is being removed before it ever ran: its end is nobody's news.
    discarded: bool,
    /// What it, and its pod, may take up of the disk.
    storage: StorageLimits,
    /// What it said about its end.
    last_words: String,
}

impl Known {
    fn new(
        sandbox: u32,
        group: String,
        pidfd: Option<Arc<OwnedFd>>,
        phase: Phase,
        storage: StorageLimits,
    ) -> Known {
        Known { sandbox, group, pidfd, phase, discarded: false, storage, last_words: String::new() }
    }
}

/// How far a container is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Parked before its exec.
    Created,
    /// Runs.
    Running {
        /// Since when.
        started_at: u64,
    },
    /// Ended.
    Ended(ExitRecord),
}

impl Runtime {
    /// A runtime over whatever an earlier one left: it connects to the shims that live. Facts go into the channel.
    pub fn open(parts: Parts, volumes: Arc<Volumes>, facts: Sender<Fact>) -> Result<Arc<Runtime>, Fault> {
        let cgroups = Cgroups::detect(parts.layout.cgroup_name())?;
        let (wanting, wanted) = unbounded();
        let runtime = Arc::new(Runtime {
            layout: parts.layout,
            node_name: parts.node_name,
            allocatable: Mutex::new(parts.allocatable),
            images: parts.images,
            objects: parts.objects,
            volumes,
            cgroups,
            ids: Ids::here()?,
            shim_program: parts.shim_program,
            facts,
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            wanting,
            leaving: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .attempt(|| "make what tells the end")?,
            watch: Mutex::new(None),
        });
        runtime.mount_run()?;
        let weak = Arc::downgrade(&runtime);
        let watch = Watch::start(move |noticed| {
            let Some(runtime) = weak.upgrade() else { return };
            match noticed {
                Noticed::GraceOver((pod, id)) => {
                    // It stays populated if that fails, and is looked at again when somebody asks.
                    runtime.kill_all(pod, &id).ok();
                }
                Noticed::Exited((pod, id), record) => {
                    runtime.keep_exit(pod, &id, &record);
                    runtime.exited(pod, &id, record);
                }
            }
        })?;
        *runtime.watch.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
        spares::keep(&runtime, wanted)?;
        runtime.adopt()?;
        Ok(runtime)
    }

    /// The directory of what does not outlive a boot is a tmpfs of its own (linux-executor §1.5: inode churn on ext4 is slow).
    fn mount_run(&self) -> Result<(), Fault> {
        let run = self.layout.run();
        fs::create_dir_all(&run).attempt(|| format!("make {}", run.display()))?;
        let data = crate::beneath::open_root(self.layout.data())?;
        if crate::beneath::is_mounted(&data, "run").attempt(|| "look at the run directory")? {
            return Ok(());
        }
        let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        mounts::attach_at(mounts::detached("tmpfs", &[("mode", Some("0700"))], quiet)?, &data, "run")
    }

    /// Takes the run directory down, if nothing of any pod is in it, and the node's cgroups.
    pub fn clean_up(&self) -> Result<(), Fault> {
        let pods = self.layout.run().join("pods");
        if fs::read_dir(&pods).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(Fault::transient(format!("{} still has pods", pods.display())));
        }
        let data = crate::beneath::open_root(self.layout.data())?;
        mounts::unmount_all(&data, "run")?;
        crate::beneath::remove_tree(&data, "run")?;
        self.cgroups.remove_own()
    }

    /// The control groups.
    pub fn cgroups(&self) -> &Cgroups {
        &self.cgroups
    }

    /// The node's allocatable changed.
    pub fn set_allocatable(&self, allocatable: ResourceList) {
        *self.allocatable.lock().unwrap_or_else(PoisonError::into_inner) = allocatable;
    }

    fn allocatable(&self) -> ResourceList {
        self.allocatable.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watch(&self) -> Option<Arc<Watch>> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tell(&self, fact: Fact) {
        // Nobody listens any more: the next agent observes.
        self.facts.send(fact).ok();
    }

    /// Hooks and probes that are under way are waited for no longer.
    pub fn leave(&self) {
        // It is readable from then on.
        rustix::io::write(&self.leaving, &1u64.to_ne_bytes()).ok();
    }

    /// Lets go of every shim and ends the threads. Nothing that runs is disturbed.
    pub fn let_go(&self) {
        if let Some(watch) = self.watch() {
            watch.end();
        }
        let sandboxes: Vec<Sandbox> = {
            let mut state = self.lock();
            state.sandboxes.values_mut().for_each(|sandbox| sandbox.stopping = true);
            state.sandboxes.values().cloned().collect()
        };
        for sandbox in sandboxes {
            sandbox.until_prepared();
            sandbox.link.hang_up();
        }
    }

    /// A container ended: told once, whichever source was first.
    fn exited(&self, pod: PodUid, id: &ContainerId, record: ExitRecord) {
        let key = (pod, id.clone());
        // Before anybody can be told of the end.
        let sandbox = self.lock().containers.get(&key).map(|known| known.sandbox);
        let last_words =
            sandbox.map(|sandbox| self.last_words(pod, sandbox, id, &record)).unwrap_or_default();
        let discarded = {
            let mut state = self.lock();
            match state.containers.get_mut(&key) {
                Some(known) if !matches!(known.phase, Phase::Ended(_)) => {
                    known.phase = Phase::Ended(record.clone());
                    known.pidfd = None;
                    known.last_words = last_words;
                    known.discarded
                }
                Some(_) | None => return,
            }
        };
        self.changed.notify_all();
        if let Some(watch) = self.watch() {
            watch.forget(&key);
        }
        // In a pid namespace that containers share, what it started lives on: it ends with it, as everywhere.
        self.cgroups.kill(&self.group_of(pod, id)).ok();
        // What never ran has no exit: its start failed, and that was told.
        if record.start_error.is_none() && !discarded {
            self.tell(Fact::ContainerExited { pod, container: id.clone(), exit: exit(&record) });
        }
    }

    /// Writes an exit down that the shim could not.
    fn keep_exit(&self, pod: PodUid, id: &ContainerId, record: &ExitRecord) {
        let sandbox = self.lock().containers.get(&(pod, id.clone())).map(|known| known.sandbox);
        let Some(sandbox) = sandbox else { return };
        let path = self.container_dir(pod, sandbox, id);
        if let (Ok(dir), Ok(text)) = (crate::beneath::open_root(&path), serde_json::to_vec(record)) {
            crate::volumes::write_whole(&dir, "exit.json", &text).ok();
        }
    }

    fn sandbox_dir(&self, pod: PodUid, attempt: u32) -> PathBuf {
        self.layout.run().join("pods").join(pod.to_string()).join(attempt.to_string())
    }

    /// The control group of a container.
    fn group_of(&self, pod: PodUid, id: &ContainerId) -> String {
        let known = self.lock().containers.get(&(pod, id.clone())).map(|known| known.group.clone());
        known.unwrap_or_else(|| container_group(pod, id, None))
    }

    fn container_dir(&self, pod: PodUid, sandbox: u32, id: &ContainerId) -> PathBuf {
        self.sandbox_dir(pod, sandbox).join("c").join(layout::container_file(id))
    }

    /// The newest instance of every name that is here, and of what is left of a pod, for people.
    pub fn containers(&self) -> Vec<(PodUid, ContainerId, bool)> {
        let state = self.lock();
        let all = state.containers.iter();
        all.map(|((pod, id), known)| (*pod, id.clone(), !matches!(known.phase, Phase::Ended(_)))).collect()
    }

    /// The sandboxes whose shim lives.
    pub fn sandboxes(&self) -> Vec<(PodUid, u32)> {
        self.lock().sandboxes.keys().copied().collect()
    }

    /// The newest running instance of a name, as a process to be signalled.
    pub fn running(&self, pod: PodUid, name: &str) -> Option<Process> {
        let state = self.lock();
        let mut of_name = state.containers.iter().rev().filter(|((of, id), known)| {
            *of == pod && &*id.name == name && matches!(known.phase, Phase::Running { .. })
        });
        of_name.next().and_then(|(_, known)| known.pidfd.clone()).map(Process::new)
    }

    /// For how long the processes of a container have worked; `None`: each of them waits for something now, or none is left.
    pub fn works(&self, pod: PodUid, id: &ContainerId) -> Option<Nanos> {
        let processes = match self.cgroups.are_none() {
            false => self.cgroups.members(&self.group_of(pod, id)),
            true => {
                let known =
                    self.lock().containers.get(&(pod, id.clone())).and_then(|known| known.pidfd.clone());
                known.map(|first| Process::new(first).in_its_pid_namespace()).unwrap_or_default()
            }
        };
        let all_wait = processes.iter().all(|pid| process::waits(*pid));
        (!all_wait).then(|| Nanos(processes.into_iter().map(process::worked).sum()))
    }
}

/// The control group of a pod.
fn pod_group(pod: PodUid) -> String {
    format!("pod{pod}")
}

/// The control group of a container by its plan; without a slot, that of its own name.
fn container_group(pod: PodUid, id: &ContainerId, plan: Option<&ContainerPlan>) -> String {
    let slot = plan.and_then(|plan| plan.slot.clone()).unwrap_or_else(|| layout::container_file(id));
    format!("{}/{slot}", pod_group(pod))
}

/// The control group of a pod's shim.
fn shim_group(pod: PodUid, attempt: u32) -> String {
    format!("{}/shim.{attempt}", pod_group(pod))
}

/// A record as the core hears of it.
fn exit(record: &ExitRecord) -> Exit {
    let reason = match (record.start_error.is_some(), record.out_of_memory, record.code) {
        (true, _, _) => "StartError",
        (false, true, _) => "OOMKilled",
        (false, false, 0) => "Completed",
        (false, false, _) => "Error",
    };
    Exit {
        code: record.code,
        signal: record.signal,
        reason: reason.into(),
        started_at: record.started_at.map(Time),
        finished_at: Time(record.finished_at),
    }
}

/// Removes a directory of the node's own with everything below it.
fn remove_dir(path: &Path) -> Result<(), Fault> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    match crate::beneath::open_root(parent) {
        Ok(parent) => crate::beneath::remove_tree(&parent, name),
        Err(_) if !parent.exists() => Ok(()),
        Err(fault) => Err(fault),
    }
}
