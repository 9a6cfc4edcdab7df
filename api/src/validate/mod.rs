//! What a request may not ask for: the numbered rules of `reference/api-side.md` §1, each with its field and
//! reason.
//!
//! Rooms: `preconditions` (P), `containers` (C), `kept` (M, D), `volumes` (W), `qos` (C13), `metadata` (M14), `data` (of
//! secrets and configMaps), and `standard`, the rules of any pod (S). Every rule is checked and all errors are told at once, in Kubernetes'
//! order: metadata, the new spec by itself, then what of the change isn't allowed.

mod containers;
mod data;
mod ephemeral;
mod handlers;
mod kept;
mod main_resource;
mod metadata;
pub(crate) mod names;
mod preconditions;
mod qos;
mod rules;
mod standard;
mod volumes;

use crate::ApiConfig;
use crate::account::{Account, Stage, Verdict};
use crate::hold::Holds;
use crate::response::{Cause, CauseReason};
use crate::view::spec_list;
use nodefold_core::config::FeatureGates;
use serde_json::Value;

/// A change under review: the pod as stored, and as it shall be (defaulted, status and identity from the
/// stored one).
pub(crate) struct Review<'a> {
    pub old: &'a Value,
    pub new: &'a Value,
    pub holds: &'a Holds,
    pub gates: FeatureGates,
    pub config: &'a ApiConfig,
}

/// A new pod.
pub(crate) fn create(pod: &Value, config: &ApiConfig, errors: &mut Errors) {
    metadata::identity(pod, errors);
    metadata::labels(pod, errors);
    standard::pod(pod, config, errors);
    if !spec_list(pod, "ephemeralContainers").is_empty() {
        errors.forbidden("spec.ephemeralContainers", "cannot be set on create");
    }
}

/// PUT on the pod itself.
pub(crate) fn update(review: &Review<'_>, errors: &mut Errors) {
    metadata::update(review.old, review.new, errors);
    standard::pod(review.new, review.config, errors);
    main_resource::spec(review, errors);
}

/// `pods/dynamic`.
pub(crate) fn dynamic(review: &Review<'_>, errors: &mut Errors) {
    metadata::update(review.old, review.new, errors);
    standard::pod(review.new, review.config, errors);
    preconditions::dynamic(review, errors);
    volumes::set(review, errors);
    containers::set(review, errors);
    kept::containers(review, errors);
    kept::spec(review, errors);
    qos::unchanged(review.old, review.new, errors);
}

/// `pods/resize`.
pub(crate) fn resize(review: &Review<'_>, errors: &mut Errors) {
    standard::pod(review.new, review.config, errors);
    preconditions::resize(review.old, errors);
    kept::containers(review, errors);
    kept::spec(review, errors);
    qos::unchanged(review.old, review.new, errors);
}

/// `pods/ephemeralcontainers`.
pub(crate) fn ephemeral(review: &Review<'_>, errors: &mut Errors) {
    standard::pod(review.new, review.config, errors);
    preconditions::ephemeral(review.old, errors);
    ephemeral::added(review, errors);
}

/// An object of any kind but Pod.
pub(crate) fn other(object: &Value, errors: &mut Errors) {
    metadata::identity(object, errors);
    metadata::labels(object, errors);
    data::keys(object, errors);
    handlers::manifest(object, errors);
}

/// Why a server would not store this manifest of an admission handler; other kinds pass.
pub fn check_handler(manifest: &Value) -> Vec<Cause> {
    let mut errors = Errors::default();
    handlers::manifest(manifest, &mut errors);
    errors.into_causes()
}

/// A change of an object of any kind but Pod.
pub(crate) fn update_other(old: &Value, new: &Value, errors: &mut Errors) {
    metadata::update(old, new, errors);
    data::keys(new, errors);
    data::kept(old, new, errors);
    handlers::manifest(new, errors);
}

/// What is wrong, as it is found, each with the number of its rule.
#[derive(Default)]
pub(crate) struct Errors {
    found: Vec<Cause>,
    /// The rule that is being judged, unless the error itself names one.
    judged: &'static str,
    named: Option<&'static str>,
}

impl Errors {
    /// All of it in the order in which it was found, said once.
    pub fn into_causes(self) -> Vec<Cause> {
        let mut causes: Vec<Cause> = Vec::new();
        for cause in self.found {
            if !causes.contains(&cause) {
                causes.push(cause);
            }
        }
        causes
    }

    /// Tells what was found: each rule of `/dynamic`, held or broken; elsewhere the broken ones.
    pub fn tell(&self, dynamic: bool, account: &mut Account) {
        let broken = |rule: &str| self.found.iter().find(|cause| &*cause.rule == rule);
        for (rule, what) in rules::DYNAMIC.iter().filter(|_| dynamic) {
            if broken(rule).is_none() {
                account.tell(Stage::Validation, Verdict::Passed, || ((*rule).into(), (*what).into()));
            }
        }
        for cause in &self.found {
            account.tell(Stage::Validation, Verdict::Refused, || {
                (cause.rule.to_string(), format!("{}: {}", cause.field, cause.message))
            });
        }
    }

    /// The rule that is judged from here on.
    pub fn judge(&mut self, rule: &'static str) {
        self.judged = rule;
    }

    /// The rule that the next error breaks.
    pub fn of(&mut self, rule: &'static str) -> &mut Errors {
        self.named = Some(rule);
        self
    }

    fn add(&mut self, field: impl Into<String>, reason: CauseReason, message: String) {
        let rule = self.named.take().unwrap_or(self.judged);
        self.found.push(Cause { field: field.into(), reason, message, rule: rule.into() });
    }

    pub fn required(&mut self, field: impl Into<String>, detail: &str) {
        self.add(field, CauseReason::Required, said("Required value", detail));
    }

    pub fn invalid(&mut self, field: impl Into<String>, value: &Value, detail: &str) {
        self.add(field, CauseReason::Invalid, said(&format!("Invalid value: {value}"), detail));
    }

    pub fn duplicate(&mut self, field: impl Into<String>, name: &str, detail: &str) {
        self.add(field, CauseReason::Duplicate, said(&format!("Duplicate value: {name:?}"), detail));
    }

    pub fn forbidden(&mut self, field: impl Into<String>, detail: &str) {
        self.add(field, CauseReason::Forbidden, said("Forbidden", detail));
    }

    pub fn not_found(&mut self, field: impl Into<String>, name: &str) {
        self.add(field, CauseReason::NotFound, format!("Not found: {name:?}"));
    }

    pub fn not_found_because(&mut self, field: impl Into<String>, name: &str, detail: &str) {
        self.add(field, CauseReason::NotFound, said(&format!("Not found: {name:?}"), detail));
    }

    pub fn not_supported(&mut self, field: impl Into<String>, value: &Value, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", supported.join(", "));
        self.add(field, CauseReason::NotSupported, message);
    }

    pub fn too_long(&mut self, field: impl Into<String>, detail: &str) {
        self.add(field, CauseReason::TooLong, said("Too long", detail));
    }

    pub fn too_many(&mut self, field: impl Into<String>, count: usize, most: usize) {
        let message = format!("Too many: {count}: must have at most {most} items");
        self.add(field, CauseReason::TooMany, message);
    }
}

fn said(what: &str, detail: &str) -> String {
    if detail.is_empty() { what.to_owned() } else { format!("{what}: {detail}") }
}
