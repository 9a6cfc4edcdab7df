//! What the judge found, and its JSON.
//!
//! ```json
//! {"findings": [{"kind", "invariant", "pod", "uid", "instance", "at", "confidence", "resolved", "count",
//!                "explanation", "meaning", "race", "evidence": [{"file", "line", "at", "text"}]}],
//!  "notes": [{"kind", "text", "evidence": [{"file", "line", "at", "text"}]}],
//!  "coverage": {"from", "to", "pods", "volumes", "containers", "entries", "verbosity", "runs": [{"host", "pid", "from",
//!               "to", "started"}], "gaps", "files": [{"name", "lines", "bytes", "recognised", "offset_seconds",
//!               "witnesses", "skipped": {"reason": count}}]}}
//! ```
//!
//! Keys are only ever added. `invariant`, `pod`, `uid` and `instance` are null where there is none.

use super::kind::Kind;
use crate::stamp::Moment;
use crate::trace::{Confidence, Entry, PodIx, Trace, written};
use nodefold_model::Invariant;
use serde_json::{Map, Value, json};

/// Something wrong.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What kind.
    pub kind: Kind,
    /// The invariant that it breaks, if it is one of the numbered.
    pub invariant: Option<Invariant>,
    /// In which pod.
    pub pod: Option<PodIx>,
    /// Which container, volume or device.
    pub instance: Option<String>,
    /// When it became provable.
    pub at: Moment,
    /// One sentence that says what happened here.
    pub explanation: String,
    /// The entries that prove it, indices into [`Trace::entries`].
    pub evidence: Vec<usize>,
    /// The weakest of its parts.
    pub confidence: Confidence,
    /// It went away later.
    pub resolved: bool,
    /// How often it happened.
    pub count: u64,
}

/// Something worth knowing that is no violation.
#[derive(Clone, Debug)]
pub struct Note {
    /// What kind, one word.
    pub kind: &'static str,
    /// What.
    pub text: String,
    /// Where it is seen.
    pub evidence: Vec<usize>,
}

/// The verdict.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What is wrong, in order of time.
    pub findings: Vec<Finding>,
    /// What is worth knowing.
    pub notes: Vec<Note>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// The kinds found, each once, sorted.
    pub fn kinds(&self) -> Vec<&'static str> {
        let mut kinds: Vec<&'static str> = self.findings.iter().map(|f| f.kind.as_str()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    /// The report as one object.
    pub fn to_json(&self, trace: &Trace) -> Value {
        let findings: Vec<Value> = self.findings.iter().map(|f| finding(f, trace)).collect();
        let mut notes: Vec<Value> = self
            .notes
            .iter()
            .map(|n| json!({"kind": n.kind, "text": n.text, "evidence": places(&n.evidence, trace)}))
            .collect();
        notes.extend(trace.notes.iter().map(|text| json!({"kind": "assumed", "text": text, "evidence": []})));
        json!({"findings": findings, "notes": notes, "coverage": coverage(trace)})
    }
}

fn finding(f: &Finding, trace: &Trace) -> Value {
    json!({
        "kind": f.kind.as_str(),
        "invariant": f.invariant.map(|i| i.to_string()),
        "pod": f.pod.map(|p| trace.pod_name(p)),
        "uid": f.pod.and_then(|p| trace.pod(p).uid.as_deref()),
        "instance": f.instance,
        "at": rfc3339(f.at),
        "confidence": f.confidence.as_str(),
        "resolved": f.resolved,
        "count": f.count,
        "explanation": f.explanation,
        "meaning": f.kind.meaning(),
        "race": f.kind.race(),
        "evidence": places(&f.evidence, trace),
    })
}

fn places(evidence: &[usize], trace: &Trace) -> Vec<Value> {
    evidence.iter().filter_map(|i| trace.entries.get(*i)).map(|e| place(e, trace)).collect()
}

fn place(e: &Entry, trace: &Trace) -> Value {
    let at = (!e.untimed).then(|| rfc3339(e.at));
    json!({"file": trace.files[e.file as usize].name, "line": e.line, "at": at, "text": trace.describe(e)})
}

/// A moment in UTC. The last of all moments is no time.
pub fn rfc3339(at: Moment) -> String {
    format!("{}Z", written(at, 0, false).replacen(' ', "T", 1))
}

/// How far the evidence reaches.
fn coverage(trace: &Trace) -> Value {
    let span = trace.span();
    let runs: Vec<Value> = trace
        .runs
        .iter()
        .map(|r| {
            json!({"host": &*trace.hosts[r.host as usize], "pid": r.pid, "from": rfc3339(r.first),
                   "to": rfc3339(r.last), "started": r.started})
        })
        .collect();
    let files: Vec<Value> = trace
        .files
        .iter()
        .map(|f| {
            let skipped: Map<String, Value> =
                f.skipped.iter().map(|(why, n)| (why.as_str().to_owned(), Value::from(*n))).collect();
            let witnesses: Vec<&str> = f.witnesses.iter().map(|w| w.as_str()).collect();
            json!({"name": f.name, "lines": f.lines, "bytes": f.bytes, "recognised": f.recognised,
                   "offset_seconds": f.offset, "witnesses": witnesses, "skipped": skipped})
        })
        .collect();
    json!({
        "from": span.map(|(from, _)| rfc3339(from)),
        "to": span.map(|(_, to)| rfc3339(to)),
        "pods": trace.pod_count(),
        "volumes": trace.volume_count(),
        "containers": trace.container_count(),
        "entries": trace.entry_count(),
        "verbosity": trace.verbosity,
        "runs": runs,
        "gaps": trace.gaps.len(),
        "files": files,
    })
}
