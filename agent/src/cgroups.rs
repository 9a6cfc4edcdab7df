//! Control groups on hosts with version 1, 2 or both: a directory for each pod and one below it for each container, limits
//! where the kernel has the controller, and killing as a whole (linux-executor §8). Names are the node's own; nothing
//! outside of them is touched.

use crate::fault::{Attempt, Fault};
use crate::ids::Ids;
use crate::pod::plan::CgroupMount;
use crate::{beneath, device_rules};
use nodefold_core::resources::{ResourceName, Resources};
use nodefold_core::time::Nanos;
use rustix::fd::OwnedFd;
use rustix::fs::{Access, Mode, OFlags, access, open};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The controllers of version 1 that a container is put into.
const V1: [&str; 8] = ["cpu", "cpuacct", "cpuset", "memory", "pids", "devices", "freezer", "blkio"];
/// How often, and after how long, a group that is busy with dying processes is looked at again: ten seconds in all.
const MOST_LOOKS: u32 = 500;
const LOOK_AGAIN: Nanos = Nanos::millis(20);
/// The kernel's period for CPU quotas, as the kubelet uses it.
const PERIOD_MICROS: u64 = 100_000;

/// The host's hierarchies.
#[derive(Clone, Debug)]
pub struct Cgroups {
    /// The node's directory in each hierarchy.
    name: String,
    /// Where version 2 is mounted.
    v2: Option<PathBuf>,
    /// Version 2 has the cpu and memory controllers.
    v2_limits: bool,
    /// Without version 1's controller for devices a program keeps groups of version 2 from them.
    devices_by_program: bool,
    /// Where each controller of version 1 is mounted. Several may share one hierarchy.
    v1: BTreeMap<&'static str, PathBuf>,
    /// Where hierarchies of version 1 without controllers are mounted, by name.
    named: BTreeMap<String, PathBuf>,
}

/// What a new process needs to begin in a group.
pub struct Entrance {
    /// The group of version 2, to be cloned into.
    pub into: Option<OwnedFd>,
    /// `cgroup.procs` of the groups of version 1.
    pub joins: Vec<OwnedFd>,
    /// A file that counts OOM kills.
    pub oom: Option<OwnedFd>,
}

impl Cgroups {
    /// The hierarchies that this host has mounted, or what of version 2 was delegated to a user who is not root: that may be
    /// nothing. `name` is the node's group in each.
    pub fn detect(name: String) -> Result<Cgroups, Fault> {
        let mounts = fs::read_to_string("/proc/self/mounts").attempt(|| "read /proc/self/mounts")?;
        let (mut v2, mut v1, mut named) = (None, BTreeMap::new(), BTreeMap::new());
        for line in mounts.lines() {
            let fields: Vec<&str> = line.split(' ').collect();
            let [_, place, kind, options, ..] = fields.as_slice() else { continue };
            match *kind {
                "cgroup2" => v2 = v2.or(Some(PathBuf::from(place))),
                "cgroup" => {
                    for option in options.split(',') {
                        if let Some(name) = option.strip_prefix("name=") {
                            named.entry(name.to_owned()).or_insert_with(|| PathBuf::from(place));
                        }
                        if let Some(known) = V1.iter().find(|known| **known == option) {
                            v1.entry(*known).or_insert_with(|| PathBuf::from(place));
                        }
                    }
                }
                _ => {}
            }
        }
        if !Ids::here()?.are_the_hosts() {
            let own = fs::read_to_string("/proc/self/cgroup").attempt(|| "read /proc/self/cgroup")?;
            v2 = v2.and_then(|root| delegated(&root, &own));
            (v1, named) = (BTreeMap::new(), BTreeMap::new());
        }
        let controllers = v2
            .as_ref()
            .and_then(|root: &PathBuf| fs::read_to_string(root.join("cgroup.controllers")).ok())
            .unwrap_or_default();
        let has = |wanted: &str| controllers.split_whitespace().any(|known| known == wanted);
        let v2_limits = has("memory") && has("cpu");
        let devices_by_program =
            !v1.contains_key("devices") && v2.is_some() && device_rules::loaded().is_ok();
        Ok(Cgroups { name, v2, v2_limits, devices_by_program, v1, named })
    }

    /// The hierarchies as a container is shown them, by where the host has them. Where there are some of version 1, the one of
    /// version 2 is the host's own affair, as runtimes have it.
    pub fn shown(&self) -> Vec<CgroupMount> {
        if self.v1.is_empty() {
            let kind = "cgroup2".to_owned();
            let v2 = CgroupMount { place: String::new(), kind, controllers: Vec::new(), name: None };
            return self.v2.iter().map(|_| v2.clone()).collect();
        }
        let mut places: BTreeMap<&PathBuf, Vec<String>> = BTreeMap::new();
        for (controller, place) in &self.v1 {
            places.entry(place).or_default().push((*controller).to_owned());
        }
        let named = self.named.iter().map(|(name, place)| (place, Vec::new(), Some(name.clone())));
        let controlled = places.into_iter().map(|(place, controllers)| (place, controllers, None));
        controlled
            .chain(named)
            .map(|(place, controllers, name)| CgroupMount {
                place: place.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                kind: "cgroup".to_owned(),
                controllers,
                name,
            })
            .collect()
    }

    /// Whether this process may make groups: each hierarchy that there is is used.
    pub fn writable(&self) -> Result<(), Fault> {
        self.roots().into_iter().try_for_each(|root| {
            access(root, Access::WRITE_OK | Access::EXEC_OK)
                .attempt(|| format!("write to {}", root.display()))
        })
    }

    /// Whether there is no group at all: nobody delegated one.
    pub fn are_none(&self) -> bool {
        self.roots().is_empty()
    }

    /// Whether containers can be limited at all.
    pub fn has_limits(&self) -> bool {
        self.v2_limits || (self.v1.contains_key("cpu") && self.v1.contains_key("memory"))
    }

    /// Whether a group can be killed as a whole by the kernel.
    pub fn kills_as_a_whole(&self) -> bool {
        self.v2.is_some()
    }

    /// Whether containers can be kept from devices.
    pub fn has_device_rules(&self) -> bool {
        self.v1.contains_key("devices") || self.devices_by_program
    }

    fn roots(&self) -> Vec<&PathBuf> {
        let mut roots: Vec<&PathBuf> = self.v2.iter().chain(self.v1.values()).collect();
        roots.sort();
        roots.dedup();
        roots
    }

    fn own(&self, root: &Path, group: &str) -> PathBuf {
        root.join(&self.name).join(group)
    }

    /// Makes a group (`pod` or `pod/container`) in every hierarchy, its parents too. There already is success.
    pub fn make(&self, group: &str) -> Result<(), Fault> {
        for root in self.roots() {
            let is_cpuset = self.v1.get("cpuset") == Some(root);
            let hands_down = self.v2_limits && self.v2.as_ref() == Some(root);
            // Mostly its parents are there.
            let whole = self.own(root, group);
            if !hands_down && fs::create_dir(&whole).is_ok() && (!is_cpuset || has_cpuset(&whole)) {
                continue;
            }
            let own = root.join(&self.name);
            make_group(&own)?;
            let mut path = own;
            for part in Path::new(group).components() {
                self.hand_down(&path)?;
                path.push(part);
                make_group(&path)?;
                if is_cpuset {
                    inherit_cpuset(&path)?;
                }
            }
        }
        Ok(())
    }

    /// On version 2 a group's children get only the controllers that it hands down.
    fn hand_down(&self, path: &Path) -> Result<(), Fault> {
        let is_v2 = self.v2.as_ref().is_some_and(|root| path.starts_with(root));
        if !is_v2 || !self.v2_limits {
            return Ok(());
        }
        let mut at = self.v2.clone().unwrap_or_default();
        let below = path.strip_prefix(&at).unwrap_or(Path::new("")).to_owned();
        for part in std::iter::once(Path::new("")).chain(below.iter().map(Path::new)) {
            at.push(part);
            let control = at.join("cgroup.subtree_control");
            fs::write(&control, "+cpu +memory +pids").attempt(|| format!("write {}", control.display()))?;
        }
        Ok(())
    }

    /// `cgroup.procs` of a group in every hierarchy, by path: how a shim enters.
    pub fn procs(&self, group: &str) -> Vec<PathBuf> {
        self.roots().into_iter().map(|root| self.own(root, group).join("cgroup.procs")).collect()
    }

    /// What a process needs to begin in a group.
    pub fn entrance(&self, group: &str) -> Result<Entrance, Fault> {
        let open_at = |path: PathBuf, flags: OFlags| {
            open(&path, flags | OFlags::CLOEXEC, Mode::empty()).attempt(|| format!("open {}", path.display()))
        };
        let into = match &self.v2 {
            Some(root) => Some(open_at(self.own(root, group), OFlags::RDONLY | OFlags::DIRECTORY)?),
            None => None,
        };
        let mut roots: Vec<&PathBuf> = self.v1.values().collect();
        roots.sort();
        roots.dedup();
        let mut joins = Vec::new();
        for root in roots {
            joins.push(open_at(self.own(root, group).join("cgroup.procs"), OFlags::WRONLY)?);
        }
        let counter = match (self.v1.get("memory"), &self.v2) {
            (Some(root), _) => Some(self.own(root, group).join("memory.oom_control")),
            (None, Some(root)) if self.v2_limits => Some(self.own(root, group).join("memory.events")),
            (None, _) => None,
        };
        let oom = counter.map(|path| open_at(path, OFlags::RDONLY)).transpose()?;
        Ok(Entrance { into, joins, oom })
    }

    /// Sets a group's limits: shares from the CPU request, quota from its limit, memory from its limit. The order in which a
    /// pod and its containers must change is the caller's.
    pub fn limit(&self, group: &str, resources: &Resources) -> Result<(), Fault> {
        if !self.has_limits() {
            return Ok(());
        }
        let cpu_request = resources.requests.given(&ResourceName::Cpu);
        let cpu_limit = resources.limits.given(&ResourceName::Cpu);
        let memory = resources.limits.given(&ResourceName::Memory);
        // kubelet: 1024 shares a CPU, at least 2; a request that isn't there counts as the limit.
        let shares = (cpu_request.or(cpu_limit).unwrap_or(0) * 1024 / 1000).clamp(2, 262_144);
        // At least a millisecond a period.
        let quota =
            cpu_limit.filter(|milli| *milli > 0).map(|milli| (milli * PERIOD_MICROS / 1000).max(1000));
        if let Some(root) = self.v1.get("cpu") {
            let at = self.own(root, group);
            set(&at, "cpu.shares", &shares.to_string())?;
            set(&at, "cpu.cfs_period_us", &PERIOD_MICROS.to_string())?;
            set(&at, "cpu.cfs_quota_us", &quota.map_or("-1".into(), |quota| quota.to_string()))?;
        }
        if let Some(root) = self.v1.get("memory") {
            let at = self.own(root, group);
            set(&at, "memory.limit_in_bytes", &memory.map_or("-1".into(), |bytes| bytes.to_string()))?;
        }
        if let Some(root) = self.v2.as_ref().filter(|_| self.v2_limits) {
            let at = self.own(root, group);
            // As runc converts: 2..262144 shares to 1..10000 of weight.
            let weight = 1 + (shares - 2) * 9999 / 262_142;
            set(&at, "cpu.weight", &weight.to_string())?;
            let max = quota.map_or("max".into(), |quota| quota.to_string());
            set(&at, "cpu.max", &format!("{max} {PERIOD_MICROS}"))?;
            self.refuse_below_use(&at, memory)?;
            set(&at, "memory.max", &memory.map_or("max".into(), |bytes| bytes.to_string()))?;
        }
        Ok(())
    }

    /// On version 2 a container that is out of memory ends as a whole, as a kubelet has it there since 1.28.
    pub fn out_of_memory_together(&self, group: &str) -> Result<(), Fault> {
        let root = self.v2.as_ref().filter(|_| self.v2_limits);
        root.map_or(Ok(()), |root| set(&self.own(root, group), "memory.oom.group", "1"))
    }

    /// Version 2 takes a memory limit below what is used, and kills: so it is refused before (§8).
    fn refuse_below_use(&self, at: &Path, memory: Option<u64>) -> Result<(), Fault> {
        let Some(limit) = memory else { return Ok(()) };
        let used = fs::read_to_string(at.join("memory.current"))
            .ok()
            .and_then(|text| text.trim().parse::<u64>().ok());
        match used {
            Some(used) if used > limit => {
                Err(Fault::transient(format!("{used} bytes are in use, more than the new limit of {limit}")))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Allows a group the devices that every container has, and no other; all of them, for one that is privileged.
    pub fn devices(&self, group: &str, privileged: bool) -> Result<(), Fault> {
        const ALLOWED: [&str; 10] = [
            "c *:* m",
            "b *:* m",
            "c 1:3 rwm",
            "c 1:5 rwm",
            "c 1:7 rwm",
            "c 1:8 rwm",
            "c 1:9 rwm",
            "c 5:0 rwm",
            "c 5:2 rwm",
            "c 136:* rwm",
        ];
        let Some(root) = self.v1.get("devices") else {
            let held = self.v2.as_ref().filter(|_| self.devices_by_program && !privileged);
            return held
                .map_or(Ok(()), |root| device_rules::hold_to(beneath::open_root(&self.own(root, group))?));
        };
        let at = self.own(root, group);
        if privileged {
            return set(&at, "devices.allow", "a");
        }
        set(&at, "devices.deny", "a")?;
        let allow = at.join("devices.allow");
        let told = || format!("write to {}", allow.display());
        let mut file = fs::OpenOptions::new().write(true).open(&allow).attempt(told)?;
        // One rule a write.
        ALLOWED.iter().try_for_each(|rule| file.write_all(rule.as_bytes())).attempt(told)
    }

    /// Whether a process lives in the group.
    pub fn is_populated(&self, group: &str) -> bool {
        match &self.v2 {
            Some(root) => {
                let events = fs::read_to_string(self.own(root, group).join("cgroup.events"));
                events.is_ok_and(|text| text.lines().any(|line| line == "populated 1"))
            }
            None => !self.members(group).is_empty(),
        }
    }

    /// The processes of a group itself.
    pub fn members(&self, group: &str) -> Vec<i32> {
        let mut members = Vec::new();
        for procs in self.procs(group) {
            let text = fs::read_to_string(procs).unwrap_or_default();
            members.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
        }
        members.sort_unstable();
        members.dedup();
        members
    }

    /// Kills every process of a group and of those below it. There is no such group: success.
    pub fn kill(&self, group: &str) -> Result<(), Fault> {
        if let Some(root) = &self.v2 {
            let kill = self.own(root, group).join("cgroup.kill");
            match fs::write(&kill, "1") {
                Ok(()) => return Ok(()),
                Err(error)
                    if error.kind() == std::io::ErrorKind::NotFound
                        && !kill.parent().is_some_and(Path::exists) =>
                {
                    return Ok(());
                }
                // Before 5.14: one by one, below.
                Err(_) => {}
            }
        }
        for pid in self.members(group) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                match rustix::process::kill_process(pid, rustix::process::Signal::KILL) {
                    Ok(()) | Err(Errno::SRCH) => {}
                    Err(errno) => return Err(errno).attempt(|| format!("kill a process of {group}")),
                }
            }
        }
        Ok(())
    }

    /// Removes an empty group and the empty ones below it. Not there is success.
    pub fn remove(&self, group: &str) -> Result<(), Fault> {
        for root in self.roots() {
            remove_groups(&self.own(root, group))?;
        }
        Ok(())
    }

    /// Removes the node's own group, if nothing is left in it. Not empty is no fault.
    pub fn remove_own(&self) -> Result<(), Fault> {
        for root in self.roots() {
            let own = root.join(&self.name);
            match fs::remove_dir(&own) {
                Ok(()) => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::NotFound
                            | std::io::ErrorKind::ResourceBusy
                            | std::io::ErrorKind::DirectoryNotEmpty
                    ) => {}
                Err(error) => return Err(error).attempt(|| format!("remove {}", own.display())),
            }
        }
        Ok(())
    }

    /// Every group of the node's that is there, by path: nothing, when the node left nothing.
    pub fn left(&self) -> Vec<PathBuf> {
        self.roots().into_iter().map(|root| root.join(&self.name)).filter(|path| path.exists()).collect()
    }

    /// The names of the groups directly below one.
    pub fn below(&self, group: &str) -> Vec<String> {
        let mut names = Vec::new();
        for root in self.roots() {
            for entry in fs::read_dir(self.own(root, group)).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    names.push(entry.file_name().to_string_lossy().into_owned());
                }
            }
        }
        names.sort();
        names.dedup();
        names
    }

    /// The pods that have a group.
    pub fn pods(&self) -> Vec<String> {
        self.below("")
    }
}

/// The uppermost group of version 2 that this process' user may divide and move processes about in, from the process' own on up:
/// between two groups only who may write to one above both moves anything.
fn delegated(root: &Path, own: &str) -> Option<PathBuf> {
    let own = root.join(own.lines().find_map(|line| line.strip_prefix("0::/"))?);
    let may_write = |path: PathBuf| access(&path, Access::WRITE_OK).is_ok();
    let is_given = |at: &&Path| {
        at.starts_with(root)
            && ["", "cgroup.procs", "cgroup.subtree_control"].iter().all(|file| may_write(at.join(file)))
    };
    own.ancestors().take_while(is_given).last().map(Path::to_owned)
}

fn make_group(path: &Path) -> Result<(), Fault> {
    match fs::create_dir(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error).attempt(|| format!("make the cgroup {}", path.display())),
    }
}

/// Whether something may enter a group of the cpuset controller.
fn has_cpuset(path: &Path) -> bool {
    ["cpuset.cpus", "cpuset.mems"]
        .iter()
        .all(|file| fs::read_to_string(path.join(file)).is_ok_and(|text| !text.trim().is_empty()))
}

/// A new cpuset of version 1 is empty, and nothing may enter it. Those below it are as it is.
fn inherit_cpuset(path: &Path) -> Result<(), Fault> {
    let Some(parent) = path.parent() else { return Ok(()) };
    // The node's own group first.
    for at in [parent, path] {
        for file in ["cpuset.cpus", "cpuset.mems"] {
            let is_empty = fs::read_to_string(at.join(file)).is_ok_and(|text| text.trim().is_empty());
            if let (true, Some(above)) = (is_empty, at.parent()) {
                let inherited = fs::read_to_string(above.join(file)).attempt(|| format!("read {file}"))?;
                set(at, file, inherited.trim())?;
            }
        }
        set(at, "cgroup.clone_children", "1")?;
    }
    Ok(())
}

fn set(at: &Path, file: &str, value: &str) -> Result<(), Fault> {
    let path = at.join(file);
    fs::write(&path, value).attempt(|| format!("write {value:?} to {}", path.display()))
}

fn remove_groups(path: &Path) -> Result<(), Fault> {
    let below = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).attempt(|| format!("list {}", path.display())),
    };
    for entry in below.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups(&entry.path())?;
        }
    }
    // It was killed, or has ended: but a process is in its group until it is dead, a moment after it has closed what it had open,
    // and in one of version 1 until it is reaped, which process 1 does lazily (linux-executor §1.4). To fail here would put the
    // next attempt off for ever longer, for what is over in a moment.
    let mut left = MOST_LOOKS;
    loop {
        match fs::remove_dir(path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy && left > 0 => {
                left -= 1;
                crate::clock::pause(LOOK_AGAIN);
            }
            Err(error) => return Err(error).attempt(|| format!("remove the cgroup {}", path.display())),
        }
    }
}
