//! The decision tables as pure questions, for whoever compares them with another node's (conformance tests, a judge of
//! recordings). Nothing here changes anything.

pub use crate::actuate::plan::{Plan, compute};
pub use crate::allocate::queue::increases;
