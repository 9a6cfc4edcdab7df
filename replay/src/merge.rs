//! Several inputs of one node become one trace: placed in time, ordered, without duplicates, tied to instances.

use crate::clock::{self, Clock, Heard, Source};
use crate::evidence::{Name, Payload, Sink, Skipped, Witness};
use crate::identity::{Containers, Pods, Said, Volumes, status_of};
use crate::kept::Kept;
use crate::names::{BySym, Names, Sym};
use crate::over;
use crate::stamp::{Moment, SECOND, Stamp};
use crate::trace::{Confidence, ContainerIx, Entry, FileFacts, Forgotten, PodIx, Run, Trace, VolumeIx};
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
pub fn merge(inputs: Vec<Imported>, options: &Options) -> Trace {
    Merging::new(inputs.len(), options, Foreknown::default()).finish(inputs)
}

/// What is known of one file besides its drafts.
#[derive(Default)]
struct Placing {
    heard: Heard,
    /// Drafts that have no moment yet, in the order of the file.
    fresh: Vec<Kept>,
    /// The moment of the last draft that had one.
    last: Option<Moment>,
    /// An API watch tells its order by its lines, its times only roughly (node-logs §4).
    api_last: Option<Moment>,
    /// Records whose hour is another than their collector's.
    slips: u64,
    duplicates: u64,
    witnesses: BTreeSet<Witness>,
    /// The latest moment of what is placed.
    reach: Option<Moment>,
    /// The latest stamp that came since, with a year or without.
    newest: Option<Stamp>,
}

impl Placing {
    fn reach(&self, clock: &Clock) -> Option<Moment> {
        self.reach.max(self.newest.map(|stamp| clock.stamp(stamp)))
    }
}

/// What a reading of the inputs can't know before it has come to their end. A second reading begins with it.
#[derive(Clone, Debug, Default)]
pub struct Foreknown {
    clocks: Vec<Clock>,
    sees_pleg: bool,
}

/// Inputs on their way to a trace: drafts that came, and what was settled of those that went.
pub struct Merging {
    options: Options,
    names: Names,
    files: Vec<Placing>,
    /// The clocks by which drafts were placed; none before the first are.
    clocks: Vec<Clock>,
    /// Drafts that are placed.
    held: Vec<Kept>,
    runs: BTreeMap<(Name, u64), Run>,
    sees_pleg: bool,
    verbosity: u8,
    inferred: u64,
    redacted: u64,
    /// A story was judged while PLEG was not known to speak.
    judged_blind: bool,
    /// Stories that were over are judged up to here.
    front: Option<Moment>,
    late: u64,
    forgotten: Forgotten,
}

impl Merging {
    /// Nothing yet, of so many files.
    pub fn new(files: usize, options: &Options, foreknown: Foreknown) -> Merging {
        Merging {
            options: options.clone(),
            names: Names::default(),
            files: std::iter::repeat_with(Placing::default).take(files).collect(),
            clocks: foreknown.clocks,
            sees_pleg: foreknown.sees_pleg,
            held: Vec::new(),
            runs: BTreeMap::new(),
            verbosity: 0,
            inferred: 0,
            redacted: 0,
            judged_blind: false,
            front: None,
            late: 0,
            forgotten: Forgotten::default(),
        }
    }

    /// Takes in what an importer has found so far, and leaves its counts where they are.
    pub fn take(&mut self, file: usize, sink: &mut Sink) {
        let mut drafts = std::mem::take(&mut sink.drafts);
        let names = std::mem::take(&mut sink.names);
        if self.names.is_empty() {
            self.names = names;
        } else if !drafts.is_empty() {
            let renamed = self.names.absorb(&names);
            drafts.iter_mut().for_each(|k| k.rename(&renamed));
        }
        let of = &mut self.files[file];
        drafts.iter().for_each(|k| of.heard.take(k, &self.names));
        of.newest = drafts.iter().rev().find_map(|k| k.when().or(k.received())).or(of.newest);
        if of.fresh.is_empty() {
            of.fresh = drafts;
        } else {
            of.fresh.append(&mut drafts);
        }
        self.verbosity = self.verbosity.max(sink.verbosity);
    }

    /// How many drafts are held.
    pub fn len(&self) -> usize {
        self.held.len() + self.files.iter().map(|f| f.fresh.len()).sum::<usize>()
    }

    /// The clocks that all tell together by now.
    fn learn<'s>(&self, sinks: impl Iterator<Item = &'s Sink>, notes: &mut Vec<String>) -> Vec<Clock> {
        let sources: Vec<Source<'_>> = (self.files.iter().zip(sinks))
            .map(|(f, sink)| Source { heard: &f.heard, years: &sink.years, zones: &sink.zones })
            .collect();
        clock::learn(&sources, self.options.year, self.options.now, notes)
    }

    /// Gives each draft that came a moment, its place in the order of all, and drops what was there already.
    fn place(&mut self, learnt: Vec<Clock>) {
        if self.clocks.is_empty() {
            self.clocks = learnt;
        }
        let late = self.front.map(|front| front.plus(-over::SILENCE));
        for (file, (of, clock)) in (0u32..).zip(self.files.iter_mut().zip(&self.clocks)) {
            let mut drafts = std::mem::take(&mut of.fresh);
            place(&mut drafts, file, clock, of);
            for k in drafts.iter().filter(|k| !k.untimed) {
                of.reach = of.reach.max(Some(k.at));
                self.late += u64::from(late.is_some_and(|late| k.at < late));
            }
            note_runs(&drafts, &self.names, &mut self.runs);
            if self.held.is_empty() {
                self.held = drafts;
            } else {
                self.held.append(&mut drafts);
            }
        }
        order(&mut self.held);
        drop_duplicates(&mut self.held, &mut self.files);
    }

    /// Takes the stories out that are over, for good: the trace of them, for whom to judge. What may still go on, and what rules
    /// across stories ask for, stays. `sinks` has the counts of all files, `done` whether a file has been read.
    pub fn take_over(&mut self, sinks: &[&Sink], done: &[bool]) -> Option<Trace> {
        let mut learnt = self.learn(sinks.iter().copied(), &mut Vec::new());
        if !self.clocks.is_empty() {
            learnt.clone_from(&self.clocks);
        } else if self.files.iter().zip(&learnt).any(|(of, clock)| backwards(of, clock)) {
            return None;
        }
        let reach: Vec<Option<Moment>> =
            self.files.iter().zip(&learnt).map(|(of, clock)| of.reach(clock)).collect();
        let unread = reach.iter().zip(done).filter(|(_, done)| !**done).map(|(reach, _)| *reach);
        // What no file will say anything before any more; nothing, while one has told no time.
        let front = unread.min().unwrap_or_else(|| reach.iter().max().copied().flatten())?;
        self.place(learnt);
        self.front = self.front.max(Some(front));
        let mut trace = Trace { hosts: vec!["".into()], verbosity: self.verbosity, ..Trace::default() };
        let tied = tie(&self.held, &mut self.names, &self.clocks, &mut trace, false);
        self.sees_pleg |= tied.sees_pleg;
        trace.gaps = gaps(&self.held);
        let goes = over::find(&self.held, &tied.ties, &trace, front);
        let mut stays = Vec::with_capacity(self.held.len() - goes.iter().filter(|g| **g).count());
        let mut entries = Vec::new();
        for ((k, tie), goes) in std::mem::take(&mut self.held).into_iter().zip(tied.ties).zip(goes) {
            if !goes {
                stays.push(k);
                continue;
            }
            self.inferred += u64::from(tie.inferred);
            self.redacted += u64::from(tie.redacted);
            self.files[k.file as usize].witnesses.insert(k.witness);
            entries.push(entry(k, &tie, &trace));
        }
        trace.entries = entries;
        trace.reach = Some(front);
        trace.sees_pleg = self.sees_pleg;
        self.judged_blind |= !trace.entries.is_empty() && !self.sees_pleg;
        runs(&self.runs, &mut trace);
        self.forgotten.count(&trace);
        let mut names = Names::default();
        stays.iter_mut().for_each(|k| k.move_to(&self.names, &mut names));
        (self.held, self.names) = (stays, names);
        Some(trace)
    }

    /// What is known now, if another reading would come to another end with it.
    pub fn should_have_known<'s>(&self, sinks: impl Iterator<Item = &'s Sink>) -> Option<Foreknown> {
        if self.clocks.is_empty() {
            return None;
        }
        let learnt = self.learn(sinks, &mut Vec::new());
        let wrong = |((own, other), of): ((&Clock, &Clock), &Placing)| !own.agrees(other, &of.heard);
        let slow = self.clocks.iter().zip(&learnt).zip(&self.files).any(wrong);
        let blind = self.judged_blind && self.sees_pleg;
        (slow || blind).then_some(Foreknown { clocks: learnt, sees_pleg: self.sees_pleg })
    }

    /// How many drafts were told so late that the story that they belong to may have been forgotten.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// How far a file has come; nothing while it has told no time.
    pub fn reach(&self, file: usize) -> Option<Moment> {
        self.files[file].reach(&self.clocks.get(file).cloned().unwrap_or_default())
    }

    /// The trace of all that is left.
    pub fn finish(mut self, mut inputs: Vec<Imported>) -> Trace {
        let mut trace = Trace { hosts: vec!["".into()], ..Trace::default() };
        for (file, input) in inputs.iter_mut().enumerate() {
            self.take(file, &mut input.sink);
        }
        let learnt = self.learn(inputs.iter().map(|i| &i.sink), &mut trace.notes);
        self.place(learnt);
        for slips in self.files.iter().map(|f| f.slips).filter(|slips| *slips > 0) {
            trace.notes.push(format!(
                "{slips} records have another hour than their collector gave them; the collector's was taken"
            ));
        }
        let tied = tie(&self.held, &mut self.names, &self.clocks, &mut trace, self.forgotten.entries == 0);
        for tie in &tied.ties {
            self.inferred += u64::from(tie.inferred);
            self.redacted += u64::from(tie.redacted);
        }
        self.inferred += tied.eliminated;
        if self.inferred > 0 {
            let text =
                format!("{} joins of names, UIDs and ids are inferred: no line says them", self.inferred);
            trace.notes.push(text);
        }
        if self.redacted > 0 {
            trace.notes.push(format!("{} UIDs are unreadable or redacted and join nothing", self.redacted));
        }
        trace.sees_pleg = self.sees_pleg || tied.sees_pleg;
        trace.gaps = gaps(&self.held);
        for k in &self.held {
            self.files[k.file as usize].witnesses.insert(k.witness);
        }
        let mut ties = tied.ties.into_iter();
        // One by one in the room that the drafts had: neither is there twice.
        let tied = |k: Kept| Some(entry(k, &ties.next()?, &trace));
        let entries = std::mem::take(&mut self.held).into_iter().map_while(tied).collect();
        trace.entries = entries;
        runs(&self.runs, &mut trace);
        reach(&inputs, &self.clocks, &mut trace);
        trace.forgotten = self.forgotten;
        for ((input, of), clock) in inputs.into_iter().zip(self.files).zip(&self.clocks) {
            describe(input, of, clock, &mut trace);
        }
        trace
    }
}

/// Gives each draft of a file a moment. What has none is as late as what stands before it; a listing is as late as everything.
/// A file that runs backwards, as consoles export, is turned.
fn place(drafts: &mut [Kept], file: u32, clock: &Clock, of: &mut Placing) {
    for k in drafts.iter_mut() {
        let listing = matches!(
            k.witness,
            Witness::RuntimeList | Witness::Mounts | Witness::Checkpoint | Witness::Events
        );
        let (at, slipped) = clock.moment(k);
        of.slips += u64::from(slipped);
        let untimed = at.is_none() && (listing || of.last.is_none());
        let mut at = at.or(of.last.filter(|_| !untimed)).unwrap_or(Moment(i64::MAX));
        if k.witness == Witness::Api && !untimed {
            at = of.api_last.map_or(at, |last| at.max(last));
            of.api_last = Some(at);
        }
        if !untimed {
            of.last = Some(at);
        }
        k.coarse = matches!(k.witness, Witness::Api | Witness::Events | Witness::System)
            && (k.witness == Witness::Api || at.0 % SECOND == 0);
        (k.at, k.untimed, k.file) = (at, untimed, file);
    }
    if runs_backwards(drafts.iter().map(|k| k.at)) {
        drafts.reverse();
    }
}

fn backwards(of: &Placing, clock: &Clock) -> bool {
    runs_backwards(of.fresh.iter().filter_map(|k| clock.moment(k).0))
}

/// Whether a file runs backwards, as consoles export.
fn runs_backwards(moments: impl Iterator<Item = Moment>) -> bool {
    let mut forth = 0u32;
    let mut back = 0u32;
    let mut last = None;
    for at in moments {
        match last.map(|last: Moment| last.cmp(&at)) {
            Some(std::cmp::Ordering::Less) => forth += 1,
            Some(std::cmp::Ordering::Greater) => back += 1,
            Some(std::cmp::Ordering::Equal) | None => {}
        }
        last = Some(at);
    }
    back > forth.saturating_mul(2) && back > 2
}

/// Puts all into the order of time. What has the same stamp stays as its file has it, files as they were given. A coarse second is told before what
/// is finer in it: an object shows what the kubelet then acts on.
fn order(kept: &mut [Kept]) {
    let key = |k: &Kept| (k.untimed, k.at, k.file);
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
fn drop_duplicates(kept: &mut Vec<Kept>, files: &mut [Placing]) {
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
            files[k.file as usize].duplicates += 1;
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
pub struct Tie {
    /// Its pod.
    pub pod: Option<PodIx>,
    /// Its container or sandbox.
    pub container: Option<ContainerIx>,
    /// Its volume.
    pub volume: Option<VolumeIx>,
    host: u32,
    confidence: Confidence,
    /// Joins that had to be inferred for it.
    inferred: u8,
    /// Its UID is unreadable.
    redacted: bool,
}

/// Drafts tied to instances, which the trace has.
struct Tied {
    ties: Vec<Tie>,
    /// A name and a UID were joined since nothing else was left for either.
    eliminated: u64,
    /// The kubelet's log has what PLEG sees.
    sees_pleg: bool,
}

/// Ties drafts to instances. `whole`: there are no others, so one that is left over can be told by that.
fn tie(kept: &[Kept], names: &mut Names, clocks: &[Clock], trace: &mut Trace, whole: bool) -> Tied {
    number_volumes(kept, names);
    let names = &*names;
    let mut pods = Pods::gather(kept, names, whole);
    let eliminated = pods.inferred;
    let mut containers = Containers::gather(kept, names);
    let mut ties: Vec<Option<Tie>> = std::iter::repeat_with(|| None).take(kept.len()).collect();
    let mut volumes = Volumes::default();
    let mut hosts: BySym<u32> = BySym::default();
    // Events have whole seconds and come late: they are tied last, to what finer witnesses have told by then.
    let late = |k: &Kept| k.witness == Witness::Events;
    let in_turn = (0..kept.len()).filter(|i| !late(&kept[*i]));
    for i in in_turn.chain((0..kept.len()).filter(|i| late(&kept[*i]))) {
        let k = &kept[i];
        let about = &k.about;
        let before = pods.inferred + containers.inferred;
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
        let inferred = u8::try_from(pods.inferred + containers.inferred - before).unwrap_or(u8::MAX);
        let redacted = pods.is_redacted(about);
        ties[i] = Some(Tie { pod, container, volume, host, confidence, inferred, redacted });
    }
    containers.ends(kept, |file, stamp| clocks[file as usize].stamp(stamp));
    trace.pods = pods.lives;
    trace.containers = containers.lives;
    trace.volumes = volumes.lives;
    let ties: Vec<Tie> = ties.into_iter().flatten().collect();
    let tells = [Verb::ContainerRunning, Verb::ContainerDead, Verb::SandboxDead];
    let tells = |(k, tie): (&Kept, &Tie)| {
        k.witness == Witness::Kubelet && tells.contains(&verb_of(k.verb, tie, trace))
    };
    let sees_pleg = kept.iter().zip(&ties).any(tells);
    Tied { ties, eliminated, sees_pleg }
}

/// When somebody cut something out of the input.
fn gaps(kept: &[Kept]) -> Vec<Moment> {
    kept.iter().filter(|k| k.verb == Verb::Gap).map(|k| k.at).collect()
}

/// A draft's entry.
fn entry(k: Kept, tie: &Tie, trace: &Trace) -> Entry {
    Entry {
        at: k.at,
        coarse: k.coarse,
        untimed: k.untimed,
        verb: verb_of(k.verb, tie, trace),
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
    }
}

fn verb_of(verb: Verb, tie: &Tie, trace: &Trace) -> Verb {
    let is_sandbox = tie.container.is_some_and(|c| trace.container(c).sandbox);
    if is_sandbox { of_sandbox(verb) } else { verb }
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
fn note_runs(drafts: &[Kept], names: &Names, runs: &mut BTreeMap<(Name, u64), Run>) {
    let of_kubelet = |k: &&Kept| k.witness == Witness::Kubelet && k.pid != 0 && !k.untimed;
    let mut of_kubelet = drafts.iter().filter(of_kubelet).peekable();
    // One process writes many records before another does.
    while let Some(k) = of_kubelet.next() {
        let host = k.about.host.map(|sym| names.get(sym).clone()).unwrap_or_default();
        let new = Run { host: 0, pid: k.pid, first: k.at, last: k.at, started: false };
        let run = runs.entry((host, k.pid)).or_insert(new);
        let mut k = k;
        loop {
            (run.first, run.last) = (run.first.min(k.at), run.last.max(k.at));
            run.started |= matches!(k.verb, Verb::KubeletStarted | Verb::StateStoreReady);
            let same = |next: &&Kept| next.pid == k.pid && next.about.host == k.about.host;
            match of_kubelet.next_if(same) {
                Some(next) => k = next,
                None => break,
            }
        }
    }
}

/// The runs as the trace has them.
fn runs(all: &BTreeMap<(Name, u64), Run>, trace: &mut Trace) {
    for ((host, _), run) in all {
        let known = trace.hosts.iter().position(|h| h == host);
        let host = known.unwrap_or_else(|| {
            trace.hosts.push(host.clone());
            trace.hosts.len() - 1
        });
        trace.runs.push(Run { host: u32::try_from(host).unwrap_or(0), ..run.clone() });
    }
    trace.runs.sort_by_key(|r| (r.host, r.first, r.pid));
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

fn describe(input: Imported, of: Placing, clock: &Clock, trace: &mut Trace) {
    let mut skipped: BTreeMap<Skipped, u64> = BTreeMap::new();
    for why in Skipped::ALL {
        let n = input.sink.skipped[why as usize];
        if n > 0 {
            skipped.insert(why, n);
        }
    }
    if of.duplicates > 0 {
        *skipped.entry(Skipped::Duplicate).or_default() += of.duplicates;
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
        witnesses: of.witnesses.into_iter().collect(),
        offset: clock.offset,
    });
}
