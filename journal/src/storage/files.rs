//! A directory of real files.

use super::{LockGuard, Storage, StorageFile};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of the lock file. It is never removed: removing it would let two writers lock two files of that name.
const LOCK: &str = "LOCK";

/// A journal's directory.
#[derive(Clone, Debug)]
pub struct Files {
    dir: PathBuf,
}

impl Files {
    /// The journal in that directory. Nothing is touched yet.
    pub fn at(dir: impl AsRef<Path>) -> Arc<dyn Storage> {
        Arc::new(Files { dir: dir.as_ref().to_owned() })
    }
}

impl Storage for Files {
    fn path(&self, name: &str) -> String {
        if name.is_empty() {
            self.dir.display().to_string()
        } else {
            self.dir.join(name).display().to_string()
        }
    }

    fn lock(&self) -> io::Result<Option<Box<dyn LockGuard>>> {
        fs::create_dir_all(&self.dir)?;
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(self.dir.join(LOCK))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Box::new(Locked { _file: file }))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            // A name that is no UTF-8 is not ours.
            if let Ok(name) = entry?.file_name().into_string()
                && name != LOCK
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        let file = File::open(self.dir.join(name))?;
        let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len().min(limit)).unwrap_or(0));
        file.take(limit).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(self.dir.join(name))?;
        Ok(Box::new(OpenFile(file)))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(OpenFile(OpenOptions::new().write(true).open(self.dir.join(name))?)))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.dir.join(from), self.dir.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.dir.join(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }
}

struct Locked {
    _file: File,
}

impl LockGuard for Locked {}

struct OpenFile(File);

impl StorageFile for OpenFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        FileExt::write_at(&self.0, bytes, offset)
    }
    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}
