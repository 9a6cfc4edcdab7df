//! Choices: everything that may happen next, as typed values with stable names, and who picks among them (DESIGN §6).

use super::inflight::OpKey;
use nodefold_core::event::ProbeKind;
use nodefold_core::ids::{ContainerId, ObjectRef, PodUid, Source};
use nodefold_core::time::Time;
use serde::{Deserialize, Serialize};

/// One thing that may happen next. The order of the variants settles ties: what the host does comes before what the
/// agent hears of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Choice {
    /// A process ends as it is about to.
    ProcessEnds {
        /// Whose.
        pod: PodUid,
        /// Which.
        container: ContainerId,
    },
    /// The grace of a stop is over: the runtime kills.
    GraceOver {
        /// Whose.
        pod: PodUid,
        /// Which.
        container: ContainerId,
    },
    /// An operation takes effect.
    Effect(OpKey),
    /// The agent hears how an operation ended.
    Answer(OpKey),
    /// The agent hears that a process ended.
    ExitNoticed {
        /// Whose.
        pod: PodUid,
        /// Which.
        container: ContainerId,
    },
    /// The agent hears that a sandbox died by itself.
    SandboxNoticed {
        /// Whose.
        pod: PodUid,
        /// Which attempt.
        attempt: u32,
    },
    /// The agent hears a completion once more, or one of its former life's (its number among all such).
    Echo(u32),
    /// The agent hears of a probe.
    ProbeReported {
        /// Whose.
        pod: PodUid,
        /// Which container.
        container: ContainerId,
        /// Which probe.
        probe: ProbeKind,
    },
    /// A watch delivers changes of one pod to the agent, the newest of them standing for all.
    Deliver {
        /// From where.
        source: Source,
        /// Which pod.
        pod: PodUid,
        /// All that wait, not only the first: they coalesce.
        all: bool,
    },
    /// The agent hears that a source has delivered everything.
    SourceListed(Source),
    /// The agent hears of the newest version of an object.
    ObjectReported(ObjectRef),
    /// The agent hears whether a condition that a readiness gate names is met.
    GateReported {
        /// Whose.
        pod: PodUid,
        /// Its type.
        condition: String,
    },
    /// The agent measures how much something takes up.
    UsageMeasured {
        /// Whose.
        pod: PodUid,
        /// What, in words.
        subject: String,
    },
    /// The agent hears of the node's new facts.
    NodeReported,
    /// A watch that was cut lists anew.
    Reconnect,
    /// The authorizer lets the node read an object.
    Permitted(ObjectRef),
    /// The agent's disk has room again.
    DiskFreed,
    /// The node's own deadline comes.
    Tick,
    /// The agent starts.
    AgentStarts,
}

/// A choice, and when it comes by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enabled {
    /// What.
    pub choice: Choice,
    /// When, if nobody hurries or delays it. Picking a later one first means that the earlier one takes longer.
    pub due: Time,
}

impl Enabled {
    /// It keeps the world from being settled by then.
    pub(super) fn unsettles(&self, horizon: Time) -> bool {
        match &self.choice {
            Choice::Tick => false,
            Choice::ProbeReported { .. } | Choice::GraceOver { .. } => self.due <= horizon,
            Choice::ProcessEnds { .. }
            | Choice::Effect(_)
            | Choice::Answer(_)
            | Choice::ExitNoticed { .. }
            | Choice::SandboxNoticed { .. }
            | Choice::Echo(_)
            | Choice::Deliver { .. }
            | Choice::SourceListed(_)
            | Choice::ObjectReported(_)
            | Choice::GateReported { .. }
            | Choice::UsageMeasured { .. }
            | Choice::NodeReported
            | Choice::Reconnect
            | Choice::Permitted(_)
            | Choice::DiskFreed
            | Choice::AgentStarts => true,
        }
    }
}

/// Who picks: the one source of all nondeterminism in a simulated world.
pub trait Chooser {
    /// The index of the choice that comes next. `enabled` is never empty.
    fn choose(&mut self, enabled: &[Enabled]) -> usize;
}

/// Picks what is due first; the choices' own order settles ties. The default: a node without surprises.
pub struct Earliest;

impl Chooser for Earliest {
    fn choose(&mut self, enabled: &[Enabled]) -> usize {
        let mut best = 0;
        for (i, candidate) in enabled.iter().enumerate() {
            if (candidate.due, &candidate.choice) < (enabled[best].due, &enabled[best].choice) {
                best = i;
            }
        }
        best
    }
}
