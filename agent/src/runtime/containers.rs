//! Containers: built up to their exec, let go, stopped, removed.

use super::rotate::{log_name, rotated};
use super::{Known, Phase, PodUsers, Runtime, exit, last_words, pod_group, remove_dir};
use crate::beneath;
use crate::compose;
use crate::confine;
use crate::failpoint;
use crate::fault::{Attempt, Fault};
use crate::fields::PodFields;
use crate::images::{Held, Image};
use crate::layout;
use crate::mounts::{self, Propagation};
use crate::pod::plan::{ContainerPlan, PlannedMount};
use crate::pod::wire::{Answer, Ask};
use crate::sys;
use nodefold_core::command::MountedVolume;
use nodefold_core::event::Fact;
use nodefold_core::ids::{ContainerId, OpId, PodUid};
use nodefold_core::resources::Resources;
use nodefold_core::spec::{Container, Pod, PodSpec, PullPolicy};
use nodefold_core::time::Nanos;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Gid, MemfdFlags, Mode, OFlags, Uid, chown, memfd_create, openat, unlinkat};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use rustix::process::{Signal, pidfd_send_signal};
use std::fs;
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::Arc;

/// A container to be made.
pub struct NewContainer<'a> {
    /// Which.
    pub id: &'a ContainerId,
    /// Its definition.
    pub spec: &'a Container,
    /// Its mounts.
    pub mounts: &'a [MountedVolume],
    /// In which sandbox.
    pub sandbox: u32,
    /// Whose.
    pub pod: &'a Pod,
    /// The allocation.
    pub allocated: &'a PodSpec,
}

impl Runtime {
    /// An image that is present, if a look tells.
    pub fn at_hand(&self, reference: &str) -> Option<Image> {
        self.images.at_hand(reference)
    }

    /// Has an image present.
    pub fn pull(&self, reference: &str, policy: PullPolicy) -> Result<Image, Fault> {
        self.images.get(reference, policy)
    }

    /// Makes a container up to just before its first instruction.
    pub fn create(self: &Arc<Runtime>, new: &NewContainer<'_>) -> Result<(), Fault> {
        let (pod, id) = (new.pod.uid, new.id);
        let key = (pod, id.clone());
        let link = {
            let state = self.lock();
            match state.containers.get(&key).map(|known| &known.phase) {
                Some(Phase::Created) => return Ok(()),
                Some(Phase::Running { .. } | Phase::Ended(_)) => {
                    return Err(Fault::refused(format!(
                        "the name {id} is reserved: such a container exists"
                    )));
                }
                None => {}
            }
            let sandbox = state.sandboxes.get(&(pod, new.sandbox)).filter(|sandbox| !sandbox.stopping);
            sandbox.map(|sandbox| (sandbox.link.clone(), sandbox.users.clone()))
        };
        let Some((link, users)) = link else {
            return Err(Fault::refused(format!("sandbox {} not found or not ready", new.sandbox)));
        };
        let dir = self.container_dir(pod, new.sandbox, id);
        failpoint::hit("create.begun");
        let held = self.images.store().hold()?;
        let (mut plan, image) = self.plan(new)?;
        let slot = self.take_slot(pod, new.sandbox, &plan.stage())?;
        let group = format!("{}/{slot}", pod_group(pod));
        plan.slot = Some(slot);
        let storage = plan.storage;
        let built = self.build(new, plan, (&image, held), (&dir, &group), users.as_ref());
        match built.and_then(|(ask, descriptors)| link.call(ask, &descriptors)) {
            Ok((Answer::Parked { .. }, descriptors)) => {
                failpoint::hit("create.parked");
                let pidfd = descriptors.into_iter().next().map(Arc::new);
                if let (Some(watch), Some(pidfd)) = (self.watch(), &pidfd) {
                    watch.add(key.clone(), pidfd.clone(), None);
                }
                let known = Known::new(new.sandbox, group, pidfd, Phase::Created, storage);
                self.lock().containers.insert(key, known);
                Ok(())
            }
            Ok((other, _)) => Err(Fault::uncertain(format!("the shim answered {other:?} to a create"))),
            Err(fault) => {
                // Nothing of it is left, or it is told that something may be.
                match self.cgroups.kill(&group).and_then(|()| self.undo(&dir, &group)) {
                    Ok(()) => Err(fault),
                    Err(undo) => Err(Fault::uncertain(format!("{fault}; and to undo it failed: {undo}"))),
                }
            }
        }
    }

    fn undo(&self, dir: &Path, group: &str) -> Result<(), Fault> {
        remove_dir(dir)?;
        self.cgroups.remove(group)
    }

    /// What a container is to be, its mounts and its slot aside.
    fn plan(&self, new: &NewContainer<'_>) -> Result<(ContainerPlan, Image), Fault> {
        let image = self.images.get(&new.spec.image, PullPolicy::IfNotPresent)?;
        let allocatable = self.allocatable();
        let fields = PodFields {
            pod: new.pod,
            spec: new.allocated,
            allocatable: &allocatable,
            node_name: &self.node_name,
            pod_ip: (!new.allocated.host_network).then_some(super::POD_ADDRESS),
        };
        let profiles = self.layout.seccomp();
        let mut plan = compose::compose(new.spec, &image, &fields, &self.objects, (&profiles, &self.ids))?;
        plan.cgroups = self.cgroups.shown();
        if self.may_open_any_device(&plan) {
            let manifest = nodefold_k8s::blob_to_json(&new.spec.rest);
            let added = manifest["securityContext"]["capabilities"]["add"].as_array().into_iter().flatten();
            let added: Vec<&str> = added.filter_map(|name| name.as_str()).collect();
            plan.capabilities = confine::without_device_rules(plan.capabilities, &added)
                .map_err(|why| Fault::refused(why).because("CreateContainerConfigError"))?;
        }
        Ok((plan, image))
    }

    /// Nothing but its capabilities keeps it from devices.
    fn may_open_any_device(&self, plan: &ContainerPlan) -> bool {
        !plan.privileged && !self.cgroups.has_device_rules()
    }

    /// Everything that the shim needs for a container, as a request and its descriptors. The image is held until the plan, which
    /// names it, is on disk.
    fn build(
        &self,
        new: &NewContainer<'_>,
        mut plan: ContainerPlan,
        (image, held): (&Image, Held),
        (dir, group): (&Path, &str),
        users: Option<&PodUsers>,
    ) -> Result<(Ask, Vec<OwnedFd>), Fault> {
        let (pod, id) = (new.pod.uid, new.id);
        let mut mounts = self.etc_mounts(new)?;
        if plan.privileged {
            let dev = mounts::place(Path::new("/dev"))
                .and_then(mounts::clone_of)
                .attempt(|| "copy the host's /dev")?;
            mounts.push((PlannedMount { target: "/dev".into(), directory: true }, dev));
        }
        for mounted in new.mounts {
            mounts.push(self.volume_mount(new, mounted, &plan.env, plan.privileged)?);
        }
        for inner in ["upper", "work"] {
            let inner = dir.join(inner);
            fs::create_dir_all(&inner).attempt(|| format!("make {}", inner.display()))?;
        }
        mounts.extend(last_words_mount(new, dir)?);
        if let Some(users) = users {
            // The host's devices stay the host's.
            for (mount, fd) in mounts.iter().filter(|(mount, _)| mount.target != "/dev") {
                sys::map_ids(fd, &*users.namespace).attempt(|| {
                    format!("show {} as the pod's user namespace has its owners", mount.target)
                })?;
            }
        }
        // Outer mounts before what lies inside them.
        mounts.sort_by_key(|(mount, _)| Path::new(&mount.target).components().count());
        let (planned, volumes): (Vec<PlannedMount>, Vec<OwnedFd>) = mounts.into_iter().unzip();
        plan.mounts = planned;
        // What it is to be, on disk before its first side effect outside of its directory.
        let text = serde_json::to_vec(&plan).map_err(|error| Fault::refused(error.to_string()))?;
        crate::volumes::write_whole(&beneath::open_root(dir)?, "plan.json", &text)?;
        drop(held);
        failpoint::hit("create.planned");
        self.limit_pod(pod, new.allocated);
        self.cgroups.limit(group, &new.spec.resources)?;
        self.cgroups.out_of_memory_together(group)?;
        failpoint::hit("create.grouped");
        self.cgroups.devices(group, plan.privileged)?;
        let entrance = self.cgroups.entrance(group)?;
        let no_devices = self.may_open_any_device(&plan);
        let scratch = (&*dir.join("upper"), &*dir.join("work"));
        let root = overlay(&image.root, scratch, no_devices, self.ids.are_the_hosts(), users)?;
        failpoint::hit("create.rooted");
        let log = self.open_log(new.pod, id)?;
        let ask = Ask::Create {
            id: layout::container_file(id),
            into_cgroup: entrance.into.is_some(),
            joins: entrance.joins.len(),
            counts_oom: entrance.oom.is_some(),
            slot: plan.slot.clone(),
        };
        let mut descriptors = vec![in_memory(&text)?, root, log];
        descriptors.extend(entrance.into);
        descriptors.extend(entrance.joins);
        descriptors.extend(entrance.oom);
        descriptors.extend(volumes);
        Ok((ask, descriptors))
    }

    /// /etc/hosts, /etc/hostname and /etc/resolv.conf are the pod's, unless the container mounts something there itself.
    fn etc_mounts(&self, new: &NewContainer<'_>) -> Result<Vec<(PlannedMount, OwnedFd)>, Fault> {
        let etc = self.sandbox_dir(new.pod.uid, new.sandbox).join("etc");
        let mut made = Vec::new();
        for name in ["hosts", "hostname", "resolv.conf"] {
            let target = format!("/etc/{name}");
            if new.mounts.iter().any(|mounted| *mounted.mount.mount_path == *target) {
                continue;
            }
            let copy = mounts::place(&etc.join(name))
                .and_then(mounts::clone_of)
                .attempt(|| format!("copy {name}"))?;
            made.push((PlannedMount { target, directory: false }, copy));
        }
        Ok(made)
    }

    fn volume_mount(
        &self,
        new: &NewContainer<'_>,
        mounted: &MountedVolume,
        env: &[(String, String)],
        privileged: bool,
    ) -> Result<(PlannedMount, OwnedFd), Fault> {
        let name = &mounted.volume.name;
        let missing = || {
            Fault::refused(format!(
                "cannot find volume \"{name}\" to mount into container \"{}\"",
                new.id.name
            ))
        };
        let spec = new.allocated.volume(name).ok_or_else(missing)?;
        let rest = nodefold_k8s::blob_to_json(&mounted.mount.rest);
        let propagation = match rest["mountPropagation"].as_str() {
            Some("HostToContainer") => Propagation::HostToContainer,
            Some("Bidirectional") if privileged => Propagation::Bidirectional,
            Some("Bidirectional") => {
                return Err(Fault::refused(format!(
                    "mountPropagation Bidirectional of volume {name} is for privileged containers only"
                )));
            }
            Some(_) | None => Propagation::None,
        };
        let variable =
            |wanted: &str| env.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.clone());
        let sub_path = match rest["subPathExpr"].as_str() {
            Some(expression) => Some(compose::expand(expression, &variable)),
            None => rest["subPath"].as_str().map(str::to_owned),
        };
        let fd = self.volumes.mount_for(
            new.pod.uid,
            &mounted.volume,
            spec,
            &mounted.mount,
            (sub_path.as_deref(), propagation),
        )?;
        let stat = rustix::fs::fstat(&fd).attempt(|| format!("look at volume {name}"))?;
        let directory = rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory;
        Ok((PlannedMount { target: mounted.mount.mount_path.to_string(), directory }, fd))
    }

    /// Opens a container's log, to be written to. A container that is shown the logs may have put anything there: what is no plain
    /// file goes, and no link is followed.
    fn open_log(&self, pod: &Pod, id: &ContainerId) -> Result<OwnedFd, Fault> {
        let root = self.layout.logs();
        fs::create_dir_all(&root).attempt(|| format!("make {}", root.display()))?;
        let path = format!("pods/{}_{}_{}/{}", pod.namespace, pod.name, pod.uid, id.name);
        let dir = beneath::make_dirs(beneath::open_root(&root)?, &path, Mode::from_raw_mode(0o755))
            .attempt(|| format!("make the directory of logs {path}"))?;
        let name = log_name(id);
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK;
        match beneath::open(&dir, &name, flags) {
            Ok(log) if beneath::is_file(&log).attempt(|| format!("look at {path}/{name}"))? => {
                return Ok(log);
            }
            Ok(_) | Err(_) => beneath::remove_tree(&dir, &name)?,
        }
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        openat(&dir, &name, flags, Mode::from_raw_mode(0o644)).attempt(|| format!("make {path}/{name}"))
    }

    /// The logs of a container that is removed.
    fn remove_log(&self, pod: PodUid, id: &ContainerId) -> Result<(), Fault> {
        for dir in self.logs_of(pod, &id.name) {
            let log = log_name(id);
            for name in rotated(&dir, &log)?.into_iter().chain([log]) {
                beneath::remove_tree(&dir, &name)?;
            }
        }
        let Some(pods) = self.pods_logs() else { return Ok(()) };
        for of_pod in log_dirs(&pods, pod) {
            // Only empty ones go.
            if let Ok(dir) = beneath::open_dir(&pods, &of_pod) {
                unlinkat(&dir, &*id.name, AtFlags::REMOVEDIR).ok();
            }
            unlinkat(&pods, &of_pod, AtFlags::REMOVEDIR).ok();
        }
        Ok(())
    }

    /// The directory of all pods' logs, if there is one.
    fn pods_logs(&self) -> Option<OwnedFd> {
        beneath::open_dir(beneath::open_root(&self.layout.logs()).ok()?, "pods").ok()
    }

    /// The directories of a container's logs.
    pub(super) fn logs_of(&self, pod: PodUid, container: &str) -> Vec<OwnedFd> {
        let Some(pods) = self.pods_logs() else { return Vec::new() };
        let dirs = log_dirs(&pods, pod);
        dirs.iter().filter_map(|dir| beneath::open_dir(&pods, format!("{dir}/{container}")).ok()).collect()
    }

    pub(super) fn remove_pod_logs(&self, pod: PodUid) -> Result<(), Fault> {
        let Some(pods) = self.pods_logs() else { return Ok(()) };
        log_dirs(&pods, pod).iter().try_for_each(|dir| beneath::remove_tree(&pods, dir))
    }

    /// Lets a container go. How that went is told as a fact, from the link's thread, before its exit can be.
    pub fn start(self: &Arc<Runtime>, op: OpId, pod: PodUid, id: &ContainerId) -> Result<(), Fault> {
        let link = {
            let state = self.lock();
            let known = state.containers.get(&(pod, id.clone()));
            let known = known.ok_or_else(|| Fault::refused(format!("container {id} not found")))?;
            match &known.phase {
                Phase::Created => {}
                Phase::Running { .. } => {
                    drop(state);
                    self.tell(Fact::ContainerStarted { op, pod, container: id.clone() });
                    return Ok(());
                }
                Phase::Ended(_) => return Err(Fault::refused(format!("container {id} has already ended"))),
            }
            let sandbox = state.sandboxes.get(&(pod, known.sandbox));
            sandbox
                .map(|sandbox| sandbox.link.clone())
                .ok_or_else(|| Fault::refused("its sandbox is gone"))?
        };
        failpoint::hit("start.begun");
        let (runtime, id) = (self.clone(), id.clone());
        link.ask(Ask::Start { id: layout::container_file(&id) }, &[], move |reply| {
            let container = id.clone();
            let fault = match reply {
                Some((Answer::Running { started_at }, _)) => {
                    failpoint::hit("start.running");
                    runtime.now_running(pod, &id, started_at);
                    return runtime.tell(Fact::ContainerStarted { op, pod, container });
                }
                Some((Answer::Refused(why), _)) => Fault::refused(why),
                Some((other, _)) => Fault::uncertain(format!("the shim answered {other:?} to a start")),
                None => Fault::uncertain("the pod's shim is gone"),
            };
            runtime.tell(Fact::ContainerStartFailed { op, pod, container, error: fault.into_error() });
        });
        Ok(())
    }

    fn now_running(&self, pod: PodUid, id: &ContainerId, started_at: u64) {
        let key = (pod, id.clone());
        let known = self.lock().containers.get_mut(&key).map(|known| {
            if known.phase == Phase::Created {
                known.phase = Phase::Running { started_at };
            }
            known.sandbox
        });
        // The next container's, now that nobody waits for this one any more.
        if let Some(sandbox) = known {
            self.want_spare(pod, sandbox);
        }
        if let Some(watch) = self.watch() {
            watch.started(&key, started_at);
        }
    }

    /// TERM now and KILL when the grace is over. The exit is the answer; of one that has ended it is told once more.
    pub fn stop(&self, pod: PodUid, id: &ContainerId, grace: Nanos) -> Result<(), Fault> {
        match self.living(pod, id)? {
            None => Ok(()),
            // Nothing runs in it yet.
            Some((Phase::Created, _)) => self.kill_all(pod, id),
            Some((_, pidfd)) => {
                if let Some(watch) = self.watch() {
                    watch.grace((pod, id.clone()), grace);
                }
                match pidfd_send_signal(&*pidfd, self.stop_signal(pod, id)) {
                    Ok(()) | Err(Errno::SRCH) => Ok(()),
                    Err(errno) => Err(errno).attempt(|| format!("signal container {id}")),
                }
            }
        }
    }

    /// The signal that a container's plan says, or TERM.
    fn stop_signal(&self, pod: PodUid, id: &ContainerId) -> Signal {
        let sandbox = self.lock().containers.get(&(pod, id.clone())).map(|known| known.sandbox);
        let plan = sandbox.and_then(|sandbox| plan_in(&self.container_dir(pod, sandbox, id)));
        plan.and_then(|plan| Signal::from_named_raw(plan.stop_signal?)).unwrap_or(Signal::TERM)
    }

    /// KILL now.
    pub fn kill(&self, pod: PodUid, id: &ContainerId) -> Result<(), Fault> {
        match self.living(pod, id)? {
            None => Ok(()),
            Some(_) => self.kill_all(pod, id),
        }
    }

    /// Kills whatever runs in a container.
    pub(super) fn kill_all(&self, pod: PodUid, id: &ContainerId) -> Result<(), Fault> {
        self.cgroups.kill(&self.group_of(pod, id))?;
        // Where there is no group to kill. With the first process of a pid namespace all others end.
        let first = self.lock().containers.get(&(pod, id.clone())).and_then(|known| known.pidfd.clone());
        match first.map_or(Ok(()), |first| pidfd_send_signal(&*first, Signal::KILL)) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(errno) => Err(errno).attempt(|| format!("kill container {id}")),
        }
    }

    /// A container that has not ended, with its pidfd. Of one that has, the exit is told once more: who asks has not heard.
    fn living(&self, pod: PodUid, id: &ContainerId) -> Result<Option<(Phase, Arc<OwnedFd>)>, Fault> {
        let found = {
            let state = self.lock();
            let known = state.containers.get(&(pod, id.clone()));
            known.map(|known| (known.phase.clone(), known.pidfd.clone()))
        };
        match found {
            None => Err(Fault::refused(format!("container {id} not found"))),
            Some((Phase::Ended(record), _)) => {
                self.tell(Fact::ContainerExited { pod, container: id.clone(), exit: exit(&record) });
                Ok(None)
            }
            Some((phase, Some(pidfd))) => Ok(Some((phase, pidfd))),
            Some((_, None)) => {
                Err(Fault::uncertain(format!("container {id} can't be reached: no pidfd of it")))
            }
        }
    }

    /// Removes a dead container: its record, scratch, log and groups. Not there is success.
    pub fn remove(&self, pod: PodUid, id: &ContainerId) -> Result<(), Fault> {
        let key = (pod, id.clone());
        let found = {
            let state = self.lock();
            let known = state.containers.get(&key).map(|known| (known.sandbox, known.phase.clone()));
            known.map(|(sandbox, phase)| {
                (sandbox, phase, state.sandboxes.get(&(pod, sandbox)).map(|s| s.link.clone()))
            })
        };
        if let Some((sandbox, phase, link)) = found {
            match phase {
                Phase::Running { .. } => {
                    return Err(Fault::refused(format!("container {id} is running: stop it first")));
                }
                // It never ran, and never will: whoever removes it needs no exit of it.
                Phase::Created => self.discard(&key)?,
                Phase::Ended(_) => {}
            }
            if let Some(link) = link {
                link.call(Ask::Forget { id: layout::container_file(id) }, &[]).map(drop)?;
            }
            failpoint::hit("remove.forgotten");
            self.cgroups.remove(&self.group_of(pod, id))?;
            remove_dir(&self.container_dir(pod, sandbox, id))?;
            self.lock().containers.remove(&key);
            failpoint::hit("remove.done");
        }
        self.remove_log(pod, id)
    }

    /// Ends a parked container without telling of it.
    fn discard(&self, key: &(PodUid, ContainerId)) -> Result<(), Fault> {
        if let Some(known) = self.lock().containers.get_mut(key) {
            known.discarded = true;
        }
        self.kill_all(key.0, &key.1)?;
        let ended = self.wait_until(|runtime| {
            let state = runtime.lock();
            state.containers.get(key).is_none_or(|known| matches!(known.phase, Phase::Ended(_)))
        });
        if ended {
            Ok(())
        } else {
            Err(Fault::uncertain(format!("container {} does not end, though killed", key.1)))
        }
    }

    /// Changes a running container's limits in place.
    pub fn resize(&self, pod: PodUid, id: &ContainerId, resources: &Resources) -> Result<(), Fault> {
        match self.living(pod, id)? {
            Some(_) if self.cgroups.has_limits() => self.cgroups.limit(&self.group_of(pod, id), resources),
            Some(_) => {
                Err(Fault::refused("this host has no cpu and memory controllers to limit a container with"))
            }
            None => Err(Fault::refused(format!("container {id} is not running"))),
        }
    }

    /// Changes the pod's own limits.
    pub fn resize_pod(&self, pod: PodUid, resources: &Resources) -> Result<(), Fault> {
        if !self.cgroups.has_limits() {
            return Err(Fault::refused("this host has no cpu and memory controllers to limit a pod with"));
        }
        self.cgroups.limit(&pod_group(pod), resources)
    }
}

/// The names of a pod's directories among all pods' logs.
fn log_dirs(pods: &OwnedFd, pod: PodUid) -> Vec<String> {
    let suffix = format!("_{pod}");
    let names = beneath::names(pods).unwrap_or_default().into_iter();
    names.map(|name| name.to_string_lossy().into_owned()).filter(|name| name.ends_with(&suffix)).collect()
}

/// The plan that is on disk in a container's directory.
pub(super) fn plan_in(dir: &Path) -> Option<ContainerPlan> {
    serde_json::from_slice(&fs::read(dir.join("plan.json")).ok()?).ok()
}

/// The file for what a container says about its end, unless it mounts something there itself.
fn last_words_mount(new: &NewContainer<'_>, dir: &Path) -> Result<Option<(PlannedMount, OwnedFd)>, Fault> {
    let manifest = nodefold_k8s::blob_to_json(&new.spec.rest);
    let target = manifest["terminationMessagePath"].as_str().unwrap_or("/dev/termination-log");
    if target.is_empty() || new.mounts.iter().any(|mounted| *mounted.mount.mount_path == *target) {
        return Ok(None);
    }
    let path = dir.join(last_words::FILE);
    fs::write(&path, "").attempt(|| format!("make {}", path.display()))?;
    // Whatever user it runs as.
    let anybody = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    fs::set_permissions(&path, anybody).attempt(|| format!("open up {}", path.display()))?;
    let copy =
        mounts::place(&path).and_then(mounts::clone_of).attempt(|| format!("copy {}", path.display()))?;
    Ok(Some((PlannedMount { target: target.to_owned(), directory: false }, copy)))
}

/// A writable root over an image that stays as it is. Where nothing else keeps a container from devices, those that an image
/// brings are dead.
/// In a user namespace the image is shown as that has its owners, and what is new belongs to its root.
fn overlay(
    lower: &Path,
    (upper, work): (&Path, &Path),
    no_devices: bool,
    is_roots: bool,
    users: Option<&PodUsers>,
) -> Result<OwnedFd, Fault> {
    let shown = match users {
        Some(users) => {
            let (uid, gid) = (Uid::from_raw(users.ids.first), Gid::from_raw(users.ids.first));
            chown(upper, Some(uid), Some(gid)).attempt(|| format!("give {} to the pod", upper.display()))?;
            let image =
                mounts::place(lower).and_then(mounts::clone_of).attempt(|| "copy the image's mount")?;
            sys::map_ids(&image, &*users.namespace)
                .attempt(|| "show the image as the pod's user namespace has its owners")?;
            Some(image)
        }
        None => None,
    };
    let lower = shown.as_ref().map_or_else(|| lower.to_owned(), |image| mounts::path_in(image, ""));
    let quiet = if no_devices { MountAttrFlags::MOUNT_ATTR_NODEV } else { MountAttrFlags::empty() };
    mounts::overlay(&lower, (upper, work), is_roots, MountAttrFlags::MOUNT_ATTR_RELATIME | quiet)
}

/// A file that is nowhere, with these bytes.
fn in_memory(bytes: &[u8]) -> Result<OwnedFd, Fault> {
    let file = memfd_create("plan", MemfdFlags::CLOEXEC).attempt(|| "make a memory file")?;
    let mut file = fs::File::from(file);
    file.write_all(bytes).and_then(|()| file.rewind()).attempt(|| "write a memory file")?;
    Ok(file.into())
}
