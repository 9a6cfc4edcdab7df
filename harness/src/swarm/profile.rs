//! A seed's profile (swarm testing): what is off, rare or frequent in this run, how large things are, and which features
//! its pods use.

use super::chance::Chance;
use super::kind::{ALL, Kind};
use crate::scenario::NodeSpec;
use nodefold_core::config::{FeatureGates, NodeFacts};
use nodefold_core::resources::{ResourceList, ResourceName};
use std::fmt;

/// What pods of a run may have.
#[derive(Clone, Debug)]
pub struct Features {
    /// Most main containers.
    pub containers: u64,
    /// Most init containers and sidecars.
    pub inits: u64,
    /// Most volumes.
    pub volumes: u64,
    /// Requests and limits.
    pub resources: bool,
    /// Probes.
    pub probes: bool,
    /// postStart and preStop hooks.
    pub hooks: bool,
    /// Restart policies other than Always, of pods and of containers.
    pub policies: bool,
    /// activeDeadlineSeconds.
    pub deadlines: bool,
    /// Volumes other than emptyDir.
    pub sources: bool,
    /// Most that pods ask to be given for their end, in seconds.
    pub grace_seconds: u64,
}

/// What this run is like.
#[derive(Clone, Debug)]
pub struct Profile {
    /// How often each kind comes, against the others; 0: off.
    pub weights: Vec<(Kind, u64)>,
    /// The node.
    pub node: NodeSpec,
    /// How many names pods have: the fewer, the more often one is used again.
    pub pods: u64,
    /// What pods may have.
    pub features: Features,
    /// How many choices are taken in safety mode.
    pub steps: u64,
    /// Something is done or goes wrong once in that many steps.
    pub calm: u64,
}

impl Profile {
    /// Draws one. `only` leaves no other fault, and all actions; `without` takes kinds away.
    pub fn draw(chance: &mut dyn Chance, only: &[Kind], without: &[Kind]) -> Profile {
        let mut weights = Vec::new();
        // A run with a few frequent faults finds other things than one with a little of everything.
        let faults_off = chance.between(1, 9);
        for kind in ALL {
            let weight = match (kind.is_action(), chance.below(10)) {
                (false, drawn) if drawn < faults_off => 0,
                (true, 0..=2) => 0,
                (_, drawn) if drawn % 2 == 0 => 1,
                (..) => 6,
            };
            let weight = if kind == Kind::Create { weight.max(2) } else { weight };
            // What stops everything is rare against the rest, or nothing else would ever happen.
            let weight = if stops_everything(kind) { weight.min(1) } else { weight * 3 };
            let wanted = only.is_empty() || kind.is_action() || only.contains(&kind);
            // What is asked for by name is never off.
            let weight = if only.contains(&kind) { weight.max(9) } else { weight };
            if wanted && !without.contains(&kind) && weight > 0 {
                weights.push((kind, weight));
            }
        }
        Profile {
            weights,
            node: node(chance),
            pods: chance.between(1, 4),
            features: features(chance),
            steps: 100 << chance.below(4),
            calm: 4 << chance.below(5),
        }
    }

    /// How often a kind comes.
    pub fn weight(&self, kind: Kind) -> u64 {
        self.weights.iter().find(|(k, _)| *k == kind).map_or(0, |(_, weight)| *weight)
    }
}

/// It ends whatever is under way.
fn stops_everything(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::AnswerAfterCrash
            | Kind::Crash
            | Kind::CrashInside
            | Kind::CrashLoop
            | Kind::Reboot
            | Kind::DiskFull
            | Kind::Gates
            | Kind::ImageMissing
            | Kind::ForceDelete
    )
}

fn node(chance: &mut dyn Chance) -> NodeSpec {
    let mut allocatable = ResourceList::default();
    if chance.once_in(3, 4) {
        allocatable.set(ResourceName::Cpu, 1000 * chance.between(1, 4));
        allocatable.set(ResourceName::Memory, (512 << 20) * chance.between(1, 4));
        allocatable.set(ResourceName::Pods, chance.between(1, 6));
    }
    let gates =
        FeatureGates { dynamic_containers: chance.once_in(9, 10), dynamic_volumes: chance.once_in(9, 10) };
    NodeSpec { facts: NodeFacts { allocatable, labels: Vec::new(), gates }, images: None }
}

fn features(chance: &mut dyn Chance) -> Features {
    Features {
        containers: chance.between(1, 3),
        inits: chance.below(3),
        volumes: chance.below(5),
        resources: chance.once_in(2, 3),
        probes: chance.once_in(1, 3),
        hooks: chance.once_in(1, 3),
        policies: chance.once_in(1, 2),
        deadlines: chance.once_in(1, 6),
        sources: chance.once_in(2, 3),
        grace_seconds: [1, 2, 5, 30][chance.below(4) as usize],
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pods, {} steps, one intervention in {}", self.pods, self.steps, self.calm)?;
        for (word, often) in [("frequent", true), ("rare", false)] {
            let mut names =
                self.weights.iter().filter(|(_, weight)| (*weight > 3) == often).map(|(k, _)| k.name());
            if let Some(first) = names.next() {
                write!(f, "; {word}: {first}")?;
                names.try_for_each(|name| write!(f, " {name}"))?;
            }
        }
        Ok(())
    }
}
