//! What the journal needs of a reducer. `Node` is the one there is; tests stand another in its place.

use crate::portable;
use nodefold_core::anomaly::Anomalies;
use nodefold_core::command::Commands;
use nodefold_core::context::Why;
use nodefold_core::ids::{EventSeq, PodUid};
use nodefold_core::resources::ResourceList;
use nodefold_core::time::Time;
use nodefold_core::{Config, Digest, Event, Node};

/// A reducer whose events are journalled.
pub trait Fold: Sized {
    /// The layout of its snapshots. Another layout is never read.
    const LAYOUT: &'static str;
    /// The state before the first event.
    fn begin(config: &Config) -> Self;
    /// Folds one event in.
    fn apply(&mut self, event: &Event, out: &mut Commands);
    /// Notes that this recorded event is not folded, because `apply` panics on it. Not counted as an event.
    fn skip(&mut self, event: &Event);
    /// Equal exactly when states are.
    fn digest(&mut self) -> Digest;
    /// Pods touched since this was asked last, each with its digest (zero: gone), by UID.
    fn take_touched(&mut self) -> Vec<(PodUid, Digest)>;
    /// How many events were folded in.
    fn event_count(&self) -> EventSeq;
    /// The state as bytes.
    fn to_snapshot(&self) -> Vec<u8>;
    /// The state from bytes, checked; never panics, whatever the bytes.
    fn from_snapshot(bytes: &[u8]) -> Result<Self, String>;
    /// The state as bytes that another version reads, whatever its layout; `None`: this fold has no such form.
    fn to_portable(&self) -> Option<Vec<u8>> {
        None
    }
    /// The state from such bytes, checked; never panics, whatever the bytes.
    fn from_portable(_: &[u8]) -> Result<Self, String> {
        Err("this fold has no portable form".to_owned())
    }
    /// A pod's state, or (`None`) that of the node apart from its pods, as `{:#?}` prints it: to compare two folds
    /// field by field.
    fn describe(&self, pod: Option<PodUid>) -> String;
}

impl Fold for Node {
    const LAYOUT: &'static str = nodefold_core::snapshot::LAYOUT;

    fn begin(config: &Config) -> Node {
        Node::new(config.clone())
    }
    fn apply(&mut self, event: &Event, out: &mut Commands) {
        Node::apply(self, event, out);
    }
    fn skip(&mut self, event: &Event) {
        Node::skip(self, event);
    }
    fn digest(&mut self) -> Digest {
        Node::digest(self)
    }
    fn take_touched(&mut self) -> Vec<(PodUid, Digest)> {
        Node::take_touched(self)
    }
    fn event_count(&self) -> EventSeq {
        Node::event_count(self)
    }
    fn to_snapshot(&self) -> Vec<u8> {
        Node::to_snapshot(self)
    }
    fn from_snapshot(bytes: &[u8]) -> Result<Node, String> {
        Node::from_snapshot(bytes).map_err(|e| e.to_string())
    }
    fn to_portable(&self) -> Option<Vec<u8>> {
        Some(portable::pack(self))
    }
    fn from_portable(bytes: &[u8]) -> Result<Node, String> {
        portable::unpack(bytes)
    }
    fn describe(&self, pod: Option<PodUid>) -> String {
        match pod {
            Some(pod) => self.pod(pod).map_or_else(String::new, |pod| format!("{pod:#?}")),
            None => {
                let apart = NodeApart {
                    config: self.config(),
                    now: self.now(),
                    events: self.event_count(),
                    recovered: self.is_recovered(),
                    pods: self.pods(),
                    charged: self.charged(),
                    deadlines: self.deadlines().collect(),
                    anomalies: self.anomalies(),
                };
                format!("{apart:#?}")
            }
        }
    }
}

/// What can be seen of a node apart from its pods.
#[derive(Debug)]
#[expect(dead_code, reason = "read by its Debug alone")]
struct NodeApart<'a> {
    config: &'a Config,
    now: Time,
    events: EventSeq,
    recovered: bool,
    pods: Vec<PodUid>,
    charged: &'a ResourceList,
    deadlines: Vec<(Time, Option<PodUid>, Why)>,
    anomalies: &'a Anomalies,
}
