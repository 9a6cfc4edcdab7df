//! The swarm: a seed draws its own profile (which faults and actions are off, rare or frequent; sizes and features), then a
//! run is played in safety mode, with all of the profile's faults, and in liveness mode, where faults stop and everything
//! must converge and stay (DESIGN §6). A seed is one run on every machine: one chooser, integers only, jumped time.

mod chance;
mod coverage;
mod faults;
mod kind;
pub mod manifest;
mod player;
mod profile;
mod run;
pub mod users;

pub use chance::{Chance, Xoshiro};
pub use coverage::Coverage;
pub use kind::{ALL as ALL_KINDS, Kind};
pub use player::{Broken, Player, Totals};
pub use profile::{Features, Profile};
pub use run::{BrainOf, Driven, LogOf, SeedReport, SwarmOptions, play, run_seed};
