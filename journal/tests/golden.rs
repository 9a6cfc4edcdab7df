//! Journals of every version that ever was stay readable. `tests/golden/v3` was written in format 3 by version 1 of
//! each record kind and is never written again; a kind that gets a version 2 gets a folder of its own beside it. (Formats
//! 1 and 2 were never released.)

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "tests")]

mod common;

use common::{FATAL, Live, Right, small};
use nodefold_core::time::Time;
use nodefold_core::{Event, Fact};
use nodefold_journal::{Kind, Memory, Options, Reader, resume, verify};
use std::fs;
use std::path::{Path, PathBuf};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v3")
}

/// One journal with every kind of record, raw and compressed segments, snapshots, and a clean stop.
fn build() -> Memory {
    let options = Options { software: "golden".to_owned(), compress: true, ..small() };
    let mut live = Live::<Right>::new(options.clone());
    live.writer.note(Time(1), "step", "apply the pod").unwrap();
    live.writer.append_foreign(Time(2), "api", b"{\"create\":{}}").unwrap();
    live.batch(8).unwrap();
    live.writer.append(&Event { at: Time(8_500_000), fact: Fact::PodRemoved { pod: FATAL } }).unwrap();
    live.writer.commit(&mut live.fold).unwrap();
    let Live { memory, writer, .. } = live;
    drop(writer); // dies applying it
    let resumed = resume::<Right>(memory.storage(), options).unwrap();
    let mut live = Live { memory, writer: resumed.writer, fold: resumed.fold, next: 9 };
    for _ in 0..6 {
        live.batch(8).unwrap();
    }
    live.stop().0
}

/// A line for each record.
fn listing(memory: &Memory) -> String {
    let lines = Reader::open(&memory.storage()).unwrap().map(|entry| {
        let e = entry.unwrap();
        let file = e.file.rsplit('/').next().unwrap().to_owned();
        format!("{} {file} {} {} {} {:?}\n", e.number, e.offset, e.batch, e.at.0, e.record)
    });
    lines.collect()
}

fn load() -> Memory {
    let memory = Memory::new();
    for entry in fs::read_dir(golden()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name != "records.txt" {
            memory.put(name, fs::read(&path).unwrap());
        }
    }
    memory
}

#[test]
fn a_journal_of_format_3_is_read_as_it_was_written() {
    let memory = load();
    let expected = fs::read_to_string(golden().join("records.txt")).unwrap();
    let read = listing(&memory);
    for (line, (expected, read)) in expected.lines().zip(read.lines()).enumerate() {
        assert_eq!(expected, read, "line {}", line + 1);
    }
    assert_eq!(expected.lines().count(), read.lines().count());
    for kind in Kind::ALL {
        assert!(read.contains(&format!(" {}(", kind.name())), "the golden journal has a {}", kind.name());
    }
    assert!(memory.storage().list().unwrap().iter().any(|n| n.ends_with(".segz")));
    let report = verify::<Right>(&memory.storage()).unwrap().report;
    assert_eq!((report.difference, report.clean_stop), (None, true));
}

#[test]
fn format_3_is_still_what_is_written() {
    let (golden, built) = (load(), build());
    let names = golden.storage().list().unwrap();
    assert_eq!(names, built.storage().list().unwrap());
    for name in names {
        assert!(
            golden.bytes(&name) == built.bytes(&name),
            "{name}: a record kind changed without a new version"
        );
    }
}

#[test]
fn another_format_is_refused_by_its_number() {
    let memory = load();
    let name = memory.storage().list().unwrap().remove(0);
    for format in [2u32, 4] {
        let mut bytes = memory.bytes(&name).unwrap();
        bytes[8..12].copy_from_slice(&format.to_le_bytes());
        let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[..120]);
        bytes[120..128].copy_from_slice(&checksum.to_le_bytes());
        let other = memory.copy();
        other.put(&name, bytes);
        let error = Reader::open(&other.storage()).err().unwrap();
        assert!(
            error.to_string().contains(&format!("format {format}, but this nodefold knows format 3")),
            "{error}"
        );
    }
}

/// Writes the golden files; refuses to overwrite them. Remove the folder first if its format was never released.
#[test]
#[ignore = "writes into the source tree"]
fn make_golden() {
    let dir = golden();
    assert!(!dir.exists(), "{} is there", dir.display());
    fs::create_dir_all(&dir).unwrap();
    let memory = build();
    for name in memory.storage().list().unwrap() {
        fs::write(dir.join(&name), memory.bytes(&name).unwrap()).unwrap();
    }
    fs::write(dir.join("records.txt"), listing(&memory)).unwrap();
}
