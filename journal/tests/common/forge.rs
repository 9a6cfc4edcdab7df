//! Bytes of a journal made from the picture in the crate's front page, not by the crate, whose checksums hold; and a look at
//! a directory in every way there is. Shared with the fuzz target `journal`.

#![allow(clippy::expect_used, clippy::panic, reason = "a failed expectation is a failed test")]

use nodefold_core::time::Time;
use nodefold_journal::{
    Error, Fold, Memory, Options, Position, Reader, Record, Replayed, replay, resume, verify,
};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// A journal's first segment.
pub const FIRST: &str = "00000000000000000001.seg";

/// Looks at a directory in every way there is. Nothing may panic; what is said must be said the same way twice.
pub fn look<F: Fold>(memory: &Memory, options: fn() -> Options) {
    let storage = memory.storage();
    let read = |from| Reader::open_at(&storage, from).map(|r| r.take_while(Result::is_ok).count()).ok();
    assert_eq!(read(Position::Record(1)), read(Position::Record(1)));
    read(Position::Record(u64::MAX));
    read(Position::Time(Time(u64::MAX)));
    let say = |r: Result<Replayed<F>, Error>| {
        r.map(|r| (r.report.records, r.report.digest)).map_err(|e| e.to_string())
    };
    assert_eq!(say(verify::<F>(&storage)), say(verify::<F>(&storage)));
    let _ = replay::<F>(&storage, None).map_err(|e| e.to_string());
    // Whatever recovery accepts is then whole: all of it, if it was folded from the start.
    if let Ok(resumed) = resume::<F>(storage.clone(), options()) {
        let whole = replay::<F>(&storage, None).expect("recovered, so whole");
        assert_eq!(whole.report.cut, None);
        if resumed.report.from_snapshot.is_none() {
            assert_eq!(verify::<F>(&storage).expect("recovered, so whole").report.cut, None);
        }
    }
}

/// Gives a record its checksum.
fn check(frame: &mut [u8], seed: u64) {
    let checksum = xxh3_64_with_seed(&frame[4..], seed) as u32;
    frame[..4].copy_from_slice(&checksum.to_le_bytes());
}

/// A record.
pub fn frame(seed: u64, index: u32, kind: u16, version: u16, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 4];
    out.extend_from_slice(&(16 + body.len() as u32).to_le_bytes());
    out.extend_from_slice(&kind.to_le_bytes());
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&index.to_le_bytes());
    out.extend_from_slice(body);
    check(&mut out, seed);
    out
}

/// A segment's header.
pub fn segment_header(id: u128, first: u64, form: u32, chain: [u8; 32]) -> Vec<u8> {
    let mut out = b"nodefold".to_vec();
    out.extend_from_slice(&3u32.to_le_bytes());
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

/// A compressed segment of blocks of any content, each with the length that it claims to unpack to.
pub fn compressed_segment<'a>(id: u128, blocks: impl IntoIterator<Item = (u32, &'a [u8])>) -> Vec<u8> {
    let mut bytes = segment_header(id, 1, 1, [0; 32]);
    let mut offset = 128u64;
    for (raw_len, packed) in blocks {
        let mut block = vec![0; 8];
        block.extend_from_slice(&offset.to_le_bytes());
        block.extend_from_slice(&1u64.to_le_bytes());
        block.extend_from_slice(&raw_len.to_le_bytes());
        block.extend_from_slice(&(packed.len() as u32).to_le_bytes());
        block.extend_from_slice(packed);
        let checksum = xxh3_64_with_seed(&block[8..], seed(id));
        block[..8].copy_from_slice(&checksum.to_le_bytes());
        bytes.extend_from_slice(&block);
        offset += u64::from(raw_len);
    }
    bytes
}

/// Appends records of any content (kind, version, body) to the first segment of a sound journal, each with the right checksum
/// and number; and if `ended`, a batch's end that is right in every way.
pub fn append_records(memory: &Memory, id: u128, records: &[(u16, u16, Vec<u8>)], ended: bool) {
    let end = Reader::open(&memory.storage()).expect("sound").last().expect("not empty").expect("sound");
    let Record::BatchEnd(before) = &end.record else { panic!("{end:?}") };
    let mut bytes = memory.bytes(FIRST).expect("a first segment");
    bytes.truncate(bytes.iter().rposition(|&b| b != 0).expect("a header") + 1);
    if 512 - bytes.len() % 512 < 16 {
        bytes.resize(bytes.len().next_multiple_of(512), 0);
    }
    let seed = seed(id);
    let start = bytes.len();
    for (index, (kind, version, body)) in records.iter().enumerate() {
        bytes.extend_from_slice(&frame(seed, index as u32, *kind, *version, body));
    }
    if ended {
        let mut body = Vec::new();
        for n in [before.batch + 1, end.number + 1, records.len() as u64, 9, 3] {
            body.extend_from_slice(&n.to_le_bytes());
        }
        body.extend_from_slice(&[0; 32]); // digest and commands: a reader does not compare them
        body.extend_from_slice(&0u64.to_le_bytes()); // no pods touched
        body.extend_from_slice(&before.chain);
        let at = bytes.len();
        bytes.extend_from_slice(&frame(seed, records.len() as u32, 4, 1, &body));
        bytes[at..at + 4].fill(0);
        let mut hashed = bytes[start..].to_vec();
        if hashed.len() > 16 << 10 {
            hashed.resize(hashed.len().next_multiple_of(4 << 10), 0);
        }
        let chain = blake3::hash(&hashed);
        let chain_at = bytes.len() - 32;
        bytes[chain_at..].copy_from_slice(chain.as_bytes());
        check(&mut bytes[at..], seed);
    }
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    memory.put(FIRST, bytes);
}
