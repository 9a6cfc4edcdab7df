//! Who is who: pods, containers and volumes behind names, UIDs and ids (node-logs §5 "Identity").
//!
//! Pods are keyed by UID; a line that has only a name is given to the life that had it at that time. Joins that no line
//! says are inferred only where a single candidate is left, and marked.

mod containers;
mod pods;
mod volumes;

pub use containers::{Containers, status_of};
pub use pods::Pods;
pub use volumes::{Said, Volumes};
