//! containerd's CRI plugin. A request and its return are two records (node-logs §4).

use super::{logfmt::Line, quoted_id};
use crate::evidence::{Draft, Payload, PodHint};
use crate::klog::shortened;
use crate::scan::{self, after, between, has, is_uid, name};
use crate::verb::Verb;

/// Reads a message. False: it says nothing that concerns a life.
pub fn read(message: &[u8], line: &Line<'_>, draft: &mut Draft) -> bool {
    let error = line.error.as_deref();
    let begins = |words: &str| message.starts_with(words.as_bytes());
    let failed = has(message, b" failed") || matches!(&*line.level, b"error" | b"fatal");
    let mut set = |verb: Verb, sandbox: bool, id: Option<&[u8]>| {
        draft.verb = verb;
        draft.container.id = id.map(name);
        draft.container.sandbox = Some(sandbox);
        if failed || error.is_some() {
            draft.payload = Payload::Text(name(shortened(error.unwrap_or(message))));
        }
        true
    };
    if begins("RunPodSandbox ") || begins("RunPodsandbox ") {
        let id = quoted_id(message, "returns sandbox id");
        let verb = match (id.is_some(), failed) {
            (true, _) => Verb::SandboxCreated,
            (false, true) => Verb::RuntimeFailed,
            (false, false) => Verb::RuntimeRequest,
        };
        set(verb, true, id);
        draft.pod = sandbox_pod(message);
        return true;
    }
    if begins("CreateContainer within sandbox ") {
        let id = quoted_id(message, "returns container id");
        let verb = match (id.is_some(), failed) {
            (true, _) => Verb::ContainerCreated,
            (false, true) => Verb::CreateFailed,
            (false, false) => Verb::CreateStarted,
        };
        set(verb, false, id);
        draft.container.name = between(message, b"ContainerMetadata{Name:", b",").map(name);
        draft.container.attempt = between(message, b"Attempt:", b",")
            .and_then(scan::number)
            .and_then(|(n, _)| u32::try_from(n).ok());
        // The sandbox is how this container's pod is known.
        draft.volume.path = quoted_id(message, "within sandbox ").map(name);
        return true;
    }
    if begins("StartContainer for ") {
        let verb = match (has(message, b"returns successfully"), failed) {
            (true, _) => Verb::ContainerStarted,
            (false, true) => Verb::StartFailed,
            (false, false) => Verb::RuntimeRequest,
        };
        return set(verb, false, quoted_id(message, "StartContainer for "));
    }
    if begins("StopContainer for ") {
        let verb = match (has(message, b"returns successfully"), failed) {
            (true, _) => Verb::StopReturned,
            (false, true) => Verb::StopFailed,
            (false, false) => Verb::RuntimeStop,
        };
        let timeout = after(message, b"with timeout ").and_then(|t| scan::integer(scan::word(t).0));
        set(verb, false, quoted_id(message, "StopContainer for "));
        if let (Verb::RuntimeStop, Some(seconds)) = (verb, timeout) {
            draft.payload = Payload::Grace(seconds);
        }
        return true;
    }
    if begins("An error occurs during waiting for container ") {
        return set(Verb::StopFailed, false, quoted_id(message, "for container "));
    }
    if begins("Stop container ") || begins("Kill container ") {
        return set(Verb::Signalled, false, quoted_id(message, "container "));
    }
    if begins("RemoveContainer for ") {
        let verb =
            if has(message, b"returns successfully") { Verb::ContainerRemoved } else { Verb::RemoveStarted };
        return set(verb, false, quoted_id(message, "RemoveContainer for "));
    }
    if begins("StopPodSandbox for ") || begins("Forcibly stopping sandbox ") {
        let verb = match (has(message, b"returns successfully"), failed) {
            (true, _) => Verb::SandboxStopped,
            (false, true) => Verb::SandboxStopFailed,
            (false, false) => Verb::SandboxStopRequested,
        };
        let id =
            quoted_id(message, "StopPodSandbox for ").or_else(|| quoted_id(message, "stopping sandbox "));
        return set(verb, true, id);
    }
    if begins("RemovePodSandbox ") {
        let verb =
            if has(message, b"returns successfully") { Verb::SandboxRemoved } else { Verb::RemoveStarted };
        let id =
            quoted_id(message, "RemovePodSandbox for ").or_else(|| quoted_id(message, "RemovePodSandbox "));
        return set(verb, true, id);
    }
    if begins("shim disconnected") {
        draft.verb = Verb::ContainerExited;
        let id = line.id.as_deref().filter(|i| scan::is_runtime_id(i)).or_else(|| quoted_id(message, "id="));
        draft.container.id = id.map(name);
        return draft.container.id.is_some();
    }
    if begins("TaskExit event") || begins("received exit event") {
        let id =
            between(message, b"container_id:\"", b"\"").or_else(|| between(message, b"ContainerID:", b","));
        draft.verb = Verb::ContainerExited;
        draft.container.id = id.filter(|i| scan::is_runtime_id(i)).map(name);
        let code = after(message, b"exit_status:").and_then(scan::number).map(|(n, _)| n);
        draft.payload = Payload::Exit(Some(code.and_then(|c| i64::try_from(c).ok()).unwrap_or(0)), None);
        return draft.container.id.is_some();
    }
    false
}

/// `&PodSandboxMetadata{Name:web,Uid:…,Namespace:default,Attempt:0,}`: the join of pod and sandbox.
fn sandbox_pod(message: &[u8]) -> PodHint {
    let field = |label: &str| between(message, label.as_bytes(), b",").filter(|f| !f.is_empty()).map(name);
    PodHint {
        uid: field("Uid:").filter(|u| is_uid(u.as_bytes())),
        namespace: field("Namespace:"),
        name: field("{Name:"),
        cut: false,
    }
}
