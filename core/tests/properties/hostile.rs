//! Any facts in any order.

use crate::bench::Bench;
use crate::generate::{facts, pods};
use crate::host::exit;
use crate::kit::*;
use crate::words::{Op, failure, kind};
use nodefold_core::command::Action;
use nodefold_core::event::{ErrorClass, Event, Fact};
use nodefold_core::ids::PodUid;
use nodefold_core::node::Digest;
use nodefold_core::spec::Pod;
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Commands, Config, Node};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One thing that happens to a node.
#[derive(Clone, Debug)]
enum Step {
    /// A source delivers a pod.
    Apply(Arc<Pod>),
    /// Any other fact, likely or not.
    Fact(Fact),
    /// One of the commands not answered yet is, well or badly.
    Answer(usize, Option<ErrorClass>),
    /// All of them are.
    AnswerAll,
    /// A container of the first pod that runs ends.
    Exit(usize, i32),
    /// Time passes, with every deadline on the way.
    Pass(u64),
    /// The clock jumps back.
    Back(u64),
    /// The agent starts anew, on the same boot or another.
    Restart(bool),
    /// The digest is asked for.
    Digest,
}

fn steps() -> impl Strategy<Value = Step> {
    let class = prop::option::weighted(
        0.3,
        prop::sample::select(vec![ErrorClass::Final, ErrorClass::Transient, ErrorClass::Uncertain]),
    );
    prop_oneof![
        4 => pods().prop_map(Step::Apply),
        3 => facts().prop_map(Step::Fact),
        6 => (0..20usize, class).prop_map(|(which, class)| Step::Answer(which, class)),
        4 => Just(Step::AnswerAll),
        2 => (0..4usize, 0..2i32).prop_map(|(which, code)| Step::Exit(which, code)),
        3 => (0..400_000u64).prop_map(Step::Pass),
        1 => (0..10_000u64).prop_map(Step::Back),
        1 => any::<bool>().prop_map(Step::Restart),
        2 => Just(Step::Digest),
    ]
}

/// Plays the steps on a node whose commands are answered only by steps. The bench itself asserts that the node rests.
fn play(steps: &[Step]) -> Bench {
    let mut bench = Bench::cold(config(2000));
    bench.manual = true;
    bench.honest = false;
    bench.boot();
    for step in steps {
        match step {
            Step::Apply(pod) => bench.fact(Fact::PodApplied(pod.clone())),
            Step::Fact(fact) => bench.fact(aimed(&bench, fact.clone())),
            Step::Answer(which, class) => answer(&mut bench, *which, *class),
            Step::AnswerAll => {
                for _ in 0..bench.held.len() {
                    answer(&mut bench, 0, None);
                }
            }
            Step::Exit(which, code) => {
                let live = bench.node.instances(POD);
                if let Some((container, _)) = live.get(which % live.len().max(1)).cloned() {
                    let exit = exit(*code, bench.now);
                    bench.fact(Fact::ContainerExited { pod: POD, container, exit });
                }
            }
            Step::Pass(millis) => bench.pass(Nanos::millis(*millis)),
            Step::Back(millis) => bench.now = Time(bench.now.0 - Nanos::millis(*millis).0),
            Step::Restart(reboots) => {
                if *reboots {
                    bench.reboot();
                } else {
                    bench.restart();
                }
            }
            Step::Digest => {
                bench.node.digest();
            }
        }
    }
    bench
}

/// An observation is given as the answer to one that was asked for, if there is any: else nobody would listen.
fn aimed(bench: &Bench, mut fact: Fact) -> Fact {
    let asked = |of: Op| bench.held.iter().find(|c| kind(c).0 == of).map(|c| c.op);
    match &mut fact {
        Fact::MountsObserved { op, .. } => *op = asked(Op::Mounts).unwrap_or(*op),
        Fact::RuntimeObserved { op, .. } => *op = asked(Op::Runtime).unwrap_or(*op),
        _ => {}
    }
    fact
}

fn answer(bench: &mut Bench, which: usize, class: Option<ErrorClass>) {
    if bench.held.is_empty() {
        return;
    }
    let command = bench.held.remove(which % bench.held.len());
    let facts = match class {
        None => bench.do_unanswered(&command),
        Some(class) => vec![failure(&command, error(class, "no"))],
    };
    for fact in facts {
        bench.fact(fact);
    }
}

/// No two containers or volumes of a pod have one name: an API server lets nothing else through, and what is shown of two
/// is whatever one of them is.
fn with_names_of_their_own(mut step: Step) -> Step {
    if let Step::Apply(pod) = &mut step {
        let spec = Arc::make_mut(&mut Arc::make_mut(pod).spec);
        let mut names = BTreeSet::new();
        spec.containers.retain(|container| names.insert(container.name.clone()));
        spec.init_containers.retain(|container| names.insert(container.name.clone()));
        spec.ephemeral_containers.retain(|container| names.insert(container.name.clone()));
        let mut names = BTreeSet::new();
        spec.volumes.retain(|volume| names.insert(volume.name.clone()));
    }
    step
}

/// The fold of these events from nothing, and all it commanded.
fn fold(config: Config, events: &[Event]) -> (Node, Commands) {
    let mut node = Node::new(config);
    let mut out = Commands::default();
    for event in events {
        node.apply(event, &mut out);
    }
    (node, out)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 4000, failure_persistence: None,
        ..ProptestConfig::default() })]

    /// D1, DESIGN §3 "must be a function": whatever was asked for on the way, the same events end in the same digest with
    /// the same commands; and nothing panics.
    #[test]
    fn any_facts_fold_to_one_digest_and_the_same_commands(steps in prop::collection::vec(steps(), 1..60)) {
        let mut bench = play(&steps);
        let (mut fresh, out) = fold(config(2000), &bench.events);
        prop_assert_eq!(fresh.digest(), bench.node.digest());
        let live: Vec<_> = bench.log.iter().map(|(_, command)| command).collect();
        prop_assert_eq!(out.commands.iter().collect::<Vec<_>>(), live);
    }

    /// What `take_touched` tells after each event is, put together, what a fold that is asked once tells at the end.
    #[test]
    fn touched_pods_and_their_digests_add_up(steps in prop::collection::vec(steps(), 1..60)) {
        let bench = play(&steps);
        let mut node = Node::new(config(2000));
        let mut out = Commands::default();
        let mut told: BTreeMap<PodUid, Digest> = BTreeMap::new();
        for event in &bench.events {
            node.apply(event, &mut out);
            told.extend(node.take_touched());
        }
        told.retain(|_, digest| *digest != Digest(0));
        prop_assert_eq!(told.keys().copied().collect::<Vec<_>>(), node.pods());
        let (mut fresh, _) = fold(config(2000), &bench.events);
        let at_once: BTreeMap<PodUid, Digest> =
            fresh.take_touched().into_iter().filter(|(_, digest)| *digest != Digest(0)).collect();
        prop_assert_eq!(told, at_once);
    }

    /// Nothing that can be done is left for an event that may never come (L4): when all that was asked for is answered, a look
    /// at a pod that brings nothing new moves nothing and asks for nothing. What a deadline is booked for is not due yet.
    #[test]
    fn when_all_is_answered_another_look_finds_nothing_to_do(steps in prop::collection::vec(steps(), 1..60)) {
        let mut bench = play(&steps.into_iter().map(with_names_of_their_own).collect::<Vec<_>>());
        for answered in 0.. {
            bench.pass(Nanos::ZERO);
            if bench.held.is_empty() {
                break;
            }
            answer(&mut bench, 0, None);
            prop_assert!(answered < 2000, "it asks without end");
        }
        for pod in bench.node.pods() {
            let mut node = bench.node.clone();
            let mut found = Commands::default();
            let nothing = Fact::ReadinessGate { pod, condition: "nobody's".into(), met: false };
            node.apply(&Event { at: bench.now, fact: nothing }, &mut found);
            // What is told of a wait is told with each look, as a kubelet does.
            found.commands.retain(|command| !matches!(command.action, Action::RecordEvent(_)));
            prop_assert_eq!(&found.commands, &[]);
            prop_assert_eq!(&found.transitions, &[]);
        }
    }
}

#[cfg(feature = "rkyv")]
proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 4000, failure_persistence: None,
        ..ProptestConfig::default() })]

    /// D1: a snapshot and the events after it are the whole.
    #[test]
    fn a_snapshot_and_its_tail_are_the_whole(
        steps in prop::collection::vec(steps(), 1..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let bench = play(&steps);
        let cut = cut.index(bench.events.len());
        let (head, _) = fold(config(2000), &bench.events[..cut]);
        let mut node = Node::from_snapshot(&head.to_snapshot()).expect("its own snapshot is good");
        let (mut whole, _) = fold(config(2000), &bench.events);
        let mut out = Commands::default();
        for event in &bench.events[cut..] {
            node.apply(event, &mut out);
        }
        prop_assert_eq!(node.digest(), whole.digest());
        // What the digest leaves to be derived.
        prop_assert_eq!(node.deadlines().collect::<Vec<_>>(), whole.deadlines().collect::<Vec<_>>());
        prop_assert_eq!(node.find_pod("ns", "shared"), whole.find_pod("ns", "shared"));
    }
}

#[test]
fn absurd_times_neither_panic_nor_hang() {
    let mut bench = Bench::new(config(1000));
    bench.apply(pod(OTHER, vec![with_cpu(900, container("x"))], vec![]));
    bench.apply(pod(POD, vec![with_cpu(50, user("a", &["v"]))], vec![empty_dir("v")]));
    // A deferred change is tried again every three minutes: two centuries of that are one look.
    bench.change(|spec| spec.add(with_cpu(200, container("c"))));
    let mut out = Commands::default();
    for at in [u64::MAX / 2, u64::MAX - 1, u64::MAX, 0, u64::MAX] {
        bench.node.apply(&Event { at: Time(at), fact: Fact::Tick }, &mut out);
    }
    assert!(out.commands.len() < 100, "{} commands", out.commands.len());
}
