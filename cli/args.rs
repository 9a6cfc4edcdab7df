//! The command line.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Run, replay and look at a Kubernetes node's lifecycle.
#[derive(Debug, Parser)]
#[command(name = "nodefold", version, about, propagate_version = true)]
#[command(
    after_help = "Exit status: 0 all is as it should be; 1 an expectation or a recorded digest does not hold, or an \
invariant broke; 2 the input can't be used."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Play scenarios on a simulated node and check what they expect
    Run(Run),
    /// Fold a journal again: its timeline, or the state of a pod at any moment
    Replay(Replay),
    /// Show a journal's records
    Log(Log),
    /// Write a snapshot of a journal's state, so that it need not be folded from the start
    Snapshot(Journal),
    /// Hand over what any node left behind, get what happened and which invariant was broken
    Judge(Judge),
    /// Fold a journal from the start and compare everything that it recorded: digests, commands, snapshots, chain
    Verify(Journal),
}

/// `nodefold run`
#[derive(Debug, Args)]
pub struct Run {
    /// Scenario files
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<PathBuf>,
    /// Keep the node's journal in this directory (with several scenarios, in one below it for each, by name)
    #[arg(long, value_name = "DIR")]
    pub journal: Option<PathBuf>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
    /// Tell every fact, command and request
    #[arg(short, long, conflicts_with_all = ["json", "quiet"])]
    pub verbose: bool,
    /// Only the result of each scenario; of one that fails, the timeline too
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

/// `nodefold judge`
#[derive(Debug, Args)]
#[command(after_help = "Recognised by content, plain, .gz or .zst: kubelet logs of every era behind any collector, API \
watches, lists, audit logs, Events, containerd and CRI-O logs, `ctr events`, crictl listings, mount tables, kubelet \
checkpoints.\n\nExit status: 0 clean; 1 findings; 2 nothing recognisable in the input.")]
pub struct Judge {
    /// What the node left behind (`-`: standard input)
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// One JSON object: findings, notes, coverage
    #[arg(long)]
    pub json: bool,
    /// The year of stamps that have none
    #[arg(long, value_name = "YEAR")]
    pub year: Option<i32>,
    /// Show the timeline of this pod (NS/NAME or its UID)
    #[arg(long, value_name = "POD", conflicts_with = "json")]
    pub pod: Option<String>,
    /// Show every entry of every pod
    #[arg(short, long, conflicts_with_all = ["json", "quiet"])]
    pub verbose: bool,
    /// Only the verdict, no timeline
    #[arg(short, long, conflicts_with = "json")]
    pub quiet: bool,
}

/// `nodefold replay`
#[derive(Debug, Args)]
pub struct Replay {
    /// The journal's directory
    pub journal: PathBuf,
    /// Stop there: a record's number, seconds after the first fact (`2.5s`, `3m`), or an RFC 3339 time
    #[arg(long, value_name = "RECORD|TIME")]
    pub at: Option<String>,
    /// Show this pod's desired, allocated and published state in Kubernetes' own YAML
    #[arg(long, value_name = "NS/NAME")]
    pub pod: Option<String>,
    /// Compare every recorded digest with the fold's
    #[arg(long, conflicts_with_all = ["at", "pod"])]
    pub verify: bool,
    /// JSON instead of lines and YAML
    #[arg(long)]
    pub json: bool,
    /// Tell every fact, command and request
    #[arg(short, long, conflicts_with_all = ["json", "pod", "verify"])]
    pub verbose: bool,
}

/// `nodefold log`
#[derive(Debug, Args)]
pub struct Log {
    /// The journal's directory
    pub journal: PathBuf,
    /// Only what is about this pod
    #[arg(long, value_name = "NS/NAME")]
    pub pod: Option<String>,
    /// From there on: a record's number, seconds after the first fact (`2.5s`, `3m`), or an RFC 3339 time
    #[arg(long, value_name = "RECORD|TIME")]
    pub since: Option<String>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `nodefold snapshot` and `nodefold verify`
#[derive(Debug, Args)]
pub struct Journal {
    /// The journal's directory
    pub journal: PathBuf,
    /// JSON instead of lines
    #[arg(long)]
    pub json: bool,
}
