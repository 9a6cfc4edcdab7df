//! The rest of a pod's spec: choices, names and ranges of fields that are neither volumes nor containers.

use super::{network, one_of, placement, security};
use crate::validate::Errors;
use crate::validate::names::{label, label_value_problems, qualified_name_problems, subdomain_problems};
use crate::view::{at, list, name, spec_list, text};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn resource_claims(pod: &Value, errors: &mut Errors) {
    errors.judge("");
    let mut names = BTreeSet::new();
    for (i, claim) in spec_list(pod, "resourceClaims").iter().enumerate() {
        let path = format!("spec.resourceClaims[{i}]");
        if name(claim).is_empty() {
            errors.required(format!("{path}.name"), "");
        } else if !names.insert(name(claim)) {
            errors.duplicate(format!("{path}.name"), name(claim), "");
        } else {
            label(name(claim), &format!("{path}.name"), errors);
        }
        let (own, template) = (at(claim, "resourceClaimName"), at(claim, "resourceClaimTemplateName"));
        let detail = match (own.is_null(), template.is_null()) {
            (false, false) => {
                "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            }
            (true, true) => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            (true, false) | (false, true) => continue,
        };
        errors.invalid(path, claim, detail);
    }
}

/// In Kubernetes' order.
pub(super) fn rest(pod: &Value, errors: &mut Errors) {
    errors.judge("");
    let spec = at(pod, "spec");
    one_of(
        at(spec, "restartPolicy"),
        "spec.restartPolicy".to_owned(),
        &["Always", "OnFailure", "Never"],
        errors,
    );
    let dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(at(spec, "dnsPolicy"), "spec.dnsPolicy".to_owned(), &dns, errors);
    placement::labels(at(spec, "nodeSelector"), "spec.nodeSelector", errors);
    pod_security(spec, errors);
    for (i, secret) in spec_list(pod, "imagePullSecrets").iter().enumerate() {
        if name(secret).is_empty() {
            errors.required(format!("spec.imagePullSecrets[{i}].name"), "");
        }
    }
    placement::affinity(pod, errors);
    network::dns(pod, errors);
    network::readiness_gates(pod, errors);
    scheduling_gates(pod, errors);
    placement::spread(pod, errors);
    for field in ["serviceAccountName", "nodeName"] {
        let value = text(spec, field);
        if value.is_empty() {
            continue;
        }
        for problem in subdomain_problems(value) {
            errors.invalid(format!("spec.{field}"), &Value::from(value), problem);
        }
    }
    let deadline = at(spec, "activeDeadlineSeconds");
    if deadline.as_i64().is_some_and(|s| !(1..=i64::from(i32::MAX)).contains(&s)) {
        errors.invalid("spec.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive");
    }
    for field in ["hostname", "subdomain"] {
        if !text(spec, field).is_empty() {
            label(text(spec, field), &format!("spec.{field}"), errors);
        }
    }
    tolerations(pod, errors);
    network::host_aliases(pod, errors);
    match text(at(spec, "os"), "name") {
        "" if at(spec, "os").is_null() => {}
        "" => errors.required("spec.os.name", "cannot be empty"),
        "linux" => security::of_linux(pod, errors),
        "windows" => {}
        other => errors.not_supported("spec.os", &Value::from(other), &["linux", "windows"]),
    }
}

fn pod_security(spec: &Value, errors: &mut Errors) {
    errors.judge("S38");
    let context = at(spec, "securityContext");
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        security::id(at(context, field), format!("spec.securityContext.{field}"), errors);
    }
    for (i, group) in list(context, "supplementalGroups").iter().enumerate() {
        security::id(group, format!("spec.securityContext.supplementalGroups[{i}]"), errors);
    }
    security::profile(
        at(context, "seccompProfile"),
        "seccomp",
        "spec.securityContext.seccompProfile",
        errors,
    );
    security::profile(
        at(context, "appArmorProfile"),
        "AppArmor",
        "spec.securityContext.appArmorProfile",
        errors,
    );
}

/// Which taints are put up with: what a running pod may get more of (M9).
fn tolerations(pod: &Value, errors: &mut Errors) {
    errors.judge("M9");
    for (i, toleration) in spec_list(pod, "tolerations").iter().enumerate() {
        let path = format!("spec.tolerations[{i}]");
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        for problem in if key.is_empty() { Vec::new() } else { qualified_name_problems(key) } {
            errors.invalid(format!("{path}.key"), &Value::from(key), &problem);
        }
        if key.is_empty() && operator != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid(format!("{path}.operator"), &Value::from(operator), detail);
        }
        let effect = text(toleration, "effect");
        if !at(toleration, "tolerationSeconds").is_null() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid(format!("{path}.effect"), &Value::from(effect), detail);
        }
        let value = text(toleration, "value");
        match operator {
            "" | "Equal" => {
                for problem in label_value_problems(value) {
                    errors.invalid(format!("{path}.operator"), &Value::from(value), problem);
                }
            }
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.invalid(format!("{path}.operator"), toleration, detail);
            }
            "Exists" => {}
            other => {
                errors.not_supported(format!("{path}.operator"), &Value::from(other), &["Equal", "Exists"]);
            }
        }
        if !matches!(effect, "" | "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            let effects = ["NoExecute", "NoSchedule", "PreferNoSchedule"];
            errors.not_supported(format!("{path}.effect"), &Value::from(effect), &effects);
        }
    }
    errors.judge("");
}

fn scheduling_gates(pod: &Value, errors: &mut Errors) {
    errors.judge("");
    let mut seen = BTreeSet::new();
    for (i, gate) in spec_list(pod, "schedulingGates").iter().enumerate() {
        let path = format!("spec.schedulingGates[{i}]");
        for problem in qualified_name_problems(name(gate)) {
            errors.invalid(path.as_str(), &Value::from(name(gate)), &problem);
        }
        if !seen.insert(name(gate)) {
            errors.duplicate(path, name(gate), "");
        }
    }
}
