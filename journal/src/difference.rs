//! Where a fold and the record of another fold first differ: at which batch, in which pod, in which field.

use crate::record::BatchEnd;
use nodefold_core::Digest;
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// At most so many fields of one pod are told.
const MAX_FIELDS: usize = 64;

/// The first difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// It shows in the end of this batch, so the facts of the batch before it brought it about.
    pub batch: u64,
    /// The records of the batch before: the first, and its end.
    pub records: (u64, u64),
    /// The latest time before.
    pub at: Time,
    /// The version that wrote this part of the log.
    pub software: String,
    /// What differs.
    pub what: Differs,
    /// In which pods, as far as their digests tell. Empty if it is the node's own state, or only commands differ.
    pub pods: Vec<PodDifference>,
    /// The snapshot from which the fields were taken; without a later one they can't be told.
    pub snapshot: Option<u64>,
}

/// What differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Differs {
    /// The states.
    State {
        /// As recorded.
        recorded: Digest,
        /// As folded now.
        folded: Digest,
    },
    /// How many events were folded.
    Events {
        /// As recorded.
        recorded: u64,
        /// As folded now.
        folded: u64,
    },
    /// The commands given out: it would decide otherwise.
    Commands {
        /// As recorded.
        recorded: u128,
        /// As folded now.
        folded: u128,
    },
}

/// A pod that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct PodDifference {
    /// Which pod.
    pub pod: PodUid,
    /// Its recorded digest; `None` if it was not touched then.
    pub recorded: Option<Digest>,
    /// Its digest now; `None` if it was not touched now.
    pub folded: Option<Digest>,
    /// Its fields that differ, as they are at the snapshot.
    pub fields: Vec<FieldDifference>,
}

/// A field that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldDifference {
    /// Where it is.
    pub path: String,
    /// As recorded; `None` if absent.
    pub recorded: Option<Value>,
    /// As folded now; `None` if absent.
    pub folded: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = self.records;
        write!(
            f,
            "batch {}: after records {first} to {last} (written by nodefold {}) ",
            self.batch, self.software
        )?;
        match &self.what {
            Differs::State { recorded, folded } => {
                write!(f, "the state differs: recorded {:032x}, folded {:032x}", recorded.0, folded.0)?;
            }
            Differs::Events { recorded, folded } => {
                write!(f, "the number of events differs: recorded {recorded}, folded {folded}")?;
            }
            Differs::Commands { recorded, folded } => {
                write!(f, "the commands differ: recorded {recorded:032x}, folded {folded:032x}")?;
            }
        }
        for pod in &self.pods {
            write!(f, "\n  pod {}: ", pod.pod)?;
            match (pod.recorded, pod.folded) {
                (Some(recorded), Some(folded)) => {
                    write!(f, "recorded {:032x}, folded {:032x}", recorded.0, folded.0)?
                }
                (Some(_), None) => write!(f, "touched as recorded, not touched now")?,
                (None, Some(_)) => write!(f, "not touched as recorded, touched now")?,
                (None, None) => write!(f, "not touched")?,
            }
            for field in &pod.fields {
                write!(
                    f,
                    "\n    {}: recorded {}, folded {}",
                    field.path,
                    Shown(&field.recorded),
                    Shown(&field.folded)
                )?;
            }
        }
        match self.snapshot {
            Some(record) => write!(f, "\n  (fields as of the snapshot after record {record})"),
            None => Ok(()),
        }
    }
}

struct Shown<'a>(&'a Option<Value>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(f, "{value}"),
            None => write!(f, "nothing"),
        }
    }
}

/// The pods whose digests differ between a batch's end and the fold.
pub(crate) fn differing_pods(end: &BatchEnd, folded: &[(PodUid, Digest)]) -> Vec<PodDifference> {
    let mut pods: BTreeMap<PodUid, (Option<Digest>, Option<Digest>)> = BTreeMap::new();
    for (pod, digest) in &end.touched {
        pods.entry(*pod).or_default().0 = Some(Digest(*digest));
    }
    for (pod, digest) in folded {
        pods.entry(*pod).or_default().1 = Some(*digest);
    }
    pods.into_iter()
        .filter(|(_, (recorded, folded))| recorded != folded)
        .map(|(pod, (recorded, folded))| PodDifference { pod, recorded, folded, fields: Vec::new() })
        .collect()
}

/// The leaves in which two values differ.
pub(crate) fn differing_fields(recorded: &Value, folded: &Value) -> Vec<FieldDifference> {
    let mut found = Vec::new();
    compare("", Some(recorded), Some(folded), &mut found);
    found
}

fn compare(path: &str, recorded: Option<&Value>, folded: Option<&Value>, found: &mut Vec<FieldDifference>) {
    if recorded == folded || found.len() >= MAX_FIELDS {
        return;
    }
    match (recorded, folded) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(&inner, a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            for i in 0..a.len().max(b.len()) {
                compare(&format!("{path}[{i}]"), a.get(i), b.get(i), found);
            }
        }
        (recorded, folded) => found.push(FieldDifference {
            path: path.to_owned(),
            recorded: recorded.cloned(),
            folded: folded.cloned(),
        }),
    }
}
