//! Lists as sets: `sets.contains([1, 2], [2])`, `sets.equivalent`, `sets.intersects`. Equality is CEL's.

use cel::common::types::{CelBool, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};

/// Declares them.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    let two = || vec![LIST_TYPE, LIST_TYPE];
    env.add_overload("sets.contains", "list_sets_contains_list", two(), |args| {
        compare(&args, |all, some| some.iter().all(|item| has(all, *item)))
    })?;
    env.add_overload("sets.equivalent", "list_sets_equivalent_list", two(), |args| {
        compare(&args, |a, b| a.iter().all(|item| has(b, *item)) && b.iter().all(|item| has(a, *item)))
    })?;
    env.add_overload("sets.intersects", "list_sets_intersects_list", two(), |args| {
        compare(&args, |a, b| a.iter().any(|item| has(b, *item)))
    })
}

fn has(items: &[&dyn Val], wanted: &dyn Val) -> bool {
    items.iter().any(|item| item.equals(wanted))
}

fn compare<'b, 'v>(
    args: &[CowVal<'_, '_>],
    how: impl Fn(&[&dyn Val], &[&dyn Val]) -> bool,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [a, b] = args else { return Err(ExecutionError::invalid_argument_count(2, args.len())) };
    let (a, b) = (super::lists::items(a.as_ref())?, super::lists::items(b.as_ref())?);
    Ok(CowVal::owned(CelBool::from(how(&a, &b))))
}
