//! A host with control groups of version 2 alone: in a mount namespace of its own, from which those of version 1 are gone.
//! Controllers that limit anything stay with version 1, so this shows devices, killing and what containers see, not limits.

use std::process::{Command, Output};

/// A run of a scenario on such a host.
fn run(file: &str) -> Output {
    const HOST: &str = "umount -R -l /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec \"$0\" run \"$1\" --backend linux";
    Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", HOST, env!("CARGO_BIN_EXE_nodefold"), file])
        .output()
        .unwrap()
}

#[test]
fn scenarios_hold_and_devices_are_kept_from_containers() {
    for file in ["tests/linux/version-two.yaml", "examples/warm-pod.yaml", "examples/workspace-swap.yaml"] {
        let output = run(&format!("{}/{file}", env!("CARGO_MANIFEST_DIR")));
        let told = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{file}\n{told}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(told.contains("holds"), "{told}");
    }
}
