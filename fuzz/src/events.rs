//! Hostile events straight into the core: no panic, no storm of commands or wake-ups, memory in proportion, one fold.

use super::choices::Bytes;
use super::script::{fold, live};
use nodefold_core::{Commands, Event, Node, codec};

/// A state is not larger than this beside what it was told.
const STATE_MIN_BYTES: usize = 64 << 10;
/// A fact of few bytes makes records of its pod, and a snapshot aligns them.
const BYTES_PER_BYTE_TOLD: usize = 64;

/// Whatever a node is told, it answers (no panic, bounded work), remembers in proportion, and answers alike again (D1).
pub fn events(data: &[u8]) {
    let mut life = live(&mut Bytes::new(data));
    let told: usize = life.events.iter().map(bytes_of).sum();
    let state = life.node.to_snapshot().len();
    assert!(
        state < STATE_MIN_BYTES + told * BYTES_PER_BYTE_TOLD,
        "a state of {state} bytes from {told} told"
    );

    // D1: the same events end in the same digest with the same commands, whatever is asked for on the way.
    let (mut again, commands) = fold(Node::new(life.config.clone()), &life.events);
    assert_eq!(again.digest(), life.node.digest(), "D1: two folds of the same events");
    assert!(commands == life.commands, "D1: two folds of the same events ask for the same");
    let mut asked = Node::new(life.config);
    let mut out = Commands::default();
    for event in &life.events {
        asked.apply(event, &mut out);
        asked.digest();
    }
    assert_eq!(asked.digest(), again.digest(), "D1: a digest asked for after each event");
}

fn bytes_of(event: &Event) -> usize {
    let mut out = Vec::new();
    codec::encode(event, &mut out);
    let read: Result<Event, _> = codec::decode(&out);
    assert!(read.is_ok_and(|read| read == *event), "a fact reads back as it was written");
    out.len()
}
