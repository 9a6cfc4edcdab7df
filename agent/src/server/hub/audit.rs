//! The audit record: who asked for what, whether it was allowed and by which binding, and the answer's code. One for each
//! request, in the journal.

use super::super::ask::{Change, Reply, Target, What};
use nodefold_api::admission::attributes::User;
use nodefold_core::time::Time;
use nodefold_k8s::time;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One request.
pub struct Entry {
    at: Time,
    user: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
    impersonator: Option<String>,
    verb: &'static str,
    target: Target,
    /// It may be asked.
    pub allowed: bool,
    /// Who says that it may.
    pub by: String,
    /// The answer's HTTP status.
    pub code: u16,
    /// Refusals before this one that were too many to be recorded.
    left_out: u64,
    /// What handlers say of it.
    pub annotations: BTreeMap<String, String>,
}

impl Entry {
    /// Of a request that is not decided yet.
    pub fn of(at: Time, user: &User, impersonator: Option<&User>, target: &Target, what: &What) -> Entry {
        let (code, by, left_out) = match what {
            What::Refused { code, why, left_out, .. } => (*code, why.clone(), *left_out),
            What::Get
            | What::List { .. }
            | What::Watch(_)
            | What::Create { .. }
            | What::Change { .. }
            | What::Delete(_)
            | What::DeleteAll(..)
            | What::Log { .. }
            | What::Review(_)
            | What::Allocated(_)
            | What::Permission(_)
            | What::Attach { .. }
            | What::Exec { .. } => (0, String::new(), 0),
        };
        Entry {
            at,
            user: user.name.to_string(),
            uid: user.uid.to_string(),
            groups: user.groups.iter().map(ToString::to_string).collect(),
            extra: user
                .extra
                .iter()
                .map(|(key, values)| (key.to_string(), values.iter().map(ToString::to_string).collect()))
                .collect(),
            impersonator: impersonator.map(|user| user.name.to_string()),
            verb: verb(what),
            target: named(target, what),
            allowed: false,
            by,
            code,
            left_out,
            annotations: BTreeMap::new(),
        }
    }

    /// For people: the verb and what it is about.
    pub fn line(&self) -> String {
        match &self.target {
            Target::Path(path) => format!("{} {path}", self.verb),
            Target::Objects { resource, part, namespace, name } => {
                let part = part.map(|part| format!("/{}", part.name)).unwrap_or_default();
                let place = [namespace.as_str(), name.as_str()];
                let place: Vec<&str> = place.into_iter().filter(|word| !word.is_empty()).collect();
                format!("{} {}{part} {}", self.verb, resource.plural, place.join("/")).trim_end().to_owned()
            }
        }
    }

    /// For the journal.
    pub fn to_json(&self) -> String {
        let mut record = json!({
            "at": time::format_micro(self.at),
            "user": self.user,
            "groups": self.groups,
            "verb": self.verb,
        });
        if !self.uid.is_empty() {
            record["uid"] = json!(self.uid);
        }
        if !self.extra.is_empty() {
            record["extra"] = json!(self.extra);
        }
        if let Some(impersonator) = &self.impersonator {
            record["impersonator"] = json!(impersonator);
        }
        match &self.target {
            Target::Path(path) => record["path"] = json!(path),
            Target::Objects { resource, part, namespace, name } => {
                record["object"] = json!({
                    "apiGroup": resource.group,
                    "resource": resource.plural,
                    "subresource": part.map_or("", |part| part.name),
                    "namespace": namespace,
                    "name": name,
                });
            }
        }
        record["decision"] = json!(if self.allowed { "allow" } else { "forbid" });
        record["reason"] = Value::from(self.by.as_str());
        record["code"] = json!(self.code);
        if !self.annotations.is_empty() {
            record["annotations"] = json!(self.annotations);
        }
        if self.left_out > 0 {
            record["leftOut"] = json!(self.left_out);
        }
        record.to_string()
    }
}

/// A new object's name is in its manifest.
fn named(target: &Target, what: &What) -> Target {
    let mut named = target.clone();
    if let (Target::Objects { name, .. }, What::Create { object, .. }) = (&mut named, what) {
        object["metadata"]["name"].as_str().unwrap_or_default().clone_into(name);
    }
    named
}

/// As roles call it.
pub fn verb(what: &What) -> &'static str {
    match what {
        What::Get | What::Log { .. } | What::Allocated(_) => "get",
        What::Permission(verb) | What::Refused { verb, .. } => verb,
        What::List { .. } => "list",
        What::Watch(_) => "watch",
        // Whoever runs something in a container makes something, however it was asked for.
        What::Create { .. } | What::Review(_) | What::Exec { .. } | What::Attach { .. } => "create",
        What::Change { body: Change::Put(_), .. } => "update",
        What::Change {
            body: Change::Strategic(_) | Change::Merge(_) | Change::Json(_) | Change::Apply { .. },
            ..
        } => "patch",
        What::Delete(_) => "delete",
        What::DeleteAll(..) => "deletecollection",
    }
}

/// The answer's HTTP status.
pub fn code_of(answer: &Reply) -> u16 {
    match answer {
        Reply::Object { created: true, .. } => 201,
        Reply::Object { created: false, .. }
        | Reply::List { .. }
        | Reply::Past(_)
        | Reply::Watch(_)
        | Reply::Log(_)
        | Reply::Call(_)
        | Reply::Permitted => 200,
        Reply::Exec(_) => 101,
        Reply::Refused(failure) => failure.code,
    }
}
