//! Refinement: the production core does nothing that the specification does not permit (DESIGN §7).
//!
//! After each fact the pods that it touched are abstracted ([`abstraction`]), and what changed is explained as moves that
//! rows of the specification's tables permit, in an order in which the needs of each hold ([`moves`]). A change without
//! such an explanation is a violation, told with both abstract states. So is a command that no move stands behind, and a
//! move without its command ([`commands`]).

mod abstraction;
mod commands;
mod moves;

pub use abstraction::{Container, PodView, Volume};

use crate::spec::By;
use crate::spec::pod::Seen;
use nodefold_core::command::Command;
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::PodUid;
use nodefold_core::{Node, time::Time};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

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
    pods: BTreeMap<PodUid, Arc<PodView>>,
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
            .filter_map(|uid| node.pod(uid).map(|pod| (uid, Arc::new(abstraction::of(pod)))))
            .collect();
    }

    /// Judges one step: the fact that was folded, whether timers were due before it, what was commanded, and the node after
    /// it.
    pub fn step(
        &mut self,
        event: &Event,
        timers_first: bool,
        commands: &[Command],
        node: &Node,
    ) -> Vec<Unpermitted> {
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
        // Where a timer acted before the fact, the fact may have ended what it began.
        let ended = timers_first && !matches!(event.fact, Fact::Tick);
        let mut pods: Vec<PodUid> = node.latest_touched().to_vec();
        pods.extend(commands.iter().map(|command| command.pod).filter(|uid| uid.0 != 0));
        pods.sort_unstable();
        pods.dedup();
        let mut found = Vec::new();
        for uid in pods {
            let after = node.pod(uid).map(abstraction::of).unwrap_or_default();
            let nothing = PodView::default();
            let before = self.pods.get(&uid).map_or(&nothing, |pod| &**pod);
            let said: Vec<&Command> = commands.iter().filter(|command| command.pod == uid).collect();
            let moved = if *before == after { Ok(()) } else { moves::explain(before, &after, situation) };
            let told = if ended { Ok(()) } else { commands::judge(before, &after, &said) };
            if let Err(what) = moved.and(told) {
                found.push(Unpermitted {
                    pod: uid,
                    at: event.at,
                    fact: event.fact.name(),
                    what,
                    before: before.to_string(),
                    after: after.to_string(),
                });
            }
            if after == nothing {
                self.pods.remove(&uid);
            } else {
                self.pods.insert(uid, Arc::new(after));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
