//! `jsonpatch.escapeKey("example.com/a~b")`: a key as a step of a JSON pointer (RFC 6901).

use cel::common::types::CelString;
use cel::{DeclarationError, Env};

/// Declares it.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_overload!(env, fn escape_key: (CelString) -> CelString, name = "jsonpatch.escapeKey")
}

fn escape_key(key: &CelString<'_>) -> CelString<'static> {
    CelString::from(key.inner().replace('~', "~0").replace('/', "~1"))
}
