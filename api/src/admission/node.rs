//! What the pod's node must be able to do: PodResizeValidator and NodeDeclaredFeatureValidator (api-side §2.4). Both pass over a
//! request that leaves the generation as it is, and a node that nobody stored.

use super::attributes::{Attributes, Operation};
use super::cluster::Cluster;
use crate::amounts;
use crate::response::{Cause, CauseReason, Status};
use crate::view::{at, generation, list, name, named, only_in, spec_list, text};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The pod's node, if the request changes a spec there.
fn node_of<'a>(request: &Attributes<'_>, cluster: Cluster<'a>, parts: &[&str]) -> Option<&'a Arc<Value>> {
    let moved = generation(request.old_object) != generation(request.object);
    let asked = request.resource == "pods"
        && request.operation == Operation::Update
        && parts.contains(&request.subresource)
        && moved;
    let node_name = text(at(request.object, "spec"), "nodeName");
    asked.then(|| cluster.object("Node", "", node_name)).flatten()
}

/// The pod as a whole fits the node, and the node can resize.
pub(super) fn can_hold(request: &Attributes<'_>, cluster: Cluster<'_>) -> Result<(), Status> {
    let Some(node) = node_of(request, cluster, &["resize", "dynamic"]) else { return Ok(()) };
    let node_name = name(at(node, "metadata"));
    let refuse = |reason: CauseReason, field: &str, why: String| {
        let mut status = Status::forbidden(request.resource, request.name, &why);
        status.causes.push(Cause { field: field.to_owned(), reason, message: why, rule: "".into() });
        Err(status)
    };
    let system = match text(at(at(node, "status"), "nodeInfo"), "operatingSystem") {
        "" => text(at(at(node, "metadata"), "labels"), "kubernetes.io/os"),
        stated => stated,
    };
    if !matches!(system, "" | "linux") {
        let why = format!("node {node_name:?} runs {system}, where pods can't be resized");
        return refuse(CauseReason::UnsupportedPlatform, "spec.nodeName", why);
    }
    let allocatable = amounts::read(at(at(node, "status"), "allocatable"));
    for (resource, asked) in amounts::of_pod(request.object, "requests") {
        let Some(most) = allocatable.get(&resource).filter(|most| asked > **most) else { continue };
        let why = format!(
            "node {node_name:?} didn't have enough capacity: {resource}, requested: {asked}, capacity: {most}"
        );
        return refuse(
            CauseReason::NodeCapacity,
            &format!("spec.containers[*].resources.requests[{resource}]"),
            why,
        );
    }
    Ok(())
}

/// What a node must declare for containers to come and go.
const CONTAINERS: &str = "DynamicContainers";
/// What a node must declare for volumes and mounts to change.
const VOLUMES: &str = "DynamicNodeLocalEphemeralVolumes";

/// The node declares the features that the change needs.
pub(super) fn declares(request: &Attributes<'_>, cluster: Cluster<'_>) -> Result<(), Status> {
    let Some(node) = node_of(request, cluster, &["", "resize", "dynamic"]) else { return Ok(()) };
    let declared = list(at(node, "status"), "declaredFeatures");
    let needed = needed(request.old_object, request.object);
    let lacking: Vec<&str> = needed.into_iter().filter(|f| !declared.iter().any(|d| d == f)).collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let (features, node) = (lacking.join(", "), name(at(node, "metadata")));
    let why = format!("the update requires features {features} which node {node:?} does not declare");
    Err(Status::forbidden(request.resource, request.name, &why))
}

fn needed(old: &Value, new: &Value) -> BTreeSet<&'static str> {
    let differ = |list: &str| {
        let (before, after) = (spec_list(old, list), spec_list(new, list));
        only_in(before, after).chain(only_in(after, before)).next().is_some()
    };
    let remounted = spec_list(old, "containers").iter().any(|container| {
        let kept = named(spec_list(new, "containers"), name(container));
        kept.is_some_and(|kept| list(container, "volumeMounts") != list(kept, "volumeMounts"))
    });
    let mut needed = BTreeSet::new();
    if differ("containers") {
        needed.insert(CONTAINERS);
    }
    if differ("volumes") || remounted {
        needed.insert(VOLUMES);
    }
    needed
}
