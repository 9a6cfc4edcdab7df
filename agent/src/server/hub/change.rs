//! PUT and PATCH: what the body makes of the stored object, then `Api` judges it. All kinds of patches become the object as it
//! would be, so that who owns its fields can be told.

use super::super::ask::{Change, Manager};
use super::super::failure::Failure;
use super::super::resource::{Resource, Subresource};
use super::super::{managed, patch};
use super::perform::Outcome;
use super::{By, Hub};
use nodefold_api::authorize::rbac::Ask;
use nodefold_api::{Body, Request};
use serde_json::{Value, json};

impl Hub {
    #[allow(clippy::too_many_arguments)]
    pub(super) fn change(
        &mut self,
        by: By<'_>,
        resource: &Resource,
        part: Option<&Subresource>,
        namespace: &str,
        name: &str,
        body: Change,
        manager: &Manager,
        dry_run: bool,
    ) -> Outcome {
        let stored = self.api.get(resource.kind, namespace, name).map(|stored| self.vault.unsealed(stored));
        let part_name = part.map_or("", |part| part.name);
        let Some(old) = stored else {
            return match body {
                Change::Apply { config, .. } if part.is_none() => {
                    self.apply_new(by, resource, namespace, name, config, manager, dry_run)
                }
                Change::Apply { .. }
                | Change::Put(_)
                | Change::Strategic(_)
                | Change::Merge(_)
                | Change::Json(_) => Ok(Err(Failure::not_found(resource.group, resource.plural, name))),
            };
        };
        let made = match body {
            Change::Apply { config, force } => {
                same_kind(resource, &config).and_then(|()| same_name(&config, name)).and_then(|()| {
                    managed::applied(resource.kind, part_name, &old, config, manager, force, self.now)
                })
            }
            Change::Put(_) | Change::Strategic(_) | Change::Merge(_) | Change::Json(_) => {
                patch::changed(resource.kind, &old, body, by.how.field_validation).and_then(|mut new| {
                    same_kind(resource, &new)?;
                    if resource.namespaced && new["metadata"].is_object() {
                        let place = &mut new["metadata"]["namespace"];
                        if place.is_null() {
                            *place = json!(namespace);
                        }
                    }
                    managed::updated(resource.kind, part_name, &old, &mut new, manager, self.now);
                    Ok(new)
                })
            }
        };
        let new = match made {
            Ok(new) => new,
            Err(failure) => return Ok(Err(failure)),
        };
        if part.is_none() && new["metadata"]["name"] != *name {
            let body = new["metadata"]["name"].as_str().unwrap_or_default();
            let what = format!("the name of the object ({body}) does not match the name on the URL ({name})");
            return Ok(Err(Failure::bad_request(what)));
        }
        let (place, named) = (namespace.into(), name.into());
        let request = match part_name {
            "" => Request::Update { object: new },
            "dynamic" => Request::Dynamic { namespace: place, name: named, body: Body::Full(new) },
            "resize" => Request::Resize { namespace: place, name: named, body: Body::Full(new) },
            "ephemeralcontainers" => {
                Request::Ephemeral { namespace: place, name: named, body: Body::Full(new) }
            }
            "status" => Request::PatchStatus { namespace: place, name: named, body: Body::Full(new) },
            _ => return Ok(Err(Failure::method_not_allowed())),
        };
        let outcome = self.answered(by, resource, request, dry_run)?;
        if !dry_run && outcome.is_ok() {
            self.finish_namespaces()?;
        }
        Ok(outcome)
    }

    /// Server-side apply of what is not there makes it, if it may be made.
    #[allow(clippy::too_many_arguments)]
    fn apply_new(
        &mut self,
        by: By<'_>,
        resource: &Resource,
        namespace: &str,
        name: &str,
        mut config: Value,
        manager: &Manager,
        dry_run: bool,
    ) -> Outcome {
        let may = Ask {
            verb: "create",
            group: resource.group,
            resource: resource.plural,
            subresource: "",
            namespace,
            name: "",
        };
        let checked = self
            .decide(by.user, &may)
            .map(drop)
            .and_then(|()| same_kind(resource, &config))
            .and_then(|()| same_name(&config, name));
        if let Err(failure) = checked {
            return Ok(Err(failure));
        }
        config["metadata"]["name"] = json!(name);
        managed::applied_new(resource.kind, &mut config, manager, self.now);
        self.create(by, resource, namespace, config, manager, dry_run)
    }
}

/// The body is of the path's kind.
pub(super) fn same_kind(resource: &Resource, object: &Value) -> Result<(), Failure> {
    let stated =
        (object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str().unwrap_or_default());
    if stated == (resource.api_version().as_str(), resource.kind) {
        return Ok(());
    }
    if stated.1.is_empty() {
        return Err(Failure::bad_request("Object 'Kind' is missing in the body of the request"));
    }
    let what = format!(
        "the API version in the data ({}, Kind={}) does not match the expected API version ({}, Kind={})",
        stated.0,
        stated.1,
        resource.api_version(),
        resource.kind
    );
    Err(Failure::bad_request(what))
}

fn same_name(config: &Value, name: &str) -> Result<(), Failure> {
    match config["metadata"]["name"].as_str() {
        Some(stated) if stated != name => Err(Failure::bad_request(format!(
            "the name of the object ({stated}) does not match the name on the URL ({name})"
        ))),
        Some(_) | None => Ok(()),
    }
}
