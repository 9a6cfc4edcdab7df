//! Finding by regular expression: `"abc 123".find("[0-9]+")`.

use super::texts;
use cel::common::types::{CelInt, CelList, CelString};
use cel::{DeclarationError, Env, ExecutionError};
use regex::Regex;

/// Declares them.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_member_overload!(env, fn find: (CelString, CelString) -> Result<CelString>)?;
    cel::add_member_overload!(env, fn find_all: (CelString, CelString) -> Result<CelList>)?;
    cel::add_member_overload!(env, fn find_some: (CelString, CelString, CelInt) -> Result<CelList>, name = "findAll")
}

fn pattern(text: &CelString<'_>) -> Result<Regex, ExecutionError> {
    Regex::new(text.inner()).map_err(|wrong| ExecutionError::function_error("find", wrong))
}

/// The first match; empty if there is none.
fn find(text: &CelString<'_>, wanted: &CelString<'_>) -> Result<CelString<'static>, ExecutionError> {
    let found = pattern(wanted)?.find(text.inner()).map(|m| m.as_str().to_owned());
    Ok(CelString::from(found.unwrap_or_default()))
}

fn find_all(text: &CelString<'_>, wanted: &CelString<'_>) -> Result<CelList<'static>, ExecutionError> {
    matches(text, wanted, usize::MAX)
}

/// As many as asked for; all of them if that is negative.
fn find_some(
    text: &CelString<'_>,
    wanted: &CelString<'_>,
    most: &CelInt,
) -> Result<CelList<'static>, ExecutionError> {
    matches(text, wanted, usize::try_from(*most.inner()).unwrap_or(usize::MAX))
}

fn matches(
    text: &CelString<'_>,
    wanted: &CelString<'_>,
    most: usize,
) -> Result<CelList<'static>, ExecutionError> {
    let pattern = pattern(wanted)?;
    let found = pattern.find_iter(text.inner()).take(most);
    Ok(texts(found.map(|m| m.as_str().to_owned())))
}
