#![no_std]
#![doc = "A Kubernetes node's lifecycle as a pure fold over its event log."]
#![cfg_attr(feature = "rkyv", allow(missing_docs, reason = "rkyv's derives make undocumented fields; the lint runs without the feature"))]

extern crate alloc;

pub mod command;
pub mod config;
pub mod event;
pub mod ids;
pub mod resources;
pub mod spec;
pub mod status;
pub mod time;
pub mod codec;
pub mod node;

pub use command::{Command, Commands};
pub use config::Config;
pub use event::{Event, Fact};
pub use node::{Digest, Node, SNAPSHOT_LAYOUT};
