//! What the journal needs of a reducer. `Node` is the one there is; tests stand another in its place.

use nodefold_core::command::Commands;
use nodefold_core::ids::{EventSeq, PodUid};
use nodefold_core::{Config, Digest, Event, Node};
use serde_json::{Value, json};

/// A reducer whose events are journalled.
pub trait Fold: Sized {
    /// The layout of its snapshots. Another layout is never read.
    const LAYOUT: &'static str;
    /// The state before the first event.
    fn begin(config: &Config) -> Self;
    /// Folds one event in.
    fn apply(&mut self, event: &Event, out: &mut Commands);
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
    /// A pod's state for people, to compare two folds field by field.
    fn describe(&self, pod: PodUid) -> Value;
}

impl Fold for Node {
    const LAYOUT: &'static str = nodefold_core::snapshot::LAYOUT;

    fn begin(config: &Config) -> Node {
        Node::new(config.clone())
    }
    fn apply(&mut self, event: &Event, out: &mut Commands) {
        Node::apply(self, event, out);
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
    fn describe(&self, pod: PodUid) -> Value {
        let allocated = self.allocated(pod).map(|a| {
            json!({
                "pod": a.pod,
                "spec": a.spec,
                "generation": a.generation,
                "retained": a.retained.iter().map(|r| json!({
                    "volume": r.volume, "spec": r.spec, "since": r.since,
                })).collect::<Vec<_>>(),
            })
        });
        json!({ "desired": self.desired(pod), "allocated": allocated, "status": self.status(pod) })
    }
}
