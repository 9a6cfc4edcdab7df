//! S7–S9 and W10: variables, and what they are taken from.

use super::is_set;
use crate::validate::Errors;
use crate::validate::names::{is_config_key, is_dns_subdomain, is_qualified_name, is_variable_name};
use crate::view::{at, list, name, named, spec_list, text};
use nodefold_k8s::quantity::Quantity;
use serde_json::Value;

const VARIABLE_NAME: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
const SUBDOMAIN: &str = crate::validate::names::SUBDOMAIN;
const SOURCES: [&str; 5] = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

pub(super) fn all(pod: &Value, container: &Value, path: &str, errors: &mut Errors) {
    for (k, variable) in list(container, "env").iter().enumerate() {
        errors.judge("S7");
        let path = format!("{path}.env[{k}]");
        match name(variable) {
            "" => errors.of("S7").required(format!("{path}.name"), ""), // S7
            given if !is_variable_name(given) => {
                errors.invalid(format!("{path}.name"), &Value::from(given), VARIABLE_NAME);
            }
            _ => {}
        }
        if is_set(variable, "valueFrom") {
            value_from(pod, variable, &format!("{path}.valueFrom"), errors);
        }
    }
    whole_objects(container, &format!("{path}.envFrom"), errors);
}

/// S8.
fn value_from(pod: &Value, variable: &Value, path: &str, errors: &mut Errors) {
    errors.judge("S8");
    let from = at(variable, "valueFrom");
    let given: Vec<&str> = SOURCES.into_iter().filter(|source| is_set(from, source)).collect();
    for source in &given {
        let (of, path) = (at(from, source), format!("{path}.{source}"));
        match *source {
            "fieldRef" => field_ref(of, &FIELDS, &path, errors),
            "resourceFieldRef" => resource_field_ref(of, false, &path, errors),
            "fileKeyRef" => file_key(pod, of, &path, errors),
            _ => object_key(of, &path, errors),
        }
    }
    let detail = match given.len() {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !text(variable, "value").is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.of("S8").invalid(path, &Value::from(""), detail);
}

/// A key of a secret or configMap.
fn object_key(of: &Value, path: &str, errors: &mut Errors) {
    if !is_dns_subdomain(name(of)) {
        errors.invalid(format!("{path}.name"), &Value::from(name(of)), SUBDOMAIN);
    }
    match text(of, "key") {
        "" => errors.required(format!("{path}.key"), ""),
        key if !is_config_key(key) => errors.invalid(format!("{path}.key"), &Value::from(key), CONFIG_KEY),
        _ => {}
    }
}

/// W10: a file's key is in an emptyDir.
fn file_key(pod: &Value, of: &Value, path: &str, errors: &mut Errors) {
    for field in ["key", "path"] {
        if text(of, field).is_empty() {
            errors.of("W10").required(format!("{path}.{field}"), "");
        }
    }
    super::paths::local_and_free(text(of, "path"), &format!("{path}.path"), errors);
    let wanted = text(of, "volumeName");
    let field = format!("{path}.volumeName");
    match named(spec_list(pod, "volumes"), wanted) {
        None => errors.of("W10").not_found(field, wanted),
        Some(volume) if !is_set(volume, "emptyDir") => {
            errors.of("W10").invalid(field, &Value::from(wanted), "must name an emptyDir volume");
        }
        Some(_) => {}
    }
}

/// S9. Kubernetes tells a wrong number of sources at the list, without an index.
fn whole_objects(container: &Value, path: &str, errors: &mut Errors) {
    errors.judge("S9");
    for (k, source) in list(container, "envFrom").iter().enumerate() {
        let prefix = text(source, "prefix");
        if !prefix.is_empty() && !is_variable_name(prefix) {
            errors.of("S9").invalid(format!("{path}[{k}].prefix"), &Value::from(prefix), VARIABLE_NAME);
        }
        let given = ["configMapRef", "secretRef"].into_iter().filter(|kind| is_set(source, kind));
        let mut count = 0;
        for kind in given {
            count += 1;
            let field = format!("{path}[{k}].{kind}.name");
            match name(at(source, kind)) {
                "" => errors.of("S9").required(field, ""),
                wanted if !is_dns_subdomain(wanted) => {
                    errors.of("S9").invalid(field, &Value::from(wanted), SUBDOMAIN)
                }
                _ => {}
            }
        }
        let detail = match count {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.of("S9").invalid(path, &Value::from(""), detail);
    }
}

/// A field of the pod.
pub(super) fn field_ref(of: &Value, supported: &[&str], path: &str, errors: &mut Errors) {
    let field = text(of, "fieldPath");
    if text(of, "apiVersion").is_empty() {
        return errors.required(format!("{path}.apiVersion"), "");
    }
    if field.is_empty() {
        return errors.required(format!("{path}.fieldPath"), "");
    }
    let subscripted = field.strip_suffix("']").and_then(|rest| rest.split_once("['"));
    match subscripted {
        Some(("metadata.labels" | "metadata.annotations", key)) if is_qualified_name(key) => {}
        Some((map @ ("metadata.labels" | "metadata.annotations"), key)) => {
            errors.invalid(path, &Value::from(key), &format!("is no key of {map}"));
        }
        Some((other, _)) => errors.invalid(path, &Value::from(other), "does not support subscript"),
        None if !supported.contains(&field) => {
            errors.not_supported(format!("{path}.fieldPath"), &Value::from(field), supported);
        }
        None => {}
    }
}

const AMOUNTS: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const BYTE_DIVISORS: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";

/// An amount that a container asks for; in a volume it must say which container's.
pub(super) fn resource_field_ref(of: &Value, in_volume: bool, path: &str, errors: &mut Errors) {
    let resource = text(of, "resource");
    let hugepages = ["limits.hugepages-", "requests.hugepages-"].iter().any(|p| resource.starts_with(p));
    if in_volume && text(of, "containerName").is_empty() {
        errors.required(format!("{path}.containerName"), "");
    } else if resource.is_empty() {
        errors.required(format!("{path}.resource"), "");
    } else if !AMOUNTS.contains(&resource) && !hugepages {
        errors.not_supported(format!("{path}.resource"), &Value::from(resource), &AMOUNTS);
    }
    let Ok(divisor) = Quantity::from_json(at(of, "divisor")) else { return };
    if !divisor.is_positive() && !divisor.is_negative() {
        return; // none given
    }
    let divisor = divisor.to_string();
    let fits = |allowed: &str| allowed.split(", ").any(|one| one == divisor);
    let wrong = match resource {
        "limits.cpu" | "requests.cpu" if !fits("1m, 1") => {
            "only divisor's values 1m and 1 are supported with the cpu resource".to_owned()
        }
        "limits.memory" | "requests.memory" if !fits(BYTE_DIVISORS) => {
            format!("only divisor's values {BYTE_DIVISORS} are supported with the memory resource")
        }
        "limits.ephemeral-storage" | "requests.ephemeral-storage" if !fits(BYTE_DIVISORS) => format!(
            "only divisor's values {BYTE_DIVISORS} are supported with the local ephemeral storage resource"
        ),
        _ if hugepages && !fits(BYTE_DIVISORS) => {
            format!("only divisor's values {BYTE_DIVISORS} are supported with the hugepages resource")
        }
        _ => return,
    };
    errors.invalid(format!("{path}.divisor"), &Value::from(resource), &wrong);
}
