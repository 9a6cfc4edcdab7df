//! Checks expectations. A miss says what was expected, what is, and why: the nearest thing that did not fit.

use super::story::{Given, Story};
use super::subset;
use crate::scenario::{Check, CommandPattern, ExpectedCause, PodRef};
use crate::stage::Stage;
use nodefold_api::Response;
use nodefold_core::ids::PodUid;
use serde_json::Value;

/// An expectation that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// What was expected.
    pub expected: String,
    /// What is.
    pub actual: String,
    /// Why it does not hold.
    pub explanation: String,
}

/// The request just before, and its answer.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The line of its step.
    pub line: usize,
    /// What it asked.
    pub what: String,
    /// The answer.
    pub response: Response,
}

/// Checks one form.
pub fn check(
    check: &Check,
    world: &dyn Stage,
    story: &Story<'_>,
    last: Option<&Answered>,
) -> Result<(), Miss> {
    let miss =
        |actual: String, explanation: String| Err(Miss { expected: check.to_string(), actual, explanation });
    match check {
        Check::Status(pod, subset) => {
            let Some(status) = world.published_status(pod) else {
                return miss(no_pod(world, pod), why_no_pod(last));
            };
            contains(check, subset, &status)
        }
        Check::Allocated(pod, subset) => match allocated(world, pod) {
            Some(object) => contains(check, subset, &object["spec"]),
            None => miss(
                format!("{pod} has no allocation"),
                format!("{} ", no_pod(world, pod)) + &why_no_pod(last),
            ),
        },
        Check::Retained(pod, names) => retained(check, world, pod, names),
        Check::Absent(pod, lists) => absent(check, world, pod, lists, last),
        Check::Gone(pod, expected) => gone(check, world, pod, *expected),
        Check::Instance { pod, container, same, mark } => {
            instance(check, world, story, (pod, container), *same, mark)
        }
        Check::Rejected(causes) => rejected(check, causes, last),
        Check::Accepted(expected) => {
            let Some(last) = last else {
                return miss("no request was made".into(), "put the request before it".into());
            };
            match &last.response {
                Response::Ok { .. } if *expected => Ok(()),
                Response::Rejected(_) if !*expected => Ok(()),
                Response::Ok { .. } => {
                    miss("accepted".into(), format!("the request of line {} ({})", last.line, last.what))
                }
                Response::Rejected(status) => miss(
                    format!("refused ({} {}): {}", status.code, status.reason.as_str(), status.message),
                    format!(
                        "the request of line {} ({}) has these causes: {}",
                        last.line,
                        last.what,
                        causes_of(last)
                    ),
                ),
            }
        }
        Check::Events(expected) => events(check, story, expected),
        Check::Host { pod, absent, present } => host(check, world, pod, absent, present),
        Check::Order(patterns) => order(check, world, story, patterns),
        Check::Never(patterns) => never(check, world, story, patterns),
    }
}

fn contains(check: &Check, subset: &Value, actual: &Value) -> Result<(), Miss> {
    let differences = subset::differences(subset, actual);
    if differences.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = differences.iter().map(ToString::to_string).collect();
    Err(Miss { expected: check.to_string(), actual: actual.to_string(), explanation: told.join("\n") })
}

/// What `/allocated` serves for the newest pod of that name.
fn allocated(world: &dyn Stage, pod: &PodRef) -> Option<Value> {
    let allocated = world.node()?.allocated(world.server().uid(pod)?)?;
    Some(nodefold_k8s::allocated_to_json(&allocated))
}

fn no_pod(world: &dyn Stage, pod: &PodRef) -> String {
    match world.server().uid(pod) {
        Some(_) if world.server().pod(pod).is_some() => format!("{pod} exists"),
        Some(_) => format!("{pod} is not in the API any more"),
        None => {
            let names: Vec<String> = world.server().newest().keys().map(ToString::to_string).collect();
            format!("there never was a pod {pod}; there were: [{}]", names.join(", "))
        }
    }
}

fn why_no_pod(last: Option<&Answered>) -> String {
    match last {
        Some(Answered { line, what, response: Response::Rejected(status) }) => {
            format!("the last request (line {line}, {what}) was refused: {}", status.message)
        }
        Some(Answered { response: Response::Ok { .. }, .. }) | None => String::new(),
    }
}

fn retained(check: &Check, world: &dyn Stage, pod: &PodRef, names: &[String]) -> Result<(), Miss> {
    let known = world.server().uid(pod);
    let allocated = known.and_then(|uid| world.node()?.allocated(uid));
    let mut actual: Vec<String> =
        allocated.iter().flat_map(|a| &a.retained).map(|r| r.volume.name.to_string()).collect();
    let mut expected = names.to_vec();
    actual.sort();
    expected.sort();
    if known.is_some() && actual == expected {
        return Ok(());
    }
    let missing: Vec<&String> = expected.iter().filter(|name| !actual.contains(name)).collect();
    let surplus: Vec<&String> = actual.iter().filter(|name| !expected.contains(name)).collect();
    let explanation = match known {
        Some(_) => format!("not retained: {missing:?}; retained beyond that: {surplus:?}"),
        None => no_pod(world, pod),
    };
    Err(Miss { expected: check.to_string(), actual: format!("[{}]", actual.join(", ")), explanation })
}

fn absent(
    check: &Check,
    world: &dyn Stage,
    pod: &PodRef,
    lists: &[(String, Vec<String>)],
    last: Option<&Answered>,
) -> Result<(), Miss> {
    let Some(status) = world.published_status(pod) else {
        return Err(Miss {
            expected: check.to_string(),
            actual: no_pod(world, pod),
            explanation: why_no_pod(last),
        });
    };
    for (list, names) in lists {
        let key = if list == "conditions" { "type" } else { "name" };
        let entries = status[list].as_array().map(Vec::as_slice).unwrap_or_default();
        let found = entries.iter().find(|entry| names.iter().any(|name| entry[key] == **name));
        if let Some(found) = found {
            return Err(Miss {
                expected: check.to_string(),
                actual: status[list].to_string(),
                explanation: format!("{list} has an entry {}: {found}", found[key]),
            });
        }
    }
    Ok(())
}

fn gone(check: &Check, world: &dyn Stage, pod: &PodRef, expected: bool) -> Result<(), Miss> {
    let uid = world.server().uid(pod);
    let in_api = world.server().pod(pod).is_some() || world.server().is_file(pod);
    let left = uid.map(|uid| world.left_of(uid)).unwrap_or_default();
    let is_gone = uid.is_some() && !in_api && left.is_empty();
    if is_gone == expected {
        return Ok(());
    }
    let (actual, explanation) = match (uid, in_api) {
        (None, _) => (no_pod(world, pod), "a pod that never was can't be gone".to_owned()),
        (Some(_), true) => {
            let phase = world.published_status(pod).map_or(Value::Null, |status| status["phase"].clone());
            let deleting =
                world.server().pod(pod).map_or(Value::Null, |p| p["metadata"]["deletionTimestamp"].clone());
            let actual = format!("{pod} is in the API, phase {phase}, deletionTimestamp {deleting}");
            (
                actual,
                format!("still on the node: [{}]; held: [{}]", left.join(", "), world.holds().join(", ")),
            )
        }
        (Some(_), false) => (
            format!("{pod} is not in the API"),
            if left.is_empty() {
                "nothing is left of it".into()
            } else {
                format!("still on the node: [{}]", left.join(", "))
            },
        ),
    };
    Err(Miss { expected: check.to_string(), actual, explanation })
}

fn instance(
    check: &Check,
    world: &dyn Stage,
    story: &Story<'_>,
    (pod, container): (&PodRef, &str),
    same: bool,
    mark: &str,
) -> Result<(), Miss> {
    let miss =
        |actual: String, explanation: String| Err(Miss { expected: check.to_string(), actual, explanation });
    let Some(moment) = story.moment(mark) else {
        let marks: Vec<&str> = story.marks().collect();
        return miss(
            format!("there is no mark {mark}"),
            format!("the marks so far are: [{}]", marks.join(", ")),
        );
    };
    let then = moment
        .pods
        .get(pod)
        .and_then(|uid| moment.instances.get(&(*uid, container.into())).map(|id| (*uid, id.clone())));
    let now = world.server().uid(pod).and_then(|uid| world.instance(uid, container).map(|id| (uid, id)));
    let show = |instance: &Option<(PodUid, nodefold_core::ids::ContainerId)>| match instance {
        Some((uid, id)) => format!("{id} of pod {uid}"),
        None => "none".into(),
    };
    match (&then, &now) {
        (_, None) => {
            miss(no_instance(world, pod, container), format!("at mark {mark} it was {}", show(&then)))
        }
        (None, Some(_)) if same => {
            miss(show(&now), format!("there was no instance of {container} at mark {mark}"))
        }
        (before, after) if (before == after) == same => Ok(()),
        _ => miss(
            format!("{} (at mark {mark}: {})", show(&now), show(&then)),
            commands_about(story, pod, container),
        ),
    }
}

fn no_instance(world: &dyn Stage, pod: &PodRef, container: &str) -> String {
    match world.server().uid(pod) {
        Some(_) => format!("{pod} never had an instance of a container {container}"),
        None => no_pod(world, pod),
    }
}

/// What was commanded about a container since the last mark.
fn commands_about(story: &Story<'_>, pod: &PodRef, thing: &str) -> String {
    let about: Vec<String> = story
        .commands()
        .iter()
        .filter(|given| given.pod == pod.name && given.namespace == pod.namespace && given.thing == thing)
        .map(|given| format!("{} {given}", story.clock(given.at)))
        .collect();
    match about.as_slice() {
        [] => format!("no command was given about it {}", story.since()),
        _ => format!("commands about it {}: {}", story.since(), about.join(", ")),
    }
}

fn causes_of(last: &Answered) -> String {
    let causes: Vec<String> = last
        .response
        .causes()
        .iter()
        .map(|c| format!("{} {} ({})", c.field, c.reason.as_str(), c.message))
        .collect();
    if causes.is_empty() { "none".into() } else { causes.join("; ") }
}

/// Exactly these causes, as a set: two rules that refuse one field for one reason are one cause.
fn rejected(check: &Check, expected: &[ExpectedCause], last: Option<&Answered>) -> Result<(), Miss> {
    let miss =
        |actual: String, explanation: String| Err(Miss { expected: check.to_string(), actual, explanation });
    let Some(last) = last else {
        return miss("no request was made".into(), "put the request before it".into());
    };
    let status = match &last.response {
        Response::Rejected(status) => status,
        Response::Ok { .. } => {
            return miss(
                "accepted".into(),
                format!("the request of line {} ({}) broke no rule", last.line, last.what),
            );
        }
    };
    let fits = |expected: &ExpectedCause, field: &str, reason: &str| {
        expected.field.as_deref().is_none_or(|f| f == field)
            && expected.reason.as_deref().is_none_or(|r| r == reason)
    };
    let missing: Vec<String> = expected
        .iter()
        .filter(|e| !status.causes.iter().any(|c| fits(e, &c.field, c.reason.as_str())))
        .map(|e| {
            let same_field = status.causes.iter().find(|c| Some(c.field.as_str()) == e.field.as_deref());
            let same_reason = status.causes.iter().find(|c| Some(c.reason.as_str()) == e.reason.as_deref());
            match (same_field, same_reason) {
                (Some(near), _) => {
                    format!("{e} is no cause; the field is refused with {}", near.reason.as_str())
                }
                (None, Some(near)) => format!("{e} is no cause; that reason is given for {}", near.field),
                (None, None) => format!("{e} is no cause"),
            }
        })
        .collect();
    let surplus: Vec<String> = status
        .causes
        .iter()
        .filter(|c| !expected.iter().any(|e| fits(e, &c.field, c.reason.as_str())))
        .map(|c| format!("{} {} was not expected: {}", c.field, c.reason.as_str(), c.message))
        .collect();
    if missing.is_empty() && surplus.is_empty() {
        return Ok(());
    }
    let actual = format!("refused ({}): {}", status.code, causes_of(last));
    miss(actual, missing.into_iter().chain(surplus).collect::<Vec<_>>().join("\n"))
}

/// A Kubernetes event has what is expected; a message may be a part of it.
fn event_fits(expected: &Value, actual: &Value) -> bool {
    let Some(fields) = expected.as_object() else { return false };
    fields.iter().all(|(key, value)| match (key.as_str(), value, &actual[key]) {
        ("message", Value::String(part), Value::String(whole)) => whole.contains(part.as_str()),
        (_, expected, actual) => expected == actual,
    })
}

fn events(check: &Check, story: &Story<'_>, expected: &[Value]) -> Result<(), Miss> {
    let recorded = story.events();
    let mut from = 0;
    for (i, wanted) in expected.iter().enumerate() {
        match recorded[from..].iter().position(|event| event_fits(wanted, event)) {
            Some(found) => from += found + 1,
            None => {
                let show =
                    |event: &Value| format!("{} ({})", plain(&event["reason"]), plain(&event["message"]));
                let actual: Vec<String> = recorded.iter().map(show).collect();
                let after = match i.checked_sub(1) {
                    Some(before) => format!(" after {}", expected[before]),
                    None => String::new(),
                };
                let earlier = recorded[..from].iter().any(|event| event_fits(wanted, event));
                let hint = if earlier { "; it was recorded, but earlier" } else { "" };
                return Err(Miss {
                    expected: check.to_string(),
                    actual: if actual.is_empty() { "no events".into() } else { actual.join(", ") },
                    explanation: format!("{wanted} was not recorded{after} {}{hint}", story.since()),
                });
            }
        }
    }
    Ok(())
}

fn plain(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn host(
    check: &Check,
    world: &dyn Stage,
    pod: &PodRef,
    absent: &[String],
    present: &[String],
) -> Result<(), Miss> {
    let miss =
        |actual: String, explanation: String| Err(Miss { expected: check.to_string(), actual, explanation });
    let Some(uid) = world.server().uid(pod) else { return miss(no_pod(world, pod), String::new()) };
    let there: Vec<String> = world.volumes_on_host(uid).iter().map(ToString::to_string).collect();
    let surplus: Vec<&String> = absent.iter().filter(|name| there.contains(name)).collect();
    let missing: Vec<&String> = present.iter().filter(|name| !there.contains(name)).collect();
    if surplus.is_empty() && missing.is_empty() {
        return Ok(());
    }
    miss(
        format!("on the host: [{}]", there.join(", ")),
        format!("on the host but should not be: {surplus:?}; not on the host but should be: {missing:?}"),
    )
}

/// A pattern without a namespace means `default`, as elsewhere in a story; any other only while `default` never had a pod of
/// that name.
fn fits(world: &dyn Stage, pattern: &CommandPattern, given: &Given) -> bool {
    let in_default =
        || world.server().uid(&PodRef { namespace: "default".to_owned(), name: pattern.pod.clone() });
    pattern.matches(given.verb, &given.namespace, &given.pod, &given.thing)
        && (pattern.namespace.is_some() || given.namespace == "default" || in_default().is_none())
}

fn order(
    check: &Check,
    world: &dyn Stage,
    story: &Story<'_>,
    patterns: &[CommandPattern],
) -> Result<(), Miss> {
    let given = story.commands();
    let mut from = 0;
    for (i, pattern) in patterns.iter().enumerate() {
        if let Some(found) = given[from..].iter().position(|g| fits(world, pattern, g)) {
            from += found + 1;
            continue;
        }
        let about: Vec<String> = given
            .iter()
            .filter(|g| patterns.iter().any(|p| p.pod == g.pod && p.thing.as_deref() == Some(&*g.thing)))
            .map(|g| format!("{} {g}", story.clock(g.at)))
            .collect();
        let last_found = i.checked_sub(1).map(|before| (&patterns[before], &given[from - 1]));
        let after = match last_found {
            Some((before, at)) => format!(" after `{before}` (at {})", story.clock(at.at)),
            None => String::new(),
        };
        let earlier = match given[..from].iter().rev().find(|g| fits(world, pattern, g)) {
            Some(early) => format!("; it was given, but earlier, at {}", story.clock(early.at)),
            None => String::new(),
        };
        let instead: Vec<String> =
            given[from..].iter().filter(|g| g.pod == pattern.pod).take(5).map(ToString::to_string).collect();
        let instead = if instead.is_empty() {
            "nothing came after that for the pod".into()
        } else {
            format!("what came instead: {}", instead.join(", "))
        };
        return Err(Miss {
            expected: check.to_string(),
            actual: if about.is_empty() {
                format!("no such commands {}", story.since())
            } else {
                about.join(", ")
            },
            explanation: format!("`{pattern}` was not given{after} {}{earlier}; {instead}", story.since()),
        });
    }
    Ok(())
}

fn never(
    check: &Check,
    world: &dyn Stage,
    story: &Story<'_>,
    patterns: &[CommandPattern],
) -> Result<(), Miss> {
    for pattern in patterns {
        if let Some(given) = story.commands().iter().find(|g| fits(world, pattern, g)) {
            return Err(Miss {
                expected: check.to_string(),
                actual: format!("`{given}` was given at {}", story.clock(given.at)),
                explanation: format!("`{pattern}` must not be given {}", story.since()),
            });
        }
    }
    Ok(())
}
