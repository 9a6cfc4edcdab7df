//! What the writer promises: group commit, a poisoned handle, one writer, nothing acknowledged lost on a full disk.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "tests")]

mod common;

use common::{Live, Right, event, facts, small};
use nodefold_core::{Config, time::Time};
use nodefold_journal::{
    Error, Fault, Files, Fold, Memory, Options, Reader, Record, Writer, replay, resume, verify,
};

#[test]
fn a_batch_of_any_size_is_one_write_and_one_sync() {
    let mut live = Live::<Right>::new(Options { segment_bytes: 1 << 20, fill_bytes: 1 << 19, ..small() });
    for size in [1, 64, 512] {
        live.memory.arm(None);
        live.batch(size).unwrap();
        assert_eq!(live.memory.counts(), (1, 1), "a batch of {size}");
    }
}

#[test]
fn commit_numbers_records_in_the_order_of_append() {
    let mut live = Live::<Right>::new(small());
    live.writer.append(&event(1)).unwrap();
    live.writer.append_foreign(Time(5), "api", b"{}").unwrap();
    live.writer.note(Time(6), "step", "apply the pod").unwrap();
    assert_eq!(live.writer.pending(), 3);
    let committed = live.writer.commit(&mut live.fold).unwrap();
    let read: Vec<_> = Reader::open(&live.memory.storage()).unwrap().map(|e| e.unwrap()).collect();
    let of_batch: Vec<_> = read.iter().filter(|e| e.batch == committed.batch).collect();
    assert_eq!(of_batch.iter().map(|e| e.number).collect::<Vec<_>>(), [3, 4, 5, 6]);
    assert_eq!((committed.first_record, committed.last_record), (3, 6));
    assert_eq!(of_batch[0].record, Record::Fact(event(1)));
    let Record::Foreign(foreign) = &of_batch[1].record else { panic!("{:?}", of_batch[1]) };
    assert_eq!(
        (foreign.at, foreign.stream.as_str(), foreign.bytes.as_slice()),
        (Time(5), "api", b"{}".as_slice())
    );
    let Record::Note(note) = &of_batch[2].record else { panic!("{:?}", of_batch[2]) };
    assert_eq!((note.mark.as_str(), note.text.as_str()), ("step", "apply the pod"));
    // Time does not run backwards, even if records say so.
    assert_eq!(of_batch.iter().map(|e| e.at).collect::<Vec<_>>(), [Time(1_000_000); 4]);
}

/// A life with everything in it: batches, rolls, compression, snapshots, a clean stop. Tells how many events were
/// acknowledged before the first error.
fn life(memory: &Memory) -> (u64, Result<(), Error>) {
    let options = Options { segment_bytes: 2048, fill_bytes: 512, compress: true, ..small() };
    let config = Config::default();
    let mut fold = Right::begin(&config);
    let writer = match Writer::create(memory.storage(), options, &config, &mut fold) {
        Ok(writer) => writer,
        Err(e) => return (0, Err(e)),
    };
    let mut live = Live { memory: memory.clone(), writer, fold, next: 1 };
    for size in [3, 1, 9, 4, 7, 2, 8] {
        if let Err(first) = live.batch(size) {
            let acknowledged = live.next - 1;
            // Poisoned: every later call says so, and says why.
            let again = [
                live.writer.append(&event(1)).unwrap_err(),
                live.writer.note(Time(1), "a", "b").unwrap_err(),
                live.writer.commit(&mut live.fold).unwrap_err(),
                live.writer.compress_sealed().map(drop).unwrap_err(),
                live.writer.snapshot(&mut live.fold).unwrap_err(),
                live.writer.stop(&mut live.fold).unwrap_err(),
            ];
            for e in again {
                let Error::Poisoned { first: told } = &e else { panic!("{e}") };
                assert_eq!(*told, first.to_string());
            }
            return (acknowledged, Err(first));
        }
    }
    let acknowledged = live.next - 1;
    (acknowledged, live.writer.stop(&mut live.fold).map(drop))
}

/// Whatever happened to it, the journal has what was acknowledged, invents nothing, and goes on.
fn check_after(memory: &Memory, acknowledged: u64, what: &str) {
    let resumed = match resume::<Right>(memory.storage(), small()) {
        Ok(resumed) => resumed,
        Err(Error::NotAJournal { .. }) if acknowledged == 0 => return,
        Err(e) => panic!("{what}: {e}"),
    };
    let kept = facts(memory).unwrap();
    let n = kept.len() as u64;
    assert!(n >= acknowledged, "{what}: {n} of {acknowledged} acknowledged facts");
    assert_eq!(kept, (1..=n).map(event).collect::<Vec<_>>(), "{what}");
    let mut live = Live { memory: memory.clone(), writer: resumed.writer, fold: resumed.fold, next: n + 1 };
    live.batch(5).unwrap_or_else(|e| panic!("{what}: {e}"));
    let (memory, digest) = live.stop();
    let report = verify::<Right>(&memory.storage()).unwrap_or_else(|e| panic!("{what}: {e}")).report;
    assert_eq!((report.digest, report.difference, report.clean_stop), (digest, None, true), "{what}");
}

#[test]
fn whichever_write_or_sync_fails_nothing_acknowledged_is_lost() {
    let memory = Memory::new();
    memory.arm(None);
    let (all, outcome) = life(&memory);
    outcome.unwrap();
    let (writes, syncs) = memory.counts();
    assert!(writes > 30 && syncs > 30, "{writes} writes, {syncs} syncs");
    check_after(&memory, all, "no fault");
    let faults = (1..=writes).flat_map(|n| [Fault::Write(n), Fault::TornWrite(n)]);
    for fault in faults.chain((1..=syncs).flat_map(|n| [Fault::Sync(n), Fault::ForgottenSync(n)])) {
        for crash in [false, true] {
            let memory = Memory::new();
            memory.arm(Some(fault));
            let (acknowledged, outcome) = life(&memory);
            let e = outcome.expect_err("the fault is noticed");
            assert!(matches!(e, Error::Io { .. }), "{fault:?}: {e}");
            memory.arm(None);
            let mut coin = acknowledged;
            if crash {
                memory.crash(&mut || {
                    coin = coin.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    coin >> 40 & 1 == 0
                });
            }
            check_after(&memory, acknowledged, &format!("{fault:?}, crash {crash}"));
        }
    }
}

#[test]
fn a_full_disk_is_a_clear_error_and_loses_nothing_acknowledged() {
    let memory = Memory::new();
    life(&memory).1.unwrap();
    let size: usize = memory.storage().list().unwrap().iter().map(|n| memory.bytes(n).unwrap().len()).sum();
    let mut seen = 0;
    for capacity in (0..size as u64).step_by(97) {
        let memory = Memory::new();
        memory.arm(Some(Fault::Capacity(capacity)));
        let (acknowledged, outcome) = life(&memory);
        let Err(e) = outcome else { continue };
        assert!(matches!(e, Error::DiskFull { .. }), "{capacity}: {e}");
        assert!(e.to_string().contains("disk full") && e.to_string().contains("free some space"), "{e}");
        seen += 1;
        memory.arm(None);
        check_after(&memory, acknowledged, &format!("{capacity} bytes"));
    }
    assert!(seen > 20, "{seen} full disks");
}

#[test]
fn short_writes_are_gone_on_with() {
    let memory = Memory::new();
    memory.arm(Some(Fault::ShortWrites(40)));
    let (all, outcome) = life(&memory);
    outcome.unwrap();
    check_after(&memory, all, "short writes");
}

#[test]
fn there_is_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Files::at(dir.path());
    let config = Config::default();
    let mut fold = Right::begin(&config);
    let first = Writer::create(storage.clone(), small(), &config, &mut fold).unwrap();
    let e = resume::<Right>(storage.clone(), small()).err().expect("locked");
    assert!(matches!(e, Error::Locked { .. }), "{e}");
    // Reading needs no lock.
    assert!(replay::<Right>(&storage, None).is_ok());
    drop(first);
    drop(resume::<Right>(storage.clone(), small()).unwrap());
    let e = Writer::create(storage, small(), &config, &mut fold).err().expect("there is one");
    assert!(matches!(e, Error::AlreadyThere { .. }), "{e}");
}

#[test]
fn real_files_hold_what_memory_holds() {
    let dir = tempfile::tempdir().unwrap();
    let storage = Files::at(dir.path().join("journal"));
    let config = Config::default();
    let mut fold = Right::begin(&config);
    let options = Options { compress: true, ..small() };
    let writer = Writer::create(storage.clone(), options.clone(), &config, &mut fold).unwrap();
    let mut live = Live { memory: Memory::new(), writer, fold, next: 1 };
    let mut beside = Live::<Right>::new(options);
    for size in [5, 30, 2, 60, 1] {
        live.batch(size).unwrap();
        beside.batch(size).unwrap();
    }
    live.stop();
    let (memory, digest) = beside.stop();
    for name in memory.storage().list().unwrap() {
        assert_eq!(storage.read(&name, u64::MAX).unwrap(), memory.bytes(&name).unwrap(), "{name}");
    }
    assert!(storage.list().unwrap().iter().any(|n| n.ends_with(".segz")));
    assert_eq!(verify::<Right>(&storage).unwrap().report.digest, digest);
}

#[test]
fn commit_refuses_a_fold_that_is_not_before_the_batch() {
    let mut live = Live::<Right>::new(small());
    live.writer.append(&event(1)).unwrap();
    live.fold.apply(&event(1), &mut nodefold_core::command::Commands::default());
    let e = live.writer.commit(&mut live.fold).unwrap_err();
    assert!(matches!(e, Error::OutOfStep { folded: 1, recorded: 0 }), "{e}");
    let e = live.writer.stop(&mut Right::begin(&Config::default())).unwrap_err();
    assert!(matches!(e, Error::Uncommitted { records: 1 }), "{e}");
}

#[test]
fn what_could_not_be_read_back_is_not_appended() {
    let mut live = Live::<Right>::new(small());
    let e = live.writer.append_foreign(Time(1), "api", &vec![1; 17 << 20]).unwrap_err();
    assert!(matches!(e, Error::TooLarge { .. }), "{e}");
    live.batch(2).unwrap();
    let (memory, _) = live.stop();
    assert_eq!(facts(&memory).unwrap().len(), 2);
}

#[test]
fn sealed_segments_compress_and_read_the_same() {
    let build = |compress| {
        let mut live = Live::<Right>::new(Options { compress, segment_bytes: 64 << 10, ..small() });
        for _ in 0..60 {
            live.batch(40).unwrap();
        }
        live
    };
    let (mut raw, packed) = (build(false), build(true));
    let before = facts(&raw.memory).unwrap();
    assert_eq!(before, facts(&packed.memory).unwrap());
    let size = |memory: &Memory| -> usize {
        let names = memory.storage().list().unwrap();
        names.iter().filter(|n| n.contains(".seg")).map(|n| memory.bytes(n).unwrap().len()).sum()
    };
    let uncompressed = size(&raw.memory);
    assert!(size(&packed.memory) * 4 < uncompressed * 3, "{} of {uncompressed}", size(&packed.memory));
    let done = raw.writer.compress_sealed().unwrap();
    assert!(done >= 2, "{done} segments");
    assert_eq!(size(&raw.memory), size(&packed.memory));
    assert_eq!(facts(&raw.memory).unwrap(), before);
    // A crash between making the one form and removing the other leaves both; recovery removes one.
    let name = packed.memory.storage().list().unwrap().into_iter().find(|n| n.ends_with(".segz")).unwrap();
    let both = packed.memory.copy();
    let sealed = build(false).memory.bytes(name.trim_end_matches('z')).unwrap();
    both.put(name.trim_end_matches('z'), sealed);
    assert_eq!(facts(&both).unwrap(), before);
    let resumed = resume::<Right>(both.storage(), small()).unwrap();
    assert_eq!(resumed.removed, [name.trim_end_matches('z')]);
    assert_eq!(facts(&both).unwrap(), before);
}

#[test]
fn after_a_failed_sync_nothing_rests_on_what_only_the_page_cache_has() {
    let (mut kept, mut dropped) = (0, 0);
    for (nth, evicted) in (1..=4).flat_map(|nth| [(nth, false), (nth, true)]) {
        for before in 0..12 {
            let mut live = Live::<Right>::new(small());
            for _ in 0..before {
                live.batch(9).unwrap();
            }
            live.memory.arm(Some(Fault::ForgottenSync(nth)));
            let mut acknowledged = before * 9;
            while live.batch(9).is_ok() {
                acknowledged += 9;
            }
            let again = live.batch(1).err().unwrap();
            assert!(matches!(again, Error::Poisoned { .. }), "no second attempt: {again}");
            let Live { memory, writer, .. } = live;
            drop(writer);
            memory.arm(None);
            memory.evict(&mut || evicted);
            let resumed = resume::<Right>(memory.storage(), small()).unwrap();
            let found = resumed.fold.event_count().0;
            assert!(found == acknowledged || found == acknowledged + 9, "{found} of {acknowledged}");
            if found > acknowledged {
                kept += 1
            } else {
                dropped += 1
            }
            let mut live = Live { memory, writer: resumed.writer, fold: resumed.fold, next: found + 1 };
            live.batch(2).unwrap();
            live.memory.crash(&mut || false);
            let expected: Vec<_> = (1..=found + 2).map(event).collect();
            assert_eq!(
                facts(&live.memory).unwrap(),
                expected,
                "sync {nth} after {before}, evicted: {evicted}"
            );
            assert!(verify::<Right>(&live.memory.storage()).unwrap().report.difference.is_none());
        }
    }
    assert!(kept > 10 && dropped > 10, "{kept} kept, {dropped} dropped");
}
