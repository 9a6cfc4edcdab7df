//! Stage 6: what changes the object. Built-in plugins, then MutatingAdmissionPolicies, then mutating webhooks; and all of it a
//! second time if policies or webhooks changed anything, for those whose `reinvocationPolicy` asks for it.

use super::attributes::Attributes;
use super::cluster::Cluster;
use super::handler::{FailurePolicy, Handler, HandlerKind, Handlers};
use super::{always_pull, dispatch, limit_ranger, mutating_policy};
use crate::Api;
use crate::account::{Stage, Verdict};
use crate::call::Call;
use crate::response::{Cause, CauseReason, Status, StatusReason};
use crate::view::at;
use nodefold_k8s::{JsonPatchError, default_pod, json_patch};
use serde_json::Value;

/// Who of one kind of handlers is asked again, as Kubernetes has it: whoever wants to be, and was asked before a change that
/// it hasn't seen. A handler's own change is none.
#[derive(Default)]
struct Again {
    asked: Vec<usize>,
    due: Vec<usize>,
    /// What the kind left behind.
    left: Option<Value>,
}

impl Again {
    fn changed(&mut self) {
        self.due.append(&mut self.asked);
    }
}

/// `request.object` is the client's; the object as it is after all of them.
pub(crate) fn mutate(
    api: &Api,
    request: &Attributes<'_>,
    handlers: &Handlers,
    call: &mut Call<'_>,
) -> Result<Value, Status> {
    let mut object = request.object.clone();
    let mut again = [Again::default(), Again::default()];
    if round(api, request, handlers, call, &mut object, &mut again, false)? {
        round(api, request, handlers, call, &mut object, &mut again, true)?;
    }
    Ok(object)
}

/// Whether a handler changed anything.
fn round(
    api: &Api,
    request: &Attributes<'_>,
    handlers: &Handlers,
    call: &mut Call<'_>,
    object: &mut Value,
    again: &mut [Again; 2],
    second: bool,
) -> Result<bool, Status> {
    plugins(api, request, call, object);
    let mut changed = false;
    let kinds = [HandlerKind::MutatingPolicy, HandlerKind::MutatingWebhook];
    for (kind, again) in kinds.into_iter().zip(again) {
        if second && again.left.as_ref() != Some(object) {
            again.changed();
        }
        let mut wrong = Vec::new();
        let of_kind = handlers.all().iter().enumerate().filter(|(_, handler)| handler.kind == kind);
        for (i, handler) in of_kind {
            if second && !again.due.contains(&i) {
                continue;
            }
            let now = Attributes { object, ..request.clone() };
            let made = match kind {
                HandlerKind::MutatingPolicy => by_policy(api, &now, handler, call, &mut wrong),
                HandlerKind::MutatingWebhook
                | HandlerKind::ValidatingWebhook
                | HandlerKind::ValidatingPolicy => by_webhook(api, &now, handler, call)?,
            };
            if let Some(made) = made.map(|made| defaulted(request, made)).filter(|made| made != object) {
                *object = made;
                again.changed();
                changed = true;
            }
            if handler.wants_reinvocation() {
                again.asked.push(i);
            }
        }
        if !wrong.is_empty() {
            return Err(refused(request, wrong));
        }
        again.left = Some(object.clone());
    }
    Ok(changed)
}

fn plugins(api: &Api, request: &Attributes<'_>, call: &mut Call<'_>, object: &mut Value) {
    let mut tell = |who: &str, filled: &[String], what: &str| {
        if !filled.is_empty() {
            call.account.tell(Stage::Mutation, Verdict::Changed, || {
                (who.to_owned(), format!("{what} {}", filled.join(", ")))
            });
        }
    };
    let now = Attributes { object: request.object, ..request.clone() };
    let filled = limit_ranger::fill_in(&now, Cluster(&api.store), object);
    tell("LimitRanger", &filled, "defaults for");
    if api.config.always_pull_images {
        tell("AlwaysPullImages", &always_pull::fill_in(&now, object), "imagePullPolicy Always for");
    }
}

/// Each handler sees a pod with its defaults.
fn defaulted(request: &Attributes<'_>, mut made: Value) -> Value {
    if request.kind == "Pod" && at(&made, "spec").is_object() {
        default_pod(&mut made);
    }
    made
}

fn by_policy(
    api: &Api,
    request: &Attributes<'_>,
    handler: &Handler,
    call: &mut Call<'_>,
    wrong: &mut Vec<String>,
) -> Option<Value> {
    let mut tell = |verdict, what: String| {
        call.account.tell(Stage::Mutation, verdict, || (handler.to_string(), what));
    };
    let judged = match handler.means(request) {
        Ok(true) => mutating_policy::apply(request, handler, Cluster(&api.store)),
        Ok(false) => return None,
        Err(unread) => mutating_policy::Judged::failed(format!("{unread:?}")),
    };
    if let Some(why) = judged.skipped {
        tell(Verdict::Skipped, why);
    }
    for failure in judged.failures {
        match handler.failure_policy {
            FailurePolicy::Ignore => tell(Verdict::Skipped, format!("{failure} (failurePolicy Ignore)")),
            FailurePolicy::Fail => {
                tell(Verdict::Refused, failure.clone());
                let (policy, binding) = (&handler.configuration, &handler.entry);
                wrong.push(format!("policy '{policy}' with binding '{binding}' denied request: {failure}"));
            }
        }
    }
    if judged.object.is_some() {
        tell(Verdict::Changed, "its mutations are applied".to_owned());
    }
    judged.object
}

/// As upstream: the first failure is the message, each is a cause.
fn refused(request: &Attributes<'_>, wrong: Vec<String>) -> Status {
    let cause =
        |message| Cause { field: String::new(), reason: CauseReason::Denied, message, rule: "".into() };
    Status {
        code: 403,
        reason: StatusReason::Invalid,
        message: wrong.first().cloned().unwrap_or_default(),
        kind: request.resource.into(),
        name: request.name.into(),
        causes: wrong.into_iter().map(cause).collect(),
    }
}

fn by_webhook(
    api: &Api,
    request: &Attributes<'_>,
    handler: &Handler,
    call: &mut Call<'_>,
) -> Result<Option<Value>, Status> {
    let Some(patch) = dispatch(api, request, handler, Stage::Mutation, call)? else { return Ok(None) };
    let failed = |wrong: JsonPatchError| Status::internal(&format!("patch of {handler}: {wrong}"));
    json_patch(request.object, &patch).map(Some).map_err(failed)
}
