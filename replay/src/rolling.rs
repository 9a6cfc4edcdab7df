//! Judging while reading: stories that are over are judged and forgotten, and of each finding only the lines stay that prove it.
//!
//! Owns when that is done and what stays. So memory is bounded by what lives, and by what was told in the last five minutes of
//! the log; what a living pod, the node itself, static pods and listings have told is kept to the end.

use crate::evidence::Sink;
use crate::judge::{self, Finding, Kind, Note, Report};
use crate::merge::{Foreknown, Imported, Merging, Options};
use crate::trace::{ContainerIx, ContainerLife, Entry, Own, PodIx, PodLife, Trace, VolumeIx, VolumeLife};
use std::collections::BTreeMap;

/// So many drafts are held before it is looked for stories that are over.
pub const WINDOW: usize = 1 << 15;

/// So many drafts out of order are taken as they come: what they belong to is judged for itself.
const MOST_LATE: u64 = 256;

/// Why the inputs have to be read once more.
pub enum Again {
    /// Something told late was needed early.
    Knowing(Foreknown),
    /// They are not in order of time: all has to be held.
    Holding,
}

/// A judge at work.
pub struct Rolling {
    merging: Merging,
    judged: Judged,
    /// How many drafts are held before the next look.
    next: usize,
    window: usize,
}

/// What stays of stories that were judged.
#[derive(Default)]
struct Judged {
    pods: Vec<PodLife>,
    containers: Vec<ContainerLife>,
    volumes: Vec<VolumeLife>,
    entries: Vec<Entry>,
    findings: Vec<Finding>,
    notes: Vec<Note>,
}

impl Rolling {
    /// Nothing read yet, of so many files.
    pub fn new(files: usize, options: &Options, window: usize, foreknown: Foreknown) -> Rolling {
        let merging = Merging::new(files, options, foreknown);
        Rolling { merging, judged: Judged::default(), next: window, window }
    }

    /// Takes in what the importer of a file has found, and judges what is over if enough is held.
    pub fn take(&mut self, file: usize, sinks: &mut [&mut Sink], done: &[bool]) {
        self.merging.take(file, sinks[file]);
        if self.merging.len() < self.next {
            return;
        }
        let sinks: Vec<&Sink> = sinks.iter().map(|s| &**s).collect();
        if let Some(trace) = self.merging.take_over(&sinks, done) {
            self.judged.keep(trace);
        }
        // So that looking costs no more than reading did.
        self.next = self.merging.len() + self.window.max(self.merging.len());
    }

    /// How far a file has come.
    pub fn reach(&self, file: usize) -> Option<crate::stamp::Moment> {
        self.merging.reach(file)
    }

    /// Whether the inputs have to be read once more, for the verdict to be what it would be if all were held.
    pub fn again<'s>(&self, sinks: impl Iterator<Item = &'s Sink>) -> Option<Again> {
        if self.merging.late() > MOST_LATE {
            return Some(Again::Holding);
        }
        self.merging.should_have_known(sinks).map(Again::Knowing)
    }

    /// The verdict, and the trace of what is left and of what proves it.
    pub fn finish(self, inputs: Vec<Imported>) -> (Trace, Report) {
        let mut trace = self.merging.finish(inputs);
        let waits_told = self.judged.findings.iter().any(|f| f.kind == Kind::VolumeWaitStuck);
        let mut report = judge::rest(&trace, waits_told);
        self.judged.recall(&mut trace, &mut report);
        (trace, report)
    }
}

impl Judged {
    /// Judges stories that are over, and keeps what proves it.
    fn keep(&mut self, trace: Trace) {
        let Report { mut findings, mut notes } = judge::over(&trace);
        let mut kept = Moved { trace, to: self, entries: BTreeMap::new(), pods: BTreeMap::new() };
        for finding in &mut findings {
            finding.evidence.iter_mut().for_each(|i| *i = kept.entry(*i));
            finding.pod = finding.pod.map(|p| kept.pod(p));
        }
        for note in &mut notes {
            note.evidence.iter_mut().for_each(|i| *i = kept.entry(*i));
        }
        self.findings.append(&mut findings);
        self.notes.append(&mut notes);
    }

    /// Puts what was judged into the trace and the report of the rest.
    fn recall(self, trace: &mut Trace, report: &mut Report) {
        let Judged { pods, containers, volumes, entries, mut findings, notes } = self;
        if findings.is_empty() && notes.is_empty() {
            return;
        }
        let own = trace.own();
        trace.own = Some(own);
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let pod = |p: PodIx| PodIx(number(own.pods) + p.0);
        let container = |c: ContainerIx| ContainerIx(number(own.containers) + c.0);
        let volume = |v: VolumeIx| VolumeIx(number(own.volumes) + v.0);
        trace.pods.extend(pods);
        trace.containers.extend(containers);
        trace.volumes.extend(volumes);
        trace.entries.extend(entries.into_iter().map(|e| Entry {
            host: 0,
            pod: e.pod.map(pod),
            container: e.container.map(container),
            volume: e.volume.map(volume),
            ..e
        }));
        let moved =
            |evidence: &mut Vec<usize>, own: &Own| evidence.iter_mut().for_each(|i| *i += own.entries);
        for finding in &mut findings {
            moved(&mut finding.evidence, &own);
            finding.pod = finding.pod.map(pod);
        }
        report.findings.append(&mut findings);
        judge::in_order(trace, &mut report.findings);
        let later = std::mem::take(&mut report.notes);
        report.notes.extend(notes.into_iter().map(|mut note| {
            moved(&mut note.evidence, &own);
            note
        }));
        report.notes.extend(later);
    }
}

/// Entries and instances on their way from a trace that will be forgotten.
struct Moved<'j> {
    trace: Trace,
    to: &'j mut Judged,
    entries: BTreeMap<usize, usize>,
    pods: BTreeMap<PodIx, PodIx>,
}

impl Moved<'_> {
    fn pod(&mut self, p: PodIx) -> PodIx {
        *self.pods.entry(p).or_insert_with(|| {
            self.to.pods.push(self.trace.pod(p).clone());
            PodIx(u32::try_from(self.to.pods.len() - 1).unwrap_or(u32::MAX))
        })
    }

    fn entry(&mut self, i: usize) -> usize {
        if let Some(known) = self.entries.get(&i) {
            return *known;
        }
        let mut entry = self.trace.entries[i].clone();
        entry.pod = entry.pod.map(|p| self.pod(p));
        entry.container = entry.container.map(|c| {
            let mut life = self.trace.container(c).clone();
            life.pod = life.pod.map(|p| self.pod(p));
            self.to.containers.push(life);
            ContainerIx(u32::try_from(self.to.containers.len() - 1).unwrap_or(u32::MAX))
        });
        entry.volume = entry.volume.map(|v| {
            let mut life = self.trace.volume(v).clone();
            life.pod = life.pod.map(|p| self.pod(p));
            self.to.volumes.push(life);
            VolumeIx(u32::try_from(self.to.volumes.len() - 1).unwrap_or(u32::MAX))
        });
        self.to.entries.push(entry);
        self.entries.insert(i, self.to.entries.len() - 1);
        self.to.entries.len() - 1
    }
}
