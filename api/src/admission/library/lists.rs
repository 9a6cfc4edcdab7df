//! Lists: `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`.

use cel::common::types::{CelBool, CelInt, DYN_TYPE, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use std::cmp::Ordering;

/// Declares them.
pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload("isSorted", "list_is_sorted", LIST_TYPE, vec![], is_sorted)?;
    env.add_member_overload("sum", "list_sum", LIST_TYPE, vec![], sum)?;
    env.add_member_overload("min", "list_min", LIST_TYPE, vec![], |args| {
        extreme(args, "min", Ordering::Less)
    })?;
    env.add_member_overload("max", "list_max", LIST_TYPE, vec![], |args| {
        extreme(args, "max", Ordering::Greater)
    })?;
    env.add_member_overload("indexOf", "list_index_of", LIST_TYPE, vec![DYN_TYPE], |args| {
        position(&args, |items, wanted| items.iter().position(|item| item.equals(wanted)))
    })?;
    env.add_member_overload("lastIndexOf", "list_last_index_of", LIST_TYPE, vec![DYN_TYPE], |args| {
        position(&args, |items, wanted| items.iter().rposition(|item| item.equals(wanted)))
    })
}

/// The entries of a list.
pub(super) fn items(list: &dyn Val) -> Result<Vec<&dyn Val>, ExecutionError> {
    let wrong =
        || ExecutionError::UnexpectedType { got: list.get_type().name().to_owned(), want: "list".to_owned() };
    let mut entries = list.as_iterable().ok_or_else(wrong)?.iter();
    let mut items = Vec::new();
    while let Some(item) = entries.next() {
        items.push(item as &dyn Val);
    }
    Ok(items)
}

fn compare(function: &str, a: &dyn Val, b: &dyn Val) -> Result<Ordering, ExecutionError> {
    let alike = a.get_type() == b.get_type();
    let comparer = a.as_comparer().filter(|_| alike).ok_or_else(|| {
        let types = [a, b].map(|value| value.get_type().name().to_owned()).to_vec();
        ExecutionError::no_such_overload(function, types)
    })?;
    comparer.compare(b)
}

fn is_sorted<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [list] = args.as_slice() else { return Err(ExecutionError::invalid_argument_count(1, args.len())) };
    let items = items(list.as_ref())?;
    let mut sorted = true;
    for pair in items.windows(2) {
        sorted &= compare("isSorted", pair[0], pair[1])? != Ordering::Greater;
    }
    Ok(CowVal::owned(CelBool::from(sorted)))
}

/// Of nothing, the sum is 0.
fn sum<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [list] = args.as_slice() else { return Err(ExecutionError::invalid_argument_count(1, args.len())) };
    let mut total: Option<Box<dyn Val + 'v>> = None;
    let Some(entries) = list.as_ref().as_iterable() else {
        return Err(ExecutionError::function_error("sum", "it is no list"));
    };
    let mut entries = entries.iter();
    while let Some(item) = entries.next() {
        total = Some(match total {
            None => item.clone_as_boxed(),
            Some(so_far) => {
                let types = || vec![so_far.get_type().name().to_owned(), item.get_type().name().to_owned()];
                let adder = so_far.as_adder().filter(|_| so_far.get_type() == item.get_type());
                let adder = adder.ok_or_else(|| ExecutionError::no_such_overload("sum", types()))?;
                adder.add(item)?.into_owned().clone_as_boxed()
            }
        });
    }
    Ok(total.map_or_else(|| CowVal::owned(CelInt::from(0)), CowVal::Owned))
}

fn extreme<'b, 'v>(
    mut args: Vec<CowVal<'b, 'v>>,
    function: &str,
    wanted: Ordering,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let count = args.len();
    let Some(list) = args.pop() else { return Err(ExecutionError::invalid_argument_count(1, count)) };
    let Some(entries) = list.as_ref().as_iterable() else {
        return Err(ExecutionError::function_error(function, "it is no list"));
    };
    let (mut entries, mut best) = (entries.iter(), None::<Box<dyn Val + 'v>>);
    while let Some(item) = entries.next() {
        let better = match &best {
            None => true,
            Some(best) => compare(function, item, best.as_ref())? == wanted,
        };
        if better {
            best = Some(item.clone_as_boxed());
        }
    }
    best.map(CowVal::Owned)
        .ok_or_else(|| ExecutionError::function_error(function, format!("{function} called on empty list")))
}

/// -1 for what isn't there.
fn position<'b, 'v>(
    args: &[CowVal<'_, '_>],
    find: impl Fn(&[&dyn Val], &dyn Val) -> Option<usize>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [list, wanted] = args else { return Err(ExecutionError::invalid_argument_count(2, args.len())) };
    let found = find(&items(list.as_ref())?, wanted.as_ref());
    let found = found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1);
    Ok(CowVal::owned(CelInt::from(found)))
}
