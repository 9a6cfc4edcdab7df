//! Several inputs of one node become one trace: placed in time, ordered, without duplicates, tied to instances.

use crate::clock::{self, Clock, Source};
use crate::evidence::{Draft, Name, Payload, Sink, Skipped, Witness};
use crate::identity::{Containers, Placed, Pods, Volumes, status_of};
use crate::stamp::{Moment, SECOND};
use crate::trace::{Confidence, ContainerIx, Entry, FileFacts, PodIx, Run, Trace, VolumeIx};
use crate::verb::Verb;
use std::collections::{BTreeMap, BTreeSet};

/// An input as its importer left it.
pub struct Imported {
    /// Its name.
    pub name: String,
    /// Lines read.
    pub lines: u64,
    /// Bytes read.
    pub bytes: u64,
    /// What was found.
    pub sink: Sink,
}

/// What a caller may tell about the inputs.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The year of stamps that have none.
    pub year: Option<i32>,
    /// Now, for the caller: where no file tells the year, the last one is assumed that puts nothing into the future.
    pub now: Moment,
}

/// Merges inputs into a trace.
pub fn merge(mut inputs: Vec<Imported>, options: &Options) -> Trace {
    let mut trace = Trace { hosts: vec!["".into()], ..Trace::default() };
    let clocks = {
        let sources: Vec<Source<'_>> = inputs
            .iter()
            .map(|i| Source { drafts: &i.sink.drafts, years: &i.sink.years, zones: &i.sink.zones })
            .collect();
        clock::learn(&sources, options.year, options.now, &mut trace.notes)
    };
    let mut placed = Vec::new();
    for (i, input) in inputs.iter_mut().enumerate() {
        let drafts = std::mem::take(&mut input.sink.drafts);
        place(drafts, u32::try_from(i).unwrap_or(u32::MAX), &clocks[i], &mut placed, &mut trace.notes);
    }
    order(&mut placed);
    let mut duplicates = vec![0u64; inputs.len()];
    drop_duplicates(&mut placed, &mut duplicates);
    tie(placed, &clocks, &mut trace);
    runs(&mut trace);
    reach(&inputs, &clocks, &mut trace);
    for (i, input) in inputs.into_iter().enumerate() {
        describe(input, duplicates[i], &clocks[i], &mut trace);
    }
    let mut who: Vec<BTreeSet<Witness>> = vec![BTreeSet::new(); trace.files.len()];
    for entry in &trace.entries {
        who[entry.file as usize].insert(entry.witness);
    }
    for (file, who) in trace.files.iter_mut().zip(who) {
        file.witnesses = who.into_iter().collect();
    }
    trace
}

/// Gives each draft a moment. What has none is as late as what stands before it; a listing is as late as everything.
#[expect(clippy::vec_box, reason = "as the sink has them")]
fn place(drafts: Vec<Box<Draft>>, file: u32, clock: &Clock, out: &mut Vec<Placed>, notes: &mut Vec<String>) {
    let mut slips = 0u64;
    let mut last = None;
    // An API watch tells its order by its lines, its times only roughly (node-logs §4).
    let mut api_last = Moment(i64::MIN);
    for draft in drafts {
        let listing = matches!(
            draft.witness,
            Witness::RuntimeList | Witness::Mounts | Witness::Checkpoint | Witness::Events
        );
        let (at, slipped) = clock.moment(&draft);
        slips += u64::from(slipped);
        let untimed = at.is_none() && (listing || last.is_none());
        let mut at = at.or(last.filter(|_| !untimed)).unwrap_or(Moment(i64::MAX));
        if draft.witness == Witness::Api && !untimed {
            at = at.max(api_last);
            api_last = at;
        }
        if !untimed {
            last = Some(at);
        }
        let coarse = matches!(draft.witness, Witness::Api | Witness::Events | Witness::System)
            && (draft.witness == Witness::Api || at.0 % SECOND == 0);
        out.push(Placed { at, coarse, untimed, file, draft });
    }
    if slips > 0 {
        notes.push(format!(
            "{slips} records have another hour than their collector gave them; the collector's was taken"
        ));
    }
}

/// Whether a file runs backwards, as consoles export.
fn runs_backwards(placed: &[Placed]) -> bool {
    let mut forth = 0u32;
    let mut back = 0u32;
    for pair in placed.windows(2) {
        match pair[0].at.cmp(&pair[1].at) {
            std::cmp::Ordering::Less => forth += 1,
            std::cmp::Ordering::Greater => back += 1,
            std::cmp::Ordering::Equal => {}
        }
    }
    back > forth.saturating_mul(2) && back > 2
}

fn order(placed: &mut [Placed]) {
    let mut start = 0;
    while start < placed.len() {
        let file = placed[start].file;
        let end = start + placed[start..].iter().take_while(|p| p.file == file).count();
        if runs_backwards(&placed[start..end]) {
            placed[start..end].reverse();
        }
        start = end;
    }
    // Stable: what has the same stamp stays as its file has it. A coarse second is told before what is finer in it:
    // an object shows what the kubelet then acts on.
    placed.sort_by_key(|p| (p.untimed, p.at));
}

/// The same record from several files, or pasted several times (node-logs §1.1, §1.7).
fn drop_duplicates(placed: &mut Vec<Placed>, dropped: &mut [u64]) {
    let mut kept: Vec<Placed> = Vec::with_capacity(placed.len());
    let mut group = 0;
    for p in placed.drain(..) {
        if kept.last().is_some_and(|k| k.at != p.at) {
            group = kept.len();
        }
        let same = |k: &Placed| {
            let (a, b) = (&k.draft, &p.draft);
            a.verb == b.verb
                && a.witness == b.witness
                && a.pid == b.pid
                && a.pod == b.pod
                && a.container == b.container
                && a.volume == b.volume
                && a.payload == b.payload
                && a.host == b.host
        };
        let fine = !p.coarse || p.draft.witness == Witness::Api;
        // A group of equal stamps is small but in hostile input: look at its end only.
        let from = group.max(kept.len().saturating_sub(64));
        if fine && !p.untimed && p.draft.verb != Verb::Gap && kept[from..].iter().any(same) {
            dropped[p.file as usize] += 1;
            continue;
        }
        kept.push(p);
    }
    *placed = kept;
}

/// What a draft is about.
struct Tie {
    pod: Option<PodIx>,
    container: Option<ContainerIx>,
    volume: Option<VolumeIx>,
    host: u32,
    confidence: Confidence,
}

/// Ties drafts to instances.
fn tie(placed: Vec<Placed>, clocks: &[Clock], trace: &mut Trace) {
    let mut pods = Pods::gather(&placed);
    let mut containers = Containers::gather(&placed);
    let mut ties: Vec<Option<Tie>> = std::iter::repeat_with(|| None).take(placed.len()).collect();
    let mut volumes = Volumes::default();
    let mut hosts: BTreeMap<Name, u32> = BTreeMap::new();
    // Events have whole seconds and come late: they are tied last, to what finer witnesses have told by then.
    let late = |p: &Placed| p.draft.witness == Witness::Events;
    let in_turn = (0..placed.len()).filter(|i| !late(&placed[*i]));
    for i in in_turn.chain((0..placed.len()).filter(|i| late(&placed[*i]))) {
        let p = &placed[i];
        let (mut pod, mut inferred) = pods.resolve(p);
        if pod.is_none()
            && let Some(id) = &p.draft.container.id
            && let Some(uid) = containers.pod_of_id(id).cloned()
        {
            (pod, inferred) = pods.with_known_uid(&uid, p);
        }
        let (container, by_inference) = containers.resolve(p, pod);
        if pod.is_none()
            && let Some(c) = container
        {
            pod = containers.lives[c.0 as usize].pod;
        }
        let volume = volumes.resolve(pod, &p.draft.volume);
        if let (Some(pod), Payload::Names(names)) = (pod, &p.draft.payload) {
            for name in names {
                let hint = crate::klog::volume(Some(name.as_bytes()), None);
                volumes.resolve(Some(pod), &hint);
            }
        }
        if let (Some(pod), Payload::Object(object)) = (pod, &p.draft.payload) {
            for (of, names) in &object.mounts {
                trace.mounts.insert((pod, of.clone()), names.clone());
            }
        }
        if let (Some(pod), Some(status)) = (pod, status_of(&p.draft.payload)) {
            for c in &status.containers {
                if let (Some(of), Some(names)) = (&c.name, &c.mounts) {
                    trace.mounts.entry((pod, of.clone())).or_insert_with(|| names.clone());
                }
            }
        }
        let host = match &p.draft.host {
            Some(name) => *hosts.entry(name.clone()).or_insert_with(|| {
                trace.hosts.push(name.clone());
                u32::try_from(trace.hosts.len() - 1).unwrap_or(0)
            }),
            None => 0,
        };
        let confidence = if inferred || by_inference { Confidence::Derived } else { Confidence::Seen };
        ties[i] = Some(Tie { pod, container, volume, host, confidence });
    }
    trace.entries.reserve_exact(placed.len());
    containers.ends(&placed, |file, stamp| clocks[file as usize].stamp(stamp));
    for (p, tie) in placed.into_iter().zip(ties) {
        let Some(tie) = tie else { continue };
        let is_sandbox = tie.container.is_some_and(|c| containers.lives[c.0 as usize].sandbox);
        trace.entries.push(Entry {
            at: p.at,
            coarse: p.coarse,
            untimed: p.untimed,
            verb: if is_sandbox { of_sandbox(p.draft.verb) } else { p.draft.verb },
            witness: p.draft.witness,
            file: p.file,
            line: p.draft.line,
            pid: p.draft.pid,
            host: tie.host,
            pod: tie.pod,
            container: tie.container,
            volume: tie.volume,
            payload: p.draft.payload,
            confidence: tie.confidence,
            cut: p.draft.cut,
            artifact: p.draft.volume.artifact,
        });
    }
    let inferred = pods.inferred + containers.inferred;
    if inferred > 0 {
        trace.notes.push(format!("{inferred} joins of names, UIDs and ids are inferred: no line says them"));
    }
    if pods.redacted > 0 {
        trace.notes.push(format!("{} UIDs are unreadable or redacted and join nothing", pods.redacted));
    }
    trace.pods = pods.lives;
    trace.containers = containers.lives;
    trace.volumes = volumes.lives;
}

/// What a verb is called when its subject turns out to be a sandbox.
fn of_sandbox(verb: Verb) -> Verb {
    let names = [
        (Verb::ContainerRunning, Verb::SandboxRunning),
        (Verb::ContainerDead, Verb::SandboxDead),
        (Verb::ContainerGone, Verb::SandboxDead),
        (Verb::ContainerExited, Verb::SandboxExited),
        (Verb::ContainerCreated, Verb::SandboxCreated),
        (Verb::ContainerStarted, Verb::SandboxStarted),
        (Verb::ContainerRemoved, Verb::SandboxRemoved),
    ];
    names.iter().find(|(of_container, _)| *of_container == verb).map_or(verb, |(_, own)| *own)
}

/// Runs of the kubelet: a new process, or a start's own lines (node-logs §2.7).
fn runs(trace: &mut Trace) {
    let mut open: BTreeMap<(u32, u64), usize> = BTreeMap::new();
    for entry in &trace.entries {
        if entry.witness != Witness::Kubelet || entry.pid == 0 || entry.untimed {
            continue;
        }
        let key = (entry.host, entry.pid);
        let run = *open.entry(key).or_insert_with(|| {
            trace.runs.push(Run {
                host: entry.host,
                pid: entry.pid,
                first: entry.at,
                last: entry.at,
                started: false,
            });
            trace.runs.len() - 1
        });
        trace.runs[run].last = trace.runs[run].last.max(entry.at);
        if matches!(entry.verb, Verb::KubeletStarted | Verb::StateStoreReady) {
            trace.runs[run].started = true;
        }
    }
    trace.runs.sort_by_key(|r| (r.host, r.first));
}

/// How far the logs go beyond what they tell of lifecycles: absence counts up to there.
fn reach(inputs: &[Imported], clocks: &[Clock], trace: &mut Trace) {
    for (input, clock) in inputs.iter().zip(clocks) {
        for (pid, stamp) in &input.sink.reach {
            let to = clock.stamp(*stamp);
            trace.reach = trace.reach.max(Some(to));
            for run in trace.runs.iter_mut().filter(|r| r.pid == *pid) {
                run.last = run.last.max(to);
            }
        }
    }
}

fn describe(input: Imported, duplicates: u64, clock: &Clock, trace: &mut Trace) {
    let mut skipped: BTreeMap<Skipped, u64> = BTreeMap::new();
    for why in Skipped::ALL {
        let n = input.sink.skipped[why as usize];
        if n > 0 {
            skipped.insert(why, n);
        }
    }
    if duplicates > 0 {
        *skipped.entry(Skipped::Duplicate).or_default() += duplicates;
    }
    trace.verbosity = trace.verbosity.max(input.sink.verbosity);
    for (remark, n) in input.sink.remarks {
        trace.notes.push(if n > 1 { format!("{remark} ({n} times)") } else { remark });
    }
    trace.files.push(FileFacts {
        name: input.name,
        lines: input.lines,
        bytes: input.bytes,
        recognised: input.sink.recognised,
        skipped,
        witnesses: Vec::new(),
        offset: clock.offset,
    });
}
