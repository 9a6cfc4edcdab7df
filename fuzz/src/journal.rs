//! Hostile bytes as a journal: files of any content, a sound journal spoilt, records and blocks of any content whose checksums
//! hold. No panic, no allocation out of proportion (`-rss_limit_mb`); what was acknowledged is told, or the damage is.

use super::choices::Bytes;
use forge::{FIRST, append_records, compressed_segment, look, segment_header};
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::{PodUid, Source};
use nodefold_core::time::Time;
use nodefold_core::{Commands, Config, Node};
use nodefold_harness::swarm::Chance;
use nodefold_journal::{Memory, Options, Reader, Record, Writer, verify};

#[path = "../../journal/tests/common/forge.rs"]
mod forge;

const ID: u128 = 7;

/// Recovers, reads, folds and verifies what the bytes make.
pub fn journal(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    match bytes.below(4) {
        0 => look::<Node>(&files(&mut bytes), options),
        1 => spoilt(&mut bytes),
        2 => look::<Node>(&records(&mut bytes), options),
        _ => {
            let mut blocks = Vec::new();
            while !bytes.is_spent() && blocks.len() < 8 {
                let raw_len = if bytes.once_in(1, 8) { u32::MAX } else { bytes.below(1 << 16) as u32 };
                blocks.push((raw_len, body(&mut bytes)));
            }
            let memory = Memory::new();
            let segment = compressed_segment(ID, blocks.iter().map(|(len, packed)| (*len, &packed[..])));
            memory.put("00000000000000000001.segz", segment);
            look::<Node>(&memory, options);
        }
    }
}

fn options() -> Options {
    Options { segment_bytes: 4096, fill_bytes: 1024, compress: false, id: ID, ..Options::default() }
}

fn body(bytes: &mut Bytes<'_>) -> Vec<u8> {
    let len = bytes.below(300);
    bytes.take(len as usize).to_vec()
}

fn files(bytes: &mut Bytes<'_>) -> Memory {
    let memory = Memory::new();
    while !bytes.is_spent() {
        let (name, form, first) = bytes.one_of(&[
            (FIRST, 0, 1),
            ("00000000000000000001.segz", 1, 1),
            ("00000000000000000009.seg", 0, 9),
            ("18446744073709551615.seg", 0, u64::MAX),
            ("00000000000000000003.snap", 0, 3),
            ("00000000000000000003.state", 0, 3),
        ]);
        let mut content =
            if bytes.once_in(1, 2) { segment_header(ID, first, form, [0; 32]) } else { Vec::new() };
        content.extend(body(bytes));
        memory.put(name, content);
    }
    memory
}

fn records(bytes: &mut Bytes<'_>) -> Memory {
    let (memory, _) = sound(Options { segment_bytes: 1 << 20, ..options() }, 3, false);
    let ended = bytes.once_in(1, 2);
    let mut records = Vec::new();
    while !bytes.is_spent() && records.len() < 12 {
        records.push((bytes.below(10) as u16, bytes.below(3) as u16, body(bytes)));
    }
    append_records(&memory, ID, &records, ended);
    memory
}

/// A sound journal with bytes changed, lost, added and moved: each fact is there as it was acknowledged, or the damage is told.
fn spoilt(bytes: &mut Bytes<'_>) {
    let (memory, told) = sound(Options { compress: bytes.once_in(1, 2), ..options() }, 60, true);
    let names = memory.storage().list().expect("a directory in memory");
    while !bytes.is_spent() {
        let name = &names[bytes.below(names.len() as u64) as usize];
        let mut content = memory.bytes(name).expect("a file that was listed");
        if content.is_empty() {
            continue;
        }
        let at = bytes.below(content.len() as u64) as usize;
        match bytes.below(4) {
            0 => content[at] = bytes.below(256) as u8,
            1 => content.truncate(at),
            2 => drop(content.splice(at..at, body(bytes))),
            _ => {
                let other = memory.bytes(&names[bytes.below(names.len() as u64) as usize]).expect("listed");
                content.splice(at..at, other.iter().take(700).copied());
            }
        }
        memory.put(name, content);
    }
    if let Ok(reader) = Reader::open(&memory.storage()) {
        let read = reader.map_while(Result::ok).filter_map(|entry| match entry.record {
            Record::Fact(event) => Some(event),
            Record::Header(_)
            | Record::Foreign(_)
            | Record::BatchEnd(_)
            | Record::Snapshot(_)
            | Record::Skipped(_)
            | Record::Note(_) => None,
        });
        let read: Vec<Event> = read.collect();
        assert!(told.starts_with(&read), "D2: no fact is invented, changed or left out between others");
        let whole = verify::<Node>(&memory.storage()).is_ok_and(|verified| verified.report.clean_stop);
        assert!(
            !whole || read.len() == told.len(),
            "D2: {} of {} facts, and nothing said",
            read.len(),
            told.len()
        );
    }
    look::<Node>(&memory, options);
}

/// A journal of so many facts, and these.
fn sound(options: Options, facts: u64, stopped: bool) -> (Memory, Vec<Event>) {
    let (memory, config) = (Memory::new(), Config::default());
    let mut node = Node::new(config.clone());
    let mut writer =
        Writer::create(memory.storage(), options, &config, &mut node).expect("an empty directory");
    let told: Vec<Event> = (0..facts).map(fact).collect();
    for batch in told.chunks(7) {
        let mut out = Commands::default();
        batch.iter().try_for_each(|event| writer.append(event)).expect("a sound disk");
        writer.commit(&mut node).expect("a sound disk");
        batch.iter().for_each(|event| node.apply(event, &mut out));
        writer.commands_given(&out.commands);
    }
    if stopped {
        writer.stop(&mut node).expect("a sound disk");
    }
    (memory, told)
}

fn fact(n: u64) -> Event {
    let fact = match n % 4 {
        0 => Fact::AgentStarted { boot_id: u128::from(n) },
        1 => Fact::SourceReady { source: Source::Api },
        2 => Fact::PodRemoved { pod: PodUid(u128::from(n)) },
        _ => Fact::Tick,
    };
    Event { at: Time(n * 1_000_000), fact }
}
