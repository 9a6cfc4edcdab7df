//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use nodefold_agent::server::history::Kind;
use nodefold_core::time::Nanos;
use std::path::PathBuf;

/// Run, replay and look at a Kubernetes node's lifecycle.
#[derive(Debug, Parser)]
#[command(name = "nodefold", version, about, propagate_version = true)]
#[command(
    after_help = "Exit status: 0 all is as it should be; 1 an expectation or a recorded digest does not hold, or an \
invariant broke, or a request is refused; 2 the input can't be used."
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
    /// Explore a scope exhaustively: everything that may happen, in every order, judged on every state
    Check(Check),
    /// Be a node: serve a Kubernetes API, or run the pods whose manifests are in a directory
    Agent(Agent),
    /// A kubeconfig for another user of a node's API
    Kubeconfig(Kubeconfig),
    /// What ran on a served node, and who asked: from its journal
    History(History),
    /// The pods of a node, as they are published
    Ps(Ps),
    /// A node's own images: OCI layouts and archives, since it pulls from no registry
    Image(Image),
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
    Snapshot(Snapshot),
    /// Hand over what any node left behind, get what happened and which invariant was broken
    Judge(Judge),
    /// Fold what any node left behind into a journal, so that replay, log and the views work on it
    Import(Import),
    /// Draw a journal, or what any node left behind: an HTML page that needs no network, or a trace for Perfetto
    View(View),
    /// Fold a journal from the start and compare everything that it recorded: digests, commands, snapshots, chain
    Verify(Journal),
    /// Explain what would become of a request on pods/dynamic, stage by stage, without a server
    Admit(Admit),
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
    /// Hunt a saboteur (a correct node made wrong in one historical way) until it is caught; `all`: each of them, as a table
    #[arg(long, value_name = "NAME|all", conflicts_with_all = ["seed", "time", "only", "without"])]
    pub sabotage: Option<String>,
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
    /// Scenario files (`-`: standard input)
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<PathBuf>,
    /// Where: in a simulated world, or with real mounts and processes on this host
    #[arg(long, value_enum, default_value_t = BackendKind::Simulated, value_name = "BACKEND")]
    pub backend: BackendKind,
    /// An image that is a directory of this host (its root file system, or one with `rootfs` in it), an OCI layout, or an
    /// archive (oci-archive, docker save). Any tag, if NAME has none
    #[arg(long = "image", value_name = "NAME=PATH", value_parser = image)]
    pub images: Vec<(String, PathBuf)>,
    /// Keep the node's journal in this directory (with several scenarios, in one below it for each, by name)
    #[arg(long, value_name = "DIR")]
    pub journal: Option<PathBuf>,
    /// Write a page with all lanes, entries and findings of the run (several scenarios: a page for each, FILE-NAME.html)
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
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
    /// Explore one of all states that differ only by which of pods that are alike is which
    #[arg(long)]
    pub symmetry: bool,
    /// Depth first: less memory, but no shortest counterexample and no livelocks
    #[arg(long, conflicts_with = "checkpoint")]
    pub depth_first: bool,
    /// Write the counterexample's scenario there, for `nodefold run`
    #[arg(long, value_name = "FILE")]
    pub counterexample: Option<PathBuf>,
    /// Go on from this file if it is there; write it if the search is stopped
    #[arg(long, value_name = "FILE", requires = "scope")]
    pub checkpoint: Option<PathBuf>,
    /// Explore a node that is wrong in one historical way: a saboteur of `nodefold sim`; `all`: the table of them
    #[arg(long, value_name = "NAME|all", conflicts_with_all = ["checkpoint", "depth_first", "symmetry"])]
    pub sabotage: Option<String>,
    /// With `--sabotage`: how many states of each scope are explored before it counts as not found
    #[arg(long, value_name = "N", default_value_t = 4_000, requires = "sabotage")]
    pub states: u64,
    /// List the named scopes
    #[arg(long)]
    pub list: bool,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
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
    /// Manifests of pods, secrets and configMaps; watched. Without it the node serves a Kubernetes API
    #[arg(long, value_name = "DIR")]
    pub pods: Option<PathBuf>,
    /// The node's name
    #[arg(long, value_name = "NAME", default_value = "node")]
    pub node_name: String,
    /// How often logs are looked at and disk usage is measured: 10s, 1m
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub housekeeping: Nanos,
    /// A container's log is rotated when it is larger
    #[arg(long, value_name = "BYTES", default_value = "10Mi", value_parser = bytes)]
    pub log_max_size: u64,
    /// So many files of a container's log are kept, the rotated ones compressed
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub log_max_files: usize,
    /// Die at a step of the backend, the Nth time: for tests of what comes after, in debug builds
    #[arg(long, value_name = "STEP:N", hide = true)]
    pub die_at: Option<String>,
    /// An image that is a directory of this host, an OCI layout or an archive
    #[arg(long = "image", value_name = "NAME=PATH", value_parser = image)]
    pub images: Vec<(String, PathBuf)>,
    /// The API's port on the loopback address; any that is free, if not given
    #[arg(long, value_name = "PORT", default_value_t = 0, conflicts_with = "pods")]
    pub port: u16,
    /// Manifests of static pods beside the API, which shows them as mirror pods; watched
    #[arg(long, value_name = "DIR", conflicts_with = "pods")]
    pub pod_manifest_path: Option<PathBuf>,
    /// Subresources of pods that are not served
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with = "pods",
        value_parser = clap::builder::PossibleValuesParser::new(nodefold_agent::server::SWITCHABLE)
    )]
    pub disable_pod_subresources: Vec<String>,
    /// Gates of the two KEPs, as an API server and a kubelet take them: DynamicContainers=false,DynamicNodeLocalEphemeralVolumes=true;
    /// both are on unless said
    #[arg(long, value_name = "GATES", value_delimiter = ',', conflicts_with = "pods", value_parser = gate)]
    pub feature_gates: Vec<(Gate, bool)>,
    /// The version of Kubernetes that the API says it is
    #[arg(long, value_name = "VERSION", default_value = "v1.33.0+nodefold", conflicts_with = "pods")]
    pub kube_version: String,
    /// Tell every fact and command
    #[arg(short, long)]
    pub verbose: bool,
}

/// What executes an agent's commands.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum AgentBackend {
    /// This host
    Linux,
    /// The simulated world, in real time
    Sim,
}

/// `nodefold history`
#[derive(Debug, Args)]
pub struct History {
    /// The journal's directory
    pub journal: PathBuf,
    /// Of what
    #[arg(long, value_enum, default_value_t = HistoryOf::Containers)]
    pub what: HistoryOf,
    /// Only what was under way then (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with_all = ["ago", "as_of", "revision"])]
    pub at: Option<String>,
    /// The same, so long ago: 90s, 1h30m, 2d
    #[arg(long, value_name = "SPAN", conflicts_with_all = ["as_of", "revision"])]
    pub ago: Option<String>,
    /// All that was known then (RFC 3339), and nothing that came later
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "revision")]
    pub as_of: Option<String>,
    /// The same at a version of the history: the resourceVersion of a list of it
    #[arg(long, value_name = "VERSION")]
    pub revision: Option<u64>,
    /// One JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// What `nodefold history` tells of.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub enum HistoryOf {
    /// Runs of containers
    Containers,
    /// Runs of volumes
    Volumes,
    /// What was allocated to pods
    Allocations,
}

impl HistoryOf {
    /// As the API calls it.
    pub const fn kind(self) -> Kind {
        match self {
            HistoryOf::Containers => Kind::ContainerRun,
            HistoryOf::Volumes => Kind::VolumeRun,
            HistoryOf::Allocations => Kind::Allocation,
        }
    }
}

/// `nodefold kubeconfig`
#[derive(Debug, Args)]
pub struct Kubeconfig {
    /// The node's directory
    #[arg(long, value_name = "DIR", default_value = DATA)]
    pub data: PathBuf,
    /// Whose
    #[arg(long, value_name = "NAME")]
    pub user: String,
    /// A group that the user is in
    #[arg(long = "group", value_name = "GROUP")]
    pub groups: Vec<String>,
}

/// `nodefold image`
#[derive(Debug, Args)]
pub struct Image {
    /// What
    #[command(subcommand)]
    pub what: ImageCommand,
    /// The node's directory
    #[arg(long, value_name = "DIR", default_value = DATA, global = true)]
    pub data: PathBuf,
}

/// What to do with images.
#[derive(Debug, Subcommand)]
pub enum ImageCommand {
    /// Take in what an OCI layout or an archive (oci-archive, docker save; plain, gzip or zstd) has, every digest checked
    Import {
        /// The layout's directory, or the archive
        path: PathBuf,
        /// Its name, if it has one image
        #[arg(long, value_name = "NAME[:TAG]")]
        name: Option<String>,
    },
    /// The images, their digests, and who holds them
    Ls {
        /// JSON, one object a line
        #[arg(long)]
        json: bool,
    },
    /// Take a name away, and the image with its last one; or the image of a digest. What is in use stays
    Rm {
        /// A name, or sha256:...
        image: String,
    },
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
    /// Go on until the container ends
    #[arg(short, long)]
    pub follow: bool,
    /// Of the instance before
    #[arg(short, long, conflicts_with = "follow")]
    pub previous: bool,
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

/// Checks an RFC 3339 time.
fn moment(text: &str) -> Result<String, String> {
    match nodefold_k8s::time::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("write an RFC 3339 time, as in 2026-03-01T12:00:00Z".into()),
    }
}

/// Reads `NAME=PATH`.
fn time(text: &str) -> Result<Nanos, String> {
    let number_ends = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(number_ends);
    let number: u64 = number.parse().map_err(|_| "write a number with a unit: 500ms, 10s, 1m".to_owned())?;
    match unit {
        "ms" => Ok(Nanos::millis(number)),
        "s" => Ok(Nanos::secs(number)),
        "m" => Ok(Nanos::secs(number.saturating_mul(60))),
        other => Err(format!("{other:?} is no unit: write 500ms, 10s or 1m")),
    }
}

/// A feature gate.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    DynamicContainers,
    DynamicNodeLocalEphemeralVolumes,
}

fn gate(text: &str) -> Result<(Gate, bool), String> {
    let (name, on) = text.split_once('=').ok_or("write NAME=true or NAME=false")?;
    let gate = match name {
        "DynamicContainers" => Gate::DynamicContainers,
        "DynamicNodeLocalEphemeralVolumes" => Gate::DynamicNodeLocalEphemeralVolumes,
        _ => return Err("the gates are DynamicContainers and DynamicNodeLocalEphemeralVolumes".to_owned()),
    };
    Ok((gate, on.parse().map_err(|_| "a gate is true or false")?))
}

fn bytes(text: &str) -> Result<u64, String> {
    nodefold_k8s::quantity::parse(text).map(|quantity| quantity.units()).map_err(|error| error.to_string())
}

fn image(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok((name.to_owned(), path.into())),
        Some(_) | None => Err("write NAME=PATH, as in registry.local/app=/srv/app-root".into()),
    }
}

/// `nodefold judge`
#[derive(Debug, Args)]
#[command(
    after_help = "Recognised by content, plain, .gz or .zst: kubelet logs of every era behind any collector, API \
watches, lists, audit logs, Events, containerd and CRI-O logs, `ctr events`, crictl listings, mount tables, kubelet \
checkpoints.\n\nExit status: 0 clean; 1 findings; 2 nothing recognisable in the input."
)]
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
    /// Let nodefold's core follow the facts, and say where it would have done otherwise
    #[arg(long)]
    pub shadow: bool,
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

/// `nodefold import`
#[derive(Debug, Args)]
pub struct Import {
    /// What the node left behind (`-`: standard input)
    #[arg(required = true, value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// Write the journal into this directory, which must not hold one
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// The year of stamps that have none
    #[arg(long, value_name = "YEAR")]
    pub year: Option<i32>,
    /// JSON instead of lines
    #[arg(long)]
    pub json: bool,
}

/// `nodefold view`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("form").required(true).multiple(true))]
pub struct View {
    /// A journal's directory, or what a node left behind (`-`: standard input)
    #[arg(required = true, value_name = "FILES|JOURNAL")]
    pub files: Vec<PathBuf>,
    /// Write a page: lanes from desired to actual, the evidence behind each entry, the findings
    #[arg(long, value_name = "FILE", group = "form")]
    pub html: Option<PathBuf>,
    /// Write a trace in Chrome's format, for ui.perfetto.dev or chrome://tracing
    #[arg(long, value_name = "FILE", group = "form")]
    pub perfetto: Option<PathBuf>,
    /// The year of stamps that have none
    #[arg(long, value_name = "YEAR")]
    pub year: Option<i32>,
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
    /// Lines, as into a pipe; in a terminal a journal is stepped through unless this or another form is asked for
    #[arg(long)]
    pub lines: bool,
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

/// `nodefold snapshot`
#[derive(Debug, Args)]
pub struct Snapshot {
    /// The journal's directory
    pub journal: PathBuf,
    /// Write no snapshot into the journal, but its state as a document that every version reads into this file
    #[arg(long, value_name = "FILE")]
    pub portable: Option<PathBuf>,
    /// JSON instead of lines
    #[arg(long)]
    pub json: bool,
}

/// `nodefold verify`
#[derive(Debug, Args)]
pub struct Journal {
    /// The journal's directory
    pub journal: PathBuf,
    /// JSON instead of lines
    #[arg(long)]
    pub json: bool,
}

/// `nodefold admit`
#[derive(Debug, Args)]
pub struct Admit {
    /// A directory of the cluster's manifests: webhook configurations, admission policies and bindings, namespaces,
    /// limit ranges, quotas, nodes, roles and bindings, params
    #[arg(long, value_name = "DIR")]
    pub policies: PathBuf,
    /// The pod as it is stored, status included (`kubectl get pod NAME -o yaml`)
    #[arg(long, value_name = "POD.yaml")]
    pub pod: PathBuf,
    /// What is asked: a strategic-merge patch, a list of JSON patch operations, or the whole pod as it shall be
    #[arg(long, value_name = "PATCH.yaml")]
    pub request: PathBuf,
    /// Who asks; without it nobody's roles are looked at
    #[arg(long = "as", value_name = "USER")]
    pub user: Option<String>,
    /// A group that the user is in, besides those that the name implies
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    pub groups: Vec<String>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
    /// Every rule that holds, too
    #[arg(short, long, conflicts_with = "json")]
    pub verbose: bool,
}
