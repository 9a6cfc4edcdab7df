//! A node on the bench: it answers the node's commands at once with success, but for those that a case holds back or
//! lets fail, keeps what a host would hold, and checks S1, S2 and S12 on every command by itself.

use crate::kit::{POD, exit};
pub use crate::words::{Op, kind};
use crate::words::{completed_volume, failure, told};
use nodefold_core::command::Action;
use nodefold_core::event::{Event, Fact, Mirror, OpError, SeenContainer, SeenMount, SeenSandbox, SeenState};
use nodefold_core::ids::{ContainerId, Name, OpId, PodUid, Source, VolumeId};
use nodefold_core::spec::{Deletion, Pod, PodSpec, VolumeSource};
use nodefold_core::status::{ContainerState, ContainerStatus, HostPhase, PodPhase, PodStatus};
use nodefold_core::time::{Nanos, Time};
use nodefold_core::{Command, Commands, Config, Node};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// See the file's head.
pub struct Bench {
    pub node: Node,
    pub now: Time,
    /// Every command given since the log was cleared, with its time.
    pub log: Vec<(Time, Command)>,
    /// Commands that were held back, oldest first.
    pub held: Vec<Command>,
    /// What the node was last asked to publish, by pod.
    pub published: BTreeMap<PodUid, Arc<PodStatus>>,
    /// Every event that was applied.
    pub events: Vec<Event>,
    /// Nothing is answered by itself.
    pub manual: bool,
    /// S1, S2 and S12 are checked; not where a case lies to the node.
    pub honest: bool,
    hold: BTreeSet<(Op, String)>,
    failing: BTreeMap<(Op, String), OpError>,
    renewals: BTreeMap<String, Option<Nanos>>,
    mounts: BTreeSet<(PodUid, VolumeId)>,
    containers: BTreeMap<(PodUid, ContainerId), (SeenState, Vec<VolumeId>)>,
    sandboxes: BTreeMap<(PodUid, u32), SeenSandbox>,
    volume_ops: BTreeMap<(PodUid, VolumeId), OpId>,
    boot_id: u128,
}

impl Bench {
    /// A node that was started, has looked at an empty host, and has all its sources.
    pub fn new(config: Config) -> Bench {
        let mut bench = Bench::cold(config);
        bench.boot();
        bench
    }

    /// A node that has seen nothing yet.
    pub fn cold(config: Config) -> Bench {
        Bench {
            node: Node::new(config),
            now: Time(1_000_000_000_000),
            log: Vec::new(),
            held: Vec::new(),
            published: BTreeMap::new(),
            events: Vec::new(),
            manual: false,
            honest: true,
            hold: BTreeSet::new(),
            failing: BTreeMap::new(),
            renewals: BTreeMap::new(),
            mounts: BTreeSet::new(),
            containers: BTreeMap::new(),
            sandboxes: BTreeMap::new(),
            volume_ops: BTreeMap::new(),
            boot_id: 1,
        }
    }

    /// A bench with this pod running on it, its log cleared.
    pub fn running(pod: Pod) -> Bench {
        let mut bench = Bench::new(crate::kit::config(4000));
        bench.apply(pod);
        assert_eq!(bench.status().phase, PodPhase::Running, "the given pod runs: {:?}", bench.story());
        bench.log.clear();
        bench
    }

    // --- facts ---------------------------------------------------------------------------------------------------

    /// Applies a fact now, then answers what it caused.
    pub fn fact(&mut self, fact: Fact) {
        let mut due = VecDeque::from([fact]);
        let mut steps = 0;
        loop {
            let next = match due.pop_front() {
                Some(fact) => fact,
                None if self.node.next_deadline().is_some_and(|at| at <= self.now) => Fact::Tick,
                None => return,
            };
            steps += 1;
            assert!(steps < 10_000, "the node never rests: {:?}", self.story());
            let event = Event { at: self.now, fact: next };
            if let Some((pod, volume)) = completed_volume(&event.fact) {
                self.volume_ops.remove(&(pod, volume));
            }
            let mut out = Commands::default();
            self.node.apply(&event, &mut out);
            self.events.push(event);
            for command in out.commands {
                if self.honest {
                    self.check(&command);
                }
                self.log.push((self.now, command.clone()));
                self.carry_out(command, &mut due);
            }
        }
    }

    pub fn boot(&mut self) {
        self.fact(Fact::AgentStarted { boot_id: self.boot_id });
        self.sources_ready();
    }

    pub fn sources_ready(&mut self) {
        self.fact(Fact::SourceReady { source: Source::Api });
        self.fact(Fact::SourceReady { source: Source::File });
    }

    /// The agent dies: what was held back is never answered. It starts anew, without its sources.
    pub fn restart(&mut self) {
        self.held.clear();
        self.volume_ops.clear();
        self.fact(Fact::AgentStarted { boot_id: self.boot_id });
    }

    /// The host reboots: nothing runs and nothing is mounted any more.
    pub fn reboot(&mut self) {
        self.boot_id += 1;
        self.mounts.clear();
        self.containers.clear();
        self.sandboxes.clear();
        self.restart();
    }

    /// A restart after which the sources deliver what they did before.
    pub fn restart_whole(&mut self) {
        self.restart();
        self.relist();
    }

    /// The API source delivers every pod anew, and both sources are ready.
    pub fn relist(&mut self) {
        for uid in self.node.pods() {
            let known = self.node.pod(uid).is_some_and(|p| !p.object_gone);
            if let Some(pod) = self.node.desired(uid).filter(|_| known) {
                self.fact(Fact::PodApplied(pod));
            }
        }
        self.sources_ready();
    }

    pub fn apply(&mut self, pod: Pod) {
        self.fact(Fact::PodApplied(Arc::new(pod)));
    }

    /// The pod's next version.
    pub fn change(&mut self, change: impl FnOnce(&mut PodSpec)) {
        let mut pod = (*self.node.desired(POD).expect("the pod is known")).clone();
        change(Arc::make_mut(&mut pod.spec));
        pod.generation += 1;
        self.apply(pod);
    }

    pub fn delete(&mut self, grace: Nanos) {
        let mut pod = (*self.node.desired(POD).expect("the pod is known")).clone();
        pod.deletion = Some(Deletion { requested_at: self.now, grace });
        self.apply(pod);
    }

    pub fn object(&mut self, name: &str, digest: u128) {
        let object = crate::kit::object_ref(name);
        self.fact(Fact::ObjectSeen { object, version: crate::kit::version(digest) });
    }

    /// The container ends by itself.
    pub fn exits(&mut self, name: &str, code: i32) {
        let id = self.instance(name).expect("the container has an instance");
        self.containers.insert((POD, id.clone()), (SeenState::Exited(exit(code, self.now)), Vec::new()));
        self.fact(Fact::ContainerExited { pod: POD, container: id, exit: exit(code, self.now) });
    }

    /// Time passes; every deadline on the way is answered with a tick.
    pub fn pass(&mut self, time: Nanos) {
        let until = self.now.after(time);
        let mut ticks = 0;
        while let Some(at) = self.node.next_deadline().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.fact(Fact::Tick);
            ticks += 1;
            assert!(ticks < 10_000, "busy timers: {:?}", self.node.deadlines().next());
        }
        self.now = until;
        self.fact(Fact::Tick);
    }

    // --- answers -------------------------------------------------------------------------------------------------

    /// Commands of this kind about this name are not answered from now on.
    pub fn hold(&mut self, op: Op, name: &str) {
        self.hold.insert((op, name.into()));
    }

    /// They are again; those held back are answered with success now.
    pub fn let_go(&mut self, op: Op, name: &str) {
        self.hold.remove(&(op, name.into()));
        while self.held.iter().any(|c| kind(c) == (op, name.into())) {
            self.finish(op, name);
        }
    }

    /// Answers the oldest one held back with success.
    pub fn finish(&mut self, op: Op, name: &str) {
        let command = self.take_held(op, name);
        if let Some(fact) = self.succeed(&command) {
            self.fact(fact);
        }
    }

    /// Answers the oldest one held back with this failure.
    pub fn fail(&mut self, op: Op, name: &str, error: OpError) {
        let command = self.take_held(op, name);
        self.fact(failure(&command, error));
    }

    /// Commands of this kind about this name fail from now on, at once.
    pub fn failing(&mut self, op: Op, name: &str, error: OpError) {
        self.failing.insert((op, name.into()), error);
    }

    pub fn works_again(&mut self, op: Op, name: &str) {
        self.failing.remove(&(op, name.into()));
    }

    /// Mounts and refreshes of this volume say that its credential wants renewal after so long.
    pub fn renews(&mut self, volume: &str, after: Option<Nanos>) {
        self.renewals.insert(volume.into(), after);
    }

    pub fn is_held(&self, op: Op, name: &str) -> bool {
        self.held.iter().any(|c| kind(c) == (op, name.into()))
    }

    pub fn take_held(&mut self, op: Op, name: &str) -> Command {
        let at = self.held.iter().position(|c| kind(c) == (op, name.into()));
        self.held
            .remove(at.unwrap_or_else(|| panic!("no {op:?} of {name:?} is held back: {:?}", self.story())))
    }

    fn carry_out(&mut self, command: Command, due: &mut VecDeque<Fact>) {
        let what = kind(&command);
        if self.hold.contains(&what) || (self.manual && !matches!(what.0, Op::Tell | Op::Probe)) {
            self.held.push(command);
        } else if let Some(error) = self.failing.get(&what) {
            due.push_back(failure(&command, error.clone()));
        } else if let Some(fact) = self.succeed(&command) {
            due.push_back(fact);
        }
    }

    /// Does on the host what the command asks for.
    fn succeed(&mut self, command: &Command) -> Option<Fact> {
        let (op, pod, now) = (command.op, command.pod, self.now);
        Some(match command.action.clone() {
            Action::MountVolume { volume, spec, .. } => {
                self.mounts.insert((pod, volume.clone()));
                let renew_at = self.renewals.get(&*volume.name).copied().flatten().map(|d| now.after(d));
                let image = matches!(spec.source, VolumeSource::Image { .. });
                let image_digest = image.then(|| "sha256:data".into());
                Fact::VolumeMounted { op, pod, volume, renew_at, image_digest }
            }
            Action::UnmountVolume { volume, .. } => {
                self.mounts.remove(&(pod, volume.clone()));
                Fact::VolumeUnmounted { op, pod, volume }
            }
            Action::RefreshVolume { volume, .. } => {
                let renew_at = self.renewals.get(&*volume.name).copied().flatten().map(|d| now.after(d));
                Fact::VolumeRefreshed { op, pod, volume, renew_at }
            }
            Action::PullImage { container, image, .. } => {
                let image_id = format!("sha256:{image}").into();
                Fact::ImagePulled { op, pod, container, image_id, already_present: false }
            }
            Action::CreateSandbox { attempt, .. } => {
                let ip: Option<Name> = Some("10.0.0.1".into());
                let seen = SeenSandbox { pod, attempt, ready: true, ip: ip.clone() };
                self.sandboxes.insert((pod, attempt), seen);
                Fact::SandboxReady { op, pod, attempt, ip }
            }
            Action::StopSandbox { attempt } => {
                if let Some(seen) = self.sandboxes.get_mut(&(pod, attempt)) {
                    seen.ready = false;
                }
                Fact::SandboxStopped { pod, attempt }
            }
            Action::RemoveSandbox { attempt } => {
                self.sandboxes.remove(&(pod, attempt));
                Fact::SandboxRemoved { op, pod, attempt }
            }
            Action::CreateContainer { container, mounts, .. } => {
                let leases = mounts.into_iter().map(|m| m.volume).collect();
                self.containers.insert((pod, container.clone()), (SeenState::Created, leases));
                Fact::ContainerCreated { op, pod, container }
            }
            Action::StartContainer { container } => {
                if let Some((state, _)) = self.containers.get_mut(&(pod, container.clone())) {
                    *state = SeenState::Running { started_at: now };
                }
                Fact::ContainerStarted { op, pod, container }
            }
            Action::StopContainer { container, .. } => self.end(pod, container, 0),
            Action::KillContainer { container } => self.end(pod, container, 137),
            Action::RemoveContainer { container } => {
                self.containers.remove(&(pod, container.clone()));
                Fact::ContainerRemoved { op, pod, container }
            }
            Action::ResizeContainer { container, .. } => Fact::ContainerResized { op, pod, container },
            Action::ResizePod { .. } => Fact::PodResized { op, pod },
            Action::RunHook { container, hook, .. } => {
                Fact::HookDone { op, pod, container, hook, error: None }
            }
            Action::StartProbe { .. } | Action::StopProbe { .. } | Action::RecordEvent(_) => return None,
            Action::ObserveMounts => {
                let seen =
                    |(pod, volume): &(PodUid, VolumeId)| SeenMount { pod: *pod, volume: volume.clone() };
                Fact::MountsObserved { op, mounts: self.mounts.iter().map(seen).collect() }
            }
            Action::ObserveRuntime => self.runtime_list(op, true),
            Action::PublishStatus { status, .. } => {
                self.published.insert(pod, status);
                Fact::StatusWritten { op, pod }
            }
            Action::ReleasePod => Fact::PodRemoved { pod },
            Action::CreateMirror { pod } => {
                let mirror = Mirror { uid: PodUid(!pod.uid.0), of: pod.uid, deleting: false };
                let (namespace, name) = (pod.namespace.clone(), pod.name.clone());
                Fact::MirrorCreated { op, namespace, name, mirror }
            }
            Action::DeleteMirror { namespace, name } => {
                Fact::MirrorDeleted { op, namespace, name, mirror: pod }
            }
        })
    }

    fn end(&mut self, pod: PodUid, container: ContainerId, code: i32) -> Fact {
        let exit = exit(code, self.now);
        self.containers.insert((pod, container.clone()), (SeenState::Exited(exit.clone()), Vec::new()));
        Fact::ContainerExited { pod, container, exit }
    }

    /// Does on the host what a command asks for. The answer is for the case to give, or not.
    pub fn do_unanswered(&mut self, command: &Command) -> Option<Fact> {
        self.succeed(command)
    }

    /// The runtime's list as it is now.
    pub fn runtime_list(&self, op: OpId, complete: bool) -> Fact {
        let seen = |((pod, container), (state, _)): (&(PodUid, ContainerId), &(SeenState, Vec<VolumeId>))| {
            SeenContainer { pod: *pod, container: container.clone(), state: state.clone() }
        };
        Fact::RuntimeObserved {
            op,
            complete,
            sandboxes: self.sandboxes.values().cloned().collect(),
            containers: self.containers.iter().map(seen).collect(),
        }
    }

    /// S1, S2 and S12 as far as a host can see them.
    fn check(&mut self, command: &Command) {
        let pod = command.pod;
        match &command.action {
            Action::UnmountVolume { volume, .. } => {
                let holder = self.containers.iter().find(|((p, _), (state, leases))| {
                    *p == pod && leases.contains(volume) && !matches!(state, SeenState::Exited(_))
                });
                assert!(holder.is_none(), "S1: unmount of {volume} while {holder:?} has it");
                self.one_at_a_time(pod, volume, command.op);
            }
            Action::MountVolume { volume, .. } | Action::RefreshVolume { volume, .. } => {
                let other = self
                    .mounts
                    .iter()
                    .find(|(p, v)| *p == pod && v.name == volume.name && v.generation != volume.generation);
                assert!(other.is_none(), "S6: {volume} while {other:?} is on the host");
                self.one_at_a_time(pod, volume, command.op);
            }
            Action::CreateContainer { container, mounts, .. } => {
                let missing = mounts.iter().find(|m| !self.mounts.contains(&(pod, m.volume.clone())));
                assert!(missing.is_none(), "S2: create of {container} without {missing:?}");
            }
            Action::StartContainer { container } => {
                let Some((_, leases)) = self.containers.get(&(pod, container.clone())) else { return };
                let record = self.node.pod(pod).expect("a pod that is commanded is known");
                let allocated = |id: &&VolumeId| record.volumes.iter().any(|v| v.id == **id && v.is_ready());
                let wrong = leases.iter().find(|id| !allocated(id));
                assert!(
                    wrong.is_none(),
                    "S2: start of {container} with {wrong:?}, which is not what is allocated"
                );
            }
            _ => {}
        }
    }

    fn one_at_a_time(&mut self, pod: PodUid, volume: &VolumeId, op: OpId) {
        let before = self.volume_ops.insert((pod, volume.clone()), op);
        assert!(before.is_none(), "S12: operation {op:?} on {volume} while {before:?} is in flight");
    }

    // --- the host, changed behind the node's back ----------------------------------------------------------------

    pub fn put_mount(&mut self, pod: PodUid, volume: VolumeId) {
        self.mounts.insert((pod, volume));
    }

    pub fn take_mount(&mut self, pod: PodUid, volume: &VolumeId) {
        self.mounts.remove(&(pod, volume.clone()));
    }

    pub fn put_container(&mut self, pod: PodUid, id: ContainerId, leases: Vec<VolumeId>) {
        self.containers.insert((pod, id), (SeenState::Running { started_at: self.now }, leases));
    }

    pub fn put_sandbox(&mut self, pod: PodUid, attempt: u32) {
        let ip: Option<Name> = Some("10.0.0.1".into());
        self.sandboxes.insert((pod, attempt), SeenSandbox { pod, attempt, ready: true, ip });
    }

    pub fn is_mounted(&self, volume: &str) -> bool {
        self.mounts.iter().any(|(pod, v)| *pod == POD && &*v.name == volume)
    }

    /// How many containers of that name are made or run on the host.
    pub fn live_containers(&self, name: &str) -> usize {
        let live = |((_, id), (state, _)): &(&(PodUid, ContainerId), &(SeenState, Vec<VolumeId>))| {
            &*id.name == name && !matches!(state, SeenState::Exited(_))
        };
        self.containers.iter().filter(live).count()
    }

    pub fn end_on_host(&mut self, id: &ContainerId) {
        let exited = SeenState::Exited(exit(128, self.now));
        self.containers.insert((POD, id.clone()), (exited, Vec::new()));
    }

    pub fn is_live(&self, id: &ContainerId) -> bool {
        self.containers
            .get(&(POD, id.clone()))
            .is_some_and(|(state, _)| !matches!(state, SeenState::Exited(_)))
    }

    pub fn has_mount(&self, pod: PodUid, volume: &VolumeId) -> bool {
        self.mounts.contains(&(pod, volume.clone()))
    }

    pub fn mount_count(&self) -> usize {
        self.mounts.len()
    }

    // --- questions -----------------------------------------------------------------------------------------------

    pub fn status(&self) -> PodStatus {
        self.node.status(POD).expect("the pod has a status")
    }

    /// `hostPhase`, or none if there is no entry.
    pub fn phase(&self, volume: &str) -> Option<HostPhase> {
        self.status().volumes.iter().find(|v| &*v.name == volume).map(|v| v.phase)
    }

    pub fn error_message(&self, volume: &str) -> String {
        let status = self.status();
        let found = status.volumes.iter().find(|v| &*v.name == volume);
        found.expect("the volume has an entry").error_message.to_string()
    }

    pub fn row(&self, container: &str) -> Option<ContainerStatus> {
        self.status().containers.into_iter().find(|c| &*c.name == container)
    }

    pub fn waiting_reason(&self, container: &str) -> Option<String> {
        match self.row(container)?.state {
            ContainerState::Waiting { reason, .. } => Some(reason.to_string()),
            ContainerState::Running { .. } | ContainerState::Terminated(_) => None,
        }
    }

    pub fn is_running(&self, container: &str) -> bool {
        self.row(container).is_some_and(|r| matches!(r.state, ContainerState::Running { .. }))
    }

    /// The current instance of a container of the pod.
    pub fn instance(&self, name: &str) -> Option<ContainerId> {
        let all = self.node.instances(POD);
        all.into_iter().map(|(id, _)| id).find(|id| &*id.name == name)
    }

    pub fn retained(&self) -> Vec<String> {
        let allocated = self.node.allocated(POD).expect("the pod is allocated");
        allocated.retained.iter().map(|r| r.volume.to_string()).collect()
    }

    pub fn allocated_volumes(&self) -> Vec<String> {
        let allocated = self.node.allocated(POD).expect("the pod is allocated");
        allocated.spec.volumes.iter().map(|v| v.name.to_string()).collect()
    }

    /// How often this was asked for since the log was cleared.
    pub fn count(&self, op: Op, name: &str) -> usize {
        self.log.iter().filter(|(_, c)| kind(c) == (op, name.into())).count()
    }

    /// The messages of Kubernetes Events with this reason since the log was cleared.
    pub fn events_told(&self, reason: &str) -> Vec<String> {
        let message = |(_, c): &(Time, Command)| match &c.action {
            Action::RecordEvent(event) if &*event.reason == reason => Some(event.message.to_string()),
            _ => None,
        };
        self.log.iter().filter_map(message).collect()
    }

    /// When this was asked for, relative to `since`.
    pub fn times(&self, op: Op, name: &str, since: Time) -> Vec<Nanos> {
        self.log.iter().filter(|(_, c)| kind(c) == (op, name.into())).map(|(at, _)| at.since(since)).collect()
    }

    /// What was done to volumes and containers since the log was cleared, in order: `mount v#0`, `stop a#0.0`, ...
    pub fn story(&self) -> Vec<String> {
        self.log.iter().filter_map(|(_, command)| told(command)).collect()
    }

    /// As `story`, and forgets it.
    pub fn take_story(&mut self) -> Vec<String> {
        let story = self.story();
        self.log.clear();
        story
    }
}
