//! nodefold's own journals: the fold is run again, and the oracles judge its facts and commands as they are (D1, S1–S15).

use crate::evidence::{ContainerHint, Draft, Payload, PodHint, Sink, VolumeHint, Witness};
use crate::merge::Imported;
use crate::stamp::{Moment, Stamp};
use crate::verb::Verb;
use nodefold_core::Node;
use nodefold_core::command::{Action, Command, TraceEntry};
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::{ContainerId, PodUid, VolumeId};
use nodefold_core::time::Time;
use nodefold_journal::{Error, Files, Record, Step, replay_each};
use nodefold_model::{Oracles, Violation};
use std::path::Path;

/// A journal's drafts, and what the oracles say of it, each with the record that proved it.
pub struct OwnJournal {
    /// Its drafts.
    pub imported: Imported,
    /// Broken invariants, with the numbers of the records that prove them.
    pub violations: Vec<(Violation, Vec<u64>)>,
}

/// Whether a path is a journal's directory.
pub fn is_journal(path: &Path) -> bool {
    let segment = |p: &Path| p.extension().is_some_and(|e| e == "seg" || e == "segz");
    path.is_dir() && path.read_dir().is_ok_and(|mut d| d.any(|e| e.is_ok_and(|e| segment(&e.path()))))
}

/// Reads a journal.
pub fn read(path: &Path, name: &str) -> Result<OwnJournal, Error> {
    let storage = Files::at(path);
    let mut sink = Sink::default();
    let mut oracles: Option<Oracles> = None;
    let mut numbers: Vec<u64> = Vec::new();
    let mut last = 0;
    replay_each::<Node>(&storage, None, &mut |step: Step<'_, Node>| {
        last = step.number;
        match step.record {
            Record::Header(header) if oracles.is_none() => oracles = Some(Oracles::new(&header.config)),
            Record::Fact(event) => {
                sink.recognised += 1;
                let mut judge = |entry: &TraceEntry| {
                    numbers.push(step.number);
                    if let Some(oracles) = &mut oracles {
                        oracles.observe(entry);
                    }
                };
                judge(&TraceEntry::Fact(event.clone()));
                for command in &step.commands.commands {
                    judge(&TraceEntry::Command { at: step.at, command: command.clone() });
                }
                fact(event, step.number, &mut sink);
                for one in &step.commands.commands {
                    command(one, step.at, step.number, &mut sink);
                }
            }
            Record::Header(_)
            | Record::Foreign(_)
            | Record::BatchEnd(_)
            | Record::Snapshot(_)
            | Record::Skipped(_)
            | Record::Note(_) => {}
        }
    })?;
    let violations = oracles.map(|mut o| {
        o.finish();
        o.take_violations()
    });
    let violations = violations
        .unwrap_or_default()
        .into_iter()
        .map(|v| {
            let records = v.evidence.iter().filter_map(|i| numbers.get(*i).copied()).collect();
            (v, records)
        })
        .collect();
    Ok(OwnJournal { imported: Imported { name: name.to_owned(), lines: last, bytes: 0, sink }, violations })
}

fn draft(verb: Verb, at: Time, number: u64, pod: PodUid) -> Draft {
    let mut draft = Draft::new(verb, Witness::Journal, number);
    draft.when = Some(Stamp::at(Moment(i64::try_from(at.0).unwrap_or(i64::MAX)), 0));
    draft.pod.uid = (pod != PodUid(0)).then(|| pod.to_string().into());
    draft
}

fn of_volume(mut draft: Draft, volume: &VolumeId) -> Draft {
    draft.volume = VolumeHint { name: Some(volume.name.clone()), ..VolumeHint::default() };
    draft
}

fn of_container(mut draft: Draft, pod: PodUid, container: &ContainerId) -> Draft {
    draft.container = ContainerHint {
        id: Some(nodefold_k8s::container_id(pod, container).into()),
        name: Some(container.name.clone()),
        attempt: Some(container.attempt),
        sandbox: Some(false),
    };
    draft
}

fn fact(event: &Event, number: u64, sink: &mut Sink) {
    let new = |verb: Verb, pod: PodUid| draft(verb, event.at, number, pod);
    let made = match &event.fact {
        Fact::PodApplied(pod) => {
            let verb = if pod.deletion.is_some() { Verb::DeleteSeen } else { Verb::PodUpdated };
            let mut d = new(verb, pod.uid);
            d.pod = PodHint { namespace: Some(pod.namespace.clone()), name: Some(pod.name.clone()), ..d.pod };
            d
        }
        Fact::PodRemoved { pod } => new(Verb::PodRemoved, *pod),
        Fact::AgentStarted { .. } => new(Verb::KubeletStarted, PodUid(0)),
        Fact::VolumeMounted { pod, volume, .. } => of_volume(new(Verb::Mounted, *pod), volume),
        Fact::VolumeUnmounted { pod, volume, .. } => of_volume(new(Verb::Unmounted, *pod), volume),
        Fact::VolumeMountFailed { pod, volume, error, .. } => Draft {
            payload: Payload::Text(error.message.clone()),
            ..of_volume(new(Verb::MountFailed, *pod), volume)
        },
        Fact::VolumeUnmountFailed { pod, volume, error, .. } => Draft {
            payload: Payload::Text(error.message.clone()),
            ..of_volume(new(Verb::UnmountFailed, *pod), volume)
        },
        Fact::ContainerCreated { pod, container, .. } => {
            of_container(new(Verb::ContainerCreated, *pod), *pod, container)
        }
        Fact::ContainerStarted { pod, container, .. } => {
            of_container(new(Verb::ContainerStarted, *pod), *pod, container)
        }
        Fact::ContainerExited { pod, container, exit } => Draft {
            payload: Payload::Exit(Some(i64::from(exit.code)), None),
            ..of_container(new(Verb::ContainerExited, *pod), *pod, container)
        },
        Fact::ContainerRemoved { pod, container, .. } => {
            of_container(new(Verb::ContainerRemoved, *pod), *pod, container)
        }
        Fact::SandboxReady { pod, .. } => new(Verb::SandboxCreated, *pod),
        Fact::SandboxStopped { pod, .. } => new(Verb::SandboxStopped, *pod),
        Fact::SandboxRemoved { pod, .. } => new(Verb::SandboxRemoved, *pod),
        Fact::Tick
        | Fact::SourceReady { .. }
        | Fact::ObjectSeen { .. }
        | Fact::ObjectGone { .. }
        | Fact::NodeChanged(_)
        | Fact::ReadinessGate { .. }
        | Fact::VolumeRefreshed { .. }
        | Fact::VolumeRefreshFailed { .. }
        | Fact::UsageReported { .. }
        | Fact::ImagePulled { .. }
        | Fact::ImagePullFailed { .. }
        | Fact::SandboxFailed { .. }
        | Fact::SandboxStopFailed { .. }
        | Fact::SandboxRemoveFailed { .. }
        | Fact::ContainerCreateFailed { .. }
        | Fact::ContainerStartFailed { .. }
        | Fact::ContainerStopFailed { .. }
        | Fact::ContainerRemoveFailed { .. }
        | Fact::ContainerResized { .. }
        | Fact::ContainerResizeFailed { .. }
        | Fact::PodResized { .. }
        | Fact::PodResizeFailed { .. }
        | Fact::HookDone { .. }
        | Fact::ProbeResult { .. }
        | Fact::MountsObserved { .. }
        | Fact::RuntimeObserved { .. }
        | Fact::ObserveFailed { .. }
        | Fact::StatusWritten { .. }
        | Fact::StatusWriteFailed { .. }
        | Fact::ReleaseFailed { .. }
        | Fact::MirrorSeen { .. }
        | Fact::MirrorGone { .. }
        | Fact::MirrorCreated { .. }
        | Fact::MirrorDeleted { .. }
        | Fact::MirrorFailed { .. } => return,
    };
    sink.push(made);
}

fn command(command: &Command, at: Time, number: u64, sink: &mut Sink) {
    let pod = command.pod;
    let new = |verb: Verb| draft(verb, at, number, pod);
    let made = match &command.action {
        Action::MountVolume { volume, .. } => of_volume(new(Verb::MountStarted), volume),
        Action::UnmountVolume { volume, .. } => of_volume(new(Verb::UnmountStarted), volume),
        Action::CreateContainer { container, .. } => of_container(new(Verb::CreateStarted), pod, container),
        Action::StopContainer { container, grace } => Draft {
            payload: Payload::Grace(i64::try_from(grace.as_secs()).unwrap_or(i64::MAX)),
            ..of_container(new(Verb::StopRequested), pod, container)
        },
        Action::KillContainer { container } => of_container(new(Verb::Signalled), pod, container),
        Action::StopSandbox { .. } => new(Verb::SandboxStopRequested),
        Action::ReleasePod => new(Verb::PodReleased),
        Action::RefreshVolume { .. }
        | Action::PullImage { .. }
        | Action::CreateSandbox { .. }
        | Action::RemoveSandbox { .. }
        | Action::StartContainer { .. }
        | Action::RemoveContainer { .. }
        | Action::ResizeContainer { .. }
        | Action::ResizePod { .. }
        | Action::RunHook { .. }
        | Action::StartProbe { .. }
        | Action::StopProbe { .. }
        | Action::ObserveMounts
        | Action::ObserveRuntime
        | Action::PublishStatus { .. }
        | Action::RecordEvent(_)
        | Action::CreateMirror { .. }
        | Action::DeleteMirror { .. } => return,
    };
    sink.push(made);
}
