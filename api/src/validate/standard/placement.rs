//! Where a pod may run: affinity, and how it is spread. A scheduler's to decide, the API's to read.

use crate::validate::Errors;
use crate::validate::names::{
    dns_label_problems, label_value_problems, qualified_name_problems, subdomain_problems,
};
use crate::view::{at, list, spec_list, text};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const NO_OPERATOR: &str = "not a valid selector operator";
const NO_SELECTOR: &str = "must not be specified when labelSelector is not set";
const NOT_POSITIVE: &str = "must be greater than zero";

/// Labels by their keys: a selector's, or a node's.
pub(super) fn labels(labels: &Value, path: &str, errors: &mut Errors) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        label_key(key, path.to_owned(), errors);
        for problem in value.as_str().map(label_value_problems).unwrap_or_default() {
            errors.invalid(path, value, problem);
        }
    }
}

fn label_key(key: &str, path: String, errors: &mut Errors) {
    for problem in qualified_name_problems(key) {
        errors.invalid(path.clone(), &Value::from(key), &problem);
    }
}

pub(super) fn affinity(pod: &Value, errors: &mut Errors) {
    errors.judge("");
    let affinity = at(at(pod, "spec"), "affinity");
    let node = at(affinity, "nodeAffinity");
    let path = "spec.affinity.nodeAffinity";
    let required = at(node, REQUIRED);
    if !required.is_null() {
        let path = format!("{path}.{REQUIRED}.nodeSelectorTerms");
        let terms = list(required, "nodeSelectorTerms");
        if terms.is_empty() {
            errors.required(path.clone(), "must have at least one node selector term");
        }
        for (i, term) in terms.iter().enumerate() {
            node_term(term, true, &format!("{path}[{i}]"), errors);
        }
    }
    for (i, term) in list(node, PREFERRED).iter().enumerate() {
        let path = format!("{path}.{PREFERRED}[{i}]");
        weight(term, &path, errors);
        node_term(at(term, "preference"), false, &format!("{path}.preference"), errors);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let (pods, path) = (at(affinity, kind), format!("spec.affinity.{kind}"));
        for (i, term) in list(pods, REQUIRED).iter().enumerate() {
            pod_term(term, &format!("{path}.{REQUIRED}[{i}]"), errors);
        }
        for (i, term) in list(pods, PREFERRED).iter().enumerate() {
            let path = format!("{path}.{PREFERRED}[{i}]");
            weight(term, &path, errors);
            pod_term(at(term, "podAffinityTerm"), &format!("{path}.podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Value, path: &str, errors: &mut Errors) {
    let weight = at(term, "weight");
    if !(1..=100).contains(&weight.as_i64().unwrap_or(0)) {
        errors.invalid(
            format!("{path}.weight"),
            &Value::from(weight.as_i64().unwrap_or(0)),
            "must be in the range 1-100",
        );
    }
}

/// `values`: those of labels are judged as well.
fn node_term(term: &Value, values: bool, path: &str, errors: &mut Errors) {
    for (i, wanted) in list(term, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{i}]");
        let given = list(wanted, "values");
        match text(wanted, "operator") {
            "Gt" | "Lt" if given.len() != 1 => {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.required(format!("{path}.values"), detail);
            }
            "Gt" | "Lt" => {}
            _ => operator_and_values(wanted, &path, errors),
        }
        label_key(text(wanted, "key"), format!("{path}.key"), errors);
        if values {
            label_values(given, &path, errors);
        }
    }
    for (i, wanted) in list(term, "matchFields").iter().enumerate() {
        let path = format!("{path}.matchFields[{i}]");
        let given = list(wanted, "values");
        match text(wanted, "operator") {
            "In" | "NotIn" if given.len() != 1 => {
                let detail =
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
                errors.required(format!("{path}.values"), detail);
            }
            "In" | "NotIn" => {}
            other => errors.invalid(format!("{path}.operator"), &Value::from(other), NO_OPERATOR),
        }
        match text(wanted, "key") {
            "metadata.name" => {
                for (k, value) in given.iter().enumerate() {
                    for problem in value.as_str().map(subdomain_problems).unwrap_or_default() {
                        errors.invalid(format!("{path}.values[{k}]"), value, problem);
                    }
                }
            }
            other => {
                errors.invalid(format!("{path}.key"), &Value::from(other), "not a valid field selector key");
            }
        }
    }
}

fn operator_and_values(wanted: &Value, path: &str, errors: &mut Errors) {
    let given = list(wanted, "values");
    match text(wanted, "operator") {
        "In" | "NotIn" if given.is_empty() => {
            errors.required(format!("{path}.values"), "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !given.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.forbidden(format!("{path}.values"), detail);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => errors.invalid(format!("{path}.operator"), &Value::from(other), NO_OPERATOR),
    }
}

fn label_values(values: &[Value], path: &str, errors: &mut Errors) {
    for (k, value) in values.iter().enumerate() {
        for problem in value.as_str().map(label_value_problems).unwrap_or_default() {
            errors.invalid(format!("{path}.values[{k}]"), value, problem);
        }
    }
}

fn selector(selector: &Value, path: &str, errors: &mut Errors) {
    labels(at(selector, "matchLabels"), &format!("{path}.matchLabels"), errors);
    for (i, wanted) in list(selector, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{i}]");
        operator_and_values(wanted, &path, errors);
        label_key(text(wanted, "key"), format!("{path}.key"), errors);
        label_values(list(wanted, "values"), &path, errors);
    }
}

fn pod_term(term: &Value, path: &str, errors: &mut Errors) {
    for field in ["labelSelector", "namespaceSelector"] {
        selector(at(term, field), &format!("{path}.{field}"), errors);
    }
    for namespace in list(term, "namespaces") {
        for problem in namespace.as_str().map(dns_label_problems).unwrap_or_default() {
            errors.invalid(format!("{path}.namespace"), namespace, problem);
        }
    }
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let (keys, path) = (list(term, field), format!("{path}.{field}"));
        if !keys.is_empty() && at(term, "labelSelector").is_null() {
            errors.forbidden(path, NO_SELECTOR);
            continue;
        }
        for (i, key) in keys.iter().enumerate() {
            label_key(key.as_str().unwrap_or_default(), format!("{path}[{i}]"), errors);
        }
    }
    for (i, key) in list(term, "matchLabelKeys").iter().enumerate() {
        if list(term, "mismatchLabelKeys").contains(key) {
            let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
            errors.invalid(format!("{path}.matchLabelKeys[{i}]"), key, detail);
        }
    }
    topology_key(term, path, errors);
    // Upstream judges the form of one that is missing, too.
    if text(term, "topologyKey").is_empty() {
        label_key("", format!("{path}.topologyKey"), errors);
    }
}

fn topology_key(of: &Value, path: &str, errors: &mut Errors) {
    match text(of, "topologyKey") {
        "" => errors.required(format!("{path}.topologyKey"), "can not be empty"),
        key => label_key(key, format!("{path}.topologyKey"), errors),
    }
}

pub(super) fn spread(pod: &Value, errors: &mut Errors) {
    errors.judge("");
    let constraints = spec_list(pod, "topologySpreadConstraints");
    for (i, constraint) in constraints.iter().enumerate() {
        let path = format!("spec.topologySpreadConstraints[{i}]");
        let skew = at(constraint, "maxSkew").as_i64().unwrap_or(0);
        if skew <= 0 {
            errors.invalid(format!("{path}.maxSkew"), &Value::from(skew), NOT_POSITIVE);
        }
        topology_key(constraint, &path, errors);
        let action = text(constraint, "whenUnsatisfiable");
        if !matches!(action, "DoNotSchedule" | "ScheduleAnyway") {
            let supported = ["DoNotSchedule", "ScheduleAnyway"];
            errors.not_supported(format!("{path}.whenUnsatisfiable"), &Value::from(action), &supported);
        }
        let kind = |constraint: &Value| {
            let (key, action) = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
            (key.to_owned(), action.to_owned())
        };
        if constraints[i + 1..].iter().any(|other| kind(other) == kind(constraint)) {
            let value = format!("{{{}, {action}}}", text(constraint, "topologyKey"));
            errors.duplicate(format!("{path}.{{topologyKey, whenUnsatisfiable}}"), &value, "");
        }
        let domains = at(constraint, "minDomains");
        if domains.as_i64().is_some_and(|domains| domains <= 0) {
            errors.invalid(format!("{path}.minDomains"), domains, NOT_POSITIVE);
        }
        if !domains.is_null() && action != "DoNotSchedule" {
            let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
            errors.invalid(format!("{path}.minDomains"), domains, &detail);
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            let policy = at(constraint, field);
            if policy.as_str().is_some_and(|policy| !matches!(policy, "Honor" | "Ignore")) {
                errors.not_supported(format!("{path}.{field}"), policy, &["Honor", "Ignore"]);
            }
        }
        spread_keys(constraint, &format!("{path}.matchLabelKeys"), errors);
        selector(at(constraint, "labelSelector"), &format!("{path}.labelSelector"), errors);
    }
}

fn spread_keys(constraint: &Value, path: &str, errors: &mut Errors) {
    let keys = list(constraint, "matchLabelKeys");
    let of = at(constraint, "labelSelector");
    if !keys.is_empty() && of.is_null() {
        errors.forbidden(path, NO_SELECTOR);
    }
    let named = at(of, "matchLabels").as_object().into_iter().flat_map(Map::keys).map(String::as_str);
    let expressed = list(of, "matchExpressions").iter().map(|wanted| text(wanted, "key"));
    let selected: BTreeSet<&str> = named.chain(expressed).collect();
    for (i, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        label_key(name, format!("{path}[{i}]"), errors);
        if selected.contains(name) {
            errors.invalid(format!("{path}[{i}]"), key, "exists in both matchLabelKeys and labelSelector");
        }
    }
}
