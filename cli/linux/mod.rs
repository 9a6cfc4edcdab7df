//! This host: scenarios on it with the same files and expectations, an agent for it, and looks at what it runs.

pub mod agent;
pub mod image;
pub mod look;
pub mod rootless;
mod stage;

use crate::args;
use crate::ending::Unusable;
use crate::out::Out;
use anyhow::Result;
use nodefold_agent::doctor::{self, Allowed};
use nodefold_agent::layout::Layout;
use nodefold_harness::log::{FactLog, InMemory};
use nodefold_harness::{Observer, Outcome, Scenario, node_config, run_on};
use rootless::Namespaces;
use signal_hook::consts::{SIGINT, SIGTERM};
use stage::{Ground, LinuxStage};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// That this process may be a node. What it has to do without is said: one line for each thing.
pub fn allowed(out: &mut Out) -> Result<Allowed> {
    let allowed = doctor::require()
        .map_err(|fault| Unusable::new(fault, "see `nodefold doctor` for what this host allows"))?;
    allowed.lacking().for_each(|lack| out.complain(lack));
    Ok(allowed)
}

/// The same for an agent, in the namespaces of its node where it needs some, before it has a second thread.
pub fn entered(layout: &Layout, out: &mut Out) -> Result<Allowed> {
    rootless::enter(layout)
        .map_err(|fault| Unusable::new(fault, "see `nodefold doctor` for what this host allows"))?;
    allowed(out)
}

/// What a story on this host stands on.
pub struct Standing {
    namespaces: Option<Namespaces>,
    allowed: Allowed,
}

impl Standing {
    /// For all stories of a command, before it has a second thread.
    pub fn take(out: &mut Out) -> Result<Standing> {
        let namespaces = Namespaces::for_now()
            .map_err(|fault| Unusable::new(fault, "see `nodefold doctor` for what this host allows"))?;
        // Root's own host is what a story expects.
        let allowed = match &namespaces {
            Some(_) => allowed(out)?,
            None => doctor::require()
                .map_err(|fault| Unusable::new(fault, "see `nodefold doctor` for what this host allows"))?,
        };
        Ok(Standing { namespaces, allowed })
    }
}

/// Plays a scenario on this host, in a directory of its own, and takes everything down that it left, also when a signal ends
/// it early. (A second signal does not wait for that; `nodefold cleanup --data` with that directory does the rest.)
pub fn run(
    scenario: &Scenario,
    (args, standing): (&args::Run, &Standing),
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
    if let Some(namespaces) = &standing.namespaces {
        namespaces.show_in(directory.path()).map_err(|fault| Unusable::new(fault, ""))?;
    }
    let layout = Layout::at(directory.path());
    let log = log.unwrap_or_else(|| Box::<InMemory>::default());
    let asked_to_end = interrupted.clone();
    let ground = Ground {
        layout,
        images: args.images.iter().cloned().collect(),
        interrupted,
        allowed: standing.allowed.clone(),
    };
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
