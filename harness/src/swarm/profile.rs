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
    /// How many names volumes have: the fewer, the more often one is used again.
    pub volume_names: u64,
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
    /// The same while an agent that has just started looks around: what strikes only then comes more often.
    pub in_recovery: Vec<(Kind, u64)>,
    /// What it is about, if anything.
    pub about: Option<About>,
    /// The node.
    pub node: NodeSpec,
    /// The API server leaves names in flight to the node to keep apart.
    pub trusting: bool,
    /// How many names pods have: the fewer, the more often one is used again.
    pub pods: u64,
    /// What pods may have.
    pub features: Features,
    /// What static pods are made of: a file that comes back has what it had.
    pub files: u64,
    /// How many choices are taken in safety mode.
    pub steps: u64,
    /// Something is done or goes wrong once in that many steps.
    pub calm: u64,
}

/// What a run may be about. A race wants several things at once, and things that are drawn each by itself rarely meet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// Agents that start anew and find what others left.
    Recovery,
    /// Pods that grow, shrink and wait for room.
    Room,
    /// Volumes that come, go and come back.
    Volumes,
    /// Deletions, slow stops and sidecars.
    Endings,
    /// Files that go and come back.
    Files,
    /// Containers that end and are to run again.
    Restarts,
}

impl About {
    const ALL: [About; 6] =
        [About::Recovery, About::Room, About::Volumes, About::Endings, About::Files, About::Restarts];

    /// What is frequent then.
    fn frequent(self) -> &'static [(Kind, u64)] {
        match self {
            About::Recovery => &[
                (Kind::Crash, 6),
                (Kind::CrashInside, 6),
                (Kind::CrashLoop, 6),
                (Kind::ListPartial, 18),
                (Kind::FailUncertain, 9),
                (Kind::TimeoutDone, 9),
                (Kind::Slow, 9),
                (Kind::Finish, 18),
                (Kind::Delete, 9),
            ],
            About::Room => &[
                (Kind::Dynamic, 36),
                (Kind::Resize, 18),
                (Kind::StopSlow, 36),
                (Kind::Crash, 3),
                (Kind::Exit, 9),
            ],
            About::Volumes => &[
                (Kind::Dynamic, 54),
                (Kind::Slow, 9),
                (Kind::StopSlow, 18),
                (Kind::FailTransient, 12),
                (Kind::FailUncertain, 12),
                (Kind::TimeoutDone, 18),
                (Kind::Delete, 9),
                (Kind::Finish, 18),
            ],
            About::Endings => {
                &[(Kind::Delete, 36), (Kind::StopSlow, 27), (Kind::StopIgnored, 9), (Kind::Finish, 18)]
            }
            About::Files => {
                &[(Kind::StaticPod, 54), (Kind::Slow, 18), (Kind::StopSlow, 27), (Kind::Crash, 6)]
            }
            About::Restarts => &[
                (Kind::ExitAgain, 18),
                (Kind::Exit, 18),
                (Kind::Finish, 27),
                (Kind::Crash, 3),
                (Kind::SandboxDies, 6),
                (Kind::ImageMissing, 6),
                (Kind::FailTransient, 12),
                (Kind::FailFinal, 9),
            ],
        }
    }

    /// What its pods and its node are made for.
    fn shape(self, features: &mut Features, node: &mut NodeSpec, chance: &mut dyn Chance) {
        match self {
            About::Recovery | About::Endings => {
                features.volumes = features.volumes.max(2);
                features.inits = 2;
                features.grace_seconds = 30;
            }
            About::Room => {
                features.resources = true;
                features.containers = 3;
                features.volumes = features.volumes.min(1);
                features.inits = 0;
                node.facts.gates = FeatureGates::default();
                node.facts.allocatable.set(ResourceName::Cpu, 500 * chance.between(4, 7));
                node.facts.allocatable.set(ResourceName::Memory, (512 << 20) * chance.between(3, 6));
            }
            About::Volumes => {
                features.volumes = features.volumes.max(2);
                features.volume_names = features.volumes + 1;
                features.sources = true;
                features.inits = features.inits.min(1);
                node.facts.gates = FeatureGates::default();
            }
            About::Files => features.volumes = features.volumes.max(1),
            About::Restarts => features.inits = features.inits.max(1),
        }
    }
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
        let (mut node, mut features) = (node(chance), features(chance));
        let about = chance.once_in(3, 4).then(|| chance.pick(&About::ALL).copied()).flatten();
        if let Some(about) = about {
            about.shape(&mut features, &mut node, chance);
            for (kind, often) in about.frequent() {
                let wanted = only.is_empty() || kind.is_action() || only.contains(kind);
                if wanted && !without.contains(kind) {
                    weights.retain(|(k, _)| k != kind);
                    weights.push((*kind, *often));
                }
            }
        }
        let trusting = chance.once_in(if about == Some(About::Volumes) { 4 } else { 1 }, 8);
        let now = |(kind, weight): &(Kind, u64)| (*kind, weight * if kind.is_in_recovery() { 8 } else { 1 });
        Profile {
            in_recovery: weights.iter().map(now).collect(),
            weights,
            about,
            node,
            trusting,
            pods: chance.between(1, 4),
            features,
            files: chance.below(1 << 32),
            steps: 100 << chance.below(4),
            calm: 4 << chance.below(if about.is_some() { 3 } else { 5 }),
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
    // A quarter of all runs has the real journal under it.
    let journal = chance.once_in(1, 4);
    NodeSpec { facts: NodeFacts { allocatable, labels: Vec::new(), gates }, images: None, journal }
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
        volume_names: chance.between(2, 6),
        sources: chance.once_in(2, 3),
        grace_seconds: [1, 2, 5, 30][chance.below(4) as usize],
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pods, {} steps, one intervention in {}", self.pods, self.steps, self.calm)?;
        if let Some(about) = self.about {
            write!(f, ", about {}", format!("{about:?}").to_lowercase())?;
        }
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
