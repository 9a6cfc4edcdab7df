//! `Api` by itself, as one embeds it: whoever makes requests up, a small model knows which of them are accepted and what is
//! stored then, and a watch tells all of it. Copy this to test your own server against the same rules.
#![allow(clippy::unwrap_used)]

mod support;

use nodefold_api::{Api, ApiConfig, ApiEvent, Body, ChangeType, Request, Response};
use nodefold_core::ids::{Name, PodUid};
use nodefold_core::time::Time;
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const PODS: [&str; 2] = ["web", "db"];
const CONTAINERS: [&str; 3] = ["app", "log", "tool"];

#[derive(Clone, Debug)]
enum Transition {
    Create(&'static str),
    Add(&'static str, &'static str),
    Remove(&'static str, &'static str),
    /// The node writes that everything runs as it is stored now.
    Report(&'static str),
    Delete(&'static str, u64),
    /// The node's last word, on this life of the name or on the one before.
    Release(&'static str, bool),
}

/// A pod as it is stored.
#[derive(Clone, Debug)]
struct Stored {
    life: u64,
    generation: u64,
    containers: BTreeSet<&'static str>,
    /// Names in the last status; none before the first.
    shown: Option<BTreeSet<&'static str>>,
    /// Removed names, each with the generation that the node has to see before they are free.
    held: BTreeMap<&'static str, u64>,
    /// The grace that a deletion gives.
    deleting: Option<u64>,
}

impl Stored {
    fn new(life: u64) -> Stored {
        let containers = BTreeSet::from(["app"]);
        Stored { life, generation: 1, containers, shown: None, held: BTreeMap::new(), deleting: None }
    }

    /// P1–P3: a pod changes while it runs.
    fn may_change(&self) -> bool {
        self.shown.is_some() && self.deleting.is_none()
    }

    /// C4, C5: neither a status nor a removal on its way bears the name.
    fn is_free(&self, name: &str) -> bool {
        let shown = self.shown.as_ref().is_some_and(|shown| shown.contains(name));
        !shown && !self.held.contains_key(name) && !self.containers.contains(name)
    }
}

/// What is stored, and how many lives each name had.
#[derive(Clone, Debug, Default)]
struct Model {
    pods: BTreeMap<&'static str, Stored>,
    lives: BTreeMap<&'static str, u64>,
}

impl Model {
    /// Whether it is accepted.
    fn accepts(&self, transition: &Transition) -> bool {
        let pod = |name: &str| self.pods.get(name);
        match transition {
            Transition::Create(name) => pod(name).is_none(),
            Transition::Add(name, container) => {
                pod(name).is_some_and(|p| p.may_change() && p.is_free(container))
            }
            Transition::Remove(name, _) => {
                pod(name).is_some_and(|p| p.may_change() && p.containers.len() > 1)
            }
            Transition::Report(name) | Transition::Delete(name, _) => pod(name).is_some(),
            Transition::Release(name, former) => pod(name).is_some() && !former,
        }
    }
}

impl ReferenceStateMachine for Model {
    type State = Model;
    type Transition = Transition;

    fn init_state() -> BoxedStrategy<Model> {
        Just(Model::default()).boxed()
    }

    fn transitions(_: &Model) -> BoxedStrategy<Transition> {
        let pod = || prop::sample::select(&PODS[..]);
        let container = || prop::sample::select(&CONTAINERS[..]);
        prop_oneof![
            3 => pod().prop_map(Transition::Create),
            6 => (pod(), container()).prop_map(|(pod, container)| Transition::Add(pod, container)),
            5 => (pod(), container()).prop_map(|(pod, container)| Transition::Remove(pod, container)),
            6 => pod().prop_map(Transition::Report),
            2 => (pod(), 0..40u64).prop_map(|(pod, grace)| Transition::Delete(pod, grace)),
            2 => (pod(), any::<bool>()).prop_map(|(pod, former)| Transition::Release(pod, former)),
        ]
        .boxed()
    }

    /// To add what is there, or to remove what is not, asks for nothing; a name without a former life has none to release.
    fn preconditions(model: &Model, transition: &Transition) -> bool {
        match transition {
            Transition::Add(name, c) => model.pods.get(name).is_none_or(|p| !p.containers.contains(c)),
            Transition::Remove(name, c) => model.pods.get(name).is_none_or(|p| p.containers.contains(c)),
            Transition::Release(name, former) => {
                !former || model.lives.get(name).is_some_and(|lives| *lives > 1)
            }
            Transition::Create(_) | Transition::Report(_) | Transition::Delete(..) => true,
        }
    }

    fn apply(mut model: Model, transition: &Transition) -> Model {
        if !model.accepts(transition) {
            return model;
        }
        let (Transition::Create(name)
        | Transition::Add(name, _)
        | Transition::Remove(name, _)
        | Transition::Report(name)
        | Transition::Delete(name, _)
        | Transition::Release(name, _)) = transition;
        let life = model.lives.entry(name).or_default();
        if let Transition::Create(_) = transition {
            *life += 1;
        }
        let pod = model.pods.entry(name).or_insert_with(|| Stored::new(*life));
        match transition {
            Transition::Create(_) => {}
            Transition::Add(_, container) => {
                pod.generation += 1;
                pod.containers.insert(container);
            }
            Transition::Remove(_, container) => {
                pod.generation += 1;
                pod.containers.remove(container);
                pod.held.insert(container, pod.generation);
            }
            Transition::Report(_) => {
                pod.shown = Some(pod.containers.clone());
                pod.held.clear();
            }
            Transition::Delete(_, grace) => {
                // A repeated delete can only shorten.
                pod.generation += u64::from(pod.deleting.is_none());
                pod.deleting = Some(pod.deleting.map_or(*grace, |before| before.min(*grace)));
            }
            Transition::Release(..) => pod.deleting = Some(0),
        }
        if pod.deleting == Some(0) {
            model.pods.remove(name);
        }
        model
    }
}

/// The server, and what somebody who watches it knows.
struct Served {
    api: Api,
    now: Time,
    watched: u64,
    seen: BTreeMap<Name, Value>,
}

/// The UID of a life of a name: drawn by whoever records the request.
fn uid(name: &str, life: u64) -> PodUid {
    PodUid(u128::from(life) << 64 | u128::from(name.as_bytes()[0]) | 0x4 << 76 | 0x2 << 62)
}

impl Served {
    fn request(&self, model: &Model, transition: &Transition) -> Request {
        let namespace: Name = "default".into();
        let patch = |name: &str, entry: Value| Request::Dynamic {
            namespace: "default".into(),
            name: name.into(),
            body: Body::StrategicMerge(json!({"spec": {"containers": [entry]}})),
        };
        let life = |name: &str| model.lives.get(name).copied().unwrap_or(0);
        match transition {
            Transition::Create(name) => {
                let mut object = support::pod(json!({"containers": [{"name": "app", "image": "i:1"}]}));
                object["metadata"]["name"] = json!(name);
                Request::Create { object, uid: uid(name, life(name)) }
            }
            Transition::Add(name, container) => patch(name, json!({"name": container, "image": "i:1"})),
            Transition::Remove(name, container) => {
                patch(name, json!({"name": container, "$patch": "delete"}))
            }
            Transition::Report(name) => {
                let stored = self.api.get("Pod", &namespace, name).cloned().unwrap_or_default();
                let status = support::running(&stored);
                Request::Status { namespace, name: (*name).into(), uid: uid(name, life(name)), status }
            }
            Transition::Delete(name, grace) => Request::Delete {
                kind: "Pod".into(),
                namespace,
                name: (*name).into(),
                grace_seconds: Some(*grace),
                force: false,
            },
            Transition::Release(name, former) => {
                Request::Release { uid: uid(name, life(name) - u64::from(*former)) }
            }
        }
    }

    /// Hears what a watch tells since it was heard last.
    fn watch(&mut self) {
        for change in self.api.watch_from(self.watched).unwrap() {
            let name: Name = change.object["metadata"]["name"].as_str().unwrap().into();
            match change.change {
                ChangeType::Added | ChangeType::Modified => {
                    self.seen.insert(name, Value::clone(&change.object));
                }
                ChangeType::Deleted => {
                    self.seen.remove(&name);
                }
            }
        }
        self.watched = self.api.resource_version();
    }
}

impl StateMachineTest for Served {
    type SystemUnderTest = Served;
    type Reference = Model;

    fn init_test(_: &Model) -> Served {
        let api = Api::new(ApiConfig::default());
        Served { api, now: Time(1_796_000_000_000_000_000), watched: 0, seen: BTreeMap::new() }
    }

    fn apply(mut served: Served, model: &Model, transition: Transition) -> Served {
        served.now = Time(served.now.0 + 1_000_000_000);
        let event = ApiEvent::new(served.now, served.request(model, &transition), "me");
        let before = (served.api.digest(), served.api.resource_version());
        let response = served.api.apply(&event);
        if let Response::Rejected(status) = &response {
            assert!(!status.message.is_empty());
            let after = (served.api.digest(), served.api.resource_version());
            assert_eq!(after, before, "a refusal changes nothing: {status:?}");
        }
        served.watch();
        served
    }

    fn check_invariants(served: &Served, model: &Model) {
        let stored: Vec<&Value> = served.api.list("Pod").map(|pod| &**pod).collect();
        assert_eq!(stored, served.seen.values().collect::<Vec<_>>(), "a watch tells everything");
        let names = |pod: &Value| -> BTreeSet<String> {
            let list = pod["spec"]["containers"].as_array().unwrap();
            list.iter().map(|c| c["name"].as_str().unwrap().to_owned()).collect()
        };
        let told: Vec<_> = stored
            .iter()
            .map(|pod| {
                let metadata = &pod["metadata"];
                let uid = nodefold_k8s::pod_uid(metadata["uid"].as_str().unwrap());
                (
                    uid,
                    metadata["generation"].as_u64(),
                    metadata["deletionGracePeriodSeconds"].as_u64(),
                    names(pod),
                )
            })
            .collect();
        let wanted: Vec<_> = model
            .pods
            .iter()
            .map(|(name, pod)| {
                let containers = pod.containers.iter().map(|c| (*c).to_owned()).collect();
                (uid(name, pod.life), Some(pod.generation), pod.deleting, containers)
            })
            .collect();
        assert_eq!(told, wanted);
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_api_stores_what_its_rules_allow_and_a_watch_tells_it(sequential 1..40 => Served);
}
