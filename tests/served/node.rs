//! The node under test: started, killed, started again, and always ended.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Nothing here takes longer, on however busy a machine.
pub const LONG: Duration = Duration::from_secs(120);

pub struct Node {
    dir: TempDir,
    child: Option<Child>,
    pub extra: Vec<String>,
}

impl Node {
    pub fn start(extra: &[&str]) -> Node {
        let dir = TempDir::new().expect("a temporary directory");
        let mut node = Node { dir, child: None, extra: extra.iter().map(ToString::to_string).collect() };
        node.begin();
        node
    }

    pub fn begin(&mut self) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nodefold"))
            .args(["agent", "--backend", "sim", "--data"])
            .arg(self.data())
            .args(&self.extra)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("start the node");
        let mut lines = BufReader::new(child.stdout.take().expect("its output"));
        let mut line = String::new();
        while !line.starts_with("serving ") {
            line.clear();
            assert!(lines.read_line(&mut line).expect("read its output") > 0, "the node ended at its start");
        }
        // What else it tells is read away, or it would wait for us.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        self.child = Some(child);
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("kill the node");
            child.wait().expect("the node's end");
        }
    }

    /// Ends it as a service manager does.
    pub fn stop(&mut self) -> bool {
        let Some(mut child) = self.child.take() else { return false };
        let pid = child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status().expect("send TERM");
        child.wait().expect("the node's end").success()
    }

    /// Its resident memory in KiB, while it runs.
    pub fn memory(&self) -> u64 {
        let pid = self.child.as_ref().expect("it runs").id();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
        line.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number")
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("node")
    }

    pub fn file(&self, name: &str, text: &str) -> String {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).expect("write a file");
        path.display().to_string()
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.data().join("kubeconfig")
    }

    /// A kubeconfig for somebody else.
    pub fn kubeconfig_of(&self, user: &str, groups: &[&str]) -> PathBuf {
        let groups = groups.iter().flat_map(|group| ["--group", group]);
        let out = Command::new(env!("CARGO_BIN_EXE_nodefold"))
            .args(["kubeconfig", "--user", user, "--data"])
            .arg(self.data())
            .args(groups)
            .output()
            .expect("run nodefold kubeconfig");
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let path = self.dir.path().join(format!("{user}.kubeconfig"));
        std::fs::write(&path, out.stdout).expect("write a kubeconfig");
        path
    }

    /// The server's address, `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        let text = std::fs::read_to_string(self.kubeconfig()).expect("the kubeconfig");
        let config: Value = serde_json::from_str(&text).expect("JSON");
        let server = config["clusters"][0]["cluster"]["server"].as_str().expect("a server");
        server.trim_start_matches("https://").to_owned()
    }

    pub fn kubectl_command(&self, kubeconfig: &Path, args: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command.args(args).env("KUBECONFIG", kubeconfig).env("HOME", self.dir.path()).stdin(Stdio::null());
        command
    }

    pub fn kubectl(&self, args: &[&str]) -> Told {
        self.kubectl_as(&self.kubeconfig(), args)
    }

    pub fn kubectl_as(&self, kubeconfig: &Path, args: &[&str]) -> Told {
        let out = self.kubectl_command(kubeconfig, args).output();
        Told::of(args, out.expect("kubectl is needed on the PATH: ./test installs one"))
    }

    /// With this on its standard input.
    pub fn kubectl_with(&self, input: &str, args: &[&str]) -> Told {
        let mut command = self.kubectl_command(&self.kubeconfig(), args);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl is needed on the PATH: ./test installs one");
        child.stdin.take().expect("its input").write_all(input.as_bytes()).expect("write its input");
        Told::of(args, child.wait_with_output().expect("its output"))
    }

    /// Asks again until it holds.
    pub fn until(&self, args: &[&str], holds: impl Fn(&Told) -> bool) -> Told {
        let begun = Instant::now();
        loop {
            let told = self.kubectl(args);
            if holds(&told) {
                return told;
            }
            assert!(begun.elapsed() < LONG, "kubectl {args:?} goes on to say {told:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// What kubectl said.
#[derive(Debug)]
pub struct Told {
    pub args: String,
    pub ok: bool,
    pub out: String,
    pub err: String,
}

impl Told {
    fn of(args: &[&str], out: Output) -> Told {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Told { args: args.join(" "), ok: out.status.success(), out: text(out.stdout), err: text(out.stderr) }
    }

    /// It went well, with nothing on its standard error.
    pub fn fine(self) -> Told {
        assert!(self.ok && self.err.is_empty(), "{self:#?}");
        self
    }

    pub fn says(self, text: &str) -> Told {
        let told = self.fine();
        assert_eq!(told.out.trim_end(), text, "kubectl {}", told.args);
        told
    }

    /// It was refused, in these words.
    pub fn refused(self, text: &str) -> Told {
        assert!(!self.ok && self.err.contains(text), "{self:#?}");
        self
    }

    /// Its lines, each as words.
    pub fn rows(&self) -> Vec<Vec<&str>> {
        self.out.lines().map(|line| line.split_whitespace().collect()).collect()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}
