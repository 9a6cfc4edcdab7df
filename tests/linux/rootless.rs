//! A node of an ordinary user: the same scenarios, an agent's life and deaths, what is refused and by which name, and that nothing
//! stays. Each test is a user of its own, so that what is his can be counted.

use nodefold_agent::rootless;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A test that waits longer than this for something has lost it.
const PATIENCE: Duration = Duration::from_secs(180);

/// A user, and a directory that is his.
struct User {
    id: u32,
    directory: tempfile::TempDir,
    /// What makes the world in which his programs run, by root: a program and its arguments, to which the rest is given.
    world: Vec<String>,
    agent: Option<Child>,
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Where each run of these tests begins to count: two at once on a host are not each other's.
fn first_of_run(length: u32) -> u32 {
    1_000_000 + std::process::id() % 100_000 * length
}

impl User {
    /// One of ten.
    fn new(number: u32) -> User {
        let id = first_of_run(10) + number;
        let directory = tempfile::tempdir().unwrap();
        let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        open(directory.path());
        let program = directory.path().join("nodefold");
        let built = env!("CARGO_BIN_EXE_nodefold");
        // Where he can't go the program may lie, so it lies here too.
        fs::hard_link(built, &program).or_else(|_| fs::copy(built, &program).map(drop)).unwrap();
        open(&program);
        for name in ["home", "home/pods"] {
            fs::create_dir(directory.path().join(name)).unwrap();
            chown(directory.path().join(name), Some(id), Some(id)).unwrap();
        }
        User { id, directory, world: Vec::new(), agent: None }
    }

    fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    fn data(&self) -> String {
        self.home().join("node").display().to_string()
    }

    fn command(&self, args: &[&str]) -> Command {
        let id = self.id.to_string();
        let mut words = self.world.clone();
        words.extend(["setpriv", "--reuid", &id, "--regid", &id, "--clear-groups"].map(str::to_owned));
        words.push(self.directory.path().join("nodefold").display().to_string());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(args).env("TMPDIR", self.home()).current_dir("/");
        command
    }

    fn nodefold(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn doctor(&self) -> Value {
        let told = self.nodefold(&["doctor", "--json"]);
        let told: Value =
            serde_json::from_slice(&told.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&told)));
        assert_eq!(
            told["mode"], "rootless",
            "an ordinary user must be able to make user namespaces here (sysctls user.max_user_namespaces, \
             kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns): {told:#}"
        );
        told
    }

    fn write(&self, file: &str, manifest: &str) {
        let pods = self.home().join("pods");
        fs::write(pods.join(format!(".{file}")), manifest).unwrap();
        fs::rename(pods.join(format!(".{file}")), pods.join(file)).unwrap();
    }

    fn start(&mut self) {
        let log =
            fs::OpenOptions::new().create(true).append(true).open(self.directory.path().join("log")).unwrap();
        let pods = self.home().join("pods").display().to_string();
        let mut command = self.command(&["agent", "--data", &self.data(), "--pods", &pods]);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.agent = Some(command.spawn().unwrap());
    }

    fn kill(&mut self) {
        let mut agent = self.agent.take().unwrap();
        agent.kill().unwrap();
        agent.wait().unwrap();
    }

    fn stop(&mut self) {
        let mut agent = self.agent.take().unwrap();
        crate::node::until_it_hears_term(agent.id());
        assert!(Command::new("kill").arg(agent.id().to_string()).status().unwrap().success());
        let status = agent.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    fn pods(&self) -> Vec<Value> {
        let output = self.nodefold(&["ps", "--json", "--data", &self.data()]);
        assert!(output.status.success(), "{}", text(&output));
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn container(&self, pod: &str, name: &str) -> Option<Value> {
        let pod = self.pods().into_iter().find(|of| of["metadata"]["name"] == pod)?;
        pod["status"]["containerStatuses"].as_array()?.iter().find(|of| of["name"] == name).cloned()
    }

    fn until(&self, what: &str, holds: impl Fn(&User) -> bool) {
        let since = Instant::now();
        while !holds(self) {
            assert!(since.elapsed() < PATIENCE, "waited for: {what}\n{:#?}\n{}", self.pods(), self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn until_running(&self, pod: &str, name: &str) {
        self.until(&format!("{pod}/{name} runs"), |user| {
            user.container(pod, name).is_some_and(|c| c["state"]["running"].is_object())
        });
    }

    /// What a command in a container prints.
    fn exec(&self, pod: &str, container: &str, command: &str) -> String {
        let data = self.data();
        let done = self.nodefold(&["exec", "--data", &data, pod, container, "--", "sh", "-c", command]);
        assert!(done.status.success(), "{command}: {}\n{}", text(&done), self.log());
        String::from_utf8(done.stdout).unwrap()
    }

    /// The command lines of the living processes of his ids.
    fn processes(&self, ids: std::ops::Range<u32>) -> Vec<String> {
        self.living(ids).into_iter().map(|(_, line)| line).collect()
    }

    /// The living processes of his ids, with their command lines. One that is dead and not reaped is process 1's affair.
    fn living(&self, ids: std::ops::Range<u32>) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.map(|line| line.split_whitespace().next().unwrap_or("").to_owned()).unwrap_or_default()
            };
            let is_his = field("Uid:").parse().is_ok_and(|uid| ids.contains(&uid) || uid == self.id);
            if is_his && !["Z", "X"].contains(&&*field("State:")) {
                let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let line = String::from_utf8_lossy(&line).replace('\0', " ");
                found.push((entry.file_name().to_string_lossy().into_owned(), line));
            }
        }
        found
    }

    /// Takes his node down. Nothing of it is left.
    fn end(mut self) {
        if self.agent.is_some() {
            self.stop();
        }
        let cleaned = self.nodefold(&["cleanup", "--images", "--data", &self.data()]);
        assert!(cleaned.status.success(), "{}", text(&cleaned));
        self.nothing_is_left(0..0);
        let mut left: Vec<_> = fs::read_dir(self.data()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["content.key", "journal", "status"]);
        assert_eq!(fs::read_dir(self.home()).unwrap().count(), 2, "only the node and its manifests");
    }

    fn nothing_is_left(&self, ids: std::ops::Range<u32>) {
        let since = Instant::now();
        loop {
            let left = self.processes(ids.clone());
            if left.is_empty() {
                break;
            }
            // What was killed is dead a moment later.
            assert!(since.elapsed() < PATIENCE, "processes are left: {left:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(&self.directory.path().display().to_string()), "{mounts}");
    }
}

impl Drop for User {
    fn drop(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            drop(agent.kill().and_then(|()| agent.wait()));
        }
        // After a failed test: nothing may leak into another.
        if self.home().join("node").exists() {
            drop(self.nodefold(&["cleanup", "--data", &self.data()]));
        }
    }
}

#[test]
fn scenarios_hold_for_an_ordinary_user() {
    let user = User::new(1);
    user.doctor();
    let journals = user.home().join("journals");
    fs::create_dir(&journals).unwrap();
    chown(&journals, Some(user.id), Some(user.id)).unwrap();
    for name in [
        "examples/workspace-swap",
        "examples/warm-pod",
        "examples/sidecar-upgrade",
        "tests/scenarios/readiness-gates",
        "tests/scenarios/requests-and-an-end-while-the-agent-is-down",
    ] {
        let file = user.directory.path().join("story.yaml");
        fs::copy(format!("{}/{name}.yaml", env!("CARGO_MANIFEST_DIR")), &file).unwrap();
        let file = file.display().to_string();
        let journal = journals.join(name.replace('/', "-")).display().to_string();
        let run = user.nodefold(&["run", "--backend", "linux", "--journal", &journal, &file]);
        assert_eq!(run.status.code(), Some(0), "{name}: {}", text(&run));
        let verify = user.nodefold(&["verify", &journal]);
        assert_eq!(verify.status.code(), Some(0), "{name}: {}", text(&verify));
        let left: Vec<_> = fs::read_dir(user.home()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name == "pods" || name == "journals"), "{name}: {left:?}");
        user.nothing_is_left(0..0);
    }
}

/// Where no controller was delegated.
const RESIZED: &str = "name: resized
about: A resize that nobody can carry out is refused.
steps:
- create:
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec: {containers: [{name: app, image: 'registry.local/busybox:1', command: [sleep, '1000'], resources: {requests: {cpu: 100m}, limits: {cpu: 200m}}}]}
- settle: 1m
- resize: {pod: web, patch: {spec: {containers: [{name: app, resources: {requests: {cpu: 150m}, limits: {cpu: 300m}}}]}}}
- advance: 5s
- expect: {pod: web, status: {conditions: [{type: PodResizeInProgress, status: 'True', reason: Error}]}}
";

#[test]
fn a_resize_without_controllers_is_refused() {
    let user = User::new(6);
    let file = user.directory.path().join("story.yaml");
    fs::write(&file, RESIZED).unwrap();
    let run = user.nodefold(&["run", "--backend", "linux", &file.display().to_string()]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run));
    assert!(text(&run).contains("no cpu and memory controllers to limit a pod with"), "{}", text(&run));
    user.nothing_is_left(0..0);
}

const POD: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data: {word: first}
---
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {key: hidden}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 2
  securityContext: {sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: '80'}]}
  volumes:
  - {name: c, configMap: {name: c}}
  - {name: s, secret: {secretName: s}}
  - {name: m, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: d, emptyDir: {}}
  containers:
  - name: app
    image: registry.local/busybox:1
    command: [sh, -c, \"trap 'exit 0' TERM; echo up; while true; do sleep 0.1; done\"]
    readinessProbe: {exec: {command: [test, -e, /c/word]}, periodSeconds: 1}
    volumeMounts: [{name: c, mountPath: /c}, {name: s, mountPath: /s}, {name: m, mountPath: /m}, {name: d, mountPath: /d}]
  - name: other
    image: registry.local/busybox:1
    command: [sleep, '100000']
    securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}
    volumeMounts: [{name: d, mountPath: /d}]
";

#[test]
fn an_ordinary_users_agent_may_die_and_its_keeper_too() {
    let mut user = User::new(2);
    user.doctor();
    user.write("web.yaml", POD);
    user.start();
    user.until_running("web", "app");
    user.until_running("web", "other");
    user.until("it is ready", |user| user.container("web", "app").is_some_and(|c| c["ready"] == true));
    for what in ["several ids", "control groups", "what is the host's root's"] {
        assert!(user.log().contains(&format!("without {what}: ")), "{what}: {}", user.log());
    }
    assert_eq!(
        user.exec("web", "app", "id -u; id -g; cat /c/word /s/key; cat /proc/1/comm"),
        "0\n0\nfirsthiddensh\n"
    );
    let size = user.exec("web", "app", "df -k /m | tail -1");
    assert!(size.split_whitespace().any(|word| word == "1024"), "{size}");
    user.exec(
        "web",
        "app",
        "echo kept > /m/word; echo shared > /d/word; rm -r /var; mkdir /var; echo 1 > /dev/null",
    );
    assert_eq!(
        user.exec("web", "other", "cat /d/word; cat /proc/sys/net/ipv4/ip_unprivileged_port_start"),
        "shared\n80\n"
    );
    let bounds = user.exec(
        "web",
        "other",
        "grep -E 'CapEff|Seccomp:|NoNewPrivs' /proc/self/status; touch /x 2>&1 || true",
    );
    for what in ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "Read-only file system"] {
        assert!(bounds.contains(what), "{what}: {bounds}");
    }
    let logs = text(&user.nodefold(&["logs", "--data", &user.data(), "web", "app"]));
    assert!(logs.contains("up"), "{logs}");

    // An agent that is killed disturbs nothing.
    let before = user.container("web", "app").unwrap()["containerID"].clone();
    user.kill();
    user.write("c.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {word: second}\n");
    user.write("web.yaml", POD.split_once("---\n").unwrap().1);
    user.start();
    user.until("the next agent shows what is new", |user| user.exec("web", "app", "cat /c/word") == "second");
    assert_eq!(user.exec("web", "app", "cat /m/word"), "kept\n");
    let now = user.container("web", "app").unwrap();
    assert_eq!((&now["containerID"], &now["restartCount"]), (&before, &0.into()));

    // Without its keeper nobody can find what runs any more: it is ended, and begun anew, in empty volumes of memory.
    let keeper = fs::read_to_string(Path::new(&user.data()).join(rootless::FILE)).unwrap();
    assert!(Command::new("kill").args(["-9", keeper.trim()]).status().unwrap().success());
    user.kill();
    user.start();
    user.until("it runs again", |user| {
        user.container("web", "app").is_some_and(|c| {
            c["state"]["running"].is_object()
                && c["ready"] == true
                && (c["containerID"] != before || c["restartCount"] != 0)
        })
    });
    user.until_running("web", "other");
    assert_eq!(
        user.exec("web", "app", "cat /m/word /d/word 2>/dev/null; cat /s/key; true"),
        "shared\nhidden"
    );
    let sleepers = user.processes(0..0).into_iter().filter(|line| line.starts_with("sleep 100000")).count();
    assert_eq!(sleepers, 1, "nothing runs twice: {:#?}", user.processes(0..0));

    // And a container ends as everywhere.
    fs::remove_file(user.home().join("pods/web.yaml")).unwrap();
    user.until("the pod is gone", |user| user.pods().is_empty());
    user.end();
}

#[test]
fn what_an_ordinary_user_can_not_have_is_refused_by_name() {
    let mut user = User::new(3);
    user.doctor();
    let closed = user.directory.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    let volume = format!("volumes: [{{name: v, hostPath: {{path: {}}}}}], ", closed.display());
    let of_container = |what: &str| format!("securityContext: {{{what}}}");
    let rows = [
        (
            "network",
            "hostNetwork: true, ",
            String::new(),
            "hostNetwork: true can't be had of a rootless node",
        ),
        ("pid", "hostPID: true, ", String::new(), "hostPID: true can't be had of a rootless node"),
        ("ipc", "hostIPC: true, ", String::new(), "hostIPC: true can't be had of a rootless node"),
        ("users", "hostUsers: false, ", String::new(), "hostUsers: false can't be had of a rootless node"),
        ("share", "shareProcessNamespace: true, ", String::new(), "shareProcessNamespace: true can't be had"),
        (
            "sysctl",
            "securityContext: {sysctls: [{name: kernel.panic, value: '1'}]}, ",
            String::new(),
            "kernel.panic",
        ),
        ("user", "", of_container("runAsUser: 1000"), "user 1000 is none of the ids"),
        ("group", "", of_container("runAsGroup: 1000"), "group 1000 is none of the ids"),
        (
            "fs",
            "securityContext: {fsGroup: 2000}, volumes: [{name: v, emptyDir: {}}], ",
            String::new(),
            "fsGroup 2000 is none of the ids",
        ),
        (
            "more",
            "securityContext: {supplementalGroups: [3000]}, ",
            String::new(),
            "group 3000 is none of the ids",
        ),
        (
            "privileged",
            "",
            of_container("privileged: true"),
            "privileged: true can't be had of a rootless node",
        ),
        ("mknod", "", of_container("capabilities: {add: [MKNOD]}"), "can't give CAP_MKNOD"),
        ("path", &volume, String::new(), "its user may not read it"),
        (
            "huge",
            "volumes: [{name: v, emptyDir: {medium: HugePages}}], ",
            "resources: {limits: {hugepages-2Mi: 2Mi, memory: 16Mi}}".into(),
            "make a hugetlbfs file system",
        ),
    ];
    for (name, of_pod, of_container, _) in &rows {
        let mounts =
            if of_pod.contains("volumes:") { ", volumeMounts: [{name: v, mountPath: /v}]" } else { "" };
        let of_container = if of_container.is_empty() { String::new() } else { format!(", {of_container}") };
        user.write(
            &format!("{name}.yaml"),
            &format!(
                "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{{of_pod}containers: [{{name: app, image: 'registry.local/busybox:1', command: [sleep, '100'], imagePullPolicy: IfNotPresent{of_container}{mounts}}}]}}\n"
            ),
        );
    }
    user.start();
    for (name, _, _, told) in &rows {
        user.until(&format!("{name} is refused: {told}"), |user| {
            user.log().lines().any(|line| line.contains(&format!(" {name}")) && line.contains(told))
        });
        assert!(user.container(name, "app").is_none_or(|c| c["state"]["running"].is_null()), "{name} runs");
    }
    for (name, ..) in &rows {
        fs::remove_file(user.home().join(format!("pods/{name}.yaml"))).unwrap();
    }
    user.until("the pods are gone", |user| user.pods().is_empty());
    user.end();
}

/// A copy of /etc, in a mount namespace of the test's own, that knows the user and gives him ids.
const GIVES_IDS: &str = r#"
set -e
id=$1 etc=$2 first=$3; shift 3
if [ ! -e "$etc/passwd" ]; then
  cp -a /etc/. "$etc"
  echo "giver:x:$id:$id::/:/bin/sh" >> "$etc/passwd"
  echo "giver:x:$id:" >> "$etc/group"
  for file in subuid subgid; do echo "giver:$first:3000" > "$etc/$file"; done
fi
mount --bind "$etc" /etc
exec "$@"
"#;

#[test]
fn with_ranges_of_ids_containers_can_be_of_several_users() {
    let mut user = User::new(4);
    let etc = user.directory.path().join("etc");
    fs::create_dir(&etc).unwrap();
    let words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", GIVES_IDS, "sh"];
    user.world = words.iter().map(|word| (*word).to_owned()).collect();
    let first = first_of_run(3000) + 1_000_000;
    let given = first..first + 3000;
    user.world.extend([user.id.to_string(), etc.display().to_string(), first.to_string()]);
    let told = user.doctor();
    let ids =
        told["findings"].as_array().unwrap().iter().find(|finding| finding["what"] == "several ids").unwrap();
    assert_eq!(ids["there"], true, "newuidmap and newgidmap (package uidmap) must be there: {ids}");
    user.write(
        "many.yaml",
        "apiVersion: v1
kind: Pod
metadata: {name: many}
spec:
  securityContext: {runAsUser: 1000, runAsGroup: 1001, fsGroup: 2000, supplementalGroups: [2500]}
  volumes: [{name: v, emptyDir: {}}, {name: m, emptyDir: {medium: Memory}}]
  containers:
  - {name: app, image: 'registry.local/busybox:1', command: [sleep, '100000'], volumeMounts: [{name: v, mountPath: /v}, {name: m, mountPath: /m}]}
",
    );
    user.write(
        "beyond.yaml",
        "apiVersion: v1
kind: Pod
metadata: {name: beyond}
spec: {containers: [{name: app, image: 'registry.local/busybox:1', command: [sleep, '100000'], securityContext: {runAsUser: 3001}}]}
",
    );
    user.start();
    user.until_running("many", "app");
    let is = user.exec("many", "app", "id -u; id -g; id -G; touch /v/x /m/x; stat -c '%u %g' /v/x /m/x");
    let words: Vec<&str> = is.split_whitespace().collect();
    assert_eq!(words[..2], ["1000", "1001"], "{is}");
    for group in ["2000", "2500"] {
        assert!(words[2..].contains(&group), "{is}");
    }
    assert!(is.ends_with("1000 2000\n1000 2000\n"), "{is}");
    // On the host it is one of those that were given.
    let of_range = user.processes(given.clone());
    assert!(of_range.iter().any(|line| line.starts_with("sleep")), "{of_range:#?}");
    user.until("an id beyond them is refused", |user| user.log().contains("user 3001 is none of the ids"));
    fs::remove_file(user.home().join("pods/many.yaml")).unwrap();
    fs::remove_file(user.home().join("pods/beyond.yaml")).unwrap();
    user.until("the pods are gone", |user| user.pods().is_empty());
    user.until("no process of the range is left", |user| {
        user.processes(given.clone()).iter().all(|line| line.contains("nodefold"))
    });
    user.end();
}

/// Enters a group that is the user's, as systemd delegates one.
const DELEGATES: &str = r#"
set -e
id=$1 group=$2; shift 2
if [ ! -e "$group/session" ]; then
  mkdir "$group" "$group/session"
  for at in "$group" "$group/session"; do chown "$id" "$at" "$at/cgroup.procs" "$at/cgroup.subtree_control"; done
fi
echo $$ > "$group/session/cgroup.procs"
exec "$@"
"#;

/// It goes when the test has ended, and whatever was left in it by one that failed.
struct Delegated(PathBuf);

impl Delegated {
    fn new() -> Delegated {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let root = mounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            (fields[2] == "cgroup2").then(|| fields[1].to_owned())
        });
        let root = root.expect("cgroup2 must be mounted to delegate of it");
        Delegated(Path::new(&root).join(format!("nodefold-test-{}", std::process::id())))
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        drop(fs::remove_dir(self.0.join("session")));
        drop(fs::remove_dir(&self.0));
    }
}

#[test]
fn what_was_delegated_of_control_groups_is_used() {
    let group = Delegated::new();
    let mut user = User::new(5);
    user.world = ["sh", "-c", DELEGATES, "sh"].iter().map(|word| (*word).to_owned()).collect();
    user.world.extend([user.id.to_string(), group.0.display().to_string()]);
    let told = user.doctor();
    let groups = told["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["what"] == "control groups")
        .unwrap();
    assert_eq!(groups["there"], true, "{groups}");
    user.write(
        "both.yaml",
        "apiVersion: v1
kind: Pod
metadata: {name: both}
spec:
  terminationGracePeriodSeconds: 1
  shareProcessNamespace: true
  containers:
  - {name: app, image: 'registry.local/busybox:1', command: [sh, -c, 'sleep 100001 & wait']}
  - {name: other, image: 'registry.local/busybox:1', command: [sleep, '100000']}
",
    );
    user.start();
    user.until_running("both", "app");
    user.until_running("both", "other");
    let seen = user.exec(
        "both",
        "other",
        "ps | grep -c 'sleep 10000[01]'; ls /sys/fs/cgroup | grep -c cgroup.procs",
    );
    // Both containers' programs, a shell's two among them, and the shell that looks.
    assert!(seen.ends_with("\n1\n"), "its own group is shown: {seen}");
    let below = |at: &Path, prefix: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(at).unwrap().flatten().filter(|entry| entry.path().is_dir());
        let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        named.map(|entry| entry.path()).collect()
    };
    let own = below(&group.0, "nodefold-").pop().expect("the node's group");
    let of_pod = below(&own, "pod").pop().expect("the pod's group");
    let members = |at: &PathBuf| fs::read_to_string(at.join("cgroup.procs")).unwrap_or_default();
    let inhabited = below(&of_pod, "").iter().filter(|at| !members(at).is_empty()).count();
    assert!(inhabited >= 3, "the shim and two containers have groups");
    // What a container leaves behind ends with it, though it was not its first process.
    user.until("the background sleeper runs", |user| {
        user.processes(0..0).iter().any(|line| line.starts_with("sleep 100001"))
    });
    let shell = user.living(0..0).into_iter().find(|(_, line)| line.contains("sleep 100001 & wait"));
    let (shell, _) = shell.expect("the shell runs");
    assert!(Command::new("kill").args(["-9", &shell]).status().unwrap().success());
    user.until("it was begun again", |user| {
        user.container("both", "app")
            .is_some_and(|c| c["restartCount"] == 1 && c["state"]["running"].is_object())
    });
    user.until("one background sleeper", |user| {
        user.processes(0..0).iter().filter(|line| line.starts_with("sleep 100001")).count() == 1
    });
    fs::remove_file(user.home().join("pods/both.yaml")).unwrap();
    user.until("the pod is gone", |user| user.pods().is_empty());
    user.end();
    assert_eq!(below(&group.0, ""), [group.0.join("session")]);
}
