//! A container's first process, to be ended by a story.

use crate::fault::{Attempt, Fault};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use std::sync::Arc;

/// How a story ends a process.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// A process.
pub struct Process {
    pidfd: Arc<OwnedFd>,
}

impl Process {
    /// The process that a pidfd means.
    pub fn new(pidfd: Arc<OwnedFd>) -> Process {
        Process { pidfd }
    }

    /// Ends it. Of the ways to end, only KILL reaches the first process of a pid namespace whatever it does: any other
    /// signal is its own to handle, and no outsider can make it exit with a code.
    pub fn end(&self, ending: Ending) -> Result<(), Fault> {
        match ending {
            Ending::Signal(9) => match pidfd_send_signal(&*self.pidfd, Signal::KILL) {
                Ok(()) | Err(Errno::SRCH) => Ok(()),
                Err(errno) => Err(errno).attempt(|| "kill the process"),
            },
            Ending::Signal(number) => Err(Fault::refused(format!(
                "on a real host a container's first process can't be ended by signal {number} from outside, only by KILL: \
                 write `exit: {{..., signal: KILL}}`, or have its command end by itself"
            ))),
            Ending::Code(code) => Err(Fault::refused(format!(
                "on a real host a process can't be made to exit with {code}: have its command do so"
            ))),
        }
    }
}
