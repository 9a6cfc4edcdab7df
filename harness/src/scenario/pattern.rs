//! `mount web/scratch`: commands as `order:` and `never:` name them.

use super::reader::{Reader, did_you_mean};
use nodefold_k8s::InputError;
use std::fmt;

/// Every verb that a command can have (`Action::verb`).
pub const VERBS: [&str; 24] = [
    "mount",
    "unmount",
    "refresh",
    "pull",
    "sandbox",
    "stop-sandbox",
    "remove-sandbox",
    "create",
    "start",
    "stop",
    "kill",
    "remove",
    "resize",
    "resize-pod",
    "hook",
    "start-probe",
    "stop-probe",
    "observe-mounts",
    "observe-runtime",
    "status",
    "event",
    "release",
    "create-mirror",
    "delete-mirror",
];

/// Commands of one verb about one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPattern {
    /// The verb.
    pub verb: String,
    /// The pod's namespace, if the pattern says it.
    pub namespace: Option<String>,
    /// The pod's name; empty for what is about the node.
    pub pod: String,
    /// The container or volume; `None`: any.
    pub thing: Option<String>,
}

impl CommandPattern {
    /// Reads `verb pod/thing`, `verb namespace/pod/thing`, `verb pod` or `verb`.
    pub fn read(field: &Reader<'_>) -> Result<CommandPattern, InputError> {
        const REMEDY: &str = "write `verb pod/thing`, for example `mount web/scratch`";
        let text = field.string()?;
        let mut words = text.split_whitespace();
        let verb = words.next().ok_or_else(|| field.error("an empty command", REMEDY))?;
        if !VERBS.contains(&verb) {
            return Err(field.error(format!("unknown command {verb:?}"), did_you_mean(verb, &VERBS)));
        }
        let target = words.next().unwrap_or("");
        if words.next().is_some() {
            return Err(field.error(format!("{text:?} has more than a verb and a target"), REMEDY));
        }
        let parts: Vec<&str> = target.split('/').collect();
        let (namespace, pod, thing) = match parts.as_slice() {
            [pod] => (None, *pod, None),
            [pod, thing] => (None, *pod, Some((*thing).to_owned())),
            [namespace, pod, thing] => (Some((*namespace).to_owned()), *pod, Some((*thing).to_owned())),
            _ => return Err(field.error(format!("{target:?} names no target"), REMEDY)),
        };
        Ok(CommandPattern { verb: verb.to_owned(), namespace, pod: pod.to_owned(), thing })
    }

    /// A command is one of these. A kill is also a stop: both end the process.
    pub fn matches(&self, verb: &str, namespace: &str, pod: &str, thing: &str) -> bool {
        (self.verb == verb || (self.verb == "stop" && verb == "kill"))
            && (self.pod.is_empty() || self.pod == pod)
            && self.namespace.as_ref().is_none_or(|n| n == namespace)
            && self.thing.as_ref().is_none_or(|t| t == thing)
    }
}

impl fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.verb)?;
        if !self.pod.is_empty() {
            f.write_str(" ")?;
            if let Some(namespace) = &self.namespace {
                write!(f, "{namespace}/")?;
            }
            f.write_str(&self.pod)?;
        }
        match &self.thing {
            Some(thing) => write!(f, "/{thing}"),
            None => Ok(()),
        }
    }
}
