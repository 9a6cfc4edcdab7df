//! Patches on stored pods: texts of JSON as strategic-merge patch, merge patch and JSON patch, and drawn ones.

use super::choices::Bytes;
use super::json::any;
use nodefold_api::{Api, ApiConfig, ApiEvent, Body, Request, Response};
use nodefold_core::time::Time;
use nodefold_harness::swarm::Chance;
use nodefold_k8s::merge::strategic_merge_pod;
use nodefold_k8s::{check_patch_fields, parse_documents};
use serde_json::{Value, json};

/// The first line: the stored pod, unless it is empty; the rest: the patch. Where they are no JSON, bytes draw the patch.
pub fn patch(data: &[u8]) {
    let split = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (first, rest) = data.split_at(split);
    let stored = read(first).filter(Value::is_object).unwrap_or_else(pod);
    let patch = read(rest).unwrap_or_else(|| any(&mut Bytes::new(rest)));
    merged(&stored, &patch);
    check_patch_fields(&patch, "Pod");
    let mut bytes = Bytes::new(rest);
    for body in
        [Body::StrategicMerge(patch.clone()), Body::Merge(patch.clone()), Body::JsonPatch(patch.clone())]
    {
        let mut api = Api::holding(ApiConfig::default(), [stored.clone()]);
        let (namespace, name) = ("default".into(), "web".into());
        let request = match bytes.below(2) {
            0 => Request::Dynamic { namespace, name, body },
            _ => Request::PatchStatus { namespace, name, body },
        };
        let before = api.digest();
        if let Response::Rejected(status) = api.apply(&ApiEvent::new(Time(1), request, "fuzz")) {
            assert_eq!(api.digest(), before, "a refusal changes nothing: {status:?}");
        }
    }
}

fn read(text: &[u8]) -> Option<Value> {
    let text = core::str::from_utf8(text).ok()?;
    parse_documents(text, "patch.json").ok()?.into_iter().next().map(|document| document.value)
}

fn pod() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "uid": "00000000-0000-4000-8000-000000000001"},
        "spec": {"nodeName": "node", "containers": [
            {"name": "app", "image": "i:1", "env": [{"name": "A", "value": "1"}], "volumeMounts": [{"name": "va", "mountPath": "/va"}]},
            {"name": "log", "image": "i:1", "ports": [{"containerPort": 80}]}],
            "volumes": [{"name": "va", "emptyDir": {}}, {"name": "vb", "configMap": {"name": "x"}}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}})
}

/// Laws of the strategic merge.
fn merged(stored: &Value, patch: &Value) {
    match strategic_merge_pod(stored, patch) {
        Ok(merged) => {
            assert!(merged.is_object(), "a pod is an object");
            // Nothing of the patch's own language is left, so a patch that asks for nothing changes nothing more.
            let again = strategic_merge_pod(&merged, &json!({}));
            assert_eq!(again.as_ref(), Ok(&merged), "an empty patch");
        }
        Err(error) => {
            assert!(matches!(error.http_code(), 400 | 422));
            assert!(!error.to_string().is_empty());
        }
    }
}
