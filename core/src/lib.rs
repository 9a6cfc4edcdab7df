#![no_std]
#![cfg_attr(
    feature = "rkyv",
    allow(
        missing_docs,
        reason = "rkyv's derives make undocumented fields; the lint runs without the feature"
    )
)]
//! A Kubernetes node's lifecycle as a pure fold over its event log: facts in, commands out.
//!
//! [`Node::apply`] is the only way that state changes. It does no I/O and reads no clock: time comes with the event, and
//! the same facts give the same state and the same commands everywhere. A driver applies a fact, executes what it asked
//! for, and applies a [`Fact::Tick`] whenever [`Node::next_deadline`] has come.
//!
//! ```
//! use nodefold_core::{Commands, Config, Event, Fact, Node, time::Time};
//!
//! let mut node = Node::new(Config::default());
//! let mut out = Commands::default();
//! node.apply(&Event { at: Time(1), fact: Fact::AgentStarted { boot_id: 7 } }, &mut out);
//! // A node that just woke up looks around before it touches anything.
//! let asked: Vec<&str> = out.commands.iter().map(|c| c.action.verb()).collect();
//! assert_eq!(asked, ["observe-mounts", "observe-runtime"]);
//! let before = node.digest();
//! node.apply(&Event { at: Time(2), fact: Fact::Tick }, &mut out);
//! assert_ne!(node.digest(), before, "time is state");
//! ```
//!
//! Inside, five rooms in this order, for the pods that the event touched: observe, allocate, volumes, actuate, publish.

extern crate alloc;

pub mod about;
mod actuate;
mod allocate;
pub mod anomaly;
mod answer;
pub mod api_write;
pub mod backend;
mod canonical;
pub mod codec;
pub mod command;
pub mod config;
pub mod context;
mod digest;
pub mod event;
pub mod few;
pub mod ids;
pub mod node;
mod observe;
#[cfg(feature = "serde")]
pub mod portable;
mod publish;
pub mod resources;
pub mod rules;
#[cfg(feature = "rkyv")]
pub mod snapshot;
pub mod spec;
pub mod state;
pub mod status;
pub mod text;
pub mod time;
pub mod views;
mod volumes;

pub use backend::Backend;
pub use command::{Command, Commands};
pub use config::Config;
pub use event::{Event, Fact};
pub use node::{Digest, Node};
