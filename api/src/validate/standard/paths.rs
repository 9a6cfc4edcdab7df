//! Paths inside a volume: S14, S23, S27, S29, S30.

use crate::validate::Errors;
use serde_json::Value;

/// Relative, without `..`.
pub(super) fn local(target: &str, path: &str, errors: &mut Errors) {
    if target.starts_with('/') {
        errors.invalid(path, &Value::from(target), "must be a relative path");
    }
    no_backsteps(target, path, errors);
}

/// The same, and not beginning with `..`, where a volume keeps its own links.
pub(super) fn local_and_free(target: &str, path: &str, errors: &mut Errors) {
    local(target, path, errors);
    if target.starts_with("..") && target != ".." && !target.starts_with("../") {
        errors.invalid(path, &Value::from(target), "must not start with '..'");
    }
}

/// No element of the path is `..`.
pub(super) fn no_backsteps(target: &str, path: &str, errors: &mut Errors) {
    if has_backsteps(target) {
        errors.invalid(path, &Value::from(target), "must not contain '..'");
    }
}

pub(super) fn has_backsteps(target: &str) -> bool {
    target.split('/').any(|element| element == "..")
}

/// The permission bits of a file: S22.
pub(super) fn mode(value: &Value, path: &str, errors: &mut Errors) {
    if value.as_i64().is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        errors.of("S22").invalid(path, value, "must be a number between 0 and 0777 (octal), both inclusive");
    }
}
