//! The real node: volumes, pods and containers on Linux, and a Kubernetes API for it.

pub mod backend;
pub mod beneath;
pub mod cgroups;
pub mod cleanup;
pub mod clock;
pub mod compose;
pub mod confine;
pub mod daemon;
pub mod doctor;
pub mod driver;
pub mod fault;
pub mod fields;
pub mod images;
pub mod layout;
pub mod manifests;
pub mod mounts;
pub mod objects;
pub mod pod;
pub mod probes;
pub mod process;
pub mod runtime;
pub mod seccomp;
pub mod server;
pub mod sys;
pub mod volumes;
pub mod workers;
