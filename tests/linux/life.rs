//! An agent's life: pods from files, hooks and probes, logs and exec, and what an agent's death changes: nothing.

use crate::node::Node;
use std::fs;
use std::time::Duration;

const LOOP: &str = "trap 'exit 0' TERM; while true; do sleep 0.1; done";

fn pod(name: &str, policy: &str, containers: &str) -> String {
    format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{terminationGracePeriodSeconds: 2, restartPolicy: {policy}, containers: {containers}}}}}"
    )
}

fn process(node: &Node, pod: &str, container: &str) -> String {
    let output = node.exec(pod, container, &["sh", "-c", "cut -d' ' -f22 /proc/1/stat"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_pod_from_a_file_runs_with_environment_hooks_probes_logs_and_exec() {
    let mut node = Node::new();
    node.write(
        "web.yaml",
        "apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {token: abc}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: x}}
spec:
  terminationGracePeriodSeconds: 2
  volumes: [{name: sec, secret: {secretName: s}}, {name: mem, emptyDir: {medium: Memory, sizeLimit: 4Mi}}]
  containers:
  - name: app
    image: registry.local/busybox:1
    command: [sh, -c, \"trap 'exit 0' TERM; echo hello $(WHO) $TOKEN; echo oops >&2; while true; do sleep 0.1; done\"]
    env:
    - {name: WHO, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: TOKEN, valueFrom: {secretKeyRef: {name: s, key: token}}}
    - {name: LIMIT, valueFrom: {resourceFieldRef: {resource: limits.memory}}}
    resources: {limits: {memory: 64Mi, cpu: 500m}}
    volumeMounts: [{name: sec, mountPath: /sec}, {name: mem, mountPath: /mem}]
    lifecycle: {postStart: {exec: {command: [sh, -c, 'echo hooked > /mem/hook']}}}
    readinessProbe: {exec: {command: [cat, /mem/hook]}, periodSeconds: 1}
",
    );
    node.start();
    node.until("web is ready", |node| node.container("web", "app").is_some_and(|c| c["ready"] == true));
    // Its hook and its probe are processes of their own, and may be faster than it is.
    node.until("it has spoken", |node| node.logs("web", "app") == "hello web abc\noops\n");
    let run = |command: &str| {
        let output = node.exec("web", "app", &["sh", "-c", command]);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run("cat /sec/token; exit 7"), (Some(7), "abc".into()));
    assert_eq!(run("echo $LIMIT"), (Some(0), format!("{}\n", 64 << 20)));
    assert_ne!(run("echo x > /sec/new").0, Some(0), "a secret's mount is read-only");
    assert_ne!(
        run("dd if=/dev/zero of=/mem/big bs=1M count=8 2>/dev/null").0,
        Some(0),
        "sizeLimit is the tmpfs' size"
    );
    assert_eq!(run("cat /proc/1/comm").1, "sh\n", "it is process 1 of its namespace");
    let usage = node.exec("web", "nope", &["true"]);
    assert_eq!(usage.status.code(), Some(2));
    node.end();
}

#[test]
fn the_default_seccomp_profile_lets_programs_work_and_refuses_what_containerd_refuses() {
    let mut node = Node::new();
    let container = |name: &str, context: &str| {
        format!(
            "{{name: {name}, image: 'registry.local/busybox:1', command: [sh, -c, \"{LOOP}\"], securityContext: {context}}}"
        )
    };
    let containers = [
        container("plain", "{seccompProfile: {type: RuntimeDefault}}"),
        container(
            "strict",
            "{seccompProfile: {type: RuntimeDefault}, allowPrivilegeEscalation: false, runAsUser: 1000}",
        ),
        container("admin", "{seccompProfile: {type: RuntimeDefault}, capabilities: {add: [SYS_ADMIN]}}"),
        container("open", "{seccompProfile: {type: Unconfined}, capabilities: {add: [SYS_ADMIN]}}"),
    ];
    node.write("web.yaml", &pod("web", "Always", &format!("[{}]", containers.join(", "))));
    node.start();
    for name in ["plain", "strict", "admin", "open"] {
        node.until_running("web", name);
    }
    let does = |name: &str, command: &str| node.exec("web", name, &["sh", "-c", command]).status.success();
    for name in ["plain", "strict", "admin"] {
        assert!(
            does(
                name,
                "grep -q 'Seccomp:.*2' /proc/self/status && ls / | grep -q proc && (sleep 0.01 & wait)"
            ),
            "{name}"
        );
    }
    assert!(does("open", "grep -q 'Seccomp:.*0' /proc/self/status"));
    // A user namespace needs no capability: only the filter refuses it.
    assert!(!does("plain", "unshare -U true") && !does("strict", "unshare -U true"));
    assert!(does("open", "unshare -U true") && does("admin", "unshare -U true"));
    assert!(does("admin", "mount -t tmpfs none /tmp"), "what a capability is for is allowed with it");
    node.end();
}

#[test]
fn exits_are_told_as_they_were() {
    let mut node = Node::new();
    node.write("ends.yaml", &pod(
        "ends",
        "Never",
        "[{name: code, image: 'registry.local/busybox:1', command: [sh, -c, 'exit 42']},
          {name: signal, image: 'registry.local/busybox:1', command: [sh, -c, 'sleep 0.2; kill -KILL $(cat /proc/self/stat | cut -d\" \" -f4) ; sleep 5; exit 3']},
          {name: memory, image: 'registry.local/busybox:1', command: [sh, -c, 'dd if=/dev/zero of=/dev/null bs=512M count=1'], resources: {limits: {memory: 8Mi}}},
          {name: nothing, image: 'registry.local/busybox:1', command: [no-such-program]}]",
    ));
    node.start();
    let terminated = |node: &Node, name: &str| {
        node.container("ends", name).map(|c| c["state"]["terminated"].clone()).unwrap_or_default()
    };
    node.until("code and memory ended", |node| {
        ["code", "memory"].iter().all(|name| terminated(node, name).is_object())
    });
    assert_eq!(terminated(&node, "code")["exitCode"], 42);
    let memory = terminated(&node, "memory");
    assert_eq!((&memory["exitCode"], &memory["reason"]), (&137.into(), &"OOMKilled".into()), "{memory}");
    node.until("nothing could not be started", |node| {
        node.container("ends", "nothing").is_some_and(|c| c.to_string().contains("no-such-program"))
    });
    node.end();
}

#[test]
fn a_killed_agent_disturbs_nothing_and_the_next_one_knows_what_happened_meanwhile() {
    let mut node = Node::new();
    node.write(
        "stays.yaml",
        &pod(
            "stays",
            "Always",
            &format!("[{{name: app, image: 'registry.local/busybox:1', command: [sh, -c, \"{LOOP}\"]}}]"),
        ),
    );
    let notes = node.directory().join("notes");
    fs::create_dir(&notes).unwrap();
    let ends = pod(
        "ends",
        "Never",
        "[{name: app, image: 'registry.local/busybox:1', volumeMounts: [{name: notes, mountPath: /notes}],
           command: [sh, -c, 'until test -e /notes/end; do sleep 0.05; done; rm /notes/end; exit 42']}]",
    );
    let volumes = format!("volumes: [{{name: notes, hostPath: {{path: {}}}}}], containers", notes.display());
    node.write("ends.yaml", &ends.replace("containers", &volumes));
    node.start();
    node.until_running("stays", "app");
    node.until_running("ends", "app");
    let before = process(&node, "stays", "app");
    node.kill();
    assert_eq!(process(&node, "stays", "app"), before, "it runs without an agent");
    fs::write(notes.join("end"), "").unwrap();
    node.until("it ends without an agent", |_| !notes.join("end").exists());
    node.start();
    node.until("the exit is known", |node| {
        node.container("ends", "app").is_some_and(|c| c["state"]["terminated"]["exitCode"] == 42)
    });
    assert_eq!(process(&node, "stays", "app"), before);
    assert_eq!(node.container("stays", "app").unwrap()["restartCount"], 0);
    node.stop();
    assert_eq!(process(&node, "stays", "app"), before, "a clean end disturbs nothing either");
    node.end();
}

/// A hook may take minutes. An agent that is asked to end leaves it; the next one stops the container.
#[test]
fn an_agent_ends_beside_hooks_that_take_their_time() {
    let mut node = Node::new();
    for (name, hook) in
        [("sleeps", "{sleep: {seconds: 600}}"), ("works", "{exec: {command: [sleep, '600']}}")]
    {
        let container = format!(
            "[{{name: app, image: 'registry.local/busybox:1', command: [sh, -c, \"{LOOP}\"], lifecycle: {{preStop: {hook}}}}}]"
        );
        let manifest = pod(name, "Always", &container)
            .replace("terminationGracePeriodSeconds: 2", "terminationGracePeriodSeconds: 900");
        assert!(manifest.contains("900"), "{manifest}");
        node.write(&format!("{name}.yaml"), &manifest);
    }
    node.start();
    for name in ["sleeps", "works"] {
        node.until_running(name, "app");
        node.remove(&format!("{name}.yaml"));
    }
    node.until("both hooks are under way", |node| {
        ["sleeps", "works"].iter().all(|name| node.log().contains(&format!("{name}/app#0.0  Stopping")))
    });
    std::thread::sleep(Duration::from_millis(300));
    let since = std::time::Instant::now();
    node.stop();
    assert!(since.elapsed() < Duration::from_secs(20), "{:?}", since.elapsed());
    node.end();
}

#[test]
fn a_killed_shim_is_a_lost_sandbox_and_its_containers_are_ended_and_made_again() {
    let mut node = Node::new();
    node.write(
        "web.yaml",
        &pod(
            "web",
            "Always",
            &format!("[{{name: app, image: 'registry.local/busybox:1', command: [sh, -c, \"{LOOP}\"]}}]"),
        ),
    );
    node.start();
    node.until_running("web", "app");
    let before = process(&node, "web", "app");
    let shims = shims(&node);
    assert_eq!(shims.len(), 1);
    assert!(std::process::Command::new("kill").args(["-KILL", &shims[0]]).status().unwrap().success());
    node.until("another instance runs", |node| {
        let output = node.exec("web", "app", &["sh", "-c", "cut -d' ' -f22 /proc/1/stat"]);
        output.status.success() && String::from_utf8_lossy(&output.stdout) != before
    });
    // What the former one kept ready ends by itself, a moment later.
    node.until("there is one shim", |node| self::shims(node).len() == 1);
    node.end();
}

/// The processes of the node's shims; not those that they keep ready for containers, which are their children.
pub fn shims(node: &Node) -> Vec<String> {
    let run = node.layout.run().display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&line).replace('\0', " ");
        if text.contains("__nodefold-pod-shim") && text.contains(&run) {
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let parent =
                status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap_or("").trim().to_owned();
            found.push((entry.file_name().to_string_lossy().into_owned(), parent));
        }
    }
    let all: Vec<String> = found.iter().map(|(process, _)| process.clone()).collect();
    found.into_iter().filter(|(_, parent)| !all.contains(parent)).map(|(process, _)| process).collect()
}
