//! A node on the bench: its host answers its commands at once with success, but for those that a case holds back or lets
//! fail. S1, S2 and S12 are checked on every command.

use crate::host::{Host, exit};
use crate::kit::POD;
pub use crate::words::{Op, kind};
use crate::words::{completed_volume, failure, told};
use nodefold_core::command::Action;
use nodefold_core::event::{Event, Fact, OpError, SeenState};
use nodefold_core::ids::{ContainerId, OpId, PodUid, Source, VolumeId};
use nodefold_core::spec::{Deletion, Pod, PodSpec};
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
    host: Host,
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
            host: Host::default(),
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
        self.host.mounts.clear();
        self.host.containers.clear();
        self.host.leases.clear();
        self.host.sandboxes.clear();
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
        let ended = self.host.end(POD, id, exit(code, self.now));
        self.fact(ended);
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
        for fact in self.do_unanswered(&command) {
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
        self.host.renewals.remove(volume);
        self.host.renewals.extend(after.map(|after| (volume.to_string(), after)));
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
        } else {
            due.extend(self.do_unanswered(&command));
        }
    }

    /// Does on the host what a command asks for. The answer is for the case to give, or not.
    pub fn do_unanswered(&mut self, command: &Command) -> Vec<Fact> {
        if let Action::PublishStatus { status, .. } = &command.action {
            self.published.insert(command.pod, status.clone());
        }
        self.host.carry_out(command, self.now)
    }

    /// The runtime's list as it is now.
    pub fn runtime_list(&self, op: OpId, complete: bool) -> Fact {
        self.host.runtime_list(op, complete)
    }

    /// S1, S2 and S12 as far as a host can see them.
    fn check(&mut self, command: &Command) {
        let pod = command.pod;
        match &command.action {
            Action::UnmountVolume { volume, .. } => {
                let holder =
                    self.host.leases.iter().find(|((p, _), leases)| *p == pod && leases.contains(volume));
                assert!(holder.is_none(), "S1: unmount of {volume} while {holder:?} has it");
                self.one_at_a_time(pod, volume, command.op);
            }
            Action::MountVolume { volume, .. } | Action::RefreshVolume { volume, .. } => {
                let other =
                    self.host.mounts.iter().find(|(p, v)| {
                        *p == pod && v.name == volume.name && v.generation != volume.generation
                    });
                assert!(other.is_none(), "S6: {volume} while {other:?} is on the host");
                self.one_at_a_time(pod, volume, command.op);
            }
            Action::CreateContainer { container, mounts, .. } => {
                let missing = mounts.iter().find(|m| !self.host.mounts.contains(&(pod, m.volume.clone())));
                assert!(missing.is_none(), "S2: create of {container} without {missing:?}");
            }
            Action::StartContainer { container } => {
                let Some(leases) = self.host.leases.get(&(pod, container.clone())) else { return };
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
        self.host.mounts.insert((pod, volume));
    }

    pub fn take_mount(&mut self, pod: PodUid, volume: &VolumeId) {
        self.host.mounts.remove(&(pod, volume.clone()));
    }

    pub fn put_container(&mut self, pod: PodUid, id: ContainerId, leases: Vec<VolumeId>) {
        let running = SeenState::Running { started_at: self.now };
        self.host.containers.insert((pod, id.clone()), running);
        self.host.leases.insert((pod, id), leases);
    }

    pub fn put_sandbox(&mut self, pod: PodUid, attempt: u32) {
        self.host.sandboxes.insert((pod, attempt), true);
    }

    pub fn is_mounted(&self, volume: &str) -> bool {
        self.host.mounts.iter().any(|(pod, v)| *pod == POD && &*v.name == volume)
    }

    /// How many containers of that name are made or run on the host.
    pub fn live_containers(&self, name: &str) -> usize {
        let live = |((_, id), state): &(&(PodUid, ContainerId), &SeenState)| {
            &*id.name == name && !matches!(state, SeenState::Exited(_))
        };
        self.host.containers.iter().filter(live).count()
    }

    pub fn end_on_host(&mut self, id: &ContainerId) {
        self.host.end(POD, id.clone(), exit(128, self.now));
    }

    pub fn is_live(&self, id: &ContainerId) -> bool {
        let state = self.host.containers.get(&(POD, id.clone()));
        state.is_some_and(|state| !matches!(state, SeenState::Exited(_)))
    }

    pub fn has_mount(&self, pod: PodUid, volume: &VolumeId) -> bool {
        self.host.mounts.contains(&(pod, volume.clone()))
    }

    pub fn mount_count(&self) -> usize {
        self.host.mounts.len()
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
