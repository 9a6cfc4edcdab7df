//! The verdict as people read it: findings with their proof first, then what happened to each pod, line by line.

use crate::args;
use crate::ending::Unusable;
use crate::out::Out;
use crate::paint::{Tone, paint};
use anyhow::Result;
use nodefold_replay::{
    Confidence, Entry, Finding, Followed, PodIx, Report, Side, Trace, Verb, Witness, rfc3339,
};
use std::collections::BTreeMap;

/// Timelines longer than this are shown only for pods with findings, unless all is asked for.
const MANY: usize = 400;

/// Shows the verdict.
pub fn show(trace: &Trace, report: &Report, args: &args::Judge, out: &mut Out) -> Result<()> {
    for finding in &report.findings {
        show_finding(trace, finding, out);
    }
    if !args.quiet {
        timelines(trace, report, args, out)?;
    }
    for note in &report.notes {
        let place = note
            .evidence
            .first()
            .and_then(|i| trace.entries.get(*i))
            .map(|e| format!(" ({})", place(trace, e)));
        out.line(paint(Tone::Quiet.style(), format!("note: {}{}", note.text, place.unwrap_or_default())));
    }
    for note in &trace.notes {
        out.line(paint(Tone::Quiet.style(), format!("note: {note}")));
    }
    coverage(trace, args.verbose, out);
    if report.is_clean() {
        out.line(paint(Tone::Good.style(), "clean: nothing in this evidence breaks an invariant"));
    } else {
        let n = report.findings.len();
        let what = if n == 1 { "finding" } else { "findings" };
        out.line(paint(Tone::Bad.style(), format!("{n} {what}: {}", report.kinds().join(", "))));
    }
    Ok(())
}

/// Shows where the core, fed the facts, would have done otherwise.
pub fn shadow(trace: &Trace, shadow: &Followed, out: &mut Out) {
    for parting in &shadow.partings {
        let entry = parting.entry.and_then(|i| trace.entries.get(i));
        let shown = entry.map(|e| format!(" {}", place(trace, e))).unwrap_or_default();
        let (tone, text) = match parting.side {
            Side::Node => (Tone::Warning, "the node did it, nodefold would not have"),
            Side::Core => (Tone::Step, "nodefold would have, the node did not"),
        };
        out.line(format!(
            "{} {} {}: {text}{}",
            paint(Tone::Quiet.style(), rfc3339(parting.at)),
            trace.pod_name(parting.pod),
            paint(tone.style(), &parting.what),
            paint(Tone::Quiet.style(), shown)
        ));
    }
    let made_up = match shadow.without_spec {
        0 => String::new(),
        n => format!("; of {n} pods the evidence has no spec: theirs is made up from what happened to them"),
    };
    let n = shadow.partings.len();
    out.line(paint(
        Tone::Quiet.style(),
        format!("shadow: {} facts followed, {n} partings{made_up}", shadow.events.len()),
    ));
    out.line("");
}

/// A file's name without its directories, and the line.
fn place(trace: &Trace, entry: &Entry) -> String {
    let name = &trace.files[entry.file as usize].name;
    format!("{}:{}", name.rsplit('/').next().unwrap_or(name), entry.line)
}

fn show_finding(trace: &Trace, finding: &Finding, out: &mut Out) {
    let invariant = finding.invariant.map(|i| format!(" {i}")).unwrap_or_default();
    let pod = finding.pod.map(|p| format!(" {}", trace.pod_name(p))).unwrap_or_default();
    let times = if finding.count > 1 { format!(", {} times", finding.count) } else { String::new() };
    let resolved = if finding.resolved { ", resolved later" } else { "" };
    out.line(format!(
        "{}{} {}",
        paint(Tone::Bad.style(), format!("✗ {}{invariant}", finding.kind.as_str())),
        paint(Tone::Step.style(), pod),
        paint(Tone::Quiet.style(), format!("({}{times}{resolved})", finding.confidence.as_str()))
    ));
    out.line(format!("  {}", finding.explanation));
    for i in &finding.evidence {
        if let Some(entry) = trace.entries.get(*i) {
            out.line(format!(
                "    {} {} {}",
                paint(Tone::Quiet.style(), place(trace, entry)),
                trace.clock(entry),
                trace.describe(entry)
            ));
        }
    }
    let race = finding.kind.race();
    let seen = if race.is_empty() { String::new() } else { format!(" Seen before: {race}.") };
    out.line(paint(Tone::Quiet.style(), format!("  That means: {}.{seen}", finding.kind.meaning())));
    out.line("");
}

/// What moves a life on; the rest is talk.
pub fn matters(entry: &Entry) -> bool {
    let is_talk = matches!(
        entry.verb,
        Verb::SyncEntered
            | Verb::TerminationSynced
            | Verb::StatusGenerated
            | Verb::PhaseComputed
            | Verb::PodReconciled
            | Verb::UpdateProcessed
            | Verb::SandboxNeeded
            | Verb::VolumesHeld
            | Verb::VolumeDesired
            | Verb::VolumeUndesired
            | Verb::VolumesAwaited
            | Verb::VolumesReady
            | Verb::Planned
            | Verb::PodReceived
            | Verb::RuntimeRequest
            | Verb::RemovalNoted
            | Verb::StatusWritten
            | Verb::VerifyStarted
            | Verb::Allocated
    );
    let is_told_twice = entry.verb == Verb::StatusPatched && entry.witness == Witness::Audit;
    !is_talk && !is_told_twice
}

fn timelines(trace: &Trace, report: &Report, args: &args::Judge, out: &mut Out) -> Result<()> {
    let mut by_pod: BTreeMap<Option<PodIx>, Vec<&Entry>> = BTreeMap::new();
    for entry in &trace.entries {
        if args.verbose || matters(entry) {
            by_pod.entry(entry.pod).or_default().push(entry);
        }
    }
    let wanted = |pod: Option<PodIx>| match (&args.pod, pod) {
        (Some(asked), Some(pod)) => {
            *asked == trace.pod_name(pod)
                || trace.pod(pod).uid.as_deref() == Some(asked)
                || trace.pod(pod).name.as_deref() == Some(asked)
        }
        (Some(_), None) => false,
        (None, pod) => {
            let few = trace.forgotten.entries == 0 && by_pod.values().map(Vec::len).sum::<usize>() <= MANY;
            let all = args.verbose || few;
            all || report.findings.iter().any(|f| f.pod == pod && f.pod.is_some())
        }
    };
    let mut shown = 0;
    for (pod, entries) in &by_pod {
        if !wanted(*pod) {
            continue;
        }
        shown += 1;
        let title = match pod {
            Some(pod) => {
                let life = trace.pod(*pod);
                let uid = life.uid.as_deref().map(|u| format!("  uid {u}")).unwrap_or_default();
                let joined = if life.inferred { "  (name and UID joined by inference)" } else { "" };
                format!(
                    "{}{}{joined}",
                    paint(Tone::Step.style(), trace.pod_name(*pod)),
                    paint(Tone::Quiet.style(), uid)
                )
            }
            None => paint(Tone::Step.style(), "the node"),
        };
        out.line(title);
        for entry in entries {
            out.line(format!(
                "  {} {} {}{}",
                trace.clock(entry),
                tone(entry, trace),
                paint(Tone::Quiet.style(), place(trace, entry)),
                doubt(entry)
            ));
        }
        out.line("");
    }
    if let Some(asked) = &args.pod
        && shown == 0
    {
        let mut known: Vec<String> = by_pod.keys().flatten().map(|p| trace.pod_name(*p)).collect();
        known.sort();
        known.dedup();
        known.truncate(30);
        return Err(Unusable::new(
            format!("no pod {asked} in this evidence"),
            format!("there are {}", known.join(", ")),
        )
        .into());
    }
    // Of pods that were forgotten those with findings are there, as proof.
    let proofs = trace.pods.len() - trace.own().pods;
    let hidden = (by_pod.len() + trace.forgotten.pods).saturating_sub(shown + proofs);
    if hidden > 0 && args.pod.is_none() {
        out.line(paint(
            Tone::Quiet.style(),
            format!("{hidden} timelines not shown: ask with --pod NS/NAME or --verbose"),
        ));
    }
    Ok(())
}

/// It tells of something that went wrong.
pub fn is_trouble(entry: &Entry) -> bool {
    matches!(
        entry.verb,
        Verb::UnmountFailed
            | Verb::MountFailed
            | Verb::DeviceUnmountFailed
            | Verb::StartFailed
            | Verb::CreateFailed
            | Verb::SyncFailed
            | Verb::VolumesTimedOut
            | Verb::KubeletPanicked
            | Verb::CheckpointUnreadable
            | Verb::StopFailed
            | Verb::SandboxStopFailed
            | Verb::OrphanDirLeft
            | Verb::ReconstructFailed
    )
}

#[expect(clippy::wildcard_enum_match_arm, reason = "most of what a log says is plain")]
fn tone(entry: &Entry, trace: &Trace) -> String {
    let tone = match entry.verb {
        Verb::ContainerStarted
        | Verb::ContainerRunning
        | Verb::Mounted
        | Verb::SandboxRunning
        | Verb::VolumesReady => Tone::Good,
        Verb::DeleteSeen
        | Verb::PodRemoved
        | Verb::PodAdded
        | Verb::PodReleased
        | Verb::ServiceStarted
        | Verb::KubeletStarted => Tone::Step,
        _ if is_trouble(entry) => Tone::Warning,
        _ => Tone::Plain,
    };
    paint(tone.style(), trace.describe(entry))
}

fn doubt(entry: &Entry) -> &'static str {
    match (entry.confidence, entry.cut) {
        (Confidence::Seen, false) => "",
        (Confidence::Seen, true) => " (cut)",
        (Confidence::Derived | Confidence::Absent, false) => " (joined by inference)",
        (Confidence::Derived | Confidence::Absent, true) => " (cut, joined by inference)",
    }
}

/// How far the evidence reaches.
fn coverage(trace: &Trace, verbose: bool, out: &mut Out) {
    let quiet = |text: String| paint(Tone::Quiet.style(), text);
    let runs = match trace.runs.len() {
        0 => "no kubelet log".to_owned(),
        1 => "one run of the kubelet".to_owned(),
        n => format!("{n} runs of the kubelet"),
    };
    out.line(quiet(format!(
        "{} pods, {} volumes, {} entries; {runs}; verbosity {} or more",
        trace.pod_count(),
        trace.volume_count(),
        trace.entry_count(),
        trace.verbosity
    )));
    for file in &trace.files {
        let who: Vec<&str> = file.witnesses.iter().map(|w| w.as_str()).collect();
        let skipped: Vec<String> =
            file.skipped.iter().map(|(why, n)| format!("{n} {}", why.as_str())).collect();
        let skipped = if skipped.is_empty() || !verbose {
            String::new()
        } else {
            format!("; not used: {}", skipped.join(", "))
        };
        out.line(quiet(format!("{}: {} lines, {}{skipped}", file.name, file.lines, who.join(", "))));
    }
}
