//! What is read: objects, lists, watches, logs' places, and what the node allocated.

use super::super::ask::{LogPlace, Reply, WatchFrom};
use super::super::failure::Failure;
use super::super::resource::{Resource, Subresource};
use super::super::watch::{First, Interest};
use super::Hub;
use nodefold_core::ids::PodUid;
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
        let uid = PodUid::parse_uuid(stored["metadata"]["uid"].as_str()?)?;
        let allocated = self.driver.node().allocated(uid)?;
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

    pub(super) fn list(&self, resource: &Resource, namespace: &str) -> Reply {
        let in_place =
            |object: &&Arc<Value>| namespace.is_empty() || object["metadata"]["namespace"] == namespace;
        if resource.kind == "ContainerRun" {
            let runs = self.history.runs().iter().map(|run| Arc::new(self.history.object(run)));
            let items = runs.filter(|run| in_place(&run)).collect();
            return Reply::List { items, version: self.api.resource_version() };
        }
        let items = self.api.list(resource.kind).filter(in_place);
        Reply::List {
            items: items.map(|object| self.vault.unsealed(object)).collect(),
            version: self.api.resource_version(),
        }
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
        let version = self.api.resource_version();
        let since = match from {
            WatchFrom::Beginning | WatchFrom::BeginningMarked => None,
            WatchFrom::Version(since) if since > version => {
                return Err(Failure::new(
                    504,
                    "Timeout",
                    format!("Too large resource version: {since}, current: {version}"),
                ));
            }
            WatchFrom::Version(since) => Some(since),
        };
        // What is not durable yet comes through the queue, once.
        let told = self.untold.first().map_or(version, |event| event.version - 1);
        let mut subscription = self.cache.subscribe(interest.clone(), since, version)?;
        match from {
            WatchFrom::Beginning | WatchFrom::BeginningMarked => {
                let there = self.api.list(resource.kind).filter(|object| interest.takes(object));
                let settled = |object: &&Arc<Value>| version_of(object) <= told;
                let first = there.filter(settled).map(|object| First::There(self.vault.unsealed(object)));
                subscription.first = first.collect();
                subscription.marked = from == WatchFrom::BeginningMarked;
            }
            WatchFrom::Version(_) => subscription.first.retain(|first| match first {
                First::There(_) => true,
                First::Changed(event) => event.version <= told,
            }),
        }
        Ok(Reply::Watch(subscription))
    }

    /// Where a container's log is: of any name that the spec or the status tells, removed ones too (api-side §5.3).
    pub(super) fn log(&self, namespace: &str, name: &str, container: &str) -> Result<Reply, Failure> {
        let not_found = || Failure::not_found("", "pods", name);
        let pod = self.api.get("Pod", namespace, name).ok_or_else(not_found)?;
        let names = |list: &Value| -> Vec<String> {
            let entries = list.as_array().into_iter().flatten();
            entries.filter_map(|entry| entry["name"].as_str()).map(str::to_owned).collect()
        };
        let spec = &pod["spec"];
        let status = &pod["status"];
        let container = match (container, names(&spec["containers"]).as_slice()) {
            ("", [only]) => only.clone(),
            ("", several) => {
                let several = several.join(" ");
                let inits = names(&spec["initContainers"]);
                let inits = if inits.is_empty() {
                    String::new()
                } else {
                    format!(" or one of the init containers: [{}]", inits.join(" "))
                };
                let what = format!(
                    "a container name must be specified for pod {name}, choose one of: [{several}]{inits}"
                );
                return Err(Failure::bad_request(what));
            }
            (named, _) => named.to_owned(),
        };
        let lists = [
            &spec["containers"],
            &spec["initContainers"],
            &spec["ephemeralContainers"],
            &status["containerStatuses"],
            &status["initContainerStatuses"],
            &status["ephemeralContainerStatuses"],
        ];
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
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
            uid: uid.into(),
            container: container.as_str().into(),
            ended: terminal || state["terminated"].is_object(),
            waiting,
        }))
    }
}

fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}
