//! Steps: one verb each.

use super::duration;
use super::expectation::Expectation;
use super::fault;
use super::node::NodeChange;
use super::reader::{Reader, did_you_mean};
use crate::world::{Ending, Failure, Fault, Operation, Scope, TargetKind, probe_name};
use nodefold_core::event::{ErrorClass, ProbeKind};
use nodefold_core::time::Nanos;
use nodefold_k8s::InputError;
use serde_json::Value;
use std::fmt;

/// A pod by the name that people use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRef {
    /// Its namespace: `default` unless given.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for PodRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl PodRef {
    /// Reads `pod:` and `namespace:` of a mapping; a pod may also be named `namespace/name`.
    pub fn read(field: &Reader<'_>) -> Result<Option<PodRef>, InputError> {
        let Some(pod) = field.get("pod")? else { return Ok(None) };
        let text = pod.string()?;
        let namespace = field.optional_string("namespace")?;
        let (namespace, name) = match (text.split_once('/'), namespace) {
            (None, namespace) => (namespace.unwrap_or_else(|| "default".into()), text),
            (Some((namespace, name)), None) => (namespace.to_owned(), name.to_owned()),
            (Some(_), Some(_)) => return Err(pod.error("the namespace is given twice", "leave one out")),
        };
        if name.is_empty() || name.contains('/') {
            return Err(pod.error(format!("{name:?} is no pod name"), "write `web` or `namespace/web`"));
        }
        Ok(Some(PodRef { namespace, name }))
    }

    pub(super) fn require(field: &Reader<'_>) -> Result<PodRef, InputError> {
        PodRef::read(field)?.ok_or_else(|| field.error("\"pod\" is missing", "name the pod: `pod: web`"))
    }
}

/// What `delete` deletes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteTarget {
    /// `Pod`, `Secret`, ...
    pub kind: String,
    /// Its namespace; empty for what has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// `gracePeriodSeconds`.
    pub grace_seconds: Option<u64>,
    /// With grace 0 and no further ado.
    pub force: bool,
    /// The API's object, even of a static pod: its mirror.
    pub mirror: bool,
}

/// Who crashes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The agent: processes and mounts live on.
    Agent,
    /// The host: only the disk survives.
    Host,
}

/// What takes up space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Used {
    /// A volume, by name.
    Volume(String),
    /// A container's writable layer and logs, by name.
    Container(String),
}

impl fmt::Display for Used {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Used::Volume(name) => write!(f, "volume {name}"),
            Used::Container(name) => write!(f, "container {name}"),
        }
    }
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Verb {
    /// A request to create this object.
    Create(Value),
    /// A request to replace the stored object by this one.
    Update(Value),
    /// A strategic-merge patch through `/dynamic`.
    Dynamic(PodRef, Value),
    /// Through `/resize`.
    Resize(PodRef, Value),
    /// Through `/ephemeralcontainers`.
    Ephemeral(PodRef, Value),
    /// A client's strategic-merge patch through `/status`.
    Status(PodRef, Value),
    /// A request to delete.
    Delete(DeleteTarget),
    /// This much time passes.
    Advance(Nanos),
    /// Until nothing is in flight and nothing is due within this time.
    Settle(Nanos),
    /// A process ends.
    Exit {
        /// In which pod.
        pod: PodRef,
        /// In which container.
        container: String,
        /// How.
        ending: Ending,
    },
    /// What a probe finds from now on.
    Probe {
        /// In which pod.
        pod: PodRef,
        /// In which container.
        container: String,
        /// Which probe.
        kind: ProbeKind,
        /// It passes.
        passes: bool,
    },
    /// How much a volume, or a container's writable layer and logs, takes up from now on.
    Usage {
        /// In which pod.
        pod: PodRef,
        /// Of what.
        of: Used,
        /// How much.
        bytes: u64,
    },
    /// Operations hang.
    Hold(Scope),
    /// They no longer do.
    Release(Scope),
    /// Operations go wrong.
    Fail(Scope, Failure),
    /// A crash.
    Crash(Crash),
    /// The node changes.
    Set(NodeChange),
    /// This moment gets a name.
    Mark(String),
    /// So many choices are taken in their natural order.
    Step(u32),
    /// A choice is taken ahead of its turn, by its stable name. Not enabled, it is skipped.
    Choose(String),
    /// Something goes wrong. With nothing to strike, it is skipped.
    Fault(Fault),
    /// Faults stop; within half an hour everything must converge, and stay (L1–L5).
    Heal,
    /// Something must be true now.
    Expect(Expectation),
}

/// One step.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its place in the list, from 0.
    pub index: usize,
    /// Its line in the file.
    pub line: usize,
    /// What it does.
    pub verb: Verb,
    /// What it does, as a person would say it.
    pub title: String,
}

const STEP_VERBS: [&str; 23] = [
    "create",
    "update",
    "dynamic",
    "resize",
    "ephemeral",
    "status",
    "delete",
    "advance",
    "settle",
    "exit",
    "probe",
    "usage",
    "hold",
    "release",
    "fail",
    "crash",
    "set",
    "mark",
    "step",
    "choose",
    "fault",
    "heal",
    "expect",
];

impl Verb {
    /// As a scenario file spells it.
    pub const fn name(&self) -> &'static str {
        match self {
            Verb::Create(_) => "create",
            Verb::Update(_) => "update",
            Verb::Dynamic(..) => "dynamic",
            Verb::Resize(..) => "resize",
            Verb::Ephemeral(..) => "ephemeral",
            Verb::Status(..) => "status",
            Verb::Delete(_) => "delete",
            Verb::Advance(_) => "advance",
            Verb::Settle(_) => "settle",
            Verb::Exit { .. } => "exit",
            Verb::Probe { .. } => "probe",
            Verb::Usage { .. } => "usage",
            Verb::Hold(_) => "hold",
            Verb::Release(_) => "release",
            Verb::Fail(..) => "fail",
            Verb::Crash(_) => "crash",
            Verb::Set(_) => "set",
            Verb::Mark(_) => "mark",
            Verb::Step(_) => "step",
            Verb::Choose(_) => "choose",
            Verb::Fault(_) => "fault",
            Verb::Heal => "heal",
            Verb::Expect(_) => "expect",
        }
    }

    /// Only a simulated world can do it. (A release goes with its hold.)
    pub const fn is_simulation_only(&self) -> bool {
        match self {
            Verb::Hold(_)
            | Verb::Release(_)
            | Verb::Fail(..)
            | Verb::Probe { .. }
            | Verb::Step(_)
            | Verb::Choose(_)
            | Verb::Fault(_)
            | Verb::Heal
            | Verb::Crash(Crash::Host) => true,
            Verb::Set(change) => change.images.is_some(),
            Verb::Create(_)
            | Verb::Update(_)
            | Verb::Dynamic(..)
            | Verb::Resize(..)
            | Verb::Ephemeral(..)
            | Verb::Status(..)
            | Verb::Delete(_)
            | Verb::Advance(_)
            | Verb::Settle(_)
            | Verb::Exit { .. }
            | Verb::Usage { .. }
            | Verb::Crash(Crash::Agent)
            | Verb::Mark(_)
            | Verb::Expect(_) => false,
        }
    }
}

impl Step {
    /// A step that comes from no file: its line is its place in the list, from 1.
    pub fn of(index: usize, verb: Verb) -> Step {
        Step { index, line: index + 1, title: title(&verb), verb }
    }

    /// Reads one entry of `steps:`.
    pub(super) fn read(index: usize, item: &Reader<'_>) -> Result<Step, InputError> {
        // `- settle` alone: the default time. `- heal` has nothing to say more.
        let (name, field) = match item.value.as_str() {
            Some("settle") => ("settle", item.clone()),
            Some("heal") => ("heal", item.clone()),
            Some(_) | None => one_verb(item)?,
        };
        let verb = read_verb(name, &field)?;
        Ok(Step { index, line: item.line(), title: title(&verb), verb })
    }
}

/// The one entry of a step's mapping.
fn one_verb<'a>(item: &Reader<'a>) -> Result<(&'a str, Reader<'a>), InputError> {
    match item.entries()?.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(item.error("a step without a verb", format!("use one of: {}", STEP_VERBS.join(", ")))),
        [_, (second, field), ..] => Err(field.error(
            format!("a step has exactly one verb; {second:?} is a second one"),
            "start a new `- ` entry for it",
        )),
    }
}

fn read_verb(name: &str, field: &Reader<'_>) -> Result<Verb, InputError> {
    Ok(match name {
        "create" => Verb::Create(manifest(field)?),
        "update" => Verb::Update(manifest(field)?),
        "dynamic" => patch(field).map(|(pod, patch)| Verb::Dynamic(pod, patch))?,
        "resize" => patch(field).map(|(pod, patch)| Verb::Resize(pod, patch))?,
        "ephemeral" => patch(field).map(|(pod, patch)| Verb::Ephemeral(pod, patch))?,
        "status" => patch(field).map(|(pod, patch)| Verb::Status(pod, patch))?,
        "delete" => Verb::Delete(delete(field)?),
        "advance" => Verb::Advance(duration::read(field)?),
        "settle" => match field.value {
            Value::Null => Verb::Settle(Nanos::secs(60)),
            Value::String(word) if word == "settle" => Verb::Settle(Nanos::secs(60)),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                Verb::Settle(duration::read(field)?)
            }
        },
        "exit" => exit(field)?,
        "probe" => probe(field)?,
        "usage" => usage(field)?,
        "hold" => Verb::Hold(scope(field, &[])?),
        "release" => Verb::Release(scope(field, &[])?),
        "fail" => fail(field)?,
        "crash" => Verb::Crash(match field.string()?.as_str() {
            "agent" => Crash::Agent,
            "host" => Crash::Host,
            other => {
                return Err(
                    field.error(format!("unknown crash {other:?}"), did_you_mean(other, &["agent", "host"]))
                );
            }
        }),
        "set" => Verb::Set(NodeChange::read(field)?),
        "mark" => Verb::Mark(field.string()?),
        "step" => {
            let count = field.whole()?;
            Verb::Step(u32::try_from(count).map_err(|_| field.error("too many steps", "use `advance`"))?)
        }
        "choose" => Verb::Choose(field.string()?),
        "fault" => Verb::Fault(fault::read(field)?),
        "heal" => Verb::Heal,
        "expect" => Verb::Expect(Expectation::read(field)?),
        other => return Err(field.error(format!("unknown verb {other:?}"), did_you_mean(other, &STEP_VERBS))),
    })
}

/// A manifest of a kind; Kubernetes' own fields are checked where the kind is known.
fn manifest(field: &Reader<'_>) -> Result<Value, InputError> {
    if let Value::String(text) = field.value {
        let what =
            if text.contains('\n') { "a manifest in a block of text" } else { "a manifest by its name" };
        return Err(field.error(
            format!("{what} is not read here"),
            "write the object itself, indented under the verb: `create: {apiVersion: v1, kind: Pod, ...}`",
        ));
    }
    field.mapping()?;
    let kind_field = field.require("kind", "a manifest says its kind: `kind: Pod`")?;
    let kind = kind_field.string()?;
    let metadata = field.require("metadata", "a manifest has `metadata: {name: ...}`")?;
    metadata.require("name", "give the object a name")?.string()?;
    if !KINDS.contains(&kind.as_str()) {
        let what = format!("a story has no objects of kind {kind:?}");
        return Err(kind_field.error(what, did_you_mean(&kind, &KINDS)));
    }
    if !nodefold_k8s::has_known_fields(&kind) {
        return Ok(field.value.clone());
    }
    match nodefold_k8s::check_fields(field.value, &kind).first() {
        Some(problem) => Err(field.locate(problem)),
        None => Ok(field.value.clone()),
    }
}

/// What a story may have. Kinds whose fields nobody knows here are kept as they are.
const KINDS: [&str; 15] = [
    "Pod",
    "Secret",
    "ConfigMap",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass",
    "ClusterTrustBundle",
    "ServiceAccount",
    "Namespace",
    "Node",
    "PriorityClass",
    "RuntimeClass",
    "LimitRange",
    "ResourceQuota",
    "Service",
];

fn patch(field: &Reader<'_>) -> Result<(PodRef, Value), InputError> {
    field.only(&["pod", "namespace", "patch"])?;
    let pod = PodRef::require(field)?;
    let patch = field.require("patch", "a patch is a part of the pod: `patch: {spec: ...}`")?;
    patch.mapping()?;
    match nodefold_k8s::check_patch_fields(patch.value, "Pod").first() {
        Some(problem) => Err(patch.locate(problem)),
        None => Ok((pod, patch.value.clone())),
    }
}

fn delete(field: &Reader<'_>) -> Result<DeleteTarget, InputError> {
    const TARGETS: [(&str, &str, bool); 6] = [
        ("pod", "Pod", true),
        ("mirror", "Pod", true),
        ("secret", "Secret", true),
        ("configMap", "ConfigMap", true),
        ("persistentVolumeClaim", "PersistentVolumeClaim", true),
        ("persistentVolume", "PersistentVolume", false),
    ];
    let mut allowed: Vec<&str> = TARGETS.iter().map(|(key, ..)| *key).collect();
    allowed.extend(["namespace", "gracePeriodSeconds", "force"]);
    field.only(&allowed)?;
    let mut named = Vec::new();
    for (key, kind, namespaced) in TARGETS {
        if let Some(name) = field.get(key)? {
            named.push((key, kind, namespaced, name));
        }
    }
    let (key, kind, namespaced, name) = match named.as_slice() {
        [one] => one,
        [] => {
            return Err(
                field.error("nothing to delete", "name it: `{pod: web}`, `{secret: s}`, `{configMap: c}`")
            );
        }
        [_, (.., second), ..] => return Err(second.error("a second thing to delete", "use a step for each")),
    };
    let (namespace, name) = if *key == "pod" {
        let pod = PodRef::require(field)?;
        (pod.namespace, pod.name)
    } else {
        let namespace = field.optional_string("namespace")?.unwrap_or_else(|| "default".into());
        (if *namespaced { namespace } else { String::new() }, name.string()?)
    };
    let grace_seconds = field.get("gracePeriodSeconds")?.map(|g| g.whole()).transpose()?;
    let force = field.get("force")?.map(|f| f.boolean()).transpose()?.unwrap_or(false);
    let mirror = *key == "mirror";
    Ok(DeleteTarget { kind: (*kind).to_owned(), namespace, name, grace_seconds, force, mirror })
}

fn exit(field: &Reader<'_>) -> Result<Verb, InputError> {
    field.only(&["pod", "namespace", "container", "code", "signal"])?;
    let pod = PodRef::require(field)?;
    let container = field.require("container", "name the container whose process ends")?.string()?;
    let ending = match (field.get("code")?, field.get("signal")?) {
        (Some(code), None) => {
            let value = code.whole()?;
            let code = u8::try_from(value)
                .map_err(|_| code.error(format!("{value} is no exit code"), "exit codes are 0 to 255"))?;
            Ending::Code(i32::from(code))
        }
        (None, Some(signal)) => {
            let name = signal.string()?;
            let number = signal_number(&name).ok_or_else(|| {
                signal.error(format!("unknown signal {name:?}"), "write KILL, TERM, SEGV, ... or its number")
            })?;
            Ending::Signal(number)
        }
        (None, None) => Ending::Code(0),
        (Some(_), Some(signal)) => {
            return Err(signal.error("a process ends by a code or by a signal", "leave one out"));
        }
    };
    Ok(Verb::Exit { pod, container, ending })
}

/// Linux' numbers of the signals that end processes.
fn signal_number(name: &str) -> Option<i32> {
    const SIGNALS: [(&str, i32); 16] = [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("ILL", 4),
        ("TRAP", 5),
        ("ABRT", 6),
        ("BUS", 7),
        ("FPE", 8),
        ("KILL", 9),
        ("USR1", 10),
        ("SEGV", 11),
        ("USR2", 12),
        ("PIPE", 13),
        ("ALRM", 14),
        ("TERM", 15),
        ("SYS", 31),
    ];
    let bare = name.strip_prefix("SIG").unwrap_or(name);
    SIGNALS
        .iter()
        .find(|(known, _)| *known == bare)
        .map(|(_, number)| *number)
        .or_else(|| bare.parse().ok().filter(|n| (1..=64).contains(n)))
}

fn probe(field: &Reader<'_>) -> Result<Verb, InputError> {
    field.only(&["pod", "namespace", "container", "kind", "result"])?;
    let pod = PodRef::require(field)?;
    let container = field.require("container", "name the container whose probe it is")?.string()?;
    let kind_field = field.require("kind", "say which probe: `kind: readiness`")?;
    let kind = match kind_field.string()?.as_str() {
        "startup" => ProbeKind::Startup,
        "liveness" => ProbeKind::Liveness,
        "readiness" => ProbeKind::Readiness,
        other => {
            let remedy = did_you_mean(other, &["startup", "liveness", "readiness"]);
            return Err(kind_field.error(format!("unknown probe {other:?}"), remedy));
        }
    };
    let result = field.require("result", "say what it finds: `result: failure`")?;
    let passes = match result.string()?.as_str() {
        "success" => true,
        "failure" => false,
        other => {
            let remedy = did_you_mean(other, &["success", "failure"]);
            return Err(result.error(format!("unknown result {other:?}"), remedy));
        }
    };
    Ok(Verb::Probe { pod, container, kind, passes })
}

fn usage(field: &Reader<'_>) -> Result<Verb, InputError> {
    field.only(&["pod", "namespace", "volume", "container", "bytes"])?;
    let pod = PodRef::require(field)?;
    let of = match (field.get("volume")?, field.get("container")?) {
        (Some(volume), None) => Used::Volume(volume.string()?),
        (None, Some(container)) => Used::Container(container.string()?),
        (None, None) => {
            return Err(field.error("usage of nothing", "name a volume or a container: `volume: cache`"));
        }
        (Some(_), Some(second)) => {
            return Err(second.error("usage is of a volume or of a container", "use a step for each"));
        }
    };
    let bytes = field.require("bytes", "say how much: `bytes: 200Mi`")?;
    let quantity = nodefold_k8s::quantity::Quantity::from_json(bytes.value)
        .map_err(|e| bytes.error(e.to_string(), "write an amount: `bytes: 200Mi`"))?;
    if quantity.is_negative() {
        return Err(bytes.error("nothing takes up less than nothing", "write an amount: `bytes: 200Mi`"));
    }
    Ok(Verb::Usage { pod, of, bytes: quantity.units() })
}

/// Which operations a `hold`, `release` or `fail` is about.
fn scope(field: &Reader<'_>, more_keys: &[&str]) -> Result<Scope, InputError> {
    let mut allowed = vec!["operation", "pod", "namespace", "volume", "container"];
    allowed.extend(more_keys);
    field.only(&allowed)?;
    let names: Vec<&str> = Operation::ALL.iter().map(|o| o.name()).collect();
    let named = field.require("operation", &format!("say which: {}", names.join(", ")))?;
    let name = named.string()?;
    let operation = Operation::ALL
        .into_iter()
        .find(|o| o.name() == name)
        .ok_or_else(|| named.error(format!("unknown operation {name:?}"), did_you_mean(&name, &names)))?;
    let pod = PodRef::read(field)?.map(|pod| (pod.namespace, pod.name));
    let (volume, container) = (field.get("volume")?, field.get("container")?);
    let target = match (operation.target(), volume, container) {
        (TargetKind::Volume, Some(target), None) | (TargetKind::Container, None, Some(target)) => {
            Some(target.string()?)
        }
        (_, None, None) => None,
        (TargetKind::Volume, _, Some(wrong)) => {
            return Err(
                wrong.error(format!("{name} is about a volume"), "write `volume:` instead of `container:`")
            );
        }
        (TargetKind::Container, Some(wrong), _) => {
            return Err(wrong
                .error(format!("{name} is about a container"), "write `container:` instead of `volume:`"));
        }
        (TargetKind::PodOnly, Some(wrong), _) | (TargetKind::PodOnly, None, Some(wrong)) => {
            return Err(wrong.error(format!("{name} is about a whole pod"), "leave this out"));
        }
    };
    Ok(Scope { operation, pod, target })
}

fn fail(field: &Reader<'_>) -> Result<Verb, InputError> {
    let scope = scope(field, &["times", "error", "kind"])?;
    let times = match field.get("times")? {
        None => None,
        Some(times) => match u32::try_from(times.whole()?) {
            Ok(0) => {
                return Err(
                    times.error("failing 0 times is not failing", "give a number from 1, or leave it out")
                );
            }
            Ok(n) => Some(n),
            Err(_) => return Err(times.error("too many times", "leave it out: it fails until released")),
        },
    };
    let class = match field.get("kind")? {
        None => ErrorClass::Final,
        Some(kind) => match kind.string()?.as_str() {
            "final" => ErrorClass::Final,
            "transient" => ErrorClass::Transient,
            "uncertain" => ErrorClass::Uncertain,
            other => {
                let remedy = did_you_mean(other, &["final", "transient", "uncertain"]);
                return Err(kind.error(format!("unknown kind {other:?}"), remedy));
            }
        },
    };
    let error = field.optional_string("error")?.unwrap_or_else(|| "the scenario made it fail".into());
    Ok(Verb::Fail(scope, Failure { times, error, class }))
}

/// The step as a person would say it, in a line.
fn title(verb: &Verb) -> String {
    fn named(object: &Value) -> String {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or("");
        format!("{} {}", text("/kind"), text("/metadata/name"))
    }
    match verb {
        Verb::Create(object) => format!("create {}", named(object)),
        Verb::Update(object) => format!("update {}", named(object)),
        Verb::Dynamic(pod, _) => format!("patch {pod} through /dynamic"),
        Verb::Resize(pod, _) => format!("patch {pod} through /resize"),
        Verb::Ephemeral(pod, _) => format!("patch {pod} through /ephemeralcontainers"),
        Verb::Status(pod, _) => format!("patch {pod} through /status"),
        Verb::Delete(target) if target.mirror => format!("delete mirror pod {}", target.name),
        Verb::Delete(target) => format!("delete {} {}", target.kind, target.name),
        Verb::Advance(time) => format!("let {time} pass"),
        Verb::Settle(time) => format!("settle: nothing due within {time}"),
        Verb::Exit { pod, container, ending } => match ending {
            Ending::Code(code) => format!("{container} of {pod} exits with {code}"),
            Ending::Signal(signal) => format!("{container} of {pod} ends by signal {signal}"),
        },
        Verb::Probe { pod, container, kind, passes } => {
            let finds = if *passes { "passes" } else { "fails" };
            format!("the {} probe of {container} of {pod} {finds}", probe_name(*kind))
        }
        Verb::Usage { pod, of, bytes } => {
            format!("{of} of {pod} takes up {}", nodefold_core::resources::bytes(*bytes))
        }
        Verb::Hold(scope) => format!("hold {scope}"),
        Verb::Release(scope) => format!("release {scope}"),
        Verb::Fail(scope, failure) => format!("fail {scope}: {}", failure.error),
        Verb::Crash(Crash::Agent) => "the agent crashes".into(),
        Verb::Crash(Crash::Host) => "the host crashes".into(),
        Verb::Set(_) => "the node changes".into(),
        Verb::Mark(name) => format!("mark {name}"),
        Verb::Step(1) => "the next thing happens".into(),
        Verb::Step(count) => format!("the next {count} things happen"),
        Verb::Choose(choice) => format!("ahead of its turn: {choice}"),
        Verb::Fault(fault) => fault::title(fault),
        Verb::Heal => "faults stop, and everything must converge".into(),
        Verb::Expect(expectation) => format!("expect {expectation}"),
    }
}
