//! The registered admission handlers, read from their manifests: webhooks, and pairs of a policy and a binding.

use super::attributes::{Attributes, NamespaceLookup};
use super::rule::Rule;
use super::selector::{Selector, labels};
use crate::view::{at, list, name, text};
use nodefold_core::ids::Name;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// What a handler is. In the order in which handlers are told.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HandlerKind {
    /// An entry of a MutatingWebhookConfiguration.
    MutatingWebhook,
    /// An entry of a ValidatingWebhookConfiguration.
    ValidatingWebhook,
    /// A MutatingAdmissionPolicy with a binding.
    MutatingPolicy,
    /// A ValidatingAdmissionPolicy with a binding.
    ValidatingPolicy,
}

impl HandlerKind {
    /// The kind of the manifest that holds it.
    pub const fn manifest(self) -> &'static str {
        match self {
            HandlerKind::MutatingWebhook => "MutatingWebhookConfiguration",
            HandlerKind::ValidatingWebhook => "ValidatingWebhookConfiguration",
            HandlerKind::MutatingPolicy => "MutatingAdmissionPolicy",
            HandlerKind::ValidatingPolicy => "ValidatingAdmissionPolicy",
        }
    }

    /// Its entries are webhooks.
    pub const fn is_webhook(self) -> bool {
        match self {
            HandlerKind::MutatingWebhook | HandlerKind::ValidatingWebhook => true,
            HandlerKind::MutatingPolicy | HandlerKind::ValidatingPolicy => false,
        }
    }
}

/// What happens if a handler can't give an answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The request is refused.
    Fail,
    /// It goes on.
    Ignore,
}

/// A webhook, or a policy with one of its bindings.
#[derive(Clone, Debug)]
pub struct Handler {
    /// What it is.
    pub kind: HandlerKind,
    /// The manifest's name.
    pub configuration: Name,
    /// The webhook's or binding's name.
    pub entry: Name,
    /// What to do without an answer.
    pub failure_policy: FailurePolicy,
    /// What of a request has to hold: one part for a webhook, two for a policy and its binding.
    parts: Vec<Result<Part, String>>,
    /// The webhook's entry, or the policy's manifest.
    pub manifest: Arc<Value>,
    /// The binding's manifest; null for a webhook.
    pub binding: Arc<Value>,
}

#[derive(Clone, Debug)]
struct Part {
    namespaces: Selector,
    objects: Selector,
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    /// Without rules everything is meant (policies), or nothing (webhooks).
    means_all_without_rules: bool,
}

/// Why it isn't known whether a handler means a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchError {
    /// Its manifest can't be read; what is wrong.
    Unreadable(String),
    /// The namespace can't be looked up; why.
    NamespaceLookup(String),
}

impl fmt::Display for MatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MatchError::Unreadable(wrong) => write!(f, "it can't be read ({wrong})"),
            MatchError::NamespaceLookup(why) => write!(f, "the namespace can't be looked up: {why}"),
        }
    }
}

impl fmt::Display for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.manifest();
        let entry = if self.kind.is_webhook() { "webhook" } else { "binding" };
        write!(f, "{kind} {:?} ({entry} {:?})", self.configuration, self.entry)
    }
}

impl Handler {
    /// The handler means this request.
    pub fn means(&self, request: &Attributes<'_>) -> Result<bool, MatchError> {
        for part in &self.parts {
            let part = part.as_ref().map_err(|wrong| MatchError::Unreadable(wrong.clone()))?;
            if !part.means(request)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Some part of it names this request among what it excludes.
    pub fn excludes(&self, request: &Attributes<'_>) -> bool {
        self.parts.iter().flatten().any(|part| part.excluded.iter().any(|rule| rule.means(request)))
    }

    /// Of a policy and binding: the policy's half means the request, whatever the binding says.
    pub fn policy_half_means(&self, request: &Attributes<'_>) -> bool {
        let first = self.parts.first().and_then(|part| part.as_ref().ok());
        !self.kind.is_webhook() && first.is_some_and(|part| part.means(request) == Ok(true))
    }

    /// It is asked again after a change that it hasn't seen.
    pub fn wants_reinvocation(&self) -> bool {
        let holder = if self.kind.is_webhook() { &self.manifest } else { at(&self.manifest, "spec") };
        text(holder, "reinvocationPolicy") == "IfNeeded"
    }

    /// It only warns or writes to the audit log.
    pub fn never_denies(&self) -> bool {
        let actions = list(at(&self.binding, "spec"), "validationActions");
        self.kind == HandlerKind::ValidatingPolicy
            && !actions.is_empty()
            && actions.iter().all(|action| action != "Deny")
    }
}

impl Part {
    fn read(of: &Value, rules: &str, is_policy: bool) -> Result<Part, String> {
        let selector =
            |field: &str| Selector::read(at(of, field)).map_err(|wrong| format!("{field}: {wrong}"));
        let read = |field: &str| -> Result<Vec<Rule>, String> {
            let entries = list(of, field).iter().enumerate();
            entries
                .map(|(i, rule)| Rule::read(rule).map_err(|wrong| format!("{field}[{i}].{wrong}")))
                .collect()
        };
        Ok(Part {
            namespaces: selector("namespaceSelector")?,
            objects: selector("objectSelector")?,
            rules: read(rules)?,
            excluded: read("excludeResourceRules")?,
            means_all_without_rules: is_policy,
        })
    }

    fn means(&self, request: &Attributes<'_>) -> Result<bool, MatchError> {
        // Rules first: they cost nothing, and a namespace is looked up only for what they mean.
        let meant = match self.rules.is_empty() {
            true => self.means_all_without_rules,
            false => self.rules.iter().any(|rule| rule.means(request)),
        };
        let excluded = self.excluded.iter().any(|rule| rule.means(request));
        Ok(meant && !excluded && self.object_selected(request) && self.namespace_selected(request)?)
    }

    fn object_selected(&self, request: &Attributes<'_>) -> bool {
        self.objects.is_empty() || request.object_labels().any(|labels| self.objects.selects(&labels))
    }

    fn namespace_selected(&self, request: &Attributes<'_>) -> Result<bool, MatchError> {
        if self.namespaces.is_empty() {
            return Ok(true);
        }
        // A Namespace is selected by its own labels.
        if request.kind == "Namespace" {
            let object = if request.object.is_null() { request.old_object } else { request.object };
            return Ok(self.namespaces.selects(&labels(object)));
        }
        match &request.namespace_object {
            NamespaceLookup::Found(namespace) => Ok(self.namespaces.selects(&labels(namespace))),
            NamespaceLookup::ClusterScoped => Ok(true),
            NamespaceLookup::Failed(why) => Err(MatchError::NamespaceLookup(why.clone())),
        }
    }
}

/// Every registered handler, in a stable order: by kind, manifest's name, entry.
#[derive(Clone, Debug, Default)]
pub struct Handlers {
    all: Vec<Handler>,
    /// They aren't known yet: nothing is admitted (case 31 of the table).
    not_ready: bool,
}

impl Handlers {
    /// Reads the manifests of the four kinds and of bindings; others are passed over.
    pub fn read<'m>(manifests: impl IntoIterator<Item = &'m Arc<Value>>) -> Handlers {
        let mut manifests: Vec<&Arc<Value>> = manifests.into_iter().collect();
        manifests.sort_by_key(|m| name(at(m, "metadata")).to_owned());
        let of_kind = |kind: &'static str| manifests.iter().copied().filter(move |m| text(m, "kind") == kind);
        let mut all = Vec::new();
        for kind in [HandlerKind::MutatingWebhook, HandlerKind::ValidatingWebhook] {
            for manifest in of_kind(kind.manifest()) {
                let webhooks = list(manifest, "webhooks").iter();
                all.extend(webhooks.map(|webhook| webhook_of(kind, manifest, webhook)));
            }
        }
        let kinds = [
            (HandlerKind::MutatingPolicy, "MutatingAdmissionPolicyBinding"),
            (HandlerKind::ValidatingPolicy, "ValidatingAdmissionPolicyBinding"),
        ];
        for (kind, bindings) in kinds {
            for policy in of_kind(kind.manifest()) {
                let bound = of_kind(bindings).filter(|binding| {
                    text(at(binding, "spec"), "policyName") == name(at(policy, "metadata"))
                });
                all.extend(bound.map(|binding| pair_of(kind, policy, binding)));
            }
        }
        Handlers { all, not_ready: false }
    }

    /// Handlers that haven't been read yet.
    pub fn not_ready() -> Handlers {
        Handlers { all: Vec::new(), not_ready: true }
    }

    /// They are known.
    pub fn is_ready(&self) -> bool {
        !self.not_ready
    }

    /// All of them, in order.
    pub fn all(&self) -> &[Handler] {
        &self.all
    }
}

fn failure_policy(of: &Value) -> FailurePolicy {
    if text(of, "failurePolicy") == "Ignore" { FailurePolicy::Ignore } else { FailurePolicy::Fail }
}

fn webhook_of(kind: HandlerKind, manifest: &Value, webhook: &Value) -> Handler {
    Handler {
        kind,
        configuration: name(at(manifest, "metadata")).into(),
        entry: name(webhook).into(),
        failure_policy: failure_policy(webhook),
        parts: vec![Part::read(webhook, "rules", false)],
        manifest: Arc::new(webhook.clone()),
        binding: Arc::new(Value::Null),
    }
}

fn pair_of(kind: HandlerKind, policy: &Arc<Value>, binding: &Arc<Value>) -> Handler {
    let spec = at(policy, "spec");
    Handler {
        kind,
        configuration: name(at(policy, "metadata")).into(),
        entry: name(at(binding, "metadata")).into(),
        failure_policy: failure_policy(spec),
        parts: vec![
            Part::read(at(spec, "matchConstraints"), "resourceRules", true),
            Part::read(at(at(binding, "spec"), "matchResources"), "resourceRules", true),
        ],
        manifest: policy.clone(),
        binding: binding.clone(),
    }
}
