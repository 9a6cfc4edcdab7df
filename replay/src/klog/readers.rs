//! What the pairs of structured messages carry (node-logs §2). One function per shape, not per release: keys were
//! renamed over the years, so each is asked for by all its names.

use super::{
    Fields, Record, Value, event as kube_event, field_path_container, pod_ref, runtime_id, shortened, volume,
};
use crate::evidence::{Draft, Name, Payload, Sink};
use crate::pod_json;
use crate::scan::{self, is_runtime_id, is_uid, name, unescape};
use crate::verb::Verb;

/// A draft with what nearly every message has: pod, UID, container, error.
fn common(record: &Record<'_>, verb: Verb, fields: &Fields<'_>) -> Draft {
    let mut draft = record.draft(verb);
    draft.cut = fields.is_cut();
    if let Some(pod) = fields.get("pod") {
        draft.pod = pod_ref(&pod.text(), pod.cut);
    }
    let uid = fields.any(&["podUID", "podID", "podUid", "podName"]).and_then(|v| v.whole());
    draft.pod.uid = uid.filter(|u| is_uid(u)).map(|u| name(&u));
    if let Some(container) = fields.any(&["containerName", "container"]).and_then(|v| v.whole())
        && !container.starts_with(b"&")
        && !container.starts_with(b"{")
    {
        draft.container.name = Some(name(&container));
        draft.container.sandbox = Some(false);
    }
    if let Some(id) = fields.any(&["containerID", "containerId"]) {
        draft.container.id = container_id(&id);
    }
    if let Some(error) = fields.any(&["err", "error", "reason", "message"]) {
        draft.payload = Payload::Text(name(shortened(&error.text())));
    }
    draft
}

/// An id: bare, with the runtime's prefix, or in `{Type:containerd ID:…}` of any spelling. A cut one keeps what is
/// there: a prefix that only a single known id may complete (node-logs §1.7).
fn container_id(value: &Value<'_>) -> Option<Name> {
    let text = value.text();
    let id = if text.starts_with(b"{") { labelled(&text, "ID")? } else { runtime_id(&text) };
    is_runtime_id(id).then(|| name(id))
}

/// The value of a label in `{ID:a Type:b}` or `{"ID":"a","Type":"b"}`.
fn labelled<'a>(group: &'a [u8], label: &str) -> Option<&'a [u8]> {
    let mut from = 0;
    // In JSON first: there a value may look like a label.
    while let Some(at) = scan::find(&group[from..], label.as_bytes()).map(|at| from + at) {
        from = at + label.len();
        if at > 0 && group[at - 1] == b'"' && group[from..].starts_with(b"\":") {
            let rest = scan::trim_start(&group[from + 2..]).strip_prefix(b"\"")?;
            return Some(&rest[..rest.iter().position(|b| *b == b'"').unwrap_or(rest.len())]);
        }
    }
    let mut from = 0;
    while let Some(at) = scan::find(&group[from..], label.as_bytes()).map(|at| from + at) {
        from = at + label.len();
        let begins = at == 0 || matches!(group[at - 1], b'{' | b' ' | b',');
        if let (true, Some(rest)) = (begins, group[from..].strip_prefix(b":")) {
            let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
            let ends = rest.iter().position(|b| matches!(b, b' ' | b'}' | b'"' | b','));
            return Some(&rest[..ends.unwrap_or(rest.len())]);
        }
    }
    None
}

/// A message whose common fields say all.
pub fn plain(record: &Record<'_>, verb: Verb, sink: &mut Sink) {
    if let Some(fields) = record.fields() {
        sink.push(common(record, verb, fields));
    }
}

fn with(
    record: &Record<'_>,
    verb: Verb,
    sink: &mut Sink,
    fill: impl FnOnce(&mut Draft, &Fields<'_>, &mut Sink),
) {
    if let Some(fields) = record.fields() {
        let mut draft = common(record, verb, fields);
        fill(&mut draft, fields, sink);
        sink.push(draft);
    }
}

/// The references in a list: `[ns/a ns/b]`, `["ns/a","ns/b"]` or `[{"name":…},…]`.
fn references(list: &[u8]) -> Vec<&[u8]> {
    let inner = list.strip_prefix(b"[").unwrap_or(list);
    let inner = inner.strip_suffix(b"]").unwrap_or(inner);
    if inner.starts_with(b"{") {
        let mut found = Vec::new();
        let mut rest = inner;
        while let Some(len) = scan::group_len(rest) {
            found.push(&rest[..len]);
            rest = rest[len..].strip_prefix(b",").unwrap_or_default();
            if !rest.starts_with(b"{") {
                break;
            }
        }
        return found;
    }
    let parts = inner.split(|b| matches!(b, b' ' | b','));
    parts.map(unquoted).filter(|r| !r.is_empty()).collect()
}

/// Without quotes around it, where it has any.
fn unquoted(text: &[u8]) -> &[u8] {
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    text.strip_suffix(b"\"").unwrap_or(text)
}

/// SyncLoop ADD, UPDATE, REMOVE, DELETE, RECONCILE: one draft per pod.
pub fn source(record: &Record<'_>, sink: &mut Sink) {
    let Some(fields) = record.fields() else { return };
    let verb = match fields.message {
        b"SyncLoop ADD" => Verb::PodAdded,
        b"SyncLoop UPDATE" => Verb::PodUpdated,
        b"SyncLoop REMOVE" => Verb::PodRemoved,
        b"SyncLoop DELETE" => Verb::DeleteSeen,
        _ => Verb::PodReconciled,
    };
    sink.verbosity = sink.verbosity.max(if verb == Verb::PodReconciled { 4 } else { 2 });
    let source = fields.get("source").map(|s| name(&s.text()));
    let Some(pods) = fields.get("pods") else {
        let mut draft = common(record, verb, fields);
        draft.cut = true;
        sink.push(draft);
        return;
    };
    let text = pods.text();
    let list = references(&text);
    let last = list.len().saturating_sub(1);
    for (i, reference) in list.iter().enumerate() {
        let mut draft = record.draft(verb);
        draft.cut = pods.cut && i == last;
        draft.pod = pod_ref(reference, draft.cut);
        draft.payload = source.clone().map_or(Payload::Nothing, Payload::Text);
        sink.push(draft);
    }
}

/// SyncLoop (PLEG).
pub fn pleg(record: &Record<'_>, sink: &mut Sink) {
    sink.verbosity = sink.verbosity.max(2);
    let Some(fields) = record.fields() else { return };
    let Some(event) = fields.get("event") else { return };
    let group = event.text();
    let Some(verb) = labelled(&group, "Type").and_then(pleg_verb) else { return };
    let mut draft = common(record, verb, fields);
    draft.pod.uid = labelled(&group, "ID").filter(|u| is_uid(u)).map(name).or(draft.pod.uid);
    draft.container.id = labelled(&group, "Data").filter(|d| is_runtime_id(d)).map(name);
    draft.payload = Payload::Nothing;
    sink.push(draft);
}

/// What a PLEG event's type means; the others tell no state.
pub fn pleg_verb(kind: &[u8]) -> Option<Verb> {
    match kind {
        b"ContainerStarted" => Some(Verb::ContainerRunning),
        b"ContainerDied" => Some(Verb::ContainerDead),
        b"ContainerRemoved" => Some(Verb::ContainerGone),
        _ => None,
    }
}

/// GenericPLEG: what the relist saw.
pub fn generic_pleg(record: &Record<'_>, sink: &mut Sink) {
    sink.verbosity = sink.verbosity.max(4);
    let Some(fields) = record.fields() else { return };
    let new = fields.get("newState").map(|v| v.text());
    let verb = match new.as_deref() {
        Some(b"running") => Verb::ContainerRunning,
        Some(b"exited") => Verb::ContainerDead,
        Some(b"non-existent") => Verb::ContainerGone,
        Some(_) | None => return,
    };
    sink.push(common(record, verb, fields));
}

/// Generic (PLEG): container finished.
pub fn finished(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::ContainerExited, sink, |draft, fields, _| {
        let code = fields.get("exitCode").and_then(|c| scan::integer(&c.text()));
        draft.payload = Payload::Exit(code, None);
    });
}

/// PreStop hook not completed in grace period: it has taken the whole of it.
pub fn hook_late(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::HookDone, sink, grace);
}

/// Killing container with a grace period.
pub fn kill(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::StopRequested, sink, grace);
}

/// … override.
pub fn kill_override(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::GraceOverridden, sink, grace);
}

fn grace(draft: &mut Draft, fields: &Fields<'_>, _: &mut Sink) {
    let seconds = fields.get("gracePeriod").and_then(|v| v.whole()).and_then(|v| scan::integer(&v));
    draft.payload = seconds.map_or(Payload::Nothing, Payload::Grace);
}

/// Created PodSandbox for pod.
pub fn sandbox_created(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::SandboxCreated, sink, sandbox_id);
}

/// StopPodSandbox from runtime service failed.
pub fn sandbox_stop_failed(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::SandboxStopFailed, sink, sandbox_id);
}

/// PodSandboxStatus of sandbox for pod: the runtime did not say how it is; which pod's it is, the line says.
pub fn sandbox_unknown(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::RuntimeFailed, sink, sandbox_id);
}

/// Removing sandbox.
pub fn removing_sandbox(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::RemoveStarted, sink, sandbox_id);
}

fn sandbox_id(draft: &mut Draft, fields: &Fields<'_>, _: &mut Sink) {
    draft.container.id = fields.any(&["podSandboxID", "sandboxID"]).and_then(|v| container_id(&v));
    draft.container.sandbox = Some(true);
}

/// Creating container in pod: the name alone, or a dump of the whole container up to 1.34.
pub fn creating(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::CreateStarted, sink, |draft, fields, _| {
        if let Some(container) = fields.any(&["container", "containerName"]) {
            let text = container.text();
            let from_dump =
                scan::after(&text, b"Container{Name:").and_then(|t| scan::until(t, b',')).map(|(n, _)| n);
            draft.container.name = Some(name(from_dump.unwrap_or(&text)));
            draft.container.sandbox = Some(false);
        }
    });
}

/// Got phase for pod.
pub fn phase(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::PhaseComputed, sink, |draft, fields, _| {
        if let (Some(old), Some(new)) = (fields.get("oldPhase"), fields.get("phase")) {
            draft.payload = Payload::Phase { old: name(&old.text()), new: name(&new.text()) };
        }
    });
}

/// Processing pod event.
pub fn processed(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::UpdateProcessed, sink, |draft, fields, _| {
        if let Some(kind) = fields.get("updateType") {
            draft.payload = Payload::Text(name(&kind.text()));
        }
    });
}

/// Why a pod ends.
pub fn termination_began(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::TerminationBegan, sink, |draft, fields, _| {
        draft.payload = Payload::Text(name(fields.message));
    });
}

/// Pod was deleted and then recreated.
pub fn recreated(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::PodRecreated, sink, |draft, fields, _| {
        if let Some(old) = fields.get("oldPodUID").and_then(|v| v.whole()).filter(|u| is_uid(u)) {
            draft.payload = Payload::Other(name(&old));
        }
    });
}

/// Patch status for pod: JSON, or its bytes as numbers in 1.21.
pub fn patch(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::StatusPatched, sink, |draft, fields, sink| {
        let json = match (fields.get("patch"), fields.get("patchBytes")) {
            (Some(patch), _) => patch.text().into_owned(),
            (None, Some(bytes)) => numbers(&bytes.text()),
            (None, None) => return,
        };
        // A patch that the API refused is printed empty.
        if json.is_empty() {
            return;
        }
        match pod_json::status_text(&json, sink) {
            Ok(status) => draft.payload = Payload::Status(Box::new(status)),
            Err(_) => sink.remark("a status patch was cut and could not be read"),
        }
    });
}

/// Status for pod updated successfully: a Go dump in 1.21 to 1.26, JSON from 1.27 on.
pub fn status_updated(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::StatusWritten, sink, |draft, fields, sink| {
        let Some(status) = fields.get("status") else { return };
        let text = status.text();
        let json = pod_json::status_text(&text, sink);
        let seen = json.unwrap_or_else(|_| super::unstructured::dumped_status(&text));
        draft.payload = Payload::Status(Box::new(seen));
    });
}

/// `[123 34 109 …]`.
fn numbers(list: &[u8]) -> Vec<u8> {
    list.split(|b| !b.is_ascii_digit()).filter_map(|n| u8::try_from(scan::number(n)?.0).ok()).collect()
}

/// Post-termination container state.
pub fn post_termination(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::PostTermination, sink, |draft, fields, _| {
        if let Some(list) = fields.get("containers")
            && let Ok(value) = serde_json::from_slice(&list.text())
        {
            draft.payload = Payload::Status(Box::new(pod_json::post_termination(&value)));
        }
    });
}

/// Event occurred.
pub fn event(record: &Record<'_>, sink: &mut Sink) {
    let Some(fields) = record.fields() else { return };
    let text = |key: &str| fields.get(key).map(|v| v.text()).unwrap_or_default();
    if &*text("kind") == b"Node" && &*text("reason") == b"Rebooted" {
        return sink.push(record.draft(Verb::NodeRebooted));
    }
    if !matches!(&*text("kind"), b"Pod" | b"") {
        return;
    }
    sink.verbosity = sink.verbosity.max(3);
    let message = text("message");
    let Some(verb) = kube_event(&text("reason"), &message) else { return };
    let mut draft = record.draft(verb);
    draft.cut = fields.is_cut();
    if let Some(object) = fields.get("object") {
        draft.pod = pod_ref(&object.text(), object.cut);
    }
    draft.container.name = field_path_container(&text("fieldPath")).map(name);
    draft.container.sandbox = draft.container.name.is_some().then_some(false);
    if verb == Verb::MountFailed {
        draft.volume = super::sentence::details(&message).volume;
    }
    draft.payload = Payload::Text(name(shortened(&message)));
    sink.push(draft);
}

/// Error syncing pod, and the errors that say more than that: volumes that timed out, a volume that isn't there.
pub fn sync_failed(record: &Record<'_>, sink: &mut Sink) {
    let Some(fields) = record.fields() else { return };
    let draft = common(record, Verb::SyncFailed, fields);
    let error = fields.any(&["err", "error"]).map(|e| e.text().into_owned()).unwrap_or_default();
    push_sync_failure(draft, &error, sink);
}

/// The shapes inside the error of a failed sync (node-logs §2.2).
pub fn push_sync_failure(mut draft: Draft, error: &[u8], sink: &mut Sink) {
    // Wraps put line ends for blanks, or take them away: only letters are compared.
    let letters: Vec<u8> = error.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
    let timed_out =
        ["timedoutwaitingforthecondition", "timeoutexpiredwaitingforvolumes", "contextdeadlineexceeded"]
            .iter()
            .any(|w| scan::has(&letters, w.as_bytes()));
    let waiting = scan::between(error, b"unmounted volumes=[", b"]");
    if timed_out && let Some(list) = waiting {
        draft.verb = Verb::VolumesTimedOut;
        draft.payload = Payload::Names(
            list.split(|b| matches!(b, b' ' | b',')).filter(|n| !n.is_empty()).map(name).collect(),
        );
        sink.push(draft);
        return;
    }
    draft.payload = Payload::Text(name(shortened(error)));
    let plain = unescape(&unescape(error)).into_owned();
    if timed_out && error.starts_with(b"mounted volumes=[") {
        draft.verb = Verb::UnmountTimedOut;
        sink.push(draft);
        return;
    }
    // The runtime's own limit speaks of a stop, too.
    if (timed_out || scan::has(&plain, b"stop timeout"))
        && let Some(rest) = scan::after(&plain, b"failed to \"KillContainer\" for \"")
    {
        draft.verb = Verb::StopFailed;
        draft.container.name = scan::until(rest, b'"').map(|(c, _)| name(c));
        draft.container.sandbox = Some(false);
        sink.push(draft);
        return;
    }
    if scan::has(&plain, b"cannot find the mounted volumes for pod") {
        draft.verb = Verb::CreateFailed;
        draft.container.name = scan::between(&plain, b"failed to \"StartContainer\" for \"", b"\"").map(name);
        draft.container.sandbox = Some(false);
        sink.push(draft);
        return;
    }
    if let Some(rest) = scan::after(&plain, b"cannot find volume \"") {
        let mut missing = draft.clone();
        missing.verb = Verb::CreateFailed;
        missing.volume = volume(scan::until(rest, b'"').map(|(v, _)| v), None);
        missing.container.name = scan::between(rest, b"into container \"", b"\"").map(name);
        missing.container.sandbox = Some(false);
        sink.push(missing);
        return;
    }
    sink.push(draft);
}

/// Volumes that are wanted, with their names for later joins.
pub fn desired(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::VolumeDesired, sink, volume_fields);
}

/// … and not wanted any more.
pub fn desired_gone(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::VolumeUndesired, sink, volume_fields);
}

/// Found on disk after a restart.
pub fn reconstructed(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::Reconstructed, sink, volume_fields);
}

/// Could not be rebuilt.
pub fn reconstruct_failed(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::ReconstructFailed, sink, volume_fields);
}

/// Its mounts are taken away by force.
pub fn cleanup(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::CleanupStarted, sink, volume_fields);
}

/// Error processing volume.
pub fn unresolved(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::VolumeUnresolved, sink, volume_fields);
}

fn volume_fields(draft: &mut Draft, fields: &Fields<'_>, _: &mut Sink) {
    let spec = fields.any(&["volumeSpecName", "outerVolumeSpecName"]).and_then(|v| v.whole());
    let second = fields.any(&["volumeName"]).and_then(|v| v.whole());
    let unique = second.clone().filter(|n| n.contains(&b'/'));
    let spec = spec.or_else(|| second.filter(|n| !n.contains(&b'/')));
    draft.volume = volume(spec.as_deref(), unique.as_deref());
    if draft.pod.uid.is_none()
        && let Some((uid, _)) = unique.as_deref().and_then(super::unique_parts)
    {
        draft.pod.uid = Some(name(uid));
    }
}

/// The summary of orphans that can't be removed: only the first is named (node-logs §2.7).
pub fn orphan_left(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::OrphanDirLeft, sink, |draft, fields, _| {
        let error = fields.any(&["err", "error"]).map(|e| e.text().into_owned()).unwrap_or_default();
        let hidden = fields.get("numErrs").and_then(|n| scan::integer(&n.text())).unwrap_or(1);
        draft.pod.uid = scan::between(&error, b"pod \"", b"\"").filter(|u| is_uid(u)).map(name);
        draft.volume = super::unstructured::left_volume(&error);
        draft.payload = Payload::Count(hidden, name(shortened(&error)));
    });
}

/// Cleaned up orphaned …
pub fn orphan_cleaned(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::OrphanDirCleaned, sink, |draft, fields, _| {
        draft.payload = fields.get("path").map_or(Payload::Nothing, |p| Payload::Text(name(&p.text())));
    });
}

/// A state file that could not be read. Other failures of the same managers are failures to start.
pub fn checkpoint_unreadable(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::CheckpointUnreadable, sink, |draft, fields, _| {
        let error = fields.any(&["err", "error"]).map(|e| e.text().into_owned()).unwrap_or_default();
        // The error may be cut; then the message says it.
        if !scan::has(&error, b"checkpoint") && !scan::has(fields.message, b"checkpoint") {
            draft.verb = Verb::KubeletFailed;
        }
    });
}

/// Message for Container of pod: why it is to be killed.
pub fn container_message(record: &Record<'_>, sink: &mut Sink) {
    with(record, Verb::KillPlanned, sink, |draft, fields, _| {
        let message =
            fields.any(&["containerMessage", "message"]).map(|m| m.text().into_owned()).unwrap_or_default();
        if scan::has(&message, b"definition changed") {
            draft.verb = Verb::DefinitionChanged;
        }
        draft.container.id = fields.any(&["containerStatusID", "containerID"]).and_then(|v| container_id(&v));
        draft.payload = Payload::Text(name(shortened(&message)));
    });
}

/// computePodActions: a plan, not a deed.
pub fn plan(record: &Record<'_>, sink: &mut Sink) {
    sink.verbosity = sink.verbosity.max(3);
    with(record, Verb::Planned, sink, |draft, fields, _| {
        if let Some(plan) = fields.get("podActions") {
            draft.payload = Payload::Text(name(shortened(&plan.text())));
        }
    });
}
