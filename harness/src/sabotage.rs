//! Saboteurs: a correct node made wrong in one historical way (DESIGN §6). Each stands for races of the sheets
//! (`B` kubelet-pods §6, `V` kubelet-volumes §5) and must be caught by the oracle of the invariant that it breaks: an oracle
//! that can't fail is worthless, and so is a world that never shows it.
//!
//! A saboteur is an entry of a table over few mechanisms ([`Wrong`]): it hears facts wrongly, says commands wrongly, says
//! more than it should, wakes at the wrong time, believes wrong settings, or forgets. All of them are functions of what went
//! in and out, so that a sabotaged run replays like any other. They may not look at oracles or at the world.

mod brain;
mod damage;
mod memory;
mod table;

pub use damage::Damage;
pub use memory::Memory;
pub use table::ALL;

use crate::log::OnDisk;
use crate::swarm::{BrainOf, Driven, SeedReport, SwarmOptions, run_seed};
use crate::world::Answers;
use brain::Sabotaged;
use nodefold_core::Config;
use nodefold_core::Node;
use nodefold_core::command::{Action, Command, Rule};
use nodefold_core::event::{Event, Fact};
use nodefold_core::ids::PodUid;
use nodefold_core::time::Time;
use nodefold_model::Invariant;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One way of being wrong.
pub struct Saboteur {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it does wrong, in a sentence.
    pub about: &'static str,
    /// The races of the sheets that it stands for; empty: none of them, but a family that the design names.
    pub races: &'static [&'static str],
    /// The invariant whose oracle must catch it.
    pub breaks: Invariant,
    /// Others that it truly breaks as well, where chance has it that way round: a seed that shows one of them first is passed
    /// over, and told.
    pub also: &'static [Invariant],
    /// How.
    pub wrong: &'static [Wrong],
    /// A story of this repository (`examples/`, `tests/races/`, `tests/scenarios/`, or of the saboteurs' own test) in which it
    /// shows; empty: only the swarm's faults bring it out.
    pub story: &'static str,
}

/// A mechanism of being wrong.
pub enum Wrong {
    /// What the brain hears instead of a fact.
    Hears(fn(&Memory, &Event) -> Heard),
    /// What is said instead of a command.
    Says(fn(&Memory, &Command) -> Said),
    /// What is commanded besides, after a fact and what it brought about.
    Adds(fn(&Memory, &Fact, &[Command]) -> Vec<Order>),
    /// What the brain is made to hear besides, after a fact and the commands it brought about.
    Invents(fn(&Memory, &Fact, &[Command]) -> Vec<Fact>),
    /// When it wants to be woken, instead of when it should.
    Wakes(fn(&Memory, Option<Time>) -> Option<Time>),
    /// The settings that it works by, instead of the node's.
    Believes(fn(&mut Config)),
    /// The log doesn't keep its word.
    Log(Damage),
    /// The journal doesn't sync what it writes.
    NeverSyncs,
    /// The journal syncs again what it could not sync, and believes that.
    RetriesSyncs,
    /// The API answers requests otherwise than its rules say.
    Answers(Answers),
}

/// What a brain hears.
pub enum Heard {
    /// The fact.
    AsItIs,
    /// Nothing but time.
    Nothing,
    /// These instead.
    Instead(Vec<Fact>),
}

/// What becomes of a command.
pub enum Said {
    /// It is given.
    AsItIs,
    /// It is swallowed.
    Nothing,
    /// It is swallowed, and the brain believes that it was refused: it will try again.
    Refused,
    /// It is swallowed, and the brain believes that it was done.
    Pretended,
    /// This is given in its place.
    Instead(Action),
}

/// A command that nobody asked for.
pub struct Order {
    /// For which pod.
    pub pod: PodUid,
    /// The rule that it claims.
    pub rule: Rule,
    /// What.
    pub action: Action,
}

/// How a saboteur was caught.
pub struct Hunted {
    /// How many seeds it took.
    pub seeds: u64,
    /// How the last of them went.
    pub report: SeedReport,
    /// What it broke.
    pub by: String,
    /// What else seeds before that one broke, of what it may break as well.
    pub also: BTreeSet<String>,
}

/// Where hunts of a saboteur begin; the middle one of them counts.
pub const BEGINNINGS: [u64; 5] = [0, 1_000_000, 2_000_000, 3_000_000, 4_000_000];

/// The seeds that the middle one may take.
pub const WITHIN: u64 = 200;

impl Saboteur {
    /// What is wrong is what a journal does with a disk. Exploration has none: a world is had twice at each choice, and a disk
    /// is not.
    pub fn needs_a_disk(&self) -> bool {
        self.wrong.iter().any(|wrong| matches!(wrong, Wrong::NeverSyncs | Wrong::RetriesSyncs))
    }

    /// Hunts it: runs seeds from `start` on until one breaks what it stands for, or what it should not break. `None`: it
    /// escapes `limit` seeds.
    pub fn caught_from(&'static self, start: u64, limit: u64) -> Option<Hunted> {
        let options = SwarmOptions { driven: self.driven(), ..SwarmOptions::default() };
        let mut also = BTreeSet::new();
        (0..limit).find_map(|n| {
            let report = run_seed(start.wrapping_add(n), &options);
            let by = report.broken.first()?.invariant.clone();
            if self.also.iter().any(|other| other.to_string() == by) {
                also.insert(by);
                return None;
            }
            Some(Hunted { seeds: n + 1, report, by, also: std::mem::take(&mut also) })
        })
    }

    /// The saboteur of that name.
    pub fn named(name: &str) -> Option<&'static Saboteur> {
        ALL.iter().copied().flatten().find(|saboteur| saboteur.name == name)
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = &'static Saboteur> {
        ALL.iter().copied().flatten()
    }

    /// The production core and its surroundings, sabotaged.
    pub fn driven(&'static self) -> Driven {
        let wrong = self.wrong;
        let brain: BrainOf = Arc::new(move |config| {
            let mut believed = config.clone();
            for wrong in wrong {
                if let Wrong::Believes(change) = wrong {
                    change(&mut believed);
                }
            }
            Box::new(Sabotaged::new(wrong, Box::new(Node::new(believed))))
        });
        // Each is to be caught by an oracle, which judges what is said and done; the specification judges from inside.
        let mut driven = Driven { refined: false, ..Driven::by(brain) };
        for wrong in wrong {
            if let Wrong::Log(damage) = wrong {
                driven.log = Arc::new(|_, _| Box::new(damage::Damaged::new(*damage)));
            } else if let Wrong::NeverSyncs = wrong {
                driven.log = Arc::new(|config, _| Box::new(OnDisk::that_never_syncs(config)));
            } else if let Wrong::RetriesSyncs = wrong {
                driven.log = Arc::new(|config, _| Box::new(OnDisk::that_retries_syncs(config)));
            } else if let Wrong::Answers(answers) = wrong {
                driven.answers = *answers;
            }
        }
        driven
    }
}
