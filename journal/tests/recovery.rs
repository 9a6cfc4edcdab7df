//! What recovery makes of a log that ends in the middle, and of one that is damaged.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "tests")]

mod common;

use common::{Live, Right, event, facts, last_segment, small};
use nodefold_journal::{Error, Memory, Options, Reader, resume, verify};

/// Where the last whole batch but one ends, and the last: by reading.
fn last_batch(memory: &Memory) -> (u64, u64) {
    let mut ends = Vec::new();
    let mut all: Vec<_> = Reader::open(&memory.storage()).unwrap().map(|e| e.unwrap()).collect();
    let last = all.pop().unwrap();
    for entry in &all {
        if entry.batch == last.batch {
            ends.push(entry.offset);
        }
    }
    let used = memory.bytes(&last_segment(memory)).unwrap().iter().rposition(|&b| b != 0).unwrap() as u64 + 1;
    (ends.first().copied().unwrap_or(last.offset), used)
}

#[test]
fn cut_at_every_byte_of_the_last_batch_it_recovers_to_the_last_whole_batch_and_says_what_was_cut() {
    let mut live = Live::<Right>::new(Options { segment_bytes: 1 << 20, ..small() });
    live.batch(4).unwrap();
    live.batch(3).unwrap();
    let whole = facts(&live.memory).unwrap();
    let before = live.writer.next_record();
    live.batch(9).unwrap();
    let name = last_segment(&live.memory);
    let (start, end) = last_batch(&live.memory);
    assert!(end - start > 500, "a batch of some length: {start}..{end}");
    let bytes = live.memory.bytes(&name).unwrap();
    for cut in start..end {
        for zeros_follow in [false, true] {
            let copy = live.memory.copy();
            let mut torn = bytes[..cut as usize].to_vec();
            let used = torn.iter().rposition(|&b| b != 0).unwrap() as u64 + 1;
            if zeros_follow {
                torn.resize(bytes.len(), 0);
            }
            copy.put(&name, torn);
            let resumed =
                resume::<Right>(copy.storage(), small()).unwrap_or_else(|e| panic!("cut at {cut}: {e}"));
            match &resumed.report.cut {
                None => assert!(used <= start, "cut at {cut}: not reported"),
                Some(reported) => {
                    assert_eq!((reported.first_record, reported.bytes), (before, used - reported.offset));
                    assert!(reported.file.ends_with(&name) && start - reported.offset < 16, "{reported}");
                }
            }
            let mut again = Live { memory: copy, writer: resumed.writer, fold: resumed.fold, next: 8 };
            assert_eq!(facts(&again.memory).unwrap(), whole, "cut at {cut}");
            // The journal goes on as if the batch had never been.
            again.batch(2).unwrap();
            let (memory, digest) = again.stop();
            let verified = verify::<Right>(&memory.storage()).unwrap().report;
            assert_eq!((verified.digest, verified.cut, verified.difference), (digest, None, None));
        }
    }
}

/// Flips each bit pattern in each byte, and checks the verdict.
fn flip_everywhere(memory: &Memory, name: &str, upto: usize, verdict: &dyn Fn(usize, Result<(), Error>)) {
    let bytes = memory.bytes(name).unwrap();
    for offset in 0..upto.min(bytes.len()) {
        for flip in [0x01, 0x80, 0xff] {
            let copy = memory.copy();
            let mut flipped = bytes.clone();
            flipped[offset] ^= flip;
            copy.put(name, flipped);
            let read = Reader::open(&copy.storage()).and_then(|mut reader| {
                reader.try_for_each(|entry| entry.map(drop))?;
                assert_eq!(reader.cut(), None, "{name}, offset {offset}: cut instead of reported");
                Ok(())
            });
            verdict(offset, read);
            assert!(
                verify::<Right>(&copy.storage()).is_err(),
                "{name}, offset {offset}: verify is content with a flipped byte"
            );
        }
    }
}

/// The record that lies at each offset of a file.
fn places(memory: &Memory, name: &str) -> Vec<(u64, u64)> {
    let entries = Reader::open(&memory.storage()).unwrap().map(|e| e.unwrap());
    entries.filter(|e| e.file.ends_with(name)).map(|e| (e.offset, e.number)).collect()
}

#[test]
fn any_flipped_byte_before_the_last_batch_end_is_reported_with_its_place() {
    let mut live = Live::<Right>::new(small());
    for events in [5, 1, 8, 3, 12, 2, 7] {
        live.batch(events).unwrap();
    }
    let last = live.batch(4).unwrap();
    let memory = live.memory.copy();
    let names: Vec<String> =
        memory.storage().list().unwrap().into_iter().filter(|n| n.ends_with(".seg")).collect();
    assert!(names.len() > 1, "more than one segment: {names:?}");
    for name in &names {
        let places = places(&memory, name);
        // The very last BatchEnd can't be told from one that was being written; the test below has it.
        let upto = places
            .iter()
            .find(|(_, n)| *n == last.last_record)
            .map_or(usize::MAX, |(offset, _)| *offset as usize);
        flip_everywhere(&memory, name, upto, &|offset, read| {
            let Err(Error::Damaged { file, offset: at, record, .. }) = read else {
                panic!("{name}, offset {offset}: {read:?}");
            };
            assert!(file.ends_with(name.as_str()), "{file} for {name}");
            // The place is that of the record that the byte is in (or of the header, or of the filler before it).
            let holder = places.iter().rev().find(|(o, _)| *o <= offset as u64);
            let expected = holder.map_or((0, places[0].1), |h| *h);
            let next = places.iter().find(|(o, _)| *o > offset as u64);
            let filler = next.is_some_and(|(o, n)| *o - at < 16 && at == offset as u64 && record == *n);
            assert!(
                (at, record) == expected || filler,
                "{name}, offset {offset}: {at}, {record}, not {expected:?}"
            );
        });
    }
}

#[test]
fn a_flipped_byte_in_the_last_batch_end_or_after_it_is_cut_and_reported() {
    let mut live = Live::<Right>::new(small());
    live.batch(3).unwrap();
    let last = live.batch(2).unwrap();
    let name = last_segment(&live.memory);
    let bytes = live.memory.bytes(&name).unwrap();
    let start = places(&live.memory, &name).iter().find(|(_, n)| *n == last.last_record).unwrap().0 as usize;
    for offset in start..bytes.len() {
        let copy = live.memory.copy();
        let mut flipped = bytes.clone();
        flipped[offset] ^= 0x40;
        copy.put(&name, flipped);
        let resumed =
            resume::<Right>(copy.storage(), small()).unwrap_or_else(|e| panic!("offset {offset}: {e}"));
        let cut = resumed.report.cut.unwrap_or_else(|| panic!("offset {offset}: not reported"));
        let in_end = (offset as u64) < cut.offset || cut.first_record == last.first_record;
        assert!(in_end || cut.first_record == last.last_record + 1, "offset {offset}: {cut}");
        let kept = facts(&copy).unwrap().len();
        assert_eq!(kept, if cut.first_record == last.first_record { 3 } else { 5 }, "offset {offset}: {cut}");
    }
}

#[test]
fn any_flipped_byte_of_a_compressed_segment_is_reported_with_its_place() {
    let mut live = Live::<Right>::new(Options { compress: true, ..small() });
    for events in [5, 1, 8, 3, 12, 2, 7] {
        live.batch(events).unwrap();
    }
    let memory = live.memory.copy();
    let names: Vec<String> =
        memory.storage().list().unwrap().into_iter().filter(|n| n.ends_with(".segz")).collect();
    assert!(!names.is_empty(), "a compressed segment");
    assert_eq!(facts(&memory).unwrap().len(), 38);
    for name in &names {
        flip_everywhere(&memory, name, usize::MAX, &|offset, read| {
            let Err(Error::Damaged { file, offset: at, record, .. }) = read else {
                panic!("{name}, offset {offset}: {read:?}");
            };
            assert!(file.ends_with(name.as_str()), "{file} for {name}");
            assert!(at <= offset as u64 && record >= 1, "{name}, offset {offset}: {at}, record {record}");
        });
        // Cut anywhere, it is damaged: a sealed segment has no tail.
        let bytes = memory.bytes(name).unwrap();
        for len in 0..bytes.len() {
            let copy = memory.copy();
            copy.put(name, bytes[..len].to_vec());
            assert!(
                matches!(verify::<Right>(&copy.storage()), Err(Error::Damaged { .. })),
                "{name} of {len} bytes"
            );
        }
    }
}

#[test]
fn a_missing_or_exchanged_segment_is_reported() {
    let build = |id| {
        let mut live = Live::<Right>::new(Options { id, ..small() });
        for _ in 0..12 {
            live.batch(6).unwrap();
        }
        live.memory
    };
    let (memory, other) = (build(1), build(2));
    let names: Vec<String> =
        memory.storage().list().unwrap().into_iter().filter(|n| n.ends_with(".seg")).collect();
    assert!(names.len() >= 3, "{names:?}");
    for name in &names[..names.len() - 1] {
        let copy = memory.copy();
        copy.storage().remove(name).unwrap();
        let e = verify::<Right>(&copy.storage()).err().unwrap_or_else(|| panic!("{name} is not missed"));
        assert!(matches!(e, Error::MissingSegment { .. }), "{e}");
        let copy = memory.copy();
        copy.put(name, other.bytes(name).unwrap());
        let e = verify::<Right>(&copy.storage()).err().unwrap_or_else(|| panic!("{name} is not told apart"));
        assert!(matches!(e, Error::Damaged { .. }), "{e}");
    }
}

/// A sector of zeros is what a tear looks like; before a batch that was acknowledged, however short, it is damage.
#[test]
fn a_sector_lost_from_the_last_batch_but_one_is_damage() {
    let mut live = Live::<Right>::new(Options { segment_bytes: 1 << 20, ..small() });
    live.batch(3).unwrap();
    live.batch(60).unwrap();
    let (start, end) = last_batch(&live.memory);
    let name = last_segment(&live.memory);
    let without_a_sector = |memory: &Memory, sector: u64| {
        let copy = memory.copy();
        let mut bytes = copy.bytes(&name).unwrap();
        let (from, to) = ((sector * 512).max(start), ((sector + 1) * 512).min(end));
        bytes[from as usize..to as usize].fill(0);
        copy.put(&name, bytes);
        resume::<Right>(copy.storage(), Options { segment_bytes: 1 << 20, ..small() }).map(|r| r.report.cut)
    };
    let sectors = start / 512..end.div_ceil(512);
    assert!(sectors.clone().count() > 4);
    for sector in sectors.clone() {
        let cut = without_a_sector(&live.memory, sector).unwrap();
        assert!(cut.is_some(), "sector {sector} of a batch that may not have been acknowledged");
    }
    live.batch(1).unwrap();
    for sector in sectors {
        let refused = without_a_sector(&live.memory, sector).err();
        assert!(matches!(refused, Some(Error::Damaged { .. })), "sector {sector}: {refused:?}");
    }
}

#[test]
fn after_a_crash_that_keeps_any_sectors_every_acknowledged_fact_is_there_and_none_is_invented() {
    let mut random = 1u64;
    let mut next = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as u32
    };
    let (mut torn, mut crashes) = (0, 0);
    for round in 0..600 {
        let mut live = Live::<Right>::new(Options { compress: round % 2 == 0, ..small() });
        for _ in 0..next() % 6 {
            live.batch(u64::from(next() % 9)).unwrap();
        }
        let acknowledged = live.next - 1;
        // The power goes in the middle of what the next commit does: the nth sync never returns.
        live.memory.arm(Some(nodefold_journal::Fault::Sync(u64::from(next() % 4) + 1)));
        let more = u64::from(next() % 30) + 1;
        let outcome = live.batch(more);
        let at_least = if outcome.is_ok() { acknowledged + more } else { acknowledged };
        crashes += u32::from(outcome.is_err());
        live.memory.crash(&mut || next() % 2 == 0);
        let resumed =
            resume::<Right>(live.memory.storage(), small()).unwrap_or_else(|e| panic!("round {round}: {e}"));
        torn += u32::from(resumed.report.cut.is_some());
        let kept = facts(&live.memory).unwrap();
        let n = kept.len() as u64;
        assert!(n == at_least || n == acknowledged + more, "round {round}: {n}, acknowledged {at_least}");
        assert_eq!(kept, (1..=n).map(event).collect::<Vec<_>>(), "round {round}");
        let mut again =
            Live { memory: live.memory.clone(), writer: resumed.writer, fold: resumed.fold, next: n + 1 };
        again.batch(3).unwrap();
        let (memory, digest) = again.stop();
        let report = verify::<Right>(&memory.storage()).unwrap().report;
        assert_eq!((report.digest, report.difference, report.events), (digest, None, n + 3), "round {round}");
    }
    assert!(torn > 50 && crashes > 100, "the crashes tear batches: {torn} of {crashes}");
}
