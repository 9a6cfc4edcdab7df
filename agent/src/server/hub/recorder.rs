//! The node's Kubernetes Events: one object for a thing that happens again and again, its count moved; gone after an hour.

use super::Hub;
use crate::fault::Fault;
use nodefold_api::{Request, Response};
use nodefold_core::command::KubernetesEvent;
use nodefold_core::ids::{Name, PodUid};
use nodefold_core::time::{Nanos, Time};
use nodefold_k8s::Recorded;
use std::collections::BTreeMap;

/// How long an event is kept.
const KEPT: Nanos = Nanos::secs(3600);
/// No more events than this are kept, whatever their age.
const MOST: usize = 5_000;

/// What was recorded lately.
#[derive(Default)]
pub struct Recorder {
    series: BTreeMap<(PodUid, Option<Name>, String, String), Recorded>,
    /// The time that named the newest: no two events have one name.
    newest: Time,
    /// Oldest first: when each was written last, and where it is.
    written: BTreeMap<(Time, u64), (Name, Name)>,
    count: u64,
}

impl Recorder {
    /// A pod is gone: what happens to its successor is another series.
    pub fn forget(&mut self, pod: PodUid) {
        self.series.retain(|(of, ..), _| *of != pod);
    }
}

impl Hub {
    /// Writes an event about a pod.
    pub(super) fn record(&mut self, uid: PodUid, event: &KubernetesEvent) -> Result<(), Fault> {
        let Some(pod) = self.driver.node().desired(uid) else { return Ok(()) };
        // An event of a namespace that is going would keep it from going.
        let there = self.api.get("Namespace", "", &pod.namespace);
        if there.is_none_or(|place| !place["metadata"]["deletionTimestamp"].is_null()) {
            return Ok(());
        }
        let now = self.now;
        let key = (uid, event.container.clone(), event.reason.to_string(), event.message.to_string());
        let known = self.recorder.series.get(&key).copied();
        let recorded = match known {
            Some(before) => Recorded { count: before.count + 1, last: now, ..before },
            None => {
                let first = Time(now.0.max(self.recorder.newest.0 + 1));
                self.recorder.newest = first;
                Recorded { count: 1, first, last: now }
            }
        };
        let object = nodefold_k8s::event_to_json(event, &pod, &self.settings.node_name, recorded);
        let (namespace, name): (Name, Name) = (
            object["metadata"]["namespace"].as_str().unwrap_or_default().into(),
            object["metadata"]["name"].as_str().unwrap_or_default().into(),
        );
        let user = self.node_user();
        let request = match known {
            Some(_) if self.api.get("Event", &namespace, &name).is_some() => Request::Update { object },
            Some(_) | None => Request::Create { object, uid: Hub::new_uid()? },
        };
        if let Response::Ok { .. } = self.apply(&user, request)? {
            self.recorder.series.insert(key, recorded);
            if known.is_none() {
                self.recorder.count += 1;
                let place = (namespace, name);
                self.recorder.written.insert((now, self.recorder.count), place);
            }
        }
        self.expire_events()
    }

    /// Events that are old, or too many.
    fn expire_events(&mut self) -> Result<(), Fault> {
        let limit = Time(self.now.0.saturating_sub(KEPT.0));
        while let Some((&(at, number), _)) = self.recorder.written.first_key_value() {
            if at > limit && self.recorder.written.len() <= MOST {
                break;
            }
            let Some((namespace, name)) = self.recorder.written.remove(&(at, number)) else { break };
            let user = self.node_user();
            let kind = "Event".into();
            self.apply(&user, Request::Delete { kind, namespace, name, grace_seconds: None, force: false })?;
        }
        Ok(())
    }

    /// The events that an earlier agent recorded are this one's to expire.
    pub(super) fn adopt_events(&mut self) {
        for event in self.api.list("Event") {
            let text = |field: &str| event["metadata"][field].as_str().unwrap_or_default();
            let at = nodefold_k8s::time::parse(event["lastTimestamp"].as_str().unwrap_or_default());
            self.recorder.count += 1;
            let place = (text("namespace").into(), text("name").into());
            self.recorder.written.insert((at.unwrap_or(Time(0)), self.recorder.count), place);
        }
    }
}
