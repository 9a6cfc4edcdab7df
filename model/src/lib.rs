//! The lifecycle as a specification: oracles that judge any trace of facts and commands (DESIGN §5).
//!
//! A trace need not come from nodefold's own core. The oracles keep their own view of the world, built from the
//! trace alone, and say of each broken invariant which records prove it.
//!
//! ```
//! use nodefold_core::{Config, Event, Fact, command::{Action, Cause, Command, Rule, TraceEntry}};
//! use nodefold_core::ids::{EventSeq, OpId, PodUid};
//! use nodefold_core::time::Time;
//! use nodefold_model::{Invariant, Oracles};
//!
//! let mut oracles = Oracles::new(&Config::default());
//! let (at, pod) = (Time(1), PodUid(7));
//! let cause = Cause { event: EventSeq(1), rule: Rule::VolumeOrphaned };
//! let action = Action::UnmountVolume { volume: nodefold_core::ids::VolumeId { name: "data".into(), generation: 0 }, spec: None };
//! oracles.observe(&TraceEntry::Fact(Event { at, fact: Fact::AgentStarted { boot_id: 1 } }));
//! oracles.observe(&TraceEntry::Command { at, command: Command { op: OpId(1), pod, cause, action } });
//! let [violation] = oracles.violations() else { panic!("the runtime was not listed yet") };
//! assert_eq!((violation.invariant, &violation.evidence), (Invariant::S1, &vec![0, 1]));
//! ```

mod dynamic_rules;
pub mod explore;
mod invariant;
mod liveness;
mod oracles;
pub mod refine;
pub mod spec;
mod world_view;

pub use dynamic_rules::{Broken, Change, DynamicRules};
pub use invariant::{Invariant, Violation};
pub use liveness::COMMANDS_PER_MINUTE;
pub use oracles::Oracles;
