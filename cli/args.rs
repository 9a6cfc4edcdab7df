//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
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
    /// Play scenarios on a simulated node, or on this host, and check what they expect
    Run(Run),
    /// Be a node: run the pods whose manifests are in a directory, with real mounts and processes (needs root)
    Agent(Agent),
    /// The pods of a node, as they are published
    Ps(Ps),
    /// What a container wrote
    Logs(Logs),
    /// Run a program in a running container
    Exec(Exec),
    /// Take a node off this host: its processes, mounts, control groups and directories; the journal stays
    Cleanup(Cleanup),
    /// What this host lets a node do
    Doctor(Doctor),
    /// Fold a journal again: its timeline, or the state of a pod at any moment
    Replay(Replay),
    /// Show a journal's records
    Log(Log),
    /// Write a snapshot of a journal's state, so that it need not be folded from the start
    Snapshot(Journal),
    /// Fold a journal from the start and compare everything that it recorded: digests, commands, snapshots, chain
    Verify(Journal),
}

/// `nodefold run`
#[derive(Debug, Args)]
pub struct Run {
    /// Scenario files
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<PathBuf>,
    /// Where: in a simulated world, or with real mounts and processes on this host (needs root)
    #[arg(long, value_enum, default_value_t = BackendKind::Simulated, value_name = "BACKEND")]
    pub backend: BackendKind,
    /// An image that is a directory of this host: its root file system, or one with `rootfs` in it. Any tag, if NAME has none
    #[arg(long = "image", value_name = "NAME=PATH", value_parser = image)]
    pub images: Vec<(String, PathBuf)>,
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

/// Where a node keeps everything, unless told otherwise.
const DATA: &str = "/var/lib/nodefold";

/// `nodefold agent`
#[derive(Debug, Args)]
pub struct Agent {
    /// What executes commands
    #[arg(long, value_enum, default_value_t = AgentBackend::Linux, value_name = "BACKEND")]
    pub backend: AgentBackend,
    /// The node's directory: journal, volumes, logs
    #[arg(long, value_name = "DIR", default_value = DATA)]
    pub data: PathBuf,
    /// Manifests of pods, secrets and configMaps; watched
    #[arg(long, value_name = "DIR")]
    pub pods: PathBuf,
    /// The node's name
    #[arg(long, value_name = "NAME", default_value = "node")]
    pub node_name: String,
    /// An image that is a directory of this host
    #[arg(long = "image", value_name = "NAME=PATH", value_parser = image)]
    pub images: Vec<(String, PathBuf)>,
    /// Tell every fact and command
    #[arg(short, long)]
    pub verbose: bool,
}

/// What executes an agent's commands.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum AgentBackend {
    /// This host
    Linux,
}

/// `nodefold ps`
#[derive(Debug, Args)]
pub struct Ps {
    /// The node's directory
    #[arg(long, value_name = "DIR", default_value = DATA)]
    pub data: PathBuf,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `nodefold logs`
#[derive(Debug, Args)]
pub struct Logs {
    /// The pod
    #[arg(value_name = "NS/NAME")]
    pub pod: String,
    /// The container, if the pod has several
    pub container: Option<String>,
    /// The node's directory
    #[arg(long, value_name = "DIR", default_value = DATA)]
    pub data: PathBuf,
    /// As they are on disk: with time, stream and mark
    #[arg(long)]
    pub raw: bool,
}

/// `nodefold exec`
#[derive(Debug, Args)]
pub struct Exec {
    /// The pod
    #[arg(value_name = "NS/NAME")]
    pub pod: String,
    /// The container
    pub container: String,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
    /// The node's directory
    #[arg(long, value_name = "DIR", default_value = DATA)]
    pub data: PathBuf,
}

/// `nodefold cleanup`
#[derive(Debug, Args)]
pub struct Cleanup {
    /// The node's directory
    #[arg(long, value_name = "DIR", default_value = DATA)]
    pub data: PathBuf,
    /// Its unpacked images, too
    #[arg(long)]
    pub images: bool,
}

/// `nodefold doctor`
#[derive(Debug, Args)]
pub struct Doctor {
    /// JSON instead of lines
    #[arg(long)]
    pub json: bool,
}

/// What a scenario is played on.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum BackendKind {
    /// The simulated world
    Simulated,
    /// This host
    Linux,
}

/// Reads `NAME=PATH`.
fn image(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok((name.to_owned(), path.into())),
        Some(_) | None => Err("write NAME=PATH, as in registry.local/app=/srv/app-root".into()),
    }
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
