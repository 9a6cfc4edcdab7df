//! A directory in memory that fails as disks do: the nth write or sync fails, writes fall short, space runs out, and a
//! crash keeps any of the sectors that were not synced. For tests, and for the simulated world's crashes.

use super::{LockGuard, Storage, StorageFile};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;
/// What a page cache has clean or dirty as a whole.
const PAGE: usize = 4096;

/// Something that goes wrong. The number counts calls of the named kind from now, the next one being 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The nth write writes nothing and fails with EIO.
    Write(u64),
    /// The nth write keeps half of its bytes, then fails with EIO.
    TornWrite(u64),
    /// The nth sync fails with EIO; what it was to make durable may be or not.
    Sync(u64),
    /// The nth sync fails with EIO, and the page cache takes what it was to make durable for clean, as Linux does: programs
    /// see it until it is [evicted](Memory::evict), no later sync writes it, and only writing it again does.
    ForgottenSync(u64),
    /// Every write from the nth on writes one byte only.
    ShortWrites(u64),
    /// No more than this many bytes fit on the disk.
    Capacity(u64),
}

/// A directory in memory. Clones share it.
#[derive(Clone, Default)]
pub struct Memory {
    disk: Arc<Mutex<Disk>>,
}

#[derive(Default)]
struct Disk {
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    files: BTreeMap<u64, FileBytes>,
    next_file: u64,
    locked: Option<u64>,
    next_lock: u64,
    fault: Option<Fault>,
    writes: u64,
    syncs: u64,
}

#[derive(Clone, Default)]
struct FileBytes {
    live: Vec<u8>,
    durable: Vec<u8>,
    /// Pages that a failed sync left clean, by their number.
    forgotten: BTreeSet<usize>,
}

impl FileBytes {
    fn synced(bytes: Vec<u8>) -> FileBytes {
        FileBytes { live: bytes.clone(), durable: bytes, forgotten: BTreeSet::new() }
    }

    /// Makes durable what is dirty.
    fn sync(&mut self) {
        self.durable.resize(self.live.len(), 0);
        for (page, bytes) in self.live.chunks(PAGE).enumerate() {
            if !self.forgotten.contains(&page) {
                self.durable[page * PAGE..page * PAGE + bytes.len()].copy_from_slice(bytes);
            }
        }
    }

    /// Takes what is dirty for clean.
    fn forget(&mut self) {
        for (page, bytes) in self.live.chunks(PAGE).enumerate() {
            if self.durable.get(page * PAGE..page * PAGE + bytes.len()) != Some(bytes) {
                self.forgotten.insert(page);
            }
        }
    }

    /// Reads a forgotten page from the disk again.
    fn evict(&mut self, page: usize) {
        let end = ((page + 1) * PAGE).min(self.live.len());
        for at in page * PAGE..end {
            self.live[at] = self.durable.get(at).copied().unwrap_or(0);
        }
        self.forgotten.remove(&page);
    }
}

impl Memory {
    /// An empty directory.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// The same directory as the journal takes it.
    pub fn storage(&self) -> Arc<dyn Storage> {
        Arc::new(self.clone())
    }

    /// A copy that shares nothing with this one; everything in it is durable, and nobody holds its lock.
    pub fn copy(&self) -> Memory {
        let disk = self.disk();
        let files = disk.files.iter().map(|(id, f)| (*id, FileBytes::synced(f.live.clone())));
        let copy = Disk {
            names: disk.names.clone(),
            durable_names: disk.names.clone(),
            files: files.collect(),
            next_file: disk.next_file,
            ..Disk::default()
        };
        Memory { disk: Arc::new(Mutex::new(copy)) }
    }

    /// Arms a fault in place of any other, or heals the disk.
    pub fn arm(&self, fault: Option<Fault>) {
        let mut disk = self.disk();
        (disk.fault, disk.writes, disk.syncs) = (fault, 0, 0);
    }

    /// Writes and syncs since a fault was armed last (or ever).
    pub fn counts(&self) -> (u64, u64) {
        let disk = self.disk();
        (disk.writes, disk.syncs)
    }

    /// Power is cut. Of each sector written but not synced, `keep` says whether it reached the disk; likewise of each
    /// creation, rename and removal since the last sync of the directory. The lock is free again.
    pub fn crash(&self, keep: &mut dyn FnMut() -> bool) {
        let mut disk = self.disk();
        let names: Vec<String> = disk.names.keys().chain(disk.durable_names.keys()).cloned().collect();
        for name in names {
            let (now, before) = (disk.names.get(&name).copied(), disk.durable_names.get(&name).copied());
            if now != before && keep() {
                match now {
                    Some(id) => disk.durable_names.insert(name, id),
                    None => disk.durable_names.remove(&name),
                };
            }
        }
        disk.names = disk.durable_names.clone();
        for file in disk.files.values_mut() {
            let len = if file.live.len() == file.durable.len() || keep() {
                file.live.len()
            } else {
                file.durable.len()
            };
            let mut survived = file.durable.clone();
            survived.resize(len, 0);
            for (index, sector) in survived.chunks_mut(SECTOR).enumerate() {
                let start = index * SECTOR;
                let end = (start + sector.len()).min(file.live.len());
                let Some(written) = file.live.get(start..end) else { continue };
                if sector[..written.len()] != *written && keep() {
                    sector[..written.len()].copy_from_slice(written);
                }
            }
            *file = FileBytes::synced(survived);
        }
        (disk.locked, disk.fault) = (None, None);
    }

    /// The page cache is short of room: of each page that a failed sync left clean, `evict` says whether it is dropped and
    /// what the disk has is seen instead.
    pub fn evict(&self, evict: &mut dyn FnMut() -> bool) {
        for file in self.disk().files.values_mut() {
            for page in file.forgotten.clone() {
                if evict() {
                    file.evict(page);
                }
            }
        }
    }

    /// A file's bytes as programs see them now.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let disk = self.disk();
        let id = disk.names.get(name)?;
        disk.files.get(id).map(|f| f.live.clone())
    }

    /// Puts a file there, durable at once: how tests damage one.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        let mut disk = self.disk();
        let id = disk.next_file;
        disk.next_file += 1;
        disk.files.insert(id, FileBytes::synced(bytes));
        disk.names.insert(name.to_owned(), id);
        disk.durable_names.insert(name.to_owned(), id);
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        // A test that panicked holding the lock left the maps whole: each step changes them in one go.
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn eio() -> io::Error {
    io::Error::other("I/O error (EIO, injected)")
}

fn missing(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no file {name}"))
}

impl Disk {
    fn used(&self) -> u64 {
        self.names.values().filter_map(|id| self.files.get(id)).map(|f| f.live.len() as u64).sum()
    }

    fn write(&mut self, id: u64, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        let mut taken = bytes.len();
        let mut failure = None;
        match self.fault {
            Some(Fault::Write(n)) if n == self.writes => return Err(eio()),
            Some(Fault::TornWrite(n)) if n == self.writes => {
                (taken, failure) = (bytes.len() / 2, Some(eio()))
            }
            Some(Fault::ShortWrites(n)) if n <= self.writes => taken = taken.min(1),
            Some(Fault::Capacity(limit)) => {
                let grown = (offset + bytes.len() as u64).saturating_sub(self.files[&id].live.len() as u64);
                let room = limit.saturating_sub(self.used());
                if grown > room {
                    taken = bytes.len().saturating_sub((grown - room) as usize);
                    if taken == 0 {
                        return Err(io::ErrorKind::StorageFull.into());
                    }
                }
            }
            Some(
                Fault::Write(_)
                | Fault::TornWrite(_)
                | Fault::ShortWrites(_)
                | Fault::Sync(_)
                | Fault::ForgottenSync(_),
            )
            | None => {}
        }
        let file = self.files.entry(id).or_default();
        let end = offset as usize + taken;
        if file.live.len() < end {
            file.live.resize(end, 0);
        }
        file.live[offset as usize..end].copy_from_slice(&bytes[..taken]);
        if taken > 0 {
            let dirty = offset as usize / PAGE..=(end - 1) / PAGE;
            file.forgotten.retain(|page| !dirty.contains(page));
        }
        failure.map_or(Ok(taken), Err)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.syncs += 1;
        let fails = [Fault::Sync(self.syncs), Fault::ForgottenSync(self.syncs)];
        if self.fault.is_some_and(|fault| fails.contains(&fault)) { Err(eio()) } else { Ok(()) }
    }
}

impl Storage for Memory {
    fn path(&self, name: &str) -> String {
        format!("memory/{name}")
    }

    fn lock(&self) -> io::Result<Option<Box<dyn LockGuard>>> {
        let mut disk = self.disk();
        if disk.locked.is_some() {
            return Ok(None);
        }
        let ticket = disk.next_lock;
        (disk.locked, disk.next_lock) = (Some(ticket), ticket + 1);
        Ok(Some(Box::new(Locked { memory: self.clone(), ticket })))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.disk().names.keys().cloned().collect())
    }

    fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        let disk = self.disk();
        let file = disk.names.get(name).and_then(|id| disk.files.get(id)).ok_or_else(|| missing(name))?;
        let end = file.live.len().min(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(file.live[..end].to_vec())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let mut disk = self.disk();
        let id = disk.next_file;
        disk.next_file += 1;
        disk.files.insert(id, FileBytes::default());
        disk.names.insert(name.to_owned(), id);
        Ok(Box::new(OpenFile { memory: self.clone(), id }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        let id = *self.disk().names.get(name).ok_or_else(|| missing(name))?;
        Ok(Box::new(OpenFile { memory: self.clone(), id }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk();
        let id = disk.names.remove(from).ok_or_else(|| missing(from))?;
        disk.names.insert(to.to_owned(), id);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk().names.remove(name).map(drop).ok_or_else(|| missing(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut disk = self.disk();
        disk.sync()?;
        disk.durable_names = disk.names.clone();
        Ok(())
    }
}

struct Locked {
    memory: Memory,
    ticket: u64,
}

impl LockGuard for Locked {}

impl Drop for Locked {
    fn drop(&mut self) {
        let mut disk = self.memory.disk();
        // A writer that outlives a crash must not free its successor's lock.
        if disk.locked == Some(self.ticket) {
            disk.locked = None;
        }
    }
}

struct OpenFile {
    memory: Memory,
    id: u64,
}

impl StorageFile for OpenFile {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        self.memory.disk().write(self.id, offset, bytes)
    }
    fn set_len(&mut self, len: u64) -> io::Result<()> {
        let mut disk = self.memory.disk();
        let file = disk.files.entry(self.id).or_default();
        file.live.resize(len as usize, 0);
        file.forgotten.retain(|page| page * PAGE < len as usize);
        Ok(())
    }
    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.memory.disk();
        let synced = disk.sync();
        let forgets = disk.fault == Some(Fault::ForgottenSync(disk.syncs));
        let file = disk.files.entry(self.id).or_default();
        match (&synced, forgets) {
            (Ok(()), _) => file.sync(),
            (Err(_), true) => file.forget(),
            (Err(_), false) => {}
        }
        synced
    }
}
