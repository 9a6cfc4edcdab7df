//! S37: a container's own restart policy and rules (KEP-5307).

use super::is_set;
use crate::ApiConfig;
use crate::validate::Errors;
use crate::view::{at, list, text};
use serde_json::Value;

const POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const RULES_MOST: usize = 20;
const EXIT_CODES_MOST: usize = 255;

/// A main container's.
pub(super) fn main(container: &Value, config: &ApiConfig, path: &str, errors: &mut Errors) {
    errors.judge("S37");
    if config.container_restart_rules {
        policy_and_rules(container, path, errors);
    } else if is_set(container, "restartPolicy") {
        errors.forbidden(format!("{path}.restartPolicy"), "may not be set for non-init containers");
    }
}

/// An init container's. Without the gate, only `Always`, which makes it a sidecar.
pub(super) fn init(container: &Value, config: &ApiConfig, path: &str, errors: &mut Errors) {
    errors.judge("S37");
    let policy = at(container, "restartPolicy");
    if config.container_restart_rules {
        policy_and_rules(container, path, errors);
    } else if !policy.is_null() && policy != "Always" {
        errors.not_supported(format!("{path}.restartPolicy"), policy, &["Always"]);
    }
}

fn policy_and_rules(container: &Value, path: &str, errors: &mut Errors) {
    let policy = at(container, "restartPolicy");
    let rules = list(container, "restartPolicyRules");
    let field = format!("{path}.restartPolicy");
    match policy.as_str() {
        Some(policy) if POLICIES.contains(&policy) => {}
        Some(_) => errors.not_supported(field, policy, &POLICIES),
        None if rules.is_empty() => {}
        None => errors.required(field, "must specify restartPolicy when restart rules are used"),
    }
    let path = format!("{path}.restartPolicyRules");
    if rules.len() > RULES_MOST {
        errors.too_long(path.as_str(), &format!("may not be more than {RULES_MOST} items"));
    }
    for (k, rule) in rules.iter().enumerate() {
        let path = format!("{path}[{k}]");
        let action = Value::from(text(rule, "action"));
        if !matches!(text(rule, "action"), "Restart" | "RestartAllContainers") {
            errors.not_supported(format!("{path}.action"), &action, &["Restart", "RestartAllContainers"]);
        }
        let codes = at(rule, "exitCodes");
        if codes.is_null() {
            errors.required(format!("{path}.exitCodes"), "must be specified");
            continue;
        }
        let operator = Value::from(text(codes, "operator"));
        if !matches!(text(codes, "operator"), "In" | "NotIn") {
            errors.not_supported(format!("{path}.exitCodes.operator"), &operator, &["In", "NotIn"]);
        }
        if list(codes, "values").len() > EXIT_CODES_MOST {
            let detail = format!("may not be more than {EXIT_CODES_MOST} items");
            errors.too_long(format!("{path}.exitCodes.values"), &detail);
        }
    }
}
