//! The atomic writer (kubelet-volumes §2.5): the content of a volume is a directory that `..data` points to, and a new one
//! replaces it by one rename. Whatever an earlier crash left is repaired by the next write.

use super::ownership;
use crate::beneath;
use crate::failpoint;
use crate::fault::{Attempt, Fault};
use nodefold_core::time::Time;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Uid, chownat, fchmod, fstat, mkdirat, openat, readlinkat, renameat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const DATA: &str = "..data";
const DATA_NEXT: &str = "..data_tmp";

/// A file of a volume.
#[derive(Clone, PartialEq, Eq)]
pub struct File {
    /// Its bytes. They may be secret: a `File` prints no bytes.
    pub bytes: Vec<u8>,
    /// Its permission bits.
    pub mode: u32,
    /// Its owner, where it is not root.
    pub owner: Option<u32>,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes, mode {:04o}", self.bytes.len(), self.mode)
    }
}

/// What a volume shows: files by relative path.
pub type Payload = BTreeMap<String, File>;

/// A path that a manifest names inside a volume: relative, without `..`, of lengths that a file system takes.
pub fn check_path(path: &str) -> Result<(), Fault> {
    let refuse = |why: &str| Err(Fault::refused(format!("the path {path:?} in the volume {why}")));
    if path.is_empty() || path.starts_with('/') {
        return refuse("must be relative and not empty");
    }
    if path.len() > 4096 || path.contains('\0') {
        return refuse("is longer than 4096 bytes or has a NUL");
    }
    for (i, element) in path.split('/').enumerate() {
        if element == ".." || (i == 0 && element.starts_with("..")) {
            return refuse("must not have \"..\" as an element, nor begin with it");
        }
        if element.is_empty() || element == "." {
            return refuse("has an empty element");
        }
        if element.len() > 255 {
            return refuse("has an element longer than 255 bytes");
        }
    }
    Ok(())
}

/// Makes a volume's directory show exactly this payload. Returns whether anything that readers see changed.
pub fn write(dir: &OwnedFd, payload: &Payload, group: Option<u32>, now: Time) -> Result<bool, Fault> {
    for path in payload.keys() {
        check_path(path)?;
    }
    let current = sweep(dir)?;
    if let Some(current) = &current
        && shows(dir, current, payload)?
    {
        return link(dir, payload);
    }
    let (name, fresh) = new_directory(dir, now)?;
    failpoint::hit("write.named");
    fill(&fresh, payload)?;
    failpoint::hit("write.filled");
    if let Some(group) = group {
        ownership::give_to_group(fresh.as_fd(), group, true)?;
    }
    symlinkat(&name, dir, DATA_NEXT).attempt(|| "link the new content")?;
    failpoint::hit("write.linked");
    renameat(dir, DATA_NEXT, dir, DATA).attempt(|| "swap in the new content")?;
    failpoint::hit("write.swapped");
    link(dir, payload)?;
    failpoint::hit("write.shown");
    if let Some(former) = current {
        beneath::remove_tree(dir, former)?;
    }
    Ok(true)
}

/// Removes what a crash between two steps left: an unswapped link, content that nothing points to. Returns the name of the
/// content that is shown.
fn sweep(dir: &OwnedFd) -> Result<Option<String>, Fault> {
    beneath::remove_tree(dir, DATA_NEXT)?;
    let current = match readlinkat(dir, DATA, Vec::new()) {
        Ok(target) => Some(target.to_string_lossy().into_owned()),
        Err(Errno::NOENT) => None,
        // Not a link: somebody put something else there.
        Err(Errno::INVAL) => {
            beneath::remove_tree(dir, DATA)?;
            None
        }
        Err(errno) => return Err(errno).attempt(|| "read ..data"),
    };
    // Only a name of our own making may be followed or, later, removed.
    let current = current.filter(|name| name.starts_with("..") && name.len() > 2 && !name.contains('/'));
    for name in beneath::names(dir).attempt(|| "list the volume")? {
        let name = beneath::os(&name);
        let is_ours = name.as_bytes().starts_with(b"..") && name != OsStr::new(DATA);
        if is_ours && current.as_deref().map(OsStr::new) != Some(name) {
            beneath::remove_tree(dir, name)?;
        }
    }
    Ok(current)
}

/// Whether the content has exactly these files, with these bytes and modes.
fn shows(dir: &OwnedFd, current: &str, payload: &Payload) -> Result<bool, Fault> {
    let content = match beneath::open_dir(dir, current) {
        Ok(content) => content,
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(false),
        Err(errno) => return Err(errno).attempt(|| "open the content"),
    };
    let mut there = BTreeSet::new();
    files_below(content.as_fd(), "", &mut there).attempt(|| "list the content")?;
    if !there.iter().eq(payload.keys()) {
        return Ok(false);
    }
    for (path, file) in payload {
        let Ok(found) = beneath::open(&content, path, OFlags::RDONLY | OFlags::NONBLOCK) else {
            return Ok(false);
        };
        let stat = fstat(&found).attempt(|| format!("look at {path}"))?;
        let same_mode = stat.st_mode & 0o777 == file.mode & 0o777 || stat.st_gid != 0;
        if stat.st_size as usize != file.bytes.len() || !same_mode {
            return Ok(false);
        }
        let mut bytes = Vec::with_capacity(file.bytes.len() + 1);
        std::io::Read::read_to_end(&mut std::fs::File::from(found), &mut bytes)
            .attempt(|| format!("read {path}"))?;
        if bytes != file.bytes {
            return Ok(false);
        }
    }
    Ok(true)
}

fn files_below(dir: BorrowedFd<'_>, prefix: &str, into: &mut BTreeSet<String>) -> Result<(), Errno> {
    for name in beneath::names(dir)? {
        let path = format!("{prefix}{}", name.to_string_lossy());
        match beneath::open_dir(dir, beneath::os(&name)) {
            Ok(inner) => files_below(inner.as_fd(), &format!("{path}/"), into)?,
            Err(_) => {
                into.insert(path);
            }
        }
    }
    Ok(())
}

/// A directory for new content, with a name that says when, as the kubelet's does.
fn new_directory(dir: &OwnedFd, now: Time) -> Result<(String, OwnedFd), Fault> {
    let utc = nodefold_k8s::time::format(now);
    let stamp: String = utc.chars().map(|c| if c.is_ascii_digit() { c } else { '_' }).collect();
    let stamp = stamp.trim_end_matches('_');
    for attempt in 0..1000_u64 {
        let name = format!("..{stamp}.{}", now.0 % 1_000_000_000 * 1000 + attempt);
        match mkdirat(dir, &name, Mode::from_raw_mode(0o755)) {
            Ok(()) => {
                let fresh = beneath::open_dir(dir, &name).attempt(|| "open the new content")?;
                fchmod(&fresh, Mode::from_raw_mode(0o755)).attempt(|| "open up the new content")?;
                return Ok((name, fresh));
            }
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno).attempt(|| "make a directory for new content"),
        }
    }
    Err(Fault::transient("no free name for new content"))
}

fn fill(content: &OwnedFd, payload: &Payload) -> Result<(), Fault> {
    for (path, file) in payload {
        let path = Path::new(path);
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().unwrap_or_default();
        let dir = beneath::make_dirs(content, parent, Mode::from_raw_mode(0o755))
            .attempt(|| format!("make {}", parent.display()))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(&dir, name, flags, Mode::from_raw_mode(0o600));
        // A file where another path wants a directory, or the other way round: the payload contradicts itself.
        let made = made.attempt(|| format!("make {}", path.display()))?;
        let mut made = std::fs::File::from(made);
        std::io::Write::write_all(&mut made, &file.bytes).attempt(|| format!("write {}", path.display()))?;
        fchmod(&made, Mode::from_raw_mode(file.mode & 0o7777))
            .attempt(|| format!("set the mode of {}", path.display()))?;
        if let Some(owner) = file.owner {
            chownat(&dir, name, Some(Uid::from_raw(owner)), None::<Gid>, AtFlags::SYMLINK_NOFOLLOW)
                .attempt(|| format!("give {} to its owner", path.display()))?;
        }
    }
    Ok(())
}

/// Makes the links that readers open, and removes those that lead nowhere any more.
fn link(dir: &OwnedFd, payload: &Payload) -> Result<bool, Fault> {
    let wanted: BTreeSet<&str> = payload.keys().filter_map(|path| path.split('/').next()).collect();
    let mut changed = false;
    for name in &wanted {
        let target = format!("{DATA}/{name}");
        match readlinkat(dir, *name, Vec::new()) {
            Ok(found) if found.as_bytes() == target.as_bytes() => continue,
            Err(Errno::NOENT) => {}
            Ok(_) | Err(_) => beneath::remove_tree(dir, name)?,
        }
        symlinkat(&target, dir, *name).attempt(|| format!("link {name}"))?;
        changed = true;
    }
    for name in beneath::names(dir).attempt(|| "list the volume")? {
        let shown = name.to_string_lossy();
        if shown.starts_with("..") || wanted.contains(&*shown) {
            continue;
        }
        let leads_here = readlinkat(dir, &*name, Vec::new())
            .is_ok_and(|target| target.as_bytes().starts_with(format!("{DATA}/").as_bytes()));
        if leads_here {
            match unlinkat(dir, &*name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => changed = true,
                Err(errno) => return Err(errno).attempt(|| format!("unlink {shown}")),
            }
        }
    }
    Ok(changed)
}
