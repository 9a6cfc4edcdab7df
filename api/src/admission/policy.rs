//! ValidatingAdmissionPolicies, evaluated: params, match conditions, variables, validations, and what the binding does
//! about them.

use super::attributes::Attributes;
use super::cluster::Cluster;
use super::expression::Scope;
use super::handler::{FailurePolicy, Handler};
use super::params::{self, Params};
use crate::view::{at, list, text};
use serde_json::Value;

/// What a policy with its binding says of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    /// Why the request is refused; the first is told.
    pub denials: Vec<Denial>,
    /// What the client is warned of.
    pub warnings: Vec<String>,
    /// What goes to the audit log.
    pub audited: Vec<String>,
    /// It didn't apply, and why.
    pub skipped: Option<String>,
}

/// One refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Denial {
    /// In words.
    pub message: String,
    /// `reason` of the validation.
    pub reason: DenialReason,
}

/// `reason` of a validation, with its HTTP status.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum DenialReason {
    Unauthorized,
    Forbidden,
    Invalid,
    RequestEntityTooLarge,
}

impl DenialReason {
    fn read(text: &str) -> DenialReason {
        match text {
            "Unauthorized" => DenialReason::Unauthorized,
            "Forbidden" => DenialReason::Forbidden,
            "RequestEntityTooLarge" => DenialReason::RequestEntityTooLarge,
            // The default.
            _ => DenialReason::Invalid,
        }
    }
}

/// Evaluates a pair that means the request.
pub(super) fn judge(request: &Attributes<'_>, handler: &Handler, cluster: Cluster<'_>) -> Judgement {
    let mut judgement =
        Judgement { denials: Vec::new(), warnings: Vec::new(), audited: Vec::new(), skipped: None };
    let spec = at(&handler.manifest, "spec");
    let found = match params::of(request, handler, cluster) {
        Params::Found(found) => found,
        Params::Skip(why) => {
            judgement.skipped = Some(why);
            return judgement;
        }
        Params::Wrong(wrong) => {
            failed(handler, wrong, &mut judgement);
            return judgement;
        }
    };
    for params in &found {
        let mut scope = Scope::new(request, params, cluster, spec);
        match scope.conditions_hold(spec) {
            Ok(true) => {}
            Ok(false) => {
                judgement.skipped = Some("a matchCondition is false".to_owned());
                continue;
            }
            Err(wrong) => {
                failed(handler, wrong, &mut judgement);
                continue;
            }
        }
        scope.declare(list(spec, "variables"));
        for validation in list(spec, "validations") {
            let expression = text(validation, "expression");
            match scope.holds(expression) {
                Ok(true) => {}
                Ok(false) => {
                    let denial = Denial {
                        message: message(&scope, validation),
                        reason: DenialReason::read(text(validation, "reason")),
                    };
                    act(handler, denial, &mut judgement);
                }
                Err(wrong) => {
                    let wrong = format!("expression '{}' resulted in error: {wrong}", expression.trim());
                    failed(handler, wrong, &mut judgement);
                }
            }
        }
    }
    judgement
}

/// What is said of a validation that is false: its messageExpression, else its message, else the expression itself.
fn message(scope: &Scope, validation: &Value) -> String {
    let expression = text(validation, "messageExpression");
    let computed = Some(expression).filter(|e| !e.is_empty()).and_then(|e| scope.text(e).ok());
    // One that fails, is blank or has several lines is passed over, as upstream.
    let computed = computed.filter(|m| !m.trim().is_empty() && !m.contains('\n'));
    match (computed, text(validation, "message").trim()) {
        (Some(computed), _) => computed.trim().to_owned(),
        (None, "") => format!("failed expression: {}", text(validation, "expression").trim()),
        (None, message) => message.to_owned(),
    }
}

/// The policy can't be evaluated: its failurePolicy decides.
fn failed(handler: &Handler, wrong: String, judgement: &mut Judgement) {
    match handler.failure_policy {
        FailurePolicy::Ignore => {
            judgement.skipped = Some(format!("{wrong} (failurePolicy Ignore)"));
        }
        FailurePolicy::Fail => {
            act(handler, Denial { message: wrong, reason: DenialReason::Invalid }, judgement);
        }
    }
}

/// The binding's validationActions.
fn act(handler: &Handler, denial: Denial, judgement: &mut Judgement) {
    let actions = list(at(&handler.binding, "spec"), "validationActions");
    let (policy, binding) = (&handler.configuration, &handler.entry);
    for action in actions {
        match action.as_str().unwrap_or_default() {
            "Warn" => judgement.warnings.push(format!(
                "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {}",
                denial.message
            )),
            "Audit" => judgement.audited.push(denial.message.clone()),
            // `Deny`, and anything that isn't known: errors close.
            _ => judgement.denials.push(denial.clone()),
        }
    }
    if actions.is_empty() {
        judgement.denials.push(denial);
    }
}
