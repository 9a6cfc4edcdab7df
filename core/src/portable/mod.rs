//! The whole state as a document that other versions read (DESIGN §8): self-describing, with a kind and a version of its
//! own, apart from the layout that the fold happens to use inside. What a version writes is never changed afterwards: a
//! golden file of each stays, and a new shape is a new version.
//!
//! Every field is spelled out here and taken apart by name on the way out, so that a new field of the state can't be
//! forgotten. What follows from the rest (names, sums, digests, wake-ups by time) is computed anew.

mod container;
mod pod;
mod volume;

use crate::anomaly::Anomalies;
use crate::config::Config;
use crate::context::{Why, text};
use crate::event::{Mirror, ObjectVersion, SeenContainer, SeenMount, SeenSandbox};
use crate::ids::{Epoch, EventSeq, Name, ObjectRef, OpId, PodUid, Source, VolumeId};
use crate::node::{Look, Node, ObjectRecord, Recovery, State};
use crate::publish::mirror::MirrorState;
use crate::resources::ResourceList;
use crate::state::Retry;
use crate::time::Time;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use pod::PodDocument;
use serde::{Deserialize, Serialize};

/// What the document is.
pub const KIND: &str = "nodefold.dev/node-state";
/// The version that is written.
pub const VERSION: u32 = 1;

/// What the document says it is: read before the rest, which another version may spell otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// [`KIND`].
    pub kind: Name,
    /// Its version.
    pub version: u32,
}

impl Head {
    /// Whether this program reads such a document; if not, why.
    pub fn check(&self) -> Result<(), Unreadable> {
        if &*self.kind != KIND {
            return Err(Unreadable::Kind(self.kind.clone()));
        }
        if self.version != VERSION {
            return Err(Unreadable::Version(self.version));
        }
        Ok(())
    }
}

/// A document that can't be a node's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is something else.
    Kind(Name),
    /// Another version's.
    Version(u32),
    /// It says the same thing twice, or a thing that nothing can be.
    Contradiction(Name),
}

impl core::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Unreadable::Kind(kind) => write!(f, "it is a {kind:?}, not a {KIND:?}"),
            Unreadable::Version(version) => {
                write!(f, "it is of version {version}, this nodefold reads version {VERSION}")
            }
            Unreadable::Contradiction(what) => write!(f, "it contradicts itself: {what}"),
        }
    }
}

impl core::error::Error for Unreadable {}

/// The document, version 1.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Document {
    kind: Name,
    version: u32,
    config: Config,
    now: Time,
    events: EventSeq,
    next_operation: OpId,
    epoch: Epoch,
    boot_id: Option<u128>,
    sources_ready: Vec<Source>,
    mounts_look: LookDocument,
    runtime_look: LookDocument,
    unclaimed_containers: Vec<SeenContainer>,
    unclaimed_sandboxes: Vec<SeenSandbox>,
    unclaimed_mounts: Vec<SeenMount>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mounted_meanwhile: Vec<(PodUid, VolumeId)>,
    queue: Vec<PodUid>,
    preemptors: Vec<PodUid>,
    allocator_wake: Option<(Time, Why)>,
    observations: Vec<(OpId, PodUid)>,
    objects: Vec<ObjectDocument>,
    mirrors: Vec<MirrorDocument>,
    /// The sum of what the pods take, which they can be checked by.
    charged: ResourceList,
    anomalies: Anomalies,
    pods: Vec<PodDocument>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LookDocument {
    asked: Option<OpId>,
    seen: bool,
    retry: RetryDocument,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ObjectDocument {
    object: ObjectRef,
    version: Option<ObjectVersion>,
    gone: bool,
    users: Vec<PodUid>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MirrorDocument {
    namespace: Name,
    name: Name,
    seen: Option<Mirror>,
    outdated: Option<PodUid>,
    doing: Option<OpId>,
    retry: RetryDocument,
}

/// A back-off.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RetryDocument {
    failures: u32,
    until: Option<Time>,
}

impl From<&Retry> for RetryDocument {
    fn from(retry: &Retry) -> RetryDocument {
        RetryDocument { failures: retry.failures(), until: retry.until() }
    }
}

impl From<RetryDocument> for Retry {
    fn from(document: RetryDocument) -> Retry {
        Retry::told(document.failures, document.until)
    }
}

impl From<&Look> for LookDocument {
    fn from(look: &Look) -> LookDocument {
        let Look { asked, seen, retry } = look;
        LookDocument { asked: *asked, seen: *seen, retry: retry.into() }
    }
}

impl From<LookDocument> for Look {
    fn from(document: LookDocument) -> Look {
        Look { asked: document.asked, seen: document.seen, retry: document.retry.into() }
    }
}

impl Node {
    /// The whole state, for another version to go on from.
    pub fn to_portable(&self) -> Document {
        let State {
            config,
            now,
            events,
            next_op,
            epoch,
            boot_id,
            pods,
            // By name what `pods` has by UID.
            names: _,
            objects,
            // Empty between events.
            objects_changed: _,
            sources_ready,
            recovery,
            queue,
            preemptors,
            charged,
            // The pods' own wake-ups and the allocator's, by time.
            wakes: _,
            allocator_wake,
            observations,
            mirrors,
            anomalies,
        } = &self.state;
        let Recovery {
            mounts,
            runtime,
            unclaimed_containers,
            unclaimed_sandboxes,
            unclaimed_mounts,
            mounted_meanwhile,
        } = recovery;
        let object = |(object, record): (&ObjectRef, &ObjectRecord)| {
            let ObjectRecord { version, gone, users } = record;
            let users = users.iter().copied().collect();
            ObjectDocument { object: object.clone(), version: version.clone(), gone: *gone, users }
        };
        let mirror = |(name, record): (&(Name, Name), &MirrorState)| {
            let MirrorState { seen, outdated, doing, retry } = record;
            MirrorDocument {
                namespace: name.0.clone(),
                name: name.1.clone(),
                seen: seen.clone(),
                outdated: *outdated,
                doing: *doing,
                retry: retry.into(),
            }
        };
        Document {
            kind: KIND.into(),
            version: VERSION,
            config: config.clone(),
            now: *now,
            events: *events,
            next_operation: *next_op,
            epoch: *epoch,
            boot_id: *boot_id,
            sources_ready: sources_ready.clone(),
            mounts_look: mounts.into(),
            runtime_look: runtime.into(),
            unclaimed_containers: unclaimed_containers.clone(),
            unclaimed_sandboxes: unclaimed_sandboxes.clone(),
            unclaimed_mounts: unclaimed_mounts.clone(),
            mounted_meanwhile: mounted_meanwhile.clone(),
            queue: queue.iter().copied().collect(),
            preemptors: preemptors.iter().copied().collect(),
            allocator_wake: *allocator_wake,
            observations: observations.iter().map(|(op, pod)| (*op, *pod)).collect(),
            objects: objects.iter().map(object).collect(),
            mirrors: mirrors.iter().map(mirror).collect(),
            charged: charged.clone(),
            anomalies: anomalies.clone(),
            pods: pods.values().map(|pod| PodDocument::of(pod)).collect(),
        }
    }

    /// A node with the state that the document tells. An `AgentStarted` follows, as after any stop: what was in flight is
    /// unknown then, and looked at; what was recorded stands.
    pub fn from_portable(document: Document) -> Result<Node, Unreadable> {
        Head { kind: document.kind, version: document.version }.check()?;
        let mut state = Node::new(document.config).state;
        let mut arrivals = Vec::new();
        for told in document.pods {
            let pod = told.into_state()?;
            let uid = pod.pod.uid;
            if uid == PodUid(0) {
                return Err(Unreadable::Contradiction("a pod without UID".into()));
            }
            state.charged.add(&pod.charge);
            if let Some((at, why)) = pod.wake {
                state.wakes.insert((at, uid, why));
            }
            arrivals.push((pod.arrived, uid, (pod.pod.namespace.clone(), pod.pod.name.clone())));
            if state.pods.insert(uid, Arc::new(pod)).is_some() {
                return Err(Unreadable::Contradiction("two pods of one UID".into()));
            }
        }
        arrivals.sort();
        for (_, uid, name) in arrivals {
            state.names.entry(name).or_default().push(uid);
        }
        let both = state.charged.iter().chain(document.charged.iter());
        if let Some((name, _)) =
            both.into_iter().find(|(n, _)| state.charged.get(n) != document.charged.get(n))
        {
            let what = text(format_args!("what the pods take of {name} does not make the sum"));
            return Err(Unreadable::Contradiction(what));
        }
        state.charged = document.charged;
        if let Some((at, why)) = document.allocator_wake {
            state.wakes.insert((at, PodUid(0), why));
        }
        state.now = document.now;
        state.events = document.events;
        state.next_op = document.next_operation;
        state.epoch = document.epoch;
        state.boot_id = document.boot_id;
        state.sources_ready = document.sources_ready;
        state.recovery = Recovery {
            mounts: document.mounts_look.into(),
            runtime: document.runtime_look.into(),
            unclaimed_containers: document.unclaimed_containers,
            unclaimed_sandboxes: document.unclaimed_sandboxes,
            unclaimed_mounts: document.unclaimed_mounts,
            mounted_meanwhile: document.mounted_meanwhile,
        };
        state.queue = document.queue.into_iter().collect();
        state.preemptors = document.preemptors.into_iter().collect();
        state.allocator_wake = document.allocator_wake;
        state.observations = document.observations.into_iter().collect();
        for told in document.objects {
            let users: BTreeSet<PodUid> = told.users.into_iter().collect();
            state.objects.insert(told.object, ObjectRecord { version: told.version, gone: told.gone, users });
        }
        state.mirrors = document
            .mirrors
            .into_iter()
            .map(|told| {
                let MirrorDocument { namespace, name, seen, outdated, doing, retry } = told;
                ((namespace, name), MirrorState { seen, outdated, doing, retry: retry.into() })
            })
            .collect::<BTreeMap<_, _>>();
        state.anomalies = document.anomalies;
        let config = state.config.clone();
        for pod in state.pods.values_mut().map(Arc::make_mut) {
            // A status that this version would show otherwise is told anew.
            pod.publication.stale |= !crate::publish::is_as_shown(pod, &config, state.now);
        }
        Ok(Node::from_state(state))
    }
}
