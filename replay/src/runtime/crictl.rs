//! `crictl ps`, `crictl pods` and `crictl inspect`, as JSON and as the tables that people paste (node-logs §4).

use crate::evidence::{Draft, Payload, Sink, Witness};
use crate::scan::{self, name};
use crate::stamp::{Moment, Stamp};
use crate::verb::Verb;
use serde_json::{Map, Value};

/// Reads a listing or an inspection. False: it is none.
pub fn from_json(object: &Map<String, Value>, line: u64, sink: &mut Sink) -> bool {
    let mut any = false;
    for (key, sandbox) in [("containers", false), ("items", true)] {
        for one in object.get(key).and_then(Value::as_array).into_iter().flatten() {
            if one.get("state").and_then(Value::as_str).is_some() && one.get("id").is_some() {
                any = true;
                listed(one, sandbox, line, sink);
            }
        }
    }
    if let Some(status) = object.get("status").filter(|s| s.get("state").is_some() && s.get("id").is_some()) {
        any = true;
        inspected(status, line, sink);
    }
    if any {
        sink.recognised += 1;
    }
    any
}

fn labelled(one: &Value, draft: &mut Draft) {
    let label = |key: &str| {
        let of = one.get("labels").and_then(|l| l.get(key)).and_then(Value::as_str);
        of.map(|t| name(t.as_bytes()))
    };
    draft.pod.uid = label("io.kubernetes.pod.uid");
    draft.pod.namespace = label("io.kubernetes.pod.namespace");
    draft.pod.name = label("io.kubernetes.pod.name");
    draft.container.name = label("io.kubernetes.container.name");
    let attempt = one.get("metadata").and_then(|m| m.get("attempt")).and_then(Value::as_u64);
    draft.container.attempt = attempt.and_then(|a| u32::try_from(a).ok());
}

fn state_verb(state: &str, sandbox: bool) -> Verb {
    let runs = matches!(state, "CONTAINER_RUNNING" | "SANDBOX_READY" | "Running" | "Ready");
    match (runs, sandbox) {
        (true, true) => Verb::SandboxRunning,
        (true, false) => Verb::ContainerRunning,
        (false, true) => Verb::SandboxDead,
        (false, false) => Verb::ContainerDead,
    }
}

fn base(one: &Value, sandbox: bool, line: u64) -> Draft {
    let state = one.get("state").and_then(Value::as_str).unwrap_or_default();
    let mut draft = Draft::new(state_verb(state, sandbox), Witness::RuntimeList, line);
    let id = one.get("id").and_then(Value::as_str).filter(|i| scan::is_runtime_id(i.as_bytes()));
    draft.container.id = id.map(|i| name(i.as_bytes()));
    draft.container.sandbox = Some(sandbox);
    // Each listing is one process' of its own, whose number nobody writes down: the line serves.
    draft.pid = line;
    labelled(one, &mut draft);
    draft
}

fn listed(one: &Value, sandbox: bool, line: u64, sink: &mut Sink) {
    let mut draft = base(one, sandbox, line);
    let created = one.get("createdAt").and_then(time);
    if let Some(at) = created.filter(|_| !sandbox) {
        let mut made = draft.clone();
        made.verb = Verb::ContainerCreated;
        made.when = Some(at);
        sink.push(made);
    }
    // A listing holds when it was taken, which it doesn't say: after everything that it shows.
    draft.when = None;
    sink.push(draft);
}

fn inspected(status: &Value, line: u64, sink: &mut Sink) {
    let sandbox = status.get("network").is_some() || status.get("linux").is_some();
    let draft = base(status, sandbox, line);
    let steps = [
        ("createdAt", if sandbox { Verb::SandboxCreated } else { Verb::ContainerCreated }),
        ("startedAt", Verb::ContainerStarted),
        ("finishedAt", Verb::ContainerExited),
    ];
    for (key, verb) in steps {
        let Some(at) = status.get(key).and_then(time) else { continue };
        let mut one = draft.clone();
        one.verb = verb;
        one.when = Some(at);
        if verb == Verb::ContainerExited {
            one.payload = Payload::Exit(status.get("exitCode").and_then(Value::as_i64), Some(at));
        }
        sink.push(one);
    }
    // The mounts of a container: the join of container and volume.
    for mount in status.get("mounts").and_then(Value::as_array).into_iter().flatten() {
        let path = mount.get("hostPath").and_then(Value::as_str).unwrap_or_default();
        if let Some((uid, _, spec)) = crate::klog::volume_path(path.as_bytes()) {
            let mut one = draft.clone();
            one.verb = Verb::RuntimeRequest;
            one.pod.uid = Some(name(uid));
            one.volume = crate::klog::volume(Some(spec), None);
            sink.push(one);
        }
    }
    sink.push(draft);
}

/// Nanoseconds as text or number, or RFC 3339. Zero is never.
fn time(value: &Value) -> Option<Stamp> {
    let nanos = match value {
        Value::String(text) => match text.parse::<i64>() {
            Ok(n) => n,
            Err(_) => return Stamp::rfc3339(text.as_bytes()).map(|(s, _)| s).filter(|s| s.year > Some(1970)),
        },
        Value::Number(n) => n.as_i64()?,
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    (nanos > 0).then(|| Stamp::at(Moment(nanos), 0))
}

/// A row whose head was not pasted: of `crictl pods`, or of `docker ps`, whose names say all. False: it is none.
pub fn headless_row(line: &[u8], number: u64, sink: &mut Sink) -> bool {
    let id = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    if !matches!(id, 12 | 13) || line.get(id) != Some(&b' ') {
        return false;
    }
    let Some(draft) = pods_row(line, id, number).or_else(|| docker_row(line, id, number)) else {
        return false;
    };
    sink.recognised += 1;
    sink.push(draft);
    true
}

fn listing(id: &[u8], runs: bool, sandbox: bool, number: u64) -> Draft {
    let state = if runs { "Ready" } else { "NotReady" };
    let mut draft = Draft::new(state_verb(state, sandbox), Witness::RuntimeList, number);
    draft.container.id = Some(name(id));
    draft.container.sandbox = Some(sandbox);
    draft
}

/// `9ae3dcda0548f  11 minutes ago  NotReady  web-1  default  0  (default)`.
fn pods_row(line: &[u8], id: usize, number: u64) -> Option<Draft> {
    let rest = scan::after(&line[id..], b" ago ")?;
    let mut cells = rest.split(|b| *b == b' ').filter(|c| !c.is_empty());
    let (state, pod, namespace) = (cells.next()?, cells.next()?, cells.next()?);
    let runs = match state {
        b"Ready" => true,
        b"NotReady" => false,
        _ => return None,
    };
    let attempt = cells.next().and_then(scan::number).and_then(|(n, _)| u32::try_from(n).ok())?;
    let mut draft = listing(&line[..id], runs, true, number);
    draft.pod.name = Some(name(pod));
    draft.pod.namespace = Some(name(namespace));
    draft.container.attempt = Some(attempt);
    Some(draft)
}

/// `2f6e…  pause  "/pause"  3 hours ago  Up 3 hours  k8s_POD_web-1_default_<uid>_0`.
fn docker_row(line: &[u8], id: usize, number: u64) -> Option<Draft> {
    let named = scan::trim(line).rsplit(|b| *b == b' ').next()?.strip_prefix(b"k8s_")?;
    let mut parts = named.split(|b| *b == b'_');
    let (of, pod, namespace, uid) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let runs = scan::has(line, b" Up ");
    if !scan::is_uid(uid) || !(runs || scan::has(line, b" Exited (") || scan::has(line, b" Created ")) {
        return None;
    }
    let sandbox = of == b"POD";
    let mut draft = listing(&line[..id], runs, sandbox, number);
    draft.pod.uid = Some(name(uid));
    draft.pod.name = Some(name(pod));
    draft.pod.namespace = Some(name(namespace));
    draft.container.name = (!sandbox).then(|| name(of));
    draft.container.attempt = parts.next().and_then(scan::number).and_then(|(n, _)| u32::try_from(n).ok());
    Some(draft)
}

/// A table being read: where its columns begin.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<(usize, String)>,
    /// The line of its head, from 1.
    line: u64,
}

const HEADERS: [&str; 11] = [
    "CONTAINER ID",
    "POD ID",
    "IMAGE",
    "CREATED",
    "STATE",
    "NAME",
    "NAMESPACE",
    "ATTEMPT",
    "POD",
    "RUNTIME",
    "CONTAINER",
];

impl Table {
    /// The head of a table of `crictl ps` or `crictl pods`.
    pub fn head(line: &[u8], number: u64) -> Option<Table> {
        if !line.starts_with(b"CONTAINER") && !line.starts_with(b"POD ID") {
            return None;
        }
        let mut columns: Vec<(usize, String)> = Vec::new();
        let mut at = 0;
        while at < line.len() {
            let rest = &line[at..];
            match HEADERS.iter().find(|h| rest.starts_with(h.as_bytes())) {
                Some(header) => {
                    columns.push((at, (*header).to_owned()));
                    at += header.len();
                }
                None if rest[0] == b' ' || rest[0] == b'\t' => at += 1,
                None => at += rest.iter().take_while(|b| !matches!(b, b' ' | b'\t')).count(),
            }
        }
        let has = |h: &str| columns.iter().any(|(_, c)| c == h);
        (has("STATE") && has("ATTEMPT")).then_some(Table { columns, line: number })
    }

    /// A row. Ids are cut to 13 digits and ages are relative, so it has no time of its own. False: no row.
    pub fn row(&self, line: &[u8], number: u64, sink: &mut Sink) -> bool {
        let cells: Vec<(&str, &[u8])> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, (from, header))| {
                let to = self.columns.get(i + 1).map_or(line.len(), |(to, _)| *to);
                let cell = line.get((*from).min(line.len())..to.min(line.len())).unwrap_or_default();
                (header.as_str(), scan::trim(cell))
            })
            .collect();
        let cell = |header: &str| {
            cells.iter().find(|(h, _)| *h == header).map(|(_, c)| *c).filter(|c| !c.is_empty())
        };
        let sandboxes = self.columns.first().is_some_and(|(_, h)| h == "POD ID");
        let id = if sandboxes { cell("POD ID") } else { cell("CONTAINER ID").or_else(|| cell("CONTAINER")) };
        let (Some(id), Some(state)) = (id.filter(|i| scan::is_runtime_id(i)), cell("STATE")) else {
            return false;
        };
        sink.recognised += 1;
        let state = String::from_utf8_lossy(state);
        let mut draft = Draft::new(state_verb(&state, sandboxes), Witness::RuntimeList, number);
        draft.container.id = Some(name(id));
        draft.container.sandbox = Some(sandboxes);
        draft.pid = self.line;
        draft.container.attempt =
            cell("ATTEMPT").and_then(scan::number).and_then(|(n, _)| u32::try_from(n).ok());
        if sandboxes {
            draft.pod.name = cell("NAME").map(name);
        } else {
            draft.container.name = cell("NAME").map(name);
            draft.pod.name = cell("POD").map(name);
        }
        draft.pod.namespace = cell("NAMESPACE").map(name);
        sink.push(draft);
        true
    }
}
