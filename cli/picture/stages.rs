//! What a line of a foreign node's log moves on, and in which stage. Knows verbs and nothing of who said them.

use super::{Lane, LaneKind, Stage};
use crate::paint::Phase;
use nodefold_replay::{ContainerIx, Verb};

/// A lane on its way, and which life of a container it shows.
pub struct Moving {
    /// The lane.
    pub lane: Lane,
    /// The container that the actual stage is about, and how far its life has come.
    current: Option<(ContainerIx, u8)>,
    /// Lives that are over: what is told of them late moves nothing.
    past: Vec<ContainerIx>,
}

/// One move: a stage, the phase that it enters, and its word.
type Move = (Stage, Phase, &'static str);

impl Moving {
    /// A lane in which nothing has happened.
    pub fn new(lane: Lane) -> Moving {
        Moving { lane, current: None, past: Vec::new() }
    }

    /// What a verb says moves the lane.
    pub fn take(&mut self, verb: Verb, code: Option<i64>, life: Option<ContainerIx>, at: i64, by: u32) {
        let by = Some(by);
        match self.lane.kind {
            LaneKind::Volume => {
                for (stage, phase, word) in of_volume(verb, self.lane.phase(Stage::Actual)) {
                    self.lane.enter(*stage, at, *phase, word, by);
                }
            }
            LaneKind::Container => {
                let Some((rank, moves)) = of_container(verb, self.lane.phase(Stage::Actual)) else { return };
                if !self.is_news(life, rank) {
                    return;
                }
                for (stage, phase, word) in moves {
                    let exited = match (phase, code) {
                        (Phase::Over, Some(code)) => Some(format!("exited {code}")),
                        (_, _) => None,
                    };
                    self.lane.enter(*stage, at, *phase, exited.as_deref().unwrap_or(word), by);
                }
            }
            LaneKind::Pod => {
                for (stage, phase, word) in of_pod(verb, &self.lane) {
                    self.lane.enter(stage, at, phase, word, by);
                }
            }
            LaneKind::Node => {}
        }
    }

    /// Several witnesses tell one life, some of them late: it only goes on, and an older life is over.
    fn is_news(&mut self, life: Option<ContainerIx>, rank: u8) -> bool {
        let Some(life) = life else { return true };
        match &mut self.current {
            Some((now, reached)) if *now == life => {
                let further = rank >= *reached;
                *reached = rank.max(*reached);
                further
            }
            Some(_) | None => {
                if self.past.contains(&life) {
                    return false;
                }
                self.past.push(life);
                self.current = Some((life, rank));
                true
            }
        }
    }
}

use Phase::{Coming, Failing, Going, Gone, Over, Unknown, Up, Waiting};
use Stage::{Actual, Actuated, Allocated, Desired};

#[expect(clippy::wildcard_enum_match_arm, reason = "most of what a log says moves no volume")]
fn of_volume(verb: Verb, actual: Phase) -> &'static [Move] {
    match verb {
        Verb::VolumeDesired => &[(Desired, Up, "wanted")],
        Verb::VolumeUndesired => &[(Desired, Gone, "")],
        // A volume that is there is mounted again to refresh it.
        Verb::MountStarted if actual == Up => &[(Actuated, Up, "mount")],
        Verb::MountStarted => &[(Actuated, Up, "mount"), (Actual, Coming, "mounting")],
        Verb::Mounted | Verb::MountSeen => &[(Actual, Up, "mounted")],
        Verb::MountFailed | Verb::VolumeUnresolved => &[(Actual, Failing, "mount failed")],
        Verb::UnmountStarted | Verb::CleanupStarted => {
            &[(Actuated, Going, "unmount"), (Actual, Going, "unmounting")]
        }
        Verb::UnmountFailed => &[(Actual, Failing, "unmount failed")],
        Verb::DeviceUnmountStarted => &[(Actuated, Going, "unstage"), (Actual, Going, "unstaging")],
        Verb::DeviceUnmountFailed => &[(Actual, Failing, "unstage failed")],
        Verb::Unmounted | Verb::MountGone | Verb::DeviceUnmounted | Verb::Detached => {
            &[(Actuated, Gone, ""), (Actual, Gone, "")]
        }
        Verb::Reconstructed => &[(Actual, Unknown, "found on disk")],
        Verb::ReconstructFailed => &[(Actual, Failing, "not reconstructed")],
        _ => &[],
    }
}

/// How far a life has come with a verb, and what it moves.
#[expect(clippy::wildcard_enum_match_arm, reason = "most of what a log says moves no container")]
fn of_container(verb: Verb, actual: Phase) -> Option<(u8, &'static [Move])> {
    Some(match verb {
        Verb::CreateStarted => (0, &[(Actuated, Up, "create"), (Actual, Coming, "creating")]),
        Verb::ContainerCreated | Verb::SandboxCreated => {
            (1, &[(Actuated, Up, "create"), (Actual, Coming, "created")])
        }
        Verb::CreateFailed => (1, &[(Actual, Failing, "create failed")]),
        Verb::ContainerStarted | Verb::ContainerRunning | Verb::SandboxStarted | Verb::SandboxRunning => {
            (2, &[(Actuated, Up, "run"), (Actual, Up, "running")])
        }
        Verb::StartFailed => (2, &[(Actual, Failing, "start failed")]),
        Verb::StopRequested
        | Verb::RuntimeStop
        | Verb::GraceOverridden
        | Verb::Signalled
        | Verb::KillPlanned
        | Verb::SandboxStopRequested => match actual {
            Up | Coming => (3, &[(Actuated, Going, "stop"), (Actual, Going, "stopping")]),
            Gone | Over | Waiting | Going | Unknown | Failing => (3, &[(Actuated, Going, "stop")]),
        },
        Verb::StopFailed | Verb::SandboxStopFailed => (3, &[(Actual, Failing, "stop failed")]),
        Verb::ContainerExited | Verb::SandboxExited => (4, &[(Actuated, Gone, ""), (Actual, Over, "exited")]),
        Verb::ContainerDead | Verb::SandboxDead | Verb::StopReturned | Verb::SandboxStopped => match actual {
            Over => (4, &[(Actuated, Gone, "")]),
            Gone | Up | Coming | Waiting | Going | Unknown | Failing => {
                (4, &[(Actuated, Gone, ""), (Actual, Over, "ended")])
            }
        },
        Verb::ContainerRemoved | Verb::ContainerGone | Verb::SandboxRemoved => {
            (5, &[(Actuated, Gone, ""), (Actual, Gone, "")])
        }
        Verb::BackedOff => match actual {
            Over | Failing | Gone => (5, &[(Actual, Waiting, "back-off")]),
            Up | Coming | Waiting | Going | Unknown => return None,
        },
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "most of what a log says moves no pod")]
fn of_pod(verb: Verb, lane: &Lane) -> Vec<Move> {
    let actual = lane.phase(Actual);
    let begun = matches!(actual, Up | Coming | Going | Over | Failing);
    match verb {
        Verb::PodReceived | Verb::PodAdded | Verb::PodUpdated | Verb::PodApplied => {
            let mut moves = Vec::new();
            if lane.phase(Desired) != Going {
                moves.push((Desired, Up, "wanted"));
            }
            if !begun && actual != Waiting {
                moves.push((Actual, Waiting, "pending"));
            }
            moves
        }
        Verb::DeleteSeen => vec![(Desired, Going, "deleted")],
        Verb::PodRemoved | Verb::PodDeleted => match actual {
            Over | Waiting => {
                vec![(Desired, Gone, ""), (Allocated, Gone, ""), (Actuated, Gone, ""), (Actual, Gone, "")]
            }
            Gone | Up | Coming | Going | Unknown | Failing => vec![(Desired, Gone, "")],
        },
        Verb::Admitted | Verb::Allocated => vec![(Allocated, Up, "admitted")],
        Verb::AdmissionDenied => vec![(Actual, Failing, "refused")],
        Verb::Evicted => vec![(Actuated, Going, "stop"), (Actual, Going, "evicted")],
        Verb::FirstSync | Verb::SandboxNeeded | Verb::VolumesAwaited if !begun => {
            vec![(Actuated, Up, "start"), (Actual, Coming, "starting")]
        }
        Verb::ContainerStarted | Verb::ContainerRunning if matches!(actual, Gone | Coming | Waiting) => {
            vec![(Actuated, Up, "run"), (Actual, Up, "running")]
        }
        Verb::TerminationBegan | Verb::KillOrdered if !matches!(actual, Over | Gone) => {
            vec![(Actuated, Going, "stop"), (Actual, Going, "terminating")]
        }
        Verb::ContainersStopped if actual == Going => vec![(Actual, Going, "stopped")],
        Verb::TerminationFinished => {
            vec![(Actuated, Gone, ""), (Allocated, Gone, ""), (Actual, Over, "terminated")]
        }
        Verb::WorkerStopped if matches!(actual, Going | Over) && lane.phase(Desired) != Gone => {
            vec![(Actuated, Gone, ""), (Allocated, Gone, ""), (Actual, Over, "terminated")]
        }
        Verb::PodReleased | Verb::OrphanDirCleaned | Verb::WorkerStopped => {
            vec![(Allocated, Gone, ""), (Actuated, Gone, ""), (Actual, Gone, "")]
        }
        _ => Vec::new(),
    }
}
