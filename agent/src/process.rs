//! A container's processes, as a story deals with them: its first is ended, all are looked at for whether they wait.

use crate::clock;
use crate::fault::{Attempt, Fault};
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use nodefold_core::time::Nanos;
use rustix::fd::{AsRawFd, OwnedFd};
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

    /// Ends it. Of all signals only KILL reaches the first process of a pid namespace whatever it does: any other is its own
    /// to handle.
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
            Ending::Code(code) => exit_with(self.pid()?, code),
        }
    }

    /// The processes that are in its pid namespace: all of its container, where that is its first.
    pub fn in_its_pid_namespace(&self) -> Vec<i32> {
        let space = |pid: i32| fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
        let Some(own) = self.pid().ok().and_then(space) else { return Vec::new() };
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| space(*pid).as_ref() == Some(&own)).collect()
    }

    /// Its number here.
    fn pid(&self) -> Result<i32, Fault> {
        let path = format!("/proc/self/fdinfo/{}", self.pidfd.as_raw_fd());
        let text = fs::read_to_string(&path).attempt(|| format!("read {path}"))?;
        let pid = text.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok());
        pid.filter(|pid| *pid > 0).ok_or_else(|| Fault::refused("the process has ended"))
    }
}

/// A process that makes no system call for so long can't be made to end so.
const LONGEST_BETWEEN_CALLS: Nanos = Nanos::secs(2);

/// Makes a process exit with a code, as a debugger does: the next system call that it makes is `exit_group`.
#[cfg(target_arch = "x86_64")]
fn exit_with(pid: i32, code: i32) -> Result<(), Fault> {
    let traced = Pid::from_raw(pid);
    let told = || format!("trace process {pid}");
    ptrace::seize(traced, ptrace::Options::PTRACE_O_TRACESYSGOOD).attempt(told)?;
    let changed = (|| -> Result<(), Fault> {
        ptrace::interrupt(traced).attempt(told)?;
        // It stops, in the middle of a call as well: going on, it makes that call again.
        until_stopped(traced)?;
        ptrace::syscall(traced, None).attempt(told)?;
        let mut stop = until_stopped(traced)?;
        while !matches!(stop, WaitStatus::PtraceSyscall(_)) {
            if matches!(stop, WaitStatus::Exited(..) | WaitStatus::Signaled(..)) {
                return Err(Fault::refused(format!("process {pid} ended by itself")));
            }
            let signal = if let WaitStatus::Stopped(_, signal) = stop { Some(signal) } else { None };
            ptrace::syscall(traced, signal).attempt(told)?;
            stop = until_stopped(traced)?;
        }
        let mut registers = ptrace::getregs(traced).attempt(told)?;
        registers.orig_rax = libc::SYS_exit_group as u64;
        registers.rdi = code as u64;
        ptrace::setregs(traced, registers).attempt(told)
    })();
    // It goes on, whatever became of it.
    let let_go = ptrace::detach(traced, None).attempt(told);
    changed.and(let_go)
}

#[cfg(target_arch = "x86_64")]
fn until_stopped(traced: Pid) -> Result<WaitStatus, Fault> {
    let latest = clock::monotonic().0 + LONGEST_BETWEEN_CALLS.0;
    loop {
        let flags = WaitPidFlag::__WALL | WaitPidFlag::WNOHANG;
        match waitpid(traced, Some(flags)).attempt(|| format!("wait for process {traced}"))? {
            WaitStatus::StillAlive if clock::monotonic().0 < latest => clock::pause(Nanos::millis(1)),
            WaitStatus::StillAlive => {
                // What detaches must find it stopped.
                ptrace::interrupt(traced).ok();
                waitpid(traced, Some(WaitPidFlag::__WALL)).ok();
                return Err(Fault::refused(format!(
                    "process {traced} makes no system call: it can't be made to exit, only killed"
                )));
            }
            status @ (WaitStatus::Exited(..)
            | WaitStatus::Signaled(..)
            | WaitStatus::Stopped(..)
            | WaitStatus::PtraceEvent(..)
            | WaitStatus::PtraceSyscall(_)
            | WaitStatus::Continued(_)) => return Ok(status),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn exit_with(_: i32, code: i32) -> Result<(), Fault> {
    Err(Fault::refused(format!(
        "on this architecture a process can't be made to exit with {code}: have its command do so"
    )))
}

/// Whether a process waits for something that others do (`S` in `/proc/PID/stat`), or is gone.
pub(crate) fn waits(pid: i32) -> bool {
    // The name, in parentheses, can hold anything, more parentheses too.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['S', 'Z', 'X']))
}

/// For how many nanoseconds a process has had a processor.
pub(crate) fn worked(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    text.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_process_exits_with_the_code_that_it_is_told() {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        let script = "trap '' TERM; while true; do sleep 0.01; done";
        for (program, arguments, code) in [("sleep", ["60", "60"], 7), ("sh", ["-c", script], 255)] {
            let mut child = Command::new(program).args(arguments).spawn().expect("it starts");
            let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).expect("it lives");
            Process::new(Arc::new(pidfd)).end(Ending::Code(code)).expect("it is traced");
            assert_eq!(child.wait().expect("it ended").code(), Some(code));
        }
        let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("it starts");
        let pidfd = pidfd_open(Pid::from_child(&busy), PidfdFlags::empty()).expect("it lives");
        // Its start makes many calls.
        let worked = || {
            let stat = fs::read_to_string(format!("/proc/{}/stat", busy.id())).unwrap_or_default();
            stat.split(' ').nth(13).and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or(0)
        };
        while worked() < 5 {
            std::thread::yield_now();
        }
        let refused = Process::new(Arc::new(pidfd)).end(Ending::Code(1)).expect_err("no system call");
        assert!(refused.message.contains("makes no system call"), "{}", refused.message);
        assert_eq!(busy.try_wait().expect("a child"), None, "it goes on");
        busy.kill().expect("a child");
        busy.wait().expect("a child");
    }

    #[test]
    fn who_waits_and_who_works() {
        let started = |program: &str, arguments: &[&str]| {
            Command::new(program).args(arguments).stdout(Stdio::null()).spawn().expect("it starts")
        };
        let (mut sleeper, mut worker) =
            (started("sleep", &["60"]), started("sh", &["-c", "while :; do :; done"]));
        let waits_of = |child: &std::process::Child| waits(child.id() as i32);
        while !waits_of(&sleeper) {
            std::thread::yield_now();
        }
        assert!(!waits_of(&worker));
        while worked(worker.id() as i32) < 50_000_000 {
            std::thread::yield_now();
        }
        assert!(worked(sleeper.id() as i32) < 50_000_000);
        sleeper.kill().expect("a child");
        worker.kill().expect("a child");
        sleeper.wait().expect("a child");
        worker.wait().expect("a child");
        assert!(waits_of(&worker), "who is gone does nothing more");
    }
}
