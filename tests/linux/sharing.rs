//! What containers see of each other, of the host's mounts, of their control groups; and what an operator's profile forbids.

use crate::node::Node;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn pod(name: &str, spec: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{terminationGracePeriodSeconds: 1, {spec}}}}}"
    )
}

fn said(node: &Node, pod: &str, container: &str, command: &str) -> (bool, String) {
    let output = node.exec(pod, container, &["sh", "-c", command]);
    (output.status.success(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[test]
fn containers_that_share_a_process_namespace_see_each_other_and_leave_nothing_in_it() {
    let mut node = Node::new();
    node.write("web.yaml", &pod(
        "web",
        "shareProcessNamespace: true, containers: [
          {name: stays, image: 'registry.local/busybox:1', command: [sleep, '4321']},
          {name: ends, image: 'registry.local/busybox:1', command: [sh, -c, 'sleep 1234 & sleep 3; exit 7']}]",
    ));
    node.start();
    node.until_running("web", "stays");
    node.until("one sees the other", |node| said(node, "web", "stays", "ps").1.contains("sleep 1234"));
    assert_ne!(said(&node, "web", "stays", "cat /proc/1/comm").1, "sleep", "process 1 is the pod's");
    node.until("it has ended as it did", |node| {
        node.container("web", "ends").is_some_and(|c| c.to_string().contains("\"exitCode\":7"))
    });
    // In back-off now: what it started is not there any more.
    node.until("what it started has ended with it", |node| {
        let (well, processes) = said(node, "web", "stays", "ps");
        well && processes.contains("sleep 4321") && !processes.contains("sleep 1234")
    });
    let restarts = node.container("web", "stays").unwrap()["restartCount"].clone();
    assert_eq!(restarts, 0, "the other's end is not its own");
    node.end();
}

/// A mount of a test's own, until dropped.
struct Mounted(PathBuf);

impl Mounted {
    fn at(path: &Path, propagation: &str) -> Mounted {
        fs::create_dir_all(path).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "nodefold-test"]).arg(path).status().unwrap();
        assert!(mounted.success());
        let mounted = Mounted(path.to_owned());
        assert!(Command::new("mount").arg(propagation).arg(path).status().unwrap().success());
        mounted
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // With what is mounted in it.
        drop(Command::new("umount").arg("-R").arg(&self.0).status());
    }
}

#[test]
fn mounts_propagate_where_asked_and_what_can_not_is_refused() {
    let mut node = Node::new();
    let shared = Mounted::at(&node.directory().join("shared"), "--make-shared");
    let private = Mounted::at(&node.directory().join("private"), "--make-private");
    let container = |name: &str, volume: &str, propagation: &str, privileged: bool| {
        format!(
            "{{name: {name}, image: 'registry.local/busybox:1', command: [sleep, '1000'], securityContext: {{privileged: {privileged}}},
              volumeMounts: [{{name: {volume}, mountPath: /h, mountPropagation: {propagation}}}]}}"
        )
    };
    let containers = [
        container("slave", "shared", "HostToContainer", false),
        container("both", "shared", "Bidirectional", true),
        container("none", "shared", "None", false),
        container("refused", "private", "HostToContainer", false),
    ];
    node.write("web.yaml", &pod(
        "web",
        &format!(
            "volumes: [{{name: shared, hostPath: {{path: {}}}}}, {{name: private, hostPath: {{path: {}}}}}], containers: [{}]",
            shared.0.display(),
            private.0.display(),
            containers.join(", ")
        ),
    ));
    node.start();
    for name in ["slave", "both", "none"] {
        node.until_running("web", name);
    }
    let late = Mounted::at(&shared.0.join("late"), "--make-private");
    fs::write(late.0.join("file"), "").unwrap();
    let sees = |name: &str, path: &str| said(&node, "web", name, &format!("test -e /h/{path}")).0;
    assert!(sees("slave", "late/file") && sees("both", "late/file") && !sees("none", "late/file"));
    let own = |name: &str| {
        said(&node, "web", name, "mkdir -p /h/own && mount -t tmpfs none /h/own && touch /h/own/file").0
    };
    assert!(own("both"), "a privileged container may mount");
    assert!(shared.0.join("own/file").exists() && sees("slave", "own/file") && !sees("none", "own/file"));
    node.until("what can't be is refused by name", |node| {
        node.container("web", "refused")
            .is_some_and(|c| c.to_string().contains("not a shared or slave mount"))
    });
    drop(late);
    assert!(Command::new("umount").arg(shared.0.join("own")).status().unwrap().success());
    node.remove("web.yaml");
    node.until("the pod is gone", |node| node.pods().is_empty());
    // Before the node's directory goes, which they are in.
    drop((shared, private));
    node.end();
}

#[test]
fn a_container_sees_its_own_control_groups_and_can_not_change_them() {
    let mut node = Node::new();
    node.write("web.yaml", &pod(
        "web",
        "containers: [{name: app, image: 'registry.local/busybox:1', command: [sleep, '1000'], resources: {limits: {memory: 32Mi}}}]",
    ));
    node.start();
    node.until_running("web", "app");
    let limit = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null";
    assert_eq!(said(&node, "web", "app", limit).1, (32 << 20).to_string());
    let raise = "for f in /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max; do test -e $f && echo -1 > $f && exit 0; done; exit 1";
    assert!(!said(&node, "web", "app", raise).0, "it is read-only");
    node.end();
}

#[test]
fn an_operators_profile_forbids_what_it_says() {
    let mut node = Node::new();
    let profiles = node.layout.seccomp();
    fs::create_dir_all(&profiles).unwrap();
    let profile = r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}]}"#;
    fs::write(profiles.join("no-mkdir.json"), profile).unwrap();
    let container = |name: &str, profile: &str| {
        format!(
            "{{name: {name}, image: 'registry.local/busybox:1', command: [sleep, '1000'],
              securityContext: {{seccompProfile: {{type: Localhost, localhostProfile: {profile}}}}}}}"
        )
    };
    let containers = [
        container("app", "no-mkdir.json"),
        container("absent", "nope.json"),
        container("up", "../../etc/passwd"),
    ];
    node.write("web.yaml", &pod("web", &format!("containers: [{}]", containers.join(", "))));
    node.start();
    node.until_running("web", "app");
    let (made, _) = said(&node, "web", "app", "mkdir /tmp/x");
    assert!(!made && said(&node, "web", "app", "touch /tmp/y").0);
    for name in ["absent", "up"] {
        node.until("a profile that can't be had is refused", |node| {
            node.container("web", name).is_some_and(|c| c.to_string().contains("cannot load seccomp profile"))
        });
    }
    node.end();
}
