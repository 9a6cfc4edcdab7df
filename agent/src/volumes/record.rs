//! What the node notes on disk about each volume before its first side effect: which life of the name it is, and whether it
//! is whole. The next agent learns from it what an earlier one left.

use crate::beneath;
use crate::fault::{Attempt, Fault};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::path::PathBuf;

/// A volume's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeRecord {
    /// Which life of the name.
    pub generation: u32,
    /// The plugin's directory; none for what has no directory of its own.
    pub plugin: Option<String>,
    /// It is set up whole.
    pub ready: bool,
    /// How much it may take up of the disk.
    #[serde(default)]
    pub size_limit: Option<u64>,
    /// The image that it shows, and holds.
    #[serde(default)]
    pub image: Option<HeldImage>,
}

/// An image that a volume shows: while the record is there, the image stays (I12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldImage {
    /// Its digest.
    pub id: String,
    /// Its root file system.
    pub root: PathBuf,
}

fn file(volume: &str) -> String {
    format!("{volume}.json")
}

/// Writes a file of a directory so that readers see the former one or the new one, whole.
pub fn write_whole(dir: &OwnedFd, name: &str, bytes: &[u8]) -> Result<(), Fault> {
    let temporary = format!("{name}.tmp");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let made =
        openat(dir, &temporary, flags, Mode::from_raw_mode(0o600)).attempt(|| format!("make {temporary}"))?;
    std::fs::File::from(made).write_all(bytes).attempt(|| format!("write {temporary}"))?;
    renameat(dir, &temporary, dir, name).attempt(|| format!("rename {temporary}"))
}

/// Removes what an agent left that died while it wrote a file of a directory whole. Nobody may write there meanwhile.
pub fn remove_drafts(dir: &OwnedFd) -> Result<(), Fault> {
    for name in beneath::names(dir).attempt(|| "list what is written")? {
        if name.to_bytes().ends_with(b".tmp") {
            match unlinkat(dir, &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno).attempt(|| "remove what was written half"),
            }
        }
    }
    Ok(())
}

/// Notes a volume.
pub fn write(records: &OwnedFd, volume: &str, record: &VolumeRecord) -> Result<(), Fault> {
    let text = serde_json::to_vec(record).map_err(|error| Fault::refused(error.to_string()))?;
    write_whole(records, &file(volume), &text)
}

/// What is noted of a volume. A record that is not whole was being written when the host died (V38): it says nothing, as one
/// that was lost, and what lies where the volume would is found and taken down without it.
pub fn read(records: &OwnedFd, volume: &str) -> Result<Option<VolumeRecord>, Fault> {
    let name = file(volume);
    let found = match beneath::open(records, &name, OFlags::RDONLY | OFlags::NONBLOCK) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno).attempt(|| format!("open {name}")),
    };
    let mut text = Vec::new();
    std::fs::File::from(found).read_to_end(&mut text).attempt(|| format!("read {name}"))?;
    match serde_json::from_slice(&text) {
        Ok(record) => Ok(Some(record)),
        Err(_) => forget(records, volume).map(|()| None),
    }
}

/// Forgets a volume.
pub fn forget(records: &OwnedFd, volume: &str) -> Result<(), Fault> {
    match unlinkat(records, file(volume), AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno).attempt(|| format!("remove the record of {volume}")),
    }
}

/// The names of the volumes that have a record.
pub fn volumes(records: &OwnedFd) -> Result<Vec<String>, Fault> {
    let names = beneath::names(records).attempt(|| "list the records of volumes")?;
    Ok(names.iter().filter_map(|name| name.to_str().ok()?.strip_suffix(".json").map(str::to_owned)).collect())
}
