//! Pods with a user namespace (`hostUsers: false`): who is who inside and outside, what an agent's death changes (nothing), and
//! that everything is gone in the end.

use crate::node::Node;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;

const LOOP: &str = "trap 'exit 0' TERM; while true; do sleep 0.1; done";

/// A pod with every kind of volume, and hooks and probes.
fn pod(name: &str, host_path: &str) -> String {
    format!(
        "apiVersion: v1
kind: ConfigMap
metadata: {{name: c}}
data: {{k: one}}
---
apiVersion: v1
kind: Secret
metadata: {{name: s}}
stringData: {{k: two}}
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: x}}}}
spec:
  hostUsers: false
  terminationGracePeriodSeconds: 2
  securityContext: {{fsGroup: 3000, sysctls: [{{name: net.ipv4.ip_unprivileged_port_start, value: '80'}}, {{name: kernel.msgmax, value: '4096'}}]}}
  volumes:
  - {{name: c, configMap: {{name: c, defaultMode: 0400}}}}
  - {{name: s, secret: {{secretName: s}}}}
  - {{name: d, downwardAPI: {{items: [{{path: labels, fieldRef: {{fieldPath: metadata.labels}}}}]}}}}
  - {{name: p, projected: {{sources: [{{serviceAccountToken: {{path: token}}}}, {{configMap: {{name: c}}}}]}}}}
  - {{name: disk, emptyDir: {{}}}}
  - {{name: memory, emptyDir: {{medium: Memory}}}}
  - {{name: image, image: {{reference: 'registry.local/busybox:1'}}}}
  - {{name: host, hostPath: {{path: {host_path}}}}}
  containers:
  - name: app
    image: registry.local/busybox:1
    command: [sh, -c, \"echo hello > /dev/stdout; id > /d/disk/id; id > /d/memory/id; {LOOP}\"]
    volumeMounts: &mounts
    - {{name: c, mountPath: /d/c}}
    - {{name: s, mountPath: /d/s}}
    - {{name: d, mountPath: /d/d}}
    - {{name: p, mountPath: /d/p}}
    - {{name: disk, mountPath: /d/disk}}
    - {{name: memory, mountPath: /d/memory}}
    - {{name: image, mountPath: /d/image}}
    - {{name: host, mountPath: /d/host}}
    lifecycle: {{postStart: {{exec: {{command: [sh, -c, 'cat /proc/self/uid_map > /d/memory/hook']}}}}}}
    readinessProbe: {{exec: {{command: [grep, -q, '65536', /d/memory/hook]}}, periodSeconds: 1}}
  - name: other
    image: registry.local/busybox:1
    command: [sh, -c, \"mkdir /tmp/www; httpd -p 80 -h /tmp/www; echo yes > /tmp/www/index.html; {LOOP}\"]
    securityContext: {{runAsUser: 1000, runAsGroup: 1000}}
    volumeMounts: *mounts
    readinessProbe: {{httpGet: {{port: 80, path: /}}, periodSeconds: 1}}
"
    )
}

fn ready(node: &Node, pod: &str, container: &str) -> bool {
    node.container(pod, container).is_some_and(|c| c["ready"] == true)
}

fn said(node: &Node, pod: &str, container: &str, command: &str) -> String {
    let output = node.exec(pod, container, &["sh", "-c", command]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// What 0 in a pod is outside.
fn first_id(node: &Node, pod: &str) -> u32 {
    let map = said(node, pod, "app", "cat /proc/self/uid_map /proc/self/gid_map");
    let words: Vec<&str> = map.split_whitespace().collect();
    let [zero, first, length, .., group, group_length] = words.as_slice() else { panic!("{map}") };
    assert_eq!((*zero, *length, *group, *group_length), ("0", "65536", *first, "65536"), "{map}");
    first.parse().unwrap()
}

#[test]
fn a_pod_with_users_of_its_own_has_its_files_and_is_nobody_outside() {
    let mut node = Node::new();
    let host = node.directory().join("host");
    fs::create_dir(&host).unwrap();
    fs::write(host.join("of-root"), "three").unwrap();
    for name in ["first", "second"] {
        node.write(&format!("{name}.yaml"), &pod(name, &host.display().to_string()));
    }
    node.start();
    for name in ["first", "second"] {
        node.until(&format!("{name} is ready"), |node| {
            ready(node, name, "app") && ready(node, name, "other")
        });
    }
    let ids = ["first", "second"].map(|name| first_id(&node, name));
    assert_ne!(ids[0], ids[1]);
    assert!(ids.iter().all(|first| *first > 0 && first % 65_536 == 0), "{ids:?}");
    // Its hook and its probe are processes of their own, and may be faster than it is.
    for name in ["first", "second"] {
        node.until(&format!("{name} has spoken"), |node| {
            node.logs(name, "app") == "hello\n"
                && node.exec(name, "app", &["test", "-s", "/d/memory/id"]).status.success()
        });
    }
    // Inside everything is as without.
    assert_eq!(
        said(&node, "first", "app", "id -u; cd /d; cat c/k s/k p/k host/of-root"),
        "0\nonetwoonethree"
    );
    assert_eq!(
        said(&node, "first", "app", "test -s /d/p/token && cat /d/d/labels; ls /d/image/bin/sh"),
        "app=\"x\"/d/image/bin/sh\n"
    );
    let owners = "cd /d; for f in . c c/..data/k s s/..data/k p d disk memory image host disk/id memory/id host/of-root /etc/hosts /dev/termination-log /bin/sh /tmp; do echo $f $(stat -c '%u %g' $f); done";
    let told = said(&node, "first", "app", owners);
    for line in told.lines() {
        let (file, owner) = line.split_once(' ').unwrap();
        let of_group =
            ["c", "c/..data/k", "s", "s/..data/k", "p", "d", "disk", "memory", "disk/id", "memory/id"];
        let wanted = if of_group.contains(&file) { "0 3000" } else { "0 0" };
        assert_eq!(owner, wanted, "{file}: {told}");
    }
    assert_eq!(
        said(&node, "first", "other", "id -u; cat /d/c/k; echo x > /tmp/own; stat -c '%u %g' /tmp/own"),
        "1000\none1000 1000\n"
    );
    assert_eq!(
        said(
            &node,
            "first",
            "app",
            "cat /proc/sys/net/ipv4/ip_unprivileged_port_start /proc/sys/kernel/msgmax"
        ),
        "80\n4096\n"
    );
    // Outside its processes are nobody's, and its files those of whom they are inside.
    let volumes = fs::read_dir(node.layout.pods()).unwrap();
    let kept: Vec<(u32, u32)> = volumes
        .map(|pod| fs::metadata(pod.unwrap().path().join("volumes/kubernetes.io~empty-dir/disk/id")).unwrap())
        .map(|file| (file.uid(), file.gid()))
        .collect();
    assert_eq!(kept, [(0, 3000), (0, 3000)]);
    for (name, first) in ["first", "second"].iter().zip(ids) {
        assert!(processes_of(&node, first) > 0 && processes_of(&node, first + 1000) > 0, "{name}");
    }
    let refused = |command: &str| !node.exec("first", "app", &["sh", "-c", command]).status.success();
    assert!(refused("echo x > /d/c/new") && refused("echo x > /d/image/new"), "they are read-only");
    assert!(refused("hostname other") && refused("mount -t tmpfs none /tmp"), "capabilities are as without");
    node.end();
}

/// So many of a node's processes are a user's.
fn processes_of(node: &Node, uid: u32) -> usize {
    let of_node = |path: std::path::PathBuf| {
        fs::read_to_string(path.join("cgroup"))
            .is_ok_and(|groups| groups.contains(&node.layout.cgroup_name()))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let of_user = processes.filter(|entry| entry.metadata().is_ok_and(|found| found.uid() == uid));
    of_user.filter(|entry| of_node(entry.path())).count()
}

#[test]
fn an_agent_that_was_killed_is_followed_by_one_that_knows_whose_ids_are_whose() {
    let mut node = Node::new();
    let simple = |name: &str, more: &str| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{hostUsers: false, {more} terminationGracePeriodSeconds: 1, containers: [
               {{name: app, image: 'registry.local/busybox:1', command: [sh, -c, \"{LOOP}\"]}},
               {{name: dies, image: 'registry.local/busybox:1', command: [sh, -c, 'while ! test -e /tmp/die; do sleep 0.05; done; exit 7']}}]}}}}"
        )
    };
    node.write("first.yaml", &simple("first", ""));
    node.write("second.yaml", &simple("second", "shareProcessNamespace: true,"));
    node.start();
    for name in ["first", "second"] {
        node.until_running(name, "app");
        node.until_running(name, "dies");
    }
    let before = ["first", "second"].map(|name| first_id(&node, name));
    let processes = said(&node, "second", "app", "ps -o comm,args | grep -c 'test -e /tmp/die'");
    assert!(processes.trim().parse::<u32>().unwrap() >= 1, "they see each other: {processes}");
    node.kill();
    node.remove("first.yaml");
    node.write("third.yaml", &simple("third", ""));
    assert_eq!(first_id(&node, "second"), before[1], "it runs without an agent");
    node.start();
    node.until_running("third", "app");
    let third = first_id(&node, "third");
    assert_ne!(third, before[1], "the second one's ids are its own still");
    // A container that is made by the new agent is among the same users.
    said(&node, "second", "dies", "touch /tmp/die");
    node.until("dies is there again", |node| {
        node.container("second", "dies")
            .is_some_and(|c| c["restartCount"] == 1 && c["state"]["running"].is_object())
    });
    let last = node.container("second", "dies").unwrap()["lastState"]["terminated"]["exitCode"].clone();
    assert_eq!(last, Value::from(7));
    let map = said(&node, "second", "dies", "cat /proc/self/uid_map");
    assert!(map.contains(&before[1].to_string()), "{map}");
    // A shim that is killed takes its containers with it, and the pod keeps its ids.
    let shims = crate::life::shims(&node);
    for shim in &shims {
        assert!(std::process::Command::new("kill").args(["-KILL", shim]).status().unwrap().success());
    }
    node.until("another sandbox is there", |node| {
        let now = crate::life::shims(node);
        now.len() == 2 && now.iter().all(|shim| !shims.contains(shim))
    });
    for (name, first) in [("second", before[1]), ("third", third)] {
        node.until(&format!("{name} runs again"), |node| node.exec(name, "app", &["true"]).status.success());
        assert_eq!(first_id(&node, name), first);
    }
    node.end();
}

#[test]
fn what_can_not_be_had_with_users_of_its_own_is_told() {
    let mut node = Node::new();
    for (name, more, context) in
        [("network", "hostNetwork: true,", "{}"), ("high", "", "{runAsUser: 70000}"), ("proc", "", "{}")]
    {
        let volume = match name {
            "proc" => "volumes: [{name: v, hostPath: {path: /proc}}],",
            _ => "",
        };
        let mounts = if volume.is_empty() { "" } else { ", volumeMounts: [{name: v, mountPath: /v}]" };
        node.write(
            &format!("{name}.yaml"),
            &format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{hostUsers: false, {more} {volume} containers: [
                   {{name: app, image: 'registry.local/busybox:1', command: [sh, -c, \"{LOOP}\"], securityContext: {context}{mounts}}}]}}}}"
            ),
        );
    }
    node.start();
    for (name, why) in [
        ("network", "hostNetwork can't be had with hostUsers: false"),
        ("high", "user or group 70000 is not in the pod's user namespace"),
        ("proc", "show /v as the pod's user namespace has its owners: Invalid argument"),
    ] {
        node.until(&format!("{name} says why"), |node| {
            node.pods().iter().any(|pod| pod["metadata"]["name"] == name && pod.to_string().contains(why))
                || node.log().contains(why)
        });
    }
    node.end();
}
