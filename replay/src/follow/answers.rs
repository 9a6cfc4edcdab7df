//! What the core asks for while it follows, and how the trace answers: by what the node did, at once where no evidence is
//! ever written down (a pull, a status write), or not at all.

use super::{Follower, NOBODY, Stage};
use nodefold_core::command::{Action, Command};
use nodefold_core::event::{Fact, ProbeKind, SeenContainer, SeenMount, SeenSandbox, SeenState};
use nodefold_core::ids::{ContainerId, Name, OpId, PodUid, VolumeId};
use nodefold_core::time::Time;

/// A deed that both sides have a word for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A volume is mounted.
    Mount(Name),
    /// A volume is unmounted.
    Unmount(Name),
    /// A sandbox is made.
    Sandbox,
    /// A sandbox is stopped.
    StopSandbox,
    /// A sandbox is removed.
    RemoveSandbox,
    /// A container is made.
    Create(Name),
    /// A container is started.
    Start(Name),
    /// A container is stopped.
    Stop(Name),
    /// A container is removed.
    Remove(Name),
}

impl What {
    /// In words.
    pub fn describe(&self) -> String {
        match self {
            What::Mount(name) => format!("mount volume {name}"),
            What::Unmount(name) => format!("unmount volume {name}"),
            What::Sandbox => "create the sandbox".to_owned(),
            What::StopSandbox => "stop the sandbox".to_owned(),
            What::RemoveSandbox => "remove the sandbox".to_owned(),
            What::Create(name) => format!("create container {name}"),
            What::Start(name) => format!("start container {name}"),
            What::Stop(name) => format!("stop container {name}"),
            What::Remove(name) => format!("remove container {name}"),
        }
    }
}

/// An operation that the core asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its number.
    pub op: OpId,
    /// When.
    pub at: Time,
    /// Which life of a volume.
    pub volume: Option<VolumeId>,
    /// Which life of a container.
    pub container: Option<ContainerId>,
    /// Which attempt of a sandbox.
    pub attempt: u32,
}

impl Follower<'_> {
    /// Answers a command, now or later.
    pub(super) fn answer(&mut self, command: &Command) {
        let (op, pod) = (command.op, command.pod);
        let asked = Asked { op, at: self.now, volume: None, container: None, attempt: 0 };
        match &command.action {
            Action::MountVolume { volume, .. } => {
                self.ask(
                    pod,
                    What::Mount(volume.name.clone()),
                    Asked { volume: Some(volume.clone()), ..asked },
                );
            }
            Action::UnmountVolume { volume, .. } => {
                self.ask(
                    pod,
                    What::Unmount(volume.name.clone()),
                    Asked { volume: Some(volume.clone()), ..asked },
                );
            }
            Action::RefreshVolume { volume, .. } => {
                self.due.push_back(Fact::VolumeRefreshed { op, pod, volume: volume.clone(), renew_at: None });
            }
            Action::PullImage { container, image, .. } => self.due.push_back(Fact::ImagePulled {
                op,
                pod,
                container: container.clone(),
                image_id: image.clone(),
                already_present: true,
            }),
            Action::CreateSandbox { attempt, .. } => {
                self.ask(pod, What::Sandbox, Asked { attempt: *attempt, ..asked })
            }
            Action::StopSandbox { attempt } => match self.sandboxes.get(&pod) {
                Some((current, false)) if current == attempt => {
                    self.due.push_back(Fact::SandboxStopped { pod, attempt: *attempt });
                }
                _ => self.ask(pod, What::StopSandbox, Asked { attempt: *attempt, ..asked }),
            },
            // Removal is housekeeping that not every recording has: it is granted.
            Action::RemoveSandbox { attempt } => {
                self.due.push_back(Fact::SandboxRemoved { op, pod, attempt: *attempt });
            }
            Action::CreateContainer { container, .. } => {
                self.ask(
                    pod,
                    What::Create(container.name.clone()),
                    Asked { container: Some(container.clone()), ..asked },
                );
            }
            Action::StartContainer { container } => {
                self.ask(
                    pod,
                    What::Start(container.name.clone()),
                    Asked { container: Some(container.clone()), ..asked },
                );
            }
            Action::StopContainer { container, .. } | Action::KillContainer { container } => {
                self.asked
                    .entry((pod, What::Stop(container.name.clone())))
                    .or_insert(Asked { container: Some(container.clone()), ..asked });
            }
            Action::RemoveContainer { container } => {
                self.early.remove(&(pod, What::Remove(container.name.clone())));
                self.due.push_back(Fact::ContainerRemoved { op, pod, container: container.clone() });
            }
            Action::ResizeContainer { container, .. } => {
                self.due.push_back(Fact::ContainerResized { op, pod, container: container.clone() });
            }
            Action::ResizePod { .. } => self.due.push_back(Fact::PodResized { op, pod }),
            Action::RunHook { container, hook, .. } => {
                self.due.push_back(Fact::HookDone {
                    op,
                    pod,
                    container: container.clone(),
                    hook: *hook,
                    error: None,
                });
            }
            // Samples aren't recorded; a startup probe that failed for good shows as a restart.
            Action::StartProbe { container, probe, .. } => {
                if *probe != ProbeKind::Liveness {
                    self.due.push_back(Fact::ProbeResult {
                        pod,
                        container: container.clone(),
                        probe: *probe,
                        passed: true,
                        message: "".into(),
                    });
                }
            }
            Action::ObserveMounts => {
                let mounts =
                    self.mounted.iter().map(|((pod, _), v)| SeenMount { pod: *pod, volume: v.clone() });
                let mounts = mounts.collect();
                self.due.push_back(Fact::MountsObserved { op, mounts });
            }
            Action::ObserveRuntime => {
                let sandboxes = self.sandboxes.iter().map(|(pod, (attempt, ready))| SeenSandbox {
                    pod: *pod,
                    attempt: *attempt,
                    ready: *ready,
                    ip: None,
                });
                let sandboxes = sandboxes.collect();
                let containers = self.containers.iter().map(|((pod, _), (id, stage))| SeenContainer {
                    pod: *pod,
                    container: id.clone(),
                    state: match stage {
                        Stage::Created => SeenState::Created,
                        Stage::Running(started_at) => SeenState::Running { started_at: *started_at },
                        Stage::Exited(exit) => SeenState::Exited(exit.clone()),
                    },
                });
                let containers = containers.collect();
                self.due.push_back(Fact::RuntimeObserved { op, complete: true, sandboxes, containers });
            }
            Action::PublishStatus { .. } => self.due.push_back(Fact::StatusWritten { op, pod }),
            Action::StopProbe { .. }
            | Action::RecordEvent(_)
            | Action::ReleasePod
            | Action::CreateMirror { .. }
            | Action::DeleteMirror { .. } => {}
        }
    }

    /// The node may have done it already.
    fn ask(&mut self, pod: PodUid, what: What, asked: Asked) {
        match self.early.remove(&(pod, what.clone())) {
            Some(_) => {
                if let Some(fact) = self.completion(pod, &what, asked) {
                    self.due.push_back(fact);
                }
            }
            None => {
                self.asked.insert((pod, what), asked);
            }
        }
    }

    /// The fact that completes an operation.
    pub(super) fn completion(&mut self, pod: PodUid, what: &What, asked: Asked) -> Option<Fact> {
        let Asked { op, volume, container, attempt, .. } = asked;
        Some(match what {
            What::Mount(name) => {
                let volume = volume?;
                self.mounted.insert((pod, name.clone()), volume.clone());
                Fact::VolumeMounted { op, pod, volume, renew_at: None, image_digest: None }
            }
            What::Unmount(name) => {
                self.mounted.remove(&(pod, name.clone()));
                Fact::VolumeUnmounted { op, pod, volume: volume? }
            }
            What::Sandbox => {
                self.sandboxes.insert(pod, (attempt, true));
                Fact::SandboxReady { op, pod, attempt, ip: None }
            }
            What::StopSandbox => Fact::SandboxStopped { pod, attempt },
            What::RemoveSandbox => Fact::SandboxRemoved { op, pod, attempt },
            What::Create(name) => {
                let container = container?;
                self.containers.insert((pod, name.clone()), (container.clone(), Stage::Created));
                Fact::ContainerCreated { op, pod, container }
            }
            What::Start(name) => {
                let container = container?;
                self.containers.insert((pod, name.clone()), (container.clone(), Stage::Running(self.now)));
                Fact::ContainerStarted { op, pod, container }
            }
            What::Remove(_) => Fact::ContainerRemoved { op, pod, container: container? },
            // An exit is no completion: it comes with its own words.
            What::Stop(_) => return (op == NOBODY).then_some(Fact::Tick),
        })
    }
}
