//! Folding again: from the start, from any snapshot, by another version, by a wrong reducer.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "tests")]

mod common;

use common::{Counting, FATAL, Live, Right, event, small};
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use nodefold_core::{Config, Event, Fact, Node};
use nodefold_journal::{
    Differs, Error, Fold, LockGuard, Memory, Options, Position, Reader, Record, SOFTWARE, Storage,
    StorageFile, beginning, replay, replay_each, resume, verify,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

/// Takes a snapshot after every batch, and keeps the digest after every event.
fn with_snapshots<F: Fold>(batches: &[u64]) -> (Memory, Vec<nodefold_core::Digest>) {
    let mut live = Live::<F>::new(small());
    let mut digests = vec![live.fold.digest()];
    for &size in batches {
        let before = live.next;
        live.batch(size).unwrap();
        live.writer.snapshot(&mut live.fold).unwrap();
        let mut beside = F::begin(&Config::default());
        for n in 1..live.next {
            beside.apply(&event(n), &mut Default::default());
            if n >= before {
                digests.push(beside.digest());
            }
        }
    }
    (live.stop().0, digests)
}

fn snapshot_and_tail_equal_the_whole_from_every_record<F: Fold>() {
    let (memory, digests) = with_snapshots::<F>(&[3, 1, 7, 4, 0, 12, 2, 9, 5]);
    let storage = memory.storage();
    let mut folded = 0;
    let mut from_snapshots = 0;
    let entries: Vec<_> = Reader::open(&storage).unwrap().map(|e| e.unwrap()).collect();
    for entry in &entries {
        folded += usize::from(matches!(entry.record, Record::Fact(_)));
        let until = Some(Position::Record(entry.number));
        let whole = replay_each::<F>(&storage, until, &mut |_| {}).unwrap().report;
        assert_eq!((whole.digest, whole.records), (digests[folded], entry.number), "record {}", entry.number);
        let tail = replay::<F>(&storage, until).unwrap().report;
        assert_eq!(
            (tail.digest, tail.commands, tail.chain, tail.events, tail.difference),
            (whole.digest, whole.commands, whole.chain, whole.events, None),
            "record {}",
            entry.number
        );
        from_snapshots += u32::from(tail.from_snapshot.is_some());
        // And from every older snapshot, the newer ones gone.
        let copy = memory.copy();
        let mut names: Vec<_> =
            storage.list().unwrap().into_iter().filter(|n| n.ends_with(".snap")).collect();
        while let Some(name) = names.pop() {
            copy.storage().remove(&name).unwrap();
            let tail = replay::<F>(&copy.storage(), until).unwrap().report;
            assert_eq!((tail.digest, tail.commands), (whole.digest, whole.commands), "without {name}");
        }
    }
    assert!(from_snapshots as usize > entries.len() / 2, "{from_snapshots} of {}", entries.len());
    let report = verify::<F>(&storage).unwrap().report;
    assert_eq!((report.difference, report.refused.len(), report.clean_stop), (None, 0, true));
    assert!(
        report.snapshots_equal >= 9 && report.digests_equal == report.batches,
        "{}",
        report.snapshots_equal
    );
}

#[test]
fn snapshot_and_tail_equal_the_whole_from_every_record_counting() {
    snapshot_and_tail_equal_the_whole_from_every_record::<Right>();
}

#[test]
fn snapshot_and_tail_equal_the_whole_from_every_record_node() {
    snapshot_and_tail_equal_the_whole_from_every_record::<Node>();
}

#[test]
fn verify_says_at_which_batch_in_which_pod_and_in_which_field_a_fold_first_differs() {
    let mut live = Live::<Right>::new(Options { segment_bytes: 1 << 20, ..small() });
    live.batch(2).unwrap();
    let guilty = live.batch(3).unwrap(); // events 3 to 5
    live.batch(2).unwrap();
    live.batch(1).unwrap();
    let unstopped = live.memory.copy();
    live.stop();
    // Event 4 is miscounted: of pod 4 % 3 + 1 = 2.
    let found = verify::<Counting<4>>(&unstopped.storage()).unwrap().report.difference.expect("a difference");
    assert_eq!((found.batch, found.records), (guilty.batch + 1, (guilty.first_record, guilty.last_record)));
    assert!(matches!(found.what, Differs::State { .. }), "{found}");
    assert_eq!(found.pods.iter().map(|p| p.pod).collect::<Vec<_>>(), [PodUid(2)]);
    assert!(
        found.pods[0].fields.is_empty() && found.snapshot.is_none(),
        "no later snapshot, no fields: {found}"
    );

    // With a later snapshot at hand: in which field.
    let mut live = Live::<Right>::new(Options { segment_bytes: 1 << 20, ..small() });
    live.batch(2).unwrap();
    live.batch(3).unwrap();
    live.batch(2).unwrap();
    let (memory, _) = live.stop();
    let found = verify::<Counting<4>>(&memory.storage()).unwrap().report.difference.expect("a difference");
    let fields: Vec<_> = found.pods[0].fields.iter().map(|f| f.path.as_str()).collect();
    assert_eq!((fields, found.node.len()), (vec!["[0].facts"], 0), "{found}");
    let text = found.to_string();
    assert!(text.contains("[0].facts: recorded 2, folded 3") && text.contains("batch 4"), "{text}");
    // The right fold finds nothing.
    assert_eq!(verify::<Right>(&memory.storage()).unwrap().report.difference, None);
}

#[test]
fn the_last_facts_are_covered_by_the_clean_stop() {
    let mut live = Live::<Right>::new(small());
    live.batch(2).unwrap();
    let uncovered = live.memory.copy();
    let (memory, _) = live.stop();
    assert_eq!(verify::<Counting<2>>(&uncovered.storage()).unwrap().report.difference, None);
    assert!(!verify::<Right>(&uncovered.storage()).unwrap().report.clean_stop);
    let report = verify::<Counting<2>>(&memory.storage()).unwrap().report;
    assert!(report.difference.is_some() && report.clean_stop);
}

#[test]
fn another_version_compares_commands_and_says_where_it_would_decide_otherwise() {
    let old = Options { software: "0.0.1".to_owned(), segment_bytes: 1 << 20, ..small() };
    let mut live = Live::<Right>::new(old);
    live.batch(2).unwrap();
    let guilty = live.batch(3).unwrap();
    live.batch(2).unwrap();
    let (memory, _) = live.stop();
    let report = verify::<Right>(&memory.storage()).unwrap().report;
    assert_eq!((report.difference, report.digests_equal), (None, 0));
    assert_eq!(report.commands_equal, report.batches);
    let found = verify::<Counting<4>>(&memory.storage()).unwrap().report.difference.expect("a difference");
    assert!(matches!(found.what, Differs::Commands { .. }), "{found}");
    assert_eq!((found.batch, found.software.as_str()), (guilty.batch + 1, "0.0.1"));
}

#[test]
fn a_new_version_takes_over_from_a_snapshot_and_does_not_re_decide_the_past() {
    // The old version had a bug (it counted event 4 twice); this one does not.
    let old = Options { software: "0.0.1".to_owned(), segment_bytes: 1 << 20, ..small() };
    let mut live = Live::<Counting<4>>::new(old);
    live.batch(5).unwrap();
    live.batch(2).unwrap();
    let (memory, digest) = live.stop();
    let mut resumed = resume::<Right>(memory.storage(), small()).unwrap();
    assert_eq!(resumed.fold.digest(), digest, "what was decided stands");
    let mut live = Live { memory, writer: resumed.writer, fold: resumed.fold, next: 8 };
    live.batch(3).unwrap();
    let (memory, digest) = live.stop();
    let headers: Vec<String> = Reader::open(&memory.storage())
        .unwrap()
        .filter_map(|e| match e.unwrap().record {
            Record::Header(header) => Some(header.software),
            _ => None,
        })
        .collect();
    assert_eq!(headers, ["0.0.1", SOFTWARE], "a segment is of one version");
    let report = verify::<Right>(&memory.storage()).unwrap().report;
    assert_eq!(report.digest, digest);
    assert_eq!(report.taken_over.len(), 1);
    assert!(matches!(report.difference.expect("told").what, Differs::Commands { .. }));
}

/// The same state in another layout.
struct OtherLayout(Right);

impl Fold for OtherLayout {
    const LAYOUT: &'static str = "counting 2";
    fn begin(config: &Config) -> Self {
        OtherLayout(Right::begin(config))
    }
    fn apply(&mut self, event: &Event, out: &mut nodefold_core::Commands) {
        self.0.apply(event, out);
    }
    fn skip(&mut self, event: &Event) {
        self.0.skip(event);
    }
    fn digest(&mut self) -> nodefold_core::Digest {
        self.0.digest()
    }
    fn take_touched(&mut self) -> Vec<(PodUid, nodefold_core::Digest)> {
        self.0.take_touched()
    }
    fn event_count(&self) -> nodefold_core::ids::EventSeq {
        self.0.event_count()
    }
    fn to_snapshot(&self) -> Vec<u8> {
        self.0.to_snapshot()
    }
    fn from_snapshot(_: &[u8]) -> Result<Self, String> {
        panic!("bytes of another layout were read");
    }
    fn describe(&self, pod: Option<PodUid>) -> String {
        self.0.describe(pod)
    }
}

#[test]
fn a_snapshot_of_another_layout_or_a_damaged_one_is_refused_and_the_log_is_folded() {
    let mut live = Live::<Right>::new(small());
    for _ in 0..9 {
        live.batch(7).unwrap();
    }
    let (memory, digest) = live.stop();
    let snapshots: Vec<_> =
        memory.storage().list().unwrap().into_iter().filter(|n| n.ends_with(".snap")).collect();
    assert!(snapshots.len() >= 2);
    let resumed = resume::<OtherLayout>(memory.copy().storage(), small()).unwrap();
    assert_eq!((resumed.report.digest, resumed.report.from_snapshot), (digest, None));
    assert_eq!(resumed.report.refused.len(), snapshots.len());
    assert!(resumed.report.refused[0].reason.contains("layout"), "{:?}", resumed.report.refused[0]);

    let newest = snapshots.last().unwrap();
    let bytes = memory.bytes(newest).unwrap();
    for offset in 0..bytes.len() {
        let copy = memory.copy();
        let mut flipped = bytes.clone();
        flipped[offset] ^= 0x10;
        copy.put(newest, flipped);
        let report = replay::<Right>(&copy.storage(), None).unwrap().report;
        assert_eq!((report.digest, report.refused.len()), (digest, 1), "offset {offset}");
        assert!(report.refused[0].file.ends_with(newest.as_str()));
    }
}

#[test]
fn a_record_on_which_the_fold_panics_twice_is_skipped_and_named() {
    let fatal = Event { at: Time(3_500_000), fact: Fact::PodRemoved { pod: FATAL } };
    let mut live = Live::<Right>::new(small());
    live.batch(3).unwrap();
    for event in [event(4), fatal, event(5)] {
        live.writer.append(&event).unwrap();
    }
    let committed = live.writer.commit(&mut live.fold).unwrap();
    let bad = committed.first_record + 1;
    let memory = live.memory.copy(); // the agent dies applying it
    let e = replay::<Right>(&memory.storage(), None).err().expect("it panics");
    assert!(matches!(e, Error::ApplyPanicked { record, .. } if record == bad), "{e}");
    assert!(e.to_string().contains("a planted panic"), "{e}");

    let resumed = resume::<Right>(memory.storage(), small()).unwrap();
    assert_eq!(resumed.newly_skipped.iter().map(|(record, _)| *record).collect::<Vec<_>>(), [bad]);
    let mut live = Live { memory, writer: resumed.writer, fold: resumed.fold, next: 6 };
    live.batch(2).unwrap();
    let (memory, digest) = live.stop();
    let report = verify::<Right>(&memory.storage()).unwrap().report;
    assert_eq!((report.digest, report.difference, report.events), (digest, None, 7));
    assert_eq!(report.skipped.iter().map(|s| s.record).collect::<Vec<_>>(), [bad]);
    // Known from now on: nothing panics, nothing is skipped anew.
    assert!(resume::<Right>(memory.storage(), small()).unwrap().newly_skipped.is_empty());
}

#[test]
fn reading_starts_at_any_record_or_time() {
    for compress in [false, true] {
        let mut live = Live::<Right>::new(Options { compress, ..small() });
        for size in [5, 1, 8, 3, 12, 2, 7, 30, 1, 1] {
            live.batch(size).unwrap();
        }
        let (memory, _) = live.stop();
        let storage = memory.storage();
        let all: Vec<_> = Reader::open(&storage).unwrap().map(|e| e.unwrap()).collect();
        assert!(all.windows(2).all(|w| w[0].number + 1 == w[1].number && w[0].at <= w[1].at));
        let mut reader = Reader::open(&storage).unwrap();
        for (i, entry) in all.iter().enumerate() {
            reader.seek(Position::Record(entry.number));
            assert_eq!(reader.by_ref().next().unwrap().unwrap(), *entry);
            assert_eq!(reader.by_ref().count(), all.len() - i - 1);
            let from = Position::Time(entry.at);
            let first = all.iter().find(|e| e.at >= entry.at).unwrap();
            assert_eq!(Reader::open_at(&storage, from).unwrap().next().unwrap().unwrap(), *first);
            let until = replay::<Right>(&storage, Some(from)).unwrap().report;
            let last = all.iter().rfind(|e| e.at <= entry.at).unwrap();
            assert_eq!((until.records, until.at), (last.number, entry.at), "until {:?}", entry.at);
        }
        let beyond = all.len() as u64 + 1;
        assert!(Reader::open_at(&storage, Position::Record(beyond)).unwrap().next().is_none());
        assert!(Reader::open_at(&storage, Position::Time(Time(u64::MAX))).unwrap().next().is_none());
        let e = replay::<Right>(&storage, Some(Position::Record(beyond))).err().expect("no such record");
        assert!(
            matches!(e, Error::NoSuchRecord { record, last } if record == beyond && last == beyond - 1),
            "{e}"
        );
    }
}

#[test]
fn every_record_is_shown_with_what_it_caused() {
    let mut live = Live::<Right>::new(small());
    live.writer.append_foreign(Time(1), "api", b"create").unwrap();
    live.batch(4).unwrap();
    let (memory, digest) = live.stop();
    let mut seen = Vec::new();
    let replayed = replay_each::<Right>(&memory.storage(), None, &mut |step| {
        seen.push((step.record.kind().name(), step.commands.commands.len(), step.fold.event_count().0));
    })
    .unwrap();
    assert_eq!(replayed.report.digest, digest);
    assert_eq!(
        seen,
        [
            ("Header", 0, 0),
            ("BatchEnd", 0, 0),
            ("Foreign", 0, 0),
            ("Fact", 1, 1),
            ("Fact", 1, 2),
            ("Fact", 1, 3),
            ("Fact", 1, 4),
            ("BatchEnd", 0, 4),
            ("Snapshot", 0, 4),
            ("BatchEnd", 0, 4),
        ]
    );
}

/// A directory that remembers what was read of it.
struct Watched {
    inner: Arc<dyn Storage>,
    read: Mutex<Vec<(String, usize)>>,
}

impl Storage for Watched {
    fn path(&self, name: &str) -> String {
        self.inner.path(name)
    }
    fn lock(&self) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.inner.lock()
    }
    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }
    fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        let bytes = self.inner.read(name, limit)?;
        self.read.lock().unwrap().push((name.to_owned(), bytes.len()));
        Ok(bytes)
    }
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.inner.create(name)
    }
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageFile>> {
        self.inner.open(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.inner.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.inner.remove(name)
    }
    fn sync_dir(&self) -> io::Result<()> {
        self.inner.sync_dir()
    }
}

#[test]
fn a_segment_is_read_without_those_before_it_and_its_state_is_known() {
    for compress in [false, true] {
        let mut live = Live::<Right>::new(Options { compress, ..small() });
        let mut digests = BTreeMap::new();
        for _ in 0..40 {
            live.batch(7).unwrap();
            digests.insert(live.fold.event_count().0, live.fold.digest());
        }
        let (memory, _) = live.stop();
        let all: Vec<_> = Reader::open(&memory.storage()).unwrap().map(|e| e.unwrap()).collect();
        let mut facts = 0;
        for entry in &all {
            facts += u64::from(matches!(entry.record, Record::Fact(_)));
            assert_eq!(entry.facts, facts, "record {}", entry.number);
        }
        assert_eq!(beginning(&memory.storage()).unwrap(), Time(1_000_000));
        for entry in all.iter().step_by(23) {
            let watched = Arc::new(Watched { inner: memory.storage(), read: Mutex::default() });
            let storage: Arc<dyn Storage> = watched.clone();
            let reader = Reader::open_before(&storage, Position::Record(entry.number)).unwrap();
            assert_eq!(reader.is_at_the_first_segment(), entry.file == all[0].file);
            let state = reader.state_before::<Right>();
            let entries: Vec<_> = reader.map(|e| e.unwrap()).collect();
            let first = all.iter().position(|e| e.file == entry.file).unwrap();
            assert_eq!(entries, all[first..], "the whole segment, and what follows");
            match state {
                Some(mut state) => {
                    let events = state.event_count().0;
                    assert_eq!((events, state.digest()), (entries[0].facts, digests[&events]));
                }
                None => assert_eq!(first, 0, "only before the first segment there is no state"),
            }
            let segments = |name: &str| name.ends_with(".seg") || name.ends_with(".segz");
            for (name, bytes) in &*watched.read.lock().unwrap() {
                let is_earlier = segments(name) && !entries.iter().any(|e| e.file.ends_with(name.as_str()));
                assert!(!is_earlier || *bytes <= 128, "{bytes} bytes of {name} were read");
            }
        }
    }
}

#[test]
fn a_journal_is_read_while_its_node_goes_on_and_compresses_it() {
    let mut live = Live::<Right>::new(small());
    for _ in 0..20 {
        live.batch(7).unwrap();
    }
    let storage = live.memory.storage();
    let mut reader = Reader::open(&storage).unwrap();
    let before: Vec<_> = reader.by_ref().take(10).map(|e| e.unwrap()).collect();
    for _ in 0..20 {
        live.batch(7).unwrap();
    }
    assert!(live.writer.compress_sealed().unwrap() > 3);
    let facts =
        before.into_iter().chain(reader.map(|e| e.unwrap())).filter(|e| matches!(e.record, Record::Fact(_)));
    let facts: Vec<u64> = facts.map(|e| e.facts).collect();
    assert!(facts.len() >= 140, "at least what was there when it was opened: {}", facts.len());
    assert_eq!(facts, (1..=facts.len() as u64).collect::<Vec<_>>());
}
