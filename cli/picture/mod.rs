//! What a view shows: lanes with the spans of their four stages, entries with their evidence, findings.
//!
//! `of_trace` and `of_journal` fill a [`Picture`], `page` and `perfetto` write it. A picture knows nothing of where it came
//! from, and its writers nothing of traces and journals.

mod command;
mod of_journal;
mod of_trace;
mod page;
mod perfetto;
mod stages;

pub use command::{read_journal, view, write_page_of_journal};

use crate::paint::Phase;
use serde::Serialize;
use std::collections::BTreeMap;

/// How far a thing has come, from what is asked for to what is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Somebody wants it.
    Desired,
    /// The node accepted it, and charges it.
    Allocated,
    /// The node asked for it.
    Actuated,
    /// It is so.
    Actual,
}

impl Stage {
    /// All of them, in order.
    pub const ALL: [Stage; 4] = [Stage::Desired, Stage::Allocated, Stage::Actuated, Stage::Actual];

    /// As people call it.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Desired => "desired",
            Stage::Allocated => "allocated",
            Stage::Actuated => "actuated",
            Stage::Actual => "actual",
        }
    }
}

/// What a lane is about.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LaneKind {
    /// What concerns no pod.
    Node,
    /// A pod.
    Pod,
    /// A container's name in a pod, or its sandbox.
    Container,
    /// A volume.
    Volume,
}

/// A stretch of time in which one stage of a lane did not change.
#[derive(Clone, Debug, Serialize)]
pub struct Span {
    /// Which stage.
    pub stage: Stage,
    /// Its beginning, in microseconds since the picture's origin.
    pub from: i64,
    /// Its end; none: nothing in view ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
    /// As its colour and pattern tell it.
    #[serde(serialize_with = "phase")]
    pub phase: Phase,
    /// As people call it.
    pub word: String,
    /// The entry that it was derived from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<u32>,
    /// The entry that its end was derived from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<u32>,
}

fn phase<S: serde::Serializer>(phase: &Phase, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(phase_name(*phase))
}

/// A phase as the page's style sheet calls it.
const fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Gone => "gone",
        Phase::Over => "over",
        Phase::Waiting => "waiting",
        Phase::Up => "up",
        Phase::Coming => "coming",
        Phase::Going => "going",
        Phase::Unknown => "unknown",
        Phase::Failing => "failing",
    }
}

/// A lane: a pod, a container, a volume, or what is the node's.
#[derive(Clone, Debug, Serialize)]
pub struct Lane {
    /// What it is about.
    pub kind: LaneKind,
    /// Its name in its pod.
    pub name: String,
    /// Its pod's lane; a pod's own is its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod: Option<u32>,
    /// What identifies it: pairs of a word and a value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<(String, String)>,
    /// What happened to it, stage by stage, each in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<Span>,
    #[serde(skip)]
    open: [Option<usize>; 4],
}

impl Lane {
    /// A lane in which nothing has happened.
    pub fn new(kind: LaneKind, name: impl Into<String>) -> Lane {
        Lane { kind, name: name.into(), pod: None, about: Vec::new(), spans: Vec::new(), open: [None; 4] }
    }

    /// The phase that a stage is in.
    pub fn phase(&self, stage: Stage) -> Phase {
        self.open[stage as usize].map_or(Phase::Gone, |i| self.spans[i].phase)
    }

    /// From now on a stage is in this phase. What says the same again changes nothing.
    pub fn enter(&mut self, stage: Stage, at: i64, phase: Phase, word: &str, by: Option<u32>) {
        let open = &mut self.open[stage as usize];
        if let Some(i) = *open {
            let now = &mut self.spans[i];
            if now.phase == phase && now.word == word {
                return;
            }
            now.to = Some(at.max(now.from));
            now.until = by;
        } else if phase == Phase::Gone {
            return;
        }
        *open = None;
        if phase != Phase::Gone {
            *open = Some(self.spans.len());
            let word = word.to_owned();
            self.spans.push(Span { stage, from: at, to: None, phase, word, by, until: None });
        }
    }
}

/// What a line of a log, an object or a record says.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Entry {
    /// When, in microseconds since the picture's origin; none: it has no time of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// In which lane.
    pub lane: u32,
    /// What it says, in a line.
    pub text: String,
    /// Which life of a container: the beginning of the runtime's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub life: Option<String>,
    /// `fact`, `command`, `note`, or who says it.
    pub who: &'static str,
    /// In which of the picture's files.
    pub file: u32,
    /// On which line, or in which record.
    pub line: u64,
    /// `seen`, `derived` or `absent`.
    pub sure: &'static str,
    /// It moves nothing on: shown small.
    #[serde(skip_serializing_if = "is_false")]
    pub quiet: bool,
    /// It tells of something that went wrong.
    #[serde(skip_serializing_if = "is_false")]
    pub bad: bool,
    /// The line as it was written, or its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// How it was tied to its lane, where no line says it, or why it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The entries that it was derived from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !value
}

/// Something wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What kind.
    pub kind: &'static str,
    /// The invariant that it breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invariant: Option<String>,
    /// In which lane.
    pub lane: u32,
    /// Which container, volume or device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// When it became provable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// How sure.
    pub sure: &'static str,
    /// It went away later.
    pub resolved: bool,
    /// How often it happened.
    pub count: u64,
    /// What happened here.
    pub explanation: String,
    /// What it means.
    pub meaning: &'static str,
    /// Where such a thing was seen before.
    pub race: &'static str,
    /// The entries that prove it.
    pub evidence: Vec<u32>,
}

/// An input.
#[derive(Clone, Debug, Serialize)]
pub struct Source {
    /// Its name as given.
    pub name: String,
    /// How many lines or records.
    pub lines: u64,
    /// Who speaks in it.
    pub who: Vec<&'static str>,
}

/// All that a view shows.
#[derive(Clone, Debug, Serialize)]
pub struct Picture {
    /// Of what.
    pub title: String,
    /// `line` or `record`: what the numbers of places count.
    pub unit: &'static str,
    /// The moment that times count from: microseconds since the epoch.
    pub origin: i64,
    /// The last moment in view, since the origin.
    pub end: i64,
    /// Times are told since the origin, not by the clock.
    pub relative: bool,
    /// The inputs.
    pub files: Vec<Source>,
    /// The lanes, each pod's together.
    pub lanes: Vec<Lane>,
    /// The entries, in order.
    pub entries: Vec<Entry>,
    /// The findings, in order.
    pub findings: Vec<Finding>,
    /// What was assumed, what is left out, and what is worth knowing.
    pub notes: Vec<String>,
}

impl Picture {
    /// Puts each pod's lanes together, pods in the order in which they came, and in a pod containers before volumes.
    fn arrange(&mut self) {
        let born = |lane: &Lane| lane.spans.iter().map(|s| s.from).min().unwrap_or(i64::MAX);
        let mut first: BTreeMap<u32, i64> = BTreeMap::new();
        let timed = self.entries.iter().filter_map(|e| Some((e.lane, e.at?)));
        let spans =
            self.lanes.iter().zip(0u32..).flat_map(|(lane, i)| lane.spans.iter().map(move |s| (i, s.from)));
        for (lane, at) in timed.chain(spans) {
            let pod = self.lanes[lane as usize].pod.unwrap_or(lane);
            let slot = first.entry(pod).or_insert(at);
            *slot = at.min(*slot);
        }
        let mut order: Vec<u32> = (0u32..).take(self.lanes.len()).collect();
        order.sort_by_key(|i| {
            let lane = &self.lanes[*i as usize];
            let pod = lane.pod.unwrap_or(*i);
            let first = first.get(&pod).copied().unwrap_or(i64::MAX);
            (lane.kind != LaneKind::Node, first, pod, lane.kind, lane.name != "sandbox", born(lane), *i)
        });
        let mut place = vec![0u32; order.len()];
        for (new, old) in (0u32..).zip(&order) {
            place[*old as usize] = new;
        }
        let mut lanes: Vec<Option<Lane>> = std::mem::take(&mut self.lanes).into_iter().map(Some).collect();
        self.lanes = order.iter().filter_map(|old| lanes[*old as usize].take()).collect();
        for lane in &mut self.lanes {
            lane.pod = lane.pod.map(|old| place[old as usize]);
            // A span of no length shows only if nobody should miss it.
            lane.spans.retain(|s| s.to != Some(s.from) || s.phase == Phase::Failing);
        }
        self.entries.iter_mut().for_each(|e| e.lane = place[e.lane as usize]);
        self.findings.iter_mut().for_each(|f| f.lane = place[f.lane as usize]);
    }
}
