//! A pod's shim and its containers: what runs in processes of their own, and the words between them and the agent.

pub mod child;
pub mod found;
pub mod join;
pub mod logs;
pub mod plan;
pub mod requests;
pub mod shim;
pub mod users;
pub mod wire;

use crate::rootless;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// To be called first thing in `main` of every program that runs an agent, before any thread: if this process is meant to
/// be a pod's shim, to keep a node's namespaces, or to do something in a container, it does that, and the exit code is what `main`
/// returns.
pub fn dispatch(arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let arguments: Vec<OsString> = arguments.skip(1).take(3).collect();
    let [first, what] = arguments.as_slice() else { return None };
    if first == shim::ARGUMENT || first == rootless::ARGUMENT {
        let done = if first == shim::ARGUMENT { shim::run(Path::new(what)) } else { rootless::keep() };
        return Some(match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(fault) => {
                // Whoever started it reads why from the same pipe that would have said that it is ready.
                std::io::stdout().write_all(fault.message.as_bytes()).ok();
                ExitCode::from(3)
            }
        });
    }
    if first == join::ARGUMENT {
        let errand = serde_json::from_slice(what.as_encoded_bytes());
        let done = errand
            .map_err(|error| crate::fault::Fault::refused(error.to_string()))
            .and_then(|errand| join::run(&errand));
        return Some(match done {
            Ok(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
            Err(fault) => {
                std::io::stderr().write_all(fault.message.as_bytes()).ok();
                ExitCode::from(join::COULD_NOT)
            }
        });
    }
    None
}
