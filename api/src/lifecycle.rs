//! Deletion. A pod is first only marked: it gets a deadline, the node ends it and releases it. A repeated
//! delete can shorten the deadline, never lengthen it. A grace period of 0 removes the object at once,
//! finalizers permitting.

use crate::Api;
use crate::admission::attributes::Operation;
use crate::call::{Admission, Call};
use crate::hold::Holds;
use crate::response::{Response, Status};
use crate::store::Key;
use crate::view::{at, generation, is_deleting, is_terminal, list, text};
use nodefold_core::ids::PodUid;
use nodefold_core::time::{Nanos, Time};
use nodefold_k8s::time;
use serde_json::{Value, json};

/// Admission of a client's DELETE. What a node releases is gone from it already: nobody is asked about that.
pub(crate) fn admitted(api: &Api, call: &mut Call<'_>, key: &Key) -> Result<(), Status> {
    let Some(entry) = api.store.get(key) else { return Err(Status::not_found(&key.kind, &key.name)) };
    let admission = Admission::new(api, key, Operation::Delete, "");
    admission.validate(api, call, key, &entry.object, &Value::Null)
}

/// DELETE by a client.
pub(crate) fn delete(api: &mut Api, now: Time, key: &Key, asked: Option<u64>) -> Result<Response, Status> {
    let Some(entry) = api.store.get(key) else { return Err(Status::not_found(&key.kind, &key.name)) };
    let (stored, holds) = (entry.object.clone(), entry.holds.clone());
    let object = match (is_deleting(&stored), grace_seconds(&stored), asked) {
        (true, Some(current), Some(shorter)) if shorter < current => {
            let mut object = Value::clone(&stored);
            shorten(&mut object, now, current, shorter);
            object
        }
        // Already under way, and not to be hurried.
        (true, _, _) => return Ok(Response::Ok { object: stored, created: false }),
        (false, _, _) => {
            let mut object = Value::clone(&stored);
            let grace = if &*key.kind == "Pod" { pod_grace_seconds(&stored, asked) } else { 0 };
            begin(&mut object, now, grace);
            object
        }
    };
    Ok(marked(api, key, object, holds))
}

/// The node's last word on a pod: a delete with grace period 0 of exactly this UID.
pub(crate) fn release(api: &mut Api, now: Time, uid: PodUid) -> Result<Response, Status> {
    match api.find_pod(uid) {
        Some(key) => delete(api, now, &key, Some(0)),
        None => Err(Status::not_found("Pod", &uid.to_string())),
    }
}

/// `metadata.deletionGracePeriodSeconds`.
pub(crate) fn grace_seconds(object: &Value) -> Option<u64> {
    at(at(object, "metadata"), "deletionGracePeriodSeconds").as_u64()
}

/// How long a pod gets: what was asked, else what its spec says; nothing if no node has to do anything for
/// it.
fn pod_grace_seconds(pod: &Value, asked: Option<u64>) -> u64 {
    let spec = at(pod, "spec");
    let unbound = text(spec, "nodeName").is_empty();
    if unbound || is_terminal(text(at(pod, "status"), "phase")) {
        return 0;
    }
    // A negative period in the spec means the shortest.
    let own = at(spec, "terminationGracePeriodSeconds").as_i64().map(|own| u64::try_from(own).unwrap_or(1));
    // The field is an int64.
    asked.or(own).unwrap_or(0).min(i64::MAX.unsigned_abs())
}

fn begin(object: &mut Value, now: Time, grace: u64) {
    let deadline = now.after(Nanos::secs(grace));
    let moved = generation(object) + 1;
    let metadata = &mut object["metadata"];
    metadata["deletionTimestamp"] = json!(time::format(deadline));
    metadata["deletionGracePeriodSeconds"] = json!(grace);
    if moved > 1 {
        metadata["generation"] = json!(moved);
    }
}

/// The deadline as if the shorter period had been asked for at first, but not in the past.
fn shorten(object: &mut Value, now: Time, current: u64, shorter: u64) {
    let metadata = &mut object["metadata"];
    let deadline = time::parse(text(metadata, "deletionTimestamp")).unwrap_or(now);
    let asked_at = Time(deadline.0.saturating_sub(Nanos::secs(current).0));
    let sooner = asked_at.after(Nanos::secs(shorter)).max(now);
    metadata["deletionTimestamp"] = json!(time::format(sooner.min(deadline.max(now))));
    metadata["deletionGracePeriodSeconds"] = json!(shorter);
}

/// Stores the mark; with no grace left and no finalizers, the object goes.
fn marked(api: &mut Api, key: &Key, object: Value, holds: Holds) -> Response {
    let goes = grace_seconds(&object) == Some(0) && list(at(&object, "metadata"), "finalizers").is_empty();
    let is_pod = &*key.kind == "Pod";
    let mut stored = None;
    // A watch sees a pod's mark even if the pod goes at once; other kinds just go.
    if is_pod || !goes {
        stored = Some(api.store.put(key.clone(), object, holds));
    }
    if goes {
        stored = api.store.remove(key);
    }
    Response::Ok { object: stored.unwrap_or_default(), created: false }
}
