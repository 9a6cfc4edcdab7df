//! A node of somebody who is not root: its processes are in a user and a mount namespace of their own, in which they have all
//! rights and which a keeper holds, a process that only waits. So mounts outlive an agent, and the next one finds them. Who keeps
//! a node is written in a file that the keeper holds locked.

use crate::clock;
use crate::fault::{Attempt, Fault};
use crate::ids::Ids;
use crate::pod::found;
use crate::sys;
use nix::unistd::User;
use nodefold_core::time::Nanos;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, getegid, geteuid, pidfd_open, pidfd_send_signal, setsid};
use rustix::stdio::{dup2_stderr, dup2_stdout};
use rustix::thread::{
    CapabilitySet, ThreadNameSpaceType, UnshareFlags, capabilities, move_into_thread_name_spaces,
    set_thread_groups,
};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The hidden first argument that makes a program a keeper.
pub const ARGUMENT: &str = "__nodefold-keeper";
/// The file's name in a node's directory.
pub const FILE: &str = "keeper";
/// Told on standard output once the namespaces are made.
const MADE: &str = "made\n";
/// Somebody who makes a keeper is waited for, looked at this often.
const MADE_WITHIN: Nanos = Nanos::secs(10);
const LOOK_AGAIN: Nanos = Nanos::millis(20);

/// The process that holds a node's namespaces, this one being in them.
pub struct Keeper {
    pidfd: OwnedFd,
    /// It was begun by this process.
    child: Option<Child>,
}

/// Whether this process can be a node in namespaces of its own only: it is not root's.
pub fn is_wanted() -> bool {
    let held = capabilities(None).map(|sets| sets.effective).unwrap_or(CapabilitySet::empty());
    !geteuid().is_root() && !held.contains(CapabilitySet::SYS_ADMIN)
}

/// Enters the namespaces that the node in this directory has, or new ones. For a process of one thread.
pub fn enter(data: &Path, program: &Path) -> Result<Keeper, Fault> {
    let is_new = !data.exists();
    fs::create_dir_all(data).attempt(|| format!("make {}", data.display()))?;
    let file = data.join(FILE);
    let entered = loop {
        let begun = begin(&file, program, || found::end_all(&data.join("run")));
        match begun {
            // It ended at just that moment: anew.
            Ok(None) => match join(data)? {
                Some(keeper) => break Ok(keeper),
                None => continue,
            },
            Ok(Some(keeper)) => break Ok(keeper),
            Err(fault) => break Err(fault),
        }
    };
    if entered.is_err() {
        // Nothing was begun.
        fs::remove_file(&file).ok();
        if is_new {
            fs::remove_dir(data).ok();
        }
    }
    entered
}

/// Enters the namespaces that the node in this directory has, if it has any. For a process of one thread.
pub fn join(data: &Path) -> Result<Option<Keeper>, Fault> {
    let path = data.join(FILE);
    let since = clock::monotonic();
    loop {
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).attempt(|| format!("open {}", path.display())),
        };
        let mut text = String::new();
        file.read_to_string(&mut text).attempt(|| format!("read {}", path.display()))?;
        let pid = text.trim().parse().ok().and_then(Pid::from_raw);
        let pidfd = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        // While the file is locked its keeper lives: what was opened above is nobody else.
        if lock(&file, &path)? {
            return Ok(None);
        }
        if let Some(Ok(pidfd)) = pidfd {
            go_in(&pidfd)?;
            return Ok(Some(Keeper { pidfd, child: None }));
        }
        if clock::monotonic().0 > since.0 + MADE_WITHIN.0 {
            return Err(Fault::transient(format!(
                "{}: it is locked, and names no keeper of namespaces: who holds it?",
                path.display()
            )));
        }
        clock::pause(LOOK_AGAIN);
    }
}

/// Begins a keeper whose file this is and enters its namespaces, in which nothing is yet; `before` that, what an earlier one left
/// is ended. `None`: there is one. For a process of one thread.
pub fn begin(
    path: &Path,
    program: &Path,
    before: impl FnOnce() -> Result<(), Fault>,
) -> Result<Option<Keeper>, Fault> {
    let told = || format!("make {}", path.display());
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    let mut file = file.attempt(told)?;
    if !lock(&file, path)? {
        return Ok(None);
    }
    file.set_len(0).attempt(told)?;
    before()?;
    let held = file.try_clone().attempt(told)?;
    let mut child = Command::new(program)
        .arg(ARGUMENT)
        .arg(path)
        .env_clear()
        .current_dir("/")
        .stdin(held)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .attempt(|| format!("start a keeper of namespaces ({})", program.display()))?;
    let made = (|| -> Result<OwnedFd, Fault> {
        let said = heard(&mut child);
        if said != MADE {
            return Err(Fault::refused(said));
        }
        map(child.id())?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).attempt(|| "open its pidfd")?;
        go_in(&pidfd)?;
        file.write_all(format!("{}\n", child.id()).as_bytes()).attempt(told)?;
        Ok(pidfd)
    })();
    match made {
        Ok(pidfd) => Ok(Some(Keeper { pidfd, child: Some(child) })),
        Err(fault) => {
            child.kill().and_then(|()| child.wait()).attempt(|| "end a keeper")?;
            Err(fault)
        }
    }
}

impl Keeper {
    /// Ends it. What is in its namespaces goes with the last process that is in them.
    pub fn end(mut self) -> Result<(), Fault> {
        match pidfd_send_signal(&self.pidfd, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(errno) => return Err(errno).attempt(|| "end the keeper of namespaces"),
        }
        poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], None).attempt(|| "wait for a keeper's end")?;
        match &mut self.child {
            Some(child) => child.wait().attempt(|| "wait for a keeper's end").map(drop),
            None => Ok(()),
        }
    }
}

/// What a keeper is. It returns only if that fails.
pub fn keep() -> Result<(), Fault> {
    setsid().attempt(|| "begin a session")?;
    let made = sys::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS);
    made.attempt(|| "make a user namespace (does this host let users do that?)")?;
    let null = File::options().write(true).open("/dev/null").attempt(|| "open /dev/null")?;
    std::io::stdout().write_all(MADE.as_bytes()).attempt(|| "say that they are made")?;
    std::io::stdout().flush().attempt(|| "say that they are made")?;
    dup2_stdout(&null).and(dup2_stderr(&null)).attempt(|| "let go of the streams")?;
    // Standard input is the locked file.
    loop {
        let nothing: &mut [PollFd<'_>] = &mut [];
        poll(nothing, None).ok();
    }
}

/// Whether nobody held the lock of this file.
fn lock(file: &File, path: &Path) -> Result<bool, Fault> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(errno).attempt(|| format!("lock {}", path.display())),
    }
}

fn heard(child: &mut Child) -> String {
    let mut said = String::new();
    let Some(mut stdout) = child.stdout.take() else { return said };
    let mut buffer = [0; 1024];
    while said != MADE {
        match stdout.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(got) => said.push_str(&String::from_utf8_lossy(&buffer[..got])),
        }
    }
    said
}

/// Enters, with the right to everything there. Other groups of the user's own are left behind where that may be.
fn go_in(pidfd: &OwnedFd) -> Result<(), Fault> {
    let here = std::env::current_dir();
    let wanted = ThreadNameSpaceType::USER | ThreadNameSpaceType::MOUNT;
    move_into_thread_name_spaces(std::os::fd::AsFd::as_fd(pidfd), wanted)
        .attempt(|| "enter the node's namespaces")?;
    if let Ok(here) = here {
        std::env::set_current_dir(&here).attempt(|| format!("enter {}", here.display()))?;
    }
    if Ids::here()?.sets_groups {
        set_thread_groups(&[]).attempt(|| "leave groups")?;
    }
    Ok(())
}

/// The ids of a new namespace: root is the user, and the others are what /etc/subuid and /etc/subgid give, where there are programs
/// that may do that; else there is no other.
fn map(process: u32) -> Result<(), Fault> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let name = User::from_uid(user.into()).attempt(|| "look the user up")?.map(|found| found.name);
    let (users, groups) = (given("/etc/subuid", user, &name)?, given("/etc/subgid", user, &name)?);
    let is_there = |program: &str| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|dir| dir.join(program).is_file())
    };
    if !users.is_empty() && !groups.is_empty() && is_there("newuidmap") && is_there("newgidmap") {
        map_by("newuidmap", process, user, &users)?;
        return map_by("newgidmap", process, group, &groups);
    }
    // Without help the kernel takes one id each, and groups only from who can't leave those that deny him something.
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {user} 1")),
        ("gid_map", format!("0 {group} 1")),
    ] {
        fs::write(format!("/proc/{process}/{file}"), text).attempt(|| format!("write {file}"))?;
    }
    Ok(())
}

/// The ranges that a file of subordinate ids gives to a user, who is named or numbered there.
fn given(file: &str, user: u32, name: &Option<String>) -> Result<Vec<(u32, u32)>, Fault> {
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.attempt(|| format!("read {file}"))?,
    };
    let number = user.to_string();
    let own = |word: &str| Some(word) == name.as_deref() || word == number;
    let ranges = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.trim().split(':').collect();
        let [of, first, length] = words.as_slice() else { return None };
        if own(of) { Some((first.parse().ok()?, length.parse().ok()?)) } else { None }
    });
    Ok(ranges.collect())
}

fn map_by(program: &str, process: u32, own: u32, ranges: &[(u32, u32)]) -> Result<(), Fault> {
    let mut arguments = format!("{process} 0 {own} 1");
    let mut next = 1;
    for (first, length) in ranges {
        write!(arguments, " {next} {first} {length}").ok();
        next += length;
    }
    let done = Command::new(program).args(arguments.split(' ')).output();
    let done = done.attempt(|| format!("run {program}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(Fault::refused(format!(
            "{program} {arguments}: {}",
            String::from_utf8_lossy(&done.stderr).trim_end()
        ))),
    }
}
