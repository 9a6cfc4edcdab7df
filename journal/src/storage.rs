//! Where the bytes live: the one seam between the journal and the world. Real files, or memory that loses, refuses and
//! fills up as disks do.

mod files;
mod memory;

pub use files::Files;
pub use memory::{Fault, Memory};

use std::io;

/// A directory that holds a journal. All names are plain file names in it.
pub trait Storage: Send + Sync {
    /// The file as people find it, for errors. An empty name is the directory.
    fn path(&self, name: &str) -> String;
    /// Takes the single writer's lock; `None` if somebody has it. Dropping the guard gives it back.
    fn lock(&self) -> io::Result<Option<Box<dyn LockGuard>>>;
    /// All names, sorted.
    fn list(&self) -> io::Result<Vec<String>>;
    /// A file's bytes, at most the first `limit` of them.
    fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>>;
    /// Makes an empty file, in place of any other of that name.
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;
    /// Opens a file for writing.
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>>;
    /// Renames, in place of any other of that name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals durable.
    fn sync_dir(&self) -> io::Result<()>;
}

/// A file open for writing.
pub trait StorageFile: Send {
    /// Writes some of `bytes`; returns how many.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize>;
    /// Cuts or extends.
    fn set_len(&mut self, len: u64) -> io::Result<()>;
    /// Makes everything written durable: `fdatasync`.
    fn sync(&mut self) -> io::Result<()>;
}

/// Holds the lock until dropped.
pub trait LockGuard: Send {}

/// Writes all of `bytes`, going on after short writes.
pub(crate) fn write_all_at(file: &mut dyn StorageFile, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = match file.write_at(offset, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        bytes = &bytes[written..];
        offset += written as u64;
    }
    Ok(())
}
