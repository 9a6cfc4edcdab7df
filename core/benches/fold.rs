//! How long one event takes, at 100, 10,000 and 100,000 pods (DESIGN §9), with the program's allocator.
//!
//! The mixed lifecycle: pods of two containers and three volumes are created, mounted, pulled, started; a container with a
//! volume of its own is added to each and removed again; they crash, restart, crash and wait in back-off, are deleted and
//! released, while all others stand by. Their events, ticks and acknowledged status writes included, are written down first
//! and then folded by other nodes, so that neither making the answers nor reading a clock at each event is in the figure.
//! Told are the median of five passes, and the sum of what each 64 events took in the pass that took least for them.
#![allow(missing_docs, clippy::expect_used, clippy::print_stdout, clippy::disallowed_methods)]

mod pods;

use nodefold_core::event::{Event, Exit, Fact};
use nodefold_core::ids::PodUid;
use nodefold_core::spec::Deletion;
use nodefold_core::time::Nanos;
use nodefold_core::{Commands, Node};
use pods::{Bench, pod, with_task};
use std::sync::Arc;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Lives per pass.
const LIVES: u128 = 2_000;
/// Commands are dropped, and the clock read, after so many events.
const CHUNK: usize = 64;
const PASSES: usize = 5;

/// Its first container crashes.
fn exit(bench: &mut Bench, pod: PodUid) {
    let (id, _) = bench.node.instances(pod).into_iter().next().expect("a running container");
    let exit =
        Exit { code: 1, signal: None, reason: "Error".into(), started_at: None, finished_at: bench.now };
    bench.fact(Fact::ContainerExited { pod, container: id, exit });
    bench.drain();
}

/// One pod's whole life, while all others stand by.
fn life(bench: &mut Bench, n: u128) {
    bench.fact(Fact::PodApplied(Arc::new(pod(n, 1))));
    bench.drain();
    let uid = PodUid(n);
    bench.fact(Fact::PodApplied(Arc::new(with_task(n, 2))));
    bench.drain();
    assert_eq!(bench.node.instances(uid).len(), 3, "the task was added");
    bench.fact(Fact::PodApplied(Arc::new(pod(n, 3))));
    bench.drain();
    assert_eq!(bench.node.instances(uid).len(), 2, "and removed");
    exit(bench, uid);
    exit(bench, uid);
    // The second crash waits for its back-off.
    bench.now = bench.node.next_deadline().expect("a back-off");
    bench.drain();
    let mut deleted = pod(n, 4);
    deleted.deletion = Some(Deletion { requested_at: bench.now, grace: Nanos::secs(2) });
    bench.fact(Fact::PodApplied(Arc::new(deleted)));
    bench.drain();
}

/// The events of all lives on a node with so many others.
fn story(standing: u128) -> Vec<Event> {
    let mut bench = Bench::new(standing);
    bench.events = Some(Vec::new());
    for n in 0..LIVES {
        // Spread over the whole range of UIDs, so that caches are cold.
        life(&mut bench, (1 << 100) + n);
        let steady = PodUid(1 + (n * 7_919) % standing);
        bench.now.0 += 700_000_000_000;
        exit(&mut bench, steady);
    }
    bench.events.take().expect("written down")
}

/// What each chunk took.
#[inline(never)]
fn fold(node: &mut Node, events: &[Event]) -> Vec<Duration> {
    let mut out = Commands::default();
    let chunk = |chunk: &[Event]| {
        let begun = Instant::now();
        for event in chunk {
            node.apply(event, &mut out);
        }
        let spent = begun.elapsed();
        out.clear();
        spent
    };
    events.chunks(CHUNK).map(chunk).collect()
}

fn main() {
    println!("{:>8}  {:>9}  {:>12}  {:>12}", "pods", "events", "ns per event", "undisturbed");
    let asked: Vec<u128> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    for standing in if asked.is_empty() { vec![100, 10_000, 100_000] } else { asked } {
        let events = story(standing);
        let passes: Vec<Vec<Duration>> =
            (0..PASSES).map(|_| fold(&mut Bench::new(standing).node, &events)).collect();
        let each = |spent: Duration| spent.as_nanos() / events.len() as u128;
        let mut whole: Vec<Duration> = passes.iter().map(|pass| pass.iter().sum()).collect();
        whole.sort_unstable();
        // On a machine that others use, too: each chunk where nobody came in between.
        let least = |chunk| passes.iter().map(|pass: &Vec<Duration>| pass[chunk]).min().unwrap_or_default();
        let undisturbed: Duration = (0..passes[0].len()).map(least).sum();
        println!(
            "{standing:>8}  {:>9}  {:>12}  {:>12}",
            events.len(),
            each(whole[PASSES / 2]),
            each(undisturbed)
        );
    }
}
