//! The canonical key of a node's state (DESIGN §7): equal for states that no future fact can tell apart. Not the digest,
//! which every path makes its own: times are taken from now, operations are named by the caller, epochs and events are not
//! counted, and what no decision reads (causes, texts that only statuses show, the statuses themselves) is left out.
//!
//! Records are taken apart field by field, so that a new field can't be forgotten here. Changes nothing.

use crate::codec;
use crate::ids::{ContainerId, OpId, PodUid, Source, VolumeId};
use crate::node::{Digest, Look, Node, ObjectRecord, Recovery, State};
use crate::publish::mirror::{FullName, MirrorState};
use crate::state::container::crash_backoff;
use crate::state::{
    ContainerState, HookState, InProgress, InstancePhase, Lifecycle, Pending, PodState, Publication, Retry,
    Sandbox, SandboxPhase, Shown, Stop, Surplus, Termination, Upkeep, VolumePhase, VolumeState,
};
use crate::time::{Nanos, Time};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// What is relative in a state: the moment, the epoch, and the names of operations and pods.
struct Lens<'a> {
    node: &'a Node,
    now: Time,
    operation: &'a dyn Fn(OpId) -> OpId,
    who: &'a dyn Fn(PodUid) -> PodUid,
}

impl Node {
    /// The key of one pod's state alone, whoever the pod is.
    pub fn canonical_of(&self, pod: PodUid, operation: &dyn Fn(OpId) -> OpId) -> Option<Digest> {
        let lens = Lens { node: self, now: self.state.now, operation, who: &|pod| pod };
        self.state.pods.get(&pod).map(|pod| lens.pod(pod))
    }

    /// The key. `operation` gives each operation in flight a name that does not depend on how many came before it, and the
    /// rest one and the same; `who` gives each pod a UID of its own, so that two states that differ only by which of two
    /// pods is which can be looked at as one.
    pub fn canonical(&self, operation: &dyn Fn(OpId) -> OpId, who: &dyn Fn(PodUid) -> PodUid) -> Digest {
        let lens = Lens { node: self, now: self.state.now, operation, who };
        let State {
            config,
            now: _,
            events: _,
            next_op: _,
            epoch: _,
            boot_id: _,
            pods,
            names: _,
            objects,
            objects_changed: _,
            sources_ready,
            recovery,
            queue,
            preemptors,
            charged: _,
            wakes: _,
            allocator_wake,
            observations,
            mirrors,
            anomalies: _,
        } = &self.state;
        let mut hashed: Vec<(PodUid, Digest)> = Vec::new();
        for (uid, pod) in pods {
            hashed.push((who(*uid), lens.pod(pod)));
        }
        hashed.sort();
        let Recovery {
            mounts,
            runtime,
            unclaimed_containers,
            unclaimed_sandboxes,
            unclaimed_mounts,
            mounted_meanwhile,
        } = recovery;
        // Of what was found, the order says nothing.
        let containers: Vec<(PodUid, ContainerId)> =
            sorted(unclaimed_containers.iter().map(|c| (who(c.pod), c.container.clone())));
        let sandboxes: Vec<(PodUid, u32, bool)> =
            sorted(unclaimed_sandboxes.iter().map(|s| (who(s.pod), s.attempt, s.ready)));
        let found: Vec<(PodUid, VolumeId)> =
            sorted(unclaimed_mounts.iter().map(|m| (who(m.pod), m.volume.clone())));
        let meanwhile: Vec<(PodUid, &VolumeId)> =
            sorted(mounted_meanwhile.iter().map(|(pod, volume)| (who(*pod), volume)));
        let looks: Vec<(OpId, PodUid)> =
            sorted(observations.iter().map(|(op, uid)| (lens.op(*op), who(*uid))));
        let all = |pods: &BTreeSet<PodUid>| sorted(pods.iter().map(|pod| who(*pod)));
        let objects: Vec<_> = objects
            .iter()
            .map(|(object, ObjectRecord { version, gone, users })| (object, (version, gone, all(users))))
            .collect();
        let recovery = (lens.look(mounts), lens.look(runtime), containers, sandboxes, (found, meanwhile));
        let waits =
            (allocator_wake.map(|(at, why)| (lens.ahead(at), why)), all(queue), all(preemptors), looks);
        let order = (lens.arrivals(), lens.waiting_order());
        let known = (&config.node, sources_ready, objects, lens.mirrors(mirrors));
        codec::hash(&(hashed, recovery, waits, order, known))
    }
}

fn sorted<T: Ord>(entries: impl Iterator<Item = T>) -> Vec<T> {
    let mut entries: Vec<T> = entries.collect();
    entries.sort();
    entries
}

impl Lens<'_> {
    /// How long until then; what has passed is all the same.
    fn ahead(&self, at: Time) -> Nanos {
        at.since(self.now)
    }

    fn op(&self, op: OpId) -> OpId {
        (self.operation)(op)
    }

    fn ops(&self, op: Option<OpId>) -> Option<OpId> {
        op.map(|op| self.op(op))
    }

    fn retry(&self, retry: &Retry) -> (u32, Nanos) {
        (retry.failures(), retry.until().map(|at| self.ahead(at)).unwrap_or_default())
    }

    fn look(&self, look: &Look) -> (Option<OpId>, bool, (u32, Nanos)) {
        let Look { asked, seen, retry } = look;
        (self.ops(*asked), *seen, self.retry(retry))
    }

    fn mirrors(&self, mirrors: &BTreeMap<FullName, MirrorState>) -> Vec<Digest> {
        let one = |(name, state): (&FullName, &MirrorState)| {
            let MirrorState { seen, outdated, doing, retry } = state;
            codec::hash(&(name, seen, outdated, self.ops(*doing), self.retry(retry)))
        };
        mirrors.iter().map(one).collect()
    }

    /// Static pods in the order in which they were first seen: those of one name take turns by it.
    fn arrivals(&self) -> Vec<PodUid> {
        self.by(|pod| (pod.pod.source == Source::File).then_some(pod.arrived.0))
    }

    /// Pods that want allocation, longest waiting first.
    fn waiting_order(&self) -> Vec<PodUid> {
        self.by(|pod| pod.pending.as_deref().map(|pending| pending.since.0))
    }

    fn by(&self, number: impl Fn(&PodState) -> Option<u64>) -> Vec<PodUid> {
        let numbered = self.node.state.pods.iter().filter_map(|(uid, pod)| Some((number(pod)?, *uid)));
        let mut pods: Vec<(u64, PodUid)> = numbered.collect();
        pods.sort();
        pods.into_iter().map(|(_, uid)| (self.who)(uid)).collect()
    }

    fn pod(&self, state: &PodState) -> Digest {
        let PodState {
            pod,
            arrived: _,
            born,
            applied_in,
            object_gone,
            again,
            allocated,
            lifecycle,
            terminal,
            end_reason: _,
            start_time,
            ever_ran,
            initialized,
            initialized_in,
            sandbox,
            old_sandboxes,
            next_sandbox,
            sandbox_retry,
            containers,
            incarnation_floor,
            surplus,
            volumes,
            generation_floor,
            content_changed,
            let_go: _,
            pending,
            in_progress,
            cgroup,
            cgroup_resizing,
            cgroup_retry,
            restarting_all,
            observing,
            observe_retry,
            newer_than_look,
            gates_met,
            publication,
            releasing,
            release_retry,
            charge: _,
            charge_stale: _,
            wake,
        } = state;
        let epoch = self.node.state.epoch;
        let desired = |pod: &crate::spec::Pod| {
            (codec::hash(&*pod.spec), pod.generation, pod.deletion.map(|d| d.grace), pod.api_terminal)
        };
        let lifecycle = match lifecycle {
            Lifecycle::Waiting => (0u8, None),
            Lifecycle::Active => (1, None),
            Lifecycle::Terminating(Termination { cause, since: _, deadline }) => {
                (2, Some((*cause, self.ahead(*deadline))))
            }
            Lifecycle::Terminated => (3, None),
        };
        let started = pod.spec.active_deadline.and(start_time.map(|at| self.now.since(at)));
        let sandboxes: Vec<(u32, u8, Option<OpId>, bool)> =
            old_sandboxes.iter().chain(sandbox).map(|s| self.sandbox(s)).collect();
        let volumes: Vec<Digest> = volumes.iter().map(|v| self.volume(v)).collect();
        let containers: Vec<Digest> = containers.iter().map(|c| self.container(c)).collect();
        let surplus: Vec<(ContainerId, Option<OpId>, (u32, Nanos))> = surplus
            .iter()
            .map(|Surplus { id, kill, retry }| (id.clone(), self.ops(*kill), self.retry(retry)))
            .collect();
        let wish = (
            desired(pod),
            again.as_ref().map(|pod| desired(pod)),
            allocated.as_ref().map(|a| (a.spec.digest(), a.generation)),
            pending
                .as_deref()
                .map(|Pending { kind, message, generation, since: _ }| (*kind, message.clone(), *generation)),
            in_progress
                .as_deref()
                .map(|InProgress { generation, error, since: _ }| (*generation, error.is_some())),
        );
        let life = (
            (*born == epoch, *applied_in == epoch, *object_gone),
            (lifecycle, *terminal, started, *ever_ran, *initialized, *initialized_in),
            (sandboxes, *next_sandbox, self.retry(sandbox_retry)),
            (*incarnation_floor, *generation_floor, *content_changed, restarting_all, gates_met),
        );
        let cgroup =
            (cgroup, cgroup_resizing.as_deref().map(|(op, to)| (self.op(*op), to)), self.retry(cgroup_retry));
        let calls = (
            (self.ops(*observing), self.retry(observe_retry), newer_than_look),
            self.publication(publication),
            (self.ops(*releasing), self.retry(release_retry)),
            wake.map(|(at, why)| (self.ahead(at), why)),
        );
        codec::hash(&(wish, life, containers, volumes, surplus, cgroup, calls))
    }

    /// What a status says follows from the rest; that the API has the newest one, and what it shows of ends, does not.
    fn publication(&self, publication: &Publication) -> Digest {
        let Publication { current, stale, sent, writing, mirror, terminal_acknowledged, retry } = publication;
        let shown = current.as_ref().map(|shown| {
            let Shown { digest, is_terminal, ip: _, conditions: _, ends, pull_errors } = shown;
            (Some(*digest) == *sent, *is_terminal, ends, pull_errors)
        });
        let told = (*stale, sent.is_some(), mirror, *terminal_acknowledged);
        codec::hash(&(shown, told, self.ops(*writing), self.retry(retry)))
    }

    fn sandbox(&self, sandbox: &Sandbox) -> (u32, u8, Option<OpId>, bool) {
        let Sandbox { attempt, phase, ip } = sandbox;
        let (number, op) = match phase {
            SandboxPhase::Creating { op } => (0, Some(*op)),
            SandboxPhase::Ready => (1, None),
            SandboxPhase::Dead => (2, None),
            SandboxPhase::Stopping { op } => (3, *op),
            SandboxPhase::Stopped => (4, None),
            SandboxPhase::Removing { op } => (5, Some(*op)),
            SandboxPhase::Unknown => (6, None),
        };
        (*attempt, number, self.ops(op), ip.is_some())
    }

    fn volume(&self, volume: &VolumeState) -> Digest {
        let VolumeState {
            id,
            spec,
            removed,
            phase,
            retry,
            content,
            stale,
            collision_told,
            reconstructed,
            upkeep,
        } = volume;
        let Upkeep { error, refreshing, refresh_retry, renew_at, image_digest: _, usage } = &**upkeep;
        let phase = match *phase {
            VolumePhase::Pending => (0u8, None),
            VolumePhase::Mounting { op } => (1, Some(op)),
            VolumePhase::Mounted => (2, None),
            VolumePhase::Failed => (3, None),
            VolumePhase::Uncertain => (4, None),
            VolumePhase::Unmounting { op } => (5, Some(op)),
        };
        let operations = (
            phase.0,
            self.ops(phase.1),
            self.retry(retry),
            self.ops(*refreshing),
            self.retry(refresh_retry),
            error.is_some(),
        );
        let shown =
            (content, *stale, renew_at.map(|at| self.ahead(at)), *usage, *collision_told, *reconstructed);
        codec::hash(&(id, spec, removed.is_some(), operations, shown))
    }

    fn container(&self, container: &ContainerState) -> Digest {
        let ContainerState {
            name,
            incarnation,
            kind,
            spec,
            removed,
            next_attempt,
            instance,
            pulling,
            image_id,
            pull_retry,
            start_retry,
            start_failure,
            last,
            previous,
            end_shown,
            dead,
            restarts,
            crashes,
            backoff_told,
            completed_in,
            ever_started,
            usage,
        } = container;
        let timing = &self.node.state.config.timing;
        let backoff = crash_backoff(*crashes, timing.crash_backoff_initial, timing.crash_backoff_max);
        let last = last.as_ref().map(|ended| {
            let due = self.ahead(ended.exit.finished_at.after(backoff));
            (ended.attempt, ended.exit.code, ended.sandbox, ended.why, due)
        });
        let dead: Vec<_> =
            dead.iter().map(|d| (d.attempt, d.sandbox, self.ops(d.removing), self.retry(&d.retry))).collect();
        let who = (name, *incarnation, *kind, spec, removed.is_some(), *next_attempt);
        let start = (
            pulling.as_deref().map(|(op, image)| (self.op(*op), image)),
            image_id.is_some(),
            self.retry(pull_retry),
            self.retry(start_retry),
            start_failure.as_deref().map(|(reason, _)| reason),
        );
        let ends = (last, previous.is_some(), *end_shown, dead, *restarts, *crashes, *backoff_told);
        let told = (*completed_in, *ever_started, *usage);
        codec::hash(&(who, instance.as_ref().map(|i| self.instance(i)), start, ends, told))
    }

    fn instance(&self, instance: &crate::state::Instance) -> Digest {
        let crate::state::Instance {
            attempt,
            phase,
            spec,
            leases,
            image_id: _,
            sandbox,
            started_at,
            resources,
            resizing,
            resize_retry,
            post_start,
            probes,
            stop,
        } = instance;
        let phase = match *phase {
            InstancePhase::Creating { op } => (0u8, Some(op)),
            InstancePhase::Created => (1, None),
            InstancePhase::Starting { op } => (2, Some(op)),
            InstancePhase::Running => (3, None),
            InstancePhase::Unknown => (4, None),
            InstancePhase::Lost => (5, None),
            InstancePhase::Discarding { op } => (6, Some(op)),
        };
        // How long it has run counts only up to where it resets the back-off.
        let reset = self.node.state.config.timing.crash_backoff_reset;
        let ran = started_at.map(|at| self.now.since(at) >= reset);
        let made = (*attempt, phase.0, self.ops(phase.1), spec, &**leases, *sandbox, ran);
        let resize =
            (resources, resizing.as_deref().map(|(op, to)| (self.op(*op), to)), self.retry(resize_retry));
        let stop = stop.as_deref().map(|Stop { why, deadline, pre_stop, sent, kill, retry }| {
            let sent = sent.map(|(op, at)| (self.ops(op), self.ahead(at)));
            (*why, self.ahead(*deadline), self.hook(*pre_stop), sent, self.ops(*kill), self.retry(retry))
        });
        codec::hash(&(made, resize, self.hook(*post_start), (probes.asked, probes.results), stop))
    }

    fn hook(&self, hook: HookState) -> (u8, Option<OpId>) {
        match hook {
            HookState::Due => (0, None),
            HookState::Running { op } => (1, Some(self.op(op))),
            HookState::Done => (2, None),
        }
    }
}
