//! What `/ephemeralcontainers` may add: containers without ports, probes, hooks or resources, under names
//! that nobody bears. None is ever changed or removed.

use super::{Errors, Review, containers};
use crate::view::{at, name, named, only_in, spec_list, text};

const UNSUPPORTED: [&str; 6] =
    ["ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resizePolicy"];

pub(super) fn added(review: &Review<'_>, errors: &mut Errors) {
    let (old, new) = (review.old, review.new);
    let (before, after) = (spec_list(old, "ephemeralContainers"), spec_list(new, "ephemeralContainers"));
    for stored in before {
        if named(after, name(stored)) != Some(stored) {
            let detail =
                format!("existing ephemeral container {:?} may not be changed or removed", name(stored));
            errors.forbidden("spec.ephemeralContainers", &detail);
        }
    }
    for (i, container) in only_in(after, before) {
        let path = format!("spec.ephemeralContainers[{i}]");
        // The same names as in C4 and C5: a removed container may still run (S6).
        let clashes = ["containers", "initContainers"]
            .iter()
            .any(|l| named(spec_list(new, l), name(container)).is_some());
        if !clashes {
            containers::name_is_free(review, container, &path, errors);
        }
        for field in UNSUPPORTED {
            if !at(container, field).is_null() {
                errors.forbidden(format!("{path}.{field}"), "cannot be set for an ephemeral container");
            }
        }
        if at(container, "resources").as_object().is_some_and(|r| !r.is_empty()) {
            errors.forbidden(format!("{path}.resources"), "cannot be set for an ephemeral container");
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && named(spec_list(new, "containers"), target).is_none() {
            errors.not_found(format!("{path}.targetContainerName"), target);
        }
    }
}
