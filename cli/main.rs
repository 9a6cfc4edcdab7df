//! `nodefold`: plays scenarios on a simulated node or a real one, is a node's agent, and folds what a node's journal recorded
//! again, to show what happened, why, and in which state everything was at any moment. Explains what an API server would say
//! of a request.
//!
//! ```text
//! nodefold run examples/workspace-swap.yaml --journal /tmp/swap
//! nodefold replay /tmp/swap --at 3s --pod default/worker
//! nodefold admit --policies examples/admission/cluster --pod examples/admission/pod.yaml \
//!     --request examples/admission/add-worker.yaml
//! ```

mod admit;
mod args;
mod axis;
mod check;
mod check_sabotage;
mod commands;
mod ending;
mod facts;
mod import;
mod journal;
mod json;
mod judge;
mod judge_view;
mod lanes;
mod linux;
mod lives;
mod log;
mod manifests;
mod names;
mod out;
mod paint;
mod picture;
mod place;
mod pods;
mod replay;
mod requests;
mod run;
mod sabotage;
mod served;
mod shrink;
mod sim;
mod snapshot;
mod stepper;
mod story;
mod timeline;
mod verify;
mod view;
mod yaml;

use clap::Parser;
use ending::Ending;
use out::Out;
use paint::{Tone, paint};
use std::process::ExitCode;

/// Stories, searches and judges allocate small things by the million; the system's allocator was a third of their time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // First of all: this process may be meant to be a pod's shim.
    if let Some(code) = nodefold_agent::pod::dispatch(std::env::args_os()) {
        return code;
    }
    let cli = args::Cli::parse();
    let mut out = Out::new();
    let done = match &cli.command {
        args::Command::Run(args) => run::run(args, &mut out),
        args::Command::Check(args) => check::check(args, &mut out),
        args::Command::Agent(args) => linux::agent::agent(args, &mut out),
        args::Command::Kubeconfig(args) => served::kubeconfig(args, &mut out),
        args::Command::History(args) => served::history::history(args, &mut out),
        args::Command::Ps(args) => linux::look::ps(args, &mut out),
        args::Command::Logs(args) => linux::look::logs(args, &mut out),
        args::Command::Image(args) => linux::image::image(args, &mut out),
        args::Command::Exec(args) => linux::look::exec(args, &mut out),
        args::Command::Cleanup(args) => linux::look::cleanup(args, &mut out),
        args::Command::Doctor(args) => linux::look::doctor(args, &mut out),
        args::Command::Replay(args) => replay::replay(args, &mut out),
        args::Command::Log(args) => log::log(args, &mut out),
        args::Command::Snapshot(args) => snapshot::snapshot(args, &mut out),
        args::Command::Admit(args) => admit::admit(args, &mut out),
        args::Command::Judge(args) => judge::judge(args, &mut out),
        args::Command::Import(args) => import::import(args, &mut out),
        args::Command::View(args) => picture::view(args, &mut out),
        args::Command::Verify(args) => verify::verify(&args.journal, args.json, &mut out),
        args::Command::Sim(args) => sim::sim(args, &mut out),
        args::Command::Shrink(args) => shrink::shrink(args, &mut out),
    };
    let ending = done.unwrap_or_else(|error| {
        out.complain(format!("{} {error:#}", paint(Tone::Bad.style(), "error:")));
        Ending::Unusable
    });
    match out.finish() {
        Ok(()) => ExitCode::from(ending.code()),
        Err(_) => ExitCode::from(Ending::Unusable.code()),
    }
}
