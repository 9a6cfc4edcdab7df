//! What importers hand over: drafts of trace entries, not yet placed in time or tied to instances.
//!
//! Importers write down what a line says and nothing else. Who "pod default/web" is, and when "0316 04:31" was, is
//! decided in `identity` and `clock`, by all the evidence together.

use crate::kept::Kept;
use crate::names::Names;
use crate::stamp::Stamp;
use crate::verb::Verb;
use nodefold_core::spec::Pod;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A shared string.
pub use nodefold_core::ids::Name;

/// Which kind of witness says it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Witness {
    /// The kubelet's log.
    Kubelet,
    /// containerd's, CRI-O's or dockerd's log.
    Runtime,
    /// The runtime's own events (`ctr events`).
    RuntimeEvents,
    /// A listing of the runtime (`crictl`).
    RuntimeList,
    /// The API: watch, list, file.
    Api,
    /// The API server's audit log.
    Audit,
    /// Kubernetes Events.
    Events,
    /// The kernel's mount table.
    Mounts,
    /// The kubelet's checkpoints.
    Checkpoint,
    /// systemd.
    System,
    /// A CSI driver's log.
    Driver,
    /// nodefold's own journal.
    Journal,
}

impl Witness {
    /// As reports call it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Witness::Kubelet => "kubelet log",
            Witness::Runtime => "runtime log",
            Witness::RuntimeEvents => "runtime events",
            Witness::RuntimeList => "runtime listing",
            Witness::Api => "API objects",
            Witness::Audit => "audit log",
            Witness::Events => "Kubernetes Events",
            Witness::Mounts => "mount table",
            Witness::Checkpoint => "checkpoint",
            Witness::System => "systemd",
            Witness::Driver => "driver log",
            Witness::Journal => "nodefold journal",
        }
    }
}

/// What a line says of the pod it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodHint {
    /// Its UID.
    pub uid: Option<Name>,
    /// Its namespace.
    pub namespace: Option<Name>,
    /// Its name.
    pub name: Option<Name>,
    /// The name is cut: only its beginning is here.
    pub cut: bool,
}

impl PodHint {
    /// Whether it says anything.
    pub fn is_empty(&self) -> bool {
        self.uid.is_none() && self.name.is_none()
    }
}

/// What a line says of the container or sandbox it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerHint {
    /// The runtime's id, maybe only its beginning.
    pub id: Option<Name>,
    /// The name in the pod's spec.
    pub name: Option<Name>,
    /// Restart count or attempt.
    pub attempt: Option<u32>,
    /// It is a sandbox (`Some(true)`), a container (`Some(false)`), or the line doesn't say.
    pub sandbox: Option<bool>,
}

impl ContainerHint {
    /// Whether it says anything.
    pub fn is_empty(&self) -> bool {
        self.id.is_none() && self.name.is_none()
    }
}

/// What a line says of the volume it is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeHint {
    /// The name in the pod's spec.
    pub name: Option<Name>,
    /// The unique name: plugin and handle, or plugin, UID and name.
    pub unique: Option<Name>,
    /// The plugin.
    pub plugin: Option<Name>,
    /// The path on the host.
    pub path: Option<Name>,
    /// The name comes from a directory that a failed removal had renamed.
    pub artifact: bool,
}

impl VolumeHint {
    /// Whether it says anything.
    pub fn is_empty(&self) -> bool {
        self.name.is_none() && self.unique.is_none()
    }
}

/// A container's state as a status shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusOfContainer {
    /// Its name.
    pub name: Option<Name>,
    /// Its id, without the runtime's prefix.
    pub id: Option<Name>,
    /// `waiting`, `running` or `terminated`.
    pub state: Option<&'static str>,
    /// The reason.
    pub reason: Option<Name>,
    /// The exit code.
    pub exit_code: Option<i64>,
    /// `startedAt`.
    pub started_at: Option<Stamp>,
    /// `finishedAt`.
    pub finished_at: Option<Stamp>,
    /// The id that `lastState.terminated` is about, its exit code and end.
    pub last: Option<(Name, i64, Option<Stamp>)>,
    /// `restartCount`.
    pub restarts: Option<u32>,
    /// An init container.
    pub init: bool,
    /// The volumes that it really mounts (1.30 and later).
    pub mounts: Option<Vec<Name>>,
}

/// A status, whole or patched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusSeen {
    /// The phase, if said.
    pub phase: Option<Name>,
    /// The reason, if said.
    pub reason: Option<Name>,
    /// Containers that it speaks of.
    pub containers: Vec<StatusOfContainer>,
    /// The Ready condition, if said.
    pub ready: Option<bool>,
}

/// An object of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectSeen {
    /// The pod, typed. None if the boundary could not read it (the reason is counted).
    pub pod: Option<Arc<Pod>>,
    /// `resourceVersion`.
    pub resource_version: Option<Name>,
    /// `deletionTimestamp`, and the grace in seconds.
    pub deletion: Option<(Stamp, i64)>,
    /// Finalizers hold the object.
    pub finalizers: bool,
    /// The status.
    pub status: StatusSeen,
    /// Which volumes each container mounts, by the spec.
    pub mounts: BTreeMap<Name, Vec<Name>>,
    /// It is the mirror of a static pod: the static pod's UID.
    pub mirror_of: Option<Name>,
    /// `terminationGracePeriodSeconds`.
    pub grace: Option<i64>,
    /// `spec.restartPolicy`.
    pub restart_policy: Option<Name>,
}

/// More than a verb: what a line carries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// Nothing more.
    #[default]
    Nothing,
    /// Seconds of grace or timeout.
    Grace(i64),
    /// An exit code, and when it ended, where said.
    Exit(Option<i64>, Option<Stamp>),
    /// Some text: an error, a plan, a reason.
    Text(Name),
    /// An operation failed, and is tried again after so many milliseconds.
    Retry {
        /// The error.
        error: Name,
        /// The pause.
        pause_ms: i64,
    },
    /// A number of hidden errors and the first of them.
    Count(i64, Name),
    /// From a phase to another.
    Phase {
        /// Before.
        old: Name,
        /// After.
        new: Name,
    },
    /// Names, of volumes that wait.
    Names(Vec<Name>),
    /// A status.
    Status(Box<StatusSeen>),
    /// An object.
    Object(Box<ObjectSeen>),
    /// Another UID.
    Other(Name),
}

impl Payload {
    /// The grace in it, in seconds.
    pub fn grace(&self) -> Option<i64> {
        if let Payload::Grace(seconds) = self { Some(*seconds) } else { None }
    }
    /// The exit code in it.
    pub fn exit_code(&self) -> Option<i64> {
        if let Payload::Exit(code, _) = self { *code } else { None }
    }
    /// How many errors hide behind it.
    pub fn hidden(&self) -> Option<i64> {
        if let Payload::Count(n, _) = self { Some(*n) } else { None }
    }
    /// The names in it.
    pub fn names(&self) -> &[Name] {
        if let Payload::Names(names) = self { names } else { &[] }
    }
    /// The object in it.
    pub fn object(&self) -> Option<&ObjectSeen> {
        if let Payload::Object(object) = self { Some(object) } else { None }
    }
    /// The patched or written status in it.
    pub fn status(&self) -> Option<&StatusSeen> {
        if let Payload::Status(status) = self { Some(status) } else { None }
    }
    /// The text in it, if it has one.
    pub fn text(&self) -> Option<&Name> {
        match self {
            Payload::Text(text) | Payload::Retry { error: text, .. } | Payload::Count(_, text) => Some(text),
            Payload::Nothing
            | Payload::Grace(_)
            | Payload::Exit(..)
            | Payload::Phase { .. }
            | Payload::Names(_)
            | Payload::Status(_)
            | Payload::Object(_)
            | Payload::Other(_) => None,
        }
    }
}

/// One thing that a line or object says, before it has a place in the trace.
#[derive(Clone, Debug)]
pub struct Draft {
    /// When, as written.
    pub when: Option<Stamp>,
    /// The wrapper's time, which helps where the line's own is missing or slipped.
    pub received: Option<Stamp>,
    /// The line, from 1.
    pub line: u64,
    /// Who says it.
    pub witness: Witness,
    /// On which host, where said.
    pub host: Option<Name>,
    /// The process that wrote it, 0 if not said.
    pub pid: u64,
    /// What.
    pub verb: Verb,
    /// Of which pod.
    pub pod: PodHint,
    /// Of which container or sandbox.
    pub container: ContainerHint,
    /// Of which volume.
    pub volume: VolumeHint,
    /// What more.
    pub payload: Payload,
    /// The line is cut.
    pub cut: bool,
}

impl Draft {
    /// A draft that says one verb and nothing more.
    pub fn new(verb: Verb, witness: Witness, line: u64) -> Draft {
        Draft {
            when: None,
            received: None,
            line,
            witness,
            host: None,
            pid: 0,
            verb,
            pod: PodHint::default(),
            container: ContainerHint::default(),
            volume: VolumeHint::default(),
            payload: Payload::Nothing,
            cut: false,
        }
    }
}

/// Why something was not read. Each skipped line is counted under one of these.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skipped {
    /// Blank lines.
    Blank,
    /// Records of a known writer that say nothing of a lifecycle.
    NothingSaid,
    /// Lines of other programs.
    Foreign,
    /// What people and shells put between records.
    Separator,
    /// Continuations of records that say nothing, or whose first line is missing.
    Continuation,
    /// The same record once more.
    Duplicate,
    /// JSON that doesn't parse.
    BadJson,
    /// Objects of other kinds.
    OtherObject,
    /// Longer than any record: the rest of the line was not read.
    TooLong,
    /// Stack traces after a panic.
    StackTrace,
    /// A compressed file that ends or breaks early.
    BrokenStream,
    /// Objects that the boundary refuses.
    BadObject,
    /// No time, and none near it.
    NoTime,
}

impl Skipped {
    /// How many reasons there are.
    pub const COUNT: usize = 13;
    /// Every reason, in order.
    pub const ALL: [Skipped; Skipped::COUNT] = [
        Skipped::Blank,
        Skipped::NothingSaid,
        Skipped::Foreign,
        Skipped::Separator,
        Skipped::Continuation,
        Skipped::Duplicate,
        Skipped::BadJson,
        Skipped::OtherObject,
        Skipped::TooLong,
        Skipped::StackTrace,
        Skipped::BrokenStream,
        Skipped::BadObject,
        Skipped::NoTime,
    ];
    /// As reports spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Skipped::Blank => "blank",
            Skipped::NothingSaid => "says nothing of a lifecycle",
            Skipped::Foreign => "another program's",
            Skipped::Separator => "separator",
            Skipped::Continuation => "continuation",
            Skipped::Duplicate => "duplicate",
            Skipped::BadJson => "damaged JSON",
            Skipped::OtherObject => "object of another kind",
            Skipped::TooLong => "too long",
            Skipped::StackTrace => "stack trace",
            Skipped::BrokenStream => "broken compressed stream",
            Skipped::BadObject => "unreadable object",
            Skipped::NoTime => "no time",
        }
    }
}

/// What an importer hands over and counts.
#[derive(Debug, Default)]
pub struct Sink {
    /// Drafts in the order of the input.
    pub drafts: Vec<Kept>,
    /// The names in them.
    pub names: Names,
    /// Lines or objects not used, by reason.
    pub skipped: [u64; Skipped::COUNT],
    /// Lines that were understood as a record of some known writer.
    pub recognised: u64,
    /// Bare dates that tell the year: (year, month).
    pub years: Vec<(i32, u8)>,
    /// Zones that retry deadlines tell, in seconds east, with how often.
    pub zones: BTreeMap<i32, u32>,
    /// The highest verbosity that must have been on.
    pub verbosity: u8,
    /// The last stamp of each process of a kubelet, whatever its record said: how far the log reaches.
    pub reach: BTreeMap<u64, Stamp>,
    /// What happened on the way that a reader should know.
    pub remarks: BTreeMap<String, u64>,
}

impl Sink {
    /// Counts what is not used.
    pub fn skip(&mut self, why: Skipped) {
        self.skipped[why as usize] += 1;
    }
    /// Hands over a draft.
    pub fn push(&mut self, draft: Draft) {
        self.drafts.push(Kept::new(draft, &mut self.names));
    }
    /// Takes in what was found in the lines that follow.
    pub fn absorb(&mut self, next: Sink) {
        let Sink { mut drafts, names, skipped, recognised, years, zones, verbosity, reach, remarks } = next;
        let renamed = self.names.absorb(&names);
        drafts.iter_mut().for_each(|k| k.rename(&renamed));
        // Room that nothing is written to costs nothing, and moving house costs twice the room: so it is seldom.
        let want = self.drafts.len() + drafts.len();
        if want > self.drafts.capacity() {
            self.drafts.reserve_exact((7 * self.drafts.len()).max(1 << 14).max(drafts.len()));
        }
        self.drafts.append(&mut drafts);
        for (of, n) in self.skipped.iter_mut().zip(skipped) {
            *of += n;
        }
        self.recognised += recognised;
        self.years.extend(years);
        for (zone, n) in zones {
            *self.zones.entry(zone).or_default() += n;
        }
        self.verbosity = self.verbosity.max(verbosity);
        self.reach.extend(reach);
        for (remark, n) in remarks {
            *self.remarks.entry(remark).or_default() += n;
        }
    }
    /// Remarks something, once per kind with a count.
    pub fn remark(&mut self, what: &str) {
        match self.remarks.get_mut(what) {
            Some(n) => *n += 1,
            None => {
                self.remarks.insert(what.to_owned(), 1);
            }
        }
    }
}
