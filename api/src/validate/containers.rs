//! C4–C9, C12, C14: the set of containers. C1–C3, C10 and the first half of C11 are rules of any pod
//! (`standard`), C13 is in `qos`. Containers are matched by name, never by index: a reorder is no change
//! (C15).

use super::{Errors, Review};
use crate::view::{STATUS_LISTS, at, list, name, named, only_in, spec_list, status_list};
use serde_json::Value;
use std::collections::BTreeSet;

/// What `/dynamic` may add and remove.
pub(super) fn set(review: &Review<'_>, errors: &mut Errors) {
    let (old, new) = (review.old, review.new);
    let (before, after) = (spec_list(old, "containers"), spec_list(new, "containers"));
    for (i, container) in only_in(after, before) {
        let path = format!("spec.containers[{i}]");
        name_is_free(review, container, &path, errors);
        added(container, &path, errors);
    }
    for (_, container) in only_in(before, after) {
        if let Some((_, resource)) = unsupported_resources(container).into_iter().next() {
            let detail = format!(
                "container {:?} holds {resource}, which can't be given back in place",
                name(container)
            );
            errors.of("C12").forbidden("spec.containers", &detail);
        }
    }
    let names = |pod| spec_list(pod, "initContainers").iter().map(name).collect::<Vec<_>>();
    if names(old) != names(new) {
        let detail = "init containers may not be added, removed or reordered";
        errors.of("C6").forbidden("spec.initContainers", detail);
    }
    if spec_list(old, "ephemeralContainers") != spec_list(new, "ephemeralContainers") {
        let detail = "ephemeral containers change only through pods/ephemeralcontainers";
        errors.of("C7").forbidden("spec.ephemeralContainers", detail);
    }
    if at(at(old, "spec"), "resourceClaims") != at(at(new, "spec"), "resourceClaims") {
        errors.of("C11").forbidden("spec.resourceClaims", "field is immutable");
    }
    if let Some(most) = review.config.max_containers
        && after.len() > most
    {
        errors.of("C14").too_many("spec.containers", after.len(), most);
    }
}

/// C4 and C5: no status of any kind bears the name, and no removal of it is in flight.
pub(super) fn name_is_free(review: &Review<'_>, container: &Value, path: &str, errors: &mut Errors) {
    if !review.config.refuses_names_in_flight {
        return;
    }
    let wanted = name(container);
    let taken = STATUS_LISTS.into_iter().find(|list| named(status_list(review.old, list), wanted).is_some());
    let (rule, detail) = match (taken, review.holds.container(wanted)) {
        (Some(list), _) => (
            "C4",
            format!("the name is free once status.{list} no longer has it; a generated name always is"),
        ),
        (None, Some(generation)) => (
            "C5",
            format!(
                "the name is free once status.observedGeneration has reached {generation}, which removed it"
            ),
        ),
        (None, None) => return,
    };
    errors.of(rule).duplicate(format!("{path}.name"), wanted, &detail);
}

fn added(container: &Value, path: &str, errors: &mut Errors) {
    if at(at(container, "securityContext"), "privileged") == &Value::Bool(true) {
        let detail = "a privileged container may not be added to a running pod";
        errors.of("C8").forbidden(format!("{path}.securityContext.privileged"), detail);
    }
    for (k, port) in list(container, "ports").iter().enumerate() {
        if at(port, "hostPort").as_i64().is_some_and(|p| p != 0) {
            let detail = "a container with a host port may not be added to a running pod";
            errors.of("C9").forbidden(format!("{path}.ports[{k}].hostPort"), detail);
        }
    }
    for (amounts, resource) in unsupported_resources(container) {
        let detail = "only cpu and memory may be asked for by a container added to a running pod";
        errors.of("C12").forbidden(format!("{path}.resources.{amounts}[{resource}]"), detail);
    }
}

/// Resources that can't be resized in place, each with where it is asked for: in the requests, else in the
/// limits.
fn unsupported_resources(container: &Value) -> BTreeSet<(&'static str, &str)> {
    let resources = at(container, "resources");
    let asked = |amounts: &'static str| {
        let names = at(resources, amounts).as_object().into_iter().flat_map(|o| o.keys()).map(String::as_str);
        names.filter(|name| !matches!(*name, "cpu" | "memory")).map(move |name| (amounts, name))
    };
    let mut found: BTreeSet<_> = asked("requests").collect();
    found.extend(asked("limits").filter(|(_, name)| at(resources, "requests").get(name).is_none()));
    found
}
