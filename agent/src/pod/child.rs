//! From the clone to the exec: what a container's first process does to itself. It runs in a child of the shim, which has
//! one thread; it reports why it failed through a pipe that the exec closes. What depends on nothing of the container's own it
//! does before it is told what to become, so that a spare one has done it already.

use super::plan::{ContainerPlan, PlannedMount, Stage};
use super::wire::{self, Order};
use crate::fault::{Attempt, Fault};
use crate::{beneath, mounts, sys};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Uid, chownat, fchown, makedev, mkdirat, mknodat,
    openat, openat2, symlinkat,
};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, UnmountFlags, unmount};
use rustix::process::{pivot_root, setsid, umask};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities, set_keep_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::{Component, Path};
use std::process::Command;

/// The root directory of the shim in which a container's root is attached.
pub const ROOT: &str = "/c";
/// The one in which what surrounds it is made ahead.
pub const STAGE: &str = "/k";
/// The pod's /dev/shm in the shim's namespace.
pub const SHM: &str = "/shm";
/// The host's devices in the shim's namespace, for those that can't make their own.
pub const DEVICES_OF_HOST: &str = "/dev";
/// The devices that every container has.
pub const DEVICES: [(&str, u32, u32); 6] =
    [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0)];
/// What is made ahead, and moved into the root as it is.
const STAGED: [&str; 3] = ["proc", "dev", "sys"];
/// Told when everything up to the exec is done.
pub const PARKED: u8 = b'P';
/// Begins the text of a failure.
pub const FAILED: u8 = b'F';

/// What the child gets.
pub struct Inherited<'a> {
    /// What it makes ahead.
    pub stage: &'a Stage,
    /// Where it hears what it is to become.
    pub orders: OwnedFd,
    /// Readable once it may go.
    pub go: OwnedFd,
    /// Where it tells how far it came.
    pub status: OwnedFd,
    /// Its standard streams.
    pub streams: [BorrowedFd<'a>; 3],
    /// It is in a user namespace, its pod's or the node's.
    pub own_users: bool,
}

/// Becomes a container. Returns only if that fails, with the exit code.
pub fn become_container(inherited: Inherited<'_>) -> i32 {
    let Inherited { stage, orders, go, status, streams, own_users } = inherited;
    let mut status = std::fs::File::from(status);
    let mut become_it = || -> Result<(), Fault> {
        let (Order::Placed, _) = hear(&orders)? else { return Err(Fault::refused("it is not placed yet")) };
        let staged = set_the_stage(stage, streams, own_users)?;
        let (Order::Become, descriptors) = hear(&orders)? else { return Err(Fault::refused("placed twice")) };
        let mut descriptors = descriptors.into_iter();
        let (Some(plan), Some(root)) = (descriptors.next(), descriptors.next()) else {
            return Err(Fault::refused("no plan and root came along"));
        };
        let plan = read_plan(plan)?;
        let volumes: Vec<OwnedFd> = descriptors.collect();
        if !own_users {
            oom_score(&format!("{STAGE}/proc/self"), plan.oom_score_adj)?;
        }
        build(&plan, &staged, &root, &volumes)?;
        own_streams(&plan)?;
        status.write_all(&[PARKED]).attempt(|| "tell that it is parked")?;
        wait_for(&go)?;
        execute(&plan, false)
    };
    if let Err(fault) = become_it() {
        let mut text = vec![FAILED];
        text.extend_from_slice(fault.message.as_bytes());
        // Who would read it is gone: so is the need to.
        drop(status.write_all(&text));
    }
    128
}

fn hear(orders: &OwnedFd) -> Result<(Order, Vec<OwnedFd>), Fault> {
    let heard = wire::receive::<Order>(orders).attempt(|| "wait for orders")?;
    heard.ok_or_else(|| Fault::refused("whoever was to give orders is gone"))
}

/// The plan that a memory file holds, from its beginning.
pub fn read_plan(file: OwnedFd) -> Result<ContainerPlan, Fault> {
    let (mut file, mut text) = (std::fs::File::from(file), Vec::new());
    file.rewind().and_then(|()| file.read_to_end(&mut text)).attempt(|| "read the plan")?;
    serde_json::from_slice(&text).map_err(|error| Fault::refused(format!("the plan: {error}")))
}

fn wait_for(go: &OwnedFd) -> Result<(), Fault> {
    match rustix::io::read(go, &mut [0]).attempt(|| "wait for the start")? {
        1 => Ok(()),
        _ => Err(Fault::refused("whoever was to start it is gone")),
    }
}

/// Makes everything that depends on nothing of the container's own, where its root will not be: a session, its cgroup
/// namespace, its streams, and the kernel's file systems.
fn set_the_stage(stage: &Stage, streams: [BorrowedFd<'_>; 3], own_users: bool) -> Result<OwnedFd, Fault> {
    setsid().attempt(|| "begin a session")?;
    sys::unshare(UnshareFlags::NEWCGROUP).attempt(|| "make a cgroup namespace")?;
    dup2_stdin(streams[0])
        .and(dup2_stdout(streams[1]))
        .and(dup2_stderr(streams[2]))
        .attempt(|| "set the streams")?;
    umask(Mode::empty());
    let place = openat(rustix::fs::CWD, STAGE, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let own = mounts::detached("tmpfs", &[("mode", Some("755"))], MountAttrFlags::empty())?;
    mounts::attach(own, place.attempt(|| "open the stage")?).attempt(|| "attach the stage")?;
    let staged = beneath::open_root(Path::new(STAGE))?;
    for name in STAGED {
        mkdirat(&staged, name, Mode::from_raw_mode(0o755))
            .attempt(|| format!("make the stage of /{name}"))?;
    }
    kernel_file_systems(stage, &staged, own_users)?;
    if !stage.privileged {
        for path in &stage.read_only {
            make_read_only(&staged, path)?;
        }
        for path in &stage.masked {
            mask(&staged, path)?;
        }
    }
    Ok(staged)
}

fn build(plan: &ContainerPlan, staged: &OwnedFd, root: &OwnedFd, volumes: &[OwnedFd]) -> Result<(), Fault> {
    let place = openat(rustix::fs::CWD, ROOT, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    mounts::attach(root, place.attempt(|| "open the place of the root")?).attempt(|| "attach the root")?;
    let root = beneath::open_root(Path::new(ROOT))?;
    for name in STAGED {
        let made = openat(staged, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .attempt(|| format!("open what is /{name}"))?;
        let place = make_place(&root, name, true).attempt(|| format!("make the mount point /{name}"))?;
        mounts::attach(made, place).attempt(|| format!("mount on /{name}"))?;
    }
    for (mount, fd) in plan.mounts.iter().zip(volumes) {
        attach_planned(&root, mount, fd.as_fd())?;
    }
    working_directory(plan, &root)?;
    rustix::process::fchdir(&root).attempt(|| "enter the root")?;
    pivot_root(".", ".").attempt(|| "make it the root")?;
    unmount(".", UnmountFlags::DETACH).attempt(|| "leave the former root")?;
    rustix::process::chdir("/").attempt(|| "enter the root")?;
    if plan.read_only_root {
        let root = beneath::open_root(Path::new("/"))?;
        sys::mount_setattr(&root, libc::MOUNT_ATTR_RDONLY, 0, false).attempt(|| "make the root read-only")?;
    }
    umask(Mode::from_raw_mode(plan.umask));
    Ok(())
}

/// A place in the container's root, links resolved inside it.
fn place(root: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// Makes a mount point where there is none, every component resolved inside the root.
fn make_place(root: &OwnedFd, path: &str, directory: bool) -> Result<OwnedFd, Errno> {
    match place(root, path, OFlags::PATH) {
        Err(Errno::NOENT) => {}
        found => return found,
    }
    let mut done = String::new();
    let names: Vec<&str> = Path::new(path)
        .components()
        .filter_map(|c| match c {
            Component::Normal(name) => name.to_str(),
            Component::RootDir | Component::CurDir | Component::ParentDir | Component::Prefix(_) => None,
        })
        .collect();
    for (i, name) in names.iter().enumerate() {
        let parent =
            place(root, if done.is_empty() { "." } else { &done }, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let is_last = i + 1 == names.len();
        let made = if is_last && !directory {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            openat(&parent, *name, flags, Mode::from_raw_mode(0o755)).map(drop)
        } else {
            mkdirat(&parent, *name, Mode::from_raw_mode(0o755))
        };
        match made {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        done = format!("{done}/{name}");
    }
    place(root, path, OFlags::PATH)
}

fn attach_planned(root: &OwnedFd, mount: &PlannedMount, fd: BorrowedFd<'_>) -> Result<(), Fault> {
    let target = &mount.target;
    let place =
        make_place(root, target, mount.directory).attempt(|| format!("make the mount point {target}"))?;
    mounts::attach(fd, place).attempt(|| format!("mount on {target}"))
}

/// Mounts a file system of its own on a path of the container.
fn mount_new(
    root: &OwnedFd,
    target: &str,
    kind: &str,
    options: &[(&str, Option<&str>)],
    attributes: MountAttrFlags,
) -> Result<(), Fault> {
    let mount = mounts::detached(kind, options, attributes)?;
    let place = make_place(root, target, true).attempt(|| format!("make the mount point {target}"))?;
    mounts::attach(mount, place).attempt(|| format!("mount on {target}"))
}

/// /proc, /dev and /sys as runtimes make them.
fn kernel_file_systems(stage: &Stage, root: &OwnedFd, own_users: bool) -> Result<(), Fault> {
    use MountAttrFlags as A;
    let quiet = mounts::quiet();
    mount_new(root, "/proc", "proc", &[], quiet)?;
    let dev = [("mode", Some("755")), ("size", Some("65536k"))];
    mount_new(root, "/dev", "tmpfs", &dev, A::MOUNT_ATTR_NOSUID | A::MOUNT_ATTR_STRICTATIME)?;
    devices(root, own_users)?;
    let pts = [("newinstance", None), ("ptmxmode", Some("0666")), ("mode", Some("0620")), ("gid", Some("5"))];
    let quiet_pts = A::MOUNT_ATTR_NOSUID | A::MOUNT_ATTR_NOEXEC;
    match mount_new(root, "/dev/pts", "devpts", &pts, quiet_pts) {
        // In a user namespace of one id there is no group of terminals.
        Err(_) if own_users => mount_new(root, "/dev/pts", "devpts", &pts[..3], quiet_pts)?,
        made => made?,
    }
    mount_new(root, "/dev/mqueue", "mqueue", &[], quiet)?;
    let shm =
        mounts::place(Path::new(SHM)).and_then(mounts::clone_of).attempt(|| "copy the pod's /dev/shm")?;
    let shm_place = make_place(root, "/dev/shm", true).attempt(|| "make /dev/shm")?;
    mounts::attach(shm, shm_place).attempt(|| "mount /dev/shm")?;
    let sys = if stage.privileged { quiet } else { quiet | A::MOUNT_ATTR_RDONLY };
    mount_new(root, "/sys", "sysfs", &[], sys)?;
    control_groups(stage, root, sys)
}

/// /sys/fs/cgroup, from the container's own groups down: in the cgroup namespace that it has by now. The directory around
/// them is the container's own, as with runc; what limits it is read-only.
fn control_groups(stage: &Stage, root: &OwnedFd, attributes: MountAttrFlags) -> Result<(), Fault> {
    const AT: &str = "/sys/fs/cgroup";
    let attributes = attributes | MountAttrFlags::MOUNT_ATTR_RELATIME;
    if stage.cgroups.iter().any(|hierarchy| !hierarchy.place.is_empty()) {
        let writable = attributes.difference(MountAttrFlags::MOUNT_ATTR_RDONLY);
        mount_new(root, AT, "tmpfs", &[("mode", Some("755"))], writable)?;
    }
    for hierarchy in &stage.cgroups {
        let mut options: Vec<(&str, Option<&str>)> =
            hierarchy.controllers.iter().map(|controller| (controller.as_str(), None)).collect();
        if let Some(name) = &hierarchy.name {
            options.extend([("none", None), ("name", Some(name.as_str()))]);
        }
        let at = format!("{AT}/{}", hierarchy.place);
        mount_new(root, at.trim_end_matches('/'), &hierarchy.kind, &options, attributes)?;
        if hierarchy.controllers.len() > 1 {
            let dir = place(root, AT, OFlags::RDONLY | OFlags::DIRECTORY).attempt(|| format!("open {AT}"))?;
            for controller in &hierarchy.controllers {
                symlinkat(hierarchy.place.as_str(), &dir, controller.as_str())
                    .attempt(|| format!("link {AT}/{controller}"))?;
            }
        }
    }
    Ok(())
}

/// Makes the devices that every container has; in a user namespace nobody can, and the host's own are shown, as with runc.
fn devices(root: &OwnedFd, own_users: bool) -> Result<(), Fault> {
    const LINKS: [(&str, &str); 5] = [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ];
    let dev = place(root, "/dev", OFlags::RDONLY | OFlags::DIRECTORY).attempt(|| "open /dev")?;
    for (name, major, minor) in DEVICES {
        if own_users {
            let device = mounts::place(&Path::new(DEVICES_OF_HOST).join(name)).and_then(mounts::clone_of);
            let device = device.attempt(|| format!("copy /dev/{name}"))?;
            let place = make_place(root, &format!("/dev/{name}"), false);
            let place = place.attempt(|| format!("make the place of /dev/{name}"))?;
            mounts::attach(device, place).attempt(|| format!("mount on /dev/{name}"))?;
            continue;
        }
        let mode = Mode::from_raw_mode(0o666);
        mknodat(&dev, name, FileType::CharacterDevice, mode, makedev(major, minor))
            .attempt(|| format!("make /dev/{name}"))?;
        chownat(&dev, name, Some(Uid::ROOT), Some(Gid::ROOT), AtFlags::SYMLINK_NOFOLLOW)
            .attempt(|| format!("give /dev/{name} to root"))?;
    }
    for (name, target) in LINKS {
        symlinkat(target, &dev, name).attempt(|| format!("link /dev/{name}"))?;
    }
    Ok(())
}

/// Hides a path, if it is there: a file behind /dev/null, a directory behind an empty one.
fn mask(root: &OwnedFd, path: &str) -> Result<(), Fault> {
    let hidden = match beneath::open(root, path.trim_start_matches('/'), OFlags::PATH) {
        Ok(hidden) => hidden,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(errno) => return Err(errno).attempt(|| format!("open {path} to hide it")),
    };
    let stat = rustix::fs::fstat(&hidden).attempt(|| format!("look at {path}"))?;
    let cover = if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        mounts::detached("tmpfs", &[], MountAttrFlags::MOUNT_ATTR_RDONLY)?
    } else {
        let null = place(root, "/dev/null", OFlags::PATH).attempt(|| "open /dev/null")?;
        mounts::clone_of(null).attempt(|| "copy /dev/null")?
    };
    mounts::attach(cover, hidden).attempt(|| format!("hide {path}"))
}

/// Makes a path, if it is there, one that can't be written.
fn make_read_only(root: &OwnedFd, path: &str) -> Result<(), Fault> {
    let found = match beneath::open(root, path.trim_start_matches('/'), OFlags::PATH) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        Err(errno) => return Err(errno).attempt(|| format!("open {path} to lock it")),
    };
    let lock = || -> Result<(), Errno> {
        let copy = mounts::clone_of(&found)?;
        sys::mount_setattr(&copy, libc::MOUNT_ATTR_RDONLY, 0, true)?;
        mounts::attach(copy, &found)
    };
    lock().attempt(|| format!("make {path} read-only"))
}

/// Raising is always allowed; lowering needs CAP_SYS_RESOURCE, and a host that does not give it runs without.
/// In a user namespace that is nobody's to do: the shim does it.
pub fn oom_score(process: &str, wanted: i32) -> Result<(), Fault> {
    match std::fs::write(format!("{process}/oom_score_adj"), wanted.to_string()) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        done => done.attempt(|| "set oom_score_adj"),
    }
}

/// What it prints to is its user's, so that it can open it again by its name (/dev/stdout), as with runc.
fn own_streams(plan: &ContainerPlan) -> Result<(), Fault> {
    for stream in [rustix::stdio::stdout(), rustix::stdio::stderr()] {
        fchown(stream, Some(Uid::from_raw(plan.uid)), None).attempt(|| "own what it prints to")?;
    }
    Ok(())
}

/// The directory it begins in is made if the image lacks it.
fn working_directory(plan: &ContainerPlan, root: &OwnedFd) -> Result<(), Fault> {
    if plan.cwd == "/" {
        return Ok(());
    }
    make_place(root, &plan.cwd, true).map(drop).attempt(|| format!("make the working directory {}", plan.cwd))
}

/// Gives up what it may not keep, and becomes the program. Returns only if that fails. A second process in a container is
/// killed with whoever started it.
pub fn execute(plan: &ContainerPlan, dies_with_parent: bool) -> Result<(), Fault> {
    rustix::process::chdir(plan.cwd.as_str())
        .attempt(|| format!("enter the working directory {}", plan.cwd))?;
    confine(plan)?;
    if dies_with_parent {
        // After the change of user, which clears it.
        let signal = Some(rustix::process::Signal::KILL);
        rustix::process::set_parent_process_death_signal(signal).attempt(|| "tie it to its parent")?;
    }
    let Some((name, arguments)) = plan.args.split_first() else {
        return Err(Fault::refused(
            "no command specified: neither the container nor its image says what to run",
        ));
    };
    let program = find_program(name, &plan.env)?;
    sys::close_on_exec_from(3).attempt(|| "close what is the shim's")?;
    let error = Command::new(&program)
        .arg0(name)
        .args(arguments)
        .env_clear()
        .envs(plan.env.iter().map(|(key, value)| (key, value)))
        .exec();
    Err(Fault::refused(format!("exec: {program:?}: {error}")))
}

/// Capabilities, user, no-new-privileges and seccomp, in the order in which each still may be done.
pub fn confine(plan: &ContainerPlan) -> Result<(), Fault> {
    // Without no-new-privileges only a process with CAP_SYS_ADMIN may install a filter: before it is given up.
    if !plan.no_new_privileges {
        filter(plan)?;
    }
    // What this node itself has not, nobody gets: as runtimes do, that is no error.
    let held = rustix::thread::capabilities(None).attempt(|| "see what capabilities there are")?.permitted;
    let keep = CapabilitySet::from_bits_retain(plan.capabilities & held.bits());
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if keep.contains(capability) {
            continue;
        }
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Beyond the last that this kernel knows.
            Err(Errno::INVAL) => break,
            Err(errno) => return Err(errno).attempt(|| "drop a capability"),
        }
    }
    rustix::thread::clear_ambient_capability_set().attempt(|| "clear the ambient capabilities")?;
    let groups: Vec<Gid> = plan.groups.iter().map(|group| Gid::from_raw(*group)).collect();
    set_keep_capabilities(true).attempt(|| "keep capabilities")?;
    if !plan.keeps_groups {
        set_thread_groups(&groups).attempt(|| "set the groups")?;
    }
    let (uid, gid) = (Uid::from_raw(plan.uid), Gid::from_raw(plan.gid));
    set_thread_res_gid(gid, gid, gid).attempt(|| format!("become group {}", plan.gid))?;
    set_thread_res_uid(uid, uid, uid).attempt(|| format!("become user {}", plan.uid))?;
    set_keep_capabilities(false).attempt(|| "stop keeping capabilities")?;
    let sets = CapabilitySets { effective: keep, permitted: keep, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets).attempt(|| "set the capabilities")?;
    if plan.no_new_privileges {
        set_no_new_privs(true).attempt(|| "set no-new-privileges")?;
        filter(plan)?;
    }
    Ok(())
}

fn filter(plan: &ContainerPlan) -> Result<(), Fault> {
    for program in &plan.seccomp {
        let program: Vec<sys::BpfInstruction> = program
            .iter()
            .map(|(code, jt, jf, k)| sys::BpfInstruction { code: *code, jt: *jt, jf: *jf, k: *k })
            .collect();
        sys::install_seccomp(&program).attempt(|| "install the seccomp filter")?;
    }
    Ok(())
}

/// The program's path: as given if it has a slash, else the first of its name on the container's PATH.
fn find_program(name: &str, env: &[(String, String)]) -> Result<String, Fault> {
    if name.contains('/') {
        return Ok(name.to_owned());
    }
    let path = env.iter().rev().find(|(key, _)| key == "PATH").map_or("", |(_, value)| value.as_str());
    for dir in path.split(':').filter(|dir| !dir.is_empty()) {
        let candidate = format!("{dir}/{name}");
        let is_file = std::fs::metadata(&candidate).is_ok_and(|found| found.is_file());
        if is_file && rustix::fs::access(&candidate, rustix::fs::Access::EXEC_OK).is_ok() {
            return Ok(candidate);
        }
    }
    Err(Fault::refused(format!("exec: {name:?}: executable file not found in $PATH")))
}
