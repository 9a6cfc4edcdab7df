//! Which requests a handler's rules mean (api-side §2.1).
//!
//! A resource is split at its first slash. `pods` is the resource itself, `*` every resource itself and no
//! subresource, `pods/*` its subresources and, in Kubernetes' code, itself too; `*/dynamic` that subresource of
//! anything, `*/*` everything. `matchPolicy: Equivalent` never gets from `pods` to `pods/dynamic`: it adds other versions
//! of the same subresource only, and core pods have none.

use super::attributes::Attributes;
use crate::view::{list, text};
use serde_json::Value;

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

impl Rule {
    /// Reads one entry of `rules`, `resourceRules` or `excludeResourceRules`.
    pub fn read(value: &Value) -> Rule {
        let texts = |field: &str| -> Vec<String> {
            list(value, field).iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Rule {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources"),
            scope: text(value, "scope").to_owned(),
            names: texts("resourceNames"),
        }
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
