//! What a shim needs to know of its pod and of each container, decided by the agent beforehand: the shim decides nothing.

use crate::seccomp::Instruction;
use serde::{Deserialize, Serialize};

/// A pod's shim.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SandboxPlan {
    /// The sandbox's directory: its socket and records are there.
    pub dir: String,
    /// The pod's host name.
    pub hostname: String,
    /// It uses the host's network.
    pub host_network: bool,
    /// It uses the host's System V and POSIX queues.
    pub host_ipc: bool,
    /// `kernel.` and `net.` settings of its namespaces, as paths below /proc/sys and what is written there.
    pub sysctls: Vec<(String, String)>,
    /// Its containers see each other's processes: they share one pid namespace.
    #[serde(default)]
    pub shares_processes: bool,
    /// `cgroup.procs` files that the shim enters.
    pub joins: Vec<String>,
    /// The shim knows how to go on in another log.
    #[serde(default)]
    pub reopens_logs: bool,
    /// The shim knows how to prepare a process for a container that nobody asked for yet.
    #[serde(default)]
    pub keeps_spares: bool,
    /// Size of the pod's /dev/shm in bytes.
    pub shm_bytes: u64,
    /// Its containers are in a user namespace, which has these ids.
    #[serde(default)]
    pub users: Option<UserIds>,
    /// The node is in a user namespace, and the shim with it. There may be no control group that has what it would leave behind:
    /// so it is the first in a pid namespace, with which all its containers end.
    #[serde(default)]
    pub rootless: bool,
}

/// The ids of a pod's user namespace: from 0 on in the pod, from here on outside.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserIds {
    /// What 0 in the pod is outside.
    pub first: u32,
}

impl UserIds {
    /// So many a pod has, as with a kubelet.
    pub const LENGTH: u32 = 65_536;
}

/// What of a container's surroundings depends on nothing that is its own: what a spare process makes ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Writable /sys, nothing hidden.
    pub privileged: bool,
    /// It sees the host's processes.
    pub host_pid: bool,
    /// Hidden paths.
    pub masked: Vec<String>,
    /// Paths that can't be written.
    pub read_only: Vec<String>,
    /// What is mounted at /sys/fs/cgroup.
    pub cgroups: Vec<CgroupMount>,
}

/// A container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ContainerPlan {
    /// The program and its arguments.
    pub args: Vec<String>,
    /// The environment, in order.
    pub env: Vec<(String, String)>,
    /// Where it begins.
    pub cwd: String,
    /// As which user.
    pub uid: u32,
    /// In which group.
    pub gid: u32,
    /// And which others.
    pub groups: Vec<u32>,
    /// Nobody in its user namespace may set groups: it keeps those of whoever runs the node.
    #[serde(default)]
    pub keeps_groups: bool,
    /// Mounts, in the order of the descriptors.
    pub mounts: Vec<PlannedMount>,
    /// The root can't be written.
    pub read_only_root: bool,
    /// Capabilities, as bits.
    pub capabilities: u64,
    /// No program may gain what this one has not.
    pub no_new_privileges: bool,
    /// The host's devices, writable /sys, nothing hidden.
    pub privileged: bool,
    /// It sees the host's processes.
    pub host_pid: bool,
    /// Hidden paths.
    pub masked: Vec<String>,
    /// Paths that can't be written.
    pub read_only: Vec<String>,
    /// How willingly the kernel kills it for memory.
    pub oom_score_adj: i32,
    /// Seccomp programs in the order in which they are installed. None: no filter.
    pub seccomp: Vec<Vec<Instruction>>,
    /// Its file mode creation mask.
    pub umask: u32,
    /// What is mounted at /sys/fs/cgroup.
    #[serde(default)]
    pub cgroups: Vec<CgroupMount>,
    /// The image that it runs from, and holds while this plan is on disk (I12).
    #[serde(default)]
    pub image: String,
    /// An end whose words are not in the file for them is explained by the end of the log.
    #[serde(default)]
    pub last_words_from_log: bool,
    /// How much its writable layer and logs may take up, and all of its pod.
    #[serde(default)]
    pub storage: StorageLimits,
    /// The signal that asks it to end.
    #[serde(default)]
    pub stop_signal: Option<i32>,
    /// Its control group in its pod's; without one, that of its own name.
    #[serde(default)]
    pub slot: Option<String>,
}

impl ContainerPlan {
    /// What is made around it before it is known.
    pub fn stage(&self) -> Stage {
        Stage {
            privileged: self.privileged,
            host_pid: self.host_pid,
            masked: self.masked.clone(),
            read_only: self.read_only.clone(),
            cgroups: self.cgroups.clone(),
        }
    }
}

/// How much may be taken up of the disk, in bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageLimits {
    /// By a container's writable layer and logs.
    pub own: Option<u64>,
    /// By its pod.
    pub of_pod: Option<u64>,
}

/// A hierarchy of control groups, as a container sees it: from its own group down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupMount {
    /// Its directory below /sys/fs/cgroup; empty: that itself.
    pub place: String,
    /// `cgroup` or `cgroup2`.
    pub kind: String,
    /// The hierarchy's controllers.
    pub controllers: Vec<String>,
    /// Its name, if it has one.
    pub name: Option<String>,
}

/// A mount of a container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlannedMount {
    /// Where in the container.
    pub target: String,
    /// It is a directory, not a file.
    pub directory: bool,
}

/// How a container ended: what the shim writes on disk before it tells anybody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// The exit code; 128 + signal for a signal's.
    pub code: i32,
    /// The signal that killed it.
    pub signal: Option<i32>,
    /// The kernel killed it for memory.
    pub out_of_memory: bool,
    /// It never ran: why it could not be started.
    pub start_error: Option<String>,
    /// When it was let go, in nanoseconds since the epoch.
    pub started_at: Option<u64>,
    /// When it ended.
    pub finished_at: u64,
}
