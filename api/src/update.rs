//! PUT and PATCH: the pipeline of api-side §0 from the route to the commit. Each stage has its own status code.

use crate::account::{Stage, Verdict};
use crate::admission::attributes::Operation;
use crate::call::{Admission, Call};
use crate::hold::Holds;
use crate::request::FieldValidation;
use crate::response::{Response, Status};
use crate::store::Key;
use crate::validate::{self, Errors, Review};
use crate::view::{at, generation, is_deleting, list, name, named, only_in, spec_list, text};
use crate::{Api, Body, identity, key, lifecycle};
use nodefold_k8s::merge::strategic_merge_pod;
use nodefold_k8s::{
    FieldProblem, ProblemReason, check_fields, check_patch_fields, default_object, default_pod,
    drop_unknown_fields, drop_unknown_patch_fields, has_known_fields, json_merge, json_patch,
};
use serde_json::{Value, json};

/// Where a change of a pod is asked for.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Main,
    Dynamic,
    Resize,
    Ephemeral,
}

impl Endpoint {
    const fn subresource(self) -> &'static str {
        match self {
            Endpoint::Main => "",
            Endpoint::Dynamic => "dynamic",
            Endpoint::Resize => "resize",
            Endpoint::Ephemeral => "ephemeralcontainers",
        }
    }
}

/// PUT of a whole object on its main resource.
pub(crate) fn put(api: &mut Api, call: &mut Call<'_>, object: &Value) -> Result<Response, Status> {
    let kind = text(object, "kind");
    if kind.is_empty() {
        return Err(Status::bad_request("the object has no kind: give apiVersion and kind"));
    }
    let (namespace, name) = (text(at(object, "metadata"), "namespace"), text(at(object, "metadata"), "name"));
    if kind == "Pod" {
        return pod(api, call, Endpoint::Main, namespace, name, &Body::Full(object.clone()));
    }
    let key = key(kind, namespace, name);
    let Some(entry) = api.store.get(&key) else { return Err(Status::not_found(kind, name)) };
    let (old, holds) = (entry.object.clone(), entry.holds.clone());
    let object = decoded(object.clone(), kind, call.field_validation, &mut call.warnings)?;
    identity::same_object(&key, &old, &object)?;
    let admission = Admission::new(api, &key, Operation::Update, "");
    let mut new = admission.mutate(api, call, &key, &old, object)?;
    identity::same_version(&key, &old, &new)?;
    identity::keep(&old, &mut new);
    default_object(&mut new);
    let mut errors = Errors::default();
    validate::update_other(&old, &new, &mut errors);
    refuse(&key, errors)?;
    admission.validate(api, call, &key, &old, &new)?;
    Ok(commit(api, key, &old, new, holds))
}

/// PUT or PATCH of a pod.
pub(crate) fn pod(
    api: &mut Api,
    call: &mut Call<'_>,
    endpoint: Endpoint,
    namespace: &str,
    name: &str,
    body: &Body,
) -> Result<Response, Status> {
    let gates = api.config.gates;
    route(api, endpoint, call)?; // stage 0
    let key = key("Pod", namespace, name);
    let Some(entry) = api.store.get(&key) else { return Err(Status::not_found("Pod", name)) };
    let (old, held) = (entry.object.clone(), entry.holds.clone());

    // Stages 2 to 4.
    let mut new = changed(&old, body, call)?;
    identity::same_object(&key, &old, &new)?;
    if new["spec"].is_object() && text(&new["spec"], "nodeName").is_empty() {
        // A manifest that leaves the binding to the scheduler doesn't mean to undo it.
        new["spec"]["nodeName"] = at(at(&old, "spec"), "nodeName").clone();
    }
    if !gates.dynamic_volumes {
        drop_gated_fields(&mut new, &old);
    }
    let mut new = defaulted_pod(new)?;
    call.passed(
        Stage::Decoding,
        "every field is known, the body names the stored pod, defaults are filled in",
    );

    // Stages 5 to 7.
    let admission = Admission::new(api, &key, Operation::Update, endpoint.subresource());
    if endpoint == Endpoint::Dynamic {
        admission.cover(api, call, &key, &old, &new)?;
    }
    new = defaulted_pod(admission.mutate(api, call, &key, &old, new)?)?;
    identity::same_version(&key, &old, &new)?;
    call.passed(Stage::Version, "none is stated, or the stored one");

    // Stage 8.
    identity::keep(&old, &mut new);
    new["status"] = at(&old, "status").clone();
    match endpoint {
        Endpoint::Main | Endpoint::Dynamic => {}
        Endpoint::Resize => new = with_resources_of(&old, &new),
        Endpoint::Ephemeral => new = with_ephemeral_containers_of(&old, &new),
    }
    if at(&old, "spec") != at(&new, "spec") {
        new["metadata"]["generation"] = json!(generation(&old) + 1);
    }
    call.account.tell(Stage::Preparation, Verdict::Passed, || {
        (String::new(), format!("generation {} → {}", generation(&old), generation(&new)))
    });

    // Stage 9.
    let mut errors = Errors::default();
    let review = Review { old: &old, new: &new, holds: &held, gates, config: &api.config };
    match endpoint {
        Endpoint::Main => validate::update(&review, &mut errors),
        Endpoint::Dynamic => validate::dynamic(&review, &mut errors),
        Endpoint::Resize => validate::resize(&review, &mut errors),
        Endpoint::Ephemeral => validate::ephemeral(&review, &mut errors),
    }
    errors.tell(endpoint == Endpoint::Dynamic, call.account);
    refuse(&key, errors)?;

    // Stages 10 and 11.
    admission.validate(api, call, &key, &old, &new)?;
    let holds = holding_removed(held, &old, &new);
    let response = commit(api, key, &old, new, holds);
    call.passed(Stage::Commit, "accepted");
    Ok(response)
}

/// Stage 0: a gate that is off and a subresource that is switched off have no route.
fn route(api: &Api, endpoint: Endpoint, call: &mut Call<'_>) -> Result<(), Status> {
    let gated = endpoint == Endpoint::Dynamic && !api.config.gates.dynamic_containers;
    let switched_off =
        api.config.disabled_pod_subresources.iter().any(|off| &**off == endpoint.subresource());
    if gated || switched_off {
        let why =
            if gated { "feature gate DynamicContainers is off" } else { "the subresource is switched off" };
        call.account.tell(Stage::Route, Verdict::Refused, || (String::new(), why.to_owned()));
        return Err(Status::no_such_route());
    }
    call.passed(Stage::Route, "the subresource is served");
    Ok(())
}

/// Stage 2: the pod that the body makes of the stored one.
pub(crate) fn changed(old: &Value, body: &Body, call: &mut Call<'_>) -> Result<Value, Status> {
    let (validation, warnings) = (call.field_validation, &mut call.warnings);
    match body {
        Body::Full(whole) => decoded(whole.clone(), "Pod", validation, warnings),
        Body::StrategicMerge(patch) => {
            let mut patch = patch.clone();
            if !known(check_patch_fields(&patch, "Pod"), "Pod", validation, warnings)? {
                drop_unknown_patch_fields(&mut patch, "Pod");
            }
            strategic_merge_pod(old, &patch).map_err(|wrong| Status::unpatchable(wrong.http_code(), &wrong))
        }
        Body::Merge(patch) => {
            let mut new = old.clone();
            json_merge(&mut new, patch);
            decoded(new, "Pod", validation, warnings)
        }
        Body::JsonPatch(patch) => {
            let new =
                json_patch(old, patch).map_err(|wrong| Status::unpatchable(wrong.http_code(), &wrong))?;
            decoded(new, "Pod", validation, warnings)
        }
    }
}

/// The object without fields that nobody knows, if that is how they are to be taken. Kinds that no rule looks into are stored
/// as they are.
pub(crate) fn decoded(
    mut object: Value,
    kind: &str,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    if has_known_fields(kind) && !known(check_fields(&object, kind), kind, validation, warnings)? {
        drop_unknown_fields(&mut object, kind);
    }
    Ok(object)
}

/// Whether every field is known. A field of the wrong type can't be read, whatever is done about unknown ones.
fn known(
    problems: Vec<FieldProblem>,
    kind: &str,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<bool, Status> {
    if problems.is_empty() {
        return Ok(true);
    }
    let (unknown, unreadable): (Vec<_>, Vec<_>) =
        problems.iter().partition(|problem| problem.reason == ProblemReason::UnknownField);
    match validation {
        FieldValidation::Strict => return Err(undecodable(&problems, kind, "strict decoding error: ")),
        FieldValidation::Warn | FieldValidation::Ignore if !unreadable.is_empty() => {
            return Err(undecodable(unreadable, kind, ""));
        }
        FieldValidation::Warn => {
            warnings.extend(unknown.iter().map(|problem| format!("unknown field {:?}", problem.path)));
        }
        FieldValidation::Ignore => {}
    }
    Ok(false)
}

fn undecodable<'p>(problems: impl IntoIterator<Item = &'p FieldProblem>, kind: &str, how: &str) -> Status {
    let told: Vec<String> = problems.into_iter().map(ToString::to_string).collect();
    let told = told.join(", ");
    Status::bad_request(format!("{kind} in version \"v1\" cannot be handled as a {kind}: {how}{told}"))
}

/// A pod's defaults; it must have a spec to hold them.
pub(crate) fn defaulted_pod(mut pod: Value) -> Result<Value, Status> {
    default_pod(&mut pod);
    if !at(&pod, "spec").is_object() {
        return Err(Status::bad_request("the pod has no spec: give spec.containers"));
    }
    Ok(pod)
}

/// D6: with the gate off, `dynamicVolumePolicy` is dropped unless the stored pod has one already.
pub(crate) fn drop_gated_fields(new: &mut Value, old: &Value) {
    let lists = ["containers", "initContainers", "ephemeralContainers"];
    let has_policy = |container: &Value| container.get("dynamicVolumePolicy").is_some();
    if lists.iter().any(|l| spec_list(old, l).iter().any(has_policy)) {
        return;
    }
    for field in lists {
        let Some(containers) =
            new.get_mut("spec").and_then(|s| s.get_mut(field)).and_then(Value::as_array_mut)
        else {
            continue;
        };
        for container in containers.iter_mut().filter_map(Value::as_object_mut) {
            container.shift_remove("dynamicVolumePolicy");
        }
    }
}

/// `/resize`: the stored pod with the body's resources, and nothing else of it.
fn with_resources_of(old: &Value, body: &Value) -> Value {
    let mut new = old.clone();
    for list in ["containers", "initContainers"] {
        let Some(containers) = new["spec"].get_mut(list).and_then(Value::as_array_mut) else { continue };
        for container in containers {
            if let Some(asked) = named(spec_list(body, list), name(container)) {
                take_field(container, asked, "resources");
                take_field(container, asked, "resizePolicy");
            }
        }
    }
    take_field(&mut new["spec"], at(body, "spec"), "resources");
    new
}

/// `/ephemeralcontainers`: the stored pod with the body's ephemeral containers, and nothing else of it.
fn with_ephemeral_containers_of(old: &Value, body: &Value) -> Value {
    let mut new = old.clone();
    take_field(&mut new["spec"], at(body, "spec"), "ephemeralContainers");
    new
}

fn take_field(to: &mut Value, from: &Value, field: &str) {
    match from.get(field) {
        Some(value) => to[field] = value.clone(),
        None => {
            if let Some(to) = to.as_object_mut() {
                to.shift_remove(field);
            }
        }
    }
}

fn holding_removed(mut holds: Holds, old: &Value, new: &Value) -> Holds {
    let removed = |list| only_in(spec_list(old, list), spec_list(new, list)).map(|(_, entry)| name(entry));
    for container in removed("containers") {
        holds.hold_container(container, generation(new));
    }
    for volume in removed("volumes") {
        holds.hold_volume(volume, generation(new));
    }
    holds
}

fn refuse(key: &Key, errors: Errors) -> Result<(), Status> {
    match errors.into_causes() {
        causes if causes.is_empty() => Ok(()),
        causes => Err(Status::invalid(&key.kind, &key.name, causes)),
    }
}

/// Stage 11. A change of nothing makes no version; the last finalizer's removal completes a deletion.
fn commit(api: &mut Api, key: Key, old: &Value, new: Value, holds: Holds) -> Response {
    if *old == new {
        let object = api.store.get(&key).map(|entry| entry.object.clone()).unwrap_or_default();
        return Response::Ok { object, created: false };
    }
    let finished = is_deleting(&new)
        && lifecycle::grace_seconds(&new) == Some(0)
        && list(at(&new, "metadata"), "finalizers").is_empty();
    let mut object = api.store.put(key.clone(), new, holds);
    if finished {
        object = api.store.remove(&key).unwrap_or(object);
    }
    Response::Ok { object, created: false }
}
