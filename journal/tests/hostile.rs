//! Bytes made to hurt: never a panic, a hang or an allocation out of proportion. The frames are made here from the
//! picture in the crate's front page, not by the crate, so this also tests the picture.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "tests")]

mod common;
#[path = "common/forge.rs"]
mod forge;

use cap::Cap;
use common::{Live, Right, small};
use forge::{FIRST, append_records, compressed_segment, segment_header};
use nodefold_core::Node;
use nodefold_journal::{Error, Fold, Memory, Options, Position, Reader, Record, replay, resume, verify};
use proptest::prelude::*;
use std::alloc::System;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// An allocation beyond this aborts the test: each body is at most 16 MiB, and few are held at once.
const LIMIT: usize = 512 << 20;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, LIMIT);

/// A sound little journal of two batches.
fn sound() -> Memory {
    let mut live = Live::<Right>::new(Options { segment_bytes: 1 << 20, ..small() });
    live.batch(3).unwrap();
    live.memory
}

/// The sound journal with such records after it.
fn with_records(records: &[(u16, u16, Vec<u8>)], ended: bool) -> Memory {
    let memory = sound();
    append_records(&memory, small().id, records, ended);
    memory
}

fn look(memory: &Memory) {
    forge::look::<Right>(memory, small);
    let _ = replay::<Node>(&memory.storage(), Some(Position::Record(3)));
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
        let bytes = compressed_segment(7, blocks.iter().map(|(len, huge, packed)| (if *huge { u32::MAX } else { *len }, &packed[..])));
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
    // The chain of a long batch, too.
    let memory = with_records(&[(7, 1, note(&"long".repeat(5000)))], true);
    assert_eq!(Reader::open(&memory.storage()).unwrap().filter(Result::is_err).count(), 0);
    assert_eq!(verify::<Right>(&memory.storage()).unwrap().report.cut, None);
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
    let mut bytes = memory.bytes(FIRST).unwrap();
    let used = bytes.iter().rposition(|&b| b != 0).unwrap() + 1;
    bytes.truncate(used.next_multiple_of(512));
    let mut header = 1u32.to_le_bytes().to_vec();
    header.extend_from_slice(&(15u32 << 20).to_le_bytes());
    header.extend_from_slice(&[2, 0, 1, 0]);
    header.extend_from_slice(&0u32.to_le_bytes());
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
