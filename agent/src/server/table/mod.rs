//! Tables, as `kubectl get` asks for them: the server's columns for each kind (api-side §5.3).

mod duration;
mod pod;

use super::resource::Resource;
use duration::since;
use nodefold_core::time::Time;
use nodefold_k8s::time;
use serde_json::{Value, json};

/// How much of each object a row carries (`includeObject`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
}

/// A column: its name, its format, whether only `-o wide` shows it, what it is.
type Column = (&'static str, &'static str, bool, &'static str);

const NAME: Column = ("Name", "name", false, "Name must be unique within a namespace.");
const AGE: Column = ("Age", "", false, "The time since the object was created.");

/// The table of these objects.
pub fn table(
    resource: &Resource,
    objects: &[impl AsRef<Value>],
    metadata: Value,
    include: Include,
    now: Time,
) -> Value {
    let columns: Vec<Value> = columns(resource.kind)
        .iter()
        .map(|(name, format, wide, description)| {
            let kind = if *name == "Data" || *name == "Secrets" { "integer" } else { "string" };
            let kind = if *name == "Webhooks" || *name == "Validations" { "integer" } else { kind };
            json!({"name": name, "type": kind, "format": format, "description": description,
                "priority": i32::from(*wide)})
        })
        .collect();
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let object = object.as_ref();
            let mut row = json!({"cells": cells(resource.kind, object, now)});
            match include {
                Include::None => row["object"] = Value::Null,
                Include::Object => row["object"] = object.clone(),
                Include::Metadata => {
                    row["object"] = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                        "metadata": object["metadata"]});
                }
            }
            row
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
        "columnDefinitions": columns, "rows": rows})
}

fn columns(kind: &str) -> &'static [Column] {
    match kind {
        "Pod" => &pod::COLUMNS,
        "Node" => &[
            NAME,
            ("Status", "", false, "The status of the node"),
            ("Roles", "", false, "The roles of the node"),
            AGE,
            ("Version", "", false, "Kubelet Version reported by the node."),
            ("Internal-IP", "", true, "List of addresses reachable to the node."),
            ("External-IP", "", true, "List of addresses reachable to the node."),
            ("OS-Image", "", true, "OS Image reported by the node"),
            ("Kernel-Version", "", true, "Kernel Version reported by the node"),
            ("Container-Runtime", "", true, "ContainerRuntime Version reported by the node"),
        ],
        "ContainerRun" => &[
            ("Pod", "", false, "The pod."),
            ("Container", "", false, "The container."),
            ("Run", "", false, "Which life of its name, and which start of that."),
            ("Asked By", "", false, "Who asked for the container."),
            ("Started", "date-time", false, "When it started."),
            ("Ended", "date-time", false, "When it ended."),
            ("Exit", "", false, "Its exit code, and why."),
            ("Asked At", "date-time", true, "When it was asked for."),
            ("Image", "", true, "Its image."),
            ("Name", "name", true, "The run's own name."),
        ],
        "VolumeRun" => &[
            ("Pod", "", false, "The pod."),
            ("Volume", "", false, "The volume."),
            ("Run", "", false, "Which life of its name."),
            ("Source", "", false, "What it is made from."),
            ("Asked By", "", false, "Who asked for the volume."),
            ("Mounted", "date-time", false, "When it was there."),
            ("Unmounted", "date-time", false, "When nothing of it was left."),
            ("Asked At", "date-time", true, "When it was asked for."),
            ("Name", "name", true, "The run's own name."),
        ],
        "Allocation" => &[
            NAME,
            ("Generation", "", false, "Which generation of the pod is allocated."),
            ("Containers", "", false, "The containers that it has."),
            ("Volumes", "", false, "The volumes that it has."),
            ("Asked By", "", false, "Who asked for it."),
            ("Allocated", "date-time", false, "When it was allocated."),
            ("Asked At", "date-time", true, "When it was asked for."),
            ("Revision", "", true, "The number of the fact that decided it."),
            ("Images", "", true, "The containers' images."),
        ],
        "Namespace" => &[NAME, ("Status", "", false, "The status of the namespace"), AGE],
        "Event" => &[
            ("Last Seen", "", false, "Time this event was last observed"),
            ("Type", "", false, "Type of this event"),
            ("Reason", "", false, "Why this event was generated"),
            ("Object", "", false, "Object this event is about"),
            ("Subobject", "", true, "The part of the object"),
            ("Source", "", true, "The component reporting this event"),
            ("Message", "", false, "What happened"),
            ("First Seen", "", true, "Time this event was first observed"),
            ("Count", "", true, "How often"),
            ("Name", "name", true, "Name must be unique within a namespace."),
        ],
        "Secret" => &[
            NAME,
            ("Type", "", false, "Used to facilitate programmatic handling of secret data."),
            ("Data", "", false, "The number of keys."),
            AGE,
        ],
        "ConfigMap" => &[NAME, ("Data", "", false, "The number of keys."), AGE],
        "ServiceAccount" => &[NAME, ("Secrets", "", false, "The number of secrets."), AGE],
        "RoleBinding" | "ClusterRoleBinding" => &[
            NAME,
            ("Role", "", false, "The role."),
            AGE,
            ("Users", "", true, "Users"),
            ("Groups", "", true, "Groups"),
            ("ServiceAccounts", "", true, "Service accounts"),
        ],
        "Role" | "ClusterRole" | "LimitRange" => {
            &[NAME, ("Created At", "date", false, "When the object was created.")]
        }
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            &[NAME, ("Webhooks", "", false, "The number of webhooks."), AGE]
        }
        "ValidatingAdmissionPolicy" => &[
            NAME,
            ("Validations", "", false, "The number of validations."),
            ("ParamKind", "", false, "The kind of its parameters."),
            AGE,
        ],
        "ValidatingAdmissionPolicyBinding" => {
            &[NAME, ("PolicyName", "", false, "The policy."), ("ParamRef", "", false, "The parameters."), AGE]
        }
        _ => &[NAME, AGE],
    }
}

fn cells(kind: &str, object: &Value, now: Time) -> Value {
    let name = &object["metadata"]["name"];
    let created = object["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
    let age = since(created, now);
    let count = |value: &Value| match value {
        Value::Object(fields) => fields.len(),
        Value::Array(entries) => entries.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    match kind {
        "Pod" => pod::cells(object, now),
        "Node" => node_cells(object, &age),
        "ContainerRun" => {
            let (spec, status) = (&object["spec"], &object["status"]);
            let exit = match status["exitCode"].as_i64() {
                Some(code) => format!("{code} {}", word(&status["reason"])),
                None => "<running>".to_owned(),
            };
            json!([
                spec["pod"],
                spec["container"],
                format!("{}.{}", spec["incarnation"], spec["attempt"]),
                or_none(&spec["askedBy"]),
                status["startedAt"],
                or_none(&status["finishedAt"]),
                exit,
                or_none(&spec["askedAt"]),
                spec["image"],
                name
            ])
        }
        "VolumeRun" => {
            let (spec, status) = (&object["spec"], &object["status"]);
            json!([
                spec["pod"],
                spec["volume"],
                spec["generation"].to_string(),
                spec["source"],
                or_none(&spec["askedBy"]),
                status["mountedAt"],
                or_none(&status["unmountedAt"]),
                or_none(&spec["askedAt"]),
                name
            ])
        }
        "Allocation" => {
            let (spec, status) = (&object["spec"], &object["status"]);
            let words = |list: &Value, field: &str| {
                let words: Vec<&str> =
                    list.as_array().into_iter().flatten().map(|entry| word(&entry[field])).collect();
                if words.is_empty() { "<none>".to_owned() } else { words.join(",") }
            };
            json!([
                name,
                spec["generation"].to_string(),
                words(&spec["containers"], "name"),
                words(&spec["volumes"], "name"),
                or_none(&spec["askedBy"]),
                status["allocatedAt"],
                or_none(&spec["askedAt"]),
                status["revision"].to_string(),
                words(&spec["containers"], "image")
            ])
        }
        "Namespace" => json!([name, phase_of_namespace(object), age]),
        "Event" => event_cells(object, now),
        "Secret" => json!([name, object["type"], count(&object["data"]), age]),
        "ConfigMap" => json!([name, count(&object["data"]) + count(&object["binaryData"]), age]),
        "ServiceAccount" => json!([name, count(&object["secrets"]), age]),
        "RoleBinding" | "ClusterRoleBinding" => {
            let role = format!("{}/{}", word(&object["roleRef"]["kind"]), word(&object["roleRef"]["name"]));
            let of = |kind: &str| {
                let subjects = object["subjects"].as_array().into_iter().flatten();
                let named = subjects.filter(|s| s["kind"] == kind).map(|s| match s["namespace"].as_str() {
                    Some(place) if kind == "ServiceAccount" => format!("{place}/{}", word(&s["name"])),
                    Some(_) | None => word(&s["name"]).to_owned(),
                });
                named.collect::<Vec<_>>().join(", ")
            };
            json!([name, role, age, of("User"), of("Group"), of("ServiceAccount")])
        }
        "Role" | "ClusterRole" | "LimitRange" => json!([name, created]),
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            json!([name, count(&object["webhooks"]), age])
        }
        "ValidatingAdmissionPolicy" => {
            let kind = match object["spec"]["paramKind"]["kind"].as_str() {
                Some(kind) => format!("{}/{kind}", word(&object["spec"]["paramKind"]["apiVersion"])),
                None => "<unset>".to_owned(),
            };
            json!([name, count(&object["spec"]["validations"]), kind, age])
        }
        "ValidatingAdmissionPolicyBinding" => {
            let reference = object["spec"]["paramRef"]["name"].as_str().unwrap_or("<unset>");
            json!([name, object["spec"]["policyName"], reference, age])
        }
        _ => json!([name, age]),
    }
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn or_none(value: &Value) -> &str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or("<none>")
}

fn phase_of_namespace(object: &Value) -> &str {
    if object["metadata"]["deletionTimestamp"].is_null() {
        word(&object["status"]["phase"])
    } else {
        "Terminating"
    }
}

fn node_cells(node: &Value, age: &str) -> Value {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.clone().find(|c| c["type"] == "Ready");
    let mut status = match ready.map(|c| word(&c["status"])) {
        Some("True") => "Ready".to_owned(),
        Some("False") => "NotReady".to_owned(),
        Some(_) | None => "Unknown".to_owned(),
    };
    if node["spec"]["unschedulable"] == true {
        status += ",SchedulingDisabled";
    }
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: Vec<&str> =
        labels.filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")).collect();
    let roles = if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") };
    let address = |kind: &str| {
        let addresses = node["status"]["addresses"].as_array().into_iter().flatten();
        addresses.clone().find(|a| a["type"] == kind).map_or("<none>", |a| or_none(&a["address"]))
    };
    let info = &node["status"]["nodeInfo"];
    let unknown = |value: &Value| value.as_str().filter(|t| !t.is_empty()).unwrap_or("<unknown>").to_owned();
    json!([
        node["metadata"]["name"],
        status,
        roles,
        age,
        info["kubeletVersion"],
        address("InternalIP"),
        address("ExternalIP"),
        unknown(&info["osImage"]),
        unknown(&info["kernelVersion"]),
        unknown(&info["containerRuntimeVersion"])
    ])
}

fn event_cells(event: &Value, now: Time) -> Value {
    let involved = &event["involvedObject"];
    let object = format!("{}/{}", word(&involved["kind"]).to_lowercase(), word(&involved["name"]));
    let first = word(&event["firstTimestamp"]);
    let last = Some(word(&event["lastTimestamp"])).filter(|text| !text.is_empty()).unwrap_or(first);
    let source = [word(&event["source"]["component"]), word(&event["source"]["host"])];
    let source: Vec<&str> = source.into_iter().filter(|text| !text.is_empty()).collect();
    json!([
        since(last, now),
        event["type"],
        event["reason"],
        object,
        word(&involved["fieldPath"]),
        source.join(", "),
        word(&event["message"]).trim(),
        since(first, now),
        event["count"],
        event["metadata"]["name"]
    ])
}

/// The moment that a field tells.
fn moment(text: &str) -> Option<Time> {
    time::parse(text).ok()
}

#[cfg(test)]
mod tests;
