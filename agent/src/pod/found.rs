//! Shims found by their command lines, wherever no control group has them.

use super::shim;
use crate::fault::{Attempt, Fault};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Killed, they are gone well within this.
const KILLED_WITHIN: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

/// The shims of sandboxes that are in a directory or below it.
pub fn shims(below: &Path) -> Result<Vec<(Pid, OwnedFd)>, Fault> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").attempt(|| "list processes")?.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        // Before it is looked at: so it is the one that was looked at.
        let opened = pid.map(|pid| (pid, pidfd_open(pid, PidfdFlags::empty())));
        let Some((pid, Ok(pidfd))) = opened else { continue };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        if let [_, argument, plan, ..] = words.as_slice()
            && *argument == shim::ARGUMENT.as_bytes()
            && Path::new(OsStr::from_bytes(plan)).starts_with(below)
        {
            found.push((pid, pidfd));
        }
    }
    Ok(found)
}

/// Kills the shims of sandboxes that are in a directory or below it, and waits for their end.
pub fn end_all(below: &Path) -> Result<(), Fault> {
    for (pid, pidfd) in shims(below)? {
        match pidfd_send_signal(&pidfd, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(errno) => return Err(errno).attempt(|| format!("kill process {pid}, a pod's shim")),
        }
        let ended = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&KILLED_WITHIN));
        if ended.attempt(|| "wait for a shim's end")? == 0 {
            return Err(Fault::transient(format!(
                "process {pid}, a pod's shim, does not end, though killed"
            )));
        }
    }
    Ok(())
}
