//! S38–S40: what a container may do.

use super::is_set;
use super::paths::local;
use crate::ApiConfig;
use crate::validate::Errors;
use crate::view::{CONTAINER_LISTS, at, list, spec_list, text};
use serde_json::Value;

const ID_RANGE: &str = "must be between 0 and 2147483647, inclusive";

/// S38, S39.
pub(super) fn context(pod: &Value, container: &Value, config: &ApiConfig, path: &str, errors: &mut Errors) {
    let context = at(container, "securityContext");
    if context.is_null() {
        return;
    }
    errors.judge("S38");
    let path = format!("{path}.securityContext");
    let privileged = at(context, "privileged") == &Value::Bool(true);
    if privileged && !config.allow_privileged {
        errors.of("S39").forbidden(format!("{path}.privileged"), "disallowed by cluster policy");
    }
    for field in ["runAsUser", "runAsGroup"] {
        id(at(context, field), format!("{path}.{field}"), errors);
    }
    proc_mount(pod, context, &path, errors);
    profile(at(context, "seccompProfile"), "seccomp", &format!("{path}.seccompProfile"), errors);
    if at(context, "allowPrivilegeEscalation") == &Value::Bool(false) {
        if privileged {
            let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.invalid(path.as_str(), context, detail);
        }
        if list(at(context, "capabilities"), "add").iter().any(|c| c == "CAP_SYS_ADMIN") {
            let detail =
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.invalid(path.as_str(), context, detail);
        }
    }
    profile(at(context, "appArmorProfile"), "AppArmor", &format!("{path}.appArmorProfile"), errors);
}

/// A user's or group's number.
pub(super) fn id(id: &Value, path: String, errors: &mut Errors) {
    if id.as_i64().is_some_and(|id| !(0..=i64::from(i32::MAX)).contains(&id)) {
        errors.invalid(path, id, ID_RANGE);
    }
}

fn proc_mount(pod: &Value, context: &Value, path: &str, errors: &mut Errors) {
    let Some(wanted) = at(context, "procMount").as_str() else { return };
    let field = format!("{path}.procMount");
    if !matches!(wanted, "Default" | "Unmasked") {
        errors.not_supported(field.as_str(), &Value::from(wanted), &["Default", "Unmasked"]);
    }
    let own_users = at(at(pod, "spec"), "hostUsers") == &Value::Bool(false);
    if wanted == "Unmasked" && !own_users {
        errors.invalid(field, &Value::from(wanted), "`hostUsers` must be false to use `Unmasked`");
    }
}

/// A seccomp or AppArmor profile: its type, and a file's name exactly if it is `Localhost`.
pub(super) fn profile(profile: &Value, what: &str, path: &str, errors: &mut Errors) {
    if profile.is_null() {
        return;
    }
    let kinds = ["Localhost", "RuntimeDefault", "Unconfined"];
    let (kind, file) = (text(profile, "type"), at(profile, "localhostProfile"));
    if kind.is_empty() {
        let set = if what == "seccomp" { "seccompProfile" } else { "appArmorProfile" };
        errors.required(format!("{path}.type"), &format!("type is required when {set} is set"));
    } else if !kinds.contains(&kind) {
        errors.not_supported(format!("{path}.type"), at(profile, "type"), &kinds);
    }
    let field = format!("{path}.localhostProfile");
    match (kind == "Localhost", file.as_str()) {
        (true, None | Some("")) => {
            errors.required(field, &format!("must be set when {what} type is Localhost"));
        }
        (true, Some(given)) if what == "AppArmor" && given.trim() != given => {
            errors.invalid(field, file, "must not be padded with whitespace");
        }
        (true, Some(given)) if what == "seccomp" => local(given, &field, errors),
        (false, Some(_)) => {
            errors.invalid(field, file, &format!("can only be set when {what} type is Localhost"));
        }
        (true, Some(_)) | (false, None) => {}
    }
}

/// S40.
pub(super) fn of_linux(pod: &Value, errors: &mut Errors) {
    let detail = "windows options cannot be set for a linux pod";
    if is_set(at(at(pod, "spec"), "securityContext"), "windowsOptions") {
        errors.of("S40").forbidden("spec.securityContext.windowsOptions", detail);
    }
    // In the order in which Kubernetes visits containers: inits first.
    for (list, path) in [CONTAINER_LISTS[1], CONTAINER_LISTS[0], CONTAINER_LISTS[2]] {
        for (i, container) in spec_list(pod, list).iter().enumerate() {
            if is_set(at(container, "securityContext"), "windowsOptions") {
                errors.of("S40").forbidden(format!("{path}[{i}].securityContext.windowsOptions"), detail);
            }
        }
    }
}
