//! What is read: objects, lists, watches, logs' places, and what the node allocated.

use super::super::ask::{LogPlace, Reply, WatchFrom};
use super::super::failure::Failure;
use super::super::history::{Kind, Past, When};
use super::super::resource::{Resource, Subresource};
use super::super::watch::{First, Interest};
use super::Hub;
use super::files::runs_as;
use serde_json::{Value, json};
use std::sync::Arc;

impl Hub {
    pub(super) fn get(
        &self,
        resource: &Resource,
        part: Option<&Subresource>,
        namespace: &str,
        name: &str,
    ) -> Result<Reply, Failure> {
        let not_found = || Failure::not_found(resource.group, resource.plural, name);
        if let Some(kind) = Kind::named(resource.kind) {
            return match self.history.get(kind, namespace, name) {
                Some(object) => {
                    Ok(Reply::Object { object: Arc::new(object), created: false, warnings: Vec::new() })
                }
                None if self.history.remembers(kind, When::Now) => Err(not_found()),
                None => Ok(Reply::Past(Past::get(&self.history, &self.archive, kind, namespace, name))),
            };
        }
        let stored = self.api.get(resource.kind, namespace, name).ok_or_else(not_found)?;
        let object = match part {
            // Of the very pod that is stored: a former one of its name is nobody's business (api-side §4.4).
            Some(part) if part.name == "allocated" => {
                self.allocated(stored).ok_or_else(|| Failure::not_found("", "pods/allocated", name))?
            }
            Some(_) | None => self.vault.unsealed(stored),
        };
        Ok(Reply::Object { object, created: false, warnings: Vec::new() })
    }

    fn allocated(&self, stored: &Value) -> Option<Arc<Value>> {
        let allocated = self.driver.node().allocated(runs_as(stored))?;
        let mut object = nodefold_k8s::allocated_to_json(&allocated);
        object["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        Some(Arc::new(object))
    }

    /// The kubelet's `/allocatedPods` (api-side §4.4): all of them, one by UID, or one by namespace and name.
    pub(super) fn all_allocated(&self, words: &[String]) -> Result<Reply, Failure> {
        let is_meant = |pod: &Value| match words {
            [] => true,
            [uid] => pod["metadata"]["uid"] == **uid,
            [namespace, name, ..] => {
                pod["metadata"]["namespace"] == **namespace && pod["metadata"]["name"] == **name
            }
        };
        let meant = self.api.list("Pod").filter(|pod| is_meant(pod));
        let items: Vec<Arc<Value>> = meant.filter_map(|pod| self.allocated(pod)).collect();
        if words.is_empty() {
            return Ok(Reply::List { items, version: self.api.resource_version() });
        }
        let object = items.into_iter().next();
        let object = object.ok_or_else(|| Failure::not_found("", "pods", &words.join("/")))?;
        Ok(Reply::Object { object, created: false, warnings: Vec::new() })
    }

    pub(super) fn list(
        &self,
        resource: &Resource,
        namespace: &str,
        exact: Option<u64>,
        when: When,
    ) -> Result<Reply, Failure> {
        if let Some(kind) = Kind::named(resource.kind) {
            return self.list_past(kind, namespace, exact.map_or(when, When::Revision));
        }
        let in_place =
            |object: &Arc<Value>| namespace.is_empty() || object["metadata"]["namespace"] == namespace;
        let version = self.api.resource_version();
        let now = self.api.list(resource.kind).map(|object| self.vault.unsealed(object));
        let items = match exact {
            Some(asked) if asked > version => return Err(Failure::too_large_version(asked, version)),
            Some(asked) if asked < version => self.cache.as_of(resource.kind, asked, now)?,
            Some(_) | None => now.collect(),
        };
        let items = items.into_iter().filter(in_place).collect();
        Ok(Reply::List { items, version: exact.unwrap_or(version) })
    }

    fn list_past(&self, kind: Kind, namespace: &str, when: When) -> Result<Reply, Failure> {
        let version = self.history.version();
        if let When::Revision(asked) = when
            && asked > version
        {
            return Err(Failure::too_large_version(asked, version));
        }
        if !self.history.remembers(kind, when) {
            return Ok(Reply::Past(Past::list(&self.history, &self.archive, kind, namespace, when)));
        }
        let in_place = |object: &Value| namespace.is_empty() || object["metadata"]["namespace"] == namespace;
        let items = self.history.list(kind, when).filter(in_place).map(Arc::new).collect();
        let version = if let When::Revision(asked) = when { asked } else { version };
        Ok(Reply::List { items, version })
    }

    pub(super) fn watch(
        &mut self,
        resource: &'static Resource,
        namespace: &str,
        name: &str,
        from: WatchFrom,
    ) -> Result<Reply, Failure> {
        let interest = Interest {
            kind: resource.kind,
            namespace: namespace.to_owned(),
            name: Some(name.to_owned()).filter(|name| !name.is_empty()),
        };
        let of_past = Kind::named(resource.kind);
        let version = if of_past.is_some() { self.history.version() } else { self.api.resource_version() };
        let since = match from {
            WatchFrom::Beginning | WatchFrom::BeginningMarked => None,
            WatchFrom::Now => Some(version),
            WatchFrom::Version(since) if since > version => {
                return Err(Failure::too_large_version(since, version));
            }
            WatchFrom::Version(since) => Some(since),
        };
        // What is not durable yet comes through the queue, once.
        let untold = if of_past.is_some() { &self.untold_past } else { &self.untold };
        let told = untold.first().map_or(version, |event| event.version - 1);
        let cache = if of_past.is_some() { &mut self.past } else { &mut self.cache };
        let mut subscription = cache.subscribe(interest.clone(), since, version)?;
        match from {
            WatchFrom::Beginning | WatchFrom::BeginningMarked => {
                let there: Vec<Arc<Value>> = match of_past {
                    Some(kind) => self.history.list(kind, When::Revision(told)).map(Arc::new).collect(),
                    None => {
                        let settled = |object: &&Arc<Value>| version_of(object) <= told;
                        let there = self.api.list(resource.kind).filter(settled);
                        there.map(|object| self.vault.unsealed(object)).collect()
                    }
                };
                subscription.first =
                    there.into_iter().filter(|object| interest.takes(object)).map(First::There).collect();
                subscription.marked = from == WatchFrom::BeginningMarked;
            }
            WatchFrom::Now | WatchFrom::Version(_) => subscription.first.retain(|first| match first {
                First::There(_) => true,
                First::Changed(event) => event.version <= told,
            }),
        }
        Ok(Reply::Watch(subscription))
    }

    /// What runs a program in a container that runs.
    pub(super) fn exec(
        &self,
        namespace: &str,
        name: &str,
        container: &str,
        command: Vec<String>,
        tty: bool,
    ) -> Result<Reply, Failure> {
        let not_found = || Failure::not_found("", "pods", name);
        let pod = self.api.get("Pod", namespace, name).ok_or_else(not_found)?;
        let container = container_of(pod, name, container)?;
        let lists = ["containers", "initContainers", "ephemeralContainers"];
        if !lists.iter().any(|list| names(&pod["spec"][*list]).contains(&container)) {
            return Err(Failure::bad_request(format!("container {container} is not valid for pod {name}")));
        }
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        if matches!(phase, "Succeeded" | "Failed") {
            let what = format!("cannot exec into a container in a completed pod; current phase is {phase}");
            return Err(Failure::bad_request(what));
        }
        if command.is_empty() {
            return Err(Failure::bad_request("you must specify at least one command for the container"));
        }
        match self.host.exec(runs_as(pod), &container, command, tty) {
            None => {
                let host = self.host.name();
                let what = format!("a {host} host runs no programs in containers: only --backend linux does");
                Err(Failure::not_implemented(what))
            }
            Some(Err(fault)) => {
                Err(Failure::internal(format!("container not found ({container:?}): {fault}")))
            }
            Some(Ok(process)) => Ok(Reply::Exec(process)),
        }
    }

    /// Where what a running container says can be read.
    pub(super) fn attach(
        &self,
        namespace: &str,
        name: &str,
        container: &str,
        stdin: bool,
    ) -> Result<Reply, Failure> {
        let not_found = || Failure::not_found("", "pods", name);
        let pod = self.api.get("Pod", namespace, name).ok_or_else(not_found)?;
        let container = container_of(pod, name, container)?;
        let lists = ["containers", "initContainers", "ephemeralContainers"];
        let entries = || lists.iter().flat_map(|list| pod["spec"][*list].as_array().into_iter().flatten());
        let Some(spec) = entries().find(|entry| entry["name"] == *container) else {
            return Err(Failure::bad_request(format!("container {container} is not valid for pod {name}")));
        };
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        if matches!(phase, "Succeeded" | "Failed") {
            let what = format!("cannot attach a container in a completed pod; current phase is {phase}");
            return Err(Failure::bad_request(what));
        }
        if stdin && spec["stdin"] == true {
            let what = "this node gives no container a standard input: attach without -i, or exec";
            return Err(Failure::not_implemented(what.to_owned()));
        }
        self.log(namespace, name, &container)
    }

    /// Where a container's log is: of any name that the spec or the status tells, removed ones too (api-side §5.3).
    pub(super) fn log(&self, namespace: &str, name: &str, container: &str) -> Result<Reply, Failure> {
        let not_found = || Failure::not_found("", "pods", name);
        let pod = self.api.get("Pod", namespace, name).ok_or_else(not_found)?;
        let (spec, status) = (&pod["spec"], &pod["status"]);
        let container = container_of(pod, name, container)?;
        let lists = [
            &spec["containers"],
            &spec["initContainers"],
            &spec["ephemeralContainers"],
            &status["containerStatuses"],
            &status["initContainerStatuses"],
            &status["ephemeralContainerStatuses"],
        ];
        let uid = runs_as(pod).to_string();
        let logs = self.settings.layout.logs().join("pods").join(format!("{namespace}_{name}_{uid}"));
        if !lists.iter().any(|list| names(list).contains(&container)) {
            return Err(Failure::bad_request(format!("container {container} is not valid for pod {name}")));
        }
        let of_it = |list: &Value| {
            let entries = list.as_array().into_iter().flatten();
            entries.clone().find(|entry| entry["name"] == *container).map(|entry| entry["state"].clone())
        };
        let state = lists[3..].iter().find_map(|list| of_it(list)).unwrap_or(json!({}));
        let terminal = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
        let waiting = state["waiting"]["reason"].as_str().map(str::to_owned);
        Ok(Reply::Log(LogPlace {
            dir: logs.join(&container),
            pod: name.into(),
            uid: uid.as_str().into(),
            container: container.as_str().into(),
            ended: terminal || state["terminated"].is_object(),
            waiting,
        }))
    }
}

fn names(list: &Value) -> Vec<String> {
    let entries = list.as_array().into_iter().flatten();
    entries.filter_map(|entry| entry["name"].as_str()).map(str::to_owned).collect()
}

/// The container that is meant: the named one, or the pod's only one.
fn container_of(pod: &Value, name: &str, container: &str) -> Result<String, Failure> {
    match (container, names(&pod["spec"]["containers"]).as_slice()) {
        ("", [only]) => Ok(only.clone()),
        ("", several) => {
            let several = several.join(" ");
            let inits = names(&pod["spec"]["initContainers"]);
            let inits = if inits.is_empty() {
                String::new()
            } else {
                format!(" or one of the init containers: [{}]", inits.join(" "))
            };
            let what = format!(
                "a container name must be specified for pod {name}, choose one of: [{several}]{inits}"
            );
            Err(Failure::bad_request(what))
        }
        (named, _) => Ok(named.to_owned()),
    }
}

fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}
