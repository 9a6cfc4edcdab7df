//! Which requests a handler's rules mean (api-side §2.1).
//!
//! A resource is split at its first slash. `pods` is the resource itself, `*` every resource itself and no
//! subresource, `pods/*` its subresources and, in Kubernetes' code, itself too; `*/dynamic` that subresource of
//! anything, `*/*` everything. `matchPolicy: Equivalent` never gets from `pods` to `pods/dynamic`: it adds other versions
//! of the same subresource only, and core pods have none.

use super::attributes::Attributes;
use crate::view::{list, text};
use serde_json::Value;
use std::fmt;

/// One rule of a webhook or policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    resources: Vec<String>,
    scope: String,
    names: Vec<String>,
}

/// What is wrong with a rule: a server that checked it would not have stored it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Where, in the rule.
    pub field: String,
    /// What stands there; `None`: nothing does, and something must.
    pub got: Option<String>,
    /// What may stand there.
    pub allowed: &'static [&'static str],
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.got {
            Some(got) => write!(f, "{} is {got:?}, not one of {}", self.field, self.allowed.join(", ")),
            None => write!(f, "{} is missing or empty", self.field),
        }
    }
}

const OPERATIONS: [&str; 5] = ["*", "CREATE", "UPDATE", "DELETE", "CONNECT"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

impl Rule {
    /// Reads one entry of `rules`, `resourceRules` or `excludeResourceRules`. A rule that could mean nothing, or not what it
    /// says, can't be read: the gate would take it for one that means no pods.
    pub fn read(value: &Value) -> Result<Rule, Wrong> {
        let texts = |field: &str| -> Result<Vec<String>, Wrong> {
            let texts = list(value, field).iter().filter_map(Value::as_str).map(str::to_owned);
            let texts: Vec<String> = texts.collect();
            // The core group is "".
            match texts.iter().position(|text| text.is_empty() && field != "apiGroups") {
                None if !texts.is_empty() => Ok(texts),
                None => Err(Wrong { field: field.to_owned(), got: None, allowed: &[] }),
                Some(i) => Err(Wrong { field: format!("{field}[{i}]"), got: None, allowed: &[] }),
            }
        };
        let operations = texts("operations")?;
        if let Some(i) = operations.iter().position(|operation| !OPERATIONS.contains(&operation.as_str())) {
            let (field, got) = (format!("operations[{i}]"), Some(operations[i].clone()));
            return Err(Wrong { field, got, allowed: &OPERATIONS });
        }
        let scope = text(value, "scope").to_owned();
        if !scope.is_empty() && !SCOPES.contains(&scope.as_str()) {
            return Err(Wrong { field: "scope".to_owned(), got: Some(scope), allowed: &SCOPES });
        }
        let names = list(value, "resourceNames").iter().filter_map(Value::as_str).map(str::to_owned);
        Ok(Rule {
            operations,
            groups: texts("apiGroups")?,
            versions: texts("apiVersions")?,
            resources: texts("resources")?,
            scope,
            names: names.collect(),
        })
    }

    /// The rule means this request.
    pub fn means(&self, request: &Attributes<'_>) -> bool {
        let has = |texts: &[String], wanted: &str| texts.iter().any(|t| t == "*" || t == wanted);
        let in_scope = match self.scope.as_str() {
            "" | "*" => true,
            "Namespaced" => !request.namespace.is_empty(),
            "Cluster" => request.namespace.is_empty(),
            _ => false,
        };
        in_scope
            && has(&self.operations, request.operation.as_str())
            && has(&self.groups, request.group)
            && has(&self.versions, request.version)
            && self.resources.iter().any(|r| means_resource(r, request.resource, request.subresource))
            && (self.names.is_empty() || self.names.iter().any(|n| n == request.name))
    }
}

fn means_resource(pattern: &str, resource: &str, subresource: &str) -> bool {
    let (of, sub) = pattern.split_once('/').unwrap_or((pattern, ""));
    (of == "*" || of == resource) && (sub == "*" || sub == subresource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_split_at_the_slash() {
        for (pattern, main, dynamic) in [
            ("pods", true, false),
            ("pods/dynamic", false, true),
            ("pods/*", true, true),
            ("*", true, false),
            ("*/*", true, true),
            ("*/dynamic", false, true),
            ("pods/status", false, false),
            ("services", false, false),
        ] {
            let got = (means_resource(pattern, "pods", ""), means_resource(pattern, "pods", "dynamic"));
            assert_eq!(got, (main, dynamic), "{pattern}");
        }
    }
}
