//! The 104 numbered cases of `reference/kubelet-pods.md` §5 against the production core. Each table carries the numbers;
//! those that don't apply are listed here with the reason.
#![allow(clippy::expect_used, clippy::wildcard_enum_match_arm)]

mod actions;
mod kit;
