//! What ran here, and who asked: every run of every container that the journal tells of, with the request that brought it. Kept
//! beside the fold from the same records, so that it is the same after a restart, and for whoever reads the journal alone.

use nodefold_api::{ApiEvent, Body, Request};
use nodefold_core::event::{Event, Exit, Fact};
use nodefold_core::ids::{ContainerId, Name, PodUid};
use nodefold_core::time::Time;
use nodefold_k8s::time;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The run, as an object, was under way at that moment: by its own times, which are whole seconds.
pub fn ran_at(run: &Value, at: &str) -> bool {
    let moment = |text: &Value| time::parse(text.as_str().unwrap_or_default()).ok();
    let (started, ended) = (moment(&run["status"]["startedAt"]), moment(&run["status"]["finishedAt"]));
    time::parse(at).is_ok_and(|at| started.is_some_and(|s| s <= at) && ended.is_none_or(|e| e > at))
}

/// One life of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The pod.
    pub pod: PodUid,
    /// Which life of which container.
    pub container: ContainerId,
    /// Since when.
    pub started: Time,
    /// How it ended, if it has.
    pub exit: Option<Exit>,
    /// Who asked for the container, and when.
    pub asked: Option<Asked>,
}

/// Who asked for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The user.
    pub by: Name,
    /// When.
    pub at: Time,
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In the order in which they began.
    runs: Vec<Run>,
    /// Runs that have not ended, by their place in `runs`.
    open: BTreeMap<(PodUid, ContainerId), usize>,
    names: BTreeMap<PodUid, (Name, Name)>,
    newest: BTreeMap<(Name, Name), PodUid>,
    boot: Option<u128>,
    /// Containers that are asked for now, and who asked.
    asked: BTreeMap<PodUid, BTreeMap<Name, Asked>>,
}

impl History {
    /// A fact was folded.
    pub fn fact(&mut self, event: &Event) {
        if let Fact::PodApplied(pod) = &event.fact {
            let name = (pod.namespace.clone(), pod.name.clone());
            // Names that the server made are known from here on.
            self.newest.insert(name.clone(), pod.uid);
            self.names.insert(pod.uid, name);
        }
        if let Fact::ContainerStarted { pod, container, .. } = &event.fact {
            let (pod, container) = (*pod, container.clone());
            let asked = self.asked.get(&pod).and_then(|asked| asked.get(&container.name)).cloned();
            self.open.insert((pod, container.clone()), self.runs.len());
            self.runs.push(Run { pod, container, started: event.at, exit: None, asked });
        }
        if let Fact::ContainerExited { pod, container, exit } = &event.fact
            && let Some(place) = self.open.remove(&(*pod, container.clone()))
        {
            self.runs[place].exit = Some(exit.clone());
        }
        if let Fact::AgentStarted { boot_id } = &event.fact {
            // A host that has booted anew runs nothing of before.
            if self.boot.replace(*boot_id).is_some_and(|before| before != *boot_id) {
                self.all_ended(event.at);
            }
        }
    }

    fn all_ended(&mut self, at: Time) {
        for place in std::mem::take(&mut self.open).into_values() {
            let reason = "ContainerStatusUnknown".into();
            let started_at = Some(self.runs[place].started);
            self.runs[place].exit =
                Some(Exit { code: 137, signal: None, reason, started_at, finished_at: at });
        }
    }

    /// A request was accepted.
    pub fn request(&mut self, event: &ApiEvent) {
        match &event.request {
            Request::Create { object, uid } if object["kind"] == "Pod" => {
                let text = |field: &str| Name::from(object["metadata"][field].as_str().unwrap_or_default());
                self.newest.insert((text("namespace"), text("name")), *uid);
                self.asks(event, *uid, object);
            }
            Request::Update { object } if object["kind"] == "Pod" => {
                let text = |field: &str| Name::from(object["metadata"][field].as_str().unwrap_or_default());
                if let Some(uid) = self.newest.get(&(text("namespace"), text("name"))).copied() {
                    self.asks(event, uid, object);
                }
            }
            Request::Dynamic { namespace, name, body } | Request::Ephemeral { namespace, name, body } => {
                let uid = self.newest.get(&(namespace.clone(), name.clone())).copied();
                if let (Some(uid), Body::Full(object)) = (uid, body) {
                    self.asks(event, uid, object);
                }
            }
            Request::Create { .. }
            | Request::Update { .. }
            | Request::Resize { .. }
            | Request::Delete { .. }
            | Request::Status { .. }
            | Request::PatchStatus { .. }
            | Request::Release { .. }
            | Request::NodeGates(_) => {}
        }
    }

    /// The pod shall have these containers: those that it had not are asked for now.
    fn asks(&mut self, event: &ApiEvent, uid: PodUid, pod: &Value) {
        let lists = ["containers", "initContainers", "ephemeralContainers"];
        let entries = lists.iter().flat_map(|list| pod["spec"][*list].as_array().into_iter().flatten());
        let wanted: BTreeSet<Name> =
            entries.filter_map(|entry| entry["name"].as_str()).map(Name::from).collect();
        let asked = self.asked.entry(uid).or_default();
        asked.retain(|name, _| wanted.contains(name));
        for name in wanted {
            asked.entry(name).or_insert_with(|| Asked { by: event.user.name.clone(), at: event.at });
        }
    }

    /// All runs, oldest first.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// A pod's namespace and name.
    pub fn name(&self, pod: PodUid) -> (Name, Name) {
        self.names.get(&pod).cloned().unwrap_or_default()
    }

    /// A run as a Kubernetes object: `ContainerRun` of `history.nodefold.io/v1alpha1`.
    pub fn object(&self, run: &Run) -> Value {
        let (namespace, pod) = self.name(run.pod);
        let life = &run.container;
        let mut object = json!({
            "apiVersion": "history.nodefold.io/v1alpha1",
            "kind": "ContainerRun",
            "metadata": {
                "name": format!("{pod}.{}.{}.{}.{}", &run.pod.to_string()[..5], life.name, life.incarnation, life.attempt),
                "namespace": &*namespace,
                "creationTimestamp": time::format(run.started),
            },
            "spec": {"pod": &*pod, "podUID": run.pod.to_string(), "container": &*life.name,
                "incarnation": life.incarnation, "attempt": life.attempt},
            "status": {"startedAt": time::format(run.started)},
        });
        if let Some(asked) = &run.asked {
            object["spec"]["askedBy"] = json!(&*asked.by);
            object["spec"]["askedAt"] = json!(time::format(asked.at));
        }
        if let Some(exit) = &run.exit {
            object["status"]["finishedAt"] = json!(time::format(exit.finished_at));
            object["status"]["exitCode"] = json!(exit.code);
            object["status"]["reason"] = json!(&*exit.reason);
        }
        object
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use nodefold_core::ids::OpId;

    fn at(seconds: u64) -> Time {
        Time(1_767_225_600_000_000_000 + seconds * 1_000_000_000)
    }

    fn life(name: &str, attempt: u32) -> ContainerId {
        ContainerId { name: name.into(), incarnation: 0, attempt }
    }

    fn started(history: &mut History, seconds: u64, container: ContainerId) {
        let fact = Fact::ContainerStarted { op: OpId(1), pod: PodUid(7), container };
        history.fact(&Event { at: at(seconds), fact });
    }

    #[test]
    fn who_asked_for_what_and_when_it_ran() {
        let mut history = History::default();
        let pod = |names: &[&str]| {
            let containers: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"kind": "Pod", "metadata": {"namespace": "default", "name": "web"}, "spec": {"containers": containers}})
        };
        let create = Request::Create { object: pod(&["app"]), uid: PodUid(7) };
        history.request(&ApiEvent::new(at(0), create, "jane"));
        started(&mut history, 1, life("app", 0));
        let (namespace, name): (Name, Name) = ("default".into(), "web".into());
        let body = Body::Full(pod(&["app", "tool"]));
        history.request(&ApiEvent::new(at(5), Request::Dynamic { namespace, name, body }, "joe"));
        started(&mut history, 6, life("tool", 0));
        let exit =
            Exit { code: 3, signal: None, reason: "Error".into(), started_at: None, finished_at: at(9) };
        let fact = Fact::ContainerExited { pod: PodUid(7), container: life("app", 0), exit };
        history.fact(&Event { at: at(9), fact });
        started(&mut history, 10, life("app", 1));

        let runs: Vec<Value> = history.runs().iter().map(|run| history.object(run)).collect();
        let asked: Vec<&str> = runs.iter().map(|run| run["spec"]["askedBy"].as_str().unwrap()).collect();
        assert_eq!(asked, ["jane", "joe", "jane"]);
        assert_eq!(runs[0]["status"]["exitCode"], 3);
        let ran = |moment: &str| -> Vec<bool> { runs.iter().map(|run| ran_at(run, moment)).collect() };
        assert_eq!(ran("2026-01-01T00:00:07Z"), [true, true, false]);
        assert_eq!(ran("2026-01-01T00:00:09Z"), [false, true, false]);
        assert_eq!(ran("no time"), [false, false, false]);

        for boot_id in [1, 1, 2] {
            history.fact(&Event { at: at(20), fact: Fact::AgentStarted { boot_id } });
        }
        assert!(history.runs().iter().all(|run| run.exit.is_some()), "nothing outlives its host");
    }
}
