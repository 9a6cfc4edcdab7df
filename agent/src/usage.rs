//! How much of a disk a tree takes up, as `du` counts it: blocks, a file with several names once, nothing that is mounted in it.
//! Containers write there meanwhile, so what vanishes while it is looked at is nothing.

use crate::beneath;
use crate::fault::{Attempt, Fault};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FileType, Mode, OFlags, StatxAttributes, StatxFlags, fallocate, fstat,
    openat, statx,
};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The kernel counts blocks of this many bytes.
const BLOCK: u64 = 512;
/// Directories open at once: deeper ones are opened by their path again, so that no tree takes more descriptors.
const DEEPEST: usize = 64;

/// What everything below a directory takes up, itself included, in bytes.
pub fn of_tree(dir: &OwnedFd) -> Result<u64, Fault> {
    let root = fstat(dir).attempt(|| "look at a directory to measure")?;
    let bytes = u64::try_from(root.st_blocks).unwrap_or(0).saturating_mul(BLOCK);
    let mut count = Count { linked: BTreeSet::new(), bytes, deep: Vec::new() };
    count.below(dir.as_fd(), 0, &mut PathBuf::new())?;
    while let Some(path) = count.deep.pop() {
        match beneath::open_dir(dir, &path) {
            Ok(inner) => count.below(inner.as_fd(), 0, &mut path.clone())?,
            // Gone, or deeper than a path can be long: then it is not counted.
            Err(Errno::NOENT | Errno::NAMETOOLONG | Errno::LOOP | Errno::NOTDIR) => {}
            Err(errno) => return Err(errno).attempt(|| "enter a directory to measure"),
        }
    }
    Ok(count.bytes)
}

/// Makes a directory take up so much: a file of that length, in place of the one before. For stories, which say how much of
/// something there is.
pub fn fill(dir: &OwnedFd, bytes: u64) -> Result<(), Fault> {
    const FILE: &str = ".nodefold-usage";
    beneath::remove_tree(dir, FILE)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file =
        openat(dir, FILE, flags, Mode::from_raw_mode(0o600)).attempt(|| "make a file to take up room")?;
    match bytes {
        0 => Ok(()),
        bytes => {
            fallocate(&file, FallocateFlags::empty(), 0, bytes).attempt(|| format!("take up {bytes} bytes"))
        }
    }
}

struct Count {
    /// Files of several names that are counted already.
    linked: BTreeSet<u64>,
    bytes: u64,
    deep: Vec<PathBuf>,
}

impl Count {
    fn below(&mut self, dir: BorrowedFd<'_>, depth: usize, path: &mut PathBuf) -> Result<(), Fault> {
        let entries = match Dir::read_from(dir) {
            Ok(entries) => entries,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno).attempt(|| "list a directory to measure"),
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let looked = statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS);
            let Ok(found) = looked else { continue };
            // Something is mounted there, of this file system or another: it is somebody else's.
            if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
                continue;
            }
            let is_directory = FileType::from_raw_mode(u32::from(found.stx_mode)) == FileType::Directory;
            if !is_directory && found.stx_nlink > 1 && !self.linked.insert(found.stx_ino) {
                continue;
            }
            self.bytes = self.bytes.saturating_add(found.stx_blocks.saturating_mul(BLOCK));
            if !is_directory {
                continue;
            }
            path.push(beneath::os(name));
            if depth >= DEEPEST {
                self.deep.push(path.clone());
            } else if let Ok(inner) = beneath::open_dir(dir, beneath::os(name)) {
                self.below(inner.as_fd(), depth + 1, path)?;
            }
            path.pop();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_of_two_names_counts_once_and_a_link_leads_nowhere() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = beneath::open_root(dir.path()).expect("it opens");
        let empty = of_tree(&root).expect("it is measured");
        fs::create_dir(dir.path().join("d")).expect("a directory");
        fs::write(dir.path().join("d/a"), vec![1; 100_000]).expect("a file");
        let once = of_tree(&root).expect("it is measured");
        assert!(once >= empty + 100_000, "{once}");
        fs::hard_link(dir.path().join("d/a"), dir.path().join("b")).expect("a link");
        std::os::unix::fs::symlink("/", dir.path().join("everything")).expect("a link");
        assert!(of_tree(&root).expect("it is measured") < once + 50_000);
    }
}
