//! What went in and out of a brain so far, as a saboteur needs it to be wrong at the right moment. The truth: facts as they
//! came, commands as they were given. Nothing of the brain's own state, and nothing of the oracles'.

use crate::world::without_times;
use nodefold_core::codec;
use nodefold_core::command::{Action, Command, MountedVolume, Rule};
use nodefold_core::event::{ErrorClass, Event, Exit, Fact, SeenContainer, SeenState};
use nodefold_core::ids::{ContainerId, PodUid, VolumeId};
use nodefold_core::spec::{Container, Deletion, Pod, PodSpec, Volume};
use nodefold_core::status::PodStatus;
use nodefold_core::time::Time;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What went in and out.
#[derive(Clone, Default)]
pub struct Memory {
    /// How often the agent started.
    pub starts: u32,
    /// The time of the latest fact.
    pub now: Time,
    /// The host's boot when an agent started first, and now.
    pub boots: (Option<u128>, Option<u128>),
    /// A complete list of the runtime came since the agent started.
    pub runtime_seen: bool,
    /// Pods.
    pub pods: BTreeMap<PodUid, PodMemory>,
}

/// A pod.
#[derive(Clone, Default)]
pub struct PodMemory {
    /// As its source had it last.
    pub applied: Option<Arc<Pod>>,
    /// As its source had it first.
    pub first: Option<Arc<Pod>>,
    /// As its source had it before its spec changed last.
    pub former: Option<Arc<Pod>>,
    /// The allocation that a command carried last.
    pub allocated: Option<Arc<PodSpec>>,
    /// The allocation that commands carried before that one.
    pub allocated_before: Option<Arc<PodSpec>>,
    /// Its object is gone from its source.
    pub removed: bool,
    /// It came back to its source after it had been gone.
    pub returned: bool,
    /// Its deletion as it was asked for first.
    pub first_deletion: Option<Deletion>,
    /// Containers, by instance.
    pub containers: BTreeMap<ContainerId, ContainerMemory>,
    /// Volumes, by instance.
    pub volumes: BTreeMap<VolumeId, VolumeMemory>,
    /// The newest sandbox, and whether it runs.
    pub sandbox: Option<(u32, bool)>,
    /// The status published last.
    pub published: Option<Arc<PodStatus>>,
}

/// A container instance.
#[derive(Clone)]
pub struct ContainerMemory {
    /// Its definition.
    pub spec: Arc<Container>,
    /// Its mounts.
    pub mounts: Vec<MountedVolume>,
    /// The sandbox it was made in.
    pub sandbox: u32,
    /// How far it is.
    pub stage: Stage,
    /// How it ended.
    pub exit: Option<Exit>,
    /// A stop or kill of it was commanded.
    pub stopping: bool,
    /// Its start failed, and how the agent was told.
    pub start_failed: Option<Fact>,
}

/// How far a container is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Its creation was commanded.
    Creating,
    /// It exists.
    Created,
    /// It runs.
    Running,
    /// It has ended, or never came to be.
    Ended,
}

/// A volume instance.
#[derive(Clone)]
pub struct VolumeMemory {
    /// What it is made from.
    pub spec: Option<Arc<Volume>>,
    /// How far it is.
    pub stage: VolumeStage,
    /// It was removed from its pod, and unmounted for that.
    pub removed: bool,
}

/// How far a volume is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VolumeStage {
    /// Its mount was commanded.
    Mounting,
    /// A mount's outcome was never confirmed.
    Uncertain,
    /// It is mounted.
    Mounted,
    /// Its unmount was commanded.
    Unmounting,
    /// It is not there.
    Gone,
}

impl PodMemory {
    /// Running containers.
    pub fn running(&self) -> impl Iterator<Item = (&ContainerId, &ContainerMemory)> {
        self.containers.iter().filter(|(_, c)| c.stage == Stage::Running)
    }

    /// Containers that may have processes.
    pub fn live(&self) -> impl Iterator<Item = (&ContainerId, &ContainerMemory)> {
        self.containers.iter().filter(|(_, c)| c.stage != Stage::Ended)
    }

    /// Volumes that may be on the host.
    pub fn on_host(&self) -> impl Iterator<Item = (&VolumeId, &VolumeMemory)> {
        self.volumes.iter().filter(|(_, v)| v.stage != VolumeStage::Gone)
    }

    /// The newest instance of a name.
    pub fn newest(&self, name: &str) -> Option<(&ContainerId, &ContainerMemory)> {
        self.containers.iter().filter(|(id, _)| &*id.name == name).max_by_key(|(id, _)| (*id).clone())
    }

    /// The newest life of a volume's name.
    pub fn newest_volume(&self, name: &str) -> Option<(&VolumeId, &VolumeMemory)> {
        self.volumes.iter().filter(|(id, _)| &*id.name == name).max_by_key(|(id, _)| (*id).clone())
    }

    /// It is being deleted, or gone from its source.
    pub fn is_ending(&self) -> bool {
        self.removed || self.applied.as_ref().is_some_and(|pod| pod.deletion.is_some())
    }
}

impl Memory {
    /// The pod.
    pub fn pod(&self, uid: PodUid) -> Option<&PodMemory> {
        self.pods.get(&uid)
    }

    /// The container instance.
    pub fn container(&self, uid: PodUid, id: &ContainerId) -> Option<&ContainerMemory> {
        self.pods.get(&uid)?.containers.get(id)
    }

    /// Writes it without times: what an explorer tells states apart by.
    pub fn canonical(&self, out: &mut Vec<u8>) {
        let Memory { starts, now: _, boots, runtime_seen, pods } = self;
        codec::encode(&(starts, boots.0 == boots.1, runtime_seen), out);
        for (uid, pod) in pods {
            codec::encode(uid, out);
            pod.canonical(out);
        }
    }

    /// Takes a fact in.
    pub fn fact(&mut self, event: &Event) {
        self.now = event.at;
        if let Fact::AgentStarted { boot_id } = &event.fact {
            self.boots = (self.boots.0.or(Some(*boot_id)), Some(*boot_id));
            self.starts += 1;
            self.runtime_seen = false;
        } else if let Fact::RuntimeObserved { complete, containers, .. } = &event.fact {
            self.runtime_seen |= complete;
            containers.iter().for_each(|seen| self.seen(seen));
        } else if let Fact::PodApplied(pod) = &event.fact {
            let memory = self.pods.entry(pod.uid).or_default();
            if memory.applied.as_ref().is_none_or(|former| former.spec != pod.spec) {
                memory.former = memory.applied.take();
            }
            memory.first.get_or_insert_with(|| pod.clone());
            memory.applied = Some(pod.clone());
            memory.first_deletion = memory.first_deletion.or(pod.deletion);
            memory.returned |= std::mem::take(&mut memory.removed);
        } else if let Some(pod) = event.fact.pod().and_then(|uid| self.pods.get_mut(&uid)) {
            pod.fact(&event.fact);
        }
    }

    fn seen(&mut self, seen: &SeenContainer) {
        let Some(container) =
            self.pods.get_mut(&seen.pod).and_then(|p| p.containers.get_mut(&seen.container))
        else {
            return;
        };
        match &seen.state {
            SeenState::Created => container.stage = Stage::Created,
            SeenState::Running { .. } => container.stage = Stage::Running,
            SeenState::Exited(exit) => {
                container.stage = Stage::Ended;
                container.exit = Some(exit.clone());
            }
            SeenState::Unknown => {}
        }
    }

    /// Takes a command in.
    pub fn command(&mut self, command: &Command) {
        if command.pod == PodUid(0) {
            return;
        }
        self.pods.entry(command.pod).or_default().command(command.cause.rule, &command.action);
    }
}

impl PodMemory {
    fn canonical(&self, out: &mut Vec<u8>) {
        let PodMemory {
            applied,
            first,
            former,
            allocated,
            allocated_before,
            removed,
            returned,
            first_deletion,
            containers,
            volumes,
            sandbox,
            published,
        } = self;
        for pod in [applied, first, former] {
            let told =
                pod.as_deref().map(|pod| (codec::hash(&*pod.spec), pod.generation, pod.deletion.is_some()));
            codec::encode(&told, out);
        }
        for spec in [allocated, allocated_before] {
            codec::encode(&spec.as_deref().map(codec::hash), out);
        }
        codec::encode(&(removed, returned, first_deletion.is_some(), sandbox), out);
        for (id, container) in containers {
            let ContainerMemory { spec, mounts, sandbox, stage, exit, stopping, start_failed } = container;
            let ended = exit.as_ref().map(|exit| exit.code);
            codec::encode(&(id, codec::hash(&**spec), mounts, sandbox, *stage as u8), out);
            codec::encode(&(ended, stopping, start_failed.is_some()), out);
        }
        for (id, volume) in volumes {
            let VolumeMemory { spec, stage, removed } = volume;
            codec::encode(&(id, spec.as_deref().map(codec::hash), *stage as u8, removed), out);
        }
        codec::encode(&published.as_deref().map(|status| codec::hash(&without_times(status))), out);
    }

    fn volume_is(&mut self, id: &VolumeId, stage: VolumeStage) {
        if let Some(volume) = self.volumes.get_mut(id) {
            volume.stage = stage;
        }
    }

    fn container_is(&mut self, id: &ContainerId, stage: Stage) {
        if let Some(container) = self.containers.get_mut(id)
            && container.stage != Stage::Ended
        {
            container.stage = stage;
        }
    }

    fn fact(&mut self, fact: &Fact) {
        if let Fact::PodRemoved { .. } = fact {
            self.removed = true;
        } else if let Fact::VolumeMounted { volume, .. } = fact {
            self.volume_is(volume, VolumeStage::Mounted);
        } else if let Fact::VolumeMountFailed { volume, error, .. } = fact {
            if error.class == ErrorClass::Uncertain {
                self.volume_is(volume, VolumeStage::Uncertain);
            }
        } else if let Fact::VolumeUnmounted { volume, .. } = fact {
            self.volume_is(volume, VolumeStage::Gone);
        } else if let Fact::SandboxReady { attempt, .. } = fact {
            self.sandbox = Some((*attempt, true));
        } else if let Fact::SandboxStopped { attempt, .. } | Fact::SandboxRemoved { attempt, .. } = fact {
            if self.sandbox == Some((*attempt, true)) {
                self.sandbox = Some((*attempt, false));
            }
        } else if let Fact::ContainerCreated { container, .. } = fact {
            self.container_is(container, Stage::Created);
        } else if let Fact::ContainerStarted { container, .. } = fact {
            self.container_is(container, Stage::Running);
        } else if let Fact::ContainerCreateFailed { container, error, .. } = fact {
            if error.class != ErrorClass::Uncertain {
                self.container_is(container, Stage::Ended);
            }
        } else if let Fact::ContainerStartFailed { container, .. } = fact {
            if let Some(container) = self.containers.get_mut(container) {
                container.start_failed = Some(fact.clone());
            }
        } else if let Fact::ContainerExited { container, exit, .. } = fact {
            self.container_is(container, Stage::Ended);
            if let Some(ended) = self.containers.get_mut(container) {
                ended.exit = Some(exit.clone());
            }
        }
    }

    fn command(&mut self, rule: Rule, action: &Action) {
        if let Some(allocated) = carried(action)
            && self.allocated.as_ref() != Some(allocated)
        {
            self.allocated_before = self.allocated.replace(allocated.clone());
        }
        if let Action::MountVolume { volume, spec, .. } = action {
            let stays = self.volumes.get(volume).is_some_and(|v| v.stage == VolumeStage::Mounted);
            if !stays {
                let memory =
                    VolumeMemory { spec: Some(spec.clone()), stage: VolumeStage::Mounting, removed: false };
                self.volumes.insert(volume.clone(), memory);
            }
        } else if let Action::UnmountVolume { volume, spec } = action {
            let removed = rule == Rule::VolumeRemoved || self.volumes.get(volume).is_some_and(|v| v.removed);
            let memory = VolumeMemory { spec: spec.clone(), stage: VolumeStage::Unmounting, removed };
            self.volumes.insert(volume.clone(), memory);
        } else if let Action::CreateContainer { container, spec, mounts, sandbox, .. } = action {
            let memory = ContainerMemory {
                spec: spec.clone(),
                mounts: mounts.clone(),
                sandbox: *sandbox,
                stage: Stage::Creating,
                exit: None,
                stopping: false,
                start_failed: None,
            };
            self.containers.insert(container.clone(), memory);
        } else if let Action::StopContainer { container, .. } | Action::KillContainer { container } = action {
            if let Some(container) = self.containers.get_mut(container) {
                container.stopping = true;
            }
        } else if let Action::PublishStatus { status, .. } = action {
            self.published = Some(status.clone());
        }
    }
}

/// The allocation that an action carries.
pub fn carried(action: &Action) -> Option<&Arc<PodSpec>> {
    if let Action::MountVolume { allocated, .. }
    | Action::RefreshVolume { allocated, .. }
    | Action::CreateSandbox { allocated, .. }
    | Action::CreateContainer { allocated, .. } = action
    {
        return Some(allocated);
    }
    None
}
