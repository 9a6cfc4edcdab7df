//! A node's log of any length: pods that come, run, end and go, one after the other, as a kubelet of 1.32 tells it.
#![allow(dead_code, reason = "each test file uses what it needs")]

use std::fmt::Write;

/// A log of so many pods' lives, five seconds apart. Every fortieth loses its volume while it runs; every third has a name that others
/// had before it.
pub fn kubelet(lives: u32) -> String {
    let mut lines: Vec<(u64, String)> = Vec::new();
    for i in 0..lives {
        let uid = format!("{i:08x}-1c5b-4c2f-9a55-{:012x}", u64::from(i) * 7919);
        let (sandbox, id) =
            (format!("{:064x}", u128::from(i) * 2 + 1), format!("{:064x}", u128::from(i) * 2 + 2));
        let name = if i % 3 == 0 { format!("db-{}", i % 60) } else { format!("web-{i:x}") };
        let volume = format!(
            r#"volume \"data\" (UniqueName: \"kubernetes.io/empty-dir/{uid}-data\") pod \"{name}\" (UID: \"{uid}\") " pod="ns/{name}""#
        );
        let unmount = format!(
            r#"volume "kubernetes.io/empty-dir/{uid}-data" (OuterVolumeSpecName: "data") pod "{uid}" (UID: "{uid}"). InnerVolumeSpecName "data". PluginName "kubernetes.io/empty-dir", VolumeGIDValue """#
        );
        let event = |what: &str, of: &str| {
            format!(
                r#"kubelet.go:2752] "SyncLoop (PLEG): event for pod" pod="ns/{name}" event={{"ID":"{uid}","Type":"{what}","Data":"{of}"}}"#
            )
        };
        let early = i % 40 == 7;
        let at = |ms: u64| u64::from(i) * 5000 + ms;
        for (ms, text) in [
            (0, format!(r#"kubelet.go:2724] "SyncLoop ADD" source="api" pods=["ns/{name}"]"#)),
            (
                40,
                format!(
                    r#"reconciler_common.go:251] "operationExecutor.VerifyControllerAttachedVolume started for {volume}"#
                ),
            ),
            (140, format!(r#"operation_generator.go:617] "MountVolume.SetUp succeeded for {volume}"#)),
            (900, event("ContainerStarted", &id)),
            (901, event("ContainerStarted", &sandbox)),
            (20_000, format!(r#"kubelet.go:2740] "SyncLoop DELETE" source="api" pods=["ns/{name}"]"#)),
            (
                20_010,
                format!(
                    r#"kuberuntime_container.go:915] "Killing container with a grace period" pod="ns/{name}" podUID="{uid}" containerName="app" containerID="containerd://{id}" gracePeriod=30"#
                ),
            ),
            (
                if early { 20_100 } else { 27_300 },
                format!("operation_generator.go:782] UnmountVolume.TearDown succeeded for {unmount}"),
            ),
            (26_000, event("ContainerDied", &id)),
            (26_001, event("ContainerDied", &sandbox)),
            (
                27_400,
                format!(
                    r#"reconciler_common.go:299] "Volume detached for volume \"data\" (UniqueName: \"kubernetes.io/empty-dir/{uid}-data\") on node \"n\" DevicePath \"\"""#
                ),
            ),
            (28_000, format!(r#"kubelet.go:2734] "SyncLoop REMOVE" source="api" pods=["ns/{name}"]"#)),
        ] {
            lines.push((at(ms), text));
        }
    }
    lines.sort_by_key(|(ms, _)| *ms);
    let mut log = String::new();
    for (ms, text) in lines {
        let (day, of_day) = (ms / 86_400_000, ms % 86_400_000);
        let (s, ms) = (of_day / 1000, of_day % 1000);
        let _ = writeln!(
            log,
            "I03{:02} {:02}:{:02}:{:02}.{ms:03}000     777 {text}",
            1 + day,
            s / 3600,
            s / 60 % 60,
            s % 60
        );
    }
    log
}

/// What the runtime's log says of the same pods.
pub fn runtime(lives: u32) -> String {
    let mut lines: Vec<(u64, String)> = Vec::new();
    for i in 0..lives {
        let (sandbox, id) =
            (format!("{:064x}", u128::from(i) * 2 + 1), format!("{:064x}", u128::from(i) * 2 + 2));
        let at = |ms: u64| u64::from(i) * 5000 + ms;
        lines
            .push((at(700), format!(r#"level=info msg="StartContainer for \"{id}\" returns successfully""#)));
        lines.push((
            at(20_020),
            format!(r#"level=info msg="StopContainer for \"{id}\" with timeout 30 (s)""#),
        ));
        lines.push((
            at(25_500),
            format!(r#"level=info msg="StopContainer for \"{id}\" returns successfully""#),
        ));
        lines.push((at(25_600), format!(r#"level=info msg="StopPodSandbox for \"{sandbox}\"""#)));
        lines.push((
            at(25_700),
            format!(r#"level=info msg="StopPodSandbox for \"{sandbox}\" returns successfully""#),
        ));
    }
    lines.sort_by_key(|(ms, _)| *ms);
    let mut log = String::new();
    for (ms, text) in lines {
        let (day, of_day) = (ms / 86_400_000, ms % 86_400_000);
        let (s, ms) = (of_day / 1000, of_day % 1000);
        let _ = writeln!(
            log,
            r#"time="2025-03-{:02}T{:02}:{:02}:{:02}.{ms:03}000000Z" {text}"#,
            1 + day,
            s / 3600,
            s / 60 % 60,
            s % 60
        );
    }
    log
}
