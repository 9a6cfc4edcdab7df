//! What the node decided and what became of it, as it is written beside the facts: one small record each, so that whoever
//! reads it later needs no fold, and another version that folds otherwise rewrites nothing.

use nodefold_core::event::Exit;
use nodefold_core::ids::{ContainerId, Name, PodUid, VolumeId};
use nodefold_core::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The stream of these among a journal's foreign records.
pub const HISTORY_STREAM: &str = "history";

/// One record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When the node knew.
    pub at: Time,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum What {
    /// Somebody's request made this generation of a pod, which wants these.
    Asked {
        /// The pod.
        #[serde(with = "uuid")]
        pod: PodUid,
        /// Where it is.
        namespace: Name,
        /// What it is called.
        name: Name,
        /// Which generation.
        generation: u64,
        /// Who.
        by: Name,
        /// All containers, of whatever kind.
        containers: Vec<Name>,
        /// All volumes.
        volumes: Vec<Name>,
    },
    /// The node allocated a generation.
    Allocated {
        /// The pod.
        #[serde(with = "uuid")]
        pod: PodUid,
        /// Which generation.
        generation: u64,
        /// The number of the fact that decided it.
        revision: u64,
        /// What is allocated, in short.
        spec: Value,
    },
    /// A container runs.
    Started {
        /// The pod.
        #[serde(with = "uuid")]
        pod: PodUid,
        /// Which life of which container.
        container: ContainerId,
        /// Its image.
        image: Name,
        /// Since when.
        since: Time,
    },
    /// It has ended.
    Ended {
        /// The pod.
        #[serde(with = "uuid")]
        pod: PodUid,
        /// Which life of which container.
        container: ContainerId,
        /// How.
        exit: Exit,
    },
    /// A volume is there.
    Mounted {
        /// The pod.
        #[serde(with = "uuid")]
        pod: PodUid,
        /// Which life of which volume.
        volume: VolumeId,
        /// What it is made from, as a pod's spec names it.
        source: Name,
    },
    /// Nothing of it is there any more.
    Unmounted {
        /// The pod.
        #[serde(with = "uuid")]
        pod: PodUid,
        /// Which life of which volume.
        volume: VolumeId,
    },
    /// Nothing of the pod is left.
    Left {
        /// The pod.
        #[serde(with = "uuid")]
        pod: PodUid,
    },
}

impl Entry {
    /// For the journal.
    pub fn to_bytes(&self) -> Vec<u8> {
        // All keys are strings and all values finite: serde_json has no reason to refuse.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads what `to_bytes` wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Entry, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// The pod that it is about.
    pub fn pod(&self) -> PodUid {
        match &self.what {
            What::Asked { pod, .. }
            | What::Allocated { pod, .. }
            | What::Started { pod, .. }
            | What::Ended { pod, .. }
            | What::Mounted { pod, .. }
            | What::Unmounted { pod, .. }
            | What::Left { pod } => *pod,
        }
    }

    /// For people.
    pub fn line(&self) -> String {
        match &self.what {
            What::Asked { namespace, name, generation, by, .. } => {
                format!("{by} asked for generation {generation} of {namespace}/{name}")
            }
            What::Allocated { pod, generation, .. } => format!("{pod}: generation {generation} is allocated"),
            What::Started { pod, container, .. } => format!("{pod}: {container} runs"),
            What::Ended { pod, container, exit } => {
                format!("{pod}: {container} has ended: {} {}", exit.code, exit.reason)
            }
            What::Mounted { pod, volume, .. } => format!("{pod}: volume {volume} is there"),
            What::Unmounted { pod, volume } => format!("{pod}: volume {volume} is gone"),
            What::Left { pod } => format!("{pod}: nothing of it is left"),
        }
    }
}

/// A UID as Kubernetes writes it.
mod uuid {
    use nodefold_core::ids::PodUid;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(pod: &PodUid, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(pod)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PodUid, D::Error> {
        let text = String::deserialize(from)?;
        PodUid::parse_uuid(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no UID")))
    }
}
