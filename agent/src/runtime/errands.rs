//! What is done in a running container besides its own program: lifecycle hooks and probes, each in a process of its own.

use super::containers::plan_in;
use super::observe::plan_of_sandbox;
use super::{Phase, Runtime, container_group};
use crate::cgroups::Cgroups;
use crate::clock;
use crate::fault::{Attempt, Fault};
use crate::layout::{self, Layout};
use crate::pod::join::{self, Errand, Task};
use nodefold_core::ids::{ContainerId, PodUid};
use nodefold_core::time::Nanos;
use rustix::fd::OwnedFd;
use serde_json::Value;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

/// So much of what a hook or probe prints is told.
const TOLD: u64 = 1024;

/// How an errand ended.
pub struct Done {
    /// It went well.
    pub well: bool,
    /// What it said.
    pub said: String,
}

impl Runtime {
    /// An errand to a container that runs.
    pub fn errand(&self, pod: PodUid, id: &ContainerId, task: Task) -> Result<Errand, Fault> {
        let state = self.lock();
        let known = state.containers.get(&(pod, id.clone()));
        let known = known.ok_or_else(|| Fault::refused(format!("container {id} not found")))?;
        if !matches!(known.phase, Phase::Running { .. }) {
            return Err(Fault::refused(format!("container {id} is not running")));
        }
        let joins = self.cgroups.procs(&known.group);
        let own_users =
            state.sandboxes.get(&(pod, known.sandbox)).is_some_and(|sandbox| sandbox.users.is_some());
        Ok(Errand {
            own_users,
            sandbox: self.sandbox_dir(pod, known.sandbox).display().to_string(),
            container: layout::container_file(id),
            joins: joins.iter().map(|path| path.display().to_string()).collect(),
            task,
        })
    }

    /// The process that does a task in a container that runs, by its name: whoever starts it gives it somewhere to read and write.
    pub fn exec(&self, pod: PodUid, container: &str, task: Task) -> Result<Command, Fault> {
        let running = {
            let state = self.lock();
            let of_it = state.containers.iter().filter(|((of, id), _)| *of == pod && *id.name == *container);
            let mut running = of_it.filter(|(_, known)| matches!(known.phase, Phase::Running { .. }));
            running.next().map(|((_, id), _)| id.clone())
        };
        let id = running.ok_or_else(|| Fault::refused("it does not run"))?;
        let errand = self.errand(pod, &id, task)?;
        let text = serde_json::to_string(&errand).map_err(|error| Fault::refused(error.to_string()))?;
        let mut command = Command::new(&self.shim_program);
        command.args([join::ARGUMENT, &text]).env_clear().current_dir("/");
        Ok(command)
    }

    /// Lets time pass for a container's hook: no longer than the container lives, or the agent.
    pub fn sleep(&self, pod: PodUid, id: &ContainerId, time: Nanos) -> Result<(), Fault> {
        let process = self.lock().containers.get(&(pod, id.clone())).and_then(|known| known.pidfd.clone());
        match wait_for(process.as_deref(), &self.leaving, Some(time))? {
            Waited::InVain | Waited::Ended => Ok(()),
            Waited::Left => Err(Fault::uncertain("the agent ended while it was under way")),
        }
    }

    /// Does it, and waits for it, no longer than this.
    pub fn do_errand(
        &self,
        pod: PodUid,
        id: &ContainerId,
        task: Task,
        timeout: Option<Nanos>,
    ) -> Result<Done, Fault> {
        let errand = self.errand(pod, id, task)?;
        let text = serde_json::to_string(&errand).map_err(|error| Fault::refused(error.to_string()))?;
        let mut child = Command::new(&self.shim_program)
            .args([join::ARGUMENT, &text])
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .attempt(|| "start a process for it")?;
        let waited = wait(&child, &self.leaving, timeout)?;
        let in_time = waited == Waited::Ended;
        if !in_time {
            child.kill().attempt(|| "end what takes too long")?;
        }
        let status = child.wait().attempt(|| "wait for it")?;
        if waited == Waited::Left {
            return Err(Fault::uncertain("the agent ended while it was under way"));
        }
        let mut said = String::new();
        for pipe in [
            child.stdout.take().map(|p| Box::new(p) as Box<dyn Read>),
            child.stderr.take().map(|p| Box::new(p) as _),
        ] {
            if let (Some(pipe), true) = (pipe, in_time) {
                let mut bytes = Vec::new();
                pipe.take(TOLD).read_to_end(&mut bytes).ok();
                said.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        if !in_time {
            said = format!("timed out after {}", timeout.unwrap_or(Nanos::ZERO));
        }
        Ok(Done { well: in_time && status.success(), said: said.trim_end().to_owned() })
    }
}

/// An errand to the newest instance of a container, found on disk: for a program that is not the agent.
pub fn errand_from_outside(
    layout: &Layout,
    pod: PodUid,
    container: &str,
    task: Task,
) -> Result<Errand, Fault> {
    let of_pod = layout.run().join("pods").join(pod.to_string());
    let mut found = Vec::new();
    for sandbox in std::fs::read_dir(&of_pod).into_iter().flatten().flatten() {
        for file in std::fs::read_dir(sandbox.path().join("c")).into_iter().flatten().flatten() {
            let id = layout::container_of_file(&file.file_name().to_string_lossy());
            found.extend(id.filter(|id| &*id.name == container).map(|id| (id, sandbox.path())));
        }
    }
    found.sort();
    let Some((id, sandbox)) = found.pop() else {
        return Err(Fault::refused(format!("there is no container {container} of pod {pod} on this node")));
    };
    let plan = plan_in(&sandbox.join("c").join(layout::container_file(&id)));
    let joins = Cgroups::detect(layout.cgroup_name())?.procs(&container_group(pod, &id, plan.as_ref()));
    let own_users = plan_of_sandbox(&sandbox).is_some_and(|plan| plan.users.is_some());
    Ok(Errand {
        own_users,
        sandbox: sandbox.display().to_string(),
        container: layout::container_file(&id),
        joins: joins.iter().map(|path| path.display().to_string()).collect(),
        task,
    })
}

/// How waiting for something ended.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Waited {
    Ended,
    InVain,
    /// The agent ends: whoever comes after it will see.
    Left,
}

/// Waits for a process.
fn wait(child: &std::process::Child, leaving: &OwnedFd, timeout: Option<Nanos>) -> Result<Waited, Fault> {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let pid = pid.ok_or_else(|| Fault::refused("a process without a number"))?;
    let pidfd = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())
        .attempt(|| "open its pidfd")?;
    wait_for(Some(&pidfd), leaving, timeout)
}

fn wait_for(pidfd: Option<&OwnedFd>, leaving: &OwnedFd, timeout: Option<Nanos>) -> Result<Waited, Fault> {
    use rustix::event::{PollFd, PollFlags, poll};
    let span = timeout.map(clock::timespec);
    let mut looked_at = vec![PollFd::new(leaving, PollFlags::IN)];
    looked_at.extend(pidfd.map(|pidfd| PollFd::new(pidfd, PollFlags::IN)));
    poll(&mut looked_at, span.as_ref()).attempt(|| "wait for it")?;
    let seen = |at: usize| looked_at.get(at).is_some_and(|fd| !fd.revents().is_empty());
    Ok(match (seen(1), seen(0)) {
        (true, _) => Waited::Ended,
        (false, true) => Waited::Left,
        (false, false) => Waited::InVain,
    })
}

/// What a handler of a hook or probe does, as a task; `None`: it only lets time pass.
pub fn task_of(handler: &Value, container: &Value, timeout: Nanos) -> Result<Option<Task>, String> {
    let timeout_ms = timeout.0 / 1_000_000;
    if handler["exec"].is_object() {
        let words = handler["exec"]["command"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let args = words.map(str::to_owned).collect();
        return Ok(Some(Task::Run { args, tty: false }));
    }
    if handler["sleep"].is_object() {
        return Ok(None);
    }
    for kind in ["httpGet", "tcpSocket"] {
        let action = &handler[kind];
        if !action.is_object() {
            continue;
        }
        let port = port_of(&action["port"], container)?;
        let host = match action["host"].as_str().filter(|host| !host.is_empty()) {
            // The pod's own address.
            None => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Some(host) => host
                .parse()
                .map_err(|_| format!("host {host:?} is no address: this node resolves no names"))?,
        };
        let address = SocketAddr::new(host, port);
        if kind == "tcpSocket" {
            return Ok(Some(Task::Connect { address, timeout_ms }));
        }
        let tls = action["scheme"].as_str() == Some("HTTPS");
        let path = action["path"].as_str().filter(|path| !path.is_empty()).unwrap_or("/").to_owned();
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        let headers = action["httpHeaders"].as_array().into_iter().flatten();
        let headers = headers
            .map(|h| {
                (h["name"].as_str().unwrap_or("").to_owned(), h["value"].as_str().unwrap_or("").to_owned())
            })
            .filter(|(name, value)| !format!("{name}{value}").contains(['\r', '\n']))
            .collect();
        return Ok(Some(Task::Get { address, tls, path, headers, timeout_ms }));
    }
    let grpc = &handler["grpc"];
    if grpc.is_object() {
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port_of(&grpc["port"], container)?);
        let service = grpc["service"].as_str().unwrap_or("").to_owned();
        return Ok(Some(Task::Health { address, service, timeout_ms }));
    }
    Err("this node knows no such handler (exec, httpGet, tcpSocket, grpc and sleep it knows)".into())
}

/// A port by number, or by the name that the container gives it.
fn port_of(port: &Value, container: &Value) -> Result<u16, String> {
    let number =
        |value: &Value| value.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    if let Some(port) = number(port) {
        return Ok(port);
    }
    let name = port.as_str().unwrap_or("");
    if let Ok(port) = name.parse::<u16>() {
        return Ok(port);
    }
    let named = container["ports"].as_array().into_iter().flatten().find(|port| port["name"] == *name);
    named
        .and_then(|port| number(&port["containerPort"]))
        .ok_or_else(|| format!("the container has no port {name:?}"))
}
