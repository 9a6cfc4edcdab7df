//! A whole scope as one small value: up to two pods, each with two container names and two volume names, two additions of
//! each name. Its steps are read off the tables; nothing is permitted here that a row does not permit.

use super::allocation::Promise;
use super::container::{self, Life};
use super::index::Index;
use super::pod::{self, Pod, Seen};
use super::sandbox::{self, Sandbox};
use super::shapes::{Definition, Shape, Version};
use super::volume::{self, Volume};
use super::*;
use std::sync::LazyLock;
use zerocopy::{Immutable, IntoBytes};

/// Pods of a scope.
pub const PODS: usize = 2;
/// Container names and volume names of a pod.
pub const NAMES: usize = 2;
/// Additions of names: two of each.
pub const SLOTS: usize = 2 * NAMES;

/// An addition of a volume name. Name `n` has the slots `2n` and `2n + 1`; one that is removed comes first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoBytes, Immutable)]
#[repr(C)]
pub struct VolumeSlot {
    /// Its life.
    pub life: Volume,
    /// Whether it is allocated.
    pub promise: Promise,
}

/// An addition of a container name.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoBytes, Immutable)]
#[repr(C)]
pub struct ContainerSlot {
    /// Its life.
    pub life: Life,
    /// Whether it is allocated.
    pub promise: Promise,
    /// Bit 0: its life was told to end. Bit 1: a life of it ran to an end. The rest: what its life was made from.
    marks: u8,
    /// The volume slots that its life holds.
    pub leases: u8,
}

/// A pod.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoBytes, Immutable)]
#[repr(C)]
pub struct PodSlot {
    /// Its life.
    pub life: Pod,
    /// Its sandbox.
    pub sandbox: Sandbox,
    /// See the constants below.
    marks: u8,
    /// Which version is asked for.
    pub desired: u8,
    /// Which version is allocated, from 1; 0: none.
    pub allocated: u8,
    /// Its containers.
    pub containers: [ContainerSlot; SLOTS],
    /// Its volumes.
    pub volumes: [VolumeSlot; SLOTS],
}

/// Initialization is done in this sandbox.
const INITIALIZED: u8 = 1;
/// Initialization was done once.
const ONCE: u8 = 2;
/// Its terminal phase was acknowledged.
const ACKNOWLEDGED: u8 = 4;
/// Its deletion was asked for.
const DELETED: u8 = 8;
/// Its object is gone.
const GONE: u8 = 16;

const DOOM: u8 = 1;
const RAN: u8 = 2;

/// All of it. Small enough to be copied, hashed and compared as bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, IntoBytes, Immutable)]
#[repr(C)]
pub struct State {
    /// What the agent knows.
    pub seen: Seen,
    /// How many more crashes may come.
    pub crashes: u8,
    /// The pods.
    pub pods: [PodSlot; PODS],
}

const _: () = assert!(size_of::<State>() <= 64);

/// One step of a scope.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next version of a pod is asked for.
    Wish(u8),
    /// A pod's deletion is asked for.
    Delete(u8),
    /// A pod's latest desired version becomes its allocation.
    Allocate(u8),
    /// A row of a pod's table.
    Pod(u8, u8),
    /// A row of its sandbox's table.
    Sandbox(u8, u8),
    /// Its initialization is done.
    Initialized(u8),
    /// Its terminal phase is acknowledged.
    Told(u8),
    /// A row of a volume's table: pod, slot, row.
    Volume(u8, u8, u8),
    /// A row of a container's table: pod, slot, row.
    Container(u8, u8, u8),
    /// A container's life is told to end: pod, slot.
    Doom(u8, u8),
    /// Every source has delivered its list.
    SourcesListed,
    /// The mount table was seen.
    MountsSeen,
    /// The runtime's list was seen: nothing is unknown any more.
    RuntimeSeen,
    /// The agent dies and starts again.
    AgentDies,
    /// The host dies and boots again.
    HostDies,
}

static POD_ROWS: LazyLock<Index> = LazyLock::new(|| Index::new(pod::TABLE, |state| *state as u8));
static SANDBOX_ROWS: LazyLock<Index> = LazyLock::new(|| Index::new(sandbox::TABLE, |state| *state as u8));
static VOLUME_ROWS: LazyLock<Index> = LazyLock::new(|| Index::new(volume::TABLE, |state| *state as u8));
static CONTAINER_ROWS: LazyLock<Index> = LazyLock::new(|| Index::new(container::TABLE, |state| *state as u8));

const FREE_VOLUME: VolumeSlot = VolumeSlot { life: Volume::Absent, promise: Promise::None };
const FREE_CONTAINER: ContainerSlot =
    ContainerSlot { life: Life::None, promise: Promise::None, marks: 0, leases: 0 };
const NO_POD: PodSlot = PodSlot {
    life: Pod::Absent,
    sandbox: Sandbox::None,
    marks: 0,
    desired: 0,
    allocated: 0,
    containers: [FREE_CONTAINER; SLOTS],
    volumes: [FREE_VOLUME; SLOTS],
};

impl ContainerSlot {
    /// Its life was told to end.
    pub const fn doomed(self) -> bool {
        self.marks & DOOM != 0
    }
    const fn made_from(self) -> u8 {
        self.marks >> 2
    }
}

impl State {
    /// A node that has just started, with a scope's pods asked for.
    pub fn new(shape: &Shape) -> State {
        let mut pods = [NO_POD; PODS];
        for pod in pods.iter_mut().take(shape.pods.len()) {
            pod.life = Pod::Waiting;
        }
        State { seen: Seen::default(), crashes: shape.crashes, pods }
    }

    /// All that may come next.
    pub fn steps(&self, shape: &Shape, out: &mut Vec<Step>) {
        out.clear();
        self.knowledge_steps(out);
        if self.crashes > 0 {
            out.push(Step::AgentDies);
            if shape.reboots {
                out.push(Step::HostDies);
            }
        }
        for p in 0..shape.pods.len() {
            self.pod_steps(shape, p, out);
        }
    }

    fn knowledge_steps(&self, out: &mut Vec<Step>) {
        if !self.seen.sources {
            out.push(Step::SourcesListed);
        }
        if !self.seen.mounts {
            out.push(Step::MountsSeen);
        }
        if !self.seen.runtime {
            let unknown = |p: &PodSlot| {
                p.sandbox == Sandbox::Unknown || p.containers.iter().any(|c| c.life == Life::Unknown)
            };
            if !self.pods.iter().any(unknown) {
                out.push(Step::RuntimeSeen);
            }
        }
    }

    fn pod_steps(&self, shape: &Shape, p: usize, out: &mut Vec<Step>) {
        let (pod, at) = (&self.pods[p], p as u8);
        if pod.life == Pod::Absent {
            return;
        }
        let versions = shape.pods[p];
        if pod.marks & DELETED == 0 {
            if usize::from(pod.desired) + 1 < versions.len() {
                out.push(Step::Wish(at));
            }
            if shape.deletes {
                out.push(Step::Delete(at));
            }
        }
        let so = self.situation(shape, pod);
        if pod.life == Pod::Active && self.allocates(shape, p) {
            out.push(Step::Allocate(at));
        }
        for row in POD_ROWS.rows(pod.life as u8, so, shape.faults) {
            let r = &pod::TABLE[usize::from(row)];
            let asked = match r.by {
                By::World => pod.marks & DELETED != 0,
                By::Node if r.to == Pod::Releasing => pod.marks & (DELETED | GONE) == DELETED,
                By::Node => true,
                By::Allocation => r.to == Pod::Active && self.allocates(shape, p) || r.to == Pod::Terminated,
                By::Crash | By::Look | By::Fault => true,
            };
            if asked {
                out.push(Step::Pod(at, row));
            }
        }
        let ready = so.and(creation_ready(shape, p, pod));
        for row in SANDBOX_ROWS.rows(pod.sandbox as u8, ready, shape.faults) {
            let by = sandbox::TABLE[usize::from(row)].by;
            // Going: a sandbox that runs well is stopped only at the pod's end.
            let wanted = by != By::Node || pod.sandbox != Sandbox::Ready || pod.life != Pod::Active;
            let looked = by != By::Look || pod.sandbox == Sandbox::Unknown;
            if wanted && looked && pod.sandbox_row_is_possible(row) {
                out.push(Step::Sandbox(at, row));
            }
        }
        if pod.life == Pod::Active && pod.sandbox == Sandbox::Ready && pod.marks & INITIALIZED == 0 {
            out.push(Step::Initialized(at));
        }
        if pod.life.has_ended() && pod.marks & ACKNOWLEDGED == 0 {
            out.push(Step::Told(at));
        }
        for slot in 0..SLOTS {
            self.volume_steps(shape, at, slot, so, out);
            self.container_steps(shape, at, slot, so, out);
        }
    }

    fn volume_steps(&self, shape: &Shape, at: u8, slot: usize, so: Needs, out: &mut Vec<Step>) {
        let pod = &self.pods[usize::from(at)];
        let volume = pod.volumes[slot];
        if volume.life == Volume::Absent {
            return;
        }
        let so = so.and(volume_situation(pod, slot));
        for row in VOLUME_ROWS.rows(volume.life as u8, so, shape.faults) {
            let found = volume::TABLE[usize::from(row)].by == By::Look && !shape.faults;
            let refresh = volume::TABLE[usize::from(row)].to == Volume::Refreshing && !shape.refreshes;
            if !found && !refresh {
                out.push(Step::Volume(at, slot as u8, row));
            }
        }
    }

    fn container_steps(&self, shape: &Shape, at: u8, slot: usize, so: Needs, out: &mut Vec<Step>) {
        let pod = &self.pods[usize::from(at)];
        let container = pod.containers[slot];
        if container.promise == Promise::None {
            return;
        }
        let so = so.and(container_situation(shape, usize::from(at), pod, slot));
        for row in CONTAINER_ROWS.rows(container.life as u8, so, shape.faults) {
            let r = &container::TABLE[usize::from(row)];
            let possible = match r.by {
                By::Look => container.life == Life::Unknown && r.to != Life::Lost,
                // By itself only where the scope says that processes end.
                By::World => {
                    r.act != "ended" || container.doomed() || shape.exits || container.life == Life::Unknown
                }
                By::Crash | By::Fault | By::Allocation | By::Node => true,
            };
            if possible {
                out.push(Step::Container(at, slot as u8, row));
            }
        }
        if container.life != Life::None && !container.doomed() && OWN_CAUSE.hold_in(so) {
            out.push(Step::Doom(at, slot as u8));
        }
    }

    /// What holds for the pod as a whole.
    fn situation(&self, shape: &Shape, pod: &PodSlot) -> Needs {
        let live = matches!(pod.life, Pod::Active | Pod::Terminating);
        let volumes_gone = pod.volumes.iter().all(|v| v.life == Volume::Absent);
        self.seen
            .situation()
            .and(ACTIVE.when(pod.life == Pod::Active))
            .and(LIVE.when(live))
            .and(NOTHING_RUNS.when(pod.containers.iter().all(|c| !c.life.may_run())))
            .and(SANDBOX_READY.when(pod.sandbox == Sandbox::Ready))
            .and(SANDBOXES_DOWN.when(pod.sandbox.is_down()))
            .and(VOLUMES_GONE.when(volumes_gone))
            .and(TOLD.when(pod.marks & ACKNOWLEDGED != 0))
            .and(OBJECT_GONE.when(pod.marks & GONE != 0))
            .and(UNADMITTED.when(pod.allocated == 0))
            .and(RUN_OUT.when(self.has_run_out(shape, pod)))
    }

    /// The pod's latest version may become its allocation: it is another one, and it fits (S5).
    fn allocates(&self, shape: &Shape, p: usize) -> bool {
        let pod = &self.pods[p];
        if pod.allocated == pod.desired + 1 || !pod.has_room_for(shape, p) {
            return false;
        }
        let others = (0..PODS).filter(|o| *o != p).map(|o| self.charge(shape, o)).sum::<u8>();
        let wanted = cost(&shape.pods[p][usize::from(pod.desired)]).max(self.actuated(shape, p));
        others + wanted <= shape.capacity
    }

    /// What a pod takes of the node: the larger of what is allocated and what may run (S5).
    fn charge(&self, shape: &Shape, p: usize) -> u8 {
        let pod = &self.pods[p];
        match (pod.life, pod.version(shape, p)) {
            (Pod::Active | Pod::Terminating, Some(version)) => cost(version).max(self.actuated(shape, p)),
            (Pod::Absent | Pod::Waiting | Pod::Terminated | Pod::Releasing, _) | (_, None) => 0,
        }
    }

    fn actuated(&self, shape: &Shape, p: usize) -> u8 {
        let of = |c: &ContainerSlot| shape.definitions[usize::from(c.made_from())].cost;
        self.pods[p].containers.iter().filter(|c| c.life.may_run()).map(of).sum()
    }

    /// Every main container has run to its end.
    fn has_run_out(&self, shape: &Shape, pod: &PodSlot) -> bool {
        let over =
            |c: &&ContainerSlot| c.promise == Promise::Kept && !(c.life == Life::None && c.marks & RAN != 0);
        !shape.restarts && pod.allocated != 0 && !pod.containers.iter().any(|c| over(&c))
    }

    /// Takes a step.
    pub fn take(&mut self, shape: &Shape, step: Step) {
        match step {
            Step::Wish(p) => self.pods[usize::from(p)].desired += 1,
            Step::Delete(p) => self.pods[usize::from(p)].marks |= DELETED,
            Step::Allocate(p) => self.pods[usize::from(p)].allocate(shape, usize::from(p)),
            Step::Pod(p, row) => self.move_pod(shape, usize::from(p), &pod::TABLE[usize::from(row)]),
            Step::Sandbox(p, row) => {
                let pod = &mut self.pods[usize::from(p)];
                pod.sandbox = sandbox::TABLE[usize::from(row)].to;
                if pod.sandbox != Sandbox::Ready {
                    pod.marks &= !INITIALIZED;
                }
            }
            Step::Initialized(p) => self.pods[usize::from(p)].marks |= INITIALIZED | ONCE,
            Step::Told(p) => self.pods[usize::from(p)].marks |= ACKNOWLEDGED,
            Step::Volume(p, slot, row) => {
                let pod = &mut self.pods[usize::from(p)];
                let volume = &mut pod.volumes[usize::from(slot)];
                volume.life = volume::TABLE[usize::from(row)].to;
                if volume.life == Volume::Absent {
                    *volume = FREE_VOLUME;
                    pod.tidy();
                }
            }
            Step::Container(p, slot, row) => {
                let (p, slot) = (usize::from(p), usize::from(slot));
                self.pods[p].move_container(shape, p, slot, &container::TABLE[usize::from(row)]);
            }
            Step::Doom(p, slot) => self.pods[usize::from(p)].containers[usize::from(slot)].marks |= DOOM,
            Step::SourcesListed => self.seen.sources = true,
            Step::MountsSeen => self.seen.mounts = true,
            Step::RuntimeSeen => self.seen.runtime = true,
            Step::AgentDies => self.crash(false),
            Step::HostDies => self.crash(true),
        }
    }

    fn move_pod(&mut self, shape: &Shape, p: usize, row: &Row<Pod>) {
        let pod = &mut self.pods[p];
        pod.life = row.to;
        match row.to {
            Pod::Active => pod.allocate(shape, p),
            Pod::Absent => *pod = NO_POD,
            Pod::Terminated if row.act == "released" => pod.marks |= GONE,
            Pod::Waiting | Pod::Terminating | Pod::Terminated | Pod::Releasing => {}
        }
    }

    fn crash(&mut self, of_host: bool) {
        self.crashes -= 1;
        self.seen = Seen::default();
        for pod in &mut self.pods {
            pod.life = pod.life.after_crash();
            pod.sandbox = pod.sandbox.after_crash(of_host);
            if pod.sandbox != Sandbox::Ready {
                pod.marks &= !INITIALIZED;
            }
            for volume in &mut pod.volumes {
                volume.life = volume.life.after_crash(of_host);
            }
            for container in &mut pod.containers {
                container.life = container.life.after_crash(of_host);
            }
        }
    }

    /// The least of all states that exchanging what is alike leads to: one and the same for all of them.
    pub fn canonical(&self, shape: &Shape) -> State {
        let mut least = *self;
        for pod in &mut least.pods {
            let mut least_pod = *pod;
            for (containers, volumes) in [(true, false), (false, true), (true, true)] {
                let alike = (!containers || shape.alike_containers) && (!volumes || shape.alike_volumes);
                if alike {
                    least_pod = least_pod.min(pod.with_names_swapped(containers, volumes));
                }
            }
            *pod = least_pod;
        }
        if shape.alike_pods && least.pods[1] < least.pods[0] {
            least.pods.swap(0, 1);
        }
        least
    }

    /// What follows from the tables: the invariants, as a reader would check them. The first that does not hold.
    pub fn broken(&self, shape: &Shape) -> Option<&'static str> {
        let total: u8 = (0..PODS).map(|p| self.charge(shape, p)).sum();
        if total > shape.capacity {
            return Some("S5: what pods are charged exceeds what there is");
        }
        self.pods.iter().find_map(PodSlot::broken)
    }

    /// Everything asked for is so, nothing more is to be done, and nothing is left of what was.
    pub fn is_settled(&self, shape: &Shape) -> bool {
        self.seen == Seen { sources: true, mounts: true, runtime: true }
            && self.pods.iter().take(shape.pods.len()).enumerate().all(|(p, pod)| match pod.life {
                Pod::Absent => true,
                Pod::Terminated => pod.marks & (DELETED | ACKNOWLEDGED) == ACKNOWLEDGED,
                // What does not fit is visibly Deferred (L1).
                Pod::Active => {
                    let decided = pod.allocated == pod.desired + 1 || !self.allocates(shape, p);
                    pod.marks & DELETED == 0 && decided && pod.is_settled(shape, p)
                }
                Pod::Waiting | Pod::Terminating | Pod::Releasing => false,
            })
    }
}

impl PodSlot {
    /// The allocated version.
    fn version<'s>(&self, shape: &'s Shape, p: usize) -> Option<&'s Version> {
        shape.pods.get(p)?.get(usize::from(self.allocated).checked_sub(1)?)
    }

    /// What the addition in a slot is allocated as.
    fn definition<'s>(&self, shape: &'s Shape, p: usize, slot: usize) -> Option<&'s Definition> {
        let number = self.version(shape, p)?.containers[slot / 2]?;
        Some(&shape.definitions[usize::from(number)])
    }

    /// The volume slots that a container's mounts mean now; `None` if one is not set up.
    fn resolve(&self, mounts: u8) -> Option<u8> {
        let mut leases = 0;
        for name in (0..NAMES).filter(|name| mounts & 1 << name != 0) {
            let slot = self.kept(name)?;
            if !self.volumes[slot].life.is_set_up() {
                return None;
            }
            leases |= 1 << slot;
        }
        Some(leases)
    }

    fn kept(&self, name: usize) -> Option<usize> {
        [2 * name, 2 * name + 1].into_iter().find(|slot| self.volumes[*slot].promise == Promise::Kept)
    }

    /// Each name that the allocation would add finds a free slot. A scope holds two additions of a name at once.
    fn has_room_for(&self, shape: &Shape, p: usize) -> bool {
        let (old, new) = (self.version(shape, p), &shape.pods[p][usize::from(self.desired)]);
        (0..NAMES).all(|name| {
            let (a, b) = (2 * name, 2 * name + 1);
            let volume_stays = old.is_none_or(|old| old.volumes[name] == new.volumes[name]);
            let container_stays =
                old.is_none_or(|old| !replaced(shape, old.containers[name], new.containers[name]));
            let volume_free = self.volumes[a] == FREE_VOLUME || self.volumes[b] == FREE_VOLUME;
            let container_free = self.containers[a] == FREE_CONTAINER || self.containers[b] == FREE_CONTAINER;
            (volume_stays || new.volumes[name].is_none() || volume_free)
                && (container_stays || new.containers[name].is_none() || container_free)
        })
    }

    /// The desired version becomes the allocation: what stays stays, the rest is removed, what is new is added.
    fn allocate(&mut self, shape: &Shape, p: usize) {
        let (old, new) = (self.version(shape, p), &shape.pods[p][usize::from(self.desired)]);
        for name in 0..NAMES {
            let stays = old.is_some_and(|old| old.volumes[name] == new.volumes[name]);
            if !stays {
                for slot in [2 * name, 2 * name + 1] {
                    if self.volumes[slot].promise == Promise::Kept {
                        self.volumes[slot].promise = Promise::Removed;
                    }
                }
                if new.volumes[name].is_some() {
                    let slot = [2 * name, 2 * name + 1].into_iter().find(|s| self.volumes[*s] == FREE_VOLUME);
                    if let Some(slot) = slot {
                        self.volumes[slot] = VolumeSlot { life: Volume::Pending, promise: Promise::Kept };
                    }
                }
            }
            let (was, will) = (old.and_then(|old| old.containers[name]), new.containers[name]);
            if was.is_none() && will.is_none()
                || was.is_some() && will.is_some() && !replaced(shape, was, will)
            {
                continue;
            }
            for slot in [2 * name, 2 * name + 1] {
                if self.containers[slot].promise == Promise::Kept {
                    self.containers[slot].promise = Promise::Removed;
                    self.forget_removed(slot);
                }
            }
            if will.is_some() {
                let slot =
                    [2 * name, 2 * name + 1].into_iter().find(|s| self.containers[*s] == FREE_CONTAINER);
                if let Some(slot) = slot {
                    self.containers[slot].promise = Promise::Kept;
                }
            }
        }
        self.allocated = self.desired + 1;
        self.tidy();
    }

    fn move_container(&mut self, shape: &Shape, p: usize, slot: usize, row: &Row<Life>) {
        let number = self.version(shape, p).and_then(|v| v.containers[slot / 2]).unwrap_or(0);
        let leases = self.resolve(shape.definitions[usize::from(number)].mounts).unwrap_or(0);
        let container = &mut self.containers[slot];
        let ran = container.life == Life::Running;
        container.life = row.to;
        if row.to == Life::Creating {
            container.leases = leases;
            container.marks = container.marks & RAN | number << 2;
        }
        if row.to == Life::None {
            container.leases = 0;
            container.marks = if ran && !container.doomed() { RAN } else { 0 };
            self.forget_removed(slot);
            self.tidy();
        }
    }

    fn forget_removed(&mut self, slot: usize) {
        let container = &mut self.containers[slot];
        if container.promise == Promise::Removed && container.life == Life::None {
            *container = FREE_CONTAINER;
        }
    }

    /// The normal form of a name's two slots: a free one comes last, a removed one first.
    fn tidy(&mut self) {
        for name in 0..NAMES {
            let (a, b) = (2 * name, 2 * name + 1);
            let rank = |promise| match promise {
                Promise::Removed => 0,
                Promise::Kept => 1,
                Promise::None => 2,
            };
            if rank(self.containers[a].promise) > rank(self.containers[b].promise) {
                self.containers.swap(a, b);
            }
            if rank(self.volumes[a].promise) > rank(self.volumes[b].promise) {
                self.volumes.swap(a, b);
                self.swap_leases(a, b);
            }
        }
    }

    fn swap_leases(&mut self, a: usize, b: usize) {
        for container in &mut self.containers {
            let (in_a, in_b) = (container.leases >> a & 1, container.leases >> b & 1);
            container.leases = container.leases & !(1 << a | 1 << b) | in_a << b | in_b << a;
        }
    }

    /// Exchanges two names of the pod: what symmetry compares.
    pub(super) fn with_names_swapped(mut self, containers: bool, volumes: bool) -> PodSlot {
        if containers {
            self.containers.swap(0, 2);
            self.containers.swap(1, 3);
        }
        if volumes {
            for (a, b) in [(0, 2), (1, 3)] {
                self.volumes.swap(a, b);
                self.swap_leases(a, b);
            }
        }
        self
    }

    fn sandbox_row_is_possible(&self, row: u8) -> bool {
        sandbox::TABLE[usize::from(row)].from != Sandbox::None
            || sandbox::TABLE[usize::from(row)].by == By::Node
    }

    fn broken(&self) -> Option<&'static str> {
        let leased = self.containers.iter().fold(0, |all, c| all | c.leases);
        let torn_down = |(slot, v): (usize, &VolumeSlot)| {
            leased & 1 << slot != 0 && matches!(v.life, Volume::Absent | Volume::Unmounting)
        };
        if self.volumes.iter().enumerate().any(torn_down) {
            return Some("S1: a volume is taken down while a container that mounts it may run");
        }
        for name in 0..NAMES {
            let (a, b) = (2 * name, 2 * name + 1);
            if self.containers[a].life.may_run() && self.containers[b].life.may_run() {
                return Some("S6: two lives of one container name");
            }
            if self.volumes[a].life.may_be_there() && self.volumes[b].life.may_be_there() {
                return Some("S6: two lives of one volume name on the host");
            }
        }
        if self.life.has_ended() && self.containers.iter().any(|c| c.life.may_run()) {
            return Some("S8: a container may run though the pod has ended");
        }
        if self.life == Pod::Releasing && self.volumes.iter().any(|v| v.life != Volume::Absent) {
            return Some("S8: the pod is released before its volumes are gone");
        }
        if matches!(self.life, Pod::Absent | Pod::Waiting) && self.containers.iter().any(|c| c.life.may_run())
        {
            return Some("S3: a container without an allocation");
        }
        None
    }

    fn is_settled(&self, shape: &Shape, p: usize) -> bool {
        let container = |(slot, c): (usize, &ContainerSlot)| match c.promise {
            Promise::None => true,
            Promise::Removed => false,
            Promise::Kept if c.life == Life::None => c.marks & RAN != 0 && !shape.restarts,
            Promise::Kept => c.life == Life::Running && !c.doomed() && !is_redefined(shape, p, self, slot),
        };
        let volume = |v: &VolumeSlot| match v.promise {
            Promise::None => true,
            Promise::Removed => false,
            Promise::Kept => matches!(v.life, Volume::Pending | Volume::Mounted),
        };
        self.sandbox == Sandbox::Ready
            && self.containers.iter().enumerate().all(container)
            && self.volumes.iter().all(volume)
    }
}

fn volume_situation(pod: &PodSlot, slot: usize) -> Needs {
    let kept = pod.volumes[slot].promise == Promise::Kept;
    let admitted = matches!(pod.life, Pod::Active | Pod::Terminating);
    let held = pod.containers.iter().any(|c| c.leases & 1 << slot != 0);
    KEPT.when(kept)
        .and(GOING.when(!kept && admitted || pod.life.has_ended()))
        .and(NAME_FREE.when(pod.volumes[slot ^ 1].life == Volume::Absent))
        .and(UNHELD.when(!held))
        .and(ALLOCATING)
}

fn container_situation(shape: &Shape, p: usize, pod: &PodSlot, slot: usize) -> Needs {
    let container = pod.containers[slot];
    let kept = container.promise == Promise::Kept;
    let mounts = pod.definition(shape, p, slot).map_or(0, |d| d.mounts);
    let own_cause = !kept
        || pod.life != Pod::Active
        || pod.sandbox != Sandbox::Ready
        || container.life == Life::Lost
        || is_redefined(shape, p, pod, slot);
    KEPT.when(kept)
        .and(NAME_FREE.when(!pod.containers[slot ^ 1].life.may_run()))
        .and(VOLUMES_READY.when(pod.resolve(mounts).is_some()))
        .and(IN_TURN.when(pod.marks & INITIALIZED != 0))
        .and(MAY_RUN.when(shape.restarts || container.marks & RAN == 0))
        .and(DOOMED.when(container.doomed()))
        .and(UNDOOMED.when(!container.doomed()))
        .and(OWN_CAUSE.when(own_cause))
        .and(creation_ready(shape, p, pod))
}

/// A life was made from another definition, or with other lives of its volumes, than is allocated now.
fn is_redefined(shape: &Shape, p: usize, pod: &PodSlot, slot: usize) -> bool {
    let container = pod.containers[slot];
    if !container.life.may_run() {
        return false;
    }
    let Some(number) = pod.version(shape, p).and_then(|v| v.containers[slot / 2]) else { return true };
    let mounts = shape.definitions[usize::from(number)].mounts;
    let meant: u8 = (0..NAMES)
        .filter(|name| mounts & 1 << name != 0)
        .filter_map(|name| pod.kept(name))
        .fold(0, |leases, slot| leases | 1 << slot);
    container.made_from() != number || container.leases != meant
}

fn creation_ready(shape: &Shape, p: usize, pod: &PodSlot) -> Needs {
    let Some(version) = pod.version(shape, p) else { return Needs::NONE };
    let mounts = version
        .containers
        .iter()
        .flatten()
        .fold(0, |all, number| all | shape.definitions[usize::from(*number)].mounts);
    CREATION_READY.when(pod.marks & ONCE != 0 || pod.resolve(mounts).is_some())
}

/// Another incarnation: not only its image, resources or mounts differ.
fn replaced(shape: &Shape, old: Option<u8>, new: Option<u8>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => {
            shape.definitions[usize::from(old)].incarnation != shape.definitions[usize::from(new)].incarnation
        }
        (None, None) => false,
        (Some(_), None) | (None, Some(_)) => true,
    }
}

fn cost(version: &Version) -> u8 {
    version.cost
}
