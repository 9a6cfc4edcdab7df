//! The program that keeps control groups of version 2 from devices, in this kernel.
#![allow(clippy::unwrap_used)]

use nodefold_agent::{beneath, device_rules};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A control group of the test's own.
struct Group(PathBuf);

impl Group {
    fn new() -> Group {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mut v2 = mounts.lines().filter(|line| line.split(' ').nth(2) == Some("cgroup2"));
        let root = v2.next().expect("this test needs cgroup2 mounted, and root").split(' ').nth(1).unwrap();
        let group = Path::new(root).join(format!("nodefold-devices-{}", std::process::id()));
        fs::create_dir(&group).unwrap();
        Group(group)
    }

    /// Whether a command goes well in the group.
    fn does(&self, command: &str) -> bool {
        let command = format!("echo $$ > {}/cgroup.procs && {command}", self.0.display());
        Command::new("sh").args(["-c", &command]).status().unwrap().success()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        drop(fs::remove_dir(&self.0));
    }
}

#[test]
fn a_group_uses_the_devices_of_containers_and_no_other() {
    let group = Group::new();
    let kernel_log = "head -c 0 /dev/kmsg";
    assert!(group.does(kernel_log), "nothing keeps it from that yet");
    // Again is no harm: an agent that died between two steps does it twice.
    for _ in 0..2 {
        device_rules::hold_to(beneath::open_root(&group.0).unwrap()).unwrap();
        assert!(!group.does(kernel_log));
        assert!(
            group.does("head -c 1 /dev/zero > /dev/null && head -c 1 /dev/urandom > /dev/full; test $? = 1")
        );
        let directory = tempfile::tempdir().unwrap();
        let node = directory.path().join("node").display().to_string();
        assert!(group.does(&format!("mknod {node} c 1 11")), "who may make nodes may make any");
        assert!(!group.does(&format!("head -c 0 {node}")), "but not use it");
    }
}
