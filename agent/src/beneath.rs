//! Files below a directory that somebody hostile may have filled: every name is resolved by the kernel beneath its root,
//! without following links, and nothing is deleted through a mount (kubelet-volumes I10).

use crate::fault::{Attempt, Fault};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, Dir, Mode, OFlags, RenameFlags, ResolveFlags, StatxAttributes, StatxFlags, mkdirat, openat2,
    renameat_with, statx, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// Within this depth a directory is entered; deeper ones are first moved up to the top, so that a tree of any depth takes
/// few descriptors and no deep recursion.
const DEEPEST: usize = 24;
/// So many times a directory is looked at again because somebody keeps writing into it.
const MOST_PASSES: usize = 1000;

/// A directory by its absolute path, links followed: for roots that are the operator's own.
pub fn open_root(path: &Path) -> Result<OwnedFd, Fault> {
    rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .attempt(|| format!("open {}", path.display()))
}

/// What lies at a path beneath a root; no component of it may be a link.
pub fn open(root: impl AsFd, path: impl AsRef<Path>, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    retry(|| openat2(root.as_fd(), path.as_ref(), flags | OFlags::CLOEXEC, Mode::empty(), resolve))
}

/// A plain file beneath a root, to be read; no component of its path may be a link. A FIFO that somebody put there, or a device,
/// is neither waited for nor read.
pub fn open_file(root: impl AsFd, path: impl AsRef<Path>) -> Result<OwnedFd, Errno> {
    let file = open(root, path, OFlags::RDONLY | OFlags::NONBLOCK)?;
    if is_file(&file)? { Ok(file) } else { Err(Errno::OPNOTSUPP) }
}

/// Whether a descriptor is of a plain file.
pub fn is_file(file: impl AsFd) -> Result<bool, Errno> {
    let mode = rustix::fs::fstat(file)?.st_mode;
    Ok(rustix::fs::FileType::from_raw_mode(mode) == rustix::fs::FileType::RegularFile)
}

/// A directory beneath a root, to be read and written in; no component of its path may be a link.
pub fn open_dir(root: impl AsFd, path: impl AsRef<Path>) -> Result<OwnedFd, Errno> {
    open(root, path, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// `openat2` gives EAGAIN when a rename races with a resolution that must stay beneath.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    for _ in 0..128 {
        match call() {
            Err(Errno::AGAIN) => {}
            done => return done,
        }
    }
    Err(Errno::AGAIN)
}

/// Makes the directories of a relative path where they are missing, and opens the last.
pub fn make_dirs(root: impl AsFd, path: impl AsRef<Path>, mode: Mode) -> Result<OwnedFd, Errno> {
    let mut at = open_dir(&root, ".")?;
    for component in path.as_ref().components() {
        let name = match component {
            Component::Normal(name) => name,
            Component::CurDir => continue,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::INVAL),
        };
        match mkdirat(&at, name, mode) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        at = open_dir(&at, name)?;
    }
    Ok(at)
}

/// Whether something is mounted on a name in a directory. A name that isn't there isn't mounted on.
pub fn is_mounted(dir: impl AsFd, name: impl AsRef<OsStr>) -> Result<bool, Errno> {
    match statx(dir.as_fd(), name.as_ref(), AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS) {
        Ok(found) => Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// The names in a directory.
pub fn names(dir: impl AsFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir.as_fd())? {
        let entry = entry?;
        if !is_dot(entry.file_name()) {
            names.push(entry.file_name().to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn is_dot(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

/// A C string's bytes as a name.
pub fn os(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}

/// Removes a name from a directory, with everything below it. What is not there is removed already. What is mounted
/// below is somebody else's: it is left alone, and told.
pub fn remove_tree(dir: impl AsFd, name: impl AsRef<OsStr>) -> Result<(), Fault> {
    let name = CString::new(name.as_ref().as_bytes())
        .map_err(|_| Fault::refused("a file name with a NUL byte can't be removed"))?;
    remove(dir.as_fd(), &name, None)
}

/// Removes everything in a directory, as `remove_tree` does.
pub fn empty_dir(dir: BorrowedFd<'_>) -> Result<(), Fault> {
    clear(dir, 0, &mut Hoist::to(dir)?)
}

/// Where directories too deep to enter are moved to.
struct Hoist {
    top: OwnedFd,
    moved: u64,
}

impl Hoist {
    fn to(top: BorrowedFd<'_>) -> Result<Hoist, Fault> {
        let top = top.try_clone_to_owned().attempt(|| "keep the directory that is being removed open")?;
        Ok(Hoist { top, moved: 0 })
    }

    /// Moves a directory to the top under a name that nothing there has.
    fn take(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> Result<(), Errno> {
        loop {
            self.moved += 1;
            let here = format!("..nodefold-remove-{}", self.moved);
            match renameat_with(dir, name, &self.top, here, RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => {}
                done => return done,
            }
        }
    }
}

fn remove(dir: BorrowedFd<'_>, name: &CStr, inside: Option<(&mut Hoist, usize)>) -> Result<(), Fault> {
    let shown = || name.to_string_lossy().into_owned();
    match unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(Errno::BUSY) => return Err(foreign(&shown())),
        Err(errno) => return Err(errno).attempt(|| format!("remove {}", shown())),
    }
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let inner = match retry(|| openat2(dir, name, flags, Mode::empty(), resolve)) {
        Ok(inner) => inner,
        Err(Errno::NOENT) => return Ok(()),
        Err(Errno::XDEV) => return Err(foreign(&shown())),
        // Not a directory after all: what made the unlink fail stands.
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return unlinkat(dir, name, AtFlags::empty()).attempt(|| format!("remove {}", shown()));
        }
        Err(errno) => return Err(errno).attempt(|| format!("enter {}", shown())),
    };
    let mut own;
    let (hoist, depth) = match inside {
        Some((hoist, depth)) => (hoist, depth),
        None => {
            own = Hoist::to(inner.as_fd())?;
            (&mut own, 0)
        }
    };
    for _ in 0..MOST_PASSES {
        clear(inner.as_fd(), depth, hoist)?;
        match unlinkat(dir, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(Errno::BUSY) => return Err(foreign(&shown())),
            Err(errno) => return Err(errno).attempt(|| format!("remove the directory {}", shown())),
        }
    }
    Err(Fault::transient(format!("{} is written to while it is being removed", shown())))
}

/// Removes what is in a directory, in passes until one finds nothing.
fn clear(dir: BorrowedFd<'_>, depth: usize, hoist: &mut Hoist) -> Result<(), Fault> {
    for _ in 0..MOST_PASSES {
        let mut found = false;
        let entries = Dir::read_from(dir).attempt(|| "list a directory that is being removed")?;
        for entry in entries {
            let entry = entry.attempt(|| "list a directory that is being removed")?;
            let name = entry.file_name();
            if is_dot(name) {
                continue;
            }
            found = true;
            let is_directory = match unlinkat(dir, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => false,
                Err(Errno::ISDIR | Errno::PERM) => true,
                Err(Errno::BUSY) => return Err(foreign(&name.to_string_lossy())),
                Err(errno) => return Err(errno).attempt(|| format!("remove {}", name.to_string_lossy())),
            };
            if !is_directory {
                continue;
            }
            if depth >= DEEPEST {
                match hoist.take(dir, name) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(Errno::BUSY) => return Err(foreign(&name.to_string_lossy())),
                    Err(errno) => {
                        return Err(errno).attempt(|| format!("move {} up", name.to_string_lossy()));
                    }
                }
            } else {
                remove(dir, name, Some((hoist, depth + 1)))?;
            }
        }
        if !found {
            return Ok(());
        }
    }
    Err(Fault::transient("a directory is written to while it is being removed"))
}

fn foreign(name: &str) -> Fault {
    Fault::transient(format!(
        "something is mounted on {name:?}, which this node did not put there: nothing is deleted through it; unmount it"
    ))
}
