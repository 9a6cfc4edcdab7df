//! A hand-driven core is explained, and views that no core may reach are not.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]
