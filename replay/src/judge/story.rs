//! What rules look at: the story of one pod, the lives of its containers, and how far the evidence reaches.

use super::grouped::Grouped;
use super::kind::Kind;
use super::report::{Finding, Note, Report};
use crate::evidence::Witness;
use crate::stamp::{Moment, SECOND};
use crate::trace::{Confidence, ContainerIx, Entry, PodIx, Trace, VolumeIx};
use crate::verb::Verb;

/// PLEG looks once a second and takes a while: what it tells may be this late (node-logs §5: 1 to 3 s).
pub const RELIST: i64 = 3 * SECOND;

/// A trace with what rules ask of it.
pub struct View<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// What is to be judged of it.
    pub entries: &'a [Entry],
    by_pod: Grouped<usize>,
    by_container: Grouped<usize>,
    of_pod: Grouped<ContainerIx>,
    gaps: Vec<Moment>,
    sees_pleg: bool,
    /// The first object of the API, if there is one.
    pub first_object: Option<usize>,
    lives: Vec<Life>,
    /// The last moment in view.
    pub end: Moment,
}

/// A container's life as all witnesses together tell it.
#[derive(Clone, Debug, Default)]
pub struct Life {
    /// It was there: first word of its start or running.
    pub started: Option<(Moment, usize)>,
    /// Its creation.
    pub created: Option<(Moment, usize)>,
    /// Its end to the point: the runtime's time, or the stop call's return.
    pub ended: Option<(Moment, Option<usize>)>,
    /// That end is in whole seconds.
    pub ended_coarse: bool,
    /// Its end as PLEG saw it, late.
    pub seen_dead: Option<(Moment, usize)>,
    /// Stops asked for, with their grace in seconds.
    pub stops: Vec<(Moment, Option<i64>, usize)>,
    /// The stop call's return.
    pub returned: Option<(Moment, usize)>,
    /// The last word that it runs, and by which process.
    pub last_running: Option<(Moment, u64)>,
}

/// One pod's entries.
pub struct Story<'a> {
    /// Which pod.
    pub pod: PodIx,
    /// Its entries, in order.
    pub entries: &'a [usize],
}

impl<'a> View<'a> {
    /// Prepares a trace.
    pub fn new(trace: &'a Trace) -> View<'a> {
        let entries = trace.unjudged();
        let all = || entries.iter().enumerate();
        let of_pods = all().filter_map(|(i, e)| Some((e.pod?.0 as usize, i)));
        let by_pod = Grouped::new(trace.pods.len(), of_pods);
        let of_containers = all().filter_map(|(i, e)| Some((e.container?.0 as usize, i)));
        let by_container = Grouped::new(trace.containers.len(), of_containers);
        let mut lives = vec![Life::default(); trace.containers.len()];
        let mut end = trace.reach.unwrap_or(Moment(i64::MIN));
        for (i, entry) in all() {
            if entry.untimed {
                continue;
            }
            end = end.max(entry.at);
            if let Some(c) = entry.container {
                lives[c.0 as usize].take(entry, i);
            }
        }
        let containers = (0u32..).zip(&trace.containers).filter(|(_, c)| !c.sandbox);
        let of_pod = containers.filter_map(|(i, c)| Some((c.pod?.0 as usize, ContainerIx(i))));
        let of_pod = Grouped::new(trace.pods.len(), of_pod);
        let gaps = trace.gaps.clone();
        let sees_pleg = trace.verbosity >= 2 && trace.sees_pleg;
        let first_object = entries.iter().position(|e| e.witness == Witness::Api);
        for (life, container) in lives.iter_mut().zip(&trace.containers) {
            if let Some(at) = container.finished_at {
                life.ended = Some((at, life.ended.and_then(|(_, i)| i)));
                life.ended_coarse = container.finished_coarse;
            }
        }
        View { trace, entries, by_pod, by_container, of_pod, gaps, sees_pleg, first_object, lives, end }
    }

    /// Every pod's story that foreign evidence tells. Of nodefold's own journals the oracles have judged already, and know
    /// more than any rule here: which life of a volume a container mounts.
    pub fn stories(&self) -> impl Iterator<Item = Story<'_>> {
        let foreign = |entries: &[usize]| entries.iter().any(|i| self.entry(*i).witness != Witness::Journal);
        let told = self.by_pod.groups().filter(move |(_, entries)| foreign(entries));
        told.map(|(pod, entries)| Story { pod: PodIx(u32::try_from(pod).unwrap_or(u32::MAX)), entries })
    }

    /// One pod's story.
    pub fn story(&self, pod: PodIx) -> Story<'_> {
        Story { pod, entries: self.by_pod.of(pod.0 as usize) }
    }

    /// An entry.
    pub fn entry(&self, i: usize) -> &'a Entry {
        &self.trace.entries[i]
    }

    /// A container's life.
    pub fn life(&self, ix: ContainerIx) -> &Life {
        &self.lives[ix.0 as usize]
    }

    /// The containers of a pod, sandboxes aside.
    pub fn containers(&self, pod: PodIx) -> impl Iterator<Item = ContainerIx> + '_ {
        self.of_pod.of(pod.0 as usize).iter().copied()
    }

    /// A container's entries.
    pub fn of_container(&self, c: ContainerIx) -> &[usize] {
        self.by_container.of(c.0 as usize)
    }

    /// Whether a container mounts a volume; `None`: nothing tells.
    pub fn mounts(&self, container: ContainerIx, volume: VolumeIx) -> Option<bool> {
        let c = self.trace.container(container);
        let (pod, of, name) = (c.pod?, c.name.clone()?, self.trace.volume(volume).name.as_ref()?);
        let mounts = self.trace.mounts.get(&(pod, of))?;
        // A claim's mount sentences name the PV, which no spec lists: then nothing tells.
        let known = self.trace.mounts.range((pod, "".into())..).take_while(|((p, _), _)| *p == pod);
        if !known.flat_map(|(_, names)| names).any(|n| n == name) && mounts.iter().any(|m| m != name) {
            return if mounts.is_empty() { Some(false) } else { None };
        }
        Some(mounts.contains(name))
    }

    /// Whether one run of the kubelet wrote all the while between two moments: nothing that it does went unseen.
    pub fn covered(&self, from: Moment, to: Moment) -> bool {
        let runs: Vec<_> = self.trace.runs.iter().filter(|r| r.first <= to && r.last >= from).collect();
        let one = runs.len() == 1 && runs[0].first <= from;
        let gap = self.gaps.iter().any(|g| *g >= from && *g <= to);
        one && !gap
    }

    /// Whether the kubelet's view of the runtime is in the log at all (V2).
    pub fn sees_pleg(&self) -> bool {
        self.sees_pleg
    }

    /// A finding of a pod by entries.
    pub fn finding(
        &self,
        kind: Kind,
        pod: Option<PodIx>,
        evidence: &[usize],
        explanation: String,
    ) -> Finding {
        let mut evidence = evidence.to_vec();
        evidence.sort_unstable();
        evidence.dedup();
        let confidence =
            evidence.iter().map(|i| self.entry(*i).confidence).min().unwrap_or(Confidence::Derived);
        let at = evidence
            .iter()
            .map(|i| self.entry(*i))
            .filter(|e| !e.untimed)
            .map(|e| e.at)
            .max()
            .unwrap_or(self.end);
        Finding {
            kind,
            invariant: kind.invariant(),
            pod,
            instance: None,
            at,
            explanation,
            evidence,
            confidence,
            resolved: false,
            count: 1,
        }
    }
}

impl Life {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "names the few verbs it reads; the others say nothing to it"
    )]
    fn take(&mut self, entry: &Entry, i: usize) {
        let at = entry.at;
        let first = |slot: &mut Option<(Moment, usize)>| {
            if slot.is_none_or(|(old, _)| at < old) {
                *slot = Some((at, i));
            }
        };
        match entry.verb {
            Verb::ContainerCreated if !entry.coarse => first(&mut self.created),
            Verb::ContainerStarted | Verb::ContainerRunning => {
                if !entry.coarse || self.started.is_none() {
                    first(&mut self.started);
                }
                if self.last_running.is_none_or(|(old, _)| at >= old) {
                    self.last_running = Some((at, entry.pid));
                }
            }
            Verb::ContainerDead | Verb::ContainerGone => first(&mut self.seen_dead),
            // "container finished" is PLEG's word, as late as the rest of it.
            Verb::ContainerExited if entry.witness == Witness::Kubelet => first(&mut self.seen_dead),
            Verb::ContainerExited => self.end(at, i),
            Verb::StopReturned => {
                if self.returned.is_none() {
                    self.returned = Some((at, i));
                }
                self.end(at, i);
            }
            Verb::ContainerRemoved => self.end(at, i),
            Verb::StopRequested | Verb::RuntimeStop | Verb::GraceOverridden => {
                self.stops.push((at, entry.payload.grace(), i));
            }
            _ => {}
        }
    }

    fn end(&mut self, at: Moment, i: usize) {
        if self.ended.is_none_or(|(old, _)| at < old) {
            self.ended = Some((at, Some(i)));
        }
    }

    /// Whether it had surely not ended yet at a moment, as far as the point goes: `Some(true)` it still ran,
    /// `Some(false)` it had ended, `None` nothing tells.
    pub fn ran_at(&self, at: Moment) -> Option<bool> {
        if let Some((end, _)) = self.ended {
            // Whole seconds: an end within the same second may have been before. A stop that returned well after the
            // moment tells that nobody could know yet, and unknown is in use (S1).
            if self.ended_coarse && end <= at && at.since(end) < SECOND {
                return Some(self.returned.is_some_and(|(returned, _)| returned.since(at) > 3 * SECOND / 10));
            }
            return Some(end > at);
        }
        let (dead, _) = self.seen_dead?;
        // Late observation explains a difference of a relist.
        if dead <= at || dead.since(at) <= RELIST { Some(false) } else { Some(true) }
    }

    /// The proof of its end.
    pub fn end_entry(&self) -> Option<usize> {
        self.ended.and_then(|(_, i)| i).or(self.seen_dead.map(|(_, i)| i))
    }
}

impl Story<'_> {
    /// The first entry with one of these verbs.
    pub fn first(&self, view: &View<'_>, verbs: &[Verb]) -> Option<usize> {
        self.entries.iter().copied().find(|i| verbs.contains(&view.entry(*i).verb))
    }
    /// The last entry with one of these verbs.
    pub fn last(&self, view: &View<'_>, verbs: &[Verb]) -> Option<usize> {
        self.entries.iter().rev().copied().find(|i| verbs.contains(&view.entry(*i).verb))
    }
    /// All entries with one of these verbs.
    pub fn all<'s>(
        &'s self,
        view: &'s View<'_>,
        verbs: &'s [Verb],
    ) -> impl DoubleEndedIterator<Item = usize> + 's {
        self.entries.iter().copied().filter(move |i| verbs.contains(&view.entry(*i).verb))
    }
}

/// Notes something.
pub fn note(report: &mut Report, kind: &'static str, text: String, evidence: &[usize]) {
    report.notes.push(Note { kind, text, evidence: evidence.to_vec() });
}

/// A length of time as people say it.
pub fn spoken(nanos: i64) -> String {
    let ms = nanos / 1_000_000;
    match ms.abs() {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{}.{}s", ms / 1000, ms.abs() % 1000 / 100),
        60_000..3_600_000 => format!("{}m{}s", ms / 60_000, ms.abs() / 1000 % 60),
        _ => format!("{}h{}m", ms / 3_600_000, ms.abs() / 60_000 % 60),
    }
}
