//! What a permitted request does: creations and deletions here, the rest in the rooms beside.

use super::super::ask::{Deletion, Manager, Reply, Target, What};
use super::super::failure::Failure;
use super::super::resource::Resource;
use super::super::selection::Selection;
use super::super::{managed, reviews};
use super::{By, Hub};
use crate::fault::Fault;
use nodefold_api::admission::attributes::User;
use nodefold_api::{ApiEvent, Request, Response};
use serde_json::{Value, json};
use std::sync::Arc;

/// What may go wrong: with the request, or with the node.
pub(super) type Outcome = Result<Result<Reply, Failure>, Fault>;

impl Hub {
    /// Does it. An error is the node's end, not the request's.
    pub(super) fn perform(&mut self, by: By<'_>, target: &Target, what: What) -> Result<Reply, Fault> {
        let outcome = match target {
            Target::Path(_) => match what {
                What::Allocated(words) => Ok(self.all_allocated(&words)),
                What::Get
                | What::List { .. }
                | What::Exec { .. }
                | What::Refused { .. }
                | What::Watch(_)
                | What::Create { .. }
                | What::Change { .. }
                | What::Delete(_)
                | What::DeleteAll(..)
                | What::Log { .. }
                | What::Attach { .. }
                | What::Review(_)
                | What::Permission(_) => Ok(Ok(Reply::Permitted)),
            },
            Target::Objects { resource, part, namespace, name } => {
                if let Some(part) = part
                    && !self.serves(part.name)
                {
                    return Ok(Reply::Refused(Failure::no_such_route()));
                }
                match what {
                    What::Get => Ok(self.get(resource, *part, namespace, name)),
                    What::List { exact, when } => Ok(self.list(resource, namespace, exact, when)),
                    What::Exec { container, command, tty } => {
                        Ok(self.exec(namespace, name, &container, command, tty))
                    }
                    What::Watch(from) => Ok(self.watch(resource, namespace, name, from)),
                    What::Attach { container, stdin } => Ok(self.attach(namespace, name, &container, stdin)),
                    What::Log { container } => Ok(self.log(namespace, name, &container)),
                    What::Create { mut object, manager, dry_run } => {
                        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                            metadata.shift_remove("managedFields");
                        }
                        self.create(by, resource, namespace, object, &manager, dry_run)
                    }
                    What::Change { body, manager, dry_run } => {
                        self.change(by, resource, *part, namespace, name, body, &manager, dry_run)
                    }
                    What::Delete(deletion) => self.delete(by, resource, namespace, name, &deletion),
                    What::DeleteAll(deletion, selection) => {
                        self.delete_all(by, resource, namespace, &deletion, &selection)
                    }
                    What::Review(review) => Ok(Ok(self.review(by.user, resource, review))),
                    What::Allocated(_) | What::Permission(_) | What::Refused { .. } => {
                        Ok(Ok(Reply::Permitted))
                    }
                }
            }
        };
        Ok(outcome?.unwrap_or_else(Reply::Refused))
    }

    /// The part of pods is switched on.
    fn serves(&self, part: &str) -> bool {
        let off = self.settings.disabled_pod_subresources.iter().any(|off| &**off == part);
        let gated = super::super::GATED.contains(&part) && !self.api.gates().dynamic_containers;
        !off && !gated
    }

    pub(super) fn create(
        &mut self,
        by: By<'_>,
        resource: &Resource,
        namespace: &str,
        mut object: Value,
        manager: &Manager,
        dry_run: bool,
    ) -> Outcome {
        if let Err(failure) = placed(resource, namespace, &mut object) {
            return Ok(Err(failure));
        }
        if resource.namespaced {
            match self.api.get("Namespace", "", namespace) {
                None => return Ok(Err(Failure::not_found("", "namespaces", namespace))),
                Some(place) if !place["metadata"]["deletionTimestamp"].is_null() => {
                    let name = object["metadata"]["name"].as_str().unwrap_or_default();
                    let why = format!(
                        "unable to create new content in namespace {namespace} because it is being terminated"
                    );
                    return Ok(Err(Failure::forbidden(resource.group, resource.plural, name, &why)));
                }
                Some(_) => {}
            }
        }
        complete(resource, &mut object);
        // What is applied comes with its owners.
        if object["metadata"]["managedFields"].is_null() {
            managed::created(resource.kind, &mut object, manager, self.now);
        }
        let request = Request::Create { object, uid: Hub::new_uid()? };
        self.answered(by, resource, request, dry_run)
    }

    /// Applies a request, or only asks what it would do, and makes the answer.
    pub(super) fn answered(
        &mut self,
        by: By<'_>,
        resource: &Resource,
        request: Request,
        dry_run: bool,
    ) -> Outcome {
        let event = ApiEvent {
            dry_run,
            field_validation: by.how.field_validation,
            webhooks: by.how.webhooks.clone(),
            ..ApiEvent::of(self.now, request, by.user.clone())
        };
        if self.api.has_webhooks()
            && let Some(call) = self.api.next_webhook(&event.sealed(&self.settings.content_key))
        {
            return Ok(Err(Failure::until_asked(call)));
        }
        let performed = self.take(&event)?;
        let warnings = performed.warnings;
        self.noted.extend(performed.audit_annotations);
        Ok(match performed.response {
            Response::Ok { object, created } => {
                Ok(Reply::Object { object: self.vault.unsealed(&object), created, warnings })
            }
            Response::Rejected(status) => {
                Err(Failure { warnings, ..grouped(Failure::from(status), resource) })
            }
        })
    }

    fn delete(
        &mut self,
        by: By<'_>,
        resource: &Resource,
        namespace: &str,
        name: &str,
        deletion: &Deletion,
    ) -> Outcome {
        let Some(stored) = self.api.get(resource.kind, namespace, name).cloned() else {
            return Ok(Err(Failure::not_found(resource.group, resource.plural, name)));
        };
        let conditions = [
            ("uid", "UID", &deletion.uid),
            ("resourceVersion", "ResourceVersion", &deletion.resource_version),
        ];
        for (field, word, asked) in conditions {
            let there = stored["metadata"][field].as_str().unwrap_or_default();
            if let Some(asked) = asked
                && asked != there
            {
                let why = format!(
                    "Precondition failed: {word} in precondition: {asked}, {word} in object meta: {there}"
                );
                return Ok(Err(Failure::conflict(resource.group, resource.plural, name, &why)));
            }
        }
        if resource.kind == "Namespace" {
            return self.delete_namespace(by, resource, name, deletion);
        }
        let request = Request::Delete {
            kind: resource.kind.into(),
            namespace: namespace.into(),
            name: name.into(),
            grace_seconds: deletion.grace_seconds,
            force: false,
        };
        let outcome = self.answered(by, resource, request, deletion.dry_run)?;
        // A pod that is being deleted is shown; what is gone is only told.
        if resource.kind == "Pod" {
            return Ok(outcome);
        }
        let gone = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {"name": name, "group": resource.group, "kind": resource.plural,
                "uid": stored["metadata"]["uid"]},
        });
        Ok(outcome.map(|outcome| {
            let warnings = if let Reply::Object { warnings, .. } = outcome { warnings } else { Vec::new() };
            Reply::Object { object: Arc::new(gone), created: false, warnings }
        }))
    }

    /// What is in it goes first; the rest follows when the last of it has gone (`node.rs`).
    fn delete_namespace(
        &mut self,
        by: By<'_>,
        resource: &Resource,
        name: &str,
        deletion: &Deletion,
    ) -> Outcome {
        if matches!(name, "default" | "kube-system" | "kube-public") {
            let why = "this namespace may not be deleted";
            return Ok(Err(Failure::forbidden("", resource.plural, name, why)));
        }
        if !deletion.dry_run {
            for kind in super::super::resource::RESOURCES.iter().filter(|r| r.namespaced) {
                match self.delete_all(by, kind, name, deletion, &Selection::default())? {
                    // What is refused stays, and holds the namespace.
                    Ok(_) | Err(Failure { call: None, .. }) => {}
                    Err(until_asked) => return Ok(Err(until_asked)),
                }
            }
        }
        // A finalizer of the server's own holds it until then.
        let request = Request::Delete {
            kind: "Namespace".into(),
            namespace: "".into(),
            name: name.into(),
            grace_seconds: None,
            force: false,
        };
        let outcome = self.answered(by, resource, request, deletion.dry_run)?;
        if !deletion.dry_run {
            self.finish_namespaces()?;
        }
        Ok(outcome)
    }

    /// Namespaces that are being deleted and in which nothing is left.
    pub(super) fn finish_namespaces(&mut self) -> Result<(), Fault> {
        let ending: Vec<Arc<Value>> = self
            .api
            .list("Namespace")
            .filter(|namespace| !namespace["metadata"]["deletionTimestamp"].is_null())
            .cloned()
            .collect();
        for namespace in ending {
            let name = namespace["metadata"]["name"].as_str().unwrap_or_default();
            let kinds = super::super::resource::RESOURCES.iter().filter(|r| r.namespaced);
            let is_in_it = |object: &Arc<Value>| object["metadata"]["namespace"] == name;
            if kinds.into_iter().any(|r| self.api.list(r.kind).any(is_in_it)) {
                continue;
            }
            let mut object = Value::clone(&namespace);
            object["metadata"]["finalizers"] = json!([]);
            self.apply("system:apiserver", Request::Update { object })?;
        }
        Ok(())
    }

    fn delete_all(
        &mut self,
        by: By<'_>,
        resource: &Resource,
        namespace: &str,
        deletion: &Deletion,
        selection: &Selection,
    ) -> Outcome {
        let in_place =
            |object: &&Arc<Value>| namespace.is_empty() || object["metadata"]["namespace"] == namespace;
        let meant: Vec<Arc<Value>> = self
            .api
            .list(resource.kind)
            .filter(in_place)
            .filter(|object| selection.takes(object))
            .cloned()
            .collect();
        for object in &meant {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            if let Err(failure) = self.delete(by, resource, text("namespace"), text("name"), deletion)? {
                return Ok(Err(failure));
            }
        }
        Ok(Ok(Reply::List { items: meant, version: self.api.resource_version() }))
    }

    fn review(&self, user: &User, resource: &Resource, review: Value) -> Reply {
        let answer = match resource.kind {
            "SelfSubjectAccessReview" => reviews::access(user, review, |ask| self.decide(user, ask)),
            "SelfSubjectReview" => reviews::who(user, review),
            _ => reviews::rules(user, review, &self.rbac),
        };
        Reply::Object { object: Arc::new(answer), created: true, warnings: Vec::new() }
    }
}

/// A new object's kind and namespace are those of the path.
fn placed(resource: &Resource, namespace: &str, object: &mut Value) -> Result<(), Failure> {
    if !object.is_object() {
        return Err(Failure::bad_request("the body of the request is no object"));
    }
    super::change::same_kind(resource, object)?;
    if object["metadata"].is_null() {
        object["metadata"] = json!({});
    }
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return Err(Failure::bad_request("metadata is not an object"));
    };
    let stated = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default().to_owned();
    if resource.namespaced {
        if !stated.is_empty() && stated != namespace {
            return Err(Failure::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        metadata.insert("namespace".to_owned(), json!(namespace));
    }
    Ok(())
}

/// What the server adds to new objects: what the ServiceAccount plugin and the namespace's life cycle do.
fn complete(resource: &Resource, object: &mut Value) {
    match resource.kind {
        // A mirror pod may name no account.
        "Pod" if object["metadata"]["annotations"][nodefold_k8s::MIRROR_ANNOTATION].is_null() => {
            let spec = &mut object["spec"];
            if spec.is_object() && spec["serviceAccountName"].is_null() && spec["serviceAccount"].is_null() {
                spec["serviceAccountName"] = json!("default");
                spec["serviceAccount"] = json!("default");
            }
        }
        "Namespace" => {
            object["metadata"]["finalizers"] = json!(["kubernetes"]);
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        _ => {}
    }
}

/// `Api` tells refusals of other groups' objects as the core's; the group belongs to them.
fn grouped(mut failure: Failure, resource: &Resource) -> Failure {
    if !resource.group.is_empty() && failure.status["details"].is_object() {
        failure.status["details"]["group"] = json!(resource.group);
        let full = format!("{}.{}", resource.plural, resource.group);
        if let Some(rest) = failure.message().strip_prefix(resource.plural) {
            failure.status["message"] = json!(format!("{full}{rest}"));
        }
    }
    failure
}
