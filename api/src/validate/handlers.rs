//! What webhook configurations, admission policies and their bindings say (`pkg/apis/admissionregistration/validation`): what a
//! server must not store, since it would never do what was meant. May not evaluate an expression or match a request.

use super::Errors;
use crate::admission::rule::Rule;
use crate::admission::selector::Selector;
use crate::view::{at, list, text};
use serde_json::Value;

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
const REINVOCATION: [&str; 2] = ["IfNeeded", "Never"];
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];
const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
const REASONS: [&str; 4] = ["Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized"];
const NOT_FOUND_ACTIONS: [&str; 2] = ["Allow", "Deny"];
const PATCH_TYPES: [&str; 2] = ["ApplyConfiguration", "JSONPatch"];

/// A handler's manifest; other kinds pass.
pub(super) fn manifest(object: &Value, errors: &mut Errors) {
    let spec = at(object, "spec");
    errors.judge("");
    match text(object, "kind") {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            for (i, webhook) in list(object, "webhooks").iter().enumerate() {
                webhook_entry(webhook, &format!("webhooks[{i}]"), errors);
            }
        }
        "ValidatingAdmissionPolicy" => {
            policy(spec, errors);
            if list(spec, "validations").is_empty() && list(spec, "auditAnnotations").is_empty() {
                errors.required("spec.validations", "validations or auditAnnotations must be present");
            }
            for (i, validation) in list(spec, "validations").iter().enumerate() {
                let path = format!("spec.validations[{i}]");
                expression(validation, &path, errors);
                one_of(validation, &path, "reason", &REASONS, errors);
            }
            for (i, annotation) in list(spec, "auditAnnotations").iter().enumerate() {
                required(
                    annotation,
                    &format!("spec.auditAnnotations[{i}]"),
                    &["key", "valueExpression"],
                    errors,
                );
            }
        }
        "MutatingAdmissionPolicy" => {
            policy(spec, errors);
            one_of(spec, "spec", "reinvocationPolicy", &REINVOCATION, errors);
            if list(spec, "mutations").is_empty() {
                errors.required("spec.mutations", "mutations must contain at least one item");
            }
            for (i, mutation) in list(spec, "mutations").iter().enumerate() {
                let path = format!("spec.mutations[{i}]");
                required(mutation, &path, &["patchType"], errors);
                one_of(mutation, &path, "patchType", &PATCH_TYPES, errors);
                let holds = match text(mutation, "patchType") {
                    "JSONPatch" => "jsonPatch",
                    "ApplyConfiguration" => "applyConfiguration",
                    _ => continue,
                };
                expression(at(mutation, holds), &format!("{path}.{holds}"), errors);
            }
        }
        "ValidatingAdmissionPolicyBinding" => {
            binding(spec, errors);
            let actions = list(spec, "validationActions");
            if actions.is_empty() {
                errors.required("spec.validationActions", "");
            }
            for (i, action) in actions.iter().enumerate() {
                if !action.as_str().is_some_and(|action| ACTIONS.contains(&action)) {
                    errors.not_supported(format!("spec.validationActions[{i}]"), action, &ACTIONS);
                }
            }
            if actions.iter().any(|a| a == "Deny") && actions.iter().any(|a| a == "Warn") {
                let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API \
                              response and headers serves no purpose)";
                errors.invalid("spec.validationActions", at(spec, "validationActions"), detail);
            }
        }
        "MutatingAdmissionPolicyBinding" => binding(spec, errors),
        _ => {}
    }
}

fn webhook_entry(webhook: &Value, path: &str, errors: &mut Errors) {
    required(webhook, path, &["name"], errors);
    rules(webhook, path, "rules", errors);
    one_of(webhook, path, "failurePolicy", &FAILURE_POLICIES, errors);
    one_of(webhook, path, "matchPolicy", &MATCH_POLICIES, errors);
    one_of(webhook, path, "sideEffects", &SIDE_EFFECTS, errors);
    one_of(webhook, path, "reinvocationPolicy", &REINVOCATION, errors);
    selectors(webhook, path, errors);
    conditions(webhook, path, errors);
}

/// What both kinds of policy have.
fn policy(spec: &Value, errors: &mut Errors) {
    one_of(spec, "spec", "failurePolicy", &FAILURE_POLICIES, errors);
    match_resources(at(spec, "matchConstraints"), "spec.matchConstraints", errors);
    conditions(spec, "spec", errors);
    for (i, variable) in list(spec, "variables").iter().enumerate() {
        required(variable, &format!("spec.variables[{i}]"), &["name", "expression"], errors);
    }
    if at(spec, "paramKind").is_object() {
        required(at(spec, "paramKind"), "spec.paramKind", &["apiVersion", "kind"], errors);
    }
}

/// What both kinds of binding have.
fn binding(spec: &Value, errors: &mut Errors) {
    required(spec, "spec", &["policyName"], errors);
    match_resources(at(spec, "matchResources"), "spec.matchResources", errors);
    let param = at(spec, "paramRef");
    if !param.is_object() {
        return;
    }
    let (named, selected) = (!text(param, "name").is_empty(), !at(param, "selector").is_null());
    match (named, selected) {
        (false, false) => errors.required("spec.paramRef", "one of name or selector must be specified"),
        (true, true) => errors.forbidden("spec.paramRef.name", "name and selector are mutually exclusive"),
        (true, false) | (false, true) => {}
    }
    selector(param, "spec.paramRef", "selector", errors);
    required(param, "spec.paramRef", &["parameterNotFoundAction"], errors);
    one_of(param, "spec.paramRef", "parameterNotFoundAction", &NOT_FOUND_ACTIONS, errors);
}

fn match_resources(of: &Value, path: &str, errors: &mut Errors) {
    rules(of, path, "resourceRules", errors);
    rules(of, path, "excludeResourceRules", errors);
    one_of(of, path, "matchPolicy", &MATCH_POLICIES, errors);
    selectors(of, path, errors);
}

fn rules(of: &Value, path: &str, field: &str, errors: &mut Errors) {
    for (i, rule) in list(of, field).iter().enumerate() {
        if let Err(wrong) = Rule::read(rule) {
            let field = format!("{path}.{field}[{i}].{}", wrong.field);
            match wrong.got {
                Some(got) => errors.not_supported(field, &got.into(), wrong.allowed),
                None => errors.required(field, ""),
            }
        }
    }
}

fn selectors(of: &Value, path: &str, errors: &mut Errors) {
    selector(of, path, "namespaceSelector", errors);
    selector(of, path, "objectSelector", errors);
}

fn selector(of: &Value, path: &str, field: &str, errors: &mut Errors) {
    if let Err(wrong) = Selector::read(at(of, field)) {
        errors.invalid(format!("{path}.{field}"), at(of, field), &wrong);
    }
}

fn conditions(of: &Value, path: &str, errors: &mut Errors) {
    for (i, condition) in list(of, "matchConditions").iter().enumerate() {
        required(condition, &format!("{path}.matchConditions[{i}]"), &["name", "expression"], errors);
    }
}

fn expression(of: &Value, path: &str, errors: &mut Errors) {
    if text(of, "expression").trim().is_empty() {
        errors.required(format!("{path}.expression"), "expression is not specified");
    }
}

fn required(of: &Value, path: &str, fields: &[&str], errors: &mut Errors) {
    for field in fields.iter().filter(|field| text(of, field).is_empty()) {
        errors.required(format!("{path}.{field}"), "");
    }
}

fn one_of(of: &Value, path: &str, field: &str, allowed: &[&str], errors: &mut Errors) {
    let got = at(of, field);
    if !got.is_null() && !got.as_str().is_some_and(|got| allowed.contains(&got)) {
        errors.not_supported(format!("{path}.{field}"), got, allowed);
    }
}
