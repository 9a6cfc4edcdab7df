//! A pod's user namespace (`hostUsers: false`). The shim makes it and stays outside of it; descriptors hold it. Whoever is to be
//! a container's first process is cloned by a helper that enters it, as a child of the shim: so its pid and mount namespaces
//! belong to it, and the shim hears of its end.

use super::plan::UserIds;
use super::wire;
use crate::fault::{Attempt, Fault};
use crate::{mounts, sys};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::fs::{Gid, Mode, OFlags, Uid};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{
    DumpableBehavior, Signal, WaitId, WaitIdOptions, pidfd_send_signal, set_dumpable_behavior, waitid,
};
use rustix::thread::{
    LinkNameSpaceType, ThreadNameSpaceType, move_into_link_name_space, move_into_thread_name_spaces,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

/// A pod's user namespace.
pub struct Users {
    /// The namespace.
    pub namespace: OwnedFd,
    /// Its ids.
    pub ids: UserIds,
    /// The pid namespace that its containers share, if they do.
    pub processes: Option<OwnedFd>,
}

/// What a namespace's first process says once it has done its part, with what it made.
type Done = Result<i32, String>;

/// Makes a user namespace, and what its root makes there, in network, ipc and uts namespaces that belong to it. While there still
/// is a process in them, something may be done with its pidfd.
pub fn make(
    ids: UserIds,
    by_root: impl FnOnce() -> Result<OwnedFd, Fault>,
    with: impl FnOnce(BorrowedFd<'_>) -> Result<(), Fault>,
) -> Result<(Users, OwnedFd), Fault> {
    let (ours, theirs) = pair()?;
    let birth = sys::Birth { user: true, mount: true, ..sys::Birth::default() };
    let first = sys::clone_child(birth, None, &[theirs.as_raw_fd()], || {
        let made = mapped(&theirs).and_then(|()| by_root());
        let code = answer(&theirs, made.map(|made| (0, made)));
        // Until nobody needs it any more.
        wire::receive::<()>(&theirs).ok();
        code
    });
    let first = first.attempt(|| "make a user namespace")?;
    drop(theirs);
    let made = || -> Result<(Users, OwnedFd), Fault> {
        let of_process = format!("/proc/{}", first.pid);
        for map in ["uid_map", "gid_map"] {
            let line = format!("0 {} {}", ids.first, UserIds::LENGTH);
            std::fs::write(format!("{of_process}/{map}"), line)
                .attempt(|| format!("write the {map} of a user namespace"))?;
        }
        let namespace = namespace_of(first.pid, "user")?;
        wire::send(&ours, &(), &[]).attempt(|| "tell that ids are mapped")?;
        let (_, by_root) = hear(&ours)?;
        with(first.pidfd.as_fd())?;
        Ok((Users { namespace, ids, processes: None }, by_root))
    };
    let made = made();
    pidfd_send_signal(&first.pidfd, Signal::KILL).ok();
    reap(&first.pidfd)?;
    made
}

/// Waits until its ids are mapped, and becomes root among them.
fn mapped(socket: &OwnedFd) -> Result<(), Fault> {
    wire::receive::<()>(socket)
        .attempt(|| "wait for its ids")?
        .ok_or_else(|| Fault::refused("whoever was to map its ids is gone"))?;
    become_root()
}

fn become_root() -> Result<(), Fault> {
    set_thread_groups(&[])
        .and_then(|()| set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT))
        .and_then(|()| set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT))
        .attempt(|| "become root in a user namespace")
}

/// A /dev/shm, not attached anywhere.
pub fn shm(bytes: u64) -> Result<OwnedFd, Fault> {
    let size = bytes.to_string();
    mounts::detached("tmpfs", &[("mode", Some("1777")), ("size", Some(&size))], mounts::quiet())
}

/// The network, ipc and uts namespaces of a process.
pub fn enter_network_ipc_uts(process: BorrowedFd<'_>) -> Result<(), Fault> {
    let wanted = ThreadNameSpaceType::NETWORK
        | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
        | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME;
    move_into_thread_name_spaces(process, wanted).attempt(|| "enter the pod's namespaces")
}

impl Users {
    /// As `sys::clone_child`, root in the namespace. The helper can't be looked into from there: what is in its memory is the
    /// shim's.
    pub fn clone_child(
        &self,
        birth: sys::Birth,
        cgroup: Option<BorrowedFd<'_>>,
        kept: &[RawFd],
        child: impl FnOnce() -> i32,
    ) -> Result<sys::Child, Fault> {
        let (ours, theirs) = pair()?;
        let mut of_helper = vec![theirs.as_raw_fd(), self.namespace.as_raw_fd()];
        of_helper.extend(self.processes.as_ref().map(AsRawFd::as_raw_fd));
        of_helper.extend(kept);
        let helper = sys::clone_child(sys::Birth::default(), cgroup, &of_helper, || {
            let born = self.enter().and_then(|()| {
                let birth = sys::Birth { sibling: true, ..birth };
                sys::clone_child(birth, None, kept, child).attempt(|| "clone a process in a user namespace")
            });
            answer(&theirs, born.map(|born| (born.pid, born.pidfd)))
        });
        let helper = helper.attempt(|| "clone a process that enters the user namespace")?;
        drop(theirs);
        let born = hear(&ours);
        reap(&helper.pidfd)?;
        born.map(|(pid, pidfd)| sys::Child { pid, pidfd })
    }

    fn enter(&self) -> Result<(), Fault> {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).attempt(|| "hide from the pod")?;
        move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::User))
            .attempt(|| "enter the user namespace")?;
        become_root()?;
        match &self.processes {
            Some(processes) => {
                move_into_link_name_space(processes.as_fd(), Some(LinkNameSpaceType::ProcessID))
                    .attempt(|| "enter the pod's pid namespace")
            }
            None => Ok(()),
        }
    }
}

/// A namespace of a process, by its kind.
pub fn namespace_of(pid: i32, kind: &str) -> Result<OwnedFd, Fault> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    rustix::fs::open(format!("/proc/{pid}/ns/{kind}"), flags, Mode::empty())
        .attempt(|| format!("open the {kind} namespace of a process"))
}

fn pair() -> Result<(OwnedFd, OwnedFd), Fault> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .attempt(|| "make a pair of sockets")
}

/// Tells what came of a helper's part. The exit code.
fn answer(socket: &OwnedFd, made: Result<(i32, OwnedFd), Fault>) -> i32 {
    let sent = match &made {
        Ok((number, made)) => wire::send(socket, &Done::Ok(*number), &[made.as_fd()]),
        Err(fault) => wire::send(socket, &Done::Err(fault.message.clone()), &[]),
    };
    i32::from(sent.is_err())
}

fn hear(socket: &OwnedFd) -> Result<(i32, OwnedFd), Fault> {
    let heard = wire::receive::<Done>(socket).attempt(|| "hear a helper")?;
    let (done, descriptors) =
        heard.ok_or_else(|| Fault::refused("a process in the user namespace ended before its time"))?;
    let number = done.map_err(Fault::refused)?;
    let made = descriptors.into_iter().next();
    made.map(|made| (number, made)).ok_or_else(|| Fault::refused("a helper made nothing"))
}

fn reap(pidfd: &OwnedFd) -> Result<(), Fault> {
    waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED).attempt(|| "wait for a helper").map(drop)
}
