//! What `/ephemeralcontainers` may add: containers under names that nobody bears. None is ever changed or
//! removed. What an ephemeral container may hold is a rule of any pod (`standard`).

use super::{Errors, Review, containers};
use crate::view::{name, named, only_in, spec_list};

pub(super) fn added(review: &Review<'_>, errors: &mut Errors) {
    errors.judge("");
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
    }
}
