//! Semantic versions: `semver("1.2.3").isLessThan(semver("1.10.0"))`. With `true` as second argument a text is made one first: a `v`
//! in front, leading zeros and missing numbers are forgiven.

use super::opaque;
use cel::common::types::{CelBool, CelInt, CelString, Type};
use cel::{DeclarationError, Env, ExecutionError};
use semver::Version;
use std::cmp::Ordering;

/// Declares them.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    cel::add_overload!(env, fn semver_of: (CelString) -> Result<Semver>, name = "semver")?;
    cel::add_overload!(env, fn semver_forgiving: (CelString, CelBool) -> Result<Semver>, name = "semver")?;
    cel::add_overload!(env, fn is_semver: (CelString) -> CelBool)?;
    cel::add_overload!(env, fn is_semver_forgiving: (CelString, CelBool) -> CelBool, name = "isSemver")?;
    cel::add_member_overload!(env, fn major: (Semver) -> CelInt)?;
    cel::add_member_overload!(env, fn minor: (Semver) -> CelInt)?;
    cel::add_member_overload!(env, fn patch: (Semver) -> CelInt)?;
    cel::add_member_overload!(env, fn is_greater_than: (Semver, Semver) -> CelBool)?;
    cel::add_member_overload!(env, fn is_less_than: (Semver, Semver) -> CelBool)?;
    cel::add_member_overload!(env, fn compare_to: (Semver, Semver) -> CelInt)
}

#[derive(Clone, Debug)]
struct Semver(Version);

/// What is built in says nothing of the order.
impl PartialEq for Semver {
    fn eq(&self, other: &Semver) -> bool {
        self.0.cmp_precedence(&other.0) == Ordering::Equal
    }
}

static SEMVER: Type = Type::new_unspecified_type("kubernetes.Semver");

opaque!(Semver, SEMVER);

fn read(text: &str) -> Result<Semver, ExecutionError> {
    let read = Version::parse(text);
    read.map(Semver).map_err(|wrong| ExecutionError::function_error("semver", format!("{text:?}: {wrong}")))
}

/// The text with three numbers and without what is forgiven.
fn normal(text: &str) -> String {
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    let mut parts: Vec<&str> = numbers
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            significant => significant,
        })
        .collect();
    while parts.len() < 3 {
        parts.push("0");
    }
    format!("{}{rest}", parts.join("."))
}

fn semver_of(text: &CelString<'_>) -> Result<Semver, ExecutionError> {
    read(text.inner())
}

fn semver_forgiving(text: &CelString<'_>, forgive: &CelBool) -> Result<Semver, ExecutionError> {
    if *forgive.inner() { read(&normal(text.inner())) } else { read(text.inner()) }
}

fn is_semver(text: &CelString<'_>) -> CelBool {
    CelBool::from(read(text.inner()).is_ok())
}

fn is_semver_forgiving(text: &CelString<'_>, forgive: &CelBool) -> CelBool {
    CelBool::from(semver_forgiving(text, forgive).is_ok())
}

fn number(of: u64) -> CelInt {
    CelInt::from(i64::try_from(of).unwrap_or(i64::MAX))
}

fn major(version: &Semver) -> CelInt {
    number(version.0.major)
}

fn minor(version: &Semver) -> CelInt {
    number(version.0.minor)
}

fn patch(version: &Semver) -> CelInt {
    number(version.0.patch)
}

fn is_greater_than(a: &Semver, b: &Semver) -> CelBool {
    CelBool::from(a.0.cmp_precedence(&b.0) == Ordering::Greater)
}

fn is_less_than(a: &Semver, b: &Semver) -> CelBool {
    CelBool::from(a.0.cmp_precedence(&b.0) == Ordering::Less)
}

fn compare_to(a: &Semver, b: &Semver) -> CelInt {
    CelInt::from(match a.0.cmp_precedence(&b.0) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })
}
