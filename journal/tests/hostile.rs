//! Bytes made to hurt: never a panic, a hang or an allocation out of proportion. The frames are made here from the
//! picture in the crate's front page, not by the crate, so this also tests the picture.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "tests")]

mod common;

use cap::Cap;
use common::{Live, Right, small};
use nodefold_core::Node;
use nodefold_journal::{Error, Fold, Memory, Options, Position, Reader, Record, replay, resume, verify};
use proptest::prelude::*;
use std::alloc::System;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed, xxh3_128};

/// An allocation beyond this aborts the test: each body is at most 16 MiB, and few are held at once.
const LIMIT: usize = 512 << 20;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, LIMIT);

/// Looks at a directory in every way there is. Nothing may panic; what is said must be said the same way twice.
fn look(memory: &Memory) {
    let storage = memory.storage();
    let read = |from| Reader::open_at(&storage, from).map(|r| r.take_while(Result::is_ok).count()).ok();
    assert_eq!(read(Position::Record(1)), read(Position::Record(1)));
    read(Position::Record(u64::MAX));
    read(Position::Time(nodefold_core::time::Time(u64::MAX)));
    let say = |r: Result<nodefold_journal::Replayed<Right>, Error>| {
        r.map(|r| (r.report.records, r.report.digest)).map_err(|e| e.to_string())
    };
    assert_eq!(say(verify::<Right>(&storage)), say(verify::<Right>(&storage)));
    let _ = replay::<Right>(&storage, None).map_err(|e| e.to_string());
    let _ = replay::<Node>(&storage, Some(Position::Record(3)));
    // Whatever recovery accepts is then whole: all of it, if it was folded from the start.
    if let Ok(resumed) = resume::<Right>(storage.clone(), small()) {
        assert_eq!(replay::<Right>(&storage, None).expect("recovered, so whole").report.cut, None);
        if resumed.report.from_snapshot.is_none() {
            assert_eq!(verify::<Right>(&storage).expect("recovered, so whole").report.cut, None);
        }
    }
}

fn frame(seed: u64, number: u64, kind: u16, version: u16, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 8];
    out.extend_from_slice(&(24 + body.len() as u32).to_le_bytes());
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(body);
    let checksum = xxh3_64_with_seed(&out[8..], seed);
    out[..8].copy_from_slice(&checksum.to_le_bytes());
    out
}

fn segment_header(id: u128, first: u64, form: u32, chain: [u8; 32]) -> Vec<u8> {
    let mut out = b"nodefold".to_vec();
    out.extend_from_slice(&1u32.to_le_bytes());
    out.extend_from_slice(&form.to_le_bytes());
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&first.to_le_bytes());
    out.extend_from_slice(&first.to_le_bytes());
    out.extend_from_slice(&0u64.to_le_bytes());
    out.extend_from_slice(&chain);
    out.extend_from_slice(&[0; 32]);
    let checksum = xxh3_64(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    out
}

fn seed(id: u128) -> u64 {
    (id >> 64) as u64 ^ id as u64
}

/// A sound little journal of two batches.
fn sound() -> Memory {
    let mut live = Live::<Right>::new(Options { segment_bytes: 1 << 20, ..small() });
    live.batch(3).unwrap();
    live.memory
}

const FIRST: &str = "00000000000000000001.seg";

/// The sound journal with records of any content after it, each with the right checksum and number; and if `ended`,
/// with a batch's end that is right in every way.
fn with_records(records: &[(u16, u16, Vec<u8>)], ended: bool) -> Memory {
    let memory = sound();
    let end = Reader::open(&memory.storage()).unwrap().last().unwrap().unwrap();
    let Record::BatchEnd(before) = &end.record else { panic!("{end:?}") };
    let mut bytes = memory.bytes(FIRST).unwrap();
    bytes.truncate(bytes.iter().rposition(|&b| b != 0).unwrap() + 1);
    if 512 - bytes.len() % 512 < 24 {
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    let seed = seed(small().id);
    let start = bytes.len();
    let mut number = end.number + 1;
    for (kind, version, body) in records {
        bytes.extend_from_slice(&frame(seed, number, *kind, *version, body));
        number += 1;
    }
    if ended {
        let mut body = Vec::new();
        for n in [before.batch + 1, end.number + 1, records.len() as u64, 9, 3] {
            body.extend_from_slice(&n.to_le_bytes());
        }
        body.extend_from_slice(&[0; 32]); // digest and commands: a reader does not compare them
        body.extend_from_slice(&0u64.to_le_bytes()); // no pods touched
        let mut chain = blake3::Hasher::new();
        chain.update(&before.chain).update(&bytes[start..]).update(&body);
        body.extend_from_slice(chain.finalize().as_bytes());
        bytes.extend_from_slice(&frame(seed, number, 4, 1, &body));
    }
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    memory.put(FIRST, bytes);
    memory
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_in_any_file(
        files in prop::collection::vec((0usize..6, any::<bool>(), prop::collection::vec(any::<u8>(), 0..2000)), 1..4),
    ) {
        let memory = Memory::new();
        for (which, headed, bytes) in files {
            let (name, form, first) = [
                (FIRST, 0, 1),
                ("00000000000000000001.segz", 1, 1),
                ("00000000000000000009.seg", 0, 9),
                ("18446744073709551615.seg", 0, u64::MAX),
                ("00000000000000000003.snap", 0, 3),
                ("18446744073709551615.snap", 0, 3),
            ][which];
            let mut content = if headed { segment_header(7, first, form, [0; 32]) } else { Vec::new() };
            content.extend_from_slice(&bytes);
            memory.put(name, content);
        }
        look(&memory);
    }

    #[test]
    fn a_sound_journal_with_bytes_changed_moved_and_lost(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 1..12),
        compress in any::<bool>(),
    ) {
        let mut live = Live::<Right>::new(Options { compress, ..small() });
        for size in [5, 1, 30, 3, 20] {
            live.batch(size).unwrap();
        }
        let (memory, _) = live.stop();
        let names = memory.storage().list().unwrap();
        for (at, byte, how) in changes {
            let name = &names[at.index(names.len())];
            let mut bytes = memory.bytes(name).unwrap();
            if bytes.is_empty() {
                continue;
            }
            let i = at.index(bytes.len());
            match how {
                0 => bytes[i] = byte,
                1 => bytes.truncate(i),
                2 => bytes.insert(i, byte),
                _ => {
                    let other = memory.bytes(&names[usize::from(byte) % names.len()]).unwrap();
                    bytes.splice(i..i, other.iter().take(700).copied());
                }
            }
            memory.put(name, bytes);
        }
        look(&memory);
    }

    #[test]
    fn records_of_any_content_whose_checksums_hold(
        records in prop::collection::vec(
            (0u16..10, 0u16..3, prop::collection::vec(prop_oneof![any::<u8>(), Just(0u8), Just(0xff)], 0..300)),
            1..6,
        ),
        ended in any::<bool>(),
    ) {
        look(&with_records(&records, ended));
    }

    #[test]
    fn compressed_blocks_of_any_content_whose_checksums_hold(
        blocks in prop::collection::vec(
            (0u32..1 << 19, any::<bool>(), prop::collection::vec(any::<u8>(), 0..400)),
            1..5,
        ),
    ) {
        let mut bytes = segment_header(7, 1, 1, [0; 32]);
        let mut offset = 128u64;
        for (raw_len, huge, packed) in blocks {
            let raw_len = if huge { u32::MAX } else { raw_len };
            let mut block = vec![0; 8];
            block.extend_from_slice(&offset.to_le_bytes());
            block.extend_from_slice(&1u64.to_le_bytes());
            block.extend_from_slice(&raw_len.to_le_bytes());
            block.extend_from_slice(&(packed.len() as u32).to_le_bytes());
            block.extend_from_slice(&packed);
            let checksum = xxh3_64_with_seed(&block[8..], seed(7));
            block[..8].copy_from_slice(&checksum.to_le_bytes());
            bytes.extend_from_slice(&block);
            offset += u64::from(raw_len);
        }
        let memory = Memory::new();
        memory.put("00000000000000000001.segz", bytes);
        look(&memory);
    }

    #[test]
    fn a_node_from_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600), at in any::<prop::sample::Index>()) {
        let _ = <Node as Fold>::from_snapshot(&bytes);
        let mut sound = Fold::to_snapshot(&Node::new(nodefold_core::Config::default()));
        if let (Some(&byte), false) = (bytes.first(), sound.is_empty()) {
            let i = at.index(sound.len());
            sound[i] = byte;
            let _ = <Node as Fold>::from_snapshot(&sound);
        }
    }
}

/// The picture in the front page is right: frames made from it are read.
#[test]
fn records_made_from_the_picture_are_read() {
    let note = |text: &str| {
        let mut body = 9u64.to_le_bytes().to_vec();
        for part in ["mark", text] {
            body.extend_from_slice(&(part.len() as u64).to_le_bytes());
            body.extend_from_slice(part.as_bytes());
        }
        body
    };
    let memory = with_records(&[(7, 1, note("one")), (7, 1, note("two"))], true);
    let notes: Vec<_> = Reader::open(&memory.storage())
        .unwrap()
        .filter_map(|e| match e.unwrap().record {
            Record::Note(note) => Some(note.text),
            _ => None,
        })
        .collect();
    assert_eq!(notes, ["one", "two"]);
}

#[test]
fn an_unknown_kind_or_a_newer_version_is_an_error_that_names_the_place_and_never_a_skip() {
    let memory = with_records(&[(99, 1, vec![1, 2, 3])], false);
    let last = Reader::open(&sound().storage()).unwrap().last().unwrap().unwrap();
    for e in [
        resume::<Right>(memory.storage(), small()).err().expect("refused"),
        verify::<Right>(&memory.storage()).err().expect("refused"),
        Reader::open(&memory.storage()).unwrap().find_map(Result::err).expect("refused"),
    ] {
        let Error::UnknownKind { file, offset, record, kind } = &e else { panic!("{e}") };
        assert!(file.ends_with(FIRST) && *offset > last.offset);
        assert_eq!((*record, *kind), (last.number + 1, 99));
        assert!(e.to_string().contains("use that version or a later one"), "{e}");
    }
    let memory = with_records(&[(2, 2, vec![1, 2, 3])], true);
    let e = verify::<Right>(&memory.storage()).err().expect("refused");
    assert!(matches!(e, Error::UnknownVersion { kind: "Fact", version: 2, known: 1, .. }), "{e}");
}

/// Many headers that promise a long record each: the search for what checks after a bad place gives up in time.
#[test]
fn a_tail_made_to_be_searched_forever_is_not() {
    let memory = sound();
    let last = Reader::open(&memory.storage()).unwrap().last().unwrap().unwrap();
    let mut bytes = memory.bytes(FIRST).unwrap();
    let used = bytes.iter().rposition(|&b| b != 0).unwrap() + 1;
    bytes.truncate(used.next_multiple_of(512));
    let mut header = 1u64.to_le_bytes().to_vec();
    header.extend_from_slice(&(15u32 << 20).to_le_bytes());
    header.extend_from_slice(&[2, 0, 1, 0]);
    header.extend_from_slice(&(last.number + 1).to_le_bytes());
    bytes.extend(header.iter().copied().cycle().take(16 << 20));
    memory.put(FIRST, bytes);
    let e = verify::<Right>(&memory.storage()).err().expect("nobody can tell");
    assert!(matches!(e, Error::Damaged { .. }), "{e}");
}

/// A snapshot whose checksums hold and whose state is any bytes is refused, and the log is folded.
#[test]
fn a_snapshot_of_any_bytes_is_refused() {
    let mut live = Live::<Node>::new(small());
    live.batch(4).unwrap();
    let digest = {
        let mut node = <Node as Fold>::begin(&nodefold_core::Config::default());
        (1..=4).for_each(|n| node.apply(&common::event(n), &mut Default::default()));
        node.digest()
    };
    let (memory, _) = live.stop();
    let name = memory.storage().list().unwrap().into_iter().find(|n| n.ends_with(".snap")).unwrap();
    let bytes = memory.bytes(&name).unwrap();
    let head_len = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let state = &bytes[16 + head_len + 8..];
    for offset in 0..state.len() {
        let mut forged = bytes.clone();
        let at = 16 + head_len + 8 + offset;
        forged[at] ^= 0x81;
        let payload = xxh3_128(&forged[16 + head_len + 8..]);
        forged[16 + head_len - 16..16 + head_len].copy_from_slice(&payload.to_le_bytes());
        let checksum = xxh3_64(&forged[..16 + head_len]);
        forged[16 + head_len..16 + head_len + 8].copy_from_slice(&checksum.to_le_bytes());
        let copy = memory.copy();
        copy.put(&name, forged);
        let report = replay::<Node>(&copy.storage(), None).unwrap().report;
        assert_eq!(report.digest, digest, "offset {offset}");
    }
}
