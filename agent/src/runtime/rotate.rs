//! Rotation of containers' logs, as a kubelet does it: a log that is too large is renamed by the second, the shim goes on in a
//! new file, older ones are compressed, and no more than so many stay.

use super::{Phase, Runtime};
use crate::beneath;
use crate::clock;
use crate::fault::{Attempt, Fault};
use crate::layout;
use crate::pod::wire::Ask;
use flate2::Compression;
use flate2::write::GzEncoder;
use nodefold_core::ids::{ContainerId, PodUid};
use nodefold_core::time::Time;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, unlinkat};
use std::fs::File;

/// When logs are rotated.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// A log larger than this is.
    pub bytes: u64,
    /// So many files of one container stay, the one that is written to included. At least 2.
    pub files: usize,
}

impl Default for LogLimits {
    /// The kubelet's: 10 MiB, 5 files.
    fn default() -> LogLimits {
        LogLimits { bytes: 10 << 20, files: 5 }
    }
}

impl Runtime {
    /// Rotates what is due. What can't be rotated is tried again next time; the container goes on.
    pub fn rotate_logs(&self, limits: LogLimits) {
        let running: Vec<(PodUid, ContainerId, u32)> = {
            let state = self.lock();
            let running =
                state.containers.iter().filter(|(_, known)| matches!(known.phase, Phase::Running { .. }));
            running.map(|((pod, id), known)| (*pod, id.clone(), known.sandbox)).collect()
        };
        for (pod, id, sandbox) in running {
            for dir in self.logs_of(pod, &id.name) {
                self.rotate(&dir, pod, &id, sandbox, limits).ok();
            }
        }
    }

    fn rotate(
        &self,
        dir: &OwnedFd,
        pod: PodUid,
        id: &ContainerId,
        sandbox: u32,
        limits: LogLimits,
    ) -> Result<(), Fault> {
        let log = log_name(id);
        let Ok(stat) = rustix::fs::statat(dir, &log, AtFlags::SYMLINK_NOFOLLOW) else { return Ok(()) };
        if u64::try_from(stat.st_size).unwrap_or(0) <= limits.bytes {
            return Ok(());
        }
        make_room(dir, &log, limits.files)?;
        let link = {
            let state = self.lock();
            let sandbox = state.sandboxes.get(&(pod, sandbox)).filter(|sandbox| sandbox.reopens_logs);
            sandbox.map(|sandbox| sandbox.link.clone())
        };
        // An older shim knows no such request.
        let Some(link) = link else { return Ok(()) };
        let rotated = format!("{log}.{}", stamp(clock::now()));
        // Twice within a second: next time.
        let taken = self::rotated(dir, &log)?.iter().any(|name| name.starts_with(&rotated));
        if taken || renameat_with(dir, &log, dir, &rotated, RenameFlags::NOREPLACE).is_err() {
            return Ok(());
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::APPEND | OFlags::CLOEXEC;
        let reopened = openat(dir, &log, flags, Mode::from_raw_mode(0o640))
            .attempt(|| format!("make {log}"))
            .and_then(|fresh| link.call(Ask::Reopen { id: layout::container_file(id) }, &[fresh]).map(drop));
        if reopened.is_err() {
            // It writes to the renamed file: that is its log again.
            renameat(dir, &rotated, dir, &log).attempt(|| format!("undo the rotation of {log}"))?;
        }
        reopened
    }
}

/// The name of an instance's log.
pub fn log_name(id: &ContainerId) -> String {
    format!("{}.{}.log", id.incarnation, id.attempt)
}

/// The files that a log was rotated to, oldest first. Of one that was just compressed, only what it was compressed to.
pub fn rotated(dir: &OwnedFd, log: &str) -> Result<Vec<String>, Fault> {
    let mut names = all_rotated(dir, log)?;
    let packed: Vec<String> =
        names.iter().filter_map(|name| name.strip_suffix(".gz").map(str::to_owned)).collect();
    names.retain(|name| !packed.contains(name));
    Ok(names)
}

fn all_rotated(dir: &OwnedFd, log: &str) -> Result<Vec<String>, Fault> {
    let names = beneath::names(dir).attempt(|| "list a log's files")?;
    let names = names.iter().map(|name| name.to_string_lossy().into_owned());
    // By their stamps, which sort as text.
    Ok(names.filter(|name| name.strip_prefix(log).is_some_and(|rest| rest.starts_with('.'))).collect())
}

/// Compresses what was rotated before, and removes the oldest, so that one more is not too many.
fn make_room(dir: &OwnedFd, log: &str, files: usize) -> Result<(), Fault> {
    let mut there = rotated(dir, log)?;
    // What was put there by somebody who is shown the logs is no log.
    there.retain(|name| !name.ends_with(".tmp") && is_file(dir, name));
    // What a compression that was cut short left: half of what it made, or what it had made it of.
    for name in all_rotated(dir, log)?.iter().filter(|name| !there.contains(name)) {
        beneath::remove_tree(dir, name)?;
    }
    let keep = files.max(2) - 2;
    let gone = there.len().saturating_sub(keep);
    for name in there.drain(..gone) {
        unlinkat(dir, &name, AtFlags::empty()).attempt(|| format!("remove {name}"))?;
    }
    for name in there.iter().filter(|name| !name.ends_with(".gz")) {
        compress(dir, name)?;
    }
    Ok(())
}

fn is_file(dir: &OwnedFd, name: &str) -> bool {
    let found = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

fn compress(dir: &OwnedFd, name: &str) -> Result<(), Fault> {
    let told = || format!("compress {name}");
    let mut plain = File::from(beneath::open_file(dir, name).attempt(told)?);
    let draft = format!("{name}.tmp");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let packed = openat(dir, &draft, flags, Mode::from_raw_mode(0o640)).attempt(told)?;
    let mut encoder = GzEncoder::new(File::from(packed), Compression::default());
    std::io::copy(&mut plain, &mut encoder).attempt(told)?;
    encoder.finish().attempt(told)?;
    renameat(dir, &draft, dir, format!("{name}.gz")).attempt(told)?;
    unlinkat(dir, name, AtFlags::empty()).attempt(told)
}

/// `20261130-183105`
fn stamp(now: Time) -> String {
    let digits: String = nodefold_k8s::time::format(now).chars().filter(char::is_ascii_digit).collect();
    let (date, time) = digits.split_at(digits.len().min(8));
    format!("{date}-{}", &time[..time.len().min(6)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;

    #[test]
    fn older_files_are_compressed_and_the_oldest_go() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = beneath::open_root(place.path()).expect("it opens");
        for (name, text) in [
            ("0.1.log", "now"),
            ("0.1.log.20260101-000001.gz", "1"),
            ("0.1.log.20260101-000002", "2"),
            ("0.1.log.20260101-000003", "3"),
            ("0.1.log.20260101-000003.tmp", "half"),
            ("0.10.log", "another's"),
        ] {
            fs::write(place.path().join(name), text).expect("a file");
        }
        make_room(&dir, "0.1.log", 4).expect("there is room");
        assert_eq!(
            rotated(&dir, "0.1.log").expect("a list"),
            ["0.1.log.20260101-000002.gz", "0.1.log.20260101-000003.gz"]
        );
        let packed = fs::File::open(place.path().join("0.1.log.20260101-000003.gz")).expect("it is there");
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("it is whole");
        assert_eq!(text, "3");
        assert!(place.path().join("0.10.log").exists() && place.path().join("0.1.log").exists());
    }

    #[test]
    fn a_stamp_sorts_as_time_does() {
        assert_eq!(stamp(Time(1_767_225_600_000_000_000)), "20260101-000000");
    }
}
