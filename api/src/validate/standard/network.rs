//! How a pod finds others: its resolver's configuration, names of hosts that it is given, and conditions that make it ready.

use crate::validate::Errors;
use crate::validate::names::{SUBDOMAIN, qualified_name_problems, subdomain_problems};
use crate::view::{at, list, name, spec_list, text};
use serde_json::Value;
use std::net::IpAddr;

/// Limits of a C library's resolver, as Kubernetes widened them.
const SERVERS: usize = 3;
const SEARCHES: usize = 32;
const SEARCH_LETTERS: usize = 2048;

fn address(value: &Value, path: String, errors: &mut Errors) {
    if value.as_str().is_none_or(|text| text.parse::<IpAddr>().is_err()) {
        let given = Value::from(value.as_str().unwrap_or_default());
        errors.invalid(path, &given, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
    }
}

pub(super) fn dns(pod: &Value, errors: &mut Errors) {
    errors.judge("");
    let (spec, path) = (at(pod, "spec"), "spec.dnsConfig");
    let config = at(spec, "dnsConfig");
    let servers = list(config, "nameservers");
    if text(spec, "dnsPolicy") == "None" {
        if config.is_null() {
            return errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.required(format!("{path}.nameservers"), detail);
        }
    }
    if servers.len() > SERVERS {
        let detail = format!("must not have more than {SERVERS} nameservers");
        errors.invalid(format!("{path}.nameservers"), at(config, "nameservers"), &detail);
    }
    for (i, server) in servers.iter().enumerate() {
        address(server, format!("{path}.nameservers[{i}]"), errors);
    }
    let searches = list(config, "searches");
    if searches.len() > SEARCHES {
        let detail = format!("must not have more than {SEARCHES} search paths");
        errors.invalid(format!("{path}.searches"), at(config, "searches"), &detail);
    }
    let words: Vec<&str> = searches.iter().filter_map(Value::as_str).collect();
    if words.join(" ").len() > SEARCH_LETTERS {
        let detail = format!(
            "must not have more than {SEARCH_LETTERS} characters (including spaces) in the search list"
        );
        errors.invalid(format!("{path}.searches"), at(config, "searches"), &detail);
    }
    for (i, search) in words.iter().enumerate().filter(|(_, search)| **search != ".") {
        for problem in search_problems(search.strip_suffix('.').unwrap_or(search)) {
            errors.invalid(format!("{path}.searches[{i}]"), &Value::from(*search), problem);
        }
    }
    for (i, option) in list(config, "options").iter().enumerate() {
        if name(option).is_empty() {
            errors.required(format!("{path}.options[{i}]"), "must not be empty");
        }
    }
}

/// A subdomain whose labels may have underscores (`RelaxedDNSSearchValidation`).
fn search_problems(text: &str) -> Vec<&'static str> {
    let relaxed = text.split('.').all(|label| {
        let rest = label.strip_prefix('_').unwrap_or(label).replace('_', "-");
        !label.ends_with('_') && subdomain_problems(&rest).is_empty()
    });
    let mut problems = subdomain_problems(text);
    problems.retain(|problem| !relaxed || *problem != SUBDOMAIN);
    problems
}

pub(super) fn host_aliases(pod: &Value, errors: &mut Errors) {
    errors.judge("");
    for (i, alias) in spec_list(pod, "hostAliases").iter().enumerate() {
        let path = format!("spec.hostAliases[{i}]");
        address(at(alias, "ip"), format!("{path}.ip"), errors);
        for (k, host) in list(alias, "hostnames").iter().enumerate() {
            for problem in host.as_str().map(subdomain_problems).unwrap_or_default() {
                errors.invalid(format!("{path}.hostnames[{k}]"), host, problem);
            }
        }
    }
}

pub(super) fn readiness_gates(pod: &Value, errors: &mut Errors) {
    errors.judge("");
    for (i, gate) in spec_list(pod, "readinessGates").iter().enumerate() {
        let condition = text(gate, "conditionType");
        for problem in qualified_name_problems(condition) {
            errors.invalid(
                format!("spec.readinessGates[{i}].conditionType"),
                &Value::from(condition),
                &problem,
            );
        }
    }
}
