//! What durability costs beyond the disk's own price, and how fast a log is folded and verified (DESIGN §9).
//!
//! `append` interleaves passes of the journal and of raw `pwrite` + `fdatasync` of as many bytes into a file zero-filled
//! in the same way, because a disk's speed drifts: only passes side by side compare.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a bench"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use criterion::{BatchSize, Criterion, Throughput};
use nodefold_core::command::Commands;
use nodefold_core::ids::{EventSeq, PodUid};
use nodefold_core::{Config, Digest, Event, Node};
use nodefold_journal::{
    Files, Fold, LockGuard, Memory, Options, Storage, StorageFile, Writer, resume, verify,
};
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

const GROUPS: [u64; 4] = [1, 8, 64, 512];
const PASSES: usize = 9;

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Seconds per batch of the journal, and bytes per batch. `apply` is not part of it.
fn journal_pass(dir: &std::path::Path, batches: u64, group: u64) -> (f64, u64) {
    let config = Config::default();
    let mut node = Node::new(config.clone());
    let options = Options { segment_bytes: 1 << 30, fill_bytes: 64 << 20, ..Options::default() };
    let mut journal = Writer::create(Files::at(dir), options, &config, &mut node).expect("created");
    let events: Vec<Event> = (1..=group).map(common::event).collect();
    let mut out = Commands::default();
    let mut spent = Duration::ZERO;
    for _ in 0..batches {
        let begun = Instant::now();
        for event in &events {
            journal.append(event).expect("appended");
        }
        journal.commit(&mut node).expect("committed");
        spent += begun.elapsed();
        out.clear();
        events.iter().for_each(|event| node.apply(event, &mut out));
    }
    let file = std::fs::read(dir.join("00000000000000000001.seg")).expect("read");
    let used = file.iter().rposition(|&b| b != 0).map_or(0, |last| last as u64 + 1);
    (spent.as_secs_f64() / batches as f64, used / batches)
}

/// Seconds per write and sync of so many bytes.
fn raw_pass(path: &std::path::Path, batches: u64, bytes: u64) -> f64 {
    let file = File::create(path).expect("created");
    let zeros = vec![0; 1 << 20];
    for piece in 0..=(batches * bytes) >> 20 {
        file.write_all_at(&zeros, piece << 20).expect("zeros");
    }
    file.sync_data().expect("synced");
    let batch: Vec<u8> = (0..bytes).map(|i| i as u8 | 1).collect();
    let mut spent = Duration::ZERO;
    for n in 0..batches {
        let begun = Instant::now();
        file.write_all_at(&batch, n * bytes).expect("written");
        file.sync_data().expect("synced");
        spent += begun.elapsed();
    }
    spent.as_secs_f64() / batches as f64
}

fn append() {
    println!(
        "append with group commit, against raw pwrite + fdatasync of as many bytes (median of {PASSES} passes)"
    );
    println!(
        "{:>6} {:>12} {:>12} {:>12} {:>14} {:>8}",
        "group", "bytes/batch", "journal us", "raw us", "events/s", "of raw"
    );
    for group in GROUPS {
        let batches = if group > 64 { 100 } else { 300 };
        let (mut journal, mut raw, mut ratio, mut size) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for pass in 0..=PASSES {
            let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
            let (ours, bytes) = journal_pass(dir.path(), batches, group);
            let theirs = raw_pass(&dir.path().join("raw"), batches, bytes);
            // The first pass warms up.
            if pass > 0 {
                journal.push(ours * 1e6);
                raw.push(theirs * 1e6);
                ratio.push(theirs / ours * 100.0);
                size = bytes;
            }
        }
        let (ours, theirs) = (median(journal), median(raw));
        let rate = group as f64 / ours * 1e6;
        println!("{group:>6} {size:>12} {ours:>12.1} {theirs:>12.1} {rate:>14.0} {:>7.1}%", median(ratio));
    }
}

/// A disk that takes everything at once and keeps nothing: what is left of an append is the journal's own work.
struct Nowhere;

impl Storage for Nowhere {
    fn path(&self, name: &str) -> String {
        name.to_owned()
    }
    fn lock(&self) -> io::Result<Option<Box<dyn LockGuard>>> {
        Ok(Some(Box::new(Nowhere)))
    }
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
    fn read(&self, name: &str, _limit: u64) -> io::Result<Vec<u8>> {
        Err(io::Error::new(io::ErrorKind::NotFound, name))
    }
    fn create(&self, _name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(Nowhere))
    }
    fn open(&self, _name: &str) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(Nowhere))
    }
    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Ok(())
    }
    fn remove(&self, _name: &str) -> io::Result<()> {
        Ok(())
    }
    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }
}

impl StorageFile for Nowhere {
    fn write_at(&mut self, _offset: u64, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }
    fn set_len(&mut self, _len: u64) -> io::Result<()> {
        Ok(())
    }
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LockGuard for Nowhere {}

/// Keeps in step with a journal, and folds nothing.
struct Counted {
    config: Config,
    events: u64,
}

impl Fold for Counted {
    const LAYOUT: &'static str = "counted 1";
    fn begin(config: &Config) -> Self {
        Counted { config: config.clone(), events: 0 }
    }
    fn apply(&mut self, _event: &Event, _out: &mut Commands) {
        self.events += 1;
    }
    fn skip(&mut self, _event: &Event) {}
    fn digest(&mut self) -> Digest {
        Digest(u128::from(self.events))
    }
    fn take_touched(&mut self) -> Vec<(PodUid, Digest)> {
        Vec::new()
    }
    fn event_count(&self) -> EventSeq {
        EventSeq(self.events)
    }
    fn to_snapshot(&self) -> Vec<u8> {
        Vec::new()
    }
    fn from_snapshot(_bytes: &[u8]) -> Result<Self, String> {
        Ok(Counted::begin(&Config::default()))
    }
    fn describe(&self, _pod: Option<PodUid>) -> String {
        self.config.node_name.to_string()
    }
}

/// What the journal itself does to a group: encoding, checksums, the chain.
fn own_work(c: &mut Criterion) {
    let mut of = c.benchmark_group("own work");
    for group in GROUPS {
        let events: Vec<Event> = (1..=group).map(common::event).collect();
        let mut fold = Counted::begin(&Config::default());
        let options = Options { segment_bytes: u64::MAX / 2, fill_bytes: 64 << 20, ..Options::default() };
        let mut journal =
            Writer::create(Arc::new(Nowhere), options, &Config::default(), &mut fold).expect("created");
        of.throughput(Throughput::Elements(group));
        of.bench_function(group.to_string(), |b| {
            b.iter(|| {
                for event in &events {
                    journal.append(black_box(event)).expect("appended");
                }
                journal.commit(&mut fold).expect("committed");
                fold.events += group;
            });
        });
    }
    of.finish();
}

/// A log in memory: batches of 16 events.
fn log_of(events: u64) -> Memory {
    let memory = Memory::new();
    let config = Config::default();
    let mut node = Node::new(config.clone());
    let options = Options { compress: false, segment_bytes: 256 << 20, ..Options::default() };
    let mut journal = Writer::create(memory.storage(), options, &config, &mut node).expect("created");
    let mut out = Commands::default();
    for first in (1..=events).step_by(16) {
        let batch: Vec<Event> = (first..first + 16).map(common::event).collect();
        batch.iter().for_each(|event| journal.append(event).expect("appended"));
        journal.commit(&mut node).expect("committed");
        out.clear();
        batch.iter().for_each(|event| node.apply(event, &mut out));
        journal.commands_given(&out.commands);
    }
    journal.stop(&mut node).expect("stopped");
    memory
}

fn replaying(c: &mut Criterion) {
    const EVENTS: u64 = 16_000;
    let memory = log_of(EVENTS);
    let storage = memory.storage();
    let mut group = c.benchmark_group("replay");
    group.throughput(Throughput::Elements(EVENTS)).sample_size(20);
    group.bench_function("verify", |b| {
        b.iter(|| black_box(verify::<Node>(&storage).expect("whole").report.digest))
    });
    group.bench_function("resume", |b| {
        b.iter_batched(
            || memory.copy(),
            |copy| resume::<Node>(copy.storage(), Options::default()).expect("whole").report.digest,
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn main() {
    // `cargo test` runs benches too, to see that they run; the disk has no part in that, nor in a bench asked for by name.
    if std::env::args().skip(1).eq(["--bench"]) {
        append();
    }
    let mut criterion = Criterion::default().configure_from_args();
    own_work(&mut criterion);
    replaying(&mut criterion);
    criterion.final_summary();
}
