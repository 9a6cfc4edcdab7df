//! Kubernetes Events as people see them: rows of `kubectl describe pod` and `kubectl get events` of every release, and what an e2e
//! run prints of them. Rows say how long ago, not when: they have no time of their own.

use crate::evidence::{Draft, Payload, PodHint, Sink, Skipped, Witness};
use crate::klog::{self, event as kube_event, field_path_container};
use crate::scan::{self, name};
use crate::stamp::Stamp;
use crate::verb::Verb;

/// Which pod a description is of: its first lines say so, long before its Events.
#[derive(Clone, Debug, Default)]
pub struct Described {
    pod: PodHint,
}

impl Described {
    /// Whether no pod was named.
    pub fn is_empty(&self) -> bool {
        self.pod.name.is_none() && self.pod.namespace.is_none()
    }

    /// Reads `Name:` and `Namespace:`, with which a description begins. False: the line is neither.
    pub fn begins(&mut self, line: &[u8]) -> bool {
        let value = |key: &[u8]| {
            line.strip_prefix(key).map(scan::trim).filter(|v| !v.is_empty() && !v.contains(&b' ')).map(name)
        };
        if let Some(pod) = value(b"Name:") {
            self.pod = PodHint { name: Some(pod), ..PodHint::default() };
            return true;
        }
        let Some(namespace) = value(b"Namespace:") else { return false };
        self.pod.namespace = Some(namespace);
        true
    }

    /// Reads a row, or a head, which only says that rows follow. False: it is neither.
    pub fn row(&self, line: &[u8], number: u64, sink: &mut Sink) -> bool {
        let cells = collapsed(line).unwrap_or_else(|| cells(line));
        if is_head(&cells) {
            sink.recognised += 1;
            return true;
        }
        let Some((reason, message, pod, field)) = self.told(&cells) else { return false };
        sink.recognised += 1;
        match pod {
            Some(pod) => push(reason, &message, pod, field, None, number, sink),
            None => sink.skip(Skipped::NothingSaid),
        }
        true
    }

    /// The reason, the message, the pod unless it is of another object, and the container's field.
    fn told<'a>(&self, cells: &[&'a [u8]]) -> Option<Told<'a>> {
        let kind = cells.iter().position(|cell| matches!(*cell, b"Normal" | b"Warning"))?;
        let reason = *cells.get(kind + 1)?;
        let (before, after) = (&cells[..kind], cells.get(kind + 2..)?);
        let word = reason.first().is_some_and(u8::is_ascii_uppercase)
            && reason.iter().all(u8::is_ascii_alphanumeric);
        let first = *after.first()?;
        if !word || !(is_age(first) || before.iter().any(|cell| is_age(cell))) {
            return None;
        }
        let field = before.iter().chain(after).copied().find(|cell| cell.starts_with(b"spec."));
        let joined = |from: usize| after.get(from..).unwrap_or_default().join(&b' ');
        // `kubectl get events`: the object stands behind the reason, up to 1.13 before the type.
        if let Some((of, object)) = scan::until(first, b'/').filter(|(of, _)| is_kind(of)) {
            let namespace = before.first().filter(|cell| !is_age(cell)).copied().map(name);
            let pod = PodHint { namespace, name: Some(name(object)), ..PodHint::default() };
            let message = joined(1);
            return Some((reason, message, (of == b"pod").then_some(pod), field));
        }
        if let Some(at) = before.iter().position(|cell| *cell == b"Pod") {
            // The name is the Event's own: the pod's, a dot, and a number.
            let event = *before.get(at.checked_sub(1)?)?;
            let object = event.iter().rposition(|b| *b == b'.').map_or(event, |dot| &event[..dot]);
            let pod = PodHint { name: Some(name(object)), ..PodHint::default() };
            return Some((reason, joined(1), Some(pod), field));
        }
        // `kubectl describe`: age and source stand behind the reason, up to 1.6 before the type.
        let message = joined(if is_age(first) { 2 } else { 0 });
        Some((reason, message, Some(self.pod.clone()), field))
    }
}

type Told<'a> = (&'a [u8], Vec<u8>, Option<PodHint>, Option<&'a [u8]>);

/// Cells stand two blanks apart, or a tab.
fn cells(line: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut rest = scan::trim(line);
    while !rest.is_empty() {
        let gap = |at: &usize| rest[*at] == b'\t' || rest[*at..].starts_with(b"  ");
        let end = (0..rest.len()).find(gap).unwrap_or(rest.len());
        found.push(&rest[..end]);
        rest = scan::trim_start(&rest[end..]);
    }
    found
}

/// The cells of a row whose columns somebody collapsed to single blanks: of `kubectl get events`, or of a description. Each cell but the
/// message has a shape of its own, so that no sentence is one.
fn collapsed(line: &[u8]) -> Option<Vec<&[u8]>> {
    let line = scan::trim(line);
    if scan::has(line, b"  ") || line.contains(&b'\t') {
        return None;
    }
    let mut rest = line;
    let mut next = |is: &dyn Fn(&[u8]) -> bool| {
        let cell = scan::word(rest).0;
        is(cell).then(|| {
            rest = scan::trim_start(&rest[cell.len()..]);
            cell
        })
    };
    let kind = |cell: &[u8]| matches!(cell, b"Normal" | b"Warning");
    let word = |cell: &[u8]| !cell.is_empty() && cell.iter().all(u8::is_ascii_alphanumeric);
    let mut cells = Vec::new();
    if let Some(kind) = next(&kind) {
        cells.extend([kind, next(&word)?, next(&is_age)?]);
    } else {
        let namespace =
            |cell: &[u8]| !is_age(cell) && cell.iter().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        cells.extend(next(&namespace));
        cells.push(next(&is_age)?);
    }
    // `(x5 over 41m)` belongs to the age.
    if next(&|cell| cell.starts_with(b"(x")).is_some() {
        next(&|cell| cell == b"over")?;
        next(&|cell| cell.ends_with(b")"))?;
    }
    if cells.first().is_some_and(|cell| kind(cell)) {
        let source = next(&|cell| matches!(cell, b"kubelet" | b"kubelet,"))?;
        if source.ends_with(b",") {
            next(&|_| true)?;
        }
        cells.push(source);
    } else {
        cells.extend([next(&kind)?, next(&word)?]);
        cells.push(next(&|cell| scan::until(cell, b'/').is_some_and(|(of, _)| is_kind(of)))?);
    }
    cells.push(rest);
    Some(cells)
}

fn is_head(cells: &[&[u8]]) -> bool {
    let has = |word: &[u8]| cells.iter().any(|cell| cell.eq_ignore_ascii_case(word));
    has(b"type") && has(b"reason") && has(b"message")
}

/// `16m`, `7m32s (x5 over 41m)`, `4d15h`, `<unknown>`.
fn is_age(cell: &[u8]) -> bool {
    let first = scan::word(cell).0;
    let unit = |b: &u8| b.is_ascii_digit() || matches!(b, b's' | b'm' | b'h' | b'd' | b'y');
    let span = first.first().is_some_and(u8::is_ascii_digit)
        && first.last().is_some_and(|b| !b.is_ascii_digit())
        && first.iter().all(unit);
    span || matches!(first, b"<unknown>" | b"<invalid>")
}

fn is_kind(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(|b| b.is_ascii_lowercase() || *b == b'.')
}

/// What an e2e run prints of a namespace's Events: `At 2018-11-19 21:45:30 +0000 UTC - event for web-1: {kubelet n1} Started: …`.
pub fn e2e_line(line: &[u8], number: u64, sink: &mut Sink) -> bool {
    let Some((at, told)) = memchr::memmem::find(line, b" - event for ").map(|at| line.split_at(at)) else {
        return false;
    };
    let Some(begin) = memchr::memmem::rfind(at, b"At ") else { return false };
    let Some((stamp, _)) = Stamp::rfc3339(&at[begin + 3..]) else { return false };
    let Some((object, rest)) = scan::until(&told[b" - event for ".len()..], b':') else { return false };
    let Some((source, rest)) = scan::trim(rest).strip_prefix(b"{").and_then(|r| scan::until(r, b'}')) else {
        return false;
    };
    let Some((reason, message)) = scan::until(scan::trim(rest), b':') else { return false };
    sink.recognised += 1;
    // Only a kubelet's Events are surely of a pod; of which namespace the console says elsewhere.
    if source.starts_with(b"kubelet") {
        let pod = PodHint { name: Some(name(object)), ..PodHint::default() };
        push(reason, scan::trim(message), pod, None, Some(stamp), number, sink);
    } else {
        sink.skip(Skipped::NothingSaid);
    }
    true
}

/// What klog prints of an Event that the API refused (its namespace is gone, most often): a dump, of any spelling of `%v`.
pub fn refused(record: &klog::Record<'_>, sink: &mut Sink) {
    let text = scan::unescape(record.body);
    let text: &[u8] = &text;
    let Some(object) = scan::after(text, b"InvolvedObject:") else { return };
    let field = |from: &'_ [u8], label: &str| {
        let rest = scan::after(from, label.as_bytes())?;
        let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
        let end = rest.iter().position(|b| matches!(b, b'"' | b',' | b'}')).unwrap_or(rest.len());
        (end > 0).then(|| name(&rest[..end]))
    };
    let reference = scan::until(object, b'}').map_or(object, |(reference, _)| reference);
    if field(reference, "Kind:").as_deref() != Some("Pod") {
        return;
    }
    let Some(reason) = field(object, "Reason:") else { return };
    let message = scan::after(object, b"Message:").unwrap_or_default();
    let message = scan::before(message, b"Source:").unwrap_or(message);
    let container = scan::after(object, b"FieldPath:").and_then(field_path_container);
    let pod = PodHint {
        uid: field(reference, "UID:"),
        namespace: field(reference, "Namespace:"),
        name: field(reference, " Name:").or_else(|| field(reference, ",Name:")),
        cut: false,
    };
    let Some(verb) = kube_event(reason.as_bytes(), message) else { return };
    let mut draft = record.draft(verb);
    draft.pod = pod;
    draft.container.name = container.map(name);
    draft.container.sandbox = container.map(|_| false);
    detail(&mut draft, message);
    sink.push(draft);
}

fn push(
    reason: &[u8],
    message: &[u8],
    pod: PodHint,
    field: Option<&[u8]>,
    when: Option<Stamp>,
    line: u64,
    sink: &mut Sink,
) {
    let message = message.strip_prefix(b"(combined from similar events): ").unwrap_or(message);
    let Some(verb) = kube_event(reason, message) else { return sink.skip(Skipped::NothingSaid) };
    let mut draft = Draft::new(verb, Witness::Events, line);
    draft.when = when;
    draft.pod = pod;
    draft.container.name = field.and_then(field_path_container).map(name);
    draft.container.sandbox = draft.container.name.is_some().then_some(false);
    detail(&mut draft, message);
    sink.push(draft);
}

/// What the message adds: the volumes that are waited for, or the one that is not there.
pub fn detail(draft: &mut Draft, message: &[u8]) {
    draft.payload = Payload::Text(name(klog::shortened(message)));
    if draft.verb == Verb::VolumesTimedOut
        && let Some(list) = scan::between(message, b"unmounted volumes=[", b"]")
    {
        let names = list.split(|b| matches!(b, b' ' | b',')).filter(|n| !n.is_empty());
        draft.payload = Payload::Names(names.map(name).collect());
    }
    let named = scan::after(message, b"cannot find volume ").map(|rest| {
        let rest = rest.strip_prefix(b"\\").unwrap_or(rest);
        rest.strip_prefix(b"\"").unwrap_or(rest)
    });
    if let Some(rest) = named.filter(|_| draft.verb == Verb::CreateFailed) {
        let end = rest.iter().position(|b| matches!(b, b'"' | b'\\' | b' ')).unwrap_or(rest.len());
        draft.volume = klog::volume(Some(&rest[..end]), None);
    }
    if draft.verb == Verb::MountFailed {
        draft.volume = klog::volume(scan::between(message, b"volume \"", b"\""), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_every_release_say_the_same() {
        let message = "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[data]: timed out waiting for the condition";
        for row in [
            format!("  Warning  FailedMount  7m32s (x5 over 41m)  kubelet, n1  {message}"),
            format!("  1h\t\t2m\t\t18\tkubelet, n1\t\t\tWarning\t\tFailedMount\t{message}"),
            format!("7m18s       Warning   FailedMount   pod/web-0   {message}"),
            format!(
                "default   7m18s   Warning   FailedMount   pod/web-0      kubelet, n1   {message}   41m   5   web-0.17a"
            ),
            format!("7m18s Warning FailedMount pod/web-0 {message}"),
            format!("default 7m18s (x5 over 41m) Warning FailedMount pod/web-0 {message}"),
            format!("Warning FailedMount 7m32s (x5 over 41m) kubelet, n1 {message}"),
            format!("  Warning FailedMount 7m32s kubelet {message}"),
            format!(
                "2m   41m   5   web-0.15af2b9c   Pod      Warning   FailedMount   kubelet, n1   {message}"
            ),
        ] {
            let mut described = Described::default();
            assert!(described.begins(b"Name:         web-0") && described.begins(b"Namespace:    default"));
            let mut sink = Sink::default();
            assert!(described.row(row.as_bytes(), 1, &mut sink), "{row}");
            let [draft] = &sink.drafts[..] else { panic!("one entry of {row}") };
            assert_eq!(draft.verb, Verb::VolumesTimedOut, "{row}");
            assert_eq!(draft.about.pod.map(|name| &**sink.names.get(name)), Some("web-0"), "{row}");
        }
        let mut sink = Sink::default();
        for other in [
            "Warning  lights are on  here",
            "7m   Normal   Pulled   node/n1   x",
            "a  b",
            "Warning lights are on",
            "5m is no row",
        ] {
            Described::default().row(other.as_bytes(), 1, &mut sink);
        }
        assert!(sink.drafts.is_empty());
    }

    #[test]
    fn a_test_console_tells_of_events() {
        let mut sink = Sink::default();
        let line = b"I1119 21:50:46.467] Nov 19 21:45:44.316: INFO: At 2018-11-19 21:45:30 +0000 UTC - event for web-1: {kubelet n1} Started: Started container";
        assert!(e2e_line(line, 1, &mut sink));
        assert_eq!(sink.drafts[0].verb, Verb::ContainerStarted);
        assert!(sink.drafts[0].when().is_some());
    }
}
