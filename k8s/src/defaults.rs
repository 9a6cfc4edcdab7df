//! What the API server fills in before it stores a pod (`SetDefaults_*` of core/v1), as far as a node runs
//! it.
//!
//! Defaults of persistent volume sources (iscsi, rbd, azureDisk, scaleIO, claim templates) and whatever
//! admission plugins add (priority, tolerations, a service account's token) are not among them.

use crate::quantity::Quantity;
use core::fmt::Write as _;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

type Object = Map<String, Value>;

/// Fills in a pod's defaults, and leaves out what Go's encoding leaves out: nulls, empty lists, and `false`,
/// `""` and `0` in fields that can't tell them from absence.
///
/// Doing it again changes nothing. What has the wrong type is left as it is, for [`crate::check_fields`] to
/// name.
pub fn default_pod(value: &mut Value) {
    let Some(pod) = value.as_object_mut() else { return };
    drop_nulls(pod);
    drop_empty(pod, &["status"]);
    if let Some(metadata) = object(pod, "metadata") {
        drop_nulls(metadata);
        drop_empty(metadata, &["labels", "annotations", "finalizers", "ownerReferences", "managedFields"]);
        drop_zero(metadata, &["namespace", "generateName", "uid", "resourceVersion", "generation"]);
    }
    if let Some(spec) = object(pod, "spec") {
        default_spec(spec);
    }
}

fn default_spec(spec: &mut Object) {
    drop_nulls_deep(spec);
    drop_zero(
        spec,
        &["hostNetwork", "hostPID", "hostIPC", "nodeName", "hostname", "subdomain", "priorityClassName"],
    );
    drop_zero(spec, &["serviceAccountName", "serviceAccount"]);
    drop_empty(spec, &["nodeSelector", "overhead"]);
    absent(spec, "restartPolicy", || json!("Always"));
    absent(spec, "dnsPolicy", || json!("ClusterFirst"));
    absent(spec, "schedulerName", || json!("default-scheduler"));
    absent(spec, "terminationGracePeriodSeconds", || json!(30));
    absent(spec, "enableServiceLinks", || json!(true));
    absent(spec, "securityContext", || json!({}));
    // The deprecated name is an alias that conversion writes too.
    match (spec.get("serviceAccountName").cloned(), spec.get("serviceAccount").cloned()) {
        (Some(name), _) => _ = spec.insert("serviceAccount".into(), name),
        (None, Some(name)) => _ = spec.insert("serviceAccountName".into(), name),
        (None, None) => {}
    }
    let host_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in objects(spec, list) {
            default_container(container, host_network && list != "ephemeralContainers");
        }
    }
    for volume in objects(spec, "volumes") {
        default_volume(volume);
    }
    if let Some(overhead) = object(spec, "overhead") {
        canonical_amounts(overhead);
    }
    default_pod_resources(spec);
}

fn default_container(container: &mut Object, host_network: bool) {
    drop_zero(container, &["stdin", "stdinOnce", "tty", "workingDir", "targetContainerName"]);
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default().to_owned();
    absent(container, "imagePullPolicy", || json!(default_pull_policy(&image)));
    absent(container, "terminationMessagePath", || json!("/dev/termination-log"));
    absent(container, "terminationMessagePolicy", || json!("File"));
    absent(container, "resources", || json!({}));
    if let Some(resources) = object(container, "resources") {
        drop_empty(resources, &["limits", "requests"]);
        for list in ["limits", "requests"] {
            if let Some(amounts) = object(resources, list) {
                canonical_amounts(amounts);
            }
        }
        // A limit without a request asks for as much.
        if let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() {
            let requests = resources.entry("requests").or_insert_with(|| json!({}));
            if let Some(requests) = requests.as_object_mut() {
                for (name, amount) in limits {
                    requests.entry(name).or_insert(amount);
                }
            }
        }
    }
    for port in objects(container, "ports") {
        absent(port, "protocol", || json!("TCP"));
        drop_zero(port, &["name", "hostIP", "hostPort"]);
        if host_network && let Some(number) = port.get("containerPort").cloned() {
            absent(port, "hostPort", || number);
        }
    }
    for mount in objects(container, "volumeMounts") {
        drop_zero(mount, &["readOnly", "subPath", "subPathExpr"]);
    }
    for variable in objects(container, "env") {
        drop_zero(variable, &["value"]);
        let Some(from) = object(variable, "valueFrom") else { continue };
        if let Some(field) = object(from, "fieldRef") {
            absent(field, "apiVersion", || json!("v1"));
        }
        if let Some(resource) = object(from, "resourceFieldRef") {
            absent(resource, "divisor", || json!("0"));
        }
        if let Some(file) = object(from, "fileKeyRef") {
            absent(file, "optional", || json!(false));
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = object(container, probe) else { continue };
        drop_zero(probe, &["initialDelaySeconds"]);
        for (name, seconds) in
            [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
        {
            drop_zero(probe, &[name]);
            absent(probe, name, || json!(seconds));
        }
        default_handler(probe);
        if let Some(grpc) = object(probe, "grpc") {
            absent(grpc, "service", || json!(""));
        }
    }
    if let Some(lifecycle) = object(container, "lifecycle") {
        for hook in ["postStart", "preStop"] {
            if let Some(hook) = object(lifecycle, hook) {
                default_handler(hook);
            }
        }
    }
}

fn default_handler(handler: &mut Object) {
    if let Some(get) = object(handler, "httpGet") {
        drop_zero(get, &["path", "scheme", "host"]);
        absent(get, "path", || json!("/"));
        absent(get, "scheme", || json!("HTTP"));
    }
}

fn default_volume(volume: &mut Object) {
    // A volume that says nothing of its source is scratch space.
    if volume.keys().all(|k| k == "name") {
        volume.insert("emptyDir".into(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = object(volume, source) {
            absent(source, "defaultMode", || json!(0o644));
            default_field_refs(source);
        }
    }
    if let Some(empty_dir) = object(volume, "emptyDir") {
        drop_zero(empty_dir, &["medium"]);
        if let Some(limit) = empty_dir.get_mut("sizeLimit") {
            canonical_amount(limit);
        }
    }
    if let Some(host_path) = object(volume, "hostPath") {
        absent(host_path, "type", || json!(""));
    }
    if let Some(image) = object(volume, "image") {
        let reference = image.get("reference").and_then(Value::as_str).unwrap_or_default().to_owned();
        absent(image, "pullPolicy", || json!(default_pull_policy(&reference)));
    }
    let Some(projected) = object(volume, "projected") else { return };
    for source in objects(projected, "sources") {
        if let Some(token) = object(source, "serviceAccountToken") {
            absent(token, "expirationSeconds", || json!(3600));
        }
        if let Some(downward) = object(source, "downwardAPI") {
            default_field_refs(downward);
        }
    }
}

fn default_field_refs(source: &mut Object) {
    for item in objects(source, "items") {
        if let Some(field) = object(item, "fieldRef") {
            absent(field, "apiVersion", || json!("v1"));
        }
        if let Some(resource) = object(item, "resourceFieldRef") {
            absent(resource, "divisor", || json!("0"));
        }
    }
}

/// Pod-level requests, once pod-level limits are given: what the containers ask for together, else the limit.
fn default_pod_resources(spec: &mut Object) {
    let asked = containers_together(spec, "requests");
    let limited = containers_together(spec, "limits");
    let Some(resources) = object(spec, "resources") else { return };
    drop_empty(resources, &["limits", "requests"]);
    for list in ["limits", "requests"] {
        if let Some(amounts) = object(resources, list) {
            canonical_amounts(amounts);
        }
    }
    // Hugepages can't be overcommitted: their limit follows the containers' even before any limit is given.
    for (name, amount) in limited.iter().filter(|(name, _)| name.starts_with("hugepages-")) {
        let limits = resources.entry("limits").or_insert_with(|| json!({}));
        if let Some(limits) = limits.as_object_mut() {
            limits.entry(name.clone()).or_insert_with(|| json!(amount.to_string()));
        }
    }
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    let requests = resources.entry("requests").or_insert_with(|| json!({}));
    let Some(requests) = requests.as_object_mut() else { return };
    for (name, amount) in asked.iter().filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory")) {
        requests.entry(name.clone()).or_insert_with(|| json!(amount.to_string()));
    }
    for (name, limit) in limits {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with("hugepages-") {
            requests.entry(name).or_insert(limit);
        }
    }
}

/// What all containers need at once (`list` is `requests` or `limits`): mains and sidecars together, or an init
/// container with the sidecars before it.
pub fn containers_together(spec: &Object, list: &str) -> BTreeMap<String, Quantity> {
    let of = |container: &Value| -> BTreeMap<String, Quantity> {
        let amounts = container.pointer(&format!("/resources/{list}")).and_then(Value::as_object);
        let parsed = amounts.into_iter().flatten();
        parsed.filter_map(|(name, v)| Some((name.clone(), Quantity::from_json(v).ok()?))).collect()
    };
    let all = |list: &str| spec.get(list).and_then(Value::as_array).into_iter().flatten();
    let (mut sidecars, mut peak) = (BTreeMap::new(), BTreeMap::new());
    for container in all("initContainers") {
        let mut at_this_point = sidecars.clone();
        add(&mut at_this_point, &of(container));
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            add(&mut sidecars, &of(container));
        }
        raise(&mut peak, &at_this_point);
    }
    let mut running = sidecars;
    for container in all("containers") {
        add(&mut running, &of(container));
    }
    raise(&mut peak, &running);
    peak
}

fn add(sum: &mut BTreeMap<String, Quantity>, more: &BTreeMap<String, Quantity>) {
    for (name, amount) in more {
        sum.entry(name.clone()).and_modify(|a| *a = a.plus(*amount)).or_insert(*amount);
    }
}

fn raise(peak: &mut BTreeMap<String, Quantity>, to: &BTreeMap<String, Quantity>) {
    for (name, amount) in to {
        peak.entry(name.clone()).and_modify(|a| *a = (*a).max(*amount)).or_insert(*amount);
    }
}

/// `Always` for `:latest` or no tag at all, else `IfNotPresent`; a digest without a tag is a tag enough.
pub(crate) fn default_pull_policy(image: &str) -> &'static str {
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    let last = name.rsplit('/').next().unwrap_or(name);
    match (last.split_once(':'), digest) {
        (Some((_, "latest")), _) => "Always",
        (Some(_), _) | (None, Some(_)) => "IfNotPresent",
        (None, None) if last.is_empty() => "IfNotPresent",
        (None, None) => "Always",
    }
}

fn canonical_amounts(amounts: &mut Object) {
    for (_, amount) in amounts.iter_mut() {
        canonical_amount(amount);
    }
}

fn canonical_amount(amount: &mut Value) {
    if let Ok(quantity) = Quantity::from_json(amount) {
        let mut text = String::new();
        let written = write!(text, "{}", quantity.rounded_to_milli());
        debug_assert!(written.is_ok(), "writing to a string can't fail");
        *amount = Value::String(text);
    }
}

fn object<'v>(of: &'v mut Object, name: &str) -> Option<&'v mut Object> {
    of.get_mut(name)?.as_object_mut()
}

fn objects<'v>(of: &'v mut Object, name: &str) -> impl Iterator<Item = &'v mut Object> {
    of.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

fn absent(of: &mut Object, name: &str, default: impl FnOnce() -> Value) {
    match of.get_mut(name) {
        None => _ = of.insert(name.to_owned(), default()),
        Some(value @ Value::Null) => *value = default(),
        // An empty string is no choice: Go can't tell it from an absent field.
        Some(Value::String(text)) if text.is_empty() => _ = of.insert(name.to_owned(), default()),
        Some(_) => {}
    }
}

fn drop_zero(of: &mut Object, names: &[&str]) {
    for name in names {
        let zero = match of.get(*name) {
            Some(Value::Bool(value)) => !value,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Number(number)) => number.as_i64() == Some(0),
            Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => false,
        };
        if zero {
            of.shift_remove(*name);
        }
    }
}

fn drop_empty(of: &mut Object, names: &[&str]) {
    for name in names {
        if of.get(*name).is_some_and(is_empty) {
            of.shift_remove(*name);
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn drop_nulls(of: &mut Object) {
    of.retain(|_, value| !value.is_null());
}

/// Nulls and empty lists say nothing anywhere in a pod's spec.
fn drop_nulls_deep(of: &mut Object) {
    of.retain(|_, value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => true,
    });
    for (_, value) in of.iter_mut() {
        match value {
            Value::Object(fields) => drop_nulls_deep(fields),
            Value::Array(items) => {
                items.iter_mut().filter_map(Value::as_object_mut).for_each(drop_nulls_deep)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}
