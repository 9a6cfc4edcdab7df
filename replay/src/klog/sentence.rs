//! The volume manager's sentences: `<op> for volume "<spec>" (UniqueName: "u") pod "p" (UID: "x") <suffix>`, bare, as a
//! structured message, or inside an operation's error (node-logs §2.3).
//!
//! In mount sentences `p` is the pod's name, in unmount sentences its UID; the shape tells them apart.

use super::names::is_redacted;
use super::{Fields, Record, pod_ref, shortened, unique_parts, volume};
use crate::evidence::{Draft, Payload, PodHint, Sink, VolumeHint};
use crate::scan::{self, after, is_uid, name, quoted_len, unescape};
use crate::stamp::Stamp;
use crate::verb::Verb;
use std::borrow::Cow;

/// Operations by the words that a sentence begins with. Older releases put `operation` in the middle.
const OPERATIONS: &[(&str, Verb)] = &[
    ("operationExecutor.VerifyControllerAttachedVolume started", Verb::VerifyStarted),
    ("VerifyControllerAttachedVolume operation started", Verb::VerifyStarted),
    ("Controller attach succeeded", Verb::Attached),
    ("MountVolume.WaitForAttach succeeded", Verb::DeviceWaited),
    ("MountVolume.MountDevice succeeded", Verb::DeviceMounted),
    ("MapVolume.SetUpDevice succeeded", Verb::DeviceMounted),
    ("operationExecutor.MountVolume started", Verb::MountStarted),
    ("MountVolume operation started", Verb::MountStarted),
    ("operationExecutor.MapVolume started", Verb::MountStarted),
    ("MountVolume.SetUp succeeded", Verb::Mounted),
    ("MapVolume.MapPodDevice succeeded", Verb::Mounted),
    ("MapVolume.MapDevice succeeded", Verb::Mounted),
    ("MapVolume.MapBlockVolume succeeded", Verb::Mounted),
    ("operationExecutor.UnmountVolume started", Verb::UnmountStarted),
    ("UnmountVolume operation started", Verb::UnmountStarted),
    ("operationExecutor.UnmapVolume started", Verb::UnmountStarted),
    ("UnmountVolume.TearDown succeeded", Verb::Unmounted),
    ("UnmapVolume succeeded", Verb::Unmounted),
    ("UnmapVolume.UnmapBlockVolume succeeded", Verb::Unmounted),
    ("operationExecutor.UnmountDevice started", Verb::DeviceUnmountStarted),
    ("UnmountDevice operation started", Verb::DeviceUnmountStarted),
    ("operationExecutor.UnmapDevice started", Verb::DeviceUnmountStarted),
    ("UnmountDevice succeeded", Verb::DeviceUnmounted),
    ("UnmapDevice succeeded", Verb::DeviceUnmounted),
    ("Volume detached for volume", Verb::Detached),
    ("MountVolume.NodeExpandVolume succeeded", Verb::Expanded),
    ("MountVolume.resizeFileSystem succeeded", Verb::Expanded),
    ("UnmountVolume.TearDown failed", Verb::UnmountFailed),
    ("UnmountVolume.NewUnmounter failed", Verb::UnmountFailed),
    ("operationExecutor.UnmountVolume failed", Verb::UnmountFailed),
    ("operationExecutor.UnmapVolume failed", Verb::UnmountFailed),
    ("error cleaning subPath mounts for volume", Verb::UnmountFailed),
    ("UnmountDevice failed", Verb::DeviceUnmountFailed),
    ("operationExecutor.UnmountDevice failed", Verb::DeviceUnmountFailed),
    ("GetDeviceMountRefs check failed", Verb::DeviceUnmountFailed),
    ("operationExecutor.MountVolume failed", Verb::MountFailed),
    ("MountVolume.SetUp failed", Verb::MountFailed),
    ("MountVolume.MountDevice failed", Verb::MountFailed),
    ("MountVolume.WaitForAttach failed", Verb::MountFailed),
    ("MountVolume.NewMounter", Verb::MountFailed),
    ("MountVolume.NodeAffinity", Verb::MountFailed),
    ("MapVolume.SetUp failed", Verb::MountFailed),
];

/// The operation that a sentence begins with, if it is one of interest.
pub fn operation(text: &[u8]) -> Option<Verb> {
    let [first, second, ..] = text else { return None };
    // Two bytes rule out nearly all before anything longer is compared.
    let near = |words: &[u8]| words.first() == Some(first) && words.get(1) == Some(second);
    OPERATIONS
        .iter()
        .find(|(words, _)| near(words.as_bytes()) && text.starts_with(words.as_bytes()))
        .map(|(_, verb)| *verb)
}

/// Reads a bare sentence.
pub fn read_bare(record: &Record<'_>, sink: &mut Sink) {
    read(record, record.body, None, sink);
}

/// Reads a sentence that is a structured record's message.
pub fn read_structured(record: &Record<'_>, sink: &mut Sink) {
    if let Some(fields) = record.fields() {
        let message = unescape(fields.message);
        read(record, &message, Some(fields), sink);
    }
}

fn read(record: &Record<'_>, text: &[u8], fields: Option<&Fields<'_>>, sink: &mut Sink) {
    let Some(verb) = operation(text) else { return };
    // A remount refreshes content; nothing new is mounted (node-logs §2.3). Its success is told at V4 in the words of
    // a first mount, which `Mounted` on a mounted volume stands for.
    if verb == Verb::MountStarted && scan::has(text, b"remount was requested") {
        return;
    }
    let mut draft = record.draft(verb);
    let what = details(text);
    draft.pod = what.pod;
    draft.volume = what.volume;
    draft.cut = what.cut || fields.is_some_and(Fields::is_cut);
    if let Some(pod) = fields.and_then(|f| f.get("pod")) {
        let named = pod_ref(&pod.text(), pod.cut);
        draft.pod.namespace = named.namespace;
        draft.pod.name = named.name.or(draft.pod.name);
        draft.pod.cut = named.cut;
    }
    if matches!(verb, Verb::UnmountFailed | Verb::DeviceUnmountFailed | Verb::MountFailed) {
        let error = fields.and_then(|f| f.any(&["err", "error"])).map(|e| e.text());
        draft.payload = Payload::Text(name(shortened(error.as_deref().unwrap_or(text))));
    }
    sink.push(draft);
}

/// What a sentence names.
pub struct Details {
    /// The pod.
    pub pod: PodHint,
    /// The volume.
    pub volume: VolumeHint,
    /// Something that it names is cut.
    pub cut: bool,
}

/// A quoted name, and whether its end is missing.
fn quoted(text: &[u8]) -> (&[u8], bool) {
    match quoted_len(text) {
        Some(len) => (&text[..len], false),
        None => (text, true),
    }
}

/// Reads names wherever the sentence has them. The order of parts changed over the years, the labels did not.
pub fn details(text: &[u8]) -> Details {
    let label = |label: &str| after(text, label.as_bytes()).map(quoted);
    let subject = label("for volume \"").or_else(|| label("volume \""));
    let unique = label("(UniqueName: \"");
    let spec = label("(OuterVolumeSpecName: \"")
        .or_else(|| label("(spec.Name: \""))
        .or_else(|| label("(volume.spec.Name: \""));
    let pod = label("pod \"");
    let uid = label("(UID: \"");
    let inner = label("InnerVolumeSpecName \"");

    let cut = [subject, unique, spec, pod, uid].iter().flatten().any(|(_, cut)| *cut);
    let whole =
        |part: Option<(&[u8], bool)>| part.filter(|(t, cut)| !cut && !t.is_empty()).map(|(t, _)| t.to_vec());

    let subject = whole(subject);
    let looks_unique = |t: &Vec<u8>| t.contains(&b'/');
    let unique = whole(unique).or_else(|| subject.clone().filter(looks_unique));
    // A claim's inner name is the PV's: only kinds of one pod have their own name there.
    let per_pod = unique.as_deref().is_some_and(|u| unique_parts(u).is_some());
    let spec = whole(spec)
        .filter(|s| !looks_unique(s))
        .or_else(|| subject.filter(|s| !looks_unique(s)))
        .or_else(|| whole(inner).filter(|_| per_pod || unique.is_none()));

    let mut hint = PodHint::default();
    let uid = whole(uid).filter(|u| is_uid(u));
    let pod = whole(pod);
    match (&uid, &pod) {
        (_, Some(p)) if is_uid(p) => hint.uid = Some(name(p)),
        // Who is blotted out is nobody: two of them are not one (node-logs §1.7).
        (_, Some(p)) if is_redacted(p) => hint.uid = Some(name(p)),
        (_, Some(p)) => hint.name = Some(name(p)),
        (_, None) => {}
    }
    if let Some(uid) = &uid {
        hint.uid = Some(name(uid));
    } else if hint.uid.is_none()
        && let Some((uid, _)) = unique.as_deref().and_then(unique_parts)
    {
        hint.uid = Some(name(uid));
    }
    // CSI's inline volumes that could not be rebuilt have their name where the unique name belongs.
    let (unique, spec) = match (unique, spec) {
        (Some(u), None) if !u.contains(&b'/') => (None, Some(u)),
        other => other,
    };
    Details { pod: hint, volume: volume(spec.as_deref(), unique.as_deref()), cut }
}

/// `Operation for "<key>" failed. No retries permitted until <time> (durationBeforeRetry <d>). Error: <err>`.
pub fn read_operation_failed(record: &Record<'_>, sink: &mut Sink) {
    let text = record.body;
    let Some(key) = after(text, b"Operation for \"") else { return };
    let (raw_key, key_cut) = quoted(key);
    let key = unescape(raw_key);
    deadline(text, sink);
    // Up to 1.3 it was a small letter.
    let error = after(text, b"Error: ").or_else(|| after(text, b"error: "));
    let error = error.map(|e| match e.strip_prefix(b"\"") {
        Some(quoted_error) => unescape(quoted(quoted_error).0),
        None => Cow::Borrowed(e),
    });
    let error = error.unwrap_or(Cow::Borrowed(b""));
    // Which operation it was, only its error tells: a device is mounted under the same key as it is unmounted.
    if error.is_empty() {
        return sink.remark("a failed operation's error was cut: which one it was is not known");
    }
    let verb = failed_operation(&error);
    let pause =
        after(text, b"durationBeforeRetry ").and_then(|d| scan::before(d, b")")).and_then(go_duration_ms);

    let what = details(&error);
    let (key_volume, key_pod) = key_parts(&key);
    let mut draft: Draft = record.draft(verb);
    draft.cut = key_cut || what.cut;
    draft.volume = what.volume;
    if draft.volume.unique.is_none() && key_volume.contains(&b'/') {
        let spec = draft.volume.name.clone();
        draft.volume = volume(spec.as_deref().map(str::as_bytes), Some(key_volume));
    } else if draft.volume.name.is_none() && draft.volume.unique.is_none() {
        draft.volume = volume(Some(key_volume), None);
    }
    draft.pod = what.pod;
    if draft.pod.uid.is_none() && is_uid(key_pod) {
        draft.pod.uid = Some(name(key_pod));
    }
    draft.payload = Payload::Retry { error: name(shortened(&error)), pause_ms: pause.unwrap_or(0) };
    sink.push(draft);
}

/// Which operation failed, by the error's words.
fn failed_operation(error: &[u8]) -> Verb {
    let says = |words: &[&str]| words.iter().any(|w| scan::has(error, w.as_bytes()));
    if says(&["UnmountDevice", "UnmapDevice", "GetDeviceMountRefs", "UnstageVolume", "NodeUnstage"]) {
        Verb::DeviceUnmountFailed
    } else if says(&["UnmountVolume", "UnmapVolume", "TearDown", "NewUnmounter", "cleaning subPath"]) {
        Verb::UnmountFailed
    } else {
        Verb::MountFailed
    }
}

/// The volume and the pod in an operation's key: `{volumeName:u podName:uid nodeName:n}` or `"u" ("uid")`.
fn key_parts(key: &[u8]) -> (&[u8], &[u8]) {
    if let Some(rest) = key.strip_prefix(b"{volumeName:") {
        let volume = scan::before(rest, b" podName:").unwrap_or(rest);
        let pod = scan::between(rest, b" podName:", b" ").unwrap_or_default();
        return (volume, pod);
    }
    let volume = key.strip_prefix(b"\"").map_or(key, |inner| quoted(inner).0);
    (volume, scan::between(key, b"(\"", b"\")").unwrap_or_default())
}

/// When an operation failed, by its own words: the pause before the next attempt counts from then.
pub fn failed_at(text: &[u8]) -> Option<Stamp> {
    let (until, _) = Stamp::rfc3339(after(text, b"No retries permitted until ")?)?;
    let pause =
        after(text, b"durationBeforeRetry ").and_then(|d| scan::before(d, b")")).and_then(go_duration_ms)?;
    let at = until.moment(until.year?, 0).plus(-pause.saturating_mul(1_000_000));
    Some(Stamp::at(at, until.offset.unwrap_or(0)))
}

/// What a retry deadline tells beside the wait: the year and the kubelet's zone (node-logs §1.8).
fn deadline(text: &[u8], sink: &mut Sink) {
    if let Some(at) = after(text, b"No retries permitted until ")
        && let Some((stamp, _)) = Stamp::rfc3339(at)
    {
        if let Some(year) = stamp.year {
            sink.years.push((year, stamp.month));
        }
        if let Some(offset) = stamp.offset {
            *sink.zones.entry(offset).or_default() += 1;
        }
    }
}

/// Go's durations: `500ms`, `2m2s`, `1.5s`.
pub fn go_duration_ms(text: &[u8]) -> Option<i64> {
    let mut total = 0f64;
    let mut rest = text;
    while !rest.is_empty() {
        let len = rest.iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
        let value: f64 = std::str::from_utf8(&rest[..len]).ok()?.parse().ok()?;
        let unit_len = rest[len..].iter().take_while(|b| !b.is_ascii_digit()).count();
        let factor = match &rest[len..len + unit_len] {
            b"h" => 3_600_000.0,
            b"m" => 60_000.0,
            b"s" => 1000.0,
            b"ms" => 1.0,
            _ => 0.0,
        };
        total += value * factor;
        rest = &rest[len + unit_len..];
    }
    (!text.is_empty()).then_some(total as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_of_three_eras_name_the_same_things() {
        let uid = "a5f5f6fa-b968-4d32-395c-641f95a3f7a8";
        for text in [
            format!(
                "MountVolume.SetUp succeeded for volume \"tok\" (UniqueName: \"kubernetes.io/secret/{uid}-tok\") pod \"web\" (UID: \"{uid}\") "
            ),
            format!(
                "UnmountVolume.TearDown succeeded for volume \"kubernetes.io/secret/{uid}-tok\" (OuterVolumeSpecName: \"tok\") pod \"{uid}\" (UID: \"{uid}\"). InnerVolumeSpecName \"tok\". PluginName \"kubernetes.io/secret\", VolumeGidValue \"\""
            ),
            format!(
                "UnmountVolume.TearDown succeeded for volume \"kubernetes.io/secret/{uid}-tok\" pod \"{uid}\" (UID: \"{uid}\"). InnerVolumeSpecName \"tok\". PluginName \"kubernetes.io/secret\", VolumeGIDValue \"\""
            ),
            format!(
                "UnmountVolume operation started for volume \"kubernetes.io/secret/{uid}-tok\" (spec.Name: \"tok\") from pod \"{uid}\" (UID: \"{uid}\")."
            ),
        ] {
            let d = details(text.as_bytes());
            assert_eq!(d.volume.name.as_deref(), Some("tok"), "{text}");
            assert_eq!(d.pod.uid.as_deref(), Some(uid), "{text}");
            assert!(!d.cut && operation(text.as_bytes()).is_some());
        }
    }

    #[test]
    fn a_cut_name_stays_unknown() {
        let d = details(b"UnmountVolume.TearDown succeeded for volume \"kubernetes.io/projected/ab21>");
        assert!(d.cut && d.volume.is_empty() && d.pod.uid.is_none());
    }

    #[test]
    fn a_deadline_tells_when_it_was_set() {
        let text = b"Operation for \"x\" failed. No retries permitted until 2017-07-19 08:22:18.5 +0000 UTC (durationBeforeRetry 2m0s). Error: y";
        let at = failed_at(text).expect("a time");
        assert_eq!((at.day, at.of_day / 1_000_000_000), (19, 8 * 3600 + 20 * 60 + 18));
        assert!(failed_at(b"No retries permitted until later").is_none());
    }

    #[test]
    fn durations_are_gos() {
        assert_eq!(go_duration_ms(b"2m2s"), Some(122_000));
        assert_eq!(go_duration_ms(b"500ms"), Some(500));
        assert_eq!(go_duration_ms(b""), None);
    }
}
