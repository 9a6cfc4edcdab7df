//! A container's processes, as a story deals with them: its first is ended, all are looked at for whether they wait.

use crate::fault::{Attempt, Fault};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};
use std::fs;
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

/// Whether a process waits for something that others do (`S` in `/proc/PID/stat`), or is gone.
pub(crate) fn waits(pid: i32) -> bool {
    // The name, in parentheses, can hold anything, more parentheses too.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['S', 'Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn who_waits_and_who_works() {
        let started = |program: &str, arguments: &[&str]| {
            Command::new(program).args(arguments).stdout(Stdio::null()).spawn().unwrap()
        };
        let (mut sleeper, mut worker) =
            (started("sleep", &["60"]), started("sh", &["-c", "while :; do :; done"]));
        let waits_of = |child: &std::process::Child| waits(child.id() as i32);
        while !waits_of(&sleeper) {
            std::thread::yield_now();
        }
        assert!(!waits_of(&worker));
        sleeper.kill().unwrap();
        worker.kill().unwrap();
        sleeper.wait().unwrap();
        worker.wait().unwrap();
        assert!(waits_of(&worker), "who is gone does nothing more");
    }
}
