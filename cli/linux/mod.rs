//! This host: scenarios on it with the same files and expectations, an agent for it, and looks at what it runs.

pub mod agent;
pub mod image;
pub mod look;
mod stage;

use crate::args;
use crate::ending::Unusable;
use crate::out::Out;
use anyhow::Result;
use nodefold_agent::doctor;
use nodefold_agent::layout::Layout;
use nodefold_harness::log::{FactLog, InMemory};
use nodefold_harness::{Observer, Outcome, Scenario, node_config, run_on};
use signal_hook::consts::{SIGINT, SIGTERM};
use stage::{Ground, LinuxStage};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says at an agent's start what it has to do without: one line for each thing.
pub fn tell_lacks(out: &mut Out) {
    for lack in doctor::privileges().into_iter().filter(|finding| !finding.there && !finding.needed) {
        out.complain(format!("without {}: {}", lack.what, lack.detail));
    }
}

/// Plays a scenario on this host, in a directory of its own, and takes everything down that it left, also when a signal ends
/// it early. (A second signal does not wait for that; `nodefold cleanup --data` with that directory does the rest.)
pub fn run(
    scenario: &Scenario,
    args: &args::Run,
    log: Option<Box<dyn FactLog>>,
    observer: &mut dyn Observer,
) -> Result<Outcome> {
    let refused: Vec<String> =
        scenario.simulation_only().map(|step| format!("line {}: {}", step.line, step.title)).collect();
    if !refused.is_empty() || scenario.node.images.is_some() {
        let what = match refused.as_slice() {
            [] => "the node's list of images".to_owned(),
            steps => steps.join("; "),
        };
        let what = format!("{}: only a simulated world can do this: {what}", scenario.file);
        return Err(Unusable::new(what, "play it without --backend linux").into());
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, interrupted.clone())?;
        signal_hook::flag::register(signal, interrupted.clone())?;
    }
    let directory = tempfile::Builder::new().prefix("nodefold-run-").tempdir()?;
    let layout = Layout::at(directory.path());
    let log = log.unwrap_or_else(|| Box::<InMemory>::default());
    let asked_to_end = interrupted.clone();
    let ground = Ground { layout, images: args.images.iter().cloned().collect(), interrupted };
    let opened = LinuxStage::open(scenario, node_config(scenario), ground, log);
    let mut stage = opened.map_err(|error| Unusable::new(error, "see `nodefold doctor`"))?;
    let outcome = run_on(scenario, &mut stage, observer);
    let left = stage.clear().map_err(|error| Unusable::new(format!("after the story: {error}"), ""))?;
    if !left.is_empty() {
        return Err(Unusable::new(format!("left behind on this host: {}", left.join(", ")), "").into());
    }
    if asked_to_end.load(Ordering::Relaxed) {
        let what = format!("{}: interrupted; what it had made on this host was taken down", scenario.file);
        return Err(Unusable::new(what, "").into());
    }
    Ok(outcome)
}
