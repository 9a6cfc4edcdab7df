//! What a pod can be asked about itself: `fieldRef` and `resourceFieldRef`, for volumes and for environments alike.

use nodefold_core::resources::{ResourceList, ResourceName, Resources};
use nodefold_core::spec::{Container, Pod, PodSpec};
use nodefold_k8s::quantity::Quantity;
use serde_json::Value;

/// A pod, as fields are read from it.
pub struct PodFields<'a> {
    /// The pod.
    pub pod: &'a Pod,
    /// The allocation that counts.
    pub spec: &'a PodSpec,
    /// The node, for what a container without a limit may use.
    pub allocatable: &'a ResourceList,
    /// The node's name.
    pub node_name: &'a str,
    /// The pod's address, once it has one.
    pub pod_ip: Option<&'a str>,
}

impl PodFields<'_> {
    /// The text of a `fieldPath`.
    pub fn field(&self, path: &str) -> Result<String, String> {
        let metadata = nodefold_k8s::blob_to_json(&self.pod.metadata);
        if let Some((map, key)) = subscript(path) {
            let field = match map {
                "metadata.labels" => "labels",
                "metadata.annotations" => "annotations",
                other => return Err(format!("fieldPath {other}['{key}'] is not supported")),
            };
            return Ok(metadata[field][key].as_str().unwrap_or("").to_owned());
        }
        let rest = || nodefold_k8s::blob_to_json(&self.spec.rest);
        Ok(match path {
            "metadata.name" => self.pod.name.to_string(),
            "metadata.namespace" => self.pod.namespace.to_string(),
            "metadata.uid" => self.pod.uid.to_string(),
            "metadata.labels" => lines(&metadata["labels"]),
            "metadata.annotations" => lines(&metadata["annotations"]),
            "spec.nodeName" => self.node_name.to_owned(),
            "spec.serviceAccountName" => {
                rest()["serviceAccountName"].as_str().unwrap_or("default").to_owned()
            }
            "status.podIP" | "status.podIPs" => self.pod_ip.unwrap_or("").to_owned(),
            "status.hostIP" | "status.hostIPs" => "127.0.0.1".to_owned(),
            other => return Err(format!("fieldPath {other} is not supported")),
        })
    }

    /// The number of a `resourceFieldRef`. `own` is the container that asks, where it need not be named.
    pub fn resource(&self, reference: &Value, own: Option<&str>) -> Result<String, String> {
        let name = reference["containerName"].as_str().filter(|name| !name.is_empty()).or(own);
        let Some(name) = name else { return Err("resourceFieldRef needs a containerName".into()) };
        let container = self.container(name).ok_or_else(|| format!("there is no container {name}"))?;
        let resource = reference["resource"].as_str().unwrap_or("");
        let (list, kind) = resource.split_once('.').ok_or_else(|| {
            format!("resource {resource:?} is not supported: write limits.cpu, requests.memory, ...")
        })?;
        let of = ResourceName::parse(kind);
        let Resources { requests, limits } = &container.resources;
        let units = match list {
            "limits" => limits.given(&of).unwrap_or_else(|| self.allocatable.get(&of)),
            "requests" => requests.get(&of),
            _ => return Err(format!("resource {resource:?} is not supported")),
        };
        let given = &reference["divisor"];
        let divisor = match given.is_null() {
            true => None,
            false => Some(Quantity::from_json(given).map_err(|error| error.to_string())?),
        };
        // CPU counts in thousandths on both sides, everything else in ones; a divisor of 0 means 1.
        let divisor = match (&of, divisor) {
            (ResourceName::Cpu, None) => 1000,
            (ResourceName::Cpu, Some(divisor)) => divisor.milli(),
            (_, None) => 1,
            (_, Some(divisor)) => divisor.units(),
        };
        let divisor = match (divisor, &of) {
            (0, ResourceName::Cpu) => 1000,
            (0, _) => 1,
            (divisor, _) => divisor,
        };
        Ok(units.div_ceil(divisor).to_string())
    }

    fn container(&self, name: &str) -> Option<&Container> {
        let PodSpec { init_containers, containers, ephemeral_containers, .. } = self.spec;
        let mut all = containers.iter().chain(init_containers).chain(ephemeral_containers);
        all.find(|container| &*container.name == name).map(|container| &**container)
    }
}

/// `metadata.labels['app']` as map and key.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (map, rest) = path.split_once("['")?;
    Some((map, rest.strip_suffix("']")?))
}

/// `key="value"` a line, sorted, quoted as Go does.
fn lines(map: &Value) -> String {
    let mut lines: Vec<String> = map
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", quoted(value.as_str().unwrap_or(""))))
        .collect();
    lines.sort();
    lines.join("\n")
}

fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
