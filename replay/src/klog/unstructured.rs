//! The catalogue of free text, 1.5 to 1.20 and what never was migrated since (node-logs §2, era A).
//!
//! Pods are `name_namespace(uid)` here. Texts are told apart by how they begin.

use super::Reader::{self, Own, Plain};
use super::{
    Record, event as kube_event, field_path_container, pod_ref, pod_text, readers, runtime_id, sentence,
    shortened, volume,
};
use crate::evidence::{Draft, Payload, PodHint, Sink, StatusOfContainer, StatusSeen};
use crate::pod_json;
use crate::scan::{self, after, between, has, is_runtime_id, is_uid, name, quoted_len, unescape};
use crate::verb::Verb;

/// The reader for a body that does not begin with a quote.
pub fn recognise(body: &[u8]) -> Option<Reader> {
    match body.first()? {
        b'o' | b'V' | b'M' | b'U' | b'e' | b'G' | b'C' if sentence::operation(body).is_some() => {
            return Some(Own(sentence::read_bare));
        }
        _ => {}
    }
    let begins = |words: &str| body.starts_with(words.as_bytes());
    Some(match body[0] {
        b'S' if begins("SyncLoop (") => Own(sync_loop),
        b'S' if begins("Status for pod \"") => Own(status_updated),
        b'S' if begins("Sandbox for pod \"") && has(body, b"has changed") => Plain(Verb::SandboxChanged),
        b'S' if begins("Starting kubelet") || begins("Starting Kubelet Volume Manager") => {
            Plain(Verb::KubeletStarted)
        }
        b'S' | b'R' | b'C' if has(&body[..body.len().min(120)], b"from runtime service failed") => {
            Own(runtime_failed)
        }
        b's' if begins("skipping pod synchronization") => Plain(Verb::LoopBlocked),
        b'O' if begins("Observed a panic: ") => Plain(Verb::PanicCaught),
        b'R' if begins("Recovered from panic: ") => Plain(Verb::PanicCaught),
        b'S' if begins("Server rejected event '") => Own(crate::events_table::refused),
        b'v' if begins("volumeHandler.UnmountVolumeHandler for UnmountVolume failed") => Own(cleanup_failed),
        b'O' if begins("Operation for \"") => Own(sentence::read_operation_failed),
        b'O' | b'o' if begins("Orphaned pod \"") || begins("orphaned pod \"") => Own(orphaned),
        // Up to 1.3 the clean-up of what is gone was a loop of its own, and took directories for volumes.
        b'O' if begins("Orphaned volume \"") => Own(orphaned_volume),
        b'C' if begins("Could not tear down volume \"") => Own(orphaned_volume),
        b'F' if begins("Failed to remove orphaned pod \"") => Own(orphaned),
        b'E' if begins("Error processing volume \"") => Own(unresolved),
        b'K' if begins("Killing container ") => Own(killing),
        b'K' if begins("Killing unwanted pod \"") => Own(unwanted),
        b'C' if begins("Container ") => Own(container),
        b'C' if begins("Creating container &Container{Name:") => Own(creating),
        b'C' if begins("Created PodSandbox \"") => Own(sandbox_created),
        b'C' if begins("Calling network plugin") && has(body, b"to tear down pod") => {
            Plain(Verb::NetworkTeardown)
        }
        b'C' if begins("Could not construct volume information") => Own(reconstruct_failed),
        b'C' if begins("Could not initialize") && has(body, b"checkpoint") => {
            Plain(Verb::CheckpointUnreadable)
        }
        b'R' if begins("Running preStop hook") => Own(hook),
        b'R' if begins("Reconciler: start to sync state") => Plain(Verb::KubeletStarted),
        b'R' if begins("Reconciler sync states: could not find") => Own(reconstructed),
        b'R' if begins("Receiving a new pod") => Plain(Verb::PodReceived),
        b'p' if begins("preStop hook for container") => Own(hook),
        b'P' if begins("Patch status for pod \"") => Own(patch),
        b'P' if begins("Pod \"") => return pod(body),
        b'P' if begins("Pod attempted illegal phase transition") => Plain(Verb::IllegalTransition),
        b'E' if begins("Event(v1.ObjectReference{Kind:\"Pod\"") => Own(event),
        b'E' if begins("Event(v1.ObjectReference{Kind:\"Node\"") && has(body, b"reason: 'Rebooted'") => {
            Plain(Verb::NodeRebooted)
        }
        b'E' if begins("Error syncing pod ") => Own(sync_failed),
        b'U' if begins("Unable to mount volumes for pod")
            || begins("Unable to attach or mount volumes for pod") =>
        {
            Own(sync_failed)
        }
        b'U' if begins("Unmount skipped because path does not exist") => Plain(Verb::PathMissing),
        b'W' if begins("Warning: Unmount skipped because path does not exist") => Plain(Verb::PathMissing),
        b'W' if begins("Waiting for volumes to attach and mount for pod") => Plain(Verb::VolumesAwaited),
        b'A' if begins("All volumes are attached and mounted for pod") => Plain(Verb::VolumesReady),
        b'A' if begins("Adding pod path") || begins("Adding static pod path") => Plain(Verb::KubeletStarted),
        b'G' if begins("Generating status for \"") => Plain(Verb::StatusGenerated),
        b'G' if begins("GenericPLEG: ") => Own(generic_pleg),
        b'N' if begins("No sandbox for pod") || begins("No ready sandbox for pod") => {
            Plain(Verb::SandboxNeeded)
        }
        b'c' if begins("computePodActions got ") => Plain(Verb::Planned),
        b'[' if begins("[topologymanager] RemoveContainer") => Own(removal_noted),
        b'[' if begins("[pod_container_deletor] DeleteContainer") => Own(remove_raced),
        b'[' if has(&body[..body.len().min(80)], b"ould not initialize checkpoint manager") => {
            Plain(Verb::CheckpointUnreadable)
        }
        b'[' if begins("[cpumanager] ") || begins("[topologymanager] Creating") => return started(body),
        b'F' if begins("Failed to retrieve checkpoint for sandbox") => Plain(Verb::SandboxCheckpointMissing),
        // Which manager's file it is stands before it, and the rest may be cut.
        b'f' | b'F' if has(&body[..body.len().min(160)], b"could not restore state from checkp") => {
            Plain(Verb::CheckpointUnreadable)
        }
        b'F' if begins("Failed to run kubelet") => Plain(Verb::KubeletFailed),
        b'f' if begins("failed to run Kubelet") => Plain(Verb::KubeletFailed),
        b'F' if begins("Failed to admit pod") => Plain(Verb::AdmissionDenied),
        b'F' if begins("Failed deleting a mirror pod") || begins("Failed creating a mirror pod") => {
            Plain(Verb::MirrorPodFailed)
        }
        b'T' if begins("Trying to delete pod") => Plain(Verb::MirrorPod),
        b'D' if begins("Deleted mirror pod") || begins("Deleting mirror pod") => Plain(Verb::MirrorPod),
        b'e' if begins("eviction manager: must evict pod(s)") => Plain(Verb::EvictionBegan),
        b'e' if begins("eviction manager: pod") && has(body, b"evicted") => Plain(Verb::Evicted),
        b'V' | b'v' if has(body, b"is not published at") && has(body, b"nothing to do") => Own(nothing_to_do),
        b'N' if begins("NodeUnpublishVolume") && has(body, b"nothing to do") => Own(nothing_to_do),
        _ => return None,
    })
}

fn started(body: &[u8]) -> Option<Reader> {
    (has(body, b"starting with") || has(body, b"initializing new in-memory"))
        .then_some(Plain(Verb::KubeletStarted))
}

/// A pod as the text has it: in quotes, or bare behind "pod ".
fn pod_in(text: &[u8]) -> PodHint {
    let quoted = after(text, b"od \"").or_else(|| after(text, b"for \"")).or_else(|| after(text, b"(\""));
    let found = match quoted.and_then(|t| quoted_len(t).map(|len| &t[..len])) {
        Some(inner) => inner,
        None => match after(text, b"pod ") {
            Some(rest) => scan::word(rest).0,
            None => return PodHint::default(),
        },
    };
    if is_uid(found) {
        return PodHint { uid: Some(name(found)), ..PodHint::default() };
    }
    if found.contains(&b'_') { pod_text(found) } else { PodHint::default() }
}

/// A text of which pod and words are all that matters.
pub fn plain(record: &Record<'_>, verb: Verb, sink: &mut Sink) {
    let mut draft = record.draft(verb);
    draft.pod = pod_in(record.body);
    draft.payload = Payload::Text(name(shortened(record.body)));
    sink.push(draft);
}

fn pod(body: &[u8]) -> Option<Reader> {
    Some(match body {
        b if has(b, b"is terminated, but some containers are still running")
            || has(b, b"is terminated, but some pod sandboxes have not been cleaned up") =>
        {
            Plain(Verb::ContainersLeft)
        }
        b if has(b, b"is terminated, but some volumes have not been cleaned up") => Plain(Verb::VolumesLeft),
        b if has(b, b"fully terminated and removed from etcd") => Plain(Verb::PodReleased),
        b if has(b, b"attempted illegal phase transition") => Plain(Verb::IllegalTransition),
        _ => return None,
    })
}

/// `SyncLoop (ADD, "api"): "p1, p2"` and `SyncLoop (PLEG): "p", event: …`.
fn sync_loop(record: &Record<'_>, sink: &mut Sink) {
    let Some(rest) = record.body.strip_prefix(b"SyncLoop (") else { return };
    if rest.starts_with(b"PLEG") {
        return pleg(record, sink);
    }
    let verb = match rest.split(|b| matches!(b, b',' | b')')).next() {
        Some(b"ADD") => Verb::PodAdded,
        Some(b"UPDATE") => Verb::PodUpdated,
        Some(b"REMOVE") => Verb::PodRemoved,
        Some(b"DELETE") => Verb::DeleteSeen,
        Some(b"RECONCILE") => Verb::PodReconciled,
        Some(_) | None => return,
    };
    sink.verbosity = sink.verbosity.max(if verb == Verb::PodReconciled { 4 } else { 2 });
    let source = between(rest, b"\"", b"\"").map(name);
    let list = after(rest, b"): \"").map(|l| quoted_len(l).map_or(l, |len| &l[..len])).unwrap_or_default();
    // Split only where a pod ends: labels and stamps may hold commas.
    let mut at = list;
    while !at.is_empty() {
        let end = memchr::memmem::find(at, b"), ").map_or(at.len(), |e| e + 1);
        let one = &at[..end];
        let mut draft = record.draft(verb);
        draft.pod = pod_text(one);
        if verb == Verb::PodUpdated && has(one, b":DeletionTimestamp=") {
            draft.verb = Verb::DeleteSeen;
        }
        draft.payload = source.clone().map_or(Payload::Nothing, Payload::Text);
        sink.push(draft);
        at = at.get(end + 2..).unwrap_or_default();
    }
}

fn pleg(record: &Record<'_>, sink: &mut Sink) {
    sink.verbosity = sink.verbosity.max(2);
    let field = |label: &str| between(record.body, label.as_bytes(), b"\"");
    let Some(verb) = field("Type:\"").and_then(readers::pleg_verb) else { return };
    let mut draft = record.draft(verb);
    draft.pod = after(record.body, b"(PLEG): \"")
        .and_then(|t| scan::until(t, b'"'))
        .map(|(p, _)| pod_text(p))
        .unwrap_or_default();
    draft.pod.uid = field("{ID:\"").filter(|u| is_uid(u)).map(name).or(draft.pod.uid);
    draft.container.id = field("Data:\"").filter(|d| is_runtime_id(d)).map(name);
    sink.push(draft);
}

/// The container's id in `"docker://id"`, `{"docker" "id"}`, `{docker id}`, `"id name ns/pod"` (up to 1.5) or bare.
fn id_in(text: &[u8]) -> Option<&[u8]> {
    let text = scan::trim_start(text);
    let found = match text.first()? {
        b'"' => scan::word(scan::until(&text[1..], b'"').map_or(&text[1..], |(t, _)| t)).0,
        b'{' => {
            let inner = &text[1..text.iter().position(|b| *b == b'}').unwrap_or(text.len())];
            let last = inner.split(|b| *b == b' ').next_back()?;
            last.strip_prefix(b"\"").and_then(|l| l.strip_suffix(b"\"")).unwrap_or(last)
        }
        _ => scan::word(text).0,
    };
    let id = runtime_id(found);
    is_runtime_id(id).then_some(id)
}

fn with_id(record: &Record<'_>, verb: Verb, text: &[u8]) -> Draft {
    let mut draft = record.draft(verb);
    draft.container.id = id_in(text).map(name);
    if let Some((container, pod)) = dockers_names(text) {
        draft.container.name = container.map(name);
        draft.container.sandbox = container.map(|_| false);
        draft.pod = pod_ref(pod, false);
    }
    draft
}

/// The container and the pod in `"id name ns/pod"`, or only the pod in `"id ns/pod"`, which is the sandbox'.
fn dockers_names(text: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let inner = scan::until(scan::trim_start(text).strip_prefix(b"\"")?, b'"')?.0;
    let mut words = inner.split(|b| *b == b' ').skip(1);
    match (words.next(), words.next(), words.next()) {
        (Some(pod), None, None) if pod.contains(&b'/') => Some((None, pod)),
        (Some(container), Some(pod), None) if pod.contains(&b'/') => Some((Some(container), pod)),
        _ => None,
    }
}

/// `Killing container "docker://id" with 5 second grace period`, and its override.
fn killing(record: &Record<'_>, sink: &mut Sink) {
    let rest = &record.body[b"Killing container ".len()..];
    let overridden = has(rest, b"grace period override");
    let verb = if overridden { Verb::GraceOverridden } else { Verb::StopRequested };
    let mut draft = with_id(record, verb, rest);
    let number = ["using ", "with a ", "with "].iter().find_map(|w| {
        let after = after(rest, w.as_bytes())?;
        scan::integer(scan::word(after).0)
    });
    draft.payload = number.map_or(Payload::Nothing, Payload::Grace);
    sink.push(draft);
}

/// `Container "docker://id" exited normally`, `Container "id" not found in pod's containers`.
fn container(record: &Record<'_>, sink: &mut Sink) {
    let rest = &record.body[b"Container ".len()..];
    let verb = if has(rest, b"exited normally") || has(rest, b"\" exited after ") {
        Verb::StopReturned
    } else if has(rest, b"not found in pod's containers") {
        Verb::ContainerUnknown
    } else if has(rest, b"termination failed with gracePeriod") || has(rest, b"\" termination failed after ")
    {
        Verb::StopFailed
    } else {
        return;
    };
    let mut draft = with_id(record, verb, rest);
    if verb == Verb::StopFailed {
        draft.payload = Payload::Text(name(shortened(record.body)));
    }
    sink.push(draft);
}

fn hook(record: &Record<'_>, sink: &mut Sink) {
    let verb = if record.body.starts_with(b"Running") { Verb::HookStarted } else { Verb::HookDone };
    let text = after(record.body, b"for container ").unwrap_or_default();
    sink.push(with_id(record, verb, text));
}

fn removal_noted(record: &Record<'_>, sink: &mut Sink) {
    let text = after(record.body, b"Container ID: ").unwrap_or_default();
    sink.push(with_id(record, Verb::RemovalNoted, text));
}

fn remove_raced(record: &Record<'_>, sink: &mut Sink) {
    let text = after(record.body, b"(id=").unwrap_or_default();
    let text = text.split(|b| *b == b')').next().unwrap_or_default();
    sink.push(with_id(record, Verb::RemoveRaced, text));
}

/// `StartContainer "id" from runtime service failed: …`.
fn runtime_failed(record: &Record<'_>, sink: &mut Sink) {
    let (call, rest) = scan::word(record.body);
    let (verb, sandbox) = match call {
        b"StopContainer" => (Verb::StopFailed, Some(false)),
        b"StopPodSandbox" => (Verb::SandboxStopFailed, Some(true)),
        b"StartContainer" => (Verb::StartFailed, Some(false)),
        b"CreateContainer" => (Verb::CreateFailed, None),
        b"RunPodSandbox" | b"RemovePodSandbox" | b"PodSandboxStatus" => (Verb::RuntimeFailed, Some(true)),
        _ => (Verb::RuntimeFailed, None),
    };
    let mut draft = with_id(record, verb, rest);
    draft.container.sandbox = sandbox.filter(|_| draft.container.id.is_some());
    draft.payload = Payload::Text(name(shortened(record.body)));
    // The path that is missing tells the pod and the volume of a start that failed for it (race 3).
    if let Some((uid, plugin, spec)) = volume_path(record.body) {
        draft.pod.uid = Some(name(uid));
        draft.volume = volume(Some(spec), None);
        draft.volume.plugin = Some(String::from_utf8_lossy(plugin).replace('~', "/").into());
    }
    sink.push(draft);
}

/// The pod, plugin and volume in `…/pods/<uid>/volumes/<plugin~esc>/<name>`, under whatever root.
pub fn volume_path(text: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let rest = after(text, b"/pods/")?;
    let (uid, rest) = scan::until(rest, b'/')?;
    let rest = rest.strip_prefix(b"volumes/").or_else(|| rest.strip_prefix(b"volumeDevices/"))?;
    let (plugin, rest) = scan::until(rest, b'/')?;
    let end =
        rest.iter().position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'~')));
    let spec = &rest[..end.unwrap_or(rest.len())];
    (is_uid(uid) && !spec.is_empty()).then_some((uid, plugin, spec))
}

/// `GenericPLEG: uid/cid: running -> exited`.
fn generic_pleg(record: &Record<'_>, sink: &mut Sink) {
    sink.verbosity = sink.verbosity.max(4);
    let rest = &record.body[b"GenericPLEG: ".len()..];
    let Some((pair, states)) = scan::until(rest, b':') else { return };
    let Some((uid, id)) = scan::until(pair, b'/') else { return };
    let verb = match after(states, b"-> ").map(scan::trim) {
        Some(b"running") => Verb::ContainerRunning,
        Some(b"exited") => Verb::ContainerDead,
        Some(b"non-existent") => Verb::ContainerGone,
        Some(_) | None => return,
    };
    let mut draft = record.draft(verb);
    draft.pod.uid = is_uid(uid).then(|| name(uid));
    draft.container.id = is_runtime_id(id).then(|| name(id));
    sink.push(draft);
}

fn creating(record: &Record<'_>, sink: &mut Sink) {
    let mut draft = record.draft(Verb::CreateStarted);
    let rest = after(record.body, b"&Container{Name:").unwrap_or_default();
    draft.container.name = scan::until(rest, b',').map(|(n, _)| name(n));
    draft.container.sandbox = Some(false);
    if let Some(at) = memchr::memmem::rfind(record.body, b" in pod ") {
        draft.pod = pod_text(scan::word(&record.body[at + 8..]).0);
    }
    sink.push(draft);
}

fn sandbox_created(record: &Record<'_>, sink: &mut Sink) {
    let text = &record.body[b"Created PodSandbox ".len()..];
    let mut draft = with_id(record, Verb::SandboxCreated, text);
    draft.container.sandbox = Some(true);
    draft.pod = pod_in(text);
    sink.push(draft);
}

/// `Event(v1.ObjectReference{…}): type: 'Normal' reason: 'Killing' message`.
fn event(record: &Record<'_>, sink: &mut Sink) {
    sink.verbosity = sink.verbosity.max(3);
    let body = record.body;
    let Some((object, rest)) = memchr::memmem::find(body, b"}): ").map(|at| body.split_at(at)) else {
        return;
    };
    let field = |label: &str| between(object, label.as_bytes(), b"\"").filter(|f| !f.is_empty());
    let Some(reason) = between(rest, b"reason: '", b"'") else { return };
    let message = after(rest, b"reason: '").and_then(|m| after(m, b"' ")).unwrap_or_default();
    let Some(verb) = kube_event(reason, message) else { return };
    let mut draft = record.draft(verb);
    draft.pod = PodHint {
        uid: field(", UID:\"").filter(|u| is_uid(u)).map(name),
        namespace: field("Namespace:\"").map(name),
        name: field(", Name:\"").map(name),
        cut: false,
    };
    draft.container.name = field("FieldPath:\"").and_then(field_path_container).map(name);
    draft.container.sandbox = draft.container.name.is_some().then_some(false);
    if verb == Verb::MountFailed {
        draft.volume = sentence::details(message).volume;
    }
    draft.payload = Payload::Text(name(shortened(message)));
    sink.push(draft);
}

/// `Patch status for pod "p" with "<json>"`.
fn patch(record: &Record<'_>, sink: &mut Sink) {
    let mut draft = record.draft(Verb::StatusPatched);
    draft.pod = pod_in(record.body);
    if let Some(quoted) = after(record.body, b"\" with \"") {
        let json = unescape(quoted_len(quoted).map_or(quoted, |len| &quoted[..len]));
        match pod_json::status_text(&json, sink) {
            Ok(status) => draft.payload = Payload::Status(Box::new(status)),
            Err(_) => sink.remark("a status patch was cut and could not be read"),
        }
    }
    sink.push(draft);
}

/// `Status for pod "p" updated successfully: (6, {Phase:Running …})`: a Go dump, read for names, ids and states.
fn status_updated(record: &Record<'_>, sink: &mut Sink) {
    let mut draft = record.draft(Verb::StatusWritten);
    draft.pod = pod_in(record.body);
    draft.payload = Payload::Status(Box::new(dumped_status(record.body)));
    sink.push(draft);
}

pub fn dumped_status(dump: &[u8]) -> StatusSeen {
    let mut status = StatusSeen {
        phase: between(dump, b"{Phase:", b" ").filter(|p| !p.is_empty()).map(name),
        ..StatusSeen::default()
    };
    let mut rest = dump;
    while let Some(found) = after(rest, b"{Name:") {
        let end = memchr::memmem::find(found, b"{Name:").unwrap_or(found.len());
        let one = &found[..end];
        rest = &found[end..];
        let container = scan::word(one).0;
        // What ends in its middle would give a false name or id.
        let Some(id) = after(one, b" ContainerID:").map(|t| t.split(|b| matches!(b, b'}' | b' ')).next())
        else {
            continue;
        };
        let id = id.map(runtime_id).filter(|i| is_runtime_id(i));
        let state = match after(one, b"State:{") {
            Some(s) if between(s, b"Running:", b" ").is_some_and(|r| r.starts_with(b"&")) => Some("running"),
            Some(s) if between(s, b"Terminated:", b" ").is_some_and(|t| t.starts_with(b"&")) => {
                Some("terminated")
            }
            Some(_) => Some("waiting"),
            None => None,
        };
        status.containers.push(StatusOfContainer {
            name: Some(name(container)),
            id: id.map(name),
            state,
            ..StatusOfContainer::default()
        });
    }
    status
}

/// `Orphaned pod "uid" found, but …`: waiting, or unable to go on (node-logs §2.7).
fn orphaned(record: &Record<'_>, sink: &mut Sink) {
    let body = record.body;
    // "occured" is how it was spelled up to 1.5.
    let stuck = [
        "still present",
        "failed to rmdir",
        "occurred during reading",
        "occured during reading",
        "occurred when trying to remove",
        " dir; err: ",
    ]
    .iter()
    .any(|w| has(body, w.as_bytes()));
    let waiting =
        has(body, b"not yet removed") || has(body, b"not cleaned up") || has(body, b"still mounted");
    if !stuck && !waiting {
        return;
    }
    let mut draft = record.draft(if stuck { Verb::OrphanDirLeft } else { Verb::OrphanVolumesLeft });
    draft.pod = pod_in(body);
    draft.volume = left_volume(body);
    let hidden = after(body, b"There were a total of ").and_then(scan::number).map_or(1, |(n, _)| n);
    let text = name(shortened(body));
    draft.payload = match stuck {
        true => Payload::Count(i64::try_from(hidden).unwrap_or(i64::MAX), text),
        false => Payload::Text(text),
    };
    sink.push(draft);
}

/// `Orphaned volume "uid/name" found, tearing down volume`, `Could not tear down volume "uid/name": <err>`.
fn orphaned_volume(record: &Record<'_>, sink: &mut Sink) {
    let failed = record.body.starts_with(b"Could not");
    let mut draft = record.draft(if failed { Verb::OrphanDirLeft } else { Verb::CleanupStarted });
    if let Some((uid, spec)) = between(record.body, b"volume \"", b"\"").and_then(|v| scan::until(v, b'/')) {
        draft.pod.uid = is_uid(uid).then(|| name(uid));
        draft.volume = volume(Some(spec), None);
        // Every directory was taken for a volume here: that is how this loop worked, not a thing gone wrong in it.
        draft.volume.artifact = false;
    }
    if failed {
        draft.payload = Payload::Count(1, name(shortened(record.body)));
    }
    sink.push(draft);
}

/// `Error processing volume "v" for pod "p": <err>`.
fn unresolved(record: &Record<'_>, sink: &mut Sink) {
    let mut draft = record.draft(Verb::VolumeUnresolved);
    draft.volume = volume(between(record.body, b"volume \"", b"\""), None);
    draft.pod = after(record.body, b"for pod \"")
        .and_then(|t| scan::until(t, b'"'))
        .map(|(p, _)| pod_text(p))
        .unwrap_or_default();
    draft.payload = Payload::Text(name(shortened(record.body)));
    sink.push(draft);
}

/// `Killing unwanted pod "p"`: the name alone (node-logs §2.2).
fn unwanted(record: &Record<'_>, sink: &mut Sink) {
    let mut draft = record.draft(Verb::KillPlanned);
    draft.pod.name = between(record.body, b"pod \"", b"\"").map(name);
    draft.payload = Payload::Text(name(shortened(record.body)));
    sink.push(draft);
}

/// The volume whose directory or subpath can't be removed, by its path.
pub fn left_volume(error: &[u8]) -> crate::evidence::VolumeHint {
    let subpath = after(error, b"/volume-subpaths/").and_then(|rest| scan::until(rest, b'/'));
    match (volume_path(error), subpath) {
        (Some((_, _, spec)), _) | (None, Some((spec, _))) => volume(Some(spec), None),
        (None, None) => crate::evidence::VolumeHint::default(),
    }
}

/// `Error syncing pod <uid> ("<pod>"), skipping: <err>`, `Unable to mount volumes for pod "<pod>": <err>; skipping pod`.
fn sync_failed(record: &Record<'_>, sink: &mut Sink) {
    let body = record.body;
    let mut draft = record.draft(Verb::SyncFailed);
    draft.pod = pod_in(body);
    let uid = after(body, b"Error syncing pod ").map(|t| scan::word(t).0);
    // Up to 1.2 no name follows the UID, but a comma.
    if let Some(uid) = uid.map(|u| u.strip_suffix(b",").unwrap_or(u)).filter(|u| is_uid(u)) {
        draft.pod.uid = Some(name(uid));
        if let Some(pod) = between(body, b"(\"", b"\")") {
            let named = pod_text(pod);
            (draft.pod.name, draft.pod.namespace) = (named.name, named.namespace);
        }
    }
    let error = after(body, b"skipping: ").or_else(|| after(body, b"\": ")).unwrap_or(body);
    readers::push_sync_failure(draft, error, sink);
}

/// `Could not construct volume information, cleanup the mounts. (pod.UID u, volume.SpecName s): err`.
fn reconstruct_failed(record: &Record<'_>, sink: &mut Sink) {
    let mut draft = record.draft(Verb::ReconstructFailed);
    draft.pod.uid = after(record.body, b"pod.UID ")
        .map(|t| t.split(|b| matches!(b, b',' | b' ')).next().unwrap_or_default())
        .filter(|u| is_uid(u))
        .map(name);
    draft.volume = volume(between(record.body, b"volume.SpecName ", b")"), None);
    draft.payload = Payload::Text(name(shortened(record.body)));
    sink.push(draft);
}

/// `Reconciler sync states: could not find pod information in desired state, …: &{volumeName:… podName:… …}`.
fn reconstructed(record: &Record<'_>, sink: &mut Sink) {
    let body = record.body;
    let verb =
        if has(body, b"clean up the mount points") { Verb::CleanupStarted } else { Verb::Reconstructed };
    let field = |label: &str| between(body, label.as_bytes(), b" ").filter(|f| !f.is_empty());
    let mut draft = record.draft(verb);
    // 1.11 to 1.13 put the same into brackets.
    let bracketed = |label: &[u8]| between(body, label, b")").filter(|f| !f.is_empty());
    let spec = field("outerVolumeSpecName:").or_else(|| field("volumeSpecName:"));
    let spec = spec.or_else(|| bracketed(b"(Volume SpecName: "));
    draft.volume = volume(spec, field("{volumeName:").filter(|u| u.contains(&b'/')));
    draft.pod.uid = field("podName:")
        .map(|p| p.split(|b| *b == b'}').next().unwrap_or_default())
        .or_else(|| bracketed(b"(PID: "))
        .filter(|u| is_uid(u))
        .map(name);
    sink.push(draft);
}

/// `volumeHandler.UnmountVolumeHandler for UnmountVolume failed for volume "" (UniqueName: "spec") pod "uid" …: <err>`, up to 1.13: the
/// only attempt to clean up what a restart found on disk has failed, and nothing knows of the volume.
fn cleanup_failed(record: &Record<'_>, sink: &mut Sink) {
    let mut draft = record.draft(Verb::ReconstructFailed);
    draft.pod.uid = between(record.body, b"(UID: \"", b"\"").filter(|u| is_uid(u)).map(name);
    draft.volume = volume(between(record.body, b"(UniqueName: \"", b"\""), None);
    draft.payload = Payload::Text(name(shortened(record.body)));
    sink.push(draft);
}

/// A CSI driver that has forgotten a publish says so and reports success (row 39).
fn nothing_to_do(record: &Record<'_>, sink: &mut Sink) {
    let mut draft = record.draft(Verb::DriverNothingToDo);
    draft.witness = crate::evidence::Witness::Driver;
    if let Some((uid, plugin, spec)) = volume_path(record.body) {
        draft.pod.uid = Some(name(uid));
        draft.volume = volume(Some(spec), None);
        draft.volume.plugin = Some(String::from_utf8_lossy(plugin).replace('~', "/").into());
    }
    draft.payload = Payload::Text(name(shortened(record.body)));
    sink.push(draft);
}
