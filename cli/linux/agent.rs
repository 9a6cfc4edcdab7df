//! `nodefold agent`: a node on this host, and what happens on it told as it happens.

use crate::args;
use crate::ending::{Ending, Unusable};
use crate::out::Out;
use crate::paint::{Tone, paint};
use crate::view::{Form, View};
use anyhow::Result;
use nodefold_agent::daemon::{Daemon, Listener, Settings};
use nodefold_agent::driver::Folded;
use nodefold_agent::housekeeping::Habits;
use nodefold_agent::layout::Layout;
use nodefold_agent::runtime::LogLimits;
use nodefold_agent::{clock, failpoint};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::Path;

/// Shows what the agent does.
struct Teller<'v, 'o> {
    view: &'v mut View<'o>,
}

impl Listener for Teller<'_, '_> {
    fn folded(&mut self, folded: &Folded) {
        self.view.folded(folded);
    }

    fn told(&mut self, text: &str) {
        self.view.out.complain(text);
    }
}

/// How the node keeps house.
pub fn habits(args: &args::Agent) -> Habits {
    let logs = LogLimits { bytes: args.log_max_size, files: args.log_max_files };
    Habits { interval: args.housekeeping, logs }
}

/// Runs until TERM or INT. What the node runs goes on; the next agent takes it over.
pub fn agent(args: &args::Agent, out: &mut Out) -> Result<Ending> {
    if let Some(die_at) = &args.die_at {
        let (step, nth) = die_at.split_once(':').unwrap_or((die_at, "1"));
        let armed = nth.parse().is_ok_and(|nth| failpoint::arm(step, nth));
        if !armed {
            let remedy = format!("in a debug build the steps are: {}", failpoint::STEPS.join(", "));
            return Err(Unusable::new(format!("--die-at {die_at}: there is no such step"), remedy).into());
        }
    }
    let Some(pods) = &args.pods else { return crate::served::agent(args, out) };
    if args.backend == args::AgentBackend::Sim {
        let what = "manifests of a directory run on this host only";
        return Err(Unusable::new(what, "leave --pods out: the simulated node serves an API").into());
    }
    let absolute = |path: &Path| std::path::absolute(path);
    let layout = Layout::at(absolute(&args.data)?);
    let allowed = super::entered(&layout, out)?;
    // From now on they end it in order, also while it starts.
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let settings = Settings {
        allowed,
        layout,
        node_name: args.node_name.clone(),
        manifests: absolute(pods)?,
        habits: habits(args),
        images: args.images.iter().cloned().collect(),
        shim_program: std::env::current_exe()?,
    };
    let mut view = View::new(out, Form::Lines, args.verbose, clock::now());
    let mut teller = Teller { view: &mut view };
    let daemon = Daemon::open(settings, &mut teller)
        .map_err(|fault| Unusable::new(fault, "see `nodefold doctor` for what this host allows"))?;
    let stopper = daemon.stopper();
    let handle = signals.handle();
    let waiter = std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            stopper.stop();
        }
    });
    let done = daemon.run(&mut teller);
    handle.close();
    if waiter.join().is_err() {
        teller.told("the thread that waits for signals panicked");
    }
    done.map_err(|fault| Unusable::new(fault, "start it again: it goes on from its journal"))?;
    out.line(paint(Tone::Quiet.style(), "ended; what the node runs goes on"));
    Ok(Ending::Good)
}
