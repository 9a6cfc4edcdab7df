//! The pod shim: one small process of one thread for each pod. It holds the pod's namespaces, makes its containers, and is
//! the first to learn how they end; it writes that down before it tells anyone. It outlives the agent. It decides nothing.

use super::child::{self, Inherited};
use super::logs::Stream;
use super::plan::{ExitRecord, SandboxPlan, Stage};
use super::users::{self, Users};
use super::wire::{self, Answer, Ask, Listed, ListedState, Order, Request, Tell};
use crate::fault::{Attempt, Fault};
use crate::{beneath, clock, mounts, sys, volumes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{Gid, Mode, OFlags, Uid, fchown};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
    socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{WaitId, WaitIdOptions, pivot_root, setsid, waitid};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::UnshareFlags;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// The hidden first argument that makes a program a shim.
pub const ARGUMENT: &str = "__nodefold-pod-shim";
/// Told on standard output once the socket takes connections.
pub const READY: &str = "ready\n";
/// The socket's name in the sandbox's directory.
pub const SOCKET: &str = "shim.sock";

/// A container of the shim.
struct Slot {
    pid: i32,
    pidfd: OwnedFd,
    phase: Phase,
    started_at: Option<u64>,
    start_error: Option<String>,
    /// It could not be built: once it has ended it never was.
    unbuilt: bool,
    oom: Option<OwnedFd>,
    streams: [Stream; 2],
    log: std::fs::File,
}

/// A process that is to be a container, and waits to be told which.
struct Waiter {
    pid: i32,
    pidfd: OwnedFd,
    orders: OwnedFd,
    status: OwnedFd,
    go: OwnedFd,
    streams: [OwnedFd; 2],
}

/// One that was prepared before anybody asked for its container.
struct Spare {
    slot: String,
    stage: Stage,
    waiter: Waiter,
    /// It is in its groups.
    placed: bool,
}

/// How far a container is.
enum Phase {
    /// On its way to its exec. Whoever asked for it waits.
    Building { status: OwnedFd, go: OwnedFd, asked: Waiting },
    /// Waits before its exec.
    Parked { status: OwnedFd, go: OwnedFd },
    /// Was let go.
    Starting { status: OwnedFd, asked: Waiting },
    /// Runs.
    Running,
    /// Could not be built or started, and is about to end.
    Failed,
    /// Ended.
    Ended(ExitRecord),
}

/// Who waits for an answer.
#[derive(Copy, Clone)]
struct Waiting {
    connection: u64,
    number: u64,
}

struct Connection {
    socket: OwnedFd,
    subscribed: bool,
}

struct Shim {
    dir: OwnedFd,
    null: OwnedFd,
    listener: OwnedFd,
    connections: BTreeMap<u64, Connection>,
    accepted: u64,
    slots: BTreeMap<String, Slot>,
    spare: Option<Spare>,
    /// Its containers share the pid namespace that its children are in, or the one of the first process in the pod's user
    /// namespace.
    shares_processes: bool,
    /// Its containers are in a user namespace of the pod's.
    users: Option<Users>,
    /// The node is in one, and the shim with it.
    rootless: bool,
    quit: bool,
}

/// What became readable.
enum Ready {
    Listener,
    Connection(u64),
    Status(String),
    Ended(String),
    Output(String, usize),
    SpareEnded,
}

/// Runs a shim whose plan is in this file. Ends with its pod.
pub fn run(plan: &Path) -> Result<(), Fault> {
    let text = std::fs::read(plan).attempt(|| format!("read {}", plan.display()))?;
    let plan: SandboxPlan =
        serde_json::from_slice(&text).map_err(|e| Fault::refused(format!("the plan: {e}")))?;
    setsid().attempt(|| "begin a session")?;
    for procs in &plan.joins {
        std::fs::write(procs, "0").attempt(|| format!("enter {procs}"))?;
    }
    if plan.rootless { serve_as_first(&plan) } else { enter(&plan).map(|mut shim| shim.serve()) }
}

/// Has another process be the shim, the first one in a pid namespace. Whichever of the two ends, both do.
fn serve_as_first(plan: &SandboxPlan) -> Result<(), Fault> {
    let birth = sys::Birth { pid: true, ..sys::Birth::default() };
    let first = sys::clone_child(birth, None, &[], || {
        let tied = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        let tied = tied.attempt(|| "tie the shim to its parent");
        match tied.and_then(|()| enter(plan)).map(|mut shim| shim.serve()) {
            Ok(()) => 0,
            Err(fault) => {
                std::io::stdout().write_all(fault.message.as_bytes()).ok();
                3
            }
        }
    });
    let first = first.attempt(|| "clone the shim into a pid namespace")?;
    let null = open_null()?;
    dup2_stdin(&null).and(dup2_stdout(&null)).and(dup2_stderr(&null)).attempt(|| "let go of the streams")?;
    waitid(WaitId::PidFd(first.pidfd.as_fd()), WaitIdOptions::EXITED)
        .attempt(|| "wait for the shim")
        .map(drop)
}

/// Enters the pod's namespaces, and a root of its own from which no mount of the host can be seen: what it
/// would see, it would keep mounted.
fn enter(plan: &SandboxPlan) -> Result<Shim, Fault> {
    let mut users = None;
    let mut namespaces = UnshareFlags::NEWNS;
    match plan.users {
        Some(ids) => {
            let by_root = || set_sysctls(plan).and_then(|()| users::shm(plan.shm_bytes));
            users = Some(users::make(ids, by_root, users::enter_network_ipc_uts)?);
        }
        None => {
            namespaces |= UnshareFlags::NEWUTS;
            if !plan.host_network {
                namespaces |= UnshareFlags::NEWNET;
            }
            if !plan.host_ipc {
                namespaces |= UnshareFlags::NEWIPC;
            }
        }
    }
    sys::unshare(namespaces).attempt(|| "make the pod's namespaces (this needs CAP_SYS_ADMIN)")?;
    if !plan.host_network {
        sys::loopback_up().attempt(|| "set the loopback interface up")?;
    }
    rustix::system::sethostname(plan.hostname.as_bytes()).attempt(|| "set the host name")?;
    if users.is_none() {
        set_sysctls(plan)?;
    }
    let dir = beneath::open_root(Path::new(&plan.dir))?;
    let null = open_null()?;
    rustix::process::fchdir(&dir).attempt(|| "enter the sandbox's directory")?;
    let listener = listen_at(SOCKET)?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .attempt(|| "make mounts private")?;
    let root =
        mounts::detached("tmpfs", &[("mode", Some("755")), ("size", Some("64k"))], MountAttrFlags::empty())?;
    beneath::make_dirs(&dir, "root", Mode::from_raw_mode(0o700)).attempt(|| "make the shim's root")?;
    mounts::attach_at(&root, &dir, "root")?;
    beneath::make_dirs(&root, child::ROOT.trim_start_matches('/'), Mode::from_raw_mode(0o755))
        .attempt(|| "make the place of containers' roots")?;
    beneath::make_dirs(&root, child::STAGE.trim_start_matches('/'), Mode::from_raw_mode(0o755))
        .attempt(|| "make the place of their stages")?;
    let shm_place = beneath::make_dirs(&root, child::SHM.trim_start_matches('/'), Mode::from_raw_mode(0o755))
        .attempt(|| "make the place of /dev/shm")?;
    let (mut users, shm) = match users {
        Some((users, shm)) => (Some(users), shm),
        None => (None, users::shm(plan.shm_bytes)?),
    };
    if users.is_some() || plan.rootless {
        show_to_users(&root)?;
    }
    mounts::attach(shm, shm_place).attempt(|| "mount the pod's /dev/shm")?;
    rustix::process::fchdir(&root).attempt(|| "enter the shim's root")?;
    pivot_root(".", ".").attempt(|| "make it the root")?;
    unmount(".", UnmountFlags::DETACH).attempt(|| "leave the host's root")?;
    rustix::process::chdir("/").attempt(|| "enter the shim's root")?;
    drop(root);
    if plan.shares_processes {
        share_processes(users.as_mut())?;
    }
    std::io::stdout().write_all(READY.as_bytes()).attempt(|| "say that it is ready")?;
    std::io::stdout().flush().attempt(|| "say that it is ready")?;
    // Whoever reads the agent's output must not wait for the shim's end.
    dup2_stdin(&null).and(dup2_stdout(&null)).and(dup2_stderr(&null)).attempt(|| "let go of the streams")?;
    Ok(Shim {
        dir,
        null,
        listener,
        connections: BTreeMap::new(),
        accepted: 0,
        slots: BTreeMap::new(),
        spare: None,
        shares_processes: plan.shares_processes,
        users,
        rootless: plan.rootless,
        quit: false,
    })
}

/// In a user namespace some are its root's to set.
fn set_sysctls(plan: &SandboxPlan) -> Result<(), Fault> {
    plan.sysctls.iter().try_for_each(|(path, value)| {
        std::fs::write(Path::new("/proc/sys").join(path), value).attempt(|| format!("set sysctl {path}"))
    })
}

/// What is needed in the shim's root by those who are to be in a user namespace. The kernel lets it mount only a /proc and a /sys
/// that it could see anyway, and make no device.
fn show_to_users(root: &OwnedFd) -> Result<(), Fault> {
    let place = |name: &str| {
        beneath::make_dirs(root, name, Mode::from_raw_mode(0o755)).attempt(|| format!("make /{name}"))
    };
    for (name, kind) in [("proc", "proc"), ("sys", "sysfs")] {
        let mount = mounts::detached(kind, &[], mounts::quiet())?;
        mounts::attach(mount, place(name)?).attempt(|| format!("mount /{name}"))?;
    }
    let dev = place(child::DEVICES_OF_HOST.trim_start_matches('/'))?;
    for (name, _, _) in child::DEVICES {
        let device = mounts::place(&Path::new("/dev").join(name))
            .and_then(mounts::clone_of)
            .attempt(|| format!("copy the host's /dev/{name}"))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        rustix::fs::openat(&dev, name, flags, Mode::from_raw_mode(0o600))
            .attempt(|| format!("make the place of /dev/{name}"))?;
        mounts::attach_at(device, &dev, name)?;
    }
    Ok(())
}

/// Makes a pid namespace for all containers of the pod, and its first process, which only waits: it ends with the shim, and
/// everything in the namespace with it.
fn share_processes(users: Option<&mut Users>) -> Result<(), Fault> {
    let only_wait = || {
        let tied = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        sys::reap_by_itself();
        while tied.is_ok() {
            // Nothing ever comes: a signal only begins the wait anew.
            let nothing: &mut [PollFd<'_>] = &mut [];
            poll(nothing, None).ok();
        }
        1
    };
    match users {
        None => {
            sys::unshare(UnshareFlags::NEWPID).attempt(|| "make the pod's pid namespace")?;
            let first = sys::clone_child(sys::Birth::default(), None, &[], only_wait);
            first.attempt(|| "clone the pod's first process").map(drop)
        }
        Some(users) => {
            let birth = sys::Birth { pid: true, ..sys::Birth::default() };
            let first = users.clone_child(birth, None, &[], only_wait)?;
            users.processes = Some(users::namespace_of(first.pid, "pid")?);
            Ok(())
        }
    }
}

fn open_null() -> Result<OwnedFd, Fault> {
    rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).attempt(|| "open /dev/null")
}

fn listen_at(name: &str) -> Result<OwnedFd, Fault> {
    let make = || -> Result<OwnedFd, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&listener, &SocketAddrUnix::new(name)?)?;
        listen(&listener, 16)?;
        Ok(listener)
    };
    make().attempt(|| "listen on the shim's socket")
}

impl Shim {
    fn serve(&mut self) {
        while !self.quit {
            for ready in self.wait() {
                match ready {
                    Ready::Listener => self.accept(),
                    Ready::Connection(key) => self.hear(key),
                    Ready::Status(id) => self.status_changed(&id),
                    Ready::Ended(id) => self.ended(&id),
                    Ready::SpareEnded => self.end_spare(),
                    Ready::Output(id, stream) => {
                        if let Some(slot) = self.slots.get_mut(&id) {
                            slot.streams[stream].pump(&mut slot.log);
                        }
                    }
                }
            }
        }
    }

    fn wait(&self) -> Vec<Ready> {
        let mut what = vec![Ready::Listener];
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        for (key, connection) in &self.connections {
            what.push(Ready::Connection(*key));
            fds.push(PollFd::new(&connection.socket, PollFlags::IN));
        }
        for (id, slot) in &self.slots {
            for (i, stream) in slot.streams.iter().enumerate() {
                if let Some(pipe) = &stream.pipe {
                    what.push(Ready::Output(id.clone(), i));
                    fds.push(PollFd::new(pipe, PollFlags::IN));
                }
            }
            match &slot.phase {
                Phase::Building { status, .. }
                | Phase::Parked { status, .. }
                | Phase::Starting { status, .. } => {
                    what.push(Ready::Status(id.clone()));
                    fds.push(PollFd::new(status, PollFlags::IN));
                }
                Phase::Running | Phase::Failed | Phase::Ended(_) => {}
            }
            if !matches!(slot.phase, Phase::Ended(_)) {
                what.push(Ready::Ended(id.clone()));
                fds.push(PollFd::new(&slot.pidfd, PollFlags::IN));
            }
        }
        if let Some(spare) = &self.spare {
            what.push(Ready::SpareEnded);
            fds.push(PollFd::new(&spare.waiter.pidfd, PollFlags::IN));
        }
        if poll(&mut fds, None).is_err() {
            return Vec::new();
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        what.into_iter().zip(ready).filter(|(_, ready)| *ready).map(|(what, _)| what).collect()
    }

    fn accept(&mut self) {
        if let Ok(socket) = accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            self.accepted += 1;
            self.connections.insert(self.accepted, Connection { socket, subscribed: false });
        }
    }

    fn hear(&mut self, key: u64) {
        let Some(connection) = self.connections.get(&key) else { return };
        match wire::receive::<Request>(&connection.socket) {
            Ok(Some((request, descriptors))) => {
                let waiting = Waiting { connection: key, number: request.number };
                self.handle(waiting, request.ask, descriptors);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Ok(None) | Err(_) => {
                self.connections.remove(&key);
            }
        }
    }

    fn answer(&mut self, to: Waiting, answer: Answer, descriptors: &[BorrowedFd<'_>]) {
        let tell = Tell::Answer { number: to.number, answer };
        if let Some(connection) = self.connections.get(&to.connection)
            && wire::send(&connection.socket, &tell, descriptors).is_err()
        {
            // It does not listen: it will connect again, and list.
            self.connections.remove(&to.connection);
        }
    }

    fn handle(&mut self, asked: Waiting, ask: Ask, descriptors: Vec<OwnedFd>) {
        match ask {
            Ask::Subscribe => {
                if let Some(connection) = self.connections.get_mut(&asked.connection) {
                    connection.subscribed = true;
                }
                self.answer(asked, Answer::Done, &[]);
            }
            Ask::List => self.list(asked),
            Ask::Prepare { slot, stage } => {
                let answer = match self.prepare(slot, stage, descriptors.into_iter().next()) {
                    Ok(pid) => Answer::Parked { pid },
                    Err(fault) => Answer::Refused(fault.message),
                };
                self.answer(asked, answer, &[]);
            }
            Ask::Placed { slot } => {
                let answer = match self.spare.as_mut().filter(|spare| spare.slot == slot) {
                    Some(spare) => match place(&spare.waiter) {
                        Ok(()) => {
                            spare.placed = true;
                            Answer::Done
                        }
                        Err(fault) => Answer::Refused(fault.message),
                    },
                    None => Answer::Refused(format!("there is no spare process in {slot}")),
                };
                self.answer(asked, answer, &[]);
            }
            Ask::Create { id, into_cgroup, joins, counts_oom, slot } => {
                let shape = Shape { into_cgroup, joins, counts_oom };
                if let Err(fault) = self.create(asked, (&id, slot.as_deref()), &shape, descriptors) {
                    self.answer(asked, Answer::Refused(fault.message), &[]);
                }
            }
            Ask::Start { id } => self.start(asked, &id),
            Ask::Reopen { id } => {
                let answer = match (self.slots.get_mut(&id), descriptors.into_iter().next()) {
                    (Some(slot), Some(log)) => {
                        slot.log = log.into();
                        Answer::Done
                    }
                    (None, _) => Answer::Refused(format!("container {id} not found")),
                    (Some(_), None) => Answer::Refused("no descriptor of its log".into()),
                };
                self.answer(asked, answer, &[]);
            }
            Ask::Forget { id } => {
                let is_ended = self.slots.get(&id).is_none_or(|slot| matches!(slot.phase, Phase::Ended(_)));
                if is_ended {
                    self.slots.remove(&id);
                    self.answer(asked, Answer::Done, &[]);
                } else {
                    self.answer(asked, Answer::Refused(format!("container {id} has not ended")), &[]);
                }
            }
            Ask::Users => match &self.users {
                Some(users) => {
                    let namespace = users.namespace.try_clone();
                    match namespace {
                        Ok(namespace) => self.answer(asked, Answer::Done, &[namespace.as_fd()]),
                        Err(error) => self.answer(asked, Answer::Refused(error.to_string()), &[]),
                    }
                }
                None => self.answer(asked, Answer::Refused("the pod has the host's users".into()), &[]),
            },
            Ask::Quit => {
                let living =
                    self.slots.values().filter(|slot| !matches!(slot.phase, Phase::Ended(_))).count();
                if living == 0 {
                    self.end_spare();
                    self.answer(asked, Answer::Done, &[]);
                    self.quit = true;
                } else {
                    self.answer(asked, Answer::Refused(format!("{living} containers have not ended")), &[]);
                }
            }
        }
    }

    fn list(&mut self, asked: Waiting) {
        let mut listed = Vec::new();
        let mut pidfds = Vec::new();
        for (id, slot) in &self.slots {
            let state = match &slot.phase {
                Phase::Building { .. } | Phase::Parked { .. } | Phase::Starting { .. } | Phase::Failed => {
                    ListedState::Created
                }
                Phase::Running => ListedState::Running { started_at: slot.started_at.unwrap_or(0) },
                Phase::Ended(record) => ListedState::Ended(record.clone()),
            };
            if !matches!(slot.phase, Phase::Ended(_)) {
                pidfds.push(slot.pidfd.as_fd());
            }
            listed.push(Listed { id: id.clone(), pid: slot.pid, state });
        }
        let tell = Tell::Answer { number: asked.number, answer: Answer::Listed(listed) };
        let sent = match self.connections.get(&asked.connection) {
            Some(connection) => wire::send(&connection.socket, &tell, &pidfds),
            None => Ok(()),
        };
        if sent.is_err() {
            self.connections.remove(&asked.connection);
        }
    }

    fn end_spare(&mut self) {
        if let Some(spare) = self.spare.take() {
            end_waiter(spare.waiter);
        }
    }

    /// Makes a spare process, in place of the one that there may be. Whoever asked places it: to move a process between groups
    /// of version 1 may take as long as a grace period of the kernel's, and nobody may wait for that here.
    fn prepare(&mut self, slot: String, stage: Stage, into: Option<OwnedFd>) -> Result<i32, Fault> {
        self.end_spare();
        let waiter = self.clone_waiter(&stage, into)?;
        let pid = waiter.pid;
        self.spare = Some(Spare { slot, stage, waiter, placed: false });
        Ok(pid)
    }

    /// The spare process of a slot, if it lives and has made what the container needs. One that does not fit is ended: its
    /// groups are another's now.
    fn take_spare(&mut self, slot: &str, stage: &Stage) -> Option<Waiter> {
        let spare = self.spare.take_if(|spare| spare.slot == slot)?;
        let mut ended = [PollFd::new(&spare.waiter.pidfd, PollFlags::IN)];
        let lives = poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) == Ok(0);
        if lives && spare.placed && spare.stage == *stage {
            return Some(spare.waiter);
        }
        end_waiter(spare.waiter);
        None
    }

    /// Clones a process that is to be a container, into a group of version 2.
    fn clone_waiter(&self, stage: &Stage, into: Option<OwnedFd>) -> Result<Waiter, Fault> {
        let make = || pipe_with(PipeFlags::CLOEXEC).attempt(|| "make a pipe");
        let flags = SocketFlags::CLOEXEC;
        let (orders, orders_read) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .attempt(|| "make a pair of sockets")?;
        let ((go_read, go), (status, status_write)) = (make()?, make()?);
        let ((out, out_write), (err, err_write)) = (make()?, make()?);
        for pipe in [&out, &err] {
            rustix::io::ioctl_fionbio(pipe, true).attempt(|| "make a pipe not block")?;
        }
        let pid = !stage.host_pid && !self.shares_processes;
        let birth = sys::Birth { pid, mount: true, ..sys::Birth::default() };
        let kept = [
            orders_read.as_raw_fd(),
            go_read.as_raw_fd(),
            status_write.as_raw_fd(),
            self.null.as_raw_fd(),
            out_write.as_raw_fd(),
            err_write.as_raw_fd(),
        ];
        let inherited = Inherited {
            stage,
            orders: orders_read,
            go: go_read,
            status: status_write,
            streams: [self.null.as_fd(), out_write.as_fd(), err_write.as_fd()],
            own_users: self.users.is_some() || self.rootless,
        };
        let into = into.as_ref().map(AsFd::as_fd);
        let become_it = move || child::become_container(inherited);
        let sys::Child { pid, pidfd } = match &self.users {
            None => sys::clone_child(birth, into, &kept, become_it)
                .attempt(|| "clone the container's first process")?,
            Some(users) => {
                // It may give them to the container's user only if they belong to its namespace.
                let (uid, gid) = (Uid::from_raw(users.ids.first), Gid::from_raw(users.ids.first));
                for pipe in [&out_write, &err_write] {
                    fchown(pipe, Some(uid), Some(gid)).attempt(|| "give a pipe to the pod's root")?;
                }
                users.clone_child(birth, into, &kept, become_it)?
            }
        };
        Ok(Waiter { pid, pidfd, orders, status, go, streams: [out, err] })
    }

    /// A process for a container of which none was prepared, in its groups.
    fn fresh(&self, stage: &Stage, groups: Groups) -> Result<Waiter, Fault> {
        let Groups { into, mut joins } = groups;
        let waiter = self.clone_waiter(stage, into)?;
        let pid = waiter.pid.to_string();
        let joined = joins.iter_mut().try_for_each(|procs| procs.write_all(pid.as_bytes()));
        match joined.attempt(|| "enter the container's cgroups").and_then(|()| place(&waiter)) {
            Ok(()) => Ok(waiter),
            Err(fault) => {
                end_waiter(waiter);
                Err(fault)
            }
        }
    }

    fn create(
        &mut self,
        asked: Waiting,
        (id, slot): (&str, Option<&str>),
        shape: &Shape,
        fds: Vec<OwnedFd>,
    ) -> Result<(), Fault> {
        if self.slots.contains_key(id) {
            return Err(Fault::refused(format!("the name {id} is reserved: such a container exists")));
        }
        let mut fds = fds.into_iter();
        let (plan, root, log) = (next(&mut fds, "plan")?, next(&mut fds, "root")?, next(&mut fds, "log")?);
        let groups = Groups::taken(shape, &mut fds)?;
        let oom = if shape.counts_oom { Some(next(&mut fds, "OOM counter")?) } else { None };
        let volumes: Vec<OwnedFd> = fds.collect();
        let copy = plan.try_clone().attempt(|| "copy a descriptor")?;
        let known = child::read_plan(copy)?;
        if known.mounts.len() != volumes.len() {
            return Err(Fault::refused("the plan has another number of mounts than came along"));
        }
        let stage = known.stage();
        let spare = slot.and_then(|slot| self.take_spare(slot, &stage));
        let waiter = match spare {
            Some(waiter) => waiter,
            None => self.fresh(&stage, groups)?,
        };
        if (self.users.is_some() || self.rootless)
            && let Err(fault) = child::oom_score(&format!("/proc/{}", waiter.pid), known.oom_score_adj)
        {
            end_waiter(waiter);
            return Err(fault);
        }
        let descriptors: Vec<BorrowedFd<'_>> =
            [&plan, &root].into_iter().chain(&volumes).map(AsFd::as_fd).collect();
        if let Err(errno) = wire::send(&waiter.orders, &Order::Become, &descriptors) {
            end_waiter(waiter);
            return Err(errno).attempt(|| "tell the process what to become");
        }
        let Waiter { pid, pidfd, status, go, streams: [out, err], orders: _ } = waiter;
        let slot = Slot {
            pid,
            pidfd,
            phase: Phase::Building { status, go, asked },
            started_at: None,
            start_error: None,
            unbuilt: false,
            oom,
            streams: [Stream::new("stdout", out), Stream::new("stderr", err)],
            log: log.into(),
        };
        self.slots.insert(id.to_owned(), slot);
        Ok(())
    }

    fn start(&mut self, asked: Waiting, id: &str) {
        let Some(slot) = self.slots.get_mut(id) else {
            return self.answer(asked, Answer::Refused(format!("container {id} not found")), &[]);
        };
        match std::mem::replace(&mut slot.phase, Phase::Failed) {
            Phase::Parked { status, go } => {
                slot.started_at = Some(clock::now().0);
                rustix::io::write(&go, &[1]).ok();
                slot.phase = Phase::Starting { status, asked };
            }
            other @ (Phase::Building { .. }
            | Phase::Starting { .. }
            | Phase::Running
            | Phase::Failed
            | Phase::Ended(_)) => {
                let why = match &other {
                    Phase::Running => None,
                    Phase::Building { .. } | Phase::Parked { .. } => Some("is still being built"),
                    Phase::Starting { .. } => Some("is being started"),
                    Phase::Failed => Some("could not be built"),
                    Phase::Ended(_) => Some("has already ended"),
                };
                let started_at = slot.started_at.unwrap_or(0);
                slot.phase = other;
                let answer = match why {
                    // A start whose answer was lost, asked again.
                    None => Answer::Running { started_at },
                    Some(why) => Answer::Refused(format!("container {id} {why}")),
                };
                self.answer(asked, answer, &[]);
            }
        }
    }

    /// A child tells how far it came: parked, failed, or (by the end of the pipe) that it became its program.
    fn status_changed(&mut self, id: &str) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        match std::mem::replace(&mut slot.phase, Phase::Failed) {
            Phase::Building { status, go, asked } => match told(&status) {
                Told::Parked => {
                    slot.phase = Phase::Parked { status, go };
                    let (pid, pidfd) = (slot.pid, slot.pidfd.try_clone());
                    match pidfd {
                        Ok(pidfd) => self.answer(asked, Answer::Parked { pid }, &[pidfd.as_fd()]),
                        Err(error) => self.answer(asked, Answer::Refused(error.to_string()), &[]),
                    }
                }
                Told::Failed(why) => self.unbuilt(id, asked, why),
                Told::Gone => self.unbuilt(id, asked, "it was killed while it was being built".into()),
            },
            Phase::Starting { status, asked } => match told(&status) {
                Told::Gone => {
                    slot.phase = Phase::Running;
                    let started_at = slot.started_at.unwrap_or(0);
                    self.answer(asked, Answer::Running { started_at }, &[]);
                }
                Told::Failed(why) => self.fail(id, asked, why),
                Told::Parked => slot.phase = Phase::Starting { status, asked },
            },
            // Killed while it was parked: its end tells.
            Phase::Parked { .. } => slot.phase = Phase::Failed,
            other @ (Phase::Running | Phase::Failed | Phase::Ended(_)) => slot.phase = other,
        }
    }

    fn unbuilt(&mut self, id: &str, asked: Waiting, why: String) {
        if let Some(slot) = self.slots.get_mut(id) {
            slot.unbuilt = true;
        }
        self.answer(asked, Answer::Refused(why), &[]);
    }

    fn fail(&mut self, id: &str, asked: Waiting, why: String) {
        if let Some(slot) = self.slots.get_mut(id) {
            slot.start_error = Some(why.clone());
        }
        self.answer(asked, Answer::Refused(why), &[]);
    }

    /// A container's first process ended, and with it all that were in its pid namespace. First the record, then the telling.
    fn ended(&mut self, id: &str) {
        let Some(slot) = self.slots.get_mut(id) else { return };
        let status =
            match waitid(WaitId::PidFd(slot.pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
                Ok(Some(status)) => status,
                Ok(None) | Err(_) => return,
            };
        if slot.unbuilt {
            self.slots.remove(id);
            return;
        }
        for stream in &mut slot.streams {
            // What it wrote before it ended; who else holds the pipe's other end is not waited for.
            for _ in 0..64 {
                stream.pump(&mut slot.log);
            }
            stream.pipe = None;
        }
        let signal = status.terminating_signal();
        let code = signal.map_or_else(|| status.exit_status().unwrap_or(0), |signal| 128 + signal);
        let record = ExitRecord {
            code,
            signal,
            out_of_memory: slot.oom.as_ref().is_some_and(counts_oom_kills),
            start_error: slot.start_error.clone(),
            started_at: slot.started_at.filter(|_| slot.start_error.is_none()),
            finished_at: clock::now().0,
        };
        let asked = match std::mem::replace(&mut slot.phase, Phase::Ended(record.clone())) {
            Phase::Building { asked, .. } | Phase::Starting { asked, .. } => Some(asked),
            Phase::Parked { .. } | Phase::Running | Phase::Failed | Phase::Ended(_) => None,
        };
        self.keep(id, &record);
        if let Some(asked) = asked {
            // It went so fast that its end was seen before its exec was.
            let started_at = record.started_at;
            match started_at {
                Some(started_at) => self.answer(asked, Answer::Running { started_at }, &[]),
                None => self.answer(asked, Answer::Refused("it ended while it was being built".into()), &[]),
            }
        }
        let tell = Tell::Exited { id: id.to_owned(), record };
        let deaf: Vec<u64> = self
            .connections
            .iter()
            .filter(|(_, c)| c.subscribed && wire::send(&c.socket, &tell, &[]).is_err())
            .map(|(key, _)| *key)
            .collect();
        for key in deaf {
            self.connections.remove(&key);
        }
    }

    /// Writes an exit down. If that fails, the record is still in this process, which the agent asks first.
    fn keep(&self, id: &str, record: &ExitRecord) {
        let keep = || -> Result<(), Fault> {
            let dir =
                beneath::open_dir(&self.dir, Path::new("c").join(id)).attempt(|| "open its directory")?;
            let text = serde_json::to_vec(record).map_err(|error| Fault::refused(error.to_string()))?;
            volumes::write_whole(&dir, "exit.json", &text)
        };
        drop(keep());
    }
}

/// What a request to create says about its descriptors.
struct Shape {
    into_cgroup: bool,
    joins: usize,
    counts_oom: bool,
}

/// The groups of a process to come.
struct Groups {
    /// Of version 2, to be cloned into.
    into: Option<OwnedFd>,
    /// `cgroup.procs` of those of version 1.
    joins: Vec<std::fs::File>,
}

impl Groups {
    fn taken(shape: &Shape, fds: &mut impl Iterator<Item = OwnedFd>) -> Result<Groups, Fault> {
        let into = if shape.into_cgroup { Some(next(fds, "cgroup")?) } else { None };
        let joins = (0..shape.joins).map(|_| next(fds, "cgroup.procs").map(std::fs::File::from));
        Ok(Groups { into, joins: joins.collect::<Result<_, Fault>>()? })
    }
}

fn next(fds: &mut impl Iterator<Item = OwnedFd>, what: &str) -> Result<OwnedFd, Fault> {
    fds.next().ok_or_else(|| Fault::refused(format!("no descriptor of its {what}")))
}

fn place(waiter: &Waiter) -> Result<(), Fault> {
    wire::send(&waiter.orders, &Order::Placed, &[]).attempt(|| "tell a process that it is placed")
}

/// Ends a process that never was a container, and reaps it.
fn end_waiter(waiter: Waiter) {
    // It has ended, or does so now.
    rustix::process::pidfd_send_signal(&waiter.pidfd, rustix::process::Signal::KILL).ok();
    waitid(WaitId::PidFd(waiter.pidfd.as_fd()), WaitIdOptions::EXITED).ok();
}

/// What came through a status pipe.
enum Told {
    Parked,
    Failed(String),
    Gone,
}

fn told(status: &OwnedFd) -> Told {
    let mut text = vec![0; 4096];
    match rustix::io::read(status, &mut text) {
        Ok(0) | Err(_) => Told::Gone,
        Ok(got) => match text[0] {
            child::PARKED => Told::Parked,
            _ => Told::Failed(String::from_utf8_lossy(&text[1..got]).into_owned()),
        },
    }
}

/// `oom_kill N` of `memory.events` (v2) or `memory.oom_control` (v1).
fn counts_oom_kills(file: &OwnedFd) -> bool {
    let mut text = vec![0; 4096];
    let got = rustix::io::pread(file, &mut text, 0).unwrap_or(0);
    String::from_utf8_lossy(&text[..got])
        .lines()
        .any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count.trim() != "0"))
}
