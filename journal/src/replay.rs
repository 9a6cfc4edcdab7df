//! Folding a log again: to go on from it, to see any moment of it, to compare every digest that it holds.

use crate::command_hash::CommandHash;
use crate::difference::{Difference, Differs, PodDifference, differing_fields, differing_pods};
use crate::error::{Damage, Error};
use crate::fold::Fold;
use crate::frame::Frame;
use crate::log::{Batches, End, Log, Position, snapshot_file};
use crate::record::{BatchEnd, Header, Kind, Record, Skipped};
use crate::snapshot::{self, Form, Refused, SnapshotHead};
use crate::storage::Storage;
use crate::tail::Cut;
use crate::writer::SOFTWARE;
use nodefold_core::command::Commands;
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use nodefold_core::{Config, Digest};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// One record on its way through the fold.
#[derive(Debug)]
pub struct Step<'a, F> {
    /// Its number.
    pub number: u64,
    /// In which file.
    pub file: &'a str,
    /// Where in it (in the uncompressed segment).
    pub offset: u64,
    /// The latest time so far.
    pub at: Time,
    /// What it says.
    pub record: &'a Record,
    /// The fold after it.
    pub fold: &'a F,
    /// What it made the fold ask for.
    pub commands: &'a Commands,
}

/// Who looks on.
type Each<'e, F> = dyn FnMut(Step<'_, F>) + 'e;

/// What a log holds, and how the fold compared with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The last record that was folded (or read).
    pub records: u64,
    /// The last batch of which a record was read.
    pub batches: u64,
    /// Events in the fold.
    pub events: u64,
    /// The latest time.
    pub at: Time,
    /// The fold's digest.
    pub digest: Digest,
    /// The running hash of its commands.
    pub commands: u128,
    /// The chain over the batches: the log's head.
    pub chain: [u8; 32],
    /// The snapshot that the fold began with, by the last record it includes.
    pub from_snapshot: Option<u64>,
    /// That was a portable state, since no snapshot was of this program's layout.
    pub portable: bool,
    /// Snapshots that could not be used, and why.
    pub refused: Vec<Refused>,
    /// Snapshots that were compared with the fold and equal it.
    pub snapshots_equal: u64,
    /// Batches whose recorded digest was compared with the fold's and equals it.
    pub digests_equal: u64,
    /// Batches whose recorded command hash was compared with the fold's and equals it.
    pub commands_equal: u64,
    /// Records at which a new version took over from a snapshot whose state our fold of the old part doesn't reach.
    pub taken_over: Vec<u64>,
    /// Facts that were not folded.
    pub skipped: Vec<Skipped>,
    /// The first difference.
    pub difference: Option<Difference>,
    /// What follows the last whole batch: a batch that was never acknowledged. Recovery cuts it.
    pub cut: Option<Cut>,
    /// The log ends with a clean stop.
    pub clean_stop: bool,
}

/// A fold of a log.
pub struct Replayed<F> {
    /// The state.
    pub fold: F,
    /// What it began with.
    pub config: Config,
    /// What was seen on the way.
    pub report: Report,
}

/// Folds up to `until`, from the newest snapshot before it that can be used.
pub fn replay<F: Fold>(storage: &Arc<dyn Storage>, until: Option<Position>) -> Result<Replayed<F>, Error> {
    let log = Log::open(storage.clone())?;
    let (replayed, _) = from_best_snapshot(&log, until, &BTreeMap::new())?;
    Ok(replayed)
}

/// Folds from the start up to `until`, and shows every record on the way.
pub fn replay_each<F: Fold>(
    storage: &Arc<dyn Storage>,
    until: Option<Position>,
    each: &mut dyn FnMut(Step<'_, F>),
) -> Result<Replayed<F>, Error> {
    let log = Log::open(storage.clone())?;
    let (replayed, _) =
        Folding::new(&log, until, &BTreeMap::new()).run(None, Some(each)).map_err(Stop::into_error)?;
    Ok(replayed)
}

/// Folds everything from the start and compares every recorded digest, command hash and snapshot with the fold.
pub fn verify<F: Fold>(storage: &Arc<dyn Storage>) -> Result<Replayed<F>, Error> {
    let log = Log::open(storage.clone())?;
    let mut folding = Folding::new(&log, None, &BTreeMap::new());
    folding.check_snapshots = true;
    let (replayed, _) = folding.run(None, None).map_err(Stop::into_error)?;
    Ok(replayed)
}

/// Tries the newest snapshot first, then older ones, then the portable states, then none.
pub(crate) fn from_best_snapshot<F: Fold>(
    log: &Log,
    until: Option<Position>,
    skip: &BTreeMap<u64, String>,
) -> Result<(Replayed<F>, Outcome), Error> {
    let mut refused = Vec::new();
    let storage = &*log.storage;
    let newest_first = |list: &[u64], form| list.iter().rev().map(|r| (form, *r)).collect::<Vec<_>>();
    let own = newest_first(&log.snapshots, Form::Layout);
    for (form, records) in own.into_iter().chain(newest_first(&log.portables, Form::Portable)) {
        let usable = match until {
            None => true,
            Some(Position::Record(record)) => records <= record,
            Some(Position::Time(at)) => match snapshot::head(storage, form, records) {
                Ok(head) => head.at <= at,
                // The reason is told when it is tried for real.
                Err(_) => true,
            },
        };
        if !usable {
            continue;
        }
        let start = match snapshot::load::<F>(storage, form, records, log.segments[0].1.id) {
            Ok(start) => start,
            Err(why) => {
                refused.push(why);
                continue;
            }
        };
        match Folding::new(log, until, skip).run(Some(start), None) {
            Ok((mut replayed, outcome)) => {
                replayed.report.refused = refused;
                replayed.report.portable = form == Form::Portable;
                return Ok((replayed, outcome));
            }
            Err(Stop::Snapshot(why)) => refused.push(why),
            Err(Stop::Log(e)) => return Err(*e),
        }
    }
    let (mut replayed, outcome) = Folding::new(log, until, skip).run(None, None).map_err(Stop::into_error)?;
    replayed.report.refused = refused;
    Ok((replayed, outcome))
}

/// What a writer needs beyond the report, if the whole log was folded.
pub(crate) struct Outcome {
    pub end: Option<End>,
    pub commands: CommandHash,
    /// Who wrote the last segment.
    pub header: Header,
}

enum Stop {
    Log(Box<Error>),
    Snapshot(Refused),
}

impl From<Error> for Stop {
    fn from(e: Error) -> Stop {
        Stop::Log(Box::new(e))
    }
}

impl Stop {
    fn into_error(self) -> Error {
        match self {
            Stop::Log(e) => *e,
            // Only a fold that began with a snapshot stops so.
            Stop::Snapshot(why) => {
                Error::Damaged { file: why.file, offset: 0, record: 0, what: Damage::OtherJournal }
            }
        }
    }
}

struct Folding<'a> {
    log: &'a Log,
    until: Option<Position>,
    skip: BTreeMap<u64, String>,
    check_snapshots: bool,
}

/// The fold and what is known about it on the way.
struct State<F> {
    fold: F,
    commands: CommandHash,
    header: Header,
    at: Time,
    out: Commands,
    report: Report,
    /// The records of the batch before.
    before: (u64, u64),
}

impl<'a> Folding<'a> {
    fn new(log: &'a Log, until: Option<Position>, skip: &BTreeMap<u64, String>) -> Folding<'a> {
        Folding { log, until, skip: skip.clone(), check_snapshots: false }
    }

    fn run<F: Fold>(
        mut self,
        start: Option<(SnapshotHead, F)>,
        mut each: Option<&mut Each<'_, F>>,
    ) -> Result<(Replayed<F>, Outcome), Stop> {
        let first =
            start.as_ref().map_or(0, |(head, _)| self.log.segment_of_record(head.records.saturating_add(1)));
        let skipped = self.find_skipped(first);
        let mut batches = self.log.batches(first);
        if !batches.advance()? {
            // Every segment has its first batch, so there is a batch.
            return Err(Error::NotAJournal { dir: self.log.storage.path("") }.into());
        }
        let header = header_of(&batches)?;
        let mut state = State::begin(start, header, self.log.segments[first].1.since, skipped);
        // What the snapshot includes is checked and not folded.
        if let Some(from) = state.report.from_snapshot {
            self.pass_snapshot(&mut batches, &mut state, from)?;
        }
        let mut more = batches.end.is_some();
        while more {
            if batches.frames.first().is_some_and(|f| f.kind == Kind::Header.number()) {
                state.next_header(&batches, self.log)?;
            }
            if !self.fold_batch(&batches, &mut state, &mut each)? {
                return Ok(state.finish(&batches, false));
            }
            if self.check_snapshots {
                state.check_snapshot(self.log);
            }
            more = batches.advance()?;
        }
        if let Some(Position::Record(record)) = self.until
            && record > state.report.records
        {
            return Err(Error::NoSuchRecord { record, last: state.report.records }.into());
        }
        Ok(state.finish(&batches, true))
    }

    /// All facts that are not to be folded. They are named later in the log than they are. What can't be read is
    /// reported by the fold when it gets there, if it does.
    fn find_skipped(&mut self, first: usize) -> Vec<Skipped> {
        let mut found = Vec::new();
        let mut batches = self.log.batches(first);
        batches.check_chain = false;
        while let Ok(true) = batches.advance() {
            for frame in &batches.frames {
                if frame.kind == Kind::Skipped.number()
                    && let Ok((_, Record::Skipped(skipped))) = batches.decode(frame)
                {
                    self.skip.insert(skipped.record, skipped.reason.clone());
                    found.push(skipped);
                }
            }
        }
        found
    }

    /// Goes to the first batch after the snapshot; the log must be the one that the snapshot was made of.
    fn pass_snapshot<F: Fold>(
        &self,
        batches: &mut Batches,
        state: &mut State<F>,
        records: u64,
    ) -> Result<(), Stop> {
        let refuse = |reason: &str| {
            let file = self.log.storage.path(&snapshot_file(records));
            Err(Stop::Snapshot(Refused { file, reason: reason.to_owned() }))
        };
        let first = &self.log.segments[batches.segment_index()].1;
        let (mut chain, mut passed) = (first.chain, first.first_record - 1);
        while let Some((_, end)) = &batches.end
            && end.first_record <= records
        {
            if end.number() > records {
                return refuse("it is of the middle of a batch");
            }
            (chain, passed) = (end.chain, end.number());
            state.before = (end.first_record, passed);
            batches.advance()?;
        }
        if passed < records {
            return refuse("it is of a later record than the log has");
        }
        if chain != state.report.chain {
            return refuse("the log is another than the one that it was made of");
        }
        Ok(())
    }

    /// Compares the fold with the batch's end, then folds the batch; false if `until` was reached.
    fn fold_batch<F: Fold>(
        &self,
        batches: &Batches,
        state: &mut State<F>,
        each: &mut Option<&mut Each<'_, F>>,
    ) -> Result<bool, Error> {
        let Some((end_frame, end)) = &batches.end else { return Ok(true) };
        state.compare(end);
        state.report.batches = end.batch;
        for frame in batches.frames.iter().chain([end_frame]) {
            if matches!(self.until, Some(Position::Record(until)) if frame.number > until) {
                return Ok(false);
            }
            let fact = frame.kind == Kind::Fact.number();
            if !fact && each.is_none() && !matches!(self.until, Some(Position::Time(_))) {
                state.report.records = frame.number;
                continue;
            }
            let (_, record) = batches.decode(frame)?;
            let at = record.at().map_or(state.at, |at| at.max(state.at));
            if matches!(self.until, Some(Position::Time(until)) if at > until) {
                return Ok(false);
            }
            state.at = at;
            state.out.clear();
            if let Record::Fact(event) = &record {
                if self.skip.contains_key(&frame.number) {
                    state.fold.skip(event);
                } else {
                    let State { fold, out, .. } = state;
                    catch_unwind(AssertUnwindSafe(|| fold.apply(event, out)))
                        .map_err(|panic| panicked(batches, frame, &*panic))?;
                    state.commands.add(&state.out.commands);
                }
            }
            state.report.records = frame.number;
            if let Some(each) = each {
                each(Step {
                    number: frame.number,
                    file: batches.path(),
                    offset: frame.offset as u64,
                    at,
                    record: &record,
                    fold: &state.fold,
                    commands: &state.out,
                });
            }
        }
        state.at = state.at.max(end.at);
        state.before = (end.first_record, end.number());
        state.report.chain = end.chain;
        let kinds = |kind: Kind| batches.frames.iter().any(|f| f.kind == kind.number());
        let news = kinds(Kind::Header) || kinds(Kind::Fact) || kinds(Kind::Foreign);
        state.report.clean_stop = kinds(Kind::Snapshot) && !news;
        Ok(true)
    }
}

impl<F: Fold> State<F> {
    fn begin(
        start: Option<(SnapshotHead, F)>,
        header: Header,
        since: Time,
        skipped: Vec<Skipped>,
    ) -> State<F> {
        let mut report = Report {
            records: 0,
            batches: 0,
            events: 0,
            at: since,
            digest: Digest(0),
            commands: 0,
            chain: [0; 32],
            from_snapshot: None,
            portable: false,
            refused: Vec::new(),
            snapshots_equal: 0,
            digests_equal: 0,
            commands_equal: 0,
            taken_over: Vec::new(),
            skipped,
            difference: None,
            cut: None,
            clean_stop: false,
        };
        let (fold, commands, at) = match start {
            None => (F::begin(&header.config), CommandHash::default(), since),
            Some((head, fold)) => {
                report.from_snapshot = Some(head.records);
                (report.records, report.batches, report.chain) = (head.records, head.batches, head.chain);
                (fold, CommandHash::resume(head.commands), head.at)
            }
        };
        State { fold, commands, header, at, out: Commands::default(), report, before: (0, 0) }
    }

    /// A new segment: if another version begins here, it took over from a state that ours need not have reached.
    fn next_header(&mut self, batches: &Batches, log: &Log) -> Result<(), Error> {
        let header = header_of(batches)?;
        let other = header.software != self.header.software || header.layout != self.header.layout;
        self.header = header;
        let Some((_, end)) = &batches.end else { return Ok(()) };
        if !other || !self.is_ours() || self.fold.digest().0 == end.digest {
            return Ok(());
        }
        // Recorded allocations stand: a version does not re-decide the past (DESIGN §8).
        let records = end.first_record - 1;
        if let Ok((head, fold)) =
            snapshot::load::<F>(&*log.storage, Form::Layout, records, log.segments[0].1.id)
            && head.digest == end.digest
        {
            self.fold = fold;
            self.commands = CommandHash::resume(head.commands);
            self.report.taken_over.push(records);
        }
        Ok(())
    }

    /// This program's own state, comparable by digest.
    fn is_ours(&self) -> bool {
        self.header.software == SOFTWARE && self.header.layout == F::LAYOUT
    }

    fn compare(&mut self, end: &BatchEnd) {
        let folded = self.fold.digest();
        let touched = self.fold.take_touched();
        if self.report.difference.is_some() {
            return;
        }
        let (events, commands) = (self.fold.event_count().0, self.commands.value());
        let what = if self.is_ours() && folded != end.digest() {
            Differs::State { recorded: end.digest(), folded }
        } else if self.is_ours() && events != end.events {
            Differs::Events { recorded: end.events, folded: events }
        } else if commands != end.commands {
            Differs::Commands { recorded: end.commands, folded: commands }
        } else {
            self.report.digests_equal += u64::from(self.is_ours());
            self.report.commands_equal += 1;
            return;
        };
        let pods = if self.is_ours() { differing_pods(end, &touched) } else { Vec::new() };
        self.report.difference = Some(Difference {
            batch: end.batch,
            records: self.before,
            at: self.at,
            software: self.header.software.clone(),
            what,
            pods,
            node: Vec::new(),
            snapshot: None,
        });
    }

    /// Compares with the snapshot of this moment, if there is one; and tells the fields of a difference found before.
    fn check_snapshot(&mut self, log: &Log) {
        let records = self.before.1;
        if log.snapshots.binary_search(&records).is_err() {
            return;
        }
        let (head, recorded) =
            match snapshot::load::<F>(&*log.storage, Form::Layout, records, log.segments[0].1.id) {
                Ok(loaded) => loaded,
                Err(why) => return self.report.refused.push(why),
            };
        let folded = self.fold.digest();
        let Some(difference) = &mut self.report.difference else {
            if head.software == SOFTWARE && folded.0 != head.digest {
                let what = Differs::State { recorded: Digest(head.digest), folded };
                let pods = self.fold.take_touched();
                let pods = pods.into_iter().map(|(pod, _)| pod).collect::<Vec<_>>();
                self.report.difference = Some(Difference {
                    batch: head.batches.saturating_add(1),
                    records: self.before,
                    at: self.at,
                    software: head.software,
                    what,
                    pods: field_differences(pods, &recorded, &self.fold),
                    node: differing_fields(&recorded.describe(None), &self.fold.describe(None)),
                    snapshot: Some(records),
                });
            } else {
                self.report.snapshots_equal += u64::from(folded.0 == head.digest);
            }
            return;
        };
        if difference.snapshot.is_none() {
            for pod in &mut difference.pods {
                let (recorded, folded) =
                    (recorded.describe(Some(pod.pod)), self.fold.describe(Some(pod.pod)));
                pod.fields = differing_fields(&recorded, &folded);
            }
            difference.node = differing_fields(&recorded.describe(None), &self.fold.describe(None));
            difference.snapshot = Some(records);
        }
    }

    fn finish(mut self, batches: &Batches, whole: bool) -> (Replayed<F>, Outcome) {
        self.report.digest = self.fold.digest();
        self.report.events = self.fold.event_count().0;
        self.report.commands = self.commands.value();
        self.report.at = self.at;
        self.report.cut = batches.cut.clone();
        let end = if whole { batches.log_end() } else { None };
        let outcome = Outcome { end, commands: self.commands, header: self.header.clone() };
        (Replayed { fold: self.fold, config: self.header.config, report: self.report }, outcome)
    }
}

/// The pods of which the fields differ.
fn field_differences<F: Fold>(pods: Vec<PodUid>, recorded: &F, folded: &F) -> Vec<PodDifference> {
    pods.into_iter()
        .map(|pod| PodDifference {
            pod,
            recorded: None,
            folded: None,
            fields: differing_fields(&recorded.describe(Some(pod)), &folded.describe(Some(pod))),
        })
        .filter(|p| !p.fields.is_empty())
        .collect()
}

fn header_of(batches: &Batches) -> Result<Header, Error> {
    let first = batches.frames.first().copied();
    if let Some(frame) = first
        && let (_, Record::Header(header)) = batches.decode(&frame)?
    {
        return Ok(header);
    }
    Err(Error::Damaged {
        file: batches.path().to_owned(),
        offset: first.map_or(0, |f| f.offset as u64),
        record: first.map_or(0, |f| f.number),
        what: Damage::NoHeader,
    })
}

fn panicked(batches: &Batches, frame: &Frame, panic: &(dyn std::any::Any + Send)) -> Error {
    let message = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => "no message".to_owned(),
    };
    Error::ApplyPanicked {
        file: batches.path().to_owned(),
        offset: frame.offset as u64,
        record: frame.number,
        message,
    }
}
