//! `fault:`: what goes wrong, as scenario files say it.

use super::duration;
use super::reader::{Reader, did_you_mean};
use super::step::PodRef;
use crate::world::{CrashPoint, Ending, Fault, object_name};
use nodefold_core::event::ErrorClass;
use nodefold_core::ids::{ObjectKind, ObjectRef};
use nodefold_core::time::Nanos;
use nodefold_k8s::InputError;
use serde_json::{Value, json};

/// What a fault's mapping says first: its kind.
const KINDS: [&str; 14] = [
    "fail",
    "delay",
    "twice",
    "linger",
    "partial",
    "term",
    "dies",
    "sandboxDies",
    "disconnect",
    "forbid",
    "crash",
    "clockForward",
    "clockBack",
    "diskFull",
];

/// Reads one.
pub fn read(field: &Reader<'_>) -> Result<Fault, InputError> {
    let entries = field.entries()?;
    let Some((kind, first)) = entries.first() else {
        return Err(field.error("a fault without a kind", format!("use one of: {}", KINDS.join(", "))));
    };
    let only = |keys: &[&str]| {
        let mut allowed = vec![*kind];
        allowed.extend(keys);
        field.only(&allowed)
    };
    let flag = |key: &str| {
        Ok::<bool, InputError>(match field.get(key)? {
            Some(value) => value.boolean()?,
            None => false,
        })
    };
    let time = |key: &str| duration::read(&field.require(key, &format!("say how long: `{key}: 5s`"))?);
    Ok(match *kind {
        "fail" => {
            only(&["class", "done"])?;
            let class = match field.get("class")? {
                Some(word) => class(&word)?,
                None => ErrorClass::Final,
            };
            Fault::Fail { operation: first.string()?, class, done: flag("done")? }
        }
        "delay" => {
            only(&["by"])?;
            Fault::Delay { choice: first.string()?, by: time("by")? }
        }
        "twice" => {
            only(&["after"])?;
            Fault::Twice { operation: first.string()?, after: time("after")? }
        }
        "linger" => {
            only(&[])?;
            Fault::Linger { operation: first.string()? }
        }
        "partial" => {
            only(&["leavesOut"])?;
            let bits = field.require("leavesOut", "say which entries, as a number's bits: `leavesOut: 5`")?;
            Fault::Partial { operation: first.string()?, leaves_out: bits.whole()? }
        }
        "term" => {
            only(&["pod", "namespace", "container"])?;
            let takes = match first.string()?.as_str() {
                "ignored" => None,
                _ => Some(duration::read(first)?),
            };
            let container = field.require("container", "name the container")?.string()?;
            Fault::Term { pod: PodRef::require(field)?, container, takes }
        }
        "dies" => {
            only(&["container", "code", "signal", "after"])?;
            let container = field.require("container", "name the container")?.string()?;
            let number = |key: &str| {
                Ok::<Option<i32>, InputError>(match field.get(key)? {
                    Some(value) => Some(i32::try_from(value.whole()?).unwrap_or(i32::MAX)),
                    None => None,
                })
            };
            let ending = match number("signal")? {
                Some(signal) => Ending::Signal(signal),
                None => Ending::Code(number("code")?.unwrap_or(1)),
            };
            Fault::Dies { pod: pod(first)?, container, ending, after: time("after")? }
        }
        "sandboxDies" => {
            only(&["withContainers"])?;
            Fault::SandboxDies { pod: pod(first)?, with_containers: flag("withContainers")? }
        }
        "disconnect" => {
            only(&[])?;
            Fault::Disconnect { lasts: duration::read(first)? }
        }
        "forbid" => {
            only(&["lasts"])?;
            Fault::Forbid { object: object(first)?, lasts: time("lasts")? }
        }
        "crash" => {
            only(&["keep", "given"])?;
            let number = |key: &str| {
                Ok::<u64, InputError>(match field.get(key)? {
                    Some(value) => value.whole()?,
                    None => 0,
                })
            };
            const POINTS: [&str; 4] = ["beforeAppend", "unsynced", "afterAppend", "afterDispatch"];
            Fault::Crash(match first.string()?.as_str() {
                "beforeAppend" => CrashPoint::BeforeAppend,
                "unsynced" => CrashPoint::Unsynced(number("keep")?),
                "afterAppend" => CrashPoint::AfterAppend,
                "afterDispatch" => {
                    CrashPoint::AfterDispatch(u32::try_from(number("given")?).unwrap_or(u32::MAX))
                }
                other => {
                    return Err(first.error(
                        format!("unknown moment {other:?} of a crash"),
                        did_you_mean(other, &POINTS),
                    ));
                }
            })
        }
        "clockForward" => {
            only(&[])?;
            Fault::ClockForward(duration::read(first)?)
        }
        "clockBack" => {
            only(&[])?;
            Fault::ClockBack(duration::read(first)?)
        }
        "diskFull" => {
            only(&[])?;
            Fault::DiskFull { lasts: duration::read(first)? }
        }
        other => return Err(first.error(format!("unknown fault {other:?}"), did_you_mean(other, &KINDS))),
    })
}

fn class(field: &Reader<'_>) -> Result<ErrorClass, InputError> {
    Ok(match field.string()?.as_str() {
        "final" => ErrorClass::Final,
        "transient" => ErrorClass::Transient,
        "uncertain" => ErrorClass::Uncertain,
        other => {
            let remedy = did_you_mean(other, &["final", "transient", "uncertain"]);
            return Err(field.error(format!("unknown class {other:?}"), remedy));
        }
    })
}

fn class_name(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Final => "final",
        ErrorClass::Transient => "transient",
        ErrorClass::Uncertain => "uncertain",
    }
}

fn pod(field: &Reader<'_>) -> Result<PodRef, InputError> {
    let text = field.string()?;
    match text.split_once('/') {
        None => Ok(PodRef { namespace: "default".into(), name: text }),
        Some((namespace, name)) if !name.is_empty() && !name.contains('/') => {
            Ok(PodRef { namespace: namespace.into(), name: name.into() })
        }
        Some(_) => Err(field.error(format!("{text:?} is no pod name"), "write `web` or `namespace/web`")),
    }
}

/// `Secret default/creds`.
fn object(field: &Reader<'_>) -> Result<ObjectRef, InputError> {
    let text = field.string()?;
    let remedy = "write `Secret default/creds`";
    let wrong = || field.error(format!("{text:?} names no object"), remedy);
    let (kind, name) = text.split_once(' ').ok_or_else(wrong)?;
    let (namespace, name) = name.split_once('/').ok_or_else(wrong)?;
    let kind = match kind {
        "Secret" => ObjectKind::Secret,
        "ConfigMap" => ObjectKind::ConfigMap,
        "ClusterTrustBundle" => ObjectKind::ClusterTrustBundle,
        _ => return Err(wrong()),
    };
    Ok(ObjectRef { kind, namespace: namespace.into(), name: name.into() })
}

/// As a scenario file says it.
pub fn to_value(fault: &Fault) -> Value {
    let lasting = |time: &Nanos| json!(duration::exact(*time));
    match fault {
        Fault::Fail { operation, class, done: false } => {
            json!({"fail": operation, "class": class_name(*class)})
        }
        Fault::Fail { operation, class, done: true } => {
            json!({"fail": operation, "class": class_name(*class), "done": true})
        }
        Fault::Delay { choice, by } => json!({"delay": choice, "by": lasting(by)}),
        Fault::Twice { operation, after } => json!({"twice": operation, "after": lasting(after)}),
        Fault::Linger { operation } => json!({"linger": operation}),
        Fault::Partial { operation, leaves_out } => json!({"partial": operation, "leavesOut": leaves_out}),
        Fault::Term { pod, container, takes } => {
            let takes = takes.map_or_else(|| json!("ignored"), |time| json!(duration::exact(time)));
            json!({"term": takes, "pod": pod.to_string(), "container": container})
        }
        Fault::Dies { pod, container, ending, after } => {
            let (key, number) = match ending {
                Ending::Code(code) => ("code", code),
                Ending::Signal(signal) => ("signal", signal),
            };
            json!({"dies": pod.to_string(), "container": container, key: number, "after": lasting(after)})
        }
        Fault::SandboxDies { pod, with_containers } => {
            json!({"sandboxDies": pod.to_string(), "withContainers": with_containers})
        }
        Fault::Disconnect { lasts } => json!({"disconnect": lasting(lasts)}),
        Fault::Forbid { object, lasts } => json!({"forbid": object_name(object), "lasts": lasting(lasts)}),
        Fault::Crash(CrashPoint::BeforeAppend) => json!({"crash": "beforeAppend"}),
        Fault::Crash(CrashPoint::Unsynced(keep)) => json!({"crash": "unsynced", "keep": keep}),
        Fault::Crash(CrashPoint::AfterAppend) => json!({"crash": "afterAppend"}),
        Fault::Crash(CrashPoint::AfterDispatch(given)) => json!({"crash": "afterDispatch", "given": given}),
        Fault::ClockForward(by) => json!({"clockForward": lasting(by)}),
        Fault::ClockBack(by) => json!({"clockBack": lasting(by)}),
        Fault::DiskFull { lasts } => json!({"diskFull": lasting(lasts)}),
    }
}

/// As a person would say it, in a line.
pub fn title(fault: &Fault) -> String {
    match fault {
        Fault::Fail { operation, class: ErrorClass::Uncertain, done: true } => {
            format!("{operation} will be done, but time out")
        }
        Fault::Fail { operation, class, .. } => {
            format!("{operation} will fail, {}", class_name(*class))
        }
        Fault::Delay { choice, by } => format!("{by} later: {choice}"),
        Fault::Twice { operation, .. } => format!("the answer of {operation} will come twice"),
        Fault::Linger { operation } => format!("the answer of {operation} will outlive the agent"),
        Fault::Partial { operation, .. } => format!("{operation} will be partial"),
        Fault::Term { pod, container, takes: None } => {
            format!("{container} of {pod} ignores TERM from now on")
        }
        Fault::Term { pod, container, takes: Some(takes) } => {
            format!("{container} of {pod} will take {takes} to end after TERM")
        }
        Fault::Dies { pod, container, after, .. } => {
            format!("{container} of {pod} ends, and from now on each time {after} after its start")
        }
        Fault::SandboxDies { pod, with_containers: true } => format!("{pod}'s sandbox dies with all in it"),
        Fault::SandboxDies { pod, with_containers: false } => format!("{pod}'s sandbox dies"),
        Fault::Disconnect { lasts } => format!("the API's watch is cut for {lasts}"),
        Fault::Forbid { object, lasts } => {
            format!("the node may not read {} for {lasts}", object_name(object))
        }
        Fault::Crash(CrashPoint::BeforeAppend) => "the agent dies before it writes its next fact".into(),
        Fault::Crash(CrashPoint::Unsynced(_)) => "the agent dies while it syncs its next fact".into(),
        Fault::Crash(CrashPoint::AfterAppend) => "the agent dies before it acts on its next fact".into(),
        Fault::Crash(CrashPoint::AfterDispatch(given)) => {
            format!("the agent dies after it gave out {given} commands of its next fact")
        }
        Fault::ClockForward(by) => format!("the node's clock jumps {by} forward"),
        Fault::ClockBack(by) => format!("the node's clock jumps {by} back"),
        Fault::DiskFull { lasts } => format!("the agent's disk is full for {lasts}"),
    }
}
