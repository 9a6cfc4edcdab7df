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

/// The report, its verdict, and how many pods and volumes are in view.
const REPORTS: &[(&str, &[&str], usize, usize)] = &[
    ("busy-secret-v13-small-error", &["volume-unmount-failed"], 1, 1),
    ("cannot-find-volume-v120", &["container-start-without-volume"], 1, 1),
    ("checkpoint-error-cut-by-pager", &["checkpoint-corrupt", "kubelet-crash"], 0, 0),
    ("clean-end-v131", &[], 1, 0),
    ("cleanup-without-driver-no-header", &["reconstruction-failed"], 1, 1),
    ("colours-and-windows-ends", &["orphaned-pod-dir"], 2, 0),
    ("configmap-left-v123", &["orphaned-pod-dir"], 1, 1),
    ("containerd-lost-escapes-newest-first", &["runtime-stop-stalled"], 0, 0),
    ("cpu-manager-checkpoint", &["checkpoint-corrupt"], 0, 0),
    ("cpu-policy-differs-fatal", &["checkpoint-corrupt"], 0, 0),
    ("crio-day-long-stop-zones", &["runtime-stop-stalled"], 1, 0),
    ("csi-busy-in-quotes", &["volume-unmount-failed"], 1, 1),
    ("curly-quotes", &["volume-unmount-failed"], 1, 1),
    ("describe-events-table", &["volume-wait-stuck"], 0, 1),
    ("describe-rows-only", &["volume-wait-stuck"], 0, 0),
    ("described-kill-that-fails", &["runtime-stop-stalled"], 1, 0),
    ("described-wait-that-ended", &[], 1, 1),
    ("device-refs-cut-list", &["device-unmount-blocked"], 0, 1),
    ("device-refs-redacted-handle", &["device-unmount-blocked"], 0, 1),
    ("device-refs-windows-v12", &["device-unmount-blocked"], 0, 1),
    ("docker-names-v12", &[], 1, 0),
    ("docker-ps-without-head", &["sandbox-leak"], 1, 0),
    ("driver-gone-wait", &["volume-wait-stuck"], 1, 2),
    ("e2e-console-events", &["volume-wait-stuck"], 1, 1),
    ("eviction-in-code-quotes", &[], 1, 0),
    ("flexvolume-not-constructed", &["reconstruction-failed"], 1, 1),
    ("found-running-after-restart", &["volume-unmounted-while-container-running"], 1, 1),
    ("get-events-table", &["volume-wait-stuck"], 1, 1),
    ("hook-failed-bracketed-collector", &[], 0, 0),
    ("hook-took-the-whole-grace", &["grace-period-exceeded"], 1, 0),
    ("impossible-volumes-v12", &["container-start-without-volume"], 1, 0),
    ("kill-container-lost-quote", &["runtime-stop-stalled"], 1, 0),
    ("kill-timed-out-newest-first", &["pod-stuck-terminating", "runtime-stop-stalled"], 1, 0),
    ("killing-what-is-gone", &[], 1, 0),
    ("message-lost-its-closing-quote", &["runtime-stop-stalled"], 1, 0),
    ("mirror-needs-its-own-api", &["restart-delayed"], 3, 0),
    ("mount-source-file-exists", &[], 1, 1),
    ("no-thread-in-header", &[], 1, 1),
    ("no-unmounter-floods", &["log-flood", "volume-unmount-failed"], 1, 1),
    ("not-registered-once", &[], 1, 1),
    ("observed-panic-journald", &["kubelet-crash"], 1, 1),
    ("operation-without-header", &["volume-unmount-failed"], 1, 1),
    ("orphan-loop-v12", &["orphaned-pod-dir"], 2, 2),
    ("orphan-removal-v13", &["orphaned-pod-dir"], 2, 2),
    ("orphan-without-any-header", &["orphaned-pod-dir"], 1, 0),
    ("orphans-v15-misspelt", &["orphaned-pod-dir"], 2, 0),
    ("override-alone", &["grace-period-exceeded"], 1, 0),
    ("panic-in-events-v14", &["kubelet-crash"], 0, 0),
    ("place-behind-syslog-stamp", &["runtime-stop-stalled"], 1, 0),
    ("pods-table-without-head", &["sandbox-leak"], 3, 0),
    ("rebooted-host", &[], 7, 0),
    ("recovered-panic-v11", &[], 1, 0),
    ("redacted-uids", &["volume-unmount-failed"], 0, 2),
    ("refreshed-secrets-v13", &[], 2, 2),
    ("rejected-event-wrapped", &["container-start-without-volume"], 1, 1),
    ("restaged-and-deleted", &["pod-stuck-terminating", "restage-after-restart"], 1, 1),
    ("restarted-runtime", &["sandbox-changed"], 7, 0),
    ("runtime-restarted-under-stop", &[], 2, 0),
    ("sandbox-stop-timed-out-gc", &["runtime-stop-stalled"], 1, 0),
    ("static-back-after-failed-end", &["static-pod-replacement-blocked"], 2, 0),
    ("static-blocked-by-unmounting-life", &["static-pod-replacement-blocked"], 2, 0),
    ("static-file-replaced-mid-mount", &["static-pod-replacement-blocked"], 6, 1),
    ("static-lives-by-ids", &["duplicate-container"], 2, 0),
    ("stop-timed-out-k3s", &["runtime-stop-stalled"], 0, 0),
    ("subpath-file-syslog", &["orphaned-pod-dir"], 1, 1),
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
