//! A picture of what any node left behind: the trace's entries, tied to lanes, with the lines they were read from.

use super::stages::Moving;
use super::{Entry, Finding, Lane, LaneKind, Picture, Source, Stage};
use crate::judge_view::{is_trouble, matters};
use crate::paint::Phase;
use nodefold_replay::{
    Confidence, ContainerIx, Entry as Seen, ObjectSeen, Payload, PodIx, Report, Trace, Verb, VolumeIx,
    Witness,
};
use std::collections::{BTreeMap, BTreeSet};

/// More entries than this are thinned: what moves no life on, and proves nothing, is left out.
const MANY: usize = 50_000;

/// What a lane is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Node,
    Pod(PodIx),
    Container(Option<PodIx>, String),
    Volume(Option<PodIx>, String),
}

/// Draws a trace and its verdict. Lines are read again later, by [`places`].
pub fn draw(trace: &Trace, report: &Report, title: String) -> Picture {
    let timed = || trace.entries.iter().filter(|e| !e.untimed).map(|e| e.at.0 / 1000);
    let origin = timed().min().unwrap_or(0);
    let mut drawing = Drawing { trace, origin, keys: BTreeMap::new(), lanes: Vec::new() };
    let mut notes: Vec<String> = report.notes.iter().map(|n| n.text.clone()).collect();
    notes.extend(trace.notes.iter().cloned());

    let proof: BTreeSet<usize> = report.findings.iter().flat_map(|f| f.evidence.iter().copied()).collect();
    let thin = trace.entries.len() > MANY;
    let mut index: Vec<Option<u32>> = Vec::with_capacity(trace.entries.len());
    let mut entries: Vec<Entry> = Vec::new();
    for (i, seen) in trace.entries.iter().enumerate() {
        if thin && !matters(seen) && !proof.contains(&i) {
            index.push(None);
            continue;
        }
        let number = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        index.push(Some(number));
        entries.push(drawing.entry(seen, number));
    }
    if thin {
        let left_out = trace.entries.len() - entries.len();
        notes
            .push(format!("{left_out} of {} entries move no life on and are not shown", trace.entries.len()));
    }
    let findings = report.findings.iter().map(|f| {
        let evidence: Vec<u32> = f.evidence.iter().filter_map(|i| *index.get(*i)?).collect();
        let lane = match (evidence.last(), f.pod) {
            (Some(entry), _) => entries[*entry as usize].lane,
            (None, Some(pod)) => drawing.lane(Key::Pod(pod)),
            (None, None) => drawing.lane(Key::Node),
        };
        Finding {
            kind: f.kind.as_str(),
            invariant: f.invariant.map(|i| i.to_string()),
            lane,
            instance: f.instance.clone(),
            at: Some((f.at.0 / 1000).saturating_sub(origin)),
            sure: f.confidence.as_str(),
            resolved: f.resolved,
            count: f.count,
            explanation: f.explanation.clone(),
            meaning: f.kind.meaning(),
            race: f.kind.race(),
            evidence,
        }
    });
    let findings = findings.collect();
    let reach = trace.reach.map(|r| r.0 / 1000);
    let end = timed().chain(reach).max().map_or(0, |end| end - origin);
    let files = trace
        .files
        .iter()
        .map(|f| Source {
            name: f.name.clone(),
            lines: f.lines,
            who: f.witnesses.iter().map(|w| w.as_str()).collect(),
        })
        .collect();
    let lanes = drawing.lanes.into_iter().map(|moving| moving.lane).collect();
    let mut picture =
        Picture { title, unit: "line", origin, end, relative: false, files, lanes, entries, findings, notes };
    picture.arrange();
    picture
}

/// Where the lines of a picture's entries are: pairs of file and line.
pub fn places(picture: &Picture) -> BTreeSet<(u32, u64)> {
    picture.entries.iter().map(|e| (e.file, e.line)).collect()
}

struct Drawing<'a> {
    trace: &'a Trace,
    origin: i64,
    keys: BTreeMap<Key, u32>,
    lanes: Vec<Moving>,
}

impl Drawing<'_> {
    fn entry(&mut self, seen: &Seen, number: u32) -> Entry {
        let at = (!seen.untimed).then(|| seen.at.0 / 1000 - self.origin);
        let lane = self.lane(self.key(seen));
        if let Some(at) = at {
            self.moves(seen, lane, at, number);
        }
        Entry {
            at,
            lane,
            text: self.text(seen),
            life: seen
                .container
                .and_then(|c| self.trace.container(c).id.as_deref())
                .map(|id| id.chars().take(12).collect()),
            who: seen.witness.as_str(),
            file: seen.file,
            line: seen.line,
            sure: seen.confidence.as_str(),
            quiet: !matters(seen),
            bad: is_trouble(seen),
            raw: None,
            why: self.joined(seen),
            from: Vec::new(),
        }
    }

    /// What an entry says without the name of what it is about: its lane tells that.
    fn text(&self, seen: &Seen) -> String {
        let text = self.trace.describe(seen);
        let names = [
            seen.volume.map(|v| self.trace.volume_name(v)),
            seen.container.map(|c| self.trace.container_name(c)),
        ];
        let mut rest = text.as_str();
        for name in names.iter().flatten() {
            rest = rest.strip_prefix(name.as_str()).map_or(rest, str::trim_start);
        }
        rest.to_owned()
    }

    fn moves(&mut self, seen: &Seen, lane: u32, at: i64, number: u32) {
        self.lanes[lane as usize].take(seen.verb, seen.payload.exit_code(), seen.container, at, number);
        let Some(pod) = seen.pod else { return };
        let is_main = seen.container.is_some_and(|c| !self.trace.container(c).sandbox);
        if is_main || seen.volume.is_none() {
            let of_pod = self.lane(Key::Pod(pod));
            if of_pod != lane {
                self.lanes[of_pod as usize].take(seen.verb, None, None, at, number);
            }
        }
        if let Payload::Object(object) = &*seen.payload
            && seen.verb != Verb::PodDeleted
        {
            self.wanted(pod, object, at, number);
        } else if matches!(seen.verb, Verb::PodDeleted | Verb::PodRemoved | Verb::PodReleased) {
            self.unwanted(pod, at, number);
        }
    }

    /// What an object asks for.
    fn wanted(&mut self, pod: PodIx, object: &ObjectSeen, at: i64, by: u32) {
        let Some(applied) = &object.pod else { return };
        let spec = &applied.spec;
        let containers =
            spec.init_containers.iter().chain(&spec.containers).chain(&spec.ephemeral_containers);
        let mut keys: Vec<Key> = containers.map(|c| Key::Container(Some(pod), c.name.to_string())).collect();
        keys.extend(spec.volumes.iter().map(|v| Key::Volume(Some(pod), v.name.to_string())));
        let (phase, word) =
            if object.deletion.is_some() { (Phase::Going, "deleted") } else { (Phase::Up, "wanted") };
        let wanted: BTreeSet<u32> = keys.into_iter().map(|key| self.lane(key)).collect();
        for lane in &wanted {
            self.lanes[*lane as usize].lane.enter(Stage::Desired, at, phase, word, Some(by));
        }
        let of_pod = self.lane(Key::Pod(pod));
        for (i, moving) in (0u32..).zip(&mut self.lanes) {
            if moving.lane.pod == Some(of_pod) && i != of_pod && !wanted.contains(&i) {
                moving.lane.enter(Stage::Desired, at, Phase::Gone, "", Some(by));
            }
        }
    }

    fn unwanted(&mut self, pod: PodIx, at: i64, by: u32) {
        let of_pod = self.lane(Key::Pod(pod));
        for moving in self.lanes.iter_mut().filter(|m| m.lane.pod == Some(of_pod)) {
            moving.lane.enter(Stage::Desired, at, Phase::Gone, "", Some(by));
        }
    }

    fn key(&self, seen: &Seen) -> Key {
        match (seen.volume, seen.container, seen.pod) {
            (Some(volume), _, _) => self.volume_key(volume),
            (None, Some(container), _) => self.container_key(container),
            (None, None, Some(pod)) => Key::Pod(pod),
            (None, None, None) => Key::Node,
        }
    }

    fn container_key(&self, ix: ContainerIx) -> Key {
        let life = self.trace.container(ix);
        let name = match (&life.name, life.sandbox) {
            (_, true) => "sandbox".to_owned(),
            (Some(name), false) => name.to_string(),
            (None, false) => {
                life.id.as_deref().map_or_else(|| "?".to_owned(), |id| id.chars().take(12).collect())
            }
        };
        Key::Container(life.pod, name)
    }

    fn volume_key(&self, ix: VolumeIx) -> Key {
        let life = self.trace.volume(ix);
        let name = life.name.as_deref().or(life.unique.as_deref()).unwrap_or("?");
        Key::Volume(life.pod, name.to_owned())
    }

    /// The lane of a key, made if it is new.
    fn lane(&mut self, key: Key) -> u32 {
        if let Some(known) = self.keys.get(&key) {
            return *known;
        }
        let (lane, pod) = match &key {
            Key::Node => (Lane::new(LaneKind::Node, "node"), None),
            Key::Pod(pod) => (self.pod_lane(*pod), None),
            Key::Container(pod, name) => (Lane::new(LaneKind::Container, name), *pod),
            Key::Volume(pod, name) => (Lane::new(LaneKind::Volume, name), *pod),
        };
        // A pod's own lane is there before the lanes in it.
        let pod = pod.map(|pod| self.lane(Key::Pod(pod)));
        let number = u32::try_from(self.lanes.len()).unwrap_or(u32::MAX);
        let pod = if matches!(key, Key::Pod(_)) { Some(number) } else { pod };
        self.lanes.push(Moving::new(Lane { pod, ..lane }));
        self.keys.insert(key, number);
        number
    }

    fn pod_lane(&self, pod: PodIx) -> Lane {
        let life = self.trace.pod(pod);
        let mut lane = Lane::new(LaneKind::Pod, self.trace.pod_name(pod));
        if let Some(uid) = &life.uid {
            lane.about.push(("uid".to_owned(), uid.to_string()));
        }
        if life.is_static {
            lane.about.push(("kind".to_owned(), "static pod".to_owned()));
        }
        if life.inferred {
            lane.about.push(("joined".to_owned(), "name and UID by inference".to_owned()));
        }
        lane
    }

    /// What was concluded rather than read.
    fn joined(&self, seen: &Seen) -> Option<String> {
        let mut told: Vec<String> = Vec::new();
        if seen.confidence != Confidence::Seen {
            let inferred = seen.pod.is_some_and(|p| self.trace.pod(p).inferred);
            let deduced = seen.container.is_some_and(|c| self.trace.container(c).deduced);
            told.push(match (inferred, deduced) {
                (_, true) => "that this is a sandbox was concluded from other lines".to_owned(),
                (true, false) => {
                    "no line joins the pod's name and its UID: they were joined by inference".to_owned()
                }
                (false, false) => {
                    "its pod or container was found by inference: the line does not name it".to_owned()
                }
            });
        }
        if seen.cut {
            told.push("the line is cut".to_owned());
        }
        if seen.coarse {
            told.push("its clock has whole seconds only".to_owned());
        }
        if seen.untimed
            && matches!(seen.witness, Witness::RuntimeList | Witness::Mounts | Witness::Checkpoint)
        {
            told.push("a listing: it holds when it was taken".to_owned());
        }
        (!told.is_empty()).then(|| told.join("; "))
    }
}
