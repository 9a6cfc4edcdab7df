//! Critical-pod preemption (kubelet-pods §1.4): whom a critical pod displaces, how they end, and who gets the room.
//!
//! The node has 4 cpu and 4 GiB.

use crate::kit::*;
use nodefold_core::ids::{PodUid, Source};
use nodefold_core::resources::{QosClass, ResourceList, ResourceName, Resources};
use nodefold_core::spec::{Container, NodeOperator, NodeRequirement, NodeSelectorTerm, Pod, RestartPolicy};
use nodefold_core::state::{Lifecycle, TerminationCause};
use nodefold_core::status::ConditionKind;
use nodefold_core::{Config, Fact};
use std::sync::Arc;

const CRITICAL: PodUid = PodUid(100);
const SYSTEM: i32 = 2_000_000_000;

fn node() -> Config {
    let mut config = config();
    config.node.allocatable = amounts(4000, 4 * GI);
    config.node.allocatable.set(ResourceName::Pods, 10);
    config
}

fn asking(uid: PodUid, qos: QosClass, cpu: u64, memory: u64) -> Pod {
    let resources = Resources { requests: amounts(cpu, memory), limits: ResourceList::default() };
    let mut spec = spec(RestartPolicy::Always, vec![], vec![Container { resources, ..container("c0") }]);
    spec.qos = qos;
    pod(uid, spec)
}

fn with_priority(priority: i32, pod: Pod) -> Pod {
    let mut spec = (*pod.spec).clone();
    spec.priority = priority;
    Pod { spec: Arc::new(spec), ..pod }
}

fn critical(cpu: u64, memory: u64) -> Pod {
    with_priority(SYSTEM, asking(CRITICAL, QosClass::Burstable, cpu, memory))
}

/// UIDs from 1 on, in the order of the list.
fn running(pods: &[(QosClass, u64, u64)]) -> Bench {
    let mut bench = Bench::booted(node());
    for (i, (qos, cpu, memory)) in pods.iter().enumerate() {
        bench.pod(&asking(PodUid(i as u128 + 1), *qos, *cpu, *memory));
    }
    bench.run();
    bench
}

fn ended(bench: &Bench) -> Vec<u128> {
    let ends = |uid: &PodUid| bench.node.pod(*uid).is_some_and(|p| !p.is_not_ended());
    bench.node.pods().into_iter().filter(ends).map(|uid| uid.0).collect()
}

use QosClass::{BestEffort, Burstable, Guaranteed};

struct Row {
    given: &'static str,
    running: &'static [(QosClass, u64, u64)],
    wants: (u64, u64),
    victims: &'static [u128],
}

const ROWS: &[Row] = &[
    Row {
        given: "room enough: nobody goes",
        running: &[(Burstable, 1000, GI), (Burstable, 1000, GI)],
        wants: (2000, GI),
        victims: &[],
    },
    Row {
        given: "one pod that frees all of it, though two smaller ones would too",
        running: &[(Burstable, 1000, 0), (Burstable, 1000, 0), (Burstable, 2000, 0)],
        wants: (2000, 0),
        victims: &[3],
    },
    Row {
        given: "of two that would do, the one that holds less memory",
        running: &[(Burstable, 2000, 2 * GI), (Burstable, 2000, GI)],
        wants: (1000, 0),
        victims: &[2],
    },
    Row {
        given: "equals: the first by UID",
        running: &[(Burstable, 2000, GI), (Burstable, 2000, GI)],
        wants: (1000, 0),
        victims: &[1],
    },
    Row {
        given: "Guaranteed is spared where Burstable suffices",
        running: &[(Guaranteed, 2000, 0), (Burstable, 1000, 0), (Burstable, 1000, 0)],
        wants: (2000, 0),
        victims: &[2, 3],
    },
    Row {
        given: "Guaranteed goes where nothing else suffices, and then Burstable is spared if that is enough",
        running: &[(Guaranteed, 3000, 0), (Burstable, 1000, 0)],
        wants: (2000, 0),
        victims: &[1],
    },
    Row {
        given: "two resources: the pod nearest to both",
        running: &[(Burstable, 2000, 0), (Burstable, 0, 2 * GI), (Burstable, 2000, 2 * GI)],
        wants: (1500, 3 * GI / 2),
        victims: &[3],
    },
    Row {
        given: "two resources that no one pod has: one for each",
        running: &[(Burstable, 4000, 0), (Burstable, 0, 4 * GI)],
        wants: (1000, GI),
        victims: &[1, 2],
    },
];

#[test]
fn whom_a_critical_pod_displaces() {
    run_all(ROWS.iter().enumerate().map(|(i, row)| {
        let run = || {
            let mut bench = running(row.running);
            bench.pod(&critical(row.wants.0, row.wants.1));
            bench.run();
            assert_eq!(ended(&bench), row.victims);
            assert_eq!(bench.phase(CRITICAL), "Running");
        };
        (i as u32, row.given.to_owned(), Box::new(run) as Box<dyn Fn()>)
    }));
}

#[test]
fn a_displaced_pod_ends_as_the_kubelet_ends_it() {
    let mut bench = running(&[(Burstable, 3000, 0)]);
    bench.hold(verb("stop"));
    let mark = bench.mark();
    bench.pod(&critical(2000, 0));
    bench.run();
    match &bench.state(UID).lifecycle {
        Lifecycle::Terminating(t) => {
            assert_eq!(
                (t.cause, t.deadline.since(t.since).as_secs()),
                (TerminationCause::Preempted, 30),
                "its own grace"
            );
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(bench.told(mark, "Preempting"), 1);
    assert_eq!(bench.phase(UID), "Running", "nothing terminal before its containers have stopped (S8)");
    assert_eq!(bench.state(CRITICAL).label(), "Waiting", "admitted when there is room, not before (S5)");
    bench.let_go();
    bench.run();
    let status = bench.status(UID);
    assert_eq!((status.phase.as_str(), &*status.reason), ("Failed", "Preempting"));
    assert_eq!(&*status.message, "Preempted in order to admit critical pod");
    let disruption = bench.condition(UID, ConditionKind::DisruptionTarget).expect("it was disrupted");
    assert_eq!(&*disruption.reason, "TerminationByKubelet");
    assert_eq!(&*disruption.message, "Pod was preempted by Kubelet to accommodate a critical pod.");
    assert_eq!(bench.phase(CRITICAL), "Running");
}

#[test]
fn what_ends_anyway_makes_the_room_first() {
    let mut bench = running(&[(Burstable, 2000, 0), (Burstable, 2000, 0)]);
    bench.hold(verb("stop"));
    let leaving = asking(PodUid(2), Burstable, 2000, 0);
    bench.pod(&deleted(&leaving, bench.now, 60));
    bench.pod(&critical(1500, 0));
    bench.run();
    assert_eq!(ended(&bench), [2], "nobody else is ended");
    assert_eq!(bench.state(CRITICAL).label(), "Waiting");
    bench.let_go();
    bench.run();
    assert_eq!(bench.phase(CRITICAL), "Running");
    assert_eq!(bench.phase(PodUid(1)), "Running");
}

/// A kubelet admits nobody while it preempts; here the room is set aside.
#[test]
fn the_room_is_for_the_critical_pod() {
    let mut bench = running(&[(Burstable, 4000, 0)]);
    bench.hold(verb("stop"));
    bench.pod(&critical(2000, 0));
    bench.run();
    bench.let_go();
    bench.hold(verb("stop"));
    // In the same moment as the room comes, an ordinary pod asks for all of it.
    bench.pod(&asking(PodUid(2), Burstable, 3000, 0));
    bench.pod(&asking(PodUid(3), Burstable, 2000, 0));
    bench.let_go();
    bench.run();
    assert_eq!(bench.phase(CRITICAL), "Running");
    assert_eq!(bench.phase(PodUid(2)), "Failed", "no room beside it");
    assert_eq!(&*bench.status(PodUid(2)).reason, "OutOfcpu");
    assert_eq!(ended(&bench), [1, 2, 3], "and nobody else was ended for it");
}

#[test]
fn nobody_ends_where_it_would_not_help() {
    let mut bench = running(&[(Burstable, 1000, 0)]);
    bench.pod(&with_priority(SYSTEM + 1000, asking(PodUid(2), Burstable, 2000, 0)));
    bench.run();
    let mark = bench.mark();
    bench.pod(&critical(3000, 0));
    bench.run();
    let status = bench.status(CRITICAL);
    assert_eq!((status.phase.as_str(), &*status.reason), ("Failed", "UnexpectedAdmissionError"));
    assert!(status.message.contains("[(res: cpu, q: 1000), ]"), "{}", status.message);
    assert_eq!(bench.told(mark, "Preempting"), 0);
    assert_eq!(ended(&bench), [CRITICAL.0]);
}

#[test]
fn a_place_among_the_pods_is_room_too() {
    let mut config = node();
    config.node.allocatable.set(ResourceName::Pods, 2);
    let mut bench = Bench::booted(config);
    bench.pod(&asking(PodUid(1), Burstable, 100, 0));
    bench.pod(&asking(PodUid(2), BestEffort, 0, 0));
    bench.run();
    bench.pod(&critical(100, 0));
    bench.run();
    assert_eq!(ended(&bench), [2], "BestEffort before Burstable");
    assert_eq!(bench.phase(CRITICAL), "Running");
}

#[test]
fn what_room_can_not_cure_is_no_reason_to_displace() {
    let mut bench = running(&[(Burstable, 4000, 0)]);
    let mut elsewhere = critical(2000, 0);
    let requirement = NodeRequirement { key: name("zone"), operator: NodeOperator::Exists, values: vec![] };
    Arc::make_mut(&mut elsewhere.spec).node_selector =
        vec![NodeSelectorTerm { requirements: vec![requirement] }].into();
    bench.pod(&elsewhere);
    bench.run();
    assert_eq!(&*bench.status(CRITICAL).reason, "NodeAffinity");
    assert_eq!(bench.phase(UID), "Running");
}

#[test]
fn who_is_critical_and_who_can_be_displaced() {
    let file = |pod: Pod| Pod { source: Source::File, ..pod };
    let full = |victim: Pod| {
        let mut bench = Bench::booted(node());
        bench.pod(&victim);
        bench.run();
        assert_eq!(bench.phase(victim.uid), "Running");
        bench
    };
    let big = || asking(UID, Burstable, 4000, 0);
    let wants = || asking(CRITICAL, Burstable, 1000, 0);
    let cases = [
        ("an ordinary pod displaces nobody", wants(), big(), false),
        ("nor one just below", with_priority(SYSTEM - 1, wants()), big(), false),
        ("a static pod is critical", file(wants()), big(), true),
        ("a static pod without priority is nobody's victim", critical(1000, 0), file(big()), false),
        (
            "critical ones go by priority",
            with_priority(SYSTEM + 1000, wants()),
            with_priority(SYSTEM, big()),
            true,
        ),
        ("equals stay", critical(1000, 0), with_priority(SYSTEM, big()), false),
    ];
    for (said, incoming, victim, displaced) in cases {
        let mut bench = full(victim);
        bench.pod(&incoming);
        bench.run();
        assert_eq!(bench.phase(UID) == "Failed", displaced, "{said}");
        assert_eq!(bench.phase(CRITICAL) == "Running", displaced, "{said}");
    }
}

/// KEP-1287: a critical pod's growth displaces too; while it waits it is Deferred.
#[test]
fn a_critical_pods_resize_displaces() {
    let mut bench = Bench::booted(node());
    let before = critical(1000, 0);
    bench.pod(&before);
    bench.pod(&asking(UID, Burstable, 3000, 0));
    bench.run();
    bench.hold(verb("stop"));
    bench.pod(&edited(&before, |spec| {
        change(spec, "c0", |c| c.resources.requests = amounts(2000, 0));
    }));
    bench.run();
    assert_eq!(
        &*bench.condition(CRITICAL, ConditionKind::PodResizePending).expect("waits").reason,
        "Deferred"
    );
    bench.let_go();
    bench.run();
    assert_eq!(&*bench.status(UID).reason, "Preempting");
    assert_eq!(bench.allocated(CRITICAL, "c0").requests, amounts(2000, 0));
    assert!(bench.condition(CRITICAL, ConditionKind::PodResizePending).is_none());
}

#[test]
fn a_critical_pod_that_goes_away_gives_its_claim_up() {
    let mut bench = running(&[(Burstable, 4000, 0)]);
    bench.hold(verb("stop"));
    bench.pod(&critical(2000, 0));
    bench.run();
    bench.pod(&deleted(&critical(2000, 0), bench.now, 0));
    bench.let_go();
    bench.run();
    bench.pod(&asking(PodUid(2), Burstable, 4000, 0));
    bench.run();
    assert_eq!(bench.phase(PodUid(2)), "Running");
    assert!(bench.node.pod(CRITICAL).is_none());
}

/// The agent dies while it makes room: the claim and the victim's reason are in the record.
#[test]
fn preemption_survives_the_agent() {
    let mut bench = running(&[(Burstable, 4000, 0)]);
    bench.hold(verb("stop"));
    bench.pod(&critical(2000, 0));
    bench.run();
    bench.restart_agent();
    bench.sources_ready();
    bench.let_go();
    bench.run();
    bench.apply(Fact::Tick);
    bench.run();
    assert_eq!(&*bench.status(UID).reason, "Preempting");
    assert_eq!(bench.phase(CRITICAL), "Running");
}
