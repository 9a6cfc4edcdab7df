//! Mounts by descriptor: made detached, attached where a descriptor points, taken down plainly. A detached mount that nobody
//! attaches goes with its last descriptor, so a crash half-way leaks none.

use crate::fault::{Attempt, Fault};
use crate::{beneath, sys};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, OFlags, StatxFlags, statx};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};
use std::path::{Path, PathBuf};

/// `tmpfs`' and `hugetlbfs`' numbers in `statfs`.
const TMPFS_MAGIC: i64 = 0x0102_1994;
const HUGETLBFS_MAGIC: i64 = 0x9584_58f6;
/// So many mounts stacked on one place are taken down; more are somebody's game.
const MOST_STACKED: usize = 64;

/// A file system, not attached anywhere yet. An option without a value is a flag.
pub fn detached(
    kind: &str,
    options: &[(&str, Option<&str>)],
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Fault> {
    let open = || -> Result<OwnedFd, Errno> {
        let config = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
        for (key, value) in options {
            match value {
                Some(value) => fsconfig_set_string(config.as_fd(), *key, *value)?,
                None => fsconfig_set_flag(config.as_fd(), *key)?,
            }
        }
        fsconfig_create(config.as_fd())?;
        fsmount(config.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
    };
    open().attempt(|| {
        let options: Vec<String> = options
            .iter()
            .map(|(key, value)| value.map_or_else(|| (*key).to_owned(), |value| format!("{key}={value}")))
            .collect();
        format!("make a {kind} file system ({})", options.join(","))
    })
}

/// What nobody may run, open as a device or gain rights by.
pub fn quiet() -> MountAttrFlags {
    MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC | MountAttrFlags::MOUNT_ATTR_NODEV
}

/// A tmpfs with a size in bytes (0: as large as the kernel lets it be) that never swaps, where the kernel knows that.
pub fn tmpfs(size_bytes: u64, mode: &str, attributes: MountAttrFlags) -> Result<OwnedFd, Fault> {
    let size = size_bytes.to_string();
    let mut options = vec![("mode", Some(mode)), ("noswap", None)];
    if size_bytes > 0 {
        options.push(("size", Some(&size)));
    }
    match detached("tmpfs", &options, attributes) {
        Ok(mount) => Ok(mount),
        // Before 6.4 there is no `noswap`.
        Err(_) => {
            options.retain(|(key, _)| *key != "noswap");
            detached("tmpfs", &options, attributes)
        }
    }
}

/// A writable directory over one that stays as it is. What is written need not outlive the host. What the overlay notes about
/// files is a user's own attribute where nobody may set root's.
pub fn overlay(
    lower: &Path,
    (upper, work): (&Path, &Path),
    is_roots: bool,
    attributes: MountAttrFlags,
) -> Result<OwnedFd, Fault> {
    let [lower, upper, work] = [lower, upper, work].map(|path| path.display().to_string());
    let with = |key| {
        let mut options = vec![
            (key, Some(&*lower)),
            ("upperdir", Some(&*upper)),
            ("workdir", Some(&*work)),
            ("volatile", None),
        ];
        if !is_roots {
            options.push(("userxattr", None));
        }
        detached("overlay", &options, attributes)
    };
    // Before 6.8 there is only `lowerdir`, in which a colon separates.
    with("lowerdir+").or_else(|_| with("lowerdir"))
}

/// A private copy of the mount (with all below it) that a descriptor points into, from there down; not attached anywhere.
pub fn clone_of(place: impl AsFd) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let clone = open_tree(place.as_fd(), "", flags)?;
    sys::mount_setattr(&clone, 0, libc::MS_PRIVATE, true)?;
    Ok(clone)
}

/// Whether what is mounted on one side of a volume's mount later appears on the other, too.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// Neither way.
    None,
    /// In the container what the host mounts.
    HostToContainer,
    /// Both ways.
    Bidirectional,
}

/// A copy as `clone_of` makes it, and as propagation wants it. What the host keeps to itself can't be propagated: that is
/// refused, as runtimes do.
pub fn clone_with(place: impl AsFd, propagation: Propagation) -> Result<OwnedFd, Fault> {
    let told = || "copy its mount";
    let wanted = match propagation {
        Propagation::None => return clone_of(place).attempt(told),
        Propagation::HostToContainer => libc::MS_SLAVE,
        Propagation::Bidirectional => libc::MS_SHARED,
    };
    let (point, options) = mount_of(&place)?;
    let is = |kind: &str| options.iter().any(|option| option.starts_with(kind));
    let (fits, what) = match propagation {
        Propagation::Bidirectional => (is("shared:"), "a shared mount"),
        Propagation::HostToContainer | Propagation::None => {
            (is("shared:") || is("master:"), "a shared or slave mount")
        }
    };
    if !fits {
        return Err(Fault::refused(format!(
            "it is mounted on {point} but that is not {what}: mount --make-rshared {point}"
        )));
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let clone = open_tree(place.as_fd(), "", flags).attempt(told)?;
    sys::mount_setattr(&clone, 0, wanted, true).attempt(told)?;
    Ok(clone)
}

/// Where the mount that a descriptor is in is mounted, and what propagates from and to it.
fn mount_of(place: impl AsFd) -> Result<(String, Vec<String>), Fault> {
    let wanted = StatxFlags::MNT_ID;
    let found = statx(place, "", AtFlags::EMPTY_PATH, wanted).attempt(|| "find its mount")?;
    let id = found.stx_mnt_id.to_string();
    let table = std::fs::read_to_string("/proc/thread-self/mountinfo").attempt(|| "read the mount table")?;
    for line in table.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        if fields.first() == Some(&id.as_str()) {
            let options = fields.iter().skip(6).take_while(|field| **field != "-");
            let point = fields.get(4).copied().unwrap_or("").to_owned();
            return Ok((point, options.map(|option| (*option).to_owned()).collect()));
        }
    }
    Err(Fault::transient("its mount is not in the mount table"))
}

/// Attaches a detached mount to the place that a descriptor means.
pub fn attach(mount: impl AsFd, place: impl AsFd) -> Result<(), Errno> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(mount.as_fd(), "", place.as_fd(), "", flags)
}

/// Attaches a detached mount to a name in a directory; the name must not be a link.
pub fn attach_at(mount: impl AsFd, dir: impl AsFd, name: &str) -> Result<(), Fault> {
    let place = beneath::open(dir, name, OFlags::PATH).attempt(|| format!("open the mount point {name}"))?;
    attach(mount, place).attempt(|| format!("mount on {name}"))
}

/// A path that means a name in a directory, whatever the directory is called now. The last component is not followed by
/// what this is given to.
pub fn path_in(dir: impl AsFd, name: impl AsRef<Path>) -> PathBuf {
    Path::new(&format!("/proc/thread-self/fd/{}", dir.as_fd().as_raw_fd())).join(name)
}

/// Takes down whatever is mounted on a name in a directory. Nothing mounted is success. Never detaches lazily: a mount
/// that is in use stays, and is told.
pub fn unmount_all(dir: impl AsFd, name: &str) -> Result<(), Fault> {
    for _ in 0..MOST_STACKED {
        if !beneath::is_mounted(&dir, name).attempt(|| format!("look at {name}"))? {
            return Ok(());
        }
        match unmount(path_in(&dir, name), UnmountFlags::NOFOLLOW) {
            Ok(()) | Err(Errno::INVAL | Errno::NOENT) => {}
            Err(errno) => return Err(errno).attempt(|| format!("unmount {name}")),
        }
    }
    Err(Fault::transient(format!("{name} still has something mounted on it after {MOST_STACKED} unmounts")))
}

/// Whether a descriptor is on a tmpfs.
pub fn is_tmpfs(fd: impl AsFd) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|found| found.f_type == TMPFS_MAGIC)
}

/// Whether a descriptor is on a hugetlbfs.
pub fn is_hugetlbfs(fd: impl AsFd) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|found| found.f_type == HUGETLBFS_MAGIC)
}

/// Opens what lies at an absolute path of the host, links followed, to be cloned.
pub fn place(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, rustix::fs::Mode::empty())
}
