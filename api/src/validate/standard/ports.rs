//! S5, S6: container ports.

use crate::validate::Errors;
use crate::validate::names::port_name_problems;
use crate::view::{at, list, name, text};
use serde_json::Value;
use std::collections::BTreeSet;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const RANGE: &str = "must be between 1 and 65535, inclusive";

/// S5.
pub(super) fn all(container: &Value, path: &str, errors: &mut Errors) {
    errors.judge("S5");
    let mut names = BTreeSet::new();
    for (k, port) in list(container, "ports").iter().enumerate() {
        let path = format!("{path}.ports[{k}]");
        let problems = port_name_problems(name(port));
        if !name(port).is_empty() && !problems.is_empty() {
            for problem in problems {
                errors.of("S5").invalid(format!("{path}.name"), &Value::from(name(port)), problem);
            }
        } else if !name(port).is_empty() && !names.insert(name(port)) {
            errors.of("S5").duplicate(format!("{path}.name"), name(port), "");
        }
        match at(port, "containerPort").as_i64() {
            None | Some(0) => errors.of("S5").required(format!("{path}.containerPort"), ""),
            Some(_) => number(at(port, "containerPort"), format!("{path}.containerPort"), errors),
        }
        if at(port, "hostPort").as_i64().is_some_and(|p| p != 0) {
            number(at(port, "hostPort"), format!("{path}.hostPort"), errors);
        }
        super::one_of(at(port, "protocol"), format!("{path}.protocol"), &PROTOCOLS, errors);
    }
}

/// A port's number.
fn number(port: &Value, path: String, errors: &mut Errors) {
    if port.as_i64().is_none_or(|p| !(1..=65_535).contains(&p)) {
        errors.invalid(path, port, RANGE);
    }
}

/// A port by number or by name, where a probe or hook connects.
pub(super) fn number_or_name(port: &Value, path: &str, errors: &mut Errors) {
    match port.as_str() {
        Some(text) => {
            for problem in port_name_problems(text) {
                errors.invalid(path, port, problem);
            }
        }
        None if port.is_null() => errors.invalid(path, &Value::from(0), RANGE),
        None => number(port, path.to_owned(), errors),
    }
}

/// S6: a host's port is one container's. Containers that run one after the other don't clash.
pub(super) fn host_ports_apart<'c>(
    containers: impl Iterator<Item = (usize, &'c Value)>,
    path: &str,
    errors: &mut Errors,
) {
    let mut taken = BTreeSet::new();
    for (i, container) in containers {
        for (k, port) in list(container, "ports").iter().enumerate() {
            let Some(number) = at(port, "hostPort").as_i64().filter(|p| *p != 0) else { continue };
            let key = format!("{}/{}/{number}", text(port, "protocol"), text(port, "hostIP"));
            if taken.contains(&key) {
                errors.of("S6").duplicate(format!("{path}[{i}].ports[{k}].hostPort"), &key, "");
            } else {
                taken.insert(key);
            }
        }
    }
}
