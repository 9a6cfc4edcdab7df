//! Mirror pods (kubelet-pods §3.7): what the API has in a static pod's place, from its making to its end.

use crate::kit::*;
use nodefold_core::anomaly::AnomalyKind;
use nodefold_core::command::Action;
use nodefold_core::event::{ErrorClass, Mirror, OpError};
use nodefold_core::ids::{PodUid, Source};
use nodefold_core::spec::{Pod, RestartPolicy};
use nodefold_core::time::Nanos;
use nodefold_core::{Command, Fact};

const NEXT: PodUid = PodUid(2);
const FIRST_MIRROR: PodUid = PodUid(MIRRORS.0 + 1);
const SECOND_MIRROR: PodUid = PodUid(MIRRORS.0 + 2);

fn of_file(uid: PodUid, policy: RestartPolicy) -> Pod {
    let pod = pod(uid, spec(policy, vec![], vec![container("c0")]));
    Pod { source: Source::File, name: name("etcd"), ..pod }
}

fn running() -> Bench {
    Bench::with(&of_file(UID, RestartPolicy::Always))
}

/// Creates and deletes of mirrors since a mark, and for which UID.
fn deeds(bench: &Bench, since: usize) -> Vec<(&'static str, PodUid)> {
    let is = |c: &&Command| matches!(c.action, Action::CreateMirror { .. } | Action::DeleteMirror { .. });
    bench.log[since..].iter().filter(is).map(|c| (c.action.verb(), c.pod)).collect()
}

/// The objects that statuses of a pod were sent to since a mark, each once.
fn told(bench: &Bench, since: usize, pod: PodUid) -> Vec<Option<PodUid>> {
    let sent = |c: &Command| match c.action {
        Action::PublishStatus { mirror, .. } if c.pod == pod => Some(mirror),
        _ => None,
    };
    let mut objects: Vec<_> = bench.log[since..].iter().filter_map(sent).collect();
    objects.dedup();
    objects
}

fn seen(uid: PodUid, of: PodUid, deleting: bool) -> Fact {
    let mirror = Mirror { uid, of, deleting };
    Fact::MirrorSeen { namespace: name("ns"), name: name("etcd"), mirror }
}

fn gone(mirror: PodUid) -> Fact {
    Fact::MirrorGone { namespace: name("ns"), name: name("etcd"), mirror }
}

#[test]
fn a_static_pod_is_shown_by_its_mirror_and_told_of_there() {
    let bench = running();
    assert_eq!(deeds(&bench, 0), [("create-mirror", UID)]);
    assert_eq!(told(&bench, 0, UID), [Some(FIRST_MIRROR)]);
    assert_eq!(bench.phase(UID), "Running");
}

#[test]
fn an_api_pod_has_none() {
    let bench = Bench::with(&mains(RestartPolicy::Always, 1));
    assert_eq!(deeds(&bench, 0), []);
    assert_eq!(told(&bench, 0, UID), [None]);
}

/// Until the API's list is in, an absent mirror may be there.
#[test]
fn none_is_made_before_the_list_is_in() {
    let mut bench = Bench::started(config());
    bench.run();
    bench.pod(&of_file(UID, RestartPolicy::Always));
    bench.apply(Fact::SourceReady { source: Source::File });
    bench.run();
    assert_eq!(bench.asked(0, &["start"]).len(), 1, "the pod runs all the same");
    assert_eq!(deeds(&bench, 0), []);
    bench.apply(seen(PodUid(77), UID, false));
    bench.apply(Fact::SourceReady { source: Source::Api });
    bench.run();
    assert_eq!(deeds(&bench, 0), [], "it was there");
    assert_eq!(told(&bench, 0, UID), [Some(PodUid(77))]);
}

#[test]
fn deleting_the_mirror_makes_a_new_one() {
    let mut bench = running();
    let mark = bench.mark();
    // A client's delete marks it; nobody but the node removes a bound pod's object.
    bench.apply(seen(FIRST_MIRROR, UID, true));
    bench.run();
    assert_eq!(deeds(&bench, mark), [("delete-mirror", FIRST_MIRROR), ("create-mirror", UID)]);
    assert_eq!(told(&bench, mark, UID), [Some(SECOND_MIRROR)], "the new one has no status yet");
    assert_eq!(bench.asked(mark, &["stop", "create", "start"]).len(), 0, "the pod itself is not touched");
    // The watch tells of the old one's end late.
    bench.apply(gone(FIRST_MIRROR));
    bench.run();
    assert_eq!(deeds(&bench, mark).len(), 2);
    // Removed by force, it is just gone.
    let mark = bench.mark();
    bench.apply(gone(SECOND_MIRROR));
    bench.run();
    assert_eq!(deeds(&bench, mark), [("create-mirror", UID)]);
}

#[test]
fn an_edited_manifest_is_another_pod_with_another_mirror() {
    let mut bench = running();
    let mark = bench.mark();
    bench.hold(verb("stop"));
    bench.remove_pod(UID);
    bench.pod(&of_file(NEXT, RestartPolicy::Always));
    bench.run();
    assert_eq!(deeds(&bench, mark), [], "the old one is shown until it has ended");
    bench.let_go();
    bench.run();
    assert_eq!(deeds(&bench, mark), [("delete-mirror", FIRST_MIRROR), ("create-mirror", NEXT)]);
    assert_eq!(told(&bench, mark, NEXT), [Some(SECOND_MIRROR)]);
}

#[test]
fn a_removed_file_takes_the_mirror_with_it_when_the_pod_has_ended() {
    let mut bench = running();
    let mark = bench.mark();
    bench.hold(verb("stop"));
    bench.remove_pod(UID);
    bench.run();
    assert_eq!(deeds(&bench, mark), []);
    // Its object goes meanwhile: it is not made anew for a pod that ends.
    bench.apply(gone(FIRST_MIRROR));
    bench.run();
    assert_eq!(deeds(&bench, mark), []);
    bench.apply(seen(SECOND_MIRROR, UID, false));
    bench.let_go();
    bench.run();
    assert_eq!(deeds(&bench, mark), [("delete-mirror", SECOND_MIRROR)]);
    assert!(bench.node.pod(UID).is_none());
}

/// B6: the same UID again is another life; the API would never let the old object leave its terminal phase.
#[test]
fn the_next_life_of_a_uid_gets_its_own_mirror() {
    let mut bench = running();
    bench.hold(verb("stop"));
    bench.remove_pod(UID);
    bench.run();
    bench.pod(&of_file(UID, RestartPolicy::Always));
    let mark = bench.mark();
    bench.let_go();
    bench.run();
    assert_eq!(deeds(&bench, mark), [("delete-mirror", FIRST_MIRROR), ("create-mirror", UID)]);
    assert_eq!(bench.phase(UID), "Running");
}

#[test]
fn a_mirror_of_nobody_goes() {
    let mut bench = Bench::started(config());
    bench.run();
    bench.apply(seen(PodUid(77), PodUid(5), false));
    bench.apply(Fact::SourceReady { source: Source::Api });
    bench.run();
    assert_eq!(deeds(&bench, 0), [], "the files are not known yet");
    bench.apply(Fact::SourceReady { source: Source::File });
    bench.run();
    assert_eq!(deeds(&bench, 0), [("delete-mirror", PodUid(77))]);
}

/// A kubelet shows nothing of a static pod that it refuses; here it is visible (L1).
#[test]
fn a_refused_static_pod_is_shown_too() {
    let mut config = config();
    config.node.allocatable = amounts(1000, GI);
    let mut bench = Bench::booted(config);
    let hungry = edited(&of_file(UID, RestartPolicy::Always), |spec| {
        change(spec, "c0", |c| c.resources.requests = amounts(2000, 0));
    });
    bench.pod(&hungry);
    bench.run();
    assert_eq!(bench.phase(UID), "Failed");
    assert_eq!(told(&bench, 0, UID), [Some(FIRST_MIRROR)]);
}

#[test]
fn one_that_ran_to_its_end_stays_shown_while_its_file_is_there() {
    let mut bench = Bench::with(&of_file(UID, RestartPolicy::Never));
    bench.exits(UID, "c0", 0);
    bench.run();
    assert_eq!(bench.phase(UID), "Succeeded");
    assert_eq!(deeds(&bench, 0), [("create-mirror", UID)]);
    bench.remove_pod(UID);
    bench.run();
    assert_eq!(deeds(&bench, 0), [("create-mirror", UID), ("delete-mirror", FIRST_MIRROR)]);
}

#[test]
fn a_refused_create_is_tried_again_with_back_off() {
    let mut bench = Bench::booted(config());
    bench.hold(verb("create-mirror"));
    bench.pod(&of_file(UID, RestartPolicy::Always));
    bench.run();
    let error = || OpError { class: ErrorClass::Final, reason: None, message: name("forbidden") };
    for failures in 1..=3u32 {
        let mark = bench.mark();
        let op = bench.take(verb("create-mirror")).op;
        let fact =
            Fact::MirrorFailed { op, pod: UID, namespace: name("ns"), name: name("etcd"), error: error() };
        bench.apply(fact);
        bench.run();
        assert_eq!(deeds(&bench, mark), [], "not at once");
        assert_eq!(bench.told(mark, "FailedMirror"), usize::from(failures == 1), "told once");
        bench.pass(Nanos::secs(1 << (failures - 1)));
        assert_eq!(deeds(&bench, mark), [("create-mirror", UID)], "after {failures} failures");
    }
    bench.let_go();
    bench.run();
    assert_eq!(told(&bench, 0, UID), [Some(FIRST_MIRROR)]);
}

#[test]
fn a_restart_keeps_the_mirror_and_tells_it_again() {
    let mut bench = running();
    let mark = bench.mark();
    bench.restart_agent();
    bench.run();
    bench.apply(seen(FIRST_MIRROR, UID, false));
    bench.sources_ready();
    bench.run();
    assert_eq!(deeds(&bench, mark), []);
    assert_eq!(told(&bench, mark, UID), [Some(FIRST_MIRROR)]);
    assert_eq!(bench.asked(mark, &["stop", "create", "start"]).len(), 0);
}

#[test]
fn an_answer_nobody_waits_for_changes_nothing() {
    let mut bench = running();
    let before = bench.node.anomalies().counts().get(&AnomalyKind::StaleCompletion).copied().unwrap_or(0);
    let mark = bench.mark();
    let op = nodefold_core::ids::OpId(1);
    bench.apply(Fact::MirrorDeleted { op, namespace: name("ns"), name: name("etcd"), mirror: FIRST_MIRROR });
    bench.run();
    assert_eq!(bench.node.anomalies().counts()[&AnomalyKind::StaleCompletion], before + 1);
    assert_eq!(deeds(&bench, mark), []);
}
