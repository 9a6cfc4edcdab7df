//! What a hunt reached: pairs of a state that something was in and an event that it met there, by the core's decision
//! tables, and the rules by which commands were given. What was never reached is listed, so that people see where the hunt
//! is blind (harness sheet H8).

use nodefold_core::command::{Command, Rule, Subject, Transition};
use nodefold_core::event::Fact;
use nodefold_core::ids::PodUid;
use std::collections::BTreeMap;

/// What the states belong to, and the states that each may be in.
const STATES: [(&str, &[&str]); 4] = [
    ("pod", &["Waiting", "Active", "Terminating", "Terminated"]),
    ("sandbox", &["Creating", "Ready", "Dead", "Stopping", "Stopped", "Removing", "Unknown"]),
    (
        "container",
        &[
            "Waiting",
            "Pulling",
            "Creating",
            "Created",
            "Starting",
            "Running",
            "Stopping",
            "Unknown",
            "Lost",
            "Discarding",
            "Exited",
        ],
    ),
    ("volume", &["Pending", "Mounting", "Mounted", "Failed", "Uncertain", "Unmounting"]),
];

/// Events that each of them can meet. What no world can bring about is not among them.
const EVENTS: [&[&str]; 4] = [
    &[
        "PodApplied",
        "PodRemoved",
        "StatusWritten",
        "StatusWriteFailed",
        "ReleaseFailed",
        "PodResized",
        "PodResizeFailed",
        "AgentStarted",
        "NodeChanged",
    ],
    &[
        "PodApplied",
        "PodRemoved",
        "SandboxReady",
        "SandboxFailed",
        "SandboxStopped",
        "SandboxStopFailed",
        "SandboxRemoved",
        "SandboxRemoveFailed",
        "AgentStarted",
        "RuntimeObserved",
    ],
    &[
        "PodApplied",
        "PodRemoved",
        "ImagePulled",
        "ImagePullFailed",
        "ContainerCreated",
        "ContainerCreateFailed",
        "ContainerStarted",
        "ContainerStartFailed",
        "ContainerExited",
        "ContainerStopFailed",
        "ContainerRemoved",
        "ContainerRemoveFailed",
        "ContainerResized",
        "ContainerResizeFailed",
        "HookDone",
        "ProbeResult",
        "AgentStarted",
        "RuntimeObserved",
    ],
    &[
        "PodApplied",
        "PodRemoved",
        "VolumeMounted",
        "VolumeMountFailed",
        "VolumeUnmounted",
        "VolumeUnmountFailed",
        "VolumeRefreshed",
        "VolumeRefreshFailed",
        "ObjectSeen",
        "ObjectGone",
        "AgentStarted",
        "MountsObserved",
    ],
];

const RULES: [Rule; 33] = [
    Rule::VolumeDesired,
    Rule::VolumeRetry,
    Rule::VolumeRefresh,
    Rule::VolumeRemoved,
    Rule::PodVolumesReleased,
    Rule::VolumeOrphaned,
    Rule::SandboxNeeded,
    Rule::SandboxObsolete,
    Rule::InitNext,
    Rule::SidecarNeeded,
    Rule::MainNeeded,
    Rule::EphemeralNeeded,
    Rule::ContainerRemoved,
    Rule::DefinitionChanged,
    Rule::MountsChanged,
    Rule::ResizeRestart,
    Rule::ResizeInPlace,
    Rule::LivenessFailed,
    Rule::StartupFailed,
    Rule::PostStartFailed,
    Rule::RuntimeUnknown,
    Rule::RestartAll,
    Rule::SandboxGone,
    Rule::PodTerminating,
    Rule::GraceExceeded,
    Rule::Surplus,
    Rule::GarbageCollected,
    Rule::ObservationNeeded,
    Rule::StatusChanged,
    Rule::PodReleased,
    Rule::LifecycleHook,
    Rule::ProbeLifetime,
    Rule::Told,
];

/// Where the subjects of a run are now.
#[derive(Clone, Debug, Default)]
pub struct Whereabouts {
    phases: BTreeMap<PodUid, BTreeMap<Subject, u8>>,
}

/// What was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// One bit for each state and event, in four tables.
    pairs: [[u32; 11]; 4],
    /// One bit for each rule.
    rules: u64,
}

fn table_of(subject: &Subject) -> usize {
    match subject {
        Subject::Pod => 0,
        Subject::Sandbox(_) => 1,
        Subject::Container(_) => 2,
        Subject::Volume(_) => 3,
    }
}

impl Coverage {
    /// A fact, before it is folded.
    pub fn fact(&mut self, fact: &Fact, whereabouts: &Whereabouts) {
        match reach(fact) {
            Reach::Nothing => {}
            Reach::One(pod, subject) => {
                if let Some(phases) = whereabouts.phases.get(&pod)
                    && let Some(phase) = phases.get(&subject)
                {
                    self.met(&subject, *phase, fact.name());
                }
            }
            Reach::Pod(pod) => {
                for (subject, phase) in whereabouts.phases.get(&pod).into_iter().flatten() {
                    self.met(subject, *phase, fact.name());
                }
            }
            Reach::All => {
                for (subject, phase) in whereabouts.phases.values().flatten() {
                    self.met(subject, *phase, fact.name());
                }
            }
        }
    }

    fn met(&mut self, subject: &Subject, phase: u8, event: &str) {
        let table = table_of(subject);
        if let Some(event) = EVENTS[table].iter().position(|name| *name == event) {
            self.pairs[table][usize::from(phase)] |= 1 << event;
        }
    }

    /// A command.
    pub fn command(&mut self, command: &Command) {
        if let Some(rule) = RULES.iter().position(|rule| *rule == command.cause.rule) {
            self.rules |= 1 << rule;
        }
    }

    /// What others reached is reached.
    pub fn add(&mut self, other: &Coverage) {
        for (own, others) in self.pairs.iter_mut().flatten().zip(other.pairs.iter().flatten()) {
            *own |= others;
        }
        self.rules |= other.rules;
    }

    /// Pairs reached, and pairs there are.
    pub fn reached(&self) -> (u32, u32) {
        let reached = self.pairs.iter().flatten().map(|events| events.count_ones()).sum();
        let all =
            STATES.iter().zip(EVENTS).map(|((_, states), events)| states.len() * events.len()).sum::<usize>();
        (reached, all as u32)
    }

    /// Pairs never reached: what, in which state, and the events that it never met there.
    pub fn unvisited(&self) -> Vec<(String, Vec<&'static str>)> {
        let mut unvisited = Vec::new();
        for (table, (what, states)) in STATES.iter().enumerate() {
            for (phase, state) in states.iter().enumerate() {
                let met = self.pairs[table][phase];
                let missed = EVENTS[table].iter().enumerate().filter(|(event, _)| met >> event & 1 == 0);
                let missed: Vec<&'static str> = missed.map(|(_, name)| *name).collect();
                if !missed.is_empty() {
                    unvisited.push((format!("{what} {state}"), missed));
                }
            }
        }
        unvisited
    }

    /// Rules by which no command was ever given.
    pub fn unused_rules(&self) -> Vec<String> {
        let unused = RULES.iter().enumerate().filter(|(index, _)| self.rules >> index & 1 == 0);
        unused.map(|(_, rule)| format!("{rule:?}")).collect()
    }
}

impl Whereabouts {
    /// Something changed its phase.
    pub fn moved(&mut self, transition: &Transition) {
        let table = table_of(&transition.subject);
        let subjects = self.phases.entry(transition.pod).or_default();
        match STATES[table].1.iter().position(|state| *state == &*transition.to) {
            Some(phase) => {
                subjects.insert(transition.subject.clone(), phase as u8);
            }
            None => {
                subjects.remove(&transition.subject);
            }
        }
        if subjects.is_empty() {
            self.phases.remove(&transition.pod);
        }
    }
}

/// Whom a fact reaches.
enum Reach {
    Nothing,
    One(PodUid, Subject),
    Pod(PodUid),
    All,
}

fn reach(fact: &Fact) -> Reach {
    match fact {
        Fact::PodApplied(pod) => Reach::Pod(pod.uid),
        Fact::PodRemoved { pod } => Reach::Pod(*pod),
        Fact::AgentStarted { .. }
        | Fact::MountsObserved { .. }
        | Fact::RuntimeObserved { .. }
        | Fact::NodeChanged(_)
        | Fact::ObjectSeen { .. }
        | Fact::ObjectGone { .. } => Reach::All,
        Fact::VolumeMounted { pod, volume, .. }
        | Fact::VolumeMountFailed { pod, volume, .. }
        | Fact::VolumeUnmounted { pod, volume, .. }
        | Fact::VolumeUnmountFailed { pod, volume, .. }
        | Fact::VolumeRefreshed { pod, volume, .. }
        | Fact::VolumeRefreshFailed { pod, volume, .. } => Reach::One(*pod, Subject::Volume(volume.clone())),
        Fact::ImagePulled { pod, container, .. }
        | Fact::ImagePullFailed { pod, container, .. }
        | Fact::ContainerCreated { pod, container, .. }
        | Fact::ContainerCreateFailed { pod, container, .. }
        | Fact::ContainerStarted { pod, container, .. }
        | Fact::ContainerStartFailed { pod, container, .. }
        | Fact::ContainerExited { pod, container, .. }
        | Fact::ContainerStopFailed { pod, container, .. }
        | Fact::ContainerRemoved { pod, container, .. }
        | Fact::ContainerRemoveFailed { pod, container, .. }
        | Fact::ContainerResized { pod, container, .. }
        | Fact::ContainerResizeFailed { pod, container, .. }
        | Fact::HookDone { pod, container, .. }
        | Fact::ProbeResult { pod, container, .. } => Reach::One(*pod, Subject::Container(container.clone())),
        Fact::SandboxReady { pod, attempt, .. }
        | Fact::SandboxFailed { pod, attempt, .. }
        | Fact::SandboxStopped { pod, attempt, .. }
        | Fact::SandboxStopFailed { pod, attempt, .. }
        | Fact::SandboxRemoved { pod, attempt, .. }
        | Fact::SandboxRemoveFailed { pod, attempt, .. } => Reach::One(*pod, Subject::Sandbox(*attempt)),
        Fact::PodResized { pod, .. }
        | Fact::PodResizeFailed { pod, .. }
        | Fact::StatusWritten { pod, .. }
        | Fact::StatusWriteFailed { pod, .. }
        | Fact::ReleaseFailed { pod, .. } => Reach::One(*pod, Subject::Pod),
        Fact::Tick
        | Fact::SourceReady { .. }
        | Fact::ReadinessGate { .. }
        | Fact::UsageReported { .. }
        | Fact::MirrorSeen { .. }
        | Fact::MirrorGone { .. }
        | Fact::MirrorCreated { .. }
        | Fact::MirrorDeleted { .. }
        | Fact::MirrorFailed { .. }
        | Fact::ObserveFailed { .. } => Reach::Nothing,
    }
}
