//! Which stories are over, so that they can be judged and forgotten while the rest is still read.
//!
//! Owns when the evidence of a pod, a volume or a container is complete. A story that rules look at together with others, or that
//! a listing may still be held against, is never over. Judges nothing.

use crate::evidence::Witness;
use crate::kept::Kept;
use crate::merge::Tie;
use crate::stamp::{Moment, SECOND};
use crate::trace::Trace;
use crate::verb::Verb;
use std::collections::BTreeSet;

/// So long nothing was told of what is over: longer than any rule about a single story looks ahead, and than writers are late.
pub const SILENCE: i64 = 300 * SECOND;
/// Witnesses tell an end in any order within this.
const APART: i64 = 5 * SECOND;

/// What a verb says of its story's course.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Turn {
    /// Something begins, or is there.
    Begins,
    /// The pod is gone for somebody who would know.
    Gone,
    /// A stop that somebody has to answer.
    Asks,
    /// Its answer.
    Answers,
    /// Rules look at it beside other stories, or the whole node is concerned.
    Held,
    /// None of these.
    Goes,
}

/// The turn that a verb is.
fn turn(verb: Verb) -> Turn {
    match verb {
        Verb::PodReceived
        | Verb::PodAdded
        | Verb::PodApplied
        | Verb::FirstSync
        | Verb::SandboxCreated
        | Verb::SandboxStarted
        | Verb::SandboxRunning
        | Verb::CreateStarted
        | Verb::ContainerCreated
        | Verb::ContainerStarted
        | Verb::ContainerRunning
        | Verb::MountStarted
        | Verb::Mounted
        | Verb::MountSeen
        | Verb::DeviceMounted => Turn::Begins,
        Verb::PodRemoved
        | Verb::PodReleased
        | Verb::PodDeleted
        | Verb::WorkerStopped
        | Verb::PathsCleaned
        | Verb::OrphanDirCleaned => Turn::Gone,
        Verb::SandboxStopRequested | Verb::RuntimeStop => Turn::Asks,
        Verb::SandboxStopped
        | Verb::SandboxDead
        | Verb::SandboxExited
        | Verb::SandboxRemoved
        | Verb::SandboxStopFailed
        | Verb::StopReturned
        | Verb::StopFailed
        | Verb::ContainerExited
        | Verb::ContainerDead
        | Verb::ContainerRemoved => Turn::Answers,
        Verb::SandboxChanged
        | Verb::StartBlocked
        | Verb::RestartSameUid
        | Verb::MirrorPodFailed
        | Verb::MirrorPod
        | Verb::PodRecreated
        | Verb::KubeletFailed
        | Verb::KubeletPanicked
        | Verb::PanicCaught
        | Verb::NodeRebooted
        | Verb::CheckpointUnreadable
        | Verb::DeviceUnmountFailed
        | Verb::PathMissing
        | Verb::Gap => Turn::Held,
        Verb::KubeletStarted
        | Verb::ServiceStarted
        | Verb::ServiceEnded
        | Verb::StateStoreReady
        | Verb::CheckpointSeen
        | Verb::LoopBlocked
        | Verb::PodUpdated
        | Verb::PodReconciled
        | Verb::DeleteSeen
        | Verb::ApiRequest
        | Verb::SyncEntered
        | Verb::TerminationSynced
        | Verb::UpdateProcessed
        | Verb::TerminationBegan
        | Verb::WorkerNotDone
        | Verb::PodOrphaned
        | Verb::SyncFailed
        | Verb::SyncCancelled
        | Verb::ContainersLeft
        | Verb::VolumesLeft
        | Verb::OrphanVolumesLeft
        | Verb::ContainersStopped
        | Verb::PostTermination
        | Verb::CgroupsRemoved
        | Verb::KillOrdered
        | Verb::PhaseComputed
        | Verb::StatusGenerated
        | Verb::ProgrammerError
        | Verb::StatusPatched
        | Verb::StatusWritten
        | Verb::DeletionDelayed
        | Verb::TerminationFinished
        | Verb::IllegalTransition
        | Verb::VerifyStarted
        | Verb::Attached
        | Verb::DeviceWaited
        | Verb::MountFailed
        | Verb::VolumeUnresolved
        | Verb::UnmountStarted
        | Verb::Unmounted
        | Verb::UnmountFailed
        | Verb::DeviceUnmountStarted
        | Verb::DeviceUnmounted
        | Verb::Detached
        | Verb::VolumesAwaited
        | Verb::VolumesReady
        | Verb::UnmountAwaited
        | Verb::VolumesUnmounted
        | Verb::UnmountTimedOut
        | Verb::DesiredStateReady
        | Verb::VolumesTimedOut
        | Verb::VolumeDesired
        | Verb::VolumeUndesired
        | Verb::VolumesHeld
        | Verb::Reconstructed
        | Verb::ReconstructFailed
        | Verb::CleanupStarted
        | Verb::ReconstructionDone
        | Verb::Expanded
        | Verb::OrphanDirLeft
        | Verb::MountGone
        | Verb::DriverNothingToDo
        | Verb::SandboxNeeded
        | Verb::Planned
        | Verb::ImagePulled
        | Verb::CreateFailed
        | Verb::StartFailed
        | Verb::ContainerGone
        | Verb::StopRequested
        | Verb::GraceOverridden
        | Verb::Signalled
        | Verb::KillPlanned
        | Verb::HookStarted
        | Verb::HookDone
        | Verb::RemovalNoted
        | Verb::RemoveStarted
        | Verb::RemoveRaced
        | Verb::ContainerUnknown
        | Verb::RuntimeFailed
        | Verb::RuntimeRequest
        | Verb::NetworkTeardown
        | Verb::SandboxCheckpointMissing
        | Verb::ProbeResult
        | Verb::BackedOff
        | Verb::DefinitionChanged
        | Verb::Allocated
        | Verb::ResizeRefused
        | Verb::AdmissionDenied
        | Verb::Admitted
        | Verb::EvictionBegan
        | Verb::Evicted
        | Verb::NodeShutdown
        | Verb::EventSeen => Turn::Goes,
    }
}

/// It answers a stop that was asked for.
pub(crate) fn answers_a_stop(verb: Verb) -> bool {
    turn(verb) == Turn::Answers
}

/// What is said of nobody in particular and rules about the node ask for.
fn concerns_the_node(verb: Verb) -> bool {
    matches!(turn(verb), Turn::Held | Turn::Asks | Turn::Answers)
        || matches!(
            verb,
            Verb::OrphanDirLeft
                | Verb::UnmountFailed
                | Verb::IllegalTransition
                | Verb::VolumesTimedOut
                | Verb::ContainerStarted
                | Verb::DeviceUnmounted
                | Verb::Detached
        )
}

/// The course of one story so far.
#[derive(Clone, Debug)]
struct Course {
    begun: Moment,
    gone: Moment,
    last: Moment,
    held: bool,
}

impl Course {
    fn take(&mut self, k: &Kept) {
        // A listing has no time: what it names must be there when all else is known.
        self.held |= k.untimed || k.witness == Witness::Journal;
        self.last = self.last.max(k.at);
        match turn(k.verb) {
            Turn::Begins => self.begun = self.begun.max(k.at),
            Turn::Gone => self.gone = self.gone.max(k.at),
            Turn::Held => self.held = true,
            Turn::Asks | Turn::Answers | Turn::Goes => {}
        }
    }

    /// It went, and nothing of it came again.
    fn is_gone(&self) -> bool {
        self.gone > Moment(i64::MIN) && self.gone.plus(APART) >= self.begun
    }

    fn is_silent(&self, front: Moment) -> bool {
        !self.held && self.last.plus(SILENCE) <= front
    }
}

/// Which drafts belong to a story that is over, or to none and are of no use any more.
pub fn find(kept: &[Kept], ties: &[Tie], trace: &Trace, front: Moment) -> Vec<bool> {
    let none =
        Course { begun: Moment(i64::MIN), gone: Moment(i64::MIN), last: Moment(i64::MIN), held: false };
    let mut pods = vec![none.clone(); trace.pods.len()];
    let mut volumes = vec![none.clone(); trace.volumes.len()];
    let mut containers = vec![none; trace.containers.len()];
    let mut asked = vec![false; trace.containers.len()];
    // Containers that run, by what was said of each last: a pod that was forced out of its source may have one for hours.
    let mut runs = vec![false; trace.containers.len()];
    let mut all_stopped = vec![Moment(i64::MIN); trace.pods.len()];
    // Volumes of a pod that are mounted, and such as have left the node, by what was said of each last.
    let mut mounted = vec![false; trace.volumes.len()];
    let mut left = vec![false; trace.volumes.len()];
    let mut ever_unmounted = vec![false; trace.pods.len()];
    let from_file = |k: &Kept| k.payload.text().is_some_and(|source| &**source == "file");
    for (k, tie) in kept.iter().zip(ties) {
        if let Some(c) = tie.container {
            let c = c.0 as usize;
            containers[c].take(k);
            let ends = [
                Verb::ContainerDead,
                Verb::ContainerExited,
                Verb::ContainerGone,
                Verb::StopReturned,
                Verb::ContainerRemoved,
            ];
            let starts = matches!(k.verb, Verb::ContainerStarted | Verb::ContainerRunning);
            runs[c] = (runs[c] || starts) && !ends.contains(&k.verb);
            match turn(k.verb) {
                Turn::Asks => asked[c] = true,
                Turn::Answers => {
                    asked[c] = false;
                    containers[c].gone = containers[c].gone.max(k.at);
                }
                Turn::Begins | Turn::Gone | Turn::Held | Turn::Goes => {}
            }
        }
        if let Some(v) = tie.volume {
            let v = v.0 as usize;
            volumes[v].take(k);
            left[v] =
                matches!(k.verb, Verb::Unmounted | Verb::MountGone | Verb::DeviceUnmounted | Verb::Detached);
            let comes = [Verb::Mounted, Verb::MountStarted, Verb::MountSeen, Verb::Reconstructed];
            mounted[v] = !left[v] && (mounted[v] || comes.contains(&k.verb));
            // Whose volume it is, nobody knows.
            let failed = matches!(k.verb, Verb::UnmountFailed | Verb::ReconstructFailed);
            volumes[v].held |= failed && tie.pod.is_none();
        }
        if let Some(p) = tie.pod {
            let course = &mut pods[p.0 as usize];
            course.take(k);
            course.held |= matches!(k.verb, Verb::PodAdded | Verb::PodRemoved) && from_file(k);
            course.held |= turn(k.verb) == Turn::Asks && tie.container.is_none();
            ever_unmounted[p.0 as usize] |= k.verb == Verb::Unmounted;
            if matches!(k.verb, Verb::ContainersStopped | Verb::PostTermination) {
                all_stopped[p.0 as usize] = all_stopped[p.0 as usize].max(k.at);
            }
        }
    }
    // The first object stands for the API's list.
    let first_object = kept.iter().zip(ties).find(|(k, _)| k.witness == Witness::Api);
    if let Some(p) = first_object.and_then(|(_, tie)| tie.pod) {
        pods[p.0 as usize].held = true;
    }
    for (i, c) in trace.containers.iter().enumerate() {
        let Some(p) = c.pod.map(|p| p.0 as usize) else { continue };
        let ended = c.sandbox || c.finished_at.is_some() || all_stopped[p] >= containers[i].begun;
        pods[p].held |= asked[i] || (runs[i] && !ended);
    }
    let mut still_mounted = vec![false; trace.pods.len()];
    for (v, mounted) in trace.volumes.iter().zip(&mounted) {
        if let (Some(p), true) = (v.pod, *mounted) {
            still_mounted[p.0 as usize] = true;
        }
    }
    for ((course, life), (mounted, ever)) in
        pods.iter_mut().zip(&trace.pods).zip(still_mounted.iter().zip(&ever_unmounted))
    {
        course.held |= life.cut || life.is_static;
        // A log that tells of volumes only: what has none any more is gone.
        if *ever && !mounted && course.last.plus(SILENCE) <= front {
            course.gone = course.gone.max(course.begun);
        }
    }
    // Lives of one name are looked at together where one of them is a static pod's.
    let name = |p: usize| (&trace.pods[p].namespace, &trace.pods[p].name);
    let shared: BTreeSet<_> = (0..pods.len())
        .filter(|p| pods[*p].held && trace.pods[*p].name.is_some() && trace.pods[*p].is_static)
        .map(name)
        .collect();
    let over: Vec<bool> = (0..pods.len())
        .map(|p| pods[p].is_gone() && pods[p].is_silent(front) && !shared.contains(&name(p)))
        .collect();
    let goes = |(k, tie): (&Kept, &Tie)| match (tie.pod, tie.volume, tie.container) {
        (Some(p), ..) => over[p.0 as usize],
        (None, Some(v), _) => {
            let pod = trace.volume(v).pod;
            left[v.0 as usize]
                && volumes[v.0 as usize].is_silent(front)
                && pod.is_none_or(|p| over[p.0 as usize])
        }
        (None, None, Some(c)) => {
            let course = &containers[c.0 as usize];
            course.is_gone() && course.is_silent(front) && !asked[c.0 as usize]
        }
        (None, None, None) => !k.untimed && k.at.plus(SILENCE) <= front && !concerns_the_node(k.verb),
    };
    kept.iter().zip(ties).map(goes).collect()
}
