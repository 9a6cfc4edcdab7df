//! `fsGroup` (kubelet-volumes §2.6): a volume's files belong to a group that may use them.

use crate::beneath;
use crate::fault::{Attempt, Fault};
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Uid, chownat, fchmod, fchown, fstat};
use rustix::io::Errno;

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const TYPE: u32 = 0o170_000;

/// Gives everything below a directory, and then itself, to a group: children before their root, so that a crash half-way
/// is seen at the root. Links change group, never mode.
pub fn give_to_group(dir: BorrowedFd<'_>, group: u32, read_only: bool) -> Result<(), Fault> {
    for name in beneath::names(dir).attempt(|| "list a volume for its fsGroup")? {
        let shown = || name.to_string_lossy().into_owned();
        match beneath::open(dir, beneath::os(&name), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW) {
            Ok(inner) => {
                let stat = fstat(&inner).attempt(|| format!("look at {}", shown()))?;
                match stat.st_mode & TYPE {
                    DIRECTORY => give_to_group(rustix::fd::AsFd::as_fd(&inner), group, read_only)?,
                    FILE => take(rustix::fd::AsFd::as_fd(&inner), group, read_only)
                        .attempt(|| format!("give {} to group {group}", shown()))?,
                    _ => {}
                }
            }
            Err(Errno::NOENT) => {}
            // Links, sockets: the group, without following.
            Err(_) => {
                match chownat(dir, &*name, None::<Uid>, Some(Gid::from_raw(group)), AtFlags::SYMLINK_NOFOLLOW)
                {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(errno) => return Err(errno).attempt(|| format!("give {} to group {group}", shown())),
                }
            }
        }
    }
    take(dir, group, read_only).attempt(|| format!("give the volume to group {group}"))
}

fn take(fd: BorrowedFd<'_>, group: u32, read_only: bool) -> Result<(), Errno> {
    fchown(fd, None::<Uid>, Some(Gid::from_raw(group)))?;
    let mode = fstat(fd)?.st_mode;
    let mut wanted = mode & 0o7777 | if read_only { 0o440 } else { 0o660 };
    if mode & TYPE == DIRECTORY {
        wanted |= 0o2110;
    }
    fchmod(fd, Mode::from_raw_mode(wanted))
}
