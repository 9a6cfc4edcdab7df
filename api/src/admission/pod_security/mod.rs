//! PodSecurity: the namespace's level (`baseline`, `restricted`) over the whole new pod.
//!
//! Upstream passes over an update that leaves the number of containers and each image as they are. On `/dynamic` that
//! would be a hole (api-side §2.4): one container swapped for another of the same image and more rights. There it always looks.

mod baseline;
mod restricted;

use super::attributes::{Attributes, Operation};
use super::selector::labels;
use crate::response::Status;
use crate::view::{at, spec_list, text};
use serde_json::Value;

/// A pod standard's level.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

impl Level {
    /// A label's value. What isn't known is the strictest, as upstream.
    fn read(value: &str) -> Level {
        match value {
            "privileged" => Level::Privileged,
            "baseline" => Level::Baseline,
            _ => Level::Restricted,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        }
    }
}

/// The minor version of the standard; the latest is above all.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(u32);

impl Version {
    const LATEST: Version = Version(u32::MAX);

    fn read(value: &str) -> Version {
        value.strip_prefix("v1.").and_then(|minor| minor.parse().ok()).map_or(Version::LATEST, Version)
    }

    fn as_text(self) -> String {
        if self == Version::LATEST { "latest".to_owned() } else { format!("v1.{}", self.0) }
    }
}

/// What breaks the standard, and where.
pub(super) struct Violation {
    reason: &'static str,
    detail: String,
}

/// What the level says.
pub(super) enum Said {
    /// It doesn't look; why.
    Skipped(&'static str),
    /// Nothing against it, at this level.
    Passed(String),
    /// It refuses.
    Refused(Status),
}

/// Subresources that show or steer a pod without changing its spec.
const IGNORED: [&str; 8] = ["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"];

pub(super) fn judge(request: &Attributes<'_>, namespace: &Value) -> Said {
    if request.resource != "pods" || request.operation == Operation::Delete {
        return Said::Skipped("not a pod's creation or change");
    }
    if IGNORED.contains(&request.subresource) {
        return Said::Skipped("the subresource doesn't change a spec");
    }
    let labels = labels(namespace);
    let label = |key: &str| labels.get(format!("pod-security.kubernetes.io/{key}").as_str()).copied();
    let level = label("enforce").map_or(Level::Privileged, Level::read);
    let version = label("enforce-version").map_or(Version::LATEST, Version::read);
    let named = format!("{}:{}", level.as_str(), version.as_text());
    if level == Level::Privileged {
        return Said::Passed(named);
    }
    let insignificant =
        request.operation == Operation::Update && !significant(request.old_object, request.object);
    if insignificant && request.subresource != "dynamic" {
        return Said::Skipped("no container is added and no image changes");
    }
    let violations = violations(request.object, level, version);
    if violations.is_empty() {
        return Said::Passed(named);
    }
    let told: Vec<String> = violations
        .iter()
        .map(|v| match v.detail.as_str() {
            "" => v.reason.to_owned(),
            detail => format!("{} ({detail})", v.reason),
        })
        .collect();
    let why = format!("violates PodSecurity \"{named}\": {}", told.join(", "));
    Said::Refused(Status::forbidden(request.resource, request.name, &why))
}

/// Baseline's checks first, in the order of their names, then those that restricted adds.
fn violations(pod: &Value, level: Level, version: Version) -> Vec<Violation> {
    let mut found = Vec::new();
    baseline::check(pod, level, version, &mut found);
    if level == Level::Restricted {
        restricted::check(pod, &mut found);
    }
    found
}

/// Upstream's idea of a change that matters.
fn significant(old: &Value, new: &Value) -> bool {
    ["containers", "initContainers", "ephemeralContainers"].iter().any(|list| {
        let (before, after) = (spec_list(old, list), spec_list(new, list));
        let image = |container: &Value| text(container, "image").to_owned();
        before.len() != after.len() || before.iter().zip(after).any(|(o, n)| image(o) != image(n))
    })
}

/// Every container: init, main, ephemeral.
fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|l| spec_list(pod, l))
}

/// The names of the containers that are like that.
fn those<'p>(pod: &'p Value, are: impl Fn(&'p Value) -> bool) -> Vec<&'p str> {
    containers(pod).filter(|c| are(c)).map(|c| text(c, "name")).collect()
}

/// `container "a"`, `containers "a", "b"`.
fn named(kind: &str, names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|n| format!("{n:?}")).collect();
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("{kind}{plural} {}", quoted.join(", "))
}

fn security(container: &Value) -> &Value {
    at(container, "securityContext")
}

fn pod_security(pod: &Value) -> &Value {
    at(at(pod, "spec"), "securityContext")
}

fn is_windows(pod: &Value) -> bool {
    text(at(at(pod, "spec"), "os"), "name") == "windows"
}
