//! The runtimes' default seccomp profile (`seccompProfile: {type: RuntimeDefault}`): what containerd lets a container call,
//! which follows from its capabilities. Everything else fails with EPERM; `clone3` with ENOSYS, so that programs fall back to
//! `clone`, whose flags can be looked at.

mod allowed;
mod architectures;
mod profile;
mod program;

pub use profile::program as localhost;

use allowed::{ALLOWED, ALLOWED_HERE};
use architectures::Names;
use program::{Action, Arms, Compare};
use std::collections::BTreeMap;

/// An instruction as a plan carries it: code, jump-true, jump-false, constant.
pub type Instruction = (u16, u8, u8, u32);

/// Flags of `clone` that make namespaces.
const NAMESPACES: u64 = 0x7e02_0000;
/// AF_VSOCK reaches the hypervisor past every network namespace.
const AF_VSOCK: u64 = 40;
/// What the kernel looks at of an int.
const INT: u64 = 0xffff_ffff;
/// Personalities that only change how memory is laid out.
const PERSONALITIES: [u64; 5] = [0x0, 0x0008, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// What a capability lets call besides.
const BY_CAPABILITY: &[(&str, &[&str])] = &[
    ("DAC_READ_SEARCH", &["open_by_handle_at"]),
    (
        "SYS_ADMIN",
        &[
            "bpf",
            "clone",
            "clone3",
            "fanotify_init",
            "fsconfig",
            "fsmount",
            "fsopen",
            "fspick",
            "lookup_dcookie",
            "mount",
            "mount_setattr",
            "move_mount",
            "open_tree",
            "perf_event_open",
            "quotactl",
            "setdomainname",
            "sethostname",
            "setns",
            "umount",
            "umount2",
            "unshare",
        ],
    ),
    ("SYS_BOOT", &["reboot"]),
    ("SYS_CHROOT", &["chroot"]),
    ("SYS_MODULE", &["delete_module", "init_module", "finit_module"]),
    ("SYS_PACCT", &["acct"]),
    ("SYS_PTRACE", &["kcmp", "pidfd_getfd", "process_madvise"]),
    ("SYS_TIME", &["settimeofday", "stime", "adjtimex", "clock_settime", "clock_settime64"]),
    ("SYS_TTY_CONFIG", &["vhangup"]),
    ("SYS_NICE", &["get_mempolicy", "mbind", "set_mempolicy"]),
    ("SYSLOG", &["syslog"]),
    ("BPF", &["bpf"]),
    ("PERFMON", &["perf_event_open"]),
];

/// The profile for a container with these capabilities.
pub fn runtime_default(capabilities: u64) -> Result<Vec<Instruction>, String> {
    let has = |name: &str| crate::confine::bit(name).is_some_and(|bit| capabilities & bit != 0);
    let always = || -> Arms { vec![(Vec::new(), Action::Allow)] };
    let if_first = |compare| (vec![(0, compare)], Action::Allow);
    let mut said: BTreeMap<&str, Arms> =
        ALLOWED.iter().chain(ALLOWED_HERE).map(|name| (*name, always())).collect();
    said.insert("personality", PERSONALITIES.map(|value| if_first(Compare::Equal(value))).to_vec());
    let vsock = (vec![(0, Compare::Masked(INT, AF_VSOCK))], Action::Fail(libc::EPERM as u16));
    said.insert("socket", vec![vsock, (Vec::new(), Action::Allow)]);
    said.insert("clone", vec![if_first(Compare::Masked(NAMESPACES, 0))]);
    said.insert("clone3", vec![(Vec::new(), Action::Fail(libc::ENOSYS as u16))]);
    for (name, calls) in BY_CAPABILITY {
        if has(name) {
            said.extend(calls.iter().map(|call| (*call, always())));
        }
    }
    let names: Names<'_> = said.into_iter().collect();
    program::program(&architectures::all(&names, true), Action::Fail(libc::EPERM as u16))
}

/// What the default profile lets every container call whatever its arguments are, by name.
pub fn allowed() -> impl Iterator<Item = &'static str> {
    ALLOWED.iter().chain(ALLOWED_HERE).copied().filter(|name| !matches!(*name, "socket" | "personality"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_short() {
        for capabilities in [0, 0xa804_25fb, crate::confine::all()] {
            let program = runtime_default(capabilities).expect("it fits");
            assert!(
                program.len() < 1000,
                "{} instructions: the kernel runs them a thousand times",
                program.len()
            );
        }
    }
}
