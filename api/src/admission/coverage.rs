//! The fail-closed gate of KEP-5972 (api-side §2.1, §2.2): a request on `pods/dynamic` is refused if some handler would
//! have been asked about the same change as a CREATE or UPDATE of the pod, but isn't about UPDATE of `pods/dynamic`.
//!
//! Coverage is what counts, not reachability or outcome: `failurePolicy`, `matchConditions`, `validationActions` and
//! params aren't looked at, nor whether the request changes anything. Errors close.

use super::attributes::{Attributes, Operation};
use super::handler::{Handler, Handlers, MatchError};

/// What the gate found of one handler.
#[derive(Clone, Debug)]
pub struct Judged<'h> {
    /// The handler.
    pub handler: &'h Handler,
    /// It would be asked about a CREATE of the pod.
    pub as_create: bool,
    /// It would be asked about an UPDATE of the pod.
    pub as_update: bool,
    /// It is asked about this request.
    pub as_dynamic: bool,
    /// Why it is missing, in words; empty if it isn't.
    pub why_missing: String,
}

impl Judged<'_> {
    /// It would see the pod but doesn't see this.
    pub fn is_missing(&self) -> bool {
        (self.as_create || self.as_update) && !self.as_dynamic
    }
}

/// What the gate says.
#[derive(Clone, Debug)]
pub enum Coverage<'h> {
    /// No handler is missing.
    Covered(Vec<Judged<'h>>),
    /// These and maybe others were judged, and some are missing.
    Missing(Vec<Judged<'h>>),
    /// The handlers aren't known yet.
    NotReady,
    /// The namespace can't be looked up, and some handler depends on it.
    LookupFailed(String),
}

/// How strictly coverage is asked for.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Strictness {
    /// Policies that only warn or audit need not cover the subresource (case 23; off, as the KEP's letter has it).
    pub audit_only_exempt: bool,
}

/// Judges a request on a subresource that has the pod itself as its equivalent.
pub fn gate<'h>(request: &Attributes<'_>, handlers: &'h Handlers, strictness: Strictness) -> Coverage<'h> {
    if !handlers.is_ready() {
        return Coverage::NotReady;
    }
    let mut judged = Vec::new();
    for handler in handlers.all() {
        if strictness.audit_only_exempt && handler.never_denies() {
            continue;
        }
        match judge(request, handler) {
            Ok(one) => judged.push(one),
            Err(why) => return Coverage::LookupFailed(why),
        }
    }
    match judged.iter().any(Judged::is_missing) {
        true => Coverage::Missing(judged),
        false => Coverage::Covered(judged),
    }
}

fn judge<'h>(request: &Attributes<'_>, handler: &'h Handler) -> Result<Judged<'h>, String> {
    let create = request.as_if(Operation::Create, "");
    let update = request.as_if(Operation::Update, "");
    let found = [&create, &update, request]
        .into_iter()
        .map(|asked| handler.means(asked))
        .collect::<Result<Vec<_>, _>>();
    let (as_create, as_update, as_dynamic, unreadable) = match found.as_deref() {
        Ok([as_create, as_update, as_dynamic]) => (*as_create, *as_update, *as_dynamic, None),
        Ok(_) => (true, true, false, Some("it was not judged".to_owned())),
        Err(MatchError::Unreadable(wrong)) => (true, false, false, Some(wrong.clone())),
        Err(MatchError::NamespaceLookup(why)) => return Err(why.clone()),
    };
    let mut one = Judged { handler, as_create, as_update, as_dynamic, why_missing: String::new() };
    if one.is_missing() {
        one.why_missing = match unreadable {
            Some(wrong) => format!("it can't be read ({wrong})"),
            None => why_missing(request, handler),
        };
    }
    Ok(one)
}

fn why_missing(request: &Attributes<'_>, handler: &Handler) -> String {
    let path = request.path();
    let as_created = request.as_if(Operation::Create, request.subresource);
    if handler.excludes(request) {
        format!("its excludeResourceRules name {path}, and what is excluded is not handled")
    } else if handler.means(&as_created) == Ok(true) {
        format!("it handles {path} for CREATE but not for UPDATE")
    } else if handler.policy_half_means(request) {
        format!("the policy covers {path}, but its binding's matchResources does not")
    } else {
        format!("its rules do not name {path}")
    }
}
