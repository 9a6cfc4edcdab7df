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
    /// Explore a scope exhaustively: everything that may happen, in every order, judged on every state
    Check(Check),
    /// Fold a journal again: its timeline, or the state of a pod at any moment
    Replay(Replay),
    /// Show a journal's records
    Log(Log),
    /// Write a snapshot of a journal's state, so that it need not be folded from the start
    Snapshot(Journal),
    /// Fold a journal from the start and compare everything that it recorded: digests, commands, snapshots, chain
    Verify(Journal),
    /// Hunt: run many seeds, each a world with its own faults and users, all oracles on
    Sim(Sim),
    /// Make the history of a find as short as it can be
    Shrink(Shrink),
}

/// `nodefold sim`
#[derive(Debug, Args)]
pub struct Sim {
    /// So many seeds, or those from A to before B (1000 unless `--time` is given)
    #[arg(long, value_name = "N|A..B", conflicts_with = "seed")]
    pub seeds: Option<String>,
    /// One seed
    #[arg(long)]
    pub seed: Option<u64>,
    /// Stop after this long: 60s, 5m, 1h
    #[arg(long)]
    pub time: Option<String>,
    /// How many at once: as many as there are processors unless given
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// No other faults than these
    #[arg(long, value_name = "FAULT,..", value_delimiter = ',')]
    pub only: Vec<String>,
    /// None of these faults or actions
    #[arg(long, value_name = "FAULT,..", value_delimiter = ',')]
    pub without: Vec<String>,
    /// JSON, one object a line
    #[arg(long)]
    pub json: bool,
    /// Where the histories of finds are kept: nodefold-found unless given
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// `nodefold shrink`
#[derive(Debug, Args)]
pub struct Shrink {
    /// The history, as `nodefold sim` saved it
    pub history: PathBuf,
    /// Where the shrunk one goes: beside it unless given
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Stop after this long
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub seconds: u64,
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

/// `nodefold check`
#[derive(Debug, Args)]
pub struct Check {
    /// A named scope or a scenario file, explored from its mark `check` on; without any, all named scopes
    #[arg(long, value_name = "NAME|FILE")]
    pub scope: Option<String>,
    /// Stop after so long (`90s`, `10m`)
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// Threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub jobs: usize,
    /// Explore choices that commute once (partial-order reduction)
    #[arg(long)]
    pub reduce: bool,
    /// Depth first: less memory, but no shortest counterexample and no livelocks
    #[arg(long, conflicts_with = "checkpoint")]
    pub depth_first: bool,
    /// Write the counterexample's scenario there, for `nodefold run`
    #[arg(long, value_name = "FILE")]
    pub counterexample: Option<PathBuf>,
    /// Go on from this file if it is there; write it if the search is stopped
    #[arg(long, value_name = "FILE", requires = "scope")]
    pub checkpoint: Option<PathBuf>,
    /// List the named scopes
    #[arg(long)]
    pub list: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
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
