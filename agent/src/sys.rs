//! The one place with unsafe code: system calls that rustix does not offer as safe functions. Each block says why it is
//! sound; nothing here decides anything.
#![allow(
    unsafe_code,
    reason = "clone3, mount_setattr, seccomp, bpf and ioctls have no safe wrapper; see each block"
)]

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::thread::UnshareFlags;
use std::io;

/// libc has it as a C int, which is too small for it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Leaves namespaces for new ones. `FILES` can't be asked for.
pub fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    let flags = flags.difference(UnshareFlags::FILES);
    // SAFETY: what makes `unshare` unsafe is a file table that threads no longer share; FILES was taken out above.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// A child process: its number, and a descriptor that means it and never another.
pub struct Child {
    /// Its number in this process's pid namespace.
    pub pid: i32,
    /// Its pidfd.
    pub pidfd: OwnedFd,
}

/// How a child is born.
#[derive(Copy, Clone, Debug, Default)]
pub struct Birth {
    /// In a new pid namespace: it is process 1 there.
    pub pid: bool,
    /// In a new mount namespace.
    pub mount: bool,
    /// In a new user namespace, with network, ipc and uts namespaces that belong to it.
    pub user: bool,
    /// As a child of this process' parent.
    pub sibling: bool,
}

/// Forks with clone3 into a cgroup. The child keeps of its descriptors the standard streams and these, runs `child` and never
/// returns from here; the parent gets its pidfd. For a process of one thread, as the pod shim is: a lock that another thread
/// held would stay locked in the child.
pub fn clone_child(
    birth: Birth,
    cgroup: Option<BorrowedFd<'_>>,
    kept: &[RawFd],
    child: impl FnOnce() -> i32,
) -> io::Result<Child> {
    let mut pidfd: RawFd = -1;
    let mut flags = libc::CLONE_PIDFD as u64;
    if birth.pid {
        flags |= libc::CLONE_NEWPID as u64;
    }
    if birth.mount {
        flags |= libc::CLONE_NEWNS as u64;
    }
    if birth.user {
        let of_it = libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
        flags |= (libc::CLONE_NEWUSER | of_it) as u64;
    }
    if birth.sibling {
        flags |= libc::CLONE_PARENT as u64;
    }
    // SAFETY: all-zero is a valid clone_args: no flags, no pointers.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.pidfd = (&raw mut pidfd) as u64;
    // A sibling's is this process' own.
    args.exit_signal = if birth.sibling { 0 } else { libc::SIGCHLD as u64 };
    if let Some(cgroup) = cgroup {
        flags |= CLONE_INTO_CGROUP;
        args.cgroup = cgroup.as_raw_fd() as u64;
    }
    args.flags = flags;
    // SAFETY: no CLONE_VM, and no new stack: this is fork. `args` and `pidfd` outlive the call. The child gets a copy of a
    // process of one thread, so no lock is held by a thread that it lacks, and ordinary Rust may run in it.
    let result =
        unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, std::mem::size_of::<libc::clone_args>()) };
    if check(result)? == 0 {
        close_all_but(kept);
        let code = child();
        // SAFETY: ends the child at once, without running the destructors and exit handlers that are the parent's.
        unsafe { libc::_exit(code) }
    }
    // SAFETY: the kernel stored a new descriptor there (CLONE_PIDFD), which nobody else owns.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok(Child { pid: result as i32, pidfd })
}

/// Closes every descriptor from 3 on but these: in a child whose other descriptors are its parent's.
fn close_all_but(kept: &[RawFd]) {
    let mut kept: Vec<u32> = kept.iter().map(|fd| fd.cast_unsigned()).collect();
    kept.sort_unstable();
    let mut from = 3;
    for end in kept.into_iter().chain([u32::MAX]) {
        if end > from {
            // SAFETY: the owners of these descriptors are the parent's; none of their code runs in the child, which leaves
            // through `_exit` or an exec, so that nobody uses or closes the numbers again.
            unsafe { libc::syscall(libc::SYS_close_range, from, end - 1, 0) };
        }
        from = from.max(end.saturating_add(1));
    }
}

/// Sets attributes (`MOUNT_ATTR_*`) and propagation of a mount, or of the whole tree below it.
pub fn mount_setattr(mount: impl AsFd, set: u64, propagation: u64, recursive: bool) -> Result<(), Errno> {
    let attr = libc::mount_attr { attr_set: set, attr_clr: 0, propagation, userns_fd: 0 };
    set_attributes(mount, &attr, recursive)
}

/// Shows the owners of a detached mount's files as a user namespace maps them.
pub fn map_ids(mount: impl AsFd, users: impl AsFd) -> Result<(), Errno> {
    let userns_fd = u64::from(users.as_fd().as_raw_fd().cast_unsigned());
    let attr = libc::mount_attr { attr_set: libc::MOUNT_ATTR_IDMAP, attr_clr: 0, propagation: 0, userns_fd };
    set_attributes(mount, &attr, false)
}

fn set_attributes(mount: impl AsFd, attr: &libc::mount_attr, recursive: bool) -> Result<(), Errno> {
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the empty path is a C string, `attr` outlives the call and its size is told.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(attr),
            std::mem::size_of::<libc::mount_attr>(),
        )
    };
    if result < 0 { Err(last_errno()) } else { Ok(()) }
}

fn last_errno() -> Errno {
    Errno::from_raw_os_error(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// Lets the kernel reap this process' children as they end: nobody asks how.
pub fn reap_by_itself() {
    // SAFETY: SIG_IGN is no handler: no code of ours runs in a signal's context.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Marks every descriptor from a number on to be closed by exec.
pub fn close_on_exec_from(first: u32) -> Result<(), Errno> {
    // SAFETY: it closes nothing now; descriptors of this process stay valid.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result < 0 { Err(last_errno()) } else { Ok(()) }
}

/// How a process ended, asked of its pidfd by whoever holds one, parent or not. `None`: it has not been reaped yet, or
/// this kernel (before 6.15) can't say.
pub fn exit_status_of(pidfd: impl AsFd) -> Option<i32> {
    // SAFETY: all-zero is a valid value: its fields are plain numbers.
    let mut info: libc::pidfd_info = unsafe { std::mem::zeroed() };
    info.mask = u64::from(libc::PIDFD_INFO_EXIT);
    // SAFETY: the request's size says how large `info` is, and `info` outlives the call.
    let result = unsafe { libc::ioctl(pidfd.as_fd().as_raw_fd(), libc::PIDFD_GET_INFO as _, &raw mut info) };
    (result == 0 && info.mask & u64::from(libc::PIDFD_INFO_EXIT) != 0).then_some(info.exit_code)
}

/// Sets the loopback interface of this network namespace up.
pub fn loopback_up() -> io::Result<()> {
    // SAFETY: creates a descriptor, or fails.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    check(libc::c_long::from(socket))?;
    // SAFETY: a new descriptor that nobody else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads one ifreq, which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    check(libc::c_long::from(result)).map(|_| ())
}

/// One instruction of a seccomp program.
pub type BpfInstruction = libc::sock_filter;

/// Binds this thread to a seccomp program, for itself and all its children.
pub fn install_seccomp(program: &[BpfInstruction]) -> io::Result<()> {
    let len =
        u16::try_from(program.len()).map_err(|_| io::Error::other("the seccomp program is too long"))?;
    let prog = libc::sock_fprog { len, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies `len` instructions from `filter` and writes nothing; both outlive the call.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const prog) };
    check(result).map(|_| ())
}

/// `bpf(2)`'s commands, and the kinds of programs and attachments that there are of here.
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_ATTACH: libc::c_int = 8;
const BPF_PROG_TYPE_CGROUP_DEVICE: u32 = 15;
const BPF_CGROUP_DEVICE: u32 = 6;
const BPF_F_ALLOW_MULTI: u32 = 2;

/// The beginning of `union bpf_attr` for a load.
#[repr(C)]
struct ProgramToLoad {
    kind: u32,
    instructions: u32,
    at: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log_at: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attached_as: u32,
}

/// Has the kernel take a program that says which devices may be opened and made.
pub fn load_device_program(program: &[u64]) -> io::Result<OwnedFd> {
    let what = ProgramToLoad {
        kind: BPF_PROG_TYPE_CGROUP_DEVICE,
        instructions: u32::try_from(program.len()).map_err(io::Error::other)?,
        at: program.as_ptr() as u64,
        license: c"Apache-2.0".as_ptr() as u64,
        log_level: 0,
        log_size: 0,
        log_at: 0,
        kernel_version: 0,
        flags: 0,
        name: *b"nodefold_device\0",
        interface: 0,
        attached_as: BPF_CGROUP_DEVICE,
    };
    // SAFETY: the kernel reads `what`, whose size is told, the instructions, whose number is told, and a C string; all outlive
    // the call, and it writes nothing.
    let fd = unsafe {
        libc::syscall(libc::SYS_bpf, BPF_PROG_LOAD, &raw const what, std::mem::size_of::<ProgramToLoad>())
    };
    let fd = check(fd)?;
    // SAFETY: a new descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Has it asked about a control group of version 2 and all below it.
pub fn attach_device_program(group: impl AsFd, program: impl AsFd) -> io::Result<()> {
    let (group, program) = (group.as_fd().as_raw_fd(), program.as_fd().as_raw_fd());
    let what = [group.cast_unsigned(), program.cast_unsigned(), BPF_CGROUP_DEVICE, BPF_F_ALLOW_MULTI];
    // SAFETY: the kernel reads `what`, whose size is told and which outlives the call.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, BPF_PROG_ATTACH, what.as_ptr(), std::mem::size_of_val(&what)) };
    check(result).map(|_| ())
}
