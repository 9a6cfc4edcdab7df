//! The baseline level: what is known to break out of a container.

use super::{Level, Version, Violation, containers, is_windows, named, pod_security, security, those};
use crate::view::{at, list, name, spec_list, text};
use serde_json::Value;
use std::collections::BTreeSet;

/// Capabilities that a container runtime grants by default.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
const SELINUX_TYPES: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];
const SYSCTLS: [&str; 11] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
];
/// From this version on the hosts of probes and hooks are looked at.
const PROBE_HOSTS_SINCE: Version = Version(34);
/// From this version on a pod with users of its own may unmask proc.
const OWN_USERS_SINCE: Version = Version(35);

pub(super) fn check(pod: &Value, level: Level, version: Version, found: &mut Vec<Violation>) {
    app_armor(pod, found);
    if level == Level::Baseline {
        capabilities(pod, found); // restricted has a stricter one
    }
    host_namespaces(pod, found);
    if level == Level::Baseline {
        host_paths(pod, found); // restricted allows a list of types
    }
    host_ports(pod, found);
    if version >= PROBE_HOSTS_SINCE {
        probe_hosts(pod, found);
    }
    let privileged = those(pod, |c| at(security(c), "privileged") == &Value::Bool(true));
    tell(&privileged, "privileged", "must not set securityContext.privileged=true", found);
    let own_users = at(at(pod, "spec"), "hostUsers") == &Value::Bool(false) && version >= OWN_USERS_SINCE;
    if !own_users {
        let unmasked = those(pod, |c| !matches!(text(security(c), "procMount"), "" | "Default"));
        tell(&unmasked, "procMount", "must not set securityContext.procMount to \"Unmasked\"", found);
    }
    selinux(pod, found);
    if level == Level::Baseline {
        seccomp(pod, found); // restricted wants one
    }
    sysctls(pod, found);
    host_processes(pod, found);
}

fn tell(names: &[&str], reason: &'static str, what: &str, found: &mut Vec<Violation>) {
    if !names.is_empty() {
        found.push(Violation { reason, detail: format!("{} {what}", named("container", names)) });
    }
}

fn app_armor(pod: &Value, found: &mut Vec<Violation>) {
    let forbidden = |context: &Value| {
        let kind = text(at(context, "appArmorProfile"), "type");
        !matches!(kind, "" | "RuntimeDefault" | "Localhost")
    };
    let mut setters = Vec::new();
    if forbidden(pod_security(pod)) {
        setters.push("pod".to_owned());
    }
    let names = those(pod, |c| forbidden(security(c)));
    if !names.is_empty() {
        setters.push(named("container", &names));
    }
    let annotated = at(at(pod, "metadata"), "annotations").as_object().into_iter().flatten();
    for (key, value) in annotated {
        let profile = value.as_str().unwrap_or_default();
        let allowed = profile.is_empty() || profile == "runtime/default" || profile.starts_with("localhost/");
        if key.starts_with("container.apparmor.security.beta.kubernetes.io/") && !allowed {
            setters.push(format!("annotation {key}={profile:?}"));
        }
    }
    if !setters.is_empty() {
        let what = "must not set AppArmor profile type to \"Unconfined\"";
        let detail = format!("{} {what}", setters.join(" and "));
        found.push(Violation { reason: "forbidden AppArmor profile", detail });
    }
}

fn capabilities(pod: &Value, found: &mut Vec<Violation>) {
    let added = |c| list(at(security(c), "capabilities"), "add").iter().filter_map(Value::as_str);
    let forbidden: BTreeSet<&str> =
        containers(pod).flat_map(added).filter(|cap| !CAPABILITIES.contains(cap)).collect();
    let names = those(pod, |c| added(c).any(|cap| forbidden.contains(cap)));
    let quoted: Vec<String> = forbidden.iter().map(|cap| format!("{cap:?}")).collect();
    let what = format!("must not include {} in securityContext.capabilities.add", quoted.join(", "));
    tell(&names, "non-default capabilities", &what, found);
}

fn host_namespaces(pod: &Value, found: &mut Vec<Violation>) {
    let shared = ["hostNetwork", "hostPID", "hostIPC"];
    let shared = shared.into_iter().filter(|f| at(at(pod, "spec"), f) == &Value::Bool(true));
    let told: Vec<String> = shared.map(|field| format!("{field}=true")).collect();
    if !told.is_empty() {
        found.push(Violation { reason: "host namespaces", detail: told.join(", ") });
    }
}

fn host_paths(pod: &Value, found: &mut Vec<Violation>) {
    let is_host_path = |volume: &&Value| !at(volume, "hostPath").is_null();
    let names: Vec<&str> = spec_list(pod, "volumes").iter().filter(is_host_path).map(name).collect();
    if !names.is_empty() {
        found.push(Violation { reason: "hostPath volumes", detail: named("volume", &names) });
    }
}

fn host_ports(pod: &Value, found: &mut Vec<Violation>) {
    let ports =
        |c| list(c, "ports").iter().filter_map(|p| at(p, "hostPort").as_i64()).filter(|port| *port != 0);
    let names = those(pod, |c| ports(c).next().is_some());
    let all: BTreeSet<i64> = containers(pod).flat_map(ports).collect();
    if !names.is_empty() {
        let told: Vec<String> = all.iter().map(i64::to_string).collect();
        let (verb, plural) =
            (if names.len() == 1 { "uses" } else { "use" }, if all.len() == 1 { "" } else { "s" });
        let detail = format!("{} {verb} hostPort{plural} {}", named("container", &names), told.join(", "));
        found.push(Violation { reason: "hostPort", detail });
    }
}

fn probe_hosts(pod: &Value, found: &mut Vec<Violation>) {
    let hosted = |handler: &Value| {
        ["httpGet", "tcpSocket"].iter().any(|way| !text(at(handler, way), "host").is_empty())
    };
    let names = those(pod, |c| {
        ["livenessProbe", "readinessProbe", "startupProbe"].iter().any(|p| hosted(at(c, p)))
            || ["postStart", "preStop"].iter().any(|h| hosted(at(at(c, "lifecycle"), h)))
    });
    tell(&names, "probe or lifecycle host", "must not set host in a probe or lifecycle handler", found);
}

fn selinux(pod: &Value, found: &mut Vec<Violation>) {
    let mut told: BTreeSet<String> = BTreeSet::new();
    for context in containers(pod).map(security).chain([pod_security(pod)]) {
        let options = at(context, "seLinuxOptions");
        if !SELINUX_TYPES.contains(&text(options, "type")) {
            told.insert(format!("type {:?}", text(options, "type")));
        }
        for field in ["user", "role"] {
            if !text(options, field).is_empty() {
                told.insert(format!("{field} may not be set"));
            }
        }
    }
    if !told.is_empty() {
        let detail = told.into_iter().collect::<Vec<_>>().join("; ");
        found.push(Violation { reason: "seLinuxOptions", detail });
    }
}

fn seccomp(pod: &Value, found: &mut Vec<Violation>) {
    let unconfined = |context: &Value| text(at(context, "seccompProfile"), "type") == "Unconfined";
    let mut setters = Vec::new();
    if unconfined(pod_security(pod)) {
        setters.push("pod".to_owned());
    }
    let names = those(pod, |c| unconfined(security(c)));
    if !names.is_empty() {
        setters.push(named("container", &names));
    }
    if !setters.is_empty() {
        let what = "must not set securityContext.seccompProfile.type to \"Unconfined\"";
        let detail = format!("{} {what}", setters.join(" and "));
        found.push(Violation { reason: "seccompProfile", detail });
    }
}

fn sysctls(pod: &Value, found: &mut Vec<Violation>) {
    let set = list(pod_security(pod), "sysctls").iter().map(name);
    let unsafe_ones: Vec<&str> = set.filter(|sysctl| !SYSCTLS.contains(sysctl)).collect();
    if !unsafe_ones.is_empty() {
        found.push(Violation { reason: "forbidden sysctls", detail: unsafe_ones.join(", ") });
    }
}

fn host_processes(pod: &Value, found: &mut Vec<Violation>) {
    let host = |context: &Value| at(at(context, "windowsOptions"), "hostProcess") == &Value::Bool(true);
    let names = those(pod, |c| host(security(c)));
    if is_windows(pod) && (host(pod_security(pod)) || !names.is_empty()) {
        let detail = format!("pod or {} must not set hostProcess=true", named("container", &names));
        found.push(Violation { reason: "hostProcess", detail });
    }
}
