//! Where a fold and the record of another fold first differ: at which batch, in which pod, in which field.

use crate::record::BatchEnd;
use nodefold_core::Digest;
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// At most so many fields of one pod are told.
const MAX_FIELDS: usize = 64;

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Fields of the node apart from its pods that differ, as they are at the snapshot.
    pub node: Vec<FieldDifference>,
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDifference {
    /// Where it is.
    pub path: String,
    /// As recorded; `None` if absent.
    pub recorded: Option<String>,
    /// As folded now; `None` if absent.
    pub folded: Option<String>,
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
                write!(f, "\n    {field}")?;
            }
        }
        for field in &self.node {
            write!(f, "\n  node: {field}")?;
        }
        match self.snapshot {
            Some(record) => write!(f, "\n  (fields as of the snapshot after record {record})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for FieldDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (recorded, folded) = (self.recorded.as_deref(), self.folded.as_deref());
        write!(
            f,
            "{}: recorded {}, folded {}",
            self.path,
            recorded.unwrap_or("nothing"),
            folded.unwrap_or("nothing")
        )
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

/// The leaves in which two values differ, by what `{:#?}` prints of them.
pub(crate) fn differing_fields(recorded: &str, folded: &str) -> Vec<FieldDifference> {
    let (recorded, folded) = (leaves(recorded), leaves(folded));
    let paths: BTreeSet<&String> = recorded.keys().chain(folded.keys()).collect();
    let differing = paths.into_iter().filter(|path| recorded.get(*path) != folded.get(*path));
    differing
        .take(MAX_FIELDS)
        .map(|path| FieldDifference {
            path: path.clone(),
            recorded: recorded.get(path).cloned(),
            folded: folded.get(path).cloned(),
        })
        .collect()
}

/// Every line of a pretty-printed value that is no bracket, by its path: `containers[0].state.Running.since`. Strings
/// are escaped there, so a line is a line of the structure.
fn leaves(pretty: &str) -> BTreeMap<String, String> {
    struct Level {
        path: String,
        next: usize,
    }
    let mut found = BTreeMap::new();
    let mut levels: Vec<Level> = Vec::new();
    for line in pretty.lines() {
        let line = line.trim().trim_end_matches(',');
        if matches!(line, "}" | ")" | "]") {
            levels.pop();
            continue;
        }
        let opens = line.ends_with(['{', '(', '[']);
        let (name, value) = match line.split_once(": ") {
            Some((name, value)) if name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') => {
                (Some(name), value)
            }
            _ => (None, line),
        };
        let outer = levels.last_mut();
        let path = match (outer, name) {
            (None, None) => String::new(),
            (None, Some(name)) => name.to_owned(),
            (Some(level), Some(name)) if level.path.is_empty() => name.to_owned(),
            (Some(level), Some(name)) => format!("{}.{name}", level.path),
            (Some(level), None) => {
                level.next += 1;
                format!("{}[{}]", level.path, level.next - 1)
            }
        };
        if opens {
            // `Some(` and the like say something too: that it is there, and which variant.
            found.insert(format!("{path}:"), value.trim_end_matches(['{', '(', '[']).trim().to_owned());
            levels.push(Level { path, next: 0 });
        } else {
            found.insert(path, value.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::differing_fields;

    #[derive(Debug)]
    #[expect(dead_code, reason = "read by its Debug alone")]
    struct Pod {
        name: &'static str,
        at: Option<(u32, Vec<u8>)>,
        containers: Vec<Pod>,
    }

    #[test]
    fn a_difference_is_named_by_its_path() {
        let pod = |name, at| {
            let inner = Pod { name, at, containers: vec![] };
            format!("{:#?}", Pod { name: "outer: {", at: None, containers: vec![inner] })
        };
        let told =
            |a: &str, b: &str| differing_fields(a, b).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(told(&pod("a", None), &pod("a", None)), [""; 0]);
        let names = told(&pod("a\n}", None), &pod("b", None));
        assert_eq!(names, [r#"containers[0].name: recorded "a\n}", folded "b""#]);
        let lists = told(&pod("a", Some((1, vec![5, 6]))), &pod("a", Some((1, vec![5]))));
        assert_eq!(lists, ["containers[0].at[0][1][1]: recorded 6, folded nothing"]);
        let absent = told(&pod("a", Some((1, vec![]))), &pod("a", None));
        assert_eq!(
            absent.first().map(String::as_str),
            Some("containers[0].at: recorded nothing, folded None")
        );
    }
}
