//! The stable names of choices and operations: the same in any run in which the same thing may happen, and readable.

use super::World;
use super::choice::Choice;
use super::inflight::OpKey;
use nodefold_core::event::ProbeKind;
use nodefold_core::ids::{ObjectRef, PodUid, Source};

impl World {
    /// An operation's stable name: `mount default/web/scratch#0`.
    pub fn label_of_operation(&self, key: &OpKey) -> String {
        let verb = key.kind.verb();
        let mut label = match (key.pod, key.subject.is_empty()) {
            (PodUid(0), _) => verb.to_owned(),
            (uid, true) => format!("{verb} {}", self.server.label(uid)),
            (uid, false) => format!("{verb} {}/{}", self.server.label(uid), key.subject),
        };
        if key.repeat > 0 {
            label.push_str(&format!(" ({})", key.repeat + 1));
        }
        label
    }

    /// A choice's stable name: `answer of mount default/web/scratch#0`.
    pub fn label(&self, choice: &Choice) -> String {
        let pod = |uid: &PodUid| self.server.label(*uid);
        match choice {
            Choice::ProcessEnds { pod: uid, container } => format!("end of {}/{container}", pod(uid)),
            Choice::GraceOver { pod: uid, container } => {
                format!("end of the grace of {}/{container}", pod(uid))
            }
            Choice::Effect(key) => self.label_of_operation(key),
            Choice::Answer(key) => format!("answer of {}", self.label_of_operation(key)),
            Choice::ExitNoticed { pod: uid, container } => {
                format!("notice of the end of {}/{container}", pod(uid))
            }
            Choice::SandboxNoticed { pod: uid, attempt } => {
                format!("notice of the end of sandbox {}/{attempt}", pod(uid))
            }
            Choice::Echo(number) => format!("stale answer {number}"),
            Choice::ProbeReported { pod: uid, container, probe } => {
                format!("{} probe of {}/{container}", probe_name(*probe), pod(uid))
            }
            Choice::Deliver { source, pod: uid, all } => {
                let changes = if *all { "all changes" } else { "a change" };
                format!("delivery of {changes} of {} from {}", pod(uid), source_name(*source))
            }
            Choice::SourceListed(source) => format!("end of the first list of {}", source_name(*source)),
            Choice::ObjectReported(object) => format!("delivery of {}", object_name(object)),
            Choice::GateReported { pod: uid, condition } => {
                format!("delivery of condition {condition} of {}", pod(uid))
            }
            Choice::UsageMeasured { pod: uid, subject } => {
                format!("measurement of {subject} of {}", pod(uid))
            }
            Choice::NodeReported => "delivery of the node's change".into(),
            Choice::Reconnect => "return of the watch".into(),
            Choice::Permitted(object) => format!("permission to read {}", object_name(object)),
            Choice::DiskFreed => "room on the disk".into(),
            Choice::Tick => "the node's next deadline".into(),
            Choice::AgentStarts => "the agent's start".into(),
        }
    }

    /// The enabled choice of that name.
    pub fn find_choice(&self, label: &str) -> Option<Choice> {
        let mut enabled = Vec::new();
        self.enabled(&mut enabled);
        enabled.into_iter().map(|e| e.choice).find(|choice| self.label(choice) == label)
    }

    /// The operation of that name that is on its way.
    pub(super) fn find_operation(&self, label: &str) -> Option<OpKey> {
        self.inflight.keys().find(|key| self.label_of_operation(key) == label).cloned()
    }
}

/// `Secret default/creds`.
pub fn object_name(object: &ObjectRef) -> String {
    format!("{:?} {}/{}", object.kind, object.namespace, object.name)
}

/// A probe's kind in a word.
pub fn probe_name(kind: ProbeKind) -> &'static str {
    match kind {
        ProbeKind::Startup => "startup",
        ProbeKind::Liveness => "liveness",
        ProbeKind::Readiness => "readiness",
    }
}

fn source_name(source: Source) -> &'static str {
    match source {
        Source::Api => "the API",
        Source::File => "files",
    }
}
