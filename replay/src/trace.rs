//! The trace: what all files together say, in order, each entry with its place, its confidence and the instances that it
//! is about. What the evidence doesn't say stays unknown.

use crate::evidence::{Name, Payload, Skipped, Witness};
use crate::kept::Carried;
use crate::stamp::{Moment, SECOND, Stamp};
use crate::verb::Verb;
use nodefold_model::Violation;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A pod of the trace, by its index.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodIx(pub u32);
/// A container or sandbox of the trace, by its index.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContainerIx(pub u32);
/// A volume of the trace, by its index.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VolumeIx(pub u32);

/// How sure something is (node-logs §5). A finding has the weakest of its parts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Nothing was seen, although it should have been.
    Absent,
    /// Two lines imply it.
    Derived,
    /// A line says it.
    Seen,
}

impl Confidence {
    /// As reports spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Confidence::Absent => "absent",
            Confidence::Derived => "derived",
            Confidence::Seen => "seen",
        }
    }
}

/// One entry.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When.
    pub at: Moment,
    /// The witness' clock has whole seconds only: finer order means nothing.
    pub coarse: bool,
    /// It has no time of its own: a listing, which holds when it was taken.
    pub untimed: bool,
    /// What.
    pub verb: Verb,
    /// Who says it.
    pub witness: Witness,
    /// In which file, an index into [`Trace::files`].
    pub file: u32,
    /// On which line.
    pub line: u64,
    /// By which process.
    pub pid: u64,
    /// On which host, an index into [`Trace::hosts`].
    pub host: u32,
    /// Of which pod.
    pub pod: Option<PodIx>,
    /// Of which container or sandbox.
    pub container: Option<ContainerIx>,
    /// Of which volume.
    pub volume: Option<VolumeIx>,
    /// What more.
    pub payload: Carried,
    /// How sure.
    pub confidence: Confidence,
    /// The line is cut.
    pub cut: bool,
    /// The volume's directory had been renamed by a failed removal.
    pub artifact: bool,
}

/// A trace has millions.
const _: () = assert!(size_of::<Entry>() <= 72);

/// A pod's life.
#[derive(Clone, Debug, Default)]
pub struct PodLife {
    /// Its UID, if any evidence tells it.
    pub uid: Option<Name>,
    /// Its namespace.
    pub namespace: Option<Name>,
    /// Its name.
    pub name: Option<Name>,
    /// Only the name's beginning is known.
    pub cut: bool,
    /// A static pod: its UID has no dashes.
    pub is_static: bool,
    /// UID and name were joined by inference alone.
    pub inferred: bool,
}

/// A container's or sandbox' life.
#[derive(Clone, Debug, Default)]
pub struct ContainerLife {
    /// Of which pod.
    pub pod: Option<PodIx>,
    /// Its name.
    pub name: Option<Name>,
    /// The runtime's id.
    pub id: Option<Name>,
    /// It is a sandbox.
    pub sandbox: bool,
    /// That it is a sandbox was concluded.
    pub deduced: bool,
    /// Which attempt, if said.
    pub attempt: Option<u32>,
    /// Its end by the runtime's own clock, as statuses and runtime events tell it.
    pub finished_at: Option<Moment>,
    /// That end is in whole seconds.
    pub finished_coarse: bool,
    /// An init container.
    pub init: bool,
}

/// A volume's life.
#[derive(Clone, Debug, Default)]
pub struct VolumeLife {
    /// Of which pod; none for a device, or if unknown.
    pub pod: Option<PodIx>,
    /// Its name in the spec.
    pub name: Option<Name>,
    /// Its unique name.
    pub unique: Option<Name>,
    /// Its plugin.
    pub plugin: Option<Name>,
}

/// One input.
#[derive(Clone, Debug, Default)]
pub struct FileFacts {
    /// Its name as given.
    pub name: String,
    /// Lines read.
    pub lines: u64,
    /// Bytes read, decompressed.
    pub bytes: u64,
    /// Records and objects understood.
    pub recognised: u64,
    /// Lines not used, by reason.
    pub skipped: BTreeMap<Skipped, u64>,
    /// Who speaks in it.
    pub witnesses: Vec<Witness>,
    /// Seconds east of Greenwich that its zone-less stamps were taken for.
    pub offset: i32,
}

/// One run of the kubelet.
#[derive(Clone, Debug)]
pub struct Run {
    /// On which host, an index into [`Trace::hosts`].
    pub host: u32,
    /// Its process.
    pub pid: u64,
    /// Its first record.
    pub first: Moment,
    /// Its last record.
    pub last: Moment,
    /// A start was seen, not only a new number.
    pub started: bool,
}

/// What was in view and is not in the trace any more: stories that were over, and were judged while the rest was read.
#[derive(Clone, Debug, Default)]
pub struct Forgotten {
    /// Pods.
    pub pods: usize,
    /// Volumes of these pods.
    pub volumes: usize,
    /// Volumes that can be in several pods, one after the other, by their unique names.
    pub devices: BTreeSet<Name>,
    /// Containers, no sandboxes.
    pub containers: usize,
    /// Entries.
    pub entries: usize,
    /// The first and the last of them that has a time.
    pub span: Option<(Moment, Moment)>,
    /// The last word of a runtime among them.
    pub runtime_end: Option<Moment>,
}

impl Forgotten {
    /// Counts the entries of a trace, and who is in them.
    pub fn count(&mut self, trace: &Trace) {
        let (mut pods, mut containers) = (BTreeSet::new(), BTreeSet::new());
        let mut volumes = BTreeSet::new();
        self.entries += trace.entries.len();
        for e in &trace.entries {
            pods.extend(e.pod);
            containers.extend(e.container.filter(|c| !trace.container(*c).sandbox));
            volumes.extend(e.volume);
            if e.untimed {
                continue;
            }
            let (from, to) = self.span.unwrap_or((e.at, e.at));
            self.span = Some((from.min(e.at), to.max(e.at)));
            if matches!(e.witness, Witness::Runtime | Witness::RuntimeEvents) {
                self.runtime_end = self.runtime_end.max(Some(e.at));
            }
        }
        self.pods += pods.len();
        self.containers += containers.len();
        let mut own = BTreeSet::new();
        for volume in volumes {
            match trace.volume_key(trace.volume(volume)) {
                Some((pod, unique)) if pod.is_empty() => {
                    self.devices.insert(unique.into());
                }
                Some(key) => {
                    own.insert(key);
                }
                None => {}
            }
        }
        self.volumes += own.len();
    }
}

/// The whole of it, or what is left of it.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The inputs.
    pub files: Vec<FileFacts>,
    /// The hosts that prefixes name; the first is the unnamed one.
    pub hosts: Vec<Name>,
    /// The pods.
    pub pods: Vec<PodLife>,
    /// The containers and sandboxes.
    pub containers: Vec<ContainerLife>,
    /// The volumes.
    pub volumes: Vec<VolumeLife>,
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// Runs of the kubelet.
    pub runs: Vec<Run>,
    /// How far the logs reach, whatever their last records say.
    pub reach: Option<Moment>,
    /// Which volumes a container mounts, where a spec or status tells.
    pub mounts: BTreeMap<(PodIx, Name), Vec<Name>>,
    /// What the oracles found in nodefold's own journals: which file, what, and the records that prove it.
    pub broken: Vec<(usize, Violation, Vec<u64>)>,
    /// What was assumed, and what is worth knowing.
    pub notes: Vec<String>,
    /// The highest verbosity that must have been on.
    pub verbosity: u8,
    /// The kubelet's log has what PLEG sees.
    pub sees_pleg: bool,
    /// When somebody cut something out.
    pub gaps: Vec<Moment>,
    /// What was judged already, and is not here.
    pub forgotten: Forgotten,
    /// What comes behind these is there as proof of findings that were judged already, and not counted again.
    pub own: Option<Own>,
}

/// How much of a trace is its own, and not proof of what was judged already.
#[derive(Copy, Clone, Debug)]
pub struct Own {
    /// Entries.
    pub entries: usize,
    /// Pods.
    pub pods: usize,
    /// Containers and sandboxes.
    pub containers: usize,
    /// Volumes.
    pub volumes: usize,
}

impl Trace {
    /// The pod of an index.
    pub fn pod(&self, ix: PodIx) -> &PodLife {
        &self.pods[ix.0 as usize]
    }
    /// The container of an index.
    pub fn container(&self, ix: ContainerIx) -> &ContainerLife {
        &self.containers[ix.0 as usize]
    }
    /// The volume of an index.
    pub fn volume(&self, ix: VolumeIx) -> &VolumeLife {
        &self.volumes[ix.0 as usize]
    }
    /// Whether any input was understood.
    pub fn is_recognised(&self) -> bool {
        self.files.iter().any(|f| f.recognised > 0)
    }

    /// A pod as people call it.
    pub fn pod_name(&self, ix: PodIx) -> String {
        let pod = self.pod(ix);
        let cut = if pod.cut { "…" } else { "" };
        match (&pod.namespace, &pod.name, &pod.uid) {
            (Some(ns), Some(name), _) => format!("{ns}/{name}{cut}"),
            (None, Some(name), _) => format!("{name}{cut}"),
            (_, None, Some(uid)) => format!("pod {uid}"),
            (_, None, None) => "unknown pod".to_owned(),
        }
    }

    /// A container as people call it.
    pub fn container_name(&self, ix: ContainerIx) -> String {
        let c = self.container(ix);
        let short = c.id.as_deref().map(|id| &id[..id.len().min(12)]);
        match (&c.name, short, c.sandbox) {
            (_, Some(id), true) => format!("sandbox {id}"),
            (_, None, true) => "sandbox".to_owned(),
            (Some(name), Some(id), false) => format!("container {name} ({id})"),
            (Some(name), None, false) => format!("container {name}"),
            (None, Some(id), false) => format!("container {id}"),
            (None, None, false) => "container".to_owned(),
        }
    }

    /// A volume as people call it.
    pub fn volume_name(&self, ix: VolumeIx) -> String {
        let v = self.volume(ix);
        let name = v.name.as_deref().or(v.unique.as_deref()).unwrap_or("unknown");
        format!("volume {name}")
    }

    /// The time of an entry as its own file writes it.
    pub fn clock(&self, entry: &Entry) -> String {
        if entry.untimed {
            return "when listed".to_owned();
        }
        let offset = self.files.get(entry.file as usize).map_or(0, |f| f.offset);
        written(entry.at, offset, entry.coarse)
    }

    /// What an entry says, in a line.
    pub fn describe(&self, entry: &Entry) -> String {
        let mut text = String::new();
        if let Some(volume) = entry.volume {
            let _ = write!(text, "{} ", self.volume_name(volume));
        }
        if let Some(container) = entry.container {
            let _ = write!(text, "{} ", self.container_name(container));
        }
        text.push_str(entry.verb.phrase());
        match &*entry.payload {
            Payload::Nothing | Payload::Status(_) | Payload::Object(_) => {}
            Payload::Grace(seconds) => {
                let _ = write!(text, ", grace {seconds}s");
            }
            Payload::Exit(code, _) => {
                if let Some(code) = code {
                    let _ = write!(text, ", exit code {code}");
                }
            }
            Payload::Text(detail) => {
                let _ = write!(text, ": {}", one_line(detail));
            }
            Payload::Retry { error, pause_ms } => {
                let _ = write!(text, " (again after {pause_ms}ms): {}", one_line(error));
            }
            Payload::Count(n, detail) => {
                let _ = write!(text, " ({n} like it): {}", one_line(detail));
            }
            Payload::Phase { old, new } => {
                let _ = write!(text, ": {old} -> {new}");
            }
            Payload::Names(names) => {
                let _ = write!(text, ": {}", names.join(" "));
            }
            Payload::Other(uid) => {
                let _ = write!(text, " (uid {uid})");
            }
        }
        if let Payload::Status(status) = &*entry.payload
            && let Some(phase) = &status.phase
        {
            let _ = write!(text, ": phase {phase}");
        }
        text
    }

    /// The entries that nobody has judged yet.
    pub fn unjudged(&self) -> &[Entry] {
        &self.entries[..self.own().entries]
    }

    /// How much of it is its own.
    pub fn own(&self) -> Own {
        self.own.unwrap_or(Own {
            entries: self.entries.len(),
            pods: self.pods.len(),
            containers: self.containers.len(),
            volumes: self.volumes.len(),
        })
    }

    /// How many pods are in view: UIDs, and names without one.
    pub fn pod_count(&self) -> usize {
        let mut seen: Vec<(Option<&Name>, Option<&Name>, Option<&Name>)> = self.pods[..self.own().pods]
            .iter()
            .filter(|p| p.uid.is_some() || p.name.is_some())
            .map(|p| match &p.uid {
                Some(uid) => (Some(uid), None, None),
                // Two lives of one name without a UID are one pod as far as anybody can count.
                None => (None, p.namespace.as_ref(), p.name.as_ref()),
            })
            .collect();
        seen.sort();
        seen.dedup();
        seen.len() + self.forgotten.pods
    }

    /// What tells a volume from others: of which pod, and its name. A static pod's host paths are the same in all its lives.
    fn volume_key(&self, volume: &VolumeLife) -> Option<(String, String)> {
        let per_pod = volume.unique.as_deref().is_none_or(|u| crate::klog::has_own_volume(u.as_bytes()));
        match (&volume.unique, &volume.name, volume.pod) {
            (Some(unique), _, _) if !per_pod => Some((String::new(), unique.to_string())),
            (_, Some(name), Some(pod)) if self.pod(pod).is_static => {
                Some((self.pod_name(pod), name.to_string()))
            }
            (_, Some(name), Some(pod)) => Some((pod.0.to_string(), name.to_string())),
            (_, Some(name), None) => Some((String::new(), name.to_string())),
            (Some(unique), None, _) => Some((String::new(), unique.to_string())),
            (None, None, _) => None,
        }
    }

    /// How many volumes are in view.
    pub fn volume_count(&self) -> usize {
        let own = self.volumes[..self.own().volumes].iter();
        let mut seen: Vec<(String, String)> = own.filter_map(|v| self.volume_key(v)).collect();
        seen.extend(self.forgotten.devices.iter().map(|unique| (String::new(), unique.to_string())));
        seen.sort();
        seen.dedup();
        seen.len() + self.forgotten.volumes
    }

    /// How many containers are in view, without sandboxes.
    pub fn container_count(&self) -> usize {
        self.containers[..self.own().containers].iter().filter(|c| !c.sandbox).count()
            + self.forgotten.containers
    }

    /// How many entries there are, or were.
    pub fn entry_count(&self) -> usize {
        self.unjudged().len() + self.forgotten.entries
    }

    /// From when to when anything is told.
    pub fn span(&self) -> Option<(Moment, Moment)> {
        let mut timed = self.unjudged().iter().filter(|e| !e.untimed).map(|e| e.at);
        let own = timed.next().map(|first| (first, timed.next_back().unwrap_or(first)));
        match (own, self.forgotten.span) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (one, other) => one.or(other),
        }
    }
}

/// The first line of a text, not too long.
pub fn one_line(text: &str) -> String {
    const WIDE: usize = 160;
    let first = text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
    match first.char_indices().nth(WIDE) {
        Some((at, _)) => format!("{}…", &first[..at]),
        None => first.to_owned(),
    }
}

/// A moment as a zone writes it: `2025-03-16 04:31:21.080604`.
pub fn written(at: Moment, offset: i32, coarse: bool) -> String {
    let s = Stamp::at(at, offset);
    let seconds = s.of_day / SECOND;
    let mut text = format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        s.year.unwrap_or(0),
        s.month,
        s.day,
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    );
    if !coarse {
        let _ = write!(text, ".{:06}", s.of_day % SECOND / 1000);
    }
    text
}
