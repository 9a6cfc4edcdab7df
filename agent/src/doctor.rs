//! What this host lets the Linux backend do: one line for each thing, and the mode that follows (linux-executor §10).

use crate::cgroups::Cgroups;
use crate::fault::{Attempt, Fault};
use crate::ids::Ids;
use crate::mounts;
use crate::pod::plan::UserIds;
use crate::pod::users;
use crate::sys;
use rustix::fs::mkdirat;
use rustix::mount::MountAttrFlags;
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};
use std::path::Path;

/// How a node can run here.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Everything.
    Full,
    /// Everything but what CAP_SYS_RESOURCE gives: no lower oom_score_adj, no higher rlimits.
    NoSysResource,
    /// In a user namespace of the node's own: what only the host's root has is refused.
    Rootless,
    /// No containers: only the simulated world.
    None,
}

impl Mode {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Full => "full",
            Mode::NoSysResource => "no-sys-resource",
            Mode::Rootless => "rootless",
            Mode::None => "none",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What.
    pub what: &'static str,
    /// It is there.
    pub there: bool,
    /// The backend can't do without.
    pub needed: bool,
    /// What it is, or what follows from its absence and what to do.
    pub detail: String,
}

/// That this process may be a node, and what it then has to do without.
#[derive(Clone, Debug)]
pub struct Allowed {
    lacking: Vec<Finding>,
}

impl Allowed {
    /// What it has to do without, a line for each.
    pub fn lacking(&self) -> impl Iterator<Item = String> {
        self.lacking.iter().map(|lack| format!("without {}: {}", lack.what, lack.detail))
    }
}

/// What this process has no right to, of what a node does. It tries nothing: an agent asks at its start.
fn privileges() -> Vec<Finding> {
    let held = capabilities(None).map(|sets| sets.effective).unwrap_or(CapabilitySet::empty());
    let ids = Ids::here();
    if let Ok(ids) = &ids
        && !ids.are_the_hosts()
    {
        return privileges_of_rootless(held, ids);
    }
    let groups = Cgroups::detect("nodefold-doctor".into()).and_then(|cgroups| cgroups.writable());
    let refused = groups.as_ref().err().map(|fault| fault.message.clone()).unwrap_or_default();
    let findings = [
        (
            "CAP_SYS_ADMIN",
            held.contains(CapabilitySet::SYS_ADMIN),
            true,
            "file systems can be mounted and namespaces made",
            "no file system can be mounted and no namespace made: run as root",
        ),
        (
            "CAP_MKNOD",
            held.contains(CapabilitySet::MKNOD),
            true,
            "containers get their own /dev",
            "device nodes can't be made: run as root",
        ),
        (
            "CAP_SYS_RESOURCE",
            held.contains(CapabilitySet::SYS_RESOURCE),
            false,
            "oom_score_adj can be lowered",
            "oom_score_adj stays where it is for Guaranteed pods; limits of processes can't be raised",
        ),
        ("control groups", groups.is_ok(), true, "can be made", &*refused),
    ];
    findings.into_iter().map(finding).collect()
}

fn finding((what, there, needed, present, absent): (&'static str, bool, bool, &str, &str)) -> Finding {
    Finding { what, there, needed, detail: if there { present } else { absent }.to_owned() }
}

/// What a node in a user namespace has, and what it never has.
fn privileges_of_rootless(held: CapabilitySet, ids: &Ids) -> Vec<Finding> {
    let groups = Cgroups::detect("nodefold-doctor".into());
    let has_groups = groups.as_ref().is_ok_and(|cgroups| !cgroups.are_none());
    let has_limits = groups.is_ok_and(|cgroups| cgroups.has_limits());
    let findings = [
        (
            "CAP_SYS_ADMIN",
            held.contains(CapabilitySet::SYS_ADMIN),
            true,
            "in a user namespace of the node's own: file systems can be mounted and namespaces made there",
            "no file system can be mounted and no namespace made: run as root",
        ),
        (
            "several ids",
            ids.are_several(),
            false,
            "containers can be of other users than the one who runs the node",
            "all is of the user who runs the node, and in his groups: another runAsUser, runAsGroup or fsGroup, supplementalGroups, and images with files of others are refused (install newuidmap and newgidmap, package uidmap, and give the user ranges in /etc/subuid and /etc/subgid)",
        ),
        (
            "control groups",
            has_groups,
            false,
            "delegated to this user",
            "none is delegated to this user: nothing is limited, a resize and shareProcessNamespace are refused (in a systemd session: \
             systemd-run --user --scope -p Delegate=yes nodefold ...)",
        ),
        (
            "cpu and memory controllers",
            has_limits,
            false,
            "delegated to this user",
            "cpu and memory of containers are not limited, and a resize is refused",
        ),
        (
            "CAP_SYS_RESOURCE",
            false,
            false,
            "",
            "oom_score_adj stays where it is for Guaranteed pods; limits of processes can't be raised",
        ),
        (
            "what is the host's root's",
            false,
            false,
            "",
            "hostNetwork, hostPID, hostIPC, hostUsers: false, privileged, devices and huge pages are refused, and what of a hostPath the user may not see \
             no container does; a tmpfs may be swapped out",
        ),
    ];
    findings.into_iter().map(finding).collect()
}

/// Whether this process may be a node at all; if not, all that it lacks.
pub fn require() -> Result<Allowed, Fault> {
    let (lacking, missed): (Vec<Finding>, Vec<Finding>) =
        privileges().into_iter().filter(|finding| !finding.there).partition(|finding| finding.needed);
    let lacking: Vec<String> =
        lacking.into_iter().map(|finding| format!("{}: {}", finding.what, finding.detail)).collect();
    if lacking.is_empty() {
        return Ok(Allowed { lacking: missed });
    }
    Err(Fault::refused(format!("this process can't run containers (mode: none): {}", lacking.join("; "))))
}

/// Looks at everything. It leaves this thread in a mount namespace of its own: for a process that does nothing else.
pub fn examine() -> (Mode, Vec<Finding>) {
    let mut findings = privileges();
    let is_rootless = Ids::here().is_ok_and(|ids| !ids.are_the_hosts());
    // Before this process has a pid namespace for its children: the first of them would be the last.
    let own_users = gives_own_users();
    let mut add = |what, there: bool, needed, present: &str, absent: &str| {
        let detail = if there { present } else { absent }.to_owned();
        findings.push(Finding { what, there, needed, detail });
    };
    let unshared = sys::unshare(
        UnshareFlags::NEWNS | UnshareFlags::NEWPID | UnshareFlags::NEWUTS | UnshareFlags::NEWIPC,
    );
    let refused = unshared.err().map(|errno| std::io::Error::from(errno).to_string()).unwrap_or_default();
    add(
        "namespaces",
        unshared.is_ok(),
        true,
        "mount, pid, uts and ipc namespaces can be made",
        &format!("unshare: {refused}"),
    );
    let network = sys::unshare(UnshareFlags::NEWNET);
    let refused = network.err().map(|errno| std::io::Error::from(errno).to_string()).unwrap_or_default();
    add("network namespace", network.is_ok(), true, "can be made", &format!("unshare: {refused}"));
    // That there are none is told among the privileges.
    if let Ok(cgroups) = Cgroups::detect("nodefold-doctor".into()) {
        if !is_rootless {
            add(
                "cgroup limits",
                cgroups.has_limits(),
                false,
                "cpu and memory of pods and containers are limited",
                "no cpu and memory controllers: nothing is limited, and a resize is refused",
            );
        }
        add(
            "cgroup.kill",
            cgroups.kills_as_a_whole(),
            false,
            "a container is killed as a whole by the kernel",
            "no cgroup2 is mounted: processes are killed one by one",
        );
        add(
            "device rules",
            cgroups.has_device_rules(),
            false,
            "containers may open only their own devices",
            "no devices controller of version 1, and the kernel takes no BPF program for version 2: no container gets CAP_MKNOD",
        );
    }
    let kinds = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let knows = |kind: &str| kinds.split_whitespace().any(|known| known == kind);
    for kind in ["overlay", "tmpfs", "mqueue", "devpts"] {
        add(kind, knows(kind), true, "the kernel has it", "the kernel lacks it");
    }
    let huge = knows("hugetlbfs") && !is_rootless;
    add("hugetlbfs", huge, false, "the kernel has it", "no emptyDir of medium HugePages");
    let plain = mounts::detached("tmpfs", &[], MountAttrFlags::empty());
    let noswap = mounts::detached("tmpfs", &[("noswap", None)], MountAttrFlags::empty());
    let swapped = match is_rootless {
        true => "in a user namespace a tmpfs may be swapped out",
        false => "before Linux 6.4 a tmpfs may be swapped out",
    };
    let why = plain.err().map_or(swapped.into(), |fault| fault.message);
    add("tmpfs noswap", noswap.is_ok(), false, "secrets are never swapped out", &why);
    add(
        "exit codes without being the parent",
        tells_exits(),
        false,
        "the second source of exits (PIDFD_GET_INFO)",
        "before Linux 6.15: of a container whose shim died, the exit code is unknown and counts as failure",
    );
    let refused = own_users.as_ref().err().map(|fault| fault.message.as_str()).unwrap_or_default();
    add(
        "user namespaces",
        own_users.is_ok(),
        false,
        "a pod may have users of its own (hostUsers: false)",
        &format!("a pod with hostUsers: false can't run: {refused}"),
    );
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].iter().any(|path| Path::new(path).is_file());
    add(
        "busybox",
        busybox,
        false,
        "registry.local/busybox is made from it",
        "no registry.local/busybox: apt-get install busybox-static",
    );
    let resource = findings.iter().any(|finding| finding.what == "CAP_SYS_RESOURCE" && finding.there);
    let has_all = findings.iter().all(|finding| finding.there || !finding.needed);
    let mode = match (has_all, is_rootless, resource) {
        (false, _, _) => Mode::None,
        (true, true, _) => Mode::Rootless,
        (true, false, true) => Mode::Full,
        (true, false, false) => Mode::NoSysResource,
    };
    (mode, findings)
}

/// Whether a pod can have a user namespace: what each needs of the kernel, done once.
fn gives_own_users() -> Result<(), Fault> {
    let (users, _) = users::make(UserIds { first: UserIds::LENGTH }, || users::shm(4096), |_| Ok(()))?;
    let image = mounts::tmpfs(4096, "755", MountAttrFlags::empty())?;
    sys::map_ids(&image, &users.namespace).attempt(|| "show files as a user namespace has their owners")?;
    let scratch = mounts::tmpfs(65_536, "755", MountAttrFlags::empty())?;
    for name in ["upper", "work"] {
        mkdirat(&scratch, name, rustix::fs::Mode::RWXU).attempt(|| "make a directory")?;
    }
    let (upper, work) = (mounts::path_in(&scratch, "upper"), mounts::path_in(&scratch, "work"));
    mounts::overlay(&mounts::path_in(&image, ""), (&upper, &work), true, MountAttrFlags::empty()).map(drop)
}

/// Whether the kernel tells how a process ended to somebody who is not its parent.
fn tells_exits() -> bool {
    let tell = || -> Option<i32> {
        let mut child = std::process::Command::new("/bin/sh").args(["-c", "exit 7"]).spawn().ok()?;
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).ok()?)?;
        let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()?;
        child.wait().ok()?;
        sys::exit_status_of(&pidfd)
    };
    tell() == Some(7 << 8)
}
