//! Label and field selectors, as lists, watches and deletions take them.

use super::failure::Failure;
use super::history::When;
use nodefold_core::time::Time;
use serde_json::Value;

/// Which objects are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    labels: Vec<Requirement>,
    fields: Vec<Field>,
    /// As of when, for what has a history.
    pub when: When,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    Is(String),
    IsNot(String),
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    path: String,
    value: String,
    equal: bool,
}

/// Fields that each kind can be selected by, besides name and namespace.
const FIELDS: &[(&str, &[&str])] = &[
    (
        "Pod",
        &[
            "spec.hostNetwork",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.nominatedNodeName",
            "status.phase",
            "status.podIP",
        ],
    ),
    (
        "Event",
        &[
            "involvedObject.apiVersion",
            "involvedObject.fieldPath",
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.resourceVersion",
            "involvedObject.uid",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
    ("ContainerRun", &["spec.askedBy", "spec.container", "spec.pod", "spec.podUID", "status.reason"]),
    ("VolumeRun", &["spec.askedBy", "spec.pod", "spec.podUID", "spec.source", "spec.volume"]),
    ("Allocation", &["spec.askedBy", "spec.pod", "spec.podUID"]),
    ("Namespace", &["status.phase"]),
    ("Node", &["spec.unschedulable"]),
    ("Secret", &["type"]),
];

impl Selection {
    /// Reads both selectors of a request for a kind.
    pub fn read(kind: &str, labels: &str, fields: &str, now: Time) -> Result<Selection, Failure> {
        let (fields, when) = read_fields(kind, fields, now)?;
        Ok(Selection { labels: read_labels(labels)?, fields, when })
    }

    /// It takes everything.
    pub fn is_everything(&self) -> bool {
        *self == Selection::default()
    }

    /// The object is meant.
    pub fn takes(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.labels.iter().all(|requirement| requirement.holds(labels))
            && self.fields.iter().all(|field| (field_of(object, &field.path) == field.value) == field.equal)
    }

    /// The only name that it takes, if it says so.
    pub fn name(&self) -> Option<&str> {
        let named = self.fields.iter().find(|field| field.path == "metadata.name" && field.equal);
        named.map(|field| field.value.as_str())
    }

    /// The only namespace that it takes, if it says so.
    pub fn namespace(&self) -> Option<&str> {
        let named = self.fields.iter().find(|field| field.path == "metadata.namespace" && field.equal);
        named.map(|field| field.value.as_str())
    }
}

impl Requirement {
    fn holds(&self, labels: &Value) -> bool {
        let value = labels[&self.key].as_str();
        match &self.operator {
            Operator::Is(wanted) => value == Some(wanted),
            Operator::IsNot(wanted) => value != Some(wanted),
            Operator::In(wanted) => value.is_some_and(|value| wanted.iter().any(|w| w == value)),
            Operator::NotIn(wanted) => value.is_none_or(|value| wanted.iter().all(|w| w != value)),
            Operator::Exists => value.is_some(),
            Operator::Absent => value.is_none(),
        }
    }
}

fn field_of(object: &Value, path: &str) -> String {
    // An event's source is its component.
    let path = if path == "source" { "source.component" } else { path };
    let value = path.split('.').fold(object, |value, part| &value[part]);
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Null if path == "spec.hostNetwork" || path == "spec.unschedulable" => "false".to_owned(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

/// Splits at commas that are in no parentheses.
fn terms(text: &str) -> Vec<&str> {
    let (mut depth, mut start) = (0usize, 0);
    let mut found = Vec::new();
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&text[start..]);
    found.into_iter().map(str::trim).filter(|term| !term.is_empty()).collect()
}

fn read_labels(text: &str) -> Result<Vec<Requirement>, Failure> {
    terms(text).into_iter().map(read_label).collect()
}

fn read_label(term: &str) -> Result<Requirement, Failure> {
    let bad = || Failure::bad_request(format!("unable to parse requirement: {term:?} is no label selector"));
    let is_key =
        |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let made = |key: &str, operator: Operator| {
        let key = key.trim();
        if is_key(key) { Ok(Requirement { key: key.to_owned(), operator }) } else { Err(bad()) }
    };
    let set = |text: &str| -> Option<Vec<String>> {
        let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
        Some(inner.split(',').map(|value| value.trim().to_owned()).collect())
    };
    if let Some((key, value)) = term.split_once("!=") {
        return made(key, Operator::IsNot(value.trim().to_owned()));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return made(key, Operator::Is(value.trim().to_owned()));
    }
    let mut words = term.splitn(3, ' ').map(str::trim);
    match (words.next(), words.next(), words.next()) {
        (Some(key), Some("in"), Some(values)) => made(key, Operator::In(set(values).ok_or_else(bad)?)),
        (Some(key), Some("notin"), Some(values)) => made(key, Operator::NotIn(set(values).ok_or_else(bad)?)),
        (Some(key), None, None) => match key.strip_prefix('!') {
            Some(key) => made(key, Operator::Absent),
            None => made(key, Operator::Exists),
        },
        _ => Err(bad()),
    }
}

fn read_fields(kind: &str, text: &str, now: Time) -> Result<(Vec<Field>, When), Failure> {
    let known = FIELDS.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, fields)| fields);
    let has_history = super::history::Kind::named(kind).is_some();
    let (mut fields, mut when) = (Vec::new(), When::Now);
    for term in terms(text) {
        let (path, value, equal) = match term.split_once("!=") {
            Some((path, value)) => (path, value, false),
            None => match term.split_once("==").or_else(|| term.split_once('=')) {
                Some((path, value)) => (path, value, true),
                None => {
                    let what = format!("invalid field selector: {term:?}; can't understand {term:?}");
                    return Err(Failure::bad_request(what));
                }
            },
        };
        if has_history
            && equal
            && let Some(asked) = When::read(path, value, now)
        {
            if when != When::Now {
                return Err(Failure::bad_request(
                    "at, ago, asOf and revision: only one of them can be asked for",
                ));
            }
            when = asked.map_err(Failure::bad_request)?;
            continue;
        }
        if !matches!(path, "metadata.name" | "metadata.namespace") && !known.contains(&path) {
            let what = format!(
                "Unable to find a field of {kind} that matches field label: {path} (field label not supported)"
            );
            return Err(Failure::bad_request(what));
        }
        fields.push(Field { path: path.to_owned(), value: value.to_owned(), equal });
    }
    Ok((fields, when))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;

    #[test]
    fn labels() {
        let pod = json!({"metadata": {"labels": {"app": "web", "tier": "front"}}});
        let table = [
            ("app=web", true),
            ("app==web,tier=front", true),
            ("app!=web", false),
            ("other!=x", true),
            ("app in (web, db)", true),
            ("app notin (web)", false),
            ("other notin (web)", true),
            ("app", true),
            ("!app", false),
            ("!other,app in (web)", true),
        ];
        for (text, expected) in table {
            assert_eq!(Selection::read("Pod", text, "", Time(0)).unwrap().takes(&pod), expected, "{text}");
        }
        for bad in ["a b c", "=x", "app in web", "a=b,(c"] {
            assert_eq!(Selection::read("Pod", bad, "", Time(0)).unwrap_err().code, 400, "{bad}");
        }
    }

    #[test]
    fn fields() {
        let pod = json!({"metadata": {"name": "web", "namespace": "a"}, "spec": {}, "status": {"phase": "Running"}});
        let table = [
            ("metadata.name=web", true),
            ("metadata.name!=web", false),
            ("status.phase=Running,metadata.namespace=a", true),
            ("spec.hostNetwork=false", true),
            ("spec.nodeName=", true),
        ];
        for (text, expected) in table {
            assert_eq!(Selection::read("Pod", "", text, Time(0)).unwrap().takes(&pod), expected, "{text}");
        }
        let of_run = |fields: &str| Selection::read("ContainerRun", "", fields, Time(0));
        let read = of_run("at=2026-01-01T00:00:00Z,spec.pod=web").unwrap();
        assert_eq!(read.when, When::At(Time(1_767_225_600_000_000_000)));
        assert!(!read.is_everything() && !read.takes(&json!({"spec": {"pod": "db"}})));
        for bad in ["at=yesterday", "at=2026-01-01T00:00:00Z,revision=1", "at!=2026-01-01T00:00:00Z"] {
            assert_eq!(of_run(bad).unwrap_err().code, 400, "{bad}");
        }
        for bad in ["spec.unknown=1", "metadata.name", "involvedObject.name=x"] {
            assert_eq!(Selection::read("Pod", "", bad, Time(0)).unwrap_err().code, 400, "{bad}");
        }
    }
}
