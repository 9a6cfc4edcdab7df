//! The real node: volumes, pods and containers on Linux.

pub mod beneath;
pub mod fault;
pub mod fields;
pub mod layout;
pub mod mounts;
pub mod objects;
pub mod sys;
pub mod volumes;
