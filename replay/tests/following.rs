//! The core follows recordings of a real node: what it is given folds again, the same each time, and where it would have done
//! otherwise is known.

mod support;

use nodefold_core::Node;
use nodefold_core::command::Commands;
use nodefold_replay::{Side, follow};
use support::{FILES, Recording};

#[test]
fn what_the_core_was_given_folds_again_to_the_same() {
    for recording in Recording::all().iter().filter(|r| !r.name.starts_with("17")) {
        for files in [&FILES[..], &["kubelet.log"]] {
            let trace = recording.trace(files);
            let followed = follow(&trace);
            assert!(!followed.events.is_empty(), "{}", recording.name);
            let digest = || {
                let mut node = Node::new(followed.config.clone());
                let mut out = Commands::default();
                for event in &followed.events {
                    out.clear();
                    node.apply(event, &mut out);
                }
                node.digest()
            };
            assert_eq!(digest(), digest(), "{}", recording.name);
            let times: Vec<u64> = followed.events.iter().map(|e| e.at.0).collect();
            assert!(times.is_sorted(), "{}", recording.name);
        }
    }
}

/// In the ten stories the core does what the kubelet did, and the kubelet what the core does.
#[test]
fn the_core_and_the_kubelet_do_the_same_in_the_ten_stories() {
    for recording in Recording::all().iter().filter(|r| !r.name.starts_with("17")) {
        for files in [&FILES[..], &["kubelet.log", "watch.jsonl"]] {
            let partings = follow(&recording.trace(files)).partings;
            assert!(partings.is_empty(), "{} with {files:?}: {partings:#?}", recording.name);
        }
    }
}

/// In the churn the kubelet started two containers for pods that were gone (S7): the core would not have.
#[test]
fn the_core_would_not_have_started_what_the_churn_started_too_late() {
    let recording = Recording::open("17-churn-4-minutes");
    let trace = recording.trace(&FILES);
    let partings = follow(&trace).partings;
    for pod in ["default/p0", "default/p37"] {
        let late = partings.iter().find(|p| {
            p.side == Side::Node && p.what == "start container app" && trace.pod_name(p.pod) == pod
        });
        assert!(late.is_some(), "{pod}: {partings:#?}");
    }
}
