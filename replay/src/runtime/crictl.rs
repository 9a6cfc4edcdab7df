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

/// A table being read: where its columns begin.
#[derive(Clone, Debug, Default)]
pub struct Table {
    columns: Vec<(usize, String)>,
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
    pub fn head(line: &[u8]) -> Option<Table> {
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
        (has("STATE") && has("ATTEMPT")).then_some(Table { columns })
    }

    /// A row of `crictl pods` whose head was not pasted: an id of 13 digits, an age, a state of sandboxes. Gives what its head was.
    pub fn headless(line: &[u8]) -> Option<Table> {
        let id = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let age = scan::trim_start(line.get(id..)?);
        let state = scan::after(age, b" ago ").map(scan::trim_start)?;
        let fits = id == 13
            && age.first().is_some_and(|b| b.is_ascii_digit() || *b == b'A')
            && (state.starts_with(b"NotReady ") || state.starts_with(b"Ready "));
        if !fits {
            return None;
        }
        let headers = ["POD ID", "CREATED", "STATE", "NAME", "NAMESPACE", "ATTEMPT", "RUNTIME"];
        // Cells are apart by more than one blank; an age has single ones.
        let mut at = 0;
        let mut columns = Vec::new();
        for header in headers {
            columns.push((at, header.to_owned()));
            let Some(gap) = line.get(at..).and_then(|rest| memchr::memmem::find(rest, b"  ")) else { break };
            at += gap + line[at + gap..].iter().take_while(|b| **b == b' ').count();
        }
        (columns.len() >= 5).then_some(Table { columns })
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
