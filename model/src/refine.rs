//! Refinement: the production core does nothing that the specification does not permit (DESIGN §7).
//!
//! After each fact the pods that it touched are abstracted ([`abstraction`]), and what changed is explained as moves that
//! rows of the specification's tables permit, in an order in which the needs of each hold ([`moves`]). A change without
//! such an explanation is a violation, told with both abstract states.

mod abstraction;
mod moves;

pub use abstraction::{Container, PodView, Volume};

use crate::spec::By;
use crate::spec::pod::Seen;
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::PodUid;
use nodefold_core::{Node, time::Time};
use std::collections::BTreeMap;
use std::fmt;

/// A change that no sequence of permitted moves explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpermitted {
    /// In which pod.
    pub pod: PodUid,
    /// By the fold of the fact of this moment.
    pub at: Time,
    /// The fact's name.
    pub fact: &'static str,
    /// What was not permitted, and what it lacked.
    pub what: String,
    /// The pod before.
    pub before: String,
    /// The pod after.
    pub after: String,
}

impl fmt::Display for Unpermitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unpermitted { pod, fact, what, before, after, .. } = self;
        write!(f, "{what} (pod {pod}, by {fact}); before: {before}; after: {after}")
    }
}

/// What was known of each pod after the latest fact.
#[derive(Clone, Debug, Default)]
pub struct Refinement {
    pods: BTreeMap<PodUid, PodView>,
    seen: Seen,
    boot_id: Option<u128>,
}

/// What a step is judged by, besides the pod.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Situation {
    /// Who may have moved something in this step.
    pub(crate) movers: Movers,
    /// The mount table was not seen before this step.
    pub(crate) looking: bool,
    /// What the agent knows after it.
    pub(crate) seen: Seen,
    /// Timers were due before the fact: the node acted before the world did.
    pub(crate) timers_first: bool,
    /// The fact says that objects are gone from their source.
    pub(crate) object_gone: bool,
    /// Without KEP-5972 an image bypasses allocation.
    pub(crate) images_bypass: bool,
}

/// Who may have moved something in a step; the node and the allocation always may.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Movers {
    crash: bool,
    host: bool,
    look: bool,
    world: bool,
}

impl Movers {
    fn of(fact: &Fact, rebooted: bool) -> Movers {
        let none = Movers::default();
        match fact {
            Fact::Tick => none,
            Fact::AgentStarted { .. } => Movers { crash: true, host: rebooted, ..none },
            Fact::MountsObserved { .. } | Fact::RuntimeObserved { .. } => {
                Movers { look: true, world: true, ..none }
            }
            // What was found of a pod is handed to it when it is named.
            Fact::PodApplied(_) | Fact::SourceReady { .. } => Movers { look: true, world: true, ..none },
            Fact::PodRemoved { .. }
            | Fact::ObjectSeen { .. }
            | Fact::ObjectGone { .. }
            | Fact::NodeChanged(_)
            | Fact::ReadinessGate { .. }
            | Fact::VolumeMounted { .. }
            | Fact::VolumeMountFailed { .. }
            | Fact::VolumeUnmounted { .. }
            | Fact::VolumeUnmountFailed { .. }
            | Fact::VolumeRefreshed { .. }
            | Fact::VolumeRefreshFailed { .. }
            | Fact::UsageReported { .. }
            | Fact::ImagePulled { .. }
            | Fact::ImagePullFailed { .. }
            | Fact::SandboxReady { .. }
            | Fact::SandboxFailed { .. }
            | Fact::SandboxStopped { .. }
            | Fact::SandboxStopFailed { .. }
            | Fact::SandboxRemoved { .. }
            | Fact::SandboxRemoveFailed { .. }
            | Fact::ContainerCreated { .. }
            | Fact::ContainerCreateFailed { .. }
            | Fact::ContainerStarted { .. }
            | Fact::ContainerStartFailed { .. }
            | Fact::ContainerExited { .. }
            | Fact::ContainerStopFailed { .. }
            | Fact::ContainerRemoved { .. }
            | Fact::ContainerRemoveFailed { .. }
            | Fact::ContainerResized { .. }
            | Fact::ContainerResizeFailed { .. }
            | Fact::PodResized { .. }
            | Fact::PodResizeFailed { .. }
            | Fact::HookDone { .. }
            | Fact::ProbeResult { .. }
            | Fact::ObserveFailed { .. }
            | Fact::StatusWritten { .. }
            | Fact::StatusWriteFailed { .. }
            | Fact::ReleaseFailed { .. }
            | Fact::MirrorSeen { .. }
            | Fact::MirrorGone { .. }
            | Fact::MirrorCreated { .. }
            | Fact::MirrorDeleted { .. }
            | Fact::MirrorFailed { .. } => Movers { world: true, ..none },
        }
    }

    pub(crate) fn may(self, by: By, act: &str) -> bool {
        match by {
            By::Crash => self.crash && (self.host || act != "host died"),
            By::Look => self.look,
            By::World | By::Fault => self.world,
            By::Allocation | By::Node => true,
        }
    }
}

impl Refinement {
    /// Begins from what the node has now: another life of it, folded from what was durable.
    pub fn resync(&mut self, node: &Node) {
        self.boot_id = node.boot_id();
        self.pods = node
            .pods()
            .into_iter()
            .filter_map(|uid| node.pod(uid).map(|pod| (uid, abstraction::of(pod))))
            .collect();
    }

    /// Judges one step: the fact that was folded, whether timers were due before it, and the node after it.
    pub fn step(&mut self, event: &Event, timers_first: bool, node: &Node) -> Vec<Unpermitted> {
        let mut rebooted = false;
        if let Fact::AgentStarted { boot_id } = event.fact {
            rebooted = self.boot_id.is_some_and(|before| before != boot_id);
            self.boot_id = Some(boot_id);
            self.seen = Seen::default();
        }
        let seen = Seen {
            sources: node.has_seen_sources(),
            mounts: node.has_seen_mounts(),
            runtime: node.has_seen_runtime(),
        };
        let situation = Situation {
            movers: Movers::of(&event.fact, rebooted),
            looking: !self.seen.mounts,
            seen,
            timers_first,
            object_gone: matches!(event.fact, Fact::PodRemoved { .. } | Fact::SourceReady { .. }),
            images_bypass: !node.config().node.gates.dynamic_containers,
        };
        self.seen = seen;
        let mut found = Vec::new();
        for uid in node.latest_touched() {
            let after = node.pod(*uid).map(abstraction::of).unwrap_or_default();
            let before = self.pods.get(uid);
            if before == Some(&after) {
                continue;
            }
            let nothing = PodView::default();
            let before = before.unwrap_or(&nothing);
            if let Err(what) = moves::explain(before, &after, situation) {
                found.push(Unpermitted {
                    pod: *uid,
                    at: event.at,
                    fact: event.fact.name(),
                    what,
                    before: before.to_string(),
                    after: after.to_string(),
                });
            }
            if after == nothing {
                self.pods.remove(uid);
            } else {
                self.pods.insert(*uid, after);
            }
        }
        found
    }

    /// What is known of a pod.
    pub fn pod(&self, uid: PodUid) -> Option<&PodView> {
        self.pods.get(&uid)
    }
}

#[cfg(test)]
mod tests;
