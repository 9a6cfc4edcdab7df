//! Layers unpacked over each other into one directory. What a layer says is hostile until its digest is known: every name is
//! resolved by the kernel inside the root, as it would be in a container, so that nothing is made or changed outside.

use super::document::{Layer, finish};
use super::source::{Compression, Source, decompressed};
use crate::beneath;
use crate::fault::{Attempt, Fault};
use ring::digest::{Context, SHA256};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Timespec, Timestamps, Uid, chmodat, chownat, fchmod,
    fchown, linkat, makedev, mkdirat, mknodat, openat, openat2, symlinkat, utimensat,
};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use tar::{Archive, Entry, EntryType};

/// What hides a name of the layers below.
const WHITEOUT: &str = ".wh.";
/// What hides all of a directory's names of the layers below.
const OPAQUE: &str = ".wh..wh..opq";

/// Counts the digest of what is read through it.
struct Hashing<'a, R> {
    read: R,
    context: &'a mut Context,
}

impl<R: Read> Read for Hashing<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let got = self.read.read(buffer)?;
        self.context.update(&buffer[..got]);
        Ok(got)
    }
}

/// Unpacks a layer over what is in the root already. An error leaves the root half-made: it is the caller's to remove.
pub fn layer(source: &Source, layer: &Layer, root: &OwnedFd) -> Result<(), Fault> {
    let name = &layer.file;
    let (file, _) =
        source.open_file(name)?.ok_or_else(|| Fault::refused(format!("layer {name} is not there")))?;
    let (mut packed, mut unpacked) = (Context::new(&SHA256), Context::new(&SHA256));
    {
        let mut raw = BufReader::new(Hashing { read: file, context: &mut packed });
        let kind = Compression::of(raw.fill_buf().attempt(|| format!("read layer {name}"))?);
        let plain = decompressed(&mut raw, kind);
        let mut archive = Archive::new(Hashing { read: plain, context: &mut unpacked });
        let mut over = Over { root, made: BTreeSet::new(), times: Vec::new() };
        for entry in archive.entries().attempt(|| format!("read layer {name}"))? {
            let mut entry = entry.attempt(|| format!("read layer {name}"))?;
            over.take(&mut entry)?;
        }
        over.finish()?;
        // Its padding belongs to the digest.
        let mut rest = archive.into_inner();
        std::io::copy(&mut rest, &mut std::io::sink()).attempt(|| format!("read layer {name}"))?;
        drop(rest);
        std::io::copy(&mut raw, &mut std::io::sink()).attempt(|| format!("read layer {name}"))?;
    }
    let check = |is: String, wanted: &str| match is == wanted {
        true => Ok(()),
        false => Err(Fault::refused(format!(
            "layer {name} has digest {is}, not {wanted}: it was damaged or replaced"
        ))),
    };
    if let Some(digest) = &layer.digest {
        check(finish(packed), digest)?;
    }
    check(finish(unpacked), &layer.diff_id)
}

/// A layer on its way.
struct Over<'a> {
    root: &'a OwnedFd,
    /// What this layer made: its whiteouts are for the layers below it.
    made: BTreeSet<PathBuf>,
    /// Directories' times, set when nothing is made in them any more.
    times: Vec<(PathBuf, u64)>,
}

impl Over<'_> {
    fn take(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<(), Fault> {
        // A note about all that follows: none that a node needs.
        if entry.header().entry_type() == EntryType::XGlobalHeader {
            return Ok(());
        }
        let path = clean(&entry.path().attempt(|| "read a name")?)?;
        let Some(name) = path.file_name().map(ToOwned::to_owned) else {
            // The root itself.
            return attributes_of(self.root, entry);
        };
        let parent_path = path.parent().unwrap_or(Path::new(""));
        let told = || format!("unpack {}", path.display());
        let text = name.to_string_lossy();
        if text == OPAQUE {
            return match self.existing(parent_path).attempt(told)? {
                Some(dir) => self.hide_all(&dir, parent_path),
                None => Ok(()),
            };
        }
        if let Some(hidden) = text.strip_prefix(WHITEOUT) {
            // Others of that prefix are notes of a file system that nobody uses any more.
            if hidden.is_empty() || hidden == "." || hidden == ".." {
                return Err(Fault::refused(format!("{} hides nothing that can be", path.display())));
            }
            if hidden.starts_with(WHITEOUT) {
                return Ok(());
            }
            return match self.existing(parent_path).attempt(told)? {
                Some(dir) => self.hide(&dir, OsStr::new(hidden), &parent_path.join(hidden)),
                None => Ok(()),
            };
        }
        let parent = self.parent(parent_path).attempt(told)?;
        self.make(entry, &parent, &name, &path)?;
        self.made.insert(path);
        Ok(())
    }

    /// A directory of the root, if it is there; links are resolved inside.
    fn existing(&self, path: &Path) -> Result<Option<OwnedFd>, Errno> {
        match inside(self.root, path, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(dir) => Ok(Some(dir)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// The directory that an entry is in, made where a layer left it out.
    fn parent(&self, path: &Path) -> Result<OwnedFd, Errno> {
        let mut at = inside(self.root, Path::new("."), OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut done = PathBuf::from(".");
        for component in path.components() {
            let before = at;
            done.push(component);
            at = match inside(self.root, &done, OFlags::RDONLY | OFlags::DIRECTORY) {
                Err(Errno::NOENT) => {
                    mkdirat(&before, component.as_os_str(), Mode::from_raw_mode(0o755))?;
                    inside(self.root, &done, OFlags::RDONLY | OFlags::DIRECTORY)?
                }
                found => found?,
            };
        }
        Ok(at)
    }

    #[allow(clippy::wildcard_enum_match_arm, reason = "tar's list of kinds is open")]
    fn make(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        dir: &OwnedFd,
        name: &OsStr,
        path: &Path,
    ) -> Result<(), Fault> {
        let told = || format!("unpack {}", path.display());
        let kind = entry.header().entry_type();
        let is_directory = kind == EntryType::Directory;
        let there = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        match there {
            Ok(stat) if is_directory && FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                let dir = beneath::open_dir(dir, name).attempt(told)?;
                self.times.push((path.to_owned(), entry.header().mtime().unwrap_or(0)));
                return attributes_of(&dir, entry);
            }
            Ok(_) => beneath::remove_tree(dir, name)?,
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno).attempt(told),
        }
        let (owner, group) = owner_of(entry)?;
        let mode = entry.header().mode().attempt(told)? & 0o7777;
        match kind {
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                let flags =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let made = openat(dir, name, flags, Mode::from_raw_mode(0o600)).attempt(told)?;
                let mut file = File::from(made);
                std::io::copy(entry, &mut file).attempt(told)?;
                attributes_of(&OwnedFd::from(file), entry)?;
                return set_time(dir, name, entry.header().mtime().unwrap_or(0)).attempt(told);
            }
            EntryType::Directory => {
                mkdirat(dir, name, Mode::from_raw_mode(0o700)).attempt(told)?;
                let made = beneath::open_dir(dir, name).attempt(told)?;
                self.times.push((path.to_owned(), entry.header().mtime().unwrap_or(0)));
                return attributes_of(&made, entry);
            }
            EntryType::Link => {
                let target = entry.link_name().attempt(told)?;
                let target = clean(&target.unwrap_or_default())?;
                let Some(target_name) = target.file_name() else {
                    return Err(Fault::refused(format!("{} is a link to nothing", path.display())));
                };
                let of = inside(self.root, target.parent().unwrap_or(Path::new("")), OFlags::PATH)
                    .attempt(told)?;
                // The last component is not followed: a hard link to a link is one.
                return linkat(&of, target_name, dir, name, AtFlags::empty())
                    .attempt(|| format!("link {} to {}", path.display(), target.display()));
            }
            EntryType::Symlink => {
                let target = entry.link_name().attempt(told)?.unwrap_or_default().into_owned();
                symlinkat(&target, dir, name).attempt(told)?;
                chownat(dir, name, Some(owner), Some(group), AtFlags::SYMLINK_NOFOLLOW).attempt(told)?;
                return set_time(dir, name, entry.header().mtime().unwrap_or(0)).attempt(told);
            }
            EntryType::Fifo => {
                mknodat(dir, name, FileType::Fifo, Mode::from_raw_mode(mode), 0).attempt(told)?;
            }
            EntryType::Char | EntryType::Block => {
                let number = |part: std::io::Result<Option<u32>>| part.map(Option::unwrap_or_default);
                let major = number(entry.header().device_major()).attempt(told)?;
                let minor = number(entry.header().device_minor()).attempt(told)?;
                let of =
                    if kind == EntryType::Char { FileType::CharacterDevice } else { FileType::BlockDevice };
                mknodat(dir, name, of, Mode::from_raw_mode(mode), makedev(major, minor)).attempt(told)?;
            }
            _ => {
                return Err(Fault::refused(format!(
                    "{} is a thing that no layer has ({kind:?})",
                    path.display()
                )));
            }
        }
        chownat(dir, name, Some(owner), Some(group), AtFlags::SYMLINK_NOFOLLOW).attempt(told)?;
        chmodat(dir, name, Mode::from_raw_mode(mode), AtFlags::empty()).attempt(told)
    }

    /// Hides a name of the layers below: what this layer made of it stays.
    fn hide(&self, dir: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), Fault> {
        let is_ours = |path: &Path| {
            self.made.range(path.to_owned()..).next().is_some_and(|made| made.starts_with(path))
        };
        if !is_ours(path) {
            return beneath::remove_tree(dir, name);
        }
        match beneath::open_dir(dir, name) {
            Ok(inner) => self.hide_all(&inner, path),
            Err(_) => Ok(()),
        }
    }

    fn hide_all(&self, dir: &OwnedFd, path: &Path) -> Result<(), Fault> {
        for name in beneath::names(dir).attempt(|| format!("list {}", path.display()))? {
            let name = beneath::os(&name);
            self.hide(dir, name, &path.join(name))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), Fault> {
        for (path, seconds) in self.times.iter().rev() {
            let told = || format!("set the time of {}", path.display());
            if let Some(name) = path.file_name() {
                let parent = path.parent().unwrap_or(Path::new(""));
                // Hidden again, or replaced, later in the same layer.
                match inside(self.root, parent, OFlags::PATH).and_then(|dir| set_time(&dir, name, *seconds)) {
                    Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => {}
                    Err(errno) => return Err(errno).attempt(told),
                }
            }
        }
        Ok(())
    }
}

/// An entry's path, relative and plain. One that leads up is refused, not bent.
fn clean(path: &Path) -> Result<PathBuf, Fault> {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) if !name.as_bytes().contains(&0) => clean.push(name),
            Component::CurDir | Component::RootDir => {}
            Component::Normal(_) | Component::ParentDir | Component::Prefix(_) => {
                return Err(Fault::refused(format!("{path:?} leads out of its layer")));
            }
        }
    }
    Ok(clean)
}

/// What a path means for who has this root as theirs.
fn inside(root: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

fn owner_of(entry: &Entry<'_, impl Read>) -> Result<(Uid, Gid), Fault> {
    let id = |id: std::io::Result<u64>| -> Result<u32, Fault> {
        let id = id.attempt(|| "read an owner")?;
        u32::try_from(id).map_err(|_| Fault::refused(format!("{id} is no owner")))
    };
    Ok((Uid::from_raw(id(entry.header().uid())?), Gid::from_raw(id(entry.header().gid())?)))
}

/// Owner, then extended attributes, then mode: each would take away what the next sets.
fn attributes_of(fd: &OwnedFd, entry: &mut Entry<'_, impl Read>) -> Result<(), Fault> {
    let (owner, group) = owner_of(entry)?;
    fchown(fd.as_fd(), Some(owner), Some(group)).attempt(|| "give a file to its owner")?;
    let attributes = entry.pax_extensions().attempt(|| "read a file's attributes")?;
    for attribute in attributes.into_iter().flatten().flatten() {
        let Some(name) = attribute.key().ok().and_then(|key| key.strip_prefix("SCHILY.xattr.")) else {
            continue;
        };
        // `trusted.` is the overlay's own language: no image speaks it.
        if name.starts_with("user.") || name == "security.capability" {
            match rustix::fs::fsetxattr(fd, name, attribute.value_bytes(), rustix::fs::XattrFlags::empty()) {
                Ok(()) | Err(Errno::OPNOTSUPP) => {}
                Err(errno) => return Err(errno).attempt(|| format!("set {name}")),
            }
        }
    }
    let mode = entry.header().mode().attempt(|| "read a mode")? & 0o7777;
    fchmod(fd, Mode::from_raw_mode(mode)).attempt(|| "set a file's mode")
}

fn set_time(dir: &OwnedFd, name: &OsStr, seconds: u64) -> Result<(), Errno> {
    let time = Timespec { tv_sec: i64::try_from(seconds).unwrap_or(0), tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW)
}

/// What a file of an image says, links resolved inside it; `None`: there is none.
pub fn read_inside(root: &Path, path: &str) -> Result<Option<String>, Fault> {
    let root = beneath::open_root(root)?;
    let file = match inside(&root, Path::new(path), OFlags::RDONLY | OFlags::NONBLOCK) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(errno) => return Err(errno).attempt(|| format!("open {path} of the image")),
    };
    let mut bytes = Vec::new();
    File::from(file).take(1 << 20).read_to_end(&mut bytes).attempt(|| format!("read {path} of the image"))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}
