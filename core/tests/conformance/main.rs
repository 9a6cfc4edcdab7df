//! The 104 numbered cases of `reference/kubelet-pods.md` §5 against the production core. Each table carries the numbers;
//! those that don't apply are listed here with the reason.
#![allow(clippy::expect_used, clippy::wildcard_enum_match_arm)]

mod action_row;
mod actions;
mod allocation;
#[path = "../common/host.rs"]
mod host;
mod kit;
mod lifecycle;
mod mirror;
mod phase;
mod preemption;
mod races;
mod resize;
mod terminate;

/// Cases that a fold over a journal has nothing to decide about.
const NOT_APPLICABLE: &[(u32, &str)] = &[(
    28,
    "checkpoint versions: the journal is what survives, its record and snapshot versions are tested with it (DESIGN §8)",
)];

/// Parts of tested cases that don't apply.
const NOT_APPLICABLE_IN_PART: &[(u32, &str)] = &[
    (
        27,
        "kubelet_pod_deferred_resize_accepted_total: a metric is a driver's; the one event per resize is tested",
    ),
    (89, "a `Create` for an orphan: an orphan has no spec and no source, so nothing could ask for one"),
    (
        104,
        "phases Unknown and garbage: status is never read back but for a terminal phase (DESIGN §4 rule 8)",
    ),
];

#[test]
fn every_number_is_tested_or_listed_with_a_reason() {
    let tested: Vec<u32> = [
        allocation::numbers(),
        actions::numbers(),
        resize::numbers(),
        lifecycle::numbers(),
        phase::numbers(),
        terminate::numbers(),
    ]
    .concat();
    for number in 1..=104 {
        let listed = NOT_APPLICABLE.iter().any(|(n, reason)| *n == number && !reason.is_empty());
        assert!(tested.contains(&number) != listed, "case {number} is neither tested nor listed, or both");
    }
    assert!(tested.iter().all(|n| (1..=104).contains(n)), "a number that the sheet doesn't have");
    assert!(NOT_APPLICABLE_IN_PART.iter().all(|(n, _)| tested.contains(n)), "in part, so tested");
}
