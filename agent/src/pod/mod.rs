//! A pod's shim and its containers: what runs in the shim's process, and the words between it and the agent.

pub mod child;
pub mod logs;
pub mod plan;
pub mod shim;
pub mod wire;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// To be called first thing in `main` of every program that runs an agent, before any thread: if this process is meant to
/// be a pod's shim, it is one, and the exit code is what `main` returns.
pub fn dispatch(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let arguments: Vec<OsString> = arguments.skip(1).take(3).collect();
    let [first, plan] = arguments.as_slice() else { return None };
    if first != shim::ARGUMENT {
        return None;
    }
    Some(match shim::run(Path::new(plan)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            // The agent reads why from the same pipe that would have said "ready".
            drop(std::io::Write::write_all(&mut std::io::stdout(), fault.message.as_bytes()));
            ExitCode::from(3)
        }
    })
}
