//! The real node, as root on this host and as ordinary users: scenarios, an agent's life and deaths, and how a container is confined.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "linux/confinement.rs"]
mod confinement;
#[path = "linux/crash.rs"]
mod crash;
#[path = "linux/failpoints.rs"]
mod failpoints;
#[path = "linux/housekeeping.rs"]
mod housekeeping;
#[path = "linux/images.rs"]
mod images;
#[path = "linux/life.rs"]
mod life;
#[path = "linux/logs.rs"]
mod logs;
#[path = "linux/node.rs"]
mod node;
#[path = "../agent/tests/oci/mod.rs"]
mod oci;
#[path = "linux/parity.rs"]
mod parity;
#[path = "linux/rights.rs"]
mod rights;
#[path = "linux/rootless.rs"]
mod rootless;
#[path = "linux/scenarios.rs"]
mod scenarios;
#[path = "linux/served.rs"]
mod served;
#[path = "linux/sharing.rs"]
mod sharing;
#[path = "linux/users.rs"]
mod users;
#[path = "linux/version_two.rs"]
mod version_two;
