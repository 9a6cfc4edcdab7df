#![no_std]
#![cfg_attr(
    feature = "rkyv",
    allow(
        missing_docs,
        reason = "rkyv's derives make undocumented fields; the lint runs without the feature"
    )
)]
//! A Kubernetes node's lifecycle as a pure fold over its event log.

extern crate alloc;

mod actuate;
mod allocate;
pub mod anomaly;
pub mod codec;
pub mod command;
pub mod config;
pub mod context;
pub mod event;
pub mod ids;
pub mod node;
mod observe;
mod publish;
pub mod resources;
pub mod rules;
#[cfg(feature = "rkyv")]
pub mod snapshot;
pub mod spec;
pub mod state;
pub mod status;
pub mod time;
pub mod views;
mod volumes;

pub use command::{Command, Commands};
pub use config::Config;
pub use event::{Event, Fact};
pub use node::{Digest, Node};
