//! Sandboxes: a pod's shim, its cgroups and its directory.

use super::{Phase, PodUsers, Runtime, Sandbox, pod_group, remove_dir, shim_group};
use crate::beneath;
use crate::compose;
use crate::failpoint;
use crate::fault::{Attempt, Fault};
use crate::fields::PodFields;
use crate::layout;
use crate::pod::found;
use crate::pod::plan::{ExitRecord, SandboxPlan, UserIds};
use crate::pod::shim;
use crate::pod::wire::Ask;
use crate::runtime::link::Link;
use crate::users;
use nodefold_core::event::Fact;
use nodefold_core::ids::{ContainerId, PodUid};
use nodefold_core::resources::{ResourceList, ResourceName, Resources};
use nodefold_core::spec::{Pod, PodSpec};
use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// /dev/shm of a pod, as containerd makes it.
const SHM_BYTES: u64 = 64 << 20;
/// Killed processes are gone well within this; more means that the kernel can't end them.
const KILLED_WITHIN: Duration = Duration::from_secs(20);

impl Runtime {
    /// Makes a pod's sandbox. There already is success.
    pub fn create_sandbox(
        self: &Arc<Runtime>,
        attempt: u32,
        pod: &Pod,
        allocated: &PodSpec,
    ) -> Result<(), Fault> {
        let uid = pod.uid;
        if self.lock().sandboxes.get(&(uid, attempt)).is_some_and(|sandbox| !sandbox.link.is_closed()) {
            return Ok(());
        }
        let manifest = nodefold_k8s::blob_to_json(&allocated.rest);
        let made = self.make_sandbox(attempt, pod, allocated, &manifest);
        if made.is_err() {
            // What was made of it goes again, so that the next attempt begins anew; a shim that came up is killed.
            self.kill_shim(uid, attempt).ok();
            self.remove_sandbox_files(uid, attempt).ok();
        }
        made
    }

    fn make_sandbox(
        self: &Arc<Runtime>,
        attempt: u32,
        pod: &Pod,
        allocated: &PodSpec,
        manifest: &serde_json::Value,
    ) -> Result<(), Fault> {
        let uid = pod.uid;
        if !self.ids.are_the_hosts() {
            self.refuse_what_is_roots(allocated, manifest)?;
        }
        failpoint::hit("sandbox.begun");
        let dir = self.sandbox_dir(uid, attempt);
        for inner in ["c", "etc"] {
            let inner = dir.join(inner);
            fs::create_dir_all(&inner).attempt(|| format!("make {}", inner.display()))?;
        }
        let allocatable = self.allocatable();
        let fields = PodFields {
            pod,
            spec: allocated,
            allocatable: &allocatable,
            node_name: &self.node_name,
            pod_ip: (!allocated.host_network).then_some(super::POD_ADDRESS),
        };
        let hostname = match allocated.host_network {
            true => rustix::system::uname().nodename().to_string_lossy().into_owned(),
            false => compose::hostname(&fields),
        };
        self.write_etc(&dir.join("etc"), &hostname, manifest, allocated.host_network)?;
        let group = shim_group(uid, attempt);
        self.cgroups.make(&group)?;
        failpoint::hit("sandbox.grouped");
        self.limit_pod(uid, allocated);
        let plan = SandboxPlan {
            dir: dir.display().to_string(),
            hostname,
            host_network: allocated.host_network,
            host_ipc: manifest["hostIPC"].as_bool().unwrap_or(false),
            shares_processes: manifest["shareProcessNamespace"].as_bool().unwrap_or(false),
            sysctls: sysctls(manifest)?,
            joins: self.cgroups.procs(&group).iter().map(|path| path.display().to_string()).collect(),
            shm_bytes: SHM_BYTES,
            reopens_logs: true,
            keeps_spares: true,
            users: self.users_for(uid, allocated, manifest)?,
            rootless: !self.ids.are_the_hosts(),
        };
        let text = serde_json::to_vec(&plan).map_err(|error| Fault::refused(error.to_string()))?;
        let path = dir.join("sandbox.json");
        fs::write(&path, text).attempt(|| format!("write {}", path.display()))?;
        failpoint::hit("sandbox.planned");
        let mut child = Command::new(&self.shim_program)
            .arg(shim::ARGUMENT)
            .arg(&path)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .attempt(|| format!("start the pod's shim ({})", self.shim_program.display()))?;
        let told = hear(&mut child);
        if told != shim::READY {
            child.kill().and_then(|()| child.wait()).attempt(|| "end a shim that did not come up")?;
            return Err(Fault::refused(format!("the pod's shim did not come up: {told}")));
        }
        failpoint::hit("sandbox.up");
        self.connect(uid, attempt, Some(child))?;
        failpoint::hit("sandbox.connected");
        self.want_spare(uid, attempt);
        Ok(())
    }

    /// What a pod can't have of a node that is in a user namespace.
    fn refuse_what_is_roots(&self, allocated: &PodSpec, manifest: &serde_json::Value) -> Result<(), Fault> {
        let says = |field: &str, value: bool| manifest[field].as_bool() == Some(value);
        let asked = [
            ("hostNetwork: true", allocated.host_network, "the network namespace is the host's root's"),
            ("hostPID: true", says("hostPID", true), "the pid namespace is the host's root's"),
            ("hostIPC: true", says("hostIPC", true), "the ipc namespace is the host's root's"),
            ("hostUsers: false", says("hostUsers", false), "the node has no ids to give a pod for itself"),
            (
                "shareProcessNamespace: true",
                says("shareProcessNamespace", true) && self.cgroups.are_none(),
                "without control groups nothing would end what a container leaves behind",
            ),
        ];
        match asked.into_iter().find(|(_, is_asked, _)| *is_asked) {
            Some((field, _, why)) => {
                Err(Fault::refused(format!("{field} can't be had of a rootless node: {why}")))
            }
            None => Ok(()),
        }
    }

    /// The ids of a pod's user namespace, if it asks for one: those that it has, or the first that no other pod has.
    fn users_for(
        &self,
        pod: PodUid,
        allocated: &PodSpec,
        manifest: &serde_json::Value,
    ) -> Result<Option<UserIds>, Fault> {
        if manifest["hostUsers"].as_bool() != Some(false) {
            return Ok(None);
        }
        let of_host = |field: &str| manifest[field].as_bool() == Some(true);
        let other = [
            ("hostNetwork", allocated.host_network),
            ("hostPID", of_host("hostPID")),
            ("hostIPC", of_host("hostIPC")),
        ];
        if let Some((field, _)) = other.into_iter().find(|(_, is_wanted)| *is_wanted) {
            return Err(Fault::refused(format!("{field} can't be had with hostUsers: false")));
        }
        let mut state = self.lock();
        let ids = match state.users.get(&pod) {
            Some(ids) => *ids,
            None => users::free(state.users.values())?,
        };
        state.users.insert(pod, ids);
        Ok(Some(ids))
    }

    /// Connects to a sandbox's shim and hears of exits from now on.
    pub(super) fn connect(
        self: &Arc<Runtime>,
        pod: PodUid,
        attempt: u32,
        child: Option<Child>,
    ) -> Result<(), Fault> {
        let dir = beneath::open_root(&self.sandbox_dir(pod, attempt))?;
        let (for_exits, for_end) = (Arc::downgrade(self), Arc::downgrade(self));
        let exited = move |file: String, record: ExitRecord| {
            if let (Some(runtime), Some(id)) = (for_exits.upgrade(), layout::container_of_file(&file)) {
                runtime.exited(pod, &id, record);
            }
        };
        let closed = move || {
            if let Some(runtime) = for_end.upgrade() {
                runtime.link_closed(pod, attempt);
            }
            // The shim of this agent's own: reaped. (Others' are process 1's.) It may live on if only the link was given up;
            // then this waits on a thread that nobody needs.
            if let Some(mut child) = child {
                child.wait().ok();
            }
        };
        let link = Link::connect(&dir, exited, closed)?;
        let plan = self.sandbox_plan(pod, attempt);
        let users = match plan.as_ref().and_then(|plan| plan.users) {
            Some(ids) => Some(namespace_of(&link, ids)?),
            None => None,
        };
        let sandbox = Sandbox {
            link: link.clone(),
            stopping: false,
            reopens_logs: plan.as_ref().is_some_and(|plan| plan.reopens_logs),
            keeps_spares: plan.as_ref().is_some_and(|plan| plan.keeps_spares),
            spare: None,
            next_slot: 0,
            preparing: Arc::default(),
            users,
        };
        self.lock().sandboxes.insert((pod, attempt), sandbox);
        link.call(Ask::Subscribe, &[]).map(drop)
    }

    /// A shim ended, or its link was given up. If nobody wanted that, its containers can't be held any more: they are killed,
    /// and the pod's sandbox is told as stopped (linux-executor §5).
    fn link_closed(&self, pod: PodUid, attempt: u32) {
        let (stopping, orphans) = {
            let mut state = self.lock();
            let Some(sandbox) = state.sandboxes.remove(&(pod, attempt)) else { return };
            let orphans: Vec<ContainerId> = state
                .containers
                .iter()
                .filter(|((of, _), known)| {
                    *of == pod && known.sandbox == attempt && !matches!(known.phase, Phase::Ended(_))
                })
                .map(|((_, id), _)| id.clone())
                .collect();
            (sandbox.stopping, orphans)
        };
        self.changed.notify_all();
        if stopping {
            return;
        }
        for id in orphans {
            self.kill_all(pod, &id).ok();
        }
        self.tell(Fact::SandboxStopped { pod, attempt });
    }

    /// Stops a sandbox: kills what still runs in it, waits until all exits are known, and ends the shim. Gone is success.
    pub fn stop_sandbox(&self, pod: PodUid, attempt: u32) -> Result<(), Fault> {
        let sandbox = {
            let mut state = self.lock();
            let found = state.sandboxes.get_mut(&(pod, attempt));
            found.map(|sandbox| {
                sandbox.stopping = true;
                sandbox.clone()
            })
        };
        let link = sandbox.map(|sandbox| {
            sandbox.until_prepared();
            sandbox.link
        });
        for id in self.living_in(pod, attempt) {
            self.kill_all(pod, &id)?;
        }
        self.wait_until(|runtime| runtime.living_in(pod, attempt).is_empty()).then_some(()).ok_or_else(
            || {
                Fault::uncertain(format!(
                    "containers of sandbox {attempt} of pod {pod} do not end, though killed"
                ))
            },
        )?;
        if let Some(link) = link {
            match link.call(Ask::Quit, &[]) {
                Ok(_) => {}
                Err(_) if link.is_closed() => {}
                Err(fault) => return Err(fault),
            }
            self.wait_until(|runtime| !runtime.lock().sandboxes.contains_key(&(pod, attempt)));
        }
        // A shim that this agent never was connected to, or that hangs.
        self.kill_shim(pod, attempt)?;
        failpoint::hit("sandbox.stopped");
        Ok(())
    }

    /// Kills a sandbox' shim, and all containers that no group has: those end with it.
    fn kill_shim(&self, pod: PodUid, attempt: u32) -> Result<(), Fault> {
        self.cgroups.kill(&shim_group(pod, attempt))?;
        if self.cgroups.are_none() {
            found::end_all(&self.sandbox_dir(pod, attempt))?;
        }
        Ok(())
    }

    fn living_in(&self, pod: PodUid, attempt: u32) -> Vec<ContainerId> {
        let state = self.lock();
        let of_sandbox = state.containers.iter().filter(|((of, _), known)| {
            *of == pod && known.sandbox == attempt && !matches!(known.phase, Phase::Ended(_))
        });
        of_sandbox.map(|((_, id), _)| id.clone()).collect()
    }

    /// Waits until something holds, looked at whenever a container ended or a link closed. False: it still doesn't.
    pub(super) fn wait_until(&self, holds: impl Fn(&Runtime) -> bool) -> bool {
        let mut left = 100;
        while !holds(self) {
            if left == 0 {
                return false;
            }
            left -= 1;
            let state = self.lock();
            // Woken by each change; the timeout only bounds the whole.
            drop(
                self.changed.wait_timeout(state, KILLED_WITHIN / 100).unwrap_or_else(PoisonError::into_inner),
            );
        }
        true
    }

    /// Removes a stopped sandbox.
    pub fn remove_sandbox(&self, pod: PodUid, attempt: u32) -> Result<(), Fault> {
        if self.lock().sandboxes.contains_key(&(pod, attempt)) {
            return Err(Fault::refused(format!("sandbox {attempt} is still ready: stop it first")));
        }
        self.remove_sandbox_files(pod, attempt)
    }

    fn remove_sandbox_files(&self, pod: PodUid, attempt: u32) -> Result<(), Fault> {
        self.cgroups.remove(&shim_group(pod, attempt))?;
        self.remove_slots(pod, attempt)?;
        let dir = self.sandbox_dir(pod, attempt);
        // Containers that are kept for their exit (their records live in the sandbox's directory) are forgotten with it.
        self.lock().containers.retain(|(of, _), known| *of != pod || known.sandbox != attempt);
        remove_dir(&dir)?;
        failpoint::hit("sandbox.removed");
        let of_pod = dir.parent().map(std::path::Path::to_owned).unwrap_or_default();
        match fs::remove_dir(&of_pod) {
            // The last of the pod's sandboxes: its groups go, too, and the logs of a pod that left none.
            Ok(()) => {
                self.lock().users.remove(&pod);
                self.cgroups.remove(&pod_group(pod))?;
                self.remove_pod_logs(pod)
            }
            Err(_) => Ok(()),
        }
    }

    /// Sets the pod's own group to what its containers may have together. Version 1 refuses to shrink it below a container that
    /// is still there; it is set again with the next one.
    pub(super) fn limit_pod(&self, pod: PodUid, allocated: &PodSpec) {
        self.cgroups.limit(&pod_group(pod), &pod_resources(allocated)).ok();
    }

    fn write_etc(
        &self,
        etc: &std::path::Path,
        hostname: &str,
        manifest: &serde_json::Value,
        host_network: bool,
    ) -> Result<(), Fault> {
        let mut hosts = String::from(
            "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n",
        );
        if host_network {
            hosts = fs::read_to_string("/etc/hosts").unwrap_or(hosts);
        }
        hosts.push_str(&format!("127.0.1.1\t{hostname}\n"));
        for alias in manifest["hostAliases"].as_array().into_iter().flatten() {
            let names: Vec<&str> = alias["hostnames"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|name| name.as_str())
                .collect();
            hosts.push_str(&format!("{}\t{}\n", alias["ip"].as_str().unwrap_or(""), names.join("\t")));
        }
        let resolv = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        for (name, text) in [("hosts", hosts), ("hostname", format!("{hostname}\n")), ("resolv.conf", resolv)]
        {
            fs::write(etc.join(name), text).attempt(|| format!("write {name}"))?;
        }
        Ok(())
    }
}

fn namespace_of(link: &Link, ids: UserIds) -> Result<PodUsers, Fault> {
    let (_, descriptors) = link.call(Ask::Users, &[])?;
    let namespace = descriptors.into_iter().next();
    let namespace = namespace.ok_or_else(|| Fault::uncertain("the shim shows no user namespace"))?;
    Ok(PodUsers { ids, namespace: Arc::new(namespace) })
}

/// What the shim says until it closes its output or says that it is ready.
fn hear(child: &mut Child) -> String {
    let mut told = String::new();
    let Some(mut stdout) = child.stdout.take() else { return told };
    let mut buffer = [0; 1024];
    while told != shim::READY {
        match stdout.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(got) => told.push_str(&String::from_utf8_lossy(&buffer[..got])),
        }
    }
    told
}

/// `sysctls` of the pod as paths below /proc/sys: those of namespaces that the pod has for itself.
fn sysctls(manifest: &serde_json::Value) -> Result<Vec<(String, String)>, Fault> {
    let mut set = Vec::new();
    for sysctl in manifest["securityContext"]["sysctls"].as_array().into_iter().flatten() {
        let name = sysctl["name"].as_str().unwrap_or("");
        let path = name.replace('.', "/");
        let is_own = ["net/", "kernel/shm", "kernel/msg", "kernel/sem", "fs/mqueue/"]
            .iter()
            .any(|prefix| path.starts_with(prefix));
        if !is_own || path.split('/').any(|part| part == ".." || part.is_empty()) {
            return Err(Fault::refused(format!("sysctl {name:?} is not one that a pod has for itself")));
        }
        set.push((path, sysctl["value"].as_str().unwrap_or("").to_owned()));
    }
    Ok(set)
}

/// What a pod's containers may have together: requests in sum; a limit only if every container has one.
pub fn pod_resources(spec: &PodSpec) -> Resources {
    if let Some(resources) = &spec.resources {
        return resources.clone();
    }
    let mut sum = Resources::default();
    let running: Vec<_> = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().filter(|c| PodSpec::is_sidecar(c)))
        .collect();
    for container in &running {
        sum.requests.add(&container.resources.requests);
    }
    let mut limits = ResourceList::default();
    for resource in [ResourceName::Cpu, ResourceName::Memory] {
        let limit_of = |c: &nodefold_core::spec::Container| c.resources.limits.given(&resource);
        let all: Option<Vec<u64>> = running.iter().map(|c| limit_of(c)).collect();
        let init: Option<Vec<u64>> = spec.init_containers.iter().map(|c| limit_of(c)).collect();
        if let (Some(all), Some(init)) = (all, init) {
            let highest = init.into_iter().max().unwrap_or(0);
            limits.set(resource, all.iter().sum::<u64>().max(highest));
        }
    }
    sum.limits = limits;
    sum
}
