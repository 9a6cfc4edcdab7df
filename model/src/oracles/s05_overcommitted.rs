//! S5: charged resources never exceed allocatable, unless allocatable shrank. A pod is charged the larger of its allocated
//! sum and its actuated sum, removed containers that may still run included in the latter (B3, B4).
//!
//! Judged where a pod's charge is shown to have grown, at the end of the batch that shows it (what made room may be
//! told later in the same batch). Of a pod whose allocation is not known exactly, only what every possible version asks
//! for is charged, and room is counted as the most there was since the growth was asked for: what is left is proven.

use super::violation;
use crate::invariant::{Invariant, Violation};
use crate::world_view::WorldView;
use crate::world_view::commands::carried_allocation;
use crate::world_view::container::{ContainerView, LEAST_CPU_MILLICORES, Role, find_container};
use crate::world_view::pod::PodView;
use nodefold_core::command::{Action, Command, Subject};
use nodefold_core::event::Fact;
use nodefold_core::ids::PodUid;
use nodefold_core::resources::{ResourceList, ResourceName};
use nodefold_core::spec::{PodSpec, RestartPolicy};
use nodefold_core::time::Time;
use std::collections::{BTreeMap, BTreeSet};

/// What a pod is charged.
#[derive(Clone, Debug, Default)]
struct Charge {
    /// For certain, whichever version is allocated.
    least: ResourceList,
    /// By the allocation that was shown last.
    shown: ResourceList,
}

/// What every pod is charged.
#[derive(Clone, Debug, Default)]
pub(super) struct Charges {
    charged: BTreeMap<PodUid, Charge>,
    total: ResourceList,
    /// Pods whose charge may have changed since it was computed.
    stale: BTreeSet<PodUid>,
    /// Pods whose charge this batch may have raised, and the record that shows it.
    raised: BTreeMap<PodUid, usize>,
    /// A resize tells which version is allocated, and is judged as such by S3: from it on the charge is another.
    recount: bool,
}

impl Charges {
    /// How many pods are remembered.
    pub(super) fn remembered(&self) -> usize {
        self.charged.len() + self.stale.len() + self.raised.len()
    }

    /// A command may show a charge.
    pub(super) fn command(&mut self, command: &Command, index: usize) {
        self.recount |= matches!(command.action, Action::ResizeContainer { .. });
        if carried_allocation(&command.action).is_some() {
            self.raised.insert(command.pod, index);
        }
        // Any of a pod's commands may tell that it is over.
        self.stale.insert(command.pod);
    }

    /// A fact may change one.
    pub(super) fn fact(&mut self, fact: &Fact) {
        match fact.pod() {
            Some(pod) => {
                self.stale.insert(pod);
            }
            None => {
                let all = matches!(
                    fact,
                    Fact::AgentStarted { .. } | Fact::RuntimeObserved { .. } | Fact::SourceReady { .. }
                );
                if all {
                    self.stale.extend(self.charged.keys().copied());
                }
            }
        }
    }

    /// Judges the batch that ends here.
    pub(super) fn settle(&mut self, world: &WorldView, at: Time, out: &mut Vec<Violation>) {
        if self.raised.is_empty() && !std::mem::take(&mut self.recount) {
            return;
        }
        let raised = std::mem::take(&mut self.raised);
        let mut former: BTreeMap<PodUid, Charge> = BTreeMap::new();
        for uid in std::mem::take(&mut self.stale) {
            let before = self.charged.remove(&uid).unwrap_or_default();
            self.total.subtract(&before.least);
            if let Some(charge) = world.pods.get(&uid).and_then(charge) {
                self.total.add(&charge.least);
                self.charged.insert(uid, charge);
            }
            former.insert(uid, before);
        }
        for (uid, index) in raised {
            let (Some(charge), Some(pod)) = (self.charged.get(&uid), world.pods.get(&uid)) else { continue };
            let former = former.remove(&uid).unwrap_or_default();
            let mut before = former.least;
            before.raise_to(&former.shown);
            let asked = pod.allocation.asked.unwrap_or(index);
            let room = world.most_allocatable_since(asked);
            let exceeded = charge.least.iter().find(|(name, amount)| {
                *amount > before.get(name)
                    && limit(&room, name).is_some_and(|limit| self.total.get(name) > limit)
            });
            if let Some((name, amount)) = exceeded {
                let explanation = format!(
                    "the pod's charge of {name} grows from {} to {amount}, and all pods together are charged {} of {}",
                    before.get(name),
                    self.total.get(name),
                    room.get(name),
                );
                let evidence = [asked, index];
                out.push(violation(Invariant::S5, at, uid, Some(Subject::Pod), explanation, evidence));
            }
        }
    }
}

/// How much there is of a resource; `None`: it isn't limited. An extended resource not listed is absent.
fn limit(room: &ResourceList, name: &ResourceName) -> Option<u64> {
    match name {
        ResourceName::Other(_) => Some(room.get(name)),
        ResourceName::Cpu | ResourceName::Memory | ResourceName::EphemeralStorage | ResourceName::Pods => {
            room.given(name)
        }
    }
}

/// What the pod is charged for certain; `None` if nothing: not known to be admitted, or over.
fn charge(pod: &PodView) -> Option<Charge> {
    let admitted = pod.allocation.was_shown() || !pod.containers.is_empty();
    let over = pod.terminal.is_some()
        || (pod.termination.is_some() && pod.running().is_none())
        || pod.ran_to_its_end();
    if !admitted || over {
        return None;
    }
    let shown = pod.allocation.shown.as_ref().map(|(_, spec)| allocated_sum(spec)).unwrap_or_default();
    // Whether a static pod has run out of its time, and whether one that is never restarted has lost its sandbox for good
    // (kubelet-pods cases 40 and 58), is told by nothing but that it lies still.
    let timed = pod.applied.as_ref().is_some_and(|p| p.spec.active_deadline.is_some());
    let ran_once = pod.restart_policy() == Some(RestartPolicy::Never) && !pod.containers.is_empty();
    if (timed || ran_once) && pod.running().is_none() && !pod.has_a_sandbox() {
        return Some(Charge { least: ResourceList::default(), shown });
    }
    let mut possible = pod.allocation.possible();
    let mut least = possible.next().map(|spec| allocated_sum(spec)).unwrap_or_default();
    for spec in possible {
        let other = allocated_sum(spec);
        least = ResourceList::from_pairs(
            least.iter().map(|(name, amount)| (name.clone(), (*amount).min(other.get(name)))),
        );
    }
    let mut actuated = ResourceList::default();
    for container in pod.containers.iter().filter(|c| c.may_run()) {
        match container.role {
            Role::Main | Role::Sidecar | Role::Unknown => actuated.add(&held(pod, container)),
            // The peak of initialization is in the allocated sum; ephemeral containers ask for nothing.
            Role::Init | Role::Ephemeral => {}
        }
    }
    if let Some(spec) = pod.allocation.possible().last() {
        actuated.add(&spec.overhead);
        // A pod-level request bounds what its containers can take.
        for (name, _) in spec.resources.iter().flat_map(|r| r.requests.iter()) {
            actuated.set(name.clone(), 0);
        }
    }
    least.raise_to(&actuated);
    Some(Charge { least, shown })
}

/// What the container holds for certain. Of an allocation that the kernel takes for the same no call is made (kubelet-pods
/// case 81): a memory request without another limit, or cpu requests that mean the least shares there are.
fn held(pod: &PodView, container: &ContainerView) -> ResourceList {
    let mut held = container.resources.requests.clone();
    if container.removed.is_some() {
        return held;
    }
    let name = &container.id.name;
    for wanted in pod.allocation.possible().filter_map(|spec| find_container(spec, name)) {
        let wanted = &wanted.0.resources;
        let (cpu, memory) = (ResourceName::Cpu, ResourceName::Memory);
        let limit_stays = wanted.limits.get(&memory) == container.resources.limits.get(&memory);
        if limit_stays && wanted.requests.get(&memory) < held.get(&memory) {
            let least = wanted.requests.get(&memory);
            held.set(memory, least);
        }
        if held.get(&cpu) <= LEAST_CPU_MILLICORES {
            held.set(cpu, 0);
        }
    }
    held
}

/// What a spec asks for, as Kubernetes sums it: mains and sidecars together, or the hungriest moment of initialization;
/// pod-level requests stand for their containers'; overhead on top; and one pod.
fn allocated_sum(spec: &PodSpec) -> ResourceList {
    let mut sum = ResourceList::default();
    for container in &spec.containers {
        sum.add(&container.resources.requests);
    }
    let mut sidecars = ResourceList::default();
    let mut peak = ResourceList::default();
    for init in &spec.init_containers {
        let mut moment = sidecars.clone();
        moment.add(&init.resources.requests);
        if PodSpec::is_sidecar(init) {
            sidecars = moment.clone();
        }
        peak.raise_to(&moment);
    }
    sum.add(&sidecars);
    sum.raise_to(&peak);
    for (name, amount) in spec.resources.iter().flat_map(|r| r.requests.iter()) {
        sum.set(name.clone(), *amount);
    }
    sum.add(&spec.overhead);
    sum.set(ResourceName::Pods, 1);
    sum
}
