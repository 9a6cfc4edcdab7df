//! `nodefold agent` without manifests: a node that serves a Kubernetes API, on this host or simulated.

pub mod history;
mod sim;

use crate::args;
use crate::ending::{Ending, Unusable};
use crate::out::Out;
use crate::paint::{Tone, paint};
use crate::view::{Form, View};
use anyhow::Result;
use nodefold_agent::clock;
use nodefold_agent::driver::Folded;
use nodefold_agent::layout::Layout;
use nodefold_agent::server::{self, Host, Limits, LinuxHost, Listener, ServedSettings};
use nodefold_core::config::FeatureGates;
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use sim::Simulated;

/// The gates as they are said, on where nothing is.
fn gates(said: &[(args::Gate, bool)]) -> FeatureGates {
    let mut gates = FeatureGates::default();
    for (gate, on) in said {
        match gate {
            args::Gate::DynamicContainers => gates.dynamic_containers = *on,
            args::Gate::DynamicNodeLocalEphemeralVolumes => gates.dynamic_volumes = *on,
        }
    }
    gates
}

/// Shows what the node does and what is asked of it.
struct Teller<'v, 'o> {
    view: &'v mut View<'o>,
    verbose: bool,
}

impl Listener for Teller<'_, '_> {
    fn folded(&mut self, folded: &Folded) {
        self.view.folded(folded);
    }

    fn asked(&mut self, user: &str, what: &str, code: u16) {
        if self.verbose {
            self.view.out.line(paint(Tone::Quiet.style(), format!("{code} {user}: {what}")));
        }
    }

    fn told(&mut self, text: &str) {
        self.view.out.complain(text);
    }
}

/// Runs until TERM or INT.
pub fn agent(args: &args::Agent, out: &mut Out) -> Result<Ending> {
    let layout = Layout::at(std::path::absolute(&args.data)?);
    let is_real = args.backend == args::AgentBackend::Linux;
    let allowed = if is_real { Some(crate::linux::entered(&layout, out)?) } else { None };
    // From now on they end it in order, also while it starts.
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let host: Box<dyn Host> =
        match allowed {
            None => Box::new(
                Simulated::boot(layout.clone(), &args.node_name)
                    .map_err(|fault| Unusable::new(fault, "name a directory that can be written to"))?,
            ),
            Some(allowed) => {
                let images = args.images.iter().cloned().collect();
                let program = std::env::current_exe()?;
                let habits = crate::linux::agent::habits(args);
                let host = LinuxHost::open(layout.clone(), &args.node_name, images, habits, program, allowed);
                Box::new(host.map_err(|fault| {
                    Unusable::new(fault, "see `nodefold doctor` for what this host allows")
                })?)
            }
        };
    let settings = ServedSettings {
        layout,
        node_name: args.node_name.clone(),
        port: args.port,
        disabled_pod_subresources: args.disable_pod_subresources.clone(),
        gates: gates(&args.feature_gates),
        manifests: args.pod_manifest_path.as_deref().map(std::path::absolute).transpose()?,
        version: args.kube_version.clone(),
        limits: Limits::default(),
        durable: is_real,
    };
    let mut view = View::new(out, Form::Lines, args.verbose, clock::now());
    let mut teller = Teller { view: &mut view, verbose: args.verbose };
    let served = server::open(settings, host, &mut teller)
        .map_err(|fault| Unusable::new(fault, "is another agent running on this directory?"))?;
    let facts = &served.facts;
    teller.view.out.line(format!("serving https://{} and {}", facts.address, facts.socket.display()));
    teller.view.out.line(format!("kubectl --kubeconfig {} get pods -A", facts.kubeconfig.display()));
    if facts.requests > 0 {
        let told = format!("{} requests of earlier lives are folded again", facts.requests);
        teller.view.out.line(paint(Tone::Quiet.style(), told));
    }
    let stopper = served.stopper();
    let handle = signals.handle();
    let waiter = std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            stopper.stop();
        }
    });
    let done = served.run(&mut teller);
    handle.close();
    if waiter.join().is_err() {
        teller.told("the thread that waits for signals panicked");
    }
    done.map_err(|fault| Unusable::new(fault, "start it again: it goes on from its journal"))?;
    let told = if is_real { "ended; what the node runs goes on" } else { "ended" };
    out.line(paint(Tone::Quiet.style(), told));
    Ok(Ending::Good)
}

/// `nodefold kubeconfig`
pub fn kubeconfig(args: &args::Kubeconfig, out: &mut Out) -> Result<Ending> {
    let layout = Layout::at(std::path::absolute(&args.data)?);
    let own = layout.data().join("kubeconfig");
    let text = std::fs::read_to_string(&own).map_err(|error| {
        Unusable::new(format!("{}: {error}", own.display()), "start `nodefold agent` on that directory first")
    })?;
    let known: Value = serde_json::from_str(&text)?;
    let server = known["clusters"][0]["cluster"]["server"].as_str().unwrap_or_default();
    let made = server::kubeconfig_for(&layout, server, &args.user, &args.groups)
        .map_err(|fault| Unusable::new(fault, "name a node's directory"))?;
    out.line(made.trim_end());
    Ok(Ending::Good)
}
