//! S36: hooks and the stop signal; and the ways in which hooks and probes reach a container.

use super::is_set;
use super::ports::number_or_name;
use crate::validate::Errors;
use crate::validate::names::is_header_name;
use crate::view::{at, list, name, text};
use serde_json::Value;

pub(super) fn all(pod: &Value, container: &Value, path: &str, errors: &mut Errors) {
    errors.judge("S36");
    let lifecycle = at(container, "lifecycle");
    let path = format!("{path}.lifecycle");
    for hook in ["postStart", "preStop"] {
        if is_set(lifecycle, hook) {
            let ways = ["exec", "httpGet", "tcpSocket", "sleep"];
            handler(at(lifecycle, hook), &ways, super::grace_seconds(pod), &format!("{path}.{hook}"), errors);
        }
    }
    let signal = at(lifecycle, "stopSignal");
    let field = format!("{path}.stopSignal");
    match (signal.as_str(), text(at(at(pod, "spec"), "os"), "name")) {
        (None, _) => {}
        (Some(_), "") => {
            errors.forbidden(field, "may not be set for containers with empty `spec.os.name`");
        }
        (Some(wanted), "windows") if !matches!(wanted, "SIGKILL" | "SIGTERM") => {
            errors.not_supported(field, signal, &["SIGKILL", "SIGTERM"]);
        }
        (Some(wanted), _) if !is_signal(wanted) => {
            errors.not_supported(field, signal, &SIGNALS);
        }
        (Some(_), _) => {}
    }
}

/// Linux's signals as Kubernetes spells them, real-time ones aside.
const SIGNALS: [&str; 35] = [
    "SIGABRT",
    "SIGALRM",
    "SIGBUS",
    "SIGCHLD",
    "SIGCLD",
    "SIGCONT",
    "SIGFPE",
    "SIGHUP",
    "SIGILL",
    "SIGINT",
    "SIGIO",
    "SIGIOT",
    "SIGKILL",
    "SIGPIPE",
    "SIGPOLL",
    "SIGPROF",
    "SIGPWR",
    "SIGQUIT",
    "SIGSEGV",
    "SIGSTKFLT",
    "SIGSTOP",
    "SIGSYS",
    "SIGTERM",
    "SIGTRAP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGUSR1",
    "SIGUSR2",
    "SIGVTALRM",
    "SIGWINCH",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGRTMIN",
];

fn is_signal(wanted: &str) -> bool {
    let offset = |base: &str, most: u8| {
        let number = wanted.strip_prefix(base).and_then(|n| n.parse::<u8>().ok());
        number.is_some_and(|n| (1..=most).contains(&n))
    };
    SIGNALS.contains(&wanted) || wanted == "SIGRTMAX" || offset("SIGRTMIN+", 15) || offset("SIGRTMAX-", 14)
}

/// Exactly one way, and that one well formed.
pub(super) fn handler(of: &Value, ways: &[&str], grace_seconds: i64, path: &str, errors: &mut Errors) {
    let mut given = ways.iter().filter(|way| is_set(of, way));
    let Some(first) = given.next() else {
        return errors.required(path, "must specify a handler type");
    };
    let (action, at_action) = (at(of, first), format!("{path}.{first}"));
    match *first {
        "exec" if list(action, "command").is_empty() => errors.required(format!("{at_action}.command"), ""),
        "httpGet" => http_get(action, &at_action, errors),
        "tcpSocket" | "grpc" => number_or_name(at(action, "port"), &format!("{at_action}.port"), errors),
        "sleep" => {
            let seconds = at(action, "seconds").as_i64().unwrap_or(0);
            if !(0..=grace_seconds).contains(&seconds) {
                let detail = format!(
                    "must be non-negative and less than terminationGracePeriodSeconds ({grace_seconds})"
                );
                errors.invalid(at_action, &Value::from(seconds), &detail);
            }
        }
        _ => {}
    }
    for other in given {
        errors.forbidden(format!("{path}.{other}"), "may not specify more than 1 handler type");
    }
}

fn http_get(action: &Value, path: &str, errors: &mut Errors) {
    if text(action, "path").is_empty() {
        errors.required(format!("{path}.path"), "");
    }
    number_or_name(at(action, "port"), &format!("{path}.port"), errors);
    let scheme = text(action, "scheme");
    if !matches!(scheme, "HTTP" | "HTTPS") {
        errors.not_supported(format!("{path}.scheme"), &Value::from(scheme), &["HTTP", "HTTPS"]);
    }
    for header in list(action, "httpHeaders") {
        if !is_header_name(name(header)) {
            let detail = "a valid HTTP header must consist of alphanumeric characters or '-' \
                (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
            errors.invalid(format!("{path}.httpHeaders"), &Value::from(name(header)), detail);
        }
    }
}
