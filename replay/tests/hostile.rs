//! Hostile bytes: no panic in any importer, and time that grows with the input, not with its square.

use nodefold_replay::{Moment, Options, SECOND, follow, judge, judge_texts, read_texts};
use proptest::prelude::*;

fn options() -> Options {
    Options { year: None, now: Moment(1_796_086_800 * SECOND) }
}

/// Reads, judges, tells and follows: all that a caller may do.
fn all(text: &[u8]) {
    let trace = read_texts([("x", text)], &options());
    let report = judge(&trace);
    assert!(report.to_json(&trace).is_object());
    for entry in &trace.entries {
        assert!(!trace.describe(entry).is_empty() && !trace.clock(entry).is_empty());
    }
    follow(&trace);
    // And judges while reading, forgetting whatever can be.
    if let Some((trace, report)) = judge_texts(&[("x", text)], &options(), 1) {
        assert!(report.to_json(&trace).is_object());
    }
}

/// Lines of every importer, to be cut, mixed and spoilt.
const SEEDS: &[&str] = &[
    r#"I0316 04:31:21.080604     202 kubelet.go:2474] "SyncLoop ADD" source="api" pods=["ns/a","ns/b"]"#,
    r#"I0316 04:31:21.226531 202 reconciler_common.go:251] "operationExecutor.MountVolume started for volume \"t\" (UniqueName: \"kubernetes.io/secret/a5f5f6fa-b968-4d32-395c-641f95a3f7a8-t\") pod \"a\" (UID: \"a5f5f6fa-b968-4d32-395c-641f95a3f7a8\") " pod="ns/a""#,
    r#"E0316 04:31:21.226531 202 nestedpendingoperations.go:335] Operation for "{volumeName:data podName:fdc3e5be-94d7-4138-71ca-c08d138eddf7 nodeName:}" failed. No retries permitted until 2024-03-12 00:29:02.482017035 -0700 -07 m=+1.79 (durationBeforeRetry 500ms). Error: UnmountVolume.TearDown failed for volume "" (UniqueName: "data") : x"#,
    r#"I0603 20:39:37.908557    3033 kubelet.go:1913] SyncLoop (DELETE, "api"): "a_default(f301b4a0-fff1-11ea-4b50-700dfae2f67d)""#,
    r#"I0603 20:39:46.882663 3033 kubelet.go:1942] SyncLoop (PLEG): "a_default(f301b4a0-fff1-11ea-4b50-700dfae2f67d)", event: &pleg.PodLifecycleEvent{ID:"f301b4a0-fff1-11ea-4b50-700dfae2f67d", Type:"ContainerDied", Data:"53fe985c6afe2608d3ca58a80e8c9024982feb34773faba3a089baadeef5d9c8"}"#,
    r#"{"ts":1655581336241.7104,"caller":"topologymanager/scope.go:110","msg":"RemoveContainer","v":0,"containerID":"a7c21f7c406234150f14de3b335cd07518b56209f33e3f44a3c1358504ebdc6c"}"#,
    r#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"ns","uid":"a5f5f6fa-b968-4d32-395c-641f95a3f7a8","creationTimestamp":"2025-03-16T04:31:20Z"},"spec":{"containers":[{"name":"c","image":"i"}]}}}"#,
    r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"x","stage":"ResponseComplete","verb":"delete","objectRef":{"resource":"pods","namespace":"ns","name":"a"},"stageTimestamp":"2025-03-16T04:31:20.1Z","requestObject":{"gracePeriodSeconds":0}}"#,
    r#"{"__REALTIME_TIMESTAMP":"1742099481000000","SYSLOG_IDENTIFIER":"kubelet","_PID":"1","MESSAGE":[73,48]}"#,
    r#"{"log":"I0316 04:31:21.080604 202 x.go:1] y\n","stream":"stderr","time":"2025-03-16T04:31:21Z"}"#,
    r#"Nov 29 18:13:10 n containerd[2506]: time="2024-11-29T18:13:10.764041708Z" level=info msg="RunPodSandbox for &PodSandboxMetadata{Name:w,Uid:792b1de0-a85d-493c-2c7b-e3c2a5f7d61a,Namespace:d,Attempt:0,} returns sandbox id \"a5bc2085e0517e9b271ad393dfe4056bb4c66d53c007ccffcd2398768d9b93de\"""#,
    r#"4月 11 22:52:11 w crio[6968]: time="2024-04-11 22:52:11.300910807+08:00" level=info msg="Stopping pod sandbox: 732a782be3422cda36951d7e1c044bdd78cf3f83f18f4b733735882f5839a92f" id=f9"#,
    r#"2026-11-30 18:51:14.575656179 +0000 UTC k8s.io /tasks/exit {"container_id":"7bf9887fdb0d4f93d237da6000a3a18feb6b18e124df6e16aa459f95e2e8d4e8","id":"7bf9887fdb0d4f93d237da6000a3a18feb6b18e124df6e16aa459f95e2e8d4e8","exited_at":"2026-11-30T18:51:14.575610181Z"}"#,
    r#"{"at": "2026-11-30T18:49:56.111854Z", "mountinfo": ["43 64 0:40 / /var/lib/kubelet/pods/6297d6da-e2cb-4dff-adce-26100f7c665e/volumes/kubernetes.io~secret/sec rw - tmpfs tmpfs rw"]}"#,
    "43 64 0:40 / /var/lib/kubelet/pods/6297d6da-e2cb-4dff-adce-26100f7c665e/volumes/kubernetes.io~secret/sec rw shared:2 - tmpfs tmpfs rw",
    "CONTAINER           IMAGE               CREATED             STATE               NAME                ATTEMPT             POD ID              POD\n7bf9887fdb0d4       sha256:ac2140       2 minutes ago       Running             app                 0                   a08070ee90d14       web",
    r#"{"data":"{\"entries\":{\"a5f5f6fa-b968-4d32-395c-641f95a3f7a8\":{}}}","checksum":1}"#,
    "__CURSOR=c\n__REALTIME_TIMESTAMP=1742099481000000\nSYSLOG_IDENTIFIER=kubelet\nMESSAGE=I0316 04:31:21.080604 202 x.go:1] y\n",
    "   Active: active (running) since Mon 2022-10-24 06:37:00 UTC; 1min 11s ago",
    "panic: x\n\ngoroutine 1 [running]:\n\tk8s.io/x.go:1 +0x1",
    "2024-12-20T04:51:19.752570988Z stderr P I0316 04:31:21.0806",
    "<34>1 2024-12-20T04:51:19Z h kubelet 7 - - x",
];

fn spoilt() -> impl Strategy<Value = Vec<u8>> {
    let piece =
        (0..SEEDS.len(), any::<u16>(), any::<u16>(), prop::collection::vec(any::<u8>(), 0..12), 0..6u8);
    prop::collection::vec(piece, 1..12).prop_map(|pieces| {
        let mut out = Vec::new();
        for (seed, a, b, noise, how) in pieces {
            let text = SEEDS[seed].as_bytes();
            let (a, b) = (usize::from(a) % text.len(), usize::from(b) % text.len());
            let (from, to) = (a.min(b), a.max(b));
            match how {
                0 => out.extend_from_slice(text),
                1 => out.extend_from_slice(&text[..to]),
                2 => out.extend_from_slice(&text[from..]),
                3 => {
                    out.extend_from_slice(&text[..from]);
                    out.extend_from_slice(&noise);
                    out.extend_from_slice(&text[to..]);
                }
                4 => {
                    out.extend_from_slice(&text[..to]);
                    out.extend_from_slice(&text[from..]);
                }
                _ => out.extend_from_slice(&noise),
            }
            if how != 4 {
                out.push(b'\n');
            }
        }
        out
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn spoilt_lines_never_panic(text in spoilt()) {
        all(&text);
    }

    #[test]
    fn any_bytes_never_panic(text in prop::collection::vec(any::<u8>(), 0..400)) {
        all(&text);
    }
}

#[test]
fn seeds_are_understood() {
    for seed in SEEDS {
        let trace = read_texts([("x", seed.as_bytes())], &options());
        let known = trace.is_recognised()
            || seed.contains("Active:")
            || seed.contains(" P ")
            || seed.starts_with('<')
            || seed.contains("[73,48]");
        assert!(known, "{seed}");
    }
}

/// Sizes that would take minutes if anything were quadratic; each takes a moment.
#[test]
fn large_inputs_are_read_in_linear_time() {
    let megabyte = "x".repeat(1 << 20);
    all(format!("I0316 04:31:21.080604     202 kubelet.go:1] {megabyte}").as_bytes());
    all(format!("I0316 04:31:21.080604     202 kubelet.go:1] \"{megabyte}").as_bytes());
    all(format!(
        "I0316 04:31:21.080604     202 kubelet.go:1] \"Error syncing pod, skipping\" err=\"{}\"",
        "\\\"".repeat(1 << 19)
    )
    .as_bytes());
    all(format!(
        "I0316 04:31:21.080604     202 kubelet.go:1] \"SyncLoop ADD\" source=\"api\" pods=[{}]",
        "\"n/p\",".repeat(20_000)
    )
    .as_bytes());
    all("]".repeat(1 << 20).as_bytes());
    all("I0316 ".repeat(1 << 17).as_bytes());
    all("{".repeat(1 << 20).as_bytes());
    all("{\"a\":".repeat(1 << 18).as_bytes());
    all("[\n".repeat(1 << 18).as_bytes());
    all("\n".repeat(1 << 20).as_bytes());
    all("12345: ".repeat(1 << 17).as_bytes());
    all("I0316 04:31:21.080604 202 a.go:1] x\n".repeat(100_000).as_bytes());
    // A record that goes on and on, and records of one stamp by the thousand.
    all(format!(
        "E0316 04:31:21.080604 202 a.go:1] Operation for \"x\" failed.\n{}",
        " with error\n".repeat(100_000)
    )
    .as_bytes());
    let line = "I0316 04:31:21.080604 202 kubelet.go:1] \"SyncLoop DELETE\" source=\"api\" pods=[\"ns/a\"]\n";
    all(line.repeat(20_000).as_bytes());
    let many: String = (0..20_000).map(|n| line.replace("ns/a", &format!("ns/p{n}"))).collect();
    all(many.as_bytes());
}

#[test]
fn what_fuzzing_found_is_judged_while_reading_too() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/importers");
    let mut read = 0;
    for entry in std::fs::read_dir(corpus).expect("the corpus") {
        all(&std::fs::read(entry.expect("an entry").path()).expect("a file"));
        read += 1;
    }
    assert!(read > 10, "{read}");
}
