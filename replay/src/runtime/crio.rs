//! CRI-O: `id=` names the request, so that start and end pair up (node-logs §4).

use super::{logfmt::Line, quoted_id};
use crate::evidence::{Draft, Payload, PodHint};
use crate::klog::shortened;
use crate::scan::{self, after, between, has, is_uid, name, until};
use crate::verb::Verb;

/// Reads a message. False: it says nothing that concerns a life.
pub fn read(message: &[u8], line: &Line<'_>, draft: &mut Draft) -> bool {
    let begins = |words: &str| message.starts_with(words.as_bytes());
    let mut set = |verb: Verb, sandbox: bool, id: Option<&[u8]>| {
        draft.verb = verb;
        draft.container.id = id.map(name);
        draft.container.sandbox = Some(sandbox);
    };
    if begins("Deleting pod ") {
        draft.verb = Verb::NetworkTeardown;
        draft.pod = joined(message, b"Deleting pod ");
        return true;
    }
    if begins("Got pod network ") {
        let field = |label: &str| between(message, label.as_bytes(), b" ").map(name);
        draft.verb = Verb::RuntimeRequest;
        draft.pod = PodHint {
            uid: field("UID:").filter(|u| is_uid(u.as_bytes())),
            namespace: field("Namespace:"),
            name: field("&{Name:"),
            cut: false,
        };
        draft.container.id = quoted_id(message, " ID:").map(name);
        draft.container.sandbox = Some(true);
        return true;
    }
    if begins("Stopping pod sandbox: ") {
        set(Verb::SandboxStopRequested, true, quoted_id(message, "sandbox: "));
    } else if begins("Stopped pod sandbox") {
        set(Verb::SandboxStopped, true, quoted_id(message, ": "));
    } else if begins("Removing pod sandbox: ") {
        set(Verb::RemoveStarted, true, quoted_id(message, "sandbox: "));
    } else if begins("Removed pod sandbox: ") {
        set(Verb::SandboxRemoved, true, quoted_id(message, "sandbox: "));
    } else if begins("Ran pod sandbox ") {
        set(Verb::SandboxCreated, true, quoted_id(message, "sandbox "));
        draft.pod = path_pod(message);
    } else if begins("Stopping container: ") {
        set(Verb::RuntimeStop, false, quoted_id(message, "container: "));
        let timeout =
            after(message, b"(timeout: ").and_then(scan::number).and_then(|(n, _)| i64::try_from(n).ok());
        draft.payload = timeout.map_or(Payload::Nothing, Payload::Grace);
    } else if begins("Stopped container ") {
        set(Verb::StopReturned, false, quoted_id(message, "container "));
        path_names(message, draft);
    } else if begins("Created container ") {
        set(Verb::ContainerCreated, false, quoted_id(message, "container "));
        path_names(message, draft);
    } else if begins("Started container ") {
        let id = line.id.as_deref().filter(|i| scan::is_runtime_id(i)).map(<[u8]>::to_vec);
        set(Verb::ContainerStarted, false, id.as_deref().or_else(|| between(message, b"containerID=", b" ")));
        path_names(message, draft);
    } else if begins("Removed container ") {
        set(Verb::ContainerRemoved, false, quoted_id(message, "container "));
        path_names(message, draft);
    } else if begins("Removing container: ") {
        set(Verb::RemoveStarted, false, quoted_id(message, "container: "));
    } else if has(message, b"topping container") && has(message, b"context deadline exceeded") {
        set(Verb::StopFailed, false, quoted_id(message, "container "));
        draft.payload = Payload::Text(name(shortened(message)));
    } else if begins("Checking image status")
        || begins("Image status:")
        || begins("Running pod sandbox")
        || begins("Creating container")
        || begins("Got ")
        || begins("Adding pod ")
        || begins("About to ")
    {
        // Nothing of a life, but it shows that the runtime answered at that time.
        draft.verb = Verb::RuntimeRequest;
    } else {
        return false;
    }
    true
}

/// `ns_name` as CRI-O joins them; a namespace holds no underscore.
fn joined(message: &[u8], words: &[u8]) -> PodHint {
    let token = after(message, words).map(|t| scan::word(t).0).unwrap_or_default();
    match until(token, b'_') {
        Some((ns, pod)) => {
            PodHint { uid: None, namespace: Some(name(ns)), name: Some(name(pod)), cut: false }
        }
        None => {
            PodHint { uid: None, namespace: None, name: (!token.is_empty()).then(|| name(token)), cut: false }
        }
    }
}

/// `…: ns/pod/container`.
fn path_names(message: &[u8], draft: &mut Draft) {
    let Some(path) = after(message, b": ").map(|t| scan::word(t).0) else { return };
    let mut parts = path.split(|b| *b == b'/');
    if let (Some(ns), Some(pod), Some(container)) = (parts.next(), parts.next(), parts.next()) {
        draft.pod.namespace = Some(name(ns));
        draft.pod.name = Some(name(pod));
        if container != b"POD" {
            draft.container.name = Some(name(container));
        }
    }
}

/// `Ran pod sandbox ID with infra container: ns/pod/POD`.
fn path_pod(message: &[u8]) -> PodHint {
    let path = after(message, b"container: ").map(|t| scan::word(t).0).unwrap_or_default();
    let mut parts = path.split(|b| *b == b'/');
    match (parts.next(), parts.next()) {
        (Some(ns), Some(pod)) => {
            PodHint { uid: None, namespace: Some(name(ns)), name: Some(name(pod)), cut: false }
        }
        _ => PodHint::default(),
    }
}
