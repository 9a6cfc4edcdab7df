//! The host that the benches of the conformance tests stand on: it does what a command asks for, keeps what it then holds, and
//! says with which facts it ends. It decides nothing, and does not know when it is asked or what a case holds back.
#![allow(dead_code, reason = "each test program uses its part")]

use nodefold_core::Command;
use nodefold_core::command::Action;
use nodefold_core::event::{Exit, Fact, Mirror, ProbeKind, SeenContainer, SeenMount, SeenSandbox, SeenState};
use nodefold_core::ids::{ContainerId, Name, OpId, PodUid, VolumeId};
use nodefold_core::spec::VolumeSource;
use nodefold_core::time::{Nanos, Time};
use std::collections::{BTreeMap, BTreeSet};

/// The UIDs of mirror pods count from here.
pub const MIRRORS: PodUid = PodUid(1000);

/// See the file's head.
#[derive(Default)]
pub struct Host {
    pub containers: BTreeMap<(PodUid, ContainerId), SeenState>,
    /// Which volumes' mounts a container holds, until it ends or is removed.
    pub leases: BTreeMap<(PodUid, ContainerId), Vec<VolumeId>>,
    /// Whether each is ready.
    pub sandboxes: BTreeMap<(PodUid, u32), bool>,
    pub mounts: BTreeSet<(PodUid, VolumeId)>,
    /// Containers that end by themselves as soon as they run, with their exit code.
    pub ends: BTreeMap<String, i32>,
    /// With which code a container ends that is stopped (0 if not listed).
    pub stop_codes: BTreeMap<String, i32>,
    /// What a container's probes say once they are asked: startup, liveness, readiness.
    pub probes: BTreeMap<(String, ProbeKind), bool>,
    /// After how long the credential of a volume wants renewal.
    pub renewals: BTreeMap<String, Nanos>,
    mirrors: u128,
}

pub fn exit(code: i32, finished_at: Time) -> Exit {
    let reason = if code == 0 { "Completed" } else { "Error" };
    Exit { code, signal: None, reason: reason.into(), started_at: None, finished_at }
}

/// What a sandbox's address is, if it is ready.
fn ip(ready: bool) -> Option<Name> {
    ready.then(|| "10.0.0.1".into())
}

impl Host {
    /// Does what the command asks for, with success.
    pub fn carry_out(&mut self, command: &Command, now: Time) -> Vec<Fact> {
        let (op, pod) = (command.op, command.pod);
        let fact = match command.action.clone() {
            Action::MountVolume { volume, spec, .. } => {
                self.mounts.insert((pod, volume.clone()));
                let renew_at = self.renew_at(&volume, now);
                let image = matches!(spec.source, VolumeSource::Image { .. });
                let image_digest = image.then(|| "sha256:data".into());
                Fact::VolumeMounted { op, pod, volume, renew_at, image_digest }
            }
            Action::UnmountVolume { volume, .. } => {
                self.mounts.remove(&(pod, volume.clone()));
                Fact::VolumeUnmounted { op, pod, volume }
            }
            Action::RefreshVolume { volume, .. } => {
                let renew_at = self.renew_at(&volume, now);
                Fact::VolumeRefreshed { op, pod, volume, renew_at }
            }
            Action::PullImage { container, image, .. } => {
                let image_id = format!("sha256:{image}").into();
                Fact::ImagePulled { op, pod, container, image_id, already_present: false }
            }
            Action::CreateSandbox { attempt, .. } => {
                self.sandboxes.insert((pod, attempt), true);
                Fact::SandboxReady { op, pod, attempt, ip: ip(true) }
            }
            Action::StopSandbox { attempt } => {
                self.sandboxes.insert((pod, attempt), false);
                Fact::SandboxStopped { pod, attempt }
            }
            Action::RemoveSandbox { attempt } => {
                self.sandboxes.remove(&(pod, attempt));
                Fact::SandboxRemoved { op, pod, attempt }
            }
            Action::CreateContainer { container, mounts, .. } => {
                let key = (pod, container.clone());
                self.leases.insert(key.clone(), mounts.into_iter().map(|m| m.volume).collect());
                self.containers.insert(key, SeenState::Created);
                Fact::ContainerCreated { op, pod, container }
            }
            Action::StartContainer { container } => {
                self.containers.insert((pod, container.clone()), SeenState::Running { started_at: now });
                let started = Fact::ContainerStarted { op, pod, container: container.clone() };
                let ended = self.ends.get(&*container.name).copied();
                let ended = ended.map(|code| self.end(pod, container, exit(code, now)));
                return [started].into_iter().chain(ended).collect();
            }
            Action::StopContainer { container, .. } => {
                let code = self.stop_codes.get(&*container.name).copied().unwrap_or(0);
                self.end(pod, container, exit(code, now))
            }
            Action::KillContainer { container } => self.end(pod, container, exit(137, now)),
            Action::RemoveContainer { container } => {
                self.containers.remove(&(pod, container.clone()));
                self.leases.remove(&(pod, container.clone()));
                Fact::ContainerRemoved { op, pod, container }
            }
            Action::ResizeContainer { container, .. } => Fact::ContainerResized { op, pod, container },
            Action::ResizePod { .. } => Fact::PodResized { op, pod },
            Action::RunHook { container, hook, .. } => {
                Fact::HookDone { op, pod, container, hook, error: None }
            }
            Action::StartProbe { container, probe, .. } => {
                let says = self.probes.get(&(container.name.to_string(), probe)).copied();
                let message = "probe";
                let result =
                    |passed| Fact::ProbeResult { pod, container, probe, passed, message: message.into() };
                return says.map(result).into_iter().collect();
            }
            Action::StopProbe { .. } | Action::RecordEvent(_) => return Vec::new(),
            Action::ObserveMounts => {
                let seen =
                    |(pod, volume): &(PodUid, VolumeId)| SeenMount { pod: *pod, volume: volume.clone() };
                Fact::MountsObserved { op, mounts: self.mounts.iter().map(seen).collect() }
            }
            Action::ObserveRuntime => self.runtime_list(op, true),
            Action::PublishStatus { .. } => Fact::StatusWritten { op, pod },
            Action::ReleasePod => Fact::PodRemoved { pod },
            Action::CreateMirror { pod } => {
                self.mirrors += 1;
                let mirror = Mirror { uid: PodUid(MIRRORS.0 + self.mirrors), of: pod.uid, deleting: false };
                let (namespace, name) = (pod.namespace.clone(), pod.name.clone());
                Fact::MirrorCreated { op, namespace, name, mirror }
            }
            Action::DeleteMirror { namespace, name } => {
                Fact::MirrorDeleted { op, namespace, name, mirror: pod }
            }
        };
        vec![fact]
    }

    /// The container has ended, and tells what it ended with: the first time counts.
    pub fn end(&mut self, pod: PodUid, container: ContainerId, exit: Exit) -> Fact {
        let key = (pod, container.clone());
        let exit = match self.containers.get(&key) {
            Some(SeenState::Exited(before)) => before.clone(),
            Some(_) | None => exit,
        };
        self.leases.remove(&key);
        self.containers.insert(key, SeenState::Exited(exit.clone()));
        Fact::ContainerExited { pod, container, exit }
    }

    /// The runtime's list as it is now.
    pub fn runtime_list(&self, op: OpId, complete: bool) -> Fact {
        let (sandboxes, containers) = (self.seen_sandboxes(), self.seen_containers());
        Fact::RuntimeObserved { op, complete, sandboxes, containers }
    }

    pub fn seen_sandboxes(&self) -> Vec<SeenSandbox> {
        let seen = |(&(pod, attempt), &ready): (&(PodUid, u32), &bool)| SeenSandbox {
            pod,
            attempt,
            ready,
            ip: ip(ready),
        };
        self.sandboxes.iter().map(seen).collect()
    }

    pub fn seen_containers(&self) -> Vec<SeenContainer> {
        let seen = |((pod, id), state): (&(PodUid, ContainerId), &SeenState)| SeenContainer {
            pod: *pod,
            container: id.clone(),
            state: state.clone(),
        };
        self.containers.iter().map(seen).collect()
    }

    fn renew_at(&self, volume: &VolumeId, now: Time) -> Option<Time> {
        self.renewals.get(&*volume.name).map(|after| now.after(*after))
    }
}
