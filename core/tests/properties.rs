//! What holds for any facts in any order: no panic, one digest however it is asked for, the same commands from the same
//! events, and a state that does not grow with what is gone.
#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one variant among many")]

#[allow(dead_code, reason = "shared with the conformance tests, which use all of it")]
#[path = "volumes/bench.rs"]
mod bench;
#[allow(dead_code, reason = "shared with the conformance tests, which use all of it")]
#[path = "volumes/kit.rs"]
mod kit;

use bench::{Bench, Op, failure, kind};
use kit::*;
use nodefold_core::config::{FeatureGates, NodeFacts};
use nodefold_core::event::{
    ErrorClass, Event, Fact, ProbeKind, SeenContainer, SeenMount, SeenSandbox, SeenState, UsageOf,
};
use nodefold_core::ids::{ContainerId, OpId, PodUid, Source};
use nodefold_core::node::Digest;
use nodefold_core::spec::{Container, Deletion, Pod, RestartPolicy, Volume};
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Commands, Config, Node};
use proptest::prelude::*;
use std::collections::BTreeMap;
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

const NAMES: [&str; 3] = ["a", "b", "c"];
const VOLUMES: [&str; 3] = ["u", "v", "w"];

fn names(from: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(from)
}

fn uids() -> impl Strategy<Value = PodUid> {
    prop_oneof![8 => Just(PodUid(1)), 4 => Just(PodUid(2)), 1 => Just(PodUid(3)), 1 => Just(PodUid(0))]
}

/// Small numbers, and now and then an absurd one.
fn counts() -> impl Strategy<Value = u32> {
    prop_oneof![12 => 0..3u32, 1 => Just(u32::MAX), 1 => Just(u32::MAX - 1)]
}

fn amounts() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0..800u64, 1 => Just(5000u64), 1 => Just(u64::MAX)]
}

fn containers() -> impl Strategy<Value = Container> {
    let policies = prop::sample::select(vec![None, Some(RestartPolicy::Never), Some(RestartPolicy::Always)]);
    let mounts = prop::sample::subsequence(VOLUMES.to_vec(), 0..=2);
    (names(&NAMES), mounts, any::<(bool, bool, bool)>(), policies, amounts()).prop_map(
        |(name, mounts, (swaps, new_image, hooks), restart_policy, cpu)| {
            let made = if swaps { swapper(name, &mounts) } else { user(name, &mounts) };
            let mut made = with_cpu(cpu, made);
            made.resources.limits = made.resources.requests.clone();
            made.image = if new_image { "image:2".into() } else { "image:1".into() };
            Container { restart_policy, pre_stop: hooks, post_start: hooks, ..made }
        },
    )
}

fn volumes() -> impl Strategy<Value = Volume> {
    let kinds = 0..5u8;
    (names(&VOLUMES), kinds, amounts()).prop_map(|(name, kind, size)| match kind {
        0 => empty_dir(name),
        1 => config_map(name, "one"),
        2 => optional_config_map(name, "two"),
        3 => token(name),
        _ => memory_dir(name, size),
    })
}

fn pods() -> impl Strategy<Value = Arc<Pod>> {
    let lists = (
        prop::collection::vec(containers(), 0..4),
        prop::collection::vec(containers(), 0..2),
        prop::collection::vec(containers(), 0..2),
        prop::collection::vec(volumes(), 0..4),
    );
    let deletion = prop::option::weighted(0.1, 0..40u64);
    (uids(), lists, any::<(bool, bool)>(), deletion, 0..1000u64).prop_map(
        |(uid, (mains, inits, ephemeral, volumes), (same_name, is_static), deletion, generation)| {
            let mut pod = pod(uid, mains, volumes);
            let spec = Arc::make_mut(&mut pod.spec);
            spec.init_containers = inits.into_iter().map(Arc::new).collect();
            spec.ephemeral_containers = ephemeral.into_iter().map(Arc::new).collect();
            pod.generation = generation;
            pod.source = if is_static && uid != POD { Source::File } else { Source::Api };
            if same_name {
                pod.name = "shared".into();
            }
            pod.deletion = deletion.map(|s| Deletion { requested_at: Time(0), grace: Nanos::secs(s) });
            Arc::new(pod)
        },
    )
}

fn ids() -> impl Strategy<Value = ContainerId> {
    (names(&NAMES), counts(), counts())
        .prop_map(|(name, incarnation, attempt)| ContainerId { name: name.into(), incarnation, attempt })
}

fn seen_states() -> impl Strategy<Value = SeenState> {
    prop_oneof![
        Just(SeenState::Created),
        Just(SeenState::Running { started_at: Time(5) }),
        Just(SeenState::Exited(exit(1, Time(9)))),
        Just(SeenState::Unknown),
    ]
}

fn observed() -> impl Strategy<Value = Fact> {
    let op = (1..60u64).prop_map(OpId);
    let mounts = prop::collection::vec((uids(), names(&VOLUMES), counts()), 0..3);
    let sandboxes = prop::collection::vec((uids(), counts(), any::<bool>()), 0..2);
    let seen = prop::collection::vec((uids(), ids(), seen_states()), 0..3);
    (op, mounts, sandboxes, seen, any::<(bool, bool)>()).prop_map(
        |(op, mounts, sandboxes, seen, (runtime, complete))| {
            if !runtime {
                let seen = |(pod, name, g)| SeenMount { pod, volume: volume_id(name, g) };
                return Fact::MountsObserved { op, mounts: mounts.into_iter().map(seen).collect() };
            }
            let ip = Some("10.0.0.2".into());
            let sandbox =
                |(pod, attempt, ready)| SeenSandbox { pod, attempt, ready, ip: Option::clone(&ip) };
            let container = |(pod, container, state)| SeenContainer { pod, container, state };
            Fact::RuntimeObserved {
                op,
                complete,
                sandboxes: sandboxes.into_iter().map(sandbox).collect(),
                containers: seen.into_iter().map(container).collect(),
            }
        },
    )
}

fn facts() -> impl Strategy<Value = Fact> {
    let op = || (1..80u64).prop_map(OpId);
    let object = || names(&["one", "two"]).prop_map(object_ref);
    let gates = any::<(bool, bool)>()
        .prop_map(|(dynamic_containers, dynamic_volumes)| FeatureGates { dynamic_containers, dynamic_volumes });
    prop_oneof![
        3 => uids().prop_map(|pod| Fact::PodRemoved { pod }),
        3 => prop::sample::select(vec![Source::Api, Source::File]).prop_map(|source| Fact::SourceReady { source }),
        3 => (object(), 0..3u128).prop_map(|(object, d)| Fact::ObjectSeen { object, version: version(d) }),
        1 => object().prop_map(|object| Fact::ObjectGone { object }),
        2 => (gates, 0..2000u64).prop_map(|(gates, cpu)| {
            Fact::NodeChanged(NodeFacts { allocatable: cpu_of(cpu), labels: Vec::new(), gates })
        }),
        3 => observed(),
        1 => (uids(), ids(), any::<bool>()).prop_map(|(pod, container, passed)| Fact::ProbeResult {
            pod, container, probe: ProbeKind::Liveness, passed, message: "".into(),
        }),
        1 => (uids(), ids(), -1..3i32).prop_map(|(pod, container, code)| Fact::ContainerExited {
            pod, container, exit: exit(code, Time(7)),
        }),
        1 => (uids(), names(&VOLUMES), counts(), amounts()).prop_map(|(pod, v, g, bytes)| Fact::UsageReported {
            pod, of: UsageOf::Volume(volume_id(v, g)), bytes,
        }),
        1 => (op(), uids(), names(&VOLUMES), counts()).prop_map(|(op, pod, v, g)| Fact::VolumeUnmounted {
            op, pod, volume: volume_id(v, g),
        }),
        1 => (op(), uids(), ids()).prop_map(|(op, pod, container)| Fact::ContainerStarted { op, pod, container }),
        1 => (uids(), counts()).prop_map(|(pod, attempt)| Fact::SandboxStopped { pod, attempt }),
        1 => (op(), uids()).prop_map(|(op, pod)| Fact::StatusWritten { op, pod }),
    ]
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
    let fact = match class {
        None => bench.do_unanswered(&command),
        Some(class) => Some(failure(&command, error(class, "no"))),
    };
    if let Some(fact) = fact {
        bench.fact(fact);
    }
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
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 4000, failure_persistence: None,
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
}

#[cfg(feature = "rkyv")]
mod snapshots {
    use super::*;

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

    fn size_after(rounds: std::ops::Range<u32>, bench: &mut Bench) -> usize {
        for round in rounds {
            let (name, object) = (format!("job-{round}"), format!("object-{round}"));
            bench.object(&object, u128::from(round));
            bench.change(|spec| {
                spec.add_volume(config_map(&name, &object));
                spec.add(job_with(&name));
                spec.edit("keeper", |c| c.mounts.push(mount(&name)));
            });
            bench.exits(&name, 0);
            bench.change(|spec| {
                spec.remove(&name);
                spec.edit("keeper", |c| c.mounts.retain(|m| *m.name != *name));
                spec.remove_volume(&name);
            });
            bench.pass(Nanos::secs(1));
            bench.log.clear();
            bench.events.clear();
        }
        bench.node.to_snapshot().len()
    }

    fn job_with(name: &str) -> Container {
        Container { mounts: vec![mount(name)], ..job(name) }
    }

    /// A pod that lives for ever is as large after a thousand tasks as after a hundred.
    #[test]
    fn a_thousand_containers_and_volumes_leave_nothing_behind() {
        let mut bench = Bench::running(pod(POD, vec![swapper("keeper", &[])], vec![]));
        let early = size_after(0..100, &mut bench);
        let late = size_after(100..1000, &mut bench);
        // Numbers and names get a little longer; nothing else grows.
        assert!(late < early + early / 10, "{early} bytes after 100 rounds, {late} after 1000");
    }

    /// Neither do pods.
    #[test]
    fn a_thousand_pods_leave_nothing_behind() {
        let mut bench = Bench::running(pod(POD, vec![container("keeper")], vec![]));
        let mut sizes = Vec::new();
        for round in 0..1000u32 {
            let uid = PodUid(u128::from(round) + 100);
            let object = format!("object-{round}");
            bench.object(&object, 1);
            bench.apply(pod(uid, vec![user("a", &["v"])], vec![config_map("v", &object)]));
            bench.fact(Fact::PodRemoved { pod: uid });
            bench.pass(Nanos::secs(1));
            bench.log.clear();
            bench.events.clear();
            sizes.push(bench.node.to_snapshot().len());
        }
        let (early, late) = (sizes[99], sizes[999]);
        assert!(late < early + early / 10, "{early} bytes after 100 pods, {late} after 1000");
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
