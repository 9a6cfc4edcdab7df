//! `expect:`: what must be true at a moment. One step may hold several forms about the same pod; all must hold.

use super::pattern::CommandPattern;
use super::reader::{Reader, did_you_mean};
use super::step::PodRef;
use nodefold_k8s::{FieldProblem, InputError, ProblemReason};
use serde_json::{Value, json};
use std::fmt;

/// A cause of a refusal. What is not named may be anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedCause {
    /// The field's path.
    pub field: Option<String>,
    /// The reason as Kubernetes spells it.
    pub reason: Option<String>,
}

impl fmt::Display for ExpectedCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}",
            self.field.as_deref().unwrap_or("(any field)"),
            self.reason.as_deref().unwrap_or("(any reason)")
        )
    }
}

/// One thing that must be true.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// The pod's published status has this in it.
    Status(PodRef, Value),
    /// The spec that `/allocated` serves has this in it.
    Allocated(PodRef, Value),
    /// Exactly these volumes are retained.
    Retained(PodRef, Vec<String>),
    /// The status' lists have no entries of these names.
    Absent(PodRef, Vec<(String, Vec<String>)>),
    /// The pod is released and removed from the API, or is not.
    Gone(PodRef, bool),
    /// The container's instance is the one it was at the mark, or is another.
    Instance {
        /// In which pod.
        pod: PodRef,
        /// Which container.
        container: String,
        /// The same, or a new one.
        same: bool,
        /// Compared with this moment.
        mark: String,
    },
    /// The request just before was refused with exactly these causes.
    Rejected(Vec<ExpectedCause>),
    /// It was accepted, or was not.
    Accepted(bool),
    /// These Kubernetes events were recorded in this order since the last mark.
    Events(Vec<Value>),
    /// What is on the host for that pod.
    Host {
        /// Which pod.
        pod: PodRef,
        /// Volumes that must not be there.
        absent: Vec<String>,
        /// Volumes that must be there.
        present: Vec<String>,
    },
    /// These commands were given in this order since the last mark.
    Order(Vec<CommandPattern>),
    /// None of these was given since the last mark.
    Never(Vec<CommandPattern>),
}

/// What must be true at a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// All of it.
    pub checks: Vec<Check>,
}

const FORMS: [&str; 12] = [
    "status",
    "allocated",
    "retained",
    "absent",
    "gone",
    "sameInstance",
    "newInstance",
    "rejected",
    "accepted",
    "events",
    "host",
    "order",
];

/// The lists of a status whose entries `absent` may name.
const STATUS_LISTS: [&str; 5] = [
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
    "volumeStatuses",
    "conditions",
];

impl Expectation {
    pub(super) fn read(field: &Reader<'_>) -> Result<Expectation, InputError> {
        let mut allowed = vec!["pod", "namespace", "container", "never"];
        allowed.extend(FORMS);
        field.only(&allowed)?;
        let pod = PodRef::read(field)?;
        let container = field.optional_string("container")?;
        let needs_pod = |form: &Reader<'_>| {
            pod.clone().ok_or_else(|| {
                form.error("this is about a pod, and none is named", "add `pod: NAME` beside it")
            })
        };
        let mut checks = Vec::new();
        for (key, form) in field.entries()? {
            checks.push(match key {
                "pod" | "namespace" | "container" => continue,
                "status" => {
                    known_fields(&form, "status")?;
                    Check::Status(needs_pod(&form)?, form.value.clone())
                }
                "allocated" => {
                    known_fields(&form, "spec")?;
                    Check::Allocated(needs_pod(&form)?, form.value.clone())
                }
                "retained" => Check::Retained(needs_pod(&form)?, form.strings()?),
                "absent" => Check::Absent(needs_pod(&form)?, absent_lists(&form)?),
                "gone" => Check::Gone(needs_pod(&form)?, form.boolean()?),
                "sameInstance" | "newInstance" => Check::Instance {
                    pod: needs_pod(&form)?,
                    container: container.clone().ok_or_else(|| {
                        form.error(
                            "this is about a container, and none is named",
                            "add `container: NAME` beside it",
                        )
                    })?,
                    same: key == "sameInstance",
                    mark: form.string()?,
                },
                "rejected" => Check::Rejected(form.items()?.iter().map(cause).collect::<Result<_, _>>()?),
                "accepted" => Check::Accepted(form.boolean()?),
                "events" => Check::Events(form.items()?.iter().map(event).collect::<Result<_, _>>()?),
                "host" => host(&form)?,
                "order" => Check::Order(patterns(&form)?),
                "never" => Check::Never(patterns(&form)?),
                other => {
                    return Err(
                        form.error(format!("unknown expectation {other:?}"), did_you_mean(other, &FORMS))
                    );
                }
            });
        }
        if checks.is_empty() {
            return Err(
                field.error("nothing is expected", format!("use one of: {}, never", FORMS.join(", ")))
            );
        }
        let uses_container = checks.iter().any(|check| matches!(check, Check::Instance { .. }));
        match field.get("container")? {
            Some(unused) if !uses_container => Err(unused.error(
                "`container` goes with `sameInstance` or `newInstance`",
                "for its status, write `status: {containerStatuses: [{name: ...}]}`",
            )),
            Some(_) | None => Ok(Expectation { checks }),
        }
    }
}

/// A part of a pod, in which a misspelt field would be missed for ever, or never.
fn known_fields(form: &Reader<'_>, part: &str) -> Result<(), InputError> {
    if let Some(again) = form.get(part)? {
        return Err(again.error(
            format!("{part:?} once more"),
            "what is expected here is inside of it already: leave this level out",
        ));
    }
    let problems = nodefold_k8s::check_patch_fields(&json!({part: form.value}), "Pod");
    let unknown = problems.into_iter().find(|problem| problem.reason == ProblemReason::UnknownField);
    match unknown {
        Some(problem) => {
            let path = problem.path.trim_start_matches(part).trim_start_matches('.').to_owned();
            Err(form.locate(&FieldProblem { path, ..problem }))
        }
        None => Ok(()),
    }
}

fn absent_lists(form: &Reader<'_>) -> Result<Vec<(String, Vec<String>)>, InputError> {
    form.only(&STATUS_LISTS)?;
    form.entries()?.into_iter().map(|(key, names)| Ok((key.to_owned(), names.strings()?))).collect()
}

fn cause(item: &Reader<'_>) -> Result<ExpectedCause, InputError> {
    item.only(&["field", "reason"])?;
    let (field, reason) = (item.optional_string("field")?, item.optional_string("reason")?);
    if let Some(reason) = &reason {
        const REASONS: [&str; 11] = [
            "FieldValueRequired",
            "FieldValueInvalid",
            "FieldValueDuplicate",
            "FieldValueForbidden",
            "FieldValueNotFound",
            "FieldValueNotSupported",
            "FieldValueTooLong",
            "FieldValueTooMany",
            "FieldValueTypeInvalid",
            "InternalError",
            "UnexpectedServerResponse",
        ];
        if !REASONS.contains(&reason.as_str()) {
            return Err(
                item.error(format!("{reason:?} is no cause's reason"), did_you_mean(reason, &REASONS))
            );
        }
    }
    Ok(ExpectedCause { field, reason })
}

fn event(item: &Reader<'_>) -> Result<Value, InputError> {
    item.only(&["reason", "type", "message", "pod", "namespace", "container"])?;
    item.require("reason", "an event is known by its reason: `{reason: FailedMount}`")?;
    Ok(item.value.clone())
}

fn host(form: &Reader<'_>) -> Result<Check, InputError> {
    form.only(&["pod", "namespace", "absent", "present"])?;
    let pod = PodRef::read(form)?
        .ok_or_else(|| form.error("\"pod\" is missing", "name the pod whose host side is meant"))?;
    let names =
        |key: &str| form.get(key)?.map(|list| list.strings()).transpose().map(Option::unwrap_or_default);
    Ok(Check::Host { pod, absent: names("absent")?, present: names("present")? })
}

fn patterns(form: &Reader<'_>) -> Result<Vec<CommandPattern>, InputError> {
    form.items()?.iter().map(CommandPattern::read).collect()
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, check) in self.checks.iter().enumerate() {
            if i > 0 {
                f.write_str(" and ")?;
            }
            write!(f, "{check}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn commands(patterns: &[CommandPattern]) -> String {
            patterns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        }
        match self {
            Check::Status(pod, subset) => write!(f, "status of {pod}: {subset}"),
            Check::Allocated(pod, subset) => write!(f, "allocated of {pod}: {subset}"),
            Check::Retained(pod, names) => write!(f, "retained of {pod}: [{}]", names.join(", ")),
            Check::Absent(pod, lists) => {
                write!(f, "absent from the status of {pod}:")?;
                lists.iter().try_for_each(|(list, names)| write!(f, " {list} [{}]", names.join(", ")))
            }
            Check::Gone(pod, true) => write!(f, "{pod} gone"),
            Check::Gone(pod, false) => write!(f, "{pod} not gone"),
            Check::Instance { pod, container, same, mark } => {
                let which = if *same { "the same" } else { "a new" };
                write!(f, "{container} of {pod}: {which} instance since mark {mark}")
            }
            Check::Rejected(causes) => {
                f.write_str("rejected:")?;
                causes.iter().try_for_each(|cause| write!(f, " [{cause}]"))
            }
            Check::Accepted(true) => f.write_str("accepted"),
            Check::Accepted(false) => f.write_str("not accepted"),
            Check::Events(events) => {
                let texts: Vec<String> = events.iter().map(ToString::to_string).collect();
                write!(f, "events in order: {}", texts.join(", "))
            }
            Check::Host { pod, absent, present } => {
                write!(
                    f,
                    "on the host of {pod}: present [{}], absent [{}]",
                    present.join(", "),
                    absent.join(", ")
                )
            }
            Check::Order(patterns) => write!(f, "order: {}", commands(patterns)),
            Check::Never(patterns) => write!(f, "never: {}", commands(patterns)),
        }
    }
}
