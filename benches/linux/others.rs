//! What is measured beside the node, in the same run: runc, crun and containerd starting the same program.

use nodefold_agent::clock;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// `run -d` of an OCI runtime. `before`: a program that starts it.
pub fn oci(
    before: Option<&Path>,
    runtime: &str,
    directory: &Path,
    image: &Path,
    samples: usize,
) -> Result<Vec<u64>, String> {
    let bundle = directory.join(format!("{runtime}-bundle"));
    fs::create_dir_all(&bundle).unwrap();
    let config = json!({
        "ociVersion": "1.0.2",
        "process": {"user": {"uid": 0, "gid": 0}, "args": ["/payload"], "cwd": "/", "env": ["PATH=/"]},
        "root": {"path": image, "readonly": true},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "strictatime", "mode=755", "size=65536k"]},
        ],
        "linux": {"namespaces": (["pid", "mount", "ipc", "uts"].map(|kind| json!({"type": kind})))},
    });
    fs::write(bundle.join("config.json"), config.to_string()).unwrap();
    let state = directory.join(format!("{runtime}-state"));
    let program = || match before {
        Some(before) => {
            let mut command = Command::new(before);
            command.arg(runtime);
            command
        }
        None => Command::new(runtime),
    };
    let mut times = Vec::new();
    for number in 0..samples {
        let id = format!("nodefold-bench-{}-{number}", std::process::id());
        let (out, told) = (directory.join("out"), directory.join("told"));
        let file = fs::File::create(&out).unwrap();
        let from = clock::monotonic();
        let run = program()
            .arg("--root")
            .arg(&state)
            .args(["run", "-d", "--bundle"])
            .arg(&bundle)
            .arg(&id)
            .stdin(Stdio::null())
            .stdout(file)
            // A pipe would stay open as long as the container.
            .stderr(fs::File::create(&told).unwrap())
            .status()
            .unwrap();
        if !run.success() {
            return Err(fs::read_to_string(&told).unwrap().trim().to_owned());
        }
        times.push(told_in(&out) - from.0);
        program().arg("--root").arg(&state).args(["delete", "-f", &id]).status().unwrap();
    }
    Ok(times)
}

/// The number that the payload writes into a file.
fn told_in(file: &Path) -> u64 {
    loop {
        if let Ok(number) = fs::read_to_string(file).unwrap_or_default().trim().parse() {
            return number;
        }
    }
}

/// A containerd of the bench's own, as a plain process.
pub struct Containerd {
    daemon: Child,
    socket: PathBuf,
}

impl Containerd {
    pub fn start(directory: &Path) -> Result<Containerd, String> {
        let home = directory.join("containerd");
        fs::create_dir_all(&home).unwrap();
        let socket = home.join("containerd.sock");
        let config = format!(
            "version = 2\nroot = {:?}\nstate = {:?}\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\naddress = {:?}\n",
            home.join("root"),
            home.join("state"),
            socket
        );
        fs::write(home.join("config.toml"), config).unwrap();
        let log = fs::File::create(home.join("log")).unwrap();
        let daemon = Command::new("containerd")
            .arg("--config")
            .arg(home.join("config.toml"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| error.to_string())?;
        let containerd = Containerd { daemon, socket };
        for _ in 0..100 {
            let answers =
                containerd.ctr().arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
            if answers.map_err(|error| error.to_string())?.success() {
                return Ok(containerd);
            }
            clock::pause(nodefold_core::time::Nanos::millis(100));
        }
        Err(format!("it does not answer: {}", fs::read_to_string(home.join("log")).unwrap_or_default()))
    }

    fn ctr(&self) -> Command {
        let mut ctr = Command::new("ctr");
        ctr.arg("--address").arg(&self.socket);
        ctr
    }

    /// `ctr run -d`: from the client's start to the payload's first instruction, the client's own start with it.
    pub fn run(&self, directory: &Path, image: &Path, samples: usize) -> Result<Vec<u64>, String> {
        let mut times = Vec::new();
        for number in 0..samples {
            let id = format!("nodefold-bench-{}-{number}", std::process::id());
            let out = directory.join("ctr-out");
            fs::write(&out, "").unwrap();
            let from = clock::monotonic();
            let run = self
                .ctr()
                .args(["run", "-d", "--rootfs", "--log-uri"])
                .arg(format!("file://{}", out.display()))
                .arg(image)
                .args([&id, "/payload"])
                .stdin(Stdio::null())
                .output()
                .unwrap();
            if !run.status.success() {
                return Err(String::from_utf8_lossy(&run.stderr).trim().to_owned());
            }
            times.push(told_in(&out) - from.0);
            self.ctr()
                .args(["task", "rm", "-f", &id])
                .stderr(Stdio::null())
                .stdout(Stdio::null())
                .status()
                .unwrap();
            self.ctr()
                .args(["container", "rm", &id])
                .stderr(Stdio::null())
                .stdout(Stdio::null())
                .status()
                .unwrap();
        }
        Ok(times)
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        drop(self.daemon.kill().and_then(|()| self.daemon.wait()));
    }
}
