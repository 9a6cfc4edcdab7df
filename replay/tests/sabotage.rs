//! Planted faults: a saboteur edits a recording as a bug would have made it, and the judge must find it, by the right
//! kind. Every deed is tried on every recording that it can be done to.

mod support;

use nodefold_replay::judge;
use std::collections::BTreeMap;
use support::{FILES, Recording};

/// Microseconds since midnight of a klog line.
fn micros(line: &str) -> Option<i64> {
    let t = line.get(6..21)?;
    if !line.starts_with(['I', 'W', 'E']) || t.as_bytes().get(2) != Some(&b':') {
        return None;
    }
    let part = |r: std::ops::Range<usize>| t.get(r).and_then(|p| p.parse::<i64>().ok());
    Some((part(0..2)? * 3600 + part(3..5)? * 60 + part(6..8)?) * 1_000_000 + part(9..15)?)
}

/// The line at another time.
fn at(line: &str, micros: i64) -> String {
    let s = micros / 1_000_000;
    format!(
        "{}{:02}:{:02}:{:02}.{:06}{}",
        &line[..6],
        s / 3600,
        s / 60 % 60,
        s % 60,
        micros % 1_000_000,
        &line[21..]
    )
}

fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let rest = &line[line.find(&format!("{key}=\""))? + key.len() + 2..];
    rest.split('"').next()
}

fn after<'a>(line: &'a str, words: &str) -> Option<&'a str> {
    Some(&line[line.find(words)? + words.len()..])
}

fn klog(recording: &Recording) -> Vec<String> {
    recording.text("kubelet.log").lines().map(str::to_owned).collect()
}

/// A container that lived and was stopped in one recording: what the log says of it.
#[derive(Clone, Debug)]
struct Victim {
    pod: String,
    uid: String,
    id: String,
    name: String,
    started: i64,
    killed: i64,
}

/// Containers that the log alone shows running, stopped and over.
fn victims(recording: &Recording) -> Vec<Victim> {
    let lines = klog(recording);
    let mut found = Vec::new();
    for line in lines.iter().filter(|l| l.contains("\"Killing container with a grace period\"")) {
        let text = |key| field(line, key).map(str::to_owned);
        let (Some(pod), Some(uid), Some(name), Some(id)) =
            (text("pod"), text("podUID"), text("containerName"), text("containerID"))
        else {
            continue;
        };
        let id = id.trim_start_matches("containerd://").to_owned();
        let started = lines.iter().find(|l| {
            l.contains("SyncLoop (PLEG): event") && l.contains("ContainerStarted") && l.contains(&id)
        });
        let alone = lines
            .iter()
            .filter(|l| l.contains("Killing container with a grace period\"") && l.contains(&uid))
            .count()
            == 1;
        if let (Some(started), Some(killed), true) = (started.and_then(|l| micros(l)), micros(line), alone) {
            found.push(Victim { pod, uid, id, name, started, killed });
        }
    }
    found
}

/// A deed: edits the recording, or says that this victim doesn't allow it.
type Deed = fn(&mut Recording, &Victim) -> Option<()>;

/// The volume is taken down right after the stop is asked for, before the container's end.
fn unmount_before_exit(recording: &mut Recording, v: &Victim) -> Option<()> {
    let mut lines = klog(recording);
    let teardown =
        lines.iter().position(|l| l.contains("UnmountVolume.TearDown succeeded") && l.contains(&v.uid))?;
    let exit = lines.iter().find(|l| l.contains("Container exited normally") && l.contains(&v.id))?;
    (micros(exit)? - v.killed > 400_000).then_some(())?;
    let moved = at(&lines[teardown].clone(), v.killed + 20_000);
    lines[teardown] = moved;
    recording.set("kubelet.log", lines.join("\n"));
    Some(())
}

/// Whether a line of the kubelet's log tells a container's end.
fn tells_end(line: &str, v: &Victim) -> bool {
    let id = line.contains(&v.id)
        && (line.contains("ContainerDied")
            || line.contains("container finished")
            || line.contains("exited normally")
            || line.contains("newState=\"exited\"")
            || line.contains("newState=\"non-existent\"")
            || line.contains("terminated")
            || line.contains("ContainerRemoved"));
    let pod = (line.contains(&v.uid) || line.contains(&format!("pod=\"{}\"", v.pod)))
        && (line.contains("Post-termination container state")
            || line.contains("stopped all running containers"));
    id || pod
}

/// Absence proves something only if the log goes on: longer than a relist takes, and than a kubelet takes to notice.
fn goes_on(recording: &mut Recording) -> Option<()> {
    let mut lines = klog(recording);
    let line = lines.iter().rev().find(|l| micros(l).is_some())?.clone();
    let header = at(&line, micros(&line)? + 16_000_000);
    lines.push(format!("{}] \"SyncLoop (housekeeping)\"", header.split("] ").next()?));
    recording.set("kubelet.log", lines.join("\n"));
    Some(())
}

/// Every word of the container's end is lost, in all files.
fn drop_exit(recording: &mut Recording, v: &Victim) -> Option<()> {
    klog(recording)
        .iter()
        .any(|l| l.contains("Pod worker has stopped") && l.contains(&v.uid))
        .then_some(())?;
    goes_on(recording)?;
    let kept = |text: &str, drop: &dyn Fn(&str) -> bool| -> String {
        text.lines().filter(|l| !drop(l)).map(|l| format!("{l}\n")).collect()
    };
    let log = kept(recording.text("kubelet.log"), &|l| tells_end(l, v));
    recording.set("kubelet.log", log);
    for file in ["watch.jsonl", "audit.jsonl"] {
        let text = kept(recording.text(file), &|l| l.contains(&v.id) && l.contains("terminated"));
        recording.set(file, text);
    }
    let events = kept(recording.text("containerd-events.log"), &|l| {
        l.contains(&v.id) && (l.contains("/tasks/exit") || l.contains("/delete"))
    });
    recording.set("containerd-events.log", events);
    Some(())
}

/// The kubelet alone misses the exit; the runtime tells it.
fn kubelet_misses_exit(recording: &mut Recording, v: &Victim) -> Option<()> {
    let told = recording
        .text("containerd-events.log")
        .lines()
        .any(|l| l.contains("/tasks/exit") && l.contains(&v.id));
    told.then_some(())?;
    goes_on(recording)?;
    let log: String = recording
        .text("kubelet.log")
        .lines()
        .filter(|l| {
            let removal = l.contains("emoveContainer") || l.contains("emoving container");
            let of_it = tells_end(l, v) || removal && l.contains(&v.id);
            !of_it
        })
        .map(|l| format!("{l}\n"))
        .collect();
    recording.set("kubelet.log", log);
    Some(())
}

/// The same container name is started a second time, with another id, while the first runs.
fn duplicate_start(recording: &mut Recording, v: &Victim) -> Option<()> {
    (v.killed - v.started > 3_000_000).then_some(())?;
    let mut lines = klog(recording);
    let other: String = v.id.chars().rev().collect();
    let event = lines.iter().find(|l| {
        l.contains("\"Event occurred\"")
            && l.contains("reason=\"Started\"")
            && l.contains(&format!("object=\"{}\"", v.pod))
            && l.contains(&format!("{{{}}}", v.name))
    })?;
    let pleg = lines.iter().find(|l| {
        l.contains("SyncLoop (PLEG): event") && l.contains("ContainerStarted") && l.contains(&v.id)
    })?;
    let middle = v.started + 1_000_000;
    let new = [at(event, middle), at(&pleg.replace(&v.id, &other), middle + 300_000)];
    lines.extend(new);
    recording.set("kubelet.log", lines.join("\n"));
    Some(())
}

/// The container starts before its volume's mount succeeds.
fn start_before_mount(recording: &mut Recording, v: &Victim) -> Option<()> {
    let mut lines = klog(recording);
    let mounted =
        lines.iter().position(|l| l.contains("MountVolume.SetUp succeeded") && l.contains(&v.uid))?;
    let begun = lines.iter().any(|l| {
        l.contains("operationExecutor.VerifyControllerAttachedVolume started") && l.contains(&v.uid)
    });
    (begun && micros(&lines[mounted])? < v.started && v.killed - v.started > 1_000_000).then_some(())?;
    let moved = at(&lines[mounted].clone(), v.started + 500_000);
    lines[mounted] = moved;
    recording.set("kubelet.log", lines.join("\n"));
    Some(())
}

/// A container is made although the pod's delete was seen.
fn create_after_delete(recording: &mut Recording, v: &Victim) -> Option<()> {
    let mut lines = klog(recording);
    let delete =
        lines.iter().find(|l| l.contains("\"SyncLoop DELETE\"") && l.contains(&format!("\"{}\"", v.pod)))?;
    let create = lines.iter().find(|l| {
        l.contains("\"Event occurred\"")
            && l.contains("reason=\"Created\"")
            && l.contains(&format!("object=\"{}\"", v.pod))
    })?;
    let late = at(create, micros(delete)? + 45_000);
    lines.push(late);
    recording.set("kubelet.log", lines.join("\n"));
    Some(())
}

/// A volume is started upon after its teardown.
fn start_after_unmount(recording: &mut Recording, v: &Victim) -> Option<()> {
    let mut lines = klog(recording);
    let teardown =
        lines.iter().find(|l| l.contains("UnmountVolume.TearDown succeeded") && l.contains(&v.uid))?;
    let pleg = lines.iter().find(|l| {
        l.contains("\"Event occurred\"")
            && l.contains("reason=\"Started\"")
            && l.contains(&format!("object=\"{}\"", v.pod))
    })?;
    let late = at(pleg, micros(teardown)? + 400_000);
    lines.push(late);
    recording.set("kubelet.log", lines.join("\n"));
    Some(())
}

/// The mount table keeps a mount that was reported gone.
fn mount_stays(recording: &mut Recording, v: &Victim) -> Option<()> {
    let mut kept: Option<String> = None;
    let mut out = String::new();
    for line in recording.text("mounts.jsonl").lines() {
        let mut value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let list = value["mountinfo"].as_array_mut().expect("a list");
        let own = list.iter().filter_map(|m| m.as_str()).find(|m| m.contains(&v.uid)).map(str::to_owned);
        kept = kept.or(own);
        if let Some(kept) = &kept
            && !list.iter().any(|m| m.as_str() == Some(kept))
        {
            list.push(kept.clone().into());
        }
        out += &format!("{value}\n");
    }
    kept?;
    goes_on(recording)?;
    recording.set("mounts.jsonl", out);
    Some(())
}

/// The stop takes forty seconds: all that follows is later by so much.
fn stop_takes_long(recording: &mut Recording, v: &Victim) -> Option<()> {
    let later = |line: &String| match micros(line) {
        Some(t) if t > v.killed + 5_000 => at(line, t + 40_000_000),
        _ => line.clone(),
    };
    let lines: Vec<String> = klog(recording).iter().map(later).collect();
    lines.iter().any(|l| l.contains("Container exited normally") && l.contains(&v.id)).then_some(())?;
    recording.set("kubelet.log", lines.join("\n"));
    Some(())
}

/// A negative grace.
fn negative_grace(recording: &mut Recording, v: &Victim) -> Option<()> {
    let lines: Vec<String> = klog(recording)
        .into_iter()
        .map(|l| {
            if l.contains("Killing container with a grace period") && l.contains(&v.id) {
                let head = l.split("gracePeriod=").next().unwrap_or_default();
                format!("{head}gracePeriod=-3")
            } else {
                l
            }
        })
        .collect();
    recording.set("kubelet.log", lines.join("\n"));
    Some(())
}

/// The pod never goes: what would end it is missing, and the kubelet says so for minutes.
fn never_goes(recording: &mut Recording, v: &Victim) -> Option<()> {
    let lines = klog(recording);
    let delayed = lines.iter().find(|l| l.contains("Delaying pod deletion") && l.contains(&v.uid))?.clone();
    let from = micros(&delayed)?;
    let mut kept: Vec<String> = lines.into_iter().filter(|l| micros(l).is_none_or(|t| t <= from)).collect();
    for n in 1..30 {
        kept.push(at(&delayed, from + n * 10_000_000));
    }
    recording.set("kubelet.log", kept.join("\n"));
    Some(())
}

/// An unmount that fails again and again and never succeeds.
fn unmount_fails(recording: &mut Recording, v: &Victim) -> Option<()> {
    let lines = klog(recording);
    let teardown =
        lines.iter().find(|l| l.contains("UnmountVolume.TearDown succeeded") && l.contains(&v.uid))?.clone();
    let from = micros(&teardown)?;
    let unique = after(&teardown, "for volume \"")?.split('"').next()?.to_owned();
    let mut kept: Vec<String> = lines.into_iter().filter(|l| micros(l).is_none_or(|t| t < from)).collect();
    for n in 0..6 {
        let t = from + (1 << n) * 500_000;
        let header = at(&teardown, t);
        let header = header.split("] ").next()?;
        kept.push(format!("{header}] Operation for \"{{volumeName:{unique} podName:{} nodeName:}}\" failed. No retries permitted until 2026-11-30 20:14:05.735048094 +0000 UTC m=+24.920030240 (durationBeforeRetry {}ms). Error: UnmountVolume.TearDown failed for volume \"{unique}\" pod \"{}\" (UID: \"{}\") : device or resource busy", v.uid, (1 << n) * 500, v.uid, v.uid));
    }
    recording.set("kubelet.log", kept.join("\n"));
    Some(())
}

/// A deed with the kind that must be found, by which files, and how many recordings allow it at least.
type Planted = (&'static str, Deed, &'static [&'static str], &'static [&'static str], usize);

const DEEDS: &[Planted] = &[
    ("unmount before exit", unmount_before_exit, &["volume-unmounted-while-container-running"], &FILES, 2),
    (
        "unmount before exit, by the log alone",
        unmount_before_exit,
        &["volume-unmounted-while-container-running"],
        &["kubelet.log"],
        2,
    ),
    (
        "dropped exit",
        drop_exit,
        &["pod-released-while-container-running", "volume-unmounted-while-container-running"],
        &FILES,
        5,
    ),
    (
        "dropped exit, by the log alone",
        drop_exit,
        &["pod-released-while-container-running", "volume-unmounted-while-container-running"],
        &["kubelet.log"],
        5,
    ),
    (
        "exit that the kubelet missed",
        kubelet_misses_exit,
        &["exit-lost"],
        &["kubelet.log", "containerd-events.log"],
        5,
    ),
    ("duplicated start", duplicate_start, &["duplicate-container"], &["kubelet.log"], 3),
    ("start before mount", start_before_mount, &["container-start-without-volume"], &["kubelet.log"], 2),
    ("create after delete", create_after_delete, &["container-created-after-delete"], &FILES, 5),
    (
        "start after unmount",
        start_after_unmount,
        &["volume-unmounted-before-container-start"],
        &["kubelet.log"],
        2,
    ),
    ("mount that stays", mount_stays, &["driver-state-mismatch"], &["kubelet.log", "mounts.jsonl"], 1),
    ("slow stop", stop_takes_long, &["grace-period-exceeded"], &["kubelet.log"], 5),
    ("negative grace", negative_grace, &["invalid-grace-period"], &FILES, 5),
    ("pod that never goes", never_goes, &["pod-stuck-terminating"], &["kubelet.log"], 4),
    ("unmount that fails", unmount_fails, &["volume-unmount-failed"], &["kubelet.log"], 2),
];

#[test]
fn every_planted_fault_is_found_by_the_right_kind() {
    let recordings = Recording::all();
    let mut planted: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for recording in recordings.iter().filter(|r| !r.name.starts_with("17")) {
        let victims = victims(recording);
        for (what, deed, kinds, files, _) in DEEDS {
            for victim in &victims {
                let mut edited = recording.clone();
                if deed(&mut edited, victim).is_none() {
                    continue;
                }
                let trace = edited.trace(files);
                let report = judge(&trace);
                let found = report.findings.iter().any(|f| {
                    kinds.contains(&f.kind.as_str()) && f.pod.is_some_and(|p| trace.pod_name(p) == victim.pod)
                });
                assert!(found, "{what} in {} on {victim:?}: found {:#?}", recording.name, report.findings);
                // Consequences of the same deed may be found too; anything else is a false alarm.
                let consequences = match *what {
                    "create after delete" => &["volume-unmounted-before-container-start"][..],
                    _ => &[],
                };
                let strange: Vec<&str> = report
                    .kinds()
                    .into_iter()
                    .filter(|k| !kinds.contains(k) && !consequences.contains(k))
                    .collect();
                assert!(
                    strange.is_empty(),
                    "{what} in {} on {victim:?}: also {:#?}",
                    recording.name,
                    report.findings
                );
                planted.entry(what).or_default().push(recording.name.clone());
            }
        }
    }
    for (what, _, _, _, least) in DEEDS {
        let mut places = planted.remove(what).unwrap_or_default();
        places.dedup();
        assert!(places.len() >= *least, "{what} could be done in {places:?} only");
    }
}
