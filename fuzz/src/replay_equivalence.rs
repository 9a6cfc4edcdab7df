//! D1 and D2: a snapshot and the events after it are the whole, in memory, in the portable form, and through a journal that is
//! stopped, crashed and resumed as the bytes say.

use super::choices::Bytes;
use super::script::{Life, fold, live};
use nodefold_core::{Commands, Node};
use nodefold_harness::swarm::Chance;
use nodefold_journal::portable::{from_json, to_json};
use nodefold_journal::{Memory, Options, Writer, resume, verify};

/// Every way to come by a state ends in the same state.
pub fn replay_equivalence(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    // What is done with the log is drawn before the life, which takes all that is left.
    let plan: Vec<u64> = (0..12).map(|_| bytes.below(128)).collect();
    let mut life = live(&mut bytes);
    snapshot_and_tail(&mut life, plan[0]);
    journalled(&mut life, &plan);
}

fn snapshot_and_tail(life: &mut Life, cut: u64) {
    let (head, tail) = life.events.split_at(cut as usize % life.events.len());
    let (node, before) = fold(Node::new(life.config.clone()), head);
    let loaded = Node::from_snapshot(&node.to_snapshot()).expect("its own snapshot is good");
    let portable = from_json(to_json(&node).as_bytes()).expect("its own document is good");
    for (what, start) in [("snapshot", loaded), ("portable state", portable)] {
        let (mut whole, after) = fold(start, tail);
        assert_eq!(
            whole.digest(),
            life.node.digest(),
            "D1: {what} after {} events, and the tail",
            head.len()
        );
        assert!(life.commands[before.len()..] == after, "D1: {what} and tail ask for the same");
        // What the digest leaves to be derived.
        assert!(whole.deadlines().eq(life.node.deadlines()), "D1: {what} and tail wake alike");
        assert!(whole.pods() == life.node.pods());
    }
}

fn journalled(life: &mut Life, plan: &[u64]) {
    let memory = Memory::new();
    let options = || Options {
        segment_bytes: 4096,
        fill_bytes: 1024,
        compress: plan[1].is_multiple_of(2),
        id: 7,
        ..Options::default()
    };
    let mut node = Node::new(life.config.clone());
    let mut writer =
        Writer::create(memory.storage(), options(), &life.config, &mut node).expect("an empty directory");
    let mut left = &life.events[..];
    for turn in 0.. {
        if left.is_empty() {
            break;
        }
        let drawn = plan[2 + turn % (plan.len() - 2)];
        let (batch, rest) = left.split_at(left.len().min(1 + drawn as usize / 4));
        left = rest;
        let mut out = Commands::default();
        batch.iter().try_for_each(|event| writer.append(event)).expect("a sound disk");
        writer.commit(&mut node).expect("a sound disk");
        batch.iter().for_each(|event| node.apply(event, &mut out));
        writer.commands_given(&out.commands);
        match drawn % 4 {
            0 => writer.snapshot(&mut node).expect("a sound disk"),
            1 => {
                // D2: power is cut, and of what was not synced any sector may be there.
                drop(writer);
                let mut kept = drawn;
                memory.crash(&mut || {
                    kept = kept.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    kept >> 63 == 1
                });
                let resumed = resume::<Node>(memory.storage(), options()).expect("D2: recovery");
                let acknowledged = life.events.len() - left.len();
                assert_eq!(
                    resumed.report.events, acknowledged as u64,
                    "D2: every acknowledged fact, and none besides"
                );
                assert!(resumed.report.difference.is_none(), "D1: {:?}", resumed.report.difference);
                assert_eq!(node.digest(), resumed.report.digest, "D2: the state after recovery");
                (writer, node) = (resumed.writer, resumed.fold);
            }
            _ => {}
        }
    }
    assert_eq!(node.digest(), life.node.digest(), "D1: the fold beside the journal");
    writer.stop(&mut node).expect("a sound disk");
    let report = verify::<Node>(&memory.storage()).expect("a sound journal").report;
    assert!(report.difference.is_none() && report.refused.is_empty(), "D1: {report:?}");
    assert_eq!(
        (report.digest, report.clean_stop),
        (life.node.digest(), true),
        "D1: the journal, folded from the start"
    );
}
