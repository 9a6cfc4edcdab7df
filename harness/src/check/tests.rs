//! The named scopes, as far as a debug build goes in seconds.
#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn every_named_scope_can_be_read() {
    for (name, _) in NAMED {
        let scope = named(name).unwrap().unwrap();
        assert_eq!(scope.name, name);
        assert!(!scope.steps.is_empty());
    }
}
