//! What runtimes let a container do when its pod does not say otherwise: containerd's and runc's own defaults, so that a
//! container is confined here as it is there.

/// Capabilities in the order of their numbers, as `capabilities(7)` names them without `CAP_`.
const NAMES: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];

/// What a container may do by default.
const DEFAULT: [&str; 14] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "MKNOD",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
];

/// Hidden from a container.
pub const MASKED: [&str; 10] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
];

/// Not to be written by a container.
pub const READ_ONLY: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// A capability's bit, by its name with or without `CAP_`.
pub fn bit(name: &str) -> Option<u64> {
    let name = name.strip_prefix("CAP_").unwrap_or(name);
    NAMES.iter().position(|known| *known == name).map(|number| 1 << number)
}

/// Every capability.
pub const fn all() -> u64 {
    (1 << NAMES.len()) - 1
}

/// The default ones, less and more what a container's manifest says. `ALL` is all; a name that is none is an error.
pub fn capabilities(add: &[&str], drop: &[&str]) -> Result<u64, String> {
    let bits = |names: &[&str]| -> Result<u64, String> {
        names.iter().try_fold(0, |bits, name| match *name {
            "ALL" => Ok(all()),
            name => bit(name).map(|bit| bits | bit).ok_or_else(|| format!("unknown capability {name:?}")),
        })
    };
    let start = if add.contains(&"ALL") { all() } else { bits(&DEFAULT)? };
    let kept = if drop.contains(&"ALL") { 0 } else { start & !bits(drop)? };
    let added: Vec<&str> =
        add.iter().copied().filter(|name| *name != "ALL" || !drop.contains(&"ALL")).collect();
    Ok(kept | bits(&added)? & !if drop.contains(&"ALL") { 0 } else { bits(drop)? })
}

/// Capabilities where the host has no rules about devices: who could make a node for any device could open it. One that is
/// asked for by name is refused, not left out.
pub fn without_device_rules(capabilities: u64, add: &[&str]) -> Result<u64, String> {
    let mknod = bit("MKNOD").unwrap_or(0);
    let asked = |name: &&str| *name == "ALL" || bit(name) == Some(mknod);
    if capabilities & mknod != 0 && add.iter().any(asked) {
        return Err("this host has no rules about devices (no devices controller of version 1, and no program of version 2's): it can't give CAP_MKNOD".into());
    }
    Ok(capabilities & !mknod)
}

/// How willingly the kernel kills a container for memory, as the kubelet computes it: the less of the node's memory it
/// requested, the rather.
pub fn oom_score_adj(qos: nodefold_core::resources::QosClass, memory_request: u64, node_memory: u64) -> i32 {
    use nodefold_core::resources::QosClass;
    match qos {
        QosClass::Guaranteed => -997,
        QosClass::BestEffort => 1000,
        QosClass::Burstable => {
            let share = memory_request.saturating_mul(1000).checked_div(node_memory).unwrap_or(0);
            let score = 1000_i64.saturating_sub(i64::try_from(share).unwrap_or(1000));
            // Never as hard to kill as a Guaranteed one, never as easy as a BestEffort one.
            score.clamp(3, 999) as i32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_runcs() {
        // CapEff of a container that containerd 1.6 started with no securityContext.
        assert_eq!(capabilities(&[], &[]), Ok(0xa804_25fb));
        assert_eq!(capabilities(&[], &["ALL"]), Ok(0));
        assert_eq!(capabilities(&["NET_BIND_SERVICE"], &["ALL"]), Ok(1 << 10));
        assert_eq!(capabilities(&["SYS_ADMIN"], &["CAP_MKNOD"]), Ok((0xa804_25fb | 1 << 21) & !(1 << 27)));
        assert_eq!(capabilities(&["ALL"], &[]), Ok(all()));
        assert!(capabilities(&["NONSENSE"], &[]).is_err());
        // Without rules about devices, nobody makes nodes.
        assert_eq!(without_device_rules(0xa804_25fb, &[]), Ok(0xa004_25fb));
        assert_eq!(without_device_rules(1 << 10, &["MKNOD"]), Ok(1 << 10));
        assert!(without_device_rules(all(), &["ALL"]).is_err());
        assert!(without_device_rules(0xa804_25fb, &["CAP_MKNOD"]).is_err());
    }
}
