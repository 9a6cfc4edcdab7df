//! One pod as a trace tells it.

use super::allocation::AllocationView;
use super::container::{ContainerView, Life, Role, find_container};
use super::operations::InFlight;
use super::volume::{Host, VolumeView};
use nodefold_core::event::Exit;
use nodefold_core::ids::{ContainerId, Name, OpId, PodUid, Source, VolumeId};
use nodefold_core::spec::{Container, Pod, PodSpec, RestartAction, RestartPolicy};
use nodefold_core::status::PodStatus;
use nodefold_core::time::Time;
use std::collections::VecDeque;
use std::sync::Arc;

/// Ended instances kept of each incarnation: `state` and `lastState` speak of no more.
const ENDED_KEPT: usize = 2;
/// Ended instances and gone volumes kept of a pod at all.
const HISTORY_KEPT: usize = 32;

/// Why and since when a pod's life is ending.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Termination {
    /// The record that began it.
    pub index: usize,
    /// What that record is, in words.
    pub cause: &'static str,
}

/// A sandbox.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SandboxView {
    /// Which attempt.
    pub attempt: u32,
    /// It may run.
    pub live: bool,
    /// The record that says so.
    pub index: usize,
}

/// An init container done, or a sidecar up, in a sandbox.
#[derive(Clone, Debug)]
pub struct InitDone {
    /// Which container.
    pub name: Name,
    /// In which sandbox attempt.
    pub sandbox: u32,
}

/// The terminal status handed to the API last.
#[derive(Copy, Clone, Debug)]
pub struct TerminalStatus {
    /// The write.
    pub op: OpId,
    /// Its record.
    pub index: usize,
    /// The record that acknowledged it.
    pub acknowledged: Option<usize>,
}

/// A pod.
#[derive(Clone, Debug)]
pub struct PodView {
    /// Which.
    pub uid: PodUid,
    /// As its source had it last.
    pub applied: Option<Arc<Pod>>,
    /// The record of that.
    pub applied_index: usize,
    /// It was applied since the agent started.
    pub applied_this_epoch: bool,
    /// It left its source at this record.
    pub left_source: Option<usize>,
    /// The API server refused its latest status for good, at this record.
    pub status_refused: Option<usize>,
    /// It came back to its source after having left: a life to begin once this one is over (B6).
    pub wanted_again: Option<usize>,
    /// It was forgotten before, and came back: what is said before anything begins may be of the former life.
    pub came_back: bool,
    /// Its allocation.
    pub allocation: AllocationView,
    /// Its end has begun.
    pub termination: Option<Termination>,
    /// When its containers are to be killed at the latest, and the record that says so.
    pub deadline: Option<(Time, usize)>,
    /// Container instances.
    pub containers: Vec<ContainerView>,
    /// Volume instances.
    pub volumes: Vec<VolumeView>,
    /// Sandboxes.
    pub sandboxes: Vec<SandboxView>,
    /// Init containers done.
    pub init_done: Vec<InitDone>,
    /// It ran before the trace begins, so that initialization can't be judged.
    pub ran_before_trace: bool,
    /// A rule asked for RestartAllContainers at this record (KEP-5532).
    pub restart_all: Option<usize>,
    /// Operations in flight.
    pub in_flight: Vec<InFlight>,
    /// The operation commanded last.
    pub last_op: Option<OpId>,
    /// The one before the agent's latest start.
    pub last_op_before: Option<OpId>,
    /// Operations answered since, the latest ones.
    pub answered: VecDeque<OpId>,
    /// The status published last, and its record.
    pub published: Option<(usize, Arc<PodStatus>)>,
    /// The terminal status published last.
    pub terminal: Option<TerminalStatus>,
    /// Its release was commanded.
    pub released: Option<usize>,
}

impl PodView {
    /// A pod of which nothing is known.
    pub fn new(uid: PodUid) -> PodView {
        PodView {
            uid,
            applied: None,
            applied_index: 0,
            applied_this_epoch: false,
            left_source: None,
            status_refused: None,
            wanted_again: None,
            came_back: false,
            allocation: AllocationView::default(),
            termination: None,
            deadline: None,
            containers: Vec::new(),
            volumes: Vec::new(),
            sandboxes: Vec::new(),
            init_done: Vec::new(),
            ran_before_trace: false,
            restart_all: None,
            in_flight: Vec::new(),
            last_op: None,
            last_op_before: None,
            answered: VecDeque::new(),
            published: None,
            terminal: None,
            released: None,
        }
    }

    /// The container.
    pub fn container(&self, id: &ContainerId) -> Option<&ContainerView> {
        self.containers.iter().find(|c| &c.id == id)
    }

    /// The container, to change.
    pub fn container_mut(&mut self, id: &ContainerId) -> Option<&mut ContainerView> {
        self.containers.iter_mut().find(|c| &c.id == id)
    }

    /// The container, made up if the trace never created it.
    pub fn container_or_stub(&mut self, id: &ContainerId, life: Life, index: usize) -> &mut ContainerView {
        let place = match self.containers.iter().position(|c| &c.id == id) {
            Some(place) => place,
            None => {
                self.containers.push(ContainerView::new(id.clone(), life, index));
                self.containers.len() - 1
            }
        };
        &mut self.containers[place]
    }

    /// The volume.
    pub fn volume(&self, id: &VolumeId) -> Option<&VolumeView> {
        self.volumes.iter().find(|v| &v.id == id)
    }

    /// The volume, to change.
    pub fn volume_mut(&mut self, id: &VolumeId) -> Option<&mut VolumeView> {
        self.volumes.iter_mut().find(|v| &v.id == id)
    }

    /// The volume, made up if the trace never mounted it.
    pub fn volume_or_stub(&mut self, id: &VolumeId, host: Host, index: usize) -> &mut VolumeView {
        let place = match self.volumes.iter().position(|v| &v.id == id) {
            Some(place) => place,
            None => {
                self.volumes.push(VolumeView::new(id.clone(), host, index));
                self.volumes.len() - 1
            }
        };
        &mut self.volumes[place]
    }

    /// Whether it is a static pod.
    pub fn is_static(&self) -> bool {
        self.applied.as_ref().is_some_and(|p| p.source == Source::File)
    }

    /// A container that may still have processes, if there is one.
    pub fn running(&self) -> Option<&ContainerView> {
        self.containers.iter().find(|c| c.may_run())
    }

    /// Nothing of it lives: no process, nothing on the host.
    pub fn is_quiet(&self) -> bool {
        self.running().is_none() && !self.volumes.iter().any(VolumeView::may_be_on_host)
    }

    /// A sandbox of it may run.
    pub fn has_a_sandbox(&self) -> bool {
        self.sandboxes.iter().any(|s| s.live)
    }

    /// Its end begins, unless it has.
    pub fn begin_termination(&mut self, index: usize, cause: &'static str) {
        self.termination.get_or_insert(Termination { index, cause });
    }

    /// A command showed the allocation. What it lacks has been removed.
    pub fn show_allocation(&mut self, index: usize, spec: &Arc<PodSpec>) {
        self.allocation.show(index, spec);
        for container in &mut self.containers {
            if container.role != Role::Ephemeral && find_container(spec, &container.id.name).is_none() {
                container.removed.get_or_insert(index);
            }
        }
        for volume in &mut self.volumes {
            let kept =
                spec.volume(&volume.id.name).is_some_and(|v| volume.spec.as_ref().is_none_or(|own| own == v));
            if !kept {
                volume.removed.get_or_insert(index);
            }
        }
    }

    /// Notes in what each instance differs from a version that is desired.
    pub fn note_changes(&mut self, index: usize, spec: &PodSpec) {
        for volume in &mut self.volumes {
            let kept =
                spec.volume(&volume.id.name).is_some_and(|v| volume.spec.as_ref().is_none_or(|own| own == v));
            if !kept {
                volume.changed.get_or_insert(index);
            }
        }
        let volumes = &self.volumes;
        for container in &mut self.containers {
            note_container_changes(container, volumes, index, spec);
        }
    }

    /// Notes for one new instance in what it differs from every version that may be allocated.
    pub fn note_changes_of(&mut self, id: &ContainerId) {
        let versions: Vec<(usize, Arc<PodSpec>)> =
            self.allocation.versions.iter().map(|v| (v.index, v.spec.clone())).collect();
        let volumes = &self.volumes;
        if let Some(container) = self.containers.iter_mut().find(|c| &c.id == id) {
            for (index, spec) in &versions {
                note_container_changes(container, volumes, *index, spec);
            }
        }
    }

    /// Forgets what no later record can speak of.
    pub fn prune(&mut self) {
        if self.containers.len() > ENDED_KEPT {
            let mut kept: Vec<ContainerView> = Vec::with_capacity(self.containers.len());
            let mut ended = 0;
            for container in std::mem::take(&mut self.containers).into_iter().rev() {
                let same = kept
                    .iter()
                    .filter(|k| {
                        k.id.name == container.id.name && k.id.incarnation == container.id.incarnation
                    })
                    .count();
                let keep = container.may_run() || (same <= ENDED_KEPT && ended < HISTORY_KEPT);
                if keep {
                    ended += usize::from(!container.may_run());
                    kept.push(container);
                }
            }
            kept.reverse();
            self.containers = kept;
        }
        while self.volumes.len() > HISTORY_KEPT {
            match self.volumes.iter().position(|v| !v.may_be_on_host()) {
                Some(place) => drop(self.volumes.remove(place)),
                None => break,
            }
        }
    }

    /// Begins the life that was asked for while the former was ending.
    pub fn begin_anew(&mut self) {
        let mut fresh = PodView::new(self.uid);
        fresh.applied = self.applied.take();
        fresh.applied_index = self.applied_index;
        fresh.applied_this_epoch = self.applied_this_epoch;
        fresh.allocation.images_bypass = self.allocation.images_bypass;
        fresh.in_flight = std::mem::take(&mut self.in_flight);
        fresh.last_op = self.last_op;
        fresh.last_op_before = self.last_op_before;
        fresh.answered = std::mem::take(&mut self.answered);
        if let Some(newest) = self.allocation.versions.pop() {
            fresh.allocation.desired(newest.index, &newest.spec);
        }
        *self = fresh;
    }

    /// The newest instance of a name.
    pub fn newest(&self, name: &str) -> Option<&ContainerView> {
        self.containers
            .iter()
            .filter(|c| &*c.id.name == name)
            .max_by_key(|c| (c.id.incarnation, c.id.attempt))
    }

    /// The pod's restart policy, if it was ever told.
    pub fn restart_policy(&self) -> Option<RestartPolicy> {
        self.applied.as_ref().map(|p| p.spec.restart_policy)
    }

    /// All mains ended in a way after which none is started again, or an init container failed so: the pod is over,
    /// whether or not that was told yet.
    pub fn ran_to_its_end(&self) -> bool {
        let (Some(policy), Some(spec)) = (self.restart_policy(), self.allocation.possible().last()) else {
            return false;
        };
        // The code of an end that is final: not one that the node asked for, to start it anew.
        let final_code = |c: &Container| {
            let newest = self.newest(&c.name).filter(|newest| newest.stop_commanded.is_none())?;
            let code = match (&newest.exit, newest.lost) {
                (Some((_, exit)), _) => exit.code,
                (None, Some(_)) => MISSING_EVIDENCE,
                (None, None) => return None,
            };
            (after_exit(c, newest.role, policy, code) == AfterExit::Stays).then_some(code)
        };
        let failed =
            |c: &Arc<Container>| !PodSpec::is_sidecar(c) && final_code(c).is_some_and(|code| code != 0);
        let mains_are_over =
            !spec.containers.is_empty() && spec.containers.iter().all(|c| final_code(c).is_some());
        self.running().is_none() && (mains_are_over || spec.init_containers.iter().any(failed))
    }
}

/// The exit code of a container of whose end there is no evidence (S14, B10).
pub const MISSING_EVIDENCE: i32 = 137;

/// What policy and rules say after an exit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum AfterExit {
    /// It is started again.
    Restarts,
    /// It stays down.
    Stays,
    /// Everything is started again (KEP-5532).
    RestartsAll,
}

/// What the container's rules, then its policy, then the pod's say after an exit (kubelet-pods §2.5).
pub fn after_exit(spec: &Container, role: Role, pod: RestartPolicy, code: i32) -> AfterExit {
    let matched = spec.restart_rules.iter().find(|r| r.codes.contains(&code) != r.negated);
    match matched.map(|r| r.action) {
        Some(RestartAction::Restart) => return AfterExit::Restarts,
        Some(RestartAction::RestartAllContainers) => return AfterExit::RestartsAll,
        None => {}
    }
    let policy = match role {
        Role::Sidecar => RestartPolicy::Always,
        Role::Ephemeral => RestartPolicy::Never,
        // A plain init container that succeeded is done, whatever the policy.
        Role::Init if code == 0 => RestartPolicy::Never,
        Role::Init => match spec.restart_policy.unwrap_or(pod) {
            RestartPolicy::Never => RestartPolicy::Never,
            RestartPolicy::Always | RestartPolicy::OnFailure => RestartPolicy::OnFailure,
        },
        Role::Main | Role::Unknown => spec.restart_policy.unwrap_or(pod),
    };
    match policy {
        RestartPolicy::Always => AfterExit::Restarts,
        RestartPolicy::OnFailure if code != 0 => AfterExit::Restarts,
        RestartPolicy::OnFailure | RestartPolicy::Never => AfterExit::Stays,
    }
}

/// Whether an exit asks for RestartAllContainers.
pub fn asks_restart_all(spec: &Container, role: Role, exit: &Exit) -> bool {
    after_exit(spec, role, RestartPolicy::Never, exit.code) == AfterExit::RestartsAll
}

fn note_container_changes(
    container: &mut ContainerView,
    volumes: &[VolumeView],
    index: usize,
    spec: &PodSpec,
) {
    let (Some(own), false) = (&container.spec, container.role == Role::Ephemeral) else { return };
    let changes = &mut container.changes;
    let Some((wanted, _)) = find_container(spec, &container.id.name) else {
        changes.removed.get_or_insert(index);
        return;
    };
    let source_changed = container.mounts.iter().flatten().any(|m| {
        let mounted = volumes.iter().find(|v| v.id == m.volume).and_then(|v| v.spec.as_ref());
        mounted.is_some_and(|mounted| spec.volume(&m.volume.name) != Some(mounted))
    });
    if source_changed || wanted.mounts != own.mounts {
        changes.mounts.get_or_insert(index);
    }
    if wanted.resources != own.resources {
        changes.resources.get_or_insert(index);
    }
    // Nearly always nothing of it is new.
    if Arc::ptr_eq(wanted, own) {
        return;
    }
    let mut wanted = Container::clone(wanted);
    wanted.mounts = own.mounts.clone();
    wanted.resources = own.resources.clone();
    if wanted != **own {
        changes.definition.get_or_insert(index);
    }
    // Beyond its image nothing of a container that stays may change: a removal and an addition came as one (api-side C5).
    wanted.image = own.image.clone();
    wanted.pull_policy = own.pull_policy;
    if wanted != **own {
        changes.removed.get_or_insert(index);
    }
}

impl PodView {
    /// An init container is done (or a sidecar up) in the sandbox it was made in.
    pub fn note_init_done(&mut self, id: &ContainerId) {
        let Some(sandbox) = self.container(id).and_then(|c| c.sandbox) else { return };
        if !self.init_is_done(&id.name, sandbox) {
            self.init_done.push(InitDone { name: id.name.clone(), sandbox });
        }
    }

    /// Whether the init container is done in that sandbox.
    pub fn init_is_done(&self, name: &str, sandbox: u32) -> bool {
        self.init_done.iter().any(|d| &*d.name == name && d.sandbox == sandbox)
    }
}
