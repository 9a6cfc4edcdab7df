//! Conformance of the core's volume side: the cases of `reference/kubelet-volumes.md` §4 by number, D1 to D18 of its
//! §6.1, and what KEP-6395 and KEP-5972 ask of a node (DESIGN §4). Each test carries the number of its case.
#![allow(clippy::wildcard_enum_match_arm, reason = "a test looks for one variant among many")]

#[allow(dead_code, reason = "shared with the property tests, which use the rest of it")]
mod bench;
mod dynamic;
mod gates;
#[path = "../common/host.rs"]
mod host;
mod kep5972;
mod kep6395;
mod kit;
mod mount_state;
mod operations;
mod restart;
mod words;

/// Cases of §4 that don't concern this core, each with the reason. All others are tested here, or in `agent/`.
const NOT_APPLICABLE: &[(u32, &str)] = &[
    (6, "a filesystem expanded on the node is a persistent volume's: they come in a room of their own"),
    (7, "a device mounted once for several pods is a persistent volume's"),
    (9, "attaching belongs to persistent volumes"),
    (11, "detaching belongs to persistent volumes"),
    (19, "attach state asked of the API belongs to persistent volumes"),
    (26, "attachability belongs to persistent volumes"),
    (27, "ephemeral claims belong to persistent volumes"),
    (28, "block and filesystem volume modes belong to persistent volumes"),
    (
        30,
        "one claim under two names belongs to persistent volumes: a node-local volume is private to its name",
    ),
    (32, "operations are known by id: nothing is looked up by a key that matches loosely"),
    (
        36,
        "no container start waits for all volumes at once, so there is no wait to fail: volumeStatuses tells each",
    ),
    (37, "a fold has no context to cancel: an operation ends with a fact"),
    (39, "what is a mountpoint is seen by the executor and arrives as an observation"),
    (42, "mount options are the executor's"),
    (51, "there is no hook to count: modes and the group are given to each file as it is written"),
    (
        55,
        "a sub path is bound through a descriptor: nothing of it lies in a pod's directory, to be cleaned up",
    ),
    (59, "CSI belongs to persistent volumes"),
    (60, "CSI belongs to persistent volumes"),
    (61, "CSI belongs to persistent volumes"),
    (62, "expansion belongs to persistent volumes"),
    (64, "plugin registration belongs to CSI"),
];

/// How many cases §4 has.
const CASES: u32 = 64;

#[test]
fn every_case_is_tested_or_listed_with_its_reason() {
    let sources = [
        include_str!("mount_state.rs"),
        include_str!("restart.rs"),
        include_str!("operations.rs"),
        // What is the executor's is tested on a real host.
        include_str!("../../../agent/tests/cases.rs"),
        include_str!("../../../agent/tests/volumes.rs"),
        include_str!("../../../agent/src/credentials/mod.rs"),
    ];
    let mut tested: Vec<u32> = sources.iter().flat_map(|text| numbers(text)).collect();
    tested.sort();
    tested.dedup();
    for number in 1..=CASES {
        let listed = NOT_APPLICABLE.iter().any(|(n, _)| *n == number);
        let is_tested = tested.contains(&number);
        assert!(listed || is_tested, "case {number} is neither tested nor listed");
        assert!(!(listed && is_tested), "case {number} is both tested and listed as not applicable");
    }
    assert!(NOT_APPLICABLE.iter().all(|(n, reason)| (1..=CASES).contains(n) && !reason.is_empty()));
}

/// The numbers of the tests of a file: each is named `case_NN_...`, or `cases_NN_NN_...` for a table of several.
fn numbers(text: &str) -> Vec<u32> {
    let names = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn case"));
    names.flat_map(|name| name.split('_').map_while(number).collect::<Vec<_>>()).flatten().collect()
}

/// A part of a test's name: the empty or plural beginning, or a number; `None` where words begin.
fn number(part: &str) -> Option<Option<u32>> {
    match part {
        "" | "s" => Some(None),
        digits => digits.parse().ok().map(Some),
    }
}
