//! A picture of a nodefold journal: it is folded again, and each stage is read off the fold itself.

use super::{Entry, Finding, Lane, LaneKind, Picture, Source, Stage};
use crate::journal::API_STREAM;
use crate::names::Names;
use crate::paint::{Phase, Tone};
use crate::{commands, facts, json, requests};
use anyhow::Result;
use nodefold_api::ApiEvent;
use nodefold_core::Node;
use nodefold_core::about::About;
use nodefold_core::command::{Action, Command, Subject, Transition};
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::{Name, OpId, PodUid, VolumeId};
use nodefold_core::spec::{Pod, Volume};
use nodefold_core::time::Time;
use nodefold_harness::Record as Told;
use nodefold_journal::{Files, Foreign, Note, Record, Step, replay_each};
use nodefold_replay::{Report, Trace};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// A record's text is shown up to here.
const RAW: usize = 1200;

/// Whose lane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Node,
    Pod(PodUid),
    Sandbox(PodUid),
    Container(PodUid, Name, u32),
    Volume(PodUid, VolumeId),
}

/// Draws a journal. The verdict over it comes with the trace that it was reached on.
pub fn draw(path: &Path, trace: &Trace, report: &Report, title: String) -> Result<Picture> {
    let storage = Files::at(path);
    let beginning = nodefold_journal::beginning(&storage)?;
    let mut drawing = Drawing { beginning, ..Drawing::default() };
    let replayed = replay_each::<Node>(&storage, None, &mut |step| drawing.step(&step))?;
    let mut notes: Vec<String> = report.notes.iter().map(|n| n.text.clone()).collect();
    notes.extend(replayed.report.cut.iter().map(|cut| format!("not folded: {cut}")));
    let findings = report.findings.iter().map(|f| drawing.finding(f, trace)).collect();
    let files = vec![Source {
        name: path.display().to_string(),
        lines: replayed.report.records,
        who: vec!["nodefold journal"],
    }];
    let end = drawing.entries.iter().filter_map(|e| e.at).max().unwrap_or(0);
    let mut picture = Picture {
        title,
        unit: "record",
        origin: i64::try_from(beginning.0 / 1000).unwrap_or(i64::MAX),
        end,
        relative: true,
        files,
        lanes: drawing.lanes,
        entries: drawing.entries,
        findings,
        notes,
    };
    picture.arrange();
    Ok(picture)
}

#[derive(Default)]
struct Drawing {
    beginning: Time,
    names: Names,
    lanes: Vec<Lane>,
    keys: BTreeMap<Key, u32>,
    /// The lanes in each pod.
    of_pod: BTreeMap<PodUid, Vec<(Key, u32)>>,
    entries: Vec<Entry>,
    /// The command of each operation.
    ops: BTreeMap<OpId, u32>,
    /// The entry of each fact, by its number.
    facts: BTreeMap<u64, u32>,
    /// Names that a spec asks for and that have no lane yet: since when, and by which entry.
    awaited: BTreeMap<(PodUid, LaneKind, Name), (i64, u32)>,
    /// What the volume of a lane is made from.
    made_from: BTreeMap<(PodUid, VolumeId), Arc<Volume>>,
}

impl Drawing {
    fn at(&self, time: Time) -> i64 {
        i64::try_from(time.since(self.beginning).0 / 1000).unwrap_or(i64::MAX)
    }

    fn step(&mut self, step: &Step<'_, Node>) {
        match step.record {
            Record::Fact(event) => self.fact(step, event),
            Record::Note(note) => self.note(step.number, note),
            Record::Foreign(foreign) => self.request(step.number, foreign),
            Record::Skipped(skipped) => {
                let text = format!("record {} is not folded: {}", skipped.record, skipped.reason);
                let lane = self.lane(Key::Node);
                let entry = Entry { bad: true, ..self.entry(step.number, step.at, lane, "note", text) };
                self.push(entry);
            }
            Record::Header(_) | Record::BatchEnd(_) | Record::Snapshot(_) => {}
        }
    }

    fn fact(&mut self, step: &Step<'_, Node>, event: &Event) {
        if let Fact::PodApplied(pod) = &event.fact {
            self.names.learn_pod(pod);
        }
        let seq = step.fold.event_count().0;
        let at = self.at(step.at);
        let told = facts::told(&event.fact);
        let lane = self.lane_of(event.fact.pod(), event.fact.about());
        let subject = if told.subject.is_empty() { String::new() } else { format!("{} ", told.subject) };
        let text = if told.text.is_empty() { String::new() } else { format!(": {}", told.text) };
        let mut entry =
            self.entry(step.number, step.at, lane, "fact", format!("{subject}{}{text}", event.fact.name()));
        entry.quiet = matches!(event.fact, Fact::Tick | Fact::StatusWritten { .. });
        entry.bad = told.tone == Tone::Bad;
        entry.raw = Some(short(json::fact(seq, event, &self.names).to_string()));
        if let Some(command) = told.op.and_then(|op| self.ops.get(&op)) {
            entry.from.push(*command);
            entry.why = Some("it answers the command".to_owned());
        }
        let number = self.push(entry);
        self.facts.insert(seq, number);

        let mut pods: BTreeSet<PodUid> = event.fact.pod().into_iter().collect();
        for transition in &step.commands.transitions {
            pods.insert(transition.pod);
            self.moved(transition, at, number);
        }
        for command in &step.commands.commands {
            self.command(step.number, step.at, command, number);
        }
        if let Fact::ContainerExited { pod, container, .. } = &event.fact {
            let lane = self.lane(Key::Container(*pod, container.name.clone(), container.incarnation));
            self.lanes[lane as usize].enter(Stage::Actuated, at, Phase::Gone, "", Some(number));
        }
        if let Fact::VolumeUnmounted { pod, volume, .. } = &event.fact {
            let lane = self.lane(Key::Volume(*pod, volume.clone()));
            self.lanes[lane as usize].enter(Stage::Actuated, at, Phase::Gone, "", Some(number));
        }
        for pod in pods.into_iter().filter(|p| *p != PodUid(0)) {
            self.specs(step.fold, pod, at, number);
        }
    }

    /// What the pod's desired and allocated state ask for now.
    fn specs(&mut self, node: &Node, uid: PodUid, at: i64, by: u32) {
        let desired = node.desired(uid);
        let of_pod = self.lane(Key::Pod(uid));
        let (phase, word) = match &desired {
            Some(pod) if pod.deletion.is_some() => (Phase::Going, "deleted"),
            Some(_) => (Phase::Up, "wanted"),
            None => (Phase::Gone, ""),
        };
        self.lanes[of_pod as usize].enter(Stage::Desired, at, phase, word, Some(by));
        let is_allocated = node.allocated(uid).is_some();
        let admitted = if is_allocated { Phase::Up } else { Phase::Gone };
        self.lanes[of_pod as usize].enter(Stage::Allocated, at, admitted, "admitted", Some(by));
        if let Some(pod) = &desired {
            self.await_names(pod, at, by);
        }

        let known = self.of_pod.get(&uid).cloned().unwrap_or_default();
        let state = node.pod(uid);
        for (key, lane) in known {
            let (wanted, allocated) = match &key {
                Key::Container(_, name, incarnation) => {
                    let record = state.and_then(|s| {
                        s.containers.iter().find(|c| c.name == *name && c.incarnation == *incarnation)
                    });
                    let live = record.is_some_and(|c| c.removed.is_none());
                    (live && desired.as_ref().is_some_and(|d| has_container(d, name)), live)
                }
                Key::Volume(_, id) => {
                    let record = state.and_then(|s| s.volumes.iter().find(|v| v.id == *id));
                    if let Some(spec) = record.and_then(|v| v.spec.as_ref()) {
                        self.made_from.insert((uid, id.clone()), spec.arc().clone());
                    }
                    let made_from = self.made_from.get(&(uid, id.clone()));
                    let asked =
                        desired.as_ref().and_then(|d| d.spec.volumes.iter().find(|v| v.name == id.name));
                    let same = matches!((made_from, asked), (Some(a), Some(b)) if a == b);
                    (same, record.is_some_and(|v| v.removed.is_none()))
                }
                Key::Node | Key::Pod(_) | Key::Sandbox(_) => continue,
            };
            let lane = &mut self.lanes[lane as usize];
            let wanted = if wanted { phase } else { Phase::Gone };
            lane.enter(Stage::Desired, at, wanted, word, Some(by));
            let allocated = if allocated { Phase::Up } else { Phase::Gone };
            lane.enter(Stage::Allocated, at, allocated, "allocated", Some(by));
        }
    }

    /// A name is asked for before it is allocated: the lane that it gets then begins here.
    fn await_names(&mut self, pod: &Pod, at: i64, by: u32) {
        let spec = &pod.spec;
        let containers =
            spec.init_containers.iter().chain(&spec.containers).chain(&spec.ephemeral_containers);
        let names = containers.map(|c| (LaneKind::Container, c.name.clone()));
        let names = names.chain(spec.volumes.iter().map(|v| (LaneKind::Volume, v.name.clone())));
        let asked: BTreeSet<_> = names.map(|(kind, name)| (pod.uid, kind, name)).collect();
        self.awaited.retain(|key, _| key.0 != pod.uid || asked.contains(key));
        for key in asked {
            self.awaited.entry(key).or_insert((at, by));
        }
    }

    fn moved(&mut self, transition: &Transition, at: i64, by: u32) {
        let key = match &transition.subject {
            Subject::Pod => Key::Pod(transition.pod),
            Subject::Sandbox(_) => Key::Sandbox(transition.pod),
            Subject::Container(id) => Key::Container(transition.pod, id.name.clone(), id.incarnation),
            Subject::Volume(id) => Key::Volume(transition.pod, id.clone()),
        };
        let awaited = match &transition.subject {
            Subject::Container(id) => Some((transition.pod, LaneKind::Container, id.name.clone())),
            Subject::Volume(id) => Some((transition.pod, LaneKind::Volume, id.name.clone())),
            Subject::Pod | Subject::Sandbox(_) => None,
        };
        let is_new = !self.keys.contains_key(&key);
        let lane = self.lane(key);
        let lane = &mut self.lanes[lane as usize];
        if is_new && let Some((since, entry)) = awaited.and_then(|key| self.awaited.get(&key)) {
            lane.enter(Stage::Desired, *since, Phase::Up, "wanted", Some(*entry));
        }
        let word = transition.to.to_lowercase();
        lane.enter(Stage::Actual, at, Phase::of_label(&transition.to), &word, Some(by));
    }

    fn command(&mut self, record: u64, time: Time, command: &Command, fact: u32) {
        let at = self.at(time);
        let action = &command.action;
        let lane = self.lane_of(Some(command.pod).filter(|pod| *pod != PodUid(0)), action.about());
        let (subject, detail) = (commands::subject(action), commands::detail(action));
        let subject = if subject.is_empty() { subject } else { format!("{subject} ") };
        let detail = if detail.is_empty() { detail } else { format!(", {detail}") };
        let text = format!("{subject}→ {}{detail}", action.verb());
        let mut entry = self.entry(record, time, lane, "command", text);
        entry.quiet = matches!(action, Action::PublishStatus { .. } | Action::RecordEvent(_));
        let told = Told::Command { at: time, command: command.clone() };
        entry.raw = Some(short(json::record(&told, &self.names, self.beginning).to_string()));
        entry.why = Some(format!("the rule {:?} asked for it", command.cause.rule));
        entry.from.push(self.facts.get(&command.cause.event.0).copied().unwrap_or(fact));
        let number = self.push(entry);
        self.ops.insert(command.op, number);
        if let Some((phase, word)) = actuated(action) {
            self.lanes[lane as usize].enter(Stage::Actuated, at, phase, word, Some(number));
        }
        if matches!(action, Action::CreateSandbox { .. } | Action::StopSandbox { .. } | Action::ReleasePod)
            && let Some((phase, word)) = actuated(action)
        {
            let of_pod = self.lane(Key::Pod(command.pod));
            self.lanes[of_pod as usize].enter(Stage::Actuated, at, phase, word, Some(number));
        }
    }

    fn note(&mut self, record: u64, note: &Note) {
        let lane = self.lane(Key::Node);
        let sign = match note.mark.as_str() {
            "held" => "✓ expected and so: ",
            "missed" => "✗ expected and not so: ",
            "crash" => "✗ crash: ",
            "invariant" => "✗ invariant broken: ",
            "step" | "wait" => "▸ ",
            _ => "",
        };
        let mut entry = self.entry(record, note.at, lane, "note", format!("{sign}{}", note.text));
        entry.bad = matches!(note.mark.as_str(), "missed" | "crash" | "invariant");
        self.push(entry);
    }

    fn request(&mut self, record: u64, foreign: &Foreign) {
        if foreign.stream != API_STREAM {
            return;
        }
        let Ok(event) = ApiEvent::from_bytes(&foreign.bytes) else { return };
        let lane = self.lane(Key::Node);
        let text = format!("{}: {}", event.user.name, requests::asked(&event).what);
        let mut entry = self.entry(record, foreign.at, lane, "request", text);
        entry.raw = Some(short(requests::to_json(&event.request).to_string()));
        self.push(entry);
    }

    fn finding(&mut self, finding: &nodefold_replay::Finding, trace: &Trace) -> Finding {
        let records: BTreeSet<u64> =
            finding.evidence.iter().filter_map(|i| trace.entries.get(*i)).map(|e| e.line).collect();
        let evidence: Vec<u32> = records
            .iter()
            .filter_map(|record| self.entries.iter().position(|e| e.line == *record))
            .filter_map(|i| u32::try_from(i).ok())
            .collect();
        let lane = match evidence.last() {
            Some(entry) => self.entries[*entry as usize].lane,
            None => self.lane(Key::Node),
        };
        Finding {
            kind: finding.kind.as_str(),
            invariant: finding.invariant.map(|i| i.to_string()),
            lane,
            instance: finding.instance.clone(),
            at: evidence.last().and_then(|entry| self.entries[*entry as usize].at),
            sure: finding.confidence.as_str(),
            resolved: finding.resolved,
            count: finding.count,
            explanation: self.names.in_text(&finding.explanation),
            meaning: finding.kind.meaning(),
            race: finding.kind.race(),
            evidence,
        }
    }

    fn entry(&self, record: u64, at: Time, lane: u32, who: &'static str, text: String) -> Entry {
        Entry { at: Some(self.at(at)), lane, text, who, line: record, sure: "seen", ..Entry::default() }
    }

    fn push(&mut self, entry: Entry) -> u32 {
        self.entries.push(entry);
        u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
    }

    fn lane_of(&mut self, pod: Option<PodUid>, about: About<'_>) -> u32 {
        let key = match (pod, about) {
            (None, _) => Key::Node,
            (Some(pod), About::Container(id)) => Key::Container(pod, id.name.clone(), id.incarnation),
            (Some(pod), About::Volume(id)) => Key::Volume(pod, id.clone()),
            (Some(pod), About::Sandbox(_)) => Key::Sandbox(pod),
            (Some(pod), About::Pod | About::Node) => Key::Pod(pod),
        };
        self.lane(key)
    }

    /// The lane of a key, made if it is new.
    fn lane(&mut self, key: Key) -> u32 {
        if let Some(known) = self.keys.get(&key) {
            return *known;
        }
        let numbered = |name: &str, life: u32| match life {
            0 => name.to_owned(),
            n => format!("{name}#{n}"),
        };
        let (kind, name, pod) = match &key {
            Key::Node => (LaneKind::Node, "node".to_owned(), None),
            Key::Pod(uid) => (LaneKind::Pod, self.names.full(*uid).unwrap_or_else(|| uid.to_string()), None),
            Key::Sandbox(uid) => (LaneKind::Container, "sandbox".to_owned(), Some(*uid)),
            Key::Container(uid, name, incarnation) => {
                (LaneKind::Container, numbered(name, *incarnation), Some(*uid))
            }
            Key::Volume(uid, id) => (LaneKind::Volume, numbered(&id.name, id.generation), Some(*uid)),
        };
        let mut lane = Lane::new(kind, name);
        if let Key::Pod(uid) = &key {
            lane.about.push(("uid".to_owned(), uid.to_string()));
        }
        let pod = pod.map(|uid| self.lane(Key::Pod(uid)));
        let number = u32::try_from(self.lanes.len()).unwrap_or(u32::MAX);
        let uid = match &key {
            Key::Node => None,
            Key::Pod(uid) | Key::Sandbox(uid) | Key::Container(uid, ..) | Key::Volume(uid, _) => Some(*uid),
        };
        if let Some(uid) = uid {
            self.of_pod.entry(uid).or_default().push((key.clone(), number));
        }
        lane.pod = if kind == LaneKind::Pod { Some(number) } else { pod };
        self.lanes.push(lane);
        self.keys.insert(key, number);
        number
    }
}

fn has_container(pod: &Pod, name: &str) -> bool {
    let spec = &pod.spec;
    let all = spec.init_containers.iter().chain(&spec.containers).chain(&spec.ephemeral_containers);
    all.into_iter().any(|c| &*c.name == name)
}

/// What a command asks of the thing that it is about.
fn actuated(action: &Action) -> Option<(Phase, &'static str)> {
    Some(match action {
        Action::MountVolume { .. } => (Phase::Up, "mount"),
        Action::UnmountVolume { .. } => (Phase::Going, "unmount"),
        Action::PullImage { .. } => (Phase::Up, "pull"),
        Action::CreateSandbox { .. } | Action::CreateContainer { .. } => (Phase::Up, "create"),
        Action::StartContainer { .. } => (Phase::Up, "run"),
        Action::StopContainer { .. } | Action::StopSandbox { .. } => (Phase::Going, "stop"),
        Action::KillContainer { .. } => (Phase::Going, "kill"),
        Action::RemoveSandbox { .. } | Action::RemoveContainer { .. } | Action::ReleasePod => {
            (Phase::Gone, "")
        }
        Action::RefreshVolume { .. }
        | Action::ResizeContainer { .. }
        | Action::ResizePod { .. }
        | Action::RunHook { .. }
        | Action::StartProbe { .. }
        | Action::StopProbe { .. }
        | Action::ObserveMounts
        | Action::ObserveRuntime
        | Action::PublishStatus { .. }
        | Action::RecordEvent(_)
        | Action::CreateMirror { .. }
        | Action::DeleteMirror { .. } => return None,
    })
}

fn short(text: String) -> String {
    match text.char_indices().nth(RAW) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
