//! The simulated world around a node, and the stories that are told in it.
//!
//! A [`Scenario`] is a YAML file of steps and expectations. [`run()`] plays it: the API server, the runtime, the mount
//! table and the agent with the production core are all there; time jumps; nothing is random. Everything that happens
//! is told to an [`Observer`] as typed [`Record`]s.
//!
//! ```
//! use nodefold_harness::{Nobody, RunOptions, Scenario, Verdict, run};
//!
//! let story = "
//! name: a-secret-is-stored
//! steps:
//! - create: {apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {k: v}}
//! - expect: {accepted: true}
//! ";
//! let scenario = Scenario::parse(story, "story.yaml")?;
//! assert_eq!(run(&scenario, RunOptions::default(), &mut Nobody).verdict, Verdict::Passed);
//! # Ok::<(), nodefold_k8s::InputError>(())
//! ```

pub mod act;
pub mod brain;
pub mod check;
pub mod history;
pub mod host;
pub mod log;
pub mod record;
pub mod run;
pub mod sabotage;
pub mod scenario;
pub mod shrink;
pub mod stage;
pub mod swarm;
pub mod world;

pub use brain::{Brain, NewBrain};
pub use record::{Nobody, Observer, Record};
pub use run::{Counts, Outcome, RunOptions, Verdict, node_config, run, run_on};
pub use sabotage::{BEGINNINGS, Hunted, Saboteur, WITHIN};
pub use scenario::Scenario;
pub use stage::{Simulation, Stage};
pub use world::{Choice, Chooser, Earliest, Enabled, World};
