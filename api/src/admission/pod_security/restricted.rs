//! What the restricted level asks for beyond baseline: least rights, stated.

use super::{Violation, containers, is_windows, named, pod_security, security, those};
use crate::view::{at, list, name, spec_list, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Volume types that bring nothing of the host with them.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

pub(super) fn check(pod: &Value, found: &mut Vec<Violation>) {
    if !is_windows(pod) {
        escalation(pod, found);
        capabilities(pod, found);
    }
    volumes(pod, found);
    non_root(pod, found);
    users(pod, found);
    if !is_windows(pod) {
        seccomp(pod, found);
    }
}

fn escalation(pod: &Value, found: &mut Vec<Violation>) {
    let names = those(pod, |c| at(security(c), "allowPrivilegeEscalation") != &Value::Bool(false));
    if !names.is_empty() {
        let what = "must set securityContext.allowPrivilegeEscalation=false";
        let detail = format!("{} {what}", named("container", &names));
        found.push(Violation { reason: "allowPrivilegeEscalation != false", detail });
    }
}

fn capabilities(pod: &Value, found: &mut Vec<Violation>) {
    let stated = |c, field| list(at(security(c), "capabilities"), field).iter().filter_map(Value::as_str);
    let keeping = those(pod, |c| !stated(c, "drop").any(|cap| cap == "ALL"));
    let beyond = |cap: &&str| *cap != "NET_BIND_SERVICE";
    let adding = those(pod, |c| stated(c, "add").any(|cap| beyond(&cap)));
    let mut told = Vec::new();
    if !keeping.is_empty() {
        let what = "must set securityContext.capabilities.drop=[\"ALL\"]";
        told.push(format!("{} {what}", named("container", &keeping)));
    }
    if !adding.is_empty() {
        let caps: BTreeSet<&str> = containers(pod).flat_map(|c| stated(c, "add")).filter(beyond).collect();
        let caps: Vec<String> = caps.iter().map(|cap| format!("{cap:?}")).collect();
        let what = format!("must not include {} in securityContext.capabilities.add", caps.join(", "));
        told.push(format!("{} {what}", named("container", &adding)));
    }
    if !told.is_empty() {
        found.push(Violation { reason: "unrestricted capabilities", detail: told.join("; ") });
    }
}

fn volumes(pod: &Value, found: &mut Vec<Violation>) {
    let source = |volume: &Value| {
        let mut fields = volume.as_object().into_iter().flat_map(|o| o.keys());
        fields.find(|field| *field != "name").cloned().unwrap_or_default()
    };
    let restricted = |volume: &&Value| !VOLUMES.contains(&source(volume).as_str());
    let bad: Vec<&Value> = spec_list(pod, "volumes").iter().filter(restricted).collect();
    if bad.is_empty() {
        return;
    }
    let names: Vec<&str> = bad.iter().map(|v| name(v)).collect();
    let types: BTreeSet<String> = bad.iter().map(|v| format!("{:?}", source(v))).collect();
    let (verb, plural) =
        (if names.len() == 1 { "uses" } else { "use" }, if types.len() == 1 { "" } else { "s" });
    let types = types.into_iter().collect::<Vec<_>>().join(", ");
    let detail = format!("{} {verb} restricted volume type{plural} {types}", named("volume", &names));
    found.push(Violation { reason: "restricted volume types", detail });
}

fn non_root(pod: &Value, found: &mut Vec<Violation>) {
    let stated = |context: &Value| at(context, "runAsNonRoot").as_bool();
    let by_pod = stated(pod_security(pod));
    let refusing = those(pod, |c| stated(security(c)) == Some(false));
    let silent = those(pod, |c| stated(security(c)).is_none());
    let mut told = Vec::new();
    if by_pod == Some(false) {
        told.push("pod must not set securityContext.runAsNonRoot=false".to_owned());
    }
    if !refusing.is_empty() {
        let what = "must not set securityContext.runAsNonRoot=false";
        told.push(format!("{} {what}", named("container", &refusing)));
    }
    if told.is_empty() && by_pod != Some(true) && !silent.is_empty() {
        let what = "must set securityContext.runAsNonRoot=true";
        told.push(format!("pod or {} {what}", named("container", &silent)));
    }
    if !told.is_empty() {
        found.push(Violation { reason: "runAsNonRoot != true", detail: told.join(" and ") });
    }
}

fn users(pod: &Value, found: &mut Vec<Violation>) {
    let root = |context: &Value| at(context, "runAsUser").as_i64() == Some(0);
    let mut setters = Vec::new();
    if root(pod_security(pod)) {
        setters.push("pod".to_owned());
    }
    let names = those(pod, |c| root(security(c)));
    if !names.is_empty() {
        setters.push(named("container", &names));
    }
    if !setters.is_empty() {
        let detail = format!("{} must not set runAsUser=0", setters.join(" and "));
        found.push(Violation { reason: "runAsUser=0", detail });
    }
}

fn seccomp(pod: &Value, found: &mut Vec<Violation>) {
    let kind = |context: &Value| text(at(context, "seccompProfile"), "type").to_owned();
    let good = |kind: &str| matches!(kind, "RuntimeDefault" | "Localhost");
    let by_pod = kind(pod_security(pod));
    let mut told = Vec::new();
    let wrong = those(pod, |c| !kind(security(c)).is_empty() && !good(&kind(security(c))));
    if !by_pod.is_empty() && !good(&by_pod) {
        told.push(format!("pod must not set securityContext.seccompProfile.type to {by_pod:?}"));
    }
    if !wrong.is_empty() {
        let what = "must not set securityContext.seccompProfile.type to \"Unconfined\"";
        told.push(format!("{} {what}", named("container", &wrong)));
    }
    let silent = those(pod, |c| kind(security(c)).is_empty());
    if told.is_empty() && by_pod.is_empty() && !silent.is_empty() {
        let what = "must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"";
        told.push(format!("pod or {} {what}", named("container", &silent)));
    }
    if !told.is_empty() {
        found.push(Violation { reason: "seccompProfile", detail: told.join(" and ") });
    }
}
