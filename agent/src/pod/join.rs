//! A second process in a container that runs: what `exec`, exec probes and lifecycle hooks do. And requests from inside a pod's
//! network. It enters from outside, through the pidfd of the container's first process, in a process of its own with one
//! thread: the agent starts this program for it.

use super::child;
use super::plan::ContainerPlan;
use super::requests::{self, Page};
use super::wire::{self, Answer, Ask, ListedState, Request, Tell};
use crate::fault::{Attempt, Fault};
use crate::{beneath, mounts, sys};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{DumpableBehavior, WaitId, WaitIdOptions, set_dumpable_behavior, waitid};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

/// The hidden first argument that makes a program do this.
pub const ARGUMENT: &str = "__nodefold-join";

/// The exit code that says that it could not be done at all, or that a request was not answered well.
pub const COULD_NOT: u8 = 125;

/// What to do in a container.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Errand {
    /// The sandbox's directory.
    pub sandbox: String,
    /// The container's name there.
    pub container: String,
    /// `cgroup.procs` files to enter first.
    pub joins: Vec<String>,
    /// Its pod has a user namespace.
    pub own_users: bool,
    /// What.
    pub task: Task,
}

/// A task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Run a program, with the container's environment and confinement.
    Run {
        /// It and its arguments.
        args: Vec<String>,
        /// Its standard input is a terminal, which it gets as its own.
        tty: bool,
    },
    /// Connect.
    Connect {
        /// To what, in the pod's network.
        address: SocketAddr,
        /// Giving up after.
        timeout_ms: u64,
    },
    /// Get a page; any answer from 200 to 399 is well.
    Get {
        /// From where, in the pod's network.
        address: SocketAddr,
        /// By HTTPS.
        tls: bool,
        /// Its path.
        path: String,
        /// Further header lines.
        headers: Vec<(String, String)>,
        /// Giving up after.
        timeout_ms: u64,
    },
    /// Ask gRPC's health protocol.
    Health {
        /// Of whom, in the pod's network.
        address: SocketAddr,
        /// About which service.
        service: String,
        /// Giving up after.
        timeout_ms: u64,
    },
}

/// Does an errand. The exit code is the program's; for a request 0 is success, and what went wrong is printed.
pub fn run(errand: &Errand) -> Result<i32, Fault> {
    let process = first_process(errand)?;
    let mut everything = ThreadNameSpaceType::MOUNT
        | ThreadNameSpaceType::PROCESS_ID
        | ThreadNameSpaceType::NETWORK
        | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME
        | ThreadNameSpaceType::CONTROL_GROUP;
    if errand.own_users {
        everything |= ThreadNameSpaceType::USER;
    }
    match &errand.task {
        Task::Run { args, tty } => {
            if *tty {
                rustix::process::setsid().attempt(|| "begin a session")?;
                rustix::process::ioctl_tiocsctty(rustix::stdio::stdin()).attempt(|| "take the terminal")?;
            }
            let mut plan = plan_of(errand)?;
            plan.args.clone_from(args);
            if *tty && !plan.env.iter().any(|(name, _)| name == "TERM") {
                // As a container runtime has it.
                plan.env.push(("TERM".to_owned(), "xterm".to_owned()));
            }
            for procs in &errand.joins {
                std::fs::write(procs, "0").attempt(|| format!("enter {procs}"))?;
            }
            // What else is in the container must not look into this process before it has become its program.
            set_dumpable_behavior(DumpableBehavior::NotDumpable).attempt(|| "hide from the container")?;
            move_into_thread_name_spaces(process.as_fd(), everything).attempt(|| "enter the container")?;
            let made = sys::clone_child(sys::Birth::default(), None, &[], || {
                match child::execute(&plan, true) {
                    Ok(()) => 0,
                    Err(fault) => {
                        // As a shell says it: found but not to be run, or not found.
                        std::io::stderr().write_all(format!("{fault}\n").as_bytes()).ok();
                        126 + i32::from(fault.message.contains("not found"))
                    }
                }
            });
            let made = made.attempt(|| "clone a process in the container")?;
            let ended =
                waitid(WaitId::PidFd(made.pidfd.as_fd()), WaitIdOptions::EXITED).attempt(|| "wait for it")?;
            let Some(ended) = ended else { return Err(Fault::uncertain("it did not end")) };
            Ok(ended
                .terminating_signal()
                .map_or_else(|| ended.exit_status().unwrap_or(0), |signal| 128 + signal))
        }
        Task::Connect { address, timeout_ms } => {
            move_into_thread_name_spaces(process.as_fd(), ThreadNameSpaceType::NETWORK)
                .attempt(|| "enter the network")?;
            requests::connect(*address, Duration::from_millis(*timeout_ms)).map(|_| 0)
        }
        Task::Get { address, tls, path, headers, timeout_ms } => {
            move_into_thread_name_spaces(process.as_fd(), ThreadNameSpaceType::NETWORK)
                .attempt(|| "enter the network")?;
            let page = Page { address: *address, tls: *tls, path, headers };
            requests::get(&page, Duration::from_millis(*timeout_ms)).map(|()| 0)
        }
        Task::Health { address, service, timeout_ms } => {
            move_into_thread_name_spaces(process.as_fd(), ThreadNameSpaceType::NETWORK)
                .attempt(|| "enter the network")?;
            requests::health(*address, service, Duration::from_millis(*timeout_ms)).map(|()| 0)
        }
    }
}

/// The container's first process, if it runs: the shim knows.
fn first_process(errand: &Errand) -> Result<OwnedFd, Fault> {
    let dir = beneath::open_root(Path::new(&errand.sandbox))?;
    let open = || -> Result<OwnedFd, rustix::io::Errno> {
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        connect(&socket, &SocketAddrUnix::new(mounts::path_in(&dir, super::shim::SOCKET))?)?;
        Ok(socket)
    };
    let socket = open().attempt(|| "connect to the pod's shim")?;
    wire::send(&socket, &Request { number: 1, ask: Ask::List }, &[]).attempt(|| "ask the pod's shim")?;
    let told = wire::receive::<Tell>(&socket).attempt(|| "hear the pod's shim")?;
    let Some((Tell::Answer { answer: Answer::Listed(listed), .. }, pidfds)) = told else {
        return Err(Fault::uncertain("the pod's shim does not list its containers"));
    };
    let mut pidfds = pidfds.into_iter();
    for one in listed {
        let lives = !matches!(one.state, ListedState::Ended(_));
        let pidfd = if lives { pidfds.next() } else { None };
        if one.id == errand.container {
            return match (one.state, pidfd) {
                (ListedState::Running { .. }, Some(pidfd)) => Ok(pidfd),
                _ => Err(Fault::refused(format!("container {} is not running", one.id))),
            };
        }
    }
    Err(Fault::refused(format!("container {} not found", errand.container)))
}

fn plan_of(errand: &Errand) -> Result<ContainerPlan, Fault> {
    let path = Path::new(&errand.sandbox).join("c").join(&errand.container).join("plan.json");
    let text = std::fs::read(&path).attempt(|| format!("read {}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| Fault::refused(format!("{}: {error}", path.display())))
}
