//! Shapes that public reports have and the twelve fragments don't: messages of other releases, headers of which something is
//! lost, what editors, pagers and consoles did to lines. Each is written anew after a report that was read, with names and ids of
//! our own; the verdict is what node-logs §5 makes of it.

use nodefold_replay::{Moment, Options, SECOND, judge, read_texts};
use std::path::Path;

// Where they were seen (K8s = kubernetes/kubernetes), those since the second sitting; lines that we added ourselves are named.
// cannot-find-volume-v120 K8s#100047, clean-end-v131 K8s#127339, cleanup-without-driver-no-header K8s#72500, configmap-left-v123 K8s#113987,
// cpu-policy-differs-fatal K8s#95041, csi-busy-in-quotes kubernetes-sigs/blob-csi-driver#474, describe-events-table K8s#120571,
// describe-rows-only K8s#94117, device-refs-cut-list K8s#94745, device-refs-redacted-handle kubernetes-sigs/aws-ebs-csi-driver#1264,
// device-refs-windows-v12 K8s#68608, driver-gone-wait juicedata/juicefs-csi-driver#1191, eviction-in-code-quotes K8s#41347,
// flexvolume-not-constructed K8s#73799, get-events-table K8s#110158, hook-failed-bracketed-collector K8s#39170,
// hook-took-the-whole-grace K8s#117373 (the runtime's last three lines are ours), kill-container-lost-quote containerd/containerd#6080,
// killing-what-is-gone openshift/origin#17011, mount-source-file-exists Alluxio/alluxio#15613, not-registered-once K8s#118497,
// observed-panic-journald K8s#123088, panic-in-events-v14 K8s#86722 (its last line is ours), recovered-panic-v11 K8s#19666 (its last
// line is ours), rejected-event-wrapped K8s#98180, runtime-restarted-under-stop K8s#115252, sandbox-stop-timed-out-gc
// containerd/containerd#7790, stop-timed-out-k3s k3s-io/k3s#2370, subpath-file-syslog K8s#106941, wait-v119-single-space K8s#103530,
// worker-uids-only K8s#109596. Written by us after the shapes that such reports have: described-kill-that-fails,
// described-wait-that-ended, e2e-console-events, message-lost-its-closing-quote, rebooted-host, restarted-runtime.
//
// The fourth sitting: added-and-removed-again-v14 K8s#33967, busy-token-renamed-v12 K8s#22911, chatter-of-one-second-v118
// K8s#90950, cinder-busy-v15 K8s#36983, cpu-policy-differs-systemd-v126 scylladb/scylla-operator#1265, cpu-policy-differs-talos
// siderolabs/talos#7504, cpu-state-line-cut-v114 K8s#79603, cpu-state-permission-denied-v118
// kelseyhightower/kubernetes-the-hard-way#580, data-file-gone-in-code-quotes yandex-cloud/k8s-csi-s3#117,
// data-file-gone-struck-through warm-metal/container-image-csi-driver#166, device-not-there-yet-v122 K8s#109142,
// device-refs-of-another-claim-v122 K8s#105323, events-after-kubelet-restart longhorn/longhorn#3815,
// events-of-a-namespace-staging hetznercloud/csi-driver#172, grepped-hollow-node CentaurusInfra/arktos#584,
// header-lost-its-date-v117 K8s#98520, illegal-phase-wrapped-v122 K8s#105382, mirror-pods-of-a-stopped-api-v120
// kubernetes/website#27188, months-in-french K8s#68885, mount-failed-wrapped-in-name K8s#116847, notready-once-each
// rancher/rke2#4775, one-goes-one-comes-syslog-v117 K8s#91914, orphan-between-another-log-rke2 rancher/rke2#2083,
// orphan-count-wrapped longhorn/longhorn#485, orphan-error-nil-v15 K8s#38498, orphan-gone-by-hand-v122 K8s#105536,
// panic-while-a-pod-ends-v15 K8s#39480 (its last four lines are ours), panic-with-files-only-v110 K8s#67752 (its last four
// lines are ours), phase-kept-terminal-v127 K8s#115331, pleg-wrapped-behind-two-stamps-v119 kubernetes/kubelet#21,
// rejected-pod-ends-well-v127 K8s#118497, remount-requested-v13 K8s#28999, renamed-again-and-again-v12 openshift/origin#8569,
// sandbox-gone-and-no-network-k3s k3s-io/k3s#497 (its last line is ours), sandbox-stop-killed-plugin projectcalico/calico#7647,
// static-begins-to-end-v125 K8s#113145, still-running-after-kill-v13 K8s#20497, terminated-while-device-has-refs-v127
// K8s#122342 (its last line is ours), torn-down-behind-a-forker deckhouse/deckhouse#336, two-running-in-crictl-ps-v136
// K8s#139670. Written by us after the source of 1.19: phase-back-without-a-pod-v119.

/// The report, its verdict, and how many pods and volumes are in view.
const REPORTS: &[(&str, &[&str], usize, usize)] = &[
    ("added-and-removed-again-v14", &[], 1, 0),
    ("busy-secret-v13-small-error", &["volume-unmount-failed"], 1, 1),
    ("busy-token-renamed-v12", &["orphaned-pod-dir"], 1, 1),
    ("cannot-find-volume-v120", &["container-start-without-volume"], 1, 1),
    ("chatter-of-one-second-v118", &[], 2, 0),
    ("checkpoint-error-cut-by-pager", &["checkpoint-corrupt", "kubelet-crash"], 0, 0),
    ("cinder-busy-v15", &["volume-unmount-failed"], 1, 1),
    ("clean-end-v131", &[], 1, 0),
    ("cleanup-without-driver-no-header", &["reconstruction-failed"], 1, 1),
    ("colours-and-windows-ends", &["orphaned-pod-dir"], 2, 0),
    ("configmap-left-v123", &["orphaned-pod-dir"], 1, 1),
    ("containerd-lost-escapes-newest-first", &["runtime-stop-stalled"], 0, 0),
    ("cpu-manager-checkpoint", &["checkpoint-corrupt"], 0, 0),
    ("cpu-policy-differs-fatal", &["checkpoint-corrupt"], 0, 0),
    ("cpu-policy-differs-systemd-v126", &["checkpoint-corrupt"], 0, 0),
    ("cpu-policy-differs-talos", &["checkpoint-corrupt"], 0, 0),
    ("cpu-state-line-cut-v114", &["checkpoint-corrupt"], 0, 0),
    ("cpu-state-permission-denied-v118", &["checkpoint-corrupt"], 0, 0),
    ("crio-day-long-stop-zones", &["runtime-stop-stalled"], 1, 0),
    ("csi-busy-in-quotes", &["volume-unmount-failed"], 1, 1),
    ("curly-quotes", &["volume-unmount-failed"], 1, 1),
    ("data-file-gone-in-code-quotes", &["volume-unmount-failed"], 1, 1),
    ("data-file-gone-struck-through", &["volume-unmount-failed"], 1, 1),
    ("describe-events-table", &["volume-wait-stuck"], 0, 1),
    ("describe-rows-only", &["volume-wait-stuck"], 0, 0),
    ("described-kill-that-fails", &["runtime-stop-stalled"], 1, 0),
    ("described-wait-that-ended", &[], 1, 1),
    ("device-not-there-yet-v122", &[], 1, 1),
    ("device-refs-cut-list", &["device-unmount-blocked"], 0, 1),
    ("device-refs-of-another-claim-v122", &["device-unmount-blocked"], 0, 1),
    ("device-refs-redacted-handle", &["device-unmount-blocked"], 0, 1),
    ("device-refs-windows-v12", &["device-unmount-blocked"], 0, 1),
    ("docker-names-v12", &[], 1, 0),
    ("docker-ps-without-head", &["sandbox-leak"], 1, 0),
    ("driver-gone-wait", &["volume-wait-stuck"], 1, 2),
    ("e2e-console-events", &["volume-wait-stuck"], 1, 1),
    ("events-after-kubelet-restart", &[], 1, 1),
    ("events-of-a-namespace-staging", &[], 1, 1),
    ("eviction-in-code-quotes", &[], 1, 0),
    ("flexvolume-not-constructed", &["reconstruction-failed"], 1, 1),
    ("found-running-after-restart", &["volume-unmounted-while-container-running"], 1, 1),
    ("get-events-table", &["volume-wait-stuck"], 1, 1),
    ("grepped-hollow-node", &[], 1, 0),
    ("header-lost-its-date-v117", &[], 1, 2),
    ("hook-failed-bracketed-collector", &[], 0, 0),
    ("hook-took-the-whole-grace", &["grace-period-exceeded"], 1, 0),
    ("illegal-phase-wrapped-v122", &["illegal-phase-transition"], 1, 0),
    ("impossible-volumes-v12", &["container-start-without-volume"], 1, 0),
    ("kill-container-lost-quote", &["runtime-stop-stalled"], 1, 0),
    ("kill-timed-out-newest-first", &["pod-stuck-terminating", "runtime-stop-stalled"], 1, 0),
    ("killing-what-is-gone", &[], 1, 0),
    ("message-lost-its-closing-quote", &["runtime-stop-stalled"], 1, 0),
    ("mirror-needs-its-own-api", &["restart-delayed"], 3, 0),
    ("mirror-pods-of-a-stopped-api-v120", &[], 2, 0),
    ("months-in-french", &[], 0, 0),
    ("mount-failed-wrapped-in-name", &[], 1, 1),
    ("mount-source-file-exists", &[], 1, 1),
    ("no-thread-in-header", &[], 1, 1),
    ("no-unmounter-floods", &["log-flood", "volume-unmount-failed"], 1, 1),
    ("not-registered-once", &[], 1, 1),
    ("notready-once-each", &[], 7, 0),
    ("observed-panic-journald", &["kubelet-crash"], 1, 1),
    ("one-goes-one-comes-syslog-v117", &[], 2, 1),
    ("operation-without-header", &["volume-unmount-failed"], 1, 1),
    ("orphan-between-another-log-rke2", &["orphaned-pod-dir"], 1, 1),
    ("orphan-count-wrapped", &["orphaned-pod-dir"], 1, 0),
    ("orphan-error-nil-v15", &["orphaned-pod-dir"], 3, 0),
    ("orphan-gone-by-hand-v122", &["orphaned-pod-dir"], 1, 0),
    ("orphan-loop-v12", &["orphaned-pod-dir"], 2, 2),
    ("orphan-removal-v13", &["orphaned-pod-dir"], 2, 2),
    ("orphan-without-any-header", &["orphaned-pod-dir"], 1, 0),
    ("orphans-v15-misspelt", &["orphaned-pod-dir"], 2, 0),
    ("override-alone", &["grace-period-exceeded"], 1, 0),
    ("panic-in-events-v14", &["kubelet-crash"], 0, 0),
    ("panic-while-a-pod-ends-v15", &["kubelet-crash"], 1, 1),
    ("panic-with-files-only-v110", &["kubelet-crash"], 0, 0),
    ("phase-back-without-a-pod-v119", &["illegal-phase-transition"], 0, 0),
    ("phase-kept-terminal-v127", &[], 1, 0),
    ("place-behind-syslog-stamp", &["runtime-stop-stalled"], 1, 0),
    ("pleg-wrapped-behind-two-stamps-v119", &[], 1, 0),
    ("pods-table-without-head", &["sandbox-leak"], 3, 0),
    ("rebooted-host", &[], 7, 0),
    ("recovered-panic-v11", &[], 1, 0),
    ("redacted-uids", &["volume-unmount-failed"], 0, 2),
    ("refreshed-secrets-v13", &[], 2, 2),
    ("rejected-event-wrapped", &["container-start-without-volume"], 1, 1),
    ("rejected-pod-ends-well-v127", &[], 1, 0),
    ("remount-requested-v13", &[], 2, 2),
    ("renamed-again-and-again-v12", &["orphaned-pod-dir"], 1, 1),
    ("restaged-and-deleted", &["pod-stuck-terminating", "restage-after-restart"], 1, 1),
    ("restarted-runtime", &["sandbox-changed"], 7, 0),
    ("runtime-restarted-under-stop", &[], 2, 0),
    ("sandbox-gone-and-no-network-k3s", &[], 1, 0),
    ("sandbox-stop-killed-plugin", &["runtime-stop-stalled"], 1, 0),
    ("sandbox-stop-timed-out-gc", &["runtime-stop-stalled"], 1, 0),
    ("static-back-after-failed-end", &["static-pod-replacement-blocked"], 2, 0),
    ("static-begins-to-end-v125", &[], 1, 0),
    ("static-blocked-by-unmounting-life", &["static-pod-replacement-blocked"], 2, 0),
    ("static-file-replaced-mid-mount", &["static-pod-replacement-blocked"], 6, 1),
    ("static-lives-by-ids", &["duplicate-container"], 2, 0),
    ("still-running-after-kill-v13", &[], 1, 0),
    ("stop-timed-out-k3s", &["runtime-stop-stalled"], 0, 0),
    ("subpath-file-syslog", &["orphaned-pod-dir"], 1, 1),
    ("terminated-while-device-has-refs-v127", &["device-unmount-blocked"], 1, 1),
    ("torn-down-behind-a-forker", &[], 1, 1),
    ("two-running-in-crictl-ps-v136", &["duplicate-container"], 1, 0),
    ("wait-v119-single-space", &["volume-wait-stuck"], 1, 1),
    ("waits-for-unmount", &["pod-stuck-terminating"], 1, 0),
    ("worker-uids-only", &[], 2, 0),
    ("wrapped-at-blanks", &["volume-wait-stuck"], 1, 2),
    ("wrapped-inside-first-words", &[], 1, 1),
];

#[test]
fn every_report_gets_its_verdict_and_no_other() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports");
    let options = Options { year: None, now: Moment(1_796_086_800 * SECOND) };
    let mut wrong: Vec<String> = Vec::new();
    for (name, verdict, pods, volumes) in REPORTS {
        let text = std::fs::read(dir.join(name).with_extension("log")).expect("a report");
        let trace = read_texts([("kubelet.log", &text[..])], &options);
        let report = judge(&trace);
        let (kinds, counts) = (report.kinds(), (trace.pod_count(), trace.volume_count()));
        if kinds != *verdict || counts != (*pods, *volumes) {
            wrong.push(format!("{name}: {kinds:?} {counts:?} {:#?} {:#?}", report.findings, trace.pods));
        }
        assert!(!trace.entries.is_empty(), "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let files = std::fs::read_dir(dir).expect("the reports").count();
    assert_eq!(files, REPORTS.len(), "each report is expected to say something");
}

#[test]
fn a_stamp_in_the_message_serves_where_the_header_is_lost() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports");
    let text = std::fs::read(dir.join("operation-without-header.log")).expect("a report");
    let options = Options { year: None, now: Moment(1_796_086_800 * SECOND) };
    let trace = read_texts([("kubelet.log", &text[..])], &options);
    assert_eq!(trace.clock(&trace.entries[0]), "2017-07-19 08:20:18.392795");
}
