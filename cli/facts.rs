//! Facts in words: about which thing, by which operation, what happened, and whether that is good news.

use crate::paint::Tone;
use nodefold_core::event::{ErrorClass, Exit, Fact, Hook, Mirror, OpError, ProbeKind, UsageOf};
use nodefold_core::ids::{ObjectKind, ObjectRef, OpId, Source};
use std::fmt::Display;

/// A fact as people read it.
pub struct Told {
    /// The container, volume, sandbox or object that it is about; empty if it is the pod or the node.
    pub subject: String,
    /// The operation that it completes.
    pub op: Option<OpId>,
    /// What happened, beyond the fact's name; may be empty.
    pub text: String,
    /// Good or bad news.
    pub tone: Tone,
}

impl Told {
    fn about(subject: impl Display, op: Option<OpId>, text: String) -> Told {
        Told { subject: subject.to_string(), op, text, tone: Tone::Plain }
    }

    fn failed(subject: impl Display, op: OpId, error: &OpError) -> Told {
        let reason = error.reason.as_deref().map(|reason| format!("{reason}: ")).unwrap_or_default();
        let text = format!("{reason}{} ({})", error.message, class(error.class));
        Told { subject: subject.to_string(), op: Some(op), text, tone: Tone::Bad }
    }
}

/// The fact in words.
pub fn told(fact: &Fact) -> Told {
    let none = String::new;
    match fact {
        Fact::Tick => Told { tone: Tone::Quiet, ..Told::about("", None, none()) },
        Fact::PodApplied(pod) => {
            let deleted = match &pod.deletion {
                Some(deletion) => format!(", to be gone within {}", deletion.grace),
                None => none(),
            };
            let text = format!("generation {} from {}{deleted}", pod.generation, source(pod.source));
            Told::about("", None, text)
        }
        Fact::PodRemoved { .. } => Told::about("", None, none()),
        Fact::SourceReady { source: which } => Told::about(source(*which), None, none()),
        Fact::ObjectSeen { object: which, version } => {
            let keys: Vec<String> =
                version.keys.iter().map(|(key, bytes)| format!("{key} ({bytes} B)")).collect();
            let text = format!("version {}: {}", version.resource_version, keys.join(", "));
            Told::about(object(which), None, text)
        }
        Fact::ObjectGone { object: which } => {
            Told { tone: Tone::Warning, ..Told::about(object(which), None, none()) }
        }
        Fact::NodeChanged(facts) => {
            let amounts: Vec<String> =
                facts.allocatable.iter().map(|(name, amount)| format!("{name} {amount}")).collect();
            let gates = format!(
                "DynamicContainers={}, DynamicNodeLocalEphemeralVolumes={}",
                facts.gates.dynamic_containers, facts.gates.dynamic_volumes
            );
            Told::about("", None, format!("{gates}; allocatable: {}", amounts.join(", ")))
        }
        Fact::ReadinessGate { condition, met, .. } => Told::about(condition, None, format!("met: {met}")),
        Fact::VolumeMounted { op, volume, renew_at, .. } => {
            let renewal = if renew_at.is_some() { "with a credential to renew".to_owned() } else { none() };
            Told::about(volume, Some(*op), renewal)
        }
        Fact::VolumeMountFailed { op, volume, error, .. }
        | Fact::VolumeUnmountFailed { op, volume, error, .. }
        | Fact::VolumeRefreshFailed { op, volume, error, .. } => Told::failed(volume, *op, error),
        Fact::VolumeUnmounted { op, volume, .. } | Fact::VolumeRefreshed { op, volume, .. } => {
            Told::about(volume, Some(*op), none())
        }
        Fact::UsageReported { of, bytes, .. } => {
            let subject = match of {
                UsageOf::Volume(volume) => volume.to_string(),
                UsageOf::Container(container) => container.to_string(),
            };
            Told { tone: Tone::Warning, ..Told::about(subject, None, format!("{bytes} bytes")) }
        }
        Fact::ImagePulled { op, container, image_id, already_present, .. } => {
            let how = if *already_present { "present already" } else { "pulled" };
            Told::about(container, Some(*op), format!("{image_id}, {how}"))
        }
        Fact::ImagePullFailed { op, container, error, .. }
        | Fact::ContainerCreateFailed { op, container, error, .. }
        | Fact::ContainerStartFailed { op, container, error, .. }
        | Fact::ContainerStopFailed { op, container, error, .. }
        | Fact::ContainerRemoveFailed { op, container, error, .. }
        | Fact::ContainerResizeFailed { op, container, error, .. } => Told::failed(container, *op, error),
        Fact::SandboxReady { op, attempt, ip, .. } => {
            let text = ip.as_deref().map_or_else(none, |ip| format!("at {ip}"));
            Told::about(sandbox(*attempt), Some(*op), text)
        }
        Fact::SandboxFailed { op, attempt, error, .. }
        | Fact::SandboxStopFailed { op, attempt, error, .. }
        | Fact::SandboxRemoveFailed { op, attempt, error, .. } => Told::failed(sandbox(*attempt), *op, error),
        Fact::SandboxStopped { attempt, .. } => Told::about(sandbox(*attempt), None, none()),
        Fact::SandboxRemoved { op, attempt, .. } => Told::about(sandbox(*attempt), Some(*op), none()),
        Fact::ContainerCreated { op, container, .. }
        | Fact::ContainerStarted { op, container, .. }
        | Fact::ContainerRemoved { op, container, .. }
        | Fact::ContainerResized { op, container, .. } => Told::about(container, Some(*op), none()),
        Fact::ContainerExited { container, exit: how, .. } => {
            let tone = if how.code == 0 { Tone::Plain } else { Tone::Warning };
            Told { tone, ..Told::about(container, None, exit(how)) }
        }
        Fact::PodResized { op, .. } => Told::about("", Some(*op), none()),
        Fact::HookDone { op, container, hook, error, .. } => {
            let hook = match hook {
                Hook::PostStart => "postStart",
                Hook::PreStop => "preStop",
            };
            match error {
                None => Told::about(container, Some(*op), hook.to_owned()),
                Some(error) => Told {
                    tone: Tone::Bad,
                    ..Told::about(container, Some(*op), format!("{hook} failed: {error}"))
                },
            }
        }
        Fact::ProbeResult { container, probe: which, passed, message, .. } => {
            let finds = if *passed { "passes" } else { "fails" };
            let message = if message.is_empty() { none() } else { format!(": {message}") };
            let text = format!("{} {finds}{message}", probe(*which));
            Told {
                tone: if *passed { Tone::Plain } else { Tone::Warning },
                ..Told::about(container, None, text)
            }
        }
        Fact::AgentStarted { boot_id } => Told::about("", None, format!("boot {boot_id:032x}")),
        Fact::MountsObserved { op, mounts } => {
            Told::about("", Some(*op), format!("{} on the host", mounts.len()))
        }
        Fact::RuntimeObserved { op, complete, sandboxes, containers } => {
            let whole = if *complete { "" } else { ", the list is not complete" };
            let text = format!("{} sandboxes, {} containers{whole}", sandboxes.len(), containers.len());
            Told::about("", Some(*op), text)
        }
        Fact::StatusWritten { op, .. } => Told { tone: Tone::Quiet, ..Told::about("", Some(*op), none()) },
        Fact::MirrorSeen { mirror, .. } => Told::about("", None, mirror_text(mirror)),
        Fact::MirrorCreated { op, mirror, .. } => Told::about("", Some(*op), mirror_text(mirror)),
        Fact::MirrorGone { namespace, name, mirror } => {
            Told::about("", None, format!("{mirror}, of {namespace}/{name}"))
        }
        Fact::MirrorDeleted { op, namespace, name, mirror } => {
            Told::about("", Some(*op), format!("{mirror}, of {namespace}/{name}"))
        }
        Fact::MirrorFailed { op, error, .. } => Told::failed("", *op, error),
        Fact::PodResizeFailed { op, error, .. }
        | Fact::ObserveFailed { op, error }
        | Fact::StatusWriteFailed { op, error, .. }
        | Fact::ReleaseFailed { op, error, .. } => Told::failed("", *op, error),
    }
}

fn mirror_text(mirror: &Mirror) -> String {
    let deleting = if mirror.deleting { ", being deleted" } else { "" };
    format!("object {}{deleting}", mirror.uid)
}

/// An exit in words: `exit code 137, signal 9 (OOMKilled)`.
pub fn exit(exit: &Exit) -> String {
    let signal = exit.signal.map(|signal| format!(", signal {signal}")).unwrap_or_default();
    format!("exit code {}{signal} ({})", exit.code, exit.reason)
}

/// A sandbox by its attempt.
pub fn sandbox(attempt: u32) -> String {
    format!("sandbox {attempt}")
}

/// A probe's kind as manifests spell it.
pub const fn probe(kind: ProbeKind) -> &'static str {
    match kind {
        ProbeKind::Startup => "startup",
        ProbeKind::Liveness => "liveness",
        ProbeKind::Readiness => "readiness",
    }
}

const fn class(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Final => "final",
        ErrorClass::Transient => "transient",
        ErrorClass::Uncertain => "uncertain",
    }
}

const fn source(source: Source) -> &'static str {
    match source {
        Source::Api => "the API",
        Source::File => "a file",
    }
}

fn object(object: &ObjectRef) -> String {
    let kind = match object.kind {
        ObjectKind::Secret => "Secret",
        ObjectKind::ConfigMap => "ConfigMap",
        ObjectKind::ClusterTrustBundle => "ClusterTrustBundle",
    };
    if object.namespace.is_empty() {
        format!("{kind} {}", object.name)
    } else {
        format!("{kind} {}/{}", object.namespace, object.name)
    }
}
