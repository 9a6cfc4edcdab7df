//! The ServiceAccount plugin's checks: a pod names an account that is there, and, where the account says so
//! (`kubernetes.io/enforce-mountable-secrets`), only secrets that the account names.
//!
//! Upstream looks at creations and, for secrets, at new ephemeral containers. `/dynamic` brings containers and volumes, so it is
//! looked at too (api-side §2.4). The token's volume is injected into neither.

use super::attributes::{Attributes, Operation};
use super::cluster::Cluster;
use crate::authorize::node_graph::names_a_secret;
use crate::response::Status;
use crate::view::{at, is_mirror, list, name, spec_list, text};
use serde_json::Value;

const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";

/// The lists of containers, as messages call their entries.
const LISTS: [(&str, &str); 3] = [
    ("initContainers", "init container"),
    ("containers", "container"),
    ("ephemeralContainers", "ephemeral container"),
];

pub(super) fn check(request: &Attributes<'_>, cluster: Cluster<'_>) -> Result<(), Status> {
    let (of_volumes, lists) = match (request.operation, request.subresource) {
        (Operation::Create, "") => (true, &LISTS[..2]),
        (Operation::Update, "dynamic") => (true, &LISTS[1..2]),
        (Operation::Update, "ephemeralcontainers") => (false, &LISTS[2..]),
        (Operation::Create | Operation::Update | Operation::Delete, _) => return Ok(()),
    };
    let refused = |why: String| Status::forbidden(request.resource, request.name, &why);
    if request.resource != "pods" {
        return Ok(());
    }
    if is_mirror(request.object) {
        return mirror(request).map_err(refused);
    }
    let account = text(at(request.object, "spec"), "serviceAccountName");
    let Some(stored) = cluster.object("ServiceAccount", request.namespace, account) else {
        // Accounts are a cluster's: a node by itself has those that somebody stored.
        return Ok(());
    };
    if !enforces(stored) {
        return Ok(());
    }
    mountable(request, stored, of_volumes, lists).map_err(refused)
}

/// As Go reads a boolean.
fn enforces(account: &Value) -> bool {
    matches!(
        text(at(at(account, "metadata"), "annotations"), ENFORCE),
        "1" | "t" | "T" | "true" | "TRUE" | "True"
    )
}

/// A mirror pod refers to nothing that an API server holds.
fn mirror(request: &Attributes<'_>) -> Result<(), String> {
    if request.operation != Operation::Create {
        return Ok(());
    }
    if !text(at(request.object, "spec"), "serviceAccountName").is_empty() {
        return Err("a mirror pod may not reference service accounts".to_owned());
    }
    if names_a_secret(request.object) {
        return Err("a mirror pod may not reference secrets".to_owned());
    }
    let is_token = |source: &Value| !at(source, "serviceAccountToken").is_null();
    let projects = |volume: &Value| list(at(volume, "projected"), "sources").iter().any(is_token);
    if spec_list(request.object, "volumes").iter().any(projects) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections".to_owned());
    }
    Ok(())
}

fn mountable(
    request: &Attributes<'_>,
    account: &Value,
    of_volumes: bool,
    lists: &[(&str, &str)],
) -> Result<(), String> {
    let whose = name(at(account, "metadata"));
    let is_named = |list_name: &str, secret: &str| list(account, list_name).iter().any(|s| name(s) == secret);
    let not = format!("is not allowed because service account {whose} does not reference that secret");
    for volume in spec_list(request.object, "volumes").iter().filter(|_| of_volumes) {
        let secret = at(volume, "secret");
        let wanted = text(secret, "secretName");
        if secret.is_object() && !is_named("secrets", wanted) {
            return Err(format!("volume with secret.secretName={wanted:?} {not}"));
        }
    }
    for (list_name, called) in lists {
        for container in spec_list(request.object, list_name) {
            for variable in list(container, "env") {
                let reference = at(at(variable, "valueFrom"), "secretKeyRef");
                let wanted = name(reference);
                if reference.is_object() && !is_named("secrets", wanted) {
                    let (container, variable) = (name(container), name(variable));
                    return Err(format!(
                        "{called} {container} with envVar {variable} referencing secret.secretName={wanted:?} {not}"
                    ));
                }
            }
            for source in list(container, "envFrom") {
                let reference = at(source, "secretRef");
                let wanted = name(reference);
                if reference.is_object() && !is_named("secrets", wanted) {
                    let container = name(container);
                    return Err(format!(
                        "{called} {container} with envFrom referencing secret.secretName={wanted:?} {not}"
                    ));
                }
            }
        }
    }
    for (i, reference) in
        spec_list(request.object, "imagePullSecrets").iter().enumerate().filter(|_| of_volumes)
    {
        let wanted = name(reference);
        if !is_named("imagePullSecrets", wanted) {
            return Err(format!(
                "imagePullSecrets[{i}].name={wanted:?} is not allowed because service account {whose} does not \
                 reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}
