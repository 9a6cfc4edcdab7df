//! Who is who: pods, containers and volumes behind names, UIDs and ids (node-logs §5 "Identity").
//!
//! Pods are keyed by UID; a line that has only a name is given to the life that had it at that time. Joins that no line
//! says are inferred only where a single candidate is left, and marked.

mod containers;
mod pods;
mod volumes;

pub use containers::{Containers, status_of};
pub use pods::Pods;
pub use volumes::Volumes;

use crate::evidence::Draft;
use crate::stamp::Moment;

/// A draft with its place in time.
pub struct Placed {
    /// When.
    pub at: Moment,
    /// The witness has whole seconds only.
    pub coarse: bool,
    /// It has no time of its own.
    pub untimed: bool,
    /// Its file.
    pub file: u32,
    /// The draft.
    pub draft: Box<Draft>,
}
