//! Admission: the fail-closed gate of KEP-5972, the built-in plugins, policies and webhooks, over the stored manifests.
//!
//! A request's handlers are read once and used for the gate and for dispatch alike (case 35 of api-side §2.2). The gate comes
//! before anything that could change the object; defaults before validation, which they can break (C13); what only
//! refuses comes last, ResourceQuota at the very end.
//!
//! Webhooks are called by whoever drives the reducer (`webhook`).

mod always_pull;
pub mod attributes;
pub(crate) mod cluster;
mod constructed;
pub mod coverage;
mod expression;
pub mod handler;
mod image_policy;
mod library;
mod limit_ranger;
mod mutating_policy;
mod mutation;
mod node;
mod params;
mod pod_security;
mod policy;
mod resource_quota;
mod review;
pub mod rule;
pub mod selector;
mod service_account;
mod values;
mod webhook;

pub use image_policy::ImagePolicy;
pub(crate) use mutation::mutate;
pub use review::{Endpoint, Unreachable};
pub use webhook::{Answer, ReviewKind, WebhookAnswer, WebhookCall};

use crate::Api;
use crate::account::{Account, Stage, Verdict};
use crate::call::Call;
use crate::response::{Cause, CauseReason, Status};
use attributes::{Attributes, NamespaceLookup};
use cluster::Cluster;
use coverage::{Coverage, Judged};
use handler::{FailurePolicy, Handler, HandlerKind, Handlers};
use policy::DenialReason;
use serde_json::Value;

/// The kinds of manifests that register handlers.
pub(crate) const HANDLER_KINDS: [&str; 6] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
];

/// What is registered now: stored manifests, and those of the server's own files (case 34).
pub(crate) fn handlers(api: &Api) -> Handlers {
    if !api.config.handlers_known {
        return Handlers::not_ready();
    }
    let stored = HANDLER_KINDS.into_iter().flat_map(|kind| Cluster(&api.store).all(kind));
    Handlers::read(stored.chain(&api.config.static_handlers))
}

/// The namespace of a request.
pub(crate) fn namespace(api: &Api, name: &str) -> Option<Value> {
    (!name.is_empty()).then(|| Cluster(&api.store).namespace(name))
}

/// The namespace as handlers look it up.
pub(crate) fn lookup(namespace: Option<&Value>) -> NamespaceLookup<'_> {
    namespace.map_or(NamespaceLookup::ClusterScoped, NamespaceLookup::Found)
}

/// Stage 5: nobody who is asked about pods is passed by.
pub(crate) fn cover(
    request: &Attributes<'_>,
    handlers: &Handlers,
    strictness: coverage::Strictness,
    account: &mut Account,
) -> Result<(), Status> {
    let judged = match coverage::gate(request, handlers, strictness) {
        Coverage::Covered(judged) | Coverage::Missing(judged) => judged,
        Coverage::NotReady => {
            let why = "not yet ready to handle request: admission handlers are not known yet";
            account.tell(Stage::Coverage, Verdict::Refused, || (String::new(), why.to_owned()));
            return Err(Status::forbidden(request.resource, request.name, why));
        }
        Coverage::LookupFailed(why) => {
            account.tell(Stage::Coverage, Verdict::Refused, || (String::new(), why.clone()));
            return Err(Status::internal(&why));
        }
    };
    for one in &judged {
        let verdict = match (one.is_missing(), one.as_dynamic) {
            (true, _) => Verdict::Refused,
            (false, true) => Verdict::Passed,
            (false, false) => Verdict::Skipped,
        };
        account.tell(Stage::Coverage, verdict, || (one.handler.to_string(), told(request, one)));
    }
    let missing: Vec<&Judged<'_>> = judged.iter().filter(|one| one.is_missing()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(not_covered(request, &missing))
}

fn told(request: &Attributes<'_>, one: &Judged<'_>) -> String {
    let seen = match (one.as_create, one.as_update) {
        (true, true) => "CREATE and UPDATE",
        (true, false) => "CREATE",
        (false, true) => "UPDATE",
        (false, false) => "",
    };
    let path = request.path();
    match (seen, one.as_dynamic) {
        ("", true) => format!("is asked about UPDATE of {path}, and not about {}", request.resource),
        ("", false) => "would not be asked about this pod".to_owned(),
        (seen, true) => format!("is asked about {seen} of {}, and about UPDATE of {path}", request.resource),
        (seen, false) => {
            format!("is asked about {seen} of {}, but {}", request.resource, one.why_missing)
        }
    }
}

/// kubectl prints no causes of a 403: the message names every handler.
fn not_covered(request: &Attributes<'_>, missing: &[&Judged<'_>]) -> Status {
    let each = |one: &&Judged<'_>| format!("{}: {}", one.handler, one.why_missing);
    let all: Vec<String> = missing.iter().map(each).collect();
    let path = request.path();
    let why = format!(
        "{path} is closed to this request, since these admission handlers of {} do not handle UPDATE of {path}: {}",
        request.resource,
        all.join("; ")
    );
    let mut status = Status::forbidden(request.resource, request.name, &why);
    status.causes = all
        .into_iter()
        .map(|message| Cause {
            field: String::new(),
            reason: CauseReason::AdmissionCoverageMissing,
            message,
            rule: "".into(),
        })
        .collect();
    status
}

/// Asks a webhook. A mutating one's patch.
fn dispatch(
    api: &Api,
    request: &Attributes<'_>,
    handler: &Handler,
    stage: Stage,
    call: &mut Call<'_>,
) -> Result<Option<Value>, Status> {
    match handler.means(request) {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(wrong) => return Err(Status::internal(&format!("{handler}: {wrong}"))),
    }
    let cluster = Cluster(&api.store);
    let decided = webhook::decide(request, handler, cluster, call.answers, api.config.absent_webhooks_allow);
    call.is_due(decided.unasked);
    let mut tell = |verdict, what: &str| {
        call.account.tell(stage, verdict, || (handler.to_string(), what.to_owned()));
    };
    match decided.outcome {
        webhook::Outcome::NotAsked(why) | webhook::Outcome::Ignored(why) => tell(Verdict::Skipped, &why),
        webhook::Outcome::Assumed => tell(Verdict::Passed, "would be called, and is taken to allow"),
        webhook::Outcome::Allowed(given) => {
            let patch = match &given.answer {
                Answer::Allowed { patch } => patch.clone(),
                Answer::Denied { .. } | Answer::Failed { .. } => None,
            };
            let verdict = if patch.is_some() { Verdict::Changed } else { Verdict::Passed };
            tell(verdict, if patch.is_some() { "allowed with a patch" } else { "allowed" });
            call.heard(given);
            return Ok(patch);
        }
        webhook::Outcome::Refused(status) => {
            tell(Verdict::Refused, short(&status));
            return Err(status);
        }
    }
    Ok(None)
}

/// Stage 10.
pub(crate) fn validate(
    api: &Api,
    request: &Attributes<'_>,
    handlers: &Handlers,
    call: &mut Call<'_>,
) -> Result<(), Status> {
    let cluster = Cluster(&api.store);
    if api.config.always_pull_images {
        plugin("AlwaysPullImages", always_pull::check(request), call.account)?;
    }
    if let Some(settings) = &api.config.image_policy {
        image_policy::check(request, settings, call)?;
    }
    plugin("LimitRanger", limit_ranger::check(request, cluster), call.account)?;
    plugin("ServiceAccount", service_account::check(request, cluster), call.account)?;
    security(request, call.account)?;
    plugin("PodResizeValidator", node::can_hold(request, cluster), call.account)?;
    plugin("NodeDeclaredFeatureValidator", node::declares(request, cluster), call.account)?;
    for handler in handlers.all().iter().filter(|h| h.kind == HandlerKind::ValidatingPolicy) {
        validating_policy(request, handler, cluster, call)?;
    }
    for handler in handlers.all().iter().filter(|h| h.kind == HandlerKind::ValidatingWebhook) {
        dispatch(api, request, handler, Stage::Admission, call)?;
    }
    plugin("ResourceQuota", resource_quota::check(request, cluster), call.account)
}

fn plugin(name: &str, said: Result<(), Status>, account: &mut Account) -> Result<(), Status> {
    let (verdict, what) = match &said {
        Ok(()) => (Verdict::Passed, ""),
        Err(status) => (Verdict::Refused, short(status)),
    };
    account.tell(Stage::Admission, verdict, || (name.to_owned(), what.to_owned()));
    said
}

/// What a refusal says beyond which object is refused.
fn short(status: &Status) -> &str {
    status.message.split_once(" is forbidden: ").map_or(&status.message, |(_, why)| why)
}

fn security(request: &Attributes<'_>, account: &mut Account) -> Result<(), Status> {
    let NamespaceLookup::Found(namespace) = request.namespace_object else { return Ok(()) };
    let mut tell = |verdict, what: String| {
        account.tell(Stage::Admission, verdict, || ("PodSecurity".to_owned(), what));
    };
    match pod_security::judge(request, namespace) {
        pod_security::Said::Skipped(why) => tell(Verdict::Skipped, why.to_owned()),
        pod_security::Said::Passed(level) => tell(Verdict::Passed, level),
        pod_security::Said::Refused(status) => {
            tell(Verdict::Refused, short(&status).to_owned());
            return Err(status);
        }
    }
    Ok(())
}

fn validating_policy(
    request: &Attributes<'_>,
    handler: &Handler,
    cluster: Cluster<'_>,
    call: &mut Call<'_>,
) -> Result<(), Status> {
    let judgement = match handler.means(request) {
        Ok(true) => policy::judge(request, handler, cluster),
        Ok(false) => return Ok(()),
        Err(_) if handler.failure_policy == FailurePolicy::Ignore => return Ok(()),
        Err(wrong) => return Err(Status::internal(&format!("{handler}: {wrong}"))),
    };
    call.warnings.extend(judgement.warnings.iter().cloned());
    let account = &mut *call.account;
    let mut tell = |verdict, what: &str| {
        account.tell(Stage::Admission, verdict, || (handler.to_string(), what.to_owned()));
    };
    for warning in &judgement.warnings {
        tell(Verdict::Warned, warning);
    }
    for note in &judgement.audited {
        tell(Verdict::Passed, &format!("audited: {note}"));
    }
    let Some(first) = judgement.denials.first() else {
        match &judgement.skipped {
            Some(why) => tell(Verdict::Skipped, why),
            None if judgement.warnings.is_empty() && judgement.audited.is_empty() => {
                tell(Verdict::Passed, "every validation holds");
            }
            None => tell(Verdict::Passed, "what fails is only told"),
        }
        return Ok(());
    };
    let (policy, binding) = (&handler.configuration, &handler.entry);
    let why = format!(
        "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {}",
        first.message
    );
    let status = match first.reason {
        DenialReason::Unauthorized => Status::forbidden_with(401, request.resource, request.name, why),
        DenialReason::Forbidden => Status::forbidden_with(403, request.resource, request.name, why),
        DenialReason::RequestEntityTooLarge => {
            Status::forbidden_with(413, request.resource, request.name, why)
        }
        DenialReason::Invalid => Status::forbidden_with(422, request.resource, request.name, why),
    };
    tell(Verdict::Refused, &first.message);
    Err(status)
}
