//! Several inputs of one node become one trace: placed in time, ordered, without duplicates, tied to instances.

use crate::clock::{self, Clock, Source};
use crate::evidence::{Name, Payload, Sink, Skipped, Witness};
use crate::identity::{Containers, Pods, Said, Volumes, status_of};
use crate::kept::Kept;
use crate::names::{BySym, Names, Sym};
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
    let mut names = one_numbering(&mut inputs);
    let clocks = {
        let sources: Vec<Source<'_>> = inputs
            .iter()
            .map(|i| Source { drafts: &i.sink.drafts, years: &i.sink.years, zones: &i.sink.zones })
            .collect();
        clock::learn(&sources, options.year, options.now, &mut trace.notes)
    };
    let mut kept = Vec::new();
    for (i, input) in inputs.iter_mut().enumerate() {
        let mut drafts = std::mem::take(&mut input.sink.drafts);
        place(&mut drafts, u32::try_from(i).unwrap_or(u32::MAX), &clocks[i], &mut trace.notes);
        if kept.is_empty() {
            kept = drafts;
        } else {
            kept.append(&mut drafts);
        }
    }
    order(&mut kept);
    let mut duplicates = vec![0u64; inputs.len()];
    drop_duplicates(&mut kept, &mut duplicates);
    tie(kept, &mut names, &clocks, &mut trace);
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

/// Calls what all inputs name by the same numbers.
fn one_numbering(inputs: &mut [Imported]) -> Names {
    let mut inputs = inputs.iter_mut().map(|i| &mut i.sink);
    let mut names = inputs.next().map(|sink| std::mem::take(&mut sink.names)).unwrap_or_default();
    for sink in inputs {
        let renamed = names.absorb(&std::mem::take(&mut sink.names));
        sink.drafts.iter_mut().for_each(|k| k.rename(&renamed));
    }
    names
}

/// Gives each draft of a file a moment. What has none is as late as what stands before it; a listing is as late as everything.
/// A file that runs backwards, as consoles export, is turned.
fn place(drafts: &mut [Kept], file: u32, clock: &Clock, notes: &mut Vec<String>) {
    let mut slips = 0u64;
    let mut last = None;
    // An API watch tells its order by its lines, its times only roughly (node-logs §4).
    let mut api_last = Moment(i64::MIN);
    for k in drafts.iter_mut() {
        let listing = matches!(
            k.witness,
            Witness::RuntimeList | Witness::Mounts | Witness::Checkpoint | Witness::Events
        );
        let (at, slipped) = clock.moment(k);
        slips += u64::from(slipped);
        let untimed = at.is_none() && (listing || last.is_none());
        let mut at = at.or(last.filter(|_| !untimed)).unwrap_or(Moment(i64::MAX));
        if k.witness == Witness::Api && !untimed {
            at = at.max(api_last);
            api_last = at;
        }
        if !untimed {
            last = Some(at);
        }
        k.coarse = matches!(k.witness, Witness::Api | Witness::Events | Witness::System)
            && (k.witness == Witness::Api || at.0 % SECOND == 0);
        (k.at, k.untimed, k.file) = (at, untimed, file);
    }
    if slips > 0 {
        notes.push(format!(
            "{slips} records have another hour than their collector gave them; the collector's was taken"
        ));
    }
    if runs_backwards(drafts) {
        drafts.reverse();
    }
}

/// Whether a file runs backwards, as consoles export.
fn runs_backwards(kept: &[Kept]) -> bool {
    let mut forth = 0u32;
    let mut back = 0u32;
    for pair in kept.windows(2) {
        match pair[0].at.cmp(&pair[1].at) {
            std::cmp::Ordering::Less => forth += 1,
            std::cmp::Ordering::Greater => back += 1,
            std::cmp::Ordering::Equal => {}
        }
    }
    back > forth.saturating_mul(2) && back > 2
}

/// Puts all into the order of time. Stable: what has the same stamp stays as its file has it. A coarse second is told before what
/// is finer in it: an object shows what the kubelet then acts on.
fn order(kept: &mut [Kept]) {
    let key = |k: &Kept| (k.untimed, k.at);
    if kept.is_sorted_by_key(key) {
        return;
    }
    // Their places are sorted, since they are large and most of them are where they belong.
    let mut places: Vec<usize> = (0..kept.len()).collect();
    places.sort_by_key(|at| key(&kept[*at]));
    for to in 0..kept.len() {
        let mut from = places[to];
        // What was there has been moved to where its own came from.
        while from < to {
            from = places[from];
        }
        if from != to {
            kept.swap(to, from);
        }
    }
}

/// The same record from several files, or pasted several times (node-logs §1.1, §1.7).
fn drop_duplicates(kept: &mut Vec<Kept>, dropped: &mut [u64]) {
    let mut end = 0;
    let mut group = 0;
    for next in 0..kept.len() {
        let k = &kept[next];
        if end > 0 && kept[end - 1].at != k.at {
            group = end;
        }
        let same = |other: &Kept| {
            other.verb == k.verb
                && other.witness == k.witness
                && other.pid == k.pid
                && other.about == k.about
                && other.payload == k.payload
        };
        let fine = !k.coarse || k.witness == Witness::Api;
        // A group of equal stamps is small but in hostile input: look at its end only.
        let from = group.max(end.saturating_sub(64));
        if fine && !k.untimed && k.verb != Verb::Gap && kept[from..end].iter().any(same) {
            dropped[k.file as usize] += 1;
            continue;
        }
        if end < next {
            kept.swap(end, next);
        }
        end += 1;
    }
    kept.truncate(end);
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
fn tie(kept: Vec<Kept>, names: &mut Names, clocks: &[Clock], trace: &mut Trace) {
    number_volumes(&kept, names);
    let names = &*names;
    let mut pods = Pods::gather(&kept, names);
    let mut containers = Containers::gather(&kept, names);
    let mut ties: Vec<Option<Tie>> = std::iter::repeat_with(|| None).take(kept.len()).collect();
    let mut volumes = Volumes::default();
    let mut hosts: BySym<u32> = BySym::default();
    // Events have whole seconds and come late: they are tied last, to what finer witnesses have told by then.
    let late = |k: &Kept| k.witness == Witness::Events;
    let in_turn = (0..kept.len()).filter(|i| !late(&kept[*i]));
    for i in in_turn.chain((0..kept.len()).filter(|i| late(&kept[*i]))) {
        let k = &kept[i];
        let about = &k.about;
        let (mut pod, mut inferred) = pods.resolve(k);
        if pod.is_none()
            && let Some(uid) = about.id.and_then(|id| containers.pod_of_id(id))
        {
            (pod, inferred) = pods.with_known_uid(uid, k);
        }
        let (container, by_inference) = containers.resolve(k, pod);
        if pod.is_none()
            && let Some(c) = container
        {
            pod = containers.lives[c.0 as usize].pod;
        }
        let said =
            Said { name: about.volume, unique: about.unique, plugin: about.plugin, artifact: about.artifact };
        let volume = volumes.resolve(pod, said, names);
        if let (Some(pod), Payload::Names(waiting)) = (pod, &*k.payload) {
            for name in waiting {
                let said = awaited(name, |name| names.find(name));
                volumes.resolve(Some(pod), said, names);
            }
        }
        if let (Some(pod), Payload::Object(object)) = (pod, &*k.payload) {
            for (of, names) in &object.mounts {
                trace.mounts.insert((pod, of.clone()), names.clone());
            }
        }
        if let (Some(pod), Some(status)) = (pod, status_of(&k.payload)) {
            for c in &status.containers {
                if let (Some(of), Some(names)) = (&c.name, &c.mounts) {
                    trace.mounts.entry((pod, of.clone())).or_insert_with(|| names.clone());
                }
            }
        }
        let host = about.host.map_or(0, |sym| {
            *hosts.room(sym).get_or_insert_with(|| {
                trace.hosts.push(names.get(sym).clone());
                u32::try_from(trace.hosts.len() - 1).unwrap_or(0)
            })
        });
        let confidence = if inferred || by_inference { Confidence::Derived } else { Confidence::Seen };
        ties[i] = Some(Tie { pod, container, volume, host, confidence });
    }
    containers.ends(&kept, |file, stamp| clocks[file as usize].stamp(stamp));
    let mut ties = ties.into_iter().flatten();
    // One by one in the room that the drafts had: neither is there twice.
    let entry = |k: Kept| {
        let tie = ties.next()?;
        let is_sandbox = tie.container.is_some_and(|c| containers.lives[c.0 as usize].sandbox);
        Some(Entry {
            at: k.at,
            coarse: k.coarse,
            untimed: k.untimed,
            verb: if is_sandbox { of_sandbox(k.verb) } else { k.verb },
            witness: k.witness,
            file: k.file,
            line: k.line,
            pid: k.pid,
            host: tie.host,
            pod: tie.pod,
            container: tie.container,
            volume: tie.volume,
            payload: k.payload,
            confidence: tie.confidence,
            cut: k.cut,
            artifact: k.about.artifact,
        })
    };
    trace.entries = kept.into_iter().map_while(entry).collect();
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

/// What a word about a volume that a pod waits for says of it.
fn awaited(name: &Name, mut sym: impl FnMut(&Name) -> Option<Sym>) -> Said {
    let hint = crate::klog::volume(Some(name.as_bytes()), None);
    let mut of = |name: Option<Name>| name.and_then(|name| sym(&name));
    Said { name: of(hint.name), unique: of(hint.unique), plugin: of(hint.plugin), artifact: hint.artifact }
}

/// Volumes that pods wait for are named in a list: these names get numbers, too.
fn number_volumes(kept: &[Kept], names: &mut Names) {
    for k in kept {
        if let Payload::Names(waiting) = &*k.payload {
            for name in waiting {
                awaited(name, |name| Some(names.sym(name)));
            }
        }
    }
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
