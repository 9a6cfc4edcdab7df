//! A node of a test's own: a directory, manifests, and an agent that can be started, killed and started again.

use nodefold_agent::cleanup;
use nodefold_agent::layout::Layout;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A test that waits longer than this for something has lost it.
const PATIENCE: Duration = Duration::from_secs(180);

pub fn nodefold(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_nodefold")).args(args).output().unwrap()
}

pub struct Node {
    directory: tempfile::TempDir,
    pub layout: Layout,
    agent: Option<Child>,
    /// Further arguments of the agent.
    more: Vec<String>,
}

impl Node {
    pub fn new() -> Node {
        assert!(rustix_is_root(), "these tests need root: real mounts, namespaces and control groups");
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("pods")).unwrap();
        let layout = Layout::at(directory.path().join("node"));
        Node { directory, layout, agent: None, more: Vec::new() }
    }

    pub fn data(&self) -> String {
        self.layout.data().display().to_string()
    }

    /// A place for the test's own files.
    pub fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    pub fn manifests(&self) -> PathBuf {
        self.directory.path().join("pods")
    }

    pub fn write(&self, file: &str, text: &str) {
        let draft = self.manifests().join(format!(".{file}"));
        fs::write(&draft, text).unwrap();
        fs::rename(draft, self.manifests().join(file)).unwrap();
    }

    pub fn remove(&self, file: &str) {
        fs::remove_file(self.manifests().join(file)).unwrap();
    }

    /// Every agent from now on is started with these, too.
    pub fn agent_args(&mut self, args: &[&str]) {
        self.more = args.iter().map(|arg| (*arg).to_owned()).collect();
    }

    pub fn start(&mut self) {
        let pods = self.manifests().display().to_string();
        self.start_as(&["--pods", &pods]);
    }

    /// One that serves an API instead of reading manifests.
    pub fn serve(&mut self) {
        let times = |node: &Node| node.log().matches("serving https").count();
        let before = times(self);
        self.start_as(&["--backend", "linux"]);
        let begun = Instant::now();
        while times(self) == before {
            assert!(begun.elapsed() < PATIENCE, "it never serves: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn start_as(&mut self, kind: &[&str]) {
        assert!(self.agent.is_none());
        let log =
            fs::OpenOptions::new().create(true).append(true).open(self.directory.path().join("log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_nodefold"))
            .args(["agent", "--data", &self.data()])
            .args(kind)
            .args(&self.more)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.agent = Some(child);
    }

    /// KILL: no warning, no cleaning up.
    pub fn kill(&mut self) {
        let mut agent = self.agent.take().unwrap();
        agent.kill().unwrap();
        agent.wait().unwrap();
    }

    /// Waits until it has died of itself.
    pub fn until_dead(&mut self, what: &str) {
        let since = Instant::now();
        let mut agent = self.agent.take().unwrap();
        while agent.try_wait().unwrap().is_none() {
            if since.elapsed() > PATIENCE {
                agent.kill().unwrap();
                panic!("the agent never came to {what}\n{:?}\n{}", self.pods(), self.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// TERM: it ends cleanly.
    pub fn stop(&mut self) {
        let mut agent = self.agent.take().unwrap();
        until_it_hears_term(agent.id());
        let stopped = Command::new("kill").arg(agent.id().to_string()).status().unwrap();
        assert!(stopped.success());
        let status = agent.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.log());
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    pub fn pods(&self) -> Vec<Value> {
        let output = nodefold(&["ps", "--json", "--data", &self.data()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// A container's status.
    pub fn container(&self, pod: &str, name: &str) -> Option<Value> {
        let pod = self.pods().into_iter().find(|of| of["metadata"]["name"] == pod)?;
        pod["status"]["containerStatuses"].as_array()?.iter().find(|of| of["name"] == name).cloned()
    }

    /// Waits until something holds.
    pub fn until(&self, what: &str, holds: impl Fn(&Node) -> bool) {
        let since = Instant::now();
        while !holds(self) {
            assert!(since.elapsed() < PATIENCE, "waited for: {what}\n{:?}\n{}", self.pods(), self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn until_running(&self, pod: &str, name: &str) {
        self.until(&format!("{pod}/{name} runs"), |node| {
            node.container(pod, name).is_some_and(|c| c["state"]["running"].is_object())
        });
    }

    pub fn exec(&self, pod: &str, container: &str, command: &[&str]) -> Output {
        let data = self.data();
        let mut args = vec!["exec", "--data", &data, pod, container, "--"];
        args.extend(command);
        nodefold(&args)
    }

    pub fn logs(&self, pod: &str, container: &str) -> String {
        let output = nodefold(&["logs", "--data", &self.data(), pod, container]);
        String::from_utf8(output.stdout).unwrap()
    }

    /// All manifests go, and with them everything that they were for. Nothing may be left.
    pub fn end(self) {
        self.end_with(|| {});
    }

    /// The same, with a look at the journal when the agent has ended.
    pub fn end_with(mut self, look: impl FnOnce()) {
        for entry in fs::read_dir(self.manifests()).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        if self.agent.is_none() {
            self.start();
        }
        let pods = self.layout.run().join("pods");
        let left = |node: &Node| -> Vec<String> {
            let mut left = Vec::new();
            for dir in [&pods, &node.layout.pods()] {
                let entries = fs::read_dir(dir).into_iter().flatten().flatten();
                left.extend(entries.map(|entry| entry.path().display().to_string()));
            }
            left
        };
        let since = Instant::now();
        while !(self.pods().is_empty() && left(&self).is_empty()) {
            assert!(since.elapsed() < PATIENCE, "left: {:?}\n{:?}\n{}", left(&self), self.pods(), self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.stop();
        look();
        // The run directory itself stays for the next agent.
        cleanup::clean_up(&self.layout, true).unwrap();
        assert_eq!(cleanup::left_behind(&self.layout).unwrap(), Vec::<String>::new());
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            drop(agent.kill().and_then(|()| agent.wait()));
        }
        // After a failed test: nothing may leak into the next one.
        drop(cleanup::clean_up(&self.layout, true));
    }
}

/// What a test waits for may be an earlier agent's doing: this one may have just begun.
pub fn until_it_hears_term(process: u32) {
    let since = Instant::now();
    let hears = || {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim();
        u64::from_str_radix(caught, 16).unwrap() & 1 << 14 != 0
    };
    while !hears() {
        assert!(since.elapsed() < PATIENCE, "the agent never listens to TERM");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn rustix_is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"))
}
